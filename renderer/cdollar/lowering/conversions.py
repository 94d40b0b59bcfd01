"""Overload resolution, and conversions of values: lossless implicit ones, casts, constructor calls, casts to arrays.

The functions take the Value of an expression (checker/values.py) and the type that its place wants, and return a Value
of that type; a ProgramError says what does not fit. Of several overloads the call takes the one whose arguments need
the least conversion (conversion_cost).
"""

from collections.abc import Iterable, Sequence
from typing import NoReturn

from renderer.cdollar.checker.node_builder import FUNCTIONS
from renderer.cdollar.checker.program import Body
from renderer.cdollar.checker.tables import Overloads, UserFunction, instances_for_types
from renderer.cdollar.checker.values import (
    Argument,
    DataValue,
    DomainValue,
    FunctionValue,
    Omitted,
    Operand,
    OverloadSet,
    TupleValue,
    Value,
)
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span, ordinal
from renderer.cdollar.ir import types as ty
from renderer.cdollar.ir.dag import INFINITE, NOT_INFERRED, Node
from renderer.cdollar.ir.operations import OPERATIONS, REDUCER_NAMES
from renderer.cdollar.lowering.functions import operation_as_function, promote
from renderer.plain import format_names

BOOL_HINT = "make a bool a number: `b ? 1 : 0`"

MAX_HALF, EXACT_HALF = 65504, 2048  # the greatest half; all integers up to EXACT_HALF are halves


def resolve_overload(
    body: Body, overloads: Overloads, values: Sequence[Argument], promote: bool = False
) -> UserFunction | None:
    """The overload with the least conversion cost for the values, the first one at equal cost; None if none fits.

    `promote` as in conversion_cost().
    """
    best, best_cost = None, 0
    for function in overloads:
        if len(function.parameter_types) != len(values):
            continue
        pairs = zip(values, function.parameter_types, strict=True)
        costs = [conversion_cost(body, value, type_, promote) for value, type_ in pairs]
        total = sum(cost for cost in costs if cost is not None)
        if None not in costs and (best is None or total < best_cost):
            best, best_cost = function, total
    return best


def conversion_cost(body: Body, value: Argument, target: ty.Type, promote: bool = False) -> int | None:
    """The cost of an implicit conversion, 0 for equal types; None if there is none.

    A function converts to its domain. With `promote`, a function also converts to data: it is then applied at every
    point of its domain, as promotion does. That costs 10 more, so that an overload for functions is preferred.
    """
    if isinstance(target, ty.DomainType):
        if isinstance(value, FunctionValue):
            return 1 if len(value.domain) == target.rank else None
        return 0 if isinstance(value, DomainValue) and len(value.ranges) == target.rank else None
    if isinstance(target, ty.Tuple):
        if not isinstance(value, TupleValue) or not ty.are_alike(value.type, target):
            return None
        pairs = zip(value.fields, target.fields, strict=True)
        costs = [conversion_cost(body, field, type_) for field, (_, type_) in pairs]
        return None if None in costs else sum(cost for cost in costs if cost is not None)
    if isinstance(target, ty.FunctionType):
        if isinstance(value, OverloadSet):
            return 1 if matching_overload(body, value, target) is not None else None
        if not isinstance(value, FunctionValue) or value.type.parameters != target.parameters:
            return None
        cost = ty.widening(value.type.result, target.result)
        # to evaluate the function costs 1 more
        return None if cost is None else cost + (target.is_array and not value.type.is_array)
    if isinstance(value, FunctionValue) and promote:
        cost = ty.widening(value.type.result, target)
        return None if cost is None else 10 + cost
    if not isinstance(value, DataValue):
        return None
    return 1 if literal_fits(value, target) else ty.widening(value.type, target)


