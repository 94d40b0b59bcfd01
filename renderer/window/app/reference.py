"""A window with the reference: every setting of the active panel, from its declaration, and pages on C$.

The text on settings comes from the dataclasses. The pages on C$, materials and variations are files of
assets/reference, which are generated from the code.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache, partial
from typing import NamedTuple, get_args

from renderer.paths import ASSETS
from renderer.scene.schema import field_types
from renderer.system.files import read_text, read_toml
from renderer.window.controls import imgui, imgui_ctx, theme
from renderer.window.controls.settings import field_help
from renderer.window.state.app_state import AppState

PAGES: dict[str, str] = read_toml(ASSETS / "tables" / "menus.toml")["reference"]  # file of assets/reference by title
MAX_LINES = 3000  # shown of a page


class Line(NamedTuple):
    """A line of the reference: a heading, or a term with its explanation."""

    term: str
    text: str
    is_heading: bool = False


def setting_lines(settings_class: type) -> list[Line]:
    """The settings of a class and of the tables inside, with their help."""
    return list(_lines(settings_class, "", set()))


def _lines(kind: type, path: str, seen: set[type]) -> Iterator[Line]:
    """Yields the settings of a dataclass, then the settings of the tables inside, each class once."""
    if kind in seen:
        return
    seen.add(kind)
    doc = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    # A dataclass without a docstring has its signature as one.
    yield Line(path or "settings", "" if doc.startswith(f"{kind.__name__}(") else doc, True)
    inner: list[tuple[str, type]] = []
    for f in fields(kind):
        hint = field_types(kind)[f.name]
        yield Line(f.name, field_help(f, hint).replace("\n", "; "))
        inner += [(f"{path}.{f.name}".lstrip("."), table) for table in _tables(hint)]
    for name, table in inner:
        yield from _lines(table, name, seen)


def _tables(hint: object) -> Iterator[type]:
    """The dataclasses in a type: the type itself, or the items of a list or of an option."""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for inner in get_args(hint):
        if not isinstance(inner, (str, int, float, type(None))):  # a value of a Literal
            yield from _tables(inner)


@cache
def page_lines(file: str) -> list[Line]:
    """The lines of a page of assets/reference."""
    out: list[Line] = []
    for line in read_text(ASSETS / "reference" / file).split("\n")[:MAX_LINES]:
        if line.startswith("#"):
            out.append(Line(line.lstrip("# "), "", True))
        elif line.startswith("|"):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not all(set(cell) <= set("-: ") for cell in cells):
                out.append(Line(_plain(cells[0]), _plain("   ".join(cells[1:]))))
        elif line.strip() and not line.startswith("<!--"):
            out.append(Line("", _plain(line)))
    return out


def _plain(text: str) -> str:
    return text.replace("`", "").replace("**", "")


class Reference:
    """The window of the reference."""

    def __init__(self, app: AppState, fonts: theme.Fonts, scale: float):
        self.app, self.fonts, self.scale = app, fonts, scale
        self._filter = ""

    def draw(self, width: float, height: float) -> None:
        """Draws over a window of width x height units, while it is open."""
        if not self.app.overlays.reference.is_on:
            return
        size = min(width * 0.94, 860 * self.scale), height * 0.88
        flags = imgui.WindowFlags_.no_move | imgui.WindowFlags_.no_resize
        self.app.overlays.reference.is_on = theme.begin_dialog("Reference", size, size, flags)
        imgui.set_next_item_width(-1)
        self._filter = imgui.input_text_with_hint("##filter", "find", self._filter)[1]
        if imgui.begin_tab_bar("pages"):
            settings_class = type(self.app.panel.scene.settings)
            self._tab(f"Settings of {self.app.panel.scene.picture}###settings", lambda: setting_lines(settings_class))
            for title, file in PAGES.items():
                self._tab(title, partial(page_lines, file))
            imgui.end_tab_bar()
        imgui.end()

    def _tab(self, title: str, lines: Callable[[], list[Line]]) -> None:
        """A tab of the lines that contain all words of the filter; lines() is called while the tab is open."""
        # `page` is the title of a tab that the palette of commands (palette.py) asks for, once.
        is_asked, no_flags = title == self.app.overlays.page, imgui.TabItemFlags_.none
        if not imgui.begin_tab_item(title, None, imgui.TabItemFlags_.set_selected if is_asked else no_flags)[0]:
            return
        self.app.overlays.page = "" if is_asked else self.app.overlays.page
        with imgui_ctx.begin_child("page"):
            words = self._filter.lower().split()
            left = min(220 * self.scale, imgui.get_content_region_avail().x * 0.4)
            for line in lines():
                matches = all(word in f"{line.term} {line.text}".lower() for word in words)
                if matches and (not line.is_heading or not words):
                    self._line(line, left)
        imgui.end_tab_item()

    def _line(self, line: Line, left: float) -> None:
        """A heading, a term with its text, or a text alone."""
        if line.is_heading:
            imgui.spacing()
            theme.text_in(self.fonts.bold, line.term, theme.ACCENT)
            if line.text:
                imgui.text_wrapped(line.text)
            return
        if not line.term:
            imgui.text_wrapped(line.text)
            return
        imgui.text(line.term)
        if line.text:
            imgui.same_line(max(left, imgui.calc_text_size(line.term).x + 16 * self.scale))
            with imgui_ctx.push_style_color(imgui.Col_.text, theme.DIM), imgui_ctx.push_text_wrap_pos(0.0):
                imgui.text_unformatted(line.text)
