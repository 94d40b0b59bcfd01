"""Controls of colors and of names: a color with its picker, an item chosen by its name from a list."""

from collections.abc import Sequence

from renderer.window.controls.toolkit import imgui

NONE = "(none)"
Color = tuple[float, ...]  # red, green, blue, linear


def choose_name(value: str, names: Sequence[str], may_be_empty: bool) -> str:
    """A list of names; returns the chosen one, or the empty text for none."""
    if not imgui.begin_combo("##name", value or NONE):
        return value
    for number, name in enumerate(["", *names] if may_be_empty else names):
        if imgui.selectable(f"{name or NONE}##{number}", name == value)[0]:
            value = name
    imgui.end_combo()
    return value


def choose_names(value: tuple[str, ...], names: Sequence[str]) -> tuple[str, ...]:
    """A list of names, of which at least one stays chosen."""
    chosen = list(value)
    if imgui.begin_combo("##names", ", ".join(value)):
        for number, name in enumerate(names):
            changed, on = imgui.checkbox(f"{name}##{number}", name in chosen)
            if changed:
                chosen = [*chosen, name] if on else [other for other in chosen if other != name]
        imgui.end_combo()
    return tuple(chosen) or value


def edit_color(value: Color, low: float | None, high: float | None) -> Color:
    """A swatch that opens a picker, and the linear numbers; above 1 the picker shows the hue, and a strength."""
    strength = max(1.0, *value)
    shown = [_encode(v / strength) for v in value[:3]]
    side = imgui.get_frame_height()
    width = imgui.calc_item_width() - side - imgui.get_style().item_inner_spacing.x
    if imgui.color_button(
        "##swatch", imgui.ImVec4(shown[0], shown[1], shown[2], 1.0), imgui.ColorEditFlags_.no_tooltip, (side, side)
    ):
        imgui.open_popup("picker")
    imgui.set_item_tooltip("choose a color")
    out = value
    imgui.same_line(0, imgui.get_style().item_inner_spacing.x)
    imgui.set_next_item_width(width)
    changed, numbers = imgui.input_float3("##rgb", list(value[:3]), "%.4g")
    if changed:
        out = _clamped(numbers, value, low, high)
    if imgui.begin_popup("picker"):
        changed, picked = imgui.color_picker3("##picked", shown, imgui.ColorEditFlags_.no_side_preview)
        if changed:
            out = _clamped([_decode(p) * strength for p in picked], value, low, high)
        if high is None or high > 1:
            changed, factor = imgui.drag_float("strength", strength, 0.02 * strength, 1e-3, high or 1e6, "%.4g")
            if changed and factor > 0:
                out = _clamped([v / strength * factor for v in value], value, low, high)
        imgui.end_popup()
    return out


def _clamped(numbers: Sequence[float], before: Color, low: float | None, high: float | None) -> Color:
    """The numbers within their range, with the digits that matter; the old color for what is none."""
    if any(n != n or abs(n) > 1e30 for n in numbers):
        return before
    low, high = 0.0 if low is None else low, 1e30 if high is None else high
    return tuple(float(f"{min(max(n, low), high):.5g}") for n in numbers)


def _encode(linear: float) -> float:
    """sRGB's curve."""
    linear = min(max(linear, 0.0), 1.0)
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055


def _decode(encoded: float) -> float:
    """The inverse of sRGB's curve."""
    return encoded / 12.92 if encoded <= 0.04045 else ((encoded + 0.055) / 1.055) ** 2.4
