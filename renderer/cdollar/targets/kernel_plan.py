"""Kernel plans: the C text of a kernel for a node of the DAG, its launch size and its arguments.

map_kernels.plan_kernel() chooses the kind of kernel for a node. The planners of maps, reductions, matrix products and
CPU loops emit the kernel's body and call finish_plan(), which adds the parameters. DeviceTarget compiles a plan's
text (OpenCL C or CUDA C++) and launches it.
"""

import hashlib
import math
import re
from typing import Any, Literal, NamedTuple

from renderer.cdollar.ir.dag import Node, RuntimeScalar, Variables, scalar_types
from renderer.cdollar.ir.operations import kernel_argument
from renderer.cdollar.ir.types import PROMOTED, FunctionType
from renderer.cdollar.targets.dialects import ELEMENTARY, indented, storage_type
from renderer.cdollar.targets.expression_emitter import ExpressionEmitter, StoredRanges, index_type
from renderer.cdollar.targets.schedule import Schedule
from renderer.gpu import DeviceProperties
from renderer.records import dataclass, field

BufferKind = Literal["array", "partial", "output", "status"]
KernelKind = Literal["map", "reduction", "matmul", "tiled_matmul", "cpu_matmul", "combine_partials", "pass"]


class PlanContext(NamedTuple):
    """The input of every planner beside the node.

    `stored_ranges` returns the index ranges of the buffer that holds an array or the result of another kernel.
    `strict`: float sums and products are combined in the order of strict_order.py, and no multiplication and addition
    are contracted to fma.
    """

    stored_ranges: StoredRanges
    schedule: Schedule
    properties: DeviceProperties
    strict: bool = False

    @property
    def is_cpu(self) -> bool:
        """True if a work-item runs alone, with vector instructions in its loops."""
        return self.properties.scalar_threads


class BufferArgument(NamedTuple):
    """A buffer parameter of a kernel; DeviceTarget passes the buffer at the launch.

    A value of several components (a record, a vector) has a buffer for each; `component` is the number of this one,
    from 0. `node` is the array, or the result of another kernel, that a buffer of kind "array" holds.
    """

    kind: BufferKind
    component: int = 0
    node: Node | None = None


@dataclass
class KernelPlan:
    """A kernel for `node`: a function of bound variables, or a reduction without free variables.

    Sizes and numbers of the program are arguments, so that one text serves all of their values. A reduction that
    several groups share writes `partial_count` partial results of `partial_types`; the kernel `combine` combines them.
    `entry` is the name of the kernel in the text, `local_bytes` the local memory of a group beyond the arrays that the
    text declares. `check_sites[n - 1]` is the array access whose bounds check writes n to the status word if it fails.
    `reason` says why this kind of kernel was chosen, for --explain.
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
    combine: "KernelPlan | None" = None
    reason: str = ""

    @property
    def key(self) -> str:
        """A hash of the kind and the text; a schedule file names a kernel by its key under the default schedule."""
        return hashlib.sha256(f"{self.kind}\n{self.text}".encode()).hexdigest()[:16]


# C types of local variables, by C$ type, where they differ: C's long has 32 bits in some compilers; half and byte are
# types of array elements only, and variables hold their values in wider types.
VARIABLE_TYPES = PROMOTED | {"long": "int64"}


def replace_types(text: str) -> str:
    """Return a kernel's text with C$'s type names replaced by the C types of VARIABLE_TYPES."""
    return re.sub(rf"\b({'|'.join(VARIABLE_TYPES)})\b", lambda match: VARIABLE_TYPES[match[0]], text)


def headers(text: str) -> list[str]:
    """The headers in shaders/cdollar that a kernel's text needs."""
    names = "|".join(name for name in ELEMENTARY if name != "exp")  # builtins.h has exp_float
    return ["builtins", *(["elementary"] if re.search(rf"\b(({names})_float|near_[a-z0-9]+)\(", text) else [])]


def output_types(node: Node) -> tuple[str, ...]:
    """The scalar types of the components of a function's elements, or of a reduction's value."""
    if isinstance(node.type, FunctionType):
        return tuple(body.type for body in node.inputs)
    return scalar_types(node)


def finish_plan(
    emitter: ExpressionEmitter,
    node: Node,
    kind: KernelKind,
    sizes: dict[str, int],
    outputs: tuple[str, ...],
    body: list[str],
    group_size: int,
    group_count: int,
    inputs: tuple[str, ...] = (),
) -> KernelPlan:
    """Return the plan of a kernel from its body, the lines that `emitter` has emitted.

    The kernel's parameters are, in this order: the `sizes`; the status word; partial results in0, in1, ... of the types
    `inputs`; results out0, out1, ... of the types `outputs`; the arrays that the body reads; numbers of the program.
    """
    parameters = [*(f"{index_type(size)} {name}" for name, size in sizes.items()), "GLOBAL int *status"]
    arguments: list[Any] = [kernel_argument(size, index_type(size)) for size in sizes.values()]
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
        # OpenCL's kernels take no bool.
        parameters.append(f"{'int' if type_ == 'bool' else type_} {name}")
        arguments.append(kernel_argument(number, type_))
    head = f"KERNEL compute({', '.join(parameters)}) {{"
    lines = [*emitter.function_text, head, *indented(body), "}"]
    text = replace_types("\n".join(lines) + "\n")
    text = "".join(f'#include "cdollar/{header}.h"\n' for header in headers(text)) + text
    return KernelPlan(
        node, kind, text, group_size, group_count, arguments, scalars, emitter.check_sites,
        emitter.has_doubles or "double" in inputs, emitter.writes_status,
    )  # fmt: skip


def volume(variables: Variables) -> int:
    """The number of points of the box of the variables' ranges."""
    return math.prod(v.range.size for v in variables)
