"""A plugin of pytest with pytest-benchmark's fixture `benchmark`, whose tests `bench ab --command "pytest ..."` judges.

pytest loads it wherever this program is installed, so it imports nothing of this program; renderer and renderer.bench,
in which it lies, import a few small modules. It defines the fixture in processes that `bench ab` started (RAYFOLD_BENCH
names their file of cases), where it takes the place of pytest-benchmark, and where pytest-benchmark is absent. Every
other run is pytest-benchmark's.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import pytest

SHORTEST_ROUND = 100_000  # ns: a faster function is called several times in a round
MAX_ROUNDS = 1000
PER_CALLS = 1000  # calls that one time covers: a whole number of ns is then precise enough for the fastest functions
P = ParamSpec("P")
T = TypeVar("T")


class Benchmark:
    """The fixture: calls a function in rounds, returns its result, and keeps the times of the rounds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.group: str | None = None
        self.extra_info: dict[str, Any] = {}
        self.wall_ns: list[int] = []
        self.cpu_ns: list[int] = []

    def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Times rounds of function(*args, **kwargs) for `seconds`, one at least; returns the result."""
        iterations = 1
        # without seconds (a warm-up, a counted process, or no `bench ab`) one round of one call is enough
        while self._round(function, args, kwargs, iterations)[1] < SHORTEST_ROUND and self.seconds:
            iterations *= 2
        end, rounds = time.perf_counter() + self.seconds, 0
        self.wall_ns, self.cpu_ns = [], []
        while rounds == 0 or rounds < MAX_ROUNDS and time.perf_counter() < end:
            result, _ = self._round(function, args, kwargs, iterations)
            rounds += 1
        return result

    def pedantic(
        self,
        target: Callable[..., T],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        setup: Callable[[], tuple[Sequence[object], Mapping[str, object]] | None] | None = None,
        teardown: Callable[..., object] | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> T:
        """Times exactly these rounds after the warm-up; setup() may return the args and kwargs of a round."""
        kwargs = kwargs or {}
        for _ in range(warmup_rounds + rounds):
            if setup and (made := setup()):
                args, kwargs = made
            result, _ = self._round(target, args, kwargs, iterations)
            if teardown:
                teardown(*args, **kwargs)
        self.wall_ns, self.cpu_ns = self.wall_ns[warmup_rounds:], self.cpu_ns[warmup_rounds:]
        return result

    def _round(
        self, function: Callable[..., T], args: Sequence[object], kwargs: Mapping[str, object], iterations: int
    ) -> tuple[T, int]:
        """The result of the last call, and the ns of the round."""
        cpu, began = time.process_time_ns(), time.perf_counter_ns()
        for _ in range(iterations):
            result = function(*args, **kwargs)
        wall, cpu = time.perf_counter_ns() - began, time.process_time_ns() - cpu
        self.wall_ns.append(max(1, wall * PER_CALLS // iterations))
        self.cpu_ns.append(max(1, cpu * PER_CALLS // iterations))
        return result, wall


class Fixture:
    """The plugin with the fixture `benchmark`; a separate plugin, because it is not always registered."""

    @pytest.fixture
    def benchmark(self, request: pytest.FixtureRequest) -> Iterator[Benchmark]:
        """Times a function as pytest-benchmark does; `bench ab` judges the times of the test."""
        made = Benchmark(float(os.environ.get("RAYFOLD_BENCH_SECONDS") or 0))
        yield made
        path = os.environ.get("RAYFOLD_BENCH")
        if path and made.wall_ns:
            row = {"case": request.node.nodeid, "wall_ns": made.wall_ns, "cpu_ns": made.cpu_ns, "calls": PER_CALLS}
            counters = {key: value for key, value in made.extra_info.items() if type(value) is int and value >= 0}
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row | {"counters": counters}) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the fixture in processes of `bench ab`, in place of pytest-benchmark, or if there is none."""
    config.addinivalue_line("markers", "benchmark: settings of pytest-benchmark, which this program's fixture ignores")
    if "RAYFOLD_BENCH" in os.environ:
        config.pluginmanager.unregister(name="benchmark")  # pytest-benchmark refuses another plugin's fixture
    if not config.pluginmanager.hasplugin("benchmark"):
        config.pluginmanager.register(Fixture(), "rayfold-benchmark")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves only the test that `bench ab` asks for."""
    case = os.environ.get("RAYFOLD_BENCH_CASE")
    if case and "RAYFOLD_BENCH" in os.environ:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid != case])
        items[:] = [item for item in items if item.nodeid == case]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A commit without the test is no failure."""
    if os.environ.get("RAYFOLD_BENCH_CASE") and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK
