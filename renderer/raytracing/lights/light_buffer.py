"""The light sampler: all lights of a scene in one buffer, with a CDF by power from which kernels select a light.

Area lights are emissive primitives; the other lights are suns, point lights and the environment. If there are many, a
light tree (light_tree.py) samples the area and point lights, and the CDF has one entry for the tree. The buffer also
holds the records of fog and volumes (volumes.py). shaders/raytracing/lights/light_rows.h describes its layout.
pictures/raytrace.py makes a LightSampler when one of settings.LIGHT_SETTINGS or the geometry changes.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from renderer.bvh.primitives import areas, float64_columns, material_of
from renderer.formats.images import LUMINANCE
from renderer.gpu.device import Device
from renderer.raytracing.geometry import NO_LIGHTS, InstancedLights, StaticPrimitives
from renderer.raytracing.lights import environment
from renderer.raytracing.lights.caustic_shapes import ball_rows, mesh_rows
from renderer.raytracing.lights.light_profiles import load_profile, profile_rows
from renderer.raytracing.lights.light_tree import LightBounds, build_light_tree
from renderer.raytracing.material_files import declares
from renderer.raytracing.settings import Settings
from renderer.raytracing.volumes import volume_rows

LIGHT_POINT, LIGHT_ENVIRONMENT, LIGHT_PROFILE = -1.0, -2.0, -3.0  # NonAreaLight.kind; the same in light_rows.h
# Light ids (light_rows.h): an index of a static primitive; INSTANCED_LIGHT plus an index of InstancedLights.triangles;
# the complement ~k of an index of `others`; LIGHT_TREE_ID for the entry of the tree.
INSTANCED_LIGHT, LIGHT_TREE_ID = 1 << 30, ~(1 << 28)
MIN_TREE_LIGHTS = 1000  # lights for which "auto" takes a tree; an emissive mesh of some hundred triangles gains nothing
MIN_TREE_POINTS = 8  # point lights for which "auto" takes a tree: at equal time the variance is 3 to 12 times lower


def has_non_area_lights(settings: Settings) -> bool:
    """Returns True if there is a sun, a point light, a sky or an environment map."""
    return bool(settings.suns or settings.point_lights) or environment.has_environment(settings)


class NonAreaLight(NamedTuple):
    """A sun (`kind` is 1 - cos(angular radius)), point light or environment, as light_rows.h stores them."""

    position: np.ndarray  # (3,) of a point light; the unit direction towards a sun
    kind: float  # 1 - cos(angular radius) of a sun, 0 for a delta sun; otherwise LIGHT_POINT and so on, below 0
    emitted: np.ndarray  # (3,) radiance, intensity (point) or irradiance (delta sun)
    power: float  # luminance of the emitted power, over pi
    falloff: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)  # PointLight.falloff: an axis vector and an offset

    @property
    def is_point(self) -> bool:
        """True for point lights, with a photometric file and without."""
        return self.kind == LIGHT_POINT or self.kind <= LIGHT_PROFILE

    @property
    def sun_irradiance(self) -> np.ndarray:
        """The irradiance (3,) of a surface that faces this sun.

        For a disc, radiance times projected solid angle, pi sin(radius)^2; sin^2 = (1 - cos) (1 + cos) is k (2 - k) of
        k = `kind`. A delta sun emits its irradiance.
        """
        return self.emitted * (np.pi * self.kind * (2 - self.kind) if self.kind > 0 else 1.0)


class LightSampler:
    """The lights of one Settings on a device.

    `buffer` (rows, 4) float32 holds the lights, and `fields` are the launch parameters that locate them in it. `count`
    is the number of entries of the CDF; a light tree is one entry. `area` and `others` are the lights on the host,
    `environment` is the distribution of the environment map or None. Of the constructor's arguments, `primitives` are
    the primitives of the static BVH, `materials` (m,) MATERIAL, `instanced` the emissive triangles of instances.

    The constructor collects the lights and their powers, makes the CDF, and appends the rows of the buffer to `parts`,
    in the order that shaders/raytracing/lights/light_rows.h describes.
    """

    usual_constants: ClassVar = {"INSTANCED_LIGHTS": 0, "LIGHT_TREE": 0}  # `constants` of most scenes

    def __init__(
        self,
        device: Device,
        settings: Settings,
        primitives: StaticPrimitives,
        materials: np.ndarray,
        instanced: InstancedLights = NO_LIGHTS,
    ):
        radiance = environment.environment_map(settings)
        is_preset = settings.environment.preset != "none"
        cdf_size = environment.MAX_PRESET_CDF_SIZE if is_preset else environment.MAX_CDF_SIZE
        cdf = self.environment = environment.environment_cdf(radiance, cdf_size) if radiance is not None else None
        has_area = (_luminance(materials) > 0).any()  # else `primitives.rows` is not read from the device
        area = self.area = _area_lights(primitives.rows if has_area else primitives.none, materials, instanced)
        others = self.others = _non_area_lights(settings, _scene_radius2(primitives.bounds, materials), cdf)
        selection = _select_by_power(settings, area, others)
        self.count = len(selection.cdf)
        triangles = instanced.triangles.view("f4").reshape(-1, 4)
        self.constants = {"INSTANCED_LIGHTS": int(len(triangles) > 0), "LIGHT_TREE": int(selection.has_tree)}
        irradiances = _level_irradiances(others, radiance)
        group_rows = _group_rows(settings, others)
        # With `caustics`, two rows for each smooth sphere or mesh whose caustics are sampled
        balls = np.concatenate([ball_rows(settings), mesh_rows(settings, primitives.bounds)])
        profiled = [light for light in settings.point_lights if light.file]
        has_directory = bool(profiled) or settings.has_volumes or bool(settings.light_groups) or len(balls) > 0
        directory = np.zeros((int(has_directory), 4), "i4")
        records = _light_records(others, selection, irradiances @ LUMINANCE)
        parts = [selection.cdf, triangles, group_rows, directory.view("f4"), records]

        def next_row() -> int:
            return sum(map(len, parts))

        total, irradiance = selection.total_power, irradiances.sum(0)
        self.fields: dict[str, Any] = {
            "light_count": self.count, "inverse_light_power": 1 / total if total else 0.0,
            "non_area_lights": next_row() - len(records),
            "sun_count": sum(light.kind >= 0 for light in others),
            "inverse_irradiance": (*np.divide(1, irradiance, out=np.zeros(3), where=irradiance > 1e-38), 0.0),
        }  # fmt: skip
        if radiance is not None and cdf is not None:
            rotation = 0.0 if settings.sky.strength else settings.environment.rotation_degrees / 360
            fields, rows = _environment_rows(radiance, cdf, next_row(), rotation, selection.probability[-1])
            self.fields |= fields
            parts += rows
        if selection.has_tree:
            points = [(~index, light) for index, light in enumerate(others) if light.is_point]
            fields, rows = _tree_rows(area, points, next_row())
            self.fields |= fields | {"light_tree_probability": selection.probability[0]}
            parts += rows
        if profiled:
            directory[0, 2] = next_row()
            parts += profile_rows(profiled, int(directory[0, 2]))
        if settings.has_volumes:
            directory[0, 0], directory[0, 3] = next_row(), len(settings.point_lights)
            directory[0, 1], rows = volume_rows((settings.fog, *settings.volumes), int(directory[0, 0]))
            parts += rows
        if len(balls):  # with neither fog nor volumes
            directory[0, :2] = next_row(), len(balls) // 2
            parts += [balls]
        buffer_rows = np.concatenate(parts) if next_row() else np.zeros((1, 4), "f4")
        self.buffer = device.buffer(buffer_rows.shape).write(buffer_rows)


class _Selection(NamedTuple):
    """Probabilities, by power, with which a kernel selects a light."""

    cdf: np.ndarray  # (k, 4), _cdf_rows()
    probability: np.ndarray  # of each area light, or of the light tree; then of each non-area light
    total_power: float
    has_tree: bool


def _select_by_power(settings: Settings, area: "AreaLights", others: list[NonAreaLight]) -> _Selection:
    """Returns the selection; with a light tree, one entry stands for all area and point lights."""
    area_power, power = area.power, np.array([light.power for light in others], "f8")
    ids, is_point = area.ids, np.array([light.is_point for light in others], bool)
    if settings.has_volumes:
        power = _limit_infinite(power, ~is_point, float(area_power.sum()))  # suns and environment are infinite
    has_tree = uses_tree(settings, len(area.ids), int(is_point.sum()))
    if has_tree:
        area_power = np.array([area_power.sum() + power[is_point].sum()])
        power, ids = np.where(is_point, 0, power), np.array([LIGHT_TREE_ID], "i4")
    both, total = np.concatenate([area_power, power]), float(area_power.sum() + power.sum())
    cdf = _cdf_rows(both, np.concatenate([ids, ~np.arange(len(others), dtype="i4")]))
    return _Selection(cdf, both / (total or 1), total, has_tree)


def _light_records(others: list[NonAreaLight], selection: _Selection, luminance: np.ndarray) -> np.ndarray:
    """Returns the rows (3 n, 4) of n lights; `luminance`: of the irradiance by each sun, then by the environment.

    Shadow catchers select a sun by a CDF of `luminance`; the remaining probability selects the environment.
    """
    records = np.zeros((len(others), 3, 4), "f4")
    probabilities = selection.probability[len(selection.probability) - len(others) :]
    for record, light, probability in zip(records, others, probabilities, strict=True):
        in_tree = selection.has_tree and light.is_point
        # A light of the tree has 1: the kernel multiplies by the probability that the tree finds.
        record[:] = (*light.position, light.kind), (*light.emitted, 1.0 if in_tree else probability), light.falloff
    # Suns come first; they have no falloff, whose x holds their CDF.
    records[: len(luminance) - 1, 2, 0] = (np.cumsum(luminance) / (luminance.sum() or 1))[:-1].astype("f4")
    return records.reshape(-1, 4)


def _group_rows(settings: Settings, others: list[NonAreaLight]) -> np.ndarray:
    """Returns the light groups of the background, then of the non-area lights, as rows (k, 4), in backward order.

    Kernels read the words backwards from the directory (LIGHT_GROUP_WORD in light_rows.h).
    """
    if not settings.light_groups:
        return np.zeros((0, 4), "f4")
    names = ["environment"] + ["environment"] * len(others)  # the sky's sun, too
    names[1 : 1 + len(settings.suns)] = [where for where, _ in settings.items("suns")]
    first = 1 + sum(light.kind >= 0 for light in others)
    names[first : first + len(settings.point_lights)] = [where for where, _ in settings.items("point_lights")]
    words = np.array([settings.light_group(name) for name in names], "i4")
    return np.pad(words, (0, -len(words) % 4))[::-1].copy().view("f4").reshape(-1, 4)


def _limit_infinite(power: np.ndarray, is_infinite: np.ndarray, area_power: float) -> np.ndarray:
    """Returns the powers (n,), with infinite lights scaled down to at most the power of all other lights together.

    The power of a sun grows with the scene's area, so in a large scene with fog, lamps would get too few samples.
    """
    local, infinite = area_power + power[~is_infinite].sum(), power[is_infinite].sum()
    return np.where(is_infinite, power * (local / infinite), power) if infinite > local > 0 else power


def uses_tree(settings: Settings, area_lights: int, points: int) -> bool:
    """Returns True if a light tree samples the area and point lights; the arguments are their numbers."""
    lights = area_lights + points
    if settings.light_sampler == "auto":
        return lights >= MIN_TREE_LIGHTS or points >= MIN_TREE_POINTS
    return settings.light_sampler == "tree" and lights > 0


def _cdf_rows(power: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Returns the entries (k, 4) of the CDF, CDF value and light id, for the k lights whose power is above 0."""
    emits = power > 0
    table = np.zeros((int(emits.sum()), 4), "f4")
    if len(table):
        table[:, 0] = environment.cdf_u32(power[emits])[1:].view("f4")  # the bits of uint32 values; [0] is always 0
        table[:, 1] = ids[emits].view("f4")
    return table


