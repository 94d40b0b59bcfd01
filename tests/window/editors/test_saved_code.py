"""Scenes saved with their code and values: what is seen is written, and opens again with the same picture."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest

from renderer.errors import UserError
from renderer.paths import ASSETS, SCENES
from renderer.pictures import load, toy
from renderer.system import drafts
from renderer.window.state import open_files, panel_actions, save_files, unsaved
from tests.window.headless import finish, frames, press, seconds, window
from tests.window.helpers import FRACTAL

WAVE = """uniform float zoom = 3.0; // 1 to 9
void mainImage(out vec4 color, in vec2 point) {
    color = vec4(fract(zoom * point / 100.0), 0.5, 1.0);
}
"""


@pytest.fixture
def opened(gl, tmp_path, monkeypatch):
    """Opens a window with a file; no trial in a child process."""
    monkeypatch.setattr(toy, "_try_program", lambda settings: None)
    monkeypatch.chdir(tmp_path)
    managers = []

    def open_window(path):
        managers.append(window([load(path)], None, gl, (700, 320)))
        screen = managers[-1].__enter__()
        screen.app.panel.paused = True
        finish(screen)
        return screen

    yield open_window
    for manager in managers:
        manager.__exit__(None, None, None)
    drafts.texts.clear()


def typed(screen, text: str):
    """The code panel after a text was typed and compiled in it."""
    code = screen.ui.main_window.overlays.code
    screen.app.overlays.code.is_on = True
    frames(screen, 3)
    code.editor.set_text(text)
    seconds(screen, 0.4)
    finish(screen)
    return code


def slide(screen, **values):
    panel_actions.edit_settings(screen.app, replace(screen.app.panel.settings(), **values))
    finish(screen)


def test_an_edited_shader_of_the_program_and_its_slider_are_saved_and_opened_again(opened, tmp_path):
    original = (SCENES / "coral.glsl").read_bytes()
    screen = opened(SCENES / "coral.glsl")
    app, panel = screen.app, screen.app.panel
    code = typed(screen, WAVE)
    slide(screen, zoom=5.901)
    assert panel.has_unsaved_work and app.code_changed is not None
    seen = panel.display.texture.read()
    app.panels.active = 0
    press(screen, "Ctrl+S")
    assert app.dialog is not None and app.dialog.name == "coral.glsl"
    app.dialog.name = "lost.toml"
    app.dialog.accept()
    frames(screen, 3)
    finish(screen)
    assert app.dialog is None and not panel.has_unsaved_work and app.code_changed is None
    assert tomllib.loads((tmp_path / "lost.toml").read_text())["settings"] == {"image": "lost.glsl"}
    assert (tmp_path / "lost.glsl").read_text() == WAVE.replace("3.0", "5.901")  # the text shows the slider's value
    assert (SCENES / "coral.glsl").read_bytes() == original
    assert code.path == tmp_path / "lost.glsl" and not code.is_changed and not drafts.texts
    assert np.array_equal(panel.display.texture.read(), seen)
    open_files.open_path(app, SCENES / "globe.glsl")
    open_files.open_path(app, tmp_path / "lost.toml")
    panel.paused, panel.scene_time = True, 0.0
    finish(screen)
    assert not panel.error and panel.scene.settings.zoom == 5.901
    assert np.array_equal(panel.display.texture.read(), seen)


def test_a_slider_alone_saves_a_copy_of_the_shader_of_the_program(opened, tmp_path):
    screen = opened(SCENES / "globe.glsl")
    (tmp_path / "mine.glsl").write_text("not to be replaced")
    save_files.save_to(screen.app, screen.app.panel, tmp_path / "mine.toml")
    frames(screen, 5)
    assert (tmp_path / "mine-001.glsl").is_file() and (tmp_path / "mine.glsl").read_text() == "not to be replaced"
    again = load(tmp_path / "mine.toml")
    assert again.settings == screen.app.panel.scene.settings and not screen.app.panel.has_unsaved_work


def test_edited_code_of_the_users_own_is_saved_with_its_scene(opened, tmp_path):
    (tmp_path / "own.glsl").write_text(WAVE)
    screen = opened(tmp_path / "own.glsl")
    app, panel = screen.app, screen.app.panel
    code = typed(screen, WAVE.replace("0.5", "0.25"))
    slide(screen, zoom=2.5)
    save_files.save_to(app, panel, tmp_path / "scene.toml")
    finish(screen)
    assert "0.25" in (tmp_path / "own.glsl").read_text() and not code.is_changed and not panel.has_unsaved_work
    settings = load(tmp_path / "scene.toml").settings
    assert settings.zoom == 2.5 and settings.image == str(tmp_path / "own.glsl")


def test_code_with_an_error_is_not_saved_with_its_scene(opened, tmp_path):
    screen = opened(SCENES / "coral.glsl")
    code = typed(screen, WAVE.replace("fract", "frakt"))
    with pytest.raises(UserError, match=r"lost.toml is not saved: the code has an error: .*coral.glsl:3"):
        save_files.save_to(screen.app, screen.app.panel, tmp_path / "lost.toml")
    assert not list(tmp_path.iterdir()) and code.is_changed


def test_a_copy_of_the_code_keeps_the_sliders_and_asks_nothing(opened, tmp_path):
    screen = opened(SCENES / "coral.glsl")
    code = typed(screen, WAVE)
    slide(screen, zoom=7.0)
    panel_actions.adjust_exposure(screen.app, 0.5)
    code.save(tmp_path / "mine.glsl")
    finish(screen)
    app = screen.app
    assert app.overlays.question is None and app.panel.original.path == tmp_path / "mine.glsl"
    assert (
        app.panel.scene.settings.zoom == 7.0
        and app.panel.scene.tone.ev == 0.5
        and app.panel.scene.settings.image == str(tmp_path / "mine.glsl")
    )


def test_the_code_panel_shows_what_the_scenes_save_and_others_write(opened, tmp_path):
    path = tmp_path / "first.toml"
    path.write_text(FRACTAL.format(title="first"))
    screen = opened(path)
    code = typed(screen, path.read_text().replace("samples = 3", "samples = 2"))
    slide(screen, max_iterations=50)
    save_files.save_scene(screen.app)
    frames(screen, 2)
    assert "samples = 2" in path.read_text() and "max_iterations = 50" in path.read_text()
    assert code.editor.get_text() == path.read_text() and not code.is_changed
    path.write_text(FRACTAL.format(title="by another program"))
    seconds(screen, 0.3)
    assert code.editor.get_text() == path.read_text() and not code.is_changed


def test_a_folder_of_the_program_takes_no_scene(screen):
    finish(screen)
    with pytest.raises(UserError, match="belongs to the program"):
        save_files.save_to(screen.app, screen.app.panel, SCENES / "mine.toml")
    assert not (SCENES / "mine.toml").exists()


def drag_triangle(screen):
    """What a drag of a flame's triangle does: an xform changes; then the mouse rests."""
    panel = screen.app.panel
    first, *others = panel.scene.settings.xforms
    moved = replace(first, affine=(0.625, *first.affine[1:]))
    panel.show(replace(panel.scene, settings=replace(panel.scene.settings, xforms=(moved, *others))), moved=True)
    seconds(screen, 0.5)


