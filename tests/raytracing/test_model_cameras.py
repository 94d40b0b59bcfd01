"""Cameras of glTF files: orthographic ones, and bad ones."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from renderer.errors import InputError
from renderer.pictures.raytrace import Picture, open_file
from renderer.raytracing.settings import Material
from tests.formats.gltf_builder import Maker, square


def test_an_orthographic_camera_of_a_file_sees_its_height(device, tmp_path, rng):
    """A half-height of 2 and a half-width of 3 decide at which pixels the edges of a square appear."""
    maker = Maker()
    maker.node(mesh=square(maker))
    camera = maker.add(
        "cameras", {"type": "orthographic", "orthographic": {"xmag": 3, "ymag": 2, "zfar": 9, "znear": 0}}
    )
    maker.node(camera=camera, translation=[0.5, 0.25, float(rng.uniform(1, 40))])
    path = tmp_path / "ortho.glb"
    path.write_bytes(maker.glb())
    scene = open_file(path)
    assert scene.settings.projection == "orthographic" and scene.size == (1080, 720)
    picture = Picture(SimpleNamespace(device=device))
    bare = replace(scene.settings, quads=(), materials=(Material("plain"),))
    for x, y, inside in ((0.99, 0, True), (1.01, 0, False), (-0.99, 0, True), (-1.01, 0, False), (0, 0.99, True),
                         (0, 1.01, False), (0, -0.99, True), (0, -1.01, False)):  # fmt: skip
        pixel = (0.5 + (x - 0.5) / 6) * 600, (0.5 - (y - 0.25) / 4) * 400
        assert (picture.pick(bare, (600, 400), *pixel) is not None) == inside, (x, y)


@pytest.mark.parametrize("lens, words", [
    ({"type": "orthographic", "orthographic": {"xmag": 1, "ymag": 0}}, "has xmag 1 and ymag 0; none may be 0"),
    ({"type": "orthographic", "orthographic": {"xmag": 1e9, "ymag": 1}}, "or 1000 times the other"),
    ({"type": "orthographic", "orthographic": {"ymag": 1}}, "has a xmag of"),
    ({"type": "fisheye"}, "has the type \"fisheye\"; allowed are perspective, orthographic"),
])  # fmt: skip
def test_bad_cameras_are_one_sentence(tmp_path, lens, words):
    maker = Maker()
    maker.node(mesh=square(maker))
    maker.node(camera=maker.add("cameras", lens))
    path = tmp_path / "bad.glb"
    path.write_bytes(maker.glb())
    with pytest.raises(InputError, match=re.escape(words)):
        open_file(path)
