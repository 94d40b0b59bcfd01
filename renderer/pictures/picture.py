"""The interface of pictures, with defaults: a new kind of picture overrides only the methods that differ.

A module of this package defines a frozen dataclass `Settings(PictureSettings)` and a class `Picture` that derives from
Picture or AccumulatingPicture of this module and has `settings_type = Settings`.
"""

import math
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from renderer.errors import UnavailableError, UserError
from renderer.gpu import Buffer, DeviceContext
from renderer.gpu.gl import Texture
from renderer.images.algorithm_view import CHANNELS, AlgorithmView
from renderer.plain import Json
from renderer.scene.scene import COLOR, Scene, ToneMapping
from renderer.scene.schema import PictureSettings, from_table

if TYPE_CHECKING:
    from renderer.raytracing.path_trace import Ray

Size = tuple[int, int]  # width, height in pixels
Tile = tuple[int, int, int, int]  # left, top, width, height in pixels
Frame = Buffer | Texture  # (height, width, 4) float32, linear Rec. 709, row 0 on top
Point = tuple[float, float]  # fractions of a picture's width and height
CENTER: Point = (0.5, 0.5)
MAX_TEXTURE_SIDE = 1 << 14  # pixels of a texture's side that most GL drivers allow
Chunk = tuple[int, ...]  # a range of a picture's samples, as chunks() numbers them
ChunkResults = dict[str, Any]  # of draw_chunk(), for merge() of the same kind of picture: arrays and counts by name
ExtraSteps = tuple[tuple[int, ...], ...]  # the answers of missing_steps() so far
AnySettings = TypeVar("AnySettings", bound=PictureSettings)
Made = TypeVar("Made")  # a cached value


