"""DAG nodes to text: one printer, two dialects (kernels of common/portable.h for CUDA and OpenCL, GLSL fragment
passes).

Every value is a scalar variable; vectors and records are their components. An index that is not proven to be inside of
its domain is cut to it, and a variable says that the value is bad: the numbers that a program must not use are found
without a branch, and `c ? a(i) : 0` is good where c is false.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from renderer.cdollar.ir.affine import affine, value_bounds
from renderer.cdollar.ir.dag import Access, ArraySource, BoundVariable, Component, Node, Range, RuntimeScalar, UserCall
from renderer.cdollar.ir.device_function import DeviceFunction
from renderer.cdollar.ir.types import component_types
from renderer.cdollar.targets.device_functions import DeviceFunctionEmitter, has_loops, precise
from renderer.cdollar.targets.dialects import C, literal, neutral_text, operation_text
from renderer.cdollar.targets.numpy_target import level_order

SMALL = 16  # a reduction over a range of at most this size has its bounds in the text, so that it is unrolled


@dataclass
class Input:
    """An array that a kernel reads: `function` is its node; names of its buffers and of the sizes of its dimensions."""

    function: Node
    name: str
    parts: tuple[str, ...]
    rank: int
    lows: tuple[bool, ...]  # which dimensions start elsewhere than at 0

    def buffer(self, component: int) -> str:
        return f"{self.name}_{component}"


@dataclass
class Block:
    """Lines of one nesting level and what is known in it."""

    variables: frozenset
    lines: list[str] = field(default_factory=list)
    memo: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Value:
    """The variables of a value's components, and the variable that says it is bad, or None."""

    names: tuple[str, ...]
    bad: str | None = None


