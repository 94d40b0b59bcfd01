"""What README.md shows is true: its commands are understood, its Python gives arrays, its scene is a scene.

tests/packaging/test_blocks.py runs every block with the wheel alone.
"""

import re
import shlex
import tomllib

import numpy as np
import pytest

import renderer
from renderer import cli
from renderer.paths import ROOT
from renderer.pictures import load

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[list[str]]:
    """The words of every `rayfold` line in the README's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", TEXT, re.S)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("rayfold ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_are_understood(words):
    args = cli.build_parser().parse_args(words)
    assert args.command == words[0]


def test_the_scene_of_the_readme_is_a_scene(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", TEXT, re.S)
    assert tomllib.loads(text)["picture"] == "raytrace"
    (tmp_path / "ball.toml").write_text(text)
    scene = load(tmp_path / "ball.toml")
    assert scene.title == "A silver ball" and scene.size == (800, 600)
    image = renderer.render(scene, size=(64, 48), samples=4)
    assert image.displayed()[..., :3].std() > 40  # no gray on gray


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    (text,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(text.replace("(320, 240)", "(32, 24)").replace("samples=8", "samples=1"), "README.md", "exec"), names)
    assert names["image"].shape == (24, 32, 4) and names["image"].dtype == np.float32
    assert (tmp_path / "box.png").exists()
