"""Decompresses primitives with KHR_draco_mesh_compression before the mesh is read.

The primitives of a file are decoded in one child process (renderer.formats.codecs); their placeholder accessors are
replaced by accessors of the decoded arrays, so that nodes.py reads them as uncompressed primitives.
"""

import numpy as np

from renderer.formats import codecs
from renderer.formats.gltf.container import Container
from renderer.plain import Json

NAME = "KHR_draco_mesh_compression"
MAX_ITEMS = 1 << 25  # vertices or triangles of one primitive


def decompress(file: Container, meshes: set[int]) -> None:
    """Decodes the compressed primitives of `meshes` (indices) and replaces their accessors by decoded ones."""
    found: list[tuple[Json, Json, str]] = []
    for mesh in sorted(meshes):
        for name, primitive in file.objects("primitives", file.item("meshes", mesh, "a node"), f"meshes[{mesh}]"):
            if NAME in file.object_at(primitive, "extensions", name):
                found.append((primitive, file.extension(primitive, NAME, name), name))
    views: dict[object, codecs.Job] = {}  # by index of the buffer view, which several primitives may share
    for _, table, name in found:
        view = table.get("bufferView")
        data, _ = file.view(view, name)
        views.setdefault(view, codecs.Job("draco", name, bytes(data), MAX_ITEMS))
    decoded = dict(zip(views, codecs.decode(file.path, list(views.values())), strict=True))
    for primitive, table, name in found:
        _replace(file, primitive, table, decoded[table["bufferView"]], name)


def _replace(file: Container, primitive: Json, table: Json, arrays: dict[str, np.ndarray], name: str) -> None:
    """Points a primitive at new accessors of its decoded arrays; its uncompressed attributes stay."""
    attributes = dict(file.object_at(primitive, "attributes", name))
    for key, unique_id in file.object_at(table, "attributes", name).items():
        if key not in attributes or str(unique_id) not in arrays:
            file.fail(name, f"has no compressed {key[:40]} with the id {str(unique_id)[:20]}")
        attributes[key] = file.add_accessor(attributes[key], arrays[str(unique_id)], f"{name}.{key[:40]}")
    primitive["attributes"] = attributes
    primitive["indices"] = file.add({"type": "SCALAR"}, arrays["faces"].reshape(-1, 1))
    primitive["mode"] = 4  # triangles; Draco may have stored a strip
