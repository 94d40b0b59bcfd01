"""Mesh and glTF files as scenes: on a floor under an area light, unless the file has lights and a camera."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from renderer.errors import InputError, UserError
from renderer.formats import gltf
from renderer.formats.gltf.animation import find_animation, key_of
from renderer.formats.gltf.rig import motion_of
from renderer.formats.mesh import load_mesh
from renderer.raytracing.gltf_shapes import ModelShape, bounds_of
from renderer.raytracing.model_motion import animation_names, bounds_in_motion
from renderer.raytracing.settings import Material, MeshShape, Point, PointLight, Quad, Settings, Sun
from renderer.scene.animation import Animation
from renderer.scene.cameras import Camera
from renderer.scene.scene import Scene, ToneMapping

TONE = ToneMapping(curve="none")
BACKGROUND = Settings(horizon=(0.55, 0.6, 0.68), zenith=(0.25, 0.35, 0.55))
FLOOR = Material("floor", color=(0.5, 0.5, 0.5))
AREA_LIGHT = Material("lamp", "emitter", emission=(14.0, 13.0, 11.5))
MIN_SPAN = 1e-17  # its reciprocal is a scale that MeshShape accepts
HEIGHT = 720  # pixels of the picture of a file whose camera has an aspect ratio


def open_file(path: Path) -> Scene:
    """The scene of a mesh file, seen from the front and above, or of a glTF file with its own camera and lights."""
    path = Path(path)
    if path.suffix.lower() in (".glb", ".gltf"):
        return _open_model(path)
    vertices, _ = load_mesh(path)
    low, high = vertices.min(0).astype("f8"), vertices.max(0).astype("f8")
    scale, position = _rescaled(low, high, path)
    low, high = low * scale + position, high * scale + position
    center, radius = _bounding_sphere(low, high)
    settings = replace(
        BACKGROUND,
        view=_camera_around(center, radius),
        samples=64,
        materials=(Material("body", color=(0.72, 0.55, 0.4)), FLOOR, AREA_LIGHT),
        meshes=(MeshShape("body", str(path.resolve()), scale, position=_point(position)),),
        quads=_floor_and_light(center, radius, float(low[1])),
    )
    return Scene(path, path.stem, "raytrace", settings, TONE)


def _open_model(path: Path) -> Scene:
    model = gltf.load(path)
    low, high = bounds_in_motion(model, 0) if model.animations else bounds_of(model)
    center, radius = _bounding_sphere(low, high)
    camera = model.cameras[0] if model.cameras else None
    view = _gltf_camera(camera, center, radius) if camera else _camera_around(center, radius)
    models = (_shape(path, model),)
    if model.lights:
        suns, points = lights_of(model)
        settings = Settings(view=view, samples=64, models=models, suns=suns, point_lights=points)
    else:
        quads = _floor_and_light(center, radius, float(low[1]))
        quads = quads[1:] if camera else quads  # a file with a camera has its own floor
        settings = replace(BACKGROUND, view=view, samples=64, models=models, materials=(FLOOR, AREA_LIGHT), quads=quads)
    if camera and camera.height:
        settings = replace(settings, projection="orthographic")
    size = (max(1, round(HEIGHT * camera.aspect)), HEIGHT) if camera and camera.aspect else None
    return Scene(path, path.stem, "raytrace", settings, TONE, size, animation=_animation(model, 0))


def _shape(path: Path, model: gltf.Model) -> ModelShape:
    """The shape of a file, which plays its first animation."""
    shape = ModelShape(str(path.resolve()))
    return with_animation(shape, model, 0) if model.animations else shape


def with_animation(shape: ModelShape, model: gltf.Model, animation: int) -> ModelShape:
    """The shape of a file that was opened by itself, playing an animation: its first camera and its lights move too."""
    moves, _ = motion_of(model, animation)
    rig = model.rig
    assert rig is not None
    camera = next((int(moves[row]) for row, node in enumerate(rig.nodes) if node.camera), 0) - 1
    moves_lights = any(moves[row] for row, node in enumerate(rig.nodes) if node.light)
    name = key_of(model.animations, animation)
    return replace(shape, animation=name, camera=camera, moves_lights=bool(moves_lights))


def play_animation(scene: Scene, name: str) -> Scene:
    """The scene with all models that have an animation of this name, or of this number, playing it.

    The scene is as long as the longest of them, unless it has key frames. Raises UserError if no model has it.
    """
    shapes = scene.settings.models
    models = [gltf.load(Path(shape.file)) for shape in shapes]
    found = [find_animation(model.animations, name) for model in models]
    if all(index is None for index in found):
        names = [f"{shape.file}: {animation_names(m)}" for shape, m in zip(shapes, models, strict=True)]
        raise UserError(f"--animation {name}: no model has it; {'; '.join(names) or f'{scene.path} has no model'}")
    playing, clips = [], []
    for shape, model, index in zip(shapes, models, found, strict=True):
        alone = Path(shape.file) == scene.path.resolve()
        moved = with_animation(shape, model, index or 0) if alone else replace(shape, animation=name)
        playing.append(shape if index is None else moved)
        clips += [] if index is None else [_animation(model, index)]
    timeline = scene.animation
    if not (timeline and timeline.tracks):
        timeline = max((clip for clip in clips if clip), key=lambda clip: clip.duration, default=timeline)
    return replace(scene, settings=replace(scene.settings, models=tuple(playing)), animation=timeline)


def _animation(model: gltf.Model, index: int) -> Animation | None:
    """The timeline of a scene that plays an animation of a model; None where nothing moves."""
    duration = model.animations[index].duration if model.animations else 0.0
    return Animation(duration, loop=True) if duration > 0 else None


def lights_of(model: gltf.Model) -> tuple[tuple[Sun, ...], tuple[PointLight, ...]]:
    """Suns and point lights of a model's lights; 1 lux (candela) is an irradiance (intensity) of 1."""
    suns, points = [], []
    for light in model.lights:
        axis = light.matrix[:3, 2] / max(np.linalg.norm(light.matrix[:3, 2]), 1e-30)
        if light.kind == "directional":
            suns.append(Sun(_point(axis), light.power, 0.0))
            continue
        point = PointLight(_point(light.matrix[:3, 3]), light.power)
        if light.kind == "spot":
            inner, outer = float(np.degrees(light.inner)), float(np.degrees(light.outer))
            point = replace(point, direction=_point(-axis), inner_degrees=inner, outer_degrees=outer)
        points.append(point)
    return tuple(suns), tuple(points)


