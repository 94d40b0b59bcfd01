"""What is evaluated once before reverse mode: every reduction that depends on bound variables."""

from __future__ import annotations

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.passes import ReductionHoister, is_computed_function


class LargeHoister(ReductionHoister):
    """Makes every reduction that depends on bound variables a function of its own, unless it is one already."""

    def _with_scope(self, node: ir.Node, scope: frozenset[ir.BoundVariable]) -> ir.Node:
        if is_computed_function(node) and all(n.op == "reduce" for n in node.inputs):
            inner = [scope | frozenset(n.attribute[1]) for n in node.inputs]
            parts = [super(LargeHoister, self)._with_scope(n, s) for n, s in zip(node.inputs, inner, strict=True)]
            return ir.with_inputs(self.dag, node, tuple(parts))
        return super()._with_scope(node, scope)

    def _reduction(self, node: ir.Node, scope: frozenset[ir.BoundVariable]) -> ir.Node:
        free = node.free_variables
        if free and free <= scope and all(isinstance(v.range, ir.Range) for v in free):
            return self._hoist(self._with_scope(node, free | frozenset(node.attribute[1])))
        return super()._reduction(node, scope)
