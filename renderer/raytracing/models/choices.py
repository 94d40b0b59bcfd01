"""The animations, material variants and cameras of a scene's glTF files, for the window's menus.

choices_of() lists what a file offers. Each choose_ function returns the scene after the user's choice.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from renderer.errors import InputError, UserError
from renderer.formats import gltf
from renderer.formats.gltf.animation import animation_keys, find_animation
from renderer.formats.gltf.rig import motion_masks
from renderer.formats.linked import cached_by_file
from renderer.formats.mesh import load_model
from renderer.raytracing.models import from_model
from renderer.raytracing.models.default_picture import vertices_of
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.scene.animation import apply_edit, settings_at
from renderer.scene.scene import Scene

SAME_VIEW = 1e-4  # tolerance of a view that equals a file's camera, as a fraction of the distance to the target


class Choices(NamedTuple):
    """The animations and variants of a file, by the names that settings use, and its cameras."""

    animations: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    cameras: tuple[gltf.Camera, ...] = ()


def choices_of(shape: ModelShape) -> Choices:
    """Returns the choices of a shape's file; empty for an unreadable file, whose error the picture reports."""
    return _choices(shape.file)


@cached_by_file(256)
def _choices(path: Path) -> Choices:
    try:
        model = load_model(path)
    except (InputError, UserError):
        return Choices()
    variants = tuple(dict.fromkeys(model.variants))
    return Choices(tuple(animation_keys(model.animations)), variants, tuple(model.cameras))


def chosen_animation(shape: ModelShape) -> str:
    """Returns the animation of choices_of() that a shape plays; "" at rest or for an unknown name."""
    keys, name = choices_of(shape).animations, shape.animation
    if name in keys:
        return name
    # Else a number of an animation, as find_animation() takes it
    return keys[int(name)] if name.isdecimal() and len(name) <= 6 and int(name) < len(keys) else ""


def choose_animation(scene: Scene, number: int, name: str) -> Scene:
    """Returns the scene in which model `number` plays an animation, or rests if `name` is empty; raises UserError.

    The scene gets the duration of the longest animation that plays, unless it has key frames.
    """
    shape = scene.settings.models[number]
    model = shape.load()
    index = find_animation(model.animations, name) if name else None
    if name and index is None:
        raise UserError(f"{shape.file}: no animation is named {name!r}")
    if index is None:
        played = replace(shape, animation="", camera=-1, moves_lights=False)
    elif from_model.is_opened_file(shape, scene):  # view and lights are the file's, and move with the animation
        view = chosen_camera(scene, number)
        played = from_model.with_animation(shape, model, index)
        played = replace(played, camera=view if _moves(model, index, view) else -1)
    else:
        played = replace(shape, animation=name)
    scene = _with_shape(scene, number, played)
    if scene.animation and scene.animation.tracks:
        return scene
    return replace(scene, animation=from_model.timeline_of(scene.settings.models))


def choose_variant(scene: Scene, number: int, name: str) -> Scene:
    """Returns the scene with model `number` in the materials of a variant; an empty name is the file's default."""
    return _with_shape(scene, number, replace(scene.settings.models[number], variant=name))


def chosen_camera(scene: Scene, number: int) -> int:
    """Returns the index of the camera of model `number` that the view equals or follows; -1 if there is none."""
    shape: ModelShape = scene.settings.models[number]
    view = scene.settings.view
    if shape.camera >= 0:
        return shape.camera
    position_and_forward = np.array([view.position, view.axes()[2]])
    reach = math.dist(view.position, view.target)
    for index, camera in enumerate(choices_of(shape).cameras):
        matrix = shape.matrix() @ camera.matrix
        forward = -matrix[:3, 2] / np.linalg.norm(matrix[:3, 2])
        moved, turned = np.abs(position_and_forward - [matrix[:3, 3], forward]).max(1)
        if moved / reach + turned < SAME_VIEW:
            return index
    return -1


def choose_camera(scene: Scene, number: int, camera: int, time: float) -> Scene:
    """Returns the scene seen through a camera of model `number`; the view follows a camera that the animation moves.

    A view with key frames gets a key frame at `time`, in seconds.
    """
    shape = scene.settings.models[number]
    model = shape.load()
    in_scene = replace(model.cameras[camera], matrix=shape.matrix() @ model.cameras[camera].matrix)
    if in_scene.height:  # of an orthographic camera, in lengths of the file
        in_scene = replace(in_scene, height=in_scene.height * shape.scale)
    view = from_model.camera_view(in_scene, vertices_of(model) @ shape.matrix()[:3, :3].T + shape.position)
    projection = "orthographic" if in_scene.height else "perspective"
    shown = settings_at(scene, time)
    scene = apply_edit(scene, time, replace(shown, view=view, projection=projection))
    index = find_animation(model.animations, shape.animation) if shape.animation else None
    follows = camera if index is not None and _moves(model, index, camera) else -1
    models = (replace(s, camera=follows if n == number else -1) for n, s in enumerate(scene.settings.models))
    scene = replace(scene, settings=replace(scene.settings, models=tuple(models)))
    return replace(scene, size=from_model.picture_size(in_scene) or scene.size)


def _moves(model: gltf.Model, animation: int, camera: int) -> bool:
    """Returns True if an animation moves a camera of the file."""
    assert model.rig is not None
    rows = [row for row, node in enumerate(model.rig.nodes) if node.camera]  # in the order of model.cameras
    # motion_masks() returns the nodes that move, and the nodes whose meshes deform.
    return 0 <= camera < len(rows) and bool(motion_masks(model, animation)[0][rows[camera]])


def _with_shape(scene: Scene, number: int, shape: ModelShape) -> Scene:
    models = list(scene.settings.models)
    models[number] = shape
    return replace(scene, settings=replace(scene.settings, models=tuple(models)))
