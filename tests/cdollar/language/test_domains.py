"""Domains that are no boxes, domain values, and bound variables that a statement declares: the paper's words."""

import itertools

import numpy as np
import pytest

from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from tests.cdollar.evaluate import error_of, value_of

REDUCERS = {
    "sum": (np.sum, 0), "prod": (np.prod, 1), "min": (np.min, np.inf), "max": (np.max, -np.inf),
    "argmin": (np.argmin, None), "argmax": (np.argmax, None), "any": (np.any, False), "all": (np.all, True),
}  # fmt: skip


def targets(device, gl):
    return [NumpyTarget, lambda dag: DeviceTarget(dag, device, "device"), lambda dag: GlslTarget(dag, gl)]


def random_case(rng):
    """A program that reduces the rows of a over an affine range or a predicate, its array, and its value by NumPy."""
    name = str(rng.choice(list(REDUCERS)))
    function, neutral = REDUCERS[name]
    rows, columns = map(int, rng.integers(3, 8, 2))
    low, high = (int(n) for n in rng.integers(-1, 3, 2))
    slope = int(rng.integers(0, 2))
    a = rng.integers(1, 4, (rows, columns)).astype("f4")
    ends = f"(i < {low} ? 0 : i * {slope})", f"(i + {high} > {columns} ? {columns} : i + {high})"
    kind = int(rng.integers(3))
    domain = (f"{ends[0]}..{ends[1]}", f"j => j % 3 == {low} || j == i", f"j => j * {1 + slope} > i + {low}")[kind]
    if kind == 0 and rng.integers(2):
        ends = "0", f"{columns} - i < 0 ? 0 : {columns} - i"
        domain, kind = f"{ends[0]}..({ends[1]})", 3
    element = "a(i, j) > 2" if name in ("any", "all") else "a(i, j)"
    values = a > 2 if name in ("any", "all") else a

    def belongs(i, j):
        if kind == 0:
            return (0 if i < low else i * slope) <= j < min(columns, i + high)
        if kind == 1:
            return j % 3 == low or j == i
        return j * (1 + slope) > i + low if kind == 2 else j < columns - i

    wanted, empty = [], False
    for i in range(rows):
        chosen = [j for j in range(columns) if belongs(i, j)]
        row = values[i, chosen]
        empty |= not chosen
        result = neutral if not chosen else function(row)
        wanted.append(chosen[result] if neutral is None and chosen else result)
    if name.startswith("arg") and empty:
        return random_case(rng)  # no index of an empty domain is stated
    type_ = {"any": "bool", "all": "bool", "argmin": "int", "argmax": "int"}.get(name, "float")
    text = f"{type_}[] main(float[,] a) {{ var r(i : domain(a)[0]) = {name}({element}, j : {domain}); return r; }}"
    return text, a, wanted


@pytest.mark.parametrize("count", [2, pytest.param(150, marks=pytest.mark.slow)])
def test_reductions_over_affine_ranges_and_predicates(device, gl, rng, count):
    for _ in range(count):
        text, a, wanted = random_case(rng)
        for target in targets(device, gl):
            assert value_of(text, target, a=a).tolist() == pytest.approx(wanted), text


def test_a_triangle_is_zero_elsewhere_in_its_box(device, gl, rng):
    a = rng.standard_normal((5, 5)).astype("f4")
    text = "float[,] main(float[,] a) { var t(i : 0..5, j : i..5) = a(i, j); return t; }"
    for target in targets(device, gl):
        assert value_of(text, target, a=a).tolist() == np.triu(a).tolist()


