"""Light fields of planes, by formula: camera (u, v) sees at x + disparity * u, y + disparity * v."""

import numpy as np


def texture(rng):
    """A color function of the plane, smooth enough for bilinear interpolation of its samples (far over 40 dB)."""
    angles = rng.uniform(0, 7, 12)
    frequencies = rng.uniform(0.25, 0.45, 12)[:, None] * np.column_stack(
        [np.cos(angles), np.sin(angles)]
    )  # radians per pixel
    waves = [(frequency, rng.uniform(0, 7), rng.uniform(0.3, 1, 3)) for frequency in frequencies]

    def color(x, y):
        return 127.5 + 18 * sum(np.cos(f[0] * x + f[1] * y + p)[..., None] * c for f, p, c in waves)

    return color


def cameras(rows, columns, size, flip=1):
    """Row, column, u, v, and the pixel coordinates x, y (size, size) of every camera."""
    y, x = np.mgrid[0:size, 0:size].astype("f8")
    for r in range(rows):
        for c in range(columns):
            yield r, c, c - (columns - 1) / 2, flip * (r - (rows - 1) / 2), x, y


def smooth_views(rng, rows, columns, size, disparity, flip=1):
    """(rows, columns, size, size, 3) uint8 views of one plane, and its color function of the middle view's pixels.

    `flip` -1 renders cameras whose row number grows upwards.
    """
    plane, views = texture(rng), np.empty((rows, columns, size, size, 3), "u1")
    for r, c, u, v, x, y in cameras(rows, columns, size, flip):
        views[r, c] = np.clip(np.round(plane(x + disparity * u, y + disparity * v)), 0, 255)
    return views, plane


def hides(x, bars, period):
    """Whether the front plane, upright bars over the fraction `bars` of each period, is solid at x."""
    return x % period < bars * period


def layered_views(rng, rows, columns, size, back, front, bars, period=24):
    """Views of a plane behind bars, and the middle view (size, size, 3) of the plane alone; both planes textured."""
    near, far, views = texture(rng), texture(rng), np.empty((rows, columns, size, size, 3), "u1")
    for r, c, u, v, x, y in cameras(rows, columns, size):
        solid = hides(x + front * u, bars, period)[..., None]
        colors = np.where(solid, 255 - near(x + front * u, y + front * v), far(x + back * u, y + back * v))
        views[r, c] = np.clip(np.round(colors), 0, 255)
    y, x = np.mgrid[0:size, 0:size].astype("f8")
    return views, np.clip(np.round(far(x, y)), 0, 255).astype("u1")


def disparity_of(size, back, front, bars, period):
    """(size, size) disparities that the middle camera of layered_views sees."""
    return np.broadcast_to(np.where(hides(np.arange(size), bars, period), front, back), (size, size))
