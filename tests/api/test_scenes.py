"""Scenes from tables, meshes and arrays in memory, against the same scenes as files."""

import pickle
import tomllib
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import renderer
from renderer.formats.images import read_exr, read_pixels
from renderer.formats.mesh import load_part
from renderer.paths import SCENES
from renderer.system import trust

VERTICES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "f4")
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
DRAW = {"size": (16, 12), "samples": 1, "device": "cpu"}
LIT = {"materials": [{"name": "gray"}], "zenith": (1, 1, 1), "horizon": (1, 1, 1)}


def test_a_table_makes_the_scene_of_its_file():
    table = tomllib.loads((SCENES / "cornell.toml").read_text(encoding="utf-8"))
    scene, file = renderer.Scene(table), renderer.load("cornell")
    assert (scene.settings, scene.tone, scene.size, scene.title) == (file.settings, file.tone, file.size, file.title)
    keywords = renderer.Scene(**table["settings"], tone=table.get("tone", {}))
    assert keywords.settings == file.settings and keywords.picture == "raytrace"
    assert np.array_equal(renderer.render(table, **DRAW), renderer.render("cornell", **DRAW))


def test_a_scene_is_a_value():
    scene = renderer.load("cornell")
    assert isinstance(scene, renderer.Scene)
    darker = replace(scene, settings=replace(scene.settings, max_depth=1))
    assert isinstance(darker, renderer.Scene) and darker.settings.max_depth == 1 and darker != scene
    assert renderer.Scene(picture="fractal").settings == renderer.Scene({"picture": "fractal"}).settings
    assert isinstance(renderer.render("cornell", **DRAW).scene, renderer.Scene)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"picture": "raytracer"}, "picture is .raytracer.; allowed are"),
        ({"max_dept": 3}, "did you mean max_depth"),
        ({"materials": [{"name": "a", "color": (0, 0, 9)}]}, r"materials\[0\]: color\[2\] is 9"),
        ({"spheres": [{"material": "none"}]}, "material is 'none'; materials is not given"),
        ({"size": (0, 4)}, "size is"),
        ({"title": 5}, "title is 5; it must be a text"),
        ({"tone": 5}, "tone is 5; it must be a table"),
        ({"settings": 5}, "settings is 5; it must be a table"),
    ],
)
def test_a_wrong_table_is_a_sentence(table, sentence):
    with pytest.raises(renderer.UserError, match=sentence):
        renderer.Scene(table)


def test_a_scene_takes_no_name():
    with pytest.raises(renderer.UserError, match="renderer.load reads a file"):
        renderer.Scene("cornell")


def test_a_mesh_is_its_arrays():
    normals, uv = VERTICES / 2 + 0.25, VERTICES[:, :2] / 3
    mesh = renderer.Mesh(VERTICES.tolist(), FACES, normals=normals, uv=uv, colors=np.eye(4))
    part = load_part(mesh)
    assert np.array_equal(part.vertices, VERTICES) and np.array_equal(part.faces, FACES)
    assert np.array_equal(part.normals, normals) and np.array_equal(part.colors, np.eye(4))
    assert np.allclose(
        part.texcoords[0], np.column_stack([uv[:, 0], 1 - uv[:, 1]]), atol=1e-7
    )  # v runs downwards inside
    assert renderer.Mesh(VERTICES, FACES, normals=normals, uv=uv, colors=np.eye(4)).path == mesh.path
    as_bytes = load_part(renderer.Mesh(VERTICES, FACES, colors=np.full((4, 3), 51, "u1")))
    assert np.allclose(as_bytes.colors, [0.2, 0.2, 0.2, 1])


