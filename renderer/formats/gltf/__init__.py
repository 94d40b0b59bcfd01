"""Reads untrusted glTF 2.0 files (.gltf, .glb) as plain arrays: meshes, nodes, materials, textures, cameras and lights.

load() returns a Model at rest, with skins and morph targets applied; rig.model_at() poses it at a time of an animation.
extensions.py lists the supported extensions; everything else in a file is counted in Model.ignored.

Every index and offset is checked before it is used and every size before it is allocated; only files in the folder of
the glTF file, and below, are opened. Any violation raises an InputError that names the file and the item.
"""

from pathlib import Path

from renderer.errors import InputError
from renderer.formats.gltf.animation import Animation
from renderer.formats.gltf.model import Camera, Light, Material, MeshPrimitive, Model, Texture, TextureSlot
from renderer.formats.linked import cached_by_file, remember_links

__all__ = ["Animation", "Camera", "Light", "Material", "MeshPrimitive", "Model", "Texture", "TextureSlot", "load"]


@cached_by_file(4)
def load(path: Path, variant: str = "") -> Model:
    """Loads a file as a Model; `variant` selects a material variant (KHR_materials_variants).

    The Model is cached until the file, or a file it refers to, changes. Its arrays are shared, so read-only.
    """
    from renderer.formats.gltf.container import Container  # imported here: most pictures read no such file
    from renderer.formats.gltf.nodes import build_model

    try:
        file = Container(path)
        model = build_model(file, variant)
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than there is") from error
    remember_links(path, file.linked)
    return model
