"""Combo boxes of names, and inputs of colors with a picker; each function draws one and returns the edited value.

controls/settings.py and the editors call them.
"""

from collections.abc import Sequence

import numpy as np

from renderer.formats.images import decode_srgb, encode_srgb
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui

NONE = "(none)"
Color = tuple[float, ...]  # red, green, blue, linear


def choose_index(
    label: str, preview: str, entries: Sequence[str], current: int, help_texts: Sequence[str] = ()
) -> int | None:
    """A combo box; returns the index of an entry that was clicked in this frame, otherwise None.

    `help_texts` are the tooltips of the entries, or the only one of the closed box.
    """
    chosen = None
    # 1.6 frame heights stay free for the arrow of the box
    if imgui.begin_combo(label, theme.cut(preview, imgui.calc_item_width() - 1.6 * imgui.get_frame_height())):
        for index, entry in enumerate(entries):
            if imgui.selectable(f"{entry}##{index}", index == current)[0]:
                chosen = index
            if len(help_texts) == len(entries) and help_texts[index]:
                theme.hint(help_texts[index])
        imgui.end_combo()
    elif len(help_texts) == 1:
        theme.hint(help_texts[0])
    return chosen


def choose_name(value: str, names: Sequence[str], may_be_empty: bool) -> str:
    """A combo box of names; returns the chosen name, or the empty text for none."""
    offered = ["", *names] if may_be_empty else list(names)
    current = offered.index(value) if value in offered else -1
    chosen = choose_index("##name", value or NONE, [name or NONE for name in offered], current)
    return value if chosen is None else offered[chosen]


def choose_names(value: tuple[str, ...], names: Sequence[str]) -> tuple[str, ...]:
    """A list of names; at least one stays chosen."""
    chosen = list(value)
    if imgui.begin_combo("##names", ", ".join(value)):
        for number, name in enumerate(names):
            changed, on = imgui.checkbox(f"{name}##{number}", name in chosen)
            if changed:
                chosen = [*chosen, name] if on else [other for other in chosen if other != name]
        imgui.end_combo()
    return tuple(chosen) or value


def edit_color(value: Color, low: float | None, high: float | None) -> Color:
    """A swatch that opens a picker, and inputs of the linear numbers.

    The picker shows a color with a component above 1 as one of 0 to 1 times a strength.
    """
    strength = max(1.0, *value)
    shown = encode_srgb(np.clip(np.divide(value[:3], strength), 0, 1)).tolist()
    side = imgui.get_frame_height()
    width = imgui.calc_item_width() - side - imgui.get_style().item_inner_spacing.x
    swatch = imgui.ImVec4(shown[0], shown[1], shown[2], 1.0)
    if imgui.color_button("##swatch", swatch, imgui.ColorEditFlags_.no_tooltip, (side, side)):
        imgui.open_popup("picker")
    theme.hint("choose a color")
    out = value
    imgui.same_line(0, imgui.get_style().item_inner_spacing.x)
    imgui.set_next_item_width(width)
    changed, numbers = imgui.input_float3("##rgb", list(value[:3]), "%.4g")
    if changed:
        out = _clamped(numbers, value, low, high)
    if imgui.begin_popup("picker"):
        changed, picked = imgui.color_picker3("##picked", shown, imgui.ColorEditFlags_.no_side_preview)
        if changed:
            out = _clamped((decode_srgb(np.array(picked)) * strength).tolist(), value, low, high)
        if high is None or high > 1:
            changed, factor = imgui.drag_float("strength", strength, 0.02 * strength, 1e-3, high or 1e6, "%.4g")
            if changed and factor > 0:
                out = _clamped([v / strength * factor for v in value], value, low, high)
        imgui.end_popup()
    return out


def _clamped(numbers: Sequence[float], before: Color, low: float | None, high: float | None) -> Color:
    """The numbers clamped to low and high, with 5 digits; `before` if one is NaN or beyond 1e30."""
    if any(n != n or abs(n) > 1e30 for n in numbers):
        return before
    low, high = 0.0 if low is None else low, 1e30 if high is None else high
    return tuple(float(f"{min(max(n, low), high):.5g}") for n in numbers)
