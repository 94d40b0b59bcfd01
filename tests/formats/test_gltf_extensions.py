"""glTF files: extensions that are read, codecs, and what is told as ignored."""

import base64
import json
import struct
import sys
import zlib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from assets.makers.gltf_builder import Maker, ball, square
from renderer.errors import InputError, UnavailableError, UserError
from renderer.formats import codecs, gltf
from renderer.formats.gltf import meshopt
from renderer.formats.gltf.extensions import MATERIALS, unread
from renderer.plain import format_ignored
from renderer.system import trial

PEER = json.loads(Path(__file__).with_name("peer_bytes.json").read_text(encoding="utf-8"))
DRACO = "KHR_draco_mesh_compression"


def put(tmp_path, maker, name="model.glb"):
    path = tmp_path / name
    path.write_bytes(maker.glb() if name.endswith(".glb") else maker.gltf().encode())
    return path


def loaded(tmp_path, **material):
    maker = Maker()
    maker.texture(np.full((2, 2, 4), (10, 20, 30, 102), "u1"))
    maker.node(mesh=square(maker, material=maker.add("materials", material)))
    return gltf.load(put(tmp_path, maker))


# ---- materials


def test_every_key_of_a_material_extension_reaches_its_field(tmp_path):
    """Each key gets a value of its own, and the field that snake case of the specification's word names holds it."""
    renamed = {
        "dispersion": "dispersion", "emissiveStrength": "", "attenuationDistance": "attenuation_distance",
        "anisotropyStrength": "anisotropy",
    }  # fmt: skip
    numbers = {"ior": 1.7, "iridescenceIor": 1.4, "iridescenceThicknessMinimum": 120, "dispersion": 3.5}
    numbers |= {"attenuationDistance": 2.5, "iridescenceThicknessMaximum": 480, "emissiveStrength": 2.0}
    plain, checked = gltf.Material(), set()
    for name, keys in MATERIALS.items():
        if name.endswith("pbrSpecularGlossiness"):
            continue
        for count, key in enumerate(sorted(keys), 1):
            if key.endswith("Texture"):
                model = loaded(tmp_path, extensions={name: {key: {"index": 0, "texCoord": 1}}})
                slot = model.materials[0].textures[snake(key.removesuffix("Texture"))]
                assert slot == gltf.TextureSlot(0, 1), key
                continue
            value = numbers.get(key, 0.1 * count)
            value = [value, 0.2, 0.3] if key.endswith(("ColorFactor", "Color")) else value
            material = loaded(tmp_path, extensions={name: {key: value}}, emissiveFactor=[1, 1, 1]).materials[0]
            if key == "emissiveStrength":
                assert material.emission == (2, 2, 2)
                continue
            field = renamed.get(key, snake(key.removesuffix("Factor")))
            assert getattr(material, field) == (tuple(value) if isinstance(value, list) else value), key
            assert getattr(plain, field) != getattr(material, field)
            checked.add(field)
    core = {"name", "color", "metallic", "roughness", "emission", "alpha", "cutoff", "double_sided", "textures"}
    assert {f.name for f in fields(gltf.Material)} - core - checked == {"unlit"}
    assert loaded(tmp_path, extensions={"KHR_materials_unlit": {}}).materials[0].unlit


def snake(word: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in word)


def test_texture_transforms_are_those_of_the_specification(tmp_path):
    """Its example: offset [0, 1], a quarter turn and scale 0.5 show the lower left quadrant, turned clockwise."""
    moved = {"offset": [0, 1], "rotation": np.pi / 2, "scale": [0.5, 0.5], "texCoord": 2}
    info = {"index": 0, "texCoord": 1, "extensions": {"KHR_texture_transform": moved}}
    slot = loaded(tmp_path, pbrMetallicRoughness={"baseColorTexture": info}).materials[0].textures["base_color"]
    corners = np.array([[0, 0, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1]]) @ np.reshape(slot.transform, (2, 3)).T
    assert slot.texcoord_set == 2
    assert np.allclose(corners, [[0, 1], [0, 0.5], [0.5, 1], [0.5, 0.5]])
    sheared = {"rotation": 0.3, "scale": [2, 3]}
    info = {"index": 0, "extensions": {"KHR_texture_transform": sheared}}
    slot = loaded(tmp_path, emissiveTexture=info).materials[0].textures["emissive"]
    turn = np.array([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])
    assert np.allclose(np.reshape(slot.transform, (2, 3))[:, :2], turn @ np.diag([2, 3]))


