"""Scenes as arrays: the primitives of all shapes, their tree on a device."""

import numpy as np

from renderer import bvh, procedural
from renderer.mesh import PRIMITIVE, load_mesh, numbered, spheres, triangles
from renderer.raytracing.fields import FIELD, field_rows
from renderer.raytracing.placing import placements
from renderer.raytracing.settings import Attractor, Procedural, Settings


def shapes_of(settings: Settings) -> dict[str, np.ndarray]:
    """Primitives (m,) by the name of their shape, "" for what stands as it is; numbered through all shapes, with their
    rows of `materials`."""
    row = _material_rows(settings)
    nothing = triangles(np.zeros((0, 3)), np.zeros((0, 3), int))
    parts: dict[str, list[np.ndarray]] = {"": [nothing]}
    for group, make in MAKERS.items():
        for shape in getattr(settings, group):
            parts.setdefault(shape.name, []).append(make(shape, row[shape.material]))
    names, joined = list(parts), [np.concatenate(part) for part in parts.values()]
    edges = np.cumsum([len(part) for part in joined])[:-1]
    return dict(zip(names, np.split(numbered(np.concatenate(joined)), edges), strict=True))


def _quad(quad, material: int) -> np.ndarray:
    return triangles(np.array(quad.corners), np.array([[0, 1, 2], [0, 2, 3]]), material)


def _mesh(shape, material: int) -> np.ndarray:
    vertices, faces = load_mesh(shape.file)
    c, s = np.cos(np.radians(shape.turn_degrees)), np.sin(np.radians(shape.turn_degrees))
    matrix = shape.scale * np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    return triangles(vertices @ matrix.T + shape.position, faces, material)


def _attractor(shape: Attractor, material: int) -> np.ndarray:
    balls = procedural.attractor(np.reshape(shape.maps, (-1, 3, 4)), shape.level, shape.radius)
    return _placed(balls, shape, material)


MAKERS = {
    "spheres": lambda shape, material: spheres(np.array([shape.centre]), np.array([shape.radius]), material),
    "quads": _quad,
    "meshes": _mesh,
    "procedural": lambda shape, material: _placed(procedural.make(shape.kind, shape.level), shape, material),
    "attractors": _attractor,
}


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


def _material_rows(settings: Settings) -> dict[str, int]:
    return {material.name: index for index, material in enumerate(settings.materials)}


class Geometry:
    """The shapes of one Settings on a device: tree, primitives in the tree's order, instances and fields."""

    def __init__(self, device, settings: Settings):
        shapes = shapes_of(settings)
        self.has_spheres = any(bool((part["edge2"][:, 3] > 0).any()) for part in shapes.values())
        self.tree = bvh.tree_of(device, shapes.pop(""), settings.builder, settings.tree)
        self.primitives = self.tree.primitives.read()[: self.tree.count].view(PRIMITIVE).ravel()
        self.instances, self._names, self._standing = None, list(shapes), None
        if settings.places:
            which, material, *_ = placements(settings, self._names, _material_rows(settings))
            self.instances = bvh.Instances(device, list(shapes.values()), which, material)
        self.field_count = len(settings.distance_fields)
        self._fields = device.buffer(max(self.field_count, 1), FIELD)
        self.place(settings)

    @property
    def rows(self) -> tuple:
        """The arguments SCENE_TAKEN of shaders/scene.h."""
        rows = self.tree.nodes, self.tree.primitives
        rows += self.instances.rows if self.instances else ()
        return (*rows, self._fields) if self.field_count else rows

    def place(self, settings: Settings) -> None:
        """Moves instances and distance fields to where they are; the upper tree is built anew."""
        standing = settings.instances, settings.closing, settings.distance_fields
        if standing == self._standing:
            return
        rows = _material_rows(settings)
        if self.instances:
            *_, opening, closing = placements(settings, self._names, rows)
            self.instances.place(opening, closing if settings.closing else None)
        if self.field_count:
            self._fields.write(field_rows(settings.distance_fields, rows))
        self._standing = standing
