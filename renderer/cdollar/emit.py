"""DAG nodes to text: one printer, two dialects (kernels of portable.h for CUDA and OpenCL, GLSL fragment passes).

Every value is a scalar variable; vectors and records are their components. An index that is not proven to be inside of
its domain is cut to it, and a variable says that the value is bad: the numbers that a program must not use are found
without a branch, and `c ? a(i) : 0` is good where c is false.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from renderer.cdollar.dag import Access, Argument, Bound, Component, Node, Range, Source, UserCall, topological
from renderer.cdollar.domains import affine, interval
from renderer.cdollar.interpret import level_order
from renderer.cdollar.operations import OPERATIONS
from renderer.cdollar.statements import Branch, Give, Leave, Repeat, ScalarFunction, Store
from renderer.cdollar.types import components

SMALL = 16  # a reduction over a range of at most this size has its bounds in the text, so that it is unrolled
LOOP_LIMIT = 1 << 24  # rounds of one loop of a scalar function before it is taken for endless
ENDLESS = 1 << 30  # the value of `bad` that says so


class C:
    """The dialect of portable.h."""

    name = "kernel"
    types = {"bool": "bool", "int": "int", "uint": "uint", "float": "float", "double": "double"}
    int_to_bool = "({0} != 0)"
    infinity = "as_float(0x7f800000u)"
    nan = "as_float(0x7fc00000u)"

    def cast(self, target: str, text: str) -> str:
        return f"(({target}){text})"

    def operation(self, name: str) -> str:
        return OPERATIONS[name].c.replace("{r}", "")

    def declare(self, type_: str, name: str, value: str) -> str:
        return f"const {self.types[type_]} {name} = {value};"

    def struct(self, name: str, parts: tuple[str, ...]) -> str:
        members = " ".join(f"{self.types[p]} c{k};" for k, p in enumerate(parts))
        return f"typedef struct {{ {members} }} {name};"

    def bad_parameter(self) -> str:
        return "int *bad"

    def bad_argument(self, name: str) -> str:
        return f"&{name}"

    def set_bad(self, value: int) -> str:
        return f"*bad = {value};"

    def load(self, buffer: str, index: str, type_: str) -> str:
        loaded = f"{buffer}[{index}]"
        return f"({loaded} != 0)" if type_ == "bool" else loaded


class Glsl(C):
    """Fragment passes of GLSL 3.30 (4.00 for `precise`); arrays are textures whose rows are the last dimension."""

    name = "pass"
    infinity = "uintBitsToFloat(0x7f800000u)"
    nan = "uintBitsToFloat(0x7fc00000u)"

    def __init__(self, strict: bool = False):
        self.strict = strict

    def cast(self, target: str, text: str) -> str:
        return f"{target}({text})"

    def operation(self, name: str) -> str:
        if self.strict and name in ("/", "sqrt"):
            return "strict_divide({0}, {1})" if name == "/" else "strict_sqrt({0})"
        return OPERATIONS[name].glsl

    def declare(self, type_: str, name: str, value: str) -> str:
        precise = "precise " if self.strict and type_ == "float" else ""
        return f"{precise}{self.types[type_]} {name} = {value};"

    def struct(self, name: str, parts: tuple[str, ...]) -> str:
        members = " ".join(f"{self.types[p]} c{k};" for k, p in enumerate(parts))
        return f"struct {name} {{ {members} }};"

    def bad_parameter(self) -> str:
        return "inout int bad"

    def bad_argument(self, name: str) -> str:
        return name

    def set_bad(self, value: int) -> str:
        return f"bad = {value};"

    def load(self, buffer: str, index: str, type_: str) -> str:
        """`index` is the texel's column and row."""
        loaded = f"texelFetch({buffer}, ivec2({index}), 0).x"
        return f"({loaded} != 0u)" if type_ == "bool" else loaded


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


