"""Cameras of glTF files: orthographic ones, and bad ones."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, square
from renderer.errors import InputError
from renderer.pictures.raytrace import Picture, open_file
from renderer.raytracing.models.choices import choose_camera, chosen_camera
from renderer.raytracing.settings import Material


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


def test_a_view_is_recognized_as_the_camera_it_was_taken_from(tmp_path):
    """Scenes that store a view instead of a camera's number; 1 % of the distance to the target is another view."""
    maker = Maker()
    maker.node(mesh=square(maker))
    lens = {"type": "perspective", "perspective": {"yfov": 0.8, "znear": 0.1}}
    for x in (0.0, 2.0):
        maker.node(camera=maker.add("cameras", lens), translation=[x, 0.5, 4.0])
    path = tmp_path / "two.glb"
    path.write_bytes(maker.glb())
    opened = open_file(path)
    for number in (0, 1):
        scene = choose_camera(opened, 0, number, 0.0)
        (model,) = scene.settings.models
        scene = replace(scene, settings=replace(scene.settings, models=(replace(model, camera=-1),)))
        assert chosen_camera(scene, 0) == number
        view = scene.settings.view
        moved = tuple(np.add(view.position, (0.01 * math.dist(view.position, view.target), 0, 0)))
        elsewhere = replace(scene, settings=replace(scene.settings, view=replace(view, position=moved)))
        assert chosen_camera(elsewhere, 0) == -1


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
