"""What shaders of strangers rely on beside the documented uniforms."""

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.gpu import DeviceContext
from renderer.pictures import load
from renderer.pictures.toy import Picture, program_of
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


def test_gl_es_is_defined_as_on_shadertoy(opened):
    text = """#ifdef GL_ES
    precision mediump float;
    #define VALUE 0.25
    #endif
    void mainImage(out vec4 c, in vec2 p) { c = vec4(VALUE); }"""
    close(shown(*opened(text)), 0.25)


def test_a_tab_in_a_file_of_its_own(tmp_path):
    entry = "void mainImage(out vec4 c, in vec2 p) { c = %s; }\n"
    (tmp_path / "image.glsl").write_text(entry % "level + texture(iChannel0, vec2(0))")
    for name in ("Common", "buffer-a", "BufB", "notes", "buffer_e"):
        (tmp_path / f"{name}.glsl").write_text("vec4 level = vec4(0.5);" if name == "Common" else entry % "level")
    scene = load(tmp_path / "image.glsl")
    program = program_of(scene.settings)
    assert list(program.passes) == ["Buffer A", "Buffer B", "Image"] and program.common.path.name == "Common.glsl"
    assert program.channels["Image"][0].source == "Buffer A" and scene.title == tmp_path.name.replace("_", " ")
    (tmp_path / "photo.glsl").write_text(entry % "vec4(0)")
    assert list(program_of(load(tmp_path / "photo.glsl").settings).passes) == ["Image"]  # no tab of a shader


def test_a_file_that_is_included_is_the_tab_common(tmp_path, gl):
    (tmp_path / "shared.glsl").write_text("float level() { return 0.5; }")
    text = "#include <shared.glsl>\nvoid mainImage(out vec4 c, in vec2 p) { c = vec4(level()); }"
    (tmp_path / "toy.glsl").write_text(text)
    scene = load(tmp_path / "toy.glsl")
    picture = Picture(DeviceContext(gl=gl))
    close(shown(picture, scene.settings), 0.5)
    (tmp_path / "toy.glsl").write_text(text.replace("shared", "../shared"))  # no file of another folder is read
    with pytest.raises(InputError, match=r"toy.glsl:1: GLSL has no #include"):
        shown(Picture(DeviceContext(gl=gl)), load(tmp_path / "toy.glsl").settings)


def test_main_of_another_program_gives_way_to_main_image(opened):
    text = """void mainImage(out vec4 c, in vec2 p) { c = vec4(0.25); }
    #ifdef OTHER
    out vec4 color; void main() { mainImage(color, gl_FragCoord.xy); }
    #endif"""
    close(shown(*opened(text)), 0.25)
    plain = "out vec4 color;\n#if 1\nvoid main() { color = vec4(0.75, 0.75, 0.75, 1); }\n#endif"
    close(shown(*opened(plain)), 0.75)


def test_uniforms_of_the_picture_that_an_if_hides(opened):
    text = """#ifdef OTHER
    layout(location = 0) uniform vec3 iResolution;
    uniform highp float iTime;
    #endif
    uniform vec2 iMouse;  // of a type of its own
    void mainImage(out vec4 c, in vec2 p) { c = vec4(iTime, iResolution.x / 1000.0, iMouse.x, 1); }"""
    close(shown(*opened(text), 0.5)[0, 0], [0.5, 0.024, 0.0])


def test_a_channel_with_a_comment_behind_it(opened):
    text = (
        '#iChannel0 "keyboard"   // and a remark\nvoid mainImage(out vec4 c, in vec2 p) { c = texture(iChannel0, p); }'
    )
    picture, settings = opened(text)
    assert program_of(settings).channels["Image"][0].source == "keyboard"
