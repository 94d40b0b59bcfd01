"""glTF models in the ray tracer: textures, normals, alpha tests, instances, cameras and lights."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from assets.makers import cloth as make_cloth
from assets.makers import glassware as make_glassware
from assets.makers import museum as make_museum
from assets.makers import terrace as make_terrace
from assets.makers import tree as make_tree
from assets.makers.gltf_builder import Maker, ball, square
from renderer import cli
from renderer.formats.gltf import load as load_gltf
from renderer.formats.images import read_pixels, srgb_to_linear
from renderer.paths import ASSETS
from renderer.pictures.raytrace import Picture, open_file
from renderer.raytracing.distance_fields import DistanceField
from renderer.raytracing.instances import Instance
from renderer.raytracing.models import gltf_shapes
from renderer.raytracing.models.default_picture import vertices_of
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.raytracing.settings import Environment, Material, MeshShape, PointLight, Quad, Settings, Sphere
from renderer.scene.cameras import Camera
from tests.raytracing.models.layers_picture import LayersPicture

LAMP = Material("lamp", "emitter", emission=(9.0, 8.0, 6.0))
MATTE = Material("matte", color=(0.6, 0.6, 0.6))
SIZE = (60, 60)


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


@pytest.fixture(scope="module")
def layers_picture(device):
    return LayersPicture(SimpleNamespace(device=device))


def render(picture, settings, size=SIZE, samples=1):
    picture.restart()
    for _ in range(samples):
        frame = picture.draw(settings, size, 0.0)
    return frame.read()


def put(tmp_path, maker, name="model.glb"):
    path = tmp_path / name
    path.write_bytes(maker.glb())
    return path


def facing(path, **changes):
    """Seen from +z so that the square from -1 to 1 just fills the picture."""
    fov = float(np.degrees(2 * np.arctan(0.1)))
    settings = Settings(view=Camera((0.0, 0.0, 10.0), fov_degrees=fov), models=(ModelShape(str(path)),), samples=1,
                        horizon=(1.0, 1.0, 1.0), zenith=(1.0, 1.0, 1.0), max_depth=3)  # fmt: skip
    return replace(settings, **changes)


def textured(maker, pixels, repeats=1.0, shift=0.0, **sampler):
    """A square with a base color texture."""
    material = maker.add("materials", {"pbrMetallicRoughness": {
        "metallicFactor": 0, "baseColorTexture": {"index": maker.texture(pixels, **sampler)}}})  # fmt: skip
    number = square(maker, material=material)
    uv = np.array([[0, 1], [1, 1], [1, 0], [0, 0]]) * repeats + shift
    attributes = maker.tree["meshes"][number]["primitives"][0]["attributes"]
    attributes["TEXCOORD_0"] = maker.array(uv)
    maker.node(mesh=number)


def texel_rows(x, count, wrap):
    """Texel indices by the three wrap modes."""
    if wrap == 33071:
        return np.clip(x, 0, count - 1)
    if wrap == 33648:
        x = np.mod(x, 2 * count)
        return np.where(x < count, x, 2 * count - 1 - x)
    return np.mod(x, count)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("wrap", [33071, 33648, 10497])
def test_textures_are_sampled_as_gltf_specifies(picture, tmp_path, rng, wrap, smooth):
    """The albedo of every pixel against NumPy, beyond the texture's edges too."""
    pixels = rng.integers(0, 256, (5, 7, 3), dtype="u1")
    maker = Maker()
    textured(maker, pixels, 1.6, -0.3, wrapS=wrap, wrapT=wrap, magFilter=9729 if smooth else 9728)
    albedo = picture.layers(facing(put(tmp_path, maker), samples=16), SIZE)["albedo"]
    linear, total = srgb_to_linear(pixels), np.zeros((60, 60, 3))
    for dx, dy in rng.random((256, 2)):  # where in the pixel
        u = (np.arange(60) + dx) / 60 * 1.6 - 0.3
        v = (np.arange(60) + dy) / 60 * 1.6 - 0.3
        x, y = np.meshgrid(u * 7, v * 5)
        if smooth:
            left, top = np.floor(x - 0.5), np.floor(y - 0.5)
            a, b = (x - 0.5 - left)[..., None], (y - 0.5 - top)[..., None]
            corner = [[linear[texel_rows(top + j, 5, wrap).astype(int), texel_rows(left + i, 7, wrap).astype(int)]
                       for i in (0, 1)] for j in (0, 1)]  # fmt: skip
            upper, lower = (corner[j][0] * (1 - a) + corner[j][1] * a for j in (0, 1))
            total += (upper * (1 - b) + lower * b) / 256
        else:
            rows, columns = texel_rows(np.floor(y), 5, wrap), texel_rows(np.floor(x), 7, wrap)
            total += linear[rows.astype(int), columns.astype(int)] / 256
    apart = np.abs(albedo - total).max(2)
    assert np.median(apart) < (0.01 if smooth else 1e-3) and (apart < 0.12).mean() > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("hand", [0, 1, -1])
