"""The Laplacian filter of images on devices, by four kernels of shaders/numerics/laplacian.cu.

For pictures/laplacian.py. After the thesis "Making parallel programs fast on CUDA", chapter 4. The kernels differ in
the memory that holds the pixels: naive (global), shared_tiles (local) and register_rows (registers) are its lesson on
GPUs; cpu_rows is for CPUs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from renderer.errors import UserError
from renderer.gpu import Buffer, Device
from renderer.records import dataclass

# The values of pixels outside the image. clamp: OpenCV's REPLICATE and, one pixel outside, REFLECT. reflect: OpenCV's
# REFLECT_101 and NumPy's "reflect", which do not repeat the pixel at the edge.
BORDERS = {"clamp": 0, "reflect": 1, "wrap": 2, "zero": 3}
METHODS = ("auto", "naive", "shared_tiles", "register_rows", "cpu_rows")
ROWS, TILE = 4, (64, 16)  # rows per thread of register_rows; (elements of a row, rows) of a tile
GROUP = 256


def bind_laplacian(
    device: Device, image: Buffer, out: Buffer, neighbors: int = 8, border: str = "clamp", method: str = "auto"
) -> Callable[[], None]:
    """The launch that fills `out` with the Laplacian of `image`.

    The Laplacian is the sum of the 4 or 8 `neighbors` minus their number times the pixel. `image` and `out` are
    (height, width) or (height, width, channels), float32 or uint8; results in uint8 are clamped to 0..255. `method`
    "auto" is cpu_rows on CPUs, else register_rows. Images of a few pixels and uint8 images of more than four channels
    are filtered by naive instead of register_rows. UserError for other shapes, dtypes and choices.
    """
    _check(image, out, neighbors, border, method)
    height, width = image.shape[:2]
    channels = image.shape[2] if len(image.shape) == 3 else 1
    if 0 in (height, width, channels):
        return lambda: None
    size, length = image.dtype.itemsize, width * channels
    if method == "auto":
        method = "cpu_rows" if device.properties.scalar_threads else "register_rows"
    plan = _RowsPlan.of(length, height, channels, size) if method == "register_rows" else None
    constants: dict[str, Any] = {"ELEMENT": "float" if size == 4 else "uchar", "BYTES": int(size == 1)}
    constants |= {"CHANNELS": channels, "NEIGHBORS": neighbors, "BORDER": BORDERS[border]}
    arguments: list[Any] = []
    group, threads = GROUP, length * height
    if plan:
        constants |= {"ROWS": ROWS, "ROW_SKEW": plan.skew, "HALO_WORDS": plan.halo}
        edges = -(-plan.edges // group) * group
        threads = edges + plan.threads
        arguments = [np.uint32(plan.head), np.uint64(plan.tail), np.uint32(edges)]
    elif method == "shared_tiles":
        constants |= {"TILE_COLUMNS": TILE[0], "TILE_ROWS": TILE[1]}
        threads = -(-length // TILE[0]) * -(-height // TILE[1]) * group
    elif method == "cpu_rows":
        rows_per_item = max(1, -(-height // (8 * device.properties.compute_units)))
        group, threads = 1, -(-height // rows_per_item)
        arguments = [np.uint32(rows_per_item), np.int32(channels)]
    else:
        method = "naive"
    kernel = device.kernel("numerics/laplacian.cu", method, group_size=group, **constants)
    return kernel.bind_launch(threads, image, out, np.uint32(width), np.uint32(height), *arguments)


@dataclass(frozen=True)
class _RowsPlan:
    """Constants and sizes of a launch of register_rows; numerics/laplacian.cu explains them above PITCH_WORDS."""

    skew: int  # elements by which a row is longer (or, if negative, shorter) than a whole number of 16-byte words
    halo: int  # words read on each side of a word: they contain all neighbors
    head: int  # elements before `head` and from `tail` on are computed one per thread
    tail: int
    edges: int  # elements computed one per thread: head, tail, and the left and right border
    threads: int  # threads that compute ROWS words each

    @classmethod
    def of(cls, length: int, height: int, channels: int, size: int) -> "_RowsPlan | None":
        """The plan for `height` rows of `length` elements; None for small images and uint8 of over four channels."""
        word_length = 16 // size
        rest = length % word_length
        skew = rest if rest <= word_length // 2 else rest - word_length
        halo = -(-(abs(skew) + channels) // word_length)
        pitch = (length - skew) // word_length
        # Words whose upper and lower words exist: `first` to `end`.
        first, end = pitch + halo, length * height // word_length - pitch - halo
        head, tail = first * word_length, end * word_length
        if size == 1 and channels > 4 or length < 2 * (word_length + channels) or head >= tail:
            return None
        edges = head + length * height - tail + 2 * channels * max(0, height - 2)
        threads = pitch * -(-(end - first) // (pitch * ROWS))
        return cls(skew, halo, head, tail, edges, threads)


def _check(image: Buffer, out: Buffer, neighbors: int, border: str, method: str) -> None:
    """Raises UserError for shapes, types and choices that the filter does not take."""
    if image.shape != out.shape or image.dtype != out.dtype or len(image.shape) not in (2, 3):
        operands = f"{image.dtype} {image.shape} into {out.dtype} {out.shape}"
        raise UserError(
            f"laplacian of {operands}: both must be (height, width) or (height, width, channels), of one dtype"
        )
    if image.dtype not in (np.float32, np.uint8):
        raise UserError(f"laplacian of {image.dtype}: allowed are float32 and uint8")
    choices: tuple[tuple[str, Any, Any], ...] = (
        ("neighbors", neighbors, (4, 8)), ("border", border, BORDERS), ("method", method, METHODS),
    )  # fmt: skip
    for name, value, allowed in choices:
        if value not in allowed:
            raise UserError(f"{name} is {value!r}; allowed are {', '.join(map(str, allowed))}")
