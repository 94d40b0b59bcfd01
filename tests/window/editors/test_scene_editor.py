"""The scene editor by events in a headless window: picked, dragged, renamed, saved; and its parts without a window."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from time import sleep
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from renderer.cli import main
from renderer.errors import UserError
from renderer.formats.images import read_digest, read_pixels, write_png
from renderer.paths import ROOT
from renderer.pictures import load, scene_of_table
from renderer.raytracing.instances import Scattered
from renderer.scene import animation as keyframes
from renderer.scene.animation import EASE, Key, eased, insert_keyframe, settings_at, write_animation
from renderer.system import drafts
from renderer.window.app import overlays
from renderer.window.app.reference import page_lines, setting_lines
from renderer.window.controls import settings as controls
from renderer.window.controls.file_dialog import FileDialog
from renderer.window.controls.toolkit import imgui
from renderer.window.document import commands, creation, items, picking, pose
from renderer.window.document.document import Document
from renderer.window.document.items import Item
from renderer.window.scene_editor import gizmo
from renderer.window.state import edit_actions, main_loop, open_files, picture_export, save_files
from renderer.window.state.session import MAX_RECENT, RecentFiles, restore, save
from renderer.window.timeline import view as timeline_view
from tests.window.headless import center, drag, frames, hold, point, press, wait_for_undo_step, window
from tests.window.monkey import noop_device

SCENE = """# a scene of a person
title = "by hand" # kept
picture = "raytrace"

[settings]
samples = 2
view = { position = [0.0, 0.0, 6.0], target = [0.0, 0.0, 0.0] }

[[settings.materials]]
name = "clay" # soft

[[settings.spheres]] # ball
material = "clay"

[[settings.quads]] # wall
material = "clay"
corners = [[-9.0, -9.0, -3.0], [9.0, -9.0, -3.0], [9.0, 9.0, -3.0], [-9.0, 9.0, -3.0]]

[[settings.point_lights]]
position = [2.0, 1.5, 1.0]
"""


@pytest.fixture
def hand(gl, tmp_path, monkeypatch):
    """A window with the scene, on a device without kernels."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "hand.toml"
    path.write_text(SCENE)
    with window([load(path)], SimpleNamespace(device=noop_device()), gl, (1000, 640)) as screen:
        frames(screen, 3)
        yield screen


def click(screen, x, y, button=0):
    point(screen, x, y)
    hold(screen, button, True)
    hold(screen, button, False)
    frames(screen, 2)


def typed(screen, text, enter=True):
    imgui.get_io().add_input_characters_utf8(text)
    frames(screen, 2)
    if enter:
        press(screen, "Enter")
        frames(screen, 2)


def text_of(screen):
    return screen.app.panel.document.text().text


def selected_label(screen):
    document = screen.app.panel.document
    return document.label(document.selected) if document.selected else None


def test_the_keypad_shows_the_sides_and_what_is_selected(hand):
    """Each side is the axis from the target to the camera; a sphere is then about as high as the picture."""
    panel = hand.app.panel
    sides = {"Keypad1": (0, 0, 1), "Ctrl+Keypad1": (0, 0, -1), "Keypad3": (1, 0, 0), "Ctrl+Keypad3": (-1, 0, 0)}
    for keys, axis in (sides | {"Keypad7": (0, 1, 0), "Ctrl+Keypad7": (0, -1, 0)}).items():
        press(hand, keys)
        view = panel.scene.settings.view
        assert np.allclose(np.subtract(view.position, view.target), np.multiply(axis, 6.0), atol=0.01), keys
    press(hand, "Keypad5")
    assert panel.scene.settings.projection == "orthographic"
    press(hand, "Keypad5")
    panel.selection = None
    press(hand, "KeypadDecimal")
    assert hand.app.message == "select a shape to look at"
    panel.selection = Item("spheres", 0)
    press(hand, "KeypadDecimal")
    view, ball = panel.scene.settings.view, panel.scene.settings.spheres[0]
    assert np.allclose(view.target, ball.center, atol=1e-3) and panel.scene.settings.projection == "perspective"
    assert 2 * ball.radius < view.target_plane_height() < 4 * ball.radius


def row_middles(monkeypatch):
    """The middle of each row of lists that is drawn from now on, by the row's text."""
    draw, rows = imgui.selectable, {}

    def noted(label, *more):
        out = draw(label, *more)
        (left, top), (right, bottom) = imgui.get_item_rect_min(), imgui.get_item_rect_max()
        rows[label.partition("###")[0]] = (left + right) / 2, (top + bottom) / 2
        return out

    monkeypatch.setattr(imgui, "selectable", noted)
    return rows


