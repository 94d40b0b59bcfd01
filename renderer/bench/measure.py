"""One case timed: check, warm up, at least ten runs to completion, every raw time kept."""

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from renderer.bench.cases import Case
from renderer.errors import UserError

MOST_RUNS = 5000
WARM_SHARE = 0.1  # of a turn: runs that bring caches and clocks back after another process's turn


class WrongResult(UserError):
    """A case whose check failed: nothing of it is timed."""

    exit_code = 1


@dataclass(frozen=True)
class Effort:
    """How long a case is timed: at least `least` runs and `seconds`; `warm` seconds of runs before are thrown away."""

    seconds: float = 1.0
    least: int = 10
    warm: float = 0.3


QUICK = Effort(0.3, 1, 0.1)  # for one process of an experiment, which is one sample whatever it holds


def measure(
    case: Case,
    effort: Effort = Effort(),
    slowdown: float = 0.0,
    spoil: bool = False,
    keep: Path | None = None,
    turns: Callable[[float], Iterable[float]] | None = None,
) -> dict:
    """The record (dict) of a case: raw wall and device times in ns, rate, spread, counters, peer, digest.

    `slowdown` stretches every run by that fraction and `spoil` changes a pixel: the harness tests itself with them.
    `keep` is a file for the checked picture (.npy), where the case has one. turns(seconds of a run) yields, whenever
    it is this process's turn, for how many seconds to time runs; without it there is one turn of `effort`.
    """
    digest = checked(case, spoil, keep)
    counters, alone = counted(case)
    warm_up(case, effort)
    if slowdown:
        case = replace(case, run=stretched(case, slowdown))
    if turns is None:
        wall, device = timed(case, effort.seconds, effort.least)
        counts = [len(wall)]
    else:
        wall, device, counts = [], [], []
        start = time.perf_counter()
        case.run()
        case.finish()
        for seconds in turns(time.perf_counter() - start):
            warm_up(case, replace(effort, warm=seconds * WARM_SHARE))
            more_wall, more_device = timed(case, seconds, 1)
            wall, device, counts = wall + more_wall, device + more_device, [*counts, len(more_wall)]
    return record(case, wall, device if alone else None, counters, digest) | {"turns": counts}


def timed(case: Case, seconds: float, least: int) -> tuple[list[int], list[int]]:
    """Wall and device times in ns of every run, to completion: at least `least` runs and `seconds`."""
    wall, device = [], []
    start, clock = time.perf_counter(), time.perf_counter_ns
    while len(wall) < least or (time.perf_counter() - start < seconds and len(wall) < MOST_RUNS):
        if case.prepare:
            case.prepare()
            case.finish()
        began = clock()
        device_seconds = case.device.time_seconds(case.run)
        case.finish()
        wall.append(clock() - began)
        device.append(round(device_seconds * 1e9))
    return wall, device


def checked(case: Case, spoil: bool = False, keep: Path | None = None) -> str | None:
    """The digest of the checked result as hexadecimal text; WrongResult when the check says no."""
    try:
        result = case.check()
    except AssertionError as error:
        raise WrongResult(f"bench: {case.name}: the result is wrong: {error or 'an assertion failed'}") from error
    if result is None:
        return None
    if spoil:
        result = spoiled(result)
    if isinstance(result, np.ndarray):
        if keep:
            with open(keep, "wb") as file:
                np.save(file, result, allow_pickle=False)
        result = repr((result.shape, result.dtype.str)).encode() + np.ascontiguousarray(result).tobytes()
    return hashlib.sha256(result).hexdigest()


def spoiled(result):
    """The result with its middle byte or pixel changed visibly."""
    if isinstance(result, bytes):
        middle = len(result) // 2
        return result[:middle] + bytes([result[middle] ^ 1]) + result[middle + 1 :]
    result = result.copy()
    middle = tuple(n // 2 for n in result.shape[:-1]) + (0,)
    result[middle] = 0 if result[middle] > 0.25 else 1
    return result


def stretched(case: Case, slowdown: float):
    """The run of a case, completed, and then that share of the run's time spent by the processor, on every clock."""
    share = slowdown * min(case.device.time_seconds(case.run) for _ in range(2))

    def run():
        case.run()
        case.finish()
        until = time.thread_time() + share
        while time.thread_time() < until:
            pass

    return run


def warm_up(case: Case, effort: Effort) -> None:
    """Runs until caches and clocks have settled; check and counters have run the case twice before."""
    start = time.perf_counter()
    while time.perf_counter() - start < effort.warm:
        if case.prepare:
            case.prepare()
        case.run()
        case.finish()


def counted(case: Case) -> tuple[dict[str, int], bool]:
    """Launches, uploads and the like of one run on all devices: exact numbers that must not rise.

    And whether only `case.device` was used, so that its clock tells the whole.
    """
    if case.prepare:
        case.prepare()
    devices = case.devices()
    before = [device.counters.as_dict() for device in devices]
    case.run()
    case.finish()
    after = [device.counters.as_dict() for device in devices]
    deltas = [{k: last[k] - first[k] for k in last} for first, last in zip(before, after, strict=True)]
    total = {name: sum(delta.get(name, 0) for delta in deltas) for delta in deltas for name in delta}
    return total | (case.counters() if case.counters else {}), not any(any(d.values()) for d in deltas[1:])


def record(case: Case, wall: list[int], device: list[int] | None, counters: dict, digest: str | None) -> dict:
    """The JSON line of a case. Rates are by the device's clock where it is trusted, else by the wall's.

    `device` is None where several devices worked: no one clock tells the whole then.
    """
    trusted = device is not None and bool(getattr(case.device, "has_reliable_timer", False)) and min(device) > 0
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
        "p90_ms": float(np.percentile(times, 90)) / 1e6 if len(times) >= 64 else None,
        "p99_ms": float(np.percentile(times, 99)) / 1e6 if len(times) >= 662 else None,
        "max_ms": float(times.max()) / 1e6,
        "low_rate": slowest_percent(times, case.work),
        "runs": len(times),
        "counters": counters,
        "digest": digest,
        "device": case.device.name,
        "driver": getattr(case.device, "driver", ""),
        "wall_ns": wall,
        "device_ns": device if trusted else None,
        **case.facts,
    }
    if case.peer:
        seconds = case.peer()
        answer["peer"] = {"name": case.peer_name, "seconds": seconds, "ratio": seconds / (middle / 1e9)}
    return answer


def slowest_percent(times: np.ndarray, work: float) -> float | None:
    """The rate over the slowest 1 % of the time (the "1 % low"); None below the 662 runs that a P99 needs."""
    if len(times) < 662:
        return None
    slow = np.sort(times)[::-1]
    count = int(np.searchsorted(np.cumsum(slow), slow.sum() * 0.01)) + 1
    return work * count / slow[:count].sum() * 1e9
