"""Parses elements and attributes that only JWildfire writes: layers, 3D affines, opacities, order of variations.

read.py and write.py call these functions. The formulas come from A. Maschke's renderer
(https://github.com/thargor6/JWildfire).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from xml.etree.ElementTree import Element

import numpy as np

from renderer.flames.genome import IDENTITY_3D, Xform
from renderer.flames.kernel_arguments import adjusted_opacity, in_space
from renderer.flames.variations.catalog import variation_table
from renderer.flames.xml import dialects
from renderer.flames.xml.attributes import AttributeParser

# A 3D affine is an affine of x and y, then one of y and z, then one of z and x.
PLANES = {"coefs": ("yzCoefs", "zxCoefs"), "post": ("yzPost", "zxPost")}
MAX_LAYERS = 64
PRIORITY = "_fx_priority"  # NAME_fx_priority: -1 applies NAME before the other variations, 1 after them


def visible_layers(parser: AttributeParser, element: Element) -> list[Element]:
    """The elements that hold xforms and palette: a flame's visible <layer>s, or the flame itself if it has none."""
    layers = [child for child in element if child.tag == "layer"]
    shown = [layer for layer in layers if layer.get("visible", "1").strip() != "0"]
    if len(shown) > MAX_LAYERS:
        parser.fail(f"has {len(shown)} layers; it must be at most {MAX_LAYERS}")
    if layers and not shown:
        parser.fail("visible is 0 in every <layer>; at least one must be visible")
    return shown or [element]


def layer_strengths(parser: AttributeParser, layers: list[Element]) -> tuple[list[float], list[float], float]:
    """Factors on layers' colors (at most 1), factors on their plotting probability, largest weight (at least 1).

    A layer's `weight` multiplies colors but not hits: the factors are weights over the largest one. A layer plots the
    fraction `density` squared of its steps.
    """
    weights = [_bounded(parser, layer, "weight", 1e4) for layer in layers]
    densities = [min(_bounded(parser, layer, "density", 1e4), 1.0) ** 2 for layer in layers]
    largest = max(1.0, *weights)
    return [weight / largest for weight in weights], densities, largest


def _bounded(parser: AttributeParser, layer: Element, name: str, high: float) -> float:
    value = parser.number(f"layer {name}", layer.get(name, "1")) if layer.tag == "layer" else 1.0
    if not 0 <= value <= high:
        parser.fail(f"layer: {name} is {value:g}; it must be 0 to {high:g}")
    return value


# Names of JWildfire's curves for an affine of a plane: of a coefficient (by column and row), an angle or a size.
ANIMATED = re.compile(r"(xy|yz|zx)(Post)?(?:Coeff([012])([01])|(Rotate|Scale))Curve")
MAX_POINTS = 10_000  # points of a curve over time


def evaluated(parser: AttributeParser, attributes: Mapping[str, str], kind: str) -> dict[str, str]:
    """An element's attributes, the animated ones replaced by their curves' values in the flame's frame.

    Bezier curves and curves of unread values are counted as ignored; `kind`: "flames" or "xforms", for their label.
    """
    at_frame = dialects.without_curves(attributes)
    for curve in dialects.animated_curves(attributes):
        is_drawn = attributes.get(f"{curve}_interpolation", "SPLINE") in ("SPLINE", "LINEAR")
        if not (is_drawn and _animate(parser, at_frame, curve, _curve_value(parser, attributes, curve))):
            parser.ignored[f"animation of {curve} {kind}"] += 1
    return at_frame


def _animate(parser: AttributeParser, at_frame: dict[str, str], curve: str, value: float) -> bool:
    """Set the attribute that `curve` animates; False if there is none."""
    if (match := ANIMATED.fullmatch(curve)) is None:
        base = curve.removesuffix("_amountCurve").removesuffix("Curve")
        name, position, factor = dialects.DATA["animated"].get(base, (base, 0, 1.0))
        words = at_frame.get(name, "").split()
        if len(words) <= position:
            return False
        words[position] = repr(value * factor)
        at_frame[name] = " ".join(words)
        return True
    plane, post, column, row, change = match.groups()
    name = ("post" if post else "coefs") if plane == "xy" else plane + (post or "Coefs")
    # by columns, as files have it: numbers[column, row]
    numbers = np.reshape(parser.numbers(name, at_frame.get(name, "1 0 0 1 0 0"), 6), (3, 2))
    if column:
        numbers[int(column), int(row)] = value
    elif change == "Scale":
        numbers[:2] *= value
    else:
        c, s = math.cos(math.radians(value)), math.sin(math.radians(value))
        numbers[:2] = numbers[:2] @ [[c, -s], [s, c]]
    at_frame[name] = " ".join(map(repr, numbers.ravel().tolist()))
    return True


