"""Untrusted glTF 2.0 files (.gltf, .glb) as plain arrays: meshes, nodes, materials, pictures, cameras and lights.

A Model is in the pose of its nodes, with skins and morph targets; rig.model_at() gives it at a time of an animation.
extensions.py lists the extensions that are read; whatever else a file says is counted in Model.ignored.

Every index and offset is checked before it is used, every size before it is allocated, and only files in the folder
of the first are opened. Any violation is an InputError that names the file and the item.
"""

from functools import lru_cache
from pathlib import Path

from renderer.errors import InputError
from renderer.formats.gltf.animation import Animation
from renderer.formats.gltf.container import Container, stamp_of
from renderer.formats.gltf.model import Camera, Light, Material, MeshPrimitive, Model, Texture, TextureSlot
from renderer.formats.gltf.nodes import model_of
from renderer.formats.linked import remember_links

__all__ = ["Animation", "Camera", "Light", "Material", "MeshPrimitive", "Model", "Texture", "TextureSlot", "load"]


def load(path: Path | str, variant: str = "") -> Model:
    """The Model of a file, with the materials of a variant where that is named.

    It is read again when it or a file that it names changes. The arrays are shared, so they are read-only.
    """
    path = Path(path)
    model, linked = _load(path, stamp_of(path), variant)
    if any(stamp_of(file) != stamp for file, stamp in linked.items()):
        _load.cache_clear()
        model, _ = _load(path, stamp_of(path), variant)
    return model


@lru_cache(maxsize=4)
def _load(path: Path, stamp: tuple[int, int] | None, variant: str) -> tuple[Model, dict]:
    try:
        file = Container(path)
        model = model_of(file, variant)
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than there is") from error
    remember_links(path, file.linked)
    return model, file.linked
