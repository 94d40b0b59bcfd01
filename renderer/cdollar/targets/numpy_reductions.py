"""Reductions in NumPy, over boxes of bounded size; sums of products run as einsum."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.checker.target import Target
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.contraction import contraction_factors
from renderer.cdollar.ir.dag import BoundVariable, Dag, Node, Reduction, scalar_types, topological_order
from renderer.cdollar.ir.operations import NEUTRAL_ELEMENTS
from renderer.cdollar.ir.types import DTYPES
from renderer.cdollar.targets.iteration_space import IterationSpace, split_box
from renderer.cdollar.targets.numpy_simt import SimtInterpreter
from renderer.cdollar.targets.poison import Poison, merge_poison
from renderer.cdollar.targets.strict_order import BlockTree, depends_on_order

MAX_TEMPORARY_ELEMENTS = 1 << 22
MAX_EINSUM_AXES = 52  # np.einsum's letters
Evaluated = tuple[Any, Poison | None]  # an array, or a list of one array per component, and where it is poisoned
COMBINERS = {
    "+": np.add, "*": np.multiply, "min": np.fmin, "max": np.fmax, "&&": np.logical_and, "||": np.logical_or,
}  # fmt: skip


def as_node_value(node: Node, components: list) -> Any:
    """The components as the value of a node: one component stands for itself."""
    return components if isinstance(node.type, tuple) else components[0]


def temporary_factor(body: Node, outer: frozenset[BoundVariable]) -> int:
    """How many temporary elements the reductions under a node need per point of the space of `outer`."""
    factor = 1
    for node in topological_order([body]):
        if node.op == "reduce" and node.free_variables & outer and contraction_factors(node) is None:
            size = math.prod(max(1, variable.range.size) for variable in node.attribute[1])
            factor = max(factor, min(size, MAX_TEMPORARY_ELEMENTS))
    return factor


def check_not_empty(node: Node, spans: WeakKeyDictionary[Node, Span]) -> None:
    """Raise the program's error if a reduction without a neutral element has an empty domain."""
    reduction, variables = node.attribute
    if reduction.name not in ("fold", *NEUTRAL_ELEMENTS) and any(v.range.size == 0 for v in variables):
        raise ProgramError("CS0318", spans[node], f"`{reduction.name}` over an empty domain has no value")


class NumpyReductions(Target):
    """What evaluates reduce nodes; a subclass evaluates the others."""

    dag: Dag
    strict = False  # reductions in the order of strict_order.py; those by functions from left to right

    @abstractmethod
    def value(self, root: Node, space: IterationSpace) -> Evaluated:
        """The values of a node, which broadcast over the space, and where they are poisoned."""

    def reduce(self, node: Node, space: IterationSpace) -> Evaluated:
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
        axes = frozenset(variables) | frozenset(space.axes)
        temporaries = max(1, *(temporary_factor(child, axes) for child in node.inputs))
        outer = 1  # points of the outer space at which the reduction has its own value
        for variable in node.free_variables:
            if variable in space.axes:
                outer *= space.ranges[variable].size
            elif variable in space.values:
                outer = max(outer, np.asarray(space.values[variable]).size)
        state, poisons = None, []
        for box in split_box(list(ranges), max(1, MAX_TEMPORARY_ELEMENTS // (outer * temporaries))):
            inner = space.inner(variables, box)
            operands = [self.value(child, inner) for child in node.inputs]
            shape = tuple(r.size for r in box)
            state = self.combine_box(node, state, [v for v, _ in operands], shape, len(space.axes))
            for _, poison in operands:
                if poison is not None:
                    full = np.broadcast_shapes(poison.where.shape, shape + (1,) * len(space.axes))
                    where = np.asarray(np.broadcast_to(poison.where, full).any(axis=tuple(range(len(shape)))))
                    poisons.append(Poison(where, poison.node, poison.index))
        return self.result(node, state), merge_poison(poisons)

    def reduce_empty(self, node: Node, reduction: Reduction) -> Any:
        """The start value of a fold, or the neutral element."""
        check_not_empty(node, self.dag.spans)
        if reduction.name == "fold":
            starts = node.inputs[: len(scalar_types(node))]
            return as_node_value(node, [self.value(child, IterationSpace())[0] for child in starts])
        return np.asarray(NEUTRAL_ELEMENTS[reduction.name]).astype(DTYPES[node.type])

    def combine_box(self, node: Node, state: Any, values: list, shape: tuple[int, ...], depth: int) -> Any:
        """The state after one more box of the reduced variables, which are the first axes of the values."""
        full = [np.broadcast_to(v, np.broadcast_shapes(np.shape(v), shape + (1,) * depth)) for v in values]
        reduction, axes = node.attribute[0], tuple(range(len(shape)))
        if reduction.name in ("argmin", "argmax"):
            return arg_extremum(reduction.name, state, full, len(shape))
        if reduction.function is not None:
            return reduce_by_function(node, state, full, len(shape), self.strict)
        combiner = COMBINERS[reduction.name]
        if self.strict and depends_on_order(reduction, node.type):
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

    def result(self, node: Node, state: Any) -> Any:
        """The value of a reduction from its state after the last box."""
        reduction = node.attribute[0]
        if reduction.name in ("argmin", "argmax"):
            return as_node_value(node, [np.asarray(index).astype(np.int32) for index in state[1:]])
        if reduction.function is not None:
            return as_node_value(node, state)
        with np.errstate(all="ignore"):
            total = state.value() if isinstance(state, BlockTree) else state
            return np.asarray(total).astype(DTYPES[node.type])

    def contract(self, node: Node, factors: list[Node], space: IterationSpace) -> Evaluated | None:
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


def arg_extremum(name: str, state: list | None, full: list[np.ndarray], axes: int) -> list:
    """The least or greatest value so far and its indices; the first of equal values wins, NaN never does."""
    values = full[0].reshape((-1,) + full[0].shape[axes:])
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.inf if name == "argmin" else -np.inf, values)
    position = (np.argmin if name == "argmin" else np.argmax)(values, axis=0)[None]
    best = [np.take_along_axis(values, position, axis=0)[0]]
    shape = full[0].shape[:axes]
    best += [index.reshape(shape)[np.unravel_index(position[0], shape)] for index in full[1:]]
    if state is None:
        return best
    better = best[0] < state[0] if name == "argmin" else best[0] > state[0]
    return [np.where(better, new, old) for new, old in zip(best, state, strict=True)]


def reduce_by_function(node: Node, state: list | None, full: list[np.ndarray], axes: int, strict: bool) -> list:
    """Combine the elements by a device function in row-major order; as a tree if it is associative, unless `strict`."""
    reduction = node.attribute[0]
    starts = len(scalar_types(node)) if reduction.name == "fold" else 0
    elements = full[starts:]
    outer = np.broadcast_shapes(*(e.shape[axes:] for e in full))
    flat = [np.broadcast_to(e, e.shape[:axes] + outer).reshape((-1,) + outer) for e in elements]
    combiner = SimtInterpreter(reduction.function)
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
