"""Light-field pictures against formulas, a NumPy reference and planes of known depth."""

import contextlib
import io
import json
import types
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from renderer import cli
from renderer.formats.images import linear_to_srgb, srgb_to_linear
from renderer.images.metrics import psnr
from renderer.lightfields import kernels
from renderer.lightfields.aperture import (
    VIEW_SHIFT,
    ApertureShape,
    VirtualCamera,
    camera_position,
    view_halves,
    view_shifts,
    view_weights,
)
from renderer.lightfields.depth_colors import gray_table, perceptual_table
from renderer.lightfields.device_views import GUARD_ROWS
from renderer.paths import ROOT
from renderer.pictures import lightfield, load, open_picture
from renderer.pictures.lightfield import Picture, Settings
from tests import emulated
from tests.lightfields.synthetic_planes import disparity_of, layered_views, smooth_views

BALLS = ROOT / "tests/pictures/balls.toml"
LINEAR = srgb_to_linear(np.arange(256, dtype="u1")).astype("f8")


@pytest.fixture
def field_file(tmp_path):
    """Saves an array of views; every call another file, since a picture keeps the field of a name."""
    count = iter(range(99))

    def save(views):
        path = tmp_path / f"field{next(count)}.npy"
        np.save(path, views)
        return str(path)

    return save


@pytest.fixture(scope="session")
def picture(device):
    return Picture(types.SimpleNamespace(device=device))


def drawn(picture, settings, size=None, tile=None):
    """(height, width, 3) linear float64 of the finished picture."""
    size = size or lightfield.read_light_field(settings.light_field).size
    for _ in range(picture.sample_count(settings, size)):
        frame = picture.draw(settings, size, 0.0, tile)
    pixels = frame.read()
    assert (pixels[..., 3] == 1).all()
    return pixels[..., :3].astype("f8")


def by_formula(field, records, table=LINEAR):
    """Stacks (n, height, width, 3) of shifted views in linear light, NaN where a view does not reach, and weights."""
    height, width = field.pixels.shape[1:3]
    linear = table[field.pixels[..., :3]]
    stack = np.full((len(records), height, width, 3), np.nan)
    for index, tap in enumerate(records):
        y, x = np.mgrid[0:height, 0:width]
        x0, y0, fx, fy = x + tap["column"], y + tap["row"], float(tap["fx"]), float(tap["fy"])
        inside = (x0 >= 0) & (y0 >= 0) & (x0 + (fx > 0) < width) & (y0 + (fy > 0) < height)
        x0, y0 = np.where(inside, x0, 0), np.where(inside, y0, 0)
        x1, y1 = np.minimum(x0 + 1, width - 1), np.minimum(y0 + 1, height - 1)
        view = linear[tap["view"]]
        value = (view[y0, x0] * (1 - fx) + view[y0, x1] * fx) * (1 - fy)
        value = value + (view[y1, x0] * (1 - fx) + view[y1, x1] * fx) * fy
        stack[index] = np.where(inside[..., None], value, np.nan)
    return stack, records["weight"].astype("f8")


def mean_by_formula(stack, weights):
    seen = np.isfinite(stack)
    weight = (seen * weights[:, None, None, None]).sum(0)
    total = (np.nan_to_num(stack) * weights[:, None, None, None]).sum(0)
    return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)


def records_of(field, settings):
    eye = settings.view
    weights = view_weights(field, eye, settings.aperture_shape)
    return view_shifts(field, weights, camera_position(field, eye.u, eye.v), settings.disparity)


@pytest.mark.parametrize("disparity", [1.0, 2.5, None])
def test_plane_is_sharp_only_at_its_own_disparity(picture, field_file, rng, disparity):
    disparity = rng.uniform(-3, 3) if disparity is None else disparity
    views, _ = smooth_views(rng, 5, 5, 96, disparity)
    settings = Settings(field_file(views), aperture_shape="all")
    inner = (slice(8, -8), slice(8, -8))

    def sharpness(at):
        shown = linear_to_srgb(drawn(picture, replace(settings, disparity=at)))
        return psnr(shown[inner], views[2, 2][inner])

    assert sharpness(disparity) > 40
    for off in (-3.0, -2.0, 2.0, 3.0):
        assert sharpness(disparity + off) < 33


