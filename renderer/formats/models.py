"""Loads a file of any supported format as a glTF Model: glTF itself, or a mesh file with its materials and colors."""

from pathlib import Path

from renderer.errors import InputError
from renderer.formats import gltf
from renderer.formats.mesh import load_model as load_mesh_model
from renderer.plain import format_value

GLTF_SUFFIXES = (".glb", ".gltf", ".vrm")  # .vrm: avatars, in the container of .glb


def load_model(path: Path | str, variant: str = "") -> gltf.Model:
    """Loads a file as a Model; `variant` selects glTF material variants. Arrays are shared by callers, so read-only.

    Raises InputError for a damaged file, and for a variant that the file does not have.
    """
    path = Path(path)
    if path.suffix.lower() in GLTF_SUFFIXES or not path.suffix:
        return gltf.load(path, variant)
    if variant:
        raise InputError(f"{path}: has no variant {format_value(variant)}; only glTF files have any")
    return load_mesh_model(path)