def test_specular_glossiness_keeps_its_reflectance(tmp_path):
    """F0 of a dielectric, ((ior - 1) / (ior + 1))^2 by specular_color, is the specular color for an infinite ior."""
    table = {"diffuseFactor": [0.5, 0.4, 0.3, 0.9], "specularFactor": [0.2, 0.1, 0.05], "glossinessFactor": 0.75}
    material = loaded(tmp_path, extensions={"KHR_materials_pbrSpecularGlossiness": table}).materials[0]
    assert material.color == (0.5, 0.4, 0.3, 0.9) and material.metallic == 0 and material.roughness == 0.25
    assert material.ior == 0 and material.specular_color == (0.2, 0.1, 0.05)
    table["specularGlossinessTexture"] = {"index": 0}
    model = loaded(tmp_path, extensions={"KHR_materials_pbrSpecularGlossiness": table})
    material = model.materials[0]
    assert material.roughness == 1 and material.textures["specular_color"].texture == 0
    gloss = 0.75 * 102 / 255
    roughness = model.textures[material.textures["metallic_roughness"].texture].pixels[..., 1] / 255
    assert np.allclose(roughness, 1 - gloss, atol=0.002) and not model.ignored


def test_variants_choose_materials(tmp_path):
    maker = Maker()
    red, blue = (maker.add("materials", {"name": name}) for name in ("red", "blue"))
    mesh = square(maker, material=red)
    maker.tree["extensions"] = {"KHR_materials_variants": {"variants": [{"name": "day"}, {"name": "night"}]}}
    mappings = {"mappings": [{"variants": [1], "material": blue}]}
    maker.tree["meshes"][mesh]["primitives"][0]["extensions"] = {"KHR_materials_variants": mappings}
    maker.node(mesh=mesh)
    path = put(tmp_path, maker)
    assert gltf.load(path).variants == ("day", "night") and not gltf.load(path).ignored
    for name, material in (("", red), ("day", red), ("night", blue)):
        assert gltf.load(path, name).meshes[mesh][0].material == material
    with pytest.raises(UserError, match='has no variant "noon"; there are day, night'):
        gltf.load(path, "noon")


# ---- nodes


