"""What the live editor does to a flame: pure functions from a genome to a new one. Xforms are addressed by
index; FINAL_XFORM is the final one.

They take a Flame or what derives from it, and return the same kind.
"""

import math
import types
from dataclasses import replace

import numpy as np

from renderer.errors import UserError
from renderer.flames import palettes
from renderer.flames.genome import IDENTITY_2D, IDENTITY_3D, Flame, Xform

FINAL_XFORM = -1
Point = tuple[float, float]


def xform_at(flame: Flame, number: int) -> Xform:
    """The map of that number; UserError where there is none."""
    if number == FINAL_XFORM and flame.final_xform is not None:
        return flame.final_xform
    if not 0 <= number < len(flame.xforms):
        raise UserError(f"flame: no map {number}; there are {len(flame.xforms)}, numbered from 0")
    return flame.xforms[number]


def with_xform(flame: Flame, number: int, **changes) -> Flame:
    """The flame with fields of one map set: weight, color, color_speed, opacity, affine, post, ..."""
    changed = replace(xform_at(flame, number), **changes)
    if number == FINAL_XFORM:
        return replace(flame, final_xform=changed)
    return replace(flame, xforms=(*flame.xforms[:number], changed, *flame.xforms[number + 1 :]))


def with_variation(flame: Flame, number: int, name: str, weight: float) -> Flame:
    """The flame with the weight of one variation of a map set; 0 takes it away."""
    variations = {**xform_at(flame, number).variations, name: weight}
    kept = types.MappingProxyType({k: v for k, v in variations.items() if v != 0})
    return with_xform(flame, number, variations=kept)


def with_parameter(flame: Flame, number: int, name: str, value: float) -> Flame:
    """The flame with a parameter of a variation of a map set."""
    parameters = types.MappingProxyType({**xform_at(flame, number).parameters, name: value})
    return with_xform(flame, number, parameters=parameters)


def with_xaos(flame: Flame, number: int, after: int, factor: float) -> Flame:
    """The flame with the factor of map `after` coming next after map `number` set."""
    factors = list(xform_at(flame, number).xaos)
    factors += [1.0] * (len(flame.xforms) - len(factors))
    factors[after] = factor
    return with_xform(flame, number, xaos=tuple(factors))


# ---- triangles: the images of (0, 0), (1, 0) and (0, 1)


def triangle(m: Xform, post: bool = False) -> tuple[Point, Point, Point]:
    """The corners O, X, Y of a map of the plane, by its affine or its post-affine."""
    a, b, c, d, e, f = m.post if post else m.affine
    return (c, f), (a + c, d + f), (b + c, e + f)


def with_triangle(flame: Flame, number: int, corners: tuple[Point, Point, Point], post: bool = False) -> Flame:
    """The flame with the triangle of one map set."""
    (ox, oy), (xx, xy), (yx, yy) = corners
    affine = (xx - ox, yx - ox, ox, xy - oy, yy - oy, oy)
    return with_xform(flame, number, **{"post" if post else "affine": affine})


def move_corner(flame: Flame, number: int, corner: int, place: Point, post: bool = False) -> Flame:
    """The flame with a corner of a map's triangle dragged to a place: O (0) moves the whole triangle, X (1) and Y (2)
    bend it.
    """
    corners = list(triangle(xform_at(flame, number), post))
    if corner == 0:
        shift = (place[0] - corners[0][0], place[1] - corners[0][1])
        moved = tuple((x + shift[0], y + shift[1]) for x, y in corners)
        return with_triangle(flame, number, moved, post)
    corners[corner] = place
    return with_triangle(flame, number, tuple(corners), post)


def rotate_scale(flame: Flame, number: int, degrees: float, growth: float = 1.0, post: bool = False) -> Flame:
    """The flame with a map's triangle turned about its corner O and grown."""
    (ox, oy), *others = triangle(xform_at(flame, number), post)
    c, s = growth * math.cos(math.radians(degrees)), growth * math.sin(math.radians(degrees))
    moved = tuple((ox + c * (x - ox) - s * (y - oy), oy + s * (x - ox) + c * (y - oy)) for x, y in others)
    return with_triangle(flame, number, ((ox, oy), *moved), post)


# ---- xforms as a list


def add_xform(flame: Flame, like: Xform | None = None) -> Flame:
    """The flame with one more map, the last: a copy of `like`, or one that halves."""
    if like is None:
        half = IDENTITY_3D if flame.is_3d else IDENTITY_2D
        like = Xform(tuple(0.5 * number for number in half), color=0.5)
    return replace(flame, xforms=(*flame.xforms, replace(like, xaos=())))


def delete_xform(flame: Flame, number: int) -> Flame:
    """The flame without a map, the xaos of the others without its column; the last map stays."""
    if number == FINAL_XFORM:
        return replace(flame, final_xform=None)
    xform_at(flame, number)
    if len(flame.xforms) == 1:
        raise UserError("flame: the last map cannot be taken away")
    kept = (m for k, m in enumerate(flame.xforms) if k != number)
    return replace(flame, xforms=tuple(replace(m, xaos=(*m.xaos[:number], *m.xaos[number + 1 :])) for m in kept))


def with_palette(flame: Flame, name: str) -> Flame:
    """The flame in the colors of a built-in palette."""
    return replace(flame, palette=name, colors=(), alphas=())


def with_palette_colors(flame: Flame, colors: np.ndarray) -> Flame:
    """The flame with a palette (256, 3) of its own, 0 to 255."""
    return replace(flame, colors=tuple(map(tuple, np.clip(colors, 0, 255).tolist())))


def rotate_palette(colors: np.ndarray, entries: int = 0, hue: float = 0.0) -> np.ndarray:
    """A palette (256, 3) moved on by so many entries, around its end, and its hues turned by `hue` of a turn."""
    if hue:
        hsv = palettes.rgb_to_hsv(colors / 255)
        hsv[:, 0] = (hsv[:, 0] + 6 * hue) % 6
        colors = palettes.hsv_to_rgb(hsv) * 255
    return np.roll(colors, entries, 0)


# ---- key frames; of settings that have `keys`


def add_keyframe(settings, key):
    """The settings with one more key frame, in its place by time; one of the same time gives way."""
    others = (each for each in settings.keyframes if each.time != key.time)
    return replace(settings, keyframes=tuple(sorted((*others, key), key=lambda each: each.time)))


def delete_keyframe(settings, number: int):
    """The settings without a key frame; of two the last one stays, as a still."""
    kept = tuple(key for k, key in enumerate(settings.keyframes) if k != number)
    return replace(settings, keyframes=kept if len(kept) > 1 else ())


def add_final_xform(flame: Flame) -> Flame:
    """The flame with a final map that changes nothing yet."""
    return replace(flame, final_xform=Xform(IDENTITY_3D if flame.is_3d else IDENTITY_2D, color_speed=0.0))
