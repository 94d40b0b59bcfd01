"""The DAG of a run as plain data: its nodes before and after the passes, and which kernel computes which of them.

The lines of --explain say the same in words; here they can be drawn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.runtime.explain import label
from renderer.cdollar.targets.device_target import DeviceTarget

MAX_TEXT = 28  # letters of a node


class GraphNode(NamedTuple):
    """A node: its operation, the text beside it, and the numbers of its inputs in the list that it is in."""

    op: str
    text: str
    inputs: tuple[int, ...]


class GraphKernel(NamedTuple):
    """A kernel or primitive that was launched: the numbers of the nodes it computes, and the last launch's seconds."""

    name: str
    nodes: frozenset[int]
    threads: int
    text_lines: int
    launches: int
    seconds: float


@dataclass(frozen=True)
class ProgramGraph:
    """The graph as the program says it, as the passes leave it, what they remark, and the kernels in their order."""

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
    """Runs the node that build() gives, and what building it runs; each launch is repeated once and timed.

    Kernels that ran before the last graph, for numbers and arrays that it takes as given, have none of its nodes.
    """
    launches: list[Callable[[], Any]] = []
    target.representations.clear()  # what is cached would not be run
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
        own = {numbers[id(part)] for part in ir.topological_order([node]) if id(part) in numbers} - taken
        taken |= own
        spent = sum(seconds[first : first + count])
        first += count
        kernels.append(_described(kind, node, entry, frozenset(own), count, spent))
    return ProgramGraph(before, graph_nodes(order), tuple(map(str, remarks or ())), tuple(kernels))


def _described(kind: str, node: ir.Node, entry: Any, own: frozenset[int], launches: int, seconds: float) -> GraphKernel:
    if kind == "primitive":
        return GraphKernel(f"primitive {node.attribute.name}", own, 0, 0, launches, seconds)
    threads, lines = entry.group_count * entry.group_size, len(entry.text.splitlines())
    return GraphKernel(entry.kind.replace("_", " "), own, threads, lines, launches, seconds)


def _timed(target: DeviceTarget, launch: Any) -> float:
    target.device.finish()
    started = time.perf_counter()
    launch()
    target.device.finish()
    return time.perf_counter() - started
