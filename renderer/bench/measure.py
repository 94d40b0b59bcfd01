"""One case timed: check, warm up, at least ten runs to completion, raw times kept; and what machine this was."""

import os
import platform
import subprocess
import time

import numpy as np

from renderer.bench.cases import ROOT, Case

LEAST_RUNS = 10
MOST_RUNS = 2000
WARM_SECONDS = 0.2
WARM_RUNS = 3


def measure(case: Case, seconds: float = 1.0, slowdown: float = 0.0, spoil: bool = False) -> dict:
    """The record of a case: raw wall and device times in ns, rate, spread, counters of one run, peer, picture digest.

    `slowdown` stretches every run by that fraction and `spoil` changes the digest: the harness tests itself with them.
    """
    digest = case.check()
    if spoil and digest is not None:
        digest = bytes([digest[0] ^ 1]) + digest[1:]
    warm_up(case)
    counters = counted(case)
    wall, device = [], []
    start = time.perf_counter()
    while len(wall) < LEAST_RUNS or (time.perf_counter() - start < seconds and len(wall) < MOST_RUNS):
        began = time.perf_counter_ns()
        device_seconds = case.device.seconds(case.run)
        case.device.finish()
        if slowdown:
            stretch(began, slowdown)
        wall.append(time.perf_counter_ns() - began)
        device.append(round(device_seconds * 1e9))
    return record(case, wall, device, counters, digest)


def warm_up(case: Case) -> None:
    """Runs until caches and clocks have settled."""
    start, runs = time.perf_counter(), 0
    while runs < WARM_RUNS or time.perf_counter() - start < WARM_SECONDS:
        case.run()
        case.device.finish()
        runs += 1


def counted(case: Case) -> dict[str, int]:
    """Launches, uploads and the like of one run: exact numbers that must not rise."""
    before = case.device.counters.as_dict()
    case.run()
    case.device.finish()
    after = case.device.counters.as_dict()
    more = case.counters() if case.counters else {}
    return {name: after[name] - before[name] for name in after} | more


def stretch(began: int, slowdown: float) -> None:
    """Spins until the run has taken 1 + slowdown times as long."""
    until = began + (time.perf_counter_ns() - began) * (1 + slowdown)
    while time.perf_counter_ns() < until:
        pass


def record(case: Case, wall: list[int], device: list[int], counters: dict, digest: bytes | None) -> dict:
    """The JSON line of a case. Rates are by the device's clock where it is trusted, else by the wall's."""
    trusted = bool(getattr(case.device, "trusted_clock", False))
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
        "max_ms": float(times.max()) / 1e6,
        "low_rate": slowest_percent(times, case.work),
        "runs": len(times),
        "counters": counters,
        "digest": digest.hex() if digest is not None else None,
        "device": case.device.name,
        "wall_ns": wall,
        "device_ns": device,
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


def host() -> dict:
    """The machine, for the header of a record file."""
    cpu = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), cpu)
    except OSError:
        pass
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "os": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "load": load,
    }


def commit(tree=ROOT) -> dict:
    """The commit of a tree and whether its tracked files differ from it; RAYFOLD_COMMIT names it where git is not."""
    named = os.environ.get("RAYFOLD_COMMIT")
    if named:
        return {"commit": named, "dirty": False}
    try:
        sha = git("rev-parse", "HEAD", tree=tree)
        return {"commit": sha, "dirty": bool(git("status", "--porcelain", "--untracked-files=no", tree=tree))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": "unknown", "dirty": False}


def git(*words: str, tree=ROOT) -> str:
    """What git prints, run in `tree`."""
    answer = subprocess.run(["git", *words], cwd=tree, capture_output=True, text=True, check=True)
    return answer.stdout.strip()
