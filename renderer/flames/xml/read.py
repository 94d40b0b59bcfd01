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
from renderer.flames.genome import Flame, Map
from renderer.flames.interpolation import KeyFrame
from renderer.flames.variations import ALIASES, owners, table
from renderer.flames.xml.attributes import Reader, quoted
from renderer.flames.xml.palette import palette_of
from renderer.scene.scene import read_file, told

MOST_MAPS = 4096
LARGEST_SIZE = 1 << 17
DEFAULT = dict(quality=1.0, estimator_radius=9.0, temporal_samples=1000)  # where flam3's differ from ours
NUMBERS = {  # attribute -> field of the Flame
    "quality": "quality", "brightness": "brightness", "gamma": "gamma", "gamma_threshold": "gamma_threshold",
    "vibrancy": "vibrancy", "highlight_power": "highlight_power", "filter": "filter",
    "estimator_radius": "estimator_radius", "estimator_minimum": "estimator_minimum",
    "estimator_curve": "estimator_curve", "temporal_filter_width": "temporal_filter_width",
    "temporal_filter_exp": "temporal_filter_exp",
}  # fmt: skip
CAMERA = {
    "time": "time", "scale": "scale", "zoom": "zoom", "rotate": "rotate", "pixel_aspect": "pixel_aspect",
    "hsv_rgb_palette_blend": "hsv_rgb_palette_blend", "hue": "hue",
}  # fmt: skip
COUNTS = {"supersample": "oversample", "oversample": "oversample", "passes": "passes",
          "temporal_samples": "temporal_samples"}  # fmt: skip
WORDS = {  # attribute -> (whether it is the key frame's, allowed words)
    "filter_shape": (False, ("gaussian", "hermite", "box", "triangle", "bell", "bspline", "mitchell", "blackman",
                             "catrom", "hanning", "hamming", "lanczos3", "lanczos2", "quadratic")),
    "palette_mode": (False, ("step", "linear")),
    "temporal_filter_type": (False, ("box", "gaussian", "exp")),
    "interpolation": (True, ("linear", "smooth")),
    "interpolation_type": (True, ("log", "linear", "compat", "old", "older")),
    "palette_interpolation": (True, ("hsv_circular", "hsv", "rgb", "sweep")),
}  # fmt: skip
MAP_NUMBERS = ("weight", "color_speed", "animate", "opacity")
SYNONYMS = {"linear3D": "linear", "interpolation_space": "interpolation_type"}
WORD_SYNONYMS = {"hsv2": "hsv_circular"}
DEEP = ("cam_pitch", "cam_yaw", "cam_roll", "cam_perspective", "cam_persp", "cam_zpos", "cam_dof")  # Apophysis 7X


