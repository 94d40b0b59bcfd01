"""The draw loop of one panel: the key, resolution and tiles of the next draw, and its completion.

The main loop (state/main_loop.py) calls needs_draw(), draw() and poll(). Compute devices work while the window stays
responsive: up to two draws are in flight, so that a device never waits for the window. poll() takes over the draws that
are done: it adds their device time to the sample's, composes their tile and displays the picture. At rest a draw has as
many samples as fit in its budget, by the device's own clock. Not every draw is displayed; if it is, its frame is copied
to a texture right after it, because the next draw overwrites the frame. GL passes run in the window's own context.
While the user interacts, a draw is one sample, one draw is in flight, and a slow picture is drawn at a lower
resolution; at rest a slow picture is drawn in tiles of rows, each short enough for the window to respond and for a
change to interrupt the sample.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from renderer.gpu.device import Timer
from renderer.gpu.gl import GlTimer, Texture
from renderer.pictures.picture import Size
from renderer.scene.animation import settings_at
from renderer.scene.schema import PictureSettings
from renderer.window.boundary import contained
from renderer.window.document.items import without
from renderer.window.panels import frame_budget, last_pictures
from renderer.window.panels.frame_budget import FRAME_SECONDS, sample_budget, tile_budget
from renderer.window.panels.panel_picture import PanelPicture
from renderer.window.panels.row_tiles import DrawKey, RowTiles

RequestedState = tuple[str, PictureSettings]  # the kind of picture and the scene's settings
MAX_IN_FLIGHT = 2  # draws on a compute device, of all panels: one runs while the window takes over the other
# Up to MAX_QUEUED draws if they take less than QUEUED_SECONDS in all: with two in flight, the device would wait while
# the window draws (the demo's four panels on an H200). main_loop.py applies the limits to the draws of all panels.
MAX_QUEUED, QUEUED_SECONDS = 4, 0.012
# Samples after which the cost of a tiled picture is known: the first ones prepare launches and buffers.
WARM_SAMPLES = 4
KEEP_SECONDS = 5.0  # of drawing, after which a picture is kept although its panel stays open


class Draw(NamedTuple):
    """A draw in flight: `samples` samples of tile number `tile`."""

    tiles: RowTiles
    tile: int
    samples: int
    timer: Timer | GlTimer
    is_timed: bool  # the timer covers the draw alone
    # Returns the frame's texture after the draw; None if the frame is not displayed.
    texture: Callable[[], Texture] | None

    @property
    def is_last_tile(self) -> bool:
        """True if the samples are complete after this tile."""
        return self.tile == self.tiles.count - 1

    @property
    def is_done(self) -> bool:
        """True if the device has finished the draw, or has failed."""
        with suppress(Exception):  # raised again by the timer's seconds()
            return self.timer.is_done
        return True


class DrawLoop:
    """Draws the samples of a panel's picture, one tile at a time."""

    def __init__(self, panel: PanelPicture):
        self.panel = panel
        self.size: Size = (1, 1)  # the picture's size in pixels
        self.drawn_time = panel.scene_time  # scene time, in seconds, of the sample that is being drawn
        self.started = 0.0  # time of the last draw, in seconds of the panel's clock
        self.displayed_samples = 0  # samples of the displayed picture
        # _window_settings: the settings without hidden items and costly effects, which a draw takes.
        # draw_key() makes _window_settings anew if the settings or the hidden items are not these two objects.
        self._window_source: tuple[object, object] = (None, None)
        self._window_settings: Any = None
        self._drawing_state: RequestedState | None = None  # the state of the sample that is being drawn
        self._displayed_state: RequestedState | None = None  # the state of the last displayed sample
        self._in_flight: list[Draw] = []  # the oldest first
        self._spent_seconds = 0.0  # device time of the tiles of the current sample
        # See _replan_tiles(): the number of tiles was corrected after the first samples; it was not yet compared with
        # the cost of warm samples.
        self._replanned, self._warms_up = False, True
        # In seconds of the panel's clock: the time of the picture's first draw; the time from which the next sample is
        # displayed.
        self._first_at = self._show_at = 0.0
        self._display_interval = FRAME_SECONDS  # longest time between two displays, in seconds; see draw()
        self._is_shown = True  # the sample that is being drawn will be displayed
        self._kept: DrawKey | None = None  # the key of the picture that _display() kept last, see keep_picture()
        self._is_partial = False  # the displayed picture has tiles of two samples, new ones above old ones

    # State

    def _requested_state(self) -> RequestedState:
        """The state that the panel should display, without tone mapping."""
        return self.panel.scene.picture, self.panel.scene.settings

    @property
    def busy(self) -> int:
        """The number of draws that a device has not finished yet."""
        return len(self._in_flight)

    @property
    def queued_seconds(self) -> float:
        """The expected device time of the draws in flight, in seconds; infinite before a sample was timed."""
        if not self._in_flight:
            return 0.0
        if not self.panel.budget.is_measured:
            return math.inf
        sample = self.panel.budget.seconds(self.size[0] * self.size[1])
        return sum(draw.samples * sample / draw.tiles.count for draw in self._in_flight)

    @property
    def is_ready(self) -> bool:
        """True if poll() has a draw to take over."""
        return bool(self._in_flight) and self._in_flight[0].is_done and not self.panel.work.is_waiting

    @property
    def is_finished(self) -> bool:
        """True if the picture has all samples that it asks for."""
        measured = self.panel.measured
        return not self.busy and not self.panel.work.is_waiting and 0 < measured.target_samples <= measured.samples

    @property
    def refines(self) -> bool:
        """True if the panel shares the compute device: samples are left, or it renders continuously (free_run)."""
        panel = self.panel
        return panel.uses_compute_device and (not self.is_finished or panel.free_run and not panel.paused)

    @property
    def shows_full_sample(self) -> bool:
        """True if complete samples of the current settings are displayed: none outdated, none partly drawn."""
        panel = self.panel
        complete = panel.display.texture is not None and panel.tiles is not None and not self._is_partial
        return complete and panel.measured.samples > 0 and self._displayed_state == self._requested_state()

    @property
    def displayed_settings(self) -> PictureSettings | None:
        """The settings of the displayed picture; None without one, and for a picture of another kind than the scene."""
        kind, settings = self._displayed_state or ("", None)
        return settings if kind == self.panel.scene.picture else None

    @property
    def sample_key(self) -> tuple[DrawKey | None, int, bool]:
        """A key that changes when other settings are displayed, their samples double or the last one is displayed."""
        samples = self.displayed_samples
        return self.panel.drawn, samples.bit_length(), samples >= self.panel.measured.target_samples

    def needs_draw(self, size: Size, now: float) -> bool:
        """True if there is something to draw for a panel of `size` pixels."""
        panel, measured, budget = self.panel, self.panel.measured, self.panel.budget
        if panel.work.is_waiting:  # for a compiler: poll() resumes the draw
            return False
        if not panel.is_open:  # the first draw opens the picture
            return True
        if panel.tiles is None or panel.error or self.busy and not self._may_queue(now):
            return False
        is_changed = self.draw_key(size, now) != panel.drawn
        # `done` tiles of a sample: 0 between two samples
        if self.busy and (is_changed or measured.samples == 0 and not panel.tiles.done):
            return False  # the number of tiles is unknown before the first sample is timed
        if is_changed or measured.samples == 0 or panel.tiles.done:
            return True  # a paused panel too draws a complete sample after a change
        if self._is_behind:
            return True
        if not budget.is_measured and budget.divisor > 1 and not budget.fixed_divisor:
            return True  # the first draw was coarse and unmeasured: draw again, to learn what full size costs
        if panel.paused and not panel.is_animated:
            return False
        is_refined = self._submitted >= measured.target_samples  # samples of a paused scene time count too
        return panel.free_run and not panel.paused or not is_refined

    def _may_queue(self, now: float) -> bool:
        """True if another draw may be started while draws are in flight.

        Not on GL, while the user interacts, or while the number of tiles may still change. Reports and inspections read
        the picture between two samples, so a sample does not begin while one of them is due.
        """
        panel = self.panel
        if len(self._in_flight) >= MAX_QUEUED or not panel.uses_compute_device or panel.is_interacting(now):
            return False
        if self._warms_up and panel.tiles is not None and panel.tiles.count > 1:
            return False
        is_read_due = panel.measured.needs_report(now, now - self._first_at) or panel.inspection.is_due(panel, now)
        begins_sample = panel.tiles is not None and panel.tiles.done == 0
        return not panel.is_playing and not (is_read_due and begins_sample)

    @property
    def _submitted(self) -> int:
        """Samples that are drawn or on their way."""
        return self.panel.measured.samples + sum(draw.samples for draw in self._in_flight if draw.is_last_tile)

    @property
    def _is_behind(self) -> bool:
        """True if samples were drawn after the displayed one, and no more follow: the last must still be displayed."""
        panel, samples = self.panel, self.panel.measured.samples
        has_ended = not self.busy and (panel.paused or not panel.free_run and self.is_finished)
        is_whole = panel.tiles is not None and panel.tiles.done == 0
        return has_ended and is_whole and samples > 0 and samples != self.displayed_samples

    # The next draw, and the time that it may take

    def draw_key(self, size: Size, now: float) -> DrawKey:
        """The settings, scene time and resolution of the next draw for a panel of `size` pixels."""
        panel, size = self.panel, self.panel.fixed_size or size
        continues = panel.tiles is not None and panel.tiles.done and panel.is_playing
        scene_time = self.drawn_time if continues else panel.scene_time  # the same for all tiles of a sample
        settings = settings_at(panel.scene, scene_time)
        if settings is not self._window_source[0] or panel.hidden is not self._window_source[1]:
            self._window_source = settings, panel.hidden
            self._window_settings = without(settings, panel.hidden).for_window()
        settings = self._window_settings
        panel.budget.work = panel.pixel_work(settings)  # the budget's costs are in proportion to it
        divisor = self._divisor(size, now)
        time_of_picture = scene_time if panel.depends_on_time(settings) else 0.0
        return DrawKey(settings, time_of_picture, (max(1, size[0] // divisor), max(1, size[1] // divisor)))

    def _divisor(self, size: Size, now: float) -> int:
        """The resolution divisor at which a draw fits its budget."""
        panel, size = self.panel, self.panel.fixed_size or size
        if not panel.budget.is_measured:
            return panel.budget.divisor_for(size[0] * size[1], 0.0)
        assert panel.tiles is not None
        rest, changed = now - panel.interacted_at, self._displayed_state != self._requested_state()
        can_split = partial(panel.tiles.can_split, panel.scene.settings)
        if panel.keeps_pixels:  # the same size while the user interacts, or the coarse pixels would stay
            seconds = sample_budget(panel.last_frame, True, math.inf, False, can_split)
            return panel.budget.divisor_for(size[0] * size[1], seconds, frame_budget.STEADY_HYSTERESIS)
        seconds = sample_budget(panel.last_frame, panel.is_playing, rest, changed, can_split)
        return panel.budget.divisor_for(size[0] * size[1], seconds / panel.readable_samples(now))

    def expected_seconds(self, size: Size, now: float) -> float:
        """Seconds for which the next draw will block the UI thread; 0 if unknown or on a compute device."""
        panel, size = self.panel, self.panel.fixed_size or size
        if panel.tiles is None or not panel.budget.is_measured or not isinstance(panel.last_frame, Texture):
            return 0.0
        divisor = self._divisor(size, now)
        return panel.budget.seconds(size[0] * size[1] / divisor**2, divisor) / panel.tiles.count

    # Drawing

    def draw(self, size: Size, now: float, panels: int = 1, display_interval: float = FRAME_SECONDS) -> None:
        """Draws the next tile for a panel of `size` pixels; does not wait for a compute device.

        `panels` share the device; 0: a draw is one sample, because the user moves another panel. `display_interval` is
        the longest time in seconds between two displays of a picture that refines.
        """
        self._display_interval = max(display_interval, FRAME_SECONDS)
        self.panel.work.start(partial(self._draw, size, now, panels))

    def _draw(self, size: Size, now: float, panels: int) -> None:
        """Draws the next sample or tile of the panel's picture; starts a new picture if its key has changed."""
        panel, measured = self.panel, self.panel.measured
        if not panel.is_open:
            self._in_flight = []  # draws of the picture that is replaced
            panel.open_picture()
        if panel.tiles is None:
            return
        key = self.draw_key(size, now)
        if self.is_finished:  # the time at rest is no time between two frames
            measured.frame_rate.pause()
            measured.sample_rate.pause()
        is_new = key != panel.drawn
        if is_new and panel.drawn and key.settings != panel.drawn.settings:
            panel.budget.keep_as_estimate()
        panel.budget.divisor = self._divisor(size, now)
        if is_new:
            if not (panel.tiles.done and panel.is_playing):  # else the other tiles of a sample are of its scene time
                self.drawn_time = panel.scene_time
            self._replanned, self._warms_up = False, True
            self._start_picture(key)
        self.started = panel.now()
        with panel.contain_errors():
            self.size = key.size
            if self._is_behind:
                self._display(panel.tiles.latest(), True)
                return
            if panel.tiles.done == 0:
                self._plan_sample(now, panels)
            self._submit(key)
            panel.drop_fallback()
            measured.target_samples = panel.tiles.picture.sample_count(key.settings, key.size)
        if self._in_flight and panel.draws_in_software:  # GL on the CPU: waits for the draw at once
            self._take_over()

    def _plan_sample(self, now: float, panels: int) -> None:
        """Chooses the samples that are drawn at once, and whether they are displayed.

        Samples are displayed less often the longer a picture has been refined: after a quarter of the time since its
        first draw, within FRAME_SECONDS and the display interval. The first and the last sample are always displayed.
        """
        panel, measured, tiles = self.panel, self.panel.measured, self.panel.tiles
        assert tiles is not None
        left = measured.target_samples - self._submitted  # the target is unknown before the first draw
        count, interacts = panel.readable_samples(now), panel.is_interacting(now)
        if panels and tiles.count == 1 and panel.budget.is_measured and not interacts:
            seconds = panel.budget.seconds(self.size[0] * self.size[1])
            batch = frame_budget.batch_size(panel.last_frame, seconds, panels)
            count = max(count, min(batch, self._submitted))  # a draw at most doubles the number of samples
        if left > 0 or not panel.free_run:
            count = min(count, left)
        tiles.repeat = max(count, 1)
        is_end = self._submitted == 0 or 0 < left <= tiles.repeat
        self._is_shown = is_end or interacts or panel.is_playing or now >= self._show_at
        if self._is_shown:
            pause = (now - self._first_at) / 4
            self._show_at = now + min(max(pause, FRAME_SECONDS), self._display_interval)

    def _submit(self, key: DrawKey) -> None:
        """Launches the next tile, between two events of its device."""
        panel, tiles, before = self.panel, self.panel.tiles, self.panel.last_frame
        assert tiles is not None
        tile, resumed_at = tiles.done, panel.work.resumed_at
        timer = before.device.start_timer() if before is not None else None  # the first draw shows the device
        try:
            frame = panel.last_frame = tiles.draw(key.time)
            texture = tiles.start_transfer(frame) if self._is_shown else None
        finally:
            if timer is not None:
                timer.stop()
        is_timed = before is not None and before.device is frame.device and panel.work.resumed_at == resumed_at
        if timer is None or not is_timed:  # the device was unknown, or a compiler worked meanwhile
            timer = frame.device.start_timer()
            timer.stop()
        self._in_flight.append(Draw(tiles, tile, tiles.repeat, timer, is_timed, texture))
        if not isinstance(frame, Texture):
            waits = panel.host.completion_thread.submit(timer.seconds)  # blocks until the draw is done
            waits.add_done_callback(lambda _: panel.host.wake())

    def _start_picture(self, key: DrawKey) -> None:
        """Starts the first sample of `key`, in as many tiles as its expected duration requires."""
        panel = self.panel
        assert panel.tiles is not None
        self._drawing_state = self._requested_state()
        seconds = panel.budget.expected(key.size[0] * key.size[1]) * panel.readable_samples(panel.now())
        count = panel.tiles.tile_count(key.settings, seconds, tile_budget(panel.last_frame), key.size[1])
        panel.tiles.start(key.settings, key.size, count, panel.display.frame)
        panel.drawn, panel.measured.samples, self._spent_seconds = key, 0, 0.0
        self._first_at = panel.now()

    def _replan_tiles(self, draw: Draw, seconds: float) -> None:
        """Corrects the number of tiles after the first samples, which took `seconds`, and once they are warm.

        The first samples show whether the expected time was wrong by a factor of 2 or more, but they are slower than
        later ones: a picture that was split because of them is drawn in fewer tiles again if its warm samples fit.
        A correction starts the picture anew, so it is not made for pictures of very few samples.
        """
        panel, measured, key = self.panel, self.panel.measured, self.panel.drawn
        if panel.tiles is None or key is None:
            return
        before, count_for = panel.tiles.count, partial(panel.tiles.tile_count, key.settings)
        limits = tile_budget(panel.last_frame), self.size[1]
        if measured.samples == draw.samples and not self._replanned:  # these are the picture's first samples
            count = count_for(seconds, *limits)
            self._replanned = not 0.5 <= count / before <= 2
            if self._replanned and (count > before or measured.target_samples > 2):
                self._start_picture(key)
        elif self._warms_up and measured.samples >= WARM_SAMPLES and not self.busy:
            self._warms_up = False
            warm = panel.budget.seconds(self.size[0] * self.size[1]) * panel.readable_samples(panel.now())
            if count_for(warm, *limits) < before and measured.target_samples > 2 * WARM_SAMPLES:
                self._start_picture(key)

    # Completion

    def wait_idle(self) -> None:
        """Blocks until the device has finished its draws for this panel, and takes them over.

        Does not wait for a compiler.
        """
        while self._in_flight and not self.panel.work.is_waiting:
            self.panel.work.start(self._take_over)

    def poll(self) -> None:
        """Continues suspended work, takes over the draws that are done, and updates what is made of their frames."""
        panel = self.panel
        self._poll_denoising()
        panel.work.poll()
        while self.is_ready:
            panel.work.start(self._take_over)
        if not self.busy:
            panel.inspection.update(panel, panel.now())
        panel.comparison.poll(panel.display, panel.scene.tone)

    def _take_over(self) -> None:
        draw = self._in_flight.pop(0)
        with self.panel.contain_errors():
            seconds = draw.timer.seconds()
            if draw.tiles is self.panel.tiles:  # the picture may have failed and been replaced meanwhile
                self._complete(draw, seconds if draw.is_timed else math.nan)

    def _complete(self, draw: Draw, seconds: float) -> None:
        """Takes over a tile that took `seconds` of device time, and records the sample if it was its last tile."""
        panel = self.panel
        self._spent_seconds += seconds  # one tile that was not timed (NaN) makes the sample's time NaN
        if panel.last_frame is not None:
            panel.measured.device = panel.last_frame.device.name
        picture = draw.tiles.store_tile(draw.tile, draw.texture()) if draw.texture is not None else None
        if draw.is_last_tile:
            self._complete_sample(draw)
        # While it plays, a sample's tiles beside the tiles of the sample before would show two scene times
        if picture is not None and (draw.is_last_tile or not panel.is_playing):
            self._display(picture, draw.is_last_tile)

    def _display(self, picture: Texture, is_complete: bool) -> None:
        """Displays the linear picture; one that is not complete has older pixels where no tile is drawn yet."""
        panel, now = self.panel, self.panel.now()
        assert panel.tiles is not None
        panel.display.frame, panel.measured.transfer = picture, panel.tiles.transfer
        self._is_partial = not is_complete
        if is_complete:
            self._displayed_state, self.displayed_samples = self._drawing_state, panel.measured.samples
            panel.measured.frame_rate.add(now)
            if self.displayed_samples in (1, panel.measured.target_samples):
                is_at_rest = not panel.is_playing and not panel.is_interacting(now)  # reading waits for the device
                panel.hint = " ".join(panel.tiles.picture.hints_on(picture)) if is_at_rest else ""
        # Tiles of the first sample are displayed soon, since nothing else is seen; tiles of later ones seldom.
        pause = max(2 * self._display_interval if panel.measured.samples else 0.0, frame_budget.PREVIEW_INTERVAL)
        panel.display.show(picture, panel.scene.tone, now, 0.0 if is_complete else pause)
        if is_complete and self._kept != panel.drawn and now - self._first_at > KEEP_SECONDS and not panel.is_playing:
            self._kept = panel.drawn
            self.keep_picture()

    def keep_picture(self) -> None:
        """Keeps the displayed picture of a saved scene, as the preview of the next start."""
        panel, host, texture = self.panel, self.panel.host, self.panel.display.texture
        if host.pictures and texture is not None and self.shows_full_sample and not panel.has_unsaved_work:
            host.completion_thread.submit(last_pictures.keep, host.pictures, panel.scene, texture.read())

    def _complete_sample(self, draw: Draw) -> None:
        """Records complete samples."""
        panel, measured, tiles, now = self.panel, self.panel.measured, draw.tiles, self.panel.now()
        pass_seconds, self._spent_seconds = self._spent_seconds, 0.0
        measured.add_samples(draw.samples, pass_seconds, now)
        panel.budget.record(pass_seconds / draw.samples, self.size[0] * self.size[1])
        if not self.busy:
            measured.update_report(tiles.report, now, now - self._first_at)
        panel.denoiser.displayed = False
        if panel.budget.is_measured and not math.isnan(pass_seconds):
            self._replan_tiles(draw, pass_seconds)
        is_last = measured.samples == measured.target_samples and panel.budget.divisor == 1
        if is_last and panel.denoiser.enabled and panel.can_denoise:
            self._start_denoising()

    # Denoising

    def toggle_denoise(self) -> None:
        """Turns the denoising of finished pictures on or off."""
        panel, denoiser = self.panel, self.panel.denoiser
        denoiser.enabled = not denoiser.enabled
        if not denoiser.enabled and denoiser.displayed:
            panel.drawn = None  # the samples are drawn anew: the denoised picture has taken their place
        elif self.is_finished and self.shows_full_sample:
            panel.work.start(self._start_denoising)

    def _start_denoising(self) -> None:
        panel, frame = self.panel, self.panel.display.frame
        assert panel.tiles is not None and frame is not None and panel.drawn is not None
        with contained("denoising", self._stop_denoising):
            panel.denoiser.start(frame, panel.tiles, panel.drawn)

    def _poll_denoising(self) -> None:
        panel = self.panel
        with contained("denoising", self._stop_denoising):
            image = panel.denoiser.poll(panel.drawn)
            if image is not None and self.is_finished:
                panel.denoiser.displayed = True
                panel.display.show(panel.gpu.gl.texture(self.size).write(image), panel.scene.tone, panel.now())

    def _stop_denoising(self, error: Exception, sentence: str) -> None:
        self.panel.update_error, self.panel.denoiser.enabled = sentence, False
