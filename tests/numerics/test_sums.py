"""Sums: exact ones against math.fsum, integers and NumPy twins; the same bits in any order and chunking; bad files."""

import io
import json
import math
import threading
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from importlib.util import find_spec
from operator import add

import numpy as np
import pytest

from renderer import cli
from renderer.errors import InputError
from renderer.formats.npy import NpyFile, open_npy
from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import preprocess
from renderer.numerics.sums import aggregates
from renderer.numerics.sums.by_key import reduce_by_key
from renderer.numerics.sums.device_sums import MODES, DeviceSum, array_sum
from renderer.numerics.sums.exact_sum import ExactSum, exact_sum_host, round_to_format, rounded_fraction, rounded_root
from renderer.numerics.sums.textbook import textbook_sums

MAX = np.finfo("f8").max
ULP = 2.0**-52


def ill_conditioned(rng, n: int, condition: float, dtype="f8") -> np.ndarray:
    """n numbers, shuffled, with sum |x| / |sum x| about `condition` (after Ogita, Rump, Oishi, algorithm 6.1)."""
    half = n // 2
    width = math.log2(condition) / 2
    exponents = np.rint(rng.random(half) * width)
    exponents[0], exponents[-1] = np.rint(width), 0
    numbers = list((rng.random(half) * 2 - 1) * 2.0**exponents)
    for exponent in np.rint(np.linspace(width, 0, n - half)):
        numbers.append((rng.random() * 2 - 1) * 2.0**exponent - math.fsum(numbers[-64:] if n > 500 else numbers))
    return rng.permutation(np.array(numbers)).astype(dtype)


def sets(rng) -> dict[str, np.ndarray]:
    """The test sets of float64 numbers, by name."""
    n = 3001
    anywhere = np.ldexp(rng.uniform(0.5, 1, n) * rng.choice([-1, 1], n), rng.integers(-1070, 1000, n))
    pairs = rng.standard_normal(n) * 10.0 ** rng.integers(-200, 200, n)
    return {
        "condition 1e10": ill_conditioned(rng, n, 1e10),
        "condition 1e60": ill_conditioned(rng, 400, 1e60),
        "sine": np.sin(2 * np.pi * np.arange(n) / n),
        "any exponent": anywhere,
        "positive": np.abs(anywhere),
        "pairs": rng.permutation(np.concatenate([pairs, -pairs])),
        "telescoping": np.tile([1e16, 1.0, -1e16], 1000),
        "gammapy": np.tile([1e10, -1e10, 1e-6], 1000),
        "overflow on the way": np.tile([MAX, MAX, -MAX, -MAX, 1.0], 100),
        "largest": np.array([MAX, 2.0**969, 2.0**969 * (1 - 2.0**-53)]),
        "subnormal": rng.integers(-(2**50), 2**50, n) * 5e-324,
        "ties": np.array([1.0, ULP / 2, 0.0]),
        "above a tie": np.array([1.0, ULP / 2, 2.0**-1074]),
        "below a tie": np.array([1.0, ULP / 2, -(2.0**-1074)]),
        "tie of odd": np.array([1 + ULP, ULP / 2]),
        "zeros": np.array([0.0, -0.0]),
        "one": np.array([-1.5]),
    }


def same(a: float, b: float) -> bool:
    """Equal as bits, with every nan the same."""
    return math.isnan(a) and math.isnan(b) or a == b and math.copysign(1, a) == math.copysign(1, b)


@pytest.fixture(params=["own lanes", pytest.param("many lanes", marks=pytest.mark.slow)])
def lanes(request, device, monkeypatch):
    """The device, and the same device with the launch plans of a GPU, which a CPU can run too, but slowly."""
    if request.param == "many lanes" and device.properties.scalar_threads:
        monkeypatch.setattr(device, "properties", replace(device.properties, warp_size=32))
    return device


def test_every_plan_is_exact(lanes, rng):
    for name, numbers in sets(rng).items():
        assert array_sum([lanes], numbers) == exact_sum_host(numbers), name
        backwards = array_sum([lanes], numbers[::-1].copy(), "reproducible").exact()
        assert array_sum([lanes], numbers, "reproducible").exact() == backwards, name
        single = np.clip(numbers, -1e38, 1e38).astype("f4")
        assert array_sum([lanes], single) == exact_sum_host(single), name
        assert array_sum([lanes], single, magnitudes=True) == exact_sum_host(np.abs(single)), name
    x, y = rng.standard_normal((2, 9001)) * 1e-150
    wanted = sum(Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True))
    assert array_sum([lanes], x, y=y).fraction() == wanted


@pytest.mark.parametrize("lanes", ["own lanes", "many lanes"], indirect=True)
def test_floats_beyond_a_window_of_exponents_are_exact(lanes, rng):
    """Ramps, outliers, few zeros and many, what is not finite: whatever keeps floats out of a window of exponents."""
    n = 150_003
    plain = rng.random(n, "f4") + np.float32(0.5)
    sparse = np.where(rng.random(n) < 0.9, 0, plain).astype("f4")
    outliers = plain.copy()
    outliers[rng.integers(0, n, 40)] = rng.choice(np.array([1e30, -1e30, 1e-40, 1e-30, np.float32(-0.0)], "f4"), 40)
    rising = np.ldexp(plain, np.linspace(-148, 120, n).astype(int)).astype("f4")
    pairs = np.concatenate([rising, -rising])
    everywhere = rng.integers(0, 2**32, n, "u4").view("f4")
    everywhere = np.where(np.isfinite(everywhere), everywhere, 1).astype("f4")
    infinite = np.where(rng.random(n) < 1e-4, rng.choice(np.array([np.inf, -np.inf, np.nan], "f4"), n), everywhere)
    every = (sparse, outliers, rising, rising[::-1].copy(), rng.permutation(pairs), everywhere, infinite, -0.0 * plain)
    for numbers in every:
        accumulator = DeviceSum(lanes, "f4", "exact")
        accumulator.plan = replace(accumulator.plan, groups=1)  # so that a thread takes many tiles
        accumulator.add(numbers.size, lanes.buffer(numbers.shape).write(numbers))
        assert accumulator.read_and_reset() == exact_sum_host(numbers)


