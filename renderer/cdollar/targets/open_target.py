"""Opens targets by name: NumPy, a compute device, or GLSL passes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from renderer.cdollar.checker.target import Target
from renderer.cdollar.ir.dag import Dag
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.numpy_target import NumpyTarget
from renderer.cdollar.targets.schedule import read_schedules
from renderer.errors import UnavailableError, UserError
from renderer.gpu import BACKENDS, Device, DeviceInfo, list_backend, open_device
from renderer.plain import format_value

TARGETS = ("numpy", "glsl", *BACKENDS)
TargetFactory = Callable[[Dag], Target]


def schedule_file(program: Path) -> Path:
    """The path of a program's schedules: beside it."""
    return program.with_suffix(".schedule.toml")


def target_factory(name: str | None, program: Path | None = None, strict: bool = False) -> TargetFactory:
    """A function that makes the target of a program.

    Without a name: the best GPU, or NumPy where there is none. Raises UnavailableError, and UserError for a name that
    is none of a target.
    """
    if name not in (None, *TARGETS):
        raise UserError(f"target is {format_value(name)}; allowed are {', '.join(TARGETS)}")
    schedules = read_schedules(schedule_file(program)) if program is not None else {}
    reference = partial(NumpyTarget, strict=strict)
    if name == "numpy":
        return reference
    if name == "glsl":
        from renderer.cdollar.targets.glsl_target import GlslTarget  # no other target needs OpenGL
        from renderer.gpu.gl import GlContext

        gl = GlContext.headless()
        return lambda dag: GlslTarget(dag, gl, strict)
    reasons: list[str] = []
    for info in _candidates(name, reasons):
        try:
            device = _open(info.device_id)
        except UnavailableError as error:
            reasons.append(str(error).splitlines()[0])
            continue
        return lambda dag: DeviceTarget(dag, device, info.backend, schedules, strict)
    if name is not None:
        raise UnavailableError(f"--target {name}: {'; '.join(reasons) or 'no such device'} (numpy runs everywhere)")
    if reasons:
        print(f"note: no GPU works here ({'; '.join(reasons)}); NumPy runs the program", file=sys.stderr)
    return reference


@cache
def _open(device_id: str) -> Device:
    """The device of a process: results of one function are given to another without a copy."""
    return open_device(device_id)


def _candidates(name: str | None, reasons: list[str]) -> Iterator[DeviceInfo]:
    """The devices of a backend, or every GPU, found when their turn comes; adds the reason if a backend has none."""
    for backend in BACKENDS if name is None else (name,):
        devices, reason = list_backend(backend)
        yield from devices if name is not None else (d for d in devices if d.device_type == "gpu")
        if name is not None and not devices and reason:
            reasons.append(reason)
