"""The default picture of models and meshes: framing, environments, ground, exposure, and what a file decides."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, ball, square
from renderer import cli
from renderer.errors import InputError
from renderer.formats.images import read_digest, read_recipe
from renderer.pictures import scene_of_table
from renderer.pictures.raytrace import Picture, open_file
from renderer.raytracing.lights.environment import level_irradiance
from renderer.raytracing.lights.environment_presets import PRESETS, preset_map
from renderer.raytracing.lights.light_meter import emitter_irradiance, lamp_irradiance, sample_surface
from renderer.raytracing.materials import material_rows
from renderer.raytracing.models import default_picture
from renderer.raytracing.models.default_picture import STUDIO_EV
from renderer.raytracing.models.framing import MARGIN, frame, has_floor, three_quarter
from renderer.raytracing.settings import Environment, Material, PointLight, Quad, Settings, Sphere, Sun
from renderer.scene.cameras import Camera

GROUND = Quad("ground", ((-30.0, 0.0, 30.0), (30.0, 0.0, 30.0), (30.0, 0.0, -30.0), (-30.0, 0.0, -30.0)))
CATCHER = Material("ground", "shadow_catcher")
BLACK = Material("black", color=(0.0, 0.0, 0.0))
FAR = Sphere("black", (0.0, 900.0, 0.0), 0.01)  # so that the kernels are compiled for spheres
VIEW = Camera((0.0, 3.0, 6.0), (0.0, 0.4, 0.0), fov_degrees=40.0)


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def render(picture, settings, size=(48, 32), samples=16):
    picture.restart()
    for _ in range(samples):
        shown = picture.draw(settings, size, 0.0)
    return shown.read()[..., :3].astype("f8")


def write_obj(path, vertices, faces):
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in vertices] + [f"f {a} {b} {c}" for a, b, c in np.add(faces, 1)]
    path.write_text("\n".join(lines))
    return path


def projected(points, camera, aspect):
    """Picture coordinates (n, 2), -1 to 1, by a pinhole of one's own."""
    eye, target = np.array(camera.position), np.array(camera.target)
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, camera.up)
    right /= np.linalg.norm(right)
    seen = (points - eye) @ np.array([right, np.cross(right, forward), forward]).T
    half = np.tan(np.radians(camera.fov_degrees) / 2) * max(1.0, camera.fit_aspect / aspect)
    assert (seen[:, 2] > 0).all()
    return seen[:, :2] / seen[:, 2:] / half / [aspect, 1]


@pytest.mark.parametrize("aspect", [16 / 9, 1.0, 0.5])
@pytest.mark.parametrize("size", [(9, 0.05, 7), (20, 1, 1), (0.2, 9, 0.3), (1e-6, 2e-6, 1e-6), (5, 5, 0), (1, 1, 30)])
def test_bounds_touch_the_margin(rng, size, aspect):
    """Within a pixel of a picture of 160 pixels, on both sides of the tight axis, and never beyond on the other."""
    points = (rng.random((500, 3)) - 0.5) * size + rng.normal(0, 3, 3) * max(size)
    seen = projected(points, frame(points, three_quarter(np.ptp(points, axis=0))), aspect)
    reach = np.abs(np.array([seen.min(0), seen.max(0)])) / (1 - 2 * MARGIN)
    tight = reach.max(0).argmax()
    assert reach.max() == pytest.approx(1, abs=2 / 160)
    assert reach[:, tight] == pytest.approx([1, 1], abs=2 / 160)


def test_a_single_point_and_a_line_have_a_camera():
    """No extent at all still gives a camera at a distance from it."""
    for points in (np.array([[3.0, 2.0, 1.0]]), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 5.0]])):
        camera = frame(points, three_quarter(np.ptp(points, axis=0)))
        assert np.linalg.norm(np.subtract(camera.position, camera.target)) > 0
        assert np.abs(projected(points, camera, 1.0)).max() < 1


def test_the_broad_side_faces_the_camera():
    def angles(*extent):
        x, y, z = three_quarter(np.array(extent, "f8"))
        return np.degrees([np.arctan2(x, z), np.arcsin(y)])

    assert angles(1, 1, 1) == pytest.approx([38, 18], abs=0.1)
    assert angles(9, 5, 0)[0] == pytest.approx(20) and angles(0, 5, 9)[0] == pytest.approx(66)
    assert angles(9, 0.1, 9)[1] == pytest.approx(42) and angles(1, 9, 1)[1] == pytest.approx(7)


