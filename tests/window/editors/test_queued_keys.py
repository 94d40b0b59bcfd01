"""Keys of a slow window: a key that is pressed after a chord has its effect, however few frames are drawn."""

from types import SimpleNamespace

import glfw
import pytest

from renderer.window.app import backends
from renderer.window.controls.toolkit import imgui
from tests.window.headless import frames, hold, point, press


@pytest.mark.parametrize("is_drained", [True, False])
def test_end_after_ctrl_home_moves_the_cursor_also_if_no_frame_lies_between(screen, is_drained):
    """Without the frames in between, End is lost: that is the fault which the window's key callback mends."""
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

    def pressed(code: int, mods: int, *queued: tuple[imgui.Key, bool]) -> None:
        """GLFW's callback of a press, then the events that Dear ImGui's callback adds, up to the next press."""
        if is_drained:
            window._on_key(None, code, 0, glfw.PRESS, mods)
        for name, is_down in queued:
            io.add_key_event(name, is_down)

    control, home, end = key.mod_ctrl, key.home, key.end
    pressed(glfw.KEY_HOME, glfw.MOD_CONTROL, (control, True), (home, True), (home, False), (control, False))
    pressed(glfw.KEY_END, 0, (end, True), (end, False))
    frames(screen, 4)
    length = len(editor.get_text().split("\n")[0])
    cursor = editor.get_main_cursor_position()
    assert (cursor.line, cursor.index) == (0, length if is_drained else 0)
