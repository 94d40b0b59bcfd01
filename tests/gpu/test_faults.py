"""Faults of a machine: a command meets each, `rayfold doctor` names it, and what doctor advises makes both work again.

| fault | where tested |
| --- | --- |
| 1 to 6 | an OpenCL driver aborts, crashes, exits with 7, exits with 0, is killed, hangs: test_drivers.py and DRIVERS |
| 7 | a driver's library is garbage or missing, its file is odd: test_drivers.py and DRIVERS |
| 8 | no driver is installed; 9 | a variable hides the drivers: test_three_causes |
| 10 to 12 | an entry of PoCL's cache is truncated, garbage, not recorded: test_damaged_entries_of_pocl |
| 13 | an entry of the CUDA cache is damaged: test_drivers.py; 14 the CUDA driver is missing or dies: test_drivers.py |
| 15 | databases of PyOpenCL and pytools are garbage; 16 markers of flame kernels; 17 verdicts: test_damaged_files |
| 18 | the cache folder cannot be written; 19 it is read-only; 20 it is full: test_cache_folders |
| 21 | there is no HOME; 22 no temporary folder; 23 no /sys, no /proc |
| 24 | EGL's vendor file is garbage; 25 EGL's library aborts; 26 GL's driver is missing; 27 garbage: GL_FAULTS |
| 28 | the locale has no UTF-8; 29 files have no locks; 30 the current folder holds a random.py |
"""

import errno
import os
import re
import shutil
import subprocess
import sys

import pytest

from renderer.gpu.opencl import pocl_cache
from renderer.gpu.opencl.pocl_cache import PoclCache
from renderer.host import SharedLock, locked
from renderer.paths import ROOT
from renderer.system.install import OPENCL, system_advice
from tests.children import python_path
from tests.gpu.faults import Machine, driver, library, needs_compiler, needs_mounts, needs_pocl, says

DRIVERS = {"aborts": ("abort();", "SIGABRT"), "ends": ("exit(0);", "exit code 0"), "idle": (";", "is no OpenCL driver")}
slow = pytest.mark.slow
pytestmark = needs_pocl


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory):
    """A cache that holds the programs of both commands."""
    machine = Machine(tmp_path_factory.mktemp("warm"))
    assert machine.works()
    return machine.cache


@pytest.fixture
def machine(tmp_path, warm_cache):
    return Machine(tmp_path, warm_cache)


@needs_compiler
@pytest.mark.parametrize("fault", ["aborts", pytest.param("ends", marks=slow), pytest.param("idle", marks=slow)])
def test_broken_drivers(machine, fault):
    code, told = DRIVERS[fault]
    driver(machine.vendors, "bad", code)
    answer = machine.compute()
    assert answer.returncode == 0 and float(answer.stdout) == 499500
    assert (told in answer.stderr) == (fault != "idle")  # nothing is said about a driver that does no harm
    facts = machine.doctor()
    assert told in says(facts) and f"Remove {machine.vendors / 'bad.icd'}" in says(facts)
    assert any(row["ok"] and row["device_type"] == "cpu" for row in facts["devices"])
    (machine.vendors / "bad.icd").unlink()
    assert machine.works("compute")


@needs_compiler
@pytest.mark.slow
def test_doctor_ends_in_time_beside_drivers_that_hang(machine):
    driver(machine.vendors, "slow", "for (;;) pause();")
    facts = machine.doctor()  # within 65 s
    assert "slow.icd" in says(facts) and "does not answer within" in says(facts)
    assert facts["gl"]["ok"] and any(row["ok"] for row in facts["devices"])


@needs_compiler
def test_three_causes_have_three_sentences(machine):
    (machine.vendors / "pocl.icd").unlink()
    answer = machine.compute()
    assert answer.returncode == 4 and f"OCL_ICD_VENDORS={machine.vendors} points: unset it" in answer.stderr
    assert "unset it" in says(machine.doctor())
    driver(machine.vendors, "idle", ";")
    answer = machine.compute()
    assert answer.returncode == 4 and "is no OpenCL driver" in answer.stderr
    driver(machine.vendors, "idle", "abort();")
    answer = machine.compute()
    assert answer.returncode == 4 and "SIGABRT" in answer.stderr and "is installed" not in answer.stderr
    machine.environment.pop("OCL_ICD_VENDORS")
    assert machine.works("compute")


