"""Photometric files: values against NumPy's interpolation, total power, symmetries, bad input."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from renderer.errors import InputError
from renderer.formats.ies import read_ies
from renderer.gpu.kernel_source import GeneratedSource
from renderer.pictures.raytrace import Picture
from renderer.raytracing.kernels import NO_SCHEDULE, compile_constants, kernel_source, launch_params
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.lights.light_profiles import profile_axes, profile_rows
from renderer.raytracing.settings import PointLight
from tests.raytracing.lights.test_lights import floor_scene, render

VERTICAL = (0, 10, 25, 45, 70, 90, 130, 180)
HORIZONTAL = {"round": (0,), "quadrant": (0, 30, 90), "half": (0, 45, 100, 180), "all": (0, 50, 110, 200, 300, 360)}
HORIZONTAL["turned half"] = (90, 120, 180, 250, 270)
PROBE = """
KERNEL candela(const LaunchParams params, GLOBAL const float4 *lights, GLOBAL const float4 *directions,
               GLOBAL float *found) {
    uint i = thread_index();
    found[i] = profile_candela(params, lights, 0, xyz(directions[i]));
}
"""


def ies(path, horizontal, candela, head="IESNA:LM-63-2002", vertical=VERTICAL, factors="1.5 1 1", more=""):
    """A file of LM-63; `factors` are the multiplier, ballast factor and lamp factor."""
    multiplier, ballast, lamp = factors.split()
    rows = "\n".join(" ".join(f"{x:.6g}" for x in row) for row in (vertical, horizontal, *candela))
    count = f"{len(vertical)} {len(horizontal)}"
    path.write_text(f"{head}\n[TEST] made here\nTILT=NONE\n1 1000 {multiplier} {count} 1 2 0 0 0\n{ballast} {lamp} 60\n"
                    f"{rows}\n{more}")  # fmt: skip
    return path


def twin(horizontal, candela, directions, axes):
    """Candela towards directions (n, 3), by the definition of each symmetry."""
    x, y, z = directions @ axes[1], directions @ axes[2], directions @ axes[0]
    theta, phi = np.degrees(np.arccos(np.clip(z, -1, 1))), np.degrees(np.arctan2(y, x)) % 360
    first, last = horizontal[0], horizontal[-1]
    if len(horizontal) == 1:
        return np.interp(theta, VERTICAL, candela[0])
    if (first, last) == (90, 270):
        phi = np.where((phi < 90) | (phi > 270), (180 - phi) % 360, phi)
    elif last <= 180:
        phi = np.minimum(phi, 360 - phi)
        phi = np.minimum(phi, 180 - phi) if last == 90 else phi
    return RegularGridInterpolator((horizontal, VERTICAL), candela)(np.stack([phi, theta], 1))


@pytest.mark.parametrize("name", HORIZONTAL)
def test_candela_by_direction_are_those_of_numpy_and_sum_to_the_lumens(device, rng, tmp_path, name):
    horizontal = HORIZONTAL[name]
    candela = rng.uniform(0, 1000, (len(horizontal), len(VERTICAL)))
    candela[:, 0], candela[:, -1] = 500, 20  # one direction each
    if horizontal[-1] == 360:
        candela[-1] = candela[0]
    path = ies(tmp_path / "lamp.ies", horizontal, candela)
    light = PointLight(
        file=str(path), direction=tuple(rng.normal(size=3)), rotation_degrees=float(rng.uniform(-90, 90))
    )
    k = np.arange(1 << 14) + 0.5  # a spiral of equal areas
    height, turn = 1 - 2 * k / len(k), k * np.pi * (3 - np.sqrt(5))
    directions = np.stack([np.sqrt(1 - height**2) * np.cos(turn), np.sqrt(1 - height**2) * np.sin(turn), height], 1)
    rows = np.concatenate([np.zeros((2, 4), "f4"), *profile_rows([light], 2)])
    rows.view("i4")[0, 2] = 2
    settings = floor_scene(point_lights=(light,), schedule="wavefront")
    source = GeneratedSource("materials", kernel_source().text + PROBE)
    constants = compile_constants(settings, False) | NO_SCHEDULE
    kernel = device.kernel(source, "candela", group_size=64, **constants)
    given = device.buffer((len(k), 4)).write(np.pad(directions, ((0, 0), (0, 1))).astype("f4"))
    found, lights = device.buffer(len(k)), device.buffer(rows.shape).write(rows)
    kernel(len(k), launch_params(settings, (8, 8), (0, 0, 8, 8), {"non_area_lights": 1})[()], lights, given, found)
    wanted = 1.5 * twin(horizontal, candela, directions, profile_axes(light))
    assert np.allclose(found.read(), wanted, rtol=1e-3, atol=0.5)
    assert found.read().mean() * 4 * np.pi == pytest.approx(read_ies(path).lumens(), rel=2e-3)


def test_axes_are_right_handed_and_as_the_help_says(rng):
    assert np.allclose(profile_axes(PointLight()), [[0, -1, 0], [1, 0, 0], [0, 0, -1]])
    assert np.allclose(profile_axes(PointLight(rotation_degrees=90.0)), [[0, -1, 0], [0, 0, -1], [-1, 0, 0]], atol=1e-9)
    for direction in ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), tuple(rng.normal(size=3))):
        axes = profile_axes(PointLight(direction=direction, rotation_degrees=20.0))
        assert np.allclose(axes @ axes.T, np.eye(3)) and np.allclose(axes[0], direction / np.linalg.norm(direction))
        assert np.linalg.det(axes) == pytest.approx(np.linalg.det(profile_axes(PointLight())))


def test_a_profiled_light_lights_a_floor(device, tmp_path):
    """Irradiance below is candela over squared distance; nothing beyond the file's vertical angles."""
    path = ies(tmp_path / "lamp.ies", (0,), [[800, 400, 100]], vertical=(0, 30, 60))
    picture = Picture(SimpleNamespace(device=device))
    scene = floor_scene(point_lights=(PointLight((0.0, 2.0, 0.0), (0.5, 1.0, 2.0), file=str(path)),))
    wanted = 0.5 / np.pi * 1.5 * 800 / 4 * np.array([0.5, 1.0, 2.0])
    assert np.allclose(render(picture, scene, samples=1), wanted, rtol=0.02)
    upward = replace(scene, point_lights=(replace(scene.point_lights[0], direction=(0.0, 1.0, 0.0)),))
    assert not render(picture, upward, samples=1).any()
    flux = read_ies(path).lumens()
    sampler = LightSampler(
        device, scene, picture._geometry.primitives, np.zeros(2, [("emission", "f4", 4), ("kind", "i4")])
    )
    luminance = np.array([0.2126, 0.7152, 0.0722]) @ [0.5, 1.0, 2.0]
    assert sampler.fields["inverse_light_power"] == pytest.approx(np.pi / (flux * luminance), rel=1e-5)


