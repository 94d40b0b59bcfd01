"""Draws the graph of a C$ program: nodes in layers from the inputs (left) to the result (right), one kernel bright.

Called by renderer/pictures/cdollar.py; the window and lessons show the AlgorithmView.
"""

from collections.abc import Sequence

import numpy as np

from renderer.cdollar.runtime.program_graph import GraphNode, ProgramGraph, ordered_layers
from renderer.images.algorithm_view import AlgorithmView, Mark, Rgba, StepPicture, StepRow
from renderer.images.lines import draw_lines

MAX_NODES = 600  # nodes that are drawn; of a larger graph the nodes nearest to the result
MAX_TEXTS = 90  # nodes with a text beside them; the nodes of a kernel come first
BACKGROUND, EDGE, BRIGHT_EDGE = (16, 18, 23), (70, 80, 96), (235, 190, 90)
COLORS: dict[str, Rgba] = {
    "constant": (0.55, 0.58, 0.63, 1.0), "variable": (0.40, 0.67, 1.0, 1.0), "function": (0.45, 0.85, 0.55, 1.0),
    "reduce": (1.0, 0.45, 0.40, 1.0), "primitive": (1.0, 0.45, 0.40, 1.0),
}  # fmt: skip
OTHER: Rgba = (0.93, 0.90, 0.75, 1.0)
DIM = 0.25  # alpha of nodes of other kernels


def graph_view(graph: ProgramGraph, size: tuple[int, int]) -> AlgorithmView:
    """Returns the view. Step 0: the program's graph; step 1: the graph after the passes; then one step a kernel."""
    rows: list[StepRow] = [
        {"does": "graph of the program", "nodes": len(graph.before)},
        {"does": "after the passes", "nodes": len(graph.after)},
    ]
    for kernel in graph.kernels:
        rows.append({
            "does": kernel.name, "nodes": len(kernel.nodes), "threads": kernel.threads,
            "lines": kernel.text_lines, "launches": kernel.launches, "ms": 1e3 * kernel.seconds,
        })  # fmt: skip
    positions: dict[bool, np.ndarray] = {}  # (nodes, 2) by `is_before`: of graph.before and of graph.after

    def step(index: int) -> StepPicture:
        """The picture of a step: the graph before (0) or after the passes (1), then each kernel with its nodes."""
        is_before = index == 0
        nodes = graph.before if is_before else graph.after
        if is_before not in positions:
            positions[is_before] = layout(nodes)
        kernel = graph.kernels[index - 2] if index > 1 else None
        chosen = kernel.nodes if kernel else frozenset(range(len(nodes)))
        meaning = f"{rows[index]['does']}: {rows[index]['nodes']} nodes"
        if index == 1:
            meaning += f"; {len(graph.remarks)} splits" + "".join(f"; {remark}" for remark in graph.remarks[:3])
        if kernel and not kernel.nodes:
            meaning = f"{kernel.name}, run before this graph for a number or an array that it takes as given"
        if len(nodes) > MAX_NODES:
            meaning += f"; the {MAX_NODES} nearest to the result of {len(nodes)} are drawn"
        return graph_picture(nodes, positions[is_before], chosen, meaning, size)

    return AlgorithmView("step", tuple(rows), step)


def layout(nodes: Sequence[GraphNode]) -> np.ndarray:
    """Returns positions (n, 2) from 0 to 1 of nodes in topological order; NaN for nodes that are not drawn.

    x is the layer: the longest path from an input. y is the order in the layer, by the mean position of a node's
    neighbors (K. Sugiyama et al. 1981).
    """
    positions = np.full((len(nodes), 2), np.nan)
    # the second argument: the nodes before this index are left out
    layers = ordered_layers([node.inputs for node in nodes], max(len(nodes) - MAX_NODES, 0))
    for depth, layer in enumerate(layers):
        for order, index in enumerate(layer):
            positions[index] = (depth + 0.5) / len(layers), (order + 0.5) / len(layer)
    return positions


def graph_picture(
    nodes: Sequence[GraphNode], positions: np.ndarray, chosen: frozenset[int], meaning: str, size: tuple[int, int]
) -> StepPicture:
    """Draws the nodes at `positions` in a picture of `size` (width, height); nodes that are not `chosen` are dim."""
    width, height = size
    pixels = np.zeros((height, width, 3), "u1")
    pixels[:] = BACKGROUND
    inside = positions * (0.92, 0.80) + (0.02, 0.10)  # room for texts to the right, and for the label below
    edges = [(child, index) for index, node in enumerate(nodes) for child in node.inputs]
    edges = [edge for edge in edges if np.isfinite(inside[list(edge)]).all()]
    edges.sort(key=lambda edge: edge[1] in chosen)  # edges of chosen nodes are drawn last, over the others
    if edges:
        lines = inside[np.array(edges)] * (width, height)
        is_bright = [edge[1] in chosen and len(chosen) < len(nodes) for edge in edges]
        draw_lines(pixels, lines, np.where(np.array(is_bright)[:, None], BRIGHT_EDGE, EDGE).astype("u1"))
    drawn = [index for index in range(len(nodes)) if np.isfinite(inside[index]).all()]
    # texts for the chosen nodes first, and of these for the ones nearest to the result
    with_text = set(sorted(drawn, key=lambda index: (index not in chosen, -index))[:MAX_TEXTS])
    marks = []
    for index in drawn:
        red, green, blue, alpha = COLORS.get(nodes[index].op, OTHER)
        is_dim = index not in chosen
        text = nodes[index].text if index in with_text and not is_dim else ""
        color = (red, green, blue, alpha * (DIM if is_dim else 1.0))
        marks.append(Mark(float(inside[index, 0]), float(inside[index, 1]), color, 3.0 if is_dim else 4.5, text))
    return StepPicture(pixels, None, meaning, None, tuple(marks))
