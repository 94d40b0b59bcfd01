"""Transforms from points of a flame to the buckets of a picture.

Flames of the plane have 2D views; flames with z a 2D view after the camera of Apophysis and JWildfire, or a pinhole.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from renderer.scene.cameras import Camera, View2D
from renderer.scene.schema import setting

Size = tuple[int, int]  # width, height in pixels
NEAR = 1e-6  # least depth of points that are seen


@dataclass(frozen=True)
class FlameView(View2D):
    """A rectangle of the plane that a flame's camera sees; in flames with z a drag orbits: it turns the camera."""

    pitch_degrees: float = setting(0.0, -1e4, 1e4, "added to the pitch of the flame's camera")
    yaw_degrees: float = setting(0.0, -1e4, 1e4, "added to the yaw of the flame's camera")
    orbits: bool = setting(False, help="a drag turns the camera instead of moving the view")

    def drag(self, dx: float, dy: float) -> Self:
        """Pans, or orbits: a drag over the panel's height turns half a circle."""
        if not self.orbits:
            return super().drag(dx, dy)
        return replace(self, pitch_degrees=self.pitch_degrees - 180 * dy, yaw_degrees=self.yaw_degrees + 180 * dx)

    def pan(self, dx: float, dy: float) -> Self:
        """Pans, so that the plane follows the pointer."""
        return super().drag(dx, dy)


