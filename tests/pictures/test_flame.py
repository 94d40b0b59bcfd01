"""The pictures of flames: views, tiles, layers, exact resumption, errors."""

import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from renderer.cli import main
from renderer.errors import InputError
from renderer.export import render as export
from renderer.export.render import RenderJob, format_duration
from renderer.flames import evolve, kernel_cache
from renderer.flames.genome import Xform
from renderer.flames.settings import Settings
from renderer.formats.images import read_pixels, read_recipe
from renderer.paths import SCENES
from renderer.pictures import flame as picture_module
from renderer.pictures import flame3d, load, open_picture
from renderer.scene.cameras import Camera, View2D
from renderer.system import trust
from renderer.system.progress import Progress

IFS = ["fern", "sierpinski", "dragon", "maple", "koch"]


@pytest.mark.slow
def test_non_blocking_pictures_equal_blocking_ones(gpu, rng):
    """Structures come faster than their kernels are compiled; every picture equals one drawn without never_block()."""
    non_blocking, blocking, size = picture_module.Picture(gpu), picture_module.Picture(gpu), (64, 48)
    non_blocking.never_block()
    for _ in range(3):
        flame = evolve.random_flame(rng)
        settings = Settings(xforms=flame.xforms, final_xform=flame.final_xform, palette=flame.palette, quality=400.0)
        for _ in range(2):
            pixels = non_blocking.draw(settings, size, 0.0).read()
        blocking.draw(settings, size, 0.0)
        assert np.array_equal(pixels, blocking.draw(settings, size, 0.0).read())
    kernels, specialization = non_blocking._game.kernels, non_blocking._game.spec
    own = kernels._futures[specialization, kernel_cache.INTEGER_SUMS].result()
    assert kernels.best_kernel(specialization) is own
    assert np.array_equal(non_blocking.draw(settings, size, 0.0).read(), blocking.draw(settings, size, 0.0).read())


@pytest.mark.parametrize("name", IFS)
def test_scenes_draw_their_fractal(gpu, name):
    scene = load(SCENES / f"{name}.toml")
    picture = open_picture(scene, gpu)
    width, height = scene.size[0] // 8, scene.size[1] // 8
    pixels = picture.draw(scene.settings, (width, height), 0.0).read()
    assert pixels.shape == (height, width, 4) and np.isfinite(pixels).all() and (pixels[..., 3] == 1).all()
    lit = pixels[..., :3].max(2) > 0.02
    assert 0.05 < lit.mean() < 0.8, lit.mean()
    assert picture.report()["in_frame"] > 0.99  # the view of the scene holds the whole attractor
    assert not lit[[0, -1]].any() and not lit[:, [0, -1]].any()


def test_the_view_pans_and_zooms_and_turns(gpu):
    """A map onto one point: where it is seen follows from the view alone; y grows upwards."""
    xforms = (Xform((0.0, 0.0, 1.0, 0.0, 0.0, 0.5)),)
    settings = Settings(xforms=xforms, colors=((255.0,) * 3,) * 256, filter_radius=0.0, quality=2.0)

    def seen(view, y_axis="up"):
        picture = picture_module.Picture(gpu)
        pixels = picture.draw(replace(settings, view=view, y_axis=y_axis), (200, 100), 0.0).read()
        rows, columns = np.nonzero(pixels[..., 0])
        return columns.tolist(), rows.tolist()

    assert seen(View2D((0.0, 0.0), 4.0)) == ([125], [37])
    assert seen(View2D((0.0, 0.0), 4.0), "down") == ([125], [62])
    assert seen(View2D((0.99, 0.49), 4.0)) == ([100], [49])
    assert seen(View2D((0.0, 0.0), 2.0)) == ([150], [25])
    assert seen(View2D((0.003, 0.003), 4.0, 90.0)) == ([112], [74])


