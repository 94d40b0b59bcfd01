"""Local arrays of device functions: small LU, stacks, the k nearest; bounds, gradients, records; on every target."""

import numpy as np
import pytest

from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.lowering import statements
from renderer.cdollar.targets.device_functions import FunctionTable
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.dialects import CDialect
from renderer.cdollar.targets.open_target import target_factory
from tests.cdollar.evaluate import error_of, value_of
from tests.cdollar.test_elementary import emulated_gpu

TARGETS = ["numpy", "opencl", "glsl"]
LU = """final class System { float3 r0, r1, r2, b; }
float3 eliminate(System s) {
    float m[3, 4];
    m[0, 0] = s.r0.x; m[0, 1] = s.r0.y; m[0, 2] = s.r0.z; m[0, 3] = s.b.x;
    m[1, 0] = s.r1.x; m[1, 1] = s.r1.y; m[1, 2] = s.r1.z; m[1, 3] = s.b.y;
    m[2, 0] = s.r2.x; m[2, 1] = s.r2.y; m[2, 2] = s.r2.z; m[2, 3] = s.b.z;
    for (int k = 0; k < 3; k++) {
        int p = k;
        for (int i = k + 1; i < 3; i++) if (abs(m[i, k]) > abs(m[p, k])) p = i;
        for (int j = 0; j < 4; j++) { float t = m[k, j]; m[k, j] = m[p, j]; m[p, j] = t; }
        for (int i = k + 1; i < 3; i++) {
            float f = m[i, k] / m[k, k];
            for (int j = k; j < 4; j++) m[i, j] -= f * m[k, j];
        }
    }
    float x[3];
    for (int i = 2; i >= 0; i--) {
        x[i] = m[i, 3];
        for (int j = i + 1; j < 3; j++) x[i] -= m[i, j] * x[j];
        x[i] /= m[i, i];
    }
    return float3(x[0], x[1], x[2]);
}
float3[] main(System[] s) { var x(i) = eliminate(s(i)); return x; }
"""
NEAREST = """final class Hit { float d; int k; }
float3 nearest(float x, float y) {
    Hit best[3];
    for (int n = 0; n < 3; n++) best[n] = Hit(1e9, -1);
    for (int k = 0; k < 30; k++) {
        float d = abs(sin(k * 1.7) * 9 - x) + y;
        int n = 2;
        if (d < best[2].d) {
            while (n > 0 && best[n - 1].d > d) { best[n] = best[n - 1]; n--; }
            best[n] = Hit(d, k);
        }
    }
    return float3(best[0].k, best[1].k, best[2].k);
}
float3[] main(float[] a) { var r(i) = nearest(a(i), 0); return r; }
"""
QUICK = """int depth(int n) {
    int stack[12];
    int top = 1, seen = 0;
    stack[0] = n;
    while (top > 0) {
        top--;
        int v = stack[top];
        seen += v;
        if (v > 1) { stack[top] = v / 2; stack[top + 1] = v - v / 2 - 1; top += 2; }
    }
    return seen;
}
int[] main(int[] a) { var r(i) = depth(a(i)); return r; }
"""


def on(target):
    return target_factory(target, None, False)


