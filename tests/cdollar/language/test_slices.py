"""Slices against NumPy's, and generic functions."""

import numpy as np
import pytest

from tests.cdollar.evaluate import error_of, value_of

ROW = np.arange(10, dtype="f4")
TABLE = np.arange(24, dtype="f4").reshape(4, 6)


@pytest.mark.parametrize("part", ["1:3", "1:", ":-2", "::2", "::-1", "7:2:-2", "-3:", "2:2", ":"])
def test_slices_of_a_row_are_those_of_numpy(part):
    expected = eval(f"ROW[{part}]")
    assert np.array_equal(value_of(f"float[] main(float[] a) {{ return a[{part}]; }}", a=ROW), expected)


@pytest.mark.parametrize("part", ["1:3", "1:3, 2", "2, ::2", "::-1, 1:4", ":, 3", ":, :"])
def test_slices_of_a_table_are_those_of_numpy(part):
    expected = eval(f"TABLE[{part}]")
    type_ = "float[,]" if expected.ndim == 2 else "float[]"
    assert np.array_equal(value_of(f"{type_} main(float[,] a) {{ return a[{part}]; }}", a=TABLE), expected)


def test_slices_take_bound_variables_and_numbers_of_the_host():
    text = "float[] main(float[,] a, int n) { var c(i) = sum(a[i, 1:n]); return c; }"
    assert np.array_equal(value_of(text, numbers={"n": "4"}, a=TABLE), TABLE[:, 1:4].sum(1))
    text = "float[] main(float[] a) { var f(int i) = 2.0 * i; return a[1:] - a[:-1] + f[3:12]; }"
    assert np.array_equal(value_of(text, a=ROW), 1 + 2 * np.arange(3, 12))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("a[1:30]", "the slice 1:30 reads 1..30 where 0..10 is allowed"),
        ("a[::0]", "the step of a slice is not 0"),
        ("sin[1:2]", "a slice is a part of an array"),
        ("f[1:]", "needs both ends"),
        ("domain(a)[1:3]", "only in the brackets of an array"),
    ],
)
def test_slices_that_do_not_fit(expression, words):
    error = error_of(f"float[] main(float[] a) {{ var f(int i) = 2.0 * i; return {expression}; }}", a=ROW)
    assert error.code == "CS0322" and words in str(error)


GENERIC = """
T twice<T>(T x) => x + x;
T total<T>(T[] v) => sum(v(i) * v(i), i : v);
T apply<T>(T(T) f, T x) => f(x);
T power<T>(T x, int n) { T y = x; for (int i = 1; i < n; i++) y = y * x; return y; }
U pick<T, U>(T a, U b, bool first = false) => first ? (U) a : b;
"""


def test_generic_functions_are_made_for_the_types_of_each_call():
    text = GENERIC + "float[] main(float[] a) { return twice(a) + twice(1) + total(a) + total(scan([1, 2])); }"
    assert np.array_equal(value_of(text, a=ROW), 2 * ROW + 2 + np.sum(ROW * ROW) + 10)
    text = GENERIC + "double main() { return apply(twice, 2.5d) + power(2.0, 3) + power(3, 2) + pick(1, 2.5); }"
    assert value_of(text) == 5 + 8 + 9 + 2.5
    text = GENERIC + "float3 main() { var g = (float(float)) twice; return power(float3(1, 2, 3), 2) + g(1); }"
    assert np.array_equal(value_of(text), [3, 6, 11])
    text = GENERIC + "int main() { int x = 2147483647; return twice(x); }"
    assert value_of(text) == -2


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (GENERIC + "float main() { return total(3); }", "CS0411", "it is `T total<T>(T[] v)`"),
        (GENERIC + "float main() { return twice(true); }", "CS0403", "`+` is not defined for bool"),
        (
            "T f<T>(int x) => x; float main() { return f(3); }",
            "CS0217",
            "the type `T` cannot be inferred from the parameters of f",
        ),
        ("T f<T, T>(T x) => x; float main() { return f(3); }", "CS0109", "the type `T` is declared twice"),
        ("T main<T>(T x) => x;", "CS0217", "`main` cannot be generic"),
        ("T f<T>(T x) => x.q; float main() { return f(3.0); }", "CS0206", "float has no member `q`"),
        ("T f<T>(T x) => f(x); float main() { return f(3.0); }", "CS0604", "f calls itself"),
    ],
)
def test_generic_functions_that_do_not_fit(text, code, words):
    error = error_of(text)
    assert error.code == code and words in str(error), str(error)