def test_doubles_and_products_of_any_exponent_are_exact(lanes, rng):
    """Many terms that expansions cannot hold: a work-item changes to one sum per exponent."""

    def summed_by_one_group(x, y=None):
        accumulator = DeviceSum(lanes, x.dtype, "exact", y is not None)
        accumulator.plan = replace(accumulator.plan, groups=1)
        buffers = [lanes.buffer(a.shape, a.dtype).write(a) for a in (x, y) if a is not None]
        accumulator.add(x.size, *buffers)
        return accumulator.read_and_reset()

    n = 20_003
    everywhere = rng.integers(0, 2**64, n, "u8").view("f8")
    everywhere = np.where(np.isfinite(everywhere), everywhere, -0.0)
    infinite = np.where(rng.random(n) < 1e-3, rng.choice(np.array([np.inf, -np.inf, np.nan]), n), everywhere)
    for numbers in (everywhere, infinite, np.abs(everywhere), np.full(n, -0.0)):
        assert summed_by_one_group(numbers) == exact_sum_host(numbers)
    x, y = (np.ldexp(rng.standard_normal(n), rng.integers(-140, 60, n)).astype("f4") for _ in "xy")
    assert summed_by_one_group(x, y).fraction() == exact_sum_host(x.astype("f8") * y).fraction()
    x, y = (np.ldexp(rng.standard_normal(3000), rng.integers(-700, 500, 3000)) for _ in "xy")
    wanted = sum(Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True))
    assert summed_by_one_group(x, y).fraction() == wanted


def test_bins_keep_the_sign_of_zero_and_every_exponent(emulated_gpu, rng):
    """On an emulated GPU: one zero among negative ones at each number of a tile, then doubles of any exponent."""
    accumulator = DeviceSum(emulated_gpu, "f8", "exact")
    accumulator.plan = replace(accumulator.plan, groups=1)
    everywhere = rng.integers(0, 2**64, 1500, "u8").view("f8")
    everywhere = np.where(np.isfinite(everywhere), everywhere, -0.0)
    for numbers in (*np.where(np.eye(9) > 0, 0.0, -0.0), np.full(9, -0.0), everywhere):
        accumulator.add(numbers.size, emulated_gpu.buffer(numbers.size, "f8").write(np.ascontiguousarray(numbers)))
        assert accumulator.read_and_reset() == exact_sum_host(numbers)


@pytest.mark.slow
def test_doubles_of_any_exponent_go_to_bins(emulated_gpu, rng):
    """On an emulated GPU: runs of additions long enough to propagate carries, zeros, what is not finite."""
    n = 30_003
    everywhere = rng.integers(0, 2**64, n, "u8").view("f8")
    everywhere = np.where(np.isfinite(everywhere), everywhere, -0.0)
    infinite = np.where(rng.random(n) < 1e-3, rng.choice(np.array([np.inf, -np.inf, np.nan]), n), everywhere)
    sparse = np.where(rng.random(n) < 0.5, 0.0, rng.standard_normal(n))
    subnormal = rng.integers(0, 2**53, n, "u8").view("f8") * rng.choice([-1, 1], n)
    zeros = np.append(np.full(n, -0.0), 0.0)
    accumulator = DeviceSum(emulated_gpu, "f8", "exact")
    assert accumulator.plan.group % 128 == 0
    accumulator.plan = replace(accumulator.plan, groups=1)
    for numbers in (everywhere, infinite, sparse, subnormal, zeros[:n], zeros):
        accumulator.add(numbers.size, emulated_gpu.buffer(numbers.size, "f8").write(numbers))
        assert accumulator.read_and_reset() == exact_sum_host(numbers)
    long_run = np.tile([MAX, -(2.0**-1074), 1.0, 2.0**31 * (1 + ULP)], 384 * 8 * 70)  # beyond MAX_ADDITIONS of a thread
    accumulator.add(long_run.size, emulated_gpu.buffer(long_run.size, "f8").write(long_run))
    assert accumulator.read_and_reset().fraction() == sum(map(Fraction, long_run[:4])) * (long_run.size // 4)


@pytest.mark.slow
def test_products_of_any_exponent_go_to_bins(emulated_gpu, rng):
    for low, high in ((-700, 400), (-200, 200)):
        x, y = (np.ldexp(rng.standard_normal(9000), rng.integers(low, high, 9000)) for _ in "xy")
        x[::5], y[::7], x[::11] = 0, -0.0, 1e-300
        wanted = sum(Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True))
        assert array_sum([emulated_gpu], x, y=y).fraction() == wanted
    x, y = (np.ldexp(rng.standard_normal(9000), rng.integers(-140, 60, 9000)).astype("f4") for _ in "xy")
    x[::5] = 0
    assert array_sum([emulated_gpu], x, y=y).fraction() == exact_sum_host(x.astype("f8") * y).fraction()
    assert math.copysign(1, array_sum([emulated_gpu], -0.0 * np.ones(9), y=np.ones(9)).rounded()) == -1
    assert math.isnan(array_sum([emulated_gpu], np.array([0.0, 1]), y=np.array([np.inf, 1])).rounded())


@pytest.mark.slow
@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="no NVRTC")
@pytest.mark.parametrize("dot", [False, True])
def test_sums_by_bins_compile_for_cuda(dot):
    constants = dict(
        ELEMENT="double", DOT=int(dot), ABSOLUTE=0, SINGLE=0, BLOCKED_ARRANGEMENT=0, LIMBS=136,
        LIMB_BASE=-2176, STRICT=1, EXACT_MIN_GROUPS_PER_SM=2, GROUP_SIZE=384,
    )  # fmt: skip
    for file in ("numerics/sum_exact.cu", "numerics/sum_bins.cu"):
        assert nvrtc.compile_cubin(preprocess(file, **constants), "sm_90", file, strict=True)


@pytest.mark.parametrize("lanes", ["own lanes", "many lanes"], indirect=True)
def test_a_long_run_of_floats_is_exact(lanes):
    """More of the largest floats of a window than a double holds together with the smallest of it."""
    numbers = np.full(256 * 8 * 1400, np.float32(32) * (1 - np.float32(2.0**-24)), "f4")
    numbers[::5] = 2.0**-15 * (1 + np.float32(2.0**-23))
    accumulator = DeviceSum(lanes, "f4", "exact")
    accumulator.plan = replace(accumulator.plan, groups=1)
    accumulator.add(numbers.size, lanes.buffer(numbers.shape).write(numbers))
    assert accumulator.read_and_reset() == exact_sum_host(numbers)


