"""Calls, indices and slices of functions, and assignments to elements: `f(x)`, `a[2]`, `a[1:3]`, `a[2] = x`.

A call is tried in the order of the C$ paper: ordinary, user-defined, currying (`a(2)` of a function of two indices is a
function of the second), promotion (`sqrt(a)` is the function i -> sqrt(a(i))). A slice is a function whose indices
start at 0, as in NumPy: `a[2:8:3]` is k -> a(2 + 3 * k) for k in 0..2. An assignment to elements makes a new function:
`a[2:8:3] = b` is i -> i >= 2 && (i - 2) % 3 == 0 && (i - 2) / 3 < 2 ? b((i - 2) / 3) : a(i).
"""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat, zip_longest

from renderer.cdollar.checker.domains import IndexConstraint
from renderer.cdollar.checker.node_builder import FUNCTIONS
from renderer.cdollar.checker.program import Body, lower
from renderer.cdollar.checker.scopes import Variable
from renderer.cdollar.checker.tables import Overloads, UserFunction, overloads_for_values
from renderer.cdollar.checker.values import Argument, DataValue, FunctionValue, Omitted, Operand, SliceArgument, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir import types as ty
from renderer.cdollar.ir.dag import INFINITE, UNKNOWN, BoundVariable, Dimension, Node, Range
from renderer.cdollar.ir.operations import OPERATIONS
from renderer.cdollar.lowering import conversions
from renderer.cdollar.lowering.domains import assign_binders, host_int, is_known, lower_expression, lower_operand
from renderer.cdollar.lowering.functions import access, apply_at, make_function, promote

# Slices and elements


def lower_slice(body: Body, tree: ast.Slice, dimension: Dimension) -> SliceArgument:
    """A slice of a dimension; raises CS0322 if it leaves the domain.

    A missing end is an end of the domain. In a domain from 0 on, negative ends count from its end, as in NumPy.
    """
    written = tree.low, tree.high, tree.step
    given = [host_int(body, number) if number is not None else None for number in written]
    is_unknown = any(number is not None and n is None for number, n in zip(written, given, strict=True))
    low, high, given_step = given
    if is_unknown or dimension is UNKNOWN:
        return SliceArgument(None, given_step or 1, None)
    step = 1 if given_step is None else given_step
    if step == 0:
        raise ProgramError("CS0322", (tree.step or tree).span, "the step of a slice is not 0")
    if not isinstance(dimension, Range):
        if low is None or high is None or step < 0:
            message = f"the slice {tree.span.excerpt} needs both ends: this dimension is infinite"
            raise ProgramError("CS0322", tree.span, message, "`a[0:n]`")
        dimension = Range(min(low, high), max(low, high))
    return _finite_slice(tree, dimension, low, high, step)


def _finite_slice(tree: ast.Slice, range_: Range, low: int | None, high: int | None, step: int) -> SliceArgument:
    """The slice of a dimension with a finite range; raises CS0322."""
    if range_.low == 0:
        low, high = (n + range_.high if n is not None and n < 0 else n for n in (low, high))
    start, end = (range_.low, range_.high) if step > 0 else (range_.high - 1, range_.low - 1)
    indices = range(start if low is None else low, end if high is None else high, step)
    if indices:
        least, greatest = sorted((indices[0], indices[-1]))
        if least < range_.low or greatest >= range_.high:
            message = f"the slice {tree.span.excerpt} reads {least}..{greatest + 1} where {range_} is allowed"
            raise ProgramError("CS0322", tree.span, message, "an omitted end is the end of the domain: `a[1:]`")
    return SliceArgument(indices.start, step, len(indices))


def sliced_index(body: Body, variable: BoundVariable, slice_: SliceArgument) -> DataValue:
    """The index low + step * `variable` at which a slice reads its function; `variable` gets the slice's range."""
    index = body.dag.bound_variable(variable)
    variable.range = UNKNOWN
    if slice_.low is not None and slice_.size is not None:
        variable.range = Range(0, slice_.size)
        for name, number, neutral in (("*", slice_.step, 1), ("+", slice_.low, 0)):
            if number != neutral:
                index = body.builder.apply(name, "int", index, body.dag.constant(number, "int"))
    return DataValue(ty.INT, (index,))


# For each sliced dimension: the index of the assigned function b, (i - 2) / 3 in the example at the top of this file,
# and the size of the slice (None: unknown).
SliceIndices = list[tuple[DataValue, int | None]]


