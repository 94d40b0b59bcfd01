"""Launches the kernels that draw escape-time fractals: perturbation at any depth, and formulas in double.

Sources: K. I. Martin, Superfractalthing (2013), for perturbation; Zhuoran (fractalforums.org, 2021 and 2022) for
rebasing and bilinear approximation.
"""

import math
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from renderer.errors import UnavailableError
from renderer.fractals.bilinear import STEP, StepTable, step_table
from renderer.fractals.formula import compile_formula
from renderer.fractals.reference import Orbit, Point, precision_bits, reference_orbit
from renderer.fractals.settings import COLORINGS, PALETTES, Settings
from renderer.gpu import Buffer, Device
from renderer.gpu.device import Kernel
from renderer.gpu.kernel_source import GeneratedSource
from renderer.system.trust import check_memory

GROUP_SIZE = 64  # neighbors of a pixel take about as many iterations; a larger group waits for its slowest
WIDE_HEIGHT = Decimal("1e-140")  # below it, products of two differences leave double's range
SHALLOWEST_STEPS = Decimal("1e-12")  # above it no step of bilinear approximation is valid
# By kind: the formula of reference_orbit(), and FORMULA of perturbation.cu.
FORMULAS = {"mandelbrot": ("power", 0), "julia": ("power", 0), "tricorn": ("tricorn", 1),
            "burning_ship": ("burning_ship", 2)}  # fmt: skip
Rectangle = tuple[int, int, int, int]  # left, top, width, height
FORMULA_DEPTH = 2.0**-46  # height of a pixel over |center| below which double does not resolve a formula
# The kernels' argument View, passed by value: the position of the sample, the reference orbit, and the coloring.
VIEW = np.dtype([
    ("corner", "f8", 2),  # the tile's first sample, in pixels from the picture's center
    ("center", "f8", 2),  # center of the view, for formulas
    ("right", "f8", 2), ("down", "f8", 2),  # from pixel to pixel, in heights of the view
    ("height", "f8"), ("pixels", "f8"),  # the view's height is height * 2^height_exponent; the picture's, in pixels
    ("height_exponent", "i4"), ("width", "i4"), ("height_in_pixels", "i4"),  # and the tile's sizes
    ("max_iterations", "i4"), ("samples", "i4"),
    ("first_end", "i4"), ("last", "i4"), ("restart", "i4"),  # indices of the reference orbit; see Reference
    ("levels", "i4"), ("capacity", "i4"),  # sizes of the table of steps
    ("color_density", "f4"), ("color_offset", "f4"), ("relief", "f4"), ("padding", "i4"), ("more_padding", "i4", 2),
])  # fmt: skip


class Reference(NamedTuple):
    """The reference orbit of a view, Z_0, Z_1, ..., and the table of bilinear steps along it.

    A pixel's iterate is Z_n + d_n. Where |Z_n + d_n| < |d_n|, and at the orbit's end, index `first_end`, the pixel is
    rebased: it goes on with d = Z_n + d_n at index `restart`, where Z is 0. `restart` is 0, except for Julia sets:
    there the orbit of the critical point 0 follows the orbit of the view's center.
    """

    orbit: Orbit
    steps: StepTable | None  # None: every iteration is computed
    first_end: int
    restart: int
    wide: bool  # differences need floatexp (mantissa and exponent), since products leave double's range


@lru_cache(maxsize=4)
def compute_reference(
    settings: Settings, julia_c: Point, corner_distance: float, with_steps: bool = True, deadline: float = math.inf
) -> Reference:
    """Computes the reference of a view, whose corners are `corner_distance` heights from its center.

    There are steps only for analytic formulas and for colorings that do not need every iterate.
    """
    view, formula = settings.view, FORMULAS[settings.kind][0]
    numbers = *view.center, *(julia_c if settings.kind == "julia" else ())
    zero, bits = (Decimal(0), Decimal(0)), precision_bits(view.height, *numbers)
    # log2_c: of the greatest distance of a pixel's c from the center's; all pixels of a Julia set have the same c
    count, restart, log2_c = settings.max_iterations, 0, -math.inf
    if settings.kind == "julia":
        first, critical = (
            reference_orbit(formula, settings.power, z, julia_c, bits, count, deadline) for z in (view.center, zero)
        )
        restart = len(first.mantissas)  # Z_0 of the second orbit, which is 0
        orbit = Orbit(*map(np.concatenate, zip(first, critical, strict=True)))
    else:
        orbit = reference_orbit(formula, settings.power, zero, view.center, bits, count, deadline)
        log2_c = float(view.height.ln()) / math.log(2) + math.log2(corner_distance)
    first_end = (restart or len(orbit.mantissas)) - 1  # of the only orbit, if there is no second one
    wide, steps = view.height < WIDE_HEIGHT, None
    is_analytic, needs_all = FORMULAS[settings.kind][1] == 0, settings.coloring in ("stripe", "trap")
    if with_steps and view.height <= SHALLOWEST_STEPS and is_analytic and not needs_all:
        # 600 bytes an iterate: the records of all levels, and the arrays of Steps
        check_memory(600 * len(orbit.mantissas), "settings: max_iterations: the table of steps")
        steps = step_table(orbit, settings.power, log2_c, first_end, wide)
    return Reference(orbit, steps, first_end, restart, wide)


