"""The pose of an item as a matrix (4, 4), for the gizmo, and the item in another pose.

A pose has the item's axes, scaled by its sizes, as columns, then its origin. with_pose() applies the parts of a pose
that the item has fields for.
"""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from renderer.raytracing.instances import Scattered, rotation_matrix

DIGITS = 6  # significant digits of the positions and scales that a gizmo sets
MIN_SCALE = 1e-6  # least scale of an axis, so that a pose stays invertible
CHANGED_FIELDS = {  # by operation of the gizmo
    "move": {"position", "center", "corners"}, "rotate": {"rotation_degrees", "corners", "direction"},
    "scale": {"scale", "radius", "corners", "size"},
}  # fmt: skip
Pose = np.ndarray  # (4, 4): columns are the item's axes, then its origin


def operations(item: object) -> list[str]:
    """The operations that a gizmo offers for an item; a light that emits equally in all directions is not rotated.

    There are none for scattered instances, whose rotation and scale are ranges.
    """
    if isinstance(item, Scattered):
        return []
    possible = [name for name, changed in CHANGED_FIELDS.items() if changed & _names(item)]
    return [name for name in possible if name != "rotate" or not _is_round(item)]


def _names(item: Any) -> set[str]:
    return {f.name for f in fields(item)}


def _is_round(item: object) -> bool:
    """True if a point light emits equally in all directions."""
    return getattr(item, "outer_degrees", 0.0) >= 180.0 and not getattr(item, "file", "")


def item_pose(item: Any, anchor: np.ndarray) -> Pose:
    """The pose (4, 4) of an item; an item with only a direction stands at `anchor` (3,)."""
    names, out = _names(item), np.eye(4)
    if "corners" in names:
        return _frame_of_quad(np.array(item.corners))
    if "direction" in names and not _is_round(item):
        out[:3, :3] = _axes_about(np.array(item.direction))
    rotation = getattr(item, "rotation_degrees", 0.0)
    if isinstance(rotation, tuple):
        out[:3, :3] = rotation_matrix(rotation)
    elif "direction" not in names:
        out[:3, :3] = rotation_matrix((0.0, rotation, 0.0))
    out[:3, :3] *= _sizes(item)
    out[:3, 3] = getattr(item, "position", getattr(item, "center", anchor))
    return out


def _sizes(item: Any) -> np.ndarray:
    """The sizes (3,) along the item's axes; ones for an item without a size."""
    names = _names(item)
    if "size" in names:
        return np.array(item.size)
    if "scale" in names:
        return np.multiply(item.scale, getattr(item, "scale_xyz", (1.0, 1.0, 1.0)))
    return np.full(3, item.radius if "radius" in names else 1.0)


def with_pose(item: Any, pose: Pose) -> Any:
    """The item in another pose, with numbers of DIGITS digits."""
    names = _names(item)
    if "corners" in names:
        frame = _frame_of_quad(np.array(item.corners))
        moved = pose @ np.linalg.inv(frame)
        corners = [moved[:3, :3] @ np.array(corner) + moved[:3, 3] for corner in item.corners]
        return replace(item, corners=tuple(map(_point, corners)))
    sizes = np.maximum(np.linalg.norm(pose[:3, :3], axis=0), MIN_SCALE)
    axes = pose[:3, :3] / sizes
    changes: dict[str, object] = {name: _point(pose[:3, 3]) for name in ("position", "center") if name in names}
    if "direction" in names and not _is_round(item):
        # item_pose() gives the y axis the direction.
        changes["direction"] = _point(axes[:, 1] * np.linalg.norm(item.direction))
    elif "rotation_degrees" in names and not _same_axes(item, axes):
        degrees = _angles(axes)
        if isinstance(item.rotation_degrees, tuple):
            changes["rotation_degrees"] = degrees
        else:
            changes["rotation_degrees"] = _angle(np.degrees(np.arctan2(axes[0, 2], axes[2, 2])))
    changes |= _with_sizes(item, sizes)
    return replace(item, **{name: value for name, value in changes.items() if not _is_close(value, item, name)})


