"""Functions that return several arrays: tuples, classes with functions, gradients by several parameters.

Each program is compared with NumPy, on the target that interprets and on those that compile.
"""

import copy
import json
import pickle

import numpy as np
import pytest

from renderer import cdollar
from renderer.cdollar.runtime.repl import Repl
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.cdollar.targets.open_target import target_factory
from renderer.cli import main
from tests.cdollar.evaluate import error_of, result_of, value_of
from tests.cdollar.test_elementary import emulated_gpu

TARGETS = ["numpy", "opencl", "glsl"]
LU = """(float[,] lu, int[] pivots) factor(float[,] a) {
    mutable float[,] m = a;
    var order(i : 0..size(a, 0)) = i;
    mutable int[] p = order;
    for (int k = 0; k < size(a, 0); k++) {
        var column(i : k..size(a, 0)) = abs(m(i, k));
        int best = argmax(column);
        float[,] t = m;
        int[] q = p;
        m[k, :] = t[best, :];
        m[best, :] = t[k, :];
        p[k] = q(best);
        p[best] = q(k);
        float[,] s = m;
        var below(i : s(, 0), j : s(0, )) = i <= k ? s(i, j)
            : j < k ? s(i, j) : j == k ? s(i, k) / s(k, k) : s(i, j) - s(i, k) / s(k, k) * s(k, j);
        m = below;
    }
    return (m, p);
}
"""
KMEANS = """final class Clusters { int[] labels; float2[] centers; }
Clusters assign(float2[] points, float2[] centers) {
    var labels(i) = argmin(length(points(i) - centers(k)), int k : centers);
    int[] l = labels;
    var count(k : centers) = sum(l(i) == k ? 1 : 0, i : points);
    var sums(k : centers) = sum(l(i) == k ? points(i) : float2(0, 0), i : points);
    var means(k : centers) = sums(k) / max(count(k), 1);
    return Clusters(l, means);
}
Clusters main(float2[] points, float2[] centers) {
    Clusters c = assign(points, centers);
    for (int n = 0; n < 5; n++) c = assign(points, c.centers);
    return c;
}
"""


def kmeans(points, centers):
    for _ in range(6):
        labels = ((points[:, None] - centers) ** 2).sum(-1).argmin(1)
        centers = np.stack([points[labels == k].mean(0) for k in range(len(centers))])
    return labels, centers


@pytest.mark.parametrize("target", ["numpy", *(pytest.param(name, marks=pytest.mark.slow) for name in TARGETS[1:])])
def test_lu_with_pivots(target, rng):
    a = rng.standard_normal((6, 6)).astype("f4")
    make = target_factory(target, None, False)
    items = result_of(LU + "(float[,] lu, int[] pivots) main(float[,] a) => factor(a);", make, a=a).items
    lu, pivots = items["lu"].array, items["pivots"].array
    lower, upper = np.tril(lu, -1) + np.eye(6), np.triu(lu)
    assert sorted(pivots) == list(range(6)) and np.allclose(lower @ upper, a[pivots], atol=1e-5)
    assert np.abs(lower).max() <= 1


