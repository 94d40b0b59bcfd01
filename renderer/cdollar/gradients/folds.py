"""The gradient of a fold: computes the state before each element forwards, then the adjoint of each state backwards.

A fold of n elements runs on one thread. Each of the n states and each of the n adjoints is a masked fold: a fold over
all elements, in which elements that do not come before (or after) the position leave the state as it is. These 2n
folds run in parallel: n^2 steps, on a GPU in about the time of a few folds.

Example: `fold(step, start, x(j))` has the states s(0) = start, s(j + 1) = step(s(j), x(j)). The adjoint of s(j) is the
adjoint of s(j + 1) times the derivative of step by the state at (s(j), x(j)), from the last j to the first; the adjoint
of x(j) is the adjoint of s(j + 1) times the derivative of step by the element. A position `here` is given by bound
variables over the fold's range: the element before which a state stands. `last` are the adjoints of the last state.
"""

import math

from renderer.cdollar.gradients.derivatives import Algebra, Context, NoDerivative, Nodes
from renderer.cdollar.gradients.rewrites import read_once, renamed
from renderer.cdollar.gradients.tangents import TangentFunctions, called_derivatives, smooth_outputs
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir import device_function as device
from renderer.cdollar.ir.passes import alpha_rename
from renderer.cdollar.ir.types import component_types, data_type, promoted_type

MAX_ELEMENTS = 1 << 16


