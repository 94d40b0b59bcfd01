"""What this machine can do: every compute device and GL, self-tested; and the command that brings what is missing."""

import argparse
import importlib.util
import json
import platform
import shutil
import sys

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu import DeviceContext, KernelError, list_devices, self_test
from renderer.gpu.gl import has_display
from renderer.gpu.kernel_source import GeneratedSource

OPTIONAL = {
    "pycuda": "CUDA devices",
    "cuda": "CUDA kernels and GL sharing",
    "imgui_bundle": "controls in the window",
    "OpenEXR": "EXR files",
    "av": "films",
    "distributed": "farms",
    "trimesh": "meshes",
    "scipy": "band LU",
}
PACKAGES = {"cuda": "cuda-bindings nvidia-cuda-nvrtc", "imgui_bundle": "imgui-bundle", "OpenEXR": "openexr"}
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
    """`rayfold doctor`: exit code 0 when a picture can be made here, 4 when not."""
    devices, missing = examined_devices()
    gl = examined_gl()
    advice = [*missing, *([gl["reason"]] if not gl["ok"] else []), *missing_packages()]
    if args.json:
        facts = {
            "devices": devices,
            "gl": gl,
            "missing": advice,
            "python": platform.python_version(),
            "numpy": np.__version__,
        }
        print(json.dumps(facts))
    else:
        show(devices, gl, advice)
    return 0 if any(device["ok"] for device in devices) or gl["ok"] else 4


def examined_devices() -> tuple[list[dict], list[str]]:
    """Every device, probed, and for each kind with none what brings it."""
    found, missing = list_devices()
    rows = []
    for device in found:
        reason = ""
        try:
            self_test(device.open())
        except (KernelError, UnavailableError) as error:
            reason = str(error)
        rows.append(dict(name=device.name, device=device.device_id, kind=device.backend, processor=device.device_type,
                         ok=not reason, reason=reason))  # fmt: skip
    return rows, [
        f"{kind}: {reason}" for kind, reason in missing.items() if kind != "cuda" or "no NVIDIA" not in reason
    ]


def examined_gl() -> dict:
    """The headless GL: renderer, limits, and whether arithmetic keeps what the passes rely on."""
    try:
        gl = DeviceContext().gl
    except UnavailableError as error:
        return {"ok": False, "reason": str(error)}
    values = np.random.default_rng(3).standard_normal((5, 7, 4)).astype("f4")
    facts = {
        "ok": bool(np.array_equal(gl.texture((7, 5)).write(values).read(), values)),
        "reason": "",
        "renderer": gl.renderer,
        "version": gl.ctx.info["GL_VERSION"],
        "software": gl.software,
        "largest_texture": gl.max_texture_size,
        "display": has_display(),
    }
    if not facts["ok"]:
        facts["reason"] = f"{gl.renderer}: float textures do not keep their bits"
    if gl.version >= 400:
        target = gl.texture((1, 1))
        pair = np.array([1.0, 2.0**-30, 0, 0], "f4").reshape(1, 1, 4)
        gl.render_pass(GeneratedSource("two_sum.frag", TWO_SUM))(target, image=gl.texture((1, 1)).write(pair))
        facts["precise_arithmetic"] = bool(target.read()[0, 0, 1] == np.float32(2.0**-30))
    return facts


def missing_packages() -> list[str]:
    """One line for each optional package that is not installed."""
    wanted = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
    if not shutil.which("nvidia-smi"):
        wanted = [name for name in wanted if name not in ("pycuda", "cuda")]
    return [f"{OPTIONAL[name]}: {sys.executable} -m pip install {PACKAGES.get(name, name)}" for name in wanted]


def show(devices: list[dict], gl: dict, advice: list[str]) -> None:
    """The table for people."""
    for device in devices:
        mark = "ok     " if device["ok"] else "broken "
        print(f"{mark} {device['device']:14s} {device['name']} ({device['processor']})")
        for line in device["reason"].splitlines()[:12]:
            print(f"          {line}")
    if not devices:
        print("none    no compute device")
    software = ", software" if gl.get("software") else ""
    print(f"ok      GL             {gl['renderer']}{software}, {gl['version']}" if gl["ok"] else "none    GL")
    if gl["ok"] and not gl["display"]:
        print("        no display: `view` needs one (ssh -X, or xvfb-run rayfold view); `export` does not")
    for line in advice:
        print(f"missing {line}")
