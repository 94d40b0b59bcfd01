"""Errors of C$ programs: file:line:column, a stable code, a message, the source line with a caret, and a hint.

Every code has its page in assets/reference/cdollar_errors.md.
"""

import unicodedata

from renderer.errors import InputError, UserError
from renderer.plain import shorten_words
from renderer.records import dataclass

MAX_LINE_CHARS = 160
MAX_SHOWN_ERRORS = 5
MAX_MESSAGE_CHARS = 900  # in the message of several errors


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

    def to(self, other: "Span") -> "Span":
        """The span from this one to another."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    @property
    def text(self) -> str:
        """The text, without line breaks."""
        return " ".join(self.source.text[self.start : self.end].split())

    @property
    def excerpt(self) -> str:
        """The text, at most 40 characters of it."""
        return self.text if len(self.text) <= 40 else self.text[:37] + "..."

    @property
    def provenance(self) -> str:
        """The excerpt with its line and column: `a(i) at 3:14`."""
        line, column = self.source.line_and_column(self.start)
        return f"{self.excerpt} at {line}:{column}"


class ProgramError(InputError):
    """An error at one span of a program."""

    line_breaks = "\n"
    kind = "error"

    def __init__(self, code: str, span: Span, message: str, hint: str = ""):
        self.code, self.span, self.message, self.hint = code, span, message, hint
        self.others: list[ProgramError] = []  # later errors of the same program, in the order of the text
        super().__init__(self.render())

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle, which would pass the text of the error as the only argument."""
        return type(self), (self.code, self.span, self.message, self.hint), {"others": self.others}

    def __str__(self) -> str:
        shown, length = [self.render()], 0
        for error in self.others[: MAX_SHOWN_ERRORS - 1]:
            length += len(shown[-1])
            text = error.render()
            if length + len(text) > MAX_MESSAGE_CHARS:
                break
            shown.append(text)
        hidden = 1 + len(self.others) - len(shown)
        return "\n".join([*shown, *([f"and {hidden} more error{'s' * (hidden > 1)}"] if hidden else [])])

    def render(self) -> str:
        """The message with the line, a caret below the span, and the hint."""
        span, source = self.span, self.span.source
        line, column = source.line_and_column(span.start)
        text = source.text[span.start - column + 1 :].split("\n", 1)[0].rstrip("\r").replace("\t", " ")
        text = "".join(c if c.isprintable() else "?" for c in text)
        first = max(0, column - 1 - MAX_LINE_CHARS // 2)  # of a long line, the characters around the span are shown
        cut, indent = text[first : first + MAX_LINE_CHARS], column - 1 - first
        width = max(1, min(span.end - span.start, len(cut) - indent))
        shift, carets = display_width(cut[:indent]), display_width(cut[indent : indent + width])
        lines = [
            f"{source.name}:{line}:{column}: {self.kind} {self.code}: {shorten_words(self.message)}",
            "    " + cut,
            "    " + " " * shift + "^" * max(1, carets),
        ]
        if self.hint:
            lines.append(f"hint: {shorten_words(self.hint)}")
        return "\n".join(lines)


class FollowingError(ProgramError):
    """An error that is a consequence of a reported one, such as the use of a faulty variable: it is never shown."""


class ProgramWarning(ProgramError):
    """A remark about a program that runs: its value is likely not what was meant. It is shown and never raised."""

    kind = "warning"


def raise_first(errors: list[ProgramError]) -> None:
    """Raise the first error of a program, whose text shows the other errors too; return if there is none."""
    if errors:
        first, *others = sorted(errors, key=lambda error: error.span.start)
        first.others = others
        raise first


def display_width(text: str) -> int:
    """The columns that a terminal gives a text: two for wide characters (CJK), none for combining ones."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)


class ArgumentError(UserError):
    """A value for a parameter of main does not fit: a usage error."""


def ordinal(position: int) -> str:
    """first, second, third: a position counted from 0."""
    return ("first", "second", "third", "fourth", "fifth", "sixth")[min(position, 5)]
