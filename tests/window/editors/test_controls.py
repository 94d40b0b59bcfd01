"""Controls, keys and the timeline in a headless window."""

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import glfw
import numpy as np
import pytest

from renderer.pictures import load
from renderer.scene.animation import EASE, Key, keyframe_times
from renderer.window.controls import settings, theme
from renderer.window.controls.toolkit import imgui
from renderer.window.panels import panel_view
from renderer.window.timeline import actions
from renderer.window.timeline.tracks import CURVE_SIZE, Tracks
from tests.window.editors.test_queued_keys import callback
from tests.window.headless import center, drag, finish, frames, press, view, wait_for_undo_step, window
from tests.window.helpers import HEIGHT, WIDTH


def test_keys_run_their_actions(screen):
    app = screen.app
    press(screen, "D")
    assert app.panel.scene.settings.max_iterations == 50
    press(screen, "Shift+D")
    assert app.panel.scene.settings.max_iterations == 40
    press(screen, "Space")
    assert app.panel.paused
    press(screen, "Tab")
    assert app.panels.active == 1 and not app.panel.paused
    press(screen, "1")
    assert app.panels.active == 0
    press(screen, "E")
    assert app.panel.scene.tone.ev == 0.5
    press(screen, "X")
    assert app.panel.scene.tone.exposure == "auto"
    press(screen, "Left")
    assert view(screen) != view(screen, 1)
    press(screen, "Home")
    assert view(screen) == view(screen, 1)
    press(screen, "H")
    assert (
        not app.overlays.sidebar
        and app.panels.shown[-1].image_rect[0] + app.panels.shown[-1].image_rect[2] > WIDTH - 20
    )
    press(screen, "Ctrl+Q")
    press(screen, "D")  # discards the changes
    assert app.loop.quit_requested


def test_undo_takes_one_step_per_drag(screen):
    start = view(screen)
    drag(screen, center(screen, 0), 40, 0)
    wait_for_undo_step(screen)
    dragged = view(screen)
    press(screen, "E")
    wait_for_undo_step(screen)
    press(screen, "Ctrl+Z")
    assert view(screen) == dragged and screen.app.panel.scene.tone.ev == 0
    press(screen, "Ctrl+Z")
    assert view(screen) == start
    press(screen, "Ctrl+Z")
    assert view(screen) == start and "nothing" in screen.app.message
    press(screen, "Ctrl+Y")
    press(screen, "Ctrl+Y")
    assert view(screen) == dragged and screen.app.panel.scene.tone.ev == 0.5
    press(screen, "Ctrl+Backspace")
    assert screen.app.panel.scene == screen.app.panel.original


def test_help_and_palette_list_the_actions(screen):
    plain = screen.pixels()
    press(screen, "F1")
    assert screen.app.overlays.help and not np.array_equal(screen.pixels(), plain)
    press(screen, "Escape")
    press(screen, "Ctrl+P")
    frames(screen, 3)
    imgui.get_io().add_input_characters_utf8("hide or show")
    frames(screen, 3)
    press(screen, "Enter")
    assert not screen.app.overlays.palette and not screen.app.overlays.sidebar
    press(screen, "Ctrl+P")
    frames(screen, 3)
    imgui.get_io().add_input_characters_utf8("next ")
    frames(screen, 3)
    for keys in ("Down", "Down", "Down", "Up", "Enter"):  # next max_iterations, next scene, next panel
        press(screen, keys)
    assert not screen.app.overlays.palette and screen.app.panels.active == 1


def test_typed_text_runs_no_action(screen):
    press(screen, "Ctrl+P")
    frames(screen, 3)
    press(screen, "E")
    assert screen.app.panel.scene.tone.ev == 0
    press(screen, "Escape")
    assert not screen.app.overlays.palette


@pytest.fixture
def places(monkeypatch):
    """The rectangle of each control: name -> (left, top, right, bottom)."""
    places, control = {}, settings._control

    def noted(f, kind, value, *context):
        value = control(f, kind, value, *context)
        low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
        places[f.name] = (low.x, low.y, high.x, high.y)
        return value

    monkeypatch.setattr(settings, "_control", noted)
    return places


