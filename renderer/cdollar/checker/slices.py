"""Slices of functions, `a[1:3]` and `a[i, ::2]`: parts whose indices start at 0, as NumPy's."""

from __future__ import annotations

from typing import Protocol

from renderer.cdollar.checker.node_builder import NodeBuilder
from renderer.cdollar.checker.values import DataValue, SliceArgument
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir.dag import UNKNOWN, BoundVariable, Dimension, Range
from renderer.cdollar.ir.types import INT


class Lowering(Protocol):
    """What a slice needs of the lowering of its body."""

    def host_int(self, tree: ast.AstNode) -> int | None:
        """A number that the host knows; None while it is unknown."""


def lower_slice(lowering: Lowering, tree: ast.Slice, dimension: Dimension) -> SliceArgument:
    """A slice of a dimension; raises CS0322 if it leaves the domain.

    What is left out is an end of the domain. Where indices start at 0, negative ends count from the end, as in NumPy.
    """
    parts = tree.low, tree.high, tree.step
    given = [lowering.host_int(part) if part is not None else None for part in parts]
    is_unknown = any(part is not None and n is None for part, n in zip(parts, given, strict=True))
    if is_unknown or dimension is UNKNOWN:
        return SliceArgument(None, given[2] or 1, None)
    step = 1 if given[2] is None else given[2]
    if step == 0:
        raise ProgramError("CS0322", (tree.step or tree).span, "the step of a slice is not 0")
    if not isinstance(dimension, Range):
        if None in given[:2] or step < 0:
            message = f"the slice {tree.span.excerpt} needs both ends: this dimension is infinite"
            raise ProgramError("CS0322", tree.span, message, "`a[0:n]`")
        ends = sorted((given[0] or 0, given[1] or 0))
        dimension = Range(ends[0], ends[1])
    return _within(tree, dimension, given[0], given[1], step)


def _within(tree: ast.Slice, range_: Range, low: int | None, high: int | None, step: int) -> SliceArgument:
    """The slice of a finite dimension."""
    if range_.low == 0:
        low, high = (n + range_.high if n is not None and n < 0 else n for n in (low, high))
    if step > 0:
        first, end = range_.low if low is None else low, range_.high if high is None else high
    else:
        first, end = range_.high - 1 if low is None else low, range_.low - 1 if high is None else high
    size = max(0, -((first - end) // step))
    last = first + step * (size - 1)
    if size and not (range_.low <= min(first, last) and max(first, last) < range_.high):
        message = (
            f"the slice {tree.span.excerpt} reads {min(first, last)}..{max(first, last) + 1} where {range_} is allowed"
        )
        raise ProgramError("CS0322", tree.span, message, "ends that are left out are those of the domain: `a[1:]`")
    return SliceArgument(first, step, size)


def sliced_index(builder: NodeBuilder, variable: BoundVariable, part: SliceArgument) -> DataValue:
    """The index that a slice reads at a new variable, which gets the slice's range."""
    index = DataValue(INT, (builder.dag.bound_variable(variable),))
    if part.low is None or part.size is None:
        variable.range = UNKNOWN
        return index
    variable.range = Range(0, part.size)
    for name, number, neutral in (("*", part.step, 1), ("+", part.low, 0)):
        if number != neutral:
            moved = builder.binary(name, index, builder.constant(number, "int"))
            assert moved is not None, "both are int"
            index = moved
    return index
