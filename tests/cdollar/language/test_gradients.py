"""Gradients equal central finite differences of the program in double, and have the same strict bits on all targets."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from renderer import cdollar
from renderer.cdollar.frontend.diagnostics import ArgumentError
from renderer.cdollar.gradients.reverse import ReverseMode
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslEmitter, GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from tests.cdollar.evaluate import error_of, value_of

SCENES = Path(__file__).parents[3] / "scenes"
PARAMETERS = "float[] a, float[] b, float[,] A, float[,] B, int[] c"
NAMES = "a, b, A, B, c"

PART_OF_AN_ARRAY = "A", "var y(i : 0..12, j : 0..3) = A(c(i) / 2, j + 1) * i; return sum(y * y);"  # three columns
# What is differentiated by, and a function of PARAMETERS that returns a number.
LOSSES = [
    ("a", "return sum(sin(a) * exp(a)) + a(3) * sqrt(sum(a * a)) + log(sum(exp(a)));"),
    ("a", "var y(i) = + (a(i + k) * b(k)); return sum(y * y);"),
    ("b", "var y(i) = + (a(i + k) * b(k)); return sum(y * y);"),
    ("A", "var C(i, j) = + (A(i, k) * B(k, j)); return sum(sin(C));"),
    ("B", "var C(i, j) = + (A(i, k) * B(k, j)); return sum(sin(C));"),
    ("a", "return max(a) * min(a) + prod(a) + 3 * a(argmax(a));"),
    ("A", "var m(i) = max(A(i, )); var p(i) = prod(A(i, )); return sum(m * p);"),
    ("a", "var y(i : 0..12) = a(c(i)) * i; return sum(y * y);"),
    PART_OF_AN_ARRAY,
    ("a", "var y = scan(a * a); return sum(y * y);"),
    ("A", "var y = scan(A); return sum(y * y * y);"),
    ("a", "var y = sort(a); return sum(y(i) * i * y(i), i : 0..9);"),
    ("a", "var s = scatter_add(c, 0.5 * c + a(c), 9); return sum(s * s);"),
    ("a", "var y(i : a) = sum(k <= i ? a(k) * a(k) : 0, k : a); return sum(y * y);"),
    ("a", "var y(i) = i > 0 ? a(i - 1) * a(i) : 2 * a(i); return sum(y * y);"),
    ("a", "var y(i : 0..9) = a.clamp(i - 2) * a.wrap(i + 13) * a.zero(i + 3); return sum(y * y);"),
    ("A", "var y(i, j) = A.clamp(i - 1, j + 1) * A.mirror(2 * i + 1, j - 2) * A.clamp(c(i), j); return sum(y * y);"),
    ("a", "var y(i : 0..4, r : 0..2) = a(2 * i + r) * a(8 - i); return sum(y * y * y);"),
    ("A", "return sum(A(i, i + 1), i : 0..5) + sum(A(2, ));"),
    ("A", "return sum(A(i + 2 * j, k) * B(k, j), i : 0..2, j : 0..2, k : 0..6);"),
    ("A", "let y(i) = sum(A(i, )); let z(j) = sum(y(i) * A(i, j)); return max(z) + sum(z * z);"),
    ("a", "var y = a; for (int n = 0; n < 4; n++) { var w(i) = y.clamp(i - 1) + y(i) * y(i); y = w; } return sum(y);"),
    ("a", "var y(i) = atan2(a(i), 2) + pow(abs(a(i)), 1.5) + min(a(i), 0.1) * tanh(a(i)) - a(i) / (a(i) * a(i) + 1);"
          " return sum(y * y);"),
]  # fmt: skip


def given():
    rng = np.random.default_rng(1)
    return {
        "a": rng.standard_normal(9), "b": rng.standard_normal(4), "A": rng.standard_normal((5, 6)),
        "B": rng.standard_normal((6, 3)), "c": rng.integers(0, 9, 12).astype("i4"),
    }  # fmt: skip


def in_double(text):
    return text.replace("float", "double")


def differences(loss, arrays, name, step=1e-5):
    """The central differences of loss(arrays) by each number of one array."""
    result = np.zeros(arrays[name].shape)
    for index in np.ndindex(result.shape):
        ends = []
        for sign in (1, -1):
            moved = np.array(arrays[name])
            moved[index] += sign * step
            ends.append(loss(arrays | {name: moved}))
        result[index] = (ends[0] - ends[1]) / (2 * step)
    return result


def gradient_program(by, body):
    commas = "," * (given()[by].ndim - 1)
    return (
        f"float loss({PARAMETERS}) {{ {body} }}\n"
        f"float[{commas}] main({PARAMETERS}) {{ return grad(loss, {by})({NAMES}); }}"
    )


def assert_near(found, expected):
    assert np.abs(found - expected).max() <= 1e-7 * (1 + np.abs(expected).max()), (found, expected)


@pytest.mark.parametrize(("by", "body"), LOSSES)
def test_gradients_are_finite_differences(by, body):
    loss = cdollar.function(in_double(f"float loss({PARAMETERS}) {{ {body} }}"), target="numpy", name="loss")
    found = value_of(in_double(gradient_program(by, body)), **given())
    assert_near(found, differences(lambda arrays: float(loss(**arrays)), given(), by))


def assert_the_same_bits(make, skipped, losses):
    for by, body in losses:
        if any(word in body for word in skipped):
            continue
        text = gradient_program(by, body.replace("exp", "").replace("log", "").replace("tanh", ""))  # not the same bits
        text = text.replace("sin(", "sqrt(1.5 + ").replace("atan2(a(i), 2)", "a(i)").replace("pow(abs(a(i)), 1.5)", "1")
        arrays = {name: array.astype("f4") if array.dtype == "f8" else array for name, array in given().items()}
        expected = value_of(text, partial(NumpyTarget, strict=True), **arrays)
        assert np.array_equal(value_of(text, partial(make, strict=True), **arrays), expected, equal_nan=True), text


# The random programs of test_fuzz.py have gradients on devices and in GLSL too.
@pytest.mark.slow
def test_gradients_have_the_same_strict_bits_on_devices(device):
    assert_the_same_bits(partial(DeviceTarget, device=device, name="device"), (), LOSSES)


@pytest.mark.parametrize("losses", [pytest.param(LOSSES, marks=pytest.mark.slow, id="all"), [PART_OF_AN_ARRAY]])
def test_gradients_have_the_same_strict_bits_in_glsl(gl, losses):
    """Part of an array alone, too: NVIDIA's compiler read 0 from it where its first index was a uniform."""
    if gl.version < 400:
        pytest.skip("this driver has no `precise` (GLSL 4.00), without which it may contract a * b + c")
    assert_the_same_bits(partial(GlslTarget, gl=gl), ("scan", "sort"), losses)  # GLSL has neither


