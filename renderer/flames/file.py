"""The .flame format: XML in, key frames out, and back. What was read is written so that it reads the same."""

import difflib
import math
import sys
import types
from pathlib import Path

import numpy as np
from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from renderer import BadInput
from renderer.flames.genome import IDENTITY, Flame, Map
from renderer.flames.keyframes import KeyFrame
from renderer.flames.palettes import named, numbered
from renderer.flames.variations import ALIASES, owners, table
from renderer.scene import read_text, told

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
SYNONYMS = {"linear3D": "linear"}


class _Reader:
    """Reads one file; gathers what is strange but no mistake."""

    def __init__(self, path):
        self.path, self.warnings = path, []
        self.where = str(path)

    def fail(self, sentence: str):
        raise BadInput(f"{self.where}: {sentence}")

    def warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def numbers(self, name: str, text: str, count: int | None = None) -> list[float]:
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            self.fail(f"{name} is {told(text)}; it must be {'a number' if count == 1 else 'numbers'}")
        if count is not None and len(values) != count:
            self.fail(f"{name} is {told(text)}; it must be {count} number{'s' * (count > 1)}")
        if not all(math.isfinite(value) for value in values):
            self.fail(f"{name} is {told(text)}; it must be finite")
        return values

    def number(self, name: str, text: str) -> float:
        return self.numbers(name, text, 1)[0]


def read_flames(path: Path) -> tuple[list[KeyFrame], list[str]]:
    """The <flame> elements of a file in its order, and warnings; BadInput names file, element, attribute and value."""
    return parse_flames(read_text(Path(path)), path)


def parse_flames(text: str, path="text") -> tuple[list[KeyFrame], list[str]]:
    """As read_flames, of a text."""
    reader = _Reader(path)
    try:
        root = ElementTree.fromstring(text)
    except DefusedXmlException as error:
        raise BadInput(f"{path}: XML with entities is not read ({type(error).__name__})") from error
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not an XML file: {error}") from error
    elements = [root] if root.tag == "flame" else list(root.iter("flame"))
    if not elements:
        raise BadInput(f"{path}: holds no <flame> element; its root is <{root.tag}>")
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


def _flame(reader: _Reader, element) -> KeyFrame:
    flame, camera, extra = dict(DEFAULT), {}, {}
    for name, text in element.attrib.items():
        if name in NUMBERS:
            flame[NUMBERS[name]] = reader.number(name, text)
        elif name in CAMERA:
            camera[CAMERA[name]] = reader.number(name, text)
        elif name in COUNTS:
            flame[COUNTS[name]] = int(reader.number(name, text))
        elif name in WORDS:
            is_key, allowed = WORDS[name]
            word = text.lower()
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
    _check(reader, flame, camera)
    maps, final = _maps(reader, element)
    colours, alphas = _palette(reader, element, camera)
    flame.update(maps=maps, final=final, colors=tuple(map(tuple, colours.tolist())), alphas=alphas)
    try:
        return KeyFrame(Flame(**flame), extra=types.MappingProxyType(extra), **camera)
    except ValueError as error:
        reader.fail(str(error))


def _check(reader: _Reader, flame: dict, camera: dict) -> None:
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


def _maps(reader: _Reader, element) -> tuple[tuple[Map, ...], Map | None]:
    maps, final = [], None
    for child in element:
        if child.tag == "xform":
            maps.append(_map(reader, child, len(maps), False))
        elif child.tag == "finalxform":
            if final is not None:
                reader.fail("has more than one <finalxform>; at most one is allowed")
            final = _map(reader, child, 0, True)
        elif child.tag == "symmetry":
            kind = int(reader.number("symmetry kind", child.get("kind", "0")))
            if abs(kind) > 1000:
                reader.fail(f"symmetry kind is {kind}; it must be -1000 to 1000")
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


def _affine(reader: _Reader, name: str, text: str) -> tuple[float, ...]:
    a, d, b, e, c, f = reader.numbers(name, text, 6)
    return (a, b, c, d, e, f)