def _tree_rows(
    area: "AreaLights", points: list[tuple[int, NonAreaLight]], first: int
) -> tuple[dict[str, float], list[np.ndarray]]:
    """Builds the tree over area lights and point lights (id, light); returns its launch parameters and rows.

    The rows, arrays (k, 4) stored from row `first` on, are nodes, then sorted keys from a primitive to its leaf.
    """
    bounds, ids = area.bounds, area.ids
    points = [(index, light) for index, light in points if light.power > 0]
    if points:
        position = np.array([light.position for _, light in points], "f8")
        # `power` of a point light is 4 pi times its intensity, over pi. It emits around: all normals, cos_o = -1.
        count, intensity = len(points), np.array([light.power / 4 for _, light in points])
        axis, cos_o, cos_e = np.tile([0.0, 0.0, 1.0], (count, 1)), np.full(count, -1.0), np.zeros(count)
        point_bounds = LightBounds(position, position, axis, cos_o, cos_e, intensity)
        bounds = LightBounds(*(np.concatenate(pair) for pair in zip(bounds, point_bounds, strict=True)))
        ids = np.concatenate([ids, np.array([index for index, _ in points], "i4")])
    tree = build_light_tree(bounds, ids)
    order = np.lexsort((area.primitive_ids, area.instances))
    keys = np.zeros((len(order), 4), "i4")
    keys[:, 0], keys[:, 1] = area.instances[order], area.primitive_ids[order]
    keys[:, 2] = tree.leaf_of[: len(order)][order]
    fields: dict[str, float] = {
        "light_tree": first,
        "light_tree_keys": first + 4 * len(tree.nodes),
        "light_tree_key_count": len(keys),
    }
    return fields, [tree.nodes.reshape(-1, 4), keys.view("f4")]