def test_normal_maps_follow_tangent_and_bitangent(picture, tmp_path, rng, mirrored, hand):
    """Red towards growing u, green towards falling v, or where a tangent and its hand say, on a turned square and on a
    mirrored one."""
    bend = np.array([0.4, 0.3, 0.0])
    bend[2] = np.sqrt(1 - bend @ bend)
    pixels = np.full((2, 2, 3), np.round((bend + 1) * 127.5), "u1")
    maker = Maker()
    material = maker.add("materials", {"normalTexture": {"index": maker.texture(pixels)}})
    angle, around = (float(x) for x in rng.uniform(0, 2 * np.pi, 2))
    tangent, others = np.array([np.cos(around), np.sin(around), 0.0]), {}
    if hand:
        others = {"TANGENT": maker.array([[*tangent, hand]] * 4), "NORMAL": maker.array([[0.0, 0.0, 1.0]] * 4)}
    turn = [0, 0, np.sin(angle / 2), np.cos(angle / 2)]
    scale = [-1 if mirrored else 1, 1, 1]
    maker.node(mesh=square(maker, 3.0, material=material, others=others), rotation=turn, scale=scale)
    normal = picture.layers(facing(put(tmp_path, maker)), SIZE)["normal"].reshape(-1, 3).mean(0)
    c, s = np.cos(angle), np.sin(angle)
    first, second = np.array([1.0, 0, 0]), np.array([0, 1.0, 0])
    if hand:
        first, second = tangent, hand * np.cross([0, 0, 1], tangent)
    turned = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.diag([-1.0 if mirrored else 1.0, 1, 1])
    wanted = turned @ (bend[0] * first + bend[1] * second + bend[2] * np.array([0, 0, 1]))
    assert np.allclose(normal, wanted, atol=0.02)


@pytest.mark.slow
def test_vertex_colors_are_interpolated(picture, tmp_path, rng):
    """Colors of 16 bits and of floats, with and without a texture, and of an instance."""
    colors, pixels = rng.random((4, 4)), np.full((1, 1, 3), 188, "u1")
    maker = Maker()
    tints = {"COLOR_0": maker.array(colors[:, :3])}
    material = maker.add("materials", {"pbrMetallicRoughness": {
        "metallicFactor": 0, "baseColorTexture": {"index": maker.texture(pixels)}}})  # fmt: skip
    maker.node(mesh=square(maker, material=material, others=tints))
    settings = facing(put(tmp_path, maker), samples=16)
    x, y = np.meshgrid((np.arange(60) + 0.5) / 60, 1 - (np.arange(60) + 0.5) / 60)
    a, b, c, d = (np.round(colors[k, :3] * 65535) / 65535 for k in range(4))
    lower = a + x[..., None] * (b - a) + y[..., None] * (c - b)
    upper = a + y[..., None] * (d - a) + x[..., None] * (c - d)
    wanted = np.where((y < x)[..., None], lower, upper) * srgb_to_linear(pixels)[0, 0]
    shifted = replace(settings.view, position=(5.0, 0.0, 10.0), target=(5.0, 0.0, 0.0))
    placed = replace(settings, models=(replace(settings.models[0], name="s"),), view=shifted,
                     instances=(Instance("s", position=(5.0, 0.0, 0.0)),))  # fmt: skip
    for scene in (settings, placed):
        assert np.allclose(picture.layers(scene, SIZE)["albedo"], wanted, atol=0.02)


