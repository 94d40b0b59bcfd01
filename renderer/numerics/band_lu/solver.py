"""BandedLU: the factors of one band matrix as an object, wherever they were made and wherever they live."""

from typing import Literal

import numpy as np

from renderer.errors import InputError, UserError
from renderer.gpu import Buffer, Device
from renderer.numerics.band_lu import block_columns, memory
from renderer.numerics.band_lu.block_columns import Layout, NotFinite, SingularMatrix, SolutionOverflows, usual_block
from renderer.numerics.band_lu.block_cyclic import DealtFactors
from renderer.numerics.band_lu.host_factors import ThinFactors
from renderer.numerics.band_lu.multicore import HostFactors

THIN = 32  # bands of fewer diagonals go to LAPACK's unblocked routine when the host works alone
LARGEST_BLOCK = 512
REFINEMENTS = 10
FLUSH_ABOVE = {"f4": 1e-18, "f8": 1e-150}  # matrices of smaller numbers than these keep their subnormals
ORDINARY = {"f4": (1e-28, 1e28), "f8": (1e-280, 1e280)}  # max |a_ij| whose factors neither overflow nor vanish; others
# are factored as A 2^k
CHOICES = {
    "precision": (None, "f4", "f8"),
    "panels": ("auto", "host", "device"),
    "residence": ("auto", "whole", "streamed"),
    "products": ("vendor", "own"),
}


