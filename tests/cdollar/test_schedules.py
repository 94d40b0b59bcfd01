"""Schedules change no result: tiles of every shape, groups, packed texels; schedule files; chunks of large files."""

import math
from dataclasses import replace

import numpy as np
import pytest

from renderer.cdollar.targets import autotuner, graph_target
from renderer.cdollar.targets.autotuner import tune_kernels
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget, texture_layout
from renderer.cdollar.targets.map_kernels import plan_kernel
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.cdollar.targets.schedule import (
    DEFAULT,
    MAP_CANDIDATES,
    MATMUL_CANDIDATES,
    Schedule,
    read_schedules,
    schedule_text,
    update_schedules,
)
from renderer.errors import InputError, KernelError, UnavailableError
from tests.cdollar.evaluate import value_of

PRODUCT = "float[,] main(float[,] a, float[,] b) { var c(j, k) = + (a(j, l) * b(l, k)); return c; }"


def quick_first(changes, count):
    """The first few in every run, the others in the long one."""
    return [pytest.param(c, marks=[pytest.mark.slow] if k >= count else []) for k, c in enumerate(changes)]


class AsGpu:
    """A device that claims warps of 32 threads, so that kernels are planned as for a GPU."""

    def __init__(self, device):
        self.inner, self.name = device, device.name
        self.properties = replace(device.properties, warp_size=32, compute_units=8)

    def __getattr__(self, name):
        return getattr(self.inner, name)


def scheduled(device, schedule):
    """A target that plans every kernel by one schedule."""

    class Scheduled(DeviceTarget):
        def plan(self, node):
            return plan_kernel(node, self.stored_ranges, schedule, self.device.properties)

    return lambda dag: Scheduled(dag, AsGpu(device), "device")


@pytest.mark.parametrize("change", quick_first(MATMUL_CANDIDATES, 3), ids=str)
def test_matmul_with_every_tile_shape(device, rng, change):
    sizes = rng.integers(1, 200, 3)
    a, b = rng.standard_normal(sizes[:2]).astype("f4"), rng.standard_normal(sizes[1:]).astype("f4")
    result = value_of(PRODUCT, scheduled(device, replace(DEFAULT, **change)), a=a, b=b)
    assert np.allclose(result, a.astype("f8") @ b, rtol=1e-4, atol=1e-4), sizes


@pytest.mark.parametrize(
    ("body", "einsum"),
    [
        ("var c(k, j) = + (a(j, l) * b(l, k));", "jl,lk->kj"),
        ("var c(j, k) = + (a(l, j) * b(k, l));", "lj,kl->jk"),
        ("var c(j, k) = + (2 * a(j, l) * exp(0 * b(l, k)) * b(l, k));", "jl,lk->jk"),
        ("var c(j, k) = + ((a(j, l) + 0.5) * (b(l, k) - 1));", None),
    ],
)
def test_fused_and_transposed_products_are_tiled(device, rng, body, einsum):
    a, b = rng.standard_normal((40, 40)).astype("f4"), rng.standard_normal((40, 40)).astype("f4")
    text = f"float[,] main(float[,] a, float[,] b) {{ {body} return c; }}"
    result = value_of(text, scheduled(device, DEFAULT), a=a, b=b)
    expected = np.einsum(einsum, a, b) if einsum else (a + 0.5) @ (b - 1)
    assert np.allclose(result, expected * (2 if "2 * a" in body else 1), rtol=1e-4, atol=1e-4)


