"""Ray tracer: progressive paths in wavefront stages behind the bitmask stencil (paper 3; raytracing/raytrace.cu)."""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from renderer.bvh.bvh2_quantized import has_ballot
from renderer.bvh.traversal import traversal_of
from renderer.gpu import DeviceContext
from renderer.pictures.picture import Picture as BasePicture
from renderer.raytracing.film import RANGE, Film, ranges_of, samples_of
from renderer.raytracing.from_model import TONE, open_file
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import (
    MATERIAL,
    STAGES,
    Tile,
    aov_source,
    compile_constants,
    kernel_source,
    launch_params,
    material_rows,
)
from renderer.raytracing.lights import LightSampler
from renderer.raytracing.ray_buffers import GROUP, MOST_DEPTHS, Rays
from renderer.raytracing.settings import LIGHT_SETTINGS, SHAPES, Settings

__all__ = ["Picture", "Settings", "open_file"]
LAYER_SAMPLES = 16  # that albedo and normal are the means of
REGENERATE_GROUP = 64
FUSED_GROUP = 256  # half of what the rays are padded to a multiple of
ALONE_GROUP = 4  # threads that keep a word each
LEAST_SAMPLES = 32  # as in shaders/raytracing/film.h
PERSISTENT_THREADS = 1 << 18  # of the schedule "regenerate"; more than are resident at once do no harm