def fail_overload(body: Body, name: str, overloads: Overloads, values: Sequence[Argument], span: Span) -> NoReturn:
    """Raises CS0411: no overload takes the values."""
    given = format_names("(blank)" if isinstance(v, Omitted) else type_text(v) for v in values)
    generics = body.program.functions.generics.get(name)
    if not overloads and generics:
        message, hint = f"the generic function {name} does not take ({given})", f"it is `{generics[0].span.excerpt}`"
    elif not overloads and name in FUNCTIONS:
        hint = FUNCTIONS[name]
        if name in REDUCER_NAMES and len(values) == 2:
            hint = f"one dimension: `var r(i) = {name}(a(i, j), int j)`; a part: `{name}(a(i), i : 0..n)`"
        message = f"{name} does not take ({given})"
    elif len(overloads) == 1:
        message = f"{overloads[0].signature} does not take ({given})"
        hint = explain_mismatch(body, overloads[0], values)
    else:
        message, hint = f"no overload of {name} takes ({given})", "known: "
        hint += "; ".join(f.signature for f in overloads[:6])
    raise ProgramError("CS0411", span, message, hint)


def explain_mismatch(body: Body, function: UserFunction, values: Sequence[Argument]) -> str:
    """The hint for a call of the only function of a name: the first argument that does not fit."""
    types = function.parameter_types
    if len(types) != len(values):
        return f"it takes {len(types)} arguments, {len(values)} are given"
    for name, type_, value in zip(function.parameter_names, types, values, strict=True):
        if not isinstance(value, Omitted) and conversion_cost(body, value, type_, promote=True) is None:
            where = "; a mask is for `compact(a, a > 1)`" if function.name == "filter" else ""
            return f"`{name}` is {type_}, but {type_text(value)} is given{where}"
    return ""


def resolve(body: Body, value: Value, span: Span) -> Operand:
    """The value as data or a function; an overload set becomes its only function, or its operation on floats.

    Raises CS0203 for a domain or tuple, CS0412 for an overload set of several functions.
    """
    if isinstance(value, OverloadSet):
        return overload_as_function(body, value, None, span)
    if isinstance(value, DomainValue):
        hint = "a domain restricts a bound variable: `i : 0..n`"
        raise ProgramError("CS0203", span, "a domain has no meaning here", hint)
    if isinstance(value, TupleValue):
        hint = f"take one of its values: `.{value.type.fields[0][0]}`"
        raise ProgramError("CS0203", span, f"{value.type} has several values and no meaning here", hint)
    return value


def resolve_overload_sets(body: Body, values: Sequence[Argument], spans: Iterable[Span]) -> list[Argument]:
    """The arguments of a call, with a function in place of each overload set."""
    pairs = zip(values, spans, strict=False)
    return [resolve(body, v, span) if isinstance(v, OverloadSet) else v for v, span in pairs]


def matching_overload(body: Body, value: OverloadSet, expected: ty.FunctionType) -> UserFunction | str | None:
    """The overload of the expected type, or the name of a built-in operation; None if neither exists."""
    generic = instances_for_types(body.program.functions, value.name, expected.parameters)
    for function in body.program.functions.get(value.name) + generic:
        if function.parameter_types == expected.parameters:
            if ty.widening(function.result_type, expected.result) is not None:
                return function
    operation = OPERATIONS.get(value.name)
    takes_vectors = all(isinstance(p, (ty.Scalar, ty.Vector)) for p in expected.parameters)
    if operation and takes_vectors and len(operation.parameters) == len(expected.parameters):
        return value.name
    return None


def overload_as_function(body: Body, value: OverloadSet, expected: ty.FunctionType | None, span: Span) -> FunctionValue:
    """The function of an overload set that has the expected type, or its only one; raises CS0412."""
    body.require_host()
    overloads = body.program.functions.get(value.name)
    if expected is not None:
        match = matching_overload(body, value, expected)
        if match is None:
            raise ProgramError("CS0412", span, f"no overload of {value.name} is {expected}")
        if isinstance(match, UserFunction):
            return user_function_value(body, match, span)
        return builtin_function_value(body, match, expected.parameters, span)
    if len(overloads) == 1 and overloads[0].takes_data:
        return user_function_value(body, overloads[0], span)
    if not overloads and value.name in OPERATIONS:
        return builtin_function_value(body, value.name, (ty.FLOAT,) * len(OPERATIONS[value.name].parameters), span)
    message = f"the function {value.name} cannot stand alone here: it has several overloads or takes functions"
    usage = FUNCTIONS.get(value.name)
    hint = f"call it: `{usage}`" if usage is not None else "call it, or cast it: `(float(float)) f`"
    raise ProgramError("CS0412", span, message, hint)


