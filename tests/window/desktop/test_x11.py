"""A real window on an X server, with real keys and a real mouse."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from renderer.formats.images import read_pixels
from renderer.paths import ROOT
from renderer.pictures import load
from tests.children import python_path
from tests.window.helpers import wait_for


def start(display: str, *arguments: str, folder: Path = ROOT):
    environment = {**os.environ, "DISPLAY": display, "XDG_STATE_HOME": str(folder / "state")}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [sys.executable, str(ROOT / "main.py"), "view", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def xdotool(display: str, *words: str) -> str:
    environment = {**os.environ, "DISPLAY": display}
    return subprocess.run(["xdotool", *words], env=environment, capture_output=True, text=True, timeout=30).stdout


def test_a_real_window_with_real_keys_and_a_real_mouse(display, scene_files, tmp_path):
    process = start(display, *map(str, scene_files), "--size", "900x520", folder=tmp_path)
    try:
        window = wait_for(lambda: xdotool(display, "search", "--name", "Rayfold"), process).split()[0]
        xdotool(display, "windowfocus", window)
        xdotool(display, "mousemove", "--window", window, "150", "250", "click", "1")
        shot = take_screenshot(display, tmp_path, process)
        start_view = load(shot).settings.view
        xdotool(display, "mousemove", "--window", window, "150", "250", "mousedown", "1")
        for x in (160, 175, 190):
            xdotool(display, "mousemove", "--window", window, str(x), "250")
        xdotool(display, "mouseup", "1")
        xdotool(display, "key", "d")
        shot = take_screenshot(display, tmp_path, process)
        moved = load(shot).settings
        assert moved.view.center[0] < start_view.center[0] and moved.max_iterations == 50
        quit_window(display, process)
    finally:
        process.kill()
        process.communicate()


def quit_window(display: str, process) -> None:
    """Ends the window by keys, without its changes, and checks how it ended."""
    xdotool(display, "key", "ctrl+q")
    time.sleep(1.0)
    xdotool(display, "key", "d")  # discards the changes
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0 and "Traceback" not in err, err


def take_screenshot(display: str, folder: Path, process) -> Path:
    """A screenshot of the panel; the key is pressed again if none was written within 5 seconds."""
    before = set(folder.glob("first-*.png"))
    for _ in range(10):
        xdotool(display, "key", "F12")
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
from renderer.gpu import DeviceContext
from renderer.pictures import load
from renderer.window.app.backends import UiContext, Window
from renderer.window.state.app_state import AppState
from renderer.window.state.session import Session
from renderer.window.controls.toolkit import glfw

window = Window((500, 300), "Rayfold")
app = AppState(Session.of((load(Path(sys.argv[1])),)), DeviceContext(gl=window.gl))
ui = UiContext(app, window.gl, window.scale)


def frames_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "timeout"
        window.frame(app, ui)


frames_until(lambda: app.panel.draw_loop.is_finished)
on_drop = glfw.set_drop_callback(window.handle, None)  # gives what GLFW calls for a drop, as GLFW would
glfw.set_drop_callback(window.handle, on_drop)


def drop(*paths):
    on_drop(window.handle, len(paths), (ctypes.c_char_p * len(paths))(*map(str.encode, paths)))


drop(sys.argv[2])
frames_until(lambda: app.panel.scene.title == "second")
drop(sys.argv[1], sys.argv[2], "no/such/file.toml")
frames_until(lambda: len(app.panels) == 3)
assert "No such file" in app.message
before = glfw.get_window_size(window.handle), glfw.get_window_pos(window.handle)
app.overlays.fullscreen.toggle()
frames_until(lambda: glfw.get_framebuffer_size(window.handle) == (1280, 800))
assert glfw.get_window_monitor(window.handle)
frames_until(lambda: sum(shown.image_rect[2] for shown in app.panels.shown[:2]) > 800)
app.overlays.fullscreen.toggle()
frames_until(lambda: glfw.get_window_size(window.handle) == before[0])
assert not glfw.get_window_monitor(window.handle)
for size in ((1, 1), (37, 600), (640, 400)):
    glfw.set_window_size(window.handle, *size)
    for _ in range(10):
        window.frame(app, ui)
app.close()
window.close()
print("all passed")
"""


