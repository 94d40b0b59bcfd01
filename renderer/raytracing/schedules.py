"""The schedules of shaders/raytracing/raytrace.cu: how a sample of every pixel is launched. All give the same bits.

On CUDA "auto" is the fastest: the wavefront, which packs its rays for each stage, or regeneration for small pictures
and scenes of few primitives. By OpenCL on GPUs with a ballot it is regeneration. There, on an H200, the wavefront takes
2 to 3 s longer to compile and draws 1.3 to 2.0 times as fast; GPUs of other makers have not been measured. Elsewhere it
is the megakernel. A stencil other than "bits" needs the wavefront.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from renderer.gpu.device import Buffer, Device
from renderer.gpu.warps import has_ballot
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import STAGES, STENCILS, kernel_source
from renderer.raytracing.ray_buffers import GROUP_SIZE, MAX_DEPTHS, RayBuffers
from renderer.raytracing.settings import Settings

MIN_WAVEFRONT_PRIMS = 36  # static ones; by CUDA on an H200 scenes of 32 are faster by regeneration, of 38 not
MIN_WAVEFRONT_RAYS = 14_000  # a multiprocessor: seven groups of BOUNCES; with one, regeneration is faster
STATE_BYTES = 160  # at most, of a ray between two stages of the wavefront
PERSISTENT_THREADS = 1 << 18  # of the regenerate schedule; more than are resident at once do no harm
RECORDED_FROM = 2  # samples that are launched one by one before a graph is recorded, which takes as long as some
GROUP_SIZES = {"regenerate": 64, "megakernel": 256}  # threads; other kernels have GROUP_SIZE
REPORT_FILE, REPORT_STAGE = "raytracing/count_rays.cu", "count_rays"
BOUNCES = "bounces"
PARTS, PART_RAYS = {"shade": 2, BOUNCES: 3}, 1  # of the wavefront, as shaders/raytracing/wavefront.h numbers them
FIRST_FUSED = 1  # depth from which BOUNCES draws
BEGIN_SAMPLE = "begin_sample"
SCALAR_GROUP_SIZE = 4  # of the megakernel on devices without warps: threads that trace a word each


def with_schedule(device: Device, settings: Settings, geometry: Geometry, ray_count: int) -> Settings:
    """The settings with the schedule that "auto" stands for on the device, for a tile of so many rays."""
    if settings.schedule != "auto":
        return settings
    if settings.stencil != "bits":
        return settings.with_schedule("wavefront")
    if not has_ballot(device):
        return settings.with_schedule("megakernel")
    is_simple = geometry.primitive_count < MIN_WAVEFRONT_PRIMS and not geometry.has_instances
    is_small = ray_count < MIN_WAVEFRONT_RAYS * device.properties.compute_units
    fits = ray_count * STATE_BYTES * 4 <= device.properties.memory_bytes
    is_wavefront = device.has_graphs and fits and not is_simple and not is_small
    return settings.with_schedule("wavefront" if is_wavefront else "regenerate")


class SceneArgs(NamedTuple):
    """What kernels read of a scene."""

    geometry: tuple[Buffer, ...]  # SCENE_PARAMS
    materials: Buffer
    lights: Buffer
    light_count: int


class Schedule:
    """Draws samples into the film of `rays` by kernels compiled with `constants`.

    Where the device has graphs, kernels read the number of the sample from memory, and the launches of a sample are
    recorded once as a graph that first goes to the next sample.
    """

    def __init__(self, device: Device, kernels: dict[str, Any], rays: RayBuffers):
        self._device, self._kernels, self._rays = device, kernels, rays
        self._graph: Callable[[], None] | None = None
        self._recorded: tuple | None = None  # what the graph draws
        self._sample = 0, 0  # that the device has drawn
        self._launched = 0  # samples of what would be recorded

    @classmethod
    def compile(cls, device: Device, constants: dict[str, Any]) -> dict[str, Any]:
        """The kernels of the schedule, by entry; of REPORT_STAGE a function that compiles it, for report() alone."""
        cls.compile_ahead(device, constants)
        source, programs = kernel_source(), cls._programs(device, constants)
        kernels = {entry: device.kernel(source, entry, size, **values) for entry, (size, values) in programs.items()}
        return kernels | {REPORT_STAGE: cache(partial(device.kernel, REPORT_FILE, REPORT_STAGE, GROUP_SIZE))}

    @classmethod
    def compile_ahead(cls, device: Device, constants: dict[str, Any]) -> None:
        """Begins what compile() waits for, where the device can; programs compile beside each other."""
        programs = {(size, values["PART"]): values for size, values in cls._programs(device, constants).values()}
        for (size, _), values in programs.items():
            device.compile_ahead(kernel_source(), size, **values)

    @classmethod
    def _programs(cls, device: Device, constants: dict[str, Any]) -> dict[str, tuple[int, dict[str, Any]]]:
        """Threads of a group of each of the schedule's kernels, and the constants of its program, by entry."""
        sizes = GROUP_SIZES | ({"megakernel": SCALAR_GROUP_SIZE} if device.properties.scalar_threads else {})
        name = cls.__name__.lower()
        found = {entry: sizes.get(entry, GROUP_SIZE) for entry in STAGES[name]}
        found |= {BEGIN_SAMPLE: sizes.get(name, GROUP_SIZE)} if device.has_graphs else {}  # in one program
        return {entry: (size, constants) for entry, size in found.items()}

    def draw_sample(
        self, settings: Settings, params: np.ndarray, scene: SceneArgs, merge: Callable[[], None] | None = None
    ) -> None:
        """Adds a sample of every pixel to the film; `params` () is the launch_params record.

        `merge` launches what follows each sample, and is recorded with it.
        """
        if not self._device.has_graphs:
            self._launch(settings, (params[()],), scene)
            if merge:
                merge()
            return
        if self._recorded != (scene, merge):
            self._recorded, self._graph, self._launched = (scene, merge), None, 0
        if self._launched == RECORDED_FROM:
            twin = type(self)(self._device, self._kernels, self._rays)  # so that the graph does not keep itself alive
            self._graph = self._device.capture_graph(partial(twin._launch_next, settings, params[()], scene, merge))
        self._launched += 1
        index, first = int(params["sample_index"]), int(params["first_sample"])
        if self._graph is None:
            self._begin_sample(index, first)
            self._launch(settings, (params[()], self._rays.sample), scene)
            if merge:
                merge()
            return
        if self._sample != (index - 1, first):
            self._begin_sample(index - 1, first)
        self._sample = index, first
        self._graph()

    def _begin_sample(self, index: int, first: int) -> None:
        """Makes the device draw sample `index` of the range that begins with sample `first`; the next for index -1."""
        self._sample = index, first
        self._kernels[BEGIN_SAMPLE](1, index, first, self._rays.sample, self._rays.counts)

    def _launch_next(self, settings: Settings, params: Any, scene: SceneArgs, merge: Callable[[], None] | None) -> None:
        """What a graph records."""
        self._begin_sample(-1, 0)
        self._launch(settings, (params, self._rays.sample), scene)
        if merge:
            merge()

    def _launch(self, settings: Settings, params: tuple, scene: SceneArgs) -> None:
        """Launches the stages of a sample; `params` are the SAMPLE_PARAMS of raytrace.cu."""
        raise NotImplementedError

    def report(self, max_depth: int) -> dict[str, list[int]]:
        """Active rays by depth and, of stencils of bits, the words that are 0, of the last sample."""
        raise NotImplementedError

    def _count(self, masks: list[tuple[Buffer, int, int]]) -> dict[str, list[int]]:
        """Counts of masks: buffer, first word, words from one of its words to the next."""
        counts = []
        for words, first, step in masks:
            out = self._device.buffer(2, "u4").fill(0)
            self._kernels[REPORT_STAGE]()(self._rays.mask_words, words, first, step, self._rays.mask_words, out)
            counts.append(out.read().tolist())
        active, empty = np.array(counts).T.tolist()
        return {"active rays": active, "empty stencil words": empty}