def _gltf_camera(camera: gltf.Camera, center: np.ndarray, radius: float) -> Camera:
    """The view of a file's camera; its target is at the distance of the scene's center, for the mouse and the lens.

    That of an orthographic camera is elsewhere if the angle of view could not be that of its height there.
    """
    matrix = camera.matrix
    forward = -matrix[:3, 2] / np.linalg.norm(matrix[:3, 2])
    position = matrix[:3, 3]
    reach = max(float((center - position) @ forward), 0.1 * radius)
    fov = camera.fov_degrees
    if fov is None:
        assert camera.height is not None
        fov = math.degrees(2 * math.atan(camera.height / 2 / reach))
        if not 1 <= fov <= 150:
            fov = 40.0
            reach = camera.height / 2 / math.tan(math.radians(fov) / 2)
    return Camera(_point(position), _point(position + reach * forward), _point(matrix[:3, 1]), fov)


def _rescaled(low: np.ndarray, high: np.ndarray, path: Path) -> tuple[float, np.ndarray]:
    """Scale and position of a mesh: 1 and 0, unless products of its sizes would leave the range of float32."""
    span = float(np.abs(high - low).max())
    if 0 < span < MIN_SPAN:
        raise InputError(f"{path}: spans {span:g}; meshes must span at least {MIN_SPAN:g} to be drawn")
    if span == 0 or 1e-4 <= span <= 1e7:
        return 1.0, np.zeros(3)
    scale = 10.0 ** -round(np.log10(span))
    return scale, -(low + high) / 2 * scale


def _bounding_sphere(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, float]:
    return (low + high) / 2, max(float(np.linalg.norm(high - low)) / 2, 1e-6)


def _camera_around(center: np.ndarray, radius: float) -> Camera:
    away = np.array([0.5, 0.35, 1.0]) / np.linalg.norm([0.5, 0.35, 1.0])
    return Camera(_point(center + 2.7 * radius * away), _point(center), fov_degrees=40.0)


def _floor_and_light(center: np.ndarray, radius: float, lowest: float) -> tuple[Quad, ...]:
    """A floor just below the object, and an area light, a square that faces the object."""
    floor = np.array([center[0], lowest - 1e-3 * radius, center[2]])
    position = center + radius * np.array([-1.5, 3.5, 2.0])
    normal = (center - position) / np.linalg.norm(center - position)
    side = np.cross(normal, [0, 1, 0])
    side *= radius / np.linalg.norm(side)
    return (
        Quad("floor", _corners(floor, np.array([20 * radius, 0, 0]), np.array([0, 0, 20 * radius]))),
        Quad("lamp", _corners(position, side, np.cross(side, normal))),
    )


def _corners(center: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[Point, Point, Point, Point]:
    """The corners of a rectangle about `center` with half-sides a and b; its front normal is b x a."""
    return _point(center - a - b), _point(center - a + b), _point(center + a + b), _point(center + a - b)


def _point(p: np.ndarray) -> Point:
    x, y, z = (float(value) for value in p)
    return x, y, z
