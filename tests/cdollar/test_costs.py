"""Counts of --explain: operations and bytes by hand, a roofline that no kernel of registers beats; graphs as SVG."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from renderer.cdollar.runtime.costs import KernelCost, count_text, kernel_costs, measure_ceilings, time_text
from renderer.cdollar.runtime.graph import HEIGHT, MAX_NODES, layered_graph, svg
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cli import main
from tests.cdollar.evaluate import value_of

SVG = "{http://www.w3.org/2000/svg}"
PRODUCT = "float[,] main(float[,] a, float[,] b) { var c(i, j) = sum(a(i, k) * b(k, j)); return c; }"


def traced(make_target, text, **arrays):
    """The target of a run whose launches were timed."""
    made = []

    def make(dag):
        made.append(make_target(dag))
        made[0].trace, made[0].launch_seconds = [], []
        return made[0]

    value_of(text, make, **arrays)
    return made[0]


@pytest.fixture(params=["device", "glsl"])
def make_target(request, device):
    if request.param == "glsl":
        gl = request.getfixturevalue("gl")
        return lambda dag: GlslTarget(dag, gl)
    return lambda dag: DeviceTarget(dag, device, "device")


@pytest.mark.slow
def test_a_matmul_costs_two_operations_a_term_and_three_matrices(make_target, rng):
    a, b = rng.standard_normal((20, 30)).astype("f4"), rng.standard_normal((30, 40)).astype("f4")
    (part,) = kernel_costs(traced(make_target, PRODUCT, a=a, b=b))
    assert part.operations == 2 * 20 * 30 * 40 and part.bytes == 4 * (20 * 30 + 30 * 40 + 20 * 40)
    assert part.seconds > 0


@pytest.mark.slow
def test_operations_count_as_often_as_what_they_depend_on(make_target, rng):
    a = rng.standard_normal((6, 50)).astype("f4")
    text = "float(int, int) main(float[,] a) { var r(i, j) = a(i, j) * sin(a(i, 0)) + sum(a(i, k)); return r; }"
    total = sum(part.operations for part in kernel_costs(traced(make_target, text, a=a)))
    assert total in (6 * 50 * 2 + 6 + 6 * 50, 6 * 50 * 2 + 6 * 50 * 2)  # sin once a row, or once an element


def test_stencils_read_what_they_need_and_primitives_tell_their_bytes(device, rng):
    a = rng.standard_normal(1000).astype("f4")
    text = "float[] main(float[] a) { var r(i : 10..20) = a(i - 1) + a(i + 1); return scan(r); }"
    kernel, scan = kernel_costs(traced(lambda dag: DeviceTarget(dag, device, "device"), text, a=a))
    assert kernel.operations == 10 and kernel.bytes in (4 * (10 + 10), 4 * (12 + 10))
    assert (scan.operations, scan.bytes) == (None, 4 * 20) and scan.what.startswith("primitive scan")


def test_the_roofline_is_measured(device):
    ceilings = measure_ceilings(device)
    assert 1e8 < ceilings.bandwidth < 1e14 and 1e9 < ceilings.operations < 1e15
    slow = KernelCost("p", "map", None, 10, int(ceilings.bandwidth), 2.0)
    assert slow.roof(ceilings) == (pytest.approx(1.0, rel=1e-6), "memory")
    assert KernelCost("p", "map", None, int(3 * ceilings.operations), 8).roof(ceilings)[1] == "arithmetic"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 "), (999, "999 "), (1000, "1 k"), (1234567, "1.23 M"), (5e13, "50 T")]
)
def test_numbers_have_three_digits(number, text):
    assert count_text(number) == text and time_text(0.0012) == "1.2 ms"


@pytest.mark.slow
def test_a_graph_is_drawn_with_its_parts_and_no_box_covers_another(tmp_path, rng, device):
    np.save(tmp_path / "a.npy", rng.standard_normal((40, 50)).astype("f4"))
    (tmp_path / "p.cb").write_text(
        "float[,] main(float[,] a) { var t(i) = max(a(i, j)); var s(i) = sum(exp(a(i, j) - t(i)));\n"
        "    var r(i, j) = exp(a(i, j) - t(i)) / s(i); return r; }"
    )
    words = ["run", str(tmp_path / "p.cb"), "--in", f"a={tmp_path / 'a.npy'}", "-o", str(tmp_path / "r.npy")]
    assert main([*words, "--target", "opencl", "--graph", str(tmp_path / "g.svg")]) == 0
    root = ElementTree.parse(tmp_path / "g.svg").getroot()
    (inner,) = root.findall(f"{SVG}g")
    boxes = [group.find(f"{SVG}rect") for group in inner.findall(f"{SVG}g")]
    texts = [group.find(f"{SVG}text").text for group in inner.findall(f"{SVG}g")]
    assert sum(text.startswith("reduce") for text in texts) == 2 and "exp" in texts
    assert len({box.get("fill") for box in boxes}) == 4, "three kernels, and what none computes"
    rows = {}
    for box in boxes:
        rows.setdefault(box.get("y"), []).append((float(box.get("x")), float(box.get("width"))))
    for row in rows.values():
        row.sort()
        assert all(x + width < after for (x, width), (after, _) in zip(row, row[1:], strict=False))
    ys = sorted(map(float, rows))
    assert all(b - a > HEIGHT for a, b in zip(ys, ys[1:], strict=False))
    assert sum("operations" in (text.text or "") for text in root.findall(f"{SVG}text")) >= 3


def test_a_graph_is_refused_where_it_cannot_be_drawn(tmp_path, capsys, device):
    (tmp_path / "p.cb").write_text("float main() => 1;")
    for name, words in (("g.png", "unknown suffix .png; allowed is .svg"), ("no/g.svg", "does not exist")):
        assert main(["run", str(tmp_path / "p.cb"), "--target", "numpy", "--graph", str(tmp_path / name)]) == 2
        assert words in capsys.readouterr().err
    names = " + ".join(f"a({k})" for k in range(MAX_NODES // 2))
    (tmp_path / "p.cb").write_text(f"float main(float[] a) => {names};")
    np.save(tmp_path / "a.npy", np.ones(MAX_NODES, "f4"))
    words = ["run", str(tmp_path / "p.cb"), "--in", f"a={tmp_path / 'a.npy'}", "--target", "numpy"]
    assert main([*words, "--graph", str(tmp_path / "g.svg")]) == 2
    assert f"at most {MAX_NODES} are drawn" in capsys.readouterr().err


@pytest.mark.slow
def test_text_of_programs_is_escaped(device):
    small = traced(
        lambda dag: DeviceTarget(dag, device, "device"),
        "float main(float[] a) => a(0) < 1 ? 2 : 3;",
        a=np.ones(3, "f4"),
    )
    root = next(node for kind, node, _ in small.trace if kind == "passes")
    ElementTree.fromstring(svg(layered_graph([root], kernel_costs(small)), "<a & b>"))
