"""The target `numpy`: the meaning of every node in NumPy, the reference that all targets are compared with.

Nodes are evaluated over iteration spaces, one array axis per bound variable. Large spaces are evaluated box by box, to
bound the size of temporaries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.checker.arrays import EvaluatedArray, evaluated_array
from renderer.cdollar.checker.values import FunctionValue
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import affine
from renderer.cdollar.ir.operations import argument_of, evaluate
from renderer.cdollar.ir.passes import fuse, run_passes, simplify
from renderer.cdollar.ir.primitives import SCATTERS, identity, recognize
from renderer.cdollar.ir.types import DTYPES, component_types
from renderer.cdollar.targets import numpy_primitives
from renderer.cdollar.targets.iteration_space import IterationSpace, order_within_space, split_box
from renderer.cdollar.targets.memory import check_memory
from renderer.cdollar.targets.numpy_reductions import (
    MAX_TEMPORARY_ELEMENTS,
    Evaluated,
    NumpyReductions,
    as_node_value,
    temporary_factor,
)
from renderer.cdollar.targets.numpy_simt import SimtInterpreter
from renderer.cdollar.targets.poison import Poison, merge_poison, propagate_poison, raise_if_poisoned

PASSES = (simplify, recognize, fuse)


class NumpyTarget(NumpyReductions):
    """Evaluates nodes of one program; evaluated functions are cached by node."""

    name = "numpy"

    def __init__(self, dag: ir.Dag, passes: Sequence[Callable] = PASSES, strict: bool = False) -> None:
        """Evaluate nodes of `dag`, after passes over it."""
        super().__init__()
        self.dag, self.passes, self.strict = dag, list(passes), strict
        if strict and recognize in self.passes:
            self.passes.remove(recognize)  # a prefix sum adds in another order than a sum
        self.optimized: WeakKeyDictionary[ir.Node, ir.Node | None] = WeakKeyDictionary()
        self.arrays: WeakKeyDictionary[ir.Node, list[np.ndarray]] = WeakKeyDictionary()

    # The interface of targets

    def evaluate_scalars(self, nodes: list[ir.Node]) -> list:
        """The numbers of nodes without free variables."""
        numbers = []
        for node in run_passes(self.dag, tuple(nodes), self.passes)[0]:
            value, poison = self.value(node, IterationSpace())
            raise_if_poisoned(poison, self.dag.spans)
            numbers.append(np.asarray(value).reshape(-1)[0].item())
        return numbers

    def materialize(self, function: FunctionValue) -> FunctionValue:
        """A function evaluated over its domain, as an array."""
        components = self.evaluate(function.node)
        return evaluated_array(self.dag, components, tuple(function.domain), function.type, "array")

    def evaluate(self, node: ir.Node) -> list[np.ndarray]:
        """The components of a functional node over its domain, one array each."""
        node = ir.without_lets(node)
        if node not in self.optimized:
            new = run_passes(self.dag, (node,), self.passes)[0][0]
            self.optimized[node] = None if new is node else new  # a value that holds its key would live forever
        return self.components_of(self.optimized[node] or node)

    # Functions over their whole domain

    def components_of(self, node: ir.Node) -> list[np.ndarray]:
        """The components of a functional node over its domain, cached."""
        node = ir.without_lets(node)
        if isinstance(node.attribute, ir.ArraySource):
            return node.attribute.data.read((slice(None),) * len(node.attribute.ranges))
        if node not in self.arrays:
            is_primitive = node.op == "primitive"
            self.arrays[node] = [self.primitive(node)] if is_primitive else self.materialize_function(node)
        return self.arrays[node]

    def primitive(self, node: ir.Node) -> np.ndarray:
        """The array of a primitive."""
        (result,), ranges = component_types(node.type.result), node.attribute.ranges
        check_memory(tuple(r.size for r in ranges), (result,), "an array")
        inputs = [np.asarray(self.components_of(child)[0]) for child in node.inputs]
        name = node.attribute.name
        if name in SCATTERS.values():
            values, start = inputs[1] if len(inputs) > 1 else None, DTYPES[result](identity(name, result))
            return numpy_primitives.scatter(name, inputs[0], values, ranges[0].low, ranges[0].size, start)
        return getattr(numpy_primitives, node.attribute.name)(inputs[0])

    def materialize_function(self, node: ir.Node) -> list[np.ndarray]:
        """A function of bound variables at every point of its domain, box by box."""
        variables = node.attribute
        sizes = tuple(v.range.size for v in variables)
        check_memory(sizes, component_types(node.type.result), "an array")
        arrays = [np.empty(sizes, DTYPES[body.type]) for body in node.inputs]
        if 0 in sizes:
            return arrays
        temporaries = max(temporary_factor(body, frozenset(variables)) for body in node.inputs)
        for box in split_box([v.range for v in variables], max(1, MAX_TEMPORARY_ELEMENTS // temporaries)):
            space = IterationSpace().inner(variables, box)
            target = tuple(
                slice(r.low - v.range.low, r.high - v.range.low) for r, v in zip(box, variables, strict=True)
            )
            for array, body in zip(arrays, node.inputs, strict=True):
                value, poison = self.value(body, space)
                raise_if_poisoned(poison, self.dag.spans)
                array[target] = value
        return arrays

    # Nodes

    def value(self, root: ir.Node, space: IterationSpace) -> Evaluated:
        """The values of a node, which broadcast over the space, and where they are poisoned."""
        result = space.hoist_target(root).memo.get(id(root))
        if result is not None:
            return result
        for node in order_within_space(root, space.memo):
            target = space.hoist_target(node)
            if id(node) not in target.memo:
                target.memo[id(node)] = self.compute(node, target)
        return space.hoist_target(root).memo[id(root)]

    def compute(self, node: ir.Node, space: IterationSpace) -> Evaluated:
        """The values of a node whose inputs are known."""
        if node.op == "scalar":
            return np.asarray(argument_of(node.attribute.number, node.type)).astype(DTYPES[node.type]), None
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
        with np.errstate(all="ignore"):
            if isinstance(node.attribute, ir.UserCall):
                result = as_node_value(node, SimtInterpreter(node.attribute.function).call(values))
                return result, merge_poison(poison for _, poison in operands)
            return evaluate(node.attribute, node.type, values), propagate_poison(node.attribute, operands)

    # Functions at indices

    def access(self, node: ir.Node, space: IterationSpace) -> Evaluated:
        """A function at indices: by slices where possible, else by gathering elements."""
        function, indices = ir.without_lets(node.inputs[0]), node.inputs[1:]
        if isinstance(function.attribute, ir.ArraySource):
            ranges, data = function.attribute.ranges, function.attribute.data
        elif function.op == "primitive":
            ranges, data = function.attribute.ranges, EvaluatedArray(self.components_of(function))
        elif all(isinstance(v.range, ir.Range) for v in function.attribute):
            ranges, data = tuple(v.range for v in function.attribute), EvaluatedArray(self.components_of(function))
        else:
            return self.inlined(node, function, space)
        slices = slices_of(indices, ranges, space)
        if slices is None:
            return self.gathered(node, ranges, data, space)
        box, order, shape = slices
        return as_node_value(node, [np.transpose(a, order).reshape(shape) for a in data.read(box)]), None

    def inlined(self, node: ir.Node, function: ir.Node, space: IterationSpace) -> Evaluated:
        """A function with an infinite domain: its body, with its variables bound to the values of the arguments."""
        operands = [self.value(child, space) for child in node.inputs[1:]]
        values = space.values | dict(zip(function.attribute, (v for v, _ in operands), strict=True))
        inner = IterationSpace(space.axes, space.ranges, values)
        results = [self.value(body, inner) for body in function.inputs]
        poison = merge_poison([p for _, p in operands] + [p for _, p in results])
        return as_node_value(node, [v for v, _ in results]), poison

    def gathered(self, node: ir.Node, ranges: tuple[ir.Range, ...], data: Any, space: IterationSpace) -> Evaluated:
        """An array at any indices: by their border modes, poisoned where an index without one is out of bounds."""
        operands = [self.value(index, space) for index in node.inputs[1:]]
        poisons = [poison for _, poison in operands]
        positions: list[np.ndarray] = []
        zero = None  # where border mode `zero` applies
        for (value, _), range_, border in zip(operands, ranges, node.attribute.borders, strict=True):
            position = np.asarray(value).astype(np.int64) - range_.low
            outside = (position < 0) | (position >= range_.size)
            if border is None and np.any(outside):
                first = int(position[outside][0]) if position.ndim else int(position)
                poisons.append(Poison(outside, node, f"{first + range_.low} where {range_} is allowed"))
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
        return as_node_value(node, list(components)), merge_poison(poisons)


def variable_values(node: ir.Node, space: IterationSpace) -> Any:
    """The values of a bound variable along its axis."""
    variable = node.attribute
    if variable in space.values:
        return space.values[variable]
    range_ = space.ranges[variable]
    values: np.ndarray = np.arange(range_.low, range_.high, dtype=np.int64).astype(DTYPES[node.type])
    return values.reshape((-1,) + (1,) * space.axes[variable])


def slices_of(
    indices: tuple[ir.Node, ...], ranges: tuple[ir.Range, ...], space: IterationSpace
) -> tuple[tuple, list[int], tuple[int, ...]] | None:
    """NumPy slices, axis order and shape of an access whose indices each run along their own axis, in bounds."""
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
    return np.clip(position, 0, size - 1)
