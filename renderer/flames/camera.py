"""Transforms from points of a flame to the buckets of a picture: 2D views and 3D pinhole cameras."""

import math

import numpy as np

from renderer.scene.cameras import Camera, View2D

Size = tuple[int, int]  # width, height in pixels


def bucket_transform(
    view: View2D | Camera, y_axis: str, size: Size, supersample: int, gutter: int, pixel_aspect: float = 1.0
) -> np.ndarray:
    """The transform of a view as the kernels take it: (6,) for 2D flames, (12,) for 3D ones."""
    if isinstance(view, Camera):
        return world_to_buckets(view, size, supersample, gutter)
    return plane_to_buckets(view, y_axis, size, supersample, gutter, pixel_aspect)


def pixels_per_unit(view: View2D | Camera, size: Size) -> float:
    """Pixels per unit of the flame; in 3D at the camera's target."""
    if isinstance(view, Camera):
        half = math.tan(math.radians(view.fov_degrees) / 2) * view.fit_scale(size[0] / size[1])
        return size[1] / (2 * half * math.dist(view.position, view.target))
    return size[1] / view.height


def world_to_buckets(view: Camera, size: Size, supersample: int, gutter: int) -> np.ndarray:
    """(12,) float64: three rows of four; column and row of the bucket are the first two over the third, the depth."""
    right, up, forward = view.axes()
    half = math.tan(math.radians(view.fov_degrees) / 2) * view.fit_scale(size[0] / size[1])
    focal = size[1] / 2 / half * supersample
    middle = np.array(size) / 2 * supersample + gutter
    rows = np.array([focal * right + middle[0] * forward, -focal * up + middle[1] * forward, forward])
    return np.concatenate([rows, -rows @ np.array(view.position)[:, None]], 1).ravel()


def plane_to_buckets(
    view: View2D, y_axis: str, size: Size, supersample: int, gutter: int, pixel_aspect: float = 1.0
) -> np.ndarray:
    """(6,) float64: the affine map from the flame's plane to buckets; `y_axis` is "up" or "down"."""
    scale = size[1] / view.height * supersample
    c, s = math.cos(math.radians(view.rotation_degrees)), math.sin(math.radians(view.rotation_degrees))
    # With y up the picture is the plane rotated by -rotation; the picture's rows point down.
    rows = np.array([[c / pixel_aspect, s / pixel_aspect], [s, -c]]) * scale
    offset = np.array(size) / 2 * supersample + gutter - rows @ np.array(view.center)
    if y_axis == "down":
        rows[:, 1] *= -1
    return np.array([rows[0, 0], rows[0, 1], offset[0], rows[1, 0], rows[1, 1], offset[1]])
