"""Words that this project retired: each has its field's word, and none of them comes back.

The left side is what is looked for in code, shaders, scenes and tests (whole words); the right side is the word to use.
"""

import re
from subprocess import run

import pytest

from renderer.paths import ROOT

SPELLING = {
    "colour": "color", "colours": "colors", "coloured": "colored", "centre": "center", "centres": "centers",
    "centred": "centered", "grey": "gray", "neighbour": "neighbor", "neighbours": "neighbors",
    "neighbouring": "neighboring", "normalise": "normalize", "normalised": "normalized", "initialise": "initialize",
    "initialised": "initialized", "quantise": "quantize", "quantised": "quantized", "optimise": "optimize",
    "optimised": "optimized", "factorise": "factorize", "factorised": "factorized",
    "factorisation": "factorization", "recognise": "recognize", "recognised": "recognized", "behaviour": "behavior",
    "unpolarised": "unpolarized", "equalise": "equalize", "specialised": "specialized",
    "parallelise": "parallelize", "vectorise": "vectorize", "analyse": "analyze", "catalogue": "catalog",
}  # fmt: skip
NAMES: dict[str, str] = {}
HERE = "tests/test_words.py"
SUFFIXES = (".py", ".cu", ".h", ".frag", ".cb", ".toml", ".md", ".html", ".yml")


def texts() -> dict[str, str]:
    """The text of every file of the project that people read, by its path."""
    listed = run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in listed if name.endswith(SUFFIXES) and name != HERE]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names if (ROOT / name).exists()}


@pytest.mark.parametrize("words", [SPELLING, NAMES], ids=["spelling", "names"])
def test_no_retired_word_returns(words):
    if not words:
        return
    pattern = re.compile(rf"(?<![A-Za-z])({'|'.join(map(re.escape, words))})(?![A-Za-z])", re.IGNORECASE)
    found = []
    for name, text in texts().items():
        for number, line in enumerate(text.splitlines(), 1):
            found += [f"{name}:{number}: {match[1]} -> {words[match[1].lower()]}" for match in pattern.finditer(line)]
    assert not found, "\n".join(found[:40])
