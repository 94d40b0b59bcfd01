"""Reads .flame files, flam3's XML and the dialects of other programs, as key frames. write.py is the counterpart.

read_library() serves the command line and the window: one FileEntry per <flame>, readable or with its error.
elements.py finds the <flame> elements, dialects.py and jwildfire.py know what other programs write.
"""

import codecs
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints
from xml.etree.ElementTree import Element

from renderer.errors import InputError
from renderer.flames.genome import COLOR_TYPES, IDENTITY_2D, MODIFIERS, Flame, Layer, Xform, read_only
from renderer.flames.interpolation import LEGACY_INTERPOLATIONS, KeyFrame
from renderer.flames.variations.catalog import parameter_owners, variation_table
from renderer.flames.xml import dialects, jwildfire
from renderer.flames.xml.attributes import AttributeParser, escape_attribute
from renderer.flames.xml.elements import FlameElement, flame_elements
from renderer.flames.xml.palette import parse_palette
from renderer.plain import format_value
from renderer.records import dataclass, field, fields, replace
from renderer.system.files import read_file

MAX_XFORMS = 4096
MAX_SIZE = 1 << 17  # pixels along each side
# Where flam3's defaults differ from Flame's.
FLAM3_DEFAULTS = dict(quality=1.0, estimator_radius=9.0, temporal_samples=1000)
XFORM_ATTRIBUTES = ("weight", "color_speed", "animate", "opacity", "var_color")
VALUE_ALIASES = {"hsv2": "hsv_circular"}
FIELD_ATTRIBUTES = {"filter_radius": "filter", "palette_number": "palette"}  # field -> its attribute of another name
OTHER_FIELDS = (  # fields that no attribute of their name sets
    "flame", "extra", "xforms", "final_xform", "further_finals", "layers", "palette", "colors", "alphas", "curves",
    "solid",
)  # fmt: skip
CAMERA_LIMITS = {"size": (1, MAX_SIZE), "scale": (1e-30, 1e30), "zoom": (-100, 100), "pixel_aspect": (1e-3, 1e3)}
UNLIMITED = ("vibrancy", "highlight_power")  # flam3 accepts any value


class Attribute(NamedTuple):
    """An attribute of a <flame>: the field of KeyFrame (`of_keyframe`) or Flame that it sets, its type and limits."""

    of_keyframe: bool
    field: str
    hint: Any
    low: float
    high: float


def _flame_attributes() -> Iterator[tuple[str, Attribute]]:
    """Yields the name of each attribute, made from the fields of KeyFrame and Flame, and its Attribute."""
    for settings in (KeyFrame, Flame):
        hints = get_type_hints(settings)
        for each in fields(settings):
            if each.name not in OTHER_FIELDS:
                low, high = each.metadata.get("low"), each.metadata.get("high")
                limits = (-math.inf, math.inf) if low is None or each.name in UNLIMITED else (low, high)
                limits = CAMERA_LIMITS.get(each.name, limits)
                attribute = Attribute(settings is KeyFrame, each.name, hints[each.name], *limits)
                yield FIELD_ATTRIBUTES.get(each.name, each.name), attribute


MAX_FILE_BYTES = 16 << 20
FLAME_ATTRIBUTES = dict(_flame_attributes())  # write.py writes the same ones


@dataclass(frozen=True)
class FileEntry:
    """One <flame> of a file: its key frame, or None and the error, a sentence.

    `ignored`: counts of attributes that change the picture and are not drawn, see renderer.plain.format_ignored().
    """

    index: int
    name: str
    keyframe: KeyFrame | None
    error: str = ""
    ignored: dict[str, int] = field(default_factory=dict)


