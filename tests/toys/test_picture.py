"""Drawing toys: equal to the same formulas in NumPy, frame by frame; deterministic; errors on the file's own lines."""

from dataclasses import replace

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.formats.images import write_png
from tests.toys.helpers import SIZE, close, color, points, shown


def test_main_image_equals_numpy(opened):
    text = """#version 300 es
    precision highp float;
    #extension GL_OES_standard_derivatives : enable
    void mainImage( out vec4 fragColor, in vec2 fragCoord ) {
        lowp vec2 uv = fragCoord / iResolution.xy;
        fragColor = vec4(0.5 + 0.5 * cos(iTime + uv.xyx + vec3(0, 2, 4)), 0.3);
    }"""
    x, y = points()
    u, v = x / SIZE[0], y / SIZE[1]
    wanted = color(*(0.5 + 0.5 * np.cos(1.25 + a + b) for a, b in ((u, 0), (v, 2), (u, 4))))
    close(shown(*opened(text), 1.25), wanted)


def test_the_point_is_at_pixel_centers_from_the_bottom(opened):
    x, y = points()
    text = "void mainImage(out vec4 c, in vec2 p) { c = vec4(p / 32.0, gl_FragCoord.y / 32.0, 1); }"
    close(shown(*opened(text)), color(x / 32, y / 32, y / 32))


def test_inputs_of_a_frame(opened):
    text = """void mainImage(out vec4 c, in vec2 p) {
        int k = int(p.x);
        float v = k == 0 ? iMouse.x : k == 1 ? iMouse.y : k == 2 ? iMouse.z : k == 3 ? iMouse.w
            : k == 4 ? float(iFrame) : k == 5 ? iTimeDelta : k == 6 ? iFrameRate : k == 7 ? iDate.x
            : k == 8 ? iDate.w : k == 9 ? iSampleRate : k == 10 ? iChannelTime[1] : k == 11 ? iChannelResolution[0].x
            : k == 12 ? iResolution.z : -1.0;
        c = vec4(v);
    }"""
    picture, settings = opened(text + "\n// iChannel0: noise\n")
    settings = replace(settings, mouse=(0.25, 0.5, -0.5, 1.0), date=(2025.0, 1, 2, 30.0), output="linear")
    row = picture.draw(settings, SIZE, 0.5).read()[0, :13, 0]
    assert row.tolist() == [6, 8, -12, 16, 30, np.float32(1 / 60), 60, 2025, 30.5, 44100, 0.5, 256, 1]


def test_derivatives_have_the_sign_of_the_coordinates(opened):
    text = "void mainImage(out vec4 c, in vec2 p) { c = vec4(dFdx(p.x), dFdy(p.y), fwidth(p.x + p.y) / 4.0, 1); }"
    close(shown(*opened(text)), color(1.0, np.ones((SIZE[1], SIZE[0])), 0.5))


FEEDBACK = """// Common
const float STEP = 1.0 / 64.0;
// Buffer A
void mainImage(out vec4 c, in vec2 p) {
    vec4 old = texelFetch(iChannel0, ivec2(p), 0);
    float left = texelFetch(iChannel0, ivec2(max(p.x - 1.0, 0.0), p.y), 0).x;
    c = vec4(mix(old.x, left, 0.5) + (ivec2(p) == ivec2(0, 3) ? STEP : 0.0), old.y + float(iFrame), old.z + iTime, 1);
}
// Buffer B
// iChannel0: Buffer A
// iChannel1: Buffer B
void mainImage(out vec4 c, in vec2 p) {
    c = 0.5 * texelFetch(iChannel1, ivec2(p), 0) + texelFetch(iChannel0, ivec2(p), 0).x;
}
// Image
// iChannel0: Buffer A
// iChannel1: Buffer B
void mainImage(out vec4 c, in vec2 p) {
    vec4 a = texelFetch(iChannel0, ivec2(p), 0);
    c = vec4(a.x, texelFetch(iChannel1, ivec2(p), 0).x, a.y / 1000.0 + a.z / 1000.0, 1);
}
"""


def feedback(frames: int, size=SIZE) -> np.ndarray:
    """The picture of FEEDBACK after frames 0 to `frames`, by NumPy."""
    a, b, sums = np.zeros(size[::-1]), np.zeros(size[::-1]), 0.0
    for frame in range(frames + 1):
        left = np.concatenate([a[:, :1], a[:, :-1]], 1)
        a = (a + left) / 2
        a[3, 0] += 1 / 64
        b = 0.5 * b + a
        sums += frame + frame / 60
    return color(a, b, sums / 1000)


def test_buffers_feed_back_in_order_from_zero(opened):
    picture, settings = opened(FEEDBACK)
    for frame in (0, 5, 12, 3):  # forwards from what was drawn, and back from zero
        close(shown(picture, settings, frame / 60), feedback(frame))


