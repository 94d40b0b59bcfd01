"""The error of a solution is never above its bound: a few systems of each family of bound_sweep.py, and known traps."""

import json
from fractions import Fraction

import numpy as np
import pytest

import renderer
from renderer.cli import main
from renderer.errors import InputError
from renderer.formats.matrices import Band, read_band
from renderer.numerics.band_lu.block_columns import SolutionOverflows
from renderer.numerics.band_lu.systems.system import System
from renderer.numerics.sums import axis_sum, dot, norm
from tests.numerics.bound_sweep import FAMILIES, MODES, band_of, exact_solution, poisson, sweep, wilkinson


def test_no_error_is_above_its_bound():
    few = [family for family in FAMILIES if family not in (wilkinson, poisson)]  # these take longest in fractions
    _rows, failures = sweep(3 * len(few), 20261124, ("proven", "estimated", "certified", "certified extended"), few)
    assert not failures, failures[0]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_no_error_of_many_systems_is_above_its_bound(mode):
    _rows, failures = sweep(40 * len(FAMILIES), 7, (mode,))
    assert not failures, failures[0]


@pytest.mark.parametrize("n", [55, 60, 66])
def test_growth_that_corrections_do_not_cure_costs_digits_and_no_crash(n):
    """Wilkinson's matrix: pivots grow to 2^(n - 1), so that a correction does not shrink."""
    a = wilkinson(np.random.default_rng(0), n)
    system = System(Band(*band_of(a), (n - 1, n - 1)))
    for b in (np.zeros(n), a @ np.ones(n)):
        x, refined = system.solve(b)
        exact = np.array([1.0 if b.any() else 0.0] * n)
        assert np.abs(x - exact).max() <= refined.forward_bound
        assert b.any() or refined.forward_bound == 0
    x, refined = system.solve(a @ np.ones(n), extended=False)
    y, better = System(Band(*band_of(a), (n - 1, n - 1)), in_double=True).solve(a @ np.ones(n), extended=True)
    assert np.abs(y - 1).max() <= better.forward_bound < 1e-15


def saved(tmp_path, ab, kl, ku, b, suffix="npz"):
    np.savez(tmp_path / "a.npz", ab=ab, kl=kl, ku=ku)
    np.save(tmp_path / "b.npy", b)
    return ["solve", str(tmp_path / "a.npz"), str(tmp_path / "b.npy"), "-o", str(tmp_path / "x.npy")]


@pytest.mark.parametrize("extra", [[], ["--extended"], ["--certified", "r.npy"], ["--refine", "none"]])
def test_a_solution_beyond_the_largest_number_is_refused(tmp_path, capsys, extra):
    ab = np.array([[0, 1.0], [1e-200, 1.0], [2e-200, 0]])
    extra = [str(tmp_path / word) if word.endswith("npy") else word for word in extra]
    assert main([*saved(tmp_path, ab, 1, 1, np.array([1e150, 0.0])), *extra]) == 1
    err = capsys.readouterr().err
    assert "the solution is too large for float64" in err and err.count("\n") == 1
    assert not (tmp_path / "x.npy").exists()


