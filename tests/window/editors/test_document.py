"""The document model without a window: commands and their undo, the text's comments and order, random sequences."""

import difflib
import tomllib
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies

from assets.makers.gltf_builder import Maker, square
from renderer.errors import UserError
from renderer.paths import SCENES
from renderer.pictures import load, scene_of_table
from renderer.scene import toml_text
from renderer.scene.animation import insert_keyframe, write_animation
from renderer.window.document import commands, creation, items, scene_text
from renderer.window.document.document import Document
from renderer.window.document.items import Item
from renderer.window.state.history import UndoStack

CORNELL = (SCENES / "cornell.toml").read_text()
ANIMATED = """# a ball and a box
title = "two" # the title
picture = "raytrace"

[settings]
samples = 4 # few
view = { position = [0.0, 1.0, 5.0], target = [0.0, 0.5, 0.0] } # from the front

# what things are made of
[[settings.materials]]
name = "clay" # soft
color = [0.5, 0.3, 0.2]

[[settings.materials]]
name = "lamp"
kind = "emitter"
emission = [4.0, 4.0, 4.0]

# the first ball,
# on the left
[[settings.spheres]] # left
material = "clay"
center = [-1, 0.5, 0] # whole numbers stay

[[settings.spheres]] # right
material = "clay"
center = [
    1.0, # x
    0.5,
    0.0,
]

[[settings.spheres]] # light
material = "lamp"
center = [0.0, 3.0, 0.0]

[animation]
duration = 2.0
[[animation.keyframes]]
set = { "spheres[1].center" = [1.0, 0.5, 0.0], "view.fov_degrees" = 40.0 }

[[animation.keyframes]] # the end
time = 2.0
interpolation = "linear"
set = { "spheres[1].center" = [1.0, 2.5, 0.0], "view.fov_degrees" = 30.0 }

[bench]
"""


def document_of(text, path=SCENES / "cornell.toml"):
    scene = scene_of_table(tomllib.loads(text), path)
    return Document(scene, scene_text.SceneText(text, path))


def changes(before, after):
    """The lines that were removed and added, as of a diff."""
    lines = list(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=0))[2:]
    return [line for line in lines if not line.startswith("@@")]


def agrees(document):
    """True if the text says the scene, by tomllib and the reader of scene files."""
    text = document.text()
    found = scene_of_table(tomllib.loads(text.text), text.path)
    assert found.settings == document.scene.settings and found.tone == document.scene.tone
    both = [None if s.animation is None else write_animation(s.animation) for s in (found, document.scene)]
    assert both[0] == both[1]
    return True


@pytest.mark.parametrize("name", ["cornell", "veach", "still_life", "grove", "fern", "orrery", "julia", "menger"])
def test_texts_of_bundled_scenes_are_cut_into_blocks_without_loss(name):
    text = (SCENES / f"{name}.toml").read_text()
    lines, cut = text.split("\n"), toml_text.blocks(text)
    assert [(b.start, b.end) for b in cut] == list(
        zip([b.start for b in cut], [*[b.start for b in cut[1:]], len(lines)], strict=True)
    )
    for block in cut[1:]:  # the path of each block leads to a table of the parsed text
        found = tomllib.loads(text)
        for key in block.path:
            found = found[key]
        assert isinstance(found, dict)
    scene = load(SCENES / f"{name}.toml")
    assert Document(scene, scene_text.opened(scene)).text().text == text
    again = scene_text.written(scene)
    assert again.scene.settings == scene.settings and again.scene.tone == scene.tone


def test_headers_are_not_looked_for_in_strings_and_lists():
    text = 'a = """\n[x]\n\\"""[y]\n"""\nb = [\n  [1],\n# [c]\n  [2]\n]\nc = \'[[d]]\' # [e]\n[f] # [g]\nh = "#" # i\n'
    assert [block.path for block in toml_text.blocks(text)] == [(), ("f",)]
    assert tomllib.loads(toml_text.replace_value(text, ("f", "h"), "j")) == tomllib.loads(text) | {"f": {"h": "j"}}