def test_exact_equals_fsum_on_every_set(device, rng):
    for name, numbers in sets(rng).items():
        if name == "overflow on the way":
            wanted = 100.0
        elif name == "largest":
            wanted = MAX  # MAX + 2^970 (1 - 2^-54) lies just below the tie to infinity
        else:
            wanted = math.fsum(numbers)
        found = array_sum([device], numbers)
        assert same(found.rounded(), wanted), name
        assert found == exact_sum_host(numbers), name


def test_float32_is_rounded_once(device, rng):
    tie = np.array([1.0, 2.0**-24, 2.0**-60], "f4")  # double rounding would give 1
    assert array_sum([device], tie).rounded("f4") == 1 + 2.0**-23
    assert array_sum([device], -tie).rounded("f4") == -1 - 2.0**-23
    bits = rng.integers(0, 2**32, 5000, "u4").view("f4")
    bits = bits[np.isfinite(bits)]
    assert array_sum([device], bits).rounded() == math.fsum(bits.astype("f8"))
    assert math.isinf(array_sum([device], np.full(3, np.finfo("f4").max)).rounded("f4"))
    assert array_sum([device], np.full(3, np.finfo("f4").max)).rounded() == 3 * float(np.finfo("f4").max)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("mode", ["exact", "reproducible"])
def test_what_is_not_finite(device, dtype, mode):
    def value(*numbers):
        return array_sum([device], np.array(numbers * 9, dtype), mode).rounded()

    inf, nan = np.inf, np.nan
    assert value(1.0, inf) == inf and value(-inf, 1e4) == -inf
    assert math.isnan(value(inf, -inf)) and math.isnan(value(nan, 1.0)) and math.isnan(value(inf, nan))
    if mode == "exact":
        assert same(value(-0.0), -0.0) and same(value(-0.0, 0.0), 0.0) and same(value(1.0, -1.0), 0.0)


def test_no_numbers_are_zero(device):
    assert all(same(array_sum([device], np.zeros(0, "f4"), mode).rounded(), 0.0) for mode in MODES)


def some_slow(quick: str, slow: str) -> list:
    """Parameters of which each compiles separate kernels; only the `quick` ones run in the quick tests."""
    return [*quick.split(), *(pytest.param(name, marks=pytest.mark.slow) for name in slow.split())]


@pytest.mark.parametrize("dtype", some_slow("i2 u8 ?", "i1 u1 u2 i4 u4 i8"))
def test_integers(device, rng, dtype):
    numbers = np.frombuffer(rng.bytes(8 * 2003), "u1" if dtype == "?" else dtype)
    numbers = numbers > 99 if dtype == "?" else numbers
    assert array_sum([device], numbers).significand == sum(int(n) for n in numbers)
    assert array_sum([device], numbers, y=numbers[::-1].copy()).significand == sum(
        int(a) * int(b) for a, b in zip(numbers, numbers[::-1], strict=True)
    )
    if dtype in ("i8", "u8", "i1"):
        worst = np.full(4097, np.iinfo(dtype).min if dtype[0] == "i" else np.iinfo(dtype).max, dtype)
        assert array_sum([device], worst, y=worst).significand == 4097 * int(worst[0]) ** 2
        assert array_sum([device], worst).significand == 4097 * int(worst[0])


def test_float16(device, rng):
    numbers = np.frombuffer(rng.bytes(9001 * 2), "f2")
    numbers = numbers[np.isfinite(numbers)]
    found = array_sum([device], numbers)
    assert found == exact_sum_host(numbers) and found.rounded() == math.fsum(numbers.astype("f8"))
    assert math.isinf(array_sum([device], np.full(2, 65504, "f2")).rounded("f2"))
    square = sum(Fraction(float(n)) ** 2 for n in numbers)
    assert array_sum([device], numbers, y=numbers).fraction() == square


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("mode", ["exact", "reproducible"])
def test_order_chunks_and_threads_leave_the_bits(device, rng, dtype, mode):
    """Any permutation, any block, two devices at once: one answer."""
    spread = 60 if dtype == "f4" else 900
    numbers = np.ldexp(rng.standard_normal(20_011), rng.integers(-spread, spread, 20_011)).astype(dtype)
    wanted = array_sum([device], numbers, mode)
    for block in (1, 7, 333, 4096, int(rng.integers(2, 20_011))):
        some = numbers[: 100 * block] if block < 10 else numbers  # a launch or more for each block
        first = array_sum([device], some, mode)
        shuffled = array_sum([device, device], rng.permutation(some), mode, chunk=block)
        assert same(first.rounded(), shuffled.rounded()), block
        assert first.rounded(dtype) == shuffled.rounded(dtype)
    assert wanted.rounded() == pytest.approx(math.fsum(numbers.astype("f8")), rel=1e-9)


def test_modes_agree_within_their_promises(device, rng):
    for dtype, fast, cut in (("f4", 1e-5, 2.0**-38), ("f8", 1e-13, 2.0**-78)):
        numbers = rng.random(300_007).astype(dtype)
        exact = array_sum([device], numbers).fraction()
        assert abs(array_sum([device], numbers, "fast").rounded() / float(exact) - 1) < fast
        error = abs(array_sum([device], numbers, "reproducible").exact().fraction() - exact)
        assert error <= numbers.size * cut * Fraction(float(numbers.max()))


def test_reproducible_takes_the_whole_range(device, rng):
    """Bins at the top of the range are scaled; slices of huge and of tiny numbers meet the exact sum."""
    for numbers in (
        [2.0**1023, -(2.0**1010), 2.0**1004, 1.0],
        [5e-324, -1e-310, 3e-308],
        [2.0**1005, -(2.0**1005), 7.0],
    ):
        found = array_sum([device], np.array(numbers), "reproducible").exact().fraction()
        wanted = sum(Fraction(n) for n in numbers)
        smallest = Fraction(2) ** -1073  # the odd bit of a subnormal number is worth one unit of the lowest bin
        assert abs(found - wanted) <= len(numbers) * (Fraction(max(abs(n) for n in numbers)) / 2**78 + smallest)


