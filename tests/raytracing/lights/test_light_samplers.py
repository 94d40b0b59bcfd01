"""Chi-square tests of all light samplers: samples follow their pdf."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from renderer.gpu.kernel_source import GeneratedSource
from renderer.raytracing.kernels import NO_SCHEDULE, compile_constants, kernel_source, launch_params
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.settings import Environment, Quad, Sky, Sphere, Sun
from tests.raytracing.lights.test_lights import exr, floor_scene, light_samples, many_lights

COUNT = 1 << 16
DENSITY = """
KERNEL environment_pdfs(const LaunchParams params, GLOBAL const float4 *lights, GLOBAL const float4 *directions,
                             GLOBAL float *densities) {
    uint i = thread_index();
    float3 direction = xyz(directions[i]);
    densities[i] = environment_pdf(params, lights, sine_to_zenith(direction), environment_uv(params, direction));
}
"""


def assert_chi_square(found: np.ndarray, wanted: np.ndarray) -> None:
    """Chi-square of counts against expected counts, those below 10 pooled; a false alarm is one in a million."""
    assert found.sum() == pytest.approx(wanted.sum(), rel=2e-3)
    wanted = wanted * (found.sum() / wanted.sum())
    many = wanted >= 10
    pairs = [(found[many], wanted[many])]
    if wanted[~many].sum() >= 10:
        pairs.append(([found[~many].sum()], [wanted[~many].sum()]))
    found, wanted = (np.concatenate(column) for column in zip(*pairs, strict=True))
    assert len(wanted) > 10
    statistic = ((found - wanted) ** 2 / wanted).sum()
    assert statistic < stats.chi2.isf(1e-6, len(wanted) - 1), (statistic, len(wanted))


def assert_uniform(x: np.ndarray, y: np.ndarray, columns: int = 12, rows: int = 8) -> None:
    """Chi-square of pairs that should be uniform on the unit square."""
    assert min(x.min(), y.min()) > -1e-3 and max(x.max(), y.max()) < 1 + 1e-3
    found, *_ = np.histogram2d(np.clip(x, 0, 1), np.clip(y, 0, 1), (columns, rows), ((0, 1), (0, 1)))
    assert_chi_square(found.ravel(), np.full(found.size, len(x) / found.size))


def around(axis: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 - cosine of the angle to an axis, and the azimuth about it in turns."""
    axis = axis / np.linalg.norm(axis)
    first = np.cross(axis, [0.6, 0.8, 0.0])
    first /= np.linalg.norm(first)
    apart = directions - axis
    turn = np.arctan2(directions @ np.cross(axis, first), directions @ first)
    return (apart**2).sum(1) / 2, turn / (2 * np.pi) % 1


def test_points_are_uniform_on_triangles(device, rng):
    """The pdf of each is distance squared over area and cosine."""
    corners = rng.normal(size=(2, 3)) * [1, 0.2, 1]
    origin = np.array([0.3, 2.5, -0.2])
    quad = [origin, origin + corners[0], origin + corners[0] + corners[1], origin + corners[1]]
    normal = np.cross(corners[0], corners[1])
    if normal[1] > 0:
        quad.reverse()
    settings = replace(floor_scene(), quads=(*floor_scene().quads, Quad("lamp", tuple(map(tuple, np.array(quad))))))
    point = rng.uniform(-0.5, 0.5, 3) * [1, 0, 1]
    found, told = light_samples(device, settings, point, COUNT, rng.integers(1 << 31))
    direction, density, distance = found[:, :3].astype("f8"), found[:, 3].astype("f8"), told[:, 3].astype("f8")
    ends = point + direction * distance[:, None] - origin
    places, *_ = np.linalg.lstsq(corners.T, ends.T, rcond=None)
    assert_uniform(*places)
    area = np.linalg.norm(normal)
    cosine = np.abs(direction @ normal) / area
    assert np.allclose(density, distance**2 / (area * cosine), rtol=1e-3)


def test_directions_are_uniform_in_a_sphere_cone(device, rng):
    radius, center = float(rng.uniform(0.1, 1.5)), rng.uniform(1, 2, 3)
    settings = replace(floor_scene(), spheres=(Sphere("lamp", tuple(center), radius),))
    point = np.array([0.1, 0.0, -0.2])
    found, _ = light_samples(device, settings, point, COUNT, rng.integers(1 << 31))
    sine2 = radius**2 / ((center - point) ** 2).sum()
    cone = sine2 / (1 + np.sqrt(1 - sine2))
    height, turn = around(center - point, found[:, :3].astype("f8"))
    assert_uniform(height / cone, turn)
    assert np.allclose(found[:, 3], 1 / (2 * np.pi * cone), rtol=1e-3)


