"""The film of a ray-traced picture: the mean and, if needed, the variance of every pixel's samples.

The samples are split into ranges of RANGE_SAMPLES. Each range is accumulated separately, and the ranges are merged in a
fixed order, so a picture has the same bits whether one device draws all ranges or several devices share them. The
functions of shaders/raytracing/film/film.h accumulate a range; shaders/raytracing/film/films.cu merges two films, and
lets pixels rest for adaptive sampling: a pixel whose error, like its block's, is at most noise_threshold takes no more
samples until a later estimate wakes it. Adaptive sampling keeps the variance, and the whole picture is then one range.
pictures/raytrace.py owns the Film; the render farm exchanges ranges by read_range() and write_range().
"""

import numpy as np

from renderer.formats.images import LUMINANCE
from renderer.gpu.device import Buffer, Device, Kernel

FILE = "raytracing/film/films.cu"
RANGE_SAMPLES = 64  # samples of a range; another number gives pictures other bits
MIN_SAMPLES = 32  # samples of a pixel before its error is estimated
BLOCK = 16  # side in pixels of the blocks whose pixels may rest; the same in films.cu
Tile = tuple[int, int, int, int]  # left, top, width, height in pixels


def range_count(samples: int) -> int:
    """Returns the number of ranges of a picture of `samples` samples; the last range may be shorter."""
    return -(-samples // RANGE_SAMPLES)


def range_samples(index: int, samples: int) -> range:
    """Returns the sample indices of range number `index` of a picture of `samples` samples."""
    return range(index * RANGE_SAMPLES, min((index + 1) * RANGE_SAMPLES, samples))


def whole_blocks(tile: Tile, size: tuple[int, int]) -> Tile:
    """Returns the least tile of whole blocks of a picture of `size` (width, height) that covers `tile`."""
    left, top = (start - start % BLOCK for start in tile[:2])
    right, bottom = (
        min(-(-(start + length) // BLOCK) * BLOCK, end)
        for start, length, end in zip(tile[:2], tile[2:], size, strict=True)
    )
    return left, top, right - left, bottom - top


def samples_of(m2: np.ndarray, samples: int) -> np.ndarray:
    """Returns the number of samples of each pixel from film_m2 (..., 4), film.h, after `samples` of the picture.

    The fourth number is the samples that a resting pixel has taken; of others, minus those missed while they rested.
    """
    return np.where(m2[..., 3] > 0, m2[..., 3], samples + m2[..., 3])


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
        # merge_films by SAMPLE_IN_MEMORY: 1 reads the sample counts from device memory, 0 takes them as arguments.
        self._kernels: dict[int, Kernel] = {}
        self._errors: Buffer | None = None  # the estimated error of each block
        self._crop: tuple[Buffer, Kernel] | None = None  # the last result of crop(), and its kernel

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
        """Merges `_total` and `current` into `_spare`; `counts`: two numbers, or one buffer with the sample's index."""
        if not self._spare:
            self._spare = tuple(self._device.buffer(buffer.shape) for buffer in self.current)
        in_memory = len(counts) == 1
        if in_memory not in self._kernels:
            constants = dict(STRICT=1, M2=len(self.current) - 1, SAMPLE_IN_MEMORY=int(in_memory))
            kernel = self._device.kernel(FILE, "merge_films", group_size=128, **constants)
            self._kernels[in_memory] = kernel
        pixels = self.current[0].shape[0] * self.current[0].shape[1]
        buffers = [b for three in zip(self._total, self.current, self._spare, strict=True) for b in three]
        self._kernels[in_memory](pixels, pixels, *counts, *buffers)
        self.merged = self._spare

    def rest_pixels(self, samples: int, threshold: float) -> float:
        """Lets pixels rest, or wakes them, after `samples` samples; returns the largest relative error.

        A pixel rests if its relative error and its block's are at most `threshold`: all rest if the result is.
        """
        height, width = self.current[0].shape[:2]
        blocks = -(-width // BLOCK) * -(-height // BLOCK)
        if self._errors is None:
            self._errors = self._device.buffer(blocks)
        kernel = self._device.kernel(FILE, "rest_pixels", group_size=64, STRICT=1)
        kernel(blocks, width, height, samples, np.float32(threshold), *self.current, self._errors)
        return float(self._errors.read().max())

    def mean_luminance(self, samples: int) -> tuple[float, float]:
        """Returns the mean luminance of all pixels after `samples` samples, and its standard error.

        The film must keep the variance and be one range. The channels' errors are taken as fully correlated.
        """
        mean, m2 = (buffer.read().astype("f8") for buffer in self.current)
        taken = samples_of(m2, samples)
        variances = ((np.sqrt(m2[..., :3]) @ LUMINANCE) ** 2) / (taken * (taken - 1))
        return float((mean[..., :3] @ LUMINANCE).mean()), float(np.sqrt(variances.sum())) / taken.size

    def crop(self, tile: Tile) -> Buffer:
        """Returns the means of the rectangle `tile` of the merged film, in a buffer that the next call overwrites."""
        left, top, width, height = tile
        if self._crop is None or self._crop[0].shape != (height, width, 4):
            kernel = self._device.kernel(FILE, "crop_film", group_size=128, STRICT=1)
            self._crop = self._device.buffer((height, width, 4)), kernel
        out, kernel = self._crop
        film_width = self.current[0].shape[1]
        kernel(width * height, width, height, left, top, film_width, self.merged[0], out)
        return out

    def read_range(self) -> tuple[np.ndarray, ...]:
        """Reads the current range: means and, if kept, sums of squared deviations, each (height, width, 3) float32."""
        return tuple(np.ascontiguousarray(buffer.read()[..., :3]) for buffer in self.current)

    def write_range(self, arrays: tuple[np.ndarray, ...]) -> None:
        """Replaces the current range by arrays that read_range() returned here or on another device."""
        # fourth numbers: alpha of the means and, if the variance is kept, no sample missed (samples_of())
        for buffer, array, fourth in zip(self.current, arrays, (1.0, 0.0), strict=False):
            pixels = np.full(buffer.shape, fourth, "f4")
            pixels[..., :3] = array
            buffer.write(pixels)
