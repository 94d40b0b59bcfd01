"""Windows whose kernels take long to compile: they answer, other panels draw, and they end when they are asked to."""

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from renderer.gpu import compilation, open_context
from renderer.gpu.compilation import CompilePool
from renderer.gpu.opencl.pocl_compile import PoclCompile
from renderer.paths import ROOT, SCENES
from renderer.pictures import load, open_picture
from renderer.window.app.backends import OffscreenWindow
from renderer.window.state import panel_actions
from renderer.window.state.app_state import AppState
from renderer.window.state.session import Session
from tests.children import python_path
from tests.gpu.slow_compiler import PATCHED, is_alive, pids, slow_child, wait_until
from tests.window.desktop.test_x11 import xdotool
from tests.window.helpers import FRACTAL
from tests.window.test_remote import key_events, request

pytestmark = pytest.mark.skipif(not Path("/etc/OpenCL/vendors/pocl.icd").exists(), reason="PoCL is not installed here")
JOB_SECONDS = 0.6  # of the slow compiler


@pytest.fixture
def scenes(tmp_path):
    """A picture of the window's own GL, and one that a compute device draws."""
    path, program = tmp_path / "fractal.toml", SCENES / "mandelbrot.cb"
    path.write_text(FRACTAL.format(title="fractal"))
    return load(path), load(program)


@contextmanager
def window(gl, scenes, folder, monkeypatch, dies=False):
    """A window in real time whose compiler is slow, or dies."""
    monkeypatch.setattr(compilation, "module_child", slow_child(JOB_SECONDS, folder, dies))
    monkeypatch.setattr(PoclCompile, "_is_ready", lambda self, marker: False)  # as with an empty cache
    gpu, pool = open_context("cpu", gl=gl), CompilePool(1)
    gpu.compile_in_children(pool)
    screen = OffscreenWindow(AppState(Session.of(scenes), gpu), gl, (400, 240))
    try:
        yield screen
    finally:
        pool.close()
        screen.close()


def draw_until(screen, condition, before_frame=lambda: None):
    """Draws frames until the condition holds; their durations in seconds."""
    seconds, end = [], time.perf_counter() + 100
    while not condition():
        assert time.perf_counter() < end, "timeout"
        before_frame()
        start = time.perf_counter()
        screen.frame()
        seconds.append(time.perf_counter() - start)
        time.sleep(0.005)
    return seconds


def test_the_window_answers_and_other_panels_draw_while_a_kernel_compiles(gl, scenes, tmp_path, monkeypatch):
    with window(gl, scenes, tmp_path, monkeypatch) as screen:
        fractal, slow = screen.app.panels
        draw_until(screen, lambda: fractal.draw_loop.shows_full_sample)
        pictures, texts = set(), set()

        def drag():
            texts.add(slow.work.text())
            pictures.add(fractal.display.texture.read().tobytes())
            with screen.app.errors_as_messages("a drag"):
                panel_actions.move_view(screen.app, lambda view: replace(view, height=float(view.height) * 0.99))

        start = time.perf_counter()
        seconds = draw_until(screen, lambda: slow.display.texture is not None, drag)
        took = time.perf_counter() - start
        assert took > 3 * JOB_SECONDS, "each kernel is compiled by its program and by its first launch"
        assert np.percentile(seconds, 95) < 0.1 and max(seconds) < JOB_SECONDS, sorted(seconds)[-5:]
        assert len(pictures) > 2 * took, "pictures of a drag"
        assert any(text.startswith("compiling, 1 s: ") for text in texts) and not slow.work.text()
        assert not slow.error and not fractal.error
        size = slow.display.frame.size
        expected = open_picture(scenes[1], open_context("cpu")).draw(slow.settings(), size, 0.0).read()
        assert np.array_equal(slow.display.frame.read(), expected)


def test_a_changed_scene_drops_what_waits_for_a_compiler(gl, scenes, tmp_path, monkeypatch):
    with window(gl, scenes, tmp_path, monkeypatch) as screen:
        slow = screen.app.panels[1]
        draw_until(screen, lambda: slow.work.is_waiting)
        slow.show(scenes[0])
        draw_until(screen, lambda: slow.draw_loop.shows_full_sample)
        assert not slow.work.is_waiting and not slow.error and slow.scene.picture == "fractal"


def test_a_compiler_that_dies_is_an_error_of_one_panel(gl, scenes, tmp_path, monkeypatch):
    with window(gl, scenes, tmp_path, monkeypatch, dies=True) as screen:
        fractal, slow = screen.app.panels
        draw_until(screen, lambda: slow.error)
        assert "the compiler's process ended" in slow.error and not fractal.error
        draw_until(screen, lambda: fractal.draw_loop.shows_full_sample)
        monkeypatch.setattr(compilation, "module_child", slow_child(0.0, tmp_path))
        slow.restart()
        draw_until(screen, lambda: slow.display.texture is not None)
        assert not slow.error


def start(folder, *words, **environment):
    """The program with a compiler that takes a minute for each job."""
    state = {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": python_path(), **environment}
    return subprocess.Popen(
        [*PATCHED, "60", str(folder), *map(str, words)],
        **dict(cwd=ROOT, env={**os.environ, **state}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True),
    )


def ends_soon(process, folder, code):
    """The process ends within 2 seconds, and its compilers with it."""
    asked = time.perf_counter()
    process.wait(20)
    seconds = time.perf_counter() - asked
    out, err = process.communicate()
    assert process.returncode == code and "Traceback" not in err, (process.returncode, err)
    assert seconds < 2
    wait_until(lambda: not any(map(is_alive, pids(folder))), 2, "a compiler lives on")


@pytest.mark.parametrize("way", [pytest.param("close", marks=pytest.mark.slow), "SIGTERM"])
def test_serve_ends_while_a_kernel_compiles(tmp_path, way):
    process = start(tmp_path, "serve", SCENES / "mandelbrot.cb", "--port", "0", "--device", "cpu", "--size", "300x200")
    try:
        address = process.stdout.readline().strip()
        wait_until(lambda: pids(tmp_path), 60)
        if way == "close":
            request(address, "events", key_events("KeyQ", ctrl=True))
        else:
            process.send_signal(getattr(signal, way))
        ends_soon(process, tmp_path, 0 if way == "close" else 130)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("way", ["close", pytest.param("SIGINT", marks=pytest.mark.slow)])
def test_view_ends_while_a_kernel_compiles(display, tmp_path, way):
    environment = {"DISPLAY": display, "WAYLAND_DISPLAY": ""}
    words = ["view", SCENES / "mandelbrot.cb", "--device", "cpu", "--size", "300x200"]
    process = start(tmp_path, *words, **environment)
    try:
        wait_until(lambda: pids(tmp_path), 60)
        if way == "close":
            found = xdotool(display, "search", "--name", "Rayfold").split()[0]
            xdotool(display, "windowfocus", found)
            xdotool(display, "key", "ctrl+q")
        else:
            process.send_signal(getattr(signal, way))
        ends_soon(process, tmp_path, 0 if way == "close" else 130)
    finally:
        process.kill()
        process.communicate()
