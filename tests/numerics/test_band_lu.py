"""Band LU: factors against LAPACK and dense algebra, known spectra, and matrices that are hard to factor."""

import threading
import time

import numpy as np
import pytest
from scipy.linalg import solve_banded

from renderer.numerics.band_lu import BandedLU, SingularMatrix, block_columns, multicore
from renderer.numerics.band_lu.block_columns import BlockLayout, FlushSubnormals, pack_block_column, pack_workspace
from renderer.numerics.band_lu.devices import block_cyclic
from renderer.numerics.band_lu.multicore import HostFactors
from tests.numerics.band_matrices import (
    EPS,
    clamped,
    convection,
    dense,
    factor_residual,
    lapack_factors,
    random_band,
    scheduled,
    upper_of,
)

SIZES = [
    (1, 0, 0),
    (2, 1, 0),
    (37, 3, 0),
    (40, 0, 5),
    (64, 70, 80),
    (150, 5, 9),
    (200, 40, 33),
    (97, 20, 1),
    (130, 2, 50),
]


def host_factors(ab, kl, ku, block=16):
    factors = HostFactors(BlockLayout(ab.shape[1], kl, ku, block), ab.dtype)
    factors.factor(ab, 0.0)
    return factors


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n,kl,ku", SIZES)
def test_host_factors_equal_lapack(n, kl, ku, dtype):
    ab, kl, ku = clamped(random_band(np.random.default_rng(n), n, kl, ku, dtype), kl, ku)
    factors = host_factors(ab, kl, ku)
    lu, pivots, info = lapack_factors(ab, kl, ku)
    assert info == factors.info == 0
    if dtype == "f8":  # float32 rounds candidates into ties
        assert np.array_equal(factors.pivots(), pivots)
        assert np.allclose(factors.upper(), upper_of(lu, kl, ku), rtol=0, atol=1e-10 * np.abs(lu).max())
    assert factor_residual(factors, ab, kl, ku) < 30


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_any_number_of_cores_makes_the_factors(rng, monkeypatch, threads):
    """Cores that are late at random: what they wait for must be enough."""
    monkeypatch.setattr(multicore, "available_cores", lambda: threads)
    monkeypatch.setattr(multicore, "MIN_COLUMNS_PER_CORE", 1)
    for name in ("_update", "_pack_columns"):
        work = getattr(HostFactors, name)
        late = lambda *given, work=work: (time.sleep(float(rng.choice([0, 0, 1e-4, 5e-4]))), work(*given))  # noqa: E731
        monkeypatch.setattr(HostFactors, name, late)
    for n, kl, ku in ((200, 40, 33), (100, 0, 0), (130, 2, 50), (64, 63, 63)):
        ab, made = random_band(rng, n, kl, ku), []
        factors = HostFactors(BlockLayout(n, kl, ku, 16), ab.dtype)
        for _ in range(3):
            factors.factor(ab, 0.0)
            made.append(factors.flat.copy())
            assert np.array_equal(made[0], made[-1])
        assert np.array_equal(factors.pivots(), lapack_factors(ab, kl, ku)[1])
        assert factor_residual(factors, ab, kl, ku) < 30


def test_an_error_of_a_core_is_reported_and_ends_the_others(rng, monkeypatch):
    monkeypatch.setattr(multicore, "available_cores", lambda: 3)
    monkeypatch.setattr(multicore, "MIN_COLUMNS_PER_CORE", 1)
    ab = random_band(rng, 900, 40, 33)
    ab[20, 800] = np.inf
    before = threading.active_count()
    with pytest.raises(block_columns.NotFinite):
        host_factors(ab, 40, 33)
    assert threading.active_count() == before


def test_triangles_of_large_inverses_are_solved_by_substitution(rng):
    """L = 1 on the diagonal and -0.95 below it: its inverse holds 0.95 * 1.95^(n - 2), which would amplify rounding."""
    n = 40
    a = (np.eye(n) - 0.95 * np.tril(np.ones((n, n)), -1)) @ (np.triu(rng.uniform(0, 1e-3, (n, n)), 1) + np.eye(n))
    ab = np.zeros((2 * n - 1, n))
    for j in range(n):
        ab[n - 1 - j : 2 * n - 1 - j, j] = a[:, j]
    factors = host_factors(ab, n - 1, n - 1, 32)
    assert np.array_equal(factors.pivots(), np.arange(n)) and not factors._invertible[0]
    assert factor_residual(factors, ab, n - 1, n - 1) < 1


def test_unused_corners_are_not_read(rng):
    ab, kl, ku = random_band(rng, 90, 7, 12), 7, 12
    clean = BandedLU(ab, kl, ku, block=16).upper()
    for j in range(ku):
        ab[: ku - j, j] = np.nan
    for j in range(90 - kl, 90):
        ab[ku + 90 - j :, j] = np.inf
    assert np.array_equal(BandedLU(ab, kl, ku, block=16).upper(), clean)


