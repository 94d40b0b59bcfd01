"""Affine forms of index nodes, and bounds of integer values.

An index such as `2 * i - j + 3` is a constant plus integer multiples of bound variables (the affine access functions of
the polyhedral model). Domain inference (checker/) solves such indices for the ranges of variables; the targets use
their bounds to omit bounds checks and to upload only the region of an array that a kernel reads.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from renderer.cdollar.ir.dag import BoundVariable, Dimension, Node, Range, RuntimeScalar
from renderer.cdollar.ir.types import DTYPES, INTEGERS

Bounds = tuple[int, int] | None  # the least and the greatest value (inclusive) of an integer, if they are known
# Types between which a conversion keeps an index: an index of an array is from 0 to 2^31 - 1, which both types hold.
INDICES = ("int", "uint")


class Affine(NamedTuple):
    """constant + sum of coefficient * variable, where `terms` holds pairs (variable, coefficient).

    `is_known` is False while the constant or a coefficient contains a number that the host has not passed yet.
    """

    terms: tuple[tuple[BoundVariable, int], ...]
    constant: int
    is_known: bool = True

    @property
    def variables(self) -> tuple[BoundVariable, ...]:
        """The variables of the terms."""
        return tuple(variable for variable, _ in self.terms)

    def without(self, variable: BoundVariable) -> "Affine":
        """The form without its term in a variable."""
        return self._replace(terms=tuple(term for term in self.terms if term[0] is not variable))

    def substitute(self, values: "dict[BoundVariable, Affine]") -> "Affine":
        """The form with variables replaced by forms."""
        result = self._replace(terms=())
        for variable, coefficient in self.terms:
            result = result.add(values.get(variable, variable_form(variable)).scale(coefficient))
        return result

    def scale(self, factor: int) -> "Affine":
        """This form times an integer; 0 leaves no terms."""
        return Affine(tuple((v, c * factor) for v, c in self.terms if factor), self.constant * factor, self.is_known)

    def add(self, other: "Affine") -> "Affine":
        """The sum of two forms; terms that cancel disappear."""
        terms = dict(self.terms)
        for variable, coefficient in other.terms:
            terms[variable] = terms.get(variable, 0) + coefficient
        kept = tuple((v, c) for v, c in terms.items() if c)
        return Affine(kept, self.constant + other.constant, self.is_known and other.is_known)


def variable_form(variable: BoundVariable, coefficient: int = 1) -> Affine:
    """The form coefficient * variable."""
    return Affine(((variable, coefficient),), 0)


def affine(node: Node, known: dict[Node, Affine | None] | None = None) -> Affine | None:
    """Returns the affine form of a node in integer variables, or None if it is not affine.

    `known` caches results by node, within a call and, if the caller passes one, between calls.
    """
    known = {} if known is None else known
    if node not in known:
        known[node] = _affine(node, known)
    return known[node]


def _affine(node: Node, known: dict[Node, Affine | None]) -> Affine | None:
    """The affine form of a node whose inputs' forms are known or computed by affine(); None if it has none."""
    if node.op == "let" or node.op == "apply" and node.attribute == "convert" and node.inputs[0].type in INDICES:
        return affine(node.inputs[0], known)
    if node.op == "variable" and node.type in INTEGERS:
        return variable_form(node.attribute)
    if node.op == "scalar" and node.type in INTEGERS:
        number = node.attribute.number
        return Affine((), 0, is_known=False) if number is None else Affine((), int(number))
    if node.op != "apply" or node.attribute not in ("neg", "+", "-", "*"):
        return None
    forms = [affine(child, known) for child in node.inputs]
    left, right = forms[0], forms[-1]
    if left is None or right is None:
        return None
    if node.attribute == "neg":
        return left.scale(-1)
    if node.attribute == "*":
        if left.terms and right.terms:
            return None
        factor, other = (right, left) if left.terms else (left, right)
        return other.scale(factor.constant) if factor.is_known else Affine(other.terms, 0, is_known=False)
    return left.add(right if node.attribute == "+" else right.scale(-1))


