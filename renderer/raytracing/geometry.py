"""Scenes as arrays: the primitives of all shapes, their tree on a device."""

import numpy as np

from renderer.bvh import build, instances
from renderer.bvh.primitives import PRIMITIVE, collapse_duplicates, spheres, triangles, with_primitive_ids
from renderer.formats import gltf
from renderer.formats.mesh import load_mesh, load_normals
from renderer.raytracing import procedural
from renderer.raytracing.distance_fields import FIELD, field_rows
from renderer.raytracing.gltf_shapes import ROWS, Pictures, bare_attributes, joined, materials_of, repeated, rows_of
from renderer.raytracing.instances import placements
from renderer.raytracing.settings import Attractor, Procedural, Settings

MOST_SHINING = 1 << 16  # triangles of instances that light is aimed at


def shapes_of(settings: Settings, models: list[gltf.Model]) -> "Shapes":
    """The primitives of all shapes, with those of the models behind the others."""
    row = _material_rows(settings)
    nothing = triangles(np.zeros((0, 3)), np.zeros((0, 3), int))
    parts: dict[str, list] = {"": [(nothing, None)]}
    for group, make in MAKERS.items():
        for shape in getattr(settings, group):
            carried = _mesh_attributes(shape) if group == "meshes" else None
            parts.setdefault(shape.name, []).append((make(shape, row[shape.material]), carried))
    placed, material = [], len(settings.materials)
    for index, (shape, model) in enumerate(zip(settings.models, models, strict=True)):
        copied = repeated(model) if not shape.name else set()
        for number, matrix in model.placed:
            if number in copied:
                name = f"\0{index}.{number}"  # no name that a scene file can hold
                if name not in parts:
                    parts[name] = [joined(model, number, np.eye(4), material)]
                placed.append((name, (shape.matrix() @ matrix)[:3]))
            else:
                made = joined(model, number, shape.matrix() @ matrix, material)
                parts.setdefault(shape.name, []).append(made)
        material += len(materials_of(model))
    return Shapes(parts, placed)


class Shapes:
    """`primitives` (m,) by the name of their shape, "" for what stands as it is, numbered through all shapes;
    `attributes` (n, MORE_ROWS, 4) by number, None where nothing has any; `placed` (name, matrix) of what models
    repeat."""

    def __init__(self, parts: dict[str, list], placed: list):
        flat = [part for group in parts.values() for part in group]
        sizes = [sum(len(primitives) for primitives, _ in group) for group in parts.values()]
        everything = with_primitive_ids(np.concatenate([primitives for primitives, _ in flat]))
        self.primitives = dict(zip(parts, np.split(everything, np.cumsum(sizes)[:-1]), strict=True))
        self.placed, self.attributes = placed, None
        if any(attributes is not None for _, attributes in flat):
            self.attributes = np.concatenate([bare_attributes(len(p)) if a is None else a for p, a in flat])


def _quad(quad, material: int) -> np.ndarray:
    return triangles(np.array(quad.corners), np.array([[0, 1, 2], [0, 2, 3]]), material)


def _mesh(shape, material: int) -> np.ndarray:
    vertices, faces = load_mesh(shape.file)
    placed = vertices @ (shape.scale * _turn(shape)).T + shape.position
    return collapse_duplicates(triangles(placed, faces, material))


def _turn(shape) -> np.ndarray:
    c, s = np.cos(np.radians(shape.rotation_degrees)), np.sin(np.radians(shape.rotation_degrees))
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _mesh_attributes(shape) -> np.ndarray | None:
    """The normals that a mesh file gives its corners, None where it gives none."""
    normals = load_normals(shape.file)
    if normals is None:
        return None
    _, faces = load_mesh(shape.file)
    size = np.linalg.norm(normals.astype("f8"), axis=1, keepdims=True)
    unit = np.divide(normals, size, out=np.zeros(normals.shape), where=size > 1e-30)
    attributes = bare_attributes(len(faces))
    attributes[:, :3, :3] = (unit @ _turn(shape).T)[faces]
    return attributes


