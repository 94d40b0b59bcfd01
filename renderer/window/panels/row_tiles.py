"""Row tiles: one sample of a costly picture in several short draws, so that neither window nor device is blocked.

DrawLoop starts a picture in tiles, draws one tile at a time, and displays the texture that composes them.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeGuard

import numpy as np

from renderer.gpu.gl import GlContext, Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.pictures.picture import Frame, Picture, Size, Tile
from renderer.scene.schema import PictureSettings

MIN_TILE_ROWS = 8  # rows of the smallest tile
MAX_TILES = 64  # tiles of one sample; each has a clone of the picture


class DrawKey(NamedTuple):
    """The key of samples: when it changes, they are discarded."""

    settings: PictureSettings
    time: float  # seconds of scene time; 0 for a picture that does not depend on it
    size: Size  # in pixels


class TiledPicture(NamedTuple):
    """The picture that is drawn in tiles: the panel's picture, or the source that it post-processes."""

    picture: Picture
    settings: PictureSettings | None
    size: Size


class RowTiles:
    """Draws each sample of a picture in `count` tiles of whole rows and composes them in one texture.

    Every tile has its own clone of the picture, which accumulates the samples of its rows; with count = 1 the picture
    is drawn whole. If the picture post-processes another picture, that other picture is drawn, and its displayed frames
    are post-processed.
    """

    def __init__(self, gl: GlContext, picture: Picture):
        self._gl, self.picture = gl, picture
        self._copy = gl.render_pass("images/copy_strip.frag")
        self._clones: list[Picture] = []  # the pictures of tiles 1, 2, ...; tile 0 is drawn by the picture itself
        self._frames: list[Frame] = []  # the last frame of each tile
        self._interops: dict[Size, GlInterop] = {}  # by size of a frame
        self._composed: Texture | None = None  # the texture that composes the tiles; None if count is 1
        self._postprocessed: Texture | None = None  # the last complete post-processed picture
        # Settings and size of `picture`; of the picture that is drawn in tiles, which may be its source.
        self._settings: PictureSettings | None = None
        self._size = (1, 1)
        self._tiled = TiledPicture(picture, None, (1, 1))
        self.count = 1
        self.done = 0  # tiles of the current sample that are drawn or on their way
        self.repeat = 1  # samples that each tile draws at once; set before the first tile of a sample
        self.transfer = ""  # how frames reach the window's GL

    def can_split(self, settings: PictureSettings) -> bool:
        """True if the picture of these settings can be drawn in tiles."""
        with suppress(Exception):  # for example an error in the file of the source picture; the draw reports it
            return self._tiled_picture(settings, self._size).picture.can_clone
        return False

    def _tiled_picture(self, settings: PictureSettings, size: Size) -> TiledPicture:
        """The picture to draw in tiles: the source picture if `picture` post-processes one, else `picture`."""
        source = self.picture.source_picture(settings, size)  # (picture, settings, size), or None
        return TiledPicture(*(source or (self.picture, settings, size)))

    def tile_count(self, settings: PictureSettings, seconds: float, budget: float, rows: int) -> int:
        """The number of tiles that keeps each below `budget` seconds, for a sample of `seconds` and `rows`."""
        if seconds <= budget or not self.can_split(settings):
            return 1
        return max(1, min(int(seconds / budget) + 1, MAX_TILES, rows // MIN_TILE_ROWS))

    def start(self, settings: PictureSettings, size: Size, count: int, previous: Texture | None) -> None:
        """Starts a picture in `count` tiles; `previous` is displayed where they are not drawn yet."""
        if settings != self._settings or count != self.count:
            self._clones = []  # clones share data with tile 0's picture, which it may rebuild for other settings
        self._settings, self._size, self.count, self.done, self._frames = settings, size, count, 0, []
        before, self._tiled = self._tiled, self._tiled_picture(settings, size)
        self._clones = self._clones if self._tiled.picture is before.picture else []  # they are clones of that picture
        for picture in (self.picture, *self._clones):  # a picture with equal settings would add samples to the old ones
            picture.restart()
        is_postprocessed, tiled_size = self._tiled.picture is not self.picture, self._tiled.size
        self._postprocessed = previous if is_postprocessed else None
        if count == 1:
            self._composed = None
        elif self._composed is None or self._composed.size != tiled_size:
            self._composed = self._gl.texture(tiled_size)
            if previous is not None and not is_postprocessed:  # stretched to the new size
                step = tuple(old / new for old, new in zip(previous.size, tiled_size, strict=True))
                self._copy(self._composed, image=previous, offset=(0, 0), texel_step=step)

    def tile(self, index: int) -> Tile:
        """The tile of this index."""
        width, height = self._tiled.size
        top, bottom = (height * k // self.count for k in (index, index + 1))
        return (0, top, width, bottom - top)

    def draw(self, time: float) -> Frame:
        """Draws the next tile at a scene time in seconds; returns its frame, on the picture's device."""
        (first, settings, size), tile = self._tiled, self.tile(self.done) if self.count > 1 else None
        while len(self._clones) < self.done:
            self._clones.append(first.clone())
        picture = self._clones[self.done - 1] if self.done else first
        for _ in range(self.repeat - 1):
            picture.draw(settings, size, time, tile)
        frame = picture.draw(settings, size, time, tile)
        self._frames[self.done : self.done + 1] = [frame]  # appended in the first sample, then replaced
        self.done = (self.done + 1) % self.count
        return frame

    def start_transfer(self, frame: Frame) -> Callable[[], Texture]:
        """Starts to copy a frame, because the next draw overwrites it.

        Returns a function that returns the copy as a texture; it is called once the draw is done.
        """
        interop = self._interop_for(frame)
        start, self.transfer = interop.start(frame), interop.transfer
        return start

    def latest(self) -> Texture:
        """Composes the frames that were drawn last, while no draw is on its way; returns the linear picture."""
        assert self._frames
        for index, frame in enumerate(self._frames):
            texture = self.store_tile(index, self._interop_for(frame).texture(frame))
        return texture

    def store_tile(self, index: int, texture: Texture) -> Texture:
        """Composes the texture of a tile's frame; returns the linear picture so far."""
        if self.count > 1:
            assert self._composed is not None
            tile = self.tile(index)
            self._copy(self._composed, scissor=tile, image=texture, offset=tile[:2], texel_step=(1.0, 1.0))
            texture = self._composed
        if self._tiled.picture is self.picture:
            return texture
        if index == self.count - 1 or self._postprocessed is None:
            frame = self.picture.postprocess(self._settings, self._size, texture)
            self._postprocessed = self._interop_for(frame).texture(frame)
        return self._postprocessed

    def _interop_for(self, frame: Frame) -> GlInterop:
        height, width = frame.shape[:2]
        if (width, height) not in self._interops:
            if len(self._interops) > 3:  # tiles of a sample have at most two heights: the rest are of earlier sizes
                self.release()
            self._interops[width, height] = GlInterop(self._gl)
        return self._interops[width, height]

    def layers(self) -> dict[str, np.ndarray]:
        """The layers of the picture, composed from its tiles; a post-processing picture gives its layers itself."""
        if self.count == 1 or self._tiled.picture is not self.picture:
            return self.picture.layers(self._settings, self._size)
        pictures = (self.picture, *self._clones)[: self.count]
        layers = [picture.layers(self._settings, self._size, self.tile(k)) for k, picture in enumerate(pictures)]
        return {name: np.concatenate([tile[name] for tile in layers]) for name in layers[0]}

    def report(self) -> dict[str, object]:
        """The picture's report; lists of counts, such as rays by depth, are summed over the tiles."""
        report: dict[str, object] = self.picture.report()
        for clone in self._clones[: self.count - 1]:
            for name, value in clone.report().items():
                total = report.get(name)
                if _is_counts(value) and _is_counts(total) and len(value) == len(total):
                    report[name] = [a + b for a, b in zip(total, value, strict=True)]
        return report

    def release(self) -> None:
        """Releases the interop objects, which must not outlive the GL context."""
        for interop in self._interops.values():
            interop.release()
        self._interops = {}


def _is_counts(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(isinstance(n, int) for n in value)
