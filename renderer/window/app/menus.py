"""The menus of the toolbar: "File", "Add", and "Menu" of a small window, which joins them.

MainWindow draws them; an entry runs the Action that key_bindings.py lists under the same keys.
"""

from itertools import groupby
from pathlib import Path

from renderer.lessons.lesson import bundled_lessons
from renderer.window.controls.shortcuts import Action
from renderer.window.controls.toolkit import imgui
from renderer.window.document import creation
from renderer.window.document.items import shorten
from renderer.window.state import edit_actions, lesson_reader, open_files, unsaved
from renderer.window.state.app_state import AppState
from renderer.window.state.session import kept_sessions

PANEL_KEYS = ("R", "P", "N", "", "Tab", "Ctrl+D", "Ctrl+W", "Ctrl+G", "", "F12", "L", "Z", "Alt+N")
VIEW_KEYS = ("Home", "Ctrl+L", "Ctrl+T", "Ctrl+J", "I", "", "E", "Shift+E", "X", "T")
EDIT_KEYS = ("Ctrl+Z", "Ctrl+Y", "Ctrl+P", "Shift+F1")  # for a small window: a telephone has no keyboard
SAVE_KEYS = ("Ctrl+S", "Ctrl+Shift+S", "Ctrl+Shift+Backspace", "Ctrl+Shift+E")
FILE_KEYS = ("Ctrl+N", "Ctrl+Shift+N", "Ctrl+O", "", *SAVE_KEYS, "", "Ctrl+Shift+O", "Ctrl+Q")


def file_menu(app: AppState, actions: list[Action], scale: float) -> None:
    """The button "File" with its menu."""
    if imgui.button("File"):
        imgui.open_popup("file menu")
    if imgui.begin_popup("file menu"):
        _file_entries(app, actions)
        _end_menu()
    imgui.same_line(0, 6 * scale)


def _file_entries(app: AppState, actions: list[Action]) -> None:
    """The entries of the menu "File": actions, recent files, kept sessions, lessons."""
    _entries(app, actions, FILE_KEYS)
    if app.recent.files and imgui.begin_menu("Recent"):
        for number, path in enumerate(list(app.recent.files)):
            label = shorten(f"{path.name}   {_shorten(path.parent)}")
            if imgui.menu_item_simple(f"{label}##{number}"):
                with app.errors_as_messages(f"opening {path.name}"):
                    open_files.open_path(app, path)
        imgui.end_menu()
    if imgui.begin_menu("Sessions"):
        if imgui.is_window_appearing():
            app.kept_sessions = kept_sessions(app.session_base)
        for number, kept in enumerate(app.kept_sessions):
            if imgui.menu_item_simple(f"{kept.describe()}##{number}"):
                unsaved.restore(app, kept.path)
        if not app.kept_sessions:
            imgui.text_disabled("none is kept yet")
        imgui.end_menu()
    _lessons(app)


def _lessons(app: AppState) -> None:
    """The menu of the bundled lessons."""
    if imgui.begin_menu("Lessons"):
        for name in bundled_lessons():
            if imgui.menu_item_simple(name):
                lesson_reader.open_bundled(app, name)
        imgui.end_menu()


def _entries(app: AppState, actions: list[Action], keys_of_entries: tuple[str, ...]) -> None:
    """A menu entry for the action of each key; the empty key is a separator."""
    for keys in keys_of_entries:
        action = next((action for action in actions if action.keys == keys), None)
        if action is None:
            imgui.separator()
        elif imgui.menu_item_simple(action.name[:1].upper() + action.name[1:], action.keys):
            app.run(action)


def short_menu(app: AppState, actions: list[Action], scale: float) -> None:
    """The button "Menu" of a small window: the actions that a wide window has in its toolbar and on keys."""
    if imgui.button("Menu"):
        imgui.open_popup("menu")
    if imgui.begin_popup("menu"):
        if imgui.begin_menu("File"):
            _file_entries(app, actions)
            imgui.end_menu()
        for name, keys in (("Panel", PANEL_KEYS), ("View", VIEW_KEYS)):
            if imgui.begin_menu(name):
                _entries(app, actions, keys)
                imgui.end_menu()
        if creation.can_add(app.panel.scene.settings) and imgui.begin_menu("Add"):
            add_entries(app, creation.additions(app.panel.scene.settings))
            imgui.end_menu()
        imgui.separator()
        _entries(app, actions, EDIT_KEYS)
        _end_menu()
    imgui.same_line(0, 6 * scale)


def _end_menu() -> None:
    if imgui.is_key_pressed(imgui.Key.escape):
        imgui.close_current_popup()
    imgui.end_popup()


def _shorten(folder: Path) -> str:
    text = str(folder)
    return text if len(text) <= 40 else "..." + text[-37:]


def add_menu(app: AppState, scale: float) -> None:
    """The button "Add" with its menu, for scenes that have lists of items."""
    settings = app.panel.scene.settings
    can_add = creation.can_add(settings)
    imgui.begin_disabled(not can_add)
    if imgui.button("Add"):
        app.input.open_add_menu()
    imgui.set_item_tooltip("Shift+A: shapes, lights, materials, files")
    imgui.end_disabled()
    if app.input.opens_add_menu and can_add:
        imgui.open_popup("add menu")
    app.input.opens_add_menu = False
    if imgui.begin_popup("add menu"):
        add_entries(app, creation.additions(settings))
        _end_menu()
    imgui.same_line(0, 6 * scale)


def add_entries(app: AppState, offered: list[creation.Addition]) -> None:
    """The entries of the menu, by section."""
    for section, entries in groupby(offered, lambda addition: addition.section):
        if imgui.begin_menu(section):
            for addition in entries:
                if imgui.menu_item_simple(addition.name):
                    edit_actions.run_command(app, addition.run)
            imgui.end_menu()
    imgui.separator()
    if imgui.menu_item_simple("Mesh or model..."):
        edit_actions.add_file_dialog(app)
    if imgui.menu_item_simple("Texture..."):
        edit_actions.texture_dialog(app)
