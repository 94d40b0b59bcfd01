"""What programs other than flam3 write into .flame files: bookkeeping, and what changes the picture unless neutral.

The names are those that Apophysis 7X, Fractorium (Ember), JWildfire and FLAM3H write; a table row says what is neutral.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, get_args

import numpy as np

from renderer.flames.genome import SPATIAL_FILTERS, CurvePoints
from renderer.flames.stamps import OF_PALETTE
from renderer.flames.variations import parameter_owners
from renderer.flames.xml.attributes import AttributeParser
from renderer.flames.xml.solid import parse_solid

CURVES = ("overall_curve", "red_curve", "green_curve", "blue_curve")
BEZIER_POINTS = 65
CORNERS = tuple(f"background_{corner}" for corner in ("ul", "ur", "ll", "lr", "cc"))
# flam3 3.1.1 draws the filter_shape on the left with the kernel and the support of the one on the right.
FLAM3_FILTERS = {
    "mitchell": "catrom", "blackman": "hanning", "catrom": "hamming", "hanning": "lanczos2", "hamming": "lanczos3",
    "lanczos3": "mitchell", "lanczos2": "blackman",
}  # fmt: skip
# Attributes of a <flame> -> (the value at which they do nothing, what is said otherwise).
FLAME_NEUTRAL = {
    **dict.fromkeys(("balancing_red", "balancing_green", "balancing_blue"), ("1", "color balance")),
    "post_symmetry_type": ("NONE", "post symmetry"),
    "post_blur_radius": ("0", "post blur"),
    "post_noise_filter": ("0", "post noise filter"),
    "mixer_mode": ("OFF", "channel mixer"),
    "smooth_gradient": ("0", "smooth gradient"),
    "gradient_map": ("", "gradient map"),
    "background_image": ("", "background image"),
    "bg_transparency": ("0", "transparent background"),
    "stereo3d_mode": ("NONE", "stereo mode"),
    "motion_blur_length": ("0", "motion blur of JWildfire"),
    "logscale_k2": ("0", "logscale_k2"),
}  # fmt: skip
# Attributes of an <xform> in the same way; a * stands for any text.
XFORM_NEUTRAL = {
    "color_type": ("DIFFUSION", "color_type"),
    "wfield_type": ("NONE", "weighting field"),
    "mirror_pre_post_translations": ("0", "mirrored translation"),
}
XFORM_QUIET = re.compile(
    r"name|auger_half_scale|yzCoefs|zxCoefs|yzPost|zxPost|antialias_\w+|targetcolor|wfield_\w+|\w[^=]*_fx_priority"
)
# Other programs' names of variations, without pre_ and post_.
VARIATION_ALIASES = {
    "linear3D": "linear", "Mobius": "mobius", "Spherical3D": "spherical3D", "Voron": "voron", "bwraps7": "bwraps",
    "bwraps2": "bwraps",
}  # fmt: skip
STAGED_ALIASES = {f"{stage}gaussian": f"{stage}gaussian_blur" for stage in ("pre_", "post_")}
# Parameters of which only some values are drawn: the end of the name -> those values, None for any but empty text.
DRAWN_VALUES = {
    "nBlur_numStripes": (0,), "nBlur_exactCalc": (0,), "smartcrop_cropmode": (0, 1), "smartcrop_static": (2,),
    "_colormap_filename": None, "_displ_map_filename": None, "post_depth": (0,),
    "dla3d_wf_node_obj_filename": None, "dla3d_wf_junct_obj_filename": None,
}  # fmt: skip
# Texts that variations have beside their numbers.
VARIATION_TEXTS = re.compile(
    r"text_wf_(?:text|font_name)|\w+_wf_(?:\w+_)?(?:colormap|displ_map|obj)_filename|\w+plot[23]d_wf_[xyz]?formula|gpattern_string"
)
# Ends of parameters' names in earlier versions of JWildfire, whose names differ in case too.
EARLIER_PARAMETERS = {"_red_fac": "_redf", "_green_fac": "_greenf", "_blue_fac": "_bluef", "_leves": "_levels"} | {
    "dc_voronoise_px": "dc_voronoise_deltax", "dc_voronoise_py": "dc_voronoise_deltay",
    "dc_starsfield_z_distance": "dc_starsfield_zdistance", "dc_vortex_flow_strength": "dc_vortex_flowstrength",
}  # fmt: skip
# Parameters that files of plugins for Apophysis write by names without their variation's.
UNPREFIXED = {
    "pixel_flow": ("angle", "len", "width", "seed", "enable_dc"),
    "octagon": ("octa_x", "octa_y", "octa_z", "octa_mode"),
}  # fmt: skip
# Parameters of earlier versions that restarted a clock and drew nothing.
DRAWS_NOTHING = ("dc_sunflower_seed", "dc_worley_seed")
CURVE_PARTS = re.compile(
    r"(.+)_(enabled|view_[xy]m(?:in|ax)|interpolation|selected_idx|locked|point_count|parent_curve|[xy]\d+)"
)
REPEATED = re.compile(r"([^#]+)(#\d+#)(.*)")  # name#1#: a variation that an xform has twice
REPEAT = re.compile(r"#\d+#")
FLAME_QUIET = re.compile(
    r"name|version|nick|url|notes|comment|varset|plugins|new_linear|preserve_z|intensity_adjust|angle|fuse|rand_range"
    r"|sub_batch_size|frame|frame_count|fps|flam3h_\w+|resolution_profile|quality_profile|filter_\w+|antialias_\w+"
    r"|ai_post_\w+|post_optix_\w+|post_bokeh_\w+|post_symmetry_\w+|post_blur_\w+|post_noise_\w+|zbuffer_\w+|cam_dof_\w+"
    r"|cam_[xyz]focus|new_dof|shading_\w+|sld_render_\w+|stereo3d_\w+|motion_blur_\w+|gradient_map_\w+"
    r"|layer_name|background_\w+|curves|(?:overall|red|green|blue)_curve|cam_zoom|enable_de"
)


def is_neutral(text: str, neutral: str) -> bool:
    """Whether a value is the neutral one: equal words, or equal numbers however they are written."""
    words, wanted = text.split(), neutral.split()
    try:
        return len(words) == len(wanted) and all(map(_equal, words, wanted))
    except ValueError:
        return text.strip().lower() == neutral.lower()


def _equal(one: str, two: str) -> bool:
    return abs(float(one) - float(two)) < 1e-9


def flame_ignored(name: str, text: str) -> str:
    """What is said of an attribute of a <flame> that nothing reads; the empty text for bookkeeping."""
    if name in FLAME_NEUTRAL:
        neutral, label = FLAME_NEUTRAL[name]
        return "" if is_neutral(text, neutral) else label
    if FLAME_QUIET.fullmatch(name):
        return ""
    return f"unknown attribute {name}"


def xform_ignored(name: str, text: str) -> str | None:
    """What is said of an attribute of an <xform>: the empty text for bookkeeping, None where it may be a variation."""
    if VARIATION_TEXTS.fullmatch(REPEAT.sub("", name).removeprefix("pre_").removeprefix("post_")):
        return ""
    if name in XFORM_NEUTRAL:
        neutral, label = XFORM_NEUTRAL[name]
        return "" if is_neutral(text, neutral) else f"{label} {text}" if name == "color_type" else label
    return "" if XFORM_QUIET.fullmatch(name) else None


def rewritten(attributes: Mapping[str, str]) -> dict[str, str]:
    """An xform's attributes, in which what other programs write differently has the table's names.

    Parameters without their variation's name get it; a waves2 that waves z is waves2_z; JWildfire's prepost_circlize is
    one variation before the others and its inverse after them.
    """
    found = {name: text for name, text in attributes.items() if name not in DRAWS_NOTHING}
    for owner, names in UNPREFIXED.items():
        for name in names if owner in found else ():
            if name in found:
                found[f"{owner}_{name.removeprefix('octa_')}"] = found.pop(name)
    for stage in ("", "pre_", "post_"):
        if not is_neutral(found.get(f"{stage}waves2_scalez", "0"), "0"):
            found = _renamed(found, f"{stage}waves2", f"{stage}waves2_z")
    if "prepost_circlize" in found:
        inverse = dict(found, prepost_circlize_reverse=str(int(is_neutral(found.get(CIRCLIZE_REVERSE, "0"), "0"))))
        before, after = (
            _renamed(table, "prepost_circlize", f"{stage}prepost_circlize")
            for table, stage in ((inverse, "pre_"), (found, "post_"))
        )
        return before | after
    return found


CIRCLIZE_REVERSE = "prepost_circlize_reverse"
WAVES2 = tuple(f"_{word}{axis}" for word in ("scale", "freq") for axis in "xyz")


def _renamed(attributes: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """The attributes with another name of a variation in its weight and its parameters."""
    ends = ("", *WAVES2) if old.endswith("waves2") else ("", "_n", "_rotation", "_reverse")
    names = {old + end: new + end for end in ends}
    return {names.get(name, name): text for name, text in attributes.items()}


def plain_name(name: str) -> str:
    """A name without spaces, dots and brackets, which JWildfire writes; the table has none."""
    return re.sub(r"[^\w#]+", "_", name).strip("_")


def variation_name(name: str) -> str:
    """The name by which the table has a variation: without spaces and marks, not another program's."""
    stage = name[: name.index("_") + 1] if name.startswith(("pre_", "post_")) else ""
    base = name[len(stage) :]
    return STAGED_ALIASES.get(name) or stage + VARIATION_ALIASES.get(base, base)


