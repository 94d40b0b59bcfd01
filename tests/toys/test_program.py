"""Reading toys: tabs, channels, uniforms, and the sentences of what is wrong."""

import json

import numpy as np
import pytest

import renderer
from renderer.cli import main
from renderer.errors import InputError, UserError
from renderer.formats.images import write_png
from renderer.pictures import load, scene_of_table
from renderer.pictures.toy import program_of
from renderer.system.trust import Limits
from renderer.toys.program import MAX_BYTES, Channel

ENTRY = "void mainImage(out vec4 c, in vec2 p) { c = vec4(0); }\n"


@pytest.fixture
def program(tmp_path):
    """Reads a text as the program of a .glsl file."""

    def read(text: str):
        path = tmp_path / "toy.glsl"
        path.write_text(text)
        return program_of(load(path).settings)

    return read


def test_a_text_without_tabs_is_the_image(program):
    assert list(program(ENTRY).passes) == ["Image"]
    assert not program(ENTRY).buffers
    assert not program(ENTRY).depends_on_time


@pytest.mark.parametrize("head", ["// {}", "//{}", "// ---- {} ----", "/* {} */", "// [{}]", "//== {}:"])
def test_comments_of_names_begin_tabs(program, head):
    heads = [head.format(name) for name in ("Common", "Buffer A", "buf b", "Image")]
    read = program(f"{heads[0]}\nfloat f;\n{heads[1]}\n{ENTRY}{heads[2]}\n{ENTRY}{heads[3]}\n{ENTRY}")
    assert list(read.passes) == ["Buffer A", "Buffer B", "Image"]
    assert read.common is not None and "float f" in read.common.text
    assert [tab.line for tab in read.passes.values()] == [3, 5, 7]


def test_a_stray_comment_is_no_tab(program):
    read = program(f"// Image\nfloat f;\n// Buffer A\nfloat g;\n{ENTRY}")
    assert list(read.passes) == ["Image"] and "float f" in read.passes["Image"].text


def test_text_before_the_first_tab_is_the_image_or_common(program):
    assert program(f"{ENTRY}// Buffer A\n{ENTRY}").passes.keys() == {"Buffer A", "Image"}
    read = program(f"float f;\n// Buffer A\n{ENTRY}// Image\n{ENTRY}")
    assert read.common is not None and read.common.line == 1


def test_channels_by_comment(program, tmp_path):
    write_png(tmp_path / "two words.png", np.zeros((2, 3, 3), "u1"))
    image = (
        "// iChannel0: Buffer A\n// iChannel1: keyboard\n// iChannel2: two words.png nearest clamp\n"
        f"// iChannel3 = noise mipmap\n{ENTRY}"
    )
    read = program(f'// Buffer A\n#iChannel0 "self"\n{ENTRY}// Image\n{image}')
    path = str(tmp_path / "two words.png")
    expected = [Channel("Buffer A"), Channel("keyboard", "nearest"), Channel(path, "nearest"),
                Channel("noise", "mipmap", True)]  # fmt: skip
    assert list(read.channels["Image"]) == expected
    assert read.channels["Buffer A"][0].source == "Buffer A"
    assert read.reads_keyboard and read.images == [path] and not read.notes


def test_a_channel_that_nothing_names_is_the_buffer_of_its_number_and_is_told(program):
    use = ENTRY.replace("vec4(0)", "texture(iChannel0, p) + texture(iChannel1, p)")
    read = program(f"// Buffer A\n{ENTRY}// Image\n{use}")
    assert [channel.source for channel in read.channels["Image"]] == ["Buffer A", "noise", "", ""]
    assert [note.split(":")[0] for note in read.notes] == [
        "iChannel0 of Image is Buffer A", "iChannel1 of Image is noise",
    ]  # fmt: skip


UNIFORMS = [
    ("uniform float speed; // 0 to 1", ("speed", float, 0.5, 0, 1)),
    ("uniform float speed = 0.25;  // of the waves, 0 to 2.5", ("speed", float, 0.25, 0, 2.5)),
    ("uniform highp int count; // 1 to 9, default 3", ("count", int, 3, 1, 9)),
    ("uniform bool on = true;", ("on", bool, True, None, None)),
    ("uniform vec2 at = vec2(1, -2.5); // -3 to 3", ("at", tuple[float, float], (1, -2.5), -3, 3)),
    ("uniform vec3 tint; // color", ("tint", tuple[float, float, float], (1, 1, 1), None, None)),
    ("uniform float mouse_, class; // 0 to 2", ("class_", float, 1, 0, 2)),
    ("uniform float rate; // 5 to 7", ("rate_", float, 6, 5, 7)),
]


@pytest.mark.parametrize("text, expected", UNIFORMS, ids=[text for text, _ in UNIFORMS])
def test_a_uniform_is_a_setting(program, text, expected):
    uniform = program(f"{text}\n{ENTRY}").uniforms[-1]
    name, kind, field = uniform.field
    assert (name, kind, field.default, field.metadata["low"], field.metadata["high"]) == expected
    assert field.metadata["is_color"] == ("color" in text)


