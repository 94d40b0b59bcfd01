"""Estimates disparities on the host at single points of a light field, for focusing (renderer/pictures/lightfield.py).

The disparity of a point is its shift in pixels between neighboring cameras: camera (u, v) sees at
(x - disparity * u, y - disparity * v) the surface that the camera in the middle sees at (x, y). Nearer points have
larger disparities. The matching cost of a disparity is the variance over the cameras, averaged over a window around the
point (photo-consistency); the disparity of least cost wins (Scharstein and Szeliski 2002).
"""

import numpy as np

from renderer.lightfields.light_field import LightField

WINDOW_RADIUS = 4  # the compared window reaches this many pixels to each side of a point
COARSE_WINDOW_RADIUS = 2  # WINDOW_RADIUS of coarse estimates, which compare many points
MAX_VIEWS = 25  # views that are compared, spread over the array
COARSE_VIEWS = 9  # MAX_VIEWS of coarse estimates: the views nearest to the middle
TEXTURED_BLOCKS = 6  # blocks along each side of a view; coarse estimates use one point a block
COARSE_DISPARITIES = np.arange(-16, 16.5, 0.5)  # candidates of coarse estimates, in pixels between neighboring cameras


def disparity_at(field: LightField, x: float, y: float, position: np.ndarray, candidates: np.ndarray) -> float:
    """Returns the disparity of the surface that a camera at `position` (u, v) sees at pixel (x, y).

    Searches the increasing `candidates` and refines the best by a parabola through its neighbors.
    """
    views = _select_views(field, position, MAX_VIEWS)
    cost = _matching_cost(field, np.array([[x, y]]), candidates, views, position, WINDOW_RADIUS)[0]
    return _subpixel_minimum(candidates, cost)


def disparity_range(field: LightField) -> tuple[float, float]:
    """Measures the least and greatest disparity of the light field at textured points; returns both with a margin.

    A point is used if its least cost is below 0.3 of its median cost; percentiles leave out wrong matches. (-2, 2) if
    fewer than four points are used, (-1, 1) for a single view.
    """
    if len(field.pixels) < 2:
        return -1.0, 1.0
    cost = _coarse_cost(field, _textured_points(field))
    largest = np.nanmax(np.where(np.isfinite(cost), cost, np.nan))
    usual = np.median(np.minimum(cost, largest), 1)  # infinite costs, of too few views, count as the largest
    confident = cost.min(1) < 0.3 * usual  # a point without texture matches at every disparity
    if confident.sum() < 4:
        return -2.0, 2.0
    low, high = np.percentile(COARSE_DISPARITIES[cost[confident].argmin(1)], (4, 96))
    margin = max(0.1 * (high - low), 0.25)
    return float(low - margin), float(high + margin)


def resolve_v_direction(field: LightField) -> LightField:
    """Returns the light field, with its v axis reversed if the summed cost of its views then falls below 0.7 of itself.

    Published names count v up or down. With the wrong sign nothing is in focus; only the pixels show which is right.
    """
    if field.rows < 2 or field.columns < 2 or len(field.pixels) < 4:
        return field
    points, flipped = _textured_points(field), field.flip_v()
    # 1e12 in place of infinite costs, of too few views, keeps the sums finite
    cost, flipped_cost = (np.minimum(_coarse_cost(f, points).min(1), 1e12).sum() for f in (field, flipped))
    return flipped if flipped_cost < 0.7 * cost else field


def _coarse_cost(field: LightField, points: np.ndarray) -> np.ndarray:
    """Returns the matching cost (points, COARSE_DISPARITIES) seen from the middle of the array."""
    views = _select_views(field, np.zeros(2), COARSE_VIEWS, nearest=True)
    return _matching_cost(field, points, COARSE_DISPARITIES, views, np.zeros(2), COARSE_WINDOW_RADIUS)


def _select_views(field: LightField, position: np.ndarray, count: int, nearest: bool = False) -> np.ndarray:
    """Returns the indices of at most `count` views: the nearest to `position`, or evenly spread in distance to it."""
    distance = np.linalg.norm(field.camera_positions - position, axis=1)
    order = np.argsort(distance, kind="stable")
    if nearest or len(order) <= count:
        return order[:count]
    return np.asarray(order[np.round(np.linspace(0, len(order) - 1, count)).astype(int)])