def test_items_clicked_with_ctrl_are_moved_hidden_and_deleted_together(hand, monkeypatch):
    panel, rows = hand.app.panel, row_middles(monkeypatch)
    frames(hand, 2)
    ball, light, wall = Item("spheres", 0), Item("point_lights", 0), Item("quads", 0)
    click(hand, *rows["ball"])
    assert panel.chosen == {ball}
    imgui.get_io().add_key_event(imgui.Key.mod_ctrl, True)
    for name in ("point light 1", "wall", "wall"):
        point(hand, *rows[name])
        for down in (True, False):
            imgui.get_io().add_mouse_button_event(0, down)
            frames(hand, 1)
    imgui.get_io().add_key_event(imgui.Key.mod_ctrl, False)
    frames(hand)
    assert panel.chosen == {ball, light} and panel.document.selected in panel.chosen
    before, motion = panel.scene.settings, np.eye(4)
    motion[:3, 3] = 1.0, 2.0, -3.0
    moved = replace(before.spheres[0], center=(1.0, 2.0, -3.0))
    panel.selection = ball
    hand.ui.main_window.panel_editor(panel)._move_chosen(motion, {ball: moved})
    after = panel.scene.settings
    assert after.spheres == (moved,) and after.quads == before.quads
    assert np.allclose(np.subtract(after.point_lights[0].position, before.point_lights[0].position), motion[:3, 3])
    press(hand, "Alt+H")
    assert panel.hidden == {ball, light}
    wait_for_undo_step(hand)
    press(hand, "Delete")
    assert not panel.scene.settings.spheres + panel.scene.settings.point_lights and not panel.hidden
    press(hand, "Ctrl+Z")
    assert panel.scene.settings == after
    click(hand, *rows["wall"])
    assert panel.chosen == {wall}


def test_a_hidden_item_is_not_drawn_in_its_panel_and_stays_in_the_scene(hand):
    panel, before = hand.app.panel, text_of(hand)

    def drawn():
        return panel.draw_loop.draw_key((64, 64), hand.app.now()).settings

    for item in (Item("spheres", 0), Item("point_lights", 0)):
        panel.selection = item
        press(hand, "Alt+H")
    assert not drawn().spheres and not drawn().point_lights and len(drawn().quads) == 1
    assert text_of(hand) == before and len(panel.scene.settings.spheres) == 1
    press(hand, "Alt+H")
    assert not drawn().spheres and len(drawn().point_lights) == 1
    edit_actions.run_command(hand.app, lambda document: commands.duplicate(document, Item("spheres", 0)))
    assert len(drawn().spheres) == 2, "numbers of items have changed"
    panel.selection = Item("quads", 0)
    press(hand, "Alt+H")
    press(hand, "Shift+Alt+H")
    assert len(drawn().quads) == 1
    panel.selection = Item("materials", 0)
    press(hand, "Alt+H")
    assert hand.app.message.startswith("select what hides") and drawn().materials


def test_a_new_scene_keeps_its_grid_when_it_is_saved(hand, tmp_path):
    open_files.new_document(hand.app)
    frames(hand, 3)
    panel = hand.app.panel
    editor = hand.ui.main_window.panel_editor(panel)
    assert panel.file.path is None and editor.shows_grid
    save_files.save_to(hand.app, panel, tmp_path / "table.toml")
    frames(hand, 3)
    assert panel.file.path == tmp_path / "table.toml" and editor.shows_grid
    open_files.open_path(hand.app, tmp_path / "hand.toml")
    frames(hand, 3)
    assert not hand.ui.main_window.panel_editor(hand.app.panel).shows_grid


def test_a_box_has_no_rows_of_tubes_and_texts(hand, monkeypatch):
    rows = set()
    control = controls._labeled_control
    monkeypatch.setattr(controls, "_labeled_control", lambda f, *more: (rows.add(f.name), control(f, *more))[1])
    read = {"box": set(), "plane": set(), "cone": {"sides"}, "torus": {"sides", "tube"}, "text": {"text"}}
    run = edit_actions.run_command
    for kind, wanted in read.items():
        run(hand.app, lambda document, kind=kind: creation._shape_of_kind(document, "solids", kind))
        rows.clear()
        frames(hand, 2)
        assert rows & {"sides", "tube", "text"} == wanted, kind
        assert {"kind", "scale", "position"} <= rows