class Emitter:
    """Prints expressions into nested blocks; collects what the text needs from outside."""

    def __init__(self, dialect: C, ranges_of):
        self.dialect, self.ranges_of = dialect, ranges_of
        self.blocks: list[Block] = [Block(frozenset())]
        self.inputs: dict[Node, Input] = {}
        self.scalars: dict[Node, str] = {}  # closed reductions: numbers that other parts leave on the device
        self.arguments: list[tuple[str, str, object]] = []  # name, scalar type, number
        self.argument_names: dict[object, str] = {}
        self.sites: list[Node] = []
        self.functions: dict[int, str] = {}
        self.function_text: list[str] = []
        self.counter = 0
        self.doubles = False
        self.bound_names: dict[BoundVariable, str] = {}

    # Names

    def fresh(self, prefix: str = "v") -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def line(self, text: str) -> None:
        self.blocks[-1].lines.append(text)

    def argument(self, key: object, type_: str, number, prefix: str) -> str:
        """A scalar argument of the kernel, one for each key."""
        if key not in self.argument_names:
            name = f"{prefix}{len(self.arguments)}"
            self.argument_names[key] = name
            self.arguments.append((name, type_, number))
        return self.argument_names[key]

    def define(self, variable: BoundVariable, name: str) -> None:
        """Binds a variable to a name in the innermost block."""
        block = self.blocks[-1]
        block.variables = block.variables | {variable}
        self.bound_names[variable] = name

    # Values

    def home(self, node: Node) -> Block:
        """The outermost block that knows all variables of a node."""
        missing = set(node.free_variables)
        for block in self.blocks:
            missing -= block.variables
            if not missing:
                return block
        raise AssertionError(f"{node}: {missing} are not bound here")

    def found(self, node: Node) -> Value | None:
        return self.home(node).memo.get(id(node))

    def value(self, root: Node) -> Value:
        """The root's variables; their lines stand in the outermost blocks that can hold them."""
        for node in level_order(root, {}):
            if self.found(node) is None:
                self.compute(node)
        return self.found(root)

    def keep(self, node: Node, value: Value) -> None:
        self.home(node).memo[id(node)] = value

    def store(self, node: Node, text: str, bad: str | None = None) -> None:
        name = self.fresh()
        self.home(node).lines.append(self.dialect.declare(node.type, name, text))
        self.keep(node, Value((name,), bad))

    def compute(self, node: Node) -> None:
        self.doubles |= "double" in (node.type if isinstance(node.type, tuple) else (node.type,))
        if node.op == "scalar":
            self.keep(node, Value((self.number(node),)))
        elif node.op == "variable":
            self.keep(node, Value((self.bound_names[node.attribute],)))
        elif node.op == "let":
            self.keep(node, self.found(node.inputs[0]))
        elif node.op == "reduce":
            self.reduce(node)
        elif isinstance(node.attribute, Component):
            whole = self.found(node.inputs[0])
            self.keep(node, Value((whole.names[node.attribute.index],), whole.bad))
        elif isinstance(node.attribute, Access):
            self.access(node)
        elif isinstance(node.attribute, UserCall):
            self.call(node)
        else:
            self.operation(node)

    def number(self, node: Node) -> str:
        if isinstance(node.attribute, RuntimeScalar):
            return self.argument(node.attribute, node.type, node.attribute.number, "x")
        return literal(node.attribute.number, node.type, self.dialect)

    def operation(self, node: Node) -> None:
        operands = [self.found(child) for child in node.inputs]
        names = [o.names[0] for o in operands]
        text = operation_text(self.dialect, node.attribute, node.inputs[-1].type, node.type, names)
        self.store(node, text, self.joined_bad(node, operands, names))

    def joined_bad(self, node: Node, operands: list[Value], names: list[str]) -> str | None:
        bads = [o.bad for o in operands]
        if not any(bads):
            return None
        if node.attribute == "select":
            text = f"({names[0]} ? {bads[1] or '0'} : {bads[2] or '0'})"
        elif node.attribute in ("&&", "||") and bads[1]:
            reached = names[0] if node.attribute == "&&" else f"!{names[0]}"
            text = f"({reached} ? {bads[1]} : 0)"
        else:
            rest = [b for b in bads if b]
            text, rest = rest[0], rest[1:]
            for other in rest:
                text = f"({text} != 0 ? {text} : {other})"
            bads = [None]
        if bads[0]:
            text = f"({bads[0]} != 0 ? {bads[0]} : {text})"
        name = self.fresh("bad")
        self.home(node).lines.append(f"int {name} = {text};")
        return name

    # Arrays

    def input_of(self, function: Node) -> Input:
        if function not in self.inputs:
            ranges = self.ranges_of(function)
            parts = component_types(function.type.result)
            lows = tuple(r.low != 0 for r in ranges)
            self.inputs[function] = Input(function, f"f{len(self.inputs)}", parts, len(ranges), lows)
            self.doubles |= "double" in parts
        return self.inputs[function]

    def size_name(self, source: Input, dimension: int) -> str:
        range_ = self.ranges_of(source.function)[dimension]
        return self.argument((source.name, "n", dimension), "int", range_.size, "n")

    def low_name(self, source: Input, dimension: int) -> str:
        range_ = self.ranges_of(source.function)[dimension]
        return self.argument((source.name, "low", dimension), "int", range_.low, "o")

    def access(self, node: Node) -> None:
        function, indices = node.inputs[0], node.inputs[1:]
        while function.op == "let":
            function = function.inputs[0]
        source = self.input_of(function)
        block = self.home(node)
        places, bads, zero = [], [], []
        for dimension, (index, border) in enumerate(zip(indices, node.attribute.borders, strict=True)):
            value = self.found(index)
            place = value.names[0]
            if index.type == "uint":
                place = self.dialect.cast("int", place)
            if source.lows[dimension]:
                place = f"({place} - {self.low_name(source, dimension)})"
            if value.bad:
                bads.append(value.bad)
            if not proven(index, self.ranges_of(function)[dimension]):
                place = self.inside(place, source, dimension, border, node, block, bads, zero)
            places.append(place)
        row = "0"
        for dimension, place in enumerate(places[:-1]):
            row = f"({row} * {self.size_name(source, dimension)} + {place})" if dimension else place
        last = places[-1] if places else "0"
        size = self.size_name(source, len(places) - 1) if len(places) > 1 else "1"
        names = []
        for component, part in enumerate(source.parts):
            text = self.load(source, component, part, row, last, size)
            if zero:
                text = f"({' || '.join(zero)} ? {literal(0, part, self.dialect)} : {text})"
            name = self.fresh()
            block.lines.append(self.dialect.declare(part, name, text))
            names.append(name)
        self.keep(node, Value(tuple(names), self.one_bad(bads, block)))

    def load(self, source: Input, component: int, part: str, row: str, last: str, size: str) -> str:
        """An element of an array: the last index and the linear index of those before it."""
        linear = last if row == "0" else f"({row} * {size} + {last})"
        return self.dialect.load(source.buffer(component), linear, part)

    def inside(
        self, place: str, source: Input, dimension: int, border, node: Node, block: Block, bads: list, zero: list
    ) -> str:
        """An index that stays inside of the array: by its border mode, or cut and marked as bad."""
        size = self.size_name(source, dimension)
        if border in ("wrap", "mirror"):
            return f"{border}_index({place}, {size})"
        name = self.fresh("i")
        block.lines.append(self.dialect.declare("int", name, place))
        outside = f"({name} < 0 || {name} >= {size})"
        if border == "zero":
            zero.append(outside)
        elif border is None:
            self.sites.append(node)
            bad = self.fresh("bad")
            block.lines.append(f"int {bad} = {outside} ? {len(self.sites)} : 0;")
            bads.append(bad)
        return f"clamp_index({name}, {size})"

    def one_bad(self, bads: list[str], block: Block) -> str | None:
        if len(bads) < 2:
            return bads[0] if bads else None
        text = bads[0]
        for other in bads[1:]:
            text = f"({text} != 0 ? {text} : {other})"
        name = self.fresh("bad")
        block.lines.append(f"int {name} = {text};")
        return name

    # Reductions inside of a kernel: loops

    def reduce(self, node: Node) -> None:
        if not node.free_variables:
            self.closed(node)
            return
        block = self.home(node)
        depth = self.blocks.index(block)
        held, self.blocks = self.blocks, self.blocks[: depth + 1]
        loop = LoopReduction(self, node)
        loop.start()
        variables = node.attribute[1]
        for variable in variables:
            self.blocks.append(Block(frozenset()))
            name = self.fresh(variable.name if variable.name.isalnum() else "i")
            self.define(variable, name)
        loop.join()
        for variable in reversed(variables):
            inner = self.blocks.pop()
            low, high = self.bounds(variable)
            name = self.bound_names[variable]
            type_ = self.dialect.types[variable.type]
            self.line(f"for ({type_} {name} = {low}; {name} < {high}; {name}++) {{")
            self.blocks[-1].lines += ["    " + text for text in inner.lines]
            self.line("}")
        value = loop.finish()
        self.blocks = held
        self.keep(node, value)

    def closed(self, node: Node) -> None:
        """A number that another part computed: read from where it left it."""
        if node not in self.scalars:
            self.scalars[node] = f"s{len(self.scalars)}"
        name, names = self.scalars[node], []
        parts = node.type if isinstance(node.type, tuple) else (node.type,)
        for component, part in enumerate(parts):
            variable = self.fresh()
            text = self.dialect.load(f"{name}_{component}", "0", part)
            self.blocks[0].lines.append(self.dialect.declare(part, variable, text))
            names.append(variable)
        self.keep(node, Value(tuple(names)))

    def bounds(self, variable: BoundVariable) -> tuple[str, str]:
        range_ = variable.range
        suffix = "u" if variable.type == "uint" else ""
        if range_.size <= SMALL:
            return f"{range_.low}{suffix}", f"{range_.high}{suffix}"
        high = self.argument((variable.unique_id, "high"), variable.type, range_.high, "h")
        if range_.low == 0:
            return f"0{suffix}", high
        return self.argument((variable.unique_id, "low"), variable.type, range_.low, "l"), high

    # Scalar functions

    def call(self, node: Node) -> None:
        operands = [self.found(child) for child in node.inputs]
        parts = node.type if isinstance(node.type, tuple) else (node.type,)
        function = node.attribute.function
        name = self.function(function)
        arguments = [o.names[0] for o in operands]
        block = self.home(node)
        bads = [o.bad for o in operands if o.bad]
        if has_loops(function):
            bad = self.fresh("bad")
            block.lines.append(f"int {bad} = 0;")
            arguments.append(self.dialect.bad_argument(bad))
            bads.append(bad)
        text = f"{name}({', '.join(arguments)})"
        if not isinstance(node.type, tuple):
            variable = self.fresh()
            block.lines.append(self.dialect.declare(node.type, variable, text))
            self.keep(node, Value((variable,), self.one_bad(bads, block)))
            return
        whole = self.fresh("r")
        block.lines.append(f"R{name} {whole} = {text};")
        self.keep(node, Value(tuple(f"{whole}.c{k}" for k in range(len(parts))), self.one_bad(bads, block)))

    def function(self, function: DeviceFunction) -> str:
        if function.unique_id not in self.functions:
            text = DeviceFunctionEmitter(self, function).text()
            self.functions[function.unique_id] = f"u{len(self.functions)}_{function.name}".replace("__", "_")
            self.function_text.append(text.replace("@NAME@", self.functions[function.unique_id]))
        return self.functions[function.unique_id]