def test_a_first_index_is_a_literal_in_glsl(gl, rng, monkeypatch):
    """texelFetch() at `i + 1 - uniform` returns 0 in a driver of NVIDIA: the gradient was 0 there."""
    seen, first_index = [], GlslEmitter.first_index
    monkeypatch.setattr(GlslEmitter, "first_index", lambda *words: seen.append(first_index(*words)) or seen[-1])
    text = "float loss(float[,] a) { var y(i : 0..4, j : 0..3) = a(i / 2, j + 1) * i; return sum(y * y); } "
    text += "float[,] main(float[,] a) => grad(loss)(a);"
    value_of(text, partial(GlslTarget, gl=gl), a=rng.normal(size=(3, 6)).astype("f4"))
    assert seen == ["1"] * len(seen) and seen


# Programs of scenes/: their main, and a number of what it returns; each argument that is not an integer is a parameter.
SOME = np.random.default_rng(5)
EXAMPLES = {
    "convolution": ("var r = main(b, w); return sum(r * r);", {"b": SOME.random((4, 5)), "w": SOME.random((2, 3))}),
    "heat": ("var r = main(u, 0.01, 3); return sum(r * r * r);", {"u": SOME.random((4, 4))}),
    "laplacian": ("var r = main(a); return sum(r * r);", {"a": SOME.random((4, 5))}),
    "listing1": ("var r = main(g, l, at); return sum(r * r);", {"g": SOME.random(4), "l": SOME.random(4), "at": 0.3}),
    "listing2": ("var r = main(vs, g); return sum(r * r);", {"vs": SOME.random((4, 3)), "g": SOME.random(4)}),
    "maxsum": ("return main(a).sum * main(a).sum;", {"a": SOME.random((4, 5))}),
    "nbody": (
        "var r = main(p, v, m, 2, 0.1, soft); return sum(r(i).x * i + r(i).y * r(i).z);",
        {"p": SOME.random((2, 3)), "v": SOME.random((2, 3)), "m": SOME.random(2), "soft": 0.4},
    ),
    "product": ("var r = main(a, b); return sum(r * r);", {"a": SOME.random((3, 4)), "b": SOME.random((4, 2))}),
    "softmax": ("var r = main(a); return sum(r * r * r);", {"a": SOME.random((3, 4))}),
    "statistics": ("return main(a).mean * main(a).variance;", {"a": SOME.random(9)}),
    "transposed": ("var r = main(a, b); return sum(r * r);", {"a": SOME.random((3, 2)), "b": SOME.random((3, 2))}),
    "mandelbrot": (
        "var r(x : 0..4, y : 0..3) = dot(main(x, y, 4, 3, 9, center, high), float3(1, 2, 3)); return sum(r);",
        {"center": SOME.random(2), "high": 2.5},
    ),
    "spheres": (
        "var r(x : 0..4, y : 0..3) = dot(main(x, y, 4, 3, time, mouse), float3(1, 2, 3)); return sum(r);",
        {"time": 0.3, "mouse": np.array([0.25, 0.5])},
    ),
}  # fmt: skip


