"""Costs of a run, for --explain and --graph: operations, bytes, seconds of each kernel, and the device's roofline.

Every operation of the program counts 1, whatever its kind, and so does a call of a device function; the arithmetic of
indices does not count. Bytes are the least that a kernel must move: each region that it reads once, and its result
(Williams, Waterman, Patterson, Roofline, 2009). A kernel whose data is in a cache can exceed 100 % of its roof.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from renderer.cdollar.checker.target import Target
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.types import component_types
from renderer.cdollar.targets.graph_target import GraphTarget, accessed_region
from renderer.cdollar.targets.kernel_plan import output_types
from renderer.cdollar.targets.numpy.target import array_bytes
from renderer.gpu import Device

NOT_COUNTED = ("convert",)  # operations that count 0
PROBE_BYTES = 64 << 20  # bytes that the copy reads and writes to measure the memory of a CPU
GPU_PROBE_BYTES = 1 << 30  # bytes that the bandwidth probe copies on a GPU: many times its caches
PROBE_ROUNDS = 2048  # rounds of multiply-adds of a thread
CHAINS = 8  # independent multiply-adds a round of shaders/cdollar/roofline.cu


class Ceilings(NamedTuple):
    """Measured rates of a device: bytes a second of a copy, operations a second of float multiply-adds (two each)."""

    bandwidth: float
    operations: float

    def __str__(self) -> str:
        return f"{count_text(self.bandwidth)}B/s of a copy, {count_text(self.operations)} float operations/s"


class KernelCost(NamedTuple):
    """A kernel or primitive of a run; `operations` is None for primitives, whose operations no program states."""

    name: str
    what: str
    node: ir.Node
    operations: int | None
    bytes: int
    seconds: float | None = None

    def roof(self, ceilings: Ceilings) -> tuple[float, str]:
        """The least time that the device allows, and the resource that bounds it: memory or arithmetic."""
        moving, computing = self.bytes / ceilings.bandwidth, (self.operations or 0) / ceilings.operations
        return max(moving, computing), "memory" if moving >= computing else "arithmetic"


def kernel_costs(target: Target) -> list[KernelCost]:
    """The kernels and primitives of a target's last run, from its trace; with seconds if its launches were timed."""
    costs: list[KernelCost] = []
    if not isinstance(target, GraphTarget):
        return costs
    seconds = list(target.launch_seconds or [])
    for kind, node, entry in target.trace or []:  # see Target (checker/target.py)
        if kind == "passes":
            continue
        if kind == "primitive":
            launches, name, label, operations = entry, node.attribute.name, f"primitive {node.attribute}", None
        else:  # a plan with `combine` has a second launch, which combines the partial results
            launches, name, label = 1 + (entry.combine is not None), entry.key, f"{entry.kind} {extent_text(node)}"
            operations = operation_count(node)
        times, seconds = seconds[:launches], seconds[launches:]
        repeated = costs and kind == "kernel" and costs[-1].node is node  # the next kernel of a node that takes several
        moved = moved_bytes(node, target)
        cost = KernelCost(name, label, node, operations, moved, sum(times) if times else None)
        if repeated and cost.seconds is not None:
            costs[-1] = costs[-1]._replace(seconds=(costs[-1].seconds or 0) + cost.seconds)
        elif not repeated:
            costs.append(cost)
    return costs


def extent_text(node: ir.Node) -> str:
    """The extent of a node's domain."""
    variables = node.attribute[1] if node.op == "reduce" else node.attribute
    extent = " x ".join(str(v.range.size) for v in variables) or "1"
    return f"{'over' if node.op == 'reduce' else 'of'} {extent}"


def operation_count(node: ir.Node) -> int:
    """The operations of a node's kernel: one for each value of the variables that the operation depends on."""
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
    """True if another kernel, or none, computes a node."""
    return not node.free_variables and node.op in ("function", "reduce", "primitive")


def volume(variables: ir.VariableSet) -> int:
    """The number of points of the box of some variables."""
    return math.prod(v.range.size for v in variables if isinstance(v.range, ir.Range))


def moved_bytes(node: ir.Node, target: GraphTarget) -> int:
    """The bytes that a kernel or primitive must read and write."""
    if node.op == "primitive":
        types = [component_types(child.type.result) for child in (node, *map(ir.without_lets, node.inputs))]
        boxes = [node.attribute.ranges, *(target.stored_ranges(ir.without_lets(child)) for child in node.inputs)]
        return sum(array_bytes((r.size for r in box), each) for box, each in zip(boxes, types, strict=True))
    regions: dict[ir.Node, int] = {}
    for part in ir.topological_order([node], lambda n: () if n is not node and is_separate(n) else n.inputs):
        if part.op == "apply" and isinstance(part.attribute, ir.Access):
            function = ir.without_lets(part.inputs[0])
            box = accessed_region(part, target.stored_ranges(function))
            size = array_bytes((r.size for r in box), component_types(function.type.result))
            regions[function] = max(regions.get(function, 0), size)
    outputs = () if node.op == "reduce" else node.attribute
    return sum(regions.values()) + array_bytes((v.range.size for v in outputs), output_types(node))


def measure_ceilings(device: Device) -> Ceilings:
    """Measure a device in some 50 ms: the best of a few copies and loops of multiply-adds."""
    is_scalar, units = device.properties.scalar_threads, device.properties.compute_units
    group = 1 if is_scalar else 256
    constants = {"CHAINS": CHAINS, "SCALAR": int(is_scalar)}
    copy = device.kernel("cdollar/roofline.cu", "copy", group_size=group, **constants)
    arithmetic = device.kernel("cdollar/roofline.cu", "multiply_add", group_size=group, **constants)
    moved = PROBE_BYTES if is_scalar else min(GPU_PROBE_BYTES, device.properties.memory_bytes // 8)
    count = moved // 32  # elements of 16 bytes; each element is read and written
    given, out = device.buffer(4 * count).fill(0), device.buffer(4 * count)
    threads = 4 * units if is_scalar else 2048 * units
    width = 8 if is_scalar else 1  # floats in a number of roofline.cu: a vector on CPUs
    sums = device.buffer(threads * width)  # the results of multiply_add, which no one reads

    def seconds(work: Callable[[], None]) -> float:
        work()
        return min(device.time_seconds(work) for _ in range(5))

    copying = seconds(lambda: copy(threads, count, given, out))
    adding = seconds(lambda: arithmetic(threads, PROBE_ROUNDS, 0.5, sums))
    return Ceilings(32 * count / copying, 2.0 * CHAINS * PROBE_ROUNDS * threads * width / adding)


def table(costs: list[KernelCost], ceilings: Ceilings | None) -> list[str]:
    """Lines with the costs of each kernel and its fraction of the device's roof."""
    lines = []
    for cost in costs:
        operations = "" if cost.operations is None else f", {count_text(cost.operations)} operations"
        line = f"{cost.name}: {cost.what}{operations}, {count_text(cost.bytes)}B"
        if cost.operations is not None:
            line += f", {cost.operations / max(1, cost.bytes):.2f} operations a byte"
        if cost.seconds:
            line += f"; {time_text(cost.seconds)}, {count_text(cost.bytes / cost.seconds)}B/s"
            if cost.operations is not None:
                line += f", {count_text(cost.operations / cost.seconds)} operations/s"
        if cost.seconds and ceilings is not None:
            least, bound = cost.roof(ceilings)
            line += f", {100 * least / cost.seconds:.0f} % of its roof ({bound})"
        lines.append(line)
    times = [cost.seconds for cost in costs if cost.seconds is not None]
    if times:
        lines.append(f"all parts: {time_text(sum(times))}, {count_text(sum(cost.bytes for cost in costs))}B")
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
