"""A GLFW window with the interface of the headless window of tests, and a desktop around it.

The clock is simulated; events go to Dear ImGui as in the headless window. Sizes, clipboard, monitors and what is shown
are the X server's.
"""

import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest

from renderer.gpu.gl import GlContext
from renderer.window.app.backends import UiContext, Window
from renderer.window.controls.toolkit import glfw
from renderer.window.state.app_state import AppState
from tests.window.headless import FRAME, settle

LARGEST = 1280, 800  # of the X server's screen


class RealWindow:
    """A GLFW window before an AppState."""

    def __init__(self, window: Window, app: AppState, scale: float):
        self.window, self.app, self.gl = window, app, window.gl
        self.ui = UiContext(app, window.gl, scale)
        self.ui.idle.wait = lambda: 0.0
        self._owner: subprocess.Popen[str] | None = None  # of the clipboard

    def frame(self) -> None:
        """A frame, after which compilers and devices are idle."""
        self.app.now.seconds += FRAME
        self.window.frame(self.app, self.ui)
        settle(self.app)

    def resize(self, size: tuple[int, int], ratio: float = 1.0) -> None:
        """Changes the size in screen coordinates; a side of 0 minimizes the window, as users do it."""
        if 0 in size:
            glfw.iconify_window(self.window.handle)
        else:
            glfw.restore_window(self.window.handle)
            glfw.set_window_size(self.window.handle, *(min(a, b) for a, b in zip(size, LARGEST, strict=True)))

    def copy(self, kind: str) -> None:
        """Another program takes the clipboard."""
        self._stop_owner()
        command = [sys.executable, str(Path(__file__).with_name("clipboard.py")), kind]
        self._owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._owner.stdout is not None and self._owner.stdout.readline().strip() == kind

    def _stop_owner(self) -> None:
        if self._owner is not None:
            self._owner.kill()
            self._owner.communicate()

    @contextmanager
    def monitors(self, gone: str):
        """In the block there is no primary monitor, or the window's monitor is gone."""
        with pytest.MonkeyPatch.context() as patch:
            if gone:
                patch.setattr(glfw, f"get_{gone}_monitor", lambda *_: None)
            yield

    def make_current(self) -> None:
        """Makes the functions of Dear ImGui work on this window."""

    def close(self) -> None:
        """Closes the window and ends the owner of the clipboard."""
        self._stop_owner()
        self.app.close()
        self.window.close()


def real_window(size: tuple[int, int]) -> tuple[GlContext, Callable[..., RealWindow]]:
    """The GL of a new window, and the function that puts an AppState before it."""
    window = Window(size, "monkey")
    return window.gl, lambda app, gl, size, scale: RealWindow(window, app, scale)
