"""The list of a scene's items by name, with their menus, and the properties of the selected one."""

from typing import Any, Protocol

from renderer.window.controls import theme
from renderer.window.controls.context import ControlContext
from renderer.window.controls.settings import edit_settings
from renderer.window.controls.toolkit import imgui, imgui_ctx
from renderer.window.document import commands, creation, items
from renderer.window.document.document import Document
from renderer.window.document.items import Item
from renderer.window.panels.panel import Panel
from renderer.window.state import documents
from renderer.window.state.app_state import AppState

MAX_ROWS = 11  # of the list, at most, before it scrolls
OPEN_GROUP = imgui.TreeNodeFlags_.span_avail_width | imgui.TreeNodeFlags_.default_open
MAX_LISTED = 2000  # items of a group


class ItemEditor(Protocol):
    """What the list asks of the editor that shows it."""

    app: AppState
    panel: Panel
    fonts: theme.Fonts
    scale: float
    operation: str
    renaming: Item | None
    name: str
    scrolled_to: Item | None

    @property
    def document(self) -> Document:
        """The panel's document."""

    @property
    def selected(self) -> Item | None:
        """The selected item."""

    @property
    def settings(self) -> Any:
        """The settings at the scene time."""

    def edit_item(self, item: Item) -> None:
        """Draws the controls of an item."""

    def put_value(self, item: Item, value: Any) -> None:
        """Replaces the value of an item."""

    def start_renaming(self, item: Item | None = None) -> None:
        """Types the name of an item."""

    def rename(self, item: Item, name: str) -> None:
        """Renames an item and its uses."""


def draw(editor: ItemEditor) -> None:
    """Draws the section of the controls."""
    if not imgui.collapsing_header("Items", imgui.TreeNodeFlags_.default_open):
        return
    _buttons(editor)
    _list(editor)
    if item := editor.selected:
        with imgui_ctx.push_id(f"{item.group} {item.index}"):
            editor.edit_item(item)


def _buttons(editor: ItemEditor) -> None:
    app, gap = editor.app, 4 * editor.scale
    if imgui.button("Add..."):
        app.adding = True
    imgui.set_item_tooltip("Shift+A")
    item = editor.selected
    imgui.begin_disabled(item is None)
    imgui.same_line(0, gap)
    if imgui.button("Duplicate") and item:
        documents.duplicate_selected(app)
    imgui.set_item_tooltip("Ctrl+Shift+D")
    imgui.same_line(0, gap)
    if imgui.button("Delete") and item:
        documents.delete_selected(app)
    imgui.set_item_tooltip("Delete")
    imgui.same_line(0, gap)
    if imgui.button("Rename") and item:
        editor.start_renaming()
    imgui.set_item_tooltip("F2")
    imgui.end_disabled()
    for number, operation in enumerate(("move", "rotate", "scale")):
        if number:
            imgui.same_line(0, gap)
        if imgui.radio_button(operation, editor.operation == operation):
            editor.operation = operation
        imgui.set_item_tooltip(f"gizmo in the picture: Alt+{'GRS'[number]}; hold Ctrl for steps")


def _list(editor: ItemEditor) -> None:
    settings = editor.panel.scene.settings
    shown = {group: len(getattr(settings, group)) for group in items.groups(settings) if getattr(settings, group)}
    rows = sum(shown.values()) + len(shown)
    height = (min(max(rows, 2), MAX_ROWS) + 0.6) * imgui.get_text_line_height_with_spacing()
    with imgui_ctx.begin_child("items", (0, height), imgui.ChildFlags_.frame_style):
        if not shown:
            imgui.text_disabled("nothing yet: Add... or Shift+A")
        for group, count in shown.items():
            _group(editor, group, count)


def _group(editor: ItemEditor, group: str, count: int) -> None:
    selected = editor.selected
    shows_selected = selected is not None and selected.group == group and imgui.is_window_appearing()
    flags = OPEN_GROUP if count <= 40 or shows_selected else imgui.TreeNodeFlags_.span_avail_width
    if not imgui.tree_node_ex(f"{group.replace('_', ' ')}  {count}###{group}", flags):
        return
    document = editor.document
    clipper = imgui.ListClipper()  # the rows in view cost time, not all
    clipper.begin(min(count, MAX_LISTED))
    for item in (selected, editor.renaming):  # what is scrolled to must be drawn
        if item is not None and item.group == group and item.index < min(count, MAX_LISTED):
            clipper.include_item_by_index(item.index)
    imgui.push_style_color(imgui.Col_.header, theme.COLORS["button_active"])
    while clipper.step():
        for index in range(clipper.display_start, clipper.display_end):
            item = Item(group, index)
            imgui.push_id(index)
            if editor.renaming == item:
                _name_input(editor, item)
            else:
                _row(editor, document, item, selected)
            imgui.pop_id()
    imgui.pop_style_color()
    if count > MAX_LISTED:
        imgui.text_disabled(f"and {count - MAX_LISTED} more")
    imgui.tree_pop()


def _row(editor: ItemEditor, document: Document, item: Item, selected: Item | None) -> None:
    flags = imgui.SelectableFlags_.allow_double_click
    clicked = imgui.selectable(f"{document.label(item)}###row", item == selected, flags)[0]
    if item == selected and editor.scrolled_to != item:
        imgui.set_scroll_here_y()
        editor.scrolled_to = item
    if clicked:
        editor.panel.selection = editor.scrolled_to = item
        if imgui.is_mouse_double_clicked(0):
            editor.start_renaming(item)
    if not imgui.begin_popup_context_item("menu"):
        return
    editor.panel.selection = item
    if imgui.menu_item_simple("Rename", "F2"):
        editor.start_renaming(item)
    if imgui.menu_item_simple("Duplicate", "Ctrl+Shift+D"):
        documents.run_command(editor.app, lambda d: commands.duplicate(d, item), editor.panel)
    if imgui.menu_item_simple("Delete", "Delete"):
        documents.run_command(editor.app, lambda d: commands.delete(d, item), editor.panel)
    if item.group in items.shape_groups(document.scene.settings) and imgui.menu_item_simple("Add an instance of it"):
        documents.run_command(editor.app, lambda d: creation.instance_of(d, item), editor.panel)
    imgui.end_popup()


def _name_input(editor: ItemEditor, item: Item) -> None:
    """The name of an item as it is typed; Enter takes it, Escape does not."""
    imgui.set_next_item_width(-1)
    if not imgui.is_any_item_active():
        imgui.set_keyboard_focus_here()
    flags = imgui.InputTextFlags_.enter_returns_true | imgui.InputTextFlags_.auto_select_all
    entered, editor.name = imgui.input_text("##name", editor.name, flags)
    if entered:
        editor.renaming = None
        editor.rename(item, editor.name)
    elif imgui.is_item_deactivated():
        editor.renaming = None


def properties(editor: ItemEditor, item: Item, context: ControlContext) -> None:
    """The settings of one item."""
    value = items.value_of(editor.settings, item)
    imgui.spacing()
    with imgui_ctx.push_font(editor.fonts.bold, theme.FONT_SIZE):
        imgui.text_wrapped(editor.document.label(item))
    imgui.same_line()
    imgui.text_disabled(items.singular(item.group))
    imgui.set_item_tooltip((type(value).__doc__ or "").strip())
    original = getattr(editor.panel.original.settings, item.group, ())
    before = original[item.index] if item.index < len(original) else value
    edited = edit_settings(
        value, before if type(before) is type(value) else value, context, f"{item.group}[{item.index}]"
    )
    if edited != value:
        editor.put_value(item, edited)
    imgui.spacing()
