"""The open panels of a window: the active one, their layout, and the rectangle of each in this frame.

AppState holds them; MainWindow calls lay_out() at the start of each frame.

Layouts are trees (layout.py). `layout` is the user's arrangement, None for a grid; current_layout() is that layout, or
the grid. `displayed_layout` is this frame's: a single leaf while a panel is maximized. Indices are positions in the
list of panels.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from renderer.window.controls import theme
from renderer.window.controls.theme import Rect
from renderer.window.panels.panel import Panel
from renderer.window.state import layout
from renderer.window.state.layout import LayoutNode
from renderer.window.state.overlay_state import Switch

GAP = 4  # window units between panels
BALL_SIZE = 128  # window units: side of the material ball's picture


class DisplayedPanel(NamedTuple):
    """A panel that this frame displays, in window units."""

    panel: Panel
    rect: Rect
    image_rect: Rect  # the rectangle of the picture, between the title bar and the status bar


class OpenPanels(Sequence[Panel]):
    """The open panels; keys and controls act on the panel with the index `active`."""

    def __init__(self, panels: Iterable[Panel], active: int, columns: int, tree: LayoutNode | None, maximized: bool):
        self._panels = list(panels)
        self.active = active
        self.columns = columns  # columns of the grid; 0 is automatic
        self.layout = tree  # as the user arranged the panels; None is a grid
        self.maximized = Switch(maximized)  # only the active panel is displayed
        self.ball: Panel | None = None  # the material in the controls: drawn like a panel, never displayed as one
        self.area: Rect = (0, 0, 1, 1)  # the rectangle of the window that the panels fill
        self.displayed_layout: LayoutNode = 0  # set by lay_out(): a Split, or the index of the only displayed panel
        self.shown: list[DisplayedPanel] = []  # displayed in this frame, even if an action closes some

    @overload
    def __getitem__(self, index: int) -> Panel: ...

    @overload
    def __getitem__(self, index: slice) -> list[Panel]: ...

    def __getitem__(self, index: int | slice) -> Panel | list[Panel]:
        return self._panels[index]

    def __len__(self) -> int:
        return len(self._panels)

    def __iter__(self) -> Iterator[Panel]:
        return iter(self._panels)

    def title(self, panel: Panel) -> str:
        """The title of a panel's scene, numbered from the second open panel of that title on: "mirrors (2)"."""
        same = [other for other in self._panels if other.scene.title == panel.scene.title]
        number = same.index(panel) + 1 if panel in same else 1
        return f"{panel.scene.title} ({number})" if number > 1 else panel.scene.title

    # Which panels are open

    def replace(self, panels: Sequence[Panel], active: int, arranged: LayoutNode | None) -> None:
        """Opens these panels instead."""
        self._panels, self.layout = list(panels), arranged
        self.active = min(active, len(panels) - 1)

    def insert_beside_active(self, panel: Panel) -> None:
        """Opens a panel beside the active one, along the longer side of its rectangle, and makes it the active one."""
        self._panels.append(panel)
        if self.layout is not None:
            _, _, width, height = layout.rectangles(self.layout, self.area, GAP)[self.active]
            side = "right" if width > height else "below"
            self.layout = layout.insert(self.layout, len(self) - 1, self.active, side)
        self.active = len(self) - 1

    def select_next(self, direction: int) -> None:
        """Makes the next (1) or the previous (-1) panel the active one."""
        self.active = (self.active + direction) % len(self)

    # Rectangles

    def lay_out(self, left: int, top: int, width: int, height: int, bar_height: int) -> None:
        """Computes the rectangles of the displayed panels in this area of the window.

        A panel has a title bar and a status bar of `bar_height` only if its picture stays higher than both together,
        and if it is wide enough for the text of a bar.
        """
        self.area = left, top, max(width, 1), max(height, 1)
        self.displayed_layout = self.active if self.maximized else self.current_layout()
        rects = layout.rectangles(self.displayed_layout, self.area, GAP)
        self.shown = []
        for index, rect in sorted(rects.items()):
            x, y, w, h = rect
            bar = bar_height if h > 4 * bar_height and w > 6 * bar_height else 0
            image, size = (x, y + bar, w, h - 2 * bar), self[index].fixed_size
            image = image if size is None else theme.fitted(image, size)
            self.shown.append(DisplayedPanel(self[index], rect, image))

    def displayed_and_open(self) -> list[DisplayedPanel]:
        """The displayed panels that no action of this frame has closed."""
        return [shown for shown in self.shown if shown.panel in self._panels]

    def with_material_ball(self) -> list[Panel]:
        """The open panels and, once a material was shown, the panel of the material ball."""
        return [*self._panels] if self.ball is None else [*self._panels, self.ball]

    def image_sizes(self) -> list[tuple[Panel, tuple[int, int]]]:
        """The panels that draw in this frame, the material ball's too, and their pictures' sizes in window units."""
        sizes = [(panel, image_rect[2:]) for panel, _, image_rect in self.displayed_and_open()]
        return sizes if self.ball is None else [*sizes, (self.ball, (BALL_SIZE, BALL_SIZE))]

    @property
    def rects(self) -> list[Rect]:
        """The rectangles of the displayed panels."""
        return [shown.rect for shown in self.shown]

    def image_size(self, panel: Panel) -> tuple[int, int]:
        """The size of a panel's picture in window units; the area's size if the panel is not displayed."""
        return next((size for shown, size in self.image_sizes() if shown is panel), self.area[2:])

    def current_layout(self) -> LayoutNode:
        """The layout of all panels: the user's, or a grid."""
        return self.layout if self.layout is not None else layout.grid_layout(len(self), self.area[2:], self.columns)
