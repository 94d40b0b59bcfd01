"""Methods, classes derived from functional types, domains as values, unions of boxes."""

import re

import numpy as np
import pytest

from renderer.cdollar.checker.arrays import BlockArray
from renderer.cdollar.targets.device_target import DeviceTarget
from tests.cdollar.evaluate import error_of, value_of

ROW = np.arange(12, dtype="f4")
TABLE = np.arange(24, dtype="f4").reshape(4, 6)
CLASSES = """
final class Complex {
    float re, im;
    float norm2() => re * re + im * im;
    float norm() => sqrt(norm2());
    Complex scale(float s) => Complex(s * re, s * im);
    float repeated(int n) { float y = 0; for (int i = 0; i < n; i++) y += norm(); return y; }
    float hidden(float re) => re + im + this.re;
    T twice<T>(T x) => x + x;
    Complex operator +(Complex a, Complex b) => Complex(a.re + b.re, a.im + b.im);
}
final class Ramp : float(int) { float slope; float operator ()(int i) => slope * i; }
final class Table : float(float) {
    float[] values; float step;
    float operator ()(float x) => values.clamp((int) (x / step));
}
final class Window : float(int) { int low, high; float operator ()(i : low..high) => 1.0 * i; }
float total(Ramp r, int n) => sum(r(i), i : 0..n);
"""


def test_methods_use_fields_and_each_other():
    text = """float main() {
        var c = Complex(3, 4);
        return c.norm() + c.scale(2).norm() + c.repeated(3) + c.hidden(10) + (c + c).re + c.twice(5);
    }"""
    assert value_of(CLASSES + text) == 5 + 10 + 15 + 17 + 6 + 10


def test_methods_take_part_in_promotion():
    text = "float[] main(float[] a) { var c(i) = Complex(a(i), 1); return c.norm2() + c.scale(2).re; }"
    assert np.array_equal(value_of(CLASSES + text, a=ROW), ROW * ROW + 1 + 2 * ROW)


def test_classes_derived_from_functional_types_are_functions():
    text = "float[] main(float[] a) { var r = Ramp(2.5); return r + a + Table(a, 0.5)(1.2); }"
    assert np.array_equal(value_of(CLASSES + text, a=ROW), 2.5 * ROW + ROW + 2)
    text = "float main() => total(Ramp(2), 5) + sum(Window(2, 5));"
    assert value_of(CLASSES + text) == 20 + 9
    text = "float[] main(float[] a) => grad(loss)(a); float loss(float[] v) => sum(Table(v, 1)(2) * v(i), i : v);"
    assert np.array_equal(value_of(CLASSES + text, a=ROW), np.where(ROW == 2, ROW.sum(), 0) + ROW[2])


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("final class A { float x; } float main() => A(1).f();", "CS0206", "A has no member `f`"),
        (
            "final class A : float { float x; float operator ()(int i) => x; } float main() => 1;",
            "CS0115",
            "derived from",
        ),
        ("final class A : float(int) { float x; } float main() => 1;", "CS0115", "has an `operator ()`"),
        ("final class A : float(int) { float f() => 1; } float main() => 1;", "CS0115", "one `read`"),
        (
            CLASSES + "float main() => Ramp(1, 2)(1);",
            "CS0402",
            "Ramp has 1 fields (float slope), but 2 values are given",
        ),
        ("final class A { float x; float f() => y; } float main() => A(1).f();", "CS0202", "`y` is not declared"),
        ("final class A { float x; float f() => f(); } float main() => A(1).f();", "CS0604", "A.f calls itself"),
    ],
)
def test_classes_that_do_not_fit(text, code, words):
    error = error_of(text)
    assert error.code == code and words in str(error), str(error)


def test_domains_are_values():
    text = """
    domain both(domain d, float[] a) => d & domain(a);
    float[] ones(domain d) { var f(i : d) = 1.0 * i; return f; }
    float[] main(float[] a) { return ones(both(3..100, a)); }"""
    assert np.array_equal(value_of(text, a=ROW), np.arange(3, 12))
    text = "int main(float[,] a) { var d = domain(a); d = d & (0..2) * (0..3); return d.size + size(a); }"
    assert value_of(text, a=TABLE) == 6 + 24


