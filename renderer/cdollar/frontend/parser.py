"""Text to tree: items and statements of C$ (.cb files) by recursive descent."""

from __future__ import annotations

from typing import NoReturn

from renderer.cdollar.frontend.ast import (
    Assignment,
    AstNode,
    Block,
    Call,
    ClassDeclaration,
    FunctionDeclaration,
    GlobalDeclaration,
    If,
    Jump,
    Literal,
    Loop,
    MemberAccess,
    Name,
    Parameter,
    Program,
    Return,
    TypeAlias,
    VariableDeclaration,
)
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile, Span
from renderer.cdollar.frontend.expression_parser import ExpressionParser
from renderer.cdollar.frontend.lexer import KEYWORDS, Token

MODIFIERS = frozenset({"public", "static", "private", "pure"})
OPERATORS = ("+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "<<", ">>", "!", "~")
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")


class Parser(ExpressionParser):
    """A whole program, or a line of the prompt."""

    # Items

    def program(self) -> Program:
        items = []
        while self.token.kind != "eof":
            items.append(self.declaration())
        return Program(self.source, items)

    def declaration(self) -> AstNode:
        start = self.token.span
        attributes = self.attributes()
        while self.token.text in MODIFIERS:
            self.advance()
        if self.at("type"):
            self.advance()
            name = self.expect_identifier("the name of the alias")
            self.expect("=", "after the alias's name")
            written = self.type()
            self.expect(";", "after the alias")
            return TypeAlias(self.span_from(start), name.text, written)
        if self.at("final", "class"):
            return self.class_declaration(start)
        if self.at("var", "const", "let"):
            return self.variable_declaration(start)
        if not self.starts_type():
            raise ProgramError(
                "CS0107", self.token.span,
                f"expected a function, class, type or constant, found {self.describe_token()}",
                "a function starts with the type it returns: `float f(float x) { ... }`",
            )  # fmt: skip
        return self.function_or_constant(start, attributes)

    def attributes(self) -> dict[str, Span]:
        found = {}
        while self.at("["):
            self.advance()
            while True:
                name = self.expect_identifier("an attribute")
                if name.text not in ("Associative", "Commutative"):
                    raise ProgramError(
                        "CS0108", name.span, f"`{name.text}` is no attribute", "allowed: [Associative], [Commutative]"
                    )
                found[name.text] = name.span
                if not self.accept(","):
                    break
            self.expect("]", "after the attribute")
        return found

    def variable_declaration(self, start: Span) -> AstNode:
        if self.at("const"):
            self.advance()
            return GlobalDeclaration(self.span_from(start), self.variable_declarator("type", self.type(), start))
        kind = self.advance().text
        declare = self.variable_declarator(kind, None, start)
        if declare.parameters is not None and self.at("{", "=>"):
            raise ProgramError(
                "CS0107", start, "a function with a body names the type it returns", "`float f(float x) { ... }`"
            )
        return GlobalDeclaration(self.span_from(start), declare)

    def function_or_constant(self, start: Span, attributes: dict[str, Span]) -> AstNode:
        result = self.type()
        if self.accept("operator"):
            mark = self.advance()
            if mark.text not in OPERATORS:
                raise ProgramError(
                    "CS0105", mark.span, f"`{mark.text}` cannot be defined", "allowed: " + " ".join(OPERATORS)
                )
            name = Token("identifier", "operator" + mark.text, mark.span)
        else:
            name = self.expect_identifier("a name after the type")
        if not self.at("("):
            self.position -= 1
            declare = self.variable_declarator("type", result, start)
            return GlobalDeclaration(self.span_from(start), declare)
        parameters = self.parameters()
        header = self.span_from(start)
        if self.at("=>", "="):
            self.advance()
            value = self.expression()
            self.expect(";", "after the function")
            body: list[AstNode] = [Return(value.span, value)]
        else:
            body = self.block()
        return FunctionDeclaration(header, name.text, name.span, result, parameters, body, attributes)

    def parameters(self) -> list[Parameter]:
        self.expect("(", "before the parameters")
        found: list[Parameter] = []
        while not self.at(")"):
            start = self.token.span
            written = self.type()
            name = self.expect_identifier("the parameter's name")
            default = self.expression() if self.accept("=") else None
            if any(other.name == name.text for other in found):
                raise ProgramError("CS0109", name.span, f"the parameter `{name.text}` is declared twice")
            found.append(Parameter(self.span_from(start), written, name.text, default))
            if not self.at(")"):
                self.expect(",", "between parameters")
        self.advance()
        return found

    def class_declaration(self, start: Span) -> ClassDeclaration:
        self.accept("final")
        self.expect("class", "after `final`")
        name = self.expect_identifier("the class's name")
        if self.at(":"):
            raise ProgramError(
                "CS0110",
                self.token.span,
                "a class derives from nothing here",
                'a function bound to a file is file("big.npy")',
            )
        self.expect("{", "before the fields")
        fields: list[tuple[str, AstNode, Span]] = []
        while not self.at("}"):
            while self.token.text in MODIFIERS:
                self.advance()
            written = self.type()
            while True:
                field_name = self.expect_identifier("a field's name")
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
        self.advance()
        self.accept(";")
        return ClassDeclaration(self.span_from(start), name.text, name.span, fields)

    # Statements

    def block(self) -> list[AstNode]:
        self.expect("{", "before the body")
        self.enter_nesting()
        found = []
        while not self.at("}"):
            if self.token.kind == "eof":
                raise ProgramError(
                    "CS0104", self.token.span, "expected `}` at the end of the body, found the end of the file"
                )
            found += self.statement()
        self.advance()
        self.depth -= 1
        return found

    def body(self) -> list[AstNode]:
        if self.at("{"):
            return self.block()
        self.enter_nesting()
        found = self.statement()
        self.depth -= 1
        return found

    def statement(self) -> list[AstNode]:
        start = self.token.span
        simple = {
            "if": self.if_statement,
            "for": self.for_statement,
            "while": self.while_statement,
            "do": self.do_statement,
        }
        if self.token.kind == "identifier" and self.token.text in simple:
            return [simple[self.token.text]()]
        if self.at("{"):
            return [Block(start, self.block())]
        if self.accept(";"):
            return []
        if self.at("break", "continue"):
            kind = self.advance().text
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
        start = self.advance().span
        self.expect("(", "after `if`")
        condition = self.expression()
        self.expect(")", "after the condition")
        yes = self.body()
        no = self.body() if self.accept("else") else []
        return If(start, condition, yes, no)

    def for_statement(self) -> Loop:
        start = self.advance().span
        self.expect("(", "after `for`")
        first = [] if self.at(";") else self.simple_statement()
        self.expect(";", "after the loop's start")
        condition = None if self.at(";") else self.expression()
        self.expect(";", "after the loop's condition")
        step: list[AstNode] = []
        while not self.at(")"):
            step += self.simple_statement()
            if not self.accept(","):
                break
        self.expect(")", "after the loop's step")
        return Loop(start, first, condition, step, self.body(), True)

    def while_statement(self) -> Loop:
        start = self.advance().span
        self.expect("(", "after `while`")
        condition = self.expression()
        self.expect(")", "after the condition")
        return Loop(start, [], condition, [], self.body(), True)

    def do_statement(self) -> Loop:
        start = self.advance().span
        body = self.body()
        self.expect("while", "after the body of `do`")
        self.expect("(", "after `while`")
        condition = self.expression()
        self.expect(")", "after the condition")
        self.expect(";", "after the loop")
        return Loop(start, [], condition, [], body, False)

    def simple_statement(self) -> list[AstNode]:
        """A declaration, a restriction or an assignment, without its `;`."""
        start = self.token.span
        if self.at("const"):
            self.advance()
        if self.at("var", "let"):
            return self.declarations(self.advance().text, None, start)
        if self.token.kind == "identifier" and self.peek().text == ":" and self.token.text not in KEYWORDS:
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
            and self.token.kind == "identifier"
            and self.peek().kind == "identifier"
            and self.token.text not in KEYWORDS
        ):
            raise ProgramError(
                "CS0201",
                self.token.span,
                f"`{self.token.text}` is no type",
                "types: " + ", ".join(sorted(self.type_names)),
            )
        if written is not None and self.token.kind == "identifier" and self.token.text not in KEYWORDS:
            if self.peek().text == ":":
                self.position, self.depth = position, depth
                return [self.restriction()]
            return self.declarations("type", written, start)
        self.position, self.depth = position, depth
        return [self.assignment(start)]

    def declarations(self, kind: str, written: AstNode | None, start: Span) -> list[AstNode]:
        found: list[AstNode] = [self.variable_declarator(kind, written, start, semicolon=False)]
        while self.accept(","):
            found.append(self.variable_declarator(kind, written, self.token.span, semicolon=False))
        return found

    def variable_declarator(
        self, kind: str, written: AstNode | None, start: Span, semicolon: bool = True
    ) -> VariableDeclaration:
        name = self.expect_identifier("the variable's name")
        parameters = self.bound_parameters() if self.at("(", "[") else None
        value = None
        if self.accept("="):
            value = self.expression()
        elif kind != "type" or parameters is not None or semicolon:
            if self.at("{", "=>") and parameters is not None:
                raise ProgramError(
                    "CS0111",
                    name.span,
                    "functions with a body stand outside of other functions",
                    f"or write `var {name.text}(...) = expression;`",
                )
            self.expect("=", f"after `{name.text}`")
        if semicolon:
            self.expect(";", "after the declaration")
        return VariableDeclaration(self.span_from(start), kind, written, name.text, name.span, parameters, value)

    def assignment(self, start: Span) -> AstNode:
        if self.at("++", "--"):
            mark = self.advance()
            name = self.expect_identifier("a variable")
            one = Literal(mark.span, 1, "int")
            return Assignment(self.span_from(start), name.text, name.span, mark.text[0], one)
        left = self.expression()
        if self.at("++", "--"):
            mark = self.advance()
            if not isinstance(left, Name):
                self.cannot_assign(left)
            return Assignment(self.span_from(start), left.name, left.span, mark.text[0], Literal(mark.span, 1, "int"))
        if self.token.text in ASSIGNMENTS:
            mark = self.advance()
            if not isinstance(left, Name):
                self.cannot_assign(left)
            return Assignment(self.span_from(start), left.name, left.span, mark.text[:-1], self.expression())
        raise ProgramError(
            "CS0112", left.span, "this statement has no effect: functions are pure", "return it, or name it with `var`"
        )

    def cannot_assign(self, left: AstNode) -> NoReturn:
        if isinstance(left, MemberAccess):
            hint = "make a new value: `v = float3(1, v.y, v.z);`"
        elif isinstance(left, Call):
            hint = f"define the whole function at once: `var {left.callee.span.excerpt}2(i) = ...;`"
        else:
            hint = "the left side is a variable's name"
        raise ProgramError("CS0113", left.span, f"`{left.span.excerpt}` cannot be assigned: values are immutable", hint)


def parse(source: SourceFile) -> Program:
    """The tree of a program's text."""
    return Parser(source).program()


def parse_repl_input(source: SourceFile, type_names: set[str]) -> tuple[list[AstNode], AstNode | None]:
    """A line of the REPL: items or statements, or one expression."""
    parser = Parser(source)
    parser.type_names |= type_names
    position = parser.position
    try:
        value = parser.expression()
        parser.accept(";")
        if parser.token.kind == "eof":
            return [], value
        wrong = None
    except ProgramError as error:
        wrong = error
    parser.position, parser.depth = position, 0
    return parse_statements(parser, wrong), None


def parse_statements(parser: Parser, wrong: ProgramError | None) -> list[AstNode]:
    found: list[AstNode] = []
    while parser.token.kind != "eof":
        position = parser.position
        try:
            found += parser.statement()
        except ProgramError as error:
            parser.position, parser.depth = position, 0
            try:
                found.append(parser.declaration())
            except ProgramError:
                raise wrong or error from None
    return found
