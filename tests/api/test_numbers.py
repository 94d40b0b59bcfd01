"""renderer.sum and renderer.solve against Python's own exact arithmetic and NumPy."""

import json
import math
import warnings
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import renderer
from renderer.cli import main
from renderer.numerics.band_lu import SingularMatrix
from renderer.numerics.band_lu.command import doubt


def test_sums_are_exact(tmp_path, rng):
    values = rng.standard_normal(1000) * 10.0 ** rng.integers(-30, 30, 1000)
    assert renderer.sum(values) == math.fsum(values) == renderer.sum(values[::-1], device="cpu")
    assert renderer.sum([1e100, 1.0, -1e100]) == 1.0
    assert renderer.sum([2**62, 2**62, 2**62]) == 3 * 2**62 and renderer.sum(np.ones(5, bool)) == 5
    assert type(renderer.sum(np.arange(4.0))) is float and type(renderer.sum(np.arange(4, dtype="f2"))) is float
    tensor = SimpleNamespace(__dlpack__=lambda **_: values.__dlpack__(), __dlpack_device__=values.__dlpack_device__)
    assert renderer.sum(tensor) == math.fsum(values)
    assert renderer.sum(values + 1j) == complex(math.fsum(values), 1000)
    np.save(tmp_path / "a.npy", values)
    assert renderer.sum(tmp_path / "a.npy") == renderer.sum(values)
    twice = float(2 * sum(map(Fraction, values.tolist())))
    assert renderer.sum([tmp_path / "a.npy", str(tmp_path / "a.npy")]) == twice
    assert math.isclose(renderer.sum(np.abs(values), "fast"), math.fsum(np.abs(values)), rel_tol=1e-12)


def test_wrong_sums_are_sentences(tmp_path):
    with pytest.raises(renderer.UserError, match="mode is 'most'; allowed are"):
        renderer.sum([1.0], "most")
    with pytest.raises(renderer.InputError, match="No such file"):
        renderer.sum(tmp_path / "none.npy")
    with pytest.raises(renderer.UserError):
        renderer.sum(["one", "two"])
    with pytest.raises(renderer.UserError, match="column="):
        renderer.sum(["a.parquet", "b.parquet"])
    with pytest.raises(renderer.UserError, match="^by is 'k'; a list has no named columns"):
        renderer.sum([1.0], by="k")