def _map(reader: _Reader, element, index: int, final: bool) -> Map:
    where = "finalxform" if final else f"xform {index}"
    values: dict = dict(weight=0.0, color=float(index & 1))
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
        elif name == "var":
            variations.update(zip(table(), reader.numbers(label, text), strict=False))
        elif name == "var1":
            number = int(reader.number(label, text))
            if not 0 <= number < len(table()):
                reader.fail(f"{label} is {number}; it must be 0 to {len(table()) - 1}")
            variations[list(table())[number]] = 1.0
        elif SYNONYMS.get(name, name) in table():
            name = SYNONYMS.get(name, name)
            variations[name] = variations.get(name, 0.0) + reader.number(label, text)
        elif ALIASES.get(name, name) in owners():
            parameters[ALIASES.get(name, name)] = reader.number(label, text)
        else:
            extra[name] = text
            if name != "name":
                near = difflib.get_close_matches(name, [*table(), *owners()], 1, 0.0)[0]
                reader.warn(f"{label}: no variation or parameter known here; it is left out (nearest known: {near})")
    if values["weight"] < 0:
        reader.fail(f"{where}: weight is {values['weight']:g}; it must be at least 0")
    if final and values.pop("weight") != 0:
        reader.fail("finalxform: has a weight; the final map is applied always, so it must have none")
    for child in element:
        if child.tag == "motion":
            motion.append(" ".join(f'{name}="{_quoted(text)}"' for name, text in child.attrib.items()))
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


# ---- palettes


def _palette(reader: _Reader, element, camera: dict) -> tuple[np.ndarray, tuple[float, ...]]:
    """(256, 3) colours 0 to 255 and 256 alphas (none when all are 1); what no entry sets lies on lines between
    entries.
    """
    colours, alphas = np.full((256, 3), np.nan), np.ones(256)
    for child in element:
        if child.tag == "color":
            _one_colour(reader, child, colours, alphas)
        elif child.tag == "colors":
            _hex(reader, child.get("data", ""), 4, 1, colours, alphas, "colors")
        elif child.tag == "palette" and child.get("index0") is not None:
            _two_numbered(reader, child, colours)
        elif child.tag == "palette":
            channels = 4 if child.get("format", "RGB").upper() == "RGBA" else 3
            _hex(reader, (child.text or "") + child.get("data", ""), channels, 0, colours, alphas, "palette")
    number = camera.get("palette_number", -1)
    if number >= 0:
        found = numbered(number, camera.get("hue", 0.0))
        if found is not None:
            colours, alphas = found.copy(), np.ones(256)
        else:
            if np.isnan(colours).all():
                colours = named("spectrum").copy()
            reader.warn(f"palette {number} is one of flam3's, which are not installed here; another one is taken")
    return _filled(reader, colours), () if (alphas == 1).all() else tuple(alphas.tolist())


def _one_colour(reader: _Reader, child, colours: np.ndarray, alphas: np.ndarray) -> None:
    index = int(reader.number("color index", child.get("index", "")))
    if not 0 <= index < 256:
        reader.fail(f"color index is {index}; it must be 0 to 255")
    if child.get("rgba") is not None:
        *rgb, alpha = reader.numbers("color rgba", child.get("rgba"), 4)
        alphas[index] = min(max(alpha / 255, 0.0), 1.0)
        colours[index] = np.clip(rgb, 0, 255)
    else:
        colours[index] = np.clip(reader.numbers("color rgb", child.get("rgb", ""), 3), 0, 255)
        if child.get("a") is not None:
            alphas[index] = min(max(reader.number("color a", child.get("a")), 0.0), 1.0)


def _hex(reader: _Reader, text: str, channels: int, skip: int, colours, alphas, what: str) -> None:
    digits = "".join(text.split())
    try:
        data = np.frombuffer(bytes.fromhex(digits), "u1")
    except ValueError:
        reader.fail(f"{what}: not hexadecimal digits in pairs: {told(digits)}")
    if len(data) % channels or len(data) > 256 * channels:
        count = len(data) / channels
        reader.fail(f"{what}: {count:g} colours; at most 256 whole ones of {2 * channels} digits are allowed")
    entries = data.reshape(-1, channels).astype("f8")
    colours[: len(entries)] = entries[:, skip : skip + 3]
    if channels == 4 and not skip:
        alphas[: len(entries)] = entries[:, 3] / 255


def _two_numbered(reader: _Reader, child, colours: np.ndarray) -> None:
    from renderer.flames.palettes import hsv_of, rgb_of

    blend = reader.number("palette blend", child.get("blend", "0"))
    said = [(child.get(f"index{k}", "0"), child.get(f"hue{k}", "0")) for k in (0, 1)]
    pair = [numbered(int(reader.number("palette index", i)), reader.number("palette hue", hue)) for i, hue in said]
    if any(palette is None for palette in pair):
        reader.warn("a blend of flam3's numbered palettes, which are not installed here; another one is taken")
        colours[:] = named("spectrum")
        return
    one, two = (hsv_of(palette / 255) for palette in pair)
    colours[:] = np.clip(rgb_of((1 - blend) * one + blend * two) * 255, 0, 255)


