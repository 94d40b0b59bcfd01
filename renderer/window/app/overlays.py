"""Overlays of the window: key help, command palette, questions, dialogs, messages, and the tour of the first start.

MainWindow draws them last in each frame; OverlayState says which are open. A file in the state folder notes
that the user dismissed the tour, which Ctrl+F1 shows again.
"""

from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import get_args

from renderer.paths import ASSETS
from renderer.plain import printable
from renderer.system.files import file_stamp, read_toml
from renderer.window.app import palette
from renderer.window.app.code_view import CodeView
from renderer.window.app.export_dialog import ExportDialog
from renderer.window.app.reference import Reference
from renderer.window.controls import imgui, imgui_ctx, theme
from renderer.window.controls.shortcuts import Action
from renderer.window.document import items
from renderer.window.panels.panel_view import BAR_HEIGHT
from renderer.window.state import AppState, edit_actions, save_files, session, unsaved

PALETTE_ROWS, PALETTE_WIDTH = 12, 640  # the width at scale 1
SPAN_ALL_COLUMNS = imgui.SelectableFlags_.span_all_columns
Groups = dict[str, dict[str, list[str]]]  # for the key help: group -> name of an action -> its keys
HELP = read_toml(ASSETS / "tables" / "tour.toml")
TOUR_STEPS = HELP["steps"]


