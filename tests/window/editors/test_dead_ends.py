"""Dead ends that a new user met, each closed: views of the last scene, new flames, names of files, an empty palette."""

from dataclasses import fields, replace

import pytest

from renderer.paths import SCENES
from renderer.pictures import load
from renderer.raytracing.settings import Material
from renderer.raytracing.settings import Settings as RayTracerSettings
from renderer.window.app import palette
from renderer.window.controls.settings import _row_groups
from renderer.window.controls.toolkit import imgui
from renderer.window.document import creation, scene_text
from renderer.window.document.document import Document
from renderer.window.document.items import Item
from renderer.window.state import open_files, save_files
from tests.window.headless import finish, frames, press


def test_the_previous_view_of_a_scene_without_the_last_scenes_view(screen):
    finish(screen)
    app = screen.app
    app.panel.inspection.show(replace(app.panel.scene.inspect, view="albedo"))
    press(screen, "Ctrl+Shift+L")
    assert app.panel.inspection.name in app.panel.inspection.names(app.panel)
    assert "view" in app.message


def test_a_scene_that_is_opened_shows_no_view_of_the_last(screen, scene_files):
    finish(screen)
    panel = screen.app.panel
    panel.inspection.select("luminance")
    finish(screen)
    assert panel.inspection.texture is not None
    open_files.open_path(screen.app, scene_files[1])
    assert panel.inspection.texture is None and panel.inspection.name == "luminance"
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
