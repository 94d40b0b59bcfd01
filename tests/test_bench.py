"""The statistics against SciPy and simulations, the record files, and the harness on real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from renderer import BadInput, UserError
from renderer.bench.cases import Case, refuse_twins, sources
from renderer.bench.measure import measure, slowest_percent
from renderer.bench.verdict import (
    false_alarm_rate,
    holm,
    judge,
    shift_and_interval,
    signed_rank_p,
    walsh_averages,
)
from renderer.gpu import Gpu
from renderer.gpu.source import Counters

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests/fps/results/processes.jsonl"


def bench(*words, code=0, timeout=300):
    command = [sys.executable, str(ROOT / "main.py"), "bench", *map(str, words)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert answer.returncode == code, answer
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
    words = {name: verdict.word for name, verdict in judge(cases).items()}
    assert words["slower"] == "SLOWER" and words["faster"] == "FASTER" and words["same"] == "SAME"
    assert words["little"] in ("SAME", "UNDECIDED")
    assert judge({"few": noise[:3] + 1})["few"].word == "UNDECIDED"


def drifting_medians(rng, pairs):
    """Medians of 2 * pairs processes in the order they ran: a stretch of the recorded ones, either way round."""
    medians = np.array([json.loads(line)["median_ms"] for line in RECORDED.read_text().splitlines()])
    start = rng.integers(0, len(medians) - 2 * pairs)
    stretch = medians[start : start + 2 * pairs]
    return stretch[::-1] if rng.random() < 0.5 else stretch


def paired_differences(rng, pairs, slower=0.0):
    """Log ratios of an experiment on the recorded machine, the order inside each pair by coin."""
    times = drifting_medians(rng, pairs).reshape(pairs, 2)
    head_first = rng.random(pairs) < 0.5
    head = np.where(head_first, times[:, 0], times[:, 1]) * (1 + slower)
    base = np.where(head_first, times[:, 1], times[:, 0])
    return np.log(head / base)


def test_recorded_times_drift():
    """The recording is a hard case: slow drift and neighbours that are alike."""
    medians = np.array([json.loads(line)["median_ms"] for line in RECORDED.read_text().splitlines()])
    assert len(medians) >= 200 and medians.std() / medians.mean() > 0.03
    assert np.corrcoef(medians[:-1], medians[1:])[0, 1] > 0.2


def test_false_alarms_are_at_most_one_percent_of_200_runs(rng):
    """Recorded drift and an autocorrelated series, 200 runs each; a run of ten cases alarms if any case is SLOWER."""
    alarms = 0
    for _ in range(200):
        verdicts = judge({str(case): paired_differences(rng, 10) for case in range(10)})
        alarms += any(verdict.word == "SLOWER" for verdict in verdicts.values())
    for _ in range(200):
        steps = rng.normal(0, 0.3 * np.sqrt(1 - 0.97**2), 20)
        log_times = np.zeros(20)
        for i in range(1, 20):
            log_times[i] = 0.97 * log_times[i - 1] + steps[i]
        d = np.diff(log_times.reshape(10, 2), axis=1)[:, 0] * rng.choice((-1, 1), 10)
        alarms += judge({"one": d})["one"].word == "SLOWER"
    assert alarms <= 0.01 * 400 + 3 * np.sqrt(0.01 * 400)


def test_power_for_three_percent_on_a_quiet_stretch(rng):
    """Process medians that differ by 1 % (CV) inside a pair: ten pairs see +3 % at least eight times in ten."""
    seen = [judge({"one": rng.normal(np.log(1.03), 0.01 * np.sqrt(2), 10)})["one"].word for _ in range(200)]
    assert np.mean([word == "SLOWER" for word in seen]) >= 0.8 - 3 * np.sqrt(0.8 * 0.2 / 200)


def test_false_alarm_rate_of_noise_is_low_and_of_a_rigged_rule_is_not(rng):
    noise = {"a": rng.normal(0, 0.1, 10), "b": rng.normal(0, 0.1, 10)}
    assert false_alarm_rate(noise, 0.01, 0.02, draws=300) <= 0.03
    assert false_alarm_rate(noise, 0.9, 1e-9, draws=100) > 0.3


class Stopwatch:
    """A device whose runs take a known time."""

    name, trusted_clock = "stopwatch", False

    def __init__(self):
        self.counters = Counters()

    def finish(self):
        pass

    def seconds(self, work):
        work()
        return 0.0


def case_of(seconds=0.002, name="x", check=lambda: b"ok"):
    device = Stopwatch()

    def run():
        device.counters.launches += 3
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            pass

    return Case(name, "runs/s", 1.0, run, check, device)


def test_measure_sees_the_time_the_counters_and_the_faults():
    answer = measure(case_of(), seconds=0.1)
    assert 450 < answer["rate"] < 505 and answer["counters"]["launches"] == 3 and answer["runs"] >= 10
    slow = measure(case_of(), seconds=0.1, slowdown=0.5, spoil=True)
    assert slow["median_ms"] / answer["median_ms"] == pytest.approx(1.5, rel=0.1) and slow["digest"] != answer["digest"]


def test_overhead_is_under_one_percent_of_a_five_millisecond_frame():
    """The smallest of several: other work on the machine only ever adds."""
    overheads = [min(measure(case_of(0.005), seconds=0.06)["wall_ns"]) / 5e6 - 1 for _ in range(3)]
    assert min(overheads) < 0.01


def test_check_comes_before_any_time():
    def wrong():
        raise AssertionError("the result is wrong")

    with pytest.raises(AssertionError, match="result is wrong"):
        measure(case_of(check=wrong))


def test_one_percent_low_counts_time_not_frames():
    times = np.full(1000, 1e6)
    times[:5] = 4e6  # 20 ms of slow frames in about a second: all of the slowest 1 % of the time
    assert slowest_percent(times, 1.0) == pytest.approx(250, rel=0.05)
    assert slowest_percent(times[:600], 1.0) is None


def test_two_cases_of_one_name_are_refused():
    with pytest.raises(BadInput, match="two cases are named x"):
        refuse_twins([case_of(), case_of()])


def test_a_case_that_is_not_there_is_told():
    from renderer.bench.cases import find

    with pytest.raises(UserError, match="no case warp; there are"):
        find(["warp"], Gpu())


def test_every_scene_with_a_bench_table_is_a_source():
    for path in ROOT.glob("scenes/*.toml"):
        assert (path.stem in sources()) == ("[bench]" in path.read_text())


@pytest.mark.usefixtures("shared_gl")
def test_run_writes_records_that_history_and_report_read(tmp_path):
    records, page = tmp_path / "r.jsonl", tmp_path / "r.html"
    facts = json.loads(bench("run", "harness/pass", "--seconds", "0.05", "-o", records, "--json").stdout)
    assert facts["records"][0]["case"] == "harness/pass" and facts["schema"] == "bench/1"
    header, row = map(json.loads, records.read_text().splitlines())
    assert header["commit"] and "dirty" in header and len(row["wall_ns"]) == row["runs"] >= 10
    assert "harness/pass" in bench("history", records).stdout
    bench("report", records, "-o", page)
    assert "<svg" not in page.read_text()[:200] and page.read_text().count("<tr>") == 2


def test_files_that_hold_no_records(tmp_path):
    (tmp_path / "empty.jsonl").write_text("{}\nnonsense\n")
    assert "no records" in bench("history", tmp_path / "empty.jsonl", code=5).stderr
    assert "No such file" in bench("history", tmp_path / "none.jsonl", code=5).stderr
    assert "schema" in bench("compare", tmp_path / "empty.jsonl", code=5).stderr


def in_git():
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True).returncode == 0


needs_git = pytest.mark.skipif(not in_git(), reason="an A/B run needs the git history, which this copy has not")


@needs_git
@pytest.mark.usefixtures("shared_gl")
def test_aa_says_same_or_undecided_and_counters_are_exact(tmp_path):
    answer = subprocess.run(
        [sys.executable, str(ROOT / "main.py"), "bench", "aa", "harness/pass", "--pairs", "8", "--max-pairs", "8",
         "--seconds", "0.1", "--min-effect", "15%", "-o", str(tmp_path / "aa.jsonl"), "--json"],
        capture_output=True, text=True, timeout=120)  # fmt: skip
    facts = json.loads(answer.stdout)
    assert facts["verdicts"]["harness/pass"] in ("SAME", "UNDECIDED") and not facts["counters_risen"]
    assert 0 <= facts["false_alarm_rate"] <= 0.02
    assert answer.returncode == (0 if facts["verdicts"]["harness/pass"] == "SAME" else 3)


@needs_git
@pytest.mark.usefixtures("shared_gl")
def test_an_injected_pixel_is_invalid_and_a_crash_is_told(tmp_path):
    words = ["--base", "HEAD", "--pairs", "1", "--max-pairs", "1", "--seconds", "0.02", "--json"]
    facts = json.loads(bench("ab", "harness/pass", *words, "--inject", "pixel", code=3).stdout)
    assert facts["verdicts"] == {"harness/pass": "INVALID"}
    assert facts["reasons"]["harness/pass"] == "the pictures differ"
    assert facts["refs"]["base"] == facts["refs"]["head"] and "dirty" in facts["refs"]


@needs_git
@pytest.mark.slow
@pytest.mark.usefixtures("shared_gl")
def test_an_injected_slowdown_is_slower():
    words = ["--base", "HEAD", "--pairs", "10", "--max-pairs", "40", "--seconds", "0.2", "--json"]
    facts = json.loads(bench("ab", "harness/pass", *words, "--inject", "slowdown=8%", code=1).stdout)
    assert facts["verdicts"] == {"harness/pass": "SLOWER"}


@needs_git
@pytest.mark.usefixtures("shared_gl")
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_killed_experiment_resumes(tmp_path):
    path = tmp_path / "aa.jsonl"
    words = ["aa", "harness/pass", "--pairs", "6", "--max-pairs", "6", "--seconds", "0.02", "-o", path, "--json"]
    command = [sys.executable, str(ROOT / "main.py"), "bench", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and (not path.exists() or path.read_text().count("\n") < 4):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with open(path, "a") as file:
        file.write('{"case": "harness/pa')  # the line that the kill tore
    before = path.read_text()
    subprocess.run(command, capture_output=True, timeout=120)
    after = path.read_text()
    assert after.startswith(before)
    rows = [json.loads(line) for line in after.splitlines() if line != '{"case": "harness/pa']
    samples = [(row["arm"], row["pair"]) for row in rows if "arm" in row]
    assert len(samples) == len(set(samples)) == 12


@needs_git
def test_mistakes():
    assert "no such commit" in bench("ab", "--base", "no-such-ref", code=2).stderr
    assert "must be slowdown" in bench("ab", "--base", "HEAD", "--inject", "gremlins", code=2).stderr
    bench("run", "--seconds", "soon", code=2)
