"""Attributes that programs other than flam3 write into .flame files, and which of them are reported as not drawn.

read.py calls these functions with the attributes of flames and xforms, as Apophysis 7X, Fractorium (Ember), JWildfire
and FLAM3H name them. An attribute is bookkeeping (QUIET), or changes the picture unless it has its neutral value.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, get_args

import numpy as np

from renderer.errors import InputError
from renderer.flames.genome import SPATIAL_FILTERS, CurvePoints
from renderer.flames.variations.catalog import parameter_owners, variation_table
from renderer.flames.xml.attributes import AttributeParser
from renderer.flames.xml.solid import parse_solid
from renderer.paths import ASSETS

CURVES = ("overall_curve", "red_curve", "green_curve", "blue_curve")
BEZIER_POINTS = 65
CORNERS = tuple(f"background_{corner}" for corner in ("ul", "ur", "ll", "lr", "cc"))
# What other programs write, by kind; the file's comments say what each table holds.
DATA: dict[str, Any] = tomllib.loads((ASSETS / "flame_dialects.toml").read_text(encoding="utf-8"))
ATTRIBUTE_ALIASES: dict[str, str] = DATA["attributes"]
VARIATION_ALIASES: dict[str, str] = DATA["variations"]
PARAMETER_ALIASES: dict[str, str] = DATA["parameters"]
FLAM3_FILTERS: dict[str, str] = DATA["filters"]
FLAME_QUIET, XFORM_QUIET, VARIATION_TEXTS = (
    re.compile("|".join(DATA["quiet"][kind])) for kind in ("flame", "xform", "texts")
)
STAGED_ALIASES = {f"{stage}gaussian": f"{stage}gaussian_blur" for stage in ("pre_", "post_")}
# The parts of a curve over time: NAME_enabled, NAME_point_count, NAME_x0, NAME_y0, ...
CURVE_PARTS = re.compile(
    r"(.+)_(enabled|view_[xy]m(?:in|ax)|interpolation|selected_idx|locked|point_count|parent_curve|[xy]\d+)"
)
REPEATED = re.compile(r"([^#]+)(#\d+#)(.*)")  # name#1#: a variation that an xform has twice
REPEAT = re.compile(r"#\d+#")


def is_neutral(text: str, neutral: str) -> bool:
    """True if a value equals the neutral one: the same words, or equal numbers in any notation."""
    words, wanted = text.split(), neutral.split()
    try:
        return len(words) == len(wanted) and all(map(_equal, words, wanted))
    except ValueError:
        return text.strip().lower() == neutral.lower()


def is_number(text: str) -> bool:
    """True for one number, which a variation's weight is."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _equal(word: str, other: str) -> bool:
    return abs(float(word) - float(other)) < 1e-9


def flame_ignored(name: str, text: str) -> str:
    """The label to report an unread attribute of a <flame> by; empty for bookkeeping and neutral values."""
    if name in DATA["neutral"]["flame"]:
        neutral, label = DATA["neutral"]["flame"][name]
        return "" if is_neutral(text, neutral) else label
    if FLAME_QUIET.fullmatch(name):
        return ""
    return f"unknown attribute {name}"


def xform_ignored(name: str, text: str) -> str | None:
    """The label to report an unread attribute of an <xform> by; empty for bookkeeping, None for possible variations."""
    if VARIATION_TEXTS.fullmatch(REPEAT.sub("", name).removeprefix("pre_").removeprefix("post_")):
        return ""
    if name in DATA["neutral"]["xform"]:
        neutral, label = DATA["neutral"]["xform"][name]
        return "" if is_neutral(text, neutral) else f"{label} {text}" if name == "color_type" else label
    return "" if XFORM_QUIET.fullmatch(name) else None


CIRCLIZE_REVERSE = "prepost_circlize_reverse"
WAVES2 = tuple(f"_{word}{axis}" for word in ("scale", "freq") for axis in "xyz")


def rewritten(attributes: Mapping[str, str]) -> dict[str, str]:
    """An xform's attributes with other programs' names and forms replaced by variation_table()'s.

    Parameters get their variation's name before them; waves2 with a scale of z becomes waves2_z; JWildfire's
    prepost_circlize becomes its inverse before the other variations (pre_) and itself after them (post_).
    """
    renamed = {name: text for name, text in attributes.items() if name not in DATA["draws_nothing"]}
    for owner, names in DATA["unprefixed"].items():
        for name in names if owner in renamed else ():
            if name in renamed:  # octagon's parameters are called octa_x, ...
                renamed[f"{owner}_{name.removeprefix('octa_')}"] = renamed.pop(name)
    for stage in ("", "pre_", "post_"):
        if not is_neutral(renamed.get(f"{stage}waves2_scalez", "0"), "0"):
            renamed = _renamed(renamed, f"{stage}waves2", f"{stage}waves2_z")
    if is_neutral(renamed.pop("elliptic_mode", "0"), "1"):
        renamed = {"elliptic_mirrory" if name == "elliptic" else name: text for name, text in renamed.items()}
    if "prepost_circlize" in renamed:
        inverse = dict(renamed, prepost_circlize_reverse=str(int(is_neutral(renamed.get(CIRCLIZE_REVERSE, "0"), "0"))))
        before, after = (
            _renamed(table, "prepost_circlize", f"{stage}prepost_circlize")
            for table, stage in ((inverse, "pre_"), (renamed, "post_"))
        )
        return before | after
    return renamed


