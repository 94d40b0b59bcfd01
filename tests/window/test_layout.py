"""Panel layouts: docking by mouse and keyboard, splitters, and layouts in sessions."""

import json
from itertools import combinations

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.scene.panel_grid import grid
from renderer.window.state import layout
from renderer.window.state.layout import SIDES, Split
from renderer.window.state.session import restore, save
from tests.window.headless import center, drag, frames, hold, point, press, seconds


def random_layout(rng, count: int):
    """A random layout of `count` panels."""
    place = 0
    for index in range(1, count):
        place = layout.insert(place, index, int(rng.integers(index)), str(rng.choice(SIDES)))
    return place


def test_layouts_hold_every_panel_once_and_tile_the_window(rng):
    area, gap = (7, 5, 16_000_000, 12_000_000), 4  # so large that no part is rounded to nothing
    for _ in range(60):
        count = int(rng.integers(2, 9))
        place = random_layout(rng, count)
        for _ in range(4):
            one, other = (int(n) for n in rng.choice(count, 2, replace=False))
            side = str(rng.choice(SIDES))
            place = [layout.insert(place, one, other, side), layout.swap(place, one, other),
                     layout.dock(place, one, side)][int(rng.integers(3))]  # fmt: skip
            for splitter in layout.splitters(place, area, gap):
                place = layout.move_splitter(place, splitter, float(rng.normal(0, 0.2)))
        cells = layout.rectangles(place, area, gap)
        assert sorted(cells) == list(range(count)) == sorted(layout.panel_indices(place))
        boxes = [(x, y, x + width + gap, y + height + gap) for x, y, width, height in cells.values()]
        assert sum((right - left) * (bottom - top) for left, top, right, bottom in boxes) == 16_000_004 * 12_000_004
        assert not any(a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for a, b in combinations(boxes, 2))
        again = layout.layout_from_table(json.loads(json.dumps(layout.layout_to_table(place))), count)
        found = layout.rectangles(again, area, gap)
        assert all(np.abs(np.subtract(found[k], cells[k])).max() <= 2 for k in cells)
        left = layout.remove(place, int(rng.integers(count)))
        assert sorted(layout.panel_indices(left)) == list(range(count - 1))


def test_the_grid_layout_equals_the_grid_of_pictures(rng):
    for _ in range(40):
        count, columns = int(rng.integers(1, 17)), int(rng.integers(0, 6))
        size = tuple(int(n) for n in rng.integers(40, 2000, 2))
        cells = layout.rectangles(layout.grid_layout(count, size, columns), (0, 0, *size), 4)
        assert [cells[k] for k in range(count)] == grid(count, size, columns, 4)


def test_insert_and_dock_place_panels():
    two = Split(True, (0, 1), (0.5, 0.5))
    assert layout.insert(two, 0, 1, "right") == Split(True, (1, 0), (0.5, 0.5))
    assert layout.insert(two, 0, 1, "above") == Split(False, (0, 1), (0.5, 0.5))
    three = layout.insert(two, 2, 1, "below")
    assert three == Split(True, (0, Split(False, (1, 2), (0.5, 0.5))), (0.5, 0.5))
    assert layout.insert(three, 0, 0, "left") == three
    assert layout.dock(three, 2, "above").children[0] == 2 and not layout.dock(three, 2, "above").horizontal
    cells = layout.rectangles(three, (0, 0, 400, 300), 0)
    assert layout.nearest(cells, 0, "right") in (1, 2) and layout.nearest(cells, 0, "left") is None
    assert layout.nearest(cells, 2, "above") == 1
    assert layout.drop_side((0, 0, 100, 50), 5, 25) == "left" and layout.drop_side((0, 0, 100, 50), 50, 49) == "below"
    assert layout.drop_side((0, 0, 100, 50), 50, 25) == "middle"


@pytest.mark.parametrize(
    "table, words",
    [
        ({"horizontal": True, "children": [0, 0], "ratios": [0.5, 0.5]}, "each once"),
        ({"horizontal": True, "children": [0], "ratios": [1.0]}, "at least 2"),
        ({"horizontal": 1, "children": [0, 1], "ratios": [0.5, 0.5]}, "a panel's index, or a table"),
        ({"horizontal": True, "children": [0, 1], "ratios": [0.5, float("nan")]}, "ratios must be"),
        ("left", "a panel's index, or a table"),
    ],
)
def test_malformed_layouts_raise(screen, tmp_path, table, words):
    save(screen.app.session(), tmp_path / "session.json")
    kept = json.loads((tmp_path / "session.json").read_text())
    (tmp_path / "session.json").write_text(json.dumps(kept | {"layout": table}))
    with pytest.raises(InputError, match=f"layout: .*{words}"):
        restore(tmp_path / "session.json")
    nested = 0
    for _ in range(100):
        nested = {"horizontal": True, "children": [nested, 1], "ratios": [0.5, 0.5]}
    with pytest.raises(ValueError, match="a panel's index"):
        layout.layout_from_table(nested, 2)


