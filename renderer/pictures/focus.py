"""The picture `focus`: depth of field by simulated diffusion of a ray-traced pinhole picture, beside a thin lens.

After Kass, Lefohn and Owens (Interactive Depth of Field Using Simulated Diffusion, 2006): a pixel's circle of confusion
(CoC: the disc over which the lens spreads a point) sets the conductance of a heat equation, and one implicit time step
of the equation blurs the pinhole picture. `separable` takes the step along rows, then along columns: thousands of
tridiagonal systems in one launch. `full` takes it in both directions at once: one band matrix, whose half bandwidth is
the picture's short side. It is not symmetric, because each pixel gathers with the circle of that pixel.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from renderer.errors import InputError
from renderer.gpu import Buffer, DeviceContext
from renderer.numerics.band_lu import BandedBatch, factor_for
from renderer.pictures import SCENE_SUFFIXES, load, raytrace
from renderer.pictures.picture import Frame, Size, Tile
from renderer.pictures.picture import Picture as BasePicture
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import LAUNCH_PARAMS, launch_params
from renderer.records import dataclass, replace
from renderer.scene.cameras import View
from renderer.scene.schema import PictureSettings, required_file, setting
from renderer.system.trust import check_memory

FILE = "images/diffusion_dof.cu"
KERNELS = (
    "assemble_rows", "assemble_columns", "store_separable", "load_full", "store_full", "show_coc", "blit_frame",
)  # fmt: skip
MAX_MATRIX_BYTES = 1 << 30  # bytes of the band matrix of the method `full`
CONDUCTANCE_SCALE = 1 / 32  # a disc of diameter c has variance c^2 / 16 per axis, a step of conductance s has 2 s


@dataclass(frozen=True)
class Lens(View):
    """A thin lens, in lengths of the scene."""

    focus_distance: float = setting(5.0, 1e-6, 1e9, "of the focal plane", logarithmic=True)
    lens_radius: float = setting(0.1, 0.0, 1e6, "of the lens; 0: a pinhole")

    def drag(self, dx: float, dy: float) -> "Lens":
        """Vertically: move the focal plane; horizontally: change the lens radius."""
        distance = float(np.clip(self.focus_distance * 4.0**-dy, 1e-6, 1e9))
        return replace(self, focus_distance=distance, lens_radius=min(self.lens_radius * 4.0**dx, 1e6))

    pan = drag

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> "Lens":
        """Move the focal plane away by a tenth per step."""
        return replace(self, focus_distance=float(np.clip(self.focus_distance * 1.1**steps, 1e-6, 1e9)))


@dataclass(frozen=True)
class Settings(PictureSettings):
    """The scene, the lens, and the picture of it that is shown."""

    source: str = required_file(SCENE_SUFFIXES, "a scene of the ray tracer")
    view: Lens = Lens()
    show: Literal["compare", "separable", "full", "thin_lens", "pinhole", "coc"] = setting(
        "compare", help="compare: separable beside thin_lens; coc: circles of confusion in pixels", key="v"
    )
    samples: int = setting(64, 1, 1 << 20, "samples per pixel", logarithmic=True)
    seed: int = setting(1, 0, 2**31 - 1, "of the random numbers")


class Picture(BasePicture[Settings]):
    """Draws one more sample of the ray tracer per call, and blurs the picture anew."""

    settings_type = Settings
    tone = raytrace.Picture.tone

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self.device = gpu.device
        self._pinhole, self._lens = raytrace.Picture(gpu), raytrace.Picture(gpu)
        self.kernels = {entry: self.device.kernel(FILE, entry, STRICT=1) for entry in KERNELS}
        self._frame: Buffer
        self._source_path = ""
        self._traced: Any = None  # the source's settings
        self._geometry: Any = None
        self._coc_diameters: Any = None  # the kernel

    def restart(self) -> None:
        """Make the next draw the first sample."""
        self._pinhole.restart()
        self._lens.restart()

    def sample_count(self, settings: Settings, size: Size) -> int:
        """Samples per pixel."""
        return settings.samples

    def draw(self, settings: Settings, size: Size, time: float, tile: Tile | None = None) -> Buffer:
        """Add a sample to each frame that is shown."""
        self._open(settings.source)
        tile = tile or (0, 0, *size)
        self._frame = self.cached("frame", tile, lambda: self.device.buffer((tile[3], tile[2], 4)))
        half = (max(size[0] // 2, 1), size[1])
        if settings.show != "compare":
            self._blit(self._draw_one(settings, settings.show, size), size, 0, tile)
        else:
            self._blit(self._draw_one(settings, "separable", half), half, 0, tile)
            self._blit(self._draw_one(settings, "thin_lens", half), half, size[0] - half[0], tile)
        return self._frame

    def _open(self, path: str) -> None:
        """Read the scene and build its geometry, unless it is the present one. Raises InputError."""
        if path == self._source_path:
            return
        scene = load(Path(path))
        if scene.picture != "raytrace":
            raise InputError(f"{scene.path}: picture is {scene.picture!r}; focus needs a scene of the ray tracer")
        if scene.settings.projection != "perspective" or any(scene.settings.lens_shift):
            raise InputError(f"{scene.path}: focus needs a perspective projection without lens_shift")
        self._traced = scene.settings
        self._geometry = Geometry(self.device, replace(scene.settings, bvh="bvh2"))  # coc_diameters traverses a BVH2
        constants: dict[str, Any] = dict(SPHERES=int(self._geometry.has_spheres), STRICT=1, LaunchParams=LAUNCH_PARAMS)
        self._coc_diameters = self.device.kernel("images/circle_of_confusion.cu", "coc_diameters", **constants)
        self._source_path = path

    def _draw_one(self, settings: Settings, kind: str, size: Size) -> Frame:
        """Draw a sample; return the frame (height, width, 4) of `kind`, any value of Settings.show but "compare"."""
        base = replace(self._traced, samples=settings.samples, seed=settings.seed)
        lens = settings.view
        if kind == "thin_lens":
            through = replace(base, lens_radius=lens.lens_radius, focus_distance=lens.focus_distance)
            return self._lens.draw(through, size, 0.0)
        sharp = self._pinhole.draw(base, size, 0.0)
        if kind == "pinhole":
            return sharp
        make: Any = {"separable": _SeparableBlur, "full": _FullBlur, "coc": _show_coc}[kind]
        key = settings.source, lens, kind, size
        blur: Callable[[Frame], Buffer] = self.cached(
            "blur", key, lambda: make(self, self._circles(settings, size), size)
        )
        return blur(sharp)

    def _circles(self, settings: Settings, size: Size) -> Buffer:
        """Compute the diameters (height, width) of the circles of confusion, in pixels."""
        traced, (width, height), lens = self._traced, size, settings.view
        view = launch_params(traced, size, (0, 0, *size))
        half = np.tan(np.radians(traced.view.fov_degrees) / 2) * traced.view.fit_scale(width / height)
        pixels = height / (2 * half * lens.focus_distance)  # of a length of 1 in the focal plane
        diameters = self.device.buffer((height, width))
        numbers = [np.float32(v) for v in (lens.focus_distance, 2 * lens.lens_radius * pixels)]
        self._coc_diameters(width * height, view[()], *numbers, *self._geometry.kernel_args, diameters)
        return diameters

    def _blit(self, source: Frame, size: Size, column: int, tile: Tile) -> None:
        """Copy a frame of `size` to a column of the picture, clipped to the tile."""
        left, top, width, height = tile
        self.kernels["blit_frame"](width * height, source, *size, column, self._frame, width, height, left, top)

    def report(self) -> dict[str, object]:
        """Samples, and the number of tridiagonal systems, or the band and pivot growth of the full system."""
        report: dict[str, Any] = {"samples": self._pinhole.report().get("samples", 0)}
        _, blur = self._cache.get("blur", (None, None))
        if isinstance(blur, _FullBlur):
            lu = blur.lu
            report |= {"unknowns": lu.n, "band": lu.kl, "growth": lu.pivot_growth, "factored on": lu.device_name}
        elif isinstance(blur, _SeparableBlur):
            report |= {"systems": blur.rows.count + blur.columns.count}
        return report


class _SeparableBlur:
    """The blur `separable`: along rows, then along columns, each a batch of tridiagonal systems."""

    def __init__(self, picture: Picture, diameters: Buffer, size: Size):
        width, height = size
        device = picture.device
        self.kernels, self.diameters, self._size = picture.kernels, diameters, size
        self.rows, self.columns = BandedBatch(device, height, width, 1, 1), BandedBatch(device, width, height, 1, 1)
        self._sides = device.buffer((width, 3, height)), device.buffer((height, 3, width))
        self._frame = device.buffer((height, width, 4))

    def __call__(self, sharp: Buffer) -> Buffer:
        """Blurs a frame (height, width, 4) float32; the result is valid until the next call."""
        (across, down), size, kernels = self._sides, self._size, self.kernels
        count, where = size[0] * size[1], (np.float32(CONDUCTANCE_SCALE), *size)
        kernels["assemble_rows"](count, sharp, self.diameters, self.rows.matrix, across, *where, self.rows.kl)
        self.rows.factor().solve_in_place(across)
        kernels["assemble_columns"](count, across, self.diameters, self.columns.matrix, down, *where, self.columns.kl)
        self.columns.factor().solve_in_place(down)
        kernels["store_separable"](count, down, self._frame, *size)
        return self._frame


class _FullBlur:
    """The blur `full`: both directions at once by one band matrix, which is factored once per lens."""

    def __init__(self, picture: Picture, diameters: Buffer, size: Size):
        self.lu = factor_for(picture.device, assemble_gather_matrix(diameters.read(), CONDUCTANCE_SCALE))
        self._kernels, self._size = picture.kernels, size
        self._sides = picture.device.buffer((3, self.lu.padded_n)).fill(0)
        self._frame = picture.device.buffer((size[1], size[0], 4))

    def __call__(self, sharp: Buffer) -> Buffer:
        """Blurs a frame (height, width, 4) float32; the result is valid until the next call."""
        count = self._size[0] * self._size[1]
        self._kernels["load_full"](count, sharp, self._sides, self.lu.padded_n, *self._size)
        self.lu.solve_in_place(self._sides)
        self._kernels["store_full"](count, self._sides, self._frame, self.lu.padded_n, *self._size)
        return self._frame


def _show_coc(picture: Picture, diameters: Buffer, size: Size) -> Callable[[Buffer], Buffer]:
    """Return a function, called like a blur, that shows the circles' diameters as gray: 1 for 16 pixels."""
    frame = picture.device.buffer((size[1], size[0], 4))
    picture.kernels["show_coc"](size[0] * size[1], diameters, frame, *size)
    return lambda sharp: frame