@pytest.mark.parametrize(
    "name, low, high", [("color_density", 0.01, 4.0), ("color_offset", 0.0, 1.0), ("relief", 0.0, 1.0)]
)
def test_a_slider_follows_the_pointer(screen, places, name, low, high):
    frames(screen)
    before = screen.app.panel.scene.settings
    left, top, right, bottom = places[name]
    drag(screen, (left + 20, (top + bottom) / 2), 0.75 * (right - left) - 20, 0)
    after = screen.app.panel.scene.settings
    assert getattr(after, name) == pytest.approx(low + 0.75 * (high - low), abs=0.04 * (high - low))
    assert replace(after, **{name: getattr(before, name)}) == before, "no other setting changed"
    left, top, right, bottom = places[name]  # beside it is the reset button now
    drag(screen, (right + 16, (top + bottom) / 2), 0, 0)
    assert screen.app.panel.scene.settings == before


def test_bars_and_controls_scale_with_the_pixel_density(gl, scene_files, places):
    """Drags hit the scaled controls; pictures have the window's pixel density."""
    for scale in (1.0, 2.0):
        with window([load(scene_files[0])], None, gl, (int(900 * scale), int(520 * scale)), scale) as screen:
            finish(screen)
            panel, (_, y, width, height) = screen.app.panel, screen.app.panels.shown[0].image_rect
            assert y - screen.app.panels.rects[0][1] == 26 * scale and panel.display.texture.size == (width, height)
            left, top, right, bottom = places["color_offset"]
            assert bottom - top == pytest.approx(23 * scale, abs=2 * scale) and right > 880 * scale - 60 * scale
            drag(screen, (left + 20 * scale, (top + bottom) / 2), 0.75 * (right - left) - 20 * scale, 0)
            assert panel.scene.settings.color_offset == pytest.approx(0.75, abs=0.04)


def test_a_value_can_be_typed_and_stays_in_its_range(screen, places):
    frames(screen)
    io, (left, top, right, bottom) = imgui.get_io(), places["max_iterations"]
    for typed, wanted in (("123", 123), ("99999999", 1_000_000)):
        io.add_key_event(imgui.Key.mod_ctrl, True)
        drag(screen, ((left + right) / 2, (top + bottom) / 2), 0, 0)
        io.add_key_event(imgui.Key.mod_ctrl, False)
        frames(screen)
        io.add_input_characters_utf8(typed)
        frames(screen, 3)
        press(screen, "Enter")
        assert screen.app.panel.scene.settings.max_iterations == wanted


def test_what_is_typed_at_once_after_tab_goes_into_the_next_field(screen, places):
    """The witness is slow typing. A window of a few frames a second lost the first character: .7 became 7."""
    frames(screen)
    io, before, results = imgui.get_io(), screen.app.panel.scene, []
    for pause in (4, 0):
        event = callback(screen)
        (left, top, right, bottom) = places["max_iterations"]
        io.add_key_event(imgui.Key.mod_ctrl, True)
        drag(screen, ((left + right) / 2, (top + bottom) / 2), 0, 0)
        io.add_key_event(imgui.Key.mod_ctrl, False)
        frames(screen)
        io.add_input_characters_utf8("123")
        frames(screen, 3)
        for code, key, text in ((glfw.KEY_TAB, imgui.Key.tab, ""), (glfw.KEY_7, imgui.Key._7, "75")):
            event(code, glfw.PRESS, 0, (key, True))
            io.add_input_characters_utf8(text)
            event(code, glfw.RELEASE, 0, (key, False))
            frames(screen, pause)
        frames(screen, 4)
        press(screen, "Enter")
        results.append(screen.app.panel.scene.settings)
        screen.app.panel.show(before)
        frames(screen, 2)
    changed = [name for name in vars(before.settings) if getattr(before.settings, name) != getattr(results[0], name)]
    assert results[0] == results[1] and "max_iterations" in changed and len(changed) == 2


def test_a_typed_number_is_the_decimal_that_was_typed(rng):
    """0.9 was saved as 0.8999999761581421, the float32 of the control."""
    for text in ("0.9", "-0.1", "1e-06", "123.456", *(f"{x:.4g}" for x in rng.normal(0, 9, 40))):
        shown = float(np.float32(text))
        assert settings.shortest(shown) == float(text) and np.float32(settings.shortest(shown)) == shown


