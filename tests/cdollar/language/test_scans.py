"""Scans by associative functions, exclusive and by segments, and compaction: the prelude's, on every target."""

import numpy as np
import pytest

from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from tests.cdollar.evaluate import error_of, value_of

LINE = """
final class Line { float slope, offset; }
[Associative] Line then(Line p, Line q) => Line(q.slope * p.slope, q.slope * p.offset + q.offset);
"""


def everywhere(device, gl, text, **arrays):
    """The value of a program, which must be the same on every target."""
    targets = NumpyTarget, lambda dag: DeviceTarget(dag, device, "device"), lambda dag: GlslTarget(dag, gl)
    first, *others = (value_of(text, target, **arrays) for target in targets)
    for other in others:
        assert np.array_equal(first, other)
    return first


def test_running_maxima_and_lines_of_sight(device, gl, rng):
    a = rng.integers(0, 50, 37).astype("f4")
    assert (
        everywhere(device, gl, "float[] main(float[] a) => scan(max, a);", a=a).tolist()
        == np.maximum.accumulate(a).tolist()
    )
    text = """
    [Associative] float steeper(float a, float b) => max(a, b);
    bool[] main(float[] a) {
        var slope(i : 1..size(a)) = (a(i) - a(0)) / i;
        let before = exclusive_scan(steeper, -1000.0, slope);
        var visible(i) = slope(i) > before(i);
        return visible;
    }
    """
    slopes = (a[1:] - a[0]) / np.arange(1, len(a), dtype="f4")
    assert everywhere(device, gl, text, a=a).tolist() == [bool((slopes[:i] < s).all()) for i, s in enumerate(slopes)]


@pytest.mark.slow
def test_a_recurrence_of_records(device, gl, rng):
    """u(i) = u(i - 1) / 2 + a(i): lines are composed."""
    a = rng.integers(0, 8, 20).astype("f4")
    text = (
        LINE + "float[] main(float[] a) { var lines(i) = Line(0.5, a(i)); let s = scan(then, lines); return s.offset; }"
    )
    wanted, u = [], np.float32(0)
    for x in a:
        u = u / 2 + x
        wanted.append(u)
    assert np.allclose(everywhere(device, gl, text, a=a), wanted, rtol=1e-6)


def test_a_row_of_needleman_and_wunsch(device, gl, rng):
    """h(j) = max(b(j), h(j - 1) - gap), a scan of b(j) + gap * j by max; all rows against the quadratic algorithm."""
    s, t = (rng.integers(0, 4, n).astype("i4") for n in (9, 12))
    text = """
    int[] main(int[] s, int[] t) {
        int gap = 2;
        var start(j : 0..size(t) + 1) = -gap * j;
        int[] row = start;
        for (int i = 0; i < size(s); i++) {
            var best(j : row) = j == 0 ? -gap * (i + 1)
                : max(row(j) - gap, row(j - 1) + (s(i) == t(j - 1) ? 3 : -1)) + gap * j;
            let m = scan(max, best);
            var next(j : row) = m(j) - gap * j;
            row = next;
        }
        return row;
    }
    """
    table = np.zeros((len(s) + 1, len(t) + 1), int)
    table[0], table[:, 0] = -2 * np.arange(len(t) + 1), -2 * np.arange(len(s) + 1)
    for i in range(len(s)):
        for j in range(len(t)):
            match = table[i, j] + (3 if s[i] == t[j] else -1)
            table[i + 1, j + 1] = max(match, table[i, j + 1] - 2, table[i + 1, j] - 2)
    assert value_of(text, s=s, t=t).tolist() == table[-1].tolist()
    assert value_of(text, lambda dag: DeviceTarget(dag, device, "device"), s=s, t=t).tolist() == table[-1].tolist()


def test_parsing_by_a_scan_of_transitions(device, gl, rng):
    """Whether each character is in a quoted string, where a backslash hides the next one: an automaton of 3 states."""
    letters = rng.integers(0, 3, 40).astype("i4")  # 0 a letter, 1 a quote, 2 a backslash
    text = """
    final class Map { int a, b, c; }
    int at(Map m, int state) => state == 0 ? m.a : state == 1 ? m.b : m.c;
    [Associative] Map then(Map p, Map q) => Map(at(q, p.a), at(q, p.b), at(q, p.c));
    int[] main(int[] letters) {
        var step(i) = letters(i) == 1 ? Map(1, 0, 1) : letters(i) == 2 ? Map(0, 2, 1) : Map(0, 1, 1);
        let run = scan(then, step);
        return run.a;
    }
    """
    state, wanted = 0, []
    for letter in letters:
        state = {1: (1, 0, 1), 2: (0, 2, 1)}.get(int(letter), (0, 1, 1))[state]
        wanted.append(state)
    assert everywhere(device, gl, text, letters=letters).tolist() == wanted


def test_segments_start_anew(device, gl, rng):
    a, heads = rng.integers(0, 50, 33).astype("f4"), rng.random(33) < 0.2
    wanted = [max(a[k] for k in range(max((h for h in range(i + 1) if heads[h]), default=0), i + 1)) for i in range(33)]
    text = "float[] main(float[] a, bool[] heads) => segmented_scan(max, a, heads);"
    assert everywhere(device, gl, text, a=a, heads=heads).tolist() == wanted


