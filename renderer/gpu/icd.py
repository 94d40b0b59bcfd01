"""OpenCL drivers, tried in child processes before this one loads them: a driver that aborts or hangs is left out.

OpenCL's loader (ocl-icd; Khronos's on other systems) loads every installable client driver, which a file *.icd names,
into the process that asks for platforms; one that aborts takes the process with it. Each driver is tried alone by
`python -m renderer.gpu.icd_probe`: it lists its devices and runs a kernel on each. A driver that works is remembered
until its files change; others are tried again after an hour, and by `rayfold doctor`. Where one is left out, a folder
with the others takes the place of the system's (OCL_ICD_VENDORS).
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path

from renderer.gpu.cache import cache_folder, write_atomically
from renderer.gpu.icd_probe import NO_DEVICE
from renderer.gpu.pocl_cache import PoclCache
from renderer.paths import temporary_directory

VENDOR_FOLDERS = "OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"  # variables that replace the system's folder
SYSTEM_FOLDER = Path("/etc/OpenCL/vendors")
TIMEOUT_SECONDS = 30.0  # a CPU's driver compiles its first kernel in one
RETRY_SECONDS = 3600.0


def icd_files() -> list[Path]:
    """The drivers that the loader would load: the files *.icd of the folder that it reads. None but on Linux."""
    if not sys.platform.startswith("linux"):
        return []
    folder = next((Path(os.environ[name]) for name in VENDOR_FOLDERS if os.environ.get(name)), SYSTEM_FOLDER)
    with suppress(OSError):
        return [folder] if folder.is_file() else sorted(folder.glob("*.icd"))
    return []


def forget_verdicts() -> None:
    """Makes the next select_drivers() try every driver again."""
    select_drivers.cache_clear()
    with suppress(OSError):
        _record_path().unlink()


@cache
def select_drivers() -> dict[str, str]:
    """Leaves out the drivers that do not work, for this process and its children; {path of *.icd: why}."""
    pocl = PoclCache()
    pocl.open()
    drivers = icd_files()
    rejected = {}
    if drivers:
        reasons = _reasons(drivers)
        died = [driver for driver, reason in reasons.items() if reason and "pocl" in driver.name]
        if died and pocl.discard():  # a damaged entry kills the driver that reads it
            reasons |= _reasons(died, probe_again=True)
        rejected = {str(driver): reason for driver, reason in reasons.items() if reason}
    if rejected:
        working = [driver for driver in drivers if str(driver) not in rejected]
        os.environ["OCL_ICD_VENDORS"] = str(_folder_of(working))
        for path, reason in rejected.items():
            if reason != NO_DEVICE:  # which is common: drivers are installed without their hardware
                print(f"rayfold: the OpenCL driver {path} is skipped: {reason}", file=sys.stderr)
    return rejected


def _folder_of(drivers: list[Path]) -> Path:
    """A folder with these drivers alone."""
    name = hashlib.sha256("\n".join(map(str, drivers)).encode()).hexdigest()[:16]
    folder = cache_folder() / "icd" / name
    folder.mkdir(parents=True, exist_ok=True)
    for driver in drivers:
        write_atomically(folder / driver.name, f"{_library(driver)}\n".encode())
    return folder


def _record_path() -> Path:
    return cache_folder() / "icd.json"


def _library(driver: Path) -> str:
    """The library that an .icd file names."""
    if not driver.is_file():  # a pipe would never end
        return ""
    try:
        with open(driver, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip().partition("\n")[0]
    except OSError:
        return ""


def _reasons(drivers: list[Path], probe_again: bool = False) -> dict[Path, str]:
    """Why each driver is left out, or "": from the record of earlier probes, else by a probe; all run side by side."""
    try:
        record = json.loads(_record_path().read_text(encoding="utf-8"))
        assert isinstance(record, dict)
    except (OSError, ValueError, AssertionError):
        record = {}
    keys = {driver: _key(driver) for driver in drivers}
    known = {driver: row for driver in drivers if (row := record.get(keys[driver])) and _is_valid(row)}
    wanted = [driver for driver in drivers if probe_again or driver not in known]
    with ThreadPoolExecutor(max(len(wanted), 1)) as pool:
        found = dict(zip(wanted, pool.map(_probe, wanted), strict=True))
    if found:
        record |= {keys[driver]: [reason, time.time()] for driver, reason in found.items()}
        newest = dict(sorted(record.items(), key=lambda item: str(item[1]))[-64:])
        write_atomically(_record_path(), json.dumps(newest).encode())
    return {driver: known[driver][0] if driver not in found else found[driver] for driver in drivers}


def _is_valid(row: object) -> bool:
    """Whether a row of the record, [reason, time], is one and still holds."""
    match row:
        case [str(reason), float(at)]:
            return not reason or time.time() - at < RETRY_SECONDS
    return False


def _key(driver: Path) -> str:
    """What the verdict on a driver depends on: its file and its library."""
    library = _library(driver)
    states = []
    for path in (
        str(driver),
        library,
        *(f"{folder}/{library}" for folder in ("/usr/lib", "/usr/lib/x86_64-linux-gnu")),
    ):
        with suppress(OSError, ValueError):
            status = os.stat(path)
            states.append(f"{status.st_size} {status.st_mtime_ns}")
    return " ".join([str(driver), library, *states])


def _probe(driver: Path) -> str:
    """Why a driver does not work, or ""."""
    with temporary_directory("icd") as folder:
        Path(folder, driver.name).write_text(_library(driver) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "renderer.gpu.icd_probe"]
        path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "OCL_ICD_VENDORS": folder, "PYTHONPATH": path}
        try:
            answer = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"it does not answer within {TIMEOUT_SECONDS:.0f} seconds"
        except OSError as error:
            return f"it cannot be tried: {error.strerror}"
    if answer.returncode < 0:
        return f"it ends the process that loads it ({signal.Signals(-answer.returncode).name})"
    if answer.returncode:
        return answer.stdout.decode(errors="replace").strip()[:300] or f"it ends its process ({answer.returncode})"
    return ""
