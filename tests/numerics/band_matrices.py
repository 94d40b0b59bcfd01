"""Band matrices for tests, their factors and solutions by LAPACK, and the product of factored block columns."""

import numpy as np
from scipy.linalg import lapack

from renderer.numerics.band_lu.devices.block_cyclic import Schedule

EPS = {"f4": np.finfo("f4").eps, "f8": np.finfo("f8").eps}


def scheduled(storage="resident", gemm="vendor"):
    """The `schedule` argument of BandedLU for "resident" or "streamed" block columns."""
    return {"schedule": Schedule(storage == "resident", gemm == "vendor")}


def random_band(rng, n, kl, ku, dtype="f8"):
    return rng.standard_normal((kl + ku + 1, n)).astype(dtype)


def dense(ab, kl, ku):
    n = ab.shape[1]
    a = np.zeros((n, n), ab.dtype)
    for j in range(n):
        for i in range(max(0, j - ku), min(n, j + kl + 1)):
            a[i, j] = ab[ku + i - j, j]
    return a


def lapack_factors(ab, kl, ku):
    gbtrf = lapack.dgbtrf if ab.dtype == np.float64 else lapack.sgbtrf
    return gbtrf(np.vstack([np.zeros((kl, ab.shape[1]), ab.dtype), ab]), kl, ku)


def clamped(ab, kl, ku):
    n = ab.shape[1]
    low, high = min(kl, n - 1), min(ku, n - 1)
    return ab[ku - high : ku + low + 1], low, high


def plu_of(factors):
    """The product P L U of factored block columns, dense."""
    layout, s = factors.layout, factors.layout.s
    order = layout.p * s
    product = np.zeros((order, order))
    for c in range(order):
        for r in range(max(0, (c // s - layout.u) * s), c + 1):
            product[r, c] = factors.flat[layout.offset(r, c)]
    for i in reversed(range(layout.p)):
        rows = layout.panel_rows(i)
        window = product[i * s : i * s + rows]
        panel = np.array(
            [[factors.flat[layout.offset(i * s + r, i * s + c)] for c in range(s)] for r in range(rows)], float
        )
        top = window[:s].copy()
        window[s:] += panel[s:] @ top
        window[:s] = (np.tril(panel[:s], -1) + np.eye(s)) @ top
        for k in reversed(range(s)):
            other = factors.panel_pivots[i * s + k] - 1
            window[[k, other]] = window[[other, k]]
    return product[: layout.n, : layout.n]


def factor_residual(factors, ab, kl, ku):
    """LAPACK's gbt01: |P L U - A|_1 / (n |A|_1 eps)."""
    a = dense(ab, kl, ku).astype(float)
    scale = len(a) * np.abs(a).sum(axis=0).max() * EPS[factors.dtype.str[1:]]
    return np.abs(plu_of(factors) - a).sum(axis=0).max() / scale if scale else 0.0


def convection(side, peclet_x, peclet_y, upwind=False, lines=None):
    """Five-point convection-diffusion on side x lines unknowns: (ab, kl, ku)."""
    n = side * (lines or side)
    ab = np.zeros((2 * side + 1, n))
    inner = np.arange(n) % side
    if upwind:
        west, east = -1 - max(peclet_x, 0), -1 + min(peclet_x, 0)
        south, north = -1 - max(peclet_y, 0), -1 + min(peclet_y, 0)
        center = 4 + abs(peclet_x) + abs(peclet_y)
    else:
        west, east, south, north = -1 - peclet_x / 2, -1 + peclet_x / 2, -1 - peclet_y / 2, -1 + peclet_y / 2
        center = 4.0
    ab[side] = center
    ab[side + 1] = np.where(inner < side - 1, west, 0)  # row j + 1, column j
    ab[side - 1] = np.where(inner > 0, east, 0)
    ab[2 * side], ab[0] = south, north
    return ab, side, side


def upper_of(lu, kl, ku):
    upper = lu[: kl + ku + 1].copy()
    for j in range(min(kl + ku, upper.shape[1])):
        upper[: kl + ku - j, j] = 0
    return upper