@pytest.mark.parametrize("body", ["sum(a(k), k : p(i)..p(i + 1))", "+ (a(k) * a(q(k)))", "max(a(k), k : 0..p(i + 1))"])
def test_a_range_of_data_that_leaves_a_function_is_an_error(device, gl, body):
    a, q = np.arange(1, 41, dtype="f4"), np.arange(40, dtype="i4")
    statement = "i : 0..3; k : p(i)..p(i + 1);" if body.startswith("+") else ""
    text = f"float[] main(float[] a, int[] p, int[] q) {{ {statement} var s(i : 0..3) = {body}; return s; }}"
    allowed = r"`k`.*, but a\(k\) at 1:\d+ is read where 0\.\.40 is allowed"
    for target in targets(device, gl):
        for ends in ([0, 9, 12, 40], [3, 3, 9, 8]):  # the last range of these is reversed: it reads nothing
            parts = [a[0 if body.startswith("max") else low : max(high, 0)] for low, high in itertools.pairwise(ends)]
            reduced = {"s": np.sum, "+": lambda part: np.sum(part * part), "m": np.max}[body[0]]
            found = value_of(text, target, a=a, p=np.array(ends, "i4"), q=q)
            assert found.tolist() == [reduced(part) for part in parts]
        for ends in ([0, 9, 12, 41], [0, 90, 91, 91], [-1, 9, 12, 40])[: 2 if body.startswith("max") else 3]:
            with pytest.raises(ProgramError, match=allowed) as error:
                value_of(text, target, a=a, p=np.array(ends, "i4"), q=q)
            assert error.value.code == "CS0326"


MODES = {
    "clamp": lambda i, n: min(max(i, 0), n - 1), "wrap": lambda i, n: i % n, "zero": lambda i, n: n,
    "mirror": lambda i, n: min(i % (2 * n), 2 * n - 1 - i % (2 * n)),
}  # fmt: skip


@pytest.mark.parametrize(
    "ends", [[-3, 5, 38, 45], [50, 90, 7, 300], pytest.param([-500, -90, 9, 4], marks=pytest.mark.slow)]
)
def test_borders_define_all_that_a_range_of_data_reads(device, gl, ends):
    a = np.append(np.arange(1, 41, dtype="f4"), 0)  # the last one is what `zero` reads outside
    reads = [f"j == {k} ? sum(a.{mode}(k), k : p(i)..p(i + 1)) :" for k, mode in enumerate(MODES)]
    text = f"float[,] main(float[] a, int[] p) {{ var s(i : 0..3, j : 0..4) = {' '.join(reads)} 0; return s; }}"
    wanted = [
        [a[[k if 0 <= k < 40 else at(k, 40) for k in range(low, high)]].sum() for at in MODES.values()]
        for low, high in itertools.pairwise(ends)
    ]
    for target in targets(device, gl):
        assert value_of(text, target, a=a[:40], p=np.array(ends, "i4")).tolist() == wanted


def test_conditions_guard_reads_of_a_range_of_data(device, gl):
    a, b = np.arange(1, 41, dtype="f4"), np.arange(100, 140, dtype="f4")
    text = "sum(k > 0 ? a(k - 1) : b(k), k : p(i)..p(i + 1))"
    text = f"float[] main(float[] a, float[] b, int[] p) {{ var s(i : 0..3) = {text}; return s; }}"
    for target in targets(device, gl):
        found = value_of(text, target, a=a, b=b, p=np.array([0, 9, 12, 41], "i4"))
        assert found.tolist() == [b[0] + a[:8].sum(), a[8:11].sum(), a[11:].sum()]
        for ends in ([0, 9, 12, 42], [-1, 9, 12, 40]):
            with pytest.raises(ProgramError, match="CS0317"):
                value_of(text, target, a=a, b=b, p=np.array(ends, "i4"))


def test_borders_of_a_range_of_data_have_a_gradient(rng):
    loss = "float loss(float[] g, int[] r) => sum(sum(g.clamp(k) * k, k : i - r(i)..i + r(i) + 1), i : r);"
    g, r = rng.standard_normal(6).astype("f4"), np.array([1, 0, 3, 2, 9, 1], "i4")
    wanted = np.zeros(6)
    for i in range(6):
        for k in range(i - r[i], i + r[i] + 1):
            wanted[min(max(k, 0), 5)] += k
    found = value_of(loss + " float[] main(float[] g, int[] r) => grad(loss)(g, r);", g=g, r=r)
    assert np.allclose(found, wanted)


