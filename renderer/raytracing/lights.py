"""The table of what shines, by power, for shaders/raytracing/lights.h: primitives, suns, points and the environment."""

import numpy as np

from renderer.bvh.primitives import PRIMITIVE, areas
from renderer.raytracing.environment import (
    SUN_RADIUS,
    cdf_u32,
    environment_cdf,
    environment_map,
    is_lit,
    sun_direction,
    sun_radiance,
)
from renderer.raytracing.settings import Settings

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
LIGHT_POINT, LIGHT_ENVIRONMENT = -1.0, -2.0
INSTANCED_LIGHT = 1 << 30
NOTHING = np.zeros(0, PRIMITIVE)


def has_non_area_lights(settings: Settings) -> bool:
    """Whether anything shines that is no primitive."""
    return bool(settings.suns or settings.point_lights) or is_lit(settings.environment, settings.sky)


class LightSampler:
    """What shines of one Settings on a device: `buffer` (rows, 4), and `fields` of the View that tell where things lie.

    `primitives` (n,) are in the tree's order and `materials` (m,) MATERIAL; `placed` (k,) are triangles of instances
    that shine, in world space.
    """

    def __init__(self, device, settings: Settings, primitives: np.ndarray, materials: np.ndarray, placed=NOTHING):
        rows, power = _shining(primitives, materials)
        placed_rows, placed_power = _shining(placed, materials)
        lamps, shine = _lamps(settings)
        radius2 = _radius2(primitives)
        picture = environment_map(settings) if is_lit(settings.environment, settings.sky) else None
        parts, fields = [], {"sun_count": sum(place[3] >= 0 for place in lamps)}
        lamp_power = [_lamp_power(place, light, radius2) for place, light in zip(lamps, shine, strict=True)]
        if picture is not None:
            shares, cells, total = environment_cdf(picture)
            lamps.append((0.0, 0.0, 0.0, LIGHT_ENVIRONMENT))
            shine.append((0.0, 0.0, 0.0))
            lamp_power.append(radius2 * total)
        power = np.concatenate([power, placed_power, np.array(lamp_power, "f8")])
        what = np.concatenate([rows, INSTANCED_LIGHT + placed_rows, ~np.arange(len(lamps))]).astype("i4")
        kept = power > 0
        total_power = float(power.sum())
        shares_of = power / (total_power or 1)
        self.count = fields["light_count"] = int(kept.sum())
        fields["inverse_light_power"] = 1 / total_power if total_power else 0.0
        table = np.zeros((self.count, 4), "f4")
        if self.count:
            table[:, 0] = cdf_u32(power[kept])[1:].view("f4")
            table[:, 1] = what[kept].view("f4")
        standing = placed.view("f4").reshape(-1, 4)
        fields["non_area_lights"] = len(table) + len(standing)
        self.constants = {"INSTANCED_LIGHTS": int(len(placed) > 0)}
        listed = np.zeros((len(lamps), 3, 4), "f4")
        listed[:, 2] = _cones(settings, lamps)
        lamp_shares = shares_of[len(shares_of) - len(lamps) :]
        for row, place, light, share in zip(listed, lamps, shine, lamp_shares, strict=True):
            row[0], row[1] = place, (*light, share)
        parts += [table, standing, listed.reshape(-1, 4)]
        if picture is not None:
            fields |= self._environment(settings, picture, shares, cells, sum(map(len, parts)), shares_of[-1])
            parts += [self._pixels, self._cells]
            del self._pixels, self._cells
        rows_of = np.concatenate(parts)
        self.fields = fields
        self.buffer = device.buffer((max(len(rows_of), 1), 4))
        if len(rows_of):
            self.buffer.write(rows_of)

    def _environment(self, settings: Settings, picture, shares, cells, first: int, share: float) -> dict:
        height, width = picture.shape[:2]
        self._pixels = np.zeros((height * width, 4), "f4")
        self._pixels[:, :3] = picture.reshape(-1, 3)
        words = np.concatenate([shares, cells.ravel()])
        self._cells = np.concatenate([words, np.zeros(-len(words) % 4, "u4")]).view("f4").reshape(-1, 4)
        turn = settings.environment.rotation_degrees / 360 if settings.environment.file else 0.0
        return {
            "environment": first, "environment_width": width, "environment_height": height,
            "environment_rotation": turn % 1.0, "environment_probability": share, "env_cdf": first + height * width,
            "env_cdf_width": cells.shape[1] - 1, "env_cdf_height": len(shares) - 1,
        }  # fmt: skip


