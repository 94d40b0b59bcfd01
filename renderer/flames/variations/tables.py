"""Builds the tables that some variations read: figures, orbits, palettes, permutations, made from their parameters.

A builder is a function from a variation's parameters and texts to an array, which is uploaded as float32: the argument
`table` of the variation's C function. Variation.table() calls build_table(). Builders for
shaders/flames/variations/figures.h are in figures.py, clusters.py, yeganeh.py and recurrence.py, the others here.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from renderer.flames.variations.java_random import JavaRandom

Values = Mapping[str, float]
Texts = Mapping[str, str]
Builder = Callable[[Values, Texts], np.ndarray]
MAX_PRIMITIVES = 1 << 16  # segments, polygons or lines of a figure (figures.py, yeganeh.py)
BUILDERS: dict[str, Builder] = {}


def builder(*names: str) -> Callable[[Builder], Builder]:
    """A decorator that registers a function as the builder of the variations `names`."""

    def register(function: Builder) -> Builder:
        BUILDERS.update(dict.fromkeys(names, function))
        return function

    return register


def build_table(function: str, values: Values, texts: Texts) -> np.ndarray:
    """(n,) float32: the table of a variation with parameters and texts, both named without the variation's name."""
    return _cached_table(function, tuple(sorted(values.items())), tuple(sorted(texts.items())))


@lru_cache(maxsize=64)
def _cached_table(
    function: str, values: tuple[tuple[str, float], ...], texts: tuple[tuple[str, str], ...]
) -> np.ndarray:
    table = np.asarray(BUILDERS[function](dict(values), dict(texts)), "f4").ravel()
    table.flags.writeable = False
    return table


def clamped_int(value: float, low: int, high: int) -> int:
    """A parameter, truncated to an integer and clamped to `low` ... `high`; NaN and infinities become `low`."""
    return int(min(max(value if math.isfinite(value) else low, low), high))


@builder("dc_booleans", "cut_fun")
def seeded_offset(values: Values, texts: Texts) -> np.ndarray:
    """(2,): two uniform random numbers times the seed."""
    seed = clamped_int(values["randomize" if "randomize" in values else "seed"], -(2**31), 2**31 - 1)
    random = JavaRandom(seed)
    return np.array([seed * random.next_double(), seed * random.next_double()])


@builder("PALETTE_STAMP")
def palette_table(values: Values, texts: Texts) -> np.ndarray:
    """The table of a PALETTE_STAMP: 1 and the 256 colors of the text `palette` if Gradient is 1, else 0.

    Without that text the colors are a gray ramp.
    """
    if values["Gradient"] != 1:
        return np.zeros(1)
    ramp = bytes(level for level in range(256) for _ in range(3))
    colors = bytes.fromhex(texts["palette"]) if "palette" in texts else ramp
    return np.concatenate([[1.0], np.frombuffer(colors, "u1")])


# ---- orbits: variations that follow one orbit and ignore the chain's point

ORBIT_LENGTH, ORBIT_SKIP = 1 << 15, 100  # points of the table, and points before them that are left out


def orbit(step: Callable[[float, float], tuple[float, float]], x: float, y: float) -> np.ndarray:
    """The number of points of the orbit of (x, y) under `step`, then x and y of each. It restarts where it diverges."""
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

    def iterate(x: float, y: float) -> tuple[float, float]:
        return y, -x + 2 * a * (y / (1 + y * y)) + b * y

    return orbit(lambda x, y: iterate(*iterate(x, y)), values["startx"], values["starty"])


@builder("rhodonea")
def rose_revolutions(values: Values, texts: Texts) -> np.ndarray:
    """(1,): revolutions of t after which the rose r = cos(knumer / kdenom t) repeats.

    They are the denominator in lowest terms, or half of it if numerator and denominator are odd (for whole ratios only
    without offset, spreads and fill). For other numbers `cycles` decides, as in JWildfire.
    """
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
    """The side of a square of cells, then a permutation of the cells."""
    side = clamped_int(abs(values["l"]), 3, 25)
    seed, by_rows = clamped_int(values["seed"], -(2**31), 2**31 - 1), values["byrows"] != 0
    cells = list(range(side * side))
    if 0 <= seed <= 50:
        cells = [(seed + j + 1) % len(cells) for j in range(len(cells))]
    elif by_rows:
        for j in range(side):
            _shuffle(cells, side * j, side * (j + 1), seed + j)
    else:
        _shuffle(cells, 0, len(cells), seed)
    return np.array([side, *cells])


def _to_int32(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _shuffle(cells: list[int], low: int, high: int, seed: int) -> None:
    """Shuffle cells low ... high - 1 by JWildfire's generator of 32-bit integers, kept bit for bit."""
    drawn = 1
    for j in range(low, high):
        drawn = _to_int32(drawn * 1103515245 + 12345)
        drawn = _to_int32(drawn & 0xFFFF0000 | (drawn << 8) & 0xFF00 | (drawn >> 8) & 0xFF)
        drawn = _to_int32(drawn - seed if drawn & 4 else drawn ^ seed)
        drawn = _to_int32(-drawn) if drawn < 0 else drawn
        following = 1 + j
        if high <= following:
            return
        partner = following + int(math.fmod(drawn, high - following))
        cells[partner], cells[j] = cells[j], cells[partner]


@builder("mandelbrot")
def mandelbrot_points(values: Values, texts: Texts) -> np.ndarray:
    """Random points beside the Mandelbrot set, or with `invert` in it, each moved toward where its orbit ends.

    A point beside it leaves the circle of radius 2 after `iter` (1 - skin) / 10 to `iter` steps.
    """
    v, rng = values, np.random.default_rng(clamped_int(values["seed"], 0, 1 << 30))
    steps, kept = clamped_int(v["iter"], 1, 2000), np.zeros(0, complex)
    for _ in range(40):
        x, y = (rng.uniform(min(a, b), max(a, b), 8192) for a, b in ((v["xmin"], v["xmax"]), (v["ymin"], v["ymax"])))
        c = x + 1j * y
        z, counts = c.copy(), np.zeros(len(c), int)
        for _ in range(steps):
            inside = abs(z) < 2
            z, counts = np.where(inside, z * z + c, z), counts + inside
        chosen = counts >= steps if v["invert"] else (counts < steps) & (counts >= 0.1 * steps * (1 - v["skin"]))
        moved = c + v["cx"] * z.real + 1j * v["cy"] * z.imag
        kept = np.concatenate([kept, moved[chosen]])
        if len(kept) >= ORBIT_LENGTH:
            break
    kept = kept[:ORBIT_LENGTH] if len(kept) else np.zeros(1, complex)
    return np.concatenate([[len(kept)], np.stack([kept.real, kept.imag], 1).ravel()])