@pytest.mark.slow
def test_clicks_in_the_picture_select_what_is_there(hand):
    x, y = center(hand, 0)
    click(hand, x, y)
    assert selected_label(hand) == "ball"
    left, top, width, height = hand.app.panels.shown[0].image_rect
    click(hand, left + 20, top + 20)
    assert selected_label(hand) == "wall"
    light = gizmo.project(hand.app.panel.settings(), np.array([[2.0, 1.5, 1.0]]), hand.app.panels.shown[0].image_rect)[
        0
    ]
    click(hand, *light)
    assert selected_label(hand) == "point light 1"
    assert text_of(hand) == SCENE, "selecting is no edit"


def test_the_gizmo_moves_the_selected_item_as_one_step_and_undo_restores_the_bytes(hand):
    x, y = center(hand, 0)
    click(hand, x, y)
    wait_for_undo_step(hand)
    before = hand.app.panel.scene.settings
    drag(hand, (x, y), 60, 0)  # its middle moves in the plane of the view
    wait_for_undo_step(hand)
    after = hand.app.panel.scene.settings
    moved = after.spheres[0].center
    assert moved[0] > 0.2 and abs(moved[1]) < 0.1 and after.view == before.view, "the camera stays"
    place = gizmo.project(after, np.array([moved]), hand.app.panels.shown[0].image_rect)[0]
    assert abs(place[0] - (x + 60)) < 3 and abs(place[1] - y) < 3, "it is under the pointer"
    assert text_of(hand) == SCENE.replace(
        '# ball\nmaterial = "clay"\n', f'# ball\nmaterial = "clay"\ncenter = {list(moved)}\n'
    )
    press(hand, "Ctrl+Z")
    assert text_of(hand) == SCENE and hand.app.panel.scene.settings == before


@pytest.mark.slow
def test_a_name_is_typed_and_reaches_all_uses(hand):
    hand.app.panel.selection = Item("materials", 0)
    frames(hand, 2)
    press(hand, "F2")
    frames(hand, 3)
    typed(hand, "terracotta")
    assert text_of(hand) == SCENE.replace('"clay"', '"terracotta"')
    press(hand, "Ctrl+Z")
    assert text_of(hand) == SCENE


def test_items_come_and_go_by_keys_and_each_step_is_undone(hand):
    texts = [text_of(hand)]

    def step(keys):
        press(hand, keys)
        wait_for_undo_step(hand)
        texts.append(text_of(hand))

    x, y = center(hand, 0)
    click(hand, x, y)
    step("Ctrl+Shift+D")
    assert "[[settings.spheres]] # ball 2\n" in texts[-1] and selected_label(hand) == "ball 2"
    step("Delete")
    assert texts[-1] == SCENE
    edit_actions.run_command(hand.app, creation.additions(hand.app.panel.scene.settings)[0].run)
    wait_for_undo_step(hand)
    texts.append(text_of(hand))
    press(hand, "Shift+Escape")
    press(hand, "Delete")
    assert "nothing is selected" in hand.app.message
    hand.app.panel.selection = Item("materials", 0)
    press(hand, "Delete")
    assert "clay is used by ball" in hand.app.message and text_of(hand) == texts[-1]
    for text in reversed(texts[:-1]):
        press(hand, "Ctrl+Z")
        assert text_of(hand) == text


@pytest.mark.slow
def test_save_save_as_and_open_by_the_file_browser(hand, tmp_path):
    app = hand.app
    (tmp_path / "deep").mkdir()
    app.panel.selection = Item("quads", 0)
    press(hand, "Ctrl+Shift+D")
    press(hand, "Ctrl+S")
    assert (tmp_path / "hand.toml").read_text() == text_of(hand) and not app.panel.is_changed
    frames(hand, 60)
    assert not app.message.startswith("reloaded"), "the window's own writing is no edit from outside"
    press(hand, "Ctrl+Shift+S")
    frames(hand, 3)
    assert app.dialog is not None and app.dialog.name == "hand.toml"
    app.dialog.name = ""
    typed(hand, "deep")
    assert app.dialog.folder.name == "deep"
    app.dialog.name = "copy"
    app.dialog.accept()
    frames(hand, 3)
    assert app.dialog is None and app.panel.file.path == tmp_path / "deep" / "copy.toml"
    assert (tmp_path / "deep" / "copy.toml").read_text() == (tmp_path / "hand.toml").read_text()
    press(hand, "Ctrl+Z")
    assert app.panel.file.path == tmp_path / "deep" / "copy.toml", "the file is not undone"
    press(hand, "Ctrl+O")
    frames(hand, 3)
    app.dialog.name = "none.toml"
    app.dialog.accept()
    frames(hand, 2)
    assert "there is no" in app.dialog.message
    (tmp_path / "bad.toml").write_text("title = ")
    app.dialog.name = str(tmp_path / "bad.toml")
    app.dialog.accept()
    assert "not a TOML file" in app.dialog.message and app.panel.scene.title == "by hand"
    app.dialog.name = str(tmp_path / "hand.toml")
    app.dialog.accept()
    frames(hand, 2)
    assert app.dialog is None and app.recent.files[0] == tmp_path / "hand.toml"
    press(hand, "Ctrl+Z")
    assert app.panel.file.path == tmp_path / "deep" / "copy.toml", "opening is undone, with its file"