def test_a_decimal_number_of_any_length_can_be_typed(gl, scene_files, places, monkeypatch):
    opened, digits = imgui.tree_node_ex, "0.1" + "234567890" * 12
    monkeypatch.setattr(imgui, "tree_node_ex", lambda *fold: (imgui.set_next_item_open(True), opened(*fold))[1])
    with window([load(scene_files[0])], None, gl, (900, 1500)) as screen:
        frames(screen, 4)
        io, before = imgui.get_io(), screen.app.panel.scene.settings.view
        for typed, key, wanted in (
            ("25e-1", "Enter", Decimal("2.5")),
            ("-3", "Enter", Decimal("2.5")),
            (digits, "Enter", Decimal(digits)),
            ("1.25", "Tab", Decimal("1.25")),
        ):
            left, top, right, bottom = places["height"]
            drag(screen, ((left + right) / 2, (top + bottom) / 2), 0, 0)
            io.add_key_event(imgui.Key.mod_ctrl, True)
            press(screen, "A")
            io.add_key_event(imgui.Key.mod_ctrl, False)
            io.add_input_characters_utf8(typed)
            frames(screen, 3)
            press(screen, key)
            frames(screen, 2)
            assert screen.app.panel.scene.settings.view == replace(before, height=wanted)


def test_controls_work_by_keyboard_alone(screen, places):
    press(screen, "F6")
    assert screen.app.input.keyboard_navigation
    before = screen.app.panel.scene
    for _ in range(6):
        press(screen, "Down")
    press(screen, "Space")
    press(screen, "Right")
    press(screen, "F6")
    assert not screen.app.input.keyboard_navigation and screen.app.panel.scene.settings.view == before.settings.view
    press(screen, "Right")
    assert screen.app.panel.scene.settings.view != before.settings.view


def test_key_frames_are_inserted_and_edited_in_the_window(screen, tmp_path):
    app, panel = screen.app, screen.app.panel
    below = app.panels.shown[0].image_rect
    press(screen, "D")
    press(screen, "Ctrl+K")
    assert actions.shows_timeline(app) and panel.paused and app.panels.shown[0].image_rect[3] < below[3]
    assert [track.path for track in panel.scene.animation.tracks] == ["max_iterations"]
    assert panel.scene.animation.duration == 4.0
    press(screen, "Ctrl+Shift+K")
    assert panel.scene.animation is None and panel.scene.settings.max_iterations == 50
    press(screen, "Ctrl+Backspace")
    press(screen, "Ctrl+K")
    paths = {track.path for track in panel.scene.animation.tracks}
    assert paths == {"view.center", "view.height", "view.rotation_degrees"}, "without a change the view is kept"
    wait_for_undo_step(screen)  # so that the next edit is a separate undo step
    for _ in range(24):
        press(screen, ".")
    assert panel.scene_time == 1.0
    start = panel.settings().view
    drag(screen, center(screen, 0), 60, 0)
    moved = panel.settings().view
    assert moved.center[0] < start.center[0] and keyframe_times(panel.scene.animation) == [0.0, 1.0]
    wait_for_undo_step(screen)
    press(screen, "D")
    wait_for_undo_step(screen)
    assert panel.settings().max_iterations == 50 and "max_iterations" not in {
        t.path for t in panel.scene.animation.tracks
    }
    press(screen, "PageUp")
    assert panel.scene_time == 0.0 and panel.settings().view == start and panel.settings().max_iterations == 50
    press(screen, "PageDown")
    assert panel.scene_time == 1.0 and panel.settings().view == moved
    press(screen, "Ctrl+Z")
    press(screen, "Ctrl+Z")
    assert keyframe_times(panel.scene.animation) == [0.0]
    press(screen, "Ctrl+Y")
    press(screen, "Space")
    wait_for_undo_step(screen)
    assert not panel.paused and panel.scene_time > 1.0
    press(screen, "Ctrl+S")
    saved = load(tmp_path / "first.toml")
    assert saved.animation == panel.scene.animation and saved.settings == panel.scene.settings


def test_key_frames_that_the_settings_refuse_are_not_shown(screen):
    """A row's edit is one undo step if the settings at the scene time allow it, and otherwise a message."""
    app, panel, tracks = screen.app, screen.app.panel, Tracks(screen.app)
    press(screen, "D")
    press(screen, "Ctrl+K")
    wait_for_undo_step(screen)
    before, name = panel.scene, ("max_iterations", 0.0)
    tracks.copied = (("max_iterations", Key(0.0, -5, "smooth")),)
    tracks.paste()
    assert panel.scene is before and "first.toml: max_iterations is -5; it must be 1 to 1000000" in app.message
    tracks.copied = (("max_iterations", Key(0.0, 70, "smooth")),)
    tracks.paste()
    assert panel.settings().max_iterations == 70 and tracks.chosen == {name}
    tracks.ease("hold")
    assert panel.scene.animation.tracks[0].keys == (Key(0.0, 70, "hold"),)
    tracks.delete()
    assert panel.scene.animation is None and not tracks.chosen
    press(screen, "Ctrl+Z")
    assert panel.scene.animation.tracks[0].keys == (Key(0.0, 70, "hold"),)


