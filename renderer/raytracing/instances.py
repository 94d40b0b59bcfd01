"""Settings and matrices of instances: copies of a named shape, each with a transform or scattered over a rectangle.

Instance and Scattered are the tables [[instances]] and [[scattered]] of a scene file. geometry.py turns them into
InstanceTransforms, from which bvh/instances.py builds the top-level BVH.
"""

from typing import NamedTuple

import numpy as np

from renderer.records import dataclass, field
from renderer.scene.schema import reference, setting

MAX_INSTANCES = 1 << 20
Point = tuple[float, float, float]


@dataclass(frozen=True)
class Instance:
    """One copy of a named shape: transformed by `matrix` (3 x 4, row by row), then scaled, rotated and moved."""

    shape: str = field(metadata=reference("shapes", "name of a shape"))
    material: str = setting("", help="instead of the shape's own", refers_to="materials")
    position: Point = (0.0, 0.0, 0.0)
    rotation_degrees: Point = setting((0.0, 0.0, 0.0), help="about x, then y, then z")
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    scale_xyz: Point = setting((1.0, 1.0, 1.0), 1e-9, 1e9, "along the shape's own axes")
    matrix: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.matrix:
            if len(self.matrix) != 12:
                raise ValueError(f"matrix has {len(self.matrix)} numbers; it must have 12, three rows of four, or none")
            rows = np.reshape(self.matrix, (3, 4))[:, :3]
            sizes = np.linalg.norm(rows, axis=1).prod()
            if not abs(np.linalg.det(rows)) > 1e-9 * sizes:
                raise ValueError("matrix is singular: its three rows must not lie in one plane")

    @property
    def shapes(self) -> tuple[str, ...]:
        """The shape as a tuple, so that code for Scattered serves instances too."""
        return (self.shape,)


@dataclass(frozen=True)
class Scattered:
    """`columns` x `rows` instances of randomly chosen shapes over the rectangle from `low` to `high` (x and z)."""

    shapes: tuple[str, ...] = field(metadata=reference("shapes", "names of shapes"))
    columns: int = setting(10, 1, 4096)
    rows: int = setting(10, 1, 4096)
    low: tuple[float, float] = (-10.0, -10.0)
    high: tuple[float, float] = (10.0, 10.0)
    height: float = setting(0.0, help="y of all instances")
    jitter: float = setting(1.0, 0.0, 1.0, "random offset of an instance within its cell; 0 is the cell's center")
    rotation_degrees: tuple[float, float] = setting((0.0, 360.0), help="about y, from and to")
    scale: tuple[float, float] = setting((1.0, 1.0), 1e-9, 1e9, "from and to")
    height_scale: tuple[float, float] = setting((1.0, 1.0), 1e-9, 1e9, "of y in addition to the scale, from and to")
    material: str = setting("", help="instead of the shapes' own", refers_to="materials")
    seed: int = setting(1, 0, 2**31 - 1)

    def __post_init__(self) -> None:
        if not self.shapes:
            raise ValueError("shapes is empty; it must name at least one shape")
        for name in ("rotation_degrees", "scale", "height_scale"):
            first, last = getattr(self, name)
            if first > last:
                raise ValueError(f"{name} is from {first} to {last}; the first must be at most the second")
        if self.columns * self.rows > MAX_INSTANCES:
            raise ValueError(f"{self.columns} x {self.rows} instances are more than the {MAX_INSTANCES} allowed")


class InstanceTransforms(NamedTuple):
    """The shapes, materials and transforms of all n instances of a scene."""

    shape_of: np.ndarray  # (n,) index into the named shapes
    material_of: np.ndarray  # (n,) index into the materials, -1 to keep the shape's materials
    matrices_open: np.ndarray  # (n, 3, 4) from shape to world when the shutter opens
    matrices_close: np.ndarray  # (n, 3, 4) when the shutter closes


def rotation_matrix(rotation_degrees: Point) -> np.ndarray:
    """Returns the rotation (3, 3) float64 about x, then y, then z."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(np.radians(rotation_degrees)), np.sin(np.radians(rotation_degrees))
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x)


def placement(scale: float, rotation_degrees: Point, position: Point, scale_xyz: Point = (1.0, 1.0, 1.0)) -> np.ndarray:
    """Returns the transform (3, 4) float64 that scales, then rotates as rotation_matrix(), then moves."""
    return np.column_stack([rotation_matrix(rotation_degrees) * np.multiply(scale, scale_xyz), position])


def instance_matrix(instance: Instance) -> np.ndarray:
    """Returns the transform (3, 4) float64 from shape to world space."""
    out = placement(instance.scale, instance.rotation_degrees, instance.position, instance.scale_xyz)
    if instance.matrix:
        inner = np.reshape(instance.matrix, (3, 4))
        out = np.concatenate([out[:, :3] @ inner[:, :3], (out[:, :3] @ inner[:, 3] + out[:, 3])[:, None]], 1)
    return out


def scatter(scattered: Scattered) -> tuple[np.ndarray, np.ndarray]:
    """Returns each instance's index (n,) into `shapes` and its transform (n, 3, 4) from shape to world space."""
    rng = np.random.default_rng(scattered.seed)
    count = scattered.columns * scattered.rows
    column, row = np.arange(count) % scattered.columns, np.arange(count) // scattered.columns
    cells = np.stack([column, row], 1) + 0.5 + scattered.jitter * (rng.random((count, 2)) - 0.5)
    extent = np.subtract(scattered.high, scattered.low)
    position = np.add(scattered.low, cells / [scattered.columns, scattered.rows] * extent)
    angle = np.radians(rng.uniform(*scattered.rotation_degrees, count))
    scale = rng.uniform(*scattered.scale, count)
    matrices = np.zeros((count, 3, 4))
    matrices[:, 1, 1] = scale * rng.uniform(*scattered.height_scale, count)
    matrices[:, 0, 0] = matrices[:, 2, 2] = scale * np.cos(angle)
    matrices[:, 0, 2] = scale * np.sin(angle)
    matrices[:, 2, 0] = -matrices[:, 0, 2]
    matrices[:, 0, 3], matrices[:, 1, 3], matrices[:, 2, 3] = position[:, 0], scattered.height, position[:, 1]
    return rng.integers(0, len(scattered.shapes), count), matrices
