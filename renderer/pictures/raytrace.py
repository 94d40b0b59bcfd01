"""Ray tracer: progressive paths in wavefront stages behind the bitmask stencil (paper 3; shaders/raytrace.cu)."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from renderer import MachineCannot, bvh, microfacet, procedural
from renderer.gpu import Gpu
from renderer.gpu.source import SHADERS, Generated
from renderer.mesh import PRIMITIVE, areas, load_mesh, numbered, spheres, triangles
from renderer.scene import Scene, Tone, setting
from renderer.view import Camera

LAYER_SAMPLES = 16  # that albedo and normal are the means of
GROUP = 128  # threads: four words of the stencil
REGENERATE_GROUP = 64
WORDS = 4  # that a warp of a stage looks at one after the other
LISTED_THREADS = 1 << 18  # that walk the lists of living rays
PERSISTENT_THREADS = 1 << 18  # of the schedule "regenerate"; more than are resident at once do no harm
REFILL = 0  # paths of a warp that may live on while new ones are started
STAGES = {
    "grid": ("generate", "trace", "shade", "connect", "accumulate", "count_rays"),
    "compact": ("generate", "count_words", "list_rays", "bounce_listed", "connect_listed", "accumulate", "count_rays"),
    "regenerate": ("regenerate",),
}
MATERIALS = tuple(sorted(path.stem for path in (SHADERS / "materials").glob("*.h")))
STENCILS = {"off": 0, "flags": 1, "bits": 2}
GATHERS = {"auto": 0, "ballot": 1, "votes": 2, "tree": 3}
VIEW = np.dtype([("eye", "f4", (4,)), ("right", "f4", (4,)), ("up", "f4", (4,)), ("forward", "f4", (4,)),
                 ("horizon", "f4", (4,)), ("zenith", "f4", (4,)), ("width", "i4"), ("height", "i4"), ("left", "i4"),
                 ("top", "i4"), ("across", "i4"), ("down", "i4"), ("tiles", "i4"), ("seed", "i4"), ("sample", "i4"),
                 ("depth", "i4"), ("light_count", "i4"), ("inverse_light_power", "f4"),
                 ("rays", "i4"), ("lens_radius", "f4"), ("focus_distance", "f4"), ("spare", "i4", (5,))])  # fmt: skip
MATERIAL = np.dtype([("color", "f4", (4,)), ("emission", "f4", (4,)), ("other", "f4", (4,)),
                     ("kind", "i4"), ("refraction", "f4"), ("size", "f4"), ("roughness", "f4"),
                     ("metallic", "f4"), ("spare", "i4", (7,))])  # fmt: skip
SHAPES = ("spheres", "quads", "meshes", "procedural", "attractors")
MOST_BALLS = 1 << 21
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
Colour = tuple[float, float, float]
Point = tuple[float, float, float]
Tile = tuple[int, int, int, int]  # left, top, width, height in pixels


@dataclass(frozen=True)
class Material:
    """How surfaces of this name look; every material with an emission shines from its front."""

    name: str
    kind: Literal[MATERIALS] = "diffuse"
    color: Colour = setting((0.75, 0.75, 0.75), 0.0, 1.0, "reflected share of linear red, green, blue")
    emission: Colour = setting((0.0, 0.0, 0.0), 0.0, 1e6, "radiance")
    refraction: float = setting(1.5, 0.1, 10.0, "index of glass")
    other: Colour = setting((0.1, 0.1, 0.1), 0.0, 1.0, "the checker's second colour")
    size: float = setting(1.0, 1e-9, 1e9, "of the checker's cubes", logarithmic=True)
    roughness: float = setting(0.0, 0.0, 1.0, "perceptual, of glass, conductor and metallic")
    metallic: float = setting(0.0, 0.0, 1.0, "from a dielectric to a metal")


@dataclass(frozen=True)
class Sphere:
    material: str
    centre: Point = (0.0, 0.0, 0.0)
    radius: float = setting(1.0, 1e-9, 1e9)


@dataclass(frozen=True)
class Quad:
    """Four corners in order; the front is where they run counter-clockwise."""

    material: str
    corners: tuple[Point, Point, Point, Point]


@dataclass(frozen=True)
class MeshShape:
    """A mesh file, scaled, then turned about y, then moved."""

    material: str
    file: str = setting("", file=True)
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    turn_degrees: float = 0.0
    position: Point = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Procedural:
    """A shape made from a number (renderer/procedural.py), scaled, then moved; z becomes up where `upright` says so."""

    material: str
    kind: Literal[tuple(procedural.MAKERS)]
    level: int = setting(3, 0, 50)
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    position: Point = (0.0, 0.0, 0.0)
    upright: bool = False

    def __post_init__(self):
        if self.level > procedural.LEVELS[self.kind]:
            raise ValueError(f"level is {self.level}; {self.kind} allows 0 to {procedural.LEVELS[self.kind]}")


@dataclass(frozen=True)
class Attractor:
    """An iterated function system as balls, one for each word of `level` maps; with a shining material it is a light.

    A map is the 3 x 4 matrix of an affine contraction of space, row by row, as in scenes of the picture flame3d.
    """

    material: str
    maps: tuple[tuple[float, float, float, float, float, float, float, float, float, float, float, float], ...]
    level: int = setting(6, 0, 20)
    radius: float = setting(0.5, 1e-9, 1e9, "of the ball of the empty word")
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    position: Point = (0.0, 0.0, 0.0)

    def __post_init__(self):
        if not 1 <= len(self.maps) ** self.level <= MOST_BALLS:
            raise ValueError(f"{len(self.maps)} maps at level {self.level} make more than {MOST_BALLS} balls, or none")
        for index, row in enumerate(self.maps):
            stretch = np.linalg.norm(np.reshape(row, (3, 4))[:, :3], 2)
            if not stretch < 1:
                raise ValueError(f"maps[{index}] stretches by {stretch:.3g}; an attractor needs contractions, below 1")


@dataclass(frozen=True)
class Settings:
    view: Camera = Camera()
    lens_radius: float = setting(0.0, 0.0, 1e6, "of a thin lens; 0 is a pinhole, sharp everywhere")
    focus_distance: float = setting(0.0, 0.0, 1e9, "along the view, of the plane in focus; 0 is the view's target")
    depth: int = setting(6, 1, 16, "rays a path may have", key="d")
    samples: int = setting(64, 1, 1 << 20, "of the finished picture", logarithmic=True)
    seed: int = setting(1, 0, 2**31 - 1, "of the random numbers")
    stencil: Literal["bits", "flags", "off"] = setting(
        "bits", help="how dead rays are told: a bit each, an int each, not", key="b"
    )
    gather: Literal["auto", "ballot", "votes", "tree"] = setting(
        "auto", help="how 32 rays' bits become a word", key="g"
    )
    schedule: Literal["auto", "grid", "compact", "regenerate"] = setting(
        "grid", help="stages over all rays, over lists of living rays, or threads that start new paths", key="c"
    )
    tree: Literal["auto", "binary", "wide"] = setting("auto", help="nodes of two boxes, or of eight in bytes")
    builder: Literal["auto", "host", "device"] = setting("auto", help="who builds the tree: SAH here, or H-PLOC there")
    paths: Literal["full", "whitted"] = setting("full", help="whitted ends paths at the first diffuse surface")
    lights: Literal["sampled", "hit"] = setting(
        "sampled", help="aim shadow rays at lights, or wait for paths to hit them"
    )
    horizon: Colour = setting((0.0, 0.0, 0.0), 0.0, 1e6, "the sky's radiance at and below the horizon")
    zenith: Colour = setting((0.0, 0.0, 0.0), 0.0, 1e6, "the sky's radiance above")
    materials: tuple[Material, ...] = (Material("plain"),)
    spheres: tuple[Sphere, ...] = ()
    quads: tuple[Quad, ...] = ()
    meshes: tuple[MeshShape, ...] = ()
    procedural: tuple[Procedural, ...] = ()
    attractors: tuple[Attractor, ...] = ()

    def __post_init__(self):
        names = [material.name for material in self.materials]
        if len(set(names)) < len(names):
            raise ValueError(f"two materials have one name; the names are {', '.join(names)}")
        for group in SHAPES:
            for index, shape in enumerate(getattr(self, group)):
                if shape.material not in names:
                    raise ValueError(
                        f"{group}[{index}]: material is {shape.material!r}; allowed are {', '.join(names)}"
                    )


def open_file(path: Path) -> Scene:
    """The scene of a mesh file: the mesh on a floor under a plain studio light, seen from above its front."""
    vertices, _ = load_mesh(path)
    low, high = vertices.min(0).astype("f8"), vertices.max(0).astype("f8")
    centre, radius = (low + high) / 2, max(float(np.linalg.norm(high - low)) / 2, 1e-6)
    away = np.array([0.5, 0.35, 1.0]) / np.linalg.norm([0.5, 0.35, 1.0])
    camera = Camera(_point(centre + 2.7 * radius * away), _point(centre), fov_degrees=40.0)
    floor = low[1] - 1e-3 * radius
    x, z = centre[0], centre[2]
    lamp = centre + radius * np.array([-1.5, 3.5, 2.0])
    settings = Settings(
        view=camera,
        samples=64,
        horizon=(0.55, 0.6, 0.68),
        zenith=(0.25, 0.35, 0.55),
        materials=(
            Material("body", color=(0.72, 0.55, 0.4)),
            Material("floor", color=(0.5, 0.5, 0.5)),
            Material("lamp", "light", emission=(14.0, 13.0, 11.5)),
        ),
        meshes=(MeshShape("body", str(Path(path).resolve())),),
        quads=(
            Quad("floor", _square((x, floor, z), (20 * radius, 0, 0), (0, 0, 20 * radius))),
            Quad("lamp", _lamp(lamp, centre, radius)),
        ),
    )
    return Scene(Path(path), Path(path).stem, "raytrace", settings, Picture.tone)


def _lamp(position: np.ndarray, target: np.ndarray, radius: float):
    """Corners of a square of half-side `radius` at `position` that faces `target`."""
    towards = (target - position) / np.linalg.norm(target - position)
    first = np.cross(towards, [0, 1, 0])
    first *= radius / np.linalg.norm(first)
    return _square(position, first, np.cross(first, towards))


def _square(centre, first, second) -> tuple:
    """Corners about `centre` whose front is where second x first points."""
    c, a, b = np.array(centre, "f8"), np.array(first, "f8"), np.array(second, "f8")
    return tuple(_point(p) for p in (c - a - b, c - a + b, c + a + b, c + a - b))


def _point(p) -> Point:
    return tuple(float(x) for x in p)


def primitives_of(settings: Settings) -> np.ndarray:
    """All primitives (m,) of the shapes, numbered, with their rows of `materials`."""
    row = {material.name: index for index, material in enumerate(settings.materials)}
    parts = [spheres(np.array([s.centre]), np.array([s.radius]), row[s.material]) for s in settings.spheres]
    for quad in settings.quads:
        parts.append(triangles(np.array(quad.corners), np.array([[0, 1, 2], [0, 2, 3]]), row[quad.material]))
    for shape in settings.meshes:
        vertices, faces = load_mesh(shape.file)
        c, s = np.cos(np.radians(shape.turn_degrees)), np.sin(np.radians(shape.turn_degrees))
        matrix = shape.scale * np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
        parts.append(triangles(vertices @ matrix.T + shape.position, faces, row[shape.material]))
    for shape in settings.procedural:
        parts.append(_placed(procedural.make(shape.kind, shape.level), shape, row[shape.material]))
    for shape in settings.attractors:
        balls = procedural.attractor(np.reshape(shape.maps, (-1, 3, 4)), shape.level, shape.radius)
        parts.append(_placed(balls, shape, row[shape.material]))
    return numbered(np.concatenate(parts) if parts else triangles(np.zeros((0, 3)), np.zeros((0, 3), int)))


def _placed(primitives: np.ndarray, shape: Procedural | Attractor, material: int) -> np.ndarray:
    """Primitives with a Procedural's scale, turn, position and material."""
    for field in ("corner", "edge1", "edge2"):
        if getattr(shape, "upright", False):
            x, y, z = primitives[field][:, :3].T.copy()
            primitives[field][:, :3] = np.stack([y, z, x], 1)
        primitives[field][:, :3] *= np.float32(shape.scale)
    primitives["corner"][:, :3] += np.array(shape.position, "f4")
    primitives["edge2"][:, 3] *= np.float32(shape.scale)
    primitives["edge1"].view("i4")[:, 3] = material
    return primitives


