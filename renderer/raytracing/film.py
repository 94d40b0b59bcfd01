"""The film of a picture: its samples in ranges of RANGE, each with a mean of its own, merged in their order.

So a picture has the same bits whether one device drew all of its ranges or many devices some each; raytracing/film.h
counts the samples of a range, shaders/raytracing/merge_films.cu merges.
"""

from collections.abc import Iterator

import numpy as np

RANGE = 64  # samples


def ranges_of(samples: int) -> int:
    return -(-samples // RANGE)


def samples_of(number: int, samples: int) -> Iterator[int]:
    """The samples of a range of a picture that has so many."""
    return range(number * RANGE, min((number + 1) * RANGE, samples))


class Film:
    """What is drawn of a picture so far; `part`, a frame and where it is kept a spread, is what the kernels add to."""

    def __init__(self, device, part: tuple):
        self._device, self.part = device, part
        self._total: tuple = ()  # of the ranges before the one at hand
        self._spare: tuple = ()
        self.shown = part  # of all samples
        self._merge = None  # the kernel

    def begin(self) -> None:
        """The next sample is the first of a picture."""
        self.shown = self.part

    def close(self) -> None:
        """The next sample is the first of another range."""
        if self.shown is not self.part:
            self._total, self._spare = self.shown, self._total
            return
        if not self._total:
            self._total = tuple(self._device.buffer(buffer.shape) for buffer in self.part)
        for total, part in zip(self._total, self.part, strict=True):
            total.copy_from(part)

    def merge(self, before: int, more: int) -> None:
        """Shows the range at hand, of `more` samples so far, with the `before` samples of those that were closed."""
        if not before:
            return
        if not self._spare:
            self._spare = tuple(self._device.buffer(buffer.shape) for buffer in self.part)
        if self._merge is None:
            spread = len(self.part) - 1
            self._merge = self._device.kernel(
                "raytracing/merge_films.cu", "merge_films", group_size=128, STRICT=1, M2=spread
            )
        pixels = self.part[0].shape[0] * self.part[0].shape[1]
        buffers = [b for three in zip(self._total, self.part, self._spare, strict=True) for b in three]
        self._merge(pixels, pixels, before, more, *buffers)
        self.shown = self._spare

    def read_part(self) -> tuple[np.ndarray, ...]:
        """The range at hand: (height, width, 3) float32 means, and where they are kept sums of squared distances."""
        return tuple(np.ascontiguousarray(buffer.read()[..., :3]) for buffer in self.part)

    def write_part(self, arrays: tuple[np.ndarray, ...]) -> None:
        """Puts what read_part gave elsewhere in place of the range at hand."""
        for buffer, array, last in zip(self.part, arrays, (1.0, 0.0), strict=False):
            whole = np.full(buffer.shape, last, "f4")
            whole[..., :3] = array
            buffer.write(whole)
