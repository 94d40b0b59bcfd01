"""Groups of a scene's items, and items dragged in their list: without a window, and by keys and mouse in one."""

from dataclasses import replace

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.pictures import load, make_recipe, scene_of_table
from renderer.scene.animation import insert_keyframe
from renderer.system.files import parse_toml
from renderer.window.document import Document, commands, scene_text
from renderer.window.document.items import Item
from renderer.window.document.scene_text import TextError
from renderer.window.state import edit_actions, save_files
from tests.window.editors.test_scene_editor import SCENE, hand, row_middles, text_of  # noqa: F401
from tests.window.headless import frames, hold, point, press, wait_for_undo_step

BALLS = "".join(f'[[settings.spheres]] # ball {k}\nmaterial = "clay"\nradius = {k}.5\n\n' for k in (2, 3, 4))


@pytest.fixture
def document(tmp_path):
    """Four balls with radii 1.0, 2.5, 3.5, 4.5, a wall and a light, as a file."""
    path = tmp_path / "balls.toml"
    path.write_text(SCENE.replace("[[settings.quads]]", BALLS + "[[settings.quads]]"))
    scene = load(path)
    return Document(scene, scene_text.opened(scene))


def ball(number):
    return Item("spheres", number)


def radii(document, name):
    """What a group holds, told by the radii in the text as another reader of TOML has them."""
    table = parse_toml(document.text().text)
    spheres = table["settings"]["spheres"]
    indices = [int(path[8:-1]) for path in table["groups"][name] if path.startswith("spheres")]
    return [spheres[index].get("radius", 1.0) for index in indices]


def test_a_group_follows_its_items_and_its_text_reads_back(document):
    lamp = Item("point_lights", 0)
    made = commands.group(document, {ball(1), ball(3), lamp}, "lamp")
    text = made.text().text
    assert '[groups]\nlamp = ["point_lights[0]", "spheres[1]", "spheres[3]"]\n' in text
    assert parse_toml(text)["settings"] == parse_toml(document.text().text)["settings"]
    assert scene_of_table(parse_toml(text), made.scene.path) == replace(made.scene, notes=made.text().scene.notes)
    assert made.members(ball(3)) == {ball(1), ball(3), lamp} and made.members(ball(0)) == {ball(0)}
    assert radii(commands.duplicate(made, ball(0)), "lamp") == [2.5, 4.5]
    assert radii(commands.delete(made, ball(2)), "lamp") == [2.5, 4.5]
    assert radii(commands.delete(made, ball(1)), "lamp") == [4.5]
    assert commands.for_each(made, made.members(lamp), commands.delete).scene.groups == {}
    assert commands.group(made, made.members(lamp)).text().text.split() == document.text().text.split()
    assert make_recipe(made.scene, made.scene.path.parent)["scene"]["groups"]["lamp"][0] == "point_lights[0]"


def test_the_copies_of_a_group_are_a_group(document):
    made = commands.group(document, {ball(0), ball(2)}, "pair")
    made = replace(made, scene=insert_keyframe(made.scene, 1.0, ["spheres[2].radius"])).up_to_date()
    copied = commands.duplicate_all(made, {ball(0), ball(1), ball(2)})
    assert radii(copied, "pair") == radii(copied, "pair 2") == [1.0, 3.5]
    assert not copied.members(ball(0)) & copied.members(ball(1))
    assert [track.path for track in copied.scene.animation.tracks] == ["spheres[4].radius"]
    assert list(commands.duplicate_all(made, {ball(0), ball(1)}).scene.groups) == ["pair"], "a part of it is none"


