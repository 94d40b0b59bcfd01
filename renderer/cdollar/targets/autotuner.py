"""The autotuner: times schedules of a program's parts, each checked first, and writes the best beside the program."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from renderer.cdollar.targets.device_target import DeviceTarget, Representation, kernel_key, stored_dtype
from renderer.cdollar.targets.kernel_plan import KernelPlan, output_parts
from renderer.cdollar.targets.map_kernels import plan_kernel
from renderer.cdollar.targets.schedule import (
    DEFAULT,
    MAP_CANDIDATES,
    MATMUL_CANDIDATES,
    Schedule,
    read_schedules,
    schedule_text,
)
from renderer.errors import KernelError, UnavailableError, UserError

REPEATS = 5


def tune_kernels(target: DeviceTarget) -> tuple[dict[str, Schedule], dict[str, str]]:
    """The best schedule of each part that the target ran, by key, and what it gained."""
    found: dict[str, Schedule] = {}
    notes: dict[str, str] = {}
    for kind, node, _ in list(target.explained):
        if kind != "part":
            continue
        plain = plan_kernel(node, target.ranges_of, DEFAULT, target.device.properties)
        key = kernel_key(plain)
        if key in found or plain.kind not in ("tile", "map", "group"):
            continue
        best, note = tune_kernel(target, node, plain)
        found[key], notes[key] = best, note
        print(f"{key}: {note}", file=sys.stderr)
    return found, notes


def tune_kernel(target: DeviceTarget, node, plain: KernelPlan) -> tuple[Schedule, str]:
    wanted, base = measure(target, node, plain)
    best, best_seconds = DEFAULT, base
    tried = 0
    for change in MATMUL_CANDIDATES if plain.kind == "tile" else MAP_CANDIDATES:
        schedule = replace(DEFAULT, **change)
        try:
            part = plan_kernel(node, target.ranges_of, schedule, target.device.properties)
            answer, seconds = measure(target, node, part)
        except (KernelError, UnavailableError):
            continue  # this device has no room for such a tile
        tried += 1
        for a, b in zip(answer, wanted, strict=True):
            if not np.allclose(
                a, b, rtol=1e-3, atol=1e-3 * max(1.0, float(np.max(np.abs(b), initial=0))), equal_nan=True
            ):
                raise AssertionError(f"{schedule} computes something else")
        if seconds < best_seconds:
            best, best_seconds = schedule, seconds
    return best, f"{plain.kind}, best of {tried}: {best_seconds * 1e6:.1f} us, by default {base * 1e6:.1f} us"


def measure(target: DeviceTarget, node, part: KernelPlan) -> tuple[list[np.ndarray], float]:
    """The result of a part and its least device time of a few runs."""
    ranges = () if node.op == "reduce" else tuple(v.range for v in node.attribute)
    count = max(1, int(np.prod([r.size for r in ranges], dtype=np.int64)))
    held = Representation(ranges, [(target.device.buffer(count, stored_dtype(p)), p) for p in output_parts(node)])
    target.launch(part, held, [])
    answer = target.read_back(held)
    seconds = min(target.device.time_seconds(lambda: target.launch(part, held, [])) for _ in range(REPEATS))
    return answer, seconds


def write_schedule(target, path: Path) -> None:
    """Tunes what a target ran and writes the schedule file, keeping what other devices' runs found for other parts."""
    if not isinstance(target, DeviceTarget) or target.name == "glsl":
        raise UserError(f"--tune: the {target.name} target has no schedules to tune; use --target opencl or cuda")
    found, notes = tune_kernels(target)
    merged = {**read_schedules(path), **found}
    name = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, suffix=".toml", delete=False, encoding="utf-8"
        ) as stream:
            name = stream.name
            stream.write(schedule_text(merged, notes))
        os.replace(name, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        if name and os.path.exists(name):
            os.unlink(name)
    print(f"{path}: {len(found)} parts", file=sys.stderr)
