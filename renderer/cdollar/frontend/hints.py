"""Hints of error messages for a wrong word or sign, often from another language; the lexer and parser look them up."""

from collections.abc import Iterable
from difflib import get_close_matches

from renderer.paths import ASSETS
from renderer.system.files import read_toml

MAX_COMPARED_CHARS = 40  # longest name that is compared: the time is quadratic in its length
TEXTS = read_toml(ASSETS / "tables" / "hints.toml")  # its comments say where each table's hint is shown
SIGNS: dict[str, str] = TEXTS["signs"]
# By a token, then by what is expected where it stands.
UNEXPECTED: dict[str, dict[str, str]] = TEXTS["unexpected"]
USAGE: dict[str, str] = TEXTS["usage"]  # how built-in functions are called, by name; for checker/node_builder.py
QUOTES = "“”„‟‘’"
OTHER_SIGNS: dict[str, str] = TEXTS["characters"]


def _by_word(table: dict[str, str]) -> dict[str, str]:
    """A table of hints by single words, from one whose keys hold several."""
    return {word: hint for words, hint in table.items() for word in words.split()}


# Hints by a wrong word in a program, and by a wrong member after a dot (lowering/expressions.py).
WORDS, MEMBERS = _by_word(TEXTS["words"]), _by_word(TEXTS["members"])


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known name that is most like a wrong one, as a hint; "" if none is."""
    close = get_close_matches(name, sorted(known), 1) if len(name) <= MAX_COMPARED_CHARS else []
    return f"did you mean `{close[0]}`?" if close else ""


def hint_for_unexpected(expected: str, text: str) -> str:
    """The hint for a token where another was expected."""
    if text in UNEXPECTED:
        return UNEXPECTED[text].get(expected, "")
    return WORDS.get(text) or SIGNS.get(text, "")


def hint_for_character(character: str) -> str:
    """The hint for a character that C$ does not know."""
    if character in QUOTES:
        return 'quotes are straight: "'
    names = "names are made of A-Z, a-z, 0-9 and _" if character.isalpha() else ""
    return OTHER_SIGNS.get(character, names)
