"""The light tree: choices follow the probability that MIS weights use, which NumPy computes again; means stay."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.gpu.kernel_source import GeneratedSource
from renderer.pictures.raytrace import Picture
from renderer.raytracing.instances import Instance
from renderer.raytracing.kernels import NO_SCHEDULE, compile_constants, kernel_source, launch_params
from renderer.raytracing.lights import light_tree
from renderer.raytracing.lights.light_buffer import MIN_TREE_LIGHTS, MIN_TREE_POINTS, uses_tree
from renderer.raytracing.lights.light_tree import LightBounds, build_light_tree
from renderer.raytracing.settings import Material, PointLight, Quad, Settings, Sphere, Sun
from renderer.scene.cameras import Camera
from tests.raytracing.lights.test_light_samplers import assert_chi_square
from tests.raytracing.lights.test_lights import FLOOR, floor_scene, render

COUNT = 1 << 15
PROBE = """
KERNEL choose(const LaunchParams params, float x, float y, float z, uint seed, GLOBAL const float4 *lights,
              GLOBAL int *ids, GLOBAL float *probabilities, int leaves, GLOBAL const int *leaf_of,
              GLOBAL float *of_leaves) {
    uint i = thread_index();
    float3 point = make_float3(x, y, z);
    float probability;
    ids[i] = sample_light_tree(params, lights, point, mix_bits(mix_bits(i) + seed), &probability);
    probabilities[i] = probability;
    if ((int)i < leaves) of_leaves[i] = light_tree_probability(params, lights, leaf_of[i], point);
}
"""


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def scattered_lights(rng, count):
    """Bounds of triangles of any direction, spheres, and points, a third of the count each, of many intensities."""
    center, size = rng.uniform(-5, 5, (count, 3)), 10 ** rng.uniform(-3, -0.5, (count, 1))
    axis = rng.normal(size=(count, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    kind = np.arange(count) % 3
    size[kind == 2] = 0
    cos_o = np.where(kind == 0, 1.0, -1.0)
    return LightBounds(center - size, center + size, axis, cos_o, np.zeros(count), np.exp(2 * rng.normal(size=count)))


def importance(nodes, point):
    """light_importance of light_tree.h by angles."""
    low, high = nodes[:, 0, :3].astype("f8"), nodes[:, 1, :3].astype("f8")
    away = point - (low + high) / 2
    distance2, radius2 = (away**2).sum(1), ((high - low) ** 2).sum(1) / 4
    found = nodes[:, 0, 3] / np.maximum(distance2, radius2)
    box = np.arcsin(np.sqrt(np.minimum(radius2 / distance2, 1)))
    to_axis = np.arccos(np.clip((nodes[:, 2, :3] * away).sum(1) / np.sqrt(distance2), -1, 1))
    cosine = np.cos(np.maximum(np.maximum(to_axis - np.arccos(np.clip(nodes[:, 1, 3], -1, 1)), 0) - box, 0))
    weak = np.where(cosine < nodes[:, 2, 3] - 1e-3, 0, np.maximum(cosine, 1e-3))
    return found * np.where((nodes[:, 1, 3] > -1) & (distance2 > radius2), weak, 1)


def probabilities(tree, point):
    """The probability (n,) of each light for a point, from the root down."""
    words, value = tree.nodes.view("i4"), importance(tree.nodes, point)
    out = np.zeros(len(tree.nodes))
    out[0] = 1
    for node, child in enumerate(words[:, 3, 0]):
        if child > 0 and value[child] + value[child + 1] > 0:
            out[child : child + 2] = out[node] * value[child : child + 2] / value[child : child + 2].sum()
    return out[tree.leaf_of]


def relative_variance(lights, chances, point):
    """Of one sample of the light that a point receives, lights being chosen by `chances` (n,)."""
    away = point - (lights.low + lights.high) / 2
    distance = np.linalg.norm(away, axis=1)
    cosine = np.where(lights.cos_o > -1, np.maximum((lights.axis * away).sum(1) / distance, 0), 1)
    received = lights.intensity * cosine / distance**2
    lit = received > 0
    return float((received[lit] ** 2 / chances[lit]).sum() / received.sum() ** 2)


@pytest.mark.parametrize(("count", "large"), [(1, 0), (2, 0), (3, 0), (300, 1000), (300, 200)])
def test_a_tree_holds_every_light_once_and_bounds_what_is_below(rng, monkeypatch, count, large):
    monkeypatch.setattr(light_tree, "LARGE", large)
    lights = scattered_lights(rng, count)
    if count > 100:  # many in one place, which no split parts
        for column in lights:
            column[:40] = column[0]
    tree = build_light_tree(lights, np.arange(count) + 7)
    words = tree.nodes.view("i4")[:, 3]
    assert len(tree.nodes) == 2 * count - 1
    assert sorted(tree.leaf_of) == np.flatnonzero(words[:, 0] == 0).tolist()
    assert (words[tree.leaf_of, 2] == np.arange(count) + 7).all() and words[0, 1] == -1
    for light, leaf in enumerate(tree.leaf_of):
        node = leaf
        while node >= 0:
            box = tree.nodes[node]
            assert (box[0, :3] <= lights.low[light] + 1e-5).all() and (box[1, :3] >= lights.high[light] - 1e-5).all()
            reach = np.arccos(np.clip(box[1, 3], -1, 1)) + 1e-3
            if box[1, 3] > -1:
                assert lights.cos_o[light] == 1 and np.arccos(np.clip(box[2, :3] @ lights.axis[light], -1, 1)) <= reach
            parent = words[node, 1]
            assert parent < 0 or node in (words[parent, 0], words[parent, 0] + 1)
            node = parent
    assert tree.nodes[0, 0, 3] == pytest.approx(lights.intensity.sum(), rel=1e-5)


def test_large_trees_search_planes_of_large_nodes_alone_and_choose_as_well(rng, monkeypatch):
    """230,000 emissive triangles took 7.4 s of processor time, most of it for nodes of a few lights."""
    searched = []
    costs = light_tree._plane_costs

    def counted(lights, segment, bins, extent):
        searched.append(len(segment) / len(extent))
        return costs(lights, segment, bins, extent)

    monkeypatch.setattr(light_tree, "_plane_costs", counted)
    lights, points = scattered_lights(rng, 1000), rng.uniform(-8, 8, (12, 3))
    variances = []
    for large in (1000, 999):
        monkeypatch.setattr(light_tree, "LARGE", large)
        searched.clear()
        tree = build_light_tree(lights, np.arange(1000))
        variances.append([relative_variance(lights, probabilities(tree, point), point) for point in points])
    assert min(searched) > light_tree.SMALL / 4
    assert np.exp(np.log(np.divide(*variances[::-1])).mean()) < 1.1


def test_lights_too_bright_for_float32_together_keep_finite_intensities(rng):
    lights = scattered_lights(rng, 8)
    lights.intensity[:] = 3e38
    assert np.isfinite(build_light_tree(lights, np.arange(8)).nodes[:, :3]).all()


@pytest.mark.parametrize("count", [2, 40, 3000])
def test_choices_follow_the_probability_and_both_that_of_numpy(device, rng, count):
    lights = scattered_lights(rng, count)
    tree = build_light_tree(lights, np.arange(count))
    constants = compile_constants(Settings(schedule="wavefront"), True) | NO_SCHEDULE | {"LIGHT_TREE": 1}
    kernel = device.kernel(GeneratedSource("materials", kernel_source().text + PROBE), "choose", group_size=64,
                           **constants)  # fmt: skip
    ids, told, of_leaves = device.buffer(COUNT, "i4"), device.buffer(COUNT), device.buffer(count)
    rows = device.buffer((4 * len(tree.nodes), 4)).write(tree.nodes.reshape(-1, 4))
    leaf_of = device.buffer(count, "i4").write(tree.leaf_of.astype("i4"))
    params = launch_params(Settings(), (8, 8), (0, 0, 8, 8), {"light_tree": 0})[()]
    for point in (rng.uniform(-6, 6, 3), rng.uniform(-40, 40, 3)):
        seed = np.uint32(rng.integers(1 << 31))
        kernel(COUNT, params, *map(np.float32, point), seed, rows, ids, told, count, leaf_of, of_leaves)
        chosen, chance, exact = ids.read(), told.read(), of_leaves.read().astype("f8")
        wanted = probabilities(tree, point)
        assert np.allclose(exact, wanted, rtol=3e-3, atol=1e-9) and 0.5 < exact.sum() < 1 + 1e-4
        some = chance > 0  # a cluster may hold lights that all face away: then none is chosen
        assert np.allclose(chance[some], exact[chosen[some]], rtol=1e-4)
        counts, expected = np.bincount(chosen[some], minlength=count), exact * COUNT
        if count > 11:
            assert_chi_square(np.append(counts, (~some).sum() + 100), np.append(expected, COUNT - expected.sum() + 100))
        else:
            assert np.allclose(counts / COUNT, exact, atol=0.02)


def crowd(rng, **changes):
    """A floor and a wall under small spheres, rectangles, points of light and a sun."""
    materials = [Material("floor", color=(0.6,) * 3)]
    materials += [Material(f"lamp{k}", "emitter", emission=tuple(200 * rng.uniform(0.2, 1, 3))) for k in range(4)]
    place = rng.uniform((-2, 0.3, -2), (2, 1.5, 2), (90, 3))
    balls = tuple(Sphere(f"lamp{k % 4}", tuple(map(float, p)), 0.03) for k, p in enumerate(place[:30]))
    quads = [FLOOR, Quad("floor", ((-3, 0, -2), (3, 0, -2), (3, 3, -2), (-3, 3, -2)))]
    for k, p in enumerate(place[30:60]):
        u, v = rng.normal(size=(2, 3))
        v = np.cross(u, v)
        u, v = 0.04 * u / np.linalg.norm(u), 0.04 * v / np.linalg.norm(v)
        corners = (p - u - v, p + u - v, p + u + v, p - u + v)
        quads.append(Quad(f"lamp{k % 4}", tuple(tuple(map(float, c)) for c in corners)))
    points = tuple(PointLight(tuple(map(float, p)), tuple(0.3 * rng.uniform(0.2, 1, 3))) for p in place[60:])
    settings = Settings(view=Camera((0.0, 2.5, 0.1), (0.0, 0.0, 0.0), fov_degrees=30.0), materials=tuple(materials),
                        spheres=balls, quads=tuple(quads), point_lights=points, max_depth=2, light_sampler="tree",
                        suns=(Sun((0.3, 1.0, 0.2), (0.2, 0.2, 0.2), 5.0),))  # fmt: skip
    return replace(settings, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("lights", ["mis", pytest.param("nee", marks=pytest.mark.slow)])
def test_the_mean_is_that_of_power_sampling_with_less_noise(picture, rng, lights):
    scene = crowd(rng, direct_lighting=lights)
    dark = render(picture, replace(scene, max_depth=1), samples=32).sum(-1) == 0  # no lamp there
    means, errors = [], []
    for sampler in ("power", "tree"):
        seeds = [replace(scene, light_sampler=sampler, seed=int(rng.integers(1 << 30))) for _ in range(12)]
        found = np.array([render(picture, seed, samples=16)[dark].mean(0) for seed in seeds])
        means.append(found.mean(0))
        errors.append(found.std(0, ddof=1) / np.sqrt(len(found)))
    assert (np.abs(means[0] - means[1]) < 5 * np.hypot(*errors)).all(), (means, errors)
    assert errors[1].mean() < errors[0].mean()


@pytest.mark.slow
def test_schedules_and_tiles_draw_the_same_bits(picture, rng):
    scene = crowd(rng, max_depth=3)
    wanted = render(picture, replace(scene, schedule="wavefront"), (32, 24), 2)
    for schedule in ("megakernel", "regenerate"):
        assert np.array_equal(render(picture, replace(scene, schedule=schedule), (32, 24), 2), wanted)
    picture.restart()
    for _ in range(2):
        tile = picture.draw(scene, (32, 24), 0.0, (8, 4, 16, 12))
    assert np.array_equal(tile.read()[..., :3].astype("f8"), wanted[4:16, 8:24])


def irradiance_of(corners):
    """Irradiance at the origin of a floor from a polygon of radiance 1 above it (Lambert)."""
    unit = [np.array(corner) / np.linalg.norm(corner) for corner in corners]
    total = 0.0
    for first, second in zip(unit, unit[1:] + unit[:1], strict=True):
        across = np.cross(first, second)
        total += np.arccos(np.clip(first @ second, -1, 1)) * across[1] / np.linalg.norm(across)
    return abs(total) / 2


@pytest.mark.parametrize("lights", ["mis", pytest.param("nee", marks=pytest.mark.slow)])
@pytest.mark.parametrize("sampler", ["power", "tree"])
def test_every_emissive_instance_of_a_shape_is_sampled(picture, rng, sampler, lights):
    """Three instances of one shape, one of them mirrored, light the floor by Lambert's formula."""
    x, height = rng.uniform(0.5, 1.5), float(rng.uniform(0.5, 1.5))
    plate = Quad("floor", ((-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)), "plate")
    pair = tuple(Instance("plate", "lamp", position=(side * x, height, 0.0), scale=0.25) for side in (1.0, -1.0))
    mirrored = Instance("plate", "lamp", matrix=(-0.25, 0, 0, 0, 0, 0.25, 0, height, 0, 0, 0.25, 0.9))
    scene = floor_scene(quads=(FLOOR, plate), instances=(*pair, mirrored), direct_lighting=lights,
                        light_sampler=sampler)  # fmt: skip
    values = render(picture, scene, samples=64).mean(-1)
    wanted = 0.0
    for place in ((x, 0.0), (-x, 0.0), (0.0, 0.9)):
        corners = [(place[0] + dx, height, place[1] + dz) for dx, dz in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        corners = [(place[0] + (cx - place[0]) / 4, h, place[1] + (cz - place[1]) / 4) for cx, h, cz in corners]
        wanted += 0.5 / np.pi * 10 * irradiance_of(corners)
    assert abs(values.mean() - wanted) < 4.5 * values.std() / np.sqrt(values.size) + 5e-3 * wanted
    assert values.std() < wanted  # next-event estimation finds them; chance alone scatters more


@pytest.mark.slow
def test_as_few_point_lights_as_the_tree_takes_keep_the_mean(picture, rng):
    """The irradiance of a floor by a sum over the lights; by the tree it varies less than by power in most layouts."""
    ratios = []
    for _ in range(9):
        place = rng.uniform((-2, 0.3, -2), (2, 1.5, 2), (MIN_TREE_POINTS, 3))
        strength = rng.uniform(0.2, 1, MIN_TREE_POINTS)
        points = tuple(PointLight(tuple(map(float, p)), (float(s),) * 3) for p, s in zip(place, strength, strict=True))
        scene = floor_scene(point_lights=points)
        render(picture, scene, samples=1)
        assert picture._lights.constants["LIGHT_TREE"] == 1
        wanted = 0.5 / np.pi * (strength * place[:, 1] / np.linalg.norm(place, axis=1) ** 3).sum()
        spread = []
        for sampler in ("auto", "power"):
            values = render(picture, replace(scene, light_sampler=sampler), samples=64).mean(-1)
            spread.append(values.std())
            bound = 4.5 * values.std() / np.sqrt(values.size) + 5e-3 * wanted
            assert abs(values.mean() - wanted) < bound, (sampler, place)
        ratios.append(spread[0] / spread[1])
    assert np.median(ratios) < 0.9, ratios


def test_few_lights_are_chosen_by_power(picture):
    assert not uses_tree(Settings(), MIN_TREE_LIGHTS - 1, 0) and uses_tree(Settings(), MIN_TREE_LIGHTS, 0)
    assert not uses_tree(Settings(), 100, MIN_TREE_POINTS - 1) and uses_tree(Settings(), 0, MIN_TREE_POINTS)
    assert uses_tree(Settings(light_sampler="tree"), 1, 0) and not uses_tree(
        Settings(light_sampler="power"), 1 << 20, 9
    )
    render(picture, floor_scene(), samples=1)
    assert picture._lights.constants["LIGHT_TREE"] == 0 and "light_tree" not in picture._lights.fields