def test_instances_are_where_nodes_would_put_them(tmp_path, rng):
    """The same meshes as plain nodes, children of one that has the parent's matrix."""
    count = 7
    places, sizes = rng.normal(size=(count, 3)), rng.uniform(0.5, 2, (count, 3))
    turns = rng.normal(size=(count, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    maker, plain = Maker(), Maker()
    attributes = {"TRANSLATION": maker.array(places), "ROTATION": maker.array(turns), "SCALE": maker.array(sizes)}
    parent = {"translation": [1, 2, 3], "scale": [2, 1, 1]}
    maker.node(mesh=square(maker), extensions={"EXT_mesh_gpu_instancing": {"attributes": attributes}}, **parent)
    mesh = square(plain)
    children = [
        plain.node(False, mesh=mesh, translation=t.tolist(), rotation=r.tolist(), scale=s.tolist())
        for t, r, s in zip(places, turns, sizes, strict=True)
    ]
    plain.node(children=children, **parent)
    model, other = gltf.load(put(tmp_path, maker)), gltf.load(put(tmp_path, plain, "plain.glb"))
    assert len(model.mesh_nodes) == count and not model.ignored
    for (_, matrix), (_, wanted) in zip(model.mesh_nodes, other.mesh_nodes, strict=True):
        assert np.allclose(matrix, wanted, atol=1e-5)


def test_invisible_nodes_hide_their_children(tmp_path):
    maker = Maker()
    mesh = square(maker)
    leaf = maker.node(False, mesh=mesh)
    maker.node(children=[leaf], mesh=mesh, extensions={"KHR_node_visibility": {"visible": False}})
    maker.node(mesh=mesh, extensions={"KHR_node_visibility": {"visible": True}}, translation=[0, 0, 5])
    model = gltf.load(put(tmp_path, maker))
    ((_, matrix),) = model.mesh_nodes
    assert matrix[2, 3] == 5 and not model.ignored


def test_chunks_without_padding_are_read(tmp_path):
    maker = Maker()
    maker.node(mesh=square(maker))
    text = json.dumps({**maker.tree, "buffers": [{"byteLength": len(maker.data)}]}).encode()
    text += b" " * (1 - len(text) % 4)
    assert len(text) % 4
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(maker.data), 0x004E4942)
    data = struct.pack("<4sII", b"glTF", 2, 12 + len(chunks) + len(maker.data)) + chunks + maker.data
    (tmp_path / "a.glb").write_bytes(data)
    assert len(gltf.load(tmp_path / "a.glb").meshes[0][0].faces) == 2


# ---- what is ignored


def test_what_is_not_honored_is_counted_by_name(tmp_path):
    maker = Maker()
    picture = {"index": maker.texture(np.zeros((1, 1, 3), "u1"))}
    extensions = {"ACME_gizmo": {}, "KHR_materials_sheen": {"sheenColorFactor": [0, 0, 0], "glitter": 1}}
    odd = {**picture, "extensions": {"ACME_wrap": {}}}
    material = maker.add("materials", {"extensions": extensions, "shininess": 3, "normalTexture": odd})
    mesh = square(maker, material=material)
    primitives = maker.tree["meshes"][mesh]["primitives"]
    primitives.append({"attributes": {}})
    maker.tree["scenes"] += [{"nodes": []}, {"nodes": []}]
    maker.tree["extensions"] = {"ACME_world": {}, "KHR_xmp_json_ld": {"packets": []}}
    maker.node(mesh=mesh, extensions={"ACME_gizmo": {}}, extras={"extensions": {"ACME_none": {}}})
    ignored = gltf.load(put(tmp_path, maker)).ignored
    assert ignored == {
        "ACME_gizmo materials": 1, "ACME_gizmo nodes": 1, "KHR_materials_sheen.glitter materials": 1,
        "shininess materials": 1, "ACME_wrap textures": 1, "scenes": 2, "ACME_world files": 1,
        "without POSITION primitives": 1,
    }  # fmt: skip
    assert "2 scenes" in format_ignored(ignored)


def test_a_tree_of_any_shape_can_be_counted(rng):
    """What is wrong in it is told by the readers, not by the count."""
    for value in (None, 5, "a", [], {}, [[]], [{"primitives": 3, "mode": []}], {"extensions": [1]}):
        for key in ("meshes", "materials", "extensions", "scenes", "nodes", "textures"):
            unread({key: value, "x": [value]})


def test_a_missing_picture_costs_its_texture(tmp_path):
    """Not the model, as in other viewers; it is told, and read when it is there. What leads elsewhere is refused."""
    maker = Maker()
    maker.add("images", {"uri": "lost%20one.png"})
    texture, there = maker.add("textures", {"source": 0}), maker.texture(np.zeros((2, 2, 3), "u1"))
    material = maker.add("materials", {"normalTexture": {"index": texture}, "emissiveTexture": {"index": there}})
    maker.node(mesh=square(maker, material=material))
    path = put(tmp_path, maker)
    model = gltf.load(path)
    assert model.ignored == {"missing picture textures": 1} and set(model.materials[0].textures) == {"emissive"}
    assert format_ignored(model.ignored) == ["missing picture (1 texture)"]
    (tmp_path / "lost one.png").symlink_to("lost one.png")  # a loop of links, which leads to no file either
    assert gltf.load(path).ignored == {"missing picture textures": 1}
    (tmp_path / "lost one.png").unlink()
    Image.fromarray(np.full((3, 2, 3), 9, "u1")).save(tmp_path / "lost one.png")
    model = gltf.load(path)
    assert not model.ignored and model.textures[0].pixels.shape == (3, 2, 4)
    for uri in ("../lost.png", "https://a.b/c.png", "a" * 5000):
        maker.tree["images"][0]["uri"] = uri
        with pytest.raises(InputError):
            gltf.load(put(tmp_path, maker))


def ktx2_of(pixels: np.ndarray, vk_format: int, scheme: int = 0, **changes) -> bytes:
    """A KTX 2 file by the specification's section 3, with one level; fields of its header may be changed."""
    body = pixels.tobytes()
    if scheme == 2:
        body = pytest.importorskip("zstandard", reason="Zstandard needs its wheel").compress(body)
    elif scheme == 3:
        body = zlib.compress(body)
    fields_of = {"format": vk_format, "type_size": 1, "width": pixels.shape[1], "height": pixels.shape[0], "depth": 0,
                 "layers": 0, "faces": 1, "levels": 1, "scheme": scheme} | changes  # fmt: skip
    head = b"\xabKTX 20\xbb\r\n\x1a\n" + struct.pack("<9I", *fields_of.values()) + struct.pack("<4I2Q", *[0] * 6)
    return head + struct.pack("<3Q", 104, len(body), pixels.size) + body


def of_ktx2(data: bytes) -> Maker:
    maker = Maker()
    maker.add("images", {"bufferView": maker.view(data), "mimeType": "image/ktx2"})
    texture = maker.add("textures", {"extensions": {"KHR_texture_basisu": {"source": 0}}})
    maker.node(mesh=square(maker, material=maker.add("materials", {"normalTexture": {"index": texture}})))
    return maker


PLAIN_FORMATS = [(9, "r"), (22, "rg"), (23, "rgb"), (36, "bgr"), (43, "rgba"), (44, "bgra")]


@pytest.mark.parametrize(
    ("vk_format", "order", "scheme"),
    [(*kind, scheme) for kind in PLAIN_FORMATS for scheme in (0, 3)] + [(44, "bgra", 2)],
)
def test_plain_ktx2_pictures_are_read(tmp_path, rng, vk_format, order, scheme):
    pixels = rng.integers(0, 256, (5, 3, len(order)), dtype="u1")
    model = gltf.load(put(tmp_path, of_ktx2(ktx2_of(pixels, vk_format, scheme))))
    for channel, empty in zip("rgba", (0, 0, 0, 255), strict=True):
        wanted = pixels[..., order.index(channel)] if channel in order else empty
        assert (model.textures[0].pixels[..., "rgba".index(channel)] == wanted).all()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (ktx2_of(np.zeros((2, 2, 4), "u1"), 98), "the VkFormat 98"),
        (ktx2_of(np.zeros((2, 2, 4), "u1"), 37, scheme=4), "supercompression scheme 4; allowed are 0 (none), 2"),
        (ktx2_of(np.zeros((2048, 2048, 4), "u1"), 37, 2, height=2), "more than the 16384 bytes that its header says"),
        (ktx2_of(np.zeros((9, 9, 4), "u1"), 37, 2, height=10), "has 324 bytes of pixels"),
        (ktx2_of(np.zeros((9, 9, 4), "u1"), 37, 2).replace(b"\x28\xb5\x2f\xfd", b"abcd"), "images[0] is damaged"),
        (ktx2_of(np.zeros((2, 2, 4), "u1"), 37, width=1 << 15, height=1 << 15), "32768 x 32768 pixels"),
        (ktx2_of(np.zeros((2, 2, 4), "u1"), 37, height=3), "has 16 bytes of pixels"),
        (ktx2_of(np.zeros((9, 9, 4), "u1"), 37, 3, height=2), "has 73 bytes of pixels"),
        (ktx2_of(np.zeros((2, 2, 4), "u1"), 37, faces=6), "no plain picture"),
        (ktx2_of(np.zeros((2, 2, 4), "u1"), 37, 3)[:-4], "ends before byte"),
        (ktx2_of(np.zeros((2, 2, 4), "u1"), 37)[:60], "is a KTX 2 file of 60 bytes"),
    ],
)
def test_bad_ktx2_pictures_are_told(tmp_path, data, told):
    with pytest.raises(InputError, match="images") as error:
        gltf.load(put(tmp_path, of_ktx2(data)))
    assert told in str(error.value)


