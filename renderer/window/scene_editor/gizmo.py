"""The gizmo that moves, rotates and scales the selected item in the picture, by ImGuizmo of imgui-bundle.

SceneEditor draws it with the item's pose (document/pose.py) and the camera's matrices.
"""

from functools import lru_cache

import numpy as np

from renderer.raytracing.settings import Settings
from renderer.scene.cameras import Camera
from renderer.window.controls.theme import AXIS_COLORS, STYLE, Color, Rect, color_u32
from renderer.window.controls.toolkit import imgui, imguizmo
from renderer.window.document.picking import PICKED
from renderer.window.document.pose import Pose

Operation = imguizmo.OPERATION
OPERATIONS = {"move": Operation.translate, "rotate": Operation.rotate, "scale": Operation.scale}
_drawn_in = [0]  # a list of one number, so that functions can set it: _window() of the gizmo that was drawn last
GRID_CELLS, GRID_COLOR = 12, (1.0, 1.0, 1.0, 0.13)  # cells from the grid's middle to each side; red, green, blue, alpha
Line = tuple[Color, list[float], list[float]]  # color, ends in window coordinates
MAX_UNITS = 1e5  # window units: draw lists are inexact for points that lie farther outside
NEAR = 1e-3  # near plane, in distances of the target; the far plane is at 1 / NEAR. The grid's: in heights of the view


def matrices(settings: Settings, aspect: float) -> tuple[np.ndarray, np.ndarray]:
    """OpenGL's view and projection matrices (4, 4) for a perspective or orthographic camera."""
    return _matrices(settings.view, settings.lens_shift, settings.projection, aspect)


@lru_cache(16)
def _matrices(
    camera: Camera, lens_shift: tuple[float, float], projection: str, aspect: float
) -> tuple[np.ndarray, np.ndarray]:
    """matrices() by the settings that they depend on."""
    right, up, forward = camera.axes()
    view = np.eye(4)
    view[:3, :3] = right, up, -forward
    view[:3, 3] = -view[:3, :3] @ np.array(camera.position)
    distance = float(np.linalg.norm(np.subtract(camera.target, camera.position)))
    half = float(np.tan(np.radians(camera.fov_degrees) / 2)) * camera.fit_scale(aspect)
    near, far = NEAR * distance, distance / NEAR
    # out: the projection matrix. The shift is subtracted; in perspective z is divided by -z, hence the other sign.
    shift, out = 2 * np.array(lens_shift), np.zeros((4, 4))
    if projection == "orthographic":
        half *= distance
        out[0, 0], out[1, 1], out[2, 2] = 1 / (half * aspect), 1 / half, -2 / (far - near)
        out[:2, 3], out[2, 3], out[3, 3] = -shift, -(far + near) / (far - near), 1
    else:
        out[0, 0], out[1, 1], out[2, 2] = 1 / (half * aspect), 1 / half, -(far + near) / (far - near)
        out[:2, 2], out[2, 3], out[3, 2] = shift, -2 * far * near / (far - near), -1
    view.flags.writeable = out.flags.writeable = False  # both arrays are cached for the next frames
    return view, out


def _to_clip(points: np.ndarray, view: np.ndarray, projection: np.ndarray) -> np.ndarray:
    """OpenGL's clip coordinates (n, 4) of points (n, 3)."""
    clip: np.ndarray = np.concatenate([points, np.ones((len(points), 1))], 1) @ (projection @ view).T
    return clip


def project(settings: Settings, points: np.ndarray, rect: Rect) -> np.ndarray:
    """The window coordinates (n, 2) of points (n, 3); NaN behind the camera, and beyond MAX_UNITS."""
    projected = _to_window(_to_clip(points, *matrices(settings, rect[2] / rect[3])), rect)
    return np.where(np.abs(projected).max(1, keepdims=True) < MAX_UNITS, projected, np.nan)


def _to_window(clip: np.ndarray, rect: Rect) -> np.ndarray:
    """The window coordinates (n, 2) of clip coordinates (n, 4); NaN behind the camera."""
    x, y, width, height = rect
    with np.errstate(divide="ignore", invalid="ignore"):
        ndc = clip[:, :2] / clip[:, 3:]
    ndc[clip[:, 3] <= 1e-9] = np.nan
    return np.stack([x + (ndc[:, 0] + 1) / 2 * width, y + (1 - ndc[:, 1]) / 2 * height], 1)


