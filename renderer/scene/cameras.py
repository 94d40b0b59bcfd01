"""Immutable views: Camera in space (orbit, pan, dolly, fly), and View2D and DeepView of the plane (pan, zoom).

A view is a setting of a picture (PictureSettings.view), which the window moves by mouse and keys. Every movement
returns a new view. Movements are fractions of the panel's height, x to the right and y downwards, so that a view does
not depend on pixels.
"""

import math
from collections.abc import Iterable
from decimal import Context, Decimal, localcontext
from typing import Literal, Self, SupportsFloat

import numpy as np

from renderer.records import dataclass, replace
from renderer.scene.schema import setting

CLOSEST = 1e-7  # least distance to the target: in scene units, and relative to the target's distance from the origin
FARTHEST = 1e12  # largest distance from the target
DEEPEST, WIDEST = Decimal("1e-10000"), Decimal("1e30")  # heights of a DeepView


class View:
    """The interface, with defaults, of views that the window's mouse and keys move. Every method returns a new view.

    (x, y) is a point of the panel relative to its center.
    """

    can_fly = False
    can_click = False

    def drag(self, dx: float, dy: float) -> Self:
        """The view after a drag with the left button."""
        raise NotImplementedError

    def pan(self, dx: float, dy: float) -> Self:
        """The view after a drag with the middle button."""
        return self.drag(dx, dy)

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> Self:
        """The view after `steps` of the mouse wheel over (x, y)."""
        raise NotImplementedError

    def look_around(self, dx: float, dy: float) -> Self:
        """The view after a drag with the right button."""
        return self.drag(dx, dy)

    def fly(self, right: float, up: float, forward: float) -> Self:
        """The view after a movement by keys, if can_fly is true."""
        return self

    def click(self, x: float, y: float) -> Self:
        """The view after a click at (x, y), if can_click is true."""
        return self

    def rounded(self) -> Self:
        """The view rounded to the digits that change a picture, for scene files."""
        return self


@dataclass(frozen=True)
class Camera(View):
    """A camera at `position` looking at `target`; `fov_degrees` is the vertical angle of view.

    An orthographic camera shows the part of the plane through the target that a perspective camera shows, so that a
    movement towards the target magnifies in both.

    With a `fit_aspect`, a rectangle of that aspect and of the height fov_degrees fits into a picture of any aspect: a
    narrower picture shows more above and below.
    """

    position: tuple[float, float, float] = (0.0, 0.0, 5.0)
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    up: tuple[float, float, float] = (0.0, 1.0, 0.0)
    fov_degrees: float = setting(40.0, 0.1, 179.0, "vertical angle of view")
    fit_aspect: float = setting(
        0.0, 0.0, 1e3, "width over height of what pictures of any aspect show whole; 0: they show fov_degrees"
    )

    can_fly = True

    def __post_init__(self) -> None:
        forward = np.subtract(self.target, self.position)
        sizes = np.linalg.norm(forward) * np.linalg.norm(self.up)
        if not np.linalg.norm(np.cross(forward, self.up)) > 1e-8 * sizes:
            raise ValueError("position, target and up lie on one line, so the camera has no upright direction")

    def axes(self) -> np.ndarray:
        """Returns the camera's orthonormal axes (3, 3) float64: rows right, up, forward."""
        forward = np.subtract(self.target, self.position)
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, self.up)
        right /= np.linalg.norm(right)
        return np.array([right, np.cross(right, forward), forward])

    def fit_scale(self, aspect: float) -> float:
        """Returns the factor by which a picture of `aspect` (width over height) scales tan(fov_degrees / 2)."""
        return max(1.0, self.fit_aspect / aspect)

    def drag(self, dx: float, dy: float) -> Self:
        """Orbits about the target: a drag over the panel's height turns half a circle."""
        offset = self._rotated(np.subtract(self.position, self.target), -math.pi * dx, math.pi * dy)
        return replace(self, position=to_point(np.add(self.target, offset)))

    def pan(self, dx: float, dy: float) -> Self:
        """Moves camera and target in the picture's plane, so that the target follows the pointer."""
        right, up, _ = self.axes()
        return self.shifted(self.target_plane_height() * (dy * up - dx * right))

    def target_plane_height(self) -> float:
        """Returns the height, in scene units, of the visible rectangle in the plane through the target."""
        return 2 * math.tan(math.radians(self.fov_degrees) / 2) * math.dist(self.position, self.target)

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> Self:
        """Dollies towards the target by an eighth of the distance a step, within CLOSEST and FARTHEST."""
        offset = np.subtract(self.position, self.target)
        distance = float(np.linalg.norm(offset))
        closest = max(CLOSEST, CLOSEST * float(np.linalg.norm(self.target)))
        # A distance that is already outside of the limits may stay, but does not grow further out.
        wanted = min(max(distance * 0.875**steps, min(distance, closest)), max(distance, FARTHEST))
        offset = offset * (wanted / distance)
        return replace(self, position=to_point(np.add(self.target, offset)))

    def look_around(self, dx: float, dy: float) -> Self:
        """Turns the camera in place: a drag over the panel's height turns by the vertical angle of view."""
        angle = math.radians(self.fov_degrees)
        offset = self._rotated(np.subtract(self.target, self.position), -angle * dx, -angle * dy)
        return replace(self, target=to_point(np.add(self.position, offset)))

    def _rotated(self, offset: np.ndarray, azimuth: float, elevation: float) -> np.ndarray:
        """Rotates an offset by `azimuth` about the up axis and raises it by `elevation`, to at most 1.55 (radians)."""
        up_axis = np.array(self.up) / np.linalg.norm(self.up)
        distance = np.linalg.norm(offset)
        height = float(np.clip(offset @ up_axis / distance, -1, 1))
        side = offset - (offset @ up_axis) * up_axis
        side = _rotated(side / np.linalg.norm(side), up_axis, azimuth)
        elevation = np.clip(math.asin(height) + elevation, -1.55, 1.55)
        return np.asarray(distance * (math.cos(elevation) * side + math.sin(elevation) * up_axis))

    def fly(self, right: float, up: float, forward: float) -> Self:
        """Moves camera and target along the camera's axes, in units of the distance between them."""
        return self.shifted(np.array([right, up, forward]) @ self.axes() * math.dist(self.position, self.target))

    def rounded(self) -> Self:
        """Rounds position and target to a millionth of their distance."""
        places = 6 - math.floor(math.log10(math.dist(self.position, self.target)))
        # + 0.0 turns -0 into 0
        position, target = ([round(v, places) + 0.0 for v in point] for point in (self.position, self.target))
        return replace(self, position=to_point(position), target=to_point(target))

    def shifted(self, shift: np.ndarray) -> Self:
        """Moves the camera and its target by the same vector (3,)."""
        return replace(self, position=to_point(self.position + shift), target=to_point(self.target + shift))


