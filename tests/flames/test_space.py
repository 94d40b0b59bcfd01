"""Flames with z: cameras, depth of field, z of variations, stages, direct color and hidden points.

Most flames here are constant maps: every chain sits at one point, whose bucket, color and absence tell what the kernel
did.
"""

import math

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.flames.camera import FlameView, bucket_transform, plane_to_buckets, space_to_buckets
from renderer.flames.chaos_game import BucketRect
from renderer.flames.genome import Flame, Xform
from renderer.flames.solid_pass import inverse_camera
from renderer.flames.temporal import make_temporal_samples
from renderer.flames.xml.write import to_xml
from renderer.pictures import load
from tests.flames.games import parse_flames, run_chaos_game

SIZE = (200, 160)
POINTS = np.array([[0.3, 0.2, 0.5], [-0.4, 0.6, -0.3], [0.7, -0.5, 0.2]])
VIEW = FlameView((0.1, 0.2), 160 / 50)
WINDOW = BucketRect(0, 0, 400, 400)
CAMERA = np.array([100.0, 0, 200, 0, 100.0, 200])  # buckets of the plane, y down
# Cameras of JWildfire, and the pixels where its renderer puts POINTS (50 pixels a unit, center 0.1, -0.2).
JWILDFIRE = [
    (dict(cam_pitch=0.6), 0.0, [(110, 84.137294314), (75, 123.229705548), (130, 63.720184893)]),
    (
        dict(cam_pitch=0.6, cam_yaw=0.4, cam_perspective=0.3), 0.0,
        [(115.479196099, 76.892427698), (87.938490317, 129.509492933), (115.938304429, 56.594200517)],
    ),
    (
        dict(cam_pitch=-0.4, cam_yaw=0.9, cam_roll=0.35, cam_perspective=0.25, cam_pos_x=0.2, cam_pos_y=-0.1,
             cam_pos_z=0.15), 0.0,
        [(128.987246709, 86.822872316), (107.089519885, 105.56734788), (110.64199036, 48.345225728)],
    ),
    (
        dict(cam_pitch=0.3, cam_yaw=-0.5, cam_roll=0.2, cam_perspective=0.1, cam_pos_z=0.3), 25.0,
        [(101.854385908, 100.907407307), (64.540752801, 91.759135350), (128.038975506, 100.787539917)],
    ),
]  # fmt: skip


def projected(camera, points):
    rows = camera[:12].reshape(3, 4) @ np.concatenate([points, np.ones((len(points), 1))], 1).T
    return (rows[:2] / rows[2]).T


@pytest.mark.parametrize(("fields", "rotation", "pixels"), JWILDFIRE)
def test_jwildfires_cameras_put_points_where_it_does(fields, rotation, pixels):
    flame = Flame(cam_model="jwildfire", **fields)
    camera = space_to_buckets(FlameView((0.1, 0.2), 160 / 50, rotation), flame, "down", SIZE, 1, 0)
    assert np.allclose(projected(camera, POINTS), pixels, atol=1e-6)


def test_apophysis_camera_by_its_formula(rng):
    """z - zpos, yaw about z, pitch about x, perspective, then the plane's view."""
    for _ in range(5):
        pitch, yaw, perspective, zpos = rng.uniform(-1, 1, 4) * (2, 3, 0.3, 1)
        flame = Flame(cam_pitch=pitch, cam_yaw=yaw, cam_perspective=perspective, cam_zpos=zpos)
        x, y, z = POINTS.T - np.array([[0], [0], [zpos]])
        x, y = x * math.cos(yaw) + y * math.sin(yaw), y * math.cos(yaw) - x * math.sin(yaw)
        y, z = y * math.cos(pitch) - z * math.sin(pitch), y * math.sin(pitch) + z * math.cos(pitch)
        plane = np.stack([x, y, np.ones(3) * (1 - perspective * z)]) / (1 - perspective * z)
        wanted = plane_to_buckets(VIEW, "down", SIZE, 1, 0).reshape(2, 3) @ plane
        assert np.allclose(projected(space_to_buckets(VIEW, flame, "down", SIZE, 1, 0), POINTS), wanted.T)


