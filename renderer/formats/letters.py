"""Text as pixels, in the font that Pillow brings."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

MAX_SIDE = 8192


def text_pixels(text: str, size: int, margin: int, baseline: float = 0.0) -> np.ndarray:
    """(h, w) bool: the text in letters of `size` pixels with a margin, moved down by `baseline`."""
    font = ImageFont.load_default(size)
    left, top, right, bottom = (int(edge) for edge in font.getbbox(text))
    width, height = min(right - left, MAX_SIDE) + 2 * margin, min(bottom - top, MAX_SIDE) + 2 * margin
    image = Image.new("1", (width, height))
    ImageDraw.Draw(image).text((margin - left, margin - top + baseline), text, fill=1, font=font)
    return np.asarray(image)
