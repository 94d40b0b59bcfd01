"""The light sampler's buffer: emissive primitives, suns, point lights and the environment, chosen by power.

shaders/raytracing/lights.h describes the layout of the buffer.
"""

from typing import Any, NamedTuple

import numpy as np

from renderer.bvh.primitives import PRIMITIVE, areas
from renderer.gpu.device import Device
from renderer.raytracing.environment import (
    SUN_RADIUS,
    EnvironmentCdf,
    cdf_u32,
    environment_cdf,
    environment_map,
    is_lit,
    level_irradiance,
    sun_direction,
    sun_radiance,
)
from renderer.raytracing.settings import MATERIALS, PointLight, Settings

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
LIGHT_POINT, LIGHT_ENVIRONMENT = -1.0, -2.0
INSTANCED_LIGHT = 1 << 30
NO_PRIMITIVES = np.zeros(0, PRIMITIVE)


def has_non_area_lights(settings: Settings) -> bool:
    """Whether there is a sun, a point light, a sky or an environment map."""
    return bool(settings.suns or settings.point_lights) or is_lit(settings.environment, settings.sky)


class NonAreaLight(NamedTuple):
    """A sun (`kind` is 1 - cos(angular radius)), point light or environment, as lights.h stores them."""

    place: np.ndarray  # (3,) unit direction towards a sun, or position of a point light
    kind: float
    emitted: np.ndarray  # (3,) radiance, intensity (point) or irradiance (delta sun)
    power: float  # over pi
    falloff: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)  # of a spot


class LightSampler:
    """The lights of one Settings on a device: `buffer` (rows, 4), and `fields`, the launch parameters that describe it.

    `primitives` (n,) are in the BVH's order, `materials` (m,) MATERIAL; `instanced` (k,) are the emissive triangles of
    instances in world space.
    """

    def __init__(
        self,
        device: Device,
        settings: Settings,
        primitives: np.ndarray,
        materials: np.ndarray,
        instanced: np.ndarray = NO_PRIMITIVES,
    ):
        lit = is_lit(settings.environment, settings.sky)
        radiance = environment_map(settings) if lit else None
        cdf = environment_cdf(radiance) if radiance is not None else None
        static_ids, static_power = _area_lights(primitives, materials)
        instanced_ids, instanced_power = _area_lights(instanced, materials)
        bounded = primitives[~_is_shadow_catcher(primitives, materials)]
        others = _non_area_lights(settings, _scene_radius2(bounded), cdf)
        power = np.concatenate([static_power, instanced_power, np.array([light.power for light in others], "f8")])
        ids = np.concatenate([static_ids, INSTANCED_LIGHT + instanced_ids, ~np.arange(len(others))]).astype("i4")
        total_power = float(power.sum())
        probability = power / (total_power or 1)
        emits = power > 0
        self.count = int(emits.sum())
        table = np.zeros((self.count, 4), "f4")
        if self.count:
            table[:, 0] = cdf_u32(power[emits])[1:].view("f4")
            table[:, 1] = ids[emits].view("f4")
        triangles = instanced.view("f4").reshape(-1, 4)
        self.constants = {"INSTANCED_LIGHTS": int(len(instanced) > 0)}
        self.fields: dict[str, Any] = {
            "light_count": self.count, "inverse_light_power": 1 / total_power if total_power else 0.0,
            "non_area_lights": len(table) + len(triangles),
            "sun_count": sum(light.kind >= 0 for light in others),
            "inverse_irradiance": _inverse_irradiance(others, radiance),
        }  # fmt: skip
        records = np.zeros((len(others), 3, 4), "f4")
        for record, light, p in zip(records, others, probability[len(probability) - len(others) :], strict=True):
            record[:] = (*light.place, light.kind), (*light.emitted, p), light.falloff
        parts = [table, triangles, records.reshape(-1, 4)]
        if radiance is not None and cdf is not None:
            first = sum(map(len, parts))
            rotation = 0.0 if settings.sky.strength else settings.environment.rotation_degrees / 360
            fields, rows = _environment_rows(radiance, cdf, first, rotation, probability[-1])
            self.fields |= fields
            parts += rows
        all_rows = np.concatenate(parts)
        self.buffer = device.buffer((max(len(all_rows), 1), 4))
        if len(all_rows):
            self.buffer.write(all_rows)


def _is_shadow_catcher(primitives: np.ndarray, materials: np.ndarray) -> np.ndarray:
    """Whether each primitive is a shadow catcher, which is no part of the scene's size."""
    return materials["kind"][primitives["edge1"].view("i4")[:, 3]] == MATERIALS.index("shadow_catcher")


