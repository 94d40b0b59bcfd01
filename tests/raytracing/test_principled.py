"""The principled surface: every lobe against algebra, media against the law of Beer and Lambert, and its input."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.formats import gltf
from renderer.formats.images import srgb_to_linear
from renderer.paths import ASSETS
from renderer.pictures.raytrace import Picture
from renderer.raytracing.material_files import material_constants
from renderer.raytracing.materials import attenuation, material_rows
from renderer.raytracing.models.gltf_shapes import ModelShape, not_drawn
from renderer.raytracing.settings import MATERIALS, Material, Quad, Settings, Sphere, Sun
from renderer.scene.cameras import Camera
from tests.raytracing.test_materials import (
    WHITE,
    Probe,
    check_samples_follow_pdf,
    check_weights_are_value_over_pdf,
    grid,
    incoming,
)
from tests.raytracing.witnesses import microfacet_tables
from tests.raytracing.witnesses.smith_walk import glass_reflectance, metal_albedo

BLACK = (0.0, 0.0, 0.0)
SURFACE = Material("m", "principled", color=WHITE, iridescence_thickness=300.0)
EVERYTHING = replace(  # one kernel for all tests below
    SURFACE, clearcoat=1.0, sheen_color=WHITE, transmission=0.5, thickness=1.0, dispersion=1.0, iridescence=1.0,
    anisotropy=0.5, diffuse_transmission=0.5, attenuation_color=(0.5, 0.5, 0.5), attenuation_distance=1.0,
)  # fmt: skip
CLEAR = replace(SURFACE, transmission=1.0)
LOBES = {
    "plastic": SURFACE,
    "metal": replace(SURFACE, metallic=1.0),
    "clearcoat": replace(SURFACE, clearcoat=1.0, clearcoat_roughness=0.3),
    "sheen": replace(SURFACE, sheen_color=WHITE, sheen_roughness=0.5),
    "iridescence": replace(SURFACE, metallic=1.0, iridescence=1.0),
    "anisotropy": replace(SURFACE, metallic=1.0, anisotropy=0.7, anisotropy_rotation_degrees=30.0),
    "thin wall": CLEAR,
    "solid": replace(CLEAR, thickness=1.0),
    "solid from inside": replace(CLEAR, thickness=1.0, ior=1 / 1.5),
    "solid, weak specular": replace(CLEAR, thickness=1.0, specular=0.5),
    "anisotropic solid": replace(CLEAR, thickness=1.0, anisotropy=0.7),
    "diffuse transmission": replace(SURFACE, diffuse_transmission=0.5),
}
ROUGHNESSES = 0.1, 0.3, 0.5, 0.7, 0.9
COLORED = replace(
    EVERYTHING, color=(0.8, 0.5, 0.3), metallic=0.3, clearcoat=0.7, clearcoat_roughness=0.2,
    sheen_color=(0.3, 0.5, 0.2), sheen_roughness=0.4, iridescence=0.6, diffuse_transmission=0.3,
    anisotropy_rotation_degrees=30.0,
)  # fmt: skip


def albedo(device, material, cosine, seed=3, count=1 << 15):
    """The mean weight (3,) of samples."""
    _, weights = Probe(device, material, EVERYTHING).sample(incoming(cosine), count, seed)
    return weights[:, :3].astype("f8").mean(0)


def furnace_rows(device, name):
    """Gain or loss of a white lobe in a white furnace (roughness, cosine): the albedo less 1."""
    at = [(roughness, cosine) for roughness in ROUGHNESSES for cosine in (0.15, 0.5, 0.95)]
    found = [albedo(device, replace(LOBES[name], roughness=r), cosine)[0] - 1 for r, cosine in at]
    return np.reshape(found, (len(ROUGHNESSES), 3))


@pytest.mark.parametrize(
    "name", [name if name == "solid" else pytest.param(name, marks=pytest.mark.slow) for name in LOBES]
)
def test_white_lobes_conserve_energy(device, name):
    assert np.abs(furnace_rows(device, name)).max() < 0.004


@pytest.mark.slow
def test_the_guide_has_the_furnace_of_every_lobe(device):
    """The table of assets/guides/raytracing.md, in thousandths: the largest deviation of three cosines."""
    guide = (ASSETS / "guides" / "raytracing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z, ]+) \| ((?:[-+][0-9.]+ \| ?){5})$", guide, re.MULTILINE)
    stated = {name: [float(x) for x in cells.split("|")[:5]] for name, cells in rows}
    assert set(stated) == set(LOBES)
    for name, wanted in stated.items():
        deviations = 1e3 * furnace_rows(device, name)
        found = deviations[np.arange(5), np.abs(deviations).argmax(1)]
        assert np.abs(np.abs(found) - np.abs(wanted)).max() < 0.8, (name, found.round(1).tolist())


@pytest.mark.parametrize("roughness", [0.5, 1.0])
def test_rough_metals_keep_the_color_of_random_walks_on_their_facets(device, rng, roughness):
    """The compensation of multiple scattering, against the microsurface itself."""
    color = (0.71, 0.55, 0.27)
    for cosine in (0.3, 0.95):
        found = albedo(device, replace(LOBES["metal"], color=color, roughness=roughness), cosine)
        walked, _ = metal_albedo(color, roughness, cosine, 40_000, rng)
        assert found == pytest.approx(walked, rel=0.05), cosine


@pytest.mark.parametrize("cosine", [0.6, 0.95])
def test_the_metal_lobe_is_heitz_random_walks(device, rng, cosine):
    """At an alpha of 0.16, where single scattering alone, as Mitsuba's, loses 3 to 6 %; a z-test."""
    material = replace(LOBES["metal"], color=(0.9,) * 3, roughness=0.4)
    _, weights = Probe(device, material, EVERYTHING).sample(incoming(cosine), 1 << 15, 3)
    walked, error = metal_albedo((0.9,), 0.4, cosine, 40_000, rng)
    error = np.hypot(error[0], weights[:, 0].std() / len(weights) ** 0.5)
    assert abs(weights[:, 0].astype("f8").mean() - walked[0]) < 4 * error


