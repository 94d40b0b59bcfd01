"""`grad(f)` and `grad(f, w, b)`: the function that yields the derivatives of f by one or more of its parameters.

`value_and_grad(f, w, b)` yields a tuple of the value of f and the derivatives.
"""

from collections.abc import Mapping, Sequence

from renderer.cdollar.checker.program import Body, Program, lower
from renderer.cdollar.checker.tables import UserFunction
from renderer.cdollar.checker.values import DataValue, FunctionValue, OverloadSet, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.gradients.derivatives import NoDerivative
from renderer.cdollar.gradients.reverse import ReverseMode, mark, without_leaf_marks
from renderer.cdollar.ir.dag import Dag, Node, Range, Ranges
from renderer.cdollar.ir.types import FLOATS, Data, FunctionType, Scalar, Type, component_types, tuple_type
from renderer.cdollar.lowering.conversions import convert_data, make_tuple, materialize, resolve
from renderer.cdollar.lowering.functions import access, operation_as_function
from renderer.records import dataclass, replace

GRADIENTS = ("grad", "value_and_grad")
HINT = "grad takes a function that returns float or double: `grad(loss)(a)`, `grad(loss, b)(a, b)`"


@dataclass(eq=False)
class GradientFunction(UserFunction):
    """The derivatives of `function` by its parameters at `positions`; both functions have the same parameters.

    With `with_value` the value of the function comes first.
    """

    function: UserFunction | None = None
    positions: tuple[int, ...] = ()
    with_value: bool = False

    @property
    def key(self) -> tuple[UserFunction | None, tuple[int, ...], bool]:
        """Equal for two gradients that yield the same."""
        return self.function, self.positions, self.with_value


def lower_gradient(body: Body, called: str, tree: ast.Call) -> Value:
    """`grad(f)`: an overload set with the gradient of each overload of f that has one; raises CS0321."""
    if not tree.arguments or any(isinstance(a, ast.Blank) for a in tree.arguments):
        message = f"{called} takes a function and names of parameters, found {len(tree.arguments)} arguments"
        raise ProgramError("CS0321", tree.span, message, HINT)
    value = lower(body, tree.arguments[0])
    wanted = [argument for argument in tree.arguments[1:] if isinstance(argument, ast.Name)]
    for argument in tree.arguments[1:]:
        if not isinstance(argument, ast.Name):
            message = f"{argument.span.excerpt} is not the name of a parameter"
            raise ProgramError("CS0321", argument.span, message, HINT)
    span, with_value = tree.arguments[0].span, called == "value_and_grad"
    if isinstance(value, FunctionValue):
        return value_gradient(body, value, wanted, span, with_value)
    if not isinstance(value, OverloadSet):
        raise ProgramError("CS0321", span, f"{span.excerpt} is {value.type}, not a function", HINT)
    functions = body.program.functions
    overloads = functions.get(value.name)
    if not overloads:
        builtin = resolve(body, value, span)
        assert isinstance(builtin, FunctionValue), "an overload set is a function"
        return value_gradient(body, builtin, wanted, span, with_value)
    made, error = [], None
    names, span = [name.name for name in wanted], wanted[0].span if wanted else span
    for function in overloads:
        try:
            made.append(gradient_function(function, names, span, with_value))
        except ProgramError as failed:
            error = error or failed
    if not made:
        assert error is not None
        raise error
    name = f"{called}({', '.join([value.name, *names])})"
    functions.derived[name] = list(made)
    return OverloadSet(name)


def gradient_function(
    function: UserFunction, parameters: Sequence[str], span: Span, with_value: bool = False
) -> GradientFunction:
    """The gradient of a function by the parameters of these names, by default its first; raises CS0321."""
    result = function.result_type
    if not isinstance(result, Scalar) or result.name not in FLOATS:
        message = f"{function.signature} returns {result}, which has no gradient"
        raise ProgramError("CS0321", span, message, HINT)
    if not function.parameter_names:
        raise ProgramError("CS0321", span, f"{function.signature} has no parameter to differentiate by")
    positions = named_positions(function.signature, function.parameter_names, parameters, span)
    fields: list[tuple[str, Type]] = [("value", result)] if with_value else []
    for position in positions:
        type_, name = function.parameter_types[position], function.parameter_names[position]
        data = type_.result if isinstance(type_, FunctionType) else type_
        is_indexed = not isinstance(type_, FunctionType) or type_.takes_indices
        if not is_indexed or not isinstance(data, Data) or not any(t in FLOATS for t in component_types(data)):
            message = f"there is no gradient by `{name}`, {type_}"
            hint = "a parameter to differentiate by holds float or double, or is a function of int indices of such"
            raise ProgramError("CS0321", span, message, hint)
        fields.append((name, type_.as_array_type if isinstance(type_, FunctionType) else type_))
    called = "value_and_grad" if with_value else "grad"
    return GradientFunction(
        function.declaration, f"{called}({', '.join([function.name, *parameters])})", function.parameter_types,
        tuple_type(tuple(fields)) if len(fields) > 1 else fields[0][1], function.parameter_names,
        is_host_only=True, function=function, positions=positions, with_value=with_value,
    )  # fmt: skip


