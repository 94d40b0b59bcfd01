"""What all kinds of kernels are made of: parts, their parameter lists, and loops over the elements of a function."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from renderer.cdollar.ir.dag import Access, BoundVariable, Node
from renderer.cdollar.ir.passes import order_within_scope
from renderer.cdollar.ir.types import DTYPES, FunctionType
from renderer.cdollar.targets.emitter import Emitter, Value


@dataclass
class KernelPlan:
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
    if isinstance(node.type, FunctionType):
        return tuple(body.type for body in node.inputs)
    return node.type if isinstance(node.type, tuple) else (node.type,)


def header(writer: Emitter, entry: str, first: list[str]) -> tuple[str, list]:
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


def assembled(writer: Emitter, head: str, body: list[str]) -> str:
    lines = [
        '#include "cdollar/builtins.h"',
        *writer.function_text,
        head + " {",
        *("    " + line for line in body),
        "}",
    ]
    return "\n".join(lines) + "\n"


def strides(variables: tuple[BoundVariable, ...]) -> list[int]:
    found, total = [], 1
    for variable in reversed(variables):
        found.append(total)
        total *= variable.range.size
    return found[::-1]


def is_elementwise(node: Node, variables: tuple[BoundVariable, ...], bodies: tuple[Node, ...], ranges_of) -> bool:
    """Whether all arrays are read at the very index that is written, so that indices need no decoding."""
    box = [(v.range.low, v.range.high) for v in variables]
    reads = 0
    parts = [part for body in bodies for part in order_within_scope(body)]
    for part in parts:
        if part.op == "reduce" and part.free_variables:
            return False
        if part.op != "apply" or not isinstance(part.attribute, Access):
            continue
        function = part.inputs[0]
        while function.op == "let":
            function = function.inputs[0]
        found = [index.attribute if index.op == "variable" else None for index in part.inputs[1:]]
        if found != list(variables) or [(r.low, r.high) for r in ranges_of(function)] != box:
            return False
        reads += 1
    users = [(part, child) for part in parts for child in part.inputs if child.op == "variable"]
    only_read = all(isinstance(part.attribute, Access) for part, _ in users) and not any(
        b.op == "variable" for b in bodies
    )
    return reads > 0 and only_read


class ElementwiseEmitter(Emitter):
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


def decode(writer: Emitter, variables: tuple[BoundVariable, ...], place: str) -> None:
    """Binds variables to the coordinates of a linear place of their box, the last one fastest."""
    rest = place
    for position in range(len(variables) - 1, -1, -1):
        variable = variables[position]
        name = writer.fresh("at")
        if position:
            size = writer.argument((variable.unique_id, "size"), "int", variable.range.size, "n")
            value, rest = f"{rest} % {size}", f"({rest} / {size})"
        else:
            value = rest
        if variable.range.low:
            value = f"{value} + {writer.argument((variable.unique_id, 'low'), 'int', variable.range.low, 'l')}"
        value = f"({value})" if variable.type == "int" else writer.dialect.cast("uint", f"({value})")
        writer.line(writer.dialect.declare(variable.type, name, value))
        writer.define(variable, name)


def report(writer: Emitter, bad: str | None) -> list[str]:
    return [f"if ({bad} != 0) atomic_max(status, {bad});"] if bad else []


def closed_up(part: KernelPlan, writer: Emitter) -> KernelPlan:
    part.sites, part.doubles = writer.sites, writer.doubles
    return part


def volume(variables: tuple[BoundVariable, ...]) -> int:
    return int(np.prod([v.range.size for v in variables], dtype=np.int64))


def four_bytes(writer: Emitter, outputs: tuple[str, ...]) -> bool:
    """Whether all arrays of a part hold 4-byte numbers, so that four of them are one vector."""
    parts = [part for source in writer.inputs.values() for part in source.parts]
    return all(part in ("float", "int", "uint") for part in (*parts, *outputs))


def quad_loads(writer: Emitter) -> list[str]:
    return [
        f"const {part}4 {source.buffer(c)}_quad = ((GLOBAL const {part}4 *){source.buffer(c)})[quad];"
        for source in writer.inputs.values()
        for c, part in enumerate(source.parts)
    ]


def in_lane(writer: Emitter, body: list[str], lane: str, outputs: int) -> list[str]:
    """The lines of a linear body for one of four elements that were loaded together."""
    text = "\n".join(body)
    for source in writer.inputs.values():
        for component in range(len(source.parts)):
            text = text.replace(f"{source.buffer(component)}[place]", f"{source.buffer(component)}_quad.{lane}")
    for k in range(outputs):
        text = text.replace(f"out{k}[place] =", f"out{k}_quad.{lane} =")
    return ["{", *("    " + line for line in text.split("\n")), "}"]
