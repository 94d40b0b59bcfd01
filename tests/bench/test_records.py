"""Cases, timing and record files: what is measured, what a record holds, what the report shows."""

import html
import json
import math
import runpy
import time
import tomllib

import numpy as np
import pytest

from renderer.bench import measure as measurement
from renderer.bench import report
from renderer.bench.cases import check_unique_names, find, sources
from renderer.bench.experiment import read_experiment
from renderer.bench.machine import commit_info, diff_digest, git, machine_fault, read_gpus
from renderer.bench.measure import (
    TimingOptions,
    WrongResult,
    count_operations,
    measure,
    one_percent_low,
    warm_up,
)
from renderer.bench.report_figures import subsystem_figures, subsystem_name
from renderer.bench.report_page import headlines
from renderer.errors import InputError, UserError
from renderer.gpu import DeviceContext
from renderer.paths import ROOT
from tests.bench.helpers import BUSY, METRONOME, SOME, Stopwatch, bench, case_of, repository, spin


def test_a_record_holds_rate_counters_raw_times_and_facts():
    answer = measure(case_of(facts={"size": [3, 4]}), SOME)
    assert len(answer["wall_ns"]) == answer["runs"] >= 10 and min(answer["wall_ns"]) >= 1_990_000
    assert answer["rate"] == pytest.approx(1e9 / np.median(answer["wall_ns"])) and answer["clock"] == "wall"
    assert answer["counters"]["launches"] == 3 and answer["size"] == [3, 4] and answer["driver"] == "1"
    assert answer["device_ns"] is None and json.dumps(answer)


def test_the_device_clock_is_used_only_where_it_covers_all_work():
    """A run that another device works in too is timed by the wall."""
    case, other = case_of(), Stopwatch()
    case.device.has_reliable_timer, case.device.time_seconds = True, lambda work: (work(), 0.005)[1]
    assert measure(case, SOME)["clock"] == "device" and measure(case, SOME)["median_ms"] == 5
    plain = case.run
    case.run, case.others = (
        lambda: (plain(), setattr(other.counters, "uploads", other.counters.uploads + 1)),
        lambda: [other],
    )
    answer = measure(case, SOME)
    assert answer["clock"] == "wall" and answer["counters"]["uploads"] == 1


def test_injected_slowdown_and_corruption_are_measured():
    metronome_case = runpy.run_path(str(ROOT / "tests/fps/metronome.py"))["metronome_case"]

    answer, slow = measure(metronome_case(), SOME), measure(metronome_case(), SOME, slowdown=0.5, corrupt_result=True)
    assert slow["median_ms"] / answer["median_ms"] == pytest.approx(1.5, rel=0.05)
    assert slow["digest"] != answer["digest"]


def test_setup_is_not_timed():
    answer = measure(case_of(0.001, setup=lambda: time.sleep(0.01)), SOME)
    assert np.median(answer["wall_ns"]) < 9e6


class Clock:
    """A stand-in for the module time: it stands still but for sleep() and a microsecond a question."""

    def __init__(self):
        self.now = 0.0

    def sleep(self, seconds):
        self.now += seconds

    def perf_counter(self):
        self.now += 1e-6
        return self.now

    def perf_counter_ns(self):
        return round(self.perf_counter() * 1e9)

    thread_time = perf_counter


def test_warm_up_runs_are_not_timed(monkeypatch):
    """Runs that are slow until caches are warm enter no figure, and no estimate of the seconds of a run."""
    clock, runs, estimates = Clock(), [], []
    monkeypatch.setattr(measurement, "time", clock)

    def run():
        runs.append(1)
        clock.sleep(0.02 if len(runs) <= 4 else 0.001)

    def batches(seconds_of_a_run):
        estimates.append(seconds_of_a_run)
        yield from (0.02, 0.02)

    case = case_of()
    case.run = run
    answer = measure(case, TimingOptions(seconds=0.02, min_runs=3, warmup_seconds=0.12), batches=batches)
    assert 1e6 <= min(answer["wall_ns"]) <= max(answer["wall_ns"]) < 1.1e6 and 0.001 <= estimates[0] < 0.0011
    assert len(answer["turns"]) == 2 and sum(answer["turns"]) == answer["runs"]
    untimed = len(runs) - answer["runs"]
    assert untimed > 4 + 1 + 2  # the slow ones, the counted one, and one at least before each batch