def user_function_value(body: Body, function: UserFunction, span: Span) -> FunctionValue:
    """A function of the program with data parameters, as a value; raises CS0412 if it returns a function."""

    def call(values: list[DataValue]) -> DataValue:
        result = body.program.rules.call(body, function, values, function.declaration.name_span)
        if not isinstance(result, DataValue):
            raise ProgramError("CS0412", span, f"{function.name} returns a function, so it cannot stand alone here")
        return result

    types = tuple(t for t in function.parameter_types if isinstance(t, ty.Data))
    return operation_as_function(body, function.parameter_names, types, call)


def builtin_function_value(body: Body, name: str, types: tuple[ty.Data, ...], span: Span) -> FunctionValue:
    """A built-in operation on data of these types, as a function."""

    def call(values: list[DataValue]) -> DataValue:
        result = body.builder.function(name, values)
        if result is None:
            raise ProgramError("CS0412", span, f"{name} does not take ({', '.join(map(str, types))})")
        return result

    return operation_as_function(body, "xyzw", types, call)


def literal_fits(value: DataValue, target: ty.Type) -> bool:
    """True if a literal without a suffix converts implicitly to `target`, a uint, byte or half."""
    if not value.is_literal or value.type not in (ty.INT, ty.FLOAT):
        return False
    number: float = value.node.attribute.number
    if value.type == ty.FLOAT:
        return target == ty.Scalar("half") and bool(value.node.attribute.untyped) and not abs(number) > MAX_HALF
    limits = {"uint": (0, 2**31), "byte": (0, 255), "half": (-EXACT_HALF, EXACT_HALF)}
    low, high = limits.get(str(target), (1, 0))  # no number is in 1..0
    return low <= number <= high


def type_text(value: Value) -> str:
    """The value's type, for messages."""
    return f"function {value.name}" if isinstance(value, OverloadSet) else str(value.type)


def convert(body: Body, value: Value, target: ty.Type, span: Span) -> Value:
    """The value as the target type, by a lossless conversion; raises CS0401 if there is none."""
    if isinstance(target, ty.DomainType):
        if conversion_cost(body, value, target) is None:
            message = f"{span.excerpt} is {type_text(value)}, but a {target} is needed"
            raise ProgramError("CS0401", span, message, "a range is `0..n`, the domain of a function `domain(f)`")
        return DomainValue(value.domain) if isinstance(value, FunctionValue) else value
    if isinstance(target, ty.FunctionType):
        return convert_function(body, value, target, span)
    if isinstance(target, ty.Tuple):
        return convert_tuple(body, value, target, span)
    return convert_data(body, value, target, span)


def convert_tuple(body: Body, value: Value, target: ty.Tuple, span: Span) -> TupleValue:
    """The value as a tuple or class with functions, each value converted; raises CS0401."""
    if not isinstance(value, TupleValue) or not ty.are_alike(value.type, target):
        names = ", ".join(name for name, _ in target.fields)
        hint = f"`{'' if target.name.startswith('(') else target}({names})`"
        raise ProgramError("CS0401", span, f"{span.excerpt} is {type_text(value)}, but {target} is needed", hint)
    pairs = zip(value.fields, target.fields, strict=True)
    return TupleValue(target, tuple(convert(body, field, type_, span) for field, (_, type_) in pairs))


