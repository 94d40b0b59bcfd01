"""A panel: one scene, its picture, what was drawn last, and how much time the next draw may take.

Compute devices work while the window goes on: a thread waits for the queue, and the frame is shown when it is done. GL
passes run in the window's own context. While the user moves, a slow picture is drawn coarser; at rest it is drawn in
bands of rows, each short enough for the window to answer and for a change to end it. Panels take turns.
"""

import sys
import time
import traceback
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from renderer.errors import UnavailableError, UserError
from renderer.gpu import DeviceContext, KernelError
from renderer.gpu.gl import Texture
from renderer.gpu.kernel_source import restore_source_cache
from renderer.images import denoise
from renderer.images.tone_mapping import GlToneMapper
from renderer.pictures import is_animated, open_picture
from renderer.scene.animation import settings_at
from renderer.scene.scene import Scene
from renderer.window.panels import frame_budget
from renderer.window.panels.comparison import Comparison
from renderer.window.panels.frame_budget import ANIMATED, LONGEST, MOVING, RESTING, Pace
from renderer.window.panels.frame_rate import RING, Counter
from renderer.window.panels.row_tiles import Bands

REPORT_EVERY = 0.5  # seconds; a report may read from the device
SHOW_EVERY = 0.1  # seconds between two looks at a sample whose bands are being drawn


