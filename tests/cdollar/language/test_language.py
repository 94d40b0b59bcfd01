"""The language C$: results of its constructs on the NumPy target, compared with NumPy."""

import numpy as np
import pytest

from renderer.cdollar.runtime.evaluate import prelude
from tests.cdollar.evaluate import error_of, result_of, value_of

MATRIX = """
type matrix = float(int, int);
matrix mul(matrix a, matrix b) {
    var c(j, k) = + (a(j, l) * b(l, k));   // unary + reduces over l
    return c;
}
matrix main(matrix a, matrix b) { return mul(a, b); }
"""


def floats(rng, *shape):
    return rng.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 4, 5), (64, 17, 33), (256, 256, 256)])
def test_listing_3_is_the_matrix_product(rng, sizes):
    a, b = floats(rng, *sizes[:2]), floats(rng, *sizes[1:])
    assert np.allclose(value_of(MATRIX, a=a, b=b), a.astype("f8") @ b, rtol=1e-5, atol=1e-5)


def test_listing_1_parameters_of_different_types_stay_separate(rng):
    text = """
        float sin(float x) { return x - x * x * x / 6; }
        float[] main(float[] g, float[] l) {
            var h = g + sin;
            var t = l * g;
            return h(, 0.5) + t;
        }"""
    g, other = floats(rng, 9), floats(rng, 9)
    assert np.allclose(value_of(text, g=g, l=other), g + (0.5 - 0.125 / 6) + other * g, atol=1e-6)


def test_listing_1_functions_add_pointwise():
    text = """
        float(float) twice(float(float) m) => m + sin;
        float main() { float(float) m = cos; var w = twice(m); return w(0.25); }"""
    assert np.isclose(value_of(text), np.cos(0.25) + np.sin(0.25), atol=1e-6)


def test_listing_2_member_access_is_promoted(rng):
    text = """
        final class float3 { float x, y, z; }
        float[] main(float3[] vs, float[] g) {
            var tt = vs.x;
            var ll = tt * vs.y + g;
            return ll;
        }"""
    vs, g = floats(rng, 7, 3), floats(rng, 7)
    assert np.allclose(value_of(text, vs=vs, g=g), vs[:, 0] * vs[:, 1] + g, atol=1e-6)


def test_operators_of_classes_are_promoted_and_reduce(rng):
    text = """
        final class Complex { float re, im; }
        Complex operator *(Complex a, Complex b) => Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
        Complex operator +(Complex a, Complex b) { return new Complex(a.re + b.re, a.im + b.im); }
        Complex main(float[] re, float[] im) {
            var z(i) = Complex(re(i), im(i));
            return sum(z * z);
        }"""
    re, im = floats(rng, 12), floats(rng, 12)
    expected = ((re + 1j * im).astype("c16") ** 2).sum()
    result = value_of(text, re=re, im=im)
    assert np.isclose(result["re"], expected.real, atol=1e-4) and np.isclose(result["im"], expected.imag, atol=1e-4)


def test_convolution_infers_its_domain(rng):
    text = "float[] main(float[] b, float[] w) { var c(i) = + (b(i + k) * w(k)); return c; }"
    b, w = floats(rng, 20), floats(rng, 5)
    assert np.allclose(value_of(text, b=b, w=w), np.convolve(b, w[::-1], "valid"), atol=1e-5)


def test_first_index_may_differ_from_zero(rng):
    text = "float[] main(float[] b) { var c(i) = b(i - 3) + b(i - 1); return c; }"
    b = floats(rng, 10)
    result = result_of(text, b=b)
    assert result.origin == (3,) and np.allclose(result.array, b[:8] + b[2:], atol=1e-6)


@pytest.mark.parametrize(
    ("index", "expected"),
    [("n - 1 - i", lambda b: b[::-1]), ("2 * i", lambda b: b[::2]), ("2 * i + 1", lambda b: b[1::2])],
)
def test_affine_indices(rng, index, expected):
    b = floats(rng, 11)
    text = f"float[] main(float[] b) {{ int n = size(b); var c(i) = b({index}); return c; }}"
    assert np.array_equal(value_of(text, b=b), expected(b))


def test_an_index_times_zero_bounds_nothing(rng):
    a = floats(rng, 9)
    assert np.array_equal(
        value_of("float[] main(float[] a) { var c(i) = a(0 * i) + a(2 * i); return c; }", a=a), a[0] + a[::2]
    )


