"""Everything that is drawn around the panels: their frames and figures, the bar, the controls.

Each function draws one part of one frame from the Studio's state; what the user does goes back through its methods.
"""

import importlib.util
import time
from dataclasses import replace

import numpy as np

from renderer.window import controls, inspector, theme, timeline
from renderer.window.actions import chord, pressed, table
from renderer.window.counter import RING
from renderer.window.overlays import Overlays
from renderer.window.studio import Studio
from renderer.window.table import ACTIONS, TO_CONTROLS
from renderer.window.toolkit import imgui, implot

BAR, STRIP, SIDEBAR = 38, 26, 340  # heights of the top bar and of a panel's strips, width of the controls; at scale 1
PREPARING = "preparing: kernels are compiled when they are first used"
FIXED = (
    imgui.WindowFlags_.no_title_bar | imgui.WindowFlags_.no_resize | imgui.WindowFlags_.no_move
    | imgui.WindowFlags_.no_saved_settings | imgui.WindowFlags_.no_bring_to_front_on_focus
)  # fmt: skip
STILL = FIXED | imgui.WindowFlags_.no_scrollbar | imgui.WindowFlags_.no_scroll_with_mouse | imgui.WindowFlags_.no_nav


class Interface:
    """One frame of the window's contents, in a Dear ImGui context that has a frame begun."""

    def __init__(self, studio: Studio, fonts: theme.Fonts, scale: float):
        self.studio, self.fonts, self.scale = studio, fonts, scale
        self.overlays = Overlays(studio, fonts, scale)
        self.editors: dict = {}  # by kind of picture; None where there is none
        self.held: dict = {}  # key -> (ctrl, shift, alt) at its last press, where the window tells

    def draw(self, width: float, height: float, pixels: float = 1.0) -> None:
        """The whole window of width x height units; `pixels` is framebuffer pixels a unit."""
        studio, now = self.studio, time.perf_counter()
        editor = self._editor()
        live = table([*(editor.actions() if editor else []), *ACTIONS], studio.panel.scene.settings)
        self._keys(live)
        bar, side = self.scale * BAR, self.scale * SIDEBAR if studio.sidebar else 0.0
        if width < 2.2 * side or height < 4 * bar:  # a tiny window shows its panels alone
            bar = side = 0.0
        gap = studio.gap
        line = self.scale * timeline.HEIGHT if bar and studio.shows_timeline() else 0.0
        down = int(height - bar - line) - gap
        studio.arrange(gap, int(bar), int(width - side) - 2 * gap, down, int(STRIP * self.scale))
        if bar:
            self._bar(width, bar, now)
        self._panels(width - side, height - bar - line, bar, now)
        if line:
            self._timeline(width - side, height - line, line)
        if side:
            self._sidebar(width - side, bar, side, height - bar)
        if editor:
            editor.overlay()
        studio.pending = editor is not None and editor.pending
        self.overlays.draw(live, width, height, width - side, now)
        studio.quiet = not imgui.is_any_item_active() and not any(imgui.is_mouse_down(b) for b in range(3))
        studio.counter.add(now)

    def _editor(self):
        """The editor of the active panel's kind of picture: the module KIND_editor of this package, where it is there.

        It has actions(), mouse(rectangle) and draw(rectangle) over the picture, controls() beside it, overlay().
        """
        kind = self.studio.panel.scene.picture
        if kind not in self.editors:
            name = f"renderer.window.{kind}_editor"
            module = importlib.import_module(name) if importlib.util.find_spec(name) else None
            self.editors[kind] = module and module.Editor(self.studio, self.fonts, self.scale)
        return self.editors[kind]

    def _keys(self, live) -> None:
        """Runs the actions whose keys went down, unless text is being typed."""
        studio, io = self.studio, imgui.get_io()
        typing = io.want_text_input or studio.typing or imgui.is_popup_open("", imgui.PopupFlags_.any_popup)
        if typing and not studio.palette:
            if imgui.is_key_pressed(imgui.Key.escape) and not io.want_text_input or pressed(TO_CONTROLS, self.held):
                studio.typing = False
            return
        if studio.palette:
            if imgui.is_key_pressed(imgui.Key.escape):
                studio.escape()
            return
        flying = imgui.is_mouse_down(1)
        for action in live:
            if pressed(action, self.held) and not (flying and chord(action.keys).key in FLYING):
                action.run(self.studio)
                break

    # The bar

    def _bar(self, width: float, height: float, now: float) -> None:
        _place(0, 0, width, height)
        imgui.push_style_var(imgui.StyleVar_.window_padding, imgui.ImVec2(12 * self.scale, 6 * self.scale))
        imgui.begin("bar", None, STILL)
        imgui.push_font(self.fonts.bold, theme.FONT_SIZE * 1.15)
        imgui.align_text_to_frame_padding()
        imgui.text("Rayfold")
        imgui.pop_font()
        studio = self.studio
        imgui.same_line(0, 20 * self.scale)
        self._button("Go on" if studio.panel.paused else "Pause", "Space", Studio.toggle_pause)
        self._button("Restart", "R", Studio.restart)
        self._button("All panels" if studio.solo else "Solo", "Enter", lambda s: s.toggle("solo"))
        self._button("Previous", "P", lambda s: s.next_scene(-1))
        self._button("Next", "N", lambda s: s.next_scene(1))
        self._button("Screenshot", "F12", Studio.screenshot)
        self._button("Controls", "H", lambda s: s.toggle("sidebar"))
        self._button("Keys", "F1", lambda s: s.toggle("help"))
        told = f"{len(studio.panels)} panels   window {studio.counter.rate(now):5.1f} fps"
        imgui.push_font(self.fonts.numbers, theme.FONT_SIZE)
        left = width - imgui.calc_text_size(told).x - 14 * self.scale
        if left > imgui.get_item_rect_max().x + 10:
            imgui.same_line(left)
            imgui.text_disabled(told)
        imgui.pop_font()
        imgui.end()
        imgui.pop_style_var()

    def _button(self, label: str, keys: str, run) -> None:
        if imgui.button(label):
            run(self.studio)
        imgui.set_item_tooltip(keys)
        imgui.same_line(0, 6 * self.scale)

    def _timeline(self, width: float, top: float, height: float) -> None:
        _place(0, top, width, height)
        imgui.push_style_var(imgui.StyleVar_.window_padding, imgui.ImVec2(10 * self.scale, 8 * self.scale))
        imgui.begin("time", None, STILL)
        timeline.draw(self.studio, self.fonts, self.scale)
        imgui.end()
        imgui.pop_style_var()

    # The panels

    def _panels(self, width: float, height: float, top: float, now: float) -> None:
        _place(0, top, width, height)
        imgui.push_style_var(imgui.StyleVar_.window_padding, imgui.ImVec2(0, 0))
        imgui.push_style_color(imgui.Col_.window_bg, imgui.ImVec4(*theme.INK, 1))
        imgui.begin("panels", None, STILL)
        studio = self.studio
        for index, cell, rectangle in zip(studio.visible(), studio.cells, studio.rectangles, strict=True):
            self._panel(index, cell, rectangle, now)
        imgui.end()
        imgui.pop_style_color()
        imgui.pop_style_var()

    def _panel(self, index: int, cell, rectangle, now: float) -> None:
        studio, panel = self.studio, self.studio.panels[index]
        low, high = _corners(cell)
        self._mouse(index, rectangle)
        draw = imgui.get_window_draw_list()
        draw.push_clip_rect(low, high, True)
        draw.add_rect_filled(low, high, theme.packed((0.055, 0.063, 0.078, 1)))
        if panel.shown is not None:
            self._image(panel, rectangle, now)
            if index == studio.active and self._editor():
                self._editor().draw(rectangle)
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
        low, high = _corners(rectangle)
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
        low, high = _corners((x, top, width, height))
        draw.add_rect_filled(low, high, theme.packed((0.10, 0.03, 0.03, 0.88)))
        draw.push_clip_rect(*_corners(rectangle), True)
        place = imgui.ImVec2(x + pad, top + pad)
        draw.add_text(self.fonts.bold, size * 1.1, place, theme.packed(theme.WARNING), title)
        place = imgui.ImVec2(x + pad, top + pad + 1.8 * size)
        draw.add_text(self.fonts.numbers, size, place, theme.packed(theme.TEXT), text, wrap)
        draw.pop_clip_rect()

    def _mouse(self, index: int, rectangle) -> None:
        """Left drags orbit, Shift or the middle button pans, the wheel zooms, the right button with WASDQE flies.

        A view with click(x, y), in panel heights from the centre, is told where the left button went down and up.
        """
        x, y, width, height = rectangle
        studio, io = self.studio, imgui.get_io()
        imgui.set_cursor_screen_pos(imgui.ImVec2(x, y))
        buttons = imgui.ButtonFlags_
        flags = buttons.mouse_button_left | buttons.mouse_button_right | buttons.mouse_button_middle
        imgui.invisible_button(f"panel {index}", imgui.ImVec2(width, height), flags)
        if imgui.is_item_activated():
            studio.active = index
        if imgui.is_item_hovered():
            studio.panels[index].comparison.wipe = min(max((io.mouse_pos.x - x) / width, 0.0), 1.0)
            if studio.inspector:
                inspector.draw(studio.panels[index], rectangle, self.fonts, self.scale)
        editor = self._editor() if index == studio.active else None
        if editor and editor.mouse(rectangle):
            return
        if imgui.is_item_hovered() and imgui.is_mouse_double_clicked(0):
            studio.active = index
            studio.toggle("solo")
        if imgui.is_item_deactivated() and _stayed() and (io.key_ctrl or studio.picking):
            studio.focus((io.mouse_pos.x - x) / width, (io.mouse_pos.y - y) / height)
            return
        view = getattr(studio.panels[index].settings(), "view", None)
        if view is None:
            return
        moved = view
        dx, dy = io.mouse_delta.x / height, io.mouse_delta.y / height
        held = (
            imgui.is_item_active() or imgui.is_item_deactivated()
        )  # a slow frame may see the last move and the release
        if held and (dx or dy):
            left, middle = (imgui.is_mouse_down(b) or imgui.is_mouse_released(b) for b in (0, 2))
            moved = moved.pan(dx, dy) if middle or io.key_shift else moved.drag(dx, dy) if left else moved
        if imgui.is_item_active() and imgui.is_mouse_down(1):
            moved = _flown(moved, dx, dy, io.delta_time)
        px, py = (io.mouse_pos.x - x - width / 2) / height, (io.mouse_pos.y - y - height / 2) / height
        if hasattr(view, "click") and imgui.is_item_deactivated() and _stayed():
            moved = moved.click(px, py)
        if imgui.is_item_hovered() and io.mouse_wheel:
            studio.active = index
            moved = moved.scroll(io.mouse_wheel, px, py)
        if moved != view:
            studio.active = index
            studio.set_view(moved)

    # The controls

    def _sidebar(self, left: float, top: float, width: float, height: float) -> None:
        studio, panel = self.studio, self.studio.panel
        io, keyboard = imgui.get_io(), imgui.ConfigFlags_.nav_enable_keyboard
        io.config_flags = io.config_flags | keyboard if studio.typing else io.config_flags & ~keyboard
        _place(left, top, width, height)
        if studio.typing:
            imgui.set_next_window_focus()
        imgui.begin("controls", None, FIXED)
        imgui.push_item_flag(imgui.ItemFlags_.no_tab_stop, not studio.typing)  # Tab goes to the next panel
        imgui.push_font(self.fonts.bold, theme.FONT_SIZE * 1.1)
        imgui.text_wrapped(panel.scene.title)
        imgui.pop_font()
        imgui.text_disabled(f"{panel.scene.picture}   {panel.original.path.name}")
        imgui.spacing()
        scene, settings = panel.scene, panel.settings()
        imgui.push_id(f"{studio.active} {panel.original.path}")
        if self._editor():
            self._editor().controls()
            scene = panel.scene
        if imgui.collapsing_header("Settings", imgui.TreeNodeFlags_.default_open):
            scene = self._presets(scene)
            if scene == panel.scene:
                left = controls.edit(settings, _original(panel).settings)
                if left != settings:
                    studio.edit(left)
                    scene = panel.scene
        if imgui.collapsing_header("Exposure and tone", imgui.TreeNodeFlags_.default_open):
            scene = _with(scene, tone=controls.edit(scene.tone, _original(panel).tone))
        imgui.pop_id()
        if imgui.collapsing_header("Measured", imgui.TreeNodeFlags_.default_open):
            self._measured(panel)
        if scene != panel.scene:
            studio.change(scene, moved=imgui.is_any_item_active())
        imgui.pop_item_flag()
        imgui.end()

    def _presets(self, scene):
        """The scene, or the one that is chosen among those of its kind in its folder."""
        presets = self.studio.presets()
        if len(presets) < 2:
            return scene
        imgui.align_text_to_frame_padding()
        imgui.text_disabled("preset")
        imgui.same_line(imgui.get_cursor_start_pos().x + imgui.get_content_region_avail().x * 0.40)
        imgui.set_next_item_width(-imgui.get_frame_height() - imgui.get_style().item_inner_spacing.x - 1)
        here = self.studio.panel.original.path.stem
        if imgui.begin_combo("##preset", here if scene == self.studio.panel.original else f"{here} (changed)"):
            for preset in presets:
                if imgui.selectable(preset.path.stem, preset.path == self.studio.panel.original.path)[0]:
                    self.studio.open_here(preset)
                    scene = preset
            imgui.end_combo()
        return scene

    def _measured(self, panel) -> None:
        for name, value in {"device": panel.device, "way to the window": panel.way, **panel.report}.items():
            if not value and value != 0:
                continue
            words = str(name).replace("_", " ")
            if _is_series(value):
                imgui.text_disabled(words)
                self._bars(words, value)
            else:
                imgui.text_disabled(words)
                imgui.same_line(imgui.get_content_region_avail().x * 0.40 + imgui.get_cursor_start_pos().x)
                imgui.text_wrapped(_figure(value))
        if len(panel.counter.intervals) > 2:
            self._times(panel.counter.intervals, panel.costs)

    def _bars(self, words: str, values) -> None:
        """A series, such as the live rays by depth, as bars from 0 to its largest."""
        series = np.asarray(values, "f4")
        size = imgui.ImVec2(imgui.get_content_region_avail().x, 46 * self.scale)
        largest = float(series.max(initial=0.0)) or 1.0
        imgui.plot_histogram(f"##{words}", series, scale_min=0.0, scale_max=largest, graph_size=size)
        imgui.push_font(self.fonts.numbers, theme.FONT_SIZE * 0.87)
        imgui.push_text_wrap_pos(0.0)
        imgui.text_disabled(_figure(values))
        imgui.pop_text_wrap_pos()
        imgui.pop_font()

    def _times(self, intervals, costs) -> None:
        """From one frame of the panel to the next, and the part of it that its draw took, in milliseconds."""
        series, drawing = (1000 * np.asarray(seconds, "f4") for seconds in (intervals, costs))
        flags = implot.Flags_.no_mouse_text | implot.Flags_.no_inputs | implot.Flags_.no_title
        if implot.begin_plot("##times", imgui.ImVec2(-1, 120 * self.scale), flags):
            decorations = (
                implot.AxisFlags_.no_tick_labels | implot.AxisFlags_.no_tick_marks | implot.AxisFlags_.no_grid_lines
            )
            implot.setup_axes("", "ms", decorations, implot.AxisFlags_.no_menus)
            top = max(1.0, float(np.percentile(series, 99)) * 1.2)
            implot.setup_axes_limits(len(series) - RING, len(series), 0, top, imgui.Cond_.always)
            implot.plot_line("frame", series)
            implot.plot_line("draw", drawing[-len(series) :])
            implot.end_plot()