def test_disparity_zero_is_the_mean(picture, field_file, rng):
    views = rng.integers(0, 256, (3, 4, 33, 47, 3)).astype("u1")
    mean = drawn(picture, Settings(field_file(views), aperture_shape="all"))
    np.testing.assert_allclose(mean, LINEAR[views].mean((0, 1)), atol=1e-6)


@pytest.mark.parametrize("channels", [3, 4])
def test_pinhole_at_a_camera_is_its_view_bit_for_bit(picture, field_file, rng, channels):
    views = rng.integers(0, 256, (5, 3, 21, 34, channels)).astype("u1")
    views[..., 3:] = 255
    settings = Settings(field_file(views), VirtualCamera(aperture=0.0), disparity=3.7)
    assert np.array_equal(linear_to_srgb(drawn(picture, settings)), views[2, 1, ..., :3])
    corner = replace(settings, view=VirtualCamera(-1.0, 1.0, 0.0))
    assert np.array_equal(linear_to_srgb(drawn(picture, corner)), views[4, 0, ..., :3])


def test_refocusing_is_linear_in_light(picture, field_file, rng):
    whole = rng.integers(0, 256, (4, 4, 40, 40, 3)).astype("u1")
    part = rng.random(whole.shape) < 0.5
    first, second = np.where(part, whole, 0).astype("u1"), np.where(part, 0, whole).astype("u1")
    a, b, sum_of_both = (drawn(picture, Settings(field_file(views), disparity=1.3)) for views in (first, second, whole))
    np.testing.assert_allclose(a + b, sum_of_both, atol=2e-6)


def test_impulse_moves_by_disparity_times_camera_position(picture, field_file, rng):
    row, column, disparity = rng.integers(0, 5), rng.integers(0, 7), int(rng.integers(-4, 5))
    views = np.zeros((5, 7, 50, 60, 3), "u1")
    views[row, column, 25, 30] = 255
    shown = drawn(picture, Settings(field_file(views), aperture_shape="all", disparity=float(disparity)))
    y, x = np.unravel_index(shown[..., 1].argmax(), shown.shape[:2])
    assert (x, y) == (30 + disparity * (column - 3), 25 + disparity * (row - 2))


@pytest.mark.parametrize("shape", get_args(ApertureShape))
def test_every_aperture_equals_the_formula(picture, field_file, rng, shape):
    """Odd sizes, shifts past the borders and any camera position: weights count only the views that cover a pixel."""
    rows, columns, height, width = rng.integers(1, 6), rng.integers(1, 6), rng.integers(1, 50), rng.integers(1, 200)
    views = rng.integers(0, 256, (rows, columns, height, width, 3)).astype("u1")
    eye = VirtualCamera(*rng.uniform(-1, 1, 2), rng.uniform(0, 1.5))
    settings = Settings(field_file(views), eye, aperture_shape=shape, disparity=rng.uniform(-9, 9))
    field = lightfield.read_light_field(settings.light_field)
    expected = mean_by_formula(*by_formula(field, records_of(field, settings)))
    np.testing.assert_allclose(drawn(picture, settings), expected, atol=2e-6)