def test_two_affine_constraints_intersect(rng):
    b = floats(rng, 8)
    text = "float[] main(float[] b) { var c(i) = b(2 * i) + b(2 * i + 1); return c; }"
    assert np.allclose(value_of(text, b=b), b[::2] + b[1::2], atol=1e-6)


@pytest.mark.parametrize(
    ("mode", "pad"), [("clamp", "edge"), ("wrap", "wrap"), ("mirror", "symmetric"), ("zero", None)]
)
def test_border_modes(rng, mode, pad):
    a = floats(rng, 5, 4)
    text = f"float[,] main(float[,] a) {{ var c(i, j) = a.{mode}(i - 2, j + 1) + a(i, j); return c; }}"
    wide = np.pad(a, 2, pad) if pad else np.pad(a, 2)
    assert np.array_equal(value_of(text, a=a), wide[0:5, 3:7] + a)


def test_currying_and_blanks(rng):
    a = floats(rng, 4, 6)
    assert np.array_equal(value_of("float[] main(float[,] a) => a(2);", a=a), a[2])
    assert np.array_equal(value_of("float[] main(float[,] a) => a(, 3);", a=a), a[:, 3])
    text = "float[,] main(float[,] a) { var t(j, i) = a(i, j); return t; }"
    assert np.array_equal(value_of(text, a=a), a.T)


def test_max_of_sums_in_three_notations(rng):
    a = floats(rng, 7, 9)
    expected = a.astype("f8").sum(1).max()
    for body in (
        "var s(i) = + a(i, j); return max(s);",
        "return max(+ (a(i, j), int j), int i);",
        "return max(sum(a(i, )), int i);",
    ):
        assert np.isclose(value_of(f"float main(float[,] a) {{ {body} }}", a=a), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("sum(a)", np.sum), ("prod(a)", np.prod), ("min(a)", np.min), ("max(a)", np.max), ("+ a", np.sum),
        ("* (a(i))", np.prod), ("argmin(a)", np.argmin), ("argmax(a(i))", np.argmax),
        ("sum(a > 0)", lambda a: (a > 0).sum()), ("any(a > 2) ? 1 : 0", lambda a: (a > 2).any()),
    ],
)  # fmt: skip
def test_reductions(rng, call, expected):
    a = floats(rng, 33)
    assert np.isclose(value_of(f"float main(float[] a) => {call};", a=a), expected(a.astype("f8")), rtol=1e-5)


def test_argmax_over_two_dimensions_returns_the_first_maximum():
    a = np.array([[1, 5, 2], [5, 0, 5]], "f4")
    assert value_of("int2 main(float[,] a) => argmax(a);", a=a).tolist() == [0, 1]


def test_user_reductions_run_in_order_unless_associative(rng):
    a = floats(rng, 40)
    ordered = "float f(float s, float x) { return 0.5 * s + x; } float main(float[] a) => f(a);"
    state = a[0]
    for x in a[1:]:
        state = np.float32(np.float32(0.5) * state + x)
    assert value_of(ordered, a=a) == state
    text = """
        [Associative, Commutative] float h(float a, float b) { return sqrt(a * a + b * b); }
        float main(float[] a) => h(a);"""
    assert np.isclose(value_of(text, a=a), np.linalg.norm(a), rtol=1e-5)


def test_a_fold_computes_mean_and_variance_in_one_pass(rng):
    text = """
        final class Welford { int n; double mean, m2; }
        Welford add(Welford s, float x) {
            int n = s.n + 1;
            double d = x - s.mean;
            double mean = s.mean + d / n;
            return Welford(n, mean, s.m2 + d * (x - mean));
        }
        Welford main(float[] a) => fold(add, Welford(0, 0, 0), a);"""
    a = floats(rng, 200)
    result = value_of(text, a=a)
    assert (
        result["n"] == 200
        and np.isclose(result["mean"], a.mean(dtype="f8"))
        and np.isclose(result["m2"], 200 * a.var(dtype="f8"))
    )


def test_softmax(rng):
    text = """
        float[,] main(float[,] a) {
            var m(i) = max(a(i, ));
            var e(i, j) = exp(a(i, j) - m(i));
            var p(i, j) = e(i, j) / sum(e(i, ));
            return p;
        }"""
    a = floats(rng, 13, 21)
    e = np.exp(a.astype("f8") - a.max(1, keepdims=True))
    assert np.allclose(value_of(text, a=a), e / e.sum(1, keepdims=True), rtol=1e-5)


