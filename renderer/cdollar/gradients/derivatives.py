"""Derivatives of the elementary operations, for reverse mode (reverse.py) and forward mode (tangents.py).

A rule maps the adjoint of the result, or the tangent of an operand, to its contribution. Rules are linear in both, so
that one table serves both modes (Griewank and Walther, Evaluating Derivatives, 2008). At a kink of min, max and select
the derivative follows the chosen operand; of abs at 0 it is 0.
"""

import ast
from collections.abc import Iterable
from functools import cache, partial, reduce
from typing import NamedTuple

from renderer.cdollar.frontend.diagnostics import Span
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.operations import OPERATIONS, evaluate_numbers
from renderer.cdollar.ir.types import DTYPES, FLOATS, promoted_type
from renderer.records import dataclass

Nodes = ir.Nodes
Context = ir.Variables  # the bound variables for whose values an expression is evaluated: (i, k) for a(i) * b(k)


class NoDerivative(Exception):
    """A program cannot be differentiated: the reason, and the span if it is known."""

    def __init__(self, reason: str, span: Span | None = None):
        super().__init__(reason)
        self.reason, self.span = reason, span


@dataclass
class Algebra:
    """Makes nodes of operations on scalars; folds constants, and simplifies x + 0, x - 0, x * 0 and x * 1."""

    dag: ir.Dag

    def number(self, value: float, type_: str) -> ir.Node:
        """A constant of the type; float for half, because derivatives by halfs are floats."""
        type_ = promoted_type(type_)
        return self.dag.constant(DTYPES[type_](value).item(), type_)

    def op(self, name: str, *operands: ir.Node) -> ir.Node:
        """An operation on operands of one scalar type."""
        type_ = operands[0].type
        left, right = (n.attribute.number if n.is_constant else None for n in (operands[0], operands[-1]))
        if all(n.is_constant for n in operands):
            numbers, types = [n.attribute.number for n in operands], [n.type for n in operands]
            return self.number(evaluate_numbers(name, type_, numbers, types), type_)
        if name == "+" and 0 in (left, right):
            return operands[1] if left == 0 else operands[0]
        if name == "-" and right == 0:
            return operands[0]
        if name == "*" and 0 in (left, right):
            return self.number(0, type_)
        if name == "*" and 1 in (left, right):
            return operands[1] if left == 1 else operands[0]
        return self.dag.apply(name, type_, *operands)

    def times(self, x: ir.Node, factor: float) -> ir.Node:
        """A multiple of a node."""
        return self.op("*", x, self.number(factor, x.type))

    def compare(self, name: str, a: ir.Node, b: ir.Node) -> ir.Node:
        """A comparison of numbers, or && or || of conditions."""
        return self.dag.apply(name, "bool", a, b)

    def both(self, a: ir.Node | None, b: ir.Node | None) -> ir.Node | None:
        """The conjunction of two conditions; None always holds. `b` is evaluated only where `a` holds."""
        if a is None or b is None:
            return b if a is None else a
        return a if a is b else self.compare("&&", a, b)

    def select(self, condition: ir.Node | None, if_true: ir.Node, if_false: ir.Node) -> ir.Node:
        """`condition ? if_true : if_false`; None always holds."""
        if condition is None or if_true is if_false:
            return if_true
        return self.dag.apply("select", if_true.type, condition, if_true, if_false)

    def sum(self, terms: Iterable[ir.Node]) -> ir.Node | None:
        """The terms added from the first to the last; None if there are none."""
        return reduce(lambda total, term: self.op("+", total, term) if total is not None else term, terms, None)

    def where(self, condition: ir.Node | None, x: ir.Node) -> ir.Node:
        """`condition ? x : 0`."""
        return self.select(condition, x, self.number(0, x.type))

    def convert(self, x: ir.Node, type_: str) -> ir.Node:
        """A conversion between float and double."""
        type_ = promoted_type(type_)  # a derivative by a half is a float
        return x if x.type == type_ else self.dag.apply("convert", type_, x)


class Term(NamedTuple):
    """An adjoint or tangent, or a contribution to one: `value` where `guard` holds (None: everywhere), else 0."""

    value: ir.Node
    guard: ir.Node | None = None


SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_parse = cache(partial(ast.parse, mode="eval"))  # formulas such as "g * b" have Python's grammar


def _evaluate(a: Algebra, formula: ast.expr, names: dict[str, ir.Node]) -> ir.Node:
    """The node of a formula of shaders/cdollar/operations.toml; numbers take the type of the operation's result, y."""
    evaluate = partial(_evaluate, a, names=names)
    match formula:
        case ast.Name(name):
            return names[name]
        case ast.Constant(int() | float() as number):
            return a.number(number, names["y"].type)
        case ast.UnaryOp(ast.USub(), operand):
            return a.op("neg", evaluate(operand))
        case ast.BinOp(left, sign, right):
            return a.op(SIGNS[type(sign)], evaluate(left), evaluate(right))
        case ast.Call(ast.Name(name), operands):
            return a.op(name, *map(evaluate, operands))
        case ast.IfExp(ast.Compare(left, [ast.Eq()], [right]), if_true, if_false):
            return a.select(a.compare("==", evaluate(left), evaluate(right)), evaluate(if_true), evaluate(if_false))
    raise AssertionError(ast.unparse(formula))


def contribution(a: Algebra, node: ir.Node, position: int, factor: ir.Node) -> Term | None:
    """`factor` times the derivative of an operation by its operand at `position`; None if the derivative is 0.

    `factor` is the adjoint of the operation (reverse mode) or the tangent of the operand (forward mode). Raises
    NoDerivative.
    """
    name, x = node.attribute, node.inputs
    if name == "select":
        if position == 0:
            return None
        return Term(factor, x[0] if position == 1 else a.dag.apply("!", "bool", x[0]))
    if name in ("min", "max"):
        is_second = a.compare("<" if name == "min" else ">", x[1], x[0])
        takes_second = a.compare("||", is_second, a.dag.apply("isnan", "bool", x[0]))  # NaN is ignored
        return Term(factor, takes_second if position else a.dag.apply("!", "bool", takes_second))
    if name not in OPERATIONS or not OPERATIONS[name].derivatives:
        raise NoDerivative(f"`{name}` has no derivative")
    formula = OPERATIONS[name].derivatives[position]
    if formula == "0":
        return None
    names = {"a": x[0], "b": x[-1], "y": node, "g": factor}  # of one operand, a and b are the same
    return Term(_evaluate(a, _parse(formula).body, names))


def is_smooth(node: ir.Node) -> bool:
    """True if a node has a floating-point component, which can have a derivative."""
    types = ir.scalar_types(node) if isinstance(node.type, (str, tuple)) else ()
    return any(promoted_type(t) in FLOATS for t in types)