# ---- compressed data


def test_meshopt_decodes_what_its_own_encoder_made():
    """Every mode, version and filter: bytes and results of meshoptimizer, filtered numbers to one unit."""
    for case in PEER["meshopt"]:
        wanted = base64.b64decode(case["want"])
        data = base64.b64decode(case["data"])
        found = meshopt.decode(data, case["count"], case["stride"], case["mode"], case["filter"])
        assert len(found) == len(wanted) == case["count"] * case["stride"]
        if case["filter"] == "NONE":
            assert found == wanted, case["name"]
            continue
        kind = "<f4" if case["filter"] == "EXPONENTIAL" else f"<i{case['stride'] // 4}"
        kind = kind.replace("i", "u") if case["filter"] == "COLOR" else kind
        difference = np.frombuffer(found, kind).astype("f8") - np.frombuffer(wanted, kind)
        assert np.abs(difference).max() <= (0 if kind == "<f4" else 1), case["name"]


@pytest.mark.parametrize("extension", ["EXT_meshopt_compression", "KHR_meshopt_compression"])
def test_compressed_buffer_views_replace_their_fallback(tmp_path, extension):
    case = next(case for case in PEER["meshopt"] if case["name"] == "triangles 2")
    maker = Maker()
    data = base64.b64decode(case["data"])
    maker.view(data)
    table = {**maker.tree["bufferViews"][0], "count": case["count"], "byteStride": 2, "mode": "TRIANGLES"}
    maker.tree["bufferViews"][0] = {
        "buffer": 1, "byteLength": 2 * case["count"], "extensions": {extension: table},
    }  # fmt: skip
    maker.tree["extensionsRequired"] = [extension]
    indices = maker.add("accessors", {"bufferView": 0, "componentType": 5123, "count": case["count"], "type": "SCALAR"})
    attributes = {"POSITION": maker.array(np.random.default_rng(1).normal(size=(65536, 3)))}
    maker.node(mesh=maker.add("meshes", {"primitives": [{"attributes": attributes, "indices": indices}]}))
    maker.tree["buffers"] = [{"byteLength": len(maker.data)}, {"byteLength": 2 * case["count"]}]
    model = gltf.load(put(tmp_path, maker))
    wanted = np.frombuffer(base64.b64decode(case["want"]), "<u2").reshape(-1, 3)
    assert np.array_equal(model.meshes[0][0].faces, wanted) and not model.ignored
    for key, value, words in (("count", 4, "cannot"), ("mode", "POINTS", "has the mode"), ("byteStride", 3, "cannot"),
                              ("filter", "COLOR", "has the filter"), ("byteLength", 30, "damaged"),
                              ("byteOffset", 1, "damaged"), ("count", 1 << 26, "")):  # fmt: skip
        maker.tree["bufferViews"][0]["extensions"] = {extension: {**table, key: value}}
        with pytest.raises(InputError, match=rf"bufferViews\[0\].*{words}"):
            gltf.load(put(tmp_path, maker))


