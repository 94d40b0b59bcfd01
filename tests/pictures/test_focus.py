"""Depth of field by diffusion against SciPy, closed forms and the ray tracer's own thin lens."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import solve_banded
from scipy.sparse import diags
from scipy.sparse.linalg import spsolve

from renderer.errors import InputError
from renderer.gpu import DeviceContext
from renderer.paths import SCENES
from renderer.pictures import load, raytrace
from renderer.pictures.focus import CONDUCTANCE_SCALE, Lens, Picture, Settings, assemble_gather_matrix
from renderer.scene.cameras import Camera

# A small bright square in front of black, looked at along -z from 10 away; its face is at z = 0.
SQUARE = """
picture = "raytrace"
[settings]
max_depth = 1
[settings.view]
position = [0.0, 0.0, 10.0]
target = [0.0, 0.0, 0.0]
fov_degrees = 20.0
[[settings.materials]]
name = "lamp"
kind = "emitter"
emission = [3.0, 2.0, 1.0]
[[settings.quads]]
material = "lamp"
corners = [[-0.4, -0.4, 0.0], [0.4, -0.4, 0.0], [0.4, 0.4, 0.0], [-0.4, 0.4, 0.0]]
[test]
compare = "off"
"""
SIZE = (64, 48)


@pytest.fixture(scope="session")
def gpu_of(device):
    class One(DeviceContext):
        devices = [device]

    return One()


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "square.toml").write_text(SQUARE)
    return Settings(
        source=str(tmp_path / "square.toml"),
        view=Lens(focus_distance=6.0, lens_radius=0.4),
        show="separable",
        samples=1,
    )


def circles_of(picture, settings, size=SIZE):
    picture._open(settings.source)
    return picture._circles(settings, size).read()


def test_circles_follow_the_thin_lens(gpu_of, settings):
    picture = Picture(gpu_of)
    circles = circles_of(picture, settings)
    pixels = SIZE[1] / (2 * np.tan(np.radians(10)) * 6.0)
    assert circles[24, 32] == pytest.approx(2 * 0.4 * pixels * abs(10 - 6) / 10, rel=1e-5)
    assert circles[0, 0] == pytest.approx(2 * 0.4 * pixels, rel=1e-5)  # nothing is hit: infinitely far
    sharp = replace(settings, view=Lens(focus_distance=10.0, lens_radius=0.4))
    assert circles_of(picture, sharp)[24, 32] < 1e-4


def test_split_equals_scipy_line_by_line(gpu_of, settings):
    picture = Picture(gpu_of)
    blurred = picture.draw(settings, SIZE, 0.0).read()[..., :3].astype("f8")
    first, circles = sharp_of(gpu_of, picture, settings), circles_of(picture, settings).astype("f8")
    for axis in (1, 0):
        first, c = np.moveaxis(first, axis, 0), np.moveaxis(circles, axis, 0)
        s = CONDUCTANCE_SCALE * np.minimum(c[1:], c[:-1]) ** 2
        out = np.empty_like(first)
        for k in range(first.shape[1]):
            main = 1 + np.append(s[:, k], 0) + np.insert(s[:, k], 0, 0)
            ab = np.vstack([np.insert(-s[:, k], 0, 0), main, np.append(-s[:, k], 0)])
            out[:, k] = solve_banded((1, 1), ab, first[:, k])
        first = np.moveaxis(out, 0, axis)
    assert np.abs(blurred - first).max() < 2e-4


def sharp_of(gpu_of, picture, settings):
    """The pinhole's first sample, from a separate tracer."""
    shapes = replace(picture._traced, samples=settings.samples, seed=settings.seed)
    return raytrace.Picture(gpu_of).draw(shapes, SIZE, 0.0).read()[..., :3].astype("f8")


@pytest.mark.parametrize("size", [(64, 48), (30, 40)])
def test_whole_equals_a_sparse_solver(gpu_of, settings, size):
    picture = Picture(gpu_of)
    blurred = picture.draw(replace(settings, show="full"), size, 0.0).read()[..., :3]
    circles = circles_of(picture, settings, size).astype("f8")
    shapes = replace(picture._traced, samples=1, seed=1)
    sharp = raytrace.Picture(gpu_of).draw(shapes, size, 0.0).read()[..., :3].astype("f8")
    height, width = circles.shape
    weight = (CONDUCTANCE_SCALE * circles**2).ravel()
    n = weight.size
    right = weight * (np.arange(n) % width < width - 1)
    left = weight * (np.arange(n) % width > 0)
    down, up = weight * (np.arange(n) < n - width), weight * (np.arange(n) >= width)
    matrix = diags(
        [1 + right + left + up + down, -right[:-1], -left[1:], -down[:-width], -up[width:]], [0, 1, -1, width, -width]
    )
    want = spsolve(matrix.tocsc(), sharp.reshape(n, 3)).reshape(height, width, 3)
    assert np.abs(blurred - want).max() < 2e-4
    assert picture.report()["band"] == min(size)