def test_a_value_replaces_its_own_and_keeps_its_comment():
    before = document_of(ANIMATED)
    value = replace(items.item_value(before.scene.settings, Item("spheres", 0)), center=(-2.0, 0.5, 0.0), radius=0.5)
    after = commands.set_value(before, Item("spheres", 0), value)
    assert changes(ANIMATED, after.text().text) == [
        "-center = [-1, 0.5, 0] # whole numbers stay",
        "+center = [-2.0, 0.5, 0.0] # whole numbers stay",
        "+radius = 0.5",
    ]
    assert agrees(after)


@pytest.mark.parametrize(
    "path",
    [
        ("settings", "samples"), ("settings", "view", "position"), ("settings", "spheres", 0, "center"),
        ("settings", "spheres", 1), ("settings", "materials"), ("animation",), ("animation", "keyframes", 1, "set"),
        ("animation", "keyframes", 0, "set", "view.fov_degrees"), ("bench",), ("title",),
    ],
)  # fmt: skip
def test_a_removed_value_is_gone_and_nothing_else(path):
    """Python's reader of TOML sees the table without the value; lines of other values keep their comments."""
    after, wanted = toml_text.remove_value(ANIMATED, path), tomllib.loads(ANIMATED)
    table = wanted
    for key in path[:-1]:
        table = table[key]
    del table[path[-1]]
    assert tomllib.loads(after) == wanted
    lines = changes(ANIMATED, after)
    assert not [line for line in lines if line.startswith("+") and "=" not in line and line.strip("+")]
    assert ("# the title" in after) == (path != ("title",))


@pytest.mark.parametrize("path", [("settings", "seed"), ("settings", "view", "up"), ("tone", "ev")])
def test_a_value_that_is_not_there_cannot_be_removed(path):
    with pytest.raises(toml_text.TextError, match="cannot be removed from the text"):
        toml_text.remove_value(ANIMATED, path)


def test_a_mesh_and_a_model_stand_on_the_ground_at_one_size(tmp_path):
    """A mesh stands on the ground beside what is there; its longest side is twice the size of a new shape."""
    (tmp_path / "a.obj").write_text("v 10 0 0\nv 14 0 0\nv 10 2 0\nv 10 0 1\nf 1 2 3\nf 1 2 4\n")
    maker = Maker()
    maker.node(mesh=square(maker), translation=[7.0, 0.0, 0.0])
    (tmp_path / "b.glb").write_bytes(maker.glb())
    before = document_of(ANIMATED, tmp_path / "scene.toml")
    boxes = {"a.obj": ([10, 0, 0], [14, 2, 1])}
    for name, group in (("a.obj", "meshes"), ("b.glb", "models")):
        after = creation.add_file(before, tmp_path / name)
        value = items.item_value(after.scene.settings, after.selected)
        assert after.selected.group == group and value.file.endswith(name)
        assert value.scale > 0
        if name in boxes:
            low, high = np.array(boxes[name]) * value.scale + value.position
            for ball in before.scene.settings.spheres:
                apart = np.maximum(low - np.array(ball.center), np.array(ball.center) - high)
                assert apart.max() > ball.radius - 1e-3 and (np.abs(low + high) / 2 < 8).all()
            assert low[1] == pytest.approx(-0.5, abs=2e-3)  # the ground: the lowest point of the balls of radius 1
            assert value.material == "clay" and max(high - low) == pytest.approx(
                2 * creation._unit(before.scene.settings), rel=0.01
            )


def test_an_instance_names_its_shape():
    before = document_of(ANIMATED)
    after = creation.add_instance(before, Item("spheres", 0))
    shape = items.item_value(after.scene.settings, Item("spheres", 0))
    instance = items.item_value(after.scene.settings, after.selected)
    assert shape.name == "left" and instance.shape == "left" and agrees(after)
    again = creation.add_instance(after, Item("spheres", 0))
    assert len(again.scene.settings.instances) == 2 and again.scene.settings.spheres == after.scene.settings.spheres


