"""Caustics of balls: sampled chains against plain path tracing, whose paths find the same light by chance."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import preprocess
from renderer.pictures.raytrace import Picture
from renderer.raytracing.kernels import compile_constants, kernel_source
from renderer.raytracing.lights.caustic_balls import ball_rows
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.settings import Fog, Material, PointLight, Quad, Settings, Sphere, Sun
from renderer.scene.cameras import Camera

SIZE = (24, 16)
FLOOR = Quad("white", ((-3.0, 0.0, -3.0), (-3.0, 0.0, 3.0), (3.0, 0.0, 3.0), (3.0, 0.0, -3.0)))


def scene(**changes):
    """A lamp, a ball of glass and one that mirrors, over a floor, which alone is seen."""
    materials = (
        Material("white", color=(0.7, 0.7, 0.7)),
        Material("lamp", "emitter", emission=(60.0, 50.0, 40.0)),
        Material("glass", "glass", color=(0.9, 1.0, 0.9), ior=1.5),
        Material("silver", "mirror", color=(0.9, 0.8, 0.7)),
    )
    spheres = (Sphere("lamp", (-0.6, 2.2, 0.0), 0.25), Sphere("glass", (0.1, 0.8, 0.2), 0.35),
               Sphere("silver", (1.0, 0.8, -0.5), 0.3))  # fmt: skip
    view = Camera((0.5, 0.6, 0.8), (0.5, 0.0, 0.1), fov_degrees=70.0)
    return replace(Settings(view=view, max_depth=8, materials=materials, spheres=spheres, quads=(FLOOR,)), **changes)


def batches(device, settings, count, samples):
    """The means (count, 3) of pictures of different seeds, and the last picture's drawer."""
    picture, means = Picture(SimpleNamespace(device=device)), []
    for seed in range(count):
        for _ in range(samples):
            frame = picture.draw(replace(settings, seed=seed + 1, samples=samples), SIZE, 0.0)
        means.append(frame.read()[..., :3].mean((0, 1), "f8"))
    return np.array(means), picture


def check_same_light(ours, plain):
    error = np.sqrt(ours.var(0, ddof=1) / len(ours) + plain.var(0, ddof=1) / len(plain))
    difference = ours.mean(0) - plain.mean(0)
    assert (np.abs(difference) < 4.5 * error).all() and (error < 0.02 * plain.mean(0)).all(), (difference, error)


@pytest.mark.slow
def test_chains_add_the_light_that_paths_find_by_chance(device):
    ours, _ = batches(device, scene(caustics=True), 12, 128)
    plain, _ = batches(device, scene(), 12, 512)
    check_same_light(ours, plain)


@pytest.mark.slow
def test_a_mirror_has_a_tenth_of_the_variance_and_the_same_light(device):
    mirrors = scene(
        spheres=(Sphere("lamp", (-0.6, 2.2, 0.0), 0.25), Sphere("silver", (0.1, 0.6, 0.2), 0.4)), max_depth=3
    )
    ours = batches(device, replace(mirrors, caustics=True), 8, 64)[0]
    plain = batches(device, mirrors, 8, 256)[0]
    check_same_light(ours, plain)
    assert ours.var(0, ddof=1).mean() < plain.var(0, ddof=1).mean() * 4 / 10


@pytest.mark.slow
def test_a_point_light_is_the_limit_of_small_lamps(device):
    """A point light of intensity pi r^2 L, and a small lamp, through glass and off silver."""
    bright = scene(caustics=True)
    radius, lamp = 0.01, bright.spheres[0]
    small = replace(bright, spheres=(replace(lamp, radius=radius), *bright.spheres[1:]))
    small = replace(small, materials=(small.materials[0], Material("lamp", "emitter", emission=(4e4,) * 3),
                                      *small.materials[2:]))  # fmt: skip
    light = PointLight(lamp.center, (np.pi * radius**2 * 4e4,) * 3)
    point = replace(bright, spheres=bright.spheres[1:], point_lights=(light,))
    check_same_light(batches(device, point, 8, 128)[0], batches(device, small, 8, 128)[0])


@pytest.mark.slow
def test_schedules_agree(device):
    first = None
    for schedule in ("megakernel", "wavefront", "regenerate"):
        settings = scene(caustics=True, schedule=schedule, suns=(Sun(angle_degrees=0.0),), samples=4)
        picture = Picture(SimpleNamespace(device=device))
        for _ in range(4):
            frame = picture.draw(settings, SIZE, 0.0)
        colors = frame.read()[..., :3]
        first = colors if first is None else first
        assert np.array_equal(colors, first)


@pytest.mark.slow
@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="the CUDA compiler (NVRTC) is not installed")
@pytest.mark.parametrize("part", [3, 4])
def test_chains_compile_for_cuda(part):
    settings = scene(caustics=True, schedule="wavefront")
    constants = compile_constants(settings, True) | LightSampler.usual_constants | {"PART": part, "GROUP_SIZE": 128}
    assert nvrtc.compile_cubin(preprocess(kernel_source(), **constants), "sm_90", strict=True)


def test_balls_are_smooth_glass_and_mirrors():
    assert not len(ball_rows(scene()))
    rows = ball_rows(scene(caustics=True))
    assert rows == pytest.approx(np.array([(0.1, 0.8, 0.2, 0.35), (0.9, 1.0, 0.9, 1.5), (1.0, 0.8, -0.5, 0.3),
                                           (0.9, 0.8, 0.7, 0.0)], "f4"))  # fmt: skip
    rough = (*scene().materials[:2], Material("glass", "glass", roughness=0.1), scene().materials[3])
    assert len(ball_rows(scene(caustics=True, materials=rough))) == 2
    assert compile_constants(scene(schedule="wavefront"), True)["CAUSTICS"] == 0


def test_paths_alone_find_the_caustics_of_large_lamps():
    """At a distance of 1 a lamp of radius 0.2 fills 0.13 steradians, one of 0.3 0.28, as do squares of that area."""
    ball, square = Sphere("glass", (0.0, 0.0, 0.0), 0.2), np.array([(-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)])
    for radius, is_sampled in ((0.2, True), (0.3, False)):
        side = np.sqrt(np.pi) / 2 * radius
        quad = Quad("lamp", tuple(map(tuple, (square * side + (0, 1, 0)).tolist())))
        by_sphere = scene(caustics=True, spheres=(ball, Sphere("lamp", (0.0, 1.0, 0.0), radius)))
        by_quad = scene(caustics=True, spheres=(ball,), quads=(FLOOR, quad))
        assert [len(ball_rows(settings)) for settings in (by_sphere, by_quad)] == [2 * is_sampled] * 2
        assert compile_constants(replace(by_quad, schedule="wavefront"), True)["CAUSTICS"] == is_sampled
    assert len(ball_rows(replace(by_quad, point_lights=(PointLight(),))))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"integrator": "whitted"}, "takes no caustics"),
        ({"direct_lighting": "bsdf"}, "caustics is true, which needs a direct_lighting of mis or nee"),
        ({"fog": Fog(density=0.1)}, "caustics is true, which needs no fog or volumes"),
        ({"light_passes": True}, "caustics is true, which needs no light_passes"),
        ({"spheres": ()}, "caustics is true with 0 balls; it needs 1 to 64 spheres"),
        ({"spheres": (Sphere("silver"),) * 65}, "caustics is true with 65 balls"),
    ],
)
def test_caustics_that_cannot_be_sampled_are_one_sentence(changes, words):
    with pytest.raises(ValueError, match=words):
        scene(caustics=True, **changes)
