"""Comparison of a panel with a reference picture, as in tev: wipe, flip, difference, and their figures.

The reference is a kept picture, another panel or a file. Where its linear values are known and its exposure and the
displayed picture's are automatic, both are shown with the exposure that is metered in the displayed picture: compared
pixels then differ by their light alone.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from renderer.formats.images import linear_to_srgb, read_exr, read_pixels
from renderer.gpu.gl import GlContext, Texture
from renderer.images.inspection import differences
from renderer.images.tone_mapping import GlToneMapper
from renderer.records import dataclass, replace
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import setting
from renderer.window.controls.shortcuts import next_item
from renderer.window.panels.display import Display
from renderer.window.panels.inspection import to_texture

MODES = ("off", "wipe", "flip", "difference")
FLIP_SECONDS = 0.6  # the two pictures alternate after so long


@dataclass(frozen=True)
class DifferenceLook:
    """How a difference is displayed."""

    gain: float = setting(8.0, 1.0, 256.0, "factor of the displayed difference", logarithmic=True)
    exposure: float = setting(0.0, -10.0, 10.0, "stops, of both pictures before they are subtracted")


class Reference(NamedTuple):
    """A picture to compare with: as it is displayed (8 bits a channel), and its linear values, if they are known."""

    texture: Texture | None = None
    linear: Texture | None = None
    version: int = 0  # changes when the content of `linear` does
    tone: ToneMapping | None = None  # by which `texture` was made of `linear`; None: the displayed picture's is applied


class Comparison:
    """The reference of one panel, and the mode of MODES that compares it with the displayed picture."""

    def __init__(self, gl: GlContext):
        self._gl = gl
        self._difference = gl.render_pass("images/difference.frag")
        self._target: Texture | None = None  # the displayed difference
        self.mode = "off"
        self.wipe = 0.5  # the reference covers the panel from this fraction of its width to the right
        self.label = ""  # names the reference
        self.look = DifferenceLook()
        self.numbers = ""  # the last measurement
        self.largest_at: tuple[float, float] | None = None  # fractions of width and height, by the last measurement
        self._measuring: Future[dict[str, float]] | None = None
        self.report: Callable[[str], None] = lambda text: None  # takes the result of a measurement
        self.source: Callable[[], Reference] = Reference  # gives the reference as it is now, by default none
        self._mapper = GlToneMapper(gl)
        self._mapped: tuple[object, Texture | None] = None, None  # what `shared` was mapped from, and that texture
        # The reference with the exposure that is metered in the displayed picture; None if each has its own exposure.
        self.shared: Texture | None = None

    def reference(self) -> Texture | None:
        """The reference, 8 bits per channel, as it is compared; None if there is none."""
        return self.shared or self.source().texture

    def set_source(self, source: Callable[[], Reference], label: str) -> None:
        """Takes as the reference what source() returns, which may change from frame to frame, as another panel does."""
        self.source, self.label, self.shared = source, label, None

    def keep(self, display: Display, tone: ToneMapping, label: str) -> None:
        """Takes a copy of a displayed picture, which has been mapped with `tone`, as the reference."""
        shown, frame = display.texture, display.frame
        assert shown is not None and frame is not None
        kept = self._gl.texture(shown.size, 4, "f1").write(shown.read())
        reference = Reference(kept, self._gl.texture(frame.size).write(frame.read()), 0, tone)
        self.set_source(lambda: reference, label)

    def set_reference_file(self, path: Path) -> None:
        """Takes an image file as the reference: .exr holds linear light, others hold sRGB of 8 bits a channel.

        Linear light is shown with the tone mapping of the displayed picture. The comparison begins, as a wipe.
        """
        linear, self.mode = None, self.mode if self.mode != "off" else "wipe"
        if path.suffix.lower() == ".exr":
            pixels = read_exr(path)
            rgba = np.dstack([pixels[..., :3], np.ones(pixels.shape[:2])]).astype("f4")
            linear, pixels = self._gl.texture(rgba.shape[1::-1]).write(rgba), linear_to_srgb(pixels)
        else:
            pixels = read_pixels(path)
        reference = Reference(to_texture(self._gl, pixels[..., :3]), linear)
        self.set_source(lambda: reference, path.name)

    def update(self, display: Display, tone: ToneMapping) -> None:
        """Maps the reference with the exposure of the picture that a panel displays with `tone`, if they share it."""
        _, linear, version, reference_tone = self.source()
        # `shares`: both exposures are automatic, so that one exposure, the displayed picture's, can serve both
        shares = reference_tone is None or reference_tone.exposure == tone.exposure == "auto"
        if linear is None or display.frame is None or not shares:
            self.shared = None
            return
        key = linear, version, display.frame, display.version, reference_tone or tone
        mapped_key, target = self._mapped
        if key != mapped_key:
            if target is None or target.size != linear.size:
                target = self._gl.texture(linear.size, 4, "f1")
            self._mapper(linear, reference_tone or tone, target, display.frame)  # the last: where exposure is metered
            self._mapped = key, target
        self.shared = target

    def measure(self, displayed: Texture, wake: Callable[[], None]) -> None:
        """Starts to measure MSE, PSNR and FLIP of the displayed picture; poll() puts the result in `numbers`."""
        reference = self.reference()
        if reference is None:
            self.numbers = "no reference: S keeps the displayed picture, W takes another panel"
            self.report(self.numbers)
            return
        self.numbers = "measuring"
        executor = ThreadPoolExecutor(1, "measure")  # not the completion thread: that one waits for devices
        self._measuring = executor.submit(differences, displayed.read(), reference.read())
        self._measuring.add_done_callback(lambda _: wake())
        executor.shutdown(wait=False)

    def poll(self, display: Display, tone: ToneMapping) -> None:
        """Brings the compared reference up to date, and takes over a measurement that is done."""
        if self.mode != "off":
            self.update(display, tone)
        if self._measuring is None or not self._measuring.done():
            return
        measured, self._measuring = self._measuring, None
        try:
            found = measured.result()
            self.largest_at = found.pop("x"), found.pop("y")
            self.numbers = "   ".join(f"{name} {value:.4g}" for name, value in found.items())
        except ValueError as error:  # the pictures differ in size
            self.numbers = str(error)
        self.report(self.numbers)

    def cycle(self, displayed: Texture | None) -> str:
        """Switches to the next mode and returns it; "off" if there is no reference."""
        self.switch(next_item(MODES, self.mode) if self.reference() is not None else "off", displayed)
        return self.mode

    def switch(self, mode: str, displayed: Texture | None) -> None:
        """Switches to a mode. For "difference", the gain makes the 99.9th percentile of nonzero ones white."""
        self.mode, reference = mode, self.reference()
        if mode != "difference" or displayed is None or reference is None or displayed.size != reference.size:
            return
        one, two = (texture.read()[..., :3].astype("i2") for texture in (displayed, reference))
        apart = np.abs(one - two)
        high = float(np.percentile(apart[apart > 0], 99.9)) if apart.any() else 255.0
        self.look = replace(self.look, gain=float(f"{255 / high:.2g}"))

    def other_size(self, picture: Texture) -> tuple[int, int] | None:
        """The size of the reference that is compared, if it is not the picture's."""
        reference = self.reference()
        return None if reference is None or reference.size == picture.size else reference.size

    def stop(self) -> None:
        """Compares and measures nothing more, for another scene; W compares it with the kept reference."""
        self.mode, self.numbers, self.largest_at = "off", "", None

    def caption(self, shown: str, now: float) -> str:
        """A line that says which of the pictures is where; `shown` names the displayed one."""
        texts = {
            "wipe": f"left {shown}, right {self.label}",
            "difference": f"{shown}, from {self.label}, times {self.look.gain:.3g}",
            "flip": shown if _flips_to_picture(now) else self.label,
        }
        return f"{self.mode}: {texts[self.mode]}" if self.mode in texts else ""

    def textures(self, picture: Texture, now: float) -> tuple[Texture, Texture | None, float]:
        """The left texture, the right texture or None, and the fraction of the width at which the right one begins."""
        reference = self.reference()
        if self.mode == "off" or reference is None:
            return picture, None, 1.0
        if self.mode == "wipe":
            return picture, reference, self.wipe
        if self.mode == "flip":
            return (picture if _flips_to_picture(now) else reference), None, 1.0
        if self._target is None or self._target.size != picture.size:
            self._target = self._gl.texture(picture.size, 4, "f1")
        self._difference(
            self._target, image=picture, reference=reference, gain=self.look.gain, exposure=self.look.exposure
        )
        return self._target, None, 1.0


def _flips_to_picture(now: float) -> bool:
    """True while mode "flip" shows the displayed picture, False while it shows the reference."""
    return int(now / FLIP_SECONDS) % 2 == 1
