"""Measurements: what they find against algebra and brute force; they end, and say what they did not reach."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.gpu import DeviceContext
from renderer.lessons.lesson import LESSONS, read_lesson
from renderer.lessons.measurements import Bench, base
from renderer.lessons.measurements.band_lu import MATRICES, BandDigits, BandRate
from renderer.lessons.measurements.base import Finding
from renderer.lessons.measurements.kernels import intensity
from renderer.lessons.measurements.pictures import FrameRate
from renderer.lessons.measurements.sums import DATA, SumError
from renderer.lessons.programs import Program, evaluate
from renderer.numerics.band_lu import BandedLU
from renderer.numerics.band_lu.accuracy.refinement import solve_refined
from renderer.numerics.matmul import variants
from renderer.paths import SCENES
from tests.numerics.band_matrices import dense


def bench_on(device, seconds=0.05) -> Bench:
    gpu = DeviceContext()
    gpu.devices = [device]
    return Bench(gpu, {}, seconds)


def test_the_matrices_are_what_the_lesson_says(rng):
    n, k = 24, 5
    growing = dense(MATRICES["growing"](rng, n, k), k, k)
    wilkinson = np.tril(-np.ones((n, n)), -1) + np.eye(n)
    inside = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= k
    wanted = np.where(inside, wilkinson, 0)
    wanted[n - 1 - k :, -1] = 1
    assert np.array_equal(growing[:, :-1], wanted[:, :-1]) and (growing[n - k :, -1] == 1).all()
    ill = dense(MATRICES["ill"](rng, n, k), k, k)
    assert 1e9 < np.linalg.cond(ill) < 1e14 and np.linalg.cond(dense(MATRICES["dominant"](rng, n, k), k, k)) < 10


def test_digits_are_those_of_exact_arithmetic(device):
    """Digits of the refined solution against Gauss's elimination in fractions."""
    found = BandDigits(("dominant", "ill"), 12, 3).run(bench_on(device))
    rng = np.random.default_rng(1)
    for index, name in enumerate(("dominant", "ill")):
        ab = MATRICES[name](rng, 12, 3)
        b = rng.integers(-9, 10, 12).astype("f8")
        exact = solved_in_fractions(dense(ab, 3, 3), b)
        x = solve_refined(BandedLU(ab, 3, 3), b).x
        error = max(abs(Fraction(float(v)) - e) for v, e in zip(x, exact, strict=True)) / max(map(abs, exact))
        assert float(error) <= 10 ** -found.series["refined"][index] * 1.001
    assert found.series["by the factors"][1] < 9 < found.series["refined"][1]
    assert len(found.notes) == 2 and "growth" in found.notes[0]


