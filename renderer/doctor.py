"""`rayfold doctor`: every compute device and GL, self-tested, and the command that installs what is missing.

Each check runs in a separate process and within TOTAL_SECONDS of the start: no driver ends or delays the doctor.
"""

import argparse
import importlib.util
import json
import platform
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu import DeviceContext, self_test
from renderer.gpu.cache import cache_folder
from renderer.gpu.gl import has_display
from renderer.gpu.kernel_source import GeneratedSource
from renderer.gpu.opencl import icd
from renderer.gpu.opening import BACKENDS
from renderer.gpu.verdicts import forget_verdicts
from renderer.paths import CACHE_HINT, cache_problems
from renderer.plain import Json
from renderer.system.install import GL, OPENCL, pip_install, system_install
from renderer.system.process import log_internal_error
from renderer.system.trial import Trial, run_trial

TOTAL_SECONDS = 55.0  # time limit of all checks together

# By the name of an optional module: what needs it, and the package or extra that provides it.
OPTIONAL = {
    "cuda": ("CUDA devices", "cuda"),
    "imgui_bundle": ("controls in the window", "imgui-bundle"),
    "OpenEXR": ("EXR files", "openexr"),
    "av": ("videos", "film"),
    "distributed": ("farms", "distributed"),
    "cryptography": ("farms of local processes", "cryptography"),
    "scipy": ("band LU", "scipy"),
}
# Knuth's 2Sum of a pair (a, b): red is the rounded sum, green its rounding error, which is 0 if the driver simplifies
# (a + b) - a in spite of `precise`. Blue shows only that fma() compiles.
TWO_SUM = """uniform sampler2D image;
out vec4 answer;
void main() {
    precise float a = texelFetch(image, ivec2(0), 0).x, b = texelFetch(image, ivec2(0), 0).y;
    precise float s = a + b;
    precise float t = s - a;
    precise float e = (a - (s - t)) + (b - t);
    answer = vec4(s, e, fma(a, a, -a * a), 0.0);
}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold doctor`."""
    fix_help = "print the commands that install what is missing; run them on y"
    parser.add_argument("--fix", action="store_true", help=fix_help)
    parser.add_argument("--yes", action="store_true", help="of --fix: run them without a question")
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")


def command(args: argparse.Namespace) -> int:
    """`rayfold doctor`: exit code 0 when a picture can be drawn here, 4 when not."""
    deadline = time.monotonic() + TOTAL_SECONDS
    forget_verdicts()  # drivers that failed before are tried again
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(_run_check, "check_gl", deadline=deadline)
        devices, hints = check_devices(pool, deadline)
        gl, reason = waiting.result()
    gl = gl or {"ok": False, "reason": f"the check of GL: {reason}"}
    hints += [gl["reason"]] if not gl["ok"] else []
    hints += [f"{problem}. {CACHE_HINT}" for problem in cache_problems]
    missing = missing_packages()
    hints += [f"{purpose}: {pip_install(package)}" for purpose, package in missing]
    commands = fixes(devices, gl, [package for _, package in missing])
    if args.json:
        versions = {"python": platform.python_version(), "numpy": np.__version__}
        cache = {"folder": str(cache_folder()), "ok": not cache_problems, "reason": "; ".join(cache_problems)}
        answer = {"devices": devices, "gl": gl, "cache": cache, "install_hints": hints, "fix": commands}
        print(json.dumps(answer | versions))
    else:
        print_report(devices, gl, hints)
    if args.fix and not run_fixes(commands, args.yes):
        return UnavailableError.exit_code
    return 0 if any(device["ok"] for device in devices) or gl["ok"] else UnavailableError.exit_code


def _run_check(name: str, *words: str, deadline: float) -> Trial:
    """A function of this module, called in a child process, so that no driver can end the doctor or keep it waiting."""
    try:
        return run_trial(f"renderer.doctor:{name}", *words, seconds=max(deadline - time.monotonic(), 1.0))
    except Exception as error:  # one check that fails must not hide the others
        return Trial(None, log_internal_error(error, f"rayfold doctor, {name}"))


def check_devices(pool: ThreadPoolExecutor, deadline: float) -> tuple[list[Json], list[str]]:
    """Every compute device, self-tested, and a hint for each kind that is missing."""
    check = partial(_run_check, deadline=deadline)
    # Trial: the answer of a child process, None if it failed, and the reason why it did.
    listed = dict(zip(BACKENDS, pool.map(partial(check, "list_backend"), BACKENDS), strict=True))
    hints = [f"{backend}: {trial.reason}" for backend, trial in listed.items() if trial.answer is None]
    rows = []
    for trial in listed.values():
        answer = trial.answer or {"rows": [], "missing": ""}
        rows += answer["rows"]
        hints += [answer["missing"]] if answer["missing"] else []
    devices = [row for row in rows if row["device_id"]]
    trials = pool.map(lambda row: check("try_device", row["kind"], row["device_id"]), devices)
    for row, trial in zip(devices, trials, strict=True):
        row.update(ok=not trial.reason, reason=trial.reason)
    return rows, hints