SLOW_GLASS = [pytest.param(r, c, marks=pytest.mark.slow) for r in (0.05, 0.2, 0.5) for c in (0.3, 0.6, 0.95)]


@pytest.mark.parametrize("roughness, cosine", [(0.4, 0.3), (0.4, 0.95), *SLOW_GLASS])
def test_rough_glass_is_heitz_random_walks(device, rng, roughness, cosine):
    """The fraction that glass reflects, facet after facet; a z-test. All the rest is transmitted."""
    material, count = replace(LOBES["solid"], roughness=roughness, ior=1.5), 1 << 15
    directions, weights = Probe(device, material, EVERYTHING).sample(incoming(cosine), count, rng.integers(1 << 31))
    reflected = weights[:, 0].astype("f8") * (directions[:, 2] > 0)
    walked = glass_reflectance(1.5, roughness, cosine, 40_000, rng)
    error = np.hypot(reflected.std() / count**0.5, (walked * (1 - walked) / 40_000) ** 0.5)
    assert abs(reflected.mean() - walked) < 4.5 * error
    assert weights[:, 0].mean() == pytest.approx(1, abs=0.004)


@pytest.mark.parametrize("cosine", [0.2, 0.6, 0.95])
def test_the_coat_is_gltfs(device, cosine):
    """KHR_materials_clearcoat: below a coat the base loses clearcoat * (0.04 + 0.96 (1 - VdotN)^5), seen or lit."""
    base = replace(SURFACE, roughness=0.9, color=(0.5,) * 3)
    away = grid(6, 8, (1, 1), 0)[8:, :4] * [-1, 1, 1, 1]  # directions apart from the coat's narrow highlight
    away = away[away[:, 0] < 0] if cosine < 0.9 else away[away[:, 2] < 0.6]
    values = [
        Probe(device, replace(base, clearcoat=coat, clearcoat_roughness=0.1), EVERYTHING)
        .evaluate(incoming(cosine), away)[:, 0].astype("f8")
        for coat in (0.0, 0.7)
    ]  # fmt: skip
    fresnel = 0.7 * (0.04 + 0.96 * (1 - cosine) ** 5)
    assert len(away) > 8 and values[1] / values[0] == pytest.approx(1 - fresnel, rel=0.01)


