"""Instances: named shapes placed by matrices, one by one or scattered over a field, and where they are when a shutter
closes."""

from dataclasses import dataclass

import numpy as np

from renderer.scene.schema import setting

MOST_INSTANCES = 1 << 20
Point = tuple[float, float, float]


@dataclass(frozen=True)
class Instance:
    """A named shape at a place: by `matrix` (3 x 4, row by row), then stretched, scaled, turned and moved."""

    shape: str
    material: str = setting("", help="in the place of the shape's own")
    position: Point = (0.0, 0.0, 0.0)
    rotation_degrees: Point = setting((0.0, 0.0, 0.0), help="about x, then y, then z")
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    scale_xyz: Point = setting((1.0, 1.0, 1.0), 1e-9, 1e9, "along the shape's own axes")
    matrix: tuple[float, ...] = ()

    def __post_init__(self):
        if self.matrix:
            if len(self.matrix) != 12:
                raise ValueError(f"matrix has {len(self.matrix)} numbers; it must have 12, three rows of four, or none")
            rows = np.reshape(self.matrix, (3, 4))[:, :3]
            sizes = np.linalg.norm(rows, axis=1).prod()
            if not abs(np.linalg.det(rows)) > 1e-9 * sizes:
                raise ValueError("matrix is flat: its three rows lie in one plane, so that nothing has a volume in it")


@dataclass(frozen=True)
class Scattered:
    """`columns` x `rows` instances of shapes picked at random, over the rectangle from `low` to `high` (x and z)."""

    shapes: tuple[str, ...]
    columns: int = setting(10, 1, 4096)
    rows: int = setting(10, 1, 4096)
    low: tuple[float, float] = (-10.0, -10.0)
    high: tuple[float, float] = (10.0, 10.0)
    height: float = setting(0.0, help="the y of all")
    jitter: float = setting(1.0, 0.0, 1.0, "how far from the middle of its cell an instance may stand")
    rotation_degrees: tuple[float, float] = setting((0.0, 360.0), help="about y, from and to")
    scale: tuple[float, float] = setting((1.0, 1.0), 1e-9, 1e9, "from and to")
    height_scale: tuple[float, float] = setting((1.0, 1.0), 1e-9, 1e9, "of y beside the scale, from and to")
    material: str = setting("", help="in the place of the shapes' own")
    seed: int = setting(1, 0, 2**31 - 1)

    def __post_init__(self):
        if not self.shapes:
            raise ValueError("shapes is empty; it must name at least one shape")
        if self.columns * self.rows > MOST_INSTANCES:
            raise ValueError(f"{self.columns} x {self.rows} instances are more than the {MOST_INSTANCES} allowed")


def turn_of(rotation_degrees: Point) -> np.ndarray:
    """The rotation (3, 3) about x, then y, then z."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(np.radians(rotation_degrees)), np.sin(np.radians(rotation_degrees))
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def matrix_of(instance: Instance) -> np.ndarray:
    """From shape to world (3, 4) float64."""
    out = np.zeros((3, 4))
    out[:, :3] = turn_of(instance.rotation_degrees) * np.multiply(instance.scale, instance.scale_xyz)
    out[:, 3] = instance.position
    if instance.matrix:
        inner = np.reshape(instance.matrix, (3, 4))
        out = np.concatenate([out[:, :3] @ inner[:, :3], (out[:, :3] @ inner[:, 3] + out[:, 3])[:, None]], 1)
    return out


def scatter(scattered: Scattered) -> tuple[np.ndarray, np.ndarray]:
    """The row (n,) in `shapes` of every instance, and matrices (n, 3, 4) from shape to world."""
    rng = np.random.default_rng(scattered.seed)
    count = scattered.columns * scattered.rows
    across, down = np.arange(count) % scattered.columns, np.arange(count) // scattered.columns
    cells = np.stack([across, down], 1) + 0.5 + scattered.jitter * (rng.random((count, 2)) - 0.5)
    place = np.add(
        scattered.low, cells / [scattered.columns, scattered.rows] * np.subtract(scattered.high, scattered.low)
    )
    turn = np.radians(rng.uniform(*scattered.rotation_degrees, count))
    scale = rng.uniform(*scattered.scale, count)
    tall = scale * rng.uniform(*scattered.height_scale, count)
    matrices = np.zeros((count, 3, 4))
    matrices[:, 0, 0] = matrices[:, 2, 2] = scale * np.cos(turn)
    matrices[:, 0, 2] = scale * np.sin(turn)
    matrices[:, 2, 0] = -matrices[:, 0, 2]
    matrices[:, 1, 1] = tall
    matrices[:, 0, 3], matrices[:, 1, 3], matrices[:, 2, 3] = place[:, 0], scattered.height, place[:, 1]
    return rng.integers(0, len(scattered.shapes), count), matrices


def check(settings, shapes: set[str], materials: list[str]) -> None:
    """ValueError where an instance names a shape or material that is not there."""
    told = ", ".join(sorted(shapes)) or "none: no shape has a name"
    for group in ("instances", "shutter_close", "scattered"):
        for index, placed in enumerate(getattr(settings, group)):
            for name in placed.shapes if group == "scattered" else (placed.shape,):
                if name not in shapes:
                    raise ValueError(f"{group}[{index}]: shape is {name!r}; allowed are {told}")
            if placed.material and placed.material not in materials:
                allowed = ", ".join(materials)
                raise ValueError(f"{group}[{index}]: material is {placed.material!r}; allowed are {allowed}")
    opening, closing = ([i.shape for i in group] for group in (settings.instances, settings.shutter_close))
    if closing and closing != opening:
        raise ValueError(f"shutter_close has other shapes than instances: {len(closing)}, not {len(opening)}")


def placements(settings, names: list[str], rows: dict[str, int]):
    """Of all instances: shape's row in `names` (n,), material's row or -1 (n,), matrices (n, 3, 4) at both ends of the
    shutter."""
    shapes, materials, opening, closing = [], [], [], []
    for which, instance in enumerate(settings.instances):
        shapes.append([names.index(instance.shape)])
        materials.append([rows[instance.material] if instance.material else -1])
        opening.append(matrix_of(instance)[None])
        closing.append(matrix_of(settings.shutter_close[which])[None] if settings.shutter_close else opening[-1])
    for field in settings.scattered:
        which, matrices = scatter(field)
        shapes.append(np.array([names.index(name) for name in field.shapes])[which])
        materials.append(np.full(len(which), rows[field.material] if field.material else -1))
        opening.append(matrices)
        closing.append(matrices)
    return tuple(np.concatenate(parts) for parts in (shapes, materials, opening, closing))
