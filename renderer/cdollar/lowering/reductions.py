"""Reductions: an operator or a function of the program combines the values of a body over its bound variables.

`sum(a(i), i : 0..n)`, `+ (a(i, k) * b(k, j))`, `argmax(a)`; `fold(step, start, a(i))` combines in order, from a start.
The functions take the reduced values and variables, and return the DataValue of a "reduce" node (ir/dag.py).
"""

from collections.abc import Callable

from renderer.cdollar.checker.program import Body, lower
from renderer.cdollar.checker.scopes import NameRestriction
from renderer.cdollar.checker.tables import Overloads, UserFunction
from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, Operand, OverloadSet, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir import types as ty
from renderer.cdollar.ir.dag import INFINITE, Nodes, Reduction, Variables, tuple_type
from renderer.cdollar.ir.device_function import DeviceFunction
from renderer.cdollar.ir.operations import OPERATIONS, REDUCER_NAMES, neutral_element
from renderer.cdollar.lowering import domains
from renderer.cdollar.lowering.calls import call_overloaded
from renderer.cdollar.lowering.conversions import conversion_cost, convert_data, resolve, resolve_overload
from renderer.cdollar.lowering.functions import eta_expand

BOX_COMBINERS = ("+", "*", "min", "max", "&&", "||")


def lower_reduction_operand(body: Body, tree: ast.Unary | ast.Call, operand: ast.AstNode) -> tuple[Variables, Operand]:
    """The variables that a reduction binds, and the value of its operand, lowered in a new scope."""
    context = body.program.inference.current
    names = context.binders.get(id(tree), []) if context is not None else []  # by domains.assign_binders()
    with body.block():
        variables = tuple(v for r in tree.restrictions for v in domains.reduced_variables(body, r))
        if names or variables:
            body.require_host()
        pairs = [(name, domains.dependent_restriction(body, name)) for name in names]
        # i before j of the statement `j : 0..i;`, and statements in the order of the text
        for name, statement in sorted(pairs, key=lambda pair: pair[1].span.start if pair[1] is not None else -1):
            if statement is not None:
                variables += tuple(domains.reduced_variables(body, statement))
                continue
            declared = NameRestriction(domains.type_from_first_use(body, name, operand), None, tree.span)
            variables += (domains.new_bound_variable(body, name, tree.span, reduced=True, declared=declared),)
        with body.guarded(any(v in body.program.tests for v in variables)):
            return variables, domains.lower_operand(body, operand)


def lower_reduction_body(body: Body, tree: ast.Unary | ast.Call, operand: ast.AstNode) -> tuple[Variables, DataValue]:
    """The variables that a reduction binds, with all dimensions of a functional operand, and the operand's value."""
    return eta_expand_reduced(body, *lower_reduction_operand(body, tree, operand), operand, tree.span)


def eta_expand_reduced(
    body: Body, variables: Variables, value: Operand, operand: ast.AstNode, span: Span
) -> tuple[Variables, DataValue]:
    """The reduced variables, with the dimensions of a functional value, and the value at them; raises CS0304."""
    if not isinstance(value, FunctionValue):
        return variables, value
    body.require_host()
    added, data = eta_expand(body, value, operand.span)
    for variable in added:
        variable.reduced = True
        if variable.range is INFINITE:
            message = f"{operand.span.excerpt} is reduced, but its domain is infinite"
            raise ProgramError("CS0304", span, message, "restrict its variables: `var f(i : 0..n) = ...`")
    return (*variables, *added), data


def warn_of_inner_reduction(body: Body, tree: ast.Unary) -> None:
    """Warns of a reduction `+ (...)` that reduces nothing because an inner one binds all variables."""
    context = body.program.inference.current
    for inner in ast.walk(tree.operand):
        names = context.binders.get(id(inner)) if context is not None else None
        if names:
            message = f"this `{tree.operator}` reduces nothing: {inner.span.provenance} runs over {', '.join(names)}"
            hint = f"name what the outer one runs over: `{tree.operator} (..., int {names[0]})`"
            body.dag.warn("CS0701", tree.span, message, hint)
            return


def union_restriction(body: Body, tree: ast.Unary | ast.Call) -> tuple[ast.Restriction, DomainValue] | None:
    """The first restriction of a reduction to a union of boxes, and the union; None if there is none."""
    for restriction in tree.restrictions:
        if isinstance(restriction.domain, ast.RangeExpression):
            continue  # the domain is one box, not a union
        # in `chosen_boxes`, if reduce_boxes() has the reduction lowered over one box of the union
        if restriction.domain is not None and id(restriction) not in body.chosen_boxes:
            value = lower(body, restriction.domain)
            if isinstance(value, OverloadSet):
                value = resolve(body, value, restriction.domain.span)
            if isinstance(value, DomainValue) and value.further_boxes:
                return restriction, value
            body.domains[id(restriction.domain)] = value  # for restriction_ranges(): lowered once
    return None


