"""The pass of the target `glsl` that replaces scatters and scans (ir/primitives.py) by reductions.

A scatter combines the values of each key, as a histogram does. A fragment can write only to its own texel, so the
result of a key reads all keys, in order, and combines the values whose key is equal. A prefix sum reads the sums of
runs of 16 elements, of 16 runs, and so on.
"""

from collections.abc import Sequence

from renderer.cdollar.frontend.diagnostics import SourceFile, Span
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.device_function import DeviceFunction, Local, ReturnOp
from renderer.cdollar.ir.primitives import OPERATORS, identity
from renderer.cdollar.ir.types import FLOATS, Scalar, component_types


class SumsByKey:
    """A pass that replaces scatters by folds over all keys, O(keys x results), and scans by sums of runs.

    The results have the bits of the other targets' kernels (shaders/cdollar/scatter.cu and scan.cu).
    """

    def __init__(self) -> None:
        """`functions`: the combining functions, by operator and scalar type."""
        self.functions: dict[tuple[str, str], DeviceFunction] = {}

    def __call__(self, dag: ir.Dag, roots: ir.Nodes, remarks: list[str]) -> ir.Nodes:
        """Return the roots without scatters and scans; append a remark for each scatter."""

        def change(node: ir.Node, inputs: ir.Nodes) -> ir.Node:
            """Replaces a scan by prefix sums, and a scatter by a fold."""
            new = ir.with_inputs(dag, node, inputs)
            is_scan = new.op == "primitive" and new.attribute.name == "scan"
            if new.op != "primitive" or not is_scan and new.attribute.name not in OPERATORS:
                return new
            kind = "+" if is_scan else OPERATORS[new.attribute.name], component_types(new.type.result)[0]
            if kind not in self.functions:
                self.functions[kind] = operation(dag, *kind)
            if is_scan:
                return prefix_sums(dag, new.inputs[0], new.attribute.ranges, self.functions[kind])
            remarks.append(f"all of {new.attribute} look at all keys: fragments write to one place only")
            return fold_over_elements(dag, new, self.functions[kind])

        return ir.rewrite(roots, change)


def fold_over_elements(dag: ir.Dag, node: ir.Node, combine: DeviceFunction) -> ir.Node:
    """Return the function of a key that combines the values with this key, from the first element to the last.

    `node` is the scatter; `combine` the function for sums and products of floats, whose order matters.
    """
    (scalar,), (bins,), name = component_types(node.type.result), node.attribute.ranges, node.attribute.name
    domains = [ir.domain_ranges(function) for function in node.inputs]
    elements = ir.new_variables(domains[0], reduced=True)
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
        inputs, reduction = (start, kept), ir.Reduction("fold", combine, ordered=True)
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


RUN = 16  # elements of a run, runs of a segment, and segments of a block, as in shaders/cdollar/scan.cu


def prefix_sums(dag: ir.Dag, function: ir.Node, ranges: ir.Ranges, add: DeviceFunction) -> ir.Node:
    """Return the inclusive prefix sums of a function along its last dimension; `add` adds two numbers.

    Floats are added in the order of shaders/cdollar/scan.cu: base + (outer + (middle + inner)), which are the sums of
    the blocks before, of the block's segments before, of the segment's runs before, and of the run up to the element.
    An element reads at most 64 numbers. Several blocks need the prefix sums of their totals. With 3 elements a run and
    3 runs a segment, element 16 of a row adds these:

        0 1 2 | 3 4 5 | 6 7 8 || 9 10 11 | 12 13 14 | 15 16 17
        ------ outer --------    -------- middle ---  inner (15, 16)
    """
    sums, row = _RowSums(dag, add), ranges[-1]
    op, scalar = sums.op, sums.scalar
    variables = ir.new_variables(ranges)
    *batch, index = map(dag.bound_variable, variables)
    position = op("-", index, row.low)
    in_run = op("%", position, RUN)
    total = sums.run_sum(function, row, batch, op("-", index, in_run), op("+", in_run, 1))
    # `source` has the sums of `span` elements each, over the indices `bounds`; `own` is the index of the sum that
    # contains the element. The first two rounds add `middle` and `outer`.
    source, span, bounds = function, 1, row
    for _ in range(3):
        if bounds.size <= RUN:
            return dag.abstraction(variables, (total,), is_array=True)
        runs = ir.Range(0, -(-bounds.size // RUN))
        source, span, bounds = sums.run_sums(source, bounds, (*ranges[:-1], runs)), span * RUN, runs
        own = op("/", position, span)
        if span < RUN**3:
            in_run = op("%", own, RUN)
            before = sums.run_sum(source, bounds, batch, op("-", own, in_run), in_run)
            total = op("+", before, total, scalar)
    blocks = prefix_sums(dag, source, (*ranges[:-1], bounds), add)
    base = dag.access(blocks, (*batch, op("-", own, 1)))
    base = dag.apply("select", scalar, op(">", own, 0, "bool"), base, sums.zero)
    return dag.abstraction(variables, (op("+", base, total, scalar),), is_array=True)


class _RowSums:
    """Nodes of sums of at most RUN neighboring elements of a row; `add` is the function that adds two floats."""

    def __init__(self, dag: ir.Dag, add: DeviceFunction) -> None:
        self.dag, self.add = dag, add
        (self.scalar,) = component_types(add.result_type)
        self.zero = dag.constant(0.0 if self.scalar in FLOATS else 0, self.scalar)

    def op(self, name: str, a: ir.Node, b: ir.Node | int, type_: str = "int") -> ir.Node:
        """An operation on two nodes, or on a node and an integer."""
        return self.dag.apply(name, type_, a, self.dag.constant(b, "int") if isinstance(b, int) else b)

    def run_sum(
        self, source: ir.Node, bounds: ir.Range, batch: Sequence[ir.Node], start: ir.Node, count: ir.Node | int
    ) -> ir.Node:
        """The sum of `count` elements from `start` on, from the left to the right, below the end of `bounds`.

        They are elements of a row of `source`, whose other indices are `batch`.
        """
        scalar, variable = self.scalar, ir.BoundVariable("q", "int", ir.Range(0, RUN), reduced=True)
        offset = self.dag.bound_variable(variable)
        index, op = self.op("+", start, offset), self.op
        is_added = op("&&", op("<", offset, count, "bool"), op("<", index, bounds.high, "bool"), "bool")
        element = self.dag.apply("select", scalar, is_added, self.dag.access(source, (*batch, index)), self.zero)
        if scalar in FLOATS:
            fold = ir.Reduction("fold", self.add, ordered=True)
            return self.dag.intern("reduce", scalar, (self.zero, element), (fold, (variable,)))
        return self.dag.intern("reduce", scalar, (element,), (ir.Reduction("+"), (variable,)))

    def run_sums(self, source: ir.Node, bounds: ir.Range, ranges: ir.Ranges) -> ir.Node:
        """The function of the sums of all runs of each row of `source`; `ranges` are the ranges of its indices."""
        variables = ir.new_variables(ranges)
        *batch, run = map(self.dag.bound_variable, variables)
        total = self.run_sum(source, bounds, batch, self.op("+", self.op("*", run, RUN), bounds.low), RUN)
        return self.dag.abstraction(variables, (total,), is_array=True)