@pytest.mark.parametrize("rows", [400, pytest.param(100_000, marks=pytest.mark.slow)])
def test_rows_of_a_sparse_matrix_take_the_time_of_their_elements(device, rng, rows):
    p = np.concatenate([[0], np.cumsum(rng.integers(0, 20, rows))]).astype("i4")
    a, x = (rng.integers(-4, 5, n).astype("f4") for n in (p[-1], rows))
    column = rng.integers(0, rows, p[-1]).astype("i4")
    main = "float[] main(float[] a, float[] x, int[] c, int[] p)"
    text = f"{main} {{ var y(i : 0..size(p) - 1) = sum(a(k) * x(c(k)), k : p(i)..p(i + 1)); return y; }}"
    wanted = np.zeros(rows)
    np.add.at(wanted, np.repeat(np.arange(rows), np.diff(p)), a * x[column])
    for target in (NumpyTarget, lambda dag: DeviceTarget(dag, device, "device")):
        assert np.array_equal(value_of(text, target, a=a, x=x, c=column, p=p), wanted)
        late = p.copy()
        late[-1] += 1
        with pytest.raises(ProgramError, match="CS0326"):
            value_of(text, target, a=a, x=x, c=column, p=late)


@pytest.mark.parametrize("rows", [20, 100])
def test_an_end_outside_of_its_array_is_an_error_of_an_empty_range(device, rows):
    """A device has another kernel for few rows than for many."""
    main = f"float[] main(float[] a, int[] p, int[] r) {{ var s(i : 0..{rows - 1}) = sum(a(k), k : p(r(i))..3);"
    a, p, r = np.ones(90, "f4"), np.full(rows - 1, 3, "i4"), np.arange(1, rows).astype("i4")
    for target in (NumpyTarget, lambda dag: DeviceTarget(dag, device, "device")):
        assert value_of(main + " return s; }", target, a=a, p=p, r=r - 1).tolist() == [0] * (rows - 1)
        with pytest.raises(ProgramError, match="CS0317"):
            value_of(main + " return s; }", target, a=a, p=p, r=r)


def test_only_ranges_that_a_result_depends_on_are_checked(rng):
    a, p = rng.standard_normal(40).astype("f4"), np.array([0, 90, 12, 3], "i4")
    for body, wanted in (
        ("i == 2 ? sum(a(k), k : p(i + 1)..p(i)) : 0", [0, 0, a[3:12].sum()]),
        ("sum(a(k), k : (90 + 0 * p(i))..-5)", [0, 0, 0]),
        ("sum(a.clamp(k), k : 0..40 + 0 * p(i))", [a.sum()] * 3),
        ("sum(a(k), k : max(p(i) - 9, 0)..min(p(i), size(a)))", [0, 0, a[3:12].sum()]),  # cut, as the hint says
    ):
        text = f"float[] main(float[] a, int[] p) {{ var s(i : 0..3) = {body}; return s; }}"
        assert value_of(text, a=a, p=p).tolist() == pytest.approx(wanted, rel=1e-5)
    for ends in ("0..90", "-5..3"):
        text = f"float[] main(float[] a, int[] p) {{ var s(i : 0..3) = sum(a(k), k : {ends} + 0 * p(i)); return s; }}"
        error = error_of(text, a=a, p=p)
        assert (error.code, error.span.excerpt) == ("CS0326", f"{ends} + 0 * p(i)")
        assert f"`k` runs over {ends}, but a(k) at 1:58 is read where 0..40 is allowed" in str(error)


def test_ranges_of_several_variables_and_their_gradient(rng):
    a = rng.standard_normal((4, 6)).astype("f4")
    wanted = sum(a[i, j] for i, j in itertools.product(range(4), range(6)) if j <= i)
    for text in ("sum(a(i, j), i : 0..4, j : 0..i + 1)", "+ (+ (a(i, j), j : 0..i + 1), i : 0..4)"):
        assert value_of(f"float main(float[,] a) => {text};", a=a) == pytest.approx(wanted, rel=1e-5)
    loss = "float loss(float[] g) { var t(i : g) = sum(g(j) * g(j), j : 0..i + 1); return sum(t); }"
    g = rng.standard_normal(5).astype("f4")
    found = value_of(loss + " float[] main(float[] g) => grad(loss)(g);", g=g)
    assert np.allclose(found, 2 * g * np.arange(5, 0, -1))