class Wavefront(Schedule):
    """One launch a stage; on GPUs, with a stencil of bits, one for all stages from depth FIRST_FUSED on."""

    @classmethod
    def _programs(cls, device: Device, constants: dict[str, Any]) -> dict[str, tuple[int, dict[str, Any]]]:
        programs = super()._programs(device, constants)
        if constants["STENCIL"] != STENCILS["bits"] or device.properties.scalar_threads:
            return programs
        entries = *programs, BOUNCES
        return {entry: (GROUP_SIZE, constants | {"PART": PARTS.get(entry, PART_RAYS)}) for entry in entries}

    def _launch(self, settings: Settings, params: tuple, scene: SceneArgs) -> None:
        depths = FIRST_FUSED if BOUNCES in self._kernels else settings.max_depth
        for _ in self._stages(settings, params, scene, depths):
            pass

    def stages(
        self, settings: Settings, params: np.ndarray, scene: SceneArgs
    ) -> Iterator[tuple[str, int, Buffer | None]]:
        """Launches the stages of a sample; after each gives its name, its depth and the mask that it writes, if any."""
        if not self._device.has_graphs:
            return self._stages(settings, (params[()],), scene, settings.max_depth)
        self._begin_sample(int(params["sample_index"]), int(params["first_sample"]))
        return self._stages(settings, (params[()], self._rays.sample), scene, settings.max_depth)

    def _stages(
        self, settings: Settings, params: tuple, scene: SceneArgs, depths: int
    ) -> Iterator[tuple[str, int, Buffer | None]]:
        """stages(), of which those behind the first `depths` depths are one launch."""
        run, rays, masks = self._kernels, self._rays, self._rays.active_masks
        self._clear(masks[0])
        run["generate"](rays.padded_count, *params, *rays.film, masks[0], *rays.path)
        yield "generate", 0, masks[0]
        for depth in range(min(depths, settings.max_depth)):
            self._clear(rays.hit_mask, rays.shadow_mask, masks[depth + 1])
            run["trace"](
                rays.launch_threads, *params, depth, masks[depth], rays.hit_mask, *rays.path, rays.hits,
                *scene.geometry, scene.lights,
            )  # fmt: skip
            yield "trace", depth, rays.hit_mask
            run["shade"](
                rays.launch_threads, *params, depth, rays.hit_mask, masks[depth + 1], rays.shadow_mask, *rays.path,
                rays.hits, *rays.shadow_rays, *scene.geometry, scene.materials, scene.lights,
            )  # fmt: skip
            yield "shade", depth, masks[depth + 1]
            if settings.direct_lighting != "bsdf" and scene.light_count:
                run["connect"](
                    rays.launch_threads, *params, depth, rays.shadow_mask, *rays.path, *rays.shadow_rays,
                    *scene.geometry, scene.lights,
                )  # fmt: skip
                yield "connect", depth, rays.shadow_mask
        if depths < settings.max_depth:
            run[BOUNCES](
                rays.group_threads, *params, depths, masks[depths], rays.later_masks, *rays.path, rays.hits,
                *rays.shadow_rays, *scene.geometry, scene.materials, scene.lights,
            )  # fmt: skip
        run["accumulate"](rays.padded_count, *params, rays.radiances, *rays.film)
        yield "accumulate", settings.max_depth, None

    def _clear(self, *masks: Buffer) -> None:
        """Makes lists of compacted rays empty; the other stencils are written whole."""
        if self._rays.stencil == "compact":
            for mask in masks:
                mask.fill(0)

    def report(self, max_depth: int) -> dict[str, list[int]]:
        """Active rays by depth, and of a stencil of bits the empty words; nothing with flags and without a stencil."""
        if self._rays.stencil == "compact":
            return {"active rays": [int(mask.read()[0]) for mask in self._rays.active_masks[:max_depth]]}
        if self._rays.stencil != "bits":
            return {}
        masks = [(mask, 0, 1) for mask in self._rays.active_masks[:max_depth]]
        if BOUNCES in self._kernels:
            later = range(FIRST_FUSED, max_depth)
            masks[FIRST_FUSED:] = [(self._rays.later_masks, depth * self._rays.mask_words, 1) for depth in later]
        return self._count(masks)


