"""Toys in a window: compiled while one types, errors on their line, mouse and keys; files of the program stay."""

import json

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.gpu import DeviceContext, kernel_source
from renderer.paths import SCENES, SHADERS
from renderer.pictures import load, toy
from renderer.system import drafts
from renderer.system.trial import Trial
from renderer.window.app.code_view import text_files
from renderer.window.controls.toolkit import imgui
from renderer.window.state.main_loop import TYPING_SECONDS
from tests.window.headless import center, draw_full_sample, finish, frames, hold, point, press, seconds, window
from tests.window.helpers import FRACTAL

FLAT = "void mainImage(out vec4 c, in vec2 p) {\n    c = vec4(1, 0, 0, 1);\n}\n"
MOUSE = "void mainImage(out vec4 c, in vec2 p) { c = vec4(iMouse.xy / iResolution.xy, step(0.0, iMouse.z), 1); }\n"
KEYS = """// iChannel0: keyboard
void mainImage(out vec4 c, in vec2 p) { c = vec4(texelFetch(iChannel0, ivec2(72, 0), 0).x, 0, 0, 1); }
"""


@pytest.fixture
def opened(gl, tmp_path, monkeypatch):
    """Opens a window with a text as a .glsl file; no trial in a child process."""
    monkeypatch.setattr(toy, "_try_program", lambda settings: None)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "flat.glsl"
    screens = []

    def open_window(text: str):
        path.write_text(text)
        manager = window([load(path)], None, gl, (900, 500))
        screens.append(manager)
        return manager.__enter__(), path

    yield open_window
    for manager in screens:
        manager.__exit__(None, None, None)
    drafts.texts.clear()


def shown(screen) -> np.ndarray:
    return screen.app.panel.display.texture.read()[0, 0, :3]


def typed(screen, text: str):
    code = screen.ui.main_window.overlays.code
    code.editor.set_text(text)
    seconds(screen, 0.4)
    finish(screen)
    return code


def test_a_shader_is_compiled_while_one_types_and_saved_by_key(opened):
    screen, path = opened(FLAT)
    finish(screen)
    press(screen, "Ctrl+J")
    frames(screen, 3)
    code = typed(screen, FLAT.replace("1, 0, 0", "0, 1, 0"))
    assert shown(screen).tolist() == [0, 255, 0] and path.read_text() == FLAT and code.is_changed
    press(screen, "Ctrl+J")
    press(screen, "Ctrl+J")
    frames(screen, 2)
    assert code.is_changed and "0, 1, 0" in code.editor.get_text(), "hiding the panel keeps what was typed"
    typed(screen, FLAT.replace("1, 0, 0", "0, oops, 0"))
    panel = screen.app.panel
    assert panel.update_error.startswith(f"{path}:2: ") and code.editor.has_markers()
    assert shown(screen).tolist() == [0, 255, 0]
    screen.app.message = ""
    code.save()
    finish(screen)
    assert "reloaded" not in screen.app.message and "oops" in path.read_text()
    typed(screen, FLAT.replace("1, 0, 0", "0, 0, 1"))
    code.save()
    finish(screen)
    assert screen.app.message == "saved flat.glsl" and shown(screen).tolist() == [0, 0, 255]
    assert not code.is_changed and not drafts.texts


def test_keys_work_while_one_types(opened):
    screen, _ = opened(FLAT)
    app = screen.app
    finish(screen)
    overlays = app.overlays
    states = {
        "F1": lambda: overlays.help,
        "Ctrl+P": lambda: overlays.palette,
        "Escape": lambda: not overlays.code,
        "Ctrl+J": lambda: not overlays.code,
        "F6": lambda: app.input.keyboard_navigation,
    }
    for keys, state in states.items():
        overlays.code.is_on = True
        frames(screen, 3)
        x, y, width, height = app.panels.area
        point(screen, x + width * 1.5, y + height * 0.6)
        hold(screen, 0, True)
        hold(screen, 0, False)
        assert screen.ui.main_window.overlays.code.is_focused
        press(screen, "N")  # text, not the next scene
        assert app.panel.original.path.name == "flat.glsl"
        press(screen, keys)
        assert state(), keys
        overlays.help.is_on = overlays.palette.is_on = app.input.keyboard_navigation.is_on = False
        frames(screen, 2)


