"""scan, sort, argsort, histogram, scatter_add: NumPy is the witness; O(n^2) texts that become them mean the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import renderer
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile
from renderer.cdollar.ir.passes import run_passes, simplify
from renderer.cdollar.ir.primitives import recognize
from renderer.cdollar.ir.types import DTYPES, FLOATS
from renderer.cdollar.runtime.evaluate import build_main, load_text
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.errors import UnavailableError
from tests.cdollar.evaluate import value_of
from tests.cdollar.test_schedules import AsGpu

QUICK = settings(max_examples=12, deadline=None)


def targets(device):
    return {
        "numpy": NumpyTarget,
        "device": lambda dag: DeviceTarget(dag, device, "device"),
        "gpu plans": lambda dag: DeviceTarget(dag, AsGpu(device), "device"),
    }


def strict_targets(device):
    return {
        "numpy": lambda dag: NumpyTarget(dag, strict=True),
        "device": lambda dag: DeviceTarget(dag, device, "device", strict=True),
        "gpu plans": lambda dag: DeviceTarget(dag, AsGpu(device), "device", strict=True),
    }


def values_on(device, text, make=targets, **arrays):
    return {name: value_of(text, target, **arrays) for name, target in make(device).items()}


LENGTHS = [0, 1, 15, 16, 17, 255, 4096, 4097, 70_001]


def test_a_device_sorts_and_adds_by_key(device, rng):
    a, k = rng.standard_normal(5000).astype("f4"), rng.integers(0, 9, 5000).astype("i4")
    text = "float[] main(float[] a, int[] k) { var o = argsort(a); var b(i) = a(o(i)); return %s; }"
    for make in (NumpyTarget, targets(device)["device"]):
        assert np.array_equal(value_of(text % "b", make, a=a, k=k), np.sort(a))
        sums = value_of(text % "scatter_add(k, b, 9)", make, a=a, k=k)
        assert np.allclose(sums, np.bincount(k, np.sort(a).astype("f8"), 9), rtol=1e-4, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("count", LENGTHS)
def test_scans_are_prefix_sums_with_the_same_bits_everywhere(device, rng, count):
    a, k = rng.standard_normal(count).astype("f4"), rng.integers(-(2**31), 2**31, count).astype("i4")
    floats = values_on(device, "float[] main(float[] a) { return scan(a); }", a=a)
    for name, value in floats.items():
        assert np.allclose(value, np.cumsum(a, dtype="f8"), rtol=1e-5, atol=1e-3), name
        assert np.array_equal(value, floats["numpy"]), name
    for name, value in values_on(device, "int[] main(int[] k) { return scan(k); }", k=k).items():
        assert np.array_equal(value, np.cumsum(k, dtype="i4")), name


def test_scans_go_along_the_last_dimension(device, rng):
    a = rng.integers(-9, 9, (3, 2, 5000)).astype("i4")
    text = "int[,,] main(int[,,] a) { var b(i, j, k) = 2 * a(i, j, k); return scan(b); }"
    for name, value in values_on(device, text, a=a).items():
        assert np.array_equal(value, np.cumsum(2 * a, axis=-1)), name


@pytest.mark.slow
@pytest.mark.parametrize("count", LENGTHS)
def test_sorting_is_stable_and_nan_comes_last(device, rng, count):
    a = rng.integers(-20, 20, count).astype("f4") / 4
    a[rng.random(count) < 0.1] = np.nan
    a[rng.random(count) < 0.05] = np.inf
    a[rng.random(count) < 0.05] = -np.inf
    a[rng.random(count) < 0.05] = -0.0
    k = rng.integers(-(2**31), 2**31, count).astype("i4")
    for name, value in values_on(device, "float[] main(float[] a) { return sort(a); }", a=a).items():
        assert np.array_equal(value, np.sort(a), equal_nan=True), name
    for name, value in values_on(device, "int[] main(int[] k) { return sort(k); }", k=k).items():
        assert np.array_equal(value, np.sort(k)), name
    for name, value in values_on(device, "int[] main(float[] a) { return argsort(a); }", a=a).items():
        assert np.array_equal(value, np.argsort(a, kind="stable")), name
    text = "uint[] main(int[] k) { var u(i) = (uint) (k(i) / 7); return sort(u); }"
    for name, value in values_on(device, text, k=np.abs(k // 2)).items():
        assert np.array_equal(value, np.sort(np.abs(k // 2) // 7).astype("u4")), name


@pytest.mark.slow
@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("bins", [50, 6000])
def test_sums_by_key(device, rng, count, bins):
    k, a = rng.integers(-5, bins + 5, count).astype("i4"), rng.standard_normal(count).astype("f4")
    kept, weights = k[(k >= 0) & (k < bins)], rng.integers(-99, 99, count).astype("i4")
    for name, value in values_on(device, f"int[] main(int[] k) {{ return histogram(k, {bins}); }}", k=k).items():
        assert np.array_equal(value, np.bincount(kept, minlength=bins)), name
    expected = np.zeros(bins, "f4")
    for key, number in zip(kept, a[(k >= 0) & (k < bins)], strict=True):
        expected[key] += number  # in the order of the elements
    text = f"float[] main(int[] k, float[] a) {{ return scatter_add(k, a, {bins}); }}"
    for name, value in values_on(device, text, strict_targets, k=k, a=a).items():
        assert np.array_equal(value, expected), name
    for name, value in values_on(device, text, k=k, a=a).items():
        assert np.allclose(value, expected, rtol=1e-4, atol=1e-4 * max(1, count / bins) ** 0.5), name
    text = text.replace("float", "int")
    for name, value in values_on(device, text, k=k, a=weights).items():
        assert np.array_equal(value, np.bincount(kept, weights[(k >= 0) & (k < bins)], bins).astype("i4")), name


ATOMIC = [  # local memory holds the results of 4,096 keys
    ("int", "scatter_add(k, a, 50)", 50),
    ("int", "scatter_max(k, a, 4097)", 4097),
    ("int", "scatter_min(k, a, 50)", 50),
    ("int", "histogram(k, 4097)", 4097),
]


@pytest.mark.parametrize(("scalar", "call", "bins"), ATOMIC)
def test_groups_combine_integers_of_equal_keys_by_atomic_operations(device, rng, scalar, call, bins):
    """Three groups, the last one with a part of its elements; keys below, above and without values; sums that wrap."""
    k = rng.integers(-9, bins + 9, 2500).astype("i4")
    k[k == 7], k[:300] = 8, bins - 1
    a = rng.integers(-(2**31), 2**31, k.size).astype("i4")
    kept = (k >= 0) & (k < bins)
    name = call.split("(")[0].removeprefix("scatter_")
    start = {"max": -(2**31), "min": 2**31 - 1}.get(name, 0)
    expected = np.full(bins, start, "i8")
    function = {"max": np.maximum, "min": np.minimum}.get(name, np.add)
    function.at(expected, k[kept], 1 if name == "histogram" else a[kept].astype("i8"))
    inputs = "int[] k" if name == "histogram" else "int[] k, int[] a"
    arrays = {"k": k} | ({} if name == "histogram" else {"a": a})
    made = []

    def target(dag):
        made.append(DeviceTarget(dag, AsGpu(device), "device"))
        made[-1].trace = []
        return made[-1]

    found = value_of(f"{scalar}[] main({inputs}) {{ return {call}; }}", target, **arrays)
    assert np.array_equal(found, expected.astype("i4")) and expected[7] == start


def by_key(function, keys, values, bins, start):
    """The function of the values of each key, one after the other; NaN is passed over."""
    results = np.full(bins, start)
    for key, value in zip(keys, values, strict=True):
        if 0 <= key < bins and value == value:
            results[key] = function(results[key], value)
    return results + results.dtype.type(0)


EXTREMES = {
    "float": (-np.inf, np.inf),
    "double": (-np.inf, np.inf),
    "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1),
}


OTHERS = [(s, name) for s in ("float", "int", "uint", "double") for name in ("mul", "max", "min")]
OTHERS = [pytest.param(*kind, "gpu plans", marks=pytest.mark.slow) for kind in OTHERS]


@pytest.mark.parametrize("scalar, name, plans", [("float", "max", "device"), *OTHERS])
def test_products_and_extremes_by_key_have_the_same_bits_everywhere(device, gl, rng, scalar, name, plans):
    count, bins, dtype = 5000, 300, DTYPES[scalar]
    k = rng.integers(-5, bins + 5, count).astype("i4")
    k[k == 7] = 8  # a key without values
    values = rng.standard_normal(count) if scalar in FLOATS else rng.integers(0, 2**32, count).astype("u4").view("i4")
    values = values.astype(dtype)
    if scalar in FLOATS:
        values[::6], values[k == 9], values[k == 10] = -0.0, np.nan, -0.0
    if name == "mul":
        values = np.full(count, 1.01, dtype) if scalar in FLOATS else np.where(values == 0, dtype(1), values)
    start = dtype(1 if name == "mul" else EXTREMES[scalar][name == "min"])
    with np.errstate(over="ignore"):
        expected = by_key({"mul": lambda x, y: x * y, "max": max, "min": min}[name], k, values, bins, start)
    makers = {n: make for n, make in strict_targets(device).items() if n in ("numpy", plans)}
    if name != "mul":
        makers["any order"] = targets(device)[plans]
    if scalar != "double":
        makers["glsl"] = lambda dag: GlslTarget(dag, gl)
    for target, make in makers.items():
        result = value_of(
            f"{scalar}[] main(int[] k, {scalar}[] w) => scatter_{name}(k, w, {bins});", make, k=k, w=values
        )
        assert result.tobytes() == expected.tobytes(), target


@pytest.mark.parametrize("keys", [[0, 2, -1, 2, 7, 3], [3] * 6])
@pytest.mark.parametrize("text", [
    "max(k(j) == v ? w(j) : 0.5)", "min(k(j) != v ? 1.0 * v : w(j))", "prod(v == k(j) ? w(j) : 1)",
    "max(k(j) == v ? w(j) : -1)", "sum(k(j) == v ? w.clamp(k(j)) : 0)",
])  # fmt: skip
def test_reductions_of_equal_keys_mean_what_they_say(text, keys):
    arrays = {"k": np.array(keys, "i4"), "w": np.array([-3, 2, 0.1, np.nan, 5, -1], "f4")}
    text = f"float[] main(int[] k, float[] w) {{ var r(v : 0..5) = {text}; return r; }}"
    expected = value_of(text, lambda dag: NumpyTarget(dag, ()), **arrays)
    assert np.array_equal(value_of(text, NumpyTarget, **arrays), expected, equal_nan=True)


def test_what_a_mask_guards_is_not_read_elsewhere():
    text = "float[] main(int[] k, float[] w) { var r(v : 0..4) = sum(k(j) == v ? w(k(j)) : 0); return r; }"
    k, w = np.array([0, 2, -1, 2, 7], "i4"), np.arange(1, 6, dtype="f4")
    assert np.array_equal(value_of(text, k=k, w=w), [1, 0, 6, 0])
    text = text.replace("sum(k(j) == v ? w(k(j)) : 0)", "max(k(j) == v ? w(k(j)) : 0.5)")
    assert np.array_equal(value_of(text, k=k, w=w), [1, 0.5, 3, 0.5])
    with pytest.raises(ProgramError, match="CS0317"):
        value_of(text.replace("0..4", "0..9"), k=k, w=w)
    text = "float[] main(int[] k, float[] w) { var r(v : 0..2) = sum(j <= v ? w(k(j)) : 0); return r; }"
    assert np.array_equal(value_of(text, k=k, w=w), [1, 4])
    text = "float[] main(int[] k, float[] w) { var r(v : 0..9) = sum(j <= v ? w(k(j)) : 0); return r; }"
    with pytest.raises(ProgramError, match="CS0317"):
        value_of(text, k=k, w=w)


def test_explain_names_the_scatter_of_a_text():
    text = "float[] main(int[] k, float[] w) { var r(v : 0..4) = max(k(j) == v ? w(j) : -1); return r; }"
    compilation = load_text(SourceFile("test.cb", text), NumpyTarget)
    value = build_main(compilation, {"k": np.zeros(5, "i4"), "w": np.ones(5, "f4")}, {})
    _, remarks = run_passes(compilation.dag, (value.node,), [simplify, recognize])
    assert remarks == ["scatter_max over `v : 0..4`: a maximum of equal keys, O(n) in place of O(n^2)"]


MASKS = ["k <= {e} ? {f} : 0", "k < {e} ? {f} : 0", "{e} >= k ? {f} : 0", "k > {e} ? {f} : 0", "k < {e} ? 0 : {f}"]
ENDS = ["i", "i + 3", "i - 2", "2 * i - 9", "p(i)", "12 - i"]
BODIES = ["a(k)", "a(k) * k", "b(j, k) + a(k)", "(k > 4 ? a(k) : b(j, k))", "k"]


@QUICK
@given(st.sampled_from(MASKS), st.sampled_from(ENDS), st.sampled_from(BODIES), st.integers(0, 3))
def test_masked_sums_mean_what_they_say(mask, end, body, low):
    rng = np.random.default_rng(5)
    arrays = {
        "a": rng.integers(-9, 9, 17).astype("i4"),
        "b": rng.integers(-9, 9, (4, 17)).astype("i4"),
        "p": rng.integers(-30, 30, 17).astype("i4"),
    }
    text = (
        "int(int, int) main(int[] a, int[,] b, int[] p) {\n"
        f"    var s(i : 0..17, j : 0..4) = sum({mask.format(e=end, f=body)}, k : {low}..15);\n    return s;\n}}"
    )
    expected = value_of(text, lambda dag: NumpyTarget(dag, ()), **arrays)
    assert np.array_equal(value_of(text, NumpyTarget, **arrays), expected), text


@pytest.mark.parametrize(
    "text, primitive",
    [
        ("var p(i : a) = sum(k <= i ? a(k) : 0);", "scan"),
        ("var p(i : a) = sum(k >= i ? a(k) : 0);", "scan"),
        ("var p(i : a) = sum(a(k) == i);", "scatter_add"),
        ("var p(i : a) = sum(a(k) == i ? a(k) * k : 0);", "scatter_add"),
        ("var p(i : a) = sum(a(k) == 2 * i ? 1 : 0);", ""),
        ("var p(i : a) = sum(k <= i ? a(k) * i : 0);", ""),
        ("var p(i : a) = sum(k <= i ? a(k) : 1);", ""),
    ],
)
def test_texts_that_become_primitives(device, gl, rng, text, primitive):
    a = rng.integers(0, 40, 40).astype("i4")
    text = f"int(int) main(int[] a) {{ {text} return p; }}"
    expected = value_of(text, lambda dag: NumpyTarget(dag, ()), a=a)
    made = []

    def traced(dag):
        made.append(DeviceTarget(dag, device, "device"))
        made[0].trace = []
        return made[0]

    assert np.array_equal(value_of(text, traced, a=a), expected)
    assert [n.attribute.name for kind, n, _ in made[0].trace if kind == "primitive"] == [primitive] * bool(primitive)
    assert np.array_equal(value_of(text, lambda dag: GlslTarget(dag, gl), a=a), expected)


def test_strict_keeps_the_order_of_masked_sums(device, rng):
    a = rng.standard_normal(300).astype("f4")
    text = "float(int) main(float[] a) { var p(i : a) = sum(k <= i ? a(k) : 0); return p; }"
    strict = value_of(text, lambda dag: NumpyTarget(dag, strict=True), a=a)
    assert np.array_equal(strict, value_of(text, lambda dag: DeviceTarget(dag, device, "device", strict=True), a=a))


def test_a_repeated_call_repeats_its_primitives(rng):
    f = renderer.cdollar.function(
        "int[] f(int[] k) { var h = histogram(k, 8); var s = scan(h); var r(i) = s(i) - h(i); return r; }"
    )
    for _ in range(3):
        k = rng.integers(0, 8, 100).astype("i4")
        counts = np.bincount(k, minlength=8)
        assert np.array_equal(f(k), np.cumsum(counts) - counts)


def test_glsl_has_no_primitives_and_says_so(gl):
    with pytest.raises(UnavailableError, match="--target glsl: has no `sort`; opencl, cuda and numpy have it"):
        value_of("int[] main(int[] k) { return sort(k); }", lambda dag: GlslTarget(dag, gl), k=np.ones(3, "i4"))


@pytest.mark.parametrize(
    "body, words",
    [
        ("return sort(a, a);", "sort takes 1 arguments"),
        ("return sort(3);", "sort takes whole functions, but 3 is int"),
        ("return histogram(a, 4);", "the keys of histogram are int, not float"),
        ("return scatter_add(k, b, 4);", "needs a value for each key, but the domains are 0..3 and 0..2"),
        ("var c(i) = scan(x => a(i))(0); return c;", "depends on `i`, but scan computes one array"),
        ("return sort(m);", "sort takes a function of one dimension"),
        ("return scan(sin);", "scan takes functions of int indices"),
        ("return sort(v);", "sort takes elements of int, uint, float, double, not float2"),
    ],
)
def test_arguments_that_do_not_fit(body, words):
    text = f"float(int) main(float[] a, int[] k, float[] b, float[,] m, float2[] v) {{ {body} }}"
    arrays = {
        "a": np.ones(3, "f4"), "k": np.ones(3, "i4"), "b": np.ones(2, "f4"), "m": np.ones((2, 2), "f4"),
        "v": np.ones((2, 2), "f4"),
    }  # fmt: skip
    with pytest.raises(ProgramError, match="CS0319") as caught:
        value_of(text, **arrays)
    assert words in str(caught.value)
