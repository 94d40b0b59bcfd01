"""Dear ImGui controls generated from a frozen dataclass of settings, whose declaration also reads scene files.

Each control shows the field's help, accepts typed values (Ctrl+click on a slider) and has a button that resets it.

In this file `f` is a dataclass field, whose `metadata` (renderer.scene.schema.setting) holds its range, help and kind
of control; `kind` is the field's type; `path` is the path of a setting from the scene's settings on, as in --set. A
control takes a value and returns the edited one.
"""

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from renderer.errors import InputError
from renderer.records import Field, dataclass, fields, is_dataclass, replace
from renderer.scene.schema import to_decimal
from renderer.window.controls import theme
from renderer.window.controls.choices import choose_name, choose_names, edit_color
from renderer.window.controls.toolkit import imgui, imgui_ctx

MAX_INT = (1 << 31) - 1  # integer controls have 32 bits
MAX_SLIDER_INT = MAX_INT // 2  # Dear ImGui asserts that a slider's bounds lie within this
MAX_SLIDER_RANGE = 1e6  # beyond it a slider is too coarse
LOGARITHMIC = imgui.SliderFlags_.always_clamp | imgui.SliderFlags_.logarithmic
MAX_ITEMS = 24  # items of a list that are displayed
LABEL_WIDTH, MAX_LABEL_WIDTH = 0.40, 0.65  # fractions of the window: for most labels; for longer ones
Rows = list[tuple[Field, Any]]  # fields with their types
T = TypeVar("T")
Number = TypeVar("Number", int, float)
# For the slider that was pressed last: Dear ImGui's id of the slider -> the value that it had before the press.
_pressed: dict[int, Any] = {}
# For the text that was refused last: Dear ImGui's id of its field -> the field's value, and the text.
_refused: dict[int, tuple[str, str]] = {}


@dataclass(frozen=True)
class ControlContext:
    """The callbacks of controls to one panel: names to choose from, key frames, file dialogs, refusals.

    state/edit_actions.py makes it; a path names a setting as in --set. The defaults suit settings of no scene.
    """

    refuse: Callable[[str], None] = lambda reason: None  # shows why a value is not taken
    names: Callable[[str], list[str]] = lambda refers_to: []  # names of the items that a field may refer to
    # The label of an item, by the path of its list and its index
    item_label: Callable[[str, int], str | None] = lambda path, index: None
    browse: Callable[[str, Field, str], None] | None = None  # asks for the file of a setting, by path, field and value
    rename: Callable[[str, str], None] | None = None  # renames an item, by its path and the new name
    add_key: Callable[[str], None] | None = None
    remove_track: Callable[[str], None] | None = None
    tracks: Collection[str] = ()  # the paths that have key frames
    hidden: Collection[str] = ()  # paths of settings that another editor shows


PLAIN = ControlContext()


def edit_settings(
    settings: T, original: T, context: ControlContext = PLAIN, path: str = "", titles: tuple[str, ...] = ()
) -> T:
    """Draws a control for each field; returns the edited settings. `original` holds the values of reset buttons.

    `path` is the path of the settings in their scene. A value that they refuse is reported to the context. `titles` are
    the groups of rows that are drawn, the first of them unfolded; none for all groups.
    """
    settings_class: type = type(settings)  # mypy takes the class of a dataclass for unhashable
    groups = _row_groups(settings_class)
    for title in titles or groups:
        is_fold = title not in ("", *titles[:1])
        if not is_fold or imgui.tree_node_ex(title, theme.FOLD):
            settings = _edit_rows(settings, original, groups[title], context, path)
            if is_fold:
                imgui.tree_pop()
    return settings


def sections(settings_class: type) -> dict[str, tuple[str, ...]]:
    """The titles of the groups of rows by the section of the sidebar: the class's `sections`, or one for all rows."""
    return getattr(settings_class, "sections", {"Settings": ()})