@pytest.mark.parametrize("target", TARGETS)
def test_small_systems_are_solved_at_every_point(target, rng):
    a, b = rng.standard_normal((7, 3, 3)).astype("f4"), rng.standard_normal((7, 3)).astype("f4")
    rows = np.dtype([(name, "f4", 3) for name in ("r0", "r1", "r2", "b")])
    systems = np.empty(7, rows)
    for k, name in enumerate(("r0", "r1", "r2")):
        systems[name] = a[:, k]
    systems["b"] = b
    expected = np.linalg.solve(a.astype("f8"), b[..., None])[..., 0]
    assert np.allclose(value_of(LU, on(target), s=systems), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("target", TARGETS)
def test_the_three_nearest(target, rng):
    x = (9 * rng.random(20)).astype("f4")
    distances = np.abs(np.sin(np.arange(30) * 1.7) * 9 - x[:, None])
    assert np.array_equal(value_of(NEAREST, on(target), a=x), np.argsort(distances, axis=1, kind="stable")[:, :3])


def seen(v):
    return v + (seen(v // 2) + seen(v - v // 2 - 1) if v > 1 else 0)


@pytest.mark.parametrize("target", TARGETS)
def test_a_stack(target):
    a = np.arange(1, 40, dtype="i4")
    assert value_of(QUICK, on(target), a=a).tolist() == [seen(int(v)) for v in a]


OUTSIDE = """float f(int k) { float t[3]; for (int i = 0; i < 3; i++) t[i] = i + 1; return READ; }
float[] main(int[] a) { var r(i) = f(a(i)); return r; }
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("read", ["t[k]", "k > 9 ? 1.0 : t[k]", "(t[k] > 0 || k > 3) ? 1 : 2", "g(k)"])
def test_an_index_outside_is_an_error_where_it_is_read(target, read):
    text = OUTSIDE.replace("READ", read)
    if read == "g(k)":
        text = (
            text.replace("g(k)", "k < 3 ? g(k) : 9") + "float g(int k) { float u[3]; u[k] = 4; return u[k] + u[0]; }\n"
        )
        assert value_of(text, on(target), a=np.arange(5, dtype="i4")).tolist() == [8, 4, 4, 9, 9]
        text = text.replace("k < 3 ?", "k < 9 ?")
    assert value_of(text, on(target), a=np.arange(3, dtype="i4")).size == 3
    with pytest.raises(ProgramError, match=r"CS0325: an index is outside of 0\.\.3, the local array `[tu]`"):
        value_of(text, on(target), a=np.array([1, -1 if read[0] == "t" else 3], "i4"))


@pytest.mark.parametrize("target", TARGETS)
def test_an_index_outside_ends_a_loop(target):
    text = OUTSIDE.replace("return READ;", "while (t[k] > 0) { if (k < 3) break; } return 1;")
    for loop in (text, text.replace("{ if (k < 3) break; }", "k++;")):
        with pytest.raises(ProgramError, match="CS0325"):
            value_of(loop, on(target), a=np.array([1, 4], "i4"))


FIRST = """int first(int n) {
    int a[4];
    int i = -1;
    do { i++; a[i] = i - n; } while (a[i] < 0);
    return i;
}
int[] main(int[] x) { var r(j) = first(x(j)); return r; }
"""


@pytest.mark.parametrize("target", TARGETS)
def test_do_reads_its_condition_after_the_first_round(target):
    x = np.array([2, -5, 0, 3, 1], "i4")
    assert np.array_equal(value_of(FIRST, on(target), x=x), np.maximum(x, 0))
    with pytest.raises(ProgramError, match=r"CS0325: an index is outside of 0\.\.4, the local array `a`"):
        value_of(FIRST, on(target), x=np.array([2, 4], "i4"))


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_not_taken_is_not_read(target):
    for read in ("k < 3 ? t[k] : -1.0", "k < 3 && t[k] > 0 ? t[k] : -1.0", "k >= 3 || t[k] < 0 ? -1.0 : t[k]"):
        text = OUTSIDE.replace("READ", read)
        assert value_of(text, on(target), a=np.arange(5, dtype="i4")).tolist() == [1, 2, 3, -1, -1]


@pytest.mark.parametrize("target", TARGETS)
def test_gradients_go_through_local_arrays(target, rng):
    text = """float f(float x, float y) {
        float p[4];
        int n[2];
        p[0] = x; n[1] = 2;
        for (int i = 1; i < 4; i++) p[i] = p[i - 1] * x + y * i;
        return p[3] * y + p[n[1]];
    }
    float loss(float[] a) => sum(f(a(i), 2 * a(i)));
    float[] main(float[] a) => grad(loss)(a);"""
    a = rng.random(5).astype("f4")

    def loss(x):
        y, p = 2 * x, x
        p = p * x + y
        second = p * x + 2 * y
        return (second * x + 3 * y) * y + second

    step = 1e-6
    expected = (loss(a.astype("f8") + step) - loss(a.astype("f8") - step)) / (2 * step)
    assert np.allclose(value_of(text, on(target), a=a), expected, rtol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_an_array_is_zero_at_each_declaration_and_reduces(target):
    text = """int pairs(int a, int b) { bool t[2]; int s = 0;
        for (int k = 0; k < 3; k++) { int u[2]; u[k % 2] += 1; s += u[0] + u[1]; t[1] = k > 1; }
        return a + b + (t[1] ? s - 3 : 100); }
    int main(int[] a) => pairs(a);"""
    assert value_of(text, on(target), a=np.arange(9, dtype="i4")) == 36


@pytest.mark.slow
def test_the_text_of_cuda_on_an_emulated_gpu(rng):
    gpu = emulated_gpu()
    x, n = (9 * rng.random(20)).astype("f4"), np.arange(1, 30, dtype="i4")
    for text, a in ((NEAREST, x), (QUICK, n), (FIRST.replace("x", "a"), n % 4)):
        expected = value_of(text, a=a)
        assert np.array_equal(value_of(text, lambda dag: DeviceTarget(dag, gpu, "device"), a=a), expected)
    text = OUTSIDE.replace("READ", "k > 5 ? 1.0 : t[k]")
    with pytest.raises(ProgramError, match="CS0325"):
        value_of(text, lambda dag: DeviceTarget(dag, gpu, "device"), a=np.array([1, 4], "i4"))


@pytest.mark.parametrize("target", TARGETS)
def test_a_store_reads_before_it_writes(target):
    text = """final class P { float a, b; }
    float f(float x) {
        P p[2];
        int t[3];
        p[1] = P(x, 7); p[0] = p[1]; p[1] = P(p[1].b, p[1].a); p[0].a += 100;
        t[0] = 2; t[t[0]] = 1; t[t[t[0]]] += t[2] * 5;
        return p[0].a + 10 * p[0].b + 1000 * p[1].a + 10000 * p[1].b + 1e5 * t[1];
    }
    float[] main(float[] a) { var r(i) = f(a(i)); return r; }"""
    assert value_of(text, on(target), a=np.array([1, 2], "f4")).tolist() == [101 + 70 + 7000 + 10000 + 5e5, 527172]


def test_a_body_that_builds_functions_has_them_too():
    text = (
        "float main(float[] a) { float t[3]; for (int i = 0; i < 3; i++) t[i] = a(i) * i; t[1] += 5; return sum(t); }"
    )
    assert value_of(text, a=np.ones(3, "f4")) == 8
    assert value_of("float main() { float t[i] = i * 2; float s(i : 0..3) = t(i); return sum(s); }") == 6


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("float t[n]; return t[0];", "CS0218"), ("float t[0]; return t[0];", "CS0218"),
        ("float t[2000]; return 1;", "CS0218"),
        ("float t[3]; t = 2; return 1;", "CS0113"), ("float t[3]; return t[1, 2];", "CS0402"),
        ("float t[3]; return t[1.5];", "CS0401"), ("float t[3]; float t[2]; return 1;", "CS0109"),
        ("float[] t[3]; return 1;", "CS0218"), ("float t[3]; t[0:2] = 1; return 1;", "CS0322"),
        ("float t[]; return 1;", "CS0105"), ("float t[3; return 1;", "CS0104"),
        ("int t[2]; t[0] = 1.5; return 1;", "CS0401"),
    ],
)  # fmt: skip
def test_mistakes(body, code):
    error = error_of(f"float f(int n) {{ {body} }}\nfloat main() => f(2);")
    assert error.code == code, str(error)


def test_the_error_of_many_checks_is_found_in_a_linear_text():
    """The text doubled with each check: a `let` of 18 values that share one check was too large for OpenCL."""
    lines: list[str] = []
    table = FunctionTable(CDialect())
    assert table.merge_poison(["a", "a", None, "a"], lines) == "a" and not lines
    table.merge_poison(["a", "b", "a", "c"], lines)
    assert "= (a != 0 ? a : (b != 0 ? b : c));" in lines[0]
    table.merge_poison([f"p{k}" for k in range(100)], lines)
    assert len(lines[1]) < 3000


def test_a_loop_that_reads_an_array_at_every_point_is_refused_at_the_loop(monkeypatch, rng):
    text = """int total(int i, int[,] a, int n) {
    int s = 0;
    for (int j = 0; j < n; j++) s = max(s, a(i, j) * s);
    return s;
}
int[] main(int[,] a) { var d(i : 0..size(a, 0)) = total(i, a, size(a, 1)); return d; }"""
    a = rng.integers(0, 9, (4, 40)).astype("i4")
    assert value_of(text, a=a).tolist() == [0] * 4
    monkeypatch.setattr(statements, "MAX_LOOP_NODES", 100)
    monkeypatch.setattr(statements, "MATERIALIZE_EVERY", 8)
    error = error_of(text, a=a)
    assert error.code == "CS0603" and "device function" in error.hint
    assert error.span.source.line_and_column(error.span.start)[0] == 3
