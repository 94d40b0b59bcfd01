"""Emits DAG nodes as expressions, in C (common/portable.h) or GLSL.

Every value is a scalar variable; vectors and records are their components. An index that is not proven in bounds is
clamped, and an int records the error (0: none, the number of the bounds check, or the loop-limit code). This error
value propagates like LLVM's poison, without branches; `select`, `&&` and `||` drop that of the operand not taken, so
`c ? a(i) : 0` is valid where c is false.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import index_bounds
from renderer.cdollar.ir.types import DTYPES, INTEGERS, component_types
from renderer.cdollar.targets.device_functions import FunctionTable, has_loops
from renderer.cdollar.targets.dialects import CDialect, literal, operation_text
from renderer.cdollar.targets.iteration_space import order_within_space

INDEX_LIMIT = 2**31  # elements that are counted by int: more by long, in kernels that need it
Bounds = tuple[int, int] | None
RangesOf = Callable[[ir.Node], tuple[ir.Range, ...]]  # the indices that the buffers of an array hold


@dataclass
class KernelInput:
    """An array that a kernel reads: its function node, the name of its buffers, and the types of its components."""

    function: ir.Node
    name: str
    types: tuple[str, ...]

    def buffer(self, component: int) -> str:
        """The name of a component's buffer."""
        return f"{self.name}_{component}"


@dataclass
class Block:
    """Lines of one nesting level, the variables that it binds, and the values that it computes."""

    variables: frozenset[ir.BoundVariable] = frozenset()
    lines: list[str] = field(default_factory=list)
    values: dict[int, EmittedValue] = field(default_factory=dict)


@dataclass(frozen=True)
class EmittedValue:
    """The variables of a value's components, and the variable that holds its poison, or None.

    `bounds`: the least and the greatest number that an integer can be, if they are known.
    """

    names: tuple[str, ...]
    poison: str | None = None
    bounds: Bounds = None


