"""Computes the weights and shifts of a light field's views for a virtual camera with a synthetic aperture.

renderer/pictures/lightfield.py calls view_weights() and view_shifts(); its kernels add up the shifted views.

An aperture of size 0 is a pinhole: the view interpolated between the four cameras around it (Levoy and Hanrahan 1996,
with the focal plane as the second plane: Isaksen et al. 2000). A larger aperture averages the views over its area, as a
lens does (Ng 2005). Both are a weighted sum over the cameras.
"""

from typing import Literal

import numpy as np

from renderer.lightfields.light_field import LightField
from renderer.records import dataclass, replace
from renderer.scene.cameras import View
from renderer.scene.schema import setting

VIEW_SHIFT = np.dtype([("view", "i4"), ("column", "i4"), ("row", "i4"), ("fx", "f4"), ("fy", "f4"), ("weight", "f4")])
SHIFT_STEPS_PER_PIXEL = 65536  # shifts are rounded to multiples of 1/65536 pixel, so that whole pixels stay exact
APERTURE_SAMPLES = 64  # sample points across the aperture
MIN_APERTURE, APERTURE_STEP = 0.02, 1.25  # first aperture that the wheel opens a pinhole to; factor per wheel step
MIN_WEIGHT = 1e-6  # views of less weight are left out
MIDDLE = 0.25  # distance from the virtual camera, in spacings, within which a view belongs to both halves
# Least extent of a half, as a fraction of the array's: views on a line cannot match edges along it.
MIN_HALF_EXTENT = 0.3
ApertureShape = Literal["disc", "square", "hexagon", "ring", "all"]


@dataclass(frozen=True)
class VirtualCamera(View):
    """A view of a light field.

    `focus_point` is (x, y, u, v): a point of the picture (panel heights from its center, y down) and the camera's
    (u, v) when that point was chosen. The surface seen there is in focus.
    """

    u: float = setting(0.0, -1.0, 1.0, "camera position, from the left (-1) to the right (1) edge of the array")
    v: float = setting(0.0, -1.0, 1.0, "camera position, from the top (-1) to the bottom (1) edge of the array")
    aperture: float = setting(1.0, 0.0, 4.0, "radius of the aperture in half widths of the array; 0 is a pinhole")
    focus_point: tuple[float, float, float, float] | None = None

    can_click = True

    def drag(self, dx: float, dy: float) -> "VirtualCamera":
        """Move the camera so that near objects follow the pointer; half the panel's height is half the array."""
        return replace(self, u=_clamp(self.u - 2 * dx), v=_clamp(self.v - 2 * dy))

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> "VirtualCamera":
        """Open or close the aperture by a factor of 1.25 per step; the smallest one closes to a pinhole."""
        aperture = max(self.aperture, MIN_APERTURE / APERTURE_STEP if steps > 0 else 0.0) * APERTURE_STEP**steps
        return replace(self, aperture=0.0 if aperture < 0.999 * MIN_APERTURE else min(aperture, 4.0))

    def click(self, x: float, y: float) -> "VirtualCamera":
        """Focus on the surface seen at (x, y), in panel heights from the center."""
        return replace(self, focus_point=(x, y, self.u, self.v))


def _clamp(coordinate: float) -> float:
    return min(max(coordinate, -1.0), 1.0)


def _aperture_points(shape: str) -> np.ndarray:
    """Returns the points (n, 2) of a regular grid inside an aperture of radius 1."""
    steps = (np.arange(APERTURE_SAMPLES) + 0.5) / APERTURE_SAMPLES * 2 - 1
    x, y = (axis.ravel() for axis in np.meshgrid(steps, steps))
    radius = np.hypot(x, y)
    inside = {
        "disc": radius <= 1,
        "square": radius >= 0,
        "hexagon": np.maximum(np.abs(x) / 2 * np.sqrt(3) + np.abs(y) / 2, np.abs(y)) <= np.sqrt(3) / 2,
        "ring": (radius <= 1) & (radius >= 0.7),
    }[shape]
    return np.column_stack([x[inside], y[inside]])


def camera_position(field: LightField, u: float, v: float) -> np.ndarray:
    """Converts a virtual camera's (u, v), each from -1 to 1 over the array, to coordinates (2,) in camera spacings."""
    return np.asarray(np.array([u, v]) * np.abs(field.half_extent[:, None] * field.grid_basis).max(0))