def convert_data(body: Body, value: Value, target: ty.Data, span: Span) -> DataValue:
    """The value as data of the target type, by a lossless conversion; raises CS0401 if there is none."""
    value = resolve(body, value, span)
    if isinstance(value, FunctionValue):
        message = f"{span.excerpt} is the function {value.type}, but {target} is needed"
        raise ProgramError("CS0401", span, message, "apply it, or reduce it: `sum(f)`")
    if value.type == target or ty.are_alike(value.type, target):
        return DataValue(target, value.nodes)
    source_scalar, target_scalar = ty.scalar_type_of(value.type), ty.scalar_type_of(target)
    if target_scalar is not None and conversion_cost(body, value, target) is not None:
        return body.builder.convert(value, target_scalar)
    hint = ""
    if source_scalar is not None and target_scalar is not None:
        if value.type == ty.BOOL:
            hint = BOOL_HINT
        elif target != ty.BOOL:
            hint = f"a cast says that loss is meant: `({target}) ...`; a variable of {value.type} loses nothing"
    raise ProgramError("CS0401", span, f"{span.excerpt} is {value.type}, but {target} is needed", hint)


def convert_function(body: Body, value: Value, target: ty.FunctionType, span: Span) -> FunctionValue:
    """The value as a function of the target type, materialized if it is an array type; raises CS0401."""
    if isinstance(value, OverloadSet):
        value = overload_as_function(body, value, target, span)
    if not isinstance(value, FunctionValue):
        shown = value.type if isinstance(value, DataValue) else "a domain"
        names = ", ".join("ijklmn"[k % 6] + " : 0..n" for k in range(len(target.parameters)))
        message = f"{span.excerpt} is {shown}, but the function {target} is needed"
        raise ProgramError("CS0401", span, message, f"a function is made by `var f({names}) = ...`")
    type_ = value.type
    if type_.parameters != target.parameters or ty.widening(type_.result, target.result) is None:
        has_more = len(type_.parameters) > len(target.parameters)
        hint = "blanks leave dimensions free: `a(i, )`" if has_more else ""
        if type_.parameters == target.parameters and ty.scalar_type_of(target.result) not in (None, "bool"):
            hint = f"a cast says that loss is meant, for all elements: `({target.result}) ...`"
        raise ProgramError("CS0401", span, f"{span.excerpt} is {type_}, but {target} is needed", hint)
    scalar = ty.scalar_type_of(target.result)
    if type_.result != target.result and scalar is not None:
        converted = promote(body, [value], lambda v: body.builder.convert(v[0], scalar), span)
        assert isinstance(converted, FunctionValue)
        value = converted
    if target.is_array and not value.type.is_array:
        return materialize(body, value, span)
    if not target.is_array and value.type.is_array:
        return FunctionValue(value.type.as_function_type, value.node, value.fixed_domain, value.borders)
    return value


def materialize(body: Body, value: FunctionValue, span: Span) -> FunctionValue:
    """The cast to an array type: a function that is evaluated once at every point of its domain.

    Raises CS0306 for an infinite domain, CS0307 for a domain that is not inferred yet.
    """
    domain = value.domain_with_borders
    if INFINITE in domain:
        dimension = ordinal(domain.index(INFINITE))
        message = f"{span.excerpt} cannot become an array: its {dimension} dimension is infinite"
        raise ProgramError("CS0306", span, message, "restrict it: `var f(i : 0..n) = ...`")
    array = value.type.as_array_type
    if value.node.op != "function" or not isinstance(value.node.attribute, tuple):  # an array already
        return FunctionValue(array, value.node, value.fixed_domain, value.borders)
    if NOT_INFERRED in domain:
        message = f"the domain of {span.excerpt} is not known yet here"
        raise ProgramError("CS0307", span, message, "restrict its variables")
    if value.node.free_variables:  # a function of an outer variable too, such as a row: computed where it is read
        return FunctionValue(array, value.node, domain)
    return FunctionValue(array, body.dag.intern("let", array, (value.node,)), domain)


