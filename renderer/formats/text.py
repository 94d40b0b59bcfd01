"""Short texts as images, in the font that comes with Pillow."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont


def text_mask(text: str, height: int, max_width: int) -> np.ndarray:
    """(height, at most max_width) float32 coverage, 0 to 1, of one line of text; what is wider is cut off."""
    font = ImageFont.load_default(max(height * 0.8, 6.0))
    image = Image.new("L", (max(max_width, 1), height))
    ImageDraw.Draw(image).text((0, height / 2), text, fill=255, font=font, anchor="lm")
    return np.asarray(image, "f4") / 255
