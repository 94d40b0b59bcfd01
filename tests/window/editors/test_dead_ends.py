"""Dead ends that a new user met, each closed: views of the last scene, new flames, names of files, an empty palette."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import UserError
from renderer.paths import ASSETS, ROOT, SCENES
from renderer.pictures import load
from renderer.raytracing.settings import Material, Sphere
from renderer.raytracing.settings import Settings as RayTracerSettings
from renderer.window.app import export_dialog, palette, reference
from renderer.window.controls import settings as controls
from renderer.window.controls.settings import _row_groups
from renderer.window.controls.toolkit import imgui
from renderer.window.document import commands, creation, items, picking, pose, scene_text
from renderer.window.document.document import Document
from renderer.window.document.items import Item
from renderer.window.scene_editor import gizmo
from renderer.window.state import edit_actions, open_files, picture_export, save_files
from tests.window.headless import drag, finish, frames, point, press, seconds, window
from tests.window.monkey import noop_device


def test_the_previous_view_of_a_scene_without_the_last_scenes_view(screen):
    finish(screen)
    app = screen.app
    app.panel.inspection.show(replace(app.panel.scene.inspect, view="albedo"))
    press(screen, "Ctrl+Shift+L")
    assert app.panel.inspection.name in app.panel.inspection.names(app.panel.picture)
    assert "view" in app.message


def test_a_scene_that_is_opened_shows_no_view_of_the_last(screen, scene_files):
    finish(screen)
    panel = screen.app.panel
    panel.inspection.select("luminance")
    finish(screen)
    assert panel.inspection.texture is not None
    open_files.open_path(screen.app, scene_files[1])
    assert panel.inspection.texture is None and panel.inspection.name == "color"
    panel.inspection.show(replace(panel.scene.inspect, view="albedo"))
    open_files.open_path(screen.app, scene_files[0])
    assert panel.inspection.name == "color"


def test_a_new_flame(screen):
    finish(screen)
    press(screen, "Ctrl+Shift+N")
    scene = screen.app.panel.scene
    assert scene.picture == "flame" and len(scene.settings.xforms) == 3 and scene.title == "untitled flame"


def test_save_as_names_one_suffix(screen, tmp_path):
    finish(screen)
    panel = screen.app.panel
    panel.file.path = None
    panel.file.original = replace(panel.original, path=tmp_path / "my.flame")
    save_files.save_scene_as(screen.app)
    assert screen.app.dialog.name == "my.toml"


@pytest.mark.parametrize("words", ["shader", "ray", "flame", "glsl", "ripples", "samples", "luminance", "sums"])
def test_the_palette_finds(screen, words):
    frames(screen)
    found = palette.entries(screen.app)
    assert any(words in f"{action.name} {action.group}".lower() for action in found)


def test_the_palette_opens_a_scene_and_says_when_nothing_is_found(screen):
    finish(screen)
    press(screen, "Ctrl+P")
    frames(screen, 2)
    imgui.get_io().add_input_characters_utf8("zzzz")
    frames(screen, 2)
    press(screen, "Enter")
    assert screen.app.panel.scene.title == "first"
    press(screen, "Escape")
    press(screen, "Ctrl+P")
    frames(screen, 2)
    imgui.get_io().add_input_characters_utf8("mandelbrot scene fractal")
    frames(screen, 2)
    press(screen, "Enter")
    assert screen.app.panel.original.path == SCENES / "mandelbrot.toml"


def test_the_palette_opens_every_page_of_the_reference(screen, monkeypatch):
    frames(screen)
    offered = {action.name: action for action in palette.entries(screen.app) if action.group == palette.PAGE}
    shown: list[str] = []
    monkeypatch.setattr(reference, "page_lines", lambda file: shown.append(file) or [])
    files = {path.name for path in (ASSETS / "reference").glob("*.md")}
    assert {reference.PAGES[name.removeprefix("reference: ")] for name in offered} == files
    for name, action in offered.items():
        screen.app.run(action)
        frames(screen, 3)
        assert screen.app.overlays.reference and shown[-1] == reference.PAGES[name.removeprefix("reference: ")]


def test_rows_of_a_material_begin_with_what_is_edited_most():
    groups = _row_groups(Material)
    assert [f.name for f, _ in groups[""]][:5] == ["name", "kind", "color", "roughness", "metallic"]
    assert all(f.name.endswith(("_texture", "_scale")) for f, _ in groups["maps"])
    drawn = [f.name for f, _ in _row_groups(RayTracerSettings)["how it is drawn"]]
    assert {"bvh", "schedule", "stencil", "sampler"} <= set(drawn)


@pytest.mark.parametrize("settings_class", [Material, RayTracerSettings, type(load(SCENES / "globe.glsl").settings)])
def test_groups_hold_each_row_once(settings_class):
    names = [f.name for rows in _row_groups(settings_class).values() for f, _ in rows]
    assert sorted(names) == sorted(f.name for f in fields(settings_class))


def test_the_sections_of_the_sidebar_hold_each_row_once_in_order():
    offered, groups = controls.sections(RayTracerSettings), _row_groups(RayTracerSettings)
    assert list(offered) == ["World", "Camera", "Render"] and sorted(sum(offered.values(), ())) == sorted(groups)
    assert {f.name for f, _ in groups["world"]} >= {"environment", "sky", "horizon"}
    assert controls.sections(Material) == {"Settings": ()}


def test_presets_are_materials_that_keep_a_name_of_ones_own():
    presets = creation.material_presets()
    assert presets.keys() >= {"glass", "gold", "brushed metal", "plastic", "wax", "rubber", "car paint", "clay"}
    scene = load(SCENES / "mirrors.toml")
    document = Document(scene, scene_text.opened(scene), Item("materials", 0))
    for preset in presets.values():
        made = creation.with_preset(document, Item("materials", 0), preset)
        value = made.scene.settings.materials[0]
        assert value.name == scene.settings.materials[0].name and replace(value, name=preset.name) == preset
        assert scene_text.SceneText(made.text().text, scene.path).scene.settings.materials[0] == value


def test_a_preset_and_a_texture_leave_the_other_users_of_a_material_alone():
    scene, picture = load(SCENES / "mirrors.toml"), ROOT / "assets" / "demo.png"
    before, presets = scene.settings, creation.material_presets()
    assert len(items.users(before, "materials", "silver")) == 2
    document = Document(scene, scene_text.opened(scene), Item("spheres", 0))
    silver = items.material_of(before, document.selection)
    made = creation.with_preset(document, silver, presets["wax"])
    after = made.scene.settings
    assert after.materials[:-1] == before.materials and made.selection == Item("spheres", 0)
    assert (after.spheres[0].material, after.spheres[1:]) == ("wax", before.spheres[1:])
    again = creation.with_preset(made, items.material_of(after, made.selection), presets["glass"]).scene.settings
    assert again.materials[-1] == presets["glass"], "no glass is called wax"
    assert again.spheres == (replace(after.spheres[0], material="glass"), *after.spheres[1:])

    textured = creation.add_texture(document, picture).scene.settings
    copy = textured.materials[-1]
    assert textured.materials[:-1] == before.materials and textured.spheres[0].material == copy.name != "silver"
    assert replace(copy, name="silver", color_texture="") == before.materials[silver.index]
    assert creation.add_texture(made, picture).scene.settings.materials[-1].color_texture == copy.color_texture
    unselected = creation.add_texture(replace(document, selection=None), picture)
    assert unselected.scene.settings.materials == before.materials and unselected.selection.group == "textures"


def test_what_is_new_has_no_pattern_and_no_light_lies_in_another(tmp_path):
    scene, presets = creation.new_scene(tmp_path), creation.material_presets()
    add = {addition.name: addition.run for addition in creation.additions(scene.settings)}
    document = add["box"](Document(scene, scene_text.opened(scene)))
    document = creation.add_texture(document, ROOT / "assets" / "demo.png")
    document = replace(document, selection=items.Item("solids", 0))
    patterned = items.item_value(
        document.scene.settings, items.material_of(document.scene.settings, document.selection)
    )
    document = add["sphere"](document)
    sphere = items.material_of(document.scene.settings, document.selection)
    assert patterned.color_texture and not items.item_value(document.scene.settings, sphere).color_texture
    gold = creation.with_preset(document, sphere, presets["gold"]).scene.settings
    assert gold.spheres[-1].material == "gold" and gold.materials[-1] == presets["gold"]
    for name in ("area light", "point light", "point light", "area light"):
        document = add[name](document)
    settings = document.scene.settings
    places = [np.mean(quad.corners, 0) for quad in settings.quads[-2:]] + [p.position for p in settings.point_lights]
    apart = [np.abs(np.subtract(a, b)).max() for k, a in enumerate(places) for b in places[:k]]
    assert len(places) == 4 and min(apart) > 0.1


def test_a_preset_is_one_click_and_one_undo_and_the_world_is_in_the_list(gl, tmp_path, monkeypatch):
    pressed, button, selectable = [""], imgui.button, imgui.selectable
    monkeypatch.setattr(imgui, "button", lambda name, *a: button(name, *a) or name == pressed[0])
    monkeypatch.setattr(imgui, "selectable", lambda name, *a: (selectable(name, *a)[0] or name == pressed[0], False))
    gpu = SimpleNamespace(device=noop_device())
    with window([creation.new_scene(tmp_path)], gpu, gl, (900, 900)) as screen:
        app = screen.app
        frames(screen, 3)
        edit_actions.run_command(app, next(a for a in creation.additions(app.panel.settings()) if a.name == "box").run)
        frames(screen, 3)
        before = app.panel.scene.settings.materials
        pressed[0] = "gold###preset gold"
        frames(screen, 1)
        pressed[0] = ""
        frames(screen, 3)
        assert app.panel.scene.settings.materials[0].kind == "conductor", app.message
        assert app.panel.selection == Item("solids", 0), "the shape stays selected"
        app.undo()
        assert app.panel.scene.settings.materials == before
        pressed[0] = "sky###table sky"
        frames(screen, 1)
        pressed[0] = ""
        frames(screen, 2)
        editor = screen.ui.main_window.panel_editor(app.panel)
        assert editor.outliner.table == "sky" and editor.selected is None and not app.message.startswith("drawing")


def test_a_new_material_is_given_to_the_selected_shape():
    scene = load(SCENES / "mirrors.toml")
    document = Document(scene, scene_text.opened(scene), Item("spheres", 0))
    addition = next(a for a in creation.additions(scene.settings) if a.section == "Material" and a.name == "glass")
    made = addition.run(document)
    material = made.scene.settings.materials[-1]
    assert material.kind == "glass" and made.scene.settings.spheres[0].material == material.name
    assert made.selection == Item("materials", len(scene.settings.materials))
    assert made.scene.settings.spheres[1:] == scene.settings.spheres[1:]
    unselected = addition.run(Document(scene, scene_text.opened(scene), None))
    assert unselected.scene.settings.spheres == scene.settings.spheres
    lamp = next(material.name for material in scene.settings.materials if any(material.emission))
    kept = next(Item(group, index) for group in ("quads", "spheres") for index, shape in
                enumerate(getattr(scene.settings, group)) if shape.material == lamp)  # fmt: skip
    lit = addition.run(Document(scene, scene_text.opened(scene), kept)).scene.settings
    assert getattr(lit, kept.group) == getattr(scene.settings, kept.group)  # a lamp keeps its light


@pytest.fixture
def places(monkeypatch):
    """The rectangle of the last control of each setting, and of each button: name -> (left, top, right, bottom)."""
    places = {}

    def noting(draw, name):
        def drawn(*arguments):
            out = draw(*arguments)
            low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
            places[name(*arguments)] = (low.x, low.y, high.x, high.y)
            return out

        return drawn

    monkeypatch.setattr(controls, "_control", noting(controls._control, lambda f, *_: f.name))
    monkeypatch.setattr(imgui, "button", noting(imgui.button, lambda label, *_: label))
    return places


def middle(place, fraction=0.5):
    return place[0] + fraction * (place[2] - place[0]), (place[1] + place[3]) / 2


def typed(screen, text):
    imgui.get_io().add_input_characters_utf8(text)
    frames(screen)


@pytest.mark.parametrize("word", ["code", "edit", "shader", "ray", "flame"])
def test_the_palette_shows_the_code_panel_first(screen, word):
    frames(screen)
    offered = [*screen.ui.main_window._actions(), *palette.entries(screen.app)]
    assert "Ctrl+J" in [action.keys for action in palette.matches(offered, [word])[:5]]


def test_the_palette_offers_names_before_groups(screen):
    """ "panel" is the group of pause, which Enter would run first."""
    frames(screen)
    offered = [*screen.ui.main_window._actions(), *palette.entries(screen.app)]
    assert all("panel" in f"{action.name} {action.words}" for action in palette.matches(offered, ["panel"])[:4])


def test_the_toolbar_opens_the_code_panel_and_the_palette(screen, places):
    frames(screen)
    drag(screen, middle(places["Code"]), 0, 0)
    assert screen.app.overlays.code
    drag(screen, middle(places["Find"]), 0, 0)
    assert screen.app.overlays.palette


def test_the_pointer_on_a_label_moves_no_control(screen, places):
    finish(screen)
    before = places["color_density"]
    point(screen, before[0] - 60, middle(before)[1])
    seconds(screen, 0.6)  # until the tooltip is shown
    assert places["color_density"] == before


def test_a_double_click_types_into_a_slider_whose_value_stays(screen, places):
    finish(screen)
    value = screen.app.panel.scene.settings.color_density
    place = middle(places["color_density"], 0.9)
    io = imgui.get_io()
    point(screen, *place)
    for down in (True, False, True, False):
        io.add_mouse_button_event(0, down)
        frames(screen, 1)
    frames(screen)
    assert screen.app.panel.scene.settings.color_density == pytest.approx(value, rel=1e-6)
    typed(screen, "3")
    press(screen, "Enter")
    assert screen.app.panel.scene.settings.color_density == 3.0


def test_one_click_still_moves_a_slider(screen, places):
    finish(screen)
    drag(screen, middle(places["color_offset"], 0.75), 0, 0)
    assert screen.app.panel.scene.settings.color_offset == pytest.approx(0.75, abs=0.04)


def test_a_reload_names_a_file_once(screen, tmp_path):
    finish(screen)
    open_files.reload(screen.app, {tmp_path / "a" / "my.glsl", tmp_path / "b" / "my.glsl"}, shaders=False)
    assert screen.app.message == "reloaded: my.glsl"


def test_a_new_scene_has_a_grid_and_tab_goes_from_number_to_number(gl, gpu, tmp_path, places):
    scene = creation.new_scene(tmp_path)
    scene = replace(scene, settings=replace(scene.settings, samples=1))
    with window([scene], gpu, gl, (800, 620)) as screen:
        finish(screen)
        app, panel, editor = screen.app, screen.app.panel, screen.ui.main_window.panel_editor(screen.app.panel)
        assert editor.shows_grid and np.ptp(screen.pixels()[250:500, 60:360]) > 20, "the picture alone is nearly flat"
        press(screen, "Alt+X")
        assert np.ptp(screen.pixels()[250:500, 60:360], (0, 1)).max() <= 4
        sphere = next(a for a in creation.additions(panel.scene.settings) if a.name == "sphere")
        edit_actions.run_command(app, sphere.run)
        frames(screen, 3)
        left, top, right, bottom = places["center"]
        drag(screen, (left + 12, (top + bottom) / 2), 0, 0)
        for text, key in (("2", "Tab"), ("3", "Tab"), ("4", "Enter")):
            io = imgui.get_io()
            io.add_key_event(imgui.Key.mod_ctrl, True)
            press(screen, "A")
            io.add_key_event(imgui.Key.mod_ctrl, False)
            typed(screen, text)
            press(screen, key)
        assert panel.scene.settings.spheres[0].center == (2.0, 3.0, 4.0)
        assert len(app.panels) == 1 and app.panels.active == 0


def test_lines_of_the_grid_lie_on_the_ground():
    settings, rect = creation.new_scene(SCENES).settings, (0, 0, 1000, 700)
    lines = gizmo.grid_lines(settings.view, settings.lens_shift, settings.projection, rect)
    x_axis = next(line for line in lines if line[0] == gizmo.AXIS_COLORS[0])
    ends = gizmo.project(settings, np.array([[0.0, 0.0, 0.0], [gizmo.GRID_CELLS, 0.0, 0.0]]), rect)
    start, direction = ends[0], (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    offset = np.array(x_axis[2]) - start
    np.testing.assert_allclose(x_axis[1], start, atol=1e-6)
    assert abs(direction[0] * offset[1] - direction[1] * offset[0]) < 1e-3, "the axis is a straight line of the picture"
    assert all(np.isfinite(line[1] + line[2]).all() for line in lines)


@pytest.mark.parametrize("size", [1.0, 1e5])
def test_an_orthographic_grid_is_drawn_in_scenes_of_any_size(size):
    view = creation.new_scene(SCENES).settings.view
    far = replace(view, position=(0.0, size, size), target=(0.0, 0.0, 0.0))
    lines = gizmo.grid_lines(far, (0.0, 0.0), "orthographic", (0, 0, 1000, 700))
    assert len(lines) == 2 * (2 * gizmo.GRID_CELLS + 1) + 3


@pytest.mark.parametrize("factor", [0.4, 0.9, 1.1, 3.0])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_sphere_is_scaled_by_each_axis_of_the_gizmo(axis, factor):
    """As the gizmo does, each frame of a drag gives the sizes of the press, scaled along the dragged axis."""
    sphere = Sphere("plain", (0.0, 0.5, 0.0), 0.5)
    shown, at_press = sphere, pose.item_pose(sphere, np.zeros(3))
    for step in (0.5, 1.0, 1.0):
        scaled = at_press.copy()
        scaled[:3, axis] *= 1 + (factor - 1) * step
        shown = pose.with_pose(shown, scaled)
    assert shown.radius == pytest.approx(0.5 * factor, rel=1e-5) and shown.center == sphere.center


@pytest.mark.parametrize("floor", [None, -1.5])
def test_a_mesh_is_added_on_its_feet(tmp_path, floor):
    path = tmp_path / "tower.obj"
    path.write_text("v 0 -3 0\nv 2 -3 0\nv 0 9 1\nv 1 2 5\nf 1 2 3\nf 1 2 4\n")
    scene = creation.new_scene(tmp_path)
    document = Document(scene)
    if floor is not None:
        ground = next(a for a in creation.additions(scene.settings) if a.name == "ground")
        document = ground.run(document)
        quad = document.scene.settings.quads[0]
        quad = replace(quad, corners=tuple((x, floor, z) for x, _, z in quad.corners))
        document = document.with_settings(quads=(quad,))
    made = creation.add_file(document, path)
    low, high, _ = picking.bounds(made.scene.settings, Item("meshes", 0))
    assert low[1] == pytest.approx(floor or 0.0, abs=1e-4)
    middle = (low + high) / 2
    np.testing.assert_allclose(middle[[0, 2]], np.array(scene.settings.view.target)[[0, 2]], atol=1e-2)
    assert (high - low).max() == pytest.approx(0.5 * scene.settings.view.target_plane_height(), rel=0.35)


def added(document, name):
    return next(a for a in creation.additions(document.scene.settings) if a.name == name).run(document)


def box_of(document):
    corners = picking.box_corners(*picking.bounds(document.scene.settings, document.selected))
    return corners.min(0), corners.max(0)


def test_shapes_land_on_the_ground_beside_what_is_there_and_are_selected(tmp_path):
    document, boxes = Document(creation.new_scene(tmp_path)), []
    for name in ("sphere", "box", "cylinder", "cone", "torus", "quad", "distance field: menger", "sphere", "ground"):
        document = added(document, name)
        low, high = box_of(document)
        assert document.selected == list(items.all_items(document.scene.settings))[-1] or name != "cylinder"
        assert low[1] == pytest.approx(0.0, abs=6e-3)  # a distance field is held by a sphere
        assert all((low >= b - 1e-4).any() or (high <= a + 1e-4).any() for a, b in boxes) or name == "ground"
        boxes.append((low, high))
    assert len(document.scene.settings.solids) == 4


def test_shapes_land_on_a_table_and_on_the_ground_of_a_large_sphere(tmp_path):
    document = added(Document(creation.new_scene(tmp_path)), "box")
    table = replace(document.scene.settings.solids[0], scale_xyz=(3.0, 0.3, 2.0), position=(0.0, 0.15, 0.0))
    document = commands.set_value(document, document.selected, table)
    assert box_of(added(document, "torus"))[0][1] == pytest.approx(0.3, abs=1e-4)
    document = added(Document(creation.new_scene(tmp_path)), "sphere")
    earth = replace(document.scene.settings.spheres[0], center=(0.0, -1000.0, 0.0), radius=1000.0)
    document = commands.set_value(document, document.selected, earth)
    low, high = box_of(added(document, "cone"))
    assert low[1] == pytest.approx(0.0, abs=1e-4) and np.abs(low + high)[[0, 2]].max() < 0.1
    room = replace(earth, center=(0.0, 5.0, 0.0), radius=12.0)  # the camera stands in it
    document = commands.set_value(document, Item("spheres", 0), room)
    assert np.abs(np.add(*box_of(added(document, "cone"))))[[0, 2]].max() < 0.1


def test_the_palette_adds_what_the_menu_adds(screen):
    finish(screen)
    assert not any(entry.group == palette.ADD for entry in palette.entries(screen.app)), "a fractal has no items"
    open_files.new_document(screen.app)
    entry = palette.matches(palette.entries(screen.app), ["torus"])[0]
    assert (entry.name, entry.group) == ("shape: torus", palette.ADD)
    entry.run(screen.app)
    assert screen.app.panel.document.selected == Item("solids", 0)


def test_a_file_without_triangles_is_refused(tmp_path):
    path = tmp_path / "point.obj"
    path.write_text("v 1 1 1\nv 1 1 1\nv 1 1 1\nf 1 2 3\n")
    with pytest.raises(ValueError, match="point.obj"):
        creation.add_file(Document(creation.new_scene(tmp_path)), path)


def test_the_range_of_a_setting_groups_thousands():
    samples = next(f for f in fields(RayTracerSettings) if f.metadata.get("high") == 1 << 20)
    assert "1 to 1,048,576" in controls.field_help(samples, int)


def test_a_film_without_an_encoder_is_numbered_pictures(screen, tmp_path, monkeypatch):
    """Of the child process, the command alone; `rayfold export` of frames is tested by tests/export."""
    commands_run = []
    monkeypatch.setattr(picture_export, "CommandChild", lambda folder, words, doing: commands_run.append(words))
    options = picture_export.FilmOptions(64, 48, fps=2, seconds=1.0)
    export = picture_export.PictureExport.start(screen.app.panel, tmp_path / "turn.png", options, "auto")
    words = commands_run[0]
    assert export.output.name == "turn_####.png" and words[words.index("-o") + 1] == str(export.output)
    assert words[words.index("--frames") + 1] == "1-2"
    with pytest.raises(UserError, match="allowed are .mp4, .webm, .mkv, .gif, .png"):
        picture_export.PictureExport.start(screen.app.panel, tmp_path / "turn.bmp", options, "auto")
    monkeypatch.setattr(export_dialog, "find_spec", lambda name: None)
    screen.app.overlays.film.is_on = True
    pressed, button = ["Export..."], imgui.button
    monkeypatch.setattr(imgui, "button", lambda name, *a: button(name, *a) or name == pressed[0])
    frames(screen, 1)
    assert screen.app.dialog.name.endswith(".png") and screen.app.dialog.suffixes[0] == ".png"
