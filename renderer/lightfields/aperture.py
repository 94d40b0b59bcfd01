"""The eye in front of a camera array: where it looks from, through which aperture, and which views that takes.

An aperture of size 0 is a pinhole: the view from between the four cameras around it (Levoy and Hanrahan 1996, with the
plane in focus as the second plane: Isaksen et al. 2000). A larger one adds up the views from all over its area, which
is what a lens does (Ng 2005). Both are the same sum over cameras with the weights that this module makes.
"""

from dataclasses import dataclass, replace

import numpy as np

from renderer.lightfields.light_field import LightField
from renderer.scene.scene import setting

TAP = np.dtype([("view", "i4"), ("column", "i4"), ("row", "i4"), ("fx", "f4"), ("fy", "f4"), ("weight", "f4")])
FINENESS = 65536  # parts of a pixel that shifts are rounded to, so that whole ones stay whole
SIDE = 64  # points across an aperture that its area is sampled at
SMALLEST, STEP = 0.02, 1.25  # the smallest aperture that the wheel opens from nothing, and how much a step opens it


@dataclass(frozen=True)
class Eye:
    """A view of a light field. `focus_at` is x, y of the picture (panel heights from its centre, y down) and u, v of
    the eye when that place was chosen; the plane that lies there is in focus.
    """

    u: float = setting(0.0, -1.0, 1.0, "the eye, from the left (-1) to the right (1) edge of the array")
    v: float = setting(0.0, -1.0, 1.0, "the eye, from the top (-1) to the bottom (1) edge of the array")
    aperture: float = setting(1.0, 0.0, 4.0, "radius of the aperture, in half widths of the array; 0 is a pinhole")
    focus_at: tuple[float, float, float, float] | None = None

    def drag(self, dx: float, dy: float) -> "Eye":
        """Moves the eye so that near things follow the pointer; half the panel's height is half the array."""
        return replace(self, u=_within(self.u - 2 * dx), v=_within(self.v - 2 * dy))

    pan = drag

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> "Eye":
        """Opens the aperture by a quarter a step, or closes it, in the end to a pinhole."""
        wanted = max(self.aperture, SMALLEST / STEP if steps > 0 else 0.0) * STEP**steps
        return replace(self, aperture=0.0 if wanted < 0.999 * SMALLEST else min(wanted, 4.0))

    def click(self, x: float, y: float) -> "Eye":
        """Focuses on what is seen at (x, y) from the panel's centre."""
        return replace(self, focus_at=(x, y, self.u, self.v))


def _within(place: float) -> float:
    return min(max(place, -1.0), 1.0)


def _points(shape: str) -> np.ndarray:
    """Points (n, 2) spread evenly over an aperture of radius 1."""
    steps = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
    x, y = (axis.ravel() for axis in np.meshgrid(steps, steps))
    radius = np.hypot(x, y)
    inside = {
        "disc": radius <= 1,
        "square": radius >= 0,
        "hexagon": np.maximum(np.abs(x) / 2 * np.sqrt(3) + np.abs(y) / 2, np.abs(y)) <= np.sqrt(3) / 2,
        "ring": (radius <= 1) & (radius >= 0.7),
    }[shape]
    return np.column_stack([x[inside], y[inside]])


SHAPES = ("disc", "square", "hexagon", "ring", "all")


def place_of(field: LightField, u: float, v: float) -> np.ndarray:
    """The camera coordinates (2,) of the eye at u, v from -1 to 1 over the array."""
    half = np.array([field.rows - 1, field.columns - 1]) / 2
    return np.array([u, v]) * np.abs(half[:, None] * field.axes).max(0)


def weights(field: LightField, eye: Eye, shape: str) -> np.ndarray:
    """The share (n,) that each view has in the picture, the greatest 1.

    Every point of the aperture is a pinhole that mixes the four cameras around it; the aperture sums over its points.
    "all" takes every view alike. What lies outside of the array adds nothing.
    """
    if shape == "all":
        return np.ones(len(field.pixels))
    half = np.array([field.rows - 1, field.columns - 1]) / 2
    middle = place_of(field, eye.u, eye.v)
    radius = eye.aperture * max(half.max(), 0.5)
    points = middle + (radius * _points(shape) if radius else np.zeros((1, 2)))
    cells = points @ np.linalg.inv(field.axes) + half
    limit = np.array([field.rows - 1, field.columns - 1])
    inside = ((cells > -1e-6) & (cells < limit + 1e-6)).all(1)
    if not inside.any():
        cells, inside = middle[None] @ np.linalg.inv(field.axes) + half, np.array([True])
    cells = np.clip(cells[inside], 0, limit)
    low = np.minimum(np.floor(cells + 1e-9), np.maximum(limit - 1, 0)).astype("i4")
    part = np.clip(cells - low, 0, 1)
    part[part < 1e-9] = 0
    total = np.zeros(field.rows * field.columns)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        share = np.abs(1 - row - part[:, 0]) * np.abs(1 - column - part[:, 1])
        index = np.minimum(low + (row, column), limit) @ (field.columns, 1)
        total += np.bincount(index, share, len(total))
    seen = total[field.cells @ (field.columns, 1)]
    if seen.max() <= 1e-9 * max(total.max(), 1e-300):  # only missing views: the nearest one stands in
        seen = (np.arange(len(seen)) == np.linalg.norm(field.cameras - middle, axis=1).argmin()).astype("f8")
    return seen / seen.max()


def taps(field: LightField, shares: np.ndarray, middle: np.ndarray, disparity: float) -> np.ndarray:
    """TAP records of the views with a share, for the plane of `disparity` in focus seen from `middle`.

    Views that are shifted out of the picture are left out.
    """
    chosen = np.flatnonzero(shares > 1e-6)
    shift = np.round(-disparity * (field.cameras[chosen] - middle) * FINENESS) / FINENESS
    width, height = field.size
    inside = (np.abs(shift[:, 0]) < width) & (np.abs(shift[:, 1]) < height)
    chosen, shift = chosen[inside], shift[inside]
    whole = np.floor(shift)
    records = np.zeros(len(chosen), TAP)
    records["view"], records["weight"] = chosen, shares[chosen]
    records["column"], records["row"] = whole.T
    records["fx"], records["fy"] = (shift - whole).T
    return records
