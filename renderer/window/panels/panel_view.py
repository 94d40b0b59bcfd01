"""How one panel looks: its picture, the strips with its title and figures, what is wrong with it."""

from renderer.window.app.state import Studio
from renderer.window.controls import theme
from renderer.window.controls.statistics import figure, is_series
from renderer.window.controls.toolkit import imgui

STRIP = 26  # height of a strip, at scale 1
PREPARING = "preparing: kernels are compiled when they are first used"


class PanelView:
    """Draws panels into the window that is begun."""

    def __init__(self, studio: Studio, fonts: theme.Fonts, scale: float):
        self.studio, self.fonts, self.scale = studio, fonts, scale

    def draw(self, index: int, cell, rectangle, now: float, editor) -> None:
        """Panel `index` in its cell; `editor` lies over the active one, or is None."""
        studio, panel = self.studio, self.studio.panels[index]
        low, high = corners(cell)
        draw = imgui.get_window_draw_list()
        draw.push_clip_rect(low, high, True)
        draw.add_rect_filled(low, high, theme.packed((0.055, 0.063, 0.078, 1)))
        if panel.shown is not None:
            self._image(panel, rectangle, now)
            if index == studio.active and editor:
                editor.draw(rectangle)
        elif not panel.error:
            size = imgui.calc_text_size(PREPARING)
            x, y, width, height = rectangle
            place = imgui.ImVec2(x + (width - size.x) / 2, y + (height - size.y) / 2)
            draw.add_text(place, theme.packed(theme.DIM), PREPARING)
        if rectangle != cell:
            self._strips(panel, cell, now, index == studio.active)
        if panel.error:
            self._told(rectangle, "This picture cannot be drawn", panel.error, rectangle[3])
        elif panel.mistake:
            self._told(rectangle, "Saved with a mistake; what was good goes on", panel.mistake)
        draw.pop_clip_rect()
        if index == studio.active and len(studio.panels) > 1 and not studio.solo:
            draw.add_rect(low, high, theme.packed(theme.ACCENT), 0, 1.5 * self.scale)

    def _image(self, panel, rectangle, now: float) -> None:
        """The picture, or the two that are compared."""
        draw, comparison = imgui.get_window_draw_list(), panel.comparison
        low, high = corners(rectangle)
        left, right, part = comparison.shown(panel.shown, now)
        middle = low.x + part * (high.x - low.x)
        end = imgui.ImVec2(middle, high.y)
        draw.add_image(imgui.ImTextureRef(left.texture.glo), low, end, imgui.ImVec2(0, 0), imgui.ImVec2(part, 1))
        if right is not None:
            begin = imgui.ImVec2(middle, low.y)
            draw.add_image(
                imgui.ImTextureRef(right.texture.glo), begin, high, imgui.ImVec2(part, 0), imgui.ImVec2(1, 1)
            )
            draw.add_line(begin, end, theme.packed(theme.TEXT), 1.5 * self.scale)
        if comparison.mode != "off":
            size, pad = theme.FONT_SIZE * self.scale, 8 * self.scale
            told = f"{comparison.mode}: {comparison.label}"
            place = imgui.ImVec2(low.x + pad, high.y - size - pad)
            shade = imgui.ImVec2(place.x + 1, place.y + 1)
            draw.add_text(self.fonts.text, size, shade, theme.packed((0, 0, 0, 1)), told)
            draw.add_text(self.fonts.text, size, place, theme.packed(theme.ACCENT), told)

    def _strips(self, panel, cell, now: float, active: bool) -> None:
        """Title and frame rate above the picture; how it came, what it reports, its size and samples below."""
        x, y, width, height = cell
        strip, pad = int(STRIP * self.scale), 9 * self.scale
        draw = imgui.get_window_draw_list()
        rate = panel.counter.rate(now)
        rested = 1 / panel.cost if panel.cost else 0.0  # what a finished or paused panel ran at; shown dim
        figures = f"{rate or rested:.1f} fps  {panel.cost * 1000:.1f} ms" if panel.cost else ""
        reserved = self._text_right(figures, x + width - pad, y, strip, theme.TEXT if rate else theme.DIM)
        title = panel.scene.title + ("  (paused)" if panel.paused else "")
        self._text(title, x + pad, y, strip, theme.TEXT, self.fonts.bold if active else self.fonts.text, reserved - pad)
        bottom = y + height - strip
        reserved = self._text_right(self._samples(panel), x + width - pad, bottom, strip, theme.DIM)
        told = self._fitting(_facts(panel), reserved - x - 2 * pad)
        self._text(told, x + pad, bottom, strip, theme.DIM, self.fonts.text, reserved - pad)
        if panel.wanted_samples > 1 and panel.samples < panel.wanted_samples:
            part = width * panel.samples / panel.wanted_samples
            line = y + height - max(2.0, 2 * self.scale)
            draw.add_rect_filled(imgui.ImVec2(x, line), imgui.ImVec2(x + part, y + height), theme.packed(theme.ACCENT))

    @staticmethod
    def _fitting(parts: list[str], width: float) -> str:
        """As many of the parts as fit beside each other."""
        out = ""
        for part in parts:
            longer = f"{out}    {part}" if out else part
            if imgui.calc_text_size(longer).x <= width:
                out = longer
        return out

    @staticmethod
    def _samples(panel) -> str:
        if panel.shown is None:
            return ""
        width, height = panel.shown.size
        clean = "  denoised" if panel.denoised else ""
        done = f"done{clean}" if panel.finished() and not panel.alive() else f"{panel.samples}/{panel.wanted_samples}"
        return f"{width}x{height}  {done}"

    def _text(self, text: str, x: float, y: float, strip: float, colour, font, right: float) -> None:
        """Text in the middle of a strip, cut where `right` is."""
        draw = imgui.get_window_draw_list()
        size = theme.FONT_SIZE * self.scale
        draw.push_clip_rect(imgui.ImVec2(x, y), imgui.ImVec2(max(right, x), y + strip), True)
        draw.add_text(font, size, imgui.ImVec2(x, y + (strip - size) / 2), theme.packed(colour), text)
        draw.pop_clip_rect()

    def _text_right(self, text: str, right: float, y: float, strip: float, colour) -> float:
        """Figures that end at `right`; where they begin."""
        imgui.push_font(self.fonts.numbers, theme.FONT_SIZE)
        left = right - imgui.calc_text_size(text).x
        imgui.pop_font()
        self._text(text, left, y, strip, colour, self.fonts.numbers, right)
        return left

    def _told(self, rectangle, title: str, text: str, height: float = 0.0) -> None:
        """An error over a panel's picture: as high as its text, or as `height`."""
        x, top, width, _ = rectangle
        draw, pad, size = imgui.get_window_draw_list(), 14 * self.scale, theme.FONT_SIZE * self.scale
        wrap = max(width - 2 * pad, 1.0)
        imgui.push_font(self.fonts.numbers, theme.FONT_SIZE)
        height = height or imgui.calc_text_size(text, False, wrap).y + 2 * pad + 1.8 * size
        imgui.pop_font()
        low, high = corners((x, top, width, height))
        draw.add_rect_filled(low, high, theme.packed((0.10, 0.03, 0.03, 0.88)))
        draw.push_clip_rect(*corners(rectangle), True)
        place = imgui.ImVec2(x + pad, top + pad)
        draw.add_text(self.fonts.bold, size * 1.1, place, theme.packed(theme.WARNING), title)
        place = imgui.ImVec2(x + pad, top + pad + 1.8 * size)
        draw.add_text(self.fonts.numbers, size, place, theme.packed(theme.TEXT), text, wrap)
        draw.pop_clip_rect()


def corners(rectangle):
    x, y, width, height = rectangle
    return imgui.ImVec2(x, y), imgui.ImVec2(x + width, y + height)


def _facts(panel) -> list[str]:
    """How the frame came to the window, then what the picture reports, series first."""
    report = [(name, value) for name, value in panel.report.items() if name != "samples"]
    report.sort(key=lambda item: not is_series(item[1]))
    return [panel.transfer] * bool(panel.transfer) + [
        f"{str(name).replace('_', ' ')} {figure(value)}" for name, value in report
    ]
