"""Views of the passes of a texture reduction: each pass's texture, size, bytes, time and value.

Called by renderer/pictures/reduction.py; the window and lessons show the AlgorithmView.
"""

import time
from collections.abc import Callable

import numpy as np

from renderer.formats.images import linear_to_srgb
from renderer.gpu.gl import Texture
from renderer.images.algorithm_view import AlgorithmView, StepPicture, StepRow
from renderer.numerics.texture_reduction import Reduction

FOLDS: dict[str, Callable[..., np.ndarray]] = {"sum": np.sum, "min": np.fmin.reduce, "max": np.fmax.reduce}


def reduction_view(reduction: Reduction, operation: str, image: Texture, size: tuple[int, int]) -> AlgorithmView:
    """Runs the passes of a reduction of an opaque image one by one; returns one step a pass, after step 0, the image.

    Pictures of the steps have `size` (width, height). A texel of a sum is shown as a mean: divided by its alpha, which
    counts pixels.
    """
    gl = reduction.gl
    for _ in reduction.passes(operation, image):  # warm-up: the times below exclude compilation
        gl.finish()
    gl.finish()
    textures, times = [image.read()], [0.0]
    started = time.perf_counter()
    for target in reduction.passes(operation, image):
        gl.finish()
        times.append(time.perf_counter() - started)
        textures.append(target.read())
        started = time.perf_counter()
    rows = tuple(pass_row(operation, texels, seconds) for texels, seconds in zip(textures, times, strict=True))

    def step(index: int) -> StepPicture:
        texels = shown_texels(operation, textures[index])
        values = magnified(texels, size)
        block = reduction.block
        meaning = f"each texel has the {operation} of {block} x {block} texels before" if index else "the image"
        height, width = texels.shape[:2]
        return StepPicture(
            linear_to_srgb(np.clip(np.nan_to_num(values), 0, 1)), values, f"{width} x {height} texels; {meaning}"
        )

    return AlgorithmView("pass", rows, step)


def shown_texels(operation: str, texels: np.ndarray) -> np.ndarray:
    """Returns red, green and blue (height, width, 3) of a level; a level of a sum as means."""
    texels = texels.astype("f8")
    return texels[..., :3] / np.maximum(texels[..., 3:], 1e-30) if operation == "sum" else texels[..., :3]


def pass_row(operation: str, texels: np.ndarray, seconds: float) -> StepRow:
    """Returns the numbers of a pass: size, bytes, milliseconds, and the final color computed from its texels."""
    height, width = texels.shape[:2]
    total = FOLDS[operation](texels.reshape(-1, texels.shape[-1]).astype("f8"), axis=0)
    value = shown_texels(operation, total[None, None])[0, 0]
    red, green, blue = (round(number, 7) for number in value.tolist())
    size = f"{width} x {height}"
    return {"size": size, "bytes": texels.nbytes, "ms": 1e3 * seconds, "red": red, "green": green, "blue": blue}


def magnified(texels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Scales texels (height, width, 3) by nearest neighbor to fit centered into `size`, black around them."""
    height, width = texels.shape[:2]
    scale = min(size[0] / width, size[1] / height)
    w, h = max(1, int(width * scale)), max(1, int(height * scale))
    out = np.zeros((size[1], size[0], 3))
    top, left = (size[1] - h) // 2, (size[0] - w) // 2
    rows, columns = np.arange(h) * height // h, np.arange(w) * width // w
    out[top : top + h, left : left + w] = texels[rows[:, None], columns]
    return out
