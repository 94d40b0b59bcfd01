"""glTF 2.0 files of strangers (.gltf, .glb) as plain arrays: meshes, nodes, materials, pictures, cameras and lights.

What is read is that part of the Khronos specification which a still picture shows. Every number that leads to another
place is checked before it is followed, sizes are bounded before they are allocated, and no file is opened that does
not lie in the folder of the first. A wrong one is a BadInput that names the file and the item.
"""

import os
from functools import lru_cache
from pathlib import Path

from renderer import BadInput
from renderer.gltf.container import Container
from renderer.gltf.model import Camera, Light, Material, Model, Part, Picture
from renderer.gltf.nodes import model

__all__ = ["Camera", "Light", "Material", "Model", "Part", "Picture", "load"]


def load(path) -> Model:
    """The Model of a file, read once while it stays as it is; its arrays are shared, so they are read-only."""
    path = Path(path)
    try:
        state = os.stat(path)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    return _load(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _load(path: Path, changed: int, size: int) -> Model:
    try:
        return model(Container(path, size))
    except MemoryError as error:
        raise BadInput(f"{path}: asks for more memory than there is") from error