def test_uniforms_that_the_picture_sets_are_no_settings(program):
    text = "uniform float iTime;\nuniform vec2 u_resolution;\nuniform sampler2D iChannel0;\nuniform vec3 iResolution;\n"
    assert program(text + ENTRY).uniforms == ()


def test_scene_files_name_tabs_and_channels(tmp_path):
    (tmp_path / "image.glsl").write_text(ENTRY)
    (tmp_path / "a.glsl").write_text(ENTRY)
    table = {"image": "image.glsl", "buffer_a": "a.glsl", "channels": {"image": ["", "Buffer A"]}}
    scene = scene_of_table({"picture": "toy", "settings": table}, tmp_path / "scene.toml")
    read = program_of(scene.settings)
    assert list(read.passes) == ["Buffer A", "Image"]
    assert [channel.source for channel in read.channels["Image"]] == ["", "Buffer A", "", ""]
    assert {path.name for path in scene.files} == {"image.glsl", "a.glsl"}


MISTAKES = [
    ("float f;\n", "toy.glsl:1: Image has no entry; it must define void mainImage(out vec4"),
    (f"uniform mat3 m;\n{ENTRY}", "toy.glsl:1: uniform mat3 m is no setting; allowed are float, int"),
    (f"// iChannel0: Buffer B\n{ENTRY}", "toy.glsl:1: iChannel0 is 'Buffer B', which the toy does not have"),
    (f"// iChannel0: x.wav\n{ENTRY}", 'toy.glsl:1: iChannel0 is "x.wav"; allowed are Buffer A'),
    (f"// iChannel1: ../../etc/x.png\n{ENTRY}", "it must lie in"),
    (f"// iChannel1: none.png\n{ENTRY}", "there is no"),
    ("\n".join(f"uniform float u{k};" for k in range(257)) + f"\n{ENTRY}", "has 257 uniforms; at most 256"),
    ("/" * (MAX_BYTES + 1), "larger than the 1 MiB"),
    (b"\xff\xfe", "not UTF-8 text"),
]


@pytest.mark.parametrize("text, sentence", MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_a_mistake_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "toy.glsl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as raised:
        load(path)
    assert sentence in str(raised.value) and "\n" not in str(raised.value)


UNIFORMS = "uniform float speed = 0.5;  // 0 to 1\nuniform vec2 shift = vec2(0);\nuniform bool lit = false;\n"
SAVED = """picture = "toy"
settings = { image = "a.glsl", rate = 30.0, speed = 0.25, shift = [1.0, 2.0], lit = true }
animation.keyframes = [{ time = 1.0, set = { "speed" = 1.0, "mouse.0" = 0.5 } }]
"""


def test_a_saved_value_whose_uniform_is_gone_is_a_note(tmp_path, capsys):
    """A scene whose shader lost or renamed a uniform did not open any more."""
    shader, scene = tmp_path / "a.glsl", tmp_path / "a.toml"
    scene.write_text(SAVED)
    shader.write_text(UNIFORMS + ENTRY)
    whole = load(scene)
    assert (whole.settings.speed, whole.notes, len(whole.animation.tracks)) == (0.25, (), 2)
    shader.write_text(UNIFORMS.replace("speed", "pace") + ENTRY)
    renamed = load(scene)
    assert renamed.notes == ("the value of speed has no uniform in a.glsl",)
    assert (renamed.settings.pace, renamed.settings.shift, renamed.settings.rate) == (0.5, (1.0, 2.0), 30.0)
    assert [track.path for track in renamed.animation.tracks] == ["mouse.0"]
    shader.write_text(ENTRY)
    notes = [f"the value of {name} has no uniform in a.glsl" for name in ("speed", "shift", "lit")]
    assert main(["export", str(scene), "-o", str(tmp_path / "a.png"), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == notes
    assert main(["export", str(scene), "-o", str(tmp_path / "a.png"), "--dry-run"]) == 0
    assert capsys.readouterr().err.startswith(f"rayfold: {scene}: {'; '.join(notes)}\n")
    for wrong in ('settings.outputs = "linear"', 'animation.keyframes = [{ set = { "outputs" = "linear" } }]'):
        scene.write_text(f'picture = "toy"\nsettings.image = "a.glsl"\n{wrong}\n')
        with pytest.raises(UserError, match="unknown key 'outputs'"):
            load(scene)
    with pytest.raises(UserError, match="unknown key 'speed'"):  # no file: a mistake of now
        renderer.Scene(picture="toy", image=str(shader), speed=0.5)


def test_an_unknown_tab_of_channels_is_named(tmp_path):
    (tmp_path / "image.glsl").write_text(ENTRY)
    table = {"image": "image.glsl", "channels": {"buffer_x": ["keyboard"]}}
    with pytest.raises(InputError, match="channels has 'buffer_x'; allowed are image, common"):
        scene_of_table({"picture": "toy", "settings": table}, tmp_path / "scene.toml")


def test_untrusted_runs_no_shader(tmp_path, monkeypatch):
    (tmp_path / "toy.glsl").write_text(ENTRY)
    monkeypatch.setattr(Limits, "refuses_programs", True)
    with pytest.raises(InputError, match="is a program, and --untrusted runs none"):
        load(tmp_path / "toy.glsl")
