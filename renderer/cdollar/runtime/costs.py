"""What the parts of a run cost: operations, bytes and seconds of each kernel, and the roofline of the device.

Operations are those of the program but for indices, each counted once whatever its kind; bytes are what a kernel must
move at least: every region that it reads once, and its result (Williams, Waterman, Patterson, Roofline, 2009). Where
these lie in a cache, a kernel is faster than the memory allows: above 100 % of its roof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.types import DTYPES, component_types
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.graph_target import GraphTarget, accessed_region
from renderer.cdollar.targets.kernel_plan import output_types
from renderer.gpu import Device
from renderer.gpu.kernel_source import GeneratedSource

NOT_COUNTED = ("convert",)  # of the operations
PROBE_BYTES = 64 << 20  # read and written by the copy that measures the memory of a processor
GPU_PROBE_BYTES = 1 << 30  # of a GPU: many times its caches
PROBE_ROUNDS = 2048  # of multiply-adds of a thread
CHAINS = 8  # independent ones, of WIDE numbers: vectors where a thread is one of a processor
PROBE = """
#if SCALAR
#define WIDE float8
#define ALL(x) SPLAT(float8, x)
#else
#define WIDE float
#define ALL(x) (x)
#endif
KERNEL copy(int count, GLOBAL const float4 *RESTRICT in, GLOBAL float4 *RESTRICT out) {
#if SCALAR
    const int each = count / (int)group_count(), begin = (int)thread_index() * each;
    for (int i = begin; i < begin + each; i++) out[i] = in[i];
#else
    for (int i = (int)thread_index(); i < count; i += (int)(group_count() * GROUP_SIZE)) out[i] = in[i];
#endif
}
KERNEL multiply_add(int rounds, float a, GLOBAL WIDE *out) {
    WIDE x[CHAINS];
    for (int k = 0; k < CHAINS; k++) x[k] = ALL(a + (float)k);
    const WIDE factor = ALL(a), more = ALL(1.0f - a);
    for (int i = 0; i < rounds; i++) {
        UNROLL for (int k = 0; k < CHAINS; k++) x[k] = x[k] * factor + more;
    }
    for (int k = 1; k < CHAINS; k++) x[0] = x[0] + x[k];
    out[thread_index()] = x[0];
}
"""


@dataclass(frozen=True)
class Ceilings:
    """What a device reaches: bytes a second of a copy, operations a second of float multiply-adds (two each)."""

    bandwidth: float
    operations: float

    def __str__(self) -> str:
        return f"{count_text(self.bandwidth)}B/s of a copy, {count_text(self.operations)} float operations/s"


@dataclass(frozen=True)
class Part:
    """A kernel or primitive of a run; `operations` is None where they are not those of a program."""

    name: str
    what: str
    node: ir.Node
    operations: int | None
    bytes: int
    seconds: float | None = None

    def roof(self, ceilings: Ceilings) -> tuple[float, str]:
        """The least time that the device allows, and what bounds it."""
        moving, computing = self.bytes / ceilings.bandwidth, (self.operations or 0) / ceilings.operations
        return max(moving, computing), "memory" if moving >= computing else "arithmetic"


def parts_of(target: Any) -> list[Part]:
    """The parts of a target's last run, from its trace; with seconds if its launches were timed."""
    parts: list[Part] = []
    seconds = list(target.launch_seconds or [])
    for kind, node, entry in target.trace or []:
        if kind == "passes":
            continue
        if kind == "primitive":
            launches, name, what, operations = entry, node.attribute.name, f"primitive {node.attribute}", None
        else:
            launches, name, what = 1 + (entry.combine is not None), entry.key, f"{entry.kind} {shape_of(node)}"
            operations = operations_of(node)
        times, seconds = seconds[:launches], seconds[launches:]
        repeated = parts and kind == "kernel" and parts[-1].node is node  # passes of one part
        moved = bytes_of(node, target)
        part = Part(name, what, node, operations, moved, sum(times) if times else None)
        if repeated and part.seconds is not None:
            parts[-1] = replace(parts[-1], seconds=(parts[-1].seconds or 0) + part.seconds)
        elif not repeated:
            parts.append(part)
    return parts


def shape_of(node: ir.Node) -> str:
    """The extent of a node's domain."""
    variables = node.attribute[1] if node.op == "reduce" else node.attribute
    extent = " x ".join(str(v.range.size) for v in variables) or "1"
    return f"{'over' if node.op == 'reduce' else 'of'} {extent}"


def operations_of(node: ir.Node) -> int:
    """The operations of a kernel for a node: each as often as the variables that it depends on take values."""
    count, seen, waiting = 0, set(), [node]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or (part is not node and is_separate(part)):
            continue
        seen.add(id(part))
        is_operation = part.op == "apply" and isinstance(part.attribute, (str, ir.UserCall))
        if is_operation and part.attribute not in NOT_COUNTED:
            count += volume(part.free_variables)
        elif part.op == "reduce":
            count += volume(part.free_variables | frozenset(part.attribute[1])) * len(ir.scalar_types(part))
        waiting += part.inputs[:1] if isinstance(part.attribute, ir.Access) else part.inputs
    return count


