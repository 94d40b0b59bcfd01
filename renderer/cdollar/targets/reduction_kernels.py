"""Reductions to few values: a group of threads for each, a tree inside it, and a kernel that joins the groups."""

from __future__ import annotations

import numpy as np

from renderer.cdollar.ir.dag import Node
from renderer.cdollar.targets.device_functions import has_loops
from renderer.cdollar.targets.dialects import C, operation_text
from renderer.cdollar.targets.emitter import Emitter, LoopReduction
from renderer.cdollar.targets.kernel_plan import (
    ElementwiseEmitter,
    KernelPlan,
    assembled,
    closed_up,
    decode,
    four_bytes,
    header,
    in_lane,
    is_elementwise,
    output_parts,
    quad_loads,
    report,
    storage,
)
from renderer.cdollar.targets.schedule import Schedule

MIN_REDUCTION_LENGTH = 512  # elements of a reduction that is worth a group of threads


def order_matters(node: Node) -> bool:
    return node.attribute[0].ordered


def plan_reduction(node: Node, reduce_node: Node, ranges_of, schedule: Schedule, units: int, lanes: int) -> KernelPlan:
    """A group of threads (or several) for each value of a reduction; `node` is a function around it, or itself."""
    outer = node.attribute if node is not reduce_node else ()
    reduction, variables = reduce_node.attribute
    outputs = int(np.prod([v.range.size for v in outer], dtype=np.int64))
    volume = int(np.prod([v.range.size for v in variables], dtype=np.int64))
    group = 1 if order_matters(reduce_node) or lanes == 1 else schedule.group
    wanted = units * (schedule.spread if lanes > 1 else 4)
    pieces = 1 if order_matters(reduce_node) else max(1, min(-(-wanted // outputs), -(-volume // (group * 16))))
    length = -(-volume // pieces)
    pieces = -(-volume // length)
    contiguous = reduction.function is not None or reduction.name.startswith("arg") or group == 1
    linear = not outer and is_elementwise(node, variables, reduce_node.inputs, ranges_of)
    writer = (ElementwiseEmitter if linear else Emitter)(C(), ranges_of)
    decode(writer, outer, "output")
    work = ReductionEmitter(writer, reduce_node, linear, contiguous, schedule)
    lines = work.lines()
    outs = [f"GLOBAL {storage(p)} *RESTRICT out{k}" for k, p in enumerate(work.carried)]
    firsts = ["int outputs", "int pieces", "int volume", "int length", "GLOBAL int *status", *outs]
    head, arguments = header(writer, "part", firsts)
    found = KernelPlan(node, "group", assembled(writer, head, lines), group)
    found.groups, found.pieces = outputs * pieces, pieces
    names = [("partial", k, p) for k, p in enumerate(work.carried)]
    numbers = [np.int32(outputs), np.int32(pieces), np.int32(volume), np.int32(length)]
    found.arguments = [*numbers, ("status",), *names, *arguments]
    return closed_up(found, writer)


class ReductionEmitter:
    """The text of a group reduction: each thread its share, then a tree in local memory."""

    def __init__(self, writer: Emitter, node: Node, linear: bool, contiguous: bool, schedule: Schedule):
        self.writer, self.node, self.linear, self.contiguous, self.schedule = writer, node, linear, contiguous, schedule
        self.reduction, self.variables = node.attribute
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
        loop = LoopReduction(w, self.node)
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


COMBINE_GROUP_SIZE = 256


def combine_text(reduce_node: Node) -> str:
    """The kernel that joins the partial results of a group reduction, in order: a group for each output.

    Every thread joins a run of pieces, then a tree joins the threads; runs without pieces say so.
    """
    writer = Emitter(C(), lambda function: ())
    work = ReductionEmitter(writer, reduce_node, False, True, Schedule())
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
