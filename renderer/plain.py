"""Numbers and texts of strangers: judged before they are used, escaped and shortened before they are shown.

Python's own conversions fail on some of them: int() and str() raise above 4,300 digits, float() overflows above 308,
str.isdigit() accepts superscripts and other alphabets.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import accumulate
from typing import Any, TypeGuard

MAX_MESSAGE = 900  # characters of an error
MAX_WORD = 160  # characters of one word of a message, such as a quoted value or a path
LONG_WORD = re.compile(rf"\S{{{MAX_WORD + 1},}}")
MAX_IGNORED = 100  # names of ignored things that are listed one by one

IN_MEMORY = re.compile(r"\S*/arrays/[0-9a-f]{32}\.(?:(ply)|png|exr)")  # files of arrays that Python gave: api/scenes.py
_is_python: ContextVar[bool] = ContextVar("_is_python", default=False)

Json = dict[str, Any]  # an object of a JSON or TOML file; its values are not checked yet


def printable(text: str, most: int = MAX_MESSAGE, keep: str = "") -> str:
    """The text for a terminal, at most `most` characters: the middle is cut, what cannot be printed is escaped.

    Escaped are line breaks, control characters, marks that change the direction of writing, and unpaired surrogates,
    but not the characters of `keep`. Temporary files of arrays from Python are called what they hold.
    """
    text = IN_MEMORY.sub(lambda file: "Mesh" if file[1] else "array", _cut(shorten_words(text), most))
    if not text.isprintable():
        escaped = (c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
        text = _cut("".join(escaped), most)
    return text


def shorten_words(text: str) -> str:
    """The text with the middle of each word cut, such as a file's name, that has more than MAX_WORD characters."""
    return LONG_WORD.sub(lambda word: _cut(word[0], MAX_WORD), text)


def _cut(text: str, most: int) -> str:
    """The text, or its first two thirds and last third around " ... ", `most` characters together."""
    tail = most // 3
    return text if len(text) <= most else f"{text[: most - tail - 5]} ... {text[-tail:]}"


@contextmanager
def set_in_block(variable: ContextVar[bool]) -> Iterator[None]:
    """The variable is True in the `with` block, and has its former value afterwards."""
    token = variable.set(True)
    try:
        yield
    finally:
        variable.reset(token)


# In its `with` block, or decorated function, format_value() spells values as Python does: None and True.
python_values = partial(set_in_block, _is_python)


def format_value(value: object) -> str:
    """The value as JSON for a message, or as Python has it in python_values(), at most 60 characters long."""
    try:
        text = repr(value) if _is_python.get() else json.dumps(value, default=str)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits, or lists too deep
        return f"{'an integer' if isinstance(value, int) else 'a value'} too large to show"
    return text if len(text) <= 60 else text[:57] + "..."


def quoted(text: object) -> str:
    """A name for a message, in quotes, at most 60 characters long."""
    return printable(repr(text), 60)


def format_names(names: Iterable[object], most: int = 200) -> str:
    """The names for a message, separated by commas, or "none"; those beyond `most` characters are only counted.

    The first name is always listed, cut to twice `most` characters.
    """
    known = list(map(str, names))
    ends = list(accumulate(len(name) + 2 for name in known))  # characters up to each name, with ", " after it
    shown = known[: max(bisect_right(ends, most), 1)]
    more = f" and {len(known) - len(shown)} more" if len(shown) < len(known) else ""
    return printable(", ".join(shown) or "none", 2 * most) + more


def suggestion(name: str, known: Iterable[str]) -> str:
    """The known names most like `name`, which is not known, as " (did you mean a or b?)"; empty if none is like it.

    Known names that have `name` among their words, as `max_depth` has `depth`, come before names of a similar spelling.
    """
    names = list(map(str, known))
    ending = [other for other in names if name and f"_{name}_" in f"_{other}_"]
    if not ending:
        import difflib  # imported here: only mistakes need it

        ending = difflib.get_close_matches(name, names, 1, 0.65)
    similar = ending[:3]
    return f" (did you mean {' or '.join(similar)}?)" if similar else ""


def format_ignored(ignored: Mapping[str, int]) -> list[str]:
    """Names of an input that are not honored, a phrase each, the most frequent first: "KHR_x (3 materials)".

    A key of `ignored` is a name, a space and the plural of what was counted: "KHR_x materials"; or a plural alone.
    """
    rows = sorted(ignored.items(), key=lambda row: (-row[1], row[0]))
    phrases = []
    for key, count in rows[:MAX_IGNORED]:
        name, _, unit = key.rpartition(" ")
        counted = f"{count} {unit if count > 1 else _singular(unit)}"
        phrases.append(f"{printable(name, 120)} ({counted})" if name else counted)
    rest = len(rows) - MAX_IGNORED
    return phrases + ([f"{rest} further names"] if rest > 0 else [])


def _singular(plural: str) -> str:
    endings = (("ices", "ex"), ("ies", "y"), ("shes", "sh"), ("s", ""))
    return next((plural.removesuffix(end) + other for end, other in endings if plural.endswith(end)), plural)


def to_float(value: float) -> float:
    """The number as float64; an integer beyond its range is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_finite_number(value: object) -> TypeGuard[float]:
    """True for an integer or float that float64 holds; booleans do not count as numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(to_float(value))


def parse_float(text: str) -> float | None:
    """The number that Python's float() reads in the text; None if it is no number."""
    try:
        return float(text)
    except ValueError:
        return None


def parse_whole(text: str, low: int, high: int) -> int | None:
    """The whole number from `low` to `high` that the text is in ASCII digits, at most 20 of them; else None."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and low <= int(text) <= high):
        return None
    return int(text)
