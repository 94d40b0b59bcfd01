"""Triangles of a flame's xforms over its picture: positions in the window, hit tests, and drags.

An xform's triangle is the image of (0, 0), (1, 0) and (0, 1), as in Apophysis. Dragging corner O moves the triangle, X
and Y change its shape; the midpoints of OX and OY move both of their corners, the midpoint of XY rotates and scales the
triangle about O; the inside moves it.
"""

import math
from collections.abc import Sequence

import numpy as np

from renderer.flames import edit
from renderer.flames.camera import plane_to_buckets
from renderer.flames.genome import Flame
from renderer.records import dataclass
from renderer.scene.cameras import View2D
from renderer.window.controls.theme import Rect

CORNERS, EDGES, INSIDE = ("O", "X", "Y"), ("OX", "OY", "XY"), "inside"
HIT_RADIUS = 9.0  # window units around a handle, at scale 1
Point = tuple[float, float]
Triangle = tuple[Point, Point, Point]


@dataclass(frozen=True)
class WindowTransform:
    """The affine map from the flame's plane to window units, for one panel."""

    forward: np.ndarray  # (2, 3)

    @staticmethod
    def of(view: View2D, y_axis: str, aspect: float, rect: Rect) -> "WindowTransform":
        """The transform of a view with a pixel aspect, displayed in a rectangle."""
        left, top, width, height = rect
        rows = plane_to_buckets(view, y_axis, (width, height), 1, 0, aspect).reshape(2, 3)
        rows[:, 2] += (left, top)
        return WindowTransform(rows)

    def to_window(self, point: Point) -> Point:
        """The window position of a point of the plane."""
        x, y = self.forward[:, :2] @ np.asarray(point, "f8") + self.forward[:, 2]
        return float(x), float(y)

    def to_plane(self, position: Point) -> Point:
        """The point of the plane at a window position."""
        x, y = np.linalg.solve(self.forward[:, :2], np.asarray(position, "f8") - self.forward[:, 2])
        return float(x), float(y)


@dataclass(frozen=True)
class Drag:
    """A handle of an xform, with the triangle and the pointer, in the plane, when it was pressed."""

    index: int  # number of the xform, or edit.FINAL_XFORM
    handle: str  # a name of CORNERS or EDGES, or INSIDE
    post: bool  # the triangle of the post-affine, not of the affine
    corners: Triangle
    start: Point


def xform_indices(flame: Flame) -> list[int]:
    """The indices of all xforms, the final one last."""
    return [*range(len(flame.xforms)), *([edit.FINAL_XFORM] if flame.final_xform else [])]


def handles(corners: Sequence[Point]) -> dict[str, Point]:
    """The positions of a triangle's handles: its corners O, X, Y and the midpoints of its edges."""
    o, x, y = (np.asarray(corner, "f8") for corner in corners)
    points = zip((*CORNERS, *EDGES), (o, x, y, (o + x) / 2, (o + y) / 2, (x + y) / 2), strict=True)
    return {name: (float(point[0]), float(point[1])) for name, point in points}


def contains(corners: Sequence[Point], position: Point) -> bool:
    """True if a position lies inside a triangle."""
    o, x, y = (np.asarray(corner, "f8") for corner in corners)
    sides = np.array([x - o, y - o]).T
    if abs(np.linalg.det(sides)) < 1e-9:
        return False
    u, v = np.linalg.solve(sides, np.asarray(position, "f8") - o)
    return bool(u >= 0 and v >= 0 and u + v <= 1)


def around(flame: Flame, transform: WindowTransform, position: Point, post: bool) -> list[int]:
    """The indices of the xforms whose triangles have a window position inside, the smallest triangle first."""
    sides = {}
    for index in xform_indices(flame):
        corners = [transform.to_window(corner) for corner in edit.triangle(edit.xform_at(flame, index), post)]
        if contains(corners, position):
            sides[index] = np.diff(np.array(corners), axis=0)
    return sorted(sides, key=lambda index: abs(float(np.linalg.det(sides[index]))))


def hit_test(
    flame: Flame, transform: WindowTransform, position: Point, selected: int, post: bool, radius: float
) -> Drag | None:
    """The handle at a window position, in order: the selected xform's handles, other xforms' corners, its inside."""
    start = transform.to_plane(position)
    for index in sorted(xform_indices(flame), key=lambda index: index != selected):
        corners = edit.triangle(edit.xform_at(flame, index), post)
        points = handles([transform.to_window(corner) for corner in corners])
        names = ("X", "Y", "O", *(EDGES if index == selected else ()))  # X and Y come first: O may lie below them
        nearest = min(names, key=lambda name: math.dist(points[name], position))
        if math.dist(points[nearest], position) <= radius:
            return Drag(index, nearest, post, corners, start)
    if selected in around(flame, transform, position, post):
        return Drag(selected, INSIDE, post, edit.triangle(edit.xform_at(flame, selected), post), start)
    return None


def apply_drag(flame: Flame, drag: Drag, point: Point) -> Flame:
    """The flame with the pressed handle moved to a point of the plane."""
    o, x, y = (complex(*corner) for corner in drag.corners)
    start, end = complex(*drag.start), complex(*point)
    if drag.handle == "XY":  # the similarity about O that maps the press to the pointer
        factor = (end - o) / (start - o) if abs(start - o) > 1e-12 else 1.0
        x, y = o + factor * (x - o), o + factor * (y - o)
    else:
        moved = CORNERS if drag.handle in ("O", INSIDE) else drag.handle
        o, x, y = (p + end - start if name in moved else p for name, p in zip(CORNERS, (o, x, y), strict=True))
    corners = ((o.real, o.imag), (x.real, x.imag), (y.real, y.imag))
    return edit.with_triangle(flame, drag.index, corners, drag.post)
