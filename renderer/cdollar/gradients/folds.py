"""The gradient of a fold: the states before its elements forwards, then their adjoints backwards.

A fold of n elements runs on one thread. Every state, and every adjoint, is computed by a masked fold of its own. The n
of each run in parallel: n^2 steps, on a GPU in about the time of a few folds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from renderer.cdollar.gradients.derivatives import Algebra, NoDerivative
from renderer.cdollar.gradients.hoisting import read_once
from renderer.cdollar.gradients.tangents import TangentFunctions, called_derivatives, smooth_outputs
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir import device_function as device
from renderer.cdollar.ir.passes import alpha_rename
from renderer.cdollar.ir.types import Data, Record, Scalar, promoted_type

MAX_ELEMENTS = 1 << 16
Context = tuple[ir.BoundVariable, ...]


class FoldAdjoints(NamedTuple):
    """What a fold passes on: to its starts over the free variables, to its elements over the reduced ones too.

    By component; None where nothing is passed on.
    """

    starts: list[ir.Node | None]
    elements: list[ir.Node | None]


class FoldGradient:
    """Differentiates one fold, `node`, over its `free` variables, given the adjoints of its state's components."""

    def __init__(self, dag: ir.Dag, tangents: TangentFunctions, node: ir.Node, free: Context) -> None:
        """Differentiate nothing yet."""
        self.dag, self.algebra, self.tangents, self.node, self.free = dag, Algebra(dag), tangents, node, free
        reduction, self.variables = node.attribute
        self.step: device.DeviceFunction = reduction.function
        self.types = ir.scalar_types(node)
        self.starts, self.elements = node.inputs[: len(self.types)], node.inputs[len(self.types) :]
        self.smooth = smooth_outputs(self.step)  # the components of the state that have adjoints
        size = math.prod(v.range.size for v in self.variables)
        if size > MAX_ELEMENTS:
            reason = f"a fold of {size} elements has no gradient, which would take the square of that many steps"
            raise NoDerivative(f"{reason}; at most {MAX_ELEMENTS}", dag.spans.get(node))

    def run(self, given: list[ir.Node], active: set[ir.Node]) -> FoldAdjoints:
        """What is passed on; `given` are the adjoints of the smooth components of the result."""
        count, here = len(self.types), self.variables
        states = self.states(here)
        adjoints = self.adjoints(here, given, states)
        starts: list[ir.Node | None] = [None] * count
        if any(start in active for start in self.starts):
            first = self.backwards((), given, states)
            for component, adjoint in zip(self.smooth, first, strict=True):
                starts[component] = adjoint
        elements: list[ir.Node | None] = [None] * len(self.elements)
        wanted = tuple(k for k, element in enumerate(self.elements) if element in active)
        if wanted:
            call = self.dag.apply(ir.UserCall(self.step), ir.tuple_type(self.types), *states, *self.elements)
            derivatives = called_derivatives(self.tangents, call, tuple(count + k for k in wanted))
            for column, k in enumerate(wanted):
                type_ = promoted_type(self.elements[k].type)
                elements[k] = self.combined(adjoints, derivatives, column, len(wanted), type_)
        return FoldAdjoints(starts, elements)

    def combined(
        self, adjoints: tuple[ir.Node, ...], derivatives: tuple[ir.Node, ...], column: int, columns: int, type_: str
    ) -> ir.Node:
        """The sum of the adjoints of the results times their derivatives by one argument."""
        total = self.algebra.number(0, type_)
        for row, adjoint in enumerate(adjoints):
            derivative = derivatives[row * columns + column]
            product = self.algebra.op("*", self.algebra.convert(adjoint, derivative.type), derivative)
            total = self.algebra.op("+", total, self.algebra.convert(product, type_))
        return total

    # States and their adjoints at an element

    def states(self, here: Context) -> tuple[ir.Node, ...]:
        """The state before each element."""
        names, elements = self.renamed(self.elements)
        mask = self.before(names, here)
        result = self.step.result_type
        function = masked(self.dag, self.step, len(self.types), result)
        fold = self.fold(function, self.types, (*self.starts, mask, *elements), names)
        return self.tabulated(self.dag.components(fold), here)

    def adjoints(self, here: Context, given: list[ir.Node], states: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        """The adjoints of the state after each element."""
        return self.tabulated(self.backwards(here, given, states), here)

    def backwards(self, here: Context, given: list[ir.Node], states: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        """The adjoints of the state before all elements after `here`: a fold from the last element down."""
        names, parts = self.renamed((*states, *self.elements))
        mask = self.before(here, names) if here else self.dag.constant(True, "bool")
        mirrors = {}
        for variable in names:
            ends = self.algebra.number(variable.range.low + variable.range.high - 1, "int")
            mirror = self.dag.apply("-", "int", ends, self.dag.bound_variable(variable))
            mirrors[variable] = mirror
        inputs = ir.substitute(self.dag, (mask, *parts), mirrors)
        types = tuple(promoted_type(self.types[k]) for k in self.smooth)
        function = self.backward_step(types)
        return self.dag.components(self.fold(function, types, (*given, *inputs), names))

    def backward_step(self, types: tuple[str, ...]) -> device.DeviceFunction:
        """The adjoints of a step's state for those of its result, where the mask holds."""
        dag = self.dag
        adjoints = tuple(device.Local(f"adjoint{k}", type_) for k, type_ in enumerate(types))
        mask = device.Local("mask", "bool")
        parameters = self.step.parameters
        arguments = tuple(device.Local(p.name, p.type) for p in parameters)
        call = dag.apply(ir.UserCall(self.step), ir.tuple_type(self.types), *map(self.local, arguments))
        derivatives = called_derivatives(self.tangents, call, tuple(self.smooth))
        own = tuple(map(self.local, adjoints))
        new = tuple(
            self.combined(own, derivatives, column, len(self.smooth), type_) for column, type_ in enumerate(types)
        )
        body = device.BranchOp(self.local(mask), (device.ReturnOp(new),), (device.ReturnOp(own),))
        span = self.step.span
        result = data_of(types)
        return device.DeviceFunction(f"back_{self.step.name}", (*adjoints, mask, *arguments), result, span, (body,), [])

    # Parts

    def local(self, local: device.Local) -> ir.Node:
        """The value of a local."""
        return self.dag.intern("local", local.type, (), local)

    def fold(
        self, function: device.DeviceFunction, types: tuple[str, ...], inputs: tuple[ir.Node, ...], variables: Context
    ) -> ir.Node:
        """A fold over variables."""
        attribute = ir.Reduction("fold", function, True), variables
        node = self.dag.intern("reduce", ir.tuple_type(types), inputs, attribute)
        self.dag.spans.setdefault(node, self.dag.spans[self.node])
        return node

    def renamed(self, nodes: tuple[ir.Node, ...]) -> tuple[Context, tuple[ir.Node, ...]]:
        """Nodes over new reduced variables."""
        new = tuple(ir.BoundVariable(v.name, v.type, v.range, True) for v in self.variables)
        replacement = dict(zip(self.variables, map(self.dag.bound_variable, new), strict=True))
        return new, alpha_rename(self.dag, ir.substitute(self.dag, nodes, replacement))

    def before(self, first: Context, second: Context) -> ir.Node:
        """Whether the indices `first` come before `second`."""
        result: ir.Node | None = None
        for a, b in zip(reversed(first), reversed(second), strict=True):
            left, right = self.dag.bound_variable(a), self.dag.bound_variable(b)
            less = self.algebra.compare("<", left, right)
            if result is not None:
                tie = self.algebra.compare("&&", self.algebra.compare("==", left, right), result)
                less = self.algebra.compare("||", less, tie)
            result = less
        assert result is not None, "a fold has variables"
        return result

    def tabulated(self, values: tuple[ir.Node, ...], here: Context) -> tuple[ir.Node, ...]:
        """Values over the free variables and `here` as arrays that are computed once, read there."""
        variables = (*self.free, *here)
        result = data_of(tuple(value.type for value in values))
        return read_once(self.dag, values, variables, result)


def masked(dag: ir.Dag, step: device.DeviceFunction, count: int, result: Data) -> device.DeviceFunction:
    """A step that leaves the state as it is where its mask, after the state, is false."""
    state, elements = step.parameters[:count], step.parameters[count:]
    parameters = tuple(device.Local(p.name, p.type) for p in (*state, *elements))
    mask = device.Local("mask", "bool")
    nodes = tuple(dag.intern("local", p.type, (), p) for p in parameters)
    types = tuple(p.type for p in state)
    stepped = dag.components(dag.apply(ir.UserCall(step), ir.tuple_type(types), *nodes))
    test = dag.intern("local", "bool", (), mask)
    body = device.BranchOp(test, (device.ReturnOp(stepped),), (device.ReturnOp(nodes[:count]),))
    return device.DeviceFunction(
        f"masked_{step.name}", (*parameters[:count], mask, *parameters[count:]), result, step.span, (body,), []
    )


def data_of(types: tuple[str, ...]) -> Data:
    """A data type with these components."""
    return (
        Scalar(types[0])
        if len(types) == 1
        else Record("state", tuple((f"c{k}", Scalar(t)) for k, t in enumerate(types)))
    )
