"""Draws the parts of a block band LU factorization: the band, pivots, the block columns' devices, and the time line.

A part is a panel factorization, a look-ahead or an update of one step. Called by renderer/pictures/band_lu.py.
"""

import numpy as np

from renderer.images.algorithm_view import AlgorithmView, Legend, Mark, StepPicture, StepRow
from renderer.images.inspection import false_color
from renderer.numerics.band_lu.stepped import Bar, Part, SteppedFactors

DECADES = 6.0  # powers of ten of the color scale, below the largest magnitude
ZERO, OUTSIDE = (38, 42, 50), (14, 16, 20)  # stored zeros, and what is not stored
PIVOT = (255, 70, 60)
DEVICE_COLORS = ((90, 160, 255), (255, 170, 60), (110, 210, 120), (220, 120, 230), (250, 230, 90), (120, 220, 220))
PHASE_COLORS = {"panel": (240, 80, 70), "laswp": (170, 170, 170), "trsm": (90, 150, 255), "update": (90, 200, 110)}
PANEL, UPDATED = (255, 255, 255), (255, 150, 40)  # outlines
COLORS_MEAN = (
    "white: panel, orange: updated, red: pivots off the diagonal; above: block column i on device i mod q; "
    "right: time line of the cores, panel red, laswp gray, trsm blue, update green"
)
STRIP = 0.03  # fraction of the picture's height that shows the devices of the block columns
LINE_WIDTH = 0.3  # fraction of the picture's width that shows the time line
MIN_SIDE = 48  # pixels in which the parts of a picture have room


def band_lu_view(
    stepped: SteppedFactors, bars: list[Bar], devices: int, largest: float, size: tuple[int, int]
) -> AlgorithmView:
    """Returns the view with a step for each part; `largest` is max |a_ij|, `size` (width, height) of the pictures."""

    def step(index: int) -> StepPicture:
        return part_picture(stepped, stepped.parts[index], bars, devices, size)

    return AlgorithmView("part", part_rows(stepped, bars, devices, largest), step)


def part_rows(stepped: SteppedFactors, bars: list[Bar], devices: int, largest: float) -> tuple[StepRow, ...]:
    """Returns the numbers of each part: operation, block columns, devices, interchanges and growth so far, time."""
    rows: list[StepRow] = []
    for part in stepped.parts:
        columns = touched(stepped, part)
        owners = ", ".join(str(owner) for owner in sorted({t % devices for t in columns}))
        phases = ("panel",) if part.name == "panel" else ("laswp", "trsm", "update")
        ms = 1e3 * sum(bar.end - bar.begin for bar in bars if bar.step == part.step and bar.phase in phases)
        text = f"{columns[0]} to {columns[-1]}" if len(columns) > 1 else str(columns[0]) if columns else "none"
        rows.append({
            "does": f"{part.name} {part.step}", "block columns": text, "devices": owners,
            "interchanges": int((part.pivots != np.arange(part.factored)).sum()),
            "growth": part.largest / largest if largest else 1.0,
            "ms of the line": ms if part.name != "look-ahead" else "in update",
        })  # fmt: skip
    return tuple(rows)


def touched(stepped: SteppedFactors, part: Part) -> list[int]:
    """Returns the block columns that a part changes; the look-ahead updates the one whose panel is factored next."""
    layout, i = stepped.layout, part.step
    if part.name == "panel":
        return [i]
    if part.name == "look-ahead":
        return [i + 1]
    return list(range(i + 2, layout.last_updated(i) + 1))


