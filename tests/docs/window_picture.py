"""Draws the pictures of the window in README and guides anew: four panels, live, on this machine's devices.

    python -m tests.docs.window_picture [SECONDS]

Writes assets/guides/pictures/first_window.png and window.jpg once all panels are done, or after SECONDS (default 240).
"""

import sys
import time
from dataclasses import replace

from PIL import Image

from renderer.gpu import open_context
from renderer.paths import ASSETS, SCENES
from renderer.pictures import load
from renderer.scene.scene import Inspect
from renderer.window.app.backends import OffscreenWindow
from renderer.window.state import main_loop
from renderer.window.state.app_state import AppState
from renderer.window.state.session import Session

PANELS = ("mirrors.toml", "cloth.toml", "filigree.flame", "julia.toml")
SIZE, GUIDE_SIZE = (1280, 720), (960, 540)
JPEG_QUALITY = 88


def main() -> None:
    """Draws the window until it rests."""
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else 240.0
    gpu = open_context("auto")
    mirrors, *others = [load(SCENES / name) for name in PANELS]
    scenes = replace(mirrors, inspect=Inspect("stencil", 1)), *others
    window = OffscreenWindow(AppState(Session.of(scenes), gpu), gpu.gl, SIZE)
    end = time.monotonic() + limit
    try:
        while time.monotonic() < end:
            window.frame()
            panels, now = window.app.panels, window.app.now()
            resting = all(panel.draw_loop.is_finished or panel.is_animated for panel in panels)
            if (
                resting
                and main_loop.activity(window.app, now) != "compiling"
                and all(p.display.texture for p in panels)
            ):
                break
        errors = [panel.error for panel in panels if panel.error]
        if errors:
            sys.exit("; ".join(errors))
        picture = Image.fromarray(window.pixels())
    finally:
        window.close()
    folder = ASSETS / "guides" / "pictures"
    colors = picture.quantize(256)
    dithered = picture.quantize(palette=colors, dither=Image.Dither.FLOYDSTEINBERG)
    dithered.save(folder / "first_window.png", optimize=True)
    picture.resize(GUIDE_SIZE, Image.Resampling.LANCZOS).save(
        folder / "window.jpg", quality=JPEG_QUALITY, optimize=True
    )


if __name__ == "__main__":
    main()