class Picture(Generic[AnySettings]):
    """Draws one kind of scene on one DeviceContext.

    `tone` is the tone mapping of scenes that set none. `layer_names` are the names that layers() can return,
    `algorithm_names` the names that algorithm() takes, and `pixel_views` the subset of `algorithm_names` that depends
    on the selected pixel. `passes` are the GLSL files, below shaders/, that draw the picture: the window's editor
    offers them.
    """

    settings_type: ClassVar[type] = PictureSettings
    tone: ToneMapping = ToneMapping()
    layer_names: tuple[str, ...] = ()
    algorithm_names: tuple[str, ...] = ()
    pixel_views: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    views_are_steady = False  # True if algorithm() does not depend on the samples drawn so far
    layer_texts: Callable[[Any], dict[str, str]] = staticmethod(lambda settings: {})  # texts for an .exr file's header
    max_side = 1 << 17  # pixels of a side that are drawn at once, at most; longest_side() may be less
    drawn_whole = False  # True for a kind of picture that is never drawn in tiles
    can_clone = False
    # True if a sample may take minutes, and as long in tiles: an export of one sample then draws small tiles, to show
    # progress and to end at a time limit.
    can_split = False
    can_pick = False
    can_open = False
    shows_each = True  # False: nobody looks at a frame before current_frame(), so that draw() may return an earlier one
    exported: Any = None  # the linear values (height, width, 4) of the last export, whose rows are read, for hints()
    progress: Any = None  # the export's system.progress.Progress; a draw of many steps sets its parts and advances it
    # On time.monotonic()'s clock: from then on, work before the first sample may raise IncompleteError.
    deadline = math.inf

    def __init__(self, gpu: DeviceContext) -> None:
        """Keep the devices; a subclass calls this and compiles the kernels that do not depend on the settings."""
        self.gpu = gpu
        self._cache: dict[str, tuple[object, Any]] = {}  # latest key and value of cached(), by name

    def cached(self, name: str, key: object, make: Callable[[], Made]) -> Made:
        """Return the result of make(), kept under `name` until the key changes; the old result is freed before."""
        if name not in self._cache or self._cache[name][0] != key:
            self._cache.pop(name, None)
            self._cache[name] = key, make()
        value: Made = self._cache[name][1]
        return value

    @classmethod
    def read_settings(cls, table: object, context: str, folder: Path | None) -> AnySettings:
        """Reads a scene's [settings] table; paths in it are relative to `folder` (None: the user's)."""
        settings: AnySettings = from_table(cls.settings_type, table, context, folder)
        return settings

    @classmethod
    def ignored(cls, settings: AnySettings) -> dict[str, int]:
        """Counts of the features in the files that the picture does not draw (see renderer.plain.format_ignored)."""
        return {}

    @classmethod
    def notes(cls, settings: AnySettings, table: Json) -> tuple[str, ...]:
        """Sentences on the choices made for these settings, which a scene file's `table` holds."""
        return ()

    @classmethod
    def device_bytes(cls, settings: AnySettings, size: Size) -> int:
        """Bytes of the device's buffers for a picture or tile of `size`, without the buffers of geometry."""
        return 16 * size[0] * size[1]

    @classmethod
    def scene_bytes(cls, settings: AnySettings) -> int:
        """Bytes of the host's memory that geometry takes while it is built; 0 for pictures without any."""
        return 0

    @classmethod
    def planned_samples(cls, settings: AnySettings, size: Size) -> int | None:
        """sample_count() without a device; None for pictures that do not know it then."""
        return getattr(settings, "samples", None)

    @classmethod
    def check_tiles(cls, scene: Scene, size: Size) -> None:
        """Raises UnavailableError if a scene's picture of `size` cannot be drawn in tiles."""
        if cls.drawn_whole:
            limit = f"at most 4096 x 4096 pixels and here {cls.longest_side(scene.settings)} a side"
            raise UnavailableError(f"a {scene.picture} is drawn whole, without --tile, {limit}")

    @classmethod
    def longest_side(cls, settings: AnySettings) -> int:
        """Pixels of a side that are drawn at once with these settings; exports draw a longer picture in tiles."""
        return cls.max_side

    @staticmethod
    def with_animation(scene: Scene, name: str) -> Scene:
        """The scene with the models' animation of this name playing; UserError if there is none."""
        raise UserError(f"--animation {name}: {scene.path} is no model and has none")

    @staticmethod
    def with_loop(scene: Scene, frames: int) -> Scene:
        """The scene with the key frames of a loop of so many frames; UserError for what is not one flame."""
        raise UserError(f"--loop {frames}: {scene.path} is no flame of the plane")

    @staticmethod
    def with_variant(scene: Scene, name: str) -> Scene:
        """The scene with the models' material variant of this name; UserError if there is none."""
        raise UserError(f"--variant {name}: {scene.path} is no model and has none")

    @classmethod
    def choices(cls, settings: AnySettings) -> dict[str, list[str]]:
        """Names that the files of the settings offer, by the option that takes one: keys of --json."""
        return {}

    @classmethod
    def view_names(cls) -> list[str]:
        """The views that a panel offers: the picture, its layers, its algorithm's views and its color channels."""
        return [COLOR, *cls.layer_names, *cls.algorithm_names, *CHANNELS]

    @staticmethod
    def panels(scene: Scene) -> list[Scene]:
        """The scenes that the window shows side by side for this one."""
        return [scene]

    def draw(self, settings: AnySettings, size: Size, time: float, tile: Tile | None = None) -> Frame:
        """Add a sample to the picture of (settings, size, time), or begin it if these differ from the last call's.

        With `tile`, draw only that rectangle of the picture of `size`; its bits do not depend on the tile.
        """
        raise NotImplementedError

    def sample_count(self, settings: AnySettings, size: Size) -> int:
        """Number of draws that finish the picture."""
        return 1

    def keeps_pixels(self, settings: AnySettings) -> bool:
        """True if a frame is made of the pixels of the frame before: a coarse one would stay visible in later ones."""
        return False

    def frame_times(self, settings: AnySettings) -> tuple[float, float]:
        """The first scene time that the frame drawn last shows, and the first of the next frame, in seconds."""
        return -math.inf, math.inf

    def continue_from(self, before: "AnyPicture") -> None:
        """Go on from the state of the window's picture `before`, of the same scene before an edit of its files."""

    def readable_samples(self, settings: AnySettings) -> int:
        """The least samples of a readable picture; an animation gets fewer pixels rather than fewer samples."""
        return 1

    def restart(self) -> None:
        """Make the next draw the first sample, whatever was drawn before."""

    def prepare_export(self, tone: ToneMapping) -> None:
        """Begin work that only exports need, concurrently with drawing; `tone` will map the frames."""

    def depends_on_time(self, settings: AnySettings) -> bool:
        """True if the picture of these settings depends on time."""
        return False

    def work(self, settings: AnySettings) -> float:
        """Return the greatest cost of a pixel of these settings, in iterations; 1 if all settings cost the same.

        The window scales the measured time of a draw by this number, and divides draws that would take too long.
        """
        return 1.0

    def fraction_done(self, drawn: int, total: int) -> float:
        """Fraction of the picture's work that is done after `drawn` of `total` draws."""
        return drawn / total

    def never_block(self) -> None:
        """From now on no draw may wait long for a compiler, because it would block the window."""

    def clone(self) -> Self:
        """Return a picture with separate samples that shares everything that does not depend on the tile.

        Called only if can_clone is true. The window draws a slow sample in tiles, one clone a tile.
        """
        raise NotImplementedError

    def source_picture(self, settings: AnySettings, size: Size) -> "tuple[AnyPicture, PictureSettings, Size] | None":
        """Return the picture that this one post-processes, with its settings and size; None if there is none.

        The window draws that picture in tiles and calls postprocess() with its frame.
        """
        return None

    def current_frame(self, frame: Frame) -> Frame:
        """The frame of all samples so far, where `frame` is the last one that draw() returned."""
        return frame

    @classmethod
    def fits_whole(cls, settings: AnySettings, size: Size) -> bool:
        """True if a picture so large is drawn at once, its frame then made tile by tile by developed()."""
        return False

    def keeps_samples(self, settings: AnySettings, size: Size) -> bool:
        """fits_whole(), and the device has room too."""
        return self.fits_whole(settings, size)

    def developed(self, tile: Tile) -> Frame:
        """The frame of a tile of all samples of the picture drawn at once, which gets no more samples."""
        raise NotImplementedError

    def postprocess(self, settings: AnySettings, size: Size, frame: Frame) -> Frame:
        """Return the frame that draw() would make from this frame of source_picture()."""
        raise NotImplementedError

    def layers(self, settings: AnySettings, size: Size, tile: Tile | None = None) -> dict[str, np.ndarray]:
        """Return further images of the picture drawn last, for EXR files: name -> (height, width) or (..., 3)."""
        return {}

    def algorithm(self, name: str, settings: AnySettings, size: Size, at: Point = CENTER) -> AlgorithmView:
        """Return the view `name`, one of algorithm_names, of the algorithm behind the picture; wait for the device.

        `at` is the pixel of the views in pixel_views.
        """
        raise NotImplementedError

    def trace_paths(self, settings: AnySettings, size: Size, x: int, y: int, samples: int) -> "list[Ray]":
        """Return the rays of the first `samples` samples of pixel (x, y); [] for a picture without rays."""
        return []

    def pick(self, settings: AnySettings, size: Size, x: float, y: float) -> float | None:
        """Distance along the view axis of the surface at pixel (x, y), or None; if can_pick is true."""
        return None

    def scene_at(self, settings: AnySettings, size: Size, x: float, y: float) -> Scene | None:
        """The scene that a click at pixel (x, y) opens, or None; if can_open is true."""
        return None

    def noise(self) -> float | None:
        """Return the estimated noise of the picture drawn last, as a fraction of white; None while it is unknown.

        A picture that cannot estimate its noise returns infinity.
        """
        return float("inf")

    def report(self) -> Json:
        """Statistics of the last draw, for panels and records; may read from the device."""
        return {}

    def hints(self) -> list[str]:
        """Advice, a sentence each, that an export gives about the picture drawn last."""
        return []

    def hints_on(self, frame: Texture) -> list[str]:
        """Advice, a sentence each, on a linear frame that a window shows; may read it, which waits for the device."""
        return []

    # A farm divides the samples of one picture into chunks, which workers draw; the merged picture has the same bits as
    # one drawn by draw() on one machine.

    def chunks(self, settings: AnySettings, size: Size, samples: int, max_count: int) -> list[Chunk]:
        """At most `max_count` chunks of the picture's samples, for draw_chunk(); [] if it cannot be divided."""
        return []

    def draw_chunk(
        self, settings: AnySettings, size: Size, time: float, chunk: Chunk, extra_steps: ExtraSteps
    ) -> ChunkResults:
        """Draw one chunk; return its results for merge(). `extra_steps` are the answers of missing_steps() so far."""
        raise NotImplementedError

    def start_merge(self, settings: AnySettings, size: Size, time: float) -> None:
        """Begin to merge the chunks of a picture."""
        raise NotImplementedError

    def merge(self, drawn: ChunkResults) -> None:
        """Add the results of draw_chunk(); chunks may come in any order."""
        raise NotImplementedError

    def missing_steps(self, extra_steps: ExtraSteps) -> tuple[int, ...]:
        """Further steps that every chunk must draw before the picture is finished; () for none."""
        return ()

    def merged_frame(self, extra_steps: ExtraSteps) -> Frame:
        """The finished picture of the merged chunks."""
        raise NotImplementedError


