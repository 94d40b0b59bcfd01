"""The readers of .npy, .npz and Matrix Market files against NumPy and SciPy, and what each refuses."""

import gzip
import io
import re
import warnings
import zipfile

import numpy as np
import pytest
from scipy.io import mmread, mmwrite
from scipy.sparse import coo_array, random_array

from renderer.errors import InputError
from renderer.formats import matrix_market
from renderer.formats.archive import MAX_DIRECTORY_BYTES, Zip, open_member, open_zip
from renderer.formats.matrix_market import Entries, read_matrix_market
from renderer.formats.npy import MAX_HEADER_BYTES, read_data, read_header

RECORD = np.dtype([("a", "<f4"), ("b", [("x", "<i2"), ("y", "u1", (2, 3))]), ("c(,)", "?")])
ARRAYS = {
    "scalar": np.float64(3), "one": np.arange(5, dtype="i2"), "many": np.ones((1, 2, 3, 4, 5), "f2"),
    "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)), "empty": np.zeros((0, 3), "u8"),
    "bool": np.ones((2, 2), bool), "swapped": np.arange(4, dtype=">f8"), "complex": np.ones(3, "c16"),
    "record": np.zeros((2, 3), RECORD), "text": np.array(["ab"]), "times": np.zeros(2, "M8[ns]"),
}  # fmt: skip


def saved(array, version=None) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), version=version)
    return out.getvalue()


def header_of(data: bytes, size: int | None = None):
    return read_header(io.BytesIO(data), "a.npy", len(data) if size is None else size)


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("name", ARRAYS)
def test_headers_are_read_as_numpy_reads_them(name, version):
    data = saved(ARRAYS[name], version)
    file = io.BytesIO(data)
    header = read_header(file, "a.npy", len(data))
    expected = np.load(io.BytesIO(data))
    assert header.shape == expected.shape and header.dtype == expected.dtype and header.nbytes == expected.nbytes
    assert header.is_fortran == (name == "fortran")
    found = read_data(file, header, "a.npy")
    assert found.tobytes() == expected.tobytes() and found.shape == expected.shape


def written(text: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode("latin-1") + data


BAD_HEADERS = {
    "cut in a bracket": ("{'descr': '<f8', 'fortran_order': False, 'shape': (3,", "header is damaged"),
    "code": ("{'descr': open('a'), 'fortran_order': False, 'shape': (3,)}", "header is damaged"),
    "brackets": ("[" * MAX_HEADER_BYTES, "too long|damaged|allowed"),
    "python 2": ("{'descr': '<f8', 'fortran_order': False, 'shape': (3L,)}", "header is damaged"),
    "true": ("{'descr': '<f8', 'fortran_order': False, 'shape': (True, 3)}", "its shape is"),
    "negative": ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "its shape is"),
    "float": ("{'descr': '<f8', 'fortran_order': False, 'shape': (1e3,)}", "its shape is"),
    "vast": ("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 0)}", "more than memory"),
    "digits": ("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",)}", "header is damaged"),
    "sides": ("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 99 + ")}", "its shape is"),
    "key": ("{'descr': '<f8', 'shape': (3,)}", "must have the keys"),
    "order": ("{'descr': '<f8', 'fortran_order': 1, 'shape': (3,)}", "fortran_order is 1"),
    "type": ("{'descr': 'float, <f8', 'fortran_order': False, 'shape': (3,)}", "its elements are"),
    "types": ("{'descr': [['a']], 'fortran_order': False, 'shape': (3,)}", "its elements are"),
    "lying": ("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}", "truncated"),
}


@pytest.mark.parametrize("name", BAD_HEADERS)
def test_damaged_headers_are_refused(name):
    text, told = BAD_HEADERS[name]
    data = written(text[:65535], b"\0" * 24)
    with warnings.catch_warnings(), pytest.raises(InputError, match=told) as caught:
        warnings.simplefilter("error")
        header_of(data)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("cut", [1, 7, 8, 100])
def test_arrays_short_by_a_byte_are_refused(cut):
    data = saved(np.arange(100.0))
    header_of(data)
    with pytest.raises(InputError, match="truncated"):
        header_of(data, len(data) - cut)
    for length in (0, 3, 7, 9, 60):
        with pytest.raises(InputError, match="not a .npy file"):
            header_of(data[:length])