def read_library(path: Path) -> tuple[list[FileEntry], list[str]]:
    """An entry for every <flame> of a file in the file's order, and warnings. An unreadable flame has an error.

    Raises InputError if the file has no readable flame.
    """
    data, parser = read_file(Path(path), MAX_FILE_BYTES), AttributeParser(path)
    try:
        declared = b"encoding" in data[:100] or data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        return parse_library(data if declared else data.decode("utf-8-sig"), parser)
    except UnicodeDecodeError:
        parser.warn("not UTF-8 text, and no other encoding is declared; using Windows-1252 instead")
        return parse_library(data.decode("cp1252", "replace"), parser)


def parse_library(text: str | bytes, parser: AttributeParser) -> tuple[list[FileEntry], list[str]]:
    """As read_library(), for a text in place of a file."""
    entries = _unwound([_entry(parser, k, flame) for k, flame in enumerate(flame_elements(text, parser.path))])
    if not any(entry.keyframe for entry in entries):
        raise InputError(entries[0].error)
    return entries, parser.warnings


def _unwound(entries: list[FileEntry]) -> list[FileEntry]:
    """The entries with each `rotate` changed by whole turns to the one nearest the flame's before it, as flam3 reads.

    LEGACY_INTERPOLATIONS keep the angles of the file.
    """
    unwound: list[FileEntry] = []
    before: KeyFrame | None = None
    for entry in entries:
        key = entry.keyframe
        if key and before and before.interpolation_type not in LEGACY_INTERPOLATIONS:
            apart = key.rotate - before.rotate
            turns = math.ceil(abs(apart) / 360 - 0.5)  # at exactly half a turn the angle stays
            key = replace(key, rotate=key.rotate - math.copysign(360 * turns, apart)) if turns else key
        unwound.append(replace(entry, keyframe=key))
        before = key or before
    return unwound


def _entry(parser: AttributeParser, index: int, flame: FlameElement) -> FileEntry:
    """The entry of a <flame>: its key frame, or the error that makes it unreadable."""
    name = flame.element.get("name", "")
    parser.location = f"{parser.path}: flame {index}" + (f" {name!r}" if name else "")
    parser.ignored = Counter()
    try:
        if flame.error:
            parser.fail(flame.error)
        return FileEntry(index, name, _parse_flame(parser, flame.element), "", dict(parser.ignored))
    except InputError as error:
        return FileEntry(index, name, None, str(error))


def _parse_flame(parser: AttributeParser, element: Element) -> KeyFrame:
    """The key frame of a <flame>; raises InputError if a value is invalid."""
    version = element.get("version", "")
    flame: dict[str, Any] = FLAM3_DEFAULTS | _default_camera(version) | dialects.exposure_defaults(version)
    camera: dict[str, Any] = {}
    extra = {}
    parser.frame = parser.number("frame", element.get("frame", "0"))  # evaluated() and blur_copies() read it
    attributes = jwildfire.evaluated(parser, element.attrib, "flames")
    for name, text in attributes.items():
        attribute = FLAME_ATTRIBUTES.get(dialects.ATTRIBUTE_ALIASES.get(name, name))
        if attribute:
            (camera if attribute.of_keyframe else flame)[attribute.field] = _parse_value(parser, name, text, attribute)
        elif name != "soloxform":  # which _parse_xforms() reads
            extra[name] = text
            if label := dialects.flame_ignored(name, text):
                parser.ignored[f"{label} flames"] = 1
    dialects.apply(parser, version, attributes, flame, extra)
    if "cam_zoom" in extra:
        camera["scale"] = camera.get("scale", 50.0) * dialects.parse_cam_zoom(parser, extra.pop("cam_zoom"))
    numbered_palette = camera.get("palette_number", -1), camera.get("hue", 0.0)
    (first, *others), largest_weight = _parse_layers(parser, element, version, numbered_palette)
    if largest_weight > 1:
        flame["white_level"] = max(flame.get("white_level", 255.0) / largest_weight, 1.0)
    flame |= {each.name: getattr(first, each.name) for each in fields(Layer)}  # a Flame is its first layer
    try:
        genome = Flame(**flame, layers=tuple(others))
        genome.check_choices()
        return KeyFrame(genome, extra=read_only(extra), **camera)
    except ValueError as error:
        parser.fail(str(error))