class ExpressionEmitter(FunctionTable):
    """Emits expressions into nested blocks; collects the inputs, arguments and functions that the text needs."""

    def __init__(self, dialect: CDialect, ranges_of: RangesOf) -> None:
        """Emit in a dialect."""
        super().__init__(dialect)
        self.ranges_of = ranges_of
        self.blocks: list[Block] = [Block()]
        self.inputs: dict[ir.Node, KernelInput] = {}
        self.scalars: dict[ir.Node, str] = {}  # closed reductions, which other kernels leave on the device
        self.arguments: dict[Any, tuple[str, str, Any]] = {}  # by key: name, scalar type, number
        self.check_sites: list[ir.Node] = []  # accesses by the number of their bounds check, from 1
        self.variable_names: dict[ir.BoundVariable, str] = {}
        self.writes_status = False

    # Names and lines

    def line(self, text: str) -> None:
        """Append a line to the innermost block."""
        self.blocks[-1].lines.append(text)

    @contextmanager
    def block(self) -> Iterator[Block]:
        """A block inside the innermost one; its lines are not appended to that."""
        outer = self.blocks
        inner = Block()
        self.blocks = [*outer, inner]
        try:
            yield inner
        finally:
            self.blocks = outer

    def argument(self, key: Any, type_: str, number: Any, prefix: str) -> str:
        """A scalar argument of the kernel, one for each key."""
        return self.arguments.setdefault(key, (f"{prefix}{len(self.arguments)}", type_, number))[0]

    def define(self, variable: ir.BoundVariable, name: str) -> None:
        """Bind a variable to a name in the innermost block."""
        block = self.blocks[-1]
        block.variables = block.variables | {variable}
        self.variable_names[variable] = name

    def delinearize(self, variables: tuple[ir.BoundVariable, ...], linear_index: str) -> None:
        """Bind variables to the coordinates of a linear index in their box, the last one fastest."""
        rest = linear_index
        for position in range(len(variables) - 1, -1, -1):
            variable = variables[position]
            value = rest
            if position:
                size = self.argument((variable.unique_id, "size"), "int", variable.range.size, "n")
                value, rest = f"{rest} % {size}", f"({rest} / {size})"
            if variable.range.low:
                low = self.argument((variable.unique_id, "low"), "int", variable.range.low, "l")
                value = f"{value} + {low}"
            value = f"({value})" if variable.type == "int" else self.dialect.cast("uint", f"({value})")
            self.define(variable, self.declare(self.blocks[-1].lines, variable.type, value, "at"))

    # Values

    def hoist_target(self, node: ir.Node) -> Block:
        """The outermost block that binds all variables of a node."""
        missing = set(node.free_variables)
        for block in self.blocks:
            missing -= block.variables
            if not missing:
                return block
        raise AssertionError(f"{node}: {missing} are not bound here")

    def lookup(self, node: ir.Node) -> EmittedValue:
        """The value of a node that was emitted."""
        return self.hoist_target(node).values[id(node)]

    def value(self, root: ir.Node) -> EmittedValue:
        """Emit a node, each part in the outermost block that can hold it."""
        for node in order_within_space(root):
            values = self.hoist_target(node).values
            if id(node) not in values:
                values[id(node)] = self.compute(node)
        return self.lookup(root)

    def compute(self, node: ir.Node) -> EmittedValue:
        """Emit a node whose inputs are emitted."""
        self.has_doubles |= "double" in ir.scalar_types(node)
        if node.op == "scalar":
            return EmittedValue((self.number(node),), bounds=bounds_of_number(node))
        if node.op == "variable":
            return EmittedValue((self.variable_names[node.attribute],), bounds=bounds_of_range(node.attribute.range))
        if node.op == "let":
            return self.lookup(node.inputs[0])
        if node.op == "reduce":
            return self.reduce(node)
        if isinstance(node.attribute, ir.Component):
            whole = self.lookup(node.inputs[0])
            return EmittedValue((whole.names[node.attribute.index],), whole.poison)
        if isinstance(node.attribute, ir.Access):
            return self.access(node)
        return self.call(node) if isinstance(node.attribute, ir.UserCall) else self.operation(node)

    def number(self, node: ir.Node) -> str:
        """A literal, or an argument for a number of the host."""
        if isinstance(node.attribute, ir.RuntimeScalar):
            return self.argument(node.attribute, node.type, node.attribute.number, "x")
        return literal(node.attribute.number, node.type, self.dialect)

    def operation(self, node: ir.Node) -> EmittedValue:
        """Emit an operation of the table."""
        operands = [self.lookup(child) for child in node.inputs]
        names = [o.names[0] for o in operands]
        bounds = bounds_of_operation(node, [o.bounds for o in operands])
        text = operation_text(self.dialect, node.attribute, node.inputs[-1].type, node.type, names, bounds is None)
        name = self.declare(self.hoist_target(node).lines, node.type, text)
        return EmittedValue((name,), self.propagate_poison(node, operands, names), bounds)

    def propagate_poison(self, node: ir.Node, operands: list[EmittedValue], names: list[str]) -> str | None:
        """Emit the poison of an operation's result, without that of the operand that is not taken."""
        poisons = [o.poison for o in operands]
        block = self.hoist_target(node)
        if not any(poisons):
            return None
        if node.attribute == "select":
            taken = f"({names[0]} ? {poisons[1] or '0'} : {poisons[2] or '0'})"
        elif node.attribute in ("&&", "||") and poisons[1]:
            taken = f"({names[0] if node.attribute == '&&' else f'!{names[0]}'} ? {poisons[1]} : 0)"
        else:
            return self.merge_poison(poisons, block)
        if poisons[0]:
            taken = f"({poisons[0]} != 0 ? {poisons[0]} : {taken})"
        return self.declare(block.lines, "int", taken, "poison", constant=False)

    def merge_poison(self, poisons: list[str | None], block: Block) -> str | None:
        """Emit the first poison that is not 0; None if there is none."""
        present = [p for p in poisons if p]
        if len(present) < 2:
            return present[0] if present else None
        text = present[0]
        for other in present[1:]:
            text = f"({text} != 0 ? {text} : {other})"
        return self.declare(block.lines, "int", text, "poison", constant=False)

    def report_poison(self, poison: str | None) -> list[str]:
        """Lines of a kernel that report poison to the host."""
        self.writes_status |= poison is not None
        return [f"if ({poison} != 0) atomic_max(status, {poison});"] if poison else []

    # Arrays

    def input_of(self, function: ir.Node) -> KernelInput:
        """The input for an array, added at its first use."""
        if function not in self.inputs:
            types = component_types(function.type.result)
            self.inputs[function] = KernelInput(function, f"f{len(self.inputs)}", types)
            self.has_doubles |= "double" in types
        return self.inputs[function]

    def size_name(self, source: KernelInput, dimension: int) -> str:
        """The argument with the size of an array's dimension."""
        range_ = self.ranges_of(source.function)[dimension]
        return self.argument((source.name, "n", dimension), "int", range_.size, "n")

    def first_index(self, source: KernelInput, dimension: int) -> str:
        """The text of the first index of an array's dimension: an argument."""
        range_ = self.ranges_of(source.function)[dimension]
        return self.argument((source.name, "low", dimension), "int", range_.low, "o")

    def access(self, node: ir.Node) -> EmittedValue:
        """Emit loads of an array's components at indices."""
        source, block = self.input_of(ir.without_lets(node.inputs[0])), self.hoist_target(node)
        positions: list[str] = []
        poisons: list[str | None] = []
        zero: list[str] = []  # conditions for which border mode `zero` applies
        ranges = self.ranges_of(source.function)
        for dimension, (index, border) in enumerate(zip(node.inputs[1:], node.attribute.borders, strict=True)):
            value = self.lookup(index)
            position = value.names[0]
            if index.type == "uint":
                position = self.dialect.cast("int", position)
            if ranges[dimension].low != 0:
                position = f"({position} - {self.first_index(source, dimension)})"
            poisons.append(value.poison)
            if not is_proven_in_bounds(index, ranges[dimension]):
                size = self.size_name(source, dimension)
                position = self.clamped_index(position, size, border, node, poisons, zero)
            positions.append(position)
        row, is_long = "0", index_type(math.prod(r.size for r in ranges)) == "long"
        for dimension, position in enumerate(positions[:-1]):
            first = self.dialect.cast("long", position) if is_long else position
            row = f"({row} * {self.size_name(source, dimension)} + {position})" if dimension else first
        last = positions[-1] if positions else "0"
        size = self.size_name(source, len(positions) - 1) if len(positions) > 1 else "1"
        names = []
        for component, type_ in enumerate(source.types):
            text = self.load(source, component, type_, row, last, size)
            if zero:
                text = f"({' || '.join(zero)} ? {literal(0, type_, self.dialect)} : {text})"
            names.append(self.declare(block.lines, type_, text))
        return EmittedValue(tuple(names), self.merge_poison(poisons, block))

    def load(self, source: KernelInput, component: int, type_: str, row: str, last: str, size: str) -> str:
        """An element of an array: by the linear index of all dimensions but the last, the last index and its size."""
        linear = last if row == "0" else f"({row} * {size} + {last})"
        return self.dialect.load(source.buffer(component), linear, type_)

    def clamped_index(
        self, position: str, size: str, border: str | None, node: ir.Node, poisons: list[str | None], zero: list[str]
    ) -> str:
        """A position in 0..size: by its border mode, or clamped, with poison if it was outside."""
        if border in ("wrap", "mirror"):
            return f"{border}_index({position}, {size})"
        block = self.hoist_target(node)
        name = self.declare(block.lines, "int", position, "i")
        outside = f"({name} < 0 || {name} >= {size})"
        if border == "zero":
            zero.append(outside)
        elif border is None:
            self.check_sites.append(node)
            text = f"{outside} ? {len(self.check_sites)} : 0"
            poisons.append(self.declare(block.lines, "int", text, "poison", constant=False))
        return f"clamp_index({name}, {size})"

    def reduce(self, node: ir.Node) -> EmittedValue:
        """Emit a reduction inside a kernel."""
        raise NotImplementedError

    def load_scalar_result(self, node: ir.Node) -> EmittedValue:
        """Emit loads of the result that another kernel left on the device."""
        name = self.scalars.setdefault(node, f"s{len(self.scalars)}")
        names = []
        for component, type_ in enumerate(ir.scalar_types(node)):
            text = self.dialect.load(f"{name}_{component}", self.dialect.first_index, type_)
            names.append(self.declare(self.blocks[0].lines, type_, text))
        return EmittedValue(tuple(names))

    # Device functions

    def call(self, node: ir.Node) -> EmittedValue:
        """Emit a call of a device function."""
        operands = [self.lookup(child) for child in node.inputs]
        function, block = node.attribute.function, self.hoist_target(node)
        poisons = [o.poison for o in operands]
        argument = ""
        if has_loops(function):
            poison = self.declare(block.lines, "int", "0", "poison", constant=False)
            poisons.append(poison)
            argument = self.dialect.poison_address + poison
        names = self.call_function(function, [o.names[0] for o in operands], argument, block.lines)
        return EmittedValue(names, self.merge_poison(poisons, block))