def test_thin_bands_take_the_unblocked_routine(rng):
    ab = random_band(rng, 5000, 2, 1)
    thin, wide = BandedLU(ab, 2, 1), BandedLU(ab, 2, 1, block=16)
    b = rng.standard_normal(5000)
    assert np.array_equal(thin.pivots, wide.pivots)
    assert np.allclose(thin.upper(), wide.upper(), atol=1e-9)
    assert thin.residual(thin.solve(b), b) < 30 * EPS["f8"]
    assert np.allclose(thin.solve(b), solve_banded((2, 1), ab, b), rtol=1e-6, atol=1e-6 * np.abs(thin.solve(b)).max())


@pytest.mark.parametrize("dtype", [pytest.param("f4", marks=pytest.mark.slow), "f8"])
@pytest.mark.parametrize(
    "n,kl,ku,block",
    [
        (150, 5, 9, 16),
        pytest.param(200, 40, 33, 32, marks=pytest.mark.slow),
        (64, 70, 80, 16),
        (40, 0, 5, 16),
        pytest.param(260, 50, 30, 48, marks=pytest.mark.slow),
        pytest.param(300, 9, 90, 112, marks=pytest.mark.slow),
    ],
)
def test_device_factors_equal_lapack(device, n, kl, ku, block, dtype):
    ab, kl, ku = clamped(random_band(np.random.default_rng(n + 1), n, kl, ku, dtype), kl, ku)
    pivots, b = lapack_factors(ab, kl, ku)[1], np.random.default_rng(2).standard_normal((n, 3)).astype(dtype)
    lu = BandedLU(ab, kl, ku, [device], block, **scheduled())
    assert np.array_equal(lu.pivots, pivots) or dtype == "f4"  # which rounds candidates into ties
    downloaded = lu._factors.download()
    assert factor_residual(downloaded, ab, kl, ku) < 30
    assert np.array_equal(lu._factors.diagonal(), downloaded.diagonal())
    assert lu._factors.max_abs_u() == downloaded.max_abs_u() == np.abs(downloaded.upper()).max()
    x = lu.solve(b)
    assert lu.residual(x, b) <= 50 * 0.5 * EPS[dtype]
    assert np.allclose(
        x, downloaded.solve(b, False), rtol=0, atol=2e4 * EPS[dtype] * np.abs(x).max() / max(lu.rcond(), 1e-3)
    )


def test_step_seconds_have_every_phase(device, rng, monkeypatch):
    ab, parts = random_band(rng, 300, 20, 20), {"panel", "laswp", "trsm", "update", "copy"}
    for lu in (BandedLU(ab, 20, 20, block=16), BandedLU(ab, 20, 20, [device], 16, **scheduled())):
        assert len(lu.step_seconds) == lu.layout.p and lu.seconds.keys() == parts
        assert all(seconds > 0 for seconds in lu.seconds.values()), lu.seconds
    monkeypatch.setattr(block_cyclic, "MAX_TIMED_STEPS", 5)
    lu.refactor(ab)
    assert [step["step"] for step in lu.step_seconds] == [0, 4, 8, 12, 16]
    timed = sum(step["panel"] for step in lu.step_seconds)
    assert timed > 0 and np.isclose(lu.seconds["panel"], timed * lu.layout.p / 5)


def test_known_spectrum_gives_the_determinant():
    side, beta, gamma = 12, 0.3, -0.7
    ab, kl, ku = convection(side, 2 * beta, 2 * gamma)
    waves = np.cos(np.pi * np.arange(1, side + 1) / (side + 1))
    spectrum = (4 - 2 * np.sqrt(1 - beta**2) * waves)[:, None] - (2 * np.sqrt(1 - gamma**2) * waves)[None]
    sign, log = BandedLU(ab, kl, ku, block=16).slogdet()
    assert sign == 1 and np.isclose(log, np.log(spectrum).sum(), rtol=1e-13)
    shifted = ab.copy()
    shifted[ku] -= spectrum[3, 5]  # an eigenvalue of zero
    assert BandedLU(shifted, kl, ku, block=16).rcond() < 1e-14
    sign, log = BandedLU(shifted - 1e-3 * (np.arange(2 * side + 1) == side)[:, None], kl, ku).slogdet()
    moved = spectrum - spectrum[3, 5] - 1e-3
    assert sign == np.sign(moved).prod() and np.isclose(log, np.log(np.abs(moved)).sum(), rtol=1e-10)


@pytest.mark.parametrize("column", [0, 7, 16, 63, 99])
def test_singular_at_a_known_column(device, column):
    ab, kl, ku = random_band(np.random.default_rng(column), 100, 6, 4), 6, 4
    ab[:, column] = 0
    info = lapack_factors(ab, kl, ku)[2]
    assert info == column + 1
    choices = [dict(), dict(block=16), dict(devices=[device], block=16, **scheduled())]
    for choice in choices:
        lu = BandedLU(ab, kl, ku, **choice)
        assert lu.info == info and lu.slogdet() == (0.0, float("-inf")) and lu.rcond() == 0
        with pytest.raises(SingularMatrix, match=f"column {column} ") as error:
            lu.solve(np.ones(100))
        assert error.value.column == column and error.value.exit_code == 1


