"""Primitives: arrays computed by algorithms of O(n) or O(n log n); and the pass that replaces O(n^2) sums by them.

A node of op "primitive" is an array over `Primitive.ranges`; its inputs are functions, evaluated before it. A program
calls primitives by name (lowering/arrays.py), or recognize(), a pass of the targets, finds them in sums with a
condition. The primitives are:

    scan          the inclusive prefix sums of a function of any rank along its last dimension
    sort, argsort the sorted elements of a function of one dimension, NaN last; their indices, by a stable sort
    scatter_add   from keys and values over the same box: the sum of each key's values; without values: their number
    scatter_mul, scatter_max, scatter_min
                  from keys and values: the product, maximum or minimum of each key's values; maxima and minima ignore
                  NaN, and a zero is +0. The result of a key without values is identity().
"""

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import index_bounds, is_proven_in_bounds
from renderer.cdollar.ir.operations import neutral_element
from renderer.cdollar.ir.types import FLOATS, INT, FunctionType, Number, Scalar
from renderer.records import dataclass

SUMMED = ("int", "uint", "float", "double")  # scalar types of the elements of primitives
SWAPPED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}  # the operator of b and a for a and b
SCATTERS = {"+": "scatter_add", "*": "scatter_mul", "max": "scatter_max", "min": "scatter_min"}
OPERATORS = {name: operator for operator, name in SCATTERS.items()}
WORDS = {"+": "a sum", "*": "a product", "max": "a maximum", "min": "a minimum"}  # in remarks
NEGATED = {"<=": ">", ">": "<=", "<": ">=", ">=": "<"}  # the operator that holds where another does not


@dataclass(frozen=True)
class Primitive:
    """The name of a primitive and the domain of its result."""

    name: str
    ranges: ir.Ranges

    def __str__(self) -> str:
        return f"{self.name} [{' x '.join(map(str, self.ranges))}]"


def primitive(dag: ir.Dag, name: str, ranges: ir.Ranges, scalar: str, *inputs: ir.Node) -> ir.Node:
    """Return the "primitive" node for the functions `inputs`, whose result has elements of scalar type `scalar`."""
    type_ = FunctionType(Scalar(scalar), (INT,) * len(ranges), is_array=True)
    arrays = tuple(_copied(function) or function for function in map(ir.without_plain_lets, inputs))
    return dag.intern("primitive", type_, arrays, Primitive(name, ranges))


def _copied(function: ir.Node) -> ir.Node | None:
    """Return the array that a function copies (`f(i) = a(i)` over all of a); None for other functions."""
    if function.op != "function" or not isinstance(function.attribute, tuple) or len(function.inputs) != 1:
        return None
    body, variables = function.inputs[0], function.attribute
    if body.op != "apply" or not isinstance(body.attribute, ir.Access) or any(body.attribute.borders):
        return None
    array = ir.without_plain_lets(body.inputs[0])
    stored = ir.without_lets(array)
    if stored.op == "primitive" or isinstance(stored.attribute, ir.ArraySource):
        ranges = stored.attribute.ranges
        is_finite = all(isinstance(dimension, ir.Range) for dimension in (*ranges, *(v.range for v in variables)))
        if is_finite and ir.reads_in_place(body, variables, ranges):
            return array
    return None


def identity(name: str, scalar: str) -> Number:
    """The result of a scatter for a key without values."""
    return neutral_element(OPERATORS[name], scalar)


def recognize(dag: ir.Dag, roots: ir.Nodes, remarks: list[str]) -> ir.Nodes:
    """Replace masked sums by prefix sums, and reductions of equal keys by scatters: O(n) in place of O(n^2).

    Adds a remark for each; see _as_scan() and _as_scatter() for the forms. Floats are then added in another order.
    """

    def change(node: ir.Node, inputs: ir.Nodes) -> ir.Node:
        """Replaces a copy of a primitive by the primitive, and a reduction by a scan or scatter that it equals."""
        new = ir.with_inputs(dag, node, inputs)
        if new.op == "function":
            source = _copied(new)
            return source if source is not None and source.op == "primitive" else new
        if new.op == "primitive":
            arrays = tuple(_copied(function) or function for function in map(ir.without_lets, new.inputs))
            return ir.with_inputs(dag, new, arrays)
        if new.op != "reduce" or new.attribute[0].name not in SCATTERS or new.type not in SUMMED:
            return new
        return _as_scan(dag, new, remarks) or _as_scatter(dag, new, remarks) or new

    return ir.rewrite(roots, change)


