"""Counts of processes: hardware events, valgrind, memory, the rule that judges them; pytest-benchmark's fixture."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from renderer.bench import counting
from renderer.bench.cases import plain_case
from renderer.bench.counting import Counter, find_counter, judge_counts, launch
from renderer.bench.experiment import Experiment
from renderer.bench.launcher import open_event, read_event
from renderer.bench.measure import measure
from renderer.bench.verdict import DecisionRule
from renderer.errors import UnavailableError, UserError
from tests.bench.helpers import SOME
from tests.children import python_path

PYTHON = [sys.executable, "-I", "-S", "-c"]


def test_memory_is_the_commands_own(tmp_path):
    """The peak of a child does not count this large process; a child's child counts if it was waited for."""
    memory = bytearray(200 << 20)
    memory[::4096] = b"x" * len(memory[::4096])
    small = launch([*PYTHON, "pass"], tmp_path)["peak memory"]
    large = launch([*PYTHON, "x = b'x' * (64 << 20)"], tmp_path)["peak memory"]
    inner = launch(["sh", "-c", f"{sys.executable} -I -S -c \"x = b'x' * (64 << 20)\"; true"], tmp_path)["peak memory"]
    assert small < 40 << 20 and 60 << 20 < large < 90 << 20 and abs(inner - large) < 8 << 20, (small, large, inner)


def test_events_count_a_program_and_its_children_alone(tmp_path):
    """Page faults, which every Linux counts; the witness is the number of pages of an array."""
    try:
        os.close(open_event("page faults"))
    except OSError as error:
        pytest.skip(f"no perf_event_open: {error}")
    faults = Counter(("page faults",))
    code = "import os; x = bytearray(COUNT)\nx[::4096] = b'x' * len(x[::4096])"
    counts = []
    for size, command in ((1, PYTHON), (32 << 20, PYTHON), (32 << 20, ["sh", "-c", 'exec "$@" ; true', "sh", *PYTHON])):
        counts.append(launch([*command, code.replace("COUNT", str(size))], tmp_path, counter=faults)["page faults"])
    assert abs(counts[1] - counts[0] - 8192) < 600 and abs(counts[2] - counts[1]) < 400


def test_an_event_that_did_not_always_count_is_no_count(tmp_path):
    for times, expected in (((5, 9, 9), 5), ((5, 9, 8), None), ((0, 0, 0), None)):
        (tmp_path / "event").write_bytes(np.array(times, "<u8").tobytes())
        assert read_event(os.open(tmp_path / "event", os.O_RDONLY)) == expected


@pytest.mark.parametrize("choice", ["auto", "perf", "cachegrind"])
def test_the_counter_that_works_is_taken(monkeypatch, choice):
    """Events where the system lets them, else valgrind, else a sentence that says why there is none."""

    def refuse(name):
        raise PermissionError(13, "Permission denied")

    file = os.devnull
    monkeypatch.setattr(counting, "open_event", lambda name: os.open(file, os.O_RDONLY))
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/valgrind")
    assert find_counter(choice).works and bool(find_counter(choice).tool) == (choice == "cachegrind")
    monkeypatch.setattr(counting, "open_event", refuse)
    if choice != "perf":
        assert find_counter(choice) == Counter(tool="cachegrind")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    if choice == "auto":
        assert find_counter(choice).name == (
            "valgrind is not installed, and the system counts no instructions (Permission denied)"
        )
    else:
        with pytest.raises(UnavailableError, match="Permission denied" if choice == "perf" else "not installed"):
            find_counter(choice)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
def test_valgrind_counts_instructions_exactly(tmp_path):
    """Twice the same; and a loop's instructions are proportional to its length."""
    program = "for k in range(COUNT): pass"
    counter = Counter(tool="cachegrind")
    counts = [
        launch([sys.executable, "-S", "-c", program.replace("COUNT", str(n))], tmp_path, 1, counter)["instructions"]
        for n in (20_000, 20_000, 40_000, 60_000)
    ]
    assert abs(counts[1] / counts[0] - 1) < 1e-4
    assert abs((counts[3] - counts[2]) / (counts[2] - counts[1]) - 1) < 0.02
    with pytest.raises(UserError, match="exit code 3"):
        launch([*PYTHON, "raise SystemExit(3)"], tmp_path, 0, counter)


def counted(ratio, noise=0.0, pairs=16, quantity="instructions", seed=0):
    """An experiment whose head counts `ratio` times as many."""
    rng = np.random.default_rng(seed)
    experiment = Experiment({"settings": {}})
    for pair in range(pairs):
        for arm, factor in (("base", 1.0), ("head", ratio)):
            value = round(1e8 * (1 + 0.03 * pair) * factor * np.exp(noise * rng.standard_normal()))
            row = {"case": "a", "arm": arm, "stage": "count", "pair": pair, "attempt": 0, "counts": {quantity: value}}
            experiment.rows.append(row)
    return experiment


