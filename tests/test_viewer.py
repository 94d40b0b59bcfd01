"""The window: its parts alone, the whole interface in a headless context with injected events, and a real window."""

import gc
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from injected import frames, press, wait_still
from planes import layered_views

from renderer import BadInput, MachineCannot, UserError, denoise
from renderer.animation import key_times
from renderer.gpu import Gpu, source
from renderer.gpu.gl import Texture
from renderer.image import psnr, read_bytes, read_recipe
from renderer.pictures import load, names, open_picture
from renderer.scene import setting
from renderer.view import Plane
from renderer.viewer import opened, set_aside
from renderer.window import bands as bands_module
from renderer.window import controls, inspector
from renderer.window import panel as panel_module
from renderer.window import studio as studio_module
from renderer.window.actions import ACTIONS_OF_A_PICTURE, chord, table
from renderer.window.counter import Counter
from renderer.window.panel import stepped
from renderer.window.remote import Remote
from renderer.window.screen import Offscreen, Window
from renderer.window.session import restore, save, toml_of
from renderer.window.studio import Studio
from renderer.window.table import ACTIONS
from renderer.window.toolkit import glfw, imgui
from renderer.window.watch import Watch

ROOT = Path(__file__).resolve().parents[1]
FRACTAL = """title = "{title}"
picture = "fractal"
settings = {{ iterations = 40, samples = 3, view = {{ centre = [-0.6, 0.0], height = 2.6 }} }}
"""
WIDTH, HEIGHT = 900, 520


# The parts alone


def test_counter_tells_the_median_of_the_last_second(rng):
    counter = Counter()
    moment, intervals = 100.0, rng.uniform(0.005, 0.05, 400)
    for interval in intervals:
        moment += interval
        counter.add(moment)
    moments = 100.0 + np.cumsum(intervals)
    last = moments[moments >= moments[-1] - 1]
    assert counter.rate(moments[-1]) == pytest.approx(1 / np.median(np.diff(last)), rel=1e-6)
    assert counter.rate(moments[-1] + 60) == 0


def test_one_slow_frame_does_not_move_the_rate():
    counter = Counter()
    for moment in [*np.arange(0, 0.5, 0.01), *np.arange(0.8, 1.0, 0.01)]:
        counter.add(float(moment))
    assert counter.rate(1.0) == pytest.approx(100, rel=1e-3)


def test_slow_pictures_have_a_rate_too():
    counter = Counter()
    counter.add(0.0)
    assert counter.rate(0.1) == 0
    counter.add(4.0)
    assert counter.rate(4.1) == pytest.approx(0.25)


@dataclass(frozen=True)
class Numbers:
    depth: int = setting(6, 1, 16, key="d")
    count: int = setting(100, 1, 1 << 20, logarithmic=True)
    kind: Literal["a", "b", "c"] = setting("a", key="k")
    on: bool = True
    part: float = setting(0.5, 0.0, 1.0)


def step(settings, name, direction):
    return getattr(stepped(settings, name, direction), name)


def test_keys_step_settings_within_their_range_and_wrap():
    assert step(Numbers(), "depth", 1) == 7 and step(Numbers(depth=16), "depth", 1) == 1
    assert step(Numbers(depth=1), "depth", -1) == 16
    assert step(Numbers(), "kind", -1) == "c" and step(Numbers(kind="c"), "kind", 1) == "a"
    assert step(Numbers(), "on", 1) is False
    assert step(Numbers(), "count", 1) == 125 and step(Numbers(count=1), "count", 1) == 2
    assert step(Numbers(part=0.97), "part", 1) == 1.0 and step(Numbers(), "part", -1) == pytest.approx(0.45)
    value = Numbers()
    for _ in range(40):
        value = replace(
            value, depth=step(value, "depth", 1), count=step(value, "count", -1), part=step(value, "part", 1)
        )
        assert 1 <= value.depth <= 16 and 1 <= value.count <= 1 << 20 and 0 <= value.part <= 1


def test_every_action_has_keys_of_its_own():
    chords = [chord(action.keys) for action in ACTIONS]
    assert len(set(chords)) == len(chords)
    assert all(action.name and action.group for action in ACTIONS)
    for wrong in ("Hyper+A", "Ctrl+Nonsense", "", "AB"):
        with pytest.raises(ValueError):
            chord(wrong)


@pytest.mark.parametrize("kind", names())
def test_no_picture_takes_a_key_of_the_window(kind):
    import importlib

    module = importlib.import_module(f"renderer.pictures.{kind}")
    own = [f.metadata["key"].upper() for f in fields(module.Settings) if f.metadata.get("key")]
    window = {action.keys for action in ACTIONS}
    assert len(set(own)) == len(own)
    assert not set(own) & window and not {f"Shift+{key}" for key in own} & window
    assert all(chord(key) for key in own)


def test_the_picture_s_keys_stand_in_the_table():
    live = table(ACTIONS, Numbers())
    assert [a.keys for a in live if a.group == ACTIONS_OF_A_PICTURE] == ["D", "Shift+D", "K", "Shift+K"]
    assert len(live) == len(ACTIONS) + 4


