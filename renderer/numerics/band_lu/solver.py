"""BandedLU: P L U of a band matrix with solves, determinant and condition; solve() is the short form.

The entry of the package for programs, pictures and systems/system.py. BandedLU chooses how to factor: one LAPACK call
(lapack_factors.py), the cores of the host (multicore.py), or devices (devices/block_cyclic.py). It scales matrices
whose factors would overflow, and refines solutions of float32 factors of a float64 matrix.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from renderer.errors import InputError, UserError
from renderer.gpu import Buffer, Device
from renderer.host import available_cores
from renderer.numerics.band_lu import block_columns, lapack_factors, memory
from renderer.numerics.band_lu.accuracy.correction_loop import correct_repeatedly
from renderer.numerics.band_lu.accuracy.residuals import Residual, quotients
from renderer.numerics.band_lu.devices.block_cyclic import BlockCyclicFactors, Schedule
from renderer.numerics.band_lu.multicore import HostFactors

GBTRF_MAX_DIAGONALS = 160  # the host factors narrower bands by gbtrf: blocks are slower for kl = ku < 80
# zgbtrf on one core takes 0.3 of the processor seconds of blocks of the real form (kl = ku = 64 to 400); so with more
# cores than this, blocks factor wide complex bands faster.
ZGBTRF_MAX_CORES = 3
MAX_BLOCK = 512
Solve = Callable[[np.ndarray], np.ndarray]  # a solution (n, m) for right-hand sides (n, m)
MAX_REFINEMENTS = 10
FLUSH_ABOVE = {"f4": 1e-18, "f8": 1e-150}  # subnormal numbers are flushed to zero if max |a_ij| is larger
# range of max |a_ij| in which factors neither overflow nor underflow; other matrices are factored as A 2^k
UNSCALED_RANGE = {"f4": (1e-28, 1e28), "f8": (1e-280, 1e280)}


def solve(ab: np.ndarray, kl: int, ku: int, b: np.ndarray, devices: Sequence[Device] = ()) -> np.ndarray:
    """BandedLU(ab, kl, ku, devices).solve(b): the solution x of A x = b, both (n,) or (n, m).

    `ab` (kl + ku + 1, n) is the real matrix A as LAPACK's band array. Without devices the cores of the host solve.
    """
    return BandedLU(ab, kl, ku, devices).solve(b)


def factor_for(device: Device, ab: np.ndarray, block: int | None = None) -> "BandedLU":
    """Factors ab (2 m + 1, n), with m sub- and m superdiagonals, for a picture that is drawn on `device`.

    A GPU factors the matrix in blocks of `block` columns.
    """
    half = (ab.shape[0] - 1) // 2
    return BandedLU(ab, half, half, (device,), None if device.properties.scalar_threads else block)


class BandedLU:
    """P L U of the real band matrix A, given as LAPACK's band array ab (kl + ku + 1, n): ab[ku + i - j, j] = A[i, j].

    `devices`: block column i goes to GPU i mod q; the cores of the host factor the matrix if no device is a GPU.
    `block`: columns of a block. `schedule`: by default chosen for the kind and the memory of the devices.
    `precision`: "f4" with a float64 ab factors in float32 and refines every solution in float64.
    `cholesky`: the matrix is symmetric positive definite, factored by the host with half the operations.
    `keeps_band`: a single GPU that holds all factors also keeps the matrix, if it has room, for band_on().
    `is_complex_form`: ab is the real form of a complex matrix (complex_systems.py); the host may factor the latter.

    `info` is LAPACK's: 0, or 1 + the first column whose pivot is exactly zero; solve() then raises SingularMatrix.
    InputError if ab has the wrong shape, is not finite or, with `cholesky`, is not symmetric positive definite;
    UnavailableError if memory does not suffice.
    """

    def __init__(
        self,
        ab: np.ndarray,
        kl: int,
        ku: int,
        devices: Sequence[Device] = (),
        block: int | None = None,
        precision: Literal["f4", "f8"] | None = None,
        schedule: Schedule | None = None,
        cholesky: bool = False,
        keeps_band: bool = False,
        is_complex_form: bool = False,
    ):
        if precision not in (None, "f4", "f8"):
            raise UserError(f"precision is {precision!r}; allowed are f4, f8")
        ab = shaped_band(ab, kl, ku)
        n = ab.shape[1]
        self.n, self.kl, self.ku = n, min(int(kl), n - 1), min(int(ku), n - 1)
        self._given = int(kl), int(ku)  # before they are limited to n - 1
        self.dtype, self.precision = ab.dtype, np.dtype(precision or ab.dtype)
        self._ab: np.ndarray | None = None
        self._norm: float | None = None
        self._exponent, self._max_abs_a = 0, 0.0  # A 2^_exponent is factored, with this max |a_ij|
        if schedule is None:  # LAPACK is 6 to 20 times as fast as kernels on a CPU
            devices = [device for device in devices if not device.properties.scalar_threads]
        if cholesky and (devices or block is not None):
            raise UserError("Cholesky factors are made by the host, without --device and --block")
        size = checked_block(block) or block_columns.default_block_size(n, self.kl, self.ku, is_host=not devices)
        self.layout = block_columns.BlockLayout(n, self.kl, self.ku, size)
        self._factors: BlockCyclicFactors | HostFactors | lapack_factors.AnyFactors
        if devices:
            if schedule is None:
                resident = memory.is_resident(self.layout, self.precision, devices, ab.nbytes)
                keeps = keeps_band and resident and memory.has_room_for_band(self.layout, ab, devices)
                schedule = Schedule(resident, keeps_band=keeps)
            self._factors = BlockCyclicFactors(self.layout, self.precision, devices, schedule)
        else:
            factors = _host_factors(self.layout, cholesky, is_complex_form, block is not None)
            needed = memory.host_bytes(self.layout, self.precision, is_blocked=factors is HostFactors)
            memory.check_host(needed, ab.nbytes)
            self._factors = factors(self.layout, self.precision)
        self.refactor(ab)

    def refactor(self, ab: np.ndarray) -> "BandedLU":
        """Factors another matrix of the same shape into the same buffers; returns self.

        InputError for a matrix with NaN or infinity; the previous factors are then lost.
        """
        ab = shaped_band(ab, *self._given)
        if ab.shape[1] != self.n or ab.dtype != self.dtype:
            raise InputError(f"ab is {ab.shape} {ab.dtype}; the factors are for n = {self.n} {self.dtype}")
        band = ab[self._given[1] - self.ku : self._given[1] + self.kl + 1]  # without diagonals outside the matrix
        self._ab, self._norm = None, None
        size = self._factor(band, 0)
        if size == 0 and self.precision != self.dtype:  # the matrix underflows in the precision of the factors
            size = checked_max_abs(ab, *self._given)
        lowest, highest = UNSCALED_RANGE[self.precision.str[1:]]
        if size > 0 and not lowest <= size <= highest:
            self._factor(band, -int(np.frexp(size)[1]))
        self._ab = band
        return self

    def _factor(self, band: np.ndarray, exponent: int) -> float:
        """Factors A 2^exponent, which rounds only subnormal numbers; returns max |a_ij| 2^exponent."""
        self._exponent = exponent
        with np.errstate(over="ignore"):
            scaled = (np.ldexp(band, exponent) if exponent else band).astype(self.precision, copy=False)
        try:
            self._factors.factor(scaled, FLUSH_ABOVE[self.precision.str[1:]])
        except block_columns.NotFinite:
            size = f"{checked_max_abs(band, self.kl, self.ku):.6g}"
            raise InputError(f"ab holds {size}, which is not a {self.precision} number") from None
        self._max_abs_a = self._factors.max_abs_a
        return self._max_abs_a

    @property
    def info(self) -> int:
        """LAPACK's info: 0, or 1 + the first column whose pivot is exactly zero."""
        return self._factors.info

    @property
    def device_name(self) -> str:
        """The name of the device that factored the matrix, or "host"."""
        return self._factors.name

    @property
    def step_seconds(self) -> list[dict[str, float]]:
        """Seconds of the PHASES of each timed step, added over devices and cores."""
        return self._factors.step_seconds

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each of the PHASES over all steps; device seconds are extrapolated from the timed steps."""
        return self._factors.seconds

    @property
    def pivots(self) -> np.ndarray:
        """(n,) int32: the row, counted from 0, that was interchanged with row j in step j (LAPACK's ipiv - 1)."""
        return self._factors.pivots()

    @property
    def row_interchanges(self) -> int:
        """Number of steps whose pivot was not on the diagonal."""
        return int((self.pivots != np.arange(self.n)).sum())

    @property
    def pivot_growth(self) -> float:
        """The maximum of |u_ij| / max |a_ij|."""
        return self._factors.max_abs_u() / self._max_abs_a if self._max_abs_a else 1.0

    def upper(self) -> np.ndarray:
        """U as LAPACK's band array (kl + ku + 1, n), in which row kl + ku is the diagonal."""
        upper = self._factors.upper()
        return np.ldexp(upper, -self._exponent) if self._exponent else upper

    def solve(self, b: np.ndarray, trans: Literal["N", "T"] = "N") -> np.ndarray:
        """The solution x of A x = b, or of A^T x = b with trans "T"; b and x are (n,) or (n, m), float32 or float64.

        SingularMatrix if a pivot is exactly zero, SolutionOverflows if x would not be finite.
        """
        if trans not in ("N", "T"):
            raise UserError(f"trans is {trans!r}; allowed are N and T")
        self._check_factors()
        b = block_columns.real_array(b, "the right-hand side")
        if b.ndim not in (1, 2) or b.shape[0] != self.n:
            raise InputError(f"the right-hand side is {b.shape}; it must be ({self.n},) or ({self.n}, m)")
        rhs = b.reshape(self.n, -1).astype(self.dtype, copy=False)
        if not np.isfinite(rhs).all():
            row, column = np.argwhere(~np.isfinite(rhs))[0]
            raise InputError(
                f"the right-hand side is {rhs[row, column]} in row {row}, column {column}; it must be finite"
            )
        if rhs.shape[1] == 0:
            return rhs.reshape(b.shape).copy()
        x = self._refined(rhs, trans == "T") if self.precision != self.dtype else self._solve(rhs, trans == "T")
        if not np.isfinite(x).all():
            raise block_columns.SolutionOverflows(self.dtype)
        return np.ascontiguousarray(x).reshape(b.shape)

    def solve_in_place(self, rhs: Buffer) -> None:
        """Overwrites right-hand sides in a device buffer with the solutions.

        `rhs` is (m, padded_n) in the precision of the factors, zero from column n on. Factors on the same device solve
        without the host; else the right-hand sides pass through host memory.
        """
        self._check_factors()
        factors = self._factors
        is_local = (
            isinstance(factors, BlockCyclicFactors) and factors.on_one_device and factors.devices[0] is rhs.device
        )
        if is_local and not self._exponent:
            assert isinstance(factors, BlockCyclicFactors)
            factors.solve_in_place(rhs)
        else:
            values = rhs.read()
            values[:, : self.n] = self._solve(np.ascontiguousarray(values[:, : self.n].T), False).T
            rhs.write(values)

    @property
    def matrix(self) -> np.ndarray:
        """The factored matrix as LAPACK's band array (kl + ku + 1, n); InputError if refactor() refused it."""
        if self._ab is None:
            raise InputError("the last matrix was refused: there are no factors to solve with")
        return self._ab

    def band_on(self, device: Device) -> Buffer | None:
        """The matrix (kl + ku + 1, n) in the memory of `device`, if it is kept there (`keeps_band`), else None."""
        factors = self._factors
        if not isinstance(factors, BlockCyclicFactors) or self._exponent or self.precision != self.dtype:
            return None
        return factors.per_device[0].band if factors.devices[0] is device else None

    def _check_factors(self) -> None:
        """InputError if there are no factors, SingularMatrix if a pivot is zero."""
        self.matrix  # noqa: B018  (raises InputError)
        if self.info:
            raise block_columns.SingularMatrix(self.info - 1)

    @property
    def padded_n(self) -> int:
        """The order n rounded up to a multiple of the block size."""
        return self.layout.p * self.layout.s

    def _solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x (n, m) of A x = b, or of the transposed system, without refinement."""
        x = self._solve_scaled(b, transposed)
        with np.errstate(over="ignore"):  # solve() raises SolutionOverflows
            return np.ldexp(x, self._exponent) if self._exponent else x

    def _solve_scaled(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x of A 2^exponent x = b."""
        return self._factors.solve(b.astype(self.precision, copy=False), transposed).astype(self.dtype, copy=False)

    def _refined(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Iterative refinement: float64 residuals, corrections by the float32 factors, while they shrink."""
        size = np.broadcast_to(np.abs(b).max(axis=0), b.shape)

        def residual_of(x: np.ndarray, b: np.ndarray) -> Residual:
            values = b - block_columns.band_matvec(self.matrix, self.kl, self.ku, x, transposed)
            return Residual(values, size)  # with max |b| as size, the backward error is max |r| / max |b|

        def correct(values: np.ndarray) -> np.ndarray:
            scale = np.abs(values).max(axis=0)  # scaled values neither overflow nor underflow in float32
            scale[scale == 0] = 1
            return np.asarray(self._solve(values / scale, transposed) * scale)

        x = correct(b)
        residual = residual_of(x, b)
        step = correct(residual.values)
        return correct_repeatedly(x, b, residual, step, correct, residual_of, MAX_REFINEMENTS, self.dtype).x

    def residual(self, x: np.ndarray, b: np.ndarray) -> float:
        """The backward error |b - A x|_1 / (n |A|_1 |x|_1), the maximum over the right-hand sides."""
        x, b = (np.asarray(v, self.dtype).reshape(self.n, -1) for v in (x, b))
        return self.backward_error(x, b - block_columns.band_matvec(self.matrix, self.kl, self.ku, x))

    def backward_error(self, x: np.ndarray, residual: np.ndarray) -> float:
        """residual() for solutions x (n,) or (n, m) with known b - A x (n, m)."""
        sizes = np.abs(x.reshape(self.n, -1)).sum(axis=0)
        return float(quotients(np.abs(residual).sum(axis=0), self.n * self.norm * sizes).max(initial=0.0))

    @property
    def norm(self) -> float:
        """|A|_1, the largest column sum."""
        if self._norm is None:
            self._norm = block_columns.norm1(self.matrix, self.kl, self.ku)
        return self._norm

    def slogdet(self) -> tuple[float, float]:
        """The sign of det A and log |det A|; (0, -inf) for a singular matrix."""
        if self.info:
            return 0.0, float("-inf")
        diagonal = self._factors.diagonal().astype(np.float64)
        negatives = self.row_interchanges + int((diagonal < 0).sum())
        size = np.log(np.abs(diagonal)).sum() - self.n * self._exponent * np.log(2)
        return -1.0 if negatives % 2 else 1.0, float(size)

    def rcond(self) -> float:
        """1 / (|A|_1 |A^-1|_1), with |A^-1|_1 estimated from a few solves (Hager, Higham)."""
        if self.info:
            return 0.0
        with np.errstate(over="ignore"):
            solve, solve_transposed = (
                partial(self._solve_scaled, transposed=transposed) for transposed in (False, True)
            )
            inverse_norm = inverse_norm1(self.n, solve, solve_transposed, self.dtype)
            condition = float(np.ldexp(self.norm, self._exponent)) * inverse_norm
        return float(1 / condition) if 0 < condition < np.inf else 0.0


def _host_factors(
    layout: block_columns.BlockLayout, cholesky: bool, is_complex_form: bool, has_block: bool
) -> type[HostFactors | lapack_factors.AnyFactors]:
    """The class of factors that the host computes fastest; in blocks if the caller gave their size."""
    is_narrow = layout.kl + layout.ku + 1 < GBTRF_MAX_DIAGONALS and not has_block
    is_few_cores = available_cores() <= ZGBTRF_MAX_CORES and not has_block
    if cholesky:
        return lapack_factors.CholeskyFactors
    if is_complex_form and (is_narrow or is_few_cores):
        return lapack_factors.ComplexFactors
    if not is_narrow:
        return HostFactors
    is_tridiagonal = layout.kl == layout.ku == 1 and layout.n > 2
    return lapack_factors.TridiagonalFactors if is_tridiagonal else lapack_factors.GbtrfFactors


def inverse_norm1(n: int, solve: Solve, solve_transposed: Solve, dtype: DTypeLike) -> float:
    """A lower bound of |A^-1|_1, up to rounding, usually within a factor of 3 (N. Higham, ACM TOMS 674)."""
    k = np.arange(n)
    alternating = np.where(k % 2, -1, 1) * (1 + k / max(n - 1, 1))
    solved = solve(np.column_stack([np.full(n, 1 / n), alternating]).astype(dtype, copy=False))
    y, solved_alternating = solved[:, :1], float(np.abs(solved[:, 1]).sum())
    if n == 1:
        return float(np.abs(y).sum())
    best, signs = float(np.abs(y).sum()), np.where(y >= 0, 1, -1).astype(dtype)
    column = int(np.abs(solve_transposed(signs)).argmax())
    for _ in range(5):  # as LAPACK's lacn2
        x = np.zeros((n, 1), dtype)
        x[column] = 1
        y = solve(x)
        estimate, new_signs = float(np.abs(y).sum()), np.where(y >= 0, 1, -1).astype(dtype)
        if estimate <= best or np.array_equal(new_signs, signs):
            best = max(best, estimate)
            break
        best, signs = estimate, new_signs
        z = np.abs(solve_transposed(signs))
        previous, column = column, int(z.argmax())
        if z[previous] == z[column]:
            break
    return max(best, 2 * solved_alternating / (3 * n))


def checked_max_abs(ab: np.ndarray, kl: int, ku: int) -> float:
    """The maximum of |a_ij|; InputError, naming the first such element, if the matrix holds NaN or infinity."""
    with np.errstate(invalid="ignore"):
        size = block_columns.max_abs(ab, int(kl), int(ku))
    if not np.isfinite(size):
        nonfinite = block_columns.first_nonfinite(ab, int(kl), int(ku))
        assert nonfinite is not None
        d, column = nonfinite
        name = f"ab[{d}, {column}] (row {column + d - ku}, column {column} of A)"
        raise InputError(f"{name} is {ab[d, column]}; it must be finite")
    return size


def shaped_band(ab: ArrayLike, kl: int, ku: int) -> np.ndarray:
    """ab as a float32 or float64 array (kl + ku + 1, n), or InputError."""
    ab = block_columns.real_array(ab, "ab")
    block_columns.check_band(ab, kl, ku)
    return ab if ab.dtype in (np.float32, np.float64) else ab.astype(np.float64)


def checked_block(block: int | None) -> int | None:
    """The block size; UserError unless it is None or a multiple of 16."""
    is_integer = isinstance(block, (int, np.integer)) and not isinstance(block, bool)
    if block is not None and not (is_integer and 16 <= block <= MAX_BLOCK and block % 16 == 0):
        raise UserError(f"--block is {block}; allowed are the multiples of 16 from 16 to {MAX_BLOCK}")
    return block
