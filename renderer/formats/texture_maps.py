"""Converts pictures into material maps: a scalar replicated to four channels, a height map turned into a normal map."""

import numpy as np

BLOCK_ROWS = 256  # rows that are converted at a time, which bounds the memory of intermediate arrays
CHANNELS = {"r": 0, "g": 1, "b": 2, "m": 3, "red": 0, "green": 1, "blue": 2, "alpha": 3}


def replicated(values: np.ndarray) -> np.ndarray:
    """Copies scalar values (height, width) into all four channels: (height, width, 4)."""
    return np.repeat(values[..., None], 4, 2)


def is_gray(pixels: np.ndarray) -> bool:
    """True if pixels (height, width, 4) uint8 are gray within the noise of lossy compression (8 of 255)."""
    r, g, b = (pixels[..., channel].astype("i2") for channel in range(3))
    return bool(np.abs(r - g).max(initial=0) <= 8 and np.abs(g - b).max(initial=0) <= 8)


def normals_from_heights(heights: np.ndarray, scale: float) -> np.ndarray:
    """Derives a tangent-space normal map (height, width, 4) from heights (height, width) (J. Blinn 1978).

    White lies `scale` picture widths above black. Slopes are central differences that wrap around the picture's edges.
    Channels follow glTF: red is the normal's component along +u, green along -v (up in the picture), blue outwards.
    Heights of uint8 make normals of uint8, and float32 from 0 to 1 normals of float32.
    """
    white = 255 if heights.dtype == np.uint8 else 1
    out = np.full((*heights.shape, 4), white, heights.dtype)
    for start in range(0, len(heights), BLOCK_ROWS):  # a whole picture would take 100 bytes a pixel
        rows = np.arange(start - 1, min(start + BLOCK_ROWS, len(heights)) + 1) % len(heights)
        scaled = heights[rows].astype("f4") * np.float32(scale * heights.shape[1] / white)  # in pixels
        slope_u = (np.roll(scaled[1:-1], -1, 1) - np.roll(scaled[1:-1], 1, 1)) / 2
        slope_v = (scaled[2:] - scaled[:-2]) / 2
        normal = np.stack([-slope_u, slope_v, np.ones_like(slope_u)], -1)
        normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
        block = np.rint((normal + 1) * 127.5) if white == 255 else (normal + 1) / 2
        out[start : start + BLOCK_ROWS, :, :3] = block
    return out
