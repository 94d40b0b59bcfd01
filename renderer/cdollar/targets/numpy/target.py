"""The target `numpy`: evaluates every node of a DAG in NumPy; the reference for the results of all other targets.

Nodes are evaluated over iteration spaces, one array axis per bound variable (spaces.py). Large spaces are evaluated box
by box, to bound the size of temporary arrays. Sums of products run as einsum. Poison, a bool array beside the values,
marks the points at which an index is out of bounds; it is an error only if the result depends on it.

Axes count from the last one: the axis 0 of an IterationSpace is the last axis of an array, so that inner spaces add
axes in front. `shape` is the shape of a box of reduced variables, the first axes of an array; `depth` is the number of
the axes after them, of the outer space; `full` are values broadcast to both.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.checker.arrays import EvaluatedArray, evaluated_array
from renderer.cdollar.checker.target import Target
from renderer.cdollar.checker.values import FunctionValue
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import affine
from renderer.cdollar.ir.contraction import contraction_factors, tested_ends
from renderer.cdollar.ir.operations import NEUTRAL_ELEMENTS, evaluate, kernel_argument, neutral_element
from renderer.cdollar.ir.passes import Pass, fuse, order_within_space, run_passes, simplify
from renderer.cdollar.ir.primitives import SCATTERS, identity, recognize
from renderer.cdollar.ir.types import DTYPES, FLOATS, Number, component_types
from renderer.cdollar.targets.numpy import primitives as numpy_primitives
from renderer.cdollar.targets.numpy import spaces
from renderer.cdollar.targets.numpy.simt import SimtInterpreter
from renderer.cdollar.targets.strict_order import BlockTree, adds_in_blocks
from renderer.errors import UnavailableError
from renderer.host import available_memory, format_bytes

PASSES = (simplify, recognize, fuse)
MAX_TEMPORARY_ELEMENTS = 1 << 22  # elements of a temporary array
# Elements of the box for each element between the tested ends, from which on reduce_ragged() computes only the latter.
MIN_RAGGED_SAVING = 8
MAX_EINSUM_AXES = 52  # np.einsum's letters
Shape = tuple[int, ...]
State = Any  # the state of a reduction between boxes: an array, one array per component, or a BlockTree
NodeValue = Any  # an array, or a list of one array per component
Evaluated = tuple[NodeValue, spaces.Poison | None]  # the poison marks points whose values are errors
COMBINERS = {
    "+": np.add, "*": np.multiply, "min": np.fmin, "max": np.fmax, "&&": np.logical_and, "||": np.logical_or,
}  # fmt: skip


class NumpyTarget(Target):
    """Evaluates nodes of one program; evaluated functions are cached by node."""

    name = "numpy"

    def __init__(self, dag: ir.Dag, passes: Sequence[Pass] = PASSES, strict: bool = False) -> None:
        """Evaluate nodes of `dag` after `passes`; `strict` reduces floats in the order of strict_order.py."""
        super().__init__()
        self.dag, self.passes, self.strict = dag, list(passes), strict
        if strict and recognize in self.passes:
            self.passes.remove(recognize)  # a prefix sum adds in another order than a sum
        self.optimized: WeakKeyDictionary[ir.Node, ir.Node | None] = WeakKeyDictionary()
        self.arrays: WeakKeyDictionary[ir.Node, list[np.ndarray]] = WeakKeyDictionary()

    # The interface of targets

    def evaluate_scalars(self, nodes: list[ir.Node]) -> list[Number]:
        """The numbers of nodes without free variables."""
        numbers = []
        for node in run_passes(self.dag, tuple(nodes), self.passes)[0]:
            value, poison = self.value(node, spaces.IterationSpace())
            spaces.raise_if_poisoned(poison, self.dag.spans)
            numbers.append(np.asarray(value).reshape(-1)[0].item())
        return numbers

    def materialize_all(self, functions: Sequence[FunctionValue]) -> list[FunctionValue]:
        """Evaluate functions over their domains; return them as arrays."""
        made = zip(functions, self.evaluate_all([function.node for function in functions]), strict=True)
        return [evaluated_array(self.dag, parts, tuple(f.domain), f.type, "array") for f, parts in made]

    def evaluate_all(self, nodes: Sequence[ir.Node]) -> list[list[np.ndarray]]:
        """The components of each functional node; what several nodes need is computed once."""
        nodes = [ir.without_lets(node) for node in nodes]
        if any(node not in self.optimized for node in nodes):
            for node, new in zip(nodes, run_passes(self.dag, tuple(nodes), self.passes)[0], strict=True):
                self.optimized[node] = None if new is node else new  # a value that holds its key would live forever
        return [self.function_components(self.optimized[node] or node) for node in nodes]

    # Functions over their domains

    def function_components(self, node: ir.Node) -> list[np.ndarray]:
        """The components of a functional node over its domain, cached."""
        node = ir.without_lets(node)
        if isinstance(node.attribute, ir.ArraySource):
            data: ir.ArrayData = node.attribute.data
            return data.read((slice(None),) * len(node.attribute.ranges))
        if node not in self.arrays:
            is_primitive = node.op == "primitive"
            self.arrays[node] = [self.primitive(node)] if is_primitive else self.materialize_function(node)
        return self.arrays[node]

    def primitive(self, node: ir.Node) -> np.ndarray:
        """The elements of a primitive."""
        (result,), ranges = component_types(node.type.result), node.attribute.ranges
        check_memory(tuple(r.size for r in ranges), (result,), "an array")
        inputs = [np.asarray(self.function_components(child)[0]) for child in node.inputs]
        name = node.attribute.name
        if name in SCATTERS.values():
            values, start = inputs[1] if len(inputs) > 1 else None, DTYPES[result](identity(name, result))
            return numpy_primitives.scatter(name, inputs[0], values, ranges[0].low, ranges[0].size, start)
        functions = {"scan": numpy_primitives.scan, "sort": numpy_primitives.sort, "argsort": numpy_primitives.argsort}
        return functions[name](inputs[0])

    def materialize_function(self, node: ir.Node) -> list[np.ndarray]:
        """The components of a function of bound variables at every point of its domain, computed box by box."""
        variables = node.attribute
        sizes = tuple(v.range.size for v in variables)
        check_memory(sizes, component_types(node.type.result), "an array")
        arrays = [np.empty(sizes, DTYPES[body.type]) for body in node.inputs]
        if 0 in sizes:
            return arrays
        temporaries = max(temporary_factor(body, frozenset(variables)) for body in node.inputs)
        for box in spaces.split_box([v.range for v in variables], max(1, MAX_TEMPORARY_ELEMENTS // temporaries)):
            space = spaces.IterationSpace().inner(variables, box)
            pairs = zip(box, variables, strict=True)
            target = tuple(slice(r.low - v.range.low, r.high - v.range.low) for r, v in pairs)
            for array, body in zip(arrays, node.inputs, strict=True):
                value, poison = self.value(body, space)
                spaces.raise_if_poisoned(poison, self.dag.spans)
                array[target] = value
        return arrays

    # Nodes

    def value(self, root: ir.Node, space: spaces.IterationSpace) -> Evaluated:
        """The values of a node, which broadcast over the space, and their poison."""
        result = space.hoist_target(root).memo.get(id(root))
        if result is not None:
            return result
        for node in order_within_space(root, space.memo):
            target = space.hoist_target(node)
            if id(node) not in target.memo:
                target.memo[id(node)] = self.compute(node, target)
        return space.hoist_target(root).memo[id(root)]

    def compute(self, node: ir.Node, space: spaces.IterationSpace) -> Evaluated:
        """The values of a node whose inputs are evaluated."""
        if node.op == "scalar":
            return np.asarray(kernel_argument(node.attribute.number, node.type)).astype(DTYPES[node.type]), None
        if node.op == "variable":
            return variable_values(node, space), None
        if node.op == "let":
            return self.value(node.inputs[0], space)
        if node.op == "reduce":
            return self.reduce(node, space)
        if isinstance(node.attribute, ir.Component):
            components, poison = self.value(node.inputs[0], space)
            return components[node.attribute.index], poison
        if isinstance(node.attribute, ir.Access):
            return self.access(node, space)
        operands = [self.value(child, space) for child in node.inputs]
        values = [value for value, _ in operands]
        if isinstance(node.attribute, ir.RangeCheck):
            poisons = [poison for _, poison in operands]
            return np.asarray(True), spaces.merge_poison([spaces.range_poison(node, *values), *poisons])
        with np.errstate(all="ignore"):
            if isinstance(node.attribute, ir.UserCall):
                called = SimtInterpreter(node.attribute.function)
                result = as_node_value(node, called.call(values))
                return result, spaces.merge_poison([*(poison for _, poison in operands), called.failure])
            return evaluate(node.attribute, node.type, values), spaces.propagate_poison(node.attribute, operands)

    # Functions at indices

    def access(self, node: ir.Node, space: spaces.IterationSpace) -> Evaluated:
        """The values of a function at indices: slices of its array if possible, else elements gathered one by one."""
        function, indices = ir.without_lets(node.inputs[0]), node.inputs[1:]
        ranges = ir.domain_ranges(function)
        if not all(isinstance(range_, ir.Range) for range_ in ranges):
            return self.inlined(node, function, space)
        is_array = isinstance(function.attribute, ir.ArraySource)
        data: ir.ArrayData = function.attribute.data if is_array else EvaluatedArray(self.function_components(function))
        slices = access_slices(indices, ranges, space)
        if slices is None:
            return self.gathered(node, ranges, data, space)
        box, order, shape = slices
        return as_node_value(node, [np.transpose(a, order).reshape(shape) for a in data.read(box)]), None

    def inlined(self, node: ir.Node, function: ir.Node, space: spaces.IterationSpace) -> Evaluated:
        """The values at indices of a function with an infinite domain: its body, with its variables bound to them."""
        operands = [self.value(child, space) for child in node.inputs[1:]]
        values = space.values | dict(zip(function.attribute, (v for v, _ in operands), strict=True))
        inner = spaces.IterationSpace(space.axes, space.ranges, values)
        results = [self.value(body, inner) for body in function.inputs]
        poison = spaces.merge_poison([p for _, p in operands] + [p for _, p in results])
        return as_node_value(node, [v for v, _ in results]), poison

    def gathered(self, node: ir.Node, ranges: ir.Ranges, data: ir.ArrayData, space: spaces.IterationSpace) -> Evaluated:
        """An array's elements at any indices, by border modes; poison where an index without mode is out of bounds."""
        operands = [self.value(index, space) for index in node.inputs[1:]]
        poisons = [poison for _, poison in operands]
        positions: list[np.ndarray] = []
        zero = None  # where border mode `zero` applies
        for (value, _), range_, border in zip(operands, ranges, node.attribute.borders, strict=True):
            position = np.asarray(value).astype(np.int64) - range_.low
            outside = (position < 0) | (position >= range_.size)
            if border is None and np.any(outside):
                first = int(position[outside][0]) if position.ndim else int(position)
                poisons.append(spaces.Poison(outside, node, f"{first + range_.low} where {range_} is allowed"))
            elif border == "zero":
                zero = outside if zero is None else zero | outside
            positions.append(apply_border(position, range_.size, border))
        elements = tuple(np.broadcast_arrays(*positions))
        if all(r.size for r in ranges):
            components = data.read(elements)
        else:
            types = component_types(node.inputs[0].type.result)
            components = [np.zeros(elements[0].shape, DTYPES[t]) for t in types]
        if zero is not None:
            components = [np.where(zero, c.dtype.type(0), c) for c in components]
        return as_node_value(node, list(components)), spaces.merge_poison(poisons)

    # Reductions

    def reduce(self, node: ir.Node, space: spaces.IterationSpace) -> Evaluated:
        """The value of a reduction at all points of a space."""
        reduction, variables = node.attribute
        ranges = tuple(v.range for v in variables)
        if any(r.size == 0 for r in ranges):
            return self.reduce_empty(node, reduction), None
        factors = contraction_factors(node)
        if factors is not None and len(space.axes) and not self.strict:
            contracted = self.contract(node, factors, space)
            if contracted is not None:
                return contracted
        if not self.strict and (ragged := self.reduce_ragged(node, space)) is not None:
            return ragged
        axes = frozenset(variables) | frozenset(space.axes)
        temporaries = max(1, *(temporary_factor(child, axes) for child in node.inputs))  # elements for each point
        outer = 1  # points of the outer space with a value of the reduction each
        for variable in node.free_variables:
            if variable in space.axes:
                outer *= space.ranges[variable].size
            elif variable in space.values:
                outer = max(outer, np.asarray(space.values[variable]).size)
        state, poisons = None, []
        for box in spaces.split_box(list(ranges), max(1, MAX_TEMPORARY_ELEMENTS // (outer * temporaries))):
            inner = space.inner(variables, box)
            operands = [self.value(child, inner) for child in node.inputs]
            shape = tuple(r.size for r in box)
            state = self.combine_box(node, state, [v for v, _ in operands], shape, len(space.axes))
            for _, poison in operands:
                if poison is not None:
                    full = np.broadcast_shapes(poison.where.shape, shape + (1,) * len(space.axes))
                    where = np.asarray(np.broadcast_to(poison.where, full).any(axis=tuple(range(len(shape)))))
                    poisons.append(spaces.Poison(where, poison.node, poison.index))
        return self.result(node, state), spaces.merge_poison(poisons)

    def reduce_ragged(self, node: ir.Node, space: spaces.IterationSpace) -> Evaluated | None:
        """The value of a reduction over a range whose ends are tested (ir/contraction.py), as `j : p(i)..p(i + 1)`.

        A row is a point of the outer space, i; its range is low..high. The elements of all rows are computed one after
        another along one axis, as in a sparse matrix in CSR format, and reduced with ufunc.reduceat. None for other
        reductions, and where the ends leave out too little: slices are computed faster than points.
        """
        (reduction, (variable, *others)), tested = node.attribute, tested_ends(node)
        shape = space.broadcast_shape([space.axes[v] for v in node.free_variables & space.axes.keys()])
        if others or not tested.ends or not shape or 0 in shape or not node.free_variables <= space.axes.keys():
            return None
        lows, highs = ([self.value(end, space)[0] for end in tested.ends[variable][sign]] for sign in (">=", "<"))
        low, high = reduce(np.maximum, lows, variable.range.low), reduce(np.minimum, highs, variable.range.high)
        low, high = (np.broadcast_to(end, shape).ravel().astype(np.int64) for end in (low, high))
        stops = np.cumsum(np.maximum(high - low, 0))
        total = int(stops[-1])  # row r ends before point stops[r]
        shift = np.maximum(low, high) - stops  # point p of row r is the element p + shift[r] of the range
        if total * MIN_RAGGED_SAVING > stops.size * variable.range.size:
            return None
        combiner, is_float = COMBINERS[reduction.name], reduction.name in ("+", "*") and node.type in FLOATS
        dtype = np.float64 if is_float else DTYPES[node.type]
        state: np.ndarray = np.full(stops.size, neutral_element(reduction.name, node.type), dtype)
        poisons, closed = [self.value(check, space)[1] for check in tested.checks], spaces.IterationSpace()
        for first in range(0, total, MAX_TEMPORARY_ELEMENTS):
            points = np.arange(first, min(first + MAX_TEMPORARY_ELEMENTS, total))
            rows = np.searchsorted(stops, points, side="right")
            row_indices = np.unravel_index(rows, shape)
            values = {v: row_indices[-1 - space.axes[v]] + space.ranges[v].low for v in node.free_variables}
            values[variable] = points + shift[rows]
            values = {v: n.astype(DTYPES[v.type]) for v, n in values.items()}
            value, poison = self.value(node.inputs[0], spaces.IterationSpace({}, {}, values, closed))
            starts = np.flatnonzero(np.diff(rows, prepend=-1))  # the first point of each row
            present = rows[starts]
            with np.errstate(all="ignore"):
                parts = combiner.reduceat(np.broadcast_to(value, points.shape), starts, dtype=dtype)
                state[present] = combiner(state[present], parts)
            if poison is not None:
                where = np.zeros(stops.size, bool)
                where[present] = np.logical_or.reduceat(np.broadcast_to(poison.where, points.shape), starts)
                poisons.append(spaces.Poison(where.reshape(shape), poison.node, poison.index))
        return self.result(node, state.reshape(shape)), spaces.merge_poison(poisons)

    def reduce_empty(self, node: ir.Node, reduction: ir.Reduction) -> NodeValue:
        """The value of a reduction over an empty domain: the start value of a fold, or the neutral element."""
        check_not_empty(node, self.dag.spans)
        if reduction.is_fold:
            starts = node.inputs[: len(ir.scalar_types(node))]
            return as_node_value(node, [self.value(child, spaces.IterationSpace())[0] for child in starts])
        return np.asarray(NEUTRAL_ELEMENTS[reduction.name]).astype(DTYPES[node.type])

    def combine_box(self, node: ir.Node, state: State, values: list[np.ndarray], shape: Shape, depth: int) -> State:
        """The state after one more box of the reduced variables, which are the first axes of the values."""
        full = [np.broadcast_to(v, np.broadcast_shapes(np.shape(v), shape + (1,) * depth)) for v in values]
        reduction, axes = node.attribute[0], tuple(range(len(shape)))
        if reduction.is_arg_extremum:
            return arg_extremum(reduction.name, state, full, len(shape))
        if reduction.function is not None:
            called = SimtInterpreter(reduction.function)
            state = reduce_by_function(node, called, state, full, len(shape), self.strict)
            spaces.raise_if_poisoned(called.failure, self.dag.spans)
            return state
        combiner = COMBINERS[reduction.name]
        if adds_in_blocks(reduction, node.type, self.strict):
            if state is None:
                length = math.prod(v.range.size for v in node.attribute[1])
                state = BlockTree(combiner, NEUTRAL_ELEMENTS[reduction.name], DTYPES[node.type], length)
            with np.errstate(all="ignore"):
                state.push(full[0].reshape((-1, *full[0].shape[len(shape) :])))
            return state
        is_float_sum = reduction.name in ("+", "*") and node.type in ("float", "double")
        with np.errstate(all="ignore"):
            value = combiner.reduce(full[0], axis=axes, dtype=np.float64 if is_float_sum else full[0].dtype)
            return value if state is None else combiner(state, value)

    def result(self, node: ir.Node, state: State) -> NodeValue:
        """The value of a reduction from its state after the last box."""
        reduction = node.attribute[0]
        if reduction.is_arg_extremum:
            return as_node_value(node, [np.asarray(index).astype(np.int32) for index in state[1:]])
        if reduction.function is not None:
            return as_node_value(node, state)
        with np.errstate(all="ignore"):
            total = state.value() if isinstance(state, BlockTree) else state
            return np.asarray(total).astype(DTYPES[node.type])

    def contract(self, node: ir.Node, factors: list[ir.Node], space: spaces.IterationSpace) -> Evaluated | None:
        """A sum of products as one einsum in double precision; None if it has too many axes or poisoned factors."""
        variables = node.attribute[1]
        inner = space.inner(variables, tuple(v.range for v in variables))
        if len(inner.axes) > MAX_EINSUM_AXES or space.values:
            return None
        arguments: list[Any] = []  # each factor and its axes
        used: set[int] = set()
        for factor in factors:
            value, poison = self.value(factor, inner)
            if poison is not None:
                return None
            axes = sorted((inner.axes[v] for v in factor.free_variables), reverse=True)
            dimensions = [np.ndim(value) - 1 - axis for axis in axes]
            array = np.reshape(value, tuple(np.shape(value)[d] if d >= 0 else 1 for d in dimensions))
            array = np.broadcast_to(array, [inner.sizes[axis] for axis in axes])
            arguments += [array.astype(np.float64), axes]
            used |= set(axes)
        out = sorted(used & set(space.axes.values()), reverse=True)
        repeats = math.prod(v.range.size for v in variables if inner.axes[v] not in used)
        product = np.einsum(*arguments, out, optimize="greedy")
        with np.errstate(all="ignore"):
            return (product * repeats).reshape(space.broadcast_shape(out)).astype(DTYPES[node.type]), None


def variable_values(node: ir.Node, space: spaces.IterationSpace) -> np.ndarray:
    """The values of a bound variable along its axis."""
    variable = node.attribute
    if variable in space.values:
        return space.values[variable]
    range_ = space.ranges[variable]
    values: np.ndarray = np.arange(range_.low, range_.high, dtype=np.int64).astype(DTYPES[node.type])
    return values.reshape((-1,) + (1,) * space.axes[variable])


def access_slices(
    indices: ir.Nodes, ranges: ir.Ranges, space: spaces.IterationSpace
) -> tuple[tuple[int | slice, ...], list[int], tuple[int, ...]] | None:
    """NumPy slices, axis order and shape of an access; None unless each index runs along another axis, in bounds."""
    box: list[int | slice] = []
    axes: list[int] = []
    for index, range_ in zip(indices, ranges, strict=True):
        form = affine(index)
        if form is None or len(form.terms) > 1 or any(v not in space.axes or v in space.values for v, _ in form.terms):
            return None
        if not form.terms:
            if not range_.low <= form.constant < range_.high:
                return None
            box.append(form.constant - range_.low)
            continue
        variable, coefficient = form.terms[0]
        axis, extent = space.axes[variable], space.ranges[variable]
        first = coefficient * extent.low + form.constant
        last = coefficient * (extent.high - 1) + form.constant
        in_bounds = min(first, last) >= range_.low and max(first, last) < range_.high
        if extent.size == 0 or not in_bounds or axis in axes:
            return None
        stop = last - range_.low + (1 if coefficient > 0 else -1)
        box.append(slice(first - range_.low, stop if stop >= 0 else None, coefficient))
        axes.append(axis)
    order = sorted(range(len(axes)), key=lambda k: -axes[k])
    return tuple(box), order, space.broadcast_shape(axes)


def apply_border(position: np.ndarray, size: int, border: str | None) -> np.ndarray:
    """Positions in 0..size by a border mode; without one, and for `zero`, they are clamped."""
    if size == 0:
        return np.zeros_like(position)
    if border == "wrap":
        return position % size
    if border == "mirror":
        around = position % (2 * size)
        return np.where(around < size, around, 2 * size - 1 - around)
    return np.asarray(np.clip(position, 0, size - 1))


def arg_extremum(name: str, state: list[np.ndarray] | None, full: list[np.ndarray], axes: int) -> list[np.ndarray]:
    """The extremum of `state` and of a box, with its indices; of equal values the first wins, NaN never does.

    `full` holds the values and their indices; the first `axes` axes are reduced.
    """
    values = full[0].reshape((-1,) + full[0].shape[axes:])
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.inf if name == "argmin" else -np.inf, values)
    position = (np.argmin if name == "argmin" else np.argmax)(values, axis=0)[None]
    extremum = [np.take_along_axis(values, position, axis=0)[0]]
    shape = full[0].shape[:axes]
    extremum += [index.reshape(shape)[np.unravel_index(position[0], shape)] for index in full[1:]]
    if state is None:
        return extremum
    is_new = extremum[0] < state[0] if name == "argmin" else extremum[0] > state[0]
    return [np.where(is_new, new, old) for new, old in zip(extremum, state, strict=True)]


def reduce_by_function(
    node: ir.Node,
    combiner: SimtInterpreter,
    state: list[np.ndarray] | None,
    full: list[np.ndarray],
    axes: int,
    strict: bool,
) -> list[np.ndarray]:
    """Combine the elements by a device function in row-major order; as a tree if it is associative, unless `strict`.

    `full` holds the start values of a fold, then the elements; the first `axes` axes are reduced. `state` is the result
    of the boxes before, None for the first box: then a fold begins with its start values, others with element 0.
    """
    reduction = node.attribute[0]
    starts = len(ir.scalar_types(node)) if reduction.is_fold else 0
    elements = full[starts:]
    outer = np.broadcast_shapes(*(e.shape[axes:] for e in full))
    flat = [np.broadcast_to(e, e.shape[:axes] + outer).reshape((-1,) + outer) for e in elements]
    if not reduction.ordered and not strict:
        combined = tree_reduce(combiner, flat)
        return combined if state is None else combiner.call([*state, *combined])
    first = 0
    if state is None and starts:
        state = [np.broadcast_to(s, s.shape[:axes] + outer)[(0,) * axes] for s in full[:starts]]
    elif state is None:
        state, first = [f[0] for f in flat], 1
    for row in range(first, flat[0].shape[0]):
        state = combiner.call([*state, *(f[row] for f in flat)])
    return state


def tree_reduce(combiner: SimtInterpreter, components: list[np.ndarray]) -> list[np.ndarray]:
    """Combine neighbors along the first axis by an associative function, in log2(n) rounds."""
    while components[0].shape[0] > 1:
        count = components[0].shape[0]
        even = count - count % 2
        combined = combiner.call([c[0:even:2] for c in components] + [c[1:even:2] for c in components])
        if count % 2:
            combined = [np.concatenate([new, c[-1:]]) for new, c in zip(combined, components, strict=True)]
        components = combined
    return [c[0] for c in components]


def as_node_value(node: ir.Node, components: list[np.ndarray]) -> NodeValue:
    """The components as the value of a node: one component stands for itself."""
    return components if isinstance(node.type, tuple) else components[0]


def temporary_factor(body: ir.Node, outer: ir.VariableSet) -> int:
    """The temporary elements that the reductions under a node need per point of the space of `outer`."""
    factor = 1
    for node in ir.topological_order([body], lambda node: node.inputs if node.free_variables & outer else ()):
        is_dense = node.op == "reduce" and node.free_variables & outer and contraction_factors(node) is None
        if is_dense and not tested_ends(node).has_data_ends:
            size = math.prod(max(1, variable.range.size) for variable in node.attribute[1])
            factor = max(factor, min(size, MAX_TEMPORARY_ELEMENTS))
    return factor


def check_not_empty(node: ir.Node, spans: WeakKeyDictionary[ir.Node, Span]) -> None:
    """Raise the program's error if a reduction without a neutral element has an empty domain."""
    reduction, variables = node.attribute
    if reduction.name not in ("fold", *NEUTRAL_ELEMENTS) and any(v.range.size == 0 for v in variables):
        raise ProgramError("CS0318", spans[node], f"`{reduction.name}` over an empty domain has no value")


def check_memory(sizes: tuple[int, ...], types: tuple[str, ...], name: str, limit: int | None = None) -> None:
    """Raise UnavailableError for an array of more than 3/4 of `limit` bytes, by default of the host's free memory."""
    needed = math.prod(sizes) * sum(np.dtype(DTYPES[type_]).itemsize for type_ in types)
    free = available_memory() if limit is None else limit
    if needed > free * 3 // 4:
        shape = " x ".join(map(str, sizes))
        available = f"{format_bytes(free)} of memory are free"
        raise UnavailableError(f"{name} of {shape} elements needs {format_bytes(needed)}, but {available}")
