"""Recognizes functions that are matrix products, and emits loads of their operands."""

from __future__ import annotations

from dataclasses import dataclass

from renderer.cdollar.ir.contraction import contraction_factors
from renderer.cdollar.ir.dag import Access, BoundVariable, Node, without_lets
from renderer.cdollar.ir.passes import order_within_scope
from renderer.cdollar.ir.types import component_types
from renderer.cdollar.targets.dialects import operation_text
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.expression_emitter import RangesOf
from renderer.cdollar.targets.kernel_plan import volume

Indices = list[tuple[tuple[BoundVariable, ...], str]]  # groups of variables with the names of their linear indices


@dataclass(frozen=True)
class MatrixProduct:
    """A function that is a sum of products of left factors (batch, rows, k) and right factors (batch, k, columns)."""

    node: Node
    left: tuple[Node, ...]
    right: tuple[Node, ...]
    batch: tuple[BoundVariable, ...]
    rows: tuple[BoundVariable, ...]
    columns: tuple[BoundVariable, ...]
    inner: tuple[BoundVariable, ...]

    @property
    def type(self) -> str:
        """The scalar type: float or double."""
        return self.node.inputs[0].type

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of rows, columns and products per sum."""
        return {"rows": volume(self.rows), "columns": volume(self.columns), "depth": volume(self.inner)}


def match_matrix_product(node: Node) -> MatrixProduct | None:
    """The function as a matrix product, if its body is a sum of products of two sides."""
    if node.op != "function" or len(node.inputs) != 1 or node.inputs[0].op != "reduce":
        return None
    reduction = node.inputs[0]
    factors = contraction_factors(reduction)
    if factors is None:
        return None
    if any(part.op == "reduce" and part.free_variables for f in factors for part in order_within_scope(f)):
        return None  # a factor contains a reduction of its own
    inner = frozenset(reduction.attribute[1])
    left: list[Node] = [factors[0]]
    right: list[Node] = []
    rows = factors[0].free_variables - inner
    for factor in factors[1:]:
        (left if factor.free_variables - inner <= rows else right).append(factor)
    if not right:
        return None
    columns = frozenset().union(*(f.free_variables for f in right)) - inner
    batch = rows & columns
    if not rows - batch or not columns - batch or (rows | columns) != frozenset(node.attribute):
        return None

    def in_order(variables: frozenset[BoundVariable]) -> tuple[BoundVariable, ...]:
        return tuple(v for v in node.attribute if v in variables)

    groups = in_order(batch), in_order(rows - batch), in_order(columns - batch)
    return MatrixProduct(node, tuple(left), tuple(right), *groups, reduction.attribute[1])


def plain_operands(product: MatrixProduct, ranges_of: RangesOf) -> tuple[Node, Node] | None:
    """The arrays a, b of a product of whole arrays a(row, k) b(k, column) in this order; None for other products."""
    variables = product.node.attribute
    if len(variables) != 2 or len(product.inner) != 1:
        return None
    (row, column), (k,) = variables, product.inner
    left, right = (product.left, product.right) if row in product.rows else (product.right, product.left)
    found = []
    for factors, wanted in ((left, (row, k)), (right, (k, column))):
        if len(factors) != 1 or not isinstance(factors[0].attribute, Access):
            return None
        array, *indices = factors[0].inputs
        array = without_lets(array)
        is_read_whole = [i.attribute if i.op == "variable" else None for i in indices] == list(wanted)
        boxes = [[(r.low, r.high) for r in box] for box in (ranges_of(array), [v.range for v in wanted])]
        if not is_read_whole or boxes[0] != boxes[1] or component_types(array.type.result) != (product.type,):
            return None
        found.append(array)
    return found[0], found[1]


def is_contiguous_along(factors: tuple[Node, ...], variables: tuple[BoundVariable, ...]) -> bool:
    """Whether the last index of the first array in some factors depends on the last of these variables."""
    for factor in factors:
        for part in order_within_scope(factor):
            if part.op == "apply" and isinstance(part.attribute, Access):
                return variables[-1] in part.inputs[-1].free_variables
    return False


def emit_operand(
    emitter: Emitter, factors: tuple[Node, ...], indices: Indices, checked: bool = True
) -> tuple[list[str], str]:
    """Lines that compute one element of an operand, and the variable that holds it; `checked` reports poison."""
    type_ = factors[0].type
    with emitter.block() as block:
        for variables, linear_index in indices:
            emitter.delinearize(variables, linear_index)
        first, *others = values = [emitter.value(f) for f in factors]
        name = first.names[0]
        for value in others:
            name = operation_text(emitter.dialect, "*", type_, type_, [name, value.names[0]])
        poison = emitter.merge_poison([v.poison for v in values], block)
    return [*block.lines, *(emitter.report_poison(poison) if checked else [])], name


def operand_factors(product: MatrixProduct) -> list[tuple[tuple[Node, ...], Indices]]:
    """The factors of both operands: the left one at (batch, row, k), the right one at (batch, k, column)."""
    batch, k = (product.batch, "batch"), (product.inner, "k")
    return [
        (product.left, [batch, (product.rows, "row"), k]),
        (product.right, [batch, (product.columns, "column"), k]),
    ]