def test_damaged_meshopt_is_a_value_error(rng):
    for case in PEER["meshopt"]:
        data = base64.b64decode(case["data"])
        for _ in range(60):
            broken = bytearray(data[: rng.integers(len(data) + 1)] if rng.random() < 0.5 else data)
            if broken:
                broken[rng.integers(len(broken))] ^= rng.integers(1, 256)
            try:
                found = meshopt.decode(bytes(broken), case["count"], case["stride"], case["mode"], case["filter"])
            except ValueError:
                continue
            assert len(found) == case["count"] * case["stride"]


def draco_ball(tmp_path, spoil=lambda data: data):
    """A ball compressed by Draco, with normals and coordinates, and the ball itself."""
    draco = pytest.importorskip("DracoPy", reason="Draco files need DracoPy")
    maker, plain = Maker(), Maker()
    plain.node(mesh=ball(plain, 6))
    (part,) = gltf.load(put(tmp_path, plain, "plain.glb")).meshes[0]
    colors = np.stack([np.arange(len(part.vertices)) % 250] * 4, 1).astype("u1")
    data = draco.encode(
        part.vertices, part.faces, quantization_bits=16, preserve_order=True, colors=colors,
        normals=part.normals.astype("f8"), tex_coord=part.texcoords[0].astype("f8"),
    )  # fmt: skip
    ids = {entry["attribute_type"]: entry["unique_id"] for entry in draco.decode(data).attributes}
    view, count = maker.view(spoil(bytes(data))), len(part.vertices)
    kinds = {"POSITION": (5126, "VEC3", 0), "NORMAL": (5126, "VEC3", 1), "COLOR_0": (5121, "VEC4", 2),
             "TEXCOORD_0": (5126, "VEC2", 3)}  # fmt: skip
    attributes = {
        key: maker.add("accessors", {"componentType": c, "count": count, "type": t, "normalized": c == 5121})
        for key, (c, t, _) in kinds.items()
    }
    numbers = {key: ids[number] for key, (_, _, number) in kinds.items()}
    table = {"bufferView": view, "attributes": numbers}
    maker.node(mesh=maker.add("meshes", {"primitives": [{"attributes": attributes, "extensions": {DRACO: table}}]}))
    maker.tree["extensionsRequired"] = [DRACO]
    return put(tmp_path, maker), part


