"""The film: variance against NumPy, and pixels that stop at the noise threshold."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.formats.images import LUMINANCE, read_exr
from renderer.pictures import load
from renderer.pictures.raytrace import Picture
from renderer.raytracing import film
from renderer.raytracing.settings import Material, Quad, Settings, Sphere
from renderer.scene.cameras import Camera
from tests.export.test_export import ROOT, export
from tests.raytracing.test_render import mixed_scene, render


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def film_scene(**changes):
    """An area light over a floor with a sphere: some pixels are noisy, some show the background."""
    scene = mixed_scene(max_depth=3, schedule="auto")
    return replace(scene, **changes)


@pytest.mark.slow
def test_variance_is_that_of_the_samples(picture):
    scene, size = film_scene(variance=True), (16, 12)
    picture.restart()
    means = [picture.draw(scene, size, 0.0).read()[..., :3].astype("f8") for _ in range(20)]
    counts = np.arange(1, 21)[:, None, None, None]
    samples = np.diff(np.concatenate([np.zeros((1, 12, 16, 3)), means * counts]), axis=0)
    layers = picture.layers(scene, size)
    assert np.allclose(layers["variance"], samples.var(0, ddof=1), rtol=1e-3, atol=1e-4)
    assert (layers["samples"] == 20).all()
    assert np.array_equal(means[-1].astype("f4"), render(picture, film_scene(), size, 20)[..., :3])  # of the same bits


def test_no_draw_asks_for_a_kernel_again(picture, monkeypatch):
    """Generating a kernel's source takes the host longer than a GPU takes for a small picture."""
    scene, size = film_scene(), (16, 12)
    picture.restart()
    for _ in range(film.RANGE_SAMPLES + 2):  # the film merges ranges then
        picture.draw(scene, size, 0.0)
    monkeypatch.setattr(type(picture.device), "kernel", None)
    picture.draw(scene, size, 0.0)


def test_ranges_merge_by_numbers_in_memory_as_by_arguments(device, rng):
    """Chan's formula in float64 is the witness; the counts are as begin_sample.h stores them."""
    previous, index, shape = 64, 70, (5, 7, 4)
    ranges = [rng.random(shape, "f4") for _ in range(2)]
    buffers = [device.buffer(shape).write(array) for array in ranges]
    merged = []
    for in_memory in (False, True):
        own = film.Film(device, (buffers[1],), device.buffer(2, "i4").write(np.array([index, previous], "i4")))
        own.merged = (buffers[0],)
        own.next_range()
        own.merge_sample() if in_memory else own.merge(previous, index + 1 - previous)
        merged.append(own.merged[0].read())
    assert np.array_equal(*merged)
    weights = np.array([previous, index + 1 - previous]) / (index + 1)
    wanted = weights[0] * ranges[0][..., :3].astype("f8") + weights[1] * ranges[1][..., :3]
    assert np.abs(merged[0][..., :3] - wanted).max() < 3e-7


@pytest.mark.slow
def test_recorded_samples_have_the_bits_of_launched_ones(picture, monkeypatch):
    """A device without graphs launches what is recorded again, one by one."""
    scene, size = film_scene(schedule="wavefront"), (16, 12)
    plain = render(picture, scene, size, 2 * film.RANGE_SAMPLES + 5)
    monkeypatch.setattr(type(picture.device), "has_graphs", True)
    recorded = Picture(picture.gpu)
    for _ in range(2):  # a picture begins again where the one before left its buffers
        assert np.array_equal(render(recorded, scene, size, 2 * film.RANGE_SAMPLES + 5), plain)


SLOW_SCHEDULES = [pytest.param(name, marks=pytest.mark.slow) for name in ("wavefront", "regenerate")]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["megakernel", *SLOW_SCHEDULES])
def test_pixels_stop_at_the_noise_threshold(picture, schedule, monkeypatch):
    monkeypatch.setattr("renderer.pictures.raytrace.MAX_FLOOR", 32)  # the scene has a mirror, which asks for more
    scene, size = film_scene(noise_threshold=0.08, schedule=schedule), (40, 32)
    frame = render(picture, scene, size, 128)
    layers = picture.layers(scene, size)
    counts = layers["samples"]
    assert set(np.unique(counts)) <= {32, 64, 128} and len(np.unique(counts)) > 1
    luminance = frame[..., :3] @ [0.2126, 0.7152, 0.0722]
    error = np.sqrt(layers["variance"] / counts[..., None]) @ [0.2126, 0.7152, 0.0722]
    stopped = counts < 128
    assert (error[stopped] <= 0.08 * np.maximum(luminance[stopped], 0.01) * 1.001).all()
    assert {bool(stopped[y : y + 16, x : x + 16].any()) for y in (0, 16) for x in (0, 16, 32)} == {True, False}
    for number in (32, 64):  # what a pixel showed when it stopped
        plain = render(picture, film_scene(schedule=schedule), size, number)
        assert np.array_equal(frame[counts == number], plain[counts == number])
    tile = (18, 5, 13, 18)  # it cuts blocks
    for _ in range(128):
        part = picture.draw(scene, size, 0.0, tile).read()
    assert np.array_equal(part, frame[5:23, 18:31])
    assert np.array_equal(picture.layers(scene, size, tile)["samples"], counts[5:23, 18:31])


