"""Sums of complex numbers: both parts exact, against fractions; files in every layout, pipes, the refusals."""

import io
import json
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from renderer import cli
from renderer.errors import InputError
from renderer.formats.npy import as_reals, as_source
from renderer.numerics.sums import array_sum, dot, mean, norm, variance
from renderer.numerics.sums.exact_sum import ComplexSum, ExactSum, rounded_fraction, rounded_root


def given(rng, n=1000, dtype="c16"):
    size = 10.0 ** rng.integers(-20, 20, (2, n)) if dtype == "c16" else 1
    parts = rng.standard_normal((2, n)) * size
    return (parts[0] + 1j * parts[1]).astype(dtype)


def exact(z):
    return (sum((Fraction(float(v)) for v in part), start=Fraction(0)) for part in (z.real.ravel(), z.imag.ravel()))


@pytest.mark.parametrize("dtype", ["c16", "c8"])
def test_both_parts_are_exact(device, rng, dtype):
    z = given(rng, dtype=dtype)
    real, imaginary = exact(z)
    squares = sum(Fraction(float(v)) ** 2 for v in z.view(f"f{z.itemsize // 2}"))
    for chunk in (None, 77):
        total = array_sum([device], z, chunk=chunk)
        assert isinstance(total, ComplexSum) and total.count == 1000
        assert (total.real.fraction(), total.imaginary.fraction()) == (real, imaginary)
    assert total.rounded(dtype) == complex(*(rounded_fraction(v, f"f{z.itemsize // 2}") for v in (real, imaginary)))
    assert mean([device], z) == complex(rounded_fraction(real / 1000), rounded_fraction(imaginary / 1000))
    assert norm([device], z) == rounded_root(squares)
    deviations = squares - (real**2 + imaginary**2) / 1000
    assert variance([device], z, 1) == rounded_fraction(deviations / 999)
    with pytest.raises(InputError, match="complex"):
        dot([device], z, z)


def test_complex_parts_in_other_layouts():
    z = np.array([[1 + 2j, 3 - 4j]])
    for array in (z, z.astype(">c16"), z.T):
        reals, out = as_reals(as_source(array, "", "c")), np.empty(4)
        reals.read_into(out.view("u1"), 0)
        assert out.tolist() == [1, 2, 3, -4] and reals.count == 4
    assert as_reals(as_source(np.array(5 - 1j), "", "c")).count == 2


def told(capsys, *arguments):
    assert cli.main(["sum", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_command_takes_complex_files(tmp_path, capsys, rng, monkeypatch):
    z = given(rng, 40).reshape(8, 5)
    np.save(tmp_path / "z.npy", np.asfortranarray(z.astype(">c16")))
    np.savez(tmp_path / "z.npz", a=z[:3], b=z[3:])
    np.savez_compressed(tmp_path / "packed.npz", a=z)
    real, imaginary = exact(z)
    wanted = {"real": float(real), "imaginary": float(imaginary)}
    for name in ("z.npy", "z.npz", "packed.npz"):
        assert told(capsys, tmp_path / name)["value"] == wanted
    norms = {told(capsys, tmp_path / name, "--statistic", "norm")["value"] for name in ("z.npy", "z.npz", "packed.npz")}
    assert norms == {norm_of(z)}
    stdin = SimpleNamespace(buffer=io.BytesIO((tmp_path / "z.npy").read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    mean_value = told(capsys, "-", "--statistic", "mean")["value"]
    assert mean_value == {"real": rounded_fraction(real / 40), "imaginary": rounded_fraction(imaginary / 40)}
    z[0, 0] = complex(np.inf, np.nan)
    np.save(tmp_path / "z.npy", z)
    assert told(capsys, tmp_path / "z.npy")["value"] == {"real": "inf", "imaginary": "nan"}
    np.save(tmp_path / "e.npy", np.zeros(0, "c8"))
    assert told(capsys, tmp_path / "e.npy")["value"] == {"real": 0.0, "imaginary": 0.0}
    for arguments, code, words in (
        (["--statistic", "max"], 2, "the numbers are complex; allowed are sum, mean, variance, norm"),
        (["--by", tmp_path / "e.npy"], 5, "e.npy: holds complex64; keys must be integers"),
        (["--compare"], 5, "complex128"),
    ):
        assert cli.main(["sum", str(tmp_path / "z.npy"), *map(str, arguments)]) == code
        assert words in capsys.readouterr().err


def norm_of(z):
    return rounded_root(sum(Fraction(float(v)) ** 2 for v in np.ascontiguousarray(z).view("f8").ravel()))


def test_complex_totals_add_up():
    one = ComplexSum(ExactSum(3, 0, 8, 1), ExactSum(-1, 0, 8, 1))
    assert (one + one).rounded() == 6 - 2j and (one + one).count == 2
