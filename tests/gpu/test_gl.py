"""Textures and passes of the headless GL context, and the bridge from compute buffers."""

import numpy as np
import pytest

from renderer.errors import KernelError, UnavailableError
from renderer.gpu.gl import Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.gpu.kernel_source import GeneratedSource

COPY = """uniform sampler2D image;
uniform float scale;
out vec4 color;
void main() { color = texelFetch(image, ivec2(gl_FragCoord.xy), 0) * scale; }
"""


def test_write_read_keeps_every_bit(gl, rng):
    for width, height, components in ((1, 1, 4), (7, 3, 1), (13, 5, 2), (64, 33, 4)):
        bits = rng.integers(0, 2**32, (height, width, components), dtype="u4").view("f4")
        texture = gl.texture((width, height), components).write(bits)
        assert np.array_equal(texture.read().view("u4"), bits.view("u4"))


def test_pass_draws_over_every_texel_with_row_zero_on_top(gl, rng):
    image = rng.random((9, 14, 4), dtype="f4")
    target = gl.texture((14, 9)).write(np.full((9, 14, 4), np.nan, "f4"))
    gl.render_pass(GeneratedSource("copy.frag", COPY))(target, image=gl.texture((14, 9)).write(image), scale=2.0)
    assert np.array_equal(target.read(), image * 2)


def test_unknown_and_missing_inputs_are_refused(gl):
    target, image = gl.texture((2, 2)), gl.texture((2, 2))
    copy = gl.render_pass(GeneratedSource("copy.frag", COPY))
    with pytest.raises(TypeError, match="no uniform gain"):
        copy(target, image=image, scale=1.0, gain=2.0)
    with pytest.raises(TypeError, match="scale is not given"):
        copy(target, image=image)
    with pytest.raises(AssertionError, match="read and written"):
        copy(target, image=target, scale=1.0)


def test_glsl_error_names_file_and_line(gl):
    with pytest.raises(KernelError, match=r"bad\.frag:3"):
        gl.render_pass(GeneratedSource("bad.frag", "out vec4 color;\n\nvoid main() { color = nonsense; }\n"))


def test_too_large_a_texture_is_a_sentence(gl):
    with pytest.raises(UnavailableError, match="each side may be"):
        Texture(gl, (10**6, 1), 4, "f4")
    with pytest.raises(UnavailableError, match="each side may be"):
        gl.texture((0, 5))


def test_bridge_carries_a_buffer_bit_for_bit_and_says_how(gl, device, rng):
    bridge = GlInterop(gl)
    for size in ((5, 7), (16, 8), (16, 8)):
        image = rng.standard_normal((size[1], size[0], 4)).astype("f4")
        frame = device.buffer(image.shape).write(image)
        assert np.array_equal(bridge.texture(frame).read(), image)
        copied = bridge.start(frame)
        frame.fill(0)  # as the next draw does
        device.finish()
        assert np.array_equal(copied().read(), image)
    # a copy that is finished after a frame of another size came is not used for frames of that size
    late, other = bridge.start(frame), device.buffer((3, 2, 4)).fill(0)
    assert not bridge.texture(other).read().any() and not late().read().any()
    device.finish()
    assert not bridge.texture(other).read().any() and not bridge.start(other)().read().any()
    assert bridge.transfer in ("CUDA-GL interop", "through host memory") or bridge.transfer.startswith(
        "through host memory ("
    )
    assert bridge.texture(texture := gl.texture((3, 3))) is texture and bridge.transfer == "GL texture"
    bridge.release()
