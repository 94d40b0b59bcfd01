"""Immutable views: Camera in space (orbit, pan, dolly, fly) and View2D of the plane (pan, zoom).

Every movement returns a new view. Movements are fractions of the panel's height, x to the right and y downwards, so
that a view does not depend on pixels.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from renderer.scene.schema import setting

CLOSEST, FARTHEST = 1e-7, 1e12  # distances from the target; the first of the distance from the origin too


class View:
    """What mouse and keys of the window move: the contract, with defaults. Every method returns a new view.

    (x, y) is a point of the panel from its center.
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
        """The view after so many steps of the mouse wheel over (x, y)."""
        raise NotImplementedError

    def look_around(self, dx: float, dy: float) -> Self:
        """The view after a drag with the right button."""
        return self.drag(dx, dy)

    def fly(self, right: float, up: float, forward: float) -> Self:
        """The view after a flight, where can_fly is true."""
        return self

    def click(self, x: float, y: float) -> Self:
        """The view after a click at (x, y), where can_click is true."""
        return self

    def rounded(self) -> Self:
        """The view with the digits that a picture shows, as scene files keep it."""
        return self


@dataclass(frozen=True)
class Camera(View):
    """A camera at `position` looking at `target`; `fov_degrees` is the vertical angle of view.

    An orthographic camera shows as much as a perspective one shows of the plane through the target, so that a movement
    towards the target magnifies in both.

    With a `fit_aspect`, the rectangle of that aspect which fov_degrees is high fits into a picture of any aspect: one
    that is narrower sees more above and below.
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
        """Rows right, up, forward (3, 3) float64: the orthonormal axes of the camera."""
        forward = np.subtract(self.target, self.position)
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, self.up)
        right /= np.linalg.norm(right)
        return np.array([right, np.cross(right, forward), forward])

    def fit_scale(self, aspect: float) -> float:
        """The factor for the tangent of half of fov_degrees in a picture of `aspect`, its width over its height."""
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
        """The height of what is seen of the plane through the target that faces the camera.

        An orthographic camera sees that height of every plane.
        """
        return 2 * math.tan(math.radians(self.fov_degrees) / 2) * math.dist(self.position, self.target)

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> Self:
        """Dollies towards the target: a step takes an eighth of the way.

        It ends where the position, in floating point, would become the target, and at a great distance.
        """
        offset = np.subtract(self.position, self.target)
        distance = float(np.linalg.norm(offset))
        closest = max(CLOSEST, CLOSEST * float(np.linalg.norm(self.target)))
        wanted = min(max(distance * 0.875**steps, min(distance, closest)), max(distance, FARTHEST))
        offset = offset * (wanted / distance)
        return replace(self, position=to_point(np.add(self.target, offset)))

    def look_around(self, dx: float, dy: float) -> Self:
        """Looks elsewhere from the same place: as far as a drag over the panel's height covers of what is seen."""
        angle = math.radians(self.fov_degrees)
        offset = self._rotated(np.subtract(self.target, self.position), -angle * dx, -angle * dy)
        return replace(self, target=to_point(np.add(self.position, offset)))

    def _rotated(self, offset: np.ndarray, azimuth: float, elevation: float) -> np.ndarray:
        """The offset rotated about the up axis and raised, in radians, but never quite to the vertical."""
        up_axis = np.array(self.up) / np.linalg.norm(self.up)
        distance = np.linalg.norm(offset)
        height = float(np.clip(offset @ up_axis / distance, -1, 1))
        side = offset - (offset @ up_axis) * up_axis
        side = _rotated(side / np.linalg.norm(side), up_axis, azimuth)
        elevation = np.clip(math.asin(height) + elevation, -1.55, 1.55)
        return distance * (math.cos(elevation) * side + math.sin(elevation) * up_axis)

    def fly(self, right: float, up: float, forward: float) -> Self:
        """Moves camera and target along the camera's axes, in units of the distance between them."""
        return self.shifted(np.array([right, up, forward]) @ self.axes() * math.dist(self.position, self.target))

    def rounded(self) -> Self:
        """The camera with positions to a millionth of the distance of its target."""
        places = 6 - math.floor(math.log10(math.dist(self.position, self.target)))
        position, target = ([round(v, places) + 0.0 for v in point] for point in (self.position, self.target))
        return replace(self, position=to_point(position), target=to_point(target))

    def shifted(self, shift: np.ndarray) -> Self:
        """The camera and its target moved by the same vector."""
        return replace(self, position=to_point(self.position + shift), target=to_point(self.target + shift))


@dataclass(frozen=True)
class View2D(View):
    """A rectangle of the plane: its center, its height in units of the plane, and its rotation. y grows upwards."""

    center: tuple[float, float] = (0.0, 0.0)
    height: float = setting(4.0, 1e-30, 1e30, "units of the plane that the picture is high", logarithmic=True)
    rotation_degrees: float = 0.0

    def drag(self, dx: float, dy: float) -> Self:
        """Pans, so that the plane follows the pointer."""
        x, y = self._turned(dx, -dy)
        return replace(self, center=(self.center[0] - x, self.center[1] - y))

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> Self:
        """Zooms by an eighth a step and keeps what lies under the pointer, (x, y) from the panel's center."""
        factor = 0.875**steps
        px, py = self._turned(x, -y)
        center = (self.center[0] + px * (1 - factor), self.center[1] + py * (1 - factor))
        return replace(self, center=center, height=min(max(self.height * factor, 1e-30), 1e30))

    def pixel_vectors(self, pixels: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """The vectors of the plane that one pixel to the right and one pixel down are, in a picture `pixels` high."""
        return self._turned(1 / pixels, 0.0), self._turned(0.0, -1 / pixels)

    def _turned(self, x: float, y: float) -> tuple[float, float]:
        """A vector of panel heights as one of the plane."""
        c, s = math.cos(math.radians(self.rotation_degrees)), math.sin(math.radians(self.rotation_degrees))
        return (self.height * (c * x - s * y), self.height * (s * x + c * y))


def _rotated(v: np.ndarray, axis: np.ndarray, angle: float) -> np.ndarray:
    """Rodrigues' rotation of v about a unit axis."""
    return v * math.cos(angle) + np.cross(axis, v) * math.sin(angle) + axis * (axis @ v) * (1 - math.cos(angle))


def to_point(v: Any) -> tuple[float, float, float]:
    """Three numbers as a tuple of floats."""
    x, y, z = (float(n) for n in v)
    return x, y, z