def _level_irradiances(lights: list["NonAreaLight"], radiance: np.ndarray | None) -> np.ndarray:
    """Returns the irradiance (suns + 1, 3) of an unoccluded level surface by each sun, then by the environment."""
    suns = [light for light in lights if light.kind >= 0]
    irradiances = np.zeros((len(suns) + 1, 3))
    for row, light in zip(irradiances, suns, strict=False):
        row[:] = light.sun_irradiance * max(float(light.position[1]), 0.0)
    if radiance is not None:
        irradiances[-1] = environment.level_irradiance(radiance)
    return irradiances


def _environment_rows(
    radiance: np.ndarray, cdf: environment.EnvironmentCdf, first: int, rotation: float, probability: float
) -> tuple[dict[str, float], list[np.ndarray]]:
    """Returns the environment's launch parameters and rows (k, 4), from row `first` on: pixels, CDFs, guide tables.

    `rotation` is in turns, `probability` is the probability of selecting the environment.
    """
    height, width = radiance.shape[:2]
    pixels = np.zeros((height * width, 4), "f4")
    pixels[:, :3] = radiance.reshape(-1, 3)
    cdfs = cdf.marginal, cdf.conditional, cdf.level
    guide, column_guides, level_guide = (environment.cdf_guide(c).ravel().view("u4") for c in cdfs)
    words = np.concatenate([cdf.marginal, cdf.conditional.ravel(), guide, column_guides, cdf.level, level_guide])
    fields = {
        "environment": first, "environment_width": width, "environment_height": height,
        "environment_rotation": rotation % 1.0, "environment_probability": probability,
        "env_cdf": first + height * width, "env_cdf_width": cdf.conditional.shape[1] - 1,
        "env_cdf_height": len(cdf.marginal) - 1,
    }  # fmt: skip
    return fields, [pixels, np.pad(words, (0, -len(words) % 4)).view("f4").reshape(-1, 4)]


