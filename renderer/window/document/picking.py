"""Picking: the item of a ray traced scene under a point of its picture, and the boxes of items.

One ray is intersected on the host, in numpy, with every item; the scene editor calls pick() on a click.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from renderer.bvh.primitives import bounds as primitive_bounds
from renderer.bvh.primitives import radius_of, triangle_distances, triangles
from renderer.formats.mesh import load_model
from renderer.raytracing.distance_fields import bounding_radius
from renderer.raytracing.instances import instance_matrix
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.raytracing.settings import SHAPE_GROUPS, Settings
from renderer.raytracing.shapes import MAKERS
from renderer.window.document.items import Item

LIGHT_RADIUS = 0.02  # radius of the sphere that picks a point light, per unit of its distance from the camera
BOXED = (*SHAPE_GROUPS, "models", "distance_fields")  # the lists of shapes with boxes
PICKED = ("perspective", "orthographic")  # the projections in which items can be picked
BEHIND_ALL = 1e20  # added to the distance of volumes: items inside or behind a cloud are picked first
CHUNK = 1 << 18  # triangles that are intersected at a time


class Ray(NamedTuple):
    """A ray: origin (3,) and direction (3,), not of unit length."""

    origin: np.ndarray
    direction: np.ndarray

    def moved(self, matrix: np.ndarray) -> "Ray":
        """The ray in the coordinates that `matrix` (3, 4) takes to the world."""
        inverse = np.linalg.inv(matrix[:, :3])
        return Ray(inverse @ (self.origin - matrix[:, 3]), inverse @ self.direction)


def camera_ray(settings: Settings, u: float, v: float, aspect: float) -> Ray | None:
    """The ray through fractions (u, v) of width and height, from the upper left; None for a panorama."""
    if settings.projection not in PICKED:
        return None
    camera = settings.view
    right, up, forward = camera.axes()
    half = np.tan(np.radians(camera.fov_degrees) / 2) * camera.fit_scale(aspect)
    sx = (2 * u - 1 + 2 * settings.lens_shift[0]) * half * aspect
    sy = (1 - 2 * v + 2 * settings.lens_shift[1]) * half
    eye = np.array(camera.position, float)
    if settings.projection == "orthographic":
        distance = float(np.linalg.norm(np.subtract(camera.target, camera.position)))
        return Ray(eye + (sx * right + sy * up) * distance, forward)
    return Ray(eye, forward + sx * right + sy * up)


def pick(settings: Settings, u: float, v: float, aspect: float) -> Item | None:
    """The nearest item at fractions (u, v) of width and height, or None; point lights count as small spheres."""
    ray = camera_ray(settings, u, v, aspect)
    if ray is None:
        return None
    nearest, found = np.inf, None
    for item, distance in _distances(settings, ray):
        if distance < nearest:
            nearest, found = distance, item
    return found


def _distances(settings: Settings, ray: Ray) -> Iterator[tuple[Item, float]]:
    """Yields all items with the ray's distance to them in lengths of its direction; infinite for a miss."""
    named: dict[str, list[Any]] = {}
    for group in (*SHAPE_GROUPS, "models"):
        for index, shape in enumerate(getattr(settings, group)):
            if shape.name:
                named.setdefault(shape.name, []).append((group, shape))
            else:
                yield Item(group, index), _shape_distance(group, shape, ray)
    for index, field in enumerate(settings.distance_fields):
        radius = bounding_radius(field) * field.scale * 0.7  # fields do not fill the spheres that bound them
        yield Item("distance_fields", index), _sphere_distance(np.array([field.position]), np.array([radius]), ray)
    for index, instance in enumerate(settings.instances):
        inner = ray.moved(instance_matrix(instance))
        shapes = named.get(instance.shape, [])
        yield Item("instances", index), min((_shape_distance(g, s, inner) for g, s in shapes), default=np.inf)
    for index, light in enumerate(settings.point_lights):
        radius = LIGHT_RADIUS * float(np.linalg.norm(np.subtract(light.position, ray.origin)))
        yield Item("point_lights", index), _sphere_distance(np.array([light.position]), np.array([radius]), ray)
    for index, volume in enumerate(settings.volumes):
        distance = _box_distance(np.array(volume.position), np.array(volume.size), ray)
        yield Item("volumes", index), BEHIND_ALL + distance


def _shape_distance(group: str, shape: object, ray: Ray) -> float:
    """The distance to the nearest primitive of a shape; infinite for a miss."""
    primitives = primitives_of(group, shape)
    centers, radii = primitives["v0"][:, :3], radius_of(primitives)
    round_ones = radii > 0
    return min(_sphere_distance(centers[round_ones], radii[round_ones], ray), _triangles(primitives[~round_ones], ray))