FLYING = {
    imgui.Key.w: (0, 0, 1), imgui.Key.s: (0, 0, -1), imgui.Key.a: (-1, 0, 0), imgui.Key.d: (1, 0, 0),
    imgui.Key.q: (0, -1, 0), imgui.Key.e: (0, 1, 0),
}  # fmt: skip


def _stayed() -> bool:
    """Whether the left button, let go in this frame, is where it was pressed: a click, not a drag."""
    way = imgui.get_mouse_drag_delta(0)
    return imgui.is_mouse_released(0) and way.x == way.y == 0


def _flown(view, dx: float, dy: float, seconds: float):
    """The view after this frame's flight: W A S D Q E move, the mouse turns; a view that cannot fly is dragged."""
    if not hasattr(view, "fly"):
        return view.drag(dx, dy) if dx or dy else view
    step = [sum(axis[k] for key, axis in FLYING.items() if imgui.is_key_down(key)) for k in range(3)]
    if any(step):
        view = view.fly(*(1.2 * seconds * part for part in step))
    return (view.turn(dx, dy) if hasattr(view, "turn") else view.drag(dx, dy)) if dx or dy else view


def _corners(rectangle):
    x, y, width, height = rectangle
    return imgui.ImVec2(x, y), imgui.ImVec2(x + width, y + height)


def _place(x: float, y: float, width: float, height: float) -> None:
    imgui.set_next_window_pos(imgui.ImVec2(x, y))
    imgui.set_next_window_size(imgui.ImVec2(max(width, 1), max(height, 1)))


def _with(scene, **changes):
    return replace(scene, **changes) if any(getattr(scene, k) != v for k, v in changes.items()) else scene


def _original(panel):
    """The scene that resets go back to; the shown one where another kind of picture was opened by undo."""
    return panel.original if type(panel.original.settings) is type(panel.scene.settings) else panel.scene


def _is_series(value) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 1 and all(isinstance(v, (int, float)) for v in value)


def _figure(value) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_figure(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return "  ".join(_figure(v) for v in value)
    return str(value)


def _facts(panel) -> list[str]:
    """How the frame came to the window, then what the picture reports, series first."""
    report = [(name, value) for name, value in panel.report.items() if name != "samples"]
    report.sort(key=lambda item: not _is_series(item[1]))
    return [panel.way] * bool(panel.way) + [f"{str(name).replace('_', ' ')} {_figure(value)}" for name, value in report]
