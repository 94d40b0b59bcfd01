"""Animated models at a time: their poses, and the view and the lights that follow a model's cameras and lights.

geometry.py and cryptomatte.py call poses_of() with a frame's shutter times; Settings.at_time() calls follow_models();
from_model.py calls models_in_motion() for the bounds of an opened model.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from renderer.errors import InputError
from renderer.formats import gltf
from renderer.formats.gltf.animation import animation_keys, find_animation
from renderer.formats.gltf.rig import in_pose, model_at
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.scene.cameras import Camera, to_point

BOUND_SAMPLES = 16  # most poses of an animation whose bounds are united
BOUND_VERTICES = 1 << 21  # most vertices of these poses together


class Poses(NamedTuple):
    """A model at shutter open and at shutter close; the same object twice if nothing moves between them.

    `animation` is the index of the animation that plays; None for a model at rest.
    """

    opening: gltf.Model
    closing: gltf.Model
    animation: int | None


def animation_of(shape: ModelShape, model: gltf.Model) -> int | None:
    """Returns the index of the animation that a shape plays; None at rest. Raises InputError for an unknown name."""
    if not shape.animation:
        return None
    index = find_animation(model.animations, shape.animation)
    if index is None:
        raise InputError(f"{shape.file}: no animation is named {shape.animation!r}; {animation_names(model)}")
    return index


def animation_names(model: gltf.Model) -> str:
    """Formats the end of an error message: the names of a model's animations."""
    names = animation_keys(model.animations)
    return f"allowed are {', '.join(names)}" if names else "the file has no animation"


def poses_of(shapes: Sequence[ModelShape], shutter: tuple[float, ...]) -> list[Poses]:
    """Returns the models' poses at shutter open and close (seconds); at 0 seconds if `shutter` is empty."""
    return [_poses(shape, shape.load(), shutter or (0.0,)) for shape in shapes]


def _poses(shape: ModelShape, model: gltf.Model, shutter: tuple[float, ...]) -> Poses:
    """The poses of a model as the shutter opens and as it closes."""
    animation = animation_of(shape, model)
    if animation is None:
        return Poses(model, model, None)
    clip = model.animations[animation]
    start = clip.clip_time(shutter[0])
    # If the animation starts again before the shutter closes, the closing pose is its last: models do not jump back.
    end = min(start + shutter[-1] - shutter[0], max(clip.duration, start))
    opening = in_pose(model, clip.values_at(start))
    return Poses(opening, opening if end == start else in_pose(model, clip.values_at(end)), animation)


def follow_models(settings: Any) -> Any:
    """Returns settings.Settings with view and lights moved to the models' animated cameras and lights.

    An unreadable file changes nothing: Geometry, which reads it too, reports the error.
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
    """Undoes follow_models() in `edited`, an edit of `shown`, the settings that follow_models() made of `original`.

    A view that the user moved stays, and no longer follows a camera.
    """
    if edited.view == shown.view:
        edited = replace(edited, view=original.view)
    else:
        edited = replace(edited, models=tuple(replace(shape, camera=-1) for shape in edited.models))
    if edited.suns == shown.suns:
        edited = replace(edited, suns=original.suns)
    if edited.point_lights == shown.point_lights:
        edited = replace(edited, point_lights=original.point_lights)
    return edited


def _moved_view(view: Camera, shape: ModelShape, camera: gltf.Camera) -> Camera:
    """Returns the view from a camera of the model; the target stays at its distance."""
    matrix = shape.matrix() @ camera.matrix
    forward = -matrix[:3, 2] / np.linalg.norm(matrix[:3, 2])
    reach = float(np.linalg.norm(np.subtract(view.target, view.position)))
    position = matrix[:3, 3]
    target, up = to_point(position + reach * forward), to_point(matrix[:3, 1])
    return replace(view, position=to_point(position), target=target, up=up)


def _moved_lights(settings: Any, shape: ModelShape, model: gltf.Model) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Returns the scene's suns and point lights; the first ones move to the model's lights, in order."""
    suns, points = list(settings.suns), list(settings.point_lights)
    sun = point = 0
    for light in model.lights:
        matrix = shape.matrix() @ light.matrix
        axis = matrix[:3, 2] / max(float(np.linalg.norm(matrix[:3, 2])), 1e-30)
        if light.kind == "directional" and sun < len(suns):
            suns[sun], sun = replace(suns[sun], direction=to_point(axis)), sun + 1
        elif light.kind != "directional" and point < len(points):
            moved = replace(points[point], position=to_point(matrix[:3, 3]))
            points[point] = replace(moved, direction=to_point(-axis)) if light.kind == "spot" else moved
            point += 1
    return tuple(suns), tuple(points)


def models_in_motion(model: gltf.Model) -> list[gltf.Model]:
    """Returns the model in at most BOUND_SAMPLES evenly spaced poses of its first animation, which must exist."""
    drawn = sum(len(part.vertices) for number, _ in model.mesh_nodes for part in model.meshes[number])
    samples = max(2, min(BOUND_SAMPLES, BOUND_VERTICES // max(drawn, 1)))
    times = np.linspace(0, model.animations[0].duration, samples, endpoint=False)
    return [model_at(model, 0, float(time)) for time in times]