def lower_with_elements(body: Body, tree: ast.WithElements) -> FunctionValue:
    """The subject with `tree.value` at the indices; raises CS0324.

    New names in the indices are bound variables over the domain: `a[i, 0] = f(i)`. A slice takes one value for all of
    its elements, or a function of the slice's indices, which start at 0.
    """
    body.require_host()
    subject = lower_operand(body, tree.subject)
    if not isinstance(subject, FunctionValue) or subject.borders or not subject.type.takes_indices:
        message = f"{tree.subject.span.excerpt} is {subject.type}, whose elements cannot be assigned"
        raise ProgramError("CS0324", tree.span, message, "the elements of functions of int indices can")
    if len(tree.indices) != len(subject.domain):
        message = f"{tree.subject.span.excerpt} has {len(subject.domain)} indices, {len(tree.indices)} are given"
        given = [index.span.excerpt for index in tree.indices] + [":"] * (len(subject.domain) - len(tree.indices))
        hint = f"assign `{tree.subject.span.excerpt}[{', '.join(given[: len(subject.domain)])}] = ...`"
        raise ProgramError("CS0324", tree.span, message, hint)
    names = [i.name for i in tree.indices if isinstance(i, ast.Name) and not is_known(body, i.name)]
    with body.block() as scope, body.program.inference.context() as context:
        for operand in (*tree.indices, tree.value):
            if not isinstance(operand, ast.Blank):  # each other unknown name must be bound by a reduction
                assign_binders(body, operand, context, names)
        # variables of names that no program can write; a new name in the indices, i of `a[i]`, is one of them
        variables = [BoundVariable(f"_{k}", "int", range_) for k, range_ in enumerate(subject.domain)]
        points = [DataValue(ty.INT, (body.dag.bound_variable(variable),)) for variable in variables]
        for index, point in zip(tree.indices, points, strict=True):
            if isinstance(index, ast.Name) and index.name in names and index.name not in scope.names:
                scope.names[index.name] = Variable(point, None, "a bound variable")
        conditions: list[Node] = []
        slice_indices: SliceIndices = []
        for index, variable, point in zip(tree.indices, variables, points, strict=True):
            conditions += index_conditions(body, index, variable, point.node, slice_indices)
        element = assigned_element(body, tree, slice_indices)
        value = conversions.convert_data(body, element, subject.type.result, tree.value.span)
        old = access(body, subject, points, tree.span)  # no constraint: the points run over the domain
        if conditions:
            value = body.builder.where(body.builder.chain("&&", tuple(conditions)).node, value, old)
    return make_function(body.dag, variables, value)


def index_conditions(
    body: Body, index: ast.AstNode, variable: BoundVariable, point: Node, slice_indices: SliceIndices
) -> list[Node]:
    """The conditions under which `index` selects the value `point` of `variable`, an index of one dimension.

    `a[2] = x` has the condition point == 2, `a[i] = x` has none. A slice adds the index of the assigned function to
    `slice_indices`.
    """
    if isinstance(index, ast.Blank):
        index = ast.Slice(index.span, None, None, None)
    if isinstance(index, ast.Slice):
        return slice_conditions(body, lower_slice(body, index, variable.range), point, slice_indices)
    value = lower_operand(body, index)
    if isinstance(value, FunctionValue) or value.type != ty.INT:
        raise ProgramError("CS0324", index.span, f"an index is int, but {index.span.excerpt} is {value.type}")
    if value.node is point:  # the new name of this dimension: every index is selected
        return []
    body.program.inference.add_constraint(IndexConstraint(value.node, variable.range, index.span))
    return [body.builder.apply("==", "int", point, value.node)]


def slice_conditions(body: Body, slice_: SliceArgument, point: Node, slice_indices: SliceIndices) -> list[Node]:
    """The conditions under which `point` is in a slice; adds its position in the slice to `slice_indices`."""
    if slice_.low is None or slice_.size is None:
        slice_indices.append((DataValue(ty.INT, (point,)), None))
        return []

    def op(name: str, node: Node, number: int) -> Node:
        return body.builder.apply(name, "int", node, body.dag.constant(number, "int"))

    position = op("-", point, slice_.low)
    conditions = []
    if slice_.step != 1:
        conditions.append(op("==", op("%", position, slice_.step), 0))
        position = op("/", position, slice_.step)
    slice_indices.append((DataValue(ty.INT, (position,)), slice_.size))
    return [*conditions, op(">=", position, 0), op("<", position, slice_.size)]


