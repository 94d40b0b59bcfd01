"""Distance fields: fractals as geometry, found by sphere tracing (shaders/raytracing/sphere_trace.h)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from renderer.paths import SHADERS
from renderer.raytracing.instances import Point, turn_of
from renderer.scene.schema import setting

KINDS = tuple(sorted(path.stem for path in (SHADERS / "raytracing" / "distance_fields").glob("*.h")))
FIELD = np.dtype([("inverse", "f4", (3, 4)), ("parameters", "f4", (4,)), ("kind", "i4"), ("material", "i4"),
                  ("iterations", "i4"), ("power", "i4"), ("scale", "f4"), ("radius", "f4"), ("detail", "f4"),
                  ("spare", "f4")])  # fmt: skip
assert FIELD.itemsize == 96
MOST_FIELDS = 64


@dataclass(frozen=True)
class DistanceField:
    """A fractal about its origin: the sponge in a cube of side 1, a bulb or a quaternion Julia set of radius 1 to 2."""

    material: str
    kind: Literal[KINDS]
    position: Point = (0.0, 0.0, 0.0)
    rotation_degrees: Point = setting((0.0, 0.0, 0.0), help="about x, then y, then z")
    scale: float = setting(1.0, 1e-6, 1e6, logarithmic=True)
    iterations: int = setting(8, 0, 30, "of the fractal's map; levels of the sponge")
    power: int = setting(8, 2, 16, "of the bulb")
    c: tuple[float, float, float, float] = setting((-0.125, -0.256, 0.847, 0.0895), -2.0, 2.0, "of the Julia set")
    detail: float = setting(2e-4, 1e-5, 1e-1, "smallest distance, in the field's own space", logarithmic=True)


def radius_of(field: DistanceField) -> float:
    """Of a ball about the field's origin that holds it and the shell of its detail."""
    reach = {
        "menger": np.sqrt(0.75),
        "mandelbulb": 2.0 ** (1 / (field.power - 1)),
        "julia": (1 + np.sqrt(1 + 4 * np.linalg.norm(field.c))) / 2,
    }[field.kind]
    return float(reach * 1.01 + 2 * field.detail)


def field_rows(fields: tuple[DistanceField, ...], materials: dict[str, int]) -> np.ndarray:
    """The fields (n,) FIELD, with the way from the world into each one's space."""
    rows = np.zeros(max(len(fields), 1), FIELD)
    for row, field in zip(rows, fields, strict=False):
        into = turn_of(field.rotation_degrees).T / field.scale
        row["inverse"][:, :3], row["inverse"][:, 3] = into, -into @ field.position
        row["parameters"] = field.c
        row["kind"], row["material"] = KINDS.index(field.kind), materials[field.material]
        row["iterations"], row["power"] = field.iterations, field.power
        row["scale"], row["radius"], row["detail"] = field.scale, radius_of(field), field.detail
    return rows
