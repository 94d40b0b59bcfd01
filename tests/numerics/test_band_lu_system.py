"""Equilibration, residuals, enclosures and file kinds of `rayfold solve`, against fractions and SciPy."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import renderer
from renderer.cli import main
from renderer.errors import IncompleteError, InputError, UserError
from renderer.formats.matrices import Band, read_band
from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import preprocess
from renderer.numerics.band_lu import BandedLU, SingularMatrix
from renderer.numerics.band_lu.accuracy import certified, residuals
from renderer.numerics.band_lu.accuracy.certified import enclose
from renderer.numerics.band_lu.accuracy.extended import ExtendedFactors, solve_extended
from renderer.numerics.band_lu.accuracy.refinement import solve_refined
from renderer.numerics.band_lu.accuracy.residuals import CPU_ROWS, DeviceResiduals, accurate_residual
from renderer.numerics.band_lu.lapack_factors import ComplexFactors, real_band
from renderer.numerics.band_lu.systems.scaling import equilibration
from renderer.numerics.band_lu.systems.system import System
from tests.numerics.band_matrices import dense, random_band
from tests.numerics.bound_sweep import exact_solution
from tests.numerics.test_band_lu_cli import hilbert
from tests.numerics.test_band_lu_solve import solve_exactly


def test_residuals_are_right_within_their_bounds(rng):
    """The residuals of solutions, in which nearly all terms cancel."""
    for kl, ku in ((2, 3), (0, 1), (7, 0)):
        ab = random_band(rng, 30, kl, ku) * 10.0 ** rng.integers(-9, 9, (kl + ku + 1, 30))
        a, b = dense(ab, kl, ku), rng.standard_normal((30, 2))
        x = np.linalg.solve(a, b)
        found = accurate_residual(ab, kl, ku, x, b)
        bounds = found.error_bounds(kl, ku)
        for i, column in np.ndindex(*b.shape):
            terms = [Fraction(u) * Fraction(v) for u, v in zip(a[i].tolist(), x[:, column].tolist(), strict=True)]
            exact = Fraction(float(b[i, column])) - sum(terms)
            error = abs(Fraction(float(found.values[i, column])) - exact)
            assert error <= Fraction(float(bounds[i, column]))
            assert bounds[i, column] <= 1e-15 * abs(exact) + Fraction(1e-28) * sum(map(abs, terms)) + 1e-300


@pytest.mark.slow  # the refinement below takes the same residuals
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_devices_compute_residuals_with_the_same_bits(device, rng, dtype):
    """Rows inside, which a CPU takes eight at a time, rows at the edges, and corners that are not read."""
    n, kl, ku = 2 * CPU_ROWS + 70, 7, 12
    ab = (random_band(rng, n, kl, ku) * 10.0 ** rng.integers(-9, 9, (kl + ku + 1, n))).astype(dtype)
    ab[0, :ku] = np.nan
    x, b = rng.standard_normal((2, n, 2 if dtype == "f8" else 3)).astype(dtype)  # 3: a kernel for one column too
    found, wanted = DeviceResiduals(device, ab, kl, ku)(x, b), accurate_residual(ab, kl, ku, x, b)
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="the CUDA compiler (NVRTC) is not installed")
def test_the_residual_kernel_compiles_for_cuda():
    constants = {"REAL": "double", "DOUBLE": 1, "STRICT": 1, "COLUMNS": 2, "GROUP_SIZE": 128}
    file = "numerics/band_lu/residual.cu"
    assert nvrtc.compile_cubin(preprocess(file, **constants), "sm_90", file, strict=True)


def test_refinement_on_a_device_has_the_solution_of_the_host(device, rng, monkeypatch):
    monkeypatch.setattr(residuals, "MIN_ELEMENTS", 1)
    ab, b = random_band(rng, 2 * CPU_ROWS + 70, 7, 12), rng.standard_normal(2 * CPU_ROWS + 70)
    lu = BandedLU(ab, 7, 12)
    one, other = solve_refined(lu, b), solve_refined(lu, b, device)
    assert np.array_equal(one.x, other.x) and one.corrections == other.corrections
    assert one.forward_bound == pytest.approx(other.forward_bound, rel=0.1)


def test_solutions_have_all_digits_up_to_a_condition_of_1e14(rng):
    n = 24
    u, _, v = np.linalg.svd(rng.standard_normal((n, n)))
    a = u * np.logspace(0, -14, n) @ v
    ab = np.array([[a[j + d - n + 1, j] if 0 <= j + d - n + 1 < n else 0 for j in range(n)] for d in range(2 * n - 1)])
    b = rng.standard_normal((n, 1))
    refined = solve_refined(BandedLU(ab, n - 1, n - 1), b)
    exact = np.array([[float(v) for v in row] for row in solve_exactly(a, b)])
    error = np.abs(refined.x - exact).max() / np.abs(exact).max()
    assert error <= refined.forward_bound < 1e-15 and refined.corrections >= 2


@pytest.mark.parametrize("exponent", [-11, *(pytest.param(e, marks=pytest.mark.slow) for e in (0, -6))])
def test_enclosures_hold_every_component(rng, exponent):
    """The exact solution in fractions lies within every radius, and radii are a few units in the last place."""
    ab, b = random_band(rng, 40, 3, 2), rng.standard_normal((40, 2))
    ab[:, 20] *= 10.0**exponent
    lu = BandedLU(ab, 3, 2)
    found = enclose(lu, solve_refined(lu, b), b)
    exact = solve_exactly(dense(ab, 3, 2), b)
    for i, column in np.ndindex(*b.shape):
        center, radius = Fraction(float(found.x[i, column])), Fraction(float(found.radius[i, column]))
        assert abs(exact[i][column] - center) <= radius
    assert found.norm < 1 and (found.radius < 1e-12 * np.abs(found.x).max(axis=0)).all()
    assert found.certain_digits >= 10


def test_no_enclosure_of_what_may_be_singular(tmp_path, capsys, rng):
    lu = BandedLU(hilbert(14), 13, 13)
    b = rng.standard_normal(14)
    with pytest.raises(IncompleteError, match=r"no enclosure can be proven: .*rcond .* costs about 1\d digits of 16"):
        enclose(lu, solve_refined(lu, b), b)
    np.savez(tmp_path / "band.npz", ab=hilbert(14), kl=13, ku=13)
    np.save(tmp_path / "rhs.npy", b)
    where = [str(tmp_path / name) for name in ("band.npz", "rhs.npy", "x.npy", "radius.npy")]
    np.savez(tmp_path / "easy.npz", ab=np.full((1, 14), 2.0), kl=0, ku=0)
    for matrix, code in (("easy.npz", 0), ("band.npz", 3)):  # the radii of the first do not stay beside the second
        assert main(["solve", str(tmp_path / matrix), where[1], "-o", where[2], "--certified", where[3]]) == code
        assert (tmp_path / "radius.npy").exists() == (code == 0)
    err = capsys.readouterr().err
    assert "no enclosure" in err and f"{where[2]} is written without {where[3]}" in err
    assert not np.array_equal(np.load(where[2]), b / 2)


@pytest.mark.parametrize("option", ["-o", "--certified"])
@pytest.mark.parametrize("name", ["band.npz", "rhs.npy", "./rhs.npy"])
def test_no_output_replaces_an_input(tmp_path, capsys, option, name):
    np.savez(tmp_path / "band.npz", ab=np.full((1, 3), 2.0), kl=0, ku=0)
    np.save(tmp_path / "rhs.npy", np.ones(3))
    before = (tmp_path / "band.npz").read_bytes(), (tmp_path / "rhs.npy").read_bytes()
    options = {"-o": f"{tmp_path}/x.npy"} | {option: f"{tmp_path}/{name}"}
    words = [word for pair in options.items() for word in pair]
    assert main(["solve", str(tmp_path / "band.npz"), str(tmp_path / "rhs.npy"), *words]) == 2
    assert "is an input file" in capsys.readouterr().err or name.endswith(".npz")
    assert ((tmp_path / "band.npz").read_bytes(), (tmp_path / "rhs.npy").read_bytes()) == before


def badly_scaled(rng, n=30):
    """A well-conditioned matrix of which every row and column has another scale."""
    ab = random_band(rng, n, 2, 2)
    ab[2] += 8
    rows, columns = (2.0 ** rng.integers(-90, 90, n) for _ in range(2))
    for d in range(5):
        for j in range(max(0, 2 - d), min(n, n + 2 - d)):
            ab[d, j] *= rows[j + d - 2] * columns[j]
    return ab


def test_equilibrated_systems_are_solved_to_all_digits(rng):
    ab, b = badly_scaled(rng), rng.standard_normal(30)
    scaling = equilibration(ab, 2, 2)
    scaled = scaling.apply(ab, 2, 2)
    assert scaling.is_exact
    sizes = np.abs(dense(scaled, 2, 2))
    assert 0.25 <= sizes.max(axis=1).min() and 0.5 <= sizes.max(axis=0).min() and sizes.max() <= 1
    system = System(Band(ab, 2, 2, (2, 2)), in_double=True)
    x, refined = system.solve(b)
    radius, _enclosure = system.certify(b, refined)
    exact = [row[0] for row in solve_exactly(dense(ab, 2, 2), b[:, None])]
    for value, center, around in zip(exact, x.tolist(), radius.tolist(), strict=True):
        assert abs(value - Fraction(center)) <= Fraction(around) <= abs(Fraction(center)) / 10**13


def test_usual_matrices_are_not_equilibrated(rng):
    ab = random_band(rng, 30, 2, 2)
    ab[2] = 8
    assert equilibration(ab, 2, 2) is None
    ab[:, 4] = 0
    assert equilibration(ab, 2, 2) is None  # singular: its column is told


def solved(tmp_path, capsys, matrix, b, *options):
    np.save(tmp_path / "rhs.npy", b)
    where = [str(tmp_path / matrix), str(tmp_path / "rhs.npy"), "-o", str(tmp_path / "x.npy")]
    assert main(["solve", *where, "--json", *options]) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    return np.load(tmp_path / "x.npy"), json.loads(out.splitlines()[-1]), err


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "dense"])
def test_files_of_scipy_and_of_numpy(tmp_path, capsys, rng, kind):
    a = dense(random_band(rng, 25, 3, 1), 3, 1)
    a += 5 * np.eye(25)
    if kind == "dense":
        np.save(tmp_path / "a.npy", a)
    else:
        sparse.save_npz(tmp_path / "a.npz", sparse.coo_array(a).asformat(kind))
    name = "a.npy" if kind == "dense" else "a.npz"
    found = read_band(tmp_path / name)
    assert (found.kl, found.ku, found.order) == (3, 1, None) and np.array_equal(dense(found.ab, 3, 1), a)
    x, told, _err = solved(tmp_path, capsys, name, np.ones(25), "--natural-order", "--trans")
    assert np.allclose(a.T @ x, 1, atol=1e-12) and (told["kl"], told["ku"]) == (1, 3)


def test_a_shuffled_grid_is_reordered(tmp_path, capsys, rng):
    side = 12
    line = sparse.diags_array([-1, 2.5, -1], offsets=[-1, 0, 1], shape=(side, side))
    a = (sparse.kron(line, sparse.eye_array(side)) + sparse.kron(sparse.eye_array(side), line)).tocsr()
    order = rng.permutation(side * side)
    shuffled = a[order][:, order]
    sparse.save_npz(tmp_path / "a.npz", shuffled.tocsr())
    b = rng.standard_normal(side * side)
    x, told, err = solved(tmp_path, capsys, "a.npz", b, "--certified", str(tmp_path / "r.npy"))
    assert np.allclose(shuffled @ x, b, atol=1e-12) and told["reordered"]
    assert "reverse Cuthill-McKee" in err and told["kl"] <= 2 * side < told["natural"]["kl"]
    assert told["certified"]["digits"] >= 13 and np.load(tmp_path / "r.npy").max() < 1e-13
    natural, kept, err = solved(tmp_path, capsys, "a.npz", b, "--natural-order")
    assert not kept["reordered"] and not err.startswith("rayfold") and np.allclose(natural, x, atol=1e-12)


def test_float32_factors_are_refined(tmp_path, capsys, rng):
    ab = random_band(rng, 60, 2, 2)
    ab[2] += 6
    np.savez(tmp_path / "a.npz", ab=ab, kl=2, ku=2)
    x, told, _err = solved(tmp_path, capsys, "a.npz", np.ones(60), "--precision", "float32")
    assert (told["precision"], told["dtype"]) == ("float32", "float64") and told["correct_digits"] >= 14
    assert np.allclose(dense(ab, 2, 2) @ x, 1, atol=1e-13)


DAMAGED = {
    "format": (dict(format=np.array("bsr")), "format is 'bsr'; it must be one of csr, csc, coo, dia"),
    "objects": (dict(format=np.array([1, 2])), "format is .* int64"),
    "indptr": (dict(indptr=np.array([0, 2, 1, 3])), "indptr does not divide 3 entries"),
    "column": (dict(indices=np.array([0, 1, 9])), "an entry in column 9 of a matrix of 3 x 3"),
    "length": (dict(indices=np.array([0, 1])), "2 and 3 numbers"),
    "shape": (dict(shape=np.array([3, 4])), r"\(3, 4\); it must be square"),
    "huge": (dict(shape=np.array([1 << 60, 3])), "shape is"),
    "nan": (dict(data=np.array([1, np.nan, 2])), "row 1, column 1 is nan; it must be finite"),
    "floats": (dict(indices=np.array([0.0, 1, 2])), "indices is .* float64"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_of_scipy_are_told(tmp_path, name):
    table = dict(
        format=np.array(b"csr"), shape=np.array([3, 3]), data=np.ones(3), indices=np.arange(3), indptr=np.arange(4)
    )
    changes, words = DAMAGED[name]
    np.savez(tmp_path / "a.npz", **(table | changes))
    with pytest.raises(InputError, match=words):
        read_band(tmp_path / "a.npz")
    table.pop("indices")
    np.savez(tmp_path / "b.npz", **table)
    with pytest.raises(InputError, match="without 'indices'"):
        read_band(tmp_path / "b.npz")


def laplacian_like(rng, n, k):
    """A symmetric positive definite band, by diagonal dominance."""
    ab = random_band(rng, n, k, k)
    for d in range(1, k + 1):
        ab[k - d, d:] = ab[k + d, :-d]
    ab[k] = 1 + 2 * k * 3
    return ab


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_tridiagonal_factors_are_those_of_gbtrf(rng, dtype):
    from tests.numerics.band_matrices import lapack_factors, upper_of

    ab, b = random_band(rng, 400, 1, 1, dtype), rng.standard_normal((400, 3)).astype(dtype)
    lu = BandedLU(ab, 1, 1)
    factors, pivots, _info = lapack_factors(ab, 1, 1)
    assert type(lu._factors).__name__ == "TridiagonalFactors" and np.array_equal(lu.pivots, pivots)
    assert np.allclose(lu.upper(), upper_of(factors, 1, 1), rtol=1e-3 if dtype == "f4" else 1e-10)
    a = dense(ab, 1, 1).astype("f8")
    for trans, matrix in (("N", a), ("T", a.T)):
        x = lu.solve(b, trans)
        assert np.abs(matrix @ x - b).max() < 100 * np.finfo(dtype).eps * np.abs(x).max()
    sign, log = np.linalg.slogdet(a)
    assert lu.slogdet()[0] == sign and lu.slogdet()[1] == pytest.approx(log, rel=1e-4)
    ab[:, 7] = 0
    assert BandedLU(ab, 1, 1).info == 8


def test_cholesky(tmp_path, capsys, rng):
    ab, b = laplacian_like(rng, 90, 4), rng.standard_normal(90)
    lu, chosen = BandedLU(ab, 4, 4), BandedLU(ab, 4, 4, cholesky=True)
    assert np.allclose(chosen.solve(b), lu.solve(b), rtol=1e-12) and chosen.row_interchanges == 0
    assert np.allclose(chosen.slogdet(), lu.slogdet()) and chosen.rcond() == pytest.approx(lu.rcond(), rel=1e-9)
    plain = dense(ab, 4, 4)
    unit = np.linalg.cholesky(plain)
    assert np.allclose(dense(chosen.upper(), 0, 8), (unit * np.diag(unit)).T)
    np.savez(tmp_path / "a.npz", ab=ab, kl=4, ku=4)
    x, told, _err = solved(tmp_path, capsys, "a.npz", b, "--cholesky", "--certified", str(tmp_path / "r.npy"))
    assert np.allclose(plain @ x, b, atol=1e-13) and told["certified"]["digits"] >= 14


def test_matrices_without_a_cholesky_factor_are_told(rng):
    ab = laplacian_like(rng, 30, 2)
    ab[2, 11] = -1
    with pytest.raises(InputError, match="not positive definite: its leading minor of order 12"):
        BandedLU(ab, 2, 2, cholesky=True)
    ab[1, 5] += 1
    with pytest.raises(InputError, match="not symmetric: row 4, column 5 is"):
        BandedLU(ab, 2, 2, cholesky=True)
    with pytest.raises(InputError, match="1 diagonals below the main one and 2 above"):
        BandedLU(ab[:4], 1, 2, cholesky=True)


@pytest.mark.parametrize("decades,rhs", [(0, 1), (8, 2)])
def test_least_squares_have_all_digits(tmp_path, capsys, rng, decades, rhs):
    """Two columns that differ by 10^-8: the normal equations have a condition of 10^16. Witness: fractions."""
    m, n = 24, 8
    a = np.zeros((m, n))
    for i in range(m):
        near = slice(max(0, i * n // m - 1), i * n // m + 2)
        a[i, near] = rng.standard_normal(a[i, near].shape) * 1e3
    if decades:
        a[:, 4] = a[:, 3] + a[:, 4] * 10.0**-decades
    b = rng.standard_normal((m, rhs))
    rows = [[Fraction(v) for v in row] for row in a.tolist()]
    sides = [[Fraction(v) for v in row] for row in b.tolist()]
    normal = [[sum(r[j] * r[k] for r in rows) for k in range(n)] for j in range(n)]
    right = [[sum(r[j] * s[k] for r, s in zip(rows, sides, strict=True)) for k in range(rhs)] for j in range(n)]
    exact = np.array([[float(v) for v in row] for row in eliminated(normal, right)])
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array(a))
    np.save(tmp_path / "b.npy", b)
    files = [str(tmp_path / name) for name in ("a.npz", "b.npy", "x.npy", "r.npy")]
    command = ["solve", *files[:2], "-o", files[2], "--least-squares", "--certified", files[3], "--json"]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    x, radius = np.load(files[2]), np.load(files[3])
    error = np.abs(x - exact).max() / np.abs(exact).max()
    assert x.shape == (n, rhs) and error <= min(told["forward_bound"], 4e-16)
    assert (np.abs(x - exact) <= radius + 2e-16 * np.abs(exact)).all()
    assert told["least_squares"]["residual_norm"] == pytest.approx(np.linalg.norm(b - a @ x, axis=0).max())


def eliminated(matrix, right):
    """The solution of a symmetric positive definite system of fractions."""
    rows = [[*left, *side] for left, side in zip(matrix, right, strict=True)]
    for j, pivot in enumerate(rows):
        pivot[:] = [v / pivot[j] for v in pivot]
        for i, row in enumerate(rows):
            if i != j:
                row[:] = [v - row[j] * w for v, w in zip(row, pivot, strict=True)]
    return [row[len(rows) :] for row in rows]


@pytest.mark.parametrize(
    "a,extra,words",
    [
        (np.ones((2, 3)), [], r"is \(2, 3\); least squares take at least as many rows"),
        (np.array([[1.0, 0], [2, 0], [3, 0]]), [], "column 1 .* is zero"),
        (np.ones((3, 1)), ["--trans"], "goes with none of --trans"),
        (np.ones((4, 1)), [], "the matrix has 4 rows"),
    ],
)
def test_least_squares_that_cannot_be(tmp_path, capsys, a, extra, words):
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", np.ones(3))
    files = [str(tmp_path / name) for name in ("a.npy", "b.npy", "x.npy")]
    assert main(["solve", *files[:2], "-o", files[2], "--least-squares", *extra]) in (2, 5)
    assert re.search(words, capsys.readouterr().err)


@pytest.mark.parametrize("kl,ku", [(2, 1), (0, 3), (4, 0)])
def test_complex_systems_are_solved_to_all_digits(rng, kl, ku):
    """Against scipy's complex solver, A x by dense algebra, and both transposes; corners are not read."""
    n = 30
    ab, other = rng.standard_normal((2, kl + ku + 1, n))
    ab = ab + 1j * other
    a = dense(ab, kl, ku)
    spoiled = ab.copy()
    for j in range(ku):
        spoiled[: ku - j, j] = np.nan
    x = rng.standard_normal((n, 2)) + 1j * rng.standard_normal((n, 2))
    for trans, matrix in (("N", a), ("T", a.T), ("C", a.conj().T)):
        found, report = renderer.solve(spoiled, matrix @ x, kl, ku, trans=trans, report=True)
        assert np.abs(found - np.linalg.solve(matrix, matrix @ x)).max() < 1e-9 * np.abs(x).max()
        assert np.abs(matrix @ found - matrix @ x).max() < 1e-13 * np.abs(a).sum(axis=1).max() * np.abs(x).max()
        assert report["backward_error"] < 1e-15 and report["correct_digits"] >= 14
    one = renderer.solve(ab, (a @ x)[:, 0], kl, ku)
    assert one.shape == (n,) and np.array_equal(one, renderer.solve(ab, a @ x, kl, ku)[:, 0])
    real = renderer.solve(ab.real, np.ones(n), kl, ku, trans="T")
    assert np.abs(a.real.T @ real - 1).max() < 1e-12 * max(1, np.abs(real).max())
    with pytest.raises(InputError, match=r"is \(9,\) float64; it must have the 30 rows"):
        renderer.solve(ab, np.ones(9), kl, ku)
    with pytest.raises(InputError, match=r"is \(30,\) <U1; it must"):
        renderer.solve(ab, np.full(30, "x"), kl, ku)
    with pytest.raises(UserError, match="trans is 'H'; allowed are N, T and C"):
        renderer.solve(ab, np.ones(30), kl, ku, trans="H")


