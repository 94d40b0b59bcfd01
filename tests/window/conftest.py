"""Fixtures of the window's tests: scene files, a headless window with two panels, a program that serves one."""

import os
import shutil
import subprocess
import sys

import pytest

from renderer.paths import ROOT
from renderer.pictures import load
from tests.window.headless import frames, window
from tests.window.helpers import FRACTAL, HEIGHT, WIDTH


@pytest.fixture
def scene_files(tmp_path):
    paths = [tmp_path / f"{name}.toml" for name in ("first", "second")]
    for path in paths:
        path.write_text(FRACTAL.format(title=path.stem))
    return paths


@pytest.fixture
def screen(gl, scene_files, tmp_path, monkeypatch):
    """The interface with two panels in a texture; events are simulated."""
    monkeypatch.chdir(tmp_path)
    with window([load(path) for path in scene_files], None, gl, (WIDTH, HEIGHT)) as screen:
        frames(screen, 3)
        yield screen


@pytest.fixture
def served(scene_files, tmp_path):
    """A running `rayfold serve` and its address."""
    command = [sys.executable, str(ROOT / "main.py"), "serve", str(scene_files[0]), "--port", "0", "--size", "500x400"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def display():
    """A private X server without a window manager."""
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
