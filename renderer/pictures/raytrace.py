"""The picture `raytrace`: path tracing; a draw adds one sample to every pixel (shaders/raytracing/raytrace.cu).

The picture keeps geometry, lights and kernels between frames and rebuilds only those whose settings changed.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import is_not
from typing import Self

import numpy as np

from renderer.formats.gltf.animation import animation_keys
from renderer.formats.images import LUMINANCE
from renderer.formats.mesh import read_mesh
from renderer.gpu import DeviceContext
from renderer.gpu.device import Buffer, Kernel
from renderer.images.algorithm_view import AlgorithmView
from renderer.images.tone_mapping import compile_tonemap_ahead
from renderer.pictures.picture import CENTER, AccumulatingPicture, Chunk, ChunkResults, ExtraSteps, Frame, Size, Tile
from renderer.plain import Json, quoted
from renderer.raytracing import film
from renderer.raytracing.cryptomatte import draw_mattes, matte_bytes, metadata
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import NO_SCHEDULE, UNREAD_BY_AOVS, compile_constants, kernel_source, launch_params
from renderer.raytracing.light_passes import pass_bytes, pass_floats, read_passes
from renderer.raytracing.lights import light_picks
from renderer.raytracing.lights.caustic_shapes import caustics_hint
from renderer.raytracing.lights.guiding import train_guide
from renderer.raytracing.lights.guiding_hint import guiding_hint
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.lights.sample_floor import MAX_FLOOR, sample_floor
from renderer.raytracing.materials import MATERIAL, material_rows
from renderer.raytracing.models.from_model import TONE, open_file, play_animation, show_variant
from renderer.raytracing.models.gltf_shapes import not_drawn
from renderer.raytracing.path_trace import Ray, trace_path
from renderer.raytracing.ray_buffers import GROUP_SIZE, RayBuffers, buffers_key
from renderer.raytracing.schedule_trial import Candidate, Trial, remembered, trial_key
from renderer.raytracing.schedules import SCHEDULES, Compiled, Schedule, Wavefront, rival_schedules, with_schedule
from renderer.raytracing.settings import LIGHT_SETTINGS, MAX_DEPTH, SHAPE_GROUPS, Settings
from renderer.raytracing.shapes import geometry_bytes
from renderer.raytracing.stage_trace import StageTrace, stencil_view, trace_stages
from renderer.raytracing.traversal_cost import VIEWS, count_traversal, geometry_levels, traversal_view
from renderer.scene.scene import ToneMapping
from renderer.system.profile import stage

__all__ = ["Picture", "Settings", "open_file"]
DARK = "nothing emits light, so the picture is black: set environment, sky, suns, point_lights, zenith or an emission"
AOV_SAMPLES = 16  # samples that the albedo and normal layers average
READABLE_SAMPLES = 4  # least samples of each frame of an animation
MIN_CUT = 0.005  # least fraction of the light, cut by max_depth, that is reported
# That fraction is estimated from CUT_PATHS paths through a picture of at most CUT_PIXELS pixels; fewer than
# MIN_CUT_PATHS paths are not worth an estimate.
CUT_PIXELS, CUT_PATHS, MIN_CUT_PATHS = 1 << 16, 1 << 16, 1 << 10


class Picture(AccumulatingPicture[Settings]):
    """Draws pictures of raytracing.settings.Settings."""

    settings_type = Settings
    layer_names = ("albedo", "normal", "depth", "id", "variance", "samples")
    algorithm_names = ("stencil", *VIEWS, light_picks.VIEW)
    pixel_views = (light_picks.VIEW,)
    can_clone = can_pick = views_are_steady = True
    tone = TONE
    with_animation = staticmethod(play_animation)
    with_variant = staticmethod(show_variant)
    layer_texts = staticmethod(metadata)

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self.device = gpu.device
        self._kernels: dict[tuple[object, ...], Compiled] = {}  # by schedule and compile-time constants
        self._geometry_key: tuple[object, ...] | None = None
        self._lights_key: tuple[object, ...] | None = None
        self._guide_key: tuple[object, ...] | None = None
        self._guide: tuple[Buffer, ...] = ()  # the words of path guiding, if it is on
        self._rays_key: tuple[object, ...] | None = None
        self._rows = self._uploaded_rows = np.zeros(0, MATERIAL)
        self._row_sources: tuple[object, ...] = ()  # the materials and models that _rows were made of
        self._converged: int | None = None  # the sample count at which all pixels reached the noise threshold
        self._noise: float | None = None  # the largest relative error, after a sample at which it was estimated
        self._tracers: dict[str, Picture] = {}  # clones that draw samples stage by stage, by purpose
        self._passes: tuple[Buffer, ...] = ()  # buffers of light_passes.py, if the settings have them
        self._unmerged: dict[int, tuple[np.ndarray, ...]] = {}  # ranges that wait to be merged after earlier ones

    @classmethod
    def ignored(cls, settings: Settings) -> dict[str, int]:
        """Counts of the features in the mesh and glTF files of the settings that the picture does not draw."""
        total: Counter[str] = Counter()
        for mesh in settings.meshes:
            total.update(read_mesh(mesh.file).ignored)
        for model in (shape.load() for shape in settings.models):
            total.update(model.ignored)
            total.update(not_drawn(model))
        return dict(total)

    @classmethod
    def notes(cls, settings: Settings, table: Json) -> tuple[str, ...]:
        """A sentence for each shape that has a name and no instance, and one for a scene without light."""
        instanced = {name for _, item in settings.items("instances", "scattered") for name in item.shapes}
        named = [(where, shape.name) for where, shape in settings.items(*SHAPE_GROUPS, "models") if shape.name]
        notes = tuple(
            f"{where} is not drawn: shapes with a name are drawn as instances, and {quoted(name)} has none"
            for where, name in named
            if name not in instanced
        )
        return notes if "animation" in table or settings.may_have_light else (*notes, DARK)

    @classmethod
    def choices(cls, settings: Settings) -> dict[str, list[str]]:
        """The material variants and the animations of the models; none for a scene without models."""
        models = [shape.load() for shape in settings.models]
        variants = dict.fromkeys(name for model in models for name in model.variants)
        animations = dict.fromkeys(name for model in models for name in animation_keys(model.animations))
        return {"variants": list(variants), "animations": list(animations)} if models else {}

    @classmethod
    def device_bytes(cls, settings: Settings, size: Size) -> int:
        """Bytes of the device's buffers for a picture or tile of `size`, light passes and mattes included."""
        return super().device_bytes(settings, size) + pass_bytes(settings, size) + matte_bytes(settings, size)

    @classmethod
    def scene_bytes(cls, settings: Settings) -> int:
        """Bytes of the shapes, instances and mesh files."""
        return geometry_bytes(settings)

    def readable_samples(self, settings: Settings) -> int:
        """READABLE_SAMPLES for path tracing: with one sample, a shadow on the ground would be black specks."""
        return min(READABLE_SAMPLES, settings.samples) if settings.integrator == "path" else 1

    def clone(self) -> Self:
        """A picture with separate samples that shares the geometry and the kernels of this one."""
        other = super().clone()
        other._rays_key, other._tracers, other._passes = None, {}, ()
        return other

    def begin(self, settings: Settings, size: Size, time: float, tile: Tile) -> None:
        """Uploads geometry and lights and compiles kernels if they changed since the last picture."""
        if settings.noise_threshold:
            tile = film.whole_blocks(tile, size)  # pixels rest by blocks, alike in every tile
        self._film_tile, ray_count = tile, tile[2] * tile[3]
        with stage("building"):
            self._update_geometry(settings, partial(self._compile_ahead, settings, ray_count))
        wanted, settings = settings, self._with_schedule(settings, self._geometry, ray_count)
        with stage("building"):
            lights = self._update_lights(settings)
        self._update_guide(settings)
        # Where "auto" has rivals: the schedule that won an earlier trial, or else a trial (schedule_trial.py).
        rivals, key = rival_schedules(self.device, wanted, settings.schedule, ray_count), ""
        if rivals:
            constants = self._constants(settings, self._geometry) | lights.constants
            key = trial_key(self.device, constants, self._geometry.primitive_count, ray_count, settings.max_depth)
            best = remembered().get(key)
            if best in (*rivals, settings.schedule):
                settings, rivals = settings.with_schedule(best), []
        self._settings = settings
        if self._rays_key != buffers_key(settings, tile[2:]):
            self._rays = RayBuffers(self.device, settings, tile[2:])
            self._rays_key = self._rays.key
            self._film = film.Film(self.device, self._rays.film, self._rays.sample)
        pass_shapes = [(self._rays.padded_count, pass_floats(settings))] * settings.light_passes  # one or none
        if [buffer.shape for buffer in self._passes] != pass_shapes:
            self._passes = tuple(map(self.device.buffer, pass_shapes))
        for buffer in self._passes:
            buffer.fill(0)
        self._schedule = self._open_schedule(settings, self._rays)
        self._trial = self._open_trial(key, rivals, tile) if rivals else None
        self._params = launch_params(settings, size, tile, lights.fields)
        self._film.reset()
        self._converged = self._noise = None
        self._unbiased: tuple[float, float] | None = None  # mean_luminance() before any pixel rested
        self._floor = MAX_FLOOR
        if settings.noise_threshold:
            self._floor = sample_floor(self._geometry.primitives.bounds, self._uploaded_rows, lights)

    def _open_schedule(self, settings: Settings, rays: RayBuffers) -> Schedule:
        """Returns the schedule of the settings, compiled."""
        constants = self._constants(settings, self._geometry) | self._lights.constants
        # Without the record types LaunchParams and Material, which are alike for all settings.
        key = (settings.schedule, *(v for v in constants.values() if isinstance(v, int)))
        schedule = SCHEDULES[settings.schedule]
        if key not in self._kernels:
            self._kernels[key] = schedule.compile(self.device, constants)
        return schedule(self.device, self._kernels[key], rays)

    def _open_trial(self, key: str, rivals: list[str], tile: Tile) -> Trial:
        """Returns the trial of the present schedule beside `rivals`."""

        def start_rival(name: str) -> Callable[[], bool]:
            constants = self._constants(self._settings.with_schedule(name), self._geometry) | self._lights.constants
            return SCHEDULES[name].compile_ahead(self.device, constants)

        def open_rival(name: str) -> Candidate:
            rival = self._settings.with_schedule(name)
            rays = RayBuffers(self.device, rival, tile[2:], film_of=self._rays)
            return Candidate(name, self._open_schedule(rival, rays), rays)

        first = Candidate(self._settings.schedule, self._schedule, self._rays)
        return Trial(key, self.device, first, rivals, start_rival, open_rival)

    def _with_schedule(self, settings: Settings, geometry: Geometry, ray_count: int) -> Settings:
        """The settings with "auto" replaced by a guess of the fastest schedule."""
        return with_schedule(self.device, settings, geometry, ray_count, self._material_rows(settings, geometry))

    def _constants(self, settings: Settings, geometry: Geometry) -> dict[str, object]:
        """Returns the compile-time constants of the schedule's kernels, without LightSampler.constants."""
        rows = self._material_rows(settings, geometry)
        device = self.device.properties.scalar_threads, rows, self.device.has_graphs
        return compile_constants(settings, geometry.has_spheres, *device) | geometry.constants

    def _material_rows(self, settings: Settings, geometry: Geometry) -> np.ndarray:
        """Returns the materials (m,) MATERIAL: the same array as before while the materials are the same objects.

        An unchanged array is not uploaded again; an upload would wait for the previous frame.
        """
        sources = (settings.materials, settings.models, *geometry.models)
        if len(sources) != len(self._row_sources) or any(map(is_not, sources, self._row_sources)):
            self._rows, self._row_sources = material_rows(settings, geometry.models), sources
        return self._rows

    def _compile_ahead(self, settings: Settings, ray_count: int, geometry: Geometry) -> None:
        """Begins to compile the schedule's kernels with the usual constants while the BVH is built."""
        settings = self._with_schedule(settings, geometry, ray_count)
        constants = self._constants(settings, geometry) | LightSampler.usual_constants
        SCHEDULES[settings.schedule].compile_ahead(self.device, constants)

    def prepare_export(self, tone: ToneMapping) -> None:
        """Begins to compile the tone mapping."""
        compile_tonemap_ahead(self.device, tone)

    def add_sample(self, settings: Settings, size: Size, time: float, tile: Tile) -> Frame:
        """Draws a sample, unless all pixels have reached the noise threshold."""
        # The first sample of the present range (film.py); from the second range on, samples are merged with the ranges
        # before.
        first = self.samples - self.samples % film.RANGE_SAMPLES if _has_ranges(settings) else 0
        if first and first == self.samples:
            self._film.next_range()
        merge: Callable[[], None] | None = None
        if first:
            count = self.samples + 1 - first
            merge = self._film.merge_sample if self.device.has_graphs else partial(self._film.merge, first, count)
        if self._converged is None:
            self._draw_sample(self.samples, first, merge)
            self._estimate_noise(self.samples + 1)
        if self._film_tile != tile:
            left, top = tile[0] - self._film_tile[0], tile[1] - self._film_tile[1]
            return self._film.crop((left, top, *tile[2:]))
        return self._film.merged[0]

    def _draw_sample(self, sample: int, first: int, merge: Callable[[], None] | None = None) -> None:
        """Adds a sample to the film's current range, which begins with sample `first`; then launches `merge`."""
        self._geometry.update(self._settings)  # a clone may have moved the geometry that both share
        if self._geometry.builds != self._light_builds:
            self._update_lights(self._settings)  # light ids are indices of primitives in the BVH's order
            self._update_guide(self._settings)
        self._params["sample_index"], self._params["first_sample"] = sample, first
        if self._trial and self._trial.is_over(self._settings.samples - sample):
            best = self._trial.best  # from now on the faster schedule; the other one's buffers are freed
            self._trial, self._schedule, self._rays = None, best.schedule, best.rays
            self._settings, self._rays_key = self._settings.with_schedule(best.name), best.rays.key

        def draw(schedule: Schedule) -> None:
            schedule.draw_sample(self._settings, self._params, self._scene_args(), merge)

        self._trial.draw(draw) if self._trial else draw(self._schedule)

    def _estimate_noise(self, samples: int) -> None:
        """Estimates the noise after `samples` samples, and lets pixels rest by it, at powers of two from a floor on."""
        self._noise, threshold = None, self._settings.noise_threshold
        is_power_of_two = samples & (samples - 1) == 0
        if not threshold or samples < min(self._floor, MAX_FLOOR) or not is_power_of_two:
            return
        self._unbiased = self._unbiased or self._film.mean_luminance(samples)
        self._noise = self._film.rest_pixels(samples, threshold)
        if self._noise <= threshold:
            self._converged = samples

    def noise(self) -> float | None:
        """Returns the largest relative error of a pixel or block (films.cu), if the last sample estimated it."""
        return self._noise if self._settings.noise_threshold else float("inf")

    def _scene_args(self) -> tuple[Buffer, ...]:
        """The kernel arguments SCENE_PARAMS of shaders/raytracing/scene.h."""
        return *self._geometry.kernel_args, *self._guide, self._materials, self._lights.buffer, *self._passes

    def _update_geometry(self, settings: Settings, before_build: Callable[[Geometry], None] = lambda _: None) -> None:
        """Rebuilds the geometry if its shapes changed, else moves its instances and distance fields.

        `before_build` is Geometry's: begin() compiles kernels by it while the BVH is built.
        """
        key = (
            *(getattr(settings, name) for name in (*SHAPE_GROUPS, "models", "scattered", "builder", "bvh")),
            tuple((material.name, *material.map_values) for material in settings.materials),
            settings.textures,
            tuple((instance.shape, instance.material) for instance in settings.instances),
            len(settings.distance_fields),
            settings.is_blurred,
        )
        if key != self._geometry_key:
            self._geometry, self._geometry_key = Geometry(self.device, settings, before_build), key
        self._geometry.update(settings)

    def _upload_materials(self, settings: Settings) -> np.ndarray:
        """Uploads the materials if they changed; returns them, (m,) MATERIAL."""
        rows = self._material_rows(settings, self._geometry)
        if rows is not self._uploaded_rows:
            self._materials: Buffer = self.device.buffer(len(rows), MATERIAL).write(rows)
            self._uploaded_rows = rows
        return rows

    def _update_lights(self, settings: Settings) -> LightSampler:
        """Uploads the materials; rebuilds the light sampler if lights, emission or geometry changed."""
        materials = self._upload_materials(settings)
        instanced = self._geometry.instanced_lights(settings, materials)
        lights = (getattr(settings, name) for name in LIGHT_SETTINGS)
        key = self._geometry_key, self._geometry.builds, materials.tobytes(), instanced.triangles.tobytes(), *lights
        if key != self._lights_key:
            self._lights = LightSampler(self.device, settings, self._geometry.primitives, materials, instanced)
            self._lights_key = key
        self._light_builds = self._geometry.builds
        return self._lights

    def _update_guide(self, settings: Settings) -> None:
        """Traces photons again if lights, geometry or photon settings changed."""
        transforms = settings.instances, settings.shutter_close, settings.distance_fields, settings.shutter
        key = self._lights_key, settings.guiding_photons, settings.seed, settings.max_depth, transforms
        if key == self._guide_key:
            return
        self._guide, self._guide_key = (), key
        if settings.guiding_photons:
            rows, constants = self._uploaded_rows, self._scene_constants(settings)
            with stage("building"):
                self._guide = (train_guide(settings, self._geometry, rows, self._lights, constants),)

    def chunks(self, settings: Settings, size: Size, samples: int, max_count: int) -> list[Chunk]:
        """Chunks (first range, end, samples of the picture); [] with a noise threshold, by which pixels stop early.

        Light passes are one sum over all samples, which is not divided either.
        """
        ranges = film.range_count(samples) if _has_ranges(settings) and not settings.light_passes else 0
        count = min(max_count, ranges)
        return [(ranges * k // count, ranges * (k + 1) // count, samples) for k in range(count)]

    def draw_chunk(
        self, settings: Settings, size: Size, time: float, chunk: Chunk, extra_steps: ExtraSteps
    ) -> ChunkResults:
        """Draws a chunk; returns the film of each range by its index, and the samples of the picture."""
        begin, end, samples = chunk
        self.restart()
        self.begin(settings, size, time, (0, 0, *size))
        films = {}
        for index in range(begin, end):
            for sample in film.range_samples(index, samples):
                self._draw_sample(sample, index * film.RANGE_SAMPLES)
            films[index] = self._film.read_range()
        return {"films": films, "samples": samples}

    def start_merge(self, settings: Settings, size: Size, time: float) -> None:
        """Begin to merge the chunks of a picture."""
        self.restart()
        self.begin_if_changed(settings, size, time, (0, 0, *size))
        self._unmerged = {}

    def merge(self, drawn: ChunkResults) -> None:
        """Adds the ranges of a chunk. Chunks may come in any order; their ranges are merged in ascending order."""
        self._unmerged |= drawn["films"]
        while (index := film.range_count(self.samples)) in self._unmerged:
            if index:
                self._film.next_range()
            self._film.write_range(self._unmerged.pop(index))
            samples = film.range_samples(index, drawn["samples"])
            self._film.merge(samples.start, len(samples))
            self.samples = samples.stop

    def merged_frame(self, extra_steps: ExtraSteps) -> Frame:
        """The finished picture."""
        assert not self._unmerged, sorted(self._unmerged)
        return self._film.merged[0]

    def layers(self, settings: Settings, size: Size, tile: Tile | None = None) -> dict[str, np.ndarray]:
        """The AOVs of the picture that was drawn last, each (height, width) or (height, width, 3).

        albedo; normal; depth along the ray, infinite without a hit; id uint32, the primitive's id plus 1, 0 without a
        hit. If the settings keep the variance, also variance of a pixel's samples and samples, their number. With
        light_passes or cryptomatte, the layers of light_passes.py or cryptomatte.py.
        """
        tile = tile or (0, 0, *size)
        samples = self.samples if self.is_begun(settings, size, 0.0, tile) else 0
        if not samples:
            self.restart()  # the geometry may become another picture's than the samples', so the next draw is the first
        settings = self._with_geometry(settings, tile[2:])
        self._upload_materials(settings)
        _, _, width, height = tile
        albedo, normal = (self.device.buffer((height, width, 4)) for _ in range(2))
        depth, ids = self.device.buffer((height, width)), self.device.buffer((height, width), "u4")
        params, aov_samples = launch_params(settings, size, tile), min(settings.samples, AOV_SAMPLES)
        arguments = params[()], aov_samples, albedo, normal, depth, ids, *self._geometry.kernel_args, self._materials
        self._aov_kernel("draw_aovs", settings)(int(params["ray_count"]), *arguments)
        layers = {"albedo": albedo.read()[..., :3], "normal": normal.read()[..., :3]}
        layers |= {"depth": depth.read(), "id": ids.read()}
        if samples:
            layers |= self._film_layers(tile)
        if settings.cryptomatte and samples:
            draw = self._aov_kernel("draw_mattes", settings, "mattes")
            layers |= draw_mattes(self._geometry, settings, params, samples, draw)
        return layers

    def _film_layers(self, tile: Tile) -> dict[str, np.ndarray]:
        """The layers of `tile` that come from the samples: variance, samples and light passes, if they are kept."""
        left, top, width, height = self._film_tile
        counts, layers = np.full((height, width), self.samples), dict[str, np.ndarray]()
        if self._rays.film_m2 is not None:
            m2 = self._film.merged[1].read()
            counts = film.samples_of(m2, self.samples)
            layers["variance"] = m2[..., :3] / np.maximum(counts - 1, 1)[..., None].astype("f4")
            layers["samples"] = counts.astype("u4")
        if self._passes:
            layers |= read_passes(self._passes[0], self._settings, counts)
        x, y = tile[0] - left, tile[1] - top  # the film may begin before the tile, at a whole block (film.whole_blocks)
        return {name: layer[y : y + tile[3], x : x + tile[2]] for name, layer in layers.items()}

    def pick(self, settings: Settings, size: Size, x: float, y: float) -> float | None:
        """Returns the distance, as focus_distance counts it, of the surface at pixel (x, y); None without a surface.

        The samples of the picture are kept.
        """
        settings = self._with_geometry(settings, size)
        out = self.device.buffer(1)
        params = launch_params(settings, size, (0, 0, *size))[()]
        pick = self._aov_kernel("pick", settings)
        pick(1, params, np.float32(x), np.float32(y), out, *self._geometry.kernel_args)
        distance = float(out.read()[0])
        return distance if np.isfinite(distance) else None

    def algorithm(self, name: str, settings: Settings, size: Size, at: tuple[float, float] = CENTER) -> AlgorithmView:
        """The stencil of active rays by bounce, the traversal cost of camera rays, or the light picks of a pixel."""
        if name == "stencil":
            return stencil_view(self.trace_stages(settings, size))
        settings = self._with_geometry(settings, size)
        if name == light_picks.VIEW:
            x, y = (min(int(fraction * n), n - 1) for fraction, n in zip(at, size, strict=True))
            return self._light_view(settings, size, (x, y))
        params = launch_params(settings, size, (0, 0, *size))
        counts = count_traversal(self._geometry, params[()], size, self._scene_constants(settings))
        shown, levels = counts[VIEWS.index(name)], geometry_levels(self._geometry)
        return traversal_view(name, shown, levels, params, settings.projection)

    def _with_geometry(self, settings: Settings, size: Size) -> Settings:
        """Updates the geometry; returns the settings with the schedule of a picture of `size`; compiles nothing."""
        self._update_geometry(settings)
        return self._with_schedule(settings, self._geometry, size[0] * size[1])

    def _light_view(self, settings: Settings, size: Size, pixel: tuple[int, int]) -> AlgorithmView:
        """The view of the lights that a pixel picks."""
        lights = self._update_lights(settings)
        params = launch_params(settings, size, (0, 0, *size), lights.fields)
        groups = []
        picks = light_picks.NO_PICKS
        if lights.count and settings.direct_lighting != "bsdf":
            constants = self._scene_constants(settings) | lights.constants
            picks = light_picks.trace_picks(self._geometry, self._materials, lights, params[()], pixel, constants)
            groups = light_picks.group_picks(picks, lights, self._geometry, settings)
        return light_picks.light_view(picks, groups, params, settings.projection, pixel, size)

    def trace_paths(self, settings: Settings, size: Size, x: int, y: int, samples: int) -> list[Ray]:
        """The rays of the picture's first samples of pixel (x, y)."""
        tracer, settings = self._stage_tracer("paths", settings)
        tracer.begin_if_changed(settings, size, 0.0, (x, y, 1, 1))
        assert isinstance(tracer._schedule, Wavefront)
        far = 4 * float(np.linalg.norm(np.subtract(settings.view.target, settings.view.position)))
        rays: list[Ray] = []
        for sample in range(samples):
            tracer._params["sample_index"], tracer._params["first_sample"] = sample, 0
            arguments = tracer._settings, tracer._params, tracer._scene_args(), far
            rays += trace_path(tracer._schedule, *arguments)
        return rays

    def _stage_tracer(self, purpose: str, settings: Settings) -> tuple["Picture", Settings]:
        """A clone that draws by the wavefront, stage by stage, and its settings."""
        if purpose not in self._tracers:
            self._tracers[purpose] = self.clone()
        # Without a noise threshold all pixels take the sample; the variance is kept as before, so the kernels stay.
        fixed = replace(settings, noise_threshold=0.0, variance=settings.keeps_variance)
        tracer, settings = self._tracers[purpose], replace(fixed, schedule="wavefront", stencil="bits")
        self._update_geometry(settings)
        # Share the geometry that this picture has now.
        tracer._geometry, tracer._geometry_key = self._geometry, self._geometry_key
        return tracer, settings

    def trace_stages(self, settings: Settings, size: Size, sample: int = 0) -> StageTrace:
        """The stages of sample number `sample`, drawn by the wavefront; the samples of the picture are kept."""
        tracer, settings = self._stage_tracer("stages", settings)
        is_new = tracer._drawn is None or tracer._drawn[:2] != (settings, size)
        tracer.begin_if_changed(settings, size, 0.0, (0, 0, *size))
        assert isinstance(tracer._schedule, Wavefront)
        if is_new:
            tracer._draw_sample(sample, 0)  # warm-up: the times exclude compilers and cold caches
        tracer._params["sample_index"], tracer._params["first_sample"] = sample, 0
        arguments = tracer._settings, size, tracer._params, tracer._scene_args()
        return trace_stages(tracer._schedule, *arguments)

    def _aov_kernel(self, entry: str, settings: Settings, source: str = "layers") -> Kernel:
        constants = self._scene_constants(settings) | UNREAD_BY_AOVS
        return self.device.kernel(kernel_source(source), entry, group_size=GROUP_SIZE, **constants)

    def _scene_constants(self, settings: Settings) -> dict[str, object]:
        """The constants of kernels that trace rays but compute no light."""
        rows = self._material_rows(settings, self._geometry)
        constants = compile_constants(settings, self._geometry.has_spheres, materials=rows)
        return constants | NO_SCHEDULE | self._geometry.constants

    def report(self) -> dict[str, object]:
        """Samples, static primitives, the schedule, and its active rays by depth."""
        if self._drawn is None:
            return {}
        samples = self.samples if self._converged is None else self._converged
        schedule = self._settings.schedule
        counts = self._schedule.report(self._settings.max_depth)
        return {"samples": samples, "primitives": self._geometry.primitive_count, "schedule": schedule, **counts}

    def hints(self) -> list[str]:
        """Advice on caustics and photons; the light that a noise threshold and max_depth may have cost."""
        if self._drawn is None:
            return []
        guide = guiding_hint(self._settings, self._geometry, self._uploaded_rows, self._lights, self.samples)
        return [h for h in (guide or caustics_hint(self._settings), self._lost_light(), self._cut_light()) if h]

    def _cut_light(self) -> str:
        """A sentence on the light of paths that max_depth ended, where that is MIN_CUT of the picture's light.

        The witness is a small picture, drawn with and without the limit by the same random numbers.
        """
        settings, (width, height) = self._settings, (int(self._params["width"]), int(self._params["height"]))
        active = self._schedule.report(settings.max_depth).get("active rays", [1])
        # The last depth has active rays, or the report ends before it (MAX_DEPTHS of ray_buffers.py).
        ends_paths = len(active) < settings.max_depth or active[-1] > 0
        paths = min(CUT_PATHS, width * height * self.samples // 40)  # twice: at most a twentieth of the picture's work
        if settings.integrator != "path" or settings.guiding_photons or not ends_paths or paths < MIN_CUT_PATHS:
            return ""
        scale = min(1.0, (CUT_PIXELS / (width * height)) ** 0.5)
        size = max(1, round(width * scale)), max(1, round(height * scale))
        keeps = replace(settings, noise_threshold=0.0, variance=settings.keeps_variance)
        means = []
        for depth in (settings.max_depth, MAX_DEPTH):
            probe = self.clone()
            for _ in range(max(1, paths // (size[0] * size[1]))):
                frame = probe.draw(replace(keeps, max_depth=depth), size, 0.0)
            means.append(float((frame.read()[..., :3] @ LUMINANCE).mean(dtype="f8")))
        cut = 1 - means[0] / max(means[1], 1e-30)
        if cut < MIN_CUT:
            return ""
        return f"max_depth {settings.max_depth} cuts about {100 * cut:.1f} % of the light; at most {MAX_DEPTH}"

    def _lost_light(self) -> str:
        """A sentence on the light that pixels may have lost because they rested before they found it; else ""."""
        if self._unbiased is None:
            return ""
        mean, error = self._unbiased
        lost = 1 - self._film.mean_luminance(self.samples)[0] / max(mean, 1e-30)
        if lost > max(0.01, 2 * error / max(mean, 1e-30)):
            return f"pixels that stopped at the noise threshold lost about {100 * lost:.0f} % of the picture's light"
        text = "the lamps are so small that few paths find them through glass or off mirrors: pixels that stopped at "
        text += "the noise threshold may lack caustics; --set caustics=true or guiding_photons=25000 finds more of them"
        return text if self._floor > MAX_FLOOR else ""


def _has_ranges(settings: Settings) -> bool:
    """True if all pixels take the same number of samples, so that samples can be drawn in ranges (film.py)."""
    return settings.noise_threshold == 0
