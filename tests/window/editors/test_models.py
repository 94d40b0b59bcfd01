"""Models and environments in the window: opened, dropped, edited, and edited with an error."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, square
from renderer.formats.images import write_exr
from renderer.pictures import load
from renderer.window.state import open_files, panel_actions
from renderer.window.timeline import actions
from tests.formats.test_gltf_animation import animate
from tests.window.headless import draw_full_sample, until, window

SIZE = (320, 240)


def square_of(color) -> bytes:
    """A .glb: a square of one color with a camera and a sun."""
    maker = Maker()
    material = maker.add("materials", {"pbrMetallicRoughness": {"baseColorFactor": [*color, 1], "metallicFactor": 0}})
    maker.node(mesh=square(maker, material=material))
    camera = maker.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.5}})
    maker.node(camera=camera, translation=[0, 0, 5])
    maker.node(extensions=maker.light(type="directional", intensity=3))
    return maker.glb()


def middle(panel):
    """The mean color of the displayed picture's center."""
    pixels = panel.display.texture.read()
    height, width = pixels.shape[:2]
    return pixels[height * 2 // 5 : height * 3 // 5, width * 2 // 5 : width * 3 // 5, :3].astype("f4").mean((0, 1))


def is_red(panel) -> bool:
    red, green, blue = middle(panel)
    return red > 2 * max(green, blue)  # AgX takes a part of the saturation


def test_an_edited_model_is_reloaded_and_kept_on_error(gl, gpu, tmp_path):
    path = tmp_path / "one.glb"
    path.write_bytes(square_of((1.0, 0.0, 0.0)))
    with window([load(path)], gpu, gl, SIZE) as screen:
        panel = screen.app.panel
        draw_full_sample(screen)
        assert is_red(panel)
        path.write_bytes(square_of((0.0, 1.0, 0.0))[:-40])
        until(screen, lambda: panel.update_error)
        assert "one.glb" in panel.update_error and not panel.error
        assert is_red(panel)
        path.write_bytes(square_of((0.0, 1.0, 0.0)))
        until(screen, lambda: not panel.update_error)
        draw_full_sample(screen)
        green = middle(panel)
        assert green[1] > 2 * max(green[0], green[2])


def test_a_dropped_model_opens_and_a_damaged_one_shows_a_message(gl, gpu, tmp_path):
    for name, color in (("red", (1.0, 0.0, 0.0)), ("blue", (0.0, 0.0, 1.0))):
        (tmp_path / f"{name}.glb").write_bytes(square_of(color))
    (tmp_path / "bad.glb").write_bytes(b"glTF nonsense")
    with window([load(tmp_path / "red.glb")], gpu, gl, SIZE) as screen:
        draw_full_sample(screen)
        open_files.open_dropped_files(screen.app, [tmp_path / "bad.glb"])
        assert "bad.glb" in screen.app.message
        open_files.open_dropped_files(screen.app, [tmp_path / "blue.glb"])
        draw_full_sample(screen)
        blue = middle(screen.app.panel)
        assert len(screen.app.panels) == 1 and blue[2] > 2 * max(blue[:2])


@pytest.mark.slow
def test_an_edited_environment_is_reloaded(gl, gpu, tmp_path):
    path = tmp_path / "sky.exr"

    def save(color) -> None:
        write_exr(path, {"RGB": np.full((8, 16, 3), color, "f4")})

    save((1.0, 0.1, 0.1))
    (tmp_path / "one.toml").write_text(
        'picture = "raytrace"\ntone = { curve = "none" }\n'
        '[settings]\nsamples = 1\nenvironment = { file = "sky.exr" }\n'
        'spheres = [{ material = "plain" }]\n'
    )
    with window([load(Path(tmp_path / "one.toml"))], gpu, gl, SIZE) as screen:
        panel = screen.app.panel
        draw_full_sample(screen)
        assert middle(panel)[0] > 2 * middle(panel)[2]
        save((np.nan, 1.0, 1.0))
        until(screen, lambda: panel.update_error)
        assert "sky.exr" in panel.update_error and not panel.error
        save((0.1, 0.1, 1.0))
        until(screen, lambda: not panel.update_error)
        draw_full_sample(screen)
        assert middle(panel)[2] > 2 * middle(panel)[0]


def test_an_animated_model_plays_and_is_scrubbed_on_the_timeline(gl, gpu, tmp_path):
    """A red square that slides out of the middle in a second and stays away for another."""
    maker = Maker()
    red = maker.add("materials", {"pbrMetallicRoughness": {"baseColorFactor": [1, 0, 0, 1], "metallicFactor": 0}})
    maker.node(mesh=square(maker, material=red))
    camera = maker.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.5}})
    maker.node(camera=camera, translation=[0, 0, 5])
    maker.node(extensions=maker.light(type="directional", intensity=3))
    animate(maker, 0, "translation", (0.0, 1.0, 2.0), [[0, 0, 0], [9, 0, 0], [9, 0, 0]])
    (tmp_path / "slide.glb").write_bytes(maker.glb())
    with window([load(tmp_path / "slide.glb")], gpu, gl, SIZE) as screen:
        app, panel = screen.app, screen.app.panel
        until(screen, lambda: panel.measured.samples > 0)
        assert actions.shows_timeline(app) and panel.is_animated and panel.scene.animation.duration == 2.0
        before = panel.scene_time
        until(screen, lambda: panel.scene_time > before + 0.1)
        app.panel.scrub(0.0)
        draw_full_sample(screen)
        assert is_red(panel)
        app.panel.scrub(1.5)
        draw_full_sample(screen)
        red, green, blue = middle(panel)
        assert panel.paused and red < 1.2 * min(green, blue), "only the background is left"
        view = panel.settings().view
        panel_actions.edit_settings(app, replace(panel.settings(), max_depth=2))
        assert panel.scene.settings.shutter == () and panel.settings().view == view
        app.panel.scrub(2.0)
        draw_full_sample(screen)
        assert is_red(panel), "the animation repeats"