def assigned_element(body: Body, tree: ast.WithElements, slice_indices: SliceIndices) -> DataValue:
    """The assigned value; of an assigned function, its element at the positions in the slices."""
    with body.guarded():
        value = lower_operand(body, tree.value)
        if isinstance(value, DataValue):
            return value
        if len(value.type.parameters) != len(slice_indices) or not value.type.takes_indices:
            wanted = f"a function of {len(slice_indices)} indices" if slice_indices else "one value"
            message = f"{tree.value.span.excerpt} is {value.type}, but {wanted} is assigned"
            raise ProgramError("CS0324", tree.value.span, message, "slices take a function: `a[1:3] = b`")
        indices = []
        for (index, size), range_ in zip(slice_indices, value.domain_with_borders, strict=True):
            if size is not None and isinstance(range_, Range) and range_.size != size:
                message = f"{tree.value.span.excerpt} has {range_.size} elements, but {size} are assigned"
                raise ProgramError("CS0324", tree.value.span, message, "give both the same size: `a[1:3] = b[:2]`")
            low = range_.low if isinstance(range_, Range) else 0
            node = body.builder.apply("+", "int", index.node, body.dag.constant(low, "int")) if low else index.node
            indices.append(DataValue(ty.INT, (node,)))
        return apply_at(body, value, indices, tree.value.span, free=frozenset())


def read_element(body: Body, variable: Variable, trees: Sequence[ast.AstNode], span: Span) -> DataValue:
    """`t[i, j]` of a local array of device code: an element for each component; raises CS0402.

    The element's index is row-major, or -1 if some index is outside: a run then stops with an error.
    """
    shape, type_ = variable.arrays[0].shape, variable.type
    assert isinstance(type_, ty.FunctionType), "a local array has the type of an array"
    if len(trees) != len(shape):
        message = f"this local array has {len(shape)} indices, {len(trees)} are given"
        raise ProgramError("CS0402", span, message)
    apply, number = body.builder.apply, body.dag.constant
    position = number(0, "int")
    inside: list[Node] = []
    for tree, size in zip(trees, shape, strict=True):
        if isinstance(tree, ast.Slice | ast.Blank):
            raise ProgramError("CS0322", span, "the elements of a local array are read one by one")
        index = conversions.convert_data(body, lower_operand(body, tree), ty.INT, tree.span).node
        position = apply("+", "int", apply("*", "int", position, number(size, "int")), index)
        inside += [apply(name, "int", index, number(end, "int")) for name, end in ((">=", 0), ("<", size))]
    if len(shape) > 1:  # of one dimension, an index outside is outside of the array already
        position = apply("select", "int", body.builder.chain("&&", tuple(inside)).node, position, number(-1, "int"))
    nodes = tuple(body.dag.intern("element", array.type, (position,), array) for array in variable.arrays)
    for node in nodes:
        body.dag.spans.setdefault(node, span)
    return DataValue(type_.result, nodes)


# Calls


def lower_indices(body: Body, function: FunctionValue, tree: ast.Call) -> list[Argument]:
    """The arguments of an index into a function, whose domain bounds slices."""
    dimensions = function.domain_with_borders
    pairs = zip(tree.arguments, chain(dimensions, repeat(INFINITE)), strict=False)
    return [lower_slice(body, t, d) if isinstance(t, ast.Slice) else lower_argument(body, t) for t, d in pairs]


def lower_argument(body: Body, tree: ast.AstNode, expected: ty.Type | None = None) -> Argument:
    """An argument of a call; raises CS0322 for a slice."""
    if isinstance(tree, ast.Slice):
        raise ProgramError("CS0322", tree.span, "a slice is a part of an array, not of what a function is called for")
    return Omitted() if isinstance(tree, ast.Blank) else lower(body, tree, expected)


def lower_arguments(body: Body, name: str, overloads: Overloads, tree: ast.Call) -> list[Argument]:
    """The arguments of a call by name; a lambda takes the parameter types of the only function that may be meant.

    The lambdas of a generic function come last: in `filter(a, x => x > 3)`, a chooses the type of x.
    """
    functions, count = body.program.functions, len(tree.arguments)
    is_generic = not overloads and name in functions.generics
    is_last = [is_generic and isinstance(argument, ast.Lambda) for argument in tree.arguments]
    trees = [ast.Blank(a.span) if last else a for a, last in zip(tree.arguments, is_last, strict=True)]
    expected = overloads[0].parameter_types if len(overloads) == 1 else ()
    pairs = zip_longest(trees, expected[:count])
    values = [lower_argument(body, argument, type_) for argument, type_ in pairs]
    if any(is_last):
        instances = overloads_for_values(functions, name, values)
        types = instances[0].parameter_types if len(instances) == 1 else ()
        for k, (argument, last, type_) in enumerate(zip_longest(tree.arguments, is_last, types[:count])):
            if last:
                values[k] = lower_argument(body, argument, type_)
    return values


