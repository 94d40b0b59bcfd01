"""Mesh and glTF files as scenes: opens a file with its cameras, lights and animations in the default picture.

Animations and variants are also chosen here, for --animation and --variant; models/choices.py does it for the window.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from renderer.errors import InputError, UserError
from renderer.formats import gltf
from renderer.formats.gltf.animation import animation_keys, find_animation
from renderer.formats.gltf.rig import motion_masks
from renderer.formats.mesh import GLTF_SUFFIXES, load_mesh, load_model, read_mesh
from renderer.plain import quoted
from renderer.raytracing.models.default_picture import BODY, TONE, Content, default_scene, triangles_of, vertices_of
from renderer.raytracing.models.framing import bounds_of
from renderer.raytracing.models.gltf_shapes import ModelShape, materials_of
from renderer.raytracing.models.motion import animation_names, models_in_motion
from renderer.raytracing.settings import MeshShape, PointLight, Settings, Sun
from renderer.scene.animation import Animation
from renderer.scene.cameras import Camera, to_point
from renderer.scene.scene import Scene
from renderer.system.files import resolve

__all__ = ["TONE", "lights_of", "open_file", "play_animation", "with_animation"]
MIN_SPAN = 1e-17  # least size of a mesh; its reciprocal is a scale that MeshShape accepts
HEIGHT = 720  # height in pixels of the picture of a file whose camera has an aspect ratio
SAMPLES = 64  # samples of a pixel in the default picture
GLASS_DEPTH = 32  # max_depth of models with glass
# Triangles that are examined for floor and light. Of more, each (count // MAX_TRIANGLES)-th is examined.
MAX_TRIANGLES = 1 << 18


def open_file(path: Path) -> Scene:
    """The scene of a mesh file or a glTF file. Raises InputError."""
    path = Path(path)
    if path.suffix.lower() in GLTF_SUFFIXES:
        return _open_model(path)
    vertices, faces = load_mesh(path)
    low, high = bounds_of(vertices)
    scale, position = _rescaled(low, high, path)
    if scale == 1.0 and read_mesh(path).has_materials:
        return _open_model(path)
    if scale != 1.0:
        vertices = vertices.astype("f8") * scale + position
    step = max(1, len(faces) // MAX_TRIANGLES)
    corners = vertices[faces[::step]].astype("f8", copy=False)
    mesh = MeshShape("body", str(resolve(path)), scale, position=to_point(position))
    settings = Settings(samples=SAMPLES, materials=(BODY,), meshes=(mesh,))
    content = Content(vertices, corners, np.zeros(len(corners)), step, precision="f8")
    return default_scene(path, content, settings)


def _open_model(path: Path) -> Scene:
    """The scene of a model file, with a camera, lights and a ground where the file has none."""
    model = load_model(path)
    count = sum(len(part.faces) for mesh, _ in model.mesh_nodes for part in model.meshes[mesh])
    step = max(1, count // MAX_TRIANGLES)
    poses = models_in_motion(model) if model.animations else [model]
    vertices = vertices_of(*poses)
    corners, emitted = triangles_of(poses[0], step)
    suns, points = lights_of(model)
    camera = model.cameras[0] if model.cameras else None
    view = camera_view(camera, vertices) if camera else None
    names = [camera.name for camera in model.cameras]
    by_blender = "Blender I/O" in model.generator  # Blender's lamps and emission have other units (default_picture.py)
    content = Content(vertices, corners, emitted, step, suns, points, view, tuple(names), by_blender)
    has_glass = any(material.transmission > 0 for material in materials_of(model))
    settings = Settings(samples=SAMPLES, materials=(), models=(_shape(path, model),))
    settings = replace(settings, max_depth=GLASS_DEPTH) if has_glass else settings
    if camera and camera.height:
        settings = replace(settings, projection="orthographic")
    size = picture_size(camera) if camera else None
    return replace(default_scene(path, content, settings), size=size, animation=_animation(model, 0))


def picture_size(camera: gltf.Camera) -> tuple[int, int] | None:
    """The size in pixels of the picture of a file's camera; None for a camera without an aspect ratio."""
    return (max(1, round(HEIGHT * camera.aspect)), HEIGHT) if camera.aspect else None


def _shape(path: Path, model: gltf.Model) -> ModelShape:
    """The shape of a file, which plays its first animation."""
    shape = ModelShape(str(resolve(path)))
    return with_animation(shape, model, 0) if model.animations else shape


def with_animation(shape: ModelShape, model: gltf.Model, animation: int) -> ModelShape:
    """The shape of a file that was opened by itself, playing an animation, which also moves its camera and lights.

    The view is the file's camera 0. `camera`, the index of the camera that the view follows, becomes 0 if the animation
    moves this camera, else -1, for none.
    """
    moves, _ = motion_masks(model, animation)
    rig = model.rig
    assert rig is not None
    moves_camera = next((moves[row] for row, node in enumerate(rig.nodes) if node.camera), False)  # the first one
    moves_lights = any(moves[row] for row, node in enumerate(rig.nodes) if node.light)
    name = animation_keys(model.animations)[animation]
    return replace(shape, animation=name, camera=0 if moves_camera else -1, moves_lights=bool(moves_lights))


