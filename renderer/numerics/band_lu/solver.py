"""BandedLU: the factors of one band matrix as an object, wherever they were made and wherever they are stored."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from renderer.errors import InputError, UserError
from renderer.gpu import Buffer, Device
from renderer.numerics.band_lu import block_columns, memory
from renderer.numerics.band_lu.block_cyclic import BlockCyclicFactors, Schedule
from renderer.numerics.band_lu.host_factors import GbtrfFactors
from renderer.numerics.band_lu.multicore import HostFactors
from renderer.numerics.band_lu.special_factors import CholeskyFactors, TridiagonalFactors

GBTRF_MAX_DIAGONALS = 160  # the host factors narrower bands by LAPACK's gbtrf: blocks are slower below k = 80
MAX_BLOCK = 512
MAX_REFINEMENTS = 10
FLUSH_ABOVE = {"f4": 1e-18, "f8": 1e-150}  # subnormals are kept where max |a_ij| is smaller
# max |a_ij| whose factors neither overflow nor underflow; other matrices are factored as A 2^k
UNSCALED_RANGE = {"f4": (1e-28, 1e28), "f8": (1e-280, 1e280)}


def solve(ab: np.ndarray, kl: int, ku: int, b: np.ndarray, devices: Sequence[Device] = ()) -> np.ndarray:
    """The solution x of A x = b, A the real band matrix of ab (kl + ku + 1, n) in LAPACK's layout.

    b and x are (n,) or (n, m). The host's cores or `devices` solve. BandedLU, which this is short for, has more
    choices, keeps the factors, and says which errors are raised.
    """
    return BandedLU(ab, kl, ku, devices).solve(b)


def factor_for(device: Device, ab: np.ndarray, block: int | None = None) -> "BandedLU":
    """Factors ab (2 m + 1, n), with m sub- and m superdiagonals, for a picture on `device`: there if it is a GPU.

    On a CPU the host's own LAPACK makes the best use of the cores. `block`: block size on GPUs; by default the LU's.
    """
    half = (ab.shape[0] - 1) // 2
    return BandedLU(ab, half, half) if device.properties.scalar_threads else BandedLU(ab, half, half, (device,), block)


class BandedLU:
    """P L U of the real band matrix A of ab (kl + ku + 1, n), LAPACK's layout: ab[ku + i - j, j] = A[i, j].

    Without devices the host's cores factor it; else block column i goes to devices[i mod q], by the `schedule` that
    suits their kind and memory. `precision` "f4" with a float64 ab factors in float32 and refines every solution in
    float64. `cholesky` takes the matrix for symmetric positive definite, on the host: half the operations; InputError
    where it is not. With `keeps_band` one GPU that has all factors has the matrix as well, where it has the room, and
    band_on() gives it.

    `info` is LAPACK's: 0, or 1 + the first column whose pivot is exactly zero; then solve raises SingularMatrix.
    InputError where ab has the wrong shape or is not finite, UnavailableError where memory does not suffice.
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
    ):
        if precision not in (None, "f4", "f8"):
            raise UserError(f"precision is {precision!r}; allowed are f4, f8")
        ab = shaped_band(ab, kl, ku)
        n = ab.shape[1]
        self.n, self.kl, self.ku = n, min(int(kl), n - 1), min(int(ku), n - 1)
        self._given = int(kl), int(ku)
        self.dtype, self.precision = ab.dtype, np.dtype(precision or ab.dtype)
        self._ab: np.ndarray | None = None
        self._norm: float | None = None
        self._exponent, self._max_abs_a = 0, 0.0
        devices = list(devices)
        if cholesky and (devices or block is not None):
            raise UserError("Cholesky factors are made by the host, without --device and --block")
        uses_gbtrf = (cholesky or self.kl + self.ku + 1 < GBTRF_MAX_DIAGONALS) and block is None
        is_cpu = not devices or devices[0].properties.scalar_threads
        block = checked_block(block) or block_columns.default_block_size(n, self.kl, self.ku, is_cpu)
        self.layout = block_columns.BlockLayout(n, self.kl, self.ku, block)
        self._factors: BlockCyclicFactors | GbtrfFactors | HostFactors | TridiagonalFactors | CholeskyFactors
        if devices:
            if schedule is None:
                resident = memory.is_resident(self.layout, self.precision, devices, ab.nbytes)
                keeps = keeps_band and resident and not is_cpu and memory.has_room_for_band(self.layout, ab, devices)
                schedule = Schedule(resident, is_cpu, keeps_band=keeps)
            self._factors = BlockCyclicFactors(self.layout, self.precision, devices, schedule)
        else:
            memory.check_host(memory.host_bytes(self.layout, self.precision, uses_gbtrf), ab.nbytes)
            is_tridiagonal = self.kl == self.ku == 1 and n > 2
            unblocked = CholeskyFactors if cholesky else TridiagonalFactors if is_tridiagonal else GbtrfFactors
            self._factors = (unblocked if uses_gbtrf else HostFactors)(self.layout, self.precision)
        self.refactor(ab)

    def refactor(self, ab: np.ndarray) -> "BandedLU":
        """Factors another matrix of the same shape into the same buffers; returns self.

        InputError for a matrix that holds NaN or infinity; the factors before it are lost then.
        """
        ab = shaped_band(ab, *self._given)
        if ab.shape[1] != self.n or ab.dtype != self.dtype:
            raise InputError(f"ab is {ab.shape} {ab.dtype}; the factors are for n = {self.n} {self.dtype}")
        own = ab[self._given[1] - self.ku : self._given[1] + self.kl + 1]
        self._ab, self._norm = None, None
        size = self._factor(own, 0)
        if size == 0 and self.precision != self.dtype:  # too small for the precision
            size = checked_max_abs(ab, *self._given)
        lowest, highest = UNSCALED_RANGE[self.precision.str[1:]]
        if size > 0 and not lowest <= size <= highest:
            self._factor(own, -int(np.frexp(size)[1]))
        self._ab = own
        return self

    def _factor(self, own: np.ndarray, exponent: int) -> float:
        """Factors A 2^exponent, which rounds subnormal numbers only; returns max |a_ij| of A 2^exponent."""
        self._exponent = exponent
        with np.errstate(over="ignore"):
            given = (np.ldexp(own, exponent) if exponent else own).astype(self.precision, copy=False)
        try:
            self._factors.factor(given, FLUSH_ABOVE[self.precision.str[1:]])
        except block_columns.NotFinite:
            size = f"{checked_max_abs(own, self.kl, self.ku):.6g}"
            raise InputError(f"ab holds {size}, which is not a {self.precision} number") from None
        self._max_abs_a = self._factors.max_abs_a
        return self._max_abs_a

    @property
    def info(self) -> int:
        """LAPACK's info: 0, or 1 + the first column whose pivot is exactly zero."""
        return self._factors.info

    @property
    def device_name(self) -> str:
        """What factored the matrix."""
        return self._factors.name

    @property
    def step_seconds(self) -> list[dict]:
        """Seconds of the PHASES of each timed step, added over devices and cores."""
        return self._factors.step_seconds

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each phase over all steps; those of devices are extrapolated from the timed steps."""
        return self._factors.seconds

    @property
    def pivots(self) -> np.ndarray:
        """(n,) int32: the row that was interchanged with row j at step j: LAPACK's ipiv - 1."""
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
        """U (kl + ku + 1, n) in LAPACK's layout."""
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
        """Replaces right-hand sides on a device by the solutions; the host is not involved if the factors are there.

        `rhs` is (m, padded_n) of the factors' precision, zero from column n on.
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
        """The matrix that was factored, (kl + ku + 1, n)."""
        if self._ab is None:
            raise InputError("the last matrix was refused: there are no factors to solve with")
        return self._ab

    def band_on(self, device: Device) -> Buffer | None:
        """The matrix, (kl + ku + 1, n), where the device has it: see `keeps_band`."""
        factors = self._factors
        if not isinstance(factors, BlockCyclicFactors) or self._exponent or self.precision != self.dtype:
            return None
        return factors.per_device[0].band if factors.devices[0] is device else None

    def _check_factors(self) -> np.ndarray:
        """The matrix that was factored and is not singular."""
        matrix = self.matrix
        if self.info:
            raise block_columns.SingularMatrix(self.info - 1)
        return matrix

    @property
    def padded_n(self) -> int:
        """The order n rounded up to whole blocks."""
        return self.layout.p * self.layout.s

    def _solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        x = self._solve_scaled(b, transposed)
        with np.errstate(over="ignore"):  # solve() raises then
            return np.ldexp(x, self._exponent) if self._exponent else x

    def _solve_scaled(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x of A 2^exponent x = b."""
        return self._factors.solve(b.astype(self.precision, copy=False), transposed).astype(self.dtype, copy=False)

    def _refined(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Iterative refinement: float64 residuals, corrections by the float32 factors, until they no longer shrink."""
        ab = self._check_factors()
        x, best = np.zeros_like(b), np.full(b.shape[1], np.inf)
        residual = b
        for _ in range(MAX_REFINEMENTS):
            scale = np.abs(residual).max(axis=0)  # so that float32 neither overflows nor underflows
            scale[scale == 0] = 1
            step = self._solve(residual / scale, transposed) * scale
            trial = x + step
            left = b - block_columns.band_matvec(ab, self.kl, self.ku, trial, transposed)
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
        left = np.abs(b - block_columns.band_matvec(self.matrix, self.kl, self.ku, x)).sum(axis=0)
        scale = self.n * self.norm * np.abs(x).sum(axis=0)
        error = np.divide(left, scale, out=np.where(left == 0, 0.0, np.inf), where=scale > 0)
        return float(error.max(initial=0))

    @property
    def norm(self) -> float:
        """|A|_1, the largest column sum."""
        if self._norm is None:
            self._norm = block_columns.norm1(self.matrix, self.kl, self.ku)
        return self._norm

    def slogdet(self) -> tuple[float, float]:
        """The sign of det A and log |det A|; (0, -inf) of a singular matrix."""
        if self.info:
            return 0.0, float("-inf")
        diagonal = self._factors.diagonal().astype(np.float64)
        negatives = self.row_interchanges + int((diagonal < 0).sum())
        size = np.log(np.abs(diagonal)).sum() - self.n * self._exponent * np.log(2)
        return -1.0 if negatives % 2 else 1.0, float(size)

    def rcond(self) -> float:
        """1 / (|A|_1 |A^-1|_1) with the inverse's norm estimated from a few solves (Hager, Higham)."""
        if self.info:
            return 0.0
        with np.errstate(over="ignore"):
            solve, solve_transposed = (
                partial(self._solve_scaled, transposed=transposed) for transposed in (False, True)
            )
            inverse_norm = inverse_norm1(self.n, solve, solve_transposed, self.dtype)
            condition = float(np.ldexp(self.norm, self._exponent)) * inverse_norm
        return float(1 / condition) if 0 < condition < np.inf else 0.0


def inverse_norm1(n: int, solve: Callable, solve_transposed: Callable, dtype) -> float:
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


def checked_band(ab, kl: int, ku: int) -> np.ndarray:
    """Returns ab as a float32 or float64 array of the shape that kl and ku ask for; InputError unless finite."""
    ab = shaped_band(ab, kl, ku)
    checked_max_abs(ab, kl, ku)
    return ab


def checked_max_abs(ab: np.ndarray, kl: int, ku: int) -> float:
    """The maximum of |a_ij| of a band; InputError unless all are finite."""
    with np.errstate(invalid="ignore"):
        size = block_columns.max_abs(ab, int(kl), int(ku))
    if not np.isfinite(size):
        found = block_columns.first_nonfinite(ab, int(kl), int(ku))
        assert found is not None
        d, column = found
        name = f"ab[{d}, {column}] (row {column + d - ku}, column {column} of A)"
        raise InputError(f"{name} is {ab[d, column]}; it must be finite")
    return size


def shaped_band(ab, kl: int, ku: int) -> np.ndarray:
    """Returns ab as a float32 or float64 array of the shape that kl and ku ask for, or InputError."""
    ab = block_columns.real_array(ab, "ab")
    for name, value in (("kl", kl), ("ku", ku)):
        block_columns.check_integer(name, value, 0)
    if ab.ndim != 2 or ab.shape[0] != kl + ku + 1 or ab.shape[1] == 0:
        raise InputError(f"ab is {ab.shape}; with kl = {kl} and ku = {ku} it must be ({kl + ku + 1}, n), n at least 1")
    return ab if ab.dtype in (np.float32, np.float64) else ab.astype(np.float64)


def checked_block(block: int | None) -> int | None:
    """The block size; UserError unless it is None or a multiple of 16."""
    is_integer = isinstance(block, (int, np.integer)) and not isinstance(block, bool)
    if block is not None and not (is_integer and 16 <= block <= MAX_BLOCK and block % 16 == 0):
        raise UserError(f"--block is {block}; allowed are the multiples of 16 from 16 to {MAX_BLOCK}")
    return block