class FoldGradient:
    """Differentiates one fold, `node`, over its `free` variables, given the adjoints of its state's components."""

    def __init__(self, dag: ir.Dag, tangents: TangentFunctions, node: ir.Node, free: Context) -> None:
        """Raises NoDerivative for more than MAX_ELEMENTS elements."""
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

    def run(self, last: list[ir.Node], active: set[ir.Node]) -> tuple[list[ir.Node | None], list[ir.Node | None]]:
        """The contributions to each component of the starts and of the elements; None for no contribution.

        `last` are the adjoints of the smooth components of the result. Contributions to starts are over the free
        variables, contributions to elements over the free and the reduced variables.
        """
        count, here = len(self.types), self.variables
        states = self.states(here)
        adjoints = read_once(self.dag, self.adjoints_after(here, last, states), (*self.free, *here))
        starts: list[ir.Node | None] = [None] * count
        if any(start in active for start in self.starts):
            first = self.adjoints_after((), last, states)
            for component, adjoint in zip(self.smooth, first, strict=True):
                starts[component] = adjoint
        elements: list[ir.Node | None] = [None] * len(self.elements)
        wanted = tuple(k for k, element in enumerate(self.elements) if element in active)
        if wanted:  # the step takes the components of the state, then the element's
            call = self.step_call((*states, *self.elements))
            derivatives = called_derivatives(self.tangents, call, tuple(count + k for k in wanted))
            for column, k in enumerate(wanted):
                type_ = promoted_type(self.elements[k].type)
                elements[k] = self.weighted_sum(adjoints, derivatives, column, len(wanted), type_)
        return starts, elements

    def weighted_sum(self, adjoints: Nodes, derivatives: Nodes, column: int, columns: int, type_: str) -> ir.Node:
        """The sum of the adjoints of the results times their derivatives by the argument `column`.

        `derivatives` holds the derivatives by all `columns` arguments of the first result, then of the second, ...
        """
        a, pairs = self.algebra, zip(adjoints, derivatives[column::columns], strict=True)
        products = (a.convert(a.op("*", a.convert(adjoint, d.type), d), type_) for adjoint, d in pairs)
        return a.sum(products) or a.number(0, type_)

    # States and their adjoints at an element

    def states(self, here: Context) -> Nodes:
        """The state before each element."""
        inner, elements = self.over_new_variables(self.elements)  # the variables of the masked fold
        mask, parameters = self.precedes(inner, here), self.step.parameters
        new = self.dag.components(self.step_call(tuple(map(self.local, parameters))))
        function = self.masked_step("masked", parameters[: len(self.types)], new)
        fold = self.fold(function, (*self.starts, mask, *elements), inner)
        return read_once(self.dag, self.dag.components(fold), (*self.free, *here))

    def adjoints_after(self, here: Context, last: list[ir.Node], states: Nodes) -> Nodes:
        """The adjoints of the state after the element `here`, or of the start if `here` is ().

        They are a fold from the last element down: its elements are read at mirrored indices, low + high - 1 - i.
        """
        inner, values = self.over_new_variables((*states, *self.elements))
        mask = self.precedes(here, inner) if here else self.dag.constant(True, "bool")  # the start is before all
        mirrors = {}
        for variable in inner:
            ends = self.algebra.number(variable.range.low + variable.range.high - 1, "int")
            mirrors[variable] = self.dag.apply("-", "int", ends, self.dag.bound_variable(variable))
        inputs = ir.substitute(self.dag, (mask, *values), mirrors)
        types = tuple(promoted_type(self.types[k]) for k in self.smooth)
        function = self.backward_step(types)
        return self.dag.components(self.fold(function, (*last, *inputs), inner))

    def backward_step(self, types: tuple[str, ...]) -> device.DeviceFunction:
        """The device function that maps the adjoints of a step's result to the adjoints of its state."""
        adjoints = tuple(device.Local(f"adjoint{k}", type_) for k, type_ in enumerate(types))
        call = self.step_call(tuple(map(self.local, self.step.parameters)))
        derivatives = called_derivatives(self.tangents, call, tuple(self.smooth))
        adjoints_after, columns = tuple(map(self.local, adjoints)), len(self.smooth)
        new = tuple(self.weighted_sum(adjoints_after, derivatives, k, columns, type_) for k, type_ in enumerate(types))
        return self.masked_step("back", adjoints, new)

    def masked_step(self, name: str, state: tuple[device.Local, ...], new: Nodes) -> device.DeviceFunction:
        """The step from `state` to `new`; where its mask, a parameter after the state, is false the state stays.

        The last parameters are the elements, or the state and the elements before a step backwards.
        """
        mask, old = device.Local("mask", "bool"), tuple(map(self.local, state))
        rest = tuple(p for p in self.step.parameters if p not in state)
        body = device.BranchOp(self.local(mask), (device.ReturnOp(new),), (device.ReturnOp(old),))
        name, result = f"{name}_{self.step.name}", data_type(tuple(local.type for local in state))
        return device.DeviceFunction(name, (*state, mask, *rest), result, self.step.span, (body,), [])

    # Nodes

    def local(self, local: device.Local) -> ir.Node:
        """The value of a local."""
        return self.dag.intern("local", local.type, (), local)

    def step_call(self, arguments: Nodes) -> ir.Node:
        """A call of the fold's step."""
        return self.dag.apply(ir.UserCall(self.step), ir.tuple_type(self.types), *arguments)

    def fold(self, function: device.DeviceFunction, inputs: Nodes, variables: Context) -> ir.Node:
        """A fold over variables."""
        attribute = ir.Reduction("fold", function, ordered=True), variables
        types = ir.tuple_type(component_types(function.result_type))
        node = self.dag.intern("reduce", types, inputs, attribute)
        self.dag.spans.setdefault(node, self.dag.spans[self.node])
        return node

    def over_new_variables(self, nodes: Nodes) -> tuple[Context, Nodes]:
        """New reduced variables in place of the fold's, and the nodes over them, with new reductions inside."""
        new, nodes = renamed(self.dag, nodes, self.variables, reduced=True)
        return new, alpha_rename(self.dag, nodes)

    def precedes(self, first: Context, second: Context) -> ir.Node:
        """True if the indices `first` come before `second`, in lexicographic order: the first ones differ slowest.

        For indices (i, j) and (k, l): i < k || i == k && j < l.
        """
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
