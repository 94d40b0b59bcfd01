"""OpenCL drivers, tried in child processes before this one loads them: a driver that aborts or hangs is left out.

OpenCL's loader (ocl-icd in PyOpenCL's wheels for Linux) loads every installable client driver, which a file *.icd
names, into the process that asks for platforms; one that aborts takes the process with it. So each is tried alone: it
lists its devices and runs a kernel on each. Verdicts are remembered until the driver's files change, bad ones for an
hour; `rayfold doctor` tries all again. Where one is left out, a folder with the others takes the place of the system's.
Other systems keep a list of their own, which is tried as a whole.
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
from renderer.gpu.icd_probe import NO_DEVICE
from renderer.gpu.pocl_cache import PoclCache
from renderer.gpu.trial import Verdict, recall_verdicts, run_trial, state_of_files
from renderer.host import IS_LINUX, processors

VENDOR_VARIABLES = "OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"  # they replace the system's folder
SYSTEM_FOLDER = Path("/etc/OpenCL/vendors")
VARIABLES = "CL_", "HWLOC_", "LD_", "POCL_AFFINITY", "POCL_DEVICES", "POCL_MAX"  # that drivers obey
SYSTEM_LIST = Path("the system's OpenCL")  # in place of a driver where there are no *.icd files
TRIAL = "renderer.gpu.icd_probe:try_devices"

_selecting = threading.Lock()  # held while drivers are tried: who asks meanwhile waits for the verdicts


def icd_files() -> list[Path]:
    """The drivers that the loader would load: the files *.icd of its folder and of PyOpenCL's own (`pyopencl[pocl]`).

    As libOpenCL(7) has it, OCL_ICD_VENDORS is a folder, an .icd file, one in the system's folder, or a library.
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
    """Leaves out the drivers that do not work, for this process and its children; {path of *.icd: why}."""
    with _selecting:
        return _select()


@cache
def _select() -> dict[str, Verdict]:
    pocl = PoclCache()
    pocl.open()
    verdicts = _verdicts(icd_files())
    died = [driver for driver, verdict in verdicts.items() if _kills(verdict) and "pocl" in driver.name]
    if died and pocl.discard():  # a damaged entry kills the driver that reads it
        verdicts |= _verdicts(died, again=True)
    rejected = {driver: verdict for driver, verdict in verdicts.items() if verdict.reason}
    if rejected and IS_LINUX:
        folder = _folder_of([driver for driver in verdicts if driver not in rejected])
        os.environ["OCL_ICD_VENDORS"] = f"{folder}{os.sep}"  # Khronos's older loaders want the separator
        # Set to PyOpenCL's own folder when it is imported; read at the first question for platforms.
        os.environ["PYOPENCL_HOME"] = str(folder)
    for path, verdict in rejected.items():
        if _kills(verdict):
            print(f"rayfold: the OpenCL driver {path} is skipped: {verdict.reason}", file=sys.stderr)
    return {str(path): verdict for path, verdict in rejected.items()}


def _kills(verdict: Verdict) -> bool:
    return bool(verdict.reason) and not verdict.harmless


def _folder_of(drivers: list[Path]) -> Path:
    """A folder with these drivers alone."""
    name = hashlib.sha256("\n".join(map(str, drivers)).encode(errors="surrogateescape")).hexdigest()[:16]
    folder = cache_folder() / "icd" / name
    for driver in drivers:
        write_atomically(folder / driver.with_suffix(".icd").name, f"{library_of(driver)}\n".encode())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        complete = len(list(folder.iterdir())) == len(drivers)
    except OSError:
        complete = False
    if not complete:
        raise UnavailableError(f"{folder}: cannot be written, so that OpenCL's broken drivers cannot be left out")
    return folder


def library_of(driver: Path) -> str:
    """The library that an .icd file names; `driver` itself where it is no such file."""
    if driver.suffix != ".icd":
        return str(driver)
    if not driver.is_file():  # a pipe would never end
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
    """What the verdict on a driver depends on: the machine, its file and its library."""
    library, multiarch = library_of(driver), sysconfig.get_config_var("MULTIARCH")
    folders = ["", "/usr/lib", "/usr/lib64", f"/usr/lib/{multiarch}", "/usr/local/lib"]
    folders += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    files = [driver, *(Path(folder, library) for folder in folders if "\0" not in library)]
    variables = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)]
    machine = platform.node(), platform.release(), processors()
    return " ".join([*machine, str(driver), library, state_of_files(*files), *variables])


def _try(driver: Path) -> Verdict:
    """Loads one driver in a child and uses its devices."""
    library, environment = library_of(driver), {}
    advice = f"Remove {driver}, or install its package again"
    if driver is not SYSTEM_LIST:
        # ocl-icd loads a library that is named so; Khronos's loader finds no folder and takes the second
        environment = {"OCL_ICD_VENDORS": library, "OCL_ICD_FILENAMES": library}
        if not library or "\0" in library:
            return Verdict(f"it names no library. {advice}", harmless=True)
    try:
        trial = run_trial(TRIAL, "" if driver is SYSTEM_LIST else library, environment=environment)
    except OSError:  # no process can be started: no fault of the driver
        return Verdict("")
    if trial.reason:
        no_sys = IS_LINUX and not processors()
        return Verdict(f"{trial.reason}. {'Mount /sys, which it may need' if no_sys else advice}")
    reason = trial.answer["reason"]
    return Verdict(f"{reason}. {advice}" if reason and reason != NO_DEVICE else reason, trial.answer["harmless"])