def test_warm_up_lasts_as_long_as_it_is_told():
    case, runs = case_of(), []
    case.run = lambda: (runs.append(time.perf_counter()), time.sleep(0.002))
    assert math.isnan(warm_up(case, 0.0)) and not runs
    began = time.perf_counter()
    elapsed = warm_up(case, 0.05)
    assert time.perf_counter() - began >= 0.05 and 0.002 <= elapsed < 0.05 and 2 <= len(runs) <= 25
    assert runs[-1] - began < 0.05  # no run begins after the time is over


def test_overhead_is_under_one_percent_of_a_five_millisecond_frame():
    """What a run of the harness takes beside the work itself: 50 us at most; the quickest of several decides."""
    inner = []

    def run():
        began = time.perf_counter_ns()
        spin(0.0005)
        inner.append(time.perf_counter_ns() - began)

    case = case_of()
    case.run = run
    answer = measure(case, SOME)
    beside = np.array(answer["wall_ns"]) - inner[-answer["runs"] :]
    assert np.median(beside) < 0.01 * 5e6


def test_the_check_precedes_timing():
    ran = []

    def wrong():
        raise AssertionError("17 is not 18")

    case = case_of(check=wrong)
    case.run = lambda: ran.append(1)
    with pytest.raises(WrongResult, match="x: the result is wrong: 17 is not 18"):
        measure(case)
    assert not ran


def test_one_percent_low_counts_time_not_frames():
    times = np.full(1000, 1e6)
    times[:5] = 4e6  # 20 ms of slow frames in about a second: all of the slowest 1 % of the time
    assert one_percent_low(times, 1.0) == pytest.approx(250, rel=0.05)
    assert one_percent_low(times[:600], 1.0) is None


def test_throttling_is_a_machine_fault():
    gpus = read_gpus("1980, 45, 0x0000000000000001\n1200, 88, 0x0000000000000040\n[N/A], [N/A], [Not Supported]\n")
    assert (
        [gpu["throttled"] for gpu in gpus] == [0, 0x40, 0]
        and gpus[0]["clock_mhz"] == 1980
        and gpus[2]["celsius"] is None
    )
    assert "GPU 1 was throttled" in machine_fault({}, {"gpus": gpus}) and machine_fault({}, {"gpus": gpus[:1]}) == ""
    assert "CPU was throttled" in machine_fault({"cpu_throttles": 3}, {"cpu_throttles": 4})


def test_uncommitted_changes_are_recorded(tmp_path):
    tree = repository(tmp_path, a="1")
    assert (
        commit_info(tree) == {"commit": git("rev-parse", "HEAD", tree=tree), "dirty": False} and diff_digest(tree) == ""
    )
    (tree / "a").write_text("2")
    edited = commit_info(tree)
    assert edited["dirty"] and edited["diff_digest"]
    (tree / "new").write_text("3")
    assert commit_info(tree)["dirty"] and commit_info(tree)["diff_digest"] != edited["diff_digest"]
    (tree / "inside").mkdir()
    assert commit_info(tree / "inside")["commit"] == "unknown"  # a copy in another repository's folder


def test_two_cases_of_one_name_are_an_error():
    with pytest.raises(InputError, match="two cases are named x"):
        check_unique_names([case_of(), case_of()])


def test_an_unknown_case_is_an_error():
    with pytest.raises(UserError, match="no case warp; there are"):
        find(["warp"], DeviceContext())
    with pytest.raises(UserError, match="no case mirrors/depth=99"):
        list(find(["mirrors/depth=99"], DeviceContext()))