@pytest.mark.slow  # of what test_alpha_modes tells of pictures
def test_vertex_alpha_is_part_of_the_alpha_test(picture, tmp_path):
    behind = Quad("matte", ((-3.0, -3.0, -1.0), (3.0, -3.0, -1.0), (3.0, 3.0, -1.0), (-3.0, 3.0, -1.0)))
    maker = Maker()
    alpha = {"COLOR_0": maker.array(np.array([[255, 0, 0, 64]] * 4), "u1", normalized=True)}
    material = maker.add("materials", {"pbrMetallicRoughness": {"metallicFactor": 0}, "alphaMode": "BLEND"})
    maker.node(mesh=square(maker, material=material, others=alpha))
    settings = facing(put(tmp_path, maker), quads=(behind,), materials=(MATTE,), samples=16)
    albedo = picture.layers(settings, SIZE)["albedo"].mean((0, 1))
    share = 64 / 255
    assert np.allclose(albedo, share * np.array([1, 0, 0]) + (1 - share) * 0.6, atol=0.02)
    light = render(picture, settings, samples=4)[..., :3]
    assert np.isfinite(light).all() and light.min() > 0


def test_vertex_normals_of_a_sphere_shade_as_the_sphere(picture, tmp_path):
    apart = {}
    for smooth in (True, False):
        maker = Maker()
        maker.node(mesh=ball(maker, normals=smooth), scale=[0.8, 0.8, 0.8])
        settings = facing(put(tmp_path, maker, f"{smooth}.glb"))
        normal = picture.layers(settings, SIZE)["normal"]
        round_one = replace(settings, models=(), materials=(MATTE,), spheres=(Sphere("matte", radius=0.8),))
        wanted = picture.layers(round_one, SIZE)["normal"]
        inside = (np.hypot(*np.meshgrid(np.linspace(-1, 1, 60), np.linspace(-1, 1, 60))) < 0.65)[..., None]
        apart[smooth] = np.abs((normal - wanted) * inside).max()
        light = render(picture, settings, samples=16)[20:40, 20:40, :3]
        assert np.isfinite(light).all() and light.min() > 0.2
    assert apart[True] < 0.06 < apart[False]


@pytest.mark.parametrize("suffix", [".obj", ".ply"])
def test_normals_of_mesh_files_shade_and_corners_may_have_two(picture, tmp_path, suffix):
    """A fold of two triangles at z = 0 whose normals lean apart, so that the fold stays sharp; turned about y."""
    lean = np.array([[0.3, 0, 1], [-0.3, 0, 1]]) / np.hypot(0.3, 1)
    corners = [(-2, -2, 0), (2, -2, 0), (2, 2, 0), (-2, 2, 0)]
    path = tmp_path / f"fold{suffix}"
    if suffix == ".obj":
        rows = [*(("v", *p) for p in corners), *(("vn", *n) for n in lean)]
        lines = [" ".join(map(str, row)) for row in rows]
        path.write_text("\n".join([*lines, "f 1//1 2//1 3//1", "f 1//2 3//2 4//2"]) + "\n")
    else:
        names = "\n".join(f"property float {n}" for n in ("x", "y", "z", "nx", "ny", "nz"))
        rows = [(*corners[k], *lean[half]) for half, face in ((0, (0, 1, 2)), (1, (0, 2, 3))) for k in face]
        head = f"ply\nformat ascii 1.0\nelement vertex 6\n{names}\nelement face 2\n"
        body = "\n".join(" ".join(map(str, row)) for row in rows)
        path.write_text(f"{head}property list uchar int vertex_indices\nend_header\n{body}\n3 0 1 2\n3 3 4 5\n")
    settings = Settings(view=facing(path).view, samples=1, horizon=(1.0, 1.0, 1.0), zenith=(1.0, 1.0, 1.0),
                        materials=(MATTE,), meshes=(MeshShape("matte", str(path), rotation_degrees=20.0),))  # fmt: skip
    normal = picture.layers(settings, SIZE)["normal"]
    c, s = np.cos(np.radians(20)), np.sin(np.radians(20))
    wanted = lean @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]).T
    assert np.allclose(normal[45:, 50:], wanted[0], atol=1e-3) and np.allclose(normal[:15, :10], wanted[1], atol=1e-3)
    assert np.isfinite(render(picture, settings)).all()


def half_cut(maker, alpha, mode, **material):
    """A red square whose left half has an alpha, 255 the right one."""
    pixels = np.full((1, 2, 4), 255, "u1")
    pixels[..., 1:3] = 0
    pixels[0, 0, 3] = alpha
    surface = {"metallicFactor": 0, "baseColorTexture": {"index": maker.texture(pixels, magFilter=9728)}}
    number = maker.add("materials", {"pbrMetallicRoughness": surface, "alphaMode": mode, **material})
    maker.node(mesh=square(maker, material=number))


