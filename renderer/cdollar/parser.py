"""Text to tree: the lexer and a recursive-descent parser of C$ (.cb files)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from renderer.cdollar.report import ProgramError, Source, Span
from renderer.cdollar.syntax import (
    PRIMITIVES,
    VECTORS,
    AliasItem,
    Assign,
    Binary,
    Blank,
    Block,
    Call,
    Cast,
    Choice,
    ClassItem,
    Declare,
    FunctionalType,
    FunctionItem,
    GlobalItem,
    HeadVariable,
    If,
    Interval,
    Jump,
    Lambda,
    LetIn,
    Literal,
    Loop,
    Member,
    Name,
    NamedType,
    Parameter,
    Program,
    Restriction,
    Return,
    Tree,
    TypeCall,
    Unary,
)

LONGEST_TEXT = 1 << 20
DEEPEST = 120
TALLEST = 400
KEYWORDS = frozenset(
    "var let if else for while do break continue return true false class final type operator new const in".split()
)
MODIFIERS = frozenset({"public", "static", "private", "pure"})
OPERATORS = ("+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "<<", ">>", "!", "~")

TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\ufeff]+|//[^\n]*|/\*.*?\*/)
  | (?P<hex>0[xX][0-9a-fA-F_]+[uU]?)
  | (?P<real>(?:\d[\d_]*\.(?!\.)\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d[\d_]*[eE][+-]?\d+)[fFdD]?
      |\d[\d_]*[fFdD](?![0-9a-zA-Z_]))
  | (?P<integer>\d[\d_]*[uU]?)
  | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<mark>\.\.|=>|<<=|>>=|\+\+|--|<=|>=|==|!=|&&|\|\||<<|>>|[-+*/%&|^]=|[-+*/%<>=!~&|^?:;,.(){}\[\]])""",
    re.X | re.S,
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    span: Span


def tokens(source: Source) -> list[Token]:
    """The text cut into tokens, ended by one of kind "end"."""
    text, position, found = source.text, 0, []
    if len(text) > LONGEST_TEXT:
        raise ProgramError(
            "CS0101", Span(source, 0, 1), f"the program has {len(text)} characters, more than {LONGEST_TEXT}"
        )
    while position < len(text):
        match = TOKEN.match(text, position)
        if not match or text.startswith("/*", position) and match.lastgroup == "mark":
            bad_character(source, position)
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, match[0], Span(source, position, match.end())))
        position = match.end()
    return found + [Token("end", "", Span(source, len(text), len(text)))]


def bad_character(source: Source, position: int):
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