def test_a_mesh_draws_as_its_file(tmp_path):
    lines = [f"v {x} {y} {z}" for x, y, z in VERTICES] + ["f {} {} {}".format(*face) for face in FACES + 1]
    (tmp_path / "m.obj").write_text("\n".join(lines))
    file, mesh = tmp_path / "m.obj", renderer.Mesh(VERTICES, FACES)
    assert np.array_equal(renderer.render(mesh, **DRAW), renderer.render(file, **DRAW))
    for given in (mesh, file, str(file)):
        part = load_part(renderer.Scene(**LIT, meshes=[{"material": "gray", "file": given}]).settings.meshes[0].file)
        assert np.array_equal(part.vertices, VERTICES) and np.array_equal(part.faces, FACES)
    trimesh_like = SimpleNamespace(vertices=VERTICES, faces=FACES)
    pyvista_like = SimpleNamespace(points=VERTICES, faces=np.insert(FACES, 0, 3, axis=1).ravel(), regular_faces=FACES)
    points_alone = SimpleNamespace(points=VERTICES, faces=FACES)
    with pytest.raises(renderer.UserError, match="^faces are .16,. int64; they must be .m, 3. whole numbers"):
        renderer.render(SimpleNamespace(points=VERTICES, faces=pyvista_like.faces))
    for other in (trimesh_like, pyvista_like, points_alone):
        assert np.array_equal(renderer.render(other, **DRAW), renderer.render(mesh, **DRAW))


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"faces": FACES + 9}, "face 0 names the vertices"),
        ({"faces": FACES.astype("f4")}, "whole numbers"),
        ({"faces": FACES[:, :2]}, r"must be \(m, 3\)"),
        ({"faces": FACES[:0]}, "no triangle"),
        ({"vertices": VERTICES[:, :2]}, r"vertices are \(4, 2\)"),
        ({"vertices": VERTICES * np.nan}, "row 0 is"),
        ({"vertices": "abc"}, "vertices are"),
        ({"vertices": [[1, 2], [3]]}, "vertices: not an array"),
        ({"normals": VERTICES[:3]}, r"normals are \(3, 3\).*\(4, 3\)"),
        ({"colors": VERTICES[:, :2]}, r"\(4, 3 or 4\)"),
        ({"colors": VERTICES * 2}, "^colors: row 1 is .2.*numbers from 0 to 1, or uint8 or uint16"),
        ({"colors": VERTICES * -1.0}, "numbers from 0 to 1"),
        ({"colors": VERTICES * np.nan}, "numbers from 0 to 1"),
        ({"colors": np.full((4, 3), 128)}, "numbers from 0 to 1"),
    ],
)
def test_wrong_arrays_are_sentences(arrays, sentence):
    with pytest.raises(renderer.UserError, match=sentence):
        renderer.Mesh(**{"vertices": VERTICES, "faces": FACES, **arrays})


def test_textures_environments_and_instances_are_arrays(tmp_path):
    mesh, red = renderer.Mesh(VERTICES, FACES, uv=VERTICES[:, :2]), np.zeros((4, 4, 3), "f4")
    red[..., 0] = 1
    textured = {"materials": [{"name": "gray", "color_texture": "t"}], "textures": [{"name": "t", "file": red}]}
    shapes = {"meshes": [{"material": "gray", "file": mesh}]}
    camera = {"position": [3, 2, 3], "target": [0.3, 0.3, 0.3], "fov_degrees": 25}
    image = renderer.render(renderer.Scene({**LIT, **textured, **shapes}), camera=camera, **DRAW)
    albedo = image.layers["albedo"].reshape(-1, 3)
    assert albedo[:, 0].max() > 0.7 and ((albedo[:, 0] > 0.7) & (albedo[:, 1] < 0.05)).any()
    sky = renderer.render(renderer.Scene(environment={"file": np.full((4, 8, 3), 0.5)}), **DRAW)
    assert np.allclose(sky[..., :3], 0.5, rtol=1e-3)
    assert shifted(mesh).settings.instances[1].matrix == (1, 0, 0, 1.5, 0, 1, 0, 0, 0, 0, 1, 0)
    with pytest.raises(renderer.UserError, match="matrices are"):
        renderer.instances("one", np.eye(4))
    with pytest.raises(renderer.UserError, match="environment.file is an array"):
        renderer.Scene(environment={"file": np.zeros(5)})


