"""Schedules: the kernel launches that draw one sample of every pixel. All schedules draw the same bits.

- `wavefront`: paths of a depth side by side (S. Laine et al. 2013). GPUs run depth 0 in one launch and all later depths
  in another, whose groups pack their active rays before each stage; other devices, and views of the stages, launch one
  kernel a stage.
- `regenerate`: one kernel, whose threads start a new path when their path ends.
- `megakernel`: one kernel, which traces paths to all depths.

Their kernels are in shaders/raytracing/raytrace.cu. with_schedule() resolves the setting "auto":

- CUDA: the wavefront, or the megakernel for small pictures and scenes of simple materials.
- Other devices: the megakernel, which compiles soonest. By OpenCL on an H200 it takes at most 1.03 times the fastest's
  time in 13 of 19 scenes at 640 x 360; the wavefront draws 1.04 to 1.65 times as fast in 15 of 19 at 1920 x 1080.
- A stencil (mask of active rays) other than "bits", on any device: the wavefront, which it needs.

On GPUs with a ballot schedule_trial.py then measures one rival, by OpenCL and in small pictures two: within 3 % of the
fastest in 58 of 60 pictures by CUDA (before small ones had two) and 28 of 30 by OpenCL. GPUs of other makers have not
been measured.
pictures/raytrace.py calls Schedule.draw_sample().
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from renderer.gpu.device import Buffer, Device, Kernel
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import STAGES, STENCILS, kernel_source
from renderer.raytracing.material_files import material_constants
from renderer.raytracing.ray_buffers import GROUP_SIZE, RayBuffers
from renderer.raytracing.settings import Settings

# Least rays per multiprocessor at which CUDA starts with the wavefront, by the scene's materials (_path_class()). On an
# H200 the schedules are equally fast at 1,300 to 3,100 (clockwork, glassware, terrace, city) with transmission or
# volumes, at 2,700 to 7,300 (orrery, gasket, veach) with metals, at 6,700 to 14,000 (menger, grove, fisheye) with other
# layered materials or instances, and at 9,000 (cornell) or beyond 16,000 (single meshes of one material) in others.
WAVEFRONT_RAYS = {"transmission": 2_700, "metals": 6_000, "layers": 7_500, "simple": 30_000}
# Rays per multiprocessor from which regeneration is never the fastest by CUDA: at 1,700 it is in 3 of 20 scenes (H200).
REGENERATION_RAYS = 4_000
STATE_BYTES = 160  # largest state of a ray between two stages of the wavefront
# Least resident threads of a GPU's multiprocessor, which leave each 64 registers. On an H200 the compiler's choice,
# 72 to 124 registers, draws 0.66 to 0.95 times as fast (tests/fps/schedules.py), and 48 registers 0.75 to 0.95 times.
RESIDENT_THREADS = 1024
# NODES_PER_TURN of the megakernel, inner nodes that a lane visits before it tests a leaf (bvh/traverse_bvh2.h): 1.06
# times as fast for a bunny as without such turns.
MEGAKERNEL_TURN = 4
PERSISTENT_THREADS = 1 << 18  # threads of `regenerate`: more than any GPU has resident
RECORDED_FROM = 2  # samples launched one by one before a graph is recorded, which takes the time of a few samples
GROUP_SIZES = {"regenerate": 64, "megakernel": 256}  # threads; other kernels have GROUP_SIZE
BEGIN_SAMPLE = "begin_sample"
# Kernels of the wavefront of a GPU with a stencil of bits: depth 0 (first_bounce.h), all later depths (bounces.h), and
# the film's update by the paths that continued after depth 0.
FIRST_BOUNCE, BOUNCES, ACCUMULATE = "first_bounce", "bounces", "accumulate"
FUSED_WAVEFRONT = FIRST_BOUNCE, BOUNCES, ACCUMULATE
# GPUs compile the wavefront in programs of parts, in parallel; PART_RAYS has the kernels that PARTS does not list.
PARTS = {"shade": 2, BOUNCES: 3, FIRST_BOUNCE: 4, ACCUMULATE: 4, BEGIN_SAMPLE: 4}  # see wavefront.h
PART_RAYS = 1
SCALAR_WORDS = 4  # stencil words, each of 32 paths, whose paths a thread of a device without warps packs together
SceneArgs = tuple[Buffer, ...]  # SCENE_PARAMS of shaders/raytracing/scene.h
# SAMPLE_PARAMS (begin_sample.h): launch_params(); on devices with graphs also the buffer of the sample's number
SampleArgs = tuple[np.ndarray, *tuple[Buffer, ...]]
Programs = dict[str, tuple[int, dict[str, object]]]  # by entry point: threads of a group, compile-time constants


def with_schedule(
    device: Device, settings: Settings, geometry: Geometry, ray_count: int, materials: np.ndarray
) -> Settings:
    """Returns the settings with "auto" replaced by a guess of the device's fastest schedule for `ray_count` rays.

    `materials` (m,) MATERIAL: materials of the scene and its models. schedule_trial.py measures whether another
    schedule is faster.
    """
    if settings.schedule != "auto":
        return settings
    if settings.stencil != "bits":
        return settings.with_schedule("wavefront")
    if not device.properties.has_ballot or not device.has_graphs:
        return settings.with_schedule("megakernel")
    least = WAVEFRONT_RAYS[_path_class(settings, geometry, materials)] * device.properties.compute_units
    is_wavefront = fits_wavefront(device, ray_count) and ray_count >= least
    return settings.with_schedule("wavefront" if is_wavefront else "megakernel")


def _path_class(settings: Settings, geometry: Geometry, materials: np.ndarray) -> str:
    """The key of WAVEFRONT_RAYS: paths that take longer, and differ more, gain more from packing."""
    used = material_constants(materials)
    if used["TRANSMISSION"] or settings.has_volumes:
        return "transmission"
    is_layered = used["PRINCIPLED"] or used["REFRACTION"] or geometry.has_instances
    return "metals" if used["CONDUCTOR"] else "layers" if is_layered else "simple"


def fits_wavefront(device: Device, ray_count: int) -> bool:
    """True if the states of `ray_count` rays take at most a quarter of the device's memory."""
    return ray_count * STATE_BYTES * 4 <= device.properties.memory_bytes


