"""Solids: box, cylinder, cone, torus, plane, text as triangle meshes with smooth normals and texture coordinates.

Solid is a table [[solids]] of a scene file; shapes.py calls solid_arrays(). A solid touches the sides of the cube from
-1/2 to 1/2, as far as it reaches there, so `scale` times `scale_xyz` are its width, height and depth. A text has
letters of an em of 1, TEXT_DEPTH deep; the outlines come from the font DejaVu Sans Bold, which is part of matplotlib.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from renderer.formats.gltf import MeshPrimitive
from renderer.formats.meshes.contents import plain_primitive
from renderer.raytracing.instances import Point, placement, rotation_matrix
from renderer.raytracing.models.gltf_shapes import primitive_arrays
from renderer.records import dataclass, field
from renderer.scene.schema import reference, setting

if TYPE_CHECKING:  # matplotlib is imported with the first text
    from matplotlib.ft2font import FT2Font
    from matplotlib.textpath import TextToPath

PLANE = np.array([[-0.5, 0, 0.5], [0.5, 0, 0.5], [0.5, 0, -0.5], [-0.5, 0, -0.5]])
PLANE_TEXCOORDS = PLANE[:, [0, 2]] + 0.5  # v runs downwards, from -z to z
QUAD_FACES = np.array([[0, 1, 2], [0, 2, 3]])
BOX_TURNS = [(0, 0, 0), (180, 0, 0), *((90, 90 * k, 0) for k in range(4))]  # degrees that turn the top to each side
MIN_ROUND_SIDES = 16  # with fewer sides, cylinders and cones are prisms and pyramids: flat, without normals
TEXT_DEPTH, MAX_TEXT = 0.2, 64  # depth in em; most characters
PLANAR = np.nan  # in a profile, the v of rows of a cap, whose texture lies flat on it


@dataclass(frozen=True)
class Solid:
    """A box, cylinder, cone, torus, plane or text of size 1 about the origin, upright, scaled, rotated and moved."""

    material: str = field(metadata=reference("materials", "name of a material"))
    kind: Literal["box", "cylinder", "cone", "torus", "plane", "text"]
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    scale_xyz: Point = setting((1.0, 1.0, 1.0), 1e-9, 1e9, "along the solid's own axes: width, height, depth")
    rotation_degrees: Point = setting((0.0, 0.0, 0.0), help="about x, then y, then z")
    position: Point = (0.0, 0.0, 0.0)
    sides: int = setting(96, 3, 512, "around the axis of a cylinder, cone or torus; fewer than 16 are flat")
    tube: float = setting(0.25, 0.01, 1.0, "radius of a torus's tube, in radii of its ring")
    text: str = setting("Text", help="the letters of a text, of DejaVu Sans; up to 64 in one line")
    name: str = setting("", help="a named shape is drawn only as instances")
    fields_of_kinds: ClassVar[dict[str, tuple[str, ...]]] = {  # the window shows these only for these kinds
        "sides": ("cylinder", "cone", "torus"), "tube": ("torus",), "text": ("text",)
    }  # fmt: skip

    def __post_init__(self) -> None:
        if self.kind == "text":
            _check_text(self.text)


def solid_arrays(solid: Solid, material: int, has_maps: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns primitives (m,) PRIMITIVE and attributes (m, float4s, 4); None where normals and maps need none."""
    part = mesh_about_origin(solid)
    matrix = placement(solid.scale, solid.rotation_degrees, solid.position, solid.scale_xyz)
    primitives, attributes = primitive_arrays(part, matrix, material)
    return primitives, attributes if has_maps or part.normals is not None else None


def mesh_about_origin(solid: Solid) -> MeshPrimitive:
    """Returns the mesh of a solid about the origin."""
    return text_mesh(solid.text) if solid.kind == "text" else solid_mesh(solid.kind, solid.sides, solid.tube)


