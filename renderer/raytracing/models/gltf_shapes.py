"""glTF models in scenes: their meshes as PRIMITIVE records with vertex attributes, and their materials.

ModelShape is a table [[models]] of a scene file. shapes.py calls mesh_arrays() for each mesh; materials.py and
geometry.py take the materials from materials_of(). shaders/raytracing/textures/texture.h describes the attributes.
"""

from collections import Counter

import numpy as np

from renderer.bvh.primitives import PRIMITIVE, collapse_duplicates, spheres, triangles
from renderer.formats import gltf
from renderer.formats.mesh import GLTF_SUFFIXES, SUFFIXES, load_model
from renderer.raytracing import textures
from renderer.raytracing.instances import Point, placement
from renderer.records import dataclass
from renderer.scene.schema import required_file, setting

DEFAULT_MATERIAL = gltf.Material("default", metallic=0.0, color=(0.75, 0.75, 0.75, 1.0))
COLORED_MATERIAL = gltf.Material("vertex colors", metallic=0.0)
COMPUTED_SLOTS = ("occlusion", "thickness")  # textures that are ignored, because a path tracer computes the effect
Arrays = tuple[np.ndarray, np.ndarray]  # primitives and their attributes
MIN_INSTANCED_TRIANGLES = 20_000  # least triangles, in all copies of a mesh, for instances instead of static triangles


@dataclass(frozen=True)
class ModelShape:
    """A glTF file with its own materials and textures, scaled, then rotated, then moved."""

    file: str = required_file((*SUFFIXES, *GLTF_SUFFIXES[1:]))
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    rotation_degrees: Point = setting((0.0, 0.0, 0.0), help="about x, then y, then z")
    position: Point = (0.0, 0.0, 0.0)
    name: str = setting("", help="a named shape is drawn only as instances")
    animation: str = setting("", help="name or number, from 0, of the animation that plays and repeats; none at rest")
    camera: int = setting(-1, -1, 1 << 20, "number of the file's camera that moves the view in the animation; -1: none")
    moves_lights: bool = setting(False, help="the first suns and point lights are the file's and move in the animation")
    emission_scale: float = setting(
        1.0, 0.0, 1e6, "factor of the light that the file's materials emit", logarithmic=True
    )
    variant: str = setting("", help="name of the file's material variant; none: the materials that it has by default")

    def load(self) -> gltf.Model:
        """Loads the model of the file, with the materials of the variant; raises InputError."""
        return load_model(self.file, self.variant)

    def matrix(self) -> np.ndarray:
        """Returns the transform (4, 4) from the file's world space to the scene's."""
        return np.vstack([placement(self.scale, self.rotation_degrees, self.position), [0, 0, 0, 1]])


def materials_of(model: gltf.Model) -> list[gltf.Material]:
    """Returns the model's materials, then defaults of mesh primitives without one: white for vertex colors, gray."""
    colored = any(part.colors is not None and part.material < 0 for parts in model.meshes for part in parts)
    return [*model.materials, *((COLORED_MATERIAL,) if colored else ()), DEFAULT_MATERIAL]


def node_names(model: gltf.Model, number: int, count: int) -> list[str]:
    """Returns the names of the nodes of model.mesh_nodes; the model is number `number` of the scene's `count`."""
    where = f"models[{number}]"
    return [f"{where}/" * (count > 1) + model.rig.nodes[row].name for row in model.node_rows] if model.rig else [where]


def _row_of(part: gltf.MeshPrimitive) -> int:
    """Returns the index in materials_of() of a mesh primitive's material; a negative index counts from the end."""
    return part.material if part.material >= 0 else -1 if part.colors is None else -2


def not_drawn(model: gltf.Model) -> dict[str, int]:
    """Counts the textures of the model's materials that no kernel reads, by kind, for renderer.plain.format_ignored."""
    count: Counter[str] = Counter()
    for material in model.materials:
        drawn = textures.drawn_slots(material)
        for word, slot in material.textures.items():
            if word not in textures.DRAWN_SLOTS + COMPUTED_SLOTS:
                count[f"texture {word} materials"] += 1
            elif word not in (*drawn, *COMPUTED_SLOTS):
                count[f"TEXCOORD_{slot.texcoord_set} textures"] += 1
    return dict(count)


def moved_vertices(part: gltf.MeshPrimitive, matrix: np.ndarray) -> np.ndarray:
    """Returns the vertices (n, 3) transformed by a matrix (3 or 4, 4); 0 for -0."""
    if (matrix[:3] == np.eye(3, 4)).all():
        return part.vertices + np.float32(0)
    return np.asarray(part.vertices.astype("f8") @ matrix[:3, :3].T + matrix[:3, 3])


def primitive_arrays(
    part: gltf.MeshPrimitive, matrix: np.ndarray, material: int, sets: tuple[int, ...] = (0,), collapse: bool = True
) -> Arrays:
    """Returns primitives (m,) and attributes (m, float4s, 4) of a mesh primitive transformed by a matrix (3 or 4, 4).

    `sets` are the sets of texture coordinates that the material uses. `collapse` turns duplicates into points; it must
    be False if vertices move while the shutter is open, because the duplicates may move differently.
    """
    vertices, faces = moved_vertices(part, matrix), part.faces
    if np.linalg.det(matrix[:3, :3]) < 0:  # the transform flips the winding: flip it back
        faces = faces[:, [0, 2, 1]]
    has_words = part.tangents is not None or part.colors is not None
    attributes = textures.default_attributes(len(faces), textures.attribute_float4s(has_words, len(sets)))
    if part.normals is not None:
        normals = part.normals.astype("f8") @ np.linalg.inv(matrix[:3, :3])
        size = np.linalg.norm(normals, axis=1, keepdims=True)
        attributes[:, :3, :3] = np.divide(normals, size, out=np.zeros_like(normals), where=size > 1e-30)[faces]
    _write_texcoords_and_colors(attributes, part, sets, faces)
    if part.tangents is not None:
        words = attributes.view("u4").reshape(len(faces), -1)
        # The words of the corners' tangents in texture.h: w of row 3, then two behind the colors.
        words[:, [15, 22, 23]] = _octahedral_tangents(part.tangents, matrix[:3, :3])[faces]
    primitives = triangles(vertices, faces, material)
    return collapse_duplicates(primitives) if collapse else primitives, attributes