def _attractor(shape: Attractor, material: int) -> np.ndarray:
    balls = procedural.attractor(np.reshape(shape.maps, (-1, 3, 4)), shape.level, shape.radius)
    return _placed(balls, shape, material)


MAKERS = {
    "spheres": lambda shape, material: spheres(np.array([shape.center]), np.array([shape.radius]), material),
    "quads": _quad,
    "meshes": _mesh,
    "procedural": lambda shape, material: _placed(procedural.make(shape.kind, shape.level), shape, material),
    "attractors": _attractor,
}


def _placed(primitives: np.ndarray, shape: Procedural | Attractor, material: int) -> np.ndarray:
    """Primitives with a Procedural's scale, turn, position and material."""
    for field in ("v0", "edge1", "edge2"):
        if isinstance(shape, Procedural) and shape.z_up:
            x, y, z = primitives[field][:, :3].T.copy()
            primitives[field][:, :3] = np.stack([y, z, x], 1)
        primitives[field][:, :3] *= np.float32(shape.scale)
    primitives["v0"][:, :3] += np.array(shape.position, "f4")
    primitives["edge2"][:, 3] *= np.float32(shape.scale)
    primitives["edge1"].view("i4")[:, 3] = material
    return primitives


def _material_rows(settings: Settings) -> dict[str, int]:
    return {material.name: index for index, material in enumerate(settings.materials)}


