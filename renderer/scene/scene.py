"""The Scene: what one input file describes, and its tone mapping."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from renderer.scene.schema import referenced_files, setting


@dataclass(frozen=True)
class ToneMapping:
    """How linear radiance becomes displayed color; renderer/images/tone_mapping.py applies it.

    In this order: exposure, white balance, contrast, the tone curve, the display's encoding, the look-up table.
    """

    exposure: Literal["auto", "manual"] = "auto"
    ev: float = 0.0  # stops, added to the automatic exposure too
    curve: Literal["none", "reinhard", "aces", "agx"] = "none"
    temperature: float = setting(
        6500.0, 1000.0, 15000.0, "kelvin of the light that is shown white; 6500 changes nothing", logarithmic=True
    )
    tint: float = setting(0.0, -100.0, 100.0, "of that light: positive for a green one, so the picture gets magenta")
    contrast: float = setting(1.0, 0.25, 4.0, "power about middle gray, 0.18", logarithmic=True)
    lut: str = setting("", help="a .cube file, applied to the displayed color", file=True)


COLOR = "color"  # the view of the picture itself


@dataclass(frozen=True)
class Inspect:
    """What the window shows of the picture when it opens; no picture depends on it."""

    view: str = COLOR  # a layer, a channel or an algorithm's view, one of Picture.view_names()
    step: int = setting(0, 0, 1 << 20, "bounce, level or pass of an algorithm's view")
    pixel: tuple[float, float] = setting(
        (0.5, 0.5), 0.0, 1.0, "the pixel of views of one, in fractions of the width and height"
    )


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
    inspect: Inspect = field(default=Inspect(), kw_only=True)
    size: tuple[int, int] | None = None
    samples: int | None = None
    time: float = 0.0
    animation: Any = None
    bench: dict = field(default_factory=dict)
    test: dict = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    part: str = ""

    @property
    def files(self) -> set[Path]:
        """The files that settings and tone mapping name."""
        return {Path(file) for named in (self.settings, self.tone) for file in referenced_files(named)}
