"""Emits DAG nodes as expressions, in C (common/portable.h) or GLSL; emitter.py derives the kernels' emitters.

Every scalar value is a variable of the text; a vector or record is one variable per component. An index that is not
proven in bounds is clamped, and an int variable, the poison, records the error: 0 for none, else the number of the
bounds check, LOOP_LIMIT_STATUS or DRIVER_LIMIT_STATUS. Poison propagates from operands to results as in LLVM, without
branches; `select`, `&&` and `||` ignore the poison of an operand that is not taken, so `c ? a(i) : 0` is valid where c
is false. At its end a kernel writes poison to the status word, which the host reads (graph_target.py).

A node is emitted after its inputs, once, in the outermost scope that binds the variables which it depends on;
value() does so for a node and all nodes below it, and lookup() returns what was emitted. Names of arguments begin with
a letter for their kind: n a size, l or o the first index of a range, h the end of a loop, r an end of an allowed range,
w the width of a texture, x a number of the program.
"""

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from renderer.cdollar.ir import affine
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.passes import order_within_space
from renderer.cdollar.ir.types import Number, component_types
from renderer.cdollar.targets.device_functions import FunctionTable
from renderer.cdollar.targets.dialects import CDialect, literal, operation_text
from renderer.records import dataclass, field

MAX_DRIVER_OPERATIONS = 10_000  # operations of all inlined functions: llvmpipe takes a second for as many
INDEX_LIMIT = 2**31  # below this number of elements, indices are int, else long
StoredRanges = Callable[[ir.Node], ir.Ranges]  # the indices that the buffers of an array hold


class KernelInput(NamedTuple):
    """An array that a kernel reads: its function node, the name of its buffers, and the types of its components."""

    function: ir.Node
    name: str
    types: tuple[str, ...]

    def buffer(self, component: int) -> str:
        """The name of a component's buffer."""
        return f"{self.name}_{component}"


@dataclass
class Scope:
    """A nesting level of the text: its bound variables, its lines, and the values computed in it, by id() of a node."""

    variables: ir.VariableSet = frozenset()
    lines: list[str] = field(default_factory=list)
    values: "dict[int, EmittedValue]" = field(default_factory=dict)


class EmittedValue(NamedTuple):
    """The variables of a value's components, and the variable that holds its poison, or None.

    `bounds`: the least and the greatest number that an integer can be, if they are known.
    """

    names: tuple[str, ...]
    poison: str | None = None
    bounds: affine.Bounds = None


