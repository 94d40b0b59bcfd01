"""`grad(f)` and `grad(f, parameter)`: the function of the derivatives of a function by one of its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from renderer.cdollar.checker.node_builder import NodeBuilder
from renderer.cdollar.checker.program import Body, Program, UserFunction
from renderer.cdollar.checker.values import DataValue, FunctionValue, OverloadSet, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.gradients.derivatives import NoDerivative
from renderer.cdollar.gradients.marks import mark
from renderer.cdollar.gradients.reverse import ReverseMode
from renderer.cdollar.gradients.tangents import TangentFunctions
from renderer.cdollar.ir.dag import Dag, Node, Range
from renderer.cdollar.ir.types import FLOATS, INT, Data, DomainType, FunctionType, Scalar, Type, component_types

HINT = "grad takes a function that returns float or double: `grad(loss)(a)`, `grad(loss, b)(a, b)`"


@dataclass(eq=False)
class GradientFunction(UserFunction):
    """The derivatives of `of` by its parameter `position`; it takes the same parameters."""

    of: UserFunction | None = None
    position: int = 0


class Lowering(Protocol):
    """What `grad` needs of the lowering of a body."""

    program: Program
    builder: NodeBuilder
    user_calls: Any

    def lower(self, tree: ast.AstNode, expected: Type | None = None) -> Value:
        """An expression."""

    def access(self, function: FunctionValue, arguments: list[DataValue], span: Span) -> DataValue:
        """A function at a point."""

    def from_operation(
        self, names: Any, types: tuple[Data, ...], operation: Callable[[list[DataValue]], DataValue]
    ) -> FunctionValue:
        """An operation on data as a function."""


def lower_gradient(lowering: Lowering, tree: ast.Call) -> Value:
    """`grad(f)`: an overload for each overload of f that has derivatives; raises CS0321."""
    if not 1 <= len(tree.arguments) <= 2 or any(isinstance(a, ast.Blank) for a in tree.arguments):
        raise ProgramError(
            "CS0321",
            tree.span,
            f"grad takes a function and the name of a parameter, found {len(tree.arguments)} arguments",
            HINT,
        )
    value = lowering.lower(tree.arguments[0])
    wanted = tree.arguments[1] if len(tree.arguments) > 1 else None
    if wanted is not None and not isinstance(wanted, ast.Name):
        raise ProgramError("CS0321", wanted.span, f"{wanted.span.excerpt} is not the name of a parameter", HINT)
    span = tree.arguments[0].span
    if isinstance(value, FunctionValue):
        return _of_value(lowering, value, wanted, span)
    if not isinstance(value, OverloadSet):
        shown = value.type
        raise ProgramError("CS0321", span, f"{span.excerpt} is {shown}, not a function", HINT)
    functions = lowering.program.functions
    overloads = functions.get(value.name)
    if not overloads:
        return _of_value(lowering, _as_function(lowering, value, span), wanted, span)
    made, error = [], None
    for function in overloads:
        try:
            made.append(gradient_function(function, wanted.name if wanted else None, wanted.span if wanted else span))
        except ProgramError as failed:
            error = error or failed
    if not made:
        assert error is not None
        raise error
    name = f"grad({value.name}, {wanted.name})" if wanted else f"grad({value.name})"
    functions.derived[name] = list(made)
    return OverloadSet(name)


def gradient_function(function: UserFunction, parameter: str | None, span: Span) -> GradientFunction:
    """The gradient of a function by the parameter of this name, by default its first; raises CS0321."""
    result = function.result_type
    if not isinstance(result, Scalar) or result.name not in FLOATS:
        message = f"{function.signature} returns {result}, which has no gradient"
        raise ProgramError("CS0321", span, message, HINT)
    names = list(function.parameter_names)
    if parameter is not None and parameter not in names:
        known = ", ".join(names) or "none"
        raise ProgramError("CS0321", span, f"{function.signature} has no parameter `{parameter}`", f"it has {known}")
    if not names:
        raise ProgramError("CS0321", span, f"{function.signature} has no parameter to differentiate by")
    position = names.index(parameter) if parameter is not None else 0
    type_ = function.parameter_types[position]
    data = type_.result if isinstance(type_, FunctionType) else type_
    is_indexed = not isinstance(type_, FunctionType) or all(p == INT for p in type_.parameters)
    if not is_indexed or isinstance(data, DomainType) or not any(t in FLOATS for t in component_types(data)):
        message = f"there is no gradient by `{names[position]}`, {type_}"
        hint = "a parameter to differentiate by holds float or double, or is a function of int indices of such"
        raise ProgramError("CS0321", span, message, hint)
    name = f"grad({function.name})" if parameter is None else f"grad({function.name}, {parameter})"
    result_type = type_.as_array_type if isinstance(type_, FunctionType) else type_
    return GradientFunction(
        function.declaration, name, function.parameter_types, result_type, function.parameter_names,
        is_host_only=True, of=function, position=position,
    )  # fmt: skip


def _as_function(lowering: Lowering, value: OverloadSet, span: Span) -> FunctionValue:
    """A built-in function of floats as a value."""
    resolved = lowering.resolve(value, span)  # type: ignore[attr-defined]  # of the same class
    assert isinstance(resolved, FunctionValue), "an overload set is a function"
    return resolved


def _of_value(lowering: Lowering, value: FunctionValue, wanted: ast.Name | None, span: Span) -> FunctionValue:
    """The derivative of a function of numbers, such as `var f(float x) = x * x` and `sin`."""
    types, result = value.type.parameters, value.type.result
    names = [v.name for v in value.node.attribute] if isinstance(value.node.attribute, tuple) else []
    if not isinstance(result, Scalar) or result.name not in FLOATS or len(names) != len(types):
        raise ProgramError("CS0321", span, f"{span.excerpt} is {value.type}, which has no gradient", HINT)
    if wanted is not None and wanted.name not in names:
        message = f"{span.excerpt} has no parameter `{wanted.name}`"
        raise ProgramError("CS0321", wanted.span, message, f"it has {', '.join(names)}")
    position = names.index(wanted.name) if wanted is not None else 0
    if types[position] not in (Scalar("float"), Scalar("double")):
        message = f"{span.excerpt} is {value.type}: there is no gradient by `{names[position]}`, {types[position]}"
        raise ProgramError("CS0321", span, message, HINT)

    def derivative(arguments: list[DataValue]) -> DataValue:
        marked = _marked(lowering.program.dag, arguments[position])
        values = [*arguments[:position], marked, *arguments[position + 1 :]]
        loss = lowering.access(value, values, span)
        return _numbers(lowering.program.dag, lowering.user_calls.tangents, loss.node, marked, span)

    return lowering.from_operation(names, types, derivative)


def _marked(dag: Dag, value: DataValue) -> DataValue:
    return DataValue(value.type, tuple(mark(dag, n) if n.type in FLOATS else n for n in value.nodes))


def _derivatives(
    dag: Dag, tangents: TangentFunctions, loss: Node, leaves: list[tuple[Node, tuple[Range, ...]]], span: Span
) -> list[Node]:
    try:
        return ReverseMode(dag, tangents).run(loss, leaves)
    except NoDerivative as error:
        message = f"there is no gradient here: {error.reason}"
        raise ProgramError("CS0321", error.span or span, message) from None


def _numbers(dag: Dag, tangents: TangentFunctions, loss: Node, marked: DataValue, span: Span) -> DataValue:
    """The derivatives by the components of a number, vector or record; 0 by integers."""
    leaves: list[tuple[Node, tuple[Range, ...]]] = [(n, ()) for n in marked.nodes if n.type in FLOATS]
    found = iter(_derivatives(dag, tangents, loss, leaves, span))
    zeros = NodeBuilder(dag).zero(marked.type).nodes
    pairs = zip(marked.nodes, zeros, strict=True)
    return DataValue(marked.type, tuple(next(found) if n.type in FLOATS else zero for n, zero in pairs))


def call_gradient(calls: Any, function: GradientFunction, values: list, span: Span, body: Body) -> Value:
    """The value of a gradient: calls the function with a marked argument, and differentiates what it returns."""
    program: Program = calls.program
    inner, position = function.of, function.position
    assert inner is not None
    given = values[position]
    if program.host.abstract_depth and not body.in_device_code:
        return program.abstract_value(function.name, function.result_type)
    marked = _marked_function(program, given, inner, position, span) if isinstance(given, FunctionValue) else None
    own = _marked(program.dag, given) if marked is None else marked
    outer, program.host.keeps_expressions = program.host.keeps_expressions, True
    try:
        loss = calls.call(inner, [*values[:position], own, *values[position + 1 :]], span, body)
    finally:
        program.host.keeps_expressions = outer
    loss = calls.expressions().convert_data(loss, inner.result_type, span)
    if isinstance(own, DataValue):
        return _numbers(program.dag, calls.tangents, loss.node, own, span)
    ranges = tuple(r for r in own.domain if isinstance(r, Range))
    (node,) = _derivatives(program.dag, calls.tangents, loss.node, [(own.node, ranges)], span)
    result = FunctionValue(own.type.as_function_type, node, ranges)
    return result if node.free_variables else calls.expressions().materialize(replace(result, fixed_domain=None), span)


def _marked_function(
    program: Program, given: FunctionValue, inner: UserFunction, position: int, span: Span
) -> FunctionValue:
    """A function as a parameter to differentiate by; raises CS0321 if its domain is not a finite box."""
    if given.borders is not None or not all(isinstance(r, Range) for r in given.domain):
        name = inner.parameter_names[position]
        message = f"there is no gradient by `{name}`: its domain is infinite here"
        raise ProgramError("CS0321", span, message, f"restrict it: `var {name}(i : 0..n) = ...`")
    return replace(given, node=mark(program.dag, given.node), fixed_domain=tuple(given.domain))
