"""Reads and writes image files: PNG with a recipe (the scene as JSON) inside, EXR, and what Pillow reads.

The only module that calls OpenEXR, and the only one that opens image files by Pillow.
"""

import contextlib
import io
import itertools
import json
import math
import os
import struct
import warnings
import zlib
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import InputError, UserError, import_optional, reading
from renderer.plain import Json
from renderer.system.files import file_size, open_input, parse_json
from renderer.system.install import pip_install
from renderer.system.outputs import atomic_write
from renderer.system.trust import check_memory

if TYPE_CHECKING:
    from _hashlib import HASH

    from OpenEXR import File as OpenEXRFile
    from PIL.Image import Image

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The first bytes of PNG, EXR, JPEG, TIFF (two), BMP, WebP, GIF and PPM (two) files.
SIGNATURES = (PNG_SIGNATURE, b"v/1\1", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"BM", b"RIFF", b"GIF8", b"P5", b"P6")
RECIPE = "rayfold:recipe"
DIGEST = "rayfold:digest"
MAX_PIXELS = 3 << 24  # pixels of an untrusted picture: decoding takes 16 bytes a pixel
MAX_LINEAR_PIXELS = 1 << 25  # pixels of a picture converted to float32: 24 bytes a pixel
MAX_OWN_PIXELS = 1 << 30  # pixels of a PNG with a recipe, which this program has written
MAX_EXR_VALUES = 1 << 27  # pixels times channels, 4 bytes each
OTHER_SIZE = "of another size than the pictures before"  # in an error
CICP_PQ = bytes((9, 16, 0, 1))  # content of a cICP chunk: Rec. 2020 primaries, PQ, no matrix, full range
MAX_RECIPE_BYTES = 16 << 20
MAX_CHUNKS = 1 << 21  # chunks of a PNG
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])  # weights of linear Rec. 709 components
# The documented formats. Pillow opens some 40 more, among them EPS, for which it starts another program.
IMAGE_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "PPM", "GIF")
PALETTE_FRAMES, PALETTE_PIXELS = 16, 1 << 16  # from which the palette of a GIF is made
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".ppm", ".pgm", ".gif")
PICTURE_SUFFIXES = (*IMAGE_SUFFIXES, ".exr")


def write_png(path: Path, pixels: np.ndarray, recipe: Json | None = None) -> None:
    """Writes (height, width, 3 or 4) uint8 or uint16 sRGB pixels, row 0 on top, with the recipe as text inside."""
    write_png_rows(path, pixels.shape, pixels.dtype, [pixels], recipe)


def write_png_rows(
    path: Path,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    row_blocks: Iterable[np.ndarray],
    recipe: Json | None = None,
    transfer: str = "srgb",
) -> None:
    """Writes a PNG of `shape` (height, width, 3 or 4) block by block, so that the picture need not fit in memory.

    `row_blocks` yields arrays (rows, width, channels) of `dtype`, uint8 or uint16. `transfer` names the samples'
    transfer function: srgb, or pq, which is stated by a cICP chunk (PNG, third edition; ITU-T H.273). Pillow writes
    neither 16-bit color nor a picture in blocks. Source: PNG specification, W3C.
    """
    height, width, channels = shape
    dtype = np.dtype(dtype)
    assert dtype in (np.uint8, np.uint16) and channels in (3, 4) and height > 0 and width > 0, (dtype, shape)
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        file.write(PNG_SIGNATURE)
        color = {3: 2, 4: 6}[channels]
        _chunk(file, b"IHDR", struct.pack(">IIBBBBB", width, height, 8 * dtype.itemsize, color, 0, 0, 0))
        _chunk(file, *((b"cICP", CICP_PQ) if transfer == "pq" else (b"sRGB", b"\0")))
        if recipe is not None:
            _chunk(file, b"tEXt", b"Software\0Rayfold")
            text = zlib.compress(json.dumps(recipe).encode())
            _chunk(file, b"iTXt", RECIPE.encode() + b"\0\1\0\0\0" + text)
        digest = _new_digest(shape, dtype)
        _write_rows(file, row_blocks, (width, channels), dtype, digest)
        _chunk(file, b"tEXt", f"{DIGEST}\0{digest.hexdigest()}".encode())
        _chunk(file, b"IEND", b"")