class Writer:
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
        self.bound_names: dict[Bound, str] = {}

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

    def define(self, variable: Bound, name: str) -> None:
        """Binds a variable to a name in the innermost block."""
        block = self.blocks[-1]
        block.variables = block.variables | {variable}
        self.bound_names[variable] = name

    # Values

    def home(self, node: Node) -> Block:
        """The outermost block that knows all variables of a node."""
        missing = set(node.free)
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
        elif node.op == "bound":
            self.keep(node, Value((self.bound_names[node.value],)))
        elif node.op == "let":
            self.keep(node, self.found(node.inputs[0]))
        elif node.op == "reduce":
            self.reduce(node)
        elif isinstance(node.value, Component):
            whole = self.found(node.inputs[0])
            self.keep(node, Value((whole.names[node.value.index],), whole.bad))
        elif isinstance(node.value, Access):
            self.access(node)
        elif isinstance(node.value, UserCall):
            self.call(node)
        else:
            self.operation(node)

    def number(self, node: Node) -> str:
        if isinstance(node.value, Argument):
            return self.argument(node.value, node.type, node.value.number, "x")
        return literal(node.value.number, node.type, self.dialect)

    def operation(self, node: Node) -> None:
        operands = [self.found(child) for child in node.inputs]
        names = [o.names[0] for o in operands]
        text = operation_text(self.dialect, node.value, node.inputs[-1].type, node.type, names)
        self.store(node, text, self.joined_bad(node, operands, names))

    def joined_bad(self, node: Node, operands: list[Value], names: list[str]) -> str | None:
        bads = [o.bad for o in operands]
        if not any(bads):
            return None
        if node.value == "select":
            text = f"({names[0]} ? {bads[1] or '0'} : {bads[2] or '0'})"
        elif node.value in ("&&", "||") and bads[1]:
            reached = names[0] if node.value == "&&" else f"!{names[0]}"
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
            parts = components(function.type.result)
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
        for dimension, (index, border) in enumerate(zip(indices, node.value.borders, strict=True)):
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
        if not node.free:
            self.closed(node)
            return
        block = self.home(node)
        depth = self.blocks.index(block)
        held, self.blocks = self.blocks, self.blocks[: depth + 1]
        loop = Reducing(self, node)
        loop.start()
        variables = node.value[1]
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

    def bounds(self, variable: Bound) -> tuple[str, str]:
        range_ = variable.range
        suffix = "u" if variable.type == "uint" else ""
        if range_.size <= SMALL:
            return f"{range_.low}{suffix}", f"{range_.high}{suffix}"
        high = self.argument((variable.serial, "high"), variable.type, range_.high, "h")
        if range_.low == 0:
            return f"0{suffix}", high
        return self.argument((variable.serial, "low"), variable.type, range_.low, "l"), high

    # Scalar functions

    def call(self, node: Node) -> None:
        operands = [self.found(child) for child in node.inputs]
        parts = node.type if isinstance(node.type, tuple) else (node.type,)
        function = node.value.function
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

    def function(self, function: ScalarFunction) -> str:
        if function.serial not in self.functions:
            text = FunctionText(self, function).text()
            self.functions[function.serial] = f"u{len(self.functions)}_{function.name}".replace("__", "_")
            self.function_text.append(text.replace("@NAME@", self.functions[function.serial]))
        return self.functions[function.serial]


class Reducing:
    """The state of a reduction that runs as loops: variables before, a step inside, a value after."""

    def __init__(self, writer: Writer, node: Node):
        self.writer, self.node = writer, node
        self.reduction, self.variables = node.value
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


def int_of(w: Writer, name: str, variable: Bound) -> str:
    return w.dialect.cast("int", name) if variable.type == "uint" else name


def precise(w: Writer, part: str) -> str:
    return "precise " if part == "float" and getattr(w.dialect, "strict", False) and w.dialect.name == "pass" else ""


def neutral_text(name: str, part: str, dialect: C) -> str:
    """What a reduction starts from; for min and max of reals NaN where fmin and fmax pass over it, else infinity."""
    if name in ("min", "max"):
        if part in ("float", "double"):
            if dialect.name == "kernel":
                return dialect.nan
            return {"min": dialect.infinity, "max": f"(-{dialect.infinity})"}[name]
        limits = {"int": ("2147483647", "(-2147483647 - 1)"), "uint": ("4294967295u", "0u")}[part]
        return limits[name == "max"]
    if name in ("argmin", "argmax") or name not in ("+", "*", "&&", "||"):
        return literal(0, part, dialect)
    return literal({"+": 0, "*": 1, "&&": 1, "||": 0}[name], part, dialect)