def shifted(mesh):
    """A scene of two instances of a mesh, the second one 1.5 to the right."""
    matrices = np.eye(4)[None].repeat(2, 0)
    matrices[1, 0, 3] = 1.5
    named = {"meshes": [{"material": "gray", "file": mesh, "name": "one"}]}
    return renderer.Scene(**LIT, **named, instances=renderer.instances("one", matrices))


@pytest.mark.slow  # two programs; tests/bvh and tests/raytracing draw instances in every run
def test_instances_by_matrices_lie_where_meshes_by_positions_do():
    mesh = renderer.Mesh(VERTICES, FACES)
    moved = {"meshes": [{"material": "gray", "file": mesh, "position": [x, 0, 0]} for x in (0, 1.5)]}
    camera = {"position": [3, 2, 3], "target": [0.3, 0.3, 0.3], "fov_degrees": 25}
    depths = [
        renderer.render(scene, camera=camera, layers=True, **DRAW).layers["depth"]
        for scene in (shifted(mesh), renderer.Scene(**LIT, **moved))
    ]
    assert np.allclose(*depths, rtol=1e-5)


def test_a_saved_picture_of_arrays_is_verified_without_the_temporary_files(tmp_path):
    mesh = renderer.Mesh(VERTICES + 0.125, FACES, uv=VERTICES[:, :2])
    red = np.full((3, 5), 7, "u1")
    scene = renderer.Scene(
        materials=[{"name": "gray", "color_texture": "t"}], textures=[{"name": "t", "file": red}],
        meshes=[{"material": "gray", "file": mesh}], zenith=(1, 1, 1),
    )  # fmt: skip
    image = renderer.render(scene, **DRAW)
    image.save(tmp_path / "a b.png")
    mesh.path.unlink()
    Path(scene.settings.textures[0].file).unlink()
    answer = renderer.verify(tmp_path / "a b.png", device="cpu")
    assert answer["same"] and answer["intact"]
    assert sorted(path.suffix for path in (tmp_path / "a b.arrays").iterdir()) == [".ply", ".png"]


def test_a_picture_may_name_a_file_of_an_allowed_folder_in_that_call_alone(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "pictures").mkdir()
    lines = [f"v {x} {y} {z}" for x, y, z in VERTICES] + ["f {} {} {}".format(*face) for face in FACES + 1]
    (tmp_path / "meshes/m.obj").write_text("\n".join(lines))
    scene = renderer.Scene(**LIT, meshes=[{"material": "gray", "file": tmp_path / "meshes/m.obj"}])
    path = tmp_path / "pictures/a.png"
    renderer.render(scene, **DRAW).save(path)
    allowed_before = set(trust._allowed)
    trust._allowed.clear()  # as in a process that did not make the scene
    try:
        for _ in range(2):
            with pytest.raises(renderer.InputError, match=r"must lie in .*pictures or below; allow=\[FOLDER\] allows"):
                renderer.verify(path, device="cpu")
            assert renderer.verify(path, device="cpu", allow=[tmp_path / "meshes"])["same"]
    finally:
        trust._allowed.update(allowed_before)
    for wrong, sentence in (
        ("meshes", "^allow m: there is no such folder"),
        ([tmp_path / "none"], "^allow .*none: there is no such folder"),
        ([3], "^allow lists folders, not 3"),
    ):
        with pytest.raises(renderer.UserError, match=sentence):
            renderer.verify(path, device="cpu", allow=wrong)