def call_overloaded(body: Body, name: str, overloads: Overloads, values: list[Argument], tree: ast.Call) -> Value:
    """A call of an overloaded name, tried in the order of the C$ paper; raises CS0411.

    In turn: a function of the program and a built-in one on the values as they are, a function with its default
    arguments, currying, and the promotion of either. A function of the program comes before a built-in one only if its
    parameter types equal the types of the values.
    """
    has_blanks = any(isinstance(v, Omitted) for v in values)
    known = [v for v in values if not isinstance(v, Omitted)]
    data = [v for v in values if isinstance(v, DataValue)]
    is_data = len(data) == len(values)
    if not has_blanks:
        chosen = conversions.resolve_overload(body, overloads, values)
        if chosen is not None:
            is_builtin = name in OPERATIONS and is_data and body.builder.function(name, data) is not None
            if not is_builtin or tuple(v.type for v in data) == chosen.parameter_types:
                return call_user(body, chosen, known, tree)
        builtin = body.builder.call(name, data) if name in FUNCTIONS and is_data else None
        if builtin is not None:
            body.dag.spans.setdefault(builtin.node, tree.span)
            return builtin
        completed = with_default_arguments(body, overloads, known)
        if completed is not None:
            return promote_user_call(body, *completed, tree)
    # Currying: some arguments are blank, or no overload has so few parameters.
    counts = [len(f.parameter_types) for f in overloads]
    curried = [f for f, n in zip(overloads, counts, strict=True) if n > len(values) or has_blanks and n == len(values)]
    if curried and (has_blanks or len(values) not in counts):
        if not curried[0].takes_data:
            return conversions.fail_overload(body, name, curried[:1], values, tree.span)
        return apply(body, conversions.user_function_value(body, curried[0], tree.span), values, tree)
    resolved = conversions.resolve_overload_sets(body, values, argument_spans(tree))
    promoted = conversions.resolve_overload(body, overloads, resolved, promote=True)
    if promoted is not None:
        return promote_user_call(body, promoted, resolved, tree)
    operands = [v for v in resolved if isinstance(v, DataValue | FunctionValue)]
    has_function = any(isinstance(v, FunctionValue) for v in operands)
    if name in FUNCTIONS and has_function and len(operands) == len(values):

        def call_builtin(data: list[DataValue]) -> DataValue:
            result = body.builder.call(name, data)
            if result is None:
                return conversions.fail_overload(body, name, [], resolved, tree.span)
            body.dag.spans.setdefault(result.node, tree.span)
            return result

        return promote(body, operands, call_builtin, tree.span)
    return conversions.fail_overload(body, name, overloads, values, tree.span)


def with_default_arguments(
    body: Body, overloads: Overloads, values: list[Value]
) -> tuple[UserFunction, list[Value]] | None:
    """The first overload that fits with its defaults for missing arguments, and all arguments; None if none fits."""
    for function in overloads:
        defaults = [p.default for p in function.declaration.parameters[len(values) :]]
        if not defaults or None in defaults:
            continue
        full = values + [default_value(body, tree) for tree in defaults if tree is not None]
        if conversions.resolve_overload(body, [function], list(full), promote=True) is not None:
            return function, full
    return None


def default_value(body: Body, tree: ast.AstNode) -> Value:
    """The value of a default argument, lowered once for all calls: it depends on no variable."""
    key = tree, body.in_device_code, body.program.host.abstract_depth > 0
    apart = Body(body.program, in_device_code=body.in_device_code)
    return body.program.lower_once(key, lambda: lower_expression(apart, tree))


def call_user(body: Body, function: UserFunction, values: Sequence[Value], tree: ast.AstNode) -> Value:
    """A call of a function or operator of the program, with its arguments converted."""
    triples = zip(values, function.parameter_types, argument_spans(tree), strict=False)
    converted = [conversions.convert(body, value, type_, where) for value, type_, where in triples]
    try:
        return body.program.rules.call(body, function, converted, tree.span)
    except ProgramError as error:
        if not function.is_instance or not error.code.startswith("CS04"):
            raise
        message = f"{function.signature} has no value for these types: {error.message}, in {error.span.provenance}"
        raise ProgramError(error.code, tree.span, message, error.hint) from None