def held(path):
    """What a flame's file has: its size, and a coefficient of its first xform."""
    scene = load(path, flame="0")
    return scene.size, scene.settings.xforms[0].affine[0]


@pytest.mark.parametrize("by_code", [True, False])
def test_a_dragged_triangle_and_a_typed_size_are_saved_from_either_side(opened, tmp_path, by_code):
    """The first meeting's loss of work: the code panel wrote the file without the triangle."""
    path = tmp_path / "three.flame"
    path.write_bytes((ASSETS / "untitled.flame").read_bytes().replace(b"<flame ", b"<!-- kept --><flame ", 1))
    screen = opened(path)
    app, code = screen.app, typed(screen, path.read_text())
    drag_triangle(screen)
    assert 'coefs="0.625 0' in code.editor.get_text() and "(not saved)" not in app.message
    assert app.panel.has_unsaved_work and not code.is_changed and app.code_changed is None
    text = code.editor.get_text().replace('size="1000 900"', "size='640 800'")
    assert typed(screen, text).editor.get_text() == text, "as it was typed: nothing in the picture is new"
    assert app.panel.scene.size == (640, 800) and app.panel.scene.settings.xforms[0].affine[0] == 0.625
    assert held(path) == ((640, 800), 0.625) and unsaved.has_work(app, app.panel)  # by the draft
    code.save() if by_code else save_files.save_scene(app)
    frames(screen, 3)
    assert app.overlays.question is None and app.message == "saved three.flame" and not drafts.texts
    assert held(path) == ((640, 800), 0.625) and "<!-- kept -->" in path.read_text()
    assert not unsaved.has_work(app, app.panel) and code.editor.get_text() == path.read_text()
    drag_triangle(screen)
    save_files.save_scene(app)  # the same value again: no question about another program
    assert app.overlays.question is None