def test_misaligned_and_strided_arrays(device, rng):
    numbers = rng.standard_normal((64, 33))
    assert array_sum([device], numbers[3:, ::2]).rounded() == math.fsum(numbers[3:, ::2].ravel())
    buffer = device.buffer(1000, "f8").write(np.arange(1000.0))
    accumulator = DeviceSum(device, "f8", "exact")
    accumulator.add(999, buffer)
    accumulator.add(10, buffer)
    assert accumulator.read_and_reset().rounded() == 998 * 999 / 2 + 45
    assert accumulator.read_and_reset().rounded() == 0


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_dot_products_are_rounded_once(device, rng, dtype):
    n, spread = 3007, 40 if dtype == "f4" else 700
    x = np.ldexp(rng.standard_normal(n), rng.integers(-spread, spread // 3, n)).astype(dtype)
    y = np.ldexp(rng.standard_normal(n), rng.integers(-spread, spread // 3, n)).astype(dtype)
    wanted = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y, strict=True))
    assert array_sum([device], x, y=y).fraction() == wanted
    assert aggregates.dot([device], x, y) == rounded_fraction(wanted)
    hard = np.array([MAX, 5e-324, 1e-300, np.inf, 0.0] if dtype == "f8" else [3e38, 1e-45, 1e-30, np.inf, 0.0], dtype)
    assert aggregates.norm([device], hard) == np.inf
    assert math.isnan(aggregates.dot([device], hard, np.zeros(5, dtype)))  # infinity times zero
    assert same(aggregates.dot([device], np.zeros(5, dtype), -np.ones(5, dtype)), -0.0)
    finite = hard[[0, 1, 2, 4]]
    assert array_sum([device], finite, y=finite).fraction() == sum(Fraction(float(v)) ** 2 for v in finite)


@pytest.mark.parametrize("dtype", some_slow("f2 f4 f8 i2 u8", "i1 i4 i8 u1 u2 u4"))
def test_mean_variance_norm_and_extremes(device, rng, dtype):
    numbers = (rng.standard_normal(5003) * 50 + 100).astype(dtype)
    exact = [Fraction(float(v)) for v in numbers]
    middle = sum(exact) / len(exact)
    assert aggregates.mean([device], numbers) == float(middle)
    assert aggregates.variance([device], numbers, 1) == float(sum((v - middle) ** 2 for v in exact) / (len(exact) - 1))
    assert aggregates.norm([device], numbers) == pytest.approx(np.linalg.norm(numbers.astype("f8")), rel=1e-15)
    assert aggregates.minmax([device], numbers) == (numbers.min(), numbers.max())


def test_extremes_and_variances_at_the_edges(device):
    assert all(math.isnan(v) for v in aggregates.minmax([device], np.array([1.0, np.nan, 2.0])))
    assert aggregates.minmax([device], np.array([np.inf, -np.inf], "f2")) == (-np.inf, np.inf)
    assert aggregates.variance([device], np.full(1000, 1e9 + 0.1)) == 0.0


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i2", "u8", "i8"])
def test_sums_by_key(rng, dtype):
    n = 4001
    keys = rng.integers(-5, 40, n)
    numbers = np.frombuffer(rng.bytes(n * int(dtype[1])), dtype)
    if dtype[0] == "f":
        numbers = np.where(np.isfinite(numbers), numbers, 1).astype(dtype)
    groups = reduce_by_key(keys, numbers, 1500)  # several chunks, which share keys
    assert groups.keys.tolist() == sorted(set(keys.tolist())) and groups.counts.sum() == n
    for i, key in enumerate(groups.keys):
        own = numbers[keys == key]
        assert groups.totals[i] == exact_sum_host(own), key
        assert groups.minimum[i] == own.min() and groups.maximum[i] == own.max() and groups.counts[i] == own.size
    wanted = [exact_sum_host(numbers[keys == key]) for key in groups.keys]
    assert groups.sums() == [t.rounded() if dtype[0] == "f" else t.significand for t in wanted]
    assert groups.rounded_means().tolist() == [rounded_fraction(t.fraction() / t.count) for t in wanted]


@pytest.mark.parametrize("spread", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (12, 300))])
def test_sums_by_many_keys_are_those_of_fsum(rng, spread):
    """Keys of a few numbers and of many, as near to one another as they cancel; a wide and a narrow range of keys."""
    n = 20_000
    keys = np.where(
        rng.random(n) < 0.5, rng.integers(0, 9, n), rng.integers(-(2**62), 2**62, n) >> rng.integers(0, 60, n)
    )
    numbers = rng.standard_normal(n) * 10.0 ** rng.integers(-spread, spread + 1, n)
    numbers[::3] = -np.roll(numbers, 1)[::3]
    keys[::3] = np.roll(keys, 1)[::3]
    for chunk in (n, 3001):
        groups = reduce_by_key(keys, numbers, chunk)
        own = {key: [] for key in groups.keys.tolist()}
        for key, number in zip(keys.tolist(), numbers.tolist(), strict=True):
            own[key].append(number)
        assert groups.sums() == [math.fsum(v) for v in own.values()]
        fractions = [sum(map(Fraction, v)) / len(v) for v in own.values()]
        assert groups.rounded_means().tolist() == [float(f) for f in fractions]


@pytest.mark.parametrize("count", [3, 5, 6, 7, 10])
def test_means_halfway_between_two_doubles_round_to_even(count):
    """Means of 1 + k 2^-53 for odd k, of numbers whose sum is no double."""
    odd = np.arange(1, 64, 2)
    numbers = np.zeros((len(odd), count))
    numbers[:, 0], numbers[:, 1] = count, count * odd * 2.0**-53
    wanted = [float(1 + Fraction(int(k), 2**53)) for k in odd]
    assert reduce_by_key(np.repeat(np.arange(len(odd)), count), numbers.ravel()).rounded_means().tolist() == wanted


