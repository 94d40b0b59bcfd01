"""Converts the shapes of Settings to primitives, with the vertex attributes of meshes and models.

Geometry builds BVHs over the results. All shapes without a name share one BVH, the static geometry. A shape with a name
gets its own BVH and is drawn only as instances.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from renderer.bvh.primitives import collapse_duplicates, joined, radius_of, spheres, triangles, with_primitive_ids
from renderer.formats import gltf
from renderer.formats.gltf.rig import motion_masks
from renderer.formats.mesh import load_model, load_part
from renderer.formats.meshes.contents import TRIANGLE_BYTES
from renderer.raytracing import procedural
from renderer.raytracing.instances import Scattered, rotation_matrix
from renderer.raytracing.material_maps import projected_texcoords
from renderer.raytracing.models import gltf_shapes
from renderer.raytracing.models.motion import Poses
from renderer.raytracing.settings import SHAPE_GROUPS, Attractor, MeshShape, Procedural, Quad, Settings
from renderer.raytracing.solids import QUAD_FACES, Solid, mesh_about_origin, solid_arrays
from renderer.raytracing.textures import BASE_FLOAT4S, default_attributes, joined_attributes, write_texcoords
from renderer.records import dataclass
from renderer.system.trust import check_memory

MIN_MOVING_TRIANGLES = 20_000  # smallest rigid mesh that moves as an instance; vertices of smaller meshes move
MIN_KEPT_PRIMITIVES = 50_000  # fewest static primitives whose BVH is kept; fewer are rebuilt with the moving ones
QUAD_TEXCOORDS = np.array([[0, 1], [1, 1], [1, 0], [0, 0]])  # (u, v) of a quad's corners; v runs downwards
# Bytes that a primitive takes at most while a BVH is built on the host (187 to 236 measured), that a triangle of a mesh
# takes with normals, texture coordinates and colors, and that an instance takes.
PRIMITIVE_BYTES, MESH_BYTES, INSTANCE_BYTES = 256, TRIANGLE_BYTES, 1024
NO_PRIMITIVES = triangles(np.zeros((0, 3)), np.zeros((0, 3), int))
Arrays = tuple[np.ndarray, np.ndarray | None]  # primitives, and their attributes or None
NamedArrays = tuple[np.ndarray, np.ndarray | None, str]  # and the name of the object
ModelInstance = tuple[str, np.ndarray, np.ndarray, str]  # see ShapeArrays.instanced
Objects = list[tuple[str, int]]  # see ShapeArrays.objects


@dataclass(frozen=True)
class ShapeArrays:
    """The primitives of a scene at one time, with ids that count through all shapes.

    `primitives` are arrays (m,) PRIMITIVE by the name of their shape, "" for static geometry. Shapes that do not move
    have the same array object at all times. `attributes` (n, float4s, 4) are by primitive id; None if no shape has any.
    `instanced` are the instances of models' meshes: name, matrices (3, 4) at shutter open and close, and name of the
    node; "" for several nodes.
    `objects` are the names of the shapes and nodes (cryptomatte.py) and their numbers of primitives, in the ids' order.
    `closing` are, by name, the primitives at shutter close of shapes whose vertices move while the shutter is open. A
    primitive has another id, and so other attributes, than at shutter open.
    """

    primitives: dict[str, np.ndarray]
    attributes: np.ndarray | None
    instanced: list[ModelInstance]
    closing: dict[str, np.ndarray]
    objects: Objects


class SceneShapes:
    """Makes the ShapeArrays of a scene for any time; the constructor makes the shapes that do not move."""

    def __init__(self, settings: Settings, poses: list[Poses]):
        """`poses` are the poses of settings.models at one time, no matter which."""
        # First the shapes of the settings and the static meshes of models are made, by name; then the arrays of each
        # name are joined, and primitives and attributes numbered through.
        check_generated(settings)
        index, mesh_bytes = material_indices(settings), 0  # `mesh_bytes`: bytes of the meshes so far
        mapped = {material.name for material in settings.materials if material.has_maps}
        by_name: dict[str, list[NamedArrays]] = {"": [(NO_PRIMITIVES, None, "")]}
        for group, make in MAKERS.items():
            for where, shape in settings.items(group):
                # An instance of a named shape may have another material.
                has_maps = shape.material in mapped or bool(shape.name and mapped)
                if isinstance(shape, MeshShape):
                    mesh_bytes += MESH_BYTES * len(load_part(Path(shape.file)).faces)
                    check_memory(mesh_bytes, f"{shape.file} and the meshes before it")
                same_name = by_name.setdefault(shape.name, [])
                same_name.append((*make(shape, index[shape.material], has_maps), shape.name or where))
        self._is_blurred = settings.is_blurred
        self._models: list[_ModelNodes] = []
        material = len(settings.materials)  # index of the next model's first material, after the settings' materials
        for number, (shape, pose) in enumerate(zip(settings.models, poses, strict=True)):
            self._models.append(_ModelNodes(shape, pose, number, len(poses), material))
            mesh_bytes += MESH_BYTES * self._models[-1].triangles
            check_memory(mesh_bytes, f"{shape.file} and the meshes before it")
            self._models[-1].add_static(pose.opening, by_name)
            material += len(gltf_shapes.materials_of(pose.opening))
        static = sum(len(primitives) for primitives, *_ in by_name[""])
        # True: moving meshes are a shape of their model, drawn as an instance, so that the static BVH is kept.
        self._moves_as_instance = self._is_blurred or static >= MIN_KEPT_PRIMITIVES
        self._fixed: dict[str, np.ndarray] = {}  # by name, the primitives of shapes that do not move
        self._count = 0  # primitives in `_fixed`: the id of the first moving one
        self._objects: Objects = []  # names and primitives of these shapes, in the order of their ids
        rows: list[np.ndarray | None] = []  # attributes of each shape
        for name, arrays in by_name.items():
            self._objects += [(label, len(primitives)) for primitives, _, label in arrays]
            rows += [attributes for _, attributes, _ in arrays]
            nonempty = [primitives for primitives, *_ in arrays if len(primitives)] or [arrays[0][0]]
            arrays.clear()  # so that joined() holds the only references
            primitives = with_primitive_ids(joined(nonempty), self._count)
            self._fixed[name], self._count = primitives, self._count + len(primitives)
        self._attributes: np.ndarray | None = None
        if settings.models or mapped or any(row is not None for row in rows):
            shapes = zip(self._objects, rows, strict=True)
            filled = [default_attributes(n, BASE_FLOAT4S) if a is None else a for (_, n), a in shapes]
            self._attributes = joined_attributes(filled)

    def in_poses(self, poses: list[Poses], keep: bool = True) -> ShapeArrays:
        """Returns the shapes with the models in these poses. keep=False, for the last call, frees the static shapes."""
        primitives, closing = dict(self._fixed), dict[str, np.ndarray]()
        if not keep:
            self._fixed.clear()
        instanced, objects = list[ModelInstance](), list(self._objects)
        attributes, count = [] if self._attributes is None else [self._attributes], self._count
        for nodes, pose in zip(self._models, poses, strict=True):
            instanced += nodes.instances(pose)
            if not nodes.moving:
                continue
            # `group` is the name of the shape to which the model's moving primitives belong: the model's, a name that
            # only this model has, or "" for the static geometry.
            group = nodes.shape.name or (nodes.moving_name if self._moves_as_instance else "")
            if group == nodes.moving_name:
                instanced.append((group, np.eye(3, 4), np.eye(3, 4), ""))
            before = primitives.get(group, NO_PRIMITIVES)  # primitives of this name that do not move
            # The pose at shutter close only if something moves while the shutter is open.
            for shapes, model in ((primitives, pose.opening), (closing, pose.closing))[: 1 + self._is_blurred]:
                # Triangles that are equal at one end of the exposure may differ at the other: they stay.
                moved, rows, moved_objects = nodes.moving_arrays(model, not self._is_blurred)
                # The id is in w of v0. with_primitive_ids() also makes slivers points; a triangle that moves while the
                # shutter is open may be a sliver at one end only, so it is numbered without that.
                if self._is_blurred:
                    moved["v0"].view("i4")[:, 3] = np.arange(count, count + len(moved))
                else:
                    with_primitive_ids(moved, count)
                shapes[group], count = joined([shapes.get(group, before), moved]), count + len(moved)
                attributes.append(rows)
                objects += moved_objects
        all_attributes = self._attributes if len(attributes) < 2 else joined_attributes(attributes)
        return ShapeArrays(primitives, all_attributes, instanced, closing, objects)


class _ModelNodes:
    """The nodes of one model in three sets: static geometry, instances, and meshes whose vertices move."""

    def __init__(self, shape: gltf_shapes.ModelShape, pose: Poses, number: int, count: int, first_material: int):
        model = pose.opening
        self.shape, self.first_material = shape, first_material
        self._names = gltf_shapes.node_names(model, number, count)
        self.moving_name, self._prefix = f"\0{number}.moving", f"\0{number}."  # names that no scene file can contain
        # A model with a name is one shape that `instances` draws copies of: its nodes cannot be instances.
        repeated = gltf_shapes.instanced_meshes(model) if not shape.name else set()
        moves, deforms = np.zeros((2, len(model.mesh_nodes)), bool)
        if pose.animation is not None:
            moves, deforms = (rows[model.node_rows] for rows in motion_masks(model, pose.animation))
        self.triangles = 0  # triangles that are not instances
        self.instanced, self.moving, self._static = set[int](), list[int](), set[int]()  # indices of mesh_nodes
        for k, (mesh, _) in enumerate(model.mesh_nodes):
            size = sum(len(part.faces) for part in model.meshes[mesh])
            self.triangles += 0 if mesh in repeated else size
            is_rigid = moves[k] and not deforms[k] and size >= MIN_MOVING_TRIANGLES
            is_rigid = is_rigid and gltf_shapes.is_of_triangles(model.meshes[mesh])
            if mesh in repeated or (is_rigid and not shape.name):
                self.instanced.add(k)
            elif moves[k] or deforms[k]:
                self.moving.append(k)
            else:
                self._static.add(k)

    def add_static(self, model: gltf.Model, by_name: dict[str, list[NamedArrays]]) -> None:
        """Adds the static meshes, and the shapes of the instances, to the scene's shapes by name."""
        for k, (mesh, matrix) in enumerate(model.mesh_nodes):
            if k in self.instanced:
                name = f"{self._prefix}{mesh}"
                if name not in by_name:
                    by_name[name] = [(*gltf_shapes.mesh_arrays(model, mesh, np.eye(4), self.first_material), "")]
            elif k in self._static:
                to_world = self.shape.matrix() @ matrix
                arrays = gltf_shapes.mesh_arrays(model, mesh, to_world, self.first_material, scale=self.shape.scale)
                by_name.setdefault(self.shape.name, []).append((*arrays, self._names[k]))

    def instances(self, pose: Poses) -> list[ModelInstance]:
        """Returns the instances, with matrices to world space."""
        out, scene = [], self.shape.matrix()
        for k in sorted(self.instanced):
            (mesh, opening), (_, closing) = pose.opening.mesh_nodes[k], pose.closing.mesh_nodes[k]
            out.append((f"{self._prefix}{mesh}", (scene @ opening)[:3], (scene @ closing)[:3], self._names[k]))
        return out

    def moving_arrays(self, model: gltf.Model, collapse: bool) -> tuple[np.ndarray, np.ndarray, Objects]:
        """Returns primitives, attributes and objects of moving meshes in world space.

        `collapse` turns repeated triangles to points, as collapse_duplicates() does.
        """
        nodes, scene = [model.mesh_nodes[k] for k in self.moving], self.shape.matrix()
        arrays = [
            gltf_shapes.mesh_arrays(model, mesh, scene @ matrix, self.first_material, collapse, self.shape.scale)
            for mesh, matrix in nodes
        ]
        primitives, attributes = zip(*arrays, strict=True)
        objects = [(self._names[k], len(rows)) for k, rows in zip(self.moving, primitives, strict=True)]
        return np.concatenate(primitives), joined_attributes(attributes), objects