def kernel_text() -> Generated:
    """raytrace.cu behind the switches over the files of shaders/materials."""
    includes = "".join(f'#include "materials/{name}.h"\n' for name in MATERIALS)
    scatters = "".join(
        f"    case {i}: return {name}_scatter(m, s, key, dimension, out);\n" for i, name in enumerate(MATERIALS)
    )
    evaluates = "".join(f"    case {i}: return {name}_evaluate(m, s, direction);\n" for i, name in enumerate(MATERIALS))
    text = (
        f'#include "surface.h"\n{microfacet.header()}{includes}'
        "DEVICE bool scatter(const Material m, const Surface s, uint key, uint dimension, Scatter *out) {\n"
        f"    switch (m.kind) {{\n{scatters}    }}\n    return false;\n}}\n"
        "DEVICE float4 evaluate(const Material m, const Surface s, float3 direction) {\n"
        f"    switch (m.kind) {{\n{evaluates}    }}\n    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);\n}}\n"
        '#include "raytrace.cu"\n'
    )
    return Generated("materials", text)


def layers_text() -> Generated:
    """The ray tracer's text with the kernel of its layers behind it."""
    colour = (
        "DEVICE float3 material_colour(const Material m, const Surface s) {\n"
        f"    return m.kind == {MATERIALS.index('checker')} ? checker_colour(m, s.point) : colour_of(m);\n}}\n"
    )
    return Generated("layers", f'{kernel_text().text}{colour}#include "layers.cu"\n')


