"""Animated models of a scene at a time: their poses, and the view and the lights that move with them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from renderer.errors import InputError
from renderer.formats import gltf
from renderer.formats.gltf.animation import animation_keys, find_animation
from renderer.formats.gltf.rig import in_pose, model_at
from renderer.raytracing.gltf_shapes import ModelShape
from renderer.raytracing.instances import Point

BOUND_SAMPLES = 16  # poses of an animation whose bounds are united, at most
BOUND_VERTICES = 1 << 21  # of all of these poses


class Poses(NamedTuple):
    """A model when the shutter opens and when it closes, the same object twice if nothing moves meanwhile.

    `animation` is the index of the one that plays, None for a model at rest.
    """

    opening: gltf.Model
    closing: gltf.Model
    animation: int | None


def animation_of(shape: ModelShape, model: gltf.Model) -> int | None:
    """The index of the animation that a shape plays, None where it names none; InputError for an unknown name."""
    if not shape.animation:
        return None
    index = find_animation(model.animations, shape.animation)
    if index is None:
        raise InputError(f"{shape.file}: no animation is named {shape.animation!r}; {animation_names(model)}")
    return index


def animation_names(model: gltf.Model) -> str:
    """The end of a sentence that says which animations a model has."""
    names = animation_keys(model.animations)
    return f"allowed are {', '.join(names)}" if names else "the file has no animation"


def poses_of(shapes: Sequence[ModelShape], shutter: tuple[float, ...]) -> list[Poses]:
    """The models of a scene's shapes while the shutter is open; without a shutter animations are at 0 seconds."""
    return [_poses(shape, shape.load(), shutter or (0.0,)) for shape in shapes]


def _poses(shape: ModelShape, model: gltf.Model, shutter: tuple[float, ...]) -> Poses:
    animation = animation_of(shape, model)
    if animation is None:
        return Poses(model, model, None)
    clip = model.animations[animation]
    start = clip.clip_time(shutter[0])
    # A shutter that is still open when the animation starts again sees the end, not the way back to the start.
    end = min(start + shutter[-1] - shutter[0], max(clip.duration, start))
    opening = in_pose(model, clip.values_at(start))
    return Poses(opening, opening if end == start else in_pose(model, clip.values_at(end)), animation)


def follow_models(settings: Any) -> Any:
    """The settings (settings.Settings) with the view and the lights where their models' cameras and lights are.

    A file that can no longer be read leaves them as they are: the geometry, which reads it too, reports that.
    """
    for shape in settings.models:
        if not shape.animation or (shape.camera < 0 and not shape.moves_lights):
            continue
        try:
            model = poses_of([shape], settings.shutter[:1])[0].opening
        except InputError:
            continue
        if 0 <= shape.camera < len(model.cameras):
            settings = replace(settings, view=_moved_view(settings.view, shape, model.cameras[shape.camera]))
        if shape.moves_lights:
            suns, points = _moved_lights(settings, shape, model)
            settings = replace(settings, suns=suns, point_lights=points)
    return settings


def stop_following(edited: Any, original: Any, shown: Any) -> Any:
    """Settings that were edited while `shown` was on the screen, without what follow_models() changed in `original`.

    A view that the user moved stays, and no longer follows a camera.
    """
    if edited.view == shown.view:
        edited = replace(edited, view=original.view)
    else:
        edited = replace(edited, models=tuple(replace(shape, camera=-1) for shape in edited.models))
    for name in ("suns", "point_lights"):
        if getattr(edited, name) == getattr(shown, name):
            edited = replace(edited, **{name: getattr(original, name)})
    return edited


def _moved_view(view: Any, shape: ModelShape, camera: gltf.Camera) -> Any:
    """The view from a camera of the model; its target stays as far away as it was."""
    matrix = shape.matrix() @ camera.matrix
    forward = -matrix[:3, 2] / np.linalg.norm(matrix[:3, 2])
    reach = float(np.linalg.norm(np.subtract(view.target, view.position)))
    position = matrix[:3, 3]
    return replace(view, position=_point(position), target=_point(position + reach * forward), up=_point(matrix[:3, 1]))


def _moved_lights(settings: Any, shape: ModelShape, model: gltf.Model) -> tuple[tuple, tuple]:
    """The scene's suns and point lights, of which the first are those of the model, in its order."""
    suns, points = list(settings.suns), list(settings.point_lights)
    sun = point = 0
    for light in model.lights:
        matrix = shape.matrix() @ light.matrix
        axis = matrix[:3, 2] / max(float(np.linalg.norm(matrix[:3, 2])), 1e-30)
        if light.kind == "directional" and sun < len(suns):
            suns[sun], sun = replace(suns[sun], direction=_point(axis)), sun + 1
        elif light.kind != "directional" and point < len(points):
            moved = replace(points[point], position=_point(matrix[:3, 3]))
            points[point] = replace(moved, direction=_point(-axis)) if light.kind == "spot" else moved
            point += 1
    return tuple(suns), tuple(points)


def models_in_motion(model: gltf.Model, animation: int) -> list[gltf.Model]:
    """The model in poses of an animation, from its start on: at most BOUND_SAMPLES, of BOUND_VERTICES together."""
    drawn = sum(len(part.vertices) for number, _ in model.mesh_nodes for part in model.meshes[number])
    samples = max(2, min(BOUND_SAMPLES, BOUND_VERTICES // max(drawn, 1)))
    times = np.linspace(0, model.animations[animation].duration, samples, endpoint=False)
    return [model_at(model, animation, float(time)) for time in times]


def _point(p: np.ndarray) -> Point:
    x, y, z = (float(value) for value in p)
    return x, y, z
