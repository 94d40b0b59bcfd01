"""Films of animated models: a killed run resumes, a still is a frame, a recipe draws it again."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, ball
from renderer.errors import UserError
from renderer.export.options import ExportOptions
from renderer.export.plan import make_plan
from renderer.formats.images import read_pixels
from renderer.paths import ROOT
from tests.export.export_helpers import export
from tests.formats.test_gltf_animation import animate

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.fixture
def model(tmp_path):
    maker = Maker()
    maker.node(mesh=ball(maker, 6))
    first = animate(maker, 0, "translation", (0.0, 1.0), [[0, 0, 0], [1, 0, 0]])
    second = animate(maker, 0, "scale", (0.0, 0.5), [[1, 1, 1], [0.2, 1, 1]])
    maker.tree["animations"][first]["name"], maker.tree["animations"][second]["name"] = "slide", "squeeze"
    path = tmp_path / "model.glb"
    path.write_bytes(maker.glb())
    return path


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_killed_film_of_a_model_resumes_to_the_same_frames(model, tmp_path):
    words = ["--size", "32x24", "--samples", 2, "--frames", "1-12", "--animation", "squeeze", "--device", "cpu"]
    for folder in ("killed", "whole"):
        (tmp_path / folder).mkdir()
    command = ["export", model, *words, "-o", tmp_path / "killed/f_##.png"]
    process = subprocess.Popen([sys.executable, str(ROOT / "main.py"), *map(str, command)], stderr=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)  # fmt: skip
    while not (tmp_path / "killed/f_03.png").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(list((tmp_path / "killed").glob("*.png"))) < 12, "it was not killed in time"
    export(model, *words, "-o", tmp_path / "killed/f_##.png")
    export(model, *words, "-o", tmp_path / "whole/f_##.png")
    frames = [
        [read_pixels(tmp_path / f"{folder}/f_{n:02}.png") for n in range(1, 13)] for folder in ("killed", "whole")
    ]
    assert all(np.array_equal(one, two) for one, two in zip(*frames, strict=True))
    assert not np.array_equal(frames[0][0], frames[0][8])
    told = export(model, *words[:4], *words[6:], "--time", 8 / 24, "-o", tmp_path / "still.png", "--json").stdout
    assert json.loads(told)["animations"] == ["slide", "squeeze"]
    assert np.array_equal(read_pixels(tmp_path / "still.png"), frames[0][8]), "a still shows the time asked for"
    subprocess.run([sys.executable, str(ROOT / "main.py"), "verify", str(tmp_path / "still.png")], check=True)


def test_a_film_lasts_as_long_as_its_animation(model, tmp_path):
    pytest.importorskip("av", reason="films need av")
    options = ExportOptions(model, tmp_path / "a.mp4")
    for name, frames in ((None, 24), ("slide", 24), ("squeeze", 12), ("1", 12)):
        assert len(make_plan(replace(options, animation=name)).numbers) == frames
    with pytest.raises(UserError, match="--animation run: no model has it; .*: allowed are slide, squeeze"):
        make_plan(replace(options, animation="run"))
    with pytest.raises(UserError, match="--animation run: .*koch.toml is no model and has none"):
        make_plan(replace(options, animation="run", input=ROOT / "scenes/koch.toml"))
    with pytest.raises(UserError, match="1 s at 2000000 frames a second are too many; 1000000 are allowed"):
        make_plan(replace(options, fps=2_000_000))