TYPES = {"vs": "float3[]", "p": "float3[]", "v": "float3[]", "m": "float[]", "center": "float2", "mouse": "float2"}


def type_of(name, value):
    rank = np.ndim(value)
    return TYPES.get(name) or ("float" + (f"[{',' * (rank - 1)}]" if rank else ""))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in ("heat", "nbody") else n for n in EXAMPLES]
)
def test_gradients_of_the_example_programs_are_finite_differences(name):
    body, arrays = EXAMPLES[name]
    parameters = ", ".join(f"{type_of(n, v)} {n}" for n, v in arrays.items())
    text = in_double((SCENES / f"{name}.cb").read_text() + f"\ndouble loss({parameters}) {{ {body} }}\n")
    text = text.replace("main(", "whole(").replace("m - cos", "m - m")  # cos by itself is a function of float
    arrays = {n: np.asarray(v, "f8") for n, v in arrays.items()}
    loss = cdollar.function(text, target="numpy", name="loss")
    step = 1e-6 if name == "spheres" else 1e-5  # its normals change fast
    for by in arrays:
        found = cdollar.grad(loss, by)(**arrays).numpy()
        assert_near(found, differences(lambda moved: float(loss(**moved)), arrays, by, step))


def test_gradients_of_numbers_vectors_and_loops_on_the_device():
    text = """
    double twist(double s, double3 v) {
        double z = s;
        for (int n = 0; n < 3; n++) { if (z > 1) z = z * 0.5 + v.x * v.y; else z = z * z + length(v); }
        return z;
    }
    double loss(double s, double3 v, double3[] p) { return sum(dot(p(i), v) * p(i).x * s) + twist(s, v); }"""
    loss = cdollar.function(text, target="numpy", name="loss")
    arrays = {"s": np.array(0.7), "v": SOME.random(3), "p": SOME.random((5, 3))}
    for by in arrays:
        found = cdollar.grad(loss, by)(**arrays).numpy()
        assert_near(found, differences(lambda moved: float(loss(**moved)), arrays, by))


def test_grad_is_a_function_like_any_other():
    text = """
    double cube(double x) => x * x * x;
    double wave(double x) => sin(x);
    double main(double x, double[] a) {
        var inner(double t) = grad(wave)(t);
        var own(double t) = t * t;
        return inner(x) + grad(grad(cube))(x) + grad(own)(x) + sum(grad(cube)(a));
    }"""
    found = value_of(text, numbers={"x": "0.5"}, a=np.array([1.0, 2.0]))
    assert found == pytest.approx(np.cos(0.5) + 3 + 1 + 3 + 12)


def test_gradients_from_python_repeat_their_launches(device):
    loss = cdollar.function("float loss(float[] a, float s) { return sum(s * a * a); }", target="opencl", name="loss")
    first = np.arange(5, dtype="f4")
    assert np.array_equal(loss.grad(first, 2.0).numpy(), 4 * first)
    assert np.array_equal(loss.grad(first + 1, 3.0).numpy(), 6 * (first + 1))
    assert float(cdollar.grad(loss, "s")(first, 3.0)) == 30
    with pytest.raises(ArgumentError, match="cdollar.grad: needs a C. function, but 3 is given"):
        cdollar.grad(3)


FOLDS = {
    "a number": """double step(double s, double x) => s * 0.9d + x * x * s;
        double loss(double[] w) => fold(step, 0.5d, w);""",
    "a record that counts": """final class S { double a, b; int n; }
        S step(S s, double x) {
            double y = s.a * x + s.b;
            if (y > 2) y = y / 3;
            return S(y, s.b + 0.1d * y * x, s.n + 1);
        }
        double loss(double[] w) { var r = fold(step, S(1, 0.3d, 0), w); return r.a * r.b + r.n * r.a; }""",
    "a start": """double step(double s, double x) => s * x + x / (2 + s * s);
        double loss(double[] w) => fold(step, w(0) * w(1), w(i) * w.clamp(i + 1), i : w);""",
    "rows": """double step(double s, double x) => s * x + 1;
        double loss(double[,] w) { var r(i) = fold(step, w(i, 0), w(i, j)); return sum(r(i) * r(i) * w(i, 1)); }""",
    "two variables": """double step(double s, double x) => s * x + x;
        double loss(double[,] w) => fold(step, 1, w(i, j));""",
}


