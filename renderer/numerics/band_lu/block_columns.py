"""Block-column storage of a band matrix (BlockLayout), packing and unpacking, and operations on LAPACK band arrays.

For all factorizations of band_lu, whose __init__.py names the source. n is padded to p s, kl to l s, kl + ku to u s,
with blocks of s columns. Block column t holds the block rows t - u to t + l, with leading dimension ld. The next block
column starts s (ld + 1) elements later, so element (r, c) of the matrix is stored at index u s + r + c ld. Hence any
rectangle of the filled band, also across block columns, is an ordinary column-major matrix for BLAS. The padding, rows
and columns n to p s - 1, holds the identity matrix: a padding row is never the pivot of a column below n.

Throughout, `ab` (kl + ku + 1, n) is LAPACK's band array: ab[ku + i - j, j] = A[i, j].
"""

import ctypes
import ctypes.util
import functools
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from renderer.errors import InputError, UserError
from renderer.formats.npy import in_double, refuse_mask
from renderer.host import available_cores
from renderer.records import dataclass

Task = TypeVar("Task")
Result = TypeVar("Result")
BLOCK = 1 << 14  # numbers of an intermediate result that fits the cache


class SingularMatrix(UserError):
    """A pivot is exactly zero: U[column, column] = 0, with columns counted from 0 (LAPACK: info = column + 1)."""

    exit_code = 1

    def __init__(self, column: int):
        self.column = column
        super().__init__(f"the matrix is singular: the pivot of column {column} (counted from 0) is exactly zero")


class SolutionOverflows(UserError):
    """The solution is not finite in its precision."""

    exit_code = 1

    def __init__(self, dtype: DTypeLike):
        reasons = "the matrix is close to singular, its numbers are tiny, or its factors grow without bound"
        super().__init__(f"the solution is too large for {dtype}: {reasons}")


class NotFinite(ArithmeticError):
    """The matrix holds NaN, infinity, or a number that overflows in the precision of the factors."""


def real_array(values: ArrayLike, name: str) -> np.ndarray:
    """`values` as an array of real numbers of at most 8 bytes, or InputError."""
    refuse_mask(values, name)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is no array: {error}") from error
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise InputError(f"{name} is {array.shape} {array.dtype}; it must be of real numbers of at most 8 bytes")
    return in_double(array, name) if array.dtype.kind in "iu" else array


