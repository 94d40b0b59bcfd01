"""The window: its own work in a frame, and how fast pictures refine in it beside the same pictures without a window.

`six panels`: controls, panels and overlays of six panels become draw lists; nothing is rendered. 1,000 frames a second
are the millisecond of the processor that a frame may take beside what the pictures need.

`live/NAME`: one panel of 1252 x 806 pixels refines in the window's own loop, offscreen, which waits and is woken as
GLFW's is. The peer is the same picture headless in the same process, in turns with the window: its draws are queued
without waiting for each. `live/demo` has the demo's four panels; its rate is the sum over the panels of the window's
rate as a fraction of the headless rate, which would be 1 if the window cost nothing and the panels shared one device.
On a processor the clock is the processor time of all threads, which other work on the machine changes little.
`served/NAME` is the same panel in the loop of `rayfold serve`, while a viewer reads each frame by HTTP.
"""

import threading
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from http.client import HTTPException
from statistics import median

import numpy as np

from renderer.bench.cases import Case
from renderer.gpu.properties import Counters
from renderer.paths import SCENES
from renderer.pictures import load, open_picture
from renderer.raytracing.settings import Sphere
from renderer.window.app.backends import OffscreenWindow
from renderer.window.controls.toolkit import imgui
from renderer.window.document.items import Item
from renderer.window.panels.measurements import Measurements
from renderer.window.remote.server import RemoteServer, Shown
from renderer.window.state.app_state import AppState
from renderer.window.state.session import Session

SIZE = (1600, 900)
LAYOUT = "cornell", "mandelbrot", "julia", "mandelbrot", "julia", "mandelbrot"  # the first is active
ITEMS = 2000  # of the long list
LIVE = "mirrors", "cornell", "menger", "glassware", "jewels", "terrace", "mandelbrot"
SERVED = "mirrors", "cornell", "glassware"
DEMO = "mirrors", "fern", "mandelbrot", "reduction"
TURN_SECONDS = 1.0  # of the window, then of the headless picture
QUEUED_SAMPLES = 64  # headless draws between two waits for the device
OPEN_SECONDS = 600.0  # limit for opening a window: on a processor a sample may take seconds
ANSWER_PERCENTILE = 99
open_windows: list[OffscreenWindow] = []  # at most one


def cases(gpu) -> list[Case]:
    """Six panels, the active one a scene with a selected item; the same with a long list of items; refining panels."""
    own = [six_panels(gpu, "six panels", 0), six_panels(gpu, f"six panels, {ITEMS} items", ITEMS)]
    served = [live(gpu, name, (name,), "served") for name in SERVED]
    return [*own, *(live(gpu, name, (name,)) for name in LIVE), live(gpu, "demo", DEMO), *served]


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
        for panel, _, (left, top, width, height) in screen.app.panels.shown:
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
    app = AppState(Session.of(tuple(scenes)), gpu)
    screen = OffscreenWindow(app, gpu.gl, SIZE)
    app.panel.selection = Item("spheres", 0) if items else Item("quads", 0)
    open_windows.append(screen)
    until = time.perf_counter() + 120
    while any(panel.measured.samples < 1 and not panel.error for panel in app.panels) and time.perf_counter() < until:
        screen.frame()
    for panel in app.panels:
        panel.paused = True
    return screen


@dataclass
class Turn:
    """A stretch of refining: samples of each panel, seconds by the wall clock and of the processor."""

    samples: list[float]
    wall: float
    processor: float


class CountingMeasurements(Measurements):
    """Measurements that also count all samples; `samples` begins anew with each picture of an animation."""

    drawn = 0

    def add_samples(self, count: int, seconds: float, timestamp: float) -> None:
        super().add_samples(count, seconds, timestamp)
        self.drawn += count


