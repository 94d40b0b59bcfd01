"""Paths a second of diffuse meshes at 1024 x 1024, 64 samples, depth 8: before a white sky, and on a floor by a lamp.

The meshes are the .obj, .ply and .stl files of the folder RAYFOLD_BENCH_MESHES, whose rays tests/fps/rays.py times too;
without it, a sphereflake of triangles. Where Mitsuba with OptiX is installed, it draws the same scenes as the peer.
GPUs only: tests/fps/processors.py has the table of processors.
"""

from functools import cache, partial
from pathlib import Path

import numpy as np

from renderer.bench.cases import Case
from renderer.formats.mesh import load_mesh
from renderer.pictures.raytrace import Picture
from renderer.raytracing.settings import Material, MeshShape, Quad, Settings
from renderer.scene.cameras import Camera
from tests.fps.paths import has_mitsuba, mitsuba_seconds
from tests.fps.rays import TO_CAMERA, mesh_files
from tests.fps.schedules import settings_of

SIDE, SAMPLES, DEPTH = 1024, 64, 8
FOV_DEGREES = 50.0
LIGHTS = "sky", "studio"
GRAY, LAMP = (0.5, 0.5, 0.5), 14.0
Corners = tuple[tuple[float, ...], ...]


def cases(gpu) -> list[Case]:
    """Two pictures of each mesh."""
    if gpu.device.properties.scalar_threads:
        return []
    files = {path.stem: lambda path=path: path for path in mesh_files()}
    files = files or {"sphereflake": lambda: Path(settings_of("mesh").meshes[0].file)}
    return [case(gpu, name, file, light) for name, file in files.items() for light in LIGHTS]


def case(gpu, name: str, file, light: str) -> Case:
    """One mesh in one light."""
    settings, picture = cache(lambda: scene(str(file()), light)), cache(lambda: Picture(gpu))

    def draw(samples: int = SAMPLES):
        picture().restart()
        for _ in range(samples):
            frame = picture().draw(settings(), (SIDE, SIDE), 0.0)
        return frame

    def check() -> None:
        """Before the sky no surface is brighter than white; in the studio something is lit."""
        means = draw(8).read()[..., :3].mean((0, 1))
        assert np.isfinite(means).all() and (0.1 < means).all() and (light == "studio" or (means <= 1.0).all()), means

    is_obj = has_mitsuba(gpu) and bool(mesh_files()) and file().suffix != ".stl"  # Mitsuba reads no .stl
    peer = mitsuba_seconds(partial(mitsuba_scene, file, settings, light), SAMPLES) if is_obj else None
    facts = {"samples": SAMPLES, "depth": DEPTH, "side": SIDE}
    peer_name = "Mitsuba 3, cuda_ad_rgb" if peer else ""
    work = SIDE * SIDE * SAMPLES / 1e6
    return Case(f"{name}/{light}", "Mpaths/s", work, draw, check, gpu.device, peer, peer_name, facts)


def scene(file: str, light: str) -> Settings:
    """A gray mesh seen from two radii away: before a white sky, or on a gray floor under a square lamp."""
    points = load_mesh(file)[0].astype("f8")
    low, high = points.min(0), points.max(0)
    center, radius = (low + high) / 2, np.linalg.norm(high - low) / 2
    is_sky = light == "sky"
    sky = (1.0,) * 3 if is_sky else (0.0,) * 3
    floor = Material("floor", color=GRAY), Material("lamp", "emitter", emission=(LAMP,) * 3)
    return Settings(
        view=Camera(tuple(center + 2 * radius * TO_CAMERA), tuple(center), fov_degrees=FOV_DEGREES),
        samples=SAMPLES,
        max_depth=DEPTH,
        rr_depth=16,
        materials=(Material("body", color=GRAY), *(() if is_sky else floor)),
        meshes=(MeshShape("body", file),),
        quads=() if is_sky else studio(center, radius, low[1]),
        horizon=sky,
        zenith=sky,
    )


def studio(center, radius: float, bottom: float) -> tuple[Quad, Quad]:
    """The floor, and a lamp whose sides are twice the radius, which faces the mesh."""
    corners = np.array([(-1, -1), (-1, 1), (1, 1), (1, -1)])
    floor = np.tile([center[0], bottom - 1e-3 * radius, center[2]], (4, 1))
    floor[:, [0, 2]] += 20 * radius * corners
    place = center + radius * np.array([-1.5, 3.5, 2.0])
    across = np.cross(center - place, [0.0, 1.0, 0.0])
    along = np.cross(center - place, across)
    across, along = (radius * axis / np.linalg.norm(axis) for axis in (across, along))
    lamp = place + corners @ np.array([along, across])
    return Quad("floor", _rows(floor)), Quad("lamp", _rows(lamp))


def _rows(corners: np.ndarray) -> Corners:
    return tuple(tuple(map(float, corner)) for corner in corners)


def mitsuba_scene(file, settings, light: str) -> dict[str, object]:
    """The same scene for Mitsuba, without its roulette."""
    import mitsuba

    frame, view = mitsuba.ScalarTransform4f, settings().view
    look = frame().look_at(list(view.position), list(view.target), [0, 1, 0])
    film = {"type": "hdrfilm", "width": SIDE, "height": SIDE, "rfilter": {"type": "box"}}
    diffuse = {"type": "twosided", "bsdf": {"type": "diffuse", "reflectance": {"type": "rgb", "value": 0.5}}}
    shape = {"type": file().suffix[1:], "filename": str(file()), "face_normals": True, "bsdf": diffuse}
    out = {
        "type": "scene",
        "integrator": {"type": "path", "max_depth": DEPTH, "rr_depth": 100},
        "sensor": {"type": "perspective", "fov": FOV_DEGREES, "fov_axis": "y", "to_world": look, "film": film},
        "mesh": shape,
    }
    if light == "sky":
        return out | {"sky": {"type": "constant", "radiance": {"type": "rgb", "value": 1.0}}}
    lamp = {"type": "area", "radiance": {"type": "rgb", "value": LAMP}}
    places = [np.array(quad.corners) for quad in settings().quads]
    floor, emitter = ({"type": "rectangle", "to_world": frame(_placed(place))} for place in places)
    return out | {"floor": floor | {"bsdf": diffuse}, "lamp": emitter | {"emitter": lamp}}


def _placed(corners: np.ndarray) -> np.ndarray:
    """The transform (4, 4) of Mitsuba's rectangle, from -1 to 1 along x and y, to corners (4, 3)."""
    out = np.eye(4)
    x, y = (corners[3] - corners[0]) / 2, (corners[1] - corners[0]) / 2
    normal = np.cross(x, y)
    out[:3] = np.stack([x, y, normal / np.linalg.norm(normal), corners.mean(0)], 1)
    return out