def test_every_scene_with_a_bench_table_is_a_source(tmp_path):
    (tmp_path / "tests/fps").mkdir(parents=True)
    (tmp_path / "tests/fps/sets.py").write_text("rays = 3\n")
    assert sources(tmp_path) == {}
    for path in ROOT.glob("scenes/*.toml"):
        kernels = (ROOT / f"tests/fps/{path.stem}.py").exists()
        assert (path.stem in sources()) == ("bench" in tomllib.loads(path.read_text()) or kernels), path


@pytest.mark.parametrize("table, message", [
    ("turns = 3", "unknown key 'turns'; allowed are size, frames, set, sweep"),
    ("frames = 0", "frames is 0"), ("size = [10]", "size is [10]"), ("sweep = { depth = 3 }", "sweep.depth is 3"),
    ("set = 3", "set is 3"), ("set = { max_iterations = -1 }", "max_iterations is -1"),
    ("sweep = { warp = [1] }", "warp"), ("sweep = { seed = [] }", "sweep must have 1 to 1000 combinations"),
])  # fmt: skip
def test_mistakes_in_a_bench_table(tmp_path, table, message):
    scene = (ROOT / "scenes/mandelbrot.toml").read_text().split("[bench]")[0]
    (tmp_path / "scenes").mkdir()
    (tmp_path / "scenes/m.toml").write_text(f"{scene}\n[bench]\n{table}\n")
    with pytest.raises(InputError) as caught:
        list(find([], DeviceContext(), tmp_path))
    assert message in str(caught.value) and "m.toml" in str(caught.value)


# One scene of a kind of picture, whose kernels other quick tests compile anyway; those of others take seconds.
QUICK = ("band_factors", "ink", "julia", "laplacian", "lightfield", "mirrors", "reduction", "tetrahedron")


def scenes_to_count():
    """Every scene that is a case; all but QUICK are slow tests."""
    for path in [ROOT / f"scenes/{name}.toml" for name in sources()]:
        if path.exists() and not (ROOT / f"tests/fps/{path.stem}.py").exists():
            yield pytest.param(path.stem, marks=[] if path.stem in QUICK else [pytest.mark.slow])


@pytest.mark.parametrize("name", list(scenes_to_count()))
@pytest.mark.usefixtures("shared_gl")
def test_a_steady_frame_of_a_scene_allocates_nothing_and_its_counters_are_exact(name, gpu):
    """Two frames ask for the same; copies are what crosses from one device to another, or a solver's few bytes.

    The rays that a sample scatters depend on its number, which is the same in both arms of an experiment.
    """
    case = next(find([name], gpu, size=(48, 36)))
    case.check()
    first, second = count_operations(case)[0], count_operations(case)[0]
    assert first == second | {"rays": first.get("rays")} if "rays" in first else first == second
    assert first["launches"] > 0 and first.get("rays", 1) > 0
    assert first["allocations"] == 0 and first["uploads"] <= 2 and first["downloads"] <= 2


@pytest.mark.usefixtures("shared_gl")
def test_run_writes_records_that_history_and_report_read(tmp_path):
    records, page = tmp_path / "r.jsonl", tmp_path / "r.html"
    facts = json.loads(bench("run", "julia", "--size", "40x30", "--seconds", "0.05", "-o", records, "--json").stdout)
    assert facts["records"][0]["case"] == "julia" and facts["schema"] == "bench/1"
    header, row, end = map(json.loads, records.read_text().splitlines())
    assert "load" in end["machine"]["after"]
    assert header["commit"] and "dirty" in header and len(row["wall_ns"]) == row["runs"] >= 10
    assert row["size"] == [40, 30] and row["driver"] and header["host"]["cores"] >= 1
    assert "julia" in bench("history", records).stdout
    bench("report", records, tmp_path, BUSY, "-o", page)
    text = page.read_text()
    assert text.count("<svg") == 2 and ">julia<" in text and "<img" not in text and "://" not in text


def record_of(case, rate, **more):
    row = {"case": case, "rate": rate, "median_ms": 1.0, "work": 1.0, "unit": "frames/s", "device": "d", "commit": "c"}
    return row | {"wall_ns": [10**6] * 12, "clock": "wall"} | more


