"""The menus of a glTF file in the window, by mouse: animations, material variants, cameras; each choice is undone."""

from types import SimpleNamespace

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, square
from renderer.pictures import load
from renderer.window.controls.toolkit import imgui
from renderer.window.scene_editor import outliner
from renderer.window.state import panel_actions
from tests.formats.test_gltf_animation import animate
from tests.window.headless import frames, hold, point, press, until, window
from tests.window.monkey import noop_device


def model() -> bytes:
    """A square in two variants, seen by two cameras, of which the second moves in the second animation."""
    maker = Maker()
    paints = [maker.add("materials", {"emissiveFactor": color}) for color in ([1, 0, 0], [0, 1, 0])]
    maker.tree["extensions"] = {"KHR_materials_variants": {"variants": [{"name": "day"}, {"name": "night"}]}}
    mesh = square(maker, material=paints[0])
    mappings = {"mappings": [{"variants": [1], "material": paints[1]}]}
    maker.tree["meshes"][mesh]["primitives"][0]["extensions"] = {"KHR_materials_variants": mappings}
    maker.node(mesh=mesh)
    wide = maker.add("cameras", {"name": "wide", "type": "perspective", "perspective": {"yfov": 0.5, "aspectRatio": 2}})
    flat = maker.add("cameras", {"name": "flat", "type": "orthographic", "orthographic": {
        "xmag": 3, "ymag": 1.5, "znear": 0.1, "zfar": 9}})  # fmt: skip
    maker.node(camera=wide, translation=[0, 0, 5])
    maker.node(camera=flat, translation=[1, 0, 4])
    animate(maker, 0, "translation", (0.0, 2.0), [[0, 0, 0], [0, 1, 0]])
    animate(maker, 2, "translation", (0.0, 3.0), [[1, 0, 4], [1, 0, 7]])
    for animation, name in zip(maker.tree["animations"], ("hop", "ride"), strict=True):
        animation["name"] = name
    return maker.glb()


@pytest.fixture
def places(monkeypatch):
    """The middle of each closed list and of each entry of an open one, by its label."""
    found = {}

    def note(label):
        low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
        found[label.partition("##")[0] or label] = ((low.x + high.x) / 2, (low.y + high.y) / 2)

    def combo(label, shown):
        opened = begin_combo(label, shown)
        if not opened:
            note(label)
        return opened

    def entry(label, *more):
        out = selectable(label, *more)
        note(label)
        return out

    begin_combo, selectable = imgui.begin_combo, imgui.selectable
    monkeypatch.setattr(imgui, "begin_combo", combo)
    monkeypatch.setattr(imgui, "selectable", entry)
    return found


@pytest.fixture
def screen(gl, tmp_path, monkeypatch, places):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "both.glb").write_bytes(model())
    scenes = [load(tmp_path / "both.glb")]
    with window(scenes, SimpleNamespace(device=noop_device()), gl, (760, 480)) as screen:
        screen.app.panel.paused = True
        frames(screen, 4)
        yield screen


def choose(screen, places, menu, entry):
    for label in (f"##{menu}", entry):
        point(screen, *places[label])
        hold(screen, 0, True)
        hold(screen, 0, False)
        frames(screen)


def test_each_menu_sets_what_export_sets_and_is_undone(screen, places):
    panel = screen.app.panel
    assert not panel.error, panel.error
    opened = panel.scene
    shape = opened.settings.models[0]
    assert (shape.animation, opened.animation.duration) == ("hop", 2.0)

    choose(screen, places, "animation", "ride")
    shape = panel.scene.settings.models[0]
    assert (shape.animation, panel.scene.animation.duration) == ("ride", 3.0)
    assert shape.camera == -1, "the first camera, which is shown, stands still in it"
    choose(screen, places, "camera", "2  flat")
    settings = panel.scene.settings
    assert settings.projection == "orthographic" and settings.models[0].camera == 1
    np.testing.assert_allclose(settings.view.position, (1, 0, 4), atol=1e-6)
    assert settings.view.target_plane_height() == pytest.approx(3.0, rel=1e-5)
    panel.scene_time = 1.5
    np.testing.assert_allclose(panel.settings().view.position, (1, 0, 5.5), atol=1e-5)
    choose(screen, places, "variant", "night")
    assert panel.scene.settings.models[0].variant == "night"
    choose(screen, places, "animation", outliner.REST)
    shape = panel.scene.settings.models[0]
    assert (shape.animation, shape.camera, panel.scene.animation) == ("", -1, None)
    choose(screen, places, "camera", "1  wide")
    assert panel.scene.settings.view == opened.settings.view and panel.scene.size == opened.size
    assert panel.scene.settings.projection == "perspective"

    undone = []
    for _ in range(5):
        press(screen, "Ctrl+Z")
        shape = panel.scene.settings.models[0]
        undone.append((shape.animation, shape.variant, panel.scene.settings.projection))
    assert undone == [
        ("", "night", "orthographic"), ("ride", "night", "orthographic"), ("ride", "", "orthographic"),
        ("ride", "", "perspective"), ("hop", "", "perspective"),
    ]  # fmt: skip
    assert panel.scene == opened


def test_a_file_that_goes_bad_has_no_menus_and_the_window_goes_on(screen, places, tmp_path):
    (tmp_path / "both.glb").write_bytes(b"glTF nonsense")
    places.clear()
    frames(screen, 3)
    assert "##animation" not in places and screen.app.panels


def test_a_playing_model_has_some_samples_at_each_time_and_one_at_a_time_in_a_drag(screen):
    """One sample makes black specks of the ground's shadow."""
    panel = screen.app.panel
    panel.paused = False
    until(screen, lambda: panel.budget.is_measured and panel.measured.samples == 4)
    seen = set()
    for _ in range(4):
        drawn = panel.scene_time
        until(
            screen,
            lambda drawn=drawn: (
                panel.draw_loop.drawn_time >= drawn and panel.measured.samples or panel.scene_time < drawn
            ),
        )
        seen.add(panel.measured.samples)
    assert seen == {4}
    panel_actions.set_view(screen.app, panel.settings().view.drag(0.01, 0.0))
    frames(screen, 4)
    assert panel.tiles.repeat == 1, "while the user moves the view, answers come first"
