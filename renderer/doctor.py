"""`rayfold doctor`: every compute device and GL, self-tested, and the command that installs what is missing."""

import argparse
import importlib.util
import json
import platform
import shutil
import sys

import numpy as np

from renderer.errors import KernelError, UnavailableError
from renderer.gpu import DeviceContext, icd, list_devices, self_test
from renderer.gpu.gl import has_display
from renderer.gpu.kernel_source import GeneratedSource

OPTIONAL = {  # module: what needs it, and the packages that provide it
    "cuda": ("CUDA devices", "cuda-bindings nvidia-cuda-nvrtc nvidia-cublas"),
    "imgui_bundle": ("controls in the window", "imgui-bundle"),
    "OpenEXR": ("EXR files", "openexr"),
    "av": ("videos", "av"),
    "distributed": ("farms", "distributed"),
    "trimesh": ("meshes", "trimesh"),
    "scipy": ("band LU", "scipy"),
}
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
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")


def command(args: argparse.Namespace) -> int:
    """`rayfold doctor`: exit code 0 when a picture can be drawn here, 4 when not."""
    devices, hints = check_devices()
    gl = check_gl()
    hints += [gl["reason"]] if not gl["ok"] else []
    hints += missing_packages()
    if args.json:
        versions = {"python": platform.python_version(), "numpy": np.__version__}
        print(json.dumps({"devices": devices, "gl": gl, "install_hints": hints, **versions}))
    else:
        print_report(devices, gl, hints)
    return 0 if any(device["ok"] for device in devices) or gl["ok"] else UnavailableError.exit_code


def check_devices() -> tuple[list[dict], list[str]]:
    """Every compute device, self-tested, and a hint for each kind of which there is none."""
    icd.forget_verdicts()
    found, missing = list_devices()
    rows = [
        {"name": path, "device_id": "", "kind": "opencl", "device_type": "driver", "ok": False, "reason": reason}
        for path, reason in icd.select_drivers().items()
    ]
    for device in found:
        reason = ""
        try:
            self_test(device.open())
        except (KernelError, UnavailableError) as error:
            reason = str(error)
        rows.append({
            "name": device.name, "device_id": device.device_id, "kind": device.backend,
            "device_type": device.device_type, "ok": not reason, "reason": reason,
        })  # fmt: skip
    return rows, [
        f"{kind}: {reason}" for kind, reason in missing.items() if kind != "cuda" or "no NVIDIA" not in reason
    ]


def check_gl() -> dict:
    """The headless GL: renderer, limits, and whether float textures and `precise` arithmetic are exact."""
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


def missing_packages() -> list[str]:
    """What lacks and the command that installs it, one line for each optional package; CUDA's only beside a GPU."""
    missing = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
    if not shutil.which("nvidia-smi"):
        missing = [name for name in missing if name != "cuda"]
    hints = [OPTIONAL[name] for name in missing]
    return [f"{purpose}: {sys.executable} -m pip install {packages}" for purpose, packages in hints]


def print_report(devices: list[dict], gl: dict, hints: list[str]) -> None:
    """Prints a line for each device, for GL and for each hint."""
    for device in devices:
        mark = "ok     " if device["ok"] else "broken "
        print(f"{mark} {device['device_id']:14s} {device['name']} ({device['device_type']})")
        for line in device["reason"].splitlines()[:12]:
            print(f"          {line}")
    if not devices:
        print("none    no compute device")
    software = ", software" if gl.get("software") else ""
    print(f"ok      GL             {gl['renderer']}{software}, {gl['version']}" if gl["ok"] else "none    GL")
    if gl["ok"] and not gl["display"]:
        print("        no display: `view` needs one (ssh -X, or xvfb-run rayfold view); `export` does not")
    for hint in hints:
        print(f"missing {hint}")
