"""The program beside its picture: saved to pixels, an error on its line, by real keys in a headless window."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from renderer.gpu import kernel_source
from renderer.paths import SHADERS
from renderer.pictures import load
from renderer.window.app import code_view
from renderer.window.app.code_view import error_line, text_file, text_files
from renderer.window.controls.toolkit import imgui
from renderer.window.state import main_loop, open_files
from tests.window.headless import center, finish, frames, hold, point, press, seconds, window

GOOD = "float3 main(int x, int y) {\n    return float3(1, 0, 0);\n}\n"


def save_by_key(screen):
    io = imgui.get_io()
    for down in (True, False):
        for key in (imgui.Key.mod_ctrl, imgui.Key.s):
            io.add_key_event(key, down)
        frames(screen)


def test_a_saved_program_becomes_pixels_and_an_error_is_marked_on_its_line(gl, gpu, tmp_path):
    path = tmp_path / "flat.cb"
    path.write_text(GOOD)
    with window([load(path)], gpu, gl, (900, 500)) as screen:
        finish(screen)
        app, panel, code = screen.app, screen.app.panel, screen.ui.main_window.overlays.code
        press(screen, "Ctrl+J")
        frames(screen, 3)
        assert app.overlays.code and code.path == path and code.editor.get_text() == GOOD and not code.is_changed
        x, y, width, height = app.panels.area
        point(screen, x + width * 1.5, y + height * 0.6)  # in the panel beside the picture
        hold(screen, 0, True)
        hold(screen, 0, False)
        assert not app.input.keyboard_navigation
        code.editor.set_text(GOOD.replace("1, 0, 0", "0, z, 0"))
        frames(screen)
        assert code.is_changed
        save_by_key(screen)
        assert path.read_text() == GOOD.replace("1, 0, 0", "0, z, 0") and not code.is_changed
        finish(screen)
        assert "z" in panel.update_error and error_line(panel.update_error, "flat.cb") == 2
        assert code.editor.has_markers()
        assert np.abs(panel.display.frame.read()[0, 0, :3] - (1, 0, 0)).max() < 1e-6
        code.editor.set_text(GOOD.replace("1, 0, 0", "0, 0, 1"))
        frames(screen)
        save_by_key(screen)
        finish(screen)
        assert not panel.update_error and not code.editor.has_markers()
        assert np.abs(panel.display.frame.read()[0, 0, :3] - (0, 0, 1)).max() < 1e-6


def test_keys_typed_into_the_program_are_no_actions(screen, scene_files):
    finish(screen)
    app, code = screen.app, screen.ui.main_window.overlays.code
    press(screen, "Ctrl+J")
    frames(screen, 3)
    assert code.path == scene_files[0]
    point(screen, *center(screen, 1))
    hold(screen, 0, True)
    hold(screen, 0, False)
    before = app.overlays.sidebar.is_on
    code.editor.set_focus()
    frames(screen, 2)
    imgui.get_io().add_input_characters_utf8("h")
    press(screen, "H")
    assert app.overlays.sidebar.is_on == before and code.is_changed
    press(screen, "Ctrl+J")


def test_a_pasted_text_of_megabytes_is_refused(screen):
    code = screen.app.panel and screen.ui.main_window.overlays.code
    press(screen, "Ctrl+J")
    frames(screen, 3)
    before = code.editor.get_text()
    for text, is_pasted in (("x = 1\n" * 200_000, False), ("y", True)):
        code.editor.set_focus()
        frames(screen, 2)
        imgui.set_clipboard_text(text)
        press(screen, "Ctrl+V")
        assert (code.editor.get_text() != before) == is_pasted
        assert screen.app.message.startswith("paste: 1200000 characters; a text of at most 1048576")
    press(screen, "Ctrl+J")


@pytest.mark.parametrize(
    "sentence, line",
    [("a/p.cb:12:4: error", 12), ("p.cb: not a TOML file: x (at line 7, column 3)", 7), ("p.cb: refused", None),
     ("p.cb: no element found: line 0", 1), (f"p.cb:{'9' * 5000}: error", 999999999)],
)  # fmt: skip
def test_the_line_of_an_error(sentence, line):
    assert error_line(sentence, "p.cb") == line


@pytest.mark.parametrize("error", ["line 0: empty", "line 7: \udcff\ud800", "line 999999999999: \0"])
def test_any_error_marks_a_line(screen, error):
    """The monkey met one that did not, which was an internal error each frame."""
    press(screen, "Ctrl+J")
    code = screen.ui.main_window.overlays.code
    screen.app.panel.update_error = error
    frames(screen)
    assert code.editor.has_markers() and not screen.app.message.startswith("internal")
    press(screen, "Ctrl+J")


def test_a_panel_without_a_file_has_no_program(screen, scene_files):
    panel = screen.app.panel
    assert text_file(panel) == scene_files[0]
    scene_files[0].unlink()
    assert text_file(panel) is None


def test_a_glsl_pass_is_edited_beside_its_picture(screen, tmp_path, monkeypatch):
    """In a copy of shaders/: an error is marked on its line and the last good picture stays; a good text is drawn."""
    shaders = tmp_path / "shaders"
    shutil.copytree(SHADERS, shaders)
    for module in (kernel_source, open_files, code_view):
        monkeypatch.setattr(module, "SHADERS", shaders)
    open_files.reload(screen.app)
    finish(screen)
    panel, code, path = screen.app.panel, screen.ui.main_window.overlays.code, shaders / "images/fractal.frag"
    assert text_files(panel) == [panel.original.path, path, shaders / "images/tonemap.frag"]
    press(screen, "Ctrl+J")
    code.open(path)
    frames(screen)
    text, good = code.editor.get_text(), panel.display.texture.read()
    assert text == path.read_text() and code.path == path
    line = text[: text.index("void main() {")].count("\n") + 2
    code.editor.set_text(text.replace("void main() {", "void main() {\n    nonsense = 1;"))
    frames(screen)
    code.save()
    frames(screen)
    screen.app.now.seconds += main_loop.TYPING_SECONDS  # software GL waits while one types
    finish(screen)
    assert error_line(panel.update_error, path.name) == line and code.editor.has_markers()
    assert np.array_equal(panel.display.texture.read(), good) and not panel.error
    code.editor.set_text(text.replace("void main() {", "void main() {\n    pixel = vec4(1); return;"))
    frames(screen)
    code.save()
    frames(screen)
    screen.app.now.seconds += main_loop.TYPING_SECONDS  # software GL waits while one types
    finish(screen)
    assert (panel.display.texture.read() == 255).all() and not panel.update_error and not code.editor.has_markers()
    code.editor.set_text(text)
    code.save()
    frames(screen)
    screen.app.now.seconds += main_loop.TYPING_SECONDS  # software GL waits while one types
    finish(screen)
    assert np.array_equal(panel.display.texture.read(), good)


def test_a_new_shader_is_drawn_beside_its_code_and_saved_as_a_file_of_ones_own(screen, tmp_path):
    finish(screen)
    press(screen, "Ctrl+Alt+N")
    app, code = screen.app, screen.ui.main_window.overlays.code
    finish(screen)
    original = code.path
    assert app.panel.scene.picture == "toy" and app.overlays.code and not app.panel.error
    assert code.path == app.panel.original.path and "mainImage" in code.editor.get_text()
    assert np.ptp(app.panel.display.frame.read()[..., :3].astype("f8"), axis=(0, 1)).min() > 0.1
    before = code.path.read_text()
    code.editor.set_text(before.replace("folds = 5.0", "folds = 4.0"))
    code.save()
    assert (app.dialog.name, app.dialog.title) == ("my_shader.glsl", "Save as") and app.dialog.saves
    app.dialog = None
    code._save_copy(tmp_path / "silk.glsl")
    finish(screen)
    assert app.panel.original.path == tmp_path / "silk.glsl" and app.panel.scene.settings.folds == 4.0
    assert "folds = 4.0" in (tmp_path / "silk.glsl").read_text() and code.path == tmp_path / "silk.glsl"
    assert original.read_text() == before
    assert (app.panel.scene.title, app.panel.has_unsaved_work) == ("silk", False)


def test_a_closing_brace_takes_the_indentation_of_the_line_that_opens_it(screen):
    press(screen, "Ctrl+J")
    frames(screen, 3)
    code = screen.ui.main_window.overlays.code
    position = code_view.imgui_color_text_edit.TextEditor.DocPos
    for text, typed, wanted in (
        ("void f() {\n    if (a) {\n        b();\n        ", "}", "void f() {\n    if (a) {\n        b();\n    }"),
        ("void f() { // {\n    ", "}", "void f() { // {\n}"),
        ("void f() {\n    g(); ", "}", "void f() {\n    g(); }"),  # a brace behind code stays
        ("    ", "}", "    }"),  # and one that closes nothing
    ):
        code.editor.set_text(text)
        lines = text.split("\n")
        code.editor.set_cursor(position(len(lines) - 1, len(lines[-1])))
        code.editor.set_focus()
        frames(screen, 2)
        imgui.get_io().add_input_characters_utf8(typed)
        frames(screen, 3)
        assert code.editor.get_text().rstrip("\n") == wanted
        imgui.get_io().add_input_characters_utf8(";")
        frames(screen, 3)
        assert code.editor.get_text().rstrip("\n") == f"{wanted};", "the cursor stays behind the brace"


def test_pictures_of_software_gl_wait_while_one_types(screen):
    finish(screen)
    app, panel = screen.app, screen.app.panel
    if not panel.draws_in_software:
        pytest.skip("the window's OpenGL is a GPU's")
    app.code_typed_at = app.now()
    panel.show(replace(panel.scene, settings=replace(panel.scene.settings, max_iterations=41)))
    frames(screen, 3)
    assert panel.drawn.settings.max_iterations == 40 and main_loop.activity(app, app.now()) != "drawing"
    seconds(screen, main_loop.TYPING_SECONDS)
    assert panel.drawn.settings.max_iterations == 41
