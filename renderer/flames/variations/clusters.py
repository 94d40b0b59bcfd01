"""The table of the variation dla3d_wf (shaders/flames/variations/figures.h): diffusion-limited aggregation in space.

Particles wander until they touch the cluster and stick to it (T. Witten and L. Sander, 1981).
"""

import numpy as np

from renderer.flames.variations.tables import Texts, Values, builder, clamped_int

STEP = 0.9
MAX_STEPS = 20_000
HASHES, PRIMES = 1 << 16, np.array([73856093, 19349663, 83492791])
NEIGHBORS = np.array([(x, y, z) for x in (0, -1, 1) for y in (0, -1, 1) for z in (0, -1, 1)])  # the cell itself first
DIRECTIONS = np.array([(1, 0, 0), (0, -1, 0), (-1, 0, 0), (0, 0, -1), (0, 0, 1), (0, 1, 0)], float)


@builder("dla3d_wf")
def cluster(values: Values, texts: Texts) -> np.ndarray:
    """The number of particles, then for each x, y, z and depth of the particle and of its parent.

    The parent is the particle to which it stuck. Its depth is the length of the path from the first particle to it over
    the length of the longest path through it. The first particle has no parent: its parent's depth is -1.
    """
    count = clamped_int(values["max_iter"], 1, 2000)
    force = np.array([values[f"force_{axis}"] for axis in "xyz"])
    rng = np.random.default_rng(clamped_int(values["seed"], 0, 2**31))
    positions, parents = _grow(rng, count, max(values["glue_radius"], 0.05), force)
    length = np.zeros(len(positions))
    for k in range(1, len(positions)):
        length[k] = length[parents[k]] + 1
    longest = length.copy()
    for k in range(len(positions) - 1, 0, -1):
        longest[parents[k]] = max(longest[parents[k]], longest[k])
    depth = length / np.maximum(longest, 1)
    rows = np.column_stack([positions, depth, positions[parents], depth[parents]])
    rows[0, 7] = -1.0
    return np.concatenate([[len(rows)], rows.ravel()])


def _hashes(points: np.ndarray, side: float, neighbors: np.ndarray) -> np.ndarray:
    """The hashes (n, k) of the grid cells at k offsets from the cells of n points (M. Teschner et al., 2003)."""
    cells = np.floor(np.clip(points / side, -1e9, 1e9)).astype("i8")[:, None] + neighbors
    return np.asarray(np.bitwise_xor.reduce(cells * PRIMES, axis=2) % HASHES)


def _grow(rng: np.random.Generator, count: int, glue: float, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n, 3) and indices of parents (n,); n is less than `count` if MAX_STEPS end before.

    `glue`: the distance at which a particle sticks. `force` (3,): drift added to each coordinate that a step changes.
    """
    positions, parents = np.zeros((count, 3)), np.zeros(count, int)
    # particles; the radius at which walkers begin; the radius beyond which they are dropped
    filled, inner, outer = 1, 3.0, 9.0
    is_near = np.zeros(HASHES, bool)  # by the hash of a cell of side `glue`: a particle may be in it or beside it
    is_near[_hashes(positions[:1], glue, NEIGHBORS)] = True
    all_walkers, all_active = np.zeros((256, 3)), np.zeros(256, bool)
    for _ in range(MAX_STEPS):
        if filled == count:
            break
        number = min(256, int(4 * inner))  # fewer around a small cluster, so that two rarely stick at once
        walkers, active = all_walkers[:number], all_active[:number]
        phi, theta = rng.uniform(0, 2 * np.pi, (2, number))
        births = inner * np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], 1)
        walkers[~active], active[:] = births[~active], True
        steps = DIRECTIONS[rng.integers(0, 6, number)]
        walkers += steps * STEP + np.where(steps != 0, force, 0.0)
        close = np.flatnonzero(is_near[_hashes(walkers, glue, NEIGHBORS[:1])[:, 0]])
        squared_distances = ((walkers[close, None] - positions[None, :filled]) ** 2).sum(2)
        nearest = squared_distances.argmin(1)
        found = np.flatnonzero(squared_distances[np.arange(len(close)), nearest] <= glue * glue)[: count - filled]
        sticks = close[found]
        first, filled = filled, filled + len(sticks)
        positions[first:filled], parents[first:filled] = walkers[sticks], nearest[found]
        active[sticks] = False
        active[np.hypot(np.hypot(walkers[:, 0], walkers[:, 1]), walkers[:, 2]) > outer] = False
        if len(sticks):
            is_near[_hashes(walkers[sticks], glue, NEIGHBORS)] = True
            inner = max(inner, float(np.sqrt((walkers[sticks] ** 2).sum(1).max())))
            outer = max(outer, 2.1 * inner)
    return positions[:filled], parents[:filled]