def named_positions(shown: str, names: Sequence[str], wanted: Sequence[str], span: Span) -> tuple[int, ...]:
    """The positions of parameters by their names, each once, by default of the first; raises CS0321."""
    for name in wanted:
        if name not in names:
            message = f"{shown} has no parameter `{name}`"
            raise ProgramError("CS0321", span, message, f"it has {', '.join(names) or 'none'}")
    if len(set(wanted)) < len(wanted):
        raise ProgramError("CS0321", span, "a parameter to differentiate by is given twice")
    return tuple(names.index(name) for name in wanted) or (0,)


def value_gradient(
    body: Body, value: FunctionValue, wanted: Sequence[ast.Name], span: Span, with_value: bool
) -> FunctionValue:
    """The derivatives of a function of numbers, such as `var f(float x) = x * x` and `sin`."""
    types, result = value.type.parameters, value.type.result
    names = [v.name for v in value.node.attribute] if isinstance(value.node.attribute, tuple) else []
    if not isinstance(result, Scalar) or result.name not in FLOATS or len(names) != len(types):
        raise ProgramError("CS0321", span, f"{span.excerpt} is {value.type}, which has no gradient", HINT)
    positions = named_positions(span.excerpt, names, [name.name for name in wanted], wanted[0].span if wanted else span)
    for position in positions:
        if types[position] not in (Scalar("float"), Scalar("double")):
            message = f"{span.excerpt} is {value.type}: there is no gradient by `{names[position]}`, {types[position]}"
            raise ProgramError("CS0321", span, message, HINT)

    def derivative(arguments: list[DataValue]) -> DataValue:
        marked = {position: mark_value(body.dag, arguments[position]) for position in positions}
        loss = access(body, value, [marked.get(k, argument) for k, argument in enumerate(arguments)], span)
        made = gradients(body.program, loss, {names[k]: marked[k] for k in positions}, with_value, span)
        assert isinstance(made, DataValue), "derivatives by numbers are numbers"
        return made

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


def gradients(
    program: Program, loss: DataValue, marked: Mapping[str, DataValue | FunctionValue], with_value: bool, span: Span
) -> Value:
    """The derivatives by each marked argument, by name: like the argument, 0 by its integers.

    With `with_value` the value of the loss comes first. One alone is no tuple.
    """
    leaves: list[tuple[Node, Ranges]] = []
    for value in marked.values():
        if isinstance(value, DataValue):
            leaves += [(node, ()) for node in value.nodes if node.type in FLOATS]
        else:
            leaves.append((value.node, tuple(r for r in value.domain if isinstance(r, Range))))
    made = iter(zip(derivatives(program, loss.node, leaves, span), leaves, strict=True))
    items: list[tuple[str, Value]] = []
    if with_value:
        marks = {leaf.attribute for leaf, _ in leaves}
        items.append(("value", DataValue(loss.type, without_leaf_marks(program.dag, loss.nodes, marks))))
    for name, value in marked.items():
        if isinstance(value, DataValue):
            pairs = zip(value.nodes, program.builder.zero(value.type).nodes, strict=True)
            nodes = tuple(next(made)[0] if n.type in FLOATS else zero for n, zero in pairs)
            items.append((name, DataValue(value.type, nodes)))
            continue
        node, (_, ranges) = next(made)
        result = FunctionValue(value.type.as_function_type, node, ranges)
        if not node.free_variables:
            result = materialize(Body(program), result, span)
        items.append((name, result))
    return make_tuple(items) if len(items) > 1 else items[0][1]


def marked_argument(program: Program, name: str, argument: Value, span: Span) -> DataValue | FunctionValue:
    """An argument to differentiate by, as leaves of the DAG; raises CS0321 for one with an infinite domain."""
    if isinstance(argument, DataValue):
        return mark_value(program.dag, argument)
    assert isinstance(argument, FunctionValue), "gradients are by data or functions"
    if argument.borders is not None or not all(isinstance(r, Range) for r in argument.domain):
        message = f"there is no gradient by `{name}`: its domain is infinite here"
        raise ProgramError("CS0321", span, message, f"restrict it: `var {name}(i : 0..n) = ...`")
    return replace(argument, node=mark(program.dag, argument.node), fixed_domain=argument.domain)


def call_gradient(body: Body, function: GradientFunction, values: Sequence[Value], span: Span) -> Value:
    """The value of a gradient: calls the function with marked arguments, and differentiates its result."""
    program, inner = body.program, function.function
    assert inner is not None and isinstance(inner.result_type, Data), "gradient_function sees to it"
    if program.host.abstract_depth and not body.in_device_code:
        return program.abstract_value(function.name, function.result_type)
    marked = {k: marked_argument(program, inner.parameter_names[k], values[k], span) for k in function.positions}
    program.host.differentiations += 1
    outer, program.host.keeps_expressions = program.host.keeps_expressions, True  # arrays would hide the leaves
    try:
        arguments = [marked.get(k, value) for k, value in enumerate(values)]
        called = program.rules.call(body, inner, arguments, span)
    finally:
        program.host.keeps_expressions = outer
    loss = convert_data(Body(program), called, inner.result_type, span)
    by_name = {inner.parameter_names[k]: value for k, value in marked.items()}
    return gradients(program, loss, by_name, function.with_value, span)
