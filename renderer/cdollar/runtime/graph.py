"""Draws the DAG of a run as an SVG file, for `rayfold run --graph`.

Nodes are boxes in layers, inputs above their users. The color of a node names the kernel or primitive that computes
it; runtime/costs.py measures their costs.
"""

from collections.abc import Sequence
from html import escape

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.runtime.costs import Ceilings, KernelCost, is_separate, table
from renderer.cdollar.runtime.explain import label, type_text
from renderer.cdollar.runtime.program_graph import ordered_layers
from renderer.errors import UserError
from renderer.records import dataclass, field

MAX_NODES = 600
CHARACTER, PADDING, HEIGHT, GAP_X, GAP_Y = 7.2, 18.0, 26.0, 16.0, 44.0  # pixels
MAX_TEXT = 48  # characters of a node
COLORS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759", "#76b7b2", "#edc948", "#9c755f")
NEUTRAL = "#8a8f98"  # the color of nodes that no kernel computes: arrays and numbers
ROW = 18.0  # height of a line of the text below the graph, in pixels


@dataclass
class DrawnNode:
    """A node: its text, its type, the index of its kernel or None, its inputs by their positions in Graph.nodes.

    (x, y) is the center of its box in pixels.
    """

    text: str
    type: str
    kernel: int | None
    inputs: tuple[int, ...]
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """The width of its box."""
        return CHARACTER * len(self.text) + PADDING


@dataclass
class Graph:
    """A program's nodes, inputs before users, and the kernels that compute them."""

    nodes: list[DrawnNode]
    kernels: list[KernelCost] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def layered_graph(roots: Sequence[ir.Node], kernels: list[KernelCost]) -> Graph:
    """The graph under some roots, laid out. Raises UserError for more than MAX_NODES nodes."""
    order = ir.topological_order(roots)
    if len(order) > MAX_NODES:
        raise UserError(f"the graph has {len(order)} nodes; at most {MAX_NODES} are drawn")
    numbers = {id(node): k for k, node in enumerate(order)}
    owners = kernels_by_node(kernels)
    nodes = []
    for node in order:
        text = f"{node.op} {label(node)}".strip()
        text = text.removeprefix("apply ").removeprefix("scalar ").removeprefix("primitive ")
        text = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
        inputs = tuple(numbers[id(child)] for child in node.inputs)
        nodes.append(DrawnNode(text, type_text(node), owners.get(id(node)), inputs))
    graph = Graph(nodes, kernels)
    lay_out(graph)
    return graph


def kernels_by_node(kernels: list[KernelCost]) -> dict[int, int]:
    """The index of the first kernel that computes each node, by the node's id."""
    owners: dict[int, int] = {}
    for index, kernel in enumerate(kernels):
        waiting = [kernel.node]
        while waiting:
            node = waiting.pop()
            # Stop at the results of other kernels, at arrays and numbers, and at nodes that an earlier kernel computes.
            is_other = node is not kernel.node and is_separate(node)
            if is_other or id(node) in owners or node.op == "scalar" and node is not kernel.node:
                continue
            owners[id(node)] = index
            waiting += () if node.op == "primitive" else node.inputs
    return owners


def lay_out(graph: Graph) -> None:
    """Set the positions of the nodes."""
    nodes = graph.nodes
    layers = ordered_layers([node.inputs for node in nodes])
    widths = [sum(nodes[n].width + GAP_X for n in layer) for layer in layers]
    graph.width = max(widths, default=0.0) + 2 * GAP_X
    graph.height = len(layers) * (HEIGHT + GAP_Y)
    for depth, layer in enumerate(layers):
        x = (graph.width - widths[depth] + GAP_X) / 2
        for number in layer:
            nodes[number].x, nodes[number].y = x + nodes[number].width / 2, GAP_Y / 2 + depth * (HEIGHT + GAP_Y)
            x += nodes[number].width + GAP_X


def svg(graph: Graph, title: str, ceilings: Ceilings | None = None) -> str:
    """The graph as an SVG file, with the costs of its kernels below it."""
    legend = table(graph.kernels, ceilings) + ([f"roofline: {ceilings}"] if ceilings is not None else [])
    width = max(graph.width, CHARACTER * max(map(len, [title, *legend]), default=0) + 4 * PADDING)
    height = graph.height + ROW * (len(legend) + 3)
    shift = (width - graph.width) / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-monospace, monospace" font-size="12">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="{PADDING}" y="{ROW}" font-weight="bold">{escape(title)}</text>',
        f'<g transform="translate({shift:.1f} {1.5 * ROW:.1f})">',
    ]
    for node in graph.nodes:
        for k in node.inputs:
            source = graph.nodes[k]
            (x0, y0), (x1, y1) = (source.x, source.y + HEIGHT / 2), (node.x, node.y - HEIGHT / 2)
            middle = (y0 + y1) / 2
            path = f"M{x0:.1f} {y0:.1f} C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
            lines.append(f'<path d="{path}" fill="none" stroke="#b4b9c2"/>')
    for node in graph.nodes:
        color = NEUTRAL if node.kernel is None else COLORS[node.kernel % len(COLORS)]
        left, top = node.x - node.width / 2, node.y - HEIGHT / 2
        lines += [
            f"<g><title>{escape(node.type)}</title>",
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{node.width:.1f}" height="{HEIGHT}" rx="5" '
            f'fill="{color}" fill-opacity="0.18" stroke="{color}"/>',
            f'<text x="{node.x:.1f}" y="{node.y + 4:.1f}" text-anchor="middle">{escape(node.text)}</text></g>',
        ]
    lines.append("</g>")
    for k, text in enumerate(legend):
        y = graph.height + ROW * (k + 2.5)
        if k < len(graph.kernels):
            color = COLORS[k % len(COLORS)]
            lines.append(f'<rect x="{PADDING}" y="{y - 10:.1f}" width="12" height="12" rx="2" fill="{color}"/>')
        lines.append(f'<text x="{2 * PADDING}" y="{y:.1f}">{escape(text)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"
