"""How a band matrix lies in memory while it is factored: block columns, dense, of one leading dimension.

After paper 4: n = p s, kl <= l s, kl + ku <= u s. Block column t holds the block rows t - u to t + l. Its successor
starts s (height + 1) elements later, so that element (r, c) of the whole matrix stands at u s + r + c height: any
part of the filled band, across block columns too, is an ordinary column-major matrix for a BLAS. Rows and columns
from n to p s are those of the unit matrix: they are never pivots of a real column and change nothing.
"""

import ctypes
import ctypes.util
import functools
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from renderer.errors import InputError, UserError
from renderer.host import available_cores


class SingularMatrix(UserError):
    """A pivot is exactly zero: U[column, column] = 0 (columns from 0), as LAPACK's info = column + 1 says."""

    exit_code = 1

    def __init__(self, column: int):
        self.column = column
        super().__init__(f"the matrix is singular: the pivot of column {column} (counted from 0) is exactly zero")


class SolutionOverflows(UserError):
    """The solution holds numbers that its precision cannot."""

    exit_code = 1

    def __init__(self, dtype):
        reasons = "the matrix is close to singular, its numbers are tiny, or its factors grow without bound"
        super().__init__(f"the solution is too large for {dtype}: {reasons}")


class NotFinite(ArithmeticError):
    """The matrix holds NaN or infinity, or a number too large for its factors' precision."""


def real_array(values, name: str) -> np.ndarray:
    """An array of numbers that float64 holds, or InputError."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is no array: {error}") from error
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise InputError(f"{name} is {array.shape} {array.dtype}; it must be of real numbers of at most 8 bytes")
    return array


def check_whole(name: str, value, least: int) -> None:
    """InputError unless a value is a whole number of at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} is {value!r}; it must be a whole number of at least {least}")


