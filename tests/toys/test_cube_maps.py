"""Cube maps of channels: six pictures, crosses and strips, read as OpenGL orients faces; and what is refused."""

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.formats.images import write_png
from renderer.toys.program import with_absolute_images
from tests.toys.helpers import SIZE, close, shown

SIDE = 4
AXES = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
TOY = """// iChannel0: {} nearest
void mainImage(out vec4 c, in vec2 p) {{ c = texture(iChannel0, {}); }}"""
CELLS = {
    (4, 3): [(2, 1), (0, 1), (1, 0), (1, 2), (1, 1), (3, 1)],
    (3, 4): [(2, 1), (0, 1), (1, 0), (1, 2), (1, 1), (1, 3)],
    (6, 1): [(k, 0) for k in range(6)],
    (1, 6): [(0, k) for k in range(6)],
}


def faces() -> np.ndarray:
    """Each texel holds its own direction: the center of the texel on the cube of side 2, -1 to 1 as 0 to 255.

    By the table of the OpenGL specification (3.8.10): the axis of a face, and which way its columns and rows run.
    """
    ways = [((0, 0, -1), (0, -1, 0)), ((0, 0, 1), (0, -1, 0)), ((1, 0, 0), (0, 0, 1)),
            ((1, 0, 0), (0, 0, -1)), ((1, 0, 0), (0, -1, 0)), ((-1, 0, 0), (0, -1, 0))]  # fmt: skip
    at = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
    rows = [
        np.array(axis) + at[None, :, None] * np.array(right) + at[:, None, None] * np.array(down)
        for axis, (right, down) in zip(AXES, ways, strict=True)
    ]
    return np.round((np.stack(rows) * 0.5 + 0.5) * 255).astype("u1")


def sheet(columns: int, rows: int) -> np.ndarray:
    image = np.zeros((rows * SIDE, columns * SIDE, 3), "u1")
    for k, (x, y) in enumerate(CELLS[columns, rows]):
        face = faces()[k][::-1, ::-1] if (columns, rows, k) == (3, 4, 5) else faces()[k]
        image[y * SIDE : (y + 1) * SIDE, x * SIDE : (x + 1) * SIDE] = face
    return image


@pytest.mark.parametrize("layout", [*CELLS, "six"], ids=str)
def test_a_direction_reads_the_texel_that_holds_it(opened, tmp_path, layout):
    if layout == "six":
        for k in range(6):
            write_png(tmp_path / f"f{k}.png", faces()[k])
        names = ", ".join(f"f{k}.png" for k in range(6))
    else:
        names = "sky.png"
        write_png(tmp_path / names, sheet(*layout))
    for axis in AXES:
        # A point of the face that is in no corner, so that a turned or mirrored face shows.
        texel = [0.25 if abs(a) == 0 else a for a in axis]
        texel[next(k for k in range(3) if axis[k] == 0)] = -0.75
        direction = "vec3({}, {}, {})".format(*map(float, texel))
        found = shown(*opened(TOY.format(f"{names} cube", direction)))[0, 0]
        close(found, np.array(texel) * 0.5 + 0.5, 4e-3)


def test_its_resolution_is_a_faces(opened, tmp_path):
    write_png(tmp_path / "sky.png", sheet(4, 3))
    text = TOY.format("sky.png cube", "vec3(1)").replace("c =", "c = vec4(iChannelResolution[0] / 8.0, 1) + 0.0 *")
    close(shown(*opened(text), 0.0, SIZE)[0, 0, :2], [0.5, 0.5])


BAD = [
    ("a.png, b.png cube", "a cube map is one image, a cross or a strip, or six images"),
    ("noise cube", "a cube map is one image"),
    ("sky.wav cube", "sound, video, microphone and webcam are not read"),
    ("../../x.png cube", "it must lie in"),
    ("sky.png, sky.png, sky.png, sky.png, sky.png, absent.png cube", "there is no"),
    *(
        (name, "are not read")
        for name in ("microphone", "mic", "webcam", "sound", "music", "song.mp3", "Video", "a.webm")
    ),
]


@pytest.mark.parametrize("channel, sentence", BAD, ids=[channel for channel, _ in BAD])
def test_a_channel_that_cannot_be_read_is_one_sentence(opened, tmp_path, channel, sentence):
    write_png(tmp_path / "sky.png", sheet(4, 3))
    with pytest.raises(InputError, match=sentence) as raised:
        opened(TOY.format(channel, "vec3(1)"))
    assert "toy.glsl:1: iChannel0 is" in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("shape", [(8, 8), (4, 25), (3, 4), (1, 1)])
def test_a_picture_of_another_shape_names_its_size(opened, tmp_path, shape):
    write_png(tmp_path / "sky.png", np.zeros((*shape, 3), "u1"))
    picture, settings = opened(TOY.format("sky.png cube", "vec3(1)"))
    if shape == (3, 4):  # faces of one texel
        assert shown(picture, settings).max() == 0
        return
    with pytest.raises(InputError, match=f"sky.png: is no cube map: {shape[1]} x {shape[0]} pixels; allowed are"):
        picture.draw(settings, SIZE, 0.0)


def test_six_pictures_have_one_size(opened, tmp_path):
    for k in range(6):
        write_png(tmp_path / f"f{k}.png", np.zeros((4, 5 if k == 3 else 4, 3), "u1"))
    picture, settings = opened(TOY.format(", ".join(f"f{k}.png" for k in range(6)) + " cube", "vec3(1)"))
    with pytest.raises(InputError, match="f3.png: is a face of 5 x 4 pixels; all six must be 4 x 4"):
        picture.draw(settings, SIZE, 0.0)


def test_a_copy_names_all_six_by_absolute_paths(tmp_path):
    copied = with_absolute_images("// iChannel0: a.png, /b.png, c.jpg cube\n", tmp_path)
    assert copied == f"// iChannel0: {tmp_path}/a.png, /b.png, {tmp_path}/c.jpg cube\n"


def test_a_direction_into_a_flat_channel_says_how_to_name_a_cube_map(opened):
    picture, settings = opened("void mainImage(out vec4 c, in vec2 p) { c = texture(iChannel1, vec3(1)); }")
    with pytest.raises(InputError, match="`// iChannel1: FILE cube` makes the channel a cube map"):
        picture.draw(settings, SIZE, 0.0)