def reduce_boxes(
    body: Body, name: str, restriction: ast.Restriction, domain: DomainValue, span: Span, reduce: Callable[[], Value]
) -> DataValue:
    """The reductions over the boxes of a union, combined by the operator `name`; raises CS0323 for other operators.

    `reduce` lowers the reduction over the current box, which is in `body.chosen_boxes`.
    """
    total: DataValue | None = None
    for box in domain.boxes:
        body.dag.count_expansion()
        body.chosen_boxes[id(restriction)] = box
        try:
            value = resolve(body, reduce(), span)
        finally:
            del body.chosen_boxes[id(restriction)]
        combined = value if isinstance(value, DataValue) and name in BOX_COMBINERS else None
        if combined is not None and total is not None:
            combined = body.builder.operation(name, [total, combined])
        if combined is None:
            message = f"this reduction by `{name}` has no unions of boxes"
            raise ProgramError("CS0323", span, message, "sum, prod, min, max, all and any of numbers have them")
        total = combined
    assert total is not None, "a domain has a box"
    return total


def make_reduction(
    body: Body, reduction: Reduction, variables: Variables, inputs: Nodes, type_: ty.Data, span: Span
) -> DataValue:
    """One reduce node with the components of `type_`; raises CS0315 for functions over domains that are no boxes."""
    if reduction.function is not None and any(v in body.program.tests for v in variables):
        message = f"`{reduction.name}` reduces over boxes, and this domain is none"
        raise ProgramError("CS0315", span, message, "reductions by operators have such domains: `sum(a(j), j : 0..i)`")
    types = tuple_type(ty.component_types(type_))
    node = body.dag.intern("reduce", types, inputs, (reduction, variables))
    body.dag.spans.setdefault(node, span)
    return DataValue(type_, body.dag.components(node))


def reduce_by_operator(body: Body, name: str, variables: Variables, value: DataValue, span: Span) -> DataValue:
    """A reduction by a name of REDUCER_NAMES; records need an operator of the program. Raises CS0311."""
    if name in ("argmin", "argmax"):
        return reduce_to_index(body, name, variables, value, span)
    if isinstance(value.type, ty.Record):
        return reduce_by_function(body, "operator" + name, variables, value, span)
    builder, value = body.builder, body.builder.promoted(value)
    if name == "+" and value.type == ty.BOOL:  # a sum of bools counts
        value = builder.where(value.node, builder.constant(1, "int"), builder.constant(0, "int"))
    if ty.scalar_type_of(value.type) not in OPERATIONS[name].types():
        allowed = "allowed: " + ", ".join(OPERATIONS[name].types())
        raise ProgramError("CS0311", span, f"{value.type} cannot be reduced by `{name}`", allowed)
    value = at_tested_points(body, name, variables, value)
    sums = [make_reduction(body, Reduction(name), variables, (n,), ty.Scalar(n.type), span) for n in value.nodes]
    return DataValue(value.type, tuple(component.node for component in sums))


def at_tested_points(body: Body, name: str, variables: Variables, value: DataValue) -> DataValue:
    """A value in a domain that is no box; elsewhere in its box the neutral element of the operator `name`."""
    tests = [body.program.tests[v] for v in variables if v in body.program.tests]
    if not tests:
        return value
    types = ty.component_types(value.type)
    numbers = (body.dag.constant(neutral_element(name, t), t) for t in types)
    condition = body.builder.chain("&&", tuple(tests)).node
    return body.builder.where(condition, value, DataValue(value.type, tuple(numbers)))


def reduce_to_index(body: Body, name: str, variables: Variables, value: DataValue, span: Span) -> DataValue:
    """argmin or argmax: the indices of the first extreme element; raises CS0311."""
    value = body.builder.promoted(value)
    if not isinstance(value.type, ty.Scalar) or value.type == ty.BOOL:
        raise ProgramError("CS0311", span, f"{name} compares numbers, but these are {value.type}")
    if len(variables) > 4:
        raise ProgramError("CS0311", span, f"{name} over {len(variables)} variables has no type", "at most 4")
    value = at_tested_points(body, name.removeprefix("arg"), variables, value)
    indices = tuple(map(body.dag.bound_variable, variables))
    type_ = ty.INT if len(variables) == 1 else ty.Vector("int", len(variables))
    return make_reduction(body, Reduction(name), variables, (value.node, *indices), type_, span)


def reduce_by_function(body: Body, name: str, variables: Variables, value: DataValue, span: Span) -> DataValue:
    """A reduction by a function T(T, T) of the program, in order unless it is [Associative]."""
    named = body.program.functions.get(name)
    overloads = [f for f in named if f.is_reduction_operator and f.result_type == value.type]
    if not overloads:
        message = f"{value.type} cannot be reduced by `{name.removeprefix('operator')}`"
        hint = f"a reduction needs a function {value.type}({value.type}, {value.type})"
        raise ProgramError("CS0311", span, message, hint)
    function = require_device_function(body, overloads[0], span)
    ordered = "Associative" not in overloads[0].declaration.attributes
    reduction = Reduction(overloads[0].name, function, ordered)
    return make_reduction(body, reduction, variables, value.nodes, value.type, span)


