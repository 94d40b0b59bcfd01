"""A panel: one scene, its picture, what is displayed of it, and the budget of the next draw.

Compute devices work while the window stays responsive: a thread waits for the queue, and the frame is displayed when it
is complete. GL passes run in the window's own context. While the user interacts, a slow picture is drawn at a lower
resolution; at rest it is drawn in tiles of rows, each short enough for the window to respond and for a change to
interrupt the sample. Panels draw in turn.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from renderer.errors import UnavailableError
from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.gpu.kernel_source import restore_source_cache
from renderer.images.tone_mapping import GlToneMapper
from renderer.pictures import open_picture
from renderer.pictures.picture import Frame, Picture, Size
from renderer.scene.animation import settings_at
from renderer.scene.scene import Scene, ToneMapping
from renderer.window.boundary import Containment, contained
from renderer.window.document.document import Document
from renderer.window.document.scene_text import SceneText
from renderer.window.panels.comparison import Comparison
from renderer.window.panels.completion import Clock, SuspendableWork, finish_time, responds
from renderer.window.panels.denoising import Denoiser
from renderer.window.panels.frame_budget import GPU_GUESS, SOFTWARE_GUESS, FrameBudget, sample_budget, tile_budget
from renderer.window.panels.frame_rate import HISTORY_LENGTH, FrameRateCounter
from renderer.window.panels.inspection import Inspection
from renderer.window.panels.panel_scene import PanelScene
from renderer.window.panels.pixel_zoom import PixelZoom
from renderer.window.panels.row_tiles import DrawKey, Fallback, RowTiles

REPORT_INTERVAL = 0.5  # seconds between two reports of a picture; a report may read from the device
PREVIEW_INTERVAL = 0.1  # seconds between two displays of a sample whose tiles are being drawn


class Panel(PanelScene):
    """One scene, drawn live; draw() draws the next tile or sample.

    `base` is the text of the scene, where it is not that of its file. `wake` is called on the thread of
    `completion_thread` when a compute device has finished. `now` is the clock, in seconds.
    """

    def __init__(
        self,
        scene: Scene,
        gpu: DeviceContext,
        completion_thread: ThreadPoolExecutor,
        wake: Callable,
        now: Clock,
        base: SceneText | None = None,
    ):
        super().__init__(scene, now, base)
        self._wake = wake
        self._gpu, self._completion_thread = gpu, completion_thread
        self.error = ""  # why nothing can be drawn
        self.update_error = ""  # why an edited file is not used; the picture before it stays
        self.device_lost = False  # whether the device no longer responds
        self.free_run = False
        # the picture
        self.tiles: RowTiles | None = None  # with the picture; opened by the first draw, so that the window appears
        self.is_open = False
        self._fallback: Fallback | None = None
        # what is displayed
        self.frame: Texture | None = None  # linear
        self.tone_mapping: GlToneMapper | None = None
        self._applied_tone: ToneMapping | None = None
        self.comparison = Comparison(gpu.gl)
        self.inspection = Inspection(gpu.gl, scene.inspect)
        self.zoom = PixelZoom()
        # the current sample
        self._drawn: DrawKey | None = None  # what the tiles being drawn belong to
        self.drawn_time = self.scene_time  # scene time, in seconds, of the picture that is being drawn
        self._drawing_state: tuple | None = None  # what is being drawn
        self._displayed_state: tuple | None = None  # what the last whole sample displayed
        self._last_frame: Frame | None = None
        self._pending: Future[float] | None = None  # a draw on a compute device
        self.work = SuspendableWork(wake)  # a draw, which may wait for a compiler
        self.started = 0.0  # when the last draw started
        self._reported_at = self._previewed_at = 0.0
        self._spent_seconds = 0.0  # on the tiles of the current sample
        self._replanned = False
        # measurements
        self.budget = FrameBudget()
        self.samples = self.target_samples = 0
        self.transfer = self.device = ""
        self.report: dict[str, Any] = {}
        self.frame_rate = FrameRateCounter()
        self.sample_seconds = 0.0  # duration of the last sample
        self.sample_history: deque[float] = deque(maxlen=HISTORY_LENGTH)
        self.denoiser = Denoiser(completion_thread, wake)

    # The scene and its picture

    def put(self, document: Document, moved: bool = False) -> None:
        """Shows a document that a command made of this panel's."""
        self.base, self.selection = document.base, document.selection
        self.show(document.scene, moved)

    def show(self, scene: Scene, moved: bool = False) -> None:
        """Shows other settings of the scene, or another scene; `moved` means that the user is interacting."""
        if scene == self.scene:
            return
        if scene.inspect != self.scene.inspect:
            self.inspection.show(scene.inspect)
        other_picture = (scene.picture, type(scene.settings)) != (self.scene.picture, type(self.scene.settings))
        self.scene = scene
        self._interacted_at = self.now() if moved else self._interacted_at
        if other_picture:
            self.reopen()
        elif self.error:
            self.error, self._drawn = "", None
            self.is_open = self.tiles is not None

    def _open(self) -> None:
        self.is_open = True
        self.frame = self._drawn = self._applied_tone = self._pending = self._last_frame = None
        self.budget = FrameBudget(self.budget.fixed_divisor, SOFTWARE_GUESS if self._gpu.gl.software else GPU_GUESS)
        with self.errors_stay():
            picture = open_picture(self.scene, self._gpu)
            picture.never_block()
            self.tiles = RowTiles(self._gpu.gl, picture)
            self.tone_mapping = GlToneMapper(self._gpu.gl)
            self.error = ""

    def errors_stay(self) -> Containment:
        """Ends a block at any error, which this panel shows: a failing picture must not end the window."""
        return contained(f"the {self.scene.picture} panel of {self.original.path.name}", self._fall_back)

    def _fall_back(self, error: Exception, sentence: str) -> None:
        """Continues with the last good picture if an edited file makes none; otherwise shows the error."""
        if self._fallback is None:
            self.fail(error, sentence)
            return
        self.scene, self.tiles, texts = self._fallback
        self._fallback = self._drawn = None
        self.update_error = sentence
        restore_source_cache(texts)

    def fail(self, error: Exception, sentence: str) -> None:
        """Shows the sentence of an error over the panel, which draws no more until something changes."""
        self.error = sentence
        frame = self._last_frame
        self.device_lost = not (frame is None or isinstance(frame, Texture) or responds(frame.device))
        if isinstance(error, UnavailableError) and not self.device_lost:
            self._release()  # free our device memory: another panel may need it

    def reopen(self) -> None:
        """Compiles the picture again at the next draw and starts with the first sample."""
        self.close()
        self.error, self.is_open = "", False

    def reload(self, scene: Scene, texts: dict) -> None:
        """Reloads the picture from edited files at the next draw.

        If they do not load or compile, the current picture stays. `texts` are the shader sources that it was compiled
        from.
        """
        self.work.cancel()
        self.wait_idle()
        if self._fallback is None and self.tiles is not None and not self.error:
            self._fallback = Fallback(self.scene, self.tiles, texts)
        elif self._fallback is None:
            self.close()
        elif self.tiles is not None and self.tiles is not self._fallback.tiles:  # of an edit that has not drawn yet
            self.tiles.release()
        self.tiles = None  # a picture is never asked about the settings of another scene
        self.scene, self.error, self.is_open = scene, "", False

    def restart(self) -> None:
        """Starts again at scene time 0 with the first sample."""
        self.scene_time = 0.0
        self.update_error = ""
        self.reopen()

    def close(self) -> None:
        """Releases the picture and its shared images; the panel draws no more."""
        self.work.cancel()
        self.wait_idle()
        self._release()
        if self._fallback is not None and not self.device_lost:
            self._fallback.tiles.release()
        self._fallback = None

    def shelve(self) -> None:
        """Closes the panel and frees what it displays; if it is shown again, its next draw opens it."""
        self.reopen()
        self.frame = self.display_texture = None
        self.comparison, self.inspection = Comparison(self._gpu.gl), Inspection(self._gpu.gl, self.inspection.inspect)

    def _release(self) -> None:
        """Drops the picture and its device memory; what is displayed stays."""
        if self.tiles is not None and not self.device_lost:
            self.tiles.release()
        self.tiles = self._last_frame = None

    def _drop_fallback(self) -> None:
        """Drops the picture before the edit: the new one draws."""
        if self._fallback is not None:
            if self._fallback.tiles is not self.tiles:
                self._fallback.tiles.release()
            self._fallback, self.update_error = None, ""

    # State that the window asks for

    def scene_of_session(self) -> Scene:
        """The scene as it is shown now: with the view that is inspected, and at its time where it is paused."""
        scene = replace(self.scene, inspect=self.inspection.inspect)
        return replace(scene, time=self.scene_time) if self.paused else scene

    @property
    def picture(self) -> Picture | None:
        """The picture, or None before the first draw and after a failure."""
        return self.tiles.picture if self.tiles is not None else None

    @property
    def busy(self) -> bool:
        """Whether a compute device is drawing for this panel."""
        return self._pending is not None

    @property
    def uses_compute_device(self) -> bool:
        """Whether the last draw ran on a compute device, not in the window's GL context."""
        return self._last_frame is not None and not isinstance(self._last_frame, Texture)

    def scrub(self, time: float) -> None:
        """Pauses at a time in seconds: coarse while the user goes on, then with all samples."""
        self.paused, self.scene_time, self._interacted_at = True, max(round(time, 4), 0.0), self.now()

    def needs_draw(self, size: Size, now: float) -> bool:
        """Whether there is something to draw for a panel of `size` pixels."""
        if self.work.is_waiting:
            return False
        if not self.is_open:
            return True
        if self.tiles is None or self.error or self.busy:
            return False
        if self._draw_key(size, now) != self._drawn or self.samples == 0 or self.tiles.done:
            return True  # a paused panel too draws a whole sample of what changed
        if not self.budget.is_measured and self.budget.divisor > 1 and not self.budget.fixed_divisor:
            return True  # the first draw was coarse and unmeasured: draw again, to learn what full size costs
        if self.paused and not self.is_animated():
            return False
        return self.free_run and not self.paused or self.samples < self.target_samples  # a paused moment is refined

    @property
    def shows_full_sample(self) -> bool:
        """True if whole samples of the current settings are displayed: none outdated, none partly drawn."""
        complete = self.display_texture is not None and self.tiles is not None and self.tiles.done == 0
        return complete and self.samples > 0 and self._displayed_state == self._requested_state()

    @property
    def drawn_settings(self) -> Any:
        """The settings of the displayed picture."""
        return self._drawn.settings if self._drawn is not None else None

    @property
    def sample_key(self) -> tuple:
        """Changes where views of the picture are made anew: what is drawn, and as samples double or end."""
        return self._drawn, self.samples.bit_length(), self.samples >= self.target_samples

    def is_finished(self) -> bool:
        """Whether all samples are drawn."""
        return not self.busy and not self.work.is_waiting and 0 < self.target_samples <= self.samples

    # What to draw, within which time

    def _draw_key(self, size: Size, now: float) -> DrawKey:
        continues = self.tiles is not None and self.tiles.done and self.is_playing
        scene_time = self.drawn_time if continues else self.scene_time  # the same for all tiles of a sample
        settings = settings_at(self.scene, scene_time)
        self.budget.work = self._work(settings)
        divisor = self._divisor(size, now)
        time_of_picture = scene_time if self._depends_on_time(settings) else 0.0
        return DrawKey(settings, time_of_picture, (max(1, size[0] // divisor), max(1, size[1] // divisor)))

    def _divisor(self, size: Size, now: float) -> int:
        """The resolution divisor at which a draw fits its budget."""
        if not self.budget.is_measured:
            return self.budget.divisor_for(size[0] * size[1], 0.0)
        assert self.tiles is not None
        rest, changed = now - self._interacted_at, self._displayed_state != self._requested_state()
        can_split = partial(self.tiles.can_split, self.scene.settings)
        seconds = sample_budget(self._last_frame, self.is_playing, rest, changed, can_split)
        return self.budget.divisor_for(size[0] * size[1], seconds / self.readable_samples(now))

    def expected_seconds(self, size: Size, now: float) -> float:
        """Seconds for which the next draw will block the UI thread."""
        if self.tiles is None or not self.budget.is_measured or not isinstance(self._last_frame, Texture):
            return 0.0
        divisor = self._divisor(size, now)
        return self.budget.seconds(size[0] * size[1] / divisor**2, divisor) / self.tiles.count

    # Drawing

    def draw(self, size: Size, now: float) -> None:
        """Draws one more tile of a sample for a panel of `size` pixels; a compute device is left working."""
        self.work.start(partial(self._draw, size, now))

    def _draw(self, size: Size, now: float) -> None:
        if not self.is_open:
            self._open()
        if self.tiles is None:
            return
        key = self._draw_key(size, now)
        if self.is_finished():
            self.frame_rate.pause()
        if key != self._drawn:
            if self._drawn and key.settings != self._drawn.settings:
                self.budget.keep_as_estimate()
            if not (self.tiles.done and self.is_playing):
                self.drawn_time = self.scene_time
            self.budget.divisor, self._replanned = self._divisor(size, now), False
            self._start_picture(key)
        self.budget.divisor = self._divisor(size, now)
        self.started = self.now()
        with self.errors_stay():
            self._size = key.size
            if self.tiles.done == 0:
                left = self.target_samples - self.samples  # none is known before the first draw
                self.tiles.repeat = max(1, min(self.readable_samples(now), left))
            self._last_frame = self.tiles.draw(key.time)
            self._drop_fallback()
            self.target_samples = self.tiles.picture.sample_count(key.settings, key.size)
            if isinstance(self._last_frame, Texture):
                self._gpu.gl.finish()
                self._complete(self.now())
            else:
                self._pending = self._completion_thread.submit(finish_time, self._last_frame.device, self.now)
                self._pending.add_done_callback(lambda _: self._wake())

    def _start_picture(self, key: DrawKey) -> None:
        """Starts the first sample of `key`, in as many tiles as its expected duration requires."""
        assert self.tiles is not None
        self._drawing_state = self._requested_state()
        seconds = self.budget.expected(key.size[0] * key.size[1]) * self.readable_samples(self.now())
        count = self.tiles.tile_count(key.settings, seconds, tile_budget(self._last_frame), key.size[1])
        self.tiles.start(key.settings, key.size, count, self.frame)
        self._drawn, self.samples, self._spent_seconds = key, 0, 0.0

    def _replan_tiles(self, seconds: float) -> None:
        """Changes the number of tiles if the first samples, which took `seconds`, took more or less than expected."""
        assert self.tiles is not None and self._drawn is not None
        count = self.tiles.tile_count(self._drawn.settings, seconds, tile_budget(self._last_frame), self._size[1])
        if not self._replanned and not 0.5 <= count / self.tiles.count <= 2:
            self._replanned = True
            if count > self.tiles.count or self.target_samples > 2:
                self._start_picture(self._drawn)

    def wait_idle(self) -> None:
        """Blocks until the compute device has finished the draw of this panel, and takes it over.

        Does not wait for a compiler.
        """
        if self._pending is not None:
            self._pending.exception()
            self.poll()

    def poll(self) -> None:
        """Takes over a frame that a compute device has finished, if there is one."""
        self._poll_denoising()
        self.work.poll()
        self.inspection.update(self, self.now())
        self.comparison.poll()
        if self._pending is None or not self._pending.done():
            return
        pending, self._pending = self._pending, None
        self.work.start(partial(self._take_over, pending))

    def _take_over(self, pending: Future[float]) -> None:
        with self.errors_stay():
            self._complete(pending.result())

    def _complete(self, timestamp: float) -> None:
        """Takes over the tile that was complete at `timestamp`."""
        frame = self._last_frame
        assert self.tiles is not None and frame is not None
        self._spent_seconds += max(timestamp - max(self.started, self.work.resumed_at), 1e-6)
        self.frame, self.transfer = self.tiles.store_tile(frame), self.tiles.transfer
        self.device = frame.gl.renderer if isinstance(frame, Texture) else frame.device.name
        if self.tiles.done == 0:
            self._complete_sample(timestamp)
        if self.tiles.done == 0 or timestamp - self._previewed_at > PREVIEW_INTERVAL:
            self._applied_tone = None
            self.update_tone_mapping()
            self._previewed_at = timestamp

    def _complete_sample(self, timestamp: float) -> None:
        """Records a whole sample."""
        assert self.tiles is not None
        repeat, pass_seconds = self.tiles.repeat, self._spent_seconds
        self.sample_seconds, self._spent_seconds = pass_seconds / repeat, 0.0
        self.sample_history.append(self.sample_seconds)
        self.budget.record(self.sample_seconds, self._size[0] * self._size[1])
        self.samples += repeat
        self._displayed_state = self._drawing_state
        self.frame_rate.add(timestamp)
        if timestamp - self._reported_at > REPORT_INTERVAL or self.samples >= self.target_samples:
            self.report, self._reported_at = self.tiles.report(), timestamp
        self.denoiser.displayed = False
        if self.samples == repeat and self.budget.is_measured:
            self._replan_tiles(pass_seconds)
        is_whole = self.samples == self.target_samples and self.budget.divisor == 1
        if is_whole and self.denoiser.enabled and self.can_denoise:
            self._start_denoising()

    def update_tone_mapping(self) -> None:
        """Renders the displayed picture again if the frame or the tone settings changed."""
        if self.frame is None or self.tone_mapping is None or self._applied_tone == self.scene.tone:
            return
        if self.display_texture is None or self.display_texture.size != self.frame.size:
            self.display_texture = self._gpu.gl.texture(self.frame.size, 4, "f1")
        self.tone_mapping(self.frame, self.scene.tone, self.display_texture)
        self._applied_tone = self.scene.tone

    def measure(self) -> None:
        """Measures how far the displayed picture is from the reference of comparisons."""
        if self.display_texture is not None:
            self.comparison.measure(self.display_texture, self._wake)

    # Denoising

    def toggle_denoise(self) -> None:
        """Turns the denoising of finished pictures on or off."""
        self.denoiser.enabled = not self.denoiser.enabled
        if not self.denoiser.enabled and self.denoiser.displayed:
            self._drawn = None
        elif self.is_finished() and self.shows_full_sample:
            self.work.start(self._start_denoising)

    def _start_denoising(self) -> None:
        assert self.tiles is not None and self.frame is not None and self._drawn is not None
        with contained("denoising", self._stop_denoising):
            self.denoiser.start(self.frame, self.tiles, self._drawn)

    def _poll_denoising(self) -> None:
        with contained("denoising", self._stop_denoising):
            image = self.denoiser.poll(self._drawn)
            if image is not None and self.is_finished():
                self.frame = self._gpu.gl.texture(self._size).write(image)
                self.denoiser.displayed, self._applied_tone = True, None
                self.update_tone_mapping()

    def _stop_denoising(self, error: Exception, sentence: str) -> None:
        self.update_error, self.denoiser.enabled = sentence, False