def _curve_value(parser: AttributeParser, attributes: Mapping[str, str], curve: str) -> float:
    """The value of a curve in the flame's frame: a Catmull-Rom spline of both coordinates, or straight lines."""
    count = parser.number(f"{curve}_point_count", attributes[f"{curve}_point_count"])
    if not 1 <= count <= MAX_POINTS:
        parser.fail(f"{curve}_point_count is {count:g}; it must be 1 to {MAX_POINTS}")
    names = [[f"{curve}_{axis}{k}" for k in range(int(count))] for axis in "xy"]
    points = np.array([[parser.number(name, attributes.get(name, "0")) for name in row] for row in names])
    if count > 2 and attributes.get(f"{curve}_interpolation") != "LINEAR":
        a, b, c, d = (np.pad(points, ((0, 0), (1, 1)), "edge")[:, k : k + int(count) - 1, None] for k in range(4))
        u = np.linspace(0, 1, 1025)
        spline = b + u * (c - a) / 2 + u**2 * (a - 2.5 * b + 2 * c - d / 2) + u**3 * (3 * (b - c) + d - a) / 2
        points = spline.reshape(2, -1)
    return float(np.interp(parser.frame, np.maximum.accumulate(points[0]), points[1]))


def blur_copies(parser: AttributeParser, element: Element) -> list[tuple[float, float]]:
    """The frame and the brightness of each copy of the flame that JWildfire's motion blur draws; one without blur.

    It adds `motion_blur_length` copies, the p-th with the brightness 1 - 0.07 p^2 decay / length. A flame that no curve
    moves is drawn once, with their mean brightness.
    """
    names = ("length", "timestep", "decay")
    texts = (element.get(f"motion_blur_{name}", "0") for name in names)
    length, step, decay = (parser.number(f"motion_blur_{k}", text) for k, text in zip(names, texts, strict=True))
    if not 0 <= length <= MAX_POINTS:
        parser.fail(f"motion_blur_length is {length:g}; it must be 0 to {MAX_POINTS}")
    p = np.arange(int(length) + 1)
    brightness = np.maximum(1 - 0.07 * p**2 * decay / max(length, 1), 0.01)
    curves = any(True for each in element.iter() for _ in dialects.animated_curves(each.attrib))
    if not curves or len(p) == 1:
        return [(parser.frame, float(brightness.mean()))]
    if len(p) > MAX_LAYERS or any(dialects.animated_curves(element.attrib)):  # copies are layers here: one camera
        parser.ignored["motion blur of JWildfire flames"] = 1
        return [(parser.frame, 1.0)]
    frames = np.where(p > 0, parser.frame + (length / 2 - p) * step, parser.frame)
    return list(zip(frames.tolist(), brightness.tolist(), strict=True))


def thinned(xform: Xform, factor: float) -> Xform:
    """The xform with the probability that a point is plotted multiplied by `factor`."""
    plotted = adjusted_opacity(xform.opacity) * factor
    return replace(xform, opacity=opacity_of_probability(plotted)) if factor != 1 else xform


def opacity_of_probability(plotted: float) -> float:
    """flam3's opacity for the probability `plotted` of plotting a point; JWildfire's opacity is that probability."""
    return 2.0 ** math.log10(plotted) if plotted > 0 else 0.0


def space_affine(parser: AttributeParser, attributes: Mapping[str, str], name: str) -> tuple[float, ...] | None:
    """The 12 coefficients of a 3D affine that JWildfire writes as three 2D affines; None if it is a 2D affine.

    `name`: "coefs" or "post", the attribute of the affine of x and y; PLANES[name] are the affines of y, z and of z, x.
    The linear maps are applied in this order; then all translations are added.
    """
    if not any(plane in attributes for plane in PLANES[name]):
        return None
    texts = [attributes.get(plane, "1 0 0 1 0 0") for plane in PLANES[name]]
    plane_affines = [parser.numbers(plane, text, 6) for plane, text in zip(PLANES[name], texts, strict=True)]
    if all(np.allclose(affine, IDENTITY_COEFS, rtol=0, atol=1e-9) for affine in plane_affines):
        return None
    linear, offset = np.eye(3), np.zeros(3)
    flat = parser.numbers(name, attributes.get(name, "1 0 0 1 0 0"), 6)
    for (i, j), (a, b, c, d, u, v) in zip(((0, 1), (1, 2), (0, 2)), (flat, *plane_affines), strict=True):
        plane_map = np.eye(3)
        plane_map[i, i], plane_map[j, i], plane_map[i, j], plane_map[j, j] = a, b, c, d
        linear, offset[i], offset[j] = plane_map @ linear, offset[i] + u, offset[j] + v
    return tuple(np.concatenate([linear, offset[:, None]], 1).ravel().tolist())


