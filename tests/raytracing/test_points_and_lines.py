"""Points and lines of glTF files: what is drawn of them, where, how large and in what light."""

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker
from renderer.formats import gltf
from renderer.formats.gltf.points_and_lines import LINE_RADIUS, POINT_RADIUS, points_or_lines
from renderer.pictures.raytrace import open_file
from renderer.raytracing.geometry import poses_of
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.raytracing.settings import Material, Settings, Sphere
from renderer.raytracing.shapes import SceneShapes
from renderer.scene.cameras import Camera
from tests.raytracing.models.test_maps import texture
from tests.raytracing.models.test_models import facing, picture, put, render  # noqa: F401  # picture is a fixture


def shapes_of(path, **shape):
    settings = Settings(materials=(), models=(ModelShape(str(path), **shape),))
    poses = poses_of(settings.models, ())
    return SceneShapes(settings, poses).in_poses(poses)


@pytest.mark.parametrize(
    ("mode", "corners", "wanted"),
    [
        (0, [3, 1, 3], [[1], [3]]),
        (1, [0, 1, 3, 2, 1], [[0, 1], [2, 3]]),
        (2, [0, 1, 2], [[0, 1], [0, 2], [1, 2]]),
        (3, [2, 1, 0, 1], [[0, 1], [1, 2]]),
        (3, [1], []),
        (1, [0], []),
        (0, [], []),
    ],
)
def test_modes_of_points_and_lines(mode, corners, wanted):
    """The specification's 3.7.2.1; what is named twice is drawn once."""
    assert points_or_lines(np.array(corners, int), mode).tolist() == wanted


def test_a_line_is_a_tube_of_one_radius_under_any_matrix(tmp_path, rng):
    """Every corner of a tube is as far from the segment's axis, whatever scale its node has; balls are at the ends."""
    maker, ends = Maker(), rng.normal(size=(4, 3))
    maker.node(mesh=maker.mesh(ends, mode=3), scale=[3, 0.5, 1], translation=[1, 2, 3])
    shapes = shapes_of(put(tmp_path, maker), scale=2.0)
    primitives = shapes.primitives[""]
    is_ball = primitives["edge2"][:, 3] > 0
    world = 2 * (ends * [3, 0.5, 1] + [1, 2, 3])
    radius = LINE_RADIUS * np.linalg.norm(np.ptp(world, axis=0))
    assert is_ball.sum() == 4 and np.allclose(primitives["edge2"][is_ball, 3], radius)
    assert np.allclose(primitives["v0"][is_ball, :3], world, atol=1e-5)
    tubes = primitives[~is_ball].reshape(3, 12)
    for tube, begin, end in zip(tubes, world[:-1], world[1:], strict=True):
        corners = np.concatenate([tube["v0"][:, :3] + (tube[e][:, :3] if e else 0) for e in ("", "edge1", "edge2")])
        axis = (end - begin) / np.linalg.norm(end - begin)
        away = corners - begin
        assert np.allclose(np.linalg.norm(away - np.outer(away @ axis, axis), axis=1), radius, rtol=1e-3)
        normals = np.cross(tube["edge1"][:, :3], tube["edge2"][:, :3])
        middle = tube["v0"][:, :3] + (tube["edge1"] + tube["edge2"])[:, :3] / 3 - begin
        assert ((normals * (middle - np.outer(middle @ axis, axis))).sum(1) > 0).all()  # they face outwards


def test_points_in_one_place_are_one_ball(tmp_path):
    maker = Maker()
    maker.node(mesh=maker.mesh(np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0]]), mode=0))
    radii = shapes_of(put(tmp_path, maker)).primitives[""]["edge2"][:, 3]
    assert sorted(radii) == pytest.approx([0, POINT_RADIUS, POINT_RADIUS])


def test_many_points_are_smaller(tmp_path, rng):
    maker = Maker()
    maker.node(mesh=maker.mesh(np.concatenate([np.zeros((1, 3)), np.ones((1, 3)), rng.random((10**5, 3))]), mode=0))
    model = gltf.load(put(tmp_path, maker))
    assert model.point_radius == pytest.approx(3**0.5 * 0.5 / (10**5 + 2) ** 0.5)


