"""The Laplacian filter in NumPy, for the tests of kernels and pictures."""

import numpy as np

PADS = {"clamp": "edge", "reflect": "reflect", "wrap": "wrap", "zero": "constant"}


def laplacian_reference(image: np.ndarray, neighbors: int, border: str) -> np.ndarray:
    """The sum of the neighbors minus their number times the pixel, in float64 or int."""
    wide = image.astype("f8" if image.dtype == np.float32 else "i4")
    padded = np.pad(wide, [(1, 1), (1, 1)] + [(0, 0)] * (image.ndim - 2), PADS[border])
    height, width = image.shape[:2]
    out = -neighbors * wide
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if (dy or dx) and (neighbors == 8 or dy == 0 or dx == 0):
                out = out + padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]
    return out if image.dtype == np.float32 else np.clip(out, 0, 255).astype("u1")
