"""Includes of kernel texts. The witness is a preprocessor that keeps the text of active branches."""

import re

import pytest

from renderer.gpu import kernel_source
from renderer.gpu.kernel_source import GeneratedSource, preprocess


def active_lines(text: str, macros: dict[str, int]) -> list[str]:
    """The lines of a text that a C preprocessor keeps, for conditions that name one macro."""
    known, open_, kept = dict(macros), [], []
    for line in text.splitlines():
        word = re.match(r"\s*#\s*(\w+)\s*(\w*)", line)
        if not word or word[1] == "include":
            kept += [line] * all(now for now, _ in open_)
        elif word[1] in ("if", "ifdef", "ifndef"):
            value = bool(known.get(word[2])) if word[1] == "if" else (word[2] in known) == (word[1] == "ifdef")
            open_.append((value, value))
        elif word[1] in ("else", "elif"):
            _, done = open_[-1]
            value = not done and (word[1] == "else" or bool(known.get(word[2])))
            open_[-1] = value, done or value
        elif word[1] == "endif":
            open_.pop()
        elif word[1] == "define" and all(now for now, _ in open_):
            known[word[2]] = 1
    return kept


FILES = {
    "a.h": '#include "b.h"\na',
    "b.h": "b",
    "c.h": '#if X\n#include "a.h"\n#elif Y\n#include "b.h"\n#else\n#include "d.h"\n#endif\nc',
    "d.h": '#if X\n#if Y\n#include "a.h"\n#include "b.h"\n#endif\n#endif\n#include "b.h"\n#include "d.h"\nd',
}


@pytest.mark.parametrize("order", ["cadb", "dcba", "acdd", "ccab", "dbca", "bacd"])
@pytest.mark.parametrize("x", [0, 1])
@pytest.mark.parametrize("y", [0, 1])
def test_a_file_in_an_inactive_branch_is_not_included(monkeypatch, order, x, y):
    """The witness reads each file once, at the first active #include that names it."""
    monkeypatch.setattr(kernel_source, "_source_cache", {name: tuple(t.split("\n")) for name, t in FILES.items()})
    macros, wanted, done = {"X": x, "Y": y}, [], set()

    def read(text: str) -> None:
        for line in active_lines(text, macros):
            name = line.split('"')[1] if "#include" in line else ""
            if not name:
                wanted.append(line)
            elif name not in done:
                done.add(name)
                read(FILES[name])

    main = "\n".join(f'#include "{name}.h"' for name in order)
    read(main)
    kept = active_lines(preprocess(GeneratedSource("main", main), None), macros)
    assert [line for line in kept if line] == wanted


def test_a_template_is_included_again(monkeypatch):
    files = {"t.h": ("t",), "u.h": ("#if X", '#include_again "t.h"', "#endif", '#include "t.h"')}
    monkeypatch.setattr(kernel_source, "_source_cache", files)
    text = preprocess(GeneratedSource("main", '#include "u.h"\n#include_again "t.h"\n#include "t.h"'), None)
    for x in (0, 1):
        assert [line for line in active_lines(text, {"X": x}) if line] == ["t", "t"]


def test_lines_keep_their_numbers(monkeypatch):
    monkeypatch.setattr(kernel_source, "_source_cache", {name: tuple(t.split("\n")) for name, t in FILES.items()})
    text = preprocess(GeneratedSource("main", '#if Z\n#include "b.h"\n#endif\n#include "b.h"\nlast'), None)
    inside = ["#ifndef INCLUDED_b_h", "#define INCLUDED_b_h", '#line 1 "b.h"', "b", "#endif"]
    head, middle, end = ['#line 1 "main"', "#if Z"], ['#line 3 "main"', "#endif"], ['#line 5 "main"', "last"]
    assert text.split() == "\n".join([*head, *inside, *middle, *inside, *end]).split()
