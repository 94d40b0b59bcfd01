"""The pass of the target `glsl` that replaces scatters (ir/primitives.py) by reductions.

A scatter combines the values of each key, as a histogram does. A fragment can write only to its own texel, so the
result of a key reads all keys, in order, and combines the values whose key is equal.
"""

from renderer.cdollar.frontend.diagnostics import SourceFile, Span
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.device_function import DeviceFunction, Local, ReturnOp
from renderer.cdollar.ir.primitives import OPERATORS, identity
from renderer.cdollar.ir.types import FLOATS, Scalar, component_types


class SumsByKey:
    """A pass over the DAG that replaces scatters by folds over all keys: O(keys x results), with the same bits."""

    def __init__(self) -> None:
        """`functions`: the combining functions, by operator and scalar type."""
        self.functions: dict[tuple[str, str], DeviceFunction] = {}

    def __call__(self, dag: ir.Dag, roots: ir.Nodes, remarks: list[str]) -> ir.Nodes:
        """Return the roots without scatters; append a remark for each."""

        def change(node: ir.Node, inputs: ir.Nodes) -> ir.Node:
            new = ir.with_inputs(dag, node, inputs)
            if new.op != "primitive" or new.attribute.name not in OPERATORS:
                return new
            remarks.append(f"all of {new.attribute} look at all keys: fragments write to one place only")
            kind = OPERATORS[new.attribute.name], component_types(new.type.result)[0]
            if kind not in self.functions:
                self.functions[kind] = operation(dag, *kind)
            return fold_over_elements(dag, new, self.functions[kind])

        return ir.rewrite(roots, change)


def fold_over_elements(dag: ir.Dag, node: ir.Node, combine: DeviceFunction) -> ir.Node:
    """Return the function of a key that combines the values with this key, from the first element to the last.

    `node` is the scatter; `combine` the function for sums and products of floats, whose order matters.
    """
    (scalar,), (bins,), name = component_types(node.type.result), node.attribute.ranges, node.attribute.name
    domains = [ir.domain_ranges(function) for function in node.inputs]
    elements = tuple(ir.BoundVariable("ijkmnp"[k % 6], "int", r, True) for k, r in enumerate(domains[0]))
    key = ir.BoundVariable("v", "int", bins)

    def element(position: int) -> ir.Node:
        """The access of input `position` at the element; the domains of inputs may start at different indices."""
        indices = []
        for variable, first, range_ in zip(elements, domains[0], domains[position], strict=True):
            index = dag.bound_variable(variable)
            if range_.low != first.low:
                index = dag.apply("+", "int", index, dag.constant(range_.low - first.low, "int"))
            indices.append(index)
        return dag.access(node.inputs[position], tuple(indices))

    has_key = dag.apply("==", "bool", element(0), dag.bound_variable(key))
    value = element(1) if len(node.inputs) > 1 else dag.constant(1, scalar)
    number = identity(name, scalar)
    start = dag.constant(float(number) if scalar in FLOATS else number, scalar)
    kept = dag.apply("select", scalar, has_key, value, start)
    inputs: ir.Nodes = (kept,)
    reduction = ir.Reduction(OPERATORS[name])
    if scalar in FLOATS and name in ("scatter_add", "scatter_mul"):
        inputs, reduction = (start, kept), ir.Reduction("fold", combine, True)
    total = dag.intern("reduce", scalar, inputs, (reduction, elements))
    if scalar in FLOATS and name in ("scatter_max", "scatter_min"):
        total = without_nan(dag, total, start)
    return dag.abstraction((key,), (total,), is_array=True)


def without_nan(dag: ir.Dag, extremum: ir.Node, start: ir.Node) -> ir.Node:
    """Correct the node of an extremum: `start` if all values are NaN, and +0 for -0."""
    zero = dag.constant(0.0, extremum.type)
    positive = dag.apply("select", extremum.type, dag.apply("==", "bool", extremum, zero), zero, extremum)
    return dag.apply("select", extremum.type, dag.apply("isnan", "bool", extremum), start, positive)


def operation(dag: ir.Dag, operator: str, scalar: str) -> DeviceFunction:
    """Return the device function that applies an operator to a partial result and an element."""
    locals_ = Local("sum", scalar), Local("element", scalar)
    nodes = [dag.intern("local", scalar, (), local) for local in locals_]
    total = dag.apply(operator, scalar, *nodes)
    span = Span(SourceFile("<sums by key>", ""), 0, 0)
    return DeviceFunction("combine", locals_, Scalar(scalar), span, (ReturnOp((total,)),), [])
