"""Exact sums of columns of Arrow tables, one record batch at a time: from PyArrow, Parquet files, DuckDB and Polars.

    total = batches_total(devices, connection.sql("select price from sales").fetch_record_batch(), "price")
    total = batches_total(devices, pyarrow.parquet.ParquetFile("sales.parquet").iter_batches(), "price")
    total.rounded(), total.count                      # nulls are not counted

A DECIMAL column's total is exact in decimal digits: total.decimal() is a decimal.Decimal. Only a sum is kept between
batches, or with grouped_sums() one for each key. The sums of several readers can be added with +, in any order.
"""

import itertools
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import InputError, UserError, import_optional, reading
from renderer.gpu import Device
from renderer.numerics.sums.by_key import KeyedAggregates, aggregate, push
from renderer.numerics.sums.device_sums import array_sum
from renderer.numerics.sums.exact_sum import DecimalSum, ExactSum
from renderer.system.install import pip_install
from renderer.system.progress import Progress

MAX_ROWS = 1 << 22  # rows of a batch whose keys are sorted together
NEED = f"Arrow tables and Parquet files need PyArrow: {pip_install('pyarrow')}"


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
    arrow = import_optional("pyarrow", NEED)
    if _has(numbers, "schema", "columns"):
        reader = arrow.RecordBatchReader.from_stream(numbers)
        names = reader.schema.names
        return reader, _only_column(names, column)
    if column is not None:
        raise UserError(f"column is {column!r}; an Arrow array has no named columns, as tables have")
    array = arrow.chunked_array(numbers) if _has(numbers, "__arrow_c_stream__") else arrow.array(numbers)
    return [arrow.table({"array": array})], "array"


def _only_column(names: list[str], column: str | None) -> str:
    if column is None and len(names) != 1:
        raise UserError(f"the table has the columns {', '.join(names)}; column= names the one that is added")
    return names[0] if column is None else column


def parquet_total(
    devices: list[Device], path: Path, column: str | None, by: str | None = None
) -> tuple[Any, dict[str, Any]]:
    """batches_total() of one column of a Parquet file, or grouped_sums(); its "count" of numbers and "dtype".

    InputError for a file that is none.
    """
    arrow, parquet = (import_optional(name, NEED) for name in ("pyarrow", "pyarrow.parquet"))
    try:
        with reading(path), parquet.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
            column = _only_column(schema.names, column)
            names = [name for name in dict.fromkeys((column, by)) if name is not None]
            for name in names:
                _check_column(schema, name, UserError, f"{path}: ")  # a word of the command line
            with Progress(rows, f"rows of {path.name}") as progress:
                count = 0  # of numbers: nulls are left out

                def batches() -> Iterator[Any]:
                    nonlocal count
                    for batch in file.iter_batches(columns=names):
                        yield batch
                        count += len(batch) - batch.column(column).null_count
                        progress.advance(len(batch))

                reader = arrow.RecordBatchReader.from_batches(arrow.schema(map(schema.field, names)), batches())
                total: Any = batches_total(devices, reader, column) if by is None else grouped_sums(reader, column, by)
            return total, {"count": count, "dtype": str(schema.field(column).type)}
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


