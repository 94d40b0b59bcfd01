"""Derivatives of the elementary operations: each passes an adjoint (reverse mode) or a tangent (forward mode) on.

The rules are linear in what they pass on, so that one table serves both modes (Griewank and Walther, Evaluating
Derivatives, 2008). At a kink the derivative is that of the operand that the operation takes; of abs at 0 it is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from renderer.cdollar.frontend.diagnostics import Span
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.operations import evaluate_numbers
from renderer.cdollar.ir.types import DTYPES, FLOATS, promoted_type


class NoDerivative(Exception):
    """A program cannot be differentiated: why, and where if that is known."""

    def __init__(self, reason: str, span: Span | None = None):
        super().__init__(reason)
        self.reason, self.span = reason, span


@dataclass
class Algebra:
    """Makes nodes of operations on scalars; folds constants, and leaves out + 0, * 1 and * 0 of its own constants."""

    dag: ir.Dag

    def number(self, value: float, type_: str) -> ir.Node:
        """A constant; one of half is a float, as all derivatives by halves are."""
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
        """A comparison, or && and || of conditions."""
        return self.dag.apply(name, "bool", a, b)

    def both(self, a: ir.Node | None, b: ir.Node | None) -> ir.Node | None:
        """Where both conditions hold; None always holds. The second is looked at only where the first one holds."""
        if a is None or b is None:
            return b if a is None else a
        return a if a is b else self.compare("&&", a, b)

    def select(self, condition: ir.Node | None, if_true: ir.Node, if_false: ir.Node) -> ir.Node:
        """`condition ? if_true : if_false`; None always holds."""
        if condition is None or if_true is if_false:
            return if_true
        return self.dag.apply("select", if_true.type, condition, if_true, if_false)

    def where(self, condition: ir.Node | None, x: ir.Node) -> ir.Node:
        """`condition ? x : 0`."""
        return self.select(condition, x, self.number(0, x.type))

    def convert(self, x: ir.Node, type_: str) -> ir.Node:
        """A conversion between float and double."""
        type_ = promoted_type(type_)  # a derivative by a half is a float
        return x if x.type == type_ else self.dag.apply("convert", type_, x)


class Term(NamedTuple):
    """What an operation passes on of what it is given: a node, and where it counts (None: everywhere)."""

    node: ir.Node
    condition: ir.Node | None = None


# (algebra, operands, result, given) -> what is passed on for one operand
Rule = Callable[[Algebra, tuple[ir.Node, ...], ir.Node, ir.Node], ir.Node]


def _over(a: Algebra, g: ir.Node, x: ir.Node) -> ir.Node:
    return a.op("/", g, x)


def _one_minus_square(a: Algebra, x: ir.Node, sign: int) -> ir.Node:
    """1 - x^2, or 1 + x^2 for sign 1."""
    return a.op("+" if sign > 0 else "-", a.number(1, x.type), a.op("*", x, x))


def _power_base(a: Algebra, x: tuple[ir.Node, ...], y: ir.Node, g: ir.Node) -> ir.Node:
    base, exponent = x
    less = a.op("-", exponent, a.number(1, exponent.type))
    return a.op("*", g, a.op("*", exponent, a.op("pow", base, less)))


def _power_exponent(a: Algebra, x: tuple[ir.Node, ...], y: ir.Node, g: ir.Node) -> ir.Node:
    is_zero = a.compare("==", x[0], a.number(0, y.type))
    return a.op("*", g, a.select(is_zero, a.number(0, y.type), a.op("*", y, a.op("log", x[0]))))


def _atan2(position: int) -> Rule:
    def rule(a: Algebra, x: tuple[ir.Node, ...], y: ir.Node, g: ir.Node) -> ir.Node:
        squares = a.op("+", a.op("*", x[0], x[0]), a.op("*", x[1], x[1]))
        part = _over(a, a.op("*", g, x[1 - position]), squares)
        return a.op("neg", part) if position else part

    return rule


RULES: dict[str, tuple[Rule, ...]] = {
    "+": (lambda a, x, y, g: g, lambda a, x, y, g: g),
    "-": (lambda a, x, y, g: g, lambda a, x, y, g: a.op("neg", g)),
    "*": (lambda a, x, y, g: a.op("*", g, x[1]), lambda a, x, y, g: a.op("*", g, x[0])),
    "/": (lambda a, x, y, g: _over(a, g, x[1]), lambda a, x, y, g: a.op("neg", _over(a, a.op("*", g, y), x[1]))),
    "%": (
        lambda a, x, y, g: g,
        lambda a, x, y, g: a.op("neg", a.op("*", g, a.op("trunc", _over(a, x[0], x[1])))),
    ),
    "neg": (lambda a, x, y, g: a.op("neg", g),),
    "abs": (lambda a, x, y, g: a.op("*", g, a.op("sign", x[0])),),
    "sin": (lambda a, x, y, g: a.op("*", g, a.op("cos", x[0])),),
    "cos": (lambda a, x, y, g: a.op("neg", a.op("*", g, a.op("sin", x[0]))),),
    "tan": (lambda a, x, y, g: a.op("*", g, _one_minus_square(a, y, 1)),),
    "sinh": (lambda a, x, y, g: a.op("*", g, a.op("cosh", x[0])),),
    "cosh": (lambda a, x, y, g: a.op("*", g, a.op("sinh", x[0])),),
    "tanh": (lambda a, x, y, g: a.op("*", g, _one_minus_square(a, y, -1)),),
    "asin": (lambda a, x, y, g: _over(a, g, a.op("sqrt", _one_minus_square(a, x[0], -1))),),
    "acos": (lambda a, x, y, g: a.op("neg", _over(a, g, a.op("sqrt", _one_minus_square(a, x[0], -1)))),),
    "atan": (lambda a, x, y, g: _over(a, g, _one_minus_square(a, x[0], 1)),),
    "atan2": (_atan2(0), _atan2(1)),
    "exp": (lambda a, x, y, g: a.op("*", g, y),),
    "exp2": (lambda a, x, y, g: a.op("*", g, a.times(y, math.log(2))),),
    "log": (lambda a, x, y, g: _over(a, g, x[0]),),
    "log2": (lambda a, x, y, g: _over(a, g, a.times(x[0], math.log(2))),),
    "log10": (lambda a, x, y, g: _over(a, g, a.times(x[0], math.log(10))),),
    "sqrt": (lambda a, x, y, g: _over(a, a.times(g, 0.5), y),),
    "pow": (_power_base, _power_exponent),
}
FLAT = ("sign", "step", "floor", "ceil", "trunc", "round")  # whose derivative is 0


def passed_on(a: Algebra, node: ir.Node, position: int, given: ir.Node) -> Term | None:
    """What an operation passes on to (or takes from) the operand at `position`; None if its derivative is 0."""
    name, x = node.attribute, node.inputs
    if name == "select":
        if position == 0:
            return None
        return Term(given, x[0] if position == 1 else a.dag.apply("!", "bool", x[0]))
    if name in ("min", "max"):
        takes_second = a.compare("||", a.compare("<" if name == "min" else ">", x[1], x[0]), _is_nan(a, x[0]))
        return Term(given, takes_second if position else a.dag.apply("!", "bool", takes_second))
    if name in FLAT:
        return None
    if name not in RULES:
        raise NoDerivative(f"`{name}` has no derivative")
    return Term(RULES[name][position](a, x, node, given))


def _is_nan(a: Algebra, x: ir.Node) -> ir.Node:
    return a.dag.apply("isnan", "bool", x)


def is_smooth(node: ir.Node) -> bool:
    """Whether a node has a component that can have a derivative: a floating-point number or a function of such."""
    types = ir.scalar_types(node) if isinstance(node.type, (str, tuple)) else ()
    return any(promoted_type(t) in FLOATS for t in types)