def test_host_loops_build_functions_and_conditions_select(rng):
    text = """
        float(int) step(float(int) u) {
            var v(i) = 0.25 * u.clamp(i - 1) + 0.5 * u(i) + 0.25 * u.clamp(i + 1);
            return v;
        }
        float[] main(float[] u, int n = 3) { for (int i = 0; i < n; i++) u = step(u); return u; }"""
    u = expected = floats(rng, 16)
    for _ in range(300):
        padded = np.pad(expected, 1, "edge")
        expected = np.float32(0.25) * padded[:-2] + np.float32(0.5) * expected + np.float32(0.25) * padded[2:]
    assert np.allclose(value_of(text, u=u, numbers={"n": "300"}), expected, atol=1e-5)


def test_a_reduction_can_end_a_host_loop(rng):
    text = """
        int main(float[] g) {
            var u = g; int n = 0;
            while (max(abs(u)) > 0.001) { var v(i) = 0.5 * u(i); u = v; n++; }
            return n;
        }"""
    g, n = floats(rng, 10), 0
    while np.abs(g * 0.5**n).max() > 0.001:
        n += 1
    assert value_of(text, g=g) == n


def test_device_functions_diverge_at_every_point():
    text = """
        int collatz(int n) {
            int steps = 0;
            while (true) {
                if (n == 1) break;
                if (n % 2 == 0) { n /= 2; steps++; continue; }
                n = 3 * n + 1;
                steps++;
            }
            return steps;
        }
        int[] main() { var c(i : 1..100) = collatz(i); return c; }"""

    def collatz(n, steps=0):
        while n != 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    assert value_of(text).tolist() == [collatz(n) for n in range(1, 100)]


def test_if_on_a_bound_variable_selects(rng):
    text = """
        float edge(float[] a, int i) {
            float s = a(i);
            if (i == 0) return -1;
            if (i > 2) s *= 2; else s += 1;
            return s;
        }
        float[] main(float[] a) { var c(i) = edge(a, i); return c; }"""
    a = floats(rng, 6)
    expected = np.where(np.arange(6) > 2, a * 2, a + 1)
    expected[0] = -1
    assert np.array_equal(value_of(text, a=a), expected)


def test_a_guarded_index_is_read_only_where_its_condition_holds(rng):
    a = floats(rng, 6)
    text = "float[] main(float[] a) { var c(i : 0..6) = i > 0 ? a(i - 1) : 0; return c; }"
    assert np.array_equal(value_of(text, a=a), np.concatenate([[0], a[:-1]]).astype("f4"))
    wrong = "float[] main(float[] a, int[] p) { var c(i) = a(p(i)); return c; }"
    assert np.array_equal(value_of(wrong, a=a, p=np.array([5, 0, 2], "i4")), a[[5, 0, 2]])
    assert error_of(wrong, a=a, p=np.array([5, 6], "i4")).code == "CS0317"


def test_picture_programs_have_built_in_inputs():
    text = """
        float3 main(int x, int y, int width, int height, float time)
            => float3((x + 0.5) / width, (y + 0.5) / height, time);"""
    result = value_of(text, numbers={"width": "5", "height": "3", "time": "2.5"})
    x, y = np.meshgrid((np.arange(5) + 0.5) / 5, (np.arange(3) + 0.5) / 3)
    assert result.shape == (3, 5, 3) and np.allclose(result, np.stack([x, y, np.full_like(x, 2.5)], -1))


def test_only_the_accessed_region_of_a_file_is_read(tmp_path, rng):
    class Counted(np.memmap):
        pass

    big = np.lib.format.open_memmap(tmp_path / "big.npy", "w+", "f4", (1 << 20, 4))
    big[10:13] = floats(rng, 3, 4)
    text = 'float main() { var f = file("big.npy"); var g = 2 * f + 1; return sum(g(i, j), i : 10..13); }'
    text = text.replace("sum(g(i, j), i : 10..13)", "sum(g(i, j), i : 10..13, int j)")
    assert np.isclose(value_of(text, folder=tmp_path), (2 * big[10:13].astype("f8") + 1).sum(), rtol=1e-5)


