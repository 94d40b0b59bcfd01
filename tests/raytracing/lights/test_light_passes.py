"""Light passes: they add up to the picture in every schedule, and each holds the light that its name says."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import preprocess
from renderer.pictures import open_picture
from renderer.pictures.raytrace import Picture
from renderer.raytracing.kernels import compile_constants, kernel_source
from renderer.raytracing.light_passes import group_passes, lobe_passes, pass_bytes
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.ray_buffers import WORDS_PER_GROUP
from renderer.raytracing.settings import (
    Environment,
    Fog,
    LightGroup,
    Material,
    PointLight,
    Quad,
    Settings,
    Sphere,
    Sun,
    Volume,
)
from renderer.scene.cameras import Camera
from renderer.scene.schema import from_table
from tests.raytracing.test_render import mixed_scene

SIZE = (24, 16)
FLOOR = Quad("ground", ((-4.0, -1.0, 4.0), (4.0, -1.0, 4.0), (4.0, -1.0, -4.0), (-4.0, -1.0, -4.0)))
WALL = ((-4.0, -4.0, -2.0), (4.0, -4.0, -2.0), (4.0, 4.0, -2.0), (-4.0, 4.0, -2.0))
LAMP = Material("lamp", "emitter", emission=(5.0, 4.0, 3.0))
SUNLIGHT = (LightGroup("sun", ("suns[0]",)),)
FAR = Sphere("lamp", (0.0, 900.0, 0.0), 0.01)  # so that scenes have the same kernels
GROUPS = LightGroup("key", ("lamp", "suns[0]")), LightGroup("sky", ("environment",))


def drawn(device, settings, samples=8, tile=None):
    """The picture (h, w, 3) float64 and its layers."""
    picture = Picture(SimpleNamespace(device=device))
    for _ in range(samples):
        frame = picture.draw(settings, SIZE, 0.0, tile)
    return frame.read()[..., :3].astype("f8"), picture.layers(settings, SIZE, tile)


def check_sums(picture, layers, settings):
    for names in filter(None, (lobe_passes(settings), group_passes(settings))):
        total = sum(layers[name].astype("f8") for name in names)
        assert np.abs(total - picture).max() <= 1e-5 * np.abs(picture).max(), names
        lit = picture > 1e-3
        assert (np.abs(total - picture)[lit] <= 1e-5 * picture[lit]).all(), names


def scenes():
    lit = mixed_scene(schedule="auto", light_passes=True, light_groups=GROUPS, suns=(Sun(),))
    glossy = replace(
        lit,
        materials=tuple(
            replace(m, kind={"mirror": "principled", "checker": "metallic"}.get(m.kind, m.kind), roughness=0.3,
                    clearcoat=0.5, sheen_color=(0.3,) * 3, diffuse_transmission=0.2, transmission=0.3)
            for m in lit.materials
        ),
    )  # fmt: skip
    catcher = Material("ground", "shadow_catcher")
    return {
        "mixed": replace(
            lit, suns=(), light_groups=(LightGroup("key", ("lamp",)), GROUPS[1])
        ),  # kernels of test_render.py
        "glossy": glossy,
        "clamped": replace(lit, clamp_indirect=0.2, environment=Environment(preset="studio")),
        "fog": replace(lit, fog=Fog(density=0.2, radius=6.0), point_lights=(PointLight((1.0, 2.0, 1.0)),)),
        "volume": replace(lit, volumes=(Volume("box", (0.0, 0.0, 0.0), (2.0, 2.0, 2.0), density=1.0),)),
        "catcher": replace(lit, materials=(*lit.materials, catcher), quads=(FLOOR, lit.quads[1])),
    }


@pytest.mark.parametrize("name", ["mixed", *(pytest.param(n, marks=pytest.mark.slow) for n in list(scenes())[1:])])
def test_passes_of_every_schedule_add_up_to_the_unchanged_picture(device, name):
    settings = scenes()[name]
    plain, _ = drawn(device, replace(settings, light_passes=False), 3)
    first = None
    for schedule in ("megakernel", "wavefront", *([] if name == "mixed" else ["regenerate"])):
        picture, layers = drawn(device, replace(settings, schedule=schedule), 3)
        assert np.array_equal(picture, plain)
        check_sums(picture, layers, settings)
        first = first or layers
        assert all(np.array_equal(layers[key], first[key]) for key in first)


def test_a_tile_and_resting_pixels_add_up(device):
    lamp = Quad("lamp", ((-0.4, -0.4, 0.0), (0.4, -0.4, 0.0), (0.4, 0.4, 0.0), (-0.4, 0.4, 0.0)))
    settings = plain_scene(Material("ground"), LAMP, quads=(FLOOR, lamp))
    settings = replace(settings, noise_threshold=0.2)
    picture, layers = drawn(device, settings, 70)
    assert layers["samples"].min() < layers["samples"].max()
    check_sums(picture, layers, settings)
    settings = replace(settings, noise_threshold=0.0, variance=True)  # the same kernels
    part, tiled = drawn(device, settings, 2, (5, 3, 13, 9))
    check_sums(part, tiled, settings)


def plain_scene(*materials, quads, **changes):
    return Settings(view=Camera((0.0, 0.0, 3.0)), materials=materials, quads=quads, light_passes=True, **changes)


def test_a_diffuse_scene_is_diffuse_and_depth_1_is_emission(device):
    white = Material("ground")
    scene = plain_scene(white, quads=(FLOOR,), spheres=(Sphere("ground", (0.0, 0.0, 0.0), 0.7),), suns=(Sun(),))
    scene = replace(scene, horizon=(0.2, 0.3, 0.4), light_groups=SUNLIGHT)
    picture, layers = drawn(device, scene)
    check_sums(picture, layers, scene)
    assert layers["diffuse_direct"].any() and layers["diffuse_indirect"].any() and layers["emission"].any()
    assert not any(layers[name].any() for name in layers if name.startswith(("specular", "transmission")))
    picture, layers = drawn(device, replace(scene, max_depth=1))
    assert np.allclose(layers["emission"], picture, rtol=1e-6)
    assert not any(layers[name].any() for name in lobe_passes(scene) if name != "emission")


def test_a_lamp_is_emission_and_a_mirror_shows_a_wall_as_specular(device):
    sun = Sun((0.0, 0.5, -1.0))  # on the wall alone
    more = {"spheres": (FAR,), "suns": (sun,), "light_groups": SUNLIGHT}
    picture, layers = drawn(device, plain_scene(LAMP, quads=(Quad("lamp", WALL),), **more))
    assert np.allclose(layers["emission"], picture, rtol=1e-6) and picture.min() > 0
    behind = tuple((x, y, 5.0) for x, y, _ in WALL[::-1])
    mirror = Material("mirror", "mirror")
    lamp = plain_scene(mirror, LAMP, quads=(Quad("mirror", WALL), Quad("lamp", behind)), **more)
    picture, layers = drawn(device, lamp)
    assert np.allclose(layers["specular_direct"], picture, rtol=1e-6) and picture.max() > 0
    far = replace(FAR, material="wall")
    quads = Quad("mirror", WALL), Quad("wall", behind)
    wall = plain_scene(mirror, Material("wall"), quads=quads, **more | {"spheres": (far,)})
    picture, layers = drawn(device, wall)
    assert np.allclose(layers["specular_indirect"], picture, rtol=1e-6) and picture.max() > 0


@pytest.mark.slow
def test_the_lobes_do_not_depend_on_the_sampling_strategy(device):
    """Next-event estimation and BSDF sampling divide the light by the BSDF's lobes alike."""
    shiny = Material("ground", "principled", (0.6, 0.3, 0.2), roughness=0.5, clearcoat=0.5, clearcoat_roughness=0.5,
                     sheen_color=(0.2,) * 3)  # fmt: skip
    scene = plain_scene(shiny, quads=(FLOOR,), environment=Environment(preset="overcast"), max_depth=2)
    both = [drawn(device, replace(scene, direct_lighting=way), 512)[1] for way in ("nee", "bsdf")]
    for name in ("diffuse_direct", "specular_direct"):
        nee, bsdf = (layers[name].mean((0, 1), "f8") for layers in both)
        assert nee.min() > 0.001 and np.allclose(nee, bsdf, rtol=0.03), (name, nee, bsdf)


