"""The table of the variation recurrenceplot: pairs of times at which a function has nearly the same value.

Recurrence plots are by J.-P. Eckmann and others, 1987. The functions, numbered by func_id, are JWildfire's.
"""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import numpy as np
from numpy.polynomial.chebyshev import chebval
from numpy.polynomial.legendre import legval

from renderer.flames.variations.tables import Texts, Values, builder, clamped_int

MAX_TIMES = 10_000


def _fourier_sum(number: int, t: np.ndarray, v: SimpleNamespace) -> np.ndarray:
    """The functions 23 to 26, which are Fourier sums, at times t of 0 to 1."""
    a, turns, j = float(v.a), 2 * np.pi * float(v.b) * t, np.arange(1, clamped_int(v.k, 0, 100) + 1)[:, None]
    sums: dict[int, np.ndarray] = {
        23: 4 * a / np.pi * np.sum(np.sin((2 * j - 1) * turns) / (2 * j - 1), 0),
        24: -2 * a / np.pi * np.sum(np.sin(j * turns) / j, 0),
        25: 4 * a / np.pi * (0.5 - np.sum(np.cos(2 * j * turns) / (4 * j * j - 1), 0)),
        26: a * np.pi**2 / 3 + 4 * a * np.sum((-1.0) ** j * np.cos(j * turns) / (j * j), 0),
    }
    return sums[number]


def function_values(values: Values) -> np.ndarray:
    """The function number func_id at the times 0 to Density - 1; zeros for an unknown number."""
    v = SimpleNamespace(**values)
    count, number = clamped_int(v.Density, 1, MAX_TIMES), clamped_int(v.func_id, -1, 30)
    t = np.arange(count) / count
    u, unit = np.pi * t, np.eye(13)  # row n of `unit`: the coefficients of polynomial n alone
    odd, natural = np.array([1, 3, 5, 7])[:, None], np.arange(1, 9)[:, None]
    functions: dict[int, Callable[[], np.ndarray]] = {
        0: lambda: 50 * np.sin(4 * u) + 25 * np.sin(40 * u),
        1: lambda: 50 * np.sin(5 * u) * np.sin(15 * u),
        2: lambda: 50 * np.cos(24 * u + 5 * np.sin(6 * u)),
        3: lambda: 50 * np.sin(20 * u) - 50 * np.sin(22 * u),
        4: lambda: 50 * np.sin(20 * u) + 10 * np.sin(22 * u),
        5: lambda: 50 * np.sin(v.a * np.pi * t + np.sin(v.a * np.pi * t)),
        6: lambda: v.a / (1 + np.exp(-v.b * (t - 0.5))),
        7: lambda: 400 / np.pi * (np.sin(2 * odd * u) / odd).sum(0),
        8: lambda: 400 * (np.sin(2 * odd * u) / odd**2 * np.array([1, -1, 1, -1])[:, None]).sum(0),
        9: lambda: np.tanh(v.a * np.pi * t),
        10: lambda: np.tan(v.a * np.pi * t),
        11: lambda: -200 / np.pi * (np.sin(2 * natural * u) / natural).sum(0),
        12: lambda: 50 * np.sin(40 * u) + 50 * np.sin(44 * u),
        13: lambda: 50 * np.sin(40 * u) - 50 * np.sin(44 * u),
        14: lambda: 100 * np.sin(16 * np.pi * t) - 500 + 0.25 * count * t,
        15: lambda: 100 * np.sin(16 * u),
        16: lambda: 1 / np.cos(v.a * np.pi * t),
        17: lambda: 50 * np.cos(50 * u + 25 * np.sin(u)),
        18: lambda: v.a * np.exp(-v.b * (2 * v.a * t - v.a) ** 2),
        19: lambda: 500 * np.sin(10 * u) * np.exp(-5 * t),
        20: lambda: 500 * np.sin(20 * u) * np.exp(-3 * t),
        21: lambda: 50 * np.tan(2 * u),
        22: lambda: v.a * np.asarray(legval(2 * t - 1, unit[int(v.b)])) if 0 <= int(v.b) <= 10 else 0 * t,
        **{k: partial(_fourier_sum, k, t, v) for k in (23, 24, 25, 26)},
        27: lambda: v.a * np.sin(v.b * np.pi * (t - 0.5)) / (v.b * np.pi * (t - 0.5)),
        28: lambda: v.a * np.exp(-v.b * (t - 0.5) ** 2) * np.cos(2 * int(v.k) * np.pi * t),
        29: lambda: v.a * np.asarray(chebval(2 * t - 1, unit[int(v.k)])) if 0 <= int(v.k) <= 12 else 0 * t,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        return functions[number]() if number in functions else 0 * t


@builder("recurrenceplot")
def pairs(values: Values, texts: Texts) -> np.ndarray:
    """Builds the table of near pairs: ordered pairs of times whose values differ by less than the tolerance.

    Head: n, the number of times, and the number of near pairs / n², the probability with which a point's color changes
    (shaders/flames/variations/figures.h). Then row k holds four numbers: near pairs of the
    times 0 to k / all near pairs; the first and the last rank + 1 of the partners of time k; the time of rank k. A
    rank is a position in the order of the values. The variation draws a near pair uniformly: a time by the first
    column, a partner's rank by the next two. JWildfire draws any pair and keeps the last near one, which has the same
    distribution.
    """
    y, tolerance = function_values(values), values["tolerance"]
    y = np.where(np.isfinite(y), y, np.inf)  # sorted last, without partners
    order = np.argsort(y, kind="stable")
    known = y[order][: int(np.isfinite(y).sum())]
    low = np.where(np.isfinite(y), np.searchsorted(known, y - tolerance, "right"), 0)
    high = np.where(np.isfinite(y), np.searchsorted(known, y + tolerance, "left"), 0)
    near = np.maximum(high - low, 0)
    total = max(int(near.sum()), 1)
    rows = np.column_stack([np.cumsum(near) / total, low, low + near, order])
    return np.concatenate([[len(y), near.sum() / len(y) ** 2], rows.ravel()])