def bucket_transform(
    view: View2D | Camera, flame: Any, y_axis: str, size: Size, supersample: int, gutter: int,
    pixel_aspect: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """The transform of a view as the kernels take it: (6,) for 2D flames; for 3D ones (13,), with a lens (40,).

    What the flame needs more follows: depth, fading, jitter.

    `flame`: a Flame, for its camera.
    """
    if isinstance(view, Camera):
        camera = world_to_buckets(view, size, supersample, gutter)
    elif flame.has_z:
        camera = space_to_buckets(view, flame, y_axis, size, supersample, gutter, pixel_aspect)
    else:
        camera = plane_to_buckets(view, y_axis, size, supersample, gutter, pixel_aspect)
    return np.append(camera, [flame.antialias_amount, flame.antialias_radius]) if flame.jitters else camera


def pixels_per_unit(view: View2D | Camera, size: Size) -> float:
    """Pixels per unit of the flame; in 3D at the camera's target."""
    if isinstance(view, Camera):
        half = math.tan(math.radians(view.fov_degrees) / 2) * view.fit_scale(size[0] / size[1])
        return size[1] / (2 * half * math.dist(view.position, view.target))
    return size[1] / view.height


def world_to_buckets(view: Camera, size: Size, supersample: int, gutter: int) -> np.ndarray:
    """(13,) float64: three rows of four; column and row of the bucket are the first two over the third, the depth.

    The last number is the least depth that is seen.
    """
    right, up, forward = view.axes()
    half = math.tan(math.radians(view.fov_degrees) / 2) * view.fit_scale(size[0] / size[1])
    focal = size[1] / 2 / half * supersample
    middle = np.array(size) / 2 * supersample + gutter
    rows = np.array([focal * right + middle[0] * forward, -focal * up + middle[1] * forward, forward])
    matrix = np.concatenate([rows, -rows @ np.array(view.position)[:, None]], 1)
    return np.append(matrix.ravel(), NEAR)


def plane_in_space(plane: np.ndarray) -> np.ndarray:
    """(13,) float64: a transform (6,) of the plane as one of space, which drops z."""
    a, b, c, d, e, f = plane
    return np.array([a, b, 0, c, d, e, 0, f, 0, 0, 0, 1, NEAR])


def camera_rotation(pitch: float, yaw: float, roll: float, bank: float) -> np.ndarray:
    """(3, 3) float64: the rotation of points to the axes of the camera, angles in radians.

    The camera of Apophysis 7X, whose roll is a rotation of the picture; JWildfire adds roll and bank to the matrix.
    """
    (cp, cy, cr, cb), (sp, sy, sr, sb) = (np.array([f(pitch), f(-yaw), f(roll), f(bank)]) for f in (math.cos, math.sin))
    return np.array([
        [-cp * sr * sy - (sp * sb * sr - cb * cr) * cy, -cp * cy * sr + (sp * sb * sr - cb * cr) * sy,
         cb * sp * sr + cr * sb],
        [cp * cr * sy + (cr * sp * sb + cb * sr) * cy, cp * cr * cy - (cr * sp * sb + cb * sr) * sy,
         sb * sr - cb * cr * sp],
        [sp * sy - cp * cy * sb, cp * sb * sy + cy * sp, cp * cb],
    ])  # fmt: skip


def space_to_buckets(
    view: View2D, flame: Any, y_axis: str, size: Size, supersample: int, gutter: int, pixel_aspect: float = 1.0
) -> np.ndarray:
    """The transform of a flame with z: (13,) float64 as world_to_buckets(), with depth of field (40,) as in flame.cu.

    Where flame.cu needs them, the row of z before the camera (4,) and JWildfire's fading (5,) follow.

    A point's place on the plane is x / w, y / w with (x, y, z) its place before the camera and w = 1 - perspective z.
    Apophysis subtracts cam_zpos from z before the rotation and draws points behind the camera; JWildfire adds
    cam_pos_x, cam_pos_y, cam_pos_z after it, and drops them.
    """
    pitch, yaw = flame.cam_pitch, flame.cam_yaw
    if isinstance(view, FlameView):
        pitch, yaw = pitch + math.radians(view.pitch_degrees), yaw + math.radians(view.yaw_degrees)
    jwildfire = flame.cam_model == "jwildfire"
    roll = math.radians(view.rotation_degrees) if jwildfire else 0.0
    flat_view = View2D(view.center, view.height, 0.0 if jwildfire else view.rotation_degrees)
    rotation = camera_rotation(pitch, yaw, roll if y_axis == "down" else -roll, flame.cam_roll)
    position = np.array([flame.cam_pos_x, flame.cam_pos_y, flame.cam_pos_z])
    offset = position if jwildfire else rotation @ np.array([0.0, 0.0, -flame.cam_zpos])
    place = np.concatenate([rotation, offset[:, None]], 1)
    depth = -flame.cam_perspective * place[2]
    depth[3] += 1.0 + (position[2] if jwildfire else 0.0)
    a, b, c, d, e, f = plane_to_buckets(flat_view, y_axis, size, supersample, gutter, pixel_aspect)
    rows = [a * place[0] + b * place[1] + c * depth, d * place[0] + e * place[1] + f * depth, depth]
    camera = np.append(np.concatenate(rows), NEAR if jwildfire else -3e38)
    depth = place[2] if flame.solid or flame.cam_zdimish else np.empty(0)
    if flame.cam_zdimish:
        depth = np.concatenate([depth, [flame.cam_zdimish, flame.cam_zdimdist], 255 * np.array(flame.cam_zdimcolor)])
    if flame.cam_dof == 0 or flame.solid:
        return np.append(camera, depth)
    strength = 0.1 * flame.cam_dof
    half = (np.array(size) / 2 + gutter / supersample) * view.height / size[1] * (pixel_aspect, 1.0)
    lens = _lens(flame, place), strength * np.array([a, b, d, e]), _focus(flame), _blur_curve(flame, place, half)
    return np.concatenate([camera, *lens, depth])


def _lens(flame: Any, place: np.ndarray) -> np.ndarray:
    """(12,) float64: three rows of four, the vector from the focus; `place`: the rows (3, 4) of the place."""
    rows = np.zeros((3, 4))
    if flame.cam_model == "apophysis":
        rows[2] = place[2]
    elif not flame.new_dof:
        rows[2] = -place[2]
        rows[2, 3] += flame.cam_zpos
    else:
        rows[:] = place
        rows[:, 3] -= (flame.cam_xfocus, flame.cam_yfocus, flame.cam_zfocus)
    return rows.ravel()


def _blur_curve(flame: Any, place: np.ndarray, half: np.ndarray) -> np.ndarray:
    """(8,) float64: two rows of four, whose vector's squared length is a factor on the blur.

    Fractorium's: 25 / blur_curve times the squared distance from the middle, in halves (2,) of the picture's sides.
    """
    if flame.blur_curve == 0:
        return np.array([0, 0, 0, 1, 0, 0, 0, 0], "f8")
    return (place[:2] / half[:, None] * 5 / math.sqrt(abs(flame.blur_curve))).ravel()


def _focus(flame: Any) -> tuple[float, float, float]:
    """Exponent of the squared distance, the distance that is sharp, and whether only one side is blurred."""
    if flame.cam_model == "apophysis":
        return 0.5, 0.0, 0.0
    return (1 / flame.cam_dof_exponent, flame.cam_dof_area, 0.0) if flame.new_dof else (0.5, 0.0, 1.0)


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