def test_what_has_no_columns_takes_no_column(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    for numbers in (np.ones((3, 2)), [1.0, 2.0], tmp_path / "a.npy"):
        with pytest.raises(renderer.UserError, match="^column is 'v'; .* has no named columns"):
            renderer.sum(numbers, column="v")
    assert renderer.sum(tmp_path / "a.npy") == 6


def test_columns_of_arrow_and_parquet_are_added_alone_and_exactly(tmp_path):
    """The expected sums are Python's, of integers, fractions and decimals; nulls are left out of each."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    prices = [Decimal("12345678901234567.10"), None, Decimal("2.25")]
    columns = {"v": [1.0, None, 2.5], "k": [2**62, None, 2**62 + 1], "name": ["a", "b", "c"]}
    table = arrow.table({**columns, "price": arrow.array(prices, arrow.decimal128(20, 2))})
    path = tmp_path / "sales.parquet"
    parquet.write_table(table, path)
    for source in (table, table.to_batches()[0], table.to_reader, path):
        for column, wanted in (("v", 3.5), ("k", 2**63 + 1), ("price", Decimal("12345678901234569.35"))):
            found = renderer.sum(source() if callable(source) else source, column=column)
            assert found == wanted and type(found) is type(wanted), (source, column)
        for column, sentence in (("nope", "'nope' is not there; the columns are v, k"), ("name", "holds string")):
            with pytest.raises(renderer.UserError, match=sentence):
                renderer.sum(source() if callable(source) else source, column=column)
    assert renderer.sum(table["k"]) == renderer.sum(arrow.array(columns["k"])) == 2**63 + 1
    assert renderer.sum(table.select(["v"])) == 3.5
    path.write_bytes(b"PAR1" + bytes(50))
    for source, options, sentence in (
        (table, {}, "the table has the columns v, k, name, price; column= names"),
        (table["v"], {"column": "v"}, "has no named columns"),
        (table, {"column": "v", "mode": "fast"}, "added in mode 'exact'"),
        (path, {"column": "v"}, "sales.parquet: .*[Pp]arquet"),
        (tmp_path / "none.parquet", {"column": "v"}, "none.parquet: .*No such file"),
    ):
        with pytest.raises(renderer.UserError, match=sentence):
            renderer.sum(source, **options)


def test_columns_are_added_by_the_values_of_another_one(tmp_path, capsys, rng):
    """Against fsum and Python's integers and decimals for each key; nulls are left out, and a key of their own."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    n, path = 3000, tmp_path / "t.parquet"
    k = rng.integers(-3, 5, n)
    mask = (rng.random(n) < 0.2) | (k == 4)  # a key that has nulls alone
    columns = {
        "v": (rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n)).tolist(),
        "i": rng.integers(-(2**62), 2**62, n).tolist(),
        "d": [Decimal(int(x)).scaleb(-2) for x in rng.integers(-(10**17), 10**17, n)],
    }
    keys = {"k": k.tolist(), "s": [None if x == 2 else f"k{x}" for x in k]}
    table = arrow.table(keys | {name: arrow.array(values, mask=mask) for name, values in columns.items()})
    coded = arrow.array([*keys["s"], "unused"]).dictionary_encode()[:n]
    table = table.append_column("c", coded)
    parquet.write_table(table, path, row_group_size=700)
    for by, column in [("k", "v"), ("s", "i"), ("c", "d"), ("s", "v")]:
        wanted = {}
        for key, value, is_null in zip(keys["s" if by == "c" else by], columns[column], mask, strict=True):
            wanted.setdefault(key, []).extend([] if is_null else [value])
        wanted = {key: (math.fsum if column == "v" else sum)(values) if values else None
                  for key, values in wanted.items()}  # fmt: skip
        for source in (path, table):
            sums = renderer.sum(source, column=column, by=by)
            assert sums == wanted and [*sums] == [*wanted]
    words = ["sum", str(path), "--column", "d", "--by", "s"]
    capsys.readouterr()
    assert main(words) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    counts = {key: sum(x == key and not null for x, null in zip(keys["s"], mask, strict=True)) for key in keys["s"]}
    sums = renderer.sum(table, column="d", by="s")
    assert rows == [["keys", "counts", "sums"], *([str(key), str(counts[key]), str(sums[key])] for key in sums)]
    assert main([*words[:4], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == str(renderer.sum(table, column="d"))
    for by, sentence, code in (("v", "keys are integers, texts", 5), ("x", "t.parquet: column 'x' is not there", 2)):
        with pytest.raises(renderer.UserError, match=sentence) as caught:
            renderer.sum(path, column="i", by=by)
        assert caught.value.exit_code == code  # a bad file, or a word of the command line


def test_decimals_of_a_list_are_added_exactly():
    numbers = [Decimal(10) ** 30, Decimal("0.1"), Decimal("-1e-40"), -(Decimal(10) ** 30)]
    total = renderer.sum(numbers)
    assert isinstance(total, Decimal) and Fraction(total) == sum(map(Fraction, numbers))
    for wrong, words in (
        ([1.5, None], "such as NoneType; nulls are left out first"),
        ([Decimal(1), None], "such as NoneType"),
        ([Decimal("1e9000"), Decimal("1e-9000")], "more than 10000 digits"),
    ):
        with pytest.raises(renderer.InputError, match=words):
            renderer.sum(wrong)


@pytest.mark.parametrize("numbers", [[1, 2**70], [-1, 2**63], (2**64, -(2**64), True), [3 * 10**20000, 1], [7, -9]])
def test_integers_of_a_list_are_added_exactly(numbers):
    """NumPy makes objects of the first, and float64 of the second."""
    total = renderer.sum(numbers)
    assert type(total) is int and total == sum(numbers)


def test_integers_and_decimals_of_a_list_are_added_exactly():
    assert renderer.sum([2**70, Decimal("1e-40")]) == Decimal(f"{2**70}.{1:040d}")
    with pytest.raises(renderer.InputError, match="such as float; "):
        renderer.sum([2**70, 0.5])


def test_a_parquet_file_goes_with_few_options(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.ones(3))
    for words, sentence in (
        ([tmp_path / "a.npy", "--column", "v"], "only .parquet files have named columns"),
        ([tmp_path / "a.npy", "b.parquet"], "a .parquet file is added alone"),
        (["b.parquet", "--column", "v", "--compare"], "it takes --column, --by, --device and --json"),
    ):
        assert main(["sum", *map(str, words)]) == 2
        assert sentence in capsys.readouterr().err


def test_a_result_of_duckdb_is_added():
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    relation = duckdb.sql("select range * 3 as k, 1.5::double as v from range(5)")
    assert renderer.sum(relation, column="k") == 30 and renderer.sum(relation, column="v") == 7.5
    connection = duckdb.connect()  # as the guide says
    connection.create_function("exact_sum", lambda values: renderer.sum(values), ["DOUBLE[]"], "DOUBLE")
    connection.create_function("exact", lambda values: renderer.sum(values), ["DECIMAL(38,6)[]"], "DECIMAL(38,6)")
    assert connection.sql("select exact([0.1::decimal(38,6), 0.2::decimal(38,6)])").fetchall() == [(Decimal("0.3"),)]
    connection.sql(
        "create table t as select range % 2 as k, [1e100, 2.0, -1e100, null][1 + range // 2] as v from range(8)"
    )
    query = "select k, exact_sum(list(v) filter (v is not null)) from t group by k"
    assert (
        dict(connection.sql(query).fetchall())
        == {0: 2.0, 1: 2.0}
        == renderer.sum(connection.table("t"), column="v", by="k")
    )


def test_systems_are_solved(tmp_path, rng):
    ab = rng.standard_normal((4, 30)) + 9 * (np.arange(4) == 1)[:, None]  # kl = 2, ku = 1
    dense = np.zeros((30, 30))
    for j in range(30):
        for i in range(max(0, j - 1), min(30, j + 3)):
            dense[i, j] = ab[1 + i - j, j]
    b = rng.standard_normal((30, 3))
    x = np.linalg.solve(dense, b)
    assert np.allclose(renderer.solve(ab, b, 2, 1), x) and np.allclose(renderer.solve(dense, b), x)
    assert np.allclose(renderer.solve(dense * 1j, b), x / 1j) and np.allclose(
        renderer.solve(ab, b, 2, 1, device="cpu"), x
    )
    found, radius = renderer.solve(ab, b[:, 0], 2, 1, certified=True)
    exact = np.array(rational_solution(dense, b[:, 0]))
    assert all(abs(Fraction(f) - e) <= Fraction(r) for f, e, r in zip(found, exact, radius, strict=True))
    np.savez(tmp_path / "band.npz", ab=ab, kl=2, ku=1)
    np.save(tmp_path / "b.npy", b)
    assert np.array_equal(renderer.solve(tmp_path / "band.npz", str(tmp_path / "b.npy")), renderer.solve(ab, b, 2, 1))


def rational_solution(matrix, b, kl=2):
    """Gaussian elimination in rational numbers, of kl subdiagonals."""
    rows = [[*map(Fraction, row), Fraction(value)] for row, value in zip(matrix.tolist(), b.tolist(), strict=True)]
    n = len(rows)
    for k in range(n):
        for i in range(k + 1, min(n, k + kl + 1)):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [u - factor * v if v else u for u, v in zip(rows[i], rows[k], strict=True)]
    x = [Fraction(0)] * n
    for k in reversed(range(n)):
        x[k] = (rows[k][n] - sum(rows[k][j] * x[j] for j in range(k + 1, n) if rows[k][j])) / rows[k][k]
    return x


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ((np.ones((3, 6)), np.ones(6)), renderer.UserError, "kl = None"),
        ((np.ones((3, 6)), np.ones(6), 1, 2), renderer.UserError, r"must be \(kl \+ ku \+ 1, n\)"),
        ((np.eye(4), np.ones(3)), renderer.InputError, "it must have the 4 rows of the matrix"),
        ((np.eye(4), np.array([1, 1, np.nan, 1])), renderer.InputError, r"^rhs\[2\] is nan; it must be finite"),
        ((np.full((4, 4), np.inf), np.ones(4)), renderer.InputError, r"^matrix\[0, 0\] is inf; it must be finite"),
        ((np.ones((6, 4)), np.ones(6), 1, 2), renderer.UserError, r"or \(n, n\) without both \(matrix.T\?\)"),
        ((np.zeros((4, 4)), np.ones(4)), SingularMatrix, "pivot of column 0"),
        (("none.npz", np.ones(4)), renderer.InputError, "No such file"),
        ((np.ones((3, 6)), np.ones(6), 1.0, 1), renderer.UserError, "^kl is 1.0; it must be a whole number"),
        ((np.ones((3, 6)), np.ones(6), 1, -1), renderer.UserError, "^ku is -1; it must be a whole number"),
        ((np.array(["a"]), np.ones(4)), renderer.InputError, "numbers of two axes"),
    ],
)
def test_wrong_systems_are_sentences(arguments, error, sentence):
    with pytest.raises(error, match=sentence), np.errstate(all="ignore"):
        renderer.solve(*arguments)