def _shining(primitives: np.ndarray, materials: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n,) of the primitives that shine, each once and in the same order for every tree, and their powers over pi
    (n,)."""
    material = primitives["edge1"].view("i4")[:, 3]
    power = (materials["emission"][:, :3].astype("f8") @ LUMINANCE)[material]
    bright = np.flatnonzero(power > 0)
    bright = bright[np.unique(primitives["v0"].view("i4")[bright, 3], return_index=True)[1]]
    return bright, power[bright] * areas(primitives[bright])


def _radius2(primitives: np.ndarray) -> float:
    """The square of the radius of the scene, which says how much light from far away it catches."""
    if not len(primitives):
        return 1.0
    corner, radius = primitives["v0"][:, :3].astype("f8"), primitives["edge2"][:, 3:].astype("f8")
    reach = np.where(radius > 0, radius, 0)
    ends = [corner - reach, corner + reach]
    flat = primitives[radius[:, 0] <= 0]
    ends += [flat["v0"][:, :3] + flat[edge][:, :3].astype("f8") for edge in ("edge1", "edge2")]
    ends = np.concatenate(ends)
    return max(float(((ends.max(0) - ends.min(0)) ** 2).sum()) / 4, 1e-12)


def _cones(settings: Settings, lamps: list) -> np.ndarray:
    """(n, 4): what a lamp sends in a direction is the square of its product with three of these plus the last."""
    out = np.zeros((len(lamps), 4))
    out[:, 3] = 1
    places = [index for index, place in enumerate(lamps) if place[3] == LIGHT_POINT]
    for index, point in zip(places, settings.point_lights, strict=True):
        if point.outer_degrees < 180:
            inner, outer = np.cos(np.radians((point.inner_degrees, point.outer_degrees)))
            axis = np.array(point.direction) / np.linalg.norm(point.direction)
            out[index] = *(axis / (inner - outer)), -outer / (inner - outer)
    return out


def _lamps(settings: Settings) -> tuple[list, list]:
    """Places (x, y, z, kind) and light (r, g, b) of suns, then of points."""
    places, light = [], []
    suns = [(sun.direction, np.radians(sun.angle_degrees) / 2, np.array(sun.irradiance)) for sun in settings.suns]
    if settings.sky.strength and settings.sky.sun_scale:
        disc = sun_radiance(settings.sky) * np.pi * np.sin(SUN_RADIUS) ** 2
        suns.append((sun_direction(settings.sky), SUN_RADIUS, disc))
    for direction, radius, irradiance in suns:
        cone = 2 * np.sin(radius / 2) ** 2
        places.append((*np.array(direction) / np.linalg.norm(direction), cone))
        light.append(irradiance / (np.pi * np.sin(radius) ** 2) if cone else irradiance)
    for point in settings.point_lights:
        places.append((*point.position, LIGHT_POINT))
        light.append(np.array(point.intensity))
    return places, light


def _lamp_power(place, light, radius2: float) -> float:
    """A lamp's power over pi."""
    bright = float(np.asarray(light) @ LUMINANCE)
    if place[3] == LIGHT_POINT:
        return 4 * bright
    return radius2 * bright * (2 * np.pi * place[3] if place[3] > 0 else 1.0)