def _edit_rows(settings: Any, original: Any, declared: Rows, context: ControlContext, path: str) -> Any:
    """Draws the controls of some fields; returns the edited settings.

    A control outside of the visible region becomes an empty item of the same height, where the height is known, so that
    long lists of settings take little time.
    """
    height, draws_all = imgui.get_frame_height(), _draws_all()
    column = _label_column(tuple(f.name for f, _ in declared))
    own_kind, kinds_of_field = getattr(settings, "kind", ""), getattr(settings, "fields_of_kinds", {})
    for f, kind in declared:
        field_path = f"{path}.{f.name}" if path else f.name
        is_read = own_kind in kinds_of_field.get(f.name, (own_kind,))  # all kinds read a field that is not listed
        if field_path in context.hidden or not is_read:
            continue
        old = getattr(settings, f.name)
        if not draws_all and _is_line(old) and not imgui.is_rect_visible((1, height)):
            imgui.dummy((1, height))
            continue
        imgui.push_id(f.name)
        new = _labeled_control(f, kind, old, getattr(original, f.name, old), context, field_path, column)
        imgui.pop_id()
        if new is old or new == old:
            continue
        # A path that ends with an index is an item's, to which others refer by its name.
        if f.name == "name" and context.rename is not None and path.endswith("]"):
            context.rename(path, new)
            continue
        try:
            settings = replace(settings, **{f.name: new})
        except ValueError as error:  # __post_init__ checks fields against each other: the old value stays
            context.refuse(str(error))
    return settings


@cache
def _row_groups(settings_class: type) -> dict[str, Rows]:
    """The fields of a dataclass with their types, by the title of their fold; "" are those in front of all folds.

    The class may declare `row_groups`, names of fields by title: first the rows of "", then all others, then folds;
    and `fields_of_kinds`, the only values of `kind` that read a field, which has no row for others.
    """
    hints, known = get_type_hints(settings_class), {f.name: f for f in fields(settings_class)}
    groups: dict[str, tuple[str, ...]] = getattr(settings_class, "row_groups", {})
    grouped = {name for names in groups.values() for name in names}
    rows = {"": (*groups.get("", ()), *(name for name in known if name not in grouped))}
    rows |= {title: names for title, names in groups.items() if title}
    return {title: [(known[name], hints[name]) for name in names] for title, names in rows.items()}


def _labeled_control(
    f: Field, kind: object, value: object, original: object, context: ControlContext, path: str, column: float
) -> Any:
    """A label of `column` of the width and its control, as wide as the window; returns the edited value."""
    name = _label_of(f.name)
    is_list_of_tables = isinstance(value, tuple) and bool(value) and all(map(is_dataclass, value))
    if is_dataclass(value) or isinstance(value, (MappingProxyType, dict)) or is_list_of_tables:
        return _tree(name, value, original, context, path)
    changed = value != original
    _label_text(name, changed, path in context.tracks)
    _tooltip(f, kind)
    _key_menu(context, path)
    reset = _begin_control(column)
    value = _control(f, kind, value, context, path)
    _tooltip(f, kind)
    if changed:
        imgui.same_line(0, imgui.get_style().item_inner_spacing.x)
        if theme.button("x", "reset to the scene's value", width=reset):
            value = original
    return value


def _label_of(name: str) -> str:
    """The label of a field; a texture map's is without the word that its fold says: `specular color`."""
    return name.replace("_", " ").removesuffix(" texture")


def _label_column(names: tuple[str, ...]) -> float:
    """The fraction of the width that the labels of a group of rows need, so that they are whole in a narrow window."""
    widest = max((imgui.calc_text_size(_label_of(name)).x for name in names), default=0.0)
    indent = imgui.get_cursor_pos().x - imgui.get_cursor_start_pos().x
    needed = (indent + widest + imgui.get_style().item_spacing.x) / max(imgui.get_content_region_avail().x, 1.0)
    return min(max(needed, LABEL_WIDTH), MAX_LABEL_WIDTH)


def _draws_all() -> bool:
    """True if controls out of view must be drawn: the keyboard moves among them, or an edited one may scroll away."""
    return bool(imgui.get_io().config_flags & imgui.ConfigFlags_.nav_enable_keyboard) or imgui.is_any_item_active()


def _is_line(value: object) -> bool:
    """True if the control of a value is one line high: its height is known without drawing it."""
    if isinstance(value, tuple):
        return 0 < len(value) <= 4 and _is_numbers(value)
    return isinstance(value, (int, float, str))


