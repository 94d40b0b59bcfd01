"""Writing .flame files: key frames as flam3's XML, which read.py reads as the same key frames."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from renderer.errors import InputError
from renderer.flames.genome import IDENTITY_2D, Flame, Xform
from renderer.flames.interpolation import KeyFrame
from renderer.flames.xml.attributes import escape_attribute
from renderer.flames.xml.dialects import CURVES, FLAM3_FILTERS, names_filters_rightly
from renderer.flames.xml.read import FLAME_ATTRIBUTES

OMITTED = {  # values that are not written: the defaults
    "pixel_aspect": 1.0, "passes": 1, "palette": -1, "hue": 0.0, "exposure": "flam3", "contrast": 1.0,
    "low_density_brightness": 0.0, "saturation": 1.0, "fg_opacity": 1.0,
} | {
    field.name: field.default for field in fields(Flame) if field.name.startswith("cam_") or field.name == "new_dof"
}  # fmt: skip
FILTER_NAMES = {drawn: named for named, drawn in FLAM3_FILTERS.items()}  # that make flam3 draw the filter


def _format_value(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return " ".join(map(_format_value, value))
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)


def _element(tag: str, attributes: dict[str, Any], children: Iterable[str] = (), indent: str = "   ") -> str:
    listed = "".join(f' {name}="{escape_attribute(_format_value(value))}"' for name, value in attributes.items())
    children = list(children)
    if not children:
        return f"{indent}<{tag}{listed}/>"
    return "\n".join([f"{indent}<{tag}{listed}>", *children, f"{indent}</{tag}>"])


def to_xml(keyframes: Iterable[KeyFrame]) -> str:
    """The XML of key frames, which parses as the same key frames."""
    return "\n".join(["<flames>", *map(_flame_element, keyframes), "</flames>", ""])


def _flame_element(key: KeyFrame) -> str:
    flame = key.flame
    attributes: dict[str, Any] = {"name": key.extra["name"]} if "name" in key.extra else {}
    for name, attribute in FLAME_ATTRIBUTES.items():
        value = getattr(key if attribute.of_keyframe else flame, attribute.field)
        if value != OMITTED.get(name):
            attributes[name] = value
    if not names_filters_rightly(key.extra.get("version", "")):
        attributes["filter_shape"] = FILTER_NAMES.get(flame.filter_shape, flame.filter_shape)
    if flame.exposure == "flam3" and flame.white_level == 255:
        del attributes["white_level"]
    attributes |= {
        name: [number for point in points for number in point]
        for name, points in zip(CURVES, flame.curves, strict=False)
        if points
    }
    attributes |= {name: text for name, text in key.extra.items() if name != "name"}
    children = [_xform_element(xform, "xform") for xform in flame.xforms]
    children += [_xform_element(flame.final_xform, "finalxform")] if flame.final_xform else []
    return _element("flame", attributes, children + _palette_elements(flame), "")


def _xform_element(xform: Xform, tag: str) -> str:
    if len(xform.affine) != 6:
        raise InputError("a 3D flame cannot be written as a .flame file; its xforms have 12 coefficients")
    attributes: dict[str, Any] = {} if tag == "finalxform" else {"weight": xform.weight}
    attributes |= {name: getattr(xform, name) for name in ("color", "color_speed", "animate", "opacity")}
    attributes |= {"var_color": xform.var_color} if xform.var_color != 1 else {}
    attributes |= {**xform.variations, **xform.parameters, "coefs": _coefs(xform.affine)}
    if xform.post != IDENTITY_2D:
        attributes["post"] = _coefs(xform.post)
    if xform.xaos:
        attributes["chaos"] = xform.xaos
    return _element(tag, attributes | dict(xform.extra), [f"      <motion {text}/>" for text in xform.motion])


def _coefs(affine: tuple[float, ...]) -> tuple[float, ...]:
    a, b, c, d, e, f = affine
    return a, d, b, e, c, f


def _palette_elements(flame: Flame) -> list[str]:
    colors = flame.palette_colors
    if flame.alphas:
        rgba = zip(colors.tolist(), flame.alphas, strict=True)
        return [_element("color", {"index": i, "rgba": (*rgb, 255 * alpha)}) for i, (rgb, alpha) in enumerate(rgba)]
    if (colors != colors.round()).any():
        return [_element("color", {"index": i, "rgb": tuple(rgb)}) for i, rgb in enumerate(colors.tolist())]
    lines = ["      " + row.tobytes().hex().upper() for row in colors.astype("u1").reshape(32, 8, 3)]
    return ["\n".join(['   <palette count="256" format="RGB">', *lines, "   </palette>"])]
