"""The path of one pixel, ray by ray, which the window draws over the picture.

trace_path() runs the wavefront schedule on a tile of one pixel and reads the device's buffers after each stage, so the
rays are exactly the rays of the picture's own sample. project() maps them to the screen.
"""

import numpy as np

from renderer.gpu.device import Buffer
from renderer.raytracing.schedules import SceneArgs, Wavefront
from renderer.raytracing.settings import Settings
from renderer.records import dataclass

NO_HIT = 3e38  # length of a ray that hits nothing but is shaded, for the fog along it


@dataclass(frozen=True)
class Ray:
    """A traced ray from `start` to `end`, both in world space; `depth` is the index of its bounce.

    `kind` is "path" for a hit, "escaped" for a ray that left the scene, "light" for an unoccluded shadow ray, "blocked"
    for an occluded shadow ray. trace_path() cuts escaped and very long rays.
    """

    kind: str
    depth: int
    start: tuple[float, float, float]
    end: tuple[float, float, float]


def trace_path(schedule: Wavefront, settings: Settings, params: np.ndarray, scene: SceneArgs, far: float) -> list[Ray]:
    """Draws one sample of a tile of one pixel and returns its rays, in the order of tracing.

    `params` are the tile's launch_params(), `scene` the scene's kernel arguments, `far` the largest length of a ray.
    """
    out: list[Ray] = []
    rays = schedule.rays
    # Of the pixel's path: whether it continued after the last stage, and its radiance after the last "shade".
    is_active, radiance = False, np.zeros(4, "f4")

    def first(buffer: Buffer) -> np.ndarray:
        """The buffer's row of the only pixel, ray 0."""
        ray: np.ndarray = buffer.read().reshape(-1, 4)[0]
        return ray

    def add(kind: str, depth: int, start: np.ndarray, direction: np.ndarray, length: float) -> None:
        start, direction = start[:3].astype("f8"), direction[:3].astype("f8")
        end = start + direction * min(length, far)
        out.append(Ray(kind, depth, tuple(start.tolist()), tuple(end.tolist())))

    for name, depth, mask in schedule.stages(settings, params, scene):
        schedule.device.finish()
        is_set = mask is not None and bool(mask.read()[0] & 1)  # the bit of ray 0
        if name == "trace" and is_active:
            length = float(first(rays.hits)[0]) if is_set else far
            is_hit = is_set and length < NO_HIT
            add("path" if is_hit else "escaped", depth, first(rays.origins), first(rays.directions), length)
        if name == "shade":
            radiance = first(rays.radiances)
        if name == "connect" and is_set:
            light = first(rays.shadow_rays[0])
            # An unoccluded shadow ray adds light to the path.
            kind = "blocked" if np.array_equal(first(rays.radiances), radiance) else "light"
            # A contribution's second row is the ray's origin, if it need not be the path's vertex (ray_buffers.py).
            start = rays.shadow_rays[1].read().reshape(-1, 4)[1] if rays.shadows_have_origins else first(rays.origins)
            add(kind, depth, start, light, float(light[3]))
        if name in ("generate", "shade"):
            is_active = is_set
    return out


def project(params: np.ndarray, points: np.ndarray, orthographic: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Projects points (n, 3) by a perspective or orthographic camera of launch_params.

    Returns positions (n, 2) in fractions of the picture's width and height, from the upper left corner, and a mask (n,)
    of the points in front of the camera.
    """
    right, up, forward, eye = (params[name][:3].astype("f8") for name in ("right", "up", "forward", "eye"))
    offset = np.asarray(points, "f8") - eye
    depth = offset @ forward
    scale = np.ones_like(depth) if orthographic else np.where(depth > 1e-9, depth, np.inf)
    x, y = offset @ right / (right @ right) / scale, offset @ up / (up @ up) / scale
    x, y = x - 2 * float(params["lens_shift_x"]), y - 2 * float(params["lens_shift_y"])
    return np.stack([0.5 + 0.5 * x, 0.5 - 0.5 * y], -1), depth > 1e-9
