"""One sample of the wavefront stage by stage: which rays are alive after each, and how long it takes.

The stages are those that draw a sample (schedules.Wavefront.stages), each launched alone, where GPUs launch those of
later bounces together; after each the stencil of active rays is read, a bit a ray and a word for a block of 8 x 4
pixels (shaders/raytracing/stencil.h).
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from renderer.gpu.device import Device
from renderer.images.algorithm_view import AlgorithmView, Legend, StepPicture
from renderer.images.inspection import stencil_picture
from renderer.raytracing.schedules import SceneArgs, Wavefront
from renderer.raytracing.settings import Settings

BLOCK = (8, 4)  # pixels of a stencil word, width and height
WORD_BITS = 32


@dataclass(frozen=True)
class Stage:
    """A stage that ran: `words` is the stencil that it wrote, (rows of blocks, columns of blocks) uint32."""

    name: str  # generate, trace, shade, connect or accumulate
    depth: int
    words: np.ndarray | None  # None of a stage that writes none
    seconds: float


@dataclass(frozen=True)
class StageTrace:
    """The stages of one sample of a picture of `size` pixels, in their order."""

    size: tuple[int, int]
    stages: tuple[Stage, ...]

    def _stage(self, name: str, depth: int) -> Stage:
        return next(stage for stage in self.stages if (stage.name, stage.depth) == (name, depth))

    @property
    def depths(self) -> int:
        """The bounces of the paths."""
        return max(stage.depth for stage in self.stages if stage.name == "trace") + 1

    def words(self, depth: int) -> np.ndarray:
        """The stencil with which bounce `depth` begins."""
        words = self._stage("shade", depth - 1).words if depth else self._stage("generate", 0).words
        assert words is not None
        return words

    def live_rays(self, depth: int) -> np.ndarray:
        """Which pixels have an active ray as bounce `depth` begins, (height, width) bool."""
        width, height = self.size
        return unpack(self.words(depth))[:height, :width]

    def occupancy(self, depth: int) -> np.ndarray:
        """The fraction of active rays in each word, that is in each warp."""
        return np.bitwise_count(self.words(depth)) / WORD_BITS

    def rows(self) -> list[dict[str, Any]]:
        """For each bounce its live rays, words with one, the mean occupancy of these, and milliseconds by stage."""
        rows = []
        for depth in range(self.depths):
            occupancy = self.occupancy(depth)
            used = occupancy[occupancy > 0]
            times = {
                f"{stage.name} ms": 1000 * stage.seconds
                for stage in self.stages
                if stage.depth == depth and stage.name in ("trace", "shade", "connect")
            }
            live = int(np.bitwise_count(self.words(depth)).sum())
            row = {"bounce": depth, "live rays": live, "words": int(used.size)}
            rows.append(row | {"occupancy": float(used.mean()) if used.size else 0.0} | times)
        return rows


def unpack(words: np.ndarray) -> np.ndarray:
    """(rows, columns) stencil words as (4 rows, 8 columns) bool; bit k is pixel (k % 8, k // 8) of its block."""
    rows, columns = words.shape
    rows_of_blocks = np.ascontiguousarray(words, "<u4").view("u1").reshape(rows, columns, BLOCK[1])  # a byte a row of 8
    by_line = np.ascontiguousarray(rows_of_blocks.transpose(0, 2, 1))
    bits = np.unpackbits(by_line.reshape(rows * BLOCK[1], columns), axis=1, bitorder="little")
    return bits.view(bool)


def stencil_view(trace: StageTrace) -> AlgorithmView:
    """The stencil as each bounce begins; a step is a bounce."""
    meaning = "live rays; color: part of the warp that lives, from blue to yellow; black: the warp rests"

    def step(depth: int) -> StepPicture:
        live = trace.live_rays(depth)
        pixels = stencil_picture(live, trace.occupancy(depth))
        return StepPicture(pixels, live, meaning, Legend(0.0, WORD_BITS, " live rays of a word"))

    return AlgorithmView("bounce", tuple(trace.rows()), step)


def trace_stages(
    device: Device, schedule: Wavefront, settings: Settings, size: tuple[int, int], params: Any, scene: SceneArgs
) -> StageTrace:
    """Draws one sample of a picture of `size` pixels and takes notes; the device must be idle."""
    columns, rows = (-(-n // block) for n, block in zip(size, BLOCK, strict=True))
    stages = []
    device.finish()
    started = time.perf_counter()
    for name, depth, mask in schedule.stages(settings, params, scene):
        device.finish()
        seconds = time.perf_counter() - started
        words = None if mask is None else mask.read()[: rows * columns].reshape(rows, columns)
        stages.append(Stage(name, depth, words, seconds))
        started = time.perf_counter()
    return StageTrace(size, tuple(stages))
