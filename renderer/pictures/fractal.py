"""The picture `fractal`: escape-time fractals.

A GLSL pass draws samples of the Mandelbrot set and of Julia sets to double's depth. Kernels draw what is deeper, other
formulas and other colorings (renderer/fractals/deep_zoom.py). With the setting `reproject`, frames of a zoom are
resampled from two key pictures (renderer/fractals/reprojection.py).

The smooth count continues the number of iterations between integers (Vepstas 1997). The normal and the distance
estimate come from the derivative, which is iterated too (Peitgen and Saupe, The Science of Fractal Images, 1988).
"""

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Self

import numpy as np

from renderer.errors import UnavailableError, UserError
from renderer.fractals.deep_zoom import FORMULA_DEPTH, KernelPass
from renderer.fractals.kfr import read_kfr
from renderer.fractals.reference import Point, attracting_period, precision_bits, reference_orbit
from renderer.fractals.reprojection import Reprojection, samples_per_side
from renderer.fractals.settings import PALETTES, Settings
from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.pictures.picture import MAX_TEXTURE_SIDE, AccumulatingPicture, Frame, Size, Tile
from renderer.scene.scene import Scene, ToneMapping

R2_SEQUENCE = (0.7548776662466927, 0.5698402909980532)  # M. Roberts, 2018: evenly distributed for any count
REVOLUTION_SECONDS = 20  # seconds in which c moves once around its circle
MOSTLY_INSIDE = 0.99  # fraction of a picture's pixels that are black, above which an export says so
CYCLE_ITERATIONS = 20_000  # in which the center's cycle is looked for
MAX_ROWS = 64  # rows in which black pixels are counted
# Least heights of a pixel, relative to the size of the numbers: 8 steps of float32, 32 of float64.
FLOAT_DEPTH, DOUBLE_DEPTH = Decimal(2.0**-20), Decimal(2.0**-47)
UNRESOLVED = Decimal(2.0**-56)  # a sixteenth of a step of float64: the least for which `precision` may be set
# The rounding errors of many iterations change counts of single pixels sooner: with the palette `raw`, kernels draw
# views of less height than this (in the plane's units), with exact counts.
RAW_HEIGHT = Decimal("1e-6")


def open_file(path: Path) -> Scene:
    """The Scene of a place of Kalles Fraktaler."""
    settings, notes = read_kfr(path)
    return Scene(path, path.stem, "fractal", settings, Picture.tone, notes=notes)


