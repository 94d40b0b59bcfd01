"""Matrix products: every rung against float64 NumPy, any shape, transposed operands, windows, and mistakes told."""

import numpy as np
import pytest

from renderer.bench.cases import kernel_cases, tables
from renderer.errors import UserError
from renderer.numerics.matmul import Matrix, autotuned, best, candidates, ladder, matrix_of, multiply, product
from renderer.paths import ROOT

SHAPES = [(1, 1, 1), (5, 7, 3), (64, 64, 64), (33, 130, 65), (128, 128, 40)]
RUNGS = {**ladder(), **{rung.name: rung for rung in candidates("f4")}}


def operands(device, rng, shape, dtype, transpose_a=False, transpose_b=False):
    rows, columns, inner = shape
    a = rng.standard_normal((inner, rows) if transpose_a else (rows, inner)).astype(dtype)
    b = rng.standard_normal((columns, inner) if transpose_b else (inner, columns)).astype(dtype)
    wanted = (a.T if transpose_a else a).astype("f8") @ (b.T if transpose_b else b).astype("f8")
    return device.buffer(a.shape, dtype).write(a), device.buffer(b.shape, dtype).write(b), wanted


def close(found, wanted, inner):
    """Within the rounding of a sum of `inner` products of standard normal numbers."""
    epsilon = np.finfo(found.dtype).eps
    return np.abs(found - wanted).max(initial=0) <= 8 * epsilon * max(1, inner)


@pytest.mark.parametrize("name", RUNGS)
def test_every_rung_equals_numpy(device, rng, name):
    rung = RUNGS[name]
    if not rung.fits(device):
        pytest.skip("a rung for processors of one lane")
    fresh = tuple(int(n) for n in rng.integers(1, 90, 3))
    for shape in (SHAPES[-1], fresh):
        a, b, wanted = operands(device, rng, shape, "f4")
        out = device.buffer(wanted.shape).fill(0xFF)  # NaNs, so that an element left out is seen
        multiply(device, a, b, out, rung)
        assert close(out.read(), wanted, shape[2]), (name, shape)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_best_takes_any_shape_and_transposed_operands(device, rng, dtype, transposed):
    if dtype == "f8" and not device.properties.has_fp64:
        pytest.skip("no float64 on this device")
    for shape in (*SHAPES, (200, 37, 300)):
        a, b, wanted = operands(device, rng, shape, dtype, *transposed)
        out = device.buffer(wanted.shape, dtype).fill(0xFF)
        multiply(device, a, b, out, "best", *transposed)
        assert close(out.read(), wanted, shape[2]), shape