def _key_menu(context: ControlContext, path: str) -> None:
    """The context menu of a label: the key frames of its setting."""
    if context.add_key is None or not imgui.begin_popup_context_item("keys"):
        return
    imgui.text_disabled(path)
    if imgui.menu_item_simple("Key frame here"):
        context.add_key(path)
    if path in context.tracks and context.remove_track is not None and imgui.menu_item_simple("Delete its key frames"):
        context.remove_track(path)
    imgui.end_popup()


def label(text: str) -> None:
    """Draws a label and puts the next control beside it."""
    _label_text(text)
    _begin_control()


def _label_text(text: str, highlighted: bool = False, animated: bool = False) -> None:
    """Draws a label; `animated` ones have the accent color."""
    imgui.align_text_to_frame_padding()
    if animated:
        imgui.text_colored(theme.ACCENT, text)
    else:
        (imgui.text if highlighted else imgui.text_disabled)(text)


def _begin_control(column: float = LABEL_WIDTH) -> float:
    """Puts the next control beside its label; returns the width that is left for a reset button.

    The width is always left, so that a slider does not move under the pointer. This follows the label's tooltip, whose
    text would take the width that is set here.
    """
    imgui.same_line(imgui.get_cursor_start_pos().x + imgui.get_content_region_avail().x * column)
    reset = imgui.get_frame_height()
    imgui.set_next_item_width(-reset - imgui.get_style().item_inner_spacing.x - 1)
    return reset


def _tooltip(f: Field, kind: object) -> None:
    if imgui.is_item_hovered(imgui.HoveredFlags_.for_tooltip):
        theme.hint(field_help(f, kind))


def field_help(f: Field, kind: object) -> str:
    """The help of a setting: its sentence, its range or choices, and its key, a line each."""
    low, high = f.metadata.get("low"), f.metadata.get("high")
    span = f"{low:,.10g} to {high:,.10g}" if low is not None and high is not None else ""
    if not span and (low is not None or high is not None):
        span = f"at least {low:,.10g}" if low is not None else f"at most {high:,.10g}"
    choices = ", ".join(map(str, get_args(kind))) if get_origin(kind) is Literal else ""
    key = f"key {f.metadata['key'].upper()}" if f.metadata.get("key") else ""
    return "\n".join(dict.fromkeys(part for part in (f.metadata.get("help") or "", span, choices, key) if part))


def _control(f: Field, kind: Any, value: Any, context: ControlContext, path: str) -> Any:
    """The control of one value; returns the edited value."""
    if type(None) in get_args(kind):
        kind = next(k for k in get_args(kind) if k is not type(None))
    if value is None:
        return _first_value(f, kind)
    if f.metadata.get("refers_to") and (names := context.names(f.metadata["refers_to"])):
        return choose_names(value, names) if isinstance(value, tuple) else choose_name(value, names, f.default == "")
    if f.metadata.get("is_color"):
        return edit_color(value, f.metadata.get("low"), f.metadata.get("high"))
    if get_origin(kind) is Literal:
        choices = [str(choice) for choice in get_args(kind)]
        index = choices.index(str(value)) if str(value) in choices else -1
        changed, index = imgui.combo("##", index, choices)
        return get_args(kind)[index] if changed else value
    if isinstance(value, bool):
        return imgui.checkbox("##", value)[1]
    if isinstance(value, Decimal):
        return _decimal(f, value, context)
    if isinstance(value, tuple):
        if value and all(isinstance(v, Decimal) for v in value):
            return _column(value, lambda v: _decimal(f, v, context))
        if value and _is_numbers(value):
            return _numbers(value)
        if value and all(isinstance(v, tuple) and v and _is_numbers(v) for v in value):
            return _column(value, _numbers)
        imgui.text_disabled(f"{len(value)} items" if value else "none")
        return value
    if isinstance(value, str):
        return _text(f, value, context, path)
    return _number(f, value)


def _first_value(f: Field, kind: object) -> Any:
    """A button that gives an optional setting its first value, where a control can show one."""
    if kind not in (int, float, str):
        imgui.text_disabled("none")
        return None
    low = f.metadata.get("low")
    return (kind() if low is None else kind(max(low, 0))) if imgui.button("set") else None


