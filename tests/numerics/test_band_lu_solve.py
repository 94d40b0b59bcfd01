"""Band LU: solutions, refinement, condition, and batches of small systems."""

from fractions import Fraction

import numpy as np
import pytest

from renderer.errors import InputError, UserError
from renderer.formats.matrices import Band
from renderer.numerics.band_lu import BandedBatch, BandedLU
from renderer.numerics.band_lu.accuracy.refinement import solve_refined
from renderer.numerics.band_lu.block_columns import SolutionOverflows
from renderer.numerics.band_lu.solver import inverse_norm1
from renderer.numerics.band_lu.systems.system import System
from tests.numerics.band_matrices import EPS, clamped, dense, factor_residual, lapack_factors, random_band, scheduled


@pytest.mark.parametrize("block", [16, 48, 128])
def test_any_band_solves_and_transposes(rng, block):
    for _ in range(12):
        n = int(rng.integers(1, 300))
        kl, ku = (int(k) for k in rng.integers(0, min(n + 5, 90), 2))
        ab = random_band(rng, n, kl, ku)
        ab[ku] += 2 + np.sqrt(kl + ku)  # without it a triangle of 240 rows was singular in double precision
        lu, b = BandedLU(ab, kl, ku, block=block), rng.standard_normal((n, 3))
        a = dense(ab, kl, ku)
        x = lu.solve(b)
        assert lu.residual(x, b) <= 50 * 0.5 * EPS["f8"]
        assert np.allclose(a @ x, b, atol=1e-9 * np.abs(a).max() * max(np.abs(x).max(), 1))
        z = lu.solve(b[:, 0], trans="T")
        assert np.allclose(a.T @ z, b[:, 0], atol=1e-9 * np.abs(a).max() * max(np.abs(z).max(), 1))


def test_refactor_reuses_the_buffers(device, rng):
    lu = BandedLU(random_band(rng, 150, 9, 5), 9, 5, [device], 16, **scheduled())
    memory_before, ab = lu._factors.per_device[0].matrix, random_band(rng, 150, 9, 5)
    assert lu.refactor(ab) is lu and lu._factors.per_device[0].matrix is memory_before
    assert np.array_equal(lu.pivots, lapack_factors(ab, 9, 5)[1])
    assert factor_residual(lu._factors.download(), ab, 9, 5) < 30
    with pytest.raises(InputError, match="150"):
        lu.refactor(random_band(rng, 151, 9, 5))


def test_a_refused_matrix_leaves_nothing_to_solve_with(device, rng):
    ab = random_band(rng, 150, 9, 5)
    for devices in ([], [device]):
        lu, spoiled = BandedLU(ab, 9, 5, devices, 16, **scheduled()), ab.copy()
        spoiled[5, 70] = np.nan
        with pytest.raises(InputError, match=r"ab\[5, 70\]"):
            lu.refactor(spoiled)
        with pytest.raises(InputError, match="no factors"):
            lu.solve(np.ones(150))
        assert lu.refactor(ab).residual(lu.solve(np.ones(150)), np.ones(150)) < EPS["f8"]


def test_solving_in_place_on_the_device(device, rng):
    ab, b = random_band(rng, 150, 9, 5), rng.standard_normal((150, 5))
    on_devices = [BandedLU(ab, 9, 5, devices, 16, **scheduled()) for devices in ([device], [device] * 2)]
    for lu in (BandedLU(ab, 9, 5, block=32), *on_devices):
        sides = np.zeros((5, lu.padded_n))
        sides[:, :150] = b.T
        buffer = device.buffer(sides.shape, "f8").write(sides)
        lu.solve_in_place(buffer)
        assert np.array_equal(buffer.read()[:, :150].T, lu.solve(b))


def test_rcond_estimates_the_condition(device, rng):
    for n, kl, ku in ((1, 0, 0), (60, 4, 9), (80, 20, 3)):
        ab = random_band(rng, n, kl, ku)
        a = dense(ab, kl, ku)
        true = 1 / (np.abs(a).sum(axis=0).max() * np.abs(np.linalg.inv(a)).sum(axis=0).max())
        for devices in ([], [device]):
            estimate = BandedLU(ab, kl, ku, devices, 16, **scheduled()).rcond()
            assert 0.999 * true <= estimate <= 10 * true
    inverse = rng.standard_normal((30, 30))
    told = inverse_norm1(30, lambda v: inverse @ v, lambda v: inverse.T @ v, "f8")
    assert 0.3 * np.abs(inverse).sum(axis=0).max() <= told <= 1.000001 * np.abs(inverse).sum(axis=0).max()


