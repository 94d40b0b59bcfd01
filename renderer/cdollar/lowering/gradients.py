"""`grad(f)` and `grad(f, parameter)`: the function that yields the derivatives of f by one of its parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from renderer.cdollar.checker.program import Body, Program, lower
from renderer.cdollar.checker.tables import UserFunction
from renderer.cdollar.checker.values import DataValue, FunctionValue, OverloadSet, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.gradients.derivatives import NoDerivative
from renderer.cdollar.gradients.reverse import ReverseMode, mark
from renderer.cdollar.ir.dag import Dag, Node, Range, Ranges
from renderer.cdollar.ir.types import FLOATS, Data, DomainType, FunctionType, Scalar, component_types
from renderer.cdollar.lowering.conversions import convert_data, materialize, resolve
from renderer.cdollar.lowering.functions import access, operation_as_function

HINT = "grad takes a function that returns float or double: `grad(loss)(a)`, `grad(loss, b)(a, b)`"


@dataclass(eq=False)
class GradientFunction(UserFunction):
    """The derivatives of the function `of` by its parameter at `position`; both functions have the same parameters."""

    of: UserFunction | None = None
    position: int = 0


def lower_gradient(body: Body, tree: ast.Call) -> Value:
    """`grad(f)`: an overload set with the gradient of each overload of f that has one; raises CS0321."""
    if not 1 <= len(tree.arguments) <= 2 or any(isinstance(a, ast.Blank) for a in tree.arguments):
        message = f"grad takes a function and the name of a parameter, found {len(tree.arguments)} arguments"
        raise ProgramError("CS0321", tree.span, message, HINT)
    value = lower(body, tree.arguments[0])
    wanted = tree.arguments[1] if len(tree.arguments) > 1 else None
    if wanted is not None and not isinstance(wanted, ast.Name):
        raise ProgramError("CS0321", wanted.span, f"{wanted.span.excerpt} is not the name of a parameter", HINT)
    span = tree.arguments[0].span
    if isinstance(value, FunctionValue):
        return value_gradient(body, value, wanted, span)
    if not isinstance(value, OverloadSet):
        raise ProgramError("CS0321", span, f"{span.excerpt} is {value.type}, not a function", HINT)
    functions = body.program.functions
    overloads = functions.get(value.name)
    if not overloads:
        builtin = resolve(body, value, span)
        assert isinstance(builtin, FunctionValue), "an overload set is a function"
        return value_gradient(body, builtin, wanted, span)
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
    is_indexed = not isinstance(type_, FunctionType) or type_.takes_indices
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


def value_gradient(body: Body, value: FunctionValue, wanted: ast.Name | None, span: Span) -> FunctionValue:
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
        marked = mark_value(body.dag, arguments[position])
        values = [*arguments[:position], marked, *arguments[position + 1 :]]
        loss = access(body, value, values, span)
        return data_gradient(body.program, loss.node, marked, span)

    return operation_as_function(body, names, types, derivative)


def mark_value(dag: Dag, value: DataValue) -> DataValue:
    """The value with its floating-point components as leaves to differentiate by."""
    return DataValue(value.type, tuple(mark(dag, n) if n.type in FLOATS else n for n in value.nodes))


def derivatives(program: Program, loss: Node, leaves: list[tuple[Node, Ranges]], span: Span) -> list[Node]:
    """The derivative of `loss` by each leaf, given with its domain; raises CS0321."""
    try:
        return ReverseMode(program.dag, program.tangents).run(loss, leaves)
    except NoDerivative as error:
        message = f"there is no gradient here: {error.reason}"
        raise ProgramError("CS0321", error.span or span, message) from None


def data_gradient(program: Program, loss: Node, marked: DataValue, span: Span) -> DataValue:
    """The derivatives by the components of a number, vector or record; 0 by integers."""
    leaves: list[tuple[Node, Ranges]] = [(n, ()) for n in marked.nodes if n.type in FLOATS]
    by_float = iter(derivatives(program, loss, leaves, span))
    pairs = zip(marked.nodes, program.builder.zero(marked.type).nodes, strict=True)
    return DataValue(marked.type, tuple(next(by_float) if n.type in FLOATS else zero for n, zero in pairs))


def call_gradient(body: Body, function: GradientFunction, values: Sequence[Value], span: Span) -> Value:
    """The value of a gradient: calls the function with a marked argument, and differentiates its result."""
    program = body.program
    inner, position = function.of, function.position
    assert inner is not None and isinstance(inner.result_type, Data), "gradient_function sees to it"
    given = values[position]
    if program.host.abstract_depth and not body.in_device_code:
        return program.abstract_value(function.name, function.result_type)
    if isinstance(given, DataValue):
        marked: DataValue | FunctionValue = mark_value(program.dag, given)
    else:
        assert isinstance(given, FunctionValue), "gradients are by data or functions"
        if given.borders is not None or not all(isinstance(r, Range) for r in given.domain):
            name = inner.parameter_names[position]
            message = f"there is no gradient by `{name}`: its domain is infinite here"
            raise ProgramError("CS0321", span, message, f"restrict it: `var {name}(i : 0..n) = ...`")
        marked = replace(given, node=mark(program.dag, given.node), fixed_domain=tuple(given.domain))
    outer, program.host.keeps_expressions = program.host.keeps_expressions, True
    try:
        loss = program.rules.call(body, inner, [*values[:position], marked, *values[position + 1 :]], span)
    finally:
        program.host.keeps_expressions = outer
    loss = convert_data(Body(program), loss, inner.result_type, span)
    if isinstance(marked, DataValue):
        return data_gradient(program, loss.node, marked, span)
    ranges = tuple(r for r in marked.domain if isinstance(r, Range))
    (node,) = derivatives(program, loss.node, [(marked.node, ranges)], span)
    result = FunctionValue(marked.type.as_function_type, node, ranges)
    return result if node.free_variables else materialize(Body(program), replace(result, fixed_domain=None), span)
