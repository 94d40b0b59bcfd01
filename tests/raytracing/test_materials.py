"""Materials against algebra: samples follow the pdf, weights are value over pdf, energy is conserved."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from renderer.gpu.kernel_source import GeneratedSource
from renderer.pictures.raytrace import Picture
from renderer.raytracing import microfacet
from renderer.raytracing.kernels import NO_SCHEDULE, compile_constants, kernel_source
from renderer.raytracing.materials import material_rows
from renderer.raytracing.settings import Material, Settings, Sphere
from renderer.scene.cameras import Camera
from tests.raytracing.witnesses import anisotropic_fit, microfacet_tables

WHITE = (1.0, 1.0, 1.0)
PROBES = """
DEVICE Surface probe_surface(float incoming_x, float incoming_y, float incoming_z) {
    Surface s;
    s.point = make_float3(0.3f, 0.2f, 0.1f);
    s.normal = make_float3(0.0f, 0.0f, 1.0f);
    s.ray_direction = make_float3(incoming_x, incoming_y, incoming_z);
    s.front_face = true;
#if ANISOTROPY
    s.tangent = make_float3(1.0f, 0.0f, 0.0f);
    s.bitangent_sign = 1.0f;
#endif
#if DISPERSION
    s.spectral = splat3(1.0f);
#endif
    return s;
}

