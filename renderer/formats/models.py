"""Files with materials of their own as Models: glTF, and mesh files with material libraries, textures or colors."""

from pathlib import Path

from renderer.errors import UserError
from renderer.formats import gltf
from renderer.formats.mesh import load_model as load_mesh_model
from renderer.plain import format_value

GLTF_SUFFIXES = (".glb", ".gltf")


def load_model(path: Path | str, variant: str = "") -> gltf.Model:
    """The Model of a file, with the materials of a variant where that is named; the arrays are shared, so read-only."""
    path = Path(path)
    if path.suffix.lower() in GLTF_SUFFIXES or not path.suffix:
        return gltf.load(path, variant)
    if variant:
        raise UserError(f"{path}: has no variant {format_value(variant)}; only glTF files have any")
    return load_mesh_model(path)