@pytest.mark.parametrize("target", TARGETS)
def test_labels_with_centers(target, rng):
    points = (rng.standard_normal((40, 2)) + 5 * rng.integers(0, 3, (40, 1))).astype("f4")
    centers = points[[0, 1, 2]]
    items = result_of(KMEANS, target_factory(target, None, False), points=points, centers=centers).items
    labels, means = kmeans(points, centers)
    assert np.array_equal(items["labels"].array, labels) and np.allclose(items["centers"].array, means, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_tuples_of_data_are_data_at_every_point(target):
    text = """(int q, int r) divide(int a, int b) { int q = a / b; return (q, a - q * b); }
    int[] main(int[] a) {
        var (q, r) = divide(17, 5);
        var both(i) = divide(a(i), 3);
        var (x, y) = float2(q, r);
        var c(i) = both(i).q * 100 + both(i).r + (int) (x + y);
        return c;
    }"""
    a = np.arange(9, dtype="i4")
    assert np.array_equal(value_of(text, target_factory(target, None, False), a=a), a // 3 * 100 + a % 3 + 5)


def test_tuples_go_through_conditions_fields_and_calls(rng):
    a = rng.random(7).astype("f4")
    text = """final class Pair { float[] x; float k; float dot(float[] y) => k * sum(x(i) * y(i)); }
    Pair swap(Pair p, bool c) { Pair r = p; if (c) { r = Pair(2 * p.x, 3); } return r; }
    (float[] x, int n) pick(float[] a) { if (sum(a) > 1e6) return (2 * a, 1); return (a, 2); }
    float main(float[] a) {
        mutable Pair p = swap(Pair(a, 1), size(a) > 3);
        p.x[1] = 10; p.k = 5;
        var t = size(a) > 3 ? (a, 7) : (2 * a, 9);
        return p.dot(a) + t.Item2 + sum(pick(a).x) * pick(a).n;
    }"""
    x = 2 * a
    x[1] = 10
    assert np.isclose(value_of(text, a=a), 5 * (x @ a) + 7 + 2 * a.sum(), rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_from_python_results_have_names_and_repeat(target, rng):
    f = cdollar.Function(
        "(float[] lo, int[] n, float s) f(float[] a) { var n(i) = (int) a(i); return (2 * a, n, sum(a)); }", target
    )
    before = None
    for k in range(3):
        a = (rng.random(5) * 9 + k).astype("f4")
        lo, n, s = result = f(a)
        assert np.array_equal(result.lo, 2 * a) and np.array_equal(result.n, a.astype("i4"))
        assert lo is result.lo and n is result.n and np.isclose(float(s), a.sum())
        if before is not None:
            assert np.array_equal(before[0], before[1])
        before = lo, 2 * a
    with pytest.raises(AttributeError, match="these results are lo, n, s, not hi"):
        result.hi  # noqa: B018
    again = copy.copy(result)
    assert again.names == ("lo", "n", "s") and again.lo is lo


LOSS = """float loss(float[,] w, float[] b, float[] x, float k) {
    var y(i) = + (w(i, j) * x(j)) + b(i);
    return k * sum(y(i) * y(i));
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_gradients_by_several_parameters_with_the_value(target, rng):
    w, b, x = rng.random((4, 3)).astype("f4"), rng.random(4).astype("f4"), rng.random(3).astype("f4")
    y = w @ x + b
    expected = {"value": 2.5 * (y @ y), "w": 5 * np.outer(y, x), "b": 5 * y, "k": y @ y}
    f = cdollar.Function(LOSS, target, name="loss")
    given, three = cdollar.value_and_grad(f, "w", "b", "k")(w, b, x, 2.5), cdollar.grad(f, "k", "b")(w, b, x, 2.5)
    assert given.names == ("value", "w", "b", "k") and three.names == ("k", "b")
    for name, value in zip(given.names, given, strict=True):
        assert np.allclose(value, expected[name], rtol=1e-5)
    assert np.allclose(three.b, expected["b"], rtol=1e-5) and np.isclose(float(three.k), expected["k"], rtol=1e-5)
    copy = pickle.loads(pickle.dumps(cdollar.value_and_grad(f, "b")))
    assert np.allclose(copy(w, b, x, 2.5).b, expected["b"], rtol=1e-5)
    text = LOSS + "float main(float[,] w, float[] b, float[] x) { var g = value_and_grad(loss, w, b)(w, b, x, 2.5); "
    text += "var (u, v) = grad(loss, b, w)(w, b, x, 2.5); return g.value + sum(g.w) + sum(g.b) + sum(u) + sum(v); }"
    total = expected["value"] + 2 * expected["w"].sum() + 2 * expected["b"].sum()
    assert np.isclose(value_of(text, target_factory(target, None, False), w=w, b=b, x=x), total, rtol=1e-5)


def test_gradients_of_functions_of_numbers():
    text = "float main() { var f(float x, float y) = x * x * y; var g = value_and_grad(f, x, y)(3.0, 5.0); "
    assert value_of(text + "return g.value + 100 * g.x + 10000 * g.y; }") == 45 + 3000 + 90000
    assert error_of(text.replace("x, y)(3", "x, x)(3") + "return 1; }").code == "CS0321"


def test_results_on_the_command_line(tmp_path, capsys):
    program, data, out = tmp_path / "p.cb", tmp_path / "a.npy", tmp_path / "r.npz"
    program.write_text("(float[] twice, int n) main(float[] a) => (2 * a, size(a));\n")
    np.save(data, np.arange(3, dtype="f4"))
    command = ["run", str(program), "--in", f"a={data}", "--target", "numpy"]
    assert main([*command, "-o", str(out)]) == 0
    with np.load(out) as results:
        assert np.array_equal(results["twice"], [0, 2, 4]) and results["n"] == 3
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)["value"]
    assert value["twice"]["value"] == [0, 2, 4] and value["n"]["type"] == "int"
    assert main([*command, "--explain"]) == 0 and "twice =\n[0. 2. 4.]\nn =\n3" in capsys.readouterr().out
    assert main([*command, "-o", str(tmp_path / "r.npy")]) == 2
    assert "the values of a tuple go to a .npz file" in capsys.readouterr().err
    program.write_text("float[] main(float[] a) => a;\n")
    assert main([*command, "-o", str(out)]) == 2


def test_the_prompt_shows_each_value():
    shown: list[str] = []
    repl = Repl(NumpyTarget, shown.append)
    repl.handle("(int[] a, int b) f(int n) { var a(i : 0..n) = i; return (a, n); }")
    repl.handle("f(3)")
    assert shown[1:] == ["a:", "int[]  domain 0..3", "[0 1 2]", "b:", "int", "3"]


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("float main(float[] a) { var t = (a, 1); return t + 1; }", "CS0203", "take one of its values: `.Item1`"),
        ("float main(float[] a) { var t = (a, 1); return t.x; }", "CS0206", "members: Item1, Item2"),
        ("float main(float[] a) { var (p, q, r) = (a, 1); return q; }", "CS0402", "it has 2 values to name"),
        ("(float x, int[] y) f(int[] a) => a; float main(int[] a) => f(a).x;", "CS0401", "`(x, y)`"),
        ("(int) f() => 1; int main() => f();", "CS0212", "`(float[], int[])`"),
        ("final class R { float[] x; int n; } float main(float[] a) => sum(R(a).x);", "CS0402", ""),
        ("final class R { float[] x; int n; } float main(float[] a) => R((a, 1)).n;", "CS0402", ""),
        ("final class R { int[] x; int n; } R f(int[] a) => (a, 1); int main(int[] a) => f(a).n;", "CS0401", "R(x, n)"),
        ("float main(float[] a) => sum(a, (1, a));", "CS0411", ""),
        ("float main(float[] a) => (a(l), l : 0..2);", "CS0104", "restrictions may follow only"),
        ("float main(float[] a) { var t = any(a) ? (a, 1) : (1, a); return 1; }", "CS0311", ""),
        ("final class R { float[] x; R r; } int main() => 1;", "CS0201", "contains itself"),
    ],
)  # fmt: skip
def test_mistakes(text, code, hint):
    error = error_of(text, a=np.ones(3, "i4" if "int[] a" in text else "f4"))
    assert error.code == code and hint in error.hint, str(error)


@pytest.mark.slow
def test_the_text_of_cuda_on_an_emulated_gpu(rng):
    gpu, a = emulated_gpu(), rng.standard_normal((5, 5)).astype("f4")
    text = LU + "(float[,] lu, int[] pivots) main(float[,] a) => factor(a);"
    items, expected = (
        result_of(text, make, a=a).items for make in (lambda dag: DeviceTarget(dag, gpu, "g"), NumpyTarget)
    )
    assert np.array_equal(items["pivots"].array, expected["pivots"].array)
    assert np.allclose(items["lu"].array, expected["lu"].array, rtol=1e-4)


def test_an_array_beside_a_part_of_it_is_returned_as_a_whole(device):
    a = np.arange(6, dtype="f4")
    text = "(float[] a, float[] b, float[] c) main(float[] a) { float[] b = a[1:4:2]; return (a, b, a); }"
    items = result_of(text, lambda dag: DeviceTarget(dag, device, "device"), a=a).items
    assert [item.array.tolist() for item in items.values()] == [a.tolist(), [1, 3], a.tolist()]
