"""Parses the palette of a <flame> for read.py: elements <color>, <colors>, <palette>, and flam3's numbered palettes."""

from xml.etree.ElementTree import Element

import numpy as np

from renderer.flames.palettes import builtin, flam3_palette, flam3_palettes, interpolate_hsv, interpolated, resampled
from renderer.flames.xml.attributes import AttributeParser
from renderer.plain import format_value

MAX_COLORS = 1 << 16
WHITE = np.full((256, 3), 255.0)
NOT_INSTALLED = "is one of flam3's, which are not installed here; using spectrum instead"


def parse_palette(
    parser: AttributeParser, element: Element, number: int, hue: float
) -> tuple[np.ndarray, tuple[float, ...]]:
    """(256, 3) colors 0 to 255 and 256 alphas (an empty tuple if all are 1).

    Entries that no element sets are interpolated. If `number` is not negative and flam3 is installed, flam3's palette
    of that number, its hues rotated by `hue` revolutions, overrides all elements.
    """
    colors, alphas = np.full((256, 3), np.nan), np.ones(256)
    for child in element:
        if child.tag == "color":
            _parse_color(parser, child, colors, alphas)
        elif child.tag == "colors":
            _parse_hex(parser, child.get("data", ""), "00RGB", colors, alphas, "colors")
        elif child.tag == "palette" and child.get("index0") is not None:
            _parse_blend(parser, child, colors)
        elif child.tag == "palette":
            form = "RGBA" if child.get("format", "RGB").upper() == "RGBA" else "RGB"
            _parse_hex(parser, (child.text or "") + child.get("data", ""), form, colors, alphas, "palette")
    if number >= 0 and flam3_palettes():
        colors, alphas = _flam3_palette(parser, number, hue).copy(), np.ones(256)
    elif number >= 0:
        if np.isnan(colors).all():
            colors = builtin("spectrum").copy()
        parser.warn(f"palette {number} {NOT_INSTALLED}")
    colors, alphas = _fill_gaps(parser, colors, alphas)
    return colors, () if (alphas == 1).all() else tuple(alphas.tolist())


def _parse_color(parser: AttributeParser, child: Element, colors: np.ndarray, alphas: np.ndarray) -> None:
    """Set the entry of `colors` and `alphas` that a <color> element defines."""
    index = int(parser.number("color index", child.get("index", "")))
    if not 0 <= index < 256:
        parser.fail(f"color index is {index}; it must be 0 to 255")
    rgba = child.get("rgba")
    if rgba is not None:
        *rgb, alpha = parser.numbers("color rgba", rgba, 4)
    else:
        rgb = parser.numbers("color rgb", child.get("rgb", ""), 3)
        alpha = parser.number("color a", child.get("a", "255"))
    colors[index], alphas[index] = np.clip(rgb, 0, 255), min(max(alpha / 255, 0.0), 1.0)


def _parse_hex(
    parser: AttributeParser, text: str, form: str, colors: np.ndarray, alphas: np.ndarray, element: str
) -> None:
    """Set the first entries of `colors` and `alphas` from hexadecimal bytes in a `form`: "RGB", "00RGB" or "RGBA".

    Colors of form RGBA are premultiplied by alpha. `element`: the element's name, for errors.
    """
    digits, channels = "".join(text.split()), 3 if form == "RGB" else 4
    try:
        data = np.frombuffer(bytes.fromhex(digits), "u1")
    except ValueError:
        parser.fail(f"{element}: not hexadecimal digits in pairs: {format_value(digits)}")
    if len(data) % channels or len(data) > MAX_COLORS * channels:
        count = len(data) / channels
        parser.fail(f"{element}: {count:g} colors; it must be at most {MAX_COLORS}, each of {2 * channels} digits")
    if 0 < len(data) < 256 * channels:
        parser.warn(f"{element}: {len(data) // channels} colors are the first of 256 entries, as in flam3")
    entries = data.reshape(-1, channels).astype("f8")
    entries = resampled(entries) if len(entries) > 256 else entries
    if form == "RGBA":
        alphas[: len(entries)] = entries[:, 3] / 255
        colors[: len(entries)] = entries[:, :3] * 255 / np.maximum(entries[:, 3:], 1)
    else:
        colors[: len(entries)] = entries[:, -3:]


def _flam3_palette(parser: AttributeParser, number: int, hue: float) -> np.ndarray:
    """(256, 3): flam3's palette of that number; white and a warning for an unknown number, as in flam3."""
    colors = flam3_palette(number, hue)
    if colors is None:
        parser.warn(f"palette {number} is none of flam3's; using white instead")
    return WHITE if colors is None else colors


def _parse_blend(parser: AttributeParser, child: Element, colors: np.ndarray) -> None:
    """Set all `colors` by the old form of <palette>: a blend of two of flam3's palettes."""
    blend = parser.number("palette blend", child.get("blend", "0.5"))
    pair = [
        (int(parser.number("palette index", child.get(f"index{k}", "0"))),
         parser.number("palette hue", child.get(f"hue{k}", "0")))
        for k in (0, 1)
    ]  # fmt: skip
    if flam3_palettes():
        colors[:] = interpolate_hsv([_flam3_palette(parser, *each) for each in pair], (1 - blend, blend))
    else:
        colors[:] = builtin("spectrum")
        parser.warn(f"palette {pair[0][0]} {NOT_INSTALLED}")


def _fill_gaps(parser: AttributeParser, colors: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate entries that are NaN between their neighbors, cyclically, premultiplied by alpha."""
    known = np.flatnonzero(~np.isnan(colors[:, 0]))
    if len(known) == 0:
        which = parser.location.removeprefix(f"{parser.path}: ")
        parser.warn(f"{which} has no palette; using spectrum instead")
        return builtin("spectrum").copy(), np.ones(256)
    unknown = np.flatnonzero(np.isnan(colors[:, 0]))
    values = np.concatenate([colors[known] * alphas[known, None], alphas[known, None]], 1)
    filled = interpolated(unknown, known, values, period=256)
    colors[unknown] = filled[:, :3] / np.maximum(filled[:, 3:], 1e-9)
    alphas[unknown] = filled[:, 3]
    return colors, alphas
