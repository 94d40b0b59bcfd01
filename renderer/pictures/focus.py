"""Depth of field by simulated diffusion on the ray tracer's depth, beside the thin lens itself.

After Kass, Lefohn and Owens (Interactive Depth of Field Using Simulated Diffusion, 2006): a pixel's circle of
confusion is the conductance of a heat equation whose one implicit step blurs the pinhole picture. `split` takes the
step along rows, then along columns: thousands of tridiagonal systems in one launch. `whole` takes it in both
directions at once: one matrix, not symmetric because every pixel gathers with its own circle, with a band as wide as
the picture's short side.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from renderer.errors import InputError
from renderer.gpu import DeviceContext
from renderer.numerics.band_lu import BandedBatch, BandedLU
from renderer.pictures import load, raytrace
from renderer.pictures.picture import Picture as BasePicture
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import LAUNCH_PARAMS, launch_params
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, setting

FILE = "images/diffusion_dof.cu"
LARGEST_WHOLE = 1 << 30  # bytes of the band matrix of `whole`
VARIANCE = 1 / 32  # a disc of diameter c spreads each axis by c^2 / 16, one implicit step of conductance s by 2 s


@dataclass(frozen=True)
class Lens:
    """A thin lens: its radius and the distance of the plane in focus, in lengths of the scene."""

    distance: float = setting(5.0, 1e-6, 1e9, "of the plane in focus", logarithmic=True)
    radius: float = setting(0.1, 0.0, 1e6, "of the lens; 0 shows all sharp")

    def drag(self, dx: float, dy: float) -> "Lens":
        """Up and down moves the plane in focus away and near, sideways opens and closes the lens."""
        distance = float(np.clip(self.distance * 4.0**-dy, 1e-6, 1e9))
        return replace(self, distance=distance, radius=min(self.radius * 4.0**dx, 1e6))

    pan = drag

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> "Lens":
        """Moves the plane in focus away by a tenth a step."""
        return replace(self, distance=float(np.clip(self.distance * 1.1**steps, 1e-6, 1e9)))


@dataclass(frozen=True)
class Settings(PictureSettings):
    scene: str = setting("", file=True, help="a scene of the ray tracer")
    view: Lens = Lens()
    show: Literal["beside", "split", "whole", "lens", "sharp", "circles"] = setting(
        "beside", help="split beside lens; or one of them; circles: of confusion, in pixels", key="v"
    )
    samples: int = setting(64, 1, 1 << 20, "of each pixel", logarithmic=True)
    seed: int = setting(1, 0, 2**31 - 1, "of the random numbers")


class Picture(BasePicture):
    """Draws Settings; one more sample of the ray tracer a call, blurred anew."""

    settings_type = Settings
    tone = ToneMapping("auto", curve="none")

    def __init__(self, gpu: DeviceContext):
        self.gpu, self.device = gpu, gpu.device
        self._pinhole, self._lens = raytrace.Picture(gpu), raytrace.Picture(gpu)
        self._fills = {
            entry: self.device.kernel(FILE, entry) for entry in ("fill_rows", "fill_columns", "take_columns")
        }
        self._put, self._fill_whole, self._take_whole, self._show_circles = (
            self.device.kernel(FILE, entry) for entry in ("put_part", "fill_whole", "take_whole", "show_circles")
        )
        self._scene_key = self._drawn = self._blur_key = None
        self._blur: _Split | _Whole | None = None

    def restart(self) -> None:
        """The next draw is the first sample."""
        self._pinhole.restart()
        self._lens.restart()

    def sample_count(self, settings: Settings, size) -> int:
        return settings.samples

    def draw(self, settings: Settings, size: tuple[int, int], time: float, tile=None):
        self._open(settings)
        left, top, width, height = tile or (0, 0, *size)
        if self._drawn != (tile or (0, 0, *size)):
            self._frame, self._drawn = self.device.buffer((height, width, 4)), tile or (0, 0, *size)
        half = (max(size[0] // 2, 1), size[1])
        if settings.show != "beside":
            self._put_part(self._one(settings, settings.show, size), size, 0, (left, top, width, height))
        else:
            self._put_part(self._one(settings, "split", half), half, 0, (left, top, width, height))
            self._put_part(self._one(settings, "lens", half), half, size[0] - half[0], (left, top, width, height))
        return self._frame

    def _open(self, settings: Settings) -> None:
        """Reads the scene and its shapes when another file is named."""
        if settings.scene == self._scene_key:
            return
        if not settings.scene:
            raise InputError("focus: scene is empty; it must name a scene of the ray tracer")
        scene = load(Path(settings.scene))
        if scene.picture != "raytrace":
            raise InputError(f"{scene.path}: picture is {scene.picture!r}; focus needs a scene of the ray tracer")
        self._shapes = scene.settings
        self._geometry = Geometry(self.device, replace(scene.settings, bvh="bvh2"))  # find_depth traverses it
        self._find = self.device.kernel(
            "images/circle_of_confusion.cu",
            "find_depth",
            SPHERES=int(self._geometry.has_spheres),
            STRICT=1,
            LaunchParams=LAUNCH_PARAMS,
        )
        self._scene_key, self._blur_key = settings.scene, None

    def _one(self, settings: Settings, kind: str, size):
        """A frame (height, width, 4) of one kind."""
        base = replace(self._shapes, samples=settings.samples, seed=settings.seed)
        if kind == "lens":
            through = replace(base, lens_radius=settings.view.radius, focus_distance=settings.view.distance)
            return self._lens.draw(through, size, 0.0)
        sharp = self._pinhole.draw(base, size, 0.0)
        if kind == "sharp":
            return sharp
        key = settings.scene, settings.view, kind, size
        if key != self._blur_key:
            self._blur = None  # its memory goes before the next is taken
            circles = self._circles(settings, size)
            self._blur = {"split": _Split, "whole": _Whole, "circles": _Circles}[kind](self, circles, size)
            self._blur_key = key
        return self._blur(sharp)

    def _circles(self, settings: Settings, size):
        """The diameters (height, width) of the circles of confusion in pixels, on the device."""
        shapes, (width, height) = self._shapes, size
        view = launch_params(shapes, size, (0, 0, *size))
        pixels = height / (2 * np.tan(np.radians(shapes.view.fov_degrees) / 2) * settings.view.distance)
        circles = self.device.buffer((height, width))
        numbers = [np.float32(v) for v in (settings.view.distance, 2 * settings.view.radius * pixels)]
        self._find(width * height, view[()], *numbers, *self._geometry.kernel_args, circles)
        return circles

    def _put_part(self, source, size, at: int, tile) -> None:
        """Copies a frame of `size` to column `at` of the picture, as far as the tile shows it."""
        left, top, width, height = tile
        self._put(width * height, source, *size, at, self._frame, width, height, left, top)

    def report(self) -> dict[str, Any]:
        """What blurs, and for `whole` the band and the growth of its factors."""
        blur = self._blur
        told = {"samples": self._pinhole.report().get("samples", 0)}
        if isinstance(blur, _Whole):
            told |= {
                "unknowns": blur.lu.n,
                "band": blur.lu.kl,
                "growth": blur.lu.pivot_growth,
                "factored on": blur.lu.device_name,
            }
        elif isinstance(blur, _Split):
            told |= {"systems": blur.rows.count + blur.columns.count}
        return told


class _Split:
    """Rows, then columns: two batches of tridiagonal systems."""

    def __init__(self, picture: Picture, circles, size):
        width, height = size
        device = picture.device
        self._fills, self._circles, self._size = picture._fills, circles, size
        self.rows = BandedBatch(device, height, width, min(1, width - 1), min(1, width - 1))
        self.columns = BandedBatch(device, width, height, min(1, height - 1), min(1, height - 1))
        self._sides = device.buffer((width, 3, height)), device.buffer((height, 3, width))
        self._frame = device.buffer((height, width, 4))

    def __call__(self, sharp):
        """The blurred frame of a sharp one."""
        (along, down), count, size = self._sides, self._size[0] * self._size[1], self._size
        where = np.float32(VARIANCE), *size
        self._fills["fill_rows"](count, sharp, self._circles, self.rows.matrix, along, *where, self.rows.kl)
        self.rows.factor().solve_in_place(along)
        self._fills["fill_columns"](count, along, self._circles, self.columns.matrix, down, *where, self.columns.kl)
        self.columns.factor().solve_in_place(down)
        self._fills["take_columns"](count, down, self._frame, *size)
        return self._frame


class _Whole:
    """Both directions at once: one band matrix, factored once for a lens."""

    def __init__(self, picture: Picture, circles, size):
        band = gather_band(circles.read(), VARIANCE)
        wide = not picture.device.properties.scalar_threads  # a CPU's cores are used best by the host's own LAPACK
        kl = (band.shape[0] - 1) // 2
        self.lu = BandedLU(band, kl, kl, [picture.device] if wide else [])
        self._fill, self._take, self._size = picture._fill_whole, picture._take_whole, size
        self._sides = picture.device.buffer((3, self.lu.padded_n)).fill(0)
        self._frame = picture.device.buffer((size[1], size[0], 4))

    def __call__(self, sharp):
        """The blurred frame of a sharp one."""
        count = self._size[0] * self._size[1]
        self._fill(count, sharp, self._sides, self.lu.padded_n, *self._size)
        self.lu.solve_in_place(self._sides)
        self._take(count, self._sides, self._frame, self.lu.padded_n, *self._size)
        return self._frame


class _Circles:
    """The circles of confusion as a picture: grey, 1 for 16 pixels."""

    def __init__(self, picture: Picture, circles, size):
        self._show, self._circles, self._size = picture._show_circles, circles, size
        self._frame = picture.device.buffer((size[1], size[0], 4))

    def __call__(self, sharp):
        self._show(self._size[0] * self._size[1], self._circles, self._frame, *self._size)
        return self._frame


def gather_band(circles: np.ndarray, variance: float) -> np.ndarray:
    """ab (2 m + 1, n) of (1 + sum b_p) x_p - sum b_p x_q = y_p, b_p = variance c_p^2: p gathers with its own circle.

    Pixels are numbered along the short side (m) first; circles are (height, width).
    """
    height, width = circles.shape
    cells = (circles.T if width >= height else circles).astype("f8")  # (major, minor)
    major, minor = cells.shape
    n = major * minor
    if (2 * minor + 1) * n * 4 > LARGEST_WHOLE:
        raise InputError(f"focus: {width} x {height} pixels are too many for show = whole; split takes any size")
    weight = variance * cells * cells
    ab = np.zeros((2 * minor + 1, n), "f4")
    centre = np.ones_like(cells)
    for offset, axis in ((minor, 0), (1, 1)):
        before, after = weight.copy(), weight.copy()
        edge = [slice(None), slice(None)]
        edge[axis] = 0
        before[tuple(edge)] = 0
        edge[axis] = -1
        after[tuple(edge)] = 0
        centre += before + after
        if n > offset:
            ab[minor + offset, : n - offset] -= before.ravel()[offset:].astype("f4")
            ab[minor - offset, offset:] -= after.ravel()[: n - offset].astype("f4")
    ab[minor] = centre.ravel()
    return ab