def list_backend(backend: str) -> Json:
    """The skipped drivers and the devices of a back end, and why there is no device; for a child process."""
    found, missing = import_module(f"renderer.gpu.{backend}.device").list_devices()
    skipped = icd.select_drivers() if backend == "opencl" else {}
    drivers = [_row(path, "", backend, "driver", verdict.reason) for path, verdict in skipped.items()]
    devices = [_row(device.name, device.device_id, backend, device.device_type) for device in found]
    is_hint = missing and "no NVIDIA" not in missing  # a machine without an NVIDIA GPU lacks nothing
    return {"rows": drivers + devices, "missing": f"{backend}: {missing}" if is_hint else ""}


def _row(name: str, device_id: str, kind: str, device_type: str, reason: str = "") -> Json:
    """A row of the report; a driver that is skipped has no device_id."""
    facts = {"name": name, "device_id": device_id, "kind": kind, "device_type": device_type}
    return facts | {"ok": not reason, "reason": reason}


def try_device(backend: str, device_id: str) -> None:
    """Opens a device and tests it; for a child process."""
    found, missing = import_module(f"renderer.gpu.{backend}.device").list_devices()
    device = next((device for device in found if device.device_id == device_id), None)
    if device is None:
        raise UnavailableError(f"it is not shown any more. {missing}")
    self_test(device.open())


def check_gl() -> Json:
    """The headless GL: renderer, limits, and whether float textures and `precise` arithmetic are exact; for a child."""
    try:
        gl = DeviceContext().gl
    except UnavailableError as error:
        return {"ok": False, "reason": str(error)}
    values = np.random.default_rng(3).standard_normal((5, 7, 4)).astype("f4")
    exact = np.array_equal(gl.texture((7, 5)).write(values).read(), values)
    facts = {
        "ok": exact,
        "reason": "" if exact else f"{gl.renderer}: float textures do not keep their bits",
        "renderer": gl.renderer,
        "version": gl.ctx.info["GL_VERSION"],
        "software": gl.software,
        "max_texture_size": gl.max_texture_size,
        "display": has_display(),
    }
    if gl.version >= 400:
        target = gl.texture((1, 1))
        pair = np.array([1.0, 2.0**-30, 0, 0], "f4").reshape(1, 1, 4)
        gl.render_pass(GeneratedSource("two_sum.frag", TWO_SUM))(target, image=gl.texture((1, 1)).write(pair))
        facts["precise_arithmetic"] = bool(target.read()[0, 0, 1] == np.float32(2.0**-30))
    return facts


def missing_packages() -> list[tuple[str, str]]:
    """Missing optional packages: what needs each, and its name for pip_install(); CUDA's only beside a GPU."""
    missing = [name for name in OPTIONAL if not _is_installed(name)]
    if not shutil.which("nvidia-smi"):
        missing = [name for name in missing if name != "cuda"]
    return [OPTIONAL[name] for name in missing]


def fixes(devices: list[Json], gl: Json, packages: list[str]) -> list[str]:
    """The command lines that install what is missing: the system's drivers, then Python packages."""
    kinds = ([] if gl["ok"] else [GL]) + ([] if any(device["ok"] for device in devices) else [OPENCL])
    return ([system_install(*kinds)] if kinds else []) + ([pip_install(*packages)] if packages else [])


def run_fixes(commands: list[str], is_agreed: bool) -> bool:
    """Prints the commands on stderr and runs them if the user agrees; False if one of them fails."""
    print("nothing is missing" if not commands else "these install what is missing:", file=sys.stderr)
    for line in commands:
        print(f"  {line}", file=sys.stderr)
    if commands and not is_agreed and sys.stdin.isatty():
        print("run them? [y/N] ", end="", file=sys.stderr, flush=True)
        is_agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    for line in commands if is_agreed else ():
        try:
            code = subprocess.run(shlex.split(line), stdout=2).returncode
        except OSError as error:
            raise UnavailableError(f"{line}: {error.strerror}: a user with root's rights can run it") from error
        if code:
            print(f"rayfold: {line}: ended with exit code {code}", file=sys.stderr)
            return False
    return True


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # a package that is only half there
        return False


def print_report(devices: list[Json], gl: Json, hints: list[str]) -> None:
    """Prints a line for each device, for GL and for each hint."""
    for device in devices:
        mark = "ok     " if device["ok"] else "broken "
        print(f"{mark} {device['device_id']:14s} {device['name']} ({device['device_type']})")
        for line in device["reason"].splitlines()[:12]:
            print(f"          {line}")
    compiling = "kernels compile where a picture first needs them; `rayfold warm` compiles them ahead"
    print(f"        {compiling}" if any(device["ok"] for device in devices) else "none    no compute device works")
    software = ", software" if gl.get("software") else ""
    print(f"ok      GL             {gl['renderer']}{software}, {gl['version']}" if gl["ok"] else "none    GL")
    if gl["ok"] and not gl["display"]:
        print("        no display: `view` needs one (ssh -X, or xvfb-run rayfold view); `export` does not")
    for hint in hints:
        print(f"missing {hint}")
