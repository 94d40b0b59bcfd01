"""Functions as values: abstraction, eta expansion, application at a point, promotion, border modes.

Promotion applies an operation on data to functions, point by point: `a + b` of arrays is `(i) => a(i) + b(i)`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from renderer.cdollar.checker.domains import IndexConstraint, unify_ranges, unread_elements_warning
from renderer.cdollar.checker.program import Body
from renderer.cdollar.checker.values import DataValue, FunctionValue, Operand
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span, ordinal
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import bordered_index
from renderer.cdollar.ir.types import INTEGERS, Data, FunctionType, Record, Scalar, component_types

PointOperation = Callable[[list[DataValue]], DataValue]  # promotion applies it point by point
# The variables of a promotion, by scalar type and position among the parameters of that type; and for each variable the
# dimensions of the functions that share it.
SharedVariables = dict[tuple[str, int], tuple[ir.BoundVariable, list[ir.Dimension]]]


def make_function(dag: ir.Dag, variables: Sequence[ir.BoundVariable], value: DataValue) -> FunctionValue:
    """The function of bound variables that yields a value (lambda abstraction)."""
    type_ = FunctionType(value.type, tuple(Scalar(v.type) for v in variables))
    return FunctionValue(type_, dag.function(tuple(variables), value.nodes, type_))


def operation_as_function(
    body: Body, names: Iterable[str], types: tuple[Data, ...], operation: PointOperation
) -> FunctionValue:
    """An operation on data as a function over infinite domains."""
    body.require_host()
    variables: list[ir.BoundVariable] = []
    values = []
    for name, type_ in zip(names, types, strict=False):
        components = [ir.BoundVariable(name, scalar, ir.INFINITE) for scalar in component_types(type_)]
        variables += components
        values.append(DataValue(type_, tuple(map(body.dag.bound_variable, components))))
    result = operation(values)
    function = FunctionType(result.type, types)
    return FunctionValue(function, body.dag.function(tuple(variables), result.nodes, function))


def eta_expand(body: Body, function: FunctionValue, span: Span) -> tuple[list[ir.BoundVariable], DataValue]:
    """A function applied to new variables that run over its domain."""
    dimensions = iter(function.domain_with_borders)
    variables: list[ir.BoundVariable] = []

    def variable(type_: str) -> ir.Node:
        variables.append(ir.BoundVariable("ijkmnp"[len(variables) % 6], type_, next(dimensions)))
        return body.dag.bound_variable(variables[-1])

    return variables, apply_to_variables(body, function, variable, span)


def apply_to_variables(body: Body, function: FunctionValue, new: Callable[[str], ir.Node], span: Span) -> DataValue:
    """A function applied to one variable for each component of its parameters; `new` makes one of a scalar type."""
    arguments = [DataValue(type_, tuple(map(new, component_types(type_)))) for type_ in function.type.parameters]
    return access(body, function, arguments, span)


def apply_at(
    body: Body, function: FunctionValue, arguments: list[DataValue], span: Span, free: ir.VariableSet
) -> DataValue:
    """A function at a point. Each index but the `free` variables of the domain constrains the inference of domains."""
    indices = [node for argument in arguments for node in argument.nodes]
    extends = function.extends
    for position, index in enumerate(indices):
        range_ = function.domain[position]
        is_free = index.op == "variable" and index.attribute in free
        if not is_free and index.type in INTEGERS and range_ is not ir.NOT_INFERRED:
            has_border = bool(function.borders and function.borders[position]) or extends[position]
            constraint = IndexConstraint(index, range_, span, body.guard_depth, has_border, function.node)
            body.program.inference.add_constraint(constraint)
    return access(body, function, arguments, span)


def access(body: Body, function: FunctionValue, arguments: list[DataValue], span: Span) -> DataValue:
    """A function at a point, without a constraint."""
    indices = tuple(node for argument in arguments for node in argument.nodes)
    borders = function.borders or (None,) * len(indices)
    may_leave = any(extends and not border for extends, border in zip(function.extends, borders, strict=True))
    # A let around the function, which a gradient's leaf is too, must stay.
    if function.node.op == "function" and (function.node.free_variables or may_leave):
        return beta_reduce(body, function, indices, borders)
    node = body.dag.access(function.node, indices, borders)
    body.dag.spans.setdefault(node, span)
    return DataValue(function.type.result, body.dag.components(node))


def beta_reduce(body: Body, function: FunctionValue, indices: ir.Nodes, borders: ir.Borders) -> DataValue:
    """The body of a function with the indices in place of its parameters.

    For a function of outer bound variables too, and one that `extends` (checker/values.py), whose array would not have
    the elements that are read.
    """
    outside_tests: list[ir.Node] = []
    replacement: dict[ir.BoundVariable, ir.Node] = {}
    for variable, index, border, range_ in zip(function.node.attribute, indices, borders, function.domain, strict=True):
        replacement[variable] = index
        if border and isinstance(range_, ir.Range):
            replacement[variable] = apply_border_mode(body, index, border, range_, outside_tests)
    value = DataValue(function.type.result, ir.substitute(body.dag, function.node.inputs, replacement))
    if not outside_tests:
        return value
    is_outside = body.builder.chain("||", tuple(outside_tests))
    return body.builder.where(is_outside.node, body.builder.zero(value.type), value)


def apply_border_mode(
    body: Body, index: ir.Node, border: str, range_: ir.Range, outside_tests: list[ir.Node]
) -> ir.Node:
    """The index that a border mode reads in place of `index`; mode zero adds its test to `outside_tests`."""

    def op(name: str, a: ir.Node, b: ir.Node) -> ir.Node:
        return body.builder.apply(name, index.type, a, b)

    def number(value: int) -> ir.Node:
        return body.dag.runtime_scalar(value, index.type, "border")

    if border == "zero":
        tests = op("<", index, number(range_.low)), op(">", index, number(range_.high - 1))
        outside_tests.append(body.builder.chain("||", tests).node)
    return bordered_index(op, number, index, range_, border)


def with_border_mode(function: FunctionValue, tree: ast.MemberAccess) -> FunctionValue:
    """`f.clamp`, `f.wrap`, `f.mirror`, `f.zero`; raises CS0309 where the mode does not fit."""
    if not function.type.takes_indices:
        message = f"a border mode needs int indices, but this is {function.type}"
        raise ProgramError("CS0309", tree.name_span, message)
    if ir.INFINITE in function.domain_with_borders:
        dimension = ordinal(function.domain_with_borders.index(ir.INFINITE))
        message = f"the {dimension} dimension of {tree.subject.span.excerpt} is infinite: it has no border"
        raise ProgramError("CS0309", tree.name_span, message)
    result = function.type.result
    if tree.name == "zero" and isinstance(result, Record):
        raise ProgramError("CS0309", tree.name_span, f"{result} has no zero", "use clamp, wrap or mirror")
    borders = (tree.name,) * len(function.type.parameters)
    return FunctionValue(function.type.as_function_type, function.node, function.fixed_domain, borders)


def promote(body: Body, values: Sequence[Operand], operation: PointOperation, span: Span) -> Operand:
    """Applies `operation(data) -> data` to functions point by point (promotion in the C$ paper, Adinetz 2007).

    The k-th parameters of one type of all functions become one variable, whose range is the intersection of theirs.
    """
    known = [v for v in values if not isinstance(v, FunctionValue)]
    if len(known) == len(values):
        return operation(known)
    body.require_host()
    shared: SharedVariables = {}
    data = [eta_expand_shared(body, v, shared, span) if isinstance(v, FunctionValue) else v for v in values]
    for (_, position), (variable, dimensions) in shared.items():
        variable.range = result = unify_ranges(position, dimensions, span)
        declared = [d for d in dimensions if isinstance(d, ir.Range) and not d.narrowed]
        if isinstance(result, ir.Range) and any(d.size > result.size for d in declared):
            warning = unread_elements_warning(str(result), "the shorter operand", span, declared[0])
            body.program.inference.warn(*warning)
    return make_function(body.dag, [variable for variable, _ in shared.values()], operation(data))


def eta_expand_shared(body: Body, function: FunctionValue, shared: SharedVariables, span: Span) -> DataValue:
    """A function applied to the shared variables of a promotion, by type and position among parameters of the type."""
    counts: dict[str, int] = {}
    dimensions = iter(function.domain_with_borders)

    def variable(type_: str) -> ir.Node:
        """The variable of the next dimension; functions share the k-th variable of each type."""
        dimension = next(dimensions)
        if isinstance(dimension, ir.Range) and not dimension.provenance:
            dimension = replace(dimension, provenance=span.provenance)
        position = counts[type_] = counts.get(type_, -1) + 1
        name = ("ijkmnp" if type_ in INTEGERS else "xyzuvw")[position % 6]
        bound, sharing = shared.setdefault((type_, position), (ir.BoundVariable(name, type_), []))
        sharing.append(ir.INFINITE if dimension is ir.NOT_INFERRED else dimension)
        return body.dag.bound_variable(bound)

    return apply_to_variables(body, function, variable, span)