def test_advice_for_a_hopeless_matrix_promises_nothing():
    """It was given for an rcond of 3.7e-132, and 40 s later there was no digit."""
    report = {"forward_bound": None, "rcond": 3.7e-132, "growth": 1.0}
    assert doubt(report, "certified=True", "extended=True").endswith("; extended=True helps down to an rcond of 1e-30")
    assert "; C may prove some, where columns of unlike scales are the reason" in doubt(report, "C", "")
    assert doubt(report | {"rcond": 1e-20}, "", "extended=True").endswith("computes with twice the digits")
    matrix = np.diag([1.0] * 12) + np.diag([-1e13] * 11, 1)  # the inverse has an element of 1e143
    with pytest.raises(renderer.IncompleteError, match=r"costs about 1\d\d digits of 16"):
        renderer.solve(matrix, np.ones(12), certified=True)


def test_a_doubtful_solution_warns_and_a_report_says_its_bounds():
    hilbert = 1 / (np.arange(14)[:, None] + np.arange(14) + 1.0)
    with pytest.warns(UserWarning, match=r"certain; certified=True.*\(rcond.*; extended=True computes with twice"):
        renderer.solve(hilbert, np.ones(14))
    with warnings.catch_warnings(action="error"):  # the way out that the warning names is one
        x, report = renderer.solve(hilbert, np.ones(14), extended=True, report=True)
    exact = np.array(rational_solution(hilbert, np.ones(14), 13))
    error = max(abs(Fraction(f) - e) for f, e in zip(x.tolist(), exact, strict=True)) / max(map(abs, exact))
    assert error <= Fraction(report["forward_bound"]) < Fraction(1, 10**10)
    with pytest.warns(UserWarning, match="no digit is certain"):
        _, report = renderer.solve(hilbert, np.ones(14), report=True)
    assert report["forward_bounds"] == [None] and report["correct_digits"] == 0 and report["rcond"] < 1e-15
    with warnings.catch_warnings(action="error"):
        x, report = renderer.solve(hilbert[:3, :3], np.ones((3, 2)), report=True)
        found, radius, _ = renderer.solve(hilbert[:3, :3], np.ones((3, 2)), certified=True, report=True)
    exact = np.array(rational_solution(hilbert[:3, :3], np.ones(3)))
    error = max(abs(float(Fraction(f) - e)) for f, e in zip(x[:, 0], exact, strict=True)) / np.abs(x).max()
    assert len(report["forward_bounds"]) == 2 and error <= report["forward_bounds"][0] < 1e-9
    assert found.shape == radius.shape == (3, 2)