@pytest.mark.parametrize("peclet,swapped", [(0.5, False), (10, None), (100, True)])
def test_convection_diffusion_is_backward_stable(device, peclet, swapped):
    ab, kl, ku = convection(20, peclet, 0.6 * peclet)
    b = np.random.default_rng(1).standard_normal(400)
    for devices in ([], [device]):
        lu = BandedLU(ab, kl, ku, devices, 16, **scheduled())
        x = lu.solve(b)
        assert np.abs(b - block_columns.band_matvec(ab, kl, ku, x[:, None])[:, 0]).max() <= 1e-13 * max(
            np.abs(x).max() * peclet, 1
        )
        assert lu.residual(x, b) < EPS["f8"] and lu.pivot_growth < 8
        assert np.array_equal(lu.pivots, lapack_factors(ab, kl, ku)[1])
        if swapped is not None:
            assert (lu.pivots != np.arange(400)).any() == swapped


def test_graded_and_scaled_matrices(device, rng):
    ab = random_band(rng, 120, 8, 8)
    graded = ab * 10.0 ** np.linspace(-60, 60, 120)
    rows = np.clip(np.arange(120)[None, :] + np.arange(-8, 9)[:, None], 0, 119)
    scaled = ab * 10.0 ** rng.integers(-8, 9, 120)[rows]
    for matrix in (graded, scaled):
        for devices in ([], [device]):
            lu = BandedLU(matrix, 8, 8, devices, 16, **scheduled())
            assert np.array_equal(lu.pivots, lapack_factors(matrix, 8, 8)[1])
            b = block_columns.band_matvec(matrix, 8, 8, np.ones((120, 1)))
            x = lu.solve(b)
            assert lu.residual(x, b) < EPS["f8"]
            downloaded = lu._factors.download() if devices else lu._factors
            assert factor_residual(downloaded, matrix, 8, 8) < 30


def test_growth_of_the_worst_matrix():
    n = 24  # Wilkinson's: partial pivoting doubles the last column at each step
    a = np.eye(n) - np.tril(np.ones((n, n)), -1)
    a[:, -1] = 1
    ab = np.zeros((2 * n - 1, n))
    for j in range(n):
        for i in range(n):
            ab[n - 1 + i - j, j] = a[i, j]
    assert BandedLU(ab, n - 1, n - 1, block=16).pivot_growth == 2.0 ** (n - 1)


def test_tiny_pivots_divide_instead_of_overflowing(device):
    ab = np.full((3, 40), 1e-310)
    ab[1] = 3e-310
    lu = BandedLU(ab, 1, 1, [device], 16, **scheduled())
    want = lapack_factors(ab * 2.0**300, 1, 1)[0]  # LAPACK itself overflows on such pivots
    assert np.allclose(lu.upper() * 2.0**300, upper_of(want, 1, 1), rtol=1e-3, atol=0)


def test_subnormals_are_flushed_and_the_thread_is_left_as_it_was():
    ab, kl, ku = convection(192, 100, 60, upwind=True, lines=6)
    plain = lapack_factors(ab, kl, ku)[0]
    subnormal = (np.abs(plain) < np.finfo("f8").tiny) & (plain != 0)
    assert subnormal.any(), "the matrix has no subnormal factors: it does not test what it should"
    factors = host_factors(ab, kl, ku, 64)
    assert not ((np.abs(factors.flat) < np.finfo("f8").tiny) & (factors.flat != 0)).any()
    b = np.ones((ab.shape[1], 1))
    x = factors.solve(b, False)
    assert np.abs(b - block_columns.band_matvec(ab, kl, ku, x)).max() < 1e-12
    small = np.array([1e-310])
    assert (small * 0.5)[0] > 0
    with FlushSubnormals() as guard:
        flushed = (small * 0.5)[0]
    assert (small * 0.5)[0] > 0 and (flushed == 0 or guard._before is None)


def test_pack_places_every_element(rng):
    for n, kl, ku, s in ((50, 7, 3, 16), (10, 9, 9, 16), (33, 0, 20, 16), (70, 69, 2, 32)):
        ab, layout = random_band(rng, n, kl, ku), BlockLayout(n, kl, ku, s)
        flat = np.full(layout.size, np.nan)
        for t in range(layout.p):
            pack_block_column(ab, layout, flat, t, pack_workspace(layout, flat.dtype))
        a = dense(ab, kl, ku)
        for i in range(n):
            for j in range(max(0, i - kl), min(n, i + ku + 1)):
                assert flat[layout.offset(i, j)] == a[i, j]
        assert np.count_nonzero(flat) == np.count_nonzero(a) + layout.p * s - n
