"""The draw loop of one panel: the key, resolution and tiles of the next draw, and its completion.

The main loop (state/main_loop.py) calls needs_draw(), draw() and poll(). Compute devices work while the window stays
responsive: a thread waits for the queue, and poll() displays the frame when it is complete. GL passes run in the
window's own context. While the user interacts, a slow picture is drawn at a lower resolution; at rest it is drawn in
tiles of rows, each short enough for the window to respond and for a change to interrupt the sample.
"""

from concurrent.futures import Future
from functools import partial

from renderer.gpu.gl import Texture
from renderer.pictures.picture import Size
from renderer.scene.animation import settings_at
from renderer.scene.schema import PictureSettings
from renderer.window.boundary import contained
from renderer.window.panels.completion import finish_time
from renderer.window.panels.frame_budget import sample_budget, tile_budget
from renderer.window.panels.panel_picture import PanelPicture
from renderer.window.panels.row_tiles import DrawKey

RequestedState = tuple[str, PictureSettings]  # the kind of picture and the scene's settings


class DrawLoop:
    """Draws the samples of a panel's picture, one tile at a time."""

    def __init__(self, panel: PanelPicture):
        self.panel = panel
        self.size: Size = (1, 1)  # the picture's size in pixels
        self.drawn_time = panel.scene_time  # scene time, in seconds, of the sample that is being drawn
        self.started = 0.0  # time of the last draw, in seconds of the panel's clock
        self._drawing_state: RequestedState | None = None
        self._displayed_state: RequestedState | None = None  # the state of the last complete sample
        self._pending: Future[float] | None = None  # a draw on a compute device
        self._spent_seconds = 0.0  # drawing the tiles of the current sample
        self._replanned = False  # the number of tiles was corrected after the first sample

    # State

    def _requested_state(self) -> RequestedState:
        """The state that the panel should display, without tone mapping."""
        return self.panel.scene.picture, self.panel.scene.settings

    @property
    def busy(self) -> bool:
        """True while a compute device draws for this panel."""
        return self._pending is not None

    @property
    def is_finished(self) -> bool:
        """True if all samples are drawn."""
        return not self.busy and not self.panel.work.is_waiting and self.panel.measured.has_all_samples

    @property
    def shows_full_sample(self) -> bool:
        """True if complete samples of the current settings are displayed: none outdated, none partly drawn."""
        panel = self.panel
        complete = panel.display.texture is not None and panel.tiles is not None and panel.tiles.done == 0
        return complete and panel.measured.samples > 0 and self._displayed_state == self._requested_state()

    @property
    def sample_key(self) -> tuple[DrawKey | None, int, bool]:
        """A key that changes when other settings are drawn, the sample count doubles or the last sample is drawn."""
        measured = self.panel.measured
        return self.panel.drawn, measured.samples.bit_length(), measured.samples >= measured.target_samples

    def needs_draw(self, size: Size, now: float) -> bool:
        """True if there is something to draw for a panel of `size` pixels."""
        panel, measured, budget = self.panel, self.panel.measured, self.panel.budget
        if panel.work.is_waiting:
            return False
        if not panel.is_open:
            return True
        if panel.tiles is None or panel.error or self.busy:
            return False
        if self.draw_key(size, now) != panel.drawn or measured.samples == 0 or panel.tiles.done:
            return True  # a paused panel too draws a complete sample after a change
        if not budget.is_measured and budget.divisor > 1 and not budget.fixed_divisor:
            return True  # the first draw was coarse and unmeasured: draw again, to learn what full size costs
        if panel.paused and not panel.is_animated:
            return False
        is_refined = measured.samples >= measured.target_samples  # samples of a paused scene time count too
        return panel.free_run and not panel.paused or not is_refined

    # The next draw, and the time that it may take

    def draw_key(self, size: Size, now: float) -> DrawKey:
        """The settings, scene time and resolution of the next draw for a panel of `size` pixels."""
        panel = self.panel
        continues = panel.tiles is not None and panel.tiles.done and panel.is_playing
        scene_time = self.drawn_time if continues else panel.scene_time  # the same for all tiles of a sample
        settings = settings_at(panel.scene, scene_time)
        panel.budget.work = panel.pixel_work(settings)
        divisor = self._divisor(size, now)
        time_of_picture = scene_time if panel.depends_on_time(settings) else 0.0
        return DrawKey(settings, time_of_picture, (max(1, size[0] // divisor), max(1, size[1] // divisor)))

    def _divisor(self, size: Size, now: float) -> int:
        """The resolution divisor at which a draw fits its budget."""
        panel = self.panel
        if not panel.budget.is_measured:
            return panel.budget.divisor_for(size[0] * size[1], 0.0)
        assert panel.tiles is not None
        rest, changed = now - panel.interacted_at, self._displayed_state != self._requested_state()
        can_split = partial(panel.tiles.can_split, panel.scene.settings)
        seconds = sample_budget(panel.last_frame, panel.is_playing, rest, changed, can_split)
        return panel.budget.divisor_for(size[0] * size[1], seconds / panel.readable_samples(now))

    def expected_seconds(self, size: Size, now: float) -> float:
        """Seconds for which the next draw will block the UI thread; 0 if unknown or on a compute device."""
        panel = self.panel
        if panel.tiles is None or not panel.budget.is_measured or not isinstance(panel.last_frame, Texture):
            return 0.0
        divisor = self._divisor(size, now)
        return panel.budget.seconds(size[0] * size[1] / divisor**2, divisor) / panel.tiles.count

    # Drawing

    def draw(self, size: Size, now: float) -> None:
        """Draws the next tile for a panel of `size` pixels; does not wait for a compute device."""
        self.panel.work.start(partial(self._draw, size, now))

    def _draw(self, size: Size, now: float) -> None:
        panel, measured = self.panel, self.panel.measured
        if not panel.is_open:
            self._pending = None
            panel.open_picture()
        if panel.tiles is None:
            return
        key = self.draw_key(size, now)
        if self.is_finished:
            measured.frame_rate.pause()
        if key != panel.drawn:
            if panel.drawn and key.settings != panel.drawn.settings:
                panel.budget.keep_as_estimate()
            if not (panel.tiles.done and panel.is_playing):
                self.drawn_time = panel.scene_time
            panel.budget.divisor, self._replanned = self._divisor(size, now), False
            self._start_picture(key)
        panel.budget.divisor = self._divisor(size, now)
        self.started = panel.now()
        with panel.errors_stay():
            self.size = key.size
            if panel.tiles.done == 0:
                left = measured.target_samples - measured.samples  # the target is unknown before the first draw
                panel.tiles.repeat = max(1, min(panel.readable_samples(now), left))
            frame = panel.last_frame = panel.tiles.draw(key.time)
            panel.drop_fallback()
            measured.target_samples = panel.tiles.picture.sample_count(key.settings, key.size)
            if isinstance(frame, Texture):
                panel.gpu.gl.finish()
                self._complete(panel.now())
            else:
                self._pending = panel.host.completion_thread.submit(finish_time, frame.device, panel.now)
                self._pending.add_done_callback(lambda _: panel.host.wake())

    def _start_picture(self, key: DrawKey) -> None:
        """Starts the first sample of `key`, in as many tiles as its expected duration requires."""
        panel = self.panel
        assert panel.tiles is not None
        self._drawing_state = self._requested_state()
        seconds = panel.budget.expected(key.size[0] * key.size[1]) * panel.readable_samples(panel.now())
        count = panel.tiles.tile_count(key.settings, seconds, tile_budget(panel.last_frame), key.size[1])
        panel.tiles.start(key.settings, key.size, count, panel.display.frame)
        panel.drawn, panel.measured.samples, self._spent_seconds = key, 0, 0.0

    def _replan_tiles(self, seconds: float) -> None:
        """Changes the number of tiles if the first samples, which took `seconds`, took more or less than expected."""
        panel = self.panel
        assert panel.tiles is not None and panel.drawn is not None
        count = panel.tiles.tile_count(panel.drawn.settings, seconds, tile_budget(panel.last_frame), self.size[1])
        if not self._replanned and not 0.5 <= count / panel.tiles.count <= 2:
            self._replanned = True
            if count > panel.tiles.count or panel.measured.target_samples > 2:
                self._start_picture(panel.drawn)

    # Completion

    def wait_idle(self) -> None:
        """Blocks until the compute device has finished its draw for this panel, and displays the frame.

        Does not wait for a compiler.
        """
        if self._pending is not None:
            self._pending.exception()
            self.poll()

    def poll(self) -> None:
        """Continues suspended work, and displays the frame that a compute device has finished, if there is one."""
        panel = self.panel
        self._poll_denoising()
        panel.work.poll()
        panel.inspection.update(panel, panel.now())
        panel.comparison.poll()
        if self._pending is None or not self._pending.done():
            return
        pending, self._pending = self._pending, None
        panel.work.start(partial(self._take_over, pending))

    def _take_over(self, pending: Future[float]) -> None:
        with self.panel.errors_stay():
            self._complete(pending.result())

    def _complete(self, timestamp: float) -> None:
        """Displays the tile that was completed at `timestamp`, and records the sample if it was its last tile."""
        panel, frame, tiles = self.panel, self.panel.last_frame, self.panel.tiles
        assert tiles is not None and frame is not None
        self._spent_seconds += max(timestamp - max(self.started, panel.work.resumed_at), 1e-6)
        picture, panel.measured.transfer = tiles.store_tile(frame), tiles.transfer
        panel.display.frame = picture
        panel.measured.device = frame.gl.renderer if isinstance(frame, Texture) else frame.device.name
        is_complete = tiles.done == 0
        if is_complete:
            self._complete_sample(timestamp)
        panel.display.show(picture, panel.scene.tone, timestamp, is_complete)

    def _complete_sample(self, timestamp: float) -> None:
        """Records a complete sample."""
        panel, measured, tiles = self.panel, self.panel.measured, self.panel.tiles
        assert tiles is not None
        pass_seconds, self._spent_seconds = self._spent_seconds, 0.0
        measured.add_samples(tiles.repeat, pass_seconds, timestamp)
        panel.budget.record(measured.sample_seconds, self.size[0] * self.size[1])
        self._displayed_state = self._drawing_state
        measured.update_report(tiles.report, timestamp)
        panel.denoiser.displayed = False
        if measured.samples == tiles.repeat and panel.budget.is_measured:
            self._replan_tiles(pass_seconds)
        is_last = measured.samples == measured.target_samples and panel.budget.divisor == 1
        if is_last and panel.denoiser.enabled and panel.can_denoise:
            self._start_denoising()

    # Denoising

    def toggle_denoise(self) -> None:
        """Turns the denoising of finished pictures on or off."""
        panel, denoiser = self.panel, self.panel.denoiser
        denoiser.enabled = not denoiser.enabled
        if not denoiser.enabled and denoiser.displayed:
            panel.drawn = None
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
