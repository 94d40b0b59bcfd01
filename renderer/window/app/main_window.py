"""The main window: toolbar, panels, timeline and sidebar of one frame; keys are dispatched to actions.

Each method draws one region from the AppState; what the user does goes back through the AppState's methods.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import Any, TypeVar

from renderer.plain import printable
from renderer.scene.scene import Scene
from renderer.window.app import lesson_column, menus, mouse, palette
from renderer.window.app.docking import Docking
from renderer.window.app.key_bindings import ACTIONS, FOCUS_CONTROLS
from renderer.window.app.overlays import Overlays
from renderer.window.boundary import contained
from renderer.window.controls import imgui, imgui_ctx, imguizmo, theme
from renderer.window.controls.choices import choose_index
from renderer.window.controls.settings import edit_settings, label
from renderer.window.controls.settings import sections as sections_of
from renderer.window.controls.shortcuts import Action, Modifiers, action_buttons, active_actions, chord, pressed
from renderer.window.flame_editor.view import FlameEditor
from renderer.window.panels import sections
from renderer.window.panels.panel import Panel, PanelEditor
from renderer.window.panels.panel_view import BAR_HEIGHT, PanelView
from renderer.window.scene_editor.editor import SceneEditor
from renderer.window.scene_editor.toy_input import ToyEditor
from renderer.window.state import AppState, open_files, panel_actions, unsaved
from renderer.window.state.edit_actions import control_context
from renderer.window.state.open_panels import GAP
from renderer.window.timeline import actions, view
from renderer.window.timeline.tracks import Tracks

TOOLBAR_HEIGHT, SIDEBAR_WIDTH = 38, 340  # at scale 1
CODE_RANGE = (0.15, 0.85)  # fractions of the width that the code panel may take
# Keys that work while the user types in the code panel; the editor takes the others.
TYPING_KEYS = {"Escape", "F1", "Shift+F1", "Ctrl+F1", "F5", "F6", "F11", "F12", "Shift+F12", "Ctrl+J", "Ctrl+P"}
TYPING_KEYS |= {*menus.KEYS["file"]} - {"", "Ctrl+S"}  # Ctrl+S saves the text
SHEET_RATIO = 0.5  # fraction of a small window that the controls take
# The class of the editor by kind of picture
EDITORS: dict[str, Any] = {"flame": FlameEditor, "flame3d": FlameEditor, "raytrace": SceneEditor, "toy": ToyEditor}
Answer = TypeVar("Answer")
Area = tuple[float, float, float, float]  # left, top, width, height in window units
FIXED_WINDOW = (
    imgui.WindowFlags_.no_title_bar | imgui.WindowFlags_.no_resize | imgui.WindowFlags_.no_move
    | imgui.WindowFlags_.no_saved_settings | imgui.WindowFlags_.no_bring_to_front_on_focus
)  # fmt: skip
NO_SCROLL = (
    FIXED_WINDOW | imgui.WindowFlags_.no_scrollbar | imgui.WindowFlags_.no_scroll_with_mouse | imgui.WindowFlags_.no_nav
)


class MainWindow:
    """Draws frames into a Dear ImGui context in which new_frame() was called."""

    def __init__(self, app: AppState, fonts: theme.Fonts, scale: float):
        self.app, self.fonts, self.scale = app, fonts, scale
        self.panel_view = PanelView(fonts, scale)
        self.docking = Docking(app, scale)
        self.overlays = Overlays(app, fonts, scale)
        self.tracks = Tracks(app)
        self.lesson = lesson_column.LessonColumn(app, fonts, scale)
        self.editors: dict[Panel, PanelEditor] = {}
        # _actions() makes the available actions, and the list of their keys, anew if this key has changed: the
        # editor's actions and the kind of settings.
        self._actions_key: tuple[list[Action], type | None] = [], None
        self._available: list[Action] = []
        self._keys: list[imgui.Key] = []
        self._wide_sidebar: bool | None = None  # None in a wide window; in a small one, the state to restore when wide
        self._code_fraction = 0.5  # fraction that the code takes of the width of panels and code
        self.modifiers_at_press: dict[imgui.Key, Modifiers] = {}  # filled by backends that know; see pressed()

    def draw(self, width: float, height: float) -> None:
        """Draws the window, of width x height units."""
        app, now = self.app, self.app.now()
        imguizmo.begin_frame()
        self.editors = {panel: editor for panel, editor in self.editors.items() if panel in app.panels}
        available = self._dispatch_keys(self._actions())
        is_small = self._adapt(width, height)
        toolbar, sidebar = self.scale * TOOLBAR_HEIGHT, self.scale * SIDEBAR_WIDTH if app.overlays.sidebar else 0.0
        sheet = 0.0  # the height of the controls below the panels
        if is_small and height > width:
            sidebar, sheet = 0.0, (height - toolbar) * SHEET_RATIO if app.overlays.sidebar else 0.0
        elif is_small:
            sidebar = min(sidebar, width * SHEET_RATIO)
        elif width < 2.2 * sidebar or height < 4 * toolbar:  # a tiny window has room for its panels only
            toolbar = sidebar = 0.0
        height -= sheet
        # From left to right: the lesson, the panels with the timeline below them, the code, the sidebar
        code = round((width - sidebar) * self._code_fraction) if toolbar and app.overlays.code else 0.0
        lesson = lesson_column.width(app, self.scale, width - sidebar - code) if toolbar else 0.0
        middle = width - sidebar - code - lesson  # the width of the panels
        timeline = view.height(app, self.tracks, self.scale) if toolbar and actions.shows_timeline(app) else 0.0
        below = int(height - toolbar - timeline) - GAP
        across = int(middle) - 2 * GAP
        app.panels.lay_out(int(lesson) + GAP, int(toolbar), across, below, int(BAR_HEIGHT * self.scale))
        if toolbar:
            with self._region("the toolbar", (0, 0, width, toolbar), (12, 6)):
                (self._short_toolbar if is_small else self._toolbar)(width, now, available)
        if lesson:
            with self._region("the lesson", (0, toolbar, lesson, height - toolbar), None):
                self.lesson.draw()
        self._panels((lesson, toolbar, middle, height - toolbar - timeline), now)
        if timeline:
            with self._region("the timeline", (lesson, height - timeline, middle, timeline), (12, 8)):
                view.draw(app, self.fonts, self.scale, self.tracks, ACTIONS)
        if code:
            self._code(width - sidebar - code, toolbar, code, height - toolbar)
        if sidebar:
            self._sidebar(width - sidebar, toolbar, sidebar, height - toolbar)
        elif sheet:
            self._sidebar(0.0, height, width, sheet)
        with app.errors_as_messages("following the code"):
            self.overlays.code.update()
        overlay = self.edit(app.panel, methodcaller("overlay")) is True  # true if another frame is needed
        app.loop.needs_frame = overlay or self.overlays.code.waits_for_keys
        with app.errors_as_messages("drawing an overlay"):
            self.overlays.draw(available, width, height, now)
        app.loop.is_idle_input = not imgui.is_any_item_active() and not any(imgui.is_mouse_down(b) for b in range(3))
        app.loop.frame_rate.add(now)

    def _adapt(self, width: float, height: float) -> bool:
        """Returns true if the window is small, as on a telephone: it gets a short toolbar and controls in half of it.

        The controls close when the window becomes small, and return when it becomes wide.
        """
        is_small = width < 2.2 * SIDEBAR_WIDTH * self.scale and height > 8 * TOOLBAR_HEIGHT * self.scale
        sidebar = self.app.overlays.sidebar
        if is_small != (self._wide_sidebar is not None):
            if self._wide_sidebar is None:
                self._wide_sidebar, sidebar.is_on = sidebar.is_on, False
            else:
                sidebar.is_on, self._wide_sidebar = self._wide_sidebar, None
        return is_small

    def panel_editor(self, panel: Panel) -> PanelEditor | None:
        """The editor of a panel; it lives as long as the panel shows its kind of picture."""
        editor_class = EDITORS.get(panel.scene.picture)
        if editor_class is None:
            self.editors.pop(panel, None)
        elif not isinstance(self.editors.get(panel), editor_class):
            self.editors[panel] = editor_class(self.app, panel, self.fonts, self.scale)
        return self.editors.get(panel)

    def edit(self, panel: Panel, use: Callable[[PanelEditor], Answer]) -> Answer | None:
        """Returns use(editor of the panel); None without an editor. An editor that raises is discarded."""

        def discard(error: Exception, sentence: str) -> None:
            self.editors.pop(panel, None)
            self.app.show_message(sentence)

        with contained(f"the editor of {panel.original.path.name}", discard):
            editor = self.panel_editor(panel)
            return use(editor) if editor is not None else None
        return None  # the editor failed

    def _actions(self) -> list[Action]:
        """The actions of keys and of the palette for the active panel."""
        panel = self.app.panel
        of_editor = self.edit(panel, methodcaller("actions")) or []
        key = of_editor, type(panel.scene.settings)
        if self._actions_key != key:
            self._actions_key = key
            self._available = active_actions([*of_editor, *ACTIONS], panel.scene.settings, panel_actions.step_setting)
            self._keys = list({chord(action.keys).key for action in self._available})
        return self._available

    def _dispatch_keys(self, available: list[Action]) -> list[Action]:
        """Runs the action whose keys were pressed, unless the keyboard types text or works the controls.

        Returns the actions that are available then.
        """
        app, io = self.app, imgui.get_io()
        escape = imgui.is_key_pressed(imgui.Key.escape)
        if app.dialog is not None or app.overlays.question is not None:  # both take all keys
            return available
        types_code = self.overlays.code.is_focused and app.overlays.code.is_on
        types_elsewhere = io.want_text_input and not types_code
        popups = imgui.get_current_context().open_popup_stack.size()
        if escape and popups and not types_elsewhere and not app.input.keyboard_navigation:
            imgui.internal.close_popup_to_level(popups - 1, True)
            return available
        if app.overlays.palette:
            if escape:
                app.escape()
            return available
        if types_code:
            self._run_pressed([action for action in available if action.keys in TYPING_KEYS])
            return available
        if app.input.picture_keys:  # the picture reads the keyboard, but for F1 to F12 and chords
            kept = ("F", "Escape", "Ctrl+", "Alt+")
            available = [action for action in available if action.keys.startswith(kept) and action.keys != "F"]
        if io.want_text_input or app.input.keyboard_navigation or imgui.is_popup_open("", imgui.PopupFlags_.any_popup):
            if escape and not io.want_text_input or pressed(FOCUS_CONTROLS, self.modifiers_at_press):
                app.input.keyboard_navigation.is_on = False
            return available
        if not any(map(imgui.is_key_pressed, self._keys)):  # nearly always
            return available
        return self._actions() if self._run_pressed(available) else available

    def _run_pressed(self, actions: list[Action]) -> bool:
        """Runs the first of the actions whose keys were pressed; returns true if there is one."""
        is_flying = imgui.is_mouse_down(1)  # app/mouse.py then reads W A S D Q E
        for action in actions:
            is_flight = is_flying and chord(action.keys).key in mouse.FLY_KEYS
            if pressed(action, self.modifiers_at_press) and not is_flight:
                theme.hide_hints()
                self.app.run(action)
                return True
        return False

    # Toolbar

    def _toolbar(self, width: float, now: float, available: list[Action]) -> None:
        """Draws the row above the panels: menus, buttons, and the frame rate or the progress of an export."""
        app = self.app
        imgui.align_text_to_frame_padding()
        theme.text_in(self.fonts.bold, "Rayfold", size=theme.LARGE)
        imgui.same_line(0, 16 * self.scale)
        menus.file_menu(app, available, self.scale)
        menus.add_menu(app, self.scale)
        imgui.same_line(0, 12 * self.scale)
        labels = {"Resume" if app.panel.paused else "Pause": "Space", "Restart": "R"}
        labels |= {"All panels" if app.panels.maximized else "Maximize": "Enter", "Previous": "P", "Next": "N"}
        labels |= {"Code": "Ctrl+J", "Find": "Ctrl+P", "Screenshot": "F12", "Controls": "H", "Keys": "F1"}
        action_buttons(app.run, ACTIONS, labels)
        panels = "1 panel" if len(app.panels) == 1 else f"{len(app.panels)} panels"
        exports = app.export is not None and app.export.is_running
        summary = f"{panels}   window {app.loop.frame_rate.rate(now):5.1f} fps"
        summary = f"export {app.export.status}" if app.export and exports else summary
        with imgui_ctx.push_font(self.fonts.numbers, theme.FONT_SIZE):
            left = width - imgui.calc_text_size(summary).x - 12 * self.scale
            if left > imgui.get_item_rect_max().x + 10:
                imgui.same_line(left)
                (imgui.text if exports else imgui.text_disabled)(summary)
                if exports and imgui.is_item_clicked():
                    app.overlays.picture.is_on = True

    def _short_toolbar(self, width: float, now: float, available: list[Action]) -> None:
        """The toolbar of a small window, as on a telephone."""
        app = self.app
        menus.short_menu(app, available, self.scale)
        labels = {"Resume" if app.panel.paused else "Pause": "Space"}
        if len(app.panels) > 1:
            labels |= {"All" if app.panels.maximized else "One": "Enter", "Next": "Tab"}
        action_buttons(app.run, ACTIONS, labels | {"Controls": "H"})

    # Panels

    def _panels(self, rect: Area, now: float) -> None:
        """Draws the displayed panels with their title bars, and handles the mouse over each."""
        background = imgui_ctx.push_style_color(imgui.Col_.window_bg, (*theme.BACKGROUND, 1))
        with background, self._region("the panels", rect, (0, 0)):
            app = self.app
            self.docking.drag_splitters()
            for panel, panel_rect, image_rect in app.panels.shown:
                if panel not in app.panels:
                    continue
                index = app.panels.index(panel)
                self.docking.title_bar(index, panel_rect, image_rect)
                with panel.contain_errors():
                    mouse.handle_mouse(app, index, image_rect, self.edit, self.fonts, self.scale)
                active = index == app.panels.active
                overlay = partial(self.edit, panel, methodcaller("draw", image_rect)) if active else None
                with panel.contain_errors():
                    title = ("* " if unsaved.has_work(app, panel) else "") + app.panels.title(panel)
                    self.panel_view.draw(panel, title, panel_rect, image_rect, now, active, overlay)
                if active and len(app.panels) > 1 and not app.panels.maximized:
                    low, high = theme.corners(panel_rect)
                    imgui.get_window_draw_list().add_rect(low, high, theme.color_u32(theme.ACCENT), 0, 1.5 * self.scale)
            self.docking.drag_panel()

    # The code panel

    def _code(self, left: float, top: float, width: float, height: float) -> None:
        """The code panel, whose left edge can be dragged."""
        edge = GAP * self.scale
        with self._region("the code", (left + edge, top, width - edge, height), (8, 8), FIXED_WINDOW):
            self.overlays.code.draw()
        with self._region("the edge of the code", (left, top, edge, height), (0, 0)):
            imgui.invisible_button("edge", (edge, height))
            if imgui.is_item_hovered() or imgui.is_item_active():
                imgui.set_mouse_cursor(imgui.MouseCursor_.resize_ew)
            if imgui.is_item_active() and imgui.get_io().mouse_delta.x:
                whole = width / self._code_fraction
                moved = self._code_fraction - imgui.get_io().mouse_delta.x / whole
                self._code_fraction = min(max(moved, CODE_RANGE[0]), CODE_RANGE[1])

    # Sidebar

    def _sidebar(self, left: float, top: float, width: float, height: float) -> None:
        """Draws the controls of the selected panel beside the panels, under its title."""
        app, panel = self.app, self.app.panel
        io, keyboard = imgui.get_io(), imgui.ConfigFlags_.nav_enable_keyboard
        io.config_flags = io.config_flags | keyboard if app.input.keyboard_navigation else io.config_flags & ~keyboard
        if app.input.keyboard_navigation:
            imgui.set_next_window_focus()
        with self._region("the controls", (left, top, width, height), None, FIXED_WINDOW):
            # Tab selects the next panel, unless the keyboard works the controls or types into one
            uses_tab = app.input.keyboard_navigation.is_on or io.want_text_input
            imgui.push_item_flag(imgui.ItemFlags_.no_tab_stop, not uses_tab)
            with imgui_ctx.push_font(self.fonts.bold, theme.FONT_SIZE * theme.LARGE):
                self._title(panel)
            changed = "  (not saved)" if unsaved.has_work(app, panel) else ""
            path, kind = panel.original.path, palette.KIND_WORDS.get(panel.scene.picture, panel.scene.picture)
            kind = kind.partition(",")[0].replace("_", " ")
            if panel.fixed_size:  # a picture file: a PNG by Rayfold holds its scene, which is drawn; others are shown
                kind = "picture file" if panel.scene.picture == "toy" else f"{kind}, drawn anew from"
            imgui.text_disabled(
                theme.cut(f"{kind}   {printable(path.name)}{changed}", imgui.get_content_region_avail().x)
            )
            imgui.spacing()
            imgui.push_id(f"{app.panels.active} {panel.original.path}")
            self._open_preset()
            settings = panel.settings()
            self.edit(panel, methodcaller("controls"))
            for section, titles in sections_of(type(settings)).items():
                if imgui.collapsing_header(section, imgui.TreeNodeFlags_.default_open):
                    hidden = self.edit(panel, methodcaller("hidden_settings"))
                    context = control_context(app, panel, hidden)
                    edited = edit_settings(settings, _reset_scene(panel).settings, context, "", titles)
                    if edited != settings:
                        panel_actions.edit_settings(app, edited)
            if imgui.collapsing_header("Exposure and tone", imgui.TreeNodeFlags_.default_open):
                tone = edit_settings(panel.scene.tone, _reset_scene(panel).tone)
                panel.show(replace(panel.scene, tone=tone), moved=imgui.is_any_item_active())
            imgui.pop_id()
            sections.draw_inspection(panel, self.scale, app.ask_file)
            if imgui.collapsing_header("Statistics", imgui.TreeNodeFlags_.default_open):
                sections.draw_statistics(panel, self.fonts, self.scale)
            imgui.pop_item_flag()

    def _title(self, panel: Panel) -> None:
        """The title; for a scene file an input field, which Enter accepts."""
        title = self.app.panels.title(panel)
        if panel.original.path.suffix.lower() != ".toml":
            imgui.text_wrapped(title)
            return
        imgui.set_next_item_width(-1)
        clear = imgui_ctx.push_style_color(imgui.Col_.frame_bg, (0, 0, 0, 0))
        with clear, imgui_ctx.push_style_var(imgui.StyleVar_.frame_padding, (0, 2 * self.scale)):
            entered, typed = imgui.input_text("##title", title, imgui.InputTextFlags_.enter_returns_true)
        if not imgui.is_item_active() and imgui.calc_text_size(title).x > imgui.get_item_rect_size().x:
            (_, low), (right, high) = imgui.get_item_rect_min(), imgui.get_item_rect_max()
            left = right - imgui.calc_text_size(" … ").x
            draw, background = imgui.get_window_draw_list(), theme.color_u32(theme.COLORS["window_bg"])
            draw.add_rect_filled((left, low), (right, high), background)
            draw.add_text((left, low + imgui.get_style().frame_padding.y / 2), theme.color_u32(theme.TEXT), "…")
        theme.hint(f"{title}\nclick to type another title, Enter takes it")
        typed = " ".join("".join(c if c.isprintable() else " " for c in typed).split())
        if entered and typed and typed != title:
            panel.show(replace(panel.scene, title=typed))

    def _open_preset(self) -> None:
        """A list of the scenes of this kind in the scene's folder; opens the chosen one."""
        presets = open_files.presets(self.app)
        if len(presets) < 2:
            return
        label("scene")  # scenes of the open file's folder
        panel, paths = self.app.panel, [preset.path for preset in presets]
        name = panel.original.path.stem
        shown = f"{name} (not saved)" if unsaved.has_work(self.app, panel) else name
        current = paths.index(panel.original.path) if panel.original.path in paths else -1
        chosen = choose_index("##preset", shown, [path.stem for path in paths], current)
        if chosen is not None:
            open_files.open_in_active_panel(self.app, presets[chosen])

    @contextmanager
    def _region(self, name: str, rect: Area, padding: tuple[int, int] | None, flags: int = NO_SCROLL) -> Iterator[None]:
        """A fixed region of the window, into which the block draws; `padding` is at scale 1, None means the theme's.

        An error ends the block; the message line shows it.
        """
        x, y, width, height = rect
        imgui.set_next_window_pos((x, y))
        imgui.set_next_window_size((max(width, 1), max(height, 1)))
        scaled = (padding[0] * self.scale, padding[1] * self.scale) if padding else imgui.get_style().window_padding
        with imgui_ctx.push_style_var(imgui.StyleVar_.window_padding, scaled), imgui_ctx.begin(name, None, flags):
            with self.app.errors_as_messages(f"drawing {name}"):
                yield


def _reset_scene(panel: Panel) -> Scene:
    """The scene that reset buttons restore; the current one if undo brought back another kind of picture."""
    return panel.original if type(panel.original.settings) is type(panel.scene.settings) else panel.scene