@pytest.mark.parametrize("on_device", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_compaction_and_partition_keep_the_order(device, rng, on_device):
    a = np.concatenate([rng.integers(0, 9, 30).astype("f4"), [np.nan, -0.0, np.inf]]).astype("f4")
    target = (lambda dag: DeviceTarget(dag, device, "device")) if on_device else NumpyTarget
    kept = value_of("float[] main(float[] a) => compact(a, i => !(a(i) > 4));", target, a=a)
    assert kept.tobytes() == a[~(a > 4)].tobytes()
    ordered = value_of("float[] main(float[] a) => partition(a, a > 4);", target, a=a)
    assert ordered.tobytes() == np.concatenate([a[a > 4], a[~(a > 4)]]).tobytes()
    assert value_of("float[] main(float[] a) => compact(a, a > 100 && a < 101);", target, a=a).shape == (0,)
    text = "final class P { float x; int n; } P[] main(float[] a) { var p(i : 3..9) = P(a(i), i); return %s; }"
    text %= "compact(p, i => a(i) < 5)"
    assert value_of(text, a=a)["n"].tolist() == [i for i in range(3, 9) if a[i] < 5]


@pytest.mark.parametrize(
    "call", ["scan(apart, a)", "exclusive_scan(apart, 0.0, a)", "scan(a, 2)", "segmented_scan(pow, a, a > 1)"]
)
def test_other_functions_are_refused(call):
    error = error_of(f"float apart(float a, float b) => a - b; float[] main(float[] a) => {call};", a=np.ones(3, "f4"))
    assert error.code == "CS0319" and "[Associative]" in error.hint


@pytest.mark.slow
def test_random_scans_of_records_match_a_loop(device, gl, rng):
    text = LINE + "Line[] main(Line[] a) => scan(then, a);"
    for _ in range(40):
        a = np.zeros(int(rng.integers(1, 70)), [("slope", "f4"), ("offset", "f4")])
        a["slope"], a["offset"] = rng.choice([-1, 0, 1], len(a)), rng.integers(-5, 6, len(a))
        wanted = [tuple(a[0])]
        for slope, offset in a.tolist()[1:]:
            wanted.append((slope * wanted[-1][0], slope * wanted[-1][1] + offset))
        assert everywhere(device, gl, text, a=a).tolist() == wanted


SEGMENTS = "[Associative] float add(float x, float y) => x + y; bool large(float x) => x > 3;"


@pytest.mark.parametrize(
    "expression,wanted",
    [
        ("filter(a, x => x > 3)", lambda a: a[a > 3]),
        ("filter(a, large)", lambda a: a[a > 3]),
        ("segmented_reduce(add, a, a > 6)", lambda a: np.add.reduceat(a, starts(a))),
        ("segmented_reduce(max, a, i => a(i) > 6)", lambda a: np.maximum.reduceat(a, starts(a))),
    ],
)
def test_filter_and_reductions_of_segments(device, gl, rng, expression, wanted):
    a = rng.integers(0, 9, 37).astype("f4")
    found = everywhere(device, gl, f"{SEGMENTS} float[] main(float[] a) => {expression};", a=a)
    assert found.tolist() == wanted(a).tolist()


def starts(a):
    return np.flatnonzero((a > 6) | (np.arange(len(a)) == 0))


@pytest.mark.parametrize(
    "expression,code",
    [
        ("filter(a, a > 3)", "CS0411"),
        ("filter(a)", "CS0411"),
        ("segmented_reduce(mean, a, a > 6)", "CS0319"),
        ("segmented_reduce((x, y) => x + y, a, a > 6)", "CS0319"),
    ],
)
def test_wrong_filters_and_segments(expression, code):
    text = f"float mean(float x, float y) => 0.5 * (x + y); float[] main(float[] a) => {expression};"
    assert error_of(text, a=np.ones(3, "f4")).code == code


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("size", [17, 4097, pytest.param(70000, marks=pytest.mark.slow)])
def test_prefix_sums_of_glsl_have_the_bits_of_numpy(gl, rng, size, strict):
    strict = strict and gl.version >= 400  # without `precise`, a driver may contract
    text = "float[] main(float[] a) { var b(i : 3..size(a)) = a(i); let s = scan(b); return s; }"
    a = rng.standard_normal(size).astype("f4")
    found = value_of(text, lambda dag: GlslTarget(dag, gl, strict=strict), a=a)
    assert np.array_equal(found, value_of(text, a=a))


def test_scans_of_rows(device, gl):
    text = SEGMENTS + "float[,] main(float[,] m) { var r(i, j) = scan(add, m(i, ))(j); return r; }"
    m = np.arange(20, dtype="f4").reshape(4, 5) % 7
    assert everywhere(device, gl, text, m=m).tolist() == np.cumsum(m, 1).tolist()
    assert everywhere(device, gl, "float[,] main(float[,] m) => scan(m);", m=m).tolist() == np.cumsum(m, 1).tolist()


def test_rows_are_sorted(device, rng):
    m = rng.integers(0, 9, (5, 7)).astype("f4")
    text = "float[,] main(float[,] m) { var t(j, i) = m(i, j); let s = sort_rows(t); var c(i, j) = s(j, i); return c; }"
    for target in (NumpyTarget, lambda dag: DeviceTarget(dag, device, "device")):
        assert np.array_equal(value_of(text, target, m=m), np.sort(m, 0))
        assert np.array_equal(value_of("float[,] main(float[,] m) => sort_rows(m);", target, m=m), np.sort(m, 1))
    assert "sort_rows" in error_of("float[] main(float[,] m) { var r(j) = sort(m(, j))(0); return r; }", m=m).hint