def test_more_draws_are_more_samples_of_the_same_picture(gpu):
    scene = load(SCENES / "dragon.toml")
    picture = open_picture(scene, gpu)
    size = (200, 160)
    total = picture.sample_count(scene.settings, size)
    for _ in range(total):
        frame = picture.draw(scene.settings, size, 0.0)
    report = picture.report()
    assert report["samples"] >= scene.settings.quality * size[0] * size[1]
    again = open_picture(scene, gpu)
    for _ in range(total):
        other = again.draw(scene.settings, size, 0.0)
    assert np.array_equal(frame.read(), other.read())


def test_tiles_are_parts_of_the_whole(gpu, rng):
    scene = load(SCENES / "maple.toml")
    size = (150, 130)
    whole = open_picture(scene, gpu).draw(scene.settings, size, 0.0).read()
    left, top = int(rng.integers(0, 100)), int(rng.integers(0, 90))
    tile = open_picture(scene, gpu).draw(scene.settings, size, 0.0, (left, top, 50, 40)).read()
    assert np.array_equal(tile, whole[top : top + 40, left : left + 50])


@pytest.mark.slow
def test_tiles_of_estimated_and_oversampled_flames_are_parts_of_the_whole(gpu, rng):
    scene = load(SCENES / "lantern.flame")
    settings = replace(scene.settings, supersample=2, filter_radius=0.8, estimator_radius=5.0, quality=8.0)
    size = (90, 70)
    whole = open_picture(scene, gpu).draw(settings, size, 0.0).read()
    for left, top, width, height in (
        (0, 0, 30, 25),
        (60, 45, 30, 25),
        (int(rng.integers(50)), int(rng.integers(40)), 31, 23),
    ):
        tile = open_picture(scene, gpu).draw(settings, size, 0.0, (left, top, width, height)).read()
        assert np.array_equal(tile, whole[top : top + height, left : left + width])


def test_layers_hold_the_raw_density(gpu):
    scene = load(SCENES / "fern.toml")
    settings = replace(scene.settings, supersample=2, palette="white", colors=())
    picture = open_picture(scene, gpu)
    picture.draw(settings, (60, 80), 0.0)
    layers = picture.layers(settings, (60, 80))
    assert layers["density"].shape == (80, 60) and layers["color_sum"].shape == (80, 60, 3)
    assert layers["density"].sum() == picture.report()["samples"]  # the whole fern is in view
    assert np.allclose(layers["color_sum"], layers["density"][..., None])


def test_exr_files_hold_the_raw_density(tmp_path):
    OpenEXR = pytest.importorskip("OpenEXR")
    path = tmp_path / "fern.exr"
    assert main(["export", str(SCENES / "fern.toml"), "-o", str(path), "--size", "48x64", "--tile", "40"]) == 0
    channels = OpenEXR.File(str(path)).channels()
    assert channels["density"].pixels.sum() >= 100 * 48 * 64 and "RGBA" in channels


def test_transparent_pictures_have_alpha_where_light_is(gpu):
    scene = load(SCENES / "fern.toml")
    pixels = open_picture(scene, gpu).draw(replace(scene.settings, transparent=True), (60, 80), 0.0).read()
    lit = pixels[..., :3].max(2) > 0
    assert 0 < lit.mean() < 1 and (pixels[..., 3][lit] > 0).mean() > 0.8 and (pixels[..., 3] == 0).mean() > 0.2


def test_bad_samples_are_replaced(gpu):
    """A map that is never finite, drawn half of the time: the finished picture still has its samples."""
    xforms = (Xform(), Xform(variations={"modulus": 1.0}), Xform((0.5, 0.0, 0.1, 0.0, 0.5, 0.1)))
    settings = Settings(xforms=xforms, quality=200.0)
    picture, size = picture_module.Picture(gpu), (64, 64)
    for _ in range(picture.sample_count(settings, size)):
        picture.draw(settings, size, 0.0)
    report = picture.report()
    assert report["bad_values"] > 0.3 * report["samples"] and report["samples"] >= 200 * 64 * 64 * 0.999