class ExpressionEmitter(FunctionTable):
    """Emits expressions into nested scopes; collects the inputs, arguments and functions that the text needs.

    A value is computed in the outermost scope in which all variables that it depends on are bound (loop-invariant code
    motion). `scopes` are the kernel's body, then the open loops from the outside in. The caller that opens a scope
    takes its lines at the end and puts them into a loop. FunctionTable (device_functions.py) declares names, numbers
    the bounds checks and joins poisons.
    """

    def __init__(self, dialect: CDialect, stored_ranges: StoredRanges) -> None:
        """Start a kernel's text; `stored_ranges` returns the indices that the buffers of an array hold."""
        super().__init__(dialect)
        self.stored_ranges = stored_ranges
        self.scopes: list[Scope] = [Scope()]
        self.inputs: dict[ir.Node, KernelInput] = {}
        self.scalars: dict[ir.Node, str] = {}  # reductions that other kernels computed, with the names of their buffers
        self.arguments: dict[Hashable, tuple[str, str, Number]] = {}  # by key: name, scalar type, number
        self.variable_names: dict[ir.BoundVariable, str] = {}
        self.writes_status = False
        self.inlined_operations = 0  # operations of called functions, if the driver inlines them

    # Names and lines

    @property
    def lines(self) -> list[str]:
        """The lines of the innermost scope."""
        return self.scopes[-1].lines

    @property
    def prologue(self) -> list[str]:
        """The lines of the kernel's body that do not depend on a thread's elements."""
        return self.scopes[0].lines

    def emit(self, *lines: str) -> None:
        """Append lines to the innermost scope."""
        self.lines.extend(lines)

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """Open a scope inside the innermost one."""
        scope = Scope()
        outer, self.scopes = self.scopes, [*self.scopes, scope]
        try:
            yield scope
        finally:
            self.scopes = outer

    @contextmanager
    def within(self, scope: Scope) -> Iterator[None]:
        """Emit into an open scope as if it were the innermost one."""
        inner, self.scopes = self.scopes, self.scopes[: 1 + next(k for k, s in enumerate(self.scopes) if s is scope)]
        try:
            yield
        finally:
            self.scopes = inner

    def argument(self, key: Hashable, type_: str, number: Number, prefix: str) -> str:
        """The name of the scalar argument for `key`, which is added at its first use, with its type and its value."""
        return self.arguments.setdefault(key, (f"{prefix}{len(self.arguments)}", type_, number))[0]

    def bind(self, variable: ir.BoundVariable, name: str) -> None:
        """Bind a variable to a name of the text in the innermost scope."""
        scope = self.scopes[-1]
        scope.variables = scope.variables | {variable}
        self.variable_names[variable] = name

    def delinearize(self, variables: ir.Variables, linear_index: str) -> None:
        """Bind variables to the coordinates of a row-major linear index in the box of their ranges."""
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
            self.bind(variable, self.declare(self.lines, variable.type, value, "at"))

    # Values

    def hoist_target(self, node: ir.Node) -> Scope:
        """The outermost scope in which all variables that a node depends on are bound."""
        missing = set(node.free_variables)
        for scope in self.scopes:
            missing -= scope.variables
            if not missing:
                return scope
        raise AssertionError(f"{node}: {missing} are not bound here")

    def lookup(self, node: ir.Node) -> EmittedValue:
        """The value of a node that is already emitted."""
        return self.hoist_target(node).values[id(node)]

    def value(self, root: ir.Node) -> EmittedValue:
        """Emit a node and the nodes that it depends on, each in its hoist_target(); return the node's value."""
        for node in order_within_space(root):
            values = self.hoist_target(node).values
            if id(node) not in values:
                values[id(node)] = self.compute(node)
        return self.lookup(root)

    def take_poison(self, node: ir.Node) -> str | None:
        """Emit a node and return its poison; the stored value loses it, since the caller reports it once."""
        value = self.value(node)
        self.hoist_target(node).values[id(node)] = value._replace(poison=None)
        return value.poison

    def compute(self, node: ir.Node) -> EmittedValue:
        """Emit a node whose inputs are already emitted."""
        self.has_doubles |= "double" in ir.scalar_types(node)
        if node.op == "scalar":
            return EmittedValue((self.number(node),), bounds=affine.bounds_of_number(node))
        if node.op == "variable":
            name, range_ = self.variable_names[node.attribute], node.attribute.range
            return EmittedValue((name,), bounds=affine.bounds_of_range(range_))
        if node.op == "let":
            return self.lookup(node.inputs[0])
        if node.op == "reduce":
            return self.reduce(node)
        if isinstance(node.attribute, ir.Component):
            components = self.lookup(node.inputs[0])
            return EmittedValue((components.names[node.attribute.index],), components.poison)
        if isinstance(node.attribute, ir.Access):
            return self.access(node)
        if isinstance(node.attribute, ir.RangeCheck):
            return self.range_check(node)
        return self.call(node) if isinstance(node.attribute, ir.UserCall) else self.operation(node)

    def number(self, node: ir.Node) -> str:
        """A literal for a constant; a kernel argument for a number that the host passes in each run."""
        if isinstance(node.attribute, ir.RuntimeScalar):
            return self.argument(node.attribute, node.type, node.attribute.number, "x")
        return literal(node.attribute.number, node.type, self.dialect)

    def operation(self, node: ir.Node) -> EmittedValue:
        """Emit an operation of the table in ir/operations.py."""
        operands = [self.lookup(child) for child in node.inputs]
        names, lines = [o.names[0] for o in operands], self.hoist_target(node).lines
        bounds = affine.bounds_of_operation(node, [o.bounds for o in operands])
        type_, can_overflow = node.inputs[-1].type, bounds is None
        text = operation_text(self.dialect, node.attribute, type_, node.type, names, can_overflow)
        name = self.declare(lines, node.type, text)
        poison = self.propagate_poison(node.attribute, [o.poison for o in operands], names, lines)
        return EmittedValue((name,), poison, bounds)

    def range_check(self, node: ir.Node) -> EmittedValue:
        """Emit the check of the ends of a range; the value is true."""
        operands, lines = [self.lookup(child) for child in node.inputs], self.hoist_target(node).lines
        poisons = [o.poison for o in operands]
        if (allowed := node.attribute.range) is not None:
            type_ = node.inputs[0].type
            low, high = (self.dialect.cast(type_, o.names[0]) for o in operands)
            numbers = (max(n, 0) if type_ == "uint" else n for n in (allowed.low, allowed.high))
            first, end = (self.argument((node, k), type_, n, "r") for k, n in enumerate(numbers))
            self.check_sites.append(node)
            text = f"({low} < {high} && ({low} < {first} || {high} > {end})) ? {len(self.check_sites)} : 0"
            poisons.append(self.declare(lines, "int", text, "poison", constant=False))
        return EmittedValue((literal(1, "bool", self.dialect),), self.merge_poison(poisons, lines))

    def report_poison(self, poison: str | None) -> list[str]:
        """Return the lines that write a poison to the status word, where the host reads it; [] for None."""
        self.writes_status |= poison is not None
        return [f"if ({poison} != 0) atomic_max(status, {poison});"] if poison else []

    # Arrays

    def kernel_input(self, function: ir.Node) -> KernelInput:
        """The kernel's input for an array, which is added at its first use."""
        if function not in self.inputs:
            types = component_types(function.type.result)
            self.inputs[function] = KernelInput(function, f"f{len(self.inputs)}", types)
            self.has_doubles |= "double" in types
        return self.inputs[function]

    def size_name(self, source: KernelInput, dimension: int) -> str:
        """The name of the argument with the size of an array's dimension."""
        range_ = self.stored_ranges(source.function)[dimension]
        return self.argument((source.name, "n", dimension), "int", range_.size, "n")

    def first_index(self, source: KernelInput, dimension: int) -> str:
        """The first index of an array's dimension: an argument's name here, a literal in GLSL."""
        range_ = self.stored_ranges(source.function)[dimension]
        return self.argument((source.name, "low", dimension), "int", range_.low, "o")

    def access(self, node: ir.Node) -> EmittedValue:
        """Emit loads of an array's components at indices."""
        source, lines = self.kernel_input(ir.without_lets(node.inputs[0])), self.hoist_target(node).lines
        positions: list[str] = []
        poisons: list[str | None] = []
        zero: list[str] = []  # conditions for which border mode `zero` applies
        ranges = self.stored_ranges(source.function)
        for dimension, (index, border) in enumerate(zip(node.inputs[1:], node.attribute.borders, strict=True)):
            value = self.lookup(index)
            position = value.names[0]
            if index.type == "uint":
                position = self.dialect.cast("int", position)
            if ranges[dimension].low != 0:
                position = f"({position} - {self.first_index(source, dimension)})"
            poisons.append(value.poison)
            if not affine.is_proven_in_bounds(index, ranges[dimension]):
                size = self.size_name(source, dimension)
                position = self.clamped_index(position, size, border, node, poisons, zero)
            positions.append(position)
        # `row`: the text of the linear index of all dimensions but the last, by Horner's rule.
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
            names.append(self.declare(lines, type_, text))
        return EmittedValue(tuple(names), self.merge_poison(poisons, lines))

    def load(self, source: KernelInput, component: int, type_: str, row: str, last: str, size: str) -> str:
        """The value of an array's element in `row` at index `last`.

        `row` is the linear index of all dimensions but the last; `size` is the size of the last dimension.
        """
        linear = last if row == "0" else f"({row} * {size} + {last})"
        return self.dialect.load(source.buffer(component), linear, type_)

    def clamped_index(
        self, position: str, size: str, border: str | None, node: ir.Node, poisons: list[str | None], zero: list[str]
    ) -> str:
        """The text of an index in 0..size: mapped by the border mode, or clamped.

        Without a border mode, an index outside appends its poison to `poisons`; under the mode `zero`, its condition to
        `zero`, since the loaded value is then 0.
        """
        if border in ("wrap", "mirror"):
            return f"{border}_index({position}, {size})"
        lines = self.hoist_target(node).lines
        name = self.declare(lines, "int", position, "i")
        outside = f"({name} < 0 || {name} >= {size})"
        if border == "zero":
            zero.append(outside)
        elif border is None:
            return self.checked_index(name, size, node, lines, poisons)
        return f"clamp_index({name}, {size})"

    def reduce(self, node: ir.Node) -> EmittedValue:
        """Emit a reduction inside a kernel; the emitters of kernels implement this (emitter.py)."""
        raise NotImplementedError

    def load_scalar_result(self, node: ir.Node) -> EmittedValue:
        """Emit loads of the result that another kernel left on the device."""
        name = self.scalars.setdefault(node, f"s{len(self.scalars)}")
        names = []
        for component, type_ in enumerate(ir.scalar_types(node)):
            text = self.dialect.load(f"{name}_{component}", self.dialect.first_index, type_)
            names.append(self.declare(self.prologue, type_, text))
        return EmittedValue(tuple(names))

    # Device functions

    def call(self, node: ir.Node) -> EmittedValue:
        """Emit a call of a device function."""
        operands = [self.lookup(child) for child in node.inputs]
        function, lines = node.attribute.function, self.hoist_target(node).lines
        self.inlined_operations += function.operations if self.dialect.inlines_calls else 0
        if self.inlined_operations > MAX_DRIVER_OPERATIONS:
            raise ir.too_large(function.span)
        poisons = [o.poison for o in operands]
        argument = ""
        if function.can_fail:
            poison = self.declare(lines, "int", "0", "poison", constant=False)
            poisons.append(poison)
            argument = self.dialect.poison_address + poison
        names = self.call_function(function, [o.names[0] for o in operands], argument, lines)
        return EmittedValue(names, self.merge_poison(poisons, lines))


def index_type(count: int) -> str:
    """The scalar type of an index among `count` elements: int or long."""
    return "int" if count < INDEX_LIMIT else "long"
