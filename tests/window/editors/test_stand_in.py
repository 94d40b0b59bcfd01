"""Stand-ins: shapes over the last picture, until a picture shows them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.pictures import load
from renderer.raytracing.settings import Quad
from renderer.window.document.items import Item
from renderer.window.scene_editor import stand_in

SCENE = """picture = "raytrace"
[settings.view]
position = [0.0, 0.0, 5.0]
fov_degrees = 90.0
[[settings.materials]]
name = "red"
color = [1.0, 0.0, 0.0]
[[settings.spheres]]
center = [1.0, 0.0, 0.0]
radius = 0.5
material = "red"
[[settings.solids]]
kind = "box"
material = "red"
[[settings.distance_fields]]
kind = "mandelbulb"
material = "red"
"""
RECT = (10.0, 20.0, 200.0, 200.0)


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "scene.toml").write_text(SCENE)
    return load(tmp_path / "scene.toml").settings


@pytest.fixture
def drawn(monkeypatch):
    """The triangles and circles that are drawn."""
    found = SimpleNamespace(triangles=[], circles=[], push_draw_flag=lambda *_: None, pop_draw_flag=lambda: None)
    found.add_triangle_filled = lambda *row: found.triangles.append(row)
    found.add_circle_filled = lambda *row: found.circles.append(row)
    monkeypatch.setattr(stand_in.imgui, "get_window_draw_list", lambda: found)
    monkeypatch.setattr(stand_in.theme, "color_u32", lambda color: color)  # Dear ImGui's needs a window
    return found


def without(settings, group):
    """The settings of a picture without the items of a group."""
    return replace(settings, **{group: ()})


def test_a_sphere_is_a_circle_where_it_is_seen(settings, drawn):
    stand_in.draw(settings, without(settings, "spheres"), RECT)
    [(center, radius, color)] = drawn.circles
    # At distance 5 with 90 degrees, 100 of the 200 pixels' half height are 5 units: 20 pixels a unit.
    np.testing.assert_allclose([*center, radius], [130.0, 120.0, 10.0], atol=1e-4)
    assert not drawn.triangles and color == (1.0, 0.0, 0.0, 1.0)


def test_a_solid_is_its_front_faces(settings, drawn):
    """The box of side 1 about the origin shows one face to a camera on its axis, 4.5 units before it."""
    stand_in.draw(settings, without(settings, "solids"), RECT)
    assert len(drawn.triangles) == 2 and not drawn.circles
    points = np.array([row[:3] for row in drawn.triangles])
    np.testing.assert_allclose([np.ptp(points[..., 0]), np.ptp(points[..., 1])], 100 / 4.5, rtol=1e-4)


def test_shapes_are_drawn_until_the_picture_shows_them(settings, drawn):
    stand_in.draw(settings, None, RECT)
    assert len(drawn.circles) == 2 and len(drawn.triangles) == 2
    stand_in.draw(settings, replace(settings, samples=7), RECT)
    assert len(drawn.circles) == 2 and len(drawn.triangles) == 2, "nothing else is drawn over a picture of them all"
    blue = replace(settings, materials=(replace(settings.materials[0], color=(0.0, 0.0, 1.0)),))
    stand_in.draw(blue, settings, RECT)
    assert len(drawn.circles) == 4 and drawn.circles[-1][2] == (0.0, 0.0, 1.0, 1.0)


def test_a_named_shape_is_drawn_by_its_instances_alone(settings, drawn):
    named = replace(settings, spheres=(replace(settings.spheres[0], name="ball"),))
    assert not stand_in.is_unseen(named, Item("spheres", 0), None)
    assert not stand_in.is_unseen(settings, Item("materials", 0), None)


def test_a_ground_that_reaches_behind_the_camera_fills_all_below_the_horizon(settings, drawn):
    ground = Quad("red", ((-500, -1, -500), (-500, -1, 500), (500, -1, 500), (500, -1, -500)))
    scene = replace(settings, quads=(ground,))
    stand_in.draw(scene, replace(settings, quads=()), RECT)
    inside = np.zeros((200, 200), bool)
    y, x = np.mgrid[:200, :200] + 0.5
    for first, second, third, _ in drawn.triangles:
        a, b, c = (np.array(corner) - RECT[:2] for corner in (first, second, third))
        sides = [(q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0]) for p, q in ((a, b), (b, c), (c, a))]
        inside |= np.all([side >= 0 for side in sides], 0) | np.all([side <= 0 for side in sides], 0)
    assert inside[105:].all() and not inside[:95].any()


def test_what_stands_on_a_ground_is_drawn_after_it(settings, drawn):
    ground = Quad("red", ((-50, -0.5, -50), (-50, -0.5, 2), (50, -0.5, 2), (50, -0.5, -50)))
    stand_in.draw(replace(settings, quads=(ground,)), None, RECT)
    sizes = [np.ptp(np.array(row[:3]), axis=0).max() for row in drawn.triangles]
    assert max(sizes[-2:]) < min(sizes[:-2]), "the front face of the box comes last"
