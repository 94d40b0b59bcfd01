"""The lexer of C$ (.cb files), and the stream of tokens that the parser reads.

tokenize() cuts a text into Tokens by one regular expression, TOKEN; spaces and comments yield none. TokenStream keeps
the position of the next token, limits the depth of nesting, and reports what was found in place of a token (CS0104).
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

from renderer.cdollar.frontend.ast import PRIMITIVES, VECTORS
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile, Span
from renderer.cdollar.frontend.hints import TEXTS, WORDS, hint_for_character, hint_for_unexpected

MAX_SOURCE_CHARS = 1 << 20
MAX_NESTING = 120  # levels of brackets, blocks and operands inside one another
MAX_CHAIN = 400  # operators, calls and members of one chain, such as a + b + c or a.b(1)[2]
KEYWORDS = frozenset(TEXTS["prompt"]["keywords"].split())  # assets/tables/hints.toml; the prompt completes them

TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\ufeff]+|//[^\n]*|/\*.*?\*/)
  | (?P<hex>0[xX][0-9a-fA-F_]+[uUlL]?)
  | (?P<real>(?:\d[\d_]*\.(?!\.)\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d[\d_]*[eE][+-]?\d+)[fFdD]?
      |\d[\d_]*[fFdD](?![0-9a-zA-Z_]))
  | (?P<integer>\d[\d_]*[uUlL]?)
  | (?P<identifier>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<punctuator>\.\.|=>|<<=|>>=|\+\+|--|<=|>=|==|!=|&&|\|\||<<|>>|[-+*/%&|^]=|[-+*/%<>=!~&|^?:;,.(){}\[\]])""",
    re.X | re.S,
)


class Token(NamedTuple):
    """A token; `kind` is the name of a group of TOKEN, or "eof"."""

    kind: str
    text: str
    span: Span

    @property
    def is_identifier(self) -> bool:
        """True if this is an identifier or a keyword."""
        return self.kind == "identifier"

    @property
    def is_name(self) -> bool:
        """True if this is an identifier but no keyword."""
        return self.is_identifier and self.text not in KEYWORDS


def tokenize(source: SourceFile) -> list[Token]:
    """The tokens of a text, ended by one of kind "eof"; raises CS0101 to CS0103."""
    text, position = source.text, 0
    tokens: list[Token] = []
    if len(text) > MAX_SOURCE_CHARS:
        message = f"the program has {len(text)} characters, more than {MAX_SOURCE_CHARS}"
        raise ProgramError("CS0101", Span(source, 0, 1), message)
    while position < len(text):
        match = TOKEN.match(text, position)
        kind = match.lastgroup if match else None
        if match is None or kind is None or text.startswith("/*", position) and kind == "punctuator":
            fail_at_character(source, position)  # a comment without an end would be the punctuators / and *
        if kind != "space":
            tokens.append(Token(kind, match[0], Span(source, position, match.end())))
        position = match.end()
    return [*tokens, Token("eof", "", Span(source, len(text), len(text)))]


def fail_at_character(source: SourceFile, position: int) -> NoReturn:
    """Raises CS0102 for a comment or string that is never closed, CS0103 for other characters."""
    first, here = source.text[position], Span(source, position, position + 1)
    if source.text.startswith("/*", position):
        span = Span(source, position, position + 2)
        raise ProgramError("CS0102", span, "this comment is never closed", "end it with */")
    if first == '"':
        raise ProgramError("CS0102", here, "this string is never closed", 'end it with " on the same line')
    shown = first if first.isprintable() else f"U+{ord(first):04X}"
    raise ProgramError("CS0103", here, f"the character `{shown}` has no meaning here", hint_for_character(first))


