"""Triangles of a flame's xforms over its picture: positions in the window, hit tests, and drags.

An xform's triangle is the image of (0, 0), (1, 0) and (0, 1), as in Apophysis. Dragging corner O moves the triangle, X
and Y change its shape; the midpoints of OX and OY move both of their corners, the midpoint of XY rotates and scales the
triangle about O; the inside moves it. An xform in space has the axes OX, OY and OZ instead, seen as the flame's camera
sees them; their ends and O are its handles, which move in the plane that faces the camera.
"""

import math
from collections.abc import Sequence

import numpy as np

from renderer.flames import edit
from renderer.flames.camera import bucket_transform, plane_in_space
from renderer.flames.edit import Point, Triangle
from renderer.flames.genome import Flame
from renderer.records import dataclass
from renderer.scene.cameras import Camera, View2D
from renderer.window.controls.theme import Rect

CORNERS, EDGES, INSIDE = ("O", "X", "Y", "Z"), ("OX", "OY", "XY"), "inside"
HIT_RADIUS = 9.0  # window units around a handle, at scale 1
NOWHERE = (math.inf, math.inf)  # the window position of points behind the camera
WindowPoint = tuple[float, float]


@dataclass(frozen=True)
class WindowTransform:
    """The projection of a flame's space to window units, for one panel; points of the plane have z = 0."""

    forward: np.ndarray  # (3, 4): maps a point to (x w, y w, w) for the window position (x, y)

    @staticmethod
    def of(view: View2D | Camera, flame: Flame, y_axis: str, aspect: float, rect: Rect) -> "WindowTransform":
        """The transform of a view with a pixel aspect, displayed in a rectangle."""
        left, top, width, height = rect
        # One bucket a window unit, no gutter; the first 12 numbers are the matrix (3, 4) of a camera in space.
        camera = bucket_transform(view, flame, y_axis, (width, height), 1, 0, aspect)
        in_space = flame.has_z or isinstance(view, Camera)
        rows = (camera if in_space else plane_in_space(camera[:6]))[:12].reshape(3, 4)
        return WindowTransform(rows + np.outer((left, top, 0), rows[2]))

    def to_window(self, point: Point) -> WindowPoint:
        """The window position of a point; NOWHERE behind the camera."""
        x, y, w = self._projected(point)
        return (float(x / w), float(y / w)) if w > 1e-9 else NOWHERE

    def to_plane(self, position: WindowPoint, near: Point = (0.0, 0.0)) -> Point:
        """The point at a window position, in the plane z = 0, or through `near` of space, facing the camera."""
        rows, count = self.forward[:, :3], len(near)
        facing = np.cross(rows[0], rows[1]) if not rows[2].any() else rows[2]
        normal = facing if count == 3 else np.array([0.0, 0.0, 1.0])
        start = np.append(near, [0.0] * (3 - count))
        lines = self.forward[:2] - np.outer(position, self.forward[2])
        # As long as the other rows, so that the rank tolerance of lstsq() treats the three rows alike
        normal = normal / np.linalg.norm(normal) * np.linalg.norm(lines[:, :3])
        goal = [*(-lines @ np.append(start, 1.0)), 0.0]
        moved = np.linalg.lstsq(np.stack([*lines[:, :3], normal]), goal, 1e-12)[0]  # none along a plane seen edge-on
        return tuple((start + moved)[:count].tolist())

    def to_axis(self, position: WindowPoint, origin: Point, end: Point) -> Point:
        """The point of the line from `origin` through `end` that is seen nearest to a window position."""
        a, b = self._projected(origin), self._projected(end)
        b = b - a  # (x w, y w, w) of the point at t along the line are a + t b
        seen = b[:2] * a[2] - a[:2] * b[2]  # direction of the line in the window
        target = float(seen @ position)
        # t is 0 for a line that the camera sees as a point.
        t = (target * a[2] - seen @ a[:2]) / (seen @ b[:2] - target * b[2] or math.inf)
        return tuple((np.array(origin) + t * np.subtract(end, origin)).tolist())

    def _projected(self, point: Point) -> np.ndarray:
        return np.asarray(self.forward[:, : len(point)] @ point + self.forward[:, 3])