def test_add_goes_behind_its_kind_with_its_label():
    after = commands.add(
        document_of(ANIMATED), "spheres", items.groups(document_of(ANIMATED).scene.settings)["spheres"]("lamp"), "moon"
    )
    assert changes(ANIMATED, after.text().text) == ["+[[settings.spheres]] # moon", '+material = "lamp"', "+"]
    assert after.selected == Item("spheres", 3) and after.label(after.selected) == "moon" and agrees(after)


def test_the_first_of_a_kind_goes_before_the_kinds_that_the_settings_have_later():
    after = creation.add_texture(document_of(ANIMATED), SCENES.parent / "assets" / "demo.png")
    text = after.text().text
    assert text.index("materials]]") < text.index("textures]]") < text.index("spheres]]") and agrees(after)
    assert '[[settings.textures]]\nname = "demo"\nfile = "../assets/demo.png"\n' in text


def test_delete_takes_the_introduction_of_the_item_and_its_tracks_and_nothing_else():
    after = commands.delete(document_of(ANIMATED), Item("spheres", 0))
    assert changes(ANIMATED, after.text().text) == [
        "-# the first ball,", "-# on the left", "-[[settings.spheres]] # left", '-material = "clay"',
        "-center = [-1, 0.5, 0] # whole numbers stay", "-",
        '-set = { "spheres[1].center" = [1.0, 0.5, 0.0], "view.fov_degrees" = 40.0 }',
        '+set = { "spheres[0].center" = [1.0, 0.5, 0.0], "view.fov_degrees" = 40.0 }',
        '-set = { "spheres[1].center" = [1.0, 2.5, 0.0], "view.fov_degrees" = 30.0 }',
        '+set = { "spheres[0].center" = [1.0, 2.5, 0.0], "view.fov_degrees" = 30.0 }',
    ]  # fmt: skip
    assert agrees(after)
    animated = commands.delete(document_of(ANIMATED), Item("spheres", 1))
    assert [track.path for track in animated.scene.animation.tracks] == ["view.fov_degrees"] and agrees(animated)


def test_delete_of_the_copy_or_its_original_takes_that_one():
    doubled = commands.duplicate(document_of(ANIMATED), Item("spheres", 0))
    assert doubled.base.comments("spheres") == ["left", "left 2", "right", "light"]
    assert [t.path for t in doubled.scene.animation.tracks] == ["spheres[2].center", "view.fov_degrees"]
    assert commands.delete(doubled, Item("spheres", 0)).base.comments("spheres") == ["left 2", "right", "light"]
    assert commands.delete(doubled, Item("spheres", 1)).text().text == ANIMATED


def test_a_material_in_use_is_not_deleted_and_its_new_name_reaches_its_uses():
    before = document_of(ANIMATED)
    with pytest.raises(ValueError, match="clay is used by left and 1 more; give them another one before"):
        commands.delete(before, Item("materials", 0))
    after = commands.rename(before, Item("materials", 0), "terracotta")
    assert changes(ANIMATED, after.text().text) == [
        '-name = "clay" # soft', '+name = "terracotta" # soft', '-material = "clay"', '+material = "terracotta"',
        '-material = "clay"', '+material = "terracotta"',
    ]  # fmt: skip
    assert agrees(after)
    for name, why in (("lamp", "taken"), ("", "empty"), ("a\nb", "printable"), ("x" * 300, "at most")):
        with pytest.raises(ValueError, match=why):
            commands.rename(before, Item("materials", 0), name)


