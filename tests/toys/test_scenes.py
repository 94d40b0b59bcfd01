"""Toys among the scenes: each draws, moves with the time, and shows what its buffers hold."""

import re
from dataclasses import replace

import numpy as np
import pytest

from renderer.gpu import DeviceContext
from renderer.paths import SCENES
from renderer.pictures import load
from renderer.pictures.toy import Picture, program_of
from tests.toys.helpers import shown

TOYS = sorted(path.stem for path in SCENES.glob("*.glsl"))
SIZE = (48, 27)
FRAMES = {"weaving": 25, "ridges": 9, "marbling": 16}  # of the later picture, where 6 are too few to see


@pytest.mark.parametrize("name", TOYS)
def test_a_toy_draws_moves_and_shows_its_buffers(gl, tmp_path, name):
    picture, settings = Picture(DeviceContext(gl=gl)), load(SCENES / f"{name}.glsl").settings
    program = program_of(settings)
    first = shown(picture, settings, 0.0, SIZE)
    later = shown(picture, settings, FRAMES.get(name, 6) / settings.rate, SIZE)
    assert np.isfinite(later).all() and later.std() > 0.01
    assert np.abs(later - first).max() > 0.01 and picture.depends_on_time(settings)
    if not program.buffers:
        return
    text = (SCENES / f"{name}.glsl").read_text(encoding="utf-8")
    entry, blank = (
        r"// ---- (Buffer [A-D]) ----.*?(?=// ---- )",
        "void mainImage(out vec4 c, in vec2 p) { c = vec4(0); }",
    )
    empty = re.sub(entry, rf"// ---- \1 ----\n{blank}\n", text, flags=re.S)
    (tmp_path / "empty.glsl").write_text(empty, encoding="utf-8")
    other = load(tmp_path / "empty.glsl").settings
    same = {key: getattr(settings, key) for key in ("mouse", "keys", "toggled")}
    without = shown(Picture(DeviceContext(gl=gl)), replace(other, **same), FRAMES.get(name, 6) / settings.rate, SIZE)
    assert np.abs(later - without).max() > 0.1


def test_the_scenes_use_every_input():
    text = "".join((SCENES / f"{name}.glsl").read_text(encoding="utf-8") for name in TOYS)
    inputs = "iTime iTimeDelta iFrame iMouse iDate iResolution iChannelResolution keyboard noise".split()
    missing = [name for name in [*inputs, "Buffer D", "Common", "mipmap", "// color"] if name not in text]
    assert len(TOYS) >= 19 and not missing