def _inverse_irradiance(lights: list["NonAreaLight"], radiance: np.ndarray | None) -> tuple[float, ...]:
    """1 over the irradiance (4,) of an unoccluded level surface by suns and environment; 0 where there is none."""
    total = np.zeros(3) if radiance is None else level_irradiance(radiance)
    for light in lights:
        if light.kind >= 0:  # a disc's irradiance is its radiance times its projected solid angle, pi sin(radius)^2
            solid = np.pi * light.kind * (2 - light.kind) if light.kind > 0 else 1.0
            total = total + light.emitted * solid * max(float(light.place[1]), 0.0)
    return *np.divide(1, total, out=np.zeros(3), where=total > 0), 0.0


def _environment_rows(
    radiance: np.ndarray, cdf: EnvironmentCdf, first: int, rotation: float, probability: float
) -> tuple[dict[str, float], list[np.ndarray]]:
    """Launch parameters of the environment, and its pixels, from row `first` on, and CDFs; `rotation` in turns."""
    height, width = radiance.shape[:2]
    pixels = np.zeros((height * width, 4), "f4")
    pixels[:, :3] = radiance.reshape(-1, 3)
    words = np.concatenate([cdf.marginal, cdf.conditional.ravel()])
    fields = {
        "environment": first, "environment_width": width, "environment_height": height,
        "environment_rotation": rotation % 1.0, "environment_probability": probability,
        "env_cdf": first + height * width, "env_cdf_width": cdf.conditional.shape[1] - 1,
        "env_cdf_height": len(cdf.marginal) - 1,
    }  # fmt: skip
    return fields, [pixels, np.pad(words, (0, -len(words) % 4)).view("f4").reshape(-1, 4)]


def _area_lights(primitives: np.ndarray, materials: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices (n,) of the emissive primitives, and their powers over pi (n,).

    Each primitive occurs once, and in the same order for every BVH.
    """
    material = primitives["edge1"].view("i4")[:, 3]
    radiance = (materials["emission"][:, :3].astype("f8") @ LUMINANCE)[material]
    bright = np.flatnonzero(radiance > 0)
    bright = bright[np.unique(primitives["v0"].view("i4")[bright, 3], return_index=True)[1]]
    return bright, radiance[bright] * areas(primitives[bright])


def _scene_radius2(primitives: np.ndarray) -> float:
    """The square of the scene's radius, to which the power of infinite lights is proportional."""
    if not len(primitives):
        return 1.0
    corner, radius = primitives["v0"][:, :3].astype("f8"), primitives["edge2"][:, 3:].astype("f8")
    reach = np.where(radius > 0, radius, 0)
    ends = [corner - reach, corner + reach]
    flat = primitives[radius[:, 0] <= 0]
    ends += [flat["v0"][:, :3] + flat[edge][:, :3].astype("f8") for edge in ("edge1", "edge2")]
    points = np.concatenate(ends)
    return max(float(((points.max(0) - points.min(0)) ** 2).sum()) / 4, 1e-12)


def _spot_falloff(point: PointLight) -> tuple[float, ...]:
    """Spot falloff (4,): the intensity is scaled by clamp(w - xyz . d, 0, 1)^2.

    d is the unit direction from the shaded point to the light; (0, 0, 0, 1) for lights that are no spot.
    """
    if point.outer_degrees >= 180:
        return 0.0, 0.0, 0.0, 1.0
    inner, outer = np.cos(np.radians((point.inner_degrees, point.outer_degrees)))
    axis = np.array(point.direction) / np.linalg.norm(point.direction)
    return *(axis / (inner - outer)), -outer / (inner - outer)


def _non_area_lights(settings: Settings, radius2: float, cdf: EnvironmentCdf | None) -> list[NonAreaLight]:
    """Suns, then point lights, then the environment."""
    lights = []
    suns = [(sun.direction, np.radians(sun.angle_degrees) / 2, np.array(sun.irradiance)) for sun in settings.suns]
    if settings.sky.strength and settings.sky.sun_scale:
        disc = sun_radiance(settings.sky) * np.pi * np.sin(SUN_RADIUS) ** 2
        suns.append((tuple(sun_direction(settings.sky)), SUN_RADIUS, disc))
    for direction, radius, irradiance in suns:
        one_minus_cos = 2 * np.sin(radius / 2) ** 2
        unit = np.array(direction) / np.linalg.norm(direction)
        emitted = irradiance / (np.pi * np.sin(radius) ** 2) if one_minus_cos else irradiance
        power = radius2 * float(emitted @ LUMINANCE) * (2 * np.pi * one_minus_cos if one_minus_cos > 0 else 1.0)
        lights.append(NonAreaLight(unit, one_minus_cos, emitted, power))
    for point in settings.point_lights:
        intensity = np.array(point.intensity)
        power = 4 * float(intensity @ LUMINANCE)
        place = np.array(point.position)
        lights.append(NonAreaLight(place, LIGHT_POINT, intensity, power, _spot_falloff(point)))
    if cdf is not None:
        lights.append(NonAreaLight(np.zeros(3), LIGHT_ENVIRONMENT, np.zeros(3), radius2 * cdf.luminance))
    return lights
