"""Looping animations of flames, as flam3-genome makes them: a flame whose xforms rotate, and sequences of such loops.

Scripts call these functions (`renderer.flames.loop`, ...) and write the result to a .flame file. A frame is a KeyFrame
whose time is its frame number, so that a film of the file has flam3's motion blur between the frames.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from renderer.errors import UserError
from renderer.flames.genome import Flame, Xform
from renderer.flames.interpolation import KeyFrame, align, interpolate, staggered

MAX_FRAMES = 100_000  # limit of an animation


def rotated(key: KeyFrame, degrees: float) -> KeyFrame:
    """The flame with the linear part of every xform rotated, except the final xform and xforms whose `animate` is 0."""
    xforms = tuple(_rotated_xform(x, math.radians(degrees)) if x.animate else x for x in key.flame.xforms)
    return replace(key, flame=replace(key.flame, xforms=xforms))


def _rotated_xform(xform: Xform, angle: float) -> Xform:
    if len(xform.affine) != 6:
        raise UserError("rotated: the flame's xforms are 3D; allowed are flames of the plane")
    a, b, c, d, e, f = xform.affine
    cosine, sine = math.cos(angle), math.sin(angle)
    affine = (cosine * a - sine * d, cosine * b - sine * e, c, sine * a + cosine * d, sine * b + cosine * e, f)
    return replace(xform, affine=affine)


def loop(key: KeyFrame, frames: int, first: int = 0) -> list[KeyFrame]:
    """`frames` frames of one revolution of a flame's xforms, at times `first`, `first` + 1, ...; they loop.

    A film of a file ends one frame before its last key frame: sequence([key], frames) is a file for a film that loops.
    """
    _require_frame_count(frames)
    return [replace(rotated(key, 360.0 * n / frames), time=float(first + n)) for n in range(frames)]


def turning(key: KeyFrame, length: float) -> list[KeyFrame]:
    """Five key frames a quarter turn apart, from time 0 to `length`: a film of them loops, as it leaves out the last.

    Between them interpolation of type log turns the xforms evenly. A film blends at most 60 flames for its motion blur.
    """
    flame = replace(key.flame, temporal_samples=min(key.flame.temporal_samples, 60))
    key = replace(key, flame=flame, interpolation="linear", interpolation_type="log")
    return [replace(rotated(key, 90.0 * n), time=length * n / 4) for n in range(5)]


def edge(one: KeyFrame, two: KeyFrame, frames: int, first: int = 0, stagger: float = 0.0) -> list[KeyFrame]:
    """The frames from one flame to another, both rotating once; frame n has the blend 3 t^2 - 2 t^3, t = n / frames.

    If only one of two xforms rotates, the angle between them grows continuously from its value at the start. Padding
    xforms (align() adds them to the flame that has fewer) rotate in type log only. `stagger`: see interpolate().
    """
    _require_frame_count(frames)
    flames = align([one.flame, two.flame], one.interpolation_type)
    ends = [
        replace(key, flame=flame, time=float(k)) for k, (key, flame) in enumerate(zip((one, two), flames, strict=True))
    ]
    still = [
        replace(end, flame=_without_rotation(end.flame, len(key.flame.xforms)))
        for end, key in zip(ends, (one, two), strict=True)
    ]
    # Of each flame's xforms: 1 rotates once, 0 not at all.
    revolutions = [[float(x.animate != 0) for x in flame.xforms] for flame in flames]
    keys = []
    for n in range(frames):
        t = n / frames
        blend = t * t * (3 - 2 * t)
        weights = (1 - blend, blend)
        if one.interpolation_type == "log":  # in polar coordinates a rotation adds to the blended angle
            key = interpolate(ends, weights, 0.0, stagger)
            mixed = (staggered(weights, stagger, len(key.flame.xforms), k) for k in range(len(key.flame.xforms)))
            angles = [
                math.radians(360.0 * t * (u * a + v * b)) for (u, v), a, b in zip(mixed, *revolutions, strict=True)
            ]
            xforms = tuple(map(_rotated_xform, key.flame.xforms, angles))
            key = replace(key, flame=replace(key.flame, xforms=xforms))
        else:
            key = interpolate([rotated(end, 360.0 * t) for end in still], weights, 0.0, stagger)
        keys.append(replace(key, time=float(first + n)))
    return keys


def _without_rotation(flame: Flame, first: int) -> Flame:
    """The flame whose xforms from number `first` on do not rotate."""
    padding = (replace(x, animate=0.0) for x in flame.xforms[first:])
    return replace(flame, xforms=(*flame.xforms[:first], *padding))


def sequence(keyframes: Sequence[KeyFrame], frames: int, loops: int = 1, stagger: float = 0.0) -> list[KeyFrame]:
    """The loops of all flames, each `loops` times, with an edge between neighbors, and the last flame at the end.

    `frames`: of one revolution and of one edge, as flam3-genome's `sequence` with `nframes`, `loops` and `stagger`.
    """
    _require_frame_count(frames * max(loops, 1) * max(2 * len(keyframes), 1))
    keys: list[KeyFrame] = []
    for k, key in enumerate(keyframes):
        for _ in range(loops):
            keys += loop(key, frames, len(keys))
        if k + 1 < len(keyframes):
            keys += edge(key, keyframes[k + 1], frames, len(keys), stagger)
    return [*keys, replace(keyframes[-1], time=float(len(keys)))] if keyframes else []


def _require_frame_count(frames: int) -> None:
    if not 1 <= frames <= MAX_FRAMES:
        raise UserError(f"frames is {frames}; it must be 1 to {MAX_FRAMES} in all")
