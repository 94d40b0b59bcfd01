"""Kernels of processors: blocks of columns of any width, reductions of neighbors, exp; NumPy is the witness."""

import math
from dataclasses import replace

import numpy as np
import pytest

import renderer
from renderer.cdollar.targets.cpu_kernels import MAP_TILE, MIN_COLUMNS, REDUCTION_TILES
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.matmul_kernels import MIN_CPU_ROWS, MIN_DEPTH
from tests.cdollar.evaluate import value_of
from tests.cdollar.test_schedules import AsGpu

WIDTHS = [
    1,
    MIN_COLUMNS - 1,
    REDUCTION_TILES[1] - 1,
    REDUCTION_TILES[1],
    REDUCTION_TILES[1] + 1,
    2 * REDUCTION_TILES[0] + 3,
]


def on(device):
    return lambda dag: DeviceTarget(dag, device, "device")


@pytest.mark.parametrize("columns", [MIN_COLUMNS, *WIDTHS])
def test_reductions_with_neighboring_outputs(device, rng, columns):
    a = rng.standard_normal((37, columns)).astype("f4")
    text = "float[] main(float[,] a) { var s(j) = sum(a(i, j)); return s; }"
    assert np.allclose(value_of(text, on(device), a=a), a.sum(0, dtype="f8"), rtol=1e-5, atol=1e-5)
    text = "float[] main(float[,] a) { var s(j) = max(a(i, j)); return s; }"
    assert np.array_equal(value_of(text, on(device), a=a), a.max(0))


@pytest.mark.parametrize("rows", [4095, 4096, 9000])
def test_long_sums_of_columns_keep_what_rounding_loses(device, rng, rows):
    a = (1e4 + rng.standard_normal((rows, 70))).astype("f4")
    text = "float[] main(float[,] a) { var s(j) = sum(a(i, j)); return s; }"
    worst = np.abs(value_of(text, on(device), a=a) / a.sum(0, dtype="f8") - 1).max()
    assert worst < (2e-7 if rows >= 4096 else 1e-4)


@pytest.mark.parametrize("width", [5, MIN_COLUMNS + 4, MAP_TILE + 5])
def test_convolutions_and_stencils_of_any_width(device, rng, width):
    a, w = rng.standard_normal((9, width)).astype("f4"), rng.standard_normal((3, 5)).astype("f4")
    text = "float[,] main(float[,] a, float[,] w) { var c(i, j) = sum(a(i + p, j + q) * w(p, q)); return c; }"
    expected = sum(w[p, q] * a[p : 7 + p, q : width - 4 + q] for p in range(3) for q in range(5))
    assert np.allclose(value_of(text, on(device), a=a, w=w), expected, rtol=1e-5, atol=1e-5)
    text = f"float[,] main(float[,] a) {{ var r(i, j : 1..{width - 1}) = a(i, j - 1) + a(i, j + 1); return r; }}"
    assert np.allclose(value_of(text, on(device), a=a), a[:, :-2] + a[:, 2:], rtol=1e-6)


def test_a_bounds_check_in_a_row_is_reported(device, rng):
    text = "float[,] main(float[,] a, int[] k) { var r(i : 0..3, j : 0..40) = a(i, k(j)); return r; }"
    a, k = rng.standard_normal((3, 40)).astype("f4"), rng.permutation(40).astype("i4")
    assert np.array_equal(value_of(text, on(device), a=a, k=k), a[:, k])
    k[17] = 40
    with pytest.raises(renderer.InputError, match="CS0317"):
        value_of(text, on(device), a=a, k=k)


def test_exp_of_processors_is_right_to_an_ulp(device):
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 88.7228, 88.73, -87.4, -103.9, -104.5, 1e-30]
    x = np.concatenate([np.linspace(-104, 88.7, 100_003), np.linspace(-0.01, 0.01, 1001), edges]).astype("f4")
    found = value_of("float[] main(float[] a) => exp(a);", on(device), a=x)
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype("f8"))
        single = exact.astype("f4")
        finite = np.isfinite(single)
        assert np.array_equal(found[~finite], single[~finite], equal_nan=True)
        apart = np.abs(found[finite] - exact[finite]) / np.spacing(single[finite])
    assert apart.max() < (1.1 if device.properties.scalar_threads else 2.0)


