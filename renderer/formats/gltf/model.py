"""Plain-data classes of a glTF file: Model and its members. Readers of other formats return them too.

Arrays have a row for each vertex, face or node; colors are linear. nodes.py builds the Model of a glTF file, and rig.py
poses it at a time of an animation.
"""

import math
from pathlib import Path

import numpy as np

from renderer.formats.gltf.animation import Animation
from renderer.formats.gltf.skins import Deformation, Skin
from renderer.records import dataclass, field


@dataclass(frozen=True)
class Texture:
    """A texture: (height, width, 4) uint8, its wrap modes, and whether it is filtered bilinearly."""

    pixels: np.ndarray
    wrap: tuple[str, ...] = ("repeat", "repeat")
    linear_filter: bool = True


@dataclass(frozen=True)
class TextureSlot:
    """A texture as one slot of a material uses it.

    `texture` is an index of Model.textures, `texcoord_set` the n of TEXCOORD_n, and `transform` the row-major 2x3
    matrix applied to (u, v, 1) (KHR_texture_transform). `scale` is a normal map's scale, or the occlusion strength.
    """

    texture: int
    texcoord_set: int = 0
    transform: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    scale: float = 1.0


@dataclass(frozen=True)
class Material:
    """The metallic-roughness model with the ratified extensions; defaults are the specification's.

    `emission` includes the emissive strength. An `ior` of 0 stands for an infinite index, which reflects all light.
    `textures` holds the slots by their glTF name in snake case: base_color, metallic_roughness (roughness in green,
    metallic in blue), normal, emissive, occlusion, clearcoat, clearcoat_roughness, clearcoat_normal, sheen_color,
    sheen_roughness, specular, specular_color, transmission, thickness, iridescence, iridescence_thickness, anisotropy,
    diffuse_transmission, diffuse_transmission_color. Each multiplies the field of the same name.
    """

    name: str = ""
    color: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)
    metallic: float = 1.0
    roughness: float = 1.0
    emission: tuple[float, ...] = (0.0, 0.0, 0.0)
    alpha: str = "OPAQUE"
    cutoff: float = 0.5
    double_sided: bool = False
    unlit: bool = False
    ior: float = 1.5
    specular: float = 1.0
    specular_color: tuple[float, ...] = (1.0, 1.0, 1.0)
    clearcoat: float = 0.0
    clearcoat_roughness: float = 0.0
    sheen_color: tuple[float, ...] = (0.0, 0.0, 0.0)
    sheen_roughness: float = 0.0
    transmission: float = 0.0
    thickness: float = 0.0  # in the coordinates of the mesh; 0 for a thin wall
    attenuation_color: tuple[float, ...] = (1.0, 1.0, 1.0)
    attenuation_distance: float = math.inf  # in the coordinates of the world
    iridescence: float = 0.0
    iridescence_ior: float = 1.3
    iridescence_thickness_minimum: float = 100.0  # nanometers
    iridescence_thickness_maximum: float = 400.0  # nanometers
    anisotropy: float = 0.0
    anisotropy_rotation: float = 0.0  # radians, counterclockwise from the tangent
    dispersion: float = 0.0  # 20 divided by the Abbe number
    diffuse_transmission: float = 0.0
    diffuse_transmission_color: tuple[float, ...] = (1.0, 1.0, 1.0)
    multiscatter_color: tuple[float, ...] = (0.0, 0.0, 0.0)
    scatter_anisotropy: float = 0.0
    textures: dict[str, TextureSlot] = field(default_factory=dict)


@dataclass(frozen=True)
class MeshPrimitive:
    """Triangles of one material: vertices (n, 3) float32 and faces (m, 3) int32; of lines (m, 2), of points (m, 1).

    Optional vertex arrays: normals (n, 3), tangents (n, 4) with the handedness as last number, and colors (n, 4), which
    multiply the material's base color. `texcoords[k]` is texture coordinate set k, (n, 2), or None if the material does
    not use the set.
    """

    vertices: np.ndarray
    faces: np.ndarray
    normals: np.ndarray | None
    texcoords: tuple[np.ndarray | None, ...]
    material: int  # index of Model.materials, -1 for the default material
    tangents: np.ndarray | None = None
    colors: np.ndarray | None = None
    deformation: Deformation | None = None  # morph targets and skin; None once they are applied

    @property
    def used_vertices(self) -> np.ndarray:
        """The vertices (n, 3) that `faces` refer to, each once, in ascending order."""
        is_used = np.zeros(len(self.vertices), bool)
        is_used[self.faces] = True
        return self.vertices[is_used]


@dataclass(frozen=True)
class Camera:
    """A camera of a node: perspective with a vertical angle of view, or orthographic with a height."""

    name: str
    matrix: np.ndarray  # (4, 4) camera to world; the camera looks along -z
    fov_degrees: float | None
    aspect: float | None  # width over height
    height: float | None = None  # height of an orthographic camera's view, in units of its node


@dataclass(frozen=True)
class Light:
    """`kind` is directional, point or spot; `power` is lux or candela, red, green, blue; angles from the axis, -z."""

    name: str
    kind: str
    matrix: np.ndarray
    power: tuple[float, float, float]
    inner: float = 0.0
    outer: float = math.pi / 4


@dataclass(frozen=True)
class Node:
    """A node of the scene, nodes[`number`] of the file.

    `matrix` (4, 4) maps to the parent at rest; an animated node has translation, rotation (a quaternion x, y, z, w) and
    scale instead. `deforms` is true if a skin or morph weights deform its mesh.
    """

    number: int
    parent: int  # index of Rig.nodes, -1 for none
    matrix: np.ndarray
    translation: tuple[float, ...]
    rotation: tuple[float, ...]
    scale: tuple[float, ...]
    mesh: int = -1
    skin: Skin | None = None
    weights: tuple[float, ...] = ()  # weights of the morph targets
    deforms: bool = False
    camera: Camera | None = None
    light: Light | None = None
    instances: np.ndarray | None = None  # (k, 4, 4) instance to node, of EXT_mesh_gpu_instancing; None: drawn once
    name: str = ""


@dataclass(frozen=True)
class Rig:
    """The node hierarchy that rig.py poses: the nodes, parents first, and the meshes before deformation.

    `is_shared[mesh]` is true if a node draws the mesh undeformed.
    """

    path: Path
    nodes: tuple[Node, ...]
    meshes: list[list[MeshPrimitive]]
    is_shared: list[bool]


@dataclass(frozen=True)
class Model:
    """The default scene of a file, in one pose: meshes (lists of primitives) and their placements.

    Each of `mesh_nodes` is (index of the mesh, matrix (4, 4) to the world); `node_rows` are the indices of their nodes
    in the rig. load() returns the pose at rest, rig.model_at() the pose at a time of one of the `animations`.

    Points are drawn as spheres of `point_radius`, lines as tubes of `line_radius`, both in world units.

    `ignored` counts the file's statements without effect, in the form renderer.plain.format_ignored takes.
    """

    meshes: list[list[MeshPrimitive]]
    mesh_nodes: list[tuple[int, np.ndarray]]
    materials: list[Material]
    textures: list[Texture]
    cameras: list[Camera] = field(default_factory=list)
    lights: list[Light] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)
    animations: tuple[Animation, ...] = ()
    rig: Rig | None = None
    node_rows: list[int] = field(default_factory=list)
    variants: tuple[str, ...] = ()  # names of KHR_materials_variants
    point_radius: float = 0.0
    line_radius: float = 0.0
    generator: str = ""  # the program that wrote the file
