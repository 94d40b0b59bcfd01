"""macOS and Windows: names that they lack occur in renderer/host.py alone, and the program runs without them.

No such machine is at hand: their absences are simulated here, and .github/workflows/ci.yml tries the real ones.
"""

import ast
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from renderer.paths import ROOT
from tests.children import python_path
from tests.test_architecture import nodes_of

FILES = sorted(ROOT.glob("renderer/**/*.py"))
POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_NAMES = {  # of modules that all systems have
    "os": {
        "chown", "chroot", "confstr", "eventfd", "fchdir", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid",
        "getgid", "getgroups", "getloadavg", "getpgid", "getpgrp", "getpriority", "getresuid", "getsid", "getuid",
        "getxattr", "initgroups", "killpg", "lchown", "lockf", "major", "makedev", "memfd_create", "minor", "mkfifo",
        "mknod", "nice", "openpty", "pathconf", "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate",
        "posix_spawn", "pread", "preadv", "pwrite", "pwritev", "readv", "register_at_fork", "sched_getaffinity",
        "sched_setaffinity", "sched_yield", "sendfile", "setgid", "setpgid", "setpriority", "setsid", "setuid",
        "setxattr", "statvfs", "sync", "sysconf", "tcgetpgrp", "ttyname", "uname", "wait3", "wait4", "waitid", "writev",
        "O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_SYNC",
        "WEXITSTATUS", "WIFEXITED", "WIFSIGNALED", "WTERMSIG",
    },
    "signal": {
        "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGTSTP",
        "SIGUSR1", "SIGUSR2", "SIGWINCH", "ITIMER_REAL", "alarm", "getitimer", "pause", "pthread_kill",
        "pthread_sigmask", "setitimer", "siginterrupt", "sigwait",
    },
    "select": {"epoll", "poll"},
    "socket": {"AF_UNIX", "SO_REUSEPORT"},
    "time": {"tzset", "clock_gettime"},
}  # fmt: skip


def posix_names_of(path):
    """Uses of what only POSIX has, as "module.name"."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & POSIX_MODULES
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names} & POSIX_NAMES.get(node.module, set())
            found |= {f"{node.module}.{name}" for name in names} | {node.module} & POSIX_MODULES
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in POSIX_NAMES.get(node.value.id, ()):
                found.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.keyword) and node.arg in ("preexec_fn", "pass_fds"):
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.startswith(("/proc/", "/sys/", "/tmp")):
                found.add(node.value)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_only_posix_has_is_used_in_one_module(path):
    if path.name != "host.py":
        assert posix_names_of(path) - {"/proc/driver/nvidia/version"} == set()


def test_the_search_finds_what_it_looks_for():
    assert {"os.getuid", "os.sysconf", "fcntl", "signal.setitimer", "/proc/meminfo"} <= posix_names_of(
        ROOT / "renderer/host.py"
    )


SIMULATION = """
import builtins, importlib, json, os, pkgutil, shutil, signal, sys
import ctypes, moderngl, numpy, PIL.Image, pyopencl, scipy.linalg, subprocess, tempfile, multiprocessing.connection
system, names, modules, folder = json.loads(sys.argv[1])
packages = "imgui_bundle matplotlib.pyplot OpenEXR distributed av glfw rich.live cuda.bindings.nvrtc"
for package in packages.split():
    try: importlib.import_module(package)
    except ImportError: pass
for module in modules: sys.modules[module] = None
shutil._use_fd_functions = False  # they need os.O_NONBLOCK from Python 3.12 on
os.add_dll_directory = getattr(os, "add_dll_directory", lambda folder: None)
shutil._win_path_needs_curdir = lambda *words: False  # it calls Windows
real_open = builtins.open
def open_elsewhere(file, *words, **named):
    if isinstance(file, str) and file.startswith(("/proc/", "/sys/")): raise FileNotFoundError(2, "no such file", file)
    return real_open(file, *words, **named)
builtins.open = open_elsewhere
sys.platform = system
for module, missing in names.items():
    for name in missing:
        if hasattr(sys.modules[module], name): delattr(sys.modules[module], name)
import renderer
for module in pkgutil.walk_packages(renderer.__path__, "renderer."):
    if not module.name.endswith("__main__"): importlib.import_module(module.name)
import renderer.gpu.gl as gl
from renderer.bench.machine import host, machine_state
from renderer.gpu.gl import has_display
from renderer.host import IS_LINUX, available_cores, available_memory, total_memory
assert not IS_LINUX and has_display() and available_cores() > 0 and available_memory() > 1 << 28
facts = host() | machine_state()
assert facts["load"] == 0 and facts["cpu_throttles"] == 0 and facts["cores"] > 0, facts
assert gl.HEADLESS == [{}]
gl.HEADLESS = [{"backend": "egl"}]  # in place of CGL and WGL
from renderer.cli import main
os.chdir(folder)
for words in json.loads(sys.argv[2]):
    code = main(words)
    assert code == 0, (words, code)
"""


@pytest.mark.parametrize("system", [pytest.param("darwin", marks=pytest.mark.slow), "win32"])
def test_the_program_runs_without_what_other_systems_lack(system, tmp_path, shared_gl):
    np.save(tmp_path / "x.npy", np.arange(1000, dtype="f4"))
    # What the standard library of this system itself needs stays.
    kept = {
        "os": {
            "WEXITSTATUS",
            "WIFEXITED",
            "WIFSIGNALED",
            "WTERMSIG",
            "O_CLOEXEC",
            "setsid",
            "posix_spawn",
            "statvfs",
            "uname",
            *(["getuid"] if system == "darwin" else []),
        }
    }
    names = {module: sorted(found - kept.get(module, set())) for module, found in POSIX_NAMES.items()}
    names["socket"] = []
    setting = json.dumps([system, names, sorted(POSIX_MODULES - {"posix"}), str(tmp_path)])
    commands = [
        ["export", "mandelbrot", "-o", "m.png", "--size", "32x24", "--samples", "1"],
        ["export", "m.png", "-o", "again.png"],
        ["bench", "list"],
    ]
    if os.path.exists("/etc/OpenCL/vendors/pocl.icd"):
        commands.append(["sum", "x.npy", "--device", "cpu"])
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": python_path()}
    words = [sys.executable, "-c", SIMULATION, setting, json.dumps(commands)]
    answer = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert answer.returncode == 0, answer.stderr[-3000:]
    assert (tmp_path / "again.png").exists() and "Traceback" not in answer.stderr