# Binding strengths of the binary operators; all are left-associative.
STRENGTH = {"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7}
STRENGTH |= {"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")


class Parser:
    """One pass over the tokens; `position` may step back to try a type."""

    def __init__(self, source: Source):
        self.source, self.tokens, self.position, self.depth = source, tokens(source), 0, 0
        self.type_names = set(PRIMITIVES) | set(VECTORS)
        for before, name in zip(self.tokens, self.tokens[1:], strict=False):
            if before.text in ("class", "type") and name.kind == "name":
                self.type_names.add(name.text)

    # Tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def at(self, *texts: str) -> bool:
        return self.token.kind not in ("string", "end") and self.token.text in texts

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def accept(self, text: str) -> Token | None:
        return self.take() if self.at(text) else None

    def expect(self, text: str, where: str) -> Token:
        if self.at(text):
            return self.take()
        raise ProgramError("CS0104", self.before_if_missing(text), f"expected `{text}` {where}, found {self.found()}")

    def before_if_missing(self, text: str) -> Span:
        """A missing `;` is marked after the token before it, not at the start of the next line."""
        if (
            text == ";"
            and self.position
            and self.source.place(self.tokens[self.position - 1].span.end) < self.source.place(self.token.span.start)
        ):
            end = self.tokens[self.position - 1].span.end
            return Span(self.source, end, end + 1)
        return self.token.span

    def found(self) -> str:
        return "the end of the file" if self.token.kind == "end" else f"`{self.token.text[:40]}`"

    def name(self, what: str) -> Token:
        if self.token.kind != "name" or self.token.text in KEYWORDS:
            raise ProgramError("CS0105", self.token.span, f"expected {what}, found {self.found()}")
        return self.take()

    def span_from(self, start: Span) -> Span:
        return Span(self.source, start.start, max(start.end, self.tokens[max(0, self.position - 1)].span.end))

    def deeper(self):
        self.depth += 1
        if self.depth > DEEPEST:
            raise ProgramError(
                "CS0106", self.token.span, f"this nests deeper than {DEEPEST} levels", "name the inner parts with `var`"
            )

    # Items

    def program(self) -> Program:
        items = []
        while self.token.kind != "end":
            items.append(self.item())
        return Program(self.source, items)

    def item(self) -> Tree:
        start = self.token.span
        attributes = self.attributes()
        while self.token.text in MODIFIERS:
            self.take()
        if self.at("type"):
            self.take()
            name = self.name("the name of the alias")
            self.expect("=", "after the alias's name")
            written = self.type()
            self.expect(";", "after the alias")
            return AliasItem(self.span_from(start), name.text, written)
        if self.at("final", "class"):
            return self.class_item(start)
        if self.at("var", "const", "let"):
            return self.variable_item(start)
        if not self.starts_type():
            raise ProgramError(
                "CS0107", self.token.span, f"expected a function, class, type or constant, found {self.found()}",
                "a function starts with the type it returns: `float f(float x) { ... }`",
            )  # fmt: skip
        return self.function_or_constant(start, attributes)

    def attributes(self) -> dict[str, Span]:
        found = {}
        while self.at("["):
            self.take()
            while True:
                name = self.name("an attribute")
                if name.text not in ("Associative", "Commutative"):
                    raise ProgramError(
                        "CS0108", name.span, f"`{name.text}` is no attribute", "allowed: [Associative], [Commutative]"
                    )
                found[name.text] = name.span
                if not self.accept(","):
                    break
            self.expect("]", "after the attribute")
        return found

    def variable_item(self, start: Span) -> Tree:
        if self.at("const"):
            self.take()
            return GlobalItem(self.span_from(start), self.declare_one("type", self.type(), start))
        kind = self.take().text
        declare = self.declare_one(kind, None, start)
        if declare.head is not None and self.at("{", "=>"):
            raise ProgramError(
                "CS0107", start, "a function with a body names the type it returns", "`float f(float x) { ... }`"
            )
        return GlobalItem(self.span_from(start), declare)

    def function_or_constant(self, start: Span, attributes: dict[str, Span]) -> Tree:
        result = self.type()
        if self.accept("operator"):
            mark = self.take()
            if mark.text not in OPERATORS:
                raise ProgramError(
                    "CS0105", mark.span, f"`{mark.text}` cannot be defined", "allowed: " + " ".join(OPERATORS)
                )
            name = Token("name", "operator" + mark.text, mark.span)
        else:
            name = self.name("a name after the type")
        if not self.at("("):
            self.position -= 1
            declare = self.declare_one("type", result, start)
            return GlobalItem(self.span_from(start), declare)
        parameters = self.parameters()
        header = self.span_from(start)
        if self.at("=>", "="):
            self.take()
            value = self.expression()
            self.expect(";", "after the function")
            body: list[Tree] = [Return(value.span, value)]
        else:
            body = self.block()
        return FunctionItem(header, name.text, name.span, result, parameters, body, attributes)

    def parameters(self) -> list[Parameter]:
        self.expect("(", "before the parameters")
        found: list[Parameter] = []
        while not self.at(")"):
            start = self.token.span
            written = self.type()
            name = self.name("the parameter's name")
            default = self.expression() if self.accept("=") else None
            if any(other.name == name.text for other in found):
                raise ProgramError("CS0109", name.span, f"the parameter `{name.text}` is declared twice")
            found.append(Parameter(self.span_from(start), written, name.text, default))
            if not self.at(")"):
                self.expect(",", "between parameters")
        self.take()
        return found

    def class_item(self, start: Span) -> ClassItem:
        self.accept("final")
        self.expect("class", "after `final`")
        name = self.name("the class's name")
        if self.at(":"):
            raise ProgramError(
                "CS0110",
                self.token.span,
                "a class derives from nothing here",
                'a function bound to a file is file("big.npy")',
            )
        self.expect("{", "before the fields")
        fields: list[tuple[str, Tree, Span]] = []
        while not self.at("}"):
            while self.token.text in MODIFIERS:
                self.take()
            written = self.type()
            while True:
                field_name = self.name("a field's name")
                if self.at("("):
                    raise ProgramError(
                        "CS0110", field_name.span, "a class holds fields only", "write functions outside of it"
                    )
                if any(other[0] == field_name.text for other in fields):
                    raise ProgramError("CS0109", field_name.span, f"the field `{field_name.text}` is declared twice")
                fields.append((field_name.text, written, field_name.span))
                if not self.accept(","):
                    break
            self.expect(";", "after the field")
        self.take()
        self.accept(";")
        return ClassItem(self.span_from(start), name.text, name.span, fields)

    # Types

    def starts_type(self) -> bool:
        return self.token.kind == "name" and (self.token.text in self.type_names or self.token.text not in KEYWORDS)

    def type(self) -> Tree:
        self.deeper()
        token = self.name("a type")
        written: Tree = NamedType(token.span, token.text)
        while self.at("(", "["):
            if self.take().text == "[":
                rank = 1
                while self.accept(","):
                    rank += 1
                self.expect("]", "in the array type")
                written = FunctionalType(
                    self.span_from(token.span), written, [NamedType(token.span, "int") for _ in range(rank)], True
                )
                continue
            parameters = []
            while not self.at(")"):
                parameters.append(self.type())
                if self.token.kind == "name" and self.token.text not in KEYWORDS:
                    self.take()  # a parameter's name in a type is allowed and ignored
                if not self.at(")"):
                    self.expect(",", "between the parameters' types")
            self.take()
            written = FunctionalType(self.span_from(token.span), written, parameters, False)
        self.depth -= 1
        return written

    def try_type(self) -> Tree | None:
        """A type if one stands here and starts with a known type's name, else nothing is taken."""
        if self.token.kind != "name" or self.token.text not in self.type_names:
            return None
        position, depth = self.position, self.depth
        try:
            return self.type()
        except ProgramError:
            self.position, self.depth = position, depth
            return None

    # Statements

    def block(self) -> list[Tree]:
        self.expect("{", "before the body")
        self.deeper()
        found = []
        while not self.at("}"):
            if self.token.kind == "end":
                raise ProgramError(
                    "CS0104", self.token.span, "expected `}` at the end of the body, found the end of the file"
                )
            found += self.statement()
        self.take()
        self.depth -= 1
        return found

    def body(self) -> list[Tree]:
        if self.at("{"):
            return self.block()
        self.deeper()
        found = self.statement()
        self.depth -= 1
        return found

    def statement(self) -> list[Tree]:
        start = self.token.span
        simple = {
            "if": self.if_statement,
            "for": self.for_statement,
            "while": self.while_statement,
            "do": self.do_statement,
        }
        if self.token.kind == "name" and self.token.text in simple:
            return [simple[self.token.text]()]
        if self.at("{"):
            return [Block(start, self.block())]
        if self.accept(";"):
            return []
        if self.at("break", "continue"):
            kind = self.take().text
            self.expect(";", f"after `{kind}`")
            return [Jump(start, kind)]
        if self.accept("return"):
            value = None if self.at(";") else self.expression()
            self.expect(";", "after `return`")
            return [Return(self.span_from(start), value)]
        found = self.simple_statement()
        self.expect(";", "after the statement")
        return found

    def if_statement(self) -> If:
        start = self.take().span
        self.expect("(", "after `if`")
        condition = self.expression()
        self.expect(")", "after the condition")
        yes = self.body()
        no = self.body() if self.accept("else") else []
        return If(start, condition, yes, no)

    def for_statement(self) -> Loop:
        start = self.take().span
        self.expect("(", "after `for`")
        first = [] if self.at(";") else self.simple_statement()
        self.expect(";", "after the loop's start")
        condition = None if self.at(";") else self.expression()
        self.expect(";", "after the loop's condition")
        step: list[Tree] = []
        while not self.at(")"):
            step += self.simple_statement()
            if not self.accept(","):
                break
        self.expect(")", "after the loop's step")
        return Loop(start, first, condition, step, self.body(), True)

    def while_statement(self) -> Loop:
        start = self.take().span
        self.expect("(", "after `while`")
        condition = self.expression()
        self.expect(")", "after the condition")
        return Loop(start, [], condition, [], self.body(), True)

    def do_statement(self) -> Loop:
        start = self.take().span
        body = self.body()
        self.expect("while", "after the body of `do`")
        self.expect("(", "after `while`")
        condition = self.expression()
        self.expect(")", "after the condition")
        self.expect(";", "after the loop")
        return Loop(start, [], condition, [], body, False)

    def simple_statement(self) -> list[Tree]:
        """A declaration, a restriction or an assignment, without its `;`."""
        start = self.token.span
        if self.at("const"):
            self.take()
        if self.at("var", "let"):
            return self.declarations(self.take().text, None, start)
        if self.token.kind == "name" and self.peek().text == ":" and self.token.text not in KEYWORDS:
            return [self.restriction()]
        if self.at("("):
            position, depth = self.position, self.depth
            try:
                found = self.restriction()
                if found.domain is not None:
                    return [found]
            except ProgramError:
                pass
            self.position, self.depth = position, depth
        position, depth = self.position, self.depth
        written = self.try_type()
        if (
            written is None
            and self.token.kind == "name"
            and self.peek().kind == "name"
            and self.token.text not in KEYWORDS
        ):
            raise ProgramError(
                "CS0201",
                self.token.span,
                f"`{self.token.text}` is no type",
                "types: " + ", ".join(sorted(self.type_names)),
            )
        if written is not None and self.token.kind == "name" and self.token.text not in KEYWORDS:
            if self.peek().text == ":":
                self.position, self.depth = position, depth
                return [self.restriction()]
            return self.declarations("type", written, start)
        self.position, self.depth = position, depth
        return [self.assignment(start)]

    def declarations(self, kind: str, written: Tree | None, start: Span) -> list[Tree]:
        found: list[Tree] = [self.declare_one(kind, written, start, semicolon=False)]
        while self.accept(","):
            found.append(self.declare_one(kind, written, self.token.span, semicolon=False))
        return found

    def declare_one(self, kind: str, written: Tree | None, start: Span, semicolon: bool = True) -> Declare:
        name = self.name("the variable's name")
        head = self.head() if self.at("(", "[") else None
        value = None
        if self.accept("="):
            value = self.expression()
        elif kind != "type" or head is not None or semicolon:
            if self.at("{", "=>") and head is not None:
                raise ProgramError(
                    "CS0111",
                    name.span,
                    "functions with a body stand outside of other functions",
                    f"or write `var {name.text}(...) = expression;`",
                )
            self.expect("=", f"after `{name.text}`")
        if semicolon:
            self.expect(";", "after the declaration")
        return Declare(self.span_from(start), kind, written, name.text, name.span, head, value)

    def head(self) -> list[HeadVariable]:
        close = ")" if self.take().text == "(" else "]"
        found: list[HeadVariable] = []
        while not self.at(close):
            start = self.token.span
            written = None
            if self.peek().kind == "name":
                written = self.type()
            name = self.name("a bound variable")
            domain = self.domain() if self.accept(":") else None
            if any(other.name == name.text for other in found):
                raise ProgramError("CS0109", name.span, f"the bound variable `{name.text}` is declared twice")
            found.append(HeadVariable(self.span_from(start), name.text, written, domain))
            if not self.at(close):
                self.expect(",", "between bound variables")
        if not found:
            raise ProgramError(
                "CS0105", self.token.span, "expected a bound variable, found nothing between the brackets"
            )
        self.take()
        return found

    def restriction(self) -> Restriction:
        """`l : 0..n`, `int l : f`, `int l`, `(i, j) : f`."""
        start = self.token.span
        if self.accept("("):
            names = [self.name("a bound variable")]
            while self.accept(","):
                names.append(self.name("a bound variable"))
            self.expect(")", "after the bound variables")
            self.expect(":", "after the bound variables")
            domain = self.domain()
            return Restriction(self.span_from(start), [(n.text, n.span) for n in names], None, domain)
        written = None
        if self.peek().kind == "name":
            written = None if self.at("var") and self.take() else self.type()
        name = self.name("a bound variable")
        domain = self.domain() if self.accept(":") else None
        return Restriction(self.span_from(start), [(name.text, name.span)], written, domain)

    def domain(self) -> Tree:
        return self.expression()

    def assignment(self, start: Span) -> Tree:
        if self.at("++", "--"):
            mark = self.take()
            name = self.name("a variable")
            one = Literal(mark.span, 1, "int")
            return Assign(self.span_from(start), name.text, name.span, mark.text[0], one)
        left = self.expression()
        if self.at("++", "--"):
            mark = self.take()
            if not isinstance(left, Name):
                self.cannot_assign(left)
            return Assign(self.span_from(start), left.name, left.span, mark.text[0], Literal(mark.span, 1, "int"))
        if self.token.text in ASSIGNMENTS:
            mark = self.take()
            if not isinstance(left, Name):
                self.cannot_assign(left)
            return Assign(self.span_from(start), left.name, left.span, mark.text[:-1], self.expression())
        raise ProgramError(
            "CS0112", left.span, "this statement has no effect: functions are pure", "return it, or name it with `var`"
        )

    def cannot_assign(self, left: Tree):
        if isinstance(left, Member):
            hint = "make a new value: `v = float3(1, v.y, v.z);`"
        elif isinstance(left, Call):
            hint = f"define the whole function at once: `var {left.callee.span.short}2(i) = ...;`"
        else:
            hint = "the left side is a variable's name"
        raise ProgramError("CS0113", left.span, f"`{left.span.short}` cannot be assigned: values are immutable", hint)

    # Expressions

    def expression(self) -> Tree:
        self.deeper()
        if self.at("let"):
            found = self.let_in()
        elif self.is_lambda():
            found = self.lambda_()
        else:
            found = self.choice()
        self.depth -= 1
        return found

    def let_in(self) -> Tree:
        start = self.take().span
        name = self.name("a name after `let`")
        self.expect("=", "after the name")
        value = self.expression()
        self.expect("in", "after the value of `let`")
        return LetIn(self.span_from(start), name.text, value, self.expression())

    def is_lambda(self) -> bool:
        if self.token.kind == "name" and self.peek().text == "=>":
            return True
        if not self.at("("):
            return False
        ahead = 1
        while self.peek(ahead).kind == "name" or self.peek(ahead).text == ",":
            ahead += 1
        return self.peek(ahead).text == ")" and self.peek(ahead + 1).text == "=>"

    def lambda_(self) -> Tree:
        start = self.token.span
        if self.at("("):
            head = self.head()
        else:
            name = self.name("a parameter")
            head = [HeadVariable(name.span, name.text, None, None)]
        self.expect("=>", "after the parameters")
        body = self.expression()
        return Lambda(self.span_from(start), head, body)

    def choice(self) -> Tree:
        condition = self.interval()
        if not self.accept("?"):
            return condition
        yes = self.expression()
        self.expect(":", "in `condition ? yes : no`")
        no = self.expression()
        return Choice(condition.span.to(no.span), condition, yes, no)

    def interval(self) -> Tree:
        low = self.binary(1)
        if not self.accept(".."):
            return low
        high = self.binary(1)
        return Interval(low.span.to(high.span), low, high)

    def binary(self, weakest: int) -> Tree:
        left, height = self.unary(), 0
        while self.token.kind == "mark" and STRENGTH.get(self.token.text, 0) >= weakest:
            mark = self.take()
            right = self.binary(STRENGTH[mark.text] + 1)
            left = Binary(left.span.to(right.span), mark.text, left, right)
            height += 1
            if height > TALLEST:
                raise ProgramError(
                    "CS0106",
                    mark.span,
                    f"this expression joins more than {TALLEST} parts",
                    "name parts of it with `var`",
                )
        return left

    def unary(self) -> Tree:
        start = self.token.span
        if self.token.kind == "mark" and self.token.text in ("+", "-", "*", "!", "~"):
            self.deeper()
            mark = self.take().text
            if mark in "+*" and self.at("("):
                found = self.reduction(mark, start)
            else:
                operand = self.unary()
                found = Unary(start.to(operand.span), mark, operand)
            self.depth -= 1
            return found
        if self.at("("):
            cast = self.cast(start)
            if cast is not None:
                return cast
        return self.postfix()

    def reduction(self, mark: str, start: Span) -> Tree:
        """`+ (body, l : 0..n)`: restrictions may follow the body; without them this is a plain operand."""
        cast = self.cast(self.token.span)
        if cast is not None:
            return Unary(start.to(cast.span), mark, cast)
        position, depth = self.position, self.depth
        self.take()
        body = self.expression()
        if self.at(","):
            restrictions = self.restrictions()
            end = self.expect(")", "after the reduction")
            return Unary(start.to(end.span), mark, body, restrictions)
        self.position, self.depth = position, depth
        operand = self.postfix()
        return Unary(start.to(operand.span), mark, operand)

    def restrictions(self) -> list[Restriction]:
        found = []
        while self.accept(","):
            found.append(self.restriction())
        return found

    def cast(self, start: Span) -> Tree | None:
        position, depth = self.position, self.depth
        self.take()
        written = self.try_type()
        follows = self.peek()
        operand_starts = follows.kind in ("name", "real", "integer", "hex") or follows.text in (
            "(",
            "-",
            "+",
            "!",
            "~",
            "*",
        )
        if (
            written is None
            or not self.at(")")
            or not operand_starts
            or follows.text in KEYWORDS - {"true", "false", "new"}
        ):
            self.position, self.depth = position, depth
            return None
        self.take()
        self.deeper()
        operand = self.unary()
        self.depth -= 1
        return Cast(start.to(operand.span), written, operand)

    def postfix(self) -> Tree:
        found, height = self.primary(), 0
        while self.at("(", "[", "."):
            height += 1
            if height > TALLEST:
                raise ProgramError("CS0106", self.token.span, f"this expression joins more than {TALLEST} parts")
            if self.take().text == ".":
                name = self.name("a member's name")
                found = Member(found.span.to(name.span), found, name.text, name.span)
                continue
            close = ")" if self.tokens[self.position - 1].text == "(" else "]"
            arguments, restrictions = self.arguments(close)
            end = self.tokens[self.position - 1].span
            found = Call(found.span.to(end), found, arguments, restrictions)
        return found

    def arguments(self, close: str) -> tuple[list[Tree], list[Restriction]]:
        """Arguments, blanks among them, then restrictions."""
        found: list[Tree] = []
        restrictions: list[Restriction] = []
        if self.accept(close):
            return found, restrictions
        while True:
            if self.at(",", close):
                found.append(Blank(self.token.span))
            elif found and self.at_restriction():
                restrictions.append(self.restriction())
            elif restrictions:
                raise ProgramError("CS0104", self.token.span, "restrictions stand after all arguments")
            elif self.at("_") and self.peek().text in (",", close):
                found.append(Blank(self.take().span))
            else:
                found.append(self.expression())
            if self.accept(close):
                return found, restrictions
            self.expect(",", "between arguments")

    def at_restriction(self) -> bool:
        if self.token.kind == "name" and self.peek().text == ":" and self.token.text not in KEYWORDS:
            return True
        if self.token.text in (*PRIMITIVES, "var") and self.peek().kind == "name":
            return True
        if self.at("("):
            ahead = 1
            while self.peek(ahead).kind == "name" or self.peek(ahead).text == ",":
                ahead += 1
            return self.peek(ahead).text == ")" and self.peek(ahead + 1).text == ":"
        return False

    def primary(self) -> Tree:
        token = self.token
        if token.kind in ("integer", "hex", "real"):
            return self.number(self.take())
        if token.kind == "string":
            self.take()
            return Literal(token.span, re.sub(r"\\(.)", r"\1", token.text[1:-1]), "text")
        if token.text in ("true", "false") and token.kind == "name":
            self.take()
            return Literal(token.span, token.text == "true", "bool")
        if self.accept("("):
            found = self.expression()
            if self.at(","):
                raise ProgramError(
                    "CS0104",
                    self.token.span,
                    "expected `)`, found `,`",
                    "restrictions may follow only the body of a reduction: `+ (a(l), l : 0..n)`",
                )
            self.expect(")", "after the expression")
            return found
        if self.at("new"):
            self.take()
        if token.kind == "name" and self.token.text in self.type_names:
            return self.type_call()
        if self.token.kind == "name" and self.token.text not in KEYWORDS:
            name = self.take()
            return Name(name.span, name.text)
        raise ProgramError("CS0105", self.token.span, f"expected an expression, found {self.found()}")

    def type_call(self) -> Tree:
        name = self.take()
        if not self.at("("):
            raise ProgramError(
                "CS0105",
                name.span,
                f"`{name.text}` is a type, not a value",
                f"convert with `({name.text}) x`, make with `{name.text}(...)`",
            )
        self.take()
        arguments, restrictions = self.arguments(")")
        if restrictions:
            raise ProgramError("CS0104", restrictions[0].span, "a restriction has no meaning here")
        return TypeCall(self.span_from(name.span), NamedType(name.span, name.text), arguments)

    def number(self, token: Token) -> Literal:
        text = token.text.replace("_", "").lower()
        if token.kind == "real":
            kind = {"f": "float", "d": "double"}.get(text[-1], "real")
            value = float(text.rstrip("fd"))
            if value in (float("inf"),):
                raise ProgramError("CS0114", token.span, "this number is too large for double")
            if kind in ("float", "real") and value > 3.4028235677973366e38 and kind == "float":
                raise ProgramError(
                    "CS0114", token.span, "this number is too large for float", "write it as double: 1e40d"
                )
            return Literal(token.span, value, kind)
        unsigned = text.endswith("u")
        digits = text.rstrip("u")
        if len(digits) > 20:
            raise ProgramError(
                "CS0114", token.span, "this number is too large for int", "write it as a real number: 1e30"
            )
        value = int(digits, 16) if token.kind == "hex" else int(digits)
        limit = 2**32 if unsigned or token.kind == "hex" else 2**31 + 1
        if value >= limit:
            raise ProgramError(
                "CS0114",
                token.span,
                f"{digits} is too large for {'uint' if unsigned else 'int'}",
                "write it as a real number: 1e30",
            )
        if token.kind == "hex" and value >= 2**31:
            unsigned = True
        return Literal(token.span, value, "uint" if unsigned else "int")


def parse(source: Source) -> Program:
    """The tree of a program's text."""
    return Parser(source).program()


def parse_line(source: Source, type_names: set[str]) -> tuple[list[Tree], Tree | None]:
    """A line of the REPL: items or statements, or one expression."""
    parser = Parser(source)
    parser.type_names |= type_names
    position = parser.position
    try:
        value = parser.expression()
        parser.accept(";")
        if parser.token.kind == "end":
            return [], value
        wrong = None
    except ProgramError as error:
        wrong = error
    parser.position, parser.depth = position, 0
    return statements_of_line(parser, wrong), None


def statements_of_line(parser: Parser, wrong: ProgramError | None) -> list[Tree]:
    found: list[Tree] = []
    while parser.token.kind != "end":
        position = parser.position
        try:
            found += parser.statement()
        except ProgramError as error:
            parser.position, parser.depth = position, 0
            try:
                found.append(parser.item())
            except ProgramError:
                raise wrong or error from None
    return found
