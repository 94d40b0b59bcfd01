"""The lexer of C$ (.cb files), and a stream of its tokens with one place in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from renderer.cdollar.frontend.ast import PRIMITIVES, VECTORS
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile, Span

MAX_SOURCE_CHARS = 1 << 20
MAX_NESTING = 120
MAX_CHAIN = 400
KEYWORDS = frozenset(
    "var let if else for while do break continue return true false class final type operator new const in".split()
)

TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\ufeff]+|//[^\n]*|/\*.*?\*/)
  | (?P<hex>0[xX][0-9a-fA-F_]+[uU]?)
  | (?P<real>(?:\d[\d_]*\.(?!\.)\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d[\d_]*[eE][+-]?\d+)[fFdD]?
      |\d[\d_]*[fFdD](?![0-9a-zA-Z_]))
  | (?P<integer>\d[\d_]*[uU]?)
  | (?P<identifier>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<punctuator>\.\.|=>|<<=|>>=|\+\+|--|<=|>=|==|!=|&&|\|\||<<|>>|[-+*/%&|^]=|[-+*/%<>=!~&|^?:;,.(){}\[\]])""",
    re.X | re.S,
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    span: Span


def tokenize(source: SourceFile) -> list[Token]:
    """The text cut into tokens, ended by one of kind "eof"."""
    text, position, found = source.text, 0, []
    if len(text) > MAX_SOURCE_CHARS:
        raise ProgramError(
            "CS0101", Span(source, 0, 1), f"the program has {len(text)} characters, more than {MAX_SOURCE_CHARS}"
        )
    while position < len(text):
        match = TOKEN.match(text, position)
        kind = match.lastgroup if match else None
        if match is None or kind is None or text.startswith("/*", position) and kind == "punctuator":
            bad_character(source, position)
        if kind != "space":
            found.append(Token(kind, match[0], Span(source, position, match.end())))
        position = match.end()
    return found + [Token("eof", "", Span(source, len(text), len(text)))]


def bad_character(source: SourceFile, position: int) -> NoReturn:
    """Raises CS0102 for what is never closed, CS0103 for other characters."""
    rest = source.text[position : position + 2]
    here = Span(source, position, position + 1)
    if rest == "/*":
        raise ProgramError(
            "CS0102", Span(source, position, position + 2), "this comment is never closed", "end it with */"
        )
    if rest[0] == '"':
        raise ProgramError("CS0102", here, "this text is never closed", 'end it with " on the same line')
    shown = rest[0] if rest[0].isprintable() else f"U+{ord(rest[0]):04X}"
    raise ProgramError("CS0103", here, f"the character `{shown}` has no meaning here")


class TokenStream:
    """One pass over the tokens of a text; `position` may step back to try a type."""

    def __init__(self, source: SourceFile):
        self.source, self.tokens, self.position, self.depth = source, tokenize(source), 0, 0
        self.type_names = set(PRIMITIVES) | set(VECTORS)
        for before, name in zip(self.tokens, self.tokens[1:], strict=False):
            if before.text in ("class", "type") and name.kind == "identifier":
                self.type_names.add(name.text)

    # Tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def at(self, *texts: str) -> bool:
        return self.token.kind not in ("string", "eof") and self.token.text in texts

    def advance(self) -> Token:
        token = self.token
        if token.kind != "eof":
            self.position += 1
        return token

    def accept(self, text: str) -> Token | None:
        return self.advance() if self.at(text) else None

    def expect(self, text: str, where: str) -> Token:
        if self.at(text):
            return self.advance()
        raise ProgramError(
            "CS0104", self.missing_token_span(text), f"expected `{text}` {where}, found {self.describe_token()}"
        )

    def missing_token_span(self, text: str) -> Span:
        """A missing `;` is marked after the token before it, not at the start of the next line."""
        if (
            text == ";"
            and self.position
            and self.source.line_and_column(self.tokens[self.position - 1].span.end)
            < self.source.line_and_column(self.token.span.start)
        ):
            end = self.tokens[self.position - 1].span.end
            return Span(self.source, end, end + 1)
        return self.token.span

    def describe_token(self) -> str:
        return "the end of the file" if self.token.kind == "eof" else f"`{self.token.text[:40]}`"

    def expect_identifier(self, what: str) -> Token:
        if self.token.kind != "identifier" or self.token.text in KEYWORDS:
            raise ProgramError("CS0105", self.token.span, f"expected {what}, found {self.describe_token()}")
        return self.advance()

    def span_from(self, start: Span) -> Span:
        return Span(self.source, start.start, max(start.end, self.tokens[max(0, self.position - 1)].span.end))

    def enter_nesting(self):
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise ProgramError(
                "CS0106",
                self.token.span,
                f"this nests deeper than {MAX_NESTING} levels",
                "name the inner parts with `var`",
            )