class Geometry:
    """The shapes of one Settings on a device: tree, primitives in the tree's order, lights."""

    def __init__(self, device, settings: Settings):
        self.tree = bvh.tree_of(device, primitives_of(settings), settings.builder, settings.tree)
        self.primitives = self.tree.primitives.read()[: self.tree.count].view(PRIMITIVE).ravel()
        self.has_spheres = bool((self.primitives["edge2"][:, 3] > 0).any())
        self.rows = self.tree.nodes, self.tree.primitives
        self.lights = device.buffer((max(self.tree.count, 1), 2))
        self.light_count, self.inverse_light_power = 0, 0.0

    def shine(self, materials: np.ndarray) -> None:
        """Lists the primitives that shine, by power."""
        rows = self.primitives["edge1"].view("i4")[:, 3]
        power = (materials["emission"][:, :3] @ LUMINANCE)[rows]
        bright = np.flatnonzero(power > 0)
        numbers = self.primitives["corner"].view("i4")[bright, 3]
        bright = bright[np.argsort(numbers)]  # the same order for every tree
        power = power[bright] * areas(self.primitives[bright])
        bright, power = bright[power > 0], power[power > 0]
        self.light_count, total = len(bright), float(power.sum())
        self.inverse_light_power = 1 / total if total else 0.0
        table = np.zeros(self.lights.shape, "f4")
        table[: len(bright), 0] = np.cumsum(power) / (total or 1)
        table[: len(bright), 1] = bright.astype("i4").view("f4")
        self.lights.write(table)


