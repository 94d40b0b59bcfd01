"""The outliner: the list of a scene's items by name, the properties of the selected item, and the menus of models.

SceneEditor draws them in the controls beside the picture. The menus of a model choose its animation, material variant
and camera among the choices of its file.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from operator import attrgetter
from pathlib import Path

from renderer.raytracing.models import choices as model_choices
from renderer.raytracing.models.choices import Choices, choices_of
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.scene.scene import Scene
from renderer.window.controls import imgui, imgui_ctx, theme
from renderer.window.controls.choices import NONE, choose_index
from renderer.window.controls.settings import ControlContext, edit_settings, label
from renderer.window.document import Document, Item, commands, creation, items
from renderer.window.panels.panel import Panel
from renderer.window.state import AppState, edit_actions

ROWS = 12  # of the list, which scrolls: what is below it stays in its place
OPEN_GROUP = imgui.TreeNodeFlags_.span_avail_width | imgui.TreeNodeFlags_.default_open
MAX_LISTED = 2000  # listed items of a group
MAX_MODELS = 16  # models beyond these have no menus
WORLD = ("environment", "sky", "fog")  # tables of settings that are rows of the list
PRESET_HELP = "changes the material, its maps too; if other items use it, the selected one gets a new one of this name"
# Labels of a row's menu, and keys; "Duplicate" calls duplicate_selected() of edit_actions.py, and so on.
MENU = {"Duplicate": "Ctrl+Shift+D", "Delete": "Delete", "Group": "Ctrl+Shift+G", "Ungroup": "Ctrl+Alt+G"}
REST = "(at rest)"
OWN_MATERIALS = "(the file's own)"


class Outliner:
    """The list of one panel's items, which shows the selected item and takes a new name for one."""

    def __init__(self, app: AppState, panel: Panel, fonts: theme.Fonts, scale: float):
        self.app, self.panel, self.fonts, self.scale = app, panel, fonts, scale
        self.renaming: Item | str = ""  # the item, or the name of the group, whose name is typed in the list
        self.name = ""
        self.dragged: Item | None = None
        self.table = ""  # the table of WORLD whose settings are shown while no item is selected
        self.scrolled_to: Item | None = None  # the selected item that the list has scrolled to

    def start_renaming(self, renaming: Item | str = "") -> None:
        """Opens the name input of an item or a group, by default of the selected one."""
        document, chosen = self.panel.document, self.panel.chosen
        of_group = next((name for name, members in document.groups.items() if members == chosen), "")
        self.renaming = renaming or of_group or document.selected or ""
        if not self.renaming:
            self.app.show_message("nothing is selected")
            return
        self.app.overlays.sidebar.is_on = True
        self.name = self.renaming if isinstance(self.renaming, str) else document.label(self.renaming)

    def rename(self, renamed: Item | str, name: str) -> None:
        """Renames an item and its uses, or a group."""

        def command(document: Document) -> Document:
            if isinstance(renamed, Item):
                return commands.rename(document, renamed, name)
            is_new = name.strip() not in ("", renamed)
            return commands.group(document, document.groups[renamed], name) if is_new else document

        edit_actions.run_command(self.app, command, self.panel)

    def draw_list(self) -> None:
        """Draws the rows of all items."""
        document, settings = self.panel.document, self.panel.scene.settings
        shown = {group: len(getattr(settings, group)) for group in items.groups(settings) if getattr(settings, group)}
        names = {each.name for each in fields(settings)}
        tables = [name for name in WORLD if name in names]
        spacing, padding = imgui.get_style().item_spacing.y, imgui.get_style().frame_padding.y
        height = ROWS * imgui.get_text_line_height_with_spacing() - spacing + 2 * padding  # no row is cut
        with imgui_ctx.begin_child("items", (0, height), imgui.ChildFlags_.frame_style):
            if not shown:
                imgui.text_disabled("nothing yet: Add... or Shift+A")
            for name in tables:
                if imgui.selectable(f"{name}###table {name}", self.table == name and document.selected is None)[0]:
                    self.panel.selection, self.table = None, name
            imgui.push_style_color(imgui.Col_.header, theme.COLORS["button_active"])
            grouped = document.groups
            for name, members in grouped.items():
                self._user_group(document, name, members)
            folded = frozenset[Item]().union(*grouped.values())
            for group, count in shown.items():
                rows = [k for k in range(count) if Item(group, k) not in folded] if folded else range(count)
                if rows:
                    self._group(document, group, rows)
            imgui.pop_style_color()

    def _user_group(self, document: Document, name: str, members: frozenset[Item]) -> None:
        """The row of a group that the user made, folded; a click selects it, a double click renames it."""
        if self.renaming == name:
            self._name_input(name)
            return
        panel, selected, ordered = self.panel, document.selected, sorted(members, key=attrgetter("group", "index"))
        is_chosen = panel.chosen >= members
        shows_selected = selected in members and self.scrolled_to != selected
        if shows_selected and not is_chosen or self.renaming in members:
            imgui.set_next_item_open(True)
        flags = imgui.TreeNodeFlags_.span_avail_width | imgui.TreeNodeFlags_.open_on_arrow
        flags |= imgui.TreeNodeFlags_.selected * is_chosen
        is_open = imgui.tree_node_ex(f"{theme.cut(name, imgui.get_content_region_avail().x)}###of {name}", flags)
        if shows_selected and is_chosen:
            imgui.set_scroll_here_y()
            self.scrolled_to = selected
        if imgui.is_item_clicked() and not imgui.is_item_toggled_open():
            if not (toggles := imgui.get_io().key_ctrl):
                panel.several = frozenset()  # else select() would take the first member alone
            panel.select(ordered[0], toggles=toggles)
            self.scrolled_to = panel.selection
            if imgui.is_mouse_double_clicked(0):
                self.start_renaming(name)
        if is_open:
            for item in ordered[:MAX_LISTED]:
                self._row(document, item, selected)
            imgui.tree_pop()

    def _group(self, document: Document, group: str, rows: Sequence[int]) -> None:
        """The rows of items of a list, such as the spheres, under a heading with their number."""
        count = len(rows)
        selected = document.selected
        shows_selected = selected is not None and selected.group == group and selected.index in rows
        # a long list begins folded, unless it has the selected item
        is_open = count <= 40 or shows_selected and imgui.is_window_appearing()
        flags = OPEN_GROUP if is_open else imgui.TreeNodeFlags_.span_avail_width
        if shows_selected and self.scrolled_to != selected:
            imgui.set_next_item_open(True)  # a new item shows itself
        if not imgui.tree_node_ex(f"{group.replace('_', ' ')}  {count}###{group}", flags):
            return
        clipper = imgui.ListClipper()  # the rows in view cost time, not all
        clipper.begin(min(count, MAX_LISTED))
        for item in (selected, self.renaming):  # the clipper must draw the item that the list scrolls to
            if isinstance(item, Item) and item.group == group and item.index in rows[:MAX_LISTED]:
                clipper.include_item_by_index(rows.index(item.index))
        while clipper.step():
            for index in rows[clipper.display_start : clipper.display_end]:
                self._row(document, Item(group, index), selected)
        if count > MAX_LISTED:
            imgui.text_disabled(f"and {count - MAX_LISTED} more")
        imgui.tree_pop()

    def _row(self, document: Document, item: Item, selected: Item | None) -> None:
        """The row of an item: a click selects it, a double click renames it, a right click opens its menu."""
        with imgui_ctx.push_id(item.path):
            if self.renaming == item:
                self._name_input(item)
            else:
                self._label(document, item, selected)

    def _label(self, document: Document, item: Item, selected: Item | None) -> None:
        flags = imgui.SelectableFlags_.allow_double_click
        label = document.label(item) + ("  (hidden)" if item in self.panel.hidden else "")
        shown = theme.cut(label, imgui.get_content_region_avail().x)
        clicked = imgui.selectable(f"{shown}###row", item in self.panel.chosen, flags)[0]
        theme.hint(label if shown != label else "")
        if imgui.begin_drag_drop_source():
            imgui.set_drag_drop_payload_py_id("item", 0)
            self.dragged = item  # the payload: ImGui carries the number 0 alone
            imgui.text(label)
            imgui.end_drag_drop_source()
        if imgui.begin_drag_drop_target():
            if imgui.accept_drag_drop_payload_py_id("item") and (dragged := self.dragged):
                edit_actions.run_command(self.app, lambda d: commands.drop(d, dragged, item), self.panel)
            imgui.end_drag_drop_target()
        if item == selected and self.scrolled_to != item:
            imgui.set_scroll_here_y()
            self.scrolled_to = item
        if clicked:
            io = imgui.get_io()
            self.panel.select(item, alone=io.key_alt, toggles=io.key_ctrl)
            self.scrolled_to = self.panel.selection
            if imgui.is_mouse_double_clicked(0) and not io.key_ctrl:
                self.start_renaming(item)
        if not imgui.begin_popup_context_item("menu"):
            return
        if item not in self.panel.chosen:
            self.panel.select(item)
        if imgui.menu_item_simple("Rename", "F2"):
            self.start_renaming(item)
        for name, keys in MENU.items():
            if imgui.menu_item_simple(name, keys):
                getattr(edit_actions, f"{name.lower()}_selected")(self.app)
        is_shape = item.group in items.shape_groups(document.scene.settings)
        if is_shape and imgui.menu_item_simple("Add an instance of it"):
            edit_actions.run_command(self.app, lambda d: creation.add_instance(d, item), self.panel)
        imgui.end_popup()

    def _name_input(self, item: Item | str) -> None:
        """The name of an item or a group as it is typed; Enter takes it, Escape does not."""
        imgui.set_next_item_width(-1)
        if not imgui.is_any_item_active():
            imgui.set_keyboard_focus_here()
        flags = imgui.InputTextFlags_.enter_returns_true | imgui.InputTextFlags_.auto_select_all
        entered, self.name = imgui.input_text("##name", self.name, flags)
        if entered or imgui.is_item_deactivated():
            self.renaming = ""
        if entered:
            self.rename(item, self.name)


