"""The film of a picture: sample ranges of RANGE_SAMPLES samples, each with its own mean, merged in their order.

So a picture has the same bits whether one device draws all ranges or many devices draw some each. The kernels of
shaders/raytracing/film.h accumulate a range, shaders/raytracing/merge_films.cu merges two.
"""

from typing import Any

import numpy as np

from renderer.gpu.device import Buffer, Device, Kernel

RANGE_SAMPLES = 64
MIN_SAMPLES = 32  # of a pixel before its error is estimated; the same in film.h
MIN_LUMINANCE = 0.01  # the error of darker pixels is relative to this; the same in film.h
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def range_count(samples: int) -> int:
    """The ranges that a picture of `samples` samples has; the last may be shorter."""
    return -(-samples // RANGE_SAMPLES)


def range_samples(index: int, samples: int) -> range:
    """The sample indices of a range of a picture of `samples` samples."""
    return range(index * RANGE_SAMPLES, min((index + 1) * RANGE_SAMPLES, samples))


def largest_error(mean: np.ndarray, m2: np.ndarray, samples: int) -> float:
    """The largest standard error of a pixel's luminance over it, of film_mean and film_m2 (film.h) after `samples`."""
    taken = np.where(m2[..., 3] > 0, m2[..., 3], samples)[..., None].astype("f8")
    error = np.sqrt(np.maximum(m2[..., :3], 0) / (taken * (taken - 1))) @ LUMINANCE
    return float((error / np.maximum(mean[..., :3] @ LUMINANCE, MIN_LUMINANCE)).max())


class Film:
    """What was drawn of a picture so far.

    `current` are the buffers that kernels add a range's samples to: the means (height, width, 4) and, if the settings
    keep the variance, the sums of squared deviations. `merged` are those of all samples. `sample` holds on the device
    the sample that is drawn, and the first of its range (begin_sample.h).
    """

    def __init__(self, device: Device, current: tuple[Buffer, ...], sample: Buffer):
        self._device, self.current, self._sample = device, current, sample
        self._total: tuple[Buffer, ...] = ()  # of the ranges before the current one
        self._spare: tuple[Buffer, ...] = ()
        self.merged = current
        self._kernels: dict[int, Kernel] = {}  # by whether they read the numbers of samples from memory

    def reset(self) -> None:
        """The next sample is the first of a picture."""
        self.merged = self.current

    def next_range(self) -> None:
        """The next sample is the first of another range. The buffers stay what they are: graphs hold them."""
        if not self._total:
            self._total = tuple(self._device.buffer(buffer.shape) for buffer in self.current)
        for total, merged in zip(self._total, self.merged, strict=True):
            total.copy_from(merged)

    def merge(self, previous: int, count: int) -> None:
        """Merges the current range's `count` samples so far with the `previous` samples of the ranges before it."""
        if previous:
            self._merge(previous, count)

    def merge_sample(self) -> None:
        """Merges as merge() does behind each sample, of a range behind the first; it can be recorded in a graph."""
        self._merge(self._sample)

    def _merge(self, *counts: Any) -> None:
        if not self._spare:
            self._spare = tuple(self._device.buffer(buffer.shape) for buffer in self.current)
        in_memory = len(counts) == 1
        if in_memory not in self._kernels:
            constants = dict(STRICT=1, M2=len(self.current) - 1, SAMPLE_IN_MEMORY=int(in_memory))
            kernel = self._device.kernel("raytracing/merge_films.cu", "merge_films", group_size=128, **constants)
            self._kernels[in_memory] = kernel
        pixels = self.current[0].shape[0] * self.current[0].shape[1]
        buffers = [b for three in zip(self._total, self.current, self._spare, strict=True) for b in three]
        self._kernels[in_memory](pixels, pixels, *counts, *buffers)
        self.merged = self._spare

    def read_range(self) -> tuple[np.ndarray, ...]:
        """The current range: means and, if kept, sums of squared deviations, (height, width, 3) float32."""
        return tuple(np.ascontiguousarray(buffer.read()[..., :3]) for buffer in self.current)

    def write_range(self, arrays: tuple[np.ndarray, ...]) -> None:
        """Replaces the current range by what read_range returned, on this or another device."""
        for buffer, array, fourth in zip(self.current, arrays, (1.0, 0.0), strict=False):
            pixels = np.full(buffer.shape, fourth, "f4")
            pixels[..., :3] = array
            buffer.write(pixels)