def test_a_folder_for_arrays_that_cannot_be_made_is_a_sentence(tmp_path):
    image = renderer.render(renderer.Mesh(VERTICES, FACES), **DRAW)
    (tmp_path / "taken.arrays").write_text("a file of the user")
    for name in ("none/a.png", "taken.png"):
        with pytest.raises(renderer.UserError, match=r"\.arrays: cannot be written"):
            image.save(tmp_path / name)
        assert not (tmp_path / name).exists()
    assert (tmp_path / "taken.arrays").read_text() == "a file of the user"


@pytest.mark.parametrize(
    ("texture", "sentence"),
    [
        (np.full((2, 2, 3), 255.0), r"textures.0.file: pixel \(0, 0\) is \[255.0, .*; it must be floats from 0 to 1"),
        (np.array([[0, np.nan]]), r"textures.0.file: pixel \(1, 0\) is \[nan, nan, nan\]"),
        (np.full((2, 2, 4), -0.5, "f4"), r"textures.0.file: pixel \(0, 0\) is \[-0.5"),
        (np.full((2, 2, 3), 7), r"textures.0.file: pixel \(0, 0\) is \[7, 7, 7\]; .* uint8 or uint16"),
        (np.zeros((2, 2, 3), "c8"), r"textures.0.file is an array \(2, 2, 3\) complex64; .* floats, uint8 or uint16"),
        ([[0, 1], [0]], "textures.0.file: not an array"),
        (np.zeros(4), r"textures.0.file is an array \(4,\)"),
    ],
)
def test_wrong_textures_are_sentences(texture, sentence):
    with pytest.raises(renderer.UserError, match=sentence):
        renderer.Scene(textures=[{"name": "t", "file": texture}])


def test_textures_of_8_bits_are_srgb_and_all_others_linear_floats():
    ramp = np.arange(48, dtype="u1").reshape(4, 4, 3)
    rows = (ramp, ramp / 255, ramp.astype("u2") * 257, (ramp / 255).tolist(), ((0, 1), (1, 0)))
    files = [renderer.Scene(**LIT, textures=[{"name": "t", "file": row}]).settings.textures[0].file for row in rows]
    assert np.array_equal(read_pixels(files[0])[..., :3], ramp)
    for file in files[1:4]:
        assert np.array_equal(read_exr(Path(file))[..., :3], (ramp / 255).astype("f4"))
    assert np.array_equal(read_exr(Path(files[4]))[..., 0], [[0, 1], [1, 0]])


@pytest.mark.slow  # two programs
@pytest.mark.parametrize("count", [1, 2])
def test_a_float_texture_is_drawn_as_it_is(count):
    """Walls of textures of floats, uint16 and uint8, with and without spheres, which are not shaded eight at a time."""
    values = [np.full((4, 4, 3), 0.5), np.full((4, 4), 32768, "u2"), np.full((4, 4, 3), 128, "u1")]
    files = [{"name": f"t{k}", "file": value} for k, value in enumerate([*values, values[2]])]
    files[3]["color_space"] = "linear"
    rows = [(x, {"corners": [[x, 0, 0], [x + 1, 0, 0], [x + 1, 1, 0], [x, 1, 0]]}) for x in range(4)]
    walls = [{"material": f"m{x}", **table} for x, table in rows]
    materials = [{"name": f"m{x}", "color": (1, 1, 1), "color_texture": f"t{x}"} for x in range(4)]
    balls = [{"material": "m0", "center": (9, 9, 9)}] * (count - 1)
    scene = renderer.Scene(**LIT | {"materials": materials}, textures=files, quads=walls, spheres=balls)
    camera = {"position": [2, 0.5, 4], "target": [2, 0.5, 0], "fov_degrees": 14}
    image = renderer.render(scene, camera=camera, size=(40, 10), samples=4, device="cpu", layers=True)
    wanted = [0.5, 32768 / 65535, ((128 / 255 + 0.055) / 1.055) ** 2.4, 128 / 255]
    for shown in (image.layers["albedo"], image[..., :3]):  # in a white furnace a wall is as bright as its albedo
        found = shown[3:7].mean((0, 2)).reshape(4, 10)[:, 3:7].mean(1)
        assert np.allclose(found, wanted, rtol=1e-5 if shown is image.layers["albedo"] else 0.02), found


