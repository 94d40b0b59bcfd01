"""Forward mode: makes the tangent function of a device function, which returns the derivatives of its results.

The tangent function has the same loops and branches. Each floating-point local has a tangent for each differentiated
parameter; every statement that stores the local stores the tangents too.

Example: `float f(float x, float y) { float s = x * y; return s + x; }` differentiated by both parameters, `active` (0,
1), becomes a function of the same parameters with the locals d0_x = 1, d1_x = 0, d0_y = 0, d1_y = 1; it stores s, d0_s
= d0_x * y + x * d0_y and d1_s likewise, and returns (d0_s + d0_x, d1_s + d1_x). "Result by result" below: all
derivatives of the first result, then all of the second.
"""

from renderer.cdollar.gradients.derivatives import Algebra, NoDerivative, Nodes, contribution, is_smooth
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir import device_function as device
from renderer.cdollar.ir.types import FLOATS, component_types, data_type, promoted_type

MAX_TANGENTS = 64  # derivatives of one function: its floating-point results times the differentiated parameters
Tangents = tuple[ir.Node | None, ...]  # the derivative by each differentiated parameter; None is 0


def smooth_outputs(function: device.DeviceFunction) -> list[int]:
    """The components of the result that have derivatives."""
    return [k for k, type_ in enumerate(component_types(function.result_type)) if promoted_type(type_) in FLOATS]


class TangentFunctions:
    """The tangent functions of a program, each made once."""

    def __init__(self, dag: ir.Dag):
        self.dag = dag
        self.made: dict[tuple[int, tuple[int, ...]], device.DeviceFunction] = {}

    def tangent_function(self, function: device.DeviceFunction, active: tuple[int, ...]) -> device.DeviceFunction:
        """The derivative of each smooth result by each parameter component of `active`, result by result."""
        key = function.unique_id, active
        if key not in self.made:
            self.made[key] = _TangentBuilder(self, function, active).run()
        return self.made[key]


