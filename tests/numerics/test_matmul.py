"""Matrix products: every variant against float64 NumPy, any shape, transposed operands, windows, and mistakes told."""

import numpy as np
import pytest

from renderer.bench.cases import kernel_cases, tables
from renderer.errors import UserError
from renderer.numerics.matmul import CHOICES, MatrixView, bind_matmul, choose_variant, matmul, matrix_view, variants
from renderer.paths import ROOT

SHAPES = [(1, 1, 1), (5, 7, 3), (64, 64, 64), (33, 130, 65), (128, 128, 40)]


def block_variants(dtype):
    """What choose_variant may choose on GPUs, small blocks last."""
    chosen = {v.name: v for key in CHOICES if key.startswith(dtype) for _, v in CHOICES[key]}
    return sorted(chosen.values(), key=lambda v: -v.block_tile[0] * v.block_tile[1])


VARIANTS = {**variants(), **{v.name: v for v in block_variants("f4")}}


def operands(device, rng, shape, dtype, transpose_a=False, transpose_b=False):
    rows, columns, inner = shape
    a = rng.standard_normal((inner, rows) if transpose_a else (rows, inner)).astype(dtype)
    b = rng.standard_normal((columns, inner) if transpose_b else (inner, columns)).astype(dtype)
    wanted = (a.T if transpose_a else a).astype("f8") @ (b.T if transpose_b else b).astype("f8")
    views = [matrix_view(device.buffer(stored.shape, dtype).write(stored)) for stored in (a, b)]
    return views[0].T if transpose_a else views[0], views[1].T if transpose_b else views[1], wanted


def close(found, wanted, inner):
    """Within the rounding of a sum of `inner` products of standard normal numbers."""
    epsilon = np.finfo(found.dtype).eps
    return np.abs(found - wanted).max(initial=0) <= 8 * epsilon * max(1, inner)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_equals_numpy(device, rng, name):
    variant = VARIANTS[name]
    if not variant.runs_on(device):
        pytest.skip("a variant for CPUs")
    fresh = tuple(int(n) for n in rng.integers(1, 90, 3))
    for shape in (SHAPES[-1], fresh):
        a, b, wanted = operands(device, rng, shape, "f4")
        out = device.buffer(wanted.shape).fill(0xFF)  # NaNs, so that an element left out is seen
        matmul(device, a, b, out, variant)
        assert close(out.read(), wanted, shape[2]), (name, shape)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_auto_takes_any_shape_and_transposed_operands(device, rng, dtype, transposed):
    if dtype == "f8" and not device.properties.has_fp64:
        pytest.skip("no float64 on this device")
    for shape in (*SHAPES, (200, 37, 300)):
        a, b, wanted = operands(device, rng, shape, dtype, *transposed)
        out = device.buffer(wanted.shape, dtype).fill(0xFF)
        matmul(device, a, b, out)
        assert close(out.read(), wanted, shape[2]), shape