def value_bounds(form: Affine) -> Bounds:
    """The least and the greatest value (inclusive) over the variables' ranges; None if a range is empty or infinite."""
    low = high = form.constant
    for variable, coefficient in form.terms:
        if not isinstance(variable.range, Range) or variable.range.size == 0:
            return None
        ends = coefficient * variable.range.low, coefficient * (variable.range.high - 1)
        low, high = low + min(ends), high + max(ends)
    return low, high


def index_bounds(index: Node) -> Bounds:
    """The least and the greatest value of an index; None if they are not known."""
    form = affine(index)
    return value_bounds(form) if form is not None and form.is_known else None


def bordered_index(
    op: Callable[[str, Node, Node], Node], number: Callable[[int], Node], index: Node, range_: Range, border: str
) -> Node:
    """The index in `range_` that a border mode reads in place of `index`; mode zero clamps it, as mode clamp does.

    In mode zero the caller replaces the value read there by 0. `op` and `number` make the nodes of operations and
    numbers of the index's type. Mode mirror reads a range 0..3 in the order 0 1 2 2 1 0 0 1 2 ...: its period is twice
    the size. `%` is C's, negative for negative operands, so it is applied twice.
    """
    low, last = number(range_.low), number(range_.high - 1)
    if border in ("clamp", "zero"):
        return op("min", op("max", index, low), last)
    period = number(range_.size if border == "wrap" else 2 * range_.size)
    offset = op("%", op("+", op("%", op("-", index, low), period), period), period)
    if border == "mirror":
        offset = op("min", offset, op("-", number(2 * range_.size - 1), offset))
    return op("+", offset, low)


def solve_bounds(form: Affine, variable: BoundVariable, range_: Range) -> tuple[int, int] | None:
    """The half-open bounds of `variable` in which the form stays in `range_` for all values of the other variables.

    `variable` must be in the form. None if the range of another variable is empty or infinite.
    """
    coefficient, others = dict(form.terms)[variable], value_bounds(form.without(variable))
    if others is None:
        return None
    low, high = range_.low - others[0], range_.high - 1 - others[1]  # low <= coefficient * variable <= high
    if coefficient < 0:
        low, high = -high, -low
    size = abs(coefficient)
    return -(-low // size), high // size + 1  # low / size rounded up, high / size rounded down


def is_proven_in_bounds(index: Node, range_: Range) -> bool:
    """True if an index lies in a range for all values of its variables."""
    bounds = index_bounds(index)
    return bounds is not None and bounds[0] >= range_.low and bounds[1] < range_.high


def bounds_of_number(node: Node) -> Bounds:
    """The bounds of a scalar node: a literal's value twice; None for a number of the host, which may change."""
    is_literal = node.type in INTEGERS and not isinstance(node.attribute, RuntimeScalar)
    return (int(node.attribute.number), int(node.attribute.number)) if is_literal else None


def bounds_of_range(range_: Dimension) -> Bounds:
    """The bounds of a bound variable over a range; None if the range is empty or not a range of numbers."""
    return (range_.low, range_.high - 1) if isinstance(range_, Range) and range_.size else None


def bounds_of_operation(node: Node, operands: list[Bounds]) -> Bounds:
    """The bounds of an operation on integers by interval arithmetic.

    `operands` holds the bounds of the node's inputs. None if they are unknown, for an operation without a rule below,
    and if the result may leave the type's range, where it wraps around.
    """
    if node.type not in INTEGERS or None in operands:
        return None
    # The operands lie in [a, b] and [c, d]; an operation with one operand does not use c and d.
    (a, b), (c, d) = operands[0], operands[-1]  # type: ignore[misc]  # none is None
    intervals = {
        "+": (a + c, b + d), "-": (a - d, b - c), "neg": (-b, -a), "convert": (a, b),
        "*": (min(a * c, a * d, b * c, b * d), max(a * c, a * d, b * c, b * d)),
    }  # fmt: skip
    low, high = intervals.get(node.attribute, (1, 0))  # low > high: no rule for this operation
    limits = np.iinfo(DTYPES[node.type])
    lowest, highest = int(limits.min), int(limits.max)
    return (low, high) if lowest <= low <= high <= highest else None
