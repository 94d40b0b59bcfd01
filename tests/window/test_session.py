"""Opening and saving by the window: scenes, pictures with recipes, sessions."""

import subprocess
import sys

import numpy as np
import pytest
import trimesh

from renderer.errors import InputError
from renderer.formats.images import read_pixels, read_recipe, write_png
from renderer.paths import ROOT
from renderer.pictures import load
from renderer.window.command import rotate_session
from renderer.window.state import main_loop, open_files
from renderer.window.state.session import restore, save
from tests.lightfields.synthetic_planes import layered_views
from tests.window.headless import center, drag, finish, frames, press, seconds, window
from tests.window.helpers import FRACTAL, HEIGHT, MOVING, WIDTH


def test_next_and_previous_scene(screen):
    press(screen, "N")
    assert screen.app.panel.scene.title == "second"
    press(screen, "P")
    assert screen.app.panel.scene.title == "first"


def test_a_screenshot_can_be_opened_as_the_scene_it_shows(screen, tmp_path):
    press(screen, "D")
    finish(screen)
    press(screen, "F12")
    written = tmp_path / "first-001.png"
    assert np.array_equal(read_pixels(written)[..., :3], screen.app.panel.display.texture.read()[..., :3])
    scene = load(written)
    assert scene.settings == screen.app.panel.scene.settings and scene.size == screen.app.panel.display.texture.size
    assert read_recipe(written)["samples"] == 3
    open_files.open_dropped_files(screen.app, [written])
    assert screen.app.panel.scene.settings.max_iterations == 50
    press(screen, "Shift+F12")
    assert read_pixels(tmp_path / "window-001.png").shape == (HEIGHT, WIDTH, 4)


def test_every_input_of_export_can_be_dropped(screen, tmp_path, rng):
    """One file replaces the active panel's scene, several open new panels; an error is shown."""
    views, _ = layered_views(rng, 3, 3, 16, back=-1.0, front=1.0, bars=0.5, period=8)
    np.save(tmp_path / "views.npy", views)
    (tmp_path / "field").mkdir()
    for row, column in np.ndindex(3, 3):
        write_png(tmp_path / "field" / f"out_{row:02d}_{column:02d}_{row}_{column}_.png", views[row, column])
    trimesh.creation.box().export(tmp_path / "box.obj")
    trimesh.creation.box().export(tmp_path / "box.ply")
    trimesh.creation.box().export(tmp_path / "box.stl")
    trimesh.creation.box().export(tmp_path / "box.glb")
    press(screen, "F12")
    kinds = {"box.obj": "raytrace", "box.ply": "raytrace", "box.stl": "raytrace", "box.glb": "raytrace"}
    kinds |= {"views.npy": "lightfield", "field": "lightfield", "first-001.png": "fractal", "second.toml": "fractal"}
    paths = [tmp_path / name for name in kinds] + [ROOT / "scenes" / "anemone.flame", ROOT / "scenes" / "mandelbrot.cb"]
    app = screen.app
    for path, kind in zip(paths, [*kinds.values(), "flame", "cdollar"], strict=True):
        open_files.open_dropped_files(app, [path])
        assert app.panel.scene.picture == kind and len(app.panels) == 2, path
    open_files.open_dropped_files(app, [paths[1], paths[6], tmp_path / "none.obj"])
    assert [panel.scene.picture for panel in app.panels] == ["cdollar", "fractal", "raytrace", "fractal"]
    assert "none.obj" in app.message
    open_files.open_dropped_files(app, [ROOT / "scenes" / "demo.toml"] * 5)
    assert len(app.panels) == 16 and "16 panels" in app.message


def test_presets_are_the_scenes_of_one_kind(screen, tmp_path):
    (tmp_path / "broken.toml").write_text("picture = ")
    (tmp_path / "other.toml").write_text('picture = "layout"\nsettings = { panels = ["first.toml"] }\n')
    open_files.reload(screen.app)
    assert [scene.path.stem for scene in open_files.presets(screen.app)] == ["first", "second"]


def test_a_scene_can_be_saved_and_opened(screen, tmp_path):
    press(screen, "D")
    press(screen, "E")
    press(screen, "Ctrl+S")
    scene = load(tmp_path / "first.toml")
    assert scene.settings == screen.app.panel.scene.settings and scene.tone == screen.app.panel.scene.tone


def test_key_frames_are_kept_in_sessions_scenes_and_recipes(screen, scene_files, tmp_path):
    path = tmp_path / "moving.toml"
    path.write_text(FRACTAL.format(title="moving") + MOVING)
    open_files.open_dropped_files(screen.app, [path])
    panel = screen.app.panel
    panel.paused, panel.scene_time = True, 0.4
    finish(screen)
    wanted, opened = panel.settings(), load(path)
    assert wanted.color_offset not in (0.0, 0.5)
    press(screen, "Ctrl+S")
    press(screen, "F12")
    save(screen.app.session(), tmp_path / "session.json")
    saved, shot = load(path), load(tmp_path / "moving-001.png")
    kept = restore(tmp_path / "session.json").scenes[0]
    assert saved.animation == shot.animation == kept.animation == opened.animation
    assert saved.settings == opened.settings and (shot.time, kept.time) == (0.4, 0.4)
    command = [sys.executable, str(ROOT / "main.py"), "export", tmp_path / "moving-001.png", "-o", tmp_path / "x.png"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert np.array_equal(read_pixels(tmp_path / "x.png")[..., :3], panel.display.texture.read()[..., :3])
    screen.app.replace_panels(restore(tmp_path / "session.json"))
    assert screen.app.panel.settings() == wanted


def test_sessions_are_restored(screen, tmp_path):
    press(screen, "D")
    press(screen, "2")
    drag(screen, center(screen, 1), 30, 30)
    session = screen.app.session(clean=True)
    save(session, tmp_path / "state" / "session.json")
    again = restore(tmp_path / "state" / "session.json")
    assert [s.settings for s in again.scenes] == [s.settings for s in session.scenes]
    assert (again.active, again.clean) == (1, True)
    screen.app.replace_panels(again)
    finish(screen)
    assert [panel.scene for panel in screen.app.panels] == list(again.scenes)


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "not a session"),
        ("[]", "this program reads 1"),
        ('{"rayfold_session": 2, "panels": []}', "rayfold_session is 2; this program reads 1"),
        ('{"rayfold_session": 1, "panels": []}', "1 to 16"),
        ('{"rayfold_session": 1, "panels": [{"picture": "nothing"}]}', "picture is"),
        ('{"rayfold_session": 1, "active": 5, "panels": [{"picture": "fractal"}]}', "active is 5"),
        ("[" * 100000, "not a session"),
    ],
)
def test_malformed_sessions_raise(tmp_path, text, words):
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(InputError, match=words):
        restore(tmp_path / "session.json")


def test_the_session_is_saved_while_the_window_runs(gl, scene_files, tmp_path):
    kept = tmp_path / "state" / "session.json"
    with window([load(scene_files[0])], None, gl, (300, 300), session_path=kept) as screen:
        frames(screen, 3)
        press(screen, "D")
        seconds(screen, main_loop.SAVE_INTERVAL + 0.1)
        assert restore(kept).scenes[0].settings.max_iterations == 50 and not restore(kept).clean
        assert rotate_session(kept, kept).startswith("the last session ended unexpectedly") and not kept.exists()
        screen.app.restore()
        assert screen.app.panel.scene.settings.max_iterations == 50
    assert restore(kept).clean
