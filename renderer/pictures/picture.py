"""The interface of pictures, with defaults: a new kind of picture overrides what it has and no more.

A module of this package defines a frozen dataclass `Settings(PictureSettings)` and a class `Picture` that derives from
Picture or AccumulatingPicture of this module and has `settings_type = Settings`.
"""

from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from renderer.errors import UnavailableError, UserError
from renderer.gpu import Buffer, DeviceContext
from renderer.gpu.gl import Texture
from renderer.images.algorithm_view import CHANNELS, AlgorithmView
from renderer.scene.scene import COLOR, Scene, ToneMapping
from renderer.scene.schema import PictureSettings, from_table

Size = tuple[int, int]  # width, height in pixels
Tile = tuple[int, int, int, int]  # left, top, width, height in pixels
Frame = Buffer | Texture  # (height, width, 4) float32, linear Rec. 709, row 0 on top


class Picture:
    """Draws one kind of scene on one DeviceContext.

    `tone` is the tone mapping of scenes that set none. `layer_names` are the names of what layers() returns,
    `algorithm_names` those that algorithm() takes, `pixel_views` those of these that show one pixel. `passes` are the
    GLSL files, below shaders/, that draw it: the window's editor offers them.
    """

    settings_type: ClassVar[type] = PictureSettings
    tone: ToneMapping = ToneMapping()
    layer_names: tuple[str, ...] = ()
    algorithm_names: tuple[str, ...] = ()
    pixel_views: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    views_are_steady = False  # whether the algorithm's views do not depend on the samples so far
    can_clone = False
    can_pick = False
    can_open = False

    def __init__(self, gpu: DeviceContext) -> None:
        """Keep the devices; a subclass calls this and compiles the kernels that do not depend on the settings."""
        self.gpu = gpu

    @classmethod
    def read_settings(cls, table: Any, context: str, folder: Path) -> Any:
        """The settings of a scene's [settings] table; paths in it are relative to `folder`. Raises InputError."""
        return from_table(cls.settings_type, table, context, folder)

    @classmethod
    def ignored(cls, settings: Any) -> dict[str, int]:
        """What the files of the settings say and the picture does not honor (see renderer.plain.format_ignored)."""
        return {}

    @classmethod
    def with_animation(cls, scene: Scene, name: str) -> Scene:
        """The scene with the models' animation of this name playing; UserError if there is none."""
        raise UserError(f"--animation {name}: {scene.path} is no model and has none")

    @classmethod
    def with_variant(cls, scene: Scene, name: str) -> Scene:
        """The scene with the models' material variant of this name; UserError if there is none."""
        raise UserError(f"--variant {name}: {scene.path} is no model and has none")

    @classmethod
    def choices(cls, settings: Any) -> dict[str, list[str]]:
        """Names that the files of the settings offer, by the option that takes one: keys of --json."""
        return {}

    @classmethod
    def view_names(cls) -> list[str]:
        """What a panel can show: the picture, its layers, its algorithm's views and its color channels."""
        return [COLOR, *cls.layer_names, *cls.algorithm_names, *CHANNELS]

    @staticmethod
    def panels(scene: Scene) -> list[Scene]:
        """The scenes that the window shows side by side for this one."""
        return [scene]

    def draw(self, settings: Any, size: Size, time: float, tile: Tile | None = None) -> Frame:
        """Add a sample to the picture of (settings, size, time), or start it if these differ from the last call's.

        With `tile`, draw only that rectangle of the picture of `size`, with the bits that it has in the whole.
        """
        raise NotImplementedError

    def sample_count(self, settings: Any, size: Size) -> int:
        """Number of draws that finish the picture."""
        return 1

    def readable_samples(self, settings: Any) -> int:
        """The samples below which noise hides a picture; one that plays has fewer pixels before fewer samples."""
        return 1

    def restart(self) -> None:
        """Make the next draw the first sample, whatever was drawn before."""

    def prepare_export(self, tone: ToneMapping) -> None:
        """Begin what only a picture that goes to a file needs, beside its drawing; `tone` maps its frames."""

    def depends_on_time(self, settings: Any) -> bool:
        """Whether the picture of these settings depends on time."""
        return False

    def work(self, settings: Any) -> float:
        """The most that a pixel of these settings can cost, in iterations; what is alike for all settings is 1.

        The window expects what it has measured, times the change of this, and divides a draw that would block it.
        """
        return 1.0

    def fraction_done(self, drawn: int, total: int) -> float:
        """Fraction of the picture's work that is done after `drawn` of `total` draws."""
        return drawn / total

    def never_block(self) -> None:
        """Ask that from now on no draw waits long for a compiler: the window is waiting."""

    def clone(self) -> Self:
        """Another picture that draws on its own and shares what does not depend on the tile, where can_clone is true.

        The window draws a slow sample in tiles, one clone a tile.
        """
        raise NotImplementedError

    def source_picture(self, settings: Any, size: Size) -> tuple["Picture", Any, Size] | None:
        """The picture that this one post-processes, its settings and size; None if there is none.

        The window draws that picture in tiles and calls postprocess() with its frame.
        """
        return None

    def postprocess(self, settings: Any, size: Size, frame: Any) -> Frame:
        """The frame that draw() makes of a frame of source_picture()."""
        raise NotImplementedError

    def layers(self, settings: Any, size: Size, tile: Tile | None = None) -> dict[str, np.ndarray]:
        """Further images of the picture that was drawn last, for EXR files: name -> (height, width) or (..., 3)."""
        return {}

    def algorithm(self, name: str, settings: Any, size: Size, at: tuple[float, float] = (0.5, 0.5)) -> AlgorithmView:
        """The steps of the algorithm that draws the picture, one of algorithm_names; waits for the device.

        `at` is the pixel of views of one, in fractions of the picture's width and height.
        """
        raise NotImplementedError

    def trace_paths(self, settings: Any, size: Size, x: int, y: int, samples: int) -> list[Any]:
        """The rays of the first samples of pixel (x, y); none where a picture traces none."""
        return []

    def pick(self, settings: Any, size: Size, x: float, y: float) -> float | None:
        """Distance along the view of what is seen at pixel (x, y); None for nothing. Where can_pick is true."""
        return None

    def scene_at(self, settings: Any, size: Size, x: float, y: float) -> Scene | None:
        """The scene that a click at pixel (x, y) opens; None for nothing. Where can_open is true."""
        return None

    def noise(self) -> float | None:
        """The estimated noise of the picture that was drawn last, as a fraction of white; None while it is unknown.

        A picture that cannot estimate its noise returns infinity.
        """
        return float("inf")

    def report(self) -> dict[str, Any]:
        """Statistics of the last draw, for panels and records; may read from the device."""
        return {}

    def hint(self) -> str:
        """What an export of the picture drawn last tells its user to try, in one line; nothing to tell if empty."""
        return ""

    # A farm divides the samples of one picture into chunks, which workers draw; the merged picture has the bits that
    # draw() gives on one machine.

    def chunks(self, settings: Any, size: Size, samples: int, max_count: int) -> list[tuple]:
        """At most `max_count` chunks of the picture's samples, for draw_chunk(); [] if it cannot be divided so."""
        return []

    def draw_chunk(self, settings: Any, size: Size, time: float, chunk: tuple, extra_steps: tuple) -> dict[str, Any]:
        """What merge() needs of one chunk. `extra_steps` is what missing_steps() has asked for so far."""
        raise NotImplementedError

    def start_merge(self, settings: Any, size: Size, time: float) -> None:
        """Begin to merge the chunks of a picture."""
        raise NotImplementedError

    def merge(self, drawn: dict[str, Any]) -> None:
        """Add what draw_chunk() returned; chunks may come in any order."""
        raise NotImplementedError

    def missing_steps(self, extra_steps: tuple) -> tuple[int, ...]:
        """Further steps that every chunk must draw before the picture is finished; () for none."""
        return ()

    def merged_frame(self, extra_steps: tuple) -> Frame:
        """The finished picture of the merged chunks."""
        raise NotImplementedError


