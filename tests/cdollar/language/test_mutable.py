"""Parts of mutable variables: elements, slices, fields; on the host and in device functions."""

import numpy as np
import pytest

from tests.cdollar.evaluate import error_of, value_of

ROW = np.arange(8, dtype="f4")
TABLE = np.arange(24, dtype="f4").reshape(4, 6)


def test_elements_and_slices_of_a_row_as_in_numpy():
    expected = ROW.copy()
    expected[2] = 9
    expected[4:6] = -1
    expected[::3] += 100
    expected[1:4] = ROW[4:7]
    expected[6:] = ROW[::-1][:2]
    body = "b[2] = 9; b[4:6] = -1; b[::3] += 100; b[1:4] = a[4:7]; b[6:] = a[::-1][:2]; return b;"
    for type_ in ("var", "float[]"):
        assert np.array_equal(value_of(f"float[] main(float[] a) {{ mutable {type_} b = a; {body} }}", a=ROW), expected)


def test_elements_of_a_table_by_bound_variables():
    expected = TABLE.copy()
    expected[:, 0] = 10 * np.arange(4)
    np.fill_diagonal(expected, -5)
    expected[2] = TABLE[0]
    expected[1, 3:] = 7
    text = """float[,] main(float[,] a) {
        mutable var b = a;
        b(i, 0) = i * 10; b[i, i] = -5; b[2, :] = a[0, :]; b[1, 3:] = 7;
        return b;
    }"""
    assert np.array_equal(value_of(text, a=TABLE), expected)


def test_fields_of_vectors_and_records():
    text = """final class Lens { float3 p; float w; }
    float main(float x) {
        mutable var l = Lens(float3(1, 2, 3), 4);
        l.p.x = x; l.w *= 2; l.p.z++;
        return l.p.x * l.w + l.p.z;
    }"""
    assert value_of(text, numbers={"x": "5"}) == 44
    text = """float3 walk(float x) {
        mutable float3 p = float3(0, 0, 0);
        for (int i = 0; i < 4; i++) { p.x += x; p.y = p.x * 2; }
        return p;
    }
    float3[] main(float[] a) { mutable var r(i) = walk(a(i)); r[3].z = 1; return r; }"""
    expected = np.stack([4 * ROW, 8 * ROW, np.arange(8) == 3], -1)
    assert np.array_equal(value_of(text, a=ROW), expected)


def test_a_loop_may_count_by_elements():
    text = """int[] main(int[] k) {
        mutable var h(int i : 0..4) = 0;
        for (int i = 0; i < size(k); i++) h[k(i)] += 1;
        return h;
    }"""
    assert np.array_equal(value_of(text, k=np.array([1, 1, 3, 0, 1], "i4")), [1, 3, 0, 1])


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("var b = a; b[2] = 9; return b;", "CS0113", "or declare it `mutable`"),
        ("mutable var b = a; b[20] = 9; return b;", "CS0303", "the index 20 is outside of 0..8"),
        ("mutable var b = a; b[1:20] = 9; return b;", "CS0322", "the slice 1:20 reads 1..20"),
        ("mutable var b = a; b[2.5] = 9; return b;", "CS0324", "an index is int, but 2.5 is float"),
        ("mutable var b = a; b[1, 2] = 9; return b;", "CS0324", "b has 1 indices, 2 are given"),
        ("mutable var b = a; b[1:3] = a; return b;", "CS0324", "a has 8 elements, but 2 are assigned"),
        ("mutable var b = a; b[2] = a; return b;", "CS0324", "a is float[], but one value is assigned"),
        ("mutable var b = sin; b[2] = 1; return a;", "CS0324", "whose elements cannot be assigned"),
        ("mutable float3 p = float3(1, 2, 3); p.q = 3; return a;", "CS0206", "no field `q` that can be assigned"),
        ("mutable var b = a; b[2] = 1.5d; return b;", "CS0401", "1.5d is double, but float is needed"),
    ],
)
def test_parts_that_cannot_be_assigned(body, code, words):
    error = error_of(f"float[] main(float[] a) {{ {body} }}", a=ROW)
    assert error.code == code and words in str(error), str(error)
