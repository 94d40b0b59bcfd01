"""Types and expressions of C$ by recursive descent."""

from __future__ import annotations

import re

from renderer.cdollar.frontend.ast import (
    PRIMITIVES,
    AstNode,
    Binary,
    Blank,
    BoundParameter,
    Call,
    Cast,
    Conditional,
    ConstructorCall,
    FunctionalType,
    Lambda,
    LetIn,
    Literal,
    MemberAccess,
    Name,
    NamedType,
    RangeExpression,
    Restriction,
    Unary,
)
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.frontend.lexer import KEYWORDS, MAX_CHAIN, Token, TokenStream

# Binding strengths of the binary operators; all are left-associative.
PRECEDENCE = {"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7}
PRECEDENCE |= {"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}


class ExpressionParser(TokenStream):
    """Types, heads of functions, and expressions with their reductions."""

    # Types

    def starts_type(self) -> bool:
        return self.token.kind == "identifier" and (
            self.token.text in self.type_names or self.token.text not in KEYWORDS
        )

    def type(self) -> AstNode:
        self.enter_nesting()
        token = self.expect_identifier("a type")
        written: AstNode = NamedType(token.span, token.text)
        while self.at("(", "["):
            if self.advance().text == "[":
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
                if self.token.kind == "identifier" and self.token.text not in KEYWORDS:
                    self.advance()  # a parameter's name in a type is allowed and ignored
                if not self.at(")"):
                    self.expect(",", "between the parameters' types")
            self.advance()
            written = FunctionalType(self.span_from(token.span), written, parameters, False)
        self.depth -= 1
        return written

    def try_type(self) -> AstNode | None:
        """A type if one stands here and starts with a known type's name, else nothing is taken."""
        if self.token.kind != "identifier" or self.token.text not in self.type_names:
            return None
        position, depth = self.position, self.depth
        try:
            return self.type()
        except ProgramError:
            self.position, self.depth = position, depth
            return None

    def bound_parameters(self) -> list[BoundParameter]:
        close = ")" if self.advance().text == "(" else "]"
        found: list[BoundParameter] = []
        while not self.at(close):
            start = self.token.span
            written = None
            if self.peek().kind == "identifier":
                written = self.type()
            name = self.expect_identifier("a bound variable")
            domain = self.domain() if self.accept(":") else None
            if any(other.name == name.text for other in found):
                raise ProgramError("CS0109", name.span, f"the bound variable `{name.text}` is declared twice")
            found.append(BoundParameter(self.span_from(start), name.text, written, domain))
            if not self.at(close):
                self.expect(",", "between bound variables")
        if not found:
            raise ProgramError(
                "CS0105", self.token.span, "expected a bound variable, found nothing between the brackets"
            )
        self.advance()
        return found

    def restriction(self) -> Restriction:
        """`l : 0..n`, `int l : f`, `int l`, `(i, j) : f`."""
        start = self.token.span
        if self.accept("("):
            names = [self.expect_identifier("a bound variable")]
            while self.accept(","):
                names.append(self.expect_identifier("a bound variable"))
            self.expect(")", "after the bound variables")
            self.expect(":", "after the bound variables")
            domain = self.domain()
            return Restriction(self.span_from(start), [(n.text, n.span) for n in names], None, domain)
        written: AstNode | None = None
        if self.peek().kind == "identifier":
            if not (self.at("var") and self.advance()):
                written = self.type()
        name = self.expect_identifier("a bound variable")
        restricted_to = self.domain() if self.accept(":") else None
        return Restriction(self.span_from(start), [(name.text, name.span)], written, restricted_to)

    def domain(self) -> AstNode:
        return self.expression()

    # Expressions

    def expression(self) -> AstNode:
        self.enter_nesting()
        if self.at("let"):
            found = self.let_in()
        elif self.is_lambda():
            found = self.lambda_()
        else:
            found = self.conditional()
        self.depth -= 1
        return found

    def let_in(self) -> AstNode:
        start = self.advance().span
        name = self.expect_identifier("a name after `let`")
        self.expect("=", "after the name")
        value = self.expression()
        self.expect("in", "after the value of `let`")
        return LetIn(self.span_from(start), name.text, value, self.expression())

    def is_lambda(self) -> bool:
        if self.token.kind == "identifier" and self.peek().text == "=>":
            return True
        if not self.at("("):
            return False
        ahead = 1
        while self.peek(ahead).kind == "identifier" or self.peek(ahead).text == ",":
            ahead += 1
        return self.peek(ahead).text == ")" and self.peek(ahead + 1).text == "=>"

    def lambda_(self) -> AstNode:
        start = self.token.span
        if self.at("("):
            parameters = self.bound_parameters()
        else:
            name = self.expect_identifier("a parameter")
            parameters = [BoundParameter(name.span, name.text, None, None)]
        self.expect("=>", "after the parameters")
        body = self.expression()
        return Lambda(self.span_from(start), parameters, body)

    def conditional(self) -> AstNode:
        condition = self.range_expression()
        if not self.accept("?"):
            return condition
        yes = self.expression()
        self.expect(":", "in `condition ? yes : no`")
        no = self.expression()
        return Conditional(condition.span.to(no.span), condition, yes, no)

    def range_expression(self) -> AstNode:
        low = self.binary(1)
        if not self.accept(".."):
            return low
        high = self.binary(1)
        return RangeExpression(low.span.to(high.span), low, high)

    def binary(self, weakest: int) -> AstNode:
        left, height = self.unary(), 0
        while self.token.kind == "punctuator" and PRECEDENCE.get(self.token.text, 0) >= weakest:
            mark = self.advance()
            right = self.binary(PRECEDENCE[mark.text] + 1)
            left = Binary(left.span.to(right.span), mark.text, left, right)
            height += 1
            if height > MAX_CHAIN:
                raise ProgramError(
                    "CS0106",
                    mark.span,
                    f"this expression joins more than {MAX_CHAIN} parts",
                    "name parts of it with `var`",
                )
        return left

    def unary(self) -> AstNode:
        start = self.token.span
        if self.token.kind == "punctuator" and self.token.text in ("+", "-", "*", "!", "~"):
            self.enter_nesting()
            mark = self.advance().text
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

    def reduction(self, mark: str, start: Span) -> AstNode:
        """`+ (body, l : 0..n)`: restrictions may follow the body; without them this is a plain operand."""
        cast = self.cast(self.token.span)
        if cast is not None:
            return Unary(start.to(cast.span), mark, cast)
        position, depth = self.position, self.depth
        self.advance()
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

    def cast(self, start: Span) -> AstNode | None:
        position, depth = self.position, self.depth
        self.advance()
        written = self.try_type()
        follows = self.peek()
        operand_starts = follows.kind in ("identifier", "real", "integer", "hex") or follows.text in (
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
        self.advance()
        self.enter_nesting()
        operand = self.unary()
        self.depth -= 1
        return Cast(start.to(operand.span), written, operand)

    def postfix(self) -> AstNode:
        found, height = self.primary(), 0
        while self.at("(", "[", "."):
            height += 1
            if height > MAX_CHAIN:
                raise ProgramError("CS0106", self.token.span, f"this expression joins more than {MAX_CHAIN} parts")
            if self.advance().text == ".":
                name = self.expect_identifier("a member's name")
                found = MemberAccess(found.span.to(name.span), found, name.text, name.span)
                continue
            close = ")" if self.tokens[self.position - 1].text == "(" else "]"
            arguments, restrictions = self.arguments(close)
            end = self.tokens[self.position - 1].span
            found = Call(found.span.to(end), found, arguments, restrictions)
        return found

    def arguments(self, close: str) -> tuple[list[AstNode], list[Restriction]]:
        """Arguments, blanks among them, then restrictions."""
        found: list[AstNode] = []
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
                found.append(Blank(self.advance().span))
            else:
                found.append(self.expression())
            if self.accept(close):
                return found, restrictions
            self.expect(",", "between arguments")

    def at_restriction(self) -> bool:
        if self.token.kind == "identifier" and self.peek().text == ":" and self.token.text not in KEYWORDS:
            return True
        if self.token.text in (*PRIMITIVES, "var") and self.peek().kind == "identifier":
            return True
        if self.at("("):
            ahead = 1
            while self.peek(ahead).kind == "identifier" or self.peek(ahead).text == ",":
                ahead += 1
            return self.peek(ahead).text == ")" and self.peek(ahead + 1).text == ":"
        return False

    def primary(self) -> AstNode:
        token = self.token
        if token.kind in ("integer", "hex", "real"):
            return self.number(self.advance())
        if token.kind == "string":
            self.advance()
            return Literal(token.span, re.sub(r"\\(.)", r"\1", token.text[1:-1]), "string")
        if token.text in ("true", "false") and token.kind == "identifier":
            self.advance()
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
            self.advance()
        if token.kind == "identifier" and self.token.text in self.type_names:
            return self.constructor_call()
        if self.token.kind == "identifier" and self.token.text not in KEYWORDS:
            name = self.advance()
            return Name(name.span, name.text)
        raise ProgramError("CS0105", self.token.span, f"expected an expression, found {self.describe_token()}")

    def constructor_call(self) -> AstNode:
        name = self.advance()
        if not self.at("("):
            raise ProgramError(
                "CS0105",
                name.span,
                f"`{name.text}` is a type, not a value",
                f"convert with `({name.text}) x`, make with `{name.text}(...)`",
            )
        self.advance()
        arguments, restrictions = self.arguments(")")
        if restrictions:
            raise ProgramError("CS0104", restrictions[0].span, "a restriction has no meaning here")
        return ConstructorCall(self.span_from(name.span), NamedType(name.span, name.text), arguments)

    def number(self, token: Token) -> Literal:
        text = token.text.replace("_", "").lower()
        if token.kind == "real":
            kind = {"f": "float", "d": "double"}.get(text[-1], "float_literal")
            value = float(text.rstrip("fd"))
            if value in (float("inf"),):
                raise ProgramError("CS0114", token.span, "this number is too large for double")
            if kind == "float" and value > 3.4028235677973366e38:
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
