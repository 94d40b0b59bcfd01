"""The Scene: what one input file describes, and its tone mapping."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class ToneMapping:
    """How linear radiance becomes 8-bit sRGB; renderer/images/tone_mapping.py applies it."""

    exposure: Literal["auto", "manual"] = "auto"
    ev: float = 0.0  # stops, added to the automatic exposure too
    curve: Literal["none", "reinhard", "aces", "agx"] = "none"


@dataclass(frozen=True)
class Scene:
    """All that draws one picture. `bench` and `test` are the scene file's tables for the benchmarks and the tests.

    `settings` is the frozen dataclass of the picture's kind. `samples` and `time` (seconds) are set where the scene
    comes from an exported PNG, which was rendered with them. `animation` is an animation.Animation or None. `notes` say
    what was decided for an input that does not say it itself, such as which of its cameras was taken.
    `part` says which flame of a file of flames it is: its number, or "film" for all of them.
    """

    path: Path
    title: str
    picture: str
    settings: Any
    tone: ToneMapping = ToneMapping()
    size: tuple[int, int] | None = None
    samples: int | None = None
    time: float = 0.0
    animation: Any = None
    bench: dict = field(default_factory=dict)
    test: dict = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    part: str = ""