def test_sums_by_key_that_overflow_or_are_subnormal():
    keys = np.array([1, 1, 1, 2, 2, 3, 3, 4, 4, 4])
    numbers = np.array([1e308, 1e308, -1e308, 1e308, 1e308, 5e-324, -1e-323, 1.0, 2.0**-53, 2.0**-106])
    groups = reduce_by_key(keys, numbers)
    assert groups.sums() == [1e308, math.inf, -5e-324, 1 + 2.0**-52]
    assert groups.rounded_means().tolist()[2:] == [
        float(Fraction(-5e-324) / 2),
        float((1 + Fraction(2) ** -53 + Fraction(2) ** -106) / 3),
    ]
    assert reduce_by_key(np.zeros(0, int), np.zeros(0)).sums() == []


def test_keys_with_numbers_that_are_not_finite():
    keys = np.array([0, 0, 1, 1, 2, 3], "u1")
    sums = reduce_by_key(keys, np.array([1, np.inf, np.inf, -np.inf, np.nan, -0.0], "f2")).sums()
    assert sums[0] == np.inf and math.isnan(sums[1]) and math.isnan(sums[2]) and same(sums[3], -0.0)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_halving_stays_within_its_bound(device, rng, dtype, monkeypatch):
    numbers = ill_conditioned(rng, 5001, 1e6, dtype)
    monkeypatch.setattr(aggregates, "chunk_length", lambda *_: 1000)
    found = aggregates.pairwise_sum(device, numbers)
    exact = sum(Fraction(float(n)) for n in numbers)
    assert found.error == float(abs(Fraction(found.value) - exact))
    assert 0 < found.error <= found.bound and found.depth == 13
    whole = aggregates.pairwise_sum(device, np.ones(4099, dtype))
    assert whole.value == 4099 and whole.error == 0 < whole.bound


@pytest.mark.parametrize("dtype", ["f4", pytest.param("f8", marks=pytest.mark.slow)])
def test_sums_of_the_textbooks(device, rng, dtype):
    """Each method as written, in NumPy's scalars; errors by fractions."""
    numbers = ill_conditioned(rng, 1501, 1e9, dtype)
    found = {sums.method: sums for sums in textbook_sums(device, numbers)}
    zero = numbers.dtype.type(0)
    plain = kahan = lost = neumaier = rest = zero
    for number in numbers:
        plain = plain + number
        corrected = number - lost
        total = kahan + corrected
        lost, kahan = (total - kahan) - corrected, total
        total = neumaier + number
        rest = rest + ((neumaier - total) + number if abs(neumaier) >= abs(number) else (number - total) + neumaier)
        neumaier = total
    assert found["one after another"].value == plain and found["Kahan"].value == kahan
    assert found["Neumaier"].value == neumaier + rest and found["pairwise (NumPy)"].value == np.sum(numbers)
    exact = sum(Fraction(float(number)) for number in numbers)
    for sums in found.values():
        assert sums.error == rounded_fraction(abs(Fraction(sums.value) - exact))
    assert found["exact, rounded once"].error <= found["Neumaier"].error <= found["one after another"].error


def test_comparison_is_printed(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.array([1.0, 1e100, 1.0, -1e100]))
    assert cli.main(["sum", str(tmp_path / "x.npy"), "--compare"]) == 0
    out = capsys.readouterr().out
    assert "Kahan: 0.0, error 2" in out and "Neumaier: 2.0, error 0" in out
    np.save(tmp_path / "i.npy", np.arange(3))
    assert cli.main(["sum", str(tmp_path / "i.npy"), "--compare"]) == 5
    assert "takes float32 and float64" in capsys.readouterr().err