def _renamed(attributes: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """The attributes with the variation `old` renamed `new`, in its weight and its parameters."""
    ends = ("", *WAVES2) if old.endswith("waves2") else ("", "_n", "_rotation", "_reverse")
    names = {old + end: new + end for end in ends}
    return {names.get(name, name): text for name, text in attributes.items()}


def plain_name(name: str) -> str:
    """A name as variation_table() has it: runs of spaces, dots and brackets, which JWildfire writes, become _."""
    return re.sub(r"[^\w#]+", "_", name).strip("_")


def variation_name(name: str) -> str:
    """variation_table()'s name of a variation, from the plain_name() that any program writes."""
    stage = name[: name.index("_") + 1] if name.startswith(("pre_", "post_")) else ""
    base = name[len(stage) :]
    if name in STAGED_ALIASES or name in variation_table() and base not in VARIATION_ALIASES:
        return STAGED_ALIASES.get(name, name)
    return stage + VARIATION_ALIASES.get(base, _folded_names().get(base.lower(), base))


@lru_cache(maxsize=1)
def _folded_names() -> dict[str, str]:
    """Name in lower case -> name, for the variations in variation_table(): programs differ in the case of letters."""
    return {name.lower(): name for name in variation_table()}


@lru_cache(maxsize=1)
def _folded_parameters() -> dict[str, str]:
    """Name in lower case -> name, for the parameters in variation_table()."""
    return {name.lower(): name for name in parameter_owners()}


def parameter_name(name: str) -> str:
    """variation_table()'s name of a parameter that a program wrote, in any case; the name itself if it is unknown."""
    # Apophysis' Mobius has parameters Re_A, ..., before which some programs write its name
    name = PARAMETER_ALIASES.get(name.removeprefix("Mobius_"), _without_aliases(name))
    if name in parameter_owners():
        return name
    # in any case, and with the stage and the #number# apart
    repeat = REPEAT.search(name)
    plain = (name[: repeat.start()] + name[repeat.end() :] if repeat else name).lower()
    stage = plain[: plain.index("_") + 1] if plain.startswith(("pre_", "post_")) else ""
    base = plain[len(stage) :]
    for end, now in DATA["earlier_parameters"].items():  # names that parameters had in earlier versions
        if base.endswith(end) and base not in _folded_parameters():
            base = base.removesuffix(end) + now
    known = _folded_parameters().get(base)
    if known is None:
        return name
    owner = parameter_owners()[known]
    return stage + owner + (repeat[0] if repeat else "") + known[len(owner) :]


def _without_aliases(name: str) -> str:
    """A parameter's name with other programs' name of its variation replaced by variation_table()'s."""
    for stage in ("pre_", "post_", ""):
        for other, known in VARIATION_ALIASES.items():
            if name.startswith(f"{stage}{other}_"):
                return f"{stage}{known}{name[len(stage + other) :]}"
    return name


def undrawn_value(name: str, text: str) -> str:
    """The label to report a parameter by if its value is not drawn as in the program that wrote it; else empty."""
    is_palette = name.endswith("_Gradient") and "dc_" in name and is_neutral(text, "1")
    if is_palette and not any(f"{v.name}_Gradient" in name for v in variation_table().values() if v.takes_palette):
        return f"{name} 1"
    for end, drawn in DATA["drawn_values"].items():
        if name.endswith(end):
            # `drawn`: the values that are drawn; if there are none, only an empty text is
            is_drawn = not text.strip() if not drawn else any(is_neutral(text, str(value)) for value in drawn)
            return "" if is_drawn else f"{name} {text[:20]}" if drawn else name
    return ""


def animated_curves(attributes: Mapping[str, str]) -> Iterator[str]:
    """Yields the NAMEs of an element's values that JWildfire animates by a curve over time (NAME_enabled is true)."""
    for name, text in attributes.items():
        base = name.removesuffix("_enabled")
        if base != name and text.strip().lower() == "true" and f"{base}_point_count" in attributes:
            yield base


def without_curves(attributes: Mapping[str, str]) -> dict[str, str]:
    """The attributes without the parts of JWildfire's curves over time."""
    kept = {}
    for name, text in attributes.items():
        match = CURVE_PARTS.fullmatch(name)
        if not (match and (match[1].endswith("Curve") or f"{match[1]}_point_count" in attributes)):
            kept[name] = text
    return kept


def is_jwildfire(version: str) -> bool:
    """True if JWildfire, whose exposure differs from flam3's, wrote the flame's `version`."""
    return version.startswith("JWildfire")


def names_filters_rightly(version: str) -> bool:
    """True if `filter_shape` means the filter of that name; flam3 3.1.1 draws seven of them with another's kernel."""
    return version.startswith(("EMBER", "Fractorium", "JWildfire", "FLAM3H"))


def exposure_defaults(version: str) -> dict[str, object]:
    """Default values of the program that wrote `version`, where they differ from flam3's."""
    if is_jwildfire(version):
        return {"exposure": "jwildfire", "white_level": 220.0, "estimator_radius": 0.0}
    return {}


def parse_cam_zoom(parser: AttributeParser, text: str) -> float:
    """JWildfire's factor on the scale."""
    zoom = parser.number("cam_zoom", text)
    if not 1e-6 < zoom < 1e6:
        parser.fail(f"cam_zoom is {zoom:g}; it must be 1e-06 to 1e+06")
    return zoom


def apply(
    parser: AttributeParser,
    version: str,
    attributes: Mapping[str, str],
    flame: dict[str, object],
    extra: dict[str, str],
) -> None:
    """Change a flame's parsed fields by the attributes that only the program that wrote it (`version`) writes.

    `flame`: fields of Flame; `extra`: unread attributes. Both are changed in place.
    """
    if version.startswith("Apophysis") and is_neutral(attributes.get("enable_de", "1"), "0"):
        flame["estimator_radius"] = 0.0
    if "filter_shape" in flame and not names_filters_rightly(version):
        named = str(flame["filter_shape"])
        flame["filter_shape"] = FLAM3_FILTERS.get(named, named)
    if is_jwildfire(version) and "filter_kernel" in attributes:
        kernel = attributes["filter_kernel"].strip().lower()
        if kernel in get_args(SPATIAL_FILTERS):
            flame["filter_shape"] = kernel
        else:
            parser.ignored[f"filter kernel {kernel} flames"] = 1
    if "gradient" in attributes.get("background_type", "").lower():
        corners = [tuple(parser.numbers(name, attributes[name], 3)) for name in CORNERS if name in attributes]
        if len(set(corners)) == 1:
            flame["background"] = corners[0]
        else:
            parser.ignored["background gradient flames"] = 1
    if is_jwildfire(version):
        flame["solid"] = parse_solid(parser, attributes)
    try:
        curves = parse_curves(parser, attributes, version.startswith("Apophysis"))
    except InputError as error:  # costs the curves, not the flame
        curves, parser.ignored["color curves flames"] = (), 1
        parser.warn(str(error).removeprefix(f"{parser.path}: ") + "; its colors stay as they are")
    if any(curves):
        flame["curves"] = curves
        for name in ("curves", *CURVES):
            extra.pop(name, None)


def parse_curves(
    parser: AttributeParser, attributes: Mapping[str, str], is_bezier: bool = False
) -> tuple[CurvePoints, ...]:
    """The points of the overall, red, green and blue curve; () for a straight one.

    The attribute `curves` has four points of three numbers for each curve: with `is_bezier` (Apophysis) x, y and weight
    of a Bezier curve's control points, else x and y of points of a spline and an unused number. overall_curve and the
    other CURVES have any number of points (x, y).
    """
    curves: list[CurvePoints] = [(), (), (), ()]
    if attributes.get("curves", "").strip():
        numbers = parser.numbers("curves", attributes["curves"], 48)
        for k in range(4):
            values = numbers[12 * k : 12 * k + 12]
            if is_bezier:
                curves[k] = _bezier_points(np.array(values).reshape(4, 3))
                continue
            curves[k] = _points(list(zip(values[::3], values[1::3], strict=True)))
    for k, name in enumerate(CURVES):
        if attributes.get(name, "").strip():
            numbers = parser.numbers(name, attributes[name])
            if len(numbers) % 2 or len(numbers) > 512:
                parser.fail(f"{name} has {len(numbers)} numbers; it must have an even count of at most 512")
            curves[k] = _points(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return tuple(curves)


def _bezier_points(controls: np.ndarray) -> CurvePoints:
    """Points (t, y) of Apophysis' curve: y of a rational Bezier curve over its parameter t; () for default controls.

    `controls`: (4, 3), x, y and weight of each control point. The default ones give a straight line.
    """
    if np.array_equal(controls[:, :2], [[0, 0], [0, 0], [1, 1], [1, 1]]):
        return ()
    t = np.linspace(0, 1, BEZIER_POINTS)[:, None]
    weights = np.concatenate([(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3], 1) * controls[:, 2]
    total = weights.sum(1)
    y = np.where(total != 0, weights @ controls[:, 1] / np.where(total != 0, total, 1.0), 0.0)
    return _points(list(zip(t[:, 0].tolist(), y.tolist(), strict=True)))


def _points(pairs: list[tuple[float, float]]) -> CurvePoints:
    """The points clamped to 0 to 1 and sorted, each x once; () if they lie on the line y = x."""
    points = {round(min(max(x, 0.0), 1.0), 6): min(max(y, 0.0), 1.0) for x, y in sorted(pairs)}
    return () if len(points) < 2 or all(abs(x - y) < 2e-6 for x, y in points.items()) else tuple(points.items())