def test_the_gathering_matrix_is_not_symmetric(rng):
    ab = assemble_gather_matrix(rng.random((5, 7)).astype("f4"), 1.0)
    assert ab.shape == (11, 35) and not np.array_equal(ab[4, 1:], ab[6, :-1])
    columns = np.zeros(35)
    for d, offset in ((0, 5), (4, 1), (5, 0), (6, -1), (10, -5)):  # rows add up to 1: a flat picture stays flat
        row = ab[d]
        columns += np.roll(row, -offset) if offset else row
    assert np.allclose(columns, 1, atol=1e-5)


def test_what_is_in_focus_stays_sharp_and_light_is_kept(gpu_of, settings):
    picture = Picture(gpu_of)
    focused = replace(settings, view=Lens(focus_distance=10.0, lens_radius=0.4))
    sharp = picture.draw(replace(focused, show="pinhole"), SIZE, 0.0).read()
    for show in ("separable", "full"):
        inside = Picture(gpu_of).draw(replace(focused, show=show), SIZE, 0.0).read()
        assert np.abs(inside[20:28, 28:36] - sharp[20:28, 28:36]).max() < 0.01
    closed = Picture(gpu_of).draw(replace(settings, view=Lens(6.0, 0.0)), SIZE, 0.0).read()
    assert np.allclose(closed, sharp, atol=1e-6)
    open_wide = replace(settings, view=Lens(6.0, 1.2))
    blurred = Picture(gpu_of).draw(open_wide, SIZE, 0.0).read()  # symmetric systems: columns add up to 1
    assert blurred[..., :3].sum() == pytest.approx(sharp[..., :3].sum(), rel=1e-4)
    assert blurred.max() < 0.9 * sharp.max()


def test_the_thin_lens_shows_the_plane_in_focus_like_a_pinhole(gpu_of, settings):
    shapes = load(Path(settings.source)).settings
    tracer = raytrace.Picture(gpu_of)

    def mean(**more):
        last = [tracer.draw(replace(shapes, samples=64, **more), SIZE, 0.0) for _ in range(64)][-1]
        return last.read()[..., 0].astype("f8")

    pinhole, focused, far = (
        mean(),
        mean(lens_radius=0.4, focus_distance=10.0),
        mean(lens_radius=0.4, focus_distance=6.0),
    )
    assert np.abs(pinhole - focused).max() < 3 * 0.5 / np.sqrt(64) * 3  # edges are sampled, 64 times
    assert focused[24, 32] == 3.0 and focused[5, 5] == 0.0
    # Out of focus the square is convolved with a disc: the variance of its profile grows by c^2 / 16, the disc's.
    x = np.arange(SIZE[0]) + 0.5

    def variance(image):
        profile = image.sum(axis=0)
        middle = (profile * x).sum() / profile.sum()
        return (profile * (x - middle) ** 2).sum() / profile.sum()

    circle = 2 * 0.4 * SIZE[1] / (2 * np.tan(np.radians(10)) * 6.0) * 0.4
    assert variance(far) - variance(pinhole) == pytest.approx(circle**2 / 16, rel=0.06)


def test_diffusion_spreads_as_the_lens_does(gpu_of, settings):
    """For circles all alike, one implicit step spreads a row by 2 s = c^2 / 16, the disc's own variance."""
    picture, size = Picture(gpu_of), (96, 96)
    picture.draw(settings, size, 0.0)
    blur = picture._cache["blur"][1]
    circle = 8.0
    blur.diameters.write(np.full((96, 96), circle, "f4"))
    point = np.zeros((96, 96, 4), "f4")
    point[48, 48] = 1
    spread = blur(picture.device.buffer(point.shape).write(point)).read()[..., 0].astype("f8")
    x = np.arange(96) - 48
    for profile in (spread.sum(axis=0), spread.sum(axis=1)):
        assert profile.sum() == pytest.approx(1, rel=1e-4)
        assert (profile * x**2).sum() == pytest.approx(circle**2 / 16, rel=1e-3)


def test_beside_shows_both_and_tiles_are_parts(gpu_of, settings):
    beside = replace(settings, show="compare")
    whole = Picture(gpu_of).draw(beside, (80, 40), 0.0).read()
    left = Picture(gpu_of).draw(settings, (40, 40), 0.0).read()
    right = Picture(gpu_of).draw(replace(settings, show="thin_lens"), (40, 40), 0.0).read()
    assert np.array_equal(whole[:, :40], left) and np.array_equal(whole[:, 40:], right)
    part = Picture(gpu_of).draw(beside, (80, 40), 0.0, (25, 7, 31, 20)).read()
    assert np.array_equal(part, whole[7:27, 25:56])


def test_mouse_and_bad_input(gpu_of, settings, tmp_path):
    assert Lens(4.0, 0.1).drag(0.0, 0.5).focus_distance == pytest.approx(2.0)
    assert (
        Lens(4.0, 0.1).drag(0.5, 0.0).lens_radius == pytest.approx(0.2) and Lens(4.0, 0.1).scroll(1).focus_distance > 4
    )
    with pytest.raises(InputError, match="needs a scene of the ray tracer"):
        Picture(gpu_of).draw(replace(settings, source=str(SCENES / "fern.toml")), SIZE, 0.0)
    with pytest.raises(InputError, match="too many for show = full"):
        assemble_gather_matrix(np.zeros((700, 700), "f4"), 1.0)
    scene = load(SCENES / "focus.toml")
    assert scene.picture == "focus" and isinstance(load(Path(scene.settings.source)).settings.view, Camera)
