"""Events put into a headless window, and frames after them."""

import time

from renderer.window.actions import chord
from renderer.window.toolkit import imgui


def frames(screen, count: int = 2) -> None:
    for _ in range(count):
        screen.frame()


def wait_still(screen) -> None:
    """Frames until what is done next is another step of undo."""
    end = time.perf_counter() + 5
    while any(panel.moving(time.perf_counter()) for panel in screen.studio.panels) and time.perf_counter() < end:
        screen.frame()
    frames(screen)


def press(screen, keys: str) -> None:
    """Presses and releases the keys of a chord, as a keyboard does."""
    io, wanted = imgui.get_io(), chord(keys)
    held = [imgui.Key.mod_ctrl] * wanted.ctrl + [imgui.Key.mod_shift] * wanted.shift + [imgui.Key.mod_alt] * wanted.alt
    for down in (True, False):
        for key in [*held, wanted.key]:
            io.add_key_event(key, down)
        frames(screen)
