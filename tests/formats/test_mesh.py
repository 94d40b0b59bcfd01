"""Mesh files: what is read, and what is refused with a sentence."""

import io
import json
import struct

import numpy as np
import pytest
import trimesh

from renderer.bvh.primitives import areas, collapse_duplicates, triangles, with_primitive_ids
from renderer.errors import InputError
from renderer.formats.mesh import load_mesh
from renderer.raytracing import procedural

CUBE = """o cube
v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1
f 4 3 2 1\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8
"""


def stl(triangle_count, corners=None):
    corners = np.zeros((triangle_count, 3, 3)) if corners is None else corners
    body = b"".join(struct.pack("<12fH", 0, 0, 1, *c.ravel(), 0) for c in corners)
    return b"\0" * 80 + struct.pack("<I", triangle_count) + body


def glb(tree, binary=b""):
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    if binary:
        chunks += struct.pack("<II", len(binary), 0x004E4942) + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def triangle_glb(**changes):
    binary = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "f4").tobytes() + np.array([0, 1, 2], "u4").tobytes()
    tree = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "translation": [5, 0, 0]}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"},
                      {"bufferView": 1, "componentType": 5125, "count": 3, "type": "SCALAR"}],
        "bufferViews": [{"buffer": 0, "byteOffset": 0, "byteLength": 36},
                        {"buffer": 0, "byteOffset": 36, "byteLength": 12}],
        "buffers": [{"byteLength": 48}],
    }  # fmt: skip
    return glb({**tree, **changes}, binary)


def ply_header(form, vertices, faces=0):
    numbers = "".join(f"property float {axis}\n" for axis in "xyz")
    lists = f"element face {faces}\nproperty list uchar int vertex_indices\n" if faces else ""
    return f"ply\nformat {form} 1.0\nelement vertex {vertices}\n{numbers}{lists}end_header\n"


HUGE = {"componentType": 5126, "count": 10**9, "type": "VEC3"}
WORDS_OF_FLOATS = [{"buffer": 0, "byteOffset": 0, "byteLength": 36}, {"buffer": 0, "byteOffset": 8, "byteLength": 12}]


