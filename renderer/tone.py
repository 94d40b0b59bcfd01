"""Linear frames to 8-bit sRGB pixels: on the frame's own device for buffers, in GLSL passes for textures.

Both paths share shaders/tone.h. The exposure stays on the device: a reduction leaves it in one texel or one float2,
and the tone map reads it there.
"""

from typing import get_args, get_type_hints

import numpy as np

from renderer.compute.reduction import Reduction
from renderer.gpu import Buffer
from renderer.gpu.gl import Gl, Texture
from renderer.scene import Tone

CURVES = {name: number for number, name in enumerate(get_args(get_type_hints(Tone)["curve"]))}  # numbered as in tone.h
METER_GROUPS = 256


def pixels(frame, tone: Tone) -> np.ndarray:
    """(height, width, 4) uint8 sRGB pixels of a frame, alpha last; waits for the work before it."""
    if isinstance(frame, Texture):
        target = frame.gl.texture(frame.size, 4, "f1")
        GlTone(frame.gl)(frame, tone, target)
        return np.frombuffer(target.texture.read(alignment=1), "u1").reshape(target.shape).copy()
    return DeviceTone(frame.device)(frame, tone).read()


class GlTone:
    """Tone maps textures of one GL context; automatic exposure is a chain of passes that ends in one texel."""

    def __init__(self, gl: Gl):
        self._reduction = Reduction(gl)
        self._pass = gl.shader("tonemap.frag")
        self._neutral = gl.texture((1, 1), 4).write(np.zeros((1, 1, 4), "f4"))

    def __call__(self, image: Texture, tone: Tone, target: Texture) -> None:
        """Draws the displayed picture of `image` into `target`, an 8-bit texture of the same size."""
        automatic = tone.exposure == "auto"
        exposure = self._reduction.mean_log_luminance(image) if automatic else self._neutral
        inputs = dict(image=image, exposure=exposure, automatic=int(automatic), ev=tone.ev, curve=CURVES[tone.curve])
        self._pass(target, **inputs)


class DeviceTone:
    """Tone maps buffers of one device."""

    def __init__(self, device):
        self._device = device
        self._meter = device.kernel("tonemap.cu", "meter", group=64)
        self._finish = device.kernel("tonemap.cu", "finish_metering", group=64)
        self._tonemap = device.kernel("tonemap.cu", "tonemap", group=64)
        self._partial = device.buffer((METER_GROUPS, 2))
        self._metered = device.buffer((1, 2)).fill(0)

    def __call__(self, frame: Buffer, tone: Tone) -> Buffer:
        """A new (height, width, 4) uint8 buffer with the displayed picture."""
        height, width, _ = frame.shape
        out = self._device.buffer(frame.shape, "u1")
        automatic = tone.exposure == "auto"
        if automatic:
            run = -(-height * width // METER_GROUPS)
            self._meter(METER_GROUPS * 64, frame, self._partial, height * width, run)
            self._finish(1, self._partial, self._metered, METER_GROUPS)
        self._tonemap(
            height * width, frame, out, self._metered, height * width, int(automatic), tone.ev, CURVES[tone.curve]
        )
        return out