class LoopReduction:
    """The state of a reduction that runs as loops: variables before, a step inside, a value after."""

    def __init__(self, writer: Emitter, node: Node):
        self.writer, self.node = writer, node
        self.reduction, self.variables = node.attribute
        self.parts = node.type if isinstance(node.type, tuple) else (node.type,)
        self.first = ""
        self.bad = ""

    def start(self) -> None:
        w = self.writer
        name = self.reduction.name
        if name in ("argmin", "argmax"):
            type_ = self.node.inputs[0].type
            self.best = w.fresh("best")
            w.line(f"{w.dialect.types[type_]} {self.best} = {literal(0, type_, w.dialect)};")
        self.state = [w.fresh("acc") for _ in self.parts]
        if name == "fold":
            start = [w.value(child) for child in self.node.inputs[: len(self.parts)]]
            values = [v.names[0] for v in start]
            self.bads = [v.bad for v in start if v.bad]
        else:
            values = [self.neutral(part) for part in self.parts]
            self.bads = []
        for variable, part, value in zip(self.state, self.parts, values, strict=True):
            w.line(f"{precise(w, part)}{w.dialect.types[part]} {variable} = {value};")
        if self.needs_first():
            self.first = w.fresh("first")
            w.line(f"bool {self.first} = true;")
        self.bad = w.fresh("bad")
        self.bad_line = len(w.blocks[-1].lines)
        w.line(f"int {self.bad} = {self.bads[0] if self.bads else '0'};")

    def needs_first(self) -> bool:
        return (
            self.reduction.name in ("argmin", "argmax")
            or self.reduction.function is not None
            and self.reduction.name != "fold"
        )

    def neutral(self, part: str) -> str:
        return neutral_text(self.reduction.name, part, self.writer.dialect)

    def join(self) -> None:
        """The step of the innermost loop."""
        w, name = self.writer, self.reduction.name
        inputs = self.node.inputs[len(self.parts) :] if name == "fold" else self.node.inputs
        values = [w.value(child) for child in inputs]
        self.found_bad = [v.bad for v in values if v.bad]
        if self.found_bad:
            w.line(f"{self.bad} = {self.bad} != 0 ? {self.bad} : {w.one_bad(self.found_bad, w.blocks[-1])};")
        names = [v.names[0] for v in values]
        if name in ("argmin", "argmax"):
            self.join_best(names)
        elif self.reduction.function is not None:
            self.join_user(names)
        else:
            part = self.parts[0]
            text = operation_text(w.dialect, name, part, part, [self.state[0], names[0]])
            w.line(f"{self.state[0]} = {text};")

    def join_best(self, names: list[str]) -> None:
        w = self.writer
        sign = "<" if self.reduction.name == "argmin" else ">"
        w.line(f"if ({names[0]} == {names[0]} && ({self.first} || {names[0]} {sign} {self.best})) {{")
        stores = [f"{s} = {int_of(w, n, v)};" for s, n, v in zip(self.state, names[1:], self.variables, strict=True)]
        w.line(f"    {self.first} = false; {self.best} = {names[0]}; {' '.join(stores)}")
        w.line("}")

    def join_user(self, names: list[str]) -> None:
        w, function = self.writer, self.reduction.function
        arguments = [*self.state, *names]
        looped = has_loops(function)
        if self.first:
            stores = " ".join(f"{s} = {n};" for s, n in zip(self.state, names, strict=True))
            w.line(f"if ({self.first}) {{ {self.first} = false; {stores} }} else {{")
        else:
            w.line("{")
        called = w.function(function)
        if looped:
            arguments.append(w.dialect.bad_argument(self.bad))
        text = f"{called}({', '.join(arguments)})"
        if len(self.parts) == 1:
            w.line(f"    {self.state[0]} = {text};")
        else:
            whole = w.fresh("r")
            stores = " ".join(f"{s} = {whole}.c{k};" for k, s in enumerate(self.state))
            w.line(f"    R{called} {whole} = {text}; {stores}")
        w.line("}")
        self.looped = looped

    def finish(self) -> Value:
        used = self.found_bad or self.bads or getattr(self, "looped", False)
        return Value(tuple(self.state), self.bad if used else None)


def int_of(w: Emitter, name: str, variable: BoundVariable) -> str:
    return w.dialect.cast("int", name) if variable.type == "uint" else name


def proven(index: Node, range_: Range) -> bool:
    """Whether an index stays inside of a range for all values of its variables."""
    form = affine(index)
    if form is None or not form.is_known:
        return False
    ends = value_bounds(form)
    return ends is not None and ends[0] >= range_.low and ends[1] < range_.high


def is_source(node: Node) -> bool:
    return isinstance(node.attribute, ArraySource)
