"""Parses numbers in attributes of .flame files; errors and warnings name file, element, attribute and value.

The other modules of xml/ share one AttributeParser for each file, which collects warnings.
"""

from collections import Counter
from pathlib import Path
from typing import NoReturn

from renderer.errors import InputError
from renderer.plain import format_value
from renderer.scene.schema import MAX_NUMBER


class AttributeParser:
    """Parses the attributes of one file; `location` is the prefix of error messages.

    `warnings`: sentences, each once. `ignored`: label -> count of attributes that change the picture and are not drawn.
    """

    def __init__(self, path: Path | str):
        self.path = path
        self.warnings: list[str] = []
        self._warned: set[str] = set()
        self.ignored: Counter[str] = Counter()
        self.location = str(path)
        self.frame = 0.0  # the flame's frame, at which JWildfire evaluates its curves over time

    def fail(self, sentence: str) -> NoReturn:
        """Raise InputError for the current location."""
        raise InputError(f"{self.location}: {sentence}")

    def warn(self, sentence: str) -> None:
        """Add a warning, once."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            self.warnings.append(sentence)

    def numbers(self, name: str, text: str, count: int | None = None) -> list[float]:
        """The numbers of an attribute, separated by white space; fails unless there are `count`, if given.

        Numbers beyond MAX_NUMBER fail as in scene files: products of three fit into float64, as camera.py forms them.
        """
        try:
            values = [_number(word) for word in text.split()]
        except ValueError:
            self.fail(f"{name} is {format_value(text)}; it must be {'a number' if count == 1 else 'numbers'}")
        if count is not None and len(values) != count:
            self.fail(f"{name} is {format_value(text)}; it must be {count} number{'s' * (count > 1)}")
        if not all(abs(value) <= MAX_NUMBER for value in values):  # NaN is not
            self.fail(f"{name} is {format_value(text)}; it must be finite, at most {MAX_NUMBER:g} in size")
        return values

    def number(self, name: str, text: str) -> float:
        """The number of an attribute; fails if there is not exactly one."""
        return self.numbers(name, text, 1)[0]


def _number(word: str) -> float:
    """A number as programs write it: also with a decimal comma, or followed by a comma. Raises ValueError."""
    try:
        return float(word)
    except ValueError:
        return float(word.rstrip(",").replace(",", "."))


def escape_attribute(text: str) -> str:
    """The text as written between the quotes of an attribute."""
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
