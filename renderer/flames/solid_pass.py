"""Lighting of solid flames: colors each bucket by its nearest point, with the kernels of shaders/flames/solid.cu.

postprocess.py runs SolidPass in place of tone mapping if the flame has `solid` settings.
"""

import numpy as np

from renderer.flames.chaos_game import BucketRect, ChaosGame, plotted_colors
from renderer.flames.filters import filter_kernel
from renderer.flames.genome import Flame
from renderer.flames.solid import LIGHT, MATERIAL, light_records, material_records
from renderer.gpu import Device
from renderer.gpu.device import Buffer, Kernel

CAMERA = np.dtype(
    [(f"m{row}{column}", "f4") for row in range(3) for column in range(3)]
    + [(name, "f4") for name in ("u", "v", "t", "a", "b", "scale")]
)
ENTRIES = ("locate_points", "find_normals", "find_occlusion", "blur_occlusion", "shade")


def inverse_camera(camera: np.ndarray, buckets_per_unit: float) -> np.ndarray:
    """The struct Camera of shaders/flames/solid.cu, which maps a bucket and its z back to a point of space.

    `camera`: the transform by space_to_buckets() of a solid flame, which ends with the row of the camera's z. Column
    times depth, row times depth and z are affine in the point; depth is affine in z.
    """
    rows, z = camera[:12].reshape(3, 4), camera[13:17]  # between them: the least depth that is plotted
    matrix = np.stack([rows[0, :3], rows[1, :3], z[:3]])
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:  # seen from so far that all points are one
        inverse = np.linalg.pinv(matrix)
    slope = float(rows[2, :3] @ z[:3] / (z[:3] @ z[:3]))  # depth = (rows[2, 3] - slope z[3]) + slope z
    numbers = (*inverse.ravel(), rows[0, 3], rows[1, 3], z[3], rows[2, 3] - slope * z[3], slope, buckets_per_unit)
    greatest = float(np.finfo("f4").max)  # stands for a distance beyond float32: a camera almost infinitely far away
    return np.array(tuple(np.clip(numbers, -greatest, greatest)), CAMERA)[()]


class NamedBuffers:
    """Device buffers by name; a buffer is kept until it is requested with another shape."""

    def __init__(self, device: Device):
        self.device = device
        self._buffers: dict[str, Buffer] = {}

    def get(self, name: str, shape: tuple[int, ...], dtype: str = "f4") -> Buffer:
        """The buffer of that name with its last content; zeros if it is new or its shape has changed."""
        if name not in self._buffers or self._buffers[name].shape != shape:
            self._buffers.pop(name, None)  # free before allocating
            self._buffers[name] = self.device.buffer(shape, dtype).fill(0)
        return self._buffers[name]


class SolidPass:
    """Computes normals, occlusion and colors of the nearest points that the ChaosGame of a solid flame has kept."""

    def __init__(self, device: Device):
        self.device = device
        self._kernels: dict[str, Kernel] = {}
        self._buffers = NamedBuffers(device)

    def __call__(
        self, game: ChaosGame, flame: Flame, rect: BucketRect, grid: tuple[int, int], buckets_per_unit: float
    ) -> Buffer:
        """(buckets, 4) float32: color 0 to 255 and alpha 1, all 0 where no point fell; valid until the next call.

        `rect`: the buckets of `game`. `grid`: columns and rows of the whole picture's buckets.
        """
        solid = flame.solid
        assert solid
        if not self._kernels:
            types = dict(STRICT=1, Camera=CAMERA, Light=LIGHT, Material=MATERIAL)
            self._kernels = {name: self.device.kernel("flames/solid.cu", name, 64, **types) for name in ENTRIES}
        count, shape, corner = rect.buckets, (rect.columns, rect.rows), (rect.left, rect.top)
        points, normals, shaded = (self._buffers.get(name, (count, 4)) for name in ("points", "normals", "shaded"))
        occlusion, blurred = (self._buffers.get(name, (count,)) for name in ("occlusion", "blurred"))
        camera = inverse_camera(game.camera, buckets_per_unit)
        self._kernels["locate_points"](count, game.nearest, points, *shape, *corner, camera)
        self._kernels["find_normals"](count, points, normals, *shape)
        if solid.occlusion:
            search, blur = solid.radii(grid)
            filter_ = filter_kernel("gaussian", blur)
            self._kernels["find_occlusion"](
                count, points, normals, occlusion, *shape, *corner, search, solid.radius_samples, solid.azimuth_samples,
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

    def _write(self, name: str, values: np.ndarray) -> Buffer:
        return self._buffers.get(name, values.shape).write(values)
