"""Fractals in the window: a black panel says why, and Julia sets follow the pointer."""

from dataclasses import replace

import pytest

from renderer.paths import SCENES
from renderer.pictures import load
from renderer.scene.cameras import DeepView
from renderer.window.app import palette
from renderer.window.app.key_bindings import ACTIONS
from tests.window.headless import finish, frames, point, press, window

VIEW = DeepView(("-0.1225", "0.7449"), "1e-4")


@pytest.fixture
def screen(gpu, gl, tmp_path, monkeypatch):
    """The interface with a small Mandelbrot set; events are simulated."""
    monkeypatch.chdir(tmp_path)
    scene = load(SCENES / "mandelbrot.toml")
    settings = replace(scene.settings, max_iterations=60, samples=2, view=DeepView(height=3))
    with window([replace(scene, settings=settings, animation=None)], gpu, gl, (700, 400)) as screen:
        yield screen


def test_a_black_panel_says_why(screen):
    panel = screen.app.panel
    finish(screen)
    assert panel.hint == ""
    panel.show(replace(panel.scene, settings=replace(panel.scene.settings, view=VIEW)))
    finish(screen)
    assert "are black; the center is inside of the set, of period 3" in panel.hint


def test_a_julia_set_follows_the_pointer(screen):
    app, panel = screen.app, screen.app.panel
    assert palette.matches(ACTIONS, ["julia"])[0].keys == "Alt+J"
    press(screen, "Alt+J")
    twin = panel.julia_twin
    assert app.panel is panel and list(app.panels) == [panel, twin] and twin.scene.settings.kind == "julia"
    frames(screen)
    x, y, width, height = app.panels.shown[0].image_rect
    point(screen, x + width / 2 + height / 6, y + height / 3)
    c = [float(value) for value in twin.scene.settings.c]
    assert c == pytest.approx([0.5, 0.5], abs=0.02)
    press(screen, "Alt+J")
    point(screen, x + width / 2, y + height / 2)
    assert [float(value) for value in twin.scene.settings.c] == c and panel.julia_twin is None
    app.panels.active = 1
    press(screen, "Alt+J")
    assert len(app.panels) == 2 and "points of a Mandelbrot set" in app.message
