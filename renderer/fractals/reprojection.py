"""Frames of a zoom that are resampled from key pictures of fixed heights, one an octave.

A key picture holds, for each sample, what its color depends on, so that a frame colors exact samples: distances become
frame pixels before they are shaded. A frame of height h reads the key pictures of the two powers of 2 around h, and no
other, so that it does not depend on the frames drawn before it.
"""

import math
from decimal import Decimal

import numpy as np

from renderer.fractals.deep_zoom import GROUP_SIZE, KernelPass, Rectangle, to_binary
from renderer.fractals.reference import Point
from renderer.fractals.settings import PALETTES, Settings
from renderer.gpu import Buffer, Device
from renderer.records import replace
from renderer.system.trust import check_memory

# The kernel's argument; pairs are of the coarse and of the fine key picture, or of x and y.
RECORD = np.dtype([
    ("corner", "f8", 2),  # center of the tile's first pixel, in pixels from the picture's center
    ("cells", "f8", 2),  # width and height of a key picture, in samples
    ("cells_per_pixel", "f8", 2),
    ("drawn", "i4", 4),  # rectangle of the key pictures that is drawn: left, top, width, height
    ("pixels", "f4", 2),  # pixels of the frame in a key picture's height
    ("size", "i4", 2),  # of the tile
    ("color_density", "f4"), ("color_offset", "f4"), ("relief", "f4"), ("padding", "i4"),
])  # fmt: skip


class Reprojection:
    """Draws frames as KernelPass does, but all samples at once; keeps the two key pictures of the latest frame."""

    def __init__(self, device: Device) -> None:
        """Raises UnavailableError for a device without float64."""
        self.device, self.arithmetic = device, KernelPass(device).arithmetic  # KernelPass checks the device
        self._frame: Buffer
        self._keys: dict[object, Buffer] = {}

    def begin(
        self, settings: Settings, size: tuple[int, int], tile: Rectangle, julia_c: Point, deadline: float = math.inf
    ) -> None:
        """Draw a tile of the picture of `size`, and its key pictures; `deadline`: see reference_orbit()."""
        mantissa, exponent = to_binary(settings.view.height)
        level = exponent + (mantissa > 1)  # 2^level is the least power of 2 that is not below the frame's height
        side, record = samples_per_side(settings), np.zeros((), RECORD)
        cells, drawn = (side * size[0], side * size[1]), key_rectangle(size, tile, side)
        views = [replace(settings.view, height=Decimal(2) ** each) for each in (level, level - 1)]
        # the same key pictures for all colors: only the coloring decides what they hold
        plain = replace(settings, palette="gray", color_density=1.0, color_offset=0.0, relief=0.0)
        # the arguments of KernelPass.begin() for the coarse and for the fine key picture
        wanted = [(replace(plain, view=view), cells, drawn, julia_c) for view in views]
        self._keys = {key: buffer for key, buffer in self._keys.items() if key in wanted}
        for key in wanted:
            if key not in self._keys:
                # two key pictures of 16 bytes a sample
                check_memory(32 * drawn[2] * drawn[3], "settings: reproject: key pictures")
                kernels = KernelPass(self.device, is_key=True)
                kernels.begin(*key, deadline)
                self._keys[key] = kernels.add_sample(cells, drawn, 0, (0.0, 0.0))
                self.arithmetic = f"{kernels.arithmetic}, from key pictures"
        scale = mantissa * 2.0 ** (exponent - level) * np.array([1, 2])  # the frame's height in a key's heights
        record["corner"] = [tile[k] + 0.5 - size[k] / 2 for k in (0, 1)]
        record["cells"], record["cells_per_pixel"], record["pixels"] = cells, scale * side, size[1] / scale
        record["drawn"], record["size"] = drawn, tile[2:]
        for name in ("color_density", "color_offset", "relief"):
            record[name] = getattr(settings, name)
        self._frame = self.device.buffer((tile[3], tile[2], 4))
        constants = dict(PALETTE=PALETTES[settings.palette], Reprojection=RECORD)
        kernel = self.device.kernel("fractals/reproject.cu", "draw_reprojected", GROUP_SIZE, **constants)
        kernel(tile[2] * tile[3], self._frame, *(self._keys[key] for key in wanted), record[()])

    def add_sample(self, size: tuple[int, int], tile: Rectangle, index: int, jitter: tuple[float, ...]) -> Buffer:
        """Returns the frame: begin() has drawn all of its samples."""
        return self._frame


def samples_per_side(settings: Settings) -> int:
    """Samples along the side of a pixel of a key picture."""
    return math.isqrt(settings.samples - 1) + 1


def key_rectangle(size: tuple[int, int], tile: Rectangle, side: int) -> Rectangle:
    """The samples of key pictures that a tile needs.

    The frame's height is 0.5 to 1 of the coarse key picture's and 1 to 2 of the fine one's, so a point is half to twice
    as far from the center as in the frame.
    """
    ends = []  # for x and y: first and last sample, from the left or the top of the key picture
    for k in (0, 1):
        low, high = tile[k] - size[k] / 2, tile[k] + tile[k + 2] - size[k] / 2
        beyond = min(low / 2, 2 * low) * side - 1, max(high / 2, 2 * high) * side + 1  # rounding may reach one more
        ends.append([min(max(v + size[k] * side / 2, 0), size[k] * side) for v in beyond])
    (left, right), (top, bottom) = ((math.floor(a), math.ceil(b)) for a, b in ends)
    return left, top, right - left, bottom - top
