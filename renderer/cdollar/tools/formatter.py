"""The formatter of C$ programs (`rayfold cdollar format`, the language server): rewrites spaces and indentation.

As in gofmt, line breaks stay where the author set them; if one is CRLF, all are. Formatting is idempotent. format_text
checks that the result has the tokens and comments of the source.
"""

from typing import NamedTuple

from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile, Span
from renderer.cdollar.frontend.lexer import KEYWORDS, TOKEN, tokenize
from renderer.records import dataclass

INDENT = 4
OPEN, CLOSE = "([{", ")]}"
BEFORE_PARENTHESIS = ("if", "for", "while", "return", "in", "new", "const", "var")  # with a space before `(`
CONTROL = ("if", "for", "while")
UNARY = ("-", "+", "!", "~")
NO_SPACE_AFTER, NO_SPACE_BEFORE = ("(", "[", ".", "!", "~"), (")", "]", ",", ";", ".")
OPERANDS = ("identifier", "integer", "real", "hex", "string")


class Piece(NamedTuple):
    """A token or comment of a line, with the spaces that the source has before it."""

    kind: str  # a kind of the lexer's tokens, or "comment"
    text: str
    spaces: int

    @property
    def written_gap(self) -> str:
        """One space if the source has spaces before the piece, else none."""
        return " " if self.spaces else ""


@dataclass
class Bracket:
    """An open bracket; `questions` counts the `?` in it without their `:`."""

    text: str
    is_control: bool  # True if it belongs to `if`, `for` or `while`
    questions: int = 0


class Context:
    """State between tokens: open brackets behind an entry for the text outside of them, and the last operator."""

    def __init__(self) -> None:
        self.brackets = [Bracket("", is_control=False)]
        self.last_control = False  # True if the last closed bracket belongs to `if`, `for` or `while`
        self.last_unary = False  # True if the last operator is unary

    @property
    def innermost(self) -> Bracket:
        """The innermost open bracket."""
        return self.brackets[-1]

    def leave(self) -> None:
        """Leaves the innermost bracket."""
        if len(self.brackets) > 1:
            self.last_control = self.brackets.pop().is_control

    @property
    def in_slice(self) -> bool:
        """True if a colon here belongs to a slice: in square brackets, without a pending `?`."""
        return self.innermost.text == "[" and not self.innermost.questions


def format_text(text: str, name: str = "program") -> str:
    """The formatted text of a program; raises ProgramError for characters that form no token."""
    source = SourceFile(name, text)
    tokenize(source)  # raises ProgramError
    given = split_lines(text)
    lines: list[str] = []
    context, depths = Context(), [0]
    is_continued = False
    for pieces in given:
        if not pieces:
            if lines and lines[-1]:
                lines.append("")
            continue
        depth = indentation(pieces, depths)
        is_closing = pieces[0].text in CLOSE and pieces[0].kind == "punctuator"
        extra = INDENT if is_continued and not is_closing and pieces[0].text != "{" else 0
        lines.append(" " * (depth * INDENT + extra) + join(pieces, context))
        words = [piece for piece in pieces if piece.kind != "comment"]
        if words:
            inside = context.innermost.text not in ("", "{")
            is_continued = not inside and words[-1].text not in (";", "{", "}", ",")
    result = "\n".join(lines).rstrip("\n") + "\n" if any(lines) else ""
    if tokens_and_comments(given) != tokens_and_comments(split_lines(result)):
        raise ProgramError("CS0101", Span(source, 0, 1), "this program cannot be formatted without changing it")
    return result.replace("\n", "\r\n") if "\r\n" in text else result


def split_lines(text: str) -> list[list[Piece]]:
    """The pieces of each line; a comment of several lines belongs to the first of these lines."""
    lines: list[list[Piece]] = [[]]
    position, spaces = 0, 0
    while position < len(text):
        match = TOKEN.match(text, position)
        assert match is not None and match.lastgroup is not None, "tokenize() has read the text"
        position = match.end()
        if match.lastgroup != "space":
            lines[-1].append(Piece(match.lastgroup, match[0], spaces))
            spaces = 0
        elif match[0].startswith(("//", "/*")):
            lines[-1].append(Piece("comment", "\n".join(line.rstrip() for line in match[0].split("\n")), spaces))
            spaces = 1
        else:
            spaces = len(match[0])
            lines += [[] for _ in range(match[0].count("\n"))]
    return lines


def tokens_and_comments(lines: list[list[Piece]]) -> list[tuple[str, str]]:
    """The tokens and comments of some lines."""
    return [(piece.kind, piece.text) for line in lines for piece in line]


def indentation(pieces: list[Piece], depths: list[int]) -> int:
    """The indentation depth of a line.

    `depths` holds the depth inside each open bracket; the brackets of the line are pushed and popped. Several brackets
    that one line opens indent the next lines by one level.
    """
    leading = 0
    while leading < len(pieces) and pieces[leading].kind == "punctuator" and pieces[leading].text in CLOSE:
        leading += 1
    depth = depths[max(0, len(depths) - 1 - leading)]
    for piece in pieces:
        if piece.kind == "punctuator" and piece.text in OPEN:
            depths.append(depth + 1)
        elif piece.kind == "punctuator" and piece.text in CLOSE and len(depths) > 1:
            depths.pop()
    return depth