def test_directions_are_uniform_in_the_disc_of_a_sun(device, rng):
    axis, angle = rng.normal(size=3) + [0, 4, 0], float(rng.uniform(0.3, 80))
    settings = replace(floor_scene(), suns=(Sun(tuple(axis), (1.0, 1.0, 1.0), angle),))
    found, _ = light_samples(device, settings, np.zeros(3), COUNT, rng.integers(1 << 31))
    cone = 2 * np.sin(np.radians(angle) / 4) ** 2
    height, turn = around(axis, found[:, :3].astype("f8"))
    assert_uniform(height / cone, turn)
    assert np.allclose(found[:, 3], 1 / (2 * np.pi * cone), rtol=1e-3)


@pytest.mark.parametrize("name", ["environment", "sky"])
def test_directions_follow_the_pdf_of_environment_maps(device, rng, tmp_path, name):
    """Against the integral of the pdf that MIS weights use."""
    turn = float(rng.uniform(-0.5, 0.5)) if name == "environment" else 0.0
    if name == "environment":
        path = exr(tmp_path / "noise.exr", np.exp(2 * rng.normal(size=(8, 16, 3))))
        settings = floor_scene(environment=Environment(str(path), 1.0, 360 * turn))
    else:
        settings = floor_scene(sky=Sky(1.0, float(rng.uniform(2, 8)), float(rng.uniform(5, 85)), sun_scale=0.0))
    found, _ = light_samples(device, settings, np.zeros(3), COUNT, rng.integers(1 << 31))
    columns, rows, fine = 16, 8, 32  # edges of the bins are edges of the picture's cells
    theta = (np.arange(rows * fine) + 0.5) / (rows * fine) * np.pi
    phi = 2 * np.pi * ((np.arange(columns * fine) + 0.5) / (columns * fine) - 0.5 - turn)
    theta, phi = np.meshgrid(theta, phi, indexing="ij")
    grid = np.stack([np.sin(theta) * np.sin(phi), np.cos(theta), -np.sin(theta) * np.cos(phi), 0 * phi], -1)
    densities = environment_pdfs(device, settings, grid.reshape(-1, 4).astype("f4")).reshape(theta.shape)
    parts = densities * np.sin(theta) * (np.pi / (rows * fine)) * (2 * np.pi / (columns * fine)) * COUNT
    wanted = parts.reshape(rows, fine, columns, fine).sum((1, 3)).ravel()
    x, y, z = found[:, :3].astype("f8").T
    row = np.clip((np.arccos(np.clip(y, -1, 1)) / np.pi * rows).astype(int), 0, rows - 1)
    column = ((np.arctan2(x, -z) / (2 * np.pi) + 0.5 + turn) % 1 * columns).astype(int) % columns
    assert_chi_square(np.bincount(row * columns + column, minlength=rows * columns), wanted)
    told = environment_pdfs(device, settings, found)
    assert (np.abs(told / found[:, 3] - 1) < 1e-3).mean() > 0.995  # but on the edges of cells


def environment_pdfs(device, settings, directions):
    """environment_pdf of directions (n, 4) in a scene that only the environment lights."""
    from renderer.bvh.primitives import triangles
    from renderer.raytracing.materials import material_rows

    nothing = triangles(np.zeros((0, 3)), np.zeros((0, 3), int))
    lights = LightSampler(
        device, settings, SimpleNamespace(rows=nothing, none=nothing, bounds={}), material_rows(settings)
    )
    constants = compile_constants(replace(settings, schedule="wavefront"), False) | NO_SCHEDULE
    text = GeneratedSource("materials", kernel_source().text + DENSITY)
    kernel = device.kernel(text, "environment_pdfs", group_size=64, **constants)
    count = len(directions)
    given, out = device.buffer((count, 4)).write(directions), device.buffer(count)
    kernel(count, launch_params(settings, (8, 8), (0, 0, 8, 8), lights.fields)[()], lights.buffer, given, out)
    return out.read()


def test_lights_are_selected_by_power(device, rng, tmp_path):
    """A sphere, a quad, a sun and an environment, distinguished by radiance, against their powers in NumPy."""
    path = exr(tmp_path / "even.exr", np.full((8, 16, 3), 0.3))
    settings = many_lights(path)
    powers = {
        "bulb": (np.array([6.0, 2.0, 1.0]), 4 * np.pi * 0.2**2),
        "lamp": (np.array([10.0, 10.0, 10.0]), 0.8 * 0.8),
    }
    point = np.array([0.2, 0.05, 1.1])
    found, told = light_samples(device, settings, point, COUNT, rng.integers(1 << 31))
    luminance = np.array([0.2126, 0.7152, 0.0722])
    share = {name: light @ luminance * area for name, (light, area) in powers.items()}
    counts = {name: (np.abs(told[:, :3] - light).max(1) < 1e-3).sum() for name, (light, _) in powers.items()}
    both, wanted = counts["bulb"] + counts["lamp"], share["bulb"] / (share["bulb"] + share["lamp"])
    assert stats.binomtest(int(counts["bulb"]), int(both), wanted).pvalue > 1e-6
    far = COUNT - both
    assert far > 0.05 * COUNT and (found[:, 3] > 0).mean() > 0.9
