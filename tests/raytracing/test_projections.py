"""Projections of the ray tracer's camera: rays against NumPy, a picture of a known grid, picking, depth of field."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.gpu.kernel_source import GeneratedSource
from renderer.pictures.raytrace import Picture
from renderer.raytracing.kernels import NO_SCHEDULE, compile_constants, kernel_source, launch_params
from renderer.raytracing.settings import Material, Quad, Settings, Sphere
from renderer.scene.cameras import Camera

LAMP = Material("lamp", "emitter", emission=(1.0, 1.0, 1.0))
VIEW = Camera((1.0, 2.0, 6.0), (0.3, -0.2, 0.1), (0.1, 1.0, 0.05), fov_degrees=50.0)
CASES = {
    "perspective": {"lens_shift": (0.3, -0.2)},
    "orthographic": {"lens_shift": (-0.1, 0.15)},
    "fisheye": {"fisheye_degrees": 220.0},
    "equirectangular": {},
}
PROBE = """
KERNEL camera_rays(const LaunchParams params, GLOBAL const float4 *film, GLOBAL float4 *origins,
                   GLOBAL float4 *directions) {
    uint i = thread_index();
    float3 origin, direction;
    bool any = camera_ray(params, film[i].x, film[i].y, &origin, &direction);
    origins[i] = with_w(origin, any ? 1.0f : 0.0f);
    directions[i] = with_w(direction, 0.0f);
}
"""


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def settings_of(projection, **changes):
    return Settings(**{"view": VIEW, "projection": projection, **CASES[projection], **changes})


def ray_of(settings, size, sx, sy):
    """Origin and direction through a point of the film, -1 to 1, by the definitions; None outside of a fisheye."""
    (right, up, forward), eye = settings.view.axes(), np.array(settings.view.position)
    aspect, tangent = size[0] / size[1], np.tan(np.radians(settings.view.fov_degrees) / 2)
    sx, sy = sx + 2 * settings.lens_shift[0], sy + 2 * settings.lens_shift[1]
    if settings.projection == "perspective":
        return eye, forward + tangent * (aspect * sx * right + sy * up)
    if settings.projection == "orthographic":
        half = tangent * np.linalg.norm(np.subtract(settings.view.target, settings.view.position))
        return eye + half * (aspect * sx * right + sy * up), forward
    if settings.projection == "equirectangular":
        level = np.cos(np.pi * sx) * forward + np.sin(np.pi * sx) * right
        return eye, np.cos(np.pi / 2 * sy) * level + np.sin(np.pi / 2 * sy) * up
    x, y = sx * max(aspect, 1), sy * max(1 / aspect, 1)
    angle, around = np.hypot(x, y) * np.radians(settings.fisheye_degrees) / 2, np.arctan2(y, x)
    if np.hypot(x, y) > 1:
        return None
    return eye, np.cos(angle) * forward + np.sin(angle) * (np.cos(around) * right + np.sin(around) * up)


def pixel_of(settings, size, point):
    """The projection of a point of space, in pixels from the upper left corner."""
    right, up, forward = settings.view.axes()
    x, y, z = np.array([right, up, forward]) @ (np.array(point) - settings.view.position)
    aspect, tangent = size[0] / size[1], np.tan(np.radians(settings.view.fov_degrees) / 2)
    if settings.projection == "perspective":
        sx, sy = x / z / tangent / aspect, y / z / tangent
    elif settings.projection == "orthographic":
        half = tangent * np.linalg.norm(np.subtract(settings.view.target, settings.view.position))
        sx, sy = x / half / aspect, y / half
    elif settings.projection == "equirectangular":
        sx, sy = np.arctan2(x, z) / np.pi, np.arcsin(y / np.sqrt(x * x + y * y + z * z)) / (np.pi / 2)
    else:
        radius = np.arctan2(np.hypot(x, y), z) / (np.radians(settings.fisheye_degrees) / 2) / np.hypot(x, y)
        sx, sy = x * radius / max(aspect, 1), y * radius / max(1 / aspect, 1)
    sx, sy = sx - 2 * settings.lens_shift[0], sy - 2 * settings.lens_shift[1]
    return (sx + 1) / 2 * size[0], (1 - sy) / 2 * size[1]


@pytest.mark.parametrize("projection", CASES)
def test_camera_rays_are_those_of_numpy(device, rng, projection):
    size, settings = (int(rng.integers(40, 200)), int(rng.integers(40, 200))), settings_of(projection)
    film = np.zeros((256, 4), "f4")
    film[:, :2] = rng.uniform(-1, 1, (256, 2))
    film[0, :2] = 0
    constants = compile_constants(replace(settings, schedule="wavefront"), False) | NO_SCHEDULE
    source = GeneratedSource("materials", kernel_source().text + PROBE)
    kernel = device.kernel(source, "camera_rays", group_size=64, **constants)
    origins, directions = device.buffer((256, 4)), device.buffer((256, 4))
    params = launch_params(settings, size, (0, 0, *size))[()]
    kernel(256, params, device.buffer((256, 4)).write(film), origins, directions)
    seen = 0
    for point, origin, direction in zip(film, origins.read(), directions.read(), strict=True):
        wanted = ray_of(settings, size, *map(float, point[:2]))
        assert (wanted is not None) == (origin[3] == 1)
        if wanted is not None:
            seen += 1
            assert np.allclose(origin[:3], wanted[0], atol=2e-6 * np.abs(wanted[0]).max() + 1e-6)
            assert np.allclose(direction[:3], wanted[1], atol=3e-6)
    assert seen >= 40 and (projection != "fisheye" or seen < 256)


def grid_of(settings, size):
    """25 points of space by their places in the picture, and the places."""
    places = [(x, y) for x in np.linspace(0.25, 0.75, 5) * size[0] for y in np.linspace(0.25, 0.75, 5) * size[1]]
    points = []
    for index, (x, y) in enumerate(places):
        origin, direction = ray_of(settings, size, 2 * x / size[0] - 1, 1 - 2 * y / size[1])
        points.append(origin + (3 + index % 4) * direction / np.linalg.norm(direction))
    return points, places


@pytest.mark.parametrize(
    "projection", [name if name == "fisheye" else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_a_grid_of_balls_appears_where_it_should(picture, projection):
    """Balls at several distances behind a grid of pixels: nothing lies elsewhere, and each is where it is picked."""
    size, settings = (96, 72), settings_of(projection, samples=4)
    points, places = grid_of(settings, size)
    assert np.allclose([pixel_of(settings, size, point) for point in points], places, atol=1e-3)  # the two twins agree
    has_axis = projection in ("perspective", "orthographic")
    radius = 0.08 if has_axis else 0.3
    balls = tuple(Sphere("lamp", tuple(map(float, point)), radius) for point in points)
    settings = replace(settings, materials=(LAMP,), spheres=balls, max_depth=1)
    picture.restart()
    for _ in range(4):
        frame = picture.draw(settings, size, 0.0)
    seen = frame.read()[..., 0].astype("f8")
    near = np.zeros(seen.shape, bool)
    rows, columns = np.mgrid[: size[1], : size[0]] + 0.5
    for (x, y), point in zip(places, points, strict=True):
        window = (np.abs(columns - x) < 5.5) & (np.abs(rows - y) < 5.5)
        near |= window
        weight = seen * window
        assert weight.sum() > 0.4, (x, y)
        assert (weight * columns).sum() / weight.sum() == pytest.approx(x, abs=0.6)
        assert (weight * rows).sum() / weight.sum() == pytest.approx(y, abs=0.6)
        offset = point - np.array(settings.view.position)
        depth = offset @ settings.view.axes()[2] if has_axis else np.linalg.norm(offset)
        assert picture.pick(settings, size, x, y) == pytest.approx(depth - radius, abs=0.02)
    assert not seen[~near].any()


@pytest.mark.slow
def test_outside_of_a_fisheye_is_black(picture):
    """Corners have no ray: neither the background is seen there, nor is anything picked, nor in the layers."""
    size = (64, 40)
    settings = settings_of("fisheye", materials=(LAMP,), spheres=(Sphere("lamp", VIEW.position, 50.0),), samples=1)
    settings = replace(settings, materials=(replace(LAMP, kind="diffuse", emission=(0, 0, 0)),), horizon=(1, 1, 1))
    settings = replace(settings, spheres=(), zenith=(1, 1, 1))
    picture.restart()
    frame = picture.draw(settings, size, 0.0).read()[..., 0]
    rows, columns = np.mgrid[:40, :64] + 0.5
    radius = np.hypot(columns - 32, rows - 20)
    assert (frame[radius < 19] == 1).all() and (frame[radius > 21] == 0).all()
    inside = replace(settings, spheres=(Sphere("lamp", VIEW.position, 50.0),))
    assert picture.pick(inside, size, 2, 2) is None and picture.pick(inside, size, 32, 20) == pytest.approx(
        50, rel=1e-3
    )
    layers = picture.layers(inside, size)
    assert (layers["id"][radius > 21] == 0).all() and (layers["id"][radius < 19] == 1).all()
    assert (layers["albedo"][radius > 21] == 0).all() and (layers["albedo"][radius < 19] > 0).all()


@pytest.mark.slow
def test_an_orthographic_lens_is_sharp_in_the_plane_of_focus(picture):
    corners = ((0.0, -9.0, 0.0), (9.0, -9.0, 0.0), (9.0, 9.0, 0.0), (0.0, 9.0, 0.0))
    view = Camera((0.0, 0.0, 7.0))
    sharp = Settings(view=view, projection="orthographic", materials=(LAMP,), quads=(Quad("lamp", corners),), samples=8)

    def row(settings):
        picture.restart()
        for _ in range(8):
            frame = picture.draw(settings, (64, 64), 0.0)
        return frame.read()[..., 0].mean(0)

    distance = picture.pick(sharp, (64, 64), 50, 30)
    assert distance == pytest.approx(7, rel=1e-5)
    wanted = row(sharp)
    assert np.abs(row(replace(sharp, lens_radius=0.5, focus_distance=distance)) - wanted).max() < 0.15
    assert np.abs(row(replace(sharp, lens_radius=0.5, focus_distance=3.0)) - wanted).sum() > 1.5


def test_orbit_pan_and_dolly_of_an_orthographic_camera_keep_the_target(picture):
    """Movements by the mouse keep the target in the middle; a dolly magnifies as it does in perspective."""
    ball = Settings(
        view=VIEW, projection="orthographic", materials=(LAMP,), spheres=(Sphere("lamp", VIEW.target, 0.3),)
    )
    for view in (VIEW, VIEW.drag(0.2, -0.1), VIEW.scroll(3), VIEW.drag(-0.4, 0.3).scroll(-2)):
        reach = np.linalg.norm(np.subtract(view.target, view.position))
        assert picture.pick(replace(ball, view=view), (80, 60), 40, 30) == pytest.approx(reach - 0.3, rel=1e-4)
    edge = 30 + 60 * 0.25 / VIEW.target_plane_height()
    assert picture.pick(ball, (80, 60), 40, edge) is not None
    assert picture.pick(replace(ball, view=VIEW.scroll(-3)), (80, 60), 40, 30 + (edge - 30) / 0.875**3) is None
    moved = VIEW.pan(0.25, 0.0)
    assert picture.pick(replace(ball, view=moved), (80, 60), 40 + 0.25 * 60, 30) is not None
    assert picture.pick(replace(ball, view=moved), (80, 60), 40, 30) is None


@pytest.mark.parametrize("projection, camera", [("fisheye", "a fisheye"), ("equirectangular", "an equirectangular")])
def test_panoramas_have_no_lens_and_no_shift(projection, camera):
    with pytest.raises(ValueError, match=f"lens_radius is 0.5; {camera} camera has no lens, so it must be 0"):
        Settings(projection=projection, lens_radius=0.5)
    with pytest.raises(ValueError, match=rf"lens_shift is \[0.1, 0.0\]; {camera} camera has no film to shift"):
        Settings(projection=projection, lens_shift=(0.1, 0.0))
