"""Where a flame lies: a view that holds nearly all of it, found by a short game; and chance flames that are worth
seeing.
"""

import numpy as np

from renderer.flames.chaos_game import BucketRect, ChaosGame
from renderer.flames.evolve import random_flame
from renderer.flames.genome import Flame
from renderer.gpu import Device
from renderer.scene.cameras import Plane

RESOLUTION = 256  # buckets of the look
CHAINS, STEPS = 4096, 64
COVERAGE = 0.97  # of the points in view


def bucket_counts(device: Device, flame: Flame, centre, reach: float, game: ChaosGame | None = None) -> np.ndarray:
    """(RESOLUTION, RESOLUTION) points of a short game in the square of that reach about a center."""
    scale = RESOLUTION / (2 * reach)
    camera = np.array([scale, 0, RESOLUTION / 2 - scale * centre[0], 0, scale, RESOLUTION / 2 - scale * centre[1]])
    game = game or ChaosGame(device)
    game.restart([flame], [camera], [1.0], BucketRect(0, 0, RESOLUTION, RESOLUTION), CHAINS, 0)
    game.advance(STEPS)
    return game.sums.read()[:, 3].reshape(RESOLUTION, RESOLUTION).astype("f8")


def fit_view(
    device: Device, flame: Flame, aspect: float = 1.0, y_axis: str = "up", game: ChaosGame | None = None
) -> Plane:
    """A view that holds nearly all points, width over height `aspect`; the usual one where the flame lies nowhere."""
    centre, reach = np.zeros(2), 16.0
    for _ in range(3):  # each look is nearer
        counts = bucket_counts(device, flame, centre, reach, game)
        if not counts.sum() > 0:
            break
        bounds = []
        for axis in (0, 1):
            share = np.cumsum(counts.sum(axis)) / counts.sum()
            low, high = np.searchsorted(share, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
            bounds.append((low, high + 1))
        (left, right), (top, bottom) = bounds
        centre = centre + (np.array([left + right, top + bottom]) / 2 - RESOLUTION / 2) * 2 * reach / RESOLUTION
        size = np.array([right - left, bottom - top]) * 2 * reach / RESOLUTION
        reach = float(max(size.max() * 0.6, 1e-6))
    height = 1.15 * max(float(size[1]), float(size[0]) / aspect, 1e-6) if counts.sum() > 0 else 4.0
    x, y = map(float, centre)
    return Plane((x, y if y_axis == "up" else -y), height)


def find_random_flame(device: Device, rng: np.random.Generator, tries: int = 30) -> tuple[Flame, Plane]:
    """A random flame that neither fills its view evenly nor gathers in a few spots, and its view."""
    for _ in range(tries):
        flame, view, acceptable = propose_flame(device, rng)
        if acceptable:
            break
    return flame, view


def propose_flame(device: Device, rng: np.random.Generator, game: ChaosGame | None = None) -> tuple[Flame, Plane, bool]:
    """A random flame, its view, and whether it neither fills that evenly nor gathers in a few spots."""
    flame = random_flame(rng)
    view = fit_view(device, flame, game=game)
    if not 1e-3 < view.height < 30:
        return flame, view, False
    counts = bucket_counts(device, flame, view.centre, view.height / 2, game)
    lit = (counts > 0).mean()
    return flame, view, 0.08 < lit < 0.9 and np.sort(counts.ravel())[-20:].sum() < 0.25 * counts.sum()
