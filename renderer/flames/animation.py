"""Looping animations of flames, as flam3-genome makes them: a flame whose xforms rotate, and sequences of such loops.

A frame is a key frame of its own, whose time is its number: written to a file and drawn as a film, it gets flam3's
motion blur between the frames.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from renderer.errors import UserError
from renderer.flames.genome import Xform
from renderer.flames.interpolation import KeyFrame, align, interpolate

MAX_FRAMES = 100_000  # of an animation


def rotated(key: KeyFrame, degrees: float) -> KeyFrame:
    """The flame with the linear part of every xform rotated, except those whose `animate` is 0 and the final one."""
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
    """The frames of one revolution of a flame's xforms, at times `first`, `first` + 1, ...; they loop."""
    _check(frames)
    return [replace(rotated(key, 360.0 * n / frames), time=float(first + n)) for n in range(frames)]


def edge(one: KeyFrame, two: KeyFrame, frames: int, first: int = 0) -> list[KeyFrame]:
    """The frames from one flame to another, both rotating once; the blend is 3 t^2 - 2 t^3 of the fraction t done.

    Where only one of two xforms rotates, the angle between them grows from that of the start, without a jump.
    """
    _check(frames)
    flames = align([one.flame, two.flame], one.interpolation_type)  # xforms that pad a flame rotate too
    ends = [
        replace(key, flame=flame, time=float(k)) for k, (key, flame) in enumerate(zip((one, two), flames, strict=True))
    ]
    turns = [[float(x.animate != 0) for x in flame.xforms] for flame in flames]
    found = []
    for n in range(frames):
        t = n / frames
        blend = t * t * (3 - 2 * t)
        weights = (1 - blend, blend)
        if one.interpolation_type == "log":  # in polar coordinates a rotation adds to the blended angle
            key = interpolate(ends, weights, 0.0)
            angles = [math.radians(360.0 * t * (weights[0] * a + blend * b)) for a, b in zip(*turns, strict=True)]
            xforms = tuple(map(_rotated_xform, key.flame.xforms, angles))
            key = replace(key, flame=replace(key.flame, xforms=xforms))
        else:
            key = interpolate([rotated(end, 360.0 * t) for end in ends], weights, 0.0)
        found.append(replace(key, time=float(first + n)))
    return found


def sequence(keyframes: Sequence[KeyFrame], frames: int, loops: int = 1) -> list[KeyFrame]:
    """The loops of all flames, each `loops` times, with an edge between neighbors, and the last flame at the end.

    `frames`: of one revolution and of one edge, as flam3-genome's `sequence` with `nframes` and `loops`.
    """
    _check(frames * max(loops, 1) * max(2 * len(keyframes), 1))
    found: list[KeyFrame] = []
    for k, key in enumerate(keyframes):
        for _ in range(loops):
            found += loop(key, frames, len(found))
        if k + 1 < len(keyframes):
            found += edge(key, keyframes[k + 1], frames, len(found))
    return [*found, replace(keyframes[-1], time=float(len(found)))] if keyframes else []


def _check(frames: int) -> None:
    if not 1 <= frames <= MAX_FRAMES:
        raise UserError(f"frames is {frames}; it must be 1 to {MAX_FRAMES} in all")
