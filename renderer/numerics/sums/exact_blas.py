"""Correctly rounded sums, means and variances along an axis, and matrix products, on the host's cores or a device.

Part of the API of renderer.numerics.sums. Every element of a result is the exact value rounded once, so it has the same
bits on every machine and for every order. On the host a product is split into two doubles without error (TwoProduct:
Dekker 1971), and the numbers of a line are added digit by digit in integers (by_key.py). With a `device`,
exact_lines.py computes the results there and reads arrays of other libraries in place (DLPack); the few results whose
rounding is not certain are recomputed on the host. A line is the numbers along the axis, for one position on the
others.
"""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from renderer.errors import InputError
from renderer.gpu import Device
from renderer.numerics.band_lu.block_columns import on_cores
from renderer.numerics.error_free import product_error, split
from renderer.numerics.sums.aggregates import mean, variance
from renderer.numerics.sums.by_key import KeyedAggregates, aggregate_runs
from renderer.numerics.sums.device_sums import array_sum
from renderer.numerics.sums.exact_lines import Operand, Strides, device_operand, reduce_lines
from renderer.numerics.sums.exact_sum import rounded_fraction
from renderer.numerics.sums.tensors import as_given, is_tensor, on_host

BLOCK = 1 << 19  # numbers of the lines that one task adds
PRODUCT_RANGE = 2.0**-950, 2.0**990  # products in this range, and their rounding errors, are normal doubles


def axis_sum(x: Any, axis: int | None = -1, device: Device | None = None) -> Any:
    """The sums of x (real numbers, any shape) along an axis: float64, rounded once; zeros along an axis of length 0.

    The result belongs to x's library and lies in the same memory as x. `axis` None adds all numbers; the result then
    has no dimensions. InputError for complex numbers and for an axis that x does not have.
    """
    return _reduced(x, axis, device, "sum")


def axis_mean(x: Any, axis: int | None = -1, device: Device | None = None) -> Any:
    """The means along an axis, or of all numbers, rounded once; NaN along an axis of length 0. See axis_sum."""
    return _reduced(x, axis, device, "mean")


def axis_variance(x: Any, axis: int | None = -1, ddof: int = 0, device: Device | None = None) -> Any:
    """The mean squared deviations from the means along an axis, or of all numbers, rounded once; see axis_sum.

    The divisor is length - ddof; NaN if that is not positive.
    """
    return _reduced(x, axis, device, "variance", ddof)


def _reduced(x: Any, axis: int | None, device: Device | None, statistic: str, ddof: int = 0) -> Any:
    """A statistic, "sum", "mean" or "variance", along an axis or of all numbers, on the host or a device."""

    def reduce_rows(rows: np.ndarray) -> np.ndarray:
        if statistic == "variance":
            return _row_variances(rows, ddof)
        sums = _aggregate_rows(rows)
        return sums.rounded_means() if statistic == "mean" else sums.rounded_sums()

    if not device:
        values, axis = (on_host(x).reshape(-1), 0) if axis is None else (x, axis)
        return as_given(x, _reduce_axis(values, axis, reduce_rows, 0.0 if statistic == "sum" else np.nan), device)
    if axis is None:
        if statistic == "variance":
            return as_given(x, variance([device], x, ddof), device)
        return as_given(x, mean([device], x) if statistic == "mean" else array_sum([device], x).rounded(), device)
    lines = _Lines(device, x, axis)
    divisor = {"sum": 1, "mean": lines.length, "variance": lines.length - ddof}[statistic]
    reduced = lines.reduced("variance" if statistic == "variance" else "sum", reduce_rows, divisor)
    return as_given(x, reduced + 0.0 if statistic == "mean" else reduced, device)  # no mean is -0


def _row_variances(rows: np.ndarray, ddof: int) -> np.ndarray:
    """The variances (r,) of rows of numbers (r, k), each rounded once."""
    length = rows.shape[1]
    out = np.full(len(rows), np.nan)
    for i, (row, sums) in enumerate(zip(rows, _aggregate_rows(rows).totals, strict=True)):
        if sums.non_finite is None and length > ddof:
            out[i] = rounded_fraction((_exact_dot(row, row) - sums.fraction() ** 2 / length) / (length - ddof))
    return out


def matvec(a: Any, x: Any, device: Device | None = None) -> Any:
    """The product (m,) of a (m, k) and x (k,), every element rounded once: weighted sums if a holds weights."""
    return matmul(a, x, device)