def _text(f: Field, value: str, context: ControlContext, path: str) -> str:
    """An input for a text; for a file's name, a button that opens the file dialog."""
    if f.metadata.get("file"):
        room = imgui.calc_item_width() - 2 * imgui.get_style().frame_padding.x
        name = theme.cut(value.replace("\\", "/").rpartition("/")[2], room)
        if context.browse is None:
            imgui.text_unformatted(name or "(none)")
        elif imgui.button(f"{name or 'choose a file'}###file", (imgui.calc_item_width(), 0)):
            context.browse(path, f, value)
        return value
    item, flags = imgui.get_id("##"), imgui.InputTextFlags_.enter_returns_true
    before, shown = _refused.get(item, ("", ""))
    is_refused = before == value and shown != ""
    with imgui_ctx.push_style_color(imgui.Col_.text, theme.WARNING if is_refused else theme.TEXT):
        entered, text = imgui.input_text("##", shown if is_refused else value, flags)
    changed = entered or imgui.is_item_deactivated_after_edit()  # Tab, or a click elsewhere
    if changed:  # shown again, for a correction, unless the field's value changes
        _refused.clear()
        _refused[item] = value, text
    return text if changed else value


def _decimal(f: Field, value: Decimal, context: ControlContext) -> Decimal:
    """A text field for a decimal number of any length; a text that is none, or out of range, is refused."""
    entered, text = imgui.input_text("##", str(value), imgui.InputTextFlags_.enter_returns_true)
    if entered or imgui.is_item_deactivated_after_edit():  # Tab, or a click elsewhere
        try:
            return to_decimal(text, f.name, f.metadata)
        except InputError as error:
            context.refuse(str(error))
    return value


def _number(f: Field, value: float) -> float:
    """A slider if the range is bounded, else an input field; returns an integer for an integer."""
    low: Any = f.metadata.get("low")
    high: Any = f.metadata.get("high")
    new: Any
    flags = LOGARITHMIC if f.metadata.get("logarithmic") else imgui.SliderFlags_.always_clamp
    bounded = low is not None and high is not None
    if isinstance(value, int):
        if bounded and -MAX_SLIDER_INT <= low <= high <= MAX_SLIDER_INT:
            changed, new = slider(imgui.slider_int, _int_shown(value), int(low), int(high), "%d", flags)
        else:
            changed, new = imgui.input_int("##", _int_shown(value))
    elif bounded and high - low < MAX_SLIDER_RANGE:
        changed, new = slider(imgui.slider_float, value, low, high, "%.4g", flags)
        new = shortest(new) if changed else new
    else:
        changed, new = imgui.input_double("##", value, 0.0, 0.0, "%.10g")
    if not (changed and _is_usable(new)):
        return value
    new = max(new, low) if low is not None else new
    return min(new, high) if high is not None else new


def shortest(number: float) -> float:
    """The shortest decimal of a control's float32: 0.9 as typed, which files would have as 0.8999999761581421."""
    return float(str(np.float32(number)))


def slider(
    draw: Callable[..., tuple[bool, Number]], value: Number, *span: object, name: str = "##"
) -> tuple[bool, Number]:
    """A slider of Dear ImGui that a double click turns into a text field, as Ctrl+click does.

    The first click of the double click moves the slider; `_pressed` restores the value from before it. `span` are the
    slider's bounds, format and flags.
    """
    item, low, io = imgui.get_id(name), imgui.get_cursor_screen_pos(), imgui.get_io()
    end = (low.x + imgui.calc_item_width(), low.y + imgui.get_frame_height())
    turns_to_text = item in _pressed and imgui.is_mouse_double_clicked(0) and imgui.is_mouse_hovering_rect(low, end)
    before, is_held = _pressed[item] if turns_to_text else value, io.key_ctrl
    io.key_ctrl = turns_to_text or is_held  # with Ctrl, a click turns a slider into a text field
    changed, new = draw(name, before, *span)
    io.key_ctrl = is_held
    if imgui.is_item_activated() and not turns_to_text:
        _pressed.clear()
        _pressed[item] = value
    return changed or turns_to_text, new  # the value from before the press is a change