@pytest.mark.parametrize("name", ["tiles", "each4", "64x64 staged"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rungs_take_doubles_and_transposed_operands(device, rng, name, dtype):
    rungs = {**ladder(), **{rung.name: rung for rung in candidates(dtype)}}
    rung = rungs.get(name, candidates(dtype)[-1])
    for transposed in ((True, False), (False, True), (True, True)):
        a, b, wanted = operands(device, rng, (68, 36, 100), dtype, *transposed)
        out = device.buffer(wanted.shape, dtype).fill(0xFF)
        multiply(device, a, b, out, rung, *transposed)
        assert close(out.read(), wanted, 100), transposed


@pytest.mark.parametrize("store", ["set", pytest.param("add", marks=pytest.mark.slow), "subtract"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_windows_of_larger_matrices(device, rng, store, dtype):
    """C -= A B on windows, stored by rows or by columns, leaves everything outside the window as it was."""
    rungs = ["best", candidates(dtype)[-1]]
    rungs += [r for r in candidates(dtype) if r.name == "64x64 staged" and store == "subtract"]
    for rung in rungs:
        for turned in ((False, False, False), (True, False, True), (True, True, False)):
            m, n, k = (int(x) for x in rng.integers(1, 80, 3))
            host, windows = [], []
            for (rows, columns), flip in zip([(m, k), (k, n), (m, n)], turned, strict=True):
                stored = (columns, rows) if flip else (rows, columns)
                start, stride = int(rng.integers(0, 9)), stored[1] + int(rng.integers(0, 9))
                memory = rng.standard_normal(start + stored[0] * stride).astype(dtype)
                windows.append(
                    Matrix(device.buffer(memory.size, dtype).write(memory), rows, columns, stride, start, flip)
                )
                host.append(memory)
            a, b, c = (_window(memory, w) for memory, w in zip(host, windows, strict=True))
            change = a.astype("f8") @ b.astype("f8")
            wanted = {"set": change, "add": c + change, "subtract": c - change}[store]
            multiply(device, *windows, rung, store=store)
            after = windows[2].buffer.read()
            assert close(_window(after, windows[2]), wanted, k)
            _window(after, windows[2])[:] = c
            assert np.array_equal(after, host[2]), "written outside the window"


def _window(memory: np.ndarray, w: Matrix) -> np.ndarray:
    """The view of host memory that the Matrix describes."""
    rows, columns = (w.columns, w.rows) if w.transposed else (w.rows, w.columns)
    strides = (w.stride * memory.itemsize, memory.itemsize)
    view = np.lib.stride_tricks.as_strided(memory[w.start :], (rows, columns), strides)
    return view.T if w.transposed else view


def test_staged_takes_doubles(device, rng):
    a, b, wanted = operands(device, rng, (70, 130, 20), "f8")
    out = device.buffer(wanted.shape, "f8").fill(0xFF)
    multiply(device, a, b, out, "staged")
    assert close(out.read(), wanted, 20)


def test_empty_products(device):
    out = device.buffer((3, 5)).fill(0xFF)
    multiply(device, device.buffer((3, 0)), device.buffer((0, 5)), out)
    assert not out.read().any()
    multiply(device, device.buffer((0, 4)), device.buffer((4, 5)), device.buffer((0, 5)))


def test_the_same_product_has_the_same_bits(device, rng):
    a, b, wanted = operands(device, rng, (96, 64, 128), "f4")
    rung = best(device, 96, 64, "f4") if device.properties.scalar_threads else candidates("f4")[-1]
    out = device.buffer(wanted.shape)
    launch = product(device, a, b, out, rung)
    launch()
    first = out.read()
    out.fill(0xFF)
    launch()
    assert np.array_equal(out.read(), first)


def test_autotuned_is_a_candidate_and_right(device, rng):
    a, b, wanted = operands(device, rng, (70, 50, 30), "f4")
    out = device.buffer(wanted.shape)
    multiply(device, a, b, out, "autotuned")
    assert close(out.read(), wanted, 30)
    rung = autotuned(device, matrix_of(a), matrix_of(b), matrix_of(out))
    assert rung.name in {r.name for r in candidates("f4")} | {"panels"}


def test_bench_prints_the_table_of_the_thesis(gpu):
    kernel_cases(ROOT / "tests" / "fps" / "products.py", gpu)
    cases = [("products/thesis/tile=8/tiles", 12.34), ("products/best/float32/size=512", 560.0)]
    records = [{"case": case, "rate": rate, "peer": {"name": "vendor", "ratio": 0.5}} for case, rate in cases]
    rows = [line.split() for line in next(tables([*records, {"case": "sums/fast", "rate": 1.0}])).splitlines()[1:]]
    assert rows[0] == ["tiles", "6.66", "0.0", "6.93", "12.3", "7.50", "0.0"]
    assert rows[1:] == [["best", "rung", "560.0"], ["vendor", "1120.0"]]
    assert not list(tables([{"case": "sums/fast", "rate": 1.0}]))


def test_mistakes_are_sentences(device):
    square, wide, doubles = device.buffer((4, 4)), device.buffer((4, 5)), device.buffer((4, 4), "f8")
    with pytest.raises(UserError, match="do not fit"):
        multiply(device, square, wide, square)
    with pytest.raises(UserError, match="float32, float64, float32"):
        multiply(device, square, doubles, square)
    with pytest.raises(UserError, match="allowed are best, autotuned, row"):
        multiply(device, square, square, wide.device.buffer((4, 4)), rung="fastest")
    with pytest.raises(UserError, match="2-D"):
        multiply(device, device.buffer(4), square, square)
    with pytest.raises(UserError, match="allowed are set, add, subtract"):
        multiply(device, square, square, device.buffer((4, 4)), store="times")