def solved_in_fractions(a: np.ndarray, b: np.ndarray) -> list[Fraction]:
    rows = [[Fraction(float(v)) for v in (*row, right)] for row, right in zip(a, b, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [u - factor * v for u, v in zip(rows[i], rows[k], strict=True)]
    x = [Fraction(0)] * n
    for k in reversed(range(n)):
        x[k] = (rows[k][n] - sum(rows[k][j] * x[j] for j in range(k + 1, n))) / rows[k][k]
    return x


def test_a_loop_that_stands_still_loses_all_that_it_should_add(device):
    count = 2048
    found = SumError((count,), "one large").run(bench_on(device))
    unit = (2.0**24 + count - 1) * 2.0**-24
    assert found.series["one after another"][0] == pytest.approx((count - 1) / unit)
    assert found.series["exact, rounded once"][0] <= 1 and found.series["bound of halving"][0] > 10


def test_intensities_are_those_of_the_tiles():
    """Bytes counted by brute force: a tile of M x N reads its rows of A and its columns of B once for each step."""
    for name, wanted in (
        ("coalesced", 2 / 8),
        ("tiles", 2 * 16 * 16 / (4 * 32)),
        ("registers", 2 * 128 * 128 / (4 * 256)),
    ):
        assert intensity(variants()[name]) == wanted


def test_data_are_what_they_are_called(rng):
    cancelling = DATA["cancelling"](rng, 1000)
    assert abs(cancelling.sum()) < 1e-4 * np.abs(cancelling).sum() and DATA["one large"](rng, 5).sum() == 2**24 + 4
    assert DATA["wide"](rng, 1000).max() / DATA["wide"](rng, 1000).min() > 1e4


def test_a_measurement_ends_and_says_what_it_did_not_reach(device):
    bench = bench_on(device, 1e-9)
    found = BandRate((32, 64), 4).run(bench)
    assert found.series["host's cores"][0] is not None or found.missing == 2
    assert found.missing >= 1 and "not reached within 1e-09 s" in found.notes[-1]
    assert Finding((1,), {"a": (None,)}, "x", "y", "").missing == 1


def test_programs_are_evaluated_and_wrong_ones_are_a_sentence(device, tmp_path):
    program = Program(str(SCENES / "product.cb"), {"a": [[1, 2, 3], [4, 5, 6]], "b": [[1, 0], [0, 1], [2, -1]]})
    found = evaluate(program, device)
    assert found.result.split() == ["[[", "7.", "-1.]", "[16.", "-1.]]"] and "matrix mul" in found.source
    (tmp_path / "wrong.cb").write_text("float main(float[] a) { return sum(b); }")
    with pytest.raises(InputError, match=r"wrong\.cb.*CS"):
        evaluate(Program(str(tmp_path / "wrong.cb"), {"a": [1]}), device)
    for given in ({"a": "x"}, {"a": [[1], [2, 3]]}, {"a": [[[[[1]]]]]}, {"a": [1] * 5000}, {"a": True}):
        with pytest.raises(ValueError, match="given: a must be"):
            Program("x.cb", given)


def test_sums_and_pictures_end_in_time_too(device, shared_gl, folder):
    bench = bench_on(device, 1e-9)
    found = SumError((16, 32, 64), "uniform").run(bench)
    assert None not in found.series["halving"][:2] and found.series["halving"][2] is None and found.notes
    lesson = read_lesson(folder)
    bench = bench_on(device, 1e-9)
    bench.gpu.gl = shared_gl
    bench.scenes = lesson.scenes(0)
    found = FrameRate("set", "max_iterations", (10, 20), size=(16, 16)).run(bench)
    assert found.series["set"][0] > 0 and found.series["set"][1] is None
    assert found.notes[0] == "pictures of 16 x 16" and "1 point was not reached" in found.notes[1]


@pytest.mark.slow
def test_noise_falls_as_the_root_of_the_samples(device):
    """Random numbers: four times the samples, half the noise, within what 48 x 48 pixels can say."""
    lesson = read_lesson(LESSONS / "path-tracing")
    bench = bench_on(device, 10.0)
    bench.scenes = lesson.scenes(2)
    found = lesson.steps[2].measure.run(bench)
    noise = found.series["random numbers"]
    assert found.missing == 0
    for more, less in zip(noise[1:], noise[:-1], strict=True):
        assert 0.4 < more / less < 0.65
    assert found.series["Sobol points"][-1] < noise[-1]


def test_the_shortest_run_counts_and_points_share_the_time_that_is_left(monkeypatch):
    """A clock that each run advances: 40 runs at most, 0.6 s of one point, a share of what is left; then no value."""
    clock, runs = [100.0], []
    monkeypatch.setattr(base, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def run(seconds):
        runs.append(seconds)
        clock[0] += seconds + (0.5 * seconds if len(runs) % 3 else 0.0)

    def timed(seconds, points, spent=0.0):
        runs.clear()
        bench = Bench(DeviceContext(), {}, 4.0, spent=spent)
        return bench.time(lambda: run(seconds), lambda: None, points), len(runs), bench.spent

    assert timed(2**-12, 1) == (2**-12, 1 + base.MAX_RUNS, pytest.approx(40 * 1.34 * 2**-12, rel=0.01))
    shortest, count, spent = timed(0.125, 1)
    assert shortest == 0.125 and count == 5 and spent == 0.6875, "until 0.6 s are over"
    assert timed(0.125, 8, spent=2.0)[1:] == (3, 2.3125), "an eighth of 2 s are 0.25 s"
    assert timed(9.0, 1, spent=3.9)[1] == 2, "a run that was begun ends"
    assert timed(0.125, 1, spent=4.0) == (None, 0, 4.0)


def test_pictures_are_no_wider_than_the_bench_allows():
    def size(width, given):
        return Bench(DeviceContext(), {}, 1.0, width).size(given)

    assert size(0, (640, 480)) == size(640, (640, 480)) == (640, 480)
    assert size(320, (640, 481)) == (320, 240) and size(64, (6400, 10)) == (64, 1)


@pytest.mark.parametrize("values, is_log", [((1, 31), False), ((1, 32), True), ((0, 64), False), (("a", "b"), False)])
def test_values_that_span_a_factor_of_32_have_a_logarithmic_axis(monkeypatch, values, is_log):
    monkeypatch.setattr(FrameRate, "runs", lambda _, bench: {})
    monkeypatch.setattr(FrameRate, "size_on", lambda _, bench: (4, 3))
    found = FrameRate("panel", "depth", values).find(SimpleNamespace(rates=lambda runs, work: {}))
    assert found.log_x is is_log and found.notes == ("pictures of 4 x 3",)


def test_notes_count_the_points_without_a_value():
    def notes(values, spent):
        bench = Bench(SimpleNamespace(device=SimpleNamespace(name="card")), {}, 2.0, spent=spent)
        measurement = base.Measurement()
        object.__setattr__(
            measurement, "find", lambda _: Finding((1, 2), {"a": values}, "x", "y", "", notes=("first",))
        )
        found = measurement.run(bench)
        assert found.device == "card" and found.seconds == spent and found.notes[0] == "first"
        return found.notes[1:]

    assert notes((1.0, 2.0), 2.0) == ()
    assert notes((1.0, None), 2.0) == ("1 point was not reached within 2 s",)
    assert notes((None, None), 3.0) == ("2 points were not reached within 2 s",)
    assert notes((1.0, None), 1.9) == ("what has no value does not run here",)
    results = {("a", 1): 2.0, ("a", 2): None, ("b", 2): 3.0}
    assert base.curves(results, (1, 2)) == {"a": (2.0, None), "b": (None, 3.0)}
    for values in ((), (1,), (2, 9), (2,) * 4):
        with pytest.raises(ValueError, match="sizes must be 1 to 3 numbers from 2 to 8"):
            base.check_whole_numbers("sizes", values, 3, 8)
    base.check_whole_numbers("sizes", (2, 8, 5), 3, 8)
