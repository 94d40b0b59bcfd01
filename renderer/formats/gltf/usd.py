"""Turns USD files (.usd, .usda, .usdc, .usdz) into the bytes of a .glb, which container.py reads and checks.

Read are meshes with UsdPreviewSurface materials and their textures, perspective cameras, and distant, sphere, disk and
rectangle lights, at the first time of the stage. The optional package usd-core, which only this module imports, opens
the stage; what a stage refers to must lie in the file's folder or below.
"""

import json
import math
import struct
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from renderer.errors import InputError, UnavailableError
from renderer.plain import Json
from renderer.system.files import resolve
from renderer.system.install import pip_install
from renderer.system.trust import named_file

if TYPE_CHECKING:
    from pxr import Usd, UsdGeom, UsdShade

SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
MAX_BYTES = 1 << 30  # of the file, and of the arrays made from it
IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}
SCALARS = {"metallic": "metallicFactor", "roughness": "roughnessFactor"}


def as_glb(path: Path) -> tuple[bytes, Counter[str]]:
    """Returns the bytes of a .glb, and the prims that it lacks, as renderer.plain.format_ignored takes them.

    Raises InputError for a file that cannot be read, UnavailableError without usd-core.
    """
    try:
        from pxr import Tf, Usd
    except ImportError as error:
        raise UnavailableError(f"{path}: USD files need the package usd-core: {pip_install('usd')}") from error
    if path.stat().st_size > MAX_BYTES:
        raise InputError(f"{path}: is larger than the {MAX_BYTES >> 20} MiB allowed")
    try:
        stage = Usd.Stage.Open(str(resolve(path)))
        foreign = [layer.realPath for layer in stage.GetUsedLayers() if layer.realPath]
    except Tf.ErrorException as error:
        raise InputError(f"{path}: not a USD file: {str(error).strip().splitlines()[-1][:200]}") from error
    for name in foreign:
        named_file(name, resolve(path).parent, SUFFIXES, f"{path}: a layer")
    return _Writer(path, stage).glb()


