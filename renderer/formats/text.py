"""One line of text as pixels, in Pillow's font: labels of flame sheets, and the letters that a variation draws."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

MAX_SIDE = 8192  # pixels of a text's width or height; longer texts are cut off


def text_mask(text: str, height: int, width: int) -> np.ndarray:
    """Renders a text as coverage (height, width) float32 from 0 to 1; wider text is cut off."""
    font = ImageFont.load_default(max(height * 0.8, 6.0))
    image = Image.new("L", (max(width, 1), height))
    ImageDraw.Draw(image).text((0, height / 2), text, fill=255, font=font, anchor="lm")
    return np.asarray(image, "f4") / 255


def text_pixels(text: str, size: int, margin: int, baseline: float = 0.0) -> np.ndarray:
    """Renders letters of `size` pixels as bool (h, w), `margin` pixels around, moved down by `baseline` pixels."""
    font = ImageFont.load_default(size)
    left, top, right, bottom = (int(edge) for edge in font.getbbox(text))
    width, height = min(right - left, MAX_SIDE) + 2 * margin, min(bottom - top, MAX_SIDE) + 2 * margin
    image = Image.new("1", (width, height))
    ImageDraw.Draw(image).text((margin - left, margin - top + baseline), text, fill=1, font=font)
    return np.asarray(image)
