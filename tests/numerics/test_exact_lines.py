"""Correctly rounded reductions of many lines on devices: the host's bits, which fractions witness elsewhere."""

import math
from fractions import Fraction

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.numerics.sums import axis_mean, axis_sum, axis_variance, exact_lines, matmul, matvec
from renderer.numerics.sums.exact_sum import round_to_format, rounded_fraction
from tests.numerics.test_exact_blas import spread


def same(found, wanted):
    """Asserts equal bits; all NaNs are equal."""
    numbers = ~np.isnan(wanted)
    bits = np.array_equal(found[numbers].view("u8"), wanted[numbers].view("u8"))
    return bits and np.array_equal(np.isnan(found), ~numbers)


@pytest.mark.parametrize("dtype", ["f8", pytest.param("f4", marks=pytest.mark.slow)])
def test_devices_give_the_bits_of_the_host(device, rng, dtype):
    """Similar numbers, numbers of all sizes, and rows that cancel to little or to nothing."""
    for decades in (0, 8, 20 if dtype == "f4" else 150):
        a, b = (spread(rng, shape, decades).astype(dtype) for shape in ((9, 12), (12, 5)))
        a[3:, 6:], b[6:] = -a[3:, :6], b[:6] * (1 + 2.0**-20)
        assert same(matmul(a, b, device), matmul(a, b))
        assert same(matvec(a, b[:, 0], device), matvec(a, b[:, 0]))
        for axis in (0, 1):
            assert same(axis_sum(a, axis, device), axis_sum(a, axis))
            assert same(axis_mean(a, axis, device), axis_mean(a, axis))
            assert same(axis_variance(a, axis, 1, device), axis_variance(a, axis, 1))


def test_lines_of_any_axis_and_of_values_at_the_limits(device, rng):
    x = spread(rng, (4, 7, 5), 3)
    for axis in range(3):
        assert same(axis_variance(x, axis, 0, device), axis_variance(x, axis))
        assert same(axis_sum(x, axis, device), axis_sum(x, axis))
    huge, tiny, infinite, nan = 1.7e308, 5e-324, np.inf, np.nan
    rows = [
        [infinite, 1, 2],
        [nan, 1, 2],
        [infinite, -infinite, 1],
        [huge, huge, -huge],
        [tiny, tiny, -0.0],
        [-0.0] * 3,
    ]
    rows += [[1, -1, 0], [1, 2.0**-53, tiny], [1, 2.0**-53, -tiny], [1, 2.0**-53, 0], [1e-200] * 3]
    z = np.array(rows)
    for function in (axis_sum, axis_mean, axis_variance):
        with np.errstate(all="ignore"):
            assert same(function(z, 1, device=device), function(z, 1))
    assert same(axis_mean(-np.zeros((2, 1)), 1, device), axis_mean(-np.zeros((2, 1)), 1))
    with np.errstate(all="ignore"):
        assert same(matmul(z, z.T, device), matmul(z, z.T))
    assert axis_sum(np.zeros((3, 0)), -1, device).tolist() == [0, 0, 0] and matmul(z[:, :0], z[:0], device).sum() == 0
    assert np.isnan(axis_mean(np.zeros((3, 0)), -1, device)).all() and np.isnan(axis_variance(z, 1, 3, device)).all()


def test_few_results_are_in_doubt(device, rng):
    """Products of normal numbers never; a sum at a tie but for bits beyond the third double is the host's work."""
    a, b = rng.standard_normal((2, 40, 40))
    left, right = (exact_lines.device_operand(device, v, False) for v in (a, b))
    strides = exact_lines.Strides(40, 0, 1), exact_lines.Strides(0, 1, 40)
    _, doubts = exact_lines.reduce_lines(device, "product", (40, 40, 40), (left, strides[0]), (right, strides[1]))
    assert not doubts.any()
    ties = np.array([[1, 2.0**-53, 2.0**-160], [1, 2.0**-53, 0]])
    placed = exact_lines.device_operand(device, ties, False)
    out, doubts = exact_lines.reduce_lines(device, "sum", (2, 1, 3), (placed, exact_lines.Strides(3, 1, 1)))
    assert doubts[:, 0].tolist() == [True, False] and out[1, 0] == 1
    assert axis_sum(ties, 1, device).tolist() == [1 + 2.0**-52, 1]


