"""Sums by key for targets without scattered writes: each sum looks at all keys, in their order."""

from __future__ import annotations

from renderer.cdollar.frontend.diagnostics import SourceFile, Span
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.device_function import DeviceFunction, Local, ReturnOp
from renderer.cdollar.ir.types import FLOATS, INT, FunctionType, Scalar, component_types


class SumsByKey:
    """A pass that replaces scatter_add and histograms by functions of the key: O(keys x sums), with the same bits."""

    def __init__(self) -> None:
        """No additions yet."""
        self.additions: dict[str, DeviceFunction] = {}

    def __call__(self, dag: ir.Dag, roots: tuple[ir.Node, ...], remarks: list[str]) -> tuple[ir.Node, ...]:
        """The roots without such primitives."""

        def change(node: ir.Node, inputs: tuple[ir.Node, ...]) -> ir.Node:
            new = ir.with_inputs(dag, node, inputs)
            if new.op != "primitive" or new.attribute.name != "scatter_add":
                return new
            remarks.append(f"sums of {new.attribute} look at all keys: fragments write to one place only")
            scalar = component_types(new.type.result)[0]
            if scalar not in self.additions:
                self.additions[scalar] = addition(dag, scalar)
            return fold_of(dag, new, self.additions[scalar])

        return ir.rewrite(roots, change)


def fold_of(dag: ir.Dag, node: ir.Node, add: DeviceFunction) -> ir.Node:
    """A function of the key that adds the elements with this key, from the first to the last."""
    (scalar,), (bins,) = component_types(node.type.result), node.attribute.ranges
    domains = [domain_of(function) for function in node.inputs]
    elements = tuple(ir.BoundVariable("ijkmnp"[k % 6], "int", r, True) for k, r in enumerate(domains[0]))
    key = ir.BoundVariable("v", "int", bins)

    def element(position: int) -> ir.Node:
        """An input at the element; domains may start at different indices."""
        indices = []
        for variable, own, range_ in zip(elements, domains[0], domains[position], strict=True):
            index = dag.bound_variable(variable)
            if range_.low != own.low:
                index = dag.apply("+", "int", index, dag.constant(range_.low - own.low, "int"))
            indices.append(index)
        return dag.access(node.inputs[position], tuple(indices), (None,) * len(indices))

    is_here = dag.apply("==", "bool", element(0), dag.bound_variable(key))
    value = element(1) if len(node.inputs) > 1 else dag.constant(1, scalar)
    zero = dag.constant(0.0 if scalar in FLOATS else 0, scalar)
    kept = dag.apply("select", scalar, is_here, value, zero)
    inputs: tuple[ir.Node, ...] = (kept,)
    reduction = ir.Reduction("+")
    if scalar in FLOATS:
        inputs, reduction = (zero, kept), ir.Reduction("fold", add, True)
    total = dag.intern("reduce", scalar, inputs, (reduction, elements))
    return dag.function((key,), (total,), FunctionType(Scalar(scalar), (INT,), True))


def domain_of(function: ir.Node) -> tuple[ir.Range, ...]:
    """The box of a function's indices."""
    attribute = ir.without_lets(function).attribute
    return tuple(v.range for v in attribute) if isinstance(attribute, tuple) else attribute.ranges


def addition(dag: ir.Dag, scalar: str) -> DeviceFunction:
    """The device function of a sum."""
    locals_ = Local("sum", scalar), Local("element", scalar)
    nodes = [dag.intern("local", scalar, (), local) for local in locals_]
    total = dag.apply("+", scalar, *nodes)
    span = Span(SourceFile("<sums by key>", ""), 0, 0)
    return DeviceFunction("add", locals_, Scalar(scalar), span, (ReturnOp((total,)),), [])