def reduce_call(body: Body, name: str, overloads: Overloads, tree: ast.Call) -> Value:
    """A call with one argument: a reduction if bound variables or dimensions are left to reduce, else an ordinary call.

    Raises CS0308 or CS0311.
    """
    operand = tree.arguments[0]
    union = union_restriction(body, tree)
    if union is not None:
        operator = name if overloads else REDUCER_NAMES[name]
        return reduce_boxes(body, operator, *union, tree.span, lambda: reduce_call(body, name, overloads, tree))
    variables, value = lower_reduction_operand(body, tree, operand)
    unary = [f for f in overloads if len(f.parameter_types) == 1]
    if not variables and resolve_overload(body, unary, [value]) is not None:
        return call_overloaded(body, name, overloads, [value], tree)
    variables, data = eta_expand_reduced(body, variables, value, operand, tree.span)
    if not variables:
        if overloads:
            return call_overloaded(body, name, overloads, [value], tree)
        message = f"{name} reduces a function, but {operand.span.excerpt} is one {value.type}"
        hint = "its bound variables are reduced or declared elsewhere; `sum(a(i, j), int j)` names the one to reduce"
        raise ProgramError("CS0308", tree.span, message, hint)
    if not overloads:
        return reduce_by_operator(body, REDUCER_NAMES[name], variables, data, tree.span)
    operators = [f for f in overloads if f.is_reduction_operator]
    fitting = [f for f in operators if conversion_cost(body, data, f.result_type) is not None]
    if not fitting:
        known = "; ".join(f.signature for f in operators)
        raise ProgramError("CS0311", tree.span, f"{name} cannot reduce {data.type}", known)
    data = convert_argument(body, data, fitting[0], 0, tree.span)
    return reduce_by_function(body, name, variables, data, tree.span)


def convert_argument(body: Body, value: DataValue, function: UserFunction, position: int, span: Span) -> DataValue:
    """A value converted to the type of a parameter."""
    type_ = function.parameter_types[position]
    assert isinstance(type_, ty.Data)
    return convert_data(body, value, type_, span)


def lower_fold(body: Body, tree: ast.Call) -> DataValue:
    """fold(step, start, operand): state = step(state, element) over the reduced variables, in order."""
    if len(tree.arguments) != 3 or not isinstance(tree.arguments[0], ast.Name):
        message = "fold takes a function's name, a start and what is folded"
        hint = "`fold(step, start, a(i))`"
        if tree.arguments and isinstance(tree.arguments[0], ast.Lambda):
            hint = "declare a function, `float step(float state, float element) { ... }`, and write " + hint
        raise ProgramError("CS0313", tree.span, message, hint)
    _, start_tree, operand = tree.arguments
    start = resolve(body, lower(body, start_tree), start_tree.span)
    if not isinstance(start, DataValue):
        raise ProgramError("CS0313", start_tree.span, f"a fold starts with a value, but this is {start.type}")
    variables, value = lower_reduction_body(body, tree, operand)
    if not variables:
        raise ProgramError("CS0308", tree.span, "fold reduces a function, but nothing here is reduced")
    chosen = fold_step(body, tree.arguments[0], start, value, tree.span)
    function = require_device_function(body, chosen, tree.span)
    start = convert_argument(body, start, chosen, 0, start_tree.span)
    value = convert_argument(body, value, chosen, 1, operand.span)
    inputs, fold = start.nodes + value.nodes, Reduction("fold", function, ordered=True)
    return make_reduction(body, fold, variables, inputs, function.result_type, tree.span)


def fold_step(body: Body, step: ast.Name, start: DataValue, value: DataValue, span: Span) -> UserFunction:
    """The overload S step(S, T) that takes the start and the elements."""
    overloads = body.program.functions.get(step.name)
    if not overloads:
        hint = "a fold's step is `S step(S state, T element) { ... }`"
        raise ProgramError("CS0313", step.span, f"`{step.name}` is not a function of this program", hint)
    for function in overloads:
        types = function.parameter_types
        if len(types) == 2 and types[0] == function.result_type:
            costs = (conversion_cost(body, v, t) for v, t in zip((start, value), types, strict=True))
            if None not in costs:
                return function
    wanted = f"{start.type}({start.type}, {value.type})"
    message = f"{step.name} cannot fold {value.type} from {start.type}: it must be {wanted}"
    known = "known: " + "; ".join(f"{f.result_type} {f.signature}" for f in overloads)
    raise ProgramError("CS0313", span, message, known)


def require_device_function(body: Body, function: UserFunction, span: Span) -> DeviceFunction:
    """The function lowered for the device; raises CS0605 if its body builds functions."""
    result = body.program.rules.device_function(body.program, function)
    if result is None:
        message = f"{function.name} builds functions, so it cannot reduce"
        raise ProgramError("CS0605", span, message, "its body may use numbers, vectors and records only")
    return result