def part_picture(
    stepped: SteppedFactors, part: Part, bars: list[Bar], devices: int, size: tuple[int, int]
) -> StepPicture:
    """Draws one part: the matrix with changed blocks outlined, devices above it, the time line at its right.

    A size below MIN_SIDE, as of a minimized window, is a corner of a picture of that size.
    """
    width, height = (max(side, MIN_SIDE) for side in size)
    pixels = np.zeros((height, width, 3), "u1")
    pixels[:] = OUTSIDE
    values = np.full((height, width), np.nan)
    strip, line = max(int(STRIP * height), 2), int(LINE_WIDTH * width) if bars else 0
    side = max(min(height - 2 * strip - 4, width - line - 16), 1)
    top, left = 2 * strip + 2, 4 if bars else max((width - side) // 2, 0)
    n = stepped.layout.n
    index = np.arange(side) * n // side
    shown, legend = matrix_colors(part.matrix)
    _mark_pivots(shown, part, n)
    pixels[top : top + side, left : left + side] = shown[index[:, None], index]
    values[top : top + side, left : left + side] = part.matrix[index[:, None], index]
    _outline(pixels, stepped, part, (left, top, side))
    for t in range(stepped.layout.p):
        # block column t has layout.s columns, from t s on
        x0, x1 = (left + min(c * stepped.layout.s, n) * side // n for c in (t, t + 1))
        pixels[strip // 2 : strip // 2 + strip, x0 + 1 : x1] = DEVICE_COLORS[t % devices % len(DEVICE_COLORS)]
    marks = _draw_line(pixels, bars, part, (left + side + 8, top, width - left - side - 12, side))
    meaning = f"{part.name} of step {part.step}; {COLORS_MEAN}"
    pixels = np.ascontiguousarray(pixels[: size[1], : size[0]])
    return StepPicture(pixels, values[: size[1], : size[0]], meaning, legend, marks)


def matrix_colors(matrix: np.ndarray) -> tuple[np.ndarray, Legend]:
    """Returns a color (n, n, 3) for each element by the logarithm of its magnitude, and the legend of the colors."""
    size = np.abs(matrix)
    high = float(np.nanmax(size)) or 1.0
    with np.errstate(divide="ignore"):
        decades = np.log10(np.where(np.isnan(size), 1.0, size))
    colors = false_color(np.maximum(decades, np.log10(high) - DECADES), np.log10(high) - DECADES, np.log10(high))
    colors = colors[..., :3].copy()
    colors[size == 0], colors[np.isnan(size)] = ZERO, OUTSIDE
    return colors, Legend(high * 10**-DECADES, high, " |a_ij|", True)


def _mark_pivots(shown: np.ndarray, part: Part, n: int) -> None:
    columns = np.flatnonzero(part.pivots != np.arange(part.factored))  # whose pivot row is not the diagonal's
    shown[part.pivots[columns], columns] = PIVOT


def _outline(pixels: np.ndarray, stepped: SteppedFactors, part: Part, square: tuple[int, int, int]) -> None:
    """Outlines the panel and the block columns that the part changes; `square` of the matrix is (left, top, side)."""
    layout, (left, top, side) = stepped.layout, square
    scale = side / layout.n

    def frame(first: int, end: int, rows: tuple[int, int], color: tuple[int, int, int]) -> None:
        x0, x1, y0, y1 = (int(min(v, layout.n) * scale) for v in (first, end, *rows))
        x0, x1, y0, y1 = left + x0, left + max(x1 - 1, x0), top + y0, top + max(y1 - 1, y0)
        pixels[y0 : y1 + 1, [x0, x1]] = color
        pixels[[y0, y1], x0 : x1 + 1] = color

    s, i = layout.s, part.step
    rows = i * s, i * s + layout.panel_rows(i)
    columns = touched(stepped, part)
    if part.name != "panel" and columns:
        frame(columns[0] * s, (columns[-1] + 1) * s, rows, UPDATED)
    frame(i * s, (i + 1) * s, rows, PANEL)


def _draw_line(
    pixels: np.ndarray, bars: list[Bar], part: Part, rectangle: tuple[int, int, int, int]
) -> tuple[Mark, ...]:
    """Draws the time line: a row a core, time from left to right; bars of the part's step are bright.

    Returns the texts of its axes: the cores, and milliseconds at ticks below them.
    """
    left, top, width, height = rectangle
    if not bars or width < 8 or height < 8:
        return ()
    top, height = top + height // 7, height - height // 7  # below the legend
    end, cores = max(bar.end for bar in bars), max(bar.core for bar in bars) + 1
    row = max(min(height // cores, height // 8), 2)
    for bar in sorted(bars, key=lambda bar: bar.step == part.step):
        x0, x1 = (left + int(seconds / end * (width - 1)) for seconds in (bar.begin, bar.end))
        y = top + bar.core * row
        color = np.array(PHASE_COLORS[bar.phase])
        pixels[y : y + row - 2, x0 : x1 + 1] = color if bar.step == part.step else color * 0.4
    foot, ms = top + cores * row, 1e3 * end
    # Ticks are a power of 10 milliseconds apart, or half or twice that: the time line has two to five of them.
    tick = 10.0 ** np.floor(np.log10(ms))
    tick *= 2 if ms / tick > 5 else 1 if ms / tick > 2 else 0.5
    texts = {(left, top + core * row + row / 2): f"core {core}" for core in range(cores)}
    for count in range(int(0.9 * ms / tick) + 1):
        x = left + int(count * tick / ms * (width - 1))
        pixels[foot : foot + 6, x] = PANEL
        texts[x, foot + 14] = f"{count * tick:.3g}" if count else "0 ms"
    pixels[foot, left : left + width] = PANEL
    rows, columns = pixels.shape[:2]
    return tuple(Mark(x / columns, y / rows, (1.0, 1.0, 1.0, 1.0), 0.0, text) for (x, y), text in texts.items())
