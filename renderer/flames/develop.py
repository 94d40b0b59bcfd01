"""From a flame's sums to its picture on the device: log-density, density estimation, spatial filter, tone curve."""

import numpy as np

from renderer.flames.chaos import Chaos
from renderer.flames.filters import gutter, spatial_filter
from renderer.flames.genome import Flame
from renderer.gpu import Device
from renderer.image import linear_of_srgb


class Development:
    """Develops the sums of a Chaos over a window into linear pixels of which sRGB rounding makes flam3's 8-bit
    values.
    """

    def __init__(self, device: Device):
        self.device = device
        self._expose = device.kernel("develop.cu", "expose", group=64, STRICT=1, SUMS=1)
        self._finish = device.kernel("develop.cu", "finish", group=64, STRICT=1, SUMS=1)
        self._linear_of = device.buffer(256).write(linear_of_srgb(np.arange(256)))
        self._buffers: tuple = ()

    def __call__(
        self,
        chaos: Chaos,
        flame: Flame,
        pixels_a_unit: float,
        size,
        parts: int = 1,
        temporal_weight: float = 1.0,
        transparent=False,
    ):
        """The (height, width, 4) picture; `size` is that of the window in pixels."""
        window, (width, height) = chaos.window, size
        kernel = spatial_filter(flame)
        _, offset = gutter(flame, len(kernel))
        if (
            not self._buffers
            or self._buffers[0].shape[0] != window.cells
            or self._buffers[1].shape[:2] != (height, width)
        ):
            self._buffers = ()
            self._buffers = (self.device.buffer((window.cells, 4)), self.device.buffer((height, width, 4)))
        exposed, picture = self._buffers
        samples = chaos.samples * parts
        area = (flame.oversample * pixels_a_unit) ** 2 / (255.0 * temporal_weight)
        brightness = flame.brightness * 255 * 268 / 256
        self._expose(
            window.cells,
            chaos.sums,
            exposed,
            window.cells,
            chaos.bad_total,
            np.uint64(max(samples, 1)),
            area,
            brightness,
        )
        taps = self.device.buffer(kernel.shape).write(kernel)
        self._finish(
            width * height, exposed, picture, taps, self._linear_of, window.columns, width, height, 0, flame.oversample,
            len(kernel), offset, 1.0 / flame.gamma, flame.gamma_threshold, flame.vibrancy, flame.highlight_power,
            *(float(c) for c in flame.background), int(transparent),
        )  # fmt: skip
        return picture