def by_question(records):
    names = dict.fromkeys(row["case"].split("/")[0] for row in records)
    figures = [
        each for name in names for each in subsystem_figures(name, [r for r in records if subsystem_name(r) == name])
    ]
    return {figure.question: figure for figure in figures}


def test_curves_have_the_recorded_rates_each_device_its_axes_and_each_peer_its_name():
    records = [record_of(f"mirrors/a/depth={n}", 100.0 / n) for n in (1, 2, 3)]
    records += [record_of(f"mirrors/a/depth={n}", 5.0 * n, device="e") for n in (1, 2, 3)]
    records += [record_of(f"solve/a/devices={n}", 1.8 * n, unit="GFLOP/s") for n in (1, 2, 4)]
    for n, peer, ratio in ((16, "numpy", 0.5), (256, "numpy", 1.0), (4096, "cupy", 6.0)):
        records.append(record_of(f"sums/a/size={n}", 3.0, peer={"name": peer, "ratio": ratio}))
    found = by_question(records)
    first, second = found["How does mirrors depend on depth?"].plots
    assert first.series["a"] == pytest.approx((100, 50, 100 / 3)) and second.series["a"] == (5, 10, 15)
    assert (first.title, second.title) == ("d, c", "e, c")
    scaling = found["How does solve depend on devices?"].plots[0]
    assert scaling.series["a"] == pytest.approx((1, 2, 4)) == scaling.series["ideal"]
    sums = found["How does sums depend on size?"].plots[0]
    assert sums.series["numpy"] == pytest.approx((6, 3, None)) and sums.series["cupy"] == pytest.approx(
        (None, None, 0.5)
    )
    assert sums.log_x and len(found["How does sums depend on size?"].rows) == 3


def test_precisions_and_devices_of_one_name_have_plots_of_their_own():
    """Bars of float64 beside those of float32 look slow; two GPUs of one model have one title."""
    names = [f"sums/{mode}/{dtype}" for mode in ("fast", "exact") for dtype in ("float32", "float64")]
    records = [record_of(name, 1.0, device=f"G (cuda:{k})") for name in names for k in (0, 1)]
    plots = by_question(records)["Which of sums is the fastest?"].plots
    assert [plot.title for plot in plots] == ["G, float32, c"] * 2 + ["G, float64, c"] * 2
    assert sorted(plots[0].x) == ["exact/float32", "fast/float32"] and plots[0].x == plots[1].x


def test_bars_cross_names_with_numbers_and_name_the_vendor_by_the_device():
    thesis = [
        record_of(f"products/thesis/tile={t}/{n}", t + i, unit="GFLOP/s") for t in (4, 8) for i, n in enumerate("ab")
    ]
    vendor = {"name": "vendor's product", "ratio": 0.5}
    plain = [record_of(f"lu/step_{n}", float(n), device="NVIDIA H200 (cuda:0)", peer=vendor) for n in (1, 2)]
    again = [row | {"commit": "later", "rate": 3 * row["rate"]} for row in plain]
    found = by_question([*thesis, *plain, *again])
    (crossed,) = found["Which of products is the fastest?"].plots
    assert crossed.x == ("thesis/a", "thesis/b") and crossed.series == {"tile=4": (4, 5), "tile=8": (8, 9)}
    (bars,) = found["Which of lu is the fastest?"].plots
    assert bars.series == {"Rayfold": (3, 6), "cuBLAS, product": (6, 12)} and bars.title.startswith("NVIDIA H200")
    (changed,) = found["How has lu changed?"].plots
    assert changed.series == {"c": (1, 1), "later": (3, 3)}
    mixed = [record_of(f"sum/{n}", rate, unit=unit) for n, rate, unit in (("a", 5.0, "GB/s"), ("b", 7.0, "GB/s"))]
    mixed.append(record_of("lu/c", 900.0, unit="GFLOP/s"))
    assert "up to 7.000 GB/s (b)" in headlines(mixed)[0], "the highest rate in the unit of most cases"
    assert "2 times the rate" not in (words := headlines(again)[0]) and "0.5 times the rate of cuBLAS" in words


