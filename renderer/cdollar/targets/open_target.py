"""What evaluates a program: NumPy, a compute device, or GLSL passes; opened by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl_target import GlslTarget
from renderer.cdollar.targets.numpy_target import NumpyTarget
from renderer.cdollar.targets.schedule import read_schedules
from renderer.errors import UnavailableError
from renderer.gpu import find_devices, open_device
from renderer.gpu.gl import Gl


def schedule_file(program: Path) -> Path:
    """Where the schedule of a program lies: beside it."""
    return program.with_suffix(".schedule.toml")


def target_factory(name: str | None, program: Path | None = None, strict: bool = False) -> Callable:
    """A function that gives a program its target. Without a name: the best GPU, or NumPy where there is none."""
    schedules = read_schedules(schedule_file(program)) if program is not None else {}
    if name == "numpy":
        return lambda compilation: NumpyTarget(compilation.dag, compilation.dag.spans)
    if name == "glsl":
        gl = Gl.headless()
        return lambda compilation: GlslTarget(compilation, gl, schedules, strict)
    found, missing = find_devices()
    if name is None:
        found = [device for device in found if device.processor == "gpu"]
        if not found:
            return lambda compilation: NumpyTarget(compilation.dag, compilation.dag.spans)
    else:
        found = [device for device in found if device.kind == name]
        if not found:
            raise UnavailableError(f"--target {name}: {missing.get(name) or 'no such device'} (numpy runs everywhere)")
    reasons = []
    for device in found:
        try:
            opened = open_device(device.spelling)
        except UnavailableError as error:
            reasons.append(str(error).splitlines()[0])
            continue
        return lambda compilation: DeviceTarget(compilation, opened, device.kind, schedules, strict)
    if name is None:
        print(f"note: no GPU works here ({'; '.join(reasons)}); NumPy runs the program", file=sys.stderr)
        return lambda compilation: NumpyTarget(compilation.dag, compilation.dag.spans)
    raise UnavailableError(f"--target {name}: {'; '.join(reasons)}")
