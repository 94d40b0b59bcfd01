"""No work is lost unasked: closing, opening over, restoring and quitting ask to save, discard or cancel."""

import os
from dataclasses import replace

import pytest

from renderer.paths import SCENES
from renderer.pictures import load
from renderer.system import drafts
from renderer.window.state import open_files, save_files, session, unsaved
from renderer.window.state.session import KeptSession
from tests.window.headless import finish, frames, press, seconds, window


def change(panel, iterations: int = 77) -> None:
    panel.show(replace(panel.scene, settings=replace(panel.scene.settings, max_iterations=iterations)))


@pytest.mark.parametrize("keys", ["Ctrl+Q", "Ctrl+W", "N"])
def test_nothing_is_asked_without_changes(screen, keys):
    finish(screen)
    press(screen, keys)
    app = screen.app
    assert app.overlays.question is None
    assert app.loop.quit_requested or len(app.panels) == 1 or app.panel.scene.title == "second"


@pytest.mark.parametrize("choice", ["Enter", "D", "Escape"])
def test_quitting_asks_about_each_changed_document(screen, scene_files, choice):
    finish(screen)
    app = screen.app
    for panel in app.panels:
        change(panel)
    press(screen, "Ctrl+Q")
    frames(screen, 2)
    assert app.overlays.question.name(app.panels.title) == "first" and not app.loop.quit_requested
    press(screen, choice)
    if choice == "Escape":
        assert app.overlays.question is None and not app.loop.quit_requested
        return
    assert app.overlays.question.name(app.panels.title) == "second" and not app.loop.quit_requested
    press(screen, choice)
    frames(screen, 2)
    assert app.loop.quit_requested
    saved = [load(path).settings.max_iterations for path in scene_files]
    assert saved == ([77, 77] if choice == "Enter" else [40, 40])


def test_opening_over_and_closing_ask_and_cancel_keeps_the_work(screen, scene_files):
    finish(screen)
    app = screen.app
    change(app.panel)
    for act in (lambda: open_files.open_path(app, scene_files[1]), lambda: press(screen, "Ctrl+W")):
        act()
        frames(screen, 2)
        assert app.overlays.question is not None and app.panel.scene.title == "first"
        press(screen, "Escape")
        assert app.overlays.question is None and app.panel.scene.settings.max_iterations == 77
    open_files.open_path(app, scene_files[1])
    frames(screen, 2)
    press(screen, "D")
    assert app.panel.scene.title == "second"
    app.undo()
    assert app.panel.scene.settings.max_iterations == 77


def test_saving_an_untitled_scene_asks_for_its_name_first(screen, tmp_path):
    finish(screen)
    app = screen.app
    open_files.new_document(app)
    frames(screen, 2)
    app.panel.show(replace(app.panel.scene, title="mine"))
    press(screen, "Ctrl+W")
    frames(screen, 2)
    press(screen, "Enter")
    assert app.dialog is not None and app.dialog.saves and len(app.panels) == 2
    app.dialog.name = "mine.toml"
    app.dialog.accept()
    frames(screen, 3)
    assert (tmp_path / "mine.toml").is_file() and len(app.panels) == 1 and app.overlays.question is None


