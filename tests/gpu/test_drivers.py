"""Faults of compute drivers: each is named and skipped, nothing of it ends the program; see test_faults.py."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from renderer.errors import KernelError, UnavailableError
from renderer.gpu import verdicts
from renderer.gpu.cache import cache_folder, read_entry, write_entry
from renderer.gpu.cuda import ahead as cuda_ahead
from renderer.gpu.cuda import device as cuda
from renderer.gpu.cuda import driver as cuda_driver
from renderer.gpu.cuda import nvrtc
from renderer.gpu.opencl import icd, pocl_cache
from renderer.gpu.opencl.pocl_cache import PoclCache
from renderer.gpu.verdicts import Verdict
from renderer.paths import ROOT
from renderer.system.trial import Trial
from tests.gpu.faults import POCL, driver, library, needs_compiler

FAULTS = {  # code that runs when the library is loaded, and what is said about it
    "aborts": ('fprintf(stderr, "no room\\n"); abort();', "(SIGABRT: no room)"),
    "crashes": ("*(volatile int *)0 = 1;", "(SIGSEGV)"),
    "exits": ("exit(7);", "(exit code 7)"),
    "ends": ('puts("[null, \\"\\"]"); exit(0);', "(exit code 0)"),
    "kills": ("raise(9);", "(SIGKILL)"),
    "signals": ("raise(40);", "(signal 40)"),
    "hangs": ("fork(); for (;;) pause();", "does not answer within"),
    "idle": (";", "is no OpenCL driver"),
}


@pytest.fixture
def vendors(tmp_path, monkeypatch):
    """A folder of drivers, with PoCL where it is installed; and a cache of its own."""
    folder = tmp_path / "vendors"
    folder.mkdir()
    if POCL.exists():
        shutil.copy(POCL, folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RAYFOLD_CACHE", raising=False)
    monkeypatch.setenv("POCL_CACHE_DIR", os.environ.get("POCL_CACHE_DIR", str(tmp_path / "pocl")))
    monkeypatch.setenv("OCL_ICD_VENDORS", str(folder))
    monkeypatch.setenv("PYOPENCL_HOME", os.environ.get("PYOPENCL_HOME", ""))
    icd._select.cache_clear()
    verdicts._was_killed.cache_clear()
    yield folder
    icd._select.cache_clear()
    verdicts._was_killed.cache_clear()


@needs_compiler
def test_drivers_that_die_or_hang_are_named_and_skipped(vendors, monkeypatch, capsys):
    for name, (code, _) in FAULTS.items():
        driver(vendors, name, code)
    monkeypatch.setattr("renderer.system.trial.TIMEOUT_SECONDS", 5.0)
    rejected = icd.select_drivers()
    assert rejected.keys() == {str(vendors / f"{name}.icd") for name in FAULTS}
    printed = capsys.readouterr().err
    for name, (_, told) in FAULTS.items():
        verdict = rejected[str(vendors / f"{name}.icd")]
        assert told in verdict.reason and verdict.harmless == (name == "idle")
        assert (f"{name}.icd is skipped" in printed) == (name != "idle")
    assert Path(os.environ["OCL_ICD_VENDORS"]) != vendors
    assert [path.name for path in icd.icd_files()] == (["pocl.icd"] if POCL.exists() else [])


@needs_compiler
def test_verdicts_are_remembered_until_a_file_changes(vendors, monkeypatch):
    driver(vendors, "bad", "abort();")
    tried = []
    run = icd._try
    monkeypatch.setattr(icd, "_try", lambda path: tried.append(path.name) or run(path))
    drivers, bad = icd.icd_files(), vendors / "bad.icd"
    first = icd._verdicts(drivers)
    assert sorted(tried) == [path.name for path in drivers] and first[bad].reason
    tried.clear()
    assert icd._verdicts(drivers) == first and not tried
    driver(vendors, "bad", ";")
    assert "is no OpenCL driver" in icd._verdicts(drivers)[bad].reason and tried == ["bad.icd"]
    key = next(iter(json.loads(verdicts._record_path().read_text())))
    for garbage in ("", "[]", "null", '{"a": 1}', "\0", "[" * 100000, json.dumps({key: [1, 2, 3]}), "1" * 5000):
        tried.clear()
        verdicts._record_path().write_text(garbage)
        icd._verdicts([bad])
        assert tried == ["bad.icd"], garbage
    monkeypatch.setattr(verdicts, "RETRY_SECONDS", -1.0)  # a driver that failed gets another chance
    tried.clear()
    icd._verdicts([bad])
    assert tried == ["bad.icd"]


def test_the_newest_verdicts_are_kept(vendors, monkeypatch):
    monkeypatch.setattr(verdicts, "MAX_VERDICTS", 3)
    for number in range(6):
        verdicts.recall_verdicts({f"key {number}": lambda number=number: Verdict("z" * (6 - number), True)})
    tried = []
    for number in range(6):
        verdicts.recall_verdicts({f"key {number}": lambda number=number: tried.append(number) or Verdict("")})
    assert tried[0] == 0 and set(tried) >= {0, 1, 2} and verdicts.recall_verdicts({"key 5": lambda: Verdict("")})


def test_a_killed_process_makes_the_next_one_try_again(vendors):
    code = "import os; from renderer.gpu.verdicts import Verdict, recall_verdicts; tried = []; "
    code += "recall_verdicts({'key': lambda: tried.append(1) or Verdict('')}); print(len(tried), flush=True); "

    def tries(end):
        words = [sys.executable, "-c", code + end]
        return int(subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout)

    assert [tries("") for _ in range(2)] == [1, 0]
    assert [tries("os.abort()"), tries(""), tries("")] == [0, 1, 0]


def test_odd_driver_files_do_no_harm(vendors):
    (vendors / "empty.icd").touch()
    (vendors / "none.icd").write_text("/no/such/library.so\n")
    (vendors / "noise.icd").write_bytes(os.urandom(10_000))
    (vendors / "zeros.icd").write_bytes(bytes(1 << 22))
    (vendors / "garbage.icd").write_text(f"{vendors / 'garbage.so'}\n")
    (vendors / "garbage.so").write_bytes(os.urandom(10_000))
    (vendors / "folder.icd").mkdir()
    os.mkfifo(vendors / "pipe.icd")  # these drivers are of POSIX systems
    (vendors / "loop.icd").symlink_to(vendors / "loop.icd")
    rejected = icd.select_drivers()
    assert len(rejected) == 8 and all(verdict.harmless for verdict in rejected.values())
    assert "cannot be loaded" in rejected[str(vendors / "none.icd")].reason
    assert "file too short" in (text := rejected[str(vendors / "garbage.icd")].reason) or "invalid ELF" in text
    assert "names no library" in rejected[str(vendors / "empty.icd")].reason


def test_the_variable_names_drivers_as_the_loader_reads_it(vendors, monkeypatch, tmp_path):
    (vendors / "one.icd").write_text("libone.so\n")
    found = set(vendors.glob("*.icd"))
    assert set(icd.icd_files()) == found
    own = tmp_path / "pyopencl/.libs"
    own.mkdir(parents=True)
    (own / "wheel.icd").write_text("libwheel.so\n")
    monkeypatch.setattr(icd, "_pyopencl_folder", lambda: own)
    assert set(icd.icd_files()) == {own / "wheel.icd", *found}
    monkeypatch.setenv("OCL_ICD_VENDORS", str(vendors / "one.icd"))
    assert icd.icd_files() == [vendors / "one.icd"] and icd.driver_library(vendors / "one.icd") == "libone.so"
    monkeypatch.setenv("OCL_ICD_VENDORS", "libpocl.so.2")
    assert icd.icd_files() == [Path("libpocl.so.2")] and icd.driver_library(Path("libpocl.so.2")) == "libpocl.so.2"
    monkeypatch.setattr(icd, "SYSTEM_FOLDER", vendors)
    monkeypatch.setenv("OCL_ICD_VENDORS", "one.icd")
    assert icd.icd_files() == [vendors / "one.icd"]
    monkeypatch.delenv("OCL_ICD_VENDORS")
    assert set(icd.icd_files()) == {own / "wheel.icd", *found}


@needs_compiler
def test_a_driver_in_pyopencls_own_folder_is_left_out(vendors, monkeypatch, tmp_path):
    own = tmp_path / "pyopencl/.libs"
    own.parent.mkdir()
    driver(own, "bad", "abort();")
    monkeypatch.setattr(icd, "_pyopencl_folder", lambda: own)
    assert list(icd.select_drivers()) == [str(own / "bad.icd")]
    assert not Path(os.environ["PYOPENCL_HOME"], ".libs").exists()


def test_off_linux_all_drivers_are_tried_together(monkeypatch):
    monkeypatch.setattr(icd, "IS_LINUX", False)
    monkeypatch.setattr(icd, "run_trial", lambda *words, **named: Trial(None, "it ends (SIGABRT)"))
    monkeypatch.setattr(icd, "recall_verdicts", lambda tests, again: {key: test() for key, test in tests.items()})
    icd._select.cache_clear()
    try:
        from renderer.gpu.opencl import device as opencl

        monkeypatch.setattr(opencl.cl, "get_platforms", lambda: pytest.fail("the drivers are loaded"))
        devices, reason = opencl.list_devices()
    finally:
        icd._select.cache_clear()
    assert devices == [] and "the system's OpenCL: it ends (SIGABRT)" in reason


def test_a_machine_that_starts_no_processes_still_computes(vendors, monkeypatch):
    def fail(*words, **named):
        raise OSError("no more processes")

    monkeypatch.setattr(icd, "run_trial", fail)
    assert icd.select_drivers() == {}


@needs_compiler
def test_a_cuda_driver_that_dies_or_lacks_is_named(vendors, monkeypatch, tmp_path):
    monkeypatch.setattr(cuda, "NVIDIA_CONTROL_FILES", (tmp_path,))
    monkeypatch.setattr(cuda, "cu", object())
    monkeypatch.setattr(cuda.nvrtc, "why_missing", lambda: "")
    if Path("/dev/nvidiactl").exists():
        pytest.skip("an NVIDIA driver is installed here, which is found before another")
    if cuda_driver.cu is not None:
        devices, reason = cuda.list_devices()
        assert devices == [] and reason.startswith("NVIDIA's driver library is missing: ") and "\n" not in reason
    library(tmp_path / "libcuda.so.1", "abort();")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setattr(cuda_ahead, "_driver_version", lambda: "another")
    if cuda_driver.cu is not None:
        devices, reason = cuda.list_devices()
        assert devices == [] and "the CUDA driver is skipped: it ends the process that loads it (SIGABRT)" in reason


def test_pocl_cache_keeps_what_is_whole_and_drops_what_is_old(tmp_path, monkeypatch):
    monkeypatch.setenv("RAYFOLD_CACHE", str(tmp_path))
    monkeypatch.setattr(pocl_cache, "MAX_PROGRAMS", 30)
    pocl = PoclCache()
    for number in range(50):
        program = pocl.folder / f"{number % 26:02d}" / f"PROGRAM{number}"
        program.mkdir(parents=True)
        (program / "program.bc").write_bytes(b"code %d" % number)
        (program / "last_accessed").touch()
        os.utime(program / "last_accessed", (number, number))
    pocl.record()
    pocl.check()
    programs = {path.name for path in pocl.folder.glob("??/*")}
    assert programs == {f"PROGRAM{number}" for number in range(20, 50)}
    (pocl.folder / "20" / "PROGRAM20" / "program.bc").write_bytes(b"")
    (pocl.folder / "21" / "PROGRAM21" / "program.bc").write_bytes(b"edoc 21")  # as long as before
    os.utime(pocl.folder / "22" / "PROGRAM22" / "program.bc")  # copied, but the same
    new = pocl.folder / "99" / "PROGRAM99"
    new.mkdir(parents=True)
    (new / "program.bc").write_bytes(b"of another process, which may be at work")
    pocl.check(alone=False)
    assert programs - {path.name for path in pocl.folder.glob("??/*")} == {"PROGRAM20", "PROGRAM21"} and new.exists()
    pocl.check()
    assert not new.exists()
    programs = {path.name for path in pocl.folder.glob("??/*")}
    pocl._opened = 1000.0  # later than all of them were used
    new.mkdir(parents=True)
    (new / "program.bc").write_bytes(b"new")
    (new / "last_accessed").touch()
    pocl.record()
    pocl.check()
    assert {path.name for path in pocl.folder.glob("??/*")} == programs | {"PROGRAM99"}


def test_entries_carry_a_checksum(tmp_path):
    path = tmp_path / "a" / "entry"
    assert read_entry(path) is None
    write_entry(path, b"machine code")
    assert read_entry(path) == b"machine code"
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:40] + b"?" + whole[41:], b"x" * 100, whole + b"\0"):
        path.write_bytes(damaged)
        assert read_entry(path) is None
    assert [file.name for file in path.parent.iterdir()] == ["entry"]
    write_entry(tmp_path / "a" / "entry" / "below a file", b"")  # cannot be written: no error


@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="NVRTC is not installed here")
def test_a_damaged_cubin_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setenv("RAYFOLD_CACHE", str(tmp_path))
    text = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
    code = nvrtc.compile_cubin(text, "sm_90")
    (entry,) = cache_folder().glob("cubin/*")
    entry.write_bytes(entry.read_bytes()[:-7])
    assert nvrtc.compile_cubin(text, "sm_90") == code and read_entry(entry) == code
    with pytest.raises(KernelError, match="broken.cu: NVRTC"):
        nvrtc.compile_cubin("not C", "sm_90", "broken.cu")
    assert len(list(cache_folder().glob("cubin/*"))) == 1


def test_binaries_of_drivers_without_a_cache_are_kept_and_heal(device, tmp_path, monkeypatch):
    from renderer.gpu.opencl import device as opencl
    from renderer.gpu.opening import self_test

    if not isinstance(device, opencl.OpenclDevice):
        pytest.skip("of OpenCL drivers")
    monkeypatch.setenv("RAYFOLD_CACHE", str(tmp_path))
    monkeypatch.setattr(opencl, "has_src_build_cache", lambda handle: False)
    for damage in (None, lambda data: data, lambda data: data[:-9], lambda data: b"", os.urandom):
        for entry in tmp_path.glob("opencl/*"):
            entry.write_bytes(damage(entry.read_bytes()) if damage is not os.urandom else os.urandom(999))
        monkeypatch.setattr(device, "_programs", {})
        self_test(device)
        (entry,) = tmp_path.glob("opencl/*")
        assert read_entry(entry)
    write_entry(entry, b"whole, but of another driver")
    monkeypatch.setattr(device, "_programs", {})
    self_test(device)


def test_no_folder_at_all_is_one_sentence(monkeypatch, tmp_path):
    from renderer import paths

    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/a")
    monkeypatch.setattr(paths.tempfile, "gettempdir", lambda: "/dev/null")
    paths._folder_of_process.cache_clear()
    with pytest.raises(UnavailableError, match="set TMPDIR"):
        paths.ensure_cache()