@pytest.mark.parametrize("samples", [64, 128])
def test_pixels_rest_and_wake_by_the_errors_of_their_block(device, rng, samples):
    """NumPy is the witness, over a film of whole and cut blocks in which some pixels rest and some have rested."""
    height, width, threshold = 37, 50, 0.05
    mean, m2 = rng.uniform(0.2, 1, (height, width, 4)), rng.uniform(0, 4, (height, width, 4))
    m2[20:, :20, :3] *= 100
    m2[3, 40, :3] = 1e6  # a pixel that alone keeps its block awake
    taken = rng.choice([32, 48, samples], (height, width))
    m2[..., 3] = np.where(rng.random((height, width)) < 0.5, taken, taken - samples)
    mean, m2 = mean.astype("f4"), m2.astype("f4")
    own = film.Film(device, tuple(device.buffer(a.shape).write(a) for a in (mean, m2)), device.buffer(2, "i4"))
    worst = own.rest_pixels(samples, threshold)
    rests = own.current[1].read()[..., 3] > 0
    assert np.array_equal(film.samples_of(own.current[1].read(), samples), taken)  # no pixel's count changes
    luminance = np.maximum(mean[..., :3].astype("f8") @ LUMINANCE, 0.01)
    error = np.sqrt(m2[..., :3].astype("f8") / (taken * (taken - 1))[..., None]) @ LUMINANCE
    wanted, largest = np.zeros((height, width), bool), (error / luminance).max()
    for y in range(0, height, film.BLOCK):
        for x in range(0, width, film.BLOCK):
            block = slice(y, y + film.BLOCK), slice(x, x + film.BLOCK)
            relative = np.sqrt((error[block] ** 2).mean()) / luminance[block].mean()
            wanted[block] = (error <= threshold * luminance)[block] & (relative <= threshold)
            largest = max(largest, relative)
    assert np.array_equal(rests, wanted) and rests.any() and not rests[:16, 32:48].any()
    assert worst == pytest.approx(largest, rel=1e-4)
    light, standard = own.mean_luminance(samples)
    assert light == pytest.approx((mean[..., :3] @ LUMINANCE).mean(), rel=1e-6)
    assert standard == pytest.approx(np.sqrt((error**2).sum()) / error.size, rel=1e-6)


def test_blocks_cover_a_tile_within_the_picture():
    assert film.whole_blocks((18, 5, 13, 18), (40, 32)) == (16, 0, 16, 32)
    assert film.whole_blocks((0, 0, 50, 37), (50, 37)) == (0, 0, 50, 37)
    assert film.whole_blocks((49, 36, 1, 1), (50, 37)) == (48, 32, 2, 5)


def caustic_scene(**changes):
    """A small bright lamp, a glass ball and the floor below, on which most pixels see the rim of the caustic."""
    materials = (
        Material("white", color=(0.7, 0.7, 0.7)),
        Material("lamp", "emitter", emission=(750.0, 750.0, 750.0)),
        Material("glass", "glass", color=(1.0, 1.0, 1.0), ior=1.5),
    )
    scene = Settings(
        view=Camera((0.0, 1.6, 1.6), (0.5, 0.0, 0.4), fov_degrees=50.0), max_depth=8, materials=materials,
        spheres=(Sphere("lamp", (-0.6, 2.2, 0.0), 0.06), Sphere("glass", (0.1, 0.6, 0.2), 0.4)),
        quads=(Quad("white", ((-3.0, 0.0, -3.0), (-3.0, 0.0, 3.0), (3.0, 0.0, 3.0), (3.0, 0.0, -3.0))),),
    )  # fmt: skip
    return replace(scene, **changes)


