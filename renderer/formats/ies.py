"""Photometric files: ANSI/IES LM-63 (.ies), of 1986 to 2019, type C: the candela of a luminaire by direction.

The vertical angle is 0 straight down, 180 up; horizontal angles go around the vertical.
"""

import math
import re
from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.plain import format_value
from renderer.records import dataclass
from renderer.system.files import read_file

MAX_FILE = 8 << 20  # bytes; a luminaire measured every degree has 0.5 MiB
MAX_ANGLES = 1441  # quarters of a degree
MAX_VALUES = 1 << 20  # candela values of a file
MAX_CANDELA = 1e9
MIN_STEP = 1e-3  # degrees from an angle to the next
TYPES = {1: "C", 2: "B", 3: "A"}
WITHOUT_LAMP_FACTOR = ("IESNA:LM-63-2002", "IES:LM-63-2019")  # formats whose second number after the lamp is no factor
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")


@dataclass(frozen=True)
class IesProfile:
    """Candela (m, n) float32 by horizontal angles (m,) from 0 to 360, and vertical angles (n,), degrees, increasing."""

    vertical: np.ndarray
    horizontal: np.ndarray
    candela: np.ndarray

    def lumens(self) -> float:
        """The luminous flux: the integral over the sphere of the candela, interpolated linearly in both angles."""
        theta, phi = np.radians(self.vertical.astype("f8")), np.radians(self.horizontal.astype("f8"))
        values = self.candela.astype("f8")
        slope = np.diff(values, axis=1) / np.diff(theta)
        # the integral of (a + b t) sin t is b sin t - (a + b t) cos t
        rings = slope * np.diff(np.sin(theta)) - np.diff(values * np.cos(theta), axis=1)
        columns = rings.sum(1)
        return float(((columns[1:] + columns[:-1]) / 2 * np.diff(phi)).sum())


def read_ies(path: Path) -> IesProfile:
    """The profile of a file, its symmetries expanded and its factors multiplied in; raises InputError."""
    head, found, tail = read_file(path, MAX_FILE).partition(b"TILT")
    line, _, data = tail.partition(b"\n")
    tilt = line.strip(b" \t\r=").upper()
    if not found or not line.lstrip(b" \t").startswith(b"="):
        raise InputError(f"{path}: not a photometric file: it has no line TILT=")
    numbers = _Numbers(path, data.replace(b",", b" ").rstrip(b"\x1a \t\r\n").split())
    if tilt == b"INCLUDE":
        _skip_tilt(path, numbers)
    elif tilt != b"NONE":
        raise InputError(f"{path}: TILT is {format_value(tilt.decode('latin-1'))}; allowed are NONE and INCLUDE")
    numbers.take(2, "lamps and lumens")
    factor = numbers.take(1, "candela multiplier", 0.0, 1e9)[0]
    columns, rows = (numbers.count(f"number of {name} angles") for name in ("vertical", "horizontal"))
    kind = numbers.take(1, "photometric type")[0]
    if kind != 1:
        named = f"type {TYPES[int(kind)]}" if kind in TYPES else f"the photometric type {kind:g}"
        raise InputError(f"{path}: is of {named}; only type C, 1, can be read")
    numbers.take(4, "units and size")
    ballast, lamp_factor, _ = numbers.take(3, "ballast factor, lamp factor and watts", -1e9, 1e9)
    is_new = head.lstrip().split(b"\n")[0].strip().decode("latin-1") in WITHOUT_LAMP_FACTOR
    factor *= ballast * (1.0 if is_new else lamp_factor)
    if rows * columns > MAX_VALUES:
        raise InputError(f"{path}: {rows} x {columns} angles are more than {MAX_VALUES} values")
    vertical = _angles(path, numbers.take(columns, "vertical angles", 0.0, 180.0), "vertical")
    horizontal = _angles(path, numbers.take(rows, "horizontal angles", 0.0, 360.0), "horizontal")
    candela = np.reshape(numbers.take(rows * columns, "candela", 0.0, MAX_CANDELA), (rows, columns)) * factor
    numbers.end()
    if not 0 <= candela.max() <= MAX_CANDELA or candela.min() < 0:
        raise InputError(f"{path}: the factor of its candela is {factor:g}; with it they must be 0 to {MAX_CANDELA:g}")
    return IesProfile(vertical.astype("f4"), *_around(path, horizontal, candela))


