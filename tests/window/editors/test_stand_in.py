"""Stand-ins: the selected item over the last picture, until a picture shows it."""

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


def test_a_sphere_is_a_circle_where_it_is_seen(settings, drawn):
    stand_in.draw(settings, Item("spheres", 0), RECT)
    [(center, radius, color)] = drawn.circles
    # At distance 5 with 90 degrees, 100 of the 200 pixels' half height are 5 units: 20 pixels a unit.
    np.testing.assert_allclose([*center, radius], [130.0, 120.0, 10.0], atol=1e-4)
    assert not drawn.triangles and color == (1.0, 0.0, 0.0, 1.0)


def test_a_solid_is_its_triangles_the_farthest_first(settings, drawn):
    stand_in.draw(settings, Item("solids", 0), RECT)
    assert len(drawn.triangles) == 12 and not drawn.circles
    points = np.array([row[:3] for row in drawn.triangles])
    assert np.ptp(points[:4, :, 0]) <= np.ptp(points[-4:, :, 0])  # the face behind looks smaller than the one in front


def test_a_material_is_drawn_where_it_is_used(settings, drawn):
    stand_in.draw(settings, Item("materials", 0), RECT)
    assert len(drawn.circles) == 2 and len(drawn.triangles) == 12


def test_an_item_is_unseen_until_the_picture_has_it(settings):
    item = Item("spheres", 0)
    assert stand_in.is_unseen(settings, item, None) and not stand_in.is_unseen(settings, item, settings)
    assert stand_in.is_unseen(settings, item, replace(settings, spheres=()))
    blue = replace(settings.materials[0], color=(0.0, 0.0, 1.0))
    assert stand_in.is_unseen(replace(settings, materials=(blue,)), item, settings)
    assert not stand_in.is_unseen(replace(settings, samples=7), item, settings)