class LiveWindow:
    """The window's own loop on an offscreen window, and the same pictures headless.

    As a case's device its clock counts the seconds of a sample in the window, or for several panels the inverse of the
    sum of their fractions.
    """

    has_reliable_timer = True

    def __init__(self, gpu, names):
        self._gpu, self._names, self._wake = gpu, names, threading.Event()
        self.counters, self.facts = Counters(), {"size": list(SIZE)}
        self._loops, self._frames, self._answers = 0, 0, []
        self._turns, self._headless_turns = [], []
        self._screen, self._headless = None, []

    @property
    def name(self) -> str:
        return f"{self._gpu.device.name}, {self._gpu.gl.renderer}"

    @property
    def driver(self) -> str:
        return self._gpu.device.driver

    def finish(self) -> None:
        """A turn ends with idle devices."""

    def check(self) -> np.ndarray:
        """Opens the window; the displayed picture has the bits of the headless one with as many samples."""
        scenes = [load(SCENES / f"{name}.toml") for name in self._names]
        if open_windows:
            open_windows.pop().close()
        app = AppState(Session.of(tuple(scenes)), self._gpu)
        self._screen = OffscreenWindow(app, self._gpu.gl, SIZE)
        open_windows.append(self._screen)
        app.wake = self._wake.set
        app.file_watcher.listen(app.wake)  # as windows do
        for panel in app.panels:
            panel.free_run = True
            panel.measured = CountingMeasurements()
        self._loop_until(lambda: all(p.error or p.measured.drawn > 5 for p in app.panels))
        for panel in app.panels:
            panel.paused = True
        self._loop_until(lambda: all(p.error or not _works(p) for p in app.panels))
        for panel, scene in zip(app.panels, scenes, strict=True):
            assert not panel.error, panel.error
            picture, drawn = open_picture(scene, self._gpu), panel.drawn
            for _ in range(panel.measured.samples):
                frame = picture.draw(drawn.settings, drawn.size, drawn.time)
            shown = panel.display.frame.read()
            assert np.array_equal(shown, frame.read()), f"{scene.title}: {panel.measured.samples} samples differ"
            self._headless.append((picture, drawn.settings, drawn.size))
            panel.paused = False
        self.facts["panels"] = [list(size) for _, _, size in self._headless]
        return shown

    def _loop_until(self, is_done) -> None:
        """The loop of renderer/window/app/backends.py: waits, then draws a frame if the window needs one."""
        screen, until = self._screen, time.perf_counter() + OPEN_SECONDS
        while not is_done():
            if wait := screen.ui.idle.wait():
                self._wake.wait(wait)
            self._wake.clear()
            began = time.perf_counter()
            assert began < until, "the window does not refine"
            if screen.ui.idle.needs_frame(False):
                screen.frame()
                self._frames += 1
            self._answers.append(time.perf_counter() - began)

    def run(self) -> None:
        """A turn of the window, then of each headless picture."""
        self.counters.launches += 1
        panels = self._screen.app.panels
        self._answers = []  # those of this turn: to open a window takes longer
        self._frames, began = 0, self._start(panels)
        until = began[0] + TURN_SECONDS
        self._loop_until(lambda: time.perf_counter() >= until and all(map(_progress, panels)))
        for panel in panels:
            panel.draw_loop.wait_idle()
        self._turns.append(self._end(began, [_progress(p) - s for p, s in zip(panels, began[2], strict=True)]))
        turns = []
        for picture, settings, size in self._headless:
            began, count = self._start([]), 0
            while not count or time.perf_counter() < began[0] + TURN_SECONDS:
                for _ in range(QUEUED_SAMPLES):
                    count, frame = count + 1, picture.draw(settings, size, 0.0)
                    if time.perf_counter() > began[0] + TURN_SECONDS or count < 4:
                        break
                frame.device.finish()
            turns.append(self._end(began, [count]))
        self._headless_turns.append(turns)
        self._note()

    def _start(self, panels):
        return time.perf_counter(), time.process_time(), [_progress(panel) for panel in panels]

    def _end(self, began, samples) -> Turn:
        return Turn(samples, time.perf_counter() - began[0], time.process_time() - began[1])

    def time_seconds(self, work) -> float:
        """Seconds of a sample in the window, or the inverse of the sum of fractions."""
        work()
        if len(self._names) == 1:
            return self._seconds(self._turns[-1])
        return 1 / max(self._fraction(self._turns[-1], self._headless_turns[-1], self._clock), 1e-9)

    @property
    def _clock(self) -> str:
        on_processor = self._gpu.gl.software or self._gpu.device.properties.scalar_threads
        return "processor" if on_processor else "wall"

    def _seconds(self, turn: Turn) -> float:
        return getattr(turn, self._clock) / max(turn.samples[0], 1e-9)

    @staticmethod
    def _fraction(turn: Turn, headless: list[Turn], clock: str) -> float:
        """The window's rate as a fraction of the headless rate, summed over the panels."""
        seconds = [getattr(alone, clock) / alone.samples[0] for alone in headless]
        return sum(n * each for n, each in zip(turn.samples, seconds, strict=True)) / getattr(turn, clock)

    def peer(self) -> float:
        """Seconds of a headless sample; 1 for several panels."""
        if len(self._names) > 1:
            return 1.0
        return median(self._seconds(turns[0]) for turns in self._headless_turns)

    def _note(self) -> None:
        """Adds the rates and the fractions by both clocks to the record."""
        pairs = list(zip(self._turns, self._headless_turns, strict=True))
        for clock in ("wall", "processor"):
            self.facts[f"fraction by {clock}"] = round(median(self._fraction(*pair, clock) for pair in pairs), 3)
        walls = [[n / turn.wall for n in turn.samples] for turn in self._turns]
        alone = [[each.samples[0] / each.wall for each in turns] for turns in self._headless_turns]
        self.facts["samples/s"] = [round(float(x), 2) for x in np.median(walls, axis=0)]
        self.facts["headless samples/s"] = [round(float(x), 2) for x in np.median(alone, axis=0)]
        self.facts["displayed frames/s"] = round(self._frames / self._turns[-1].wall, 1)
        self.facts["answer ms"] = round(1000 * float(np.percentile(self._answers, ANSWER_PERCENTILE)), 2)


