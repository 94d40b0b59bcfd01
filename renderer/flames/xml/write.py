"""Writes key frames as .flame files in flam3's XML, which read.py reads as the same key frames.

flames/studio.py, the flame editor and the command line call to_xml().
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace

from renderer.errors import InputError
from renderer.flames.genome import IDENTITY_2D, Flame, Xform
from renderer.flames.interpolation import KeyFrame
from renderer.flames.kernel_arguments import adjusted_opacity
from renderer.flames.xml.attributes import escape_attribute
from renderer.flames.xml.dialects import CURVES, FLAM3_FILTERS, is_jwildfire, names_filters_rightly
from renderer.flames.xml.jwildfire import plane_affines
from renderer.flames.xml.read import FLAME_ATTRIBUTES

LENS = ("new_dof", "blur_curve", "antialias_amount", "antialias_radius")
OMITTED = {  # attribute -> its default value, which is not written
    "pixel_aspect": 1.0, "passes": 1, "palette": -1, "hue": 0.0, "exposure": "flam3", "contrast": 1.0,
    "low_density_brightness": 0.0, "saturation": 1.0, "fg_opacity": 1.0, "balancing_red": 1.0, "balancing_green": 1.0,
    "balancing_blue": 1.0, "bg_transparency": False,
} | {f.name: f.default for f in fields(Flame) if f.name.startswith("cam_") or f.name in LENS}  # fmt: skip
# Filter -> the name in filter_shape for which flam3 draws it: flam3 exchanges some of the names.
FILTER_NAMES = {drawn: named for named, drawn in FLAM3_FILTERS.items()}


def _format_value(value: object) -> str:
    """A value as files have it: numbers separated by spaces, truth values as 0 or 1, whole numbers without a point."""
    if isinstance(value, (tuple, list)):
        return " ".join(map(_format_value, value))
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)


def _element(tag: str, attributes: Mapping[str, object], children: Iterable[str] = (), indent: str = "   ") -> str:
    """One XML element; `children` are elements as text."""
    listed = "".join(f' {name}="{escape_attribute(_format_value(value))}"' for name, value in attributes.items())
    children = list(children)
    if not children:
        return f"{indent}<{tag}{listed}/>"
    return "\n".join([f"{indent}<{tag}{listed}>", *children, f"{indent}</{tag}>"])


def to_xml(keyframes: Iterable[KeyFrame]) -> str:
    """The XML of key frames. Raises InputError if a flame cannot be written, such as a 3D one."""
    return "\n".join(["<flames>", *map(flame_text, keyframes), "</flames>", ""])


def flame_text(key: KeyFrame) -> str:
    """The <flame> element of a key frame: the attributes without defaults, then xforms and palette, or layers."""
    flame = key.flame
    attributes: dict[str, object] = {"name": key.extra["name"]} if "name" in key.extra else {}
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
        for name, points in zip(CURVES, flame.curves, strict=False)  # four curves or none
        if points
    }
    attributes |= {name: text for name, text in key.extra.items() if name != "name"}
    version = key.extra.get("version", "")
    if len(flame.final_xforms) > 1 and not is_jwildfire(version):
        raise InputError("a flame with several final xforms can be written only as one of JWildfire's")
    children = _body(flame, is_jwildfire(version))
    if flame.layers:
        children = [_element("layer", {}, _body(layer, is_jwildfire(version))) for layer in flame.layer_flames]
    return _element("flame", attributes, children, "")


def _body(flame: Flame, is_jwildfire: bool) -> list[str]:
    """The XML elements of a flame's or layer's xforms and palette."""
    xforms = [(xform, "xform") for xform in flame.xforms] + [(xform, "finalxform") for xform in flame.final_xforms]
    return [*(_xform_element(*each, is_jwildfire) for each in xforms), *_palette_elements(flame)]


def _xform_element(xform: Xform, tag: str, is_jwildfire: bool) -> str:
    """An <xform> or <finalxform> element; raises InputError for affines in space that have no such attributes."""
    affine, post = plane_affines(xform.affine, xform.extra, "coefs"), plane_affines(xform.post, xform.extra, "post")
    if affine is None or post is None:
        raise InputError(
            "an xform in space cannot be written to a .flame file; its affine is no product of maps of x y, y z and z x"
        )
    planes = {n: _coefs(v) for n, v in {**affine, **({} if post == {"post": IDENTITY_2D} else post)}.items()}
    if is_jwildfire and tag == "xform":
        xform = replace(xform, opacity=float(f"{adjusted_opacity(xform.opacity):.10g}"))
    attributes: dict[str, object] = {} if tag == "finalxform" else {"weight": xform.weight}
    attributes |= {name: getattr(xform, name) for name in ("color", "color_speed", "animate", "opacity")}
    attributes |= {"var_color": xform.var_color} if xform.var_color != 1 else {}
    attributes |= {"color_type": xform.color_type.upper()} if xform.color_type != "diffusion" else {}
    attributes |= {**xform.modifiers, **xform.variations, **xform.parameters, **planes}
    if xform.xaos:
        attributes["chaos"] = xform.xaos
    attributes |= {name: text for name, text in xform.extra.items() if name not in planes}
    return _element(tag, attributes, [f"      <motion {text}/>" for text in xform.motion])


def _coefs(affine: tuple[float, ...]) -> tuple[float, ...]:
    """The coefficients column by column, the order of flam3's files."""
    a, b, c, d, e, f = affine
    return a, d, b, e, c, f


def _palette_elements(flame: Flame) -> list[str]:
    """<color> elements if there are alphas or colors that are not whole numbers, else one <palette> in hexadecimal."""
    colors = flame.palette_colors
    if flame.alphas:
        rgba = zip(colors.tolist(), flame.alphas, strict=True)
        return [_element("color", {"index": i, "rgba": (*rgb, 255 * alpha)}) for i, (rgb, alpha) in enumerate(rgba)]
    if (colors != colors.round()).any():
        return [_element("color", {"index": i, "rgb": tuple(rgb)}) for i, rgb in enumerate(colors.tolist())]
    lines = ["      " + row.tobytes().hex().upper() for row in colors.astype("u1").reshape(32, 8, 3)]
    return ["\n".join(['   <palette count="256" format="RGB">', *lines, "   </palette>"])]