@pytest.mark.parametrize(
    ("names", "picture", "asks"),
    [
        (["part.obj"], "raytrace", True), (["PART.GLTF"], "raytrace", True), (["tiles.jpg"], "raytrace", True),
        (["tiles.png"], "raytrace", False), (["a.toml"], "raytrace", False), (["a.obj", "b.obj"], "raytrace", False),
        (["part.obj"], "fractal", False), (["tiles.jpg"], "fractal", False),
    ],
)  # fmt: skip
def test_one_dropped_file_that_the_scene_can_hold_is_asked_about(monkeypatch, names, picture, asks):
    """A PNG may be a picture of Rayfold with its scene, so it is opened as other files are."""
    opened, paths = [], [Path(name) for name in names]
    monkeypatch.setattr(open_files, "open_dropped_files", lambda app, files: opened.append(files))
    scene = scene_of_table({"picture": picture}, Path("a.toml"))
    app = SimpleNamespace(panel=SimpleNamespace(scene=scene), overlays=SimpleNamespace(dropped=None))
    edit_actions.drop(app, paths)
    assert (app.overlays.dropped, opened) == ((paths[0], []) if asks else (None, [paths]))


@pytest.mark.parametrize(
    ("choice", "name", "wanted"),
    [("add", "a.obj", "shape"), ("add", "a.JPG", "texture"), ("open", "a.obj", "here"), ("panel", "a.obj", "panel")],
)
def test_a_dropped_file_goes_where_the_answer_says(monkeypatch, choice, name, wanted):
    taken, path = [], Path(name)

    def open_path(app, path, in_new_panels):
        taken.append(("panel" if in_new_panels else "here", path))

    monkeypatch.setattr(open_files, "open_path", open_path)
    monkeypatch.setattr(edit_actions, "add_file", lambda app, path: taken.append(("shape", path)))
    monkeypatch.setattr(edit_actions, "_add_texture", lambda app, path: taken.append(("texture", path)))
    app = SimpleNamespace(overlays=SimpleNamespace(dropped=path), errors_as_messages=lambda *_: nullcontext())
    edit_actions.take_dropped(app, choice)
    edit_actions.take_dropped(app, choice)  # nothing is left to answer
    assert taken == [(wanted, path)] and app.overlays.dropped is None


@pytest.mark.slow
def test_meshes_models_and_textures_go_into_the_scene(hand, tmp_path):
    (tmp_path / "part.obj").write_text("v 0 0 0\nv 40 0 0\nv 0 20 0\nf 1 2 3\n")
    write_png(tmp_path / "tiles.png", np.zeros((2, 2, 3), "u1"))
    app = hand.app
    edit_actions.drop(app, [tmp_path / "part.obj"])
    frames(hand, 2)
    assert app.overlays.dropped is not None
    edit_actions.take_dropped(app, "add")
    (mesh,) = app.panel.scene.settings.meshes
    size = 40 * mesh.scale
    assert 0.2 < size / app.panel.scene.settings.view.target_plane_height() < 0.8, "it fits the view"
    edit_actions.texture_dialog(app)
    app.dialog.name = str(tmp_path / "tiles.png")
    app.dialog.accept()
    assert app.panel.scene.settings.textures[0].name == "tiles"
    material = replace(app.panel.scene.settings.materials[0], color_texture="tiles")
    edit_actions.run_command(app, lambda d: commands.set_value(d, Item("materials", 0), material))
    assert 'file = "part.obj"' in text_of(hand) and 'color_texture = "tiles"' in text_of(hand)
    edit_actions.add_file_dialog(app)
    (tmp_path / "broken.obj").write_text("v 0 0\nf 1 2 9\n")
    app.dialog.name = str(tmp_path / "broken.obj")
    app.dialog.accept()
    assert "broken.obj" in app.dialog.message and len(app.panel.scene.settings.meshes) == 1
    edit_actions.set_file(app, app.panel, "textures[0].file", tmp_path / "tiles.png")
    with pytest.raises(UserError, match="there is no"):
        edit_actions.set_file(app, app.panel, "textures[0].file", tmp_path / "none.png")