def _write_rows(
    file: BinaryIO, row_blocks: Iterable[np.ndarray], row_shape: tuple[int, int], dtype: np.dtype, digest: "HASH"
) -> None:
    """Writes the IDAT chunks: rows under the Up filter (each byte minus the byte above), deflated; updates `digest`."""
    packer = zlib.compressobj(4)
    above = np.zeros((1, row_shape[0] * row_shape[1] * dtype.itemsize), "u1")
    for rows_block in row_blocks:
        assert (rows_block.shape[1:], rows_block.dtype) == (row_shape, dtype), (rows_block.shape, rows_block.dtype)
        rows = np.ascontiguousarray(rows_block, dtype.newbyteorder(">")).reshape(len(rows_block), -1).view("u1")
        digest.update(rows.data)
        filtered = np.empty((len(rows), rows.shape[1] + 1), "u1")
        filtered[:, 0] = 2  # the Up filter's number
        np.subtract(rows, np.concatenate([above, rows[:-1]]), out=filtered[:, 1:])
        above = rows[-1:]
        data = packer.compress(filtered.tobytes())
        if data:
            _chunk(file, b"IDAT", data)
    _chunk(file, b"IDAT", packer.flush())


def _chunk(file: BinaryIO, kind: bytes, data: bytes) -> None:
    """Writes a chunk, or several where one cannot hold the data: length, kind, data and checksum."""
    for start in range(0, max(len(data), 1), 1 << 30):  # a chunk's length has 31 bits
        part = data[start : start + (1 << 30)]
        file.write(struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part)))


def _new_digest(shape: tuple[int, ...], dtype: np.dtype) -> "HASH":
    """Starts a SHA-256 of samples with their shape (height, width, channels) and the bytes of a sample."""
    return sha256("{} {} {} {}\n".format(*shape, dtype.itemsize).encode())


def sample_digest(samples: np.ndarray) -> str:
    """Computes the digest that write_png() stores, of (height, width, channels) uint8 or uint16 samples."""
    digest = _new_digest(samples.shape, samples.dtype)
    digest.update(np.ascontiguousarray(samples, samples.dtype.newbyteorder(">")).data)
    return digest.hexdigest()


def read_digest(path: Path) -> str:
    """Reads the digest of the samples that Rayfold stored in a PNG or EXR file; "" if there is none."""
    return _stored(path, DIGEST, b"tEXt").decode("ascii", "replace")


def _stored(path: Path, key: str, kind: bytes) -> bytes:
    """The bytes under DIGEST or RECIPE in an EXR's header or a PNG's chunk of this kind; empty if there are none."""
    if path.suffix.lower() == ".exr":
        with _open_exr(path, header_only=True) as file:
            return str(file.header().get(key.replace(":", "_"), "")).encode()
    mark = f"{key}\0".encode()
    return next((data[len(mark) :] for data in _chunks(path, kind) if data.startswith(mark)), b"")


def read_samples(path: Path) -> np.ndarray:
    """Reads the unconverted samples of a PNG of at most MAX_OWN_PIXELS: (height, width, 3 or 4) uint8 or uint16.

    Pillow truncates 16-bit color to 8 bits, so 16-bit files are decoded here; only write_png()'s layout is supported.
    """
    with _open_image(path, MAX_OWN_PIXELS) as picture:
        if picture.format != "PNG":
            raise InputError(f"{path}: is a {picture.format} file; a PNG is wanted")
        width, height = picture.size
        header = next((data for data in _chunks(path, b"IHDR")), b"")
        if header[8:9] != b"\x10":  # not 16 bits a channel
            return np.asarray(picture if picture.mode in ("RGB", "RGBA") else picture.convert("RGBA"))
    channels = {2: 3, 6: 4}.get(header[9], 0)
    stride = 2 * channels * width
    data = b"".join(data for data in _chunks(path, b"IDAT"))
    try:
        rows = zlib.decompressobj().decompress(data, height * (stride + 1) + 1)
    except zlib.error as error:
        raise InputError(f"{path}: the image is damaged: {error}") from error
    filtered = np.frombuffer(rows, "u1")
    if not channels or header[12] or filtered.size != height * (stride + 1) or (filtered[:: stride + 1] != 2).any():
        raise InputError(f"{path}: its 16 bits a channel are not as Rayfold writes them")
    # Sums modulo 256 undo the Up filter.
    raw = np.cumsum(filtered.reshape(height, -1)[:, 1:], axis=0, dtype="u1")
    return raw.view(">u2").astype("u2").reshape(height, width, channels)


