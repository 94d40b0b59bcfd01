"""Recurrence plots: pairs of times at which a function has nearly the same value (J.-P. Eckmann and others)."""

from types import SimpleNamespace

import numpy as np
from numpy.polynomial import chebyshev, legendre

from renderer.flames.stamps import Texts, Values, builder, whole

MAX_TIMES = 10_000


def _sums(number: int, t: np.ndarray, v: SimpleNamespace) -> np.ndarray:
    """The functions that are Fourier sums, 23 to 26, at times t of 0 to 1."""
    j = np.arange(1, min(max(int(v.k), 0), 100) + 1)[:, None]
    turns = 2 * np.pi * v.b * t
    if number == 23:
        return 4 * v.a / np.pi * (np.sin((2 * j - 1) * turns) / (2 * j - 1)).sum(0)
    if number == 24:
        return -2 * v.a / np.pi * (np.sin(j * turns) / j).sum(0)
    if number == 25:
        return 4 * v.a / np.pi * (0.5 - (np.cos(2 * j * turns) / (4 * j * j - 1)).sum(0))
    return v.a * np.pi**2 / 3 + 4 * v.a * ((-1.0) ** j * np.cos(j * turns) / (j * j)).sum(0)


def _waves(number: int, t: np.ndarray) -> np.ndarray:
    """The functions without parameters, at times t of 0 to 1."""
    u = np.pi * t
    odd, natural = np.array([1, 3, 5, 7])[:, None], np.arange(1, 9)[:, None]
    return {
        0: lambda: 50 * np.sin(4 * u) + 25 * np.sin(40 * u),
        1: lambda: 50 * np.sin(5 * u) * np.sin(15 * u),
        2: lambda: 50 * np.cos(24 * u + 5 * np.sin(6 * u)),
        3: lambda: 50 * np.sin(20 * u) - 50 * np.sin(22 * u),
        4: lambda: 50 * np.sin(20 * u) + 10 * np.sin(22 * u),
        7: lambda: 400 / np.pi * (np.sin(2 * odd * u) / odd).sum(0),
        8: lambda: 400 * (np.sin(2 * odd * u) / odd**2 * np.array([1, -1, 1, -1])[:, None]).sum(0),
        11: lambda: -200 / np.pi * (np.sin(2 * natural * u) / natural).sum(0),
        12: lambda: 50 * np.sin(40 * u) + 50 * np.sin(44 * u),
        13: lambda: 50 * np.sin(40 * u) - 50 * np.sin(44 * u),
        15: lambda: 100 * np.sin(16 * u),
        17: lambda: 50 * np.cos(50 * u + 25 * np.sin(u)),
        19: lambda: 500 * np.sin(10 * u) * np.exp(-5 * t),
        20: lambda: 500 * np.sin(20 * u) * np.exp(-3 * t),
        21: lambda: 50 * np.tan(2 * u),
    }[number]()  # fmt: skip


def function_values(values: Values) -> np.ndarray:
    """The function func_id at the times 0 to Density - 1; zeros where there is none of that number."""
    v = SimpleNamespace(**values)
    count, number = whole(v.Density, 1, MAX_TIMES), whole(v.func_id, -1, 30)
    t = np.arange(count) / count
    unit = np.eye(13)
    with np.errstate(all="ignore"):
        if 23 <= number <= 26:
            return _sums(number, t, v)
        if number == 22:
            return v.a * legendre.legval(2 * t - 1, unit[int(v.b)]) if 0 <= int(v.b) <= 10 else 0 * t
        if number == 29:
            return v.a * chebyshev.chebval(2 * t - 1, unit[int(v.k)]) if 0 <= int(v.k) <= 12 else 0 * t
        special = {
            5: lambda: 50 * np.sin(v.a * np.pi * t + np.sin(v.a * np.pi * t)),
            6: lambda: v.a / (1 + np.exp(-v.b * (t - 0.5))),
            9: lambda: np.tanh(v.a * np.pi * t),
            10: lambda: np.tan(v.a * np.pi * t),
            14: lambda: 100 * np.sin(16 * np.pi * t) - 500 + 0.25 * count * t,
            16: lambda: 1 / np.cos(v.a * np.pi * t),
            18: lambda: v.a * np.exp(-v.b * (2 * v.a * t - v.a) ** 2),
            27: lambda: v.a * np.sin(v.b * np.pi * (t - 0.5)) / (v.b * np.pi * (t - 0.5)),
            28: lambda: v.a * np.exp(-v.b * (t - 0.5) ** 2) * np.cos(2 * int(v.k) * np.pi * t),
        }
        if number in special:
            return special[number]()
        return _waves(number, t) if 0 <= number < 22 else 0 * t


@builder("recurrenceplot")
def pairs(values: Values, texts: Texts) -> np.ndarray:
    """The table of pairs: how many times and the share of pairs that are near, then four numbers of each time.

    They are the share of near pairs up to it, where in the order of values its near ones begin and end, and the time
    at its own number of that order. A pair of times is drawn as often as any other that is near, as by the origin,
    which draws any pair and stays at the last near one if this is not.
    """
    y, tolerance = function_values(values), values["tolerance"]
    order = np.argsort(y, kind="stable")
    known = y[order][: int(np.isfinite(y).sum())]
    low = np.where(np.isfinite(y), np.searchsorted(known, y - tolerance, "right"), 0)
    high = np.where(np.isfinite(y), np.searchsorted(known, y + tolerance, "left"), 0)
    near = np.maximum(high - low, 0)
    total = max(int(near.sum()), 1)
    rows = np.column_stack([np.cumsum(near) / total, low, low + near, order])
    return np.concatenate([[len(y), near.sum() / len(y) ** 2], rows.ravel()])