KERNEL sample_directions(const Material m, float x, float y, float z, uint seed, GLOBAL float4 *directions,
                         GLOBAL float4 *weights) {
    uint i = thread_index();
    BsdfSample out;
    bool goes_on = sample_bsdf(m, probe_surface(x, y, z), make_sampler(seed, 0, i), 0, &out);
    directions[i] = goes_on ? with_w(out.direction, out.pdf) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    weights[i] = goes_on ? with_w(out.weight, out.transmits ? 1.0f : 0.0f) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

KERNEL evaluate_directions(const Material m, float x, float y, float z, GLOBAL const float4 *directions,
                           GLOBAL float4 *values) {
    uint i = thread_index();
    values[i] = eval_bsdf_pdf(m, probe_surface(x, y, z), xyz(directions[i]));
}
"""
MATERIALS = {
    "diffuse": Material("m", color=(0.8, 0.5, 0.3)),
    "shiny metal": Material("m", "conductor", color=(0.9, 0.6, 0.3), roughness=0.35),
    "rough metal": Material("m", "conductor", color=(0.9, 0.6, 0.3), roughness=0.9),
    "plastic": Material("m", "metallic", color=(0.7, 0.2, 0.1), roughness=0.5, metallic=0.0),
    "half metal": Material("m", "metallic", color=(0.7, 0.6, 0.1), roughness=0.7, metallic=0.5),
}


GLASSES = {
    "glass": Material("m", "glass", color=(0.9, 0.8, 0.7), roughness=0.6),
    "glass from inside": Material("m", "glass", color=(0.9, 0.8, 0.7), roughness=0.6, ior=1 / 1.5),
    "very rough glass": Material("m", "glass", color=(0.9, 0.8, 0.7), roughness=0.95, ior=1.8),
}


class Probe:
    """Samples and values of one material for one incoming direction, from the kernels themselves."""

    def __init__(self, device, material: Material, compiled_for: Material | None = None):
        """compiled_for: the material whose lobes the kernels have; None for `material`."""
        text = GeneratedSource("materials", kernel_source().text + PROBES)
        settings = Settings(schedule="wavefront", materials=(compiled_for or material,))
        constants = compile_constants(settings, spheres=False) | NO_SCHEDULE
        self.device = device
        self.row = material_rows(Settings(materials=(material,)))[0]
        self.sampler = device.kernel(text, "sample_directions", group_size=64, **constants)
        self.evaluator = device.kernel(text, "evaluate_directions", group_size=64, **constants)

    def sample(self, incoming, count, seed):
        directions, weights = self.device.buffer((count, 4)), self.device.buffer((count, 4))
        self.sampler(count, self.row, *map(float, incoming), np.uint32(seed), directions, weights)
        return directions.read(), weights.read()

    def evaluate(self, incoming, directions):
        padded = np.concatenate([directions, np.zeros((-len(directions) % 64, 4))])  # launches are of whole groups
        values = self.device.buffer(padded.shape)
        given = self.device.buffer(padded.shape).write(padded.astype("f4"))
        self.evaluator(len(padded), self.row, *map(float, incoming), given, values)
        return values.read()[: len(directions)]


def incoming(cosine):
    return np.array([np.sqrt(1 - cosine**2), 0.0, -cosine])


def grid(rows, columns, fine, lowest):
    """Directions on a (rows x columns) grid of (cosine, angle), fine[0] x fine[1] a cell; cosines are `lowest` to 1."""
    z = lowest + (1 - lowest) * (np.arange(rows * fine[0]) + 0.5) / (rows * fine[0])
    phi = 2 * np.pi * (np.arange(columns * fine[1]) + 0.5) / (columns * fine[1]) - np.pi
    z, phi = np.meshgrid(z, phi, indexing="ij")
    r = np.sqrt(1 - z**2)
    return np.stack([r * np.cos(phi), r * np.sin(phi), z, 0 * z], -1).reshape(-1, 4)


def check_samples_follow_pdf(probe, rng, lowest):
    """Chi-square over 12 x 24 cells of equal solid angle of each half; cells of few are pooled (W. Jakob's test)."""
    cosine, count = float(rng.uniform(0.2, 0.95)), 1 << 17
    directions, _ = probe.sample(incoming(cosine), count, rng.integers(1 << 31))
    kept = directions[directions[:, 3] > 0]
    rows, columns, fine = 12 * (1 - lowest), 24, (192, 12)  # refraction ends at an edge of cosines
    cells = grid(rows, columns, fine, lowest)
    density = probe.evaluate(incoming(cosine), cells)[:, 3].reshape(rows, fine[0], columns, fine[1]).astype("f8")
    expected = density.mean((1, 3)) * (2 * np.pi * (1 - lowest) / (rows * columns)) * count
    i = np.clip(((kept[:, 2] - lowest) / (1 - lowest) * rows).astype(int), 0, rows - 1)
    j = np.clip(((np.arctan2(kept[:, 1], kept[:, 0]) + np.pi) / (2 * np.pi) * columns).astype(int), 0, columns - 1)
    found = np.zeros((rows, columns))
    np.add.at(found, (i, j), 1)
    large = expected > 20
    observed = np.append(found[large], found[~large].sum())
    wanted = np.append(expected[large], expected[~large].sum())
    wanted *= observed.sum() / wanted.sum()
    assert abs(expected.sum() - len(kept)) < 0.02 * count
    statistic = ((observed - wanted) ** 2 / np.maximum(wanted, 5)).sum()
    assert statistic < stats.chi2.isf(1e-6, len(wanted)) + 0.002 * count * 0.02, (cosine, statistic, len(wanted))


@pytest.mark.parametrize("name", [*MATERIALS, *GLASSES])
def test_bsdf_samples_follow_their_pdf(device, rng, name):
    check_samples_follow_pdf(Probe(device, (MATERIALS | GLASSES)[name]), rng, -1 if name in GLASSES else 0)


@pytest.mark.parametrize("name", [*MATERIALS, *GLASSES])
def test_sample_weights_are_value_over_pdf(device, rng, name):
    check_weights_are_value_over_pdf(Probe(device, (MATERIALS | GLASSES)[name]), rng)


def check_weights_are_value_over_pdf(probe, rng):
    way = incoming(float(rng.uniform(0.1, 1.0)))
    directions, weights = probe.sample(way, 4096, 5)
    kept = directions[:, 3] > 0
    values = probe.evaluate(way, directions)[kept]
    assert np.allclose(values[:, 3], directions[kept, 3], rtol=2e-2)
    assert np.allclose(values[:, :3] / values[:, 3:], weights[kept, :3], rtol=2e-3, atol=1e-4)


def furnace(device, material, samples=64):
    """The mean of the pixels of a sphere under a background of radiance 1."""
    settings = Settings(
        view=Camera((0.0, 0.0, 3.0), fov_degrees=30.0), max_depth=16, horizon=WHITE, zenith=WHITE,
        materials=(material,), spheres=(Sphere("m", radius=1.0),))  # fmt: skip
    picture = Picture(SimpleNamespace(device=device))
    for _ in range(samples):
        frame = picture.draw(settings, (48, 48), 0.0)
    pixels = frame.read()[..., :3]
    x = (np.arange(48) + 0.5) / 24 - 1
    inside = np.hypot(*np.meshgrid(x, x)) < 1.2  # the ball fills tan(19.5 deg) / tan(15 deg) of the half picture
    return pixels[inside].astype("f8").mean(0)


@pytest.mark.parametrize("roughness", [0.1, 0.4, 0.7, 1.0])
def test_white_surfaces_conserve_energy(device, roughness):
    assert furnace(device, Material("m", "conductor", WHITE, roughness=roughness)) == pytest.approx(1, abs=0.005)
    plastic = Material("m", "metallic", WHITE, roughness=roughness, metallic=0.3)
    assert furnace(device, plastic) == pytest.approx(1, abs=0.005)


@pytest.mark.parametrize("ior", [1.5, 1 / 1.5, 1.3])
def test_rough_glass_conserves_energy(device, rng, ior):
    """At a single surface: in a sphere, paths longer than max_depth would hide a loss."""
    for roughness in (0.2, 0.5, 0.9):
        glass = Probe(device, Material("m", "glass", WHITE, roughness=roughness, ior=ior))
        for cosine in rng.uniform(0.15, 1.0, 4):
            _, weights = glass.sample(incoming(cosine), 1 << 16, rng.integers(1 << 31))
            assert weights[:, 0].mean() == pytest.approx(1, abs=0.012), (roughness, cosine)


def test_colored_surfaces_lose_energy(device, rng):
    for name in MATERIALS:
        kept = furnace(device, MATERIALS[name], samples=16)
        assert (kept <= 1.005).all() and (kept > 0).all(), (name, kept)


def test_smooth_limit_is_the_mirror(device):
    way = incoming(0.6)
    directions, weights = Probe(device, Material("m", "conductor", (0.9, 0.6, 0.3), roughness=0.02)).sample(way, 256, 1)
    assert np.allclose(np.median(directions[:, :3], 0), way * [1, 1, -1], atol=0.005)
    fresnel = np.array([0.9, 0.6, 0.3]) + (1 - np.array([0.9, 0.6, 0.3])) * (1 - 0.6) ** 5
    assert np.allclose(weights[:, :3].mean(0), fresnel, atol=0.02)


def test_stored_tables_are_what_sampling_finds(rng):
    with np.load(microfacet.ASSET, allow_pickle=False) as stored:
        reflector, dielectric, sheen = stored["reflector"], stored["dielectric"], stored["sheen"]
    for _ in range(20):
        i, j = rng.integers(2, microfacet.GGX_COSINES), rng.integers(0, microfacet.GGX_ROUGHNESSES)
        cosine, roughness = i / (microfacet.GGX_COSINES - 1), j / (microfacet.GGX_ROUGHNESSES - 1)
        fresh = np.ravel(microfacet_tables.ggx_split_sum(np.array([cosine]), np.array([roughness]), 128))
        assert np.allclose(reflector[i, j], fresh, atol=2e-3)
        half, k, i, j = (rng.integers(int(n > 2), n) for n in dielectric.shape)
        cosine, roughness = (i / (microfacet.GLASS_COSINES - 1)) ** 2, j / (microfacet.GLASS_ROUGHNESSES - 1)
        eta = microfacet_tables.glass_iors()[half, k]
        fresh = microfacet_tables.dielectric_albedo(np.array([cosine]), np.array([roughness]), np.array([eta]), 128)
        assert dielectric[half, k, i, j] == pytest.approx(fresh[0], abs=6e-3)
        i, j = rng.integers(2, microfacet.SHEEN_COSINES), rng.integers(2, microfacet.SHEEN_ROUGHNESSES)
        fresh = microfacet_tables.sheen_albedo(
            (i / (microfacet.SHEEN_COSINES - 1)) ** 2, j / (microfacet.SHEEN_ROUGHNESSES - 1)
        )
        assert sheen[i, j] == pytest.approx(fresh, rel=2e-3, abs=1e-4)


def test_the_fit_of_anisotropic_albedos_is_what_sampling_finds(rng):
    view, alpha = anisotropic_fit.random_surfaces(150, rng)
    view, alpha = view[view[:, 2] > anisotropic_fit.GRAZING], alpha[view[:, 2] > anisotropic_fit.GRAZING]
    fresh = anisotropic_fit.split_sum(view, alpha)
    with np.load(microfacet.ASSET, allow_pickle=False) as stored:
        albedo, bias = anisotropic_fit.fitted(stored["anisotropic"].astype("f8"), view, alpha).T
    error = albedo / fresh.sum(1) - 1
    assert np.abs(error).max() < 0.015 and np.sqrt(np.mean(error**2)) < 0.002
    assert np.abs(bias - fresh[:, 1]).max() < 0.03


def test_a_material_with_roughness_is_another_material():
    base = Material("m", "conductor")
    assert material_rows(Settings(materials=(replace(base, roughness=0.5),)))[0]["roughness"] == 0.5
