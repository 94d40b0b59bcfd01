"""Where a flame lies: a view that holds nearly all of it, found by a short game; and chance flames that are worth
seeing.
"""

import numpy as np

from renderer.flames.chaos_game import Chaos, Window
from renderer.flames.evolve import random_flame
from renderer.flames.genome import Flame
from renderer.gpu import Device
from renderer.scene.cameras import Plane

SIDE = 256  # buckets of the look
CHAINS, STEPS = 4096, 64
KEPT = 0.97  # of the points in view


def counts_of(device: Device, flame: Flame, centre, reach: float, game: Chaos | None = None) -> np.ndarray:
    """(SIDE, SIDE) points of a short game in the square of that reach about a centre; `game` is one to play anew."""
    scale = SIDE / (2 * reach)
    camera = np.array([scale, 0, SIDE / 2 - scale * centre[0], 0, scale, SIDE / 2 - scale * centre[1]])
    game = game or Chaos(device)
    game.restart([flame], [camera], [1.0], Window(0, 0, SIDE, SIDE), CHAINS, 0)
    game.advance(STEPS)
    return game.sums.read()[:, 3].reshape(SIDE, SIDE).astype("f8")


def fitted(device: Device, flame: Flame, aspect: float = 1.0, up: str = "+y", game: Chaos | None = None) -> Plane:
    """A view that holds nearly all points, width over height `aspect`; the usual one where the flame lies nowhere."""
    centre, reach = np.zeros(2), 16.0
    for _ in range(3):  # each look is nearer
        counts = counts_of(device, flame, centre, reach, game)
        if not counts.sum() > 0:
            break
        bounds = []
        for axis in (0, 1):
            share = np.cumsum(counts.sum(axis)) / counts.sum()
            low, high = np.searchsorted(share, [(1 - KEPT) / 2, (1 + KEPT) / 2])
            bounds.append((low, high + 1))
        (left, right), (top, bottom) = bounds
        centre = centre + (np.array([left + right, top + bottom]) / 2 - SIDE / 2) * 2 * reach / SIDE
        size = np.array([right - left, bottom - top]) * 2 * reach / SIDE
        reach = float(max(size.max() * 0.6, 1e-6))
    height = 1.15 * max(float(size[1]), float(size[0]) / aspect, 1e-6) if counts.sum() > 0 else 4.0
    x, y = map(float, centre)
    return Plane((x, y if up == "+y" else -y), height)


def chance_flame(device: Device, rng: np.random.Generator, tries: int = 30) -> tuple[Flame, Plane]:
    """A random flame that neither fills its view evenly nor gathers in a few spots, and its view."""
    for _ in range(tries):
        flame, view, worth_seeing = chance(device, rng)
        if worth_seeing:
            break
    return flame, view


def chance(device: Device, rng: np.random.Generator, game: Chaos | None = None) -> tuple[Flame, Plane, bool]:
    """A random flame, its view, and whether it neither fills that evenly nor gathers in a few spots."""
    flame = random_flame(rng)
    view = fitted(device, flame, game=game)
    if not 1e-3 < view.height < 30:
        return flame, view, False
    counts = counts_of(device, flame, view.centre, view.height / 2, game)
    lit = (counts > 0).mean()
    return flame, view, 0.08 < lit < 0.9 and np.sort(counts.ravel())[-20:].sum() < 0.25 * counts.sum()
