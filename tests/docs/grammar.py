"""The TextMate grammar of C$ for editors, made of the compiler's own tables: `python -m tests.docs.grammar`."""

import json

from renderer.cdollar.checker.node_builder import CONSTANTS, FUNCTIONS
from renderer.cdollar.frontend.ast import BORDER_MODES, PRIMITIVES, VECTORS
from renderer.cdollar.frontend.lexer import KEYWORDS
from renderer.paths import ROOT

GRAMMAR = ROOT / "assets" / "editors" / "cdollar.tmLanguage.json"
CONTROL = {"if", "else", "for", "while", "do", "break", "continue", "return"}


def words(names) -> str:
    """A pattern of whole words."""
    return rf"\b({'|'.join(sorted(names))})\b"


def grammar() -> dict:
    """The grammar; see https://macromates.com/manual/en/language_grammars."""
    rules = [
        ("comment.line.double-slash", r"//.*$"),
        ("constant.numeric", r"\b(0[xX][0-9a-fA-F_]+[uU]?|\d[\d_]*(\.(?!\.)\d*)?([eE][+-]?\d+)?[fFdDuU]?)"),
        ("constant.language", words({"true", "false", *CONSTANTS})),
        ("keyword.control", words(CONTROL)),
        ("keyword.other", words(KEYWORDS - CONTROL - {"true", "false"})),
        ("storage.type", words({*PRIMITIVES, *VECTORS})),
        ("support.function", rf"{words(FUNCTIONS)}(?=\s*\()"),
        ("variable.language", rf"\.({'|'.join(BORDER_MODES)})\b"),
        ("entity.name.function", r"\b[A-Za-z_]\w*(?=\s*\()"),
        ("keyword.operator", r"=>|\.\.|[-+*/%<>=!~&|^?:]+"),
    ]
    patterns = [{"name": f"{scope}.cdollar", "match": match} for scope, match in rules]
    patterns[:0] = [
        {"name": "comment.block.cdollar", "begin": r"/\*", "end": r"\*/"},
        {"name": "string.quoted.double.cdollar", "begin": '"', "end": '"|$', "patterns": [{"match": r"\\."}]},
    ]
    return {
        "name": "C$",
        "scopeName": "source.cdollar",
        "fileTypes": ["cb"],
        "patterns": patterns,
    }


def grammar_text() -> str:
    """The text of the grammar's file."""
    return json.dumps(grammar(), indent=2) + "\n"


if __name__ == "__main__":
    GRAMMAR.parent.mkdir(exist_ok=True)
    GRAMMAR.write_text(grammar_text(), encoding="utf-8")
    print(GRAMMAR)
