"""Schedules: work-group size, tile sizes and unrolling of each kernel (the paper's configuration file).

They are read from PROGRAM.schedule.toml, which `run --tune` writes:

[kernels."3f2a..."]    # KernelPlan.key by the default schedule
tile_rows = 64
thread_rows = 4
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from renderer.errors import InputError
from renderer.files import read_toml
from renderer.plain import format_value


@dataclass(frozen=True)
class Schedule:
    """Schedule of one kernel.

    tile_rows x tile_columns is the output tile of a work-group and tile_depth its extent along k; a thread computes
    thread_rows x thread_columns of it. `items_per_thread` is the elements per thread of a map and the unroll factor of
    a reduction; `groups_per_unit` the work-groups per compute unit of a reduction.
    """

    group_size: int = 256
    items_per_thread: int = 4
    groups_per_unit: int = 16
    tile_rows: int = 128
    tile_columns: int = 128
    tile_depth: int = 16
    thread_rows: int = 8
    thread_columns: int = 8


ALLOWED = {
    "group_size": (32, 64, 128, 256, 512), "items_per_thread": (1, 2, 4, 8, 16), "groups_per_unit": (4, 8, 16, 32, 64),
    "tile_rows": (16, 32, 64, 128, 256), "tile_columns": (16, 32, 64, 128, 256), "tile_depth": (4, 8, 16, 32),
    "thread_rows": (4, 8, 16), "thread_columns": (4, 8, 16),
}  # fmt: skip
DEFAULT = Schedule()
# Tiles from large to small, for products that do not fill the device with large ones.
TILE_SIZES: tuple[dict[str, int], ...] = (
    {"tile_rows": 256, "tile_depth": 8}, {"tile_depth": 8}, {"tile_columns": 64, "thread_columns": 4},
    {"tile_rows": 64, "tile_columns": 64, "thread_rows": 4, "thread_columns": 4},
    {"tile_rows": 32, "tile_columns": 32, "thread_rows": 4, "thread_columns": 4},
)  # fmt: skip
# Candidates of the autotuner, for matrix products and for all other kernels.
MATMUL_CANDIDATES: list[dict[str, int]] = [
    {}, {"tile_depth": 8}, {"tile_depth": 32}, {"tile_rows": 256, "tile_depth": 8},
    {"tile_columns": 256, "tile_depth": 8},
    {"tile_rows": 64, "tile_columns": 64, "thread_rows": 4, "thread_columns": 4},
    {"tile_rows": 64, "thread_rows": 4}, {"tile_columns": 64, "thread_columns": 4},
    {"tile_columns": 256, "thread_columns": 16}, {"tile_rows": 256, "thread_rows": 16},
    {"tile_rows": 64, "tile_columns": 64},
    {"tile_rows": 32, "tile_columns": 32, "thread_rows": 4, "thread_columns": 4},
]  # fmt: skip
MAP_CANDIDATES: list[dict[str, int]] = [
    {}, {"items_per_thread": 1}, {"items_per_thread": 2}, {"items_per_thread": 8}, {"group_size": 128},
    {"group_size": 512}, {"group_size": 512, "items_per_thread": 8}, {"groups_per_unit": 8}, {"groups_per_unit": 32},
    {"groups_per_unit": 64}, {"groups_per_unit": 32, "items_per_thread": 2},
]  # fmt: skip


def read_schedules(path: Path) -> dict[str, Schedule]:
    """The schedules of a program's kernels by key; none if the file does not exist. Raises InputError."""
    if not os.path.exists(path):
        return {}
    table = read_toml(path)
    kernels = table.get("kernels", {})
    if not isinstance(kernels, dict) or table.keys() - {"kernels"}:
        raise InputError(f"{path}: found {', '.join(table)}; allowed are tables [kernels.KEY]")
    return {str(key): parse_schedule(f"{path}: kernels.{key}", entries) for key, entries in kernels.items()}


def parse_schedule(location: str, entries: Any) -> Schedule:
    """A schedule from its table in a file."""
    if not isinstance(entries, dict):
        raise InputError(f"{location} must be a table")
    for name, value in entries.items():
        if name not in ALLOWED:
            raise InputError(f"{location}.{name} is unknown; allowed are {', '.join(sorted(ALLOWED))}")
        if value not in ALLOWED[name] or isinstance(value, bool):
            allowed = ", ".join(map(str, ALLOWED[name]))
            raise InputError(f"{location}.{name} = {format_value(value)}; allowed are {allowed}")
    s = replace(DEFAULT, **entries)
    threads = s.tile_rows // s.thread_rows * (s.tile_columns // s.thread_columns)
    if not 16 <= threads <= 1024 or s.tile_depth * (s.tile_rows + s.tile_columns + 8) * 8 > 160 * 1024:
        raise InputError(
            f"{location}: a tile of {s.tile_rows} x {s.tile_columns} x {s.tile_depth} by {threads} threads does not fit"
        )
    return s


def schedule_text(schedules: dict[str, Schedule], comments: dict[str, str]) -> str:
    """The file that --tune writes: what differs from the default schedule."""
    lines = ["# Schedules of this program's kernels; written by `run --tune`, read by every run of the program.", ""]
    for key, schedule in schedules.items():
        lines.append(f'[kernels."{key}"]  # {comments.get(key, "")}'.rstrip("# "))
        lines += [f"{name} = {value}" for name, value in asdict(schedule).items() if value != getattr(DEFAULT, name)]
        lines.append("")
    return "\n".join(lines)
