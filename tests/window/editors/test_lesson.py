"""A lesson in the window by its events: steps turn, panels follow, answers are judged, a child measures."""

import os
import sys
from pathlib import Path

import pytest

from renderer.lessons.lesson import LESSONS, read_lesson
from renderer.window.app import lesson_column
from renderer.window.controls.toolkit import imgui
from renderer.window.state import command_child, lesson_actions, main_loop
from renderer.window.state.lesson_reader import LessonReader
from tests.lessons.conftest import folder  # noqa: F401  (a fixture)
from tests.window.headless import frames, press, until, window


@pytest.fixture
def reading(gl, folder, tmp_path, monkeypatch):  # noqa: F811
    """A window that reads the small lesson of tests/lessons."""
    monkeypatch.chdir(tmp_path)
    reader = LessonReader(read_lesson(folder), seconds=0.05)
    with window(reader.session().scenes, None, gl, (1200, 700)) as screen:
        lesson_actions.open_lesson(screen.app, reader)
        screen.app.overlays.sidebar.is_on = False
        frames(screen, 3)
        yield screen


def click_at(screen, x: float, y: float) -> None:
    io = imgui.get_io()
    io.add_mouse_pos_event(x, y)
    frames(screen)
    for down in (True, False):
        io.add_mouse_button_event(0, down)
        frames(screen)


def test_steps_turn_and_panels_follow(reading):
    app, reader = reading.app, reading.app.lesson
    assert app.panels.area[0] >= lesson_column.WIDTH and app.panel.scene.settings.max_iterations == 30
    before = reading.pixels()[60:, : lesson_column.WIDTH]
    press(reading, "Ctrl+PageDown")
    assert reader.number == 1 and app.panel.scene.settings.view.height == 1.5 and len(app.panels) == 1
    assert (reading.pixels()[60:, : lesson_column.WIDTH] != before).any()
    press(reading, "Ctrl+PageDown")
    assert reader.number == 1  # the last one
    press(reading, "Ctrl+PageUp")
    assert reader.number == 0 and app.panel.scene.settings.view.height != 1.5
    app.add_panels([app.panel.scene])
    app.panels.active = 0
    app.close_panel()  # the lesson's own
    press(reading, "Ctrl+PageDown")
    assert reader.panels["set"] in app.panels and app.panel.scene.settings.view.height == 1.5
    assert not app.current_message(app.now())


def test_a_lesson_is_closed_and_another_opened(reading):
    app = reading.app
    lesson_actions.close_lesson(app)
    frames(reading)
    assert app.lesson is None and lesson_column.width(app, 1.0, 1600) == 0 and app.panels.area[0] < 20
    lesson_actions.open_bundled(app, "light-fields")
    frames(reading)
    assert app.lesson.lesson.name == "light-fields" and app.panel.scene.settings.disparity == 2.3
    lesson_actions.open_bundled(app, "nothing")
    assert "lesson.toml" in app.current_message(app.now()) and app.lesson.lesson.name == "light-fields"


def test_an_answer_is_judged_by_a_click(reading):
    """The first row of answers is looked for by clicks down the column, near where the words end."""
    reader = reading.app.lesson
    for y in range(258, 320, 9):
        click_at(reading, 24, y)
        if reader.state.answer is not None:
            break
    assert reader.state.answer == 0
    seen = reading.pixels()
    click_at(reading, 24, y + 30)
    assert reader.state.answer == 1 and (reading.pixels() != seen).any()


def test_without_a_lesson_keys_say_so_and_there_is_no_column(screen):
    assert lesson_column.width(screen.app, 1.0, 1600) == 0
    press(screen, "Ctrl+PageDown")
    assert "no lesson is open" in screen.app.current_message(screen.app.now())


def test_a_narrow_window_keeps_both(reading):
    reading.resize((600, 500))
    frames(reading, 3)
    assert 200 < reading.app.panels.area[0] < 300 < reading.app.panels.area[2]


def fake_child(text: str, code: int = 0):
    words = f"import sys; print({text!r}); print('rayfold: it cannot', file=sys.stderr); sys.exit({code})"
    return lambda module: ([sys.executable, "-c", words, "--"], dict(os.environ))


FINDING = """{"step": 2, "problem": "", "program": null, "finding": {"x": [1, 2], "series": {"a": [3.0, null]},
 "x_name": "n", "unit": "u", "device": "d", "kind": "lines", "log_x": false, "log_y": true, "seconds": 1.0,
 "notes": ["one point was not reached"]}}"""


ENDLESS = [sys.executable, "-c", "import time; time.sleep(600)", "--"]


def test_what_a_child_found_is_shown_and_its_failure_is_a_sentence(reading, monkeypatch):
    app, reader = reading.app, reading.app.lesson
    press(reading, "Ctrl+PageDown")
    monkeypatch.setattr(command_child, "module_child", fake_child(FINDING))
    press(reading, "Alt+M")
    until(reading, lambda: not reader.is_measuring)
    frames(reading)
    assert reader.state.finding.series == {"a": (3.0, None)} and not reader.state.problem
    monkeypatch.setattr(command_child, "module_child", fake_child("", 2))
    press(reading, "Alt+M")
    until(reading, lambda: not reader.is_measuring)
    frames(reading)
    assert reader.state.problem == "it cannot" and not app.current_message(app.now())


def test_a_measurement_is_canceled(reading, monkeypatch):
    reader = reading.app.lesson
    press(reading, "Ctrl+PageDown")
    monkeypatch.setattr(command_child, "module_child", lambda module: (ENDLESS, dict(os.environ)))
    press(reading, "Alt+M")
    child = reader._child
    assert reader.is_measuring and main_loop.activity(reading.app, reading.app.now()) == "waiting"
    reader.cancel()
    assert child.poll() is not None and not reader.is_measuring


def test_a_child_never_outlives_the_window(gl, folder, monkeypatch):  # noqa: F811
    monkeypatch.setattr(command_child, "module_child", lambda module: (ENDLESS, dict(os.environ)))
    reader = LessonReader(read_lesson(folder), 1)
    with window(reader.session().scenes, None, gl, (900, 500)) as screen:
        lesson_actions.open_lesson(screen.app, reader)
        frames(screen, 3)
        press(screen, "Alt+M")
        child = reader._child
        assert child.poll() is None
    assert child.poll() is not None


@pytest.mark.slow
def test_a_step_is_measured_by_a_child(reading):
    reader = reading.app.lesson
    press(reading, "Ctrl+PageDown")
    press(reading, "Alt+M")
    until(reading, lambda: not reader.is_measuring)
    assert not reader.state.problem and min(reader.state.finding.series["set"]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.parent.name for path in Path(LESSONS).glob("*/lesson.toml")))
def test_every_lesson_is_read_in_the_window(gl, name, device):
    """Every step is turned to, and its panels draw without an error."""
    reader = LessonReader(read_lesson(LESSONS / name))

    class Gpu:
        pass

    gpu = Gpu()
    gpu.device = device
    with window(reader.session().scenes, gpu, gl, (1000, 500)) as screen:
        lesson_actions.open_lesson(screen.app, reader)
        for number in range(len(reader.lesson.steps)):
            assert reader.number == number
            until(screen, lambda: all(p.measured.samples or p.error for p in screen.app.panels))
            assert not any(panel.error for panel in screen.app.panels), [p.error for p in screen.app.panels]
            press(screen, "Ctrl+PageDown")
        frames(screen, 3)