@lru_cache(maxsize=1)
def _folded_parameters() -> dict[str, str]:
    """The parameters of the table by their names in small letters."""
    return {name.lower(): name for name in parameter_owners()}


def parameter_name(name: str) -> str:
    """The name by which the table has a parameter, which programs write with large or small letters."""
    name = _without_aliases(name)
    if name in parameter_owners():
        return name
    repeat = REPEAT.search(name)
    plain = (name[: repeat.start()] + name[repeat.end() :] if repeat else name).lower()
    stage = plain[: plain.index("_") + 1] if plain.startswith(("pre_", "post_")) else ""
    base = plain[len(stage) :]
    for end, now in EARLIER_PARAMETERS.items():
        if base.endswith(end) and base not in _folded_parameters():
            base = base.removesuffix(end) + now
    known = _folded_parameters().get(base)
    if known is None:
        return name
    owner = parameter_owners()[known]
    return stage + owner + (repeat[0] if repeat else "") + known[len(owner) :]


def _without_aliases(name: str) -> str:
    """A parameter's name with the table's name of its variation."""
    for stage in ("pre_", "post_", ""):
        for other, known in VARIATION_ALIASES.items():
            if name.startswith(f"{stage}{other}_"):
                return f"{stage}{known}{name[len(stage + other) :]}"
    return name


