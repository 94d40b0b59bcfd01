"""Faults of drivers and caches: each is named, skipped or healed, and nothing of it ends the program."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from renderer.errors import KernelError
from renderer.gpu import icd, nvrtc, trial
from renderer.gpu.cache import cache_folder, read_entry, write_entry
from renderer.gpu.pocl_cache import MAX_PROGRAMS, PoclCache
from renderer.paths import ROOT

POCL = Path("/etc/OpenCL/vendors/pocl.icd")
needs_pocl = pytest.mark.skipif(not POCL.exists(), reason="PoCL is not installed here")
needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc here")
FAULTS = {  # code that runs when the library is loaded, and what is said about it
    "aborts": ("abort();", "SIGABRT"),
    "crashes": ("*(volatile int *)0 = 1;", "SIGSEGV"),
    "exits": ("exit(7);", "it ends its process (7)"),
    "kills": ("raise(9);", "SIGKILL"),
    "hangs": ("for (;;) pause();", "does not answer within"),
    "idle": (";", "shows no device"),
}


def driver(folder, name, code):
    """An installable client driver whose library runs `code` when it is loaded."""
    folder.mkdir(exist_ok=True)
    text = "".join(f"#include <{name}.h>\n" for name in ("stdlib", "signal", "unistd"))
    text += f"__attribute__((constructor)) void start(void) {{ {code} }}"
    library = folder / f"lib{name}.so"
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=text, text=True, check=True)
    (folder / f"{name}.icd").write_text(f"{library}\n")


def environment(tmp_path, **more):
    bare = {name: value for name, value in os.environ.items() if name not in ("POCL_CACHE_DIR", "RAYFOLD_CACHE")}
    return {**bare, "XDG_CACHE_HOME": str(tmp_path / "cache"), "OCL_ICD_VENDORS": str(tmp_path / "vendors"), **more}


@pytest.fixture
def command(tmp_path):
    """A command that runs a small kernel on the CPU."""
    np.save(tmp_path / "x.npy", np.arange(1000, dtype="f4"))
    return ["sum", tmp_path / "x.npy", "--device", "cpu"]


def rayfold(*words, **more):
    words = [sys.executable, "main.py", *map(str, words)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, **more)


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
    icd.select_drivers.cache_clear()
    yield folder
    icd.select_drivers.cache_clear()


@needs_compiler
def test_drivers_that_die_or_hang_are_named_and_skipped(vendors, monkeypatch, capsys):
    for name, (code, _) in FAULTS.items():
        driver(vendors, name, code)
    monkeypatch.setattr(trial, "TIMEOUT_SECONDS", 8.0)
    rejected = icd.select_drivers()
    assert rejected.keys() == {str(vendors / f"{name}.icd") for name in FAULTS}
    printed = capsys.readouterr().err
    for name, (_, told) in FAULTS.items():
        assert told in rejected[str(vendors / f"{name}.icd")]
        assert (f"{name}.icd is skipped" in printed) == (name != "idle")
    assert os.environ["OCL_ICD_VENDORS"] != str(vendors)
    assert [path.name for path in icd.icd_files()] == (["pocl.icd"] if POCL.exists() else [])


@needs_compiler
def test_verdicts_are_remembered_until_a_file_changes(vendors, monkeypatch):
    driver(vendors, "bad", "abort();")
    tried = []
    probe = icd._probe
    monkeypatch.setattr(icd, "_probe", lambda path: tried.append(path.name) or probe(path))
    drivers = icd.icd_files()
    first = icd._reasons(drivers)
    assert sorted(tried) == [path.name for path in drivers] and first[vendors / "bad.icd"]
    tried.clear()
    assert icd._reasons(drivers) == first and not tried
    driver(vendors, "bad", ";")
    assert icd._reasons(drivers)[vendors / "bad.icd"] == icd.NO_DEVICE and tried == ["bad.icd"]
    for garbage in ("", "[]", "null", '{"a": 1}', "\0", json.dumps({icd._key(vendors / "bad.icd"): [1, 2]})):
        tried.clear()
        icd._record_path().write_text(garbage)
        icd._reasons([vendors / "bad.icd"])
        assert tried == ["bad.icd"], garbage
    monkeypatch.setattr(icd, "RETRY_SECONDS", -1.0)  # a driver that failed gets another chance
    tried.clear()
    icd._reasons([vendors / "bad.icd"])
    assert tried == ["bad.icd"]


def test_odd_driver_files_do_no_harm(vendors):
    (vendors / "empty.icd").touch()
    (vendors / "none.icd").write_text("/no/such/library.so\n")
    (vendors / "noise.icd").write_bytes(os.urandom(10_000))
    (vendors / "zeros.icd").write_bytes(bytes(1 << 22))
    (vendors / "folder.icd").mkdir()
    os.mkfifo(vendors / "pipe.icd")
    (vendors / "loop.icd").symlink_to(vendors / "loop.icd")
    rejected = icd.select_drivers()
    assert len(rejected) == 7  # ocl-icd itself crashes on zeros
    assert {reason for path, reason in rejected.items() if "zeros" not in path} == {icd.NO_DEVICE}


@needs_compiler
@needs_pocl
def test_a_command_runs_beside_a_driver_that_aborts_and_doctor_names_it(tmp_path, command):
    driver(tmp_path / "vendors", "bad", "abort();")
    shutil.copy(POCL, tmp_path / "vendors")
    env = environment(tmp_path)
    answer = rayfold(*command, env=env)
    assert answer.returncode == 0 and float(answer.stdout) == 499500
    assert "bad.icd is skipped: it ends the process that loads it (SIGABRT)" in answer.stderr
    doctor = rayfold("doctor", "--json", env=env)
    rows = {row["name"]: row for row in json.loads(doctor.stdout)["devices"]}
    assert doctor.returncode == 0 and not rows[str(tmp_path / "vendors/bad.icd")]["ok"]
    assert any(row["ok"] and row["device_type"] == "cpu" for row in rows.values())
    (tmp_path / "vendors/bad.icd").unlink()  # doctor's advice: without it, nothing is said
    assert "skipped" not in rayfold(*command, env=env).stderr


@needs_compiler
def test_with_no_driver_left_the_reason_is_that_of_the_drivers(tmp_path, command):
    driver(tmp_path / "vendors", "bad", "abort();")
    answer = rayfold(*command, env=environment(tmp_path))
    assert (
        answer.returncode == 4 and "SIGABRT" in answer.stderr and "no OpenCL driver is installed" not in answer.stderr
    )
    (tmp_path / "vendors/bad.icd").unlink()
    answer = rayfold(*command, env=environment(tmp_path))
    assert answer.returncode == 4 and "no OpenCL driver is installed" in answer.stderr


@needs_pocl
@pytest.mark.parametrize("damage", ["truncated", "garbage", "unrecorded"])
def test_damaged_entries_of_pocl_heal(tmp_path, command, damage):
    (tmp_path / "vendors").mkdir()
    shutil.copy(POCL, tmp_path / "vendors")
    env = environment(tmp_path)
    assert rayfold(*command, env=env).returncode == 0
    folder = tmp_path / "cache/rayfold/pocl-1"
    libraries = list(folder.rglob("*.so"))
    assert libraries
    for path in libraries:
        path.write_bytes(path.read_bytes()[:100] if damage != "garbage" else os.urandom(100))
    if damage == "unrecorded":  # as a process leaves it that was killed
        (folder / "files.json").write_text("{" if len(libraries) % 2 else "[]")
    answer = rayfold(*command, env=env)
    assert answer.returncode == 0, answer
    assert float(answer.stdout) == 499500
    assert all(path.stat().st_size > 1000 for path in folder.rglob("*.so"))


def test_pocl_cache_keeps_what_is_whole_and_drops_what_is_old(tmp_path, monkeypatch):
    monkeypatch.setenv("RAYFOLD_CACHE", str(tmp_path))
    cache = PoclCache()
    for number in range(MAX_PROGRAMS + 20):
        program = cache.folder / f"{number % 26:02d}" / f"PROGRAM{number}"
        program.mkdir(parents=True)
        (program / "program.bc").write_bytes(b"code %d" % number)
        (program / "last_accessed").touch()
        os.utime(program / "last_accessed", (number, number))
    cache.record()
    cache.check()
    programs = {path.name for path in cache.folder.glob("??/*")}
    assert programs == {f"PROGRAM{number}" for number in range(20, MAX_PROGRAMS + 20)}
    (cache.folder / "20" / "PROGRAM20" / "program.bc").write_bytes(b"")
    (cache.folder / "21" / "PROGRAM21" / "program.bc").write_bytes(b"edoc 21")  # as long as before
    cache.check()
    assert programs - {path.name for path in cache.folder.glob("??/*")} == {"PROGRAM20", "PROGRAM21"}


@needs_pocl
@pytest.mark.parametrize("fault", ["file", "link", "occupied"])
def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, command, fault):
    (tmp_path / "vendors").mkdir()
    shutil.copy(POCL, tmp_path / "vendors")
    cache = tmp_path / "cache"
    if fault == "file":
        cache.write_text("a file where the folder should be")
    elif fault == "link":
        cache.symlink_to(tmp_path / "gone" / "cache")
    else:
        (cache / "rayfold/icd.json").mkdir(parents=True)
        (cache / "rayfold/pocl-1").touch()
    answer = rayfold(*command, env=environment(tmp_path))
    assert answer.returncode == 0 and float(answer.stdout) == 499500, answer
    assert "Traceback" not in answer.stderr


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


@pytest.mark.skipif(nvrtc.nvrtc is None, reason="NVRTC is not installed here")
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