ELEMENTS = [1, 63, 64, 255, 256, 4095, 4097, 70_001]
MANY_ELEMENTS = [16 * 65536 - 1, 16 * 65536 + 511]


@pytest.mark.parametrize("count", [*ELEMENTS, *(pytest.param(c, marks=pytest.mark.slow) for c in MANY_ELEMENTS)])
def test_every_element_is_reduced_once(device, rng, count):
    a = rng.integers(-(2**31), 2**31, count).astype("i4")
    assert value_of("int main(int[] a) => sum(a);", on(device), a=a) == a.sum(dtype="i4")
    assert value_of("int main(int[] a) => max(a);", on(device), a=a) == a.max()


@pytest.mark.parametrize("place", [0, 31, 64, 127, 149])
def test_any_and_all_see_each_element_of_a_row(device, place):
    """The miscompiled loop that random programs found: `||` and `&&` of several elements a round."""
    q = np.zeros(150, "f4")
    q[place] = 3
    text = "int main(float[] q) => (any(q > 2) ? 1 : 0) + (all(q < 2) ? 2 : 0);"
    assert value_of(text, lambda dag: DeviceTarget(dag, device, "device", strict=True), q=q) == 1


class Planned(DeviceTarget):
    """A target that plans kernels and launches none."""

    def __init__(self, dag, device):
        super().__init__(dag, device, "device")
        self.trace = []

    def launch_plan(self, plan, outputs):
        pass


def planned(device, text, **arrays):
    """The plans of a program's kernels."""
    made = []
    value_of(text, lambda dag: made.append(Planned(dag, device)) or made[0], **arrays)
    return [plan for kind, _, plan in made[0].trace if kind == "kernel"]


PRODUCT = "{0}[,,] main({0}[,,] a, {0}[,,] b) {{ var p({1}) = + ((a(m, r, k) + 1) * (2 * b(m, k, c))); return p; }}"


@pytest.mark.slow
def test_products_of_expressions_on_processors(device, rng):
    """Batches, rows and columns that fill no panel, the rows last in the output; NumPy is the witness."""
    a, b = rng.standard_normal((2, 37, 19)).astype("f4"), rng.standard_normal((2, 19, 41)).astype("f4")
    found = value_of(PRODUCT.format("float", "m, c, r"), on(device), a=a, b=b)
    assert np.allclose(found, np.einsum("mrk,mkc->mcr", a + 1, 2 * b), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("type_", "simd", "lanes"), [("float", 16, 16), ("float", 32, 16), ("float", 8, 8), ("double", 16, 8)]
)
@pytest.mark.parametrize(
    ("output", "sizes", "across", "down"),
    [("m, r, c", (2, 900, 65), 65, 900), ("m, c, r", (2, 900, 65), 900, 65), ("r, m, c", (1, 3, 4000), 4000, 3)],
)
def test_cores_get_about_eight_parts_of_a_product(device, type_, simd, lanes, output, sizes, across, down):
    """A work-item has 2 vectors of columns, and MIN_CPU_ROWS rows or more where there are so many."""
    cores, (batches, rows, columns) = 5, sizes
    cpu = AsGpu(device)
    cpu.properties = replace(device.properties, compute_units=cores, simd_width=simd, warp_size=1)
    dtype = "f4" if type_ == "float" else "f8"
    arrays = {"a": np.ones((batches, rows, MIN_DEPTH), dtype), "b": np.ones((batches, MIN_DEPTH, columns), dtype)}
    (plan,) = planned(cpu, PRODUCT.format(type_, output), **arrays)
    panels = math.ceil(across / (2 * lanes)) * batches
    parts = plan.group_count // panels
    assert plan.kind == "cpu_matmul" and plan.group_size == 1 and plan.group_count == parts * panels
    assert parts == max(1, min(math.ceil(8 * cores / panels), down // MIN_CPU_ROWS))
    assert f"#define WIDE {type_}{lanes}\n" in plan.text and f"#define SIMD_LANES {lanes}\n" in plan.text