def is_picture(path: Path) -> bool:
    """True if a file begins as a picture that read_image() reads. InputError if it cannot be read."""
    with open_input(path) as file, reading(path):
        return file.read(len(PNG_SIGNATURE)).startswith(SIGNATURES)


def _chunks(path: Path, wanted: bytes) -> Iterator[bytes]:
    """Yields the contents of a PNG's chunks of one kind; raises InputError if a chunk is cut off or damaged."""
    with open_input(path) as file, reading(path):
        size = file_size(file)
        if file.read(8) != PNG_SIGNATURE:
            raise InputError(f"{path}: not a PNG file; only PNGs hold recipes, by which they are verified")
        for count in itertools.count():
            head = file.read(8)
            if not head:
                return
            if count == MAX_CHUNKS:
                raise InputError(f"{path}: the image is damaged: more than {MAX_CHUNKS} chunks")
            length, kind = struct.unpack(">I4s", head.ljust(8, b"\0"))
            if file.tell() + length + 4 > size:
                raise InputError(f"{path}: the image is damaged: it is cut off")
            if kind != wanted:
                file.seek(length + 4, os.SEEK_CUR)
                continue
            data = file.read(length)
            if file.read(4) != struct.pack(">I", zlib.crc32(kind + data)):
                named = f"a {kind.decode('latin-1')} chunk"
                raise InputError(f"{path}: the image is damaged: the checksum of {named} is wrong")
            yield data


def png_bytes(pixels: np.ndarray) -> bytes:
    """Encodes (height, width, 3 or 4) uint8 sRGB pixels as PNG, fast and without a recipe, for transient display."""
    return _encoded(pixels, "PNG", compress_level=1)


