"""One sample of a costly picture in bands of rows, so that no draw keeps the window, or the device, for long."""

from renderer.errors import UserError
from renderer.gpu.gl import GlContext, Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.pictures import restart

LEAST_ROWS = 8  # of a band
MOST = 64  # bands of a picture


class Bands:
    """A picture and its twins, each with a band of rows of one composed texture. One band is the whole picture.

    Of a picture that is made of another one it is the other one that is drawn in bands.
    """

    def __init__(self, gl: GlContext, picture):
        self._gl, self.picture = gl, picture
        self._copy = gl.render_pass("images/copy_strip.frag")
        self._twins: list = []
        self._bridges: dict[tuple, GlInterop] = {}
        self._composed: Texture | None = None
        self._made: Texture | None = None  # the last whole picture, where it is made of another one
        self._settings, self._size = None, (1, 1)
        self._drawn = picture, None, (1, 1)  # what is drawn in bands: a picture, its settings and its size
        self.count = 1
        self.done = 0  # bands of the sample that is being drawn
        self.transfer = ""

    def can_split(self, settings) -> bool:
        try:
            return hasattr(self._banded(settings, self._size)[0], "twin")
        except UserError:  # of the other picture's file; its draw will tell
            return False

    def _banded(self, settings, size: tuple[int, int]):
        """The picture that is drawn in bands, its settings and its size."""
        source = self.picture.source(settings, size) if hasattr(self.picture, "source") else None
        return source or (self.picture, settings, size)

    def wanted(self, settings, seconds: float, limit: float, rows: int) -> int:
        """How many bands make each of a picture that takes `seconds` fit into `limit`."""
        if seconds <= limit or not self.can_split(settings):
            return 1
        return max(1, min(int(seconds / limit) + 1, MOST, rows // LEAST_ROWS))

    def begin(self, settings, size: tuple[int, int], count: int, shown: Texture | None) -> None:
        """Starts a picture in `count` bands, over what is `shown` until they are there."""
        if settings != self._settings or count != self.count:
            self._twins = []  # what they share may be made anew by the first band's picture
        self._settings, self._size, self.count, self.done = settings, size, count, 0
        self._drawn, before = self._banded(settings, size), self._drawn
        self._twins = self._twins if self._drawn[0] is before[0] else []
        for picture in (self.picture, *self._twins):  # the same settings again would go on with more samples
            restart(picture)
        if count == 1:
            self._composed = None
            return
        is_made, size = self._drawn[0] is not self.picture, self._drawn[2]
        self._made = shown if is_made else None
        if self._composed is None or self._composed.size != size:
            self._composed, old = self._gl.texture(size), shown
            if old is not None and not is_made:
                self._copy(
                    self._composed,
                    image=old,
                    corner=(0, 0),
                    step_=tuple(o / n for o, n in zip(old.size, size, strict=True)),
                )

    def tile(self) -> tuple[int, int, int, int]:
        """The band that is drawn next."""
        width, height = self._drawn[2]
        top, bottom = (height * k // self.count for k in (self.done, self.done + 1))
        return (0, top, width, bottom - top)

    def draw(self, moment: float):
        """The frame of the next band."""
        if self.count == 1:
            return self.picture.draw(self._settings, self._size, moment)
        first, settings, size = self._drawn
        while len(self._twins) < self.done:
            self._twins.append(first.twin())
        picture = self._twins[self.done - 1] if self.done else first
        return picture.draw(settings, size, moment, self.tile())

    def put(self, frame) -> Texture:
        """Takes over the band that was drawn; the picture as far as it is there."""
        if self.count == 1:
            texture = self._bridged(frame)
        else:
            tile, texture = self.tile(), self._composed
            self._copy(texture, scissor=tile, image=self._bridged(frame), corner=tile[:2], step_=(1.0, 1.0))
        self.done = (self.done + 1) % self.count
        if self.count == 1 or self._drawn[0] is self.picture:
            return texture
        if self.done == 0 or self._made is None:
            self._made = self._bridged(self.picture.made(self._settings, self._size, texture))
        return self._made

    def _bridged(self, frame) -> Texture:
        height, width = frame.shape[:2]
        if (width, height) not in self._bridges:
            if len(self._bridges) > 2:  # sizes that a window had before
                self.release()
            self._bridges[width, height] = GlInterop(self._gl)
        bridge = self._bridges[width, height]
        texture = bridge.texture(frame)
        self.transfer = bridge.transfer
        return texture

    def report(self) -> dict:
        """What the picture reports; counts by depth and the like are those of all bands."""
        told = self.picture.report()
        for twin in self._twins[: self.count - 1]:
            for name, value in twin.report().items():
                if _is_counts(value) and _is_counts(told.get(name)) and len(value) == len(told[name]):
                    told[name] = [a + b for a, b in zip(told[name], value, strict=True)]
        return told

    def release(self) -> None:
        """Gives shared images back; call before the GL context goes."""
        for bridge in self._bridges.values():
            bridge.release()
        self._bridges = {}


def _is_counts(value) -> bool:
    return isinstance(value, list) and all(isinstance(n, int) for n in value)
