"""The menus of the toolbar: files, what can be added to the scene, and help."""

from itertools import groupby
from pathlib import Path

from renderer.window.controls.shortcuts import Action
from renderer.window.controls.toolkit import imgui
from renderer.window.document import creation
from renderer.window.state import documents
from renderer.window.state.app_state import AppState

FILE_KEYS = ("Ctrl+N", "Ctrl+O", "", "Ctrl+S", "Ctrl+Shift+S", "Ctrl+Shift+E", "", "Ctrl+Shift+O", "Ctrl+Q")


def file_menu(app: AppState, actions: list[Action], scale: float) -> None:
    """The button "File" with its menu."""
    if imgui.button("File"):
        imgui.open_popup("file menu")
    if imgui.begin_popup("file menu"):
        for keys in FILE_KEYS:
            action = next((action for action in actions if action.keys == keys), None)
            if action is None:
                imgui.separator()
            elif imgui.menu_item_simple(action.name.capitalize(), action.keys):
                app.run(action)
        if app.recent.files and imgui.begin_menu("Recent"):
            for path in list(app.recent.files):
                if imgui.menu_item_simple(f"{path.name}   {_shorten(path.parent)}##{path}"):
                    with app.errors_as_messages(f"opening {path.name}"):
                        documents.open_path(app, path)
            imgui.end_menu()
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
        app.adding = True
    imgui.set_item_tooltip("Shift+A: shapes, lights, materials, files")
    imgui.end_disabled()
    if app.adding and can_add:
        imgui.open_popup("add menu")
    app.adding = False
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
                    documents.run_command(app, addition.run)
            imgui.end_menu()
    imgui.separator()
    if imgui.menu_item_simple("Mesh or model..."):
        documents.add_file_dialog(app)
    if imgui.menu_item_simple("Texture..."):
        documents.texture_dialog(app)
