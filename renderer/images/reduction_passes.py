"""The passes of a texture reduction as steps: the texture of each, its size, bytes and time, and the value so far."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from renderer.formats.images import linear_to_srgb
from renderer.gpu.gl import Texture
from renderer.images.algorithm_view import AlgorithmView, StepPicture
from renderer.numerics.texture_reduction import Reduction

FOLDS: dict[str, Callable] = {"sum": np.sum, "min": np.fmin.reduce, "max": np.fmax.reduce}


def reduction_view(reduction: Reduction, operation: str, image: Texture, size: tuple[int, int]) -> AlgorithmView:
    """The passes of a reduction of an image of opaque pixels, run one by one; step 0 is the image.

    Pictures have `size` (width, height). Texels of a sum are shown as means: divided by their alpha, which counts
    pixels.
    """
    gl = reduction.gl
    for _ in reduction.passes(operation, image):  # compilers are not timed
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
    """Red, green and blue (height, width, 3) of a level: of a sum the means."""
    texels = texels.astype("f8")
    return texels[..., :3] / np.maximum(texels[..., 3:], 1e-30) if operation == "sum" else texels[..., :3]


def pass_row(operation: str, texels: np.ndarray, seconds: float) -> dict[str, Any]:
    """The numbers of a pass: its target, the milliseconds, and the result that its texels would give."""
    height, width = texels.shape[:2]
    total = FOLDS[operation](texels.reshape(-1, texels.shape[-1]).astype("f8"), axis=0)
    value = shown_texels(operation, total[None, None])[0, 0]
    names = zip(("red", "green", "blue"), value.tolist(), strict=True)
    return {"size": f"{width} x {height}", "bytes": texels.nbytes, "ms": 1e3 * seconds} | {
        name: round(number, 7) for name, number in names
    }


def magnified(texels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Texels (height, width, 3) as the largest picture of square-edged texels in the middle of `size`; 0 around it."""
    height, width = texels.shape[:2]
    scale = min(size[0] / width, size[1] / height)
    w, h = max(1, int(width * scale)), max(1, int(height * scale))
    out = np.zeros((size[1], size[0], 3))
    top, left = (size[1] - h) // 2, (size[0] - w) // 2
    rows, columns = np.arange(h) * height // h, np.arange(w) * width // w
    out[top : top + h, left : left + w] = texels[rows[:, None], columns]
    return out