def test_a_drag_orbits_flames_with_a_camera():
    assert FlameView().drag(0.1, 0.2).center != (0.0, 0.0)
    view = FlameView(orbits=True).drag(0.1, 0.2)
    assert (view.yaw_degrees, view.pitch_degrees, view.center) == (18.0, -36.0, (0.0, 0.0))
    turned = space_to_buckets(view, Flame(cam_pitch=0.5), "down", SIZE, 1, 0)
    flame = Flame(cam_pitch=0.5 + math.radians(-36), cam_yaw=math.radians(18))
    assert np.allclose(turned, space_to_buckets(FlameView(), flame, "down", SIZE, 1, 0))


def constant(point, variations, **fields):
    """An xform that maps everything to the variations of one point."""
    x, y, z = point
    return Xform((0.0, 0.0, 0.0, x, 0.0, 0.0, 0.0, y, 0.0, 0.0, 0.0, z), variations=variations, **fields)


def sums_of(device, xform, camera=CAMERA, **fields):
    game = run_chaos_game(device, Flame((xform,), **fields), 8, 1024, camera=camera, window=WINDOW)
    return game.sums.read().reshape(400, 400, 4).astype("f8")


def plotted_point(device, xform, **fields):
    """The point (x, y) of the plane that all chains sit at."""
    rows, columns = np.nonzero(sums_of(device, xform, **fields)[..., 3])
    assert len(rows) == 1, len(rows)
    return (columns[0] - 199.5) / 100, (rows[0] - 199.5) / 100


SIDE = np.array([100.0, 0, 0, 200, 0, 0, 100.0, 200, 0, 0, 0, 1, 1e-6])  # shows x and z


def test_z_of_variations(device):
    x, y, z, w = 0.6, -0.4, 0.5, 0.8
    r2 = x * x + y * y
    for name, preserves, wanted in (
        ("bubble", False, (w * x / (r2 / 4 + 1), w * (2 / (r2 / 4 + 1) - 1))),
        ("swirl", True, (w * (x * math.sin(r2) - y * math.cos(r2)), w * z)),
        ("hemisphere", False, (w * x / math.sqrt(r2 + 1), w / math.sqrt(r2 + 1))),
    ):
        found = plotted_point(device, constant((x, y, z), {name: w}), camera=SIDE, preserve_z=preserves)
        assert np.allclose(found, wanted, atol=0.006), name


def test_stages_are_applied_in_order(device):
    """pre_, then the sum, then post_; blurs add to the point, and flatten makes z 0."""

    def spherical(p, w):
        return w * p / (p @ p)

    p = np.array([0.6, -0.4])
    table = {"pre_spherical": 0.7, "linear": 0.5, "bubble": 0.3, "post_eyefish": 0.9}
    q = spherical(p, 0.7)
    total = 0.5 * q + 0.3 * q / (q @ q / 4 + 1)
    wanted = 2 * 0.9 * total / (np.linalg.norm(total) + 1)
    found = plotted_point(device, Xform((0, 0, 0.6, 0, 0, -0.4), variations=table))
    assert np.allclose(found, wanted, atol=0.006)
    shown = plotted_point(device, constant((0.6, -0.4, 0.5), {"linear": 0.5, "flatten": 1.0}), camera=SIDE)
    assert np.allclose(shown, (0.3, 0.0), atol=0.006)


def test_direct_color_and_hidden_points(device):
    colors = tuple((float(k), 0.0, 0.0) for k in range(256))
    xform = Xform((0, 0, 0.6, 0, 0, -0.4), color=0.0, color_speed=1.0, variations={"dc_linear": 1.0}, var_color=0.5)
    sums = sums_of(device, xform, colors=colors).sum((0, 1))
    t = (math.cos(0.3) * 0.6 - math.sin(0.3) * 0.4) / 0.8
    assert abs(sums[0] / sums[3] * 255 - 256 * 0.5 * abs((0.5 * (t + 1)) % 1)) < 1.5  # half way from 0
    hidden = Xform((0, 0, 1.6, 0, 0, -0.4), variations={"crop": 1.0}, parameters={"crop_zero": 1.0})
    assert sums_of(device, hidden).sum() == 0


def test_depth_of_field_blurs_by_the_distance(device):
    """Points at z are spread over a disc of radius 0.1 dof |z|, denser towards its center: its mean radius is half."""
    flame = Flame((constant((0.1, 0.2, 1.5), {"linear": 1.0}),), cam_dof=4.0)
    camera = space_to_buckets(FlameView((0.0, 0.0), 4.0), flame, "down", (400, 400), 1, 0)
    sums = run_chaos_game(device, flame, 20, 4096, camera=camera, window=WINDOW).sums.read()[:, 3].reshape(400, 400)
    rows, columns = np.indices((400, 400))
    radius = np.hypot((columns - 199.5) / 100 - 0.1, (rows - 199.5) / 100 - 0.2)
    mean = (radius * sums).sum() / sums.sum()
    assert abs(mean - 0.3) < 0.01 and radius[sums > 0].max() < 0.6 + 0.02


