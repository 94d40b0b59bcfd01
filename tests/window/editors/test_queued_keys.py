"""Keys of a slow window: a key that is pressed after a chord has its effect, however few frames are drawn."""

from types import SimpleNamespace

import glfw
import pytest

from renderer.window.app import backends, menus
from renderer.window.controls.toolkit import imgui
from tests.window.headless import frames, hold, point, press


@pytest.mark.parametrize("is_drained", [True, False])
def test_end_after_ctrl_home_moves_the_cursor_also_if_no_frame_lies_between(screen, is_drained):
    """Also where the window's key callback does not draw the frames in between: the editor's keys are routed."""
    editor = focused_editor(screen)
    editor.set_cursor(type(editor).DocPos(3, 0))
    frames(screen)
    event = callback(screen, is_drained)
    key = imgui.Key
    control = glfw.KEY_LEFT_CONTROL  # the order in which xdotool sends them
    event(control, glfw.PRESS, 0, (key.mod_ctrl, True))
    event(glfw.KEY_HOME, glfw.PRESS, glfw.MOD_CONTROL, (key.home, True))
    event(control, glfw.RELEASE, glfw.MOD_CONTROL, (key.mod_ctrl, False))
    event(glfw.KEY_HOME, glfw.RELEASE, 0, (key.home, False))
    event(glfw.KEY_END, glfw.PRESS, 0, (key.end, True))
    event(glfw.KEY_END, glfw.RELEASE, 0, (key.end, False))
    frames(screen, 4)
    length = len(editor.get_text().split("\n")[0])
    cursor = editor.get_main_cursor_position()
    assert (cursor.line, cursor.index) == (0, length)


def focused_editor(screen):
    """The code panel's editor, which a click has given the keyboard."""
    press(screen, "Ctrl+J")
    frames(screen, 3)
    x, y, width, height = screen.app.panels.area
    point(screen, x + width * 1.5, y + height * 0.6)
    hold(screen, 0, True)
    hold(screen, 0, False)
    return screen.ui.main_window.overlays.code.editor


def callback(screen, is_drained=True):
    """A function that sends an event to the window's key callback, then to Dear ImGui, as GLFW does."""
    window = object.__new__(backends.Window)
    window._ui, window._new_frame = screen.ui, screen._new_frame
    window.gl = SimpleNamespace(screen=screen._pixel.framebuffer)
    window._chord, window._modifiers_at_press = (False, False), {}
    window._editing_key = window._tab_frames = 0
    io = imgui.get_io()

    def event(code: int, action: int, mods: int, *queued: tuple[imgui.Key, bool]) -> None:
        """GLFW's callback, then the events that Dear ImGui's callback adds."""
        if is_drained:
            window._on_key(None, code, 0, action, mods)
        for name, is_down in queued:
            io.add_key_event(name, is_down)

    return event


@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize(
    "first, second, text, cursor",
    [
        ("end", "enter", "abc\ndef\n\nghi\n", (2, 0)),  # the Return that a slow window lost
        ("home", "delete", "abc\nef\nghi\n", (1, 0)),
        ("up_arrow", "backspace", "bc\ndef\nghi\n", (0, 0)),
        ("home", "end", "abc\ndef\nghi\n", (1, 3)),
        ("backspace", "tab", "abc\n\tef\nghi\n", (1, 1)),
    ],
)
def test_two_editing_keys_in_successive_frames_both_take_effect(screen, overlaps, first, second, text, cursor):
    """The witness is the text as one types slowly; keys that are typed ahead come in one frame, or overlap."""
    editor, event = focused_editor(screen), callback(screen)
    editor.set_text("abc\ndef\nghi\n")
    editor.set_cursor(type(editor).DocPos(1, 1))
    frames(screen)
    taps = [(name, is_down) for name in (first, second) for is_down in (True, False)]
    for name, is_down in [taps[i] for i in (0, 2, 1, 3)] if overlaps else taps:
        code = getattr(glfw, f"KEY_{name.removesuffix('_arrow').upper()}")
        event(code, glfw.PRESS if is_down else glfw.RELEASE, 0, (getattr(imgui.Key, name), is_down))
    frames(screen, 6)
    at = editor.get_main_cursor_position()
    assert (editor.get_text(), at.line, at.index) == (text, *cursor)


def test_the_keys_of_the_file_menu_work_while_the_code_has_the_keyboard(screen, monkeypatch):
    """Except Ctrl+S, which saves the text."""
    editor, ran = focused_editor(screen), []
    before = editor.get_text()
    monkeypatch.setattr(screen.app, "run", lambda action: ran.append(action.keys))
    wanted = [keys for keys in menus.KEYS["file"] if keys not in ("", "Ctrl+S")]
    for keys in wanted:
        press(screen, keys)
    assert ran == wanted and "Ctrl+Alt+N" in ran and editor.get_text() == before
    assert screen.ui.main_window.overlays.code.is_focused
