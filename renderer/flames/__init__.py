"""Fractal flames: genome, .flame files, variations, palettes, kernels of the chaos game, tone mapping.

renderer/pictures/flame.py draws flames with these modules. Scripts use the names in `__all__`, which are imported at
their first use (guide: `assets/guides/flames.md`):

    from renderer import flames
    first, second = flames.read("pack.flame")[:2]
    flames.write("loop.flame", flames.loop(flames.breed(first, second, seed=7), 48))
"""

from typing import TYPE_CHECKING

from renderer.lazy import lazy_names

if TYPE_CHECKING:
    from renderer.flames.animation import edge, loop, rotated, sequence
    from renderer.flames.genome import Flame, Xform
    from renderer.flames.interpolation import KeyFrame
    from renderer.flames.studio import apply, breed, mutate, read, write

__all__ = [
    "Flame", "KeyFrame", "Xform", "apply", "breed", "edge", "loop", "mutate", "read", "rotated", "sequence", "write",
]  # fmt: skip
_MODULES = {
    **dict.fromkeys(("edge", "loop", "rotated", "sequence"), "animation"),
    **dict.fromkeys(("apply", "breed", "mutate", "read", "write"), "studio"),
    **dict.fromkeys(("Flame", "Xform"), "genome"),
    "KeyFrame": "interpolation",
}

if not TYPE_CHECKING:  # else a misspelled name would be Any
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