class Overlays:
    """Draws the overlays that are open in AppState."""

    def __init__(self, app: AppState, fonts: theme.Fonts, scale: float):
        self.app, self.fonts, self.scale = app, fonts, scale
        self.dialogs = ExportDialog(app, app.overlays.picture, False), ExportDialog(app, app.overlays.film, True)
        self.reference = Reference(app, fonts, scale)
        self.code = CodeView(app, fonts, scale)
        self._filter, self._row = "", 0  # the palette's typed text, and its selected match
        # Characters that were typed before the palette's field takes keys, and whether the field takes them by now
        self._early, self._takes_keys = "", False

    def draw(self, actions: list[Action], width: float, height: float, now: float) -> None:
        """Draws over a window of width x height units; messages and cards lie over the panels' pictures alone."""
        left, top, across, down = self.app.panels.area
        right, bottom = left + across, top + down
        if self.app.overlays.help:
            self._help(actions, width, height)
        if self.app.overlays.palette:
            self._palette(actions, width, height)
        if self.app.overlays.dropped is not None:
            self._dropped(self.app.overlays.dropped, width, height)
        self.app.follow_export()
        for dialog in self.dialogs:
            dialog.draw(width, height, self.scale)
        self.reference.draw(width, height)
        _tour(self.app, self.fonts, right, bottom - BAR_HEIGHT * self.scale, self.scale)
        if self.app.dialog is not None:
            self.app.dialog.draw(width, height, self.scale)
            if not self.app.dialog.is_open:
                self.app.dialog = None
        else:
            self._question(width, height)
        self._recovered(right, top)
        self._message((left + right) / 2, top + BAR_HEIGHT * self.scale, across, now)

    def _begin_centered_window(self, title: str, width: float, height: float) -> None:
        flags = imgui.WindowFlags_.always_auto_resize | imgui.WindowFlags_.no_move
        if not theme.begin_dialog(title, (width, 0.0), (width, height * 0.94), flags):
            self.app.escape()

    def _dropped(self, path: Path, width: float, height: float) -> None:
        """Asks the user whether to add a dropped file to the scene or to open it."""
        self._begin_centered_window("Dropped", min(width * 0.9, 420 * self.scale), height)
        imgui.text_wrapped(printable(path.name))
        is_shape = path.suffix.lower() in edit_actions.SHAPE_SUFFIXES
        added = items.shorten(self.app.panel.scene.title) + ("" if is_shape else " as a texture")
        opened = {"open": "Open in this panel", "panel": "Open in a new panel"} if is_shape else {}
        for choice, label in ({"add": f"Add to {added}"} | opened | {"cancel": "Cancel"}).items():
            if imgui.button(label, (-1.0, 0.0)):
                if choice == "cancel":
                    self.app.overlays.dropped = None
                else:
                    edit_actions.take_dropped(self.app, choice)
        imgui.end()

    def _question(self, width: float, height: float) -> None:
        """Asks before work is lost; Enter saves, D discards, Escape cancels."""
        question = unsaved.poll(self.app)
        if question is None:
            return
        title = f"{question.doing}: not saved###Not saved"
        self._begin_centered_window(title, min(width * 0.9, 460 * self.scale), height)
        imgui.text_wrapped(question.text(self.app.panels.title))
        imgui.spacing()
        keys, is_new = (imgui.Key.enter, imgui.Key.d, imgui.Key.escape), imgui.is_window_appearing()
        chosen: unsaved.Choice | None = None
        # The choices are "save", "discard" and "cancel", the labels and keys in the same order.
        for choice, label, key in zip(get_args(unsaved.Choice), question.labels, keys, strict=True):
            background = theme.COLORS["button_active" if key == imgui.Key.enter else "button"]
            with imgui_ctx.push_style_color(imgui.Col_.button, background):
                is_clicked = imgui.button(label)
            if is_clicked or not is_new and imgui.is_key_pressed(key, False):
                chosen = choice
            imgui.same_line()
        imgui.end()
        if chosen:
            with self.app.errors_as_messages("saving"):
                unsaved.answer(self.app, chosen, save_files.save_scene)

    def _recovered(self, right: float, top: float) -> None:
        """A card about the session that a crash has left, which stays until it is answered."""
        kept = self.app.overlays.recovered
        if kept is None:
            return
        margin = theme.CARD_MARGIN * self.scale
        corner = (right - margin, top + margin)
        theme.begin_card("Recovered", "The last window ended unexpectedly", self.fonts, corner, 0.0, self.scale)
        imgui.text_wrapped(f"Its panels were saved: {kept.describe()}")
        is_opened = imgui.button("Open what was recovered")
        imgui.same_line()
        is_closed = theme.button("Not now", "File > Sessions keeps it")
        imgui.end()
        self.app.overlays.recovered = None if is_opened or is_closed else kept
        if is_closed:
            session.answer(self.app.session_base, file_stamp(kept.path))
        if is_opened:
            unsaved.restore(self.app, kept.path)

    def _help(self, actions: list[Action], width: float, height: float) -> None:
        """The list of all keys by group, in up to three columns."""
        self._begin_centered_window("Keys", min(width * 0.94, 1120 * self.scale), height)
        groups: Groups = defaultdict(lambda: defaultdict(list))
        for action in actions:
            groups[action.group][action.name].append(action.keys)
        columns = max(1, min(3, int(imgui.get_content_region_avail().x / (330 * self.scale))))
        stretched = imgui.TableFlags_.sizing_stretch_same  # columns that fit their content give wrapped text no width
        dense = imgui_ctx.push_style_var(imgui.StyleVar_.item_spacing, (8 * self.scale, 2 * self.scale))
        with dense:
            if imgui.begin_table("keys", columns, stretched):
                for column in _balance(groups, columns):
                    imgui.table_next_column()
                    for group in column:
                        self._group(group, groups[group])
                imgui.end_table()
        with imgui_ctx.push_text_wrap_pos(0.0):
            imgui.text_disabled(HELP["mouse"])
        imgui.end()

    def _group(self, group: str, keys_by_name: dict[str, list[str]]) -> None:
        theme.text_in(self.fonts.bold, group, theme.ACCENT)
        for name, keys in keys_by_name.items():
            theme.text_in(self.fonts.numbers, _join_keys(keys))
            imgui.same_line(max(160 * self.scale, imgui.get_item_rect_size().x + 16 * self.scale))
            theme.text_in(self.fonts.text, name, theme.DIM)
        imgui.spacing()

    def _palette(self, actions: list[Action], width: float, height: float) -> None:
        """Draws the command palette, whose words filter actions by name and group.

        imgui-bundle's imgui_command_palette (tried with 1.93's) has one list of commands a process, where each window
        of `serve` has its own; it shows no keys, searches no groups and does not close by Escape.
        """
        self._begin_centered_window("Commands", min(width * 0.9, PALETTE_WIDTH * self.scale), height)
        if imgui.is_window_appearing():
            imgui.set_keyboard_focus_here()
            self._filter, self._row, self._early, self._takes_keys = "", 0, "", False
        if not self._takes_keys:
            self._early += "".join(map(chr, imgui.get_io().input_queue_characters))
        imgui.set_next_item_width(-1)
        before = self._filter
        flags = imgui.InputTextFlags_.enter_returns_true | imgui.InputTextFlags_.callback_always
        entered, self._filter = imgui.input_text("##filter", before, flags, self._take_early)
        words = self._filter.lower().split()
        matches = palette.matches([*actions, *palette.entries(self.app)], words) if words else actions
        down, up = (int(imgui.is_key_pressed(key)) for key in (imgui.Key.down_arrow, imgui.Key.up_arrow))
        self._row = min(max(self._row + down - up, 0), max(len(matches) - 1, 0)) if self._filter == before else 0
        chosen = matches[self._row] if entered and matches else None
        first = max(self._row - PALETTE_ROWS + 1, 0)
        imgui.push_style_color(imgui.Col_.header, theme.COLORS["button_active"])
        if matches and imgui.begin_table("commands", 2, imgui.TableFlags_.pad_outer_x):
            imgui.table_setup_column("name", imgui.TableColumnFlags_.width_stretch)
            imgui.table_setup_column("keys", imgui.TableColumnFlags_.width_fixed, 150 * self.scale)
            for row, action in enumerate(matches[first : first + PALETTE_ROWS], first):
                imgui.table_next_column()
                name = theme.cut(action.name, imgui.get_content_region_avail().x)
                if imgui.selectable(f"{name}##{row}", row == self._row, SPAN_ALL_COLUMNS)[0]:
                    chosen = action
                theme.hint(action.name if name != action.name else "")
                imgui.table_next_column()
                (imgui.text if row == self._row else imgui.text_disabled)(action.keys or action.group)
            imgui.end_table()
        imgui.pop_style_color()
        if not matches:
            imgui.text_disabled("nothing found: scenes, views, settings and all actions were searched")
        imgui.end()
        if chosen:
            self.app.overlays.palette.is_on = False
            self.app.run(chosen)

    def _take_early(self, data: imgui.InputTextCallbackData) -> int:
        """Inserts what was typed before the field had the focus. Dear ImGui calls this in each frame in which it has.

        The field would lose the first letter otherwise.
        """
        if self._early:
            data.clear_selection()
            data.insert_chars(data.buf_text_len, self._early)
        self._early, self._takes_keys = "", True
        return 0

    def _message(self, middle: float, above: float, width: float, now: float) -> None:
        """A line under the title bars, where neither a card nor the status bars lie."""
        text = self.app.current_message(now)
        if not text:
            return
        draw, pad = imgui.get_foreground_draw_list(), 12 * self.scale
        wrap = max(width - 8 * pad, 1.0)
        size = imgui.calc_text_size(text, False, wrap)
        left, top = middle - size.x / 2, above + 1.5 * pad
        theme.caption(draw, self.fonts.text, theme.FONT_SIZE * self.scale, left, top, text, wrap, 2 * pad / 3)


