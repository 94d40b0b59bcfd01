"""FLIP, the perceived difference of two displayed pictures that alternate on a screen, in NumPy.

P. Andersson, J. Nilsson, T. Akenine-Moller, M. Oskarsson, K. Astrom and M. Fairchild 2020, for pictures of low dynamic
range. inspection.py calls it for the window; tests compare it with the package flip-evaluator.
"""

import numpy as np

from renderer.formats.images import decode_srgb

PIXELS_PER_DEGREE = 0.7 * 3840 / 0.7 * np.pi / 180  # distance * pixels / width of the screen, in m
COLOR_EXPONENT, FEATURE_EXPONENT = 0.7, 0.5
SMALL_PART, SMALL_RANGE = 0.4, 0.95  # errors below 0.4 of the largest are spread over 0 to 0.95
FEATURE_DEGREES = 0.082  # width of an edge or a point
TO_XYZ = np.array([
    [0.4123865632529917, 0.35759149092062537, 0.18045049120356368],
    [0.21263682167732384, 0.7151829818412507, 0.07218019648142547],
    [0.019330620152483987, 0.11919716364020845, 0.9503725870054354],
])  # fmt: skip
WHITE = TO_XYZ.sum(1)
CONTRAST = ((1.0, 0.0047, 0.0, 1e-5), (1.0, 0.0053, 0.0, 1e-5), (34.1, 0.04, 13.5, 0.025))  # sensitivity by channel


def flip_map(reference: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Returns each pixel's error (height, width) float32, 0 to 1, of two (height, width, 3) uint8 sRGB pictures."""
    channels = [_opponent(_linear(picture)) for picture in (reference, test)]
    first, second = (_perceived(_filtered(picture)) for picture in channels)
    color = _spread(_hyab(first, second) ** COLOR_EXPONENT)
    edges, points = zip(*(_features((picture[..., 0] + 16) / 116) for picture in channels), strict=True)
    feature = np.maximum(np.abs(edges[0] - edges[1]), np.abs(points[0] - points[1]))
    errors: np.ndarray = color ** (1 - (feature / np.sqrt(2)) ** FEATURE_EXPONENT)
    return errors.astype("f4")


def _linear(picture: np.ndarray) -> np.ndarray:
    return decode_srgb(np.asarray(picture[..., :3], "f8") / 255)


def _opponent(linear: np.ndarray) -> np.ndarray:
    """Converts linear RGB to luminance and the opponent colors Cx (red to green) and Cz (blue to yellow)."""
    x, y, z = np.moveaxis(linear @ TO_XYZ.T / WHITE, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1)


def _filtered(opponent: np.ndarray) -> np.ndarray:
    """Applies the eye's contrast sensitivity filter at PIXELS_PER_DEGREE; returns linear RGB.

    A channel's filter is the sum of two Gaussians a sqrt(pi / b) exp(-pi^2 x^2 / b) of CONTRAST, x in degrees; 0.04 is
    the b of the widest.
    """
    radius = int(np.ceil(3 * np.sqrt(0.04 / (2 * np.pi**2)) * PIXELS_PER_DEGREE))
    degrees = np.arange(-radius, radius + 1) / PIXELS_PER_DEGREE
    out = np.empty_like(opponent)
    for channel, (a1, b1, a2, b2) in enumerate(CONTRAST):
        image, total, weight = opponent[..., channel], np.zeros(opponent.shape[:2]), 0.0
        for a, b in ((a1, b1), (a2, b2)):
            if a:
                taps = np.exp(-(np.pi**2) * degrees**2 / b)
                scale = a * np.sqrt(np.pi / b)
                total = total + scale * _convolve(image, taps, taps)
                weight += scale * taps.sum() ** 2
        out[..., channel] = total / weight
    y = (out[..., 0] + 16) / 116
    xyz = np.stack([out[..., 1] / 500 + y, y, y - out[..., 2] / 200], -1) * WHITE
    return np.asarray(xyz @ np.linalg.inv(TO_XYZ).T).clip(0.0, 1.0)


def _perceived(linear: np.ndarray) -> np.ndarray:
    """Converts linear RGB to CIELAB with chroma reduced in dark colors (Hunt effect)."""
    ratio = linear @ TO_XYZ.T / WHITE
    delta = 6 / 29
    f = np.where(ratio > delta**3, np.cbrt(ratio), ratio / (3 * delta**2) + 4 / 29)
    light = 116 * f[..., 1] - 16
    red, blue = 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])
    return np.stack([light, 0.01 * light * red, 0.01 * light * blue], -1)


def _hyab(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The HyAB color distance: the difference in lightness plus the Euclidean distance in chroma."""
    difference = a - b
    return np.asarray(np.abs(difference[..., 0]) + np.hypot(difference[..., 1], difference[..., 2]))


def _spread(error: np.ndarray) -> np.ndarray:
    """Scales color errors to 0..1: the error of green against blue gives 1, and SMALL_PART of it SMALL_RANGE."""
    green, blue = _perceived(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    largest = _hyab(green, blue) ** COLOR_EXPONENT
    small = SMALL_PART * largest
    above = SMALL_RANGE + (error - small) / (largest - small) * (1 - SMALL_RANGE)
    return np.where(error < small, SMALL_RANGE / small * error, above)


def _features(luminance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the strengths of edges and of points at each pixel from a Gaussian's first and second derivative."""
    deviation = 0.5 * FEATURE_DEGREES * PIXELS_PER_DEGREE
    radius = int(np.ceil(3 * deviation))
    x = np.arange(-radius, radius + 1)
    gauss = np.exp(-(x**2) / (2 * deviation**2))
    strengths = []
    for taps in (-x * gauss, (x**2 / deviation**2 - 1) * gauss):
        # positive weights add up to 1, negative ones to -1
        taps = np.where(taps > 0, taps / (taps[taps > 0].sum()), taps / (-taps[taps < 0].sum()))
        across = gauss / gauss.sum()
        strengths.append(np.hypot(_convolve(luminance, taps, across), _convolve(luminance, across, taps)))
    return strengths[0], strengths[1]


def _convolve(image: np.ndarray, along_x: np.ndarray, along_y: np.ndarray) -> np.ndarray:
    """Applies a separable filter of odd widths; pixels beyond the border have the value of the nearest pixel."""
    from scipy.ndimage import correlate1d  # here, because other modules of the window do without SciPy

    return np.asarray(correlate1d(correlate1d(image, along_x, 1, mode="nearest"), along_y, 0, mode="nearest"))