class AccumulatingPicture(Picture):
    """A picture whose draws add samples: it keeps count of them and starts again when what is drawn changes.

    A subclass implements begin() and add_sample(), and calls super().__init__(gpu). `samples` counts the samples that
    the picture has.
    """

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self.samples = 0
        self._drawn: tuple | None = None  # what the samples belong to

    def restart_key(self, settings: Any) -> Any:
        """What of the settings starts the picture again when it changes; by default all."""
        return settings

    def begin(self, settings: Any, size: Size, time: float, tile: Tile) -> None:
        """Prepare for the first sample: allocate, upload, compile."""
        raise NotImplementedError

    def add_sample(self, settings: Any, size: Size, time: float, tile: Tile) -> Frame:
        """Draw sample number `self.samples`; the frame is the mean of all samples so far."""
        raise NotImplementedError

    def draw(self, settings: Any, size: Size, time: float, tile: Tile | None = None) -> Frame:
        """Add a sample to the picture of (settings, size, time, tile), or start it."""
        tile = tile or (0, 0, *size)
        self.begin_if_changed(settings, size, time, tile)
        frame = self.add_sample(settings, size, time, tile)
        self.samples += 1
        return frame

    def begin_if_changed(self, settings: Any, size: Size, time: float, tile: Tile) -> None:
        """Start the picture of (settings, size, time, tile), unless it is the one that the samples belong to."""
        time = time if self.depends_on_time(settings) else 0.0
        key = (self.restart_key(settings), size, time, tile)
        if key != self._drawn:
            self._drawn, self.samples = None, 0  # no picture if begin() fails
            self.begin(settings, size, time, tile)
            self._drawn = key

    def restart(self) -> None:
        """Make the next draw the first sample."""
        self._drawn = None

    def sample_count(self, settings: Any, size: Size) -> int:
        """The samples that the settings ask for."""
        return settings.samples

    def clone(self) -> Self:
        """A copy that has no samples yet."""
        other = copy(self)
        other._drawn, other.samples = None, 0
        return other

    def report(self) -> dict[str, Any]:
        """The number of samples."""
        return {"samples": self.samples}


def require_untiled(kind: str, size: Size, tile: Tile | None) -> None:
    """UnavailableError for a tile of a picture that can only be drawn whole."""
    if tile not in (None, (0, 0, *size)):
        raise UnavailableError(f"a {kind} is drawn whole, without --tile and at no more than 4096 x 4096 pixels")