class PlaneView(View):
    """A rectangle of the plane of some height and rotation; y grows upwards. A subclass moves its center."""

    rotation_degrees: float

    def drag(self, dx: float, dy: float) -> Self:
        """Pans, so that the plane follows the pointer."""
        x, y = self.turned(dx, -dy)
        return self.moved(-x, -y)

    def turned(self, x: float, y: float) -> tuple[float, float]:
        """Rotates a vector by the view's angle; in heights of the picture."""
        c, s = math.cos(math.radians(self.rotation_degrees)), math.sin(math.radians(self.rotation_degrees))
        return c * x - s * y, s * x + c * y

    def moved(self, x: float, y: float) -> Self:
        """The view moved by (x, y) in heights of the picture."""
        raise NotImplementedError


@dataclass(frozen=True)
class View2D(PlaneView):
    """A rectangle of the plane: its center, its height in units of the plane, and its rotation."""

    center: tuple[float, float] = (0.0, 0.0)
    height: float = setting(4.0, 1e-30, 1e30, "units of the plane that the picture is high", logarithmic=True)
    rotation_degrees: float = 0.0

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> Self:
        """Zooms by an eighth a step about the point under the pointer (x, y)."""
        factor = 0.875**steps
        px, py = self.turned(x, -y)
        moved = self.moved(px * (1 - factor), py * (1 - factor))
        return replace(moved, height=min(max(self.height * factor, 1e-30), 1e30))

    def moved(self, x: float, y: float) -> Self:
        """The view moved by (x, y) in heights of the picture."""
        return replace(self, center=(self.center[0] + self.height * x, self.center[1] + self.height * y))


@dataclass(frozen=True)
class DeepView(PlaneView):
    """A rectangle of the plane as View2D, in decimal numbers of any length: of any depth."""

    center: tuple[Decimal, Decimal] = (Decimal(0), Decimal(0))
    height: Decimal = setting(
        Decimal(4), DEEPEST, WIDEST, "units of the plane that the picture is high", logarithmic=True
    )
    rotation_degrees: float = 0.0
    y_axis: Literal["up", "down"] = setting("up", help="down: a mirror image, as other programs show the burning ship")

    def __post_init__(self) -> None:  # numbers of Python count as they are printed
        object.__setattr__(self, "center", tuple(Decimal(str(value)) for value in self.center))
        object.__setattr__(self, "height", Decimal(str(self.height)))

    def turned(self, x: float, y: float) -> tuple[float, float]:
        """Rotates a vector by the view's angle, and mirrors it where y points down; in heights of the picture."""
        return super().turned(x, -y if self.y_axis == "down" else y)

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> Self:
        """Zooms by an eighth a step about the point under the pointer (x, y)."""
        wanted = Context(prec=12).multiply(self.height, Decimal(0.875**steps))
        height = min(max(wanted, DEEPEST), WIDEST)
        factor = float(Context(prec=17).divide(height, self.height))
        px, py = self.turned(x, -y)
        return replace(self.moved(px * (1 - factor), py * (1 - factor)), height=height)

    def moved(self, x: float, y: float) -> Self:
        """The view moved by (x, y) in heights of the picture; the center keeps the digits that change a picture."""
        digits = self.height.adjusted() - 12
        with localcontext(prec=max(40, 60 - digits)):
            moved = [(v + Decimal(d) * self.height) for v, d in zip(self.center, (x, y), strict=True)]
            new_x, new_y = (v.quantize(Decimal((0, (1,), digits))) for v in moved)
        return replace(self, center=(new_x, new_y))


def _rotated(v: np.ndarray, axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotates v (3,) about a unit axis by `angle` radians (Rodrigues)."""
    cos, sin = math.cos(angle), math.sin(angle)
    return np.asarray(v * cos + np.cross(axis, v) * sin + axis * (axis @ v) * (1 - cos))


def to_point(v: Iterable[SupportsFloat]) -> tuple[float, float, float]:
    """Converts three numbers to a tuple of floats."""
    x, y, z = (float(n) for n in v)
    return x, y, z
