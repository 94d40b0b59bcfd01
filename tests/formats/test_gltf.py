"""glTF files: what is read, and what is refused with a sentence."""

import json
import os
import struct
import zlib
from copy import deepcopy

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, showcase, square
from renderer.errors import InputError, UserError
from renderer.formats import gltf
from renderer.raytracing.models import from_model


def put(tmp_path, maker, name="model.glb"):
    path = tmp_path / name
    path.write_bytes(maker.glb() if name.endswith(".glb") else maker.gltf().encode())
    return path


def one(**material):
    maker = Maker()
    maker.node(mesh=square(maker, material=maker.add("materials", material) if material else None))
    return maker


@pytest.mark.parametrize("name", ["model.glb", "model.gltf"])
def test_arrays_come_back_as_they_were(tmp_path, rng, name):
    """Of any component type and stride, with normals and coordinates, in one file and in two."""
    maker, count = Maker(), 40
    vertices, normals = rng.normal(size=(count, 3)).astype("f4"), rng.normal(size=(count, 3)).astype("f4")
    faces, uv = rng.integers(0, count, (17, 3)), rng.random((count, 2)).astype("f4")
    for kind, stride in (("u1", 0), ("u2", 4), ("u4", 0)):
        attributes = {"POSITION": maker.array(vertices, stride=20), "NORMAL": maker.array(normals, stride=12),
                      "TEXCOORD_0": maker.array(uv)}  # fmt: skip
        indices = maker.array(faces.ravel(), kind, stride)
        maker.node(mesh=maker.add("meshes", {"primitives": [{"attributes": attributes, "indices": indices}]}))
    model = gltf.load(put(tmp_path, maker, name))
    assert len(model.mesh_nodes) == 3
    for number, _ in model.mesh_nodes:
        (part,) = model.meshes[number]
        assert np.array_equal(part.vertices, vertices) and np.array_equal(part.faces, faces)
        assert np.array_equal(part.normals, normals) and np.array_equal(part.texcoords[0], uv)


@pytest.mark.parametrize(("morphs", "total"), [(False, 5 + 9), (True, 5 + 9 + 2 * 5)])
def test_vertices_count_by_arrays_indices_and_deformed_nodes(tmp_path, monkeypatch, morphs, total):
    """A mesh of 5 vertices and 9 indices in two nodes. Small files must not become large scenes."""
    maker = Maker()
    indices = maker.array(np.array([0, 1, 2, 2, 3, 4, 0, 2, 4]), "u1")
    vertices = maker.array(np.eye(5, 3))
    primitive = {"attributes": {"POSITION": vertices}, "indices": indices}
    targets = {"targets": [{"POSITION": vertices}]} if morphs else {}
    mesh = maker.add("meshes", {"primitives": [primitive | targets]})
    for _ in range(2):
        maker.node(mesh=mesh, **({"weights": [0.5]} if morphs else {}))
    monkeypatch.setattr(gltf.nodes, "MAX_VERTICES", total)
    assert len(gltf.load(put(tmp_path, maker)).mesh_nodes) == 2
    monkeypatch.setattr(gltf.nodes, "MAX_VERTICES", total - 1)
    with pytest.raises(InputError, match=f"raises the vertices of the whole file above the {total - 1} allowed"):
        gltf.load(put(tmp_path, maker, "again.glb"))


def test_normalized_whole_numbers_are_fractions(tmp_path):
    maker = Maker()
    uv = maker.array(np.array([[0, 65535], [65535, 0], [32768, 1]]), "u2", normalized=True)
    normals = maker.array(np.array([[127, 0, 0], [-128, 0, 0], [0, -127, 0]]), "i1", 4, normalized=True)
    attributes = {"POSITION": maker.array(np.eye(3)), "TEXCOORD_0": uv, "NORMAL": normals}
    maker.node(mesh=maker.add("meshes", {"primitives": [{"attributes": attributes}]}))
    (part,) = gltf.load(put(tmp_path, maker)).meshes[0]
    assert np.allclose(part.texcoords[0], [[0, 1], [1, 0], [32768 / 65535, 1 / 65535]])
    assert np.allclose(part.normals, [[1, 0, 0], [-1, 0, 0], [0, -1, 0]])


