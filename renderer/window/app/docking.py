"""Docking: title bars drag panels, splitters (gaps between panels) resize them, and keys swap and dock them.

MainWindow calls drag_splitters(), title_bar() of each panel and drag_panel() in every frame, in this order. The tree of
panels is in state/layout.py, which also says why it is not Dear ImGui's docking.
"""

from renderer.window.controls import imgui, theme
from renderer.window.state import AppState, layout
from renderer.window.state.layout import LayoutNode, Splitter
from renderer.window.state.open_panels import GAP

HIT_MARGIN = 3  # window units, at scale 1, on each side of a gap in which a press also grabs its splitter


class Docking:
    """Invisible buttons over title bars and gaps, in the current Dear ImGui window."""

    def __init__(self, app: AppState, scale: float):
        self.app, self.scale = app, scale
        self._dragged: int | None = None  # index of the panel whose title bar is dragged
        # The layout at the press, and the splitter that the mouse drags. Mouse movement counts from the press, so each
        # frame moves the splitter in that layout, not in the layout of the last frame.
        self._grabbed: tuple[LayoutNode, Splitter] | None = None

    def drag_splitters(self) -> None:
        """Draws an invisible button over each gap, and moves the splitter whose button is dragged.

        Called before the panels are drawn: of overlapping items Dear ImGui prefers the first one, and the buttons
        reach HIT_MARGIN over the edges of the panels.
        """
        app, margin = self.app, int(HIT_MARGIN * self.scale)
        for number, splitter in enumerate(layout.splitters(app.panels.displayed_layout, app.panels.area, GAP)):
            x, y, width, height = splitter.rectangle
            dx, dy = (margin, 0) if splitter.horizontal else (0, margin)
            imgui.set_cursor_screen_pos((x - dx, y - dy))
            imgui.invisible_button(f"gap {number}", (max(width + 2 * dx, 1), max(height + 2 * dy, 1)))
            if imgui.is_item_hovered() or imgui.is_item_active():
                cursors = imgui.MouseCursor_
                imgui.set_mouse_cursor(cursors.resize_ew if splitter.horizontal else cursors.resize_ns)
            if imgui.is_item_activated():
                self._grabbed = app.panels.current_layout(), splitter
            if imgui.is_item_active() and self._grabbed:
                root, grabbed = self._grabbed
                delta = imgui.get_mouse_drag_delta(0, 0.0)
                if by := (delta.x if grabbed.horizontal else delta.y) / (grabbed.length + GAP):
                    app.panels.layout = layout.move_splitter(root, grabbed, by)

    def title_bar(self, index: int, rect: theme.Rect, image_rect: theme.Rect) -> None:
        """Draws an invisible button over the title bar of panel `index`, between the tops of the two rectangles.

        A click activates the panel, a double-click maximizes it, and a drag starts moving it (drag_panel()).
        """
        x, y, width, _ = rect
        bar_height = image_rect[1] - y
        if bar_height < 1:
            return
        imgui.set_cursor_screen_pos((x, y))
        imgui.invisible_button(f"title {index}", (width, bar_height))
        app = self.app
        if imgui.is_item_activated():
            app.panels.active = index
        if imgui.is_item_hovered() and imgui.is_mouse_double_clicked(0):
            app.panels.maximized.toggle()
        elif imgui.is_item_active() and imgui.is_mouse_dragging(0) and self._dragged is None:
            if not app.panels.maximized and len(app.panels) > 1:
                self._dragged, app.input.dragging_panel.is_on = index, True

    def drag_panel(self) -> None:
        """Previews the drop of the dragged panel, and moves it when the mouse button is released.

        Escape cancels: AppState.escape() turns `dragging_panel` off, so the drag shows and moves nothing until the
        release ends it.
        """
        app, dragged = self.app, self._dragged
        if dragged is None:
            return
        released = not imgui.is_mouse_down(0)
        if app.input.dragging_panel and dragged < len(app.panels) and not app.panels.maximized:
            imgui.set_mouse_cursor(imgui.MouseCursor_.resize_all)
            target, side = self._drop_target()
            if target is not None and target != dragged:
                self._preview(layout.drop_preview(app.panels.rects[target], side), app.panels[dragged].scene.title)
                if released:
                    move_panel(app, dragged, target, side)
        if released:
            self._dragged, app.input.dragging_panel.is_on = None, False

    def _drop_target(self) -> tuple[int | None, str]:
        """The panel under the pointer, or None, and the side of it."""
        position = imgui.get_io().mouse_pos
        for index, (x, y, width, height) in enumerate(self.app.panels.rects):
            if x <= position.x < x + width and y <= position.y < y + height:
                return index, layout.drop_side(self.app.panels.rects[index], position.x, position.y)
        return None, ""

    def _preview(self, rect: theme.Rect, title: str) -> None:
        """Tints the rectangle that the panel would get, and draws its title at the pointer."""
        low, high = theme.corners(rect)
        draw, pointer = imgui.get_window_draw_list(), imgui.get_io().mouse_pos
        draw.add_rect_filled(low, high, theme.color_u32(theme.ACCENT, 0.28))
        draw.add_rect(low, high, theme.color_u32(theme.ACCENT), 0, 2 * self.scale)
        right = imgui.get_window_pos().x + imgui.get_window_width() - imgui.calc_text_size(title).x
        x, y = min(pointer.x + 14 * self.scale, right), pointer.y + 14 * self.scale
        theme.shadow_text(draw, imgui.get_font(), imgui.get_font_size(), x, y, theme.TEXT, title)


def move_panel(app: AppState, index: int, target: int, side: str) -> None:
    """Moves a panel to a side of panel `target`; "middle" swaps the two."""
    root = app.panels.current_layout()
    moved = layout.swap(root, index, target) if side == "middle" else layout.insert(root, index, target, side)
    app.panels.layout = moved


def swap_panel(app: AppState, side: str) -> None:
    """Swaps the active panel with its neighbor on a side."""
    rects = layout.rectangles(app.panels.current_layout(), app.panels.area, GAP)
    other = layout.nearest(rects, app.panels.active, side)
    if other is None or app.panels.maximized:
        app.show_message("no panel on that side")
    else:
        move_panel(app, app.panels.active, other, "middle")


def dock_panel(app: AppState, side: str) -> None:
    """Moves the active panel along a whole side of the window."""
    if len(app.panels) > 1 and not app.panels.maximized:
        app.panels.layout = layout.dock(app.panels.current_layout(), app.panels.active, side)


def reset_to_grid(app: AppState) -> None:
    """Arranges the panels in a grid again."""
    app.panels.layout = None
    app.show_message("panels in a grid")