@pytest.mark.parametrize(("way", "tolerance"), [("bsdf", 1e-5), pytest.param("mis", 0.05, marks=pytest.mark.slow)])
def test_light_groups_are_pictures_of_their_lamps(device, way, tolerance):
    """By BSDF sampling the random numbers do not depend on the lamps, so that groups and pictures are equal."""
    groups = LightGroup("one", ("lamp",)), LightGroup("two", ("bulb",))
    lit = replace(scenes()["mixed"], direct_lighting=way, light_groups=groups, suns=(), horizon=(0.0,) * 3)
    _, layers = drawn(device, lit, 64)
    assert not layers["light_others"].any()
    for group in groups:
        dark = tuple(m if m.name in group.lights else replace(m, emission=(0.0,) * 3) for m in lit.materials)
        alone, _ = drawn(device, replace(lit, materials=dark, light_groups=()), 64)
        layer = layers[f"light_{group.name}"]
        assert abs(layer.mean() / alone.mean() - 1) < tolerance
        assert way == "mis" or np.allclose(layer, alone, rtol=1e-4, atol=1e-6)


def test_passes_cost_nothing_without_an_exr_and_their_memory_is_known(device):
    settings = scenes()["mixed"]
    assert settings.with_layers(True).light_passes and not settings.with_layers(False).light_passes
    picture = open_picture(SimpleNamespace(picture="raytrace"), SimpleNamespace(device=device))
    picture.begin_if_changed(settings, SIZE, 0.0, (0, 0, *SIZE))
    assert (
        picture._passes[0].nbytes == pass_bytes(settings, SIZE) == Picture.device_bytes(settings, SIZE) - 16 * 24 * 16
    )
    assert pass_bytes(replace(settings, light_passes=False), SIZE) == 0
    one_group = pass_bytes(settings, (8, 4))
    assert pass_bytes(settings, (8 * WORDS_PER_GROUP, 4)) == one_group == pass_bytes(settings, (8, 4 * WORDS_PER_GROUP))
    assert pass_bytes(settings, (8 * WORDS_PER_GROUP + 1, 4)) == 2 * one_group
    assert not picture.chunks(settings, SIZE, 640, 4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"integrator": "whitted", "light_passes": True}, "takes no light_passes"),
        ({"light_groups": [{"name": "a b"}]}, "name is 'a b'; allowed are 1 to 64 letters"),
        ({"light_groups": [{"name": "others"}]}, "not others"),
        (
            {"light_groups": [{"name": "a", "lights": ["suns[0]"]}]},
            r"groups\[0\]: lights has 'suns\[0\]'; allowed",
        ),
        ({"light_groups": [{"name": "a"}, {"name": "a"}]}, "both have the name 'a'"),
        ({"light_groups": [{"name": k, "lights": ["environment"]} for k in "ab"]}, "both have the light 'environment'"),
    ],
)
def test_bad_groups_are_one_sentence(changes, words):
    with pytest.raises(Exception, match=words):
        from_table(Settings, {**changes}, "settings", None)


@pytest.mark.slow
@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="the CUDA compiler (NVRTC) is not installed")
@pytest.mark.parametrize("name", ["glossy", "fog", "catcher"])
def test_passes_compile_for_cuda(name):
    for schedule, part in (("wavefront", 3), ("wavefront", 4)):
        constants = compile_constants(replace(scenes()[name], schedule=schedule), True) | LightSampler.usual_constants
        constants |= {"PART": part, "GROUP_SIZE": 128}
        assert nvrtc.compile_cubin(preprocess(kernel_source(), **constants), "sm_90", strict=True)