def test_inputs_become_panels(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.toml").write_text(FRACTAL.format(title=name))
    (tmp_path / "both.toml").write_text(
        'picture = "layout"\nsettings = { panels = ["a.toml", "b.toml"], columns = 1 }\n'
    )
    scenes, columns = opened([tmp_path / "both.toml"])
    assert [scene.title for scene in scenes] == ["a", "b"] and columns == 1
    scenes, columns = opened([tmp_path / "b.toml", tmp_path / "both.toml"])
    assert [scene.title for scene in scenes] == ["b", "a", "b"] and columns == 0
    with pytest.raises(UserError, match="at most 16"):
        opened([tmp_path / "a.toml"] * 17)
    with pytest.raises(BadInput, match="No such file"):
        opened([tmp_path / "absent.toml"])


def test_no_display_is_a_sentence(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(MachineCannot, match="no display.*main.py export"):
        Window((100, 100), "no")


# The whole interface, headless


@pytest.fixture
def scene_files(tmp_path):
    paths = [tmp_path / f"{name}.toml" for name in ("first", "second")]
    for path in paths:
        path.write_text(FRACTAL.format(title=path.stem))
    return paths


@pytest.fixture
def screen(gl, scene_files, tmp_path, monkeypatch):
    """The interface with two panels in a texture; events are injected."""
    monkeypatch.chdir(tmp_path)
    screen = Offscreen(Studio([load(path) for path in scene_files], Gpu(gl=gl)), gl, (WIDTH, HEIGHT))
    frames(screen, 3)
    yield screen
    screen.close()


def finish(screen, limit: float = 90.0) -> None:
    """Frames until nothing moves and every visible panel is finished at its full size."""
    end = time.perf_counter() + limit
    wait_still(screen)
    while screen.studio.activity(time.perf_counter()) == "drawing" or screen.studio.panel.busy:
        assert time.perf_counter() < end, "the panels do not come to an end"
        screen.frame()
    screen.frame()  # shows what the last one drew


def centre(screen, index: int) -> tuple[float, float]:
    x, y, width, height = screen.studio.rectangles[index]
    return x + width / 2, y + height / 2


def drag(screen, start, dx: float, dy: float, button: int = 0) -> None:
    io = imgui.get_io()
    io.add_mouse_pos_event(*start)
    frames(screen)
    io.add_mouse_button_event(button, True)
    frames(screen)
    for part in (0.5, 1.0):
        io.add_mouse_pos_event(start[0] + dx * part, start[1] + dy * part)
        frames(screen)
    io.add_mouse_button_event(button, False)
    frames(screen)


def view(screen, index: int = 0) -> Plane:
    return screen.studio.panels[index].scene.settings.view


def test_panels_draw_to_their_end_and_then_rest(screen):
    finish(screen)
    for panel in screen.studio.panels:
        assert panel.finished() and panel.samples == 3 and panel.divisor == 1 and not panel.error
        assert panel.shown.size == tuple(screen.studio.rectangles[screen.studio.panels.index(panel)][2:])
    begun = [panel.started for panel in screen.studio.panels]
    frames(screen, 5)
    assert [panel.started for panel in screen.studio.panels] == begun, "a finished panel draws nothing"


def test_a_picture_of_one_sample_is_drawn_at_its_full_size(screen, scene_files, tmp_path):
    path = tmp_path / "one.toml"
    path.write_text(FRACTAL.format(title="one").replace("samples = 3", "samples = 1"))
    screen.resize((1400, 800))  # large enough for a coarse picture to come first
    screen.studio.drop([path])
    screen.studio.solo = True
    screen.studio.restart()
    finish(screen)
    panel = screen.studio.panel
    assert panel.divisor == 1 and panel.samples == 1 and panel.shown.size == tuple(screen.studio.rectangles[0][2:])


def test_the_window_shows_what_export_writes(screen, scene_files, tmp_path):
    finish(screen)
    panel = screen.studio.panels[0]
    width, height = panel.shown.size
    out = tmp_path / "exported.png"
    command = [sys.executable, "main.py", "export", str(scene_files[0]), "-o", str(out), "--size", f"{width}x{height}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    exported = read_bytes(out)[..., :3]
    assert np.array_equal(exported, panel.shown.read()[..., :3])
    x, y, width, height = screen.studio.rectangles[0]
    assert psnr(screen.pixels()[y + 8 : y + height - 8, x + 8 : x + width - 8], exported[8:-8, 8:-8]) > 45


def test_a_drag_pans_by_what_the_pointer_moved(screen):
    before, height = view(screen), screen.studio.rectangles[0][3]
    drag(screen, centre(screen, 0), 60, -30)
    moved = before.drag(60 / height, -30 / height)
    assert view(screen).centre == pytest.approx(moved.centre, abs=1e-6)
    assert view(screen, 1) == before, "the other panel stays"


def test_the_wheel_zooms_about_the_pointer(screen):
    before, (x, y, width, height) = view(screen, 1), screen.studio.rectangles[1]
    io, px, py = imgui.get_io(), x + width * 3 // 4, y + height // 4
    io.add_mouse_pos_event(px, py)
    frames(screen)
    io.add_mouse_wheel_event(0, 2)
    frames(screen)
    assert view(screen, 1) == before.scroll(2, (px - x - width / 2) / height, (py - y - height / 2) / height)
    assert screen.studio.active == 1


def test_a_double_click_shows_one_panel_alone(screen):
    io = imgui.get_io()
    io.add_mouse_pos_event(*centre(screen, 1))
    frames(screen)
    for _ in range(2):
        io.add_mouse_button_event(0, True)
        screen.frame()
        io.add_mouse_button_event(0, False)
        screen.frame()
    assert screen.studio.solo and screen.studio.active == 1 and len(screen.studio.rectangles) == 1
    press(screen, "Escape")
    assert not screen.studio.solo and len(screen.studio.rectangles) == 2


def test_keys_do_what_the_table_says(screen):
    studio = screen.studio
    press(screen, "D")
    assert studio.panel.scene.settings.iterations == 50
    press(screen, "Shift+D")
    assert studio.panel.scene.settings.iterations == 40
    press(screen, "Space")
    assert studio.panel.paused
    press(screen, "Tab")
    assert studio.active == 1 and not studio.panel.paused
    press(screen, "1")
    assert studio.active == 0
    press(screen, "E")
    assert studio.panel.scene.tone.ev == 0.5
    press(screen, "X")
    assert studio.panel.scene.tone.exposure == "auto"
    press(screen, "Left")
    assert view(screen) != view(screen, 1)
    press(screen, "Home")
    assert view(screen) == view(screen, 1)
    press(screen, "H")
    assert not studio.sidebar and studio.rectangles[-1][0] + studio.rectangles[-1][2] > WIDTH - 20
    press(screen, "Ctrl+Q")
    assert studio.leaving


def test_undo_and_redo_take_one_step_a_drag(screen):
    start = view(screen)
    drag(screen, centre(screen, 0), 40, 0)
    wait_still(screen)
    dragged = view(screen)
    press(screen, "E")
    wait_still(screen)
    press(screen, "Ctrl+Z")
    assert view(screen) == dragged and screen.studio.panel.scene.tone.ev == 0
    press(screen, "Ctrl+Z")
    assert view(screen) == start
    press(screen, "Ctrl+Z")
    assert view(screen) == start and "nothing" in screen.studio.message
    press(screen, "Ctrl+Y")
    press(screen, "Ctrl+Y")
    assert view(screen) == dragged and screen.studio.panel.scene.tone.ev == 0.5
    press(screen, "Ctrl+Backspace")
    assert screen.studio.panel.scene == screen.studio.panel.original


def test_next_and_previous_scene(screen):
    press(screen, "N")
    assert screen.studio.panel.scene.title == "second"
    press(screen, "P")
    assert screen.studio.panel.scene.title == "first"


def test_a_screenshot_can_be_opened_as_the_scene_it_shows(screen, tmp_path):
    press(screen, "D")
    finish(screen)
    press(screen, "F12")
    written = tmp_path / "first-001.png"
    assert np.array_equal(read_bytes(written)[..., :3], screen.studio.panel.shown.read()[..., :3])
    scene = load(written)
    assert scene.settings == screen.studio.panel.scene.settings and scene.size == screen.studio.panel.shown.size
    assert read_recipe(written)["samples"] == 3
    screen.studio.drop([written])
    assert screen.studio.panel.scene.settings.iterations == 50
    press(screen, "Shift+F12")
    assert read_bytes(tmp_path / "window-001.png").shape == (HEIGHT, WIDTH, 4)


def test_help_and_palette_come_from_the_table(screen):
    plain = screen.pixels()
    press(screen, "F1")
    assert screen.studio.help and not np.array_equal(screen.pixels(), plain)
    press(screen, "Escape")
    press(screen, "Ctrl+P")
    frames(screen, 3)
    imgui.get_io().add_input_characters_utf8("hide or show")
    frames(screen, 3)
    press(screen, "Enter")
    assert not screen.studio.palette and not screen.studio.sidebar


def test_typed_letters_are_no_commands(screen):
    press(screen, "Ctrl+P")
    frames(screen, 3)
    press(screen, "E")
    assert screen.studio.panel.scene.tone.ev == 0
    press(screen, "Escape")
    assert not screen.studio.palette


def test_an_error_of_one_picture_stays_in_its_panel(screen, monkeypatch):
    finish(screen)
    first, second = screen.studio.panels

    def broken(*arguments):
        raise MachineCannot("the device went away")

    monkeypatch.setattr(first.picture, "draw", broken)
    press(screen, "D")
    finish(screen)
    assert first.error == "the device went away" and not second.error and second.finished()
    before = screen.pixels()
    press(screen, "R")
    finish(screen)
    assert not first.error and first.finished()
    assert not np.array_equal(screen.pixels(), before)


@pytest.fixture
def places(monkeypatch):
    """Where each control stands: name -> (left, top, right, bottom)."""
    places, control = {}, controls._control

    def noted(f, kind, value):
        value = control(f, kind, value)
        low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
        places[f.name] = (low.x, low.y, high.x, high.y)
        return value

    monkeypatch.setattr(controls, "_control", noted)
    return places


@pytest.mark.parametrize("name, low, high", [("density", 0.01, 4.0), ("phase", 0.0, 1.0), ("relief", 0.0, 1.0)])
def test_a_slider_follows_the_pointer(screen, places, name, low, high):
    frames(screen)
    before = screen.studio.panel.scene.settings
    left, top, right, bottom = places[name]
    drag(screen, (left + 20, (top + bottom) / 2), 0.75 * (right - left) - 20, 0)
    after = screen.studio.panel.scene.settings
    assert getattr(after, name) == pytest.approx(low + 0.75 * (high - low), abs=0.04 * (high - low))
    assert replace(after, **{name: getattr(before, name)}) == before, "no other setting changed"
    left, top, right, bottom = places[name]  # beside it stands the button that goes back now
    drag(screen, (right + 16, (top + bottom) / 2), 0, 0)
    assert screen.studio.panel.scene.settings == before


def test_a_value_can_be_typed_and_stays_in_its_range(screen, places):
    frames(screen)
    io, (left, top, right, bottom) = imgui.get_io(), places["iterations"]
    for typed, wanted in (("123", 123), ("99999999", 1_000_000)):
        io.add_key_event(imgui.Key.mod_ctrl, True)
        drag(screen, ((left + right) / 2, (top + bottom) / 2), 0, 0)
        io.add_key_event(imgui.Key.mod_ctrl, False)
        frames(screen)
        io.add_input_characters_utf8(typed)
        frames(screen, 3)
        press(screen, "Enter")
        assert screen.studio.panel.scene.settings.iterations == wanted


def test_the_keyboard_alone_works_the_controls(screen, places):
    press(screen, "F6")
    assert screen.studio.typing
    before = screen.studio.panel.scene
    for _ in range(6):
        press(screen, "Down")
    press(screen, "Space")
    press(screen, "Right")
    press(screen, "F6")
    assert not screen.studio.typing and screen.studio.panel.scene.settings.view == before.settings.view
    press(screen, "Right")
    assert screen.studio.panel.scene.settings.view != before.settings.view


def test_windows_of_every_size_draw(screen):
    for size in ((1, 1), (37, 900), (1600, 40), (300, 200)):
        screen.resize(size)
        frames(screen, 3)
        assert all(w >= 1 and h >= 1 for _, _, w, h in screen.studio.rectangles)
        assert not any(panel.error for panel in screen.studio.panels)


def test_many_panels_and_closing_them(screen):
    while len(screen.studio.panels) < 16:
        press(screen, "Ctrl+D")
    press(screen, "Ctrl+D")
    assert len(screen.studio.panels) == 16 and "16" in screen.studio.message
    for _ in range(20):
        press(screen, "Ctrl+W")
    assert len(screen.studio.panels) == 1 and not screen.studio.panel.error


def test_a_lost_device_keeps_the_session_and_ends_with_a_sentence(gl, gpu, tmp_path, monkeypatch, capsys):
    own, kept = Gpu(gl=gl), tmp_path / "session.json"
    own.devices = [gpu.device]
    screen = Offscreen(Studio([load(ROOT / "scenes" / "mirrors.toml")], own, kept=kept), gl, (200, 160))
    try:
        finish_all(screen, 1)

        def gone(*arguments):
            raise RuntimeError("the driver does not answer")

        monkeypatch.setattr(screen.studio.panel.picture, "draw", gone)
        monkeypatch.setattr(type(gpu.device), "finish", gone)
        with pytest.raises(MachineCannot, match="is lost: .*the driver does not answer.*--restore"):
            screen.studio.step_setting("depth", 1)
            for _ in range(200):
                screen.frame()
        assert restore(kept).scenes[0].settings.depth == 7
    finally:
        monkeypatch.undo()
        screen.close()


@pytest.mark.slow
def test_thousands_of_frames_keep_nothing(screen):
    """Neither memory (this GL keeps its textures there too) nor objects grow while settings and sizes change."""

    def held() -> tuple[float, int, int]:
        """MiB resident, textures alive or waiting to be freed, Python's objects."""
        gc.collect()
        objects = gc.get_objects()
        textures = sum(isinstance(thing, Texture) for thing in objects) + len(screen.gl.ctx.objects)
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4 / 1024, textures, len(objects)

    for count in range(5_000):
        if count % 50 == 0:
            screen.studio.step_setting("phase", 1)
        if count % 400 == 0:
            screen.studio.restart()
            screen.resize((WIDTH, HEIGHT) if count % 800 else (300, 200))
        if count == 1500:
            before = held()
        screen.frame()
    after = held()
    assert after[0] - before[0] < 40 and after[1] - before[1] < 12 and after[2] - before[2] < 5000, (before, after)


def test_a_compute_picture_leaves_the_window_alive(gl, gpu, tmp_path):
    try:
        device = gpu.device
    except MachineCannot as error:
        pytest.skip(str(error))
    own = Gpu(gl=gl)
    own.devices = [device]
    studio = Studio([load(ROOT / "scenes" / "mirrors.toml")], own)
    screen = Offscreen(studio, gl, (640, 400))
    try:
        finish_all(screen, 3)
        assert not studio.panel.error and studio.panel.way and studio.panel.report["live rays"]
        assert studio.panel.device == device.name
    finally:
        screen.close()


def until(screen, condition, limit: float = 90.0) -> None:
    end = time.perf_counter() + limit
    while not condition():
        assert time.perf_counter() < end, "it did not happen in time"
        screen.frame()


def settled(screen, limit: float = 150.0) -> None:
    """Frames until the active panel shows a whole sample of what it is to show, at its full size."""
    panel, end = screen.studio.panel, time.perf_counter() + limit
    frames(screen)
    while True:
        now = time.perf_counter()
        assert now < end and not panel.error, panel.error
        size = screen.studio.rectangles[screen.studio.visible().index(screen.studio.active)][2:]
        if panel.whole and not panel.busy and panel.divisor == 1 and panel._key(size, now) == panel._drawn:
            return
        screen.frame()


def test_a_click_with_ctrl_puts_what_is_there_into_focus(gl, gpu):
    own = Gpu(gl=gl)
    own.devices = [gpu.device]
    scene = load(ROOT / "scenes" / "mirrors.toml")
    screen = Offscreen(Studio([scene], own), gl, (640, 400))
    studio = screen.studio
    try:
        settled(screen)
        x, y, width, height = studio.rectangles[0]
        eye, target = (np.array(point) for point in (scene.settings.view.position, scene.settings.view.target))
        forward = (target - eye) / np.linalg.norm(target - eye)
        start = studio.panel.settings().view
        imgui.get_io().add_key_event(imgui.Key.mod_ctrl, True)
        drag(screen, centre(screen, 0), 0, 0)
        imgui.get_io().add_key_event(imgui.Key.mod_ctrl, False)
        frames(screen)
        ball, radius = np.array([0.0, 1.0, -0.4]), 1.0  # the silver one in the middle
        along = (ball - eye) @ forward
        aside = np.linalg.norm(ball - eye - along * forward)
        wanted = along - np.sqrt(radius**2 - aside**2)
        settings = studio.panel.settings()
        assert settings.focus_distance == pytest.approx(wanted, rel=0.01) and settings.view == start
        assert "in focus" in studio.message and "lens radius" in studio.message
        press(screen, "Ctrl+F")
        assert studio.picking
        drag(screen, (x + width * 0.5, y + 3), 0, 0)  # the sky
        assert not studio.picking and "nothing is there" in studio.message
        assert studio.panel.settings().focus_distance == settings.focus_distance
        press(screen, "Ctrl+Z")
        assert studio.panel.settings().focus_distance == 0
        press(screen, "Ctrl+F")
        press(screen, "Ctrl+F")  # without a mouse: what is in the middle
        assert studio.panel.settings().focus_distance == pytest.approx(wanted, rel=0.01)
    finally:
        screen.close()


def test_the_right_button_flies(gl, gpu):
    """W A S D Q E move the camera along its axes, the mouse turns it where it stands, and letters are no commands."""
    own = Gpu(gl=gl)
    own.devices = [gpu.device]
    screen = Offscreen(Studio([load(ROOT / "scenes" / "mirrors.toml")], own), gl, (640, 400))
    try:
        frames(screen)
        panel, io = screen.studio.panel, imgui.get_io()
        for key, axis, sign in (("w", 2, 1), ("a", 0, -1), ("e", 1, 1)):
            start = panel.settings().view
            io.add_mouse_pos_event(*centre(screen, 0))
            frames(screen)
            io.add_mouse_button_event(1, True)
            io.add_key_event(getattr(imgui.Key, key), True)
            end = time.perf_counter() + 0.3
            until(screen, lambda end=end: time.perf_counter() > end)
            io.add_key_event(getattr(imgui.Key, key), False)
            io.add_mouse_button_event(1, False)
            frames(screen)
            way = np.subtract(panel.settings().view.position, start.position) @ start.frame().T
            assert sign * way[axis] > 0.1 and np.abs(np.delete(way, axis)).max() < 1e-6
            assert np.allclose(np.subtract(panel.settings().view.target, start.target) @ start.frame().T, way)
        start = panel.settings().view
        drag(screen, centre(screen, 0), 40, 0, button=1)
        turned = panel.settings().view
        assert turned.position == start.position and turned.frame()[2] @ start.frame()[0] > 0.01, "to the right"
        assert panel.scene.tone == panel.original.tone and panel.scene.settings.depth == panel.original.settings.depth
    finally:
        screen.close()


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["compact", "regenerate"])
def test_live_rays_by_depth_stand_in_the_window(gl, gpu, schedule):
    own = Gpu(gl=gl)
    own.devices = [gpu.device]
    scene = load(ROOT / "scenes" / "mirrors.toml")
    scene = replace(scene, settings=replace(scene.settings, schedule=schedule, samples=1, depth=4))
    screen = Offscreen(Studio([scene], own), gl, (640, 400))
    try:
        settled(screen)
        live, (_, _, width, height) = screen.studio.panel.report["live rays"], screen.studio.rectangles[0]
        assert len(live) == 4 and live[0] == width * height and live == sorted(live, reverse=True) and live[3] > 0
    finally:
        screen.close()


@pytest.mark.slow
def test_a_finished_picture_is_denoised_where_that_is_asked(gl, gpu):
    pytest.importorskip("pyoidn", reason="denoising needs pyoidn")
    own = Gpu(gl=gl)
    own.devices = [gpu.device]
    scene = load(ROOT / "scenes" / "cornell.toml")
    scene = replace(scene, settings=replace(scene.settings, samples=2, depth=2))
    screen = Offscreen(Studio([scene], own), gl, (420, 300))
    try:
        panel = screen.studio.panel
        settled(screen)
        until(screen, panel.finished)
        noisy = panel.frame.read()
        press(screen, "Ctrl+N")
        until(screen, lambda: panel.denoised)
        picture = open_picture(scene, own)
        for _ in range(2):
            drawn = picture.draw(scene.settings, panel.shown.size, 0.0)
        layers = picture.layers(scene.settings, panel.shown.size)
        wanted = denoise.denoised(drawn.read(), layers["albedo"], layers["normal"])
        assert np.allclose(panel.frame.read(), wanted, atol=1e-3) and not np.allclose(wanted, noisy, atol=1e-2)
        press(screen, "D")  # another picture: noisy while it is drawn, clean when it is finished
        settled(screen)
        until(screen, lambda: panel.denoised)
        press(screen, "Shift+D")
        press(screen, "Ctrl+N")
        settled(screen)
        until(screen, panel.finished)
        assert not panel.denoised and np.array_equal(panel.frame.read(), noisy)
    finally:
        screen.close()


def test_pictures_without_depth_say_so(screen):
    finish(screen)
    before = screen.studio.panel.scene
    press(screen, "Ctrl+F")
    drag(screen, centre(screen, 0), 0, 0)
    assert "nothing to focus on" in screen.studio.message and screen.studio.panel.scene == before


def test_key_frames_are_made_and_moved_in_the_window(screen, tmp_path):
    studio, panel = screen.studio, screen.studio.panel
    below = studio.rectangles[0]
    press(screen, "D")
    press(screen, "Ctrl+K")
    assert studio.shows_timeline() and panel.paused and studio.rectangles[0][3] < below[3]
    assert [track.path for track in panel.scene.animation.tracks] == ["iterations"]
    assert panel.scene.animation.seconds == 4.0
    press(screen, "Ctrl+Shift+K")
    assert panel.scene.animation is None and panel.scene.settings.iterations == 50
    press(screen, "Ctrl+Backspace")
    press(screen, "Ctrl+K")
    paths = {track.path for track in panel.scene.animation.tracks}
    assert paths == {"view.centre", "view.height", "view.rotation_degrees"}, "without a change the view is kept"
    wait_still(screen)  # so that what follows is a step of its own
    for _ in range(24):
        press(screen, ".")
    assert panel.clock == 1.0
    start = panel.settings().view
    drag(screen, centre(screen, 0), 60, 0)
    moved = panel.settings().view
    assert moved.centre[0] < start.centre[0] and key_times(panel.scene.animation) == [0.0, 1.0]
    wait_still(screen)
    press(screen, "D")
    wait_still(screen)
    assert panel.settings().iterations == 50 and "iterations" not in {t.path for t in panel.scene.animation.tracks}
    press(screen, "PageUp")
    assert panel.clock == 0.0 and panel.settings().view == start and panel.settings().iterations == 50
    press(screen, "PageDown")
    assert panel.clock == 1.0 and panel.settings().view == moved
    press(screen, "Ctrl+Z")
    press(screen, "Ctrl+Z")
    assert key_times(panel.scene.animation) == [0.0]
    press(screen, "Ctrl+Y")
    press(screen, "Space")
    wait_still(screen)
    assert not panel.paused and panel.clock > 1.0
    press(screen, "Ctrl+S")
    saved = load(tmp_path / "first-001.toml")
    assert saved.animation == panel.scene.animation and saved.settings == panel.scene.settings


def test_the_line_of_time_scrubs(screen):
    panel = screen.studio.panel
    press(screen, "Ctrl+K")
    press(screen, "H")
    bottom = HEIGHT - 22
    drag(screen, (400, bottom), 60, 0)
    first = panel.clock
    assert panel.paused and 0 < first < 4.0
    drag(screen, (400, bottom), 0, 0)
    assert 0 < panel.clock < first
    drag(screen, centre(screen, 0), 40, 0)
    assert len(key_times(panel.scene.animation)) == 2
    imgui.get_io().add_mouse_pos_event(5, 5)
    frames(screen)
    assert not np.array_equal(screen.pixels()[-40:], np.zeros_like(screen.pixels()[-40:]))


@pytest.fixture
def in_bands(monkeypatch):
    """Makes every picture that can be cut so costly that it is."""
    for name in ("BAND", "SOFT_BAND", "CPU_BAND"):
        monkeypatch.setattr(panel_module, name, 4e-4)
    monkeypatch.setattr(bands_module, "MOST", 9)


@pytest.mark.parametrize("name", ["mirrors", "mandelbrot", "cornell"])
def test_bands_give_the_bits_of_the_whole(gl, gpu, in_bands, name):
    own = Gpu(gl=gl)
    own.devices = [gpu.device]
    scene = load(ROOT / "scenes" / f"{name}.toml")
    scene = replace(scene, settings=replace(scene.settings, samples=3))
    studio = Studio([scene], own)
    screen = Offscreen(studio, gl, (330, 260))
    try:
        end = time.perf_counter() + 150
        while studio.panel.divisor > 1 or not studio.panel.finished():
            assert time.perf_counter() < end and not studio.panel.error, studio.panel.error
            screen.frame()
        assert studio.panel.bands.count > 3
        size, whole = studio.panel.shown.size, open_picture(scene, own)
        for _ in range(3):
            frame = whole.draw(scene.settings, size, 0.0)
        assert np.array_equal(studio.panel.frame.read(), frame.read())
        if name != "mandelbrot":
            assert studio.panel.report["live rays"] == whole.report()["live rays"]
    finally:
        screen.close()


def test_a_change_ends_a_picture_between_two_bands(screen, in_bands):
    press(screen, "Ctrl+W")
    panel = screen.studio.panel
    finish(screen)
    screen.studio.change(replace(panel.scene, settings=replace(panel.scene.settings, phase=0.3)))
    for _ in range(100):
        screen.frame()
        if panel.bands.done > 1:
            break
    assert panel.bands.count > 3 and panel.bands.done > 1
    old = panel.frame.read()
    screen.studio.change(replace(panel.scene, settings=replace(panel.scene.settings, phase=0.7)))
    screen.frame()
    assert panel._drawn[0].phase == 0.7 and panel.bands.done == 1 and panel.samples == 0
    assert np.array_equal(panel.frame.read()[-20:], old[-20:]), "until its band comes, what was there stays"
    finish(screen)
    assert panel.samples == 3 and not np.array_equal(panel.frame.read()[-20:], old[-20:])


def test_a_frame_of_an_animation_is_finished_before_the_next_begins(screen, scene_files, in_bands, tmp_path):
    """Each of its bands shows the moment at which it was begun."""
    path = tmp_path / "moving.toml"
    path.write_text(FRACTAL.format(title="moving").replace("samples = 3", "samples = 1") + MOVING)
    press(screen, "Ctrl+W")
    screen.studio.drop([path])
    panel, seen = screen.studio.panel, 0
    end = time.perf_counter() + 90
    while seen < 3:
        assert time.perf_counter() < end and not panel.error
        screen.frame()
        if panel.bands is not None and panel.bands.count > 1 and panel.samples == 1 and panel.bands.done == 0:
            settings, moment, size = panel._drawn
            whole = open_picture(panel.scene, Gpu(gl=screen.gl)).draw(settings, size, moment)
            assert np.array_equal(panel.frame.read(), whole.read())
            seen += 1


def test_a_click_focuses_a_light_field_and_a_drag_does_not(gl, gpu, tmp_path, rng):
    views, _ = layered_views(rng, 5, 5, 64, back=-1.0, front=1.0, bars=0.5, period=40)
    np.save(tmp_path / "bars.npy", views)
    own = Gpu(gl=gl)
    own.devices = [gpu.device]
    studio = Studio([load(tmp_path / "bars.npy")], own)
    screen = Offscreen(studio, gl, (640, 400))
    try:
        finish_all(screen, 1)
        x, y, width, height = studio.rectangles[0]
        for column, disparity in ((10, 1.0), (30, -1.0)):  # on a bar, and between bars
            side = min(width, height)
            across = x + width / 2 + ((column + 0.5) / 64 - 0.5) * side
            drag(screen, (across, y + height / 2), 0, 0)
            assert view(screen).focus_at == pytest.approx(((across - x - width / 2) / height, 0, 0, 0), abs=0.01)
            frames(screen, 4)
            finish_all(screen, 1)
            assert studio.panel.picture.report()["disparity in focus"] == pytest.approx(disparity, abs=0.15)
        focused = view(screen)
        drag(screen, centre(screen, 0), height * 0.2, height * -0.1)
        moved = view(screen)
        assert moved.focus_at == focused.focus_at
        assert (moved.u, moved.v) == pytest.approx((-0.4, 0.2), abs=0.02)
        imgui.get_io().add_mouse_wheel_event(0, -3)
        frames(screen, 3)
        assert view(screen).aperture < moved.aperture
    finally:
        screen.close()


def finish_all(screen, samples: int) -> None:
    end = time.perf_counter() + 150
    while screen.studio.panel.samples < samples and not screen.studio.panel.error:
        assert time.perf_counter() < end
        screen.frame()
        time.sleep(0.002)


# Comparing, inspecting, files


def test_comparing_with_a_kept_picture(screen):
    finish(screen)
    panel = screen.studio.panel
    press(screen, "S")
    kept = panel.shown.read()
    press(screen, "E")
    finish(screen)
    assert panel.scene.tone.ev == 0.5
    assert not np.array_equal(panel.shown.read(), kept)
    press(screen, "W")
    assert panel.comparison.mode == "wipe"
    x, y, width, height = screen.studio.rectangles[0]
    imgui.get_io().add_mouse_pos_event(x + width // 2, y + height // 2)
    frames(screen, 3)
    assert screen.studio.told(time.perf_counter()) == "compare: wipe"
    assert panel.comparison.wipe == pytest.approx(0.5, abs=0.01)
    window, middle = screen.pixels()[y : y + height, x : x + width], slice(20, height - 120)
    assert psnr(window[middle, 4 : width // 2 - 4], panel.shown.read()[middle, 4 : width // 2 - 4, :3]) > 45
    assert psnr(window[middle, width // 2 + 4 : -4], kept[middle, width // 2 + 4 : -4, :3]) > 45
    press(screen, "W")
    assert {panel.comparison.shown(panel.shown, t)[0] for t in (0.0, 0.7)} == {
        panel.shown,
        panel.comparison.reference(),
    }
    press(screen, "W")
    difference = panel.comparison.shown(panel.shown, 0.0)[0].read()[..., :3]
    wanted = np.abs(panel.shown.read()[..., :3].astype(int) - kept[..., :3]) * 8
    assert np.abs(difference - np.minimum(wanted, 255)).max() <= 1
    press(screen, "W")
    assert panel.comparison.mode == "off"


def test_comparing_with_another_panel_follows_it(screen):
    finish(screen)
    press(screen, "W")
    first, second = screen.studio.panels
    assert first.comparison.mode == "wipe" and first.comparison.reference() is second.shown
    press(screen, "2")
    press(screen, "Ctrl+W")
    frames(screen, 3)
    assert not screen.studio.panel.error


def test_the_inspector_reads_the_pixel_under_the_pointer(screen):
    finish(screen)
    panel, (x, y, width, height) = screen.studio.panel, screen.studio.rectangles[0]
    linear, shown = panel.frame.read(), panel.shown.read()
    assert np.array_equal(panel.frame.read_region(5, 7, 3, 2), linear[7:9, 5:8])
    assert np.array_equal(panel.shown.read_region(width - 2, 0, 2, 1), shown[:1, -2:])
    assert inspector.region(panel.shown, 0, 0).shape == (5, 5, 4)
    lines = inspector.figures(linear[3, 4], shown[3, 4])
    assert float(lines[0].split()[1]) == pytest.approx(linear[3, 4, 0], rel=1e-5)
    assert int(lines[2].split()[2]) == shown[3, 4, 2]
    assert inspector.figures(np.array([np.nan, np.inf, 0, 1]), shown[0, 0])[-2:] == ["not a number", "infinite"]
    before = screen.pixels()
    press(screen, "I")
    imgui.get_io().add_mouse_pos_event(x + width // 2, y + height // 2)
    frames(screen, 3)
    assert not np.array_equal(screen.pixels(), before)
    for corner in ((x, y), (x + width - 1, y + height - 1), (x + width + 40, 5)):
        imgui.get_io().add_mouse_pos_event(*corner)
        frames(screen)


def test_a_saved_scene_is_read_anew_and_a_bad_one_is_told(screen, scene_files):
    finish(screen)
    first, second = screen.studio.panels
    scene_files[0].write_text(FRACTAL.format(title="first").replace("40", "77"))
    until(screen, lambda: first.scene.settings.iterations == 77)
    finish(screen)
    good = first.shown.read()
    scene_files[0].write_text("picture = nonsense")
    until(screen, lambda: first.mistake)
    assert "not a TOML file" in first.mistake and not first.error and not second.mistake
    press(screen, "D")  # what was good goes on, and can be worked on
    finish(screen)
    assert first.finished() and not np.array_equal(first.shown.read(), good) and first.mistake
    scene_files[0].write_text(FRACTAL.format(title="first"))
    until(screen, lambda: not first.mistake)
    finish(screen)
    assert not first.error and first.finished() and first.scene.settings.iterations == 40


def test_a_shader_with_a_mistake_leaves_the_last_good_one(screen, tmp_path, monkeypatch):
    """Files of shaders/ are edited in a copy; the error names its line, and the next good save is taken."""
    shaders = tmp_path / "shaders"
    shutil.copytree(source.SHADERS, shaders)
    for module in (source, studio_module):
        monkeypatch.setattr(module, "SHADERS", shaders)
    screen.studio.reload()
    finish(screen)
    good, text = screen.studio.panel.shown.read(), (shaders / "fractal.frag").read_text()
    end = time.perf_counter() + 0.6  # it looks at the files a few times a second
    until(screen, lambda: time.perf_counter() > end)
    (shaders / "fractal.frag").write_text(text.replace("void main() {", "void main() {\n    nonsense = 1;"))
    until(screen, lambda: any(p.mistake for p in screen.studio.panels))  # the others go on with the good one too
    panel = next(p for p in screen.studio.panels if p.mistake)
    line = text[: text.index("void main() {")].count("\n") + 2
    assert f"fractal.frag:{line}" in panel.mistake and not panel.error
    press(screen, "D")
    press(screen, "Shift+D")
    finish(screen)
    assert np.array_equal(panel.shown.read(), good) and panel.mistake
    before = screen.pixels()
    (shaders / "fractal.frag").write_text(text.replace("void main() {", "void main() {\n    pixel = vec4(1); return;"))
    until(screen, lambda: not any(p.mistake for p in screen.studio.panels))
    finish(screen)
    assert (panel.shown.read() == 255).all() and not np.array_equal(screen.pixels(), before)
    (shaders / "fractal.frag").write_text(text)
    until(screen, lambda: not panel.opened)
    finish(screen)
    assert np.array_equal(panel.shown.read(), good)


def test_a_mesh_that_is_saved_is_read_anew(gl, gpu, tmp_path):
    own = Gpu(gl=gl)
    own.devices = [gpu.device]
    mesh = tmp_path / "shape.obj"
    mesh.write_text("v -1 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (tmp_path / "one.toml").write_text(
        'picture = "raytrace"\n[settings]\nsamples = 1\nhorizon = [1, 1, 1]\nzenith = [1, 1, 1]\n'
        'meshes = [{ material = "plain", file = "shape.obj" }]\n'
    )
    screen = Offscreen(Studio([load(tmp_path / "one.toml")], own), gl, (320, 240))
    try:
        panel = screen.studio.panel
        settled(screen)
        triangle = panel.shown.read()
        assert panel.report["primitives"] == 1
        mesh.write_text("v nonsense\nf 1 2 3\n")
        until(screen, lambda: panel.mistake)
        assert "shape.obj" in panel.mistake and not panel.error
        mesh.write_text("v -1 0 0\nv 1 0 0\nv 0 1 0\nv 0 -1 0\nf 1 2 3\nf 1 2 4\n")
        until(screen, lambda: not panel.mistake)
        settled(screen)
        assert panel.report["primitives"] == 2 and not np.array_equal(panel.shown.read(), triangle)
    finally:
        screen.close()


def test_watch_tells_only_what_was_saved(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("1")
    b.write_text("1")
    watch = Watch()
    assert watch.changed({a, b}, 1.0) == set()
    a.write_text("22")
    assert watch.changed({a, b}, 1.1) == set(), "it looks a few times a second"
    assert watch.changed({a, b}, 2.0) == {a}
    b.unlink()
    assert watch.changed({a, b}, 3.0) == set()
    b.write_text("3")
    assert watch.changed({a, b}, 4.0) == {b}


def test_presets_are_the_scenes_of_one_kind(screen, tmp_path):
    (tmp_path / "broken.toml").write_text("picture = ")
    (tmp_path / "other.toml").write_text('picture = "layout"\nsettings = { panels = ["first.toml"] }\n')
    screen.studio.reload()
    assert [scene.path.stem for scene in screen.studio.presets()] == ["first", "second"]


def test_a_scene_can_be_saved_and_opened(screen, tmp_path):
    press(screen, "D")
    press(screen, "E")
    press(screen, "Ctrl+S")
    scene = load(tmp_path / "first-001.toml")
    assert scene.settings == screen.studio.panel.scene.settings and scene.tone == screen.studio.panel.scene.tone


MOVING = """
[animation]
seconds = 2.0
loop = true
keys = [
    { time = 0.0, set = { "phase" = 0.0, "view.height" = 2.6 } },
    { time = 1.0, ease = "linear", set = { "phase" = 0.5, "view.height" = 0.5 } },
]
"""


def test_key_frames_stay_in_sessions_scenes_and_recipes(screen, scene_files, tmp_path):
    path = tmp_path / "moving.toml"
    path.write_text(FRACTAL.format(title="moving") + MOVING)
    screen.studio.drop([path])
    panel = screen.studio.panel
    panel.paused, panel.clock = True, 0.4
    finish(screen)
    wanted = panel.settings()
    assert wanted.phase not in (0.0, 0.5)
    press(screen, "Ctrl+S")
    press(screen, "F12")
    save(screen.studio.session(), tmp_path / "session.json")
    saved, shot = load(tmp_path / "moving-001.toml"), load(tmp_path / "moving-001.png")
    kept = restore(tmp_path / "session.json").scenes[0]
    assert saved.animation == shot.animation == kept.animation == load(path).animation
    assert saved.settings == load(path).settings and (shot.moment, kept.moment) == (0.4, 0.4)
    command = [sys.executable, str(ROOT / "main.py"), "export", tmp_path / "moving-001.png", "-o", tmp_path / "x.png"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert np.array_equal(read_bytes(tmp_path / "x.png")[..., :3], panel.shown.read()[..., :3])
    screen.studio.take(restore(tmp_path / "session.json"))
    assert screen.studio.panel.settings() == wanted


def test_toml_of_is_read_back(rng):
    table = {"title": 'a "quoted" \\ line\nand é 🌿', "list": [1, 2.5, -1e-30, True], "size": [3, 4]}
    table["settings"] = {"view": {"centre": [float(rng.standard_normal()), 0.0]}, "maps": [{"a b": 1}, {"c": "x"}]}
    assert tomllib.loads(toml_of(table)) == table


def test_sessions_come_back(screen, tmp_path):
    press(screen, "D")
    press(screen, "2")
    drag(screen, centre(screen, 1), 30, 30)
    session = screen.studio.session(clean=True)
    save(session, tmp_path / "state" / "session.json")
    again = restore(tmp_path / "state" / "session.json")
    assert [s.settings for s in again.scenes] == [s.settings for s in session.scenes]
    assert (again.active, again.clean) == (1, True)
    screen.studio.take(again)
    finish(screen)
    assert [panel.scene for panel in screen.studio.panels] == list(again.scenes)


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "not a session"),
        ("[]", "this program reads 1"),
        ('{"rayfold_session": 2, "panels": []}', "rayfold_session is 2; this program reads 1"),
        ('{"rayfold_session": 1, "panels": []}', "1 to 16"),
        ('{"rayfold_session": 1, "panels": [{"picture": "nothing"}]}', "picture is"),
        ('{"rayfold_session": 1, "active": 5, "panels": [{"picture": "fractal"}]}', "active is 5"),
        ("[" * 100000, "not a session"),
    ],
)
def test_sessions_that_cannot_be(tmp_path, text, words):
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(BadInput, match=words):
        restore(tmp_path / "session.json")


def test_a_session_is_kept_while_the_window_runs(gl, scene_files, tmp_path, monkeypatch):
    kept = tmp_path / "state" / "session.json"
    monkeypatch.setattr(studio_module, "SAVING", 0.0)
    screen = Offscreen(Studio([load(scene_files[0])], Gpu(gl=gl), kept=kept), gl, (300, 300))
    frames(screen, 3)
    press(screen, "D")
    assert restore(kept).scenes[0].settings.iterations == 50 and not restore(kept).clean
    assert set_aside(kept).startswith("the last session broke off") and not kept.exists()
    screen.studio.restore()
    assert screen.studio.panel.scene.settings.iterations == 50
    screen.close()
    assert restore(kept).clean


# In a browser


@pytest.fixture
def served(scene_files, tmp_path):
    """A running `main.py serve` and its address."""
    command = [sys.executable, str(ROOT / "main.py"), "serve", str(scene_files[0]), "--port", "0", "--size", "500x400"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def request(address: str, path: str, body=None, headers=None):
    """Status, headers and body of an answer."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(address + path, data, headers={"X-Rayfold": "1", **(headers or {})})
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def decoded(body: bytes, folder: Path) -> np.ndarray:
    (folder / "frame.jpg").write_bytes(body)
    return read_bytes(folder / "frame.jpg")[..., :3].astype(int)


def key_events(code: str, **modifiers):
    return [{"kind": "key", "code": code, "down": down, **modifiers} for down in (True, False)]


def test_a_browser_sees_the_window_and_works_it(served, tmp_path):
    process, address = served
    assert address.startswith("http://127.0.0.1:")
    status, headers, page = request(address, "")
    assert status == 200 and b"<canvas" in page
    status, headers, body = request(address, "frame?after=0")
    assert status == 200 and headers["Content-Type"] == "image/jpeg" and decoded(body, tmp_path).shape == (400, 500, 3)
    first = headers["X-Frame"]
    assert request(address, "events", key_events("KeyH"))[0] == 204  # hides the controls
    status, headers, body = request(address, f"frame?after={first}")
    assert status == 200 and headers["X-Frame"] != first
    drag = [{"kind": "move", "x": 200, "y": 200}, {"kind": "button", "button": 0, "down": True}]
    drag += [{"kind": "move", "x": 280, "y": 200}, {"kind": "button", "button": 0, "down": False}]
    request(address, "events", drag)
    request(address, "events", key_events("F12"))
    wait_for(lambda: (tmp_path / "first-001.png").exists(), process)
    assert load(tmp_path / "first-001.png").settings.view.centre[0] < -0.6
    request(address, "events", [{"kind": "resize", "width": 320, "height": 10**5}])
    wait_for(lambda: decoded(request(address, "frame?after=0")[2], tmp_path).shape == (4096, 320, 3), process)
    request(address, "events", key_events("KeyQ", ctrl=True))
    assert process.wait(20) == 0 and "Traceback" not in process.stderr.read()


def test_a_server_takes_no_nonsense(served):
    process, address = served
    assert request(address, "nothing")[0] == 404
    assert request(address, "events", b"{")[0] == 400 and request(address, "events", [1])[0] == 400
    assert request(address, "events", b"[" * 60000)[0] == 400
    assert request(address, "events", [], {"X-Rayfold": "0"})[0] == 403, "another site's form"
    assert request(address, "frame", None, {"Host": "evil.example"})[0] == 403, "another site's name for this machine"
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        status = request(address, "events", b"x" * 200_000)[0]
        assert status == 413
        raise ConnectionError
    nonsense = [{}, {"kind": 3}, {"kind": "move", "x": "1", "y": None}, {"kind": "button", "button": 99}]
    nonsense += [{"kind": "key", "code": "KeyÖ"}, {"kind": "wheel", "y": 1e300}, {"kind": "text", "text": 5}]
    nonsense += [{"kind": "resize", "width": -5, "height": True}, {"kind": "move", "x": float("nan"), "y": 1}]
    assert request(address, "events", nonsense)[0] == 204
    assert request(address, "frame?after=zero")[0] == 200 and process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130


def test_other_hosts_need_the_token(screen):
    remote = Remote("127.0.0.2", 0)  # not one of the names that are taken for this machine
    try:
        address, token = remote.address.split("?token=")
        assert len(token) >= 16
        assert request(address, "")[0] == 403 and request(address, "events", [])[0] == 403
        assert request(address, "?token=wrong")[0] == 403
        assert request(address, f"?token={token}")[0] == 200
        assert request(address, "events", [], {"Authorization": f"Bearer {token}"})[0] == 204
    finally:
        remote.close()


def test_a_taken_port_is_a_sentence(scene_files):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(MachineCannot, match="cannot be listened on"):
            Remote("127.0.0.1", taken.getsockname()[1])


@pytest.fixture
def browser(tmp_path):
    """The port of a headless Chromium that takes commands."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("needs Chromium: apt install chromium")
    pytest.importorskip("tornado", reason="commands to Chromium go over tornado's web sockets")
    profile = tmp_path / "profile"
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    command += ["--remote-debugging-port=0", "--window-size=640,480", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    chosen = profile / "DevToolsActivePort"
    try:
        wait_for(lambda: chosen.exists() and chosen.read_text().count("\n"), process)
        yield int(chosen.read_text().splitlines()[0])
    finally:
        process.kill()
        process.wait()


def commanded(port: int, script):
    """Runs `await script(command)` with command(method, **parameters) on the page of a Chromium."""
    from tornado.ioloop import IOLoop
    from tornado.websocket import websocket_connect

    async def run():
        pages = json.loads(request(f"http://127.0.0.1:{port}/", "json/list")[2])
        page = next(p for p in pages if p["type"] == "page")
        connection = await websocket_connect(page["webSocketDebuggerUrl"])
        count = iter(range(1, 10**6))

        async def command(method: str, **parameters):
            number = next(count)
            connection.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
            while (answer := json.loads(await connection.read_message())).get("id") != number:
                pass
            return answer["result"]

        return await script(command)

    return IOLoop(make_current=False).run_sync(run, timeout=60)


def test_a_real_browser_shows_the_window_and_works_it(served, browser, tmp_path):
    process, address = served

    async def value(command, expression: str):
        return (await command("Runtime.evaluate", expression=expression))["result"].get("value")

    async def script(command):
        await command("Page.navigate", url=address)
        canvas = "document.querySelector('canvas')"
        end = time.perf_counter() + 30
        while int(await value(command, f"{canvas} && {canvas}.dataset.frames || 0") or 0) < 2:
            assert time.perf_counter() < end, "no frame arrives"
        width, height = await value(command, "innerWidth"), await value(command, "innerHeight")
        while (await value(command, f"{canvas}.width"), await value(command, f"{canvas}.height")) != (width, height):
            assert time.perf_counter() < end, "the window does not take the page's size"
        for kind, x in (("mousePressed", 60), ("mouseMoved", 90), ("mouseMoved", 130), ("mouseReleased", 130)):
            await command("Input.dispatchMouseEvent", type=kind, x=x, y=200, button="left", buttons=1, clickCount=1)
        for kind in ("rawKeyDown", "keyUp"):
            await command("Input.dispatchKeyEvent", type=kind, code="F12", key="F12")
        while not (tmp_path / "first-001.png").exists():
            assert time.perf_counter() < end, "the keys do not arrive"
            await command("Runtime.evaluate", expression="0")

    commanded(browser, script)
    assert load(tmp_path / "first-001.png").settings.view.centre[0] < -0.6


# A real window


@pytest.fixture
def display():
    """An X server of our own, with no window manager."""
    if not (shutil.which("Xvfb") and shutil.which("xdotool")):
        pytest.skip("needs Xvfb and xdotool: apt install xvfb xdotool")
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"]
    server = subprocess.Popen(command, pass_fds=[writing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as pipe:  # to the end of the line: closed before it, the pipe would kill the server
        number = pipe.readline().strip()
    if not number:
        pytest.skip("Xvfb does not start here")
    yield f":{number}"
    server.terminate()
    server.wait(10)


def start(display: str, *arguments: str, folder: Path = ROOT):
    environment = {**os.environ, "DISPLAY": display, "XDG_STATE_HOME": str(folder / "state")}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [sys.executable, str(ROOT / "main.py"), "view", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def act(display: str, *words: str) -> str:
    environment = {**os.environ, "DISPLAY": display}
    return subprocess.run(["xdotool", *words], env=environment, capture_output=True, text=True, timeout=30).stdout


def wait_for(condition, process, limit: float = 30.0):
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        assert process.poll() is None, process.communicate()
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


def test_a_real_window_with_real_keys_and_a_real_mouse(display, scene_files, tmp_path):
    process = start(display, *map(str, scene_files), "--size", "900x520", folder=tmp_path)
    try:
        window = wait_for(lambda: act(display, "search", "--name", "Rayfold"), process).split()[0]
        act(display, "windowfocus", window)
        act(display, "mousemove", "--window", window, "150", "250", "click", "1")
        shot = taken(display, tmp_path, process)
        start_view = load(shot).settings.view
        act(display, "mousemove", "--window", window, "150", "250", "mousedown", "1")
        for x in (160, 175, 190):
            act(display, "mousemove", "--window", window, str(x), "250")
            time.sleep(0.15)
        act(display, "mouseup", "1")
        act(display, "key", "d")
        time.sleep(0.5)
        shot = taken(display, tmp_path, process)
        moved = load(shot).settings
        assert moved.view.centre[0] < start_view.centre[0] and moved.iterations == 50
        act(display, "key", "ctrl+q")
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0 and "Traceback" not in err, err
    finally:
        process.kill()
        process.communicate()


def taken(display: str, folder: Path, process) -> Path:
    """The panel's picture of now: the key is pressed once its window listens, and again only when nothing came."""
    before = set(folder.glob("first-*.png"))
    for _ in range(10):
        act(display, "key", "F12")
        end = time.perf_counter() + 5
        while time.perf_counter() < end:
            assert process.poll() is None, process.communicate()
            new = set(folder.glob("first-*.png")) - before
            if new:
                return max(new)
            time.sleep(0.1)
    raise AssertionError("no picture was written")


SCRIPT = """
import ctypes, sys, time
from pathlib import Path
from renderer.gpu import Gpu
from renderer.pictures import load
from renderer.window.screen import Contents, Window
from renderer.window.studio import Studio
from renderer.window.toolkit import glfw

window = Window((500, 300), "Rayfold")
studio = Studio([load(Path(sys.argv[1]))], Gpu(gl=window.gl))
contents = Contents(studio, window.gl, window.scale)


def frames_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        window._frame(studio, contents)


frames_until(lambda: studio.panel.finished())
on_drop = glfw.set_drop_callback(window.handle, None)  # gives what GLFW calls for a drop, as GLFW would
glfw.set_drop_callback(window.handle, on_drop)


def drop(*paths):
    on_drop(window.handle, len(paths), (ctypes.c_char_p * len(paths))(*map(str.encode, paths)))


drop(sys.argv[2])
frames_until(lambda: studio.panel.scene.title == "second")
drop(sys.argv[1], sys.argv[2], "no/such/file.toml")
frames_until(lambda: len(studio.panels) == 3)
assert "No such file" in studio.message
before = glfw.get_window_size(window.handle), glfw.get_window_pos(window.handle)
studio.toggle("fullscreen")
frames_until(lambda: glfw.get_framebuffer_size(window.handle) == (1280, 800))
assert glfw.get_window_monitor(window.handle)
frames_until(lambda: sum(w for _, _, w, _ in studio.rectangles[:2]) > 800)
studio.toggle("fullscreen")
frames_until(lambda: glfw.get_window_size(window.handle) == before[0])
assert not glfw.get_window_monitor(window.handle)
for size in ((1, 1), (37, 600), (640, 400)):
    glfw.set_window_size(window.handle, *size)
    for _ in range(10):
        window._frame(studio, contents)
studio.close()
window.close()
print("all of it happened")
"""


def test_drops_fullscreen_and_tiny_sizes_of_a_real_window(display, scene_files, tmp_path):
    environment = {**os.environ, "DISPLAY": display, "PYTHONPATH": str(ROOT)}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [sys.executable, "-c", SCRIPT, *map(str, scene_files)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "all of it happened", done.stderr


def test_closing_ends_with_0_and_ctrl_c_with_130(display, scene_files, tmp_path):
    for signal_sent, code in ((None, 0), (signal.SIGINT, 130)):
        process = start(display, str(scene_files[0]), "--size", "400x300", folder=tmp_path)
        try:
            window = wait_for(lambda: act(display, "search", "--name", "Rayfold"), process).split()[0]
            time.sleep(1)
            if signal_sent:
                process.send_signal(signal_sent)
            else:
                act(display, "windowfocus", window)
                act(display, "key", "ctrl+q")
            out, err = process.communicate(timeout=20)
            assert process.returncode == code and "Traceback" not in err, (process.returncode, err)
        finally:
            process.kill()
            process.communicate()


def test_the_view_command_without_a_display_exits_4(scene_files):
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    command = [sys.executable, "main.py", "view", str(scene_files[0])]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4 and "no display" in done.stderr and "Traceback" not in done.stderr


def test_glfw_is_the_one_that_was_imported_first():
    assert tuple(glfw.get_version()) >= (3, 4)