ROWS = np.arange(25, dtype="f4").reshape(5, 5) % 7


@pytest.mark.parametrize(
    "body,inside",
    [
        ("i : 0..5; j : 0..i; return sum(m(i, j));", lambda i, j: j < i),
        ("int i : 0..5; int j : i..5; return + (m(i, j));", lambda i, j: j >= i),
        ("i : 0..5; j : 0..i + 1; var r(i) = sum(m(i, j)); return sum(r);", lambda i, j: j <= i),
        ("i : 0..5; j : 0..i + 1; var r(i, j) = m(i, j); return sum(r);", lambda i, j: j <= i),
        ("return sum(m(i, j), (i, j) : near);", lambda i, j: i + j < 4),
    ],
)
def test_statements_and_named_predicates_restrict(device, gl, body, inside):
    text = f"bool near(int i, int j) => i + j < 4; float main(float[,] m) {{ {body} }}"
    wanted = sum(ROWS[i, j] for i, j in itertools.product(range(5), range(5)) if inside(i, j))
    for target in targets(device, gl):
        assert value_of(text, target, m=ROWS) == wanted


@pytest.mark.parametrize(
    "body,code",
    [
        ("i : 0..5; j : 0..i; return sum(m(0, j));", "CS0202"),
        ("i : 0..5; j : 0..i; var r(j, i) = m(i, j); return sum(r);", "CS0202"),
        ("return sum(m(i, 0), i : weight);", "CS0314"),
        ("return sum(m(i, j), i : 0..5, (j, k) : weight);", "CS0314"),
    ],
)
def test_restrictions_without_meaning(body, code):
    text = f"float weight(int i) => 0.5 * i; float main(float[,] m) {{ {body} }}"
    assert error_of(text, m=ROWS).code == code


def test_a_reduction_over_a_growing_range_is_a_scan(device, rng):
    text = "float[] main(float[] a) { var s(i : a) = sum(a(j), j : 0..i + 1); return s; }"
    a = rng.integers(0, 9, 5000).astype("f4")
    made = []

    def target(dag):
        made.append(DeviceTarget(dag, device, "device"))
        made[-1].trace = []
        return made[-1]

    assert value_of(text, target, a=a).tolist() == np.cumsum(a).tolist()
    assert "primitive" in [kind for kind, _, _ in made[-1].trace]


def test_reductions_by_functions_have_boxes_only():
    text = "float f(float s, float x) => s + x; float main(float[] a) { var s(i : a) = %s; return sum(s); }"
    for call in ("fold(f, 0.0, a(j), j : 0..i)", "f(a(j), j : 0..i)"):
        assert error_of(text % call, a=np.ones(3, "f4")).code == "CS0315"
    assert error_of("float main(float[] a) { domain d = 0..sum(a); return 1; }", a=np.ones(3, "f4")).code == "CS0314"


def test_each_component_of_a_start_value_is_checked(device, gl):
    text = """final class S { float a, b; }
    S step(S s, float x) => S(s.a + x, s.b + 2 * x);
    float[] main(float[] a, int[] k) {
        var s(i) = fold(step, S(a(k(i)), a(k(i) + 1)), a(j) * i, j : a);
        var r(i) = s(i).a + s(i).b;
        return r;
    }"""
    a, k = np.arange(4, dtype="f4"), np.array([2, 0], "i4")
    for target in targets(device, gl):
        assert np.array_equal(value_of(text, target, a=a, k=k), a[k] + a[k + 1] + 3 * a.sum() * np.arange(2))
        with pytest.raises(ProgramError, match="CS0317"):
            value_of(text, target, a=a, k=k + 1)


