"""Parses programs and lines of the REPL: declarations and statements of C$ (.cb files), by recursive descent.

`self.token` is the next token. at() tests its text, accept() takes the token if it has that text, expect() takes it or
reports an error, and fail() reports an error (lexer.py). A span is a range of the source text.
"""

import sys
from collections.abc import Set
from typing import NoReturn

from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import MAX_SHOWN_ERRORS, ProgramError, SourceFile, Span, raise_first
from renderer.cdollar.frontend.expression_parser import ExpressionParser
from renderer.cdollar.frontend.hints import WORDS, did_you_mean
from renderer.cdollar.frontend.lexer import KEYWORDS, Token

MIN_RECURSION_LIMIT = 20_000  # the parser, and the checker after it, recurse over nested expressions
FOREIGN = ("def", "fn", "func", "function")  # words that begin functions in other languages
MODIFIERS = frozenset({"public", "static", "private", "pure"})
OPERATORS = ("+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "<<", ">>", "!", "~")
Attributes = dict[str, Span]  # the attributes of a function: name -> span
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")


class Parser(ExpressionParser):
    """Parses the declarations of a program, or a line of the REPL."""

    # Declarations

    def declaration(self) -> list[ast.AstNode]:
        """A function, a class, a type alias, or constants: `float[] g = [1.0], l = [2.0];`."""
        start = self.token.span
        attributes = self.attributes()
        self.skip_modifiers()
        if self.accept("type"):
            name = self.expect_identifier("the name of the alias")
            self.expect("=", "after the alias's name")
            type_ = self.type()
            self.expect(";", "after the alias")
            return [ast.TypeAlias(self.span_from(start), name.text, name.span, type_)]
        if self.at("final", "class") or self.at("mutable") and self.peek().text in ("final", "class"):
            return [self.class_declaration(start)]
        if self.at("var", "const", "let"):
            kind, type_of_const = ("type", self.type()) if self.accept("const") else (self.advance().text, None)
            return self.constants(kind, type_of_const, start)
        if self.token.text in FOREIGN:
            self.fail("CS0107", f"expected a function, found `{self.token.text}`", WORDS["def"])
        if not (self.at("(") or self.token.is_name or self.token.is_identifier and self.token.text in self.type_names):
            message = f"expected a function, class, type or constant, found {self.describe_token()}"
            self.fail("CS0107", message, "a function starts with the type it returns: `float f(float x) { ... }`")
        return self.function_or_constant(start, attributes)

    def skip_declaration(self) -> None:
        """After an error: goes to the next word at the start of a line, where another declaration may begin."""
        self.advance()
        self.depth = 0
        while self.token.kind != "eof":
            start = self.token.span.start  # at least 1: the token follows another one
            if self.source.text[start - 1] == "\n" and self.token.is_identifier:
                return
            self.advance()

    def skip_modifiers(self) -> None:
        """Takes C# modifiers, which C$ ignores."""
        while self.token.text in MODIFIERS:
            self.advance()

    def attributes(self) -> dict[str, Span]:
        """`[Associative, Commutative]` before a function, with their spans."""
        attributes: dict[str, Span] = {}
        while self.accept("["):
            for _ in self.separated():
                name = self.expect_identifier("an attribute")
                if name.text not in ("Associative", "Commutative"):
                    hint = "allowed: [Associative], [Commutative]"
                    self.fail("CS0108", f"unknown attribute `{name.text}`", hint, name.span)
                attributes[name.text] = name.span
            self.expect("]", "after the attribute")
        return attributes

    def constants(self, kind: str, type_: ast.AstNode | None, start: Span) -> list[ast.AstNode]:
        """`g = e, l = e;` after the type or the `var` of constants.

        `kind`: "type" for constants with a type, else the word that began the declaration: "var" or "let".
        """
        constants: list[ast.AstNode] = [self.variable_declarator(kind, type_, start) for _ in self.separated()]
        self.expect(";", "after the declaration")
        return constants

    def function_or_constant(self, start: Span, attributes: dict[str, Span]) -> list[ast.AstNode]:
        """`float f(float x) { ... }`, `float f(float x) => e;`, `float g = e;`."""
        result = self.type()
        name = self.operator_name() if self.accept("operator") else self.expect_identifier("a name after the type")
        if not self.at("(", "<"):
            self.position -= 1  # constants() takes the name itself
            return self.constants("type", result, start)
        return [self.function(start, result, name, attributes)]

    def operator_name(self) -> Token:
        """The operator behind `operator`, as the name of a function."""
        operator = self.advance()
        if operator.text not in OPERATORS:
            hint = "allowed: " + " ".join(OPERATORS)
            self.fail("CS0105", f"`{operator.text}` cannot be defined", hint, operator.span)
        return Token("identifier", "operator" + operator.text, operator.span)

    def type_parameters(self) -> list[str]:
        """`<T, U>` behind the name of a generic function."""
        self.expect("<", "before the type parameters")
        names: list[str] = []
        for _ in self.items(">", "between type parameters"):
            name = self.expect_identifier("a type parameter")
            self.check_new(name, {*names, *self.type_names}, "type")
            names.append(name.text)
        return names

    def function(
        self, start: Span, result: ast.AstNode, name: Token, attributes: Attributes
    ) -> ast.FunctionDeclaration:
        """A function, method or operator after its name: optional type parameters, parameters and body."""
        types = self.type_parameters() if self.at("<") else []
        # inside of the function, the names of type parameters are names of types
        outer_type_names, self.type_names = self.type_names, self.type_names | set(types)
        try:
            parameters = self.parameters()
            header = self.span_from(start)
            if self.accept("=>") or self.accept("="):
                value = self.expression()
                self.expect(";", "after the function")
                body: list[ast.AstNode] = [ast.Return(value.span, value)]
            else:
                body = self.block()
        finally:
            self.type_names = outer_type_names
        return ast.FunctionDeclaration(
            header, name.text, name.span, result, parameters, body, attributes, self.span_from(start), types
        )

    def parameters(self) -> list[ast.Parameter]:
        """`(float[] a, int n = 5)`."""
        self.expect("(", "before the parameters")
        parameters: list[ast.Parameter] = []
        for _ in self.items(")", "between parameters"):
            start = self.token.span
            type_ = self.type()
            name = self.variable_name(type_.span.excerpt)
            default = self.expression() if self.accept("=") else None
            self.check_new(name, [other.name for other in parameters], "parameter")
            parameters.append(ast.Parameter(self.span_from(start), type_, name.text, name.span, default))
        return parameters

    def class_declaration(self, start: Span) -> ast.ClassDeclaration:
        """`final class Complex { float re, im; float norm() => ...; }`, `final class Ramp : float(int) { ... }`."""
        is_mutable = self.accept("mutable") is not None
        self.accept("final")
        self.expect("class", "after `final`")
        name = self.expect_identifier("the class's name")
        base = self.type() if self.accept(":") else None
        item = ast.ClassDeclaration(name.span, name.text, name.span, [], [], base, is_mutable=is_mutable)
        self.expect("{", "before the fields")
        while not self.accept("}"):
            self.member(item)
        self.accept(";")
        if base is not None and item.evaluation is None:
            hint = f"`{name.text}` needs it, such as `float operator ()(int i) => ...;`"
            self.fail("CS0115", "a class derived from a functional type has an `operator ()`", hint, name.span)
        item.span = self.span_from(start)
        return item

    def member(self, item: ast.ClassDeclaration) -> None:
        """A field, a method, or an operator of a class."""
        start = self.token.span
        self.skip_modifiers()
        type_ = self.type()
        if self.accept("operator"):
            if item.base is not None:
                self.evaluation(item, start)
            else:
                item.methods.append(self.function(start, type_, self.operator_name(), {}))
            return
        for _ in self.separated():
            name = self.expect_identifier("a field's name")
            if self.at("(", "<"):
                method = self.function(start, type_, name, {})
                if item.base is None:
                    item.methods.append(method)
                    return
                if name.text != "read" or len(method.parameters) != 2 or item.block_read is not None:
                    message = "a class derived from a functional type has fields, `operator ()` and one `read`"
                    self.fail("CS0115", message, "`float[] read(int low, int high) => ...`", name.span)
                item.block_read = method
                return
            self.check_new(name, [field for field, _, _ in item.fields], "field")
            item.fields.append((name.text, type_, name.span))
        self.expect(";", "after the field")

    def evaluation(self, item: ast.ClassDeclaration, start: Span) -> None:
        """`operator ()(int i) => expression;`, behind `operator`."""
        if item.evaluation is not None:
            self.fail("CS0109", "`operator ()` is declared twice")
        self.expect("(", "after `operator`")
        self.expect(")", "after `operator (`")
        if not self.at("("):  # bound_parameters() would also take `[`
            self.expect("(", "before the parameters")
        parameters = self.bound_parameters()
        self.expect("=>", "after the parameters")
        body = self.expression()
        self.expect(";", "after the function")
        item.evaluation = ast.Lambda(self.span_from(start), parameters, body)

    # Statements

    def block(self) -> list[ast.AstNode]:
        """`{ ... }`."""
        self.expect("{", "before the body")
        statements = []
        with self.nesting():
            while not self.accept("}"):
                if self.token.kind == "eof":
                    self.fail("CS0104", "expected `}` at the end of the body, found the end of the file")
                statements += self.statement()
        return statements

    def branch(self) -> list[ast.AstNode]:
        """A block or one statement."""
        if self.at("{"):
            return self.block()
        with self.nesting():
            return self.statement()

    def statement(self) -> list[ast.AstNode]:
        """One statement; a declaration of several variables is several."""
        start = self.token.span
        if self.accept("if"):
            condition, if_true = self.condition("if"), self.branch()
            return [ast.If(start, condition, if_true, self.branch() if self.accept("else") else [])]
        if self.accept("for"):
            return [self.for_statement(start)]
        if self.token.text == "foreach":
            self.advance()
            self.expect("(", "after `foreach`")
            self.fail_loop_over_elements()
        if self.accept("while"):
            return [ast.Loop(start, [], self.condition("while"), [], self.branch(), test_first=True)]
        if self.accept("do"):
            body = self.branch()
            self.expect("while", "after the body of `do`")
            condition = self.condition("while")
            self.expect(";", "after the loop")
            return [ast.Loop(start, [], condition, [], body, test_first=False)]
        if self.at("{"):
            return [ast.Block(start, self.block())]
        if self.accept(";"):
            return []
        if self.at("break", "continue"):
            kind = self.advance().text
            self.expect(";", f"after `{kind}`")
            return [ast.Jump(start, kind)]
        if self.accept("return"):
            value = None if self.at(";") else self.expression()
            self.expect(";", "after `return`")
            return [ast.Return(self.span_from(start), value)]
        statements = self.simple_statement()
        self.expect(";", "after the statement")
        return statements

    def condition(self, keyword: str) -> ast.AstNode:
        """`(condition)`."""
        self.expect("(", f"after `{keyword}`")
        condition = self.expression()
        self.expect(")", "after the condition")
        return condition

    def for_statement(self, start: Span) -> ast.Loop:
        """`for (start; condition; step) ...`, behind the `for`."""
        self.expect("(", "after `for`")
        if any(self.peek(ahead).text == "in" for ahead in (1, 2)):
            self.fail_loop_over_elements()
        first = [] if self.at(";") else self.simple_statement()
        self.expect(";", "after the loop's start")
        condition = None if self.at(";") else self.expression()
        self.expect(";", "after the loop's condition")
        step: list[ast.AstNode] = []
        while not self.at(")"):
            step += self.simple_statement()
            if not self.accept(","):
                break
        self.expect(")", "after the loop's step")
        return ast.Loop(start, first, condition, step, self.branch(), test_first=True)

    def fail_loop_over_elements(self) -> NoReturn:
        """Raises CS0105: loops have no `in`."""
        names = [token.text for token in (self.token, self.peek(), self.peek(2), self.peek(3))]
        array = names[names.index("in") + 1] if "in" in names[:3] else "a"
        message = "a loop counts: `for (int i = 0; i < n; i++) ...`"
        hint = f"elements need no loop: `sum({array}(i))`, `var b(i) = f({array}(i))`"
        self.fail("CS0105", message, f"{hint}, `fold(step, start, {array}(i))`")

    def variable_name(self, type_: str) -> Token:
        """The name of a new variable or parameter; raises CS0105 for the name of a type."""
        if self.token.text in (*ast.PRIMITIVES, *ast.VECTORS):
            name = self.token.text
            self.fail("CS0105", f"`{name}` is a type and names no variable", f"use another name: `{type_} {name}_1`")
        return self.expect_identifier("the variable's name")

    def simple_statement(self) -> list[ast.AstNode]:
        """A declaration, a restriction or an assignment, without its `;`."""
        start = self.token.span
        self.accept("const")
        is_mutable = self.accept("mutable") is not None
        if self.at("var") and self.peek().text == "(":
            return self.deconstruction(start, is_mutable)
        if self.at("var") or self.at("let") and not is_mutable:
            return self.variable_declarations(self.advance().text, None, start, is_mutable)
        if is_mutable:
            return self.variable_declarations("type", self.type(), start, is_mutable)
        if self.text_after_names() == ":":  # `i : 0..n`
            return [self.restriction()]
        state = self.state
        type_ = self.try_type()
        if type_ is None and self.token.is_name and self.peek().is_identifier:
            self.fail_unknown_type()
        is_declaration = type_ is not None and self.token.is_name
        if is_declaration and self.peek().text != ":":
            return self.variable_declarations("type", type_, start)
        self.rewind(state)
        return [self.restriction() if is_declaration else self.assignment(start)]  # `int i : 0..n`, or `x = 1`

    def deconstruction(self, start: Span, is_mutable: bool) -> list[ast.AstNode]:
        """`var (x, y) = f(a)`: a variable with the name `(x, y)`, which no program can write, holds the tuple.

        Each of x and y is declared as an element of it.
        """
        self.advance()
        first = self.advance().span
        names = [self.variable_name("var") for _ in self.separated()]
        self.expect(")", "after the names")
        whole = self.span_from(first)
        self.expect("=", "after the names")
        value = self.expression()
        span = self.span_from(start)
        declared: list[ast.AstNode] = [ast.VariableDeclaration(span, "var", None, whole.text, whole, None, value)]
        for k, name in enumerate(names):
            element = ast.TupleElement(value.span, ast.Name(value.span, whole.text), k, len(names))
            declared.append(ast.VariableDeclaration(span, "var", None, name.text, name.span, None, element, is_mutable))
        return declared

    def fail_unknown_type(self) -> NoReturn:
        """Raises CS0201 for a word before a name; it may be a keyword with a mistake."""
        word = self.token.text
        hint = WORDS.get(word) or did_you_mean(word, self.type_names | KEYWORDS)
        hint = hint or "types: " + ", ".join(sorted(self.type_names))
        self.fail("CS0201", f"unknown type `{self.token.span.excerpt}`", hint)

    def variable_declarations(
        self, kind: str, type_: ast.AstNode | None, start: Span, is_mutable: bool = False
    ) -> list[ast.AstNode]:
        """The declarations `x = 1` and `y = 2` of `var x = 1, y = 2`, behind the `var` or the type."""
        declarations: list[ast.AstNode] = []
        for _ in self.separated():
            first = self.token.span if declarations else start
            declarations.append(self.variable_declarator(kind, type_, first, is_mutable, is_statement=True))
        return declarations

    def variable_declarator(
        self, kind: str, type_: ast.AstNode | None, start: Span, is_mutable: bool = False, is_statement: bool = False
    ) -> ast.VariableDeclaration:
        """`x = e`, `f(i, j) = e`, or in a statement `x` alone after a type."""
        name = self.variable_name(type_.span.excerpt if type_ is not None else kind)
        sizes = self.local_array_sizes() if is_statement and kind == "type" else []
        if sizes:
            span = self.span_from(start)
            return ast.VariableDeclaration(span, kind, type_, name.text, name.span, None, None, is_mutable, sizes)
        parameters = self.bound_parameters() if self.at("(", "[") else None
        value = None
        if self.accept("="):
            value = self.expression()
        elif kind != "type" or parameters is not None or not is_statement:
            if self.at("{", "=>") and parameters is not None:
                message = "functions with a body belong outside of other functions"
                self.fail("CS0111", message, f"or write `var {name.text}(...) = expression;`", name.span)
            self.expect("=", f"after `{name.text}`")
        span = self.span_from(start)
        return ast.VariableDeclaration(span, kind, type_, name.text, name.span, parameters, value, is_mutable)

    def local_array_sizes(self) -> list[ast.AstNode]:
        """`[2, 3]` of `float t[2, 3];`; [] if something else is next, as in `float t[i] = i * i;`."""
        end = self.position
        while self.tokens[end].text not in ("]", ":", ";", "{", ""):  # "": the end of the file
            end += 1
        # a `;` before the `]`: expect() below reports that the bracket is missing
        has_sizes = self.at("[") and self.tokens[end].text in ("]", ";") and end > self.position + 1
        if not has_sizes or self.tokens[end + 1].text == "=":
            return []
        self.advance()
        sizes = [self.expression() for _ in self.separated()]
        self.expect("]", "after the sizes of the array")
        return sizes

    def assignment(self, start: Span) -> ast.AstNode:
        """`x = e`, `x += e`, `x++`, `++x`."""
        if self.at("++", "--"):
            operator, name = self.advance(), self.expect_identifier("a variable")
            left: ast.AstNode = ast.Name(name.span, name.text)
        else:
            left = self.expression()
            if not self.at("++", "--", *ASSIGNMENTS):
                self.fail_without_effect(left)
            operator = self.advance()
        root = left  # the variable x of x, x.y, x[2] and x.y[2]
        while isinstance(root, (ast.MemberAccess, ast.Call)):
            root = root.subject if isinstance(root, ast.MemberAccess) else root.callee
        if not isinstance(root, ast.Name):
            self.fail_assignment(left)
        span, is_step = self.span_from(start), operator.text in ("++", "--")
        value = ast.Literal(operator.span, 1, "int") if is_step else self.expression()
        if left is root:
            return ast.Assignment(span, root.name, root.span, operator.text[:-1], value)
        if operator.text != "=":
            value = ast.Binary(span, operator.text[:-1], left, value)
        return ast.Assignment(span, root.name, root.span, "", updated_variable(left, value, span), left)

    def fail_without_effect(self, expression: ast.AstNode) -> NoReturn:
        """Raises CS0112 for a statement that is an expression; its first word may be a keyword with a mistake."""
        word = expression.callee if isinstance(expression, ast.Call) else expression
        wrong = word.name if isinstance(word, ast.Name) else ""
        # `whlie (c) {` reads as a call before a brace, `retrun 1;` as a name that no `;` follows; `print(a);` as a call
        is_keyword = self.at("{") if isinstance(expression, ast.Call) else not self.at(";")
        meant = WORDS.get(wrong) or (did_you_mean(wrong, KEYWORDS) if is_keyword else "")
        message, hint = "this statement has no effect: functions are pure", "return it, or name it with `var`"
        self.fail("CS0112", message, meant or hint, expression.span)

    def fail_assignment(self, left: ast.AstNode) -> NoReturn:
        """Raises CS0113: the left side is not a variable."""
        hint = "the left side is a variable's name"
        if isinstance(left, ast.MemberAccess):
            hint = "make a new value: `v = float3(1, v.y, v.z);`"
        elif isinstance(left, ast.Call):
            hint = f"define the whole function at once: `var {left.callee.span.excerpt}2(i) = ...;`"
        elif isinstance(left, ast.TupleExpression):
            first = left.elements[0].span.excerpt
            message = f"`{left.span.excerpt}` cannot be assigned: an assignment has one target"
            self.fail("CS0113", message, f"name the parts, `var (x, y) = ...;`, then assign `{first} = x;`", left.span)
        self.fail("CS0113", f"`{left.span.excerpt}` cannot be assigned: values are immutable", hint, left.span)


def updated_variable(left: ast.AstNode, value: ast.AstNode, span: Span) -> ast.AstNode:
    """The value of the variable in `left` after `left = value`: of x after `x.y[2] = v`, x with y that has v at 2."""
    while isinstance(left, (ast.MemberAccess, ast.Call)):
        if isinstance(left, ast.MemberAccess):
            value = ast.WithField(span, left.subject, left.name, value)
            left = left.subject
        else:
            value = ast.WithElements(span, left.callee, left.arguments, value)
            left = left.callee
    return value


def parse(source: SourceFile) -> list[ast.AstNode]:
    """The declarations of a program's text; raises ProgramError, with the errors of later declarations."""
    items, errors = parse_declarations(source)
    raise_first(errors)
    return items


def parse_declarations(source: SourceFile) -> tuple[list[ast.AstNode], list[ProgramError]]:
    """The declarations of a program's text without an error of syntax, and the errors; raises what the lexer raises."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), MIN_RECURSION_LIMIT))
    parser, items = Parser(source), []
    errors: list[ProgramError] = []
    while parser.token.kind != "eof" and len(errors) <= MAX_SHOWN_ERRORS:
        try:
            items += parser.declaration()
        except ProgramError as error:
            errors.append(error)
            parser.skip_declaration()
    return items, errors


def parse_repl_input(source: SourceFile, type_names: Set[str]) -> tuple[list[ast.AstNode], ast.AstNode | None]:
    """Declarations and statements, or one expression; the last one needs no `;`."""
    parser = Parser(source)
    parser.type_names |= type_names
    parser.end_is_semicolon = True
    expression_errors: list[ProgramError] = []
    try:
        value = parser.expression()
        parser.accept(";")
        if parser.token.kind == "eof":
            return [], value
    except ProgramError as error:
        expression_errors = [error]
    parser.rewind((0, 0))
    items: list[ast.AstNode] = []
    while parser.token.kind != "eof":
        state = parser.position, 0
        try:
            items += parser.statement()
        except ProgramError as error:
            parser.rewind(state)
            try:
                items += parser.declaration()
            except ProgramError as other:
                # the error of the rule that read furthest
                raise max((*expression_errors, error, other), key=lambda e: e.span.start) from None
    return items, None