class Picture(AccumulatingPicture[Settings]):
    """Draws fractals; AccumulatingPicture calls begin() before the first sample, and add_sample() for each."""

    settings_type = Settings
    tone = ToneMapping("manual")
    passes = ("images/fractal.frag",)
    max_side = MAX_TEXTURE_SIDE
    can_clone = can_split = True

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self._targets: tuple[Texture, ...] = ()
        self._kernels: KernelPass | Reprojection | None = None
        self._arithmetic = "float"
        self._settings = Settings()

    def begin(self, settings: Settings, size: Size, time: float, tile: Tile) -> None:
        """Before the first sample: allocate two targets to average samples in, or begin the kernels' passes."""
        self._arithmetic, self._settings = self._choose_arithmetic(settings, size), settings
        if self._arithmetic == "kernel":
            needed = Reprojection if settings.reproject else KernelPass
            if not isinstance(self._kernels, needed):
                self._kernels = needed(self.gpu.device)
            self._kernels.begin(settings, size, tile, _julia_c(settings, time), self.deadline)
        elif not self._targets or self._targets[0].size != tile[2:]:
            self._targets = (self.gpu.gl.texture(tile[2:]), self.gpu.gl.texture(tile[2:]))

    def add_sample(self, settings: Settings, size: Size, time: float, tile: Tile) -> Frame:
        """Average one more jittered sample into the picture."""
        jitter = tuple((self.samples * step + 0.5) % 1 - 0.5 for step in R2_SEQUENCE)
        if self._arithmetic == "kernel":
            assert self._kernels is not None
            return self._kernels.add_sample(size, tile, self.samples, jitter)
        self._targets = self._targets[::-1]
        target, previous = self._targets
        uniforms = self._uniforms(settings, size, time)
        self._render_pass(settings)(target, previous=previous, tile_origin=tile[:2], jitter=jitter, **uniforms)
        return target

    def clone(self) -> Self:
        """A copy without samples, and with separate targets."""
        other = super().clone()
        other._targets, other._kernels = (), None
        return other

    def depends_on_time(self, settings: Settings) -> bool:
        """True if c moves."""
        return settings.kind == "julia" and settings.c_path_radius > 0

    def work(self, settings: Settings) -> float:
        """The iterations of a pixel that does not escape; in double precision they cost about four times as much."""
        samples = 2 * samples_per_side(settings) ** 2 if settings.reproject else 1  # of the first draw
        return float(settings.max_iterations) * samples * (1.0 if self._arithmetic == "float" else 4.0)

    @classmethod
    def device_bytes(cls, settings: Settings, size: Size) -> int:
        """Bytes of the frame and of two key pictures."""
        return super().device_bytes(settings, size) * (1 + 2 * samples_per_side(settings) ** 2 * settings.reproject)

    def report(self) -> dict[str, object]:
        """Samples and arithmetic."""
        kernels = self._kernels if self._arithmetic == "kernel" else None
        return super().report() | {"arithmetic": kernels.arithmetic if kernels else self._arithmetic}

    def hints_on(self, frame: Texture) -> list[str]:
        """hints() for a window's frame; reads only the rows of it that hints() looks at."""
        width, height = frame.size
        rows = range(0, height, -(-height // MAX_ROWS))
        self.exported = np.concatenate([frame.read_region(0, y, width, 1) for y in rows])
        return self.hints()

    def hints(self) -> list[str]:
        """A sentence where almost all pixels of the last export, or of the window, reached max_iterations."""
        if self.exported is None:
            return []
        settings, height = self._settings, len(self.exported)
        pixels = np.concatenate([self.exported[y : y + 1] for y in range(0, height, -(-height // MAX_ROWS))])
        inside = (pixels[..., 0] < 0 if settings.palette == "raw" else ~pixels[..., :3].any(-1)).mean()
        if inside < MOSTLY_INSIDE:
            return []
        advice, period = "raise max_iterations", self._period(settings)
        if period:
            advice = f"the center is inside of the set, of period {period}, where no number of iterations helps"
        limit = settings.max_iterations
        return [f"{100 * inside:.3g} % of the pixels reached max_iterations, {limit}, and are black; {advice}"]

    @staticmethod
    def _period(settings: Settings) -> int:
        """The period of the cycle that attracts the view's center; 0 if none is found."""
        if settings.kind not in ("mandelbrot", "julia"):
            return 0
        zero, center = (Decimal(0), Decimal(0)), settings.view.center
        start, c = (center, settings.c) if settings.kind == "julia" else (zero, center)
        bits = precision_bits(settings.view.height, *start, *c)
        orbit = reference_orbit("power", settings.power, start, c, bits, CYCLE_ITERATIONS)
        return attracting_period(orbit, settings.power)

    def _render_pass(self, settings: Settings) -> Callable[..., None]:
        real2 = {"double": "dvec2", "float": "vec2"}[self._arithmetic]
        julia, palette = settings.kind == "julia", PALETTES[settings.palette]
        constants = dict(JULIA=julia, PALETTE=palette, REAL=self._arithmetic, REAL2=real2)
        draw: Callable[..., None] = self.gpu.gl.render_pass("images/fractal.frag", **constants)
        return draw

    def _choose_arithmetic(self, settings: Settings, size: Size) -> str:
        """`float` and `double` for GLSL, `kernel` for what GLSL does not draw or not resolve."""
        view = settings.view
        # Height of a pixel, relative to the size of the numbers.
        steps = view.height / size[1] / max(Decimal(1), *map(abs, view.center))
        if settings.kind == "formula" and steps < FORMULA_DEPTH:
            least = float(view.height * Decimal(FORMULA_DEPTH) / steps)
            raise UserError(
                f"settings: view: height is {view.height:.6g}; a formula is drawn in float64, which resolves heights "
                f"from {least:.2g} here; mandelbrot, julia, tricorn and burning_ship may be deeper"
            )
        is_glsl = settings.kind in ("mandelbrot", "julia") and settings.power == 2 and settings.coloring == "count"
        if not is_glsl or settings.reproject or settings.precision == "perturbation":
            return "kernel"
        if settings.precision != "auto":
            return self._given_arithmetic(settings, steps)
        needs_counts = settings.palette == "raw" and view.height < RAW_HEIGHT
        if steps >= FLOAT_DEPTH:
            return "float"
        return "double" if not needs_counts and steps >= DOUBLE_DEPTH and self.gpu.gl.version >= 400 else "kernel"

    def _given_arithmetic(self, settings: Settings, steps: Decimal) -> str:
        """The type that the setting `precision` names; UserError if it does not resolve the view."""
        if steps < UNRESOLVED:
            raise UserError(
                f"settings: precision is {settings.precision!r}, in which a height of {settings.view.height:.6g} is "
                "one point; it must be auto or perturbation"
            )
        if settings.precision == "single":
            return "float"
        if self.gpu.gl.version < 400:
            raise UnavailableError(f"{self.gpu.gl.renderer}: its GLSL has no double; precision must be single or auto")
        return "double"

    def _uniforms(self, settings: Settings, size: Size, time: float) -> dict[str, object]:
        """The uniforms of shaders/images/fractal.frag."""
        view, pixel = settings.view, 1 / size[1]
        height = float(view.height)
        right, down = (tuple(height * v for v in view.turned(*step)) for step in ((pixel, 0.0), (0.0, -pixel)))
        return dict(
            center=tuple(map(float, view.center)), right=right, down=down, resolution=size,
            sample_index=float(self.samples), max_iterations=settings.max_iterations,
            color_density=settings.color_density, color_offset=settings.color_offset, relief=settings.relief,
            julia_c=tuple(map(float, _julia_c(settings, time))),
        )  # fmt: skip


def _julia_c(settings: Settings, time: float) -> Point:
    """c at a time in seconds, with all its digits where it is still."""
    angle = 2 * math.pi * time / REVOLUTION_SECONDS
    (x, y), radius = settings.c, settings.c_path_radius
    if not radius:
        return x, y
    return Decimal(str(float(x) + radius * math.cos(angle))), Decimal(str(float(y) + radius * math.sin(angle)))
