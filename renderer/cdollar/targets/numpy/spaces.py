"""Iteration spaces, the boxes of bound variables over which the NumPy target evaluates nodes; and poison.

A space is a box in the sense of the polyhedral model. A read outside of a function's domain yields a poisoned value (as
in LLVM), which is an error only if the result of the program depends on it.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import BoundVariable, Node, Range, RangeCheck, Ranges, Variables
from renderer.records import dataclass, field

NodeValue = Any  # the values of a node at all points: an array, or a list of one array per component
Evaluated = tuple[NodeValue, "Poison | None"]  # the poison marks the points whose values are errors
HINT = "a border mode defines it: `f.clamp(...)`, wrap, mirror or zero"
RANGE_HINT = "mend the ends, or cut them: `k : max(p(i), 0)..min(p(i + 1), size(a))`"
LOCAL_HINT = "a local array has no border modes: test the index, `if (i < 3) ...`"


@dataclass
class IterationSpace:
    """Bound variables with their array axes (counted from the last) and ranges.

    `axes` is in the order of its numbers: axis 0 is the last of an array. `values` binds variables without an axis to
    arrays (an inlined function's parameters; the points of a reduction whose ends vary). The axes of an inner space
    precede the axes of its `outer` space, so that values of both broadcast. `memo` holds the values of nodes that were
    evaluated in this space, by id.
    """

    axes: dict[BoundVariable, int] = field(default_factory=dict)
    ranges: dict[BoundVariable, Range] = field(default_factory=dict)
    values: dict[BoundVariable, np.ndarray] = field(default_factory=dict)
    outer: "IterationSpace | None" = None
    memo: dict[int, Evaluated] = field(default_factory=dict)

    def inner(self, variables: Variables, ranges: Ranges) -> "IterationSpace":
        """A space inside this one, with the axes of `variables` before its axes."""
        axes, all_ranges = dict(self.axes), dict(self.ranges)
        for variable, range_ in reversed(list(zip(variables, ranges, strict=True))):
            axes[variable] = len(axes)
            all_ranges[variable] = range_
        return IterationSpace(axes, all_ranges, self.values, self)

    @property
    def sizes(self) -> list[int]:
        """The extent of each axis."""
        return [self.ranges[variable].size for variable in self.axes]

    def broadcast_shape(self, axes: Collection[int]) -> tuple[int, ...]:
        """The shape of an array along some axes, which broadcasts over the space."""
        return tuple(self.sizes[a] if a in axes else 1 for a in range(max(axes, default=-1), -1, -1))

    def hoist_target(self, node: Node) -> "IterationSpace":
        """The outermost space that binds all variables a node depends on."""
        space = self
        while space.outer is not None and node.free_variables <= space.outer.axes.keys() | space.outer.values.keys():
            space = space.outer
        return space


def split_box(ranges: list[Range], max_points: int) -> Iterator[Ranges]:
    """Boxes of at most `max_points` points that partition a box, in row-major order."""
    total = math.prod(range_.size for range_ in ranges)
    if total <= max_points or not ranges:
        yield tuple(ranges)
        return
    first, rest = ranges[0], ranges[1:]
    row = total // first.size
    step = max(1, max_points // max(1, row))
    for low in range(first.low, first.high, step):
        slab = Range(low, min(first.high, low + step))
        for other in split_box(rest, max_points):
            yield (slab, *other)


@dataclass(frozen=True)
class Poison:
    """The poison of an array of values.

    `where` is True at the poisoned values; `node` is the access, element of a local array or RangeCheck that failed.
    `index` says at which index, or over which range; "" for an element.
    """

    where: np.ndarray
    node: Node
    index: str

    def masked(self, mask: np.ndarray) -> "Poison | None":
        """The poison at the points of a mask only."""
        where = self.where & mask
        return Poison(where, self.node, self.index) if where.any() else None

    def over_outer_space(self, shape: Sequence[int], depth: int) -> "Poison":
        """The poison of a reduction over a box of extents `shape`, whose elements have this poison.

        The box's axes are the first ones; the `depth` axes of the outer space follow.
        """
        full = np.broadcast_shapes(self.where.shape, (*shape, *(1,) * depth))
        where = np.broadcast_to(self.where, full).any(axis=tuple(range(len(shape))))
        return Poison(np.asarray(where), self.node, self.index)


def merge_poison(poisons: Iterable[Poison | None]) -> Poison | None:
    """The union of poisons; the first one names the access."""
    present = [p for p in poisons if p is not None]
    if len(present) < 2:
        return present[0] if present else None
    where = present[0].where
    for other in present[1:]:
        where = where | other.where
    return Poison(where, present[0].node, present[0].index)


def propagate_poison(operation: str, operands: list[tuple[np.ndarray, Poison | None]]) -> Poison | None:
    """The poison of an operation's result: the union of its operands' poison.

    The poison of an operand that `select`, `&&` or `||` does not take is ignored.
    """
    poisons = [poison for _, poison in operands]
    if not any(poisons):
        return None
    condition = operands[0][0]
    if operation == "select":
        if_true, if_false = poisons[1], poisons[2]
        taken = if_true and if_true.masked(condition), if_false and if_false.masked(~condition)
        return merge_poison([poisons[0], *taken])
    if operation in ("&&", "||") and poisons[1]:
        return merge_poison([poisons[0], poisons[1].masked(condition if operation == "&&" else ~condition)])
    return merge_poison(poisons)


def range_poison(check: Node, low: np.ndarray, high: np.ndarray) -> Poison | None:
    """The poison of the ranges low..high that are not empty and leave the range that a RangeCheck allows."""
    allowed = check.attribute.range
    if allowed is None:
        return None
    low, high = np.broadcast_arrays(low, high)
    where = np.asarray((low < high) & ((low < allowed.low) | (high > allowed.high)))
    return Poison(where, check, f"{low[where][0]}..{high[where][0]}") if where.any() else None


def failed_check(node: Node, span: Span, detail: str, actual_range: str = "") -> ProgramError:
    """The error of a failed check of bounds: `detail` ends an access's message, `actual_range` is what a range was."""
    if isinstance(node.attribute, RangeCheck):
        allowed, name = node.attribute.range, node.attribute.variable.name
        assert allowed is not None, "a check without a range never fails"
        where = f"`{name}` runs over {actual_range}" if actual_range else f"the range of `{name}` is too wide"
        message = f"{where}, but {allowed.provenance} is read where {allowed} is allowed"
        return ProgramError("CS0326", span, message, RANGE_HINT)
    if node.op == "element":
        ranges = " x ".join(f"0..{size}" for size in node.attribute.shape)
        message = f"an index is outside of {ranges}, the local array `{node.attribute.name}`"
        return ProgramError("CS0325", span, message, LOCAL_HINT)
    return ProgramError("CS0317", span, f"an index is outside of the domain{detail}", HINT)


def raise_if_poisoned(poison: Poison | None, spans: WeakKeyDictionary[Node, Span]) -> None:
    """Raise the program's error if any value of a result is poisoned."""
    if poison is not None and np.any(poison.where):
        raise failed_check(poison.node, spans[poison.node], f": {poison.index}", poison.index)
