"""The camera of a model's default picture: a front three-quarter view that fills the picture; of a room, one inside.

default_picture.py chooses the direction by three_quarter() and the position by frame(), or takes the view of
inside_view(). It asks has_floor() whether the model needs a ground.
"""

import numpy as np

from renderer.bvh.primitives import triangle_distances
from renderer.scene.cameras import Camera, to_point

MARGIN = 0.07  # fraction of the picture's width or height that stays free on each side of the model
FOV_DEGREES = 28.0  # vertical angle of view
PICTURE_ASPECT = 16 / 9
FLOOR_SLAB, FLOOR_COVER = 0.06, 0.4  # a floor is at most this high and covers at least this much of the footprint
CENTERING_STEPS = 8  # steps of Newton's method
PRODUCT_POINTS = 2048  # points in one matrix product
ROOM_RAYS, MAX_OPEN_RAYS = 128, 4  # rays from the middle of a model; a room is closed if at most so many leave it
ROOM_HEIGHTS = 0.5, 0.65, 0.8  # heights of the rays' origin, in heights of the model: furniture may stand in the middle
ROOM_FOV_DEGREES, ROOM_DEPTH = 60.0, 0.85  # the camera inside stands at this fraction of the way to the farthest wall
MAX_BOX_ASPECT = 20.0  # largest aspect, and inverse of the least, of the rectangle that a model fills


def three_quarter(extent: np.ndarray, is_room: bool = False) -> np.ndarray:
    """Returns the unit direction (3,) from a model, whose AABB has `extent` (3,), to its camera; y is up, +z the front.

    The camera turns to the broader side: 38 degrees from the front for a square base, 20 for a model that is flat in z,
    66 for one that is long in z. It stands 18 degrees high for a cube, higher for flat models, lower for tall ones. A
    room, which has a floor and is higher than half its breadth, is seen from the front, the side most likely open.
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
    """Returns the corners (3,) float64 of the AABB of points (n, 3); axis by axis, ten times as fast as min(0)."""
    axes = points.T
    return np.array([axis.min() for axis in axes], "f8"), np.array([axis.max() for axis in axes], "f8")


def frame(points: np.ndarray, towards_camera: np.ndarray, center: np.ndarray | None = None) -> Camera:
    """Returns the nearest camera that shows all `points` (n, 3) in the middle of the picture, with a rim of MARGIN.

    `towards_camera` (3,) is the direction to the camera, `center` (3,) the center of the points' AABB. The camera's
    `fit_aspect` is the aspect of the points' rectangle in the picture, so that they fit into a picture of any aspect.
    """
    axes = Camera(to_point(towards_camera), (0.0, 0.0, 0.0)).axes()
    if center is None:
        center = (points.min(0) + points.max(0)).astype("f8") / 2
    view_points = _rotate(points, center, axes)
    tangents = np.tan(np.radians(FOV_DEGREES) / 2) * np.array([PICTURE_ASPECT, 1.0]) * (1 - 2 * MARGIN)
    position = _nearest_position(view_points, tangents)
    depth = np.maximum(view_points[2] - position[2], 1e-30)
    reach = np.array([(np.abs(view_points[axis] - position[axis]) / depth).max() for axis in (0, 1)])
    half_width, half_height = np.maximum(reach, 1e-9) / (1 - 2 * MARGIN)
    half_height = max(half_height, half_width / MAX_BOX_ASPECT)
    half_width = max(half_width, half_height / MAX_BOX_ASPECT)
    eye = center + position @ axes
    target = center + np.array([position[0], position[1], 0.0]) @ axes
    fov = float(np.degrees(2 * np.arctan(half_height)))
    return Camera(to_point(eye), to_point(target), fov_degrees=fov, fit_aspect=float(half_width / half_height))


def _rotate(points: np.ndarray, center: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Returns the coordinates (3, n) of points (n, 3), relative to `center`, along the axes (3, 3).

    The products are small, so that the BLAS stays on one thread; further threads would spin, 0.2 CPU-s for half a
    million points.
    """
    out = np.empty((3, len(points)), np.result_type(points, center, axes))
    for begin in range(0, len(points), PRODUCT_POINTS):
        out[:, begin : begin + PRODUCT_POINTS] = ((points[begin : begin + PRODUCT_POINTS] - center) @ axes.T).T
    return out


