"""What a figure shows: series of numbers over positions or names. Drawn by figures.py for pages, live by the window."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Plot:
    """One pair of axes: `series` by name, each with a value or None for every position or name of `x`.

    Positions are numbers: lines; `kind` "bars" makes a group of bars of each. `unit` names the values.
    """

    title: str
    x: tuple[Any, ...]
    series: Mapping[str, tuple[float | None, ...]]
    x_name: str = ""
    unit: str = ""
    kind: Literal["lines", "bars"] = "lines"
    log_x: bool = False
    log_y: bool = False

    @property
    def is_numeric(self) -> bool:
        """Whether the positions are numbers, which lines are drawn over."""
        return self.kind == "lines" and all(isinstance(x, (int, float)) for x in self.x)

    def labels(self) -> tuple[str, ...]:
        """The positions as texts."""
        return tuple(f"{x:g}" if isinstance(x, float) else str(x) for x in self.x)


def format_number(value: float | None) -> str:
    """A number for a table: four digits, thousands apart; a dash where there is none."""
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if value and (abs(value) >= 1e7 or abs(value) < 1e-3):
        return f"{value:.3g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(digits, 4)}f}"


def short_number(value: float) -> str:
    """A number for an axis: 4096, 64 Ki, 1 Mi for powers of two; else three digits."""
    for suffix, unit in ((" Mi", 1 << 20), (" Ki", 1 << 10)):
        if value >= max(unit, 16384) and value % unit == 0:
            return f"{value / unit:g}{suffix}"
    return f"{value:.10g}" if abs(value) < 1e5 else f"{value:.3g}"


def table_rows(plot: Plot) -> list[list[str]]:
    """The plot as a table: a row for each position, a column for each series, the first row is the head."""
    head = [plot.x_name, *(f"{name}, {plot.unit}" if plot.unit else name for name in plot.series)]
    rows = zip(plot.labels(), *plot.series.values(), strict=True)
    return [head, *([label, *map(format_number, values)] for label, *values in rows)]