def _parse_layers(
    parser: AttributeParser, element: Element, version: str, numbered_palette: tuple[int, float]
) -> tuple[list[Layer], float]:
    """A Layer for each visible <layer>, or for the flame itself if it has none, and the largest weight of a layer.

    Colors are scaled by layer weights over the largest weight, since they are at most 255: the flame's white_level has
    to be divided by it. `numbered_palette`: number and hue of the flame's palette, see parse_palette().
    """
    bodies = jwildfire.visible_layers(parser, element)
    layers: list[Layer] = []
    copies = jwildfire.blur_copies(parser, element) if dialects.is_jwildfire(version) else [(parser.frame, 1.0)]
    strengths, densities, largest_weight = jwildfire.layer_strengths(parser, bodies)
    for frame, brightness in copies:
        parser.frame = frame
        for body, strength, density in zip(bodies, strengths, densities, strict=True):
            xforms, finals = _parse_xforms(parser, body, dialects.is_jwildfire(version))
            colors, alphas = parse_palette(parser, body, *numbered_palette)
            lit = tuple(map(tuple, (colors * (strength * brightness)).tolist()))
            xforms = tuple(jwildfire.thinned(xform, density) for xform in xforms)
            final, further = finals[0] if finals else None, tuple(finals[1:])
            layers.append(Layer(xforms, final, further, colors=lit, alphas=alphas))
    return layers, largest_weight


def _default_camera(version: str) -> dict[str, object]:
    """The camera model and preserve_z of the program that wrote `version`.

    In Apophysis and Fractorium z passes through 2D variations, in JWildfire only with preserve_z.
    """
    jwildfire = dialects.is_jwildfire(version)
    return {"preserve_z": not jwildfire, "cam_model": "jwildfire" if jwildfire else "apophysis"}


def _parse_value(
    parser: AttributeParser, name: str, text: str, attribute: Attribute
) -> str | float | tuple[float, ...]:
    """An attribute's value (a word, a number or a tuple of numbers); fails if it is outside the attribute's limits.

    Values of other fields than CAMERA_LIMITS, quality and passes are clamped instead, and counted as ignored.
    """
    kinds = get_args(attribute.hint)
    if get_origin(attribute.hint) is Literal:
        value = VALUE_ALIASES.get(text.lower(), text.lower())
        if value not in kinds:
            parser.warn(f"{name} is {format_value(text)}, which is unknown; using {kinds[0]} instead")
        return value if value in kinds else kinds[0]
    kind, count = (kinds[0], len(kinds)) if kinds else (attribute.hint, 1)
    values = [kind(number) for number in parser.numbers(name, text, count)]
    for k, value in enumerate(values):
        if not attribute.low <= value <= attribute.high:
            limit = attribute.low if value < attribute.low else attribute.high
            if attribute.field in (*CAMERA_LIMITS, "quality", "passes"):
                parser.fail(f"{name} is {value:g}; it must be {attribute.low:g} to {attribute.high:g}")
            parser.ignored[f"{name} {value:g} beyond the limit {limit:g} flames"] = 1
            values[k] = kind(limit)
    return tuple(values) if kinds else values[0]


# ---- xforms


