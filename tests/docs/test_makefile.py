"""The Makefile's commands name what the program has."""

import re

from renderer.cli import main
from renderer.paths import ROOT


def test_cases_of_the_demo_exist(capsys):
    (words,) = re.findall(r"main\.py bench run (.+?) --", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert main(["bench", "list"]) == 0
    listed = capsys.readouterr().out.split("\n")
    assert words.split() and all(name in listed for name in words.split())