def _join_keys(keys: list[str]) -> str:
    """The keys of one action as one text, such as "1 to 9" or "Shift+arrows"."""
    if len(keys) == 1:
        return keys[0]
    if all(key.rpartition("+")[2] in ("Left", "Right", "Up", "Down") for key in keys):
        modifiers, plus, _ = keys[0].rpartition("+")
        return f"{modifiers}{plus}arrows"
    return f"{keys[0]} to {keys[-1]}"


def _balance(groups: Groups, columns: int) -> list[list[str]]:
    """The names of the groups in each column, with about as many lines in each."""
    out: list[list[str]] = [[] for _ in range(columns)]
    lengths = [0] * columns
    for group, lines in sorted(groups.items(), key=lambda item: -len(item[1])):
        shortest = lengths.index(min(lengths))
        out[shortest].append(group)
        lengths[shortest] += len(lines) + 2
    return out


def _tour(app: AppState, fonts: theme.Fonts, right: float, bottom: float, scale: float) -> None:
    """Draws the current step of the tour in the lower right corner of the panels, which end at `right` and `bottom`."""
    step = app.overlays.tour_step
    if step is None:
        return
    title, text = TOUR_STEPS[step]["title"], TOUR_STEPS[step]["text"]
    margin, is_last = theme.CARD_MARGIN * scale, step == len(TOUR_STEPS) - 1
    heading = f"{title}   {step + 1} of {len(TOUR_STEPS)}"
    theme.begin_card("Tour", heading, fonts, (right - margin, bottom - margin), 1.0, scale)
    imgui.text_wrapped(text)
    imgui.spacing()
    if theme.button("Back", is_enabled=step > 0):
        app.overlays.tour_step = step - 1
    imgui.same_line()
    if imgui.button("Done" if is_last else "Next"):
        if is_last:
            dismiss_tour(app)
        else:
            app.overlays.tour_step = step + 1
    imgui.same_line()
    if not is_last and imgui.button("Skip the tour"):
        dismiss_tour(app)
    imgui.end()


def dismiss_tour(app: AppState) -> None:
    """Ends the tour for good."""
    app.overlays.tour_step = None
    if app.overlays.tour_marker is not None:
        with suppress(OSError):  # if the file cannot be written, the tour returns at the next start
            app.overlays.tour_marker.parent.mkdir(parents=True, exist_ok=True)
            app.overlays.tour_marker.touch()


def start_tour(app: AppState) -> None:
    """Shows the tour from its first step."""
    app.overlays.tour_step = 0
