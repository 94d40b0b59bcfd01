"""The Scene: the contents of one input file (scene file, model, flame, ...), with its tone mapping.

renderer/pictures makes it from a file and opens a picture for it; window, export and Python API pass it on.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from renderer.plain import Json, suggestion
from renderer.records import dataclass, field, fields
from renderer.scene.schema import referenced_files, setting


@dataclass(frozen=True)
class ToneMapping:
    """Tone mapping, from linear radiance to displayed color; renderer/images/tone_mapping.py applies it.

    In this order: exposure, white balance, contrast, the tone curve, the display's encoding, the look-up table.
    """

    exposure: Literal["auto", "manual"] = "auto"
    ev: float = 0.0  # stops, added to the automatic exposure too
    curve: Literal["none", "reinhard", "aces", "agx"] = "none"
    temperature: float = setting(
        6500.0, 1000.0, 15000.0, "kelvin of the light that is shown white; 6500 changes nothing", logarithmic=True
    )
    tint: float = setting(0.0, -100.0, 100.0, "positive for green light, which turns the picture magenta")
    contrast: float = setting(1.0, 0.25, 4.0, "power about middle gray, 0.18", logarithmic=True)
    lut: str = setting("", help="a .cube file, applied to the displayed color", file=(".cube",))


COLOR = "color"  # the view of the picture itself


@dataclass(frozen=True)
class Inspect:
    """State of the window when it opens the picture: the view, its step and its pixel. Exports ignore it."""

    view: str = COLOR  # a layer, a channel or an algorithm's view, one of Picture.view_names()
    step: int = setting(0, 0, 1 << 20, "bounce, level or pass of an algorithm's view")
    pixel: tuple[float, float] = setting(
        (0.5, 0.5), 0.0, 1.0, "pixel that a view of one pixel shows, in fractions of width and height"
    )


@dataclass(frozen=True, repr=False)
class Scene:
    """One picture to draw: its kind `picture` and its `settings`, the frozen dataclass of that kind.

    `samples` and `time` (seconds) are set if the scene comes from an exported PNG, which was rendered with them.
    `animation` is an animation.Animation or None. `notes` are sentences on the choices that the program made for the
    user, such as the camera that it took from a file. `part` selects from a file of flames: the number of one flame, or
    "film" for all of them. `bench` and `test` are the scene file's tables for benchmarks and tests.
    `groups` has the paths of the items, such as spheres[0], that the scene editor selects together, by their name.
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
    bench: Json = field(default_factory=dict)
    test: Json = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    part: str = ""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        size = "" if self.size is None else f", size={self.size}"
        return f"<{type(self).__name__} {str(self.path)!r}: picture={self.picture!r}, title={self.title!r}{size}>"

    if not TYPE_CHECKING:  # type checkers know the attributes that there are

        def __getattr__(self, name: str) -> NoReturn:
            """Raises AttributeError for an unknown attribute, with the attributes or settings of like name."""
            if name.startswith("__") or "settings" not in vars(self):  # asked by copy and pickle
                raise AttributeError(name)
            attributes = [f.name for f in fields(self)]
            settings = [f"settings.{f.name}" for f in fields(self.settings)]
            setting_ = f"settings.{name}"
            hint = f" (did you mean {setting_}?)" if setting_ in settings else suggestion(name, attributes + settings)
            raise AttributeError(f"Scene has no attribute {name!r}{hint}; there are {', '.join(attributes)}")

    @property
    def files(self) -> set[Path]:
        """The files that the settings and the tone mapping name."""
        return {Path(file) for named in (self.settings, self.tone) for file in referenced_files(named)}
