"""The geometry of a scene on a device: a BVH of the static shapes, instances, distance fields and textures.

Geometry uploads the shapes that shapes.SceneShapes loads, and gives kernels their arguments and compile-time constants.
pictures/raytrace.py keeps one Geometry while the shapes of its settings stay the same, and calls update() every frame.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from renderer.bvh.build import build_bvh, uses_bvh8
from renderer.bvh.instances import Instances
from renderer.bvh.layouts import Bvh
from renderer.bvh.primitives import PRIMITIVE, HostPrimitives, bounds_by_material, material_of, radius_of
from renderer.gpu.device import Buffer, Device
from renderer.gpu.dlpack import import_tensor
from renderer.raytracing.distance_fields import FIELD, bounding_radius, field_records
from renderer.raytracing.instances import InstanceTransforms, instance_matrix, scatter
from renderer.raytracing.material_files import declares
from renderer.raytracing.material_maps import texture_slots
from renderer.raytracing.models.gltf_shapes import materials_of
from renderer.raytracing.models.motion import poses_of
from renderer.raytracing.settings import Settings
from renderer.raytracing.shapes import SceneShapes, ShapeArrays, material_indices
from renderer.raytracing.textures import BASE_FLOAT4S, TextureArrays, default_attributes

MAX_INSTANCED_LIGHTS = 1 << 16  # most emissive triangles of instances that NEE samples


class InstancedLights(NamedTuple):
    """Emissive triangles (k,) PRIMITIVE of instances in world space, and the index (k,) of each triangle's instance."""

    triangles: np.ndarray
    instances: np.ndarray


NO_LIGHTS = InstancedLights(np.zeros(0, PRIMITIVE), np.zeros(0, "i4"))


class StaticPrimitives:
    """The primitives of the static BVH, in which LightSampler finds the emissive ones.

    `bounds` are the least and largest corners of the primitives by material index. `none` is an empty array (0,).
    """

    none = NO_LIGHTS.triangles

    def __init__(self, bvh: Bvh, bounds: dict[int, tuple[np.ndarray, np.ndarray]]):
        self._bvh, self.bounds = bvh, bounds

    @cached_property
    def rows(self) -> np.ndarray:
        """The primitives (m,) PRIMITIVE in the BVH's order; a presplit BVH repeats some.

        The first access reads them from the device, which only scenes with emissive surfaces need.
        """
        return self._bvh.primitives.read()[: self._bvh.count].view(PRIMITIVE).ravel()