def test_sparse_accessors_replace_items(tmp_path):
    maker = Maker()
    base = maker.array(np.zeros((6, 3)))
    rows, values = np.array([1, 4], "u1"), np.array([[1, 2, 3], [4, 5, 6]], "f4")
    sparse = {
        "count": 2,
        "indices": {"bufferView": maker.view(rows.tobytes()), "componentType": 5121},
        "values": {"bufferView": maker.view(values.tobytes())},
    }
    maker.tree["accessors"][base]["sparse"] = sparse
    maker.node(mesh=maker.add("meshes", {"primitives": [{"attributes": {"POSITION": base}}]}))
    bare = dict(maker.tree["accessors"][base])
    del bare["bufferView"]  # then all others are zero
    maker.node(mesh=maker.add("meshes", {"primitives": [{"attributes": {"POSITION": maker.add("accessors", bare)}}]}))
    wanted = np.zeros((6, 3))
    wanted[[1, 4]] = values
    model = gltf.load(put(tmp_path, maker))
    assert all(np.array_equal(model.meshes[k][0].vertices, wanted) for k in (0, 1))


def test_strips_and_fans_become_triangles(tmp_path, rng):
    maker = Maker()
    for mode in (5, 6):
        maker.node(mesh=maker.mesh(rng.normal(size=(6, 3)), mode=mode))
    model = gltf.load(put(tmp_path, maker))
    assert model.meshes[0][0].faces.tolist() == [[0, 1, 2], [1, 3, 2], [2, 3, 4], [3, 5, 4]]
    assert model.meshes[1][0].faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]]


def test_nodes_move_what_hangs_from_them(tmp_path, rng):
    maker = Maker()
    mesh = square(maker)
    leaf = maker.node(
        False, mesh=mesh, translation=[1, 2, 3], rotation=[0, 0, np.sqrt(0.5), np.sqrt(0.5)], scale=[2, 3, 4]
    )
    shear = np.eye(4)
    shear[0, 1], shear[:3, 3] = 0.5, (7, 8, 9)
    maker.node(children=[leaf], matrix=shear.T.ravel().tolist())
    ((number, matrix),) = gltf.load(put(tmp_path, maker)).mesh_nodes
    inner = np.array([[0, -3, 0, 1], [2, 0, 0, 2], [0, 0, 4, 3], [0, 0, 0, 1]])
    assert number == mesh and np.allclose(matrix, shear @ inner)


def test_cameras_lights_and_materials(tmp_path):
    maker = Maker()
    picture = maker.texture(np.full((2, 3, 3), 128, "u1"), wrapS=33071, wrapT=33648, magFilter=9728)
    material = maker.add("materials", {
        "name": "jade", "alphaMode": "MASK", "alphaCutoff": 0.25, "emissiveFactor": [0, 1, 0.5],
        "pbrMetallicRoughness": {"baseColorFactor": [0.1, 0.2, 0.3, 0.4], "metallicFactor": 0.5, "roughnessFactor": 0.6,
                                 "baseColorTexture": {"index": picture}},
        "normalTexture": {"index": picture, "scale": 0.7},
        "extensions": {"KHR_materials_ior": {"ior": 1.3}, "KHR_materials_transmission": {"transmissionFactor": 0.9},
                       "KHR_materials_emissive_strength": {"emissiveStrength": 4}},
    })  # fmt: skip
    camera = maker.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.6, "aspectRatio": 1.5}})
    maker.node(mesh=square(maker, material=material))
    maker.node(camera=camera, translation=[0, 0, 5])
    maker.node(extensions=maker.light(type="directional", color=[1, 0.5, 0], intensity=3))
    maker.node(
        extensions=maker.light(type="spot", spot={"innerConeAngle": 0.1, "outerConeAngle": 0.3}), translation=[1, 2, 3]
    )
    model = gltf.load(put(tmp_path, maker))
    (jade,), (seen,), (sun, spot), (texture,) = model.materials, model.cameras, model.lights, model.textures
    assert (jade.color, jade.metallic, jade.roughness) == ((0.1, 0.2, 0.3, 0.4), 0.5, 0.6)
    assert (jade.alpha, jade.cutoff, jade.emission) == ("MASK", 0.25, (0, 4, 2))
    assert jade.textures == {"base_color": gltf.TextureSlot(0), "normal": gltf.TextureSlot(0, scale=0.7)}
    assert (jade.ior, jade.transmission) == (1.3, 0.9)
    assert seen.fov_degrees == pytest.approx(np.degrees(0.6)) and seen.aspect == 1.5 and seen.matrix[2, 3] == 5
    assert sun.kind == "directional" and sun.power == (3, 1.5, 0)
    assert (spot.kind, spot.inner, spot.outer) == ("spot", 0.1, 0.3) and spot.matrix[:3, 3].tolist() == [1, 2, 3]
    assert texture.pixels.shape == (2, 3, 4) and texture.wrap == ("clamp", "mirror") and not texture.linear_filter