def test_a_scene_moved_while_its_text_has_an_error_keeps_both_edits(opened, tmp_path):
    path = tmp_path / "first.toml"
    path.write_text(FRACTAL.format(title="first"))
    screen = opened(path)
    app, code = screen.app, typed(screen, path.read_text().replace("samples = 3", "samples = "))
    assert app.panel.update_error
    slide(screen, max_iterations=50)
    code.save()
    frames(screen, 3)
    assert app.panel.has_unsaved_work and "samples = ," in path.read_text(), (
        "the text as typed, the picture's edit waits"
    )
    text = typed(screen, path.read_text().replace("samples = ", "samples = 5")).editor.get_text()
    assert not app.panel.update_error and "samples = 5" in text and "max_iterations = 50" in text
    save_files.save_scene(app)
    settings = load(path).settings
    assert (settings.samples, settings.max_iterations) == (5, 50) and app.overlays.question is None
    typed(screen, text.replace("samples = 5", "samples = 7"))
    slide(screen, max_iterations=60)
    open_files.revert(app)
    finish(screen)
    settings = app.panel.scene.settings
    assert (settings.samples, settings.max_iterations) == (5, 50) and code.editor.get_text() == path.read_text()


def test_undo_over_the_picture_takes_the_typed_text_back_and_the_cursor_stays(opened, tmp_path):
    path = tmp_path / "first.toml"
    path.write_text(FRACTAL.format(title="first"))
    screen = opened(path)
    code = typed(screen, path.read_text() + "# mine\n")
    code.editor.set_cursor(type(code.editor).DocPos(1, 4))
    slide(screen, max_iterations=50)
    at = code.editor.get_main_cursor_position()
    assert "max_iterations = 50" in code.editor.get_text() and "# mine" in code.editor.get_text()
    assert (at.line, at.index) == (1, 4)
    for _ in range(2):
        screen.app.undo()
        seconds(screen, 0.5)
    assert code.editor.get_text() == path.read_text() and screen.app.code_changed is None
    code.editor.undo()
    seconds(screen, 0.5)
    assert "# mine" in code.editor.get_text()


def test_a_toys_scene_keeps_its_values_while_its_shader_is_typed(opened, tmp_path):
    """The scene's file and the shader's are two: both keep what is not saved."""
    (tmp_path / "wave.glsl").write_text(WAVE)
    path = tmp_path / "toy.toml"
    path.write_text('# of mine\ntitle = "toy"\npicture = "toy"\nsettings = { image = "wave.glsl", zoom = 2.0 }\n')
    screen = opened(path)
    app = screen.app
    slide(screen, zoom=7.0)
    code = typed(screen, WAVE.replace("0.5", "0.25"))
    assert code.path == tmp_path / "wave.glsl" and app.panel.scene.settings.zoom == 7.0
    assert app.panel.has_unsaved_work and "zoom = 2.0" in path.read_text()
    code.save()
    frames(screen, 3)
    assert app.panel.scene.settings.zoom == 7.0 and app.panel.has_unsaved_work
    save_files.save_scene(app)
    assert "zoom = 7.0" in path.read_text() and path.read_text().startswith("# of mine")
    assert "0.25" in (tmp_path / "wave.glsl").read_text() and not unsaved.has_work(app, app.panel)


@pytest.mark.parametrize("by_code", [True, False])
def test_a_slider_and_a_typed_default_of_a_shader_are_saved_from_either_side(opened, tmp_path, by_code):
    path = tmp_path / "wave.glsl"
    path.write_text(WAVE)
    screen = opened(path)
    app, code = screen.app, typed(screen, WAVE.replace("0.5", "0.25"))
    slide(screen, zoom=7.0)
    assert "zoom = 7.0" in code.editor.get_text()
    code.save() if by_code else save_files.save_scene(app)
    finish(screen)
    assert path.read_text() == WAVE.replace("0.5", "0.25").replace("3.0", "7.0") == code.editor.get_text()
    assert app.panel.scene.settings.zoom == 7.0 and not unsaved.has_work(app, app.panel)
    typed(screen, path.read_text().replace("7.0", "4.0"))
    assert app.panel.scene.settings.zoom == 4.0
