"""What panels are arranged by: their titles, dragged onto other panels, and the gaps between them."""

from renderer.window.app.state import Studio
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui
from renderer.window.panels import layout, layout_actions

REACH = 3  # units beside a gap that are as good as the gap, at scale 1


class Handles:
    """The buttons over titles and gaps, in the window that is begun."""

    def __init__(self, studio: Studio, scale: float):
        self.studio, self.scale = studio, scale
        self._carried: int | None = None  # the panel whose title is dragged
        self._before: tuple = ()  # the tree and the sash of it when a gap was taken

    def sashes(self) -> None:
        """The gaps: a drag shares the length anew. They come before the panels, whose edges they overlap."""
        studio, reach = self.studio, int(REACH * self.scale)
        for number, sash in enumerate(layout.sashes(studio.place, studio.area, studio.gap)):
            x, y, width, height = sash.rectangle
            x, width = (x - reach, width + 2 * reach) if sash.across else (x, width)
            y, height = (y, height) if sash.across else (y - reach, height + 2 * reach)
            imgui.set_cursor_screen_pos(imgui.ImVec2(x, y))
            imgui.invisible_button(f"gap {number}", imgui.ImVec2(max(width, 1), max(height, 1)))
            if imgui.is_item_hovered() or imgui.is_item_active():
                cursors = imgui.MouseCursor_
                imgui.set_mouse_cursor(cursors.resize_ew if sash.across else cursors.resize_ns)
            if imgui.is_item_activated():
                self._before = studio.layout_at_hand(), sash
            if imgui.is_item_active():
                self._drag_gap()

    def _drag_gap(self) -> None:
        place, sash = self._before
        way = imgui.get_mouse_drag_delta(0, 0.0)
        by = (way.x if sash.across else way.y) / (sash.length + self.studio.gap)
        if by:
            self.studio.layout = layout.moved_sash(place, sash, by)

    def title(self, index: int, cell, rectangle) -> None:
        """The strip above a picture: a click makes its panel the active one, a drag carries it."""
        x, y, width, _ = cell
        strip = rectangle[1] - y
        if strip < 1:
            return
        imgui.set_cursor_screen_pos(imgui.ImVec2(x, y))
        imgui.invisible_button(f"title {index}", imgui.ImVec2(width, strip))
        studio = self.studio
        if imgui.is_item_activated():
            studio.active = index
        if imgui.is_item_hovered() and imgui.is_mouse_double_clicked(0):
            studio.toggle("solo")
        elif imgui.is_item_active() and imgui.is_mouse_dragging(0) and self._carried is None:
            if not studio.solo and len(studio.panels) > 1:
                self._carried, studio.carrying = index, True

    def carry(self) -> None:
        """Shows where the dragged panel would go, and puts it there when it is let go; Escape lets it stay."""
        studio, carried = self.studio, self._carried
        if carried is None:
            return
        let_go = not imgui.is_mouse_down(0)
        if studio.carrying and carried < len(studio.panels) and not studio.solo:
            imgui.set_mouse_cursor(imgui.MouseCursor_.resize_all)
            target, side = self._under_pointer()
            if target not in (None, carried):
                self._show(layout.part_of(studio.cells[target], side), studio.panels[carried].scene.title)
                if let_go:
                    layout_actions.put_panel(studio, carried, target, side)
        if let_go:
            self._carried, studio.carrying = None, False

    def _under_pointer(self) -> tuple[int | None, str]:
        """The panel under the pointer, and which side of it; None for none."""
        place = imgui.get_io().mouse_pos
        for index, cell in enumerate(self.studio.cells):
            x, y, width, height = cell
            if x <= place.x < x + width and y <= place.y < y + height:
                return index, layout.side_of(cell, place.x, place.y)
        return None, ""

    def _show(self, rectangle, title: str) -> None:
        """Tints the part of the window that the panel would get, and writes its title at the pointer."""
        x, y, width, height = rectangle
        low, high = imgui.ImVec2(x, y), imgui.ImVec2(x + width, y + height)
        draw, pointer = imgui.get_window_draw_list(), imgui.get_io().mouse_pos
        draw.add_rect_filled(low, high, theme.packed(theme.ACCENT, 0.28))
        draw.add_rect(low, high, theme.packed(theme.ACCENT), 0, 2 * self.scale)
        room = imgui.get_window_pos().x + imgui.get_window_width() - imgui.calc_text_size(title).x
        place = imgui.ImVec2(min(pointer.x + 14 * self.scale, room), pointer.y + 14 * self.scale)
        shade = imgui.ImVec2(place.x + 1, place.y + 1)
        draw.add_text(shade, theme.packed((0, 0, 0, 1)), title)
        draw.add_text(place, theme.packed(theme.TEXT), title)
