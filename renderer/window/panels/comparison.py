"""Comparison of a panel with a reference picture, as in tev: wipe, flip, difference, and their figures.

The reference is a kept picture, another panel or a file.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from renderer.formats.images import linear_to_srgb, read_exr, read_pixels
from renderer.gpu.gl import GlContext, Texture
from renderer.images.inspection import differences
from renderer.window.controls.shortcuts import next_item
from renderer.window.panels.inspection import to_texture

MODES = ("off", "wipe", "flip", "difference")
FLIP_SECONDS = 0.6  # the two pictures alternate after so long
GAIN = 8.0  # default factor of the displayed difference


class Comparison:
    """The reference of one panel, and the mode of MODES that compares it with the displayed picture."""

    def __init__(self, gl: GlContext):
        self._gl = gl
        self._difference = gl.render_pass("images/difference.frag")
        self._target: Texture | None = None
        self.mode = "off"
        self.wipe = 0.5  # the reference covers the panel from this fraction of its width to the right
        self.label = ""  # names the reference
        self.gain = GAIN
        self.exposure = 0.0  # stops, of both pictures before they are subtracted
        self.numbers = ""  # the last measurement
        self._measuring: Future[dict[str, float]] | None = None
        self.report: Callable[[str], None] = lambda text: None  # takes the result of a measurement
        self.reference: Callable[[], Texture | None] = lambda: None  # gives the reference, 8 bits per channel
        self.linear: Callable[[], Texture | None] = lambda: None  # gives its linear values, if they are known

    def set_reference(self, panel: Any) -> None:
        """Takes a copy of the picture that a panel displays as the reference."""
        shown, frame = panel.display.texture, panel.display.frame
        kept = self._gl.texture(shown.size, 4, "f1").write(shown.read())
        linear = self._gl.texture(frame.size).write(frame.read())
        self.reference, self.linear, self.label = lambda: kept, lambda: linear, "kept picture"

    def set_reference_panel(self, panel: Any, title: str) -> None:
        """Takes another panel's displayed picture as the reference; the reference follows that panel."""
        self.reference, self.linear = lambda: panel.display.texture, lambda: panel.display.frame
        self.label = title

    def set_reference_file(self, path: Path) -> None:
        """Takes an image file as the reference: .exr holds linear light, others hold sRGB of 8 bits a channel."""
        pixels = linear_to_srgb(read_exr(path)) if path.suffix.lower() == ".exr" else read_pixels(path)
        kept = to_texture(self._gl, pixels[..., :3])
        self.reference, self.linear, self.label = lambda: kept, lambda: None, path.name

    def measure(self, displayed: Texture, wake: Callable[[], None]) -> None:
        """Starts to measure MSE, PSNR and FLIP of the displayed picture; poll() puts the result in `numbers`."""
        reference = self.reference()
        if reference is None:
            self.numbers = "no reference: S keeps the displayed picture, W takes the next panel"
            self.report(self.numbers)
            return
        self.numbers = "measuring"
        executor = ThreadPoolExecutor(1, "measure")  # not the completion thread: that one waits for devices
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
        except ValueError as error:  # the pictures have two sizes
            self.numbers = str(error)
        self.report(self.numbers)

    def cycle(self) -> str:
        """Switches to the next mode and returns it; "off" if there is no reference."""
        self.mode = next_item(MODES, self.mode) if self.reference() is not None else "off"
        return self.mode

    def textures(self, picture: Texture, now: float) -> tuple[Texture, Texture | None, float]:
        """The left texture, the right texture or None, and the fraction of the width at which the right one begins."""
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