def test_scales_of_columns_cost_no_bound(rng):
    """Columns 24 decades apart, too far for an estimate: the proof replaces it. The exact solution is in fractions."""
    n = 80
    dense = np.diag(np.full(n, 8.0)) + np.diag(rng.standard_normal(n - 1), 1) + np.diag(rng.standard_normal(n - 2), -2)
    dense *= 10.0 ** rng.permutation(np.linspace(-12, 12, n))
    b = rng.standard_normal(n)
    with warnings.catch_warnings(action="error"):
        x, report = renderer.solve(dense, b, report=True)
    exact = rational_solution(dense, b)
    error = max(abs(Fraction(f) - e) for f, e in zip(x.tolist(), exact, strict=True)) / max(map(abs, exact))
    assert error <= Fraction(report["forward_bound"]) < Fraction(1, 10**14) and report["correct_digits"] >= 14


@pytest.mark.parametrize("form", ["csr_matrix", "csc_array", "coo_array", "dia_array"])
def test_a_sparse_matrix_of_scipy_is_solved(form, rng):
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.diag(np.full(20, 4.0)) + np.diag(rng.random(19), 1) + np.diag(rng.random(18), -2)
    assert np.array_equal(renderer.solve(getattr(sparse, form)(dense), np.ones(20)), renderer.solve(dense, np.ones(20)))
    with pytest.raises(renderer.UserError, match=r"or \(n, n\) without both"):
        renderer.solve(getattr(sparse, form)(dense), np.ones(20), 2, 1)


def test_a_proof_reports_its_rows_and_is_cancelled():
    """Of the biharmonic operator, whose condition is too large for the proofs without n solutions."""
    band, steps = np.repeat([[1.0], [-4.0], [6.0], [-4.0], [1.0]], 400, axis=1), []
    x, radius = renderer.solve(band, np.ones(400), 2, 2, certified=True, progress=lambda *step: steps.append(step))
    assert [done for done, _ in steps] == sorted({done for done, _ in steps}) and steps[-1] == (400, 400)
    assert len(steps) > 1 and (radius < 1e-6 * abs(x).max()).all()
    with pytest.raises(renderer.IncompleteError, match="^solve: cancelled after .* of 400 rows"):
        renderer.solve(band, np.ones(400), 2, 2, certified=True, progress=lambda done, rows: False)
    with pytest.raises(renderer.UserError, match="^progress is 5"):
        renderer.solve(band, np.ones(400), 2, 2, progress=5)
