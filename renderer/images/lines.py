"""Draws lines one pixel wide into pictures of uint8 pixels, for the views of BVH boxes, light picks and C$ graphs."""

import numpy as np

MAX_POINTS = 1 << 23  # pixels of all lines together


def draw_lines(pixels: np.ndarray, lines: np.ndarray, colors: np.ndarray, opacity: float = 1.0) -> None:
    """Draws lines (n, 2, 2), ends (x, y) in pixels from the upper left corner, into pixels (height, width, 3 or 4).

    `colors` is (n, 3) uint8. Lines are clipped to the picture. At a crossing one of the lines is visible.
    """
    height, width = pixels.shape[:2]
    x, y, which = line_pixels(lines, width, height)
    pixels[y, x, :3] = (pixels[y, x, :3] * (1 - opacity) + colors[which].astype("f4") * opacity + 0.5).astype("u1")


def line_pixels(lines: np.ndarray, width: int, height: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the columns and rows of the pixels of lines (n, 2, 2), and the index of each pixel's line.

    A line is sampled at points less than a pixel apart. Lines beyond MAX_POINTS points are left out.
    """
    lines, kept = clip_lines(lines, width, height)
    lengths = np.abs(lines[:, 1] - lines[:, 0]).max(1, initial=0.0)
    counts = np.ceil(1.01 * lengths).astype("i8") + 1  # steps below a pixel, so that rounding leaves no gap
    last = int(np.searchsorted(np.cumsum(counts), MAX_POINTS, side="right"))
    lines, counts = lines[:last], counts[:last]
    line = np.repeat(np.arange(len(counts)), counts)  # the index of each point's line
    step = np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts)
    t = (step / np.maximum(counts - 1, 1)[line])[:, None]
    points = np.floor(lines[line, 0] * (1 - t) + lines[line, 1] * t).astype("i8")
    x, y = np.minimum(points, (width - 1, height - 1)).T
    return x, y, np.flatnonzero(kept)[line]


def clip_lines(lines: np.ndarray, width: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    """Clips lines (n, 2, 2) to 0..width and 0..height; also returns (n,) bool, True for lines that are partly inside.

    Intersects the parameter intervals inside the four edges (Y. Liang and B. Barsky 1984).
    """
    lines = np.asarray(lines, "f8").reshape(-1, 2, 2)
    start, direction = lines[:, 0], lines[:, 1] - lines[:, 0]
    limits = np.array([[0.0, 0.0], [width, height]])
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = (limits[None] - start[:, None]) / direction[:, None]  # (n, edge of an axis, axis)
    inside = (start >= 0) & (start <= limits[1])
    flat = direction == 0
    enters = np.where(flat, np.where(inside, -np.inf, np.inf), crossing.min(1)).max(1, initial=0.0)
    leaves = np.where(flat, np.where(inside, np.inf, -np.inf), crossing.max(1)).min(1, initial=1.0)
    kept = (enters <= leaves) & np.isfinite(lines).all((1, 2))
    ends = np.stack([enters, leaves], 1)[kept][..., None]
    return start[kept][:, None] + direction[kept][:, None] * ends, kept
