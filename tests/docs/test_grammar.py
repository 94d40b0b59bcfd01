"""The grammar for editors is up to date, and its scopes are those of the words of a program."""

import re

from tests.docs.grammar import GRAMMAR, grammar, grammar_text


def scopes_of(line: str) -> dict[str, str]:
    """The scope of each word of a line: that of the first pattern that matches at it, as editors choose."""
    found, position = {}, 0
    rules = [
        (p["name"].removesuffix(".cdollar"), re.compile(p.get("match") or p["begin"])) for p in grammar()["patterns"]
    ]
    while position < len(line):
        matches = [
            (m.start(), k, m, name) for k, (name, rule) in enumerate(rules) if (m := rule.search(line, position))
        ]
        if not matches:
            break
        _, _, match, name = min(matches, key=lambda m: m[:2])
        found[match[0]] = name
        position = max(match.end(), position + 1)
    return found


def test_the_grammar_is_up_to_date():
    assert GRAMMAR.read_text(encoding="utf-8") == grammar_text(), "python -m tests.docs.grammar"


def test_words_have_their_scopes():
    scopes = scopes_of("float[,] main(int n) { var c(i : 0..n) = sum(a.clamp(i - 1)) * 1.5e3f; return c; } // end")
    assert scopes["float"] == scopes["int"] == "storage.type" and scopes["main"] == "entity.name.function"
    assert scopes["var"] == "keyword.other" and scopes["return"] == "keyword.control"
    assert scopes["sum"] == "support.function" and scopes[".clamp"] == "variable.language"
    assert scopes["0"] == scopes["1.5e3f"] == "constant.numeric" and scopes[".."] == "keyword.operator"
    assert scopes["// end"] == "comment.line.double-slash"
