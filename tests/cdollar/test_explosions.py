"""Programs whose size doubles with each line: shared or emitted as functions in linear time, or one error at a line."""

import re
from functools import partial
from random import Random

import numpy as np
import pytest

from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from tests.cdollar.evaluate import error_of, value_of
from tests.cdollar.explosions import Explosions, check, limited_cpu

A = np.array([1, 2, 3], "f4")
OVER_POINTS = "float[] main(float[] a) { var r(i) = F(a(i)); return r; }"


@pytest.fixture(autouse=True)
def never_hangs():
    """Each program takes a second at most; before, most of them never ended."""
    with limited_cpu(60):
        yield


def chain(first: str, level: str, last: str, levels: int) -> str:
    """Line k defines the level F by the level G below it."""
    names = [{"F": f"f{k}", "G": f"f{k - 1}"} for k in range(2, levels + 1)]
    texts = [(first, {}), *((level, known) for known in names), (last, {"F": f"f{levels}"})]
    return "\n".join(re.sub(r"\b[FG]\b", lambda m: known.get(m[0], m[0]), text) for text, known in texts)  # noqa: B023


# Levels whose two calls are equal, or become equal: each level halves the value of the level below.
SHARED = {
    "an expression": ("float f1(float x) => x;", "float F(float x) => G(x) - G(x) * 0.5;"),
    "let": ("float f1(float x) => x;", "float F(float x) => let y = G(x) in y - y * 0.5;"),
    "methods": (
        "final class C { float v; C m(float k) => C(v * k); C GetLength(int k) => C(v / 2); } float f1(float x) => x;",
        "float F(float x) => C(G(x)).m(1).GetLength(0).v;",
    ),
    "a generic function": ("T f1<T>(T x) => x;", "T F<T>(T x) => (T) (G(x) - G(x) * 0.5);"),
}
SHARED_ARRAYS = {
    "arrays": ("float[] f1(float[] x) => x;", "float[] F(float[] x) => G(x) - G(x) * 0.5;"),
    "sums": ("float[] f1(float[] x) => x * (sum(x) / sum(x));", "float[] F(float[] x) => G(x) * 0.25 + G(x) * 0.25;"),
    "loops": (
        "float[] f1(float[] x) => x;",
        "float[] F(float[] x) { for (int t = 0; t < 1; t++) x = G(x) - G(x) * 0.5; return x; }",
    ),
    "branches": (
        "float[] f1(float[] x) => x;",
        "float[] F(float[] x) { if (x(0) > 9) return G(x); var r(i) = G(x)(i) - G(x)(i) * 0.5; return r; }",
    ),
}


@pytest.mark.parametrize("kind", SHARED)
def test_equal_calls_are_computed_once(kind):
    text = chain(*SHARED[kind], OVER_POINTS, 40)
    np.testing.assert_array_equal(value_of(text, a=A), A * np.float32(2) ** -39)


@pytest.mark.parametrize("kind", SHARED_ARRAYS)
def test_equal_calls_of_arrays_are_computed_once(kind):
    text = chain(*SHARED_ARRAYS[kind], "float[] main(float[] a) => F(a);", 30)
    np.testing.assert_allclose(value_of(text, a=A), A * np.float32(2) ** -29, rtol=1e-5)


def test_defaults_and_domains_are_evaluated_once():
    text = chain("float f1() => 1.5;", "float F(float x = G() * 0.5 + G() * 0.5) => x;", "float main() => F();", 40)
    assert value_of(text) == 1.5
    text = "domain d(int n) => 0..n; int main() => " + "sum(1, i : d(" * 24 + "3" + "))" * 24 + ";"
    assert value_of(text) == 3


def test_indices_that_share_parts_have_affine_forms():
    doubled = "".join(f"int j{k} = j{k - 1} + j{k - 1}; " for k in range(2, 30))
    text = "float g(float[] a, int i) { int j1 = i; " + doubled + "return a.wrap(j29); }"
    text += "float[] main(float[] a) { var r(i : a) = g(a, i); return r; }"
    np.testing.assert_array_equal(value_of(text, a=A), A[np.arange(3) * 2**28 % 3])


