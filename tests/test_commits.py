"""The check of commit messages: what it refuses and what it lets pass."""

import runpy

import pytest

from renderer.paths import ROOT

CHECK = runpy.run_path(str(ROOT / ".ci" / "check_commits.py"), run_name="check_commits")
problems_of_message = CHECK["problems_of_message"]


@pytest.mark.parametrize("message, lines, words", [
    ("Move files into folders", 50, []),
    ("Flames: group variations by what they draw\n\nA menu and a file are one list now.", 900, []),
    ("Speed up the sort", 3, []),
    ("x" * 73, 1, ["73 characters"]),
    ("", 1, ["0 characters"]),
    ("Fixed the sort", 1, ["no imperative"]),
    ("Sums: adding a mode", 1, ["no imperative"]),
    ("Farms: a second one of a machine does not warn of a port", 1, ["no imperative"]),
    ("Add a sort.", 1, ["period"]),
    ("Add a sort\nand a scan", 1, ["second line"]),
    ("Add a sort", 51, ["no body"]),
    ("Add a sort\n\n# a comment of git's", 51, ["no body"]),
])  # fmt: skip
def test_messages(message, lines, words):
    problems = problems_of_message(message, lines)
    assert len(problems) == len(words) and all(word in problem for word, problem in zip(words, problems, strict=True))


def test_changed_lines_count_text_files():
    assert CHECK["changed_lines"]("3\t4\ta.py\n-\t-\ta.png\n10\t0\tb c.h\n") == 17


def test_the_pattern_of_conflict_marks():
    import re

    marks = re.compile(CHECK["MARKS"], re.MULTILINE)
    assert all(marks.search(f"x\n{mark * 7} ours\n") for mark in "<>|")
    assert not marks.search("a << 7\n" + "=" * 7 + "\n<<<<<< six")
