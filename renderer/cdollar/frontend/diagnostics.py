"""Errors of C$ programs: file:line:column, a stable code, both facts, the line with a caret, and a hint.

Every code has its page in assets/reference/cdollar_errors.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from renderer.errors import InputError, UserError

MAX_LINE_CHARS = 160


@dataclass(frozen=True)
class SourceFile:
    """A program's text and its name in messages."""

    name: str
    text: str

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)


@dataclass(frozen=True)
class Span:
    """Characters start..end of a source file."""

    source: SourceFile
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from this one to another."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    @property
    def text(self) -> str:
        """The text, without line breaks."""
        return " ".join(self.source.text[self.start : self.end].split())

    @property
    def excerpt(self) -> str:
        """The text, cut to what fits in a sentence."""
        return self.text if len(self.text) <= 40 else self.text[:37] + "..."

    @property
    def provenance(self) -> str:
        """The excerpt and where it is: `a(i) at 3:14`."""
        line, column = self.source.line_and_column(self.start)
        return f"{self.excerpt} at {line}:{column}"


class ProgramError(InputError):
    """An error at one span of a program."""

    line_breaks = "\n"

    def __init__(self, code: str, span: Span, message: str, hint: str = ""):
        self.code, self.span, self.message, self.hint = code, span, message, hint
        super().__init__(self.render())

    def render(self) -> str:
        """The message with the line, a caret below the span, and the hint."""
        span, source = self.span, self.span.source
        line, column = source.line_and_column(span.start)
        text = source.text[span.start - column + 1 :].split("\n", 1)[0].rstrip("\r").replace("\t", " ")
        text = "".join(c if c.isprintable() else "?" for c in text)
        first = max(0, column - 1 - MAX_LINE_CHARS // 2)
        cut, indent = text[first : first + MAX_LINE_CHARS], column - 1 - first
        width = max(1, min(span.end - span.start, len(cut) - indent))
        lines = [
            f"{source.name}:{line}:{column}: error {self.code}: {self.message}",
            "    " + cut,
            "    " + " " * indent + "^" * width,
        ]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class ArgumentError(UserError):
    """A value for a parameter of main does not fit: a usage error."""


def ordinal(position: int) -> str:
    """first, second, third: a position counted from 0."""
    return ("first", "second", "third", "fourth", "fifth", "sixth")[min(position, 5)]