@pytest.mark.slow
def test_colored_lobes_lose_energy(device):
    for roughness in (0.1, 0.3, 0.5, 0.7, 0.9):
        for base in (COLORED, replace(COLORED, transmission=0.0), replace(COLORED, metallic=1.0, iridescence=0.0)):
            found = albedo(device, replace(base, roughness=roughness), 0.5)
            assert (found < 1.005).all() and (found > 0.1).all(), (roughness, found)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LOBES, "colored"])
def test_samples_follow_their_pdf(device, rng, name):
    material = replace((LOBES | {"colored": COLORED})[name], roughness=0.5)
    below = material.transmission or material.diffuse_transmission
    check_samples_follow_pdf(Probe(device, material, EVERYTHING), rng, -1 if below else 0)


@pytest.mark.parametrize("roughness", [0.05, 0.4, pytest.param(0.9, marks=pytest.mark.slow)])
def test_weights_are_value_over_pdf(device, rng, roughness):
    check_weights_are_value_over_pdf(Probe(device, replace(COLORED, roughness=roughness), EVERYTHING), rng)


def pairs(rng, count, side=1):
    """Two arrays (count, 4) of directions away from the horizon; the second array is on the given side."""
    out = rng.normal(size=(2, count, 4))
    out[..., 3] = 0
    out[..., 2] = np.abs(out[..., 2]) + 0.3
    out /= np.linalg.norm(out, axis=-1, keepdims=True)
    out[1, :, 2] *= side
    return out