class AreaLights(NamedTuple):
    """The n emissive primitives of a scene: static primitives first, then triangles of instances."""

    ids: np.ndarray  # (n,) light ids, light_rows.h
    power: np.ndarray  # (n,) luminance of the emitted power, over pi
    bounds: LightBounds
    instances: np.ndarray  # (n,) index of the instance, -1 for static primitives
    primitives: np.ndarray  # (n,) PRIMITIVE in world space

    @property
    def primitive_ids(self) -> np.ndarray:
        """The ids (n,) of the primitives."""
        return self.primitives["v0"].view("i4")[:, 3]


def _area_lights(primitives: np.ndarray, materials: np.ndarray, instanced: InstancedLights) -> AreaLights:
    """Returns the area lights sorted by primitive id, so that they are the same for every BVH.

    A primitive that a presplit BVH repeats is one light.
    """
    static, radiance = _emissive(primitives, materials)
    primitive_ids = primitives["v0"].view("i4")[:, 3]
    by_id = np.argsort(primitive_ids[static], kind="stable")  # np.unique would import numpy.ma, which takes 10 ms
    ids = primitive_ids[static][by_id]
    first = by_id[np.diff(ids, prepend=ids[:1] - 1) != 0]
    static, radiance = static[first], radiance[first]
    chosen_instanced, instanced_radiance = _emissive(instanced.triangles, materials)
    lights = np.concatenate([primitives[static], instanced.triangles[chosen_instanced]])
    radiance = np.concatenate([radiance, instanced_radiance])
    instances = np.concatenate([np.full(len(static), -1), instanced.instances[chosen_instanced]]).astype("i4")
    light_ids = np.concatenate([static, INSTANCED_LIGHT + chosen_instanced]).astype("i4")
    return AreaLights(light_ids, radiance * areas(lights), _primitive_bounds(lights, radiance), instances, lights)