def test_reductions_over_unions_count_each_point_once():
    rows, columns = np.indices(TABLE.shape)
    inside = (rows < 2) & (columns >= 1) & (columns < 4) | (rows >= 1) & (columns >= 2)
    text = """float main(float[,] a) {
        domain[,] d = (0..2) * (1..4) | (1..4) * (2..6);
        return sum(a(i, j), (i, j) : d) * 100 + d.size + max(-a(i, j), (i, j) : d);
    }"""
    assert value_of(text, a=TABLE) == TABLE[inside].sum() * 100 + inside.sum() - TABLE[inside].min()
    text = """float main(float[] a) {
        domain d = 0..2;
        for (int k = 1; k < 3; k++) d = d | (4 * k..4 * k + 2);
        return sum(a(i), i : d) + (+ (a(i), i : (0..3) | (1..4)));
    }"""
    assert value_of(text, a=ROW) == 0 + 1 + 4 + 5 + 8 + 9 + 6


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("var f(i : (0..3) | (5..9)) = a(i); return sum(f);", "CS0323", "a function's domain is one box"),
        ("return 1.0 * argmax(a(i), i : (0..3) | (5..9));", "CS0323", "by `argmax` has no unions"),
        ("domain d = 5; return sum(a(i), i : d);", "CS0401", "5 is int, but a domain is needed"),
        ("return sum(a(i), i : (0..3) | 5);", "CS0323", "`|` is not defined for a domain and int"),
        ("return sum(a(i), i : (0..3) | (0..4) * (0..3));", "CS0323", "a domain and a domain[,]"),
        ("domain d = (0..1) | (3..4); return d[0].low;", "CS0323", "no dimensions of its own"),
    ],
)
def test_domains_that_do_not_fit(body, code, words):
    error = error_of(f"float main(float[] a) {{ {body} }}", a=ROW)
    assert error.code == code and words in str(error), str(error)


SCALED = """
final class Scaled : float(int) {
    float k;
    float operator ()(int i : 0..100) => -1000;
    float[] read(int low, int high) => k * file("big.npy")[low:high];
}
"""


@pytest.mark.parametrize(
    "body,expected,regions",
    [
        ("=> sum(Scaled(2)(i), i : 3..7);", 2 * (3 + 4 + 5 + 6), [(3, 7)]),
        ("{ let s = Scaled(2); return s(5) + s(8); }", 26, [(5, 9)]),
        ("=> Scaled(1)(0) + 1;", 1, [(0, 1)]),
        ("=> 7;", 7, []),
    ],
)
def test_a_class_reads_blocks_when_an_evaluation_reaches_them(device, tmp_path, monkeypatch, body, expected, regions):
    """The paper's function that is bound to a file: only the part that is needed is read, in one go."""
    np.save(tmp_path / "big.npy", np.arange(100, dtype="f4"))
    read, given = BlockArray.read, []

    def noted(self, box):
        block = self._replace(read_block=lambda low, high: given.append((low, high)) or self.read_block(low, high))
        return read(block, box)

    monkeypatch.setattr(BlockArray, "read", noted)
    text = f"{SCALED}float main() {body}"
    assert value_of(text, lambda dag: DeviceTarget(dag, device, "device"), folder=tmp_path) == expected
    assert given == regions
    assert value_of(text, folder=tmp_path) == expected


def test_wrong_block_reads():
    for old, new, message in (
        ("[low:high]", "[low:high + 1]", r"Scaled.read\(0, 1\) has 2 elements"),
        ("(int i : 0..100)", "(int i)", "needs one finite dimension"),
        ("read(int low, int high)", "norm(int low, int high)", "one `read`"),
        ("read(int low, int high)", "read(int low)", "one `read`"),
    ):
        text = SCALED.replace('file("big.npy")', "a").replace("float k;", "float k; float[] a;").replace(old, new)
        error = error_of(text + "float main(float[] a) => Scaled(1, a)(0);", a=np.ones(9, "f4"))
        assert error.code == "CS0115" and re.search(message, str(error))


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("class P { float x; } class P { int y; }", "CS0109", "the type P is declared twice"),
        ("class P { }", "CS0210", "the class P has no fields"),
        ("class float2 { float x; int y; }", "CS0211", "float2 is built in, with other fields"),
    ],
)
def test_a_class_that_cannot_be_declared(text, code, words):
    """The error is at the name of the class, which the excerpt shows."""
    error = error_of(text + " float main() => 1;")
    assert error.code == code and words in str(error)
    assert error.span.excerpt == text.rsplit("class ", 1)[1].split()[0]