def undrawn_value(name: str, text: str) -> str:
    """What is said of a parameter whose value is not drawn as its program does; the empty text if it is."""
    is_palette = name.endswith("_Gradient") and "dc_" in name and is_neutral(text, "1")
    if is_palette and not any(f"{stamp}_Gradient" in name for stamp in OF_PALETTE):
        return f"{name} 1"
    for end, drawn in DRAWN_VALUES.items():
        if name.endswith(end):
            known = not text.strip() if drawn is None else any(is_neutral(text, str(value)) for value in drawn)
            return "" if known else f"{name} {text[:20]}" if drawn else name
    return ""


def animated_curves(attributes: Mapping[str, str]) -> Iterator[str]:
    """The names of an element's values that a curve over time moves: NAME_enabled is true."""
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
    """Whether a flame's `version` is JWildfire's, whose exposure differs from flam3's."""
    return version.startswith("JWildfire")


def names_filters_rightly(version: str) -> bool:
    """Whether `filter_shape` means the filter of that name: flam3 3.1.1 draws seven shapes with another's kernel."""
    return version.startswith(("EMBER", "Fractorium", "JWildfire", "FLAM3H"))


def defaults_of(version: str) -> dict[str, Any]:
    """The values of a flame's attributes that its program means where it writes none, as far as flam3's differ."""
    if is_jwildfire(version):
        return {"exposure": "jwildfire", "white_level": 220.0, "estimator_radius": 0.0}
    return {}