def _textured_points(field: LightField) -> np.ndarray:
    """Returns points (n, 2), x and y: the strongest edge of each of TEXTURED_BLOCKS^2 blocks of the middle view."""
    view = field.pixels[_select_views(field, np.zeros(2), 1, nearest=True)[0]].astype("f4")[..., :3].sum(2)
    strength = np.zeros_like(view)
    strength[:, 1:-1] += np.abs(view[:, 2:] - view[:, :-2])
    strength[1:-1] += np.abs(view[2:] - view[:-2])
    height, width = view.shape
    edge = min(COARSE_WINDOW_RADIUS, height // 4, width // 4)
    points = []
    for top, bottom in _split_range(edge, height - edge, TEXTURED_BLOCKS):
        for left, right in _split_range(edge, width - edge, TEXTURED_BLOCKS):
            block = strength[top:bottom, left:right]
            y, x = np.unravel_index(block.argmax(), block.shape)
            points.append((left + x, top + y))
    return np.array(points, "f8")


def _split_range(start: int, end: int, count: int) -> list[tuple[int, int]]:
    bounds = np.linspace(start, end, min(count, max(end - start, 1)) + 1).astype(int)
    return [(a, max(b, a + 1)) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def _matching_cost(
    field: LightField, points: np.ndarray, candidates: np.ndarray, views: np.ndarray, position: np.ndarray, radius: int
) -> np.ndarray:
    """Returns the variance over the views, averaged over the window, (points, candidates); infinite for too few views.

    `points` (n, 2) are pixels x, y seen from `position`; `views` are indices of views, `radius` the window's. For each
    point, (wx, wy) are the positions of the window's pixels in each view at each disparity, (ix, iy) and (fx, fy) their
    whole and fractional parts. Too few views are less than 40 % of them, or less than two.
    """
    height, width = field.pixels.shape[1:3]
    offsets = np.arange(-radius, radius + 1)
    min_views = max(2, 0.4 * len(views))
    dy, dx = np.meshgrid(offsets, offsets, indexing="ij")
    shift = -candidates[:, None, None] * (field.camera_positions[views] - position)  # (candidates, views, 2)
    camera, pixels = views[None, :, None, None], field.pixels
    cost = np.empty((len(points), len(candidates)))
    for index, (x, y) in enumerate(points):
        wx = x + shift[..., 0, None, None] + dx  # (candidates, views, window, window)
        wy = y + shift[..., 1, None, None] + dy
        inside = (wx >= 0) & (wx <= width - 1) & (wy >= 0) & (wy <= height - 1)
        ix = np.clip(wx, 0, max(width - 2, 0)).astype("i4")
        iy = np.clip(wy, 0, max(height - 2, 0)).astype("i4")
        fx = np.clip(wx - ix, 0, 1)[..., None].astype("f4")
        fy = np.clip(wy - iy, 0, 1)[..., None].astype("f4")
        right, below = np.minimum(ix + 1, width - 1), np.minimum(iy + 1, height - 1)
        values = (pixels[camera, iy, ix, :3] * (1 - fx) + pixels[camera, iy, right, :3] * fx) * (1 - fy) + (
            pixels[camera, below, ix, :3] * (1 - fx) + pixels[camera, below, right, :3] * fx
        ) * fy
        weight = inside[..., None]
        count = inside.sum(1)
        mean = (values * weight).sum(1) / np.maximum(count, 1)[..., None]
        squares = (((values - mean[:, None]) ** 2) * weight).sum((1, 2, 3, 4))
        seen = count.mean((1, 2)) >= min_views
        cost[index] = np.where(seen, squares / np.maximum(count.sum((1, 2)), 1), np.inf)
    return cost


def _subpixel_minimum(candidates: np.ndarray, cost: np.ndarray) -> float:
    """Returns the candidate of least cost, refined by a parabola through it and its neighbors."""
    least = int(np.argmin(cost))
    if 0 < least < len(cost) - 1 and np.isfinite(cost[least - 1 : least + 2]).all():
        before, minimum, after = cost[least - 1 : least + 2]
        curvature = before - 2 * minimum + after
        if curvature > 0:
            step = (candidates[least + 1] - candidates[least - 1]) / 2
            return float(candidates[least] + step * 0.5 * (before - after) / curvature)
    return float(candidates[least])
