"""What a record says about the machine and the code, and whether the machine's times can be trusted."""

import hashlib
import os
import platform
import shutil
import subprocess
from glob import glob
from pathlib import Path

import numpy as np

from renderer.paths import ROOT

# Bits of NVIDIA's throttle reasons that make a time worthless: hardware slowdown, both thermal ones, power brake.
THROTTLED = 0x8 | 0x20 | 0x40 | 0x80
GPU_QUERY = "clocks.sm,temperature.gpu,clocks_throttle_reasons.active"


def host() -> dict:
    """The machine, for the header of a record file."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": _memory(),
        "os": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "load": _load(),
    }


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _load() -> float | None:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def machine_state(gpu: bool = True) -> dict:
    """The machine at this moment: load, throttle events of the CPU so far, and clock, heat and reasons of each GPU."""
    answer = {"load": _load(), "cpu_throttles": _cpu_throttles()}
    return answer | ({"gpus": _gpus()} if gpu else {})


def _cpu_throttles() -> int:
    counts = 0
    for path in glob("/sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count"):
        try:
            counts += int(Path(path).read_text())
        except (OSError, ValueError):
            pass
    return counts


def _gpus() -> list[dict]:
    """SM clock in MHz, temperature in degrees Celsius and throttle bits of each NVIDIA GPU; none without its tool."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return []
    command = [tool, f"--query-gpu={GPU_QUERY}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return read_gpus(answer.stdout) if answer.returncode == 0 else []


def read_gpus(text: str) -> list[dict]:
    """What nvidia-smi printed; a value that this GPU does not report is None."""
    gpus = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 3:
            clock, heat, reasons = cells
            bits = int(reasons, 16) if reasons.startswith("0x") else 0
            gpus.append({"clock_mhz": _number(clock), "celsius": _number(heat), "throttled": bits & THROTTLED})
    return gpus


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def machine_fault(before: dict, after: dict) -> str:
    """Why times taken between the two states cannot be trusted; empty where they can."""
    if after.get("cpu_throttles", 0) > before.get("cpu_throttles", 0):
        return "the CPU was throttled by heat"
    for index, gpu in enumerate(after.get("gpus", ())):
        if gpu["throttled"]:
            return f"GPU {index} was throttled (reasons {gpu['throttled']:#x}, {gpu['celsius']} degrees)"
    return ""


def commit_info(tree: Path = ROOT) -> dict:
    """The commit of a tree, whether its files differ from it, and a digest of the difference.

    RAYFOLD_COMMIT names the commit where git is not; without it the commit is "unknown".
    """
    named = os.environ.get("RAYFOLD_COMMIT")
    if named:
        return {"commit": named, "dirty": False}
    try:
        if Path(git("rev-parse", "--show-toplevel", tree=tree)).resolve() != tree.resolve():
            return {"commit": "unknown", "dirty": False}  # a copy inside another repository
        sha, changes = git("rev-parse", "HEAD", tree=tree), diff_digest(tree)
    except (OSError, subprocess.CalledProcessError):
        return {"commit": "unknown", "dirty": False}
    return {"commit": sha, "dirty": bool(changes)} | ({"diff_digest": changes} if changes else {})


def diff_digest(tree: Path = ROOT) -> str:
    """A digest of what differs from the commit, new files that git does not ignore included; empty for nothing."""
    difference = git("diff", "HEAD", "--binary", tree=tree)
    new = git("ls-files", "--others", "--exclude-standard", "--exclude=/.bench/", "-z", tree=tree).split("\0")
    if not difference and new == [""]:
        return ""
    digest = hashlib.sha256(difference.encode(errors="surrogateescape"))
    for name in filter(None, new):
        digest.update(name.encode(errors="surrogateescape"))
        path = tree / name
        if path.is_file() and not path.is_symlink():
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def git(*words: str, tree: Path = ROOT) -> str:
    """The standard output of a git command run in `tree`; CalledProcessError when it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # set in hooks
    answer = subprocess.run(
        ["git", *words], cwd=tree, env=environment, check=True, capture_output=True, text=True, errors="surrogateescape"
    )
    return answer.stdout.strip()
