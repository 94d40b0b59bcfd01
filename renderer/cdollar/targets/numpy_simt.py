"""Scalar functions in NumPy: statements run for many lanes at once, each lane on its own way through ifs and loops."""

from __future__ import annotations

import numpy as np

from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir.dag import Component, Node, UserCall, topological_order
from renderer.cdollar.ir.device_function import (
    BranchOp,
    DeviceFunction,
    JumpOp,
    LoopOp,
    ReturnOp,
    StoreOp,
)
from renderer.cdollar.ir.operations import evaluate
from renderer.cdollar.ir.types import DTYPES, component_types

MAX_ITERATIONS = 300_000


class LoopLimitExceeded(ProgramError):
    """A loop of a scalar function ran too often."""

    def __init__(self, function: DeviceFunction, most: int):
        message = f"a loop of {function.name} ran more than {most} times at one point"
        hint = "it may never end" + (
            "; on a device it may run longer: `--target opencl`" if most == MAX_ITERATIONS else ""
        )
        super().__init__("CS0606", function.span, message, hint)


class SimtInterpreter:
    """One call of a scalar function over all points; `lanes` are the points still under way."""

    def __init__(self, function: DeviceFunction, interpreter):
        self.function, self.interpreter = function, interpreter
        self.iterations = 0
        self.orders = {}

    def call(self, arguments: list[np.ndarray]) -> list[np.ndarray]:
        """The components of the result, of the arguments' common shape."""
        shape = np.broadcast_shapes(*(np.shape(a) for a in arguments)) if arguments else ()
        self.count = int(np.prod(shape))
        self.iterations = 0
        self.slots = {}
        for slot, argument in zip(self.function.parameters, arguments, strict=True):
            self.slots[slot] = np.array(np.broadcast_to(argument, shape), DTYPES[slot.type]).reshape(-1)
        for slot in self.function.locals:
            self.slots[slot] = None
        self.results = [np.zeros(self.count, DTYPES[part]) for part in component_types(self.function.result_type)]
        with np.errstate(all="ignore"):
            self.block(self.function.body, None, [], [])
        return [r.reshape(shape) for r in self.results]

    # `lanes` is None for all, else their numbers. Each statement returns the lanes that go on.

    def size(self, lanes) -> int:
        return self.count if lanes is None else lanes.size

    def block(self, body: tuple, lanes, broken: list, continued: list):
        for statement in body:
            if self.size(lanes) == 0:
                break
            lanes = self.statement(statement, lanes, broken, continued)
        return lanes

    def statement(self, statement, lanes, broken: list, continued: list):
        if isinstance(statement, StoreOp):
            self.store(statement, lanes)
            return lanes
        if isinstance(statement, BranchOp):
            return self.branch(statement, lanes, broken, continued)
        if isinstance(statement, LoopOp):
            return self.repeat(statement, lanes)
        if isinstance(statement, JumpOp):
            (broken if statement.kind == "break" else continued).append(self.numbers(lanes))
        elif isinstance(statement, ReturnOp):
            for result, value in zip(self.results, self.values(statement.nodes, lanes), strict=True):
                result[... if lanes is None else lanes] = value
        return np.empty(0, np.int64)

    def numbers(self, lanes) -> np.ndarray:
        return np.arange(self.count) if lanes is None else lanes

    def store(self, statement: StoreOp, lanes) -> None:
        values = self.values(statement.nodes, lanes)
        for slot, value in zip(statement.locals, values, strict=True):
            if lanes is None:
                self.slots[slot] = np.array(np.broadcast_to(value, (self.count,)), DTYPES[slot.type])
                continue
            if self.slots[slot] is None:
                self.slots[slot] = np.zeros(self.count, DTYPES[slot.type])
            self.slots[slot][lanes] = value

    def branch(self, statement: BranchOp, lanes, broken: list, continued: list):
        condition = np.broadcast_to(self.values((statement.condition,), lanes)[0], (self.size(lanes),))
        if condition.all():
            return self.block(statement.if_true, lanes, broken, continued)
        if not condition.any():
            return self.block(statement.if_false, lanes, broken, continued)
        numbers = self.numbers(lanes)
        yes = self.block(statement.if_true, numbers[condition], broken, continued)
        no = self.block(statement.if_false, numbers[~condition], broken, continued)
        if self.size(yes) + self.size(no) == numbers.size:
            return lanes
        return np.sort(np.concatenate([self.numbers(yes), self.numbers(no)]))

    def repeat(self, statement: LoopOp, lanes):
        left: list[np.ndarray] = []
        first, all_before = True, lanes
        total = self.size(lanes)
        while self.size(lanes):
            self.iterations += 1
            if self.iterations > MAX_ITERATIONS:
                raise LoopLimitExceeded(self.function, MAX_ITERATIONS)
            if statement.condition is not None and (statement.test_first or not first):
                condition = np.broadcast_to(self.values((statement.condition,), lanes)[0], (self.size(lanes),))
                if not condition.all():
                    numbers = self.numbers(lanes)
                    left.append(numbers[~condition])
                    lanes = numbers[condition]
                    if not lanes.size:
                        break
            first = False
            continued: list[np.ndarray] = []
            lanes = self.block(statement.body, lanes, left, continued)
            if continued:
                lanes = np.sort(np.concatenate([self.numbers(lanes), *continued]))
            if self.size(lanes):
                lanes = self.block(statement.step, lanes, left, continued)
        if sum(part.size for part in left) == total:
            return all_before
        return np.sort(np.concatenate(left)) if left else np.empty(0, np.int64)

    def values(self, roots: tuple[Node, ...], lanes) -> list[np.ndarray]:
        key = tuple(map(id, roots))
        order = self.orders.get(key)
        if order is None:
            order = self.orders[key] = topological_order(roots)
        found: dict[int, object] = {}
        for node in order:
            found[id(node)] = self.node(node, [found[id(child)] for child in node.inputs], lanes)
        return [found[id(root)] for root in roots]

    def node(self, node: Node, operands: list, lanes):
        if node.op == "scalar":
            return np.asarray(node.attribute.number).astype(DTYPES[node.type])
        if node.op == "local":
            held = self.slots[node.attribute]
            return held if lanes is None else held[lanes]
        if isinstance(node.attribute, Component):
            return operands[0][node.attribute.index]
        if isinstance(node.attribute, UserCall):
            parts = SimtInterpreter(node.attribute.function, self.interpreter).call(operands)
            return parts if isinstance(node.type, tuple) else parts[0]
        return evaluate(node.attribute, node.type, operands)