@pytest.mark.parametrize("name", PRESETS)
def test_environments_are_smooth_and_have_no_horizon_line(name):
    """Finite, of the scale of white paper, without a step anywhere; smoother still behind the model."""
    radiance = preset_map(name)
    assert radiance.dtype == np.float32 and np.isfinite(radiance).all() and radiance.min() > 0.02
    assert (0.4 < level_irradiance(radiance) / np.pi).all() and (level_irradiance(radiance) / np.pi < 2).all()
    steps = [np.abs(np.diff(radiance, axis=0)), np.abs(np.diff(np.concatenate([radiance, radiance[:, :1]], 1), axis=1))]
    assert max(step.max() for step in steps) < 0.16 * radiance.max()
    behind = radiance[120:, 192:320]  # what the default camera sees: from 5 degrees above the horizon downwards
    assert max(np.abs(np.diff(behind, axis=axis)).max() for axis in (0, 1)) < 0.02


def test_irradiance_of_a_map_by_quadrature(rng):
    """Against the sum over directions; a map of 1 gives pi."""
    assert level_irradiance(np.ones((64, 128, 3), "f4")) == pytest.approx(np.full(3, np.pi), rel=1e-6)
    radiance = rng.random((32, 64, 3)).astype("f4")
    edges = np.linspace(0, np.pi / 2, 17)
    weight = (np.cos(2 * edges[:-1]) - np.cos(2 * edges[1:])) / 4 * (2 * np.pi / 64)
    assert level_irradiance(radiance) == pytest.approx((radiance[:16] * weight[:, None, None]).sum((0, 1)), rel=1e-6)


def test_the_key_light_is_on_the_left_of_every_model(picture, tmp_path):
    """The environment turns with the camera: a white ball is brighter on the left, whatever the azimuth."""
    for stretch in (1.0, 9.0):
        maker = Maker()
        white = maker.add("materials", {"pbrMetallicRoughness": {"metallicFactor": 0}})
        maker.node(mesh=ball(maker, 8, material=white))
        maker.node(mesh=ball(maker, 3, material=white), translation=[0, 0, -stretch], scale=[0.01] * 3)
        path = tmp_path / "ball.glb"
        path.write_bytes(maker.glb())
        settings = replace(open_file(path).settings, quads=())
        camera = replace(settings.view, target=(0.0, 0.0, 0.0), fov_degrees=8.0, fit_aspect=0.0)
        shown = render(picture, replace(settings, view=camera), (32, 32), 8)
        hit = picture.layers(replace(settings, view=camera), (32, 32))["id"] > 0
        left, right = shown[:, :16][hit[:, :16]].mean(), shown[:, 16:][hit[:, 16:]].mean()
        assert left > 1.08 * right, (stretch, left, right)


def ground_scene(*spheres, **changes):
    """Black spheres above the ground, in the studio."""
    settings = Settings(view=VIEW, materials=(CATCHER, BLACK), quads=(GROUND,), spheres=spheres,
                        environment=Environment(preset="studio"), max_depth=4)  # fmt: skip
    return replace(settings, **changes)


def test_unshadowed_ground_is_the_background(picture):
    """Without a model, and far from one, it differs by less than an 8-bit step; there is no noise either."""
    tiny = Sphere("black", (0.0, 0.3, 0.0), 0.02)
    empty = render(picture, ground_scene(tiny, quads=()), samples=2)
    ground = render(picture, ground_scene(tiny), samples=2)
    encoded = [np.clip(image, 0, 1) ** (1 / 2.2) * 255 for image in (empty, ground)]
    apart = np.abs(encoded[0] - encoded[1]).max(2)
    assert (apart[:8] < 0.01).all() and (apart[-3:] < 0.01).all() and np.median(apart) < 0.01


