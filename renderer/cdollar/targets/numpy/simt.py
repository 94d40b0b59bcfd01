"""Interprets device functions for the NumPy target as a GPU does (SIMT): every point of the call is a lane.

A device function (ir/device_function.py) is a C$ function with branches and loops. A statement runs for all active
lanes at once; lanes may diverge at branches and loops. Methods that run statements take the active lanes and return
the lanes that continue with the next statement; lanes that leave by a jump are in the LoopExits of the innermost loop,
and lanes that return, or read outside of a local array, are in neither.
"""

from collections.abc import Sequence

import numpy as np

from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir import device_function
from renderer.cdollar.ir.dag import Component, Node, Nodes, UserCall, topological_order
from renderer.cdollar.ir.operations import evaluate
from renderer.cdollar.ir.types import DTYPES, component_types
from renderer.cdollar.targets.numpy.spaces import Evaluated, NodeValue, Poison, merge_poison, propagate_poison
from renderer.records import dataclass, field

MAX_ITERATIONS = 300_000  # rounds of a loop, after which it is taken to be endless
Lanes = np.ndarray | None  # the indices of the active lanes; None means all


class LoopLimitExceeded(ProgramError):
    """A loop of a device function exceeded its limit of iterations."""

    def __init__(self, function: device_function.DeviceFunction, limit: int) -> None:
        """The error of a loop in `function`, which may run `limit` times."""
        message = f"a loop of {function.name} ran more than {limit} times at one point"
        hint = "it may never end"
        if limit == MAX_ITERATIONS:
            hint += "; on a device it may run longer: `--target opencl`"
        super().__init__("CS0606", function.span, message, hint)


@dataclass
class LoopExits:
    """Lanes that left a loop by `break` or its condition, and lanes that left the current round by `continue`."""

    broken: list[np.ndarray] = field(default_factory=list)
    continued: list[np.ndarray] = field(default_factory=list)


