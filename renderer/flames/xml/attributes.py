"""What all readers of a .flame file share: where they are, what they refuse, what they warn of."""

import math

from renderer.errors import InputError
from renderer.scene.schema import format_value


class AttributeParser:
    """Reads one file; gathers what is strange but no mistake."""

    def __init__(self, path):
        self.path, self.warnings = path, []
        self.location = str(path)

    def fail(self, sentence: str):
        raise InputError(f"{self.location}: {sentence}")

    def warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def numbers(self, name: str, text: str, count: int | None = None) -> list[float]:
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            self.fail(f"{name} is {format_value(text)}; it must be {'a number' if count == 1 else 'numbers'}")
        if count is not None and len(values) != count:
            self.fail(f"{name} is {format_value(text)}; it must be {count} number{'s' * (count > 1)}")
        if not all(math.isfinite(value) for value in values):
            self.fail(f"{name} is {format_value(text)}; it must be finite")
        return values

    def number(self, name: str, text: str) -> float:
        return self.numbers(name, text, 1)[0]


def escape_attribute(text: str) -> str:
    """The text as it stands between the quotes of an attribute."""
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