@pytest.mark.parametrize("text", FOLDS.values(), ids=FOLDS)
def test_gradients_of_folds_are_finite_differences(text):
    w = np.random.default_rng(3).standard_normal((3, 4) if "[,]" in text else 7)
    loss = cdollar.function(text, target="numpy", name="loss")
    expected = differences(lambda moved: float(loss(**moved)), {"w": w}, "w", 1e-6)
    assert_near(cdollar.grad(loss)(w).numpy(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("text", FOLDS.values(), ids=FOLDS)
def test_gradients_of_folds_have_the_same_bits_on_devices(text, device, gl):
    type_ = "float[,]" if "[,]" in text else "float[]"
    text = re.sub(r"(?<=\d)d\b", "", text.replace("double", "float")) + f"{type_} main({type_} w) => grad(loss)(w);"
    w = np.random.default_rng(3).standard_normal((3, 4) if "[,]" in text else 7).astype("f4")
    expected = value_of(text, lambda dag: NumpyTarget(dag, strict=True), w=w)
    assert np.array_equal(value_of(text, lambda dag: DeviceTarget(dag, device, "device", strict=True), w=w), expected)
    if gl.version >= 400:
        assert np.array_equal(value_of(text, lambda dag: GlslTarget(dag, gl, strict=True), w=w), expected)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return grad(loss, q)(a);", "has no parameter `q`"),
        ("return grad(loss, 3)(a);", "3 is not the name of a parameter"),
        ("return grad(a)(a);", "which has no gradient"),
        ("return grad(many)(a);", "returns float\\[\\], which has no gradient"),
        ("return grad(counted)(3);", "there is no gradient by `n`, int"),
        ("return grad(reduced)(a);", "there is no gradient here: the reduction by `more` has no gradient"),
        ("return grad(folded)(a);", "a fold of 70000 elements has no gradient, which would take the square"),
        ("var f(i) = 1.0 * i; return grad(loss)(f) + a;", "its domain is infinite here"),
        ("return grad()(a);", "grad takes a function and names of parameters"),
    ],
)
def test_what_has_no_gradient(body, message):
    text = f"""
    float loss(float(int) a) => sum(a(i), i : 0..3);
    float[] many(float[] a) => a + 1;
    float counted(int n) => n * 1.5;
    float more(float s, float x) => s * x;
    float reduced(float[] a) => more(a);
    float folded(float[] a) => fold(more, 1.0, a.clamp(i), i : 0..70000);
    float[] main(float[] a) {{ {body} }}"""
    error = error_of(text, a=np.ones(3, "f4"))
    assert error.code == "CS0321"
    assert re.search(message, str(error)), str(error)


def test_an_index_outside_of_the_domain_is_an_error_of_the_gradient_too():
    text = gradient_program("a", "var y(i : 0..12) = a(c(i)) * i; return sum(y);")
    assert error_of(in_double(text), **(given() | {"c": np.full(12, 9, "i4")})).code == "CS0317"


ROWS = np.arange(20, dtype="f4").reshape(4, 5) % 7 - 3


@pytest.mark.parametrize(
    "body,wanted",
    [
        ("var r(i, j) = doubled(m(i, ))(j); return r;", 4 * ROWS),
        ("var r(i, j) = grad(cubes)(m(i, ))(j); return r;", 3 * ROWS**2),
        (
            "var r(i, j : 0..5) = value_and_grad(cubes)(m(i, )).value + j; return r;",
            (ROWS**3).sum(1, keepdims=True) + np.arange(5),
        ),
        ("var r(i, j) = value_and_grad(cubes)(m(i, )).v(j); return r;", 3 * ROWS**2),
        ("return grad(all)(m);", 3 * (2 * ROWS) ** 2 * 2),
    ],
)
def test_functions_of_arrays_take_rows(device, gl, body, wanted):
    """A row depends on a bound variable: what is evaluated once elsewhere is computed where the row is read."""
    text = """
    float[] doubled(float[] v) { let t(j) = v(j) * 2; float[] u = t; for (int k = 0; k < 1; k++) u = 2 * u; return u; }
    float cubes(float[] v) => sum(v * v * v);
    float all(float[,] m) { var r(i) = cubes(halved(m(i, ))); return sum(r); }
    float[] halved(float[] v) { float[] w = 2 * v; return w; }
    float[,] main(float[,] m) { BODY }
    """.replace("BODY", body)
    for make in (NumpyTarget, lambda dag: DeviceTarget(dag, device, "device"), lambda dag: GlslTarget(dag, gl)):
        assert np.array_equal(value_of(text, make, m=ROWS), wanted)