def let_bind(body: Body, value: Value, span: Span) -> Value:
    """The value as a "let" node (ir/dag.py): evaluated once, however often it is used."""
    if isinstance(value, TupleValue):
        return TupleValue(value.type, tuple(let_bind(body, field, span) for field in value.fields))
    if isinstance(value, FunctionValue):
        return materialize(body, value, span)
    if not isinstance(value, DataValue) or body.in_device_code:
        return value
    dag = body.dag  # other nodes are cheap to repeat: numbers, variables
    nodes = (dag.intern("let", n.type, (n,)) if n.op in ("apply", "reduce") else n for n in value.nodes)
    return DataValue(value.type, tuple(nodes))


def cast(body: Body, value: DataValue, target: ty.Data, span: Span) -> DataValue:
    """An explicit conversion between numbers or vectors of numbers; raises CS0407 for other types."""
    if value.type == target:
        return value
    source, scalar = ty.scalar_type_of(value.type), ty.scalar_type_of(target)
    if isinstance(target, ty.Vector) and isinstance(value.type, ty.Scalar) and source != "bool":
        return DataValue(target, cast(body, value, ty.Scalar(target.scalar_type), span).nodes * target.size)
    is_number = source is not None and (source == "bool") == (scalar == "bool")
    if scalar is None or not is_number or ty.with_scalar_type(value.type, scalar) != target:
        hint = BOOL_HINT if value.type == ty.BOOL else "compare it: `x != 0`" if target == ty.BOOL else ""
        raise ProgramError("CS0407", span, f"{value.type} cannot be cast to {target}", hint)
    return body.builder.convert(value, scalar)


def make_tuple(items: Sequence[tuple[str, Value]]) -> DataValue | TupleValue:
    """The tuple of values, each with its name or ""; one of data is data."""
    fields, values = list[tuple[str, ty.Type]](), tuple(value for _, value in items)
    for name, value in items:
        assert not isinstance(value, OverloadSet), "resolve() has made it a function"
        fields.append((name, value.type))
    type_ = ty.tuple_type(tuple(fields))
    if isinstance(type_, ty.Tuple):
        return TupleValue(type_, values)
    return DataValue(type_, tuple(node for value in values if isinstance(value, DataValue) for node in value.nodes))


def check_count(name: str, fields: Sequence[str], tree: ast.ConstructorCall) -> None:
    """Raises CS0402 unless a constructor call has a value for each field; `fields` are the types with the names."""
    if len(tree.arguments) != len(fields):
        given = f"{len(tree.arguments)} values are given"
        message = f"{name} has {len(fields)} fields ({', '.join(fields) or 'none'}), but {given}"
        raise ProgramError("CS0402", tree.span, message)


def construct(body: Body, target: ty.Data, values: list[DataValue], tree: ast.ConstructorCall) -> DataValue:
    """`Point(1, 2)`, `float3(v.xy, 1)`, `int(x)`; raises CS0402 for a wrong number of components."""
    spans = [argument.span for argument in tree.arguments]
    if isinstance(target, ty.Record):
        check_count(str(target), [f"{type_} {name}" for name, type_ in target.fields], tree)
        triples = zip(values, target.fields, spans, strict=True)
        converted = [convert_data(body, value, type_, span) for value, (_, type_), span in triples]
        return DataValue(target, tuple(node for field in converted for node in field.nodes))
    size = target.size if isinstance(target, ty.Vector) else 1
    first = values[0].type
    if len(values) == 1 and (size == 1 or not isinstance(first, ty.Vector) or first.size == size):
        return cast(body, values[0], target, tree.span)
    scalar = ty.scalar_type_of(target)
    assert scalar is not None
    nodes: list[Node] = []
    for value, span in zip(values, spans, strict=True):
        if ty.scalar_type_of(value.type) in (None, "bool"):
            raise ProgramError("CS0407", span, f"{value.type} cannot be part of {target}")
        nodes += body.builder.convert(value, scalar).nodes
    if len(nodes) != size:
        raise ProgramError("CS0402", tree.span, f"{target} has {size} components, but {len(nodes)} are given")
    return DataValue(target, tuple(nodes))
