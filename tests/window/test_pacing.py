"""How a window paces the draws of its panels: by the device's own clock, in batches, several in flight."""

from dataclasses import replace

import numpy as np
import pytest

from renderer.errors import KernelError
from renderer.gpu.device import Timer
from renderer.paths import ROOT
from renderer.pictures import load, open_picture
from renderer.window.app.backends import OffscreenWindow
from renderer.window.panels.draw_loop import MAX_IN_FLIGHT, MAX_QUEUED
from renderer.window.panels.frame_budget import batch_size
from renderer.window.panels.row_tiles import RowTiles
from renderer.window.state import main_loop
from tests.window.headless import frames, until, window

SIZE = (130, 100)
DEVICE_SECONDS = 0.001  # of a sample, by the device's clock


@pytest.fixture
def fast_device(monkeypatch):
    """A device that says that a sample takes a millisecond."""
    seconds = Timer.seconds
    monkeypatch.setattr(Timer, "seconds", lambda timer: min(seconds(timer), 0.0) + DEVICE_SECONDS)


class HeldDevice:
    """A device that finishes its draws when the test says so, whatever the machine does beside it."""

    holds = False  # no draw is done

    def fill(self, screen) -> int:
        """Turns of the window's loop while no draw gets done; returns the number of draws in flight."""
        self.holds = True
        loop(screen, 2 * MAX_QUEUED + 2, 0.001)
        self.holds = False
        return sum(panel.draw_loop.busy for panel in screen.app.panels)


@pytest.fixture
def held_device(fast_device, monkeypatch):
    """A HeldDevice; a draw that it does not hold is done as soon as the window asks."""
    device = HeldDevice()

    def is_done(timer: Timer) -> bool:
        return not device.holds and timer.seconds() > 0.0

    monkeypatch.setattr(Timer, "is_done", property(is_done))
    return device


def mirrors(samples: int = 100_000):
    scene = load(ROOT / "scenes" / "mirrors.toml")
    return replace(scene, settings=replace(scene.settings, samples=samples))


def loop(screen, count: int, seconds: float = 0.004) -> int:
    """Turns of the window's loop without waiting for the device; returns the number of frames."""
    drawn = 0
    for _ in range(count):
        screen.app.now.seconds += seconds
        if screen.ui.idle.needs_frame():
            OffscreenWindow.frame(screen)
            drawn += 1
    return drawn


def refined(screen, samples: int) -> None:
    """Lets the window refine until the active panel has so many samples."""
    screen.app.now.seconds += 10.0  # messages end, and nobody interacts
    panel = screen.app.panel
    until(screen, lambda: panel.error or panel.measured.samples >= samples and panel.budget.divisor == 1)
    assert not panel.error, panel.error


def assert_shows_the_whole_picture(screen, scene) -> None:
    """The active panel, once paused, has the bits of as many samples drawn without a window."""
    panel = screen.app.panel
    panel.paused = True
    until(screen, lambda: panel.draw_loop.displayed_samples == panel.measured.samples and not panel.draw_loop.busy)
    whole, size = open_picture(scene, screen.app.gpu), panel.drawn.size
    for _ in range(panel.measured.samples):
        frame = whole.draw(scene.settings, size, 0.0)
    assert np.array_equal(panel.display.frame.read(), frame.read())


def test_a_starved_thread_changes_no_tile(gl, gpu, fast_device):
    """Each draw is taken over 5 s after its device has done it."""
    with window([mirrors()], gpu, gl, SIZE) as screen:
        refined(screen, 2)
        panel = screen.app.panel
        for _ in range(6):
            screen.app.now.seconds += 0.01
            OffscreenWindow.frame(screen)
            screen.app.now.seconds += 5.0
            panel.draw_loop.wait_idle()
        panel.restart()
        frames(screen, 3)
        refined(screen, 3)
        assert panel.tiles.count == 1 and panel.budget.divisor == 1
        assert 0 < panel.measured.sample_seconds <= DEVICE_SECONDS


def test_a_picture_that_its_first_samples_split_is_whole_once_it_is_warm(gl, gpu, monkeypatch):
    cost, seconds = [0.2], Timer.seconds  # of a draw, by the device's clock; CPU_TILE_SECONDS is 0.06
    monkeypatch.setattr(Timer, "seconds", lambda timer: min(seconds(timer), 0.0) + cost[0])
    scene = mirrors()
    with window([scene], gpu, gl, SIZE) as screen:
        refined(screen, 2)
        panel = screen.app.panel
        scene = replace(scene, settings=replace(scene.settings, max_depth=5))
        panel.show(scene)
        until(screen, lambda: panel.drawn.settings == scene.settings)
        refined(screen, 1)
        assert panel.tiles.count > 1
        cost[0] = 0.001
        until(screen, lambda: panel.tiles.count == 1)
        assert panel.measured.samples < 4, "the picture begins again"
        refined(screen, 20)
        assert_shows_the_whole_picture(screen, scene)