def values(probe, views, lights):
    """BSDF times cosine (n,) in red for each pair of directions (n, 4)."""
    return np.array([probe.evaluate(-v[:3], light[None])[0, 0] for v, light in zip(views, lights, strict=True)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "material",
    [
        replace(SURFACE, color=BLACK, metallic=1.0, roughness=0.6),
        replace(SURFACE, color=BLACK, metallic=1.0, roughness=0.4, anisotropy=0.8),
        replace(SURFACE, color=BLACK, specular=0.0, sheen_color=WHITE, sheen_roughness=0.6),
    ],
)
def test_lobes_without_compensation_are_reciprocal(device, rng, material):
    """Compensation by the view's albedo is not reciprocal; with F0 = 0 there is none."""
    probe, (views, lights) = Probe(device, material, EVERYTHING), pairs(rng, 12)
    forth, back = values(probe, views, lights) / lights[:, 2], values(probe, lights, views) / views[:, 2]
    assert np.allclose(forth, back, rtol=1e-3)


@pytest.mark.slow
def test_transmission_is_reciprocal_but_for_the_index(device, rng):
    """f(v, l) / f(l, v) is the square of the relative index (E. Veach 1997, section 5.2), behind the compensation."""
    front, back = (
        Probe(device, replace(CLEAR, thickness=1.0, roughness=0.5, ior=n), EVERYTHING) for n in (1.5, 1 / 1.5)
    )
    views, lights = pairs(rng, 12, -1)
    lights[:, :2] = -views[:, :2] * 0.5 + 0.2 * lights[:, :2]
    lights[:, 2] = -np.sqrt(1 - (lights[:, :2] ** 2).sum(1))
    mirrored = lights * [1, 1, -1, 1], views * [1, 1, -1, 1]
    half = np.full(12, 0.5)
    forth = values(front, views, lights) * microfacet_tables.dielectric_albedo(views[:, 2], half, np.full(12, 1.5))
    back_ = values(back, *mirrored) * microfacet_tables.dielectric_albedo(-lights[:, 2], half, np.full(12, 1 / 1.5))
    lit = forth > 1e-3  # some pairs have no micro-normal between them
    assert lit.sum() >= 6
    assert np.allclose((forth / -lights[:, 2])[lit], (back_ / views[:, 2] * 1.5**2)[lit], rtol=0.02)


def test_sheen_is_its_formula(device, rng):
    material = replace(SURFACE, color=BLACK, specular=0.0, sheen_color=(0.5, 1.0, 0.0), sheen_roughness=0.7)
    views, lights = pairs(rng, 8)
    probe = Probe(device, material, EVERYTHING)
    found = np.array([probe.evaluate(-v[:3], light[None])[0] for v, light in zip(views, lights, strict=True)])
    wanted = microfacet_tables.sheen_value(views[:, :3], lights[:, :3], 0.7)
    assert np.allclose(found[:, :3], wanted[:, None] * [0.5, 1.0, 0.0], rtol=1e-3)


@pytest.mark.parametrize("material", [replace(LOBES["sheen"], specular=0.0), COLORED], ids=["sheen", "all lobes"])
def test_directions_that_rounding_made_longer_than_1_are_those_of_the_normal(device, material):
    """A cosine of 1.0000001 gave the sheen a power of a negative number, and a picture a NaN pixel."""
    probe, along = Probe(device, material, EVERYTHING), np.array([0.0, 0.0, 1.0, 0.0])
    longer = along * (1 + 2e-7)
    wanted = probe.evaluate(-along[:3], along[None])
    assert np.isfinite(wanted).all() and wanted[0, 0] > 0
    for view, light in ((along, longer), (longer, along), (longer, longer)):
        assert np.allclose(probe.evaluate(-view[:3], light[None]), wanted, rtol=1e-4)


def thin_film(cosine, film, thickness, f0):
    """Reflectance of a film in air over a base of Schlick's F0: the Airy sum of amplitudes, averaged as colors.

    L. Belcour and P. Barla 2017, by KHR_materials_iridescence: the terms of orders 0 to 2.
    """
    cosine_film = np.sqrt(1 - (1 - cosine**2) / film**2)
    r12 = ((film - 1) / (film + 1)) ** 2
    r12 += (1 - r12) * (1 - cosine) ** 5
    base = (1 + np.sqrt(f0)) / (1 - np.sqrt(f0))
    r23 = ((base - film) / (base + film)) ** 2
    r23 += (1 - r23) * (1 - cosine_film) ** 5
    shift = np.pi + (np.pi if base < film else 0)
    r123, through = r12 * r23, 1 - r12
    order0 = through**2 * r23 / (1 - r123)
    out, term = np.full(3, r12 + order0), order0 - through
    for m in (1, 2):
        term = term * np.sqrt(r123)
        phase = 2 * np.pi * 2 * film * thickness * cosine_film * m * 1e-9
        value = np.array([5.4856e-13, 4.4201e-13, 5.2481e-13])
        position, variance = np.array([1.6810e6, 1.7953e6, 2.2084e6]), np.array([4.3278e9, 9.3046e9, 6.6121e9])
        xyz = value * np.sqrt(2 * np.pi * variance) * np.cos(position * phase + m * shift)
        xyz *= np.exp(-(phase**2) * variance)
        second = 9.7470e-14 * np.sqrt(2 * np.pi * 4.5282e9) * np.cos(2.2399e6 * phase + m * shift)
        xyz[0] += second * np.exp(-4.5282e9 * phase**2)
        to_rgb = [
            [3.2404542, -1.5371385, -0.4985314],
            [-0.9692660, 1.8760108, 0.0415560],
            [0.0556434, -0.2040259, 1.0572252],
        ]
        out += 2 * term * (np.array(to_rgb) @ xyz) / 1.0685e-7
    return np.clip(out, 0, 1)


@pytest.mark.parametrize(("cosine", "thickness"), [(0.9, 250.0), (0.6, 400.0), (0.35, 550.0)])
def test_smooth_iridescence_is_the_film_reflectance(device, cosine, thickness):
    metal = replace(SURFACE, color=(0.3, 0.3, 0.3), metallic=1.0, iridescence=1.0, iridescence_thickness=thickness)
    found = albedo(device, metal, cosine, count=1 << 12)
    wanted = thin_film(cosine, 1.3, thickness, 0.3)
    assert np.allclose(found, np.maximum(wanted, (1 - cosine) ** 5), atol=2e-3) and np.ptp(wanted) > 0.05


def test_anisotropy_stretches_highlights_along_the_tangent(device):
    metal = replace(SURFACE, metallic=1.0, roughness=0.3, anisotropy=0.8)
    lights = np.array([[0.4, 0, np.sqrt(0.84), 0], [0, 0.4, np.sqrt(0.84), 0]])
    along, across = Probe(device, metal, EVERYTHING).evaluate(incoming(1.0), lights)[:, 0]
    turned = replace(metal, anisotropy_rotation_degrees=90.0)
    across2, along2 = Probe(device, turned, EVERYTHING).evaluate(incoming(1.0), lights)[:, 0]
    assert along > 5 * across and (along, across) == pytest.approx((along2, across2), rel=1e-3)


def draw(device, settings, samples, size=(8, 8)):
    """The picture (h, w, 3) of settings under a background of radiance 1, seen from z = 3."""
    view = Camera((0.0, 0.0, 3.0), fov_degrees=1.0)
    settings = replace(settings, view=view, max_depth=16, horizon=WHITE, zenith=WHITE)
    picture = Picture(SimpleNamespace(device=device))
    for _ in range(samples):
        frame = picture.draw(settings, size, 0.0)
    return frame.read()[..., :3].astype("f8")


FACING = ((-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, 0.0), (-1.0, 1.0, 0.0))
AMBER = replace(CLEAR, thickness=1.0, ior=1.0, attenuation_color=(0.9, 0.5, 0.1), attenuation_distance=0.5, color=WHITE)


def test_media_absorb_as_beer_and_lambert_say(device):
    """A sphere of index 1: through its middle, and up to a ball inside it that shines."""
    color = np.array(AMBER.attenuation_color)
    through = draw(device, Settings(materials=(AMBER,), spheres=(Sphere("m", radius=1.0),)), 4)
    assert np.allclose(np.log(through) / np.log(color), 2 / 0.5, rtol=5e-3)
    lamp = Material("lamp", "emitter", emission=(2.0, 2.0, 2.0))
    spheres = (Sphere("m", radius=1.0), Sphere("lamp", radius=0.25))
    inside = draw(device, Settings(materials=(AMBER, lamp), spheres=spheres), 4)
    assert np.allclose(np.log(inside / 2) / np.log(color), 0.75 / 0.5, rtol=5e-3)


@pytest.mark.slow
def test_light_in_a_medium_is_absorbed_on_its_way_to_a_surface(device):
    """Next-event estimation and BSDF sampling agree about a lamp and a gray ball in a tinted sphere."""
    lamp, gray = Material("lamp", "emitter", emission=(5.0, 5.0, 5.0)), Material("gray", color=(0.5, 0.5, 0.5))
    spheres = (Sphere("m", radius=1.5), Sphere("gray", radius=0.2), Sphere("lamp", (0.5, 0.7, 0.9), 0.3))
    amber = replace(AMBER, ior=1.5)
    settings = Settings(materials=(amber, lamp, gray), spheres=spheres)
    nee, bsdf = (draw(device, replace(settings, direct_lighting=way), 512).mean((0, 1)) for way in ("mis", "bsdf"))
    assert nee == pytest.approx(bsdf, rel=0.03)


@pytest.mark.slow
def test_a_lamp_nearer_than_where_shadow_rays_begin_leaves_no_light(device):
    """A lamp in the plane of a slab's back, a millionth high: shadow rays of paths that have left the slab would begin
    behind it, and the medium would amplify light along a negative distance."""
    rough = replace(AMBER, ior=1.5, roughness=0.8, attenuation_distance=0.05)
    lamp = Material("lamp", "emitter", emission=(1e6, 1e6, 1e6))
    back = tuple((x, y, -0.5) for x, y, _ in reversed(FACING))
    strip = tuple((0.9, y, -0.5 + z) for y, z in ((-0.5, -1e-6), (-0.5, 1e-6), (0.5, 1e-6), (0.5, -1e-6)))
    slab = Settings(materials=(rough, lamp), quads=(Quad("m", FACING), Quad("m", back)), direct_lighting="nee")
    found = draw(device, replace(slab, quads=(*slab.quads, Quad("lamp", strip))), 64)
    assert np.allclose(found, draw(device, slab, 64), atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("surface", [Material("m", "glass", color=WHITE), replace(CLEAR, thickness=1.0)])
def test_radiance_is_scaled_where_it_enters_glass(device, surface):
    """An open sheet of the front of glass: (1 - F) / n^2 + F of a background of 1. Closed glass returns it whole."""
    sheet = draw(device, Settings(materials=(surface,), quads=(Quad("m", FACING),)), 256).mean()
    assert sheet == pytest.approx(0.96 / 1.5**2 + 0.04, abs=0.005)
    ball = draw(device, Settings(materials=(surface,), spheres=(Sphere("m", radius=1.0),)), 64)
    assert ball.mean() == pytest.approx(1, abs=2e-3)


@pytest.mark.slow
def test_a_thin_wall_lets_light_pass_straight(device):
    wall = replace(CLEAR, color=(0.5, 0.25, 1.0))
    found = draw(device, Settings(materials=(wall,), quads=(Quad("m", FACING),)), 256).mean((0, 1))
    assert found == pytest.approx(0.96 * np.array(wall.color) + 0.04, abs=0.01)


@pytest.mark.slow
def test_dispersion_spreads_colors_and_keeps_white_white(device):
    """Under an even light nothing shows; under a sky that varies, the edge of a ball is colored."""
    glass = replace(CLEAR, thickness=1.0, dispersion=2.0)
    settings = Settings(materials=(glass,), spheres=(Sphere("m", radius=0.01),))
    assert draw(device, settings, 256).mean((0, 1)) == pytest.approx(1, abs=0.03)
    card = Quad("white", ((-9.0, 0.0, -2.0), (9.0, 0.0, -2.0), (9.0, 9.0, -2.0), (-9.0, 9.0, -2.0)))
    lit = replace(settings, materials=(glass, Material("white", "emitter", emission=(3.0, 3.0, 3.0))), quads=(card,))
    plain, spread = (
        draw(device, replace(lit, materials=(replace(glass, dispersion=d), lit.materials[1])), 64, (32, 32))
        for d in (0.0, 10.0)
    )
    assert np.abs(plain[..., 0] - plain[..., 2]).max() < 1e-6 < 0.02 < np.abs(spread[..., 0] - spread[..., 2]).max()


@pytest.mark.slow
def test_schedules_agree_about_media(device):
    glass = replace(AMBER, ior=1.5, dispersion=5.0, roughness=0.2)
    gray = Material("gray", color=(0.5, 0.5, 0.5))
    scene = Settings(materials=(glass, gray), spheres=(Sphere("m", radius=1.0), Sphere("gray", radius=0.5)))
    pictures = [draw(device, replace(scene, schedule=way), 2) for way in ("megakernel", "wavefront", "regenerate")]
    assert (pictures[0] == pictures[1]).all() and (pictures[0] == pictures[2]).all()


def test_materials_of_models_become_the_surface_they_need():
    materials = [
        gltf.Material(), gltf.Material(clearcoat=0.5), gltf.Material(unlit=True, color=(0.2, 0.4, 0.6, 1.0)),
        gltf.Material(transmission=1.0, thickness=2.0, attenuation_color=(0.5, 1.0, 1.0), attenuation_distance=4.0),
        gltf.Material(ior=0.0),
        gltf.Material(diffuse_transmission=1.0, thickness=2.0, attenuation_color=(0.5, 0.5, 0.5),
                      attenuation_distance=4.0, multiscatter_color=(1.0, 0.5, 0.0), scatter_anisotropy=0.25),
    ]  # fmt: skip
    model = gltf.Model([], [], materials, [])
    shape = SimpleNamespace(scale=2.0, emission_scale=1.0)
    rows = material_rows(SimpleNamespace(materials=(), models=(shape,), light_groups=()), [model])
    assert [MATERIALS[kind] for kind in rows["kind"]] == [
        "metallic", "principled", "unlit", "principled", "principled", "principled", "metallic"
    ]  # fmt: skip
    assert rows["emission"][2].tolist() == [0, 0, 0, 0] and rows["color"][2, :3] == pytest.approx((0.2, 0.4, 0.6))
    assert rows["attenuation"][3, :3] == pytest.approx([np.log(2) / 8, 0, 0])
    assert rows["ior"][4] > 100
    assert rows["color2"][5] == pytest.approx((1.0, 0.9323, 0.0, 0.25), abs=1e-4) and not rows["color2"][4].any()
    used = material_constants(rows)
    assert used["MEDIA"] and used["SCATTERING"] and used["REFRACTION"] and used["UNLIT"] and used["CLEARCOAT"]
    assert not used["SHEEN"] and not used["GLASS"]
    assert [name for name, is_used in material_constants(rows[:1]).items() if is_used] == ["METALLIC"]
    assert (attenuation((0.5, 0.5, 0.5), np.inf) == 0).all()


def test_unlit_surfaces_show_their_color_on_both_sides(device):
    card = Material("m", "unlit", color=(0.2, 0.5, 0.9))
    for corners in (FACING, FACING[::-1]):
        found = draw(device, Settings(materials=(card,), quads=(Quad("m", corners),)), 1)
        assert np.allclose(found, card.color, atol=1e-6)


def card(material, textures=()):
    """A Model of one square of the material that faces z, with texture coordinates."""
    vertices = np.array(FACING, "f4")
    uv = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], "f4")
    part = gltf.MeshPrimitive(vertices, np.array([[0, 1, 2], [0, 2, 3]], "i4"), None, (uv,), 0)
    return gltf.Model([[part]], [(0, np.eye(4))], [material], list(textures))