@lru_cache(8)
def grid_lines(camera: Camera, lens_shift: tuple[float, float], projection: str, rect: Rect) -> list[Line]:
    """A grid on the ground, y = 0, below the view's target, with the axes x, y and z as its last three lines.

    Each line is its color and the window coordinates of its ends. In perspective, the piece of a line behind the near
    plane is cut off. A cell's side is the power of ten at or below half of the view's height at its target.
    """
    cell = 10.0 ** np.floor(np.log10(camera.target_plane_height() / 2))
    # `at`: the offsets of the lines from the middle of the grid
    at, reach = cell * np.arange(-GRID_CELLS, GRID_CELLS + 1), cell * GRID_CELLS
    middle = np.round(np.array(camera.target) / cell) * cell * (1, 0, 1)
    zero, far = np.zeros_like(at), np.full_like(at, reach)
    along_x = np.stack([np.stack([-far, zero, at], 1), np.stack([far, zero, at], 1)], 1)
    lines = np.concatenate([along_x, along_x[:, :, ::-1]]) + middle  # the lines along z: with x and z exchanged
    axes = np.stack([np.zeros((3, 3)), reach * np.eye(3)], 1)
    to_clip = _matrices(camera, lens_shift, projection, rect[2] / rect[3])
    clip = _to_clip(np.concatenate([lines, axes]).reshape(-1, 3), *to_clip).reshape(-1, 2, 4)
    # Clip coordinate w: in perspective the distance along the view; 1 in an orthographic picture, which cuts nothing
    depth = clip[:, :, 3]
    near = 0.0 if projection == "orthographic" else NEAR * camera.target_plane_height()
    with np.errstate(divide="ignore", invalid="ignore"):
        # Fraction of the line at which it meets the near plane.
        fraction = (near - depth[:, 0]) / (depth[:, 1] - depth[:, 0])
        cut = clip[:, :1] + fraction[:, None, None] * (clip[:, 1:] - clip[:, :1])
    ends = np.where(depth[..., None] < near, cut, clip)
    points = _to_window(ends.reshape(-1, 4), rect).reshape(-1, 2, 2).tolist()
    colors = [GRID_COLOR] * len(lines) + AXIS_COLORS
    return [(colors[k], points[k][0], points[k][1]) for k in np.flatnonzero((depth >= near).any(1))]


def draw_grid(settings: Settings, rect: Rect, scale: float) -> None:
    """Draws the grid on the ground and the axes: x red, y green, z blue."""
    draw_list = imgui.get_window_draw_list()
    for color, start, end in grid_lines(settings.view, settings.lens_shift, settings.projection, rect):
        draw_list.add_line(start, end, color_u32(color), scale)


def can_draw(settings: Settings) -> bool:
    """True if the gizmo supports the picture's projection."""
    return settings.projection in PICKED


def is_hot(was_hot: bool) -> bool:
    """True if this window's gizmo is under the pointer or dragged; `was_hot` if another window drew its gizmo since."""
    if _drawn_in[0] != _window():
        return was_hot
    imguizmo.push_id(_window())
    found = imguizmo.is_using() or imguizmo.is_over()
    imguizmo.pop_id()
    return found


def _window() -> int:
    """A number of the current window: ImGuizmo has one state for all, in which a drag belongs to a number."""
    return id(imgui.get_current_context()) & 0x7FFFFFFF


def draw(settings: Settings, pose: Pose, operation: str, snaps: bool, rect: Rect, scale: float) -> Pose | None:
    """Draws the gizmo at a pose; returns the pose after a drag, None without one."""
    x, y, width, height = rect
    style = imguizmo.get_style()
    for name, size in STYLE["gizmo"].items():
        setattr(style, name, size * scale)
    imguizmo.set_drawlist(imgui.get_window_draw_list())
    imguizmo.set_rect(x, y, width, height)
    imguizmo.set_orthographic(settings.projection == "orthographic")
    view, projection = (_matrix(m) for m in matrices(settings, width / height))
    matrix = _matrix(pose)
    # ImGuizmo scales along the axes of the item alone
    mode = imguizmo.MODE.local if operation == "scale" else imguizmo.MODE.world
    step = {"move": 0.25, "rotate": 15.0, "scale": 0.25}[operation]
    snap = imguizmo.Matrix3([step] * 3) if snaps else None
    _drawn_in[0] = _window()
    imguizmo.push_id(_window())
    changed = imguizmo.manipulate(view, projection, OPERATIONS[operation], mode, matrix, None, snap)
    imguizmo.pop_id()
    out = np.array(matrix.values, float).reshape(4, 4).T
    return out if changed and np.isfinite(out).all() and abs(np.linalg.det(out[:3, :3])) > 1e-30 else None


def _matrix(matrix: np.ndarray) -> imguizmo.Matrix16:
    """ImGuizmo's matrices are lists of columns."""
    return imguizmo.Matrix16([float(v) for v in matrix.T.ravel()])
