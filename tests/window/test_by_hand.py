"""From an empty window to a film, by the X server's pointer, buttons and keys alone."""

import os
import subprocess
import sys

import pytest

from renderer.paths import ROOT
from renderer.system.files import read_toml
from tests.children import python_path


@pytest.mark.slow
def test_an_empty_window_becomes_a_lit_textured_animated_scene_and_its_film(display, tmp_path):
    environment = {**os.environ, "DISPLAY": display, "PYTHONPATH": python_path()}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [sys.executable, "-m", "tests.window.by_hand", str(tmp_path), "--size", "1024x600"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=540)
    assert done.returncode == 0, done.stderr
    table = read_toml(tmp_path / "made.toml")
    assert table["settings"]["sky"]["strength"] == 1.0 and len(table["animation"]["keyframes"]) == 2
    assert (tmp_path / "film.webm").stat().st_size > 1000 and not (tmp_path / "film.webm.frames").exists()