@pytest.mark.parametrize("name", ["tiles", "each4", "64x64 multistage"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_variants_take_doubles_and_transposed_operands(device, rng, name, dtype):
    known = {**variants(), **{v.name: v for v in block_variants(dtype)}}
    variant = known.get(name, block_variants(dtype)[-1])
    for transposed in ((True, False), (False, True), (True, True)):
        a, b, wanted = operands(device, rng, (68, 36, 100), dtype, *transposed)
        out = device.buffer(wanted.shape, dtype).fill(0xFF)
        matmul(device, a, b, out, variant)
        assert close(out.read(), wanted, 100), transposed


@pytest.mark.parametrize("store", ["set", pytest.param("add", marks=pytest.mark.slow), "subtract"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_views_of_larger_matrices(device, rng, store, dtype):
    """C -= A B on views, stored by rows or by columns, leaves everything outside the view as it was."""
    tried = ["auto", block_variants(dtype)[-1]]
    tried += [v for v in block_variants(dtype) if v.name == "64x64 multistage" and store == "subtract"]
    for variant in tried:
        for turned in ((False, False, False), (True, False, True), (True, True, False)):
            m, n, k = (int(x) for x in rng.integers(1, 80, 3))
            host, windows = [], []
            for (rows, columns), flip in zip([(m, k), (k, n), (m, n)], turned, strict=True):
                stored = (columns, rows) if flip else (rows, columns)
                start, stride = int(rng.integers(0, 9)), stored[1] + int(rng.integers(0, 9))
                memory = rng.standard_normal(start + stored[0] * stride).astype(dtype)
                windows.append(
                    MatrixView(device.buffer(memory.size, dtype).write(memory), rows, columns, stride, start, flip)
                )
                host.append(memory)
            a, b, c = (_view(memory, w) for memory, w in zip(host, windows, strict=True))
            change = a.astype("f8") @ b.astype("f8")
            wanted = {"set": change, "add": c + change, "subtract": c - change}[store]
            matmul(device, *windows, variant, store=store)
            after = windows[2].buffer.read()
            assert close(_view(after, windows[2]), wanted, k)
            _view(after, windows[2])[:] = c
            assert np.array_equal(after, host[2]), "written outside the view"


def _view(memory: np.ndarray, w: MatrixView) -> np.ndarray:
    """The view of host memory that the MatrixView describes."""
    rows, columns = (w.columns, w.rows) if w.transposed else (w.rows, w.columns)
    strides = (w.ld * memory.itemsize, memory.itemsize)
    view = np.lib.stride_tricks.as_strided(memory[w.offset :], (rows, columns), strides)
    return view.T if w.transposed else view


def test_multistage_takes_doubles(device, rng):
    a, b, wanted = operands(device, rng, (70, 130, 20), "f8")
    out = device.buffer(wanted.shape, "f8").fill(0xFF)
    matmul(device, a, b, out, "multistage")
    assert close(out.read(), wanted, 20)


def test_empty_products(device):
    out = device.buffer((3, 5)).fill(0xFF)
    matmul(device, device.buffer((3, 0)), device.buffer((0, 5)), out)
    assert not out.read().any()
    matmul(device, device.buffer((0, 4)), device.buffer((4, 5)), device.buffer((0, 5)))


def test_the_same_product_has_the_same_bits(device, rng):
    a, b, wanted = operands(device, rng, (96, 64, 128), "f4")
    variant = choose_variant(device, 96, 64, "f4") if device.properties.scalar_threads else block_variants("f4")[-1]
    out = device.buffer(wanted.shape)
    launch = bind_matmul(device, a, b, out, variant)
    launch()
    first = out.read()
    out.fill(0xFF)
    launch()
    assert np.array_equal(out.read(), first)


def test_bench_prints_the_table_of_the_thesis(gpu):
    kernel_cases(ROOT / "tests" / "fps" / "products.py", gpu)
    cases = [("products/thesis/tile=8/tiles", 12.34), ("products/auto/float32/size=512", 560.0)]
    records = [{"case": case, "rate": rate, "peer": {"name": "vendor", "ratio": 0.5}} for case, rate in cases]
    rows = [line.split() for line in next(tables([*records, {"case": "sums/fast", "rate": 1.0}])).splitlines()[1:]]
    assert rows[0] == ["tiles", "6.66", "0.0", "6.93", "12.3", "7.50", "0.0"]
    assert rows[1:] == [["auto", "560.0"], ["vendor", "1120.0"]]
    assert not list(tables([{"case": "sums/fast", "rate": 1.0}]))


def test_mistakes_are_sentences(device):
    square, wide, doubles = device.buffer((4, 4)), device.buffer((4, 5)), device.buffer((4, 4), "f8")
    with pytest.raises(UserError, match="do not fit"):
        matmul(device, square, wide, square)
    with pytest.raises(UserError, match="float32, float64, float32"):
        matmul(device, square, doubles, square)
    with pytest.raises(UserError, match="allowed are auto, row"):
        matmul(device, square, square, wide.device.buffer((4, 4)), variant="fastest")
    with pytest.raises(UserError, match="2-D"):
        matmul(device, device.buffer(4), square, square)
    with pytest.raises(UserError, match="allowed are set, add, subtract"):
        matmul(device, square, square, device.buffer((4, 4)), store="times")
