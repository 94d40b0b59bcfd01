"""Tries OpenCL drivers in child processes before this process loads them, and excludes drivers that abort or hang.

OpenCL's loader (ocl-icd in PyOpenCL's wheels for Linux) loads every installable client driver (a *.icd file names its
library) into the process that lists platforms; a driver that aborts takes the process with it. So each driver is first
tried alone in a child process, which lists its devices and runs a kernel on each. A verdict is kept until the driver's
files change, a bad one for an hour; `rayfold doctor` repeats all trials. If a driver is excluded, the loader is pointed
to a folder with the remaining ones. Systems other than Linux have no *.icd files; their drivers are tried as one.
"""

import hashlib
import importlib.util
import os
import platform
import sys
import sysconfig
import threading
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from renderer.errors import UnavailableError
from renderer.gpu.cache import cache_folder, write_atomically
from renderer.gpu.opencl.icd_probe import NO_DEVICE
from renderer.gpu.opencl.pocl_cache import PoclCache
from renderer.gpu.verdicts import Verdict, recall_verdicts, state_of_files
from renderer.host import IS_LINUX, processors
from renderer.system.trial import run_trial

VENDOR_VARIABLES = "OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"  # environment variables that replace the system's folder
SYSTEM_FOLDER = Path("/etc/OpenCL/vendors")
VARIABLES = "CL_", "HWLOC_", "LD_", "POCL_AFFINITY", "POCL_DEVICES", "POCL_MAX"  # prefixes of drivers' variables
SYSTEM_LIST = Path("the system's OpenCL")  # stands for all drivers where there are no *.icd files
TRIAL = "renderer.gpu.opencl.icd_probe:try_devices"

_selecting = threading.Lock()  # held while drivers are tried, so that other threads wait for the verdicts


def icd_files() -> list[Path]:
    """Lists the *.icd files that the loader would load, of its folder and of PyOpenCL's (`pyopencl[pocl]`).

    OCL_ICD_VENDORS may be a folder, an .icd file, the name of one in the system's folder, or a library (libOpenCL(7)).
    """
    if not IS_LINUX:
        return [SYSTEM_LIST]
    named = next((value for name in VENDOR_VARIABLES if (value := os.environ.get(name))), str(SYSTEM_FOLDER))
    with suppress(OSError):
        if Path(named).is_dir():
            return sorted([*Path(named).glob("*.icd"), *_pyopencl_folder().glob("*.icd")])
        inside = SYSTEM_FOLDER / named
        if named == str(SYSTEM_FOLDER):
            return sorted(_pyopencl_folder().glob("*.icd"))
        return [inside if "/" not in named and inside.is_file() else Path(named)]
    return []


def _pyopencl_folder() -> Path:
    found = importlib.util.find_spec("pyopencl")
    return Path(found.origin or "").parent / ".libs" if found else Path("/nonexistent")


def select_drivers() -> dict[str, Verdict]:
    """Tries all drivers and excludes broken ones for this process and its children; returns verdicts by *.icd path."""
    with _selecting:
        return _select()


@cache
def _select() -> dict[str, Verdict]:
    """select_drivers(), once a process."""
    pocl = PoclCache()
    pocl.open()
    verdicts = _verdicts(icd_files())
    died = [driver for driver, verdict in verdicts.items() if _kills(verdict) and "pocl" in driver.name]
    if died and pocl.discard():  # a damaged entry of PoCL's cache kills the driver
        verdicts |= _verdicts(died, again=True)
    rejected = {driver: verdict for driver, verdict in verdicts.items() if verdict.reason}
    if rejected and IS_LINUX:
        folder = _driver_folder([driver for driver in verdicts if driver not in rejected])
        os.environ["OCL_ICD_VENDORS"] = f"{folder}{os.sep}"  # older Khronos loaders need the separator
        # PyOpenCL sets the variable to its own folder on import and reads it when platforms are first listed.
        os.environ["PYOPENCL_HOME"] = str(folder)
    for path, verdict in rejected.items():
        if _kills(verdict):
            print(f"rayfold: the OpenCL driver {path} is skipped: {verdict.reason}", file=sys.stderr)
    return {str(path): verdict for path, verdict in rejected.items()}


def _kills(verdict: Verdict) -> bool:
    return bool(verdict.reason) and not verdict.harmless


def _driver_folder(drivers: list[Path]) -> Path:
    """Creates a folder with the *.icd files of these drivers only."""
    name = hashlib.sha256("\n".join(map(str, drivers)).encode(errors="surrogateescape")).hexdigest()[:16]
    folder = cache_folder() / "icd" / name
    for driver in drivers:
        write_atomically(folder / driver.with_suffix(".icd").name, f"{driver_library(driver)}\n".encode())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        complete = len(list(folder.iterdir())) == len(drivers)
    except OSError:
        complete = False
    if not complete:
        raise UnavailableError(f"{folder}: cannot be written, so that OpenCL's broken drivers cannot be left out")
    return folder


def driver_library(driver: Path) -> str:
    """Returns the library that an .icd file names; `driver` itself if it is not such a file."""
    if driver.suffix != ".icd":
        return str(driver)
    if not driver.is_file():  # reading a pipe would never end
        return ""
    try:
        with open(driver, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip().partition("\n")[0]
    except OSError:
        return ""


def _verdicts(drivers: list[Path], again: bool = False) -> dict[Path, Verdict]:
    keys = {driver: _key(driver) for driver in drivers}
    found = recall_verdicts({key: partial(_try, driver) for driver, key in keys.items()}, again)
    return {driver: found[key] for driver, key in keys.items()}


def _key(driver: Path) -> str:
    """Cache key of a driver's verdict: the machine, the driver's file and its library."""
    library, multiarch = driver_library(driver), sysconfig.get_config_var("MULTIARCH")
    folders = ["", "/usr/lib", "/usr/lib64", f"/usr/lib/{multiarch}", "/usr/local/lib"]
    folders += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    files = [driver, *(Path(folder, library) for folder in folders if "\0" not in library)]
    variables = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)]
    machine = platform.node(), platform.release(), processors()
    return " ".join([*machine, str(driver), library, state_of_files(*files), *variables])


def _try(driver: Path) -> Verdict:
    """Loads one driver in a child process and uses its devices."""
    library, environment = driver_library(driver), {}
    advice = f"Remove {driver}, or install its package again"
    if driver is not SYSTEM_LIST:
        # ocl-icd loads the library that the first variable names; Khronos's loader needs the second variable.
        environment = {"OCL_ICD_VENDORS": library, "OCL_ICD_FILENAMES": library}
        if not library or "\0" in library:
            return Verdict(f"it names no library. {advice}", harmless=True)
    trial = run_trial(TRIAL, "" if driver is SYSTEM_LIST else library, environment=environment)
    if trial.reason:
        no_sys = IS_LINUX and not processors()  # processors() reads /sys, as PoCL does
        return Verdict(f"{trial.reason}. {'Mount /sys, which it may need' if no_sys else advice}")
    reason = trial.answer["reason"]
    return Verdict(f"{reason}. {advice}" if reason and reason != NO_DEVICE else reason, trial.answer["harmless"])
