"""Clusters of wandering particles in space: dla3d_wf."""

import numpy as np

from renderer.flames.stamps import Texts, Values, builder, whole

STEP = 0.9
MAX_STEPS = 20_000
DIRECTIONS = np.array([(1, 0, 0), (0, -1, 0), (-1, 0, 0), (0, 0, -1), (0, 0, 1), (0, 1, 0)], float)


@builder("dla3d_wf")
def cluster(values: Values, texts: Texts) -> np.ndarray:
    """The table of a cluster: how many particles, and of each x, y, z, depth and those of the one that it stuck to.

    A particle's depth is its path's length from the first over the longest path through it (T. Witten, L. Sander). The
    first has a depth of -1 as its own parent's.
    """
    count = whole(values["max_iter"], 1, 2000)
    force = np.array([values[f"force_{axis}"] for axis in "xyz"])
    rng = np.random.default_rng(whole(values["seed"], 0, 2**31))
    places, parents = _grow(rng, count, max(values["glue_radius"], 0.05), force)
    length = np.zeros(len(places))
    for k in range(1, len(places)):
        length[k] = length[parents[k]] + 1
    longest = length.copy()
    for k in range(len(places) - 1, 0, -1):
        longest[parents[k]] = max(longest[parents[k]], longest[k])
    depth = length / np.maximum(longest, 1)
    rows = np.column_stack([places, depth, places[parents], depth[parents]])
    rows[0, 7] = -1.0
    return np.concatenate([[len(rows)], rows.ravel()])


def _grow(rng: np.random.Generator, count: int, glue: float, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of the particles and whom each stuck to; fewer than asked if they do not come near."""
    places, parents = np.zeros((count, 3)), np.zeros(count, int)
    filled, inner, outer = 1, 3.0, 9.0
    wandering, alive = np.zeros((256, 3)), np.zeros(256, bool)
    for _ in range(MAX_STEPS):
        if filled == count:
            break
        number = min(256, int(4 * inner))  # few where the cluster is small: they hardly meet
        some, lives = wandering[:number], alive[:number]
        phi, theta = rng.uniform(0, 2 * np.pi, (2, number))
        start = inner * np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], 1)
        some[~lives], lives[:] = start[~lives], True
        steps = DIRECTIONS[rng.integers(0, 6, number)]
        some += steps * STEP + np.where(steps != 0, force, 0.0)
        apart = ((some[:, None] - places[None, :filled]) ** 2).sum(2)
        nearest = apart.argmin(1)
        sticks = np.flatnonzero(apart[np.arange(number), nearest] <= glue * glue)[: count - filled]
        places[filled : filled + len(sticks)], parents[filled : filled + len(sticks)] = some[sticks], nearest[sticks]
        filled += len(sticks)
        lives[sticks] = False
        lives[np.hypot(np.hypot(some[:, 0], some[:, 1]), some[:, 2]) > outer] = False
        if len(sticks):
            inner = max(inner, float(np.sqrt((some[sticks] ** 2).sum(1).max())))
            outer = max(outer, 2.1 * inner)
    return places[:filled], parents[:filled]
