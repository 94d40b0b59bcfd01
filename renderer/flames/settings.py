"""Settings of the pictures `flame` and `flame3d`: a flame, its view and key frames; conversion from and to KeyFrame.

renderer/pictures/ draws Settings; the flame editor and .flame files exchange KeyFrames, whose y points down.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Literal, Self

from renderer.errors import UserError
from renderer.flames.camera import FlameView, Size
from renderer.flames.genome import EMPTY, Flame, Xform, read_only
from renderer.flames.interpolation import KeyFrame
from renderer.plain import format_value
from renderer.records import dataclass, field, fields, replace
from renderer.scene.schema import PictureSettings, setting

FLIPPED = {"y_axis": "up"}  # the attribute of a <flame> that was mirrored for the file
NEUTRAL = Xform(color_speed=0.0)  # the final xform that changes nothing


@dataclass(frozen=True)
class Settings(Flame, PictureSettings):
    """A flame and its view. `y_axis` is "up" in flames of scene files and "down" in flames of .flame files.

    If there are key frames, the flame at each time is interpolated between them, and `view` moves the interpolated view
    by the difference between `view` and the first key frame's view.
    """

    view: FlameView = FlameView()
    y_axis: Literal["up", "down"] = "up"
    seed: int = 0
    transparent: bool = setting(False, help="alpha instead of the background")
    early_clip: bool = setting(False, help="tone map and clip buckets before the spatial filter, for sharper edges")
    pixel_aspect: float = setting(1.0, 1e-3, 1e3, "width of a pixel over its height")
    keyframes: tuple[KeyFrame, ...] = ()
    ignored: dict[str, int] = field(default_factory=lambda: EMPTY)  # feature of the file that is not drawn -> count

    def __post_init__(self) -> None:
        super().__post_init__()
        times = [key.time for key in self.keyframes]
        if any(after <= before for before, after in pairwise(times)):
            raise ValueError(f"keyframes: the times {format_value(times)} must increase")
        self.check_choices()

    def for_denoising(self) -> Self:
        """The flame with a third of the radius of density estimation.

        The denoiser keeps wide blurs as if they were detail, and without blur it loses thin lines among single hits. Of
        0, a third and the full radius, a third was best for three flames at quality 50.
        """
        return replace(self._with_each(_less_blurred), estimator_radius=self.estimator_radius / 3)

    def for_window(self) -> Self:
        """The flame, in whose key frames there is no motion blur."""
        return self._with_each(_still) if self.keyframes else self

    def _with_each(self, change: Callable[[Flame], Flame]) -> Self:
        """These settings with the flame of each key frame changed."""
        return replace(self, keyframes=tuple(replace(key, flame=change(key.flame)) for key in self.keyframes))


def _still(flame: Flame) -> Flame:
    return replace(flame, temporal_samples=1)


def _less_blurred(flame: Flame) -> Flame:
    return replace(flame, estimator_radius=flame.estimator_radius / 3)


def settings_from_keyframe(key: KeyFrame, keyframes: tuple[KeyFrame, ...] = ()) -> Settings:
    """The settings that draw a flame of a .flame file; `keyframes` are the key frames of its animation, if any.

    Flames that keyframes_for_file() has mirrored are mirrored back: their triangles lie where they were drawn.
    """
    y_axis: Literal["up", "down"] = "down"
    if all(is_flipped(each) for each in (key, *keyframes)):
        extras = [{k: v for k, v in each.extra.items() if k not in FLIPPED} for each in (key, *keyframes)]
        pairs = zip((key, *keyframes), extras, strict=True)
        key, *keys = (replace(each, flame=flip_y(each.flame), extra=read_only(extra)) for each, extra in pairs)
        y_axis, keyframes = "up", tuple(keys)
    values = {f.name: getattr(key.flame, f.name) for f in fields(Flame)}
    values["quality"] = min(max(key.quality, 1e-3), 1e9)
    return Settings(**values, view=key.view, y_axis=y_axis, pixel_aspect=key.pixel_aspect, keyframes=keyframes)


def to_keyframe(settings: Settings, size: Size, time: float = 0.0, name: str = "") -> KeyFrame:
    """The flame and its view as a key frame of `size`; xforms are unchanged, so y points as `settings.y_axis` says."""
    flame = Flame(**{f.name: getattr(settings, f.name) for f in fields(Flame)})
    view, extra = settings.view, read_only({"name": name} if name else {})
    center, scale = (view.center[0], -view.center[1]), size[1] / view.height
    return KeyFrame(
        flame, time, size, center, scale,
        rotate=view.rotation_degrees, pixel_aspect=settings.pixel_aspect, extra=extra,
    )  # fmt: skip


def keyframes_for_file(settings: Settings, size: Size, name: str) -> list[KeyFrame]:
    """The key frames that a .flame file of the settings contains; their y points down."""
    keyframes = settings.keyframes or (to_keyframe(settings, size, 0.0, name),)
    if settings.y_axis == "down":
        return list(keyframes)
    return [replace(key, flame=flip_y(key.flame), extra=read_only(key.extra | FLIPPED)) for key in keyframes]


def is_flipped(key: KeyFrame) -> bool:
    """True if keyframes_for_file() has mirrored the flame: it says so, or all that its final xform does is mirror."""
    return key.extra.items() >= FLIPPED.items() or key.flame.final_xform == flip_y(Flame()).final_xform


def flip_y(flame: Flame) -> Flame:
    """The flame mirrored in y, by negating the rows of y in the post-affine of its final xform.

    A final xform that does nothing is added for it, or removed after it. Raises UserError if the final xform is applied
    with a probability below 1.
    """
    final = flame.final_xform or NEUTRAL
    if final.opacity != 1:
        raise UserError(
            f"a flame with y_axis up and a final xform of opacity {final.opacity:g} cannot be written as a .flame file;"
            " its opacity must be 1"
        )
    a, b, c, d, e, f = final.post
    flipped = replace(final, post=(a, b, c, -d + 0.0, -e + 0.0, -f + 0.0))  # 0 in place of -0
    return replace(flame, final_xform=None if flipped == NEUTRAL else flipped)
