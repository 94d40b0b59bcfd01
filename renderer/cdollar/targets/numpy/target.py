"""The target `numpy`: evaluates every node of a DAG in NumPy; the reference for the results of all other targets.

Nodes are evaluated over iteration spaces, one array axis per bound variable (spaces.py). Large spaces are evaluated box
by box, to bound the size of temporary arrays. Sums of products run as einsum, other reductions by reductions.py.
Poison, a bool array beside the values, marks the points at which an index is out of bounds; it is an error only if the
result depends on it.

Axes count from the last one: the axis 0 of an IterationSpace is the last axis of an array, so that inner spaces add
axes in front. A node is evaluated once in the outermost space that binds its variables (hoist_target), whose `memo`
keeps its value. A "let" node is a name for its input; without_lets() is the node that is named.
"""

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.checker.arrays import EvaluatedArray, evaluated_array
from renderer.cdollar.checker.target import Target
from renderer.cdollar.checker.values import FunctionValue
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import affine
from renderer.cdollar.ir.contraction import contraction_factors, tested_ends
from renderer.cdollar.ir.operations import NEUTRAL_ELEMENTS, evaluate, kernel_argument, neutral_element
from renderer.cdollar.ir.passes import Pass, fuse, order_within_space, run_passes, simplify
from renderer.cdollar.ir.primitives import SCATTERS, identity, recognize
from renderer.cdollar.ir.types import DTYPES, Number, component_types
from renderer.cdollar.targets.numpy import primitives as numpy_primitives
from renderer.cdollar.targets.numpy import spaces
from renderer.cdollar.targets.numpy.reductions import COMBINERS, Reducer, as_node_value, check_not_empty, sum_dtype
from renderer.cdollar.targets.numpy.simt import SimtInterpreter
from renderer.cdollar.targets.numpy.spaces import Evaluated, NodeValue
from renderer.errors import UnavailableError
from renderer.host import available_memory, format_bytes

PASSES = (simplify, recognize, fuse)
MAX_TEMPORARY_ELEMENTS = 1 << 22  # elements of a temporary array
# Elements of the box for each element between the tested ends, from which on reduce_ragged() computes only the latter.
MIN_RAGGED_SAVING = 8
MAX_EINSUM_AXES = 52  # np.einsum's letters


