"""Array literals: their types and shapes, on every target, and what is no array."""

import numpy as np
import pytest

from renderer.cdollar.frontend.diagnostics import ProgramError
from tests.cdollar.evaluate import error_of, value_of
from tests.cdollar.test_schedules import all_targets

GOOD = {
    "int[] main(float s) => [1, 2, 3];": [1, 2, 3],
    "float[] main(float s) => [1, 2.5, s];": [1, 2.5, 7],
    "float[,] main(float s) { float[,] a = [[1, 2], [3, 4]]; return a; }": [[1, 2], [3, 4]],
    "float2[] main(float s) => [float2(1, s), float2(2, 3)];": [[1, 7], [2, 3]],
    "int main(float s) => sum([1, 2, 3]) + size([4, 5]) + [6, 7, 8](1);": 15,
    "int[,,] main(float s) => [[[1], [2]], [[3], [4]]];": [[[1], [2]], [[3], [4]]],
    "bool[] main(float s) => [true, s > 8];": [True, False],
    "float[] main(float s) { var w = [0.25, 0.5, 0.25]; var c(i : 0..4) = + (w(k) * (i + k)); return c; }": [
        1,
        2,
        3,
        4,
    ],
}


@pytest.mark.parametrize("text", GOOD)
def test_literals_are_arrays_from_index_0(text):
    assert value_of(text, numbers={"s": "7"}).tolist() == GOOD[text]


def test_literals_are_arrays_on_every_target(device, gl):
    text = list(GOOD)[-1]
    for name, target in all_targets(device, gl).items():
        assert np.array_equal(value_of(text, target, {"s": "7"}), GOOD[text]), name


@pytest.mark.parametrize(
    "body, words",
    [
        ("return [];", "an array needs an element"),
        ("return [[1, 2], [3]];", "the rows of an array have equal lengths"),
        ("return [1, [2]];", "the rows of an array have equal lengths"),
        ("return [[1], 2];", "the rows of an array have equal lengths"),
        ("return [[[[[1]]]]];", "at most four dimensions"),
        ("var b = [float2(1, 2), 3]; return a;", "have the types float2, int"),
        ("return [1, sin];", "but sin is float(float)"),
        ("return [sum(a), 2];", "one is computed from arrays"),
        ("var c(i : 0..3) = [1, i](0); return c;", "one depends on `i`"),
    ],
)
def test_what_is_no_array_is_said(body, words):
    with pytest.raises(ProgramError, match="CS0320") as caught:
        value_of(f"int[] main(int[] a) {{ {body} }}", a=np.ones(3, "i4"))
    assert words in str(caught.value)


def test_a_literal_that_does_not_end_and_one_that_loses():
    with pytest.raises(ProgramError, match="expected `,` or `\\]` between elements, found `;`"):
        value_of("int[] main() => [1, 2;")
    with pytest.raises(ProgramError, match="2.5 is float, but int is needed"):
        value_of("int[] main() => [1, 2.5];")


def test_arrays_of_arrays_are_arrays_of_more_dimensions():
    a, table = np.arange(5, dtype="f4"), np.arange(24, dtype="f4").reshape(4, 6)
    text = "float[][] main(float[] a) { return [a, a * 2, a[::-1]]; }"
    assert np.array_equal(value_of(text, a=a), [a, a * 2, a[::-1]])
    assert value_of("float main(float[][] a) { return a[1][2] + sum(a[2]); }", a=table) == table[1, 2] + table[2].sum()
    text = "float[] main(float[] a) { var m = [a, a[::-1]]; var s(i) = sum(m(i, ) * m(0, )); return s; }"
    assert np.array_equal(value_of(text, a=a), [np.sum(a * a), np.sum(a * a[::-1])])
    error = error_of("float[][] main(float[] a) { return [a, a[1:]]; }", a=a)
    assert error.code == "CS0320" and "one type and domain, but these are float[] over 0..5 and 0..4" in str(error)
