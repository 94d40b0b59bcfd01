"""Labels of settings are whole beside their controls, also those of a material's maps in a narrow window."""

from types import SimpleNamespace

import pytest

from renderer.paths import SCENES
from renderer.pictures import load
from renderer.window.controls import settings as controls
from renderer.window.controls.toolkit import imgui
from renderer.window.document.items import Item
from tests.window.headless import frames, window
from tests.window.monkey import noop_device


@pytest.fixture
def spans(monkeypatch):
    """Where each label ends and its control begins, in pixels, as they are drawn; all rows are, with `maps` open."""
    drawn, begin, opened = [], controls._begin_control, imgui.tree_node

    def measured(*column: float) -> float:
        end = imgui.get_item_rect_max().x
        reset = begin(*column)
        drawn.append((end, imgui.get_cursor_screen_pos().x))
        return reset

    monkeypatch.setattr(controls, "_begin_control", measured)
    monkeypatch.setattr(controls, "_draws_all", lambda: True)
    monkeypatch.setattr(imgui, "tree_node", lambda label: (imgui.set_next_item_open(label == "maps"), opened(label))[1])
    return drawn


def test_no_label_of_a_material_runs_under_its_control(gl, spans):
    with window([load(SCENES / "mirrors.toml")], SimpleNamespace(device=noop_device()), gl, (1280, 800)) as screen:
        screen.app.panel.selection = Item("materials", 0)
        frames(screen, 3)
        spans.clear()
        frames(screen, 1)
    assert len(spans) > 30
    assert not [span for span in spans if span[0] > span[1]]


def test_the_label_of_a_map_leaves_out_texture():
    names = ["diffuse_transmission_color_texture", "textures", "roughness"]
    assert [controls._label_of(name) for name in names] == ["diffuse transmission color", "textures", "roughness"]
