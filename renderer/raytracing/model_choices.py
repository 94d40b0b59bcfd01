"""What a glTF file in a scene offers: animations, material variants and cameras; and the scene that a choice makes."""

import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from renderer.errors import InputError, UserError
from renderer.formats import gltf
from renderer.formats.gltf.animation import animation_keys, find_animation
from renderer.formats.gltf.container import stamp_of
from renderer.formats.gltf.rig import motion_of
from renderer.formats.models import load_model
from renderer.raytracing.from_model import camera_view, picture_size, timeline_of, with_animation
from renderer.raytracing.gltf_shapes import ModelShape, bounds_of
from renderer.scene.animation import apply_edit, settings_at
from renderer.scene.scene import Scene

SAME_VIEW = 1e-4  # of the distance to the target: a camera this near to the view is the one that is shown


class Choices(NamedTuple):
    """What a file offers: animations and variants as settings name them, and cameras."""

    animations: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    cameras: tuple[gltf.Camera, ...] = ()


def choices_of(shape: ModelShape) -> Choices:
    """What the file of a shape offers; nothing for a file that cannot be read, which its picture reports."""
    return _choices(shape.file, stamp_of(shape.file))


@lru_cache(maxsize=256)
def _choices(file: str, stamp: tuple[int, int] | None) -> Choices:
    try:
        model = load_model(file)
    except (InputError, UserError):
        return Choices()
    variants = tuple(dict.fromkeys(model.variants))
    return Choices(tuple(animation_keys(model.animations)), variants, tuple(model.cameras))


def chosen_animation(shape: ModelShape) -> str:
    """The animation of choices_of() that a shape plays; empty at rest, and for a name that the file does not have."""
    keys, name = choices_of(shape).animations, shape.animation
    if name in keys:
        return name
    return keys[int(name)] if name.isdecimal() and len(name) <= 6 and int(name) < len(keys) else ""


def choose_animation(scene: Scene, number: int, name: str) -> Scene:
    """The scene with model `number` playing an animation, or at rest for the empty name.

    The scene is as long as the longest animation that plays, unless it has key frames.
    """
    shape = scene.settings.models[number]
    model = shape.load()
    index = find_animation(model.animations, name) if name else None
    if name and index is None:
        raise UserError(f"{shape.file}: no animation is named {name!r}")
    if index is None:
        played = replace(shape, animation="", camera=-1, moves_lights=False)
    elif Path(shape.file) == scene.path.resolve():
        view = chosen_camera(scene, number)
        played = with_animation(shape, model, index)
        played = replace(played, camera=view if _moves(model, index, view) else -1)
    else:
        played = replace(shape, animation=name)
    scene = _with_shape(scene, number, played)
    if scene.animation and scene.animation.tracks:
        return scene
    return replace(scene, animation=timeline_of(scene.settings.models))


def choose_variant(scene: Scene, number: int, name: str) -> Scene:
    """The scene with model `number` in the materials of a variant, or in its own for the empty name."""
    return _with_shape(scene, number, replace(scene.settings.models[number], variant=name))


def chosen_camera(scene: Scene, number: int) -> int:
    """The number of the camera of model `number` through which the scene is seen; -1 for none."""
    shape, view = scene.settings.models[number], scene.settings.view
    if shape.camera >= 0:
        return shape.camera
    here = np.array([view.position, view.axes()[2]])
    reach = math.dist(view.position, view.target)
    for index, camera in enumerate(choices_of(shape).cameras):
        matrix = shape.matrix() @ camera.matrix
        forward = -matrix[:3, 2] / np.linalg.norm(matrix[:3, 2])
        if np.abs(here - [matrix[:3, 3], forward]).max(1) @ [1 / reach, 1] < SAME_VIEW:
            return index
    return -1


def choose_camera(scene: Scene, number: int, camera: int, time: float) -> Scene:
    """The scene seen through a camera of model `number`; it moves the view if the animation that plays moves it.

    A view with key frames gets one at `time`, in seconds.
    """
    shape = scene.settings.models[number]
    model = shape.load()
    placed = replace(model.cameras[camera], matrix=shape.matrix() @ model.cameras[camera].matrix)
    if placed.height:
        placed = replace(placed, height=placed.height * shape.scale)
    low, high = bounds_of(model)
    corners = np.array([[(low, high)[bits >> k & 1][k] for k in range(3)] for bits in range(8)])
    view = camera_view(placed, corners @ shape.matrix()[:3, :3].T + shape.position)
    projection = "orthographic" if placed.height else "perspective"
    shown = settings_at(scene, time)
    scene = apply_edit(scene, time, replace(shown, view=view, projection=projection))
    index = find_animation(model.animations, shape.animation) if shape.animation else None
    follows = camera if index is not None and _moves(model, index, camera) else -1
    models = (replace(s, camera=follows if n == number else -1) for n, s in enumerate(scene.settings.models))
    scene = replace(scene, settings=replace(scene.settings, models=tuple(models)))
    return replace(scene, size=picture_size(placed) or scene.size)


def _moves(model: gltf.Model, animation: int, camera: int) -> bool:
    """Whether an animation moves a camera of the file."""
    assert model.rig is not None
    rows = [row for row, node in enumerate(model.rig.nodes) if node.camera]
    return 0 <= camera < len(rows) and bool(motion_of(model, animation)[0][rows[camera]])


def _with_shape(scene: Scene, number: int, shape: ModelShape) -> Scene:
    models = list(scene.settings.models)
    models[number] = shape
    return replace(scene, settings=replace(scene.settings, models=tuple(models)))
