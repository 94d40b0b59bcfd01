"""The numbers and pictures that the window shows of a picture, against NumPy, FLIP's own package and brute force."""

import re
from dataclasses import fields, replace

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.formats.images import linear_to_srgb, srgb_to_linear, write_png
from renderer.images.algorithm_view import CHANNELS, VIEW_HELP
from renderer.images.flip import flip_map
from renderer.images.inspection import (
    BINS,
    STOPS,
    VIRIDIS,
    channel_picture,
    differences,
    false_color,
    histogram,
    id_colors,
    layer_picture,
    stencil_picture,
)
from renderer.pictures import load, make_recipe, picture_class, picture_kinds
from renderer.scene.scene import Inspect
from renderer.window.controls.toolkit import imgui
from renderer.window.document.scene_text import written
from renderer.window.panels.comparison import MODES, Comparison, DifferenceLook, Reference
from renderer.window.panels.pixel_zoom import PixelZoom
from renderer.window.state.session import Session, restore, save
from tests.window.headless import center, finish, frames, point, press, until, window

BOX = """title = "box"
picture = "raytrace"
[settings]
samples = 2
max_depth = 3
horizon = [0.5, 0.5, 0.5]
zenith = [0.2, 0.3, 0.6]
view = { position = [0.0, 1.0, 4.0], target = [0.0, 0.5, 0.0] }
spheres = [{ center = [0.0, 0.5, 0.0], radius = 0.5, material = "gray" }]
materials = [{ name = "gray" }]
[[settings.quads]]
material = "gray"
corners = [[-3.0, 0.0, 3.0], [3.0, 0.0, 3.0], [3.0, 0.0, -3.0], [-3.0, 0.0, -3.0]]
"""
flip_evaluator = pytest.importorskip("flip_evaluator")