def test_an_edited_file_is_loaded_again_with_its_sliders(opened):
    screen, path = opened("uniform float level = 0.5;  // 0 to 1\n" + FLAT.replace("1, 0, 0", "level, 0, 0"))
    finish(screen)
    assert shown(screen)[0] == 128
    path.write_text("uniform float level = 1.0;  // 0 to 1\n" + FLAT.replace("1, 0, 0", "0, level, 0"))
    seconds(screen, 0.3)
    finish(screen)
    assert shown(screen).tolist() == [0, 255, 0] and not screen.app.panel.update_error


def test_the_mouse_is_imouse_from_the_bottom_left(opened):
    screen, _ = opened(MOUSE)
    finish(screen)
    x, y, width, height = screen.app.panels.shown[0].image_rect
    point(screen, x + width * 0.25, y + height * 0.25)
    hold(screen, 0, True)
    finish(screen)
    assert np.abs(shown(screen) / 255 - (0.25, 0.75, 1)).max() < 0.01
    hold(screen, 0, False)
    finish(screen)
    assert shown(screen)[2] == 0
    assert not screen.app.panel.has_unsaved_work


def test_keys_go_to_a_picture_that_reads_them_until_escape(opened):
    screen, _ = opened(KEYS)
    finish(screen)
    app, io = screen.app, imgui.get_io()
    point(screen, *center(screen, 0))
    hold(screen, 0, True)
    hold(screen, 0, False)
    assert app.input.picture_keys
    before = app.overlays.sidebar.is_on
    io.add_key_event(imgui.Key.h, True)
    draw_full_sample(screen)
    finish(screen)
    assert shown(screen).tolist() == [255, 0, 0] and app.overlays.sidebar.is_on == before
    io.add_key_event(imgui.Key.h, False)
    frames(screen)
    finish(screen)
    assert shown(screen).tolist() == [0, 0, 0]
    press(screen, "Escape")
    assert not app.input.picture_keys
    press(screen, "H")
    assert app.overlays.sidebar.is_on != before


@pytest.mark.parametrize("name", ["globe.glsl", "mandelbrot.toml"])
def test_files_of_the_program_are_copied_not_written(gl, tmp_path, monkeypatch, name):
    monkeypatch.setattr(toy, "_try_program", lambda settings: None)
    monkeypatch.chdir(tmp_path)
    original = (SCENES / name).read_bytes()
    with window([load(SCENES / name)], None, gl, (700, 400)) as screen:
        app, code = screen.app, screen.ui.main_window.overlays.code
        frames(screen, 3)
        press(screen, "Ctrl+J")
        frames(screen, 3)
        code.editor.set_text(code.editor.get_text() + "\n")
        code.save()
        assert app.dialog is not None and app.dialog.saves
        app.dialog._choose(tmp_path / f"mine{name[name.index('.') :]}")
        app.dialog = None
        copy = tmp_path / f"mine{name[name.index('.') :]}"
        frames(screen, 3)
        assert copy.is_file() and code.path == copy and app.panel.original.path == copy
        draw_full_sample(screen)
        assert not app.panel.error and (SCENES / name).read_bytes() == original


@pytest.fixture
def own_copies():
    """Ends the replacement of the program's files by copies, which is the process's, with the sources read since."""
    yield
    drafts.copies.clear()
    kernel_source.clear_source_cache()


