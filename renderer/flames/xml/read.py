"""Reading the .flame format: XML in, key frames out. written.py writes what reads the same."""

import codecs
import difflib
import math
import sys
import types
from pathlib import Path

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from renderer.errors import InputError
from renderer.flames.genome import Flame, Xform
from renderer.flames.interpolation import KeyFrame
from renderer.flames.variations import ALIASES, parameter_owners, variation_table
from renderer.flames.xml.attributes import AttributeParser, escape_attribute
from renderer.flames.xml.palette import parse_palette
from renderer.scene.schema import format_value, read_file

MAX_XFORMS = 4096
LARGEST_SIZE = 1 << 17
FLAM3_DEFAULTS = dict(quality=1.0, estimator_radius=9.0, temporal_samples=1000)  # where flam3's differ from ours
FLOAT_ATTRIBUTES = {  # attribute -> field of the Flame
    "quality": "quality", "brightness": "brightness", "gamma": "gamma", "gamma_threshold": "gamma_threshold",
    "vibrancy": "vibrancy", "highlight_power": "highlight_power", "filter": "filter_radius",
    "estimator_radius": "estimator_radius", "estimator_minimum": "estimator_minimum",
    "estimator_curve": "estimator_curve", "temporal_filter_width": "temporal_filter_width",
    "temporal_filter_exp": "temporal_filter_exp",
}  # fmt: skip
CAMERA_ATTRIBUTES = {
    "time": "time", "scale": "scale", "zoom": "zoom", "rotate": "rotate", "pixel_aspect": "pixel_aspect",
    "hsv_rgb_palette_blend": "hsv_rgb_palette_blend", "hue": "hue",
}  # fmt: skip
INT_ATTRIBUTES = {"supersample": "supersample", "oversample": "supersample", "passes": "passes",
          "temporal_samples": "temporal_samples"}  # fmt: skip
ENUM_ATTRIBUTES = {  # attribute -> (whether it is the key frame's, allowed words)
    "filter_shape": (False, ("gaussian", "hermite", "box", "triangle", "bell", "bspline", "mitchell", "blackman",
                             "catrom", "hanning", "hamming", "lanczos3", "lanczos2", "quadratic")),
    "palette_mode": (False, ("step", "linear")),
    "temporal_filter_type": (False, ("box", "gaussian", "exp")),
    "interpolation": (True, ("linear", "smooth")),
    "interpolation_type": (True, ("log", "linear", "compat", "old", "older")),
    "palette_interpolation": (True, ("hsv_circular", "hsv", "rgb", "sweep")),
}  # fmt: skip
XFORM_ATTRIBUTES = ("weight", "color_speed", "animate", "opacity")
ATTRIBUTE_ALIASES = {"linear3D": "linear", "interpolation_space": "interpolation_type"}
VALUE_ALIASES = {"hsv2": "hsv_circular"}
CAMERA_3D_ATTRIBUTES = (
    "cam_pitch",
    "cam_yaw",
    "cam_roll",
    "cam_perspective",
    "cam_persp",
    "cam_zpos",
    "cam_dof",
)  # Apophysis 7X