def test_depths_show_what_each_adds_and_the_papers_stand_beside():
    deep = [
        record_of(f"mirrors/max_depth={d}", 100.0, median_ms=2.0 + d, **{"active rays": [64, 8, 1][:d]})
        for d in (1, 2, 3)
    ]
    other = deep[0] | {"case": "other/depth=1", "active rays": [1, 2]}  # of another depth: it says nothing
    found = by_question([*deep, other])
    assert found["What does each depth of mirrors cost?"].plots[0].series["time"] == (3.0, 1.0, 1.0)
    assert found["What does each depth of mirrors cost?"].plots[1].series["active rays"] == pytest.approx(
        (100, 12.5, 1.5625)
    )
    by_depth = found["How does mirrors depend on max_depth?"]
    assert by_depth.plots[-1].series["bits"] == (30.0, 25.0, 23.7, 20.0, 19.4, 18.8)


@pytest.mark.slow
def test_the_report_of_all_recorded_rates_is_one_small_page_without_warnings(tmp_path):
    """Under 1 MB, no warning of the plotting library, no address outside; every record is behind a figure."""
    page = tmp_path / "r.html"
    answer = bench("report", ROOT / "tests/fps/results", "-o", page)
    text = page.read_text()
    assert len(text) < 1_000_000 and "arning" not in answer.stderr and "://" not in text
    assert text.count("<svg") >= 25 and "dgbtrf" in text and "cuBLAS" in text and "The thesis, Tesla C2075" in text
    records, _ = report.read_files([ROOT / "tests/fps/results"])
    for case in {row["case"] for row in records}:
        assert f"<td>{html.escape(case)}</td>" in text, case


@pytest.mark.slow
def test_files_that_hold_no_records(tmp_path):
    (tmp_path / "empty.jsonl").write_text("{}\nnonsense\n")
    assert "no records" in bench("history", tmp_path / "empty.jsonl", code=5).stderr
    assert "No such file" in bench("history", tmp_path / "none.jsonl", code=5).stderr
    assert "schema" in bench("reanalyze", tmp_path / "empty.jsonl", code=5).stderr
    (tmp_path / "new").mkdir()
    assert "without .jsonl" in bench("report", tmp_path / "new", "-o", tmp_path / "x.html", code=5).stderr


def test_malformed_lines_are_skipped(tmp_path, capsys):
    good = record_of("good", 2.0)
    bad = [good | {"rate": None}, good | {"case": 3}, good | {"wall_ns": "many"}, good | {"wall_ns": [0]}]
    bad += [good | {"peer": 3}, good | {"rate": float("nan")}, [good], "good", "[" * 100_000]
    path = tmp_path / "r.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in [*bad, good]]
    path.write_text("\n".join(lines))
    assert [row["case"] for row in report.read_files([path])[0]] == ["good"]
    process = {"case": "a", "arm": "base", "stage": "screen", "pair": 0, "attempt": 0, "clock": "wall", "wall_ns": [5]}
    torn = [process | {"pair": "x"}, process | {"wall_ns": []}, process | {"clock": "sun"}, process | {"arm": "left"}]
    header = json.dumps({"schema": "bench/1", "refs": {}})
    path.write_text("\n".join([header, *map(json.dumps, [process, *torn])]))
    assert len(read_experiment(path).rows) == 1


def test_a_case_that_fails_does_not_stop_the_others(tmp_path):
    wrong = METRONOME.replace("return [metronome_case()]", "return [wrong_case(), metronome_case()]") + (
        "\n\ndef wrong_case():\n    case = metronome_case()\n    case.name = 'wrong'\n"
        "    case.check = lambda: 1 / 0\n    return case\n"
    )
    broken = "import no_such_module\n\n\ndef cases(gpu):\n    return []\n"
    tree = repository(tmp_path, tests__fps__mine_py=wrong, tests__fps__broken_py=broken)
    answer = bench("run", "--repo", tree, "--seconds", "0.02", code=70)
    assert "mine/beat" in answer.stdout and "internal error in mine/wrong: ZeroDivisionError" in answer.stderr
    assert "broken: ModuleNotFoundError" in answer.stderr and answer.stderr.count("the log is ") == 2
