"""Dear ImGui controls made from a frozen dataclass: the same declaration that reads scene files.

Every control shows the field's help, takes typed values (Ctrl+click on a slider) and goes back to the scene's value.
"""

from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Literal, get_args, get_origin, get_type_hints

from renderer.window.controls.toolkit import imgui

MAX_INT = 1 << 30
MAX_ITEMS = 24  # of a long list


def edit_settings(settings, original, label: str = ""):
    """The settings as the user leaves them in this frame; `original` is what each reset button goes back to."""
    for f, kind in _declared(type(settings)):
        old = getattr(settings, f.name)
        imgui.push_id(f.name)
        new = _labeled_control(f, kind, old, getattr(original, f.name, old))
        imgui.pop_id()
        if new != old:
            try:
                settings = replace(settings, **{f.name: new})
            except ValueError:  # a Settings checks in __post_init__ what one field alone cannot tell; the old one stays
                pass
    return settings


@cache
def _declared(kind: type) -> list[tuple]:
    """The fields of a dataclass and what they hold."""
    hints = get_type_hints(kind)
    return [(f, hints[f.name]) for f in fields(kind)]


def _labeled_control(f, kind, value, original):
    """A name and its control, as wide as the window."""
    words = f.name.replace("_", " ")
    if is_dataclass(value) or isinstance(value, (MappingProxyType, dict)) or _is_list_of_tables(value):
        return _tree(words, value, original)
    imgui.align_text_to_frame_padding()
    if value == original:
        imgui.text_disabled(words)
    else:
        imgui.text(words)
    _tooltip(f)
    changed = value != original
    width = imgui.get_content_region_avail().x
    left = imgui.get_cursor_start_pos().x + width * 0.40
    imgui.same_line(left)
    reset = imgui.get_frame_height()  # its place is kept free, so that a slider does not move under the pointer
    imgui.set_next_item_width(-reset - imgui.get_style().item_inner_spacing.x - 1)
    value = _control(f, kind, value)
    _tooltip(f)
    if changed:
        imgui.same_line(0, imgui.get_style().item_inner_spacing.x)
        if imgui.button("x", imgui.ImVec2(reset, 0)):
            value = original
        imgui.set_item_tooltip("back to the scene's value")
    return value


def _tooltip(f) -> None:
    if not imgui.is_item_hovered(imgui.HoveredFlags_.for_tooltip):
        return
    parts = [f.metadata.get("help") or "", f"key {f.metadata['key'].upper()}" if f.metadata.get("key") else ""]
    text = "; ".join(part for part in parts if part)
    if text:
        imgui.set_item_tooltip(text)


def _control(f, kind, value):
    """The value after this frame's editing."""
    optional = type(None) in get_args(kind)
    if optional:
        kind = next(k for k in get_args(kind) if k is not type(None))
    if value is None:
        return _optional(kind)
    if get_origin(kind) is Literal:
        choices = [str(choice) for choice in get_args(kind)]
        changed, index = imgui.combo("##", choices.index(str(value)), choices)
        return get_args(kind)[index] if changed else value
    if isinstance(value, bool):
        return imgui.checkbox("##", value)[1]
    if isinstance(value, tuple):
        return _numbers(value) if value and all(isinstance(v, (int, float)) for v in value) else _item_count(value)
    if isinstance(value, str):
        return _text(f, value)
    return _number(f, value)


def _optional(kind):
    if imgui.button("set") and kind in (int, float, str):
        return kind()
    return None


def _text(f, value: str) -> str:
    if f.metadata.get("file"):
        imgui.text_unformatted(value.rpartition("/")[2] or "(none)")
        return value
    changed, text = imgui.input_text("##", value, imgui.InputTextFlags_.enter_returns_true)
    return text if changed else value


def _number(f, value):
    low, high = f.metadata.get("low"), f.metadata.get("high")
    flags = imgui.SliderFlags_.always_clamp | (imgui.SliderFlags_.logarithmic if f.metadata.get("logarithmic") else 0)
    if isinstance(value, int):
        if low is not None and high is not None and high <= MAX_INT:
            changed, new = imgui.slider_int("##", value, max(low, -MAX_INT), high, "%d", flags)
        else:
            changed, new = imgui.input_int("##", max(-MAX_INT, min(value, MAX_INT)))
        return _within(new, low, high) if changed else value
    if low is not None and high is not None and high - low < 1e6:
        changed, new = imgui.slider_float("##", value, low, high, "%.4g", flags)
    else:
        changed, new = imgui.input_double("##", value, 0.0, 0.0, "%.10g")
    return _within(new, low, high) if changed and new == new and abs(new) < 1e300 else value


def _within(value, low, high):
    value = max(value, low) if low is not None else value
    return min(value, high) if high is not None else value


def _numbers(value: tuple) -> tuple:
    """Typed numbers, one a line for a long list and beside each other for a short one."""
    out = list(value)
    shown = min(len(value), MAX_ITEMS)
    width = (imgui.calc_item_width() - (shown - 1) * imgui.get_style().item_inner_spacing.x) / max(1, min(shown, 4))
    for i in range(shown):
        imgui.push_id(i)
        if i % 4:
            imgui.same_line(0, imgui.get_style().item_inner_spacing.x)
        imgui.set_next_item_width(width)
        if isinstance(value[i], int) and not isinstance(value[i], bool):
            changed, new = imgui.input_int("##", value[i], 0)
        else:
            changed, new = imgui.input_double("##", value[i], 0.0, 0.0, "%.5g")
        if changed and new == new and abs(new) < 1e300:
            out[i] = new
        imgui.pop_id()
    return tuple(out)


def _item_count(value):
    imgui.text_disabled(f"{len(value)} items" if value else "none")
    return value


def _is_list_of_tables(value) -> bool:
    return isinstance(value, tuple) and bool(value) and all(is_dataclass(v) for v in value)


def _tree(words: str, value, original):
    """A table inside the settings, folded."""
    if not imgui.tree_node(words):
        return value
    if is_dataclass(value):
        value = edit_settings(value, original if type(original) is type(value) else value)
    elif isinstance(value, tuple):
        items = list(value)
        for i in range(min(len(items), MAX_ITEMS)):
            same = isinstance(original, tuple) and len(original) == len(value)
            items[i] = _tree(f"{i}##{i}", items[i], original[i] if same else items[i])
        value = tuple(items)
        if len(value) > MAX_ITEMS:
            imgui.text_disabled(f"and {len(value) - MAX_ITEMS} more")
    else:
        value = _dictionary(value)
    imgui.tree_pop()
    return value


def _dictionary(value):
    out = dict(value)
    for key in list(out)[:MAX_ITEMS]:
        imgui.push_id(str(key))
        if isinstance(out[key], (int, float)) and not isinstance(out[key], bool):
            changed, new = imgui.input_double(str(key), float(out[key]), 0.0, 0.0, "%.6g")
            if changed and new == new and abs(new) < 1e300:
                out[key] = type(out[key])(new)
        else:
            imgui.text_disabled(f"{key}: {out[key]}"[:60])
        imgui.pop_id()
    return MappingProxyType(out) if out != dict(value) else value
