"""Views of a panel's picture in place of its colors: a layer, a channel, or a step of its algorithm.

DrawLoop calls update() each frame, which computes the chosen view for the drawn samples; PanelView draws the result.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from renderer.gpu.gl import GlContext, Texture
from renderer.images.algorithm_view import CHANNELS, VIEW_HELP, AlgorithmView, StepPicture
from renderer.images.inspection import channel_picture, histogram, layer_picture
from renderer.pictures.picture import Picture
from renderer.scene.scene import COLOR, Inspect
from renderer.window.boundary import contained
from renderer.window.controls.shortcuts import next_item

REST_FACTOR = 10.0  # a view that took t seconds is computed again after 10 t: views cost a tenth of the time
MAX_REST = 20.0  # seconds
TITLES = {"stencil": "time by part"}  # the caption of a view, where its name is a method's


class Inspection:
    """The view of one panel; `inspect` holds the view's name, step and pixel.

    `panel` in its methods is the Panel: its type is not named, because panel.py imports this module.
    """

    def __init__(self, gl: GlContext, inspect: Inspect):
        self._gl = gl
        self.inspect = inspect
        self.shown: StepPicture | None = None  # the displayed view; None for the picture itself
        self.texture: Texture | None = None  # the view's picture, if it has one
        self.meaning = ""  # a sentence on the view's colors
        self.algorithm: AlgorithmView | None = None  # the steps, in an algorithm's view
        # The histogram of the picture: pixels in each bin of red, green and blue, and pixels outside, by their kind.
        self.counts: tuple[np.ndarray, dict[str, int]] | None = None
        self.shows_histogram = False
        self.rays: list[Any] = []  # rays of the clicked pixel, drawn over the picture
        self.opens_controls = False  # the next frame unfolds the controls
        self._layers: dict[str, np.ndarray] = {}  # the computed layers by name, unless an algorithm's view is chosen
        # What a result was computed from: where it differs from the present state, the result is outdated.
        self._key: object = None  # _dependencies() of the layers or the algorithm
        self._histogram_key: object = None  # the loop's sample_key of `counts`
        self._shown_key: object = None  # _key and the step of the displayed view; None until it is computed
        self._next_at = 0.0  # time before which no view is computed again, in seconds of the panel's clock
        self._cancel: Callable[[], None] | None = None  # ends the computation that waits for a compiler

    @property
    def name(self) -> str:
        """The name of the view; COLOR for the picture itself."""
        return self.inspect.view

    @property
    def step(self) -> int:
        """The bounce, level or pass of an algorithm's view."""
        return self.inspect.step

    @step.setter
    def step(self, step: int) -> None:
        self.inspect = replace(self.inspect, step=step)

    @property
    def values(self) -> np.ndarray | None:
        """The numbers that the view shows, (height, width) or (..., 3)."""
        return None if self.shown is None else self.shown.values

    @staticmethod
    def names(picture: Picture | None) -> list[str]:
        """Names of the views of a picture; without one the picture itself is the only view."""
        return [COLOR] if picture is None else picture.view_names()

    def select(self, name: str) -> None:
        """Shows another view, from its first step."""
        self.show(Inspect(name, 0, self.inspect.pixel))

    def look_closely(self, name: str) -> None:
        """Shows another view, and unfolds its controls; a view that is shown keeps what it has computed."""
        if name != self.name:
            self.select(name)
        self.opens_controls = True

    def show(self, inspect: Inspect) -> None:
        """Shows another view at a step; until it is computed, the picture and nothing of the view before."""
        if self._cancel is not None:
            self._cancel()
        self.inspect, self._shown_key, self._key, self._next_at = inspect, None, None, 0.0
        self._layers, self.algorithm, self.shown, self.texture = {}, None, None, None
        self.meaning = VIEW_HELP.get(inspect.view, "")  # until it is computed

    def look_at(self, picture: Picture, u: float, v: float) -> None:
        """Chooses the pixel that views of one pixel show, by fractions of the picture's width and height."""
        self.inspect = replace(self.inspect, pixel=(min(max(u, 0.0), 1.0), min(max(v, 0.0), 1.0)))
        if self.name in picture.pixel_views:
            self._key, self._next_at = None, 0.0

    def cycle(self, picture: Picture | None, direction: int) -> str:
        """Shows the next (1) or previous (-1) view and returns its name."""
        names = self.names(picture)
        shown = self.name if self.name in names else COLOR  # the scene before had a view that this picture lacks
        self.look_closely(next_item(names, shown, direction))
        return self.name

    def move_step(self, direction: int) -> str:
        """Shows the next (1) or previous (-1) step of an algorithm's view; returns a message."""
        if self.algorithm is None:
            return "this view has no steps; Ctrl+L chooses another"
        self.step = min(max(self.step + direction, 0), self.algorithm.count - 1)
        return f"{self.algorithm.unit} {self.step}"

    def _is_stale(self, panel: object) -> bool:
        """True if a view is chosen that was computed from another state than the panel's, or not yet."""
        return self.name != COLOR and self._dependencies(panel) != self._key

    def _dependencies(self, panel: Any) -> tuple:
        """The state that the view is computed from; steady views of an algorithm do not depend on the sample count."""
        picture = panel.picture
        is_steady = picture is not None and picture.views_are_steady and self.name in picture.algorithm_names
        return panel.draw_loop.sample_key[:1] if is_steady else panel.draw_loop.sample_key

    def caption(self, waiting: str) -> str:
        """The view's name and meaning; before it is computed, what it waits for: `waiting`, or its samples."""
        pending = "" if self._shown_key else f"\n{waiting or 'it appears with the next whole sample'}"
        return f"{TITLES.get(self.name, self.name)}: {self.meaning}{pending}"

    def is_due(self, panel: Any, now: float = math.inf) -> bool:
        """True if the shown view or histogram belongs to an older picture than the displayed one, at a time `now`."""
        is_histogram_stale = self.shows_histogram and panel.draw_loop.sample_key != self._histogram_key
        return (self._is_stale(panel) and now >= self._next_at or is_histogram_stale) and not panel.error

    def update(self, panel: Any, now: float) -> None:
        """Computes the view and the histogram anew when `sample_key` has changed, once a complete sample is displayed.

        The key changes with the settings, when the number of samples has doubled, and at the last sample.
        """
        loop = panel.draw_loop
        if panel.display.frame is None or not loop.shows_full_sample or loop.busy or panel.work.is_waiting:
            return  # a reloaded picture has no frame yet
        key = loop.sample_key
        if self.shows_histogram and key != self._histogram_key:
            self._histogram_key, self.counts = key, histogram(panel.display.frame.read())
        if self.name == COLOR:
            return
        if self.name not in self.names(panel.picture):
            self.select(COLOR)
        elif self._is_stale(panel) and now >= self._next_at:
            panel.work.start(partial(self._compute, panel, self._dependencies(panel)))
        elif self._key is not None and (self._key, self.step) != self._shown_key:
            with contained(f"the view {self.name}", self._fail):
                self._show()

    def _compute(self, panel: Any, key: object) -> None:
        """Computes the layers or the algorithm of the view and shows it; `key`: the _dependencies()."""
        started = panel.now()
        self._key, self._cancel = key, panel.work.cancel
        panel.work.waited, panel.work.waits = 0.0, 0  # waits for compilers are counted for this view alone
        with contained(f"the view {self.name}", self._fail):
            if self.name in CHANNELS:
                self._layers = {self.name: panel.display.frame.read()}
            elif self.name in panel.picture.algorithm_names:
                settings, size = panel.drawn and panel.drawn.settings, panel.display.frame.size
                is_new = self.algorithm is None
                self.algorithm = panel.picture.algorithm(self.name, settings, size, self.inspect.pixel)
                if is_new and self.step == 0:  # a view opens at its own first step, unless a session names one
                    self.step = self.algorithm.first
            else:
                self._layers = panel.tiles.layers()
            self._show()
        ended, self._cancel = panel.now(), None
        spent = max(ended - max(started, panel.work.resumed_at), 0.0)  # without the wait for a compiler
        self._next_at = ended + min(REST_FACTOR * spent, MAX_REST)

    def _fail(self, error: Exception, sentence: str) -> None:
        self._shown_key = self._key, self.step  # what failed is not tried again until the picture or the step changes
        self.shown = self.texture = None
        self.meaning = sentence

    def _show(self) -> None:
        """Makes the picture and the sentence of the chosen layer, or of the algorithm's chosen step."""
        if self.algorithm is not None:
            self.step = min(max(self.step, 0), self.algorithm.count - 1)
            self.shown = self.algorithm.step(self.step)
            self.meaning = f"{self.algorithm.unit} {self.step}: {self.shown.meaning}"
        elif self.name in self._layers:
            of_channel = self.name in CHANNELS
            self.shown = (channel_picture if of_channel else layer_picture)(self.name, self._layers[self.name])
            self.meaning = self.shown.meaning
        else:  # only the layers of adaptive sampling may be missing
            self.shown = None
            self.meaning = f"{self.name} is kept while noise_threshold is above 0"
        self._shown_key = self._key, self.step
        pixels = None if self.shown is None else self.shown.pixels
        self.texture = None if pixels is None else to_texture(self._gl, pixels, self.texture)


def to_texture(gl: GlContext, pixels: np.ndarray, old: Texture | None = None) -> Texture:
    """A texture of (height, width, 3 or 4) uint8 pixels; `old` is reused if it has their size."""
    height, width = pixels.shape[:2]
    rgba = pixels if pixels.shape[2] == 4 else np.dstack([pixels, np.full((height, width), 255, "u1")])
    texture = old if old is not None and old.size == (width, height) else gl.texture((width, height), 4, "f1")
    return texture.write(np.ascontiguousarray(rgba))
