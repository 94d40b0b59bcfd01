"""Comparing pictures, the inspector, focus and denoising in a headless window."""

from dataclasses import replace

import numpy as np
import pytest

from renderer.formats.images import linear_to_srgb, write_exr, write_png
from renderer.images import denoise
from renderer.images.metrics import psnr
from renderer.images.tone_mapping import ExposureMeter
from renderer.paths import ROOT
from renderer.pictures import load, make_recipe, open_picture, toy
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui
from renderer.window.panels import comparison, display, picture_overlays
from renderer.window.panels.pixel_zoom import PixelZoom
from renderer.window.state import open_files, panel_actions
from tests.window.headless import center, drag, draw_full_sample, finish, frames, press, until, window


def test_comparison_with_a_kept_picture(screen):
    finish(screen)
    panel = screen.app.panel
    press(screen, "S")
    kept = panel.display.texture.read()
    press(screen, "E")
    finish(screen)
    assert panel.scene.tone.ev == 0.5
    assert not np.array_equal(panel.display.texture.read(), kept)
    press(screen, "W")
    assert panel.comparison.mode == "wipe"
    x, y, width, height = screen.app.panels.shown[0].image_rect
    imgui.get_io().add_mouse_pos_event(x + width // 2, y + height // 2)
    frames(screen, 3)
    assert screen.app.current_message(screen.app.now()) == "compare: wipe"
    assert panel.comparison.wipe == pytest.approx(0.5, abs=0.01)
    window, middle = screen.pixels()[y : y + height, x : x + width], slice(90, height - 120)
    assert psnr(window[middle, 4 : width // 2 - 4], panel.display.texture.read()[middle, 4 : width // 2 - 4, :3]) > 45
    assert psnr(window[middle, width // 2 + 4 : -4], kept[middle, width // 2 + 4 : -4, :3]) > 45
    press(screen, "W")
    assert {panel.comparison.textures(panel.display.texture, t)[0] for t in (0.0, 0.7)} == {
        panel.display.texture,
        panel.comparison.reference(),
    }
    press(screen, "W")
    difference = panel.comparison.textures(panel.display.texture, 0.0)[0].read()[..., :3]
    wanted = np.abs(panel.display.texture.read()[..., :3].astype(int) - kept[..., :3]) * panel.comparison.look.gain
    assert np.abs(difference - np.minimum(wanted, 255)).max() <= 1
    press(screen, "W")
    assert panel.comparison.mode == "off"


def test_comparison_with_another_panel_follows_it(screen):
    finish(screen)
    press(screen, "W")
    first, second = screen.app.panels
    assert first.comparison.mode == "wipe" and first.comparison.reference() is second.display.texture
    press(screen, "2")
    press(screen, "Ctrl+W")
    frames(screen, 3)
    assert not screen.app.panel.error


def test_a_panel_of_the_same_kind_is_compared_first_and_the_key_takes_the_others(screen, monkeypatch):
    monkeypatch.setattr(toy, "_try_program", lambda settings: None)
    finish(screen)
    app = screen.app
    app.panels.active = 1
    press(screen, "Ctrl+D")
    app.panels.active = 1
    press(screen, "Ctrl+Alt+N")  # lies between the two fractals
    finish(screen)
    app.panels.active = 0
    first, shader, second = app.panels
    assert shader.scene.picture == "toy" and second.scene.picture == "fractal"
    press(screen, "W")
    assert first.comparison.reference() is second.display.texture
    assert app.message == "compare: wipe with second; Shift+S takes another panel"
    for other in (shader, second):
        press(screen, "Shift+S")
        assert first.comparison.reference() is other.display.texture
        assert f"reference: {other.scene.title};" in app.message


def test_the_measured_difference_is_a_message_and_opens_its_section(screen):
    finish(screen)
    press(screen, "Ctrl+M")
    assert "no reference" in screen.app.message
    press(screen, "S")
    press(screen, "Ctrl+M")
    until(screen, lambda: screen.app.message.startswith("MSE 0"))
    assert "PSNR" in screen.app.message and "FLIP" in screen.app.message


def test_a_reference_of_another_size_is_said_and_met(screen, tmp_path):
    """A picture file of a 4:3 picture, compared in a panel of another shape, and the pixel that differs most."""
    pixels = np.zeros((60, 80, 3), "u1")
    pixels[45, 20] = 255
    write_png(tmp_path / "kept.png", pixels)
    finish(screen)
    panel = screen.app.panel
    panel.comparison.set_reference_file(tmp_path / "kept.png")
    panel.comparison.switch("difference", panel.display.texture)
    assert panel.comparison.other_size(panel.display.texture) == (80, 60)
    panel.fixed_size = (80, 60)
    finish(screen)
    assert panel.display.texture.size == (80, 60) and panel.comparison.other_size(panel.display.texture) is None
    width, height = screen.app.panels.shown[0].image_rect[2:]
    assert abs(width / height - 4 / 3) < 0.02, "the picture keeps its shape in the panel"
    shown = panel.display.texture.read()[..., :3].astype("f8")
    panel.comparison.switch("difference", panel.display.texture)
    gain = panel.comparison.look.gain
    apart = np.abs(shown - pixels)
    assert gain == pytest.approx(255 / np.percentile(apart[apart > 0], 99.9), rel=0.05)
    panel.measure()
    until(screen, lambda: "largest" in panel.comparison.numbers)
    apart = np.abs(shown - pixels).max(-1)
    row, column = np.unravel_index(apart.argmax(), apart.shape)
    assert panel.comparison.largest_at == pytest.approx(((column + 0.5) / 80, (row + 0.5) / 60))
    zoom = PixelZoom().zoomed(12, 0.5, 0.5).centered(*panel.comparison.largest_at)
    assert column in zoom.pixels((80, 60))[0] and row in zoom.pixels((80, 60))[1]


def test_a_picture_file_keeps_its_size_and_samples(screen, tmp_path):
    recipe = make_recipe(screen.app.panel.scene, tmp_path, size=[64, 48], samples=7)
    write_png(tmp_path / "a.png", np.zeros((48, 64, 3), "u1"), recipe)
    open_files.open_path(screen.app, tmp_path / "a.png")
    panel = screen.app.panel
    assert (panel.fixed_size, panel.scene.settings.samples) == ((64, 48), 7)
    finish(screen)
    assert panel.display.texture.size == (64, 48) and panel.measured.samples == 7


def test_a_button_keeps_its_width_and_an_error_names_the_file_alone(screen):
    finish(screen)
    imgui.new_frame()
    one, other = theme.button_width("Pause"), theme.button_width("Resume")
    imgui.end_frame()
    assert one == other > 0 == theme.button_width("Find")
    panel = screen.app.panel
    panel.update_error = f"{panel.original.path}:8: syntax error"
    assert panel.short_error == "first.toml:8: syntax error"


def test_the_inspector_compares_linear_values_and_says_that_exposures_differ(screen):
    finish(screen)
    panel, other = screen.app.panels
    assert picture_overlays.reference_lines(panel, 0.5, 0.5) == []
    press(screen, "W")
    width, height = other.display.frame.size
    linear = other.display.frame.read()[height // 2, width // 2]
    srgb, values = picture_overlays.reference_lines(panel, 0.5, 0.5)
    assert srgb.startswith("second: sRGB ") and values.startswith("second: linear ")
    assert [float(word) for word in values.split()[2:]] == pytest.approx(linear.tolist(), rel=1e-5)
    panel.show(replace(panel.scene, tone=replace(panel.scene.tone, exposure="auto")))
    assert picture_overlays.reference_lines(panel, 0.5, 0.5)[-1] == "the exposures differ"
    before = panel.display.frame.read()[3, 4].tolist()
    press(screen, "S")
    at = 4.5 / width, 3.5 / height
    kept = picture_overlays.reference_lines(panel, *at)
    linear = kept[1].partition(": linear ")[2]
    assert len(kept) == 3 and [float(word) for word in linear.split()] == pytest.approx(before, rel=1e-5)


def test_compared_pictures_have_the_exposure_of_the_displayed_one(screen, tmp_path, monkeypatch):
    """The witness is the exposure that exports meter on the host."""
    panel, other = screen.app.panels
    automatic = replace(panel.scene.tone, exposure="auto")
    for shown in (panel, other):
        shown.show(replace(shown.scene, tone=automatic))
    finish(screen)
    linear = panel.display.frame.read()
    factor = ExposureMeter().add(linear).exposure(automatic)

    def as_shown(values):
        return linear_to_srgb(values[..., :3] * np.float32(factor)).astype("f8")

    press(screen, "S")
    brighter = linear * np.array([4, 4, 4, 1], "f4")
    kept, changed = panel.comparison.source().linear, panel.comparison.reference().read()
    kept.write(brighter)
    press(screen, "W")
    assert panel.comparison.shared and not np.array_equal(panel.comparison.reference().read(), changed)
    assert np.abs(panel.comparison.reference().read()[..., :3] - as_shown(brighter)).max() <= 2
    assert np.abs(panel.display.texture.read()[..., :3] - as_shown(linear)).max() <= 2
    assert picture_overlays.reference_lines(panel, 0.5, 0.5)[-1].startswith("one exposure")
    mapped = panel.comparison.reference()
    frames(screen, 3)
    assert panel.comparison.reference() is mapped
    panel.show(replace(panel.scene, tone=replace(automatic, exposure="manual")))
    frames(screen, 3)
    assert panel.comparison.shared is None, "a manual exposure is the user's"

    panel.show(replace(panel.scene, tone=automatic))
    monkeypatch.setattr(comparison, "read_exr", lambda path: brighter)
    panel.comparison.set_reference_file(tmp_path / "kept.exr")
    panel.measure()
    assert np.abs(panel.comparison.reference().read()[..., :3] - as_shown(brighter)).max() <= 2


def test_pixel_inspector_reads_the_pixel_under_the_pointer(screen):
    finish(screen)
    panel, (x, y, width, height) = screen.app.panel, screen.app.panels.shown[0].image_rect
    linear, shown = panel.display.frame.read(), panel.display.texture.read()
    assert np.array_equal(panel.display.frame.read_region(5, 7, 3, 2), linear[7:9, 5:8])
    assert np.array_equal(panel.display.texture.read_region(width - 2, 0, 2, 1), shown[:1, -2:])
    assert picture_overlays.region(panel.display.texture, 0, 0).shape == (5, 5, 4)
    lines = picture_overlays.pixel_lines(linear[3, 4], shown[3, 4])
    assert float(lines[0].split()[1]) == pytest.approx(linear[3, 4, 0], rel=1e-5)
    assert int(lines[2].split()[2]) == shown[3, 4, 2]
    assert picture_overlays.pixel_lines(np.array([np.nan, np.inf, 0, 1]), shown[0, 0])[-2:] == [
        "not a number",
        "infinite",
    ]
    before = screen.pixels()
    press(screen, "I")
    imgui.get_io().add_mouse_pos_event(x + width // 2, y + height // 2)
    frames(screen, 3)
    assert not np.array_equal(screen.pixels(), before)
    for corner in ((x, y), (x + width - 1, y + height - 1), (x + width + 40, 5)):
        imgui.get_io().add_mouse_pos_event(*corner)
        frames(screen)


def test_ctrl_click_sets_the_focus_distance(gl, gpu):
    scene = load(ROOT / "scenes" / "mirrors.toml")
    with window([scene], gpu, gl, (640, 400)) as screen:
        app = screen.app
        draw_full_sample(screen)
        x, y, width, height = app.panels.shown[0].image_rect
        eye, target = (np.array(point) for point in (scene.settings.view.position, scene.settings.view.target))
        forward = (target - eye) / np.linalg.norm(target - eye)
        start = app.panel.settings().view
        imgui.get_io().add_key_event(imgui.Key.mod_ctrl, True)
        drag(screen, center(screen, 0), 0, 0)
        imgui.get_io().add_key_event(imgui.Key.mod_ctrl, False)
        frames(screen)
        ball, radius = np.array([0.0, 1.0, -0.4]), 1.0  # the silver one in the middle
        along = (ball - eye) @ forward
        aside = np.linalg.norm(ball - eye - along * forward)
        wanted = along - np.sqrt(radius**2 - aside**2)
        settings = app.panel.settings()
        assert settings.focus_distance == pytest.approx(wanted, rel=0.01) and settings.view == start
        assert "focus distance" in app.message and "lens radius" in app.message
        press(screen, "Ctrl+F")
        assert app.input.picking
        drag(screen, (x + width * 0.5, y + 3), 0, 0)  # the sky
        assert not app.input.picking and "nothing is there" in app.message
        assert app.panel.settings().focus_distance == settings.focus_distance
        press(screen, "Ctrl+Z")
        assert app.panel.settings().focus_distance == 0
        press(screen, "Ctrl+F")
        press(screen, "Ctrl+F")  # without a mouse: what is in the middle
        assert app.panel.settings().focus_distance == pytest.approx(wanted, rel=0.01)


def test_focus_on_a_picture_without_depth_shows_a_message(screen):
    finish(screen)
    before = screen.app.panel.scene
    press(screen, "Ctrl+F")
    drag(screen, center(screen, 0), 0, 0)
    assert "nothing to focus on" in screen.app.message and screen.app.panel.scene == before


def test_a_denoised_picture_is_shown_until_another_is_drawn(gl, gpu, monkeypatch):
    """A negative stands in for OIDN: it is computed on another thread, from the layers of the finished picture."""
    seen = []

    def negative(linear, albedo, normal):
        seen.append((linear[..., :3].shape, albedo.shape, normal.shape))
        return np.concatenate([4 - linear[..., :3], linear[..., 3:]], -1)

    monkeypatch.setattr(display, "denoise", negative)
    monkeypatch.setattr(panel_actions, "check_denoiser", lambda: None)
    scene = load(ROOT / "scenes" / "cornell.toml")
    scene = replace(scene, settings=replace(scene.settings, samples=1, max_depth=1))
    with window([scene], gpu, gl, (300, 220)) as screen:
        panel = screen.app.panel
        finish(screen)
        noisy = panel.display.frame.read()
        press(screen, "Alt+N")
        until(screen, lambda: panel.denoiser.displayed)
        assert np.array_equal(panel.display.frame.read()[..., :3], 4 - noisy[..., :3])
        assert seen == [(noisy[..., :3].shape,) * 3]
        press(screen, "Alt+N")
        finish(screen)
        assert not panel.denoiser.displayed and np.array_equal(panel.display.frame.read(), noisy)
        monkeypatch.setattr(display, "denoise", lambda *layers: 1 / 0)
        press(screen, "Alt+N")
        until(screen, lambda: panel.update_error)
        assert "denoising" in panel.update_error and not panel.denoiser.enabled


@pytest.mark.slow
def test_finished_pictures_are_denoised_on_request(gl, gpu):
    pytest.importorskip("pyoidn", reason="denoising needs pyoidn")
    scene = load(ROOT / "scenes" / "cornell.toml")
    scene = replace(scene, settings=replace(scene.settings, samples=2, max_depth=2))
    with window([scene], gpu, gl, (420, 300)) as screen:
        panel = screen.app.panel
        draw_full_sample(screen)
        until(screen, lambda: panel.draw_loop.is_finished)
        noisy = panel.display.frame.read()
        press(screen, "Alt+N")
        until(screen, lambda: panel.denoiser.displayed)
        picture = open_picture(scene, screen.app.gpu)
        for _ in range(2):
            drawn = picture.draw(scene.settings, panel.display.texture.size, 0.0)
        layers = picture.layers(scene.settings, panel.display.texture.size)
        wanted = denoise.denoise(drawn.read(), albedo=layers["albedo"], normal=layers["normal"])
        assert np.allclose(panel.display.frame.read(), wanted, atol=1e-3) and not np.allclose(wanted, noisy, atol=1e-2)
        press(screen, "D")  # another picture: noisy while it is drawn, clean when it is finished
        draw_full_sample(screen)
        until(screen, lambda: panel.denoiser.displayed)
        press(screen, "Shift+D")
        press(screen, "Alt+N")
        draw_full_sample(screen)
        until(screen, lambda: panel.draw_loop.is_finished)
        assert not panel.denoiser.displayed and np.array_equal(panel.display.frame.read(), noisy)


def test_a_picture_file_is_shown_as_it_is(screen, tmp_path, rng):
    values = rng.integers(0, 256, (30, 40, 3)).astype("u1")
    write_png(tmp_path / "other.png", values)
    linear = rng.uniform(0, 4, (20, 24, 4)).astype("f4")
    write_exr(tmp_path / "light.exr", {"": linear})
    panel = screen.app.panel
    for name, size in (("other.png", (40, 30)), ("light.exr", (24, 20))):
        open_files.open_path(screen.app, tmp_path / name)
        finish(screen)
        assert not panel.error and panel.fixed_size == size == panel.display.texture.size
        if name == "other.png":
            assert np.array_equal(panel.display.texture.read()[..., :3], values)
        else:
            assert np.array_equal(panel.display.frame.read()[..., :3], linear[..., :3])


def test_the_duration_says_why_it_stays(screen):
    from renderer.scene.animation import Animation
    from renderer.window.timeline import view

    app, animation, times = screen.app, Animation(4.0), [0.0, 3.92]
    app.message = ""
    view._set_duration(app, animation, times, 0.4)
    assert "the last key frame is at 3.92 s" in app.message and app.panel.scene.animation is None
    view._set_duration(app, animation, times, 5.0)
    assert app.panel.scene.animation.duration == 5.0