# Levels whose two calls differ: 2^n different values.
DISTINCT = {
    "expressions": ("float f1(float x) => x * 0.5;", "float F(float x) => G(x + 1) * G(x * 0.5);"),
    "statements": ("float f1(float x) => x * 0.5;", "float F(float x) { float y = G(x + 1); return y * G(y); }"),
    "conditions": ("float f1(float x) => x * 0.5;", "float F(float x) => G(x + 1) > 2 ? G(x * 0.5) : x;"),
    "records": (
        "final class C { float v; C m(float k) => C(v * k); } float f1(float x) => x * 0.5;",
        "float F(float x) => C(G(x + 1)).m(G(x * 0.5)).v;",
    ),
    "gradients": ("float f1(float x) => x * x * 0.5;", "float F(float x) => grad(G)(x) * G(x * 0.5);"),
}
DISTINCT_ARRAYS = {
    "arrays": ("float[] f1(float[] x) => x * 0.5;", "float[] F(float[] x) => G(x + 1) * G(x * 0.5);"),
    "scans": ("float[] f1(float[] x) => x * 0.5;", "float[] F(float[] x) => scan(G(x + 1)) * G(x * 0.5);"),
    "branches": (
        "float[] f1(float[] x) => x;",
        "float[] F(float[] x) { if (max(x) > 3) { x = x + 1; if (max(x) > 9) return x; } return G(x + 1) + G(x); }",
    ),
}


def error_line(text: str, **arrays) -> int:
    """The line of the error CS0603."""
    error = error_of(text, **arrays)
    assert error.code == "CS0603" and not error.others, error
    return error.span.source.line_and_column(error.span.start)[0]


@pytest.mark.parametrize("kind", [*DISTINCT, "arrays", "branches", *(pytest.param("scans", marks=pytest.mark.slow),)])
def test_programs_that_are_too_large_have_one_error_at_a_line(kind):
    is_array = kind in DISTINCT_ARRAYS and kind not in DISTINCT
    first, level = (DISTINCT_ARRAYS if is_array else DISTINCT)[kind]
    last = (
        "float[] main(float[] a) => F(a);" if is_array else "float[] main(float[] a) { var r(i) = F(a(i)); return r; }"
    )
    line = error_line(chain(first, level, last, 40), a=A)
    assert 4 <= line <= 20
    assert value_of(chain(first, level, last, line // 2), a=A).shape == (3,)


def test_functions_that_are_inlined_into_kernels_name_the_call():
    levels = "".join(f"var f{k}(float x) = f{k - 1}(x + 1) * f{k - 1}(x * 0.5);\n" for k in range(2, 41))
    text = f"float main(float y) {{\nvar f1(float x) = x;\n{levels}return f40(y); }}"
    error = error_of(text, numbers={"y": "2"})
    assert error.code == "CS0603" and error.span.text.startswith("f")


@pytest.mark.parametrize(
    "text",
    [
        "int main() => " + "sum(" * 16 + "1" + "".join(f" * i{k}, i{k} : (0..1) | (2..3))" for k in range(16)) + ";",
        "float g(float[] a, float x) {"
        + "".join(f"if (x > {k}) {{ x = x * sum(a); if (x > 2) return x; }}" for k in range(24))
        + "return x; } float[] main(float[] a) { var r(i : a) = g(a, a(i)); return r; }",
    ],
)
def test_unions_and_branches_that_multiply_are_errors(text):
    arrays = {"a": A} if "float[] a" in text else {}
    assert error_line(text, **arrays) == 1


def test_long_programs_keep_their_budget():
    """The budget is for what a function repeats: many functions, and many rounds of a loop, are no repetition."""
    calls = " + ".join(f"half_of(x + {k})" for k in range(45))
    text = "float half_of(float x) => x * 0.5;\n" + "".join(f"float f{k}(float x) => {calls};\n" for k in range(60))
    text += "float main(float[] a) { float s = sum(a); for (int t = 0; t < 2100; t++) s = half_of(s); return f7(s); }"
    assert value_of(text, a=A) == sum(range(45)) / 2


STATEMENT = (
    "float f1(float x) => x * 0.5;",
    "float F(float x) { float y = G(x * 0.5); return y - G(x + 1); }",
    OVER_POINTS,
)


def test_large_functions_are_called_on_devices(device):
    """Compilers inline small functions only: 2^12 calls of a function compile in a quarter of a second."""
    text = chain(*STATEMENT, 12)
    result = value_of(text, lambda dag: DeviceTarget(dag, device, "device", strict=True), a=A)
    np.testing.assert_array_equal(result, value_of(text, partial(NumpyTarget, strict=True), a=A))


def test_drivers_that_inline_every_call_have_a_smaller_budget(gl):
    with pytest.raises(ProgramError, match="CS0603"):
        value_of(chain(*STATEMENT, 14), lambda dag: GlslTarget(dag, gl), a=A)


@pytest.mark.parametrize("seed", [*range(5), pytest.param(5, marks=pytest.mark.slow)])
def test_random_explosions_end_and_targets_agree(device, seed):
    check(Explosions(Random(f"quick {seed}")).text(), device)