def test_integers_wrap_and_division_truncates():
    text = "int[] main(int[] a, int[] b) { var c(i) = a(i) / b(i) + 7 * (a(i) % b(i)); return c; }"
    a, b = np.array([7, -7, 7, -7, 5, -(2**31)], "i4"), np.array([2, 2, -2, -2, 0, 3], "i4")
    expected = [3 + 7, -3 - 7, -3 + 7, 3 - 7, 0, -715827882 - 14]
    assert value_of(text, a=a, b=b).tolist() == expected
    assert value_of("int main(int n) => n + 1;", numbers={"n": "2147483647"}) == -(2**31)


def test_let_and_array_casts_evaluate_once(rng):
    text = "float main(float[] a) { let b = exp(a); float[] c = b + 1; return sum(c) + (let x = 3.0 in x * x); }"
    a = floats(rng, 5)
    assert np.isclose(value_of(text, a=a), (np.exp(a) + 1).sum() + 9, rtol=1e-6)


def test_domains_are_values(rng):
    a = floats(rng, 4, 6)
    text = "int main(float[,] a) { var d = domain(a)[1]; var c(i : d) = i; return sum(c) + a.GetLength(0) + size(a); }"
    assert value_of(text, a=a) == 15 + 4 + 24
    assert result_of("int main(float[,] a) => high(a, 1);", a=a).array == 6


def test_higher_order_functions_and_lambdas():
    text = """
        float integrate(float(float) f, float from, float to, int n) {
            float h = (to - from) / n;
            return h * sum(f(from + (i + 0.5) * h), i : 0..n);
        }
        float main() => integrate(x => x * x, 0, 3, 300) + integrate(sin, 0, pi, 300);"""
    assert np.isclose(value_of(text), 9 + 2, atol=1e-3)


def test_overload_resolution_order():
    text = """
        float f(float a) => a + 1;
        [Associative] float f(float a, float b) => a + b;
        float main(float[] a) => f(2.0) + 100 * f(1.0, 2.0);"""
    assert value_of(text, a=np.ones(3, "f4")) == 303
    reduces = "[Associative] float g(float a, float b) => a + b; float main(float[] a) => g(a);"
    assert value_of(reduces, a=np.ones(3, "f4")) == 3
    promoted = "float f(float a) => a + 1; float[] main(float[] a) => f(a);"
    assert value_of(promoted, a=np.ones(3, "f4")).tolist() == [2, 2, 2]


def test_prelude_functions_can_be_redefined():
    text = "float3 main() => hsv(0.25, 0.5, 0.8) + palette(0.1, float3(0, 0.33, 0.67)) + luminance(float3(1, 1, 1));"
    result = value_of(text)
    hue = 0.8 * (0.5 + 0.5 * np.array([0.5, 1, 0]))
    wave = 0.5 + 0.5 * np.cos(2 * np.pi * (0.1 + np.array([0, 0.33, 0.67])))
    assert np.allclose(result, hue + wave + 1, atol=1e-5)
    assert value_of("float luminance(float3 c) => 7; float main() => luminance(float3(0, 0, 0));") == 7


def test_random_of_the_prelude_is_uniform_and_deterministic():
    text = "float[,] main() { var r(i : -100..100, j : 0..200) = random(i, j); return r; }"
    result = value_of(text)
    assert np.array_equal(result, value_of(text)) and result.min() >= 0 and result.max() < 1
    assert (
        abs(result.mean() - 0.5) < 0.01 and np.abs(np.histogram(result, 10, (0, 1))[0] / result.size - 0.1).max() < 0.01
    )


def test_prelude_functions_check_with_abstract_arguments():
    assert value_of(prelude().text + "\nfloat main() => 1;") == 1


def test_default_arguments(rng):
    text = """
        float f(float x, float y = 2, int n = 1) => x * y + n;
        float[] main(float[] a) { float s = f(3); return f(a, s); }"""
    a = floats(rng, 4)
    assert np.allclose(value_of(text, a=a), a * 7 + 1, atol=1e-5)


def test_running_sum_of_the_hint_is_right(rng):
    a = floats(rng, 9)
    text = "float[] main(float[] a) { var s(i : a) = sum(k <= i ? a(k) : 0, k : a); return s; }"
    assert np.allclose(value_of(text, a=a), np.cumsum(a), atol=1e-5)
