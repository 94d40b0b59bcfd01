"""Readers of .obj with .mtl, .ply and .off against trimesh, algebra and files written by hand."""

import io
import math
import re
import struct

import numpy as np
import pytest
import trimesh

from renderer.errors import InputError, UnavailableError
from renderer.formats.images import write_png
from renderer.formats.mesh import load_model, load_part, read_mesh
from renderer.formats.meshes import contents
from renderer.formats.meshes.contents import MAX_FAN, fans, merge_corners, strips
from renderer.formats.meshes.mtl import roughness_from_exponent
from renderer.formats.texture_maps import normals_from_heights

TETRAHEDRON = np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]])
SQUARE = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"


def put(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def picture(tmp_path, name, pixels):
    write_png(tmp_path / name, np.asarray(pixels, "u1"))


def test_gaussian_splats_are_named(tmp_path):
    names = "x y z f_dc_0 f_dc_1 f_dc_2 opacity scale_0 scale_1 scale_2 rot_0 rot_1 rot_2 rot_3".split()
    header = "\n".join(["ply", "format ascii 1.0", "element vertex 1", *(f"property float {n}" for n in names)])
    path = put(tmp_path, "scene.ply", f"{header}\nend_header\n{' 1' * len(names)}\n")
    with pytest.raises(InputError, match=r"scene.ply: .*holds Gaussian splats, .* SuGaR and 2DGS make a mesh"):
        load_part(path)


@pytest.mark.parametrize("encoding", ["ascii", "binary", "binary_big_endian"])
@pytest.mark.parametrize("color", ["uchar", "float"])
def test_ply_arrays_are_those_that_were_written(tmp_path, rng, encoding, color):
    """Colors, normals, texture coordinates and an unknown property, in text and in both byte orders."""
    count, order = 5, ">" if "big" in encoding else "<"
    points, normals, uv = rng.normal(size=(count, 3)), rng.normal(size=(count, 3)), rng.random((count, 2))
    colors = rng.integers(0, 256, (count, 3)) if color == "uchar" else rng.random((count, 3))
    names = [*(("float", n) for n in ("x", "y", "z", "nx", "ny", "nz")), (color, "red"), (color, "green"),
             (color, "blue"), ("float", "s"), ("float", "t"), ("short", "age")]  # fmt: skip
    form = {"ascii": "ascii", "binary": "binary_little_endian"}.get(encoding, encoding)
    head = f"ply\nformat {form} 1.0\ncomment by hand\nelement vertex {count}\n"
    head += "".join(f"property {kind} {name}\n" for kind, name in names)
    head += "element face 2\nproperty list uchar int vertex_indices\nend_header\n"
    faces = [[0, 1, 2, 3], [2, 3, 4]]
    rows = np.concatenate([points, normals, colors, uv, np.arange(count)[:, None]], 1)
    if encoding == "ascii":
        body = "".join(" ".join(f"{v:.9g}" for v in row) + "\n" for row in rows)
        body = (body + "".join(f"{len(f)} {' '.join(map(str, f))}\n" for f in faces)).encode()
    else:
        kinds = order + "6f" + ("3B" if color == "uchar" else "3f") + "2fh"
        body = b"".join(
            struct.pack(
                kinds, *row[:6], *(map(int, row[6:9]) if color == "uchar" else row[6:9]), *row[9:11], int(row[11])
            )
            for row in rows
        )
        body += b"".join(struct.pack(f"{order}B{len(f)}i", len(f), *f) for f in faces)
    path = put(tmp_path, "a.ply", head.encode() + body)
    part = load_part(path)
    assert np.allclose(part.vertices, points, rtol=1e-6) and np.allclose(part.normals, normals, rtol=1e-5)
    scale = 255 if color == "uchar" else 1
    assert np.allclose(part.colors, np.c_[colors / scale, np.ones(count)], atol=1e-6)
    assert np.allclose(part.texcoords[0], np.c_[uv[:, 0], 1 - uv[:, 1]], atol=1e-6)
    assert sorted(map(tuple, part.faces.tolist())) == [(0, 1, 2), (2, 3, 0), (2, 3, 4)]
    assert read_mesh(path).ignored == {"property vertex.age values": count}


def test_ply_and_off_agree_with_trimesh(tmp_path, rng):
    mesh = trimesh.Trimesh(rng.normal(size=(4, 3)), TETRAHEDRON, process=False)
    mesh.visual.vertex_colors = rng.integers(0, 256, (4, 4))
    for kind, options in (("ply", {"encoding": "ascii"}), ("ply", {"encoding": "binary"}), ("off", {})):
        part = load_part(put(tmp_path, f"a.{kind}", mesh.export(file_type=kind, **options)))
        assert np.allclose(part.vertices, mesh.vertices, atol=1e-6) and np.array_equal(part.faces, mesh.faces)
        if kind == "ply":
            assert np.allclose(part.colors, mesh.visual.vertex_colors / 255, atol=1e-6)


def test_obj_agrees_with_trimesh(tmp_path, rng):
    """Corners with texture coordinates and normals of their own."""
    points, uv, normals = rng.normal(size=(9, 3)), rng.random((7, 2)), rng.normal(size=(5, 3))
    corners = np.stack([rng.integers(1, n + 1, (20, 3)) for n in (9, 7, 5)], 2)
    lines = [f"{word} {' '.join(f'{x:.9g}' for x in row)}"
             for word, rows in (("v", points), ("vt", uv), ("vn", normals)) for row in rows]  # fmt: skip
    lines += ["f " + " ".join("/".join(map(str, corner)) for corner in face) for face in corners]
    text = "\n".join(lines) + "\n"
    part = load_part(put(tmp_path, "a.obj", text))
    peer = trimesh.load(io.BytesIO(text.encode()), file_type="obj", process=False, maintain_order=False)
    assert np.allclose(part.vertices[part.faces], peer.vertices[peer.faces], atol=1e-6)
    ours = part.texcoords[0][part.faces] * (1, -1) + (0, 1)
    assert np.allclose(ours, peer.visual.uv[peer.faces], atol=1e-6)
    assert np.allclose(part.normals[part.faces], normals[corners[..., 2] - 1], atol=1e-6)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"])
def test_obj_in_any_text_encoding(tmp_path, encoding):
    text = f"# größe\r\nmtllib töne.mtl\r\n{SQUARE}usemtl Grün\r\nf -4 -3 \\\n -2 -1\r\n"
    put(tmp_path, "töne.mtl", "newmtl Grün\nKd 0 1 0\n")
    path = put(tmp_path, "a.obj", text.encode(encoding))
    model = load_model(path)
    assert [m.name for m in model.materials] == ["Grün"] and model.materials[0].color[:3] == (0.0, 1.0, 0.0)
    assert model.meshes[0][0].faces.tolist() == [[0, 1, 2], [2, 3, 0]] and model.ignored == {}


def test_obj_groups_materials_and_indices_from_the_end(tmp_path):
    text = (
        f"{SQUARE}mtllib a.mtl\nusemtl red\ng x\nf -4 -3 -2\nusemtl blue\nf 1 3 4\n"
        "v 9 9 9 0.5 0.25 1\nf -1 1 2\nusemtl no\nf 1 2 4\nl 1 2\ns 1\n"
    )
    put(tmp_path, "a.mtl", "newmtl red\nKd 1 0 0\n\nnewmtl blue\nKd 0 0 1\nKe 0 0 2\n")
    path = put(tmp_path, "a.obj", text)
    model = load_model(path)
    assert [(p.material, p.faces.tolist()) for p in model.meshes[0]] == [
        (0, [[0, 1, 2]]), (1, [[0, 2, 3], [4, 0, 1]]), (2, [[0, 1, 3]])]  # fmt: skip
    assert model.materials[1].emission == (0.0, 0.0, 2.0) and model.materials[2].color == (1.0, 1.0, 1.0, 1.0)
    assert np.allclose(model.meshes[0][0].colors, [[1, 1, 1, 1]] * 4 + [[0.5, 0.25, 1, 1]])
    assert model.ignored == {"usemtl no statements": 1, "l statements": 1, "s smoothing groups": 1}


def test_mtl_materials(tmp_path, rng):
    heights = rng.integers(0, 256, (8, 8))
    picture(tmp_path, "Wood.PNG", rng.integers(0, 256, (4, 4, 3)))
    picture(tmp_path, "height.png", np.repeat(heights[..., None], 3, 2))
    picture(tmp_path, "normal map.png", np.full((2, 2, 3), (128, 128, 255)))
    library = """newmtl phong
Kd 0.2 0.4 0.6
Ks 0.25 0.5 0.75
Ns 96
map_Kd -s 2 3 1 -o 0.1 0.2 -clamp on textures\\wood.png
bump -bm 0.5 height.png
newmtl pbr
Pr 0.3
Pm 0.7
Pc 0.4
Pcr 0.1
aniso 0.5
anisor 0.25
norm normal map.png
map_Pr -imfchan g wood.png
map_Ka wood.png
refl -type sphere sky.png
newmtl glass
illum 7
Ni 1.45
Tf 0.9 0.8 0.7
d 0.1
newmtl thin
Tr 0.75
map_Kd gone.png
"""
    put(tmp_path, "a.mtl", library)
    uses = "".join(f"usemtl {name}\nf 1 2 3\n" for name in ("phong", "pbr", "glass", "thin"))
    model = load_model(put(tmp_path, "a.obj", f"mtllib a.mtl\n{SQUARE}{uses}"))
    phong, pbr, glass, thin = model.materials
    assert phong.roughness == pytest.approx((2 / 98) ** 0.25) and phong.specular_color == (0.5, 1.0, 1.5)
    slot = phong.textures["base_color"]
    for u, v in rng.random((5, 2)):  # by the format v runs upwards: (u, v) -> (2u + 0.1, 3v + 0.2)
        a, b, c, d, e, f = slot.transform
        down = np.array([a * u + b * (1 - v) + c, d * u + e * (1 - v) + f])
        assert np.allclose(down, [2 * u + 0.1, 1 - (3 * v + 0.2)])
    assert model.textures[slot.texture].wrap == ("clamp", "clamp")
    bent = model.textures[phong.textures["normal"].texture].pixels
    assert np.array_equal(bent, normals_from_heights(heights.astype("u1"), 0.005))
    assert (pbr.roughness, pbr.metallic, pbr.clearcoat, pbr.clearcoat_roughness) == (0.3, 0.7, 0.4, 0.1)
    assert pbr.anisotropy == 0.5 and pbr.anisotropy_rotation == pytest.approx(np.pi / 2)
    assert set(pbr.textures) == {"normal", "roughness"}
    assert glass.transmission == 1 and glass.ior == 1.45 and glass.color == (0.9, 0.8, 0.7, 1.0)
    assert thin.alpha == "BLEND" and thin.color[3] == 0.25 and not thin.textures
    assert model.ignored == {"refl materials": 1, "missing gone.png files": 1}


def test_mtl_scalar_maps_read_their_options(tmp_path):
    """-mm BASE GAIN changes every scalar map, no color; an exponent map becomes roughness for the Ns of its entry."""
    gray = np.array([[0, 64], [128, 255]])
    picture(tmp_path, "gray.png", np.repeat(gray[..., None], 3, 2))
    maps = ("map_Pr", "map_Pm", "map_Ps", "map_Pc", "map_Pcr", "map_d")
    library = "newmtl a\n" + "".join(f"{name} -mm 0.25 0.5 gray.png\n" for name in maps)
    library += "newmtl b\nNs 20\nmap_Ns -mm 0.25 0.5 gray.png\nmap_Kd -mm 0.25 0.5 gray.png\n"
    library += "newmtl c\nNs 500\nmap_Ns -mm 0.25 0.5 gray.png\n"
    put(tmp_path, "a.mtl", library)
    model = load_model(
        put(tmp_path, "a.obj", f"mtllib a.mtl\n{SQUARE}" + "".join(f"usemtl {n}\nf 1 2 3\n" for n in "abc"))
    )
    assert model.ignored == {"-mm options": 1}
    a, b, c = model.materials
    scaled = 0.25 + 0.5 * gray / 255
    assert len(a.textures) == len(maps)
    assert a.sheen_color == (1.0, 1.0, 1.0) and a.sheen_roughness == 0.5, "as with the number Ps 1 beside the map"
    for slot in a.textures.values():
        assert np.abs(model.textures[slot.texture].pixels[..., 0] - 255 * scaled).max() <= 0.51
    for material, exponent in ((b, 20), (c, 500)):
        wanted = 255 * (2 / (scaled * exponent + 2)) ** 0.25
        found = model.textures[material.textures["roughness"].texture].pixels[..., 0]
        assert material.roughness == 1 and np.abs(found - wanted).max() <= 0.51


def test_roughness_of_an_exponent_has_the_same_width():
    """Where cos^n of Blinn-Phong and the Beckmann distribution of that width have fallen to a half."""
    angle = np.linspace(0, 1, 200_001)
    for exponent in (20.0, 100.0, 1000.0):
        beckmann = np.exp(-((np.tan(angle) / roughness_from_exponent(exponent) ** 2) ** 2)) / np.cos(angle) ** 4
        phong, other = (np.argmax(d < 0.5) for d in (np.cos(angle) ** exponent, beckmann))
        assert other / phong == pytest.approx(1, abs=0.04)


def test_normals_from_heights_are_those_of_the_surface():
    """A wave whose slope is known; the picture is 128 texels wide."""
    x = np.arange(128)
    heights = np.rint(127.5 + 127.5 * np.sin(2 * np.pi * x / 128))[None, :].repeat(16, 0).astype("u1")
    normals = normals_from_heights(heights, 0.1)[..., :3] / 127.5 - 1
    slope = 0.1 * np.pi * np.cos(2 * np.pi * x / 128)  # of 0.05 sin(2 pi u)
    assert np.allclose(normals[:, :, 0] / normals[:, :, 2], -slope, atol=0.05) and np.abs(normals[..., 1]).max() < 0.01


def test_off_with_colors_normals_and_comments(tmp_path):
    text = "CNOFF # both\n4 2 0\n" + "".join(
        f"{x} {y} 0  0 0 1  {x} 0.5 0 1\n" for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))
    )
    part = load_part(put(tmp_path, "a.off", text + "3 0 1 2 255 0 0\n3 0 2 3\n"))
    assert part.faces.tolist() == [[0, 1, 2], [0, 2, 3]] and np.allclose(part.normals, [0, 0, 1])
    assert np.allclose(part.colors, [[0, 0.5, 0, 1], [1, 0.5, 0, 1], [1, 0.5, 0, 1], [0, 0.5, 0, 1]])
    assert read_mesh(tmp_path / "a.off").ignored == {"color faces": 1}