@pytest.mark.slow
def test_a_new_scene_is_empty_and_asks_where_to_save(hand, tmp_path):
    press(hand, "Ctrl+N")
    frames(hand, 2)
    assert len(hand.app.panels) == 1 and hand.app.panel.scene.title == "untitled"
    press(hand, "Shift+A")
    frames(hand, 2)
    assert imgui.is_popup_open("", imgui.PopupFlags_.any_popup)
    press(hand, "Escape")
    frames(hand, 2)
    assert not imgui.is_popup_open("", imgui.PopupFlags_.any_popup)
    press(hand, "Ctrl+S")
    frames(hand, 2)
    assert hand.app.dialog is not None and hand.app.dialog.saves
    press(hand, "Escape")
    frames(hand, 2)
    assert hand.app.dialog is None and not list(tmp_path.glob("untitled*"))


def test_sessions_keep_the_text_with_its_comments(hand, tmp_path):
    hand.app.panel.selection = Item("spheres", 0)
    edit_actions.duplicate_selected(hand.app)
    save(hand.app.session(), tmp_path / "session.json")
    kept = restore(tmp_path / "session.json")
    assert kept.panels[0].base.text == text_of(hand)
    hand.app.replace_panels(kept)
    assert text_of(hand).startswith("# a scene of a person\n") and hand.app.panel.is_changed
    damaged = (tmp_path / "session.json").read_text().replace("# a scene of a person", "= =")
    (tmp_path / "session.json").write_text(damaged)
    assert restore(tmp_path / "session.json").panels[0].base is None


@pytest.mark.slow
def test_a_paused_moment_of_an_animation_is_refined(hand):
    app = hand.app
    settings = replace(app.panel.scene.settings, samples=6)
    app.panel.show(insert_keyframe(replace(app.panel.scene, settings=settings), 1.0, ["view.fov_degrees"]))
    app.panel.scrub(0.5)
    frames(hand, 120)
    assert app.panel.paused and app.panel.measured.samples == 6 and app.panel.draw_loop.is_finished
    assert app.panel.budget.divisor == 1 and main_loop.activity(app, app.now()) == "idle"


def test_keys_of_the_rows_are_dragged_copied_and_eased(hand, monkeypatch):
    app, lines, draw = hand.app, [], timeline_view._track

    def noted(*words):
        lines.append((imgui.get_cursor_screen_pos().x, words[-1]))
        draw(*words)

    monkeypatch.setattr(timeline_view, "_track", noted)
    scene = insert_keyframe(insert_keyframe(app.panel.scene, 0.0, ["spheres[0].radius"]), 2.0, ["spheres[0].radius"])
    app.panel.show(scene)
    press(hand, "Ctrl+Shift+T")
    frames(hand, 3)
    tracks = hand.ui.main_window.tracks
    height = hand._texture.size[1]
    row = height - tracks.height(1.0) + 8
    left, width = lines[-1]  # of the timeline's line, below which the row's lies
    drag(hand, (left + width / 2, row), width / 4, 0)
    times = [key.time for key in app.panel.scene.animation.tracks[0].keys]
    assert times[0] == 0.0 and abs(times[1] - 3.0) < 0.1 and abs(times[1] * 24 % 1) < 1e-3, "snapped to frames"
    tracks.copy()
    app.panel.scrub(1.0)
    tracks.paste()
    assert [key.time for key in app.panel.scene.animation.tracks[0].keys] == [0.0, 1.0, times[1]]
    tracks.ease("curve", (0.0, 0.0, 0.58, 1.0))
    assert 'interpolation = "curve"\ncurve = [0.0, 0.0, 0.58, 1.0]' in text_of(hand)
    tracks.delete()
    assert [key.time for key in app.panel.scene.animation.tracks[0].keys] == [0.0, times[1]]
    for _ in range(5):
        press(hand, "Ctrl+Z")
        frames(hand, 30)
    assert text_of(hand) == SCENE


