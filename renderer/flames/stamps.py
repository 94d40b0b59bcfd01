"""Tables of variations that draw places of a figure: the figure as numbers, made on the host from their parameters.

A builder returns (n, k) or (n,) float32. The variation's C function is given it as `table`. Figures of lines, triangles
and polygons are tables of primitives, whose first number is their count; stamps.h draws them.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from renderer.flames.java_random import JavaRandom

Values = Mapping[str, float]
Texts = Mapping[str, str]
Builder = Callable[[Values, Texts], np.ndarray]
MAX_PRIMITIVES = 1 << 16
LINE, TRIANGLE, POLYGON, POINT = 0.0, 1.0, 2.0, 3.0
BUILDERS: dict[str, Builder] = {}


def builder(*names: str) -> Callable[[Builder], Builder]:
    """Register a function as the builder of variations."""

    def register(function: Builder) -> Builder:
        BUILDERS.update(dict.fromkeys(names, function))
        return function

    return register


def table_of(function: str, values: Values, texts: Texts) -> np.ndarray:
    """(n,) float32: the table of a variation with parameters and texts, both named without the variation's name."""
    return _cached_table(function, tuple(sorted(values.items())), tuple(sorted(texts.items())))


@lru_cache(maxsize=64)
def _cached_table(function: str, values: tuple, texts: tuple) -> np.ndarray:
    table = np.asarray(BUILDERS[function](dict(values), dict(texts)), "f4").ravel()
    table.flags.writeable = False
    return table


def whole(value: float, low: int, high: int) -> int:
    """A parameter as a whole number within limits."""
    return int(min(max(value if math.isfinite(value) else low, low), high))


@builder("dc_booleans")
def seeded_offset(values: Values, texts: Texts) -> np.ndarray:
    """Two random numbers times the seed."""
    seed = whole(values["randomize"], -(2**31), 2**31 - 1)
    random = JavaRandom(seed)
    return np.array([seed * random.next_double(), seed * random.next_double()])