def _masked(node: ir.Node) -> tuple[ir.Node, ir.Node, bool] | None:
    """The condition and value of `c ? x : 0`, and True if it is negated (`c ? 0 : x`); None for other nodes."""
    if node.attribute == "select":
        condition, if_true, if_false = node.inputs
        for value, other, negated in ((if_true, if_false, False), (if_false, if_true, True)):
            if other.is_constant and other.attribute.number == 0:
                return condition, value, negated
    return None


def _is_finite(variables: ir.VariableSet | ir.Variables) -> bool:
    return all(isinstance(v.range, ir.Range) and v.type == "int" and v.range.size for v in variables)


def _as_scan(dag: ir.Dag, node: ir.Node, remarks: list[str]) -> ir.Node | None:
    """Rewrite `sum(k <= e ? f(k) : 0)`, or with <, > or >=, to a prefix sum read at e; None for other sums.

    `e` must depend on a variable that `f` does not depend on: else each scan would be read at one e only. A scan
    computes f(k) for all k: either f can be computed anywhere without an error, or some e reaches all k.
    """
    (reduction, variables), masked = node.attribute, _masked(node.inputs[0])
    if reduction.name != "+" or masked is None or len(variables) != 1:
        return None
    (condition, value, negated), (k,) = masked, variables
    if condition.op != "apply" or condition.attribute not in SWAPPED or condition.inputs[0].type != "int":
        return None
    (left, right), operator = condition.inputs, condition.attribute
    if not (left.op == "variable" and left.attribute is k):
        left, right, operator = right, left, SWAPPED[operator]
    if not (left.op == "variable" and left.attribute is k) or k in right.free_variables:
        return None
    operator = NEGATED[operator] if negated else operator
    batch = value.free_variables - {k}  # the other variables of f: there is a scan for each of their values
    if not (right.free_variables - value.free_variables) or not _is_finite(batch) or not _is_finite((k,)):
        return None
    if not (_reaches_all(operator, index_bounds(right), k.range) or _may_run_anywhere(value)):
        return None
    mask = f"`{k.name} {operator} ...` masks a sum"
    remarks.append(f"a prefix sum along `{k.name} : {k.range}`: {mask}, O(n) in place of O(n^2)")
    return _read_scan(dag, value, k, operator, right)


def _read_scan(dag: ir.Dag, value: ir.Node, k: ir.BoundVariable, operator: str, end: ir.Node) -> ir.Node:
    """Return the prefix sum of `value`, read at the last k of the mask; for > and >=, from the last k down.

    `end` is e of `k operator e`. Example: `sum(k >= e ? f(k) : 0)` for k in 0..10 is the scan of i -> f(9 - i), read at
    9 - e, clamped to the array, or 0 (`nothing`) if e >= 10.
    """
    low, high, batch = k.range.low, k.range.high, ir.in_order(value.free_variables - {k})

    def number(n: int) -> ir.Node:
        return dag.constant(n, "int")

    new = ir.BoundVariable(k.name, "int", ir.Range(low, high))
    position = dag.bound_variable(new)
    # A comparison counts as 1 below where `>` or `<` leaves out k = e, so that all ends move by one.
    if operator in (">", ">="):
        (value,) = ir.substitute(dag, (value,), {k: dag.apply("-", "int", number(low + high - 1), position)})
        index = dag.apply("-", "int", number(low + high - 1 - (operator == ">")), end)
        nothing = dag.apply(">=", "bool", end, number(high - (operator == ">")))
    else:
        (value,) = ir.substitute(dag, (value,), {k: position})
        index = end if operator == "<=" else dag.apply("-", "int", end, number(1))
        nothing = dag.apply("<", "bool", end, number(low + (operator == "<")))
    variables = (*batch, new)
    scan = primitive(dag, "scan", tuple(v.range for v in variables), value.type, dag.abstraction(variables, (value,)))
    indices = (*map(dag.bound_variable, batch), index)
    if is_proven_in_bounds(index, k.range):
        return dag.access(scan, indices)
    read = dag.access(scan, indices, (None,) * len(batch) + ("clamp",))
    zero = dag.constant(0.0 if value.type in ("float", "double") else 0, value.type)
    return dag.apply("select", value.type, nothing, zero, read)


def _reaches_all(operator: str, ends: tuple[int, int] | None, range_: ir.Range) -> bool:
    """True if the mask `k operator end` holds for all k of a range at some value of `end` in the bounds `ends`."""
    if ends is None:
        return False
    (least, greatest), last = ends, range_.high - 1
    reached = {"<=": greatest >= last, "<": greatest > last, ">=": least <= range_.low, ">": least < range_.low}
    return reached[operator]