def test_factors_of_old_and_new_files(tmp_path):
    """The multiplier and the ballast factor count; the lamp factor does until 1995."""
    for head, factor in (("IESNA:LM-63-2002", 6.0), ("IESNA:LM-63-1995", 24.0), ("", 24.0), ("IES:LM-63-2019", 6.0)):
        path = ies(tmp_path / "lamp.ies", (0,), [[10, 5, 0]], head, (0, 45, 90), "2 3 4")
        assert read_ies(path).candela[0].tolist() == [10 * factor, 5 * factor, 0]


GOOD = "TILT=NONE\n1 1000 1 3 1 1 2 0 0 0\n1 1 60\n0 45 90\n0\n10 5 0\n"


@pytest.mark.parametrize("old, new, words", [
    ("TILT=NONE", "TLT=NONE", "not a photometric file: it has no line TILT="),
    ("TILT=NONE", "TILT=lamp.tlt", 'TILT is "LAMP.TLT"; allowed are NONE and INCLUDE'),
    ("TILT=NONE", "TILT=INCLUDE\n1 2\n0 90\n1 0.5", "has tilt factors other than 1"),
    ("1 1000 1 3", "1 1000 1 0", 'number of vertical angles: found "0"; it must be 1 to 1441'),
    ("1 1000 1 3", "1 1000 1 1000000", "found \"1000000\"; it must be 1 to 1441"),
    ("1 1000 1 3", "1 1000 1 2.5", "number of vertical angles is 2.5; it must be whole"),
    ("3 1 1 2 0", "3 1 2 2 0", "is of type B; only type C"),
    ("3 1 1 2 0", "3 1 7 2 0", "is of the photometric type 7; only type C"),
    ("0 45 90", "0 45 45", "vertical angles go from 45 to 45; they must increase by at least 0.001"),
    ("0 45 90", "0 45 190", 'vertical angles: found "190"; it must be 0 to 180'),
    ("10 5 0", "10 -5 0", 'candela: found "-5"; it must be 0 to 1e[+]09'),
    ("10 5 0", "10 nan 0", 'candela: found "nan"'),
    ("10 5 0", "10 5", "ends early: 3 values of candela are wanted, 2 are left"),
    ("10 5 0", "10 5 0 7", "has 1 values more than its angles want"),
    ("1 1 60", "-1 1 60", "the factor of its candela is -1"),
    ("1 1000 1 3 1", "1 1000 1 3 2", "ends early|horizontal angles"),
])  # fmt: skip
def test_bad_files_are_one_sentence(tmp_path, old, new, words):
    assert old in GOOD
    path = tmp_path / "bad.ies"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError, match=words) as error:
        read_ies(path)
    assert "\n" not in str(error.value)
    path.write_text(GOOD)
    assert read_ies(path).lumens() > 0