@pytest.mark.parametrize("precision", ["f8", "f4"])
def test_the_host_factors_complex_matrices_as_complex(rng, precision):
    """Half the order for LAPACK; the real form's determinant, condition, growth and pivots, against dense algebra."""
    n, kl, ku = 40, 3, 2
    a = np.tril(np.triu(rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)), -kl), ku)
    ab = np.zeros((kl + ku + 1, n), "c16")
    for d in range(-kl, ku + 1):
        ab[ku - d, max(d, 0) : n + min(d, 0)] = np.diagonal(a, d)
    lu = BandedLU(real_band(ab), 2 * kl + 1, 2 * ku + 1, precision=precision, is_complex_form=True)
    assert type(lu._factors) is ComplexFactors and lu._factors._storage.shape == (2 * kl + ku + 1, n)
    sign, log = lu.slogdet()
    tolerance = 1e-11 if precision == "f8" else 1e-4
    assert sign == 1 and abs(log - 2 * np.linalg.slogdet(a)[1]) < tolerance * n
    real = np.kron(a.real, np.eye(2)) + np.kron(a.imag, [[0, -1], [1, 0]])
    assert 0.3 < lu.rcond() * np.linalg.norm(real, 1) * np.linalg.norm(np.linalg.inv(real), 1) <= 1 + 1e-3
    pivots = lu.pivots.reshape(n, 2)
    assert (pivots[:, 0] + 1 == pivots[:, 1]).all() and (pivots[:, 0] // 2 - np.arange(n)).max() <= kl
    upper = lu.upper()
    assert np.abs(upper).max() == pytest.approx(lu.pivot_growth * max(np.abs(ab.real).max(), np.abs(ab.imag).max()))
    b = rng.standard_normal((2 * n, 3))
    for trans, matrix in (("N", real), ("T", real.T)):
        assert np.abs(matrix @ lu.solve(b, trans) - b).max() < 1e-11
    ab[:, 7] = 0
    assert BandedLU(real_band(ab), 2 * kl + 1, 2 * ku + 1, is_complex_form=True).info == 15


def test_extended_factors_solve_what_float64_does_not(tmp_path, capsys, rng):
    """Hilbert's matrix of order 16, condition 1e22: the plain answer says that it has no digits, this one has them."""
    n = 16
    a, b = 1 / (1.0 + np.add.outer(np.arange(n), np.arange(n))), rng.standard_normal((n, 2))
    exact = np.array([[float(v) for v in row] for row in solve_exactly(a, b)])
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    files = [str(tmp_path / name) for name in ("a.npy", "b.npy", "x.npy")]
    command, radius = ["solve", *files[:2], "-o", files[2], "--json"], str(tmp_path / "r.npy")
    assert main(command) == 3
    assert "--extended computes with twice" in capsys.readouterr().err
    assert main([*command, "--certified", radius]) == 3
    assert main([*command, "--extended", "--certified", radius]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    errors = np.abs(np.load(files[2]) - exact)
    assert report["extended"] and report["backward_error"] < 1e-15
    assert errors.max() / np.abs(exact).max() <= report["forward_bound"] < 1e-12
    assert report["certified"]["proof"] == "extended inverse" and report["certified"]["digits"] >= 14
    assert (errors <= np.load(radius) + 2.0**-53 * np.abs(exact)).all()  # `exact` is rounded


@pytest.mark.parametrize("kl,ku", [(3, 2), (0, 4), (4, 0), (0, 0), (11, 11)])
def test_extended_factors_of_any_band(rng, kl, ku):
    ab = random_band(rng, 12, kl, ku)
    ab[0, :ku] = np.nan
    ab[:, 6] *= 2.0**-40
    a, b = dense(ab, kl, ku), rng.standard_normal((12, 1))
    found = solve_extended(ExtendedFactors(ab, kl, ku), b[:, 0])
    exact = np.array([float(v[0]) for v in solve_exactly(a, b)])
    assert np.abs(found.x - exact).max() <= 3e-16 * np.abs(exact).max() and found.forward_bound < 1e-15
    with pytest.raises(SingularMatrix, match="pivot of column 0"):
        ExtendedFactors(np.zeros((kl + ku + 1, 12)), kl, ku)


def test_extended_factors_that_would_take_hours_are_told():
    huge = np.lib.stride_tricks.as_strided(np.zeros(1), (2049, 1 << 20), (0, 0))
    with pytest.raises(InputError, match="in twice the precision; at most"):
        ExtendedFactors(huge, 1024, 1024)


@pytest.mark.parametrize(
    ("kind", "proof"),
    [("poisson", "comparison matrix"), ("random", "singular value"), ("ill", "inverse"), ("rounded", "singular value")],
)
def test_cheap_enclosures_hold_every_component(rng, monkeypatch, kind, proof):
    """As above 64 unknowns; the exact solution in fractions, and radii of about half a unit in the last place."""
    monkeypatch.setattr(certified, "ROWS", 16)
    n, kl, ku = 24, 2, 1
    ab, b = random_band(rng, n, kl, ku), rng.standard_normal((n, 2))
    if kind == "poisson":
        ab[:] = np.array([[-1.0], [2], [-1], [0]])
    elif kind == "ill":  # two columns that differ in the ninth digit
        ab[3, 11] = ab[0, 10] = 0
        ab[:3, 11] = ab[1:, 10] * (1 + 1e-9 * rng.standard_normal(3))
    else:
        ab[1] += 2
    ab[0, 0], ab[3, -1], b[:, 1] = 1e300, np.nan, 0  # unused corners, and a right-hand side of zeros
    lu = BandedLU(ab, kl, ku)
    found = enclose(lu, solve_refined(lu, b), b, uncertainty=1e-40 if kind == "rounded" else 0.0)
    exact = exact_solution(dense(ab, kl, ku), b[:, :1])
    assert found.proof == proof and not found.radius[:, 1].any()
    for (value,), center, radius in zip(exact, found.x[:, 0].tolist(), found.radius[:, 0].tolist(), strict=True):
        assert abs(value - Fraction(center)) <= Fraction(radius)
    assert found.radius.max() < 4e-16 * np.abs(found.x).max()
