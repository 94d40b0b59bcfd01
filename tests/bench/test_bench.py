"""The statistics against SciPy and simulations, the record files, and the harness on real processes."""

import json
import os
import runpy
import signal
import subprocess
import sys
import time
import tomllib

import numpy as np
import pytest
from scipy import stats

from renderer.bench import report
from renderer.bench.ab import visually_equal
from renderer.bench.cases import Case, check_unique_names, find, sources
from renderer.bench.experiment import read_experiment
from renderer.bench.machine import commit_info, diff_digest, git, machine_fault, read_gpus
from renderer.bench.measure import TimingOptions, WrongResult, count_operations, measure, one_percent_low
from renderer.bench.verdict import (
    DecisionRule,
    decide,
    holm,
    judge,
    minimum_detectable_effect,
    shift_and_interval,
    signed_rank_p,
    slower_rate,
    walsh_averages,
)
from renderer.errors import InputError, UserError
from renderer.gpu import DeviceContext
from renderer.gpu.kernel_source import Counters
from renderer.paths import ROOT

BUSY = ROOT / "tests/fps/results/aa_busy.jsonl"


def bench(*words, code=0, timeout=300):
    command = [sys.executable, str(ROOT / "main.py"), "bench", *map(str, words)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert code in (None, answer.returncode), answer
    assert "Traceback" not in answer.stderr
    return answer


def test_signed_rank_equals_scipy(rng):
    for n in (1, 2, 5, 10, 25):
        for _ in range(20):
            d = rng.normal(0.3, 1, n)
            assert signed_rank_p(d) == pytest.approx(stats.wilcoxon(d, alternative="greater", method="exact").pvalue)


def test_signed_rank_with_ties_and_zeros_equals_enumeration(rng):
    for _ in range(20):
        d = rng.integers(-3, 4, 8).astype("f8")
        d = d[d != 0]
        if not len(d):
            continue
        ranks = stats.rankdata(np.abs(d))
        signs = np.array(np.meshgrid(*[[0, 1]] * len(d))).reshape(len(d), -1)
        assert signed_rank_p(d) == pytest.approx((ranks @ signs >= ranks[d > 0].sum() - 1e-9).mean())
    assert signed_rank_p(np.zeros(5)) == 1


def test_shift_is_the_median_of_walsh_averages_and_the_interval_covers(rng):
    d = rng.normal(size=9)
    assert shift_and_interval(d)[0] == np.median([(a + b) / 2 for i, a in enumerate(d) for b in d[i:]])
    assert len(walsh_averages(d)) == 45
    covered = [low <= 0.1 <= high for _, low, high in (shift_and_interval(rng.normal(0.1, 1, 12)) for _ in range(400))]
    assert np.mean(covered) >= 0.97
    assert shift_and_interval(d[:4])[1:] == (-np.inf, np.inf)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_the_five_words(rng):
    noise = rng.normal(0, 0.002, 12)
    cases = {"slower": noise + 0.05, "faster": noise - 0.05, "same": noise, "little": noise + 0.01}
    words = {name: verdict.label for name, verdict in judge(cases).items()}
    assert words["slower"] == "SLOWER" and words["faster"] == "FASTER" and words["same"] == "SAME"
    assert words["little"] in ("SAME", "UNDECIDED")
    assert judge({"few": noise[:3] + 1})["few"].label == "UNDECIDED"


def recorded_processes():
    """Frame times (n,) in ns of each of 260 processes that ran one after the other on a busy machine, in order."""
    experiment = read_experiment(BUSY)
    return [np.array(row["wall_ns"]) for row in sorted(experiment.of("harness/pass"), key=lambda row: row["began"])]


def drifting_medians(rng, count):
    """Log medians of `count` neighbouring recorded processes, either way round, each of a sample of its frames."""
    start = rng.integers(0, len(PROCESSES) - count)
    stretch = PROCESSES[start : start + count]
    medians = [np.median(frames[rng.integers(0, len(frames), len(frames))]) for frames in stretch]
    return np.log(medians[::-1] if rng.random() < 0.5 else medians)


def correlated(rng, count, spread=0.3, neighbour=0.97):
    """A drifting series: neighbours correlate."""
    steps = rng.normal(0, spread * np.sqrt(1 - neighbour**2), count)
    series = np.zeros(count)
    for i in range(1, count):
        series[i] = neighbour * series[i - 1] + steps[i]
    return series


def simulated(rng, series, cases, rule, slower=0.0):
    """The words of an experiment whose processes take exp(series(count)): pairs in time, their order by coin."""
    taken = {}

    def take(stage, names, pairs):
        for name in names:
            have = taken.get((stage, name), np.zeros(0))
            times = series(2 * (pairs - len(have))).reshape(-1, 2) if pairs > len(have) else np.zeros((0, 2))
            d = (times[:, 1] - times[:, 0]) * rng.choice((-1.0, 1.0), len(times)) + np.log1p(slower)
            taken[stage, name] = np.concatenate([have, d])
        return {name: taken[stage, name] for name in names}

    return [verdict.label for verdict in decide([str(case) for case in range(cases)], take, rule).values()]


PROCESSES = recorded_processes()
SIMULATIONS = 200


def test_recorded_times_drift():
    """The recording is a hard case: slow drift and neighbours that are alike."""
    medians = np.log([np.median(frames) for frames in PROCESSES])
    assert len(medians) >= 200 and medians.std() > 0.1
    assert np.corrcoef(medians[:-1], medians[1:])[0, 1] > 0.5


@pytest.mark.parametrize("cases", [1, 10])
@pytest.mark.parametrize("drift", ["recorded", "simulated"])
def test_false_alarms_are_at_most_one_percent(rng, drift, cases):
    """200 A/A runs on recorded drift, and on a series whose neighbours correlate by 0.97; every look counts."""
    series = (lambda n: drifting_medians(rng, n)) if drift == "recorded" else (lambda n: correlated(rng, n))
    alarms = sum("SLOWER" in simulated(rng, series, cases, DecisionRule(10, 20)) for _ in range(SIMULATIONS))
    assert alarms <= 0.01 * SIMULATIONS + 3 * np.sqrt(0.01 * SIMULATIONS)


def test_a_stored_baseline_would_fail_on_the_recorded_drift(rng):
    """Why pairs: ten processes of the head against ten that ran before them alarm many times more often."""
    alarms = 0
    for _ in range(SIMULATIONS):
        times = drifting_medians(rng, 120)
        alarms += stats.mannwhitneyu(times[-10:], times[:10], alternative="greater").pvalue < 0.01
    assert alarms > 0.08 * SIMULATIONS


def test_power_for_three_percent_with_ten_pairs(rng):
    """Drift with neighbours that correlate by 0.97, and process medians that scatter by 1 %: seen 8 times in 10."""
    series = lambda n: correlated(rng, n, spread=0.05) + rng.normal(0, 0.01, n)  # noqa: E731
    seen = [simulated(rng, series, 1, DecisionRule(10, 10), 0.03)[0] == "SLOWER" for _ in range(SIMULATIONS)]
    assert np.mean(seen) >= 0.8


def test_ten_pairs_suffice_for_ten_cases(rng):
    """Holm over ten cases and shares for the looks leave a p that ten pairs can reach."""
    words = simulated(rng, lambda n: rng.normal(0, 0.001, n), 10, DecisionRule(), 0.1)
    assert words == ["SLOWER"] * 10


def test_what_fresh_pairs_do_not_confirm_is_undecided():
    d = {"screen": np.full(10, 0.1) + np.arange(10) / 1e3, "confirm": np.arange(-5, 5) / 1e3 - 0.2}
    verdict = decide(["x"], lambda stage, names, pairs: {"x": d[stage][:pairs]}, DecisionRule(10, 10))["x"]
    assert verdict.label == "UNDECIDED" and verdict.reason == "SLOWER at first, not in fresh pairs"


def test_more_pairs_are_taken_while_undecided():
    asked, swing = [], 0.2 * (1 + np.arange(40) / 100) * (-1) ** np.arange(40)

    def take(stage, names, pairs):
        asked.append((stage, tuple(names), pairs))
        return {name: swing[:pairs] * (1 if name == "noisy" else 1e-3) for name in names}

    words = {name: verdict.label for name, verdict in decide(["noisy", "quiet"], take, DecisionRule(10, 40)).items()}
    assert words == {"noisy": "UNDECIDED", "quiet": "SAME"}
    assert asked[0] == ("screen", ("noisy", "quiet"), 10) and ("screen", ("noisy",), 40) in asked
    assert DecisionRule(10, 40).looks == [10, 20, 40] and DecisionRule(7, 7).looks == [7]


def test_alarm_rate_of_noise_is_low_and_of_a_rigged_rule_is_not(rng):
    noise = {"a": rng.normal(0, 0.1, 10), "b": rng.normal(0, 0.1, 10)}
    assert slower_rate(noise, DecisionRule(10, 10), simulations=200) <= 0.03
    assert slower_rate(noise, DecisionRule(10, 10, alpha=1.9, min_effect=1e-9), simulations=100) > 0.3
    assert minimum_detectable_effect(rng.normal(0, 0.003, 20), DecisionRule(10, 10)) == 0.03
    assert minimum_detectable_effect(rng.normal(0, 2, 20), DecisionRule(10, 10)) is None


class Stopwatch:
    """A device whose clock is not trusted, as software GL's."""

    name, driver, has_reliable_timer = "stopwatch", "1", False

    def __init__(self):
        self.counters = Counters()

    def finish(self):
        pass

    def time_seconds(self, work):
        work()
        return 0.0


SOME = TimingOptions(0.05, 10, 0.01)


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def case_of(seconds=0.002, name="x", check=lambda: b"ok", **more):
    device = Stopwatch()

    def run():
        device.counters.launches += 3
        spin(seconds)

    return Case(name, "runs/s", 1.0, run, check, device, **more)


def test_a_record_holds_rate_counters_raw_times_and_facts():
    answer = measure(case_of(facts={"size": [3, 4]}), SOME)
    assert len(answer["wall_ns"]) == answer["runs"] >= 10 and min(answer["wall_ns"]) >= 1_990_000
    assert answer["rate"] == pytest.approx(1e9 / np.median(answer["wall_ns"])) and answer["clock"] == "wall"
    assert answer["counters"]["launches"] == 3 and answer["size"] == [3, 4] and answer["driver"] == "1"
    assert answer["device_ns"] is None and json.dumps(answer)


def test_a_device_clock_is_believed_only_where_it_tells_the_whole():
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


def test_slowdown_and_spoil_show():
    metronome_case = runpy.run_path(str(ROOT / "tests/fps/metronome.py"))["metronome_case"]

    answer, slow = measure(metronome_case(), SOME), measure(metronome_case(), SOME, slowdown=0.5, corrupt_result=True)
    assert slow["median_ms"] / answer["median_ms"] == pytest.approx(1.5, rel=0.05)
    assert slow["digest"] != answer["digest"]


def test_prepare_is_not_timed():
    answer = measure(case_of(0.001, setup=lambda: time.sleep(0.01)), SOME)
    assert np.median(answer["wall_ns"]) < 9e6


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


def test_check_comes_before_any_time():
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


def test_pictures_alike_to_the_eye(rng):
    picture = rng.random((20, 30, 4)).astype("f4")
    assert visually_equal(picture, picture * np.float32(1.0001))["equal"]
    wrong = picture.copy()
    wrong[7, 9, 1] = 1 - wrong[7, 9, 1].round()
    told = visually_equal(picture, wrong)
    assert not told["equal"] and "1 pixels by more than 1 of 255" in told["message"]
    assert not visually_equal(picture, picture[1:])["equal"]


def test_a_hot_machine_is_unfit():
    gpus = read_gpus("1980, 45, 0x0000000000000001\n1200, 88, 0x0000000000000040\n[N/A], [N/A], [Not Supported]\n")
    assert (
        [gpu["throttled"] for gpu in gpus] == [0, 0x40, 0]
        and gpus[0]["clock_mhz"] == 1980
        and gpus[2]["celsius"] is None
    )
    assert "GPU 1 was throttled" in machine_fault({}, {"gpus": gpus}) and machine_fault({}, {"gpus": gpus[:1]}) == ""
    assert "CPU was throttled" in machine_fault({"cpu_throttles": 3}, {"cpu_throttles": 4})


def repository(folder, **files):
    """A git repository with files."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git("init", "-q", tree=folder)
    commit_all(folder)
    return folder


def commit_all(folder):
    git("add", "-A", tree=folder)
    git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "x", tree=folder)


def test_a_dirty_tree_is_told(tmp_path):
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


def test_two_cases_of_one_name_are_refused():
    with pytest.raises(InputError, match="two cases are named x"):
        check_unique_names([case_of(), case_of()])


def test_a_case_that_is_not_there_is_told():
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


@pytest.mark.parametrize("table, words", [
    ("turns = 3", "unknown key 'turns'; allowed are size, frames, set, sweep"),
    ("frames = 0", "frames is 0"), ("size = [10]", "size is [10]"), ("sweep = { depth = 3 }", "sweep is"),
    ("set = 3", "set is 3"), ("set = { iterations = -1 }", "iterations"), ("sweep = { warp = [1] }", "warp"),
])  # fmt: skip
def test_mistakes_in_a_bench_table(tmp_path, table, words):
    scene = (ROOT / "scenes/mandelbrot.toml").read_text().split("[bench]")[0]
    (tmp_path / "scenes").mkdir()
    (tmp_path / "scenes/m.toml").write_text(f"{scene}\n[bench]\n{table}\n")
    with pytest.raises(InputError) as caught:
        list(find([], DeviceContext(), tmp_path))
    assert words in str(caught.value) and "m.toml" in str(caught.value)


def scenes_to_count():
    """Every scene that is a case; all but one of each kind of picture are slow tests."""
    seen = set()
    for path in [ROOT / f"scenes/{name}.toml" for name in sources()]:
        if path.exists() and not (ROOT / f"tests/fps/{path.stem}.py").exists():
            kind = tomllib.loads(path.read_text())["picture"]
            yield pytest.param(path.stem, marks=[pytest.mark.slow] if kind in seen else [])
            seen.add(kind)


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
    assert page.read_text().count("<tr>") == 3 and page.read_text().count("<img") >= 2


def plotted(plots):
    return {title: figure.axes[0] for title, figure in plots}


def record_of(case, rate, **more):
    row = {"case": case, "rate": rate, "median_ms": 1.0, "work": 1.0, "unit": "frames/s", "device": "d", "commit": "c"}
    return row | {"wall_ns": [10**6] * 12, "clock": "wall"} | more


def test_plots_show_the_recorded_numbers():
    records = [record_of(f"mirrors/depth={n}", 100.0 / n) for n in (1, 2, 3)]
    records += [record_of(f"solve/devices={n}", 1.8 * n, unit="GFLOP/s") for n in (1, 2, 4)]
    records += [record_of(f"products/step_{n}", float(n), peer={"name": "BLAS", "ratio": 0.5}) for n in (1, 2)]
    curves = plotted(report.curve_plots(records))
    assert list(curves["mirrors by depth"].lines[0].get_ydata()) == pytest.approx([100, 50, 100 / 3])
    assert list(curves["solve by devices"].lines[0].get_ydata()) == pytest.approx([1, 2, 4])
    peers = [record_of(f"sums/size={n}", 3.0, peer={"name": "numpy", "ratio": r}) for n, r in ((16, 0.5), (4096, 6.0))]
    plots = plotted(report.curve_plots(peers))
    assert sorted(plots) == ["sums by size", "sums by size: speed-up over numpy"]
    assert list(plots["sums by size: speed-up over numpy"].lines[0].get_ydata()) == [0.5, 6.0]
    deep = [
        record_of(
            f"rays/depth={d}",
            100.0,
            median_ms=2.0 + d,
            **{"active rays": [64, 8][:d], "empty stencil words": [0, 1][:d]},
        )
        for d in (1, 2)
    ]
    axes = plotted(report.depth_plots([*deep, deep[0] | {"case": "other/depth=1", "active rays": ["x"]}]))
    (by_depth,) = axes.values()
    assert [bar.get_height() for bar in by_depth.patches] == [3.0, 1.0]
    ladder = plotted(report.bar_plots(records))["products"]
    assert sorted(bar.get_width() for bar in ladder.patches) == [1, 2]
    assert ladder.lines[0].get_xdata()[0] == pytest.approx(4)  # the peer: 2 / 0.5
    again = [row | {"commit": "later", "rate": 3 * row["rate"]} for row in records]
    lines = plotted(report.history_plots(records + again))["By commit, d"].lines
    assert all(list(line.get_ydata()) == pytest.approx([1, 3]) for line in lines)


def test_files_that_hold_no_records(tmp_path):
    (tmp_path / "empty.jsonl").write_text("{}\nnonsense\n")
    assert "no records" in bench("history", tmp_path / "empty.jsonl", code=5).stderr
    assert "No such file" in bench("history", tmp_path / "none.jsonl", code=5).stderr
    assert "schema" in bench("reanalyze", tmp_path / "empty.jsonl", code=5).stderr
    (tmp_path / "new").mkdir()
    assert "without .jsonl" in bench("report", tmp_path / "new", "-o", tmp_path / "x.html", code=5).stderr


def test_hostile_lines_are_passed_over(tmp_path, capsys):
    good = record_of("good", 2.0)
    bad = [good | {"rate": None}, good | {"case": 3}, good | {"wall_ns": "many"}, good | {"wall_ns": [0]}]
    bad += [good | {"peer": 3}, good | {"rate": float("nan")}, [good], "good", "[" * 100_000]
    path = tmp_path / "r.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in [*bad, good]]
    path.write_text("\n".join(lines))
    assert [row["case"] for row in report.read_records([str(path)])] == ["good"]
    process = {"case": "a", "arm": "base", "stage": "screen", "pair": 0, "attempt": 0, "clock": "wall", "wall_ns": [5]}
    torn = [process | {"pair": "x"}, process | {"wall_ns": []}, process | {"clock": "sun"}, process | {"arm": "left"}]
    header = json.dumps({"schema": "bench/1", "refs": {}})
    path.write_text("\n".join([header, *map(json.dumps, [process, *torn])]))
    assert len(read_experiment(path).rows) == 1


def in_git():
    return commit_info()["commit"] != "unknown"


needs_git = pytest.mark.skipif(not in_git(), reason="an A/B run needs the git history, which this copy has not")


@pytest.mark.usefixtures("shared_gl")
def test_aa_says_same_or_undecided_and_counters_are_exact(tmp_path):
    words = ["--pairs", "4", "--max-pairs", "4", "--seconds", "0.05", "--min-effect", "15%", "--json"]
    answer = bench("aa", "harness/pass", *words, "-o", tmp_path / "aa.jsonl", code=None)
    facts = json.loads(answer.stdout)
    assert facts["verdicts"]["harness/pass"] in ("SAME", "UNDECIDED") and not facts["counter_increases"]
    assert 0 <= facts["false_alarm_rate"] <= 0.03 and "harness/pass" in facts["detectable_percent"]
    assert answer.returncode == (0 if facts["verdicts"]["harness/pass"] == "SAME" else 3)
    rows = [row for row in map(json.loads, (tmp_path / "aa.jsonl").read_text().splitlines()) if "arm" in row]
    assert len(rows) == 8 and len({json.dumps(row["counters"]) for row in rows}) == 1
    again = json.loads(bench("reanalyze", tmp_path / "aa.jsonl", "--min-effect", "15%", "--json", code=None).stdout)
    assert again["verdicts"] == facts["verdicts"] and again["percent"] == facts["percent"]


@needs_git
@pytest.mark.usefixtures("shared_gl")
def test_an_injected_pixel_is_invalid():
    words = ["--base", "HEAD", "--head", "HEAD", "--pairs", "1", "--max-pairs", "1", "--seconds", "0.02", "--json"]
    facts = json.loads(bench("ab", "harness/pass", *words, "--inject", "pixel", code=1).stdout)
    assert facts["verdicts"] == {"harness/pass": "INVALID"}
    assert "1 pixels by more than 1 of 255" in facts["reasons"]["harness/pass"]


@pytest.mark.slow
@pytest.mark.usefixtures("shared_gl")
@needs_git
def test_an_injected_slowdown_of_a_pass_is_slower():
    words = ["--base", "HEAD", "--pairs", "10", "--max-pairs", "40", "--seconds", "0.2", "--json"]
    facts = json.loads(bench("ab", "harness/pass", *words, "--inject", "slowdown=8%", code=1).stdout)
    assert facts["verdicts"] == {"harness/pass": "SLOWER"}


METRONOME = (ROOT / "tests/fps/metronome.py").read_text()
QUICK = ["--pairs", "6", "--max-pairs", "6", "--seconds", "0.02", "--alpha", "0.02"]


def test_an_injected_slowdown_is_slower_and_the_file_says_so(tmp_path):
    """In a user's own repository, with this one's harness; the working tree is dirty."""
    tree = repository(tmp_path / "own", tests__fps__mine_py=METRONOME)
    (tree / "note").write_text("not committed")
    path = tmp_path / "ab.jsonl"
    words = ["ab", "--repo", tree, "--base", "HEAD", *QUICK, "-o", path]
    facts = json.loads(bench(*words, "--inject", "slowdown=8%", "--json", code=1).stdout)
    assert facts["verdicts"] == {"mine/beat": "SLOWER"} and facts["percent"]["mine/beat"] == pytest.approx(8, abs=2)
    header = json.loads(path.read_text().splitlines()[0])
    assert header["refs"]["dirty"] and header["refs"]["diff_digest"] and not list((tree / ".bench").glob("*"))
    assert "another experiment: its settings differ" in bench(*words, code=2).stderr
    assert "SLOWER" in bench("reanalyze", path, "--alpha", "0.02", code=1).stdout


def test_what_a_commit_does_to_its_cases_is_told(tmp_path):
    """A counter that rises, a case that crashes in one arm, a new case, another result."""
    cases = "\n\ndef cases(gpu):\n    made = [metronome_case() for _ in range(4)]\n"
    names = "    for name, case in zip(('more', 'crash', 'new', 'other'), made):\n        case.name = name\n"
    body = METRONOME.split("def cases(gpu)")[0] + METRONOME[METRONOME.index("class Metronome") :] + cases + names
    change = (
        "    run, counters = made[0].run, made[0].device.counters\n"
        "    made[0].run = lambda: (run(), setattr(counters, 'uploads', counters.uploads + 1))\n"
        "    made[1].run = lambda: 1 / 0\n    made[3].check = lambda: b'other'\n"
    )
    tree = repository(tmp_path, tests__fps__mine_py=body + "    return [case for case in made if case.name != 'new']\n")
    (tree / "tests/fps/mine.py").write_text(body + change + "    return made\n")
    words = ["--base", "HEAD", "--pairs", "2", "--max-pairs", "2", "--seconds", "0.01", "--json"]
    facts = json.loads(bench("ab", "--repo", tree, *words, code=1).stdout)
    assert facts["verdicts"] == {"mine/more": "UNDECIDED", "mine/crash": "INVALID", "mine/other": "INVALID"}
    assert "head crashed" in facts["reasons"]["mine/crash"] and "division" in facts["reasons"]["mine/crash"]
    assert facts["reasons"]["mine/other"] == "the results differ" and facts["skipped"] == {
        "mine/new": "the base has no such case"
    }
    assert facts["counter_increases"] == {"mine/more": {"uploads": [0, 1]}}


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_killed_experiment_resumes(tmp_path):
    """And a pair that the kill broke is measured again as a whole: its arms must be neighbours in time."""
    path = tmp_path / "aa.jsonl"
    words = ["aa", "metronome", "--pairs", "3", "--max-pairs", "3", "--seconds", "0.02", "-o", path, "--json"]
    command = [sys.executable, str(ROOT / "main.py"), "bench", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and (not path.exists() or path.read_text().count("\n") < 4):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with open(path, "a") as file:
        file.write('{"case": "metronome/be')  # the line that the kill tore
    before = path.read_text()
    subprocess.run(command, capture_output=True, timeout=120)
    assert path.read_text().startswith(before)
    experiment = read_experiment(path)
    pairs = experiment.pairs("metronome/beat", "screen")
    assert sorted(pairs) == [0, 1, 2] and all(
        len({row["attempt"] for row in arms.values()}) == 1 for arms in pairs.values()
    )
    assert 6 <= len(experiment.of("metronome/beat")) <= 7


@needs_git
def test_mistakes():
    assert "no such commit" in bench("ab", "--base", "no-such-ref", code=2).stderr
    assert "must be slowdown" in bench("ab", "--base", "HEAD", "--inject", "gremlins", code=2).stderr
    bench("run", "--seconds", "soon", code=2)
    bench("ab", "--base", "HEAD", "--pairs", "0", code=2)
    bench("run", "--repo", "/nowhere", code=2)
    assert "no case warp" in bench("aa", "warp", code=2).stderr
    assert "cannot be written" in bench("run", "metronome", "-o", "/no/such/folder/r.jsonl", code=2).stderr


def test_a_case_that_fails_does_not_cost_the_others(tmp_path):
    wrong = METRONOME.replace("return [metronome_case()]", "return [wrong_case(), metronome_case()]") + (
        "\n\ndef wrong_case():\n    case = metronome_case()\n    case.name = 'wrong'\n"
        "    case.check = lambda: 1 / 0\n    return case\n"
    )
    broken = "import no_such_module\n\n\ndef cases(gpu):\n    return []\n"
    tree = repository(tmp_path, tests__fps__mine_py=wrong, tests__fps__broken_py=broken)
    answer = bench("run", "--repo", tree, "--seconds", "0.02", code=1)
    assert "mine/beat" in answer.stdout and "mine/wrong: crashed: ZeroDivisionError" in answer.stderr
    assert "broken: crashed: ModuleNotFoundError" in answer.stderr


@pytest.mark.slow
def test_the_hook_of_the_guide_refuses_a_slower_push(tmp_path):
    guide = (ROOT / "assets/guides/bench.md").read_text()
    (hook,) = [text.split("```")[0] for text in guide.split("```sh\n") if "merge-base" in text]
    tree = repository(tmp_path / "own", tests__fps__mine_py=METRONOME)
    git("init", "-q", "--bare", str(tmp_path / "server"), tree=tmp_path)
    git("remote", "add", "origin", str(tmp_path / "server"), tree=tree)
    git("branch", "-M", "main", tree=tree)
    git("push", "-q", "origin", "main", tree=tree)
    rayfold = tmp_path / "rayfold"
    rayfold.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT / "main.py"} "$@"\n')
    rayfold.chmod(0o755)
    (tree / ".git/hooks/pre-push").write_text(hook)
    (tree / ".git/hooks/pre-push").chmod(0o755)
    environment = {**os.environ, "RAYFOLD": str(rayfold), "CASES": "mine/beat"}

    def push():
        command = ["git", "push", "origin", "main"]
        return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)

    (tree / "note").write_text("the same speed")
    commit_all(tree)
    same = push()
    assert same.returncode == 0 and "SAME" in same.stdout, same
    (tree / "tests/fps/mine.py").write_text(METRONOME.replace("BEAT = 0.002", "BEAT = 0.0023"))
    commit_all(tree)
    slower = push()
    assert slower.returncode != 0 and "SLOWER" in slower.stdout, slower
    assert git("rev-parse", "origin/main", tree=tree) == git("rev-parse", "main~1", tree=tree)


def test_a_case_that_this_machine_cannot_run_is_left_out(tmp_path):
    cannot = METRONOME.replace("return [metronome_case()]", "return [cannot_case(), metronome_case()]") + (
        "\n\ndef cannot_case():\n    from renderer import UnavailableError\n    case = metronome_case()\n"
        "    case.name = 'big'\n    def check():\n        raise UnavailableError('needs two GPUs')\n"
        "    case.check = check\n    return case\n"
    )
    tree = repository(tmp_path, tests__fps__mine_py=cannot)
    words = ["--repo", tree, "--seconds", "0.02"]
    assert "mine/big: cannot run here: needs two GPUs" in bench("run", *words, code=3).stderr
    assert bench("run", "mine/big", *words, code=4).stdout == ""
    facts = json.loads(bench("aa", *words, "--pairs", "1", "--max-pairs", "1", "--json", code=3).stdout)
    assert facts["skipped"] == {"mine/big": "cannot run here: needs two GPUs"} and list(facts["verdicts"]) == [
        "mine/beat"
    ]