def test_alpha_modes(layers_picture, tmp_path):
    """MASK, OPAQUE and BLEND, seen directly; test_shadow_rays_are_alpha_tested has their shadows."""
    behind = Quad("matte", ((-3.0, -3.0, -1.0), (3.0, -3.0, -1.0), (3.0, 3.0, -1.0), (-3.0, 3.0, -1.0)))
    for mode, alpha, share in (("MASK", 100, 0.0), ("MASK", 200, 1.0), ("BLEND", 64, 64 / 255), ("OPAQUE", 0, 1.0)):
        maker = Maker()
        half_cut(maker, alpha, mode)
        settings = facing(put(tmp_path, maker, f"{mode}{alpha}.glb"), quads=(behind,), materials=(MATTE,), samples=16)
        albedo = layers_picture.layers(settings, SIZE)["albedo"]
        left, right = albedo[5:-5, 5:25].reshape(-1, 3).mean(0), albedo[5:-5, 35:55].reshape(-1, 3).mean(0)
        assert np.allclose(right, (1, 0, 0), atol=1e-3)
        assert np.allclose(left, share * np.array([1, 0, 0]) + (1 - share) * 0.6, atol=0.02), mode


def test_cutouts_equal_brute_force(layers_picture, tmp_path, rng):
    """Depths through ten squares full of holes, of which rays pass several, against every square in NumPy; high up,
    where a ray that is moved by units in the last place can get back in front of a hole."""
    maker = Maker()
    pixels = np.full((8, 8, 4), 255, "u1")
    pixels[..., 3] = np.where(rng.random((8, 8)) < 0.3, 255, 0)
    surface = {"metallicFactor": 0, "baseColorTexture": {"index": maker.texture(pixels, magFilter=9728)}}
    mesh = square(maker, material=maker.add("materials", {"pbrMetallicRoughness": surface, "alphaMode": "MASK"}))
    places, turns = rng.uniform(-0.4, 0.4, (10, 3)), rng.normal(0, 0.4, (10, 4)) + (0, 0, 0, 1)
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    for place, turn in zip(places, turns, strict=True):
        maker.node(mesh=mesh, translation=(place + (0, 40, 0)).tolist(), rotation=turn.tolist())
    behind = Quad("matte", ((-3.0, 37.0, -2.0), (3.0, 37.0, -2.0), (3.0, 43.0, -2.0), (-3.0, 43.0, -2.0)))
    settings = facing(put(tmp_path, maker), quads=(behind,), materials=(MATTE,))
    settings = replace(settings, view=replace(settings.view, position=(0.0, 40.0, 10.0), target=(0.0, 40.0, 0.0)))
    depth = layers_picture.layers(settings, SIZE)["depth"]
    x, y = np.meshgrid((np.arange(60) + 0.5) / 30 - 1, 1 - (np.arange(60) + 0.5) / 30)
    direction = np.stack([x * 0.1, y * 0.1, np.full_like(x, -1)], -1)
    direction /= np.linalg.norm(direction, axis=2)[..., None]
    wanted = -12 / direction[..., 2]
    for place, (a, b, c, w) in zip(places, turns, strict=True):
        cross = np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])
        to_world = np.eye(3) + 2 * w * cross + 2 * cross @ cross
        origin, local = (np.array([0, 0, 10]) - place) @ to_world, direction @ to_world
        t = -origin[2] / local[..., 2]
        u, v = (origin[0] + t * local[..., 0] + 1) / 2, (1 - origin[1] - t * local[..., 1]) / 2
        inside = (np.minimum(u, v) >= 0) & (np.maximum(u, v) < 1) & (t > 0)
        solid = pixels[(np.clip(v, 0, 0.999) * 8).astype(int), (np.clip(u, 0, 0.999) * 8).astype(int), 3] > 0
        wanted = np.where(inside & solid & (t < wanted), t, wanted)
    assert np.isclose(depth, wanted, rtol=1e-5).mean() > 0.998  # the rest meets a texel's edge


