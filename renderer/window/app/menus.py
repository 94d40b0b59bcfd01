"""The menus of the toolbar: "File", "Add", and "Menu" of a small window, which joins them.

MainWindow draws them; an entry runs the Action that key_bindings.py lists under the same keys.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path

from renderer.lessons.lesson import bundled_lessons
from renderer.paths import ASSETS
from renderer.system.files import read_toml
from renderer.window.controls import imgui, theme
from renderer.window.controls.shortcuts import Action
from renderer.window.document import creation
from renderer.window.document.items import shorten
from renderer.window.state import AppState, edit_actions, lesson_actions, open_files, unsaved
from renderer.window.state.session import KeptSession, kept_sessions

KEYS: dict[str, list[str]] = read_toml(ASSETS / "tables" / "menus.toml")  # the keys of the actions of each menu
Entries = list[tuple[str, Callable[[], object]]]  # labels with what a click on them does
MAX_FOLDER = 40  # characters of a recent file's folder


@contextmanager
def _menu_button(label: str, scale: float, tooltip: str = "", opens: bool = False) -> Iterator[bool]:
    """A button and its menu, which `opens` or a click opens; yields true while the block draws the menu's entries."""
    if theme.button(label, tooltip) or opens:
        imgui.open_popup(f"{label} menu")
    imgui.set_next_window_pos((imgui.get_item_rect_min().x, imgui.get_item_rect_max().y))
    is_open = imgui.begin_popup(f"{label} menu")
    yield is_open
    if is_open:
        imgui.end_popup()
    imgui.same_line(0, theme.UNIT * scale)


def _submenu(app: AppState, title: str, entries: Entries | Callable[[], Entries]) -> None:
    """A menu of entries, or of the entries that a function returns, which is called while the menu is open."""
    if not imgui.begin_menu(title):
        return
    offered = entries() if callable(entries) else entries
    for number, (label, run) in enumerate(offered):
        if imgui.menu_item_simple(f"{label}##{number}"):
            with app.errors_as_messages(f"{title}: {label}"):
                run()
    if not offered:
        imgui.text_disabled("none yet")
    imgui.end_menu()


def _action_entries(app: AppState, actions: list[Action], keys_of_entries: list[str]) -> None:
    """A menu entry for the action of each key; the empty key is a separator."""
    for keys in keys_of_entries:
        action = next((action for action in actions if action.keys == keys), None)
        if action is None:
            imgui.separator()
        elif imgui.menu_item_simple(action.name[:1].upper() + action.name[1:], action.keys):
            app.run(action)


def file_menu(app: AppState, actions: list[Action], scale: float) -> None:
    """The button "File" with its menu."""
    with _menu_button("File", scale, "open, save, recent files, sessions, lessons") as is_open:
        if is_open:
            _file_entries(app, actions)


def _file_entries(app: AppState, actions: list[Action]) -> None:
    """The entries of the menu "File": actions, recent files, kept sessions, lessons."""
    _action_entries(app, actions, KEYS["file"])
    open_path, restore, lesson = open_files.open_path, unsaved.restore, lesson_actions.open_bundled
    _submenu(app, "Recent", lambda: [(_label(path), partial(open_path, app, path)) for path in app.recent.files])
    _submenu(app, "Sessions", lambda: [(kept.describe(), partial(restore, app, kept.path)) for kept in _sessions(app)])
    _submenu(app, "Lessons", lambda: [(name, partial(lesson, app, name)) for name in bundled_lessons()])


def _label(path: Path) -> str:
    """The label of a recent file: its name and the end of its folder."""
    folder = str(path.parent)
    return shorten(f"{path.name}   {folder if len(folder) <= MAX_FOLDER else '...' + folder[3 - MAX_FOLDER :]}")


def _sessions(app: AppState) -> list[KeptSession]:
    """The kept sessions as they were when the menu was opened."""
    if imgui.is_window_appearing():
        app.kept_sessions = kept_sessions(app.session_base)
    return app.kept_sessions


def short_menu(app: AppState, actions: list[Action], scale: float) -> None:
    """The button "Menu" of a small window: the actions that a wide window has in its toolbar and on keys."""
    with _menu_button("Menu", scale) as is_open:
        if not is_open:
            return
        if imgui.begin_menu("File"):
            _file_entries(app, actions)
            imgui.end_menu()
        for name in ("panel", "view"):
            if imgui.begin_menu(name.capitalize()):
                _action_entries(app, actions, KEYS[name])
                imgui.end_menu()
        if creation.can_add(app.panel.scene.settings) and imgui.begin_menu("Add"):
            _add_entries(app)
            imgui.end_menu()
        imgui.separator()
        _action_entries(app, actions, KEYS["edit"])


def add_menu(app: AppState, scale: float) -> None:
    """The button "Add" with its menu, for scenes that have lists of items."""
    can_add, opens = creation.can_add(app.panel.scene.settings), app.input.add_menu.is_on
    app.input.add_menu.is_on = False
    imgui.begin_disabled(not can_add)
    with _menu_button("Add", scale, "Shift+A: shapes, lights, materials, files", opens and can_add) as is_open:
        if is_open:
            _add_entries(app)
    imgui.end_disabled()


def _add_entries(app: AppState) -> None:
    """The additions to the active panel's scene, by section, then files."""
    offered, run = creation.additions(app.panel.scene.settings), edit_actions.run_command
    for section, group in groupby(offered, lambda addition: addition.section):
        _submenu(app, section, [(addition.name, partial(run, app, addition.run)) for addition in group])
    imgui.separator()
    if imgui.menu_item_simple("Mesh or model..."):
        edit_actions.add_file_dialog(app)
    if imgui.menu_item_simple("Texture..."):
        edit_actions.texture_dialog(app)