def test_batches_of_samples_in_flight_give_the_bits_of_single_samples(gl, gpu, held_device):
    scene = mirrors()
    with window([scene], gpu, gl, SIZE) as screen:
        refined(screen, 2)
        panel, batches, in_flight = screen.app.panel, [], []
        while panel.measured.samples < 40:
            in_flight.append(held_device.fill(screen))
            before = panel.measured.samples
            panel.draw_loop.poll()
            batches.append(panel.measured.samples - before)
        assert MAX_IN_FLIGHT <= min(in_flight) <= max(in_flight) <= MAX_QUEUED and max(batches) > 4 * MAX_IN_FLIGHT
        assert_shows_the_whole_picture(screen, scene)


def test_two_panels_have_four_short_draws_in_flight(gl, gpu, held_device):
    """Together they take as long as those of one panel alone."""
    with window([mirrors(), mirrors()], gpu, gl, (260, 100)) as screen:
        panels = list(screen.app.panels)
        until(screen, lambda: min(panel.measured.samples for panel in panels) > 2)
        assert held_device.fill(screen) == MAX_QUEUED and all(panel.draw_loop.busy for panel in panels)
        alone, two, three = (batch_size(panels[0].last_frame, DEVICE_SECONDS, count) for count in (1, 2, 3))
        assert alone > 4 and two == three == alone // 2


def test_a_picture_that_goes_on_without_an_end_is_drawn_in_batches(gl, gpu, fast_device):
    """Also where each draw is done before the next one, so that all samples of the scene are drawn and none is due."""
    with window([mirrors(4)], gpu, gl, SIZE) as screen:
        screen.app.panel.free_run = True
        refined(screen, 16)
        before = screen.app.panel.measured.samples
        for _ in range(3):
            screen.app.panel.draw_loop.wait_idle()
            loop(screen, 1)
        assert screen.app.panel.measured.samples - before > 20


def test_the_last_batch_ends_at_the_last_sample_and_is_displayed(gl, gpu, fast_device):
    with window([mirrors(13)], gpu, gl, SIZE) as screen:
        refined(screen, 13)
        panel = screen.app.panel
        until(screen, lambda: panel.draw_loop.is_finished)
        frames(screen, 3)
        assert panel.measured.samples == panel.draw_loop.displayed_samples == 13


def test_a_refining_window_draws_frames_for_displayed_samples_only(gl, gpu, fast_device):
    with window([mirrors()], gpu, gl, SIZE) as screen:
        refined(screen, 2)
        screen.app.now.seconds += 10.0  # the display has settled
        screen.app.loop.display_interval = 1.0
        while main_loop.activity(screen.app, screen.app.now()) == "idle":
            frames(screen)
        before = screen.app.panel.measured.samples
        drawn, count = 0, 0
        while screen.app.panel.measured.samples < before + 100:
            drawn, count = drawn + loop(screen, 1, 1e-4), count + 1
        assert drawn < 8, (drawn, count)


def test_a_change_waits_for_two_draws_at_most_and_a_drag_draws_single_samples(gl, gpu, held_device):
    with window([mirrors()], gpu, gl, SIZE) as screen:
        refined(screen, 8)
        panel = screen.app.panel
        assert held_device.fill(screen) >= MAX_IN_FLIGHT
        held_device.holds, old = True, panel.drawn
        panel.show(replace(panel.scene, settings=replace(panel.scene.settings, max_depth=2)), moved=True)
        loop(screen, 1, 0.0)
        assert panel.drawn == old, "the new picture waits for the old draws"
        held_device.holds = False
        loop(screen, 1, 0.0)
        assert panel.drawn.settings.max_depth == 2 and panel.draw_loop.busy == 1
        for _ in range(10):
            held_device.holds = not held_device.holds
            loop(screen, 3, 0.001)
            assert panel.draw_loop.busy <= 1 and panel.tiles.repeat == 1


def test_an_error_of_one_of_two_draws_costs_its_panel(gl, gpu, fast_device, monkeypatch):
    with window([mirrors(), mirrors()], gpu, gl, (260, 100)) as screen:
        refined(screen, 3)
        first, second = screen.app.panels
        until(screen, lambda: second.measured.samples > 2)
        start = RowTiles.start_transfer

        def fails(tiles, frame):
            def texture():
                raise KernelError("a kernel failed")

            return texture if tiles is first.tiles else start(tiles, frame)

        monkeypatch.setattr(RowTiles, "start_transfer", fails)
        until(screen, lambda: first.error)
        samples = second.measured.samples
        until(screen, lambda: second.measured.samples > samples)
        assert "a kernel failed" in first.error and not second.error and not first.draw_loop.busy


def test_a_timer_tells_device_time_without_waiting(gl, gpu):
    buffer = gpu.device.buffer(1 << 20)
    timer = gpu.device.start_timer()
    buffer.fill(1)
    timer.stop()
    assert 0 <= timer.seconds() < 60 and timer.is_done
    timer = gl.start_timer()
    gl.texture((64, 64)).read()
    timer.stop()
    assert timer.is_done and 0 <= timer.seconds() < 60