def test_zip_members_are_bounded(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(64 << 20))
        archive.writestr("good", b"good")
        archive.writestr("slow", b"x", zipfile.ZIP_BZIP2)
    with open_zip(path) as archive:
        with open_member(archive, archive.getinfo("good"), "good") as member:
            assert member.read() == b"good"
        for name, told in (("zeros", "zip bomb"), ("slow", "method 12")):
            with pytest.raises(InputError, match=told), open_member(archive, archive.getinfo(name), name):
                pass
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(150):
            archive.writestr(f"{number}" + "x" * 60_000, b"")
    assert path.stat().st_size > MAX_DIRECTORY_BYTES
    with pytest.raises(InputError, match="its directory has"):
        Zip(path)


def as_dense(found) -> np.ndarray:
    if isinstance(found, np.ndarray):
        return found
    out = np.zeros(found.shape)
    np.add.at(out, (found.rows, found.columns), found.values)
    return out


@pytest.mark.parametrize("packed", [False, True], ids=["mtx", "gz"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("layout", ["array", "coordinate"])
def test_matrix_market_files_are_read_as_scipy_reads_them(tmp_path, rng, layout, symmetry, packed):
    a = rng.standard_normal((17, 17)) * 10.0 ** rng.integers(-300, 300, (17, 17))
    a[rng.random((17, 17)) < 0.5] = 0
    a = {"general": a, "symmetric": np.tril(a) + np.tril(a, -1).T, "skew-symmetric": np.tril(a, -1) - np.tril(a, -1).T}[
        symmetry
    ]
    path = tmp_path / "a.mtx"
    mmwrite(path, a if layout == "array" else coo_array(a), symmetry=symmetry, comment="one\ntwo")
    expected = mmread(path, spmatrix=False)
    expected = expected if layout == "array" else expected.toarray()
    if packed:
        path = tmp_path / "a.mtx.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.mtx").read_bytes()))
    found = read_matrix_market(path)
    assert isinstance(found, Entries) == (layout == "coordinate")
    assert np.array_equal(as_dense(found), expected)


@pytest.mark.parametrize(("symmetry", "shape"), [("general", (0, 0)), ("general", (0, 3)), ("skew-symmetric", (1, 1))])
def test_matrix_market_arrays_without_numbers_are_zero(tmp_path, symmetry, shape):
    (tmp_path / "a.mtx").write_text(f"%%MatrixMarket matrix array real {symmetry}\n{shape[0]} {shape[1]}\n")
    assert np.array_equal(read_matrix_market(tmp_path / "a.mtx"), np.zeros(shape))


def test_large_matrix_market_files_are_read_in_chunks(tmp_path, rng):
    matrix = random_array((3000, 3000), density=0.03, rng=rng, format="coo")
    mmwrite(tmp_path / "a.mtx", matrix)
    assert (tmp_path / "a.mtx").stat().st_size > 6 << 20
    assert np.array_equal(as_dense(read_matrix_market(tmp_path / "a.mtx")), matrix.toarray())


HEAD = "%%MatrixMarket matrix coordinate real general\n"
BAD_MARKET = {
    "exponent cut": (HEAD + "1 1 1\n1 1 1e", "1 1 1e"),
    "sign cut": (HEAD + "1 1 1\n1 1 -", "1 1 -"),
    "two numbers in one": (HEAD + "1 1 1\n1 1 1-2\n", "1-2"),
    "a word": (HEAD + "1 1 1\n1 1 x\n", "1 1 x"),
    "underscores": (HEAD + "1 1 1\n1 1 1_0\n", "1_0"),
    "infinite": (HEAD + "1 1 1\n1 1 1e999\n", "1e999"),
    "too many in a line": (HEAD + "2 2 2\n1 1 1 2\n2 2\n", "1 1 1 2"),
    "fraction": (HEAD + "2 2 1\n1.5 1 1\n", "1.5, 1"),
    "row 0": (HEAD + "2 2 1\n0 1 1\n", "0, 1"),
    "lines missing": (HEAD + "2 2 3\n1 1 1\n", "holds 1 lines"),
    "lines beyond": (HEAD + "2 2 1\n1 1 1\n2 2 1\n", "holds more"),
    "rows negative": (HEAD + "-1 2 1\n", "whole numbers"),
    "entries of 5000 digits": (HEAD + f"2 2 {'9' * 5000}\n", "whole numbers"),
    "no size": (HEAD + "% a\n", "before its size"),
    "array of -0 rows": ("%%MatrixMarket matrix array real general\n-0 3\n", "whole numbers"),
    "oblong": ("%%MatrixMarket matrix array real symmetric\n2 3\n", "must be square"),
    "no such field": ("%%MatrixMarket matrix array quaternion general\n1 1\n1\n", "quaternion.; allowed"),
    "half a complex": ("%%MatrixMarket matrix array complex general\n1 1\n1\n", "2 finite numbers"),
    "four billion entries": (HEAD + "4294967295 4294967295 4294967295\n1 1 1\n", "holds 1 lines"),
    "binary": (HEAD + "1 1 1\n\0\1\2\n", "line 3 is"),
    "long line": (HEAD + "1 1 1\n1 1 " + "1" * 5_000_000, "characters"),
}