class AccumulatingPicture(Picture[AnySettings]):
    """A picture whose draws add samples: it counts them, and begins again when settings, size, time or tile change.

    A subclass implements begin() and add_sample(), and calls super().__init__(gpu). `samples` is the number of samples
    drawn so far.
    """

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self.samples = 0
        self._drawn: tuple[object, ...] | None = None  # restart key, size, time and tile of the samples

    def restart_key(self, settings: AnySettings) -> object:
        """The part of the settings whose change begins the picture again; by default all."""
        return settings

    def begin(self, settings: AnySettings, size: Size, time: float, tile: Tile) -> None:
        """Prepare for the first sample: allocate, upload, compile."""
        raise NotImplementedError

    def add_sample(self, settings: AnySettings, size: Size, time: float, tile: Tile) -> Frame:
        """Draw sample number `self.samples`; the frame is the mean of all samples so far."""
        raise NotImplementedError

    def draw(self, settings: AnySettings, size: Size, time: float, tile: Tile | None = None) -> Frame:
        """Add a sample to the picture of (settings, size, time, tile), or begin it."""
        tile = tile or (0, 0, *size)
        self.begin_if_changed(settings, size, time, tile)
        frame = self.add_sample(settings, size, time, tile)
        self.samples += 1
        return frame

    def begin_if_changed(self, settings: AnySettings, size: Size, time: float, tile: Tile) -> None:
        """Begin the picture of (settings, size, time, tile), unless the present samples belong to it."""
        key = self._samples_key(settings, size, time, tile)
        if key != self._drawn:
            self._drawn, self.samples = None, 0  # no picture if begin() fails
            self.begin(settings, size, time, tile)
            self._drawn = key

    def is_begun(self, settings: AnySettings, size: Size, time: float, tile: Tile) -> bool:
        """True if the present samples belong to the picture of (settings, size, time, tile)."""
        return self._drawn == self._samples_key(settings, size, time, tile)

    def _samples_key(self, settings: AnySettings, size: Size, time: float, tile: Tile) -> tuple[object, ...]:
        return self.restart_key(settings), size, time if self.depends_on_time(settings) else 0.0, tile

    def restart(self) -> None:
        """Make the next draw the first sample."""
        self._drawn = None

    def sample_count(self, settings: Any, size: Size) -> int:
        """The samples that the settings ask for."""
        return int(settings.samples)

    def clone(self) -> Self:
        """A copy that has no samples yet."""
        other = copy(self)
        other._drawn, other.samples, other._cache = None, 0, {}
        return other

    def report(self) -> Json:
        """The number of samples."""
        return {"samples": self.samples}


AnyPicture = Picture[Any]  # a picture whose kind is known only when the scene is read
