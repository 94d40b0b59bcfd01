"""Labels of settings are whole beside their controls; texts are legible on every color that they are drawn on."""

from types import SimpleNamespace

import pytest

from renderer.paths import SCENES
from renderer.pictures import load
from renderer.window.controls import settings as controls
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui
from renderer.window.document.items import Item
from tests.window.headless import frames, point, press, window
from tests.window.monkey import noop_device


@pytest.fixture
def spans(monkeypatch):
    """Where each label ends and its control begins, in pixels, as they are drawn; all rows are, with `maps` open."""
    drawn, begin, opened = [], controls._begin_control, imgui.tree_node_ex

    def measured(*column: float) -> float:
        end = imgui.get_item_rect_max().x
        reset = begin(*column)
        drawn.append((end, imgui.get_cursor_screen_pos().x))
        return reset

    monkeypatch.setattr(controls, "_begin_control", measured)
    monkeypatch.setattr(controls, "_draws_all", lambda: True)
    monkeypatch.setattr(
        imgui, "tree_node_ex", lambda *fold: (imgui.set_next_item_open(fold[0] == "maps"), opened(*fold))[1]
    )
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


def luminance(color) -> float:
    """Relative luminance of sRGB, by WCAG 2.2."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a, b) -> float:
    """Contrast ratio by WCAG 2.2, 1 to 21."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def over_white(color):
    return [c * color[3] + 1 - color[3] for c in color[:3]]


FIELDS = [f"{name}{state}" for name in ("frame_bg", "button", "header") for state in ("", "_hovered", "_active")]
GROUNDS = [theme.COLORS[name] for name in ("window_bg", "popup_bg", "title_bg", "title_bg_active", "table_header_bg")]
GROUNDS.append(over_white(theme.PLATE))


def test_texts_have_a_contrast_of_four_and_a_half():
    """WCAG's AA for text of this size. Selected rows, which have the active button's color, write in TEXT alone."""
    fields = [theme.COLORS[name] for name in FIELDS]
    selected = [theme.COLORS[name] for name in ("slider_grab", "slider_grab_active", "text_selected_bg")]
    for ground in (*GROUNDS, *fields, *selected):
        assert contrast(theme.TEXT, ground) >= 4.5, ground
    for ground in (*GROUNDS, *(theme.COLORS[name] for name in FIELDS if name != "button_active")):
        assert contrast(theme.DIM, ground) >= 4.5, ground
    for ground in (*GROUNDS, theme.COLORS["frame_bg"]):
        assert contrast(theme.ACCENT, ground) >= 4.5 and contrast(theme.WARNING, ground) >= 4.5, ground


def test_states_of_controls_differ_in_luminance():
    for name in ("frame_bg", "button", "header"):
        rest, hovered, active = (theme.COLORS[f"{name}{state}"] for state in ("", "_hovered", "_active"))
        assert min(contrast(rest, hovered), contrast(hovered, active)) >= 1.18, name
    assert contrast(theme.COLORS["window_bg"], theme.COLORS["button"]) >= 1.3


def test_a_cut_text_fits_and_says_so(screen):
    room = imgui.calc_text_size("Mandelbrot: the seahorse").x
    cut = theme.cut("Mandelbrot: the seahorse valley", room)
    assert cut.endswith("…") and cut[:-1] == "Mandelbrot: the seahorse"[: len(cut) - 1]
    assert imgui.calc_text_size(cut).x <= room < imgui.calc_text_size("Mandelbrot: the seahorse v").x
    assert theme.cut("Mandelbrot", room) == "Mandelbrot" and theme.cut("Mandelbrot", 1.0) == ""


def test_a_hint_lies_beside_the_controls_and_ends_at_a_key(screen, monkeypatch):
    """It covered the next rows of the controls; a key left the last one over what it had changed."""
    tooltip, end, middles, ends = controls._tooltip, imgui.end_tooltip, [], []

    def placed(f, kind):
        (left, top), (right, bottom) = imgui.get_item_rect_min(), imgui.get_item_rect_max()
        middles.append(((left + right) / 2, (top + bottom) / 2))
        tooltip(f, kind)

    def ended():
        ends.append(imgui.get_window_pos().x + imgui.get_window_width())
        end()

    monkeypatch.setattr(controls, "_tooltip", placed)
    monkeypatch.setattr(imgui, "end_tooltip", ended)

    def wait():
        """A second in 10 frames, of which Dear ImGui takes the times."""
        for _ in range(10):
            screen.app.now.seconds += 0.1
            frames(screen, 1)

    frames(screen)
    point(screen, *middles[0])
    wait()
    assert ends and ends[-1] <= screen.app.panels.area[0] + screen.app.panels.area[2]
    press(screen, "E")
    ends.clear()
    wait()
    assert not ends