@dataclass(frozen=True)
class Drag:
    """A handle of an xform, with the triangle and the pointer's point when it was pressed."""

    index: int  # number of the xform, or edit.FINAL_XFORM
    handle: str  # a name of CORNERS or EDGES, or INSIDE
    post: bool  # the triangle of the post-affine, not of the affine
    corners: Triangle
    start: Point

    def end(self, transform: WindowTransform, position: WindowPoint, along_axis: bool) -> Point:
        """The point to which the pointer drags the handle; `along_axis`: corners but O stay on their axes."""
        number = CORNERS.index(self.handle) if self.handle in CORNERS else 0
        if along_axis and number:
            axis = self.corners[0], self.corners[number]
            moved = [transform.to_axis(each, *axis) for each in (transform.to_window(self.start), position)]
            return tuple((np.diff(moved, axis=0)[0] + self.start).tolist())
        return transform.to_plane(position, self.start)


def xform_indices(flame: Flame) -> list[int]:
    """The indices of all xforms, the final one last."""
    return [*range(len(flame.xforms)), *([edit.FINAL_XFORM] if flame.final_xform else [])]


def handles(corners: Sequence[WindowPoint]) -> dict[str, WindowPoint]:
    """The positions of handles: corners O, X, Y and the midpoints of their edges; of an xform in space O, X, Y, Z."""
    points = dict(zip(CORNERS, corners, strict=False))
    if len(corners) == 3:
        points |= {edge: tuple(np.mean([points[name] for name in edge], 0).tolist()) for edge in EDGES}
    return points


def contains(corners: Sequence[WindowPoint], position: WindowPoint) -> bool:
    """True if a position lies inside a triangle."""
    if not np.isfinite(corners).all():
        return False
    o, x, y = (np.asarray(corner, "f8") for corner in corners[:3])
    sides = np.array([x - o, y - o]).T
    if abs(np.linalg.det(sides)) < 1e-9:
        return False
    u, v = np.linalg.solve(sides, np.asarray(position, "f8") - o)
    return bool(u >= 0 and v >= 0 and u + v <= 1)


def around(flame: Flame, transform: WindowTransform, position: WindowPoint, post: bool) -> list[int]:
    """The indices of the xforms whose triangles have a window position inside, the smallest triangle first."""
    sides = {}
    for index in xform_indices(flame):
        corners = [transform.to_window(corner) for corner in edit.triangle(edit.xform_at(flame, index), post)]
        if contains(corners, position):
            sides[index] = np.diff(corners[:3], axis=0)
    return sorted(sides, key=lambda index: abs(float(np.linalg.det(sides[index]))))


def hit_test(
    flame: Flame, transform: WindowTransform, position: WindowPoint, selected: int, post: bool, radius: float
) -> Drag | None:
    """The handle at a window position, in order: the selected xform's handles, other xforms' corners, its inside."""
    for index in sorted(xform_indices(flame), key=lambda index: index != selected):
        corners = edit.triangle(edit.xform_at(flame, index), post)
        points = handles([transform.to_window(corner) for corner in corners])
        names = points if index == selected else CORNERS[: len(corners)]
        # O comes after the other corners, since it may lie below them
        nearest = min(names, key=lambda name: (math.dist(points[name], position), name == "O"))
        if math.dist(points[nearest], position) <= radius:
            near = corners[CORNERS.index(nearest)] if nearest in CORNERS else corners[0]
            return Drag(index, nearest, post, corners, transform.to_plane(position, near))
    corners = edit.triangle(edit.xform_at(flame, selected), post)
    if len(corners) == 3 and selected in around(flame, transform, position, post):
        return Drag(selected, INSIDE, post, corners, transform.to_plane(position))
    return None


def apply_drag(flame: Flame, drag: Drag, point: Point) -> Flame:
    """The flame with the pressed handle moved to a point."""
    corners = np.array(drag.corners)
    if drag.handle == "XY":  # the similarity about O that maps the press to the pointer
        o, *ends, start, end = (complex(*each) for each in (*drag.corners, drag.start, point))
        factor = (end - o) / (start - o) if abs(start - o) > 1e-12 else 1.0
        corners[1:] = [((factor * (each - o) + o).real, (factor * (each - o) + o).imag) for each in ends]
    else:
        moved = CORNERS if drag.handle in ("O", INSIDE) else drag.handle  # its letters: OX moves O and X
        corners[[name in moved for name in CORNERS[: len(corners)]]] += np.subtract(point, drag.start)
    return edit.with_triangle(flame, drag.index, corners.tolist(), drag.post)