def view_weights(field: LightField, camera: VirtualCamera, shape: str) -> np.ndarray:
    """Returns the weight (n,) of each view in the synthesized picture; the largest is 1.

    The aperture is sampled on a regular grid; each sample is distributed bilinearly to the four cameras around it.
    Samples outside of the array are dropped, or, if all are outside, the nearest border counts. Shape "all" weights
    every view equally. In the code `cells` are samples in (row, column), `low` the camera above and to the left of each
    sample, `fraction` the rest; `total` are weights by cell of the array, also of missing views.
    """
    if shape == "all":
        return np.ones(len(field.pixels))
    half = field.half_extent  # (rows, columns) from the middle of the array to its border
    center = camera_position(field, camera.u, camera.v)
    radius = camera.aperture * max(half.max(), 0.5)  # 0.5: a single camera has no extent
    points = center + (radius * _aperture_points(shape) if radius else np.zeros((1, 2)))
    to_grid = np.linalg.inv(field.grid_basis)  # from (u, v) in spacings to (row, column) steps
    cells = points @ to_grid + half
    limit = np.array([field.rows - 1, field.columns - 1])
    inside = ((cells > -1e-6) & (cells < limit + 1e-6)).all(1)
    if not inside.any():
        cells, inside = center[None] @ to_grid + half, np.array([True])
    cells = np.clip(cells[inside], 0, limit)
    low = np.minimum(np.floor(cells + 1e-9), np.maximum(limit - 1, 0)).astype("i4")
    fraction = np.clip(cells - low, 0, 1)
    fraction[fraction < 1e-9] = 0  # a sample at a camera belongs to no other one
    total = np.zeros(field.rows * field.columns)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        # fraction for the camera below or to the right (1), 1 - fraction for the other (0)
        weight = np.abs(1 - row - fraction[:, 0]) * np.abs(1 - column - fraction[:, 1])
        index = np.minimum(low + (row, column), limit) @ (field.columns, 1)
        total += np.bincount(index, weight, len(total))
    weights = total[field.view_indices @ (field.columns, 1)]
    if weights.max() <= 1e-9 * max(total.max(), 1e-300):  # only missing views: use the nearest one
        nearest = np.linalg.norm(field.camera_positions - center, axis=1).argmin()
        weights = (np.arange(len(weights)) == nearest).astype("f8")
    return np.asarray(weights / weights.max())


def view_shifts(field: LightField, weights: np.ndarray, position: np.ndarray, disparity: float) -> np.ndarray:
    """Returns VIEW_SHIFT records of the weighted views; their shifted sum is in focus on the plane of `disparity`.

    `position` (2,) is the virtual camera's, in spacings. `column` and `row` are whole pixels, `fx` and `fy` the rest.
    Views that are shifted out of the picture are left out.
    """
    views = np.flatnonzero(weights > MIN_WEIGHT)
    shift = -disparity * (field.camera_positions[views] - position)
    shift = np.round(shift * SHIFT_STEPS_PER_PIXEL) / SHIFT_STEPS_PER_PIXEL
    width, height = field.size
    inside = (np.abs(shift[:, 0]) < width) & (np.abs(shift[:, 1]) < height)
    views, shift = views[inside], shift[inside]
    pixels = np.floor(shift)
    records = np.zeros(len(views), VIEW_SHIFT)
    records["view"], records["weight"] = views, weights[views]
    records["column"], records["row"] = pixels.T
    records["fx"], records["fy"] = (shift - pixels).T
    return records


def view_halves(field: LightField, weights: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Returns bits (n,) int32 of the halves that contain each view: left, right, above, below of the virtual camera.

    A surface that an edge hides from one half of the array is visible from another half. `position` (2,) is the
    camera's. If it is so close to the array's border that a half is thin, all views belong to that half.
    """
    offset = field.camera_positions - position
    used = weights > MIN_WEIGHT
    extent = np.ptp(offset[used], axis=0)
    bits = np.zeros(len(offset), "i4")
    for bit, (axis, sign) in enumerate(((0, 1), (0, -1), (1, 1), (1, -1))):
        inside = sign * offset[:, axis] <= MIDDLE
        half = offset[used & inside]
        if len(half) < 2 or (np.ptp(half, axis=0) < MIN_HALF_EXTENT * extent).any():
            inside[:] = True
        bits |= inside.astype("i4") << bit
    return bits
