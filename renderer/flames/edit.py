"""What the live editor does to a flame: pure functions from a genome to a new one. Maps by number, FINAL is the final
map.

They take a Flame or what derives from it, and return the same kind.
"""

import math
import types
from dataclasses import replace

import numpy as np

from renderer.errors import UserError
from renderer.flames import palettes
from renderer.flames.genome import IDENTITY, SPACE_IDENTITY, Flame, Map

FINAL = -1
Point = tuple[float, float]


def map_of(flame: Flame, number: int) -> Map:
    """The map of that number; UserError where there is none."""
    if number == FINAL and flame.final is not None:
        return flame.final
    if not 0 <= number < len(flame.maps):
        raise UserError(f"flame: no map {number}; there are {len(flame.maps)}, numbered from 0")
    return flame.maps[number]


def with_map(flame: Flame, number: int, **changes) -> Flame:
    """The flame with fields of one map set: weight, color, color_speed, opacity, affine, post, ..."""
    changed = replace(map_of(flame, number), **changes)
    if number == FINAL:
        return replace(flame, final=changed)
    return replace(flame, maps=(*flame.maps[:number], changed, *flame.maps[number + 1 :]))


def with_variation(flame: Flame, number: int, name: str, weight: float) -> Flame:
    """The flame with the weight of one variation of a map set; 0 takes it away."""
    variations = {**map_of(flame, number).variations, name: weight}
    kept = types.MappingProxyType({k: v for k, v in variations.items() if v != 0})
    return with_map(flame, number, variations=kept)


def with_parameter(flame: Flame, number: int, name: str, value: float) -> Flame:
    """The flame with a parameter of a variation of a map set."""
    parameters = types.MappingProxyType({**map_of(flame, number).parameters, name: value})
    return with_map(flame, number, parameters=parameters)


def with_xaos(flame: Flame, number: int, after: int, factor: float) -> Flame:
    """The flame with the factor of map `after` coming next after map `number` set."""
    factors = list(map_of(flame, number).xaos)
    factors += [1.0] * (len(flame.maps) - len(factors))
    factors[after] = factor
    return with_map(flame, number, xaos=tuple(factors))


# ---- triangles: the images of (0, 0), (1, 0) and (0, 1)


def triangle(m: Map, post: bool = False) -> tuple[Point, Point, Point]:
    """The corners O, X, Y of a map of the plane, by its affine or its post-affine."""
    a, b, c, d, e, f = m.post if post else m.affine
    return (c, f), (a + c, d + f), (b + c, e + f)


def with_triangle(flame: Flame, number: int, corners: tuple[Point, Point, Point], post: bool = False) -> Flame:
    """The flame with the triangle of one map set."""
    (ox, oy), (xx, xy), (yx, yy) = corners
    affine = (xx - ox, yx - ox, ox, xy - oy, yy - oy, oy)
    return with_map(flame, number, **{"post" if post else "affine": affine})


def with_corner(flame: Flame, number: int, corner: int, place: Point, post: bool = False) -> Flame:
    """The flame with a corner of a map's triangle dragged to a place: O (0) moves the whole triangle, X (1) and Y (2)
    bend it.
    """
    corners = list(triangle(map_of(flame, number), post))
    if corner == 0:
        shift = (place[0] - corners[0][0], place[1] - corners[0][1])
        moved = tuple((x + shift[0], y + shift[1]) for x, y in corners)
        return with_triangle(flame, number, moved, post)
    corners[corner] = place
    return with_triangle(flame, number, tuple(corners), post)


def turned(flame: Flame, number: int, degrees: float, growth: float = 1.0, post: bool = False) -> Flame:
    """The flame with a map's triangle turned about its corner O and grown."""
    (ox, oy), *others = triangle(map_of(flame, number), post)
    c, s = growth * math.cos(math.radians(degrees)), growth * math.sin(math.radians(degrees))
    moved = tuple((ox + c * (x - ox) - s * (y - oy), oy + s * (x - ox) + c * (y - oy)) for x, y in others)
    return with_triangle(flame, number, ((ox, oy), *moved), post)


# ---- maps as a list


def with_new_map(flame: Flame, like: Map | None = None) -> Flame:
    """The flame with one more map, the last: a copy of `like`, or one that halves."""
    if like is None:
        half = SPACE_IDENTITY if flame.space else IDENTITY
        like = Map(tuple(0.5 * number for number in half), color=0.5)
    return replace(flame, maps=(*flame.maps, replace(like, xaos=())))


def without_map(flame: Flame, number: int) -> Flame:
    """The flame without a map, the xaos of the others without its column; the last map stays."""
    if number == FINAL:
        return replace(flame, final=None)
    map_of(flame, number)
    if len(flame.maps) == 1:
        raise UserError("flame: the last map cannot be taken away")
    kept = (m for k, m in enumerate(flame.maps) if k != number)
    return replace(flame, maps=tuple(replace(m, xaos=(*m.xaos[:number], *m.xaos[number + 1 :])) for m in kept))


def with_palette(flame: Flame, name: str) -> Flame:
    """The flame in the colours of a built-in palette."""
    return replace(flame, palette=name, colors=(), alphas=())


def with_colours(flame: Flame, colours: np.ndarray) -> Flame:
    """The flame with a palette (256, 3) of its own, 0 to 255."""
    return replace(flame, colors=tuple(map(tuple, np.clip(colours, 0, 255).tolist())))


def turned_palette(colours: np.ndarray, entries: int = 0, hue: float = 0.0) -> np.ndarray:
    """A palette (256, 3) moved on by so many entries, around its end, and its hues turned by `hue` of a turn."""
    if hue:
        hsv = palettes.hsv_of(colours / 255)
        hsv[:, 0] = (hsv[:, 0] + 6 * hue) % 6
        colours = palettes.rgb_of(hsv) * 255
    return np.roll(colours, entries, 0)


# ---- key frames; of settings that have `keys`


def with_key(settings, key):
    """The settings with one more key frame, in its place by time; one of the same time gives way."""
    others = (each for each in settings.keys if each.time != key.time)
    return replace(settings, keys=tuple(sorted((*others, key), key=lambda each: each.time)))


def without_key(settings, number: int):
    """The settings without a key frame; of two the last one stays, as a still."""
    kept = tuple(key for k, key in enumerate(settings.keys) if k != number)
    return replace(settings, keys=kept if len(kept) > 1 else ())


def with_final(flame: Flame) -> Flame:
    """The flame with a final map that changes nothing yet."""
    return replace(flame, final=Map(SPACE_IDENTITY if flame.space else IDENTITY, color_speed=0.0))