class Tensor:
    """An array of a library that is not NumPy."""

    def __init__(self, array):
        self._array, self.ndim, self.shape = array, array.ndim, array.shape

    def __dlpack__(self, **ignored):
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_arrays_of_other_libraries_are_reduced_where_they_are(device, rng):
    a, b = spread(rng, (9, 12), 150), spread(rng, (12, 5), 150)  # some products are in doubt
    assert same(matmul(Tensor(a), Tensor(b), device), matmul(a, b))
    assert same(axis_mean(Tensor(a), 0, device), axis_mean(a, 0))
    if device.properties.scalar_threads:  # the array lies on the device; for a GPU it comes through the host
        with pytest.raises(InputError, match="int32 on a device"):
            axis_sum(Tensor(np.ones((64, 64), "i4")), 0, device)


@pytest.mark.parametrize("team", [2, 16])
def test_threads_that_share_a_line_agree_with_fractions(device, rng, monkeypatch, team):
    """Few lines, of more and of fewer terms than a team has threads; some groups have threads without a line."""
    teams = []
    monkeypatch.setattr(exact_lines, "team_size", lambda *ignored: teams.append(team) or team)
    for rows, length in ((3, 70), (9, 13), (5, 1)):
        x, y = spread(rng, (rows, length), 9) + 5, spread(rng, (2, length), 40)
        x[-1] = y[0]  # of all sizes
        lines, others = ([[Fraction(v) for v in line] for line in v.tolist()] for v in (x, y))
        assert axis_sum(x, 1, device).tolist() == [math.fsum(line) for line in x.tolist()]
        dots = [[sum(u * v for u, v in zip(line, other, strict=True)) for other in others] for line in lines]
        assert matmul(x, y.T, device).tolist() == [[rounded_fraction(dot) for dot in line] for line in dots]
        means = [sum(line) / length for line in lines]
        squares = [sum((v - mean) ** 2 for v in line) / length for line, mean in zip(lines, means, strict=True)]
        assert axis_variance(x, 1, 0, device).tolist() == [rounded_fraction(v) for v in squares]
    assert len(teams) == 12  # sums, products, and variances with their centers


def test_teams_mark_doubtful_lines(device, monkeypatch):
    """A line is doubtful if one thread of its team finds a term uncertain or adds a term with rounding."""
    monkeypatch.setattr(exact_lines, "team_size", lambda *ignored: 4)
    ties = np.zeros((2, 8))
    ties[:, 0], ties[:, 3], ties[0, 6] = 1, 2.0**-53, 2.0**-160
    placed = exact_lines.device_operand(device, ties, False)
    out, doubts = exact_lines.reduce_lines(device, "sum", (2, 1, 8), (placed, exact_lines.Strides(8, 1, 1)))
    assert doubts[:, 0].tolist() == [True, False] and out[1, 0] == 1
    tiny = np.zeros((2, 8))
    tiny[:, 0], tiny[0, 7] = 2.0**100, 1e-200  # whose square underflows
    placed, strides = exact_lines.device_operand(device, tiny, False), exact_lines.Strides(8, 0, 1)
    _, doubts = exact_lines.reduce_lines(device, "product", (2, 1, 8), (placed, strides), (placed, strides))
    assert doubts[:, 0].tolist() == [True, False]


