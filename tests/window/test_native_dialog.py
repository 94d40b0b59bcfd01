"""The system's own file dialog, where there is one, and the window's where its answer is refused."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from renderer.paths import SCENES
from renderer.window.document import creation
from tests.children import python_path
from tests.window.headless import frames, press, window
from tests.window.monkey import noop_device


@pytest.fixture
def hand(gl, tmp_path, monkeypatch):
    """A window with an empty scene; nothing is drawn."""
    monkeypatch.chdir(tmp_path)
    with window([creation.new_scene(tmp_path)], SimpleNamespace(device=noop_device()), gl, (900, 520)) as screen:
        frames(screen, 3)
        yield screen


class Answer:
    """The system's file dialog, which answers when it is told to."""

    def __init__(self, *asked):
        self.asked, self.answer, self.closed = asked, None, False

    def is_done(self) -> bool:
        return self.answer is not None

    def path(self):
        return self.answer or None

    def close(self) -> None:
        self.closed = True


def test_the_dialog_of_the_system_asks_first(hand, tmp_path, monkeypatch):
    monkeypatch.setattr("renderer.window.controls.file_dialog.SystemDialog", Answer)
    app = hand.app
    app.native_dialogs = True
    press(hand, "Ctrl+O")
    asked = app.dialog.system
    assert asked.asked[0] == "Open in the active panel" and ".toml" in asked.asked[2] and not asked.asked[3]
    asked.answer = ""  # closed without a choice
    frames(hand)
    assert app.dialog is None
    press(hand, "Ctrl+Shift+S")
    (tmp_path / "there.toml").write_text("old")
    app.dialog.system.answer = tmp_path / "there.toml"  # it has asked whether to replace the file
    frames(hand)
    assert app.dialog is None and app.panel.file.path == tmp_path / "there.toml"
    press(hand, "Ctrl+O")
    app.dialog.system.answer = tmp_path / "none.toml"
    frames(hand)
    assert "there is no" in app.dialog.message and app.dialog.system is None, "the window's own dialog goes on"
    press(hand, "Escape")
    press(hand, "Ctrl+O")
    asked = app.dialog.system
    app.escape()
    assert asked.closed and app.dialog is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a program of Linux")
def test_the_system_s_dialog_is_a_program(tmp_path):
    """A program of the same name stands for zenity: what it is asked, and that its answer arrives."""
    (tmp_path / "zenity").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\necho /a/b.toml\n')
    (tmp_path / "zenity").chmod(0o755)
    text = (
        "import time; from pathlib import Path\n"
        "from renderer.window.controls.file_dialog import SystemDialog, has_system_dialog\n"
        "assert has_system_dialog()\n"
        "asked = SystemDialog('Open $(x)', Path('/tmp'), ('.toml', '.flame'), False)\n"
        "end = time.time() + 30\n"
        "while not asked.is_done() and time.time() < end: time.sleep(0.01)\n"
        "print(asked.path())\n"
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin", "DISPLAY": ":99", "PYTHONPATH": python_path()}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout.strip().endswith("b.toml"), done.stderr
    asked = (tmp_path / "asked").read_text()
    assert "Open $(x)" in asked and "*.toml *.flame" in asked


def test_a_file_is_opened_beside_the_active_panel(hand, tmp_path, monkeypatch):
    monkeypatch.setattr("renderer.window.controls.file_dialog.SystemDialog", Answer)
    app = hand.app
    app.native_dialogs, before = True, list(app.panels)
    press(hand, "Ctrl+Alt+O")
    assert app.dialog.system.asked[0] == "Open in a new panel"
    app.dialog.system.answer = SCENES / "mandelbrot.toml"
    frames(hand)
    assert list(app.panels)[: len(before)] == before and len(app.panels) == len(before) + 1
    assert app.panel.scene.title.lower().startswith("mandelbrot")