class SimtInterpreter:
    """Calls a device function at all points at once; a function called inside has an interpreter of its body."""

    def __init__(self, function: device_function.DeviceFunction) -> None:
        """Prepare calls of a function."""
        self.function = function
        self.count = 0  # lanes of the current call
        self.iterations = 0  # rounds of all loops of the current call
        self.locals: dict[device_function.Local, np.ndarray] = {}
        self.arrays: dict[device_function.LocalArray, np.ndarray] = {}  # (elements, lanes)
        self.poison: Poison | None = None  # marks the lanes of this call that read outside of an array; such lanes end
        self.failure: Poison | None = None  # `poison` of the last call that had any, in the shape of its arguments
        self.results: list[np.ndarray] = []  # a component of the result each, (lanes,)
        self.orders: dict[tuple[int, ...], list[Node]] = {}  # topological orders, by the ids of their roots

    def call(self, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Call the function; return the components of the result, in the common shape of the arguments."""
        shape = np.broadcast_shapes(*(np.shape(a) for a in arguments)) if arguments else ()
        self.count, self.iterations = int(np.prod(shape)), 0
        self.locals, self.arrays, self.poison = {}, {}, None
        for local, argument in zip(self.function.parameters, arguments, strict=True):
            self.locals[local] = np.array(np.broadcast_to(argument, shape), DTYPES[local.type]).reshape(-1)
        self.results = [np.zeros(self.count, DTYPES[t]) for t in component_types(self.function.result_type)]
        with np.errstate(all="ignore"):
            self.block(self.function.body, None, LoopExits())
        if self.poison is not None:
            self.failure = Poison(self.poison.where.reshape(shape), self.poison.node, "")
        return [r.reshape(shape) for r in self.results]

    def active_count(self, active: Lanes) -> int:
        """The number of active lanes."""
        return self.count if active is None else active.size

    def lane_indices(self, active: Lanes) -> np.ndarray:
        """The indices of the active lanes."""
        return np.arange(self.count) if active is None else active

    def block(self, body: tuple[device_function.Statement, ...], active: Lanes, exits: LoopExits) -> Lanes:
        """Run statements until no lane is active."""
        for statement in body:
            if self.active_count(active) == 0:
                break
            active = self.statement(statement, active, exits)
            if self.poison is not None:
                active = self.without_poison(self.poison, active)
        return active

    def without_poison(self, poison: Poison, active: Lanes) -> np.ndarray:
        """The active lanes that have no poison."""
        lanes = self.lane_indices(active)
        kept: np.ndarray = lanes[~poison.where[lanes]]
        return kept

    def statement(self, statement: device_function.Statement, active: Lanes, exits: LoopExits) -> Lanes:
        """Run one statement."""
        if isinstance(statement, device_function.StoreOp):
            self.store(statement, active)
            return active
        if isinstance(statement, device_function.ClearOp):
            for array in statement.arrays:
                cleared = self.arrays.setdefault(array, np.zeros((array.size, self.count), DTYPES[array.type]))
                cleared[:, self.lane_indices(active)] = 0
            return active
        if isinstance(statement, device_function.BranchOp):
            return self.branch(statement, active, exits)
        if isinstance(statement, device_function.LoopOp):
            return self.loop(statement, active)
        if isinstance(statement, device_function.JumpOp):
            (exits.broken if statement.kind == "break" else exits.continued).append(self.lane_indices(active))
        elif isinstance(statement, device_function.ReturnOp):
            for result, value in zip(self.results, self.values(statement.nodes, active), strict=True):
                result[... if active is None else active] = value
        return np.empty(0, np.int64)  # no lane continues

    def store(self, statement: device_function.StoreOp, active: Lanes) -> None:
        """Assign locals and elements in the active lanes; an element outside of its array poisons the lane."""
        elements = statement.elements if self.arrays else ()  # targets in local arrays
        indices = tuple(element.inputs[0] for element in elements)
        # Elements are evaluated for the poison of their indices alone.
        values = self.values((*statement.nodes, *elements, *indices), active)
        stored, positions = values[: len(statement.nodes)], iter(values[len(statement.nodes) + len(elements) :])
        for local, value in zip(statement.targets, stored, strict=True):
            if isinstance(local, Node):
                lanes = self.lane_indices(active)
                position = np.clip(np.broadcast_to(next(positions), lanes.shape), 0, local.attribute.size - 1)
                self.arrays[local.attribute][position, lanes] = value
                continue
            if active is None:
                self.locals[local] = np.array(np.broadcast_to(value, (self.count,)), DTYPES[local.type])
                continue
            if local not in self.locals:
                self.locals[local] = np.zeros(self.count, DTYPES[local.type])
            self.locals[local][active] = value

    def condition(self, node: Node, active: Lanes) -> np.ndarray:
        """A condition in each active lane."""
        return np.broadcast_to(self.values((node,), active)[0], (self.active_count(active),))

    def branch(self, statement: device_function.BranchOp, active: Lanes, exits: LoopExits) -> Lanes:
        """Run both branches, each for its lanes."""
        condition = self.condition(statement.condition, active)
        if condition.all():
            return self.block(statement.if_true, active, exits)
        if not condition.any():
            return self.block(statement.if_false, active, exits)
        lanes = self.lane_indices(active)
        if_true = self.block(statement.if_true, lanes[condition], exits)
        if_false = self.block(statement.if_false, lanes[~condition], exits)
        if self.active_count(if_true) + self.active_count(if_false) == lanes.size:
            return active
        return np.sort(np.concatenate([self.lane_indices(if_true), self.lane_indices(if_false)]))

    def loop(self, statement: device_function.LoopOp, active: Lanes) -> Lanes:
        """Run a loop until all lanes have left it."""
        exits = LoopExits()
        first, entered = True, active
        while self.active_count(active):
            self.iterations += 1
            if self.iterations > MAX_ITERATIONS:
                raise LoopLimitExceeded(self.function, MAX_ITERATIONS)
            if statement.condition is not None and (statement.test_first or not first):
                condition = self.condition(statement.condition, active)
                if not condition.all():
                    lanes = self.lane_indices(active)
                    exits.broken.append(lanes[~condition])
                    active = lanes[condition]
            if self.poison is not None:
                active = self.without_poison(self.poison, active)
            first = False
            exits.continued = []
            active = self.block(statement.body, active, exits)
            if exits.continued:
                active = np.sort(np.concatenate([self.lane_indices(active), *exits.continued]))
            active = self.block(statement.step, active, exits)
        if sum(lanes.size for lanes in exits.broken) == self.active_count(entered):
            return entered  # no lane ended by `return` or by poison; None, for all lanes, stays None
        return np.sort(np.concatenate(exits.broken)) if exits.broken else np.empty(0, np.int64)

    def values(self, roots: Nodes, active: Lanes) -> list[np.ndarray]:
        """The values of expressions in the active lanes."""
        key = tuple(map(id, roots))
        if key not in self.orders:
            self.orders[key] = topological_order(roots)
        values: dict[int, NodeValue] = {}
        poisons: dict[int, Poison | None] = {}
        has_checks = self.function.has_checks
        for node in self.orders[key]:
            operands = [values[id(child)] for child in node.inputs]
            values[id(node)], read_poison = self.node(node, operands, active)
            if not has_checks:
                continue
            inputs = [poisons[id(child)] for child in node.inputs]
            poisons[id(node)] = merge_poison([*inputs, read_poison])
            if isinstance(node.attribute, str):
                poisons[id(node)] = propagate_poison(node.attribute, list(zip(operands, inputs, strict=True)))
        poison = merge_poison(poisons[id(root)] for root in roots) if has_checks else None
        if poison is not None and np.any(poison.where):
            where = np.zeros(self.count, bool)
            where[self.lane_indices(active)] = poison.where
            self.poison = merge_poison([self.poison, Poison(where, poison.node, poison.index)])
        return [values[id(root)] for root in roots]

    def node(self, node: Node, operands: list[NodeValue], active: Lanes) -> Evaluated:
        """The values of a node whose inputs are known, and the poison of what it reads itself."""
        if node.op == "element":
            array, lanes = self.arrays[node.attribute], self.lane_indices(active)
            index = np.broadcast_to(operands[0], lanes.shape)
            outside = (index < 0) | (index >= node.attribute.size)
            element = array[np.clip(index, 0, node.attribute.size - 1), lanes]
            return element, Poison(outside, node, "") if np.any(outside) else None
        if isinstance(node.attribute, UserCall):
            called = SimtInterpreter(node.attribute.function)
            components = called.call(operands)
            return components if isinstance(node.type, tuple) else components[0], called.failure
        return self.plain(node, operands, active), None

    def plain(self, node: Node, operands: list[NodeValue], active: Lanes) -> np.ndarray:
        """The values of a node that reads no local array."""
        if node.op == "scalar":
            return np.asarray(node.attribute.number).astype(DTYPES[node.type])
        if node.op == "local":
            values = self.locals[node.attribute]
            return values if active is None else values[active]
        if isinstance(node.attribute, Component):
            component: np.ndarray = operands[0][node.attribute.index]
            return component
        return evaluate(node.attribute, node.type, operands)
