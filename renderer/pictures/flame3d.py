"""Iterated function systems of space, seen by a camera: flames whose maps have 12 numbers, drawn as flame.py draws."""

from dataclasses import dataclass

from renderer.flames.genome import SPACE_IDENTITY, Map
from renderer.pictures import flame
from renderer.pictures.flame import Picture
from renderer.scene.cameras import Camera

__all__ = ["Picture", "Settings"]


@dataclass(frozen=True)
class Settings(flame.Settings):
    """Maps of space, (x, y, z) with y upwards. Variations act on x and y; z goes through linear ones."""

    maps: tuple[Map, ...] = (Map(SPACE_IDENTITY),)
    view: Camera = Camera((1.6, 1.2, 2.6), (0.0, 0.3, 0.0))

    def __post_init__(self):
        super().__post_init__()
        if not self.space:
            raise ValueError(f"affine has {len(self.maps[0].affine)} numbers; a map of space has 12")