class _TangentBuilder:
    """Makes one tangent function."""

    def __init__(self, functions: TangentFunctions, function: device.DeviceFunction, active: tuple[int, ...]):
        self.functions, self.function, self.active = functions, function, active
        self.dag, self.algebra = functions.dag, Algebra(functions.dag)
        self.tangents: dict[device.Local, tuple[device.Local, ...]] = {}
        self.arrays: dict[device.LocalArray, tuple[device.LocalArray, ...]] = {}
        self.known: dict[tuple[ir.Node, int], Tangents] = {}  # tangents by node and number of its component
        self.visited: set[ir.Node] = set()
        self.outputs = smooth_outputs(function)
        if len(self.outputs) * len(active) > MAX_TANGENTS:
            reason = f"{function.name} has more than {MAX_TANGENTS} derivatives"
            raise NoDerivative(reason, function.span)

    def run(self) -> device.DeviceFunction:
        """The tangent function: the tangents of parameters start as 1 and 0, then the statements follow."""
        for local in (*self.function.parameters, *self.function.locals):
            type_ = promoted_type(local.type)
            if type_ in FLOATS:
                self.tangents[local] = tuple(device.Local(f"d{k}_{local.name}", type_) for k in self.active)
        seeds: list[tuple[device.Local, ir.Node]] = []
        for position, parameter in enumerate(self.function.parameters):
            for k, tangent in zip(self.active, self.tangents.get(parameter, ()), strict=False):  # () for integers
                seeds.append((tangent, self.algebra.number(k == position, parameter.type)))  # 1 by itself, else 0
        types = component_types(self.function.result_type)
        result = data_type(tuple(promoted_type(types[o]) for o in self.outputs for _ in self.active))
        start = device.StoreOp(tuple(local for local, _ in seeds), tuple(node for _, node in seeds))
        others = [*self.function.locals, *(t for tangents in self.tangents.values() for t in tangents)]
        body = (start, *self.block(self.function.body))
        name = f"tangent_{self.function.name}"
        return device.DeviceFunction(name, self.function.parameters, result, self.function.span, body, others)

    def block(self, statements: tuple[device.Statement, ...]) -> tuple[device.Statement, ...]:
        """The statements, which now store tangents too."""
        return tuple(map(self.statement, statements))

    def statement(self, statement: device.Statement) -> device.Statement:
        """A statement, which now stores tangents too."""
        if isinstance(statement, device.StoreOp):
            targets, nodes = list(statement.targets), list(statement.nodes)
            for target, node in zip(statement.targets, statement.nodes, strict=True):
                new = self.element_tangents(target) if isinstance(target, ir.Node) else self.tangents.get(target, ())
                targets += new
                nodes += self.tangents_with_zeros(node) if new else ()
            return device.StoreOp(tuple(targets), tuple(nodes))
        if isinstance(statement, device.ClearOp):
            return device.ClearOp((*statement.arrays, *(t for a in statement.arrays for t in self.array_tangents(a))))
        if isinstance(statement, device.BranchOp):
            return device.BranchOp(statement.condition, self.block(statement.if_true), self.block(statement.if_false))
        if isinstance(statement, device.LoopOp):
            step, body = self.block(statement.step), self.block(statement.body)
            return device.LoopOp(statement.condition, step, body, statement.test_first)
        if isinstance(statement, device.ReturnOp):
            return device.ReturnOp(tuple(t for o in self.outputs for t in self.tangents_with_zeros(statement.nodes[o])))
        return statement

    def array_tangents(self, array: device.LocalArray) -> tuple[device.LocalArray, ...]:
        """The tangents of a local array, one for each differentiated parameter; () for integers."""
        if array not in self.arrays:
            type_ = promoted_type(array.type)
            names = (f"d{k}_{array.name}" for k in self.active if type_ in FLOATS)
            self.arrays[array] = tuple(device.LocalArray(name, type_, array.shape) for name in names)
        return self.arrays[array]

    def element_tangents(self, node: ir.Node) -> Nodes:
        """The tangents of an element of a local array."""
        tangents = [self.dag.intern("element", t.type, node.inputs, t) for t in self.array_tangents(node.attribute)]
        for tangent in tangents:
            self.dag.spans.setdefault(tangent, self.dag.spans[node])
        return tuple(tangents)

    def tangents_with_zeros(self, node: ir.Node) -> Nodes:
        """The tangents of a node, with constants 0 in place of None."""
        zero = self.algebra.number(0, node.type)
        return tuple(t or zero for t in self.expression_tangents(node))

    def expression_tangents(self, root: ir.Node) -> Tangents:
        """The tangents of an expression over locals; nodes of earlier expressions are not visited again."""
        none: Tangents = (None,) * len(self.active)
        known, visited = self.known, self.visited
        for node in ir.topological_order([root], lambda node: () if node in visited else node.inputs[::-1]):
            if node in visited:
                continue
            visited.add(node)
            if node.op == "local":
                tangents = self.tangents.get(node.attribute, ())
                known[node, 0] = tuple(self.dag.intern("local", t.type, (), t) for t in tangents) or none
            elif node.op == "element":
                known[node, 0] = self.element_tangents(node) or none
            elif isinstance(node.attribute, ir.UserCall):
                self.call(node, known)
            elif isinstance(node.attribute, ir.Component):
                known[node, 0] = known.get((node.inputs[0], node.attribute.index), none)
            elif is_smooth(node) and node.op == "apply":
                known[node, 0] = self.operation(node, [known.get((child, 0), none) for child in node.inputs])
        return known.get((root, 0), none)

    def operation(self, node: ir.Node, operands: list[Tangents]) -> Tangents:
        """The tangents of an elementary operation."""
        result: list[ir.Node | None] = []
        for k in range(len(self.active)):
            given = [(position, tangents[k]) for position, tangents in enumerate(operands)]
            if node.attribute == "convert":
                result.append(self.algebra.sum(self.algebra.convert(t, node.type) for _, t in given if t is not None))
                continue
            terms = [contribution(self.algebra, node, position, t) for position, t in given if t is not None]
            result.append(self.algebra.sum(self.algebra.where(t.guard, t.value) for t in terms if t is not None))
        return tuple(result)

    def call(self, node: ir.Node, known: dict[tuple[ir.Node, int], Tangents]) -> None:
        """The tangents of a call's results: the call's derivatives times the tangents of its arguments."""
        called, count, a = node.attribute.function, len(self.active), self.algebra
        arguments = [known.get((child, 0), (None,) * count) for child in node.inputs]
        active = tuple(p for p, tangents in enumerate(arguments) if any(t is not None for t in tangents))
        outputs = smooth_outputs(called)
        if not active or not outputs:
            return
        derivatives = called_derivatives(self.functions, node, active)
        for row, output in enumerate(outputs):  # the chain rule: a sum over the active arguments, for each parameter
            by_argument = list(zip(derivatives[row * len(active) :], (arguments[p] for p in active), strict=False))
            pairs = ([(d, tangents[k]) for d, tangents in by_argument] for k in range(count))
            known[node, output] = tuple(
                a.sum(a.op("*", d, a.convert(t, d.type)) for d, t in column if t is not None) for column in pairs
            )


def called_derivatives(functions: TangentFunctions, call: ir.Node, active: tuple[int, ...]) -> Nodes:
    """The derivatives of a call's smooth results by its arguments at `active`, result by result."""
    tangent = functions.tangent_function(call.attribute.function, active)
    types = ir.tuple_type(component_types(tangent.result_type))
    return functions.dag.components(functions.dag.apply(ir.UserCall(tangent), types, *call.inputs))
