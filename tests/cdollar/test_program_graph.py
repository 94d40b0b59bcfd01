"""The graph of a program: the nodes of --explain, each in one kernel; the layout goes from inputs to the result."""

import numpy as np

from renderer.cdollar.ir.dag import topological_order
from renderer.cdollar.runtime.explain import graph
from renderer.cdollar.runtime.program_graph import GraphKernel, GraphNode, ProgramGraph
from renderer.gpu import DeviceContext
from renderer.images.graph_picture import BRIGHT_EDGE, EDGE, MAX_NODES, graph_view, layout
from renderer.pictures import load, open_picture

WAVES = """
float[] wave() {
    var w(i : 0..64) = sin(0.1 * i);
    return w;
}
float energy(float[] w) = sum(w(k) * w(k));
float main(int x, int y, int width) =
    0.5 + sin(0.1 * x) * cos(0.02 * y) / energy(wave()) + sum(wave()(k) * sin(0.01 * k * x));
"""


def chain(count):
    """Nodes each of which takes the one before and, every third, node 0."""
    return tuple(
        GraphNode("constant" if i == 0 else "*", str(i), (() if i == 0 else (i - 1, 0) if i % 3 == 0 else (i - 1,)))
        for i in range(count)
    )


def test_a_layout_leads_from_inputs_to_the_result(rng):
    nodes = [GraphNode("constant", "c", ()) for _ in range(4)]
    for index in range(4, 60):
        inputs = rng.choice(index, size=2, replace=False)
        nodes.append(GraphNode("+", str(index), tuple(int(i) for i in inputs)))
    places = layout(nodes)
    for index, node in enumerate(nodes):
        assert all(places[child, 0] < places[index, 0] for child in node.inputs)
    assert len({tuple(place) for place in places.round(9).tolist()}) == 60
    assert places.min() > 0 and places.max() < 1


def test_only_the_nodes_nearest_to_the_result_of_a_large_graph_are_drawn():
    nodes = chain(MAX_NODES + 50)
    places = layout(nodes)
    assert np.isnan(places[:50]).all() and np.isfinite(places[50:]).all()
    graph = ProgramGraph(nodes, nodes, (), ())
    step = graph_view(graph, (320, 200)).step(0)
    assert len(step.marks) == MAX_NODES and f"{MAX_NODES} nearest" in step.meaning


def test_a_kernel_is_bright_and_the_others_are_dim():
    nodes = chain(6)
    kernels = (GraphKernel("map", frozenset({0, 1, 2}), 64, 9, 1, 0.001), GraphKernel("map", frozenset(), 1, 5, 1, 0.0))
    view = graph_view(ProgramGraph(nodes, nodes, ("split at b",), kernels), (320, 200))
    assert [row["does"] for row in view.rows] == ["graph of the program", "after the passes", "map", "map"]
    assert view.rows[2]["ms"] == 1.0 and "split at b" in view.step(1).meaning
    step = view.step(2)
    assert [mark.text for mark in step.marks] == ["0", "1", "2", "", "", ""]
    assert step.marks[1].color[3] == 1.0 and step.marks[4].color[3] < 0.5
    assert [mark.radius for mark in step.marks] == [4.5] * 3 + [3.0] * 3
    places = layout(nodes) * (0.92, 0.80) + (0.02, 0.10)
    for edge, color in (((0, 1), BRIGHT_EDGE), ((3, 4), EDGE)):
        x, y = (places[list(edge)].mean(0) * (320, 200)).astype(int)
        around = step.pixels[y - 1 : y + 2, x - 1 : x + 2].reshape(-1, 3)
        assert (around == color).all(1).any()
    assert "before this graph" in view.step(3).meaning


def test_kernels_share_out_the_nodes_that_explain_lists(device, tmp_path):
    path = tmp_path / "waves.cb"
    path.write_text(WAVES)
    scene = load(path)
    context = DeviceContext()
    context.devices = [device]
    picture = open_picture(scene, context)
    drawn = picture.draw(scene.settings, (32, 24), 0.0).read()
    view = picture.algorithm("graph", scene.settings, (32, 24))
    target = picture._compilation.target
    _, node = picture._value(scene.settings, (32, 24), 0.0, None)
    assert view.rows[0]["nodes"] == len(topological_order([node])) == len(graph([node]))
    assert target.trace is None and target.launch_seconds is None
    kernels = view.rows[2:]
    reductions = [row["does"] for row in kernels].count("reduction")
    assert reductions == 1 + device.properties.scalar_threads  # on GPUs a thread sums each column of `main`: a map
    assert sum(row["nodes"] for row in kernels) == view.rows[1]["nodes"]  # each node in one kernel
    assert view.step(1).meaning.count("split at the scalar reduction") == 1
    assert all(row["ms"] > 0 for row in kernels)
    assert view.step(2).pixels.any() and any(mark.text for mark in view.step(2).marks)
    assert np.array_equal(picture.draw(scene.settings, (32, 24), 0.0).read(), drawn)
