"""Exact sums of columns of Arrow tables, one record batch at a time: from PyArrow, Parquet files, DuckDB and Polars.

    total = batches_total(devices, connection.sql("select price from sales").fetch_record_batch(), "price")
    total = batches_total(devices, pyarrow.parquet.ParquetFile("sales.parquet").iter_batches(), "price")
    total.rounded(), total.count                      # nulls are not counted

Only an ExactSum is kept between batches. The ExactSums of several readers can be added with +, in any order.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from renderer.errors import InputError
from renderer.gpu import Device
from renderer.numerics.sums.device_sums import array_sum
from renderer.numerics.sums.exact_sum import ExactSum


def batches_total(devices: list[Device], batches: Iterable[Any], column: str, y: str | None = None) -> ExactSum:
    """The exact sum of a column of Arrow record batches or tables, or of the products of columns `column` and `y`.

    Rows with a null in either column are left out. InputError for a column that is missing or holds no numbers.
    """
    total = ExactSum()
    for batch in batches:
        numbers, factors = _numbers(batch, column), None if y is None else _numbers(batch, y)
        if factors is not None:
            valid = ~(numbers.mask | factors.mask)
            x, other = _with_common_dtype(numbers.data[valid], factors.data[valid])
            total += array_sum(devices, x, y=other)
        elif numbers.size:
            total += array_sum(devices, numbers.compressed())
    return total


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