@pytest.mark.parametrize(
    "expression,expected",
    [
        ("low(d)", 0), ("high(d)", 9), ("size(d)", 7), ("size(d & (7..20))", 2), ("empty(d & (3..5)) ? 1 : 0", 1),
        ("empty(d) ? 1 : 0", 0), ("(d & (3..5)).empty ? 1 : 0", 1),
        ("size(e, 1)", 4), ("low(e, 0)", 2), ("size(domain(a))", 3), ("empty(a) ? 1 : 0", 0),
    ],
)  # fmt: skip
def test_ends_size_and_emptiness_of_domains(expression, expected):
    text = f"int main(float[] a) {{ domain d = (0..3) | (5..9); domain[,] e = (2..5) * (0..4); return {expression}; }}"
    assert value_of(text, a=np.ones(3, "f4")) == expected


@pytest.mark.parametrize(
    ("expression", "code", "words"),
    [
        ("size()", "CS0205", "size(f) needs a function"),
        ("low()", "CS0205", "domain(f) needs a function"),
        ("low(, 0)", "CS0205", "domain(f) needs a function"),
        ("size(3)", "CS0408", "3 is int, not a function"),
        ("high(true)", "CS0408", "true is bool, not a function"),
        ("low(e)", "CS0316", "low(f) of 2 dimensions needs one of them"),
        ("high(e)", "CS0316", "high(f) of 2 dimensions needs one of them"),
        ("size(e, 2)", "CS0316", "dimension 2 is not one of 0..2"),
        ("low(e, -1)", "CS0316", "dimension -1 is not one of 0..2"),
        ("high(d, 0)", "CS0323", "a union of boxes has no dimensions"),
        ("size((0..65536) * (0..32768))", "CS0316", "the size 2147483648 does not fit into int"),
    ],
)
def test_questions_about_domains_that_have_no_answer(expression, code, words):
    text = f"int main(float[] a) {{ domain d = (0..3) | (5..9); domain[,] e = (2..5) * (0..4); return {expression}; }}"
    error = error_of(text, a=np.ones(3, "f4"))
    assert error.code == code and words in str(error)


def test_a_statement_declares_a_bound_variable(rng):
    """The paper's listing 3 with `int l;`."""
    a, b = rng.integers(0, 5, (2, 3)).astype("f4"), rng.integers(0, 5, (3, 4)).astype("f4")
    matrix = (
        "type matrix = float(int, int);\nmatrix main(matrix a, matrix b) { %s var c(j, k) = + (a(j, l) * b(l, k)%s);"
    )
    for declared, restricted in (("int l;", ""), ("int l;", ", int l"), ("int l; int j; int k;", "")):
        text = matrix % (declared, restricted) + " return c; }"
        assert value_of(text, a=a, b=b).tolist() == (a @ b).tolist()
    assert value_of("float main(float[] a) { int l; l = 1; return a(l); }", a=a[0]) == a[0, 1]
    for type_ in ("int", "float"):
        assert error_of(f"float main(float[] a) {{ {type_} l; return l + sum(a); }}", a=a[0]).code == "CS0204"


def test_listing_1_at_the_top_of_a_program():
    text = """
float sin(float x) { return x * x; }
float[] g = [1.0, 2.0], l = [3.0, 4.0];
float(float) m = sin;
var h = g + sin;
var t = l * g;
var w = m + sin;
float[] main() => t + h(, 2) + w(3);
"""
    assert value_of(text).tolist() == [3 + 1 + 4 + 18, 8 + 2 + 4 + 18]


def test_mutable_classes():
    text = """
{} class Account {{ float sum; int count; }}
Account add(Account a, float x) {{ Account b = a; b.sum += x; b.count++; return b; }}
Account main() {{
    Account a = Account(1, 0), b = a;
    a.sum = 3;
    a = add(a, 2);
    return Account(a.sum, a.count + b.count);
}}
"""
    assert value_of(text.format("mutable final")).tolist() == value_of(text.format("mutable")).tolist() == (5, 1)
    assert error_of(text.format("final")).code == "CS0113"
