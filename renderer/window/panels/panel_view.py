"""The drawing of one panel: its picture, the title bar above, the status bar below, and errors over the picture.

MainWindow draws each displayed panel with it.
"""

import re
from collections.abc import Callable
from weakref import WeakKeyDictionary

from renderer.gpu.gl import Texture
from renderer.scene.scene import COLOR
from renderer.window.controls import imgui, imgui_ctx, theme
from renderer.window.controls.theme import Rect
from renderer.window.panels import picture_overlays
from renderer.window.panels.panel import Panel
from renderer.window.panels.panel_picture import PREPARING
from renderer.window.panels.pixel_zoom import draw_values

BAR_HEIGHT = 26  # units of the title bar and of the status bar, at scale 1
MAX_WIDTHS = 1000  # cached text widths


class PanelView:
    """Draws panels into the current Dear ImGui window."""

    def __init__(self, fonts: theme.Fonts, scale: float):
        self.fonts, self.scale = fonts, scale
        self._widths: dict[str, float] = {}  # text of numbers in the bars -> width in units
        # Panel -> the line of statistics in its status bar, with the report, the wait and the width that it was made of
        self._lines: WeakKeyDictionary[Panel, tuple[tuple, str]] = WeakKeyDictionary()

    def draw(
        self, panel: Panel, title: str, rect: Rect, image_rect: Rect, now: float, active: bool, overlay: Callable | None
    ) -> None:
        """Draws `panel` in `rect` and its picture in `image_rect`; overlay() draws over the active panel's picture."""
        low, high = theme.corners(rect)
        draw = imgui.get_window_draw_list()
        draw.push_clip_rect(low, high, True)
        draw.add_rect_filled(low, high, theme.color_u32((0.055, 0.063, 0.078, 1)))
        picture = panel.display.texture
        # The first coarse sample looks like damage beside a preview, which stays until the rest is compiled.
        is_coarse = panel.work.is_waiting and panel.measured.samples < 2 and panel.budget.divisor > 1
        is_preparing = picture is None or is_coarse and panel.scene == panel.original and bool(panel.preview)
        if picture is not None and not is_preparing:
            bottom = self._image(panel, picture, image_rect, now)
            self._values(panel, image_rect)
            picture_overlays.draw(panel, image_rect, bottom, self.fonts, self.scale)
        preview = panel.preview if is_preparing and not panel.error else None
        if preview is not None:
            self._preview(preview[0], image_rect)
        if overlay and (picture is not None or not panel.error):
            draw.push_clip_rect(*theme.corners(image_rect), True)
            overlay()
            draw.pop_clip_rect()
        if is_preparing and not panel.error:
            view = "" if panel.inspection.name == COLOR else f"\nthen the view {panel.inspection.caption('')}"
            self._preparing((preview[1] if preview else PREPARING) + view, image_rect, preview is not None)
        if image_rect != rect:  # a small panel has no bars (OpenPanels.lay_out())
            self._bars(panel, title, rect, now, active)
        if error := panel.short_error:
            problem = "This picture cannot be drawn" if panel.error else "Error: the last good picture stays"
            # Over a good picture one line, the compiler's; the code panel has the text
            shown, height = (error, image_rect[3]) if panel.error else (error.partition("\n")[0], 0.0)
            self._error_box(image_rect, problem, shown, height)
        draw.pop_clip_rect()

    def _preview(self, preview: Texture, rect: Rect) -> None:
        """The picture that is shown before the first one of the scene's own."""
        corners = theme.corners(theme.fitted(rect, preview.size))
        imgui.get_window_draw_list().add_image(imgui.ImTextureRef(preview.texture.glo), *corners)

    def _preparing(self, text: str, rect: Rect, has_preview: bool) -> None:
        """A text over what is shown before the first picture."""
        draw, (x, y, width, height) = imgui.get_window_draw_list(), rect
        size, font = imgui.calc_text_size(text, False, width), theme.FONT_SIZE * self.scale
        left, top = x + max(width - size.x, 0) / 2, y + (height - size.y) * (0.93 if has_preview else 0.5)
        theme.caption(draw, self.fonts.text, font, left, top, text, width)

    def _image(self, panel: Panel, picture: Texture, rect: Rect, now: float) -> float:
        """The picture, or the two that are compared, side by side at the wipe position; returns the caption's top."""
        draw, comparison = imgui.get_window_draw_list(), panel.comparison
        low, high = theme.corners(rect)
        inspection, zoom = panel.inspection, panel.zoom
        is_overlay = inspection.shown is not None and inspection.shown.is_overlay
        shown = None if is_overlay else inspection.texture
        left, right, split = comparison.textures(picture, now) if shown is None else (shown, None, 1.0)
        middle = low.x + split * (high.x - low.x)
        over = inspection.texture if is_overlay else None
        # Each texture from `begin` to `end`, fractions of the panel's width
        for texture, begin, end in ((left, 0.0, split), (right, split, 1.0), (over, 0.0, 1.0)):
            if texture is not None:
                corners = (low.x + begin * (high.x - low.x), low.y), (low.x + end * (high.x - low.x), high.y)
                seen = zoom.picture_point(begin, 0), zoom.picture_point(end, 1)
                draw.add_image(imgui.ImTextureRef(texture.texture.glo), *corners, *seen)
        if right is not None:
            draw.add_line((middle, low.y), (middle, high.y), theme.color_u32(theme.TEXT), 1.5 * self.scale)
        label = self._caption(panel, picture, now)
        if zoom.is_on:
            label = f"{label}   {zoom.factor * rect[2] / picture.size[0]:.3g} units a pixel".strip()
        if not label:
            return high.y
        size, pad = theme.FONT_SIZE * self.scale, 8 * self.scale
        wrap = high.x - low.x - 2 * pad
        top = high.y - imgui.calc_text_size(label, False, wrap).y - pad
        theme.caption(draw, self.fonts.text, size, low.x + pad, top, label, wrap)
        return top

    def _caption(self, panel: Panel, picture: Texture, now: float) -> str:
        """The text over the lower edge of the picture: of its view, of a comparison, or of the picture itself."""
        if panel.inspection.name != COLOR:
            return panel.inspection.caption(panel.work.text())
        comparison, samples = panel.comparison, panel.measured.samples  # a picture file has one sample
        label = comparison.caption(f"now, {samples} samples" if samples > 1 else panel.original.path.name, now)
        if label and panel.budget.divisor == 1 and (other := comparison.other_size(picture)):
            label += f", {other[0]} x {other[1]} pixels stretched to {picture.size[0]} x {picture.size[1]}"
        if not label and panel.work.is_waiting and panel.draw_loop.displayed_settings != panel.scene.settings:
            label = "old picture: the newest edit compiles"
        return label or panel.hint

    def _values(self, panel: Panel, rect: Rect) -> None:
        """Writes values into magnified pixels: the view's values, or the picture's linear RGB."""
        values = panel.inspection.values
        if panel.zoom.is_on and values is not None and panel.inspection.texture is not None:
            size = panel.inspection.texture.size
            draw_values(panel.zoom, rect, size, lambda x, y, w, h: values[y : y + h, x : x + w], self.fonts, self.scale)
        elif panel.zoom.is_on and (frame := panel.display.frame) is not None:
            draw_values(panel.zoom, rect, frame.size, frame.read_region, self.fonts, self.scale)

    def _bars(self, panel: Panel, title: str, rect: Rect, now: float, active: bool) -> None:
        """The title bar with the rates; the status bar with the statistics, the size and the samples."""
        x, y, width, height = rect
        bar, pad = int(BAR_HEIGHT * self.scale), 9 * self.scale
        measured = panel.measured
        is_refining = panel.draw_loop.busy > 0 or measured.frame_rate.rate(now) > 0
        paused = ["paused"] if panel.paused else []
        speed = _fit([*paused, *_speed(panel, now, is_refining)], width / 2)
        left = self._text_right(speed, x + width - pad, y, theme.TEXT if is_refining else theme.DIM)
        font = self.fonts.bold if active else self.fonts.text
        with imgui_ctx.push_font(font, theme.FONT_SIZE):
            shown = theme.cut(title, left - x - 2 * pad)
        self._text(shown, x + pad, y, theme.TEXT, font, left)
        if shown != title and imgui.is_window_hovered() and imgui.is_mouse_hovering_rect((x, y), (left, y + bar)):
            imgui.set_tooltip(title)
        bottom = y + height - bar
        left = self._text_right(_progress(panel), x + width - pad, bottom, theme.DIM)
        statistics = self._statistics_line(panel, left - x - 2 * pad)
        self._text(statistics, x + pad, bottom, theme.DIM, self.fonts.text, left - pad)
        if measured.target_samples > 1 and measured.samples < measured.target_samples and not panel.is_playing:
            done = width * measured.samples / measured.target_samples
            low, high = (x, y + height - max(2.0, 2 * self.scale)), (x + done, y + height)
            imgui.get_window_draw_list().add_rect_filled(low, high, theme.color_u32(theme.ACCENT))

    def _statistics_line(self, panel: Panel, width: float) -> str:
        """As many statistics as fit in `width` units; made once for each report."""
        measured = panel.measured
        key = measured.report, panel.work.text() if panel.work.is_waiting else "", width
        known = self._lines.get(panel)
        # Each report is another object, so that its values need not be compared
        if known is None or known[0][0] is not key[0] or known[0][1:] != key[1:]:
            known = self._lines[panel] = key, _fit(_statistics(panel), width)
        return known[1]

    def _text(self, text: str, x: float, y: float, color: theme.Color, font, right: float) -> None:
        """Text centered vertically in the bar whose top is `y`, clipped at `right`."""
        draw, bar = imgui.get_window_draw_list(), int(BAR_HEIGHT * self.scale)
        size = theme.FONT_SIZE * self.scale
        clip = imgui.ImVec4(x, y, max(right, x), y + bar)
        draw.add_text(font, size, (x, y + (bar - size) / 2), theme.color_u32(color), text, 0.0, clip)

    def _text_right(self, text: str, right: float, y: float, color: theme.Color) -> float:
        """Numbers that end at `right`; returns their left edge."""
        if len(self._widths) > MAX_WIDTHS:
            self._widths.clear()
        if text not in self._widths:
            with imgui_ctx.push_font(self.fonts.numbers, theme.FONT_SIZE):
                self._widths[text] = imgui.calc_text_size(text).x
        left = right - self._widths[text]
        self._text(text, left, y, color, self.fonts.numbers, right)
        return left

    def _error_box(self, rect: Rect, title: str, text: str, height: float = 0.0) -> None:
        """An error over a panel's picture, `height` high or as high as its text."""
        x, top, width, _ = rect
        draw, pad, size = imgui.get_window_draw_list(), 14 * self.scale, theme.FONT_SIZE * self.scale
        wrap = max(width - 2 * pad, 1.0)
        with imgui_ctx.push_font(self.fonts.numbers, theme.FONT_SIZE):
            height = height or imgui.calc_text_size(text, False, wrap).y + 2 * pad + 1.8 * size
        low, high = (x, top), (x + width, top + height)
        draw.add_rect_filled(low, high, theme.color_u32((0.10, 0.03, 0.03, 0.88)))
        draw.push_clip_rect(*theme.corners(rect), True)
        position = (x + pad, top + pad)
        draw.add_text(self.fonts.bold, size * theme.LARGE, position, theme.color_u32(theme.WARNING), title)
        position = (x + pad, top + pad + 1.8 * size)
        draw.add_text(self.fonts.numbers, size, position, theme.color_u32(theme.TEXT), text, wrap)
        draw.pop_clip_rect()


