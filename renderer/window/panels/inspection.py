"""What a panel shows of its picture instead of its colors: a layer, or a step of its algorithm."""

from functools import partial
from typing import Any

import numpy as np

from renderer.gpu.gl import GlContext, Texture
from renderer.images.inspection import histogram, layer_picture
from renderer.window.boundary import contained
from renderer.window.controls.step import next_item

COLOR = "color"  # the view of the picture itself


class Inspection:
    """The view of one panel, which is passed to its methods; `step` is the bounce or pass of an algorithm's view."""

    def __init__(self, gl: GlContext):
        self._gl = gl
        self.name = COLOR
        self.step = 0
        self.texture: Texture | None = None  # what is displayed; None for the picture itself
        self.values: np.ndarray | None = None  # what it was made of, (height, width) or (..., 3)
        self.meaning = ""  # of its colors
        self.counts: tuple[np.ndarray, dict[str, int]] | None = None  # the histogram of the picture
        self.shows_histogram = False
        self.opens_controls = False  # at the next frame
        self._layers: dict[str, np.ndarray] = {}
        self._layers_key: Any = None
        self._histogram_key: Any = None
        self._shown_key: Any = None

    def names(self, panel: Any) -> list[str]:
        """The views that the panel's picture has."""
        return [COLOR, *(panel.picture.layer_names if panel.picture is not None else ())]

    def select(self, name: str) -> None:
        """Shows another view."""
        self.name, self.step, self._shown_key = name, 0, None
        if name == COLOR:
            self.texture = self.values = None
            self._layers, self._layers_key = {}, None

    def cycle(self, panel: Any, direction: int) -> str:
        """Shows the next (1) or previous (-1) view and returns its name."""
        names = self.names(panel)
        self.opens_controls = True
        self.select(next_item(names if direction > 0 else names[::-1], self.name))
        return self.name

    def update(self, panel: Any) -> None:
        """Takes over the values of a picture whose sample is complete; waits for its device."""
        if not panel.shows_full_sample or panel.busy or panel.work.is_waiting:
            return
        key = panel.sample_key
        if self.shows_histogram and key != self._histogram_key and panel.frame is not None:
            self._histogram_key, self.counts = key, histogram(panel.frame.read())
        if self.name == COLOR:
            return
        if self.name not in self.names(panel):
            self.select(COLOR)
        elif key != self._layers_key:
            panel.work.start(partial(self._compute, panel, key))
        elif (key, self.name, self.step) != self._shown_key:
            self._show()

    def _compute(self, panel: Any, key: Any) -> None:
        self._layers_key = key
        with contained(f"the view {self.name}", self._fail):
            assert panel.tiles is not None
            self._layers = panel.tiles.layers()
            self._show()

    def _fail(self, error: Exception, sentence: str) -> None:
        self.texture = self.values = None
        self.meaning = sentence

    def _show(self) -> None:
        self._shown_key = self._layers_key, self.name, self.step
        if self.name not in self._layers:
            self.texture = self.values = None
            self.meaning = f"{self.name} is kept while noise_threshold is above 0"
            return
        self.values = self._layers[self.name]
        pixels, self.meaning = layer_picture(self.name, self.values)
        self.texture = to_texture(self._gl, pixels, self.texture)


def to_texture(gl: GlContext, pixels: np.ndarray, old: Texture | None = None) -> Texture:
    """(height, width, 3) uint8 pixels as a texture; `old` is used again where it has their size."""
    height, width = pixels.shape[:2]
    rgba = np.full((height, width, 4), 255, "u1")
    rgba[..., :3] = pixels
    texture = old if old is not None and old.size == (width, height) else gl.texture((width, height), 4, "f1")
    return texture.write(rgba)