TRAINING = """
    double loss(double[,] w, double[] v, double2 c, double[,] x, double[] t) {
        var h(n, k) = tanh(sum(x(n, i) * w(i, k)));
        var o(n) = sum(h(n, k) * v(k)) + c.x + c.y * c.y;
        return sum((o - t) * (o - t)) / size(t);
    }
    (double loss, double[,] w, double[] v, double2 c)
    main(double[,] w, double[] v, double2 c, double[,] x, double[] t, int steps) {
        for (int s = 0; s < steps; s++) {
            let g = grad(loss, w, v, c)(w, v, c, x, t);
            w = w - 0.1 * g.w;
            v = v - 0.1 * g.v;
            c = c - 0.1 * g.c;
        }
        return (loss(w, v, c, x, t), w, v, c);
    }"""


def trained(w, v, c, x, t, steps):
    """The same descent with the derivatives written by hand."""
    for step in range(steps + 1):
        h = np.tanh(x @ w)
        error = h @ v + c[0] + c[1] ** 2 - t
        if step == steps:
            return np.mean(error * error), w, v, c
        at = 2 * error / len(t)
        slopes = x.T @ (np.outer(at, v) * (1 - h * h)), h.T @ at, np.array([at.sum(), 2 * c[1] * at.sum()])
        w, v, c = w - 0.1 * slopes[0], v - 0.1 * slopes[1], c - 0.1 * slopes[2]


def random_training():
    rng = np.random.default_rng(8)
    return [rng.standard_normal(shape) for shape in ((3, 4), 4, 2, (6, 3), 6)]


def test_each_step_of_a_training_loop_costs_what_the_first_steps_cost(monkeypatch):
    given, visited = random_training(), []
    monkeypatch.setattr(ReverseMode, "visit", lambda *a, visit=ReverseMode.visit: visited.append(a) or visit(*a))
    train = cdollar.function(TRAINING, target="numpy")
    counts = []
    for steps in (3, 12):
        for found, right in zip(train(*given, steps), trained(*given, steps), strict=True):
            assert np.allclose(np.asarray(found), right, rtol=1e-12)
        counts.append(len(visited))
        visited.clear()
    assert counts[1] <= 4 * counts[0]


@pytest.mark.slow
def test_a_training_loop_compiles_the_kernels_of_its_first_steps_only(device):
    given, compiled = random_training(), []
    for steps in (3, 8):
        train = cdollar.function(TRAINING)
        target = DeviceTarget(train._compilation.dag, device, "device")  # noqa: SLF001
        train.target = train._compilation.target = train._compilation.program.host.target = target  # noqa: SLF001
        for arguments in (given, random_training()[:3] + [given[3] + 1, given[4]]):  # the second repeats the launches
            for found, right in zip(train(*arguments, steps), trained(*arguments, steps), strict=True):
                assert np.allclose(np.asarray(found), right, rtol=1e-9)
        compiled.append(target.counters.compiled)
    assert compiled[0] == compiled[1] > 0


CARRYING = """
float loss(float[] w) => sum(w * w);
float[] main(float[] a, int n) {{ float[] w = a; float[] m = 0 * a; float k = 1; {} return w; }}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "loop",
    [
        "for (int t = 0; t < n; t++) { let v(i) = w(i) * k + 1; w = v; k = k * 0.5; }",
        "int t = 0; while (max(w) < 1e6 && t < n) { let v(i) = w(i) * k + 1; w = v; k = k + 0.5; t++; }",
        "for (int t = 0; t < n; t++) { let g = grad(loss)(w); w = w - 0.1 / (1 + t) * g; }",
        "for (int t = 0; t < n; t++) { k = k * 0.9; m = 0.9 * m + 0.2 * w; w = w - 0.1 * m / (1 - k); }",
    ],
)
def test_a_float_that_a_loop_carries_compiles_nothing_anew(device, loop):
    a, compiled = np.arange(4, dtype="f4") / 4, []
    for steps in (2, 7):
        targets = []

        def make(dag, targets=targets):
            targets.append(DeviceTarget(dag, device, "device"))
            return targets[-1]

        value_of(CARRYING.format(loop), make, numbers={"n": str(steps)}, a=a)
        compiled.append(targets[-1].counters.compiled)
    assert compiled[0] == compiled[1] > 0