def _filled(reader: _Reader, colours: np.ndarray) -> np.ndarray:
    """Entries that nothing set lie on lines between their neighbours, around the end too."""
    known = np.flatnonzero(~np.isnan(colours[:, 0]))
    if len(known) == 0:
        reader.warn("has no palette; another one is taken")
        return named("spectrum").copy()
    at = np.arange(256)
    around = np.concatenate([known - 256, known, known + 256])
    return np.stack([np.interp(at, around, np.tile(colours[known, k], 3)) for k in range(3)], 1)


# ---- writing


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _told(value) -> str:
    if isinstance(value, (tuple, list)):
        return " ".join(map(_told, value))
    if isinstance(value, float):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)


def _element(tag: str, attributes: dict, inside: list[str] | None = None, indent: str = "   ") -> str:
    listed = "".join(f' {name}="{_quoted(_told(value))}"' for name, value in attributes.items())
    if not inside:
        return f"{indent}<{tag}{listed}/>"
    return "\n".join([f"{indent}<{tag}{listed}>", *inside, f"{indent}</{tag}>"])


def text_of_flames(keys: list[KeyFrame]) -> str:
    """The XML of key frames, which reads as the same key frames."""
    return "\n".join(["<flames>", *map(_flame_text, keys), "</flames>", ""])


def _flame_text(key: KeyFrame) -> str:
    flame, attributes = key.flame, {}
    if "name" in key.extra:
        attributes["name"] = key.extra["name"]
    attributes |= {"time": key.time, "size": key.size, "center": key.center, "scale": key.scale}
    attributes |= {"zoom": key.zoom, "rotate": key.rotate}
    if key.pixel_aspect != 1:
        attributes["pixel_aspect"] = key.pixel_aspect
    attributes |= {"supersample": flame.oversample, "temporal_samples": flame.temporal_samples}
    if flame.passes != 1:
        attributes["passes"] = flame.passes
    attributes |= {name: getattr(flame, name_of) for name, name_of in NUMBERS.items()}
    attributes |= {name: getattr(key if is_key else flame, name) for name, (is_key, _) in WORDS.items()}
    attributes |= {"hsv_rgb_palette_blend": key.hsv_rgb_palette_blend, "background": flame.background}
    if key.palette_number >= 0:
        attributes |= {"palette": key.palette_number, "hue": key.hue}
    attributes |= {name: text for name, text in key.extra.items() if name != "name"}
    inside = [_map_text(m, "xform") for m in flame.maps]
    inside += [_map_text(flame.final, "finalxform")] if flame.final else []
    return _element("flame", attributes, inside + _palette_text(flame), "")


def _map_text(m: Map, tag: str) -> str:
    if len(m.affine) != 6:
        raise BadInput("a flame of space cannot be written as a .flame file; its maps have 12 numbers")
    a, b, c, d, e, f = m.affine
    attributes = {} if tag == "finalxform" else {"weight": m.weight}
    attributes |= {"color": m.color, "color_speed": m.color_speed, "animate": m.animate, "opacity": m.opacity}
    attributes |= dict(m.variations) | dict(m.parameters)
    attributes["coefs"] = (a, d, b, e, c, f)
    if m.post != IDENTITY:
        a, b, c, d, e, f = m.post
        attributes["post"] = (a, d, b, e, c, f)
    if m.xaos:
        attributes["chaos"] = m.xaos
    attributes |= dict(m.extra)
    return _element(tag, attributes, [f"      <motion {text}/>" for text in m.motion])


def _palette_text(flame: Flame) -> list[str]:
    colours = np.array(flame.colors or named(flame.palette))
    if flame.alphas or (colours != np.round(colours)).any():
        alphas = flame.alphas or (1.0,) * 256
        return [
            _element("color", {"index": i, "rgb": tuple(colour), **({"a": alphas[i]} if alphas[i] != 1 else {})})
            for i, colour in enumerate(colours.tolist())
        ]
    rows = colours.astype("u1").reshape(32, 8, 3)
    lines = ["      " + row.tobytes().hex().upper() for row in rows]
    return ["\n".join(['   <palette count="256" format="RGB">', *lines, "   </palette>"])]
