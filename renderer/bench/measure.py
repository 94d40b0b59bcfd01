"""Times one case of cases.py: checks its result, warms up, and records the wall and device time of every run.

Called by `bench run` for each case and by `bench sample` in the processes of an experiment (run.py).
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from renderer.bench.cases import Case
from renderer.errors import UserError
from renderer.formats.npy import write_arrays
from renderer.host import peak_memory
from renderer.plain import Json
from renderer.records import dataclass, replace

MAX_RUNS = 5000
# Of so many runs at least two lie above the percentile with 99 % probability: q^n + n q^(n - 1) (1 - q) <= 1 %.
MIN_RUNS_P90, MIN_RUNS_P99 = 64, 662
# Fraction of a batch's seconds spent on untimed runs before it: the other process's batch changed caches and clocks.
WARMUP_FRACTION = 0.1


class WrongResult(UserError):
    """A case whose check failed; it is not timed."""

    exit_code = 1


@dataclass(frozen=True)
class TimingOptions:
    """Duration of a timing: at least `min_runs` runs and `seconds`, after `warmup_seconds` of untimed runs."""

    seconds: float = 1.0
    min_runs: int = 10
    warmup_seconds: float = 0.3


QUICK = TimingOptions(0.3, 1, 0.1)  # for one process of an experiment, which is one sample however many runs it has


def measure(
    case: Case,
    options: TimingOptions = TimingOptions(),  # noqa: B008  # immutable
    slowdown: float = 0.0,
    corrupt_result: bool = False,
    save_image: Path | None = None,
    batches: Callable[[float], Iterable[float]] | None = None,
) -> Json:
    """Checks and times a case; returns its record: raw wall and device times in ns, rate, spread, counters, digest.

    `slowdown` makes every run slower by that fraction and `corrupt_result` changes a pixel: self-tests of the harness.
    `save_image` names a .npy file for the checked picture, if the result is one. batches(seconds of a run) yields the
    seconds of each batch of runs to time; without it there is one batch of `options.seconds`.
    """
    digest = verified_digest(case, corrupt_result, save_image)
    operations, single_device = count_operations(case)
    memory = {"device memory": sum(_counters(device).get("allocated_bytes", 0) for device in case.devices())}
    seconds_of_a_run = warm_up(case, options.warmup_seconds)
    if slowdown:
        case = replace(case, run=slow_down(case, slowdown))
    wall: list[int] = []
    device: list[int] = []
    runs_of_batches = []
    for seconds in batches(seconds_of_a_run) if batches else [options.seconds]:
        if batches:
            warm_up(case, seconds * WARMUP_FRACTION)
        batch_wall, batch_device = time_runs(case, seconds, options.min_runs)
        wall += batch_wall
        device += batch_device
        runs_of_batches.append(len(batch_wall))
    memory["peak memory"] = peak_memory()
    answer = record(case, wall, device if single_device else None, operations, digest)
    return answer | {"turns": runs_of_batches, "counts": {name: size for name, size in memory.items() if size}}


def time_runs(case: Case, seconds: float, min_runs: int) -> tuple[list[int], list[int]]:
    """Times runs one by one; returns each run's wall time and its device time in ns.

    Stops after both `min_runs` runs and `seconds`, or at MAX_RUNS.
    """
    wall: list[int] = []
    device: list[int] = []
    start, clock = time.perf_counter(), time.perf_counter_ns
    while len(wall) < min_runs or (time.perf_counter() - start < seconds and len(wall) < MAX_RUNS):
        case.prepare()
        began = clock()
        device_seconds = case.device.time_seconds(case.run)
        case.finish()
        wall.append(clock() - began)
        device.append(round(device_seconds * 1e9))
    return wall, device


def verified_digest(case: Case, corrupt_result: bool = False, save_image: Path | None = None) -> str | None:
    """Checks the case; returns the result's SHA-256 in hexadecimal, or None if check() returns no result.

    WrongResult if the check fails. `save_image` names a .npy file for a result that is an array.
    """
    try:
        result = case.check()
    except AssertionError as error:
        raise WrongResult(f"bench: {case.name}: the result is wrong: {error or 'an assertion failed'}") from error
    if result is None:
        return None
    if corrupt_result:
        result = corrupt(result)
    if isinstance(result, np.ndarray):
        if save_image:
            write_arrays(save_image, result)
        result = repr((result.shape, result.dtype.str)).encode() + np.ascontiguousarray(result).tobytes()
    return hashlib.sha256(result).hexdigest()


def corrupt(result: bytes | np.ndarray) -> bytes | np.ndarray:
    """Returns the result with its middle byte or pixel changed, a pixel by enough to see."""
    if isinstance(result, bytes):
        middle = len(result) // 2
        return result[:middle] + bytes([result[middle] ^ 1]) + result[middle + 1 :]
    result = result.copy()
    pixel = tuple(n // 2 for n in result.shape[:-1]) + (0,)
    result[pixel] = 0 if result[pixel] > 0.25 else 1
    return result


def slow_down(case: Case, slowdown: float) -> Callable[[], None]:
    """Returns a run that waits for the case's completion, then busy-waits for `slowdown` times its device time.

    Both the device's clock and the wall clock show the slowdown.
    """
    extra = slowdown * min(case.device.time_seconds(case.run) for _ in range(2))

    def run() -> None:
        case.run()
        case.finish()
        until = time.thread_time() + extra
        while time.thread_time() < until:
            pass

    return run


def warm_up(case: Case, seconds: float) -> float:
    """Runs the case for `seconds`, untimed; returns the seconds of the last run, NaN if `seconds` is 0."""
    elapsed = math.nan
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        case.prepare()
        began = time.perf_counter()
        case.run()
        case.finish()
        elapsed = time.perf_counter() - began
    return elapsed


def count_operations(case: Case) -> tuple[dict[str, int], bool]:
    """Counts the operations of one run: launches, uploads, allocations of all devices, and the case's own counters.

    The counts are exact; an experiment reports every increase. The second value is True if the run used only
    `case.device`, whose clock then covers all work.
    """
    case.prepare()
    devices = case.devices()
    before = [_counters(device) for device in devices]
    case.run()
    case.finish()
    after = [_counters(device) for device in devices]
    deltas = [{k: last[k] - first.get(k, 0) for k in last} for first, last in zip(before, after, strict=True)]
    total = {name: sum(delta.get(name, 0) for delta in deltas) for delta in deltas for name in delta}
    # the first of the devices is case.device
    return total | (case.counters() if case.counters else {}), not any(any(d.values()) for d in deltas[1:])


def _counters(device: Any) -> dict[str, int]:
    counters = device.counters
    return dict(counters) if isinstance(counters, dict) else dict(vars(counters))


def record(case: Case, wall: list[int], device: list[int] | None, counters: Json, digest: str | None) -> Json:
    """Returns the JSON record of a case. Rates use the device's clock if it is reliable, else the wall clock.

    `wall` and `device` are times in ns, one a run. `device` is None if several devices worked, because no single clock
    covers all work then. P90 and P99 are None below MIN_RUNS_P90 and MIN_RUNS_P99.
    """
    trusted = device is not None and case.device.has_reliable_timer and min(device) > 0
    times = np.array(device if trusted else wall)
    middle = float(np.median(times))
    answer = {
        "case": case.name,
        "unit": case.unit,
        "work": case.work,
        "rate": case.work / middle * 1e9,
        "clock": "device" if trusted else "wall",
        "median_ms": middle / 1e6,
        "wall_median_ms": float(np.median(wall)) / 1e6,
        "p90_ms": float(np.percentile(times, 90)) / 1e6 if len(times) >= MIN_RUNS_P90 else None,
        "p99_ms": float(np.percentile(times, 99)) / 1e6 if len(times) >= MIN_RUNS_P99 else None,
        "low_rate": one_percent_low(times, case.work),
        "max_ms": float(times.max()) / 1e6,
        "runs": len(times),
        "counters": counters,
        "digest": digest,
        "device": case.device.name,
        "driver": case.device.driver,
        "wall_ns": wall,
        "device_ns": device if trusted else None,
        **case.facts,
    }
    if case.peer:
        seconds = case.peer()
        answer["peer"] = {"name": case.peer_name, "seconds": seconds, "ratio": seconds / (middle / 1e9)}
    return answer


def one_percent_low(times: np.ndarray, work: float) -> float | None:
    """Returns the "1 % low": the rate of the slowest runs that fill 1 % of the total time; None below MIN_RUNS_P99."""
    if len(times) < MIN_RUNS_P99:
        return None
    slow = np.sort(times)[::-1]
    count = int(np.searchsorted(np.cumsum(slow), slow.sum() * 0.01)) + 1
    return work * count / float(slow[:count].sum()) * 1e9