def test_an_item_is_in_one_group_and_names_are_checked(document):
    made = commands.group(document, {ball(0), ball(1)}, "a")
    made = commands.group(made, {ball(1), ball(2)}, " b ")
    assert radii(made, "a") == [1.0] and radii(made, "b") == [2.5, 3.5]
    renamed = commands.group(made, made.groups["b"], 'of "c".d')
    assert radii(renamed, 'of "c".d') == [2.5, 3.5] and list(renamed.scene.groups) == ["a", 'of "c".d']
    for name, message in (("a", "a is taken"), ("x" * 201, "at most 200"), ("a\n b", "printable")):
        with pytest.raises(ValueError, match=message):
            commands.group(made, made.groups["b"], name)


@pytest.mark.parametrize(
    "text",
    ["a = []", 'a = "spheres[0]"', "a = [1]", 'a = ["spheres[1]"]', 'a = ["spheres"]', 'a = ["spheres[00]"]',
     'a = ["lens_shift[0]"]', 'a = ["view[0]"]', 'a = ["spheres[0]"]\nb = ["spheres[0]"]', 'a = ["__class__[0]"]'],
)  # fmt: skip
def test_a_bad_group_is_one_sentence(tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_text(f"{SCENE}\n[groups]\n{text}\n")
    with pytest.raises(InputError, match=r'bad\.toml: groups: [ab] has .*; it must be a list of items, such as "sph'):
        load(path)
    path.write_text(f"groups = 1\n{SCENE}")
    with pytest.raises(InputError, match="groups is 1; it must be a table"):
        load(path)


@pytest.mark.slow
def test_a_group_acts_as_one_is_saved_and_undone(hand, tmp_path):  # noqa: F811
    panel, before = hand.app.panel, text_of(hand)
    members = {Item("spheres", 0), Item("point_lights", 0)}
    press(hand, "Ctrl+Shift+G")
    assert "nothing is selected" in hand.app.message
    panel.select(Item("materials", 0))
    for keys in ("Ctrl+Shift+G", "Ctrl+Alt+G"):
        press(hand, keys)
        assert "select shapes or lights for a group" in hand.app.message
    panel.several, panel.selection = frozenset(members), Item("spheres", 0)
    press(hand, "Ctrl+Shift+G")
    wait_for_undo_step(hand)
    panel.select(None)
    editor = hand.ui.main_window.panel_editor(panel)
    editor.select_at(0.5, 0.5, 1.5)
    assert panel.chosen == members
    editor.select_at(0.5, 0.5, 1.5)
    assert panel.chosen == {Item("spheres", 0)}, "a second click selects the item alone"
    panel.select(Item("quads", 0), toggles=True)
    panel.select(Item("point_lights", 0), toggles=True)
    assert panel.chosen == {*members, Item("quads", 0)}
    panel.select(Item("point_lights", 0), toggles=True)
    assert panel.chosen == {Item("quads", 0)}
    panel.select(Item("spheres", 0))
    press(hand, "Alt+H")
    assert panel.hidden == members
    press(hand, "Alt+H")
    light = panel.scene.settings.point_lights[0].position
    moved = replace(panel.scene.settings.spheres[0], center=(1.0, 0.0, 0.0))
    motion = np.eye(4)
    motion[0, 3] = 1.0
    editor._move_chosen(motion, {Item("spheres", 0): moved})
    assert panel.scene.settings.point_lights[0].position == (light[0] + 1.0, *light[1:])
    wait_for_undo_step(hand)
    editor.outliner.start_renaming()
    assert editor.outliner.renaming == "group 1"
    editor.outliner.renaming = ""
    editor.outliner.rename("group 1", "lamp")
    wait_for_undo_step(hand)
    press(hand, "Ctrl+Shift+D")
    wait_for_undo_step(hand)
    assert panel.chosen == {Item("spheres", 1), Item("point_lights", 1)} and [*panel.scene.groups] == ["lamp", "lamp 2"]
    press(hand, "Delete")
    wait_for_undo_step(hand)
    save_files.save_to(hand.app, panel, tmp_path / "kept.toml")
    assert load(tmp_path / "kept.toml").groups == panel.scene.groups == {"lamp": ("point_lights[0]", "spheres[0]")}
    assert not panel.is_changed
    for _ in range(5):
        press(hand, "Ctrl+Z")
    assert text_of(hand) == before and not panel.scene.groups


def test_a_text_that_holds_groups_in_a_value_is_edited_or_refused(document):
    base = document.text()
    text = f'groups = {{ a = ["spheres[0]", "spheres[1]"] }}\n{base.text}'
    made = Document(scene_of_table(parse_toml(text), base.path), scene_text.SceneText(text, base.path))
    assert radii(commands.delete(made, ball(2)), "a") == [1.0, 2.5]
    try:
        assert radii(commands.delete(made, ball(0)), "a") == [2.5]
    except TextError:
        assert made.text().text == text


@pytest.mark.parametrize(("start", "to"), [(0, 3), (3, 0), (1, 2), (2, 2)])
def test_a_moved_item_takes_its_lines_its_keys_and_its_group_along(document, start, to):
    made = commands.group(document, {ball(start), ball((start + 1) % 4)}, "pair")
    made = replace(made, scene=insert_keyframe(made.scene, 1.0, [f"spheres[{start}].radius"])).up_to_date()
    moved = commands.move(made, ball(start), to)
    order = [1.0, 2.5, 3.5, 4.5]
    order.insert(to, order.pop(start))
    text = moved.text().text
    assert [sphere.get("radius", 1.0) for sphere in parse_toml(text)["settings"]["spheres"]] == order
    assert [shape.radius for shape in moved.scene.settings.spheres] == order and moved.selection == ball(to)
    assert moved.label(ball(to)) == made.label(ball(start)) and text.count("#") == made.text().text.count("#")
    assert sorted(radii(moved, "pair")) == sorted(radii(made, "pair"))
    assert moved.scene.animation.tracks[0].path == f"spheres[{to}].radius"
    again = commands.move(moved, ball(to), start)
    assert again.scene == made.scene and again.text().text.split() == made.text().text.split()


def test_a_material_is_dropped_on_a_shape_and_on_no_light(document):
    clay = 'name = "clay" # soft\n'
    text = document.base.text.replace(clay, f'{clay}\n[[settings.materials]]\nname = "gold"\n')
    base = scene_text.SceneText(text, document.base.path)
    made = Document(base.scene, base)
    assert commands.drop(made, Item("materials", 1), ball(2)).scene.settings.spheres[2].material == "gold"
    assert commands.drop(made, ball(0), ball(3)).scene.settings.spheres[3].radius == 1.0
    for item, target in ((Item("materials", 1), Item("point_lights", 0)), (ball(0), Item("quads", 0))):
        with pytest.raises(ValueError, match="an item moves in its own list"):
            commands.drop(made, item, target)


@pytest.mark.slow
def test_a_row_is_dragged_onto_another(hand, monkeypatch):  # noqa: F811
    panel, rows = hand.app.panel, row_middles(monkeypatch)
    for _ in range(2):
        edit_actions.run_command(hand.app, lambda document: commands.duplicate(document, Item("spheres", 0)))
    big = replace(panel.scene.settings.spheres[0], radius=2.0)
    edit_actions.run_command(hand.app, lambda document: commands.set_value(document, ball(0), big))
    frames(hand, 3)
    before = text_of(hand)
    panel.hidden = frozenset([Item("spheres", 0)])
    assert [panel.document.label(ball(k)) for k in range(3)] == ["ball", "ball 3", "ball 2"]
    point(hand, *rows["ball"])
    hold(hand, 0, True)
    for _ in range(3):
        point(hand, *rows["ball 2"])
    hold(hand, 0, False)
    frames(hand, 3)
    assert [panel.document.label(ball(k)) for k in range(3)] == ["ball 3", "ball 2", "ball"]
    assert panel.document.selected == ball(2) and not panel.hidden, "numbers of items have changed"
    wait_for_undo_step(hand)
    press(hand, "Ctrl+Z")
    assert text_of(hand) == before