@pytest.mark.slow
def test_smooth_normals_leave_no_black_rims_on_metal(device, monkeypatch):
    """An octahedron that is shaded as a ball vanishes in a white furnace; it lost 7 % of the picture at its rims."""
    corners = np.concatenate([np.eye(3), -np.eye(3)]).astype("f4")
    faces = np.array([[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]], "i4")
    part = gltf.MeshPrimitive(corners, faces, corners, (), 0)
    metal = gltf.Material(color=(1.0, 1.0, 1.0, 1.0), metallic=1.0, roughness=0.0)
    monkeypatch.setattr(ModelShape, "load", lambda self: gltf.Model([[part]], [(0, np.eye(4))], [metal], []))
    view = Camera((1.0, 2.0, 3.0), (0.0, 0.0, 0.0), fov_degrees=40.0)
    settings = Settings(view=view, models=(ModelShape("ball"),), max_depth=16, horizon=WHITE, zenith=WHITE)
    picture = Picture(SimpleNamespace(device=device))
    frame = picture.draw(settings, (48, 48), 0.0).read()[..., :3]
    assert frame.mean() > 0.997 and frame.max() < 1.001


SLOTS = {  # by slot: the factor's field, and the channel of the texture that scales it; a color has none
    "clearcoat": 0, "clearcoat_roughness": 1, "sheen_color": None, "sheen_roughness": 3, "specular": 3,
    "specular_color": None, "transmission": 0, "iridescence": 0, "diffuse_transmission": 3,
    "diffuse_transmission_color": None,
}  # fmt: skip
FULL = gltf.Material(
    color=(0.8, 0.5, 0.3, 1.0), metallic=0.2, roughness=0.4, clearcoat=1.0, clearcoat_roughness=0.8,
    sheen_color=(0.9, 0.6, 0.5), sheen_roughness=0.9, specular=0.9, specular_color=(0.9, 1.0, 0.8), transmission=0.6,
    iridescence=0.8, diffuse_transmission=0.7, diffuse_transmission_color=(0.5, 0.9, 0.6), anisotropy=0.9,
)  # fmt: skip