class Rays:
    """The state of all rays of a picture's size on a device, and its frame."""

    def __init__(self, device, size: tuple[int, int], depth: int, stencil: str, schedule: str):
        width, height = size
        self.count = -(-width // 8) * -(-height // 4) * 32
        self.padded = -(-self.count // (GROUP * WORDS)) * GROUP * WORDS
        self.threads = self.padded // WORDS
        self.frame = device.buffer((height, width, 4))
        self.counts = device.buffer(17, "u4")
        if schedule == "regenerate":  # its paths live in registers
            return
        self.words = self.padded if stencil == "flags" and schedule == "grid" else self.padded // 32
        self.living = [device.buffer(self.words, "u4") for _ in range(depth + 1)]
        self.hitting, self.lit = device.buffer(self.words, "u4"), device.buffer(self.words, "u4")
        self.path = self.origins, self.directions, self.throughputs, self.radiances = _float4s(device, self.padded, 4)
        self.hits, self.light_directions, self.light_brings = _float4s(device, self.padded, 3)
        if schedule == "compact":
            self.list, self.list_count = device.buffer(self.padded, "u4"), device.buffer(1, "u4")
            self.sums = device.buffer(-(-self.words // GROUP), "u4")


def _float4s(device, count: int, number: int) -> list:
    return [device.buffer((count, 4)).fill(0) for _ in range(number)]


class Picture:
    """Draws Settings; one sample of every pixel a call."""

    tone = Tone(curve="none")

    def __init__(self, gpu: Gpu):
        self.device = gpu.device
        self.has_ballot = bvh.has_votes(self.device)
        self._stages: dict[tuple, dict] = {}
        self._drawn = self._shape_key = self._asked = self._answer = None
        self._sample = 0

    def _kernel(self, entry: str, constants: dict):
        group = REGENERATE_GROUP if entry == "regenerate" else GROUP
        return self.device.kernel(kernel_text(), entry, group=group, **constants)

    def draws(self, settings: Settings, size) -> int:
        return settings.samples

    def draw(self, settings: Settings, size: tuple[int, int], time: float, tile: Tile | None = None):
        tile = tile or (0, 0, *size)
        settings = self._scheduled(settings)
        if (settings, size, tile) != self._drawn:
            self._prepare(settings, size, tile)
        self._view["sample"] = self._sample
        view, rays, scene = self._view[()], self._rays, self._geometry
        getattr(self, f"_draw_{settings.schedule}")(settings, view, rays, scene)
        self._sample += 1
        return rays.frame

    def _scheduled(self, settings: Settings) -> Settings:
        """The settings with "auto" replaced: where warps vote, regeneration is the fastest of the schedules, which all
        give the same bits (tests/fps/results/h200_rays.jsonl); a stencil or gather that is asked for needs the grid.
        """
        if settings.schedule != "auto":
            return settings
        if settings is not self._asked:
            plain = settings.stencil == "bits" and settings.gather == "auto"
            self._asked = settings
            self._answer = replace(settings, schedule="regenerate" if self.has_ballot and plain else "grid")
        return self._answer

    def layers(self, settings: Settings, size: tuple[int, int], tile: Tile | None = None) -> dict[str, np.ndarray]:
        """albedo and normal (height, width, 3), depth (height, width) float32 along the ray, infinite where nothing is
        hit, and id (height, width) uint32, the primitive's number from 1, 0 for nothing; of the last draw's picture."""
        tile, settings = tile or (0, 0, *size), self._scheduled(settings)
        if (settings, size, tile) != self._drawn:
            self._prepare(settings, size, tile)
        constants = _constants(settings, self._geometry.has_spheres, isinstance(self._geometry.tree, bvh.Wide))
        kernel = self.device.kernel(layers_text(), "draw_layers", group=GROUP, **constants)
        _, _, width, height = tile
        albedo, normal = (self.device.buffer((height, width, 4)) for _ in range(2))
        depth, number = self.device.buffer((height, width)), self.device.buffer((height, width), "u4")
        samples = min(settings.samples, LAYER_SAMPLES)
        out = albedo, normal, depth, number
        kernel(self._rays.padded, self._view[()], samples, *out, *self._geometry.rows, self._materials)
        found = {"albedo": albedo.read()[..., :3], "normal": normal.read()[..., :3]}
        return found | {"depth": depth.read(), "id": number.read()}

    def _draw_grid(self, settings: Settings, view, rays, scene) -> None:
        stage, path, tree = self._stage, rays.path, scene.rows
        stage["generate"](rays.padded, view, rays.living[0], *path)
        for depth in range(settings.depth):
            stage["trace"](rays.threads, view, depth, rays.living[depth], rays.hitting, *path, rays.hits, *tree)
            stage["shade"](
                rays.threads, view, depth, rays.hitting, rays.living[depth + 1], rays.lit, *path, rays.hits,
                rays.light_directions, rays.light_brings, scene.tree.primitives, self._materials, scene.lights,
            )  # fmt: skip
            if settings.lights == "sampled" and scene.light_count:
                to_light = rays.light_directions, rays.light_brings
                stage["connect"](rays.threads, depth, rays.lit, rays.origins, *to_light, rays.radiances, *tree)
        stage["accumulate"](rays.padded, view, rays.radiances, rays.frame)

    def _draw_compact(self, settings: Settings, view, rays, scene) -> None:
        stage, path, tree = self._stage, rays.path, scene.rows
        to_light = rays.light_directions, rays.light_brings
        threads = min(rays.padded, LISTED_THREADS)
        stage["generate"](rays.padded, view, rays.living[0], *path)
        for depth in range(settings.depth):
            self._list(rays.living[depth], rays)
            rays.living[depth + 1].fill(0)
            rays.lit.fill(0)
            stage["bounce_listed"](
                threads, view, depth, rays.list, rays.list_count, rays.living[depth + 1], rays.lit, *path, *to_light,
                *tree, self._materials, scene.lights,
            )  # fmt: skip
            if settings.lights == "sampled" and scene.light_count:
                self._list(rays.lit, rays)
                stage["connect_listed"](
                    threads, rays.list, rays.list_count, rays.origins, *to_light, rays.radiances, *tree
                )
        stage["accumulate"](rays.padded, view, rays.radiances, rays.frame)

    def _list(self, row, rays) -> None:
        """The rays of a stencil row into rays.list, their number into rays.list_count."""
        self._stage["count_words"](rays.words, row, rays.words, rays.sums)
        self._stage["list_rays"](rays.words, row, rays.words, rays.sums, rays.list, rays.list_count)

    def _draw_regenerate(self, settings: Settings, view, rays, scene) -> None:
        rays.counts.fill(0)
        threads = min(rays.padded, PERSISTENT_THREADS)
        self._stage["regenerate"](threads, view, rays.counts, rays.frame, *scene.rows, self._materials, scene.lights)

    def _prepare(self, settings: Settings, size, tile: Tile) -> None:
        """Uploads and compiles what changed since the last draw, and starts from the first sample."""
        if settings.gather == "ballot" and not self.has_ballot:
            told = ", ".join(name for name in GATHERS if name != "ballot")
            raise MachineCannot(
                f"gather is ballot, and {self.device.name} has no vote that returns a mask; allowed are {told}"
            )
        shapes = [getattr(settings, name) for name in SHAPES]
        shape_key = (*shapes, settings.builder, settings.tree, tuple(material.name for material in settings.materials))
        if shape_key != self._shape_key:
            self._geometry, self._shape_key = Geometry(self.device, settings), shape_key
        before = self._drawn
        if before is None or before[2][2:] != tile[2:] or _layout(before[0]) != _layout(settings):
            self._rays = Rays(self.device, tile[2:], *_layout(settings))
        materials = material_rows(settings)
        self._materials = self.device.buffer(len(materials), MATERIAL).write(materials)
        self._geometry.shine(materials)
        tree, spheres = self._geometry.tree, self._geometry.has_spheres
        constants = _constants(settings, spheres, isinstance(tree, bvh.Wide), bvh.walks_together(tree))
        key = (settings.schedule, *(v for v in constants.values() if isinstance(v, int)))
        if key not in self._stages:
            self._stages[key] = {name: self._kernel(name, constants) for name in STAGES[settings.schedule]}
        self._stage = self._stages[key]
        self._view = view_of(settings, size, tile, self._geometry)
        self._drawn, self._sample = (settings, size, tile), 0

    def report(self) -> dict[str, Any]:
        """Samples drawn, primitives, and by depth the rays alive and the words of 32 rays that were skipped whole."""
        if self._drawn is None:
            return {}
        settings = self._drawn[0]
        told = {"samples": self._sample, "primitives": self._geometry.tree.count, "schedule": settings.schedule}
        if settings.schedule == "regenerate":
            told["live rays"] = [int(n) for n in self._rays.counts.read()[1 : 1 + settings.depth]]
        elif settings.stencil == "bits" or settings.schedule == "compact":
            counts = [self._counted(row) for row in self._rays.living[: settings.depth]]
            told |= {"live rays": [live for live, _ in counts], "skipped words": [empty for _, empty in counts]}
        return told

    def _counted(self, row) -> tuple[int, int]:
        counts = self.device.buffer(2, "u4").fill(0)
        self._stage["count_rays"](self._rays.words, row, self._rays.words, counts)
        live, empty = counts.read()
        return int(live), int(empty)


def _layout(settings: Settings) -> tuple:
    """What of the settings the rays' buffers depend on."""
    return settings.depth, settings.stencil, settings.schedule


def _constants(settings: Settings, spheres: bool, wide: bool = False, together: bool = False) -> dict:
    return {
        "STRICT": 1,
        "SPHERES": int(spheres),
        "STENCIL": STENCILS["bits" if settings.schedule == "compact" else settings.stencil],
        "SCHEDULE": list(STAGES).index(settings.schedule),
        "REFILL": REFILL,
        "WORDS": WORDS,
        "TOGETHER": int(together),
        "WIDE": int(wide),
        "GATHER": GATHERS[settings.gather],
        "WHITTED": int(settings.paths == "whitted"),
        "LIGHTS_SAMPLED": int(settings.lights == "sampled"),
        "View": VIEW,
        "Material": MATERIAL,
    }


def material_rows(settings: Settings) -> np.ndarray:
    """The materials (n,) MATERIAL; emission.w is 1 where a material shines."""
    rows = np.zeros(max(len(settings.materials), 1), MATERIAL)
    for row, material in zip(rows, settings.materials, strict=False):
        row["color"][:3], row["other"][:3], row["emission"][:3] = material.color, material.other, material.emission
        row["emission"][3] = any(material.emission)
        row["kind"] = MATERIALS.index(material.kind)
        row["refraction"], row["size"] = material.refraction, material.size
        row["roughness"], row["metallic"] = material.roughness, material.metallic
    return rows


def view_of(settings: Settings, size: tuple[int, int], tile: Tile, geometry: Geometry) -> np.ndarray:
    """The VIEW () of a camera: right and up scaled so that the whole picture spans -1 to 1 in both."""
    width, height = size
    camera = settings.view
    right, up, forward = camera.frame()
    reach = np.tan(np.radians(camera.fov_degrees) / 2)
    view = np.zeros((), VIEW)
    view["eye"][:3], view["forward"][:3] = camera.position, forward
    view["right"][:3], view["up"][:3] = right * reach * width / height, up * reach
    view["lens_radius"] = settings.lens_radius
    view["focus_distance"] = settings.focus_distance or np.linalg.norm(np.subtract(camera.target, camera.position))
    view["horizon"][:3], view["zenith"][:3] = settings.horizon, settings.zenith
    view["width"], view["height"] = size
    view["left"], view["top"], view["across"], view["down"] = tile
    view["tiles"] = -(-tile[2] // 8)
    view["rays"] = view["tiles"] * -(-tile[3] // 4) * 32
    view["seed"], view["depth"] = settings.seed, settings.depth
    view["light_count"], view["inverse_light_power"] = geometry.light_count, geometry.inverse_light_power
    return view