def test_shadow_rays_are_alpha_tested(picture, tmp_path):
    """Under a square of mode BLEND the floor receives 1 - alpha of the light that it has without the square."""
    floor = Quad("matte", ((-9.0, -9.0, -1.0), (9.0, -9.0, -1.0), (9.0, 9.0, -1.0), (-9.0, 9.0, -1.0)))
    lamp = Quad("lamp", ((-0.2, -0.2, 5.0), (-0.2, 0.2, 5.0), (0.2, 0.2, 5.0), (0.2, -0.2, 5.0)))
    light = {}
    for name, mode, alpha in (("open", "MASK", 0), ("half", "BLEND", 128), ("shut", "MASK", 255)):
        maker = Maker()
        half_cut(maker, alpha, mode, doubleSided=True)
        settings = facing(
            put(tmp_path, maker, f"{name}.glb"), quads=(floor, lamp), materials=(MATTE, LAMP), max_depth=2
        )
        settings = replace(settings, horizon=(0.0, 0.0, 0.0), zenith=(0.0, 0.0, 0.0),
                           view=Camera((-0.6, 0.05, -0.5), (-0.6, 0.0, -1.0), fov_degrees=30.0))  # fmt: skip
        light[name] = render(picture, settings, (16, 16), 128)[..., :3].mean()
    assert light["shut"] < 1e-3 * light["open"] and light["open"] > 1e-3
    assert light["half"] == pytest.approx(light["open"] * (1 - 128 / 255), rel=0.05)


def everything(tmp_path, rng):
    maker = Maker()
    half_cut(maker, 90, "BLEND")
    bent = maker.add("materials", {
        "pbrMetallicRoughness": {"roughnessFactor": 0.4}, "emissiveFactor": [0.2, 0.1, 0],
        "normalTexture": {"index": maker.texture(rng.integers(90, 160, (4, 4, 3), dtype="u1"))}})  # fmt: skip
    for x in (-0.8, 0.0, 0.8):
        maker.node(mesh=0 if x else ball(maker, 4, material=bent), translation=[x, 0.2, 0.6], scale=[0.5, 0.4, 0.5])
    return put(tmp_path, maker)


@pytest.mark.slow
def test_no_schedule_changes_a_bit_of_a_model(picture, tmp_path, rng):
    lamp = Quad("lamp", ((-1.0, 3.0, -1.0), (1.0, 3.0, -1.0), (1.0, 3.0, 1.0), (-1.0, 3.0, 1.0)))
    fractal = DistanceField("lamp", "menger", (0.0, -0.5, 0.4), scale=0.5, iterations=2)
    settings = facing(everything(tmp_path, rng), quads=(lamp,), materials=(LAMP,), schedule="wavefront", max_depth=4)
    settings = replace(settings, distance_fields=(fractal,))
    wanted = render(picture, settings, (50, 34), 2)
    assert np.isfinite(wanted).all() and wanted[..., :3].mean() > 0.05
    schedule = rng.choice(["regenerate", "megakernel"])  # another in every run: they compile slowly
    assert np.array_equal(wanted, render(picture, replace(settings, schedule=str(schedule)), (50, 34), 2)), schedule


def test_repeated_meshes_become_instances_that_look_the_same(picture, tmp_path, rng, monkeypatch):
    maker = Maker()
    mesh = ball(maker, 5, material=maker.add("materials", {"pbrMetallicRoughness": {
        "baseColorTexture": {"index": maker.texture(rng.integers(0, 255, (8, 8, 3), dtype="u1"))}}}))  # fmt: skip
    for _ in range(5):
        maker.node(
            mesh=mesh,
            translation=rng.uniform(-0.7, 0.7, 3).tolist(),
            scale=(rng.uniform(0.2, 0.4) * np.array([1, -1, 1])).tolist(),
        )
    settings = facing(put(tmp_path, maker))
    seen = []
    for least in (1, 10**9):
        monkeypatch.setattr(gltf_shapes, "MIN_INSTANCED_TRIANGLES", least)
        picture._geometry_key = None
        seen.append((picture.layers(settings, SIZE), render(picture, settings, samples=16)))
        assert (picture._geometry._instances is not None) == (least == 1)
    (placed, light), (flat, true_light) = seen
    assert np.isclose(placed["depth"], flat["depth"], rtol=1e-4).mean() > 0.995
    for name in ("albedo", "normal"):
        assert (np.abs(placed[name] - flat[name]).max(2) < 2e-3).mean() > 0.97, name
    assert light.mean() == pytest.approx(true_light.mean(), rel=0.01)


