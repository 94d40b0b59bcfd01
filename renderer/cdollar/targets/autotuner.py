"""The autotuner of `rayfold run --tune`: times candidate schedules of a program's kernels and writes the fastest.

A schedule is a kernel's work-group size, tile sizes and unrolling (schedule.py). The input is a DeviceTarget that has
run the program; the output is the file PROGRAM.schedule.toml. The result of every candidate is compared with the
result of the default schedule.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from renderer.cdollar.checker.target import Target
from renderer.cdollar.ir.dag import Node
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.kernel_plan import KernelPlan
from renderer.cdollar.targets.map_kernels import plan_kernel
from renderer.cdollar.targets.schedule import DEFAULT, MAP_CANDIDATES, MATMUL_CANDIDATES, Schedule, update_schedules
from renderer.errors import KernelError, UnavailableError, UserError

REPEATS = 5


def tune_kernels(target: DeviceTarget) -> tuple[dict[str, Schedule], dict[str, str]]:
    """Return the fastest schedule of each kernel that the target ran, and a comment with its time, by KernelPlan.key.

    `target.trace` lists the kernels that ran. Matrix products on CPUs are left out, since they have one schedule.
    """
    schedules: dict[str, Schedule] = {}
    comments: dict[str, str] = {}
    for kind, node, _plan in list(target.trace or []):
        if kind != "kernel":
            continue
        default = plan_kernel(node, target.stored_ranges, DEFAULT, target.device.properties, target.strict)
        has_candidates = not (target.device.properties.scalar_threads and default.kind.endswith("matmul"))
        if default.key not in schedules and has_candidates:
            schedules[default.key], comments[default.key] = tune_kernel(target, node, default)
            print(f"{default.key}: {comments[default.key]}", file=sys.stderr)
    return schedules, comments


def tune_kernel(target: DeviceTarget, node: Node, default: KernelPlan) -> tuple[Schedule, str]:
    """Return the fastest schedule of the kernel of `node`, and a comment with its time and the default schedule's.

    Raises AssertionError if a candidate's result differs from the result of the plan `default`.
    """
    expected, default_seconds = measure(target, node, default)
    fastest, fastest_seconds, tried = DEFAULT, default_seconds, 0
    for change in MATMUL_CANDIDATES if default.kind.endswith("matmul") else MAP_CANDIDATES:
        schedule = replace(DEFAULT, **change)
        try:
            plan = plan_kernel(node, target.stored_ranges, schedule, target.device.properties, target.strict)
            result, seconds = measure(target, node, plan)
        except (KernelError, UnavailableError):
            continue  # the candidate's tile does not fit the device
        tried += 1
        for actual, reference in zip(result, expected, strict=True):
            tolerance = 1e-3 * max(1.0, float(np.max(np.abs(reference), initial=0)))
            if not np.allclose(actual, reference, rtol=1e-3, atol=tolerance, equal_nan=True):
                raise AssertionError(f"{schedule} computes something else")
        if seconds < fastest_seconds:
            fastest, fastest_seconds = schedule, seconds
    microseconds, by_default = fastest_seconds * 1e6, default_seconds * 1e6
    return fastest, f"{default.kind}, best of {tried}: {microseconds:.1f} us, by default {by_default:.1f} us"


def measure(target: DeviceTarget, node: Node, plan: KernelPlan) -> tuple[list[np.ndarray], float]:
    """Run a plan; return its output arrays, and the least device time of REPEATS more runs in seconds."""
    outputs = target.allocate_outputs(node)
    target.launch_plan(plan, outputs)
    result = target.read_back(outputs)
    return result, min(target.device.time_seconds(lambda: target.launch_plan(plan, outputs)) for _ in range(REPEATS))


def write_schedule(target: Target, path: Path) -> None:
    """Tune the kernels that a target ran and write the schedule file; other kernels in the file keep their schedules.

    Raises UserError if the target is not a compute device.
    """
    if not isinstance(target, DeviceTarget):
        raise UserError(f"--tune: the {target.name} target has no schedules to tune; use --target opencl or cuda")
    schedules, comments = tune_kernels(target)
    update_schedules(path, schedules, comments)
    print(f"{path}: {len(schedules)} kernels", file=sys.stderr)
