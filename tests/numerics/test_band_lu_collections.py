"""`rayfold solve` on Matrix Market files of the kinds that public collections hold, beside SciPy's sparse LU.

The matrices are generated here with the structure of well-known matrices: reservoirs (sherman), convection (pde), beams
(nos), stiffness (bcsstk), chemical plants (west), acoustics (young, complex). The reference to the last digits is
SciPy's solution refined with exact residuals.
"""

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite
from scipy.sparse.linalg import splu

from renderer.cli import main


def grid(*sides, wind=0.0):
    """The Laplacian with upwind convection on a grid of points."""
    total = sparse.csr_array((1, 1))
    for side in sides:
        ones = np.ones(side)
        one = sparse.diags_array([-(1 + wind) * ones[1:], (2 + wind) * ones, -ones[1:]], offsets=[-1, 0, 1])
        total = sparse.kron(total, sparse.eye_array(side)) + sparse.kron(sparse.eye_array(total.shape[0]), one)
    return total.tocsr()


def sherman(rng):
    """Flow in porous rock: a grid of three dimensions whose permeability varies by eight orders of magnitude."""
    a = grid(5, 5, 4, wind=0.3)
    size = sparse.diags_array(10.0 ** rng.uniform(-4, 4, a.shape[0]))
    return size @ a + sparse.diags_array(rng.uniform(0, 1e-3, a.shape[0]))


def pde(rng):
    return grid(16, 12, wind=40.0)


def nos(rng):
    """A beam: fourth differences, condition about n^4."""
    a = grid(120)
    return a @ a


def bcsstk(rng):
    """Springs between the points of an irregular mesh, two unknowns each, in no order."""
    n = 80
    places = rng.uniform(0, 1, (n, 2))
    near = np.argsort(((places[:, None] - places[None]) ** 2).sum(-1), axis=1)[:, 1:7]
    from_place, to_place = np.repeat(np.arange(n), 6), near.ravel()
    d = places[to_place] - places[from_place]
    d /= np.linalg.norm(d, axis=1)[:, None]
    shape, blocks = (n, n), 1e6 * d[:, :, None] * d[:, None, :]

    def part(i, k):  # of displacements i and k
        one, values = (from_place, to_place), blocks[:, i, k]
        rows = np.concatenate([one[0], one[1], one[0], one[1]])
        columns = np.concatenate([one[0], one[1], one[1], one[0]])
        return sparse.coo_array((np.concatenate([values, values, -values, -values]), (rows, columns)), shape).tocsr()

    stiffness = sparse.block_array([[part(0, 0), part(0, 1)], [part(1, 0), part(1, 1)]])
    return stiffness + sparse.diags_array(rng.uniform(1, 1e3, 2 * n))


def west(rng):
    """Balances of a chemical plant: no structure, zeros on the diagonal, numbers from 1e-5 to 1e5."""
    n = 200
    a = sparse.random_array((n, n), density=0.015, rng=rng, data_sampler=lambda size: 10.0 ** rng.uniform(-5, 5, size))
    return (a + sparse.eye_array(n).tocsr()[rng.permutation(n)] * 3.0).tocsr()


def young(rng):
    """Sound in a room that damps it: the Helmholtz equation, complex and symmetric."""
    return grid(14, 12) - (0.9 + 0.2j) * sparse.eye_array(168)


def refined_by_scipy(a, b):
    """SuperLU of the matrix with rows and columns near 1, refined with exact residuals."""
    rows, columns = np.zeros(a.shape[0]), np.zeros(a.shape[0])
    for _ in range(4):
        for axis, exponents in ((1, rows), (0, columns)):
            scaled = sparse.diags_array(2.0**rows) @ abs(a) @ sparse.diags_array(2.0**columns)
            exponents -= np.round(np.log2(scaled.max(axis=axis).toarray().ravel()))
    factors = splu((sparse.diags_array(2.0**rows) @ a @ sparse.diags_array(2.0**columns)).tocsc())
    entries, y = [(i, j, exact(v)) for i, j, v in zip(*a.tocoo().coords, a.tocoo().data, strict=True)], 0 * b
    for _ in range(4):
        residual, x = [exact(v) for v in b], [exact(v) for v in y * 2.0**columns]
        for i, j, (real, imaginary) in entries:
            (re, im), (u, v) = residual[i], x[j]
            residual[i] = re - real * u + imaginary * v, im - real * v - imaginary * u
        parts = np.array([[float(re), float(im)] for re, im in residual]) * 2.0 ** rows[:, None]
        y = y + factors.solve(parts[:, 0] + 1j * parts[:, 1] if np.iscomplexobj(b) else parts[:, 0])
    return y * 2.0**columns


def exact(value):
    return Fraction(float(np.real(value))), Fraction(float(np.imag(value)))


@pytest.mark.parametrize("kind", [sherman, pde, nos, bcsstk, west, young])
def test_matrices_of_collections(tmp_path, capsys, rng, kind):
    a = kind(rng).tocsc()
    n, name = a.shape[0], str(tmp_path / "a.mtx")
    mmwrite(name, a, precision=17)
    b = a @ np.linspace(1, 2, n)
    np.save(tmp_path / "b.npy", b)
    capsys.readouterr()
    assert main(["solve", name, str(tmp_path / "b.npy"), "-o", str(tmp_path / "x.npy"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    x, witness = np.load(tmp_path / "x.npy"), refined_by_scipy(a, b)
    error = np.abs(x - witness).max() / np.abs(witness).max()
    assert error <= said["forward_bound"] + 4e-16, (error, said["forward_bound"])
    assert said["backward_error"] < 1e-14
    assert kind is west or (said["correct_digits"] >= 10 and said["forward_bound"] < 1e-10)  # a plant may be singular