def index_type(count: int) -> str:
    """The scalar type that counts so many elements."""
    return "int" if count < INDEX_LIMIT else "long"


def is_proven_in_bounds(index: ir.Node, range_: ir.Range) -> bool:
    """Whether an index lies in a range for all values of its variables."""
    bounds = index_bounds(index)
    return bounds is not None and bounds[0] >= range_.low and bounds[1] < range_.high


def bounds_of_number(node: ir.Node) -> Bounds:
    """The bounds of a literal; a number of the host is no part of a kernel's text."""
    is_literal = node.type in INTEGERS and not isinstance(node.attribute, ir.RuntimeScalar)
    return (int(node.attribute.number),) * 2 if is_literal else None


def bounds_of_range(range_: Any) -> Bounds:
    """The bounds of a bound variable."""
    return (range_.low, range_.high - 1) if isinstance(range_, ir.Range) and range_.size else None


def bounds_of_operation(node: ir.Node, operands: list[Bounds]) -> Bounds:
    """The bounds of an operation on integers by interval arithmetic; None if they are unknown or leave 32 bits."""
    if node.type not in INTEGERS or None in operands:
        return None
    (a, b), (c, d) = operands[0], operands[-1]  # type: ignore[misc]  # none is None
    intervals = {
        "+": (a + c, b + d), "-": (a - d, b - c), "neg": (-b, -a), "convert": (a, b),
        "*": (min(a * c, a * d, b * c, b * d), max(a * c, a * d, b * c, b * d)),
    }  # fmt: skip
    low, high = intervals.get(node.attribute, (1, 0))
    limits = np.iinfo(DTYPES[node.type])
    lowest, highest = int(limits.min), int(limits.max)
    return (low, high) if lowest <= low <= high <= highest else None