def test_cameras_survive_a_file():
    text = (
        '<flame name="a" version="JWildfire V7.00" size="64 48" cam_pitch="0.5" cam_persp="0.2" cam_dof="0.3" '
        'preserve_z="1">'
        '<xform weight="1" color="0" coefs="1 0 0 1 0 0" spherical3D="0.5" pre_julia3D="0.2" pre_julia3D_power="3" '
        'post_bubble="0.3" var_color="0.4"/><color index="0" rgb="9 9 9"/></flame>'
    )
    (key,), warnings = parse_flames(text)
    assert warnings == [] and key.flame.cam_model == "jwildfire" and key.flame.preserve_z and key.flame.has_z
    assert (key.flame.cam_pitch, key.flame.cam_perspective, key.flame.cam_dof) == (0.5, 0.2, 0.3)
    xform = key.flame.xforms[0]
    assert xform.parameters == {"pre_julia3D_power": 3.0} and xform.var_color == 0.4
    assert set(xform.variations) == {"spherical3D", "pre_julia3D", "post_bubble"} and key.view.orbits
    (again,), warnings = parse_flames(to_xml([key]))
    assert warnings == [] and again == key


def test_blur_curve_scales_the_blur_by_the_squared_distance_from_the_middle():
    """Fractorium's: (10 times the distance in halves of the picture's sides) squared, over 4 blur_curve."""
    flame = Flame(cam_pitch=0.4, cam_dof=0.3, blur_curve=45.0)
    camera = space_to_buckets(VIEW, flame, "down", SIZE, 2, 8)
    rows = camera[32:].reshape(2, 4)
    x, y, z = POINTS.T
    across, down = x / ((200 + 8) / 2 / 50), (math.cos(0.4) * y - math.sin(0.4) * z) / ((160 + 8) / 2 / 50)
    found = rows @ np.array([x, y, z, np.ones(3)])
    assert np.allclose((found**2).sum(0), 100 * (across**2 + down**2) / (4 * 45))
    plain = space_to_buckets(VIEW, Flame(cam_pitch=0.4, cam_dof=0.3), "down", SIZE, 2, 8)
    assert plain[32:].tolist() == [0, 0, 0, 1, 0, 0, 0, 0]


def test_no_number_that_a_file_may_hold_overflows_the_camera(tmp_path, rng):
    """Numbers up to MAX_NUMBER and down to the smallest, in any combination; NumPy's warnings are errors."""
    names = (
        "scale zoom rotate cam_pitch cam_yaw cam_roll cam_persp cam_zpos cam_pos_x cam_pos_z cam_dof cam_xfocus".split()
    )
    names += "cam_dof_area cam_dof_exponent cam_zdimish cam_zdimdist blur_curve new_dof".split()
    words, path, drawn = (
        ["0", "1", "-1", "1e30", "-1e30", "1e-30", "5e-324", "1e4", "-100", "30"],
        tmp_path / "a.flame",
        0,
    )
    for _ in range(400):
        chosen = {name: rng.choice(words) for name in rng.choice(names, 4)} | {"center": " ".join(rng.choice(words, 2))}
        attributes = " ".join(f'{name}="{word}"' for name, word in chosen.items())
        version = rng.choice(["EMBER-1.0", "Apophysis 7X", "JWF 1.0"])
        xform = '<xform weight="1" linear="1" coefs="1 0 0 1 0 0"/>'
        path.write_text(f'<flame version="{version}" {attributes}>{xform}</flame>')
        try:
            settings = load(path).settings
        except InputError:
            continue
        drawn += 1
        with np.errstate(all="raise", under="ignore"):
            for sample in make_temporal_samples(settings, 0.0)[0]:
                camera = bucket_transform(sample.view, sample.flame, settings.y_axis, (16, 12), 1, 3)
                assert np.isfinite(camera).all(), chosen
    assert drawn > 50


def test_the_inverse_of_a_camera_almost_infinitely_far_away_is_finite():
    camera = np.zeros(20)
    camera[:12], camera[13:17] = 1e-60 * np.eye(3, 4).ravel(), (0, 0, 1, 0)
    assert np.isfinite(list(inverse_camera(camera, 1.0))).all()
