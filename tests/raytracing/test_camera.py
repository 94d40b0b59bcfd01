"""The ray tracer's camera: equirectangular projection, and picking of distances."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.pictures.raytrace import Picture
from renderer.raytracing.settings import Material, Quad, Settings, Sphere
from renderer.scene.cameras import Camera


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def ball(center=(0.0, 0.0, 0.0), radius=1.0, **changes):
    lamp = Material("lamp", "emitter", emission=(1.0, 1.0, 1.0))
    return Settings(materials=(lamp,), spheres=(Sphere("lamp", center, radius),), **changes)


def direction_at(camera, size, x, y):
    """The direction at pixels (x, y) of the equirectangular projection, from its definition."""
    right, up, forward = camera.axes()
    longitude, latitude = 2 * np.pi * (x / size[0] - 0.5), np.pi * (0.5 - y / size[1])
    level = np.cos(longitude) * forward + np.sin(longitude) * right
    return np.cos(latitude) * level + np.sin(latitude) * up


def test_pick_is_the_distance_along_the_view(picture, rng):
    size, camera = (200, 120), Camera((1.0, 2.0, 6.0), (0.3, -0.2, 0.1), fov_degrees=50.0)
    settings = ball(view=camera)
    right, up, forward = camera.axes()
    met = 0
    for x, y in [(100.0, 60.0), *(rng.uniform(0.2, 0.8, (40, 2)) * size)]:
        reach = np.tan(np.radians(25))
        way = forward + (2 * x / size[0] - 1) * reach * size[0] / size[1] * right + (1 - 2 * y / size[1]) * reach * up
        eye = np.array(camera.position)
        a, b, c = way @ way, way @ eye, eye @ eye - 1
        wanted = (-b - np.sqrt(b * b - a * c)) / a if b * b > a * c else None  # the way is 1 long along the view
        found = picture.pick(settings, size, x, y)
        assert (found is None) == (wanted is None), (x, y)
        if wanted is not None:
            met += 1
            assert found == pytest.approx(wanted, rel=1e-4)
    assert met >= 2


def test_picking_leaves_the_picture_as_it_is(picture):
    settings, size = ball(view=Camera((0.0, 0.0, 6.0)), samples=4), (40, 30)
    picture._drawn = None
    for _ in range(3):
        wanted = picture.draw(settings, size, 0.0)
    wanted = wanted.read()
    picture._drawn = None
    for _ in range(3):
        frame = picture.draw(settings, size, 0.0)
        assert picture.pick(settings, size, 0, 0) is None and picture.pick(settings, size, 20, 15) is not None
    assert np.array_equal(frame.read(), wanted)


def test_the_picked_distance_is_in_focus(picture):
    """A wide lens gives the pinhole picture of an edge if it is focused at the picked distance, else not."""
    lamp = Material("lamp", "emitter", emission=(1.0, 1.0, 1.0))
    corners = ((0.0, -9.0, 0.0), (9.0, -9.0, 0.0), (9.0, 9.0, 0.0), (0.0, 9.0, 0.0))
    sharp = Settings(view=Camera((0.0, 0.0, 7.0)), materials=(lamp,), quads=(Quad("lamp", corners),), samples=8)
    size = (64, 64)

    def row(settings):
        picture._drawn = None
        for _ in range(8):
            frame = picture.draw(settings, size, 0.0)
        return frame.read()[..., 0].mean(0)

    distance = picture.pick(sharp, size, 50, 30)
    wanted = row(sharp)
    assert np.abs(row(replace(sharp, lens_radius=0.5, focus_distance=distance)) - wanted).max() < 0.15
    assert np.abs(row(replace(sharp, lens_radius=0.5, focus_distance=3.0)) - wanted).sum() > 1.5


@pytest.mark.slow
def test_equirectangular_camera_sees_all_directions(picture, rng):
    """A small sphere appears at the pixel of its direction, and covers the fraction of its solid angle."""
    size, camera = (128, 64), Camera((0.2, 0.1, 0.5), (1.0, 0.3, -2.0))
    for _ in range(3):
        x, y = rng.uniform(8, 120), rng.uniform(8, 56)
        center = np.array(camera.position) + 5 * direction_at(camera, size, x, y)
        settings = ball(tuple(map(float, center)), 0.6, view=camera, projection="equirectangular", samples=64)
        picture._drawn = None
        for _ in range(64):
            frame = picture.draw(settings, size, 0.0)
        seen = frame.read()[..., 0].astype("f8")
        rows, columns = np.mgrid[:64, :128] + 0.5
        weight = np.cos(np.pi * (0.5 - rows / 64)) * (2 * np.pi / 128) * (np.pi / 64) * seen
        share = 2 * np.pi * (1 - np.sqrt(1 - (0.6 / 5) ** 2))
        assert weight.sum() == pytest.approx(share, rel=0.06)
        assert (weight * columns).sum() / weight.sum() == pytest.approx(x, abs=0.7)
        assert (weight * rows).sum() / weight.sum() == pytest.approx(y, abs=0.7)
        assert picture.pick(settings, size, x, y) == pytest.approx(4.4, rel=1e-3)


def test_equirectangular_camera_has_no_lens():
    with pytest.raises(ValueError, match="lens_radius is 0.5; an equirectangular camera has no lens"):
        Settings(projection="equirectangular", lens_radius=0.5)
