"""Comparison of a panel with a reference, a kept picture or another panel: wipe, flip, difference. After tev."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from renderer.formats.images import linear_to_srgb, read_exr, read_pixels
from renderer.gpu.gl import GlContext, Texture
from renderer.images.inspection import differences
from renderer.window.controls.step import next_item

MODES = ("off", "wipe", "flip", "difference")
FLIP_SECONDS = 0.6  # each of the two pictures is displayed
GAIN = 8.0  # of the difference


class Comparison:
    """The reference of one panel and how it is compared. `wipe` is where the reference begins, 0 (left) to 1."""

    def __init__(self, gl: GlContext):
        self._gl = gl
        self._difference = gl.render_pass("images/difference.frag")
        self._target: Texture | None = None
        self.mode = "off"
        self.wipe = 0.5
        self.label = ""
        self.gain = GAIN
        self.exposure = 0.0  # stops, of both pictures before they are subtracted
        self.numbers = ""  # the last measurement
        self._measuring: Future[dict[str, float]] | None = None
        self.reference: Callable[[], Texture | None] = lambda: None  # gives the reference, 8 bits per channel

    def set_reference(self, displayed: Texture) -> None:
        """Takes a copy of the displayed picture as the reference."""
        kept = self._gl.texture(displayed.size, 4, "f1").write(displayed.read())
        self.reference, self.label = lambda: kept, "kept picture"

    def set_reference_panel(self, panel: Any) -> None:
        """Takes what another panel displays as the reference, as it changes."""
        self.reference, self.label = lambda: panel.display_texture, panel.scene.title

    def set_reference_file(self, path: Path) -> None:
        """Takes a picture's file as the reference: 8 bits a channel as they are, .exr as linear light."""
        pixels = linear_to_srgb(read_exr(path)) if path.suffix.lower() == ".exr" else read_pixels(path)
        height, width = pixels.shape[:2]
        rgba = np.full((height, width, 4), 255, "u1")
        rgba[..., :3] = pixels[..., :3]
        kept = self._gl.texture((width, height), 4, "f1").write(rgba)
        self.reference, self.label = lambda: kept, path.name

    def measure(self, displayed: Texture, wake: Callable[[], None]) -> None:
        """Measures the difference of what is displayed and the reference; `numbers` says the result."""
        reference = self.reference()
        if reference is None:
            self.numbers = "no reference: S keeps the displayed picture, W takes the next panel"
            return
        self.numbers = "measuring"
        executor = ThreadPoolExecutor(1, "measure")  # apart from the thread that waits for devices
        self._measuring = executor.submit(differences, displayed.read(), reference.read())
        self._measuring.add_done_callback(lambda _: wake())
        executor.shutdown(wait=False)

    def poll(self) -> None:
        """Takes over a measurement that is done."""
        if self._measuring is None or not self._measuring.done():
            return
        measured, self._measuring = self._measuring, None
        try:
            self.numbers = "   ".join(f"{name} {value:.4g}" for name, value in measured.result().items())
        except ValueError as error:  # of two sizes
            self.numbers = str(error)

    def cycle(self) -> str:
        """Switches to the next mode and returns it; "off" if there is no reference."""
        self.mode = next_item(MODES, self.mode) if self.reference() is not None else "off"
        return self.mode

    def textures(self, picture: Texture, now: float) -> tuple[Texture, Texture | None, float]:
        """The left texture, the right one or None, and where the right one begins, 0 to 1."""
        reference = self.reference()
        if self.mode == "off" or reference is None:
            return picture, None, 1.0
        if self.mode == "wipe":
            return picture, reference, self.wipe
        if self.mode == "flip":
            return (picture if int(now / FLIP_SECONDS) % 2 else reference), None, 1.0
        if self._target is None or self._target.size != picture.size:
            self._target = self._gl.texture(picture.size, 4, "f1")
        self._difference(self._target, image=picture, reference=reference, gain=self.gain, exposure=self.exposure)
        return self._target, None, 1.0