class FunctionText:
    """A scalar function as a function of the dialect."""

    def __init__(self, writer: Writer, function: ScalarFunction):
        self.writer, self.function, self.dialect = writer, function, writer.dialect
        self.lines: list[str] = []
        self.names = {
            slot: f"l{k}_{slot.name}".replace("__", "_")
            for k, slot in enumerate((*function.parameters, *function.locals))
        }

    def text(self) -> str:
        parts = components(self.function.result)
        self.writer.doubles |= "double" in parts or any(s.type == "double" for s in self.names)
        parameters = [f"{self.dialect.types[s.type]} {self.names[s]}" for s in self.function.parameters]
        if has_loops(self.function):
            parameters.append(self.dialect.bad_parameter())
        for slot in self.function.locals:
            type_ = precise(self.writer, slot.type) + self.dialect.types[slot.type]
            self.lines.append(f"    {type_} {self.names[slot]} = {literal(0, slot.type, self.dialect)};")
        self.statements(self.function.body, "    ")
        zero = [literal(0, p, self.dialect) for p in parts]
        self.lines.append("    " + self.give(zero, parts))
        single = len(parts) == 1
        result = self.dialect.types[parts[0]] if single else "R@NAME@"
        struct = "" if single else self.dialect.struct("R@NAME@", parts) + "\n"
        return f"{struct}DEVICE {result} @NAME@({', '.join(parameters)}) {{\n" + "\n".join(self.lines) + "\n}\n"

    def give(self, names: list[str], parts: tuple[str, ...]) -> str:
        if len(parts) == 1:
            return f"return {names[0]};"
        if self.dialect.name == "pass":
            return f"return R@NAME@({', '.join(names)});"
        stores = " ".join(f"found.c{k} = {n};" for k, n in enumerate(names))
        return f"{{ R@NAME@ found; {stores} return found; }}"

    def statements(self, body: tuple, indent: str) -> None:
        for statement in body:
            if isinstance(statement, Store):
                self.store(statement, indent)
            elif isinstance(statement, Branch):
                self.branch(statement, indent)
            elif isinstance(statement, Repeat):
                self.repeat(statement, indent)
            elif isinstance(statement, Leave):
                self.lines.append(f"{indent}{statement.kind};")
            elif isinstance(statement, Give):
                self.lines.append(f"{indent}{{")
                names = self.values(statement.nodes, indent + "    ")
                self.lines.append(indent + "    " + self.give(names, components(self.function.result)))
                self.lines.append(f"{indent}}}")

    def store(self, statement: Store, indent: str) -> None:
        self.lines.append(f"{indent}{{")
        names = self.values(statement.nodes, indent + "    ")
        for slot, name in zip(statement.slots, names, strict=True):
            self.lines.append(f"{indent}    {self.names[slot]} = {name};")
        self.lines.append(f"{indent}}}")

    def branch(self, statement: Branch, indent: str) -> None:
        test = self.writer.fresh("t")
        self.lines.append(f"{indent}bool {test};")
        self.lines.append(f"{indent}{{")
        name = self.values((statement.condition,), indent + "    ")[0]
        self.lines.append(f"{indent}    {test} = {name};")
        self.lines.append(f"{indent}}}")
        self.lines.append(f"{indent}if ({test}) {{")
        self.statements(statement.yes, indent + "    ")
        if statement.no:
            self.lines.append(f"{indent}}} else {{")
            self.statements(statement.no, indent + "    ")
        self.lines.append(f"{indent}}}")

    def repeat(self, statement: Repeat, indent: str) -> None:
        """`continue` goes to the top, where the step stands before the test: the same text in C and GLSL."""
        count, inner = self.writer.fresh("round"), indent + "    "
        self.lines.append(f"{indent}for (int {count} = 0; ; {count}++) {{")
        self.lines.append(f"{inner}if ({count} == {LOOP_LIMIT}) {{ {self.dialect.set_bad(ENDLESS)} break; }}")
        if statement.step:
            self.lines.append(f"{inner}if ({count} != 0) {{")
            self.statements(statement.step, inner + "    ")
            self.lines.append(f"{inner}}}")
        if statement.condition is not None:
            self.lines.append(f"{inner}{{")
            name = self.values((statement.condition,), inner + "    ")[0]
            test = f"!{name}" if statement.test_first else f"{count} != 0 && !{name}"
            self.lines.append(f"{inner}    if ({test}) break;")
            self.lines.append(f"{inner}}}")
        self.statements(statement.body, inner)
        self.lines.append(f"{indent}}}")

    def values(self, roots: tuple[Node, ...], indent: str) -> list[str]:
        found: dict[int, tuple[str, ...]] = {}
        for node in topological(roots):
            found[id(node)] = self.node(node, [found[id(child)] for child in node.inputs], indent)
        # What is stored is copied first: another slot of the same statement may be read after it is written.
        names = []
        for root in roots:
            name = found[id(root)][0]
            if root.op == "local" and len(roots) > 1:
                copy = self.writer.fresh()
                self.lines.append(f"{indent}{self.dialect.declare(root.type, copy, name)}")
                name = copy
            names.append(name)
        return names

    def node(self, node: Node, operands: list[tuple[str, ...]], indent: str) -> tuple[str, ...]:
        if node.op == "local":
            return (self.names[node.value],)
        if node.op == "scalar":
            return (literal(node.value.number, node.type, self.dialect),)
        if isinstance(node.value, Component):
            return (operands[0][node.value.index],)
        names = [o[0] for o in operands]
        if isinstance(node.value, UserCall):
            return self.inner_call(node, names, indent)
        variable = self.writer.fresh()
        text = operation_text(self.dialect, node.value, node.inputs[-1].type, node.type, names)
        self.lines.append(f"{indent}{self.dialect.declare(node.type, variable, text)}")
        return (variable,)

    def inner_call(self, node: Node, names: list[str], indent: str) -> tuple[str, ...]:
        called = self.writer.function(node.value.function)
        if has_loops(node.value.function):
            names = [*names, "bad"]
        text = f"{called}({', '.join(names)})"
        if not isinstance(node.type, tuple):
            variable = self.writer.fresh()
            self.lines.append(f"{indent}{self.dialect.declare(node.type, variable, text)}")
            return (variable,)
        whole = self.writer.fresh("r")
        self.lines.append(f"{indent}R{called} {whole} = {text};")
        return tuple(f"{whole}.c{k}" for k in range(len(node.type)))