def _nearest_position(points: np.ndarray, tangents: np.ndarray) -> np.ndarray:
    """Returns the position (3,) of the nearest camera whose frustum holds the points (3, n); axes right, up, forward.

    The frustum's half angles have the `tangents` (2,). A point is inside of the right plane if x - cx <= tangent (z -
    cz), and likewise for the other planes: each plane goes through its outermost point.
    """
    high = np.array([(points[axis] - tangents[axis] * points[2]).max() for axis in (0, 1)])
    low = np.array([(-points[axis] - tangents[axis] * points[2]).max() for axis in (0, 1)])
    depth = (-(high + low) / (2 * tangents)).min()
    # Points on one line along the view axis, or a single point, would be at the camera.
    farthest_depth = float(points[2].min()) - max(1e-3 * float(np.abs(points).max()), 1e-6)
    depth = min(depth, farthest_depth)
    return np.array([*(_centered(points[axis], points[2] - depth) for axis in (0, 1)), depth])


def _centered(across: np.ndarray, depth: np.ndarray) -> float:
    """Returns the camera's coordinate on one axis that centers points with coordinates `across` at distances `depth`.

    There the largest and the least tangent of a point add up to 0. Newton's method finds it, because the sum is
    piecewise linear in the coordinate.
    """
    camera = float(across.max() + across.min()) / 2
    for _ in range(CENTERING_STEPS):
        tangent = (across - camera) / depth
        high, low = int(tangent.argmax()), int(tangent.argmin())
        camera += float((tangent[high] + tangent[low]) / (1 / depth[high] + 1 / depth[low]))
    return camera


def has_floor(corners: np.ndarray, step: int, low: np.ndarray, high: np.ndarray) -> bool:
    """Returns True if a model has a floor, as terrains and rooms have, and needs no ground.

    `corners` (n, 3, 3) belong to every step-th triangle; low and high (3,) are the AABB. A floor is a
    set of triangles whose front faces up, at most FLOOR_SLAB of the footprint's size above the lowest point, and which
    covers FLOOR_COVER of the footprint.
    """
    size = high - low
    footprint, slab = float(size[0] * size[2]), FLOOR_SLAB * float(max(size[0], size[2]))
    below = np.maximum(np.maximum(corners[:, 0, 1], corners[:, 1, 1]), corners[:, 2, 1]) <= low[1] + slab
    edge1, edge2 = corners[below, 1] - corners[below, 0], corners[below, 2] - corners[below, 0]
    up = np.cross(edge1, edge2)[:, 1] / 2
    return footprint > 0 and float(up[up > 0].sum()) * step >= FLOOR_COVER * footprint


def inside_view(corners: np.ndarray, low: np.ndarray, high: np.ndarray) -> Camera | None:
    """Returns a camera inside a model that is a closed room, else None. `corners` (n, 3, 3) are all its triangles.

    A room is closed if nearly all rays from its middle hit the front of a triangle first: the walls face inwards. Solid
    bodies show their backs there.
    """
    steps = np.arange(ROOM_RAYS) + 0.5
    cosine, azimuth = 1 - 2 * steps / ROOM_RAYS, steps * 2.399963  # evenly over the sphere, by the golden angle
    sine = np.sqrt(1 - cosine**2)
    directions = np.stack([sine * np.cos(azimuth), cosine, sine * np.sin(azimuth)], 1)
    angles = np.arange(16) * np.pi / 8
    # The camera stands in one of these 16 level directions, towards the farthest wall.
    level = np.stack([np.sin(angles), 0 * angles, np.cos(angles)], 1)
    for height in ROOM_HEIGHTS:
        origin = np.array([(low[0] + high[0]) / 2, low[1] + height * (high[1] - low[1]), (low[2] + high[2]) / 2])
        shifted, open_rays = corners - origin, 0
        if not _first_front(shifted, np.array([0.0, 1.0, 0.0])) < np.inf:  # no ceiling: most models end here
            continue
        for direction in directions:
            open_rays += not _first_front(shifted, direction) < np.inf
            if open_rays > MAX_OPEN_RAYS:
                break
        else:
            distances = np.array([_first_front(shifted, direction) for direction in level])
            distances[~np.isfinite(distances)] = 0
            farthest = int(distances.argmax())
            eye = origin + ROOM_DEPTH * distances[farthest] * level[farthest]
            return Camera(to_point(eye), to_point(origin), fov_degrees=ROOM_FOV_DEGREES) if distances.any() else None
    return None


def _first_front(corners: np.ndarray, direction: np.ndarray) -> float:
    """Returns the distance of the first triangle on a ray from 0; infinite if none is hit, or its back."""
    first = corners[:, 0]
    distance, front = triangle_distances((first, corners[:, 1] - first, corners[:, 2] - first), np.zeros(3), direction)
    nearest = int(distance.argmin())
    return float(distance[nearest]) if front[nearest] else np.inf
