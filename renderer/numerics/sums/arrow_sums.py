"""Exact sums of tables in Arrow's memory, batch by batch: PyArrow, Parquet files, DuckDB's and Polars' results.

    total = batches_total(devices, connection.sql("select price from sales").fetch_record_batch(), "price")
    total = batches_total(devices, pyarrow.parquet.ParquetFile("sales.parquet").iter_batches(), "price")
    total.rounded(), total.count                      # nulls are not counted

Only an ExactSum is kept between batches, and those of several readers add up: an aggregate of any order and chunking.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from renderer.errors import InputError
from renderer.gpu import Device
from renderer.numerics.sums.device_sums import array_sum
from renderer.numerics.sums.exact_sum import ExactSum


def batches_total(devices: list[Device], batches: Iterable[Any], column: str, y: str | None = None) -> ExactSum:
    """The exact sum of a column of Arrow record batches or tables, or of its products with the column `y`.

    Rows with a null are left out. InputError for a column that is not there or holds no numbers.
    """
    total = ExactSum()
    for batch in batches:
        numbers, factors = _numbers(batch, column), None if y is None else _numbers(batch, y)
        if factors is not None:
            valid = ~(numbers.mask | factors.mask)
            x, other = _of_one_type(numbers.data[valid], factors.data[valid])
            total += array_sum(devices, x, y=other)
        elif numbers.size:
            total += array_sum(devices, numbers.compressed())
    return total


def _of_one_type(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as they are if they have one type, else in float64, or InputError where that would round."""
    if x.dtype == y.dtype:
        return x, y
    wide = x.astype("f8"), y.astype("f8")
    for given, made in zip((x, y), wide, strict=True):
        if given.dtype.kind in "iu" and given.dtype.itemsize == 8 and (np.abs(made) > 2.0**53).any():
            raise InputError("a column holds integers beyond 2^53, which float64 does not hold")
    return wide


def _numbers(batch: Any, name: str) -> np.ma.MaskedArray:
    """A column as NumPy sees it, without a copy where it is one piece without nulls, and which of it are null."""
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
