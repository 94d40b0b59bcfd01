"""Kernel plans: the text of a kernel, its launch size and its arguments, which all kinds of kernels have in common."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from renderer.cdollar.ir.dag import BoundVariable, Node, scalar_types
from renderer.cdollar.ir.operations import wrap_int32
from renderer.cdollar.ir.types import DTYPES, FunctionType
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.expression_emitter import indented

KernelKind = Literal["map", "reduction", "tiled_matmul", "cpu_matmul", "combine_partials", "pass"]


@dataclass(frozen=True)
class BufferArgument:
    """A buffer: component of an array or scalar that `node` is, component of the outputs, or the status word."""

    kind: Literal["array", "output", "status"]
    component: int = 0
    node: Node | None = None


@dataclass
class KernelPlan:
    """A kernel for `node`, a function of bound variables or a closed reduction.

    Sizes and numbers of the program are arguments, so that the same text serves all of them. A reduction writes
    `partials_per_output` partial results of `partial_types`, which the kernel `combine` combines.
    """

    node: Node
    kind: KernelKind
    text: str
    entry: str
    group_size: int
    group_count: int
    arguments: list[Any] = field(default_factory=list)  # numbers and BufferArguments
    check_sites: list[Node] = field(default_factory=list)
    has_doubles: bool = False
    writes_status: bool = False
    partials_per_output: int = 1
    partial_types: tuple[str, ...] = ()
    combine: KernelPlan | None = None
    reason: str = ""

    @property
    def key(self) -> str:
        """The hash that names a kernel in a schedule file: of its text by the default schedule."""
        return hashlib.sha256(f"{self.kind}\n{self.text}".encode()).hexdigest()[:16]


STATUS = BufferArgument("status")


def storage_type(type_: str) -> str:
    """The C type in which arrays of a scalar type are stored."""
    return "uchar" if type_ == "bool" else type_


def output_types(node: Node) -> tuple[str, ...]:
    """The scalar types of the components of a function or a reduction."""
    if isinstance(node.type, FunctionType):
        return tuple(body.type for body in node.inputs)
    return scalar_types(node)


def output_arguments(types: tuple[str, ...]) -> tuple[list[str], list[BufferArgument]]:
    """Parameters out0, out1, ... and the arguments for them."""
    parameters = [f"GLOBAL {storage_type(t)} *RESTRICT out{k}" for k, t in enumerate(types)]
    return parameters, [BufferArgument("output", k) for k in range(len(types))]


def assemble_source(entry: str, parameters: list[str], body: list[str], functions: list[str]) -> str:
    """The text of a kernel and of the device functions that it calls."""
    head = f"KERNEL {entry}({', '.join(parameters)}) {{"
    return "\n".join(['#include "cdollar/builtins.h"', *functions, head, *indented(body), "}"]) + "\n"


def finish_plan(
    emitter: Emitter,
    node: Node,
    kind: KernelKind,
    sizes: dict[str, int],
    outputs: tuple[str, ...],
    body: list[str],
    group_size: int,
    group_count: int,
) -> KernelPlan:
    """The plan of a kernel whose text an emitter has emitted; `sizes` are its first parameters, `outputs` types."""
    out_parameters, out_arguments = output_arguments(outputs)
    parameters = [*(f"int {name}" for name in sizes), "GLOBAL int *status", *out_parameters]
    arguments: list[Any] = [*map(np.int32, sizes.values()), STATUS, *out_arguments]
    arrays = [(source.function, source.name, source.types) for source in emitter.inputs.values()]
    arrays += [(scalar, name, scalar_types(scalar)) for scalar, name in emitter.scalars.items()]
    for array, name, types in arrays:
        for component, type_ in enumerate(types):
            parameters.append(f"GLOBAL const {storage_type(type_)} *RESTRICT {name}_{component}")
            arguments.append(BufferArgument("array", component, array))
    for name, type_, number in emitter.arguments:
        parameters.append(f"{'int' if type_ == 'bool' else type_} {name}")
        arguments.append(np.int32(bool(number)) if type_ == "bool" else DTYPES[type_](wrap_int32(number, type_)))
    text = assemble_source("compute", parameters, body, emitter.function_text)
    return KernelPlan(
        node, kind, text, "compute", group_size, group_count, arguments, emitter.check_sites, emitter.has_doubles,
        emitter.writes_status,
    )  # fmt: skip


def volume(variables: tuple[BoundVariable, ...]) -> int:
    """The number of points of a box."""
    return int(np.prod([v.range.size for v in variables], dtype=np.int64))