class KernelPass:
    """Draws samples of one tile by the kernels of shaders/fractals."""

    def __init__(self, device: Device, with_steps: bool = True, is_key: bool = False) -> None:
        """Raises UnavailableError for a device without float64. `with_steps`: skip iterations where it is exact.

        `is_key`: draw one sample of what colors depend on, with distances in heights, for reprojection.py.
        """
        if not device.properties.has_fp64:
            raise UnavailableError(f"{device.name} has no float64, which deep zooms and formulas need")
        self.device, self._with_steps, self._is_key = device, with_steps, is_key
        self.arithmetic = ""
        self._frame: Buffer | None = None
        self._view = np.zeros((), VIEW)
        self._arguments: tuple[object, ...] = ()
        self._kernel: Kernel | None = None

    def begin(
        self, settings: Settings, size: tuple[int, int], tile: Rectangle, julia_c: Point, deadline: float = math.inf
    ) -> None:
        """Compute the reference and upload it; compile the kernel. `deadline`: see reference_orbit()."""
        if self._frame is None or self._frame.shape[:2] != (tile[3], tile[2]):
            self._frame = self.device.buffer((tile[3], tile[2], 4))
        self._view = view_record(settings, size, tile)
        self._view["pixels"] = 1.0 if self._is_key else size[1]
        if settings.kind == "formula":
            self._begin_formula(settings)
        else:
            self._begin_perturbation(settings, size, julia_c, deadline)

    def add_sample(self, size: tuple[int, int], tile: Rectangle, index: int, jitter: tuple[float, ...]) -> Buffer:
        """Average sample number `index` into the frame."""
        assert self._frame is not None and self._kernel is not None
        view = self._view
        view["corner"] = [tile[k] + 0.5 - size[k] / 2 + jitter[k] for k in (0, 1)]
        view["samples"] = index
        # a copy, since a NumPy scalar of a record shares the memory of its array, which the next sample changes
        self._kernel(tile[2] * tile[3], self._frame, *self._arguments, view.copy()[()])
        return self._frame

    def _begin_perturbation(self, settings: Settings, size: tuple[int, int], julia_c: Point, deadline: float) -> None:
        """Computes and uploads the reference orbit and its steps; compiles the kernel."""
        distance = math.hypot(size[0] / size[1], 1) / 2 + 2 / size[1]  # in heights; two pixels more for jitter
        reference = compute_reference(settings, julia_c, distance, self._with_steps, deadline)
        orbit, steps, view = reference.orbit, reference.steps, self._view
        view["first_end"], view["last"] = reference.first_end, len(orbit.mantissas) - 1
        view["restart"] = reference.restart
        if steps is not None:
            view["levels"], view["capacity"] = steps.levels, steps.capacity
        self.arithmetic = f"perturbation, {'float64 and floatexp' if reference.wide else 'float64'}"
        self._kernel = self._compile(
            "fractals/perturbation.cu", "draw_perturbed", settings, BlaStep=STEP, JULIA=settings.kind == "julia",
            FORMULA=FORMULAS[settings.kind][1], WIDE=reference.wide, BLA=steps is not None,
        )  # fmt: skip
        tables = orbit.mantissas.view("f8"), orbit.exponents, np.zeros(1, STEP) if steps is None else steps.steps
        self._arguments = tuple(self.device.buffer(table.shape, table.dtype).write(table) for table in tables)

    def _begin_formula(self, settings: Settings) -> None:
        self.arithmetic = "formula, float64"
        step, start = compile_formula(settings.formula, "zc"), compile_formula(settings.formula_start, "c")
        text = f'#include "fractals/dual.h"\n#define START(c) {start}\n#define STEP(z, c) {step}\n'
        source = GeneratedSource("formula.cu", text + '#include "fractals/formula.cu"\n')
        stop = int(settings.formula_stop == "convergence")
        self._kernel = self._compile(source, "draw_formula", settings, STOP=stop)
        self._view["center"] = [float(v) for v in settings.view.center]
        self._arguments = ()

    def _compile(self, file: str | GeneratedSource, entry: str, settings: Settings, **constants: object) -> Kernel:
        constants |= dict(PALETTE=PALETTES[settings.palette], COLORING=COLORINGS[settings.coloring], STRIPES=3.0)
        constants |= dict(DEGREE=settings.degree, View=VIEW, KEY=self._is_key)
        return self.device.kernel(file, entry, GROUP_SIZE, **constants)


def view_record(settings: Settings, size: tuple[int, int], tile: Rectangle) -> np.ndarray:
    """The kernels' record of a view, without its reference."""
    view, record = settings.view, np.zeros((), VIEW)
    # turned(): the view's rotation (scene/cameras.py)
    record["right"], record["down"] = view.turned(1 / size[1], 0), view.turned(0, -1 / size[1])
    record["height"], record["height_exponent"] = to_binary(view.height)
    record["width"], record["height_in_pixels"] = tile[2:]
    for name in ("max_iterations", "color_density", "color_offset", "relief"):
        record[name] = getattr(settings, name)
    return record


@lru_cache(maxsize=64)
def to_binary(value: Decimal) -> tuple[float, int]:
    """A positive number as mantissa, 1 to 2, and exponent of 2, correctly rounded from all its digits."""
    exponent = math.floor(float(value.ln()) / math.log(2))
    numerator, denominator = value.as_integer_ratio()
    numerator, denominator = numerator << max(-exponent, 0), denominator << max(exponent, 0)
    return numerator / denominator, exponent
