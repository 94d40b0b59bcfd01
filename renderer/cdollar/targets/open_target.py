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
from renderer.gpu import list_devices, open_device
from renderer.gpu.gl import GlContext


def schedule_file(program: Path) -> Path:
    """Where the schedule of a program lies: beside it."""
    return program.with_suffix(".schedule.toml")


def target_factory(name: str | None, program: Path | None = None, strict: bool = False) -> Callable:
    """A function that gives a program its target. Without a name: the best GPU, or NumPy where there is none."""
    schedules = read_schedules(schedule_file(program)) if program is not None else {}
    if name == "numpy":
        return lambda compilation: NumpyTarget(compilation.dag, compilation.dag.spans)
    if name == "glsl":
        gl = GlContext.headless()
        return lambda compilation: GlslTarget(compilation, gl, schedules, strict)
    found, missing = list_devices()
    if name is None:
        found = [device for device in found if device.device_type == "gpu"]
        if not found:
            return lambda compilation: NumpyTarget(compilation.dag, compilation.dag.spans)
    else:
        found = [device for device in found if device.backend == name]
        if not found:
            raise UnavailableError(f"--target {name}: {missing.get(name) or 'no such device'} (numpy runs everywhere)")
    reasons = []
    for device in found:
        try:
            opened = open_device(device.device_id)
        except UnavailableError as error:
            reasons.append(str(error).splitlines()[0])
            continue
        return lambda compilation: DeviceTarget(compilation, opened, device.backend, schedules, strict)
    if name is None:
        print(f"note: no GPU works here ({'; '.join(reasons)}); NumPy runs the program", file=sys.stderr)
        return lambda compilation: NumpyTarget(compilation.dag, compilation.dag.spans)
    raise UnavailableError(f"--target {name}: {'; '.join(reasons)}")