def test_a_point_alone_fills_a_picture(tmp_path):
    maker = Maker()
    maker.node(mesh=maker.mesh(np.array([[5.0, 0, 0]]), mode=0))
    scene = open_file(put(tmp_path, maker))
    view = scene.settings.view
    distance = np.linalg.norm(np.subtract(view.position, (5, 0, 0)))
    assert distance * np.tan(np.radians(view.fov_degrees) / 2) < 3 * POINT_RADIUS


def test_emission_beside_colors_is_reported(tmp_path):
    maker = Maker()
    material = maker.add(
        "materials", {"emissiveFactor": [1, 0, 0], "pbrMetallicRoughness": {"baseColorFactor": [0, 1, 0, 1]}}
    )
    ends, colors = np.eye(3)[:2], {"COLOR_0": maker.array(np.ones((2, 3)))}
    maker.node(mesh=maker.mesh(ends, mode=1, material=material))
    maker.node(mesh=maker.mesh(ends, mode=1, material=material, others=colors))
    maker.node(mesh=maker.mesh(ends, mode=1, material=material, normals=np.eye(3)[:2]))
    model = gltf.load(put(tmp_path, maker))
    plain, colored, lit = (model.materials[model.meshes[k][0].material] for k in range(3))
    assert plain.unlit and plain.color == (1, 1, 0, 1) and colored.unlit and colored.color == (0, 1, 0, 1)
    assert not lit.unlit and model.ignored == {"emission beside colors of points and lines primitives": 1}


@pytest.mark.slow
def test_a_line_has_its_colors_and_its_width(picture, tmp_path):  # noqa: F811
    """Across the picture from left to right: its radiance runs from one end's color to the other's, unlit."""
    maker = Maker()
    ends = np.array([[-1.0, 0, 0], [1, 0, 0]])
    maker.node(mesh=maker.mesh(ends, mode=1, others={"COLOR_0": maker.array(np.array([[1.0, 0, 0], [0, 0, 1]]))}))
    path = put(tmp_path, maker)
    radius = gltf.load(path).line_radius
    settings = facing(path, samples=64, horizon=(0, 0, 0), zenith=(0, 0, 0))
    shown = render(picture, settings, (40, 40), 64)[..., :3]
    across = (np.arange(40) + 0.5) / 40
    total = shown.sum(0) / 20  # pixels are 1/20 of the square's half; a hexagon is 3^0.5 to 2 radii wide
    for channel, wanted in ((0, 1 - across), (2, across)):
        ratio = total[:, channel].sum() / (2 * radius * wanted).sum()
        assert 0.8 < ratio < 1.05, ratio
    assert shown[..., 1].max() == 0


@pytest.mark.slow
def test_points_keep_their_coordinates_beside_maps(picture, tmp_path):  # noqa: F811
    """In a scene with maps, which spheres wear as globes, a point still shows the one texel of its coordinates."""
    maker = Maker()
    texels = np.array([[[255, 0, 0], [0, 255, 0]]], "u1")
    material = maker.add("materials", {"pbrMetallicRoughness": {
        "baseColorTexture": {"index": maker.texture(texels, magFilter=9728, minFilter=9728)}}})  # fmt: skip
    maker.node(mesh=maker.mesh(np.zeros((1, 3)), mode=0, uv=np.array([[0.75, 0.5]]), material=material))
    path = put(tmp_path, maker)
    view = Camera((0.0, 0.0, 1.0), fov_degrees=float(np.degrees(POINT_RADIUS)))
    blue = texture(tmp_path, "blue", np.array([[[0, 0, 255]]], "u1"))
    mapped = Material("mapped", "unlit", color=(1.0, 1.0, 1.0), color_texture="blue")
    ball = Sphere("mapped", (0.5 * POINT_RADIUS, 0.0, 0.0), POINT_RADIUS)
    settings = facing(path, view=view, materials=(mapped,), textures=(blue,), spheres=(ball,), horizon=(0, 0, 0))
    shown = render(picture, settings, (16, 16), 4)[..., :3]
    assert shown[:, :4] == pytest.approx(np.broadcast_to([0, 1, 0], (16, 4, 3)), abs=1e-3)
    assert shown[:, 12:] == pytest.approx(np.broadcast_to([0, 0, 1], (16, 4, 3)), abs=1e-3)