@pytest.mark.parametrize(
    ("pixels", "sentence"),
    [
        (np.full((1, 2, 3), np.nan), r"environment.file: pixel \(0, 0\) is \[nan, nan, nan\]; it must be finite"),
        (np.full((1, 2), -1), r"environment.file: pixel \(0, 0\) is \[-1, -1, -1\]; .* not negative"),
        (np.full((1, 2), 1e300), r"environment.file: pixel \(0, 0\) is \[1e\+300"),
    ],
)
def test_wrong_environments_are_sentences(pixels, sentence):
    with pytest.raises(renderer.InputError, match=sentence):
        renderer.Scene(environment={"file": pixels})


def test_an_array_for_a_mesh_is_a_sentence():
    with pytest.raises(
        renderer.UserError, match=r"^meshes.0.file is an array \(1, 3\) .*; it must be a renderer.Mesh or"
    ):
        renderer.Scene(**LIT, meshes=[{"material": "gray", "file": [[0.0, 0.0, 0.0]]}])


def test_an_environment_of_other_sides_is_said():
    with pytest.warns(UserWarning, match="environment.file has 8 x 8 pixels; a map twice as wide as high"):
        renderer.Scene(environment={"file": np.ones((8, 8, 3))})


def test_a_picture_of_a_moment_knows_its_time():
    frames = [{"time": t, "interpolation": "linear", "set": {"max_depth": 1 + 4 * t}} for t in (0, 1)]
    scene = renderer.Scene(**LIT, spheres=[{"material": "gray"}], animation={"keyframes": frames})
    image = renderer.render(scene, time=0.5, **DRAW)
    assert image.scene.time == 0.5 and image.scene.samples == 1
    assert np.array_equal(renderer.render(image.scene, **DRAW), image)


def test_a_pickled_picture_of_a_mesh_finds_it_again():
    image = renderer.render(renderer.Mesh(VERTICES, FACES), **DRAW)
    assert pickle.loads(pickle.dumps(image)).scene.settings == image.scene.settings


@pytest.mark.parametrize(("value", "sentence"), [(-1, "1 to 128"), ("x", "a whole number"), (2.5, "a whole number")])
def test_settings_of_a_changed_copy_are_checked(value, sentence):
    scene = renderer.load("cornell")
    changed = replace(scene, settings=replace(scene.settings, max_depth=value))
    with pytest.raises(renderer.UserError, match=f"^settings: max_depth is .*; it must be {sentence}"):
        renderer.render(changed, **DRAW)
    moved = replace(scene, settings=replace(scene.settings, view=replace(scene.settings.view, fov_degrees=200.0)))
    with pytest.raises(renderer.UserError, match="^settings: view: fov_degrees is 200"):
        renderer.render(moved, **DRAW)


def test_whole_numbers_of_a_mesh_are_colors_of_their_range_and_plain_coordinates():
    white = renderer.Mesh(VERTICES, FACES, colors=np.ones((4, 3), "f4"))
    for colors in (np.full((4, 3), 255, "u1"), np.full((4, 3), 65535, "u2"), np.ones((4, 3), int)):
        assert renderer.Mesh(VERTICES.astype("u1"), FACES, colors=colors).path == white.path


def test_a_text_for_a_color_and_an_empty_source_are_sentences():
    with pytest.raises(renderer.InputError, match="color is 'red'; it must have 3 values, each 0.0 to 1.0"):
        renderer.Scene(materials=[{"name": "a", "color": "red"}])
    with pytest.raises(renderer.UserError, match="the name of a scene, not ''"):
        renderer.render("")