def test_strips_and_fans_cover_a_grid_once():
    """A strip of a 1 x n grid and fans of its quads are the same triangles, all turning alike."""
    n = 5
    points = np.stack([np.repeat(np.arange(n + 1), 2), np.tile([0, 1], n + 1)], 1)
    for corners in (np.arange(2 * n + 2), np.array([0, 1, 2, 3, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])):
        made = points[strips(corners)].astype("f8")
        (a, b), (c, d) = (made[:, 1] - made[:, 0]).T, (made[:, 2] - made[:, 0]).T
        area = (a * d - b * c) / 2
        assert len(made) == 2 * n and np.allclose(area, area[0]) and np.isclose(np.abs(area).sum(), n)
    triangles, owner = fans(np.array([3, 2, 5, 4]))
    assert triangles.tolist() == [[0, 1, 2], [5, 6, 7], [5, 7, 8], [5, 8, 9], [10, 11, 12], [12, 13, 10]]
    assert owner.tolist() == [0, 2, 2, 2, 3, 3]


def test_ply_pictures_that_are_missing_or_too_many_are_told(tmp_path):
    path = tmp_path / "a.ply"
    path.write_text(
        "ply\nformat ascii 1.0\ncomment TextureFile gone.png\ncomment TextureFile second.png\nelement vertex 3\n"
        "property float x\nproperty float y\nproperty float z\nelement face 1\n"
        "property list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
    )
    assert read_mesh(path).ignored == {"missing gone.png files": 1, "TextureFile second.png comments": 1}


