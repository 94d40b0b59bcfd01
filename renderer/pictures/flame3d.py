"""3D iterated function systems, seen by a perspective camera: flames whose xforms have 12 coefficients."""

from dataclasses import dataclass

from renderer.flames.genome import IDENTITY_3D, Xform
from renderer.pictures import flame
from renderer.scene.cameras import Camera


@dataclass(frozen=True)
class Settings(flame.Settings):
    """Maps of space, (x, y, z) with y upwards. Variations act on x and y; z goes through linear ones."""

    xforms: tuple[Xform, ...] = (Xform(IDENTITY_3D),)
    view: Camera = Camera((1.6, 1.2, 2.6), (0.0, 0.3, 0.0))

    def __post_init__(self):
        super().__post_init__()
        if not self.is_3d:
            raise ValueError(f"affine has {len(self.xforms[0].affine)} numbers; a map of space has 12")


class Picture(flame.Picture):
    """Draws flames of space; see flame.py."""

    settings_type = Settings