def test_float32_factors_reach_float64_by_refinement(device, rng):
    ab = random_band(rng, 200, 12, 7)
    ab[7] += 50  # more than the rest of any row: well conditioned whatever is drawn
    b = rng.standard_normal((200, 2))
    for devices in ([], [device]):
        mixed, plain = (
            BandedLU(ab, 12, 7, devices, 16, precision="f4", **scheduled()),
            BandedLU(ab.astype("f4"), 12, 7, devices, 16, **scheduled()),
        )
        x, coarse = mixed.solve(b), plain.solve(b.astype("f4"))
        exact = np.linalg.solve(dense(ab, 12, 7), b)
        assert x.dtype == np.float64 and np.abs(x - exact).max() < 1e-12 * np.abs(exact).max()
        assert np.abs(coarse - exact).max() > 1e-9 * np.abs(exact).max()
        z = mixed.solve(b, trans="T")
        assert np.allclose(dense(ab, 12, 7).T @ z, b, atol=1e-11)


def factored(batch, ab):
    """A batch with the factors of ab (count, kl + ku + 1, n), each in LAPACK's layout."""
    storage = np.zeros(batch.matrix.shape, batch.dtype)
    storage[:, batch.kl :, :] = ab.transpose(2, 1, 0)
    for j in range(batch.n):  # corners that are no part of the matrix
        storage[j, : max(batch.kl + batch.ku - j, 0)] = 0
        storage[j, batch.kl + batch.ku + batch.n - j :] = 0
    batch.matrix.write(storage)
    return batch.factor()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n,kl,ku", [(1, 0, 0), (30, 1, 1), (45, 3, 2), (20, 0, 4), (12, 15, 15)])
def test_batches_solve_every_system(device, rng, n, kl, ku, dtype):
    count = 70
    ab = np.stack([random_band(rng, n, kl, ku, dtype) for _ in range(count)])
    ab[:, ku] += 3
    b = rng.standard_normal((count, n, 2)).astype(dtype)
    cut = clamped(ab[0], kl, ku)
    batch = factored(BandedBatch(device, count, n, kl, ku, dtype), np.stack([clamped(one, kl, ku)[0] for one in ab]))
    sides = device.buffer((n, 2, count), dtype).write(np.ascontiguousarray(b.transpose(1, 2, 0)))
    batch.solve_in_place(sides)
    x = sides.read().transpose(2, 0, 1)
    for k in range(count):
        a = dense(ab[k], kl, ku).astype(float)
        scale = np.abs(a).sum(axis=0).max() * np.abs(x[k]).sum(axis=0).max() * n * EPS[dtype]
        assert np.abs(b[k] - a @ x[k]).sum(axis=0).max() <= 50 * scale
    pivots = batch.pivots.read().T
    want = np.stack([lapack_factors(clamped(one, kl, ku)[0], *cut[1:])[1] for one in ab])
    assert (pivots == want).mean() > 0.99


def test_batch_tells_the_singular_system(device, rng):
    ab = rng.standard_normal((5, 3, 20))
    ab[3, :, 11] = 0
    batch = factored(BandedBatch(device, 5, 20, 1, 1, "f8"), ab)
    assert batch.infos.read().tolist() == [0, 0, 0, 12, 0]