def _may_run_anywhere(value: ir.Node) -> bool:
    """True if a value can be computed where its mask is false: no index leaves a domain, no loop can run on."""
    for node in ir.topological_order([value], ir.inputs_outside_functions):
        if isinstance(node.attribute, ir.UserCall) or node.op == "reduce":
            return False
        if node.op == "apply" and isinstance(node.attribute, ir.Access):
            ranges = ir.domain_ranges(node.inputs[0])
            for index, range_, border in zip(node.inputs[1:], ranges, node.attribute.borders, strict=True):
                is_inside = isinstance(range_, ir.Range) and is_proven_in_bounds(index, range_)
                if not (border or is_inside or range_ is ir.INFINITE):
                    return False
    return True


def _keyed(node: ir.Node) -> tuple[ir.Node, ir.Node, ir.Node, ir.Node] | None:
    """a, b, value, other of `a == b ? value : other` or `a != b ? other : value`; None for other nodes."""
    if node.op != "apply" or node.attribute != "select":
        return None
    condition, value, other = node.inputs
    if condition.op != "apply" or condition.attribute not in ("==", "!=") or condition.inputs[0].type != "int":
        return None
    left, right = condition.inputs
    return (left, right, value, other) if condition.attribute == "==" else (left, right, other, value)


def _as_scatter(dag: ir.Dag, node: ir.Node, remarks: list[str]) -> ir.Node | None:
    """Rewrite `sum(k(j) == v ? w(j) : 0)` over j, or prod, max, min, to a scatter read at v; None for other reductions.

    The variable v must have a finite range, which gives the bins of the scatter.
    """
    (reduction, variables), keyed = node.attribute, _keyed(node.inputs[0])
    if keyed is None or not _is_finite(variables):
        return None
    (key, wanted, value, other), reduced = keyed, frozenset(variables)
    if key.op == "variable" and key.attribute not in variables:
        key, wanted = wanted, key
    if wanted.op != "variable" or wanted.attribute in reduced or not _is_finite((wanted.attribute,)):
        return None
    if not (key.free_variables and key.free_variables <= reduced and value.free_variables <= reduced):
        return None
    name, is_extremum = SCATTERS[reduction.name], reduction.name in ("min", "max")
    is_neutral = other.is_constant and other.attribute.number == identity(name, node.type)
    if other.free_variables & reduced or not (is_extremum or is_neutral):
        return None
    # A sum of ones counts: a scatter_add without values.
    is_one = value.is_constant and value.attribute.number == 1
    is_count = name == "scatter_add" and is_one and node.type in ("int", "uint")
    bins = wanted.attribute.range
    description = f"{'a histogram' if name == 'scatter_add' else name} over `{wanted.attribute.name} : {bins}`"
    remarks.append(f"{description}: {WORDS[reduction.name]} of equal keys, O(n) in place of O(n^2)")
    if not _may_run_anywhere(value):  # compute the value only where its key is a bin, as the program does
        start = identity(name, node.type)
        neutral = dag.constant(float(start) if node.type in FLOATS else start, node.type)
        ends = (dag.constant(number, "int") for number in (bins.low, bins.high))
        inside = (dag.apply(sign, "bool", key, end) for sign, end in zip((">=", "<"), ends, strict=True))
        value = dag.apply("select", node.type, dag.apply("&&", "bool", *inside), value, neutral)
    bodies = (key,) if is_count else (key, value)
    functions = [dag.abstraction(variables, (b,)) for b in bodies]
    scattered = dag.access(primitive(dag, name, (bins,), node.type, *functions), (wanted,))
    if not is_extremum:
        return scattered

    def reduce_all(name: str, body: ir.Node) -> ir.Node:
        """A reduction over all elements."""
        return dag.intern("reduce", body.type, (body,), (ir.Reduction(name), variables))

    # An extremum whose `other` is not the neutral element, as in max(k(j) == v ? w(j) : -1): `other` is combined unless
    # all elements have the key v.
    first, last = (dag.apply("==", "bool", reduce_all(end, key), wanted) for end in ("min", "max"))
    combined = dag.apply(reduction.name, node.type, scattered, other)
    is_only_key = dag.apply("&&", "bool", first, last)
    return dag.apply("select", node.type, is_only_key, reduce_all(reduction.name, value), combined)