def test_a_time_has_one_picture(opened):
    picture, settings = opened(FEEDBACK)
    first = picture.draw(settings, SIZE, 0.2).read()
    picture.draw(replace(settings, mouse=(0.5, 0.5, 0.5, 0.5)), SIZE, 0.3)
    picture.draw(settings, (8, 8), 0.1)
    np.testing.assert_array_equal(picture.draw(settings, SIZE, 0.2).read(), first)


def test_a_window_catches_up_and_then_shows_the_same(opened):
    picture, settings = opened(FEEDBACK, is_live=True)
    picture._shared.passes = None
    picture.never_block = None
    draws = 0
    while draws < 100:
        found = shown(picture, settings, 20 / 60)
        draws += 1
        if picture.sample_count(settings, SIZE) == draws:
            break
    assert draws > 1
    close(found, feedback(20))
    picture.restart()  # the window has split the picture into other tiles, and counts from 0
    shown(picture, settings, 20 / 60)
    assert picture.sample_count(settings, SIZE) == 1


@pytest.mark.parametrize("tile", [(0, 0, 24, 16), (3, 5, 7, 9), (4, 0, 11, 3), (23, 15, 1, 1)])
def test_a_tile_has_the_bits_of_the_picture(opened, tile):
    text = (
        "void mainImage(out vec4 c, in vec2 p) { vec2 q = sin(p * p * 0.1); c = vec4(q, 9.0 * length(fwidth(q)), 1); }"
    )
    for source in (text, FEEDBACK):
        picture, settings = opened(source)
        whole = picture.draw(settings, SIZE, 0.1).read()
        left, top, width, height = tile
        cut = picture.clone().draw(settings, SIZE, 0.1, tile).read()
        np.testing.assert_array_equal(cut, whole[top : top + height, left : left + width])


def test_a_texture_stands_upright_and_repeats(opened, tmp_path, rng):
    texels = rng.integers(0, 256, (4, 6, 3), dtype="u1")
    write_png(tmp_path / "wood.png", texels)
    text = """// iChannel0: wood.png nearest
    void mainImage(out vec4 c, in vec2 p) { c = texture(iChannel0, p / vec2(6, 4)); }"""
    wanted = np.tile(texels[::-1] / 255, (4, 4, 1))
    close(shown(*opened(text)), wanted)
    clamped = shown(*opened(text.replace("nearest", "nearest clamp")))
    close(clamped[:4], np.concatenate([wanted[:4, :6], np.repeat(wanted[:4, 5:6], 18, 1)], 1))


def test_linear_filter_and_mipmap(opened, tmp_path):
    write_png(tmp_path / "two.png", np.array([[[0, 0, 0], [255, 255, 255]]], "u1"))
    text = "// iChannel0: two.png {} clamp\nvoid mainImage(out vec4 c, in vec2 p) {{ c = {}; }}"
    x, _ = points()
    ramp = np.clip(x / SIZE[0] * 2 - 0.5, 0, 1)
    found = shown(*opened(text.format("linear", "texture(iChannel0, p / iResolution.xy)")))
    close(found, color(ramp, ramp, ramp + np.zeros((16, 1))), 5e-3)
    found = shown(*opened(text.format("mipmap", "textureLod(iChannel0, vec2(0.5), 1.0)")))
    close(found, 0.5, 5e-3)


def test_keyboard_rows(opened):
    text = """// iChannel0: keyboard
    void mainImage(out vec4 c, in vec2 p) {
        ivec2 key = ivec2(65, int(p.y));
        c = vec4(texelFetch(iChannel0, key, 0).x, texelFetch(iChannel0, key + ivec2(1, 0), 0).x, 0, 1);
    }"""
    picture, settings = opened(text)
    found = shown(picture, replace(settings, keys=(65,), toggled=(66,)))
    close(found[:3, 0, :2], [[1, 0], [1, 0], [0, 1]])


def test_noise_has_its_next_layer_in_green(opened):
    text = """// iChannel0: noise nearest
    void mainImage(out vec4 c, in vec2 p) {
        vec4 here = texture(iChannel0, p / 256.0), next = texture(iChannel0, (p + vec2(37, 239)) / 256.0);
        c = vec4(here.x, next.y, here.y, 1);
    }"""
    found = shown(*opened(text))
    close(found[..., 0], found[..., 1], 1e-6)
    assert found.std() > 0.2 and np.abs(found[..., 0] - found[..., 2]).mean() > 0.2


PLAIN = """#version 330
uniform vec2 u_resolution;
uniform float u_time;
uniform vec3 tint = vec3(1.0, 0.5, 0.25);  // color
uniform int bands;  // 1 to 8
out vec4 color;
void main() { color = vec4(tint * floor(gl_FragCoord.x / u_resolution.x * float(bands)) / 8.0 + u_time, 1.0); }
"""


def test_a_plain_fragment_shader_with_sliders(opened):
    picture, settings = opened(PLAIN, "plain.frag")
    assert settings.bands == 4 and settings.tint == (1.0, 0.5, 0.25)
    settings = replace(settings, bands=8)
    x, y = points()
    wanted = [t * np.floor(x / 3) / 8 + 0.125 + 0 * y for t in settings.tint]
    close(shown(picture, settings, 0.125), color(*wanted))


