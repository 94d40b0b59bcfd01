"""Iteration spaces: the boxes of bound variables over which nodes are evaluated (polyhedral model)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from renderer.cdollar.ir.dag import Access, BoundVariable, Node, Range, topological_order


@dataclass
class IterationSpace:
    """Bound variables with their array axes (counted from the last) and ranges; `values` binds others to arrays.

    Axes of an inner space precede those of the `outer` one, so that values of both broadcast. `memo` holds the values
    of nodes that were evaluated in this space.
    """

    axes: dict[BoundVariable, int] = field(default_factory=dict)
    ranges: dict[BoundVariable, Range] = field(default_factory=dict)
    values: dict[BoundVariable, Any] = field(default_factory=dict)
    outer: IterationSpace | None = None
    memo: dict[int, Any] = field(default_factory=dict)

    def inner(self, variables: tuple[BoundVariable, ...], ranges: tuple[Range, ...]) -> IterationSpace:
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

    def hoist_target(self, node: Node) -> IterationSpace:
        """The outermost space that binds all variables a node depends on."""
        space = self
        while space.outer is not None and node.free_variables <= space.outer.axes.keys() | space.outer.values.keys():
            space = space.outer
        return space


def order_within_space(root: Node, evaluated: Collection[int] = ()) -> list[Node]:
    """Nodes under the root that are evaluated in its iteration space, inputs first.

    Bodies of reductions and functions are not among them, nor nodes whose id is in `evaluated`.
    """

    def inputs_of(node: Node) -> Iterable[Node]:
        if node.op == "reduce":
            return ()
        inputs = node.inputs[1:] if isinstance(node.attribute, Access) else node.inputs
        return [child for child in inputs if id(child) not in evaluated]

    return topological_order([root], inputs_of)


def split_box(ranges: list[Range], max_points: int) -> Iterator[tuple[Range, ...]]:
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
