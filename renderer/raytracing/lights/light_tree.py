"""The light tree: a binary tree over many lights, by which kernels sample a light by power, distance and direction.

A. Conty Estevez and C. Kulla, "Importance Sampling of Many Lights with Adaptive Tree Splitting" (2018); bounds and
importance after pbrt-v4, section 12.6.3. build_light_tree() builds it on the host, level by level with binned splits,
for light_buffer.py; shaders/raytracing/lights/light_tree.h samples it.
"""

from typing import NamedTuple

import numpy as np

BINS = 12  # bins along each axis in which split planes are tried
CONE_SLACK = 1e-5  # radians by which a union of cones is widened, against rounding
LARGE, SMALL = 1 << 16, 64  # in trees of more than LARGE lights, nodes of up to SMALL lights are halved without costs


class LightBounds(NamedTuple):
    """Bounds of n lights or clusters of lights: boxes, cones of normals, intensities."""

    low: np.ndarray  # (n, 3) float64
    high: np.ndarray  # (n, 3)
    axis: np.ndarray  # (n, 3) unit axis of the cone of normals
    cos_o: np.ndarray  # (n,) cosine of the largest angle between `axis` and a normal; -1 for all directions
    cos_e: np.ndarray  # (n,) cosine of the largest angle between a normal and a direction of emission
    intensity: np.ndarray  # (n,) sum of the intensities along the normals, at least 0

    def take(self, rows: np.ndarray) -> "LightBounds":
        """Returns the bounds of the lights with these indices or this mask."""
        return LightBounds(*(column[rows] for column in self))


class LightTree(NamedTuple):
    """`nodes` (m, 4, 4) float32 in the layout of light_tree.h, the root first; `leaf_of` (n,) is each light's node."""

    nodes: np.ndarray
    leaf_of: np.ndarray


def build_light_tree(lights: LightBounds, ids: np.ndarray) -> LightTree:
    """Builds the tree over n >= 1 lights with the given bounds; a leaf is one light and stores its id of `ids` (n,).

    Level by level, all nodes of more than one light (`inner`) are split: their lights are `active`, node after node,
    and `segment` is the number of a light's node among `inner`. Both children of a node are adjacent in the next
    level. Bounds are then computed from the leaves up.
    """
    count = len(ids)
    node_of = np.zeros(count, np.int64)  # the node of each light at the current level
    first_child: list[np.ndarray] = [np.zeros(1, np.int64)]
    parent: list[np.ndarray] = [np.full(1, -1)]
    first, size = 0, 1  # the nodes of the current level
    while True:
        counts = np.bincount(node_of, minlength=first + size)
        active = np.flatnonzero(counts[node_of] > 1)
        if not len(active):
            break
        active = active[np.argsort(node_of[active], kind="stable")]
        inner = np.flatnonzero(counts[first:] > 1) + first
        segment = np.repeat(np.arange(len(inner)), counts[inner])
        is_cheap = count > LARGE and counts[inner].max() <= SMALL
        right = _split(lights.take(active), segment, is_cheap)
        first_child[-1][inner - first] = first + size + 2 * np.arange(len(inner))
        node_of[active] = first + size + 2 * segment + right
        parent.append(np.repeat(inner, 2))
        first, size = first + size, 2 * len(inner)
        first_child.append(np.zeros(size, np.int64))
    children = np.concatenate(first_child)
    levels = np.cumsum([0, *(len(level) for level in first_child)])
    bounds = _bound_nodes(lights, node_of, children, levels)
    nodes = np.zeros((len(children), 4, 4), "f4")
    nodes[:, 0, :3], nodes[:, 0, 3] = bounds.low, np.minimum(bounds.intensity, np.finfo("f4").max)
    nodes[:, 1, :3], nodes[:, 1, 3] = bounds.high, bounds.cos_o
    nodes[:, 2, :3], nodes[:, 2, 3] = bounds.axis, bounds.cos_e
    words = nodes.view("i4")
    words[:, 3, 0], words[:, 3, 1] = children, np.concatenate(parent)
    words[node_of, 3, 2] = ids
    return LightTree(nodes, node_of)