def check_generated(settings: Settings) -> None:
    """Raises InputError or UnavailableError if shapes that no file holds, or instances, take too much memory."""
    rows = [(_generated_bytes(item), where) for where, item in settings.items(*SHAPE_GROUPS, "instances", "scattered")]
    total, largest = sum(count for count, _ in rows), max(rows, default=(0, ""))
    check_memory(total, f"settings: {largest[1]} and {len(rows) - 1} other shapes and instances")


def _generated_bytes(item: object) -> int:
    """Returns the most bytes that the item takes while its BVH is built; 0 for meshes, whose files tell."""
    if isinstance(item, Procedural):
        return PRIMITIVE_BYTES * procedural.COUNTS[item.kind](item.level)
    if isinstance(item, Solid):
        return MESH_BYTES * len(mesh_about_origin(item).faces)
    if isinstance(item, Attractor):
        return PRIMITIVE_BYTES * int(len(item.maps) ** item.level)
    if isinstance(item, Scattered):
        return INSTANCE_BYTES * item.columns * item.rows
    return 0 if isinstance(item, MeshShape) else INSTANCE_BYTES


def geometry_bytes(settings: Settings) -> int:
    """Returns the bytes that shapes, mesh files and instances take while their BVHs are built."""
    items = [item for _, item in settings.items(*SHAPE_GROUPS, "instances", "scattered")]
    parts = [load_part(Path(item.file)) for item in items if isinstance(item, MeshShape)]
    parts += [part for shape in settings.models for mesh in load_model(shape.file).meshes for part in mesh]
    return sum(map(_generated_bytes, items)) + MESH_BYTES * sum(len(part.faces) for part in parts)


