"""Recognizes sums of products (contractions, as in einsum) among reductions.

The NumPy target runs them as einsum; targets/matmul_kernels.py plans contractions that are matrix products.
"""

from renderer.cdollar.ir.dag import Node

MAX_FACTORS = 6


def contraction_factors(node: Node) -> list[Node] | None:
    """Return the factors of the "reduce" node of a floating-point sum of products.

    None for other reductions, for more than MAX_FACTORS factors, if a factor depends on all variables of the product
    (nothing is then gained), or if a factor is a reduction that depends on none of the reduced variables.
    """
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
    product_variables = node.inputs[0].free_variables
    if not 2 <= len(factors) <= MAX_FACTORS or any(f.free_variables >= product_variables for f in factors):
        return None
    if any(not (f.free_variables & frozenset(variables)) and f.op == "reduce" for f in factors):
        return None
    return factors