def test_old_names_of_webgl(opened):
    text = "// iChannel0: noise\nuniform sampler2D iChannel0;\n"
    text += "void main() { gl_FragColor = texture2D(iChannel0, vec2(0.5)) * 0.0 + 0.5; }"
    close(shown(*opened(text)), 0.5)


def test_colors_beyond_the_display_and_nan(opened):
    text = "void mainImage(out vec4 c, in vec2 p) { c = vec4(7.0, -3.0, sqrt(-p.x), 0); }"
    picture, settings = opened(text)
    close(shown(picture, settings), color(1.0, 0.0, np.zeros((16, 24))))
    linear = picture.draw(replace(settings, output="linear"), SIZE, 0.0).read()
    assert linear[0, 0, 0] == 7 and linear[0, 0, 1] == -3


ERRORS = [
    ("void mainImage(out vec4 c, in vec2 p) {\n  c = vec4(1);\n  c.x = absent;\n}", "toy.glsl:3:", "c.x = absent;"),
    (FEEDBACK.replace("c = 0.5 *", "c = nothing *"), "toy.glsl:13:", "c = nothing * texelFetch"),
    (FEEDBACK.replace("1.0 / 64.0;", "1.0 / 64.0 + wrong;"), "toy.glsl:2:", "const float STEP"),
    (FEEDBACK.replace("c = 0.5 *", '\n#include "a.glsl"\nc = 0.5 *'), "toy.glsl:14: GLSL has no #include", ""),
    ("void mainImage(out vec4 c, in vec3 p) { c = vec4(1); }", "toy.glsl:1: the entry of Image must be", ""),
    ("void mainImage(out vec4 c, in vec2 p) {\n#if\n\n\n c = vec4(1); }", "toy.glsl:", ""),  # 2, or 3 by NVIDIA
]


@pytest.mark.parametrize("text, place, line", ERRORS, ids=[place for _, place, _ in ERRORS])
def test_an_error_names_the_files_own_line(opened, tmp_path, text, place, line):
    picture, settings = opened(text)
    with pytest.raises(InputError) as raised:
        picture.draw(settings, SIZE, 0.0)
    assert str(raised.value).startswith(f"{tmp_path}/{place}") and line in str(raised.value)
    assert raised.value.exit_code == 5


@pytest.mark.parametrize(
    ("text", "use", "fault"),
    [
        ("uniform float mouse;", "mouse", "uniform mouse is not the vec4 that the picture sets"),
        ("uniform int u_time;", "u_time", "uniform u_time is not the float that the picture sets"),
        ("uniform vec4 resolution;", "resolution.w", "uniform resolution is not the vec3 that the picture sets"),
        ("uniform vec2 iChannel0;", "iChannel0.x", "uniform iChannel0 is not the sampler2D that the picture sets"),
        ("uniform float a; uniform float b;", "b", "uniform b must be declared in a line of its own"),
        ("#define NAME mouse\nuniform float NAME;", "NAME", "uniform mouse is not the vec4"),
        ("uniform struct S { float a; } s;", "s.a", "uniform s.a must be declared in a line of its own"),
    ],
)
def test_a_uniform_that_cannot_be_set_is_one_sentence(opened, text, use, fault):
    """Each was an internal error when the toy was drawn."""
    picture, settings = opened(f"{text}\nvoid mainImage(out vec4 c, in vec2 p) {{ c = vec4({use}); }}")
    with pytest.raises(InputError, match=f"toy.glsl: {fault}"):
        picture.draw(settings, SIZE, 0.0)


def test_uniforms_may_be_shorter_or_wider_than_what_the_picture_sets(opened):
    text = "uniform vec2 mouse;\nuniform vec2 u_resolution;\nuniform float u_frame;\nuniform bool iFrame;"
    use = "vec4(u_resolution.x / 100.0, u_frame / 10.0, float(iFrame), 1)"
    picture, settings = opened(f"{text}\nvoid mainImage(out vec4 c, in vec2 p) {{ c = {use} + mouse.xyxy * 0.0; }}")
    close(shown(picture, settings, 0.05)[0, 0], [0.24, 0.3, 1])


def test_the_passes_are_shown_as_pictures(opened):
    picture, settings = opened(FEEDBACK)
    before = picture.draw(settings, SIZE, 5 / 60).read()
    view = picture.algorithm("passes", settings, SIZE)
    assert [row["pass"] for row in view.rows] == ["Buffer A", "Buffer B", "Image"] and view.first == 2
    assert view.rows[0]["size"] == "24 x 16" and view.rows[0]["bytes"] == 24 * 16 * 16
    wanted = feedback(5)[::-1]
    close(view.step(0).values[..., 0], wanted[..., 0])
    close(view.step(1).values[..., 0], wanted[..., 1])
    np.testing.assert_array_equal(picture.draw(settings, SIZE, 5 / 60).read(), before)
