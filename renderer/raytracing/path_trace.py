"""The paths of one pixel, ray by ray: the wavefront's own stages on a tile of that pixel, whose buffers are read.

So they are the paths that the picture's samples follow, bit for bit.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from renderer.gpu.device import Device
from renderer.raytracing.ray_buffers import RayBuffers
from renderer.raytracing.schedules import SceneArgs, Wavefront
from renderer.raytracing.settings import Settings

NO_HIT = 3e38  # distance of a ray that is shaded without a hit, for the fog that it passed


@dataclass(frozen=True)
class Ray:
    """A ray that was traced, from `start` to `end` in the scene.

    `kind` is "path" where it hit something, "escaped" where it left the scene, "light" for a shadow ray that reached
    its light, "blocked" for one that did not. Rays without an end are `far` long.
    """

    kind: str
    depth: int
    start: tuple[float, float, float]
    end: tuple[float, float, float]


def trace_path(
    device: Device, schedule: Wavefront, rays: RayBuffers, settings: Settings, params: Any, scene: SceneArgs, far: float
) -> list[Ray]:
    """The rays of one sample of a tile of one pixel, in the order in which they are traced."""
    out: list[Ray] = []
    lives, radiance = False, np.zeros(4, "f4")

    def first(buffer: Any) -> np.ndarray:
        return buffer.read().reshape(-1, 4)[0]

    def add(kind: str, depth: int, start: np.ndarray, direction: np.ndarray, length: float) -> None:
        start, direction = start[:3].astype("f8"), direction[:3].astype("f8")
        end = start + direction * min(length, far)
        out.append(Ray(kind, depth, tuple(start.tolist()), tuple(end.tolist())))

    for name, depth, mask in schedule.stages(settings, params, scene):
        device.finish()
        is_set = mask is not None and bool(mask.read()[0] & 1)
        if name == "trace" and lives:
            length = float(first(rays.hits)[0]) if is_set else far
            is_hit = is_set and length < NO_HIT
            add("path" if is_hit else "escaped", depth, first(rays.origins), first(rays.directions), length)
        if name == "shade":
            radiance = first(rays.radiances)
        if name == "connect" and is_set:
            light = first(rays.shadow_rays[0])
            kind = "blocked" if np.array_equal(first(rays.radiances), radiance) else "light"
            start = rays.shadow_rays[1].read().reshape(-1, 4)[1] if rays.shadows_have_origins else first(rays.origins)
            add(kind, depth, start, light, float(light[3]))
        if name in ("generate", "shade"):
            lives = is_set
    return out


def project(params: np.ndarray, points: np.ndarray, orthographic: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Where a camera of launch_params sees points (n, 3), and which are before it.

    In fractions (n, 2) of the picture's width and height; for perspective and orthographic cameras.
    """
    right, up, forward, eye = (params[name][:3].astype("f8") for name in ("right", "up", "forward", "eye"))
    offset = np.asarray(points, "f8") - eye
    depth = offset @ forward
    scale = np.ones_like(depth) if orthographic else np.where(depth > 1e-9, depth, np.inf)
    x, y = offset @ right / (right @ right) / scale, offset @ up / (up @ up) / scale
    x, y = x - 2 * float(params["lens_shift_x"]), y - 2 * float(params["lens_shift_y"])
    return np.stack([0.5 + 0.5 * x, 0.5 - 0.5 * y], -1), depth > 1e-9