def test_files_beside_the_first_are_read_but_none_elsewhere(tmp_path):
    maker, folder = one(), tmp_path / "in"
    (folder / "sub dir").mkdir(parents=True)
    (folder / "sub dir" / "all.bin").write_bytes(maker.data)
    (tmp_path / "outside.bin").write_bytes(maker.data)
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    path = folder / "model.gltf"
    path.write_text(maker.gltf("sub%20dir/all.bin"))
    assert len(gltf.load(path).meshes[0][0].faces) == 2
    elsewhere = "../outside.bin", str(tmp_path / "outside.bin"), "link.bin", "%2e%2e/outside.bin", "file:///etc/passwd"
    for number, uri in enumerate((*elsewhere, "http://a.example/b.bin", "missing.bin", ".", "a\0b", 5)):
        path = folder / f"bad{number}.gltf"
        path.write_text(json.dumps({**json.loads(maker.gltf("x")), "buffers": [{"byteLength": 4, "uri": uri}]}))
        with pytest.raises(InputError, match=r"buffers\[0\](: its| has the| has a) uri"):
            gltf.load(path)


def test_a_file_beside_the_first_that_is_saved_anew_is_read_anew(tmp_path):
    maker, path = one(), tmp_path / "model.gltf"
    path.write_text(maker.gltf("all.bin"))
    (tmp_path / "all.bin").write_bytes(maker.data)
    first = gltf.load(path)
    assert gltf.load(path) is first
    (tmp_path / "all.bin").write_bytes(bytes(len(maker.data)))
    os.utime(tmp_path / "all.bin", ns=(0, 0))
    assert first.meshes[0][0].vertices.any() and not gltf.load(path).meshes[0][0].vertices.any()


def arm(angle: float = 0.7) -> Maker:
    """A square on two joints, the second of which stands at x = 1 and is turned about z; its node stands elsewhere."""
    maker = Maker()
    weights = np.array([[1, 0, 0, 0], [0, 2, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 0, 0]], "f4")
    joints = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]], "u1")
    others = {"JOINTS_0": maker.array(joints, "u1"), "WEIGHTS_0": maker.array(weights),
              "TANGENT": maker.array([[1, 0, 0, 1]] * 4)}  # fmt: skip
    mesh = square(maker, normals=np.array([[0, 0, 1]] * 4), others=others)
    back = np.tile(np.eye(4), (2, 1, 1))
    back[1, 0, 3] = -1
    inverse = maker.array(back.transpose(0, 2, 1).reshape(2, 16))
    second = maker.node(False, translation=[1, 0, 0], rotation=[0, 0, np.sin(angle / 2), np.cos(angle / 2)])
    first = maker.node(children=[second], translation=[0, 0, 5])
    skin = maker.add("skins", {"joints": [first, second], "inverseBindMatrices": inverse})
    maker.node(mesh=mesh, skin=skin, translation=[100, 0, 0])
    return maker


