"""Color tables for disparity maps, and the feedback coefficients of their edge-aware smoothing filter.

renderer/pictures/lightfield.py uploads the tables and passes the coefficients to kernels of lightfields/lightfield.cu.
"""

import math

import numpy as np

from renderer.formats.images import srgb_to_linear

COLOR_COUNT = 256  # as in lightfields/lightfield.cu
SMOOTHING_PASSES = 3  # over rows and columns, each half as wide as the one before (Gastal and Oliveira 2011)


def smoothing_decays(radius: float) -> list[float]:
    """Returns the feedback coefficient of each filter pass; all passes together have a standard deviation of `radius`.

    `radius` is in pixels (Gastal and Oliveira 2011, the recursive filter).
    """
    widths = [radius * math.sqrt(3) * 2 ** (SMOOTHING_PASSES - i) for i in range(1, SMOOTHING_PASSES + 1)]
    return [math.exp(-math.sqrt(2) / (width / math.sqrt(4**SMOOTHING_PASSES - 1))) for width in widths]


def gray_table() -> np.ndarray:
    """Returns (COLOR_COUNT, 4) linear grays in even steps of sRGB, black first."""
    table = np.ones((COLOR_COUNT, 4), "f4")
    table[:, :3] = srgb_to_linear(np.arange(COLOR_COUNT, dtype="u1"))[:, None]
    return table


def perceptual_table() -> np.ndarray:
    """Returns (COLOR_COUNT, 4) linear colors in even lightness steps of Oklab (B. Ottosson 2020), violet to yellow.

    Equal differences of disparity look equally different, in color and in gray print.
    """
    t = np.linspace(0, 1, COLOR_COUNT)
    lightness, hue = 0.24 + 0.68 * t, np.radians(305 - 200 * t)
    chroma = 0.115 + 0.045 * np.sin(np.pi * t)
    a, b = chroma * np.cos(hue), chroma * np.sin(hue)
    cones = np.stack(
        [
            lightness + 0.3963377774 * a + 0.2158037573 * b,
            lightness - 0.1055613458 * a - 0.0638541728 * b,
            lightness - 0.0894841775 * a - 1.2914855480 * b,
        ],
        1,
    )
    to_linear = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    table = np.ones((COLOR_COUNT, 4), "f4")
    table[:, :3] = np.clip(cones**3 @ to_linear.T, 0, 1)
    return table