ROUNDED_OFF = {  # terms of the threads 0, 2 and 3, whose sum lies just above 1 + 2^-53
    "kept": ([1, 2.0**-53, -(2.0**-65)], [2.0**100, 2.0**40, 2.0**-60], [-(2.0**100), -(2.0**40)]),
    "lost": (
        [1, 2.0**-53, -(2.0**-85)], [2.0**100, 2.0**40, 2.0**-20, 2.0**-80, -(2.0**-20)], [-(2.0**100), -(2.0**40)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("terms", ROUNDED_OFF.values(), ids=ROUNDED_OFF)
def test_teams_count_what_their_threads_rounded_off(device, monkeypatch, terms):
    """Thread 2 keeps 2^-60 in its third double, or loses 2^-80 there, which makes the line doubtful."""
    monkeypatch.setattr(exact_lines, "team_size", lambda *ignored: 4)
    line = np.zeros((5, 4))
    for thread, numbers in zip((0, 2, 3), terms, strict=True):
        line[: len(numbers), thread] = numbers
    assert axis_sum(line.reshape(1, 20), 1, device).tolist() == [math.fsum(line.ravel())] == [1 + 2.0**-52]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["variance", "product"])
def test_teams_of_threads_share_a_line(emulated_gpu, rng, monkeypatch, kind):
    """A warp on each of a few lines, on an emulated GPU."""
    monkeypatch.setattr(exact_lines, "team_size", lambda *ignored: 32)
    monkeypatch.setattr(exact_lines, "GROUP", 64)
    a = spread(rng, (3, 70), 9) + 5
    if kind == "product":
        assert same(matmul(a, a.T, emulated_gpu), matmul(a, a.T))
    else:
        assert same(axis_variance(a, 1, 0, emulated_gpu), axis_variance(a, 1))


def test_fractions_agree(device, rng):
    """A witness that shares no code with either implementation but the rounding."""
    x = spread(rng, (6, 30), 5)
    lines = [[Fraction(v) for v in row] for row in x.tolist()]
    means = [sum(line) / 30 for line in lines]
    wanted = [rounded_fraction(sum((v - m) ** 2 for v in line) / 29) for line, m in zip(lines, means, strict=True)]
    assert axis_variance(x, 1, 1, device).tolist() == wanted
    assert axis_mean(x, 1, device).tolist() == [rounded_fraction(m) for m in means]


def test_what_does_not_fit_is_reported(device):
    with pytest.raises(InputError, match=r"they must be \(m, k\) and \(k, n\)"):
        matmul(np.ones((2, 3)), np.ones((2, 3)), device)
    with pytest.raises(InputError, match="axis is 2"):
        axis_sum(np.ones((2, 2)), 2, device)
    with pytest.raises(InputError, match="complex128"):
        axis_sum(np.ones((2, 2), "c16"), 0, device)


def units(numbers):
    """The doubles as integers in units of 2^-1074."""
    mantissas, exponents = np.frexp(numbers)
    scaled = zip(np.ldexp(mantissas, 53).astype("i8").tolist(), (exponents + 1021).tolist(), strict=True)
    return [m << e if e >= 0 else m >> -e for m, e in scaled]


def hard_lines(rng, count, length):
    """Lines of numbers of one size, of all sizes, that cancel, near ties, of small integers, and of any bits."""
    shape = count, length
    kind = rng.integers(0, 6, (count, 1))
    plain, signs = rng.standard_normal(shape), rng.choice([-1, 1], shape)
    cancels = plain.copy()
    cancels[:, length // 2 : length // 2 * 2] = -plain[:, : length // 2]
    bits = rng.integers(0, 2**64, shape, "u8").view("f8")
    bits = np.where(np.isfinite(bits) & (np.abs(np.nan_to_num(bits)) < 1e300), bits, 1.0)
    return np.choose(
        kind,
        [
            plain,
            plain * 10.0 ** rng.integers(-150, 150, shape),
            cancels,
            np.ldexp(1.0, rng.integers(-110, 3, shape)) * signs,
            rng.integers(-3, 4, shape) * 1.0,
            bits,
        ],
    )


@pytest.mark.slow
def test_many_cases_have_no_wrong_bit(device, rng):
    """Integers of thousands of bits are the witness; fresh numbers in `make test-all`."""
    for _ in range(12):
        length = int(rng.integers(1, 24))
        x, y = hard_lines(rng, 64, length), hard_lines(rng, 8, length)
        with np.errstate(all="ignore"):
            found = axis_sum(x, 1, device), axis_variance(x, 1, 0, device), matmul(x, y.T.copy(), device)
        others = [units(line) for line in y]
        for i, line in enumerate(x):
            terms = units(line)
            total = sum(terms)
            assert found[0][i] == round_to_format(total, -1074)
            spread_out = length * sum(t * t for t in terms) - total * total
            assert found[1][i] == rounded_fraction(Fraction(spread_out, length * length << 2148))
            for j, other in enumerate(others):
                product = sum(u * v for u, v in zip(terms, other, strict=True))
                assert found[2][i, j] == round_to_format(product, -2148)
