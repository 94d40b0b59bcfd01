"""Measures the time and memory of a command by stage, for `rayfold export --profile`.

Code enters a stage by `with stage("reading")`, which costs a microsecond without a profile. Stages nest; time counts
only for the innermost stage, so that the times of all stages sum to the wall time of the process.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from renderer.host import peak_memory, process_age
from renderer.paths import ASSETS
from renderer.plain import Json
from renderer.records import dataclass
from renderer.system.files import read_toml

STAGES: dict[str, str] = read_toml(ASSETS / "tables" / "stages.toml")


@dataclass
class StageCost:
    """Cost of a stage: wall seconds, processor seconds of all threads, and growth of the process's peak memory."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0


class Profile:
    """The stages of the thread that created the profile, from the start of the process."""

    def __init__(self) -> None:
        age, cpu, peak = process_age(), time.process_time(), peak_memory()
        self.costs = {name: StageCost() for name in STAGES}
        self.costs["starting"] = StageCost(age, cpu, peak)
        self._thread = threading.get_ident()
        self._stack = ["other"]
        self._last = time.perf_counter(), cpu, peak

    def enter(self, name: str) -> None:
        """Begins a stage inside the present one."""
        self._charge()
        self._stack.append(name)

    def leave(self) -> None:
        """Ends the innermost stage."""
        self._charge()
        self._stack.pop()

    @property
    def is_own_thread(self) -> bool:
        """True if the caller runs on the thread that created the profile."""
        return threading.get_ident() == self._thread

    def _charge(self) -> None:
        """Adds the cost since the last call to the innermost stage."""
        now = time.perf_counter(), time.process_time(), peak_memory()
        cost = self.costs[self._stack[-1]]
        cost.seconds += now[0] - self._last[0]
        cost.cpu_seconds += now[1] - self._last[1]
        cost.peak_bytes += now[2] - self._last[2]
        self._last = now

    def rows(self) -> list[Json]:
        """Returns a row for each stage that took time, and a total: the key `profile` of --json."""
        self._charge()
        costs = [(name, cost) for name, cost in self.costs.items() if cost.seconds > 0]
        total = StageCost(*(sum(getattr(cost, f) for _, cost in costs) for f in StageCost.__annotations__))
        return [
            {"stage": name, "seconds": round(cost.seconds, 4), "cpu_seconds": round(cost.cpu_seconds, 4),
             "peak_mib": round(cost.peak_bytes / 2**20, 1)}
            for name, cost in [*costs, ("total", total)]
        ]  # fmt: skip

    def table(self) -> str:
        """Returns the rows as a text table."""
        rows = self.rows()
        total = rows[-1]["seconds"] or 1.0
        lines = [f"{'stage':11s} {'seconds':>8s} {'share':>6s} {'CPU s':>8s} {'peak MiB':>9s}"]
        for row in rows:
            name, seconds = row["stage"], row["seconds"]
            line = f"{name:11s} {seconds:8.3f} {100 * seconds / total:5.1f}% {row['cpu_seconds']:8.3f}"
            lines.append(f"{line} {row['peak_mib']:+9.1f}  {STAGES.get(name, 'from the start of the process')}")
        return "\n".join(lines)


_current: ContextVar[Profile | None] = ContextVar("profile", default=None)


@contextmanager
def profiled() -> Iterator[Profile]:
    """Yields the Profile of the block; it also counts the process's time before the block, as "starting"."""
    profile = Profile()
    token = _current.set(profile)
    try:
        yield profile
    finally:
        _current.reset(token)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Measures the block as a stage of STAGES; does nothing without a profile and on other threads than its own."""
    assert name in STAGES, name
    profile = _current.get()
    if profile is None or not profile.is_own_thread:
        yield
        return
    profile.enter(name)
    try:
        yield
    finally:
        profile.leave()


def measured() -> Json:
    """Returns {"profile": rows so far} for --json; empty without a profile."""
    profile = _current.get()
    return {"profile": profile.rows()} if profile else {}
