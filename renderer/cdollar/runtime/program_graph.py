"""The DAG of a run as plain data: nodes before and after the passes, and the nodes that each kernel computes.

The window's algorithm view of a C$ picture draws it (images/graph_picture.py).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.runtime.explain import label
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.kernel_plan import KernelPlan

MAX_TEXT = 28  # characters of a node's text


class GraphNode(NamedTuple):
    """A node: its operation, the text beside it, and the positions of its inputs in the list that holds the node."""

    op: str
    text: str
    inputs: tuple[int, ...]


class GraphKernel(NamedTuple):
    """A kernel or primitive that was launched.

    `nodes` are positions in ProgramGraph.after of the nodes that it computes; `seconds` is the time of its launches.
    """

    name: str
    nodes: frozenset[int]
    threads: int
    text_lines: int
    launches: int
    seconds: float


@dataclass(frozen=True)
class ProgramGraph:
    """The graph before and after the passes, the remarks of the passes, and the kernels in launch order."""

    before: tuple[GraphNode, ...]
    after: tuple[GraphNode, ...]
    remarks: tuple[str, ...]
    kernels: tuple[GraphKernel, ...]


def graph_nodes(order: list[ir.Node]) -> tuple[GraphNode, ...]:
    """Nodes in topological order as plain data."""
    numbers = {id(node): index for index, node in enumerate(order)}
    out = []
    for node in order:
        text = f"{node.op} {label(node)}".strip() if node.op in ("function", "reduce", "primitive") else label(node)
        text = " ".join((text or node.op).split())
        text = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "..."
        out.append(GraphNode(node.op, text, tuple(numbers[id(child)] for child in node.inputs)))
    return tuple(out)


def run_graph(target: DeviceTarget, build: Callable[[], ir.Node]) -> ProgramGraph:
    """Run the node that build() returns; then repeat each launch once, to time it.

    build() may run other graphs, for numbers and arrays that are inputs of the last graph. Their kernels are listed
    too, without nodes, since `nodes` counts the nodes of the last graph.
    """
    launches: list[Callable[[], None]] = []
    target.representations.clear()  # a cached result would not be computed again
    target.trace, target.captured_launches = [], launches
    try:
        root = build()
        before = graph_nodes(ir.topological_order([root]))
        target.run(root)
    finally:
        trace, target.trace, target.captured_launches = target.trace, None, None
    passes = [(node, remarks) for kind, node, remarks in trace if kind == "passes"]
    final, remarks = passes[-1]
    order = ir.topological_order([final])
    numbers = {id(node): index for index, node in enumerate(order)}
    seconds = [_timed(target, launch) for launch in launches]
    kernels, first = [], 0
    taken: set[int] = set()
    for kind, node, entry in trace:
        if kind == "passes":
            continue
        count = entry if kind == "primitive" else 1 + (entry.combine is not None)
        computed = {numbers[id(part)] for part in ir.topological_order([node]) if id(part) in numbers} - taken
        taken |= computed
        spent = sum(seconds[first : first + count])
        first += count
        kernels.append(_described(node, entry, frozenset(computed), count, spent))
    return ProgramGraph(before, graph_nodes(order), tuple(map(str, remarks or ())), tuple(kernels))


def _described(
    node: ir.Node, entry: KernelPlan | int, nodes: frozenset[int], launches: int, seconds: float
) -> GraphKernel:
    if isinstance(entry, int):
        return GraphKernel(f"primitive {node.attribute.name}", nodes, 0, 0, launches, seconds)
    threads, lines = entry.group_count * entry.group_size, len(entry.text.splitlines())
    return GraphKernel(entry.kind.replace("_", " "), nodes, threads, lines, launches, seconds)


def _timed(target: DeviceTarget, launch: Callable[[], None]) -> float:
    target.device.finish()
    started = time.perf_counter()
    launch()
    target.device.finish()
    return time.perf_counter() - started