def _emissive(primitives: np.ndarray, materials: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the indices (n,) of emissive primitives of positive area, and the luminances (n,) of their radiance."""
    radiance = _luminance(materials)[material_of(primitives)]
    bright = np.flatnonzero(radiance > 0)
    bright = bright[areas(primitives[bright]) > 0]
    return bright, radiance[bright]


def _luminance(materials: np.ndarray) -> np.ndarray:
    """Returns the luminances (m,) of the radiance that materials (m,) MATERIAL emit."""
    return np.asarray(materials["emission"][:, :3].astype("f8") @ LUMINANCE)


def _primitive_bounds(primitives: np.ndarray, radiance: np.ndarray) -> LightBounds:
    """Returns the light bounds of triangles and spheres (n,) PRIMITIVE; `radiance` (n,) are luminances."""
    corner, a, b, radius = float64_columns(primitives)
    low = corner + np.minimum(np.minimum(a, b), 0) - radius
    high = corner + np.maximum(np.maximum(a, b), 0) + radius
    normal = np.cross(a, b)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    axis = np.where(length > 0, normal / np.where(length > 0, length, 1), [0.0, 0.0, 1.0])
    cos_o = np.where(radius[:, 0] > 0, -1.0, 1.0)
    seen_area = np.where(radius[:, 0] > 0, np.pi * radius[:, 0] ** 2, length[:, 0] / 2)
    return LightBounds(low, high, axis, cos_o, np.zeros(len(low)), radiance * seen_area)


def _scene_radius2(bounds: dict[int, tuple[np.ndarray, np.ndarray]], materials: np.ndarray) -> float:
    """Returns the square of the scene's radius, to which the power of infinite lights is proportional.

    `bounds` are min and max corners by material index; shadow catchers do not count.
    """
    is_catcher = declares(materials, "shadow_catcher")
    corners = [pair for material, pair in bounds.items() if not is_catcher[material]]
    if not corners:
        return 1.0
    low, high = np.min([low for low, _ in corners], 0), np.max([high for _, high in corners], 0)
    return max(float(((high - low) ** 2).sum()) / 4, 1e-12)


def _non_area_lights(settings: Settings, radius2: float, cdf: environment.EnvironmentCdf | None) -> list[NonAreaLight]:
    """Returns the non-area lights: suns, then point lights, then the environment; `radius2` as of _scene_radius2()."""
    lights = []
    suns = [(sun.direction, np.radians(sun.angle_degrees) / 2, np.array(sun.irradiance)) for sun in settings.suns]
    if settings.sky.strength and settings.sky.sun_scale:
        disc = environment.sun_radiance(settings.sky) * np.pi * np.sin(environment.SUN_RADIUS) ** 2
        suns.append((tuple(environment.sun_direction(settings.sky)), environment.SUN_RADIUS, disc))
    for direction, radius, irradiance in suns:
        one_minus_cos = 2 * np.sin(radius / 2) ** 2
        unit = np.array(direction) / np.linalg.norm(direction)
        emitted = irradiance / (np.pi * np.sin(radius) ** 2) if one_minus_cos else irradiance
        power = radius2 * float(emitted @ LUMINANCE) * (2 * np.pi * one_minus_cos if one_minus_cos > 0 else 1.0)
        lights.append(NonAreaLight(unit, one_minus_cos, emitted, power))
    profiles = 0
    for point in settings.point_lights:
        intensity = np.array(point.intensity)
        power, kind = 4 * float(intensity @ LUMINANCE), LIGHT_POINT
        if point.file:
            power *= load_profile(point.file).lumens() / (4 * np.pi)
            kind, profiles = LIGHT_PROFILE - profiles, profiles + 1
        lights.append(NonAreaLight(np.array(point.position), kind, intensity, power, point.falloff))
    if cdf is not None:
        lights.append(NonAreaLight(np.zeros(3), LIGHT_ENVIRONMENT, np.zeros(3), radius2 * cdf.luminance))
    return lights