class ServedWindow(LiveWindow):
    """The same with the loop of `rayfold serve`, and a viewer on another thread that reads each frame."""

    def _loop_until(self, is_done) -> None:
        server = RemoteServer("127.0.0.1", 0)
        shown, wake = Shown(self._screen, server.viewers.first), server.viewers.wake
        before, self._screen.app.wake = self._screen.app.wake, wake.set
        viewer, until = threading.Thread(target=_view, args=(server.address,)), time.perf_counter() + OPEN_SECONDS
        viewer.start()
        try:
            while not is_done():
                wake.wait(shown.wait(1))
                wake.clear()
                began = time.perf_counter()
                assert began < until, "the window does not refine"
                drawn_at = shown._drawn_at
                shown.step(1)
                self._frames += shown._drawn_at != drawn_at
                self._answers.append(time.perf_counter() - began)
        finally:
            self._screen.app.wake = before
            server.close()
            viewer.join()


def _view(address: str) -> None:
    """Reads the frames of a served window until the server ends."""
    base, _, token = address.partition("?token=")
    number, headers = "0", {"Authorization": f"Bearer {token}"}
    with suppress(OSError, HTTPException):
        while True:
            asked = urllib.request.Request(f"{base}frame?after={number}", None, headers)
            with urllib.request.urlopen(asked, timeout=30) as answer:
                answer.read()
                number = answer.headers.get("X-Frame", number)


def _works(panel) -> bool:
    loop, is_whole = panel.draw_loop, panel.tiles.done == 0
    return loop.busy or not is_whole or not loop.shows_full_sample or loop.displayed_samples != panel.measured.samples


def _progress(panel) -> float:
    """The samples that a panel has drawn, with the fraction of the present one that is drawn."""
    return panel.measured.drawn + panel.tiles.done / panel.tiles.count


def live(gpu, name: str, names, group: str = "live") -> Case:
    """The window's rate of samples, with the headless rate as its peer."""
    window = ServedWindow(gpu, names) if group == "served" else LiveWindow(gpu, names)
    unit = "samples/s" if len(names) == 1 else "of headless"
    case = Case(f"{group}/{name}", unit, 1.0, window.run, window.check, window, window.peer, "headless", window.facts)
    return case


def table(records) -> str:
    """The rates of the refining panels beside the headless ones."""
    head = f"{'refining':16s} {'samples/s':>24s} {'headless':>24s} {'by wall':>8s} {'by processor':>13s}"
    lines = [f"{head} {'frames/s':>9s} {'answer ms':>10s}"]
    for record in records:
        if "headless samples/s" not in record:
            continue
        own, alone = (" ".join(f"{x:,.4g}" for x in record[key]) for key in ("samples/s", "headless samples/s"))
        lines.append(
            f"{record['case'].removeprefix('window/'):16s} {own:>24s} {alone:>24s} {record['fraction by wall']:8.2f} "
            f"{record['fraction by processor']:13.2f} {record['displayed frames/s']:9.1f} {record['answer ms']:10.1f}"
        )
    return "\n".join(lines) if len(lines) > 1 else ""
