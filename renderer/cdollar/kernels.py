"""Parts of a program as kernels of portable.h: maps, reductions to few values, tiled sums of products.

A part is a function of bound variables (an array is its result) or a reduction to one value. What the text needs from
outside stands in its parameters, so that the same text serves all sizes and all numbers of the program.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from renderer.cdollar.dag import Access, Bound, Node
from renderer.cdollar.emit import C, Reducing, Value, Writer, has_loops, operation_text
from renderer.cdollar.interpret import contraction
from renderer.cdollar.passes import in_frame
from renderer.cdollar.schedule import DEFAULT, SMALLER, Schedule
from renderer.cdollar.types import DTYPES, Functional

FEW = 4096  # outputs below which a long reduction gets a group for each
LONG = 512  # elements of a reduction that is worth a group of threads


@dataclass
class Part:
    """One launch or a few: `node` is a built function or a closed reduction."""

    node: Node
    kind: str  # map group tile panel
    text: str = ""
    group: int = 256
    groups: int = 0  # how many groups to launch
    arguments: list = field(
        default_factory=list
    )  # numbers, ("input", node, component), ("scalar", node, component), ...
    sites: list[Node] = field(default_factory=list)
    doubles: bool = False
    pieces: int = 1  # partial results of each output of a group reduction
    why: str = ""


def storage(part: str) -> str:
    """The C type that an array of this scalar type is stored as."""
    return "uchar" if part == "bool" else part


def output_parts(node: Node) -> tuple[str, ...]:
    if isinstance(node.type, Functional):
        return tuple(body.type for body in node.inputs)
    return node.type if isinstance(node.type, tuple) else (node.type,)


def header(writer: Writer, entry: str, first: list[str]) -> tuple[str, list]:
    """The kernel's parameter list after the writer is done, and what fills it."""
    parameters, arguments = list(first), []
    for source in writer.inputs.values():
        for component, part in enumerate(source.parts):
            parameters.append(f"GLOBAL const {storage(part)} *RESTRICT {source.buffer(component)}")
            arguments.append(("input", source.function, component))
    for node, name in writer.scalars.items():
        for component, part in enumerate(node.type if isinstance(node.type, tuple) else (node.type,)):
            parameters.append(f"GLOBAL const {storage(part)} *RESTRICT {name}_{component}")
            arguments.append(("scalar", node, component))
    for name, type_, number in writer.arguments:
        parameters.append(f"{'int' if type_ == 'bool' else type_} {name}")
        arguments.append(np.int32(bool(number)) if type_ == "bool" else DTYPES[type_](wrap(number, type_)))
    return f"KERNEL {entry}({', '.join(parameters)})", arguments


def wrap(number, type_: str):
    return number - 2**32 if type_ == "int" and number >= 2**31 else number


def assembled(writer: Writer, head: str, body: list[str]) -> str:
    lines = ['#include "cdollar.h"', *writer.function_text, head + " {", *("    " + line for line in body), "}"]
    return "\n".join(lines) + "\n"


def strides(variables: tuple[Bound, ...]) -> list[int]:
    found, total = [], 1
    for variable in reversed(variables):
        found.append(total)
        total *= variable.range.size
    return found[::-1]


def is_linear(node: Node, variables: tuple[Bound, ...], bodies: tuple[Node, ...], ranges_of) -> bool:
    """Whether all arrays are read at the very index that is written, so that indices need no decoding."""
    box = [(v.range.low, v.range.high) for v in variables]
    reads = 0
    parts = [part for body in bodies for part in in_frame(body)]
    for part in parts:
        if part.op == "reduce" and part.free:
            return False
        if part.op != "apply" or not isinstance(part.value, Access):
            continue
        function = part.inputs[0]
        while function.op == "let":
            function = function.inputs[0]
        found = [index.value if index.op == "bound" else None for index in part.inputs[1:]]
        if found != list(variables) or [(r.low, r.high) for r in ranges_of(function)] != box:
            return False
        reads += 1
    users = [(part, child) for part in parts for child in part.inputs if child.op == "bound"]
    only_read = all(isinstance(part.value, Access) for part, _ in users) and not any(b.op == "bound" for b in bodies)
    return reads > 0 and only_read


class Linear(Writer):
    """A writer of bodies whose arrays are all read at the linear index `place`."""

    def access(self, node: Node) -> None:
        function = node.inputs[0]
        while function.op == "let":
            function = function.inputs[0]
        source, block = self.input_of(function), self.home(node)
        names = []
        for component, part in enumerate(source.parts):
            name = self.fresh()
            block.lines.append(
                self.dialect.declare(part, name, self.dialect.load(source.buffer(component), "place", part))
            )
            names.append(name)
        self.keep(node, Value(tuple(names)))


def decode(writer: Writer, variables: tuple[Bound, ...], place: str) -> None:
    """Binds variables to the coordinates of a linear place of their box, the last one fastest."""
    rest = place
    for position in range(len(variables) - 1, -1, -1):
        variable = variables[position]
        name = writer.fresh("at")
        if position:
            size = writer.argument((variable.serial, "size"), "int", variable.range.size, "n")
            value, rest = f"{rest} % {size}", f"({rest} / {size})"
        else:
            value = rest
        if variable.range.low:
            value = f"{value} + {writer.argument((variable.serial, 'low'), 'int', variable.range.low, 'l')}"
        value = f"({value})" if variable.type == "int" else writer.dialect.cast("uint", f"({value})")
        writer.line(writer.dialect.declare(variable.type, name, value))
        writer.define(variable, name)