def assemble_gather_matrix(diameters: np.ndarray, scale: float) -> np.ndarray:
    """Assemble the band matrix ab (2 m + 1, n) of the implicit step (1 + sum b_p) x_p - sum b_p x_q = y_p.

    y is the sharp picture and x the blurred one. The sums run over the four neighbors q of pixel p; b_p = scale c_p^2
    with the diameter c_p of p's circle of confusion, in `diameters` (height, width), in pixels. The short side (m
    pixels) is the fastest index of the unknowns. `before` and `after` are b_p where p has a neighbor with a smaller or
    a greater index, else 0. InputError above MAX_MATRIX_BYTES.
    """
    height, width = diameters.shape
    cells = (diameters.T if width >= height else diameters).astype("f8")  # (major, minor)
    major, minor = cells.shape
    n = major * minor
    if (2 * minor + 1) * n * 4 > MAX_MATRIX_BYTES:
        raise InputError(f"focus: {width} x {height} pixels are too many for show = full; separable has no limit")
    check_memory(4 * (8 * minor + 3) * n, f"settings: show is full; {width} x {height} pixels")
    weight = scale * cells * cells
    ab = np.zeros((2 * minor + 1, n), "f4")
    diagonal = np.ones_like(cells)
    for offset, axis in ((minor, 0), (1, 1)):
        before, after = weight.copy(), weight.copy()
        np.moveaxis(before, axis, 0)[0] = 0
        np.moveaxis(after, axis, 0)[-1] = 0
        diagonal += before + after
        if n > offset:
            ab[minor + offset, : n - offset] -= before.ravel()[offset:].astype("f4")
            ab[minor - offset, offset:] -= after.ravel()[: n - offset].astype("f4")
    ab[minor] = diagonal.ravel()
    return ab
