"""A headless window whose clock goes on by the same time each frame, and events put into it.

Nothing in such a window depends on how quick the machine is: compute devices are waited for after each frame, and a
draw counts as having taken no time.
"""

import time
from contextlib import contextmanager

from renderer.gpu import DeviceContext
from renderer.scene.cameras import View2D
from renderer.window.app.backends import OffscreenWindow
from renderer.window.controls.shortcuts import chord
from renderer.window.controls.toolkit import imgui
from renderer.window.state.app_state import AppState

FRAME = 1 / 60  # seconds of the window's clock


class Clock:
    """Seconds that go on only where someone moves them."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Stepped(OffscreenWindow):
    """A headless window on a Clock of its own."""

    def frame(self) -> None:
        self.app.now.seconds += FRAME
        super().frame()
        for panel in self.app.panels:
            panel.wait_idle()


@contextmanager
def window(scenes, gpu, gl, size, scale=1.0, **more):
    """A Stepped window of the scenes, drawn by the devices of `gpu` and by `gl`; `scale` is 1 for 96 dots an inch."""
    screen = Stepped(AppState(scenes, beside(gl, gpu), clock=Clock(), **more), gl, size, scale)
    try:
        yield screen
    finally:
        screen.close()


def beside(gl, gpu) -> DeviceContext:
    """A DeviceContext with this GL and the compute devices of another one; of none for None."""
    own = DeviceContext(gl=gl)
    if gpu is not None:
        own.devices = [gpu.device]
    return own


def frames(screen, count: int = 2) -> None:
    for _ in range(count):
        screen.frame()


def seconds(screen, count: float) -> None:
    """Frames for so many seconds of the window's clock."""
    frames(screen, round(count / FRAME))


def wait_still(screen) -> None:
    """Frames until what is done next is another step of undo."""
    until(screen, lambda: not any(panel.is_interacting(screen.app.now()) for panel in screen.app.panels))
    frames(screen)


def finish(screen) -> None:
    """Frames until nothing moves and every visible panel is finished at its full size."""
    wait_still(screen)
    until(screen, lambda: screen.app.activity(screen.app.now()) != "drawing" and not screen.app.panel.busy)
    screen.frame()  # shows what the last one drew


def until(screen, condition, limit: float = 150.0) -> None:
    """Frames until the condition holds; `limit` is of the wall's clock, and far from what any machine needs."""
    end = time.perf_counter() + limit
    while not condition():
        assert time.perf_counter() < end, "it did not happen in time"
        screen.frame()


def settled(screen) -> None:
    """Frames until the active panel shows a whole sample of what it is to show, at its full size."""
    panel, app = screen.app.panel, screen.app
    frames(screen)

    def is_there() -> bool:
        assert not panel.error, panel.error
        size = app.image_rects[app.visible().index(app.active)][2:]
        full = panel.budget.divisor == 1 and panel.is_current(size, app.now())
        return full and panel.shows_full_sample and not panel.busy

    until(screen, is_there)


def sampled(screen, samples: int) -> None:
    """Frames until the active panel has so many samples, or says why not."""
    until(screen, lambda: screen.app.panel.samples >= samples or screen.app.panel.error)


def press(screen, keys: str) -> None:
    """Presses and releases the keys of a chord, as a keyboard does."""
    io, wanted = imgui.get_io(), chord(keys)
    held = [imgui.Key.mod_ctrl] * wanted.ctrl + [imgui.Key.mod_shift] * wanted.shift + [imgui.Key.mod_alt] * wanted.alt
    for down in (True, False):
        for key in [*held, wanted.key]:
            io.add_key_event(key, down)
        frames(screen)


def point(screen, x: float, y: float) -> None:
    """Moves the mouse there."""
    imgui.get_io().add_mouse_pos_event(x, y)
    frames(screen)


def hold(screen, button: int, down: bool) -> None:
    """Presses a mouse button, or lets it go."""
    imgui.get_io().add_mouse_button_event(button, down)
    frames(screen)


def center(screen, index: int) -> tuple[float, float]:
    x, y, width, height = screen.app.image_rects[index]
    return x + width / 2, y + height / 2


def drag(screen, start, dx: float, dy: float, button: int = 0) -> None:
    point(screen, *start)
    hold(screen, button, True)
    for part in (0.5, 1.0):
        point(screen, start[0] + dx * part, start[1] + dy * part)
    hold(screen, button, False)


def view(screen, index: int = 0) -> View2D:
    return screen.app.panels[index].scene.settings.view