def draw_properties(panel: Panel, item: Item, context: ControlContext, fonts: theme.Fonts) -> object:
    """Draws the settings of one item; returns the item with the edited settings."""
    value = items.item_value(panel.settings(), item)
    imgui.spacing()
    theme.text_in(fonts.bold, panel.document.label(item))
    imgui.same_line()
    imgui.text_disabled(items.singular(item.group))
    theme.hint((type(value).__doc__ or "").strip())
    originals = getattr(panel.original.settings, item.group, ())
    original = originals[item.index] if item.index < len(originals) else value
    if type(original) is not type(value):
        original = value
    edited = edit_settings(value, original, context, f"{item.group}[{item.index}]")
    imgui.spacing()
    return edited


def draw_presets(app: AppState, panel: Panel, item: Item) -> None:
    """Draws a button for each preset of a material, which a click applies as one step of undo."""
    style, right = imgui.get_style(), imgui.get_cursor_screen_pos().x + imgui.get_content_region_avail().x
    gap = style.item_inner_spacing.x
    for number, (name, preset) in enumerate(creation.material_presets().items()):
        width = imgui.calc_text_size(name).x + 2 * style.frame_padding.x
        if number and imgui.get_item_rect_max().x + gap + width <= right:
            imgui.same_line(0, gap)
        if theme.button(f"{name}###preset {name}", PRESET_HELP):
            edit_actions.run_command(app, partial(creation.with_preset, item=item, preset=preset), panel)