class Foreign:
    """An array of another library: nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("offset", [0, 1])
def test_arrays_of_other_libraries_are_added_where_they_are(device, rng, monkeypatch, offset):
    """With an offset the memory is not aligned as kernels read it: it is streamed then."""
    from renderer.numerics.sums import tensors

    monkeypatch.setattr(tensors, "LAUNCH", 1 << 10)
    memory = np.zeros(6016, "f8")
    start = -memory.ctypes.data // 8 % 16 + offset
    numbers = memory[start : start + 5000]
    numbers[:] = ill_conditioned(rng, 5000, 1e20, "f8")
    before = device.counters.uploads
    total = array_sum([device], Foreign(numbers))
    assert total.rounded() == math.fsum(numbers) and total.count == 5000
    assert not device.properties.scalar_threads or (device.counters.uploads == before) == (offset == 0)
    product = array_sum([device], Foreign(numbers), y=Foreign(numbers))
    assert product.fraction() == sum(Fraction(float(v)) ** 2 for v in numbers)
    with pytest.raises(InputError, match="must both be|of shape"):
        array_sum([device], Foreign(numbers), y=Foreign(numbers[:-1]))
    transposed = Foreign(numbers[:4000].reshape(40, 100).T)
    before = device.counters.uploads
    assert array_sum([device], transposed).rounded() == math.fsum(numbers[:4000])
    assert not device.properties.scalar_threads or (device.counters.uploads == before) == (offset == 0)
    squares = sum(Fraction(float(v)) ** 2 for v in numbers[:4000])
    assert array_sum([device], transposed, y=transposed).fraction() == squares
    other = numbers[:4000].reshape(100, 40)
    product = array_sum([device], transposed, y=Foreign(other))  # streamed
    assert product.fraction() == sum(
        Fraction(u) * Fraction(v) for u, v in zip(other.flat, transposed.array.flat, strict=True)
    )
    assert array_sum([device], Foreign(numbers[::3])).rounded() == math.fsum(numbers[::3])  # streamed


# ------------------------------------------------------------------------------------------------- rounding on the host
def test_rounding_equals_numpy_in_every_format(rng):
    for _ in range(300):
        units, exponent = int(rng.integers(-(2**62), 2**62)), int(rng.integers(-1140, 940))
        value = Fraction(units) * Fraction(2) ** exponent
        assert round_to_format(units, exponent) == float(value)
        near = Fraction(units) * Fraction(2) ** int(rng.integers(-200, 40))
        for dtype in ("f4", "f2"):
            found = rounded_fraction(near, dtype)
            candidates = np.array([found], dtype)
            below, above = (
                np.nextafter(candidates, -np.inf, dtype=dtype)[0],
                np.nextafter(candidates, np.inf, dtype=dtype)[0],
            )
            if all(np.isfinite([below, found, above])):
                best = min(abs(Fraction(float(v)) - near) for v in (below, found, above))
                assert abs(Fraction(found) - near) == best, dtype
    assert rounded_fraction(Fraction(1, 3)) == 1 / 3 and rounded_root(Fraction(2)) == math.sqrt(2)
    assert rounded_root(Fraction(10**400)) == 1e200 and rounded_root(Fraction(0)) == 0.0


def test_totals_add_like_integers():
    a, b = ExactSum(3, -5, 8, 2), ExactSum(1, 2, 8, 1)
    assert (a + b).fraction() == Fraction(3, 32) + 4 and a + b == b + a and (a + b).count == 3


# ------------------------------------------------------------------------------------------------------- command, files
def summed(capsys, *words) -> dict:
    capsys.readouterr()  # drops what the rng fixture printed
    assert cli.main(["sum", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_command_sums_files(tmp_path, capsys, rng):
    numbers = rng.standard_normal((300, 41)).astype("f4")
    np.save(tmp_path / "a.npy", numbers)
    for mode in MODES:
        told = summed(capsys, tmp_path / "a.npy", "--mode", mode, "--device", "cpu")
        assert told["value"] == pytest.approx(math.fsum(numbers.ravel().astype("f8")), abs=1e-2)
        assert told["mode"] == mode and told["count"] == numbers.size and told["dtype"] == "float32"
        assert told["seconds"] > 0 and told["bytes_per_second"] > 0 and len(told["devices"]) == 1
    assert summed(capsys, tmp_path / "a.npy")["value"] == math.fsum(numbers.ravel().astype("f8"))
    told = summed(capsys, tmp_path / "a.npy", tmp_path / "a.npy", "--device", "cpu", "--device", "cpu")
    assert told["value"] == 2 * math.fsum(numbers.ravel().astype("f8")) and len(told["devices"]) == 2


def test_json_holds_the_documented_keys(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.arange(9.0))
    keys = {"value", "mode", "count", "dtype", "devices", "seconds", "bytes_per_second"}
    assert keys <= summed(capsys, tmp_path / "x.npy").keys()


def test_json_of_what_is_not_finite(tmp_path, capsys):
    for number in (np.nan, np.inf, -np.inf):
        np.save(tmp_path / "x.npy", np.array([1, number]))
        value = summed(capsys, tmp_path / "x.npy", "--device", "cpu")["value"]
        assert value == repr(float(number)) and same(float(value), number)


def test_command_statistics(tmp_path, capsys, rng):
    numbers, keys = rng.standard_normal(1000), rng.integers(0, 3, 1000)
    np.save(tmp_path / "x.npy", numbers)
    np.save(tmp_path / "k.npy", keys)
    for name, value in (("mean", numbers.mean()), ("variance", numbers.var()), ("min", numbers.min())):
        found = summed(capsys, tmp_path / "x.npy", "--statistic", name)["value"]
        assert found == pytest.approx(value, rel=1e-12)
    dot = summed(capsys, tmp_path / "x.npy", tmp_path / "x.npy", "--statistic", "dot")["value"]
    assert dot == pytest.approx(numbers @ numbers, rel=1e-14)
    groups = summed(capsys, tmp_path / "x.npy", "--by", tmp_path / "k.npy")["groups"]
    assert groups["keys"] == [0, 1, 2] and groups["sums"] == [math.fsum(numbers[keys == k]) for k in range(3)]
    told = summed(capsys, tmp_path / "x.npy", "--bound")
    assert 0 <= told["pairwise_error"] <= told["pairwise_bound"]
    capsys.readouterr()
    assert cli.main(["sum", str(tmp_path / "x.npy")]) == 0
    out, err = capsys.readouterr()
    assert float(out) == math.fsum(numbers) and "GB/s" in err


@pytest.mark.parametrize(
    "layout", ["swapped", "stored", *(pytest.param(name, marks=pytest.mark.slow) for name in ("fortran", "packed"))]
)
def test_arrays_of_any_layout(tmp_path, capsys, rng, layout):
    numbers = rng.standard_normal((30, 40)) * 10.0 ** rng.integers(-30, 30, (30, 40))
    name = "x.npz" if layout in ("stored", "packed") else "x.npy"
    if layout == "fortran":
        np.save(tmp_path / name, np.asfortranarray(numbers))
    elif layout == "swapped":
        np.save(tmp_path / name, numbers.astype(">f8"))
    else:
        save = np.savez if layout == "stored" else np.savez_compressed
        save(tmp_path / name, b=numbers[:7], a=np.asfortranarray(numbers[7:].astype(">f8")))
    for statistic, value in (("sum", math.fsum(numbers.ravel())), ("max", numbers.max())):
        assert summed(capsys, tmp_path / name, "--statistic", statistic)["value"] == value
    assert summed(capsys, tmp_path / name)["count"] == numbers.size


def test_orders_that_differ_are_not_paired(tmp_path, capsys):
    np.save(tmp_path / "c.npy", np.ones((3, 4)))
    np.save(tmp_path / "f.npy", np.asfortranarray(np.ones((3, 4))))
    assert cli.main(["sum", str(tmp_path / "c.npy"), str(tmp_path / "f.npy"), "--statistic", "dot"]) == 5
    assert "f.npy: is in Fortran order" in capsys.readouterr().err
    same_order = summed(capsys, tmp_path / "f.npy", tmp_path / "f.npy", "--statistic", "dot")
    assert same_order["value"] == 12


def test_sums_of_nothing(tmp_path, capsys):
    np.save(tmp_path / "e.npy", np.zeros((0, 3)))
    np.save(tmp_path / "x.npy", np.array([2.0, 5.0]))
    assert summed(capsys, tmp_path / "e.npy")["value"] == 0
    assert summed(capsys, tmp_path / "e.npy", "--statistic", "norm")["value"] == 0
    assert summed(capsys, tmp_path / "e.npy", "--statistic", "mean")["value"] == "nan"
    assert summed(capsys, tmp_path / "e.npy", tmp_path / "x.npy", "--statistic", "max")["value"] == 5
    assert cli.main(["sum", str(tmp_path / "e.npy"), "--statistic", "min"]) == 5
    assert "they have no --statistic min" in capsys.readouterr().err


class Piped(io.BytesIO):
    """stdin's binary side, of a pipe."""

    @property
    def buffer(self):
        return self