class Geometry:
    """The geometry of one Settings on a device. `models` are its models, posed at shutter opening.

    `before_build` is called when `constants` are known and before the BVH is built, so that kernels compile during the
    build. It is not called for textured scenes, whose constants are known only after the build.
    """

    def __init__(
        self, device: Device, settings: Settings, before_build: Callable[["Geometry"], None] = lambda _: None
    ) -> None:
        self.device, self._builder, self._layout = device, settings.builder, settings.bvh
        self._shutter, poses = settings.shutter, poses_of(settings.models, settings.shutter)
        self.models = [pose.opening for pose in poses]
        self._scene_maps = settings.materials, settings.textures
        self._scene_shapes = SceneShapes(settings, poses)
        self._instances: Instances | None = None
        self._attributes: tuple[Buffer, ...] = ()  # the buffer of vertex attributes, if the scene is textured
        self._textures: tuple[Buffer, ...] = ()  # material textures, texture records, texels
        self._texture_constants: dict[str, object] = {}
        self.shapes: ShapeArrays | None = None  # the shapes of the last _take()
        self.bvh: Bvh  # over the static primitives
        self.builds = self.primitive_count = 0  # builds and primitives of the static BVH
        self._field_count = len(settings.distance_fields)
        self._before_build, self.has_instances = before_build, False
        self._take(self._scene_shapes.in_poses(poses, keep=settings.is_animated), settings)
        self._lights = NO_LIGHTS
        self._lights_key: tuple[object, ...] = ()
        self._fields = device.buffer(max(self._field_count, 1), FIELD)
        self._transform_key: tuple[object, ...] = ()  # the settings of the last update
        self.update(settings)

    def _take(self, shapes: ShapeArrays, settings: Settings) -> None:
        """Uploads the shapes that changed since the last call, and builds the BVHs over them.

        `shapes.primitives` holds the static primitives by the name "", and shapes of instances by theirs. An array that
        is the same object as in the last call has not changed. In order: the static BVH, the BVHs of instanced shapes,
        the vertex attributes.
        """
        before, self.shapes = self.shapes, shapes
        named = [name for name in shapes.primitives if name]
        self.has_instances = self.has_instances or bool(settings.has_instances or shapes.instanced)
        if before is None or shapes.primitives[""] is not before.primitives[""]:
            self.has_spheres = any(bool((radius_of(p) > 0).any()) for p in shapes.primitives.values())
            # In a later frame of an animation a BVH is built faster or refitted. A presplit BVH, which repeats
            # primitives, is presplit again.
            last = self.bvh if before is not None and self.bvh.count == self.primitive_count else None
            static = HostPrimitives(shapes.primitives[""])
            if not settings.is_animated:
                shapes.primitives[""] = NO_LIGHTS.triangles  # an empty array: frees primitives that no pose will move
            self.primitive_count = static.count
            bounds = bounds_by_material(static.rows)
            if shapes.attributes is None:
                self._before_build(self)
            self.bvh = build_bvh(self.device, static, self._builder, self._layout, last)
            self.primitives = StaticPrimitives(self.bvh, bounds)
            self.builds += 1
        if settings.has_instances or shapes.instanced:
            self._names = named
            if before is None or any(shapes.primitives[name] is not before.primitives[name] for name in named):
                transforms = self._transforms(settings)
                self._instances = Instances(
                    self.device, [shapes.primitives[name] for name in named], transforms.shape_of,
                    transforms.material_of, [shapes.closing.get(name) for name in named], self._instances,
                )  # fmt: skip
        if shapes.attributes is not None and (before is None or shapes.attributes is not before.attributes):
            self._upload_attributes(shapes.attributes)

    @property
    def kernel_args(self) -> tuple[Buffer, ...]:
        """The kernel arguments GEOMETRY_PARAMS of shaders/raytracing/scene.h."""
        instances = self._instances.kernel_args if self._instances else ()
        fields = (self._fields,) if self._field_count else ()
        return self.bvh.nodes, self.bvh.primitives, *instances, *fields, *self._attributes, *self._textures

    @property
    def bvhs(self) -> list[Bvh]:
        """The BVH of the static shapes and, with instances, the TLAS above them."""
        return [self.bvh, self._instances.tlas] if self._instances and self._instances.tlas else [self.bvh]

    @property
    def constants(self) -> dict[str, object]:
        """Compile-time constants of the kernels that depend on the geometry."""
        return {
            "BVH8": int(uses_bvh8(self.device, self._layout)),
            "INSTANCES": int(self.has_instances),
            "DEFORMS": int(bool(self.shapes and self.shapes.closing)),
            "DISTANCE_FIELDS": self._field_count,
            "TEXTURED": int(bool(self._textures)),
            **self._texture_constants,
        }

    def _upload_attributes(self, attributes: np.ndarray) -> None:
        """Uploads the vertex attributes (m, float4s, 4), and on the first call the textures."""
        if not self._textures:
            of_models = [(materials_of(model), model.textures) for model in self.models]
            textures = TextureArrays([texture_slots(*self._scene_maps), *of_models])
            has_maps = any(material.has_maps for material in self._scene_maps[0])
            self._texture_constants = textures.constants | {
                "FLOAT4S_PER_PRIMITIVE": attributes.shape[1], "SPHERE_TEXTURES": int(has_maps and self.has_spheres)
            }  # fmt: skip
            arrays = textures.material_textures, textures.textures
            texels = self.device.borrow(import_tensor(textures.texels)) or _upload(self.device, textures.texels)
            self._textures = (*(_upload(self.device, array) for array in arrays), texels)
        rows = attributes if len(attributes) else default_attributes(1, BASE_FLOAT4S)
        self._attributes = (_upload(self.device, rows.reshape(-1, 4 * rows.shape[1])),)

    def _transforms(self, settings: Settings) -> InstanceTransforms:
        """Returns the transforms of instances, then of scattered ones, then of instanced meshes of models."""
        groups = []
        index, material = self._names.index, material_indices(settings) | {"": -1}  # -1: the shape's own materials
        if settings.instances:
            shape_of = np.array([index(instance.shape) for instance in settings.instances])
            material_of = np.array([material[instance.material] for instance in settings.instances])
            opening = np.array([instance_matrix(instance) for instance in settings.instances])
            closing = np.array([instance_matrix(instance) for instance in settings.shutter_close or settings.instances])
            groups.append(InstanceTransforms(shape_of, material_of, opening, closing))
        for group in settings.scattered:
            chosen, matrices = scatter(group)
            shape_of = np.array([index(name) for name in group.shapes])[chosen]
            materials = np.full(len(chosen), material[group.material])
            groups.append(InstanceTransforms(shape_of, materials, matrices, matrices))
        if instanced := self.shapes.instanced if self.shapes else []:
            shape_of = np.array([index(name) for name, *_ in instanced])
            opening, closing = (np.array([row[k] for row in instanced]) for k in (1, 2))  # matrices (3, 4)
            groups.append(InstanceTransforms(shape_of, np.full(len(shape_of), -1), opening, closing))
        return InstanceTransforms(*(np.concatenate(column) for column in zip(*groups, strict=True)))

    def instanced_lights(self, settings: Settings, materials: np.ndarray) -> InstancedLights:
        """Returns the emissive triangles of instances, in world space; `materials` are (m,) MATERIAL.

        Returns NO_LIGHTS if an emissive instance moves, or for more than MAX_INSTANCED_LIGHTS triangles: then paths hit
        these emitters by BSDF sampling alone.
        """
        key = settings.instances, settings.shutter_close, self._shutter, materials["emission"].tobytes()
        if self._instances and key != self._lights_key:
            self._lights, self._lights_key = self._find_instanced_lights(settings, materials), key
        return self._lights

    def _find_instanced_lights(self, settings: Settings, materials: np.ndarray) -> InstancedLights:
        """The triangles of instances that emit light, in world space; none if they are too many or move."""
        instances = self._transforms(settings)
        triangles, instance_of, count = [NO_LIGHTS.triangles], [NO_LIGHTS.instances], 0
        assert self.shapes is not None
        for shape, material in np.unique(np.stack([instances.shape_of, instances.material_of], 1), axis=0):
            primitives = self.shapes.primitives[self._names[shape]].copy()
            if material >= 0:
                material_of(primitives)[:] = material
            emits = materials["emission"][material_of(primitives), 3] > 0
            primitives = primitives[emits & (radius_of(primitives) <= 0)]  # triangles; spheres have a radius
            if not len(primitives):
                continue
            chosen = np.flatnonzero((instances.shape_of == shape) & (instances.material_of == material))
            opening = instances.matrices_open[chosen]
            count += len(chosen) * len(primitives)
            if self._names[shape] in self.shapes.closing:  # its vertices move while the shutter is open
                return NO_LIGHTS
            if count > MAX_INSTANCED_LIGHTS or (opening != instances.matrices_close[chosen]).any():
                return NO_LIGHTS
            triangles += [transformed(primitives, matrix) for matrix in opening]
            instance_of.append(np.repeat(chosen, len(primitives)))
        return InstancedLights(np.concatenate(triangles), np.concatenate(instance_of).astype("i4"))

    def bounding_sphere(self, settings: Settings, materials: np.ndarray) -> tuple[np.ndarray, float]:
        """Returns center (3,) and radius of a sphere around all shapes but shadow catchers; 0 and 1 without shapes."""
        is_catcher = declares(materials, "shadow_catcher")
        boxes = [np.array(box) for material, box in self.primitives.bounds.items() if not is_catcher[material]]
        if self._instances:
            blases, transforms = self._instances.blases, self._transforms(settings)
            for shape, matrix in zip(transforms.shape_of, transforms.matrices_open, strict=True):
                box = np.array([blases[shape].low, blases[shape].high])
                corners = np.array(np.meshgrid(*box.T)).reshape(3, -1).T @ matrix[:, :3].T + matrix[:, 3]
                boxes.append(np.array([corners.min(0), corners.max(0)]))
        for field in settings.distance_fields:
            size = field.scale * bounding_radius(field)
            boxes.append(np.array(field.position) + np.array([[-size], [size]]))
        if not boxes:
            return np.zeros(3), 1.0
        low, high = np.min([box[0] for box in boxes], 0), np.max([box[1] for box in boxes], 0)
        return (low + high) / 2, float(np.linalg.norm(high - low)) / 2

    def update(self, settings: Settings) -> None:
        """Moves models, instances and distance fields to the time and transforms of the settings.

        Rebuilds the TLAS, and the BVHs of shapes whose vertices moved.
        """
        if settings.is_animated and settings.shutter != self._shutter:
            poses = poses_of(settings.models, settings.shutter)
            self.models, self._shutter = [pose.opening for pose in poses], settings.shutter
            self._take(self._scene_shapes.in_poses(poses), settings)
        key = settings.instances, settings.shutter_close, settings.distance_fields, self._shutter
        if key == self._transform_key:
            return
        if self._instances:
            transforms = self._transforms(settings)
            self._instances.update(transforms.matrices_open, transforms.matrices_close if settings.is_blurred else None)
        if self._field_count:
            self._fields.write(field_records(settings.distance_fields, material_indices(settings)))
        self._transform_key = key


def _upload(device: Device, array: np.ndarray) -> Buffer:
    return device.buffer(len(array) if array.ndim == 1 else array.shape, array.dtype).write(array)


def transformed(triangles: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Returns the triangles (n,) PRIMITIVE transformed by a matrix (3, 4).

    A matrix that mirrors swaps the edges, so that the front face stays the front; the radius -1 marks swapped edges.
    """
    out = triangles.copy()
    for field in ("v0", "edge1", "edge2"):
        out[field][:, :3] = triangles[field][:, :3].astype("f8") @ matrix[:, :3].T
    out["v0"][:, :3] += matrix[:, 3]
    if np.linalg.det(matrix[:, :3]) < 0:
        out["edge1"][:, :3], out["edge2"][:, :3] = out["edge2"][:, :3].copy(), out["edge1"][:, :3].copy()
        radius_of(out)[:] = -1
    return out