def test_every_right_hand_side_has_its_bound(tmp_path, capsys):
    """Sides whose sizes differ by 10^300, one of them zero; a matrix that loses six digits."""
    a = np.diag([1.0, 1e-3, 1.0]) + np.diag([1.0, 1.0], 1)
    b = np.array([[1e-290, 0, 3e150], [1e-300, 0, 1], [2e-290, 0, -1e150]])
    assert main([*saved(tmp_path, *band_of(a), b), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    x, exact = np.load(tmp_path / "x.npy"), exact_solution(a, b)
    assert len(told["forward_bounds"]) == 3 and told["forward_bounds"][1] == 0 and not x[:, 1].any()
    assert told["forward_bound"] == max(told["forward_bounds"]) < 1e-14
    for k in (0, 2):
        error = max(abs(Fraction(x[i, k]) - exact[i][k]) for i in range(3))
        assert error <= Fraction(told["forward_bounds"][k]) * max(abs(Fraction(v)) for v in x[:, k])


def test_refine_none_solves_once_and_claims_nothing(tmp_path, capsys, rng):
    a = np.triu(np.tril(rng.standard_normal((30, 30)), 2), -1) + 6 * np.eye(30)
    command = saved(tmp_path, *band_of(a), rng.standard_normal(30))
    assert main([*command, "--refine", "none", "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert np.allclose(a @ np.load(tmp_path / "x.npy"), np.load(tmp_path / "b.npy"), atol=1e-12)
    assert told["refine"] == "none" and told["forward_bound"] is None and told["correct_digits"] is None
    assert main([*command, "--refine", "none", "--extended"]) == 2
    assert "--refine none goes with neither" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["side", "matrix", "market", "market side"])
@pytest.mark.parametrize("integer", [2**53 + 1, -(2**60) - 1, 2**62])
def test_integers_that_float64_does_not_hold_are_refused(tmp_path, capsys, where, integer):
    ab, b = np.array([[3, 7]]), np.array([5, 8])
    if where in ("side", "matrix"):
        (b if where == "side" else ab[0])[0] = integer
    command = saved(tmp_path, ab, 0, 0, b)
    head = "%%MatrixMarket matrix"
    if where == "market":
        (tmp_path / "a.mtx").write_text(f"{head} coordinate integer general\n2 2 2\n1 1 {integer}\n2 2 7\n")
        command[1] = str(tmp_path / "a.mtx")
    elif where == "market side":
        (tmp_path / "b.mtx").write_text(f"{head} array integer general\n2 1\n{integer}\n8\n")
        command[2] = str(tmp_path / "b.mtx")
    code = main([*command, "--certified", str(tmp_path / "r.npy")])
    if integer == 2**62:  # a power of two
        x, radius = (np.load(tmp_path / name).ravel() for name in ("x.npy", "r.npy"))
        top, bottom = (integer, 3) if "side" in where else (5, integer)
        assert code == 0 and abs(Fraction(x[0]) - Fraction(top, bottom)) <= Fraction(radius[0])
    else:
        err = capsys.readouterr().err
        assert code == 5 and str(integer) in err and "2^53" in err and err.count("\n") == 1


def test_rounded_sums_of_duplicates_are_not_certified(tmp_path, capsys):
    (tmp_path / "a.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 1.0\n2 2 0.5\n1 1 1e-17\n2 2 0.25\n"
    )
    np.save(tmp_path / "b.npy", np.ones(2))
    command = ["solve", str(tmp_path / "a.mtx"), str(tmp_path / "b.npy"), "-o", str(tmp_path / "x.npy")]
    assert main(command) == 0 and read_band(tmp_path / "a.mtx").ab.tolist() == [[1.0, 0.75]]
    assert main([*command, "--certified", str(tmp_path / "r.npy")]) == 5
    assert "add up to numbers that float64 does not hold" in capsys.readouterr().err


def test_a_float32_matrix_with_other_right_hand_sides_is_solved_in_float64(tmp_path, capsys):
    assert main([*saved(tmp_path, np.full((1, 2), 3, "f4"), 0, 0, np.array([0.1, 1])), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    x = np.load(tmp_path / "x.npy")
    assert told["dtype"] == "float64" and abs(Fraction(x[0]) - Fraction(0.1) / 3) < Fraction(1, 10**17)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_products_with_infinities_are_those_of_ieee(device, dtype):
    """All pairs of special numbers and their sums, against NumPy; in float64 in both orders."""
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -2.0], dtype)
    with np.errstate(invalid="ignore"):
        for number, p in enumerate(special):
            for q in special[0 if dtype == "f8" else number :]:
                for x, y in (([p], [q]), ([p, 1], [q, 1]), ([p, np.inf], [q, -1])):
                    x, y = np.array(x, dtype), np.array(y, dtype)
                    wanted = float((x.astype("f8") * y.astype("f8")).sum())
                    assert dot([device], x, y) == pytest.approx(wanted, nan_ok=True), (x, y)
        assert norm([device], np.array([-np.inf], dtype)) == np.inf


def test_masked_arrays_are_refused(device):
    masked = np.ma.masked_array([1.0, 2, 3], [False, True, False])
    calls = [
        lambda: dot([device], masked, masked), lambda: axis_sum(masked), lambda: norm([device], masked),
        lambda: System(Band(masked[None], 0, 0, (0, 0))), lambda: renderer.solve(masked[None], np.ones(3), 0, 0),
        lambda: renderer.solve(np.eye(3), masked), lambda: renderer.sum(masked),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(InputError, match="is a masked array"):
            call()


def test_overflow_of_a_right_hand_side_is_no_reason_to_refuse():
    """R b would overflow, x does not."""
    ab = np.array([[0, 1e-150], [1e-160, 1e-150]])
    x, refined = System(Band(ab, 0, 1, (0, 1))).solve(np.array([1e140, 1e140]))
    assert refined.forward_bound < 1e-15 and x[1] == pytest.approx(1e290)
    with pytest.raises(SolutionOverflows):
        System(Band(ab, 0, 1, (0, 1))).solve(np.array([1e160, 0.0]))