def draw_models(app: AppState, panel: Panel) -> None:
    """Draws the section of the controls; nothing if no model has anything to choose from."""
    if panel.picture is None:  # the files are read with the picture, not on the window's thread
        return
    shapes = enumerate(panel.scene.settings.models[:MAX_MODELS])
    offered = [(number, shape, choices_of(shape)) for number, shape in shapes if shape.file]
    offered = [(number, shape, choices) for number, shape, choices in offered if any(choices)]
    if not offered or not imgui.collapsing_header("Models", imgui.TreeNodeFlags_.default_open):
        return
    for number, shape, choices in offered:
        with imgui_ctx.push_id(number):
            if len(offered) > 1:
                imgui.text_disabled(shape.name or Path(shape.file).name)
            with app.errors_as_messages("choosing of a model", ValueError):
                _model_menus(app, panel, number, shape, choices)
    imgui.spacing()


def _model_menus(app: AppState, panel: Panel, number: int, shape: ModelShape, choices: Choices) -> None:
    """The choices of a model: its animations, its material variants and its cameras."""
    if choices.animations:
        names = ("", *choices.animations)
        at = names.index(model_choices.chosen_animation(shape))
        if (new := _menu("animation", "what the model plays", at, (REST, *names[1:]))) is not None:
            _choose(app, panel, partial(model_choices.choose_animation, number=number, name=names[new]))
    if choices.variants:
        names = ("", *choices.variants)
        at = names.index(shape.variant) if shape.variant in names else -1
        if (new := _menu("variant", "the model's materials", at, (OWN_MATERIALS, *names[1:]))) is not None:
            _choose(app, panel, partial(model_choices.choose_variant, number=number, name=names[new]))
    if choices.cameras:
        at = model_choices.chosen_camera(panel.scene, number)
        labels = tuple(f"{k + 1}  {camera.name}".rstrip() for k, camera in enumerate(choices.cameras))
        if (new := _menu("camera", "of the file, through which it is seen", at, labels)) is not None:
            time = panel.scene_time
            _choose(app, panel, partial(model_choices.choose_camera, number=number, camera=new, time=time))


def _menu(name: str, help_text: str, chosen: int, labels: Sequence[str]) -> int | None:
    """A labeled list of choices; returns the index of a newly clicked choice, otherwise None."""
    label(name)
    shown = labels[chosen] if 0 <= chosen < len(labels) else NONE
    new = choose_index(f"##{name}", shown, labels, chosen, [help_text])
    return None if new == chosen else new


def _choose(app: AppState, panel: Panel, choose: Callable[[Scene], Scene]) -> None:
    """Shows the scene that a choice makes of the panel's, as one step of undo."""
    with app.undo_step():
        panel.show(choose(panel.scene))