@pytest.mark.slow
def test_textures_scale_every_number_of_the_surface(device, monkeypatch):
    """A texture of one color does what the factor times that color does, slot by slot."""
    settings = Settings(models=(ModelShape("card"),), suns=(Sun((0.3, 0.5, 1.0)),))
    shown = []
    monkeypatch.setattr(ModelShape, "load", lambda self: shown[-1])

    def picture(material, texture):
        shown.append(card(material, [texture]))
        return draw(device, settings, 4)

    rest = gltf.Texture(np.full((1, 1, 4), 255, "u1"))
    half = gltf.Texture(np.full((1, 1, 4), 128, "u1"))
    every = {slot: gltf.TextureSlot(0) for slot in SLOTS}
    white = picture(replace(FULL, textures=every), rest)
    for slot, channel in SLOTS.items():
        linear = 128 / 255 if channel is not None else float(srgb_to_linear(np.array(128, "u1")))
        value = np.array(getattr(FULL, slot)) * linear
        scaled = replace(FULL, **{slot: tuple(value) if value.ndim else float(value)}, textures=every)
        pixels = np.full((1, 1, 4), 255, "u1")
        pixels[..., slice(3) if channel is None else channel] = half.pixels[0, 0, 0]
        slots = every | {slot: gltf.TextureSlot(1)}
        shown.append(card(replace(FULL, textures=slots), [rest, gltf.Texture(pixels)]))
        textured, wanted = draw(device, settings, 4), picture(scaled, rest)
        assert np.abs(textured - wanted).max() < 1e-3, slot
        assert np.abs(wanted - white).max() > 1e-3, slot
    assert not_drawn(shown[-1]) == {}
