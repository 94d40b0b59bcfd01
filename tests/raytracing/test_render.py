"""The ray tracer against algebra, and against itself: all schedules give the same bits."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import InputError, UserError
from renderer.paths import SCENES
from renderer.pictures import load, open_picture
from renderer.pictures.raytrace import Picture
from renderer.raytracing import procedural
from renderer.raytracing.schedules import BOUNCES, Schedule
from renderer.raytracing.settings import MATERIALS, Attractor, Material, MeshShape, Procedural, Quad, Settings, Sphere
from renderer.scene.cameras import Camera
from renderer.scene.schema import from_table, set_from_text, to_table

WHITE = (1.0, 1.0, 1.0)


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def render(picture, settings, size=(24, 16), samples=1):
    picture._drawn = None  # from the first sample
    for _ in range(samples):
        frame = picture.draw(settings, size, 0.0)
    return frame.read()


def room(material, half=1.0):
    """Six quads about the origin that face inwards."""
    quads = []
    for axis in range(3):
        for side in (-half, half):
            corners = np.zeros((4, 3))
            corners[:, axis] = side
            order = [(-1, -1), (1, -1), (1, 1), (-1, 1)] if side < 0 else [(-1, -1), (-1, 1), (1, 1), (1, -1)]
            corners[:, (axis + 1) % 3] = [half * a for a, _ in order]
            corners[:, (axis + 2) % 3] = [half * b for _, b in order]
            quads.append(Quad(material, tuple(map(tuple, corners.tolist()))))
    return tuple(quads)


def mixed_scene(**changes):
    """Every material on spheres, quads and a sphereflake, with area lights."""
    materials = (
        Material("matte", color=(0.7, 0.5, 0.3)),
        Material("board", "checker", checker_size=0.5),
        Material("silver", "mirror", color=(0.9, 0.9, 0.95)),
        Material("glass", "glass", color=(0.95, 1.0, 0.95)),
        Material("lamp", "emitter", emission=(9.0, 8.0, 6.0)),
        Material("bulb", "emitter", emission=(5.0, 1.0, 1.0)),
    )
    floor = Quad("board", ((-4.0, -1.0, 4.0), (4.0, -1.0, 4.0), (4.0, -1.0, -4.0), (-4.0, -1.0, -4.0)))
    lamp = Quad("lamp", ((-1.0, 3.0, -1.0), (1.0, 3.0, -1.0), (1.0, 3.0, 1.0), (-1.0, 3.0, 1.0)))
    settings = Settings(
        schedule="wavefront",
        view=Camera((0.0, 0.8, 5.0)),
        horizon=(0.3, 0.4, 0.5),
        materials=materials,
        quads=(floor, lamp),
        spheres=(
            Sphere("glass", (-1.2, -0.2, 1.0), 0.8),
            Sphere("silver", (1.2, -0.3, 0.6), 0.7),
            Sphere("bulb", (0.0, 0.2, 1.8), 0.1),
        ),
        procedural=(Procedural("matte", "sphereflake", 1, 1.0, (0.0, 0.4, -0.8)),),
    )
    return replace(settings, **changes)


@pytest.mark.parametrize("paths", ["path", pytest.param("whitted", marks=pytest.mark.slow)])
def test_no_stencil_changes_a_bit_of_the_picture(picture, rng, paths):
    size = tuple(int(n) for n in rng.integers(1, 90, 2))
    scene = mixed_scene(integrator=paths, max_depth=int(rng.integers(2, 9)), seed=int(rng.integers(0, 2**31 - 1)))
    wanted = render(picture, replace(scene, stencil="off"), size, 2)
    assert np.isfinite(wanted).all() and wanted[..., :3].mean() > 0.05
    assert np.array_equal(wanted, render(picture, replace(scene, stencil="flags"), size, 2))
    assert np.array_equal(wanted, render(picture, replace(scene, schedule="wavefront"), size, 2))


@pytest.mark.slow
def test_compaction_lists_each_active_ray_once_and_changes_no_bit(picture, rng):
    size = tuple(int(n) for n in rng.integers(1, 90, 2))
    scene = mixed_scene(max_depth=7, seed=int(rng.integers(0, 2**31 - 1)))
    wanted, live = render(picture, scene, size, 2), picture.report()["active rays"]
    assert np.array_equal(wanted, render(picture, replace(scene, stencil="compact"), size, 2))
    assert picture.report()["active rays"] == live
    lists = [mask.read()[1:] for mask in picture._rays.active_masks]
    render(picture, replace(scene, stencil="flags"), size, 2)
    for mask, rays, count in zip(picture._rays.active_masks, lists, live, strict=False):
        assert np.array_equal(np.sort(rays[:count]), np.flatnonzero(mask.read()))


@pytest.mark.parametrize("paths", ["path", pytest.param("whitted", marks=pytest.mark.slow)])
def test_no_schedule_changes_a_bit_of_the_picture(picture, rng, paths):
    size = tuple(int(n) for n in rng.integers(1, 120, 2))
    scene = mixed_scene(integrator=paths, max_depth=int(rng.integers(1, 9)), seed=int(rng.integers(0, 2**31 - 1)))
    wanted, live = render(picture, scene, size, 2), picture.report()["active rays"]
    for schedule in ("regenerate", "megakernel", "auto"):
        assert np.array_equal(wanted, render(picture, replace(scene, schedule=schedule), size, 2)), schedule
        assert picture.report()["active rays"] == live, schedule


@pytest.mark.parametrize(
    "schedule", [pytest.param(s, marks=pytest.mark.slow) for s in ("megakernel", "regenerate", "wavefront")]
)
def test_no_bvh_changes_a_bit_of_the_picture(picture, schedule):
    scene = mixed_scene(max_depth=4, schedule=schedule)
    wanted = render(picture, replace(scene, builder="host_sah", bvh="bvh2"), (50, 40))
    for builder, bvh in (
        ("hploc", "bvh2"),
        ("host_sah", "auto"),
        ("hploc", "auto"),
        ("sah", "auto"),
        ("presplit", "bvh2"),
        ("presplit", "auto"),
    ):
        assert np.array_equal(wanted, render(picture, replace(scene, builder=builder, bvh=bvh), (50, 40))), (
            builder,
            bvh,
        )


def test_bit_count_is_the_number_of_active_rays(picture, rng):
    size = tuple(int(n) for n in rng.integers(1, 90, 2))
    scene = mixed_scene(max_depth=7)
    render(picture, replace(scene, stencil="flags"), size)
    flags = [int((row.read() != 0).sum()) for row in picture._rays.active_masks[:7]]
    assert flags[0] == size[0] * size[1]
    render(picture, scene, size)
    rows = [row.read() for row in picture._rays.active_masks[:7]]
    if BOUNCES in picture._schedule._kernels:
        rows[1:] = picture._rays.bounces_masks.read()[1:7]
    report = picture.report()
    assert [int(np.bitwise_count(row).sum()) for row in rows] == flags == report["active rays"]
    assert [int((row == 0).sum()) for row in rows] == report["empty stencil words"]
    assert flags[1] < flags[0] or size == (1, 1)


@pytest.mark.parametrize("size", [(1, 1), (7, 3), (8, 4), (33, 17), (129, 1), (1, 65)])
def test_every_pixel_of_any_size_is_drawn(picture, size):
    frame = render(picture, Settings(horizon=(0.25, 0.5, 0.75), zenith=(0.25, 0.5, 0.75)), size)
    assert frame.shape == (size[1], size[0], 4)
    assert np.array_equal(frame, np.broadcast_to(np.array([0.25, 0.5, 0.75, 1], "f4"), frame.shape))


def test_a_tile_is_bit_identical_to_the_whole_picture(picture, rng):
    size, scene = (61, 43), mixed_scene()
    whole = [picture.draw(scene, size, 0.0).read() for _ in range(2)]
    for _ in range(4):
        left, top = int(rng.integers(0, 61)), int(rng.integers(0, 43))
        tile = left, top, int(rng.integers(1, 62 - left)), int(rng.integers(1, 44 - top))
        for sample in range(2):
            part = picture.draw(scene, size, 0.0, tile).read()
            assert np.array_equal(part, whole[sample][top : top + tile[3], left : left + tile[2]]), tile


def test_white_furnace_reads_the_albedo(picture, rng):
    albedo = tuple(float(x) for x in rng.uniform(0, 1, 3).astype("f4"))
    scene = Settings(
        materials=(Material("ball", color=albedo),), spheres=(Sphere("ball"),), horizon=WHITE, zenith=WHITE, max_depth=4
    )
    frame = render(picture, scene, (40, 40))[..., :3]
    on_ball = ~(frame == 1).all(-1)
    assert 0.1 < on_ball.mean() < 0.9
    assert np.allclose(frame[on_ball], albedo, rtol=1e-6)


def test_white_sphere_vanishes_in_the_furnace(picture):
    scene = Settings(materials=(Material("ball", color=WHITE),), spheres=(Sphere("ball"),), horizon=WHITE, zenith=WHITE)
    assert np.allclose(render(picture, scene, (40, 40)), 1, rtol=1e-6)


@pytest.mark.parametrize("depth", [1, 2, 5, 16])
def test_closed_gray_box_has_the_geometric_sum(picture, rng, depth):
    albedo, shine = (float(x) for x in rng.uniform(0.2, 0.8, 2).astype("f4"))
    wall = Material("wall", color=(albedo,) * 3, emission=(shine,) * 3)
    scene = Settings(
        view=Camera((0.1, 0.2, 0.3)),
        materials=(wall,),
        quads=room("wall"),
        direct_lighting="bsdf",
        max_depth=depth,
        rr_depth=16,
    )
    frame = render(picture, scene, (32, 32))[..., :3]
    assert np.allclose(frame, shine * (1 - albedo**depth) / (1 - albedo), rtol=1e-5)
    if depth == 16:
        assert np.allclose(frame, shine / (1 - albedo), rtol=albedo**16 * 1.01 + 1e-5)


def test_gray_box_of_mirrors_has_the_geometric_sum(picture):
    wall = Material("wall", "mirror", color=(0.5,) * 3, emission=WHITE)
    scene = Settings(view=Camera((0.1, 0.2, 0.3)), materials=(wall,), quads=room("wall"), max_depth=10, rr_depth=16)
    assert np.allclose(render(picture, scene)[..., :3], 2 * (1 - 0.5**10), rtol=1e-6)


@pytest.mark.parametrize("light", ["sphere", "quad"])
@pytest.mark.parametrize("lights", ["mis", "bsdf"])
def test_irradiance_of_an_area_light_overhead(picture, light, lights):
    """A Lambertian floor shows albedo L (R / h)^2 under a sphere of radius R, a small square L area / (pi h^2)."""
    floor = Quad("floor", ((-9.0, 0.0, 9.0), (9.0, 0.0, 9.0), (9.0, 0.0, -9.0), (-9.0, 0.0, -9.0)))
    materials = (Material("floor", color=(0.5,) * 3), Material("lamp", "emitter", emission=(10.0,) * 3))
    view = Camera((0.01, 0.2, 0.01), (0.0, 0.0, 0.0), fov_degrees=5.0)
    scene = Settings(view=view, materials=materials, quads=(floor,), direct_lighting=lights, max_depth=2)
    if light == "sphere":
        scene, wanted = replace(scene, spheres=(Sphere("lamp", (0.0, 2.0, 0.0), 0.5),)), 0.5 * 10 * (0.5 / 2) ** 2
    else:
        a = 0.25
        lamp = Quad("lamp", ((-a, 2.0, -a), (a, 2.0, -a), (a, 2.0, a), (-a, 2.0, a)))
        sides = np.linspace(-a, a, 201)
        distance2 = 4 + sides[:, None] ** 2 + sides**2
        irradiance = 10 * (4 / distance2**2).mean() * (2 * a) ** 2
        scene, wanted = replace(scene, quads=(floor, lamp)), 0.5 * irradiance / np.pi
    values = render(picture, scene, (64, 64), 16)[..., 0]
    error = values.std() / np.sqrt(values.size)
    assert abs(values.mean() - wanted) < 4 * error + 1e-3 * wanted
    assert error < (0.01 if lights == "mis" else 0.1) * wanted


def test_mis_and_bsdf_agree(picture):
    """Both estimate the same integral, in a scene of every material with two area lights."""
    means, errors = [], []
    for lights in ("mis", "bsdf"):
        frames = [
            render(picture, mixed_scene(direct_lighting=lights, max_depth=5, seed=seed), (48, 32), 8)[..., :3]
            for seed in range(6)
        ]
        means.append(np.mean(frames, (0, 1, 2)))
        errors.append(np.std([frame.mean((0, 1)) for frame in frames], 0) / np.sqrt(5))
    z = (means[0] - means[1]) / np.hypot(*errors)
    assert (np.abs(z) < 4.5).all(), (means, errors)


def test_glass_of_index_one_is_invisible(picture):
    sky = dict(horizon=(0.2, 0.3, 0.4), zenith=(0.9, 0.8, 0.7), max_depth=4)
    ball = dict(materials=(Material("air", "glass", color=WHITE, ior=1.0),), spheres=(Sphere("air"),))
    empty, filled = render(picture, Settings(**sky), (40, 40)), render(picture, Settings(**sky, **ball), (40, 40))
    assert np.allclose(empty, filled, atol=2e-5)


def test_glass_conserves_energy_in_the_furnace(picture):
    ball = Material("ball", "glass", color=WHITE)
    scene = Settings(materials=(ball,), spheres=(Sphere("ball"),), horizon=WHITE, zenith=WHITE, max_depth=16)
    frame = render(picture, scene, (40, 40))[..., :3]
    assert frame.max() <= 1 + 1e-6 and (frame > 0.999).mean() > 0.995  # a few paths are still inside after 16 rays


def test_mirror_shows_what_the_law_of_reflection_says(picture):
    """A horizontal mirror shows the background of the reflected direction."""
    mirror = Quad("m", ((-9.0, 0.0, 9.0), (9.0, 0.0, 9.0), (9.0, 0.0, -9.0), (-9.0, 0.0, -9.0)))
    zenith = np.array([0.9, 0.6, 0.3])
    view = Camera((0.0, 2.0, 2.0), (0.0, 0.0, 0.0), fov_degrees=0.2)
    material = Material("m", "mirror", color=(0.8, 0.5, 1.0))
    frame = render(
        picture, Settings(view=view, materials=(material,), quads=(mirror,), zenith=tuple(zenith), max_depth=2), (8, 8)
    )
    assert np.allclose(frame[..., :3], np.sqrt(0.5) * zenith * [0.8, 0.5, 1.0], rtol=5e-3)


def test_emitters_emit_from_their_front_only(picture):
    lamp = Quad("lamp", ((-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, 0.0), (-1.0, 1.0, 0.0)))  # faces +z
    scene = Settings(materials=(Material("lamp", "emitter", emission=(2.0, 3.0, 4.0)),), quads=(lamp,))
    front = render(picture, replace(scene, view=Camera((0.0, 0.0, 1.0))), (8, 8))
    back = render(picture, replace(scene, view=Camera((0.0, 0.0, -1.0))), (8, 8))
    assert np.array_equal(front[..., :3], np.broadcast_to(np.array([2, 3, 4], "f4"), (8, 8, 3)))
    assert (back[..., :3] == 0).all()


def test_same_seed_same_picture_other_seed_another(picture):
    scene = mixed_scene()
    first = render(picture, scene, samples=3)
    assert np.array_equal(first, render(picture, scene, samples=3))
    assert not np.array_equal(first, render(picture, replace(scene, seed=2), samples=3))


def test_a_changed_setting_or_size_starts_anew(picture):
    scene = mixed_scene()
    moved = replace(scene, view=scene.view.drag(0.1, 0.05))
    wanted = render(picture, moved, (20, 20))
    render(picture, scene, (20, 20), 3)
    assert np.array_equal(picture.draw(moved, (20, 20), 0.0).read(), wanted)
    assert picture.report()["samples"] == 1
    deeper, other_size = replace(moved, max_depth=2), (31, 9)
    assert not np.array_equal(picture.draw(deeper, (20, 20), 0.0).read(), wanted)
    assert picture.draw(deeper, other_size, 0.0).read().shape == (9, 31, 4)
    brighter = replace(
        moved,
        materials=(*moved.materials[:-2], replace(moved.materials[-2], emission=(20.0,) * 3), moved.materials[-1]),
    )
    assert picture.draw(brighter, (20, 20), 0.0).read()[..., :3].mean() > wanted[..., :3].mean()


def test_a_moved_camera_uploads_nothing_and_a_changed_material_its_row(picture):
    scene = mixed_scene(schedule="auto")
    render(picture, scene)
    counters = picture.device.counters
    uploads, allocations = counters.uploads, counters.allocations
    moved = render(picture, replace(scene, view=replace(scene.view, fov_degrees=41.0)))
    assert (counters.uploads, counters.allocations) == (uploads, allocations)
    materials = tuple(replace(material, color=(0.1, 0.2, 0.9)) for material in scene.materials)
    blue = render(picture, replace(scene, materials=materials, view=replace(scene.view, fov_degrees=41.0)))
    assert counters.uploads > uploads and not np.array_equal(blue, moved)
    assert np.array_equal(
        render(Picture(picture.gpu), replace(scene, view=replace(scene.view, fov_degrees=41.0))), moved
    )


def test_more_samples_come_closer_to_the_mean(picture):
    scene = mixed_scene(max_depth=3)
    truth = render(picture, replace(scene, seed=99), (32, 24), 64)
    few, many = (np.abs(render(picture, scene, (32, 24), n) - truth).mean() for n in (1, 16))
    assert many < 0.45 * few


@pytest.mark.parametrize("name", ["cornell", "mirrors", pytest.param("sphereflake", marks=pytest.mark.slow), "menger"])
def test_scene_files_draw(picture, name):
    scene = load(SCENES / f"{name}.toml")
    assert from_table(Settings, to_table(scene.settings), "again", None) == scene.settings
    frame = render(picture, scene.settings, (48, 36), 2)
    assert np.isfinite(frame).all()
    assert 0.02 < frame[..., :3].mean() < 2 and frame[..., :3].std() > 0.05
    live = picture.report()["active rays"]
    assert live[0] == 48 * 36 and all(a >= b for a, b in zip(live, live[1:], strict=False))


def test_cornell_box_is_red_on_the_left_and_green_on_the_right(picture):
    frame = render(picture, load(SCENES / "cornell.toml").settings, (64, 64), 8)
    left, right = frame[20:44, 2:8, :3].mean((0, 1)), frame[20:44, 56:62, :3].mean((0, 1))
    assert left[0] > 5 * left[1] and right[1] > 1.5 * right[0]
    assert frame[8:10, 29:36, 0].min() > 10  # the lamp


def test_a_mesh_file_gets_a_floor_and_an_area_light(picture, tmp_path):
    path = tmp_path / "tent.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0.5 1 0\nv 0.5 0 1\nf 1 2 3\nf 1 3 4\nf 2 4 3\n")
    scene = load(path)
    assert scene.picture == "raytrace" and scene.title == "tent"
    assert from_table(Settings, to_table(scene.settings, tmp_path), "recipe", tmp_path) == scene.settings
    frame = render(open_picture(scene, SimpleNamespace(device=picture.device)), scene.settings, (48, 36), 8)
    without = render(picture, replace(scene.settings, meshes=()), (48, 36), 8)
    different = np.abs(frame - without)[..., :3].max(-1) > 0.03
    assert 0.03 < different.mean() < 0.9 and different[18, 24]
    assert frame[..., :3].mean() > 0.15


@pytest.mark.parametrize("size", [pytest.param(1e13, marks=pytest.mark.slow), 1e-12])
def test_huge_and_tiny_meshes_are_shown_as_others_are(picture, tmp_path, size):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0.5, 1, 0], [0.5, 0, 1]])
    frames = []
    for scale in (1.0, size):
        path = tmp_path / f"tent{scale:g}.obj"
        lines = [f"v {x:g} {y:g} {z:g}" for x, y, z in scale * corners]
        path.write_text("\n".join([*lines, "f 1 2 3", "f 1 3 4", "f 2 4 3", ""]))
        frames.append(render(picture, load(path).settings, (48, 36), 4)[..., :3])
    assert np.abs(np.subtract(*frames)).mean() < 0.1 * frames[0].mean()


def test_every_material_has_a_file_and_is_selectable():
    assert {"diffuse", "mirror", "glass", "emitter"} <= set(MATERIALS)
    with pytest.raises(InputError, match="allowed are .*mirror"):
        from_table(Settings, {"materials": [{"name": "a", "kind": "chrome"}]}, "scene.toml: settings", None)


WRONG = {
    "shape without material": ({"spheres": [{"material": "gold"}]}, r"spheres\[0\].*gold.*it must be 'plain'"),
    "two of one name": ({"materials": [{"name": "a"}, {"name": "a"}]}, "two materials"),
    "no such mesh": ({"meshes": [{"material": "plain", "file": "no.obj"}]}, "no.obj"),
    "level": ({"procedural": [{"material": "plain", "kind": "menger", "level": 9}]}, "menger allows 0 to"),
    "radius": ({"spheres": [{"material": "plain", "radius": -1.0}]}, "radius is -1.0"),
    "max_depth": ({"max_depth": 0}, "max_depth is 0; it must be 1 to 128"),
    "color": ({"materials": [{"name": "a", "color": [2.0, 0, 0]}]}, "0.0 to 1.0"),
    "corners": ({"quads": [{"material": "plain", "corners": [[0, 0, 0]]}]}, "4 values"),
    "schedule": ({"schedule": "magic"}, "allowed are auto"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_settings_are_reported(case):
    table, words = WRONG[case]
    with pytest.raises(InputError, match=words):
        from_table(Settings, table, "scene.toml: settings", None)


def test_an_invalid_mesh_is_reported_when_drawn(picture, tmp_path):
    path = tmp_path / "bad.obj"
    path.write_text("v 0 0 0\nv 1 0 nan\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(InputError, match="bad.obj: vertex 1"):
        render(picture, Settings(meshes=(MeshShape("plain", str(path)),)))


def test_set_reaches_into_the_scene():
    settings = load(SCENES / "cornell.toml").settings
    assert set_from_text(settings, "materials[0].color", "0.1,0.2,0.3").materials[0].color == (0.1, 0.2, 0.3)
    with pytest.raises(UserError, match="max_depth is 199"):
        set_from_text(settings, "max_depth", "199")


def test_aovs_are_those_of_the_first_hit(picture):
    """A sphere before a floor: depth and normal at the center, ids of both, nothing above the horizon."""
    settings = Settings(
        view=Camera((0.0, 0.0, 5.0), fov_degrees=30.0), samples=4,
        materials=(Material("red", color=(0.8, 0.2, 0.1)), Material("gray", color=(0.4, 0.4, 0.4))),
        spheres=(Sphere("red", radius=0.5),),
        quads=(Quad("gray", ((-9.0, -1.0, 9.0), (9.0, -1.0, 9.0), (9.0, -1.0, -9.0), (-9.0, -1.0, -9.0))),),
    )  # fmt: skip
    layers = picture.layers(settings, (33, 33))
    assert layers["depth"][16, 16] == pytest.approx(4.5, abs=1e-3) and layers["id"][16, 16] == 1
    assert layers["albedo"][16, 16] == pytest.approx((0.8, 0.2, 0.1), abs=1e-5)
    assert layers["normal"][16, 16] == pytest.approx((0, 0, 1), abs=0.05)
    assert np.isinf(layers["depth"][0, 0]) and layers["id"][0, 0] == 0 and not layers["albedo"][0, 0].any()
    assert set(np.unique(layers["id"])) == {0, 1, 2, 3} and layers["normal"][32, 2] == pytest.approx(
        (0, 1, 0), abs=1e-5
    )
    part = picture.layers(settings, (33, 33), (8, 9, 17, 13))
    assert all(np.array_equal(part[name], layer[9:22, 8:25]) for name, layer in layers.items())


def test_layers_alone_compile_no_schedule_and_are_those_of_a_drawn_picture(device, monkeypatch):
    """Without samples the layers need only their kernels; a draw before them changes no bit."""
    settings = Settings(materials=(Material("m", color=(0.5, 0.2, 0.7)),), spheres=(Sphere("m"),), samples=2)
    gpu = SimpleNamespace(device=device)
    drawn = Picture(gpu)
    drawn.draw(settings, (9, 7), 0.0)
    wanted = drawn.layers(settings, (9, 7))
    for name in ("compile", "compile_ahead"):
        monkeypatch.setattr(Schedule, name, lambda *_: pytest.fail("compiles a schedule"))
    fresh = Picture(gpu)
    found = fresh.layers(settings, (9, 7))
    assert found.keys() == wanted.keys() and all(np.array_equal(found[name], wanted[name]) for name in wanted)
    monkeypatch.undo()
    assert np.array_equal(fresh.draw(settings, (9, 7), 0.0).read(), Picture(gpu).draw(settings, (9, 7), 0.0).read())


def test_an_attractor_is_the_image_of_its_spheres(rng):
    """Every center lies on the attractor: its image under a map is a center one level deeper; sizes are volumes."""
    maps = np.concatenate([rng.uniform(-0.35, 0.35, (3, 3, 3)), rng.uniform(-1, 1, (3, 3, 1))], 2)
    few, many = (procedural.attractor(maps, level, 2.0) for level in (2, 3))
    assert len(few) == 9 and len(many) == 27
    images = np.concatenate([few["v0"][:, :3] @ m[:, :3].T + m[:, 3] for m in maps])
    assert np.allclose(images, many["v0"][:, :3], atol=1e-5)
    volumes = np.abs(np.linalg.det(maps[:, :, :3]))
    wanted = 2.0 * np.cbrt([a * b for a in volumes for b in volumes])
    assert np.allclose(few["edge2"][:, 3], np.maximum(wanted, 2e-3), rtol=1e-5)


def test_an_attractor_is_geometry_and_light(picture):
    """One map to one point gives a sphere, as geometry and as light."""
    still = (0.5, 0.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0)  # its fixed point is (1, 0, 0)
    for material in (Material("m", color=(0.7, 0.5, 0.3)), Material("m", "emitter", emission=(3.0, 2.0, 1.0))):
        common = dict(view=Camera((0.0, 0.0, 6.0)), horizon=WHITE, materials=(material,))
        attractor = Settings(**common, attractors=(Attractor("m", (still,), level=1, radius=1.0),))
        ball = Settings(**common, spheres=(Sphere("m", (1.0, 0.0, 0.0), 0.5),))
        assert np.array_equal(render(picture, attractor), render(picture, ball))


def test_maps_that_do_not_contract_are_reported():
    with pytest.raises(ValueError, match="stretches by 2"):
        Attractor("m", ((2.0,) + (0.0,) * 11,), 1)
    with pytest.raises(ValueError, match="or none"):
        Attractor("m", (), 1)
