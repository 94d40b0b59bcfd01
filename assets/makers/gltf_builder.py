"""glTF files made for tests: arrays in, a tree and one buffer out."""

import base64
import io
import json
import struct

import numpy as np
from PIL import Image

KINDS = {"i1": 5120, "u1": 5121, "i2": 5122, "u2": 5123, "u4": 5125, "f4": 5126}
TYPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4", 16: "MAT4"}


class Maker:
    """A glTF tree that grows; `glb` and `gltf` are the file."""

    def __init__(self):
        self.tree = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": []}]}
        self.data = b""

    def add(self, group: str, entry: dict) -> int:
        self.tree.setdefault(group, []).append(entry)
        return len(self.tree[group]) - 1

    def view(self, data: bytes, **more) -> int:
        self.data += b"\0" * (-len(self.data) % 4)
        start = len(self.data)
        self.data += data
        return self.add("bufferViews", {"buffer": 0, "byteOffset": start, "byteLength": len(data), **more})

    def array(self, values, kind: str = "f4", stride: int = 0, **more) -> int:
        """An accessor of values (n, width) or (n,), with items `stride` bytes apart where it is given."""
        values = np.ascontiguousarray(values, "<" + kind)
        values = values.reshape(len(values), -1)
        width = values.shape[1]
        if stride:
            rows = np.zeros((len(values), stride), "u1")
            rows[:, : width * values.itemsize] = values.view("u1").reshape(len(values), -1)
            view = self.view(rows.tobytes(), byteStride=stride)
        else:
            view = self.view(values.tobytes())
        entry = {"bufferView": view, "componentType": KINDS[kind], "count": len(values), "type": TYPES[width]}
        return self.add("accessors", entry | more)

    def texture(self, pixels: np.ndarray, **sampler) -> int:
        data = io.BytesIO()
        Image.fromarray(pixels).save(data, "PNG")
        image = self.add("images", {"bufferView": self.view(data.getvalue()), "mimeType": "image/png"})
        entry = {"source": image}
        if sampler:
            entry["sampler"] = self.add("samplers", sampler)
        return self.add("textures", entry)

    def mesh(self, vertices, faces=None, normals=None, uv=None, material=None, others=None, **more) -> int:
        """A mesh; `others` are accessors by the name of the attribute."""
        attributes = {"POSITION": self.array(vertices), **(others or {})}
        if normals is not None:
            attributes["NORMAL"] = self.array(normals)
        if uv is not None:
            attributes["TEXCOORD_0"] = self.array(uv)
        primitive = {"attributes": attributes, **more}
        if faces is not None:
            primitive["indices"] = self.array(np.ravel(faces), "u2")
        if material is not None:
            primitive["material"] = material
        return self.add("meshes", {"primitives": [primitive]})

    def node(self, root: bool = True, **entry) -> int:
        index = self.add("nodes", entry)
        if root:
            self.tree["scenes"][0]["nodes"].append(index)
        return index

    def light(self, **entry) -> dict:
        lights = self.tree.setdefault("extensions", {}).setdefault("KHR_lights_punctual", {}).setdefault("lights", [])
        lights.append(entry)
        return {"KHR_lights_punctual": {"light": len(lights) - 1}}

    def glb(self) -> bytes:
        tree = {**self.tree, "buffers": self.tree.get("buffers", [{"byteLength": len(self.data)}])}
        text = json.dumps(tree).encode()
        text += b" " * (-len(text) % 4)
        data = self.data + b"\0" * (-len(self.data) % 4)
        chunks = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(data), 0x004E4942) + data
        return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks

    def gltf(self, uri: str | None = None) -> str:
        uri = uri or "data:application/octet-stream;base64," + base64.b64encode(self.data).decode()
        return json.dumps({**self.tree, "buffers": [{"byteLength": len(self.data), "uri": uri}]})


def square(maker: Maker, half: float = 1.0, **more) -> int:
    """A mesh: a square that faces +z, u to the right, v down."""
    vertices = half * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], "f4")
    uv = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], "f4")
    return maker.mesh(vertices, [[0, 1, 2], [0, 2, 3]], uv=uv, **more)


def ball(maker: Maker, rings: int = 10, normals: bool = True, **more) -> int:
    """A mesh: a ball of radius 1, its pictures once around."""
    u, v = np.meshgrid(np.linspace(0, 1, 2 * rings + 1), np.linspace(0, 1, rings + 1))
    turn, down = 2 * np.pi * u.ravel(), np.pi * v.ravel()
    p = np.stack([np.sin(down) * np.sin(turn), np.cos(down), np.sin(down) * np.cos(turn)], 1)
    first = (np.arange(rings)[:, None] * (2 * rings + 1) + np.arange(2 * rings)).ravel()
    below = first + 2 * rings + 1
    faces = np.concatenate([np.stack([first, below, below + 1], 1), np.stack([first, below + 1, first + 1], 1)])
    return maker.mesh(p, faces, normals=p if normals else None, uv=np.stack([u.ravel(), v.ravel()], 1), **more)


def bumps(size: int, period: int, height: float) -> np.ndarray:
    """A normal picture of a field of bumps, (size, size, 3)."""
    y, x = np.mgrid[:size, :size] * (2 * np.pi / period)
    slope = np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y), np.full(x.shape, 1 / height)], 2)
    return np.round((slope / np.linalg.norm(slope, axis=2, keepdims=True) + 1) * 127.5).astype("u1")


