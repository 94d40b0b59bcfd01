"""What JWildfire means with its own elements and attributes: layers, affines of space, linear opacity.

The formulas are those of its renderer (A. Maschke, https://github.com/thargor6/JWildfire).
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from renderer.flames.genome import IDENTITY_2D, IDENTITY_3D, Xform
from renderer.flames.kernel_arguments import adjusted_opacity
from renderer.flames.xml.attributes import AttributeParser

PLANES = {"coefs": ("yzCoefs", "zxCoefs"), "post": ("yzPost", "zxPost")}  # of an affine of space, after that of x, y
MAX_LAYERS = 64


def visible_layers(parser: AttributeParser, element: Any) -> list[Any]:
    """The elements that hold xforms and palette: the visible <layer>s of a <jwf-flame>, or the flame itself."""
    layers = [child for child in element if child.tag == "layer"]
    shown = [layer for layer in layers if layer.get("visible", "1").strip() != "0"]
    if len(shown) > MAX_LAYERS:
        parser.fail(f"has {len(shown)} layers; it must be at most {MAX_LAYERS}")
    if layers and not shown:
        parser.fail("visible is 0 in every <layer>; at least one must be visible")
    return shown or [element]


def layer_strengths(parser: AttributeParser, layers: list[Any]) -> tuple[list[float], list[float], float]:
    """A factor on each layer's colors, at most 1, one on its opacity, and the factor that was taken out of all colors.

    A layer's `weight` multiplies colors but not hits; of its steps it skips all but `density` squared.
    """
    weights = [_bounded(parser, layer, "weight", 1e4) for layer in layers]
    densities = [min(_bounded(parser, layer, "density", 1e4), 1.0) ** 2 for layer in layers]
    most = max(1.0, *weights)
    return [weight / most for weight in weights], densities, most


def _bounded(parser: AttributeParser, layer: Any, name: str, high: float) -> float:
    value = parser.number(f"layer {name}", layer.get(name, "1")) if layer.tag == "layer" else 1.0
    if not 0 <= value <= high:
        parser.fail(f"layer: {name} is {value:g}; it must be 0 to {high:g}")
    return value


def thinned(xform: Xform, share: float) -> Xform:
    """The xform whose points are plotted with a probability, `share`, times its own."""
    plotted = adjusted_opacity(xform.opacity) * share
    return replace(xform, opacity=opacity_of_probability(plotted)) if share != 1 else xform


def opacity_of_probability(plotted: float) -> float:
    """The opacity of flam3 that plots this part of the points; JWildfire's opacity is that part itself."""
    return 2.0 ** math.log10(plotted) if plotted > 0 else 0.0


def space_affine(parser: AttributeParser, attributes: Mapping[str, str], name: str) -> tuple[float, ...] | None:
    """The 12 coefficients of `coefs` or `post` with its parts in the planes y z and z x; None if these do nothing.

    The linear parts are applied one after another, that of x, y first; then all translations are added.
    """
    texts = [attributes.get(plane, "1 0 0 1 0 0") for plane in PLANES[name]]
    parts = [parser.numbers(plane, text, 6) for plane, text in zip(PLANES[name], texts, strict=True)]
    if all(np.allclose(part, IDENTITY_PART, rtol=0, atol=1e-9) for part in parts):
        return None
    linear, offset = np.eye(3), np.zeros(3)
    flat = parser.numbers(name, attributes.get(name, "1 0 0 1 0 0"), 6)
    for (i, j), (a, b, c, d, u, v) in zip(((0, 1), (1, 2), (0, 2)), (flat, *parts), strict=True):
        step = np.eye(3)
        step[i, i], step[j, i], step[i, j], step[j, j] = a, b, c, d
        linear, offset[i], offset[j] = step @ linear, offset[i] + u, offset[j] + v
    return tuple(np.concatenate([linear, offset[:, None]], 1).ravel().tolist())


IDENTITY_PART = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def with_space_affines(parser: AttributeParser, attributes: Mapping[str, str], values: dict[str, Any]) -> None:
    """Replace the parsed affine and post by 12 coefficients if an affine of space is there."""
    affine, post = (space_affine(parser, attributes, name) for name in PLANES)
    if affine or post:
        values["affine"] = affine or in_space(values.get("affine", IDENTITY_2D))
    if post:
        values["post"] = post


def in_space(affine: tuple[float, ...]) -> tuple[float, ...]:
    """An affine of x and y as one of space."""
    a, b, c, d, e, f = affine
    return (a, b, 0.0, c, d, e, 0.0, f, *IDENTITY_3D[8:])


def flat_part(affine: tuple[float, ...], extra: Mapping[str, str], name: str) -> tuple[float, ...] | None:
    """The 6 coefficients that make the affine of space with the parts in the planes of `extra`; None if none do.

    The inverse of space_affine().
    """
    if len(affine) == 6:
        return affine
    probe = AttributeParser("written flame")
    planes = {plane: extra[plane] for plane in PLANES[name] if plane in extra}
    rest = np.array(space_affine(probe, planes, name) or IDENTITY_3D).reshape(3, 4)
    wanted = np.array(affine).reshape(3, 4)
    try:
        linear = np.linalg.solve(rest[:, :3], wanted[:, :3])
    except np.linalg.LinAlgError:
        return None
    offset = wanted[:, 3] - rest[:, 3]
    beyond = [linear[2, 0], linear[2, 1], linear[0, 2], linear[1, 2], linear[2, 2] - 1, offset[2]]
    if not np.allclose(beyond, 0, rtol=0, atol=1e-9):
        return None
    rounded = [[float(f"{value:.15g}") for value in row] for row in np.column_stack([linear[:2, :2], offset[:2]])]
    return (*rounded[0], *rounded[1])
