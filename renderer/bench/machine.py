"""State of the machine and commit of the code, for the records of `bench`; detection of throttling.

Sources are renderer.host (CPU, memory, load), nvidia-smi (GPU clocks, temperatures, throttle reasons) and git.
"""

import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np

from renderer.host import available_cores, cpu_throttles, load_average, processor_model, total_memory
from renderer.paths import ROOT
from renderer.plain import Json

# Bits of NVIDIA's throttle reasons that make a time worthless: hardware slowdown, both thermal ones, power brake.
THROTTLED = 0x8 | 0x20 | 0x40 | 0x80
GPU_QUERY = "clocks.sm,temperature.gpu,clocks_throttle_reasons.active"


def host() -> Json:
    """Returns the machine for the header of a record file: CPU, memory (bytes), OS, versions, and its present load.

    `load` is the load average of the last minute, as in machine_state().
    """
    return {
        "cpu": processor_model() or platform.processor(),
        "cores": available_cores(),
        "memory": total_memory(),
        "os": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "load": load_average(),
    }


def machine_state(gpu: bool = True) -> Json:
    """Returns the load, the CPU's throttle events since it was started and, with `gpu`, the state of each GPU."""
    state = {"load": load_average(), "cpu_throttles": cpu_throttles()}
    return state | ({"gpus": _gpus()} if gpu else {})


def _gpus() -> list[Json]:
    """Asks nvidia-smi for each GPU's SM clock (MHz), temperature (degrees Celsius) and throttle bits.

    Returns an empty list without nvidia-smi.
    """
    tool = shutil.which("nvidia-smi")
    if not tool:
        return []
    command = [tool, f"--query-gpu={GPU_QUERY}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return read_gpus(answer.stdout) if answer.returncode == 0 else []


def read_gpus(text: str) -> list[Json]:
    """Parses nvidia-smi's answer to GPU_QUERY, one GPU a line; a value that the GPU does not report becomes None."""
    gpus = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 3:
            clock, celsius = (int(cell) if cell.isdigit() else None for cell in cells[:2])
            bits = int(cells[2], 16) if cells[2].startswith("0x") else 0
            gpus.append({"clock_mhz": clock, "celsius": celsius, "throttled": bits & THROTTLED})
    return gpus


def machine_fault(before: Json, after: Json) -> str:
    """Returns the reason why times taken between the two states cannot be trusted, or an empty text if they can."""
    if after.get("cpu_throttles", 0) > before.get("cpu_throttles", 0):
        return "the CPU was throttled by heat"
    for index, gpu in enumerate(after.get("gpus", ())):
        if gpu["throttled"]:
            return f"GPU {index} was throttled (reasons {gpu['throttled']:#x}, {gpu['celsius']} degrees)"
    return ""


def commit_info(tree: Path = ROOT) -> Json:
    """Returns the commit of a source tree, whether its files have changed since, and a digest of the changes.

    The environment variable RAYFOLD_COMMIT takes precedence over git; without either the commit is "unknown".
    """
    without_git = {"commit": os.environ.get("RAYFOLD_COMMIT") or "unknown", "dirty": False}
    if without_git["commit"] != "unknown":
        return without_git
    try:
        if Path(git("rev-parse", "--show-toplevel", tree=tree)).resolve() != tree.resolve():
            return without_git  # a copy inside another repository
        sha, changes = git("rev-parse", "HEAD", tree=tree), diff_digest(tree)
    except (OSError, subprocess.CalledProcessError):
        return without_git
    return {"commit": sha, "dirty": bool(changes)} | ({"diff_digest": changes} if changes else {})


def diff_digest(tree: Path = ROOT) -> str:
    """Returns a digest of all changes since the commit, with new files that git does not ignore; empty without any."""
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


def git(*arguments: str, tree: Path = ROOT) -> str:
    """Runs a git command in the folder `tree` and returns its standard output; CalledProcessError if it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # set in hooks
    answer: str = subprocess.check_output(
        ["git", *arguments], cwd=tree, env=environment, stderr=subprocess.PIPE, text=True, errors="surrogateescape"
    )
    return answer.strip()
