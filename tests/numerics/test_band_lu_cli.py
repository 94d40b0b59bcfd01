"""`rayfold solve`: input and output files, options, and the error sentences for bad files."""

import gzip
import io
import json
import re
import zipfile
from fractions import Fraction

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, csr_array, save_npz

from renderer.cli import main
from renderer.errors import UserError
from renderer.formats.matrices import read_band
from renderer.gpu import list_devices
from renderer.numerics.band_lu import BandedLU, command, memory
from renderer.system import trust
from renderer.system.progress import Progress
from tests.numerics.band_matrices import dense, random_band


def files(tmp_path, ab, kl, ku, b):
    np.savez(tmp_path / "band.npz", ab=ab, kl=kl, ku=ku)
    np.save(tmp_path / "rhs.npy", b)
    return [str(tmp_path / name) for name in ("band.npz", "rhs.npy")] + ["-o", str(tmp_path / "x.npy")]


@pytest.mark.parametrize(
    "options",
    [
        [],
        pytest.param(["--device", "cpu"], marks=pytest.mark.slow),
        ["--device", "cpu", "--device", "cpu", "--block", "16"],
    ],
)
def test_solve_command(tmp_path, capsys, rng, options):
    if options and not any(found.device_type == "cpu" for found in list_devices()[0]):
        pytest.skip("no CPU OpenCL driver here")
    ab, b = random_band(rng, 300, 33, 20), rng.standard_normal((300, 2))
    assert main(["solve", *files(tmp_path, ab, 33, 20, b), "--json", *options]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {"residual", "growth", "rcond", "seconds"} <= summary.keys()
    x = np.load(tmp_path / "x.npy")
    assert np.allclose(dense(ab, 33, 20) @ x, b, atol=1e-8)
    assert summary["residual"] < 1e-15 and summary["growth"] >= 1 and 0 < summary["rcond"] <= 1
    assert {"panel", "laswp", "trsm", "update", "copy", "factor", "solve"} <= summary["seconds"].keys()


def hilbert(n):
    """The band of 1 / (i + j + 1), rounded: of condition 1e16 and more for n = 12 and above."""
    ab = np.zeros((2 * n - 1, n))
    for i, j in np.ndindex(n, n):
        ab[n - 1 + i - j, j] = 1 / (i + j + 1)
    return ab


def test_solve_says_how_many_digits_are_certain(tmp_path, capsys, rng):
    assert main(["solve", *files(tmp_path, hilbert(14), 13, 13, rng.standard_normal(14)), "--json"]) == 3
    out, err = capsys.readouterr()
    summary = json.loads(out.splitlines()[-1])
    assert summary["correct_digits"] == 0 and "no bound of the error can be shown" in err and "--extended" in err
    assert "--certified may prove some, where columns of unlike scales are the reason" in err
    assert (
        summary["forward_bound"] is None and summary["forward_bounds"] == [None] and summary["backward_error"] < 1e-14
    )


def test_a_proof_is_the_only_verdict_on_digits(tmp_path, capsys, rng):
    """Wilkinson's matrix of order 66: factors grow by 2^65, so that there is no estimate beside the proof.

    Hilbert's beside it has a condition of 1e10, for which only the inverse proves an error.
    """
    n = 73
    matrix = np.eye(n) - np.tril(np.ones((n, n)), -1)
    matrix[:66, 65] = 1
    matrix[66:, :66] = 0
    matrix[66:, 66:] = 1 / (np.add.outer(np.arange(7), np.arange(7)) + 1)
    ab = np.zeros((2 * n - 1, n))
    for i, j in np.ndindex(n, n):
        ab[n - 1 + i - j, j] = matrix[i, j]
    words = [*files(tmp_path, ab, n - 1, n - 1, rng.standard_normal(n)), "--certified", str(tmp_path / "r.npy")]
    assert main(["solve", *words]) == 0
    out, err = capsys.readouterr()
    assert "no estimate of the error beside the proof" in out and "digits, proven" in out and "certain" not in err


def test_solve_command_takes_any_layout_of_arrays(tmp_path, rng):
    ab = np.asfortranarray(random_band(rng, 90, 3, 2).astype("f4"))
    b = np.asfortranarray(rng.integers(-5, 5, (90, 4)))
    assert main(["solve", *files(tmp_path, ab, 3, 2, b)]) == 0
    x = np.load(tmp_path / "x.npy")
    assert x.dtype == np.float32 and np.allclose(dense(ab, 3, 2) @ x, b, atol=1e-2 * max(1, np.abs(x).max()))


def test_singular_matrix_exits_with_one_and_keeps_the_old_file(tmp_path, capsys, rng):
    ab = random_band(rng, 50, 2, 2)
    ab[:, 17] = 0
    where = files(tmp_path, ab, 2, 2, np.ones(50))
    (tmp_path / "x.npy").write_bytes(b"old")
    assert main(["solve", *where, "--json", "--force"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[-1])["singular_column"] == 17 and "column 17" in err
    assert (tmp_path / "x.npy").read_bytes() == b"old"


def spoil(name):
    ab, b = np.ones((4, 9)), np.ones(9)
    ab[1] = 5
    table = dict(ab=ab, kl=2, ku=1)
    if name == "nan":
        ab[2, 3] = np.nan
    elif name == "shape":
        table["ab"] = ab[:3]
    elif name == "negative":
        table["kl"] = -1
    elif name == "fraction":
        table["kl"] = 1.5
    elif name == "missing":
        del table["ku"]
    elif name == "complex":
        table["ab"] = ab.astype("G")
    elif name == "text":
        table["ab"] = np.array([["a"] * 9] * 4)
    elif name == "objects":
        table["ab"] = ab.astype(object)
    elif name == "empty":
        table["ab"] = ab[:, :0]
    elif name == "rows":
        b = np.ones(8)
    elif name == "nan side":
        b[4] = np.nan
    return table, b


WORDS = {
    "nan": r"ab\[2, 3\].*nan", "shape": r"\(3, 9\)", "negative": "kl is -1", "fraction": "kl is 1.5",
    "missing": "no 'ku'",
    "complex": "complex256", "text": "real numbers", "objects": "object", "empty": "n at least 1", "rows": r"\(8,\)",
    "nan side": r"element \[4\] is nan",
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_bad_files_are_told(tmp_path, capsys, name):
    table, b = spoil(name)
    np.savez(tmp_path / "band.npz", **table)
    np.save(tmp_path / "rhs.npy", b)
    places = [str(tmp_path / file) for file in ("band.npz", "rhs.npy")]
    assert main(["solve", *places, "-o", str(tmp_path / "x.npy")]) == 5
    err = capsys.readouterr().err
    assert re.search(WORDS[name], err) and err.count("\n") == 1 and str(tmp_path) in err
    assert not (tmp_path / "x.npy").exists()


def test_files_that_are_no_band_files(tmp_path, capsys):
    np.save(tmp_path / "rhs.npy", np.ones(3))
    out = ["-o", str(tmp_path / "x.npy")]
    (tmp_path / "text.npz").write_text("hello")
    good = files(tmp_path, np.ones((1, 3)), 0, 0, np.ones(3))
    cut = (tmp_path / "band.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(cut[: len(cut) // 2])
    for name in ("text.npz", "cut.npz", "absent.npz", "."):
        assert main(["solve", str(tmp_path / name), good[1], *out]) == 5, name
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': open}  ")
    for name in ("bad.npy", "absent.npy"):
        assert main(["solve", good[0], str(tmp_path / name), *out]) == 5, name
    capsys.readouterr()
    for places in (["a.csv", "rhs.npy"], ["band.npz", "b.txt"]):
        assert main(["solve", *(str(tmp_path / name) for name in places), *out]) == 5
        assert ".npy, .mtx and .mtx.gz" in capsys.readouterr().err


def test_wrong_options_are_usage_errors(tmp_path, capsys):
    good = files(tmp_path, np.ones((1, 3)), 0, 0, np.ones(3))
    assert main(["solve", *good, "--block", "17"]) == 2
    assert "multiples of 16" in capsys.readouterr().err
    assert main(["solve", *good[:2], "-o", str(tmp_path / "x.txt")]) == 2
    assert main(["solve", *good[:2], "-o", str(tmp_path / "no" / "x.npy")]) == 2
    with pytest.raises(SystemExit):
        main(["solve", *good, "--certify", "r.npy"])
    assert "is --certified meant? (see rayfold solve --help)" in capsys.readouterr().err
    with pytest.raises(UserError, match="trans"):
        BandedLU(np.ones((1, 3)), 0, 0).solve(np.ones(3), trans="C")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, capsys):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, dict(descr="<f8", fortran_order=False, shape=(3, 1 << 45)))
    with zipfile.ZipFile(tmp_path / "band.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ab.npy", header.getvalue() + bytes(1 << 20))
        for name in ("kl", "ku"):
            one = io.BytesIO()
            np.save(one, 1)
            archive.writestr(f"{name}.npy", one.getvalue())
    np.save(tmp_path / "rhs.npy", np.ones(3))
    assert main(["solve", str(tmp_path / "band.npz"), str(tmp_path / "rhs.npy"), "-o", str(tmp_path / "x.npy")]) == 5
    assert "truncated" in capsys.readouterr().err


def test_drivers_are_not_asked_where_no_gpu_can_be(monkeypatch):
    """OpenCL's list of devices takes 67 MiB and a third of a second."""
    asked = []
    monkeypatch.setattr(command, "list_devices", lambda: asked.append(1) or ([], {}))
    for answer in (False, True):
        monkeypatch.setattr(command, "may_have_gpu", lambda answer=answer: answer)
        assert command.solving_devices(None) == () and len(asked) == answer


def test_too_little_memory_is_reported_before_it_starts(monkeypatch, tmp_path, capsys):
    on_host = ["--device", "cpu"]
    monkeypatch.setattr(memory, "available_memory", lambda: 100_000)
    assert main(["solve", *files(tmp_path, np.ones((41, 1000)), 20, 20, np.ones(1000)), *on_host]) == 4
    assert re.search("the factors take.* MiB of memory", capsys.readouterr().err)
    monkeypatch.setattr(trust, "SMALL_BYTES", 1 << 18)
    monkeypatch.setattr(trust.host, "available_memory", lambda: 100_000)
    assert main(["solve", *files(tmp_path, np.ones((41, 1000)), 20, 20, np.ones(1000)), *on_host]) == 4
    assert re.search("ab: takes about .* MiB of memory", capsys.readouterr().err)


MATRIX = """%%MatrixMarket matrix coordinate real general
% a comment
4 4 7
1 1 2.5
2 1 -1
1 2 4
2 2 0.5
3 3 -3
4 4 1e1
4 3 2
"""


@pytest.mark.parametrize("packed", [False, True], ids=["mtx", "mtx.gz"])
def test_matrices_of_public_collections(tmp_path, capsys, rng, packed):
    name = tmp_path / ("a.mtx.gz" if packed else "a.mtx")
    name.write_bytes(gzip.compress(MATRIX.encode()) if packed else MATRIX.encode())
    ab, kl, ku, *_ = vars(read_band(name)).values()
    assert (kl, ku) == (1, 1)
    assert dense(ab, kl, ku).tolist() == [[2.5, 4, 0, 0], [-1, 0.5, 0, 0], [0, 0, -3, 0], [0, 0, 2, 10]]
    b = rng.standard_normal((4, 2))
    mmwrite(tmp_path / "b.mtx", b)
    assert main(["solve", str(name), str(tmp_path / "b.mtx"), "-o", str(tmp_path / "x.npy"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["kl"] == 1
    assert np.allclose(dense(ab, kl, ku) @ np.load(tmp_path / "x.npy"), b)


def test_market_matrices_of_every_kind(tmp_path, rng):
    a = np.triu(np.tril(rng.standard_normal((30, 30)), 4), -4)
    for matrix, symmetry in ((a, "general"), (a + a.T, "symmetric"), (a - a.T, "skew-symmetric")):
        mmwrite(tmp_path / "a.mtx", coo_array(matrix), symmetry=symmetry)
        ab, kl, ku, *_ = vars(read_band(tmp_path / "a.mtx")).values()
        assert kl == ku == 4 and np.allclose(dense(ab, kl, ku), matrix, rtol=1e-12)
    mmwrite(tmp_path / "a.mtx", a)
    ab, kl, ku, *_ = vars(read_band(tmp_path / "a.mtx")).values()
    assert kl == ku == 4 and np.allclose(dense(ab, kl, ku), a, rtol=1e-12)
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 3\n1 3\n")
    ab, kl, ku, *_ = vars(read_band(tmp_path / "a.mtx")).values()
    assert (kl, ku) == (0, 2) and dense(ab, kl, ku)[0, 2] == 2  # entries of one place add up


BAD_MARKET = {
    "complex": (MATRIX.replace("real", "complex"), 5, "must be 4 finite numbers"),
    "field": (MATRIX.replace("real", "rational"), 5, "names 'rational'; allowed are real, double"),
    "oblong": (MATRIX.replace("4 4 7", "4 5 7"), 5, "must be square"),
    "short": (MATRIX.replace("4 4 7", "4 4 9"), 5, "not a Matrix Market file"),
    "outside": (MATRIX.replace("4 3 2", "\n4 9 2"), 5, "line 11 has an entry at (4, 9) of a matrix of 4 x 4; rows"),
    "word": (MATRIX.replace("1e1", "ten"), 5, "line 9 is '4 4 ten'"),
    "nan": (MATRIX.replace("1e1", "nan"), 5, "finite"),
    "text": ("hello", 5, "a usual one is '%%MatrixMarket matrix coordinate"),
    "nothing": ("", 5, "not a Matrix Market file"),
    "empty": ("%%MatrixMarket matrix coordinate real general\n0 0 0\n", 5, "must be square"),
    "vast": (MATRIX.replace("4 4 7", "4 4 70000000000000"), 5, "holds 7 lines"),
    "wide": (MATRIX.replace("4 4 7", "900000000 900000000 7").replace("4 3 2", "900000000 1 2"), 5, "7 entries"),
    "singular": (MATRIX.replace("4 4 1e1", "4 4 0"), 1, "column 3"),
}


@pytest.mark.parametrize("name", BAD_MARKET)
def test_bad_market_files_are_told(tmp_path, capsys, name):
    text, code, words = BAD_MARKET[name]
    (tmp_path / "a.mtx").write_text(text)
    np.save(tmp_path / "b.npy", np.ones(4))
    places = [str(tmp_path / file) for file in ("a.mtx", "b.npy")]
    assert main(["solve", *places, "-o", str(tmp_path / "x.npy")]) == code
    err = capsys.readouterr().err
    assert words in err and "a.mtx" in err and err.count("\n") == 1
    assert not (tmp_path / "x.npy").exists()


@pytest.mark.parametrize("where", ["both", "matrix", "side"])
def test_complex_files(tmp_path, capsys, rng, where):
    """Every file that may hold complex numbers, both transposes, another order, and proven radii; against NumPy."""
    n, (kl, ku) = 40, (2, 1)
    ab = random_band(rng, n, kl, ku) + 1j * (random_band(rng, n, kl, ku) if where != "side" else 0)
    a = dense(ab.real, kl, ku) + 1j * dense(ab.imag, kl, ku)
    b = rng.standard_normal((n, 2)) + 1j * (rng.standard_normal((n, 2)) if where != "matrix" else 0)
    if where == "side":
        ab, a = ab.real, a.real
    if where == "matrix":
        b = b.real
    order = rng.permutation(n)
    np.savez(tmp_path / "band.npz", ab=ab, kl=kl, ku=ku)
    np.save(tmp_path / "dense.npy", a)
    save_npz(tmp_path / "sparse.npz", csr_array(a[order][:, order]))
    mmwrite(tmp_path / "market.mtx", coo_array(a), precision=17)
    np.save(tmp_path / "b.npy", b)
    np.save(tmp_path / "ordered.npy", b[order])
    mmwrite(tmp_path / "b.mtx", b, precision=17)
    x, radius = tmp_path / "x.npy", tmp_path / "radius.npy"
    for matrix, side in (("band.npz", "b.npy"), ("dense.npy", "b.mtx"), ("market.mtx", "b.npy")):
        for trans in ([], ["--trans"]):
            assert main(["solve", *(str(tmp_path / f) for f in (matrix, side)), "-o", str(x), *trans]) == 0
            wanted = np.linalg.solve(a.T if trans else a, b)
            assert np.abs(np.load(x) - wanted).max() < 1e-9 * np.abs(wanted).max(), (matrix, trans)
    words = ["solve", str(tmp_path / "sparse.npz"), str(tmp_path / "ordered.npy"), "-o", str(x), "--json"]
    capsys.readouterr()
    assert main([*words, "--certified", str(radius)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["complex"] and said["reordered"] and said["n"] == n and said["right_hand_sides"] == 2
    wanted = np.linalg.solve(a, b)[order]
    error = np.abs(np.load(x) - wanted)
    assert (np.load(radius) < 1e-14 * np.abs(wanted).max()).all() and error.max() < 1e-9 * np.abs(wanted).max()
    assert main(["solve", str(tmp_path / "dense.npy"), str(tmp_path / "b.npy"), "-o", str(x), "--least-squares"]) == 5
    assert "real" in capsys.readouterr().err


def test_zeros_do_not_hide_the_digits_of_the_other_components(tmp_path, capsys):
    ab, b = np.full((1, 60), 3.0), np.eye(60)[0]
    words = ["solve", *files(tmp_path, ab, 0, 0, b), "--certified", str(tmp_path / "radius.npy")]
    assert main(words) == 0
    out, radius = capsys.readouterr().out, np.load(tmp_path / "radius.npy")
    assert "every component that is not 0 to 16 digits, 59 of 0 to within" in out
    assert abs(Fraction(float(np.load(tmp_path / "x.npy")[0])) - Fraction(1, 3)) <= Fraction(float(radius[0]))


def test_a_proof_names_the_component_with_the_fewest_digits(tmp_path, capsys, rng):
    """Against the radii; where there is a bound of the largest component alone, a sentence says so."""
    n = 40
    ab = np.stack([np.append(0, rng.random(n - 1)), np.full(n, 3.0), np.append(rng.random(n - 1), 0)])
    b = dense(ab, 1, 1) @ np.ldexp(1.0, -np.arange(n))  # small components lose the digits
    words = ["solve", *files(tmp_path, ab, 1, 1, b)]
    assert main(words) == 0
    assert "of the largest component; of small ones it says nothing: --certified R.npy" in capsys.readouterr().out
    assert main([*words, "--force", "--certified", str(tmp_path / "radius.npy")]) == 0
    out, radius, x = capsys.readouterr().out, np.load(tmp_path / "radius.npy"), np.load(tmp_path / "x.npy")
    assert f"s; x[{np.argmax(radius / np.abs(x))}] has the fewest\n" in out and "of small ones" not in out


def test_an_extended_proof_is_as_close_as_the_guide_says(tmp_path, capsys, rng, monkeypatch):
    """Its condition of 1e12 was proven in float64 too, with radii of 20 units in the last place, by a second pass."""
    n, rows = 130, []
    ab = np.zeros((5, n))
    ab[2], ab[1, 1:] = 1, 0.3 * rng.random(n - 1)
    ab[3, 64] = ab[1, 65] = 1
    ab[2, 65] += 1e-12
    monkeypatch.setattr(Progress, "advance", lambda self, steps=1: rows.append(steps))
    b = np.ldexp(rng.standard_normal(n), rng.integers(-30, 30, n))
    words = ["solve", *files(tmp_path, ab, 2, 2, b), "--extended", "--certified", str(tmp_path / "radius.npy")]
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    radius, x = np.load(tmp_path / "radius.npy"), np.load(tmp_path / "x.npy")
    assert (radius <= 1.01 * 2.0**-53 * np.abs(x)).all() and report["certified"]["proof"] == "extended inverse"
    assert sum(rows) == n + 1  # a step of the refinement


def test_a_zero_with_a_radius_has_no_certain_digit_and_the_files_differ(tmp_path, capsys, rng):
    ab, kl, ku = random_band(rng, 12, 2, 1), 2, 1
    ab[1] += 6
    b = dense(ab, kl, ku) @ np.arange(12.0)
    words = ["solve", *files(tmp_path, ab, kl, ku, b), "--certified"]
    assert main([*words, str(tmp_path / "radius.npy"), "--json"]) in (0, 3)
    capsys.readouterr()
    assert main([*words, str(tmp_path / "x.npy")]) == 2
    assert "the same file as -o" in capsys.readouterr().err