def material_indices(settings: Settings) -> dict[str, int]:
    """Returns the index of each material of settings.materials, by name."""
    return {material.name: index for index, material in enumerate(settings.materials)}


def _mesh(shape: MeshShape, material: int, has_maps: bool) -> Arrays:
    """Returns the triangles of a mesh file; with attributes if it has normals or colors, or its material maps."""
    part, matrix = load_part(Path(shape.file)), np.eye(4)
    matrix[:3, :3] = shape.scale * rotation_matrix((0.0, shape.rotation_degrees, 0.0))
    matrix[:3, 3] = shape.position
    if part.normals is None and part.colors is None and not has_maps:
        return collapse_duplicates(triangles(gltf_shapes.moved_vertices(part, matrix), part.faces, material)), None
    primitives, attributes = gltf_shapes.primitive_arrays(part, matrix, material, (0,) if has_maps else ())
    if has_maps and part.texcoords[0] is None:
        write_texcoords(attributes, 0, projected_texcoords(part.vertices[part.faces]))
    return primitives, attributes


def _quad(shape: Quad, material: int, has_maps: bool) -> Arrays:
    primitives = triangles(np.array(shape.corners), QUAD_FACES, material)
    if not has_maps:
        return primitives, None
    attributes = default_attributes(len(primitives), BASE_FLOAT4S)
    write_texcoords(attributes, 0, QUAD_TEXCOORDS[QUAD_FACES])
    return primitives, attributes


