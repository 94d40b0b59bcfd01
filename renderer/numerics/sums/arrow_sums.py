"""Exact sums of columns of Arrow tables, one record batch at a time: from PyArrow, Parquet files, DuckDB and Polars.

    total = batches_total(devices, connection.sql("select price from sales").fetch_record_batch(), "price")
    total = batches_total(devices, pyarrow.parquet.ParquetFile("sales.parquet").iter_batches(), "price")
    total.rounded(), total.count                      # nulls are not counted

A DECIMAL column's total is exact in decimal digits: total.decimal() is a decimal.Decimal. Only a sum is kept between
batches. The sums of several readers can be added with +, in any order.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from renderer.errors import InputError
from renderer.gpu import Device
from renderer.numerics.sums.device_sums import array_sum
from renderer.numerics.sums.exact_sum import DecimalSum, ExactSum


def batches_total(
    devices: list[Device], batches: Iterable[Any], column: str, y: str | None = None
) -> ExactSum | DecimalSum:
    """The exact sum of a column of Arrow record batches or tables, or of the products of columns `column` and `y`.

    Rows with a null in either column are left out. A DECIMAL column has a DecimalSum, and no products. InputError for a
    column that is missing or holds no numbers.
    """
    total: Any = None
    for batch in batches:
        if y is None and column in batch.schema.names and "decimal" in str(batch.column(column).type):
            part = _decimal_sum(batch.column(column))
            total = part if total is None else total + part
            continue
        total = ExactSum() if total is None else total
        numbers, factors = _numbers(batch, column), None if y is None else _numbers(batch, y)
        if factors is not None:
            valid = ~(numbers.mask | factors.mask)
            x, other = _with_common_dtype(numbers.data[valid], factors.data[valid])
            total += array_sum(devices, x, y=other)
        elif numbers.size:
            total += array_sum(devices, numbers.compressed())
    return ExactSum() if total is None else total


def _decimal_sum(column: Any) -> DecimalSum:
    """The sum of an Arrow array of decimals: integers of 4 to 32 bytes, little-endian, in units of 10^-scale."""
    words, units, count = column.type.bit_width // 32, 0, 0
    for chunk in getattr(column, "chunks", [column]):
        values = chunk.drop_null()
        if len(values):
            bytes_before = 4 * words * values.offset
            table = np.frombuffer(values.buffers()[1], "<u4", len(values) * words, bytes_before).reshape(-1, words)
            sums = [int(table[:, k].sum(dtype="u8")) for k in range(words - 1)]
            sums.append(int(table[:, -1].view("<i4").sum(dtype="i8")))
            units, count = units + sum(part << 32 * k for k, part in enumerate(sums)), count + len(values)
    return DecimalSum(units, column.type.scale, count)


def _with_common_dtype(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both arrays, converted to float64 if their dtypes differ; InputError if the conversion would round."""
    if x.dtype == y.dtype:
        return x, y
    wide = x.astype("f8"), y.astype("f8")
    for given, converted in zip((x, y), wide, strict=True):
        if given.dtype.kind in "iu" and given.dtype.itemsize == 8 and (np.abs(converted) > 2.0**53).any():
            raise InputError("a column holds integers beyond 2^53, which float64 does not hold")
    return wide


def _numbers(batch: Any, name: str) -> np.ma.MaskedArray:
    """A column as a masked array, its nulls masked; not copied if it is one contiguous chunk without nulls."""
    if name not in batch.schema.names:
        raise InputError(f"column {name!r} is not there; the columns are {', '.join(batch.schema.names)}")
    column = batch.column(name)
    masked = np.asarray(column.is_null())
    try:
        values = column.fill_null(0) if masked.any() else column
        array = np.asarray(values)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InputError(f"column {name!r} holds {column.type}; numbers are wanted") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"column {name!r} holds {column.type}; numbers are wanted")
    return np.ma.MaskedArray(array, masked)