@pytest.mark.parametrize("name", BAD_MARKET)
def test_damaged_matrix_market_files_are_refused(tmp_path, name):
    text, told = BAD_MARKET[name]
    (tmp_path / "a.mtx").write_text(text)
    with pytest.raises(InputError, match=told) as caught:
        read_matrix_market(tmp_path / "a.mtx")
    assert len(str(caught.value)) < 400 and str(caught.value).isprintable()


PIECES = [*"1 2 12 0 . e E + - 3.5 1e2 -.5E-1 x".split(), " ", "  ", "\t", "\n", "\r\n", "\x0b"]


@pytest.mark.parametrize("layout", ["coordinate real", "coordinate complex", "coordinate pattern", "array real"])
def test_malformed_lines_are_refused_and_others_read_as_a_strict_grammar_says(tmp_path, rng, monkeypatch, layout):
    """Words of a regular expression are the witness; SciPy reads the column and value 1 2.5 as (1, 2) = .5."""
    monkeypatch.setattr(matrix_market, "CHUNK", 16)
    number, index = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", r"\+?\d+"
    values = {"real": 1, "complex": 2, "pattern": 0}[layout.split()[1]]
    indices = 0 if layout.startswith("array") else 2
    line = re.compile(r"[ \t\r]+".join([index] * indices + [number] * values))
    right = 0
    for _ in range(60):
        words = ["1 2 3.5 2e1", "2 1 -4 1.", "12 12 .5e-2 7", "\n"][: rng.integers(1, 5)]
        lines = [" ".join(w.split()[2 - indices : 2 + values]) for w in words]
        body = "\n".join(lines)
        for _ in range(rng.integers(0, 3)):
            at, gone = rng.integers(0, len(body) + 1), rng.integers(0, 2)
            body = body[:at] + str(rng.choice(PIECES)) + body[at + gone :]
        kept = [text.strip(" \t\r") for text in body.split("\n") if text.strip(" \t\r")]
        words = [[float(w) for w in re.split(r"[ \t\r]+", text)] for text in kept if line.fullmatch(text)]
        in_range = all(1 <= k <= 12 for row in words for k in row[:indices])
        is_right = in_range and len(words) == len(kept) and np.isfinite(sum(words, [])).all()
        size = f"{len(kept)} 1" if indices == 0 else f"12 12 {len(kept)}"
        (tmp_path / "a.mtx").write_bytes(f"%%MatrixMarket matrix {layout} general\n{size}\n{body}".encode())
        right += is_right
        if not is_right:
            with pytest.raises(InputError):
                read_matrix_market(tmp_path / "a.mtx")
        else:
            found = read_matrix_market(tmp_path / "a.mtx")
            parts = [row[indices:] or [1.0] for row in words]
            expected = np.array([complex(*part) for part in parts], complex)
            assert np.array_equal(found.ravel() if indices == 0 else found.values, expected), body
            places = [] if indices == 0 else zip(found.rows + 1, found.columns + 1, strict=True)
            assert [*places] == [(*row[:2],) for row in words if indices]
    assert right > 5


def test_compressed_matrix_market_files_may_not_explode(tmp_path):
    path = tmp_path / "a.mtx.gz"
    comment = gzip.compress((HEAD + "%").encode()) + gzip.compress(b"x" * (32 << 20))
    path.write_bytes(comment)
    with pytest.raises(InputError, match="comments"):
        read_matrix_market(path)
    path.write_bytes(gzip.compress((HEAD + "1 1 99999999\n").encode() + b"\n" * (64 << 20)))
    with pytest.raises(InputError, match="bomb"):
        read_matrix_market(path)
    data = bytearray(gzip.compress((HEAD + "1 1 1\n1 1 1\n").encode()))
    for at in (12, len(data) // 2, len(data) - 6):
        path.write_bytes(bytes(data[:at]) + b"\xff" + bytes(data[at + 1 :]))
        with pytest.raises(InputError):
            read_matrix_market(path)
