"""Magnification of a panel's picture, which is not drawn again; large pixels show their values.

app/mouse.py zooms and pans (Ctrl+wheel, Ctrl+drag); PanelView and the overlays map points by the zoom.
"""

from collections.abc import Callable
from typing import Self

import numpy as np

from renderer.records import dataclass, replace
from renderer.window.controls import imgui, theme

STEP = 1.25  # factor of a step of the wheel
MAX_FACTOR = 256.0
ReadRegion = Callable[[int, int, int, int], np.ndarray]  # the numbers at left, top, width, height of a picture
VALUE_SIDE = 52  # units that a pixel's side must have, at scale 1, for its values to be written in it


@dataclass(frozen=True)
class PixelZoom:
    """The visible region of a picture: `factor` times magnified, from (left, top) in fractions of width and height."""

    factor: float = 1.0
    left: float = 0.0
    top: float = 0.0

    @property
    def is_on(self) -> bool:
        """True if the picture is magnified."""
        return self.factor > 1.0

    def zoomed(self, steps: float, u: float, v: float) -> Self:
        """After `steps` of the wheel at (u, v), fractions of the panel's width and height; that point stays."""
        factor = min(max(self.factor * STEP**steps, 1.0), MAX_FACTOR)
        x, y = self.picture_point(u, v)
        return self._placed(factor, x - u / factor, y - v / factor)

    def panned(self, du: float, dv: float) -> Self:
        """After a drag by fractions of the panel's width and height."""
        return self._placed(self.factor, self.left - du / self.factor, self.top - dv / self.factor)

    def centered(self, x: float, y: float) -> Self:
        """Around a point of the picture, in fractions of its width and height."""
        return self._placed(self.factor, x - 0.5 / self.factor, y - 0.5 / self.factor)

    def _placed(self, factor: float, left: float, top: float) -> Self:
        most = 1.0 - 1.0 / factor
        return replace(self, factor=factor, left=min(max(left, 0.0), most), top=min(max(top, 0.0), most))

    def picture_point(self, u: float, v: float) -> tuple[float, float]:
        """The point of the picture that is shown at (u, v) of the panel; both in fractions of width and height."""
        return self.left + u / self.factor, self.top + v / self.factor

    def panel_point(self, x: float, y: float) -> tuple[float, float]:
        """The inverse of picture_point."""
        return (x - self.left) * self.factor, (y - self.top) * self.factor

    def pixels(self, size: tuple[int, int]) -> tuple[range, range]:
        """The columns and rows of a picture of `size` pixels that are shown, in whole or in part."""
        ends = (self.left + 1 / self.factor, self.top + 1 / self.factor)
        spans = zip((self.left, self.top), ends, size, strict=True)
        columns, rows = (range(int(low * n), min(int(np.ceil(high * n)), n)) for low, high, n in spans)
        return columns, rows


def draw_values(
    zoom: PixelZoom, rect: theme.Rect, size: tuple[int, int], read: ReadRegion, fonts: theme.Fonts, scale: float
) -> None:
    """Writes the values of each pixel into it where pixels are large enough.

    read(left, top, width, height) gives the values of a rectangle of the picture of `size` pixels.
    """
    left, top, width, height = rect
    side = zoom.factor * width / size[0]
    if min(side, zoom.factor * height / size[1]) < VALUE_SIDE * scale:
        return
    columns, rows = zoom.pixels(size)
    values = np.asarray(read(columns.start, rows.start, len(columns), len(rows)))
    values = values[..., None] if values.ndim == 2 else values[..., :3]
    draw, font_size = imgui.get_window_draw_list(), theme.FONT_SIZE * scale * 0.8
    for row in rows:
        for column in columns:
            u, v = zoom.panel_point(column / size[0], row / size[1])
            x, y = left + u * width + 4 * scale, top + v * height + 3 * scale
            for line, value in enumerate(values[row - rows.start, column - columns.start]):
                text = f"{value:.3g}"
                theme.shadow_text(draw, fonts.numbers, font_size, x, y + line * font_size, theme.TEXT, text)
