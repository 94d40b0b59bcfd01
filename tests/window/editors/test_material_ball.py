"""The ball of the controls that shows the selected material."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.formats.images import write_png
from renderer.pictures import load
from renderer.window.document.items import Item
from renderer.window.scene_editor import material_ball
from renderer.window.state import main_loop
from tests.window.headless import frames, until, wait_for_undo_step, window
from tests.window.monkey import noop_device

SCENE = """title = "hand"
picture = "raytrace"
[settings]
samples = 2
horizon = [0.5, 0.5, 0.5]

[[settings.materials]]
name = "red"
color = [0.8, 0.02, 0.02]
color_texture = "wood"

[[settings.materials]]
name = "catcher"
kind = "shadow_catcher"

[[settings.textures]]
name = "wood"
file = "wood.png"

[[settings.textures]]
name = "unused"
file = "wood.png"

[[settings.spheres]]
material = "red"
"""


@pytest.fixture
def scene(tmp_path):
    write_png(tmp_path / "wood.png", np.full((4, 4, 3), 255, np.uint8))
    (tmp_path / "hand.toml").write_text(SCENE)
    return load(tmp_path / "hand.toml")


def test_the_ball_has_the_material_and_the_textures_that_it_names(scene):
    ball = material_ball.ball_scene(scene.settings, 0).settings
    assert replace(ball.materials[-1], name="red") == scene.settings.materials[0]
    assert [texture.name for texture in ball.textures] == ["wood"] and ball.spheres[0].material == "ball"
    blue = replace(scene.settings.materials[0], color=(0.0, 0.0, 1.0), color_texture="")
    assert not material_ball.ball_scene(replace(scene.settings, materials=(blue,)), 0).settings.textures


def test_the_ball_waits_for_the_panel_and_for_the_end_of_a_drag(gl, scene):
    with window([scene], SimpleNamespace(device=noop_device()), gl, (900, 700)) as screen:
        app, panel = screen.app, screen.app.panel
        frames(screen, 4)
        assert app.panels.ball is None, "nothing is selected"
        panel.selection = Item("spheres", 0)
        wait_for_undo_step(screen)
        until(screen, lambda: app.panels.ball is not None)
        ball = app.panels.ball
        assert ball not in app.panels and len(app.panels) == 1 and len(app.session().scenes) == 1
        shown = ball.scene
        green = replace(scene.settings.materials[0], color=(0.0, 1.0, 0.0))
        materials = (green, *scene.settings.materials[1:])
        panel.show(replace(panel.scene, settings=replace(panel.scene.settings, materials=materials)), moved=True)
        frames(screen, 2)
        assert ball.scene is shown, "while the user drags, the ball takes no time of the device"
        until(screen, lambda: ball.scene is not shown)
        assert ball.scene.settings.materials[-1].color == (0.0, 1.0, 0.0)
        until(screen, lambda: ball.draw_loop.is_finished)
        samples, drawn = ball.measured.samples, ball.drawn
        frames(screen, 5)
        assert (ball.measured.samples, ball.drawn) == (samples, drawn) and samples == ball.scene.settings.samples
        panel.last_frame = ball.last_frame = SimpleNamespace()  # as if both drew on the compute device
        ball.draw_loop = SimpleNamespace(busy=main_loop.MAX_QUEUED, queued_seconds=0.0)
        assert main_loop._must_wait(app, panel, app.now()), "draws of the ball are in the device's queue, too"
        ball.draw_loop.busy = 0
        assert not main_loop._must_wait(app, panel, app.now())
        app.panels.ball = None
        panel.selection = Item("materials", 1)
        frames(screen, 5)
        assert not app.message.startswith("drawing the ball: internal"), app.message


@pytest.mark.slow
def test_the_ball_shows_the_color_of_the_material_and_leaves_an_idle_window_idle(gl, gpu, scene):
    plain = replace(scene.settings.materials[0], color_texture="")
    scene = replace(scene, settings=replace(scene.settings, materials=(plain,)))
    with window([scene], gpu, gl, (900, 700)) as screen:
        app = screen.app
        app.panel.selection = Item("spheres", 0)
        until(screen, lambda: app.panels.ball is not None and app.panels.ball.draw_loop.is_finished)
        frames(screen, 3)
        red, green, _, _ = app.panels.ball.display.texture.read()[56:72, 56:72].reshape(-1, 4).mean(0)
        assert red > 2 * green and red > 60, (red, green)
        until(screen, lambda: main_loop.activity(app, app.now()) == "idle")
