"""Data types for views of the algorithm behind a picture: its steps as pictures, numbers, marks and a color legend.

Picture.algorithm() returns an AlgorithmView; the window (renderer/window/panels/inspection.py) and lessons draw it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from renderer.paths import ASSETS
from renderer.records import dataclass
from renderer.system.files import read_toml

CHANNELS = ("luminance", "red", "green", "blue")  # views of a picture's own numbers, in false color
# A line for each view that a picture may have.
VIEW_HELP: dict[str, str] = read_toml(ASSETS / "tables" / "views.toml")
Rgba = tuple[float, float, float, float]  # sRGB and alpha, 0 to 1
StepRow = Mapping[str, float | str]  # the numbers and texts of a step, by name


class Legend(NamedTuple):
    """A scale of false colors from `low` to `high`; `is_log` for a logarithmic scale."""

    low: float
    high: float
    unit: str = ""
    is_log: bool = False

    def value(self, fraction: float) -> float:
        """Returns the number at a fraction of the scale, 0 at `low` and 1 at `high`."""
        if self.is_log:
            return float(self.low * (self.high / self.low) ** fraction)
        return self.low + (self.high - self.low) * fraction


class Mark(NamedTuple):
    """A point of the picture in fractions of its width and height; `radius` in window units, with a text beside it."""

    x: float
    y: float
    color: Rgba
    radius: float = 4.0
    text: str = ""


class StepPicture(NamedTuple):
    """One step: `pixels` (height, width, 3) uint8, and the `values` (height, width[, 3]) that the pixels show.

    Both are None if the step consists of marks over the picture itself. With `is_overlay`, pixels are (height, width,
    4) with alpha, and lie over the picture.
    """

    pixels: np.ndarray | None
    values: np.ndarray | None
    meaning: str  # what the colors, or the marks, mean
    legend: Legend | None = None
    marks: tuple[Mark, ...] = ()
    is_overlay: bool = False


@dataclass(frozen=True)
class AlgorithmView:
    """The steps of an algorithm; `unit` names a step, such as "bounce".

    `rows` holds the numbers of each step by name. `step(index)` draws a step on demand; it must be quick, because the
    user drags a slider over the steps. `first` is the step that is shown at first.
    """

    unit: str
    rows: tuple[StepRow, ...]
    step: Callable[[int], StepPicture]
    first: int = 0

    @property
    def count(self) -> int:
        """Returns the number of steps."""
        return len(self.rows)
