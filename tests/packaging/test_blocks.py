"""Every block of README.md and the guides runs from an empty folder with the wheel alone, at a small size.

One process runs the commands of the shell blocks in their order, another the Python blocks of each page, so that the
program is imported once. test_readme.py and test_guides.py test what the blocks mean.
"""

import json
import re
import shlex
import textwrap
from importlib.util import find_spec

import pytest

import renderer
from renderer.paths import ROOT, SCENES
from tests.docs.inputs import write_inputs
from tests.packaging.conftest import in_empty_folder

PAGES = [ROOT / "README.md", *sorted((ROOT / "assets/guides").glob("*.md"))]
RUN_COMMANDS = """
import json, sys, time
from renderer.cli import main
for words, code in json.load(open("commands.json")):
    start = time.process_time()
    found = main(words)
    print("command", round(time.process_time() - start, 2), " ".join(words), flush=True)
    assert found == code, (words, found)
"""
RUN_PYTHON = """
import json, time
import numpy as np
rng = np.random.default_rng(3)
ab = rng.standard_normal((5, 40)) + 8 * (np.arange(5) == 2)[:, None]
given = {"numbers": rng.standard_normal(1000), "ab": ab, "kl": 2, "ku": 2, "b": rng.standard_normal(40)}
for page, blocks in json.load(open("blocks.json")).items():
    names, start = dict(given), time.process_time()
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number}", "exec"), names)
    print("page", round(time.process_time() - start, 2), page, flush=True)
"""
# What makes a command small enough; the last word of an option wins. Cornell's kernels are compiled once for all.
SMALL = {
    "gallery": ["mandelbrot", "--samples", "1"],
    "export": ["--size", "16x12", "--samples", "1"],
    "bench run": ["--seconds", "0.01", "--size", "16x12"],
    "lesson sums": ["--seconds", "0.01", "--width", "16", "--samples", "1"],
}
FEWER = {  # and scenes whose programs are compiled for others already
    "menger": "cornell", "orrery": "cornell", "16384x16384": "64x48", "1024x1024": "32x24", "1-240": "1-2",
    "1-48": "1-2", "1-100": "1-2", "17x17": "2x2",
}  # fmt: skip
# What needs a display, waits for a browser, compares commits or draws for minutes is tested elsewhere.
ELSEWHERE = {
    "view": "tests/window", "serve": "tests/window/test_remote.py", "lesson": "tests/lessons",
    "warm": "tests/test_warm.py",
    "bench find": "tests/bench", "bench report ab.jsonl": "tests/bench",
    "bench ab": "tests/bench/test_ab.py", "bench aa": "tests/bench/test_ab.py", "demo": "tests/export/test_demo.py",
}  # fmt: skip
SMALLER = {
    "(320, 240)": "(32, 24)", "samples=8": "samples=1", '"mirrors", samples=64': '"mirrors", size=(16, 12), samples=4',
    "(640, 480)": "(16, 12)", "samples=64": "samples=1", "quality=20.0": "quality=1.0", "(160, 120)": "(16, 12)",
    "quality=5.0": "quality=1.0", ", 48)": ", 2)",
    # A solid out of sight: the kernels are those of the block before.
    'spheres=[{"material": "gold"}],': 'spheres=[{"material": "gold"}], solids=[{"material": "gold", "kind": "torus", '
                                       '"position": [0, -90, 0]}],',
}  # fmt: skip


def is_elsewhere(words):
    if "--repo" in words or any(word.startswith("~") for word in words):
        return True  # of the bench guide, for a repository of the reader's
    if words[1:2] == ["sales.parquet"] and find_spec("pyarrow") is None:
        return True
    return any(words[: len(name.split())] == name.split() for name in ELSEWHERE)


def commands() -> list[list[str]]:
    """The words of every `rayfold` line of the shell blocks."""
    blocks = [b for page in PAGES for b in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.S)]
    lines = [line for b in blocks for line in b.replace("\\\n", " ").splitlines() if line.startswith("rayfold ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def small(words: list[str]) -> list[str]:
    """The command at a small size."""
    assert all((SCENES / f"{name}.toml").exists() for name in {"menger", "orrery"} & set(words))
    words = [FEWER.get(word, word) for word in words]
    if words[:2] == ["bench", "run"]:  # one case of the scene's six
        words = [f"{word}/max_depth=1" if word == "mirrors" else word for word in words]
    if "--farm" in words:  # which tests/export/test_farm.py starts
        del words[words.index("--farm") : words.index("--farm") + 2]
    if "julia" in words and "bench" not in words or "16384x16384" in words:
        return [*words, "--size", "16x12", "--samples", "1"]
    return words + next((more for start, more in SMALL.items() if " ".join(words).startswith(start)), [])


def test_commands_run(installed, tmp_path):
    write_inputs(tmp_path)
    for package in ("av", "OpenEXR"):
        pytest.importorskip(package, reason=f"a command of the README needs {package}")
    chosen = [small(words) for words in commands() if not is_elsewhere(words)]
    assert len(chosen) > 20 and ["run", "product", "--in", "a=a.npy", "--in", "b=b.npy", "-o", "c.npy"] in chosen
    (tmp_path / "commands.json").write_text(json.dumps([[words, 0] for words in chosen]))
    done = in_empty_folder(installed, tmp_path, "-c", RUN_COMMANDS)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-800:] + done.stderr[-2000:]
    for words in chosen:
        if "-o" in words:
            output = tmp_path / words[words.index("-o") + 1]
            assert output.exists() or list(tmp_path.glob("out_*.png")), f"{output.name} was not written"


def test_python_runs(installed, tmp_path):
    pages = {}
    for page in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
        blocks = [block for block in blocks if not block.startswith(" ")]  # a line of a larger file
        blocks = [block for block in blocks if "duckdb" not in block]  # no dependency; test_exact_blas.py takes it
        for before, after in SMALLER.items():
            blocks = [block.replace(before, after) for block in blocks]
        if blocks and page.name != "pictures.md":  # a module to be written, which test_guides.py writes
            pages[page.name] = blocks
    example = textwrap.dedent(re.search(r"(?ms)^ +scene = .*fps=24\)$", renderer.film.__doc__)[0])
    pages["help(renderer.film)"] = ["import renderer", example.replace("fps=24", "fps=1, size=(16, 12), samples=1")]
    assert {"README.md", "api.md", "sums.md", "band_lu.md", "flames.md", "matmul.md"} <= set(pages)
    (tmp_path / "pack.flame").write_bytes((SCENES / "voyage.flame").read_bytes())
    (tmp_path / "blocks.json").write_text(json.dumps(pages))
    done = in_empty_folder(installed, tmp_path, "-c", RUN_PYTHON)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-800:] + done.stderr[-2000:]


@pytest.mark.parametrize("words", [words for words in commands() if is_elsewhere(words)], ids=" ".join)
def test_the_others_are_tested_elsewhere(words):
    places = {place for name, place in ELSEWHERE.items() if words[: len(name.split())] == name.split()}
    assert all((ROOT / place).exists() for place in places or {"tests/bench"})