def test_pyopencl_keeps_no_cache_of_its_own():
    """A database and pickles without checksums; test_damaged_files_in_the_cache_do_no_harm damages them."""
    program = "import renderer.gpu.opencl.device, pyopencl; print(pyopencl._PYOPENCL_NO_CACHE)"
    environment = {key: value for key, value in os.environ.items() if key != "PYOPENCL_NO_CACHE"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.stdout == "True\n", done


@needs_mounts
def test_no_driver_is_installed_is_said_when_it_is_true(machine):
    machine.environment.pop("OCL_ICD_VENDORS")
    machine.mounts = "mount -t tmpfs x /etc/OpenCL"
    answer = machine.compute()
    assert answer.returncode == 4 and f"no OpenCL driver is installed. {system_advice(OPENCL)}" in answer.stderr
    assert "opencl: no OpenCL driver is installed. " in says(machine.doctor())
    machine.mounts = ""  # the package is there again
    assert machine.works("compute")


@pytest.mark.parametrize(
    "damage", ["truncated", *(pytest.param(name, marks=slow) for name in ("garbage", "unrecorded", "bitcode"))]
)
def test_damaged_entries_of_pocl_heal(machine, damage):
    folder = machine.cache / "rayfold" / PoclCache().folder.name
    files = list(folder.rglob("*.bc" if damage == "bitcode" else "*.so"))
    assert files
    for path in files:
        whole = path.read_bytes()
        path.write_bytes(os.urandom(len(whole)) if damage == "garbage" else whole[: len(whole) // 2])
    if damage == "unrecorded":  # as a process leaves it that was killed
        (folder / "files.json").write_text("[" * 100000)
    assert machine.works("compute")
    assert all(path.stat().st_size > 1000 for path in folder.rglob("*.so"))


@pytest.mark.slow
def test_damaged_files_in_the_cache_do_no_harm(machine):
    for name in ("pytools/a.sqlite", "pyopencl/b", "rayfold/verdicts.json", "rayfold/icd/x", "mesa_shader_cache/index"):
        path = machine.cache / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(5000))
    for path in (path for folder in ("pytools", "mesa_shader_cache") for path in (machine.cache / folder).rglob("*")):
        if path.is_file():
            path.write_bytes(os.urandom(5000))
    shutil.rmtree(machine.cache / "rayfold/generic_flame_kernels", ignore_errors=True)
    (machine.cache / "rayfold/generic_flame_kernels").write_bytes(b"a file where a folder should be")
    (machine.cache / "rayfold/running").mkdir(exist_ok=True)
    (machine.cache / "rayfold/running/not a number").touch()
    assert machine.works()
    fern = machine.rayfold("export", "fern", "-o", "f.png", "--size", "32x24", "--samples", "1")
    assert fern.returncode == 0, fern


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["file", pytest.param("link", marks=slow), pytest.param("occupied", marks=slow)])
def test_cache_folders_that_cannot_be_written(machine, fault):
    shutil.rmtree(machine.cache)
    if fault == "file":
        machine.cache.write_text("a file where the folder should be")
    elif fault == "link":
        machine.cache.symlink_to(machine.folder / "gone" / "cache")
        (machine.folder / "gone").write_text("")
    else:
        (machine.cache / "rayfold/verdicts.json").mkdir(parents=True)
        (machine.cache / "rayfold" / PoclCache().folder.name).touch()
        (machine.cache / "rayfold/opencl").touch()
    answer = machine.compute()
    assert answer.returncode == 0 and float(answer.stdout) == 499500, answer
    assert ("cannot be used" in answer.stderr) == (fault != "occupied") and "Traceback" not in answer.stderr
    if fault != "occupied":
        assert "Set XDG_CACHE_HOME to a folder that can be written" in says(machine.doctor())
        machine.environment["XDG_CACHE_HOME"] = str(machine.folder / "better")
        assert machine.works("draw")


@pytest.mark.slow
@needs_mounts
@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param("ro", "Read-only", marks=slow),
        ("size=8m", "8 MiB are free, 64 are needed"),
    ],
)
def test_cache_folders_that_are_read_only_or_full(machine, options, told):
    shutil.rmtree(machine.cache)
    machine.cache.mkdir()
    machine.mounts = f"mount -t tmpfs -o {options} x {machine.cache}"
    answer = machine.compute()
    assert answer.returncode == 0 and told in answer.stderr, answer
    advice = says(machine.doctor())
    assert told in advice and "Set XDG_CACHE_HOME to a folder that can be written" in advice
    machine.environment["XDG_CACHE_HOME"] = str(machine.folder / "better")
    assert machine.works("draw")


def test_without_a_home_or_a_temporary_folder(machine):
    (machine.folder / "sitecustomize.py").write_text(  # a system without /tmp and without an entry for this user
        "import tempfile, os.path\n"
        "tempfile._candidate_tempdir_list = lambda: ['/dev/null']\n"
        "os.path.expanduser = lambda path: path\n"
    )
    machine.environment["PYTHONPATH"] = os.pathsep.join([str(machine.folder), python_path()])
    assert machine.works("draw")  # temporary files lie in the cache then
    machine.environment |= {"XDG_CACHE_HOME": "", "HOME": "/dev/null/none"}
    (machine.folder / "~").write_text("no home")
    answer = machine.compute()
    assert answer.returncode == 4 and "set TMPDIR" in answer.stderr and answer.stderr.count("\n") == 1, answer
    (machine.folder / "sitecustomize.py").unlink()
    machine.environment["TMPDIR"] = str(machine.folder)
    assert "kernels go to" in machine.compute().stderr


