"""renderer.sum and renderer.solve against Python's own exact arithmetic and NumPy."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import renderer
from renderer.numerics.band_lu import SingularMatrix


def test_sums_are_exact(tmp_path, rng):
    values = rng.standard_normal(1000) * 10.0 ** rng.integers(-30, 30, 1000)
    assert renderer.sum(values) == math.fsum(values) == renderer.sum(values[::-1], device="cpu")
    assert renderer.sum([1e100, 1.0, -1e100]) == 1.0
    assert renderer.sum([2**62, 2**62, 2**62]) == 3 * 2**62 and renderer.sum(np.ones(5, bool)) == 5
    assert type(renderer.sum(np.arange(4.0))) is float and type(renderer.sum(np.arange(4, dtype="f2"))) is float
    tensor = SimpleNamespace(__dlpack__=lambda **_: values.__dlpack__(), __dlpack_device__=values.__dlpack_device__)
    assert renderer.sum(tensor) == math.fsum(values)
    assert renderer.sum(values + 1j) == complex(math.fsum(values), 1000)
    np.save(tmp_path / "a.npy", values)
    assert renderer.sum(tmp_path / "a.npy") == renderer.sum(values)
    twice = float(2 * sum(map(Fraction, values.tolist())))
    assert renderer.sum([tmp_path / "a.npy", str(tmp_path / "a.npy")]) == twice
    assert math.isclose(renderer.sum(np.abs(values), "fast"), math.fsum(np.abs(values)), rel_tol=1e-12)


def test_wrong_sums_are_sentences(tmp_path):
    with pytest.raises(renderer.UserError, match="mode is 'most'; allowed are"):
        renderer.sum([1.0], "most")
    with pytest.raises(renderer.InputError, match="No such file"):
        renderer.sum(tmp_path / "none.npy")
    with pytest.raises(renderer.UserError):
        renderer.sum(["one", "two"])
    with pytest.raises(renderer.UserError, match="column="):
        renderer.sum("a.parquet")


def test_systems_are_solved(tmp_path, rng):
    ab = rng.standard_normal((4, 30)) + 9 * (np.arange(4) == 1)[:, None]  # kl = 2, ku = 1
    dense = np.zeros((30, 30))
    for j in range(30):
        for i in range(max(0, j - 1), min(30, j + 3)):
            dense[i, j] = ab[1 + i - j, j]
    b = rng.standard_normal((30, 3))
    x = np.linalg.solve(dense, b)
    assert np.allclose(renderer.solve(ab, b, 2, 1), x) and np.allclose(renderer.solve(dense, b), x)
    assert np.allclose(renderer.solve(dense * 1j, b), x / 1j) and np.allclose(
        renderer.solve(ab, b, 2, 1, device="cpu"), x
    )
    found, radius = renderer.solve(ab, b[:, 0], 2, 1, certified=True)
    exact = np.array(rational_solution(dense, b[:, 0]))
    assert all(abs(Fraction(f) - e) <= Fraction(r) for f, e, r in zip(found, exact, radius, strict=True))
    np.savez(tmp_path / "band.npz", ab=ab, kl=2, ku=1)
    np.save(tmp_path / "b.npy", b)
    assert np.array_equal(renderer.solve(tmp_path / "band.npz", str(tmp_path / "b.npy")), renderer.solve(ab, b, 2, 1))


def rational_solution(matrix, b):
    """Gaussian elimination in rational numbers."""
    rows = [[*map(Fraction, row), Fraction(value)] for row, value in zip(matrix.tolist(), b.tolist(), strict=True)]
    n = len(rows)
    for k in range(n):
        for i in range(k + 1, min(n, k + 3)):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [u - factor * v if v else u for u, v in zip(rows[i], rows[k], strict=True)]
    x = [Fraction(0)] * n
    for k in reversed(range(n)):
        x[k] = (rows[k][n] - sum(rows[k][j] * x[j] for j in range(k + 1, n) if rows[k][j])) / rows[k][k]
    return x


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ((np.ones((3, 6)), np.ones(6)), renderer.UserError, "kl = None"),
        ((np.ones((3, 6)), np.ones(6), 1, 2), renderer.UserError, r"must be \(kl \+ ku \+ 1, n\)"),
        ((np.eye(4), np.ones(3)), renderer.InputError, "the matrix has 4 rows"),
        ((np.eye(4), np.full(4, np.nan)), renderer.InputError, "not finite"),
        ((np.full((4, 4), np.inf), np.ones(4)), renderer.InputError, "not finite"),
        ((np.zeros((4, 4)), np.ones(4)), SingularMatrix, "pivot of column 0"),
        (("none.npz", np.ones(4)), renderer.InputError, "No such file"),
        ((np.array(["a"]), np.ones(4)), renderer.InputError, "numbers of two axes"),
    ],
)
def test_wrong_systems_are_sentences(arguments, error, sentence):
    with pytest.raises(error, match=sentence), np.errstate(all="ignore"):
        renderer.solve(*arguments)
