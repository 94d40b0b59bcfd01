"""The picture of a panel's scene: opened at the first draw, replaced when files are edited, closed after an error.

DrawLoop draws this picture, Panel changes its scene, and PanelView shows its display and its errors.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from renderer.errors import UnavailableError
from renderer.formats.images import read_pixels
from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.gpu.kernel_source import restore_source_cache
from renderer.paths import ASSETS, is_bundled
from renderer.pictures import open_picture
from renderer.pictures.picture import Frame, Picture
from renderer.plain import printable
from renderer.scene.scene import Scene
from renderer.scene.schema import PictureSettings
from renderer.window.boundary import contained
from renderer.window.document.scene_text import SceneText
from renderer.window.panels import last_pictures
from renderer.window.panels.comparison import Comparison
from renderer.window.panels.completion import Clock, SuspendableWork, responds
from renderer.window.panels.display import Denoiser, Display
from renderer.window.panels.frame_budget import GPU_GUESS, SOFTWARE_GUESS, FrameBudget
from renderer.window.panels.inspection import Inspection, to_texture
from renderer.window.panels.measurements import Measurements
from renderer.window.panels.panel_scene import PanelScene
from renderer.window.panels.pixel_zoom import PixelZoom
from renderer.window.panels.row_tiles import DrawKey, RowTiles

Answer = TypeVar("Answer")
PREPARING = "preparing this kind of picture, once on this machine"


class Fallback(NamedTuple):
    """The last good picture, kept until the picture of an edited file has drawn."""

    scene: Scene
    tiles: RowTiles
    texts: dict  # the shader sources that the picture was compiled from


class PanelHost(NamedTuple):
    """The objects that all panels of a window share.

    `wake` ends the window's wait for events; it is called on other threads. `now` is the clock, in seconds. `pictures`
    is the folder of last_pictures.py; None keeps none.
    """

    gpu: DeviceContext
    completion_thread: ThreadPoolExecutor  # waits for compute devices
    wake: Callable[[], None]
    now: Clock
    pictures: Path | None = None


class PanelPicture(PanelScene):
    """A scene with its picture, the displayed texture, the errors, and the measured cost of a draw."""

    def __init__(self, scene: Scene, host: PanelHost, base: SceneText | None):
        super().__init__(scene, host.now, base)
        self.host, self.gpu = host, host.gpu
        gl = host.gpu.gl
        self.error = ""  # the reason why nothing can be drawn
        self.update_error = ""  # the reason why an edited file is not used; the picture before the edit stays
        self.hint = ""  # advice on the displayed picture
        self.device_lost = False  # the device no longer responds
        self.free_run = False  # samples are drawn without end, to measure the frame rate
        # the picture
        self.tiles: RowTiles | None = None  # hold the picture, which the first draw opens: the window appears before
        self.is_open = False  # open_picture() was called; after an error `tiles` is still None
        self._fallback: Fallback | None = None
        self.drawn: DrawKey | None = None  # the key of the current samples; None makes the next draw start anew
        self.last_frame: Frame | None = None  # the frame of the last draw, whose device later draws use
        # the display
        self.display = Display(gl)
        self._preview: tuple[Path, tuple[Texture, str] | None] | None = None  # the scene's file, and its `preview`
        self.comparison = Comparison(gl)
        self.inspection = Inspection(gl, scene.inspect)
        self.zoom = PixelZoom()
        # the cost of a draw
        self.work = SuspendableWork(host.wake)  # a draw, which may wait for a compiler
        self.budget = FrameBudget()
        self.measured = Measurements()
        self.denoiser = Denoiser(host.completion_thread, host.wake)

    @property
    def picture(self) -> Picture | None:
        """The picture, or None before the first draw and after a failure."""
        return self.tiles.picture if self.tiles is not None else None

    @property
    def preview(self) -> tuple[Texture, str] | None:
        """A picture to be seen until the scene's own is drawn, and what it is; None if there is none.

        It is the last one of this file and view, or the bundled one of the program's scene.
        """
        path, folder = self.original.path, self.host.pictures
        if self._preview is None or self._preview[0] != path:
            found = last_pictures.find(folder, self.scene) if folder is not None else None
            bundled = ASSETS / "gallery" / f"{path.stem}.png"
            if not found and is_bundled(path) and bundled.is_file():
                found = read_pixels(bundled), f"preview: {PREPARING}"
            self._preview = path, (to_texture(self.gpu.gl, found[0][..., :3]), found[1]) if found else None
        return self._preview[1]

    def open_picture(self) -> None:
        """Opens the picture of the scene; an error is shown in the panel, and `tiles` stays None."""
        self.is_open = True
        self.work.waited, self.work.waits = 0.0, 0
        self.drawn = self.last_frame = self.display.frame = None
        before, budget = self._fallback, self.budget
        self.budget = FrameBudget(budget.fixed_divisor, SOFTWARE_GUESS if self.gpu.gl.software else GPU_GUESS)
        with self.contain_errors():
            picture = open_picture(self.scene, self.gpu)
            picture.never_block()
            if before is not None and before.tiles.picture.keeps_pixels(before.scene.settings):
                budget.keep_as_estimate()  # a coarse first frame would stay in the frames to come
                self.budget = budget
            if before is not None:
                picture.continue_from(before.tiles.picture)
            self.tiles = RowTiles(self.gpu.gl, picture)
            self.display.reset()
            self.error = ""

    # Errors and the last good picture

    def contain_errors(self) -> contained:
        """A context manager that ends its block at any error and shows it in this panel: the window must go on."""
        return contained(f"the {self.scene.picture} panel of {self.original.path.name}", self._fall_back)

    def _fall_back(self, error: Exception, sentence: str) -> None:
        """Continues with the last good picture if the picture of an edited file fails; otherwise shows the error."""
        self.display.is_new = True
        if self._fallback is None:
            self.fail(error, sentence)
            return
        self.scene, self.tiles, texts = self._fallback
        self._fallback = self.drawn = None
        self.update_error, self.file.in_text = sentence, self.scene  # nothing counts as changed over the picture
        restore_source_cache(texts)

    def fail(self, error: Exception, sentence: str) -> None:
        """Shows the sentence of an error over the panel, which draws no more until something changes."""
        self.error = sentence
        frame = self.last_frame
        self.device_lost = not (frame is None or isinstance(frame, Texture) or responds(frame.device))
        if isinstance(error, UnavailableError) and not self.device_lost:
            self.release()  # free our device memory: another panel may need it

    def keep_fallback(self, texts: dict) -> None:
        """Detaches the current picture for the picture of an edited file; the last good picture becomes the fallback.

        `texts` are the shader sources that the current picture was compiled from.
        """
        if self._fallback is None and self.tiles is not None and not self.error:
            self._fallback = Fallback(self.scene, self.tiles, texts)
        elif self._fallback is None:
            self.release()
        elif self.tiles is not None and self.tiles is not self._fallback.tiles:
            self.tiles.release()  # the picture of an earlier edit, which has not drawn yet
        self.tiles = None  # a picture is never asked about the settings of another scene

    @property
    def short_error(self) -> str:
        """The error, in which the panel's files have their names alone."""
        error = self.error or self.update_error
        for path in (self.original.path, *self.scene.files) if error else ():
            error = error.replace(str(path), path.name)
        return printable(error, 10 * len(error), keep="\n")  # an escape has up to 10 characters

    @property
    def is_reloading(self) -> bool:
        """True until the picture of an edited file has drawn, or has failed."""
        return self._fallback is not None

    def drop_fallback(self) -> None:
        """Releases the picture before the edit: the edited one has drawn."""
        if self._fallback is not None:
            self._fallback.tiles.release()
            self._fallback, self.update_error = None, ""

    def release(self) -> None:
        """Drops the picture, its fallback and their device memory; the displayed texture stays."""
        for tiles in (self.tiles, self._fallback and self._fallback.tiles):
            if tiles is not None and not self.device_lost:
                tiles.release()
        self.tiles = self.last_frame = self._fallback = None

    # Facts about the picture

    @property
    def is_animated(self) -> bool:
        """True if the picture changes by itself: by key frames, animated models, or a dependence on time."""
        by_itself = self.scene.settings.is_animated
        return self.period is not None or by_itself or self.depends_on_time(self.scene.settings)

    @property
    def is_playing(self) -> bool:
        """True if the picture changes by itself now: it is animated and not paused."""
        return not self.paused and self.is_animated

    def _ask(self, question: Callable[[Picture], Answer], default: Answer) -> Answer:
        """The picture's answer; `default` without a picture and after an error, which the next draw reports."""
        with suppress(Exception):
            return question(self.picture) if self.picture is not None else default
        return default

    def depends_on_time(self, settings: PictureSettings) -> bool:
        """True if the picture of these settings differs from one scene time to another."""
        return self._ask(lambda picture: picture.depends_on_time(settings), False)

    @property
    def keeps_pixels(self) -> bool:
        """True if each frame is made of the pixels of the frame before."""
        return self._ask(lambda picture: picture.keeps_pixels(self.scene.settings), False)

    def frame_times(self) -> tuple[float, float]:
        """The scene times, in seconds, from which and up to which the frame drawn last is shown."""
        return self._ask(lambda picture: picture.frame_times(self.scene.settings), (-math.inf, math.inf))

    def pixel_work(self, settings: PictureSettings) -> float:
        """An upper bound of the work of a pixel (Picture.work()), at least 1; costs of draws are proportional to it."""
        return self._ask(lambda picture: max(picture.work(settings), 1.0), 1.0)

    def readable_samples(self, now: float) -> int:
        """The samples that each picture of an animation should have; 1 at rest, and while the user interacts."""
        if self.picture is None or not self.is_playing or self.is_interacting(now):
            return 1
        return self.picture.readable_samples(self.scene.settings)

    @property
    def can_pick(self) -> bool:
        """True if the picture has depth to focus on."""
        return self.picture is not None and self.display.texture is not None and self.picture.can_pick

    @property
    def can_denoise(self) -> bool:
        """True if the picture has albedo and normal layers."""
        return self.picture is not None and {"albedo", "normal"} <= set(self.picture.layer_names)

    @property
    def uses_compute_device(self) -> bool:
        """True if the last draw ran on a compute device, not in the window's GL context."""
        return self.last_frame is not None and not isinstance(self.last_frame, Texture)

    @property
    def draws_in_software(self) -> bool:
        """True if the last draw ran in the window's GL context, and the CPU renders that."""
        return isinstance(self.last_frame, Texture) and self.gpu.gl.software