def matmul(a: Any, b: Any, device: Device | None = None) -> Any:
    """The product (m, n) of a (m, k) and b (k, n), float64, every element rounded once.

    An operand (k,) is a row (a) or a column (b), and the result has one dimension less; two operands (k,) give their
    dot product. The result belongs to a's library and lies in the same memory as a. InputError for operands that are
    not real matrices of matching shapes.
    """
    left, right = (v if device and is_tensor(v) else _checked(v, name) for v, name in ((a, "a"), (b, "b")))
    shapes = tuple(left.shape), tuple(right.shape)
    if not all(1 <= len(shape) <= 2 for shape in shapes) or shapes[0][-1] != shapes[1][0]:
        raise InputError(f"a is {shapes[0]} and b is {shapes[1]}; they must be (m, k) and (k, n)")
    out_shape = shapes[0][:-1] + shapes[1][1:]
    sizes = math.prod(shapes[0][:-1]), math.prod(shapes[1][1:]), shapes[1][0]
    if not math.prod(sizes):
        return as_given(a, np.zeros(out_shape), device)
    if device:
        return as_given(a, _device_product(device, left, right, sizes).reshape(out_shape), device)
    left, right = (v.astype("f8", copy=False) for v in (left, right))
    out = _host_product(left.reshape(sizes[0], -1), right.reshape(-1, sizes[1]))
    return as_given(a, out.reshape(out_shape), device)


def _host_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two matrices, computed in blocks by all cores."""
    length, columns = b.shape
    b_columns = np.ascontiguousarray(b.T)
    step_columns = min(columns, max(1, BLOCK // length))
    step_rows = max(1, BLOCK // (length * step_columns))
    out = np.empty((len(a), columns))

    def multiply_block(first: tuple[int, int]) -> None:
        block = slice(first[0], first[0] + step_rows), slice(first[1], first[1] + step_columns)
        out[block] = _row_products(a[block[0]], b_columns[block[1]])

    on_cores(multiply_block, [*itertools.product(range(0, len(a), step_rows), range(0, columns, step_columns))])
    return out


def _row_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The dot products (r, c) of the rows of a (r, k) with the rows of b (c, k), each rounded once.

    A usual product is exact as two doubles, the rounded product and its error. Others (zero, tiny, huge, not finite)
    are recomputed as fractions, or for a row with NaN or infinity as a plain sum.
    """

    def for_products(of_a: np.ndarray, operation: Callable[..., np.ndarray], of_b: np.ndarray) -> np.ndarray:
        """The operation for all pairs of a row of a and a row of b, as rows (len(a) len(b), k)."""
        return operation(of_a[:, None, :], of_b[None]).reshape(len(a) * len(b), -1)

    with np.errstate(all="ignore"):
        products = for_products(a, np.multiply, b)
        shaped_products = products.reshape(len(a), len(b), -1)
        errors = product_error(shaped_products, split(a[:, None, :]), split(b[None])).reshape(products.shape)
    size = np.abs(products)
    is_zero = for_products(a == 0, np.logical_or, b == 0)
    finite = for_products(np.isfinite(a), np.logical_and, np.isfinite(b))
    usual = (size > PRODUCT_RANGE[0]) & (size < PRODUCT_RANGE[1])
    usual &= for_products(np.abs(a) < PRODUCT_RANGE[1], np.logical_and, np.abs(b) < PRODUCT_RANGE[1])
    errors[~usual | (errors == 0)] = -0.0
    result = _aggregate_rows(np.concatenate([products, errors], axis=1)).rounded_sums()
    for i in np.flatnonzero((~usual & ~is_zero & finite).any(axis=1)):
        row, column = divmod(int(i), len(b))
        if np.isfinite(a[row]).all() and np.isfinite(b[column]).all():
            result[i] = rounded_fraction(_exact_dot(a[row], b[column]))
        else:  # finite products are left out: their overflow would add another infinity
            with np.errstate(invalid="ignore"):
                result[i] = np.where(finite[i], 0.0, products[i]).sum()
    return result.reshape(len(a), len(b))


def _exact_dot(x: np.ndarray, y: np.ndarray) -> Fraction:
    return sum((Fraction(u) * Fraction(v) for u, v in zip(x.tolist(), y.tolist(), strict=True)), start=Fraction(0))


def _aggregate_rows(rows: np.ndarray) -> KeyedAggregates:
    """The aggregates of each row of numbers (r, k), k at least 1."""
    return aggregate_runs(np.arange(len(rows)), rows.ravel(), np.arange(len(rows)) * rows.shape[1])


