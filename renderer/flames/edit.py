"""Edits of a flame, for the flame editor and for mutations: pure functions from a genome to a new one.

They take a Flame or a subclass (a picture's settings) and return the same class. Xforms are addressed by index;
FINAL_XFORM is the index of the final one.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from renderer.errors import UserError
from renderer.flames.genome import IDENTITY_2D, IDENTITY_3D, Flame, Xform, read_only
from renderer.flames.interpolation import KeyFrame
from renderer.flames.settings import Settings

FINAL_XFORM = -1
Point = tuple[float, ...]  # of the plane, or of space
Triangle = tuple[Point, ...]
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


# ---- triangles: the images of the origin and of the unit vectors


def triangle(xform: Xform, post: bool = False) -> Triangle:
    """The corners O, X, Y of an xform's affine or post-affine; O, X, Y, Z of one in space."""
    affine = xform.post if post else xform.affine
    *axes, origin = np.reshape(affine, (2 if len(affine) == 6 else 3, -1)).T
    return tuple(tuple(corner.tolist()) for corner in (origin, *(origin + axis for axis in axes)))


def with_triangle(flame: AnyFlame, index: int, corners: Sequence[Point], post: bool = False) -> AnyFlame:
    """The flame with the affine (or post-affine) of one xform set by its corners O, X, Y, and Z in space."""
    origin, *ends = np.array(corners, "f8")
    affine = np.stack([*(end - origin for end in ends), origin], 1)
    return with_xform(flame, index, **{"post" if post else "affine": tuple(affine.ravel().tolist())})


def rotate_scale(flame: AnyFlame, index: int, degrees: float, scale: float = 1.0, post: bool = False) -> AnyFlame:
    """The flame with an xform's triangle rotated about its corner O, in space about the z axis, and scaled."""
    corners = np.array(triangle(xform_at(flame, index), post))
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    rotation = np.eye(corners.shape[1])
    rotation[:2, :2] = [[c, -s], [s, c]]
    turned = corners[0] + scale * (corners - corners[0]) @ rotation.T
    return with_triangle(flame, index, turned.tolist(), post)


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
    """The flame with the palette `colors` (256, 3), 0 to 255, rounded as other programs' files have it."""
    return replace(flame, colors=tuple(map(tuple, np.clip(np.round(colors), 0, 255).tolist())))


# ---- key frames, of a picture's settings


def add_keyframe(settings: AnySettings, keyframe: KeyFrame) -> AnySettings:
    """The settings with one more key frame, sorted by time; a key frame of the same time is replaced."""
    others = (key for key in settings.keyframes if key.time != keyframe.time)
    return replace(settings, keyframes=tuple(sorted((*others, keyframe), key=lambda key: key.time)))


def delete_keyframe(settings: AnySettings, index: int) -> AnySettings:
    """The settings without a key frame; without any if only one would remain, so that the flame is a still."""
    kept = tuple(keyframe for k, keyframe in enumerate(settings.keyframes) if k != index)
    return replace(settings, keyframes=kept if len(kept) > 1 else ())