def _is_close(value: object, item: object, name: str) -> bool:
    """True if a value equals the item's value up to rounding: the item then keeps its written number."""
    old = np.array(getattr(item, name), float)
    return bool(np.allclose(np.array(value, float), old, rtol=10.0**-DIGITS, atol=10.0**-DIGITS * np.abs(old).max()))


def _with_sizes(item: Any, sizes: np.ndarray) -> dict[str, object]:
    """The fields that give an item the sizes (3,) along its axes: size, scale_xyz, scale or radius."""
    names = _names(item)
    if "size" in names:
        return {"size": _point(sizes)}
    scales = sizes / getattr(item, "scale_xyz", np.ones(3))
    if "scale_xyz" in names and np.ptp(scales) > 1e-4 * scales.max():
        return {"scale_xyz": _point(sizes / item.scale)}
    # A uniform size follows the dragged axis: the gizmo leaves the two others as they were when it was pressed
    dragged = np.argmax(np.abs(np.log(scales / np.median(scales))))
    return {name: _round(scales[dragged]) for name in ("scale", "radius") if name in names}


def _same_axes(item: Any, axes: np.ndarray) -> bool:
    """True if the item has this rotation (3, 3) up to rounding."""
    rotation = item.rotation_degrees
    before = rotation_matrix(rotation if isinstance(rotation, tuple) else (0.0, rotation, 0.0))
    return bool(np.allclose(before, axes, atol=1e-5))


def _frame_of_quad(corners: np.ndarray) -> Pose:
    """The quad's middle with its sides as axes, and its normal."""
    out = np.eye(4)
    right = corners[1] + corners[2] - corners[0] - corners[3]
    normal = np.cross(corners[2] - corners[0], corners[3] - corners[1])
    size = np.linalg.norm(right)
    if size > 0 and np.linalg.norm(normal) > 0:
        x, z = right / size, normal / np.linalg.norm(normal)
        out[:3, :3] = np.stack([x, np.cross(z, x), z], 1)
    out[:3, 3] = corners.mean(0)
    return out


def _axes_about(direction: np.ndarray) -> np.ndarray:
    """A rotation (3, 3) whose y axis has the direction."""
    y = direction / np.linalg.norm(direction)
    other = np.array([0.0, 0.0, 1.0]) if abs(y[2]) < 0.9 else np.array([1.0, 0.0, 0.0])
    x = np.cross(y, other)
    x /= np.linalg.norm(x)
    return np.stack([x, y, np.cross(x, y)], 1)


def _angles(axes: np.ndarray) -> tuple[float, float, float]:
    """The angles in degrees about x, then y, then z of a rotation (3, 3): the inverse of rotation_matrix()."""
    y = np.arcsin(np.clip(-axes[2, 0], -1, 1))
    if abs(axes[2, 0]) < 1 - 1e-9:
        x, z = np.arctan2(axes[2, 1], axes[2, 2]), np.arctan2(axes[1, 0], axes[0, 0])
    else:  # x and z turn about one axis
        x, z = np.arctan2(-axes[1, 2], axes[1, 1]), 0.0
    return _angle(np.degrees(x)), _angle(np.degrees(y)), _angle(np.degrees(z))


def _angle(degrees: float) -> float:
    """The angle with three decimals; + 0.0 makes 0 of -0."""
    return round(float(degrees), 3) + 0.0


def _round(number: float) -> float:
    """The number with DIGITS significant digits."""
    return float(f"{number:.{DIGITS}g}")


def _point(values: np.ndarray) -> tuple[float, float, float]:
    """Three numbers with DIGITS digits of the largest."""
    largest = float(np.abs(values).max()) or 1.0
    places = max(0, DIGITS - 1 - int(np.floor(np.log10(largest))))
    x, y, z = (round(float(v), places) + 0.0 for v in values)
    return x, y, z
