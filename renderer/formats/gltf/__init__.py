"""glTF 2.0 files of strangers (.gltf, .glb) as plain arrays: meshes, nodes, materials, pictures, cameras and lights.

What is read is that part of the Khronos specification which a still picture shows: skins as the nodes stand,
but no morph targets, whose meshes stay as they are. Every number that leads to another place is checked before it is
followed, sizes are bounded before they are allocated, and no file is opened that does not lie in the folder of the
first. A wrong one is a InputError that names the file and the item.
"""

import os
from functools import lru_cache
from pathlib import Path

from renderer.errors import InputError
from renderer.formats.gltf.container import Container, stamp_of
from renderer.formats.gltf.model import Camera, Light, Material, Model, Part, Picture
from renderer.formats.gltf.nodes import model_of

__all__ = ["Camera", "Light", "Material", "Model", "Part", "Picture", "load"]


def load(path: Path) -> Model:
    """The Model of a file, read once while it and the files it names stay as they are; its arrays are shared, so they
    are read-only.
    """
    path = Path(path)
    try:
        state = os.stat(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    model, linked = _load(path, state.st_mtime_ns, state.st_size)
    if any(stamp_of(file) != stamp for file, stamp in linked.items()):
        _load.cache_clear()
        model, _ = _load(path, state.st_mtime_ns, state.st_size)
    return model


@lru_cache(maxsize=4)
def _load(path: Path, changed: int, size: int) -> tuple[Model, dict]:
    try:
        file = Container(path, size)
        return model_of(file), file.linked
    except MemoryError as error:
        raise InputError(f"{path}: asks for more memory than there is") from error
