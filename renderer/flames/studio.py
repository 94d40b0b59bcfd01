"""Functions of renderer.flames for scripts: read and write .flame files, change, mutate and breed key frames.

They wrap xml/, edit.py and evolve.py. A KeyFrame is a flame with its camera and time; random changes depend on a seed.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from renderer.errors import UserError
from renderer.flames.evolve import MUTATIONS, cross
from renderer.flames.evolve import mutate as mutate_flame
from renderer.flames.genome import Flame
from renderer.flames.interpolation import KeyFrame
from renderer.flames.settings import Settings, keyframes_for_file
from renderer.flames.xml.read import read_library
from renderer.flames.xml.write import to_xml
from renderer.paths import find_input
from renderer.scene.scene import Scene
from renderer.system.outputs import write_text


def read(path: str | Path) -> list[KeyFrame]:
    """The readable flames of a .flame file, or of a bundled one ("anemone"), in the file's order, with their cameras.

    Raises:
        InputError: no flame of the file can be read.
    """
    return [entry.keyframe for entry in read_library(find_input(path, (".flame",)))[0] if entry.keyframe]


def write(path: str | Path, keyframes: "KeyFrame | Scene | Iterable[KeyFrame | Scene]") -> None:
    """Writes key frames, and scenes of flames, to a .flame file, which `read` reads as the same key frames.

    Raises:
        UserError: an object that is neither.
    """
    given = keyframes if isinstance(keyframes, Iterable) else [keyframes]
    write_text(Path(path), to_xml(key for item in given for key in _keyframes(item)))


def _keyframes(item: object) -> list[KeyFrame]:
    if isinstance(item, Scene) and isinstance(item.settings, Settings):
        return keyframes_for_file(item.settings, item.size or (1280, 720), item.title)
    if not isinstance(item, KeyFrame):
        kind = f"a {item.picture} scene" if isinstance(item, Scene) else type(item).__name__
        raise UserError(f"flames.write takes key frames and scenes of flames, not {kind}")
    return [item]


def apply(key: KeyFrame, change: Callable[..., Flame], *arguments: object) -> KeyFrame:
    """The key frame with its flame replaced by change(flame, *arguments); `change`: often of renderer.flames.edit."""
    return replace(key, flame=change(key.flame, *arguments), palette_number=-1)


def mutate(key: KeyFrame, seed: int, kind: str | None = None, strength: float = 0.3) -> KeyFrame:
    """The key frame with one random change, which depends only on `seed`. `kind` is one of evolve.MUTATIONS.

    Raises:
        UserError: an unknown kind.
    """
    if kind is not None and kind not in MUTATIONS:
        raise UserError(f"mutate: kind is {kind!r}; allowed are {', '.join(MUTATIONS)}")
    return apply(key, mutate_flame, np.random.default_rng(seed), kind, strength)


def breed(first: KeyFrame, second: KeyFrame, seed: int) -> KeyFrame:
    """A child of two key frames, which depends only on `seed`.

    Each xform comes from one parent; `first` gives the palette, camera and exposure.
    """
    child = cross(first.flame, second.flame, np.random.default_rng(seed))
    if not sum(xform.weight for xform in child.xforms) > 0:
        return first  # all inherited xforms have weight 0: nothing to draw
    return replace(first, flame=child)
