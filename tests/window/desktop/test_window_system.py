"""What a desktop does to a real window: clipboards, drops, monitors; GLFW's errors are messages and never end it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.children import python_path

PROGRAM = Path(__file__).with_name("hostile_desktop.py")


def run(display: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DISPLAY": display, "PYTHONPATH": python_path()}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_errors_of_the_window_system_are_messages(display, scene_files, tmp_path):
    done = run(display, tmp_path, str(PROGRAM), str(scene_files[0]))
    assert done.stdout.splitlines()[-1:] == ["all passed"], done.stderr
    assert done.stderr.count("the clipboard holds no text") == 1 and "Traceback" not in done.stderr, done.stderr


def test_a_monkey_at_a_real_window(display, tmp_path):
    """A quick share of `python -m tests.window.monkey --real`, whose memory is not asked for in so short a time."""
    done = run(display, tmp_path, "-m", "tests.window.monkey", "--real", "--events", "60", "--seed", "7")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-2]["internal_errors"] == 0 and lines[-1]["session_kept"] and lines[-1]["monitor"], done.stderr


def test_a_window_is_no_larger_than_its_display(display, tmp_path):
    program = "from renderer.window.app.backends import Window, glfw\nwindow = Window((1600, 900), 'large')\n"
    done = run(display, tmp_path, "-c", program + "print(*glfw.get_window_size(window.handle))\nwindow.close()")
    assert done.stdout.split() == ["1280", "800"], done.stderr
