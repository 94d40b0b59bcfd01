"""Everything that is drawn around the panels: their frames and figures, the bar, the controls.

Each function draws one part of one frame from the Studio's state; what the user does goes back through its methods.
"""

import importlib.util
from dataclasses import replace

from renderer.window.app import open_files, save_files
from renderer.window.app.key_bindings import ACTIONS, TO_CONTROLS
from renderer.window.app.overlays import Overlays
from renderer.window.app.shortcuts import chord, pressed, table
from renderer.window.app.state import Studio
from renderer.window.controls import statistics, theme
from renderer.window.controls.toolkit import imgui
from renderer.window.panels import mouse
from renderer.window.panels.docking import Handles
from renderer.window.panels.panel_view import STRIP, PanelView
from renderer.window.timeline import actions, view

BAR, SIDEBAR = 38, 340  # height of the top bar, width of the controls; at scale 1
FIXED = (
    imgui.WindowFlags_.no_title_bar | imgui.WindowFlags_.no_resize | imgui.WindowFlags_.no_move
    | imgui.WindowFlags_.no_saved_settings | imgui.WindowFlags_.no_bring_to_front_on_focus
)  # fmt: skip
STILL = FIXED | imgui.WindowFlags_.no_scrollbar | imgui.WindowFlags_.no_scroll_with_mouse | imgui.WindowFlags_.no_nav


class Interface:
    """One frame of the window's contents, in a Dear ImGui context that has a frame begun."""

    def __init__(self, studio: Studio, fonts: theme.Fonts, scale: float):
        self.studio, self.fonts, self.scale = studio, fonts, scale
        self.view = PanelView(studio, fonts, scale)
        self.handles = Handles(studio, scale)
        self.overlays = Overlays(studio, fonts, scale)
        self.editors: dict = {}  # by kind of picture; None where there is none
        self.held: dict = {}  # key -> (ctrl, shift, alt) at its last press, where the window tells

    def draw(self, width: float, height: float, pixels: float = 1.0) -> None:
        """The whole window of width x height units; `pixels` is framebuffer pixels a unit."""
        studio, now = self.studio, self.studio.clock()
        editor = self._editor()
        live = table([*(editor.actions() if editor else []), *ACTIONS], studio.panel.scene.settings)
        self._keys(live)
        bar, side = self.scale * BAR, self.scale * SIDEBAR if studio.sidebar else 0.0
        if width < 2.2 * side or height < 4 * bar:  # a tiny window shows its panels alone
            bar = side = 0.0
        gap = studio.gap
        line = self.scale * view.HEIGHT if bar and actions.shows_timeline(studio) else 0.0
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
            if pressed(action, self.held) and not (flying and chord(action.keys).key in mouse.FLYING):
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
        self._button("Previous", "P", lambda s: open_files.next_scene(s, -1))
        self._button("Next", "N", lambda s: open_files.next_scene(s, 1))
        self._button("Screenshot", "F12", save_files.screenshot)
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
        view.draw(self.studio, self.fonts, self.scale)
        imgui.end()
        imgui.pop_style_var()

    # The panels

    def _panels(self, width: float, height: float, top: float, now: float) -> None:
        _place(0, top, width, height)
        imgui.push_style_var(imgui.StyleVar_.window_padding, imgui.ImVec2(0, 0))
        imgui.push_style_color(imgui.Col_.window_bg, imgui.ImVec4(*theme.INK, 1))
        imgui.begin("panels", None, STILL)
        studio = self.studio
        self.handles.sashes()
        for index, cell, rectangle in zip(studio.visible(), studio.cells, studio.rectangles, strict=True):
            self.handles.title(index, cell, rectangle)
            mouse.work(studio, index, rectangle, self._editor, self.fonts, self.scale)
            self.view.draw(index, cell, rectangle, now, self._editor() if index == studio.active else None)
        self.handles.carry()
        imgui.end()
        imgui.pop_style_color()
        imgui.pop_style_var()

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
                left = settings.edit(settings, _original(panel).settings)
                if left != settings:
                    studio.edit(left)
                    scene = panel.scene
        if imgui.collapsing_header("Exposure and tone", imgui.TreeNodeFlags_.default_open):
            scene = _with(scene, tone=settings.edit(scene.tone, _original(panel).tone))
        imgui.pop_id()
        if imgui.collapsing_header("Measured", imgui.TreeNodeFlags_.default_open):
            statistics.draw(panel, self.fonts, self.scale)
        if scene != panel.scene:
            studio.change(scene, moved=imgui.is_any_item_active())
        imgui.pop_item_flag()
        imgui.end()

    def _presets(self, scene):
        """The scene, or the one that is chosen among those of its kind in its folder."""
        presets = open_files.presets(self.studio)
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
                    open_files.open_here(self.studio, preset)
                    scene = preset
            imgui.end_combo()
        return scene


def _place(x: float, y: float, width: float, height: float) -> None:
    imgui.set_next_window_pos(imgui.ImVec2(x, y))
    imgui.set_next_window_size(imgui.ImVec2(max(width, 1), max(height, 1)))


def _with(scene, **changes):
    return replace(scene, **changes) if any(getattr(scene, k) != v for k, v in changes.items()) else scene


def _original(panel):
    """The scene that resets go back to; the shown one where another kind of picture was opened by undo."""
    return panel.original if type(panel.original.settings) is type(panel.scene.settings) else panel.scene
