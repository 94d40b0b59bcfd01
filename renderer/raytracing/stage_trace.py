"""The view "stencil": one sample of the wavefront schedule, stage by stage, with active rays and time of each stage.

trace_stages() launches each stage separately (schedules.Wavefront.stages) and reads the stencil that the stage wrote:
the mask of active rays, one bit a ray and one 32-bit word a block of 8 x 4 pixels (schedules/stencil.h in the shaders).
stencil_view() shows the trace in the window; pictures/raytrace.py offers the view.
"""

import time

import numpy as np

from renderer.images.algorithm_view import AlgorithmView, Legend, StepPicture
from renderer.paths import ASSETS
from renderer.raytracing.ray_buffers import BLOCK, WORD_RAYS, block_counts
from renderer.raytracing.schedules import SceneArgs, Wavefront, count_rays
from renderer.raytracing.settings import Settings
from renderer.records import dataclass
from renderer.system.files import read_toml

PARTS: dict[str, list[str]] = read_toml(ASSETS / "tables" / "parts.toml")  # by stage: its name, what shortens its time


@dataclass(frozen=True)
class Stage:
    """A stage that ran; `words` is the stencil that it wrote, (rows, columns) of blocks, uint32, or None."""

    name: str  # generate, trace, shade, connect or accumulate
    depth: int
    words: np.ndarray | None
    seconds: float


@dataclass(frozen=True)
class StageTrace:
    """The stages of one sample of a picture of `size` pixels, in the order of their launches."""

    size: tuple[int, int]
    stages: tuple[Stage, ...]
    has_maps: bool = False  # of the scene's materials

    def _stage(self, name: str, depth: int) -> Stage:
        return next(stage for stage in self.stages if (stage.name, stage.depth) == (name, depth))

    @property
    def depths(self) -> int:
        """The number of depths that were traced."""
        return max(stage.depth for stage in self.stages if stage.name == "trace") + 1

    def words(self, depth: int) -> np.ndarray:
        """Returns the stencil (rows, columns) uint32 of the rays that are active when bounce `depth` begins."""
        words = self._stage("shade", depth - 1).words if depth else self._stage("generate", 0).words
        assert words is not None
        return words

    def live_rays(self, depth: int) -> np.ndarray:
        """Returns the mask (height, width) bool of the pixels whose ray is active when bounce `depth` begins."""
        width, height = self.size
        return unpack(self.words(depth))[:height, :width]

    def occupancy(self, depth: int) -> np.ndarray:
        """Returns the fraction of active rays in each word; a warp traces the 32 rays of one word."""
        return np.asarray(np.bitwise_count(self.words(depth)) / WORD_RAYS)

    def costs(self) -> str:
        """Sentences: the parts of the sample's time, the largest first, what shortens that, and what max_depth does."""
        seconds: dict[str, float] = {}
        for stage in self.stages:
            seconds[stage.name] = seconds.get(stage.name, 0.0) + stage.seconds
        ordered, total = sorted(seconds, key=lambda name: -seconds[name]), sum(seconds.values())
        parts = ", ".join(f"{PARTS[name][0]} {seconds[name] / total:.0%}" for name in ordered)
        first = "maps" if ordered[0] == "shade" and self.has_maps else ordered[0]
        said = f"a sample of {self.size[0]} x {self.size[1]} pixels, part by part, {1000 * total:,.4g} ms: {parts}"
        # A half and a quarter of the depths, rounded up: without the stages of depth n on, a sample has max depth n.
        depths = sorted({-(-self.depths // 4), -(-self.depths // 2)} - {self.depths}, reverse=True)
        spared = {n: sum(stage.seconds for stage in self.stages if stage.depth >= n) / total for n in depths}
        less = ", ".join(f"{spared[n]:.0%} less with max depth {n}" for n in depths)
        return "; ".join(filter(None, [said, PARTS[first][1], less and f"{less}, than with {self.depths}"]))

    def rows(self) -> list[dict[str, int | float]]:
        """Returns a row per bounce: milliseconds by stage, active rays, words with some, their mean occupancy."""
        counts = count_rays(np.array([self.words(depth).ravel() for depth in range(self.depths)]))
        rows = []
        for depth, (active, empty) in enumerate(zip(*counts.values(), strict=True)):
            used = self.words(depth).size - empty
            times = {
                f"{stage.name} ms": 1000 * stage.seconds
                for stage in self.stages
                if stage.depth == depth and stage.name in ("trace", "shade", "connect")
            }
            row = {"bounce": depth, **times, "live rays": active, "words": used}
            rows.append(row | {"occupancy": active / (WORD_RAYS * used) if used else 0.0})
        return rows


def unpack(words: np.ndarray) -> np.ndarray:
    """Unpacks words (rows, columns) to bool (4 rows, 8 columns); bit k is pixel (k % 8, k // 8) of a block."""
    rows, columns = words.shape
    bytes_by_block = np.ascontiguousarray(words, "<u4").view("u1").reshape(rows, columns, BLOCK[1])  # a byte: 8 pixels
    by_line = np.ascontiguousarray(bytes_by_block.transpose(0, 2, 1))
    bits = np.unpackbits(by_line.reshape(rows * BLOCK[1], columns), axis=1, bitorder="little")
    return bits.view(bool)


def stencil_view(trace: StageTrace) -> AlgorithmView:
    """Returns the view of a trace: a step shows the active rays and the occupancy when a bounce begins.

    It begins at the first bounce that does not have all rays.
    """
    colors = "colors: rays under way of each block of 8 x 4 pixels, which are traced together, black for none"
    meaning = f"{trace.costs()}. {colors}"

    def step(depth: int) -> StepPicture:
        live = trace.live_rays(depth)
        from renderer.images.inspection import stencil_picture  # imported with the first view

        pixels = stencil_picture(live, trace.occupancy(depth))
        return StepPicture(pixels, live, meaning, Legend(0.0, WORD_RAYS, " rays of a block"))

    return AlgorithmView("bounce", tuple(trace.rows()), step, min(1, trace.depths - 1))


def trace_stages(
    schedule: Wavefront, settings: Settings, size: tuple[int, int], params: np.ndarray, scene: SceneArgs
) -> StageTrace:
    """Draws one sample of a picture of `size` pixels stage by stage; other work on the device would be timed too."""
    columns, rows = block_counts(size)
    stages, device = [], schedule.device
    device.finish()
    started = time.perf_counter()
    for name, depth, mask in schedule.stages(settings, params, scene):
        device.finish()
        seconds = time.perf_counter() - started
        words = None if mask is None else mask.read()[: rows * columns].reshape(rows, columns)
        stages.append(Stage(name, depth, words, seconds))
        started = time.perf_counter()
    return StageTrace(size, tuple(stages), any(material.has_maps for material in settings.materials))