@dataclass(frozen=True)
class Layout:
    """Sizes of the blocks: n order, kl and ku diagonals, s block size; kl and ku are at most n - 1 here."""

    n: int
    kl: int
    ku: int
    s: int

    @cached_property
    def p(self) -> int:
        """Block columns."""
        return -(-self.n // self.s)

    @cached_property
    def l(self) -> int:  # noqa: E743  (the paper's letter)
        """Blocks below the diagonal block of a block column."""
        return min(-(-self.kl // self.s), self.p - 1)

    @cached_property
    def u(self) -> int:
        """Blocks above the diagonal block, fill by pivoting included."""
        return min(-(-(self.kl + self.ku) // self.s), self.p - 1)

    @cached_property
    def height(self) -> int:
        """Rows of a block column: its leading dimension."""
        return (self.u + self.l + 1) * self.s

    @cached_property
    def stride(self) -> int:
        """Elements from one block column to the next."""
        return self.s * (self.height + 1)

    @cached_property
    def size(self) -> int:
        """Elements of all block columns."""
        return self.p * self.stride

    def offset(self, row: int, column: int) -> int:
        """Where element (row, column) stands."""
        return self.u * self.s + row + column * self.height

    def rows(self, i: int) -> int:
        """Rows of the panel of block column i: its diagonal block and those below."""
        return min(self.l + 1, self.p - i) * self.s

    def last(self, i: int) -> int:
        """The last block column that step i changes."""
        return min(i + self.u, self.p - 1)


def scratch(layout: Layout, dtype) -> np.ndarray:
    """Memory that pack() needs, one for each thread; no line is a power of two long: lines would evict others."""
    return np.empty((layout.kl + layout.ku + 1, layout.s + 8), dtype)[:, : layout.s]


def pack(ab: np.ndarray, layout: Layout, flat: np.ndarray, t: int, piece: np.ndarray) -> float:
    """Fills block column t of flat (layout.size,) from ab (kl + ku + 1, n), ab[ku + i - j, j] = A[i, j].

    Its corners are not read. Returns max |a_ij| of the block column, NaN where there is one.
    """
    n, kl, ku, s = layout.n, layout.kl, layout.ku, layout.s
    chunk = flat[t * layout.stride : (t + 1) * layout.stride]
    lines, columns = chunk.reshape(s, layout.height + 1), range(t * s, min((t + 1) * s, n))
    if ku > layout.u * s or kl + ku >= layout.height:  # a band as wide as the matrix: its corners do not fit
        chunk[:] = 0
        for column in columns:
            first, end = max(0, column - ku), min(n, column + kl + 1)
            start = layout.offset(first, column)
            flat[start : start + end - first] = ab[ku + first - column : ku + end - column, column]
    else:  # a line holds a column from u s rows over its diagonal
        piece, band = piece[:, : len(columns)], slice(layout.u * s - ku, layout.u * s + kl + 1)
        piece[:] = ab[:, columns.start : columns.stop]
        lines[: len(columns), band] = piece.T
        lines[:, : band.start], lines[:, band.stop :], lines[len(columns) :] = 0, 0, 0
        for column in range(columns.start, min(ku, columns.stop)):
            lines[column - columns.start, band.start : band.start + ku - column] = 0
        for column in range(max(columns.start, n - kl), columns.stop):
            lines[column - columns.start, band.start + n - column + ku : band.stop] = 0
    largest = max(float(chunk.max()), -float(chunk.min()))
    lines[range(len(columns), s), layout.u * s] = 1
    return largest


def _diagonals(flat: np.ndarray, layout: Layout, above: int, count: int) -> np.ndarray:
    """A view (n, count) of flat: row j holds column j of the matrix from `above` rows over the diagonal."""
    step = flat.itemsize
    start = flat[layout.u * layout.s - above :]
    return np.lib.stride_tricks.as_strided(start, (layout.n, count), ((layout.height + 1) * step, step))


def unpack_upper(flat: np.ndarray, layout: Layout) -> np.ndarray:
    """U of factored block columns as LAPACK stores it, (kl + ku + 1, n): out[kl + ku + i - j, j] = U[i, j]."""
    n, reach = layout.n, layout.kl + layout.ku
    if reach <= layout.u * layout.s:
        upper = np.ascontiguousarray(_diagonals(flat, layout, reach, reach + 1).T)
        for column in range(min(reach, n)):
            upper[: reach - column, column] = 0
        return upper
    upper = np.zeros((reach + 1, n), flat.dtype)
    for column in range(n):
        first = max(0, column - reach)
        start = layout.offset(first, column)
        upper[reach + first - column :, column] = flat[start : start + column + 1 - first]
    return upper


def usual_block(n: int, kl: int, ku: int, lanes: int) -> int:
    """The block size for a band on a processor of so many lanes (1 is a CPU)."""
    wide = max(kl, 1)
    if lanes > 1:
        size = 128 if wide >= 1024 else 64
    else:
        size = 128 if wide >= 512 else 64
    while size > 16 and (size >= 2 * max(kl + ku, 1) or size >= 2 * n):
        size //= 2
    return size


def used(ab: np.ndarray, kl: int, ku: int):
    """For each diagonal of ab (kl + ku + 1, n): its row in ab, the slice of its columns, that of its rows in A."""
    n = ab.shape[1]
    for d in range(kl + ku + 1):
        below = d - ku
        first, end = max(0, -below), min(n, n - below)
        if first < end:
            yield d, slice(first, end), slice(first + below, end + below)


def product(ab: np.ndarray, kl: int, ku: int, x: np.ndarray, transposed: bool = False) -> np.ndarray:
    """A x, or the transpose of A times x, (n, m), by diagonals in the precision of x."""
    y = np.zeros_like(x)
    for d, columns, rows in used(ab, kl, ku):
        if transposed:
            y[columns] += ab[d, columns, None] * x[rows]
        else:
            y[rows] += ab[d, columns, None] * x[columns]
    return y


def norm1(ab: np.ndarray, kl: int, ku: int) -> float:
    """The largest column sum of |A|."""
    sums = np.zeros(ab.shape[1])
    for d, columns, _rows in used(ab, kl, ku):
        sums[columns] += np.abs(ab[d, columns])
    return float(sums.max(initial=0))


def largest(ab: np.ndarray, kl: int, ku: int) -> float:
    """max |a_ij|; NaN where the matrix holds one."""
    n = ab.shape[1]
    inner = slice(ku, max(n - kl, ku))  # columns whose every element belongs to the matrix
    found = _extremes(ab[:, inner])
    for d, columns, _rows in used(ab, kl, ku):
        for edge in (slice(columns.start, min(ku, columns.stop)), slice(max(inner.stop, columns.start), columns.stop)):
            if edge.start < edge.stop:
                found.append(np.abs(ab[d, edge]).max())
    return float(np.max(found)) if found else 0.0


def _extremes(part: np.ndarray) -> list:
    """Bounds of |part|, by all cores."""
    if part.size == 0:
        return []
    pieces = np.array_split(part, min(available_cores(), part.shape[0])) if part.size > 1 << 20 else [part]
    with ThreadPoolExecutor(len(pieces)) as pool:
        return [bound for pair in pool.map(lambda piece: (piece.max(), -piece.min()), pieces) for bound in pair]


def unsound(ab: np.ndarray, kl: int, ku: int) -> tuple[int, int] | None:
    """Row and column in ab of the first NaN or infinity that is part of the matrix, or None."""
    for d, columns, _rows in used(ab, kl, ku):
        wrong = ~np.isfinite(ab[d, columns])
        if wrong.any():
            return d, columns.start + int(np.argmax(wrong))
    return None


def divisor(number: int, most: int) -> int:
    """The largest divisor of number that is at most `most`."""
    return next(n for n in range(min(number, most), 0, -1) if number % n == 0)


@functools.cache
def _fenv():
    """The C library's fegetenv and fesetenv where fenv_t is glibc's of x86-64 (MXCSR at byte 28), or None."""
    if os.uname().machine != "x86_64":
        return None
    try:
        library = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
        return (
            (library.fegetenv, library.fesetenv)
            if hasattr(library, "fegetenv") and os.uname().sysname == "Linux"
            else None
        )
    except OSError:
        return None


class FlushSubnormals:
    """While it is entered, this thread treats subnormal numbers as zero (FTZ and DAZ): they cost a hundred cycles each.

    Upwind convection on 256 x 256 unknowns at Peclet number 100 makes 158,751: LAPACK is 3.4 times slower then.
    """

    def __enter__(self):
        calls = _fenv()
        self._before = None
        if calls:
            self._before = ctypes.create_string_buffer(32)
            calls[0](self._before)
            flushing = ctypes.create_string_buffer(self._before.raw, 32)
            word = int.from_bytes(flushing.raw[28:32], "little") | 0x8040
            flushing[28:32] = word.to_bytes(4, "little")
            calls[1](flushing)
        return self

    def __exit__(self, *error):
        if self._before is not None:
            _fenv()[1](self._before)
