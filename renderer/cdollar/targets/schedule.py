"""How parts are laid onto lanes, tiles and loops: the paper's configuration file, as TOML beside the program.

[parts."3f2a..."]      # the hash of a part's text without its schedule; --tune writes these
rows = 128
pipelined = true
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from renderer.errors import InputError


@dataclass(frozen=True)
class Schedule:
    """Of one part. Tile sizes count results, `depth` products; `items` is what a thread of a map takes at once."""

    group: int = 256
    items: int = 4
    spread: int = 16  # groups a unit of the processor gets of a reduction
    rows: int = 128
    columns: int = 128
    depth: int = 16
    thread_rows: int = 8
    thread_columns: int = 8
    pipelined: bool = True
    packed: bool = True  # GLSL: four values in a texel
    plain: bool = False  # no tiles: one thread a result


ALLOWED = {
    "group": (32, 64, 128, 256, 512), "items": (1, 2, 4, 8, 16), "spread": (4, 8, 16, 32, 64),
    "rows": (16, 32, 64, 128, 256), "columns": (16, 32, 64, 128, 256), "depth": (4, 8, 16, 32),
    "thread_rows": (4, 8, 16), "thread_columns": (4, 8, 16),
    "pipelined": (True, False), "packed": (True, False), "plain": (True, False),
}  # fmt: skip
DEFAULT = Schedule()
# Tiles from large to small, for products that do not fill the processor with large ones.
TILE_SIZES = (
    {"rows": 256, "depth": 8}, {"depth": 8}, {"columns": 64, "thread_columns": 4},
    {"rows": 64, "columns": 64, "thread_rows": 4, "thread_columns": 4},
    {"rows": 32, "columns": 32, "thread_rows": 4, "thread_columns": 4},
)  # fmt: skip
# What the tuner tries for sums of products, and for everything else.
MATMUL_CANDIDATES = [
    {}, {"depth": 8}, {"depth": 32}, {"pipelined": False}, {"rows": 256, "depth": 8}, {"columns": 256, "depth": 8},
    {"rows": 64, "columns": 64, "thread_rows": 4, "thread_columns": 4},
    {"rows": 64, "thread_rows": 4}, {"columns": 64, "thread_columns": 4}, {"columns": 256, "thread_columns": 16},
    {"rows": 256, "thread_rows": 16}, {"rows": 64, "columns": 64},
    {"rows": 32, "columns": 32, "thread_rows": 4, "thread_columns": 4},
]  # fmt: skip
MAP_CANDIDATES = [
        {}, {"items": 1}, {"items": 2}, {"items": 8}, {"group": 128}, {"group": 512}, {"group": 512, "items": 8},
        {"spread": 8}, {"spread": 32}, {"spread": 64}, {"spread": 32, "items": 2}]  # fmt: skip


def read_schedules(path: Path) -> dict[str, Schedule]:
    """The schedules of a program's parts by hash; none if there is no file."""
    if not path.is_file():
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path}: {error}") from None
    parts = table.get("parts", {})
    if not isinstance(parts, dict):
        raise InputError(f"{path}: parts must be a table")
    return {str(key): checked(path, key, entries) for key, entries in parts.items()}


def checked(path: Path, key: str, entries) -> Schedule:
    known = {f.name for f in fields(Schedule)}
    if not isinstance(entries, dict):
        raise InputError(f"{path}: parts.{key} must be a table")
    for name, value in entries.items():
        if name not in known:
            raise InputError(f"{path}: parts.{key}.{name} is unknown; allowed are {', '.join(sorted(known))}")
        if value not in ALLOWED[name] or isinstance(value, bool) != isinstance(ALLOWED[name][0], bool):
            raise InputError(f"{path}: parts.{key}.{name} = {value}; allowed are {', '.join(map(str, ALLOWED[name]))}")
    return valid(path, key, replace(DEFAULT, **entries))


def valid(path: Path, key: str, schedule: Schedule) -> Schedule:
    threads = schedule.rows // schedule.thread_rows * (schedule.columns // schedule.thread_columns)
    if not 16 <= threads <= 1024 or schedule.depth * (schedule.rows + schedule.columns + 8) * 8 > 160 * 1024:
        raise InputError(
            f"{path}: parts.{key}: a tile of {schedule.rows} x {schedule.columns} x {schedule.depth} "
            f"by {threads} threads does not fit"
        )
    return schedule


def schedule_text(schedules: dict[str, Schedule], notes: dict[str, str]) -> str:
    """The file that --tune writes: what differs from the defaults."""
    lines = ["# How the parts of this program run; written by `run --tune`, read by every run beside the program.", ""]
    for key, schedule in schedules.items():
        lines.append(f'[parts."{key}"]  # {notes.get(key, "")}'.rstrip("# "))
        for name, value in asdict(schedule).items():
            if value != getattr(DEFAULT, name):
                lines.append(f"{name} = {str(value).lower() if isinstance(value, bool) else value}")
        lines.append("")
    return "\n".join(lines)