def test_camera_and_lights_of_a_file(picture, tmp_path):
    maker = Maker()
    maker.node(mesh=square(maker))
    camera = maker.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.5, "aspectRatio": 2.0}})
    maker.node(camera=camera, translation=[0, 0, 9])
    maker.node(extensions=maker.light(type="directional", intensity=2.0, color=[1, 0.5, 0.25]))
    scene = open_file(put(tmp_path, maker))
    assert scene.size == (1440, 720) and scene.settings.view.position == (0, 0, 9)
    assert scene.settings.view.fov_degrees == pytest.approx(np.degrees(0.5))
    own = replace(scene.settings, environment=Environment())  # without the dim studio
    light = render(picture, own, (64, 32), 4)[12:20, 28:36, :3].reshape(-1, 3).mean(0)
    # a rough metal of full color gives back most of the sun that it faces, mirrored about its normal
    assert light[0] > 0.05 and np.allclose(light / light[0], [1, 0.5, 0.25], rtol=0.02)


def test_a_file_without_lights_is_lit(picture, tmp_path):
    maker = Maker()
    maker.node(mesh=ball(maker, 6))
    scene = open_file(put(tmp_path, maker))
    picture.restart()
    shown = render(picture, scene.settings, (32, 24), 4)[..., :3]
    assert shown.min() > -0.1 and np.median(shown) > 0.2
    mesh = load_gltf(tmp_path / "model.glb")
    vertices = vertices_of(mesh)
    assert np.allclose(vertices.min(0), -1) and np.allclose(vertices.max(0), 1, atol=0.05)


def test_exports_of_models(tmp_path, capsys):
    maker = Maker()
    maker.node(mesh=ball(maker, 4))
    (tmp_path / "ball.gltf").write_text(maker.gltf())
    small = ["--size", "32x24", "--samples", "1", "--device", "cpu"]
    assert cli.main(["export", str(tmp_path / "ball.gltf"), "-o", str(tmp_path / "ball.png"), *small]) == 0
    assert cli.main(["export", str(tmp_path / "ball.png"), "-o", str(tmp_path / "again.png"), *small]) == 0
    (tmp_path / "bad.glb").write_bytes(maker.glb()[:400])
    capsys.readouterr()
    assert cli.main(["export", str(tmp_path / "bad.glb"), "-o", str(tmp_path / "bad.png"), *small]) == 5
    assert str(tmp_path / "bad.glb") in capsys.readouterr().err


