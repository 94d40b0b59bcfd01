"""Results as pictures, and pictures as arguments: row 0 on top; floats are linear Rec. 709, integers sRGB bytes.

Readers and writers of files are imported inside functions: Pillow is slow to import, and most programs have no picture.
"""

from pathlib import Path

import numpy as np

from renderer.cdollar.ir.types import FLOATS, Data, Scalar, Vector, component_types, promoted_type
from renderer.errors import UserError

READ_SUFFIXES = (".png", ".jpg", ".jpeg", ".exr", ".webp", ".tif", ".tiff", ".bmp")
HALF_OVERFLOW = 65520.0  # rounds to an infinite half
WANTED = "a picture is a two-dimensional array of numbers, or of vectors of 3 or 4"


def srgb_pixels(array: np.ndarray, element: Data) -> np.ndarray:
    """The sRGB bytes (height, width, 3 or 4) of a result: floats are linear, integers are bytes, bools black and white.

    Raises UserError for other results.
    """
    from renderer.formats.images import linear_to_srgb

    values = _channels(array, element)
    scalar = component_types(element)[0]
    if promoted_type(scalar) in FLOATS:
        pixels = linear_to_srgb(values)
        if pixels.shape[2] == 4:
            alpha = np.clip(np.nan_to_num(values[..., 3], nan=0.0, posinf=1.0, neginf=0.0), 0, 1)
            pixels[..., 3] = np.rint(255 * alpha).astype("u1")
        return pixels
    if scalar == "bool":
        return np.where(values, np.uint8(255), np.uint8(0))
    if values.min() < 0 or values.max() > 255:
        raise UserError(f"a picture of {scalar} holds 0..255, found {values.min()}..{values.max()}")
    return values.astype("u1")


def _channels(array: np.ndarray, element: Data) -> np.ndarray:
    """The values (height, width, 3 or 4) of a result; gray values are repeated."""
    is_color = isinstance(element, Vector) and element.size in (3, 4)
    if not (is_color or isinstance(element, Scalar)) or array.ndim != 2 + is_color or 0 in array.shape:
        shape = " x ".join(map(str, array.shape)) or "one number"
        raise UserError(f"the result is {shape} of {element}: {WANTED}")
    return array if is_color else np.repeat(array[..., None], 3, axis=2)


def write_picture(path: Path, array: np.ndarray, element: Data) -> None:
    """Write a result as .png (8 bits, sRGB) or .exr (linear float32); an old file survives any failure."""
    from renderer.formats.images import write_exr, write_png

    try:
        if path.suffix.lower() == ".exr":
            values = _channels(array, element).astype("f4")
            write_exr(path, {"RGBA" if values.shape[2] == 4 else "RGB": values})
        else:
            write_png(path, np.ascontiguousarray(srgb_pixels(array, element)))
    except UserError as error:
        raise UserError(f"-o {path}: {error}") from None


def read_picture(path: Path, element: Data) -> np.ndarray:
    """A picture as an array of elements: float and half, alone and in vectors, are linear, int and byte sRGB bytes.

    One number a pixel is the luminance of linear colors, or the mean of three bytes. Raises InputError.
    """
    from renderer.formats.images import LUMINANCE, read_image, read_pixels

    count, scalar = len(component_types(element)), component_types(element)[0]
    if promoted_type(scalar) in FLOATS:
        linear = read_image(path)
        linear = linear[..., :3] @ LUMINANCE.astype("f4") if count == 1 else linear[..., :count]
        is_half = scalar == "half" and not np.any(np.isfinite(linear) & (np.abs(linear) >= HALF_OVERFLOW))
        return linear.astype("f2") if is_half else linear
    pixels = read_pixels(path)
    pixels = pixels[..., :3].sum(axis=2, dtype="i4") // 3 if count == 1 else pixels[..., :count]
    return pixels.astype("u1" if scalar == "byte" else "i4")