def read_flames(path: Path) -> tuple[list[KeyFrame], list[str]]:
    """The <flame> elements of a file in its order, and warnings. InputError: file, element, attribute and value."""
    data, parser = read_file(Path(path)), AttributeParser(path)
    try:
        declared = b"encoding" in data[:100] or data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        return _parse(parser, data if declared else data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        parser.warn("not UTF-8 text, and no other encoding is declared; Windows-1252 is taken")
        return _parse(parser, data.decode("cp1252", "replace"))


def parse_flames(text: str, path="text") -> tuple[list[KeyFrame], list[str]]:
    """As read_flames, of a text."""
    return _parse(AttributeParser(path), text)


def _parse(parser: AttributeParser, text: str | bytes) -> tuple[list[KeyFrame], list[str]]:
    path = parser.path
    try:
        root = ElementTree.fromstring(text)
    except DefusedXmlException as error:
        raise InputError(f"{path}: XML with entities is not read ({type(error).__name__})") from error
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not an XML file: {error}") from error
    elements = [root] if root.tag == "flame" else list(root.iter("flame"))
    if not elements:
        raise InputError(f"{path}: holds no <flame> element; its root is <{root.tag}>")
    keys = []
    for number, element in enumerate(elements):
        name = element.get("name")
        parser.location = f"{path}: flame {number}" + (f" {name!r}" if name else "")
        keys.append(_parse_flame(parser, element))
    return keys, parser.warnings


def print_warnings(path, warnings: list[str]) -> None:
    """Tells the warnings of a file on stderr."""
    for sentence in warnings:
        print(f"rayfold: {path}: warning: {sentence}", file=sys.stderr)


def _parse_flame(parser: AttributeParser, element) -> KeyFrame:
    flame, camera, extra = dict(FLAM3_DEFAULTS), {}, {}
    for name, text in element.attrib.items():
        name = ATTRIBUTE_ALIASES.get(name, name)
        if name in FLOAT_ATTRIBUTES:
            flame[FLOAT_ATTRIBUTES[name]] = parser.number(name, text)
        elif name in CAMERA_ATTRIBUTES:
            camera[CAMERA_ATTRIBUTES[name]] = parser.number(name, text)
        elif name in INT_ATTRIBUTES:
            flame[INT_ATTRIBUTES[name]] = int(parser.number(name, text))
        elif name in ENUM_ATTRIBUTES:
            is_key, allowed = ENUM_ATTRIBUTES[name]
            word = VALUE_ALIASES.get(text.lower(), text.lower())
            if word not in allowed:
                parser.warn(f"{name} is {format_value(text)}, which is unknown; {allowed[0]} is taken")
                word = allowed[0]
            (camera if is_key else flame)[name] = word
        elif name == "background":
            flame["background"] = tuple(parser.numbers(name, text, 3))
        elif name == "center":
            camera["center"] = tuple(parser.numbers(name, text, 2))
        elif name == "size":
            camera["size"] = tuple(int(n) for n in parser.numbers(name, text, 2))
        elif name == "palette":
            camera["palette_number"] = int(parser.number(name, text))
        elif name != "soloxform":
            extra[name] = text
            if name in CAMERA_3D_ATTRIBUTES and text.strip("0. "):
                parser.warn(
                    f"{name} is {format_value(text)}, of a camera in space; the flame is drawn flat, as flam3 does"
                )
    _check_ranges(parser, flame, camera)
    xforms, final = _parse_xforms(parser, element)
    colors, alphas = parse_palette(parser, element, camera.get("palette_number", -1), camera.get("hue", 0.0))
    flame.update(xforms=xforms, final_xform=final, colors=tuple(map(tuple, colors.tolist())), alphas=alphas)
    try:
        return KeyFrame(Flame(**flame), extra=types.MappingProxyType(extra), **camera)
    except ValueError as error:
        parser.fail(str(error))


def _check_ranges(parser: AttributeParser, flame: dict, camera: dict) -> None:
    """The bounds that the fields of a scene file have too."""
    limits = [
        ("size", min(camera.get("size", (1, 1))), 1, LARGEST_SIZE), ("size", max(camera.get("size", (1, 1))), 1,
        LARGEST_SIZE),
        ("scale", camera.get("scale", 1.0), 1e-30, 1e30), ("zoom", camera.get("zoom", 0.0), -100, 100),
        ("pixel_aspect", camera.get("pixel_aspect", 1.0), 1e-3, 1e3), ("quality", flame["quality"], 1e-3, 1e9),
        ("gamma", flame.get("gamma", 4.0), 0.01, 1e3), ("brightness", flame.get("brightness", 4.0), 0, 1e6),
        ("supersample", flame.get("supersample", 1), 1, 16), ("filter", flame.get("filter_radius", 0.5), 0, 100),
        ("temporal_samples", flame["temporal_samples"], 1, 10000), ("passes", flame.get("passes", 1), 1, 1000),
        ("estimator_curve", flame.get("estimator_curve", 0.4), 0.01, 10),
        ("estimator_radius", flame["estimator_radius"], 0, 100), ("estimator_minimum", flame.get("estimator_minimum",
        0.0), 0, 100),
        ("gamma_threshold", flame.get("gamma_threshold", 0.01), 0, 1e6),
    ]  # fmt: skip
    for name, value, low, high in limits:
        if not low <= value <= high:
            parser.fail(f"{name} is {value:g}; it must be {low:g} to {high:g}")


# ---- xforms


def _parse_xforms(parser: AttributeParser, element) -> tuple[tuple[Xform, ...], Xform | None]:
    xforms, final = [], None
    for child in element:
        if child.tag == "xform":
            xforms.append(_parse_xform(parser, child, len(xforms), len(xforms) + (final is not None), False))
        elif child.tag == "finalxform":
            if final is not None:
                parser.fail("has more than one <finalxform>; at most one is allowed")
            final = _parse_xform(parser, child, 0, len(xforms), True)
        elif child.tag == "symmetry":
            kind = int(parser.number("symmetry kind", child.get("kind", "0")))
            if abs(kind) > 1000:
                parser.fail(f"symmetry kind is {kind}; it must be -1000 to 1000")
            if kind == 0:
                parser.warn("symmetry kind is 0, which stands for one by chance; none is added")
            xforms += symmetry_xforms(kind)
        if len(xforms) > MAX_XFORMS:
            parser.fail(f"has more than {MAX_XFORMS} xforms")
    if not xforms:
        parser.fail("has no <xform>; at least one is wanted")
    solo = element.get("soloxform")
    if solo is not None and int(parser.number("soloxform", solo)) >= 0:
        from dataclasses import replace

        keep = int(parser.number("soloxform", solo))
        xforms = [m if i == keep else replace(m, opacity=0.0) for i, m in enumerate(xforms)]
    if not sum(m.weight for m in xforms) > 0:
        parser.fail("the weights of all xforms are 0, so none can be drawn; at least one must be above 0")
    return tuple(xforms), final


def symmetry_xforms(kind: int) -> list[Xform]:
    """What <symmetry kind> appends: rotations by parts of a turn, after a mirror where kind is negative."""
    xforms = []
    if kind < 0:
        xforms.append(Xform((-1.0, 0.0, 0.0, 0.0, 1.0, 0.0), color=1.0, color_speed=0.0, animate=0.0))
    count = abs(kind)
    for k in range(1, count):
        c, s = (round(f(2 * math.pi * k / count), 6) for f in (math.cos, math.sin))
        color = 0.0 if count < 3 else (k - 1) / (count - 2)
        xforms.append(Xform((c, -s, 0.0, s, c, 0.0), color=color, color_speed=0.0, animate=0.0))
    return xforms


def _parse_coefs(parser: AttributeParser, name: str, text: str) -> tuple[float, ...]:
    a, d, b, e, c, f = parser.numbers(name, text, 6)
    return (a, b, c, d, e, f)


def _parse_xform(parser: AttributeParser, element, index: int, place: int, final: bool) -> Xform:
    """A map; `place`: of the element among those of xforms and the final map, whose colors alternate by default."""
    where = "finalxform" if final else f"xform {index}"
    values: dict = dict(weight=0.0, color=float(place & 1))
    variations, parameters, extra, motion = {}, {}, {}, []
    for name, text in element.attrib.items():
        label = f"{where}: {name}"
        if name in XFORM_ATTRIBUTES:
            values[name] = parser.number(label, text)
        elif name == "color":
            values["color"] = (parser.numbers(label, text) or [0.0])[0]
        elif name == "symmetry":
            amount = parser.number(label, text)
            values["color_speed"] = (1 - amount) / 2
            values["animate"] = 0.0 if amount > 0 else 1.0
        elif name == "coefs":
            values["affine"] = _parse_coefs(parser, label, text)
        elif name == "post":
            values["post"] = _parse_coefs(parser, label, text)
        elif name == "chaos":
            values["xaos"] = tuple(parser.numbers(label, text))
            if any(factor < 0 for factor in values["xaos"]):
                parser.fail(f"{label} is {format_value(text)}; factors must be at least 0")
        elif name == "plotmode":
            if text.lower() == "off":
                values["opacity"] = 0.0
        elif name == "var":  # the old forms say all weights, so what stands before them counts for nothing
            variations = dict(zip(variation_table(), parser.numbers(label, text), strict=False))
        elif name == "var1":
            number = int(parser.number(label, text))
            if not 0 <= number < len(variation_table()):
                parser.fail(f"{label} is {number}; it must be 0 to {len(variation_table()) - 1}")
            variations = {list(variation_table())[number]: 1.0}
        elif ATTRIBUTE_ALIASES.get(name, name) in variation_table():
            name = ATTRIBUTE_ALIASES.get(name, name)
            variations[name] = variations.get(name, 0.0) + parser.number(label, text)
        elif ALIASES.get(name, name) in parameter_owners():
            parameters[ALIASES.get(name, name)] = parser.number(label, text)
            if name == "super_shape_rnd":
                parameters[name] = min(max(parameters[name], 0.0), 1.0)
        else:
            extra[name] = text
            if name != "name":
                near = difflib.get_close_matches(name, [*variation_table(), *parameter_owners()], 1, 0.0)[0]
                parser.warn(f"{label}: no variation or parameter known here; it is left out (nearest known: {near})")
    if values["weight"] < 0:
        parser.fail(f"{where}: weight is {values['weight']:g}; it must be at least 0")
    if not 0 <= values.get("opacity", 1.0) <= 1:
        parser.warn(f"{where}: opacity is {values['opacity']:g}; it is taken as {int(values['opacity'] > 0)}")
    if final and values.pop("weight") != 0:
        parser.fail("finalxform: has a weight; the final map is applied always, so it must have none")
    for child in element:
        if child.tag == "motion":
            motion.append(" ".join(f'{name}="{escape_attribute(text)}"' for name, text in child.attrib.items()))
    try:
        return Xform(
            variations=types.MappingProxyType({k: v for k, v in variations.items() if v != 0}),
            parameters=types.MappingProxyType(parameters),
            extra=types.MappingProxyType(extra),
            motion=tuple(motion),
            **values,
        )
    except ValueError as error:
        parser.fail(f"{where}: {error}")
