"""Finds the view that encloses a flame by a short chaos game, and proposes random flames with such views.

The flame editor calls fit_view() to show all of a flame, and propose_flame() for new flames.
"""

from collections.abc import Sequence

import numpy as np

from renderer.flames.camera import FlameView
from renderer.flames.chaos_game import BucketRect, ChaosGame
from renderer.flames.evolve import random_flame
from renderer.flames.genome import Flame

RESOLUTION = 256  # buckets along each side
CHAINS, STEPS = 4096, 64
# Fractions of the points that each round of fit_view() encloses along each axis. The next round looks at a square that
# is a fifth larger: so the last one keeps the tips of a flame, and leaves out what is thrown far away.
COVERAGES = (0.99, 0.99, 0.9999)


def bucket_counts(game: ChaosGame, flame: Flame, center: Sequence[float] | np.ndarray, half_size: float) -> np.ndarray:
    """(RESOLUTION, RESOLUTION) float64: alpha sums of a short chaos game, rows by columns.

    The buckets cover the square around `center` whose sides are 2 `half_size`, in the flame's units.
    """
    scale = RESOLUTION / (2 * half_size)
    middle = RESOLUTION / 2
    to_buckets = np.array([scale, 0, middle - scale * center[0], 0, scale, middle - scale * center[1]])
    game.restart([flame], [to_buckets], [1.0], BucketRect(0, 0, RESOLUTION, RESOLUTION), CHAINS, 0)
    game.advance(STEPS)
    return game.sums.read()[:, 3].reshape(RESOLUTION, RESOLUTION).astype("f8")


def fit_view(game: ChaosGame, flame: Flame, aspect: float = 1.0, y_axis: str = "up") -> FlameView:
    """A view of ratio `aspect` (width over height) that encloses nearly all points; height 4 if no point is plotted."""
    center, half_size, height = np.zeros(2), 16.0, 4.0
    for coverage in COVERAGES:  # each round zooms in
        counts = bucket_counts(game, flame, center, half_size)
        if not counts.sum() > 0:
            height = 4.0
            break
        cumulative = [np.cumsum(counts.sum(axis)) / counts.sum() for axis in (0, 1)]
        ends = [np.searchsorted(sums, [(1 - coverage) / 2, (1 + coverage) / 2]) for sums in cumulative]
        low, high = np.array(ends).T + [[0], [1]]  # from the first bucket's near edge to the last bucket's far edge
        center = center + ((low + high) / 2 - RESOLUTION / 2) * 2 * half_size / RESOLUTION
        size = (high - low) * 2 * half_size / RESOLUTION
        half_size = float(max(size.max() * 0.6, 1e-6))  # half of 1.2
        height = 1.15 * max(float(size[1]), float(size[0]) / aspect, 1e-6)
    x, y = map(float, center)
    return FlameView((x, y if y_axis == "up" else -y), height)


def propose_flame(game: ChaosGame, rng: np.random.Generator) -> tuple[Flame, FlameView, bool]:
    """A random flame, its view, and True if the flame is worth showing.

    A flame is not if it fills the view evenly, gathers in a few buckets, or is too small or too large.
    """
    flame = random_flame(rng)
    view = fit_view(game, flame)
    if not 1e-3 < view.height < 30:
        return flame, view, False
    counts = bucket_counts(game, flame, view.center, view.height / 2)
    hit_fraction = (counts > 0).mean()
    return flame, view, bool(0.08 < hit_fraction < 0.9 and np.sort(counts.ravel())[-20:].sum() < 0.25 * counts.sum())