def test_shapes_without_a_name_and_lights_are_renamed_by_the_comment_of_their_header():
    after = commands.rename(document_of(ANIMATED), Item("spheres", 1), "  the moon ")
    assert changes(ANIMATED, after.text().text) == ["-[[settings.spheres]] # right", "+[[settings.spheres]] # the moon"]
    assert after.label(Item("spheres", 1)) == "the moon" and after.scene == document_of(ANIMATED).scene


def test_named_shapes_keep_their_instances():
    text = ANIMATED.replace("[[settings.spheres]] # light\n", '[[settings.spheres]]\nname = "bulb"\n')
    text = text.replace(
        "[animation]",
        '[[settings.instances]]\nshape = "bulb"\n\n[[settings.scattered]]\nshapes = ["bulb"]\n\n[animation]',
    )
    before = document_of(text)
    after = commands.rename(before, Item("spheres", 2), "lantern")
    assert after.scene.settings.instances[0].shape == "lantern" and after.scene.settings.scattered[0].shapes == (
        "lantern",
    )
    assert agrees(after)
    with pytest.raises(ValueError, match="bulb is used by"):
        commands.delete(before, Item("spheres", 2))
    assert commands.duplicate(before, Item("spheres", 2)).scene.settings.spheres[3].name == "bulb 2"


def test_inline_lists_and_tables_are_edited_in_place():
    text = ANIMATED.split("[animation]")[0].split("# the first ball")[0] + ("# after\n[bench] # kept\nsize = [1, 2]\n")
    text = text.replace(
        "samples = 4 # few", 'samples = 4 # few\nspheres = [{ material = "clay" }, { material = "lamp", radius = 2 }]'
    )
    before = document_of(text)
    for after in (
        commands.duplicate(before, Item("spheres", 0)),
        commands.delete(before, Item("spheres", 0)),
        commands.set_value(before, Item("spheres", 1), replace(before.scene.settings.spheres[1], material="clay")),
    ):
        assert agrees(after) and "# kept" in after.text().text and "# few" in after.text().text
    with pytest.raises(ValueError, match="no place for a name"):
        commands.rename(before, Item("spheres", 0), "ball")


def test_key_frames_keep_the_rows_that_did_not_change():
    before = document_of(ANIMATED)
    scene = insert_keyframe(before.scene, 1.0, ["spheres[1].center"])
    after = replace(before, scene=scene)
    assert changes(ANIMATED, after.text().text) == [
        "+[[animation.keyframes]]", "+time = 1.0", '+set = { "spheres[1].center" = [1.0, 1.5, 0.0] }', "+",
    ]  # fmt: skip
    assert agrees(after)


def test_saving_elsewhere_rewrites_paths_and_only_these(tmp_path):
    before = Document(scene := load(SCENES / "still_life.toml"), scene_text.opened(scene))
    (tmp_path / "deep").mkdir()
    after = before.text_for(tmp_path / "deep" / "still.toml")
    old = (SCENES / "still_life.toml").read_text()
    moved, rest = (lines := changes(old, after.text))[:2], lines[2:]
    assert [line[:8] for line in moved] == ["-file = ", "+file = "] and all(line[0] == "-" for line in rest)
    tables = [f"-{line}" for line in old[old.index("[bench]") :].splitlines()]
    assert sorted(rest) == sorted([*tables, "-"]), "what only tests and measurements read"
    assert after.scene.settings == before.scene.settings


def test_a_copy_of_a_bundled_scene_has_nothing_of_its_tests(tmp_path):
    """The copy had its [test] with a comment on a test's file, and an empty [bench]."""
    file = next(
        each for each in sorted(SCENES.glob("*.toml")) if "[test]" in (text := each.read_text()) and "[bench]" in text
    )
    before = Document(scene := load(file), scene_text.opened(scene))
    after = before.text_for(tmp_path / "mine.toml")
    assert scene.test and not {"test", "bench"} & tomllib.loads(after.text).keys()
    assert "tests/" not in after.text and not after.text.endswith("\n\n") and after.scene.settings == scene.settings
    again = Document(mine := replace(after.scene, test={"compare": "twin"}), scene_text.written(mine))
    assert "[test]" in again.text_for(tmp_path / "other.toml").text, "tables of one's own stay"