def _write_texcoords_and_colors(
    attributes: np.ndarray, part: gltf.MeshPrimitive, sets: tuple[int, ...], faces: np.ndarray
) -> None:
    """Writes the texture coordinates and colors, if any, of the corners of `faces` (m, 3)."""
    for number, texcoord_set in enumerate(sets):
        texcoords = part.texcoords[texcoord_set] if texcoord_set < len(part.texcoords) else None
        if texcoords is not None:
            textures.write_texcoords(attributes, number, texcoords[faces])
    if part.colors is not None:
        textures.write_colors(attributes, part.colors, faces)


def _octahedral_tangents(tangents: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Packs tangents (n, 4), transformed by a matrix (3, 3), into words (n,) uint32.

    A word is an octahedral unit vector (Q. Meyer et al. 2010), 15 bits a coordinate; bit 30 is set if the bitangent is
    flipped, bit 31 always. A zero vector becomes 0.
    """
    directions = tangents[:, :3].astype("f8") @ matrix.T
    size = np.abs(directions).sum(1, keepdims=True)
    x, y, z = np.divide(directions, size, out=np.zeros_like(directions), where=size > 1e-30).T
    folded = [(1 - np.abs(b)) * np.where(a < 0, -1, 1) for a, b in ((x, y), (y, x))]
    plane = [np.where(z < 0, fold, a) for fold, a in zip(folded, (x, y), strict=True)]
    u, v = (np.rint((a * 0.5 + 0.5) * 32767).astype("u4") for a in plane)
    flipped = (tangents[:, 3] < 0) != (np.linalg.det(matrix) < 0)
    words = u | v << np.uint32(15) | flipped.astype("u4") << np.uint32(30) | np.uint32(1 << 31)
    return np.where(size[:, 0] > 1e-30, words, np.uint32(0))


def mesh_arrays(
    model: gltf.Model, mesh: int, matrix: np.ndarray, first_material: int, collapse: bool = True, scale: float = 1.0
) -> Arrays:
    """Returns primitives and attributes of mesh number `mesh`, transformed by a matrix (4, 4).

    `first_material` is the scene's index of the model's first material. `scale`, the model's scale in the scene,
    multiplies the radii of points and lines. `collapse` is as in primitive_arrays().
    """
    materials = materials_of(model)
    rows = np.arange(first_material, first_material + len(materials))
    parts: list[Arrays] = []
    for part in model.meshes[mesh]:
        row, sets = int(rows[_row_of(part)]), textures.texcoord_sets(materials[_row_of(part)])
        if part.faces.shape[1] == 3:
            parts.append(primitive_arrays(part, matrix, row, sets, collapse))
            continue
        radius = scale * (model.point_radius if part.faces.shape[1] == 1 else model.line_radius)
        from renderer.formats.gltf.points_and_lines import balls_and_tubes

        balls, tubes = balls_and_tubes(part, matrix, radius)
        parts.append(_ball_arrays(balls, row, radius, sets, collapse))
        if tubes is not None:
            parts.append(primitive_arrays(tubes, np.eye(4), row, sets, collapse))
    if not parts:
        return np.zeros(0, PRIMITIVE), textures.default_attributes(0)
    return np.concatenate([primitives for primitives, _ in parts]), textures.joined_attributes([a for _, a in parts])


def _ball_arrays(
    balls: gltf.MeshPrimitive, material: int, radius: float, sets: tuple[int, ...], collapse: bool
) -> Arrays:
    """Returns spheres about the vertices of `balls`, with attributes; `collapse` keeps one of several equal spheres."""
    radii = np.full(len(balls.vertices), radius)
    if collapse:
        radii[:] = 0
        radii[np.unique(balls.vertices, axis=0, return_index=True)[1]] = radius
    float4s = textures.attribute_float4s(balls.colors is not None, len(sets))
    attributes = textures.default_attributes(len(radii), float4s)
    attributes[:, 1, 0] = 1  # flag: texture.h does not map this sphere as a globe
    _write_texcoords_and_colors(attributes, balls, sets, np.repeat(np.arange(len(radii))[:, None], 3, 1))
    return spheres(balls.vertices, radii, material), attributes


def is_of_triangles(parts: list[gltf.MeshPrimitive]) -> bool:
    """Returns True for a mesh without points and lines, whose radii an instance would wrongly scale."""
    return all(part.faces.shape[1] == 3 for part in parts)


def instanced_meshes(model: gltf.Model) -> set[int]:
    """Returns the numbers of meshes that become instances: of several nodes, large, of triangles, not emissive."""
    uses = np.bincount([number for number, _ in model.mesh_nodes], minlength=len(model.meshes))
    return {
        number
        for number, parts in enumerate(model.meshes)
        if uses[number] > 1
        and is_of_triangles(parts)
        and uses[number] * sum(len(part.faces) for part in parts) >= MIN_INSTANCED_TRIANGLES
        and not any(any(model.materials[part.material].emission) for part in parts if part.material >= 0)
    }
