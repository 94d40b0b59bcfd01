"""A real window under what a desktop may do: every kind of clipboard, drops, monitors that are not there.

    python tests/window/desktop/hostile_desktop.py SCENE

Needs DISPLAY. Prints "all passed" if the window goes on after each and says in a sentence what was wrong.
"""

import ctypes
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from renderer.gpu import DeviceContext
from renderer.pictures import load
from renderer.window.app import backends
from renderer.window.controls.toolkit import glfw, imgui
from renderer.window.state.app_state import AppState
from renderer.window.state.session import Session
from tests.window.headless import press

LIMIT = 60.0  # seconds for each wait


class Desktop:
    """A window and what its user does."""

    def __init__(self, scene: Path):
        self.window = backends.Window((500, 300), "Rayfold")
        self.app = AppState(Session.of((load(scene),)), DeviceContext(gl=self.window.gl))
        self.ui = backends.UiContext(self.app, self.window.gl, self.window.scale)
        ((_, self.drop),) = glfw._window_drop_callback_repository.values()  # what GLFW calls: it keeps what is raised

    def frame(self) -> None:
        """A frame, as press() wants it."""
        self.ui.idle.wait = lambda: 0.0
        self.window.frame(self.app, self.ui)

    def until(self, condition) -> None:
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, f"timeout; the message is {self.app.message!r}"
            self.frame()

    def says(self, words: str) -> None:
        """Waits for a message with these words."""
        self.until(lambda: words in self.app.message)
        self.app.show_message("")


@contextmanager
def copied(kind: str):
    """Another program has copied something of a kind."""
    command = [sys.executable, "-m", "tests.window.desktop.clipboard", kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout.readline().strip() == kind
            yield
        finally:
            owner.kill()


def clipboards(desk: Desktop) -> None:
    """Ctrl+V into a text field."""
    pasted = {}
    for kind in ("image", "text", "empty", "broken", "megabytes", "image"):
        press(desk, "Ctrl+P")
        desk.until(lambda: imgui.get_io().want_text_input)
        with copied(kind):
            press(desk, "Ctrl+V")
            if kind == "image":
                desk.says("the clipboard holds no text")
            pasted[kind] = desk.ui.main_window.overlays._filter
        press(desk, "Ctrl+P")
        press(desk, "Escape")
        desk.until(lambda: not desk.app.overlays.palette)
    assert (pasted["image"], pasted["text"], pasted["empty"]) == ("", "0.25 é∂🙂", ""), pasted
    assert not desk.app.message, desk.app.message


def drops(desk: Desktop) -> None:
    """Names that are not UTF-8, one of which hides the good one beside it; names that no file has."""
    for names, words in (
        ([b"\xff\xfe.toml"], "not UTF-8"),
        ([b"a.toml", b"\xc3\x28.toml"], "not UTF-8"),
        ([b"/no/such/file.toml"], "No such file"),
        ([b"line\nbreak %s ##x.toml"], "No such file"),
        ([b"n" * 5000], "No such file"),
        ([b"/"], "no light field"),
    ):
        desk.drop(desk.window.handle, len(names), (ctypes.c_char_p * len(names))(*names))
        desk.says(words)


def monitors(desk: Desktop) -> None:
    """Full screen without a monitor, and with one that goes."""
    fullscreen, size = desk.app.overlays.fullscreen, glfw.get_window_size(desk.window.handle)
    found = glfw.get_primary_monitor, glfw.get_window_monitor
    glfw.get_primary_monitor = lambda: None
    fullscreen.toggle()
    desk.says("no monitor is connected")
    assert not fullscreen
    glfw.get_primary_monitor = found[0]
    fullscreen.toggle()
    desk.until(lambda: glfw.get_window_monitor(desk.window.handle))
    glfw.get_window_monitor = lambda handle: None
    desk.until(lambda: not fullscreen)
    glfw.get_window_monitor = found[1]
    desk.until(lambda: glfw.get_window_size(desk.window.handle) == size)


def other_errors(desk: Desktop) -> None:
    """An error of a call of ours, one that is raised in a callback, and a size that Windows gives minimized windows."""
    glfw.set_window_size_limits(desk.window.handle, -5, -5, -9, -9)
    desk.says("window system: ")
    real = glfw.get_framebuffer_size
    glfw.get_framebuffer_size = lambda handle: (0, 0)
    for _ in range(10):
        desk.frame()
    glfw.get_framebuffer_size = real
    assert desk.ui._failed_frames == 0 and not desk.app.message, desk.app.message


def main() -> None:
    """All of it, and the errors of a second window, which are raised as those of the first were."""
    desk = Desktop(Path(sys.argv[1]))
    desk.until(lambda: desk.app.panel.draw_loop.is_finished)
    for part in (clipboards, drops, monitors, other_errors):
        part(desk)
    desk.app.close()
    desk.window.close()
    backends._init_glfw()
    try:
        glfw.create_window(0, 0, "", None, None)
    except glfw.GLFWError:
        print("all passed")


if __name__ == "__main__":
    main()