@lru_cache(maxsize=16)
def solid_mesh(kind: str, sides: int, tube: float) -> MeshPrimitive:
    """Returns a solid about the origin, closed but for the plane, its faces counter-clockwise seen from outside.

    Solids of flat faces have no normals.
    """
    if kind in ("plane", "box"):
        turns = BOX_TURNS if kind == "box" else BOX_TURNS[:1]
        height = 0.5 if kind == "box" else 0.0
        vertices = np.concatenate([(PLANE + (0, height, 0)) @ rotation_matrix(turn).T for turn in turns])
        vertices, normals = np.rint(2 * vertices) / 2, None  # angles of 90 degrees are exact
        faces = np.concatenate([QUAD_FACES + 4 * k for k in range(len(turns))])
        texcoords = np.tile(PLANE_TEXCOORDS, (len(turns), 1))
    else:
        vertices, faces, normals, texcoords = _revolve(_profile(kind, sides, tube), sides)
        normals = normals if sides >= MIN_ROUND_SIDES else None
    return plain_primitive(vertices, faces, normals, texcoords)


def _profile(kind: str, sides: int, tube: float) -> np.ndarray:
    """The rows (k, 5) of a surface of revolution from below: radius, y, the normal along both, v of the texture."""
    if kind == "torus":
        count, ring = max(sides // 2, 3), 0.5 / (1 + tube)
        index = np.arange(count + 1)
        angle = 2 * np.pi * (index % count) / count
        radial, up = np.cos(angle), np.sin(angle)
        return np.stack([ring * (1 + tube * radial), ring * tube * up, radial, up, 1 - index / count], 1)
    base = [(0, -0.5, 0, -1, PLANAR), (0.5, -0.5, 0, -1, PLANAR)]
    if kind == "cylinder":
        side = [(0.5, -0.5, 1, 0, 1), (0.5, 0.5, 1, 0, 0)]
        return np.array([*base, *side, (0.5, 0.5, 0, 1, PLANAR), (0, 0.5, 0, 1, PLANAR)])
    radial, up = np.array([1, 0.5]) / np.hypot(1, 0.5)  # normal of a slope that rises by 1 over a radius of 1/2
    return np.array([*base, (0.5, -0.5, radial, up, 1), (0, 0.5, radial, up, 0)])


def _revolve(profile: np.ndarray, sides: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns vertices, faces, normals and texture coordinates of a surface of revolution.

    Turns a profile (_profile()) about y by `sides` steps; vertices on the axis have normals between two steps.
    """
    radius, y, radial, up, v = profile.T[:, :, None]
    columns = np.arange(sides + 1)
    angle = 2 * np.pi * (columns % sides) / sides  # the first and the last column are equal
    facing = angle + np.where(radius > 0, 0, np.pi / sides)  # directions of the normals
    x, z = radius * np.cos(angle), -radius * np.sin(angle)
    normals = np.stack(np.broadcast_arrays(radial * np.cos(facing), up, -radial * np.sin(facing)), 2)
    is_planar = np.isnan(v)
    texcoords = np.stack([np.where(is_planar, x + 0.5, columns / sides), np.where(is_planar, 0.5 + z * up, v)], 2)
    vertices = np.stack(np.broadcast_arrays(x, y, z), 2).reshape(-1, 3)
    # Two triangles for each cell of the grid of rows and columns; `first` is its lower left vertex.
    first = (np.arange(len(profile) - 1)[:, None] * (sides + 1) + columns[:-1]).ravel()
    right, above = first + 1, first + sides + 1
    faces = np.concatenate([np.stack([first, right, above + 1], 1), np.stack([first, above + 1, above], 1)])
    corners = vertices[faces]
    is_flat = (corners == np.roll(corners, 1, 1)).all(2).any(1)  # two corners are equal: on the axis, or at an edge
    return vertices, faces[~is_flat], normals.reshape(-1, 3), texcoords.reshape(-1, 2)


# Text


@lru_cache(maxsize=1)
def _font() -> "tuple[TextToPath, FT2Font]":
    """Matplotlib's converter of texts to outlines, and its font; imported with the first text: it takes a second."""
    from matplotlib.font_manager import FontProperties, findfont, get_font
    from matplotlib.textpath import text_to_path

    font = get_font(findfont(FontProperties(family="DejaVu Sans", weight="bold")))
    font.set_size(text_to_path.FONT_SCALE, text_to_path.DPI)
    return text_to_path, font


def _check_text(text: str) -> None:
    """Raises ValueError for a text that no letters can be made of."""
    if not text.strip() or len(text) > MAX_TEXT or not text.isprintable():
        raise ValueError(f"text is {text[:MAX_TEXT]!r}; allowed are 1 to {MAX_TEXT} characters in one line")
    missing = next((letter for letter in text if not _font()[1].get_char_index(ord(letter))), "")
    if missing:
        raise ValueError(f"text has {missing!r}; allowed are the letters of DejaVu Sans")


@lru_cache(maxsize=16)
def text_mesh(text: str) -> MeshPrimitive:
    """Returns the letters of a text as prisms about the origin, upright towards z, their faces outwards and flat."""
    from matplotlib.path import Path

    converter, font = _font()
    glyphs, outlines, _ = converter.get_glyphs_with_font(font, text)
    corners = []
    for glyph, x, y, scale in glyphs:
        rings = [np.asarray(ring)[:-1] for ring in Path(*outlines[glyph]).to_polygons()]
        if rings:
            corners.append((_prism(rings) * (scale, scale, 1) + (x, y, 0)) / (*(converter.FONT_SCALE,) * 2, 1))
    triangles = np.concatenate(corners)
    low, high = triangles.min((0, 1)), triangles.max((0, 1))
    triangles -= (low + high) / 2
    vertices, size = triangles.reshape(-1, 3), high - low
    texcoords = np.stack([vertices[:, 0] / size[0] + 0.5, 0.5 - vertices[:, 1] / size[1]], 1)
    return plain_primitive(vertices, np.arange(len(vertices)).reshape(-1, 3), None, texcoords)


def _prism(rings: list[np.ndarray]) -> np.ndarray:
    """Returns the triangles (n, 3, 3) of the prism over a letter's rings (k, 2): outer ones clockwise, as in TrueType.

    Horizontal lines through all corners cut the front into trapezoids p q r s, from the lower left corner on; within a
    strip the edges from left to right enter and leave the letter by turns (even-odd rule).
    """
    start = np.concatenate(rings)
    end = np.concatenate([np.roll(ring, -1, 0) for ring in rings])
    heights = np.unique(start[:, 1])
    flat = []
    for low, high in zip(heights[:-1], heights[1:], strict=True):
        middle = (low + high) / 2
        crossing = (start[:, 1] < middle) != (end[:, 1] < middle)
        a, b = start[crossing], end[crossing]
        slope = (b - a)[:, 0] / (b - a)[:, 1]
        x_low, x_high, x = (a[:, 0] + slope * (y - a[:, 1]) for y in (low, high, middle))
        order = np.argsort(x)
        x_low, x_high = x_low[order], x_high[order]
        for left, right in zip(range(0, len(order) - 1, 2), range(1, len(order), 2), strict=True):
            p, q = (x_low[left], low), (x_low[right], low)
            r, s = (x_high[right], high), (x_high[left], high)
            flat += [(p, q, r), (p, r, s)]
    plane = np.array(flat)
    sides = plane[:, [1, 2, 0]] - plane
    area = sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0]
    plane, z = plane[np.abs(area) > 1e-6], TEXT_DEPTH / 2  # an area in (em / 100)^2; a trapezoid may be a triangle

    def at(points: np.ndarray, depth: float) -> np.ndarray:
        return np.concatenate([points, np.full((*points.shape[:-1], 1), depth)], -1)

    # Two triangles for each edge of the rings, from the front to the back
    walls = [at(start, z), at(end, z), at(end, -z), at(start, z), at(end, -z), at(start, -z)]
    wall = np.stack(walls, 1).reshape(-1, 3, 3)
    return np.concatenate([at(plane, z), at(plane[:, ::-1], -z), wall])
