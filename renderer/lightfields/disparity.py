"""What the pictures of a light field tell about its depths, on the host and for a few points only.

Disparity here is how many pixels a point moves between neighbouring cameras: camera (u, v) sees at x - disparity * u,
y - disparity * v what the camera at the middle sees at (x, y). Nearer is larger. Where the views agree best around a
point, there its surface lies (photo-consistency: least variance over the cameras).
"""

import numpy as np

from renderer.lightfields.light_field import LightField

WINDOW = 4  # pixels to each side of a point that are compared
COARSE_WINDOW = 2  # the same where many points are asked
CAMERAS = 25  # at most, spread over the array, that are asked


def disparity_at(field: LightField, x: float, y: float, eye=(0.0, 0.0), candidates=None) -> float:
    """The disparity of what a camera at `eye` (u, v) sees at pixel (x, y), of `candidates` (rising), refined."""
    candidates = np.linspace(-8, 8, 129) if candidates is None else np.asarray(candidates, "f8")
    chosen = _spread(field, eye, CAMERAS)
    cost = _cost(field, np.array([[x, y]]), candidates, chosen, np.asarray(eye))[0]
    return _refined(candidates, cost)


def depth_range(field: LightField, limit: float = 16.0) -> tuple[float, float]:
    """The least and the greatest disparity in the field, with a margin: measured at textured points of its middle."""
    if len(field.pixels) < 2:
        return -1.0, 1.0
    points, chosen = _textured(field), _spread(field, (0.0, 0.0), 9, nearest=True)
    candidates = np.arange(-limit, limit + 0.5, 0.5)
    cost = _cost(field, points, candidates, chosen, np.zeros(2), COARSE_WINDOW)
    usual = np.median(np.where(np.isfinite(cost), cost, np.nanmax(np.where(np.isfinite(cost), cost, np.nan))), 1)
    clear = cost.min(1) < 0.3 * usual  # a point on a plain surface agrees with itself everywhere
    if clear.sum() < 4:
        return -2.0, 2.0
    found = candidates[cost[clear].argmin(1)]
    low, high = np.percentile(found, (4, 96))
    margin = max(0.1 * (high - low), 0.25)
    return float(low - margin), float(high + margin)


def measured_axes(field: LightField) -> LightField:
    """The field, its v axis turned round where the views agree clearly better that way.

    Published names count v up or down; a v axis of the wrong sign leaves nothing sharp, and only the pictures tell.
    """
    if field.rows < 2 or field.columns < 2 or len(field.pixels) < 4:
        return field
    points, candidates = _textured(field), np.arange(-16, 16.5, 0.5)
    least = []
    for tried in (field, field.turned()):
        cost = _cost(tried, points, candidates, _spread(tried, (0.0, 0.0), 9, nearest=True), np.zeros(2), COARSE_WINDOW)
        least.append(float(np.minimum(cost.min(1), 1e12).sum()))
    return field.turned() if least[1] < 0.7 * least[0] else field


def _spread(field: LightField, eye, count: int, nearest: bool = False) -> np.ndarray:
    """Indices of at most `count` views: the nearest to `eye`, or spread over the whole array around it."""
    distance = np.linalg.norm(field.cameras - np.asarray(eye), axis=1)
    order = np.argsort(distance, kind="stable")
    if nearest or len(order) <= count:
        return order[:count]
    return order[np.round(np.linspace(0, len(order) - 1, count)).astype(int)]


def _textured(field: LightField, across: int = 6) -> np.ndarray:
    """Points (n, 2) x, y: the strongest edge of each of across x across parts of the view nearest to the middle."""
    view = field.pixels[_spread(field, (0.0, 0.0), 1, nearest=True)[0]].astype("f4")[..., :3].sum(2)
    strength = np.zeros_like(view)
    strength[:, 1:-1] += np.abs(view[:, 2:] - view[:, :-2])
    strength[1:-1] += np.abs(view[2:] - view[:-2])
    height, width = view.shape
    edge = min(COARSE_WINDOW, height // 4, width // 4)
    points = []
    for top, bottom in _parts(edge, height - edge, across):
        for left, right in _parts(edge, width - edge, across):
            part = strength[top:bottom, left:right]
            y, x = np.unravel_index(part.argmax(), part.shape)
            points.append((left + x, top + y))
    return np.array(points, "f8")


def _parts(start: int, end: int, count: int) -> list[tuple[int, int]]:
    bounds = np.linspace(start, end, min(count, max(end - start, 1)) + 1).astype(int)
    return [(a, max(b, a + 1)) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def _cost(field: LightField, points, candidates, chosen, eye, window: int = WINDOW) -> np.ndarray:
    """Variance over the cameras (points, candidates), mean over the windows; infinite where too few cameras see."""
    height, width = field.pixels.shape[1:3]
    reach = np.arange(-window, window + 1)
    enough = max(2, 0.4 * len(chosen))
    dy, dx = np.meshgrid(reach, reach, indexing="ij")
    shift = -candidates[:, None, None] * (field.cameras[chosen] - eye)  # (candidates, cameras, 2)
    out = np.empty((len(points), len(candidates)))
    for index, (x, y) in enumerate(points):
        wx = x + shift[..., 0, None, None] + dx  # (candidates, cameras, window, window)
        wy = y + shift[..., 1, None, None] + dy
        inside = (wx >= 0) & (wx <= width - 1) & (wy >= 0) & (wy <= height - 1)
        ix = np.clip(wx.astype("i4"), 0, max(width - 2, 0))
        iy = np.clip(wy.astype("i4"), 0, max(height - 2, 0))
        fx = np.clip(wx - ix, 0, 1)[..., None].astype("f4")
        fy = np.clip(wy - iy, 0, 1)[..., None].astype("f4")
        camera = chosen[None, :, None, None]
        right, below = np.minimum(ix + 1, width - 1), np.minimum(iy + 1, height - 1)
        pixels = field.pixels
        values = (pixels[camera, iy, ix, :3] * (1 - fx) + pixels[camera, iy, right, :3] * fx) * (1 - fy) + (
            pixels[camera, below, ix, :3] * (1 - fx) + pixels[camera, below, right, :3] * fx
        ) * fy
        weight = inside[..., None]
        count = inside.sum(1)
        mean = (values * weight).sum(1) / np.maximum(count, 1)[..., None]
        spread = (((values - mean[:, None]) ** 2) * weight).sum((1, 2, 3, 4))
        seen = count.mean((1, 2)) >= enough
        out[index] = np.where(seen, spread / np.maximum(count.sum((1, 2)), 1), np.inf)
    return out


def _refined(candidates, cost) -> float:
    """The place of the least cost, by a parabola through it and its neighbours."""
    least = int(np.argmin(cost))
    if 0 < least < len(cost) - 1 and np.isfinite(cost[least - 1 : least + 2]).all():
        before, here, after = cost[least - 1 : least + 2]
        curve = before - 2 * here + after
        if curve > 0:
            step = (candidates[least + 1] - candidates[least - 1]) / 2
            return float(candidates[least] + step * 0.5 * (before - after) / curve)
    return float(candidates[least])
