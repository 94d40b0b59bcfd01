"""What `rayfold export` is asked for, as plain data."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ExportOptions:
    """The options of the command (renderer/export/command.py explains each); None where one is not given."""

    input: Path
    output: Path
    size: tuple[int, int] | None = None
    samples: int | None = None
    time: float | None = None
    frames: str | None = None
    fps: int = 24
    animation: str | None = None
    variant: str | None = None
    seed: int | None = None
    device: str = "auto"
    environment: str | None = None
    set: tuple[str, ...] | list[str] = ()
    bit_depth: int = 8
    transfer: str = "srgb"
    tile: int = 0  # 0: only large pictures are drawn in tiles
    time_limit: float | None = None
    denoise: bool = False
    overwrite: bool = False
    dry_run: bool = False
    light_field: tuple[int, int] | None = None
    baseline: float | None = None
    farm: str | None = None
    insecure: bool = False
    split: str | None = None
    flame: str = ""
    film: bool = False
    sheet: bool = False
    noise: float | None = None
    json: bool = False
    profile: bool = False
