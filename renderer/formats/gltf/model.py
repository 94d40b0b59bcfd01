"""The contents of a glTF file as plain arrays."""

import math
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Texture:
    """A texture: (height, width, 4) uint8, its wrap modes, and whether it is filtered bilinearly."""

    pixels: np.ndarray
    wrap: tuple[str, ...] = ("repeat", "repeat")
    linear_filter: bool = True


@dataclass(frozen=True)
class Material:
    """The metallic-roughness model; textures by their row, -1 for none."""

    name: str = ""
    color: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)
    metallic: float = 1.0
    roughness: float = 1.0
    emission: tuple[float, ...] = (0.0, 0.0, 0.0)
    color_texture: int = -1
    surface_texture: int = -1  # roughness in green, metallic in blue
    normal_texture: int = -1
    emission_texture: int = -1
    normal_scale: float = 1.0
    alpha: str = "OPAQUE"
    cutoff: float = 0.5
    refraction: float = 1.5
    transmission: float = 0.0
    texcoord_set: int = 0  # n of the attribute TEXCOORD_n that its textures take


@dataclass(frozen=True)
class MeshPrimitive:
    """Triangles of one material: vertices (n, 3) float32 and faces (m, 3) int32.

    Optional vertex arrays: normals (n, 3), texture coordinates (n, 2), tangents (n, 4) whose last number is the
    handedness, and colors (n, 4), which multiply that of the material.
    """

    vertices: np.ndarray
    faces: np.ndarray
    normals: np.ndarray | None
    texcoords: np.ndarray | None
    material: int  # row of the materials, -1 for the plain one
    tangents: np.ndarray | None = None
    colors: np.ndarray | None = None


@dataclass(frozen=True)
class Camera:
    """A perspective camera of a node."""

    name: str
    matrix: np.ndarray  # (4, 4) to the world; it looks along -z
    fov_degrees: float  # vertical
    aspect: float | None


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
class Model:
    """The scene of a file: its meshes, lists of primitives; mesh_nodes are (mesh, matrix (4, 4) to the world)."""

    meshes: list[list[MeshPrimitive]]
    mesh_nodes: list[tuple[int, np.ndarray]]
    materials: list[Material]
    textures: list[Texture]
    cameras: list[Camera] = field(default_factory=list)
    lights: list[Light] = field(default_factory=list)