def _int_shown(value: int) -> int:
    """The value clamped to the 32 bits of a control; the setting keeps its value until it is edited."""
    return max(-MAX_INT, min(value, MAX_INT))


def _is_usable(number: float) -> bool:
    """True unless a typed number is NaN or beyond the range of every setting."""
    return number == number and abs(number) < 1e300


def _is_numbers(value: tuple) -> bool:
    return all(isinstance(v, (int, float)) for v in value)


def _column(value: tuple[T, ...], control: Callable[[T], T]) -> tuple[T, ...]:
    """A line for each item, drawn by control(item), such as a point of a list; returns the edited items."""
    out = list(value)
    left, width = imgui.get_cursor_pos_x(), imgui.calc_item_width()
    for i, item in enumerate(value[:MAX_ITEMS]):
        imgui.push_id(i)
        imgui.set_cursor_pos_x(left)
        imgui.set_next_item_width(width)
        out[i] = control(item)
        imgui.pop_id()
    if len(value) > MAX_ITEMS:
        imgui.text_disabled(f"and {len(value) - MAX_ITEMS} more")
    return tuple(out)


def _numbers(value: tuple) -> tuple:
    """Inputs for a list of numbers, four a line."""
    out, per_line = list(value), min(len(value), 4)
    spacing = imgui.get_style().item_inner_spacing.x
    width = (imgui.calc_item_width() - (per_line - 1) * spacing) / per_line
    imgui.begin_group()
    for i in range(min(len(value), MAX_ITEMS)):
        imgui.push_id(i)
        if i % 4:
            imgui.same_line(0, spacing)
        imgui.set_next_item_width(width)
        new: Any
        if isinstance(value[i], int) and not isinstance(value[i], bool):
            changed, new = imgui.input_int("##", _int_shown(value[i]), 0)
        else:
            changed, new = imgui.input_double("##", value[i], 0.0, 0.0, "%.5g")
        out[i] = new if changed and _is_usable(new) else value[i]
        imgui.pop_id()
    imgui.end_group()
    return tuple(out)


def _tree(label: str, value: Any, original: Any, context: ControlContext, path: str) -> Any:
    """A table inside the settings, in a tree that is folded at first."""
    is_open = imgui.tree_node_ex(label, theme.FOLD)
    if is_dataclass(value) and (doc := (type(value).__doc__ or "").partition("\n")[0]):
        theme.hint(doc)
    if not is_open:
        return value
    if is_dataclass(value):
        value = edit_settings(value, original if type(original) is type(value) else value, context, path)
    elif isinstance(value, tuple):
        items = list(value)
        for i in range(min(len(items), MAX_ITEMS)):
            same = isinstance(original, tuple) and len(original) == len(value)
            name = context.item_label(path, i) or _item_label(items[i], i)
            items[i] = _tree(f"{name}##{i}", items[i], original[i] if same else items[i], context, f"{path}[{i}]")
        value = tuple(items)
        if len(value) > MAX_ITEMS:
            imgui.text_disabled(f"and {len(value) - MAX_ITEMS} more")
    else:
        value = _dictionary(value)
    imgui.tree_pop()
    return value


def _item_label(item: object, index: int) -> str:
    """The label of an item in a list: its number, and its name or kind if it has one."""
    name = str(getattr(item, "name", "") or getattr(item, "kind", ""))
    return f"{index + 1}  {name}" if name else f"{index + 1}"


def _dictionary(value: Mapping[str, object]) -> Mapping[str, object]:
    """Inputs for the numbers of a table; its other values are only shown."""
    out = dict(value)
    for key, item in list(out.items())[:MAX_ITEMS]:
        imgui.push_id(key)
        if isinstance(item, (int, float)) and not isinstance(item, bool):
            changed, new = imgui.input_double(key, float(item), 0.0, 0.0, "%.6g")
            if changed and _is_usable(new):
                out[key] = type(item)(new)
        else:
            imgui.text_disabled(f"{key}: {item}"[:60])
        imgui.pop_id()
    return MappingProxyType(out) if out != dict(value) else value
