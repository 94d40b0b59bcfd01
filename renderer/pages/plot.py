"""The data of a figure, Plot: series of numbers over positions or names; and formats of numbers.

Lessons and the bench report make Plots. figures.py draws them in pages, the window draws them live.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal

from renderer.plain import format_value, is_finite_number
from renderer.records import dataclass

MAX_SERIES, MAX_POINTS = 12, 64  # series of a figure in a file, and points of a series
MAX_LABEL = 80  # characters of a name or a title


@dataclass(frozen=True)
class Plot:
    """One pair of axes: `series` maps names to values, one or None for each number or name in `x`.

    Lines are drawn if all of `x` are numbers; names, and `kind` "bars", give a group of bars for each of `x`. `unit` is
    the unit of the values.
    """

    x: tuple[Any, ...]
    series: Mapping[str, tuple[float | None, ...]]
    x_name: str = ""
    unit: str = ""
    kind: Literal["lines", "bars"] = "lines"
    log_x: bool = False
    log_y: bool = False
    title: str = ""

    @property
    def is_numeric(self) -> bool:
        """True if lines are drawn: all of `x` are numbers and `kind` is "lines"."""
        return self.kind == "lines" and all(isinstance(x, (int, float)) for x in self.x)

    def labels(self) -> tuple[str, ...]:
        """Returns `x` as texts."""
        return tuple(f"{x:g}" if isinstance(x, float) else str(x) for x in self.x)


@dataclass(frozen=True)
class PaperFigure:
    """The paper's own numbers, drawn beside the reader's: `series` by name over `x`."""

    source: str  # table or figure, and the machine
    x: tuple[Any, ...]
    series: dict[str, tuple[float, ...]]
    x_name: str = ""
    unit: str = ""
    kind: Literal["lines", "bars"] = "lines"
    log_x: bool = False
    log_y: bool = False

    def __post_init__(self) -> None:
        check_figure(self.x, self.series)
        check_label("source", self.source, 200)

    def plot(self) -> Plot:
        """Returns the figure; a value of 0 is missing."""
        values = {name: tuple(value or None for value in row) for name, row in self.series.items()}
        return Plot(self.x, values, self.x_name, self.unit, self.kind, self.log_x, self.log_y, self.source)


def check_figure(x: tuple[object, ...], series: Mapping[str, tuple[float, ...]]) -> None:
    """Raises ValueError unless `x` is 1 to MAX_POINTS numbers or texts and every series has a value for each."""
    if not 1 <= len(x) <= MAX_POINTS:
        raise ValueError(f"x must have 1 to {MAX_POINTS} values")
    if not (all(map(is_finite_number, x)) or all(isinstance(name, str) for name in x)):
        raise ValueError("x must be all numbers or all texts")
    for name in x:
        if isinstance(name, str):
            check_label("x", name)
    if not 1 <= len(series) <= MAX_SERIES:
        raise ValueError(f"series must have 1 to {MAX_SERIES} names")
    for name, values in series.items():
        check_label("a name of series", name)
        if len(values) != len(x):
            raise ValueError(f"series: {format_value(name)} has {len(values)} values, x has {len(x)}")


def check_label(name: str, text: str, most: int = MAX_LABEL) -> None:
    """Raises ValueError unless the value of the key `name` is one line of 1 to `most` characters."""
    if not (text.isprintable() and 0 < len(text) <= most):
        raise ValueError(f"{name} must be one line of 1 to {most} characters")


def format_number(value: float | None) -> str:
    """Formats a number for a table: four digits with thousands separators; a dash for None or NaN."""
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if value and (abs(value) >= 1e7 or abs(value) < 1e-3):
        return f"{value:.3g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(digits, 4)}f}"


def short_number(value: float) -> str:
    """Formats a number for an axis: multiples of 2^10 and 2^20 from 16384 on as 64 Ki and 1 Mi, others as digits."""
    for suffix, unit in ((" Mi", 1 << 20), (" Ki", 1 << 10)):
        if value >= max(unit, 16384) and value % unit == 0:
            return f"{value / unit:g}{suffix}"
    return f"{value:.10g}" if abs(value) < 1e5 else f"{value:.3g}"


def table_rows(plot: Plot) -> list[list[str]]:
    """Returns the plot as a table of texts: the head, then a row for each of `x` with a column for each series."""
    head = [plot.x_name, *(f"{name}, {plot.unit}" if plot.unit else name for name in plot.series)]
    rows = zip(plot.labels(), *plot.series.values(), strict=True)
    return [head, *([label, *map(format_number, values)] for label, *values in rows)]