def endless(tmp_path, name: str, asked: int):
    """An export that would take days, interrupted `asked` times: its messages and its exit code."""
    out = tmp_path / name
    command = [sys.executable, "main.py", "export", str(SCENES / "sierpinski.toml"), "-o", str(out), "--size", "64x48"]
    command += ["--set", "quality=1e9", "--json"]
    process = subprocess.Popen(
        command, cwd=SCENES.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    message = process.stderr.readline()
    for _ in range(asked):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    answer, more = process.communicate(timeout=120)
    return process.returncode, message + more, answer, out


def test_interrupted_export_reports_time_and_keeps_image(tmp_path):
    code, message, answer, out = endless(tmp_path, "kept.png", 1)
    assert code == 130 and "Traceback" not in message
    assert re.search(
        r"will take about [\d,]+ (seconds|minutes|hours|days|years); Ctrl-C keeps what is drawn", message
    ), message
    facts = json.loads(answer)
    assert facts["report"]["samples"] > 1 << 20 and facts["samples"] == read_recipe(out)["samples"]
    pixels = read_pixels(out)
    assert pixels.shape[:2] == (48, 64) and 0.05 < (pixels[..., :3].max(2) > 30).mean() < 0.9


def test_durations_are_formatted():
    assert (
        format_duration(100) == "100 seconds"
        and format_duration(600) == "10 minutes"
        and format_duration(86400 * 12) == "12 days"
    )
    assert format_duration(3600.0 * 5) == "5 hours" and format_duration(31557600.0 * 12345) == "12,345 years"


@pytest.mark.parametrize("name", ["tetrahedron", "tree"])
def test_3d_flames_draw(gpu, name):
    scene = load(SCENES / f"{name}.toml")
    picture = open_picture(scene, gpu)
    pixels = picture.draw(scene.settings, (100, 100), 0.0).read()
    assert 0.05 < (pixels[..., :3].max(2) > 0.02).mean() < 0.7 and picture.report()["in_frame"] > 0.9


def test_the_camera_places_points_of_space(gpu, rng):
    """Maps onto points: their pixels are as a pinhole projects the points."""
    camera = Camera(tuple(map(float, rng.normal(size=3) + (0, 0, 6))), (0.1, -0.2, 0.3), fov_degrees=50.0)
    points = rng.uniform(-1, 1, (6, 3))
    xforms = tuple(Xform((0, 0, 0, float(x), 0, 0, 0, float(y), 0, 0, 0, float(z))) for x, y, z in points)
    settings = flame3d.Settings(xforms=xforms, palette="white", filter_radius=0.0, quality=20.0, view=camera)
    size = (200, 160)
    pixels = flame3d.Picture(gpu).draw(settings, size, 0.0).read()
    right, up, forward = camera.axes()
    found = set(zip(*(axis.tolist() for axis in np.nonzero(pixels[..., 0])), strict=True))
    wanted = set()
    for point in points:
        d = point - camera.position
        k = size[1] / 2 / np.tan(np.radians(25.0)) / (d @ forward)
        wanted.add((int(size[1] / 2 - k * (d @ up)), int(size[0] / 2 + k * (d @ right))))
    assert found == wanted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("weight = -1.0", "weight is -1.0; it must be 0.0 to"),
        ("affine = [1.0, 2.0]", "affine has 2 numbers"),
        ("affine = [nan, 0.0, 0.0, 0.0, 1.0, 0.0]", "must be finite"),
        ("variations = { linaer = 1.0 }", "unknown variation 'linaer'; the nearest known is 'linear'"),
        ("parameters = { julian_powr = 1.0 }", "nearest known is 'julian_power'"),
        ("xaos = [-1.0]", "xaos"),
        ("colr = 1.0", "unknown key 'colr' (did you mean color?)"),
    ],
)
def test_invalid_xforms_are_rejected(tmp_path, change, message):
    path = tmp_path / "bad.toml"
    path.write_text(f'picture = "flame"\n[[settings.xforms]]\n{change}\n')
    with pytest.raises(InputError, match=None) as error:
        load(path)
    assert message in str(error.value) and "bad.toml" in str(error.value)