def _parse_xforms(
    parser: AttributeParser, element: Element, is_jwildfire: bool = False
) -> tuple[tuple[Xform, ...], list[Xform]]:
    """The xforms of an element, and its final xforms: all in JWildfire's files, in others only the first."""
    xforms: list[Xform] = []
    finals: list[Xform] = []
    for child in element:
        if child.tag == "xform":
            xforms.append(_parse_xform(parser, child, f"xform {len(xforms)}", len(xforms) + len(finals)))
        elif child.tag == "finalxform":
            if finals and not is_jwildfire:
                parser.ignored["further final xforms"] += 1
                continue
            finals.append(_parse_xform(parser, child, "finalxform", len(xforms)))
        elif child.tag == "symmetry":
            kind = int(parser.number("symmetry kind", child.get("kind", "0")))
            if abs(kind) > 1000:
                parser.fail(f"symmetry kind is {kind}; it must be -1000 to 1000")
            if kind == 0:
                parser.warn("symmetry kind is 0, a random one in flam3; no symmetry is added")
            xforms += symmetry_xforms(kind)
        if len(xforms) + len(finals) > MAX_XFORMS:
            parser.fail(f"has more than {MAX_XFORMS} xforms")
    if not xforms:
        parser.fail("has no <xform>; at least one is required")
    solo = int(parser.number("soloxform", element.get("soloxform", "-1")))
    if solo >= 0:
        xforms = [xform if i == solo else replace(xform, opacity=0.0) for i, xform in enumerate(xforms)]
    if is_jwildfire:
        opacity = jwildfire.opacity_of_probability
        xforms = [x if x.opacity in (0, 1) else replace(x, opacity=opacity(x.opacity)) for x in xforms]
    return tuple(xforms), finals


def symmetry_xforms(kind: int) -> list[Xform]:
    """The xforms that <symmetry kind=...> appends: a mirror if kind < 0, then the rotations of |kind|-fold symmetry."""
    xforms = []
    if kind < 0:
        xforms.append(Xform((-1.0, 0.0, 0.0, 0.0, 1.0, 0.0), color=1.0, color_speed=0.0, animate=0.0))
    count = abs(kind)
    for k in range(1, count):
        c, s = (round(f(2 * math.pi * k / count), 6) for f in (math.cos, math.sin))
        color = 0.0 if count < 3 else (k - 1) / (count - 2)
        xforms.append(Xform((c, -s, 0.0, s, c, 0.0), color=color, color_speed=0.0, animate=0.0))
    return xforms


def _parse_xform(parser: AttributeParser, element: Element, where: str, position: int) -> Xform:
    """An <xform> or <finalxform>; `position`: its index among both, as the default color alternates between 0 and 1."""
    values: dict[str, Any] = dict(weight=0.0, color=float(position & 1))
    variations: dict[str, float] = {}
    parameters: dict[str, float] = {}
    modifiers: dict[str, float] = {}
    extra: dict[str, str] = {}
    attributes = jwildfire.evaluated(parser, element.attrib, "xforms")
    for name, text in dialects.rewritten(attributes).items():
        label = f"{where}: {name}"
        if name in XFORM_ATTRIBUTES:
            values[name] = parser.number(label, text)
        elif name.removesuffix("_speed") in MODIFIERS:
            modifiers[name] = parser.number(label, text)
        elif name == "color":
            values["color"] = (parser.numbers(label, text) or [0.0])[0]
        elif name == "symmetry":
            amount = parser.number(label, text)
            values |= dict(color_speed=(1 - amount) / 2, animate=0.0 if amount > 0 else 1.0)
        elif name in ("coefs", "post"):
            a, d, b, e, c, f = parser.numbers(label, text, 6)  # by columns
            values["affine" if name == "coefs" else "post"] = (a, b, c, d, e, f)
        elif name == "chaos":
            values["xaos"] = tuple(parser.numbers(label, text))
            if any(factor < 0 for factor in values["xaos"]):
                parser.fail(f"{label} is {format_value(text)}; factors must be at least 0")
        elif name == "plotmode":
            if text.lower() == "off":
                values["opacity"] = 0.0
        elif name in ("var", "var1"):  # old forms that set all weights, and so override attributes before them
            variations = _parse_old_variations(parser, name, label, text)
        elif not _parse_variation(parser, name, label, text, variations, parameters):
            extra[name] = text
        if undrawn := dialects.undrawn_value(name, text):
            parser.ignored[f"{undrawn} xforms"] += 1
    given = values.get("affine", IDENTITY_2D), values.get("post", IDENTITY_2D)
    values["affine"], values["post"] = jwildfire.space_affines(parser, attributes, *given)
    values["modifiers"] = read_only({name: value for name, value in modifiers.items() if value})
    jwildfire.apply_priorities(parser, element.attrib, variations, parameters)
    values["color_type"] = _color_type(extra)
    _report_unknown(parser, extra, variations)
    _check_xform(parser, where, values["weight"], values.get("opacity", 1.0))
    if where == "finalxform":
        del values["weight"]  # meaningless: the final xform is applied to every point
    motion = (child.attrib.items() for child in element if child.tag == "motion")
    values["motion"] = tuple(" ".join(f'{k}="{escape_attribute(v)}"' for k, v in items) for items in motion)
    weights = {name: weight for name, weight in variations.items() if weight != 0}
    values |= dict(variations=read_only(weights), parameters=read_only(parameters), extra=read_only(extra))
    try:
        return Xform(**values)
    except ValueError as error:
        parser.fail(f"{where}: {error}")


