"""The table of the variation hamid_js (shaders/flames/variations/figures.h): H. N. Yeganeh's figures, by presets.

A figure is a set of lines or circles whose coordinates are trigonometric functions of their number
(https://artsandculture.google.com). The formulas are JWildfire's; a, b, ... p are the parameters of the variation.
"""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from renderer.flames.variations.tables import MAX_PRIMITIVES, Texts, Values, builder, clamped_int

Curve = Callable[[float], np.ndarray]


def _square_walk(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and y (n,) of the points on the unit square's border after `steps` (n,) steps of 1/100 from the origin."""
    n = np.where(steps < 400, steps, steps % 400)
    side, offset = n // 100, n % 100 / 100
    x = np.choose(side, [offset, np.ones_like(offset), 1 - offset, np.zeros_like(offset)])
    y = np.choose(side, [np.zeros_like(offset), offset, np.ones_like(offset), 1 - offset])
    return x, y


def _lines(preset: int, steps: np.ndarray, v: SimpleNamespace, s: Curve, c: Curve) -> tuple[np.ndarray, ...]:
    """x1, y1, x2, y2 of each line of the presets 0 to 9.

    s(k), c(k): sine and cosine of k pi n / count for line n of 1 to count.
    """
    if preset < 4:
        p, q, r, t = ((4, 2, 8, 4), (2, 2, 8, 12), (8, 2, 6, 2), (10, 2, 12, 2))[preset]
        return -s(p * v.a), -c(q * v.b), -0.5 * v.e * s(r * v.c), -0.5 * v.f * c(t * v.d)
    if preset == 5:
        x = -2 * v.a * np.cos(4 * v.b * np.pi * steps / 1000)
        y = 0.5 * v.c * c(6 * v.d) ** (3 * v.i)
        return x, y, -2 * v.e * s(6 * v.f) / 15 * v.j, 4 * v.g * s(2 * v.h) / 15 * v.k
    if preset == 6:
        x, u = 3 * v.a * s(2 * v.b) ** (3 * v.h), 1.5 * v.d * s(2 * v.e) ** (3 * v.i)
        return x, -c(8 * v.c), u, -0.5 * v.f * c(6 * v.g)
    if preset == 7:
        return c(6 * v.a), -c(8 * v.b), 1.5 * v.c * s(2) ** (3 * v.f), -0.5 * v.d * c(6 * v.e)
    if preset == 8:
        return s(20 * v.a) ** 3, c(18 * v.b) ** (3 * v.e), s(16 * v.c) ** 3, c(14 * v.d) ** (3 * v.f)
    if preset == 9:
        return *_square_walk(steps), *_square_walk(steps + 199)
    return s(10 * v.a), c(8 * v.b), s(12 * v.c), c(10 * v.d)


def _circles(preset: int, v: SimpleNamespace, s: Curve, c: Curve) -> tuple[np.ndarray, ...]:
    """x, y and radius of each circle of the presets 10 to 14."""
    if preset == 11:
        return s(14 * v.a), c(32 * v.b), s(20 * v.c) ** 2 / 3 * v.d
    if preset == 13:
        return s(10 * v.a), c(28 * v.b) ** (3 * v.e), s(18 * v.c) ** 2 / 3 * v.d
    if preset == 10:
        x = 2 * v.a * s(2 * v.b) / 3 + s(36 * v.c) * c(30 * v.d) / 3 * v.k + s(14) ** (3 * v.l) / 3 * v.m
        y = 2 * v.e * c(2 * v.f) / 3 * v.n + c(36 * v.g) * c(30 * v.h) / 3 * v.o + c(14 * v.i) ** 3 / 5 * v.p
        return x, y, 1 / 150 + s(36 * v.j) ** 4 / 9
    if preset == 12:
        x = 2 * v.a * s(6 * v.b) / 3 + s(36 * v.c) * c(30 * v.d) / 4 + s(14 * v.e) ** (3 * v.k) / 4 * v.l
        y = 2 * v.f * c(6 * v.g) / 3 + c(28 * v.h) * c(30 * v.i) / 3 + c(14) ** (3 * v.m) / 5 * v.n
        return x, y, 1 / 150 + s(36 * v.j) ** (4 * v.o) / 20 * v.p
    x = 2 * v.a * s(18 * v.b) / 3 + s(40 * v.c) ** 3 * c(30 * v.d) / 3 + s(34 * v.e) ** (3 * v.k) / 4 * v.l
    y = 2 * v.f * c(18 * v.g) / 3 + c(28 * v.h) ** 3 * c(40) / 3 + c(34 * v.i) ** (3 * v.m) / 3 * v.n
    return x, y, 1 / 150 + s(56 * v.j) ** (4 * v.o) / 8 * v.p


def _late_circles(preset: int, v: SimpleNamespace, s: Curve, c: Curve) -> tuple[np.ndarray, ...]:
    """x, y and radius of each circle of the presets 15 to 19."""
    if preset == 15:
        x = 2 * v.a * s(14 * v.b) / 3 + s(10 * v.c) ** 3 * c(28 * v.d) / 3 + s(46 * v.e) ** (3 * v.m) / 3 * v.n
        y = 2 * c(14 * v.f) / 3 + c(10 * v.g) ** 3 * c(28 * v.h) / 3 + c(34 * v.j) ** (3 * v.o) / 3
        return x, y, 1 / 150 + s(72 * v.k) ** 6 / 9 + s(12 * v.l) ** 4 / 20 * v.p
    if preset == 16:
        x = s(38 * v.a) * c(26 * v.b) / 2 + s(18 * v.c) ** (3 * v.l) / 2 * v.m
        y = 2 * c(18 * v.d) / 3 + c(38 * v.e) * c(36 * v.f) / 3 + c(18 * v.g) ** (3 * v.n) / 4 * v.o
        fine = s(18 * v.h) ** 10 * s(100 * v.i) ** 6 / 100
        return x, y, 1 / 150 + fine + s(72 * v.j) ** 8 * c(18 * v.k) ** 6 / 20 * v.p
    if preset == 17:
        x = 2 * v.a * s(10 * v.b) + s(6 * v.c) ** 3 * c(28 * v.d) / 3 + s(126 * v.e) / 10 * v.l
        y = 2 * c(6 * v.f) / 3 + c(18 * v.g) ** 3 * c(36 * v.h) / 3 + c(126 * v.i) / 10 * v.m
        return x, y, 1 / 150 + s(48 * v.j) ** 4 * (1 + s(12 * v.k) ** (2 * v.n)) / 18 * v.o
    if preset == 18:
        x = 2 * v.a * s(18 * v.b) / 5 + s(34 * v.c) ** (3 * v.j) / 3 * v.k + s(50 * v.d) ** (3 * v.l) / 3 * v.m
        y = 2 * c(18 * v.e) / 3 + c(34 * v.f) ** 3 / 3 + c(50 * v.g) ** (3 * v.n) / 10 * v.o
        return x, y, 1 / 150 + s(58 * v.i) ** 4 / 10 * v.p
    x = c(10 * v.a) * (v.c - s(16 * v.b) ** (2 * v.h) / 2 * v.i)
    y = s(10 * v.d) * (v.f - c(34 * v.e) ** (2 * v.j) / 2 * v.k)
    return x, y, 1 / 200 + s(52 * v.g) ** (4 * v.l) / 10 * v.m


@builder("hamid_js")
def lines_or_circles(values: Values, texts: Texts) -> np.ndarray:
    """The table of a preset: 1 for circles or 0 for lines, their number, then four numbers for each.

    A fractional power of a negative number is NaN, as in JWildfire; such a point is a bad value and is replaced.
    """
    preset = clamped_int(values["presetId"], 0, 19)
    count = clamped_int(values["number_lines_circles"], 1, MAX_PRIMITIVES)
    steps = np.arange(1, count + 1)
    angles = (steps + (699 if preset == 4 else 0)) * np.pi / count

    def sine(half_turns: float) -> np.ndarray:
        return np.sin(half_turns * angles)

    def cosine(half_turns: float) -> np.ndarray:
        return np.cos(half_turns * angles)

    v = SimpleNamespace(**values)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        if preset < 10:
            columns = _lines(preset, steps, v, sine, cosine)
        else:
            columns = (_circles if preset < 15 else _late_circles)(preset, v, sine, cosine)
    rows = np.zeros((count, 4))
    rows[:, : len(columns)] = np.stack([np.broadcast_to(column, count) for column in columns], 1)
    return np.concatenate([[float(preset >= 10), count], rows.ravel()])
