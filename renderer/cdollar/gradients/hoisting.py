"""What gradients evaluate once: reductions that depend on bound variables, and values that are read more than once."""

from __future__ import annotations

from typing import Any

from renderer.cdollar.gradients.inversion import Context
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.passes import ReductionHoister, alpha_rename, is_computed_function
from renderer.cdollar.ir.types import FunctionType, Scalar


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


def read_once(dag: ir.Dag, values: tuple[ir.Node, ...], variables: Context, result: Any) -> tuple[ir.Node, ...]:
    """Values over `variables` as components, of type `result`, of a function that is computed once and read there."""
    new = tuple(ir.BoundVariable(v.name, v.type, v.range) for v in variables)
    replacement = dict(zip(variables, map(dag.bound_variable, new), strict=True))
    bodies = alpha_rename(dag, ir.substitute(dag, values, replacement))
    type_ = FunctionType(result, tuple(Scalar(v.type) for v in variables), True)
    function = dag.function(new, bodies, type_)
    if not function.free_variables:
        function = dag.intern("let", type_, (function,))
    read = dag.access(function, tuple(map(dag.bound_variable, variables)), (None,) * len(variables))
    return dag.components(read)
