"""Tone mapping of linear frames to displayed pixels, sRGB or PQ: a kernel for buffers, GLSL passes for textures.

Both paths share images/tone_mapping.h. In the window the automatic exposure never leaves the GPU: a chain of passes
ends in one texel, which the tone map reads. Exported pictures are metered on the host in integers, so that the exposure
does not depend on how the picture was cut into tiles.
"""

import math
from typing import Any, get_args, get_type_hints

import numpy as np

from renderer.formats.images import LUMINANCE
from renderer.gpu import Buffer, Device
from renderer.gpu.gl import GlContext, Texture
from renderer.images.color_grade import grade_rows, is_graded
from renderer.numerics.texture_reduction import Reduction
from renderer.records import dataclass, replace
from renderer.scene.scene import ToneMapping

CURVES = {
    name: number for number, name in enumerate(get_args(get_type_hints(ToneMapping)["curve"]))
}  # numbered as in images/tone_mapping.h
MIN_METERED_LUMINANCE = 2.0**-20  # luminance below which a pixel does not count, as in images/tone_mapping.h
METERED_ROWS = 128  # rows metered at once: temporary arrays of a whole tile would be the peak of a picture's memory
KERNEL_FILE, KERNEL_GROUP = "images/tonemap.cu", 64
GRADE_WIDTH = 4096  # texels in a row of a grading's table, as in images/color_grade.h
LUMINANCE_WEIGHTS = LUMINANCE.astype("f4")


class ExposureMeter:
    """Measures the mean log2 luminance of a picture, tile by tile; integer sums in units of 2^-20 are exact."""

    def __init__(self) -> None:
        self._sum = self._count = 0

    def add(self, linear: np.ndarray) -> "ExposureMeter":
        """Adds the pixels of (..., 3 or 4) linear values; returns the meter."""
        for k in range(0, len(linear), METERED_ROWS):
            red, green, blue = (linear[k : k + METERED_ROWS, ..., c] * LUMINANCE_WEIGHTS[c] for c in range(3))
            luminance = red + green + blue
            # 1e30: leaves out infinity and damaged values
            lit = luminance[(luminance >= MIN_METERED_LUMINANCE) & (luminance < 1e30)]
            self._sum += int(np.rint(np.log2(lit, dtype="f8") * (1 << 20)).astype("i8").sum())
            self._count += lit.size
        return self

    def exposure(self, tone: ToneMapping) -> float:
        """Returns the factor of radiance for `tone`; auto maps the mean to middle gray 0.18 (Reinhard et al. 2002)."""
        if tone.exposure == "manual" or not self._count:
            return math.pow(2.0, tone.ev)
        mean = self._sum / self._count / (1 << 20)
        return 0.18 * math.pow(2.0, tone.ev - min(max(mean, -20.0), 20.0))


@dataclass(frozen=True)
class Encoding:
    """Encoding of displayed color: values 0 to `levels`, in sRGB, or with `transfer` pq in PQ of Rec. 2020.

    PQ (SMPTE ST 2084) shows radiance 1 at 203 nits (ITU-R BT.2408) and has room to 10,000, so neither tone curve nor
    look-up table, which are made for sRGB, applies.
    """

    levels: int = 255
    transfer: str = "srgb"

    @property
    def dtype(self) -> np.dtype:
        """Returns the data type of the pixels: uint8 or uint16."""
        return np.dtype("u1" if self.levels <= 255 else "u2")

    def constants(self, tone: ToneMapping) -> dict[str, int]:
        """Returns the compile-time constants of kernels and passes."""
        graded = {"GRADED": 1} if is_graded(tone) else {}
        return {"LEVELS": self.levels} | graded | ({"HIGH_RANGE": 1} if self.transfer == "pq" else {})


SRGB_8 = Encoding()


