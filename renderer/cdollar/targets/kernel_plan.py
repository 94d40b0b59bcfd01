"""Kernel plans: the text of a kernel, its launch size and its arguments, which all kinds of kernels have in common."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from renderer.cdollar.ir.dag import BoundVariable, Node, RuntimeScalar, scalar_types
from renderer.cdollar.ir.operations import argument_of
from renderer.cdollar.ir.types import PROMOTED, FunctionType
from renderer.cdollar.targets.dialects import indented, storage_type
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.expression_emitter import index_type

BufferKind = Literal["array", "partial", "output", "status"]
KernelKind = Literal["map", "reduction", "matmul", "tiled_matmul", "cpu_matmul", "combine_partials", "pass"]


@dataclass(frozen=True)
class BufferArgument:
    """A buffer: a component of an array or scalar that `node` is, of partial results or outputs, or the status word."""

    kind: BufferKind
    component: int = 0
    node: Node | None = None


@dataclass
class KernelPlan:
    """A kernel for `node`, a function of bound variables or a closed reduction.

    Sizes and numbers of the program are arguments, so that the same text serves all of them. A reduction writes
    `partial_count` partial results of `partial_types`, which the kernel `combine` combines. `entry` is the kernel in
    the text, `local_bytes` what a group needs beyond the local arrays that it declares.
    """

    node: Node
    kind: KernelKind
    text: str
    group_size: int
    group_count: int
    arguments: list[Any] = field(default_factory=list)  # numbers and BufferArguments
    scalars: dict[int, RuntimeScalar] = field(default_factory=dict)  # the numbers of the program, by argument
    check_sites: list[Node] = field(default_factory=list)
    has_doubles: bool = False
    writes_status: bool = False
    entry: str = "compute"
    local_bytes: int = 0
    partial_types: tuple[str, ...] = ()
    partial_count: int = 0
    combine: KernelPlan | None = None
    reason: str = ""

    @property
    def key(self) -> str:
        """The hash that names a kernel in a schedule file: of its text by the default schedule."""
        return hashlib.sha256(f"{self.kind}\n{self.text}".encode()).hexdigest()[:16]


# The C types of variables: long has 32 bits in some compilers; half and byte are the types of elements only.
REGISTERS = PROMOTED | {"long": "int64"}


def in_registers(text: str) -> str:
    """A kernel's text with the C types of variables in the place of the language's."""
    return re.sub(rf"\b({'|'.join(REGISTERS)})\b", lambda match: REGISTERS[match[0]], text)


def output_types(node: Node) -> tuple[str, ...]:
    """The scalar types of the components of a function or a reduction."""
    if isinstance(node.type, FunctionType):
        return tuple(body.type for body in node.inputs)
    return scalar_types(node)


def finish_plan(
    emitter: Emitter,
    node: Node,
    kind: KernelKind,
    sizes: dict[str, int],
    outputs: tuple[str, ...],
    body: list[str],
    group_size: int,
    group_count: int,
    inputs: tuple[str, ...] = (),
) -> KernelPlan:
    """The plan of a kernel whose text an emitter has emitted.

    Its parameters are the `sizes`, the status word, the partial results in0, in1, ... with the types `inputs`, out0,
    out1, ... with the types `outputs`, the arrays that it reads, and numbers of the program.
    """
    parameters = [*(f"{index_type(size)} {name}" for name, size in sizes.items()), "GLOBAL int *status"]
    arguments: list[Any] = [argument_of(size, index_type(size)) for size in sizes.values()]
    arguments.append(BufferArgument("status"))

    def add_buffers(name: str, types: tuple[str, ...], kind: BufferKind, array: Node | None = None) -> None:
        const = "" if kind == "output" else "const "
        for k, type_ in enumerate(types):
            parameters.append(f"GLOBAL {const}{storage_type(type_)} *RESTRICT {name}{k}")
            arguments.append(BufferArgument(kind, k, array))

    add_buffers("in", inputs, "partial")
    add_buffers("out", outputs, "output")
    for source in emitter.inputs.values():
        add_buffers(f"{source.name}_", source.types, "array", source.function)
    for scalar, name in emitter.scalars.items():
        add_buffers(f"{name}_", scalar_types(scalar), "array", scalar)
    scalars = {}
    for key, (name, type_, number) in emitter.arguments.items():
        if isinstance(key, RuntimeScalar):
            scalars[len(arguments)] = key
        parameters.append(f"{'int' if type_ == 'bool' else type_} {name}")
        arguments.append(argument_of(number, type_))
    head = f"KERNEL compute({', '.join(parameters)}) {{"
    lines = ['#include "cdollar/builtins.h"', *emitter.function_text, head, *indented(body), "}"]
    text = in_registers("\n".join(lines) + "\n")
    return KernelPlan(
        node, kind, text, group_size, group_count, arguments, scalars, emitter.check_sites,
        emitter.has_doubles or "double" in inputs, emitter.writes_status,
    )  # fmt: skip


def volume(variables: tuple[BoundVariable, ...]) -> int:
    """The number of points of a box."""
    return math.prod(v.range.size for v in variables)