def test_a_pipe_is_read_once(tmp_path, capsys, rng, monkeypatch):
    numbers = rng.standard_normal(1_200_000).astype(">f4")
    stream = io.BytesIO()
    np.save(stream, numbers)
    for options, value in (
        (["--device", "cpu", "--device", "cpu"], math.fsum(numbers.astype("f8"))),
        (["--statistic", "min"], numbers.min()),
    ):
        monkeypatch.setattr("sys.stdin", Piped(stream.getvalue()))
        assert summed(capsys, "-", *options)["value"] == value
    monkeypatch.setattr("sys.stdin", Piped(stream.getvalue()))
    assert cli.main(["sum", "-", "--statistic", "variance"]) == 2
    assert "stdin can be read once; allowed is one of sum, mean, min, max" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", Piped(stream.getvalue()[:-5]))
    assert cli.main(["sum", "-", "--device", "cpu", "--device", "cpu"]) == 5
    assert "stdin: ends before the 1200000 numbers" in capsys.readouterr().err


def test_statistics_run_over_all_files(tmp_path, capsys, rng):
    """Against fractions: variance with ddof, norm, extremes, and the weighted mean of two files."""
    parts = [rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n) for n in (31, 50, 7)]
    paths = [tmp_path / f"{i}.npy" for i in range(3)]
    for path, part in zip(paths, parts, strict=True):
        np.save(path, part)
    numbers = [Fraction(float(v)) for part in parts for v in part]
    mean = sum(numbers) / len(numbers)
    squares = sum((v - mean) ** 2 for v in numbers)
    found = {name: summed(capsys, *paths, "--statistic", name)["value"] for name in ("mean", "min", "max", "norm")}
    assert found["mean"] == float(mean) and found["max"] == float(max(numbers)) and found["min"] == float(min(numbers))
    assert found["norm"] == rounded_root(sum(v * v for v in numbers))
    for ddof in (0, 1):
        variance = summed(capsys, *paths, "--statistic", "variance", "--ddof", ddof)["value"]
        assert variance == float(squares / (len(numbers) - ddof))
    np.save(tmp_path / "w.npy", rng.random(31))
    weights = [Fraction(float(v)) for v in np.load(tmp_path / "w.npy")]
    weighted = sum(w * v for w, v in zip(weights, numbers[:31], strict=True)) / sum(weights)
    assert summed(capsys, paths[0], tmp_path / "w.npy", "--statistic", "weighted-mean")["value"] == float(weighted)
    assert cli.main(["sum", str(paths[0]), "--ddof", "1"]) == 2 and "only variance" in capsys.readouterr().err


@pytest.mark.slow
def test_farm_gives_statistics(tmp_path, rng, monkeypatch):
    distributed = pytest.importorskip("distributed")
    from renderer.numerics.sums import command

    numbers = rng.standard_normal(3000)
    np.save(tmp_path / "x.npy", numbers)
    monkeypatch.setattr(command, "TASK_BYTES", 8 * 777)
    files = [open_npy(tmp_path / "x.npy")]
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        for name in ("variance", "norm", "max", "dot", "weighted-mean"):
            given = files * 2 if name in command.PAIRED else files
            partials, devices = command.partials_on_farm(client, given, name)
            alone = command._partials(command.open_context().devices, given, name)
            assert len(partials) == 4 and devices
            assert command._merged_statistic(name, partials, 1) == command._merged_statistic(name, alone, 1)


def test_farm_gives_the_same_bits(tmp_path, rng, monkeypatch):
    distributed = pytest.importorskip("distributed")
    from renderer.numerics.sums import command

    numbers = np.ldexp(rng.standard_normal(5000), rng.integers(-400, 400, 5000))
    np.save(tmp_path / "x.npy", numbers)
    monkeypatch.setattr(command, "TASK_BYTES", 8 * 777)
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        for mode in ("exact", "reproducible"):
            partials, devices = command.partials_on_farm(client, [open_npy(tmp_path / "x.npy")], "sum", mode)
            alone = array_sum(command.open_context().devices, tmp_path / "x.npy", mode)
            assert reduce(add, partials).rounded() == alone.rounded() and devices


def _bad_files(folder):
    def npy(name, array, **words):
        np.save(folder / name, array, **words)
        return folder / name

    truncated = npy("truncated.npy", np.arange(100.0))
    truncated.write_bytes(truncated.read_bytes()[:-8])
    header = folder / "header.npy"
    header.write_bytes(b"\x93NUMPY\x01\x00\xff\x00" + b"{" * 255)
    text = folder / "text.npy"
    text.write_text("1 2 3")
    huge = folder / "huge.npy"
    shape = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 1024), }"
    huge.write_bytes(b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + shape.ljust(117) + b"\n")
    return {
        npy("objects.npy", np.array([1, "a", None], object), allow_pickle=True): "Python objects",
        npy("times.npy", np.ones(3, "M8[s]")): "datetime64[s]",
        npy("text-array.npy", np.array(["a"])): "can be summed",
        truncated: "truncated",
        header: "not a .npy file",
        text: "not a .npy file",
        huge: "more than memory can address",
        folder / "missing.npy": "No such file",
    }


def test_bad_files_are_told_in_a_sentence(tmp_path, capsys):
    for path, words in _bad_files(tmp_path).items():
        assert cli.main(["sum", str(path)]) == 5, path
        out, err = capsys.readouterr()
        assert words in err and path.name in err and out == "" and len(err.strip().splitlines()) == 1


