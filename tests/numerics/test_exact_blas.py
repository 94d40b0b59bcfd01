"""Correctly rounded sums along axes and products, against fractions and fsum."""

import math
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.numerics.sums.arrow_sums import batches_total
from renderer.numerics.sums.exact_blas import axis_mean, axis_sum, axis_variance, matmul, matvec
from renderer.numerics.sums.exact_sum import rounded_fraction


def spread(rng, shape, decades):
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-decades, decades + 1, shape)


def dots(a, b):
    rows = [[Fraction(v) for v in row] for row in a.tolist()]
    columns = [[Fraction(v) for v in column] for column in b.T.tolist()]
    return np.array([[rounded_fraction(sum(u * v for u, v in zip(r, c, strict=True))) for c in columns] for r in rows])


@pytest.mark.parametrize("decades", [0, 8, 150])
def test_products_are_rounded_once(rng, decades):
    """Half of the terms of each row cancel; with 150 decades the rounding errors of some products are no doubles."""
    a, b = spread(rng, (9, 12), decades), spread(rng, (12, 5), decades)
    a[:, 6:], b[6:] = -a[:, :6], b[:6] * (1 + 2.0**-52)
    assert np.array_equal(matmul(a, b), dots(a, b))
    assert np.array_equal(matvec(a, b[:, 0]), dots(a, b)[:, 0])
    assert np.array_equal(
        matmul(a.astype("f4") if decades < 9 else a, b), dots(a.astype("f4") if decades < 9 else a, b)
    )


def test_large_products_are_those_of_small_ones(rng, monkeypatch):
    from renderer.numerics.sums import exact_blas

    a, b = spread(rng, (20, 30), 3), spread(rng, (30, 17), 3)
    whole = matmul(a, b)
    monkeypatch.setattr(exact_blas, "BLOCK", 64)
    assert np.array_equal(matmul(a, b), whole)
    order = rng.permutation(30)
    assert np.array_equal(matmul(a[:, order], b[order]), whole)


def test_products_that_are_not_finite_or_nothing():
    a = np.array([[1, np.inf, 0.0], [1e200, 1e200, 1], [np.nan, 0, 0], [1e-200, 0, 1e-200], [1e300, np.inf, 1]])
    b = np.array([[1.0, 1e200], [1, 1e200], [1, -1e-200]])
    found = matmul(a, b)
    assert found[0].tolist() == [np.inf, np.inf] and found[4].tolist() == [np.inf, np.inf]
    assert found[1].tolist() == [2e200, np.inf] and np.isnan(found[2]).all()
    assert found[3].tolist() == [2e-200, 1.0] and matmul(np.zeros((2, 0)), np.zeros((0, 3))).tolist() == [[0] * 3] * 2


def test_sums_along_axes(rng):
    x = spread(rng, (4, 7, 5), 20)
    x[:, 3] = -x[:, 2]
    for axis in (0, 1, -1):
        lines = np.moveaxis(x, axis, -1)
        sums, means, variances = axis_sum(x, axis), axis_mean(x, axis), axis_variance(x, axis, 1)
        for index in np.ndindex(lines.shape[:-1]):
            line = [Fraction(float(v)) for v in lines[index]]
            mean = sum(line) / len(line)
            assert sums[index] == math.fsum(lines[index]) and means[index] == float(mean)
            assert variances[index] == float(sum((v - mean) ** 2 for v in line) / (len(line) - 1))
    assert axis_sum(np.zeros((3, 0))).tolist() == [0, 0, 0] and np.isnan(axis_mean(np.zeros((3, 0)))).all()
    assert axis_sum(np.array([[1, 2], [3, 4]], "i4"), 0).tolist() == [4, 6]


def test_arrays_that_do_not_fit_are_told():
    for wrong, words in (
        (lambda: matmul(np.ones((2, 3)), np.ones((2, 3))), r"\(2, 3\) and b is \(2, 3\)"),
        (lambda: matmul(np.ones((2, 3), "c16"), np.ones((3, 3))), "complex128"),
        (lambda: axis_sum(np.array([[1 << 60]])), "beyond 2.53"),
        (lambda: axis_sum(np.ones((2, 2)), 2), "axis is 2"),
    ):
        with pytest.raises(InputError, match=words):
            wrong()


