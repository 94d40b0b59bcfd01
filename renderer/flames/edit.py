"""Edits of a flame, for the flame editor and for mutations: pure functions from a genome to a new one.

They take a Flame or a subclass (a picture's settings) and return the same class. Xforms are addressed by index;
FINAL_XFORM is the index of the final one.
"""

import math
from dataclasses import replace
from typing import TypeVar

import numpy as np

from renderer.errors import UserError
from renderer.flames.genome import IDENTITY_2D, IDENTITY_3D, Flame, Xform, read_only
from renderer.flames.interpolation import KeyFrame
from renderer.flames.settings import Settings

FINAL_XFORM = -1
Point = tuple[float, float]
Triangle = tuple[Point, Point, Point]
AnyFlame = TypeVar("AnyFlame", bound=Flame)
AnySettings = TypeVar("AnySettings", bound=Settings)


def xform_at(flame: Flame, index: int) -> Xform:
    """The xform with that index; UserError if there is none."""
    if index == FINAL_XFORM and flame.final_xform is not None:
        return flame.final_xform
    if not 0 <= index < len(flame.xforms):
        raise UserError(f"flame: no xform {index}; there are {len(flame.xforms)}, counted from 0")
    return flame.xforms[index]


def with_xform(flame: AnyFlame, index: int, **changes: object) -> AnyFlame:
    """The flame with fields of one xform replaced: weight, color, color_speed, opacity, affine, post, ..."""
    changed = replace(xform_at(flame, index), **changes)  # type: ignore[arg-type]
    if index == FINAL_XFORM:
        return replace(flame, final_xform=changed)
    return replace(flame, xforms=(*flame.xforms[:index], changed, *flame.xforms[index + 1 :]))


def with_variation(flame: AnyFlame, index: int, name: str, weight: float) -> AnyFlame:
    """The flame with the weight of one variation of an xform set; weight 0 removes the variation."""
    variations = {**xform_at(flame, index).variations, name: weight}
    return with_xform(flame, index, variations=read_only({k: v for k, v in variations.items() if v != 0}))


def with_parameter(flame: AnyFlame, index: int, name: str, value: float) -> AnyFlame:
    """The flame with one parameter of an xform's variations set."""
    parameters = {**xform_at(flame, index).parameters, name: value}
    return with_xform(flame, index, parameters=read_only(parameters))


def with_xaos(flame: AnyFlame, index: int, to_xform: int, factor: float) -> AnyFlame:
    """The flame with the xaos factor from xform `index` to xform `to_xform` set."""
    factors = list(xform_at(flame, index).xaos)
    factors += [1.0] * (len(flame.xforms) - len(factors))
    factors[to_xform] = factor
    return with_xform(flame, index, xaos=tuple(factors))


# ---- triangles: the images of (0, 0), (1, 0) and (0, 1)


def triangle(xform: Xform, post: bool = False) -> Triangle:
    """The corners O, X, Y of a 2D xform's affine or post-affine."""
    a, b, c, d, e, f = xform.post if post else xform.affine
    return (c, f), (a + c, d + f), (b + c, e + f)


def with_triangle(flame: AnyFlame, index: int, corners: Triangle, post: bool = False) -> AnyFlame:
    """The flame with the affine (or post-affine) of one 2D xform set by the triangle of its corners O, X, Y."""
    (ox, oy), (xx, xy), (yx, yy) = corners
    affine = (xx - ox, yx - ox, ox, xy - oy, yy - oy, oy)
    return with_xform(flame, index, **{"post" if post else "affine": affine})


def move_corner(flame: AnyFlame, index: int, corner: int, position: Point, post: bool = False) -> AnyFlame:
    """The flame with a corner of an xform's triangle moved: 0 (O) moves all corners, 1 (X) and 2 (Y) only that one."""
    o, x, y = triangle(xform_at(flame, index), post)
    if corner == 0:
        dx, dy = position[0] - o[0], position[1] - o[1]
        o, x, y = ((px + dx, py + dy) for px, py in (o, x, y))
        return with_triangle(flame, index, (o, x, y), post)
    return with_triangle(flame, index, (o, position, y) if corner == 1 else (o, x, position), post)


def rotate_scale(flame: AnyFlame, index: int, degrees: float, scale: float = 1.0, post: bool = False) -> AnyFlame:
    """The flame with an xform's triangle rotated about its corner O and scaled."""
    (ox, oy), x, y = triangle(xform_at(flame, index), post)
    c, s = scale * math.cos(math.radians(degrees)), scale * math.sin(math.radians(degrees))

    def rotated(px: float, py: float) -> Point:
        return ox + c * (px - ox) - s * (py - oy), oy + s * (px - ox) + c * (py - oy)

    return with_triangle(flame, index, ((ox, oy), rotated(*x), rotated(*y)), post)


# ---- the list of xforms


def add_xform(flame: AnyFlame, source: Xform | None = None) -> AnyFlame:
    """The flame with one more xform at the end: a copy of `source`, or one that scales by a half."""
    if source is None:
        identity = IDENTITY_3D if flame.is_3d else IDENTITY_2D
        source = Xform(tuple(0.5 * coefficient for coefficient in identity), color=0.5)
    return replace(flame, xforms=(*flame.xforms, replace(source, xaos=())))


def add_final_xform(flame: AnyFlame) -> AnyFlame:
    """The flame with a final xform that is the identity."""
    return replace(flame, final_xform=Xform(IDENTITY_3D if flame.is_3d else IDENTITY_2D, color_speed=0.0))


def delete_xform(flame: AnyFlame, index: int) -> AnyFlame:
    """The flame without an xform and its entries in the other xforms' xaos; UserError if it is the only xform."""
    if index == FINAL_XFORM:
        return replace(flame, final_xform=None)
    xform_at(flame, index)
    if len(flame.xforms) == 1:
        raise UserError("flame: the last xform cannot be deleted")
    kept = (xform for k, xform in enumerate(flame.xforms) if k != index)
    return replace(flame, xforms=tuple(replace(x, xaos=(*x.xaos[:index], *x.xaos[index + 1 :])) for x in kept))


# ---- palette


def with_palette(flame: AnyFlame, name: str) -> AnyFlame:
    """The flame with a built-in palette."""
    return replace(flame, palette=name, colors=(), alphas=())


def with_palette_colors(flame: AnyFlame, colors: np.ndarray) -> AnyFlame:
    """The flame with the palette `colors` (256, 3), 0 to 255."""
    return replace(flame, colors=tuple(map(tuple, np.clip(colors, 0, 255).tolist())))


# ---- key frames, of a picture's settings


def add_keyframe(settings: AnySettings, keyframe: KeyFrame) -> AnySettings:
    """The settings with one more key frame, sorted by time; a key frame of the same time is replaced."""
    others = (key for key in settings.keyframes if key.time != keyframe.time)
    return replace(settings, keyframes=tuple(sorted((*others, keyframe), key=lambda key: key.time)))


def delete_keyframe(settings: AnySettings, index: int) -> AnySettings:
    """The settings without a key frame; without any if only one would remain, so that the flame is a still."""
    kept = tuple(keyframe for k, keyframe in enumerate(settings.keyframes) if k != index)
    return replace(settings, keyframes=kept if len(kept) > 1 else ())