def rival_schedules(device: Device, settings: Settings, schedule: str, ray_count: int) -> list[str]:
    """Returns the schedules that "auto" tries beside `schedule`, in this order; [] if `schedule` is always fastest."""
    is_choice = settings.schedule == "auto" and settings.stencil == "bits"
    if not is_choice or not device.compiles_beside_work or not device.properties.has_ballot:
        return []
    is_small = ray_count < REGENERATION_RAYS * device.properties.compute_units
    rivals = ["wavefront"] if fits_wavefront(device, ray_count) else []
    rivals += ["megakernel", "regenerate"] if is_small or not device.has_graphs else ["megakernel"]
    return [rival for rival in rivals if rival != schedule]


class Compiled(NamedTuple):
    """A schedule's kernels by entry point; `one_by_one` returns the kernels of the wavefront's single stages."""

    kernels: dict[str, Kernel]
    one_by_one: Callable[[], dict[str, Kernel]]


class Schedule:
    """Draws samples into the film of `rays` by the kernels that compile() made.

    If the device has graphs (CUDA), kernels read the number of the sample from memory, and the launches of a sample are
    recorded once as a graph, whose first kernel increments that number.
    """

    def __init__(self, device: Device, compiled: Compiled, rays: RayBuffers):
        self.device, self._compiled, self._kernels, self.rays = device, compiled, compiled.kernels, rays
        self._graph: Callable[[], None] | None = None
        self._recorded: tuple[object, ...] | None = None  # scene and merge function of the graph
        self._sample = 0, 0  # the last sample that the device drew, and the first of its range
        self._launched = 0  # samples that were launched since _recorded changed

    @classmethod
    def compile(cls, device: Device, constants: dict[str, object]) -> Compiled:
        """Compiles the schedule's kernels."""
        cls.compile_ahead(device, constants)
        kernels = _compiled(device, cls._programs(device, constants))
        return Compiled(kernels, lambda: kernels)

    @classmethod
    def compile_ahead(cls, device: Device, constants: dict[str, object]) -> Callable[[], bool]:
        """Begins to compile the kernels in the background, in parallel, if the device can.

        Returns a function that is true once compile() need not wait for them.
        """
        programs = {(size, values["PART"]): values for size, values in cls._programs(device, constants).values()}
        are_done = [device.compile_ahead(kernel_source(), size, **values) for (size, _), values in programs.items()]
        return lambda: all(is_done() for is_done in are_done)

    @classmethod
    def _programs(cls, device: Device, constants: dict[str, object]) -> Programs:
        """Returns group size and compile-time constants of each kernel that draws samples."""
        name = cls.__name__.lower()
        entries = (*STAGES[name], *((BEGIN_SAMPLE,) if device.has_graphs else ()))
        size = GROUP_SIZES.get(name, GROUP_SIZE)
        if not device.properties.scalar_threads:
            constants = constants | {"MIN_GROUPS_PER_SM": RESIDENT_THREADS // size}
        return dict.fromkeys(entries, (size, constants))

    def draw_sample(
        self, settings: Settings, params: np.ndarray, scene: SceneArgs, merge: Callable[[], None] | None = None
    ) -> None:
        """Adds a sample of every pixel to the film; `params` () is the launch_params record.

        `merge` launches the kernels that follow each sample; a graph records them with the sample.
        """
        index, first = int(params["sample_index"]), int(params["first_sample"])

        def launch(schedule: Schedule, index: int, first: int) -> None:
            """Launches a sample, numbered as for _begin_sample(), then `merge`; a graph records these launches."""
            schedule._launch(settings, (params[()], *schedule._begin_sample(index, first)), scene)
            if merge:
                merge()

        if not self.device.has_graphs:
            launch(self, index, first)
            return
        if self._recorded != (scene, merge):
            self._recorded, self._graph, self._launched = (scene, merge), None, 0
        if self._launched == RECORDED_FROM:
            clone = type(self)(self.device, self._compiled, self.rays)  # the graph must not refer to its owner
            self._graph = self.device.capture_graph(partial(launch, clone, -1, 0))
        self._launched += 1
        if self._graph is None:
            launch(self, index, first)
            return
        if self._sample != (index - 1, first):  # the graph's first kernel increments the device's number
            self._begin_sample(index - 1, first)
        self._sample = index, first
        self._graph()

    def _begin_sample(self, index: int, first: int) -> tuple[Buffer, ...]:
        """Sets the device's sample number to `index`, in the range that begins with `first`; -1 increments it.

        Returns the arguments that follow the launch parameters in SAMPLE_PARAMS (begin_sample.h).
        """
        if not self.device.has_graphs:
            return ()
        self._sample = index, first
        self._kernels[BEGIN_SAMPLE](1, index, first, self.rays.sample, self.rays.counts)
        return (self.rays.sample,)

    def _launch(self, settings: Settings, params: SampleArgs, scene: SceneArgs) -> None:
        """Launches the stages of a sample."""
        raise NotImplementedError

    def report(self, max_depth: int) -> dict[str, list[int]]:
        """Statistics of the last sample: active rays by depth and, of a stencil of bits, the words that are 0."""
        raise NotImplementedError


def _compiled(device: Device, programs: Programs) -> dict[str, Kernel]:
    return {entry: device.kernel(kernel_source(), entry, size, **c) for entry, (size, c) in programs.items()}


def count_rays(words: np.ndarray) -> dict[str, list[int]]:
    """Counts active rays and empty words of the stencils of bits of each depth, `words` (depths, n) uint32."""
    active, empty = np.bitwise_count(words).sum(1, "i8"), (words == 0).sum(1)
    return {"active rays": active.tolist(), "empty stencil words": empty.tolist()}


class Wavefront(Schedule):
    """Launches FUSED_WAVEFRONT on GPUs with a stencil of bits; elsewhere, and in stages(), one kernel a stage."""

    @classmethod
    def compile(cls, device: Device, constants: dict[str, object]) -> Compiled:
        """See Schedule.compile(); beside fused kernels, the single stages' kernels compile when they are asked for."""
        compiled = super().compile(device, constants)
        if FIRST_BOUNCE not in compiled.kernels:
            return compiled
        parts = cls._parts(device, constants, STAGES["wavefront"])
        return compiled._replace(one_by_one=cache(lambda: _compiled(device, parts)))

    @classmethod
    def _programs(cls, device: Device, constants: dict[str, object]) -> Programs:
        if constants["STENCIL"] != STENCILS["bits"] or device.properties.scalar_threads:
            return super()._programs(device, constants)
        return cls._parts(device, constants, (*FUSED_WAVEFRONT, *((BEGIN_SAMPLE,) if device.has_graphs else ())))

    @classmethod
    def _parts(cls, device: Device, constants: dict[str, object], entries: tuple[str, ...]) -> Programs:
        """Returns group size and constants of kernels of the wavefront of a GPU with a stencil of bits."""
        size, values = next(iter(super()._programs(device, constants).values()))  # the same for all kernels
        return {entry: (size, values | {"PART": PARTS.get(entry, PART_RAYS)}) for entry in entries}

    def _launch(self, settings: Settings, params: SampleArgs, scene: SceneArgs) -> None:
        """Launches the stages of a sample: fused, or one by one on devices without the fused kernels."""
        if FIRST_BOUNCE not in self._kernels:
            for _ in self._stages(settings, params, scene):
                pass
            return
        run, rays, masks = self._kernels, self.rays, self.rays.active_masks[:2]
        run[FIRST_BOUNCE](rays.padded_count, *params, *rays.film, *masks, *rays.state, *scene)
        if settings.max_depth > 1:
            run[BOUNCES](rays.bounces_threads, *params, 1, masks[1], rays.bounces_masks, *rays.state, *scene)
            run[ACCUMULATE](rays.padded_count, *params, masks[1], rays.radiances, *rays.film)

    def stages(
        self, settings: Settings, params: np.ndarray, scene: SceneArgs
    ) -> Iterator[tuple[str, int, Buffer | None]]:
        """Launches the stages of a sample one by one; yields each stage's name, depth and mask.

        The mask is for a view of the stage: the one it wrote, for connect the one it read, for accumulate None.
        """
        sample = self._begin_sample(int(params["sample_index"]), int(params["first_sample"]))
        return self._stages(settings, (params[()], *sample), scene)

    def _stages(
        self, settings: Settings, params: SampleArgs, scene: SceneArgs
    ) -> Iterator[tuple[str, int, Buffer | None]]:
        """Launches the stages one by one; yields what stages() does."""
        run, rays, masks = self._compiled.one_by_one(), self.rays, self.rays.active_masks
        self._clear(masks[0])
        run["generate"](rays.padded_count, *params, *rays.film, masks[0], *rays.state)
        yield "generate", 0, masks[0]
        has_connect = settings.direct_lighting != "bsdf" and params[0]["light_count"] > 0
        for depth in range(settings.max_depth):
            self._clear(rays.hit_mask, rays.shadow_mask, masks[depth + 1])
            stages: dict[str, tuple[tuple[Buffer, ...], Buffer]] = {  # masks it reads and writes; the mask for its view
                "trace": ((masks[depth], rays.hit_mask), rays.hit_mask),
                "shade": ((rays.hit_mask, masks[depth + 1], rays.shadow_mask), masks[depth + 1]),
                "connect": ((rays.shadow_mask,), rays.shadow_mask),
            }
            for name, (used, shown) in stages.items():
                if name != "connect" or has_connect:
                    run[name](rays.launch_threads, *params, depth, *used, *rays.state, *scene)
                    yield name, depth, shown
        run[ACCUMULATE](rays.padded_count, *params, masks[0], rays.radiances, *rays.film)
        yield ACCUMULATE, settings.max_depth, None

    def _clear(self, *masks: Buffer) -> None:
        """Empties lists of compacted rays; kernels overwrite every word of the other stencils."""
        if self.rays.stencil == "compact":
            for mask in masks:
                mask.fill(0)

    def report(self, max_depth: int) -> dict[str, list[int]]:
        """Active rays by depth, with a stencil of bits also empty words; {} for the stencils "flags" and "off"."""
        if self.rays.stencil == "compact":
            return {"active rays": [int(mask.read()[0]) for mask in self.rays.active_masks[:max_depth]]}
        if self.rays.stencil != "bits":
            return {}
        is_fused = BOUNCES in self._kernels  # then the kernel `bounces` has written the masks from depth 1 on
        masks = [mask.read() for mask in self.rays.active_masks[: 1 if is_fused else max_depth]]
        if is_fused:
            masks += list(self.rays.bounces_masks.read()[1:max_depth])
        return count_rays(np.array(masks))


class Regenerate(Schedule):
    """One launch; threads that end a path start the next."""

    def _launch(self, settings: Settings, params: SampleArgs, scene: SceneArgs) -> None:
        rays = self.rays
        if not self.device.has_graphs:  # with graphs, begin_sample clears the counts
            rays.counts.fill(0)
        threads = min(rays.padded_count, PERSISTENT_THREADS)
        self._kernels["regenerate"](threads, *params, rays.counts, *rays.film, *scene)

    def report(self, max_depth: int) -> dict[str, list[int]]:
        """Active rays by depth."""
        return {"active rays": self.rays.counts.read()[1 : 1 + max_depth].tolist()}


class Megakernel(Schedule):
    """One launch for all depths; on devices without warps a thread traces the paths of SCALAR_WORDS stencil words."""

    @classmethod
    def _programs(cls, device: Device, constants: dict[str, object]) -> Programs:
        if not device.properties.scalar_threads:
            return super()._programs(device, constants | {"NODES_PER_TURN": MEGAKERNEL_TURN})
        return {"megakernel": (1, constants | {"NODES_PER_TURN": 0, "WORDS_PER_THREAD": SCALAR_WORDS})}

    def _launch(self, settings: Settings, params: SampleArgs, scene: SceneArgs) -> None:
        rays = self.rays
        threads = rays.padded_count // (32 * SCALAR_WORDS if self.device.properties.scalar_threads else 1)
        self._kernels["megakernel"](threads, *params, rays.active_masks[0], *rays.film, *scene)

    def report(self, max_depth: int) -> dict[str, list[int]]:
        """Active rays and empty words by depth."""
        return count_rays(self.rays.active_masks[0].read().T[:max_depth])


SCHEDULES: dict[str, type[Schedule]] = {"wavefront": Wavefront, "regenerate": Regenerate, "megakernel": Megakernel}
