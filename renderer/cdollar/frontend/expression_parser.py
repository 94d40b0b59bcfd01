"""Parses types and expressions of C$ by recursive descent.

A method takes the tokens of one construct from the stream (lexer.py) and returns its node of the syntax tree (ast.py).
Binary operators are parsed by precedence climbing. Where two constructs begin alike, such as the cast `(float) x` and
the parenthesis `(x)`, the parser looks ahead, or tries one of them and rewinds. parser.py adds statements.
"""

import re

from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.frontend.lexer import KEYWORDS, MAX_CHAIN, Token, TokenStream

# All binary operators are left-associative.
PRECEDENCE = {"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7}
PRECEDENCE |= {"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}
FLOAT_OVERFLOW = 3.4028235677973366e38  # the least double that rounds to an infinite float


class ExpressionParser(TokenStream):
    """Types, bound parameters, and expressions with their reductions."""

    # Types

    def type(self) -> ast.AstNode:
        """A type: `float`, `float[,]`, `float(int, int)`."""
        with self.nesting():
            token = self.token
            type_ = self.tuple_type() if self.at("(") else self.named_type()
            while self.at("(", "["):
                parameters: list[ast.AstNode] = []
                is_array = self.advance().text == "["
                if is_array:
                    parameters += [ast.NamedType(token.span, "int") for _ in self.separated()]
                    self.expect("]", "in the array type")
                else:
                    for _ in self.items(")", "between the parameters' types"):
                        parameters.append(self.type())
                        if self.token.is_name:
                            self.advance()  # a parameter's name in a type is allowed and ignored
                type_ = ast.FunctionalType(self.span_from(token.span), type_, parameters, is_array)
        return type_

    def named_type(self) -> ast.AstNode:
        """The name of a type."""
        token = self.expect_identifier("a type")
        return ast.NamedType(token.span, token.text)

    def tuple_type(self) -> ast.AstNode:
        """`(float[,] lu, int[] pivots)`."""
        start = self.advance().span
        types, names = list[ast.AstNode](), list[str]()
        for _ in self.items(")", "between the types of a tuple"):
            types.append(self.type())
            names.append(self.advance().text if self.token.is_name else "")
        return ast.TupleType(self.span_from(start), types, names)

    def try_type(self) -> ast.AstNode | None:
        """A type if one is next and starts with a known type's name, else nothing is taken."""
        is_call = self.token.text == "domain" and self.peek().text == "("  # `domain(f)` is the domain of the function f
        if not self.token.is_identifier or self.token.text not in self.type_names or is_call:
            return None
        state = self.state
        try:
            return self.type()
        except ProgramError:
            self.rewind(state)
            return None

    # Bound variables

    def bound_parameters(self) -> list[ast.BoundParameter]:
        """`(j, int k : 0..n)`, or the same in brackets."""
        close = ")" if self.advance().text == "(" else "]"
        parameters: list[ast.BoundParameter] = []
        if self.at(close):
            self.fail("CS0105", "expected a bound variable, found nothing between the brackets")
        for _ in self.items(close, "between bound variables"):
            start = self.token.span
            type_ = self.type() if self.peek().is_identifier else None
            name = self.expect_identifier("a bound variable")
            domain = self.expression() if self.accept(":") else None
            self.check_new(name, [other.name for other in parameters], "bound variable")
            parameters.append(ast.BoundParameter(self.span_from(start), name.text, name.span, type_, domain))
        return parameters

    def restriction(self) -> ast.Restriction:
        """`l : 0..n`, `int l : f`, `int l`, `(i, j) : f`."""
        start = self.token.span
        type_: ast.AstNode | None = None
        domain: ast.AstNode | None = None
        if self.accept("("):
            names = [self.expect_identifier("a bound variable") for _ in self.separated()]
            self.expect(")", "after the bound variables")
            self.expect(":", "after the bound variables")
            domain = self.expression()
        else:
            if self.peek().is_identifier and not self.accept("var"):
                type_ = self.type()
            names = [self.expect_identifier("a bound variable")]
            if self.accept(":"):
                domain = self.expression()
        return ast.Restriction(self.span_from(start), [(n.text, n.span) for n in names], type_, domain)

    # Expressions

    def expression(self) -> ast.AstNode:
        """Any expression."""
        with self.nesting():
            if self.at("let"):
                return self.let_in()
            return self.lambda_() if self.text_after_names() == "=>" else self.conditional()

    def let_in(self) -> ast.AstNode:
        """`let x = e in body`."""
        start = self.advance().span
        name = self.expect_identifier("a name after `let`")
        self.expect("=", "after the name")
        value = self.expression()
        self.expect("in", "after the value of `let`")
        return ast.LetIn(self.span_from(start), name.text, name.span, value, self.expression())

    def text_after_names(self) -> str:
        """The token after `i` or `(i, j)`, by which lambdas and restrictions differ, or "" at other tokens."""
        if self.token.is_name:
            return self.peek().text
        ahead = 1
        while self.peek(ahead).is_identifier or self.peek(ahead).text == ",":
            ahead += 1
        return self.peek(ahead + 1).text if self.at("(") and self.peek(ahead).text == ")" else ""

    def lambda_(self) -> ast.AstNode:
        """`x => body`, `(x, y) => body`."""
        start = self.token.span
        if self.at("("):
            parameters = self.bound_parameters()
        else:
            name = self.expect_identifier("a parameter")
            parameters = [ast.BoundParameter(name.span, name.text, name.span, None, None)]
        self.expect("=>", "after the parameters")
        body = self.expression()
        return ast.Lambda(self.span_from(start), parameters, body)

    def conditional(self) -> ast.AstNode:
        """`condition ? if_true : if_false`."""
        condition = self.range_expression()
        if not self.accept("?"):
            return condition
        if_true = self.expression()
        self.expect(":", "in `condition ? yes : no`")
        if_false = self.expression()
        return ast.Conditional(condition.span.to(if_false.span), condition, if_true, if_false)

    def range_expression(self) -> ast.AstNode:
        """`low..high`."""
        low = self.binary(1)
        if not self.accept(".."):
            return low
        high = self.binary(1)
        return ast.RangeExpression(low.span.to(high.span), low, high)

    def binary(self, precedence: int) -> ast.AstNode:
        """A chain of binary operators of at least this precedence (precedence climbing)."""
        left, count = self.unary(), 0
        while PRECEDENCE.get(self.token.text, 0) >= precedence:
            operator = self.advance()
            right = self.binary(PRECEDENCE[operator.text] + 1)
            left = ast.Binary(left.span.to(right.span), operator.text, left, right)
            count += 1
            if count > MAX_CHAIN:
                message = f"this expression joins more than {MAX_CHAIN} parts"
                self.fail("CS0106", message, "name parts of it with `var`", operator.span)
        return left

    def unary(self) -> ast.AstNode:
        """Unary operators, reductions and casts."""
        start = self.token.span
        if not self.at("+", "-", "*", "!", "~"):
            return self.cast() or self.postfix()
        with self.nesting():
            operator = self.advance().text
            if operator in "+*" and self.at("("):
                return self.reduction(operator, start)
            operand = self.unary()
            return ast.Unary(start.to(operand.span), operator, operand)

    def reduction(self, operator: str, start: Span) -> ast.AstNode:
        """`+ (body, l : 0..n)`: restrictions may follow the body; without them this is an ordinary operand."""
        operand = self.cast()
        if operand is None:
            self.advance()
            body = self.expression()
            if self.accept(","):
                restrictions = [self.restriction() for _ in self.separated()]
                end = self.expect(")", "after the reduction")
                return ast.Unary(start.to(end.span), operator, body, restrictions)
            self.expect(")", "after the expression")
            operand = self.postfix(body)
        return ast.Unary(self.span_from(start), operator, operand)

    def cast(self) -> ast.AstNode | None:
        """`(type) operand`, or None if something else is next."""
        state, start = self.state, self.token.span
        if not self.accept("("):
            return None
        type_ = self.try_type()
        after = self.peek()  # behind the `)`, if a type was taken
        starts_operand = after.kind in ("identifier", "real", "integer", "hex") or after.text in set("(-+!~*")
        is_keyword = after.text in KEYWORDS - {"true", "false", "new"}
        if type_ is None or not self.at(")") or not starts_operand or is_keyword:
            self.rewind(state)
            return None
        self.advance()
        with self.nesting():
            operand = self.unary()
        return ast.Cast(start.to(operand.span), type_, operand)

    def postfix(self, first: ast.AstNode | None = None) -> ast.AstNode:
        """Calls, indices and members, of `first` or of the next primary expression."""
        result, count = first or self.primary(), 0
        while self.at("(", "[", "."):
            count += 1
            if count > MAX_CHAIN:
                self.fail("CS0106", f"this expression joins more than {MAX_CHAIN} parts")
            opening = self.advance().text
            if opening == ".":
                name = self.expect_identifier("a member's name")
                result = ast.MemberAccess(result.span.to(name.span), result, name.text, name.span)
            else:
                arguments, restrictions = self.arguments(")" if opening == "(" else "]")
                result = ast.Call(result.span.to(self.previous.span), result, arguments, restrictions)
        return result

    def arguments(self, close: str) -> tuple[list[ast.AstNode], list[ast.Restriction]]:
        """The arguments up to `close`, a Blank for each missing one, then the restrictions of a reduction."""
        arguments: list[ast.AstNode] = []
        restrictions: list[ast.Restriction] = []
        if self.accept(close):
            return arguments, restrictions
        while True:
            if self.at(",", close):
                arguments.append(ast.Blank(self.token.span))
            elif close == ")" and arguments and self.at_restriction():
                restrictions.append(self.restriction())
            elif restrictions:
                hint = "a condition belongs to the domain: `i : k => k < n && k != 1`"
                self.fail("CS0104", "restrictions come after all arguments", hint)
            elif self.at("_") and self.peek().text in (",", close):
                arguments.append(ast.Blank(self.advance().span))
            else:
                arguments.append(self.index() if close == "]" else self.expression())
            if self.accept(close):
                return arguments, restrictions
            self.expect_next(close, "between arguments")

    def index(self) -> ast.AstNode:
        """An index or a slice: `2`, `1:3`, `:n`, `::2`."""
        start = self.token.span
        low = None if self.at(":") else self.expression()
        if not self.accept(":"):
            assert low is not None
            return low
        ends: list[ast.AstNode | None] = [None, None]  # high, and behind another `:` the step
        for k in range(2):
            if not self.at(":", ",", "]"):
                ends[k] = self.expression()
            if k or not self.accept(":"):
                break
        return ast.Slice(self.span_from(start), low, *ends)

    def at_restriction(self) -> bool:
        """True if a restriction is next."""
        is_typed = self.token.text in (*ast.PRIMITIVES, "var") and self.peek().is_identifier
        return is_typed or self.text_after_names() == ":"

    def primary(self) -> ast.AstNode:
        """Literals, names, constructor calls and parentheses."""
        token = self.token
        if token.kind in ("integer", "hex", "real"):
            return self.real(self.advance()) if token.kind == "real" else self.integer(self.advance())
        if token.kind == "string":
            self.advance()
            return ast.Literal(token.span, re.sub(r"\\(.)", r"\1", token.text[1:-1]), "string")
        if self.at("true", "false"):
            self.advance()
            return ast.Literal(token.span, token.text == "true", "bool")
        if self.accept("("):
            elements = [self.tuple_element() for _ in self.separated()]
            self.expect(")", "after the expression")
            return elements[0] if len(elements) == 1 else ast.TupleExpression(self.span_from(token.span), elements)
        if self.accept("["):
            with self.nesting():
                elements = [self.expression() for _ in self.items("]", "between elements")]
            return ast.ArrayLiteral(self.span_from(token.span), elements)
        self.accept("new")  # as in C#, `new Point(1, 2)`: it is ignored
        if token.is_identifier and self.token.text in self.type_names and token.text != "domain":
            return self.constructor_call()
        if self.token.is_name:
            name = self.advance()
            return ast.Name(name.span, name.text)
        before = [t.text for t in self.tokens[max(0, self.position - 3) : self.position]]
        # `scan(+, a)`, as other array languages write it
        hint = "the running sum is `scan(a)`" if before == ["scan", "(", "+"] else self.hint_for("an expression")
        self.fail("CS0105", f"expected an expression, found {self.describe_token()}", hint)

    def tuple_element(self) -> ast.AstNode:
        """A value between the parentheses of a tuple, or the only one."""
        if self.previous.text == "," and self.at_restriction():
            hint = "restrictions may follow only the body of a reduction: `+ (a(l), l : 0..n)`"
            self.fail("CS0104", "expected a value, found a restriction", hint)
        return self.expression()

    def constructor_call(self) -> ast.AstNode:
        """`float3(1, 2, 3)`."""
        name = self.advance()
        if not self.accept("("):
            hint = f"convert with `({name.text}) x`, make with `{name.text}(...)`"
            self.fail("CS0105", f"`{name.text}` is a type, not a value", hint, name.span)
        arguments, restrictions = self.arguments(")")
        if restrictions:
            self.fail("CS0104", "a restriction has no meaning here", span=restrictions[0].span)
        return ast.ConstructorCall(self.span_from(name.span), ast.NamedType(name.span, name.text), arguments)

    def real(self, token: Token) -> ast.Literal:
        """A floating-point literal; without a suffix it may become float or double."""
        text = token.text.replace("_", "").lower()
        kind = {"f": "float", "d": "double"}.get(text[-1], "float_literal")
        value = float(text.rstrip("fd"))
        if value == float("inf"):
            self.fail("CS0114", "this number is too large for double", span=token.span)
        if kind == "float" and value >= FLOAT_OVERFLOW:
            self.fail("CS0114", "this number is too large for float", "write it as double: 1e40d", token.span)
        return ast.Literal(token.span, value, kind)

    def integer(self, token: Token) -> ast.Literal:
        """An int, uint or long literal; 2147483648 is allowed after a minus sign."""
        text, is_hex = token.text.replace("_", "").lower(), token.kind == "hex"
        is_long, digits = text.endswith("l"), text.rstrip("ul")
        hint = "write it as a floating-point number: 1e30"
        if len(digits) > 20:
            self.fail("CS0114", "this number is too large for int", hint, token.span)
        value = int(digits, 16 if is_hex else 10)
        if not is_long and value < 2**63:
            hint = f"write it as long, `{digits}L`, or as 1e30"
        if is_long:
            if value >= 2**63:
                self.fail("CS0114", f"{digits} is too large for long", hint, token.span)
            return ast.Literal(token.span, value, "long")
        is_uint = text.endswith("u") or is_hex and value >= 2**31
        if value >= (2**32 if is_uint or is_hex else 2**31 + 1):
            type_ = "uint" if text.endswith("u") else "int"
            self.fail("CS0114", f"{digits} is too large for {type_}", hint, token.span)
        return ast.Literal(token.span, value, "uint" if is_uint else "int")