@pytest.mark.parametrize(
    "size", [(300, 70), *(pytest.param(size, marks=pytest.mark.slow) for size in ((1, 1), (129, 33)))]
)
def test_refocus_kernels_for_cpu_and_gpu_agree_with_the_reference(device, rng, size):
    """All refocusing kernels run on every device, whichever the picture would choose."""
    (width, height), views = size, 6
    pitch = -(-3 * width // 16) * 16
    guard = GUARD_ROWS * pitch
    sizes = dict(WIDTH=width, HEIGHT=height, CHANNELS=3, PITCH=pitch, GUARD_BYTES=guard, VIEW_SHIFT=VIEW_SHIFT)
    data = rng.integers(0, 256, 2 * guard + views * height * pitch).astype("u1")
    records = np.zeros(views, VIEW_SHIFT)
    records["view"], records["weight"] = np.arange(views), rng.uniform(0.1, 1, views)
    records["column"], records["row"] = rng.integers(-20, 21, views), rng.integers(-9, 10, views)
    records["fx"], records["fy"] = rng.random(views), rng.random(views)
    records[0] = (0, 0, 0, 0.0, 0.0, 0.5)
    buffers = device.buffer(data.size, "u1").write(data), device.buffer(views, VIEW_SHIFT).write(records)
    linear, results = device.buffer(256).write(LINEAR.astype("f4")), []
    for entry, group, threads, more in [
        ("refocus_reference", 64, width * height, {}),
        *[
            (
                "refocus_gpu",
                g,
                kernels.gpu_tile_count(width, height, g) * g,
                dict(ROWS_PER_THREAD=kernels.ROWS_PER_THREAD, MIN_GROUPS_PER_SM=1),
            )
            for g in kernels.GPU_GROUP_SIZES
        ],
        ("refocus_cpu", 1, -(-width // 64) * -(-height // 4), dict(CPU_TILE_WIDTH=64, CPU_TILE_HEIGHT=4)),
    ]:
        image = device.buffer((height, width, 4)).fill(255)
        launch = device.kernel("lightfields/lightfield.cu", entry, group_size=group, **sizes, **more)
        launch(threads, buffers[0], buffers[1], views, linear, image, 0, height, 0, height)
        results.append(image.read())
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], atol=1e-6)


@pytest.mark.parametrize(("width", "height"), [(48, 21), (131, 5)])
def test_rows_that_are_copied_in_bulk_equal_the_formula(field_file, rng, width, height):
    """On an emulated sm_90. Rows of 48 pixels end at a multiple of 16 bytes; 131 pixels take two warps."""
    device = emulated.cuda_machine(1, int(rng.integers(1 << 30))).CudaDevice(0)
    assert device.properties.has_bulk_copy
    views = rng.integers(0, 256, (3, 3, height, width, 3)).astype("u1")
    settings = Settings(field_file(views), aperture_shape="all", disparity=rng.uniform(-9, 9))
    field = lightfield.read_light_field(settings.light_field)
    expected = mean_by_formula(*by_formula(field, records_of(field, settings)))
    np.testing.assert_allclose(drawn(Picture(types.SimpleNamespace(device=device)), settings), expected, atol=2e-6)


def test_rows_are_copied_in_bulk_if_a_group_is_as_wide_as_the_views():
    shapes = [(1024, 1024), (512, 512), (2048, 1400), (625, 434), (2049, 1024)]
    assert [kernels.staged_rows(*size, 132) for size in shapes] == [8, 4, 4, 2, 0]


@pytest.mark.parametrize("flatten", ["median", "max", "min"])
def test_order_statistics_equal_numpy(picture, field_file, rng, flatten):
    views = rng.integers(0, 256, (3, 4, 25, 31, 3)).astype("u1")
    settings = Settings(field_file(views), flatten=flatten, disparity=rng.uniform(-4, 4), aperture_shape="all")
    field = lightfield.read_light_field(settings.light_field)
    stack, _ = by_formula(field, records_of(field, settings))
    ordered = np.sort(stack, axis=0)  # NaN last
    count = np.isfinite(stack).sum(0)
    place = {"median": np.maximum(count - 1, 0) // 2, "max": np.maximum(count - 1, 0), "min": 0 * count}[flatten]
    expected = np.nan_to_num(np.take_along_axis(ordered, place[None], 0)[0])
    np.testing.assert_allclose(drawn(picture, settings), expected, atol=1.01 / 65535)


def test_median_removes_occluders(picture, field_file, rng):
    """Bars in front hide a third of the far plane in each view, in each another third; the median restores it."""
    views, far = layered_views(rng, 7, 7, 96, back=0.0, front=4.0, bars=0.3)
    settings = Settings(field_file(views), aperture_shape="all")
    inner = (slice(20, -20), slice(20, -20))
    shown = {
        flatten: psnr(linear_to_srgb(drawn(picture, replace(settings, flatten=flatten)))[inner], far[inner])
        for flatten in ("mean", "median")
    }
    assert shown["median"] > 40 > 30 > shown["mean"]
    assert psnr(views[3, 3][inner], far[inner]) < 23


def test_view_between_cameras_is_interpolated(picture, field_file, rng):
    """With the right focal plane (Isaksen et al. 2000) the mean of four cameras is the view of a fifth."""
    disparity = rng.uniform(5, 7)
    views, plane = smooth_views(rng, 5, 5, 96, disparity)
    u, v = rng.uniform(0.15, 0.35, 2) * rng.choice([-1, 1], 2)  # about the middle between cameras at 0 and 0.5
    y, x = np.mgrid[0:96, 0:96].astype("f8")
    truth = np.round(plane(x + disparity * 2 * u, y + disparity * 2 * v))
    inner = (slice(14, -14), slice(14, -14))
    settings = Settings(field_file(views), VirtualCamera(u, v, 0.0), disparity=disparity)
    assert psnr(linear_to_srgb(drawn(picture, settings))[inner], truth[inner]) > 40
    assert psnr(linear_to_srgb(drawn(picture, replace(settings, disparity=0.0)))[inner], truth[inner]) < 35


@pytest.mark.parametrize("smoothing", [0.0, 12.0])
def test_disparity_map_and_all_in_focus_of_two_planes(picture, field_file, rng, smoothing):
    """Disparity of least matching cost and colors of greatest sharpness, against the known layers."""
    views, _ = layered_views(rng, 5, 5, 96, back=-1.0, front=2.0, bars=0.5, period=48)
    truth = disparity_of(96, back=-1.0, front=2.0, bars=0.5, period=48)
    settings = Settings(field_file(views), disparity_min=-2.0, disparity_max=3.0, plane_count=21, output="disparity")
    settings = replace(settings, shading="gray", smoothing=smoothing)
    shade = linear_to_srgb(drawn(picture, settings))[..., 0] / 255.0
    edge = np.abs((np.arange(96) + 12) % 24 - 12)  # columns from an edge; nearer ones are hidden from some cameras
    error = np.abs(-2 + 5 * shade - truth)[10:-10]
    assert np.median(error) < 0.05 and (error[:, edge >= 3] < 0.3).mean() > 0.97
    sharp = linear_to_srgb(
        drawn(picture, replace(settings, output="all_in_focus", aperture_shape="all", window_radius=3))
    )
    for plane in (-1.0, 2.0):
        one = linear_to_srgb(
            drawn(picture, replace(settings, output="refocused", aperture_shape="all", disparity=plane))
        )
        inner = (slice(10, -10), slice(10, -10))
        assert psnr(sharp[inner], views[2, 2][inner]) > psnr(one[inner], views[2, 2][inner]) + 3


def test_matching_costs_of_halves_equal_the_formula(picture, field_file, rng):
    """Variance over the views of each half, in sRGB, of shifted views by NumPy."""
    views, _ = layered_views(rng, 5, 5, 96, back=-1.0, front=2.0, bars=0.5, period=48)
    settings = Settings(field_file(views), disparity_min=-2.0, disparity_max=3.0, plane_count=21, output="disparity")
    picture.draw(settings, (96, 96), 0.0)
    disparity = float(rng.uniform(-2, 3))
    picture._match(disparity)
    field = lightfield.read_light_field(settings.light_field)
    records = records_of(field, replace(settings, disparity=disparity))
    stack, weights = by_formula(field, records, np.arange(256) / 255)
    for half, inside in enumerate((lambda u, v: u <= 0, lambda u, v: u >= 0, lambda u, v: v <= 0, lambda u, v: v >= 0)):
        chosen = inside(*field.camera_positions[records["view"]].T)
        seen = np.isfinite(stack[chosen])
        weight = (seen * weights[chosen, None, None, None]).sum(0)
        mean = mean_by_formula(stack[chosen], weights[chosen])
        squares = (np.nan_to_num(stack[chosen] - mean) ** 2 * weights[chosen, None, None, None]).sum(0)
        expected = np.divide(squares, weight, out=np.zeros_like(squares), where=weight > 0).sum(-1)
        inner = seen.sum(0)[..., 0] > 1
        result = picture._picture.read()[..., half]
        np.testing.assert_allclose(result[inner], expected[inner], atol=2e-6)
        assert (result[~inner] > 1e38).all()


def test_halves_of_views_are_never_lines():
    """A half of one row or column cannot match edges along it, so all views are in it."""

    def halves(rows, columns, u, v):
        grid = np.array([(c - (columns - 1) / 2, r - (rows - 1) / 2) for r in range(rows) for c in range(columns)])
        field = types.SimpleNamespace(camera_positions=grid)
        bits = view_halves(field, np.ones(len(grid)), np.array([u, v]))
        return [int((bits >> bit & 1).sum()) for bit in range(4)]

    assert halves(9, 9, 0.0, 0.0) == [45, 45, 45, 45]
    assert halves(2, 2, 0.0, 0.0) == [4, 4, 4, 4]
    assert halves(1, 9, 0.0, 0.0) == [5, 5, 9, 9]
    assert halves(5, 5, -2.0, 0.0) == [25, 25, 15, 15]


@pytest.mark.slow
def test_disparity_map_of_the_table_equals_the_ray_tracers_depth(gpu):
    """The bundled light field's map against the distances that the ray tracer finds in the scene it shows."""
    source, shown = load(ROOT / "assets/lightfields/tabletop.toml"), load(ROOT / "scenes/lightfield_depth.toml")
    tracer, (width, height) = open_picture(source, gpu), source.size
    tracer.draw(replace(source.settings, samples=1), source.size, 0.0)
    camera = source.settings.view
    focal = height / (2 * np.tan(np.radians(camera.fov_degrees) / 2))
    y, x = np.mgrid[0:height, 0:width] + 0.5
    along = np.hypot(np.hypot(x - width / 2, y - height / 2), focal) / focal
    truth = focal * 0.045 * along / tracer.layers(source.settings, source.size)["depth"]
    jump = np.zeros((height, width), bool)
    jump[:, 1:] |= np.abs(np.diff(truth, axis=1)) > 0.15
    jump[1:] |= np.abs(np.diff(truth, axis=0)) > 0.15
    near = np.any([np.roll(jump, (j, i), (0, 1)) for j in range(-3, 3) for i in range(-3, 3)], axis=0)[8:-8, 8:-8]
    shades = drawn(open_picture(shown, gpu), replace(shown.settings, shading="gray"), source.size)[..., 0]
    low, high = shown.settings.disparity_min, shown.settings.disparity_max
    error = np.abs(low + (high - low) * linear_to_srgb(shades) / 255.0 - truth)[8:-8, 8:-8]
    assert np.median(error) < 0.02 and error[near].mean() < 0.16  # 0.24 by the variance of all views


def test_smoothing_follows_confidence_and_stops_at_edges(device, rng):
    """The kernels against the domain transform's recursion written out; a doubtful half takes the other's values."""
    height, width, decay = 7, 40, 0.9
    guide = np.ones((height, width, 4), "f4")
    guide[:, 20:, :3] = 0.2  # an edge in the middle
    disparity, confidence = np.full((height, width), 1.0), np.full((height, width), 1e-6)
    disparity[:, 20:], disparity[:, 2], confidence[:, 2], confidence[:, 30] = 3.0, 2.0, 1.0, 1.0
    weighted = np.stack([disparity * confidence, confidence], -1).astype("f4")
    expected = weighted.astype("f8")
    edges = np.abs(np.diff(guide[..., :3].astype("f8"), axis=1)).sum(-1)
    for x in (*range(1, width), *range(-2, -width - 1, -1)):
        before = x - 1 if x > 0 else x + 1
        edge = edges[:, x - 1] if x > 0 else edges[:, x + 1 if x < -1 else -1]
        kept = decay ** (1 + 200 * edge)[:, None]
        expected[:, x] += kept * (expected[:, before] - expected[:, x])
    field = types.SimpleNamespace(size=(width, height), pixels=np.zeros((1, height, width, 3), "u1"))
    compiled = kernels.LightFieldKernels(device, field)
    buffer, guide_buffer = device.buffer(weighted.shape).write(weighted), device.buffer(guide.shape).write(guide)
    compiled["smooth_rows"](height, buffer, guide_buffer, decay)
    np.testing.assert_allclose(buffer.read(), expected, rtol=2e-4, atol=1e-9)
    ratio = buffer.read()[..., 0] / buffer.read()[..., 1]
    assert np.abs(ratio[:, :20] - 2).max() < 0.01 and np.abs(ratio[:, 20:] - 3).max() < 0.01


def test_color_tables_rise_evenly_in_lightness():
    for table in (perceptual_table(), gray_table()):
        y = table[:, :3] @ [0.2126, 0.7152, 0.0722]
        lightness = np.cbrt(y)  # as Oklab's and CIELAB's
        assert table.shape == (256, 4) and (np.diff(lightness) > 0).all() and (table >= 0).all() and (table <= 1).all()
    steps = np.diff(np.cbrt(perceptual_table()[:, :3] @ [0.2126, 0.7152, 0.0722]))
    assert steps.max() < 2 * steps.min()


def test_focal_stack_shows_its_planes_in_order(picture, field_file, rng):
    views = rng.integers(0, 256, (3, 3, 40, 40, 3)).astype("u1")
    settings = Settings(field_file(views), disparity_min=-1.0, disparity_max=2.0, plane_count=4, output="focal_stack")
    stack = drawn(picture, settings, (82, 82))  # two by two pictures of 40 with a gap of 2
    for index, disparity in enumerate((-1.0, 0.0, 1.0, 2.0)):
        one = drawn(picture, replace(settings, output="refocused", disparity=disparity))
        top, left = 42 * (index // 2), 42 * (index % 2)
        np.testing.assert_allclose(stack[top : top + 40, left : left + 40], one, atol=1e-6)
    assert not stack[40:42].any()


def test_click_focuses_on_the_point(picture, field_file, rng):
    views, _ = layered_views(rng, 5, 5, 96, back=-1.0, front=2.0, bars=0.5, period=48)
    truth = disparity_of(96, back=-1.0, front=2.0, bars=0.5, period=48)
    settings = Settings(field_file(views), disparity_min=-3.0, disparity_max=4.0)
    for x, y in ((36, 48), (60, 48)):
        eye = VirtualCamera().click((x + 0.5) / 96 - 0.5, (y + 0.5) / 96 - 0.5)
        drawn(picture, replace(settings, view=eye), (192, 192))
        assert picture.report()["focus_disparity"] == pytest.approx(truth[y, x], abs=0.1)
        drawn(picture, replace(settings, view=eye.drag(0.3, 0.1), disparity=0.5), (192, 192))
        assert picture.report()["focus_disparity"] == pytest.approx(truth[y, x] + 0.5, abs=0.1)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        *(pytest.param(c, marks=pytest.mark.slow) for c in ({"flatten": "median"}, {"output": "disparity"})),
        {"view": VirtualCamera(0.2, 0.1, 0.0)},
    ],
)
def test_light_field_larger_than_memory_streams_to_the_same_picture(device, field_file, rng, monkeypatch, changes):
    views = rng.integers(0, 256, (6, 6, 120, 200, 3)).astype("u1")
    settings = Settings(
        field_file(views), disparity=2.3, disparity_min=-1.0, disparity_max=1.0, plane_count=3, **changes
    )
    gpu = types.SimpleNamespace(device=device)
    whole, streamed = Picture(gpu), Picture(gpu)
    expected = drawn(whole, settings)
    assert "on the device" in whole.report()["storage"]
    got = drawn(streamed, replace(settings, memory_mib=1))
    assert streamed.report()["storage"] == "streamed in bands of rows"
    np.testing.assert_allclose(got, expected, atol=2e-6)  # bands may be split into other tiles


def test_tile_equals_its_part_of_the_whole(picture, field_file, rng):
    views = rng.integers(0, 256, (3, 3, 30, 44, 3)).astype("u1")
    for changes in ({}, {"output": "focal_stack", "plane_count": 3, "disparity_min": -1.0, "disparity_max": 1.0}):
        settings = Settings(field_file(views), disparity=0.7, **changes)
        size = (101, 67)
        whole = drawn(picture, settings, size)
        left, top, width, height = 33, 20, 50, 41
        part = drawn(picture, settings, size, (left, top, width, height))
        assert np.array_equal(part, whole[top : top + height, left : left + width])


def test_view_of_weight_zero_does_not_count(picture, field_file, rng):
    views = rng.integers(0, 256, (2, 2, 20, 20, 4)).astype("u1")
    views[0, 0, ..., 3] = 0
    views[0, 1, ..., 3] = 51
    views[1, ..., 3] = 255
    shown = drawn(picture, Settings(field_file(views), aperture_shape="all"))
    linear = LINEAR[views[..., :3]]
    expected = (0.2 * linear[0, 1] + linear[1, 0] + linear[1, 1]) / 2.2
    np.testing.assert_allclose(shown, expected, atol=2e-6)


def test_larger_and_smaller_frames_letterbox_the_picture(picture, field_file):
    views = np.full((1, 1, 40, 40, 3), 200, "u1")
    for size in ((160, 80), (30, 90), (40, 41)):
        shown = drawn(picture, Settings(field_file(views)), size)
        side = min(size)
        lit = (shown > 0).all(2)
        assert lit.sum() == pytest.approx(side * side, rel=0.06)
        assert lit[size[1] // 2, size[0] // 2] and np.allclose(shown[lit], LINEAR[200])


def test_reversed_disparity_range_raises():
    with pytest.raises(ValueError, match="disparity_min is 2.0 and disparity_max 1.0"):
        Settings(light_field="field", disparity_min=2.0, disparity_max=1.0)


@pytest.fixture(scope="session")
def rendered_field(tmp_path_factory):
    """A folder with 9 x 9 views of 96 x 96 of balls.toml by `export --light-field`, and its facts."""
    folder = tmp_path_factory.mktemp("fields") / "bokeh"
    size = ["--size", "96x96", "--samples", "12", "--light-field", "9x9", "--baseline", "0.03", "--json"]
    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert cli.main(["export", str(BALLS), "-o", str(folder), *size]) == 0
    return folder, json.loads(told.getvalue())


def ray_traced(gpu, samples, size, **changes):
    """(height, width, 3) linear float64 of balls.toml with these settings."""
    scene = load(BALLS)
    tracer, settings = open_picture(scene, gpu), replace(scene.settings, samples=samples, **changes)
    for _ in range(samples):
        frame = tracer.draw(settings, size, 0.0)
    return frame.read()[..., :3].astype("f8")


def exposed(linear, like):
    """Linear values in the exposure of `like`: a field has its own."""
    return linear * (like * linear).sum() / (linear * linear).sum()


def test_exported_light_field_has_camera_positions(rendered_field):
    folder, facts = rendered_field
    assert facts["frames"] == 81 and facts["size"] == [96, 96] and facts["light_field"] == [9, 9]
    field = lightfield.read_light_field(folder)
    assert field.convention == "Stanford names" and not field.warnings and len(field.pixels) == 81
    np.testing.assert_allclose(field.camera_positions, (field.view_indices - 4)[:, ::-1], atol=1e-3)
    assert lightfield.resolve_v_direction(field) is field  # its v grows downwards, as the pictures say too
    focal = 96 / (2 * np.tan(np.radians(34) / 2))
    assert facts["target_disparity"] == pytest.approx(focal * 0.03 / np.hypot(5.0, 0.6), rel=1e-6)


@pytest.mark.parametrize("distance", [3.6, 5.0, pytest.param(8.0, marks=pytest.mark.slow)])
def test_refocused_exported_light_field_equals_the_thin_lens(gpu, rendered_field, distance):
    """Same radius, same plane in focus: a mean of 12-sample pinholes against 200 samples through a lens."""
    folder, _ = rendered_field
    lens = ray_traced(gpu, 200, (96, 96), lens_radius=3.5 * 0.03, focus_distance=distance)
    pinhole = ray_traced(gpu, 200, (96, 96), lens_radius=0.0)
    disparity = 96 / (2 * np.tan(np.radians(34) / 2)) * 0.03 / distance
    settings = Settings(str(folder), VirtualCamera(aperture=3.5 / 4), disparity=disparity)
    shown = drawn(Picture(gpu), settings)
    inner = (slice(8, -8), slice(8, -8))
    ours, theirs = linear_to_srgb(shown)[inner], linear_to_srgb(exposed(lens, shown))[inner]
    assert psnr(ours, theirs) > 36
    assert psnr(ours, linear_to_srgb(exposed(pinhole, shown))[inner]) < psnr(ours, theirs) - 6


def test_view_between_exported_ones_equals_the_one_rendered_there(gpu, rendered_field):
    folder, _ = rendered_field
    scene = load(BALLS)
    u, v = 0.4, -0.65  # 1.6 columns to the right and 2.6 rows up from the middle: between cameras
    right, up, _ = scene.settings.view.axes()
    shift = 0.03 * 4 * (u * right - v * up)
    camera = replace(
        scene.settings.view,
        position=tuple(float(x) for x in scene.settings.view.position + shift),
        target=tuple(float(x) for x in scene.settings.view.target + shift),
    )
    there = ray_traced(gpu, 200, (96, 96), lens_radius=0.0, view=camera)
    shown = drawn(Picture(gpu), Settings(str(folder), VirtualCamera(u, v, 0.0), disparity=0.95))
    inner = (slice(8, -8), slice(8, -8))
    assert psnr(linear_to_srgb(shown)[inner], linear_to_srgb(exposed(there, shown))[inner]) > 31
    middle = ray_traced(gpu, 200, (96, 96), lens_radius=0.0)
    assert psnr(linear_to_srgb(shown)[inner], linear_to_srgb(exposed(middle, shown))[inner]) < 28


def test_opening_a_folder_focuses_on_its_center(gpu, rendered_field):
    scene = load(rendered_field[0])
    assert scene.size == (96, 96) and scene.picture == "lightfield"
    opened = Picture(gpu)
    drawn(opened, scene.settings)
    focal = 96 / (2 * np.tan(np.radians(34) / 2))
    assert opened.report()["focus_disparity"] == pytest.approx(focal * 0.03 / 4.6, rel=0.12)  # the ball in the middle


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["--baseline", "1"], "needs --light-field"),
        (["--light-field", "0x3"], "is not an array of cameras"),
        (["--light-field", "3x3", "--baseline", "-1"], "--baseline -1: must be at least"),
        (["--light-field", "3x3", "--frames", "1-3"], "--frames: not together with --light-field"),
        (["--light-field", "3x3", "--bit-depth", "16"], "--bit-depth 16"),
    ],
)
def test_invalid_light_field_exports_are_refused(tmp_path, capsys, arguments, told):
    command = ["export", str(BALLS), "-o", str(tmp_path / "field"), *arguments]
    try:
        code = cli.main(command)
    except SystemExit as error:  # argparse
        code = error.code
    assert code == 2 and told in capsys.readouterr().err
    assert not (tmp_path / "field").exists()


def test_export_without_camera_and_into_a_folder_of_other_pictures_is_refused(tmp_path, capsys):
    command = ["export", "-o", str(tmp_path), "--light-field", "2x2"]
    assert cli.main([*command, str(ROOT / "scenes/mandelbrot.toml")]) == 2
    assert "a fractal picture has no camera in space" in capsys.readouterr().err
    (tmp_path / "holiday.png").write_bytes(b"")
    assert cli.main([*command, str(BALLS)]) == 2
    assert "holds other pictures (holiday.png)" in capsys.readouterr().err


def test_gpu_tiles_are_large_unless_small_ones_are_needed_to_fill_the_device():
    assert [kernels.gpu_group_size(side, side, 132) for side in (1024, 512, 40)] == [512, 128, 128]
    assert kernels.gpu_tile_count(1024, 1024, 512) == 128 and kernels.gpu_tile_count(130, 17, 128) == 4
