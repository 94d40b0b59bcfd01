"""Files with materials of their own as Models: glTF, and mesh files with material libraries, textures or colors."""

from pathlib import Path

from renderer.formats import gltf
from renderer.formats.mesh import load_model as load_mesh_model

GLTF_SUFFIXES = (".glb", ".gltf")


def load_model(path: Path | str) -> gltf.Model:
    """The Model of a file; the arrays are shared, so they are read-only."""
    path = Path(path)
    return gltf.load(path) if path.suffix.lower() in GLTF_SUFFIXES or not path.suffix else load_mesh_model(path)