class TokenStream:
    """The tokens of a text and a position in them; the parser rewinds the position to try another rule."""

    def __init__(self, source: SourceFile):
        self.source, self.tokens, self.position, self.depth = source, tokenize(source), 0, 0
        self.type_names = {*PRIMITIVES, *VECTORS, "domain"}
        self.end_is_semicolon = False  # True at the prompt, where the last `;` may be missing
        # By the type's name the parser knows `A b;` for a declaration, and a program may use a type before its
        # declaration: all names of types are collected first.
        for before, name in zip(self.tokens, self.tokens[1:], strict=False):
            if before.text in ("class", "type") and name.is_identifier:
                self.type_names.add(name.text)

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    @property
    def previous(self) -> Token:
        """The token before the next one."""
        return self.tokens[max(0, self.position - 1)]

    def peek(self, ahead: int = 1) -> Token:
        """A token further ahead; "eof" behind the last one."""
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def at(self, *texts: str) -> bool:
        """True if the next token is one of these punctuators or words."""
        return self.token.kind not in ("string", "eof") and self.token.text in texts

    def advance(self) -> Token:
        """Takes the next token."""
        token = self.token
        if token.kind != "eof":
            self.position += 1
        return token

    def accept(self, text: str) -> Token | None:
        """Takes the next token if it is `text`."""
        return self.advance() if self.at(text) else None

    def expect(self, text: str, where: str) -> Token:
        """Takes `text`; raises CS0104 if another token is next."""
        if self.at(text):
            return self.advance()
        if self.end_is_semicolon and text == ";" and self.token.kind == "eof":
            return self.token
        message = f"expected `{text}` {where}, found {self.describe_token()}"
        raise ProgramError("CS0104", self.missing_token_span(text), message, self.hint_for(text))

    def expect_identifier(self, description: str) -> Token:
        """Takes a name; raises CS0105 if another token is next."""
        if not self.token.is_name:
            self.fail("CS0105", f"expected {description}, found {self.describe_token()}", self.hint_for(description))
        return self.advance()

    def hint_for(self, expected: str) -> str:
        """The hint for the next token, or for a word of another language before it, as `retrun` in `retrun 1;`."""
        before = WORDS.get(self.previous.text, "") if self.previous.is_name else ""
        if expected == "(" and self.previous.text == "for":
            before = "write `for (int i = 0; i < n; i++) ...`"
        return hint_for_unexpected(expected, self.token.text) or before

    def fail(self, code: str, message: str, hint: str = "", span: Span | None = None) -> NoReturn:
        """Raises an error at a span, or at the next token."""
        raise ProgramError(code, span or self.token.span, message, hint)

    def check_new(self, name: Token, known: Collection[str], kind: str) -> None:
        """Raises CS0109 for a name that is declared already."""
        if name.text in known:
            self.fail("CS0109", f"the {kind} `{name.text}` is declared twice", span=name.span)

    def missing_token_span(self, text: str) -> Span:
        """A missing `;` is marked after the token before it, not at the start of the next line."""
        end = self.previous.span.end
        if text == ";" and end < self.token.span.start:
            return Span(self.source, end, end + 1)
        return self.token.span

    def describe_token(self) -> str:
        """The next token, for messages."""
        end = "the end of the input" if self.source.name.startswith("<") else "the end of the file"
        return end if self.token.kind == "eof" else f"`{self.token.text[:40]}`"

    def span_from(self, start: Span) -> Span:
        """From the start of a span to the end of the token before the next one."""
        return Span(self.source, start.start, max(start.end, self.previous.span.end))

    @property
    def state(self) -> tuple[int, int]:
        """The position and the depth of nesting, for rewind()."""
        return self.position, self.depth

    def rewind(self, state: tuple[int, int]) -> None:
        """Goes back to an earlier `state`."""
        self.position, self.depth = state

    def separated(self) -> Iterator[None]:
        """Yields before each item of a comma-separated list: the caller parses the item in the loop's body."""
        yield
        while self.accept(","):
            yield

    def items(self, close: str, where: str) -> Iterator[None]:
        """Yields before each item of a list as separated() does, then takes `close`; `where` ends error messages."""
        while not self.accept(close):
            yield
            if not self.at(close):
                self.expect_next(close, where)

    def expect_next(self, close: str, where: str) -> None:
        """Takes the comma of a list that has not ended; raises CS0104."""
        if not self.accept(","):
            message = f"expected `,` or `{close}` {where}, found {self.describe_token()}"
            self.fail("CS0104", message, self.hint_for(","))

    @contextmanager
    def nesting(self) -> Iterator[None]:
        """A level of nesting; raises CS0106 beyond MAX_NESTING. After an error, `rewind` restores the depth."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail("CS0106", f"this nests deeper than {MAX_NESTING} levels", "name the inner parts with `var`")
        yield
        self.depth -= 1
