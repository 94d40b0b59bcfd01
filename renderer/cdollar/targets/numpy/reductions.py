"""Combines the elements of a reduction in NumPy: operators such as sums, argmin and argmax, user functions, folds.

NumpyTarget.reduce() (target.py) evaluates the elements box by box and passes each box to Reducer.add(); GraphTarget
passes the results of chunks in the same way. Reducer.value() is the value of the reduction. In an array of elements the
axes of the reduced variables come first, then the axes of the outer space, whose points have a value each.
"""

import math
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.device_function import DeviceFunction
from renderer.cdollar.ir.operations import NEUTRAL_ELEMENTS
from renderer.cdollar.ir.types import DTYPES, FLOATS
from renderer.cdollar.targets.numpy import spaces
from renderer.cdollar.targets.numpy.simt import SimtInterpreter
from renderer.cdollar.targets.strict_order import BlockTree, adds_in_blocks

COMBINERS = {
    "+": np.add, "*": np.multiply, "min": np.fmin, "max": np.fmax, "&&": np.logical_and, "||": np.logical_or,
}  # fmt: skip


def sum_dtype(node: ir.Node) -> type:
    """The NumPy type in which the operator of a "reduce" node combines: float64 for sums and products of floats."""
    is_float_sum = node.attribute[0].name in ("+", "*") and node.type in FLOATS
    return np.float64 if is_float_sum else DTYPES[node.type]


class Reducer:
    """The reduction of a "reduce" node `node`, to which add() gives the elements in row-major order of the boxes.

    `strict`: floats are reduced in the order of strict_order.py, and user functions one element after another.
    """

    def __init__(self, node: ir.Node, spans: WeakKeyDictionary[ir.Node, Span], strict: bool = False) -> None:
        """Start without elements; `spans` gives the errors of user functions their place in the program."""
        self.node, self.spans, self.strict = node, spans, strict
        self.reduction, self.variables = node.attribute
        self.components: list[np.ndarray] | None = None  # of the result so far; argmin: the extremum, then its indices
        self.blocks: BlockTree | None = None  # takes the place of `components` in strict sums

    def add(self, values: list[np.ndarray], shape: tuple[int, ...], depth: int) -> None:
        """Combine the elements of one more box, which has the extents `shape`; the outer space has `depth` axes.

        `values` are the start values of a fold, then the components of the elements; of argmin and argmax the compared
        values, then their indices. Each value broadcasts to the axes of the box and of the outer space.
        """
        full = [np.broadcast_to(v, np.broadcast_shapes(np.shape(v), shape + (1,) * depth)) for v in values]
        name, axes = self.reduction.name, len(shape)
        with np.errstate(all="ignore"):
            if self.reduction.is_arg_extremum:
                self.components = arg_extremum(name, self.components, full, axes)
            elif self.reduction.function is not None:
                self.components = self.combine_by_function(self.reduction.function, full, axes)
            elif adds_in_blocks(self.reduction, self.node.type, self.strict):
                if self.blocks is None:
                    length = math.prod(v.range.size for v in self.variables)
                    neutral = NEUTRAL_ELEMENTS[name]
                    self.blocks = BlockTree(COMBINERS[name], neutral, DTYPES[self.node.type], length)
                self.blocks.push(full[0].reshape((-1, *full[0].shape[axes:])))
            else:
                combine = COMBINERS[name]
                total = combine.reduce(full[0], axis=tuple(range(axes)), dtype=sum_dtype(self.node))
                self.components = [total if self.components is None else combine(self.components[0], total)]

    def value(self) -> spaces.NodeValue:
        """The value of the reduction after the last box."""
        if self.blocks is not None:
            return np.asarray(self.blocks.value())
        assert self.components is not None, "an empty domain has no boxes"
        if self.reduction.is_arg_extremum:
            return as_node_value(self.node, [np.asarray(index).astype(np.int32) for index in self.components[1:]])
        if self.reduction.function is not None:
            return as_node_value(self.node, self.components)
        with np.errstate(all="ignore"):
            return np.asarray(self.components[0]).astype(DTYPES[self.node.type])

    def combine_by_function(self, function: DeviceFunction, full: list[np.ndarray], axes: int) -> list[np.ndarray]:
        """Combine a box into the components by a device function, whose errors are raised; see add().

        The elements are combined in row-major order, or as a tree if the function is associative and not `strict`. A
        fold begins with its start values, other reductions with element 0.
        """
        combiner = SimtInterpreter(function)
        starts = len(ir.scalar_types(self.node)) if self.reduction.is_fold else 0
        elements = full[starts:]
        outer = np.broadcast_shapes(*(e.shape[axes:] for e in full))
        rows = [np.broadcast_to(e, e.shape[:axes] + outer).reshape((-1,) + outer) for e in elements]
        state = self.components
        if not self.reduction.ordered and not self.strict:
            combined = tree_reduce(combiner, rows)
            state = combined if state is None else combiner.call([*state, *combined])
        else:
            first = 0
            if state is None and starts:
                state = [np.broadcast_to(s, s.shape[:axes] + outer)[(0,) * axes] for s in full[:starts]]
            elif state is None:
                state, first = [row[0] for row in rows], 1
            for k in range(first, rows[0].shape[0]):
                state = combiner.call([*state, *(row[k] for row in rows)])
        spaces.raise_if_poisoned(combiner.failure, self.spans)
        return state


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
    # An index depends on reduced variables alone, so its array has extent 1 along the outer space: axes can be dropped.
    extremum += [index.reshape(shape)[np.unravel_index(position[0], shape)] for index in full[1:]]
    if state is None:
        return extremum
    is_new = extremum[0] < state[0] if name == "argmin" else extremum[0] > state[0]
    return [np.where(is_new, new, old) for new, old in zip(extremum, state, strict=True)]


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


def as_node_value(node: ir.Node, components: list[np.ndarray]) -> spaces.NodeValue:
    """The components as the value of a node: one component stands for itself."""
    return components if isinstance(node.type, tuple) else components[0]


def check_not_empty(node: ir.Node, spans: WeakKeyDictionary[ir.Node, Span]) -> None:
    """Raise the program's error if a reduction without a neutral element has an empty domain."""
    reduction, variables = node.attribute
    if reduction.name not in ("fold", *NEUTRAL_ELEMENTS) and any(v.range.size == 0 for v in variables):
        raise ProgramError("CS0318", spans[node], f"`{reduction.name}` over an empty domain has no value")
