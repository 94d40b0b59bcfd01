"""A headless window with a simulated clock, and functions that send it events.

The clock advances by the same time each frame, compilers and compute devices finish after each frame and a draw takes
no time, so results do not depend on the machine's speed.
"""

import time
from contextlib import contextmanager

import numpy as np

from renderer.gpu import DeviceContext
from renderer.gpu.gl import GlContext
from renderer.scene.cameras import View2D
from renderer.window.app import backends
from renderer.window.app.backends import OffscreenWindow
from renderer.window.controls.shortcuts import chord
from renderer.window.controls.toolkit import imgui
from renderer.window.state import main_loop
from renderer.window.state.app_state import AppState
from renderer.window.state.session import Session

FRAME = 1 / 60  # seconds of the window's clock


class Clock:
    """A clock that advances only when it is set."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class SteppedWindow(OffscreenWindow):
    """A headless window with a simulated clock.

    Frames are rendered into one pixel, and into all only where pixels() asks for them: software GL took most of a
    test's time for frames that nobody looked at.
    """

    def __init__(self, app: AppState, gl: GlContext, size: tuple[int, int], scale: float = 1.0) -> None:
        super().__init__(app, gl, size, scale)
        self._pixel = gl.texture((1, 1), 4, "f1")

    def frame(self) -> None:
        self.app.now.seconds += FRAME
        whole, self._texture = self._texture, self._pixel
        try:
            super().frame()
        finally:
            self._texture = whole
        settle(self.app)

    def pixels(self) -> np.ndarray:
        """The last frame; a panel whose texture was replaced since then shows another one (draw a frame more)."""
        assert self.gl.ctx.error == "GL_NO_ERROR"
        backends.render(self._texture.framebuffer)
        assert self.gl.ctx.error in ("GL_NO_ERROR", "GL_INVALID_OPERATION")  # of a texture that is gone
        return super().pixels()


def settle(app: AppState) -> None:
    """Waits for compilers and compute devices."""
    for work in [app.work, *(panel.work for panel in app.panels)]:
        while work.is_waiting:
            time.sleep(0.001)
            work.poll()
    for panel in app.panels:
        panel.draw_loop.wait_idle()


@contextmanager
def window(scenes, gpu, gl, size, scale=1.0, session=None, **more):
    """A SteppedWindow of the scenes, or of a session, on the devices of `gpu` and on `gl`; `scale` is 1 at 96 dpi."""
    screen = SteppedWindow(
        AppState(session or Session.of(tuple(scenes)), context_with(gl, gpu), clock=Clock(), **more), gl, size, scale
    )
    try:
        yield screen
    finally:
        screen.close()


def context_with(gl, gpu) -> DeviceContext:
    """A DeviceContext with this GL and the compute device of `gpu`, if given."""
    own = DeviceContext(gl=gl)
    if gpu is not None:
        own.devices = [gpu.device]
    return own


def frames(screen, count: int = 2) -> None:
    for _ in range(count):
        screen.frame()


def seconds(screen, count: float) -> None:
    """Draws frames for so many seconds of the simulated clock."""
    frames(screen, round(count / FRAME))


def wait_for_undo_step(screen) -> None:
    """Draws frames until the next action starts a new undo step."""
    until(screen, lambda: not any(panel.is_interacting(screen.app.now()) for panel in screen.app.panels))
    frames(screen)


def finish(screen) -> None:
    """Draws frames until every visible panel is finished at full resolution."""
    wait_for_undo_step(screen)
    until(
        screen,
        lambda: main_loop.activity(screen.app, screen.app.now()) != "drawing" and not screen.app.panel.draw_loop.busy,
    )
    screen.frame()  # displays the last draw


def until(screen, condition, limit: float = 150.0) -> None:
    """Draws frames until the condition holds; fails after `limit` seconds of real time, far more than needed."""
    end = time.perf_counter() + limit
    while not condition():
        assert time.perf_counter() < end, "timeout"
        screen.frame()


def draw_full_sample(screen) -> None:
    """Draws frames until the active panel shows a whole sample at full resolution."""
    panel, app = screen.app.panel, screen.app
    frames(screen)

    def is_there() -> bool:
        assert not panel.error, panel.error
        size = app.panels.image_size(panel)
        full = panel.budget.divisor == 1 and panel.draw_loop.draw_key(size, app.now()) == panel.drawn
        return full and panel.draw_loop.shows_full_sample and not panel.draw_loop.busy

    until(screen, is_there)


def draw_samples(screen, samples: int) -> None:
    """Draws frames until the active panel has so many samples, or an error."""
    until(screen, lambda: screen.app.panel.measured.samples >= samples or screen.app.panel.error)


def press(screen, keys: str) -> None:
    """Presses and releases a key with its modifiers."""
    io, wanted = imgui.get_io(), chord(keys)
    names = (imgui.Key.mod_ctrl, imgui.Key.mod_shift, imgui.Key.mod_alt)
    modifiers = [name for name, held in zip(names, wanted.modifiers, strict=True) if held]
    for down in (True, False):
        for key in [*modifiers, wanted.key]:
            io.add_key_event(key, down)
        frames(screen)


def point(screen, x: float, y: float) -> None:
    """Moves the pointer."""
    imgui.get_io().add_mouse_pos_event(x, y)
    frames(screen)


def hold(screen, button: int, down: bool) -> None:
    """Presses or releases a mouse button."""
    imgui.get_io().add_mouse_button_event(button, down)
    frames(screen)


def center(screen, index: int) -> tuple[float, float]:
    x, y, width, height = screen.app.panels.shown[index].image_rect
    return x + width / 2, y + height / 2


def drag(screen, start, dx: float, dy: float, button: int = 0) -> None:
    point(screen, *start)
    hold(screen, button, True)
    for part in (0.5, 1.0):
        point(screen, start[0] + dx * part, start[1] + dy * part)
    hold(screen, button, False)


def view(screen, index: int = 0) -> View2D:
    return screen.app.panels[index].scene.settings.view