def test_skins_follow_their_joints(tmp_path, rng):
    """Each vertex by hand: held by the first joint, by the second, by both, by none."""
    angle = float(rng.uniform(-3, 3))
    model = gltf.load(put(tmp_path, arm(angle)))
    ((number, matrix),) = model.mesh_nodes
    assert np.array_equal(matrix, np.eye(4))
    (part,) = model.meshes[number]
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    up = np.array([0, 0, 5.0])
    rest = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]])
    held = [turn @ (p - [1, 0, 0]) + [1, 0, 0] + up for p in rest]
    wanted = [rest[0] + up, held[1], 0.25 * (rest[2] + up) + 0.75 * held[2], rest[3]]
    assert np.allclose(part.vertices, wanted, atol=1e-5)
    assert np.allclose(part.tangents[1], [c, s, 0, 1], atol=1e-6)
    assert np.allclose(part.normals[:, :2], 0, atol=1e-6) and (part.normals[:, 2] > 0).all()


def test_joints_may_stand_outside_of_the_scene_and_unused_slots_hold_anything(tmp_path):
    """RiggedFigure's exporters: an armature beside the scene, joints as floats, wild indices without weight."""
    wanted = gltf.load(put(tmp_path, arm(), "a.glb")).meshes[-1][0].vertices
    maker = arm()
    maker.tree["scenes"][0]["nodes"] = [2]
    joints = np.array([[0, 77, 0, 0], [-5, 1, 0, 0], [0, 1, 0, 300], [9, 9, 9, 9]], "f4")
    maker.tree["meshes"][0]["primitives"][0]["attributes"]["JOINTS_0"] = maker.array(joints)
    model = gltf.load(put(tmp_path, maker, "b.glb"))
    assert np.array_equal(model.meshes[-1][0].vertices, wanted) and len(model.mesh_nodes) == 1


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda tree: tree["skins"][0].update(joints=[0, 9]), r"skins\[0\] names nodes\[9\]; there are 3"),
        (lambda tree: tree["skins"][0].update(joints=[]), "has no joints"),
        (lambda tree: tree["skins"][0].update(joints=[1]), "names a joint that skins"),
        (lambda tree: tree["accessors"][0].update(normalized=True), "has JOINTS_0 of floats or normalized integers"),
        (lambda tree: tree["meshes"][0]["primitives"][0]["attributes"].update(JOINTS_0=1), "has JOINTS_0 of floats"),
        (lambda tree: tree["accessors"][-1].update(count=1), "has 1 inverseBindMatrices for 2 joints"),
        (lambda tree: tree["meshes"][0]["primitives"][0]["attributes"].pop("WEIGHTS_0"), "no WEIGHTS_0"),
        (lambda tree: tree["meshes"][0]["primitives"][0]["attributes"].pop("JOINTS_0"), "and no JOINTS_0"),
        (lambda tree: tree["accessors"][1].update(count=3), "3 items of joints or weights for 4 vertices"),
        (lambda tree: tree["nodes"][2].update(skin=3), r"names skins\[3\]; there are 1"),
        (lambda tree: tree["nodes"][2].update(skin=[]), r"names skins\[\[\]\]"),
    ],
)
def test_impossible_skins_are_told(tmp_path, spoil, words):
    maker = arm()
    spoil(maker.tree)
    with pytest.raises(InputError, match=words):
        gltf.load(put(tmp_path, maker))


def changed(path: str, value):
    """A file of one square with one place of its tree changed."""

    def make():
        maker = one(name="m")
        maker.tree.setdefault("buffers", [{"byteLength": len(maker.data)}])
        node = maker.tree
        *outer, last = [int(k) if k.isdigit() else k for k in path.split("/")]
        for key in outer:
            node = node[key]
        if value is KeyError:
            del node[last]
        else:
            node[last] = value
        return maker

    return make


def chain():
    maker = one()
    for index in range(3000):
        maker.node(False, children=[index])
    maker.tree["scenes"][0]["nodes"] = [3000]
    return maker


def bomb():
    maker = one()
    maker.texture(np.zeros((1, 1, 3), "u1"))
    data = bytearray(maker.data)
    at = data.index(b"IHDR") + 4
    data[at : at + 8] = struct.pack(">II", 60000, 60000)
    data[at + 13 : at + 17] = struct.pack(">I", zlib.crc32(data[at - 4 : at + 13]))
    maker.data = bytes(data)
    return maker


