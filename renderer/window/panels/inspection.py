"""What a panel shows of its picture instead of its colors: a layer, or a step of its algorithm."""

from functools import partial
from typing import Any

import numpy as np

from renderer.gpu.gl import GlContext, Texture
from renderer.images.inspection import histogram, layer_picture
from renderer.pictures.picture import AlgorithmView
from renderer.window.boundary import contained
from renderer.window.controls.step import next_item

COLOR = "color"  # the view of the picture itself
REST_FACTOR = 10.0  # a view is made anew after so many times the seconds that it took: it costs a tenth of the time
MAX_REST = 20.0  # seconds; the first one may have waited for a compiler


class Inspection:
    """The view of one panel, which is passed to its methods; `step` is the bounce or pass of an algorithm's view."""

    def __init__(self, gl: GlContext):
        self._gl = gl
        self.name = COLOR
        self.step = 0
        self.texture: Texture | None = None  # what is displayed; None for the picture itself
        self.values: np.ndarray | None = None  # what it was made of, (height, width) or (..., 3)
        self.meaning = ""  # of its colors
        self.algorithm: AlgorithmView | None = None  # the steps, in an algorithm's view
        self.counts: tuple[np.ndarray, dict[str, int]] | None = None  # the histogram of the picture
        self.shows_histogram = False
        self.rays: list[Any] = []  # of the clicked pixel, drawn over the picture
        self.opens_controls = False  # at the next frame
        self._layers: dict[str, np.ndarray] = {}
        self._key: Any = None  # of the layers or the algorithm
        self._histogram_key: Any = None
        self._shown_key: Any = None
        self._next_at = 0.0  # when a view may be made anew

    def names(self, panel: Any) -> list[str]:
        """The views that the panel's picture has."""
        picture = panel.picture
        return [COLOR, *(() if picture is None else (*picture.layer_names, *picture.algorithm_names))]

    def select(self, name: str) -> None:
        """Shows another view."""
        self.name, self.step, self._shown_key, self._key, self._next_at = name, 0, None, None, 0.0
        self._layers, self.algorithm = {}, None
        if name == COLOR:
            self.texture = self.values = None

    def cycle(self, panel: Any, direction: int) -> str:
        """Shows the next (1) or previous (-1) view and returns its name."""
        names = self.names(panel)
        self.opens_controls = True
        self.select(next_item(names if direction > 0 else names[::-1], self.name))
        return self.name

    def move_step(self, direction: int) -> str:
        """Shows the next (1) or previous (-1) step of an algorithm's view; returns a message."""
        if self.algorithm is None:
            return "this view has no steps; Ctrl+L chooses another"
        self.step = min(max(self.step + direction, 0), len(self.algorithm.pictures) - 1)
        return f"{self.algorithm.unit} {self.step}"

    def is_due(self, panel: Any) -> bool:
        """Whether the view is not that of the displayed picture."""
        is_stale = self.name != COLOR and panel.sample_key != self._key
        return (is_stale or self.shows_histogram and panel.sample_key != self._histogram_key) and not panel.error

    def update(self, panel: Any, now: float) -> None:
        """Makes the views of a picture whose sample is complete; waits for its device."""
        if not panel.shows_full_sample or panel.busy or panel.work.is_waiting:
            return
        key = panel.sample_key
        if self.shows_histogram and key != self._histogram_key and panel.frame is not None:
            self._histogram_key, self.counts = key, histogram(panel.frame.read())
        if self.name == COLOR:
            return
        if self.name not in self.names(panel):
            self.select(COLOR)
        elif key != self._key and now >= self._next_at:
            panel.work.start(partial(self._compute, panel, key))
        elif self._key is not None and (self._key, self.step) != self._shown_key:
            self._show()

    def _compute(self, panel: Any, key: Any) -> None:
        started = panel.now()
        self._key = key
        with contained(f"the view {self.name}", self._fail):
            if self.name in panel.picture.algorithm_names:
                self.algorithm = panel.picture.algorithm(self.name, panel.drawn_settings, panel.frame.size)
            else:
                self._layers = panel.tiles.layers()
            self._show()
        ended = panel.now()
        self._next_at = ended + min(REST_FACTOR * (ended - started), MAX_REST)

    def _fail(self, error: Exception, sentence: str) -> None:
        self.texture = self.values = None
        self.meaning = sentence

    def _show(self) -> None:
        self._shown_key = self._key, self.step
        if self.algorithm is not None:
            self.step = min(self.step, len(self.algorithm.pictures) - 1)
            self.values, pixels = self.algorithm.values[self.step], self.algorithm.pictures[self.step]
            self.meaning = f"{self.algorithm.unit} {self.step}: {self.algorithm.meaning}"
        elif self.name in self._layers:
            self.values = self._layers[self.name]
            pixels, self.meaning = layer_picture(self.name, self.values)
        else:
            self.texture = self.values = None
            self.meaning = f"{self.name} is kept while noise_threshold is above 0"
            return
        self.texture = to_texture(self._gl, pixels, self.texture)


def to_texture(gl: GlContext, pixels: np.ndarray, old: Texture | None = None) -> Texture:
    """(height, width, 3) uint8 pixels as a texture; `old` is used again where it has their size."""
    height, width = pixels.shape[:2]
    rgba = np.full((height, width, 4), 255, "u1")
    rgba[..., :3] = pixels
    texture = old if old is not None and old.size == (width, height) else gl.texture((width, height), 4, "f1")
    return texture.write(rgba)
