"""Writing the .flame format: the XML of key frames, which reads as the same key frames."""

import numpy as np

from renderer.errors import InputError
from renderer.flames.genome import IDENTITY_2D, Flame, Xform
from renderer.flames.interpolation import KeyFrame
from renderer.flames.palettes import builtin
from renderer.flames.xml.attributes import escape_attribute
from renderer.flames.xml.read import ENUM_ATTRIBUTES, FLOAT_ATTRIBUTES


def _format_value(value) -> str:
    if isinstance(value, (tuple, list)):
        return " ".join(map(_format_value, value))
    if isinstance(value, float):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)


def _element(tag: str, attributes: dict, inside: list[str] | None = None, indent: str = "   ") -> str:
    listed = "".join(f' {name}="{escape_attribute(_format_value(value))}"' for name, value in attributes.items())
    if not inside:
        return f"{indent}<{tag}{listed}/>"
    return "\n".join([f"{indent}<{tag}{listed}>", *inside, f"{indent}</{tag}>"])


def to_xml(keys: list[KeyFrame]) -> str:
    """The XML of key frames, which reads as the same key frames."""
    return "\n".join(["<flames>", *map(_flame_element, keys), "</flames>", ""])


def _flame_element(key: KeyFrame) -> str:
    flame, attributes = key.flame, {}
    if "name" in key.extra:
        attributes["name"] = key.extra["name"]
    attributes |= {"time": key.time, "size": key.size, "center": key.center, "scale": key.scale}
    attributes |= {"zoom": key.zoom, "rotate": key.rotate}
    if key.pixel_aspect != 1:
        attributes["pixel_aspect"] = key.pixel_aspect
    attributes |= {"supersample": flame.supersample, "temporal_samples": flame.temporal_samples}
    if flame.passes != 1:
        attributes["passes"] = flame.passes
    attributes |= {name: getattr(flame, name_of) for name, name_of in FLOAT_ATTRIBUTES.items()}
    attributes |= {name: getattr(key if is_key else flame, name) for name, (is_key, _) in ENUM_ATTRIBUTES.items()}
    attributes |= {"hsv_rgb_palette_blend": key.hsv_rgb_palette_blend, "background": flame.background}
    if key.palette_number >= 0:
        attributes |= {"palette": key.palette_number, "hue": key.hue}
    attributes |= {name: text for name, text in key.extra.items() if name != "name"}
    inside = [_xform_element(m, "xform") for m in flame.xforms]
    inside += [_xform_element(flame.final_xform, "finalxform")] if flame.final_xform else []
    return _element("flame", attributes, inside + _palette_element(flame), "")


def _xform_element(m: Xform, tag: str) -> str:
    if len(m.affine) != 6:
        raise InputError("a flame of space cannot be written as a .flame file; its xforms have 12 numbers")
    a, b, c, d, e, f = m.affine
    attributes = {} if tag == "finalxform" else {"weight": m.weight}
    attributes |= {"color": m.color, "color_speed": m.color_speed, "animate": m.animate, "opacity": m.opacity}
    attributes |= dict(m.variations) | dict(m.parameters)
    attributes["coefs"] = (a, d, b, e, c, f)
    if m.post != IDENTITY_2D:
        a, b, c, d, e, f = m.post
        attributes["post"] = (a, d, b, e, c, f)
    if m.xaos:
        attributes["chaos"] = m.xaos
    attributes |= dict(m.extra)
    return _element(tag, attributes, [f"      <motion {text}/>" for text in m.motion])


def _palette_element(flame: Flame) -> list[str]:
    colors = np.array(flame.colors or builtin(flame.palette))
    if flame.alphas:
        rows = np.concatenate([colors, 255 * np.array(flame.alphas)[:, None]], 1)
        return [_element("color", {"index": i, "rgba": tuple(row)}) for i, row in enumerate(rows.tolist())]
    if (colors != np.round(colors)).any():
        return [_element("color", {"index": i, "rgb": tuple(row)}) for i, row in enumerate(colors.tolist())]
    rows = colors.astype("u1").reshape(32, 8, 3)
    lines = ["      " + row.tobytes().hex().upper() for row in rows]
    return ["\n".join(['   <palette count="256" format="RGB">', *lines, "   </palette>"])]
