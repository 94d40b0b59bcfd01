"""Marks of what is differentiated by: let nodes with an attribute, which nothing else takes for equal."""

from __future__ import annotations

from typing import NamedTuple

from renderer.cdollar.ir import dag as ir


class Leaf(NamedTuple):
    """The attribute of a let node that marks what is differentiated by."""

    number: int


def mark(dag: ir.Dag, node: ir.Node) -> ir.Node:
    """A number or function as something to differentiate by: the same value, but a node of its own."""
    return dag.intern("let", node.type, (node,), Leaf(next(ir.unique_ids)))


def is_leaf(node: ir.Node) -> bool:
    """Whether a node is marked."""
    return node.op == "let" and isinstance(node.attribute, Leaf)


def without_marks(dag: ir.Dag, roots: tuple[ir.Node, ...], marks: set[Leaf]) -> tuple[ir.Node, ...]:
    """The roots with marked nodes replaced by what they stand for."""

    def change(node: ir.Node, inputs: tuple[ir.Node, ...]) -> ir.Node:
        return inputs[0] if is_leaf(node) and node.attribute in marks else ir.with_inputs(dag, node, inputs)

    return ir.rewrite(roots, change)