@pytest.mark.slow
@needs_mounts
def test_without_sys_and_proc(machine):
    machine.mounts = "mount -t tmpfs x /sys; mount -t tmpfs x /proc"
    answer = machine.compute()
    assert answer.returncode in (0, 4) and "Traceback" not in answer.stderr, answer
    if answer.returncode:
        assert "Mount /sys" in answer.stderr and "Mount /sys" in says(machine.doctor())
    assert machine.draw().returncode == 0
    machine.mounts = ""
    assert machine.works("compute")


GL_FAULTS = {  # variables, {folder} filled in, and what is said
    "vendor file": ({"__EGL_VENDOR_LIBRARY_FILENAMES": "{folder}/garbage.json"}, "no headless GL"),
    "vendor library": ({"__EGL_VENDOR_LIBRARY_FILENAMES": "{folder}/aborts.json"}, "SIGABRT"),
    "no driver": ({"LIBGL_DRIVERS_PATH": "{folder}/none"}, "no headless GL"),
    "garbage driver": ({"LIBGL_DRIVERS_PATH": "{folder}"}, "no headless GL"),
    "odd driver": ({"GALLIUM_DRIVER": "nonsense"}, "no headless GL"),
    "odd version": ({"MESA_GL_VERSION_OVERRIDE": "1.1"}, "no headless GL"),
}


@needs_compiler
@pytest.mark.parametrize(
    "fault",
    [name if name == "vendor library" else pytest.param(name, marks=slow) for name in GL_FAULTS],
)
def test_faults_of_gl(machine, fault):
    variables, told = GL_FAULTS[fault]
    (machine.folder / "garbage.json").write_bytes(os.urandom(3000))
    (machine.folder / "swrast_dri.so").write_bytes(os.urandom(3000))
    name = library(machine.folder / "libaborts.so", "abort();")
    (machine.folder / "aborts.json").write_text(f'{{"file_format_version":"1.0.0","ICD":{{"library_path":"{name}"}}}}')
    machine.environment |= {name: value.format(folder=machine.folder) for name, value in variables.items()}
    facts = machine.doctor()
    if facts["gl"]["ok"]:
        pytest.skip("this system's GL does not obey the variable")
    (variable,) = variables
    answer = machine.draw()
    assert answer.returncode == 4 and told in answer.stderr and answer.stderr.count("\n") == 1, answer
    assert told in says(facts) and re.search(rf"Unset [^|]*\b{variable}=", says(facts))
    machine.environment.pop(variable)
    assert machine.works("draw")


@pytest.mark.slow
def test_a_locale_without_utf8(machine):
    machine.environment |= {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    name = "Grüße.png"
    answer = machine.rayfold("export", "mandelbrot", "-o", name, "--size", "32x24", "--samples", "1")
    assert answer.returncode == 0 and "Traceback" not in answer.stderr, answer
    assert (machine.folder / name).exists()
    missing = machine.rayfold("export", "Grüße.toml", "-o", "a.png")
    assert missing.returncode == 5 and missing.stderr.startswith("rayfold: Gr") and missing.stderr.count("\n") == 1
    assert machine.doctor()["gl"]["ok"]


@pytest.mark.slow
def test_a_module_in_the_current_folder_is_not_pythons(machine):
    shutil.rmtree(machine.cache / "rayfold")  # no verdict is known
    for name in ("random", "json", "numpy", "renderer"):
        (machine.folder / f"{name}.py").write_text("raise SystemExit('a stray module was run')\n")
    assert machine.works("compute")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_file_systems_without_locks(tmp_path, monkeypatch, number):
    from renderer import host

    def fail(*words):
        raise OSError(number, "no locks")

    monkeypatch.setattr(host.fcntl, "flock", fail)
    monkeypatch.setattr(host.fcntl, "lockf", fail)
    lock = SharedLock(tmp_path / "lock")
    assert lock.alone  # so that damage heals there, too
    lock.share()
    with locked(tmp_path / "other"):
        pass
    monkeypatch.setenv("RAYFOLD_CACHE", str(tmp_path))
    monkeypatch.delenv("POCL_CACHE_DIR", raising=False)
    monkeypatch.setattr(pocl_cache.atexit, "register", lambda function: None)
    pocl = PoclCache()
    program = pocl.folder / "AB" / "CD"
    program.mkdir(parents=True)
    (program / "program.bc").write_bytes(b"damaged")
    pocl.open()
    assert os.environ["POCL_CACHE_DIR"] == str(pocl.folder) and not program.exists()
    monkeypatch.delenv("POCL_CACHE_DIR")


def test_a_lock_whose_owner_is_stopped_is_not_waited_for_long(tmp_path):
    code = "from renderer.host import locked; import pathlib, sys\nwith locked(pathlib.Path(sys.argv[1])):"
    code += "\n    print('mine', flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, str(tmp_path / "lock")]
    owner = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout.readline() == "mine\n"
    with pytest.raises(ValueError, match="the body runs"), locked(tmp_path / "lock", seconds=0.1):
        raise ValueError("the body runs")
    owner.communicate("")
