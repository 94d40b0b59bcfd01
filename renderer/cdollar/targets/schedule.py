"""Schedules: the work-group size, tile sizes and unrolling of a kernel.

As in Halide, a schedule changes a kernel's speed, not its results. The kernel planners (map_kernels.plan_kernel)
take one schedule for each kernel. A program's schedules are read from PROGRAM.schedule.toml, which
`rayfold run --tune` writes (autotuner.py); kernels that the file does not name take DEFAULT:

[kernels."3f2a..."]    # KernelPlan.key: a hash of the kernel's text under the default schedule
tile_rows = 64
thread_rows = 4
"""

import os
from pathlib import Path
from typing import Any

from renderer.errors import InputError
from renderer.paths import ASSETS
from renderer.plain import format_value
from renderer.records import asdict, dataclass, replace
from renderer.system.files import read_text, read_toml
from renderer.system.outputs import write_text
from renderer.system.trust import named_file


@dataclass(frozen=True)
class Schedule:
    """The schedule of one kernel.

    In a matrix product, tile_rows x tile_columns is the output tile of a work-group, tile_depth the extent of a tile
    along k, and thread_rows x thread_columns the output elements of a thread. `items_per_thread` is the elements per
    thread of a map and the unroll factor of a reduction; `groups_per_unit` the work-groups of a reduction per compute
    unit.
    """

    group_size: int = 256
    items_per_thread: int = 4
    groups_per_unit: int = 16
    tile_rows: int = 128
    tile_columns: int = 128
    tile_depth: int = 16
    thread_rows: int = 8
    thread_columns: int = 8


HEADER = "# Schedules of this program's kernels; written by `run --tune`, read by every run of the program.\n\n"
DEFAULT = Schedule()
TABLES = read_toml(ASSETS / "tables" / "kernel_schedules.toml")
ALLOWED: dict[str, list[int]] = TABLES["allowed"]
TILE_SIZES: list[dict[str, int]] = TABLES["tile_sizes"]
MATMUL_CANDIDATES: list[dict[str, int]] = [{}, *TILE_SIZES, *TABLES["matmul"]]
MAP_CANDIDATES: list[dict[str, int]] = [{}, *TABLES["map"]]


def read_schedules(path: Path) -> dict[str, Schedule]:
    """Read a schedule file: schedules by KernelPlan.key, {} if the file does not exist. Raises InputError."""
    if not os.path.exists(path):
        return {}
    # Checked, as the path may be a link.
    table = read_toml(named_file(path.name, path.parent, (".toml",), "the schedule"))
    kernels = table.get("kernels", {})
    if not isinstance(kernels, dict) or table.keys() - {"kernels"}:
        raise InputError(f"{path}: found {', '.join(table)}; allowed are tables [kernels.KEY]")
    return {str(key): parse_schedule(f"{path}: kernels.{key}", entries) for key, entries in kernels.items()}


def parse_schedule(location: str, entries: object) -> Schedule:
    """Check a kernel's table and return its schedule; errors start with `location`, the table's file and name.

    Raises InputError for an unknown entry, a value that is not in ALLOWED, or a tile for which the number of threads
    is not in 16..1024.
    """
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
    if not 16 <= threads <= 1024:
        raise InputError(
            f"{location}: a tile of {s.tile_rows} x {s.tile_columns} x {s.tile_depth} by {threads} threads does not fit"
        )
    return s


def update_schedules(path: Path, schedules: dict[str, Schedule], comments: dict[str, str]) -> None:
    """Write schedules to a schedule file, whose other kernels, comments and order stay. Raises InputError."""
    # read_schedules() is called for its checks: a file that is no schedule file must not be changed.
    text = read_text(path) if read_schedules(path) or os.path.exists(path) else HEADER
    write_text(path, schedule_text(schedules, comments, text))


def schedule_text(schedules: dict[str, Schedule], comments: dict[str, str], text: str = HEADER) -> str:
    """Add to the text of a schedule file, for each kernel, its comment and the entries that differ from DEFAULT."""
    import tomlkit  # 30 ms

    document = tomlkit.parse(text)
    kernels: Any = document.setdefault("kernels", tomlkit.table(is_super_table=True))
    for key, schedule in schedules.items():
        if key not in kernels:
            kernels[key] = {}
            if comments.get(key) and isinstance(kernels[key], tomlkit.items.Table):  # an inline one has no comments
                kernels[key].comment(comments[key])
        for name, value in asdict(schedule).items():
            if value != getattr(DEFAULT, name):
                kernels[key][name] = value
            else:
                kernels[key].pop(name, None)
    return tomlkit.dumps(document)