def test_a_pass_of_the_program_is_replaced_by_a_copy(screen, tmp_path, own_copies):
    finish(screen)
    code, panel = screen.ui.main_window.overlays.code, screen.app.panel
    press(screen, "Ctrl+J")
    path = next(path for path in text_files(screen.app.panel) if path.name == "fractal.frag")
    code.open(path)
    original = path.read_bytes()
    code.editor.set_text(code.editor.get_text().replace("void main() {", "void main() {\n    pixel = vec4(1); return;"))
    code.save()
    screen.app.dialog._choose(tmp_path / "own.frag")
    screen.app.dialog = None
    frames(screen)
    screen.app.now.seconds += TYPING_SECONDS  # software GL waits while one types
    finish(screen)
    assert path.read_bytes() == original and (panel.display.texture.read() == 255).all()


def test_a_window_that_closes_takes_what_was_typed_in_a_pass_with_it(gl, tmp_path):
    """Another window of the process, a viewer's of `serve`, drew a white picture for good."""
    (tmp_path / "first.toml").write_text(FRACTAL.format(title="first"))
    with window([load(tmp_path / "first.toml")], None, gl, (300, 200)) as screen:
        frames(screen, 3)
        code = screen.ui.main_window.overlays.code
        press(screen, "Ctrl+J")
        code.open(SHADERS / "images" / "tonemap.frag")
        code.editor.set_text(code.editor.get_text() + "// mine\n")
        seconds(screen, 2 * TYPING_SECONDS)
        assert "// mine" in drafts.texts[code.path]
    assert code.path not in drafts.texts
    assert "// mine" not in kernel_source.preprocess_glsl("images/tonemap.frag", 330)[0]


def test_a_shader_that_hangs_or_ends_its_trial_costs_its_panel_alone(gl, tmp_path, monkeypatch):
    """The trial's child is played by an answer; test_the_trial_draws runs a real one."""
    monkeypatch.setattr(toy, "run_trial", lambda *words, seconds: Trial(None, "it does not answer within 20 seconds"))
    (tmp_path / "bad.glsl").write_text(FLAT)
    (tmp_path / "good.toml").write_text(FRACTAL.format(title="good"))
    with window([load(tmp_path / "bad.glsl"), load(tmp_path / "good.toml")], None, gl, (600, 300)) as screen:
        finish(screen)
        bad, good = screen.app.panels
        assert "a trial in another process failed: it does not answer" in bad.error and bad.display.texture is None
        assert not good.error and good.draw_loop.is_finished


def test_the_trial_draws(tmp_path):
    path, job = str(tmp_path / "toy.glsl"), tmp_path / "job.json"
    (tmp_path / "toy.glsl").write_text(FLAT)
    job.write_text(json.dumps({"settings": {"image": path}, "texts": {}}))
    assert toy.run_trial("renderer.pictures.toy:draw_trial", str(job)) == Trial(True, "")
    job.write_text(json.dumps({"settings": {"image": path}, "texts": {path: "void nothing();"}}))
    with pytest.raises(InputError, match="has no entry"):  # the text that is typed, not the file's
        toy.draw_trial(str(job))
    drafts.texts.clear()


def test_a_window_asks_whether_a_shader_moves_without_compiling_it(gl, tmp_path, monkeypatch):
    """The question comes in every frame, and a trial in a child process takes seconds."""

    def refused(settings):
        raise AssertionError("compiled on the window's thread")

    monkeypatch.setattr(toy, "_try_program", refused)
    path = tmp_path / "moves.glsl"
    path.write_text("void mainImage(out vec4 c, in vec2 p) { c = vec4(iTime); }\n")
    picture = toy.Picture(DeviceContext(gl=gl))
    picture.never_block()
    assert picture.depends_on_time(load(path).settings)
    path.write_text(FLAT)
    assert not toy.Picture(DeviceContext(gl=gl)).depends_on_time(load(path).settings)
    with pytest.raises(AssertionError, match="thread"):
        picture.draw(load(path).settings, (4, 4), 0.0)