def check_integer(name: str, value: object, minimum: int) -> None:
    """InputError unless a value is an integer of at least `minimum`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise InputError(f"{name} is {value!r}; it must be a whole number of at least {minimum}")


def check_band(ab: np.ndarray, kl: int, ku: int) -> None:
    """InputError unless kl and ku are whole numbers and ab is (kl + ku + 1, n), with n at least 1."""
    for name, value in (("kl", kl), ("ku", ku)):
        check_integer(name, value, 0)
    if ab.ndim != 2 or ab.shape[0] != kl + ku + 1 or ab.shape[1] == 0:
        raise InputError(f"ab is {ab.shape}; with kl = {kl} and ku = {ku} it must be ({kl + ku + 1}, n), n at least 1")


@dataclass(frozen=True)
class BlockLayout:
    """Sizes of the block columns for order n, kl sub- and ku superdiagonals (at most n - 1 each) and block size s."""

    n: int
    kl: int
    ku: int
    s: int

    @cached_property
    def p(self) -> int:
        """Number of block columns."""
        return -(-self.n // self.s)

    @cached_property
    def l(self) -> int:  # noqa: E743  (Baranov's letter)
        """Blocks below the diagonal block of a block column."""
        return min(-(-self.kl // self.s), self.p - 1)

    @cached_property
    def u(self) -> int:
        """Blocks above the diagonal block, including fill-in by pivoting."""
        return min(-(-(self.kl + self.ku) // self.s), self.p - 1)

    @cached_property
    def ld(self) -> int:
        """Rows of a block column: the leading dimension."""
        return (self.u + self.l + 1) * self.s

    @cached_property
    def stride(self) -> int:
        """Elements from one block column to the next."""
        return self.s * (self.ld + 1)

    @cached_property
    def size(self) -> int:
        """Elements of all block columns."""
        return self.p * self.stride

    def offset(self, row: int, column: int) -> int:
        """The index at which element (row, column) is stored."""
        return self.u * self.s + row + column * self.ld

    def panel_rows(self, i: int) -> int:
        """Rows of panel i: the diagonal block of block column i and the blocks below."""
        return min(self.l + 1, self.p - i) * self.s

    def last_updated(self, i: int) -> int:
        """The last block column that step i updates."""
        return min(i + self.u, self.p - 1)

    def global_pivots(self, panel_pivots: np.ndarray) -> np.ndarray:
        """Row indices (n,) int32 from 0 (LAPACK's ipiv - 1) from pivots (p s,) counted from 1 within each panel."""
        starts = np.repeat(np.arange(self.p, dtype=np.int32) * self.s, self.s)
        return (panel_pivots - 1 + starts)[: self.n]


def pack_workspace(layout: BlockLayout, dtype: DTypeLike) -> np.ndarray:
    """The workspace that pack_block_column() needs, one per thread.

    Rows are padded by 8 elements: rows of a power-of-two length would map to the same cache sets.
    """
    return np.empty((layout.kl + layout.ku + 1, layout.s + 8), dtype)[:, : layout.s]


def pack_block_column(ab: np.ndarray, layout: BlockLayout, flat: np.ndarray, t: int, workspace: np.ndarray) -> float:
    """Fills block column t of flat (layout.size,) from ab; returns max |a_ij| of the block column, NaN if it holds NaN.

    The unused corners of ab, above row 0 and below row n - 1 of the matrix, may hold anything and are not used.
    """
    n, kl, ku, s = layout.n, layout.kl, layout.ku, layout.s
    chunk = flat[t * layout.stride : (t + 1) * layout.stride]
    # Row j of `stored` is column t s + j of the matrix, from u s rows above its diagonal element on.
    stored, columns = chunk.reshape(s, layout.ld + 1), range(t * s, min((t + 1) * s, n))
    diagonal = layout.u * s
    if ku > diagonal or kl + ku >= layout.ld:  # a band as wide as the matrix, for which not all diagonals are stored
        chunk[:] = 0
        for column in columns:
            first, end = max(0, column - ku), min(n, column + kl + 1)
            start = layout.offset(first, column)
            flat[start : start + end - first] = ab[ku + first - column : ku + end - column, column]
    else:
        band = slice(diagonal - ku, diagonal + kl + 1)
        workspace = workspace[:, : len(columns)]
        workspace[:] = ab[:, columns.start : columns.stop]  # transposed from there, where it stays in the cache
        stored[: len(columns), band] = workspace.T
        stored[:, : band.start], stored[:, band.stop :], stored[len(columns) :] = 0, 0, 0
        for column in range(columns.start, min(ku, columns.stop)):  # rows above the matrix
            stored[column - columns.start, band.start : diagonal - column] = 0
        for column in range(max(columns.start, n - kl), columns.stop):  # rows below the matrix
            stored[column - columns.start, diagonal + n - column : band.stop] = 0
    size = max(float(chunk.max()), -float(chunk.min()))
    stored[range(len(columns), s), diagonal] = 1  # padding: the identity matrix
    return size


def unpack_upper(flat: np.ndarray, layout: BlockLayout) -> np.ndarray:
    """U of factored block columns as LAPACK stores it, (kl + ku + 1, n): out[kl + ku + i - j, j] = U[i, j]."""
    kv = layout.kl + layout.ku
    upper = np.zeros((kv + 1, layout.n), flat.dtype)
    for column in range(layout.n):
        first = max(0, column - kv)
        start = layout.offset(first, column)
        upper[kv + first - column :, column] = flat[start : start + column + 1 - first]
    return upper


def max_abs_upper(flat: np.ndarray, layout: BlockLayout) -> float:
    """The maximum of |u_ij| of factored block columns; NaNs are ignored."""
    kv, step = layout.kl + layout.ku, flat.itemsize
    if kv <= layout.u * layout.s:  # row j is column j of the matrix from kv rows above its diagonal, all of them stored
        start, strides = flat[layout.u * layout.s - kv :], ((layout.ld + 1) * step, step)
        upper = np.lib.stride_tricks.as_strided(start, (layout.n, kv + 1), strides)
    else:
        upper = unpack_upper(flat, layout)
    return float(max(np.fmax.reduce(upper, axis=None), -np.fmin.reduce(upper, axis=None)))


def default_block_size(n: int, kl: int, ku: int, is_host: bool) -> int:
    """The block size that was fastest in measurements, for a caller that gives none."""
    size = 128 if kl >= (512 if is_host else 1024) else 64
    while size > 16 and (size >= 2 * max(kl + ku, 1) or size >= 2 * n):
        size //= 2
    return size


def diagonals(ab: np.ndarray, kl: int, ku: int, block: slice | None = None) -> Iterator[tuple[int, slice, slice]]:
    """For each diagonal of ab: its row in ab, the slice of its columns, and the slice of its rows in A.

    Only the part of a diagonal in the rows `block` of A, if given.
    """
    n = ab.shape[1]
    begin, stop = (block.start, block.stop) if block else (0, n)
    for d in range(kl + ku + 1):
        below = d - ku
        first, end = max(begin, below, 0), min(stop, n + below, n)
        if first < end:
            yield d, slice(first - below, end - below), slice(first, end)


def row_blocks(n: int, count: int) -> list[slice]:
    """Ranges of the n rows of an array (n, count), so short that a few intermediate results of one fit the cache."""
    step = max(1, BLOCK // max(1, count))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def band_matvec(ab: np.ndarray, kl: int, ku: int, x: np.ndarray, transposed: bool = False) -> np.ndarray:
    """A x, or A^T x if `transposed`, for x (n, m), diagonal by diagonal in the precision of x."""
    y = np.zeros_like(x)
    for block in row_blocks(*x.shape):
        for d, columns, rows in diagonals(ab, kl, ku, block):
            if transposed:
                y[columns] += ab[d, columns, None] * x[rows]
            else:
                y[rows] += ab[d, columns, None] * x[columns]
    return y


def transposed_band(ab: np.ndarray, kl: int, ku: int) -> np.ndarray:
    """The band array (ku + kl + 1, n) of A^T, which has ku subdiagonals and kl superdiagonals."""
    out = np.zeros_like(ab)
    for d, columns, rows in diagonals(ab, kl, ku):
        out[kl + ku - d, rows] = ab[d, columns]
    return out


def absolute_sums(ab: np.ndarray, kl: int, ku: int, of_rows: bool = False) -> np.ndarray:
    """The sums (n,) of |a_ij| of each column, or of each row."""
    sums = np.zeros(ab.shape[1])
    for block in row_blocks(ab.shape[1], 1):
        for d, columns, rows in diagonals(ab, kl, ku, block):
            sums[rows if of_rows else columns] += np.abs(ab[d, columns])
    return sums


def norm1(ab: np.ndarray, kl: int, ku: int) -> float:
    """The largest column sum of |A|."""
    return float(absolute_sums(ab, kl, ku).max(initial=0))


def max_abs(ab: np.ndarray, kl: int, ku: int) -> float:
    """The maximum of |a_ij|; NaN if the matrix holds NaN."""
    n = ab.shape[1]
    inner = slice(ku, max(n - kl, ku))  # columns without unused corners
    maxima = _bounds(ab[:, inner])
    for d, columns, _rows in diagonals(ab, kl, ku):
        for edge in (slice(columns.start, min(ku, columns.stop)), slice(max(inner.stop, columns.start), columns.stop)):
            if edge.start < edge.stop:
                maxima.append(np.abs(ab[d, edge]).max())
    return float(np.max(maxima)) if maxima else 0.0


def _bounds(array: np.ndarray) -> list[float]:
    """The maximum and the negated minimum of each of several pieces of an array, by all cores."""
    if array.size == 0:
        return []
    pieces = np.array_split(array, min(available_cores(), array.shape[0])) if array.size > 1 << 20 else [array]
    return [bound for pair in on_cores(lambda piece: (piece.max(), -piece.min()), pieces) for bound in pair]


def on_cores(work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """work(task) of every task, by threads on all cores; one task runs in this thread."""
    if len(tasks) <= 1:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(min(available_cores(), len(tasks))) as pool:
        return list(pool.map(work, tasks))


def first_nonfinite(ab: np.ndarray, kl: int, ku: int) -> tuple[int, int] | None:
    """Row and column in ab of the first NaN or infinity outside the unused corners, or None."""
    for d, columns, _rows in diagonals(ab, kl, ku):
        wrong = ~np.isfinite(ab[d, columns])
        if wrong.any():
            return d, columns.start + int(np.argmax(wrong))
    return None


def largest_divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is at most `most`."""
    return next(n for n in range(min(number, most), 0, -1) if number % n == 0)


@functools.cache
def _fenv() -> tuple[Callable[..., int], Callable[..., int]] | None:
    """fegetenv and fesetenv of the C library on x86-64 Linux, where byte 28 of fenv_t is MXCSR; else None."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return None
    try:
        library = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
        return library.fegetenv, library.fesetenv
    except (OSError, AttributeError):
        return None


class FlushSubnormals:
    """A context in which this thread treats subnormal numbers as zero (FTZ and DAZ): each costs a hundred cycles.

    Upwind convection on 256 x 256 unknowns at Peclet number 100 produces 158,751; with them LAPACK takes 3.4 times as
    long.
    """

    def __init__(self) -> None:
        self._before: ctypes.Array[ctypes.c_char] | None = None

    def __enter__(self) -> "FlushSubnormals":
        calls = _fenv()
        if calls:
            self._before = ctypes.create_string_buffer(32)
            calls[0](self._before)
            word = int.from_bytes(self._before.raw[28:32], "little") | 0x8040  # FTZ, DAZ
            calls[1](ctypes.create_string_buffer(self._before.raw[:28] + word.to_bytes(4, "little"), 32))
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None and (calls := _fenv()):
            calls[1](self._before)