IDENTITY_COEFS = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def space_affines(
    parser: AttributeParser, attributes: Mapping[str, str], affine: tuple[float, ...], post: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """An xform's affine and post, of 12 coefficients if the attributes have affines of y, z or z, x; else as given."""
    affine_in_space, post_in_space = (space_affine(parser, attributes, name) for name in PLANES)
    if affine_in_space or post_in_space:
        affine = affine_in_space or in_space(affine)
    return affine, post_in_space or post


def plane_affines(
    affine: tuple[float, ...], extra: Mapping[str, str], name: str
) -> dict[str, tuple[float, ...]] | None:
    """The inverse of space_affine(): the attributes `name` and PLANES[name], 6 coefficients each, by rows.

    Only `name` for an affine of 6 coefficients, or if the other planes of the file's attributes `extra` still hold.
    None for an affine that no three planes give, such as some whose image is a plane.
    """
    if len(affine) == 6:
        return {name: affine}
    probe = AttributeParser("written flame")
    planes = {plane: extra[plane] for plane in PLANES[name] if plane in extra}
    target = np.array(affine).reshape(3, 4)
    others = np.array(space_affine(probe, planes, name) or IDENTITY_3D).reshape(3, 4)
    flat, offset = np.linalg.pinv(others[:, :3]) @ target[:, :3], target[:, 3] - others[:, 3]
    z_terms = [*flat[2, :2], *flat[:2, 2], flat[2, 2] - 1, offset[2], *(others[:, :3] @ flat - target[:, :3]).ravel()]
    if np.allclose(z_terms, 0, rtol=0, atol=1e-9):
        return {name: _rounded(flat[:2, :2], offset[:2])}
    if (maps := _plane_maps(target[:, :3])) is None:
        return None
    offsets = target[:2, 3], np.array([0.0, target[2, 3]]), np.zeros(2)
    return {n: _rounded(*each) for n, *each in zip((name, *PLANES[name]), maps, offsets, strict=True)}


def _plane_maps(linear: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Maps (2, 2) of x and y, then of y and z, then of x and z, which together are `linear` (3, 3); None without any.

    The columns of `linear` are axes X, Y, Z. The first map turns X and Y into U without y, and V that is parallel to Z
    in the plane of x and z: then the second map makes y, and the third x and z of (U, V, Z).
    """
    x, y, z = linear.T
    # The y of X and of Y, and their cross products with Z in the plane of x and z; each pair scaled, as only its ratio
    # counts.
    a, b, c, d = x[1], y[1], x[0] * z[2] - x[2] * z[0], y[0] * z[2] - y[2] * z[0]
    a, b = np.array([a, b] if a or b else [0.0, 1.0]) / (max(abs(a), abs(b)) or 1.0)
    c, d = np.array([c, d] if c or d else [1.0, 0.0]) / (max(abs(c), abs(d)) or 1.0)
    basis = np.array([[b, -d], [-a, c]])  # U and V in X and Y
    u, v = (linear[:, :2] @ basis).T
    # The direction of Z, or else of V, in the plane of x and z, and the lengths of V and Z along it.
    ratio = next((each[[0, 2]] for each in (z, v) if each[[0, 2]].any()), np.array([0.0, 1.0]))
    along = [float(each[[0, 2]] @ ratio / (ratio @ ratio)) for each in (v, z)]
    second, third = np.array([[v[1], z[1]], along]), np.array([u[[0, 2]], ratio]).T
    first = np.linalg.pinv(basis)
    whole = np.stack([u, v, z], 1) @ np.block([[first, np.zeros((2, 1))], [np.zeros((1, 2)), 1.0]])
    return (first, second, third) if np.allclose(whole, linear, rtol=0, atol=1e-9 * np.abs(linear).max()) else None


def _rounded(linear: np.ndarray, offset: np.ndarray) -> tuple[float, ...]:
    return tuple(float(f"{value:.15g}") for value in np.column_stack([linear, offset]).ravel())


def apply_priorities(
    parser: AttributeParser, attributes: Mapping[str, str], variations: dict[str, float], parameters: dict[str, float]
) -> None:
    """Rename variations by their priorities; other priorities than -1, 0 and 1 are counted as ignored.

    Priority -1 adds a variation to the point before the others, 1 adds it to their sum. A variation of JWildfire's that
    is defined for a stage keeps it at priority 0, which writers that know no priorities give to all. post_ ones of
    priority -1 change the point before the others.
    """
    for attribute, text in attributes.items():
        if not attribute.endswith(PRIORITY):
            continue
        name = dialects.variation_name(dialects.plain_name(attribute.removesuffix(PRIORITY)))
        if name not in variations:
            continue
        new_stage = {"-1": "pre_", "0": "", "1": "post_"}.get(text.strip())
        stage = variation_table()[name].stage
        if new_stage in ("", stage):
            continue
        if new_stage is None or stage == "pre_":
            parser.ignored[f"{attribute} {text[:8]} xforms"] += 1
            continue
        listed = name if variation_table()[name].function == name else name.removeprefix(stage)
        new_name = f"{new_stage}{'' if stage else 'add_'}{listed}"
        variations[new_name] = variations.get(new_name, 0.0) + variations.pop(name)
        for parameter in variation_table()[name].parameters:
            if parameter in parameters:
                parameters[new_name + parameter.removeprefix(name)] = parameters.pop(parameter)