def test_a_named_shape_without_instances_is_said():
    mesh = renderer.Mesh(VERTICES, FACES)
    tables = {"materials": [{"name": "a"}], "meshes": [{"material": "a", "name": "one", "file": mesh}]}
    with pytest.warns(UserWarning, match=r"meshes\[0\] is not drawn: shapes with a name .* 'one' has none"):
        scene = renderer.Scene(**LIT | tables)
    assert len(scene.notes) == 1
    with warnings.catch_warnings(action="error"):
        instanced = renderer.Scene(**LIT | tables, instances=renderer.instances("one", np.eye(4)[None]))
        renderer.Scene(**LIT | tables, scattered=[{"shapes": ["one"]}])
    assert instanced.notes == ()


@pytest.mark.parametrize(
    "light",
    [
        {"zenith": (0, 0, 1)}, {"environment": {"preset": "studio"}}, {"sky": {"strength": 1}}, {"suns": [{}]},
        {"point_lights": [{"position": [0, 3, 0]}]}, {"materials": [{"name": "a", "emission": [1, 1, 1]}]},
    ],
)  # fmt: skip
def test_a_scene_without_light_is_said(light):
    table = {"materials": [{"name": "a"}], "spheres": [{"material": "a"}]}
    with pytest.warns(UserWarning, match="^Scene: nothing emits light, so the picture is black: set environment"):
        dark = renderer.Scene(table)
    with warnings.catch_warnings(action="error"):
        lit = renderer.Scene(table | light)
    assert len(dark.notes) == 1 and not lit.notes and lit.settings.may_have_light


def test_a_black_picture_is_one_without_light():
    """Of the bundled scenes none is black; the dark one is."""
    for name in renderer.scene_names((".toml",)):
        scene = renderer.load(name)
        assert scene.picture != "raytrace" or scene.settings.may_have_light, name
    with pytest.warns(UserWarning, match="nothing emits light"):
        dark = renderer.Scene(materials=[{"name": "gray"}], spheres=[{"material": "gray"}])
    assert not renderer.render(dark, **DRAW)[..., :3].any()


def test_bundled_scenes_are_listed_and_named():
    names = renderer.scene_names()
    assert set(names) == {p.stem for p in SCENES.iterdir() if p.suffix in (".toml", ".flame", ".cb", ".glsl")}
    with pytest.raises(
        renderer.InputError, match=r"^nope: No such file or directory; scenes that come along are abyss, "
    ):
        renderer.render("nope")
    with pytest.raises(renderer.InputError, match=r"\(did you mean cornell\?\); scenes that come along"):
        renderer.render("cornel")
    with pytest.raises(renderer.InputError, match=r"none/cornel: No such file or directory$"):
        renderer.render("none/cornel")


def test_camera_and_view_are_not_given_together():
    both = {"camera": {"position": [0, 0, 5]}, "view": {"position": [0, 0, 9]}}
    for keys in (both, {"camera": both["camera"], "view.fov_degrees": 30}):
        with pytest.raises(renderer.UserError, match="^camera and view are two names of one setting"):
            renderer.render("cornell", **keys)
    with pytest.raises(renderer.UserError, match="^camera and view are two names of one setting"):
        renderer.Scene(**both)


def test_messages_name_no_temporary_file_and_a_missing_material_says_why():
    mesh = renderer.Mesh(VERTICES, FACES)
    assert str(renderer.UserError(f"{mesh.path}: has no triangle")) == "Mesh: has no triangle"
    assert renderer.load(mesh).title == "Mesh"
    with pytest.raises(renderer.InputError, match="'gold'; materials is not given, so it must be 'plain'"):
        renderer.Scene(spheres=[{"material": "gold"}])
    with pytest.raises(renderer.UserError, match="^film writes to a path, not None"):
        renderer.film("julia", None)
    with pytest.raises(renderer.UserError, match="^verify takes the path of a PNG, not None"):
        renderer.verify(None)
