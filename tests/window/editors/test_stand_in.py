"""Stand-ins: shapes over the last picture, until a picture shows them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.pictures import load
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
    found = SimpleNamespace(triangles=[], circles=[])
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


def test_a_solid_is_its_triangles_the_farthest_first(settings, drawn):
    stand_in.draw(settings, without(settings, "solids"), RECT)
    assert len(drawn.triangles) == 12 and not drawn.circles
    points = np.array([row[:3] for row in drawn.triangles])
    assert np.ptp(points[:4, :, 0]) <= np.ptp(points[-4:, :, 0])  # the face behind looks smaller than the one in front


def test_shapes_are_drawn_until_the_picture_shows_them(settings, drawn):
    stand_in.draw(settings, None, RECT)
    assert len(drawn.circles) == 2 and len(drawn.triangles) == 12
    stand_in.draw(settings, replace(settings, samples=7), RECT)
    assert len(drawn.circles) == 2 and len(drawn.triangles) == 12, "nothing else is drawn over a picture of them all"
    blue = replace(settings, materials=(replace(settings.materials[0], color=(0.0, 0.0, 1.0)),))
    stand_in.draw(blue, settings, RECT)
    assert len(drawn.circles) == 4 and drawn.circles[-1][2] == (0.0, 0.0, 1.0, 1.0)


def test_a_named_shape_is_drawn_by_its_instances_alone(settings, drawn):
    named = replace(settings, spheres=(replace(settings.spheres[0], name="ball"),))
    assert not stand_in.is_unseen(named, Item("spheres", 0), None)
    assert not stand_in.is_unseen(settings, Item("materials", 0), None)