def test_a_new_scene_has_every_addition_and_a_careful_text(tmp_path):
    document = Document(creation.new_scene(tmp_path))
    count = 0
    for addition in creation.additions(document.scene.settings):
        if addition.name == "studio":
            continue  # not together with a sky
        document, count = addition.run(document), count + 1
        assert agrees(document)
    assert count > 20
    document = commands.rename(document, Item("materials", 0), "white")
    text = document.text().text
    assert text.startswith('title = "untitled"\npicture = "raytrace"\nsize = [1280, 720]\n\n[settings]\n')
    assert "\n\n\n" not in text and max(map(len, text.split("\n"))) <= 120 and agrees(document)


def test_a_text_that_no_edit_foresees_is_refused_in_a_sentence():
    text = ANIMATED.replace("[settings]\n", "[settings]\nsky.strength = 1.0 # dotted\n")
    before = document_of(text)
    sky = replace(before.scene.settings.sky, strength=2.0, turbidity=4.0)
    after = replace(before, scene=replace(before.scene, settings=replace(before.scene.settings, sky=sky)))
    assert agrees(after) and "sky.strength = 2.0 # dotted" in after.text().text


def random_command(draw, document):
    """A command on the document and what it is called; commands that the scene does not allow raise ValueError."""
    present = list(items.all_items(document.scene.settings))
    pick = lambda: draw(strategies.sampled_from(present))  # noqa: E731
    what = draw(strategies.sampled_from(["add", "duplicate", "delete", "rename", "edit", "view", "key"]))
    if what == "add":
        choices = creation.additions(document.scene.settings)
        return draw(strategies.sampled_from(choices)).run
    if what == "view":
        view = replace(document.scene.settings.view, position=(draw(strategies.floats(1, 9)), 1.0, 5.0))
        scene = replace(document.scene, settings=replace(document.scene.settings, view=view))
        return lambda d: replace(d, scene=scene)
    if what == "key" or not present:
        time = draw(strategies.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]))
        path = draw(strategies.sampled_from(["view.fov_degrees", "samples", "view.position"]))
        return lambda d: replace(d, scene=insert_keyframe(d.scene, time, [path]))
    item = pick()
    if what == "rename":
        name = draw(strategies.sampled_from(["clay", "lamp", "floor", 'a "b" # c', "x]", "ball", ""]))
        return lambda d: commands.rename(d, item, name)
    if what == "edit":
        value = items.item_value(document.scene.settings, item)
        numbers = [f.name for f in fields(value) if type(getattr(value, f.name)) is float]
        number = draw(strategies.floats(0.25, 1.0))
        edited = replace(value, **{draw(strategies.sampled_from(numbers)): number}) if numbers else value
        return lambda d: commands.set_value(d, item, edited)
    return lambda d: getattr(commands, what)(d, item)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(strategies.data())
def test_random_commands_and_undo_to_the_start(data):
    """After any commands the text says the scene; undo restores the bytes of each step, to the start."""
    start = document_of(data.draw(strategies.sampled_from([ANIMATED, CORNELL])))
    stack, shown, texts = UndoStack(start), start, [start.text().text]
    for _ in range(data.draw(strategies.integers(1, 6))):
        try:
            after = random_command(data.draw, shown)(shown)
        except (ValueError, UserError):
            continue
        assert agrees(after)
        if after == shown:
            continue
        stack.push(after)
        shown = after
        texts.append(after.text().text)
    for text in reversed(texts[:-1]):
        shown = stack.undo(shown)
        assert shown.text().text == text
    assert stack.undo(shown) is None and texts[0] in (ANIMATED, CORNELL)
    for text in texts[1:]:
        assert stack.redo().text().text == text
