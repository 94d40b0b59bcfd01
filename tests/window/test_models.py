"""Models and environments in the window: opened, dropped, turned, saved anew, and saved with a mistake."""

from pathlib import Path

import numpy as np

from renderer.formats.images import write_exr
from renderer.pictures import load
from renderer.window.state import open_files
from tests.formats.gltf_builder import Maker, square
from tests.window.headless import settled, until, window

SIZE = (320, 240)


def square_of(colour) -> bytes:
    """A .glb: a square of one colour before its own camera, lit by its own sun."""
    maker = Maker()
    material = maker.add("materials", {"pbrMetallicRoughness": {"baseColorFactor": [*colour, 1], "metallicFactor": 0}})
    maker.node(mesh=square(maker, material=material))
    camera = maker.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.5}})
    maker.node(camera=camera, translation=[0, 0, 5])
    maker.node(extensions=maker.light(type="directional", intensity=3))
    return maker.glb()


def middle(panel):
    """The mean colour of what is shown in the middle."""
    pixels = panel.display_texture.read()
    height, width = pixels.shape[:2]
    return pixels[height * 2 // 5 : height * 3 // 5, width * 2 // 5 : width * 3 // 5, :3].astype("f4").mean((0, 1))


def is_red(panel) -> bool:
    red, green, blue = middle(panel)
    return red > 3 * max(green, blue)


def test_a_model_is_opened_saved_anew_and_kept_where_it_is_bad(gl, gpu, tmp_path):
    path = tmp_path / "one.glb"
    path.write_bytes(square_of((1.0, 0.0, 0.0)))
    with window([load(path)], gpu, gl, SIZE) as screen:
        panel = screen.app.panel
        settled(screen)
        assert is_red(panel)
        path.write_bytes(square_of((0.0, 1.0, 0.0))[:-40])
        until(screen, lambda: panel.update_error)
        assert "one.glb" in panel.update_error and not panel.error
        assert is_red(panel)
        path.write_bytes(square_of((0.0, 1.0, 0.0)))
        until(screen, lambda: not panel.update_error)
        settled(screen)
        green = middle(panel)
        assert green[1] > 3 * max(green[0], green[2])


def test_a_model_is_dropped_into_a_panel_and_a_bad_one_is_told(gl, gpu, tmp_path):
    for name, colour in (("red", (1.0, 0.0, 0.0)), ("blue", (0.0, 0.0, 1.0))):
        (tmp_path / f"{name}.glb").write_bytes(square_of(colour))
    (tmp_path / "bad.glb").write_bytes(b"glTF nonsense")
    with window([load(tmp_path / "red.glb")], gpu, gl, SIZE) as screen:
        settled(screen)
        open_files.open_dropped_files(screen.app, [tmp_path / "bad.glb"])
        assert "bad.glb" in screen.app.message
        open_files.open_dropped_files(screen.app, [tmp_path / "blue.glb"])
        settled(screen)
        blue = middle(screen.app.panel)
        assert len(screen.app.panels) == 1 and blue[2] > 3 * max(blue[:2])


def test_an_environment_that_is_saved_is_read_anew(gl, gpu, tmp_path):
    path = tmp_path / "sky.exr"

    def save(colour) -> None:
        write_exr(path, {"RGB": np.full((8, 16, 3), colour, "f4")})

    save((1.0, 0.1, 0.1))
    (tmp_path / "one.toml").write_text(
        'picture = "raytrace"\n[settings]\nsamples = 1\nenvironment = { file = "sky.exr" }\n'
        'spheres = [{ material = "plain" }]\n'
    )
    with window([load(Path(tmp_path / "one.toml"))], gpu, gl, SIZE) as screen:
        panel = screen.app.panel
        settled(screen)
        assert middle(panel)[0] > 2 * middle(panel)[2]
        save((np.nan, 1.0, 1.0))
        until(screen, lambda: panel.update_error)
        assert "sky.exr" in panel.update_error and not panel.error
        save((0.1, 0.1, 1.0))
        until(screen, lambda: not panel.update_error)
        settled(screen)
        assert middle(panel)[2] > 2 * middle(panel)[0]