QUICK = """
import subprocess, sys
exec(sys.argv[3].partition("on_drop")[0].replace("500, 300", "900, 520"))
name = glfw.get_x11_window(window.handle)


def quick_drag(x, y, x2, y2):
    words = ["mousemove", "--window", name, x, y, "mousedown", 1, "mousemove", "--window", name, x2, y2, "mouseup", 1]
    subprocess.run(["xdotool", *map(str, words)], check=True)
    for _ in range(6):
        window.frame(app, ui)


view = app.panel.scene.settings.view
quick_drag(200, 200, 260, 200)
assert app.panel.scene.settings.view != view
app.add_panels([load(Path(sys.argv[2]))])
window._is_damaged = True  # as the input that adds a panel: without, a window that has settled draws no frame
frames_until(lambda: len(app.panels.rects) == 2)
app.panels.layout = app.panels.current_layout()
before, (x, y, width, height) = app.panels.rects, app.panels.rects[0]
beside = app.panels.rects[1][0] > x
gap = (x + width + 2, y + height // 2) if beside else (x + width // 2, y + height + 2)
quick_drag(*gap, gap[0] + 40, gap[1] + 40)
assert app.panels.rects != before, "the gap between two panels"
app.close()
window.close()
print("all passed")
"""


def test_a_drag_that_ends_within_one_frame_moves_views_and_gaps(display, scene_files, tmp_path):
    environment = {**os.environ, "DISPLAY": display, "PYTHONPATH": python_path()}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [sys.executable, "-c", QUICK, *map(str, scene_files), SCRIPT]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "all passed", done.stderr


def test_drops_fullscreen_and_tiny_sizes_of_a_real_window(display, scene_files, tmp_path):
    environment = {**os.environ, "DISPLAY": display, "PYTHONPATH": python_path()}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [sys.executable, "-c", SCRIPT, *map(str, scene_files)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "all passed", done.stderr


def test_closing_ends_with_0_and_ctrl_c_with_130(display, scene_files, tmp_path):
    for signal_sent, code in ((None, 0), (signal.SIGINT, 130)):
        process = start(display, str(scene_files[0]), "--size", "400x300", folder=tmp_path)
        try:
            window = wait_for(lambda: xdotool(display, "search", "--name", "Rayfold"), process).split()[0]
            kept = tmp_path / "state" / "rayfold" / "session.json"
            wait_for(kept.exists, process)  # it is written while the window runs
            if signal_sent:
                process.send_signal(signal_sent)
            else:
                xdotool(display, "windowfocus", window)
                xdotool(display, "key", "ctrl+q")
            out, err = process.communicate(timeout=20)
            assert process.returncode == code and "Traceback" not in err, (process.returncode, err)
        finally:
            process.kill()
            process.communicate()
            kept.unlink(missing_ok=True)


def test_the_view_command_without_a_display_exits_4(scene_files):
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    command = [sys.executable, "main.py", "view", str(scene_files[0])]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4 and "no display" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_lesson_by_real_keys(display, tmp_path):
    """A lesson opens, its steps turn, a child measures, and the window shows another picture each time."""
    environment = {**os.environ, "DISPLAY": display, "XDG_STATE_HOME": str(tmp_path / "state")}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [sys.executable, str(ROOT / "main.py"), "lesson", "sums", "--size", "1200x760", "--seconds", "0.2"]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes)
    shots = []
    try:
        window = wait_for(lambda: xdotool(display, "search", "--name", "Rayfold"), process).split()[0]
        xdotool(display, "windowfocus", window)
        time.sleep(3)
        for keys in ((), ("ctrl+Next",), ("ctrl+Next", "alt+m")):
            for key in keys:
                xdotool(display, "key", key)
            time.sleep(12 if "alt+m" in keys else 3)
            before = set(tmp_path.glob("window-*.png"))
            xdotool(display, "key", "shift+F12")
            shots += wait_for(lambda seen=before: sorted(set(tmp_path.glob("window-*.png")) - seen), process, 30)
        pixels = [read_pixels(shot)[60:, :400] for shot in shots]
        assert len(pixels) == 3 and all((a != b).any() for a, b in zip(pixels, pixels[1:], strict=False))
        quit_window(display, process)
    finally:
        process.kill()
        process.communicate()