def lost_light(picture, scene, size, samples):
    """The fraction of the light that resting costs a picture, beside all samples of all pixels with the same seed."""
    whole = render(picture, scene, size, samples)[..., :3].mean()
    return 1 - render(picture, replace(scene, noise_threshold=0.2), size, samples)[..., :3].mean() / whole


def test_pixels_wait_for_the_light_of_a_caustic(picture):
    """By their own errors alone, from 32 samples on, the pixels of this picture lost 14 % of its light."""
    scene, size = caustic_scene(seed=5), (32, 16)
    assert abs(lost_light(picture, scene, size, 2048)) < 0.01
    counts = picture.layers(replace(scene, noise_threshold=0.2), size)["samples"]
    assert counts.min() == 256 and (counts == 2048).any()


def caustic_of(lamp, glass):
    """The caustic scene with a lamp of radius `lamp` of the same power, and balls (center, radius) of glass."""
    scene = caustic_scene()
    spheres = (Sphere("lamp", (-0.6, 2.2, 0.0), lamp), *(Sphere("glass", center, radius) for center, radius in glass))
    bright = replace(scene.materials[1], emission=(2.7 / lamp**2,) * 3)
    return replace(scene, spheres=spheres, materials=(scene.materials[0], bright, scene.materials[2]))


BALL = ((0.1, 0.6, 0.2), 0.4)
CAUSTICS = {
    "small lamp": lambda: caustic_of(0.03, [BALL]),
    "large lamp": lambda: caustic_of(0.2, [BALL]),
    "three balls": lambda: caustic_of(0.06, [((0.1 + 0.5 * k, 0.3, 0.4 * k - 0.2), 0.2) for k in range(3)]),
    "mirror": lambda: replace(caustic_scene(), materials=(*caustic_scene().materials[:2], Material("glass", "mirror"))),
    "speck": lambda: caustic_of(0.005, [BALL]),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*CAUSTICS, "cornell", "downlights", "glassware", "jewels", "still_life", "terrace", "veach"]
)
def test_a_noise_threshold_loses_less_than_a_hundredth_of_the_light_or_says_so(picture, name):
    scene = CAUSTICS[name]() if name in CAUSTICS else replace(load(name).settings, schedule="auto")
    lost = lost_light(picture, scene, (48, 32), 4096)
    print(f"{name}: {100 * lost:+.2f} % of the light lost; {picture.hints()}")
    assert abs(lost) < 0.01 or any("noise threshold" in hint for hint in picture.hints())


def test_a_picture_without_noise_is_done_early(picture):
    scene = Settings(horizon=(0.5,) * 3, zenith=(0.2,) * 3, noise_threshold=0.05)
    render(picture, scene, (16, 16), 33)
    launches = picture.device.counters.launches
    before = picture.draw(scene, (16, 16), 0.0).read()
    assert picture.device.counters.launches == launches and np.isfinite(before).all()
    assert picture.report()["samples"] == 32


@pytest.mark.slow
def test_the_noise_or_the_time_ends_an_export_whichever_comes_first(tmp_path):
    words = [ROOT / "scenes/cornell.toml", "--size", "40x32", "--samples", 10**6, "--json"]
    quiet = export(*words, "-o", tmp_path / "a.exr", "--set", "noise_threshold=0.6", "--time-limit", 300)
    drawn = json.loads(quiet.stdout)["report"]["samples"]
    assert 32 <= drawn < 10**5
    asked = export(*words, "-o", tmp_path / "c.exr", "--noise", "60%", "--time-limit", 300)
    assert "estimated noise 60 % of each pixel's luminance" in asked.stderr
    assert json.loads(asked.stdout)["samples"] == drawn  # and no sample after the last pixel stopped
    assert np.array_equal(read_exr(tmp_path / "a.exr"), read_exr(tmp_path / "c.exr"))
    few = export(*words[:-3], "--json", "--samples", 40, "-o", tmp_path / "d.exr", "--noise", "1%", code=3)
    assert "estimated noise" in few.stderr
    late = export(*words, "-o", tmp_path / "b.exr", "--set", "noise_threshold=1e-6", "--time-limit", 2, code=3)
    assert 1 <= json.loads(late.stdout)["report"]["samples"] < 10**6
    for name in ("a.exr", "b.exr"):
        linear = read_exr(tmp_path / name)[..., :3]
        assert np.isfinite(linear).all() and 0.05 < linear.mean() < 0.5
