"""Distance fields: fractals as shapes of a scene, which shaders/raytracing/sphere_trace.h intersects by sphere tracing.

DistanceField is a table [[distance_fields]] of a scene file. geometry.py uploads field_records() to the device. Each
kind of fractal is a file of shaders/raytracing/distance_fields.
"""

from typing import Literal

import numpy as np

from renderer.paths import SHADERS
from renderer.raytracing.instances import Point, rotation_matrix
from renderer.records import dataclass, field
from renderer.scene.schema import reference, setting

KINDS = tuple(sorted(path.stem for path in (SHADERS / "raytracing" / "distance_fields").glob("*.h")))
# The struct DistanceField of sphere_trace.h; `inverse` is the matrix from world to field space.
FIELD = np.dtype([
    ("inverse", "f4", (3, 4)), ("parameters", "f4", (4,)), ("kind", "i4"), ("material", "i4"), ("iterations", "i4"),
    ("power", "i4"), ("scale", "f4"), ("radius", "f4"), ("detail", "f4"), ("spare", "f4"),
])  # fmt: skip
assert FIELD.itemsize == 96
MAX_FIELDS = 64


@dataclass(frozen=True)
class DistanceField:
    """A fractal about its origin: the sponge is a cube of side 1, bulbs and Julia sets have radius 1 to 2."""

    material: str = field(metadata=reference("materials", "name of a material"))
    kind: Literal[KINDS]  # type: ignore[valid-type]  # known at run time
    position: Point = (0.0, 0.0, 0.0)
    rotation_degrees: Point = setting((0.0, 0.0, 0.0), help="about x, then y, then z")
    scale: float = setting(1.0, 1e-6, 1e6, logarithmic=True)
    iterations: int = setting(8, 0, 30, "of the fractal's map; levels of the sponge")
    power: int = setting(8, 2, 16, "of the bulb")
    c: tuple[float, float, float, float] = setting((-0.125, -0.256, 0.847, 0.0895), -2.0, 2.0, "of the Julia set")
    detail: float = setting(2e-4, 1e-5, 1e-1, "distance that counts as a hit, in field space", logarithmic=True)


def bounding_radius(field: DistanceField) -> float:
    """Returns the radius, in field space, of a sphere about the origin around the fractal, with a margin."""
    # the half diagonal of the cube; radii beyond which z^n + c and z^2 + c grow without end
    radius = {
        "menger": np.sqrt(0.75),
        "mandelbulb": 2.0 ** (1 / (field.power - 1)),
        "julia": (1 + np.sqrt(1 + 4 * np.linalg.norm(field.c))) / 2,
    }[field.kind]
    return float(radius * 1.01 + 2 * field.detail)


def field_records(fields: tuple[DistanceField, ...], materials: dict[str, int]) -> np.ndarray:
    """Returns the records (n,) FIELD of the fields; one zero record without fields. `materials`: index by name."""
    records = np.zeros(max(len(fields), 1), FIELD)
    for record, shape in zip(records, fields, strict=False):
        to_field = rotation_matrix(shape.rotation_degrees).T / shape.scale
        record["inverse"][:, :3], record["inverse"][:, 3] = to_field, -to_field @ shape.position
        record["parameters"] = shape.c
        record["kind"], record["material"] = KINDS.index(shape.kind), materials[shape.material]
        record["iterations"], record["power"] = shape.iterations, shape.power
        record["scale"], record["radius"], record["detail"] = shape.scale, bounding_radius(shape), shape.detail
    return records