@pytest.mark.slow
def test_dask_arrays_are_added_where_their_chunks_are(rng):
    dask_array = pytest.importorskip("dask.array")
    from renderer.numerics.sums.dask_sums import dask_total

    x, y = spread(rng, (60, 50), 12), spread(rng, (60, 50), 12)
    chunked, other = (dask_array.from_array(v, chunks=(13, 20)) for v in (x, y))
    total = dask_total(chunked, spellings=("cpu",))
    assert total.compute(scheduler="synchronous").rounded() == math.fsum(x.ravel())
    product = dask_total(chunked, other, ("cpu",)).compute(scheduler="synchronous")
    assert product.rounded() == dots(x.reshape(1, -1), y.reshape(-1, 1))[0, 0] and product.count == 3000
    with pytest.raises(InputError, match="chunks of"):
        dask_total(chunked, other.rechunk((60, 50)))
    complex_sum = dask_total(chunked + 1j * other, spellings=("cpu",)).compute(scheduler="synchronous")
    assert complex_sum.rounded() == complex(math.fsum(x.ravel()), math.fsum(y.ravel()))


@pytest.mark.slow
def test_dask_arrays_are_summed_a_chunk_at_a_time(device, rng, monkeypatch):
    dask_array = pytest.importorskip("dask.array")
    from renderer.numerics.sums import array_sum, device_sums, mean, variance

    x, y = spread(rng, (60, 50), 12), spread(rng, (60, 50), 12)
    chunked, other = (dask_array.from_array(v, chunks=(13, 20)) for v in (x, y))
    sizes = []
    as_source = device_sums.as_source
    monkeypatch.setattr(device_sums, "as_source", lambda v, *rest: sizes.append(v.size) or as_source(v, *rest))
    for mode in ("exact", "reproducible", "fast"):
        assert array_sum([device], chunked, mode).rounded() == pytest.approx(math.fsum(x.ravel()), rel=1e-9)
        assert array_sum([device], chunked, mode, other).count == 3000
    assert array_sum([device], chunked, y=other) == array_sum([device], x, y=y) and max(sizes[:40]) == 13 * 20
    monkeypatch.undo()
    assert (mean([device], chunked), variance([device], chunked)) == (mean([device], x), variance([device], x))
    with pytest.raises(InputError, match="in the same chunks"):
        array_sum([device], chunked, y=y)


class Column:
    """A stand-in for an Arrow column with the methods that batches_total() calls, since PyArrow may be missing."""

    def __init__(self, values, nulls, kind="double"):
        self.values, self.nulls, self.type = values, nulls, kind

    def is_null(self):
        return self.nulls

    def fill_null(self, value):
        return np.where(self.nulls, value, self.values)

    def __array__(self, dtype=None, copy=None):
        return self.values


def tables(rng, n=400):
    x, k, nulls = spread(rng, n, 20), rng.integers(-9, 9, n), rng.random(n) < 0.1
    try:
        import pyarrow

        table = pyarrow.table({"x": pyarrow.array(x, mask=nulls), "k": k, "name": ["a"] * n})
        batches = table.to_batches(77)
    except ImportError:
        none = np.zeros(n, bool)
        names = SimpleNamespace(names=["x", "k", "name"])
        columns = {"x": (x, nulls), "k": (k, none), "name": (np.array(["a"] * n), none, "string")}
        batches = [
            SimpleNamespace(
                schema=names,
                column=lambda name, at=slice(first, first + 77): Column(
                    *(v[at] if isinstance(v, np.ndarray) else v for v in columns[name])
                ),
            )
            for first in range(0, n, 77)
        ]
    return batches, x, k, ~nulls


def test_batches_of_arrow_are_added_exactly(device, rng):
    batches, x, k, valid = tables(rng)
    total = batches_total([device], batches, "x")
    assert total.rounded() == math.fsum(x[valid]) and total.count == valid.sum()
    assert batches_total([device], batches, "k").rounded() == k.sum() and batches_total([device], [], "x").count == 0
    products = [Fraction(float(u)) * int(v) for u, v in zip(x[valid], k[valid], strict=True)]
    assert batches_total([device], batches, "x", "k").rounded() == rounded_fraction(sum(products))
    with pytest.raises(InputError, match="'price' is not there; the columns are x, k, name"):
        batches_total([device], batches, "price")
    with pytest.raises(InputError, match="'name' holds string; numbers are wanted"):
        batches_total([device], batches, "name")


