"""Exact sums of columns of Arrow tables, one record batch at a time: from PyArrow, Parquet files, DuckDB and Polars.

    total = batches_total(devices, connection.sql("select price from sales").fetch_record_batch(), "price")
    total = batches_total(devices, pyarrow.parquet.ParquetFile("sales.parquet").iter_batches(), "price")
    total.rounded(), total.count                      # nulls are not counted

A DECIMAL column's total is exact in decimal digits: total.decimal() is a decimal.Decimal. Only a sum is kept between
batches. The sums of several readers can be added with +, in any order.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import InputError, UserError, import_optional, reading
from renderer.gpu import Device
from renderer.numerics.sums.device_sums import array_sum
from renderer.numerics.sums.exact_sum import DecimalSum, ExactSum


def is_arrow(numbers: object) -> bool:
    """True for an array or table in Arrow's format, of any library but pandas, in which missing numbers are NaN."""
    has_arrow = _has(numbers, "__arrow_c_stream__", "__arrow_c_array__")
    return has_arrow and type(numbers).__module__.partition(".")[0] != "pandas"


def _has(numbers: object, *names: str) -> bool:
    return any(hasattr(numbers, name) for name in names)


def columns_of(numbers: Any, column: str | None) -> tuple[Iterable[Any], str]:
    """The record batches of a table in Arrow's format, or of an array without columns, and the name of the column.

    UserError if `column` is missing in a table of several, or given for an array.
    """
    arrow = import_optional("pyarrow", "Arrow tables need PyArrow")
    if _has(numbers, "schema", "columns"):
        reader = arrow.RecordBatchReader.from_stream(numbers)
        names = reader.schema.names
        if column is None and len(names) != 1:
            raise UserError(f"the table has the columns {', '.join(names)}; column= names the one that is added")
        return reader, names[0] if column is None else column
    if column is not None:
        raise UserError(f"column is {column!r}; an Arrow array has no named columns, as tables have")
    array = arrow.chunked_array(numbers) if _has(numbers, "__arrow_c_stream__") else arrow.array(numbers)
    return [arrow.table({"array": array})], "array"


def parquet_total(devices: list[Device], path: Path, column: str) -> ExactSum | DecimalSum:
    """batches_total() of one column of a Parquet file; InputError for a file that is none."""
    arrow, parquet = (import_optional(name, "Parquet files need PyArrow") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        with reading(path), parquet.ParquetFile(path) as file:
            schema, is_there = file.schema_arrow, column in file.schema_arrow.names
            batches = file.iter_batches(columns=[column] if is_there else None)
            schema = arrow.schema([schema.field(column)]) if is_there else schema
            return batches_total(devices, arrow.RecordBatchReader.from_batches(schema, batches), column)
    except (InputError, arrow.ArrowException) as error:
        known = str(error).startswith(f"{path}: ")
        raise InputError(f"{error}" if known else f"{path}: {error}") from error


def batches_total(
    devices: list[Device], batches: Iterable[Any], column: str, y: str | None = None
) -> ExactSum | DecimalSum:
    """The exact sum of a column of Arrow record batches or tables, or of the products of columns `column` and `y`.

    Rows with a null in either column are left out. A DECIMAL column has a DecimalSum, and no products; a reader without
    batches has the sum of its schema, if it has one. InputError for a column that is missing or holds no numbers.
    """
    total: Any = None
    schema = getattr(batches, "schema", None)
    for batch in batches if schema is None else itertools.chain(batches, [schema.empty_table()]):
        if y is None and column in batch.schema.names and str(batch.column(column).type).startswith("decimal"):
            batch_sum = _decimal_sum(batch.column(column))
            total = batch_sum if total is None else total + batch_sum
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
    """The exact sum of the values of an Arrow DECIMAL column that are not null.

    Arrow stores a decimal as an integer of 4 to 32 bytes, little-endian, in units of 10^-scale: `words` words of 32
    bits; only the highest word is signed (two's complement). Word k is added over all values in 64 bits, which
    cannot overflow below 2^32 values a chunk, and the sums are joined with weights 2^(32 k) in Python's integers.
    """
    words, units, count = column.type.bit_width // 32, 0, 0
    for chunk in getattr(column, "chunks", [column]):
        values = chunk.drop_null()
        if len(values):
            bytes_before = 4 * words * values.offset
            # buffers() of a fixed-width array are (bitmap of nulls, values)
            table = np.frombuffer(values.buffers()[1], "<u4", len(values) * words, bytes_before).reshape(-1, words)
            sums = [int(table[:, k].sum(dtype="u8")) for k in range(words - 1)]
            sums.append(int(table[:, -1].view("<i4").sum(dtype="i8")))
            units, count = units + sum(word_sum << 32 * k for k, word_sum in enumerate(sums)), count + len(values)
    return DecimalSum(units, column.type.scale, count)


def _with_common_dtype(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both arrays, converted to float64 if their dtypes differ; InputError if the conversion would round."""
    if x.dtype == y.dtype:
        return x, y
    for given in (x, y):
        if given.dtype.kind in "iu" and max(-int(given.min(initial=0)), int(given.max(initial=0))) > 2**53:
            raise InputError("a column holds integers beyond 2^53, which float64 does not hold")
    return x.astype("f8"), y.astype("f8")


def _numbers(batch: Any, name: str) -> np.ma.MaskedArray:
    """A column as a masked array, its nulls masked; not copied if it is one contiguous chunk without nulls."""
    if name not in batch.schema.names:
        raise InputError(f"column {name!r} is not there; the columns are {', '.join(batch.schema.names)}")
    column = batch.column(name)
    masked = np.asarray(column.is_null())
    try:
        array = np.asarray(column.fill_null(0) if masked.any() else column)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InputError(f"column {name!r} holds {column.type}; numbers are wanted") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"column {name!r} holds {column.type}; numbers are wanted")
    return np.ma.MaskedArray(array, masked)