def test_ply_tristrips(tmp_path):
    head = (
        "ply\nformat binary_little_endian 1.0\nelement vertex 6\nproperty float x\nproperty float y\nproperty float z\n"
    )
    head += "element tristrips 1\nproperty list int int vertex_indices\nend_header\n"
    points = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0], [2, 0, 0], [2, 1, 0]], "<f4")
    data = head.encode() + points.tobytes() + struct.pack("<8i", 7, 0, 1, 2, 3, -1, 3, 2)
    path = put(tmp_path, "a.ply", data)
    assert load_part(path).faces.tolist() == [[0, 1, 2], [2, 1, 3]]


def test_ply_faces_beside_tristrips(tmp_path):
    head = (
        "ply\nformat ascii 1.0\nelement vertex 5\nproperty float x\nproperty float y\nproperty float z\n"
        "element face 1\nproperty list uchar int vertex_indices\n"
        "element tristrips 1\nproperty list int int vertex_indices\nend_header\n"
    )
    points = "0 0 0\n0 1 0\n1 0 0\n1 1 0\n2 0 0\n"
    path = put(tmp_path, "a.ply", (head + points + "3 2 3 4\n4 0 1 2 3\n").encode())
    assert load_part(path).faces.tolist() == [[2, 3, 4], [0, 1, 2], [2, 1, 3]]