def pictures(rng, height=45, width=61):
    """A picture of edges and gradients, and the same one with noise, a shift and a colored patch."""
    y, x = np.mgrid[:height, :width]
    base = np.stack([x / width, y / height, (x // 7 + y // 5) % 2], -1)
    other = np.roll(base, 1, 1) + rng.normal(0, 0.05, base.shape)
    other[10:20, 10:30] = (0.9, 0.1, 0.2)
    return [(np.clip(picture, 0, 1) * 255 + 0.5).astype("u1") for picture in (base, other)]


def test_flip_equals_its_package(rng):
    for reference, test in (pictures(rng), pictures(rng, 30, 20), [np.full((9, 9, 3), v, "u1") for v in (0, 255)]):
        images = [picture / np.float32(255) for picture in (reference, test)]
        wanted, mean, _ = flip_evaluator.evaluate(*images, "LDR", applyMagma=False)
        found = flip_map(reference, test)
        assert np.abs(found - np.asarray(wanted).reshape(*found.shape, -1)[..., 0]).max() < 2e-3
        assert found.mean() == pytest.approx(mean, abs=1e-4)


def test_equal_pictures_have_no_error(rng):
    reference, _ = pictures(rng)
    found = differences(reference, reference)
    assert [found[name] for name in ("MSE", "PSNR", "FLIP", "largest")] == [0.0, float("inf"), 0.0, 0.0]


def test_differences_are_those_of_algebra():
    a, b = np.zeros((8, 8, 3), "u1"), np.full((8, 8, 3), 51, "u1")
    found = differences(a, b)
    assert found["MSE"] == pytest.approx(0.04) and found["PSNR"] == pytest.approx(10 * np.log10(25))
    with pytest.raises(ValueError, match="8 x 8 and 9 x 8"):
        differences(a, np.zeros((8, 9, 3), "u1"))


def test_histogram_equals_numpys(rng):
    linear = np.exp2(rng.uniform(-14, 10, (40, 30, 4))).astype("f4")
    linear[0, :5, 0] = (0.0, -1.0, np.nan, np.inf, 2.0**-12)
    counts, outside = histogram(linear)
    stops = np.linspace(*STOPS, BINS + 1)
    with np.errstate(all="ignore"):
        logs = np.log2(linear[..., :3])
    for channel in range(3):
        values = logs[..., channel].ravel()
        wanted = np.histogram(values[np.isfinite(values) & (values < STOPS[1])], stops)[0]
        assert np.abs(np.cumsum(counts[channel]) - np.cumsum(wanted)).max() <= 1  # a value on an edge
    assert outside["NaN"] == 1
    assert counts.sum() + sum(outside.values()) == 40 * 30 * 3


def test_false_color_goes_from_blue_to_yellow_and_shows_nan():
    colors = false_color(np.array([[0.0, 1.0, 2.0, np.nan, 99.0, -np.inf]]), 0.0, 2.0)[0, :, :3]
    assert tuple(colors[0]) == tuple(colors[5]) == (68, 1, 84) and tuple(colors[2]) == tuple(colors[4]) == (
        253,
        231,
        37,
    )
    assert tuple(colors[3]) == (255, 0, 255)
    ramp = false_color(np.linspace(0, 1, 50)[None], 0.0, 1.0)[0, :, :3].astype(int)
    assert (np.diff(ramp @ (2126, 7152, 722)) > 0).all()  # brighter is more


def test_layers_as_pictures():
    ids = np.array([[0, 1, 2], [3, 4, 5]], "u4")
    colors = id_colors(ids)
    assert (colors[0, 0] == 0).all() and len({tuple(c) for c in colors.reshape(-1, 3)}) == 6
    assert layer_picture("id", ids).meaning == "5 primitives seen"
    normal = np.zeros((2, 3, 3), "f4")
    normal[..., 2] = 1
    assert tuple(layer_picture("normal", normal).pixels[0, 0]) == (128, 128, 255)
    depth = np.array([[1.0, 3.0, np.inf]], "f4")
    picture, _, meaning, legend, *_ = layer_picture("depth", depth)
    assert (
        meaning == "1 (blue) to 3 (yellow)"
        and legend.value(0.5) == 2.0
        and tuple(picture[0, 2]) == tuple(picture[0, 1])
    )
    albedo = np.full((2, 2, 3), 0.5, "f4")
    assert layer_picture("albedo", albedo).pixels[0, 0, 0] == 188


def test_a_zoom_keeps_the_point_under_the_pointer_and_stays_inside():
    zoom = PixelZoom().zoomed(10, 0.3, 0.7)
    assert zoom.picture_point(0.3, 0.7) == pytest.approx((0.3, 0.7)) and zoom.is_on
    assert zoom.panel_point(*zoom.picture_point(0.1, 0.9)) == pytest.approx((0.1, 0.9))
    moved = zoom.panned(0.2, -9.0)
    assert moved.left == pytest.approx(zoom.left - 0.2 / zoom.factor) and moved.top == 1 - 1 / zoom.factor
    columns, rows = PixelZoom(4.0, 0.5, 0.0).pixels((100, 50))
    assert (columns, rows) == (range(50, 75), range(0, 13))
    assert zoom.zoomed(-99, 0.5, 0.5) == PixelZoom()


def test_the_look_of_a_difference_has_its_ranges():
    """A gain darkens nothing, and exposure goes as far down as up; a double click types them, as every setting."""
    spans = {f.name: (f.metadata["low"], f.metadata["high"]) for f in fields(DifferenceLook)}
    assert spans == {"gain": (1.0, 256.0), "exposure": (-10.0, 10.0)}


@pytest.mark.slow
def test_layers_zoom_and_numbers_in_the_window(gl, gpu, tmp_path):
    path = tmp_path / "box.toml"
    path.write_text(BOX)
    with window([load(path)], gpu, gl, (900, 600)) as screen:
        finish(screen)
        panel, app = screen.app.panel, screen.app
        press(screen, "Ctrl+L")
        frames(screen, 3)
        size = panel.display.frame.size
        wanted = panel.picture.layers(panel.settings(), size)
        for name in ("albedo", "normal", "depth", "id"):
            assert panel.inspection.name == name
            assert np.array_equal(panel.inspection.values, wanted[name])
            assert np.array_equal(
                panel.inspection.texture.read()[..., :3], layer_picture(name, wanted[name]).pixels[..., :3]
            )
            press(screen, "Ctrl+L")
            frames(screen, 3)
        assert panel.inspection.name == "variance" and "noise_threshold" in panel.inspection.meaning
        press(screen, "Ctrl+Shift+L")
        frames(screen, 3)
        io = imgui.get_io()
        point(screen, *center(screen, 0))
        io.add_key_event(imgui.Key.mod_ctrl, True)
        for _ in range(20):
            io.add_mouse_wheel_event(0, 1)
            screen.frame()
        io.add_key_event(imgui.Key.mod_ctrl, False)
        screen.frame()
        assert panel.zoom.factor == pytest.approx(1.25**20)
        x, y, width, height = app.panels.shown[0].image_rect
        u, v = panel.zoom.picture_point(0.5, 0.5)
        texel = panel.inspection.texture.read()[int(v * size[1]), int(u * size[0]), :3]
        shown = screen.pixels()[y + height // 2 - 9 : y + height // 2 + 9, x + width // 2 - 9 : x + width // 2 + 9]
        assert (shown.reshape(-1, 3) == texel).all(1).any()  # a pixel fills the middle, but for its number
        press(screen, "Ctrl+Home")
        assert not panel.zoom.is_on
        panel.inspection.select("stencil")
        until(screen, lambda: panel.inspection.algorithm)
        assert panel.inspection.step == 1, "all rays live in bounce 0"
        panel.inspection.step = 0
        trace = panel.picture.trace_stages(panel.settings(), size)
        for bounce in range(3):
            frames(screen, 2)
            assert np.array_equal(
                panel.inspection.texture.read(),
                stencil_picture(trace.live_rays(bounce), trace.occupancy(bounce)),
            )
            press(screen, "Ctrl+]")
        assert app.current_message(app.now()) == "bounce 2"
        panel.inspection.select("color")
        press(screen, "S")
        press(screen, "Ctrl+M")
        until(screen, lambda: panel.comparison.numbers != "measuring")
        assert panel.comparison.numbers == "MSE 0   PSNR inf   largest 0   FLIP 0"
        panel.inspection.shows_histogram = True
        panel.inspection.opens_controls = True
        for mode in MODES:
            panel.comparison.mode = mode
            frames(screen, 3)
            assert not app.message.startswith("internal"), app.message
        assert panel.inspection.counts[0].sum() > 0


def test_a_reference_from_a_file_is_measured(screen, tmp_path, rng):
    finish(screen)
    panel = screen.app.panel
    shown = panel.display.texture.read()[..., :3]
    write_png(tmp_path / "other.png", 255 - shown)
    panel.comparison.set_reference_file(tmp_path / "other.png")
    panel.measure()
    until(screen, lambda: panel.comparison.numbers != "measuring")
    wanted = differences(shown, 255 - shown)
    assert panel.comparison.largest_at == (wanted.pop("x"), wanted.pop("y"))
    assert panel.comparison.numbers == "   ".join(f"{name} {value:.4g}" for name, value in wanted.items())
    write_png(tmp_path / "small.png", shown[:5])
    panel.comparison.set_reference_file(tmp_path / "small.png")
    panel.measure()
    until(screen, lambda: panel.comparison.numbers != "measuring")
    assert "only pictures of one size" in panel.comparison.numbers


def test_channels_in_false_color_have_the_scale_of_their_logarithms(rng):
    linear = np.exp2(rng.uniform(-6, 3, (20, 30, 4))).astype("f4")
    linear[0, :3] = [[np.nan] * 4, [0.0] * 4, [-1.0] * 4]
    for index, name in enumerate(CHANNELS):
        shown = channel_picture(name, linear)
        wanted = linear[..., :3] @ np.array([0.2126, 0.7152, 0.0722]) if index == 0 else linear[..., index - 1]
        assert np.allclose(shown.values, wanted, equal_nan=True, rtol=1e-5)
        low, high, _, is_log = shown.legend
        assert is_log and np.quantile(wanted[wanted > 0], [0.001, 0.999]) == pytest.approx([low, high], rel=1e-4)
        middle = np.sqrt(low * high)
        assert shown.legend.value(0.5) == pytest.approx(middle)
        place = np.log(wanted[5, 5] / low) / np.log(high / low) * (len(VIRIDIS) - 1)
        color = [np.interp(place, range(len(VIRIDIS)), VIRIDIS[:, k]) for k in range(3)]
        assert np.abs(shown.pixels[5, 5, :3] - color).max() <= 1
        assert tuple(shown.pixels[0, 0, :3]) == (255, 0, 255)
        assert tuple(shown.pixels[0, 1]) == tuple(shown.pixels[0, 2]) == (68, 1, 84, 255)
    assert channel_picture("red", np.zeros((2, 2, 3))).legend.low == 0.5


def test_a_scene_file_names_the_view_and_recipes_keep_it(tmp_path):
    path = tmp_path / "box.toml"
    path.write_text(BOX.replace("[settings]", '[inspect]\nview = "nodes visited"\nstep = 2\n[settings]'))
    scene = load(path)
    assert scene.inspect == Inspect("nodes visited", 2)
    assert "inspect" not in make_recipe(replace(scene, inspect=Inspect()), tmp_path)["scene"]
    shown = replace(scene, inspect=Inspect("stencil", 1, (0.25, 0.75)))
    save(Session.of((shown,)), tmp_path / "session.json")
    assert restore(tmp_path / "session.json").scenes[0].inspect == shown.inspect
    assert written(shown).scene.inspect == shown.inspect
    for line, sentence in (
        ('view = "heat"', 'box.toml: inspect: view is "heat"; allowed are color, albedo'),
        ("step = -1", "inspect: step is -1"),
        ("pixel = [0.5, 2.0]", "inspect: pixel"),
        ("levels = 3", "levels"),
    ):
        path.write_text(BOX.replace("[settings]", f"[inspect]\n{line}\n[settings]"))
        with pytest.raises(InputError, match=re.escape(sentence)):
            load(path)


def test_the_difference_of_exposed_pictures(gl, rng):
    shown, kept = (rng.integers(0, 256, (12, 17, 4)).astype("u1") for _ in range(2))
    comparison = Comparison(gl)
    kept_texture = gl.texture((17, 12), 4, "f1").write(kept)
    comparison.source = lambda: Reference(kept_texture)
    comparison.mode = "difference"
    texture = gl.texture((17, 12), 4, "f1").write(shown)
    for stops in (0.0, 2.0, -1.5):
        comparison.look = DifferenceLook(3.0, stops)
        found = comparison.textures(texture, 0.0)[0].read()[..., :3]
        a, b = (
            linear_to_srgb(np.minimum(srgb_to_linear(v[..., :3]) * 2.0**stops, 1)).astype(float) for v in (shown, kept)
        )
        assert np.abs(np.minimum(3 * np.abs(a - b), 255) - found).max() <= (
            1 if stops == 0 else 4
        )  # of 8-bit roundings


@pytest.mark.parametrize("kind", picture_kinds())
def test_every_view_has_a_line_of_help(kind):
    names = picture_class(kind).view_names()
    assert len(set(names)) == len(names) and names[0] == "color" and set(names) <= VIEW_HELP.keys()
