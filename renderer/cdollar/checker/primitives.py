"""Calls of scan, sort, argsort, histogram and scatters: whole functions in, an array out (ir/primitives.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from renderer.cdollar.checker.program import Program
from renderer.cdollar.checker.values import DataValue, FunctionValue, Operand, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import Range
from renderer.cdollar.ir.primitives import SCATTERS, SUMMED, primitive
from renderer.cdollar.ir.types import INT, PROMOTED, FunctionType, Scalar, Type

SIGNATURES = {
    "scan": "scan(f)", "sort": "sort(f)", "argsort": "argsort(f)", "histogram": "histogram(keys, n)",
    **{name: f"{name}(keys, values, n)" for name in SCATTERS.values()},
}  # fmt: skip


class Lowering(Protocol):
    """What a call of a primitive needs of the lowering of its body."""

    program: Program

    def lower_operand(self, tree: ast.AstNode) -> Operand:
        """Data or a function."""

    def convert(self, value: Value, expected: Type, span: Span) -> Operand:
        """The value in the type; raises if there is no implicit conversion."""

    def host_int(self, tree: ast.AstNode) -> int | None:
        """A number that the host knows; None while it is unknown."""

    def promote(self, values: list[Operand], operation: Callable[[list], DataValue], span: Span) -> Operand:
        """An operation on the elements of functions."""


def lower_primitive(lowering: Lowering, name: str, tree: ast.Call) -> FunctionValue:
    """The array of a primitive; raises CS0319."""
    wanted = SIGNATURES[name].count(",") + 1
    if len(tree.arguments) != wanted or any(isinstance(a, ast.Blank) for a in tree.arguments):
        raise ProgramError("CS0319", tree.span, f"{name} takes {wanted} arguments", f"`{SIGNATURES[name]}`")
    functions = [_function(lowering, name, t) for t in tree.arguments[: 1 if name == "histogram" else 2]]
    first, span = functions[0], tree.arguments[0].span
    domain, scalar = first.domain, _scalar(first, name, tree.arguments[0])
    if name == "histogram" or name in SCATTERS.values():
        if scalar != "int":
            raise ProgramError("CS0319", span, f"the keys of {name} are int, not {scalar}", "`(int) keys`")
        result = _scalar(functions[1], name, tree.arguments[1]) if name != "histogram" else "int"
        count = lowering.host_int(tree.arguments[-1])
        ranges: tuple[Range | None, ...] = (None if count is None else Range(0, max(0, count)),)
        if len(functions) > 1 and _sizes(functions[1]) not in (None, _sizes(first)) and _sizes(first) is not None:
            where = tree.arguments[1].span
            sizes = " and ".join(" x ".join(map(str, f.domain)) for f in functions)
            raise ProgramError("CS0319", where, f"{name} needs a value for each key, but the domains are {sizes}")
        called = "scatter_add" if name == "histogram" else name
        return _array(lowering, name, called, ranges, result, functions)
    if name != "scan" and len(domain) != 1:
        raise ProgramError("CS0319", span, f"{name} takes a function of one dimension, not {first.type}")
    ranges = tuple(d if isinstance(d, Range) else None for d in domain)
    return _array(lowering, name, name, ranges, "int" if name == "argsort" else scalar, functions)


def _function(lowering: Lowering, name: str, tree: ast.AstNode) -> FunctionValue:
    """An argument: a function of int indices that depends on nothing but them, with a finite domain."""
    value = lowering.lower_operand(tree)
    excerpt = tree.span.excerpt
    if not isinstance(value, FunctionValue):
        hint = f"`var f(i) = ...; {name}(f)`"
        raise ProgramError("CS0319", tree.span, f"{name} takes whole functions, but {excerpt} is {value.type}", hint)
    if any(p != INT for p in value.type.parameters):
        raise ProgramError("CS0319", tree.span, f"{name} takes functions of int indices, not {value.type}")
    scalar = value.type.result.name if isinstance(value.type.result, Scalar) else ""
    if scalar in PROMOTED:
        value = lowering.promote([value], lambda v: lowering.program.builder.promoted(v[0]), tree.span)
        assert isinstance(value, FunctionValue), "it was one"
    if value.node.free_variables:
        names = ", ".join(sorted(v.name for v in value.node.free_variables))
        message = f"{excerpt} depends on `{names}`, but {name} computes one array for all of its indices"
        hint = "a scan of more dimensions goes along the last one" if name == "scan" else ""
        raise ProgramError("CS0319", tree.span, message, hint)
    if not lowering.program.host.abstract_depth and not all(isinstance(d, Range) for d in value.domain_with_borders):
        raise ProgramError("CS0319", tree.span, f"the domain of {excerpt} is not finite", "restrict it: `i : 0..n`")
    return value


def _scalar(value: FunctionValue, name: str, tree: ast.AstNode) -> str:
    """The scalar type of a function's elements; a number without a suffix is float."""
    result = value.type.result
    if not isinstance(result, Scalar) or result.name not in SUMMED:
        raise ProgramError("CS0319", tree.span, f"{name} takes elements of {', '.join(SUMMED)}, not {result}")
    return result.name


def _sizes(value: FunctionValue) -> tuple[int, ...] | None:
    """The extents of a domain; None while they are unknown."""
    sizes = tuple(d.size for d in value.domain if isinstance(d, Range))
    return sizes if len(sizes) == len(value.domain) else None


def _array(
    lowering: Lowering, called: str, name: str, ranges: tuple, scalar: str, functions: list[FunctionValue]
) -> FunctionValue:
    """The array; one of which nothing else is known while a function is checked with unknown arguments."""
    program = lowering.program
    known = [r for r in ranges if isinstance(r, Range)]
    if program.host.abstract_depth or len(known) != len(ranges):
        type_ = FunctionType(Scalar(scalar), (INT,) * len(ranges), True)
        value = program.abstract_value(called, type_)
        assert isinstance(value, FunctionValue), "its type is functional"
        return value
    node = primitive(program.dag, name, tuple(known), scalar, *(f.node for f in functions))
    return FunctionValue(node.type, node, tuple(known))
