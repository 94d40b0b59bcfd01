"""Files that a model file names, edited while the window shows the model: material libraries and pictures."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, square
from renderer.errors import InputError
from renderer.formats.images import write_png
from renderer.formats.linked import linked_files
from renderer.formats.mesh import load_model
from renderer.pictures import load
from tests.window.headless import frames, until, window
from tests.window.monkey import noop_device

OBJ = """mtllib paint.mtl
v -1 -1 0\nv 1 -1 0\nv 1 1 0\nv -1 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1
usemtl wall
f 1/1 2/2 3/3 4/4
"""


def picture(path, color) -> None:
    write_png(path, np.full((4, 4, 3), color, "u1"))


def obj(folder):
    (folder / "wall.obj").write_text(OBJ)
    (folder / "paint.mtl").write_text("newmtl wall\nKd 1 0 0\nmap_Kd brick.png\n")
    picture(folder / "brick.png", (255, 255, 255))
    return folder / "wall.obj"


def gltf(folder):
    maker = Maker()
    texture = maker.texture(np.full((2, 2, 3), 255, "u1"))
    maker.tree["images"][0] = {"uri": "brick.png"}
    material = maker.add("materials", {"pbrMetallicRoughness": {"baseColorTexture": {"index": texture}}})
    maker.node(mesh=square(maker, material=material))
    (folder / "wall.gltf").write_text(maker.gltf())
    picture(folder / "brick.png", (255, 255, 255))
    return folder / "wall.gltf"


def ray_color(path) -> list[int]:
    return load_model(path).textures[0].pixels[0, 0, :3].tolist()


def test_a_window_goes_on_without_the_shader_that_a_scene_names(gl, tmp_path):
    (tmp_path / "blue.frag").write_text("void mainImage(out vec4 c, in vec2 p) { c = vec4(0, 0, 1, 1); }\n")
    (tmp_path / "blue.toml").write_text('title = "blue"\npicture = "toy"\n[settings]\nimage = "blue.frag"\n')
    with window([load(tmp_path / "blue.toml")], None, gl, (900, 300)) as screen:
        app, panel, code = screen.app, screen.app.panel, screen.ui.main_window.overlays.code
        until(screen, lambda: panel.measured.samples)
        app.overlays.code.is_on = True
        frames(screen, 3)
        assert code.path == tmp_path / "blue.frag" and "mainImage" in code.editor.get_text()
        code.open(tmp_path / "blue.toml")
        panel.read_again(panel.original)  # as an edit of the shader does: the scene's text is parsed again
        (tmp_path / "blue.frag").unlink()
        frames(screen, 5)
        assert not panel.has_unsaved_work
        panel.show(replace(panel.scene, title="other"))
        assert panel.has_unsaved_work
        with pytest.raises(InputError, match="blue.frag"):
            code.open(tmp_path / "blue.frag")
        assert code.editor.get_text() == "" and not code.is_changed
        frames(screen, 5)
        assert not (tmp_path / "blue.frag").exists()


@pytest.mark.parametrize("make", [obj, gltf])
def test_a_changed_picture_of_a_model_reloads_it(make, gl, tmp_path):
    path = make(tmp_path)
    with window([load(path)], SimpleNamespace(device=noop_device()), gl, (200, 150)) as screen:
        panel = screen.app.panel
        until(screen, lambda: panel.picture is not None and panel.measured.samples)
        assert linked_files(path) >= {tmp_path / "brick.png"}
        frames(screen, 20)  # the file watcher sees the files as they are
        before = panel.picture
        picture(tmp_path / "brick.png", (10, 20, 30))
        until(screen, lambda: panel.picture is not None and panel.picture is not before)
        assert screen.app.message == "reloaded: brick.png" and not panel.update_error
        assert ray_color(path) == [10, 20, 30]


def test_a_changed_and_a_late_material_library_reload_their_obj(gl, tmp_path):
    path = obj(tmp_path)
    library = (tmp_path / "paint.mtl").read_text()
    with window([load(path)], SimpleNamespace(device=noop_device()), gl, (200, 150)) as screen:
        panel = screen.app.panel
        until(screen, lambda: panel.picture is not None and panel.measured.samples)
        frames(screen, 20)
        before = panel.picture
        (tmp_path / "paint.mtl").write_text(library.replace("1 0 0", "0 0.5 0").replace("brick", "late"))
        until(screen, lambda: panel.picture is not None and panel.picture is not before)
        assert load_model(path).materials[0].color[:3] == (0.0, 0.5, 0.0)
        assert load_model(path).ignored == {"missing late.png files": 1}
        frames(screen, 20)
        before = panel.picture
        picture(tmp_path / "late.png", (9, 9, 9))
        until(screen, lambda: panel.picture is not None and panel.picture is not before)
        assert load_model(path).ignored == {} and ray_color(path) == [9, 9, 9]
