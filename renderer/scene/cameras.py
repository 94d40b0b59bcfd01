"""Immutable views: Camera in space (orbit, pan, dolly) and Plane (pan, zoom). Every movement returns a new one.

Movements are told in fractions of the panel's height, x to the right and y downwards, so that a view does not know
pixels.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from renderer.scene.scene import setting


@dataclass(frozen=True)
class Camera:
    """A pinhole at `position` looking at `target`; `fov_degrees` is the vertical angle of view."""

    position: tuple[float, float, float] = (0.0, 0.0, 5.0)
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    up: tuple[float, float, float] = (0.0, 1.0, 0.0)
    fov_degrees: float = setting(40.0, 0.1, 179.0, "vertical angle of view")

    def __post_init__(self):
        if np.allclose(np.cross(np.subtract(self.target, self.position), self.up), 0):
            raise ValueError("position, target and up lie on one line, so the camera has no upright direction")

    def frame(self) -> np.ndarray:
        """Rows right, up, forward (3, 3) float64: the orthonormal axes of the camera."""
        forward = np.subtract(self.target, self.position)
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, self.up)
        right /= np.linalg.norm(right)
        return np.array([right, np.cross(right, forward), forward])

    def drag(self, dx: float, dy: float) -> "Camera":
        """Orbits about the target: a drag over the panel's height turns half a circle."""
        pole = np.array(self.up) / np.linalg.norm(self.up)
        arm = np.subtract(self.position, self.target)
        distance = np.linalg.norm(arm)
        height = float(np.clip(arm @ pole / distance, -1, 1))
        side = arm - (arm @ pole) * pole
        side = _rotated(side / np.linalg.norm(side), pole, -math.pi * dx)
        elevation = np.clip(math.asin(height) + math.pi * dy, -1.55, 1.55)
        arm = distance * (math.cos(elevation) * side + math.sin(elevation) * pole)
        return replace(self, position=_point(np.add(self.target, arm)))

    def pan(self, dx: float, dy: float) -> "Camera":
        """Moves camera and target in the picture's plane, so that the target follows the pointer."""
        right, up, _ = self.frame()
        reach = 2 * math.tan(math.radians(self.fov_degrees) / 2) * math.dist(self.position, self.target)
        shift = reach * (dy * up - dx * right)
        return replace(self, position=_point(self.position + shift), target=_point(self.target + shift))

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> "Camera":
        """Dollies towards the target: a step takes an eighth of the way."""
        arm = np.subtract(self.position, self.target) * 0.875**steps
        return replace(self, position=_point(np.add(self.target, arm)))

    def turn(self, dx: float, dy: float) -> "Camera":
        """Looks elsewhere from the same place: as far as a drag over the panel's height covers of what is seen."""
        pole = np.array(self.up) / np.linalg.norm(self.up)
        arm = np.subtract(self.target, self.position)
        distance = np.linalg.norm(arm)
        side = arm - (arm @ pole) * pole
        angle = math.radians(self.fov_degrees)
        side = _rotated(side / np.linalg.norm(side), pole, -angle * dx)
        elevation = np.clip(math.asin(float(np.clip(arm @ pole / distance, -1, 1))) - angle * dy, -1.55, 1.55)
        arm = distance * (math.cos(elevation) * side + math.sin(elevation) * pole)
        return replace(self, target=_point(np.add(self.position, arm)))

    def fly(self, right: float, up: float, forward: float) -> "Camera":
        """Moves camera and target along the camera's axes, in units of the distance between them."""
        shift = np.array([right, up, forward]) @ self.frame() * math.dist(self.position, self.target)
        return replace(self, position=_point(self.position + shift), target=_point(self.target + shift))


@dataclass(frozen=True)
class Plane:
    """A rectangle of the plane: its centre, its height in units of the plane, and its rotation. y grows upwards."""

    centre: tuple[float, float] = (0.0, 0.0)
    height: float = setting(4.0, 1e-30, 1e30, "units of the plane that the picture is high", logarithmic=True)
    rotation_degrees: float = 0.0

    def drag(self, dx: float, dy: float) -> "Plane":
        """Pans, so that the plane follows the pointer."""
        x, y = self._turned(dx, -dy)
        return replace(self, centre=(self.centre[0] - x, self.centre[1] - y))

    pan = drag

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> "Plane":
        """Zooms by an eighth a step and keeps what lies under the pointer, (x, y) from the panel's centre."""
        factor = 0.875**steps
        px, py = self._turned(x, -y)
        centre = (self.centre[0] + px * (1 - factor), self.centre[1] + py * (1 - factor))
        return replace(self, centre=centre, height=min(max(self.height * factor, 1e-30), 1e30))

    def steps(self, pixels: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """The vectors of the plane that one pixel to the right and one pixel down are, in a picture `pixels` high."""
        return self._turned(1 / pixels, 0.0), self._turned(0.0, -1 / pixels)

    def _turned(self, x: float, y: float) -> tuple[float, float]:
        """A vector of panel heights as one of the plane."""
        c, s = math.cos(math.radians(self.rotation_degrees)), math.sin(math.radians(self.rotation_degrees))
        return (self.height * (c * x - s * y), self.height * (s * x + c * y))


def grid(count: int, size: tuple[int, int], columns: int = 0, gap: int = 0) -> list[tuple[int, int, int, int]]:
    """Rectangles (x, y, width, height) of `count` panels in rows within `size`; 0 columns takes the squarest grid.

    The last row's panels share its whole width. Every rectangle has at least one pixel.
    """
    columns = columns or max(1, math.ceil(math.sqrt(count * max(size[0], 1) / max(size[1], 1) / 1.78)))
    columns = min(columns, count)
    rows = -(-count // columns)
    out = []
    for row in range(rows):
        in_row = min(columns, count - row * columns)
        top, bottom = (_cut(size[1], rows, k, gap) for k in (row, row + 1))
        for column in range(in_row):
            left, right = (_cut(size[0], in_row, k, gap) for k in (column, column + 1))
            out.append((left, top, max(1, right - gap - left), max(1, bottom - gap - top)))
    return out


def _cut(length: int, parts: int, k: int, gap: int) -> int:
    """Where part k of `parts` begins when `length` and one more gap are cut evenly."""
    return (length + gap) * k // parts


def _rotated(v: np.ndarray, axis: np.ndarray, angle: float) -> np.ndarray:
    """Rodrigues' rotation of v about a unit axis."""
    return v * math.cos(angle) + np.cross(axis, v) * math.sin(angle) + axis * (axis @ v) * (1 - math.cos(angle))


def _point(v) -> tuple[float, float, float]:
    return tuple(float(x) for x in v)