def test_the_points_of_a_curve_are_dragged(screen, monkeypatch):
    """The editor of the menu "Curve", drawn instead of the rows: the nearer point follows the pointer to the sides."""
    corner, panel, tracks = [], screen.app.panel, screen.ui.main_window.tracks

    def draw(self, left, width, scale):
        position = imgui.get_cursor_screen_pos()
        corner[:] = position.x, position.y
        key = self._first_key()
        self._curve_editor(key.curve if key is not None else EASE, scale)

    press(screen, "D")
    press(screen, "Ctrl+K")
    press(screen, "Ctrl+Shift+T")
    wait_for_undo_step(screen)
    monkeypatch.setattr(Tracks, "height", lambda self, scale: 170.0)
    monkeypatch.setattr(Tracks, "draw", draw)
    tracks.chosen = frozenset({("max_iterations", 0.0)})
    frames(screen, 3)

    def dragged(start, end):
        a, b = ((corner[0] + x * CURVE_SIZE, corner[1] + (1 - y) * CURVE_SIZE) for x, y in (start, end))
        drag(screen, a, b[0] - a[0], b[1] - a[1])
        (key,) = panel.scene.animation.tracks[0].keys
        return key.curve

    assert dragged((0.3, 0.2), (0.6, 0.4)) == pytest.approx((0.6, 0.4, *EASE[2:]), abs=0.01), "the first was nearer"
    assert dragged((0.3, 0.9), (0.2, 0.6)) == pytest.approx((0.6, 0.4, 0.2, 0.6), abs=0.01)
    assert dragged((0.2, 0.55), (-0.5, 1.5)) == pytest.approx((0.6, 0.4, 0.0, 1.0), abs=0.01)
    assert dragged((0.6, 0.45), (1.5, -0.5)) == pytest.approx((1.0, 0.0, 0.0, 1.0), abs=0.01)
    assert panel.scene.animation.tracks[0].keys[0].interpolation == "curve"


def test_the_timeline_scrubs(screen):
    panel = screen.app.panel
    press(screen, "Ctrl+K")
    press(screen, "H")
    bottom = HEIGHT - 22
    drag(screen, (460, bottom), 60, 0)
    first = panel.scene_time
    assert panel.paused and 0 < first < 4.0
    drag(screen, (460, bottom), 0, 0)
    assert 0 < panel.scene_time < first
    drag(screen, center(screen, 0), 40, 0)
    assert len(keyframe_times(panel.scene.animation)) == 2
    imgui.get_io().add_mouse_pos_event(5, 5)
    frames(screen)
    assert not np.array_equal(screen.pixels()[-40:], np.zeros_like(screen.pixels()[-40:]))


def test_durations_above_a_second_are_seconds_and_dialogs_hide_what_is_behind():
    measured = SimpleNamespace(
        sample_seconds=11.72, sample_rate=SimpleNamespace(mean_rate=lambda: 0.0),
        frame_rate=SimpleNamespace(rate=lambda now: 0.0),
    )  # fmt: skip
    panel = SimpleNamespace(measured=measured, budget=SimpleNamespace(divisor=1), is_playing=False)
    assert panel_view._speed(panel, 0.0, True)[1] == "11.7 s"
    assert panel_view._speed(panel, 0.0, False) == ["11.7 s a sample"]
    measured.sample_seconds = 0.0417
    assert panel_view._speed(panel, 0.0, True)[1] == "41.7 ms"
    assert theme.COLORS["popup_bg"][3] == 1.0


def test_a_caption_lies_on_a_plate_that_holds_its_text(screen):
    drawn = []
    draw = SimpleNamespace(
        add_text=lambda font, size, at, color, text, wrap: drawn.append(at),
        add_rect_filled=lambda low, high, color, rounding: drawn.append((low, high, color >> 24)),
    )
    imgui.new_frame()
    theme.caption(draw, screen.ui.main_window.fonts.text, theme.FONT_SIZE, 20.0, 30.0, "albedo")
    width = imgui.calc_text_size("albedo").x
    imgui.end_frame()
    (low, high, alpha), at = drawn
    assert low[0] < at[0] and at[0] + width < high[0] and low[1] < at[1] < high[1] and alpha > 128