def _fit(facts: list[str], width: float) -> str:
    """As many of the facts as fit beside each other in `width` units."""
    line = ""
    for fact in facts:
        longer = f"{line}    {fact}" if line else fact
        if imgui.calc_text_size(longer).x <= width:
            line = longer
    return line


def _speed(panel: Panel, now: float, is_refining: bool) -> list[str]:
    """The texts of three rates: samples a second, device time of a sample, displayed pictures a second.

    At rest there is the device time alone. A picture that plays with one sample each has no samples a second, which
    would equal the displayed pictures.
    """
    measured, seconds = panel.measured, panel.measured.sample_seconds
    if not seconds:
        return []
    duration = f"{1000 * seconds:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"
    if not is_refining:
        return [f"{duration} a sample"]
    samples = measured.sample_rate.mean_rate() or 1 / seconds
    rate = f"{samples:,.0f}" if samples >= 100 else f"{samples:.3g}"
    displayed = measured.frame_rate.rate(now)
    fps = [f"{displayed:.0f} fps" if displayed >= 10 else f"{displayed:.1f} fps"] if displayed >= 0.05 else []
    coarse = f" at 1/{panel.budget.divisor} size" if panel.budget.divisor > 1 else ""
    is_one = panel.is_playing and panel.readable_samples(now) == 1
    return [f"{'' if is_one else f'{rate} samples/s'}{coarse}".strip(), duration, *fps]


def _progress(panel: Panel) -> str:
    """The size in pixels, and the samples so far; of a picture that plays, the scene time."""
    if panel.display.texture is None:
        return ""
    width, height = panel.display.texture.size
    done = panel.draw_loop.is_finished and not panel.is_playing
    samples = "done" if done else f"{panel.measured.samples}/{panel.measured.target_samples}"
    shown = f"{panel.draw_loop.drawn_time:.2f} s" if panel.is_playing else samples
    return f"{width}x{height}  {shown}" + ("  denoised" if done and panel.denoiser.displayed else "")


def _statistics(panel: Panel) -> list[str]:
    """The picture's report without zeros, series first."""
    report = [row for row in panel.measured.rows if row.text != "0"]
    report.sort(key=lambda row: (row.series is None, "stencil" in row.name))  # last the times, which vary at each draw
    # Equal numbers at the end of a series are shown once: "9  4  1  1  1" as "9  4  1"
    facts = [re.sub(r"(  \S+)\1+$", r"\1", f"{row.label} {row.text}") for row in report]
    return [panel.work.text(), *facts] if panel.work.is_waiting else facts