def bounds(settings: Settings, item: Item) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The box of a shape or an instance: low and high corner (3,), and the matrix (3, 4) that leads to the world."""
    matrix = np.eye(3, 4)
    value = getattr(settings, item.group)[item.index]
    if item.group == "instances":
        matrix, name = instance_matrix(value), value.shape
        all_shapes = [(g, s) for g in (*SHAPE_GROUPS, "models") for s in getattr(settings, g) if s.name == name]
    else:
        all_shapes = [(item.group, value)] if item.group in BOXED else []
    boxes = [shape_box(group, shape) for group, shape in all_shapes]
    if not boxes:
        return None
    return np.min([low for low, _ in boxes], 0), np.max([high for _, high in boxes], 0), matrix


def box_corners(low: np.ndarray, high: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The corners (8, 3) in the world of a box as bounds() gives it; bit k of a corner's number: high coordinate k."""
    corners = np.array([[(low, high)[bits >> k & 1][k] for k in range(3)] for bits in range(8)])
    return np.asarray(corners @ matrix[:, :3].T + matrix[:, 3])


def world_boxes(settings: Settings) -> np.ndarray:
    """The boxes (n, 2, 3), low and high, of all shapes and instances; of named shapes, their instances' alone."""
    drawn = [
        Item(group, index)
        for group in (*BOXED, "instances")
        for index, value in enumerate(getattr(settings, group))
        if not getattr(value, "name", "")
    ]
    corners = [box_corners(*box) for item in drawn if (box := bounds(settings, item)) is not None]
    return np.array([(points.min(0), points.max(0)) for points in corners]).reshape(-1, 2, 3)


@lru_cache(maxsize=256)
def shape_box(group: str, shape: Any) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high corner of a shape's box, cached: each frame asks for it, and a large mesh takes long."""
    if group == "distance_fields":
        reach = shape.scale * (0.5 if shape.kind == "menger" else bounding_radius(shape))
        return shape.position - np.full(3, reach), shape.position + np.full(3, reach)
    primitives = primitives_of(group, shape)
    return primitive_bounds(primitives) if len(primitives) else (np.zeros(3), np.zeros(3))


def primitives_of(group: str, shape: Any) -> np.ndarray:
    """The primitives of a shape, cached; name and material do not matter, so that editing these builds nothing."""
    return _model(shape) if group == "models" else _built(group, replace(shape, name="", material=""))


@lru_cache(maxsize=256)
def _built(group: str, shape: object) -> np.ndarray:
    """The primitives of a shape as the renderer builds them: spheres with a radius, or triangles."""
    return MAKERS[group](shape, 0, False)[0]  # material 0, no maps; the primitives without their attributes


@lru_cache(maxsize=16)
def _model(shape: ModelShape) -> np.ndarray:
    """The triangles of a model at rest, in world coordinates."""
    model, meshes = load_model(shape.file, shape.variant), []
    for mesh, matrix in model.mesh_nodes:
        to_world = shape.matrix() @ matrix
        for part in model.meshes[mesh]:
            meshes.append(triangles(part.vertices @ to_world[:3, :3].T + to_world[:3, 3], part.faces, 0))
    return np.concatenate(meshes) if meshes else triangles(np.zeros((3, 3)), np.zeros((0, 3), int), 0)


def _sphere_distance(centers: np.ndarray, radii: np.ndarray, ray: Ray) -> float:
    """The distance of the nearest of spheres (n, 3), (n,); infinite for none. Solves a t^2 + 2 b t + c = 0 for t."""
    offset = ray.origin - centers
    a = ray.direction @ ray.direction
    b = offset @ ray.direction
    c = (offset * offset).sum(1) - np.square(radii, dtype=float)
    root = np.square(b) - a * c
    hit = root >= 0
    if not hit.any():
        return np.inf
    root = np.sqrt(root[hit])
    both = np.concatenate([(-b[hit] - root) / a, (-b[hit] + root) / a])
    return float(both[both > 0].min(initial=np.inf))


def _triangles(primitives: np.ndarray, ray: Ray) -> float:
    """The distance of the nearest triangle; infinite for none."""
    nearest = np.inf
    for start in range(0, len(primitives), CHUNK):
        chunk = primitives[start : start + CHUNK]
        sides = (chunk[name][:, :3].astype(float) for name in ("v0", "edge1", "edge2"))
        # triangle_distances() returns the distances, and the mask of fronts.
        nearest = min(nearest, float(triangle_distances(sides, ray.origin, ray.direction)[0].min(initial=np.inf)))
    return nearest


def _box_distance(center: np.ndarray, size: np.ndarray, ray: Ray) -> float:
    """The distance of an axis-aligned box (slab test); infinite for a miss and for an origin inside of the box."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = (center - size / 2 - ray.origin) / ray.direction
        last = (center + size / 2 - ray.origin) / ray.direction
    enter, leave = np.nanmax(np.fmin(first, last)), np.nanmin(np.fmax(first, last))
    return float(enter) if leave >= max(enter, 0) and enter > 0 else np.inf
