"""Triangles of a flame's xforms over its picture: where they stand, which handle lies under a point, what drags do.

A map's triangle is the image of (0, 0), (1, 0) and (0, 1). Its corner O moves it, X and Y bend it; the middles of OX
and OY take their two corners along, the middle of XY turns and grows the triangle about O; its inside moves it.
"""

import math
from dataclasses import dataclass

import numpy as np

from renderer.flames import edit
from renderer.flames.genome import Flame
from renderer.pictures.flame import plane_to_buckets

CORNERS, EDGES, INSIDE = ("O", "X", "Y"), ("OX", "OY", "XY"), "inside"
REACH = 9.0  # units of the window around a handle, at scale 1


@dataclass(frozen=True)
class WindowTransform:
    """How a panel's picture lies in the window: points of the flame's plane to window units and back."""

    forward: np.ndarray  # (2, 3)

    @staticmethod
    def of(view, y_axis: str, aspect: float, rectangle) -> "WindowTransform":
        left, top, width, height = rectangle
        rows = plane_to_buckets(view, y_axis, (width, height), 1, 0, aspect).reshape(2, 3)
        rows[:, 2] += (left, top)
        return WindowTransform(rows)

    def place(self, point) -> tuple[float, float]:
        """Where a point of the plane stands in the window."""
        x, y = self.forward[:, :2] @ np.asarray(point, "f8") + self.forward[:, 2]
        return float(x), float(y)

    def point(self, place) -> tuple[float, float]:
        """The point of the plane that stands at a place of the window."""
        x, y = np.linalg.solve(self.forward[:, :2], np.asarray(place, "f8") - self.forward[:, 2])
        return float(x), float(y)


@dataclass(frozen=True)
class Drag:
    """A handle that is held: of which map, by what, and how triangle and pointer stood at first, in the plane."""

    number: int
    handle: str
    post: bool
    corners: tuple
    start: tuple[float, float]


def numbers_of(flame: Flame) -> list[int]:
    """All xforms by number, the final one last."""
    return [*range(len(flame.xforms)), *([edit.FINAL_XFORM] if flame.final_xform else [])]


def handles(corners) -> dict[str, tuple[float, float]]:
    """Where the handles of a triangle stand."""
    o, x, y = (np.asarray(corner, "f8") for corner in corners)
    middles = ((o + x) / 2, (o + y) / 2, (x + y) / 2)
    return {name: tuple(map(float, at)) for name, at in zip((*CORNERS, *EDGES), (o, x, y, *middles), strict=True)}


def contains(corners, place) -> bool:
    """Whether a place lies inside a triangle."""
    o, x, y = (np.asarray(corner, "f8") for corner in corners)
    sides = np.array([x - o, y - o]).T
    if abs(np.linalg.det(sides)) < 1e-9:
        return False
    u, v = np.linalg.solve(sides, np.asarray(place, "f8") - o)
    return u >= 0 and v >= 0 and u + v <= 1


def hit_test(flame: Flame, frame: WindowTransform, place, selected: int, post: bool, reach: float) -> Drag | None:
    """What lies under a place: handles of the selected map first, then corners of others, then the insides."""
    start = frame.point(place)
    order = sorted(numbers_of(flame), key=lambda number: number != selected)
    for number in order:
        corners = edit.triangle(edit.xform_at(flame, number), post)
        spots = handles([frame.place(corner) for corner in corners])
        names = (
            "X",
            "Y",
            "O",
            *(EDGES if number == selected else ()),
        )  # X and Y can be taken out of a flat triangle's O
        near = min(names, key=lambda name: math.dist(spots[name], place))
        if math.dist(spots[near], place) <= reach:
            return Drag(number, near, post, corners, start)
    for number in order:
        corners = edit.triangle(edit.xform_at(flame, number), post)
        if number == selected and contains([frame.place(corner) for corner in corners], place):
            return Drag(number, INSIDE, post, corners, start)
    return None


def dragged(flame: Flame, grip: Drag, point) -> Flame:
    """The flame with the held handle taken to a point of the plane."""
    o, x, y = (np.asarray(corner, "f8") for corner in grip.corners)
    shift = np.asarray(point, "f8") - grip.start
    if grip.handle in ("O", INSIDE):
        o, x, y = o + shift, x + shift, y + shift
    elif grip.handle == "X":
        x = x + shift
    elif grip.handle == "Y":
        y = y + shift
    elif grip.handle == "OX":
        o, x = o + shift, x + shift
    elif grip.handle == "OY":
        o, y = o + shift, y + shift
    else:
        x, y = _turned(o, x, y, np.asarray(grip.start) - o, np.asarray(point, "f8") - o)
    corners = tuple(tuple(map(float, corner)) for corner in (o, x, y))
    return edit.with_triangle(flame, grip.number, corners, grip.post)


def _turned(o, x, y, before, after):
    """X and Y turned and grown about O as `before` becomes `after`."""
    square = float(before @ before)
    if square < 1e-24:
        return x, y
    c, s = float(before @ after) / square, float(before[0] * after[1] - before[1] * after[0]) / square
    turn = np.array([[c, -s], [s, c]])
    return o + turn @ (x - o), o + turn @ (y - o)