def report(writer: Writer, bad: str | None) -> list[str]:
    return [f"if ({bad} != 0) atomic_max(status, {bad});"] if bad else []


def map_part(node: Node, ranges_of, schedule: Schedule, lanes: int) -> Part:
    """One thread for a few elements of the result."""
    variables = node.value
    count = int(np.prod([v.range.size for v in variables], dtype=np.int64))
    linear = is_linear(node, variables, node.inputs, ranges_of)
    writer = (Linear if linear else Writer)(C(), ranges_of)
    items = schedule.items if lanes > 1 and linear else 1
    writer.blocks[0].variables = frozenset()
    if linear:
        for variable in variables:
            writer.define(variable, "place")
    else:
        decode(writer, variables, "place")
    values = [writer.value(body) for body in node.inputs]
    stores = [f"out{k}[place] = {v.names[0]};" for k, v in enumerate(values)]
    checks = report(writer, writer.one_bad([v.bad for v in values if v.bad], writer.blocks[0]))
    body = writer.blocks[0].lines + stores + checks
    outs = [f"GLOBAL {storage(p)} *RESTRICT out{k}" for k, p in enumerate(output_parts(node))]
    head, arguments = header(writer, "part", ["int count", "GLOBAL int *status", *outs])
    quads = items >= 4 and four_bytes(writer, output_parts(node))
    if quads:
        lines = quad_lines(writer, output_parts(node), body, items // 4)
    elif items > 1:
        lines = [
            f"const int first = (int)(group_index() * (GROUP_SIZE * {items}) + local_index());",
            f"if (first + {items - 1} * GROUP_SIZE < count) {{",
            f"    UNROLL for (int item = 0; item < {items}; item++) {{",
            "        const int place = first + item * GROUP_SIZE;",
            *("        " + line for line in body),
            "    }",
            "} else {",
            "    for (int place = first; place < count; place += GROUP_SIZE) {",
            *("        " + line for line in body),
            "    }",
            "}",
        ]
    else:
        lines = ["const int place = (int)thread_index();", "if (place < count) {", *("    " + x for x in body), "}"]
    outputs = [("out", node, k) for k in range(len(outs))]
    found = Part(node, "map", assembled(writer, head, lines), schedule.group)
    found.groups = -(-count // (schedule.group * items))
    found.arguments = [np.int32(count), ("status",), *outputs, *arguments]
    return closed_up(found, writer)


def four_bytes(writer: Writer, outputs: tuple[str, ...]) -> bool:
    """Whether all arrays of a part hold 4-byte numbers, so that four of them are one vector."""
    parts = [part for source in writer.inputs.values() for part in source.parts]
    return all(part in ("float", "int", "uint") for part in (*parts, *outputs))


def quad_loads(writer: Writer) -> list[str]:
    return [
        f"const {part}4 {source.buffer(c)}_quad = ((GLOBAL const {part}4 *){source.buffer(c)})[quad];"
        for source in writer.inputs.values()
        for c, part in enumerate(source.parts)
    ]


def in_lane(writer: Writer, body: list[str], lane: str, outputs: int) -> list[str]:
    """The lines of a linear body for one of four elements that were loaded together."""
    text = "\n".join(body)
    for source in writer.inputs.values():
        for component in range(len(source.parts)):
            text = text.replace(f"{source.buffer(component)}[place]", f"{source.buffer(component)}_quad.{lane}")
    for k in range(outputs):
        text = text.replace(f"out{k}[place] =", f"out{k}_quad.{lane} =")
    return ["{", *("    " + line for line in text.split("\n")), "}"]


def quad_lines(writer: Writer, outputs: tuple[str, ...], body: list[str], quads: int) -> list[str]:
    """A map whose threads take vectors of four elements, `quads` of them."""
    lanes = [line for lane in "xyzw" for line in in_lane(writer, body, lane, len(outputs))]
    return [
        f"UNROLL for (int item = 0; item < {quads}; item++) {{",
        f"    const int quad = (int)(group_index() * (GROUP_SIZE * {quads}) + local_index()) + item * GROUP_SIZE;",
        "    if (4 * quad + 3 < count) {",
        *("        " + line for line in quad_loads(writer)),
        *(f"        {part}4 out{k}_quad;" for k, part in enumerate(outputs)),
        *("        " + line for line in lanes),
        *(f"        ((GLOBAL {part}4 *)out{k})[quad] = out{k}_quad;" for k, part in enumerate(outputs)),
        "    } else {",
        "        for (int place = 4 * quad; place < count; place++) {",
        *("            " + line for line in body),
        "        }",
        "    }",
        "}",
    ]


def closed_up(part: Part, writer: Writer) -> Part:
    part.sites, part.doubles = writer.sites, writer.doubles
    return part


def order_matters(node: Node) -> bool:
    return node.value[0].ordered


def group_part(node: Node, reduce_node: Node, ranges_of, schedule: Schedule, units: int, lanes: int) -> Part:
    """A group of threads (or several) for each value of a reduction; `node` is a function around it, or itself."""
    outer = node.value if node is not reduce_node else ()
    reduction, variables = reduce_node.value
    outputs = int(np.prod([v.range.size for v in outer], dtype=np.int64))
    volume = int(np.prod([v.range.size for v in variables], dtype=np.int64))
    group = 1 if order_matters(reduce_node) or lanes == 1 else schedule.group
    wanted = units * (schedule.spread if lanes > 1 else 4)
    pieces = 1 if order_matters(reduce_node) else max(1, min(-(-wanted // outputs), -(-volume // (group * 16))))
    length = -(-volume // pieces)
    pieces = -(-volume // length)
    contiguous = reduction.function is not None or reduction.name.startswith("arg") or group == 1
    linear = not outer and is_linear(node, variables, reduce_node.inputs, ranges_of)
    writer = (Linear if linear else Writer)(C(), ranges_of)
    decode(writer, outer, "output")
    work = GroupText(writer, reduce_node, linear, contiguous, schedule)
    lines = work.lines()
    outs = [f"GLOBAL {storage(p)} *RESTRICT out{k}" for k, p in enumerate(work.carried)]
    firsts = ["int outputs", "int pieces", "int volume", "int length", "GLOBAL int *status", *outs]
    head, arguments = header(writer, "part", firsts)
    found = Part(node, "group", assembled(writer, head, lines), group)
    found.groups, found.pieces = outputs * pieces, pieces
    names = [("partial", k, p) for k, p in enumerate(work.carried)]
    numbers = [np.int32(outputs), np.int32(pieces), np.int32(volume), np.int32(length)]
    found.arguments = [*numbers, ("status",), *names, *arguments]
    return closed_up(found, writer)


class GroupText:
    """The text of a group reduction: each thread its share, then a tree in local memory."""

    def __init__(self, writer: Writer, node: Node, linear: bool, contiguous: bool, schedule: Schedule):
        self.writer, self.node, self.linear, self.contiguous, self.schedule = writer, node, linear, contiguous, schedule
        self.reduction, self.variables = node.value
        self.parts = output_parts(node)
        self.best = self.reduction.name in ("argmin", "argmax")
        # What travels between threads: the state, the compared value of argmin, and whether there is any.
        self.carried = (*self.parts, node.inputs[0].type) if self.best else self.parts
        self.flagged = self.best or self.reduction.function is not None and self.reduction.name != "fold"
        if self.flagged:
            self.carried = (*self.carried, "int")

    def lines(self) -> list[str]:
        w = self.writer
        if self.contiguous:
            w.line("const int from = (int)(group_index() % (uint)pieces) * length;")
            w.line("const int until = min(from + length, volume);")
        loop = Reducing(w, self.node)
        loop.start()
        held = w.blocks
        w.blocks = [*held, type(held[0])(frozenset())]
        if self.linear:
            for variable in self.variables:
                w.define(variable, "place")
        else:
            decode(w, self.variables, "place")
        loop.join()
        inner = w.blocks[-1].lines
        w.blocks = held
        body = ["const int output = (int)(group_index() / (uint)pieces);", *w.blocks[0].lines, *self.loops(inner)]
        value = loop.finish()
        state = [
            *loop.state,
            *([loop.best] if self.best else []),
            *([f"({loop.first} ? 0 : 1)"] if self.flagged else []),
        ]
        return [*body, *self.tree(state), *report(w, value.bad)]

    def loops(self, inner: list[str]) -> list[str]:
        if self.contiguous:
            return [
                "const int share = (until - from + GROUP_SIZE - 1) / GROUP_SIZE;",
                "const int begin = from + (int)local_index() * share;",
                "for (int place = begin; place < min(begin + share, until); place++) {",
                *("    " + line for line in inner),
                "}",
            ]
        unroll = self.schedule.items
        if self.linear and four_bytes(self.writer, ()):
            return self.quad_loops(inner, unroll)
        # Groups take tiles in turn, so that those that run at the same time read neighbouring memory.
        return [
            f"int place0 = (int)(group_index() % (uint)pieces) * ({unroll} * GROUP_SIZE) + (int)local_index();",
            f"for (; place0 + {unroll - 1} * GROUP_SIZE < volume; place0 += pieces * ({unroll} * GROUP_SIZE)) {{",
            f"    UNROLL for (int item = 0; item < {unroll}; item++) {{",
            "        const int place = place0 + item * GROUP_SIZE;",
            *("        " + line for line in inner),
            "    }",
            "}",
            f"for (int place = place0; place < min(place0 + {unroll} * GROUP_SIZE, volume); place += GROUP_SIZE) {{",
            *("    " + line for line in inner),
            "}",
        ]

    def quad_loops(self, inner: list[str], unroll: int) -> list[str]:
        """The loop over tiles whose elements are loaded four at a time."""
        one = [*quad_loads(self.writer), *(x for lane in "xyzw" for x in in_lane(self.writer, inner, lane, 0))]
        return [
            "const int quads = volume / 4, piece = (int)(group_index() % (uint)pieces);",
            f"int quad0 = piece * ({unroll} * GROUP_SIZE) + (int)local_index();",
            f"for (; quad0 + {unroll - 1} * GROUP_SIZE < quads; quad0 += pieces * ({unroll} * GROUP_SIZE)) {{",
            f"    UNROLL for (int item = 0; item < {unroll}; item++) {{",
            "        const int quad = quad0 + item * GROUP_SIZE;",
            *("        " + line for line in one),
            "    }",
            "}",
            f"for (int quad = quad0; quad < min(quad0 + {unroll} * GROUP_SIZE, quads); quad += GROUP_SIZE) {{",
            *("    " + line for line in one),
            "}",
            "for (int place = 4 * quads + (int)local_index(); piece == 0 && place < volume; place += GROUP_SIZE) {",
            *("    " + line for line in inner),
            "}",
        ]

    def tree(self, state: list[str]) -> list[str]:
        names = [f"shared{k}" for k in range(len(self.carried))]
        lines = [f"LOCAL_ARRAY({storage(p)}, {n}, GROUP_SIZE);" for n, p in zip(names, self.carried, strict=True)]
        lines += [f"{n}[local_index()] = {s};" for n, s in zip(names, state, strict=True)]
        lines.append("BARRIER();")
        ordered = self.contiguous
        if ordered:
            lines += ["for (int step = 1; step < GROUP_SIZE; step *= 2) {", "    const int mine = (int)local_index();"]
            lines.append("    if (mine % (2 * step) == 0 && mine + step < GROUP_SIZE) {")
        else:
            lines += [
                "for (int step = GROUP_SIZE / 2; step > 0; step /= 2) {",
                "    const int mine = (int)local_index();",
            ]
            lines.append("    if (mine < step) {")
        lines += ["        " + line for line in self.joined(names)]
        lines += ["    }", "    BARRIER();", "}", "if (local_index() == 0) {"]
        lines += [f"    out{k}[group_index()] = {n}[0];" for k, n in enumerate(names)]
        return [*lines, "}"]

    def joined(self, names: list[str]) -> list[str]:
        """Element `mine` takes element `mine + step` in, which comes later in the order."""
        w = self.writer
        mine, other = [f"{n}[mine]" for n in names], [f"{n}[mine + step]" for n in names]
        stores = " ".join(f"{a} = {b};" for a, b in zip(mine, other, strict=True))
        if self.best:
            sign = "<" if self.reduction.name == "argmin" else ">"
            return [f"if ({other[-1]} != 0 && ({mine[-1]} == 0 || {other[-2]} {sign} {mine[-2]})) {{ {stores} }}"]
        if self.reduction.name == "fold":
            return ["// one thread folds: nothing to join"]
        if self.reduction.function is None:
            part = self.parts[0]
            return [f"{mine[0]} = {operation_text(w.dialect, self.reduction.name, part, part, [mine[0], other[0]])};"]
        called = w.function(self.reduction.function)
        arguments = [*mine[:-1], *other[:-1]]
        lines = []
        if has_loops(self.reduction.function):
            lines.append("int ignored = 0;")
            arguments.append(w.dialect.bad_argument("ignored"))
        call = f"{called}({', '.join(arguments)})"
        if len(self.parts) == 1:
            lines.append(f"{mine[0]} = {call};")
        else:
            lines.append(f"R{called} both = {call};")
            lines += [f"{m} = both.c{k};" for k, m in enumerate(mine[:-1])]
        both = "".join(f"    {line}\n" for line in lines).rstrip("\n").split("\n")
        return [
            f"if ({other[-1]} != 0 && {mine[-1]} != 0) {{",
            *both,
            f"}} else if ({other[-1]} != 0) {{ {stores} }}",
        ]


FINISH_GROUP = 256


def finish_text(reduce_node: Node) -> str:
    """The kernel that joins the partial results of a group reduction, in order: a group for each output.

    Every thread joins a run of pieces, then a tree joins the threads; runs without pieces say so.
    """
    writer = Writer(C(), lambda function: ())
    work = GroupText(writer, reduce_node, False, True, Schedule())
    names = [f"value{k}" for k in range(len(work.carried))]
    text = [line.replace("[mine + step]", "@next").replace("[mine]", "") for line in work.joined(names)]
    for k, name in enumerate(names):
        text = [line.replace(f"{name}@next", f"next{k}") for line in text]
    first = [f"{storage(p)} {n} = in{k}[start];" for k, (n, p) in enumerate(zip(names, work.carried, strict=True))]
    nexts = [f"const {storage(p)} next{k} = in{k}[piece];" for k, p in enumerate(work.carried)]
    lines = [
        "const int output = (int)group_index();",
        "const int share = (pieces + GROUP_SIZE - 1) / GROUP_SIZE, used = (pieces + share - 1) / share;",
        "const int begin = output * pieces + (int)local_index() * share;",
        "const int start = min(begin, (output + 1) * pieces - 1), end = min(begin + share, (output + 1) * pieces);",
        *first,
        "for (int piece = begin + 1; piece < end; piece++) {",
        *("    " + line for line in [*nexts, *text]),
        "}",
        *(f"LOCAL_ARRAY({storage(p)}, joined{k}, GROUP_SIZE);" for k, p in enumerate(work.carried)),
        *(f"joined{k}[local_index()] = {n};" for k, n in enumerate(names)),
        "BARRIER();",
        "for (int step = 1; step < GROUP_SIZE; step *= 2) {",
        "    const int mine = (int)local_index();",
        "    if (mine % (2 * step) == 0 && mine + step < used) {",
        *("        " + line for line in work.joined([f"joined{k}" for k in range(len(work.carried))])),
        "    }",
        "    BARRIER();",
        "}",
        "if (local_index() == 0) {",
        *(f"    out{k}[output] = joined{k}[0];" for k in range(len(work.parts))),
        "}",
    ]
    ins = [f"GLOBAL const {storage(p)} *RESTRICT in{k}" for k, p in enumerate(work.carried)]
    outs = [f"GLOBAL {storage(p)} *RESTRICT out{k}" for k, p in enumerate(work.parts)]
    head = f"KERNEL finish({', '.join(['int pieces', *ins, *outs])})"
    return assembled(writer, head, lines)


@dataclass(frozen=True)
class Product:
    """A sum of products over matrices: factors of the left (batch, rows, k) and of the right (batch, k, columns)."""

    node: Node
    left: tuple[Node, ...]
    right: tuple[Node, ...]
    batch: tuple[Bound, ...]
    rows: tuple[Bound, ...]
    columns: tuple[Bound, ...]
    inner: tuple[Bound, ...]


def product_of(node: Node) -> Product | None:
    """The function as a matrix product, if its body is a sum of products of two sides."""
    if len(node.inputs) != 1 or node.inputs[0].op != "reduce" or node.inputs[0].type not in ("float", "double"):
        return None
    reduce_node = node.inputs[0]
    factors = contraction(reduce_node)
    if factors is None or any(has_inner_reduction(f) for f in factors):
        return None
    inner = frozenset(reduce_node.value[1])
    left, right = [factors[0]], []
    rows = factors[0].free - inner
    for factor in factors[1:]:
        (left if factor.free - inner <= rows else right).append(factor)
    if not right:
        return None
    columns = frozenset().union(*(f.free for f in right)) - inner
    batch = rows & columns
    if not rows - batch or not columns - batch or (rows | columns) != frozenset(node.value):
        return None

    def in_order(some: frozenset) -> tuple[Bound, ...]:
        return tuple(v for v in node.value if v in some)

    return Product(
        node,
        tuple(left),
        tuple(right),
        in_order(batch),
        in_order(rows - batch),
        in_order(columns - batch),
        reduce_node.value[1],
    )


def has_inner_reduction(node: Node) -> bool:
    return any(part.op == "reduce" and part.free for part in in_frame(node))


def volume(variables: tuple[Bound, ...]) -> int:
    return int(np.prod([v.range.size for v in variables], dtype=np.int64))


def runs_along(factors: tuple[Node, ...], variables: tuple[Bound, ...]) -> bool:
    """Whether the last index of the first array in some factors runs with the last of these variables."""
    for factor in factors:
        for part in in_frame(factor):
            if part.op == "apply" and isinstance(part.value, Access):
                return variables[-1] in part.inputs[-1].free
    return False


class Side:
    """Text that loads one element of a side of a product into a variable, at linear coordinates."""

    def __init__(
        self,
        writer: Writer,
        factors: tuple[Node, ...],
        groups: list[tuple[tuple[Bound, ...], str]],
        checked: bool = True,
    ):
        held, outer = writer.blocks, writer.blocks[0]
        writer.blocks = [outer, type(outer)(frozenset())]
        for variables, place in groups:
            decode(writer, variables, place)
        values = [writer.value(f) for f in factors]
        text = values[0].names[0]
        type_ = factors[0].type
        for value in values[1:]:
            text = operation_text(writer.dialect, "*", type_, type_, [text, value.names[0]])
        bad = writer.one_bad([v.bad for v in values if v.bad], writer.blocks[-1])
        self.lines, self.name = [*writer.blocks[-1].lines, *(report(writer, bad) if checked else [])], text
        self.bad = bad
        writer.blocks = held


def sized(schedule: Schedule, product: Product, units: int) -> Schedule:
    """The largest tiles that still give every unit of the processor work, for products that the tuner has not seen."""
    rows, columns, batch = volume(product.rows), volume(product.columns), volume(product.batch)
    for change in SMALLER:
        found = replace(schedule, **change)
        if -(-rows // found.rows) * -(-columns // found.columns) * batch >= 0.9 * units:
            return found
    return found


def tile_part(product: Product, ranges_of, schedule: Schedule) -> Part:
    """Tiles of both sides in local memory, `thread_rows` x `thread_columns` results in the registers of a thread.

    The next tile is loaded into registers while this one is multiplied (`pipelined`), and rows of the left tile lie
    next to each other for each k, so that a thread reads four at a time.
    """
    node = product.node
    type_ = node.inputs[0].type
    s = fitting(schedule, type_)
    writer = Writer(C(), ranges_of)
    rows, columns, depth = (volume(v) for v in (product.rows, product.columns, product.inner))
    group = (s.rows // s.thread_rows) * (s.columns // s.thread_columns)
    left = Side(writer, product.left, [(product.batch, "batch"), (product.rows, "row"), (product.inner, "deep")])
    right = Side(
        writer, product.right, [(product.batch, "batch"), (product.columns, "column"), (product.inner, "deep")]
    )
    lines = tile_lines(
        s, type_, group, left, right, runs_along(product.left, product.inner), runs_along(product.right, product.inner)
    )
    lines = [*writer.blocks[0].lines, *lines, *store_lines(writer, product)]
    outs = [f"GLOBAL {type_} *RESTRICT out0"]
    head, arguments = header(writer, "part", ["int rows", "int columns", "int depth", "GLOBAL int *status", *outs])
    found = Part(node, "tile", assembled(writer, head, lines), group)
    tiles = -(-rows // s.rows) * -(-columns // s.columns)
    found.groups = tiles * volume(product.batch)
    found.arguments = [np.int32(rows), np.int32(columns), np.int32(depth), ("status",), ("out", node, 0), *arguments]
    found.why = f"a product of {rows} x {depth} and {depth} x {columns}" + (
        f", {volume(product.batch)} times" if product.batch else ""
    )
    return closed_up(found, writer)


def store_lines(writer: Writer, product: Product) -> list[str]:
    """Where a result of (batch, row, column) goes: its place in the order of the function's variables."""
    step = dict(zip(product.node.value, strides(product.node.value), strict=True))
    plain = product.node.value == (*product.batch, *product.rows, *product.columns)
    lines = []
    if plain:
        place = "((batch * rows + row) * columns + column)"
    else:
        terms = []
        for variables, name in ((product.batch, "batch"), (product.rows, "row"), (product.columns, "column")):
            rest = name
            for variable in reversed(variables):
                size = writer.argument((variable.serial, "size"), "int", variable.range.size, "n")
                stride = writer.argument((variable.serial, "stride"), "int", step[variable], "n")
                terms.append(f"({rest} % {size}) * {stride}")
                rest = f"({rest} / {size})"
        place = " + ".join(terms)
    lines += [
        "UNROLL for (int i = 0; i < THREAD_ROWS; i++) {",
        "    UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) {",
        "        const int row = row0 + ROW_OF(i), column = column0 + COLUMN_OF(j);",
        f"        if (row < rows && column < columns) out0[{place}] = sum[i][j];",
        "    }",
        "}",
    ]
    return lines


def tile_lines(
    s: Schedule, type_: str, group: int, left: Side, right: Side, left_deep: bool, right_deep: bool
) -> list[str]:
    loads = [
        ("left", left, s.rows, "row", left_deep),
        ("right", right, s.columns, "column", right_deep),
    ]
    quad = f"{type_}4" if type_ == "float" else ""
    lines = [
        f"#define THREAD_ROWS {s.thread_rows}",
        f"#define THREAD_COLUMNS {s.thread_columns}",
        f"#define ACROSS {s.columns // s.thread_columns}",
        f"#define DOWN {s.rows // s.thread_rows}",
        # A thread's rows lie in quads, a quad of every thread side by side: reads of local memory do not collide.
        "#define ROW_OF(i) (((i) / 4) * (DOWN * 4) + mine_down * 4 + (i) % 4)",
        "#define COLUMN_OF(j) (((j) / 4) * (ACROSS * 4) + mine_across * 4 + (j) % 4)",
        *tile_arrays(s, type_),
        *thread_places(s),
        f"const int tiles_across = (columns + {s.columns - 1}) / {s.columns};",
        f"const int tiles_down = (rows + {s.rows - 1}) / {s.rows}, tiles = tiles_across * tiles_down;",
        "const int tile = (int)group_index() % tiles, batch = (int)group_index() / tiles;",
        # Groups that run together take a band of 8 tile rows, so that the second-level cache serves both sides.
        "const int band = tile / (8 * tiles_across), band_rows = min(8, tiles_down - band * 8);",
        "const int in_band = tile - band * 8 * tiles_across;",
        f"const int row0 = (band * 8 + in_band % band_rows) * {s.rows}, column0 = (in_band / band_rows) * {s.columns};",
        f"{type_} sum[THREAD_ROWS][THREAD_COLUMNS];",
        "UNROLL for (int i = 0; i < THREAD_ROWS; i++) UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) sum[i][j] = 0;",
    ]
    for name, _, width, _, _ in loads:
        lines.append(f"{type_} {name}_next[{-(-width * s.depth // group)}];")
    fetch = [
        line
        for name, side, width, place, deep in loads
        for line in fetch_lines(s, type_, group, name, side, width, place, deep)
    ]
    put = [line for name, side, width, place, deep in loads for line in put_lines(s, group, name, width, deep)]
    multiply = multiply_lines(s, type_, quad)
    lines += ["int deep0 = 0, half_ = 0;", *fetch, *put, "BARRIER();"]
    lines.append("for (; deep0 < depth; ) {")
    lines += [f"    deep0 += {s.depth};", "    if (deep0 < depth) {", *("        " + x for x in fetch), "    }"]
    lines += ["    " + x for x in multiply]
    lines += [
        "    half_ = 1 - half_;",
        "    if (deep0 < depth) {",
        *("        " + x for x in put),
        "    }",
        "    BARRIER();",
        "}",
    ]
    if not s.pipelined:
        start = lines.index("int deep0 = 0, half_ = 0;")
        lines = [*lines[:start], "const int half_ = 0;", f"for (int deep0 = 0; deep0 < depth; deep0 += {s.depth}) {{"]
        lines += ["    " + x for x in [*fetch, *put, "BARRIER();", *multiply, "BARRIER();"]]
        lines.append("}")
    return lines


def thread_places(s: Schedule) -> list[str]:
    """Which of a tile's results a thread makes: a warp takes 8 x 4 threads, so that its reads of local memory meet."""
    across, down = s.columns // s.thread_columns, s.rows // s.thread_rows
    if across % 8 or down % 4:
        return ["const int me = (int)local_index(), mine_across = me % ACROSS, mine_down = me / ACROSS;"]
    return [
        "const int me = (int)local_index(), warp = me / 32;",
        f"const int mine_across = warp % {across // 8} * 8 + me % 8;",
        f"const int mine_down = warp / {across // 8} * 4 + me % 32 / 8;",
    ]


def tile_arrays(s: Schedule, type_: str) -> list[str]:
    """Two halves of each tile in local memory, aligned so that four floats are read at once."""
    lines = []
    for name, width in (("left", s.rows), ("right", s.columns)):
        count = (2 if s.pipelined else 1) * s.depth * (width + 4)
        if type_ == "float":
            lines.append(f"LOCAL_ARRAY(float4, {name}_quads, {count // 4});")
            lines.append(f"LOCAL float *{name}_tile = (LOCAL float *){name}_quads;")
        else:
            lines.append(f"LOCAL_ARRAY({type_}, {name}_tile, {count});")
    return lines


def fitting(s: Schedule, type_: str) -> Schedule:
    """The schedule with tiles shallow enough for 48 KiB of local memory, which every device has."""
    size = 8 if type_ == "double" else 4
    while (2 if s.pipelined else 1) * s.depth * (s.rows + s.columns + 8) * size > 48 * 1024 and s.depth > 4:
        s = replace(s, depth=s.depth // 2)
    return s


def fetch_lines(
    s: Schedule, type_: str, group: int, name: str, side: Side, width: int, place: str, deep_first: bool
) -> list[str]:
    """The part of a tile that this thread loads, into its registers; what lies outside of the matrix is 0."""
    limit = "rows" if place == "row" else "columns"
    across, along = ("deep_in", "wide_in") if deep_first else ("wide_in", "deep_in")
    fast = s.depth if deep_first else width
    opening = [
        f"UNROLL for (int part = 0; part < {-(-width * s.depth // group)}; part++) {{",
        f"    const int element = me + part * {group}, {across} = element % {fast}, {along} = element / {fast};",
        f"    const int {place} = {place}0 + wide_in, deep = deep0 + deep_in;",
    ]
    whole = [*opening, *("    " + line for line in side.lines), f"    {name}_next[part] = {side.name};", "}"]
    guarded = [
        *opening,
        f"    {name}_next[part] = 0;",
        f"    if ({place} < {limit} && deep < depth"
        + (f" && element < {width * s.depth}" if width * s.depth % group else "")
        + ") {",
        *("        " + line for line in side.lines),
        f"        {name}_next[part] = {side.name};",
        "    }",
        "}",
    ]
    if width * s.depth % group:
        return guarded
    inside = f"if ({place}0 + {width} <= {limit} && deep0 + {s.depth} <= depth) {{"
    return [inside, *("    " + x for x in whole), "} else {", *("    " + x for x in guarded), "}"]


def put_lines(s: Schedule, group: int, name: str, width: int, deep_first: bool) -> list[str]:
    fast = s.depth if deep_first else width
    across, along = ("deep_in", "wide_in") if deep_first else ("wide_in", "deep_in")
    guard = f"if (element < {width * s.depth}) " if width * s.depth % group else ""
    return [
        f"UNROLL for (int part = 0; part < {-(-width * s.depth // group)}; part++) {{",
        f"    const int element = me + part * {group}, {across} = element % {fast}, {along} = element / {fast};",
        f"    {guard}{name}_tile[(half_ * {s.depth} + deep_in) * {width + 4} + wide_in] = {name}_next[part];",
        "}",
    ]


def multiply_lines(s: Schedule, type_: str, quad: str) -> list[str]:
    lines = [f"UNROLL for (int deep = 0; deep < {s.depth}; deep++) {{"]
    for name, count, width, of, mine in (
        ("left", s.thread_rows, s.rows, "DOWN", "mine_down"),
        ("right", s.thread_columns, s.columns, "ACROSS", "mine_across"),
    ):
        lines.append(f"    {type_} {name}_row[{count}];")
        base = f"(half_ * {s.depth} + deep) * {width + 4} + {mine} * 4"
        for k in range(count // 4):
            at = f"{base} + {k} * {of} * 4"
            if quad:
                lines.append(f"    {{ const {quad} four = *(LOCAL const {quad} *)&{name}_tile[{at}];")
                lines.append(
                    "      " + " ".join(f"{name}_row[{4 * k + c}] = four.{'xyzw'[c]};" for c in range(4)) + " }"
                )
            else:
                lines.append("    " + " ".join(f"{name}_row[{4 * k + c}] = {name}_tile[{at} + {c}];" for c in range(4)))
    lines += [
        "    UNROLL for (int i = 0; i < THREAD_ROWS; i++)",
        "        UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) sum[i][j] += left_row[i] * right_row[j];",
        "}",
    ]
    return lines


def panel_part(product: Product, ranges_of, schedule: Schedule) -> Part:
    """For processors of one lane: a thread makes 4 rows x 32 columns, the inner loop along the columns for SIMD."""
    node, type_ = product.node, product.node.inputs[0].type
    rows, columns, depth = (volume(v) for v in (product.rows, product.columns, product.inner))
    high, wide = 4, 32
    writer = Writer(C(), ranges_of)
    left = Side(writer, product.left, [(product.batch, "batch"), (product.rows, "row"), (product.inner, "deep")])
    right = Side(
        writer, product.right, [(product.batch, "batch"), (product.columns, "column"), (product.inner, "deep")]
    )
    lines = [
        f"#define THREAD_ROWS {high}",
        f"#define THREAD_COLUMNS {wide}",
        "#define ROW_OF(i) (i)",
        "#define COLUMN_OF(j) (j)",
        f"const int panels = (columns + {wide - 1}) / {wide}, blocks = (rows + {high - 1}) / {high};",
        "const int tile = (int)thread_index() % (panels * blocks), batch = (int)thread_index() / (panels * blocks);",
        f"const int row0 = (tile % blocks) * {high}, column0 = (tile / blocks) * {wide};",
        f"if (batch < {writer.argument('batches', 'int', volume(product.batch), 'n')}) {{",
        f"{type_} sum[{high}][{wide}];",
        f"for (int i = 0; i < {high}; i++) for (int j = 0; j < {wide}; j++) sum[i][j] = 0;",
        "for (int deep = 0; deep < depth; deep++) {",
        f"    {type_} left_row[{high}], right_row[{wide}];",
        f"    for (int i = 0; i < {high}; i++) {{",
        "        const int row = min(row0 + i, rows - 1);",
        *("        " + line for line in left.lines),
        f"        left_row[i] = {left.name};",
        "    }",
        f"    if (column0 + {wide} <= columns) {{",
        f"        for (int j = 0; j < {wide}; j++) {{",
        "            const int column = column0 + j;",
        *("            " + line for line in right.lines),
        f"            right_row[j] = {right.name};",
        "        }",
        "    } else {",
        f"        for (int j = 0; j < {wide}; j++) {{",
        "            const int column = min(column0 + j, columns - 1);",
        *("            " + line for line in right.lines),
        f"            right_row[j] = {right.name};",
        "        }",
        "    }",
        f"    for (int i = 0; i < {high}; i++)",
        f"        for (int j = 0; j < {wide}; j++) sum[i][j] += left_row[i] * right_row[j];",
        "}",
    ]
    lines = [*writer.blocks[0].lines, *lines, *store_lines(writer, product), "}"]
    head, arguments = header(
        writer, "part", ["int rows", "int columns", "int depth", "GLOBAL int *status", f"GLOBAL {type_} *RESTRICT out0"]
    )
    found = Part(node, "panel", assembled(writer, head, lines), 1)
    found.groups = -(-rows // high) * -(-columns // wide) * volume(product.batch)
    found.arguments = [np.int32(rows), np.int32(columns), np.int32(depth), ("status",), ("out", node, 0), *arguments]
    return closed_up(found, writer)


def part_of(node: Node, ranges_of, schedule: Schedule, processor) -> Part:
    """How a function or a closed reduction is computed on a processor."""
    if node.op == "reduce":
        return group_part(node, node, ranges_of, schedule, processor.units, processor.lanes)
    product = product_of(node) if not schedule.plain else None
    if product is not None and volume(product.inner) >= 4:
        if processor.lanes == 1:
            return panel_part(product, ranges_of, schedule)
        return tile_part(
            product, ranges_of, sized(schedule, product, processor.units) if schedule == DEFAULT else schedule
        )
    outputs = volume(node.value)
    single = node.inputs[0].inputs[0] if node.inputs[0].op == "apply" and len(node.inputs) > 1 else node.inputs[0]
    if single.op == "reduce" and single.free and is_whole(node, single) and processor.lanes > 1:
        if outputs <= FEW and volume(single.value[1]) >= LONG and not order_matters(single):
            return group_part(node, single, ranges_of, schedule, processor.units, processor.lanes)
    return map_part(node, ranges_of, schedule, processor.lanes)


def is_whole(node: Node, reduce_node: Node) -> bool:
    """Whether a function's components are exactly those of one reduction."""
    if len(node.inputs) == 1:
        return node.inputs[0] is reduce_node and not isinstance(reduce_node.type, tuple)
    return (
        isinstance(reduce_node.type, tuple)
        and all(
            body.op == "apply"
            and body.inputs
            and body.inputs[0] is reduce_node
            and getattr(body.value, "index", None) == k
            for k, body in enumerate(node.inputs)
        )
        and len(node.inputs) == len(reduce_node.type)
    )