def test_mismatched_pairs_are_told(tmp_path, capsys):
    for name, array in (("a", np.ones(4)), ("b", np.ones(5)), ("c", np.ones(4, "f4"))):
        np.save(tmp_path / f"{name}.npy", array)
    a, b, c = (str(tmp_path / f"{name}.npy") for name in "abc")
    np.save(tmp_path / "words.npy", np.array(["one"] * 4))
    for words, told in (
        ([a, "--by", str(tmp_path / "words.npy")], "keys must be integers"),
        ([a, b, "--statistic", "dot"], "shape"),
        ([a, c], "several dtypes"),
        ([a, "--by", b], "shape"),
        ([b, "--by", c], "shape"),
        ([a, "--by", c], "integers are wanted"),
    ):
        assert cli.main(["sum", *words]) == 5, words
        assert told in capsys.readouterr().err
    assert cli.main(["sum", a, a, a, "--statistic", "dot"]) == 2
    assert cli.main(["sum", a, "--mode", "fast", "--statistic", "mean"]) == 2
    if find_spec("distributed"):
        assert cli.main(["sum", a, "--farm", "somewhere"]) == 2


def test_file_that_shrinks_while_it_is_read(device, tmp_path):
    np.save(tmp_path / "x.npy", np.ones(10_000))
    npy = open_npy(tmp_path / "x.npy")
    seen = []

    def shrink(count):
        seen.append(count)
        if len(seen) == 3:
            with open(npy.path, "r+b") as file:
                file.truncate(20_000)

    with pytest.raises(InputError, match="became shorter"):
        array_sum([device], npy, chunk=500, progress=shrink)
    assert isinstance(npy, NpyFile) and threading.active_count() < 20


def test_arrays_larger_than_the_device(device, tmp_path, monkeypatch, rng):
    """Two devices of 1 MiB share a file of 3 MB."""
    monkeypatch.setattr(
        device, "properties", replace(device.properties, memory_bytes=1 << 20, max_buffer_bytes=1 << 18)
    )
    stage, sizes = device.staging_buffer, []
    monkeypatch.setattr(device, "staging_buffer", lambda count: sizes.append(count) or stage(count))
    numbers = rng.standard_normal(400_003)
    np.save(tmp_path / "x.npy", numbers)
    assert array_sum([device, device], tmp_path / "x.npy") == exact_sum_host(numbers)
    assert len(sizes) == 4 and max(sizes) <= 1 << 18 and sum(sizes) <= 1 << 20


@pytest.mark.slow
def test_more_than_two_to_the_31(device, tmp_path):
    """2^31 + 5 bytes in a sparse file of zeros with a few ones, the last behind element 2^31."""
    count = 2**31 + 5
    path = tmp_path / "long.npy"
    np.lib.format.open_memmap(path, "w+", "u1", (count,))[[0, 7, 2**31, count - 1]] = 1
    assert array_sum([device], path).significand == 4
    assert aggregates.minmax([device], path) == (0, 1)


# -------------------------------------------------------------------------------------------------------- GLSL passes
def test_passes_are_exact(gl, rng):
    from renderer.numerics.sums.gl_sums import array_sum_gl

    sets = {
        "normal": rng.standard_normal(70_001).astype("f4"),
        "wide": np.ldexp(rng.standard_normal(9_000), rng.integers(-95, 90, 9_000)).astype("f4"),
        "subnormal": (rng.integers(-9999, 9999, 500) * 1e-42).astype("f4"),
        "huge": np.array([3e38, 3e38, -3e38, 1.0], "f4"),
        "ill": ill_conditioned(rng, 3000, 1e20, "f4"),
        "one": np.array([2.5], "f4"),
        "minus zero": np.array([-0.0] * 5, "f4"),
    }
    for name, numbers in sets.items():
        found = array_sum_gl(gl, numbers)
        assert found == exact_sum_host(numbers) and same(found.rounded(), exact_sum_host(numbers).rounded()), name
    assert array_sum_gl(gl, np.array([np.inf, 1], "f4")).rounded() == np.inf
    assert math.isnan(array_sum_gl(gl, np.array([np.inf, -np.inf], "f4")).rounded())


def test_passes_and_kernels_agree_to_the_bit(device, gl, rng):
    from renderer.numerics.sums.gl_sums import array_sum_gl

    x, y = rng.standard_normal((2, 20_000)).astype("f4")
    assert array_sum_gl(gl, x) == array_sum([device], x)
    assert array_sum_gl(gl, x, y).fraction() == array_sum([device], x, y=y).fraction()
    wide = np.ldexp(x, rng.integers(-60, 60, x.size)).astype("f4")
    assert array_sum_gl(gl, wide, y).fraction() == array_sum([device], wide, y=y).fraction()


def test_command_sums_in_passes(tmp_path, capsys, gl, rng):
    numbers = rng.standard_normal(30_011).astype("f4")
    np.save(tmp_path / "x.npy", numbers)
    np.save(tmp_path / "doubles.npy", numbers.astype("f8"))
    told = summed(capsys, tmp_path / "x.npy", "--device", "gl", "--bound")
    exact = exact_sum_host(numbers)
    assert told["value"] == exact.rounded() and told["value_in_dtype"] == exact.rounded("f4")
    assert told["pairwise_error"] == float(abs(Fraction(told["pairwise"]) - exact.fraction())) <= told["pairwise_bound"]
    assert told["pairwise_bound"] < 1e-4 * np.abs(numbers).sum() and told["devices"] == [f"{gl.renderer} (gl)"]
    dot = summed(capsys, tmp_path / "x.npy", tmp_path / "x.npy", "--device", "gl", "--statistic", "dot")["value"]
    assert dot == exact_sum_host(numbers.astype("f8") ** 2).rounded()
    for words, said in (
        (["x.npy", "--device", "gl", "--mode", "fast"], "exact sums"),
        (["x.npy", "--device", "gl", "--statistic", "mean"], "exact sums"),
        (["x.npy", "--device", "gl", "--device", "cpu"], "cannot be combined with other devices"),
        (["doubles.npy", "--device", "gl"], "hold float64"),
    ):
        assert cli.main(["sum", str(tmp_path / words[0]), *words[1:]]) == 2
        assert said in capsys.readouterr().err


def test_sums_by_key_take_no_other_statistic(tmp_path, capsys):
    for name, values in (("v", np.ones(4)), ("k", np.zeros(4, "i4"))):
        np.save(tmp_path / f"{name}.npy", values)
    command = ["sum", str(tmp_path / "v.npy"), "--by", str(tmp_path / "k.npy"), "--statistic", "mean"]
    assert cli.main(command) == 2 and "the table by key has sums, means" in capsys.readouterr().err