def loop():
    maker = one()
    maker.tree["nodes"] += [{"children": [2]}, {"children": [1]}]
    maker.tree["scenes"][0]["nodes"] = [0, 1]
    return maker


BAD = {
    "count beyond the view": (changed("accessors/0/count", 10**6), "accessors[0] has 1000000 items"),
    "huge count": (changed("accessors/0/count", 10**15), "accessors[0] has a count of"),
    "huge empty array": (changed("accessors/0/bufferView", KeyError), None),
    "negative offset": (changed("bufferViews/0/byteOffset", -4), "bufferViews[0] has a byteOffset of -4"),
    "view beyond the buffer": (changed("bufferViews/0/byteLength", 10**6), "bufferViews[0] goes from byte 0 to"),
    "buffer beyond the file": (changed("buffers/0/byteLength", 10**6), "buffers[0] says 1000000 bytes"),
    "small stride": (changed("bufferViews/0/byteStride", 4), "in a view with a byteStride of 4"),
    "no such view": (changed("accessors/0/bufferView", 99), "names bufferViews[99]; there are"),
    "no such accessor": (changed("meshes/0/primitives/0/attributes/POSITION", 99), "names accessors[99]"),
    "text for a number": (changed("accessors/0/count", "4"), 'accessors[0] has a count of "4"'),
    "fraction for a number": (changed("accessors/0/count", 4.5), "accessors[0] has a count of 4.5"),
    "wrong type": (changed("accessors/0/type", "VEC2"), "needs VEC3; accessors[0] is"),
    "wrong component": (changed("accessors/0/componentType", 7), "has the componentType 7"),
    "index beyond the vertices": (changed("accessors/0/count", 2), "names vertex 3; there are 2"),
    "fractional indices": (changed("meshes/0/primitives/0/indices", 1), "needs SCALAR"),
    "no such material": (changed("meshes/0/primitives/0/material", 5), "names materials[5]"),
    "no such mesh": (changed("nodes/0/mesh", -1), "nodes[0] names meshes[-1]"),
    "node of itself": (changed("nodes/0/children", [0]), "nodes[0] has two parents or is its own ancestor"),
    "loop of nodes": (loop, "has two parents or is its own ancestor"),
    "no such node": (changed("scenes/0/nodes", [7]), "names nodes[7]"),
    "no scene": (changed("scene", 3), "names scenes[3]"),
    "short matrix": (changed("nodes/0/matrix", [1, 2]), "nodes[0] has a matrix that is [1, 2]"),
    "far away": (changed("nodes/0/translation", [1e30, 0, 0]), "has a translation of [1e+30, 0, 0]"),
    "no rotation": (changed("nodes/0/rotation", [0, 0, 0, 0]), "a rotation of length zero"),
    "negative roughness": (
        changed("materials/0/pbrMetallicRoughness", {"roughnessFactor": -1}), "materials[0] has a roughnessFactor of -1"
    ),
    "index of refraction below 1": (
        changed("materials/0/extensions", {"KHR_materials_ior": {"ior": 0.5}}), "materials[0] has an ior of 0.5"
    ),
    "alpha mode": (changed("materials/0/alphaMode", "HALF"), 'materials[0] has the alphaMode "HALF"'),
    "no such texture": (changed("materials/0/normalTexture", {"index": 2}), "names textures[2]"),
    "needs an extension": (changed("extensionsRequired", ["ACME_x"]), 'names "ACME_x", which this program does not'),
    "old version": (changed("asset", {"version": "1.0"}), 'asset says version "1.0"'),
    "lists that are none": (changed("nodes", 5), "nodes that are 5; they must be a list"),
    "a node that is none": (changed("nodes/0", 5), "nodes[0] is 5; it must be an object"),
    "nothing drawn": (changed("meshes/0/primitives", []), "has no triangle, line or point"),
    "picture bomb": (bomb, "60000 x 60000 pixels are more than"),
    "light": (changed("nodes/0/extensions", {"KHR_lights_punctual": {"light": 0}}), "names lights[0]; there are 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_told_in_one_sentence(tmp_path, name):
    make, told = BAD[name]
    path = put(tmp_path, make())
    if told is None:  # zeros are what the specification says
        assert not gltf.load(path).meshes[0][0].vertices.any()
        return
    with pytest.raises(InputError) as error:
        gltf.load(path)
    assert told in str(error.value) and str(error.value).startswith(str(path)), error.value
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bare", [False, True])
def test_many_parts_of_one_array_are_bounded(tmp_path, bare):
    """A small file that names the same large array often, or large arrays of nothing."""
    maker = Maker()
    faces = maker.array(np.zeros(3 * 2**16), "u1")
    for _ in range(600):
        vertices = maker.array(np.zeros((1, 3)))
        if bare:
            del maker.tree["accessors"][vertices]["bufferView"]
            maker.tree["accessors"][vertices]["count"] = 10**6
        primitive = {"attributes": {"POSITION": vertices}, "indices": faces}
        maker.node(mesh=maker.add("meshes", {"primitives": [primitive]}))
    with pytest.raises(InputError, match="raises the (vertices|triangles|zeros) of the whole file above"):
        gltf.load(put(tmp_path, maker))


def test_deep_nodes_are_no_trouble(tmp_path):
    assert len(gltf.load(put(tmp_path, chain())).mesh_nodes) == 1


def test_numbers_that_are_none_are_told(tmp_path):
    for value in (np.nan, np.inf):
        maker = Maker()
        vertices = np.zeros((4, 3), "f4")
        vertices[2, 1] = value
        maker.node(mesh=maker.mesh(vertices, [[0, 1, 2]]))
        with pytest.raises(InputError, match=r"accessors\[0\] holds .* as item 2; numbers must be finite"):
            gltf.load(put(tmp_path, maker))


@pytest.mark.parametrize("cut", [0, 3, 4, 11, 19, 30, 200, -1])
def test_cut_files_are_told(tmp_path, cut):
    path = tmp_path / "cut.glb"
    path.write_bytes(one().glb()[:cut])
    with pytest.raises(InputError, match="cut.glb"):
        gltf.load(path)


def test_damaged_files_never_crash(tmp_path, rng):
    """Random bytes of a good file changed: it reads, or it is a InputError."""
    maker = one(pbrMetallicRoughness={"baseColorTexture": {"index": 0}})
    maker.texture(rng.integers(0, 255, (4, 4, 3), dtype="u1"))
    good = maker.glb()
    for number in range(150):
        data = bytearray(good)
        for place in rng.integers(0, len(data), int(rng.integers(1, 8))):
            data[place] = int(rng.integers(0, 256))
        path = tmp_path / f"{number}.glb"
        path.write_bytes(data)
        try:
            gltf.load(path)
        except InputError:
            pass


def test_lying_trees_never_crash(tmp_path, rng):
    """Values anywhere in the tree of a file that uses all that is read, replaced by others: it reads, or a sentence."""
    path = tmp_path / "lie.glb"
    lies = [0, -1, 1, 7, 3.5, 1e9, 2**32 - 1, 10**20, 1e300, None, "x", "", [], [[]], {}, {"x": {}}, True]
    goods = [(maker, json.dumps(maker.tree)) for maker in (showcase(), arm())]
    for number in range(300):
        maker, good = goods[number % 2]
        maker.tree = json.loads(good)
        for _ in range(int(rng.integers(1, 4))):
            inside = maker.tree
            while True:  # down to some place
                keys = list(inside) if isinstance(inside, dict) else range(len(inside))
                key = keys[int(rng.integers(len(keys)))]
                if not isinstance(inside[key], (dict, list)) or not inside[key] or rng.random() < 0.1:
                    break
                inside = inside[key]
            inside[key] = deepcopy(lies[int(rng.integers(len(lies)))])
        path.write_bytes(maker.glb())
        try:
            from_model.open_file(path)
        except UserError as error:
            assert "\n" not in str(error) and len(str(error)) < 1000


def test_deep_json_is_reported(tmp_path):
    path = tmp_path / "deep.gltf"
    path.write_text("[" * 100_000)
    with pytest.raises(InputError, match="not a glTF file"):
        gltf.load(path)