def test_shadow_is_the_lost_fraction_of_the_irradiance(picture):
    """Against a Lambertian floor drawn with and without the model, which is black: the ratio of the two pictures."""
    spheres = Sphere("black", (0.0, 1.0, 0.0), 1.0), Sphere("black", (-3.0, 0.5, 0.0), 0.5)
    caught = ground_scene(*spheres, suns=(Sun((-0.5, 1.0, -0.9), (4.0, 4.0, 4.0), 20.0),))
    floor, white = replace(GROUND, material="floor"), Material("floor", color=(1.0, 1.0, 1.0))
    lambertian = replace(caught, quads=(floor,), materials=(CATCHER, BLACK, white), max_depth=2)
    shaded = render(picture, lambertian, samples=128)
    open_sky = render(picture, replace(lambertian, spheres=(FAR,)), samples=64)
    shown, back = render(picture, caught, samples=128), render(picture, replace(caught, quads=()), samples=2)
    ids = picture.layers(caught, (48, 32))["id"]
    on_ground = ids == np.bincount(ids.ravel()).argmax()

    def boxed(image):
        return image.reshape(8, 4, 12, 4, 3).mean((1, 3))

    whole = on_ground.reshape(8, 4, 12, 4).all((1, 3)) & (boxed(open_sky).min(2) > 0.01)
    ratio, expected = boxed(shown)[whole] / boxed(back)[whole], boxed(shaded)[whole] / boxed(open_sky)[whole]
    assert whole.sum() > 20 and expected.min() < 0.75
    assert np.abs(ratio - expected).max() < 0.05 and np.abs(ratio - expected).mean() < 0.012


def test_ground_is_invisible_from_below(picture):
    below = Camera((0.0, -3.0, 6.0), (0.0, 1.0, 0.0))
    ball_above = Sphere("black", (0.0, 1.5, 0.0), 1.0)
    with_ground, without = (render(picture, ground_scene(ball_above, view=below, **c)) for c in ({}, {"quads": ()}))
    assert with_ground.mean() == pytest.approx(without.mean(), rel=0.02)
    assert (with_ground.min(2) < 0.01).mean() > 0.02  # the black ball is seen through it


def catcher_table(**settings):
    materials = [{"name": "ground", "kind": "shadow_catcher"}]
    return {"picture": "raytrace", "settings": {"materials": materials, **settings}}


@pytest.mark.parametrize("settings, words", [
    ({"spheres": [{"material": "ground"}]}, ("spheres[0]", "shadow_catcher", "quads")),
    ({"quads": [{"material": "ground", "corners": [[0, 0, 0], [1, 0, 0], [1, 0.1, -1], [0, 0, -1]]}]}, ("one y",)),
    ({"quads": [{"material": "ground", "corners": [[0, 0, 0], [0, 0, -1], [1, 0, -1], [1, 0, 0]]}]}, ("seen from",)),
    ({"direct_lighting": "bsdf"}, ("direct_lighting", "bsdf", "mis")),
    ({"environment": {"preset": "moon"}}, ("preset", "moon", "studio, overcast, sunset")),
    ({"environment": {"preset": "studio"}, "sky": {"strength": 1.0}}, ("environment.preset", "sky.strength")),
])  # fmt: skip
def test_bad_settings_are_one_sentence(tmp_path, settings, words):
    with pytest.raises(InputError) as caught:
        scene_of_table(catcher_table(**settings), tmp_path / "scene.toml")
    assert all(word in str(caught.value) for word in words) and "\n" not in str(caught.value)


def test_irradiance_by_algebra():
    """A plate of 2 x 2 under a sun, a point light and a small emitter."""
    corners = np.array([[[-1, 0, 1], [1, 0, 1], [1, 0, -1]], [[-1, 0, 1], [1, 0, -1], [-1, 0, -1]]], "f8")
    plate = sample_surface(corners * 1e-3, np.zeros(2))
    assert plate.area.sum() == pytest.approx(4e-6) and np.allclose(plate.normal, [0, 1, 0])
    slanted = Sun((0.0, 1.0, 1.0), (3.0, 3.0, 3.0))
    assert lamp_irradiance(plate, (slanted,), ()) == pytest.approx(3 / np.sqrt(2))
    above = PointLight((0.0, 2.0, 0.0), (8.0, 8.0, 8.0))
    assert lamp_irradiance(plate, (), (above,)) == pytest.approx(2.0, rel=1e-5)
    aside = replace(above, direction=(1.0, 0.0, 0.0), inner_degrees=10.0, outer_degrees=30.0)
    assert not lamp_irradiance(plate, (), (aside,)).any()
    emitter = sample_surface(corners[:, ::-1] * 0.01 + [0, 3, 0], np.full(2, 50.0), 32)  # faces down
    assert emitter_irradiance(plate, emitter) == pytest.approx(50 * 4e-4 / 9, rel=1e-3)