class NumpyTarget(Target):
    """Evaluates nodes of one program; evaluated functions are cached by node."""

    name = "numpy"

    def __init__(self, dag: ir.Dag, passes: Sequence[Pass] = PASSES, strict: bool = False) -> None:
        """Evaluate nodes of `dag` after `passes`; `strict` reduces floats in the order of strict_order.py."""
        super().__init__()
        self.dag, self.passes, self.strict = dag, list(passes), strict
        if strict and recognize in self.passes:
            self.passes.remove(recognize)  # a prefix sum adds in another order than a sum
        # Functional nodes after the passes; None for a node that they leave as it is, since a value that is its own key
        # would live forever.
        self.optimized: WeakKeyDictionary[ir.Node, ir.Node | None] = WeakKeyDictionary()
        self.arrays: WeakKeyDictionary[ir.Node, list[np.ndarray]] = WeakKeyDictionary()  # evaluated functional nodes

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
                self.optimized[node] = None if new is node else new
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
        if name in SCATTERS.values():  # inputs: the keys, and the values unless the scatter counts
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
        if not all(isinstance(range_, ir.Range) for range_ in ranges):  # an infinite domain
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
        if not self.strict:
            # contract() holds whole factors in memory; a sum without an outer space needs only a box of them at a time.
            product = self.contract(node, factors, space) if factors is not None and space.axes else None
            found = product or self.reduce_ragged(node, space)
            if found is not None:
                return found
        axes = frozenset(variables) | frozenset(space.axes)
        temporaries = max(1, *(temporary_factor(child, axes) for child in node.inputs))  # elements for each point
        outer = 1  # points of the outer space with a value of the reduction each
        for variable in node.free_variables:
            if variable in space.axes:
                outer *= space.ranges[variable].size
            elif variable in space.values:
                outer = max(outer, np.asarray(space.values[variable]).size)
        reducer, poisons, depth = Reducer(node, self.dag.spans, self.strict), list[spaces.Poison](), len(space.axes)
        for box in spaces.split_box(list(ranges), max(1, MAX_TEMPORARY_ELEMENTS // (outer * temporaries))):
            inner = space.inner(variables, box)
            operands = [self.value(child, inner) for child in node.inputs]
            shape = tuple(r.size for r in box)
            reducer.add([v for v, _ in operands], shape, depth)
            poisons += [poison.over_outer_space(shape, depth) for _, poison in operands if poison is not None]
        return reducer.value(), spaces.merge_poison(poisons)

    def reduce_ragged(self, node: ir.Node, space: spaces.IterationSpace) -> Evaluated | None:
        """The value of a reduction over a range whose ends are tested (ir/contraction.py), as `j : p(i)..p(i + 1)`.

        A row is a point of the outer space, i; its range is low..high. The elements of all rows are computed one after
        another along one axis, as in a sparse matrix in CSR format, and reduced with ufunc.reduceat. Rows 5..7, 2..2
        and 4..7 have the points 0 1 | | 2 3 4, which are the elements 5 6 | | 4 5 6. None for other reductions, and
        where the ends leave out too little: slices are computed faster than points.
        """
        (reduction, (variable, *others)), tested = node.attribute, tested_ends(node)
        shape = space.broadcast_shape([space.axes[v] for v in node.free_variables & space.axes.keys()])
        if others or not tested.ends or not shape or 0 in shape or not node.free_variables <= space.axes.keys():
            return None
        lows = [self.value(end, space)[0] for end in tested.ends[variable][">="]]
        highs = [self.value(end, space)[0] for end in tested.ends[variable]["<"]]
        low, high = reduce(np.maximum, lows, variable.range.low), reduce(np.minimum, highs, variable.range.high)
        low, high = (np.broadcast_to(end, shape).ravel().astype(np.int64) for end in (low, high))
        stops = np.cumsum(np.maximum(high - low, 0))  # row r ends before point stops[r]
        total = int(stops[-1])
        shift = np.maximum(low, high) - stops  # point p of row r is the element p + shift[r] of the range
        if total * MIN_RAGGED_SAVING > stops.size * variable.range.size:
            return None
        combiner, dtype = COMBINERS[reduction.name], sum_dtype(node)
        state: np.ndarray = np.full(stops.size, neutral_element(reduction.name, node.type), dtype)
        # A failed check of the ends is an error even if no element is visited. `closed` is outside of all variables.
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
                totals = combiner.reduceat(np.broadcast_to(value, points.shape), starts, dtype=dtype)
                state[present] = combiner(state[present], totals)
            if poison is not None:
                where = np.zeros(stops.size, bool)
                where[present] = np.logical_or.reduceat(np.broadcast_to(poison.where, points.shape), starts)
                poisons.append(spaces.Poison(where.reshape(shape), poison.node, poison.index))
        with np.errstate(all="ignore"):
            return state.reshape(shape).astype(DTYPES[node.type]), spaces.merge_poison(poisons)

    def reduce_empty(self, node: ir.Node, reduction: ir.Reduction) -> NodeValue:
        """The value of a reduction over an empty domain: the start value of a fold, or the neutral element."""
        check_not_empty(node, self.dag.spans)
        if reduction.is_fold:
            starts = node.inputs[: len(ir.scalar_types(node))]
            return as_node_value(node, [self.value(child, spaces.IterationSpace())[0] for child in starts])
        return np.asarray(NEUTRAL_ELEMENTS[reduction.name]).astype(DTYPES[node.type])

    def contract(self, node: ir.Node, factors: list[ir.Node], space: spaces.IterationSpace) -> Evaluated | None:
        """A sum of products as one einsum in double precision; None if it has too many axes or poisoned factors."""
        variables = node.attribute[1]
        inner = space.inner(variables, tuple(v.range for v in variables))
        if len(inner.axes) > MAX_EINSUM_AXES or space.values:
            return None
        arguments: list[np.ndarray | list[int]] = []  # of einsum: each factor, then its axes
        used: set[int] = set()  # axes of any factor
        for factor in factors:
            value, poison = self.value(factor, inner)
            if poison is not None:
                return None
            axes = sorted((inner.axes[v] for v in factor.free_variables), reverse=True)
            # Only these axes: the others have extent 1. An axis in front of the array's first one is added.
            dimensions = [np.ndim(value) - 1 - axis for axis in axes]
            array = np.reshape(value, tuple(np.shape(value)[d] if d >= 0 else 1 for d in dimensions))
            array = np.broadcast_to(array, [inner.sizes[axis] for axis in axes])
            arguments += [array.astype(np.float64), axes]
            used |= set(axes)
        out = sorted(used & set(space.axes.values()), reverse=True)
        # The sum over a variable that no factor depends on adds equal products.
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
    """NumPy slices, axis order and shape of an access; None unless each index runs along another axis, in bounds.

    An index is a constant, or coefficient * variable + constant. The array at the slices, with its axes in that order
    (the outermost variable first) and of that shape, broadcasts over the space.
    """
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
        stop = last - range_.low + (1 if coefficient > 0 else -1)  # -1: the slice ends at element 0, which None says
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


def temporary_factor(body: ir.Node, outer: ir.VariableSet) -> int:
    """The temporary elements that the reductions under a node need per point of the space of `outer`."""
    factor = 1
    for node in ir.topological_order([body], lambda node: node.inputs if node.free_variables & outer else ()):
        is_dense = node.op == "reduce" and node.free_variables & outer and contraction_factors(node) is None
        if is_dense and not tested_ends(node).has_data_ends:
            size = math.prod(max(1, variable.range.size) for variable in node.attribute[1])
            factor = max(factor, min(size, MAX_TEMPORARY_ELEMENTS))
    return factor


def array_bytes(sizes: Iterable[int], types: tuple[str, ...]) -> int:
    """The bytes of an array whose components have the scalar types `types`."""
    return math.prod(sizes) * sum(np.dtype(DTYPES[type_]).itemsize for type_ in types)


def check_memory(sizes: tuple[int, ...], types: tuple[str, ...], name: str, limit: int | None = None) -> None:
    """Raise UnavailableError for an array of more than 3/4 of `limit` bytes, by default of the host's free memory."""
    needed = array_bytes(sizes, types)
    free = available_memory() if limit is None else limit
    if needed > free * 3 // 4:
        shape = " x ".join(map(str, sizes))
        available = f"{format_bytes(free)} of memory are free"
        raise UnavailableError(f"{name} of {shape} elements needs {format_bytes(needed)}, but {available}")