def is_separate(node: ir.Node) -> bool:
    """Whether another kernel computes a node, or none."""
    return not node.free_variables and node.op in ("function", "reduce", "primitive")


def volume(variables: frozenset[ir.BoundVariable]) -> int:
    """The number of points of the box of some variables."""
    return math.prod(v.range.size for v in variables if isinstance(v.range, ir.Range))


def bytes_of(node: ir.Node, target: GraphTarget) -> int:
    """What a kernel or primitive reads at least once and writes."""
    if node.op == "primitive":
        types = [component_types(child.type.result) for child in (node, *map(ir.without_lets, node.inputs))]
        boxes = [node.attribute.ranges, *(target.ranges_of(ir.without_lets(child)) for child in node.inputs)]
        return sum(size_of(box, each) for box, each in zip(boxes, types, strict=True))
    regions: dict[ir.Node, int] = {}
    for part in ir.topological_order([node], lambda n: () if n is not node and is_separate(n) else n.inputs):
        if part.op == "apply" and isinstance(part.attribute, ir.Access):
            function = ir.without_lets(part.inputs[0])
            box = accessed_region(part, target.ranges_of(function))
            size = size_of(box, component_types(function.type.result))
            regions[function] = max(regions.get(function, 0), size)
    outputs = () if node.op == "reduce" else tuple(v.range for v in node.attribute)
    return sum(regions.values()) + size_of(outputs, output_types(node))


def size_of(box: tuple[ir.Range, ...], types: tuple[str, ...]) -> int:
    """The bytes of an array."""
    return math.prod(r.size for r in box) * sum(np.dtype(DTYPES[t]).itemsize for t in types)


def measure_ceilings(device: Device) -> Ceilings:
    """Measure a device in some 50 ms: the best of a few copies and loops of multiply-adds."""
    is_scalar, units = device.properties.scalar_threads, device.properties.compute_units
    source = GeneratedSource("roofline.cu", PROBE)
    group = 1 if is_scalar else 256
    constants = {"CHAINS": CHAINS, "SCALAR": int(is_scalar)}
    copy = device.kernel(source, "copy", group_size=group, **constants)
    arithmetic = device.kernel(source, "multiply_add", group_size=group, **constants)
    moved = PROBE_BYTES if is_scalar else min(GPU_PROBE_BYTES, device.properties.memory_bytes // 8)
    count = moved // 32
    given, out = device.buffer(4 * count).fill(0), device.buffer(4 * count)
    threads = 4 * units if is_scalar else 2048 * units
    width = 8 if is_scalar else 1
    sums = device.buffer(threads * width)

    def seconds(work: Any) -> float:
        work()
        return min(device.time_seconds(work) for _ in range(5))

    copying = seconds(lambda: copy(threads, count, given, out))
    adding = seconds(lambda: arithmetic(threads, PROBE_ROUNDS, 0.5, sums))
    return Ceilings(32 * count / copying, 2.0 * CHAINS * PROBE_ROUNDS * threads * width / adding)


def table(parts: list[Part], ceilings: Ceilings | None) -> list[str]:
    """Lines with what each part costs, and how near it is to what the device allows."""
    lines = []
    for part in parts:
        operations = "" if part.operations is None else f", {count_text(part.operations)} operations"
        line = f"{part.name}: {part.what}{operations}, {count_text(part.bytes)}B"
        if part.operations is not None:
            line += f", {part.operations / max(1, part.bytes):.2f} operations a byte"
        if part.seconds:
            line += f"; {time_text(part.seconds)}, {count_text(part.bytes / part.seconds)}B/s"
            if part.operations is not None:
                line += f", {count_text(part.operations / part.seconds)} operations/s"
        if part.seconds and ceilings is not None:
            least, bound = part.roof(ceilings)
            line += f", {100 * least / part.seconds:.0f} % of its roof ({bound})"
        lines.append(line)
    times = [part.seconds for part in parts if part.seconds is not None]
    if times:
        lines.append(f"all parts: {time_text(sum(times))}, {count_text(sum(part.bytes for part in parts))}B")
    return lines


def count_text(number: float) -> str:
    """A number with three digits and a unit of thousands."""
    for unit in ("", "k", "M", "G"):
        if abs(number) < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} T"


def time_text(seconds: float) -> str:
    """A time in a unit that suits it."""
    return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def ceilings_of(target: Any) -> Ceilings | None:
    """The ceilings of a target's compute device; None for targets that have none."""
    return measure_ceilings(target.device) if isinstance(target, DeviceTarget) else None
