"""Makes the light field of scenes/lightfield.toml: `python -m assets.makers.tabletop` (4 minutes)."""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from renderer import cli
from renderer.lightfields.light_field import read_light_field
from renderer.paths import ROOT

FOLDER = ROOT / "assets" / "lightfields"
VIEWS, BASELINE, SAMPLES, QUALITY = 9, 0.045, 64, 80


def tiled(views: Path) -> np.ndarray:
    """(rows * height, columns * width, 3) uint8: all views of a folder in one image."""
    field = read_light_field(views)
    width, height = field.size
    image = np.zeros((field.rows * height, field.columns * width, 3), "u1")
    for (row, column), view in zip(field.view_indices, field.pixels, strict=True):
        image[row * height : (row + 1) * height, column * width : (column + 1) * width] = view[..., :3]
    return image


def main() -> int:
    """Draw the views of tabletop.toml and tile them."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--light-field", f"{VIEWS}x{VIEWS}", "--baseline", str(BASELINE), "--samples", str(SAMPLES)]
        code = cli.main(["export", str(FOLDER / "tabletop.toml"), "-o", folder + "/views", *words])
        if code == 0:
            image = Image.fromarray(tiled(Path(folder) / "views"))
            image.save(FOLDER / "tabletop_9x9.jpg", quality=QUALITY, optimize=True, progressive=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
