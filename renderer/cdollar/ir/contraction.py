"""Recognizes sums of products (contractions, as in einsum), which targets evaluate as matrix products."""

from __future__ import annotations

from renderer.cdollar.ir.dag import Node

MAX_FACTORS = 6


def contraction_factors(node: Node) -> list[Node] | None:
    """The factors of a floating-point sum of products of which none depends on all variables; None for other nodes."""
    reduction, variables = node.attribute
    if reduction.name != "+" or node.type not in ("float", "double"):
        return None
    factors, stack = [], [node.inputs[0]]
    while stack:
        factor = stack.pop()
        if factor.op == "apply" and factor.attribute == "*":
            stack += factor.inputs
        else:
            factors.append(factor)
    everything = node.inputs[0].free_variables
    if not 2 <= len(factors) <= MAX_FACTORS or any(f.free_variables >= everything for f in factors):
        return None
    if any(not (f.free_variables & frozenset(variables)) and f.op == "reduce" for f in factors):
        return None
    return factors
