"""Transforms from points of a flame to the buckets (histogram cells) of a picture, as flame.cu reads them.

A 2D flame has a 2D view. A flame with z has the camera of Apophysis or JWildfire followed by a 2D view, or a pinhole
camera. renderer/pictures/flame.py calls bucket_transform() for each temporal sample. In all functions `supersample` is
buckets per pixel along each axis, and `gutter` the number of buckets beyond the picture on each side.
"""

import math
from typing import Self

import numpy as np

from renderer.flames.genome import Flame
from renderer.records import dataclass, replace
from renderer.scene.cameras import Camera, View2D
from renderer.scene.schema import setting

Size = tuple[int, int]  # width, height in pixels
NEAR = 1e-6  # points at a smaller depth are not plotted


@dataclass(frozen=True)
class FlameView(View2D):
    """The rectangle of the plane that a picture shows. If `orbits`, a drag turns the camera and does not pan."""

    pitch_degrees: float = setting(0.0, -1e4, 1e4, "added to the pitch of the flame's camera")
    yaw_degrees: float = setting(0.0, -1e4, 1e4, "added to the yaw of the flame's camera")
    orbits: bool = setting(False, help="a drag turns the camera instead of moving the view")

    def drag(self, dx: float, dy: float) -> Self:
        """The view after a drag by (dx, dy) panel heights: panned, or orbited by 180 degrees per panel height."""
        if not self.orbits:
            return super().drag(dx, dy)
        return replace(self, pitch_degrees=self.pitch_degrees - 180 * dy, yaw_degrees=self.yaw_degrees + 180 * dx)

    def pan(self, dx: float, dy: float) -> Self:
        """The view after a drag by (dx, dy) panel heights, panned so that the plane follows the pointer."""
        return super().drag(dx, dy)


def bucket_transform(
    view: View2D | Camera,
    flame: Flame,
    y_axis: str,
    size: Size,
    supersample: int,
    gutter: int,
    pixel_aspect: float = 1.0,
) -> np.ndarray:
    """The transform of a view as the kernels read it: (6,) for 2D flames; for flames with z (13,), with a lens (40,).

    The numbers for depth, fading and jitter are appended if the flame has these. `y_axis`: "up" or "down".
    """
    if isinstance(view, Camera):
        camera = world_to_buckets(view, size, supersample, gutter)
    elif flame.has_z:
        camera = space_to_buckets(view, flame, y_axis, size, supersample, gutter, pixel_aspect)
    else:
        camera = plane_to_buckets(view, y_axis, size, supersample, gutter, pixel_aspect)
    return np.append(camera, [flame.antialias_amount, flame.antialias_radius]) if flame.jitters else camera


def pixels_per_unit(view: View2D | Camera, size: Size) -> float:
    """Pixels per unit of the flame; with a pinhole camera, at its target."""
    if isinstance(view, Camera):
        half = math.tan(math.radians(view.fov_degrees) / 2) * view.fit_scale(size[0] / size[1])
        return size[1] / (2 * half * math.dist(view.position, view.target))
    return size[1] / view.height


def world_to_buckets(view: Camera, size: Size, supersample: int, gutter: int) -> np.ndarray:
    """(13,) float64 of a pinhole camera: a 3 x 4 matrix by rows, then the least depth that is plotted.

    The matrix maps a point to (column x depth, row x depth, depth); column and row are in buckets.
    """
    right, up, forward = view.axes()
    half = math.tan(math.radians(view.fov_degrees) / 2) * view.fit_scale(size[0] / size[1])
    focal = size[1] / 2 / half * supersample
    center = np.array(size) / 2 * supersample + gutter
    rows = np.array([focal * right + center[0] * forward, -focal * up + center[1] * forward, forward])
    matrix = np.concatenate([rows, -rows @ np.array(view.position)[:, None]], 1)
    return np.append(matrix.ravel(), NEAR)


def plane_in_space(plane: np.ndarray) -> np.ndarray:
    """(13,) float64: the transform of space that drops z and then applies `plane` (6,), a transform of the plane."""
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
    view: View2D, flame: Flame, y_axis: str, size: Size, supersample: int, gutter: int, pixel_aspect: float = 1.0
) -> np.ndarray:
    """The transform of a flame with z: (13,) float64 as world_to_buckets(), with depth of field (40,) as in flame.cu.

    Solid flames and fading flames append the row of the camera's z (4,); fading flames also JWildfire's fading (5,):
    strength, z at which it starts, and red, green and blue of the color that points fade to.

    A point is projected to (x / w, y / w) with (x, y, z) in camera coordinates and w = 1 - perspective z. Apophysis
    subtracts cam_zpos from z before the rotation and draws points behind the camera; JWildfire adds cam_pos_x,
    cam_pos_y, cam_pos_z after the rotation and drops points behind the camera.
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
    to_camera = np.concatenate([rotation, offset[:, None]], 1)
    depth = -flame.cam_perspective * to_camera[2]
    depth[3] += 1.0 + (position[2] if jwildfire else 0.0)
    a, b, c, d, e, f = plane_to_buckets(flat_view, y_axis, size, supersample, gutter, pixel_aspect)
    rows = [a * to_camera[0] + b * to_camera[1] + c * depth, d * to_camera[0] + e * to_camera[1] + f * depth, depth]
    camera = np.append(np.concatenate(rows), NEAR if jwildfire else -3e38)  # least depth; Apophysis plots all
    depth = to_camera[2] if flame.solid or flame.cam_zdimish else np.empty(0)
    if flame.cam_zdimish:
        depth = np.concatenate([depth, [flame.cam_zdimish, flame.cam_zdimdist], 255 * np.array(flame.cam_zdimcolor)])
    if flame.cam_dof == 0 or flame.solid:
        return np.append(camera, depth)
    strength = 0.1 * flame.cam_dof
    half = (np.array(size) / 2 + gutter / supersample) * view.height / size[1] * (pixel_aspect, 1.0)
    plane = strength * np.array([a, b, d, e])
    curve = _blur_curve(flame, to_camera, half)
    return np.concatenate([camera, _lens(flame, to_camera), plane, _focus(flame), curve, depth])


def _lens(flame: Flame, to_camera: np.ndarray) -> np.ndarray:
    """(12,) float64: three rows of four that map a point to its vector from the focus.

    `to_camera` (3, 4) maps a point to camera coordinates.
    """
    rows = np.zeros((3, 4))
    if flame.cam_model == "apophysis":
        rows[2] = to_camera[2]
    elif not flame.new_dof:
        rows[2] = -to_camera[2]
        rows[2, 3] += flame.cam_zpos
    else:
        rows[:] = to_camera
        rows[:, 3] -= (flame.cam_xfocus, flame.cam_yfocus, flame.cam_zfocus)
    return rows.ravel()


def _blur_curve(flame: Flame, to_camera: np.ndarray, half: np.ndarray) -> np.ndarray:
    """(8,) float64: a 2 x 4 matrix by rows; the squared length of its product with a point is a factor on the blur.

    Fractorium's factor: 25 / blur_curve times the squared distance from the picture's center, in units of `half` (2,),
    half the picture's width and height. `to_camera` (3, 4) maps a point to camera coordinates.
    """
    if flame.blur_curve == 0:
        return np.array([0, 0, 0, 1, 0, 0, 0, 0], "f8")
    return np.ravel(to_camera[:2] / half[:, None] * 5 / math.sqrt(abs(flame.blur_curve)))


def _focus(flame: Flame) -> tuple[float, float, float]:
    """Exponent of the squared distance from the focus; distance that stays sharp; 1 if only one side blurs, else 0."""
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
