"""Faults that an artist met in a day at the window, each mended: words, brackets, Escape, times, names, tooltips."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.paths import SCENES
from renderer.pictures import load, toy
from renderer.system import drafts
from renderer.window.controls import theme
from renderer.window.controls.settings import field_help
from renderer.window.controls.toolkit import imgui
from renderer.window.document.items import Item
from renderer.window.panels.measurements import Row
from renderer.window.panels.panel_view import BAR_HEIGHT, _statistics
from renderer.window.panels.row_tiles import RowTiles
from renderer.window.state import open_files, panel_actions
from renderer.window.state import session as session_files
from tests.window.headless import finish, frames, hold, point, press, seconds, settle, window
from tests.window.helpers import FRACTAL, MOVING

CLOCK = "void mainImage(out vec4 color, in vec2 point) { color = vec4(vec3(fract(iTime)), 1.0); }\n"


@pytest.fixture
def opened(gl, tmp_path, monkeypatch):
    """Opens a window with a text as a file; no trial in a child process."""
    monkeypatch.setattr(toy, "_try_program", lambda settings: None)
    monkeypatch.chdir(tmp_path)
    managers = []

    def open_window(name: str, text: str, size=(900, 500)):
        (tmp_path / name).write_text(text)
        managers.append(window([load(tmp_path / name)], None, gl, size))
        return managers[-1].__enter__()

    yield open_window
    for manager in managers:
        manager.__exit__(None, None, None)
    drafts.texts.clear()


@pytest.fixture
def drawn(monkeypatch):
    """The rectangle of the last item of each label, (left, top, right, bottom), and the tooltips of a frame."""
    rects, tooltips = {}, []
    for name in ("button", "begin_combo", "begin_popup", "invisible_button", "begin_menu"):
        draw = getattr(imgui, name)

        def noted(label, *more, draw=draw, name=name):
            out = draw(label, *more)
            low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
            if name == "begin_popup":
                low = high = imgui.get_window_pos() if out else low
            if name != "begin_popup" or out:
                rects[label] = low.x, low.y, high.x, high.y
            return out

        monkeypatch.setattr(imgui, name, noted)
    monkeypatch.setattr(theme, "hint", tooltips.append)
    rects["tooltips"] = tooltips
    return rects


def click(screen, rect):
    point(screen, (rect[0] + rect[2]) / 2, (rect[1] + rect[3]) / 2)
    hold(screen, 0, True)
    hold(screen, 0, False)
    frames(screen, 2)


def test_a_refused_material_kind_is_a_sentence(gl, gpu, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with window([load(SCENES / "mirrors.toml")], gpu, gl, (300, 200)) as screen:
        screen.frame()
        app, main_window = screen.app, screen.ui.main_window
        app.panel.selection = Item("materials", 0)
        before = app.panel.scene
        value = replace(before.settings.materials[0], kind="shadow_catcher")
        editor = main_window.panel_editor(app.panel)
        main_window.edit(app.panel, lambda editor: editor.put_values({Item("materials", 0): value}))
        assert "is a shadow_catcher; allowed are quads" in app.message and "internal" not in app.message
        assert app.panel.scene == before and main_window.panel_editor(app.panel) is editor


def test_a_typed_closing_bracket_is_not_doubled(opened):
    screen = opened("clock.glsl", CLOCK)
    press(screen, "Ctrl+J")
    frames(screen, 3)
    code = screen.ui.main_window.overlays.code
    code.editor.set_focus()
    frames(screen, 2)
    for letter in "(a)[1]{}":
        imgui.get_io().add_input_characters_utf8(letter)
        frames(screen)
    assert code.editor.get_text() == "(a)[1]{}" + CLOCK


def test_brackets_of_a_marked_text_are_not_red_upon_red(opened):
    screen = opened("clock.glsl", CLOCK)
    screen.app.panel.paused = True
    finish(screen)
    code = screen.ui.main_window.overlays.code
    press(screen, "Ctrl+J")
    for text, is_colored in ((CLOCK.replace("iTime)", "iTime))"), False), (CLOCK, True)):
        code.editor.set_text(text)
        seconds(screen, 0.4)
        finish(screen)
        frames(screen)
        assert code.editor.has_markers() != is_colored and code.editor.is_showing_matching_brackets() == is_colored


def test_escape_closes_an_open_list_first(screen, drawn):
    finish(screen)
    app = screen.app
    app.overlays.inspector.is_on = True
    click(screen, drawn["##preset"])
    assert imgui.is_popup_open("", imgui.PopupFlags_.any_popup)
    press(screen, "Escape")
    assert not imgui.is_popup_open("", imgui.PopupFlags_.any_popup) and app.overlays.inspector
    press(screen, "Escape")
    assert not app.overlays.inspector


def test_escape_closes_the_list_of_the_code_panel_not_the_panel(screen, drawn):
    finish(screen)
    press(screen, "Ctrl+J")
    frames(screen, 3)
    click(screen, drawn["##file"])
    press(screen, "Escape")
    assert screen.app.overlays.code and not imgui.is_popup_open("", imgui.PopupFlags_.any_popup)
    press(screen, "Ctrl+J")


def test_a_picture_in_tiles_shows_one_time(opened, monkeypatch):
    monkeypatch.setattr(RowTiles, "tile_count", lambda *words: 3)
    screen = opened("clock.glsl", CLOCK, (500, 300))
    shown = set()
    for _ in range(30):
        frames(screen, 1)
        settle(screen.app)
        texture = screen.app.panel.display.texture
        if texture is not None and not screen.app.panel.draw_loop._is_partial:
            column = texture.read()[:, 0, 0]
            assert (column == column[0]).all()
            shown.add(int(column[0]))
        assert not (screen.app.panel.draw_loop._is_partial and screen.app.panel.is_playing)
    assert len(shown) > 3


def test_a_duplicate_is_paused_as_its_source_at_its_time(opened, gl):
    screen = opened("moving.toml", FRACTAL.format(title="moving") + MOVING)
    app = screen.app
    app.panel.scrub(0.5)
    press(screen, "Ctrl+D")
    assert len(app.panels) == 2 and app.panel.paused and app.panel.scene_time == 0.5
    app.panel.scrub(0.0)
    press(screen, "Ctrl+D")
    assert app.panel.paused and app.panel.scene_time == 0.0
    seconds(screen, 0.2)
    assert app.panel.scene_time == 0.0
    app.panel.paused = False
    press(screen, "Ctrl+D")
    assert not app.panel.paused and app.panel.in_step_with is None and app.panel.scene_time == app.panels[2].scene_time
    app.panel.in_step_with, app.panel.scene_time = app.panels[2], 1.5  # as after a wait for a compiler
    seconds(screen, 0.2)
    assert app.panel.scene_time == app.panels[2].scene_time > 0


def test_a_paused_scene_is_opened_again_paused(opened, tmp_path):
    screen = opened("moving.toml", FRACTAL.format(title="moving") + MOVING)
    app = screen.app
    app.panel.scrub(0.0)
    open_files.open_path(app, tmp_path / "moving.toml")
    assert app.panel.paused
    session_files.save(app.session(), tmp_path / "session.json")
    restored = session_files.restore(tmp_path / "session.json")
    assert restored.panels[0].paused and restored.scenes[0].time == 0.0
    app.panel.paused = False
    app.replace_panels(restored)
    assert app.panel.paused and app.panel.scene_time == 0.0


def test_panels_of_one_title_have_two_names(screen):
    finish(screen)
    app = screen.app
    press(screen, "Ctrl+D")
    assert [app.panels.title(panel) for panel in app.panels] == ["first", "second", "first (2)"]
    app.panels.active = 1
    labels = set()
    for _ in range(2):
        panel_actions.compare_with_next(app)
        labels.add(app.panel.comparison.label)
        assert f"reference: {app.panel.comparison.label}" in app.message
    assert labels == {"first", "first (2)"}


def test_a_menu_opens_under_its_button(screen, drawn):
    finish(screen)
    left, _, _, bottom = drawn["File"]
    click(screen, drawn["File"])
    x, y = drawn["File menu"][:2]
    assert (x, y) == (left, bottom)
    press(screen, "Escape")
    assert not imgui.is_popup_open("", imgui.PopupFlags_.any_popup)


def test_rows_of_tracks_lie_below_the_timeline(opened, drawn):
    screen = opened("moving.toml", FRACTAL.format(title="moving") + MOVING, (1400, 700))
    screen.app.overlays.tracks.is_on = True
    frames(screen, 3)
    (left, _, right, _), row = drawn["time"], drawn["row"]
    assert row[0] == pytest.approx(left - 5, abs=1) and row[2] == pytest.approx(right + 5, abs=1)


def test_messages_and_cards_lie_over_the_pictures_alone(screen, monkeypatch):
    finish(screen)
    press(screen, "Ctrl+J")
    screen.app.overlays.tracks.is_on = screen.app.overlays.timeline.is_on = True
    frames(screen, 3)
    left, top, width, height = screen.app.panels.area
    overlays, corners, boxes = screen.ui.main_window.overlays, [], []
    begin = theme.begin_card
    monkeypatch.setattr(theme, "begin_card", lambda *words: (corners.append(words[3]), begin(*words)))
    screen.app.overlays.tour_step = 0
    monkeypatch.setattr(overlays, "_message", lambda *words: boxes.append(words))
    frames(screen, 2)
    assert (
        corners[0][0] <= left + width < screen.ui.main_window.app.panels.area[2] * 2 and corners[0][1] <= top + height
    )
    assert boxes[0][:3] == (left + width / 2, top + BAR_HEIGHT * screen.ui.main_window.overlays.scale, width)
    press(screen, "Ctrl+J")


def test_tooltips_say_what_buttons_do(screen, drawn):
    finish(screen)
    drawn["tooltips"].clear()
    screen.app.overlays.timeline.is_on = True
    frames(screen, 2)
    texts = drawn["tooltips"]
    assert "P: previous scene" in texts and "Space: pause or resume" in texts
    assert all(" " in text for text in texts), [text for text in texts if " " not in text]


def test_a_range_is_said_once(opened):
    screen = opened("clock.glsl", "uniform float level = 0.5; // 0 to 1\n" + CLOCK.replace("iTime", "level"))
    settings = screen.app.panel.scene.settings
    assert field_help(type(settings).__dataclass_fields__["level"], float) == "0 to 1"


def test_the_pixel_inspector_reads_both_pictures_of_a_comparison(screen, monkeypatch):
    finish(screen)
    app, lines = screen.app, []
    press(screen, "Shift+S")
    app.panel.comparison.mode = "difference"
    app.overlays.inspector.is_on = True
    text = imgui.text
    monkeypatch.setattr(imgui, "text", lambda line: (lines.append(line), text(line)))
    x, y, width, height = app.panels.shown[0].image_rect
    point(screen, x + width / 2, y + height / 2)
    shown = app.panels[1].display.texture
    pixel = np.asarray(shown.read_region(shown.size[0] // 2, shown.size[1] // 2, 1, 1))[0, 0]
    assert f"second: sRGB {' '.join(map(str, pixel))}" in lines
    heading_and_row = "  " + f"{'linear':>12} {'sRGB':>6}", next(line for line in lines if line.startswith("R "))
    assert len(heading_and_row[0]) == len(heading_and_row[1])


def test_every_font_has_cyrillic_and_the_fonts_of_the_system(screen, monkeypatch):
    fonts = screen.ui.main_window.fonts
    for font in (fonts.text, fonts.bold, fonts.numbers):
        assert all(font.is_glyph_in_font(ord(letter)) for letter in "aЖя")
    assert not fonts.numbers.is_glyph_in_font(ord("𓀀"))
    dejavu = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")  # stands for a font of the system
    if not dejavu.is_file():
        pytest.skip("needs a font of the system: apt install fonts-dejavu-core")
    assert not fonts.text.is_glyph_in_font(ord("ⴰ"))
    monkeypatch.setattr(theme, "FALLBACKS", (*theme.FALLBACKS, dejavu))
    assert theme.Fonts().numbers.is_glyph_in_font(ord("ⴰ"))


def test_a_narrow_timeline_has_all_its_controls(opened, drawn):
    screen = opened("moving.toml", FRACTAL.format(title="moving") + MOVING, (1024, 640))
    drawn["tooltips"].clear()
    frames(screen, 2)
    texts = drawn["tooltips"]
    for start in ("duration: ", "easing: ", "values go on from the last key frame"):
        assert any(text.startswith(start) for text in texts)
    assert view_bottom(screen) <= 640


def view_bottom(screen) -> float:
    """The lowest edge of the timeline's items."""
    left, top, width, height = screen.app.panels.area
    window_of_it = imgui.internal.find_window_by_name("the timeline")
    assert window_of_it.content_size.y <= window_of_it.size.y
    return window_of_it.pos.y + window_of_it.size.y


def test_the_status_bar_begins_with_what_is_drawn():
    measured = SimpleNamespace(rows=[Row("bad_values", "bad values", "0", None),
                               Row("passes", "passes", "1", None),
                               Row("active", "active", "9  0  0  0", np.zeros(4))])  # fmt: skip
    panel = SimpleNamespace(measured=measured, work=SimpleNamespace(is_waiting=False))
    assert _statistics(panel) == ["active 9  0", "passes 1"]
