"""Recognizes two forms of reductions: sums of products, and sums whose elements test the ends of a range.

The NumPy target runs sums of products (contractions) as einsum; targets/matmul_kernels.py plans kernels for matrix
products. `sum(a(j), j : p(i)..p(i + 1))` is lowered to a sum over all j of `j >= p(i) && j < p(i + 1) ? a(j) : 0`;
tested_ends() finds p(i) and p(i + 1) again, so that a kernel's loop runs from one to the other.
"""

from typing import NamedTuple

from renderer.cdollar.ir.dag import Access, BoundVariable, Node, RangeCheck, RuntimeScalar, UserCall, topological_order
from renderer.cdollar.ir.operations import neutral_element

MAX_FACTORS = 6


def product_factors(node: Node) -> list[Node]:
    """The factors of a product such as a * b * c, from left to right; any other node is its only factor."""
    factors, stack = [], [node]
    while stack:
        factor = stack.pop()
        if factor.op == "apply" and factor.attribute == "*":
            stack += reversed(factor.inputs)
        else:
            factors.append(factor)
    return factors


def contraction_factors(node: Node) -> list[Node] | None:
    """Return the factors of the "reduce" node of a floating-point sum of products, as b(k, j) and a(i, k), last first.

    None for other reductions, for more than MAX_FACTORS factors, if a factor depends on all variables of the product
    (nothing is then gained), or if a factor is a reduction that depends on none of the reduced variables.
    """
    reduction, variables = node.attribute
    if reduction.name != "+" or node.type not in ("float", "double"):
        return None
    factors = product_factors(node.inputs[0])[::-1]
    product_variables = node.inputs[0].free_variables
    if not 2 <= len(factors) <= MAX_FACTORS or any(f.free_variables >= product_variables for f in factors):
        return None
    if any(not (f.free_variables & frozenset(variables)) and f.op == "reduce" for f in factors):
        return None
    return factors


class TestedEnds(NamedTuple):
    """The ends of ranges that a reduction tests at each element, so that no loop needs to go beyond them.

    `ends`: for a reduced variable the nodes after `>=` and `<`, which depend on no reduced variable. `checks` are the
    RangeChecks of ends that arrays hold: a failed one is an error of the result even if the loop visits no element.
    """

    ends: dict[BoundVariable, dict[str, list[Node]]]
    checks: list[Node]

    @property
    def has_data_ends(self) -> bool:
        """True if arrays hold an end, as in `p(i)..p(i + 1)`."""
        return bool(self.ends and self.checks)


def tested_ends(node: Node) -> TestedEnds:
    """The ends that a "reduce" node tests: the elements of an operator are `v >= low && v < high ? value : neutral`."""
    (reduction, variables), body = node.attribute, node.inputs[0]
    tested = TestedEnds({}, [])
    if not reduction.is_operator or body.op != "apply" or body.attribute != "select":
        return tested
    test, _, other = body.inputs
    is_constant = other.op == "scalar" and not isinstance(other.attribute, RuntimeScalar)
    if not is_constant or other.attribute.number != neutral_element(reduction.name, node.type):
        return tested
    tests = [test]
    for test in tests:  # the operands of `&&` are appended
        if test.attribute == "&&":
            tests += test.inputs
        elif isinstance(test.attribute, RangeCheck) and not test.free_variables & frozenset(variables):
            tested.checks.append(test)
    checked = [end for check in tested.checks for end in check.inputs]
    for test in tests:
        if test.attribute in (">=", "<") and test.inputs[0].op == "variable" and test.inputs[0].attribute in variables:
            variable, end = test.inputs[0].attribute, test.inputs[1]
            # An end that may fail (an index out of bounds, an endless loop) ends the loop only if a check computes it.
            may_fail = any(isinstance(n.attribute, (Access, UserCall)) for n in topological_order([end]))
            if not end.free_variables & frozenset(variables) and (end in checked or not may_fail):
                tested.ends.setdefault(variable, {">=": [], "<": []})[test.attribute].append(end)
    return tested
