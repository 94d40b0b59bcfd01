"""Solids: areas and volumes against formulas, closed outward surfaces, normals, texture coordinates, pictures."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

import renderer
from renderer.errors import InputError
from renderer.pictures import scene_of_table
from renderer.raytracing.solids import TEXT_DEPTH, Solid, solid_arrays, solid_mesh, text_mesh

SIDES = (3, 4, 16, 96)


def regular(sides: int) -> tuple[float, float, float]:
    """Area, perimeter and apothem of the regular polygon in a circle of radius 1/2."""
    half = np.pi / sides
    return sides / 8 * np.sin(2 * half), sides * np.sin(half), np.cos(half) / 2


def formula(kind: str, sides: int) -> tuple[float, float]:
    """Area and volume of the solid with so many sides, by elementary geometry; of the torus of its limit."""
    area, perimeter, apothem = regular(sides)
    return {
        "box": (6.0, 1.0),
        "plane": (1.0, 0.0),
        "cylinder": (2 * area + perimeter, area),
        "cone": (area + perimeter * np.hypot(1, apothem) / 2, area / 3),
        "torus": (4 * np.pi**2 * 0.4 * 0.1, 2 * np.pi**2 * 0.4 * 0.1**2),
    }[kind]


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("kind", ["box", "plane", "cylinder", "cone", "torus"])
def test_area_and_volume_are_those_of_the_formula(kind, sides):
    part = solid_mesh(kind, sides, 0.25)
    a, b, c = (part.vertices[part.faces[:, k]].astype("f8") for k in range(3))
    crosses = np.cross(b - a, c - a)
    area, volume = np.linalg.norm(crosses, axis=1).sum() / 2, (a * crosses).sum() / 6
    if kind == "torus":  # polygons in circles: the error falls with the square of the sides
        missing = 1 - np.divide((area, volume), formula(kind, sides))
        assert (missing > 0).all() and (missing < 40 / sides**2).all()
    else:
        assert (area, volume) == pytest.approx(formula(kind, sides), rel=1e-6, abs=1e-12)
    assert np.abs(part.vertices).max() <= 0.5 and np.linalg.norm(crosses, axis=1).min() > 0


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("kind", ["box", "cylinder", "cone", "torus"])
def test_a_solid_is_closed_and_faces_outwards(kind, sides):
    """Each directed edge between points has its opposite; a positive volume then means that faces look outwards."""
    part = solid_mesh(kind, sides, 0.25)
    points = np.unique(part.vertices.round(9), axis=0, return_inverse=True)[1].ravel()[part.faces]
    edges = [tuple(edge) for a, b in ((0, 1), (1, 2), (2, 0)) for edge in points[:, [a, b]].tolist()]
    assert len(set(edges)) == len(edges) and {(b, a) for a, b in edges} == set(edges)
    corners = part.vertices[part.faces].astype("f8")
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (corners[:, 0] * faces).sum() > 0
    if part.normals is not None:
        unit = faces / np.linalg.norm(faces, axis=1, keepdims=True)
        assert np.abs(np.linalg.norm(part.normals, axis=1) - 1).max() < 1e-6
        assert (part.normals[part.faces] * unit[:, None]).sum(2).min() > np.cos(1.5 * np.pi / (sides // 2))
    assert (part.normals is None) == (kind == "box" or sides < 16)


@pytest.mark.parametrize("kind", ["box", "plane", "cylinder", "cone", "torus"])
def test_texture_coordinates_fill_the_picture_and_are_not_mirrored(kind):
    part = solid_mesh(kind, 32, 0.25)
    uv = part.texcoords[0]
    assert uv.min() >= -1e-9 and uv.max() <= 1 + 1e-9 and np.ptp(uv, axis=0) == pytest.approx((1, 1), abs=1e-6)
    (ax, ay), (bx, by) = (uv[part.faces[:, k]].T - uv[part.faces[:, 0]].T for k in (1, 2))
    assert (ax * by - ay * bx < 1e-9).all(), "v runs downwards: seen from outside, u and v turn clockwise"


def test_a_moved_solid_is_its_mesh_times_its_matrix():
    """The arrays against trimesh, which computes the same transform on its own."""
    trimesh = pytest.importorskip("trimesh")
    solid = Solid("m", "cone", 2.0, (1.0, 3.0, 0.5), (20.0, -30.0, 40.0), (1.0, 2.0, 3.0), 24)
    angles = np.radians(solid.rotation_degrees)
    matrix = trimesh.transformations.euler_matrix(*angles, "sxyz") @ np.diag((2.0, 6.0, 1.0, 1.0))
    matrix[:3, 3] = solid.position
    part = solid_mesh("cone", 24, solid.tube)
    wanted = trimesh.Trimesh(part.vertices, part.faces, process=False).apply_transform(matrix)
    primitives, attributes = solid_arrays(solid, 0, False)
    np.testing.assert_allclose(primitives["v0"][:, :3], wanted.triangles[:, 0], atol=1e-5)
    np.testing.assert_allclose(primitives["edge1"][:, :3], wanted.triangles[:, 1] - wanted.triangles[:, 0], atol=1e-5)
    normals = part.normals @ np.linalg.inv(matrix[:3, :3])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    np.testing.assert_allclose(attributes[:, :3, :3], normals[part.faces], atol=1e-5)
    flat = replace(solid, kind="box")
    assert solid_arrays(flat, 0, False)[1] is None and solid_arrays(flat, 0, True)[1] is not None


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({"kind": "cube"}, 'kind is "cube"; allowed are box, cylinder, cone, torus, plane'),
        ({"kind": "box", "sides": 2}, "sides is 2; it must be 3 to 512"),
        ({"kind": "torus", "tube": 0}, "tube is 0.0; it must be 0.01 to 1.0"),
        ({"kind": "box", "scale_xyz": [1, 0, 1]}, "scale_xyz.*0.0; it must be"),
        ({"kind": "box", "material": "x"}, "material is .x.; materials is not given, so it must be 'plain'"),
        ({"kind": "box", "radius": 1}, "unknown key 'radius'"),
        ({}, "the key 'kind' is missing"),
    ],
)
def test_bad_values_are_a_sentence(values, sentence, tmp_path):
    table = {"picture": "raytrace", "settings": {"solids": [{"material": "plain"} | values]}}
    with pytest.raises(InputError, match=rf"solids\[0\].*{sentence}"):
        scene_of_table(table, tmp_path / "a.toml")


@pytest.mark.parametrize("kind, nearest", [("box", 4.5), ("cylinder", 4.5), ("cone", 4.75), ("torus", 4.5)])
def test_a_ray_meets_a_solid_where_the_formula_says(kind, nearest):
    """The depth of the middle pixel of a camera at distance 5, by the public API, with a map and an instance."""
    scene = renderer.Scene(
        materials=[{"name": "m", "color_texture": "white"}],
        textures=[{"name": "white", "file": np.full((4, 4, 3), 255, "u1")}],
        solids=[{"material": "m", "kind": kind, "name": "one"}],
        instances=[{"shape": "one"}],
        view={"position": [5, 0, 0], "target": [0, 0, 0], "fov_degrees": 20},
    )
    layers = renderer.render(scene, size=(9, 9), samples=1, layers=True, device="cpu").layers
    assert layers["depth"][4, 4] == pytest.approx(nearest, abs=0.005)
    assert layers["albedo"][4, 4] == pytest.approx((0.75, 0.75, 0.75), abs=1e-3)


def test_a_text_has_the_area_of_its_letters_and_is_filled_where_pillow_fills_it():
    """Pillow rasterizes the same font file with FreeType; prisms of depth d have the volume d times that area."""
    from matplotlib.font_manager import FontProperties, findfont

    text, pixels = "R8%i", 200
    part = text_mesh(text)
    corners = part.vertices[part.faces].astype("f8")
    crosses = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    volume, front = (corners[:, 0] * crosses).sum() / 6, crosses[:, 2].clip(0).sum() / 2
    assert volume == pytest.approx(TEXT_DEPTH * front, rel=1e-5), "closed, and faces look outwards"
    font = ImageFont.truetype(findfont(FontProperties(family="DejaVu Sans", weight="bold")), pixels)
    box = font.getbbox(text)
    image = Image.new("L", (box[2], box[3] + 10))
    ImageDraw.Draw(image).text((0, 0), text, 255, font)
    drawn = np.asarray(image) > 127
    scale = np.ptp(np.nonzero(drawn.any(0))[0]) / np.ptp(part.vertices[:, 0])
    assert front * scale**2 == pytest.approx(drawn.sum(), rel=0.02)
    assert np.abs(part.vertices.min(0) + part.vertices.max(0)).max() < 1e-6
    assert np.ptp(part.vertices[:, 2]) == pytest.approx(TEXT_DEPTH)


@pytest.mark.parametrize("text", ["", "   ", "a" * 65, "two\nlines", "\u4e2d"])
def test_a_text_without_letters_is_refused(text):
    with pytest.raises(ValueError, match="^text (is|has) .*allowed are"):
        Solid("clay", "text", text=text)
    Solid("clay", "box", text=text)  # which reads no text