def draw_text(pixels: np.ndarray, at: tuple[int, int], text: str, color: tuple[int, int, int], height: int) -> None:
    """Draws a line of text into (height, width, 3) uint8 pixels, its upper left corner `at` (x, y)."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.fromarray(pixels)
    ImageDraw.Draw(picture).text(at, text, color, ImageFont.load_default(height))
    pixels[:] = np.asarray(picture)


def encode_jpeg(pixels: np.ndarray, quality: int = 85) -> bytes:
    """Encodes (height, width, 3) uint8 sRGB pixels as JPEG, for streaming to a browser."""
    assert pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[2] == 3, (pixels.dtype, pixels.shape)
    return _encoded(pixels, "JPEG", quality=quality, subsampling=0)


def _encoded(pixels: np.ndarray, kind: str, **options: object) -> bytes:
    """The bytes of an image file that Pillow writes with these options."""
    from PIL import Image  # imported here: the import is slow, and most exports do not use it

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


def holds_recipe(path: Path) -> bool:
    """True for a PNG that Rayfold has drawn; its recipe may be damaged."""
    is_png = path.suffix.lower() == ".png"
    return is_png and any(data.startswith(RECIPE.encode() + b"\0") for data in _chunks(path, b"iTXt"))


def read_recipe(path: Path) -> Json:
    """Reads the recipe in a PNG or EXR file that Rayfold wrote; InputError if there is none or it is damaged."""
    found = _stored(path, RECIPE, b"iTXt")
    if not found:
        raise InputError(f"{path}: holds no recipe; only pictures that Rayfold wrote can be opened as a scene")
    found = bytes(4) + found if path.suffix.lower() == ".exr" else found  # the form of an iTXt chunk, not compressed
    try:
        text = found[2:].split(b"\0", 2)[-1]  # behind a flag, a method, the language and the translated key
        if found[:1] == b"\1":
            text = zlib.decompressobj().decompress(text, MAX_RECIPE_BYTES + 1)
        if len(text) > MAX_RECIPE_BYTES:
            raise ValueError(f"larger than the {MAX_RECIPE_BYTES >> 20} MiB allowed")
        recipe = parse_json(text)
    except (ValueError, zlib.error) as error:
        raise InputError(f"{path}: its recipe is damaged: {error}") from error
    if not isinstance(recipe, dict):
        raise InputError(f"{path}: its recipe is damaged: not a table")
    return recipe


def read_image(path: Path, max_pixels: int = MAX_LINEAR_PIXELS) -> np.ndarray:
    """Reads an image file as linear float32 (height, width, 4): 8-bit samples are decoded as sRGB, EXR is unchanged."""
    if Path(path).suffix.lower() == ".exr":
        return read_exr(path)
    return srgb_to_linear(read_pixels(path, max_pixels), alpha=True)


def read_pixels(
    path: Path | str, max_pixels: int = MAX_PIXELS, data: bytes | None = None, size: tuple[int, int] | None = None
) -> np.ndarray:
    """Reads an image file as (height, width, 4) uint8 without color conversion; raises InputError.

    If `data`, the content of a file, is given, `path` serves only as its name in messages. An image of another `size`
    (width, height) is refused before it is decoded.
    """
    with _open_image(path, max_pixels, data) as picture:
        if size not in (None, picture.size):
            found, wanted = (f"{width} x {height}" for width, height in (picture.size, size))
            raise InputError(f"{path}: {OTHER_SIZE}: it has {found} pixels, not {wanted}")
        return np.asarray(picture.convert("RGBA"))


@contextlib.contextmanager
def _open_image(path: Path | str, max_pixels: int = MAX_PIXELS, data: bytes | None = None) -> Iterator["Image"]:
    """Opens an image by Pillow; errors of Pillow's parsers, here and in the block, are raised as InputError."""
    from PIL import Image, ImageFile, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # the size is checked here, before a pixel is decoded
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    warnings.filterwarnings("ignore", module=r"PIL\.")  # about tags
    try:
        with (
            open_input(path) if data is None else io.BytesIO(data) as file,
            Image.open(file, formats=IMAGE_FORMATS) as picture,
        ):
            width, height = picture.size
            if width * height > max_pixels:
                raise InputError(f"{path}: {width} x {height} pixels are more than the {max_pixels} allowed")
            check_memory(16 * width * height, f"{path}: {width} x {height} pixels")
            yield picture
    except UnidentifiedImageError as error:
        raise InputError(f"{path}: not an image that can be read; allowed are {', '.join(IMAGE_FORMATS)}") from error
    except (UserError, AssertionError, MemoryError):
        raise
    except Exception as error:  # Pillow documents no closed set
        raise InputError(f"{path}: the image is damaged: {error or type(error).__name__}") from error


def encode_srgb(linear: np.ndarray) -> np.ndarray:
    """The transfer function of sRGB (IEC 61966-2-1) of values from 0 to 1."""
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def decode_srgb(encoded: np.ndarray) -> np.ndarray:
    """The inverse of encode_srgb()."""
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def linear_to_srgb(linear: np.ndarray, dtype: DTypeLike = "u1") -> np.ndarray:
    """Encodes linear values as uint8 or uint16 sRGB: clipped to [0, 1], rounded; NaN becomes 0."""
    x = np.clip(np.nan_to_num(np.asarray(linear, "f4"), nan=0.0, posinf=1.0, neginf=0.0), 0, 1)
    return (encode_srgb(x) * np.iinfo(dtype).max + 0.5).astype(dtype)


def srgb_to_linear(pixels: np.ndarray, alpha: bool = False) -> np.ndarray:
    """Decodes uint8 sRGB values to linear float32; with `alpha` the fourth channel is scaled without the sRGB curve."""
    linear: np.ndarray = decode_srgb(np.arange(256, dtype="f8") / 255).astype("f4")[pixels]
    if alpha:
        linear[..., 3] = pixels[..., 3] / np.float32(255)
    return linear