def test_a_look_at_a_file_of_the_program_is_no_work(gl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with window([load(SCENES / "mandelbrot.toml")], None, gl, (300, 200)) as screen:
        panel = screen.app.panel
        frames(screen, 2)
        press(screen, "+")
        press(screen, "E")
        assert panel.is_changed and not panel.has_unsaved_work
        press(screen, "D")
        assert panel.has_unsaved_work


def test_the_view_of_ones_own_scene_is_work(screen):
    finish(screen)
    press(screen, "+")
    assert screen.app.panel.has_unsaved_work


def test_revert_shows_the_saved_file_and_can_be_undone(screen):
    finish(screen)
    panel = screen.app.panel
    change(panel)
    press(screen, "Ctrl+Shift+Backspace")
    assert panel.scene.settings.max_iterations == 40 and not panel.is_changed
    screen.app.undo()
    assert panel.scene.settings.max_iterations == 77


def test_unsaved_code_is_asked_about(screen):
    finish(screen)
    app, code = screen.app, screen.ui.main_window.overlays.code
    press(screen, "Ctrl+J")
    frames(screen, 2)
    code.editor.set_text(code.editor.get_text() + "# a comment\n")
    frames(screen, 2)
    press(screen, "Ctrl+J")
    unsaved.quit(app)
    frames(screen, 2)
    assert app.overlays.question.name(app.panels.title) == "first.toml"
    press(screen, "Enter")
    frames(screen, 2)
    assert app.loop.quit_requested and "# a comment" in code.path.read_text()
    drafts.texts.clear()


def test_the_card_after_a_crash_stays_until_it_is_answered(screen, tmp_path):
    finish(screen)
    app = screen.app
    app.overlays.recovered = KeptSession(tmp_path / "gone.json", 0.0, ("julia",), True, False)
    app.now.seconds += 60  # longer than messages stay
    frames(screen, 2)
    press(screen, "Escape")
    assert app.overlays.recovered is not None


def test_a_duplicate_is_a_document_that_does_not_overwrite_its_source(screen, scene_files, tmp_path):
    finish(screen)
    app, text = screen.app, scene_files[0].read_text()
    press(screen, "Ctrl+D")
    assert not app.panel.has_unsaved_work
    change(app.panel)
    press(screen, "Ctrl+S")
    assert app.dialog is not None and app.dialog.name == "first (2).toml" and scene_files[0].read_text() == text
    press(screen, "Escape")
    press(screen, "Ctrl+Q")
    frames(screen, 2)
    assert app.overlays.question.name(app.panels.title) == "first (2)"
    press(screen, "Enter")
    app.dialog.accept()
    frames(screen, 3)
    saved = load(tmp_path / "first (2).toml")
    assert saved.settings.max_iterations == 77 and scene_files[0].read_text() == text and app.loop.quit_requested
    assert app.panels[0].scene.settings.max_iterations == 40


def test_a_duplicate_of_a_duplicate_has_another_name_and_undo_closes_it(screen):
    app = screen.app
    press(screen, "Ctrl+D")
    press(screen, "Ctrl+D")
    assert [panel.original.path.name for panel in app.panels[2:]] == ["first (2).toml", "first (3).toml"]
    assert app.panel.base is app.panels[0].base
    press(screen, "Ctrl+Z")
    press(screen, "Ctrl+Z")
    assert len(app.panels) == 2


def test_undo_to_an_older_text_than_the_saved_one_is_unsaved_work(screen, scene_files):
    finish(screen)
    app = screen.app
    change(app.panel, 50)
    frames(screen, 3)
    assert app.panel.has_unsaved_work
    scene_files[0].write_text(scene_files[0].read_text().replace("= 40", "= 60"))
    app.file_watcher.accept(scene_files[0])
    open_files.revert(app)
    assert app.panel.scene.settings.max_iterations == 60 and not app.panel.has_unsaved_work
    press(screen, "Ctrl+Z")
    assert app.panel.scene.settings.max_iterations == 50 and app.panel.has_unsaved_work
    press(screen, "Ctrl+Z")
    assert app.panel.scene.settings.max_iterations == 40 and app.panel.has_unsaved_work
    press(screen, "Ctrl+Q")
    assert app.overlays.question is not None and not app.loop.quit_requested
    press(screen, "Escape")
    press(screen, "Ctrl+S")
    assert load(scene_files[0]).settings.max_iterations == 40 and not app.panel.has_unsaved_work


def edit_outside(screen, path, iterations: int = 60) -> None:
    """Another program writes the file; the window sees it as it looks for edited files."""
    path.write_text(path.read_text().replace("= 40", f"= {iterations}"))
    os.utime(path, ns=(iterations, iterations))
    seconds(screen, 1.0)
    frames(screen, 3)


def iterations_of(path) -> int:
    return load(path).settings.max_iterations


@pytest.mark.parametrize("choice", ["Enter", "D", "Escape"])
def test_a_change_outside_keeps_unsaved_edits_and_saving_asks(screen, scene_files, choice):
    """The edits were gone; and a save wrote over what another program had written, without a question."""
    finish(screen)
    app = screen.app
    change(app.panel)
    frames(screen, 3)
    edit_outside(screen, scene_files[0])
    assert app.panel.scene.settings.max_iterations == 77
    assert app.message == "first.toml changed on the disk: your edits are kept; Ctrl+S asks"
    press(screen, "Ctrl+S")
    frames(screen, 2)
    text = app.overlays.question.text(app.panels.title)
    assert text == "first.toml was changed outside of this panel since it was read."
    assert iterations_of(scene_files[0]) == 60
    press(screen, choice)
    frames(screen, 2)
    shown, written = {"Enter": (77, 77), "D": (60, 60), "Escape": (77, 60)}[choice]
    assert (app.panel.scene.settings.max_iterations, iterations_of(scene_files[0])) == (shown, written)
    assert app.overlays.question is None and app.panel.has_unsaved_work == (choice == "Escape")
    if choice == "D":
        press(screen, "Ctrl+Z")
        assert app.panel.scene.settings.max_iterations == 77  # what was given up comes back
    elif choice == "Enter":
        change(app.panel, 78)
        press(screen, "Ctrl+S")
        assert app.overlays.question is None and iterations_of(scene_files[0]) == 78


def test_quitting_goes_on_after_the_question_about_the_file(screen, scene_files):
    finish(screen)
    app = screen.app
    change(app.panel)
    edit_outside(screen, scene_files[0])
    for choice, ends in (("Escape", False), ("Enter", True)):
        press(screen, "Ctrl+Q")
        frames(screen, 2)
        press(screen, "Enter")
        frames(screen, 2)
        assert app.overlays.question.write and not app.loop.quit_requested
        press(screen, choice)
        frames(screen, 2)
        assert app.overlays.question is None and app.loop.quit_requested == ends
    assert iterations_of(scene_files[0]) == 77


def test_a_restored_session_asks_before_it_overwrites_a_later_change(screen, scene_files, tmp_path):
    """Saving after --restore wrote over it; and the star stayed, as the session held no size."""
    finish(screen)
    app = screen.app
    path = tmp_path / "session.json"
    scene_files[0].write_text("size = [64, 48]\n" + scene_files[0].read_text())
    open_files.show_file(app, app.panel)
    for choice, is_changed in (("", False), ("Enter", True)):
        change(app.panel, 80 + is_changed)
        session.save(app.session(), path)
        if is_changed:
            edit_outside(screen, scene_files[0])
            os.utime(scene_files[0], ns=(5, 5))
        app.replace_panels(session.restore(path))
        assert app.panel.has_unsaved_work
        press(screen, "Ctrl+S")
        frames(screen, 2)
        assert (app.overlays.question is not None) == is_changed
        if choice:
            press(screen, choice)
        assert not app.panel.has_unsaved_work and iterations_of(scene_files[0]) == 80 + is_changed
        assert load(scene_files[0]).size == (64, 48)


def test_a_program_that_changes_keeps_what_its_scene_does_not_have_yet(screen, tmp_path):
    """The edits of a scene file were gone when another program wrote the shader that it names."""
    shader, path = tmp_path / "a.frag", tmp_path / "a.toml"
    shader.write_text("void mainImage(out vec4 c, in vec2 p) { c = vec4(0.5); }\n")
    path.write_text('picture = "toy"\n[settings]\nimage = "a.frag"\n')
    app = screen.app
    open_files.open_path(app, path)
    app.panel.show(replace(app.panel.scene, title="edited"))
    shader.write_text(shader.read_text().replace("0.5", "0.25"))
    open_files.reload(app, {shader})
    assert app.panel.scene.title == "edited" and app.panel.has_unsaved_work and not app.panel.update_error


def test_new_and_recent_follow_one_rule(screen, scene_files):
    """Both show their scene in the active panel, ask about unsaved work there, and are one step of undo."""
    finish(screen)
    app = screen.app
    for opens in (lambda: press(screen, "Ctrl+N"), lambda: open_files.open_path(app, scene_files[1])):
        before, other = app.panel.scene, app.panels[1].scene
        opens()
        frames(screen, 2)
        assert len(app.panels) == 2 and app.panel.scene != before and app.panels[1].scene == other
        app.undo()
        frames(screen, 2)
        assert app.panel.scene == before and app.overlays.question is None
        change(app.panel)
        opens()
        frames(screen, 2)
        assert app.overlays.question is not None and app.panel.scene.title == before.title
        press(screen, "Escape")
        frames(screen, 2)
        app.undo()
        frames(screen, 2)
        assert not app.panel.has_unsaved_work


def test_saving_under_a_name_is_no_step_of_undo(screen, tmp_path):
    """Undo takes back the last change of the scene, which keeps its file and its title."""
    finish(screen)
    app = screen.app
    change(app.panel, 50)
    app.record_change()
    change(app.panel, 60)
    app.record_change()
    save_files.save_to(app, app.panel, tmp_path / "mine.toml")
    steps = app._undo_stack.steps
    frames(screen, 2)
    app.undo()
    assert app.panel.scene.settings.max_iterations == 50
    assert app.panel.file.path == app.panel.scene.path == tmp_path / "mine.toml" and app._undo_stack.steps == steps - 1
    app.undo()
    assert app.panel.scene.settings.max_iterations == 40 and app.panel.file.path == tmp_path / "mine.toml"
    app.redo()
    app.redo()
    assert app.panel.scene.settings.max_iterations == 60
    press(screen, "Ctrl+Q")
    frames(screen, 2)
    assert app.overlays.question is None and app.loop.quit_requested, "what is on disk is asked for"


def test_a_new_scene_keeps_the_name_under_which_it_was_saved(screen, tmp_path):
    finish(screen)
    app = screen.app
    open_files.new_document(app)
    finish(screen)
    title = app.panel.scene.title
    app.panel.show(replace(app.panel.scene, settings=replace(app.panel.scene.settings, max_depth=3)))
    app.record_change()
    save_files.save_to(app, app.panel, tmp_path / "my_table.toml")
    assert title == "untitled" and app.panel.scene.title == "my table"
    app.undo()
    assert app.panel.scene.title == "my table" and app.panel.scene.settings.max_depth != 3