def grouped_sums(batches: Any, column: str, by: str) -> tuple[dict[Any, int | float | Decimal | None], list[int]]:
    """The exact sum of a column of a reader of Arrow record batches for each value of the column `by`, in one pass.

    Keys are integers, texts, dates, booleans or decimals in the order of their first rows, and None for null; rows with
    a null in `column` are left out, and a key that has no others has the sum None, as SQL's NULL. The list has the
    numbers added for each key. Sums are as by_key.py makes them, on the host. InputError for other columns.
    """
    arrow = import_optional("pyarrow", NEED)
    for name in (column, by):
        _check_column(batches.schema, name)
    type_of_keys, scale = batches.schema.field(by).type, getattr(batches.schema.field(column).type, "scale", None)
    is_nested = arrow.types.is_nested(type_of_keys)
    if is_nested or arrow.types.is_floating(type_of_keys):
        raise InputError(f"column {by!r} holds {type_of_keys}; keys are integers, texts, dates, booleans or decimals")
    codes: dict[Any, int] = {}  # a number for each value of the column `by`: its key
    seen: dict[int, None] = {}  # keys in the order of their first rows: an Arrow dictionary may hold values of no row
    planes: list[list[KeyedAggregates]] = []  # of numbers one; of decimals one for each word, of weight 2^(32 k)
    for whole in batches:
        for batch in (whole.slice(start, MAX_ROWS) for start in range(0, len(whole), MAX_ROWS)):
            encoded = batch.column(by).dictionary_encode()  # `dictionary`, the different values; an index for each row
            values = [*encoded.dictionary.to_pylist(), None]
            key_of_index = np.array([codes.setdefault(value, len(codes)) for value in values])
            indices = np.asarray(encoded.indices.fill_null(len(values) - 1))
            first_rows = np.full(len(values), len(batch))  # of each value; len(batch) if there is none
            first_rows[indices[::-1]] = np.arange(len(batch))[::-1]  # the last assignment to an element stays
            keys = key_of_index[indices]
            present = np.argsort(first_rows)[: (first_rows < len(batch)).sum()]
            seen |= dict.fromkeys(key_of_index[present].tolist())
            is_valid = batch.column(column).is_valid()
            batch, keys = batch.filter(is_valid), keys[np.asarray(is_valid)]
            arrays = [_numbers(batch, column).data] if scale is None else _decimal_words(batch.column(column))
            planes = planes or [[] for _ in arrays]
            for parts, array in zip(planes, arrays if len(keys) else (), strict=False):
                push(parts, aggregate(keys, array))
    # reversed(): push() keeps the smallest parts last, and merging these first costs least.
    merged = [reduce(KeyedAggregates.merge, reversed(parts)) for parts in planes if parts]
    names, sums, counts = [*codes], dict[int, int | float | Decimal](), dict[int, int]()
    if merged:
        counts = dict(zip(merged[0].keys.tolist(), merged[0].counts.tolist(), strict=True))
        for key, *words in zip(counts, *(group.sums() for group in merged), strict=True):
            units = 0 if scale is None else sum(word << 32 * k for k, word in enumerate(words))
            sums[key] = words[0] if scale is None else DecimalSum(units, scale, 1).decimal()
    return {names[key]: sums.get(key) for key in seen}, [counts.get(key, 0) for key in seen]


def _decimal_sum(column: Any) -> DecimalSum:
    """The exact sum of the values of an Arrow DECIMAL column that are not null.

    Word k of _decimal_words() is added over all values in 64 bits, which cannot overflow below 2^32 values a chunk, and
    the sums are joined with weights 2^(32 k) in Python's integers.
    """
    units, count = 0, 0
    for chunk in getattr(column, "chunks", [column]):
        values = chunk.drop_null()
        sums = [int(word.sum(dtype="i8" if word.dtype.kind == "i" else "u8")) for word in _decimal_words(values)]
        units, count = units + sum(word_sum << 32 * k for k, word_sum in enumerate(sums)), count + len(values)
    return DecimalSum(units, column.type.scale, count)


def _decimal_words(values: Any) -> list[np.ndarray]:
    """The words of 32 bits of the values of an Arrow DECIMAL array without nulls, the lowest first.

    Arrow stores a decimal as an integer of 4 to 32 bytes, little-endian, in units of 10^-scale; only the highest word
    is signed (two's complement). buffers() of a fixed-width array are (bitmap of nulls, values).
    """
    words = values.type.bit_width // 32
    buffer = values.buffers()[1] if len(values) else b""
    table = np.frombuffer(buffer, "<u4", len(values) * words, 4 * words * values.offset if len(values) else 0)
    columns = [*table.reshape(-1, words).T]
    return [*columns[:-1], columns[-1].view("<i4")]


def _with_common_dtype(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both arrays, converted to float64 if their dtypes differ; InputError if the conversion would round."""
    if x.dtype == y.dtype:
        return x, y
    for given in (x, y):
        if given.dtype.kind in "iu" and max(-int(given.min(initial=0)), int(given.max(initial=0))) > 2**53:
            raise InputError("a column holds integers beyond 2^53, which float64 does not hold")
    return x.astype("f8"), y.astype("f8")


def _check_column(schema: Any, name: str, kind: type[UserError] = InputError, where: str = "") -> None:
    if name not in schema.names:
        raise kind(f"{where}column {name!r} is not there; the columns are {', '.join(schema.names)}")


def _numbers(batch: Any, name: str) -> np.ma.MaskedArray:
    """A column as a masked array, its nulls masked; not copied if it is one contiguous chunk without nulls."""
    _check_column(batch.schema, name)
    column = batch.column(name)
    masked = np.asarray(column.is_null())
    try:
        array = np.asarray(column.fill_null(0) if masked.any() else column)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InputError(f"column {name!r} holds {column.type}; numbers are wanted") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"column {name!r} holds {column.type}; numbers are wanted")
    return np.ma.MaskedArray(array, masked)
