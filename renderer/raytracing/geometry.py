"""Scenes as arrays: the primitives of all shapes, their tree on a device, and the table of what shines."""

import numpy as np

from renderer import bvh, procedural
from renderer.mesh import PRIMITIVE, areas, load_mesh, numbered, spheres, triangles
from renderer.raytracing.settings import Attractor, Procedural, Settings

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


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