def lamp_file(tmp_path, power):
    maker = Maker()
    maker.node(mesh=ball(maker, 6, material=maker.add("materials", {"pbrMetallicRoughness": {"metallicFactor": 0}})))
    maker.node(extensions=maker.light(type="point", intensity=power), translation=[2.0, 5.0, 4.0])
    path = tmp_path / "lamp.glb"
    path.write_bytes(maker.glb())
    return path


def test_exposure_follows_the_light(picture, tmp_path):
    """A million times the light gives the same picture, 19.93 stops down, neither black nor burnt."""
    weak, strong = (open_file(lamp_file(tmp_path, power)) for power in (50.0, 5e7))
    assert weak.tone.exposure == "manual" and weak.tone.ev - strong.tone.ev == pytest.approx(np.log2(1e6), abs=0.02)
    shown = render(picture, weak.settings, (32, 32), 16) * 2.0**weak.tone.ev
    again = render(picture, strong.settings, (32, 32), 16) * 2.0**strong.tone.ev
    assert shown.mean() == pytest.approx(again.mean(), rel=0.02)
    assert 0.03 < shown[0].min() and 0.5 < np.percentile(shown, 98) < 1.3
    assert "1 light of the file" in weak.notes[0]


def test_a_file_without_lights_stands_in_the_studio(tmp_path):
    maker = Maker()
    maker.node(mesh=ball(maker, 6))
    path = tmp_path / "ball.glb"
    path.write_bytes(maker.glb())
    scene = open_file(path)
    assert scene.settings.environment.preset == "studio" and scene.tone.ev == STUDIO_EV and not scene.notes
    assert scene.settings.quads[0].material == "ground" and scene.size is None


@pytest.mark.slow
def test_exports_are_the_same_in_tiles_and_at_any_time(tmp_path, capsys):
    """Tiles and the whole have one digest; the recipe says the exposure; --set and --environment override."""
    path, digests = lamp_file(tmp_path, 900.0), []
    for name, options in (("a", []), ("b", ["--tile", "16"]), ("c", ["--environment", "sunset"])):
        command = ["export", str(path), "-o", str(tmp_path / f"{name}.png"), "--size", "40x24", "--samples", "2"]
        assert cli.main([*command, "--device", "cpu", *options]) == 0
        digests.append(read_digest(tmp_path / f"{name}.png"))
    assert digests[0] == digests[1] != digests[2]
    recipe = read_recipe(tmp_path / "a.png")["scene"]
    assert recipe["tone"]["exposure"] == "manual" and recipe["tone"]["ev"] == open_file(path).tone.ev
    assert read_recipe(tmp_path / "c.png")["scene"]["settings"]["environment"]["preset"] == "sunset"
    assert "1 light of the file and a dim studio" in capsys.readouterr().err
    assert cli.main([*command, "--device", "cpu", "--environment", "moon"]) == 2
    assert "studio, overcast, sunset, none" in capsys.readouterr().err


def test_floors_and_rooms_get_no_ground(tmp_path):
    """A terrain, and a box without its lid; not a solid box, nor a small tray inside of a wide model."""
    top, low, high = np.array([[-1, 0, 1], [1, 0, 1], [1, 0, -1], [-1, 0, -1]], "f8"), [-1, 0, -1], [1, 2, 1]
    faces = [[0, 1, 2], [0, 2, 3]]
    assert has_floor(top[faces], 1, np.array(low), np.array(high))
    assert not has_floor(top[faces][:, ::-1], 1, np.array(low), np.array(high))  # a solid box's bottom faces down
    assert not has_floor(top[faces] + [0, 1, 0], 1, np.array(low), np.array(high))
    assert not has_floor(top[faces] * 0.5, 1, np.array(low), np.array(high))
    scene = open_file(write_obj(tmp_path / "terrain.obj", top + [[0, 0.1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]], faces))
    assert not scene.settings.quads and "no ground" in scene.notes[0]