class _Writer:
    """The .glb of a stage: its JSON tree and its binary chunk."""

    def __init__(self, path: Path, stage: "Usd.Stage") -> None:
        from pxr import Usd, UsdGeom

        self.path, self.stage, self.ignored, self.binary = path, stage, Counter[str](), bytearray()
        self.time = Usd.TimeCode(stage.GetStartTimeCode())
        self.world = UsdGeom.XformCache(self.time)
        self.materials: dict[str, int] = {}
        names = "nodes meshes materials accessors bufferViews cameras images textures lights"
        self.tree: Json = {name: [] for name in names.split()} | {"asset": {"version": "2.0"}}
        turn = [1.0, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 1]  # z up to y up
        is_z_up = UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.z
        self.tree["nodes"].append({"children": [], **({"matrix": turn} if is_z_up else {})})

    def glb(self) -> tuple[bytes, Counter[str]]:
        """Writes all visible prims."""
        from pxr import Usd, UsdGeom, UsdLux

        for prim in self.stage.Traverse(Usd.TraverseInstanceProxies()):
            kind, shape = prim.GetTypeName(), UsdGeom.Imageable(prim)
            if shape and (shape.ComputeVisibility(self.time) == "invisible" or shape.ComputePurpose() == "guide"):
                continue
            if prim.IsA(UsdGeom.Mesh):
                self._mesh(UsdGeom.Mesh(prim))
            elif prim.IsA(UsdGeom.Camera):
                self._camera(UsdGeom.Camera(prim))
            elif kind in ("DistantLight", "SphereLight", "DiskLight", "RectLight"):
                self._light(prim, kind)
            elif prim.IsA(UsdGeom.Gprim) or prim.HasAPI(UsdLux.LightAPI) or kind == "PointInstancer":
                self.ignored[f"{kind} prims"] += 1
        nodes = self.tree["nodes"]
        nodes[0]["children"] = list(range(1, len(nodes)))
        self.tree |= {"scene": 0, "scenes": [{"nodes": [0]}], "buffers": [{"byteLength": len(self.binary)}]}
        if lights := self.tree.pop("lights"):
            self.tree["extensions"] = {"KHR_lights_punctual": {"lights": lights}}
        text = json.dumps({key: value for key, value in self.tree.items() if value != []}).encode()
        chunks = [(b"JSON", text + b" " * (-len(text) % 4)), (b"BIN\0", bytes(self.binary))]
        body = b"".join(struct.pack("<I4s", len(data), name) + data for name, data in chunks if data)
        return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body, self.ignored

    def _add(self, group: str, entry: Json) -> int:
        """Appends an entry to a list of the tree; returns its index."""
        self.tree[group].append(entry)
        return len(self.tree[group]) - 1

    def _node(self, prim: "Usd.Prim", **facts: object) -> None:
        """Adds a node at the place of a prim in the world; `facts` are its other keys."""
        matrix = np.array(self.world.GetLocalToWorldTransform(prim), "f8").ravel().tolist()
        # USD stores a matrix for row vectors by rows, glTF one for column vectors by columns: the same numbers.
        self._add("nodes", {"name": prim.GetName(), "matrix": matrix, **facts})

    def _view(self, data: bytes) -> int:
        """Appends bytes to the binary chunk; returns the index of their buffer view."""
        if len(self.binary) + len(data) > MAX_BYTES:
            raise InputError(f"{self.path}: its arrays are larger than the {MAX_BYTES >> 20} MiB allowed")
        begin = len(self.binary)
        self.binary += data + b"\0" * (-len(data) % 4)
        return self._add("bufferViews", {"buffer": 0, "byteOffset": begin, "byteLength": len(data)})

    def _accessor(self, values: np.ndarray) -> int:
        """Adds an accessor of vectors (n, w); returns its index."""
        rows = np.ascontiguousarray(values, "<f4")
        facts: Json = {"componentType": 5126, "count": len(rows), "type": f"VEC{rows.shape[1]}"}
        if len(rows):
            facts |= {"min": rows.min(0).tolist(), "max": rows.max(0).tolist()}
        return self._add("accessors", facts | {"bufferView": self._view(rows.tobytes())})

    def _mesh(self, mesh: "UsdGeom.Mesh") -> None:
        """Writes the triangles of a mesh, three vertices each, a primitive for each material.

        Polygons become triangle fans. Corner numbers count through all polygons; index[corner] is the point.
        """
        from pxr import UsdGeom, UsdShade

        points = np.array(mesh.GetPointsAttr().Get(self.time) or [], "f4").reshape(-1, 3)
        counts = np.array(mesh.GetFaceVertexCountsAttr().Get(self.time) or [], "i8")
        index = np.array(mesh.GetFaceVertexIndicesAttr().Get(self.time) or [], "i8")
        if (
            counts.min(initial=0) < 0
            or counts.sum() != len(index)
            or (index.size and not 0 <= index.min() <= index.max() < len(points))
        ):
            raise InputError(f"{self.path}: {mesh.GetPath()} has faces of points that do not exist")
        triangles = np.maximum(counts - 2, 0)  # of each polygon
        face = np.repeat(np.arange(len(counts)), triangles)  # the polygon (m,) of each triangle
        first = (np.cumsum(counts) - counts)[face]
        nth = np.arange(len(face)) - (np.cumsum(triangles) - triangles)[face]  # number of a triangle in its polygon
        corner = np.stack([first, first + nth + 1, first + nth + 2], 1)
        if mesh.GetOrientationAttr().Get(self.time) == UsdGeom.Tokens.leftHanded:
            corner = corner[:, ::-1]
        arrays = {"POSITION": points[index[corner]]}
        primvars = UsdGeom.PrimvarsAPI(mesh)
        normals, st = primvars.GetPrimvar("normals"), primvars.GetPrimvar("st")
        for name, values, interpolation in (
            ("NORMAL", normals.ComputeFlattened(self.time) if normals else mesh.GetNormalsAttr().Get(self.time),
             normals.GetInterpolation() if normals else mesh.GetNormalsInterpolation()),
            ("TEXCOORD_0", st.ComputeFlattened(self.time) if st else None, st.GetInterpolation() if st else ""),
        ):  # fmt: skip
            # A value for each corner, or for each point; other interpolations, a value a mesh or face, are left out.
            rows = {"faceVarying": corner, "vertex": index[corner], "varying": index[corner]}.get(interpolation)
            if values is not None and rows is not None and rows.size and rows.max() < len(values):
                arrays[name] = np.array(values, "f4")[rows]
        if "TEXCOORD_0" in arrays:
            arrays["TEXCOORD_0"] = arrays["TEXCOORD_0"] * (1, -1) + (0, 1)  # USD counts v upwards
        if "NORMAL" not in arrays and mesh.GetSubdivisionSchemeAttr().Get() != UsdGeom.Tokens.none:
            self.ignored["subdivision of meshes"] += 1
        bind, primitives = UsdShade.MaterialBindingAPI, []
        subsets = [(subset.GetPrim(), np.array(subset.GetIndicesAttr().Get(self.time) or [], "i8"))
                   for subset in bind(mesh).GetMaterialBindSubsets()]  # fmt: skip
        rest = np.setdiff1d(np.arange(len(counts)), np.concatenate([np.zeros(0), *(faces for _, faces in subsets)]))
        for prim, faces in [*subsets, (mesh.GetPrim(), rest)]:  # the other faces have the material of the mesh
            keep = np.isin(face, faces)
            if keep.any():
                attributes = {
                    name: self._accessor(values[keep].reshape(-1, values.shape[2])) for name, values in arrays.items()
                }
                material = bind(prim).ComputeBoundMaterial()[0]
                primitives.append({"attributes": attributes, "material": self._material(material, mesh)})
        if primitives:
            self._node(mesh.GetPrim(), mesh=self._add("meshes", {"primitives": primitives}))

    def _material(self, material: "UsdShade.Material", mesh: "UsdGeom.Mesh") -> int:
        """Returns the index of a UsdPreviewSurface, or of a plain surface of the mesh's color."""
        colors = None if material else mesh.GetDisplayColorAttr().Get(self.time)
        key = str(material.GetPath()) if material else f"color {colors[0] if colors else None}"
        if key not in self.materials:
            shader = material.ComputeSurfaceSource()[0] if material else None
            inputs = {i.GetBaseName(): i for i in shader.GetInputs()} if shader else {}
            if shader and shader.GetIdAttr().Get() != "UsdPreviewSurface":
                self.ignored["other shaders than UsdPreviewSurface materials"] += 1
            values = {name: value for name, i in inputs.items() if (value := i.Get(self.time)) is not None}
            color = values.get("diffuseColor", colors[0] if colors else (0.18, 0.18, 0.18))
            opacity = float(values.get("opacity", 1.0))
            surface: Json = {
                factor: float(values.get(name, default))
                for (name, factor), default in zip(SCALARS.items(), (0, 0.5), strict=True)
            }
            surface["baseColorFactor"] = [*map(float, color), opacity]
            entry: Json = {"name": key, "pbrMetallicRoughness": surface}
            entry["emissiveFactor"] = [min(float(x), 1.0) for x in values.get("emissiveColor", (0, 0, 0))]
            used = {"diffuseColor", "normal", "emissiveColor"}
            connected = {name: i for name, i in inputs.items() if i.HasConnectedSource()}  # to textures
            found = {name: self._texture(i) for name, i in connected.items() if name in used}
            indices = {name: {"index": index} for name, index in found.items() if index is not None}
            if "diffuseColor" in indices:
                surface |= {"baseColorTexture": indices["diffuseColor"], "baseColorFactor": [1.0, 1.0, 1.0, opacity]}
                if connected.pop("opacity", None):  # the alpha of that texture
                    entry["alphaMode"] = "MASK" if values.get("opacityThreshold") else "BLEND"
            if "normal" in indices:
                entry["normalTexture"] = indices["normal"]
            if "emissiveColor" in indices:
                entry |= {"emissiveTexture": indices["emissiveColor"], "emissiveFactor": [1.0] * 3}
            self.ignored.update(f"{name} textures" for name in connected if name not in indices)
            if opacity < 1:
                entry["alphaMode"] = "BLEND"
            entry["extensions"] = {"KHR_materials_ior": {"ior": max(float(values.get("ior", 1.5)), 1.0)}}
            if values.get("clearcoat"):
                rough = float(values.get("clearcoatRoughness", 0.01))
                coat = {"clearcoatFactor": float(values["clearcoat"]), "clearcoatRoughnessFactor": rough}
                entry["extensions"]["KHR_materials_clearcoat"] = coat
            self.materials[key] = self._add("materials", entry)
        return self.materials[key]

    def _texture(self, value: "UsdShade.Input") -> int | None:
        """Returns the index of the texture that a shader's input is connected to, None without one."""
        from pxr import Ar, UsdShade

        source = value.GetConnectedSource() if value.HasConnectedSource() else None
        shader = UsdShade.Shader(source[0]) if source else None
        asset = shader.GetInput("file").Get(self.time) if shader and shader.GetInput("file") else None
        # A picture in a .usdz has the path "model.usdz[picture.png]".
        suffix = Path(asset.resolvedPath.rstrip("]")).suffix.lower() if asset else ""
        if asset is None or suffix not in IMAGES:
            return None
        inner = Ar.SplitPackageRelativePathOuter(asset.resolvedPath)[0]
        named_file(inner, resolve(self.path).parent, (*SUFFIXES, *IMAGES), f"{self.path}: a texture")
        data = Ar.GetResolver().OpenAsset(Ar.ResolvedPath(asset.resolvedPath))
        if data is None:
            return None
        image = {"bufferView": self._view(bytes(data.GetBuffer())), "mimeType": IMAGES[suffix]}
        return self._add("textures", {"source": self._add("images", image)})

    def _camera(self, camera: "UsdGeom.Camera") -> None:
        """Writes a perspective camera; others are counted as ignored."""
        lens = camera.GetCamera(self.time)
        if lens.projection != lens.Perspective or not lens.focalLength > 0:
            self.ignored["orthographic cameras"] += 1
            return
        angle = 2 * math.atan(lens.verticalAperture / (2 * lens.focalLength))
        aspect = max(lens.horizontalAperture / max(lens.verticalAperture, 1e-6), 1e-3)
        entry = {"type": "perspective", "perspective": {"yfov": angle, "znear": 0.01, "aspectRatio": aspect}}
        self._node(camera.GetPrim(), camera=self._add("cameras", entry))

    def _light(self, prim: "Usd.Prim", kind: str) -> None:
        """Writes a light: distant as a sun of its illuminance, others as points of their intensity ahead.

        USD's intensity is a radiance. The intensity ahead of the light is that times the area seen from there or, if
        the light is normalized, times the fraction of its surface that is seen.
        """
        from pxr import UsdLux

        light = UsdLux.LightAPI(prim)
        strength = light.GetIntensityAttr().Get(self.time) * 2 ** light.GetExposureAttr().Get(self.time)
        radius, width, height = (
            float(prim.GetAttribute(f"inputs:{name}").Get(self.time) or 0) for name in ("radius", "width", "height")
        )
        area = width * height if kind == "RectLight" else math.pi * radius * radius
        if kind != "DistantLight":
            surface = 4 * area if kind == "SphereLight" else area
            strength *= area / surface if light.GetNormalizeAttr().Get(self.time) and surface > 0 else area
            if kind != "SphereLight":
                self.ignored[f"size of {kind}s"] += 1
        color = [float(x) for x in light.GetColorAttr().Get(self.time)]
        form = "directional" if kind == "DistantLight" else "point"
        light_row = self._add("lights", {"type": form, "intensity": max(strength, 0.0), "color": color})
        self._node(prim, extensions={"KHR_lights_punctual": {"light": light_row}})
