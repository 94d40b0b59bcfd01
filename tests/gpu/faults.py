"""What the tests of faults share: broken drivers, commands in a prepared environment, and name spaces of mounts."""

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from renderer.paths import ROOT

POCL = Path("/etc/OpenCL/vendors/pocl.icd")
needs_pocl = pytest.mark.skipif(not POCL.exists(), reason="PoCL is not installed here")
needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc here")


def library(path, code):
    """A shared library that runs `code` when it is loaded."""
    text = "".join(f"#include <{name}.h>\n" for name in ("stdlib", "stdio", "signal", "unistd"))
    text += f"__attribute__((constructor)) void start(void) {{ {code} }}"
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=text, text=True, check=True)
    return path


def driver(folder, name, code):
    """An installable client driver whose library runs `code` when it is loaded."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.icd").write_text(f"{library(folder / f'lib{name}.so', code)}\n")


@cache
def can_mount():
    """Whether this user may mount in a name space of its own."""
    if not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "x", "/mnt"], capture_output=True).returncode == 0


needs_mounts = pytest.mark.skipif(not can_mount(), reason="mounting is not allowed here")


class Machine:
    """Commands in a folder of their own, with a cache and OpenCL drivers of their own; PoCL's programs are there."""

    def __init__(self, folder, warm_cache=None):
        self.folder = folder
        self.cache, self.vendors = folder / "cache", folder / "vendors"
        self.vendors.mkdir()
        if POCL.exists():
            shutil.copy(POCL, self.vendors)
        if warm_cache:
            shutil.copytree(warm_cache, self.cache)
        dropped = ("POCL_CACHE_DIR", "RAYFOLD_CACHE", "PYOPENCL_NO_CACHE", "PYOPENCL_HOME")
        self.environment = {name: value for name, value in os.environ.items() if name not in dropped}
        self.environment |= {"XDG_CACHE_HOME": str(self.cache), "OCL_ICD_VENDORS": str(self.vendors)}
        self.mounts = ""  # commands of a shell that come first
        np.save(folder / "x.npy", np.arange(1000, dtype="f4"))

    def rayfold(self, *words, seconds=120):
        words = [sys.executable, str(ROOT / "main.py"), *map(str, words)]
        if self.mounts:
            words = ["unshare", "-m", "sh", "-c", f'{self.mounts}; exec "$@"', "sh", *words]
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=seconds,
            encoding="utf-8", errors="replace",
        )  # fmt: skip

    def compute(self):
        """A command that runs a small kernel on the processor."""
        return self.rayfold("sum", "x.npy", "--device", "cpu")

    def draw(self):
        """A command that draws by GL."""
        return self.rayfold("export", "mandelbrot", "-o", "m.png", "--size", "32x24", "--samples", "1")

    def doctor(self):
        answer = self.rayfold("doctor", "--json", seconds=65)
        assert answer.returncode in (0, 4) and "Traceback" not in answer.stderr, answer
        return json.loads(answer.stdout)

    def works(self, *commands):
        """Whether "compute" or "draw" does, or both, without a word about faults."""
        for answer in [getattr(self, command)() for command in commands or ("compute", "draw")]:
            assert answer.returncode == 0 and "Traceback" not in answer.stderr, answer
            said = [line for line in answer.stderr.splitlines() if line.startswith("rayfold:")]
            assert all(re.search(r" of \d+ in \d+ s", line) for line in said), (
                answer.stderr
            )  # progress on a slow machine
        return True


def says(facts):
    """All that doctor names: broken devices and drivers, GL, hints."""
    reasons = [f"{row['name']}: {row['reason']}" for row in facts["devices"] if not row["ok"]]
    return " | ".join([*reasons, facts["gl"]["reason"], *facts["install_hints"]])