def _procedural(shape: Procedural, material: int, has_maps: bool) -> Arrays:
    """The primitives of a procedural shape, with projected texture coordinates if maps need them."""
    primitives = procedural.generate(shape.kind, shape.level)
    procedural.place(primitives, shape.scale, shape.position, material, shape.z_up)
    flat = radius_of(primitives) <= 0  # triangles
    if not has_maps or not flat.any():
        return primitives, None
    attributes = default_attributes(len(primitives), BASE_FLOAT4S)
    corner, first, second = (primitives[field][flat, :3] for field in ("v0", "edge1", "edge2"))
    rows = attributes[flat]
    write_texcoords(rows, 0, projected_texcoords(np.stack([corner, corner + first, corner + second], 1)))
    attributes[flat] = rows
    return primitives, attributes


def _attractor(shape: Attractor, material: int, has_maps: bool) -> Arrays:
    balls = procedural.attractor(np.reshape(shape.maps, (-1, 3, 4)), shape.level, shape.radius)
    procedural.place(balls, shape.scale, shape.position, material)
    return balls, None


MAKERS: dict[str, Callable[[Any, int, bool], Arrays]] = {  # by the field of Settings
    "spheres": lambda s, material, has_maps: (spheres(np.array([s.center]), np.array([s.radius]), material), None),
    "quads": _quad,
    "solids": solid_arrays,
    "meshes": _mesh,
    "procedural": _procedural,
    "attractors": _attractor,
}
