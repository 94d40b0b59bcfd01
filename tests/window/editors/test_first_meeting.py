"""What strangers stumbled over: late views, inherited comparisons, undo that closes a document, names of shaders."""

from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pytest

from renderer.formats.images import write_png
from renderer.gpu import compilation
from renderer.images.algorithm_view import VIEW_HELP
from renderer.pictures import load, load_for_window, toy
from renderer.raytracing import stage_trace
from renderer.raytracing.settings import Sphere
from renderer.system import drafts
from renderer.window.app import palette
from renderer.window.controls.toolkit import imgui
from renderer.window.document import Document, creation
from renderer.window.panels import inspection, measurements, panel_view
from renderer.window.panels.completion import SuspendableWork
from renderer.window.state import history, open_files, panel_actions, save_files, unsaved
from tests.window.headless import center, drag, finish, frames, press, seconds, until, window

MOUSE = """uniform float zoom = 3.0; // 1 to 9
void mainImage(out vec4 c, in vec2 p) { c = vec4(iMouse.xy / iResolution.xy, fract(zoom), 1); }
"""


@pytest.fixture
def shader(gl, tmp_path, monkeypatch):
    """A window with a shader of the user's own, beside nothing; no trial in a child process."""
    monkeypatch.setattr(toy, "_try_program", lambda settings: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.glsl").write_text(MOUSE)
    with window([load(tmp_path / "mine.glsl")], None, gl, (700, 320)) as screen:
        finish(screen)
        yield screen
    drafts.texts.clear()


def typed(screen, text: str):
    code = screen.ui.main_window.overlays.code
    screen.app.overlays.code.is_on = True
    frames(screen, 3)
    code.editor.set_text(text)
    seconds(screen, 0.4)
    return code


def test_a_view_that_was_left_does_not_come_when_its_compiler_is_done(screen, monkeypatch):
    finish(screen)
    panel, compiled = screen.app.panel, Future()
    show = inspection.channel_picture
    monkeypatch.setattr(
        inspection, "channel_picture", lambda *each: show(*each, *compilation.result(compiled, "a kernel"))
    )
    monkeypatch.setattr("tests.window.headless.settle", lambda app: None)
    panel.inspection.select("luminance")
    until(screen, lambda: panel.work.is_waiting)
    said = panel.inspection.caption(panel.work.text())
    assert panel.inspection.shown is None and said == f"luminance: {VIEW_HELP['luminance']}\ncompiling, 0 s: a kernel"
    panel.inspection.select("color")
    assert not panel.work.is_waiting
    compiled.set_result(())
    frames(screen, 4)
    assert panel.inspection.shown is None and panel.inspection.texture is None
    panel.inspection.select("red")
    until(screen, lambda: panel.inspection.shown is not None)
    assert "red" in panel.inspection.meaning


@pytest.mark.parametrize("keys", [pytest.param("Ctrl+N", marks=pytest.mark.slow), "Ctrl+Alt+N"])
def test_a_new_document_is_compared_with_nothing_and_shows_its_colors(screen, monkeypatch, keys):
    monkeypatch.setattr(toy, "_try_program", lambda settings: None)
    finish(screen)
    panel = screen.app.panel
    panel_actions.set_reference(screen.app)
    assert panel.comparison.label == f"kept picture, {panel.draw_loop.displayed_samples} samples"
    panel.comparison.switch("difference", panel.display.texture)
    panel.comparison.numbers = "MSE 1"
    panel.inspection.select("luminance")
    press(screen, keys)
    assert panel.scene.path.stem.startswith("untitled")
    assert (panel.comparison.mode, panel.comparison.numbers, panel.inspection.name) == ("off", "", "color")
    assert panel.comparison.caption("now", 0.0) == ""


def test_a_comparison_says_which_picture_is_where(screen):
    finish(screen)
    comparison = screen.app.panel.comparison
    panel_actions.set_reference(screen.app)
    said = []
    for mode in ("wipe", "flip", "difference"):
        comparison.mode = mode
        said += [comparison.caption("now", time) for time in (0.0, 0.7)]
    kept = comparison.label
    assert said[0] == f"wipe: left now, right {kept}" and said[2:4] == [f"flip: {kept}", "flip: now"]
    assert said[4] == f"difference: now, from {kept}, times 8"


def test_undo_names_what_it_undoes_and_asks_before_it_closes_a_document(screen, scene_files):
    finish(screen)
    app, panel = screen.app, screen.app.panel
    open_files.open_path(app, scene_files[1])
    panel.show(replace(panel.scene, settings=replace(panel.scene.settings, max_iterations=77)))
    app.record_change()
    unsaved.undo(app)
    assert app.message == "undo: max iterations" and app.overlays.question is None
    app.redo()
    assert app.message == "redo: max iterations" and panel.scene.settings.max_iterations == 77
    app.undo()
    typed(screen, scene_files[1].read_text() + "# a comment\n")
    unsaved.undo(app)
    assert app.message.endswith("text") and app.overlays.question is None
    frames(screen)
    code = screen.ui.main_window.overlays.code
    assert code.editor.get_text() == scene_files[1].read_text() and app.code_changed is None
    typed(screen, "picture = [")  # an error: no step of undo
    unsaved.undo(app)
    assert app.overlays.question.lost == [scene_files[1]] and panel.scene.path == scene_files[1]
    frames(screen)
    press(screen, "D")
    assert panel.scene.path == scene_files[0] and app.message == "undo: first.toml in place of second.toml"
    frames(screen, 2)
    assert app.code_changed is None and not drafts.texts


def test_undo_names_the_item_that_was_deleted_added_or_changed(tmp_path):
    scene = creation.new_scene(tmp_path)
    stages = [Document(scene)]
    spheres = tuple(Sphere(material="plain", center=(float(x), 0.0, 0.0)) for x in range(3))
    for some in (spheres, spheres[:1] + spheres[2:], (replace(spheres[0], radius=0.2), spheres[2]), ()):
        stages.append(Document(replace(scene, settings=replace(scene.settings, spheres=some))))
    states = [history.PanelsState((), (document,), (), 0, None) for document in stages[1:]]
    assert history.difference(states[1], states[0]) == "delete sphere 2 (plain)"
    assert history.difference(states[0], states[1], is_undo=False) == "delete sphere 2 (plain)"
    assert history.difference(states[0], states[1]) == "add sphere 2 (plain)"
    assert history.difference(states[2], states[1]) == "sphere 1 (plain)"
    assert history.difference(states[3], states[0]) == "spheres", "three at once"


def test_the_picture_before_an_edit_is_called_old_while_the_edit_compiles(screen, monkeypatch):
    finish(screen)
    panel, said = screen.app.panel, []
    monkeypatch.setattr("tests.window.headless.settle", lambda app: None)
    monkeypatch.setattr(SuspendableWork, "is_waiting", property(lambda self: True))
    monkeypatch.setattr(panel_view.theme, "caption", lambda *each: said.append(each[5]))
    frames(screen, 2)
    assert not said
    panel.show(replace(panel.scene, settings=replace(panel.scene.settings, max_iterations=77)))
    frames(screen, 2)
    assert set(said) == {"old picture: the newest edit compiles"}


def test_a_click_in_a_picture_that_reads_the_mouse_is_no_change(shader, tmp_path):
    panel = shader.app.panel
    drag(shader, center(shader, 0), 40, 20)
    assert panel.scene.settings.mouse != (0, 0, 0, 0) and not panel.is_changed and not panel.has_unsaved_work
    press(shader, "Ctrl+S")
    assert shader.app.dialog is None and (tmp_path / "mine.glsl").read_text() == MOUSE
    save_files.save_to(shader.app, panel, tmp_path / "scene.toml")
    drag(shader, center(shader, 0), -40, 20)
    assert panel.original.path == tmp_path / "scene.toml" and not panel.has_unsaved_work


@pytest.mark.parametrize("is_typed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_new_shader_is_saved_as_the_file_that_was_named(shader, tmp_path, is_typed):
    app, panel = shader.app, shader.app.panel
    open_files.new_shader(app)
    finish(shader)
    code = typed(shader, MOUSE) if is_typed else shader.ui.main_window.overlays.code
    drag(shader, center(shader, 0), 40, 20)
    code.is_focused = False
    save_files.save_scene(app)
    assert app.dialog.name == "my_shader.glsl" and ".toml" not in app.message
    app.dialog.name = "plasma.glsl"
    app.dialog.accept()
    finish(shader)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.glsl", "plasma.glsl"]
    assert panel.original.path == code.path == tmp_path / "plasma.glsl" and app.code_changed is None
    assert not panel.has_unsaved_work and ((tmp_path / "plasma.glsl").read_text() == MOUSE) == is_typed


def test_values_and_code_go_into_another_file_and_the_first_stays(shader, tmp_path):
    app, panel = shader.app, shader.app.panel
    code = typed(shader, MOUSE.replace("fract(zoom)", "fract(zoom / 2.0)"))
    panel_actions.edit_settings(app, replace(panel.settings(), zoom=7.0))
    save_files.save_to(app, panel, tmp_path / "other.glsl")
    finish(shader)
    assert (tmp_path / "mine.glsl").read_text() == MOUSE and code.path == tmp_path / "other.glsl"
    text = (tmp_path / "other.glsl").read_text()
    assert "zoom = 7.0" in text and "zoom / 2.0" in text and not panel.has_unsaved_work


def test_a_tone_goes_into_a_scene_file_and_buffers_are_still_added(shader, tmp_path):
    app, panel = shader.app, shader.app.panel
    panel_actions.adjust_exposure(app, 1.0)
    press(shader, "Ctrl+S")
    assert app.dialog.name == "mine.toml" and "a .toml file" in app.message
    app.dialog.accept()
    app.overlays.code.is_on = True
    labels: list[str] = []
    draw_button = imgui.button
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(imgui, "button", lambda label, *rest: labels.append(label) or draw_button(label, *rest))
        frames(shader, 3)
    code = shader.ui.main_window.overlays.code
    assert panel.original.path.name == "mine.toml" and code.path.name == "mine.glsl" and "Add buffer" in labels


@pytest.mark.slow
def test_a_new_scene_shows_no_file_of_the_program(screen):
    finish(screen)
    open_files.new_flame(screen.app)
    screen.app.overlays.code.is_on = True
    frames(screen, 3)
    code = screen.ui.main_window.overlays.code
    assert code.path is None and not screen.app.message.startswith("internal")


@pytest.mark.parametrize(("typed_words", "group"), [("samples", "Setting"), ("color", "View")])
def test_the_palette_begins_with_the_setting_that_was_typed_whole(screen, typed_words, group):
    frames(screen)
    offered = [*screen.ui.main_window._actions(), *palette.entries(screen.app)]
    first = palette.matches(offered, typed_words.split())[0]
    assert first.group == group and first.name.partition(":")[0] == typed_words
    [first, *_] = palette.matches(offered, ["max", "iterations"])
    assert first.group == "Setting"


def test_the_first_letters_reach_the_palette_without_a_frame_between(screen):
    finish(screen)
    io, key = imgui.get_io(), imgui.Key
    for name in (key.mod_ctrl, key.p):
        io.add_key_event(name, True)
    for name in (key.p, key.mod_ctrl):
        io.add_key_event(name, False)
    for letter, name in (("s", key.s), ("i", key.i)):
        io.add_key_event(name, True)
        io.add_input_character(ord(letter))
        io.add_key_event(name, False)
    frames(screen, 6)
    assert screen.ui.main_window.overlays._filter == "si" and not screen.app.overlays.inspector
    assert screen.app.panel.comparison.reference() is None  # by the key S


def test_rates_leave_out_pauses_and_compilers():
    measured = measurements.Measurements()
    for timestamp in (0.0, 0.1, 0.2, 0.3):
        measured.add_samples(1, 0.09, timestamp)
    measured.add_samples(1, 0.09, 60.0)
    measured.add_samples(1, 0.09, 60.1)
    assert measured.sample_rate.mean_rate() == pytest.approx(10.0)
    measured.add_samples(1, float("nan"), 60.2)  # a compiler worked
    assert measured.sample_rate.mean_rate() == 0.0
    for timestamp in (70.0, 73.0, 76.0):  # samples of 3 s in a row
        measured.add_samples(1, 3.0, timestamp)
    assert measured.sample_rate.mean_rate() == pytest.approx(1 / 3)


def test_the_palette_leads_to_the_time_by_part(gl, gpu, tmp_path):
    with window([creation.new_scene(tmp_path)], gpu, gl, (400, 300)) as screen:
        offered = [*screen.ui.main_window._actions(), *palette.entries(screen.app)]
        found = [palette.matches(offered, [word])[0] for word in ("slow", "profile", "time", "cost")]
        assert found[0] is found[1] is found[2] is found[3]
        screen.app.run(found[0])
        inspection = screen.app.panel.inspection
        assert inspection.name == "stencil" and inspection.opens_controls
        said = inspection.caption("")
        assert said.startswith("time by part: ")
        assert "time of each part" in said and "compiled once on this machine" in said, (
            "it answers before it is computed"
        )
        inspection.meaning = "materials 65%"
        inspection.look_closely("stencil")
        assert inspection.meaning == "materials 65%", "a shown profile stays"


def test_the_parts_of_a_sample_add_up_and_the_largest_has_advice():
    seconds = {"generate": 0.1, "trace": 0.3, "shade": 0.4, "connect": 0.15, "accumulate": 0.05}
    stages = [stage_trace.Stage(name, 0, None, each) for name, each in seconds.items()]
    stages.append(stage_trace.Stage("trace", 1, None, 1.0))
    said = stage_trace.StageTrace((8, 4), tuple(stages)).costs()
    saved = "; 50% less with max depth 1, than with 2"
    assert said.startswith(
        "a sample of 8 x 4 pixels, part by part, 2,000 ms: rays through the BVH 65%, materials 20%, shadow rays"
    )
    assert said.endswith(stage_trace.PARTS["trace"][1] + saved)
    deep = [stage_trace.Stage("trace", depth, None, 1.0) for depth in range(8)]
    deep.append(stage_trace.Stage("shade", 0, None, 12.0))
    for has_maps in (False, True):  # advice on maps where there are some
        said = stage_trace.StageTrace((8, 4), tuple(deep), has_maps).costs()
        assert said.endswith("; 20% less with max depth 4, 30% less with max depth 2, than with 8")
        assert ("maps" in said) == has_maps


def test_counts_of_samples_and_of_compilers_have_one_source(screen):
    panel = screen.app.panel
    finish(screen)
    assert not [row for row in panel.measured.rows if row.name == "samples"]
    assert panel_view._progress(panel).endswith("  done")
    work = panel.work
    work.waited, work.waits = 40.0, 2
    compiled = Future()
    work.start(lambda: compilation.result(compiled, "a kernel"))
    assert work.text() == "compiling, 40 s, program 3: a kernel" and round(work.seconds) == 40
    work.cancel()
    assert work.text() == "" and work.seconds == 40.0
    panel.restart()
    finish(screen)
    assert work.seconds == 0.0, "another picture's wait is its own"


def test_a_picture_that_plays_shows_its_time(gl, tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "_try_program", lambda settings: None)
    (tmp_path / "a.glsl").write_text("void mainImage(out vec4 c, in vec2 p) { c = vec4(fract(iTime)); }")
    with window([load(tmp_path / "a.glsl")], None, gl, (400, 300)) as screen:
        seconds(screen, 1.0)
        panel = screen.app.panel
        assert panel_view._progress(panel).endswith(f"  {panel.draw_loop.drawn_time:.2f} s")
        said = panel_view._speed(panel, screen.app.now(), True)
        assert not [fact for fact in said if "samples/s" in fact]
        panel.paused = True
        finish(screen)
        assert panel_view._progress(panel).endswith("  done")


def test_a_chosen_reference_is_compared_at_once_and_files_have_their_names(gl, tmp_path):
    for name in ("left", "right"):
        write_png(tmp_path / f"{name}.png", np.full((8, 8, 3), 60 if name == "left" else 140, "u1"))
    with window([load_for_window(tmp_path / "left.png")], None, gl, (500, 300)) as screen:
        finish(screen)
        comparison = screen.app.panel.comparison
        comparison.set_reference_file(tmp_path / "right.png")
        said = []
        draw = comparison.caption
        comparison.caption = lambda shown, now: said.append(draw(shown, now)) or said[-1]
        frames(screen)
        assert comparison.mode == "wipe" and said[-1] == "wipe: left left.png, right right.png"


def test_the_palette_finds_the_size_of_a_flame(gl, tmp_path):
    with window([creation.new_flame(tmp_path)], None, gl, (400, 300)) as screen:
        offered = [*screen.ui.main_window._actions(), *palette.entries(screen.app)]
        for word in ("size", "width"):
            assert [action for action in palette.matches(offered, [word]) if action.name.startswith("size: width and")]
        assert palette.matches(offered, ["size"])[0].name.startswith("size: width and")