def read_flames(path: Path) -> tuple[list[KeyFrame], list[str]]:
    """The <flame> elements of a file in its order, and warnings. InputError: file, element, attribute and value."""
    data, reader = read_file(Path(path)), Reader(path)
    try:
        declared = b"encoding" in data[:100] or data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        return _parsed(reader, data if declared else data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        reader.warn("not UTF-8 text, and no other encoding is declared; Windows-1252 is taken")
        return _parsed(reader, data.decode("cp1252", "replace"))


def parse_flames(text: str, path="text") -> tuple[list[KeyFrame], list[str]]:
    """As read_flames, of a text."""
    return _parsed(Reader(path), text)


def _parsed(reader: Reader, text: str | bytes) -> tuple[list[KeyFrame], list[str]]:
    path = reader.path
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
        reader.where = f"{path}: flame {number}" + (f" {name!r}" if name else "")
        keys.append(_flame(reader, element))
    return keys, reader.warnings


def warn(path, warnings: list[str]) -> None:
    """Tells the warnings of a file on stderr."""
    for sentence in warnings:
        print(f"rayfold: {path}: warning: {sentence}", file=sys.stderr)


def _flame(reader: Reader, element) -> KeyFrame:
    flame, camera, extra = dict(DEFAULT), {}, {}
    for name, text in element.attrib.items():
        name = SYNONYMS.get(name, name)
        if name in NUMBERS:
            flame[NUMBERS[name]] = reader.number(name, text)
        elif name in CAMERA:
            camera[CAMERA[name]] = reader.number(name, text)
        elif name in COUNTS:
            flame[COUNTS[name]] = int(reader.number(name, text))
        elif name in WORDS:
            is_key, allowed = WORDS[name]
            word = WORD_SYNONYMS.get(text.lower(), text.lower())
            if word not in allowed:
                reader.warn(f"{name} is {told(text)}, which is unknown; {allowed[0]} is taken")
                word = allowed[0]
            (camera if is_key else flame)[name] = word
        elif name == "background":
            flame["background"] = tuple(reader.numbers(name, text, 3))
        elif name == "center":
            camera["center"] = tuple(reader.numbers(name, text, 2))
        elif name == "size":
            camera["size"] = tuple(int(n) for n in reader.numbers(name, text, 2))
        elif name == "palette":
            camera["palette_number"] = int(reader.number(name, text))
        elif name != "soloxform":
            extra[name] = text
            if name in DEEP and text.strip("0. "):
                reader.warn(f"{name} is {told(text)}, of a camera in space; the flame is drawn flat, as flam3 does")
    _check(reader, flame, camera)
    maps, final = _maps(reader, element)
    colours, alphas = palette_of(reader, element, camera.get("palette_number", -1), camera.get("hue", 0.0))
    flame.update(maps=maps, final=final, colors=tuple(map(tuple, colours.tolist())), alphas=alphas)
    try:
        return KeyFrame(Flame(**flame), extra=types.MappingProxyType(extra), **camera)
    except ValueError as error:
        reader.fail(str(error))


def _check(reader: Reader, flame: dict, camera: dict) -> None:
    """The bounds that the fields of a scene file have too."""
    limits = [
        ("size", min(camera.get("size", (1, 1))), 1, LARGEST_SIZE), ("size", max(camera.get("size", (1, 1))), 1,
        LARGEST_SIZE),
        ("scale", camera.get("scale", 1.0), 1e-30, 1e30), ("zoom", camera.get("zoom", 0.0), -100, 100),
        ("pixel_aspect", camera.get("pixel_aspect", 1.0), 1e-3, 1e3), ("quality", flame["quality"], 1e-3, 1e9),
        ("gamma", flame.get("gamma", 4.0), 0.01, 1e3), ("brightness", flame.get("brightness", 4.0), 0, 1e6),
        ("supersample", flame.get("oversample", 1), 1, 16), ("filter", flame.get("filter", 0.5), 0, 100),
        ("temporal_samples", flame["temporal_samples"], 1, 10000), ("passes", flame.get("passes", 1), 1, 1000),
        ("estimator_curve", flame.get("estimator_curve", 0.4), 0.01, 10),
        ("estimator_radius", flame["estimator_radius"], 0, 100), ("estimator_minimum", flame.get("estimator_minimum",
        0.0), 0, 100),
        ("gamma_threshold", flame.get("gamma_threshold", 0.01), 0, 1e6),
    ]  # fmt: skip
    for name, value, low, high in limits:
        if not low <= value <= high:
            reader.fail(f"{name} is {value:g}; it must be {low:g} to {high:g}")


# ---- maps


def _maps(reader: Reader, element) -> tuple[tuple[Map, ...], Map | None]:
    maps, final = [], None
    for child in element:
        if child.tag == "xform":
            maps.append(_map(reader, child, len(maps), len(maps) + (final is not None), False))
        elif child.tag == "finalxform":
            if final is not None:
                reader.fail("has more than one <finalxform>; at most one is allowed")
            final = _map(reader, child, 0, len(maps), True)
        elif child.tag == "symmetry":
            kind = int(reader.number("symmetry kind", child.get("kind", "0")))
            if abs(kind) > 1000:
                reader.fail(f"symmetry kind is {kind}; it must be -1000 to 1000")
            if kind == 0:
                reader.warn("symmetry kind is 0, which stands for one by chance; none is added")
            maps += symmetry_maps(kind)
        if len(maps) > MOST_MAPS:
            reader.fail(f"has more than {MOST_MAPS} maps")
    if not maps:
        reader.fail("has no <xform>; at least one is wanted")
    solo = element.get("soloxform")
    if solo is not None and int(reader.number("soloxform", solo)) >= 0:
        from dataclasses import replace

        keep = int(reader.number("soloxform", solo))
        maps = [m if i == keep else replace(m, opacity=0.0) for i, m in enumerate(maps)]
    if not sum(m.weight for m in maps) > 0:
        reader.fail("the weights of all xforms are 0, so none can be drawn; at least one must be above 0")
    return tuple(maps), final


def symmetry_maps(kind: int) -> list[Map]:
    """What <symmetry kind> appends: rotations by parts of a turn, after a mirror where kind is negative."""
    maps = []
    if kind < 0:
        maps.append(Map((-1.0, 0.0, 0.0, 0.0, 1.0, 0.0), color=1.0, color_speed=0.0, animate=0.0))
    count = abs(kind)
    for k in range(1, count):
        c, s = (round(f(2 * math.pi * k / count), 6) for f in (math.cos, math.sin))
        color = 0.0 if count < 3 else (k - 1) / (count - 2)
        maps.append(Map((c, -s, 0.0, s, c, 0.0), color=color, color_speed=0.0, animate=0.0))
    return maps


def _affine(reader: Reader, name: str, text: str) -> tuple[float, ...]:
    a, d, b, e, c, f = reader.numbers(name, text, 6)
    return (a, b, c, d, e, f)


def _map(reader: Reader, element, index: int, place: int, final: bool) -> Map:
    """A map; `place`: of the element among those of maps and the final map, whose colours alternate by default."""
    where = "finalxform" if final else f"xform {index}"
    values: dict = dict(weight=0.0, color=float(place & 1))
    variations, parameters, extra, motion = {}, {}, {}, []
    for name, text in element.attrib.items():
        label = f"{where}: {name}"
        if name in MAP_NUMBERS:
            values[name] = reader.number(label, text)
        elif name == "color":
            values["color"] = (reader.numbers(label, text) or [0.0])[0]
        elif name == "symmetry":
            amount = reader.number(label, text)
            values["color_speed"] = (1 - amount) / 2
            values["animate"] = 0.0 if amount > 0 else 1.0
        elif name == "coefs":
            values["affine"] = _affine(reader, label, text)
        elif name == "post":
            values["post"] = _affine(reader, label, text)
        elif name == "chaos":
            values["xaos"] = tuple(reader.numbers(label, text))
            if any(factor < 0 for factor in values["xaos"]):
                reader.fail(f"{label} is {told(text)}; factors must be at least 0")
        elif name == "plotmode":
            if text.lower() == "off":
                values["opacity"] = 0.0
        elif name == "var":  # the old forms say all weights, so what stands before them counts for nothing
            variations = dict(zip(table(), reader.numbers(label, text), strict=False))
        elif name == "var1":
            number = int(reader.number(label, text))
            if not 0 <= number < len(table()):
                reader.fail(f"{label} is {number}; it must be 0 to {len(table()) - 1}")
            variations = {list(table())[number]: 1.0}
        elif SYNONYMS.get(name, name) in table():
            name = SYNONYMS.get(name, name)
            variations[name] = variations.get(name, 0.0) + reader.number(label, text)
        elif ALIASES.get(name, name) in owners():
            parameters[ALIASES.get(name, name)] = reader.number(label, text)
            if name == "super_shape_rnd":
                parameters[name] = min(max(parameters[name], 0.0), 1.0)
        else:
            extra[name] = text
            if name != "name":
                near = difflib.get_close_matches(name, [*table(), *owners()], 1, 0.0)[0]
                reader.warn(f"{label}: no variation or parameter known here; it is left out (nearest known: {near})")
    if values["weight"] < 0:
        reader.fail(f"{where}: weight is {values['weight']:g}; it must be at least 0")
    if not 0 <= values.get("opacity", 1.0) <= 1:
        reader.warn(f"{where}: opacity is {values['opacity']:g}; it is taken as {int(values['opacity'] > 0)}")
    if final and values.pop("weight") != 0:
        reader.fail("finalxform: has a weight; the final map is applied always, so it must have none")
    for child in element:
        if child.tag == "motion":
            motion.append(" ".join(f'{name}="{quoted(text)}"' for name, text in child.attrib.items()))
    try:
        return Map(
            variations=types.MappingProxyType({k: v for k, v in variations.items() if v != 0}),
            parameters=types.MappingProxyType(parameters),
            extra=types.MappingProxyType(extra),
            motion=tuple(motion),
            **values,
        )
    except ValueError as error:
        reader.fail(f"{where}: {error}")