def test_exports_tell_what_they_ignore_and_show_variants(tmp_path, capsys):
    """Exports and verify list ignored features by name and count, on stderr and in --json; verify keeps the variant."""
    maker = Maker()
    surfaces = [{"baseColorFactor": color} for color in ([1, 0, 0, 1], [0, 1, 0, 1])]
    tint = [maker.add("materials", {"pbrMetallicRoughness": surface, "ACME": 1}) for surface in surfaces]
    maker.tree["extensions"] = {"KHR_materials_variants": {"variants": [{"name": "red"}, {"name": "green"}]}}
    mesh, mappings = square(maker, material=tint[0]), {"mappings": [{"variants": [1], "material": tint[1]}]}
    maker.tree["meshes"][mesh]["primitives"][0]["extensions"] = {"KHR_materials_variants": mappings}
    maker.node(mesh=mesh)
    maker.node(
        camera=maker.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.2}}), translation=[0, 0, 5]
    )
    path, out = str(put(tmp_path, maker)), str(tmp_path / "a.png")
    small = ["--size", "8x8", "--samples", "1", "--device", "cpu", "--json"]
    for options, channel in (([], 0), (["--variant", "green"], 1)):
        assert cli.main(["export", path, "-o", out, *small, *options]) == 0
        told = capsys.readouterr()
        answer = json.loads(told.out)
        assert answer["ignored"] == ["ACME (2 materials)"] and answer["variants"] == ["red", "green"]
        assert told.err.count("ignored: ACME (2 materials)\n") == 1
        means = read_pixels(out)[..., :3].reshape(-1, 3).mean(0)
        assert means[channel] > 2 * means[1 - channel]
    assert cli.main(["verify", out, "--device", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ignored"] == ["ACME (2 materials)"]
    assert cli.main(["export", path, "-o", out, *small, "--variant", "blue"]) == 2
    assert "--variant blue: no model has it; allowed are red, green" in capsys.readouterr().err


def test_spot_falloff(picture):
    """The light on a floor below a spot, by the specification's formula."""
    floor = Quad("matte", ((-9.0, -2.0, 9.0), (9.0, -2.0, 9.0), (9.0, -2.0, -9.0), (-9.0, -2.0, -9.0)))
    spot = PointLight((0.0, 0.0, 0.0), (5.0, 5.0, 5.0), (0.0, -2.0, 0.0), 10.0, 35.0)
    view = Camera((0.0, 8.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, -1.0), fov_degrees=20.0)
    settings = Settings(
        view=view, materials=(MATTE,), quads=(floor,), point_lights=(spot,), max_depth=1, integrator="whitted"
    )
    seen = render(picture, settings, (61, 61), 16)[30, :, 0]
    x = (np.arange(61) + 0.5) / 61 * 2 - 1
    away = x * 10 * np.tan(np.radians(10))
    cosine = 2 / np.hypot(2, away)
    inner, outer = np.cos(np.radians((10, 35)))
    fade = np.clip((cosine - outer) / (inner - outer), 0, 1) ** 2
    wanted = 0.6 / np.pi * 5 * fade * cosine / (4 + away**2)
    assert np.allclose(seen, wanted, atol=0.02 * wanted.max()) and wanted.min() == 0


@pytest.mark.slow
@pytest.mark.parametrize("placed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_textured_emitters_agree_between_nee_and_bsdf_sampling(picture, tmp_path, rng, placed):
    """A square whose emission is a picture with an alpha: next-event estimation against paths that run into it; as an
    instance that mirrors it too. By quarters, so that a picture that lies otherwise is another light."""
    pixels = rng.integers(64, 256, (3, 3, 4), dtype="u1")
    pixels[:2, :2, :3] //= 8
    maker = Maker()
    picture_row = maker.texture(pixels, magFilter=9728)
    material = maker.add("materials", {
        "pbrMetallicRoughness": {"baseColorTexture": {"index": picture_row}, "metallicFactor": 0}, "alphaMode": "BLEND",
        "emissiveFactor": [1, 1, 1], "emissiveTexture": {"index": picture_row}})  # fmt: skip
    maker.node(mesh=square(maker, material=material))
    wall = Quad("matte", ((-9.0, -9.0, 1.0), (-9.0, 9.0, 1.0), (9.0, 9.0, 1.0), (9.0, -9.0, 1.0)))
    view = Camera((0.0, 0.0, -1.0), (0.0, 0.3, 1.0), fov_degrees=70.0)
    dark = {"horizon": (0.0, 0.0, 0.0), "zenith": (0.0, 0.0, 0.0)}
    settings = facing(put(tmp_path, maker), view=view, quads=(wall,), materials=(MATTE,), max_depth=2, **dark)
    if placed:
        mirror = Instance("s", matrix=(-1.1, 0.2, 0.0, 0.1, 0.1, 0.8, 0.0, 0.0, 0.0, 0.0, 1.0, 0.1))
        settings = replace(settings, models=(replace(settings.models[0], name="s"),), instances=(mirror,))
    means = [render(picture, replace(settings, direct_lighting=lights), (24, 24), 256)[..., :3].reshape(2, 12, 2, 12, 3)
             .mean((1, 3)) for lights in ("mis", "bsdf", "nee")]  # fmt: skip
    assert means[0].mean() > 1e-3
    for other in means[1:]:
        assert np.allclose(means[0], other, rtol=0.12, atol=0.03 * means[0].mean())
        assert np.allclose(means[0].mean((0, 1)), other.mean((0, 1)), rtol=0.03)


def test_vertex_colors_without_a_material_are_the_base_color_and_bare_meshes_are_gray(tmp_path):
    """The specification's default material is white; a mesh that says no color at all keeps the renderer's gray."""
    maker = Maker()
    meshes = [square(maker), square(maker, others={"COLOR_0": maker.array(np.full((4, 4), (0.2, 0.4, 0.6, 1.0)))})]
    for mesh in meshes:
        maker.node(mesh=mesh)
    model = load_gltf(put(tmp_path, maker))
    colors = []
    for mesh in meshes:
        primitives, _ = gltf_shapes.mesh_arrays(model, mesh, np.eye(4), 0)
        (row,) = set(primitives["edge1"].view("i4")[:, 3])
        colors.append(gltf_shapes.materials_of(model)[row].color[:3])
    assert colors == [(0.75, 0.75, 0.75), (1.0, 1.0, 1.0)]


def test_the_cloth_is_what_its_script_makes_of_its_points(tmp_path):
    """Its threads kept their lengths, and none goes through the ball or the floor."""
    kept = load_gltf(ASSETS / "cloth.glb")
    points = kept.meshes[0][0].vertices.reshape(make_cloth.THREADS, make_cloth.THREADS, 3)
    made = load_gltf(put(tmp_path, make_cloth.cloth(points)))
    assert made.materials == kept.materials and np.array_equal(made.textures[0].pixels, kept.textures[0].pixels)
    assert np.array_equal(made.meshes[0][0].faces, kept.meshes[0][0].faces)
    assert points[..., 1].min() >= make_cloth.THICKNESS * 0.999
    assert np.linalg.norm(points - make_cloth.BALL, axis=-1).min() >= make_cloth.RADIUS
    thread = make_cloth.SIDE / (make_cloth.THREADS - 1)
    for axis in (0, 1):
        lengths = np.linalg.norm(np.diff(points, axis=axis), axis=-1) / thread
        assert abs(lengths.mean() - 1) < 0.01 and (abs(lengths - 1) < 0.05).mean() > 0.98


def test_the_glassware_is_what_its_script_makes(tmp_path):
    """Up to the rounding of other processors; a lathe's body closes: each edge has two faces."""
    made, kept = load_gltf(put(tmp_path, make_glassware.glassware())), load_gltf(ASSETS / "glassware.glb")
    assert made.materials == kept.materials
    for ours, theirs in zip(made.meshes, kept.meshes, strict=True):
        assert np.array_equal(ours[0].faces, theirs[0].faces)
        np.testing.assert_allclose(ours[0].vertices, theirs[0].vertices, atol=1e-5)
    for body in kept.meshes[:-1]:  # the last is the sheet of paper
        keys = np.unique(body[0].vertices.round(4), axis=0, return_inverse=True)[1].ravel()[body[0].faces]
        whole = keys[(keys != np.roll(keys, 1, 1)).all(1)]  # the poles' triangles without area are not edges
        edges = np.concatenate([whole[:, [0, 1]], whole[:, [1, 2]], whole[:, [2, 0]]])
        assert {(a, b) for a, b in edges.tolist()} == {(b, a) for a, b in edges.tolist()}


@pytest.mark.parametrize("name, make", [("terrace", make_terrace.terrace), ("museum", make_museum.museum)])
def test_the_places_are_what_their_scripts_make(tmp_path, name, make):
    """Up to the rounding of other processors; normals lie on the side that faces' corners run around."""
    made, kept = load_gltf(put(tmp_path, make())), load_gltf(ASSETS / f"{name}.glb")
    assert made.materials == kept.materials
    for ours, theirs in zip(made.meshes, kept.meshes, strict=True):
        assert np.array_equal(ours[0].faces, theirs[0].faces)
        np.testing.assert_allclose(ours[0].vertices, theirs[0].vertices, rtol=1e-5, atol=1e-5)
        if theirs[0].normals is not None:
            a, b, c = (theirs[0].vertices[theirs[0].faces[:, k]].astype("f8") for k in range(3))
            turned = (np.cross(b - a, c - a) * theirs[0].normals[theirs[0].faces].sum(1)).sum(1)
            assert turned.min() > -1e-3 * turned.max()


def test_the_tree_is_what_its_script_makes(tmp_path):
    """Up to the rounding of other processors; its leaves are cut out."""
    made, kept = load_gltf(put(tmp_path, make_tree.tree())), load_gltf(ASSETS / "tree.glb")
    assert made.materials == kept.materials
    assert kept.materials[1].alpha == "MASK"
    for ours, theirs in zip(made.textures, kept.textures, strict=True):
        assert np.abs(ours.pixels.astype("i4") - theirs.pixels).max() <= 1
    for ours, theirs in zip(made.meshes, kept.meshes, strict=True):
        assert np.array_equal(ours[0].faces, theirs[0].faces)
        np.testing.assert_allclose(ours[0].vertices, theirs[0].vertices, atol=1e-5)