def test_edits_of_key_frames(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(SCENE)
    scene = load(path)
    for time in (0.0, 1.0, 3.0):
        scene = insert_keyframe(scene, time, ["view.fov_degrees", "samples"])
    moved, names = keyframes.move_keys(scene, {("samples", 1.0)}, 9.0)
    assert [key.time for key in moved.animation.tracks[1].keys] == [0.0, 3.0, 4.0], "held by the duration"
    assert names == {("samples", 4.0)}
    moved, _ = keyframes.move_keys(scene, {("samples", 1.0)}, 2.0)
    assert [key.time for key in moved.animation.tracks[1].keys] == [0.0, 3.0], "what it is moved onto is replaced"
    copied = keyframes.copy_keys(scene, {("samples", 1.0), ("view.fov_degrees", 3.0)})
    assert [(path, key.time) for path, key in copied] == [("view.fov_degrees", 2.0), ("samples", 0.0)]
    with pytest.raises(UserError, match="seed has no key frames here"):
        keyframes.paste_keys(scene, 0.0, [("seed", Key(0.0, 3, "smooth"))])
    gone = keyframes.delete_keys(scene, keyframes.key_names(scene.animation))
    assert gone.animation is None and gone.settings == scene.settings


def test_easing_curves_against_the_definition(rng):
    """x(s), y(s) of the Bezier curve by its points (Bernstein polynomials); presets known from CSS."""
    for _ in range(20):
        x1, y1, x2, y2 = (float(v) for v in rng.random(4))
        s = rng.random()
        weights = np.array([3 * (1 - s) ** 2 * s, 3 * (1 - s) * s**2, s**3])
        assert eased((x1, y1, x2, y2), float(weights @ [x1, x2, 1])) == pytest.approx(weights @ [y1, y2, 1], abs=1e-6)
    assert eased(EASE, 0.5) == pytest.approx(0.5) and eased(EASE, 0.0) == 0 and eased(EASE, 1.0) == 1
    assert eased((0.25, 0.1, 0.25, 1.0), 0.25) == pytest.approx(0.4085, abs=1e-3)  # CSS's `ease`


def test_a_curve_changes_the_value_between_and_reads_back(tmp_path):
    path = tmp_path / "s.toml"
    text = f"""{SCENE}
[animation]
[[animation.keyframes]]
interpolation = "curve"
curve = [0.8, 0.0, 1.0, 0.2]
set = {{ "view.fov_degrees" = 20.0 }}
[[animation.keyframes]]
time = 1.0
set = {{ "view.fov_degrees" = 40.0 }}
"""
    path.write_text(text)
    scene = load(path)
    assert settings_at(scene, 0.5).view.fov_degrees < 24
    assert write_animation(scene.animation)["keyframes"][0]["curve"] == [0.8, 0.0, 1.0, 0.2]
    for old, new, why in (("0.2]", "2.0]", "0.0 to 1.0"), ('"curve"', '"hold"', "it must be 'curve'")):
        path.write_text(text.replace(old, new))
        with pytest.raises(UserError, match=why):
            load(path)


def test_poses_and_items_are_inverse(tmp_path, rng):
    document = Document(creation.new_scene(tmp_path))
    for addition in creation.additions(document.scene.settings):
        if addition.name != "studio":
            document = addition.run(document)
    settings, checked = document.scene.settings, 0
    anchor = np.array(settings.view.target)
    for item in items.all_items(settings):
        value = items.item_value(settings, item)
        if not {"move", "rotate"} & {*pose.operations(value)}:
            continue
        before = pose.item_pose(value, anchor)
        assert pose.with_pose(value, before) == value, "the same pose changes nothing"
        shift = np.eye(4)
        shift[:3, 3] = rng.normal(size=3)
        moved = pose.with_pose(value, shift @ before)
        if "corners" in vars(value) or {"position", "center"} & set(vars(value)):
            assert np.allclose(pose.item_pose(moved, anchor)[:3, 3], (shift @ before)[:3, 3], atol=2e-4)
        grown = before.copy()
        grown[:3, :3] *= 2
        if "scale" in pose.operations(value) and "corners" not in vars(value):
            again = pose.item_pose(pose.with_pose(value, grown), anchor)
            assert np.allclose(again[:3, :3], grown[:3, :3], rtol=1e-4)
        checked += 1
    assert checked > 8
    rotated = settings.distance_fields[0]
    for _ in range(20):
        degrees = tuple(float(v) for v in rng.uniform(-180, 180, 3))
        target = pose.item_pose(replace(rotated, rotation_degrees=degrees), anchor)
        again = pose.item_pose(pose.with_pose(rotated, target), anchor)
        assert np.allclose(again, target, atol=1e-4)


def test_every_item_of_the_scenes_has_a_pose_or_no_gizmo():
    kinds = set()
    for path in sorted((ROOT / "scenes").glob("*.toml")):
        if (scene := load(path)).picture != "raytrace":
            continue
        for item in items.all_items(scene.settings):
            value = items.item_value(scene.settings, item)
            kinds.add(type(value))
            if pose.operations(value):
                assert np.isfinite(pose.item_pose(value, np.array(scene.settings.view.target))).all()
    assert Scattered in kinds


def test_picking_agrees_with_brute_force_and_with_projection(tmp_path, rng):
    """The nearest item by sampled points of each surface that project onto the pixel."""
    path = tmp_path / "s.toml"
    path.write_text(SCENE)
    settings = load(path).settings
    for projection in ("perspective", "orthographic"):
        shown = replace(settings, projection=projection, lens_shift=(0.1, -0.05), point_lights=())
        for _ in range(30):
            u, v = rng.random(2)
            ray = picking.camera_ray(shown, u, v, 1.5)
            place = ray.origin + 4.0 * ray.direction
            ((x, y),) = gizmo.project(shown, place[None], (0, 0, 1500, 1000))
            assert abs(x - 1500 * u) < 1e-6 and abs(y - 1000 * v) < 1e-6, "the gizmo's matrices are the camera's"
            t = np.linspace(0.5, 30, 20_000)[:, None]
            inside = np.linalg.norm(ray.origin + t * ray.direction, axis=1) < 1
            found = picking.pick(shown, u, v, 1.5)
            past_wall = ray.origin + t * ray.direction
            wall = (past_wall[:, 2] < -3).any() and np.abs(past_wall[np.argmax(past_wall[:, 2] < -3), :2]).max() < 8.9
            assert found == (Item("spheres", 0) if inside.any() else Item("quads", 0) if wall else found)


def test_file_dialogs_refuse_in_a_sentence(tmp_path):
    taken = []
    (tmp_path / "a.toml").write_text("")
    (tmp_path / "b.png").write_text("")
    (tmp_path / "sub").mkdir()
    dialog = FileDialog("Open", tmp_path, (".toml",), taken.append)
    assert [entry.name for entry in dialog.entries()] == ["sub", "a.toml"]
    for name, why in (("", "empty"), ("x.toml", "there is no"), ("b.png", "not of the kinds"), ("a\0b", "")):
        dialog.name = name
        dialog.accept()
        assert dialog.is_open and dialog.message and why in dialog.message
    dialog.name = "a.toml"
    dialog.accept()
    assert taken == [tmp_path / "a.toml"] and not dialog.is_open
    saving = FileDialog("Save", tmp_path / "a.toml", (".toml",), taken.append, saves=True)
    saving.name = "a"
    saving.accept()
    assert saving.is_open and "exists" in saving.message
    saving.accept()
    assert not saving.is_open and taken[-1] == tmp_path / "a.toml"


def test_recent_files_survive_and_a_damaged_list_is_an_empty_one(tmp_path):
    recent = RecentFiles(tmp_path / "recent.json")
    for number in range(MAX_RECENT + 3):
        recent.add(tmp_path / f"{number}.toml")
    assert RecentFiles(tmp_path / "recent.json").files == recent.files and len(recent.files) == MAX_RECENT
    (tmp_path / "recent.json").write_text('[1, {"a": 2}, "ok.toml", ""]')
    assert [path.name for path in RecentFiles(tmp_path / "recent.json").files] == ["ok.toml"]
    (tmp_path / "recent.json").write_text("{")
    assert RecentFiles(tmp_path / "recent.json").files == []


@pytest.mark.slow
def test_the_tour_has_five_steps_and_comes_once(hand, tmp_path):
    app = hand.app
    app.overlays.tour_marker = tmp_path / "state" / "tour.done"
    press(hand, "Ctrl+F1")
    frames(hand, 3)
    assert app.overlays.tour_step == 0 and len(overlays.TOUR_STEPS) == 5
    for step in range(5):
        app.overlays.tour_step = step
        frames(hand, 2)
    overlays.dismiss_tour(app)
    assert app.overlays.tour_step is None and app.overlays.tour_marker.exists()


def test_pages_of_the_reference_have_headings_and_terms():
    lines = page_lines("cdollar_functions.md")
    headings = [line.term for line in lines if line.is_heading]
    assert headings == ["Functions of C$", "Built in", "The prelude"]
    assert any(line.term == "clamp" and "low" in line.text for line in lines if not line.is_heading)


@pytest.mark.slow
def test_the_reference_explains_every_setting_and_every_page(hand):
    lines = setting_lines(type(hand.app.panel.scene.settings))
    terms = {line.term for line in lines}
    assert {"max_depth", "roughness", "corners", "repeat", "turbidity"} <= terms and len(lines) > 150
    press(hand, "Shift+F1")
    frames(hand, 3)
    assert hand.app.overlays.reference
    assert any(line.term == "clamp" and "low" in line.text for line in page_lines("cdollar_functions.md"))
    press(hand, "Escape")
    assert not hand.app.overlays.reference


def test_exports_say_what_is_wrong_with_them(hand, tmp_path, monkeypatch):
    panel, started = hand.app.panel, []
    child = SimpleNamespace(poll=lambda: None, last_line=str, terminate=bool, close=lambda *seconds: None)
    monkeypatch.setattr(
        picture_export, "CommandChild", lambda folder, arguments, doing: started.append(arguments) or child
    )
    film, still = picture_export.options_for(panel, True), picture_export.options_for(panel, False)
    assert film.samples == still.samples == 2 and film.frames == 96 and not still.frames
    for options, name, words in ((film, "film.txt", "is no film"), (still, "still.jpg", "is no picture")):
        with pytest.raises(UserError, match=words):
            picture_export.PictureExport.start(panel, tmp_path / name, options, "auto")
    other = tmp_path / "photo.png"
    Image.new("RGB", (4, 4)).save(other)  # PIL's, which has no recipe
    with pytest.raises(UserError, match="did not write"):
        picture_export.PictureExport.start(panel, other, still, "auto")
    drafts.texts[Path("wave.frag")] = "typed"
    try:
        with pytest.raises(UserError, match="not saved"):
            toy = SimpleNamespace(original=SimpleNamespace(path=Path("wave.frag")), scene=SimpleNamespace(files=set()))
            picture_export.PictureExport.start(toy, tmp_path / "toy.png", still, "auto")
    finally:
        drafts.texts.clear()
    panel.scrub(1.25)
    hand.app.start_export(panel, replace(still, samples=0, width=64), tmp_path / "still.png")
    [words] = started
    assert words[words.index("--time") + 1] == "1.25" and words[words.index("--size") + 1].startswith("64x")
    assert "--samples" not in words and "--force" not in words


def test_an_export_follows_the_lines_of_its_child(tmp_path):
    lines = [
        "",
        "rayfold: scene, 64 x 36: 1 of 8 in 1 s, about 7 s left",
        "rayfold: scene, 64 x 36, frame 2: 4.0 of 8 in 4 s",
    ]
    child = SimpleNamespace(poll=lambda: None, last_line=lambda: lines.pop(0), close=lambda: None)
    export = picture_export.PictureExport(tmp_path / "a.png", picture_export.StillOptions(), child)
    export.poll()
    assert export.status == "starting"
    export.poll()
    assert export.status == "12%" and export.fraction == 0.125  # no rate yet
    export.poll()
    assert export.fraction == 0.5 and export.status.startswith("50%, 0:") and export.is_running
    child.poll, child.output = lambda: 130, lambda: '{"output": "/b/a.unfinished-1.png", "samples": 4}'
    export.is_canceled = True
    export.poll()
    assert export.message == "canceled: a.unfinished-1.png has the 4 samples so far"


@pytest.mark.slow
def test_an_exported_picture_has_the_bits_of_the_command_line(hand, tmp_path):
    app, out = hand.app, tmp_path / "window.png"
    press(hand, "Ctrl+Alt+E")
    assert app.overlays.picture
    options = replace(picture_export.options_for(app.panel, False), width=64, height=36)
    app.start_export(app.panel, options, out)
    while app.export.is_running:
        app.follow_export()
        sleep(0.05)
    assert app.export.message.startswith("wrote window.png: 2 samples") and app.message == app.export.message
    press(hand, "Escape")
    scene = tmp_path / "hand.toml"
    assert main(["export", str(scene), "-o", str(tmp_path / "command.png"), "--size", "64x36", "--time", "0"]) == 0
    assert read_digest(out) == read_digest(tmp_path / "command.png") and read_digest(out)
    assert np.array_equal(read_pixels(out), read_pixels(tmp_path / "command.png"))


def test_the_title_is_typed_undone_and_saved(hand, tmp_path):
    app = hand.app
    left, top, width, height = app.panels.area
    click(hand, left + width + 60, top + 22)
    press(hand, "Ctrl+A")
    imgui.get_io().add_input_characters_utf8("a  new title ")
    frames(hand, 3)
    press(hand, "Enter")
    wait_for_undo_step(hand)
    assert app.panel.scene.title == "a new title" and not app.panels.maximized, "Enter does not maximize the panel"
    app.undo()
    assert app.panel.scene.title == "by hand"
    app.redo()
    frames(hand)
    press(hand, "Ctrl+S")
    assert 'title = "a new title" # kept' in (tmp_path / "hand.toml").read_text()
