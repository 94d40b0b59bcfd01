"""Path guiding: lobes sample their pdf, means stay, and the picture is one on any tile and schedule."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from renderer import cli
from renderer.bvh.primitives import spheres, triangles
from renderer.gpu.kernel_source import GeneratedSource
from renderer.paths import ROOT
from renderer.pictures.raytrace import Picture
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.instances import Instance
from renderer.raytracing.kernels import compile_constants, kernel_source
from renderer.raytracing.lights.guiding import LEAF_PHOTONS, LOBES, NO_TREE, _tree, guide_words
from renderer.raytracing.lights.guiding_hint import first_materials, guiding_hint
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.materials import material_rows
from renderer.raytracing.settings import Fog, Material, PointLight, Quad, Settings, Sphere, Sun
from renderer.scene.cameras import Camera
from tests.raytracing.lights.test_light_samplers import assert_chi_square
from tests.raytracing.lights.test_lights import exr, many_lights, render

COUNT = 1 << 15
PROBE = """
KERNEL probe(GLOBAL const float *leaf, float x, float y, float z, uint seed, GLOBAL float4 *out) {
    uint i = thread_index(), bits = mix_bits(mix_bits(i) + seed);
    float3 point = make_float3(x, y, z);
    float3 direction = guide_direction(leaf, point, uniform_float(bits), uniform_float(mix_bits(bits)));
    out[i] = with_w(direction, guide_pdf(leaf, point, direction));
}
"""


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def lobe_pdf(lobes, point, directions):
    """guide_pdf of guide.h by angles; lobes (4, LOBES), directions (n, 3)."""
    to = (lobes[:3].T - np.float32(point)).astype("f8")
    distance2 = (to**2).sum(1)
    a, axes = lobes[3] / distance2, to / np.sqrt(distance2)[:, None]
    one_minus_cos = ((directions[:, None] - axes) ** 2).sum(2) / 2
    return (a * (a + 2) / (4 * np.pi * (a + one_minus_cos) ** 2)).mean(1)


def test_lobes_sample_their_pdf(device, rng):
    point, lobes = rng.normal(size=3), rng.normal(size=(4, LOBES)).astype("f4") * 3
    lobes[3] = rng.uniform(0.05, 2, LOBES)
    constants = compile_constants(Settings(schedule="megakernel", guiding_photons=1), True)
    source = GeneratedSource("photons", kernel_source("photons").text + PROBE)
    kernel = device.kernel(source, "probe", group_size=64, **constants)
    out = device.buffer((COUNT, 4))
    for sizes in (10 ** rng.uniform(-5, 2, LOBES), lobes[3]):  # the least of a thousandth of a radian
        words = np.concatenate([lobes[:3].ravel(), sizes]).astype("f4")
        kernel(COUNT, device.buffer(4 * LOBES).write(words), *map(np.float32, point), np.uint32(7), out)
        found = out.read().astype("f8")
        directions = found[:, :3] / np.linalg.norm(found[:, :3], axis=1, keepdims=True)
        assert np.allclose(found[:, 3], lobe_pdf(words.reshape(4, LOBES), point, directions), rtol=1e-4)
    side = 256
    z, phi = (np.arange(side) + 0.5) / side * 2 - 1, (np.arange(side) + 0.5) / side * 2 * np.pi
    z, phi = (grid.ravel() for grid in np.meshgrid(z, phi, indexing="ij"))
    radius = np.sqrt(1 - z * z)
    grid = np.stack([radius * np.cos(phi), radius * np.sin(phi), z], -1)
    wanted = lobe_pdf(lobes, point, grid).reshape(side, side) * (4 * np.pi / side**2)
    assert wanted.sum() == pytest.approx(1, rel=2e-3)
    turns = np.arctan2(found[:, 1], found[:, 0]) / (2 * np.pi) % 1
    counts, *_ = np.histogram2d(found[:, 2], turns, 16, ((-1, 1), (0, 1)))
    assert_chi_square(counts.ravel(), COUNT * wanted.reshape(16, 16, 16, 16).sum((1, 3)).ravel())


def leaf_at(words, point, face):
    """The lobes (4, LOBES) float32 at a point, by the words of guide.h."""
    first, depth, node = words[face] >> 5, words[face] & 31, 1
    for _ in range(depth):
        split = words[16 + first + node]
        node = 2 * node + int(point[split & 3] >= split.view("f4"))
    begin = words[12] + (first + node - (1 << depth)) * 4 * LOBES
    return words[begin : begin + 4 * LOBES].view("f4").reshape(4, LOBES)


def photons(rng, count):
    """Photons on a floor (tree 2) from two small lamps, one of three times the power, at the same places each."""
    points = np.concatenate([rng.uniform(-2, 2, (count, 2)), np.zeros((count, 2))], 1).astype("f4")[:, [0, 2, 1, 3]]
    of_left = np.arange(count) % 2 == 0
    lamps = np.where(of_left[:, None], [-1.0, 1.5, 0.0], [1.0, 1.5, 0.0]) + rng.normal(size=(count, 3)) * 0.01
    points[:, 3] = np.where(of_left, 3.0, 1.0)
    return points, np.concatenate([lamps - points[:, :3], np.full((count, 1), 2.0)], 1).astype("f4")


@pytest.mark.parametrize("tree", [2, 8])
def test_lobes_lie_where_photons_came_from(rng, tree):
    points, sources = photons(rng, 8 * LEAF_PHOTONS)
    sources[:, 3] = tree
    words = guide_words(points, sources)
    assert np.flatnonzero(words[:12] != NO_TREE).tolist() == [tree]
    assert np.array_equal(words, guide_words(points, sources))
    for point in points[:50, :3]:
        lobes = leaf_at(words, point, tree)
        of_left, of_right = (np.linalg.norm(lobes[:3].T - (x, 1.5, 0.0), axis=1) < 0.05 for x in (-1.0, 1.0))
        assert of_left.sum() + of_right.sum() >= LOBES - 1  # one lobe may hold some photons of each
        assert abs(of_left.mean() - 0.75) <= 2 / LOBES  # three quarters of the power
        assert (lobes[3, of_left | of_right] < 0.03**2).all() and (lobes[3] > 0).all()


def test_leaves_hold_the_photons_that_reach_them(rng):
    """Each photon lies on its side of all splits, and all power is in some leaf."""
    points, sources = photons(rng, 5 * LEAF_PHOTONS + 3)
    points[::7, 0] = points[0, 0]  # equal coordinates lie on both sides of a split
    nodes, leaves, from_ = _tree(points, sources[:, :3])
    assert len(nodes) == len(leaves) == len(from_) == 8 and leaves.shape[1] <= LEAF_PHOTONS
    assert leaves[..., 3].sum(dtype="f8") == pytest.approx(points[:, 3].sum(dtype="f8"))
    assert {*map(bytes, leaves[..., :3].reshape(-1, 3))} == {*map(bytes, points[:, :3])}
    for leaf, members in enumerate(leaves):
        node = 1
        for bit in (4, 2, 1):
            side, split = leaf & bit, nodes[node]
            along, at = members[:, split & 3], split.view("f4")
            slack = 4 * np.spacing(np.abs(at))  # the axis lies in the lowest bits of the split
            assert (along >= at - slack if side else along <= at + slack).all()
            node = 2 * node + (side > 0)


def test_a_guide_of_no_photon_one_place_and_one_photon(rng):
    nothing = np.zeros((0, 4), "f4")
    assert guide_words(nothing, nothing)[:12].tolist() == [NO_TREE] * 12
    points, sources = photons(rng, 1)
    assert np.allclose(leaf_at(guide_words(points, sources), points[0], 2)[0], -1, atol=0.05)
    points, sources = (np.repeat(array, 3 * LEAF_PHOTONS, 0) for array in (points, sources))
    lobes = leaf_at(guide_words(points, sources), points[0], 2)
    assert np.isfinite(lobes).all() and (lobes[3] > 0).all()


def test_photons_are_refused_where_nothing_takes_them():
    with pytest.raises(ValueError, match="integrator is whitted, which takes no guiding_photons"):
        Settings(integrator="whitted", guiding_photons=1)


def test_the_first_materials_of_rays_are_those_of_one_primitive_at_a_time(rng):
    flat = triangles(rng.normal(size=(60, 3)), np.arange(60).reshape(20, 3), np.arange(20) + 100)
    balls = spheres(rng.normal(size=(10, 3)) * 2, rng.uniform(0.1, 0.6, 10), np.arange(10))
    balls["v0"][0, :3] = flat["v0"][:, :3].mean(0)
    origins, towards = rng.normal(size=(80, 3)), rng.normal(size=(80, 3))
    origins[:20] = balls["v0"][0, :3]  # inside the ball
    directions = towards / np.linalg.norm(towards, axis=1, keepdims=True)
    wanted = []
    for origin, direction in zip(origins, directions, strict=True):
        hits = [(np.inf, -1)]
        for index, (corner, a, b) in enumerate(flat.view("f4").reshape(-1, 3, 4)[..., :3].astype("f8")):
            t, u, v = np.linalg.solve(np.stack([-direction, a, b], 1), origin - corner)
            hits += [(t, 100 + index)] * bool(t > 0 and u >= 0 and v >= 0 and u + v <= 1)
        for index, ball in enumerate(balls):
            center, radius = ball["v0"][:3].astype("f8"), float(ball["edge2"][3])
            roots = np.roots([1, 2 * direction @ (origin - center), (origin - center) @ (origin - center) - radius**2])
            hits += [(t, index) for t in roots.real if not roots.imag.any() and t > 0]
        wanted.append(min(hits)[1])
    assert first_materials(origins, directions, np.concatenate([flat, balls])).tolist() == wanted
    assert len({*wanted}) > 8 and -1 in wanted


def test_a_lamp_behind_glass_is_told_of_and_no_other(device):
    def told(samples=64, **changes):
        scene = lamp_in_glass(**changes)
        geometry, rows = Geometry(device, scene), material_rows(scene)
        return guiding_hint(scene, geometry, rows, LightSampler(device, scene, geometry.primitives, rows), samples)

    scene = lamp_in_glass()
    glass, lamp, other = scene.spheres
    cover = Quad("glass", ((-1.0, 1.5, -1.0), (1.0, 1.5, -1.0), (1.0, 1.5, 1.0), (-1.0, 1.5, 1.0)))
    down = Quad("lamp", ((-0.1, 1.6, -0.1), (0.1, 1.6, -0.1), (0.1, 1.6, 0.1), (-0.1, 1.6, 0.1)))
    assert "100 % of the lights' power meets glass first" in told()
    assert "--set guiding_photons=25000" in told(spheres=(), quads=(*scene.quads, cover, down))
    assert "--set guiding_photons=100000" in told(1000)
    assert not told(guiding_photons=1) and not told(integrator="whitted") and not told(spheres=(lamp, other))
    assert not told(suns=(Sun((0.0, 1.0, 0.0), (1e4, 1e4, 1e4)),))  # the lamp is a small part of the light
    smooth = tuple(replace(material, roughness=0.0) for material in scene.materials)
    point = {"spheres": (glass,), "point_lights": (PointLight(lamp.center, (1.0, 1.0, 1.0)),)}
    assert told(materials=smooth) and told(**point) and not told(**point, materials=smooth)
    assert not told(spheres=(glass, other)) and not told(spheres=(glass, lamp, Sphere("red", lamp.center, 0.1)))


def lamp_in_glass(path=None, **changes):
    """A room whose lamp is inside a ball of rough glass, and a second ball."""
    materials = (
        Material("wall", color=(0.7, 0.7, 0.7)), Material("red", "metallic", (0.7, 0.2, 0.1), roughness=0.6),
        Material("glass", "glass", ior=1.5, roughness=0.5), Material("lamp", "emitter", emission=(900.0, 700.0, 500.0)),
    )  # fmt: skip
    low, high = np.array((-2.0, 0.0, -2.0)), np.array((2.0, 2.5, 5.0))
    quads = []
    for axis in range(3):
        for end in (low, high):
            corners = np.array([end, end, end, end])
            for k, (u, v) in enumerate(((0, 0), (1, 0), (1, 1), (0, 1))):
                corners[k, (axis + 1) % 3] = (low, high)[u][(axis + 1) % 3]
                corners[k, (axis + 2) % 3] = (low, high)[v][(axis + 2) % 3]
            quads.append(Quad("red" if axis == 0 else "wall", tuple(map(tuple, corners.tolist()))))
    spheres = (
        Sphere("glass", (0.0, 1.6, -0.2), 0.2), Sphere("lamp", (0.0, 1.6, -0.2), 0.05),
        Sphere("glass", (0.6, 0.35, 0.3), 0.35),
    )  # fmt: skip
    view = Camera((0.0, 1.3, 4.6), (0.0, 1.0, 0.0), fov_degrees=42.0)
    return replace(
        Settings(view=view, materials=materials, quads=tuple(quads), spheres=spheres, max_depth=7), **changes
    )


def every_material(path):
    """Every kind of light and surface that photons meet, an instance and a mirror among them."""
    full = many_lights(path, max_depth=5)
    shiny = Material("shiny", "principled", (0.8, 0.5, 0.2), metallic=0.5, roughness=0.5, clearcoat=1.0)
    materials = (*full.materials, shiny, Material("tiles", "checker"), Material("silver", "mirror"))
    balls = (Sphere("shiny", (-0.2, 0.3, 1.2), 0.3), Sphere("silver", (1.6, 0.5, 0.9), 0.4))
    ball = Sphere("tiles", (0.0, 0.0, 0.0), 0.3, name="ball")
    instances = (Instance("ball", position=(-1.9, 0.3, 1.0)),)
    points, suns = (
        (PointLight((0.5, 2.0, 1.5), (1.0, 1.0, 2.0)),),
        (*full.suns, Sun((0.0, 1.0, 0.5), angle_degrees=0.0)),
    )
    spheres = (*full.spheres, *balls, ball)
    return replace(full, materials=materials, spheres=spheres, instances=instances, point_lights=points, suns=suns)


def foggy(path):
    return replace(lamp_in_glass(), fog=Fog(density=0.2, color=(1.0, 0.9, 0.8)))


CASES = [(scene, lighting) for scene in (lamp_in_glass, every_material) for lighting in ("mis", "bsdf", "nee")]


@pytest.mark.slow
@pytest.mark.parametrize("scene_of, direct_lighting", [*CASES, (foggy, "mis")])
def test_guided_and_unguided_pictures_have_one_mean(picture, tmp_path, rng, scene_of, direct_lighting):
    """z-tests of the means of 4 x 3 tiles over seeds, each of which emits other photons."""
    path = exr(tmp_path / "noise.exr", np.exp(rng.normal(size=(16, 32, 3))))
    means, errors = [], []
    for photon_count in (0, 20000):
        scene = replace(scene_of(path), guiding_photons=photon_count, direct_lighting=direct_lighting)
        first = int(rng.integers(1 << 30))
        frames = [render(picture, replace(scene, seed=first + k), (48, 36), 64) for k in range(16)]
        seeds = [frame.reshape(3, 12, 4, 12, 3).mean((1, 3)) for frame in frames]
        means.append(np.mean(seeds, 0))
        error = np.std(seeds, 0, ddof=1) / np.sqrt(len(seeds))
        errors.append(np.maximum(error, means[-1] * np.sqrt(np.mean((error / means[-1]) ** 2))))
    t = (means[0] - means[1]) / np.hypot(*errors)
    assert np.abs(t).max() < stats.t.isf(1e-6, 15), t
    assert (t**2).mean() < 5


@pytest.mark.slow
def test_photons_lower_the_variance_of_light_through_glass(picture, rng):
    """By 140 times in the room of tests/fps/convergence.py; 23 where Russian roulette goes by the throughput."""
    variances = []
    for photon_count in (0, 25000):
        scene = lamp_in_glass(guiding_photons=photon_count)
        bulb = replace(scene.spheres[1], radius=0.01)
        scene = replace(scene, spheres=(scene.spheres[0], bulb, scene.spheres[2]))
        frames = [render(picture, replace(scene, seed=k), (48, 36), 64).mean(2) for k in range(6)]
        mean, variance = np.mean(frames, 0), np.var(frames, 0, ddof=1)
        variances.append(variance[mean < np.percentile(mean, 98)].mean())  # all but the lamp's own pixels
    assert variances[0] > 50 * variances[1], variances


@pytest.mark.slow
def test_pixels_that_stop_at_a_noise_threshold_keep_their_mean_with_photons(picture):
    """Half of the blocks are quiet after 256 samples; without photons all wait, or the picture tells of lost light."""
    means, size = {}, (48, 32)
    for photon_count, threshold in ((25000, 0.0), (25000, 0.2), (0, 0.2)):
        scene = lamp_in_glass(guiding_photons=photon_count, noise_threshold=threshold, seed=5)
        means[photon_count, threshold] = render(picture, scene, size, 1024).mean()
        if photon_count and threshold:
            taken = picture.layers(scene, size)["samples"]
            assert 256 <= taken.min() <= 512 < taken.mean() < 900
    assert means[25000, 0.2] == pytest.approx(means[25000, 0.0], rel=0.04)
    is_told = any("noise threshold" in hint for hint in picture.hints())
    assert is_told or means[0, 0.2] == pytest.approx(means[25000, 0.0], rel=0.04)


@pytest.mark.slow
def test_a_guided_picture_is_one_on_tiles_schedules_and_chunks(picture):
    scene, size = lamp_in_glass(guiding_photons=5000, samples=4), (40, 28)
    whole = render(picture, scene, size, 4)
    assert np.array_equal(whole, render(picture, replace(scene, schedule="wavefront"), size, 4))
    moved = replace(scene, view=replace(scene.view, position=(0.3, 1.3, 4.6)))
    assert not np.array_equal(whole, render(picture, moved, size, 4))  # and keeps the photons
    picture.restart()
    for _ in range(4):
        part = picture.draw(scene, size, 0.0, (8, 4, 16, 12)).read()[..., :3]
    assert np.array_equal(part, whole[4:16, 8:24])
    chunk = picture.draw_chunk(scene, size, 0.0, (0, 1, 4), ())
    assert np.array_equal(chunk["films"][0][0], whole.astype("f4"))
    other = Picture(SimpleNamespace(device=picture.device))
    assert np.array_equal(whole, render(other, scene, size, 4))
    assert not np.array_equal(whole, render(other, replace(scene, guiding_photons=0), size, 4))


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--tile", 13], ["--split", "samples"]])
def test_a_farm_of_two_draws_the_guided_picture_of_one_machine(tmp_path, words):
    """Each of its workers traces the photons by itself; tiles and ranges of samples are of either."""
    pytest.importorskip("distributed", reason="farms need distributed")
    scene = [ROOT / "scenes/cornell.toml", "--size", "40x30", "--samples", 150, "--device", "cpu"]
    sets = ["--set", "max_depth=4", "--set", "guiding_photons=5000"]
    ways = {"here": [], "farm": ["--farm", "local:2", *words], "plain": ["--set", "guiding_photons=0"]}
    for name, more in ways.items():
        command = ["export", *scene, *sets, *more, "-o", tmp_path / f"{name}.png"]
        assert cli.main([*map(str, command)]) == 0
    here, farm, plain = ((tmp_path / f"{name}.png").read_bytes() for name in ("here", "farm", "plain"))
    assert here == farm != plain


@pytest.mark.slow
def test_parts_of_a_device_draw_the_guided_picture_of_the_whole(picture):
    cl = pytest.importorskip("pyopencl")
    from renderer.gpu.opencl.device import OpenclDevice

    if not isinstance(picture.device, OpenclDevice) or picture.device._handle.max_compute_units < 2:
        pytest.skip("no OpenCL device of two units or more here")
    try:
        parts = picture.device._handle.create_sub_devices([cl.device_partition_property.EQUALLY, 1])
    except cl.Error as error:
        pytest.skip(f"{picture.device.name} has no sub-devices: {error}")
    scene, size = lamp_in_glass(guiding_photons=5000, samples=2), (40, 28)
    whole = render(picture, scene, size, 2)
    for part, tile in zip(parts[:2], ((0, 0, 40, 11), (0, 11, 40, 17)), strict=True):
        other = Picture(SimpleNamespace(device=OpenclDevice(0, 0, handle=part)))
        for _ in range(2):
            frame = other.draw(scene, size, 0.0, tile)
        assert np.array_equal(frame.read()[..., :3], whole[tile[1] : tile[1] + tile[3]])