def test_batches_of_products_in_double(device, rng):
    text = "double[,,] main(double[,,] a, double[,,] b) { var c(n, j, k) = + (a(n, j, l) * b(n, l, k)); return c; }"
    a, b = rng.standard_normal((3, 9, 20)), rng.standard_normal((3, 20, 11))
    if device.properties.has_fp64:
        assert np.allclose(value_of(text, scheduled(device, DEFAULT), a=a, b=b), a @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("change", quick_first(MAP_CANDIDATES, 2), ids=str)
def test_maps_and_reductions_of_every_schedule_agree(device, rng, change):
    a = rng.standard_normal(rng.integers(1, 9000)).astype("f4")
    target = scheduled(device, replace(DEFAULT, **change))
    assert np.allclose(
        value_of("float[] main(float[] a) => 2 * a + sqrt(abs(a));", target, a=a), 2 * a + np.sqrt(abs(a)), rtol=1e-6
    )
    assert np.isclose(value_of("float main(float[] a) => sum(a);", target, a=a), a.sum(dtype="f8"), atol=1e-2)
    assert value_of("int main(float[] a) => argmax(a);", target, a=a) == np.argmax(a)


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_long_rows_are_reduced_by_work_groups(device, rng, rows):
    a = rng.integers(-9, 9, (rows, 2000)).astype("i4")
    target = scheduled(device, DEFAULT)
    assert np.array_equal(value_of("int[] main(int[,] a) { var s(i) = + a(i, j); return s; }", target, a=a), a.sum(1))
    assert np.array_equal(
        value_of("int[] main(int[,] a) { var s(i) = argmin(a(i, j)); return s; }", target, a=a), a.argmin(1)
    )


@pytest.mark.parametrize(
    "shape",
    [(5000, 40), (3, 9000), (1, 300_001), *(pytest.param(s, marks=pytest.mark.slow) for s in ((70, 300), (5000, 700)))],
)
@pytest.mark.parametrize("strict", [pytest.param(False, marks=pytest.mark.slow), True])
def test_groups_of_several_rows_and_columns(device, rng, shape, strict):
    """More rows than a GPU has groups, parts of few long rows, and columns, against NumPy; strict bits are NumPy's."""
    a = rng.standard_normal(shape).astype("f4")
    for index, axis in (("i", 1), ("j", 0)):
        text = f"float[] main(float[,] a) {{ var s({index}) = sum(a(i, j)); return s; }}"
        result = value_of(text, lambda dag: DeviceTarget(dag, AsGpu(device), "device", strict=strict), a=a)
        assert np.allclose(result, a.sum(axis, dtype="f8"), rtol=1e-5, atol=1e-4)
        if strict:
            assert np.array_equal(result, value_of(text, lambda dag: NumpyTarget(dag, strict=True), a=a))
        text = f"int[] main(float[,] a) {{ var s({index}) = argmax(a(i, j)); return s; }}"
        result = value_of(text, lambda dag: DeviceTarget(dag, AsGpu(device), "device", strict=strict), a=a)
        assert np.array_equal(result, a.argmax(axis))


def test_associative_functions_keep_the_order_of_elements(device, rng):
    text = """
        final class Affine { int scale, shift; }
        [Associative] Affine then(Affine f, Affine g) => Affine(g.scale * f.scale, g.scale * f.shift + g.shift);
        Affine main(int[] a) { var f(i) = Affine(a(i), i); return then(f); }"""
    a = rng.integers(-3, 4, 3000).astype("i4") | 1
    scale, shift = np.int32(a[0]), np.int32(0)
    with np.errstate(all="ignore"):
        for i in range(1, a.size):
            scale, shift = a[i] * scale, a[i] * shift + np.int32(i)
    for target in (scheduled(device, DEFAULT), lambda dag: DeviceTarget(dag, device, "device")):
        result = value_of(text, target, a=a)
        assert (result["scale"], result["shift"]) == (scale, shift)


def test_packed_passes_multiply(gl, rng):
    for _ in range(4):
        sizes = rng.integers(4, 70, 3)
        a, b = rng.standard_normal(sizes[:2]).astype("f4"), rng.standard_normal(sizes[1:]).astype("f4")
        product = value_of(PRODUCT, lambda dag: GlslTarget(dag, gl), a=a, b=b)
        assert np.allclose(product, a.astype("f8") @ b, rtol=1e-4, atol=1e-4), sizes


@pytest.mark.parametrize(
    "count", quick_first([1, 2, 3, 4, 5, 16, 17, 64, 65, 4096, 4097, 70001, *range(6, 16), 18, 19, 63, 4095, 16411], 12)
)
def test_glsl_sums_of_every_size(gl, rng, count):
    a = rng.integers(-100, 100, count).astype("i4")
    assert value_of("int main(int[] a) => sum(a);", lambda dag: GlslTarget(dag, gl), a=a) == a.sum()
    layout = texture_layout((count,), gl.max_texture_size)
    assert layout.width * layout.height >= count and layout.width <= gl.max_texture_size


TUNED = {"3f2a": Schedule(group_size=128), "12": Schedule(items_per_thread=2)}
NOTED = """# my note
[kernels."3f2a"]  # why: mine
group_size = 64  # best on the laptop
thread_rows = 4

# the second
[kernels.ff]
tile_depth = 8
"""
FORMS = ["", "[kernels]\n", "kernels = {}\n", "kernels = { ff = { tile_depth = 8 } }\n"]
FORMS += ["kernels.ff.tile_depth = 8 # x\n"]


@pytest.mark.parametrize("text", [NOTED, *FORMS])
def test_tuning_keeps_what_a_user_wrote_into_the_file(tmp_path, text):
    """`run --tune` wrote the file anew: notes of its user were lost."""
    path = tmp_path / "p.schedule.toml"
    path.write_text(text)
    before = read_schedules(path)
    update_schedules(path, TUNED, {"3f2a": "a map", "12": "a sum"})
    assert read_schedules(path) == before | TUNED
    written = path.read_text()
    kept = [line for line in text.splitlines() if "group_size" not in line and "thread_rows" not in line]
    if text == NOTED:
        assert set(kept) <= set(written.splitlines()) and written.index("my note") < written.index("the second")
        assert "group_size = 128  # best on the laptop" in written and "# a sum" in written and "a map" not in written
    assert "# x" in written or "# x" not in text


def test_schedule_files_round_trip_and_errors_name_the_file(tmp_path):
    path = tmp_path / "p.schedule.toml"
    assert read_schedules(path) == {}
    path.write_text(schedule_text({"ab12": Schedule(items_per_thread=8, tile_depth=8)}, {"ab12": "map"}))
    assert read_schedules(path) == {"ab12": Schedule(items_per_thread=8, tile_depth=8)}
    for text in (
        "x =",
        "kernels = 3",
        "[kernels.a]\nspeed = 3",
        "[kernels.a]\nitems_per_thread = 3",
        "[kernels.a]\ntile_rows = 16\nthread_rows = 16\ntile_columns = 16\nthread_columns = 16",
    ):
        path.write_text(text)
        with pytest.raises(InputError, match="p.schedule.toml"):
            read_schedules(path)


@pytest.mark.slow
def test_autotuner_checks_and_chooses(device, rng):
    a, b = (rng.standard_normal((64, 64)).astype("f4") for _ in range(2))
    held = {}

    def target(dag):
        held["target"] = DeviceTarget(dag, AsGpu(device), "device")
        held["target"].trace = []
        return held["target"]

    value_of(PRODUCT, target, a=a, b=b)
    schedules, notes = tune_kernels(held["target"])
    assert len(schedules) == 1 and "matmul" in next(iter(notes.values()))
    again = value_of(PRODUCT, lambda dag: DeviceTarget(dag, AsGpu(device), "device", schedules), a=a, b=b)
    assert np.allclose(again, a @ b, rtol=1e-4, atol=1e-4)


def test_the_fastest_candidate_that_computes_the_same_is_taken(device, rng, monkeypatch):
    """Times are given: the third candidate has the least, the fourth does not fit the device, the default is slower."""
    held, seconds = [], iter([3e-6, 4e-6, 3e-6, 1e-6, 0.0, 2e-6])
    candidates = [{"items_per_thread": count} for count in (1, 2, 4, 8, 16)]
    monkeypatch.setattr(autotuner, "MAP_CANDIDATES", candidates)

    def measure(target, node, plan, error=0.0):
        if time := next(seconds):
            return [np.array([100.0 + error, np.nan])], time
        raise KernelError("the tile does not fit")

    def target(dag):
        held.append(DeviceTarget(dag, AsGpu(device), "device"))
        held[-1].trace = []
        return held[-1]

    monkeypatch.setattr(DeviceTarget, "launch_plan", lambda self, plan, outputs: None)
    value_of("float[] main(float[] a) { var b(i) = 2 * a(i); return b; }", target, a=rng.random(9).astype("f4"))
    monkeypatch.setattr(autotuner, "measure", measure)
    schedules, notes = tune_kernels(held[0])
    assert list(schedules.values()) == [replace(DEFAULT, **candidates[2])] and schedules.keys() == notes.keys()
    assert list(notes.values()) == ["map, best of 4: 1.0 us, by default 3.0 us"]
    for error in (-0.5, 0.5):  # the results may differ by a thousandth of the greatest and of themselves
        seconds, errors = iter([1.0] * 6), iter([0.0, error])
        monkeypatch.setattr(autotuner, "measure", lambda *a, rest=errors: measure(*a, error=next(rest)))
        with pytest.raises(AssertionError, match="items_per_thread=1.*computes something else"):
            tune_kernels(held[0])


def test_reductions_read_large_files_in_chunks(device, rng, tmp_path, monkeypatch):
    monkeypatch.setattr(graph_target, "CHUNK_BYTES", 4096)
    np.save(tmp_path / "big.npy", rng.integers(-50, 50, (300, 40)).astype("i4"))
    big = np.load(tmp_path / "big.npy")
    largest = []
    upload = DeviceTarget.upload

    def counted(self, array, type_):
        largest.append(array.nbytes)
        return upload(self, array, type_)

    monkeypatch.setattr(DeviceTarget, "upload", counted)
    total = "sum(f) + 1000 * max(f) + 7 * (+ (f(i, j), int i : 20..290, int j))"
    text = f'int main() {{ var f = file("big.npy"); return {total}; }}'
    result = value_of(text, lambda dag: DeviceTarget(dag, device, "device"), folder=tmp_path)
    assert result == big.sum() + 1000 * big.max() + 7 * big[20:290].sum()
    assert max(largest) <= 4096 + 40 * 4


@pytest.mark.parametrize(
    "program",
    [
        "float2 step(float2 s, float x) => float2(s.y, s.x * 0.5 + x);"
        'float2 main() { var f = file("big.npy"); return fold(step, float2(0, 1), f); }',
        "final class A { float s, t; } [Associative] A then(A f, A g) => A(g.s * f.s, g.s * f.t + g.t);"
        'A main() { var f = file("big.npy"); var g(i, j) = A(cos(f(i, j)), f(i, j)); return then(g); }',
        'uint main() { var f = file("big.npy"); var g(i, j) = (uint) (f(i, j) * 1e9); return prod(g) + max(g); }',
    ],
)
def test_chunks_pass_on_the_state_of_a_reduction(device, rng, tmp_path, monkeypatch, program):
    monkeypatch.setattr(graph_target, "CHUNK_BYTES", 4096)
    np.save(tmp_path / "big.npy", rng.standard_normal((100, 40)).astype("f4"))
    result = value_of(program, lambda dag: DeviceTarget(dag, device, "device"), folder=tmp_path)
    expected = value_of(program, folder=tmp_path)
    assert np.allclose(result.tolist(), expected.tolist(), rtol=1e-5)


def test_scalars_are_kernel_arguments(device, rng):
    a = rng.standard_normal(50).astype("f4")
    text = "float[] main(float[] a, float s, int n) { var c(i) = s * a(i) + n; return c; }"
    targets = []

    def target(dag):
        result = DeviceTarget(dag, device, "device")
        if targets:
            result.kernels = targets[-1].kernels
        targets.append(result)
        return result

    for s, n in ((0.5, 3), (3, 50), (50, 0)):
        assert np.allclose(value_of(text, target, {"s": str(s), "n": str(n)}, a=a), s * a + n, rtol=1e-5)
    assert [t.counters.compiled for t in targets] == [1, 0, 0] and targets[-1].counters.cache_hits == 1


def all_targets(device, gl):
    return {
        "numpy": NumpyTarget,
        "device": lambda dag: DeviceTarget(dag, device, "device"),
        "gpu plans": lambda dag: DeviceTarget(dag, AsGpu(device), "device"),
        "glsl": lambda dag: GlslTarget(dag, gl),
    }


WRAPPED = {
    "a(i) + 1 > a(i)": [True, False, True, True],
    "a(i) - 2 < a(i)": [True, True, True, False],
    "a(i) * 2": [2, -2, -10, 0],
    "-a(i)": [-1, -(2**31) + 1, 5, -(2**31)],
    "abs(a(i))": [1, 2**31 - 1, 5, -(2**31)],
    "a(i) << 1": [2, -2, -10, 0],
    "(i + 2147483647) - 2147483647 + 0 * a(i)": [0, 1, 2, 3],
    "0 * a(i) + sum(a)": [-5] * 4,
    "twice(a(i)) < a(i)": [False, True, True, False],
}


def test_overflow_of_int_wraps_on_every_target(device, gl):
    """All expressions in one kernel: a kernel each took 14 builds."""
    a = np.array([1, 2**31 - 1, -5, -(2**31)], "i4")
    types = ["bool" if isinstance(wanted[0], bool) else "int" for wanted in WRAPPED.values()]
    fields = "; ".join(f"{type_} r{k}" for k, type_ in enumerate(types))
    text = f"""int twice(int x) {{ int y = x; y = y + x; return y; }}
        final class All {{ {fields}; }}
        All[] main(int[] a) {{ var c(i) = All({", ".join(WRAPPED)}); return c; }}"""
    for name, target in all_targets(device, gl).items():
        found = value_of(text, target, a=a)
        for k, (expression, expected) in enumerate(WRAPPED.items()):
            assert found[f"r{k}"].tolist() == expected, (name, expression)


@pytest.mark.parametrize(
    "reduction, expected",
    [("sum(a)", 0), ("prod(a)", 1), ("fold(add, 3.0, a(i))", 3), ("sum(a(i) * 2, i : 0..0)", 0)],
)
def test_reductions_of_nothing_are_neutral_on_every_target(device, gl, reduction, expected):
    text = f"float add(float s, float x) => s + x;\nfloat main(float[] a) {{ return {reduction}; }}"
    for name, target in all_targets(device, gl).items():
        assert value_of(text, target, a=np.zeros(0, "f4")) == expected, name


def test_products_over_nothing_are_zero_on_every_target(device, gl):
    for name, target in all_targets(device, gl).items():
        result = value_of(PRODUCT, target, a=np.zeros((3, 0), "f4"), b=np.zeros((0, 4), "f4"))
        assert result.shape == (3, 4) and not result.any(), name


def test_extremes_pass_over_nan_and_are_nan_of_nothing_else(device, gl):
    text = "float2 main(float[] a) { return float2(max(a), min(a)); }"
    nan = np.nan
    cases = {(nan, nan, nan): (nan, nan), (nan, 2, nan, -1): (2, -1), (nan, -np.inf): (-np.inf, -np.inf)}
    for numbers, expected in cases.items():
        for name, target in all_targets(device, gl).items():
            result = value_of(text, target, a=np.array(numbers, "f4"))
            assert np.array_equal(np.ravel(result.tolist()), expected, equal_nan=True), (name, numbers, result)


def test_operators_of_classes_reduce_on_every_target(device, gl):
    text = (
        "final class P { float x, y; }\nP operator +(P a, P b) => P(a.x + b.x, a.y * b.y);\n"
        "float2 main(float[] a) { var c(i) = P(a(i), a(i)); var p = + c; return float2(p.x, p.y); }"
    )
    for name, target in all_targets(device, gl).items():
        result = value_of(text, target, a=np.array([1, 2, 3, 4], "f4"))
        assert np.ravel(result.tolist()).tolist() == [10, 24], name


@pytest.mark.parametrize("text", [
    "float main(float[] a) { return sum(a); }",
    "float main(float[] a) { return sum(a(i) * a(i)); }",
    "float(int) main(float[] a) { var c(i : 0..3) = sum(a(k) + 0 * i, k : a); return c; }",
])  # fmt: skip
def test_long_float_sums_do_not_drift(device, gl, rng, text):
    a = rng.random(300_000).astype("f4")
    a[1000] = 1e6  # larger than what was added before it
    exact = math.fsum((a * a if "a(i) * a(i)" in text else a).astype("f8"))
    for name, target in all_targets(device, gl).items():
        tolerance = 2e-5 if name == "glsl" else 1.2e-7
        assert np.allclose(value_of(text, target, a=a), exact, rtol=tolerance, atol=0), name


def test_long_sums_keep_infinities_and_nan(device, gl):
    text = "float main(float[] a) { return sum(a); }"
    for numbers, expected in (
        ([np.inf], np.inf),
        ([-np.inf], -np.inf),
        ([np.inf, -np.inf], np.nan),
        ([3e38] * 3, np.inf),
    ):
        a = np.ones(10_000, "f4")
        a[5000 : 5000 + len(numbers)] = numbers
        for name, target in all_targets(device, gl).items():
            assert np.array_equal(value_of(text, target, a=a), expected, equal_nan=True), (name, numbers)


@pytest.mark.slow
@pytest.mark.parametrize("text", [
    PRODUCT.replace("float[,] main", "float(int, int) main"),
    "float add(float s, float x) => s + x;\nfloat main(float[,] a) { return fold(add, 0.0, a(i, j)); }",
    "float main(float[,] a) { return sum(a(i, j)); }",
], ids=["product", "fold", "sum"])  # fmt: skip
def test_loops_of_a_hundred_thousand_rounds_reach_their_end(device, gl, text):
    arrays = {"a": np.ones((1, 100_000), "f4")} | ({"b": np.ones((100_000, 1), "f4")} if "b(l, k)" in text else {})
    for name, target in all_targets(device, gl).items():
        assert np.ravel(value_of(text, target, **arrays)).tolist() == [100_000], name


def test_a_loop_that_the_driver_leaves_early_is_an_error(device, gl):
    text = (
        "int count(int end) {\n    int n = 0;\n"
        "    while (true) { n++; if (n % 2 == 1) continue; if (n >= end) break; }\n    return n;\n}\n"
        "int(int) main(int[] a) { var c(i) = count(a(i)); return c; }"
    )
    for name, target in all_targets(device, gl).items():
        a = np.array([10, 1_000 if name == "numpy" else 100_000], "i4")  # NumPy takes 3 s for the long one
        try:
            assert value_of(text, target, a=a).tolist() == a.tolist(), name
        except UnavailableError as error:
            assert name == "glsl" and "leaves long loops early" in str(error)


@pytest.mark.parametrize("units", [16, 3])
def test_a_pass_reads_more_textures_than_the_driver_has_units(gl, rng, monkeypatch, units):
    monkeypatch.setattr(gl, "max_pass_textures", units)
    types = ["float[,]", "int[,]", "bool[,]"] * 6
    arrays = [rng.integers(0, 2 if "bool" in t else 9, (k % 3 + 2, k + 2)) for k, t in enumerate(types)]
    names = [f"a{k}" for k in range(len(types))]
    element = ["(int) {0}(i, j)", "({0}.clamp(i, j + {1}) == 1 ? {1} : 0)", "({0}.clamp(i, j + {1}) ? {1} : 0)"]
    reads = [element[k % 3].format(a, k) for k, a in enumerate(names)]
    head = ", ".join(f"{t} {a}" for t, a in zip(types, names, strict=True))
    text = f"int[,] main({head}) {{ var s(i : 0..2, j : 0..2) = {' + '.join(reads)}; return s; }}"
    given = {a: x.astype({"f": "f4", "i": "i4", "b": bool}[t[0]]) for a, x, t in zip(names, arrays, types, strict=True)}
    assert value_of(text, lambda dag: GlslTarget(dag, gl), **given).tolist() == [
        [
            sum(
                int(x[i, j]) if k % 3 == 0 else k * (x[min(i, len(x) - 1), min(j + k, x.shape[1] - 1)] == 1)
                for k, x in enumerate(arrays)
            )
            for j in range(2)
        ]
        for i in range(2)
    ]
    monkeypatch.setattr(gl, "max_texture_size", 20)
    if units == 3:
        with pytest.raises(UnavailableError, match="a pass reads more than 3 textures, which do not fit"):
            value_of(text, lambda dag: GlslTarget(dag, gl), **given)