def showcase() -> Maker:
    """A little still life that uses all of the core specification that is read."""
    maker, n = Maker(), 128
    y, x = np.mgrid[:n, :n]
    tiles = np.where(((x // 16 + y // 16) % 2)[..., None], (214, 92, 62), (238, 224, 196)).astype("u1")
    shine = np.zeros((n, n, 3), "u1")
    shine[..., 1] = np.where((x // 16 + y // 16) % 2, 60, 190)
    leaf = np.full((n, n, 4), (70, 140, 60, 255), "u1")
    middle, across = np.abs(x - 63.5) / 64, (y + 0.5) / n
    leaf[..., 3] = np.where(middle < 0.9 * np.sin(np.pi * across) * (0.8 + 0.2 * np.cos(40 * across)), 255, 0)
    leaf[..., :3] = np.where((middle < 0.02)[..., None], (150, 190, 110), leaf[..., :3])
    glow = np.where(((x // 8) % 2)[..., None], (255, 190, 90), (80, 30, 5)).astype("u1")

    def material(**entry) -> int:
        return maker.add("materials", entry)

    floor = material(name="tiles", pbrMetallicRoughness={
        "baseColorTexture": {"index": maker.texture(tiles)}, "metallicFactor": 0,
        "metallicRoughnessTexture": {"index": maker.texture(shine)}})  # fmt: skip
    brass = {"baseColorFactor": [0.95, 0.72, 0.35, 1], "roughnessFactor": 0.22}
    hammered = {"index": maker.texture(bumps(n, 16, 0.5))}
    metal = material(name="hammered brass", normalTexture=hammered, pbrMetallicRoughness=brass)
    green = material(name="leaf", alphaMode="MASK", doubleSided=True, pbrMetallicRoughness={
        "baseColorTexture": {"index": maker.texture(leaf, wrapS=33071, wrapT=33071)}, "metallicFactor": 0,
        "roughnessFactor": 0.6})  # fmt: skip
    lantern = material(name="lantern", emissiveFactor=[1, 1, 1], emissiveTexture={"index": maker.texture(glow)},
                       pbrMetallicRoughness={"baseColorFactor": [0.1, 0.1, 0.1, 1], "metallicFactor": 0},
                       extensions={"KHR_materials_emissive_strength": {"emissiveStrength": 5}})  # fmt: skip
    glass = material(name="glass", pbrMetallicRoughness={"roughnessFactor": 0, "metallicFactor": 0}, extensions={
        "KHR_materials_transmission": {"transmissionFactor": 1}, "KHR_materials_ior": {"ior": 1.45}})  # fmt: skip
    veil = material(name="veil", alphaMode="BLEND", doubleSided=True, pbrMetallicRoughness={
        "baseColorFactor": [0.55, 0.65, 0.9, 0.45], "metallicFactor": 0})  # fmt: skip
    flat = [-np.sqrt(0.5), 0, 0, np.sqrt(0.5)]
    maker.node(mesh=square(maker, 3.0, material=floor), rotation=flat)
    maker.node(mesh=ball(maker, 24, material=metal), translation=[-0.9, 0.6, 0], scale=[0.6] * 3)
    maker.node(mesh=ball(maker, 24, material=glass), translation=[0.55, 0.45, 0.7], scale=[0.45] * 3)
    maker.node(mesh=ball(maker, 16, material=lantern), translation=[0.7, 0.5, -0.7], scale=[0.35, 0.5, 0.35])
    maker.node(mesh=square(maker, 0.8, material=veil), translation=[-0.5, 0.8, -1.3])
    blade = square(maker, material=green)
    leaves = [maker.node(False, mesh=blade, translation=[0, 0.55, 0.16], scale=[0.16, 0.5, 1],
                         rotation=[0.2588, 0, 0, 0.9659])]  # fmt: skip
    for k in range(9):
        turn = 2 * np.pi * k / 9
        place = [0.3 * np.sin(turn), 0.42, 0.3 * np.cos(turn)]
        lean = _product([0, np.sin(turn / 2), 0, np.cos(turn / 2)], [0.35, 0, 0, 0.937])
        leaves.append(maker.node(False, mesh=blade, translation=place, scale=[0.15, 0.48, 1], rotation=lean))
    maker.node(children=leaves, translation=[1.55, 0, -0.1])
    camera = maker.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.52, "aspectRatio": 1.6}})
    tilt = -0.3
    maker.node(camera=camera, translation=[0.15, 2.1, 5.4], rotation=[np.sin(tilt / 2), 0, 0, np.cos(tilt / 2)])
    sun = _product([0, np.sin(0.4), 0, np.cos(0.4)], [-np.sin(0.45), 0, 0, np.cos(0.45)])
    maker.node(extensions=maker.light(type="directional", intensity=2.6, color=[1, 0.95, 0.85]), rotation=sun)
    maker.node(extensions=maker.light(type="spot", intensity=30, color=[0.5, 0.65, 1],
                                      spot={"innerConeAngle": 0.25, "outerConeAngle": 0.5}),
               translation=[-1.6, 3.6, 1.2], rotation=[-np.sin(0.68), 0, 0, np.cos(0.68)])  # fmt: skip
    maker.node(extensions=maker.light(type="point", intensity=2.2, color=[1, 0.8, 0.6]), translation=[2.4, 1.6, 2.0])
    return maker


def _product(a, b) -> list[float]:
    """Of two quaternions (x, y, z, w): b's turn, then a's."""
    (x1, y1, z1, w1), (x2, y2, z2, w2) = a, b
    return [w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2, w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2, w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2]  # fmt: skip