def test_merged_corners_are_told_apart_beyond_64_bits(rng):
    columns = [rng.integers(-1, 3, 500) * (1 << 40) for _ in range(3)]
    columns = [np.where(column < 0, -1, column) for column in columns]
    first, inverse = merge_corners(columns)
    rows = np.stack(columns, 1)
    assert np.array_equal(rows[first][inverse], rows) and len(first) == len(np.unique(rows, axis=0))


HEAD = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
LISTS = "element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n"
BAD = {
    "face.obj": (SQUARE + "f 1/2/3/4 2 3\n", "1/2/3/4 2 3"),
    "zero.obj": (SQUARE + "f 0 1 2\n", "line 5 names v 0; there are 4, from 1"),
    "back.obj": (SQUARE + "f 1 2 3\n\nf 1 2 4\nf -3 -5 2\nv 1 1 1\n", "line 8 names v -5; there are 5, from 1"),
    "forward.obj": ("f -1 1 2\n" + SQUARE, "line 1 names v -1; there are 4, from 1"),
    "joined.obj": (SQUARE + "f 1 2 \\\n3\nf 1 2 9\n", 'the face "f 1 2 9" names v 9; there are 4, from 1'),
    "vt.obj": (SQUARE + "f 1/1 2/1 3/1\n", "names vt 1; there are 0"),
    "short.obj": ("v 1 2\nf 1 1 1\n", "fewer than 3 numbers"),
    "word.obj": ("v 1 2 x\nf 1 1 1\n", '"x" is no number'),
    "whole.obj": (SQUARE + "f 1 2.5 3\n", "2.5"),
    "huge.obj": (SQUARE + "f 1 2 99999999999999999999\n", "names v|99999"),
    "corners.obj": (SQUARE + "f" + " 1 2 3 4" * 300 + "\n", "a face has 1200 corners; 4 vertices make 8 at most"),
    "corners.off": ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n1026" + " 0 1 2" * 342 + "\n", "a face has 1026 corners"),
    "corners.ply": (HEAD + LISTS.replace("uchar int", "uint int") + "1026" + " 0 1 2" * 342 + "\n", "has 1026 corners"),
    "none.off": ("3 1 0\n", "first line"),
    "binary.off": ("OFF BINARY\n", "text"),
    "counts.off": ("OFF\n3 x\n", "numbers of vertices"),
    "claims.off": ("OFF\n1000000 1000000 0\n", "says 1000000"),
    "range.off": ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n", "names the vertices 3"),
    "less.off": ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1\n", "fewer vertices"),
    "format.ply": (HEAD.replace("ascii", "binary_middle_endian") + LISTS, "binary_middle_endian"),
    "type.ply": (HEAD.replace("float y", "quad y") + LISTS, "quad y"),
    "axis.ply": (HEAD.replace("float z", "float w") + LISTS + "3 0 1 2\n", "no property z"),
    "cut.ply": (HEAD + LISTS + "3 0 1\n", "cannot be read|can be read"),
    "list.ply": (HEAD + LISTS + "1000000000 0 1 2\n", "cannot be read"),
    "half.ply": (HEAD + LISTS + "3 0 1 1.5\n", "whole number"),
    "endless.ply": (HEAD, "end_header"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_in_one_sentence(tmp_path, name):
    data, words = BAD[name]
    with pytest.raises(InputError, match=words) as error:
        load_part(put(tmp_path, name, data))
    assert name in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["obj", "off", "ply"])
def test_triangles_that_take_too_much_memory_are_refused_before_they_are_made(tmp_path, monkeypatch, kind):
    """A face of 9 million corners took 2.4 GiB and 18 s before --max-memory ended the run."""
    count = 2000
    points = "".join(f"{x} 0 0\n" for x in range(count))
    face = " ".join(map(str, range(count)))
    head = HEAD.replace("vertex 3", f"vertex {count}") + LISTS.replace("uchar", "uint").partition("0 0 0")[0]
    texts = {"obj": "v " + points.replace("\n", "\nv ") + f" 0 0 0\nf 1 {face[2:]}\n"}
    texts |= {"off": f"OFF\n{count} 1 0\n{points}{count} {face}\n", "ply": f"{head}{points}{count} {face}\n"}
    path = put(tmp_path, f"a.{kind}", texts[kind])
    assert len(load_part(path).faces) == count - 2
    monkeypatch.setattr(contents, "TRIANGLE_BYTES", 1 << 40)
    monkeypatch.setattr(contents, "fans", None)
    copy = put(tmp_path, f"b.{kind}", texts[kind])
    with pytest.raises(UnavailableError, match=f"{re.escape(str(copy))}: its faces: takes about 2045952.0 GiB"):
        load_part(copy)


def test_bad_numbers_of_a_material_are_refused(tmp_path):
    put(tmp_path, "a.mtl", "newmtl a\nKd 1 x 0\n")
    with pytest.raises(InputError, match="Kd"):
        load_part(put(tmp_path, "a.obj", f"mtllib a.mtl\n{SQUARE}f 1 2 3\n"))


@pytest.mark.parametrize(
    ("faces", "expected"),
    [
        ("f 1 2 3\n\nf 1 2 9\n", "line 7 names v 9; there are 4"),
        ("f -1 -2 -7\n", "line 5 names v -7; there are 4"),
        ("f 1 2 3 4\nfo 1/1 2/1 3/1\n", "line 6 names vt 1; there are 0"),
        ("f 1 2 \\\n -9\n", 'the face "f 1 2   -9" names v -9'),
        ("f 1 2 99999999999999999999\n", "names v 99999999999999999999; there are 4"),
    ],
)
def test_an_index_beyond_the_vertices_names_its_line(tmp_path, faces, expected):
    with pytest.raises(InputError, match=re.escape(expected)):
        load_part(put(tmp_path, "a.obj", SQUARE + faces))


@pytest.mark.parametrize("count", [MAX_FAN, MAX_FAN + 1, 3001])
def test_polygons_of_many_corners_are_halved_and_keep_their_area(count):
    angles = np.arange(count) * 2 * np.pi / count
    ring = np.stack([np.cos(angles), np.sin(angles)], 1)
    triangles, owner = fans(np.array([3, count, 4]))
    assert np.bincount(owner).tolist() == [1, count - 2, 2] and triangles[-2:].tolist() == [
        [count + 3, count + 4, count + 5],
        [count + 5, count + 6, count + 3],
    ]
    edges = ring[triangles[owner == 1][:, 1:] - 3] - ring[triangles[owner == 1][:, :1] - 3]
    areas = np.linalg.det(edges) / 2
    assert areas.min() > 0 and math.isclose(areas.sum(), count / 2 * math.sin(2 * math.pi / count))
    uses = np.bincount(triangles[owner == 1].ravel() - 3, minlength=count)
    assert (uses.max() < 30) == (count > MAX_FAN)


def test_a_word_among_numbers_is_named_with_its_line(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 0 0 zero\nf 1 1 1\n")
    with pytest.raises(InputError, match='"zero" is no number in the line of "0 0 zero"'):
        load_part(tmp_path / "a.obj")
