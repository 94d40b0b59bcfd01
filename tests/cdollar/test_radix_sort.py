"""Sorting and sums by key as GPUs with warps do them, on the emulated CUDA machine: NumPy is the witness."""

import platform
import shutil
import sys

import numpy as np
import pytest

from renderer.cdollar.targets.primitive_kernels import PrimitiveKernels
from renderer.gpu.radix_sort import GROUP_SIZE, ONESWEEP_ITEMS, RadixSort, has_onesweep
from tests import emulated
from tests.emulated import compiler

pytestmark = [
    pytest.mark.slow,  # g++ compiles each kernel in seconds
    pytest.mark.skipif(
        (sys.platform, platform.machine()) != ("linux", "x86_64") or not shutil.which(compiler.COMPILER),
        reason="no C++ compiler for x86-64 Linux here",
    ),
]
TILE = GROUP_SIZE * ONESWEEP_ITEMS
COUNTS = [1, 31, TILE, TILE + 1, 5 * TILE - 77]


@pytest.fixture(params=[False, True], ids=["plain", "races"])
def cuda(request, rng):
    return emulated.cuda_machine(1, int(rng.integers(1 << 31)), request.param).CudaDevice(0)


def primitives(device, strict=False):
    made = PrimitiveKernels(device, lambda kernel, threads, arguments: kernel(threads, *arguments), strict)
    assert has_onesweep(device, 1)
    return made


@pytest.mark.parametrize("count", COUNTS)
def test_one_pass_a_digit_sorts_stably(cuda, rng, count):
    make = primitives(cuda)
    a = rng.integers(-20, 20, count).astype("f4") / 4
    for number in (np.nan, np.inf, -np.inf, -0.0):
        a[rng.random(count) < 0.05] = number
    k = rng.integers(-(2**31), 2**31, count).astype("i4")
    given, keys, unsigned = (cuda.buffer(count, x.dtype).write(x) for x in (a, k, k.view("u4")))
    assert np.array_equal(make.sort(given, count, "float", False).read(), np.sort(a), equal_nan=True)
    assert np.array_equal(make.sort(given, count, "float", True).read(), np.argsort(a, kind="stable"))
    assert np.array_equal(make.sort(keys, count, "int", False).read(), np.sort(k))
    assert np.array_equal(make.sort(unsigned, count, "uint", True).read(), np.argsort(k.view("u4"), kind="stable"))


@pytest.mark.parametrize("count", COUNTS)
def test_morton_codes_are_sorted_in_place_beside_their_indices(cuda, rng, count):
    codes = rng.integers(0, 1 << 30, count, "u4") & 0x3FFF00FF  # equal digits in a pass, equal codes
    sort, indices = RadixSort(cuda, count, "elements and indices"), cuda.buffer(count, "u4")
    for _ in range(2):
        buffer = cuda.buffer(count, "u4").write(codes)
        sort(buffer, elements_out=buffer, values_out=indices)
        order = np.argsort(codes, kind="stable")
        assert np.array_equal(indices.read(), order) and np.array_equal(buffer.read(), codes[order])


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("bins", [1, 50, 6000])
def test_sums_by_key_keep_the_order_of_elements_if_strict(cuda, rng, count, bins):
    k, a = rng.integers(-2, bins + 2, count).astype("i4"), rng.standard_normal(count).astype("f4")
    k[: count // 3] = np.sort(k[: count // 3])  # whole warps of one key
    kept, expected = (k >= 0) & (k < bins), np.zeros(bins, "f4")
    np.add.at(expected, k[kept], a[kept])
    keys, values, sizes = cuda.buffer(count, "i4").write(k), cuda.buffer(count, "f4").write(a), (count, bins, 0)
    for strict in (True, False):
        sums = primitives(cuda, strict).scatter("scatter_add", keys, values, sizes, "float").read()
        assert np.array_equal(sums, expected) if strict else np.allclose(sums, expected, rtol=1e-4, atol=1e-3)
    counts = primitives(cuda).scatter("scatter_add", keys, None, sizes, "uint").read()
    assert np.array_equal(counts, np.bincount(k[kept], minlength=bins))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("bins", [1, 50, 6000])
def test_extremes_and_products_by_key(cuda, rng, count, bins):
    k, a = rng.integers(-2, bins + 2, count).astype("i4"), rng.standard_normal(count).astype("f4")
    a[rng.random(count) < 0.1], a[rng.random(count) < 0.1] = np.nan, -0.0
    kept = (k >= 0) & (k < bins)
    keys, sizes = cuda.buffer(count, "i4").write(k), (count, bins, 0)
    for name, function, start in (
        ("scatter_max", np.fmax, -np.inf), ("scatter_min", np.fmin, np.inf), ("scatter_mul", np.multiply, 1)
    ):  # fmt: skip
        given = np.where(np.isnan(a), 0.5, a).astype("f4") if name == "scatter_mul" else a
        expected = np.full(bins, start, "f4")
        with np.errstate(invalid="ignore"):
            function.at(expected, k[kept], given[kept])
        values = cuda.buffer(count, "f4").write(given)
        result = primitives(cuda).scatter(name, keys, values, sizes, "float").read()
        assert np.array_equal(result, expected), name
        assert name == "scatter_mul" or not np.any(np.signbit(result) & (result == 0)), name
