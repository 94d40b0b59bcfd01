"""The window's own work in a frame: controls, panels and overlays of six panels become draw lists; nothing is rendered.

1,000 frames a second are the millisecond of the processor that a frame may take beside what the pictures need.
"""

import time
from dataclasses import replace
from functools import cache

import numpy as np

from renderer.bench.cases import Case
from renderer.gpu.kernel_source import Counters
from renderer.paths import SCENES
from renderer.pictures import load
from renderer.raytracing.settings import Sphere
from renderer.window.app.backends import OffscreenWindow
from renderer.window.controls.toolkit import imgui
from renderer.window.document.items import Item
from renderer.window.state.app_state import AppState
from renderer.window.state.session import Session

SIZE = (1600, 900)
LAYOUT = "cornell", "mandelbrot", "julia", "mandelbrot", "julia", "mandelbrot"  # the first is active
ITEMS = 2000  # of the long list
open_windows: list[OffscreenWindow] = []  # at most one


def cases(gpu) -> list[Case]:
    """Six panels, the active one a scene with a selected item; the same with a long list of items."""
    return [six_panels(gpu, "six panels", 0), six_panels(gpu, f"six panels, {ITEMS} items", ITEMS)]


class ProcessorClock:
    """A device whose clock is this thread's processor time, which other work on the machine changes little.

    The metronome has one too: case files are read alone, so neither imports the other.
    """

    name, driver, has_reliable_timer = "processor", "", True

    def __init__(self):
        self.counters = Counters()

    def finish(self) -> None:
        """Nothing is left to wait for."""

    def time_seconds(self, work) -> float:
        """The processor time of work() in seconds."""
        began = time.thread_time()
        work()
        return time.thread_time() - began


def six_panels(gpu, name: str, items: int) -> Case:
    """One frame of the interface."""
    clock, window = ProcessorClock(), cache(lambda: opened(gpu, items))

    def run():
        clock.counters.launches += 1
        io = imgui.get_io()
        io.display_size, io.delta_time = imgui.ImVec2(*SIZE), 1 / 60
        imgui.backends.opengl3_new_frame()
        imgui.new_frame()
        window().ui.main_window.draw(*SIZE)
        imgui.render()

    def check() -> None:
        screen = window()
        screen.frame()
        shown = screen.pixels()
        for panel, (left, top, width, height) in zip(screen.app.panels, screen.app.panels.image_rects, strict=True):
            assert panel.display.texture is not None and not panel.error, panel.error
            region = shown[top + 30 : top + height - 30, left + 30 : left + width - 30]
            assert region.std() > 5, f"the panel of {panel.scene.title} shows no picture"
        sidebar = shown[50:, screen.app.panels.area[0] + screen.app.panels.area[2] + 20 :]
        assert sidebar.std() > 5 and np.unique(sidebar.reshape(-1, 3), axis=0).shape[0] > 30, "no controls"

    return Case(name, "frames/s", 1.0, run, check, clock, facts={"panels": len(LAYOUT), "size": list(SIZE)})


def opened(gpu, items: int) -> OffscreenWindow:
    """A window whose six panels have drawn."""
    scenes = [load(SCENES / f"{name}.toml") for name in LAYOUT]
    if items:
        spheres = tuple(Sphere("white", (k * 1e-4, 0.0, 0.0), 1e-5) for k in range(items))
        scenes[0] = replace(scenes[0], settings=replace(scenes[0].settings, spheres=spheres))
    if open_windows:
        open_windows.pop().close()
    app = AppState(Session(tuple(scenes)), gpu)
    screen = OffscreenWindow(app, gpu.gl, SIZE)
    app.panel.selection = Item("spheres", 0) if items else Item("quads", 0)
    open_windows.append(screen)
    until = time.perf_counter() + 120
    while any(panel.measured.samples < 1 and not panel.error for panel in app.panels) and time.perf_counter() < until:
        screen.frame()
    for panel in app.panels:
        panel.paused = True
    return screen