class Decimals:
    """A stand-in for an Arrow array of decimals: integers of `bits` bits from `offset` on, without nulls."""

    def __init__(self, integers, scale, bits=128, offset=0):
        self.integers, self.scale, self.bits, self.offset = integers, scale, bits, offset
        self.type = type("decimal128", (), {"scale": scale, "bit_width": bits, "__str__": lambda _: f"decimal{bits}"})()

    def drop_null(self):
        return Decimals([k for k in self.integers if k is not None], self.scale, self.bits, self.offset)

    def __len__(self):
        return len(self.integers)

    def buffers(self):
        size = self.bits // 8
        return [None, b"".join(k.to_bytes(size, "little", signed=True) for k in [7] * self.offset + self.integers)]


@pytest.mark.parametrize("bits", [32, 64, 128, 256])
def test_decimal_columns_are_added_exactly(rng, bits):
    """Against integers; nulls are left out, batches may begin inside a buffer, and the sum may need more digits."""
    largest = 2 ** (bits - 1) - 1
    integers = [int(v) * largest // 10**6 for v in rng.integers(-(10**6), 10**6 + 1, 300)] + [
        largest,
        -largest - 1,
        None,
    ]
    columns = [Decimals(part, 2, bits, 3) for part in (integers[:100], integers[100:], [], [largest] * 9)]
    names = SimpleNamespace(names=["d"])
    batches = [SimpleNamespace(schema=names, column=lambda _name, column=column: column) for column in columns]
    total, present = batches_total([], batches, "d"), [k for k in integers if k is not None] + [largest] * 9
    assert total.fraction() == Fraction(sum(present), 100) and total.count == len(present)
    assert Fraction(total.decimal()) == total.fraction() and total.rounded() == rounded_fraction(total.fraction())
    assert (total + batches_total([], batches[:1], "d")).count == len(present) + 100


class EmptyReader:
    """A stand-in for a RecordBatchReader without batches: its schema makes an empty table."""

    def __init__(self, column):
        table = SimpleNamespace(schema=SimpleNamespace(names=["d"]), column=lambda _name: column)
        self.schema = SimpleNamespace(empty_table=lambda: table)

    def __iter__(self):
        return iter(())


def test_a_reader_without_batches_has_the_sum_of_its_column():
    total = batches_total([], EmptyReader(Decimals([], 2)), "d")
    assert total.decimal() == 0 and total.count == 0 and total.scale == 2
    assert batches_total([], EmptyReader(Column(np.zeros(0), np.zeros(0, bool))), "d").count == 0
    with pytest.raises(InputError, match="'price' is not there; the columns are d"):
        batches_total([], EmptyReader(Decimals([], 2)), "price")


def test_products_of_integers_that_float64_would_round_are_refused(device):
    """2^53 + 1 becomes 2^53 in float64; 2^53 and -2^53 are exact."""
    schema, none = SimpleNamespace(names=["x", "k"]), np.zeros(2, bool)
    for integer, is_exact in ((2**53, True), (-(2**53), True), (2**53 + 1, False), (-(2**53) - 1, False)):
        columns = {"x": Column(np.array([0.5, 1]), none), "k": Column(np.array([integer, 3]), none)}
        batch = SimpleNamespace(schema=schema, column=columns.__getitem__)
        if is_exact:
            assert batches_total([device], [batch], "x", "k").fraction() == Fraction(integer, 2) + 3
            continue
        with pytest.raises(InputError, match="integers beyond 2\\^53"):
            batches_total([device], [batch], "x", "k")


@pytest.mark.slow
def test_decimals_of_pyarrow_and_duckdb(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    prices = [Decimal(k * 7919 % 10**9) / 100 - 10**6 if k % 5 else None for k in range(4000)]
    table = pyarrow.table({"price": pyarrow.array(prices, pyarrow.decimal128(18, 2))})
    parquet.write_table(table, tmp_path / "sales.parquet")
    exact = sum(map(Fraction, (p for p in prices if p is not None)))
    total = batches_total([], parquet.ParquetFile(tmp_path / "sales.parquet").iter_batches(300), "price")
    assert total.fraction() == exact and batches_total([], [table.slice(7, 100)], "price").count == 80
    duckdb = pytest.importorskip("duckdb")
    reader = duckdb.sql(f"select price from '{tmp_path / 'sales.parquet'}'").fetch_record_batch(500)
    assert batches_total([], reader, "price").decimal() == sum(p for p in prices if p is not None)