def has_loops(function: ScalarFunction) -> bool:
    """Whether a function or one that it calls may run without end."""
    stack = list(function.body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, Repeat):
            return True
        nodes: tuple = ()
        if isinstance(statement, Branch):
            stack += [*statement.yes, *statement.no]
            nodes = (statement.condition,)
        elif isinstance(statement, (Store, Give)):
            nodes = statement.nodes
        for node in topological(nodes):
            if isinstance(node.value, UserCall) and has_loops(node.value.function):
                return True
    return False


def literal(number, type_: str, dialect: C) -> str:
    if type_ == "bool":
        return "true" if number else "false"
    if type_ == "int":
        return (
            f"({int(number) + 1} - 1)"
            if number == -(2**31)
            else str(int(number))
            if number >= 0
            else f"({int(number)})"
        )
    if type_ == "uint":
        return f"{int(number)}u"
    with np.errstate(all="ignore"):
        value = float(np.float32(number)) if type_ == "float" else float(number)
    if value != value:
        return dialect.nan
    if value in (float("inf"), float("-inf")):
        return dialect.infinity if value > 0 else f"(-{dialect.infinity})"
    text = f"{value:.9g}" if type_ == "float" else repr(value)
    if not any(c in text for c in ".e"):
        text += ".0"
    text += "f" if type_ == "float" else ""
    return f"({text})" if text.startswith("-") else text


def operation_text(dialect: C, name: str, operand: str, result: str, names: list[str]) -> str:
    """One operation on variables; `operand` is the scalar type of the operands."""
    if name == "select":
        return f"({names[0]} ? {names[1]} : {names[2]})"
    if name == "convert":
        return converted(dialect, operand, result, names[0])
    if operand in ("int", "uint"):
        if name in ("/", "%"):
            return f"{'divide' if name == '/' else 'remainder'}_{operand}({names[0]}, {names[1]})"
        if name in ("min", "max"):
            return f"({names[1]} {'<' if name == 'min' else '>'} {names[0]} ? {names[1]} : {names[0]})"
        if name == "abs":
            return names[0] if operand == "uint" else f"({names[0]} < 0 ? -{names[0]} : {names[0]})"
        if name == "sign":
            zero = literal(0, operand, dialect)
            plus, minus = literal(1, operand, dialect), "(-1)" if operand == "int" else zero
            return f"({names[0]} > {zero} ? {plus} : {names[0]} < {zero} ? {minus} : {zero})"
        if name in ("<<", ">>"):
            one = "31u" if operand == "uint" else "31"
            return f"({names[0]} {name} ({names[1]} & {one}))"
    if operand == "bool" and name in ("&", "|", "^", "==", "!="):
        sign = {"&": "&&", "|": "||", "^": "!=", "==": "==", "!=": "!="}[name]
        return f"({names[0]} {sign} {names[1]})"
    if operand in ("float", "double") and name in ("sign", "step"):
        one, zero = literal(1, operand, dialect), literal(0, operand, dialect)
        if name == "step":
            return f"({names[1]} < {names[0]} ? {zero} : {one})"
        return f"({names[0]} > {zero} ? {one} : {names[0]} < {zero} ? (-{one}) : {names[0]})"
    return dialect.operation(name).format(*names)


def converted(dialect: C, source: str, target: str, name: str) -> str:
    if source == target:
        return name
    if source in ("float", "double") and target in ("int", "uint"):
        return f"{source}_to_{target}({name})"
    return dialect.cast(dialect.types[target], name)


def proven(index: Node, range_: Range) -> bool:
    """Whether an index stays inside of a range for all values of its variables."""
    form = affine(index)
    if form is None or not form.exact:
        return False
    ends = interval(form)
    return ends is not None and ends[0] >= range_.low and ends[1] < range_.high


def is_source(node: Node) -> bool:
    return isinstance(node.value, Source)
