"""The picture `flame3d`: 3D iterated function systems seen by a perspective camera; xforms have 12 coefficients."""

from typing import ClassVar

from renderer.flames import settings as flame_settings
from renderer.flames.genome import IDENTITY_3D, Xform
from renderer.pictures import flame
from renderer.records import dataclass
from renderer.scene.cameras import Camera


@dataclass(frozen=True)
class Settings(flame_settings.Settings):
    """3D xforms of (x, y, z) with y up. Variations act on x and y; z passes through linear ones only."""

    xforms: tuple[Xform, ...] = (Xform(IDENTITY_3D),)
    view: Camera = Camera((1.6, 1.2, 2.6), (0.0, 0.3, 0.0))  # type: ignore[assignment]  # a camera instead of a 2D view

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_3d:
            raise ValueError(f"affine has {len(self.xforms[0].affine)} numbers; a 3D xform has 12")
        for name in ("solid", "cam_zdimish", "cam_dof"):
            if getattr(self, name):
                raise ValueError(f"{name} is of the cameras of the picture flame; this picture has a camera of its own")


class Picture(flame.Picture):
    """Draws 3D flames as flame.py draws 2D ones."""

    settings_type: ClassVar[type] = Settings