class Picture(BasePicture):
    """Draws Settings; one sample of every pixel a call."""

    settings_type = Settings
    layer_names = ("albedo", "normal", "depth", "id", "variance", "samples")
    can_clone = can_pick = True
    tone = TONE

    def __init__(self, gpu: DeviceContext):
        self.device = gpu.device
        self.has_ballot = has_ballot(self.device)
        self._alone = self.device.properties.scalar_threads  # threads without warps
        self._stages: dict[tuple, dict] = {}
        self._drawn = self._shape_key = self._lights_key = self._rays_key = self._asked = self._answer = None
        self._sample, self._done = 0, False

    def restart(self) -> None:
        """The next draw is the first sample."""
        self._drawn = None

    def clone(self) -> "Picture":
        """A picture that draws on its own with the geometry and the kernels of this one."""
        other = copy(self)
        other._drawn = other._rays_key = None
        return other

    def _kernel(self, entry: str, constants: dict):
        group = {"regenerate": REGENERATE_GROUP, "megakernel": FUSED_GROUP}.get(entry, GROUP)
        if constants["SCALAR_THREADS"] and entry == "megakernel":
            group = ALONE_GROUP
        return self.device.kernel(kernel_source(), entry, group_size=group, **constants)

    def sample_count(self, settings: Settings, size) -> int:
        return settings.samples

    def draw(self, settings: Settings, size: tuple[int, int], time: float, tile: Tile | None = None):
        tile = tile or (0, 0, *size)
        settings = self._scheduled(settings)
        if (settings, size, tile) != self._drawn:
            self._prepare(settings, size, tile)
        first = self._sample - self._sample % RANGE if _is_dealt(settings) else 0
        if first and first == self._sample:
            self._film.close()
        if not self._is_done(settings):
            self._draw_sample(settings, self._sample, first)
            self._film.merge(first, self._sample + 1 - first)
            self._sample += 1
        return self._film.shown[0]

    def _draw_sample(self, settings: Settings, sample: int, first: int) -> None:
        """Adds a sample to the range of the film that begins with sample `first`."""
        self._geometry.place(settings)  # a twin may have moved what both of them share
        self._view["sample_index"], self._view["first_sample"] = sample, first
        getattr(self, f"_draw_{settings.schedule}")(settings, self._view[()], self._rays, self._geometry)

    # Parts of a picture's samples, for a farm

    def chunks(self, settings: Settings, size, samples: int, count: int) -> list[tuple]:
        """At most `count` parts that the picture's samples are dealt into: first range, the one behind the last, and
        the picture's samples; none where a pixel's own noise says how many it takes."""
        ranges = ranges_of(samples) if _is_dealt(settings) else 0
        count = min(count, ranges)
        return [(ranges * k // count, ranges * (k + 1) // count, samples) for k in range(count)]

    def draw_chunk(self, settings: Settings, size, time: float, part: tuple, more: tuple) -> dict:
        """The film of each range of a part: number -> arrays (height, width, 3)."""
        settings, (begin, end, samples) = self._scheduled(settings), part
        self._prepare(settings, size, (0, 0, *size))
        self._drawn = None  # what is on the film is no picture
        films = {}
        for number in range(begin, end):
            for sample in samples_of(number, samples):
                self._draw_sample(settings, sample, number * RANGE)
            films[number] = self._film.read_part()
        return {"films": films, "samples": samples}

    def start_merge(self, settings: Settings, size: tuple[int, int], time: float) -> None:
        self._prepare(self._scheduled(settings), size, (0, 0, *size))
        self._waiting: dict[int, tuple] = {}  # films by their range that came before their turn

    def merge(self, part: dict) -> None:
        """Takes over what draw_part left of one part, in any order; films are merged in that of their ranges."""
        self._waiting |= part["films"]
        while (number := ranges_of(self._sample)) in self._waiting:
            if number:
                self._film.close()
            self._film.write_part(self._waiting.pop(number))
            samples = samples_of(number, part["samples"])
            self._film.merge(samples.start, len(samples))
            self._sample = samples.stop

    def missing_steps(self, more: tuple) -> tuple[int, ...]:
        """Samples that are still to be drawn once all parts were merged."""
        return ()

    def merged_frame(self, more: tuple):
        """The finished picture of the parts that were merged."""
        assert not self._waiting, sorted(self._waiting)
        return self._film.shown[0]

    def _is_done(self, settings: Settings) -> bool:
        """Whether every pixel has little enough noise; looked at where pixels may have become so."""
        samples = self._sample
        if (
            not self._done
            and settings.noise_threshold > 0
            and samples >= LEAST_SAMPLES
            and samples & (samples - 1) == 0
        ):
            self._done = bool((self._rays.spread.read()[..., 3] > 0).all())
        return self._done

    def _scheduled(self, settings: Settings) -> Settings:
        """The settings with "auto" replaced by the fastest of the schedules, which all give the same bits
        (tests/fps/results/h200_rays.jsonl); a stencil of flags or none needs the wavefront.
        """
        if settings.schedule != "auto":
            return settings
        if settings is not self._asked:
            fastest = "regenerate" if self.has_ballot else "megakernel"
            plain = settings.stencil == "bits"
            self._asked = settings
            self._answer = replace(settings, schedule=fastest if plain else "wavefront")
        return self._answer

    def layers(self, settings: Settings, size: tuple[int, int], tile: Tile | None = None) -> dict[str, np.ndarray]:
        """albedo and normal (height, width, 3), depth (height, width) float32 along the ray, infinite where nothing is
        hit, and id (height, width) uint32, the primitive's number from 1, 0 for nothing; of the last draw's picture.
        Where the settings keep it, variance (height, width, 3) of a pixel's samples, and samples (height, width)."""
        tile, settings = tile or (0, 0, *size), self._scheduled(settings)
        if (settings, size, tile) != self._drawn:
            self._prepare(settings, size, tile)
        kernel = self._layers_kernel("draw_aovs", settings)
        _, _, width, height = tile
        albedo, normal = (self.device.buffer((height, width, 4)) for _ in range(2))
        depth, number = self.device.buffer((height, width)), self.device.buffer((height, width), "u4")
        samples = min(settings.samples, LAYER_SAMPLES)
        out = albedo, normal, depth, number
        kernel(self._rays.padded, self._view[()], samples, *out, *self._geometry.rows, self._materials)
        found = {"albedo": albedo.read()[..., :3], "normal": normal.read()[..., :3]}
        found |= {"depth": depth.read(), "id": number.read()}
        if self._rays.spread is not None and self._sample:
            spread = self._film.shown[1].read()
            counts = np.where(spread[..., 3] > 0, spread[..., 3], self._sample)
            found["variance"] = spread[..., :3] / np.maximum(counts - 1, 1)[..., None].astype("f4")
            found["samples"] = counts.astype("u4")
        return found

    def pick(self, settings: Settings, size: tuple[int, int], x: float, y: float) -> float | None:
        """How far along the view, as focus_distance is told, lies what is seen `x`, `y` pixels from the picture's upper
        left corner; None for nothing. The picture drawn so far stays as it is."""
        self._arrange(settings)
        found = self.device.buffer(1)
        view = launch_params(settings, size, (0, 0, *size))[()]
        pick = self._layers_kernel("pick", settings)
        pick(1, view, np.float32(x), np.float32(y), found, *self._geometry.rows)
        distance = float(found.read()[0])
        return distance if np.isfinite(distance) else None

    def _layers_kernel(self, entry: str, settings: Settings):
        constants = compile_constants(self._scheduled(settings), self._geometry.has_spheres) | self._geometry.constants
        constants |= traversal_of(self._geometry.bvh).constants
        return self.device.kernel(aov_source(), entry, group_size=GROUP, **constants)

    def _draw_wavefront(self, settings: Settings, view, rays, scene) -> None:
        stage, path, tree, lights = self._stage, rays.path, scene.rows, self._lights
        stage["generate"](rays.padded, view, *rays.film, rays.living[0], *path)
        for depth in range(settings.max_depth):
            stage["trace"](rays.threads, view, rays.living[depth], rays.hitting, *path, rays.hits, *tree, lights.buffer)
            stage["shade"](
                rays.threads, view, depth, rays.hitting, rays.living[depth + 1], rays.lit, *path, rays.hits,
                rays.light_directions, rays.light_brings, *tree, self._materials, lights.buffer,
            )  # fmt: skip
            if settings.direct_lighting != "bsdf" and lights.count:
                to_light = rays.light_directions, rays.light_brings
                stage["connect"](rays.threads, rays.lit, rays.origins, *to_light, rays.radiances, *tree)
        stage["accumulate"](rays.padded, view, rays.radiances, *rays.film)

    def _draw_regenerate(self, settings: Settings, view, rays, scene) -> None:
        rays.counts.fill(0)
        threads = min(rays.padded, PERSISTENT_THREADS)
        self._stage["regenerate"](
            threads, view, rays.counts, *rays.film, *scene.rows, self._materials, self._lights.buffer
        )

    def _draw_megakernel(self, settings: Settings, view, rays, scene) -> None:
        threads = rays.padded // 32 if self._alone else rays.padded
        self._stage["megakernel"](
            threads, view, rays.living[0], *rays.film, *scene.rows, self._materials, self._lights.buffer
        )

    def _prepare(self, settings: Settings, size, tile: Tile) -> None:
        """Uploads and compiles what changed since the last draw, and starts from the first sample."""
        self._arrange(settings)
        if self._rays_key != (tile[2:], _layout(settings)):
            self._rays = Rays(self.device, tile[2:], *_layout(settings))
            self._rays_key = tile[2:], _layout(settings)
            self._film = Film(self.device, self._rays.film)
        materials = material_rows(settings, self._geometry.models)
        self._materials = self.device.buffer(len(materials), MATERIAL).write(materials)
        placed = self._geometry.shining(settings, materials)
        lamps = (getattr(settings, name) for name in LIGHT_SETTINGS)
        lights_key = self._shape_key, materials.tobytes(), placed.tobytes(), *lamps
        if lights_key != self._lights_key:
            self._lights = LightSampler(self.device, settings, self._geometry.primitives, materials, placed)
            self._lights_key = lights_key
        constants = compile_constants(settings, self._geometry.has_spheres, self._alone) | self._geometry.constants
        constants |= self._lights.constants | traversal_of(self._geometry.bvh).constants
        key = (settings.schedule, *(v for v in constants.values() if isinstance(v, int)))
        if key not in self._stages:
            self._stages[key] = {name: self._kernel(name, constants) for name in STAGES[settings.schedule]}
        self._stage = self._stages[key]
        self._view = launch_params(settings, size, tile, self._lights.fields)
        self._film.begin()
        self._drawn, self._sample, self._done = (settings, size, tile), 0, False

    def _arrange(self, settings: Settings) -> None:
        """The geometry of the settings, built anew where its shapes changed."""
        shapes = [getattr(settings, name) for name in (*SHAPES, "models")]
        names = tuple(material.name for material in settings.materials)
        placed = settings.scattered, tuple((i.shape, i.material) for i in settings.instances)
        shape_key = (*shapes, settings.builder, settings.bvh, names, placed, len(settings.distance_fields))
        if shape_key != self._shape_key:
            self._geometry, self._shape_key = Geometry(self.device, settings), shape_key
        self._geometry.place(settings)

    def report(self) -> dict[str, Any]:
        """Samples drawn, primitives, and by depth the rays alive and the words of 32 rays that were skipped whole."""
        if self._drawn is None:
            return {}
        settings = self._drawn[0]
        told = {"samples": self._sample, "primitives": self._geometry.primitive_count, "schedule": settings.schedule}
        if settings.schedule == "regenerate":
            told["active rays"] = [int(n) for n in self._rays.counts.read()[1 : 1 + settings.max_depth]]
        elif settings.schedule == "megakernel":
            counts = [self._counted(self._rays.living[0], depth, MOST_DEPTHS) for depth in range(settings.max_depth)]
            told |= {"active rays": [live for live, _ in counts], "empty stencil words": [empty for _, empty in counts]}
        elif settings.stencil == "bits":
            counts = [self._counted(row, 0, 1) for row in self._rays.living[: settings.max_depth]]
            told |= {"active rays": [live for live, _ in counts], "empty stencil words": [empty for _, empty in counts]}
        return told

    def _counted(self, row, first: int, step: int) -> tuple[int, int]:
        """Rays in every `step`-th word of a row from the `first` on, and words without any."""
        counts = self.device.buffer(2, "u4").fill(0)
        self._stage["count_rays"](self._rays.words, row, first, step, self._rays.words, counts)
        live, empty = counts.read()
        return int(live), int(empty)


def _is_dealt(settings: Settings) -> bool:
    """Whether a pixel takes the samples that all take, so that they may be drawn in ranges."""
    return settings.noise_threshold == 0


def _layout(settings: Settings) -> tuple:
    """What of the settings the rays' buffers depend on."""
    rows_of_a_hit = 2 if settings.has_instances or settings.models else 1
    return settings.max_depth, settings.stencil, settings.schedule, rows_of_a_hit, settings.keeps_variance
