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


# Stamps that take their colors from the flame's palette: table_of() is given it as the text `palette`.
OF_PALETTE = ("dc_inversion", "dc_layers", "dc_quadtree")


def _palette_table(values: Values, texts: Texts) -> np.ndarray:
    """1 and the palette's 256 colors if Gradient is 1, else 0; a gray ramp where no palette is given."""
    if values["Gradient"] != 1:
        return np.zeros(1)
    ramp = bytes(level for level in range(256) for _ in range(3))
    colors = bytes.fromhex(texts["palette"]) if "palette" in texts else ramp
    return np.concatenate([[1.0], np.frombuffer(colors, "u1")])


for _name in OF_PALETTE:
    builder(_name)(_palette_table)


# ---- orbits: variations of the origin that follow one orbit, whatever the point

ORBIT_LENGTH, ORBIT_SKIP = 1 << 15, 100


def orbit(step: Callable[[float, float], tuple[float, float]], x: float, y: float) -> np.ndarray:
    """The places of an orbit, after their number; it starts again where it leaves the numbers."""
    start, out = (x, y), np.empty((ORBIT_LENGTH, 2))
    for k in range(-ORBIT_SKIP, ORBIT_LENGTH):
        try:
            x, y = step(x, y)
        except (ArithmeticError, ValueError):
            x = math.nan
        if not (abs(x) < 1e10 and abs(y) < 1e10):
            x, y = start
        if k >= 0:
            out[k] = x, y
    return np.concatenate([[ORBIT_LENGTH], out.ravel()])


def sign(x: float) -> float:
    """1, 0 or -1."""
    return float((x > 0) - (x < 0))


@builder("threeply")
def threeply_orbit(values: Values, texts: Texts) -> np.ndarray:
    """The threeply map, which starts at the origin."""
    a, b, c = values["a"], values["b"], values["c"]
    cos_b, sin_abc = math.cos(b), math.sin(a + b + c)
    return orbit(lambda x, y: (y - sign(x) * abs(math.sin(x) * cos_b + c - x * sin_abc), a - x), 0.0, 0.0)


@builder("hopalong")
def hopalong_orbit(values: Values, texts: Texts) -> np.ndarray:
    """B. Martin's map."""
    a, b, c = values["a"], values["b"], values["c"]
    return orbit(lambda x, y: (y - sign(x) * math.sqrt(abs(b * x - c)), a - x), values["startx"], values["starty"])


@builder("gingerbread_man")
def gingerbread_orbit(values: Values, texts: Texts) -> np.ndarray:
    """R. Devaney's map."""
    return orbit(lambda x, y: (1 - y + abs(x), x), -0.1, 0.0)


@builder("gumowski_mira")
def mira_orbit(values: Values, texts: Texts) -> np.ndarray:
    """The map of I. Gumowski and C. Mira."""
    a, b, m = values["a"], values["b"], -0.08

    def mira(x: float) -> float:
        return m * x + 2.0 * (1.0 - m) * x * x / (1.0 + x * x)

    def step(x: float, y: float) -> tuple[float, float]:
        following = y + a * (1.0 - b * y * y) * y + mira(x)
        return following, mira(following) - x

    return orbit(step, 5.0, 5.0)


@builder("macmillan")
def macmillan_orbit(values: Values, texts: Texts) -> np.ndarray:
    """E. McMillan's map, two steps at a time."""
    a, b = values["a"], values["b"]

    def once(x: float, y: float) -> tuple[float, float]:
        return y, -x + 2 * a * (y / (1 + y * y)) + b * y

    return orbit(lambda x, y: once(*once(x, y)), values["startx"], values["starty"])


@builder("rhodonea")
def closing_turns(values: Values, texts: Texts) -> np.ndarray:
    """Turns after which the rose closes."""
    numerator, denominator = values["knumer"], values["kdenom"]
    ratio = numerator / denominator if denominator else math.inf
    plain = not any(values[name] for name in ("radial_offset", "inner_spread", "outer_spread", "fill"))
    if math.isfinite(ratio) and ratio % 1 == 0:
        return np.array([0.5 if ratio % 2 and plain else 1.0])
    if numerator % 1 == 0 and denominator % 1 == 0 and denominator:
        common = math.gcd(int(abs(numerator)), int(abs(denominator))) or 1
        numerator, denominator = numerator / common, denominator / common
        return np.array([denominator if numerator % 2 == 0 or denominator % 2 == 0 else denominator / 2])
    return np.array([16.0 if values["cycles"] < 16 else 2 * numerator * denominator])


@builder("scrambly")
def shuffled_cells(values: Values, texts: Texts) -> np.ndarray:
    """The side of the square of cells, and where each cell goes."""
    side = whole(abs(values["l"]), 3, 25)
    seed, by_rows = whole(values["seed"], -(2**31), 2**31 - 1), values["byrows"] != 0
    cells = list(range(side * side))
    if 0 <= seed <= 50:
        cells = [(seed + j + 1) % len(cells) for j in range(len(cells))]
    elif by_rows:
        for j in range(side):
            _flip(cells, side * j, side * (j + 1), seed + j)
    else:
        _flip(cells, 0, len(cells), seed)
    return np.array([side, *cells])


def _to_int32(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _flip(cells: list[int], low: int, high: int, seed: int) -> None:
    """Shuffle cells low ... high - 1 by the origin's generator of 32-bit integers."""
    drawn = 1
    for j in range(low, high):
        drawn = _to_int32(drawn * 1103515245 + 12345)
        drawn = _to_int32(drawn & 0xFFFF0000 | (drawn << 8) & 0xFF00 | (drawn >> 8) & 0xFF)
        drawn = _to_int32(drawn - seed if drawn & 4 else drawn ^ seed)
        drawn = _to_int32(-drawn) if drawn < 0 else drawn
        at = 1 + j
        if high <= at:
            return
        rest = high - at
        at += int(math.fmod(drawn, rest))
        cells[at], cells[j] = cells[j], cells[at]
