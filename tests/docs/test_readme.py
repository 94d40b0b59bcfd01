"""What README.md shows is true: its commands run, its Python runs, its scene is a scene."""

import re
import shlex
import tomllib

import numpy as np
import pytest

from renderer import cli
from renderer.paths import ROOT
from renderer.pictures import load
from tests.docs.inputs import write_inputs

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
# What makes a command small enough for a test; the last word of an option wins.
SMALL = {
    "gallery": ["--samples", "1"],
    "export": ["--size", "32x24", "--samples", "1"],
    "bench run": ["--seconds", "0.01", "--size", "32x24"],
    "lesson sums": ["--seconds", "0.01", "--width", "32", "--samples", "1"],
}
FEWER = {
    "16384x16384": "64x48",
    "1024x1024": "32x24",
    "1-240": "1-2",
    "1-100": "1-2",
    "17x17": "2x2",
    "local:4": "local:1",
}
# Commands that need a display or a server, or compare commits for minutes: only their words are checked here.
WORDS_ONLY = ("view", "serve", "demo", "warm", "lesson stencil", "bench ab", "bench aa", "bench report", "run")


def commands() -> list[list[str]]:
    """The words of every `rayfold` line in the README's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", TEXT, re.S)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("rayfold ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_are_understood(words):
    args = cli.build_parser().parse_args(words)
    assert args.command == words[0]


@pytest.mark.slow
@pytest.mark.parametrize("words", [w for w in commands() if not " ".join(w).startswith(WORDS_ONLY)], ids=" ".join)
def test_commands_run(words, tmp_path, monkeypatch):
    """Each command does its work, on inputs made here and at a small size, and writes the file that it names."""
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    if "--denoise" in words:
        pytest.importorskip("pyoidn")
    if any(word.endswith((".mp4", ".webm")) for word in words):
        pytest.importorskip("av")
    words = [FEWER.get(word, word) for word in words]
    extra = next((more for start, more in SMALL.items() if " ".join(words).startswith(start)), [])
    if "--light-field" in words:
        extra = ["--size", "32x24", "--samples", "1"]
    assert cli.main([*words, *extra]) == 0
    if "-o" in words:
        output = tmp_path / words[words.index("-o") + 1]
        assert output.exists() or list(tmp_path.glob("out_*.png")), f"{output.name} was not written"


def test_the_scene_of_the_readme_is_a_scene(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", TEXT, re.S)
    assert tomllib.loads(text)["picture"] == "raytrace"
    (tmp_path / "ball.toml").write_text(text)
    scene = load(tmp_path / "ball.toml")
    assert scene.title == "A silver ball" and scene.size == (800, 600)


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    (text,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(text.replace("(320, 240)", "(32, 24)").replace("samples=8", "samples=1"), "README.md", "exec"), names)
    assert names["image"].shape == (24, 32, 4) and names["image"].dtype == np.float32
    assert (tmp_path / "box.png").exists()
