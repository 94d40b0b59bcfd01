"""Lighting of solid flames: from the nearest point of each bucket to its color, by shaders/flames/solid.cu."""

from typing import Any

import numpy as np

from renderer.flames.chaos_game import plotted_colors
from renderer.flames.genome import Flame
from renderer.flames.solid import LIGHT, MATERIAL, blur_filter, light_records, material_records
from renderer.gpu import Device
from renderer.gpu.device import Kernel

CAMERA = np.dtype(
    [(f"m{row}{column}", "f4") for row in range(3) for column in range(3)]
    + [(name, "f4") for name in ("u", "v", "t", "a", "b", "scale")]
)
ENTRIES = ("place_points", "find_normals", "find_occlusion", "blur_occlusion", "shade")


def inverse_camera(camera: np.ndarray, buckets_per_unit: float) -> Any:
    """The record Camera of shaders/flames/solid.cu for a camera with the row of z, as space_to_buckets() gives it.

    Column and row times depth, and z, are linear in the point; depth is linear in z.
    """
    rows, z = camera[:12].reshape(3, 4), camera[13:17]
    inverse = np.linalg.inv(np.stack([rows[0, :3], rows[1, :3], z[:3]]))
    slope = float(rows[2, :3] @ z[:3] / (z[:3] @ z[:3]))
    numbers = (*inverse.ravel(), rows[0, 3], rows[1, 3], z[3], rows[2, 3] - slope * z[3], slope, buckets_per_unit)
    return np.array(numbers, CAMERA)[()]


class SolidPass:
    """Lights the nearest points that a ChaosGame of a solid flame has kept."""

    def __init__(self, device: Device):
        self.device = device
        self._kernels: dict[str, Kernel] = {}
        self._buffers: dict[str, Any] = {}

    def __call__(self, game: Any, flame: Flame, grid: Any, buckets_per_unit: float) -> Any:
        """(buckets, 4) float32: color 0 to 255 and 1, or 0 where no point fell; valid until the next call.

        `game`: the ChaosGame; `grid`: the postprocess.BucketGrid of its rectangle.
        """
        solid, rect = flame.solid, grid.rect
        assert solid
        if not self._kernels:
            types = dict(STRICT=1, Camera=CAMERA, Light=LIGHT, Material=MATERIAL)
            self._kernels = {name: self.device.kernel("flames/solid.cu", name, 64, **types) for name in ENTRIES}
        count, shape, place = rect.buckets, (rect.columns, rect.rows), (rect.left, rect.top)
        points, normals, shaded = (self._buffer(name, (count, 4)) for name in ("points", "normals", "shaded"))
        occlusion, blurred = (self._buffer(name, (count,)) for name in ("occlusion", "blurred"))
        camera = inverse_camera(game.camera, buckets_per_unit)
        self._kernels["place_points"](count, game.nearest, points, *shape, *place, camera)
        self._kernels["find_normals"](count, points, normals, *shape)
        if solid.occlusion:
            search, blur = solid.radii((grid.columns, grid.rows))
            filter_ = blur_filter(blur)
            self._kernels["find_occlusion"](
                count, points, normals, occlusion, *shape, *place, search, solid.radius_samples, solid.azimuth_samples,
                solid.falloff,
            )  # fmt: skip
            on_device = self._write("filter", filter_)
            self._kernels["blur_occlusion"](count, occlusion, blurred, on_device, *shape, filter_.shape[0])
        palette = np.pad(plotted_colors(flame).astype("f4"), ((0, 0), (0, 1)))
        lights, materials = light_records(solid), material_records(solid.materials)
        self._kernels["shade"](
            count, game.nearest, normals, blurred, self._write("palette", palette),
            self._write("lights", lights.view("f4")), self._write("materials", materials.view("f4")), shaded, count,
            len(solid.lights), len(materials), solid.occlusion_intensity if solid.occlusion else 0.0,
            solid.occlusion_of_diffuse,
        )  # fmt: skip
        return shaded

    def _write(self, name: str, values: np.ndarray) -> Any:
        return self._buffer(name, values.shape).write(values)

    def _buffer(self, name: str, shape: tuple[int, ...]) -> Any:
        if name not in self._buffers or self._buffers[name].shape != shape:
            self._buffers.pop(name, None)
            self._buffers[name] = self.device.buffer(shape).fill(0)
        return self._buffers[name]