def title(screen, index: int) -> tuple[float, float]:
    x, y, width, _ = screen.app.panels.rects[index]
    return x + width / 2, y + 8


def test_a_title_bar_is_dragged_to_move_its_panel(screen, tmp_path):
    app = screen.app
    first, second = app.panels.rects
    assert first[1] == second[1], "they stand context_with each other"
    x, y, width, height = second
    point(screen, *title(screen, 0))
    hold(screen, 0, True)
    point(screen, x + width / 2, y + height - 20)
    assert app.input.dragging_panel
    shown = screen.pixels()[y + height // 2 + 30 : y + height - 40, x + 30 : x + width - 30].astype(int).mean((0, 1))
    hold(screen, 0, False)
    assert not app.input.dragging_panel and app.panels.active == 0
    plain = screen.pixels()[y + height // 2 + 30 : y + height - 40, x + 30 : x + width - 30].astype(int).mean((0, 1))
    assert shown[2] > plain[2] + 10, "the drop preview is tinted"
    first, second = app.panels.rects
    assert first[0] == second[0] and first[1] > second[1] and first[2] > width, "below the other one"
    save(app.session(), tmp_path / "session.json")
    drag(screen, title(screen, 0), 0, -(first[1] - second[1]) + first[3] / 2)  # into the middle: they swap
    assert app.panels.rects[0][1] < app.panels.rects[1][1]
    press(screen, "Ctrl+G")
    assert app.panels.layout is None and app.panels.rects[0][1] == app.panels.rects[1][1]
    app.replace_panels(restore(tmp_path / "session.json"))
    frames(screen)
    assert app.panels.rects == [first, second]
    assert len(app.panels) == 2 and not any(panel.error for panel in app.panels)


def test_dragging_a_title_bar_can_be_canceled(screen):
    app = screen.app
    point(screen, *title(screen, 0))
    hold(screen, 0, True)
    point(screen, *title(screen, 1))
    assert app.input.dragging_panel
    press(screen, "Escape")
    point(screen, *(n + 30 for n in title(screen, 1)))
    assert not app.input.dragging_panel
    hold(screen, 0, False)
    assert app.panels.layout is None
    drag(screen, title(screen, 1), 300, 0)  # onto the controls
    assert app.panels.layout is None and app.panels.active == 1
    point(screen, *title(screen, 1))
    seconds(screen, 0.5)  # what follows is no double click with what was before
    for _ in range(2):
        hold(screen, 0, True)
        hold(screen, 0, False)
    assert app.panels.maximized
    drag(screen, title(screen, 0), -100, 100)
    assert app.panels.layout is None, "a maximized panel cannot be moved"


def test_a_splitter_is_dragged(screen):
    app = screen.app
    (x, y, width, height), second = app.panels.rects
    drag(screen, (x + width + 1, y + height / 2), 80, 0)
    assert app.panels.rects[0][2] == pytest.approx(width + 80, abs=1) and app.panels.rects[1][2] == pytest.approx(
        second[2] - 80, abs=1
    )
    layout_before = app.panels.layout
    drag(screen, center(screen, 1), -40, 0)
    assert app.panels.layout == layout_before, "the pointer has let go of the splitter"
    press(screen, "Ctrl+Z")
    drag(screen, (x + app.panels.rects[0][2] + 1, y + height / 2), 5000, 0)
    assert 10 < app.panels.rects[1][2] < 60, "every panel keeps its minimum"
    assert app.panels[0].scene.settings.view == app.panels[1].scene.settings.view, "no view changed"


def test_panels_are_arranged_by_keyboard(screen):
    app = screen.app
    press(screen, "Ctrl+Right")
    assert app.panels.rects[0][0] > app.panels.rects[1][0] and app.panels.active == 0
    press(screen, "Ctrl+Right")
    assert "no panel on that side" in app.message
    press(screen, "Ctrl+Shift+Down")
    assert app.panels.rects[0][1] > app.panels.rects[1][1] and app.panels.rects[0][2] == app.panels.rects[1][2]
    press(screen, "Ctrl+D")
    assert len(app.panels.rects) == 3 and app.panels.rects[2][1] == app.panels.rects[0][1] > app.panels.rects[1][1], (
        "context_with the active one"
    )
    press(screen, "1")
    press(screen, "Ctrl+W")
    assert len(app.panels.rects) == 2 and not app.panel.error
    press(screen, "Ctrl+G")
    assert app.panels.layout is None
    press(screen, "Ctrl+W")
    for keys in ("Ctrl+Up", "Ctrl+Shift+Left"):
        press(screen, keys)
    assert app.panels.layout is None and len(app.panels) == 1


def test_a_tiny_window_still_places_its_panels(screen):
    while len(screen.app.panels) < 6:
        press(screen, "Ctrl+D")
        press(screen, "Ctrl+Shift+Right")
    for size in ((1, 1), (40, 30), (900, 520)):
        screen.resize(size)
        frames(screen)
        assert all(width >= 1 and height >= 1 for _, _, width, height in screen.app.panels.rects)
