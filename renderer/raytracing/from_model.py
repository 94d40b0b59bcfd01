"""Mesh and glTF files as scenes: on a floor under a plain studio light, unless a file says how it is lit and seen."""

from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.formats import gltf
from renderer.formats.mesh import load_mesh
from renderer.raytracing.gltf_shapes import ModelShape, bounds_of
from renderer.raytracing.settings import Material, MeshShape, Point, PointLight, Quad, Settings, Sun
from renderer.scene.cameras import Camera
from renderer.scene.scene import Scene, ToneMapping

TONE = ToneMapping(curve="none")
SKY = {"horizon": (0.55, 0.6, 0.68), "zenith": (0.25, 0.35, 0.55)}
FLOOR = Material("floor", color=(0.5, 0.5, 0.5))
LAMP = Material("lamp", "emitter", emission=(14.0, 13.0, 11.5))
SMALLEST = 1e-17  # whose inverse MeshShape takes as a scale
HEIGHT = 720  # of the picture of a file whose camera says how wide it is


def open_file(path: Path) -> Scene:
    """The scene of a mesh file, seen from above its front, or of a glTF file with its own camera and lights."""
    path = Path(path)
    if path.suffix.lower() in (".glb", ".gltf"):
        return _open_model(path)
    vertices, _ = load_mesh(path)
    low, high = vertices.min(0).astype("f8"), vertices.max(0).astype("f8")
    scale, position = _brought_near(low, high, path)
    low, high = low * scale + position, high * scale + position
    centre, radius = _ball(low, high)
    settings = Settings(
        view=_framing(centre, radius),
        samples=64,
        materials=(Material("body", color=(0.72, 0.55, 0.4)), FLOOR, LAMP),
        meshes=(MeshShape("body", str(path.resolve()), scale, position=_point(position)),),
        quads=_studio(centre, radius, float(low[1])),
        **SKY,
    )
    return Scene(path, path.stem, "raytrace", settings, TONE)


def _open_model(path: Path) -> Scene:
    model = gltf.load(path)
    low, high = bounds_of(model)
    centre, radius = _ball(low, high)
    camera = model.cameras[0] if model.cameras else None
    view = _seen(camera, centre, radius) if camera else _framing(centre, radius)
    settings = {"view": view, "samples": 64, "models": (ModelShape(str(path.resolve())),)}
    if not model.lights:
        quads = _studio(centre, radius, float(low[1]))
        settings |= {"materials": (FLOOR, LAMP), "quads": quads[1:] if camera else quads, **SKY}
    else:
        settings |= lights_of(model)
    size = (max(1, round(HEIGHT * camera.aspect)), HEIGHT) if camera and camera.aspect else None
    return Scene(path, path.stem, "raytrace", Settings(**settings), TONE, size)


def lights_of(model: gltf.Model) -> dict:
    """Settings `suns` and `point_lights` of a model's lights; 1 lux (candela) is irradiance (intensity) 1."""
    suns, points = [], []
    for light in model.lights:
        axis = light.matrix[:3, 2] / max(np.linalg.norm(light.matrix[:3, 2]), 1e-30)
        if light.kind == "directional":
            suns.append(Sun(_point(axis), light.power, 0.0))
        else:
            cone = {}
            if light.kind == "spot":
                cone = {"direction": _point(-axis), "inner_degrees": float(np.degrees(light.inner)),
                        "outer_degrees": float(np.degrees(light.outer))}  # fmt: skip
            points.append(PointLight(_point(light.matrix[:3, 3]), light.power, **cone))
    return {"suns": tuple(suns), "point_lights": tuple(points)}


def _seen(camera: gltf.Camera, centre: np.ndarray, radius: float) -> Camera:
    """The view of a file's camera; its target lies as far as the middle of all, for mouse and lens."""
    matrix = camera.matrix
    forward = -matrix[:3, 2] / np.linalg.norm(matrix[:3, 2])
    position = matrix[:3, 3]
    reach = max(float((centre - position) @ forward), 0.1 * radius)
    return Camera(_point(position), _point(position + reach * forward), _point(matrix[:3, 1]), camera.fov_degrees)


def _brought_near(low: np.ndarray, high: np.ndarray, path: Path) -> tuple[float, np.ndarray]:
    """Scale and position of a mesh: its own, but where products of its sizes would leave the range of float32."""
    span = float(np.abs(high - low).max())
    if 0 < span < SMALLEST:
        raise InputError(f"{path}: spans {span:g}; meshes must span at least {SMALLEST:g} to be drawn")
    if span == 0 or 1e-4 <= span <= 1e7:
        return 1.0, np.zeros(3)
    scale = 10.0 ** -round(np.log10(span))
    return scale, -(low + high) / 2 * scale


def _ball(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, float]:
    return (low + high) / 2, max(float(np.linalg.norm(high - low)) / 2, 1e-6)


def _framing(centre: np.ndarray, radius: float) -> Camera:
    away = np.array([0.5, 0.35, 1.0]) / np.linalg.norm([0.5, 0.35, 1.0])
    return Camera(_point(centre + 2.7 * radius * away), _point(centre), fov_degrees=40.0)


def _studio(centre: np.ndarray, radius: float, lowest: float) -> tuple[Quad, Quad]:
    """A floor just below what is shown, and a lamp."""
    floor = (centre[0], lowest - 1e-3 * radius, centre[2])
    lamp = centre + radius * np.array([-1.5, 3.5, 2.0])
    return (
        Quad("floor", _square(floor, (20 * radius, 0, 0), (0, 0, 20 * radius))),
        Quad("lamp", _lamp(lamp, centre, radius)),
    )


def _lamp(position: np.ndarray, target: np.ndarray, radius: float):
    """Corners of a square of half-side `radius` at `position` that faces `target`."""
    towards = (target - position) / np.linalg.norm(target - position)
    first = np.cross(towards, [0, 1, 0])
    first *= radius / np.linalg.norm(first)
    return _square(position, first, np.cross(first, towards))


def _square(centre, first, second) -> tuple:
    """Corners about `centre` whose front is where second x first points."""
    c, a, b = np.array(centre, "f8"), np.array(first, "f8"), np.array(second, "f8")
    return tuple(_point(p) for p in (c - a - b, c - a + b, c + a + b, c + a - b))


def _point(p) -> Point:
    return tuple(float(x) for x in p)
