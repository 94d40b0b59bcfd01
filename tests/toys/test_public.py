"""What shaders of strangers rely on beside the documented uniforms."""

import numpy as np

from tests.toys.helpers import close, shown


def test_a_paste_of_files_with_byte_order_marks(opened):
    entry = "void mainImage(out vec4 c, in vec2 p) { c = vec4(0.25); }\n"
    text = f"// Buffer A\n\ufeff{entry}// Image\n\ufeff// a comment\n{entry}"
    close(shown(*opened(text)), 0.25)


def test_the_old_name_of_the_time(opened):
    text = "void mainImage(out vec4 c, in vec2 p) { c = vec4(iGlobalTime); }"
    picture, settings = opened(text)
    close(shown(picture, settings, 0.5), 0.5)
    assert picture.depends_on_time(settings)


def test_buffers_without_feedback_draw_their_last_frame_alone(opened, gl):
    text = """// Buffer A
    void mainImage(out vec4 c, in vec2 p) { c = vec4(float(iFrame) / 1000.0, iTime / 10.0, 0, 1); }
    // Image
    // iChannel0: Buffer A
    void mainImage(out vec4 c, in vec2 p) { c = texelFetch(iChannel0, ivec2(p), 0); }"""
    picture, settings = opened(text)
    before = gl.counters.launches
    close(shown(picture, settings, 5.0)[0, 0], [0.3, 0.5, 0.0])
    assert gl.counters.launches - before == 3  # the buffer, the image, its display
    close(shown(picture, settings, 1.0)[0, 0], [0.06, 0.1, 0.0])
    assert np.isfinite(shown(picture, settings, 5.0)).all()