BOX = np.array([(x, y, z) for x in (-2, 2) for y in (0, 3) for z in (-4, 4)], "f8")
BOX_QUADS = np.array([(0, 4, 5, 1), (2, 3, 7, 6), (0, 1, 3, 2), (4, 6, 7, 5), (0, 2, 6, 4), (1, 5, 7, 3)])  # outwards
BOX_FACES = np.concatenate([BOX_QUADS[:, :3], BOX_QUADS[:, [0, 2, 3]]])


@pytest.mark.parametrize("walls, closed", [(slice(None), True), (slice(1, None), False)])
def test_a_closed_room_opens_from_inside_with_a_lamp(picture, tmp_path, walls, closed):
    """Walls that face inwards around a table in the middle; without a wall the room is seen from outside."""
    inwards = BOX_FACES[:, ::-1]
    order = [4, 10, *(k for k in range(12) if k not in (4, 10))]  # the wall at z = -4 first
    table = BOX * [0.2, 0.5, 0.1]
    walls = inwards[order] if closed else inwards[order][2:]
    points, faces = np.concatenate([BOX, table]), np.concatenate([walls, BOX_FACES + 8])
    scene = open_file(write_obj(tmp_path / "room.obj", points, faces))
    eye = np.array(scene.settings.view.position)
    assert (
        bool((np.abs(eye) < [2, 3, 4]).all())
        == closed
        == ("a closed room, since its faces point inwards" in scene.notes[0])
    )
    if closed:
        shown = render(picture, scene.settings, (16, 9), 16) * 2.0**scene.tone.ev
        assert len(scene.settings.point_lights) == 1 and 0.02 < np.median(shown) < 1.5


def test_a_solid_box_is_no_room(tmp_path):
    """Nor is one with a second floor inside, which faces up."""
    floor = BOX[[0, 1, 5, 4]] * [1, 0, 1] + [0, 0.05, 0]
    points, faces = np.concatenate([BOX, floor]), np.concatenate([BOX_FACES, [[8, 9, 10], [8, 10, 11]]])
    scene = open_file(write_obj(tmp_path / "box.obj", points, faces))
    assert (np.abs(scene.settings.view.position) > [2, 0, 4]).any() and not scene.settings.point_lights


@pytest.mark.parametrize("mode, wrap", [("MASK", 10497), ("BLEND", 33071), ("MASK", 33648)])
def test_framing_counts_what_an_alpha_map_shows(tmp_path, mode, wrap):
    """A square of which the middle half shows is framed nearly as a square of half the size.

    Alpha is the map's times the material's: 0.55 in the middle and, masked at 0.5, 0.33 around it.
    """
    pixels = np.full((64, 64, 4), 120 if mode == "MASK" else 0, "u1")
    pixels[16:48, 16:48] = 200
    views = []
    for name, half, alpha in (("masked", 1.0, mode), ("half", 0.5, "OPAQUE")):
        maker = Maker()
        texture = maker.texture(pixels, wrapS=wrap, wrapT=wrap)
        color = {"baseColorTexture": {"index": texture}, "baseColorFactor": [1.0, 1.0, 1.0, 0.7]}
        base = {"pbrMetallicRoughness": color, "alphaMode": alpha}
        maker.node(mesh=square(maker, half, material=maker.add("materials", base)))
        (tmp_path / f"{name}.glb").write_bytes(maker.glb())
        views.append(open_file(tmp_path / f"{name}.glb").settings.view)
    distances = [np.linalg.norm(np.subtract(view.position, view.target)) for view in views]
    assert 0.99 < distances[0] / distances[1] < 1.3  # never cut off, and the grid's step around what shows


def test_coordinates_beyond_the_map_are_those_that_it_repeats_mirrors_or_clamps():
    coordinates = np.array([-1.25, -0.25, 0.0, 0.25, 0.75, 1.25, 2.25])
    assert default_picture._wrap(coordinates, "repeat").tolist() == [0.75, 0.75, 0.0, 0.25, 0.75, 0.25, 0.25]
    assert default_picture._wrap(coordinates, "mirror").tolist() == [0.75, 0.25, 0.0, 0.25, 0.75, 0.75, 0.25]
    assert default_picture._wrap(coordinates, "clamp").tolist() == [0.0, 0.0, 0.0, 0.25, 0.75, 1.0, 1.0]