class Panel:
    def __init__(
        self, scene: Scene, gpu: DeviceContext, waiter: ThreadPoolExecutor, wake=lambda: None, now=time.perf_counter
    ):
        """`wake` is called on the thread of `waiter` when a compute device has finished; `now` tells seconds."""
        self._now = now
        self.scene, self._wake = scene, wake
        self.original = scene  # what "reset" goes back to
        self._gpu, self._waiter = gpu, waiter
        self.error = ""  # why nothing can be drawn
        self.mistake = ""  # what is wrong with a file that was saved; what it was before goes on
        self._last_good = None  # scene, picture, bands and shader texts to go back to, until a new picture draws
        self.paused = scene.time > 0  # a picture of a moment shows it until told to go on
        self.free_run = False
        self.pace = Pace()
        self.clock = scene.time  # seconds of the scene's own time
        self.samples = self.wanted_samples = 0
        self.frame: Texture | None = None  # linear
        self.shown: Texture | None = None  # 8 bits, as it stands in the window
        self.transfer = self.device = ""
        self.report: dict = {}
        self.counter = Counter()
        self.comparison = Comparison(gpu.gl)
        self.cost = 0.0  # seconds of the last draw
        self.costs: deque[float] = deque(maxlen=RING)
        self.lost = False  # whether the device no longer answers
        self._moved = now() - 0.5
        self._drawn = self._toned = None
        self._pending: Future | None = None
        self._reported = self._shown_at = 0.0
        self._last_frame = None
        self._moment = self.clock  # of the picture that is being drawn
        self.denoise = False  # whether a finished picture is denoised
        self.denoised = False  # whether what is shown is
        self._filtering: tuple | None = None  # the future of a denoised picture, and what it was made of
        self._begun = self._seen = None  # what is being drawn, and what the last whole sample showed
        self._spent = 0.0  # seconds on the bands of the sample so far
        self._planned_again = False
        self.bands: Bands | None = None
        self.picture = None  # opened by the first draw, so that the window is there at once
        self.opened = False
        self.started = 0.0  # when the last draw began

    def _open(self) -> None:
        self.opened = True
        self.frame = self._drawn = self._toned = self._pending = None
        self._last_frame = None
        self.pace.forget()
        try:
            self.picture = open_picture(self.scene, self._gpu)
            if hasattr(self.picture, "hurry"):  # its draws need not wait for compilers
                self.picture.hurry()
            self.bands = Bands(self._gpu.gl, self.picture)
            self.tone = GlToneMapper(self._gpu.gl)
            self.error = ""
        except Exception as error:  # whatever one picture does, the window lives
            self._fall_back(error)

    def _fall_back(self, error: Exception) -> None:
        """Goes on with the last good picture where an edited file makes none; else shows the error."""
        if self._last_good is None or not isinstance(error, (UserError, KernelError)):
            self.fail(error)
            return
        self.scene, self.picture, self.bands, texts = self._last_good
        self._last_good = self._drawn = None
        self.mistake = str(error)
        restore_source_cache(texts)

    def fail(self, error: Exception) -> None:
        """Shows the error over the panel; mistakes of ours go to stderr in full as well."""
        self.error = str(error)
        if not isinstance(error, (UserError, KernelError)):
            self.error = f"{type(error).__name__}: {error}"
            traceback.print_exception(error, file=sys.stderr)
        self.lost = self.computes and not _answers(self._last_frame.device)
        if isinstance(error, UnavailableError) and not self.lost:
            self._give_back()  # what it holds of a device that has no room may be what others need

    def show(self, scene: Scene, moved: bool = False) -> None:
        """Shows another state of the scene, or another scene; `moved` says that the user is at it and waits."""
        if scene == self.scene:
            return
        other = scene.picture != self.scene.picture
        self.scene = scene
        self._moved = self._now() if moved else self._moved
        if other:
            self.reopen()
        elif self.error:
            self.error, self._drawn = "", None
            self.opened = self.picture is not None

    def reopen(self) -> None:
        """Compiles the picture anew at the next draw and starts from the first sample."""
        self.close()
        self.error, self.opened = "", False

    def reread(self, scene: Scene, texts: dict) -> None:
        """Compiles the picture anew, of files that were edited; where they make none, it goes on as it is.

        `texts` are those of the shaders that it was made of.
        """
        if self.picture is None or self.error:
            self.close()
        elif self._last_good is None:
            self.settle()
            self._last_good = self.scene, self.picture, self.bands, texts
        self.scene, self.error, self.opened = scene, "", False

    def restart(self) -> None:
        self.clock = 0.0
        self.mistake = ""
        self.reopen()

    def close(self) -> None:
        """Gives the shared image back; the panel draws no more."""
        self.settle()
        self._give_back()
        if self._last_good is not None and not self.lost:
            self._last_good[2].release()
        self._last_good = None

    def _give_back(self) -> None:
        """Lets go of the picture, and of all that it holds of its device; what is shown stays."""
        if self.bands is not None and not self.lost:
            self.bands.release()
        self.picture = self.bands = self._last_frame = None

    def settle(self) -> None:
        """Waits for what a compute device does for this panel, and takes it over."""
        if self._pending is not None:
            self._pending.exception()
            self.collect()

    @property
    def busy(self) -> bool:
        """Whether a compute device is at work for this panel."""
        return self._pending is not None

    @property
    def computes(self) -> bool:
        """Whether its draws run on a compute device, beside the window's own GL."""
        return self._last_frame is not None and not isinstance(self._last_frame, Texture)

    def moving(self, now: float) -> bool:
        return now - self._moved < 0.35

    def settings(self):
        """The settings that the controls show: those of the scene, or of the animation's moment."""
        return settings_at(self.scene, self.clock)

    def _at(self) -> float:
        """The moment to draw: the clock's, but for a picture of which some bands are there already."""
        return self._moment if self.bands is not None and self.bands.done and self.alive() else self.clock

    def _time(self, settings, moment: float) -> float:
        """What the picture gets as time: 0 for one that stands still, so that it goes on refining."""
        return moment if self._animated(settings) else 0.0

    def _animated(self, settings) -> bool:
        try:
            return self.picture is not None and is_animated(self.picture, settings)
        except (UserError, KernelError):  # of a file that the settings name; the draw will tell
            return False

    def alive(self) -> bool:
        """Whether the picture changes by itself."""
        moves = self.scene.animation is not None and self.scene.animation.tracks
        return bool(moves) or self._animated(self.scene.settings)

    def tick(self, seconds: float) -> None:
        if not self.paused and self.alive():
            self.clock += seconds
            period = self.scene.animation.duration if self.scene.animation and self.scene.animation.tracks else 0.0
            self.clock = self.clock % period if period else self.clock  # begins anew at the end of its film

    def pick(self, across: float, down: float) -> float | None:
        """How far along the view what is shown at these parts of the width and the height lies; None for nothing."""
        self.settle()
        width, height = self._size
        return self.picture.pick(self.settings(), self._size, across * width, down * height)

    @property
    def can_denoise(self) -> bool:
        return self.picture is not None and hasattr(self.picture, "twin") and hasattr(self.picture, "layers")

    @property
    def can_pick(self) -> bool:
        return self.picture is not None and self.shown is not None and hasattr(self.picture, "pick")

    def wants(self, size: tuple[int, int], now: float) -> bool:
        """Whether there is something to draw for a panel of `size` pixels."""
        if not self.opened:
            return True
        if self.picture is None or self.error or self.busy:
            return False
        if self._key(size, now) != self._drawn or self.samples == 0 or self.bands.done:
            return True  # a paused panel too draws a whole sample of what changed
        if not self.pace.known and self.pace.divisor > 1 and not self.pace.forced:
            return True  # the first draw, a coarse one, told nothing: once more, to know what full size costs
        return not self.paused and (self.free_run or self.samples < self.wanted_samples)

    @property
    def whole(self) -> bool:
        """Whether whole samples of what the scene says now are shown, and not of before, nor some bands of the next."""
        complete = self.shown is not None and self.bands is not None and self.samples > 0 and self.bands.done == 0
        return complete and self._seen == self._asked()

    @property
    def moment(self) -> float:
        """Seconds of the scene's own time that what is shown was drawn at."""
        return self._moment

    def finished(self) -> bool:
        return not self.busy and 0 < self.wanted_samples <= self.samples

    def shows(self, size, now: float) -> bool:
        """Whether what was drawn last is what a panel of `size` pixels is to show."""
        return self._key(size, now) == self._drawn

    def _key(self, size, now: float):
        """What the samples belong to: they are thrown away when it changes."""
        moment = self._at()
        settings = settings_at(self.scene, moment)
        return (settings, self._time(settings, moment), self._divided(size, now))

    def _divided(self, size, now: float) -> tuple[int, int]:
        divisor = self._fitting_divisor(size, now)
        return tuple(max(1, n // divisor) for n in size)

    def _fitting_divisor(self, size, now: float) -> int:
        """How much coarser than the panel is drawn so that a draw fits its time."""
        return self.pace.fitting(size[0] * size[1], self._limit(now) if self.pace.known else 0.0)

    def _limit(self, now: float) -> float:
        """Seconds that a whole sample may take; more of them are drawn coarser."""
        if self.moving(now) or self._seen != self._asked() and not self.alive():
            return MOVING  # a coarse picture of what changed comes first
        if self.bands.can_split(self.scene.settings):
            return ANIMATED if self.alive() else 1e9
        if not isinstance(self._last_frame, Texture):
            return 1e9
        return RESTING if self.alive() else min(RESTING * (1 + max(0.0, now - self._moved)), LONGEST)

    def _asked(self) -> tuple:
        """What is to be drawn, whatever its tone."""
        return self.scene.picture, self.scene.settings

    def _band_limit(self) -> float:
        """Seconds that a band may take."""
        if isinstance(self._last_frame, Texture):
            return frame_budget.SOFT_BAND if self._gpu.gl.software else frame_budget.BAND
        on_processor = self._last_frame is not None and self._last_frame.device.properties.scalar_threads
        return frame_budget.CPU_BAND if on_processor else frame_budget.BAND

    def expected(self, size, now: float) -> float:
        """Seconds that the next draw will keep the window from going on."""
        if self.bands is None or not self.pace.known or not isinstance(self._last_frame, Texture):
            return 0.0
        divisor = self._fitting_divisor(size, now)
        return self.pace.seconds(size[0] * size[1] / divisor**2, divisor) / self.bands.count

    def draw(self, size: tuple[int, int], now: float) -> None:
        """One more band of a sample at the panel's size in pixels; a compute device is left working."""
        if not self.opened:
            self._open()
        if self.picture is None:
            return
        key = self._key(size, now)
        if self.finished():
            self.counter.pause()
        if key != self._drawn:
            if self._drawn and key[0] != self._drawn[0]:
                self.pace.guess()
            self.pace.divisor = self._fitting_divisor(size, now)
            self._moment, self._planned_again = self._at(), False
            self._begin(key)
        self.pace.divisor = self._fitting_divisor(size, now)
        self.started = self._now()
        try:
            settings, moment, self._size = key
            self._last_frame = self.bands.draw(moment)
            self._trust()
            self.wanted_samples = self.picture.draws(settings, self._size)
            if isinstance(self._last_frame, Texture):
                self._gpu.gl.finish()
                self._complete(self._now())
            else:
                self._pending = self._waiter.submit(self._finished, self._last_frame.device)
                self._pending.add_done_callback(lambda _: self._wake())
        except Exception as error:  # whatever one picture does, the window lives
            self._fall_back(error)

    def _finished(self, device) -> float:
        """Waits for the device; the moment at which it was done."""
        device.finish()
        return self._now()

    def _trust(self) -> None:
        """The new picture draws: the one before is not needed any more."""
        if self._last_good is not None:
            if self._last_good[2] is not self.bands:
                self._last_good[2].release()
            self._last_good, self.mistake = None, ""

    def _begin(self, key) -> None:
        """Starts the picture of `key` with its first sample, in as many bands as its cost asks for."""
        settings, _, size = key
        self._begun = self._asked()
        seconds = self.pace.seconds(size[0] * size[1]) if self.pace.known else 0.0
        self.bands.begin(settings, size, self.bands.wanted(settings, seconds, self._band_limit(), size[1]), self.frame)
        self._drawn, self.samples, self._spent = key, 0, 0.0

    def _plan_again(self) -> None:
        """Cuts the picture anew where its first sample took much more or less than was expected."""
        wanted = self.bands.wanted(self._drawn[0], self.cost, self._band_limit(), self._size[1])
        if not self._planned_again and not 0.5 <= wanted / self.bands.count <= 2:
            self._planned_again = True
            if wanted > self.bands.count or self.wanted_samples > 2:
                self._begin(self._drawn)

    def collect(self) -> bool:
        """Takes over a frame that a compute device has finished; whether there was one."""
        self._collect_denoised()
        if self._pending is None or not self._pending.done():
            return False
        pending, self._pending = self._pending, None
        try:
            self._complete(pending.result())
        except Exception as error:  # whatever one picture does, the window lives
            self.fail(error)
        return True

    def _complete(self, moment: float) -> None:
        self._spent += max(moment - self.started, 1e-6)
        self.frame = self.bands.put(self._last_frame)
        self.transfer = self.bands.transfer
        on = self._last_frame
        self.device = on.gl.renderer if isinstance(on, Texture) else on.device.name
        if self.bands.done == 0:
            self._sampled(moment)
        if self.bands.done == 0 or moment - self._shown_at > SHOW_EVERY:
            self._toned = None
            self.retone()
            self._shown_at = moment

    def _sampled(self, moment: float) -> None:
        """Notes that a sample is complete."""
        self.cost, self._spent = self._spent, 0.0
        self.costs.append(self.cost)
        self.pace.note(self.cost, self._size[0] * self._size[1])
        self.samples += 1
        self._seen = self._begun
        self.counter.add(moment)
        if moment - self._reported > REPORT_EVERY or self.samples >= self.wanted_samples:
            self.report, self._reported = self.bands.report(), moment
        self.denoised = False
        if self.samples == 1 and self.pace.known:
            self._plan_again()
        if self.denoise and self.samples == self.wanted_samples and self.pace.divisor == 1 and self.can_denoise:
            self._filter()

    def toggle_denoise(self) -> None:
        """Denoises finished pictures from now on, or shows them as they were drawn again."""
        self.denoise = not self.denoise
        if not self.denoise and self.denoised:
            self._drawn = None
        elif self.finished() and self.whole:
            self._filter()

    def _filter(self) -> None:
        """Has the finished picture denoised beside the window, guided by its albedo and normal."""
        settings, _, size = self._drawn
        guide = self.picture.twin() if self.bands.count > 1 else self.picture
        layers = guide.layers(settings, size)
        future = self._waiter.submit(denoise.denoise, self.frame.read(), layers["albedo"], layers["normal"])
        future.add_done_callback(lambda _: self._wake())
        self._filtering = future, self._drawn

    def _collect_denoised(self) -> None:
        if self._filtering is None or not self._filtering[0].done():
            return
        (future, made_of), self._filtering = self._filtering, None
        try:
            clean = future.result()
        except Exception as error:  # whatever the filter does, the window lives
            self.mistake, self.denoise = str(error), False
            return
        if made_of == self._drawn and self.denoise and self.finished():
            self.frame = self._gpu.gl.texture(made_of[2]).write(clean)
            self.denoised, self._toned = True, None
            self.retone()

    def retone(self) -> None:
        """Draws the displayed picture where the frame or the tone changed."""
        if self.frame is None or self._toned == self.scene.tone:
            return
        if self.shown is None or self.shown.size != self.frame.size:
            self.shown = self._gpu.gl.texture(self.frame.size, 4, "f1")
        self.tone(self.frame, self.scene.tone, self.shown)
        self._toned = self.scene.tone


def _answers(device) -> bool:
    """Whether a device still works after something on it went wrong."""
    try:
        device.finish()
    except Exception:  # each driver has errors of its own for a device that is gone
        return False
    return True