def moved(triangles: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Triangles (n,) PRIMITIVE moved by a matrix (3, 4); where it mirrors, edges are exchanged and the radius is -1."""
    out = triangles.copy()
    for field in ("v0", "edge1", "edge2"):
        out[field][:, :3] = triangles[field][:, :3].astype("f8") @ matrix[:, :3].T
    out["v0"][:, :3] += matrix[:, 3]
    if np.linalg.det(matrix[:, :3]) < 0:
        out["edge1"][:, :3], out["edge2"][:, :3] = out["edge2"][:, :3].copy(), out["edge1"][:, :3].copy()
        out["edge2"][:, 3] = -1
    return out


class Geometry:
    """The shapes of one Settings on a device: tree, primitives in the tree's order, of which some stand there again and
    again, instances and fields."""

    def __init__(self, device, settings: Settings):
        self.models = [gltf.load(shape.file) for shape in settings.models]
        shapes = shapes_of(settings, self.models)
        parts = shapes.primitives
        self.has_spheres = any(bool((part["edge2"][:, 3] > 0).any()) for part in parts.values())
        standing = parts.pop("")
        self.primitive_count = len(standing)
        placed = bool(settings.has_instances or shapes.placed)
        # BLASes are BVH2, and on GPUs one kernel traverses all BVHs of a scene with the same nodes
        layout = "bvh2" if placed and not device.properties.scalar_threads else settings.bvh
        self.bvh = build.build_bvh(device, standing, settings.builder, layout)
        self.primitives = self.bvh.primitives.read()[: self.bvh.count].view(PRIMITIVE).ravel()
        self.instances, self._names, self._standing = None, list(parts), None
        self._repeated, self._shapes = shapes.placed, list(parts.values())
        if placed:
            which, material, *_ = self._placements(settings)
            self.instances = instances.Instances(device, self._shapes, which, material)
        self._pictures, self.cut_out, self.attribute_rows = (), False, ROWS
        self._shining, self._shining_key = np.zeros(0, PRIMITIVE), None
        if shapes.attributes is not None:
            self._decorate(device, shapes.attributes, len(settings.materials))
        self.field_count = len(settings.distance_fields)
        self._fields = device.buffer(max(self.field_count, 1), FIELD)
        self.place(settings)

    @property
    def rows(self) -> tuple:
        """The arguments SCENE_TAKEN of shaders/raytracing/scene.h."""
        rows = self.bvh.nodes, self.bvh.primitives
        rows += self.instances.kernel_args if self.instances else ()
        rows += (self._fields,) if self.field_count else ()
        return rows + self._pictures

    @property
    def constants(self) -> dict[str, int]:
        """What of the scene the kernels are compiled for."""
        return {
            "INSTANCES": int(self.instances is not None),
            "DISTANCE_FIELDS": self.field_count,
            "TEXTURED": int(bool(self._pictures)),
            "ALPHA_TEST": int(self.cut_out),
            "FLOAT4S_PER_PRIMITIVE": self.attribute_rows,
        }

    def _decorate(self, device, attributes: np.ndarray, plain: int) -> None:
        """Puts normals, coordinates and pictures on the device; `plain` is the number of the scene's own materials."""
        pictures = Pictures(plain, self.models)
        self.cut_out = pictures.cut_out
        self.attribute_rows = rows_of(self.models)
        attributes = np.ascontiguousarray(attributes[:, : self.attribute_rows])
        arrays = attributes.reshape(-1, 4 * self.attribute_rows), pictures.looks, pictures.pictures, pictures.texels
        made = [device.buffer(len(a) if a.ndim == 1 else a.shape, a.dtype).write(a) for a in arrays if len(a)]
        self._pictures = tuple(made)

    def _placements(self, settings: Settings):
        """As placing.placements tells them, with what models repeat behind the others."""
        parts = list(placements(settings, self._names, _material_rows(settings))) if settings.has_instances else None
        if not self._repeated:
            return parts
        which = np.array([self._names.index(name) for name, _ in self._repeated])
        matrices = np.array([matrix for _, matrix in self._repeated])
        more = which, np.full(len(which), -1), matrices, matrices
        return more if parts is None else [np.concatenate(both) for both in zip(parts, more, strict=True)]

    def shining(self, settings: Settings, materials: np.ndarray) -> np.ndarray:
        """The triangles (k,) PRIMITIVE of instances that shine, in world space, in the order of the instances; none
        where one of them moves or they are more than light is aimed at.

        Of an instance that mirrors, the edges are exchanged, so that the front stays in front, and the radius is -1.
        """
        key = settings.instances, settings.shutter_close, materials["emission"].tobytes()
        if self.instances and key != self._shining_key:
            self._shining, self._shining_key = self._find_shining(settings, materials), key
        return self._shining

    def _find_shining(self, settings: Settings, materials: np.ndarray) -> np.ndarray:
        which, override, opening, closing = self._placements(settings)
        found, count = [np.zeros(0, PRIMITIVE)], 0
        for shape, material in np.unique(np.stack([which, override], 1), axis=0):
            primitives = self._shapes[shape].copy()
            if material >= 0:
                primitives["edge1"].view("i4")[:, 3] = material
            bright = materials["emission"][primitives["edge1"].view("i4")[:, 3], 3] > 0
            primitives = primitives[bright & (primitives["edge2"][:, 3] <= 0)]
            places = np.flatnonzero((which == shape) & (override == material)) if len(primitives) else ()
            count += len(places) * len(primitives)
            if count > MOST_SHINING or any((opening[place] != closing[place]).any() for place in places):
                return found[0]
            found += [moved(primitives, opening[place]) for place in places]
        return np.concatenate(found)

    def place(self, settings: Settings) -> None:
        """Moves instances and distance fields to where they are; the upper tree is built anew."""
        standing = settings.instances, settings.shutter_close, settings.distance_fields
        if standing == self._standing:
            return
        rows = _material_rows(settings)
        if self.instances:
            *_, opening, closing = self._placements(settings)
            self.instances.update(opening, closing if settings.shutter_close else None)
        if self.field_count:
            self._fields.write(field_rows(settings.distance_fields, rows))
        self._standing = standing