@pytest.mark.parametrize("generator, scale", [("Khronos glTF Blender I/O v4.0.44", 683.0), ("another", 1.0)])
def test_emission_that_blender_writes_in_watts_is_seen_beside_its_lamps(tmp_path, generator, scale):
    maker = Maker()
    lights = [{"type": "directional", "intensity": 6830.0}]
    maker.tree |= {"extensions": {"KHR_lights_punctual": {"lights": lights}}}
    maker.tree["asset"]["generator"] = generator
    maker.tree["extensionsUsed"] = ["KHR_lights_punctual"]
    lava = {"emissiveFactor": [1, 1, 1], "extensions": {"KHR_materials_emissive_strength": {"emissiveStrength": 20.0}}}
    maker.node(mesh=ball(maker, 6, material=maker.add("materials", lava)))
    maker.node(mesh=ball(maker, 6), translation=[3, 0, 0])
    maker.node(extensions={"KHR_lights_punctual": {"light": 0}}, rotation=[-0.5, 0, 0, 0.866])
    path = tmp_path / "lava.glb"
    path.write_bytes(maker.glb())
    scene = open_file(path)
    (shape,) = scene.settings.models
    assert shape.emission_scale == scale and any("in watts" in note for note in scene.notes) == (scale > 1)
    rows = material_rows(scene.settings, [shape.load()])
    assert rows["emission"][:, 0].max() == pytest.approx(20 * scale)


@pytest.mark.parametrize("offset, size", [
    ((0, 0, 0), (1, 1, 1)), ((5, -3, 2), (4, 0.5, 1)), ((1e4, 2e4, -3e4), (2, 3, 4)), ((0, 0, 0), (3e3, 2e3, 1e3)),
    ((-0.3, 7, 0), (1e-3, 2e-3, 5e-4)),
])  # fmt: skip
def test_the_ground_lies_just_below_the_bounds(tmp_path, offset, size):
    """The bounds equal the file's vertices' bounds; no vertex of the box reaches the ground in float32."""
    corners = [(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]
    points = [[o + s * r for o, s, r in zip(offset, size, corner, strict=True)] for corner in corners]
    quads = [(0, 4, 5, 1), (2, 3, 7, 6), (0, 1, 3, 2), (4, 6, 7, 5), (0, 2, 6, 4), (1, 5, 7, 3)]  # outwards
    faces = [triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))]
    path = write_obj(tmp_path / "box.obj", points, faces)
    written = [list(map(float, line.split()[1:])) for line in path.read_text().splitlines() if line.startswith("v ")]
    low = [min(np.float32(v[axis]) for v in written) for axis in range(3)]
    high = [max(np.float32(v[axis]) for v in written) for axis in range(3)]
    diameter = sum((float(b) - float(a)) ** 2 for a, b in zip(low, high, strict=True)) ** 0.5
    (ground,) = open_file(path).settings.quads
    corners = np.array(ground.corners)
    sides = np.roll(corners, -1, 0) - corners
    assert np.allclose(np.linalg.norm(sides, axis=1), 12 * diameter, rtol=1e-6), "the side is 12 diameters"
    assert np.allclose((sides * np.roll(sides, 1, 0)).sum(1), 0, atol=1e-6 * diameter**2), "it is a square"
    middle = [(float(low[axis]) + float(high[axis])) / 2 for axis in (0, 2)]
    assert corners.mean(0)[[0, 2]] == pytest.approx(middle, abs=1e-5 * diameter + 1e-9)
    (height,) = set(corners[:, 1])
    gap = float(low[1]) - height
    assert np.float32(height) < low[1], "no face of the model lies in the ground"
    assert gap <= max(1e-4 * diameter, 8 * float(np.spacing(np.float32(abs(low[1]))))), "the shadow touches the model"
    assert np.cross(sides[0], sides[1])[1] > 0, "its normal is up"


def test_a_files_camera_is_kept_and_named(tmp_path):
    maker = Maker()
    maker.node(mesh=square(maker))
    for name, z in (("front", 9), ("other", 5)):
        camera = maker.add(
            "cameras", {"type": "perspective", "name": name, "perspective": {"yfov": 0.5, "aspectRatio": 2.0}}
        )
        maker.node(camera=camera, translation=[0, 0, z])
    path = tmp_path / "two.glb"
    path.write_bytes(maker.glb())
    scene = open_file(path)
    assert scene.size == (1440, 720) and scene.settings.view.position == (0, 0, 9)
    assert scene.notes[0] == "camera 'front' of the file, the first of 2"