def write_gif(path: Path, frames: list[Path], fps: int) -> None:
    """Writes pictures' files as a GIF: one palette, by median cut and k-means, and Floyd-Steinberg dithering."""
    from PIL import Image

    chosen = [read_pixels(frame)[..., :3].reshape(-1, 3) for frame in frames[:: -(-len(frames) // PALETTE_FRAMES)]]
    stride = max(1, sum(map(len, chosen)) // PALETTE_PIXELS)
    colors = np.concatenate([pixels[::stride] for pixels in chosen])
    palette = Image.fromarray(colors[None]).quantize(256, Image.Quantize.MEDIANCUT, kmeans=1)
    shown = (Image.fromarray(read_pixels(frame)[..., :3]).quantize(palette=palette) for frame in frames)
    milliseconds = [10 * round(100 * number / fps) for number in range(len(frames) + 1)]  # GIF counts hundredths
    mark = {"comment": b"Rayfold"}  # which is_own() of system/outputs.py looks for
    durations = np.diff(milliseconds).tolist()
    next(shown).save(path, "GIF", save_all=True, append_images=shown, duration=durations, loop=0, **mark)


def write_exr(path: Path, layers: dict[str, np.ndarray], recipe: Json | None = None, **texts: str) -> None:
    """Writes an EXR file of linear layers by name, each (height, width) or (height, width, 3 or 4).

    uint32 layers keep their type; all others are stored as float32. The header gets the texts. Raises UserError or
    DiskFullError.
    """
    OpenEXR = _openexr()
    check_memory(4 * sum(layer.size for layer in layers.values()), f"{path}: the {len(layers)} layers that it gets")
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage, **texts}
    if recipe is not None:
        header["rayfold_recipe"] = json.dumps(recipe)
    channels = {
        name: np.ascontiguousarray(layer, "u4" if layer.dtype == np.uint32 else "f4") for name, layer in layers.items()
    }
    digest = sha256()
    for name, layer in sorted(channels.items()):
        digest.update(f"{name} {layer.shape} {layer.dtype.str}\n".encode())
        digest.update(layer.data)
    header["rayfold_digest"] = digest.hexdigest()
    with atomic_write(path) as temporary, OpenEXR.File(header, channels) as file:
        try:
            file.write(str(temporary))
        except RuntimeError as error:  # this error has no errno, and not always a reason
            raise OSError(str(error)) from error


def read_exr(path: Path, max_pixels: int = MAX_LINEAR_PIXELS) -> np.ndarray:
    """Reads the RGB or RGBA layer of an EXR file as linear float32 (height, width, 4); a missing alpha is 1."""
    with _open_exr(path, header_only=True) as file:
        header = file.header()
        low, high = np.asarray(header["dataWindow"], "i8")
        shape = [int(n) for n in high - low + 1]
        pixels, values = math.prod(shape), math.prod(shape) * len(header["channels"])
    if pixels > max_pixels or values > MAX_EXR_VALUES:  # before a pixel is decoded
        size = f"{shape[0]} x {shape[1]} pixels of {values // max(pixels, 1)} channels"
        raise InputError(f"{path}: {size} are more than the {max_pixels} pixels or {MAX_EXR_VALUES} values allowed")
    # The file's channels, the picture made of them, and what callers make of it.
    check_memory(8 * values + 32 * pixels, f"{path}: {shape[0]} x {shape[1]} pixels")
    with _open_exr(path) as file:
        channels = {name: np.asarray(channel.pixels) for name, channel in file.channels().items()}
    found = channels.get("RGBA", channels.get("RGB"))
    if found is None:
        raise InputError(f"{path}: has the channels {', '.join(channels)}; R, G and B are wanted")
    with np.errstate(over="ignore"):  # doubles may overflow to infinity, which callers check for
        if found.shape[2] == 4:
            return np.ascontiguousarray(found, "f4")
        out = np.ones((*found.shape[:2], 4), "f4")
        out[..., :3] = found
        return out


@contextlib.contextmanager
def _open_exr(path: Path, header_only: bool = False) -> Iterator["OpenEXRFile"]:
    """Opens an EXR file; errors of OpenEXR, here and in the block, are raised as InputError."""
    OpenEXR = _openexr()
    open_input(path).close()  # raises unless it is a regular file; the library then opens the path itself
    try:
        with OpenEXR.File(str(path), header_only=header_only) as file:
            yield file
    except (RuntimeError, ValueError, TypeError, KeyError, OSError) as error:
        raise InputError(f"{path}: not an EXR file that can be read: {error}") from error


def _openexr() -> ModuleType:
    """The package OpenEXR, which is optional."""
    return import_optional("OpenEXR", f"EXR files need the package openexr: {pip_install('openexr')}")
