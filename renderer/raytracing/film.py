"""The film of a ray-traced picture: the mean and, if needed, the variance of every pixel's samples.

The samples are split into ranges of RANGE_SAMPLES. Each range is accumulated separately, and the ranges are merged in a
fixed order, so a picture has the same bits whether one device draws all ranges or several devices share them. The
functions of shaders/raytracing/film.h accumulate a range; shaders/raytracing/merge_films.cu merges two films.
pictures/raytrace.py owns the Film; the render farm exchanges ranges by read_range() and write_range().
"""

import numpy as np

from renderer.gpu.device import Buffer, Device, Kernel

RANGE_SAMPLES = 64
MIN_SAMPLES = 32  # samples of a pixel before its error is estimated; the same in film.h
MIN_LUMINANCE = 0.01  # the error of darker pixels is relative to this luminance; the same in film.h
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def range_count(samples: int) -> int:
    """Returns the number of ranges of a picture of `samples` samples; the last range may be shorter."""
    return -(-samples // RANGE_SAMPLES)


def range_samples(index: int, samples: int) -> range:
    """Returns the sample indices of range number `index` of a picture of `samples` samples."""
    return range(index * RANGE_SAMPLES, min((index + 1) * RANGE_SAMPLES, samples))


def largest_error(mean: np.ndarray, m2: np.ndarray, samples: int) -> float:
    """Returns the largest relative standard error of a pixel's luminance after `samples` samples.

    `mean` and `m2` (height, width, 4) are film_mean and film_m2 of film.h: the mean and the sum of squared deviations.
    m2[..., 3] is the number of samples of a pixel that reached the noise threshold, else 0.
    """
    taken = np.where(m2[..., 3] > 0, m2[..., 3], samples)[..., None].astype("f8")
    error = np.sqrt(np.maximum(m2[..., :3], 0) / (taken * (taken - 1))) @ LUMINANCE
    return float((error / np.maximum(mean[..., :3] @ LUMINANCE, MIN_LUMINANCE)).max())


class Film:
    """The accumulated samples of a picture.

    `current` are the buffers to which kernels add the samples of the current range: the means (height, width, 4) and,
    if the settings keep the variance, the sums of squared deviations (height, width, 4). `merged` holds the same
    quantities for all samples so far. `sample` is a device buffer of two numbers: the current sample, and the first
    sample of its range (begin_sample.h).
    """

    def __init__(self, device: Device, current: tuple[Buffer, ...], sample: Buffer):
        self._device, self.current, self._sample = device, current, sample
        self._total: tuple[Buffer, ...] = ()  # merged film of all ranges before the current one
        self._spare: tuple[Buffer, ...] = ()  # receives the merged film
        self.merged = current
        self._kernels: dict[int, Kernel] = {}  # by: sample counts are read from device memory

    def reset(self) -> None:
        """Begins a new picture: `merged` is the first range alone."""
        self.merged = self.current

    def next_range(self) -> None:
        """Saves the merged film and begins the next range in the same `current` buffers, to which graphs refer."""
        if not self._total:
            self._total = tuple(self._device.buffer(buffer.shape) for buffer in self.current)
        for total, merged in zip(self._total, self.merged, strict=True):
            total.copy_from(merged)

    def merge(self, previous: int, count: int) -> None:
        """Merges the `count` samples of the current range with the `previous` samples of the ranges before it."""
        if previous:
            self._merge(previous, count)

    def merge_sample(self) -> None:
        """Does what merge() does, but reads both counts from device memory, so that a recorded graph can replay it."""
        self._merge(self._sample)

    def _merge(self, *counts: object) -> None:
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
        """Reads the current range: means and, if kept, sums of squared deviations, each (height, width, 3) float32."""
        return tuple(np.ascontiguousarray(buffer.read()[..., :3]) for buffer in self.current)

    def write_range(self, arrays: tuple[np.ndarray, ...]) -> None:
        """Replaces the current range by arrays that read_range() returned here or on another device."""
        for buffer, array, fourth in zip(self.current, arrays, (1.0, 0.0), strict=False):
            pixels = np.full(buffer.shape, fourth, "f4")
            pixels[..., :3] = array
            buffer.write(pixels)