def _split(lights: LightBounds, segment: np.ndarray, is_cheap: bool) -> np.ndarray:
    """Splits each segment of lights in two; True (n,) for the lights of the right child. No child is empty.

    `segment` (n,) is the number of each light's node, in ascending order without gaps. A cheap split is the middle of
    the longest axis: the costs of all planes are most of the time of the lower levels.
    """
    segments = int(segment[-1]) + 1
    center = (lights.low + lights.high) / 2
    low, high = _extremes(segment, segments, center, center)
    extent = high - low
    scale = np.divide(BINS, extent, out=np.zeros_like(extent), where=extent > 0)
    bins = np.minimum((center - low[segment]) * scale[segment], BINS - 1).astype(np.int64)
    if is_cheap:
        axis, edge, unsplit = extent.argmax(1), np.full(segments, BINS // 2 - 1), extent.max(1) <= 0
    else:
        cost = _plane_costs(lights, segment, bins, extent).reshape(segments, -1)
        axis, edge = np.divmod(cost.argmin(1), BINS - 1)
        unsplit = ~np.isfinite(cost.min(1))
    right: np.ndarray = bins[np.arange(len(segment)), axis[segment]] > edge[segment]
    if unsplit.any():  # all centers coincide: split into halves
        rank = np.arange(len(segment)) - np.searchsorted(segment, segment)
        halves = np.bincount(segment, minlength=segments) // 2
        right = np.where(unsplit[segment], rank >= halves[segment], right)
    return right


def _plane_costs(lights: LightBounds, segment: np.ndarray, bins: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """Returns the costs (segments, 3, BINS - 1) of splitting behind each bin of each axis; `bins` is (n, 3)."""
    segments = len(extent)
    cost = np.full((segments, 3, BINS - 1), np.inf)
    for axis in range(3):
        # Conty and Kulla's regularization of thin boxes: longest extent over the extent along the axis; 0 without one.
        longest = extent.max(1) / np.where(extent[:, axis] > 0, extent[:, axis], np.inf)
        factor = np.where(longest > 0, longest, np.inf)[:, None]
        # Not less than 1e-300: 0 times an infinite factor would be NaN.
        cost[:, axis] = np.maximum(_split_costs(lights, segment * BINS + bins[:, axis], segments), 1e-300) * factor
    return cost


def _split_costs(lights: LightBounds, key: np.ndarray, segments: int) -> np.ndarray:
    """Returns the costs (segments, BINS - 1) of splitting after each bin; infinite if a side is empty.

    The cost of a side is its intensity times its squared diagonal times _direction_measure(). `key` (n,) is each
    light's segment * BINS + bin.
    """
    cells = segments * BINS
    low, high = _extremes(key, cells, lights.low, lights.high)
    low, high = low.reshape(segments, BINS, 3), high.reshape(segments, BINS, 3)
    weight = lights.intensity
    # Lights that emit around (cos_o -1) have no direction to add.
    directed = (weight * (lights.cos_o > -1))[:, None] * lights.axis
    columns = [np.bincount(key, column, cells) for column in (np.ones(len(key)), weight, *directed.T)]
    sums = np.stack(columns, -1).reshape(segments, BINS, 5)
    total = np.zeros((segments, BINS - 1))
    for step in (1, -1):  # the sides below, then those above
        lows = np.minimum.accumulate(low[:, ::step], 1)[:, :-1]
        highs = np.maximum.accumulate(high[:, ::step], 1)[:, :-1]
        sides = np.cumsum(sums[:, ::step], 1)[:, :-1]
        is_used = sides[..., 0] > 0
        diagonal2 = (np.where(is_used[..., None], highs, 0) - np.where(is_used[..., None], lows, 0)) ** 2
        side = sides[..., 1] * diagonal2.sum(-1) * _direction_measure(sides[..., 1], sides[..., 2:])
        total += np.where(is_used, side, np.inf)[:, ::step]
    return total


def _direction_measure(weight: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Returns Conty and Kulla's measure M_omega of the directions into which a cluster emits, pi to 4 pi.

    `direction` is the weighted sum of the cluster's normals. The cone of normals is estimated as the spherical cap with
    a mean normal of the same length, (1 + cos) / 2. As in the paper, o is the half angle of the cone of normals, and w
    the half angle of the cone of emission, a quarter turn more.
    """
    length = np.linalg.norm(direction, axis=-1)
    mean = np.minimum(np.divide(length, weight, out=np.zeros_like(length), where=weight > 0), 1)
    cosine = 2 * mean - 1
    o, sine = np.arccos(cosine), np.sqrt(np.maximum(1 - cosine**2, 0))
    w = np.minimum(o + np.pi / 2, np.pi)
    # Measure of the directions outside of the cone of normals.
    beyond = 2 * w * sine - np.cos(o - 2 * w) - 2 * o * sine + cosine
    return np.asarray(2 * np.pi * (1 - cosine) + np.pi / 2 * beyond)


def _extremes(key: np.ndarray, count: int, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns each key's least row of `low` and largest row of `high`, (count, 3); infinite for unused keys."""
    lows, highs = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    order = np.argsort(key, kind="stable")
    keys = key[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    lows[keys[starts]] = np.minimum.reduceat(low[order], starts)
    highs[keys[starts]] = np.maximum.reduceat(high[order], starts)
    return lows, highs


def _bound_nodes(lights: LightBounds, node_of: np.ndarray, children: np.ndarray, levels: np.ndarray) -> LightBounds:
    """Returns the bounds of all nodes, computed from the leaves up; levels[k] is the first node of level k."""
    count = len(children)
    bounds = LightBounds(*(np.zeros((count, *column.shape[1:])) for column in lights))
    for column, light_column in zip(bounds, lights, strict=True):
        column[node_of] = light_column
    for begin, end in reversed(list(zip(levels[:-1], levels[1:], strict=True))):
        inner = np.flatnonzero(children[begin:end] > 0) + begin
        if not len(inner):
            continue
        left, right = bounds.take(children[inner]), bounds.take(children[inner] + 1)
        bounds.low[inner], bounds.high[inner] = np.minimum(left.low, right.low), np.maximum(left.high, right.high)
        bounds.axis[inner], bounds.cos_o[inner] = _cone_union(left, right)
        bounds.cos_e[inner] = np.minimum(left.cos_e, right.cos_e)
        bounds.intensity[inner] = left.intensity + right.intensity
    return bounds


def _cone_union(a: LightBounds, b: LightBounds) -> tuple[np.ndarray, np.ndarray]:
    """Returns axis (n, 3) and cosine (n,) of the cones around the normal cones of a and b (pbrt-v4, section 3.8.4).

    A cone that holds the other is the union. Else the axis of `a` is rotated towards the axis of `b`; opposite axes,
    which have no such direction, give all directions (cosine -1).
    """
    angle_a, angle_b = np.arccos(np.clip(a.cos_o, -1, 1)), np.arccos(np.clip(b.cos_o, -1, 1))
    between = np.arccos(np.clip((a.axis * b.axis).sum(1), -1, 1))
    a_holds = np.minimum(between + angle_b, np.pi) <= angle_a
    b_holds = ~a_holds & (np.minimum(between + angle_a, np.pi) <= angle_b)
    angle = (angle_a + between + angle_b) / 2 + CONE_SLACK
    normal = np.cross(a.axis, b.axis)
    length = np.linalg.norm(normal, axis=1)
    rotation = angle - angle_a
    unit = np.divide(normal, length[:, None], out=np.zeros_like(normal), where=length[:, None] > 0)
    axis = a.axis * np.cos(rotation)[:, None] + np.cross(unit, a.axis) * np.sin(rotation)[:, None]
    opposite = (length == 0) & (between > 1)
    axis = np.where((length > 0)[:, None], axis, a.axis)
    cos_o = np.where((angle >= np.pi) | opposite, -1.0, np.cos(np.minimum(angle, np.pi)))
    axis = np.where(a_holds[:, None], a.axis, np.where(b_holds[:, None], b.axis, axis))
    return axis, np.where(a_holds, a.cos_o, np.where(b_holds, b.cos_o, cos_o))
