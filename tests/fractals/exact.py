"""Witness: escape counts by integer arithmetic, with no code of the program."""

import json
import math
import os
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

from renderer.fractals.deep_zoom import KernelPass
from renderer.fractals.settings import Settings

ROOT = Path(__file__).parents[2]
GRID = 1 << 16  # pixels along a side of the picture whose single pixels are drawn


def exact_escape(
    kind: str, power: int, point: tuple[Fraction, Fraction], iterations: int, bits: int, c=None
) -> tuple[int, float]:
    """First n with |z_n| > 1000, or -1, and log2 of the distance estimate |z| log|z| / |dz/dpoint|.

    `c`: of a Julia set, whose z_0 is the point; else z_0 is 0 and c the point. All formulas are conformal where they
    are smooth, so the derivative's size is a product, but for a factor near 1 that the terms of c contribute.
    """
    fixed = [int(v * (1 << bits)) for v in (*point, *(c or point))]
    x, y = fixed[:2] if c else (0, 0)
    a, b = fixed[2:]
    slope = 0.0  # log2
    for n in range(1, iterations + 1):
        if n > 1 or c:
            slope += math.log2(power * (math.hypot(x / (1 << bits), y / (1 << bits)) or 1e-300) ** (power - 1))
        u, v = x, y
        for _ in range(power - 1):
            u, v = (u * x - v * y) >> bits, (u * y + v * x) >> bits
        x, y = u + a, {"tricorn": -v, "burning_ship": abs(v)}.get(kind, v) + b
        if x * x + y * y > 10**6 << 2 * bits:
            size = math.hypot(x / (1 << bits), y / (1 << bits))
            return n, math.log2(size * math.log(size)) - slope
    return -1, 0.0


def drawn_counts(device, settings: Settings, pixels: list[tuple[int, int]], with_steps: bool = True) -> np.ndarray:
    """Counts of single points of the view, at (x, y) / GRID heights from its center, y up; -1 inside. Also distances
    in heights."""
    kernels, out = KernelPass(device, with_steps), []
    size, c = (GRID, GRID), settings.c
    kernels.begin(settings, size, (0, 0, 1, 1), c)
    for x, y in pixels:
        frame = kernels.add_sample(size, (x + GRID // 2, GRID // 2 - y, 1, 1), 0, (-0.5, -0.5))
        count, distance, whole, _ = frame.read()[0, 0]
        out.append((-1 if count < 0 else int(whole), distance / GRID))
    return np.array(out)


def compare(device, settings: Settings, pixels: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether each point's drawn count is exact, the exact counts, and exact distances in heights (1 inside)."""
    view = settings.view
    height, center = Fraction(view.height), [Fraction(v) for v in view.center]
    bits = int(-view.height.adjusted() * 3.4) + 160
    c = tuple(map(Fraction, settings.c)) if settings.kind == "julia" else None
    rows = []
    for x, y in pixels:
        point = center[0] + height * Fraction(x, GRID), center[1] + height * Fraction(y, GRID)
        rows.append(exact_escape(settings.kind, settings.power, point, settings.max_iterations, bits, c))
    counts = np.array([n for n, _ in rows])
    log2_height = math.log2(view.height.scaleb(-view.height.adjusted())) + view.height.adjusted() * math.log2(10)
    distances = np.array([2.0 ** max(d - log2_height, -1000) if n > 0 else 1.0 for n, d in rows])
    return drawn_counts(device, settings, pixels)[:, 0] == counts, counts, distances


def random_place(rng, kind: str, power: int, start: tuple[float, float], depth: int, c=None) -> tuple[Decimal, ...]:
    """Center and height 10^-depth of a place near the set's boundary: of 12 points, the slowest to escape, again and
    again."""
    bits = int(depth * 3.4) + 160
    point, height, level = tuple(map(Fraction, start)), Fraction(1, 4), 0
    while height > Fraction(1, 10**depth):
        found, level = [], level + 1
        for _ in range(12):
            x, y = (v + height * int(rng.integers(-500, 500)) / 1000 for v in point)
            found.append((exact_escape(kind, power, (x, y), 60 * level, bits, c)[0], (x, y)))
        slowest = max(found)
        point = tuple(Fraction(int(v * (1 << bits)), 1 << bits) for v in slowest[1]) if slowest[0] > 0 else point
        height /= 30
    return (*(Decimal(int(v * 10 ** (depth + 30))).scaleb(-depth - 30) for v in point), Decimal(1).scaleb(-depth))


def places() -> list[dict]:
    """The places of the data set of exact counts, or [] where it is absent; RAYFOLD_DEEP_PLACES names its file."""
    given = os.environ.get("RAYFOLD_DEEP_PLACES")
    path = Path(given) if given else ROOT.parent / "shared" / "data" / "deep_zoom" / "places.json"
    return json.loads(path.read_text())["places"] if path.is_file() else []