def join(pieces: list[Piece], context: Context) -> str:
    """A line of pieces with the spaces between them."""
    line = ""
    for k, piece in enumerate(pieces):
        if k:
            line += gap(pieces, k, context)
        update_context(pieces, k, context)
        line += piece.text
    return line


def update_context(pieces: list[Piece], k: int, context: Context) -> None:
    """Update the context for the tokens after piece k."""
    piece, before = pieces[k], pieces[k - 1] if k else None
    if piece.kind != "punctuator":
        return
    context.last_unary = piece.text in UNARY and not is_operand(before, context)
    if piece.text in OPEN:
        context.brackets.append(Bracket(piece.text, before is not None and before.text in CONTROL))
    elif piece.text in CLOSE:
        context.leave()
    elif piece.text == "?":
        context.innermost.questions += 1
    elif piece.text == ":" and context.innermost.questions:
        context.innermost.questions -= 1


def is_operand(piece: Piece | None, context: Context) -> bool:
    """True if a piece ends an operand, so that an operator after it is binary."""
    if piece is None:
        return False
    if piece.kind in OPERANDS:
        return piece.text not in KEYWORDS or piece.text in ("true", "false")
    return piece.text in (")", "]") and not (piece.text == ")" and context.last_control)


def gap(pieces: list[Piece], k: int, context: Context) -> str:
    """The space before piece k of a line, which is not the first."""
    left, right = pieces[k - 1], pieces[k]
    if right.kind == "comment":
        return " " * max(2, right.spaces) if right.text.startswith("//") else " "  # comments may be aligned
    if left.kind == "comment":
        return " "
    if left.text == "operator":
        return " " if left.spaces or right.spaces else ""
    if k > 1 and pieces[k - 2].text == "operator" and right.text in ("(", ")", "]"):
        return ""  # after an operator's name, as in `operator+(a, b)`
    for position in (k - 1, k):
        if pieces[position].text in ("<", ">"):
            return "" if is_type_bracket(pieces, position) else " "
    if left.kind == right.kind == "punctuator":
        return gap_between_punctuators(left, right, context)
    if left.kind == "punctuator":
        return gap_after_punctuator(left, right, context)
    if right.kind == "punctuator":
        return gap_before_punctuator(left, right, context)
    return " "


def gap_between_punctuators(left: Piece, right: Piece, context: Context) -> str:
    """The space between two punctuators."""
    if left.text == "{" or right.text == "}":
        return "" if left.text + right.text == "{}" else " "
    if left.text == "," and right.text == ")" or left.text == "+" and context.last_unary:
        return right.written_gap  # as written: a(i, ), and a sum as in the C$ paper, + (a(i, k) * b(k, j))
    if left.text in NO_SPACE_AFTER or right.text in NO_SPACE_BEFORE:
        return ""
    if left.text in (")", "]") and right.text in ("[", "("):
        return " " if left.text == ")" and (context.last_control or right.spaces) else ""
    if right.text == "{" or left.text == "," and right.text == ":":
        return " "
    if context.in_slice and ":" in (left.text, right.text) or ".." in (left.text, right.text):
        return ""
    would_join = left.text in ("+", "-") and right.text.startswith(left.text)
    is_tight = right.text in ("++", "--") or left.text in UNARY and context.last_unary and not would_join
    return "" if is_tight else " "


def gap_after_punctuator(left: Piece, right: Piece, context: Context) -> str:
    """The space between a punctuator and a word or number."""
    if left.text in NO_SPACE_AFTER or left.text == ":" and context.in_slice:
        return ""
    if left.text == "..":
        return " " if right.text.startswith(".") else ""
    if left.text in UNARY and context.last_unary:
        return right.written_gap if left.text == "+" else ""
    if left.text in ("++", "--") or left.text == ")" and not context.last_control:
        return right.written_gap
    return " "


def gap_before_punctuator(left: Piece, right: Piece, context: Context) -> str:
    """The space between a word or number and a punctuator."""
    if right.text in NO_SPACE_BEFORE or right.text == ":" and context.in_slice:
        return ""
    if right.text in ("[", "++", "--"):
        return " " if left.text in KEYWORDS else ""
    if right.text == "..":
        return " " if left.text.endswith(".") else ""
    if right.text == "(":
        return " " if left.text in BEFORE_PARENTHESIS else ""
    return " "


def is_listed(piece: Piece) -> bool:
    """True if a piece may be part of a list of names."""
    return piece.kind == "identifier" or piece.text == ","


def is_type_bracket(pieces: list[Piece], k: int) -> bool:
    """True if the `<` or `>` at k is around type parameters, which stand between two names: `twice<T, U>(T x)`."""
    # `first` goes from a `>` back to its `<`, `last` from a `<` on to its `>`, over names and commas only.
    first = last = k
    while pieces[k].text == ">" and first > 0 and (first == k or is_listed(pieces[first])):
        first -= 1
    while pieces[k].text == "<" and last + 1 < len(pieces) and (last == k or is_listed(pieces[last])):
        last += 1
    ends = [piece.text for piece in (pieces[first], *pieces[last : last + 2])]
    return first > 0 and pieces[first - 1].kind == "identifier" and ends == ["<", ">", "("]