def put(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_obj_polygons_become_triangles_of_the_same_surface(tmp_path):
    vertices, faces = load_mesh(put(tmp_path, "cube.obj", CUBE))
    assert len(faces) == 12
    primitives = triangles(vertices, faces)
    assert np.isclose(areas(primitives).sum(), 6)
    center = np.array([0.5, 0.5, 0.5])
    outwards = np.cross(primitives["edge1"][:, :3], primitives["edge2"][:, :3])
    assert ((outwards * (primitives["v0"][:, :3] - center)).sum(1) > 0).all()


def test_one_shape_in_four_formats(tmp_path, rng):
    corners = rng.normal(size=(1, 3, 3)).astype("f4")
    text = "".join("v {:.9g} {:.9g} {:.9g}\n".format(*p) for p in corners[0]) + "f 1 2 3\n"
    header = ply_header("ascii", 3, 1)
    ply = header + "".join("{:.9g} {:.9g} {:.9g}\n".format(*p) for p in corners[0]) + "3 0 1 2\n"
    for name, data in {"a.obj": text, "a.ply": ply, "a.stl": stl(1, corners)}.items():
        vertices, faces = load_mesh(put(tmp_path, name, data))
        assert np.allclose(vertices[faces[0]], corners[0]), name
    vertices, faces = load_mesh(put(tmp_path, "a.glb", triangle_glb()))
    assert np.allclose(vertices[faces[0]], [[5, 0, 0], [6, 0, 0], [5, 1, 0]])  # the node's place is applied


def test_changed_files_are_read_again(tmp_path):
    path = put(tmp_path, "a.obj", CUBE)
    assert len(load_mesh(path)[1]) == 12
    put(tmp_path, "a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    assert len(load_mesh(path)[1]) == 1


FACET = "solid\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid"
BAD = {
    "nan.obj": ("v 0 0 0\nv 1 0 nan\nv 0 1 0\nf 1 2 3\n", "vertex 1"),
    "infinite.obj": ("v 0 0 0\nv 1 0 0\nv inf 1 0\nf 1 2 3\n", "vertex 2"),
    "empty.obj": ("", "triangle|read"),
    "points.obj": ("v 0 0 0\nv 1 0 0\n", "triangle|read"),
    "range.obj": ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "names the vertices|read"),
    "words.obj": ("v a b c\nf x y z\n", "read|triangle"),
    "binary.obj": (bytes(range(256)) * 10, "read|triangle"),
    "short.stl": (stl(5)[:150], "read|triangle"),
    "claims.stl": (b"\0" * 80 + struct.pack("<I", 2**31) + b"\0" * 50, "read|triangle"),
    "nan.stl": (stl(1, np.array([[[0, 0, 0], [1, 0, 0], [0, np.nan, 0]]])), "vertex 2"),
    "cut text.stl": (FACET[:-9], "endsolid"),
    "two vertices.stl": (FACET.replace("vertex 0 1 0\n", ""), "2 vertices"),
    "word in text.stl": (FACET.replace("0 1 0", "0 1 x"), '"x" is no number'),
    "short vertex.stl": (FACET.replace("0 1 0", "0 1"), "fewer than 3 numbers"),
    "no facet.stl": ("solid a\nendsolid a\n", "no triangle"),
    "no solid.stl": ("facet of a mesh", "begins with solid"),
    "nan text.stl": (FACET.replace("0 1 0", "0 nan 0"), "vertex 2"),
    "empty.ply": ("", "read"),
    "claims.ply": (ply_header("binary_little_endian", 2_000_000_000), "read|triangle|memory"),
    "cloud.ply": (ply_header("ascii", 1) + "0 0 0\n", "triangle"),
    "range.ply": (ply_header("ascii", 3, 1) + "0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n", "names the vertices|read"),
    "words.glb": ("glTF and no more", "header"),
    "count.glb": (triangle_glb(accessors=[{"bufferView": 0, **HUGE}] * 2), r"accessors\[0\]"),
    "bare.glb": (triangle_glb(accessors=[HUGE] * 2), r"accessors\[0\]"),
    "loop.glb": (triangle_glb(nodes=[{"children": [0], "mesh": 0}]), "tree"),
    "diamond.glb": (triangle_glb(nodes=[{"children": [1, 1]}, {"mesh": 0}]), "tree"),
    "range.glb": (triangle_glb(bufferViews=WORDS_OF_FLOATS), "names vertex"),
    "mesh.xyz": ("1 2 3", "allowed are"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused(tmp_path, name):
    data, words = BAD[name]
    with pytest.raises(InputError, match=words) as error:
        load_mesh(put(tmp_path, name, data))
    assert name in str(error.value) and "\n" not in str(error.value)[:20]


def test_missing_and_oversized_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="nowhere.obj"):
        load_mesh(tmp_path / "nowhere.obj")
    monkeypatch.setattr("renderer.formats.mesh.MAX_FILE_BYTES", 10)
    with pytest.raises(InputError, match="larger"):
        load_mesh(put(tmp_path, "big.obj", CUBE))


def test_links_out_of_the_folder_are_not_followed(tmp_path):
    put(tmp_path, "secret.bin", np.zeros(12, "f4").tobytes())
    (tmp_path / "models").mkdir()
    bad = triangle_glb(buffers=[{"byteLength": 48, "uri": "../secret.bin"}])
    with pytest.raises(InputError, match="must lie in"):
        load_mesh(put(tmp_path / "models", "a.glb", bad))
    mesh = "mtllib secret.mtl\nusemtl a\n" + CUBE
    put(tmp_path, "secret.mtl", "newmtl a\nmap_Kd nothing.png\n")
    assert len(load_mesh(put(tmp_path, "a.obj", mesh))[1]) == 12


@pytest.mark.parametrize("level", range(4))
def test_menger_has_its_exact_count_and_area(level):
    primitives = with_primitive_ids(procedural.generate("menger", level))
    assert len(primitives) == 4 * 20**level + 8 * 8**level
    assert np.isclose(areas(primitives).sum(), 2 * (20 / 9) ** level + 4 * (8 / 9) ** level)


@pytest.mark.parametrize("level", range(5))
def test_sphereflake_has_its_count_and_its_spheres_touch_their_parents(level):
    primitives = procedural.generate("sphereflake", level)
    counts = 9 ** np.arange(level + 1)
    assert len(primitives) == counts.sum()
    edges = np.cumsum(counts) - counts
    for k in range(1, level + 1):
        child = primitives[edges[k] : edges[k] + counts[k]]
        parent = np.repeat(primitives[edges[k - 1] : edges[k - 1] + counts[k - 1]], 9)
        apart = np.linalg.norm(child["v0"][:, :3] - parent["v0"][:, :3], axis=1)
        assert np.allclose(apart, child["edge2"][:, 3] + parent["edge2"][:, 3], rtol=1e-5)
        assert np.allclose(child["edge2"][:, 3], 0.5 / 3**k)


def test_databases_have_their_published_counts():
    assert len(procedural.generate("rings", 7)) == 4200 + 4200 * 2 * procedural.SIDES
    assert len(procedural.generate("tetra", 4)) == 4**4 and len(procedural.generate("mount", 5)) == 2 * 4**5
    assert len(procedural.generate("gears", 2)) == 8 * 576 and len(procedural.generate("tree", 5)) == 63 * (
        1 + 2 * procedural.SIDES
    )
    for kind in procedural.GENERATORS:
        assert np.isfinite(procedural.generate(kind, 1)["v0"][:, :3]).all()


def test_repeated_triangles_of_a_shape_become_points(rng):
    corners = rng.normal(size=(40, 3, 3))
    picked = rng.integers(0, 40, 500)
    made = triangles(corners[picked].reshape(-1, 3), np.arange(1500).reshape(-1, 3), rng.integers(0, 3, 500))
    left = np.flatnonzero(areas(collapse_duplicates(made.copy())) > 0)
    _, first = np.unique(picked, return_index=True)
    assert np.array_equal(left, np.sort(first))
    assert np.array_equal(made[left], collapse_duplicates(made.copy())[left])


def text_stl(solids):
    out = ""
    for name, corners in solids.items():
        facets = ["".join(f"      vertex {x:.9e} {y:.9e} {z:.9e}\n" for x, y, z in facet) for facet in corners.tolist()]
        facets = [f"  facet normal 0 0 1\n    outer loop\n{facet}    endloop\n  endfacet\n" for facet in facets]
        out += f"solid {name}\n{''.join(facets)}endsolid {name}\n"
    return out


@pytest.mark.parametrize("change", [str, str.upper, lambda text: text.replace("\n", "\r\n"), lambda text: f"\n {text}"])
def test_a_text_stl_file_is_what_trimesh_reads(tmp_path, rng, change):
    text = change(text_stl({"a": rng.standard_normal((40, 3, 3)), "b": rng.random((3, 3, 3))}))
    vertices, faces = load_mesh(put(tmp_path, "a.stl", text))
    peer = trimesh.load(io.BytesIO(text.encode()), file_type="stl", process=False, maintain_order=True).to_mesh()
    assert np.array_equal(vertices[faces], peer.vertices[peer.faces].astype("f4")) and len(faces) == 43


def test_text_stl_in_utf_16(tmp_path, rng):
    corners = rng.standard_normal((2, 3, 3)).astype("f4")
    vertices, _ = load_mesh(put(tmp_path, "a.stl", text_stl({"größe vertex": corners}).encode("utf-16")))
    assert np.array_equal(vertices.reshape(2, 3, 3), corners)


def test_a_binary_stl_file_is_what_trimesh_reads(tmp_path, rng):
    """Its header says solid, as many do."""
    corners = rng.standard_normal((50, 3, 3))
    (tmp_path / "a.stl").write_bytes(b"solid a".ljust(80) + stl(50, corners)[80:])
    vertices, faces = load_mesh(tmp_path / "a.stl")
    peer = trimesh.load(io.BytesIO(stl(50, corners)), file_type="stl", process=False, maintain_order=True)
    assert np.array_equal(vertices, peer.vertices.astype("f4")) and np.array_equal(faces, peer.faces)
    assert np.array_equal(vertices[faces], corners.astype("f4"))
