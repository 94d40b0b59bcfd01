"""Primitives: whole arrays computed by algorithms of O(n) or O(n log n), and the O(n^2) sums that are such.

A node of op "primitive" is a function over `Primitive.ranges`; its inputs are functions, evaluated before it:

    scan          the prefix sums of a function of any rank along its last dimension
    sort, argsort a function of one dimension, NaN last; the indices of the sorted elements, stable
    scatter_add   of keys, and of values over the same box or none: the sum of the values, or the count, of each key
    scatter_mul, scatter_max, scatter_min
                  of keys and values: the product, the greatest or the least value of each key; maxima and minima pass
                  over NaN, and a zero is +0. A key without values has IDENTITIES.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import index_bounds
from renderer.cdollar.ir.types import DTYPES, FLOATS, INT, FunctionType, Scalar

SUMMED = ("int", "uint", "float", "double")
SWAPPED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}
SCATTERS = {"+": "scatter_add", "*": "scatter_mul", "max": "scatter_max", "min": "scatter_min"}
WORDS = {"+": "a sum", "*": "a product", "max": "a maximum", "min": "a minimum"}  # of the values of equal keys
NEGATED = {"<=": ">", ">": "<=", "<": ">=", ">=": "<"}


@dataclass(frozen=True)
class Primitive:
    """The name of a primitive and the domain of its result."""

    name: str
    ranges: tuple[ir.Range, ...]

    def __str__(self) -> str:
        return f"{self.name} [{' x '.join(map(str, self.ranges))}]"


def primitive(dag: ir.Dag, name: str, ranges: tuple[ir.Range, ...], scalar: str, *inputs: ir.Node) -> ir.Node:
    """The array of a primitive with elements of a scalar type."""
    type_ = FunctionType(Scalar(scalar), (INT,) * len(ranges), True)
    arrays = tuple(_copied(function) or function for function in map(ir.without_plain_lets, inputs))
    return dag.intern("primitive", type_, arrays, Primitive(name, ranges))


def _copied(function: ir.Node) -> ir.Node | None:
    """The array of which a function is a copy: `f(i) = a(i)` over the whole of a."""
    if function.op != "function" or not isinstance(function.attribute, tuple) or len(function.inputs) != 1:
        return None
    body, variables = function.inputs[0], function.attribute
    if body.op != "apply" or not isinstance(body.attribute, ir.Access) or any(body.attribute.borders):
        return None
    array = ir.without_plain_lets(body.inputs[0])
    stored = ir.without_lets(array)
    if stored.op == "primitive" or isinstance(stored.attribute, ir.ArraySource):
        ranges = [(r.low, r.high) for r in stored.attribute.ranges if isinstance(r, ir.Range)]
        indices = [index.attribute if index.op == "variable" else None for index in body.inputs[1:]]
        is_whole = all(isinstance(v.range, ir.Range) for v in variables)
        if indices == list(variables) and is_whole and ranges == [(v.range.low, v.range.high) for v in variables]:
            return array
    return None


def identity(name: str, scalar: str) -> float | int:
    """What a scatter has for a key without values."""
    if name in ("scatter_add", "scatter_mul"):
        return int(name == "scatter_mul")
    if scalar in FLOATS:
        return -math.inf if name == "scatter_max" else math.inf
    limits = np.iinfo(DTYPES[scalar])
    return int(limits.min if name == "scatter_max" else limits.max)


def recognize(dag: ir.Dag, roots: tuple[ir.Node, ...], remarks: list[str]) -> tuple[ir.Node, ...]:
    """Replaces masked sums by prefix sums, and reductions of equal keys by scatters: O(n) in place of O(n^2)."""

    def change(node: ir.Node, inputs: tuple[ir.Node, ...]) -> ir.Node:
        new = ir.with_inputs(dag, node, inputs)
        if new.op == "function":
            source = _copied(new)
            return source if source is not None and source.op == "primitive" else new
        if new.op == "primitive":
            arrays = tuple(_copied(function) or function for function in map(ir.without_lets, new.inputs))
            return ir.with_inputs(dag, new, arrays)
        if new.op != "reduce" or new.attribute[0].name not in SCATTERS or new.type not in SUMMED:
            return new
        return _scan_of(dag, new, remarks) or _scatter_of(dag, new, remarks) or new

    return ir.rewrite(roots, change)


def _masked(node: ir.Node) -> tuple[ir.Node, ir.Node, bool] | None:
    """The condition and value of `c ? x : 0`, and whether it is negated (`c ? 0 : x`)."""
    if node.op != "apply":
        return None
    if node.attribute == "select":
        condition, if_true, if_false = node.inputs
        if if_false.is_constant and if_false.attribute.number == 0:
            return condition, if_true, False
        if if_true.is_constant and if_true.attribute.number == 0:
            return condition, if_false, True
    return None


def _is_finite(variables: frozenset[ir.BoundVariable] | tuple[ir.BoundVariable, ...]) -> bool:
    return all(isinstance(v.range, ir.Range) and v.type == "int" and v.range.size for v in variables)


def _scan_of(dag: ir.Dag, node: ir.Node, remarks: list[str]) -> ir.Node | None:
    """`sum(k <= e ? f(k) : 0)` and its kin as a prefix sum read at e; e depends on variables that f does not."""
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
    batch = tuple(sorted(value.free_variables - {k}, key=lambda v: v.unique_id))
    if not (right.free_variables - value.free_variables) or not _is_finite(batch) or not _is_finite((k,)):
        return None
    if not (_reaches_all(operator, index_bounds(right), k.range) or _may_run_anywhere(value)):
        return None
    remarks.append(
        f"a prefix sum along `{k.name} : {k.range}`: `{k.name} {operator} ...` masks a sum, O(n) in place of O(n^2)"
    )
    return _read_scan(dag, node, value, k, batch, operator, right)


def _read_scan(
    dag: ir.Dag, node: ir.Node, value: ir.Node, k: ir.BoundVariable, batch: tuple, operator: str, end: ir.Node
) -> ir.Node:
    """The prefix sum of value(batch, k), from the other side for > and >=, read where the mask ends."""
    low, high = k.range.low, k.range.high

    def number(n: int) -> ir.Node:
        return dag.constant(n, "int")

    new = ir.BoundVariable(k.name, "int", ir.Range(low, high))
    place = dag.bound_variable(new)
    if operator in (">", ">="):
        (value,) = ir.substitute(dag, (value,), {k: dag.apply("-", "int", number(low + high - 1), place)})
        index = dag.apply("-", "int", number(low + high - 1 - (operator == ">")), end)
        nothing = dag.apply(">=", "bool", end, number(high - (operator == ">")))
    else:
        (value,) = ir.substitute(dag, (value,), {k: place})
        index = end if operator == "<=" else dag.apply("-", "int", end, number(1))
        nothing = dag.apply("<", "bool", end, number(low + (operator == "<")))
    variables = (*batch, new)
    type_ = FunctionType(Scalar(node.type), (INT,) * len(variables))
    scan = primitive(
        dag, "scan", tuple(v.range for v in variables), node.type, dag.function(variables, (value,), type_)
    )
    indices = (*map(dag.bound_variable, batch), index)
    bounds = index_bounds(index)
    if bounds is not None and low <= bounds[0] and bounds[1] < high:
        return dag.access(scan, indices, (None,) * len(indices))
    read = dag.access(scan, indices, (None,) * len(batch) + ("clamp",))
    zero = dag.constant(0.0 if node.type in ("float", "double") else 0, node.type)
    return dag.apply("select", node.type, nothing, zero, read)


def _reaches_all(operator: str, ends: tuple[int, int] | None, range_: ir.Range) -> bool:
    """Whether the mask `k operator end` holds for each k of a range at some end of the bounds."""
    if ends is None:
        return False
    (least, greatest), last = ends, range_.high - 1
    return {
        "<=": greatest >= last, "<": greatest > last, ">=": least <= range_.low, ">": least < range_.low
    }[operator]  # fmt: skip


def _may_run_anywhere(value: ir.Node) -> bool:
    """Whether a value has one where its mask is false, too: no index of it may leave a domain, no loop may not end."""
    for node in ir.topological_order([value], ir.inputs_outside_functions):
        if isinstance(node.attribute, ir.UserCall) or node.op == "reduce":
            return False
        if node.op == "apply" and isinstance(node.attribute, ir.Access):
            function = ir.without_lets(node.inputs[0]).attribute
            ranges = tuple(v.range for v in function) if isinstance(function, tuple) else function.ranges
            for index, range_, border in zip(node.inputs[1:], ranges, node.attribute.borders, strict=True):
                bounds = index_bounds(index)
                is_inside = (
                    bounds and isinstance(range_, ir.Range) and range_.low <= bounds[0] and bounds[1] < range_.high
                )
                if not (border or is_inside or range_ is ir.INFINITE):
                    return False
    return True


def _keyed(node: ir.Node) -> tuple[ir.Node, ir.Node, ir.Node, ir.Node] | None:
    """The two sides of `a == b ? value : other`, or of `a != b ? other : value`, the value, and the other one."""
    if node.op != "apply" or node.attribute != "select":
        return None
    condition, value, other = node.inputs
    if condition.op != "apply" or condition.attribute not in ("==", "!=") or condition.inputs[0].type != "int":
        return None
    left, right = condition.inputs
    return (left, right, value, other) if condition.attribute == "==" else (left, right, other, value)


def _scatter_of(dag: ir.Dag, node: ir.Node, remarks: list[str]) -> ir.Node | None:
    """`sum(k(j) == v ? w(j) : 0)` over j, or prod, max, min, as a scatter read at v, which has a finite range."""
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
    is_count = (
        name == "scatter_add" and value.is_constant and value.attribute.number == 1 and node.type in ("int", "uint")
    )
    bins = wanted.attribute.range
    what = "a histogram" if name == "scatter_add" else name
    remarks.append(
        f"{what} over `{wanted.attribute.name} : {bins}`: {WORDS[reduction.name]} of equal keys, "
        "O(n) in place of O(n^2)"
    )
    if not _may_run_anywhere(value):  # the value is looked at where its key is a bin, as in the text
        start = identity(name, node.type)
        neutral = dag.constant(float(start) if node.type in FLOATS else start, node.type)
        ends = (dag.constant(number, "int") for number in (bins.low, bins.high))
        inside = (dag.apply(sign, "bool", key, end) for sign, end in zip((">=", "<"), ends, strict=True))
        value = dag.apply("select", node.type, dag.apply("&&", "bool", *inside), value, neutral)
    bodies = (key,) if is_count else (key, value)
    functions = [dag.function(variables, (b,), FunctionType(Scalar(b.type), (INT,) * len(variables))) for b in bodies]
    found = dag.access(primitive(dag, name, (bins,), node.type, *functions), (wanted,), (None,))
    if not is_extremum:
        return found

    def whole(name: str, body: ir.Node) -> ir.Node:
        return dag.intern("reduce", body.type, (body,), (ir.Reduction(name), variables))

    # Where all elements have the key, `other` takes no part.
    first, last = (dag.apply("==", "bool", whole(end, key), wanted) for end in ("min", "max"))
    combined = dag.apply(reduction.name, node.type, found, other)
    only = dag.apply("&&", "bool", first, last)
    return dag.apply("select", node.type, only, whole(reduction.name, value), combined)
