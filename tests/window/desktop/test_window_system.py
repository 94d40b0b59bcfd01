"""What a desktop does to a real window: clipboards, drops, monitors; GLFW's errors are messages and never end it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import python_path

PROGRAM = Path(__file__).with_name("hostile_desktop.py")


@pytest.mark.skipif(shutil.which("Xvfb") is None, reason="needs Xvfb: apt install xvfb")
def test_errors_of_the_window_system_are_messages(display, scene_files, tmp_path):
    environment = {**os.environ, "DISPLAY": display, "PYTHONPATH": python_path()}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [sys.executable, str(PROGRAM), str(scene_files[0])]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.stdout.splitlines()[-1:] == ["all passed"], done.stderr
    assert done.stderr.count("the clipboard holds no text") == 1 and "Traceback" not in done.stderr, done.stderr