@pytest.mark.parametrize(
    "dtype,exponent",
    [
        ("f8", -1030),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("f8", 1008), ("f4", -130), ("f4", 114))),
    ],
)
def test_matrices_of_tiny_and_of_huge_numbers(device, rng, dtype, exponent):
    """Whole numbers times a power of two, subnormal or about to overflow, are factored like the whole numbers."""
    plain = rng.integers(-99, 100, (14, 60)).astype(dtype)
    plain[6] += 400
    ab = np.ldexp(plain, exponent)
    assert np.array_equal(np.ldexp(ab, -exponent), plain)
    b = rng.standard_normal((60, 2)).astype(dtype)
    tiny_b = np.ldexp(b, exponent // 2)
    for devices in ([], [device]):
        choice = dict(devices=devices, block=16, **scheduled())
        lu, wanted = BandedLU(ab, 7, 6, **choice), BandedLU(plain, 7, 6, **choice)
        assert lu.info == 0 and np.array_equal(lu.pivots, wanted.pivots)
        assert lu.pivot_growth == pytest.approx(wanted.pivot_growth) and lu.rcond() == pytest.approx(
            wanted.rcond(), rel=1e-4
        )
        for trans in "NT":
            x = np.ldexp(wanted.solve(b, trans), exponent // 2 - exponent)
            assert np.allclose(lu.solve(tiny_b, trans), x, rtol=1e-3, atol=float(np.abs(x).max()) * 100 * EPS[dtype])
        assert lu.slogdet()[1] == pytest.approx(wanted.slogdet()[1] + 60 * exponent * np.log(2), rel=1e-6)
        upper = np.ldexp(wanted.upper(), exponent)
        assert np.allclose(lu.upper(), upper, rtol=0, atol=max(float(np.abs(upper).max()) * 1e-5, 1e-323))


def test_solutions_that_overflow_are_told():
    lu = BandedLU(np.full((1, 40), 1e-310), 0, 0)
    with pytest.raises(SolutionOverflows, match="too large for float64"):
        lu.solve(np.ones(40))
    assert np.allclose(lu.solve(np.full(40, 1e-200)), 1e110) and SolutionOverflows.exit_code == 1
    n = 1100  # Wilkinson's matrix: its factors grow to 2^(n - 1)
    ab = np.zeros((2 * n - 1, n))
    for j in range(n):
        ab[n - 1, j], ab[n : 2 * n - 1 - j, j], ab[: n - 1, -1] = 1, -1, 1
    with pytest.raises(SolutionOverflows, match="grow without bound"):
        BandedLU(ab, n - 1, n - 1).solve(np.ones(n))


@pytest.mark.parametrize(
    "choice",
    [
        dict(block=17), dict(block=16.0), dict(block="16"), dict(block=True), dict(block=528), dict(precision="f2"),
    ],
    ids=str,
)  # fmt: skip
def test_unknown_choices_are_told(choice):
    (name, value), *_ = choice.items()
    with pytest.raises(UserError, match=rf"{name} is '?{value}'?; allowed are"):
        BandedLU(np.ones((1, 3)), 0, 0, **choice)


@pytest.mark.parametrize(
    "wrong",
    [np.ones(3) * 1j, ["a", "b", "c"], [[1], [2, 3]], np.ones(3, object), None, np.ones(4), np.ones((3, 1, 1))],
    ids=repr,
)  # fmt: skip
def test_arrays_that_are_no_real_vectors_are_told(wrong):
    with pytest.raises(InputError, match="the right-hand side is"):
        BandedLU(np.ones((1, 3)), 0, 0).solve(wrong)
    with pytest.raises(InputError, match="ab is"):
        BandedLU(wrong, 0, 0)


def wilkinson(n):
    """Wilkinson's matrix as a full band: 1 on the diagonal and in the last column, -1 below; growth 2^(n - 1)."""
    a = np.tril(-np.ones((n, n)), -1) + np.eye(n)
    a[:, -1] = 1
    ab = np.zeros((2 * n - 1, n))
    for i, j in np.ndindex(n, n):
        ab[n - 1 + i - j, j] = a[i, j]
    return ab, a


@pytest.mark.parametrize("on_device", [False, True])
def test_refinement_recovers_what_pivot_growth_costs(device, rng, on_device):
    n = 50
    ab, a = wilkinson(n)
    x = rng.standard_normal((n, 2))
    b = a @ x
    lu = BandedLU(ab, n - 1, n - 1, [device] if on_device else [], **scheduled())
    assert lu.pivot_growth > 1e14 and np.abs(lu.solve(b) - x).max() > 1e-4
    exact = np.array([[float(v) for v in row] for row in solve_exactly(a, b)])
    refined = solve_refined(lu, b)
    assert np.abs(refined.x - exact).max() <= refined.forward_bound * np.abs(exact).max()
    assert refined.forward_bound < 1e-11
    assert refined.corrections >= 1 and refined.backward_error < 1e-14


def solve_exactly(a, b):
    """The solution (n, m) by Gaussian elimination in fractions."""
    rows = [[Fraction(v) for v in (*left, *right)] for left, right in zip(a.tolist(), b.tolist(), strict=True)]
    for j in range(len(rows)):
        at = max(range(j, len(rows)), key=lambda i: abs(rows[i][j]))
        rows[j], rows[at] = rows[at], rows[j]
        rows[j] = [v / rows[j][j] for v in rows[j]]
        for i, row in enumerate(rows):
            if i != j and row[j]:
                rows[i] = [v - row[j] * w for v, w in zip(row, rows[j], strict=True)]
    return [row[len(rows) :] for row in rows]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_forward_bounds_hold_and_are_close(rng, dtype):
    for exponent in (0, -3, -6, -12):
        ab = random_band(rng, 40, 3, 2, dtype)
        ab[:, 20] *= 10.0**exponent
        a, b = dense(ab, 3, 2).astype("f8"), rng.standard_normal((40, 2)).astype(dtype)
        x, refined = System(Band(ab, 3, 2, (3, 2))).solve(b)
        exact = np.array([[float(v) for v in row] for row in solve_exactly(a, b.astype("f8"))])
        error = np.abs(x - exact).max() / np.abs(exact).max()
        assert error <= refined.forward_bound <= 1e4 * max(error, float(np.finfo(dtype).eps)), (exponent, error)


def test_refinement_of_a_zero_right_hand_side_is_zero(rng):
    refined = solve_refined(BandedLU(random_band(rng, 20, 2, 1), 2, 1), np.zeros(20))
    assert not refined.x.any() and refined.backward_error == refined.forward_bound == 0