@pytest.mark.parametrize(
    ("ratio", "noise", "label", "measured"),
    [
        (1.01, 0, "SLOWER", [8]), (0.99, 0, "FASTER", [8]), (1.0, 0, "SAME", [8]), (1.001, 1e-5, "SAME", [8]),
        (1.0, 0.02, "UNDECIDED", [8, 16]), (1.01, 0.001, "SLOWER", [8]),
    ],
)  # fmt: skip
def test_counts_are_judged_after_few_pairs(ratio, noise, label, measured):
    """Inputs that differ from pair to pair by 3 % do not hide 1 %; twice the pairs only where it is undecided."""
    asked = []
    experiment = counted(ratio, noise)

    def measure_pairs(stage, names, pairs):
        if names:
            asked.append(pairs)

    verdicts = judge_counts(experiment, ["a"], DecisionRule(), measure_pairs)
    assert verdicts["a"]["instructions"].label == label and asked == measured


def test_counts_of_one_program_alarm_in_fewer_than_alpha_of_runs():
    """Noise of 2 %, which no program's instructions have; two-sided, the bound is 1 %: at most 3 of 60."""
    judged = [
        judge_counts(counted(1.0, 0.02, seed=seed), ["a"], DecisionRule(), lambda *_: None)["a"]["instructions"].label
        for seed in range(60)
    ]
    assert sum(label in ("SLOWER", "FASTER") for label in judged) <= 3


def test_plain_functions_are_cases():
    """A processor's clock, and a dict as counters: exact for one run."""
    counters = {}

    def work():
        counters["steps"] = counters.get("steps", 0) + 7
        return b"result"

    record = measure(plain_case("work", (work, counters)), SOME)
    assert record["counters"] == {"steps": 7} and record["clock"] == "device" and record["digest"]
    assert 4 << 20 < record["counts"]["peak memory"]
    assert measure(plain_case("none", lambda: sum(range(99))), SOME)["digest"] is None


SUITE = """import pytest

def work(n):
    return sum(range(n))

def test_work(benchmark):
    assert benchmark(work, 100) == 4950
    benchmark.extra_info["steps"] = 100

@pytest.mark.benchmark(group="g")
@pytest.mark.parametrize("n", [10, 20])
def test_rounds(benchmark, n):
    seen = []
    def setup():
        seen.append(n)
        return (n,), {}
    assert benchmark.pedantic(work, setup=setup, rounds=5, warmup_rounds=2) == sum(range(n)) and len(seen) == 7
"""


def suite(folder, *options, **variables):
    (folder / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", *options]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("RAYFOLD_BENCH", "PYTEST"))}
    environment |= {"PYTHONPATH": python_path(), **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


PLUGIN = ("-p", "renderer.bench.pytest_plugin")


@pytest.mark.slow
def test_a_suite_written_for_pytest_benchmark_records_cases(tmp_path):
    plain = suite(tmp_path, *PLUGIN)
    assert plain.returncode == 0 and "3 passed" in plain.stdout, plain
    path = tmp_path / "cases.jsonl"
    suite(tmp_path, *PLUGIN, RAYFOLD_BENCH=str(path), RAYFOLD_BENCH_SECONDS="0.01")
    rows = {row["case"]: row for row in map(json.loads, path.read_text().splitlines())}
    assert list(rows) == [f"test_suite.py::test_{name}" for name in ("work", "rounds[10]", "rounds[20]")]
    assert rows["test_suite.py::test_work"]["counters"] == {"steps": 100}
    assert len(rows["test_suite.py::test_rounds[10]"]["wall_ns"]) == 5
    path.unlink()
    suite(tmp_path, *PLUGIN, RAYFOLD_BENCH=str(path), RAYFOLD_BENCH_CASE="test_suite.py::test_rounds[20]")
    assert [json.loads(line)["case"] for line in path.read_text().splitlines()] == ["test_suite.py::test_rounds[20]"]
    assert suite(tmp_path, *PLUGIN, RAYFOLD_BENCH=str(path), RAYFOLD_BENCH_CASE="gone").returncode == 0


@pytest.mark.slow
def test_the_fixture_takes_the_place_of_pytest_benchmark_in_an_experiment_alone(tmp_path):
    """A plugin of its name whose fixture refuses others, as pytest-benchmark's does."""
    other = "import pytest\n\n@pytest.fixture\ndef benchmark():\n    raise RuntimeError('of pytest-benchmark')\n"
    (tmp_path / "other.py").write_text(other)
    (tmp_path / "conftest.py").write_text(
        "import other\n\ndef pytest_addoption(pluginmanager):\n    pluginmanager.register(other, 'benchmark')\n"
    )
    assert "of pytest-benchmark" in suite(tmp_path, *PLUGIN).stdout
    answer = suite(tmp_path, *PLUGIN, RAYFOLD_BENCH=str(tmp_path / "c.jsonl"))
    assert "3 passed" in answer.stdout, answer


def test_the_plugin_imports_nothing_heavy():
    heavy = "{'numpy', 'scipy', 'moderngl', 'PIL'}"
    code = f"import sys, renderer.bench.pytest_plugin; print(sorted({heavy} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": python_path()}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert answer.stdout == "[]\n", answer
