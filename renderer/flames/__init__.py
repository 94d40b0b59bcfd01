"""Fractal flames, below pictures: genome, .flame files, variations, palettes, kernels of the chaos game, exposure.

    from renderer import flames
    one, two = flames.read("pack.flame")[:2]
    flames.write("loop.flame", flames.loop(flames.breed(one, two, seed=7), 48))

The names below are for scripts (`assets/guides/flames.md`); they are imported when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from renderer.flames.animation import edge, loop, rotated, sequence
    from renderer.flames.genome import Flame, Xform
    from renderer.flames.interpolation import KeyFrame
    from renderer.flames.studio import apply, breed, mutate, read, write

__all__ = [
    "Flame",
    "KeyFrame",
    "Xform",
    "apply",
    "breed",
    "edge",
    "loop",
    "mutate",
    "read",
    "rotated",
    "sequence",
    "write",
]
_HOMES = {
    **dict.fromkeys(("edge", "loop", "rotated", "sequence"), "animation"),
    **dict.fromkeys(("apply", "breed", "mutate", "read", "write"), "studio"),
    **dict.fromkeys(("Flame", "Xform"), "genome"),
    "KeyFrame": "interpolation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'renderer.flames' has no attribute {name!r}")
    return getattr(import_module(f"renderer.flames.{_HOMES[name]}"), name)