def promote_user_call(body: Body, function: UserFunction, values: Sequence[Argument], tree: ast.Call) -> Operand:
    """Promotes a call: a function that is given for a parameter of data is applied point by point."""
    given = [v for v in values if not isinstance(v, Omitted)]  # all of them, as the overload takes them
    takes_data = [isinstance(type_, ty.Data) for type_ in function.parameter_types]
    lifted = [conversions.resolve(body, v, tree.span) for v, is_data in zip(given, takes_data, strict=True) if is_data]

    def call(data: list[DataValue]) -> DataValue:
        rest = iter(data)
        full = [next(rest) if is_data else v for v, is_data in zip(given, takes_data, strict=True)]
        result = call_user(body, function, full, tree)
        if not isinstance(result, DataValue):
            raise ProgramError("CS0410", tree.span, f"{function.name} returns a function: it cannot be promoted")
        return result

    return promote(body, lifted, call, tree.span)


def apply(body: Body, function: FunctionValue, arguments: list[Argument], tree: ast.Call) -> Value:
    """Ordinary application; currying if arguments are missing or blank; promotion if some are functions."""
    body.require_host()
    count = len(function.type.parameters)
    if len(arguments) > count:
        message = f"it has {count} {'index' if count == 1 else 'indices'}, {len(arguments)} are given"
        raise ProgramError("CS0402", tree.span, f"{tree.callee.span.excerpt} is {function.type}: {message}")
    pairs = zip(arguments + [Omitted()] * (count - len(arguments)), argument_spans(tree), strict=False)
    values = [v if isinstance(v, Omitted) else conversions.resolve(body, v, span) for v, span in pairs]
    if all(type(value) is Omitted for value in values):  # no slices either
        return function
    masks = [k for k, value in enumerate(values) if isinstance(value, FunctionValue) and value.type.result == ty.BOOL]
    if masks and function.type.parameters[masks[0]] == ty.INT:
        span, name = tree.arguments[masks[0]].span, tree.callee.span.excerpt
        hint = f"`compact({name}, {span.excerpt})` keeps these elements, `sum({name}(i), i : k => ...)` reduces them"
        raise ProgramError("CS0401", span, f"{span.excerpt} is a mask, but an index is int", hint)
    operands = [value for value in values if not isinstance(value, Omitted)]
    if len(operands) < len(values):
        return curry(body, function, values, tree)
    return promote(body, operands, lambda v: apply_converted(body, function, v, frozenset(), tree), tree.span)


def curry(body: Body, function: FunctionValue, values: Sequence[Operand | Omitted], tree: ast.Call) -> FunctionValue:
    """`a(2)` or `a(, k)`: the function of the dimensions without an argument."""
    free: list[BoundVariable] = []
    operands: list[Operand] = []
    for position, value in enumerate(values):
        if not isinstance(value, Omitted):
            operands.append(value)
            continue
        type_ = function.type.parameters[position]
        if not isinstance(type_, ty.Scalar):
            raise ProgramError("CS0409", tree.span, f"a dimension of type {type_} cannot stay free")
        free.append(BoundVariable(f"_{position}", type_.name, function.domain_with_borders[position]))
        index = DataValue(type_, (body.dag.bound_variable(free[-1]),))
        operands.append(sliced_index(body, free[-1], value) if isinstance(value, SliceArgument) else index)
    result = promote(body, operands, lambda v: apply_converted(body, function, v, frozenset(free), tree), tree.span)
    if isinstance(result, FunctionValue):
        message = "blanks and functions cannot be mixed as arguments"
        raise ProgramError("CS0409", tree.span, message, "name the free dimensions: `var r(k) = ...`")
    return make_function(body.dag, free, result)


def apply_converted(
    body: Body, function: FunctionValue, values: list[DataValue], free: frozenset[BoundVariable], tree: ast.Call
) -> DataValue:
    """A function at a point, whose coordinates are converted to the parameters' types."""
    triples = zip(values, function.type.parameters, argument_spans(tree), strict=False)
    converted = [conversions.convert_data(body, value, type_, span) for value, type_, span in triples]
    return apply_at(body, function, converted, tree.span, free)


def argument_spans(tree: ast.AstNode) -> Iterator[Span]:
    """The spans of a call's arguments, then endlessly the span of the call, for default arguments and operands."""
    arguments = tree.arguments if isinstance(tree, ast.Call) else []
    return chain((argument.span for argument in arguments), repeat(tree.span))
