"""Functions as values: abstraction, eta expansion, application at a point, promotion, border modes.

Promotion applies an operation on data to functions, point by point: `a + b` of arrays is `(i) => a(i) + b(i)`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from renderer.cdollar.checker.domains import IndexConstraint, unify_ranges
from renderer.cdollar.checker.program import Body
from renderer.cdollar.checker.values import DataValue, FunctionValue, Operand
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span, ordinal
from renderer.cdollar.ir.dag import (
    INFINITE,
    NOT_INFERRED,
    Borders,
    BoundVariable,
    Dag,
    Dimension,
    Node,
    Nodes,
    Range,
    substitute,
)
from renderer.cdollar.ir.types import INT, INTEGERS, Data, FunctionType, Record, Scalar, component_types

SharedVariables = dict[tuple[str, int], tuple[BoundVariable, list[Dimension]]]


def make_function(dag: Dag, variables: list[BoundVariable], value: DataValue) -> FunctionValue:
    """The function of bound variables that yields a value (lambda abstraction)."""
    type_ = FunctionType(value.type, tuple(Scalar(v.type) for v in variables))
    return FunctionValue(type_, dag.function(tuple(variables), value.nodes, type_))


def operation_as_function(
    body: Body, names: Iterable[str], types: tuple[Data, ...], operation: Callable[[list[DataValue]], DataValue]
) -> FunctionValue:
    """An operation on data as a function over infinite domains."""
    body.require_host()
    variables: list[BoundVariable] = []
    values = []
    for name, type_ in zip(names, types, strict=False):
        components = [BoundVariable(name, scalar, INFINITE) for scalar in component_types(type_)]
        variables += components
        values.append(DataValue(type_, tuple(map(body.dag.bound_variable, components))))
    result = operation(values)
    function = FunctionType(result.type, types)
    return FunctionValue(function, body.dag.function(tuple(variables), result.nodes, function))


def eta_expand(body: Body, function: FunctionValue, span: Span) -> tuple[list[BoundVariable], DataValue]:
    """A function applied to new variables that run over its domain."""
    dimensions = iter(function.domain_with_borders)
    variables: list[BoundVariable] = []

    def variable(type_: str) -> Node:
        variables.append(BoundVariable("ijkmnp"[len(variables) % 6], type_, next(dimensions)))
        return body.dag.bound_variable(variables[-1])

    return variables, apply_to_variables(body, function, variable, span)


def apply_to_variables(body: Body, function: FunctionValue, variable: Callable[[str], Node], span: Span) -> DataValue:
    """A function applied to one variable for each component of its parameters."""
    types = function.type.parameters
    arguments = [DataValue(type_, tuple(map(variable, component_types(type_)))) for type_ in types]
    return access(body, function, arguments, span)


def apply_at(
    body: Body, function: FunctionValue, arguments: list[DataValue], span: Span, free: frozenset[BoundVariable]
) -> DataValue:
    """A function at a point. Each index but the `free` variables constrains the inference of domains."""
    indices = [node for argument in arguments for node in argument.nodes]
    extends = function.extends
    for position, index in enumerate(indices):
        range_ = function.domain[position]
        is_free = index.op == "variable" and index.attribute in free
        if not is_free and index.type in INTEGERS and range_ is not NOT_INFERRED:
            has_border = bool(function.borders and function.borders[position]) or extends[position]
            constraint = IndexConstraint(index, range_, span, body.guard_depth > 0, has_border)
            body.program.inference.add_constraint(constraint)
    return access(body, function, arguments, span)


def access(body: Body, function: FunctionValue, arguments: list[DataValue], span: Span) -> DataValue:
    """A function at a point, without a constraint."""
    indices = tuple(node for argument in arguments for node in argument.nodes)
    borders = function.borders or (None,) * len(indices)
    is_outside = any(extends and not border for extends, border in zip(function.extends, borders, strict=True))
    if function.node.free_variables or is_outside:
        return beta_reduce(body, function, indices, borders)
    node = body.dag.access(function.node, indices, borders)
    body.dag.spans.setdefault(node, span)
    return DataValue(function.type.result, body.dag.components(node))


def beta_reduce(body: Body, function: FunctionValue, indices: Nodes, borders: Borders) -> DataValue:
    """The body of a function that uses outer bound variables, with the indices in place of its parameters."""
    outside_tests: list[Node] = []
    inside = [
        apply_border_mode(body, index, border, range_, outside_tests) if border and isinstance(range_, Range) else index
        for index, border, range_ in zip(indices, borders, function.domain, strict=True)
    ]
    replacement = dict(zip(function.node.attribute, inside, strict=True))
    value = DataValue(function.type.result, substitute(body.dag, function.node.inputs, replacement))
    if not outside_tests:
        return value
    result = body.builder.select(body.builder.chain("||", tuple(outside_tests)), body.builder.zero(value.type), value)
    assert result is not None
    return result


def apply_border_mode(body: Body, index: Node, border: str, range_: Range, outside_tests: list[Node]) -> Node:
    """The index that a border mode reads in place of `index`; mode zero adds its test to `outside_tests`."""
    type_ = index.type

    def op(name: str, a: Node, b: Node) -> Node:
        return body.builder.apply(name, type_, a, b)

    def runtime(number: int) -> Node:
        return body.dag.runtime_scalar(number, type_, "border")

    def modulo(a: Node, b: Node) -> Node:
        return op("%", op("+", op("%", a, b), b), b)

    low, high, size = runtime(range_.low), runtime(range_.high - 1), runtime(range_.size)
    offset = op("-", index, low)
    if border == "wrap":
        return op("+", modulo(offset, size), low)
    if border == "mirror":
        last = runtime(2 * range_.size - 1)
        offset = modulo(offset, runtime(2 * range_.size))
        return op("+", op("min", offset, op("-", last, offset)), low)
    if border == "zero":
        tests = (body.builder.apply(name, type_, index, end) for name, end in (("<", low), (">", high)))
        outside_tests.append(body.builder.chain("||", tuple(tests)).node)
    return op("min", op("max", index, low), high)


def with_border_mode(function: FunctionValue, tree: ast.MemberAccess) -> FunctionValue:
    """`f.clamp`, `f.wrap`, `f.mirror`, `f.zero`; raises CS0309 where the mode does not fit."""
    if any(p != INT for p in function.type.parameters):
        message = f"a border mode needs int indices, but this is {function.type}"
        raise ProgramError("CS0309", tree.name_span, message)
    if INFINITE in function.domain_with_borders:
        dimension = ordinal(function.domain_with_borders.index(INFINITE))
        message = f"the {dimension} dimension of {tree.subject.span.excerpt} is infinite: it has no border"
        raise ProgramError("CS0309", tree.name_span, message)
    result = function.type.result
    if tree.name == "zero" and isinstance(result, Record):
        raise ProgramError("CS0309", tree.name_span, f"{result} has no zero", "use clamp, wrap or mirror")
    borders = (tree.name,) * len(function.type.parameters)
    return FunctionValue(function.type.as_function_type, function.node, function.fixed_domain, borders)


def promote(
    body: Body, values: Sequence[Operand], operation: Callable[[list[DataValue]], DataValue], span: Span
) -> Operand:
    """Applies `operation(data) -> data` to functions point by point (the paper's promotion).

    The k-th parameters of one type of all functions become one variable, whose range is the intersection of theirs.
    """
    known = [v for v in values if not isinstance(v, FunctionValue)]
    if len(known) == len(values):
        return operation(known)
    body.require_host()
    shared: SharedVariables = {}
    data = [eta_expand_shared(body, v, shared, span) if isinstance(v, FunctionValue) else v for v in values]
    for (_, position), (variable, dimensions) in shared.items():
        variable.range = unify_ranges(position, dimensions, span)
    return make_function(body.dag, [variable for variable, _ in shared.values()], operation(data))


def eta_expand_shared(body: Body, function: FunctionValue, shared: SharedVariables, span: Span) -> DataValue:
    """A function applied to the shared variables of a promotion, by type and position among parameters of the type."""
    counts: dict[str, int] = {}
    dimensions = iter(function.domain_with_borders)

    def variable(type_: str) -> Node:
        dimension = next(dimensions)
        if isinstance(dimension, Range) and not dimension.provenance:
            dimension = replace(dimension, provenance=span.provenance)
        position = counts[type_] = counts.get(type_, -1) + 1
        if (type_, position) not in shared:
            name = ("ijkmnp" if type_ in INTEGERS else "xyzuvw")[position % 6]
            shared[type_, position] = BoundVariable(name, type_), []
        bound, dimensions_to_fit = shared[type_, position]
        dimensions_to_fit.append(INFINITE if dimension is NOT_INFERRED else dimension)
        return body.dag.bound_variable(bound)

    return apply_to_variables(body, function, variable, span)