class Regenerate(Schedule):
    """One launch; threads that end a path start the next."""

    def _launch(self, settings: Settings, params: tuple, scene: SceneArgs) -> None:
        rays = self._rays
        if not self._device.has_graphs:  # else begin_sample has cleared them
            rays.counts.fill(0)
        threads = min(rays.padded_count, PERSISTENT_THREADS)
        film_and_scene = *rays.film, *scene.geometry, scene.materials, scene.lights
        self._kernels["regenerate"](threads, *params, rays.counts, *film_and_scene)

    def report(self, max_depth: int) -> dict[str, list[int]]:
        """Active rays by depth."""
        return {"active rays": self._rays.counts.read()[1 : 1 + max_depth].tolist()}


class Megakernel(Schedule):
    """One launch for all depths; on devices without warps a thread traces the 32 paths of a stencil word."""

    def _launch(self, settings: Settings, params: tuple, scene: SceneArgs) -> None:
        rays = self._rays
        threads = rays.padded_count // 32 if self._device.properties.scalar_threads else rays.padded_count
        film_and_scene = *rays.film, *scene.geometry, scene.materials, scene.lights
        self._kernels["megakernel"](threads, *params, rays.active_masks[0], *film_and_scene)

    def report(self, max_depth: int) -> dict[str, list[int]]:
        """Active rays and empty words by depth."""
        return self._count([(self._rays.active_masks[0], depth, MAX_DEPTHS) for depth in range(max_depth)])


SCHEDULES: dict[str, type[Schedule]] = {"wavefront": Wavefront, "regenerate": Regenerate, "megakernel": Megakernel}