def tonemap(
    frame: Buffer | Texture, tone: ToneMapping, encoding: Encoding = SRGB_8, meter: ExposureMeter | None = None
) -> np.ndarray:
    """Returns the displayed pixels (height, width, 4) of a frame, alpha last; waits for the device.

    For a tile, `meter` must have measured the complete picture; without `meter` the frame itself is measured.
    """
    if meter is None:
        meter = ExposureMeter() if tone.exposure == "manual" else ExposureMeter().add(frame.read())
    exposure = meter.exposure(tone)
    if isinstance(frame, Texture):
        return _tonemap_pass(frame, exposure, tone, encoding)
    return _tonemap_kernel(frame, exposure, tone, encoding)


def compile_tonemap_ahead(device: Device, tone: ToneMapping) -> None:
    """Starts compiling the kernel of a later tonemap() to SRGB_8 in the background, if the device supports it."""
    device.compile_ahead(KERNEL_FILE, KERNEL_GROUP, **_kernel_constants(tone, SRGB_8))


def _kernel_constants(tone: ToneMapping, encoding: Encoding) -> dict[str, int | str]:
    pixel = "uchar" if encoding.dtype.itemsize == 1 else "ushort"
    return {**encoding.constants(tone), "PIXEL": pixel, "STRICT": 1}


def _tonemap_kernel(frame: Buffer, exposure: float, tone: ToneMapping, encoding: Encoding) -> np.ndarray:
    """Tone-maps a frame on its device; returns the encoded pixels."""
    device, pixels = frame.device, frame.shape[0] * frame.shape[1]
    kernel = device.kernel(KERNEL_FILE, "tonemap", KERNEL_GROUP, **_kernel_constants(tone, encoding))
    shown = device.buffer(frame.shape, encoding.dtype)
    grade = []
    if is_graded(tone):
        rows = grade_rows(tone)
        grade = [device.buffer(rows.shape).write(rows)]
    kernel(pixels, frame, shown, pixels, exposure, CURVES[tone.curve], *grade)
    return shown.read()


def _tonemap_pass(frame: Texture, exposure: float, tone: ToneMapping, encoding: Encoding) -> np.ndarray:
    target = frame.gl.texture(frame.size)
    GlToneMapper(frame.gl, encoding)(frame, replace(tone, exposure="manual", ev=math.log2(exposure)), target)
    return (target.read() * encoding.levels + 0.5).astype(encoding.dtype)


class GlToneMapper:
    """Tone maps textures of one GL context to values of an encoding, scaled to 0..1."""

    def __init__(self, gl: GlContext, encoding: Encoding = SRGB_8):
        self._gl, self._encoding = gl, encoding
        self._reduction = Reduction(gl)
        self._neutral = gl.texture((1, 1)).write(np.zeros((1, 1, 4), "f4"))
        self._grade, self._rows = self._neutral, np.zeros(0, "f4")  # a grading's table, as texture and as rows

    def __call__(self, image: Texture, tone: ToneMapping, target: Texture, metered: Texture | None = None) -> None:
        """Draws the displayed picture of `image` into `target`, a texture of the same size.

        An automatic exposure is measured in `metered`, by default in `image`.
        """
        automatic = tone.exposure == "auto"
        exposure = self._reduction.mean_log_luminance(metered or image) if automatic else self._neutral
        inputs: dict[str, Any] = dict(
            image=image, exposure=exposure, automatic=int(automatic), ev=tone.ev, curve=CURVES[tone.curve]
        )
        if is_graded(tone):
            inputs["grade"] = self._grade_texture(tone)
        self._gl.render_pass("images/tonemap.frag", **self._encoding.constants(tone))(target, **inputs)

    def _grade_texture(self, tone: ToneMapping) -> Texture:
        """Returns the grading's table as a texture GRADE_WIDTH texels wide."""
        rows = grade_rows(tone)
        if rows is not self._rows:  # grade_rows() caches: equal settings give the same array
            height = -(-len(rows) // GRADE_WIDTH)
            texels = np.zeros((height * GRADE_WIDTH, 4), "f4")
            texels[: len(rows)] = rows
            shape = (height, GRADE_WIDTH, 4)
            self._grade, self._rows = self._gl.texture((GRADE_WIDTH, height)).write(texels.reshape(shape)), rows
        return self._grade
