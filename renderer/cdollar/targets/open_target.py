"""Opens a target by name. A target evaluates a program's DAG: NumPy, a compute device, or OpenGL passes (GLSL).

`rayfold run`, the interactive prompt and C$ functions in Python call target_factory() with the value of --target, the
program's path (for its schedule file) and --strict, and make a target from each compiled DAG.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from renderer.cdollar.checker.target import Target
from renderer.cdollar.ir.dag import Dag
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.cdollar.targets.schedule import read_schedules
from renderer.errors import UnavailableError, UserError
from renderer.gpu import BACKENDS, DeviceInfo, list_backend, open_device
from renderer.plain import format_value

TARGETS = ("numpy", "glsl", *BACKENDS)
TargetFactory = Callable[[Dag], Target]
_open_once = cache(open_device)  # once in a process: C$ functions on one device share results without a copy


def schedule_file(program: Path) -> Path:
    """The path of a program's schedule file: PROGRAM.schedule.toml in the program's folder."""
    return program.with_suffix(".schedule.toml")


def target_factory(name: str | None, program: Path | None = None, strict: bool = False) -> TargetFactory:
    """Return a function that makes a target from a program's DAG.

    `name` is one of TARGETS; None takes the first GPU that opens, or NumPy if none does. `program` is the path whose
    schedule file the kernels use. `strict` fixes the order of float sums (strict_order.py). Raises UserError for an
    unknown name, and UnavailableError if the named target does not run on this machine.
    """
    if name is not None and (not isinstance(name, str) or name not in TARGETS):
        raise UserError(f"target is {format_value(name)}; allowed are {', '.join(TARGETS)}")
    schedules = read_schedules(schedule_file(program)) if program is not None else {}
    reference = partial(NumpyTarget, strict=strict)
    if name == "numpy":
        return reference
    if name == "glsl":
        from renderer.cdollar.targets.glsl.target import GlslTarget  # no other target needs OpenGL
        from renderer.gpu.gl import GlContext

        gl = GlContext.headless()
        return lambda dag: GlslTarget(dag, gl, strict)
    from renderer.cdollar.targets.device_target import DeviceTarget  # what devices need is not imported for NumPy

    reasons: list[str] = []
    for info in _candidates(name, reasons):
        try:
            device = _open_once(info.device_id)
        except UnavailableError as error:
            reasons.append(str(error).splitlines()[0])
            continue
        return lambda dag: DeviceTarget(dag, device, info.backend, schedules, strict)
    if name is not None:
        raise UnavailableError(f"--target {name}: {'; '.join(reasons) or 'no such device'} (numpy runs everywhere)")
    if reasons:
        print(f"note: no GPU works here ({'; '.join(reasons)}); NumPy runs the program", file=sys.stderr)
    return reference


def _candidates(name: str | None, reasons: list[str]) -> Iterator[DeviceInfo]:
    """Yield the devices of backend `name`, or every GPU if None; append to `reasons` why a named backend has none."""
    for backend in BACKENDS if name is None else (name,):
        devices, reason = list_backend(backend)
        yield from devices if name is not None else (d for d in devices if d.device_type == "gpu")
        if name is not None and not devices and reason:
            reasons.append(reason)
