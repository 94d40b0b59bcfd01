"""Errors of C$ programs: file:line:col, the line, a caret under the part, both facts, a hint, a stable code.

Every code has its page in assets/reference/cdollar_errors.md.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from renderer.errors import InputError, UserError


@dataclass(frozen=True)
class SourceFile:
    """A program's text and the name it is called by in messages."""

    name: str
    text: str
    starts: tuple[int, ...] = field(default=(), compare=False)

    def __post_init__(self):
        starts = [0]
        position = self.text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = self.text.find("\n", position + 1)
        object.__setattr__(self, "starts", tuple(starts))

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line(self, number: int) -> str:
        end = self.starts[number] - 1 if number < len(self.starts) else len(self.text)
        return self.text[self.starts[number - 1] : end].rstrip("\r")


@dataclass(frozen=True)
class Span:
    """Characters start..end of a source."""

    source: SourceFile
    start: int
    end: int

    def to(self, other: Span) -> Span:
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    @property
    def text(self) -> str:
        return " ".join(self.source.text[self.start : self.end].split())

    @property
    def location(self) -> str:
        line, column = self.source.line_and_column(self.start)
        return f"{line}:{column}"

    @property
    def excerpt(self) -> str:
        """The text, cut to what fits in a sentence."""
        return self.text if len(self.text) <= 40 else self.text[:37] + "..."


MAX_LINE_CHARS = 160


class ProgramError(InputError):
    """What is wrong in a program, at one place of its text."""

    def __init__(self, code: str, span: Span, message: str, hint: str = ""):
        self.code, self.span, self.message, self.hint = code, span, message, hint
        super().__init__(self.render())

    def render(self) -> str:
        line, column = self.span.source.line_and_column(self.span.start)
        text = self.span.source.line(line).replace("\t", " ")
        text = "".join(c if c.isprintable() else "?" for c in text)
        width = max(1, min(self.span.end - self.span.start, len(text) - column + 1))
        first = max(0, column - 1 - MAX_LINE_CHARS // 2)
        cut = text[first : first + MAX_LINE_CHARS]
        marks = " " * (column - 1 - first) + "^" * min(width, max(1, len(cut) - (column - 1 - first)))
        lines = [
            f"{self.span.source.name}:{line}:{column}: error {self.code}: {self.message}",
            "    " + cut,
            "    " + marks,
        ]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class ArgumentError(UserError):
    """What fills main's parameters does not fit: a usage error."""


def ordinal(position: int) -> str:
    return ("first", "second", "third", "fourth", "fifth", "sixth")[min(position, 5)]
