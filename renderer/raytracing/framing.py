"""The camera of a model's default picture: from the front three-quarter, as near as the geometry allows."""

import numpy as np

from renderer.scene.cameras import Camera, to_point

MARGIN = 0.07  # of the picture that stays free on each side of the model, where it is tightest
FOV_DEGREES = 28.0  # vertical angle of view of a model as high as the picture
PICTURE_ASPECT = 16 / 9
FLOOR_SLAB, FLOOR_COVER = 0.06, 0.4
CENTERING_STEPS = 8
PRODUCT_POINTS = 2048
MAX_BOX_ASPECT = 20.0  # of the rectangle that a flat or thin model fills; its inverse for a tall one


def three_quarter(extent: np.ndarray, is_room: bool = False) -> np.ndarray:
    """The unit direction (3,) from a model with the AABB's `extent` (3,) to its camera; y is up, +z the front.

    It turns to the broader side: 38 degrees from the front for a square base, 20 for what is flat in z, 66 for what is
    long in z. The camera stands 18 degrees high for a cube, higher over flat models, lower before tall ones. A room,
    which has a floor and is higher than half its breadth, is seen from its front: there it is open, if anywhere.
    """
    width, height, depth = np.maximum(extent, 1e-3 * max(float(extent.max()), 1e-30))
    azimuth = np.clip(np.degrees(np.arctan(0.78 * depth / width)), 20.0, 66.0)
    elevation = np.clip(18.0 - 9.5 * np.log(height / np.sqrt(width * depth)), 7.0, 42.0)
    if is_room and height > 0.5 * width:
        azimuth, elevation = 6.0, 4.0
    azimuth, elevation = np.radians([azimuth, elevation])
    level = np.cos(elevation)
    return np.array([level * np.sin(azimuth), np.sin(elevation), level * np.cos(azimuth)])


def bounds_of(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest coordinates (3,) float64 of points (n, 3); by axis, ten times as fast as min(0)."""
    axes = points.T
    return np.array([axis.min() for axis in axes], "f8"), np.array([axis.max() for axis in axes], "f8")


def frame(points: np.ndarray, towards_camera: np.ndarray, center: np.ndarray | None = None) -> Camera:
    """The camera that shows all `points` (n, 3) in the middle of the picture, with a free rim of MARGIN.

    `towards_camera` (3,) is the direction in which it stands, `center` (3,) that of the points' AABB. Its `fit_aspect`
    is the aspect of the points' rectangle in the picture, so that they fit into a picture of any aspect.
    """
    axes = Camera(to_point(towards_camera), (0.0, 0.0, 0.0)).axes()
    if center is None:
        center = (points.min(0) + points.max(0)).astype("f8") / 2
    seen = _turned(points, center, axes)
    tangents = np.tan(np.radians(FOV_DEGREES) / 2) * np.array([PICTURE_ASPECT, 1.0]) * (1 - 2 * MARGIN)
    position = _nearest_position(seen, tangents)
    depth = np.maximum(seen[2] - position[2], 1e-30)
    reach = np.array([(np.abs(seen[axis] - position[axis]) / depth).max() for axis in (0, 1)])
    half_width, half_height = np.maximum(reach, 1e-9) / (1 - 2 * MARGIN)
    half_height = max(half_height, half_width / MAX_BOX_ASPECT)
    half_width = max(half_width, half_height / MAX_BOX_ASPECT)
    eye = center + position @ axes
    target = center + np.array([position[0], position[1], 0.0]) @ axes
    fov = float(np.degrees(2 * np.arctan(half_height)))
    return Camera(to_point(eye), to_point(target), fov_degrees=fov, fit_aspect=float(half_width / half_height))


def _turned(points: np.ndarray, center: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The points (n, 3) about a center, in axes (3, 3): (3, n).

    In products so small that a BLAS takes one thread: its others spin, for half a million points 0.2 CPU-s.
    """
    out = np.empty((3, len(points)), np.result_type(points, center, axes))
    for begin in range(0, len(points), PRODUCT_POINTS):
        out[:, begin : begin + PRODUCT_POINTS] = ((points[begin : begin + PRODUCT_POINTS] - center) @ axes.T).T
    return out


def _nearest_position(seen: np.ndarray, tangents: np.ndarray) -> np.ndarray:
    """The position (3,) of the nearest camera whose frustum holds the points (3, n), in its axes right, up, forward.

    The frustum's half angles have the `tangents` (2,). A point is inside of the right plane if x - cx <= tangent (z -
    cz), and likewise of the others: each plane is as far out as its outermost point.
    """
    high = np.array([(seen[axis] - tangents[axis] * seen[2]).max() for axis in (0, 1)])
    low = np.array([(-seen[axis] - tangents[axis] * seen[2]).max() for axis in (0, 1)])
    depth = (-(high + low) / (2 * tangents)).min()
    nearest = float(seen[2].min()) - max(1e-3 * float(np.abs(seen).max()), 1e-6)  # of points on one line, or of one
    depth = min(depth, nearest)
    return np.array([*(_centered(seen[axis], seen[2] - depth) for axis in (0, 1)), depth])


def _centered(across: np.ndarray, depth: np.ndarray) -> float:
    """The camera's coordinate on one axis from which points `across` at `depth` reach equally far to both sides.

    By Newton's method: the tangents' sum is piecewise linear in the coordinate.
    """
    camera = float(across.max() + across.min()) / 2
    for _ in range(CENTERING_STEPS):
        tangent = (across - camera) / depth
        high, low = int(tangent.argmax()), int(tangent.argmin())
        camera += float((tangent[high] + tangent[low]) / (1 / depth[high] + 1 / depth[low]))
    return camera


def has_floor(corners: np.ndarray, step: int, low: np.ndarray, high: np.ndarray) -> bool:
    """Whether a model is a ground or stands on its own, as terrains and rooms do.

    `corners` (n, 3, 3) are those of every step-th triangle; low and high (3,) the AABB. It does if triangles whose
    front faces up, within FLOOR_SLAB of the footprint's size above the lowest point, cover FLOOR_COVER of it.
    """
    size = high - low
    footprint, slab = float(size[0] * size[2]), FLOOR_SLAB * float(max(size[0], size[2]))
    below = np.maximum(np.maximum(corners[:, 0, 1], corners[:, 1, 1]), corners[:, 2, 1]) <= low[1] + slab
    edge1, edge2 = corners[below, 1] - corners[below, 0], corners[below, 2] - corners[below, 0]
    up = np.cross(edge1, edge2)[:, 1] / 2
    return footprint > 0 and float(up[up > 0].sum()) * step >= FLOOR_COVER * footprint
