"""The geometry of a scene on a device: BVH of the static shapes, instances, distance fields, textures."""

from pathlib import Path

import numpy as np

from renderer.bvh.build import build_bvh
from renderer.bvh.instances import Instances
from renderer.bvh.primitives import PRIMITIVE
from renderer.formats import gltf
from renderer.gpu.device import Buffer, Device
from renderer.raytracing.distance_fields import FIELD, field_records
from renderer.raytracing.gltf_shapes import DEFAULT_MATERIAL, materials_of
from renderer.raytracing.instances import InstanceTransforms, instance_matrix, scatter
from renderer.raytracing.settings import Settings
from renderer.raytracing.shapes import material_indices, shape_arrays
from renderer.raytracing.textures import TextureArrays

MAX_INSTANCED_LIGHTS = 1 << 16  # emissive triangles of instances that next-event estimation samples


class Geometry:
    """The geometry of one Settings on a device.

    `primitives` (m,) are those of the static BVH in its order; with a presplit BVH some occur more than once. `models`
    are the files of settings.models.
    """

    def __init__(self, device: Device, settings: Settings):
        self.models = [gltf.load(Path(shape.file)) for shape in settings.models]
        shapes = shape_arrays(settings, self.models)
        by_name = shapes.primitives
        self.has_spheres = any(bool((shape["edge2"][:, 3] > 0).any()) for shape in by_name.values())
        static = by_name.pop("")
        self.primitive_count = len(static)
        has_instances = bool(settings.has_instances or shapes.instanced)
        self.bvh = build_bvh(device, static, settings.builder, settings.bvh)
        self.primitives = self.bvh.primitives.read()[: self.bvh.count].view(PRIMITIVE).ravel()
        self._names, self._shapes, self._repeated = list(by_name), list(by_name.values()), shapes.instanced
        self._instances: Instances | None = None
        if has_instances:
            transforms = self._transforms(settings)
            self._instances = Instances(device, self._shapes, transforms.shape_of, transforms.material_of)
        self._textures: tuple[Buffer, ...] = ()
        self._texture_constants: dict[str, object] = {}
        if shapes.attributes is not None:
            self._upload_attributes(device, shapes.attributes, len(settings.materials))
        self._lights = np.zeros(0, PRIMITIVE)
        self._lights_key: tuple = ()
        self._field_count = len(settings.distance_fields)
        self._fields = device.buffer(max(self._field_count, 1), FIELD)
        self._placed: tuple = ()  # the settings of the last update
        self.update(settings)

    @property
    def kernel_args(self) -> tuple[Buffer, ...]:
        """The arguments SCENE_PARAMS of shaders/raytracing/scene.h."""
        instances = self._instances.kernel_args if self._instances else ()
        fields = (self._fields,) if self._field_count else ()
        return self.bvh.nodes, self.bvh.primitives, *instances, *fields, *self._textures

    @property
    def constants(self) -> dict[str, object]:
        """Compile-time constants of the kernels that depend on the geometry."""
        return {
            "BVH8": int(self.bvh.layout == "bvh8"),
            "INSTANCES": int(self._instances is not None),
            "DISTANCE_FIELDS": self._field_count,
            "TEXTURED": int(bool(self._textures)),
            **self._texture_constants,
        }

    def _upload_attributes(self, device: Device, attributes: np.ndarray, own_materials: int) -> None:
        """Uploads vertex attributes and textures; `own_materials` is the number of the scene's own materials."""
        own = [DEFAULT_MATERIAL] * own_materials
        textures = TextureArrays([(own, ()), *((materials_of(model), model.textures) for model in self.models)])
        count = attributes.shape[1]
        self._texture_constants = textures.constants | {"FLOAT4S_PER_PRIMITIVE": count}
        attributes = attributes.reshape(-1, 4 * count)
        arrays = attributes, textures.material_textures, textures.textures, textures.texels
        self._textures = tuple(
            device.buffer(len(a) if a.ndim == 1 else a.shape, a.dtype).write(a) for a in arrays if len(a)
        )

    def _transforms(self, settings: Settings) -> InstanceTransforms:
        """The instances of the settings, and behind them those of repeated meshes of models."""
        groups = []
        index, material = self._names.index, material_indices(settings) | {"": -1}
        if settings.instances:
            shape_of = np.array([index(instance.shape) for instance in settings.instances])
            material_of = np.array([material[instance.material] for instance in settings.instances])
            opening = np.array([instance_matrix(instance) for instance in settings.instances])
            closing = np.array([instance_matrix(instance) for instance in settings.shutter_close or settings.instances])
            groups.append(InstanceTransforms(shape_of, material_of, opening, closing))
        for group in settings.scattered:
            chosen, matrices = scatter(group)
            shape_of = np.array([index(name) for name in group.shapes])[chosen]
            groups.append(
                InstanceTransforms(shape_of, np.full(len(chosen), material[group.material]), matrices, matrices)
            )
        if self._repeated:
            shape_of = np.array([self._names.index(name) for name, _ in self._repeated])
            matrices = np.array([matrix for _, matrix in self._repeated])
            groups.append(InstanceTransforms(shape_of, np.full(len(shape_of), -1), matrices, matrices))
        return InstanceTransforms(*(np.concatenate(column) for column in zip(*groups, strict=True)))

    def instanced_lights(self, settings: Settings, materials: np.ndarray) -> np.ndarray:
        """The emissive triangles (k,) PRIMITIVE of instances, in world space, in the order of the instances.

        None if one of them moves, or if there are more than MAX_INSTANCED_LIGHTS: BSDF sampling alone finds them then.
        If the transform has a negative determinant, the edges are swapped, so that the front stays the front, and the
        radius is -1.
        """
        key = settings.instances, settings.shutter_close, materials["emission"].tobytes()
        if self._instances and key != self._lights_key:
            self._lights, self._lights_key = self._find_instanced_lights(settings, materials), key
        return self._lights

    def _find_instanced_lights(self, settings: Settings, materials: np.ndarray) -> np.ndarray:
        instances = self._transforms(settings)
        none = np.zeros(0, PRIMITIVE)
        found, count = [none], 0
        for shape, material in np.unique(np.stack([instances.shape_of, instances.material_of], 1), axis=0):
            primitives = self._shapes[shape].copy()
            if material >= 0:
                primitives["edge1"].view("i4")[:, 3] = material
            emits = materials["emission"][primitives["edge1"].view("i4")[:, 3], 3] > 0
            primitives = primitives[emits & (primitives["edge2"][:, 3] <= 0)]
            if not len(primitives):
                continue
            chosen = np.flatnonzero((instances.shape_of == shape) & (instances.material_of == material))
            opening = instances.matrices_open[chosen]
            count += len(chosen) * len(primitives)
            if count > MAX_INSTANCED_LIGHTS or (opening != instances.matrices_close[chosen]).any():
                return none
            found += [transformed(primitives, matrix) for matrix in opening]
        return np.concatenate(found)

    def update(self, settings: Settings) -> None:
        """Moves instances and distance fields to the settings' transforms; the TLAS is rebuilt."""
        placed = settings.instances, settings.shutter_close, settings.distance_fields
        if placed == self._placed:
            return
        if self._instances:
            transforms = self._transforms(settings)
            self._instances.update(
                transforms.matrices_open, transforms.matrices_close if settings.shutter_close else None
            )
        if self._field_count:
            self._fields.write(field_records(settings.distance_fields, material_indices(settings)))
        self._placed = placed


def transformed(triangles: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Triangles (n,) PRIMITIVE times a matrix (3, 4); a negative determinant swaps the edges and sets radius -1."""
    out = triangles.copy()
    for field in ("v0", "edge1", "edge2"):
        out[field][:, :3] = triangles[field][:, :3].astype("f8") @ matrix[:, :3].T
    out["v0"][:, :3] += matrix[:, 3]
    if np.linalg.det(matrix[:, :3]) < 0:
        out["edge1"][:, :3], out["edge2"][:, :3] = out["edge2"][:, :3].copy(), out["edge1"][:, :3].copy()
        out["edge2"][:, 3] = -1
    return out
