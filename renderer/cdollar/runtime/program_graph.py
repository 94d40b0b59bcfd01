"""The DAG of a run as plain data: nodes before and after the passes, and the nodes that each kernel computes.

The window's algorithm view of a C$ picture draws it (renderer/images/graph_picture.py).
"""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.runtime.explain import label
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.records import dataclass

SWEEPS = 4  # passes over the layers, in turn up and down, that order the nodes of each layer
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


def ordered_layers(inputs: Sequence[tuple[int, ...]], first: int = 0) -> list[list[int]]:
    """The nodes of each layer in their order, without the nodes before `first`.

    A layer is the longest path from an input, the order the mean position of a node's neighbors (K. Sugiyama et al.
    1981). `inputs` holds the inputs of each node, in topological order.
    """
    layer = [0] * len(inputs)
    for index in range(first, len(inputs)):
        layer[index] = 1 + max((layer[i] for i in inputs[index] if i >= first), default=-1)
    users: list[list[int]] = [[] for _ in inputs]
    for index, children in enumerate(inputs):
        for child in children:
            users[child].append(index)
    for index in reversed(range(first, len(inputs))):  # a node without inputs moves next to its first user
        if not [i for i in inputs[index] if i >= first] and users[index]:
            layer[index] = max(min(layer[user] for user in users[index]) - 1, 0)
    layers = [[i for i in range(first, len(inputs)) if layer[i] == k] for k in range(max(layer, default=0) + 1)]
    for sweep in range(SWEEPS):  # odd ones go down and look at inputs, even ones go up and look at users
        order = {i: (position + 0.5) / len(row) for row in layers for position, i in enumerate(row)}
        for row in layers if sweep % 2 else layers[::-1]:
            neighbors = {i: [order[j] for j in (inputs[i] if sweep % 2 else users[i]) if j in order] for i in row}
            row.sort(key=lambda i: fmean(neighbors[i] or [order[i]]))  # noqa: B023  used at once
    return layers


def run_graph(target: DeviceTarget, build: Callable[[], ir.Node]) -> ProgramGraph:
    """Run the node that build() returns, and time each launch.

    build() may run other graphs, for numbers and arrays that are inputs of the last graph. Their kernels are listed
    too, without nodes, since `nodes` counts the nodes of the last graph.
    """
    seconds: list[float] = []
    target.representations.clear()  # a cached result would not be computed again
    target.trace, target.launch_seconds = [], seconds
    try:
        root = build()
        before = graph_nodes(ir.topological_order([root]))
        target.run(root)
    finally:
        trace, target.trace, target.launch_seconds = target.trace, None, None
    passes = [(node, remarks) for kind, node, remarks in trace if kind == "passes"]
    final, remarks = passes[-1]
    order = ir.topological_order([final])
    numbers = {id(node): index for index, node in enumerate(order)}
    kernels, first = [], 0
    taken: set[int] = set()  # nodes that an earlier kernel computes
    for kind, node, entry in trace:  # see Target (checker/target.py)
        if kind == "passes":
            continue
        if kind == "primitive":
            name, threads, lines, count = f"primitive {node.attribute.name}", 0, 0, entry
        else:
            # a plan with `combine` has a second launch, which combines the partial results
            name, threads = entry.kind.replace("_", " "), entry.group_count * entry.group_size
            lines, count = len(entry.text.splitlines()), 1 + (entry.combine is not None)
        computed = {numbers[id(part)] for part in ir.topological_order([node]) if id(part) in numbers} - taken
        taken |= computed
        spent, first = sum(seconds[first : first + count]), first + count
        kernels.append(GraphKernel(name, frozenset(computed), threads, lines, count, spent))
    return ProgramGraph(before, graph_nodes(order), tuple(map(str, remarks or ())), tuple(kernels))