class BandedLU:
    """P L U of the real band matrix A of ab (kl + ku + 1, n), LAPACK's layout: ab[ku + i - j, j] = A[i, j].

    Without devices the host's cores factor it; else block column i goes to devices[i mod q]. `panels` and `residence`
    are chosen by what the devices are and hold. `precision` "f4" with a float64 ab factors in float32 and refines
    every solution in float64. With `products` "own" the factors have the same bits on any number of devices, whole or
    streamed; the vendor's float32 products may round otherwise where the block columns lie otherwise. `info` is
    LAPACK's: 0, or 1 + the first column whose pivot is exactly zero; then solve raises SingularMatrix.
    """

    def __init__(
        self,
        ab: np.ndarray,
        kl: int,
        ku: int,
        devices: tuple[Device, ...] = (),
        block: int | None = None,
        precision: Literal["f4", "f8"] | None = None,
        panels: Literal["auto", "host", "device"] = "auto",
        residence: Literal["auto", "whole", "streamed"] = "auto",
        products: Literal["vendor", "own"] = "vendor",
    ):
        check_words(precision=precision, panels=panels, residence=residence, products=products)
        ab = shaped_band(ab, kl, ku)
        n = ab.shape[1]
        self.n, self.kl, self.ku = n, min(int(kl), n - 1), min(int(ku), n - 1)
        self._given = int(kl), int(ku)
        self.dtype, self.precision = ab.dtype, np.dtype(precision or ab.dtype)
        devices = list(devices)
        thin = self.kl + self.ku + 1 < THIN and block is None
        block = checked_block(block) or usual_block(
            n, self.kl, self.ku, devices[0].properties.warp_size if devices else 1
        )
        self.layout = Layout(n, self.kl, self.ku, block)
        if devices:
            whole = memory.residence(self.layout, self.precision, devices, residence, ab.nbytes)
            host = panels == "host" or (panels == "auto" and devices[0].properties.scalar_threads)
            self._factors = DealtFactors(self.layout, self.precision, devices, whole, host, products == "vendor")
        else:
            memory.check_host(memory.host_bytes(self.layout, self.precision, thin), ab.nbytes)
            self._factors = (ThinFactors if thin else HostFactors)(self.layout, self.precision)
        self.refactor(ab)

    def refactor(self, ab: np.ndarray) -> "BandedLU":
        """Factors another matrix of the same shape into the same buffers; returns self.

        A matrix that holds NaN or infinity is refused; the factors before it are lost then.
        """
        ab = shaped_band(ab, *self._given)
        if ab.shape[1] != self.n or ab.dtype != self.dtype:
            raise InputError(f"ab is {ab.shape} {ab.dtype}; the factors are for n = {self.n} {self.dtype}")
        own = ab[self._given[1] - self.ku : self._given[1] + self.kl + 1]
        self._ab, self._norm = None, None
        size = self._factor(own, 0)
        if size == 0 and self.precision != self.dtype:  # too small for the precision
            size = largest_element(ab, *self._given)
        least, most = ORDINARY[self.precision.str[1:]]
        if size > 0 and not least <= size <= most:
            self._factor(own, -int(np.frexp(size)[1]))
        self._ab = own
        return self

    def _factor(self, own: np.ndarray, exponent: int) -> float:
        """Factors A 2^exponent; max |a_ij| of A. A power of two changes no bit but those of subnormal numbers."""
        self._exponent = exponent
        with np.errstate(over="ignore"):
            given = (np.ldexp(own, exponent) if exponent else own).astype(self.precision, copy=False)
        try:
            self._factors.factor(given, FLUSH_ABOVE[self.precision.str[1:]])
        except NotFinite:
            told = f"{largest_element(own, self.kl, self.ku):.6g}"
            raise InputError(f"ab holds {told}, which is no {self.precision} number") from None
        self._largest = self._factors.largest_given
        return self._largest

    @property
    def info(self) -> int:
        return self._factors.info

    @property
    def where(self) -> str:
        """What factored the matrix."""
        return self._factors.name

    @property
    def timeline(self) -> list[dict]:
        """Seconds of panel, swap, solve, update and copy for each timed step, added over devices and cores."""
        return self._factors.timeline

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each part over all steps: extended from the timed ones where devices made the factors."""
        return self._factors.seconds

    @property
    def pivots(self) -> np.ndarray:
        """(n,) int32 row that was exchanged with row j at step j: LAPACK's ipiv - 1."""
        return self._factors.pivots()

    @property
    def growth(self) -> float:
        """max |u| / max |a|."""
        return self._factors.largest() / self._largest if self._largest else 1.0

    def upper(self) -> np.ndarray:
        """U (kl + ku + 1, n) in LAPACK's layout, from the host or fetched."""
        upper = self._factors.upper()
        return np.ldexp(upper, -self._exponent) if self._exponent else upper

    def solve(self, b: np.ndarray, trans: Literal["N", "T"] = "N") -> np.ndarray:
        """x of A x = b, or of A^T x = b with trans "T"; b and x are (n,) or (n, m), float32 or float64.

        SingularMatrix where a pivot is exactly zero, SolutionOverflows where x would not be finite.
        """
        if trans not in ("N", "T"):
            raise UserError(f"trans is {trans!r}; allowed are N and T")
        self._check_factors()
        b = block_columns.real_array(b, "the right-hand side")
        if b.ndim not in (1, 2) or b.shape[0] != self.n:
            raise InputError(f"the right-hand side is {b.shape}; it must be ({self.n},) or ({self.n}, m)")
        sides = b.reshape(self.n, -1).astype(self.dtype, copy=False)
        if not np.isfinite(sides).all():
            row, column = np.argwhere(~np.isfinite(sides))[0]
            raise InputError(
                f"the right-hand side is {sides[row, column]} in row {row}, column {column}; it must be finite"
            )
        if sides.shape[1] == 0:
            return sides.reshape(b.shape).copy()
        x = self._refined(sides, trans == "T") if self.precision != self.dtype else self._solve(sides, trans == "T")
        if not np.isfinite(x).all():
            raise SolutionOverflows(self.dtype)
        return np.ascontiguousarray(x).reshape(b.shape)

    def solve_in_place(self, sides: Buffer) -> None:
        """Replaces right-hand sides on a device by the solutions, not over the host where the factors are there.

        `sides` is (m, order) of the factors' precision, zero from column n on; order is the layout's p s.
        """
        self._check_factors()
        factors = self._factors
        there = isinstance(factors, DealtFactors) and factors.on_one_device and factors.devices[0] is sides.device
        if there and not self._exponent:
            factors.substitute(sides)
        else:
            values = sides.read()
            values[:, : self.n] = self._solve(np.ascontiguousarray(values[:, : self.n].T), False).T
            sides.write(values)

    def _check_factors(self) -> None:
        if self._ab is None:
            raise InputError("the last matrix was refused: there are no factors to solve with")
        if self.info:
            raise SingularMatrix(self.info - 1)

    @property
    def order(self) -> int:
        """n rounded up to whole blocks."""
        return self.layout.p * self.layout.s

    def _solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        x = self._solve_scaled(b, transposed)
        with np.errstate(over="ignore"):  # told by solve()
            return np.ldexp(x, self._exponent) if self._exponent else x

    def _solve_scaled(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """With the factors as they are, those of A 2^exponent."""
        return self._factors.solve(b.astype(self.precision, copy=False), transposed).astype(self.dtype, copy=False)

    def _refined(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Iterative refinement: float64 residuals, corrections by the float32 factors, until they no longer shrink."""
        x, best = np.zeros_like(b), np.full(b.shape[1], np.inf)
        residual = b
        for _ in range(REFINEMENTS):
            scale = np.abs(residual).max(axis=0)  # so that float32 neither overflows nor underflows
            scale[scale == 0] = 1
            step = self._solve(residual / scale, transposed) * scale
            trial = x + step
            left = b - block_columns.product(self._ab, self.kl, self.ku, trial, transposed)
            size = np.abs(left).max(axis=0)
            better = size < best
            x[:, better], best = trial[:, better], np.where(better, size, best)
            residual = np.where(better, left, 0)
            if not (better & (size > 0)).any():
                break
        return x

    def residual(self, x: np.ndarray, b: np.ndarray) -> float:
        """|b - A x|_1 / (n |A|_1 |x|_1), the largest over the right-hand sides: a backward error."""
        x, b = (np.asarray(v, self.dtype).reshape(self.n, -1) for v in (x, b))
        left = np.abs(b - block_columns.product(self._ab, self.kl, self.ku, x)).sum(axis=0)
        scale = self.n * self.norm * np.abs(x).sum(axis=0)
        told = np.divide(left, scale, out=np.where(left == 0, 0.0, np.inf), where=scale > 0)
        return float(told.max(initial=0))

    @property
    def norm(self) -> float:
        """|A|_1, the largest column sum."""
        if self._norm is None:
            self._norm = block_columns.norm1(self._ab, self.kl, self.ku)
        return self._norm

    def slogdet(self) -> tuple[float, float]:
        """The sign of det A and log |det A|; (0, -inf) of a singular matrix."""
        if self.info:
            return 0.0, float("-inf")
        diagonal = self._factors.diagonal().astype(np.float64)
        exchanges = int((self.pivots != np.arange(self.n)).sum()) + int((diagonal < 0).sum())
        size = np.log(np.abs(diagonal)).sum() - self.n * self._exponent * np.log(2)
        return -1.0 if exchanges % 2 else 1.0, float(size)

    def rcond(self) -> float:
        """1 / (|A|_1 |A^-1|_1) with the inverse's norm estimated from a few solves (Hager, Higham)."""
        if self.info:
            return 0.0
        with np.errstate(over="ignore"):
            ways = [lambda v, way=way: self._solve_scaled(v, way) for way in (False, True)]
            product = float(np.ldexp(self.norm, self._exponent)) * inverse_norm1(self.n, *ways, self.dtype)
        return float(1 / product) if 0 < product < np.inf else 0.0


def inverse_norm1(n: int, solve, solve_transposed, dtype) -> float:
    """An estimate, never too large but for rounding, of |A^-1|_1 by Higham's algorithm (ACM TOMS 674)."""
    x = np.full((n, 1), 1 / n, dtype)
    y = solve(x)
    if n == 1:
        return float(np.abs(y).sum())
    best, signs = float(np.abs(y).sum()), np.where(y >= 0, 1, -1).astype(dtype)
    at = int(np.abs(solve_transposed(signs)).argmax())
    for _ in range(5):
        x = np.zeros((n, 1), dtype)
        x[at] = 1
        y = solve(x)
        now, turned = float(np.abs(y).sum()), np.where(y >= 0, 1, -1).astype(dtype)
        if now <= best or np.array_equal(turned, signs):
            best = max(best, now)
            break
        best, signs = now, turned
        z = np.abs(solve_transposed(signs))
        previous, at = at, int(z.argmax())
        if z[previous] == z[at]:
            break
    k = np.arange(n)
    alternating = (np.where(k % 2, -1, 1) * (1 + k / (n - 1))).astype(dtype)[:, None]
    return max(best, 2 * float(np.abs(solve(alternating)).sum()) / (3 * n))


def checked_band(ab, kl, ku) -> np.ndarray:
    """ab as a float32 or float64 array of the shape that kl and ku ask for; InputError unless finite."""
    ab = shaped_band(ab, kl, ku)
    largest_element(ab, kl, ku)
    return ab


def largest_element(ab: np.ndarray, kl: int, ku: int) -> float:
    """max |a_ij| of a band; InputError unless all are finite."""
    with np.errstate(invalid="ignore"):
        largest = block_columns.largest(ab, int(kl), int(ku))
    if not np.isfinite(largest):
        d, column = block_columns.unsound(ab, int(kl), int(ku))
        place = f"ab[{d}, {column}] (row {column + d - ku}, column {column} of A)"
        raise InputError(f"{place} is {ab[d, column]}; it must be finite")
    return largest


def shaped_band(ab, kl, ku) -> np.ndarray:
    """ab as a float32 or float64 array of the shape that kl and ku ask for, or InputError."""
    ab = block_columns.real_array(ab, "ab")
    for name, value in (("kl", kl), ("ku", ku)):
        block_columns.check_whole(name, value, 0)
    if ab.ndim != 2 or ab.shape[0] != kl + ku + 1 or ab.shape[1] == 0:
        raise InputError(f"ab is {ab.shape}; with kl = {kl} and ku = {ku} it must be ({kl + ku + 1}, n), n at least 1")
    return ab if ab.dtype in (np.float32, np.float64) else ab.astype(np.float64)


def check_words(**chosen) -> None:
    """UserError unless every choice of BandedLU is one of its words."""
    for name, value in chosen.items():
        if value not in CHOICES[name]:
            allowed = ", ".join(word for word in CHOICES[name] if word)
            raise UserError(f"{name} is {value!r}; allowed are {allowed}")


def checked_block(block: int | None) -> int | None:
    whole = isinstance(block, (int, np.integer)) and not isinstance(block, bool)
    if block is not None and not (whole and 16 <= block <= LARGEST_BLOCK and block % 16 == 0):
        raise UserError(f"--block is {block}; allowed are the multiples of 16 from 16 to {LARGEST_BLOCK}")
    return block