class _Numbers:
    """The numbers of a file behind its line TILT, taken one after another."""

    def __init__(self, path: Path, words: list[bytes]) -> None:
        self._path, self._words, self._next = path, words, 0

    def take(self, count: int, name: str, low: float = -math.inf, high: float = math.inf) -> list[float]:
        """The next `count` numbers, each from `low` to `high`."""
        words = self._words[self._next : self._next + count]
        if len(words) < count:
            raise InputError(f"{self._path}: ends early: {count} values of {name} are wanted, {len(words)} are left")
        self._next += count
        values = []
        for word in words:
            value = float(word) if NUMBER.fullmatch(word) and len(word) <= 40 else math.nan
            if not (math.isfinite(value) and low <= value <= high):
                span = f"; it must be {low:g} to {high:g}" if math.isfinite(low) else "; it must be a number"
                raise InputError(f"{self._path}: {name}: found {format_value(word[:60].decode('latin-1'))}{span}")
            values.append(value)
        return values

    def count(self, name: str) -> int:
        """A number of angles."""
        (value,) = self.take(1, name, 1, MAX_ANGLES)
        if value != int(value):
            raise InputError(f"{self._path}: {name} is {value:g}; it must be whole")
        return int(value)

    def end(self) -> None:
        """Raises InputError if numbers are left."""
        left = len(self._words) - self._next
        if left:
            raise InputError(f"{self._path}: has {left} values more than its angles want")


def _skip_tilt(path: Path, numbers: _Numbers) -> None:
    """Takes the table of TILT=INCLUDE, whose factors must be 1."""
    numbers.take(1, "lamp to luminaire geometry")
    count = numbers.count("number of tilt angles")
    numbers.take(count, "tilt angles")
    if any(value != 1 for value in numbers.take(count, "tilt factors")):
        raise InputError(f"{path}: has tilt factors other than 1, which depend on how the lamp hangs; allowed is 1")


def _angles(path: Path, angles: list[float], name: str) -> np.ndarray:
    """The angles, which must increase."""
    out = np.array(angles)
    small = np.diff(out) < MIN_STEP
    if small.any():
        at = int(np.argmax(small))
        wanted = f"they must increase by at least {MIN_STEP:g}"
        raise InputError(f"{path}: {name} angles go from {out[at]:g} to {out[at + 1]:g}; {wanted}")
    if name == "vertical" and len(out) < 2:
        raise InputError(f"{path}: has 1 vertical angle; at least 2 are wanted")
    return out


def _around(path: Path, horizontal: np.ndarray, candela: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angles and candela once around, 0 to 360 degrees, by the symmetry that the first and last angle name."""
    first, last = float(horizontal[0]), float(horizontal[-1])
    if len(horizontal) == 1:  # the same all around
        horizontal, candela = np.array([0.0, 360.0]), np.repeat(candela, 2, 0)
    elif (first, last) == (0, 90):
        horizontal, candela = _mirrored(horizontal, candela, 180)
        horizontal, candela = _mirrored(horizontal, candela, 360)
    elif (first, last) == (0, 180):
        horizontal, candela = _mirrored(horizontal, candela, 360)
    elif (first, last) == (90, 270):  # symmetric about the plane of 90 and 270 degrees
        front, back = horizontal >= 180, horizontal <= 180
        below, above = (180 - horizontal[back])[::-1], (540 - horizontal[front])[::-1]
        inner = (horizontal > 90) & (horizontal < 270)
        horizontal = np.concatenate([below, horizontal[inner], above])
        candela = np.concatenate([candela[back][::-1], candela[inner], candela[front][::-1]])
    elif (first, last) != (0, 360):
        spans = "0 to 90, 0 to 180, 0 to 360, or 90 to 270"
        raise InputError(f"{path}: horizontal angles are from {first:g} to {last:g}; they must be {spans}")
    return horizontal.astype("f4"), candela.astype("f4")


def _mirrored(horizontal: np.ndarray, candela: np.ndarray, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Angles up to end / 2 continued by their mirror image up to `end`."""
    return np.concatenate([horizontal, end - horizontal[-2::-1]]), np.concatenate([candela, candela[-2::-1]])