def _device_product(device: Device, left: Any, right: Any, sizes: tuple[int, int, int]) -> np.ndarray:
    """The product of left (rows, length) and right (length, columns); `sizes` is (rows, columns, length)."""
    rows, columns, length = sizes
    single = all(not is_tensor(v) and v.dtype == np.float32 for v in (left, right))
    x, y = device_operand(device, left, single), device_operand(device, right, single)
    if x.buffer.dtype != y.buffer.dtype:
        raise InputError(f"a is {x.buffer.dtype} and b is {y.buffer.dtype}; on a device both must be of one type")
    strides = (  # with `axes`, the operand lies transposed in memory
        Strides(1, 0, rows) if x.axes else Strides(length, 0, 1),
        Strides(0, length, 1) if y.axes else Strides(0, 1, columns),
    )
    out, doubts = reduce_lines(device, "product", sizes, (x, strides[0]), (y, strides[1]))
    if doubts.any():
        left_rows = x.read().T if x.axes else x.read().reshape(rows, length)
        right_columns = y.read() if y.axes else np.ascontiguousarray(y.read().reshape(length, columns).T)
        for row in np.flatnonzero(doubts.any(axis=1)):
            doubtful = np.flatnonzero(doubts[row])
            for first in range(0, len(doubtful), step := max(1, BLOCK // length)):
                block = doubtful[first : first + step]
                left_row = np.ascontiguousarray(left_rows[row : row + 1])
                out[row, block] = _row_products(left_row, right_columns[block])[0]
    return out


class _Lines:
    """The lines of an array along one axis, in the memory of a device: each line is reduced to one number.

    `shape` is (product of the axes before the axis, product of the axes after it, `length` of the axis), in the order
    in which the array lies in memory; `out_shape` is the array's shape without the axis.
    """

    def __init__(self, device: Device, x: Any, axis: int):
        given = x if is_tensor(x) else _checked(x, "x")
        self.device, ndim, dims = device, given.ndim, tuple(given.shape)
        axis = _checked_axis(axis, ndim)
        self.length = dims[axis]
        # `_out_axes` permutes the axes of `_stored_shape`, in the order of memory of a transposed tensor, into x's.
        self.out_shape, self._out_axes = (*dims[:axis], *dims[axis + 1 :]), tuple(range(ndim - 1))
        self._operand: Operand | None = None
        if math.prod(dims):
            self._operand = device_operand(device, given, not is_tensor(given) and given.dtype == np.float32)
            if axes := self._operand.axes:  # in the order of memory
                remaining = [a for a in axes if a != axis]
                self._out_axes = tuple(remaining.index(a) for a in sorted(remaining))
                axis, dims = axes.index(axis), self._operand.shape
        self.shape = math.prod(dims[:axis]), math.prod(dims[axis + 1 :]), dims[axis]
        self._stored_shape = (*dims[:axis], *dims[axis + 1 :])
        self._strides = Strides(self.shape[1] * self.shape[2], 1, self.shape[1])

    def reduced(self, kind: str, reduce_rows: Callable[[np.ndarray], np.ndarray], divisor: float = 1) -> np.ndarray:
        """The results of all lines; reduce_rows(lines) recomputes uncertified ones on the host."""
        if self._operand is None or divisor <= 0:  # empty array: a sum (divisor 1) is 0, a mean or variance is NaN
            return np.full(self.out_shape, 0.0 if kind == "sum" and divisor == 1 and not self.length else np.nan)
        operand, centers = (self._operand, self._strides), None
        if kind == "variance":
            centers, _ = reduce_lines(self.device, "sum", self.shape, operand, divisor=self.length)
        out, doubts = reduce_lines(self.device, kind, self.shape, operand, None, divisor, centers)
        if doubts.any():
            before, after, length = self.shape
            lines = self._operand.read().reshape(before, length, after).transpose(0, 2, 1)
            out[doubts] = reduce_rows(lines[doubts])
        return np.ascontiguousarray(out.reshape(self._stored_shape).transpose(self._out_axes))


def _checked_axis(axis: int, ndim: int) -> int:
    """The axis as a nonnegative number; InputError if there is no such axis."""
    if not -ndim <= axis < ndim:
        raise InputError(f"axis is {axis}; x has {ndim} axes")
    return axis % ndim


def _reduce_axis(x: np.ndarray, axis: int, reduce_rows: Callable[[np.ndarray], np.ndarray], empty: float) -> np.ndarray:
    """reduce_rows(lines) for the lines of x along an axis, in blocks by all cores; `empty` everywhere if x is empty."""
    x = _checked(x, "x").astype("f8", copy=False)
    lines = np.moveaxis(x, _checked_axis(axis, x.ndim), -1)
    if not x.size:
        return np.full(lines.shape[:-1], empty)
    rows = lines.reshape(-1, lines.shape[-1])
    if rows.shape[1] > 1 << 26:  # the limit of aggregate_runs()
        raise InputError(f"axis {axis} has {rows.shape[1]} numbers; at most {1 << 26} are added along an axis")
    step = max(1, BLOCK // rows.shape[1])
    out = np.empty(len(rows))

    def reduce_block(first: int) -> None:
        out[first : first + step] = reduce_rows(np.ascontiguousarray(rows[first : first + step]))

    on_cores(reduce_block, range(0, len(rows), step))
    return out.reshape(lines.shape[:-1])


def _checked(values: Any, name: str) -> np.ndarray:
    """An array in host memory whose numbers float64 holds exactly, else InputError; UnavailableError for GPU arrays."""
    array = on_host(values)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8 or array.ndim == 0:
        raise InputError(
            f"{name} is {array.shape} {array.dtype}; it must be an array of real numbers of at most 8 bytes"
        )
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        if max(abs(int(array.min())), abs(int(array.max()))) > 1 << 53:
            raise InputError(f"{name} holds integers beyond 2^53, which float64 does not hold")
    return array
