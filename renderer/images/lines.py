"""Thin lines in pictures of uint8 pixels, one pixel wide."""

import numpy as np

MAX_POINTS = 1 << 23  # of all lines together


def draw_lines(pixels: np.ndarray, lines: np.ndarray, colors: np.ndarray, opacity: float = 1.0) -> None:
    """Draws lines (n, 2, 2), ends (x, y) in pixels from the upper left corner, into pixels (height, width, 3 or 4).

    `colors` (n, 3) uint8. A line has the pixels that points at steps of at most a pixel along it lie in; what lies
    outside of the picture is left out. Where lines cross, one of them is seen.
    """
    height, width = pixels.shape[:2]
    x, y, which = line_pixels(lines, width, height)
    pixels[y, x, :3] = (pixels[y, x, :3] * (1 - opacity) + colors[which].astype("f4") * opacity + 0.5).astype("u1")


def line_pixels(lines: np.ndarray, width: int, height: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns and rows of the pixels of lines (n, 2, 2), and which line each belongs to."""
    lines, kept = clip_lines(lines, width, height)
    lengths = np.abs(lines[:, 1] - lines[:, 0]).max(1, initial=0.0)
    counts = np.ceil(1.01 * lengths).astype("i8") + 1  # steps below a pixel, so that roundings leave no gap
    last = int(np.searchsorted(np.cumsum(counts), MAX_POINTS, side="right"))
    lines, counts = lines[:last], counts[:last]
    which = np.repeat(np.arange(len(counts)), counts)
    step = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = (step / np.maximum(counts - 1, 1)[which])[:, None]
    points = np.floor(lines[which, 0] * (1 - at) + lines[which, 1] * at).astype("i8")
    x, y = np.minimum(points, (width - 1, height - 1)).T
    return x, y, np.flatnonzero(kept)[which]


def clip_lines(lines: np.ndarray, width: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    """The parts of lines (n, 2, 2) inside of 0 to width and 0 to height, and which lines have one, (n,) bool.

    By the parameters at which a line crosses the four edges (Y. Liang and B. Barsky 1984).
    """
    lines = np.asarray(lines, "f8").reshape(-1, 2, 2)
    start, way = lines[:, 0], lines[:, 1] - lines[:, 0]
    limits = np.array([[0.0, 0.0], [width, height]])
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = (limits[None] - start[:, None]) / way[:, None]  # (n, edge of an axis, axis)
    inside = (start >= 0) & (start <= limits[1])
    flat = way == 0
    enters = np.where(flat, np.where(inside, -np.inf, np.inf), crossing.min(1)).max(1, initial=0.0)
    leaves = np.where(flat, np.where(inside, np.inf, -np.inf), crossing.max(1)).min(1, initial=1.0)
    kept = (enters <= leaves) & np.isfinite(lines).all((1, 2))
    ends = np.stack([enters, leaves], 1)[kept][..., None]
    return start[kept][:, None] + way[kept][:, None] * ends, kept
