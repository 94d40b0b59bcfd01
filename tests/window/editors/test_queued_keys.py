"""Keys of a slow window: a key that is pressed after a chord has its effect, however few frames are drawn."""

from types import SimpleNamespace

import glfw
import pytest

from renderer.window.app import backends
from renderer.window.controls.toolkit import imgui
from tests.window.headless import frames, hold, point, press


@pytest.mark.parametrize("is_drained", [True, False])
def test_end_after_ctrl_home_moves_the_cursor_also_if_no_frame_lies_between(screen, is_drained):
    """Without the frames in between, Ctrl or End is lost: the fault that the window's key callback mends."""
    press(screen, "Ctrl+J")
    frames(screen, 3)
    x, y, width, height = screen.app.panels.area
    point(screen, x + width * 1.5, y + height * 0.6)
    hold(screen, 0, True)
    hold(screen, 0, False)
    editor = screen.ui.main_window.overlays.code.editor
    editor.set_cursor(type(editor).DocPos(3, 0))
    frames(screen)
    window = object.__new__(backends.Window)
    window._ui, window._new_frame = screen.ui, screen._new_frame
    window.gl = SimpleNamespace(screen=screen._pixel.framebuffer)
    window._chord, window._modifiers_at_press = (False, False), {}
    io, key = imgui.get_io(), imgui.Key

    def event(code: int, action: int, mods: int, *queued: tuple[imgui.Key, bool]) -> None:
        """GLFW's callback, then the events that Dear ImGui's callback adds."""
        if is_drained:
            window._on_key(None, code, 0, action, mods)
        for name, is_down in queued:
            io.add_key_event(name, is_down)

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
    assert ((cursor.line, cursor.index) == (0, length)) == is_drained
