"""Docking by mouse: panels dragged by their title bars, and the gaps between them dragged to resize.

state/layout.py says why this is not Dear ImGui's docking.
"""

from renderer.window.controls import theme
from renderer.window.controls.theme import Rect, corners
from renderer.window.controls.toolkit import imgui
from renderer.window.state import layout, layout_actions
from renderer.window.state.app_state import GAP, AppState
from renderer.window.state.layout import LayoutNode, Splitter

HIT_MARGIN = 3  # units beside a gap where it can be grabbed too, at scale 1


class Docking:
    """Invisible buttons over title bars and gaps, in the current Dear ImGui window."""

    def __init__(self, app: AppState, scale: float):
        self.app, self.scale = app, scale
        self._dragged: int | None = None  # the panel whose title bar is dragged
        self._grabbed: tuple[LayoutNode, Splitter] | None = None  # the layout when the splitter was grabbed

    def drag_splitters(self) -> None:
        """Handles the gaps. Called before the panels, whose edges the buttons overlap."""
        app, margin = self.app, int(HIT_MARGIN * self.scale)
        for number, splitter in enumerate(layout.splitters(app.layout_root, app.area, GAP)):
            x, y, width, height = splitter.rectangle
            dx, dy = (margin, 0) if splitter.horizontal else (0, margin)
            imgui.set_cursor_screen_pos((x - dx, y - dy))
            imgui.invisible_button(f"gap {number}", (max(width + 2 * dx, 1), max(height + 2 * dy, 1)))
            if imgui.is_item_hovered() or imgui.is_item_active():
                cursors = imgui.MouseCursor_
                imgui.set_mouse_cursor(cursors.resize_ew if splitter.horizontal else cursors.resize_ns)
            if imgui.is_item_activated():
                self._grabbed = app.current_layout(), splitter
            if imgui.is_item_active() and self._grabbed:
                root, grabbed = self._grabbed
                delta = imgui.get_mouse_drag_delta(0, 0.0)
                if by := (delta.x if grabbed.horizontal else delta.y) / (grabbed.length + GAP):
                    app.layout = layout.move_splitter(root, grabbed, by)

    def title_bar(self, index: int, rect: Rect, image_rect: Rect) -> None:
        """Handles one title bar: a click activates the panel, a double-click maximizes it, a drag moves it."""
        x, y, width, _ = rect
        bar_height = image_rect[1] - y
        if bar_height < 1:
            return
        imgui.set_cursor_screen_pos((x, y))
        imgui.invisible_button(f"title {index}", (width, bar_height))
        app = self.app
        if imgui.is_item_activated():
            app.active = index
        if imgui.is_item_hovered() and imgui.is_mouse_double_clicked(0):
            app.toggle("solo")
        elif imgui.is_item_active() and imgui.is_mouse_dragging(0) and self._dragged is None:
            if not app.solo and len(app.panels) > 1:
                self._dragged, app.dragging_panel = index, True

    def drag_panel(self) -> None:
        """Previews the drop of the dragged panel, and moves it when it is released; Escape cancels."""
        app, dragged = self.app, self._dragged
        if dragged is None:
            return
        released = not imgui.is_mouse_down(0)
        if app.dragging_panel and dragged < len(app.panels) and not app.solo:
            imgui.set_mouse_cursor(imgui.MouseCursor_.resize_all)
            target, side = self._drop_target()
            if target is not None and target != dragged:
                self._preview(layout.drop_preview(app.panel_rects[target], side), app.panels[dragged].scene.title)
                if released:
                    layout_actions.move_panel(app, dragged, target, side)
        if released:
            self._dragged, app.dragging_panel = None, False

    def _drop_target(self) -> tuple[int | None, str]:
        """The panel under the pointer, or None, and the side of it."""
        position = imgui.get_io().mouse_pos
        for index, (x, y, width, height) in enumerate(self.app.panel_rects):
            if x <= position.x < x + width and y <= position.y < y + height:
                return index, layout.drop_side(self.app.panel_rects[index], position.x, position.y)
        return None, ""

    def _preview(self, rect: Rect, title: str) -> None:
        """Tints the rectangle that the panel would get, and draws its title at the pointer."""
        low, high = corners(rect)
        draw, pointer = imgui.get_window_draw_list(), imgui.get_io().mouse_pos
        draw.add_rect_filled(low, high, theme.color_u32(theme.ACCENT, 0.28))
        draw.add_rect(low, high, theme.color_u32(theme.ACCENT), 0, 2 * self.scale)
        right = imgui.get_window_pos().x + imgui.get_window_width() - imgui.calc_text_size(title).x
        x, y = min(pointer.x + 14 * self.scale, right), pointer.y + 14 * self.scale
        theme.shadow_text(draw, imgui.get_font(), imgui.get_font_size(), x, y, theme.TEXT, title)
