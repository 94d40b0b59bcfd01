"""What a picture shows of the algorithm that draws it: steps as pictures, numbers, marks, and a legend of the colors.

Plain data, which the window draws: renderer/window/panels/inspection.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

CHANNELS = ("luminance", "red", "green", "blue")  # views of a picture's own numbers, in false color
Rgba = tuple[float, float, float, float]  # sRGB and alpha, 0 to 1


class Legend(NamedTuple):
    """The numbers at the two ends of a scale of false colors; `is_log` where equal lengths are equal factors."""

    low: float
    high: float
    unit: str = ""
    is_log: bool = False

    def value(self, fraction: float) -> float:
        """The number at a fraction of the scale."""
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
    """One step: `pixels` (height, width, 3) uint8, and the `values` (height, width[, 3]) that they show.

    Both are None where the step is marks over the picture itself. `is_overlay`: pixels have an alpha (height, width, 4)
    and lie over the picture.
    """

    pixels: np.ndarray | None
    values: np.ndarray | None
    meaning: str  # of the colors, or of the marks
    legend: Legend | None = None
    marks: tuple[Mark, ...] = ()
    is_overlay: bool = False


@dataclass(frozen=True)
class AlgorithmView:
    """The steps of an algorithm; `unit` is what a step is called, such as "bounce".

    `rows` are numbers of each step by name. `step(index)` draws a step when it is shown; it must be quick, for the
    window scrubs over the steps. `first` is the step that is shown before another is asked for.
    """

    unit: str
    rows: tuple[dict[str, Any], ...]
    step: Callable[[int], StepPicture]
    first: int = 0

    @property
    def count(self) -> int:
        """The number of steps."""
        return len(self.rows)