def _parse_variation(
    parser: AttributeParser,
    name: str,
    label: str,
    text: str,
    variations: dict[str, float],
    parameters: dict[str, float],
) -> bool:
    """Add a variation's weight or parameter to `variations` or `parameters`; False if the attribute is neither."""
    repeated = dialects.REPEATED.fullmatch(name)
    # NAME#1#: NAME is in the xform already; variation_table() knows both names
    again = repeated is not None and repeated[1] in variations
    plain = dialects.plain_name(name if again or repeated is None else repeated[1] + repeated[3])
    if (alias := dialects.variation_name(plain)) in variation_table():
        variations[alias] = variations.get(alias, 0.0) + parser.number(label, text)
    elif (alias := dialects.parameter_name(plain)) in parameter_owners():
        parameters[alias] = parser.number(label, text)
        if alias == "super_shape_rnd":
            parameters[alias] = min(max(parameters[alias], 0.0), 1.0)  # as flam3 limits it
    else:
        return False
    return True


def _color_type(extra: dict[str, str]) -> str:
    """An xform's color_type by its unread attributes; "diffusion" for none and for an unknown one."""
    kind = extra.get("color_type", "").strip().lower()
    return kind if kind in COLOR_TYPES else "diffusion"


def _report_unknown(parser: AttributeParser, extra: dict[str, str], variations: dict[str, float]) -> None:
    """Count unread attributes of an xform that change the picture, mostly unknown variations."""
    unknown: list[str] = []
    for name, text in extra.items():
        is_drawn = name == "color_type" and text.strip().lower() in COLOR_TYPES
        ignored = "" if is_drawn else dialects.xform_ignored(name, text)
        if ignored:
            parser.ignored[f"{ignored} xforms"] += 1
        if ignored is None:
            unknown.append(name)
    for name in unknown:
        # a parameter of an unknown variation is reported with it
        owner = next((other for other in unknown if name.startswith(f"{other}_")), None)
        if owner is None and not dialects.is_neutral(extra[name], "0"):
            kind = "parameters" if any(name.startswith(f"{used}_") for used in variations) else "variations"
            parser.ignored[f"{name} {kind if dialects.is_number(extra[name]) else 'attributes'}"] += 1


def _parse_old_variations(parser: AttributeParser, name: str, label: str, text: str) -> dict[str, float]:
    """Variation -> weight. Old attribute `var`: weights in flam3's order; `var1`: the index of the only variation."""
    if name == "var":
        return dict(zip(variation_table(), parser.numbers(label, text), strict=False))
    names, index = list(variation_table()), int(parser.number(label, text))
    if not 0 <= index < len(names):
        parser.fail(f"{label} is {index}; it must be 0 to {len(names) - 1}")
    return {names[index]: 1.0}


def _check_xform(parser: AttributeParser, where: str, weight: float, opacity: float) -> None:
    """Fail for a negative weight, warn of an opacity that flam3 clamps."""
    if weight < 0:
        parser.fail(f"{where}: weight is {weight:g}; it must be at least 0")
    if not 0 <= opacity <= 1:
        parser.warn(f"{where}: opacity is {opacity:g}; using {int(opacity > 0)} instead")