def apply(
    parser: AttributeParser, version: str, attributes: Mapping[str, str], flame: dict, camera: dict, extra: dict
) -> None:
    """Change the parsed values of a flame and of its camera by what its program means with its own attributes."""
    if version.startswith("Apophysis") and is_neutral(attributes.get("enable_de", "1"), "0"):
        flame["estimator_radius"] = 0.0
    if "cam_zoom" in extra:
        zoom = parser.number("cam_zoom", extra.pop("cam_zoom"))
        if not 1e-6 < zoom < 1e6:
            parser.fail(f"cam_zoom is {zoom:g}; it must be 1e-06 to 1e+06")
        camera["scale"] = camera.get("scale", 50.0) * zoom
    if "filter_shape" in flame and not names_filters_rightly(version):
        flame["filter_shape"] = FLAM3_FILTERS.get(flame["filter_shape"], flame["filter_shape"])
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
    curves = parse_curves(parser, attributes, version.startswith("Apophysis"))
    if any(curves):
        flame["curves"] = curves
        for name in ("curves", *CURVES):
            extra.pop(name, None)


def parse_curves(
    parser: AttributeParser, attributes: Mapping[str, str], is_bezier: bool = False
) -> tuple[CurvePoints, ...]:
    """The points of the overall, red, green and blue curve; () for a straight one.

    `curves` holds four points of three numbers for each: in Apophysis' files the control points of a Bezier curve and
    their weights, elsewhere points of a spline, the third unused. overall_curve and the others hold any number of
    points of two.
    """
    found: list[CurvePoints] = [(), (), (), ()]
    if attributes.get("curves", "").strip():
        numbers = parser.numbers("curves", attributes["curves"], 48)
        for k in range(4):
            mine = numbers[12 * k : 12 * k + 12]
            if is_bezier:
                found[k] = _bezier_points(np.array(mine).reshape(4, 3))
                continue
            found[k] = _points(list(zip(mine[::3], mine[1::3], strict=True)))
    for k, name in enumerate(CURVES):
        if attributes.get(name, "").strip():
            numbers = parser.numbers(name, attributes[name])
            if len(numbers) % 2 or len(numbers) > 512:
                parser.fail(f"{name} has {len(numbers)} numbers; it must have an even count of at most 512")
            found[k] = _points(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return tuple(found)


def _bezier_points(controls: np.ndarray) -> CurvePoints:
    """Points of Apophysis' curve: y of the rational Bezier curve over its parameter; controls (4, 3): x, y, weight.

    Where all controls are its default ones, it draws a straight line.
    """
    if np.array_equal(controls[:, :2], [[0, 0], [0, 0], [1, 1], [1, 1]]):
        return ()
    t = np.linspace(0, 1, BEZIER_POINTS)[:, None]
    weights = np.concatenate([(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3], 1) * controls[:, 2]
    total = weights.sum(1)
    y = np.where(total != 0, weights @ controls[:, 1] / np.where(total != 0, total, 1.0), 0.0)
    return _points(list(zip(t[:, 0].tolist(), y.tolist(), strict=True)))


def _points(pairs: list[tuple[float, float]]) -> CurvePoints:
    """The points within 0 to 1, sorted, each x once; () if the curve through them changes nothing."""
    points = {round(min(max(x, 0.0), 1.0), 6): min(max(y, 0.0), 1.0) for x, y in sorted(pairs)}
    return () if len(points) < 2 or all(abs(x - y) < 2e-6 for x, y in points.items()) else tuple(points.items())