def test_draco_meshes_are_what_was_compressed(tmp_path):
    path, part = draco_ball(tmp_path)
    model = gltf.load(path)
    (found,) = model.meshes[0]
    corners, wanted = found.faces.ravel(), part.faces.ravel()
    assert len(corners) == len(wanted) and not model.ignored
    assert np.allclose(found.vertices[corners], part.vertices[wanted], atol=1e-4)
    assert np.allclose(found.normals[corners], part.normals[wanted], atol=0.02)
    assert np.allclose(found.texcoords[0][corners], part.texcoords[0][wanted], atol=2e-3)
    assert np.allclose(found.colors[corners, 0] * 255, wanted % 250, atol=0.01)


@pytest.mark.parametrize("spoil", [
    lambda data: data[:100], lambda data: data[: len(data) // 2], lambda data: b"DRACO" + bytes(60), lambda data: b"x",
    lambda data: data[:40] + bytes(len(data) - 40),
])  # fmt: skip
def test_damaged_draco_is_reported_in_one_sentence(tmp_path, spoil):
    path, _ = draco_ball(tmp_path, spoil)
    with pytest.raises(InputError, match=r"^[^\n]*model\.glb: meshes\[0\]\.primitives\[0\][^\n]* [^\n]*$"):
        gltf.load(path)


def gradient() -> np.ndarray:
    y, x = np.mgrid[:16, :16]
    return np.stack([x * 16, y * 16, 255 - x * 8 - y * 4, np.full_like(x, 255)], 2).astype("u1")


def ktx2_model(tmp_path, data: bytes):
    maker = Maker()
    image = maker.add("images", {"bufferView": maker.view(data), "mimeType": "image/ktx2"})
    texture = maker.add("textures", {"extensions": {"KHR_texture_basisu": {"source": image}}})
    base = {"pbrMetallicRoughness": {"baseColorTexture": {"index": texture}}}
    maker.node(mesh=square(maker, material=maker.add("materials", base)))
    maker.tree["extensionsRequired"] = ["KHR_texture_basisu"]
    return put(tmp_path, maker)


@pytest.mark.parametrize("codec, mean_error", [("etc1s", 12), ("uastc", 2)])
def test_ktx2_textures_are_what_was_compressed(tmp_path, codec, mean_error):
    pytest.importorskip("opengl_basisu", reason="KTX 2 needs opengl_basisu")
    data = base64.b64decode(PEER["ktx2"][codec])
    model = gltf.load(ktx2_model(tmp_path, data))
    (texture,) = model.textures
    assert texture.pixels.shape == (16, 16, 4) and not model.ignored
    assert np.abs(texture.pixels.astype("f8") - gradient()).mean() < mean_error
    bomb = bytearray(data)
    bomb[20:28] = struct.pack("<II", 16384, 16384)
    for spoiled in (data[:90], data[: len(data) // 2], bytes(bomb), data[:12] + bytes(200)):
        with pytest.raises(InputError, match=r"^[^\n]*images\[0\][^\n]* [^\n]*$"):
            gltf.load(ktx2_model(tmp_path, spoiled))


def test_a_texture_of_16k_by_16k_is_refused_before_it_is_decoded(tmp_path):
    """268 million pixels in 260 kB: only the header may be read."""
    rows = zlib.compress(bytes(16384 * 64), 9)
    header = struct.pack(">IIBBBBB", 16384, 16384, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", rows), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    maker = Maker()
    image = maker.add("images", {"bufferView": maker.view(png), "mimeType": "image/png"})
    maker.add("textures", {"source": image})
    maker.node(mesh=square(maker))
    with pytest.raises(InputError, match=r"images\[0\]: 16384 x 16384 pixels are more than the 67108864 allowed"):
        gltf.load(put(tmp_path, maker))


def test_textures_without_room_are_halved_and_told(tmp_path, rng, monkeypatch):
    """As many textures as there are keep their names; the largest have the means of 2 x 2 texels of the file's."""
    maker = Maker()
    images = [rng.integers(0, 256, (9, 8, 3), "u1"), rng.integers(0, 256, (4, 4, 3), "u1")]
    for image in images:
        maker.texture(image)
    maker.node(mesh=square(maker))
    monkeypatch.setattr(gltf.textures, "MAX_TOTAL_PIXELS", 40)
    model = gltf.load(put(tmp_path, maker))
    means = images[0][:8].astype("f8").reshape(4, 2, 4, 2, 3).mean((1, 3))
    assert np.array_equal(model.textures[0].pixels[..., :3], np.floor(means + 0.5))
    assert np.array_equal(model.textures[1].pixels[..., :3], images[1])
    assert format_ignored(model.ignored) == ["full resolution (1 texture)"]
    monkeypatch.setattr(gltf.textures, "MAX_DECODED_PIXELS", 80)
    with pytest.raises(InputError, match=r"raises the pixels of the whole file above the 80 allowed"):
        gltf.load(put(tmp_path, maker, "more.glb"))


def test_a_decoder_that_crashes_or_hangs_costs_one_sentence(tmp_path, monkeypatch):
    pytest.importorskip("DracoPy")
    job = codecs.Job("draco", "meshes[0].primitives[0]", b"DRACO", 100)
    for program, words in (
        ("import os; os.abort()", "ends the process"),
        ("import time; time.sleep(60)", "does not answer"),
    ):
        command = [sys.executable, "-c", program]
        monkeypatch.setattr(trial, "module_child", lambda name, command=command: (command, {}))
        monkeypatch.setattr(codecs, "SECONDS", 1.0)
        with pytest.raises(InputError, match=rf"a\.glb: meshes\[0\]\.primitives\[0\] is damaged: it {words}"):
            codecs.decode(Path("a.glb"), [job])


def test_an_absent_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "DracoPy", None)
    with pytest.raises(UnavailableError, match="install DracoPy opengl_basisu zstandard"):
        codecs.decode(Path("a.glb"), [codecs.Job("draco", "x", b"", 1)])


def test_what_exporters_write_beside_the_specification_is_counted_not_refused(tmp_path):
    """A color above 1, and a sky of OpenEXR that only an extension uses, as UnityGLTF and Babylon.js write them."""
    maker = Maker()
    maker.add("images", {"bufferView": maker.view(b"v/1\x01" + bytes(40)), "mimeType": "image/exr"})
    sky = maker.add("textures", {"source": 0})
    surface = {"baseColorFactor": [1.2, 0.9, 0.0, 1.0], "baseColorTexture": {"index": sky}}
    maker.node(mesh=square(maker, material=maker.add("materials", {"pbrMetallicRoughness": surface})))
    model = gltf.load(put(tmp_path, maker))
    assert model.ignored == {"baseColorFactor above 1 materials": 1, "picture format textures": 1}
    assert format_ignored(model.ignored) == ["baseColorFactor above 1 (1 material)", "picture format (1 texture)"]
    assert model.materials[0].color == (1.0, 0.9, 0.0, 1.0) and not model.materials[0].textures
    surface["baseColorFactor"][1] = -0.1
    with pytest.raises(InputError, match="baseColorFactor of .* each must be 0 to 1e"):
        gltf.load(put(tmp_path, maker))