def play_animation(scene: Scene, name: str) -> Scene:
    """The scene with all models that have an animation of this name, or of this number, playing it.

    The scene is as long as the longest of these animations, unless it has key frames. Raises UserError if no model has
    the animation.
    """
    shapes = scene.settings.models
    models = [shape.load() for shape in shapes]
    indices = [find_animation(model.animations, name) for model in models]
    if all(index is None for index in indices):
        names = [f"{shape.file}: {animation_names(m)}" for shape, m in zip(shapes, models, strict=True)]
        raise UserError(f"--animation {name}: no model has it; {'; '.join(names) or f'{scene.path} has no model'}")
    playing, clips = [], []
    for shape, model, index in zip(shapes, models, indices, strict=True):
        if index is None:
            playing.append(shape)
            continue
        opened = is_opened_file(shape, scene)
        playing.append(with_animation(shape, model, index) if opened else replace(shape, animation=name))
        clips.append(_animation(model, index))
    timeline = scene.animation
    if not (timeline and timeline.tracks):
        timeline = _longest(clips) or timeline
    return replace(scene, settings=replace(scene.settings, models=tuple(playing)), animation=timeline)


def is_opened_file(shape: ModelShape, scene: Scene) -> bool:
    """True if the scene is the default picture of the shape's file; its camera and lights are then the file's."""
    return Path(shape.file) == resolve(scene.path)


def _longest(clips: Iterable[Animation | None]) -> Animation | None:
    return max((clip for clip in clips if clip), key=lambda clip: clip.duration, default=None)


def show_variant(scene: Scene, name: str) -> Scene:
    """The scene with all models shown in their material variant of this name; UserError if none has such a variant."""
    shapes = scene.settings.models
    variants = [shape.load().variants for shape in shapes]
    if not any(name in names for names in variants):
        known = ", ".join(dict.fromkeys(itertools.chain(*variants)))
        allowed = f"allowed are {known}" if known else f"{scene.path} has no variants"
        raise UserError(f"--variant {name}: no model has it; {allowed}")
    shown = (replace(s, variant=name) if name in names else s for s, names in zip(shapes, variants, strict=True))
    return replace(scene, settings=replace(scene.settings, models=tuple(shown)))


def timeline_of(shapes: Iterable[ModelShape]) -> Animation | None:
    """The timeline of a scene of these models, as long as the longest animation that plays; None if nothing moves."""
    clips = []
    for shape in shapes:
        model = shape.load()
        index = find_animation(model.animations, shape.animation) if shape.animation else None
        clips += [] if index is None else [_animation(model, index)]
    return _longest(clips)


def _animation(model: gltf.Model, index: int) -> Animation | None:
    """The timeline of a scene that plays an animation of a model; None if nothing moves."""
    duration = model.animations[index].duration if model.animations else 0.0
    return Animation(duration, loop=True) if duration > 0 else None


def lights_of(model: gltf.Model) -> tuple[tuple[Sun, ...], tuple[PointLight, ...]]:
    """The suns and point lights of a model. Numbers in lux and candela are taken as they are, not divided by 683 lm/W.

    1 lux becomes an irradiance of 1, 1 candela an intensity of 1.
    """
    suns, points = [], []
    for light in model.lights:
        axis = light.matrix[:3, 2] / max(np.linalg.norm(light.matrix[:3, 2]), 1e-30)
        if light.kind == "directional":
            suns.append(Sun(to_point(axis), light.power, 0.0))
            continue
        point = PointLight(to_point(light.matrix[:3, 3]), light.power)
        if light.kind == "spot":
            inner, outer = float(np.degrees(light.inner)), float(np.degrees(light.outer))
            point = replace(point, direction=to_point(-axis), inner_degrees=inner, outer_degrees=outer)
        points.append(point)
    return tuple(suns), tuple(points)


def camera_view(camera: gltf.Camera, vertices: np.ndarray) -> Camera:
    """The view of a file's camera. The target, which mouse and lens need, is as far away as the scene's center.

    An orthographic camera's height at the target gives its angle of view. If that is not within 1 to 150 degrees, the
    target moves to where it is 40 degrees.
    """
    low, high = vertices.min(0).astype("f8"), vertices.max(0).astype("f8")
    center, radius = (low + high) / 2, float(np.linalg.norm(high - low)) / 2
    matrix = camera.matrix
    forward = -matrix[:3, 2] / np.linalg.norm(matrix[:3, 2])
    position = matrix[:3, 3]
    reach = max(float((center - position) @ forward), 0.1 * radius, 1e-7)
    fov = camera.fov_degrees
    if fov is None:
        assert camera.height is not None
        fov = math.degrees(2 * math.atan(camera.height / 2 / reach))
        if not 1 <= fov <= 150:
            fov = 40.0
            reach = camera.height / 2 / math.tan(math.radians(fov) / 2)
    try:
        return Camera(to_point(position), to_point(position + reach * forward), to_point(matrix[:3, 1]), fov)
    except ValueError as error:  # axes of a sheared node, or a scene too far from the camera for float64
        raise InputError(f"camera {quoted(camera.name)}: {error}") from error


def _rescaled(low: np.ndarray, high: np.ndarray, path: Path) -> tuple[float, np.ndarray]:
    """Scale and position (3,) of a mesh: 1 and 0, unless products of its lengths would leave the range of float32.

    A mesh that is rescaled loses its materials: open_file() then makes a MeshShape of the material BODY.
    """
    span = float(np.abs(high - low).max())
    if 0 < span < MIN_SPAN:
        raise InputError(f"{path}: spans {span:g}; meshes must span at least {MIN_SPAN:g} to be drawn")
    if span == 0 or 1e-4 <= span <= 1e7:
        return 1.0, np.zeros(3)
    scale = 10.0 ** -round(np.log10(span))
    return scale, -(low + high) / 2 * scale