@pytest.mark.parametrize("kind", ["flame", "flame3d"])
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("xforms = []", "xforms is empty"),
        ("xforms = [{{{affine}weight = 0.0}}]", "the weights of all xforms are 0"),
        ("palette = 'nope'", "palette is 'nope'; allowed are ember"),
        ("colors = [[1, 2, 3]]", "colors has 1 entries; it must have 256"),
        ("colors = [[1, -2, 3]]", "colors[0][1] is -2.0; it must be 0.0 to 255.0"),
        ("alphas = [2]", "alphas[0] is 2.0; it must be 0.0 to 1.0"),
    ],
)
def test_flames_and_layers_that_cannot_be_drawn_are_refused_when_read(tmp_path, kind, table, message):
    path = tmp_path / "bad.toml"
    affine = "affine = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0], " if kind == "flame3d" else ""
    for header, where in (("[settings]", "settings: "), ("[[settings.layers]]", r"settings: layers[0]: ")):
        path.write_text(f"picture = '{kind}'\n{header}\n{table.format(affine=affine)}\n")
        with pytest.raises(InputError) as error:
            load(path)
        assert str(error.value).startswith(f"{path}: {where}{message}"), error.value


def test_diverging_points_count_as_bad_values(gpu):
    """Twice a map that triples, once one that halves: points leave for infinity and come back at random."""
    xforms = (Xform((3.0, 0, 0, 0, 3.0, 0), weight=2.0), Xform((0.5, 0, 0, 0, 0.5, 0)))
    picture = picture_module.Picture(gpu)
    pixels = picture.draw(Settings(xforms=xforms), (64, 64), 0.0).read()
    assert picture.report()["bad_values"] > 1000
    assert np.isfinite(pixels).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_a_large_picture_is_played_once_and_developed_in_tiles(gpu, tmp_path, monkeypatch, weighted):
    """Of the same bits as drawn whole; its layers and its report too. Passes are played for each tile."""
    scene = load(SCENES / ("voyage.flame" if weighted else "fern.toml"), film=weighted)
    settings = replace(scene.settings, estimator_radius=2.0, supersample=2)
    if weighted:  # weights of time make the hits another histogram
        changes = dict(temporal_samples=3, temporal_filter_type="gaussian", estimator_radius=2.0)
        keys = [replace(key, flame=replace(key.flame, **changes)) for key in settings.keyframes]
        settings = replace(settings, keyframes=tuple(keys))
    picture, size = open_picture(scene, gpu), (50, 40)
    job = RenderJob(replace(scene, settings=settings), size, picture.sample_count(settings, size), layers=True)
    whole, report, starts = export.render(picture, job, Progress(0, "")), picture.report(), []
    monkeypatch.setattr(picture_module, "DEVELOPED_SIDE", 30)
    monkeypatch.setattr(export, "TILE", 30)
    start = picture_module.Picture._start
    monkeypatch.setattr(picture_module.Picture, "_start", lambda self, *words: starts.append(1) or start(self, *words))
    monkeypatch.setattr(trust.Limits, "doing", bytearray(1))
    develop, ended = picture_module.Picture.developed, []  # by --time-limit: only a drawing is, and all would be lost
    watched = lambda self, tile: ended.append(trust.Limits.doing[0]) or develop(self, tile)  # noqa: E731
    monkeypatch.setattr(picture_module.Picture, "developed", watched)
    for job_in_tiles in (job, replace(job, tile=16)):
        parts = export.render(picture, job_in_tiles, Progress(0, ""))
        assert np.array_equal(parts.linear, whole.linear) and picture.report() == report
        assert all(np.array_equal(parts.layers[name], whole.layers[name]) for name in ("density", "color_sum"))
    assert len(starts) == 2 and len(ended) > 4 and not any(ended)
    assert not picture.keeps_samples(replace(settings, keyframes=(), passes=2), size)
    monkeypatch.setattr(trust.Limits, "memory", 1 << 20)
    monkeypatch.setattr(trust, "SMALL_BYTES", 0)
    assert not picture.keeps_samples(settings, size)
