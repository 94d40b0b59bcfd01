"""Linear frames to 8- or 16-bit sRGB pixels: on the frame's own device for buffers, in GLSL passes for textures.

Both paths share images/tone_mapping.h. In the window the automatic exposure never leaves the GPU: a chain of passes
ends
in one texel, which the tone map reads. Exported pictures are metered on the host in integers, so that the exposure
does not depend on how the picture was cut into tiles.
"""

import math
from dataclasses import replace
from typing import Any, get_args, get_type_hints

import numpy as np

from renderer.gpu import Buffer
from renderer.gpu.gl import GlContext, Texture
from renderer.numerics.texture_reduction import Reduction
from renderer.scene.scene import ToneMapping

CURVES = {
    name: number for number, name in enumerate(get_args(get_type_hints(ToneMapping)["curve"]))
}  # numbered as in images/tone_mapping.h
MIN_METERED_LUMINANCE = 2.0**-20  # luminance below which a pixel does not count, as in images/tone_mapping.h
LUMINANCE_WEIGHTS = np.array([0.2126, 0.7152, 0.0722], "f4")


class ExposureMeter:
    """Mean log2 luminance of a picture that comes in parts, the same whatever the parts: a sum of integers of 2^-20."""

    def __init__(self):
        self._sum = self._count = 0

    def add(self, linear: np.ndarray) -> "ExposureMeter":
        """Counts the pixels of (..., 3 or 4) linear values; returns the meter."""
        red, green, blue = (linear[..., k] * LUMINANCE_WEIGHTS[k] for k in range(3))
        luminance = red + green + blue
        lit = luminance[(luminance >= MIN_METERED_LUMINANCE) & (luminance < 1e30)]
        self._sum += int(np.rint(np.log2(lit, dtype="f8") * (1 << 20)).astype("i8").sum())
        self._count += lit.size
        return self

    def exposure(self, tone: ToneMapping) -> float:
        """The factor for radiance that `tone` asks for: middle gray 0.18 at the mean (Reinhard et al. 2002)."""
        if tone.exposure == "manual" or not self._count:
            return 2.0**tone.ev
        mean = self._sum / self._count / (1 << 20)
        return 0.18 * 2.0 ** (tone.ev - min(max(mean, -20.0), 20.0))


def tonemap(frame, tone: ToneMapping, dtype="u1", meter: ExposureMeter | None = None) -> np.ndarray:
    """(height, width, 4) sRGB pixels of a frame, alpha last; `meter` is that of the whole picture where this is a part.

    Waits for the work before it.
    """
    if meter is None:
        meter = ExposureMeter() if tone.exposure == "manual" else ExposureMeter().add(frame.read())
    exposure = meter.exposure(tone)
    if isinstance(frame, Texture):
        return _tonemap_pass(frame, exposure, tone, dtype)
    return _tonemap_kernel(frame, exposure, tone, dtype)


def _tonemap_kernel(frame: Buffer, exposure: float, tone: ToneMapping, dtype) -> np.ndarray:
    levels = int(np.iinfo(dtype).max)
    word = {255: "uchar", 65535: "ushort"}[levels]
    kernel = frame.device.kernel("images/tonemap.cu", "tonemap", group_size=64, LEVELS=levels, PIXEL=word)
    shown = frame.device.buffer(frame.shape, dtype)
    kernel(frame.shape[0] * frame.shape[1], frame, shown, frame.shape[0] * frame.shape[1], exposure, CURVES[tone.curve])
    return shown.read()


def _tonemap_pass(frame: Texture, exposure: float, tone: ToneMapping, dtype) -> np.ndarray:
    levels = int(np.iinfo(dtype).max)
    target = frame.gl.texture(frame.size)
    GlToneMapper(frame.gl, levels)(frame, replace(tone, exposure="manual", ev=math.log2(exposure)), target)
    return (target.read() * levels + 0.5).astype(dtype)


class GlToneMapper:
    """Tone maps textures of one GL context to sRGB of `levels` + 1 values, scaled to 0..1."""

    def __init__(self, gl: GlContext, levels: int = 255):
        self._reduction = Reduction(gl)
        self._pass = gl.render_pass("images/tonemap.frag", LEVELS=levels)
        self._neutral = gl.texture((1, 1)).write(np.zeros((1, 1, 4), "f4"))

    def __call__(self, image: Texture, tone: ToneMapping, target: Texture) -> None:
        """Draws the displayed picture of `image` into `target`, a texture of the same size."""
        automatic = tone.exposure == "auto"
        exposure = self._reduction.mean_log_luminance(image) if automatic else self._neutral
        inputs: dict[str, Any] = dict(
            image=image, exposure=exposure, automatic=int(automatic), ev=tone.ev, curve=CURVES[tone.curve]
        )
        self._pass(target, **inputs)
