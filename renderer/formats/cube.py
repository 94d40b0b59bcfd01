"""Look-up tables of colors in .cube files (Adobe, Cube LUT Specification 1.0, 2013; Resolve's *_INPUT_RANGE too).

A table has a color for each point of a grid over the colors that go in: along each axis alone, or in three dimensions.
"""

import math
from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.plain import format_value, parse_float, parse_whole
from renderer.records import dataclass
from renderer.system.files import read_text

MAX_BYTES = 128 << 20
MAX_SIZES = {1: 65536, 3: 129}  # entries along an axis, of tables of one and of three dimensions


@dataclass(frozen=True)
class LookupTable:
    """A map from displayed colors to colors.

    `colors` (entries, 3) float32 are its outputs at inputs spaced evenly from `low` to `high`, one number a channel.
    With three dimensions there are size^3 entries, red running fastest; with one, each column maps its channel alone.
    """

    dimensions: int
    size: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    colors: np.ndarray


def read_cube(path: str | Path) -> LookupTable:
    """The table of a .cube file. Raises InputError with the line at fault."""
    if Path(path).suffix.lower() != ".cube":  # no error quotes a file of another kind
        raise InputError(f"{path}: is no .cube file")
    lines = read_text(Path(path), MAX_BYTES).splitlines()
    header: dict[str, tuple[float, ...]] = {}
    for start, line in enumerate(lines):
        words = line.split()
        if not words or words[0].startswith("#") or words[0] == "TITLE":
            continue
        if parse_float(words[0]) is not None:
            break
        _read_key(words, header, f"{path}: line {start + 1}")
    else:
        raise InputError(f"{path}: there are no colors; a .cube file has lines of three numbers")
    dimensions = 3 if "LUT_3D_SIZE" in header else 1
    if f"LUT_{dimensions}D_SIZE" not in header:
        raise InputError(f"{path}: the key LUT_3D_SIZE or LUT_1D_SIZE is missing")
    size = int(header[f"LUT_{dimensions}D_SIZE"][0])
    low, high = _domain(header, dimensions, str(path))
    return LookupTable(dimensions, size, low, high, _colors(lines, start, size**dimensions, str(path)))


def _read_key(words: list[str], header: dict[str, tuple[float, ...]], context: str) -> None:
    """Adds one line of the header."""
    key, values = words[0], words[1:]
    if key in ("LUT_1D_SIZE", "LUT_3D_SIZE"):
        largest = MAX_SIZES[int(key[4])]
        size = parse_whole(values[0], 2, largest) if len(values) == 1 else None
        if size is None:
            raise InputError(f"{context}: {key} is {format_value(' '.join(values))}; it must be 2 to {largest}")
        header[key] = (float(size),)
        return
    counts = {"DOMAIN_MIN": 3, "DOMAIN_MAX": 3, "LUT_1D_INPUT_RANGE": 2, "LUT_3D_INPUT_RANGE": 2}
    if key not in counts:
        allowed = ", ".join(("TITLE", "LUT_1D_SIZE", "LUT_3D_SIZE", *counts))
        raise InputError(f"{context}: unknown key {format_value(key)}; allowed are {allowed}")
    numbers = [number for word in values if (number := parse_float(word)) is not None and math.isfinite(number)]
    if not len(numbers) == len(values) == counts[key]:
        raise InputError(f"{context}: {key} is {format_value(' '.join(values))}; it must be {counts[key]} numbers")
    header[key] = tuple(numbers)


def _domain(
    header: dict[str, tuple[float, ...]], dimensions: int, path: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    # Resolve's key has one range for all channels, Adobe's two keys have an end for each.
    low, high = header.get(f"LUT_{dimensions}D_INPUT_RANGE", (0.0, 1.0))
    lows, highs = header.get("DOMAIN_MIN", (low,) * 3), header.get("DOMAIN_MAX", (high,) * 3)
    if not all(1e-6 <= b - a <= 1e6 and abs(a) <= 1e6 for a, b in zip(lows, highs, strict=True)):
        raise InputError(f"{path}: the domain is {lows} to {highs}; each end must be above its start, within 1e6")
    return lows, highs


def _colors(lines: list[str], start: int, count: int, path: str) -> np.ndarray:
    """The (count, 3) colors of the lines from `start` on."""
    rows = [line for line in lines[start:] if line.strip() and not line.lstrip().startswith("#")]
    if len(rows) != count:
        raise InputError(f"{path}: there are {len(rows)} colors; its size asks for {count}")
    try:
        colors = np.loadtxt(rows, "f8", ndmin=2)
    except ValueError as error:
        raise InputError(f"{path}: a color is not three numbers: {error}") from error
    if colors.shape != (count, 3) or not (np.abs(colors) <= 1e6).all():
        raise InputError(f"{path}: a color is not three numbers of at most a million")
    return colors.astype("f4")
