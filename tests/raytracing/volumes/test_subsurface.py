"""Subsurface scattering against algebra and brute force: furnaces, albedos, and NumPy's walks in the same ball."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import preprocess
from renderer.pictures.raytrace import Picture
from renderer.raytracing.kernels import compile_constants, kernel_source
from renderer.raytracing.light_passes import lobe_passes
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.materials import single_scattering_albedo
from renderer.raytracing.settings import Fog, Material, PointLight, Settings, Sphere
from renderer.scene.cameras import Camera

SIZE = (16, 16)
WHITE = (1.0, 1.0, 1.0)
COLOR = (0.9, 0.6, 0.2)
# A surface without reflection, through which all light passes diffusely into a medium of mean free path 0.1.
WAX = Material("ball", "principled", color=WHITE, specular=0.0, diffuse_transmission=1.0, thickness=1.0,
               attenuation_color=(float(np.exp(-1)),) * 3, attenuation_distance=0.1,
               multiscatter_color=WHITE)  # fmt: skip
MILK = replace(WAX, name="milk", diffuse_transmission=0.0, transmission=1.0, ior=1.0)  # an index-matched surface


def scene(ball, **changes):
    """A ball that fills the picture, in an even light; a second material makes the kernels of all balls the same."""
    materials = ball, replace(MILK if ball.diffuse_transmission else WAX, name="other")
    return Settings(view=Camera((0.0, 0.0, 4.0), fov_degrees=10.0), materials=materials, spheres=(Sphere("ball"),),
                    horizon=WHITE, zenith=WHITE, max_depth=64, samples=64, **changes)  # fmt: skip


def drawn(device, settings, samples=16):
    picture = Picture(SimpleNamespace(device=device))
    for _ in range(samples):
        frame = picture.draw(settings, SIZE, 0.0)
    return frame.read()[..., :3].astype("f8"), picture


@pytest.mark.parametrize("ball", [WAX, replace(MILK, name="ball")], ids=["wax", "milk"])
def test_a_white_medium_returns_all_light(device, ball):
    assert np.allclose(drawn(device, scene(replace(ball, scatter_anisotropy=0.4)), 4)[0], 1.0, rtol=1e-5)


@pytest.mark.slow  # each schedule is another program
def test_schedules_walk_alike(device):
    first, *rest = (
        drawn(device, scene(replace(WAX, multiscatter_color=COLOR), schedule=schedule), 4)[0]
        for schedule in ("megakernel", "wavefront", "regenerate")
    )
    assert all(np.array_equal(first, other) for other in rest)


def walks(extinction, albedo, g, count, rng):
    """The radiance (count,) that paths see in a ball of radius 1 in an even light, one color, by weights of albedo.

    Light enters and leaves by a surface that transmits diffusely. Analog free paths; no roulette.
    """
    entry = np.tile([0.0, 0.0, 1.0], (count, 1))

    def turned(axis, cosine):
        sine, angle = np.sqrt(1 - cosine**2), rng.uniform(0, 2 * np.pi, len(axis))
        helper = np.where(np.abs(axis[:, :1]) < 0.9, [[1.0, 0, 0]], [[0, 1.0, 0]])
        u = np.cross(axis, helper)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        v = np.cross(axis, u)
        return axis * cosine[:, None] + sine[:, None] * (u * np.cos(angle)[:, None] + v * np.sin(angle)[:, None])

    p, w, out = entry.copy(), np.ones(count), np.zeros(count)
    d = turned(-entry, np.sqrt(rng.random(count)))
    index = np.arange(count)
    for _ in range(5000):
        along = (p * d).sum(1)
        end = -along + np.sqrt(np.maximum(along**2 - (p * p).sum(1) + 1, 0))
        t = rng.exponential(1 / extinction, len(p))
        left = t >= end
        out[index[left]] = w[left]
        p, d, w, index = (p + d * t[:, None])[~left], d[~left], w[~left] * albedo, index[~left]
        if not len(p):
            break
        u = rng.random(len(p))
        cosine = 2 * u - 1 if g == 0 else (1 + g * g - ((1 - g * g) / (1 - g + 2 * g * u)) ** 2) / (2 * g)
        d = turned(d, np.clip(cosine, -1, 1))
    return out


def test_colored_walks_are_those_of_numpy(device, rng):
    """Three colors share free paths by multiple importance sampling; NumPy walks once for each color."""
    extinction, g, count = np.array([4.0, 8.0, 2.0]), 0.5, 4000
    ball = replace(WAX, multiscatter_color=COLOR, scatter_anisotropy=g, attenuation_distance=1.0,
                   attenuation_color=tuple(np.exp(-extinction).tolist()))  # fmt: skip
    ours = np.array([drawn(device, scene(ball, seed=seed + 1), 4)[0].mean((0, 1)) for seed in range(8)])
    for channel in range(3):
        albedo = float(single_scattering_albedo(COLOR, g)[channel])
        theirs = walks(extinction[channel], albedo, g, count, rng)
        mean = ours[:, channel].mean()
        error = np.hypot(ours[:, channel].std(ddof=1) / np.sqrt(8), theirs.std() / np.sqrt(count))
        assert abs(mean - theirs.mean()) < 5 * error and error < 0.01, (channel, mean, theirs.mean(), error)


def test_a_dense_ball_shows_its_color(device):
    ball = replace(WAX, multiscatter_color=COLOR, attenuation_distance=0.01)
    picture, drawer = drawn(device, scene(ball))
    assert np.allclose(picture.mean((0, 1)), COLOR, atol=0.02)  # of a half-space; the ball is round
    albedo = drawer.layers(scene(ball), SIZE)["albedo"]
    assert np.allclose(albedo.reshape(-1, albedo.shape[-1])[:, :3].mean(0), COLOR, atol=1e-3)


def test_single_scattering_gives_back_the_color_of_a_half_space():
    assert np.allclose(single_scattering_albedo((0.0, 0.0, 1.0), 0.3), (0.0, 0.0, 1.0), atol=2e-5)
    for g in (-0.5, 0.0, 0.8):
        single = single_scattering_albedo(COLOR, g)
        s = np.sqrt((1 - single) / (1 - g * single))
        assert np.allclose((1 - s) * (1 - 0.139 * s) / (1 + 1.17 * s), COLOR, atol=1e-4)  # van de Hulst


@pytest.mark.slow  # light passes, fog and point lights are programs of their own
def test_passes_add_up_and_fog_stays_outside(device):
    settings = scene(replace(WAX, multiscatter_color=COLOR), light_passes=True)
    picture, drawer = drawn(device, settings, 4)
    layers = drawer.layers(settings, SIZE)
    total = sum(layers[name].astype("f8") for name in lobe_passes(settings))
    assert np.allclose(total, picture, rtol=1e-5) and layers["diffuse_indirect"].any()
    lit = scene(WAX, fog=Fog(density=50.0, radius=0.9), point_lights=(PointLight((0.0, 2.0, 2.0), (0.0,) * 3),))
    assert np.allclose(drawn(device, lit, 4)[0], 1.0, rtol=1e-5)  # the fog fills the ball, which keeps it out


@pytest.mark.slow
@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="the CUDA compiler (NVRTC) is not installed")
@pytest.mark.parametrize("part", [3, 4])
def test_walks_compile_for_cuda(part):
    settings = scene(WAX, schedule="wavefront")
    constants = compile_constants(settings, True) | LightSampler.usual_constants | {"PART": part, "GROUP_SIZE": 128}
    assert constants["SCATTERING"] == 1
    assert nvrtc.compile_cubin(preprocess(kernel_source(), **constants), "sm_90", strict=True)


def test_a_clear_medium_compiles_no_walk():
    clear = replace(WAX, multiscatter_color=(0.0, 0.0, 0.0))
    for ball, wanted in ((clear, 0), (WAX, 1)):
        settings = Settings(materials=(ball,), schedule="wavefront")
        assert compile_constants(settings, True)["SCATTERING"] == wanted


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "glass"}, "kind is glass; a multiscatter_color needs principled"),
        ({"thickness": 0.0}, "thickness is 0; a multiscatter_color needs thickness above 0"),
        ({"attenuation_distance": 0.0}, "attenuation_distance is 0"),
        ({"diffuse_transmission": 0.0}, "diffuse_transmission is 0"),
        ({"attenuation_color": WHITE}, "attenuation_color is white"),
    ],
)
def test_colors_without_a_medium_are_one_sentence(changes, words):
    with pytest.raises(ValueError, match=words):
        replace(WAX, **changes)
