"""The picture `ink`: advection and diffusion of ink in a velocity field, implicit in time, one band LU solve per step.

The unknowns are the optical densities of red, green and blue on a grid. Its short side is the fastest index, so that
the half bandwidth is the short side. A step solves (1 + dt (w . grad - diffusion Laplace)) u' = u + dt source, where u
and u' are the densities before and after the step of time dt, and w is the velocity. The matrix is not symmetric, and
pivoting interchanges rows where a step carries ink over more than two cells. Dragging moves the source, which changes
only the right-hand side; panning changes the wind, which needs a new factorization. Neither restarts the picture.
"""

from pathlib import Path
from typing import Literal

import numpy as np

from renderer.formats.images import IMAGE_SUFFIXES, read_image
from renderer.gpu import Buffer, DeviceContext
from renderer.numerics.band_lu import BandedLU, factor_for
from renderer.numerics.band_lu.host_factors import PHASES
from renderer.pictures.picture import AccumulatingPicture, Size, Tile
from renderer.records import dataclass, replace
from renderer.scene.cameras import View
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, setting
from renderer.system.trust import check_memory

FILE = "images/ink.cu"
BAR_FLOATS = 8  # floats of the overlay's bars: fraction of rows interchanged, time of each phase of a step, spare
Pair = tuple[float, float]


@dataclass(frozen=True)
class SourceAndWind(View):
    """The position of the source of ink, and the wind: in heights of the picture from its center, y up."""

    source: Pair = (-0.35, 0.1)
    wind: Pair = (0.45, 0.0)

    def drag(self, dx: float, dy: float) -> "SourceAndWind":
        """Move the source with the pointer."""
        return replace(self, source=(self.source[0] + dx, self.source[1] - dy))

    def pan(self, dx: float, dy: float) -> "SourceAndWind":
        """Add the pointer's movement to the wind."""
        return replace(self, wind=(self.wind[0] + dx, self.wind[1] - dy))

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> "SourceAndWind":
        """Make the wind a quarter stronger per step."""
        return replace(self, wind=(self.wind[0] * 1.25**steps, self.wind[1] * 1.25**steps))


@dataclass(frozen=True)
class Settings(PictureSettings):
    """The grid, the flow, the source of ink and the colors. Lengths are in heights of the picture."""

    view: SourceAndWind = SourceAndWind()
    image: str = setting(
        "", file=(*IMAGE_SUFFIXES, ".exr"), help="initial densities as an image; without one, colored bands"
    )
    grid: int = setting(256, 16, 1024, "unknowns along the short side: the half bandwidth")
    time_step: float = setting(0.02, 1e-5, 10.0, "time of one draw", logarithmic=True)
    diffusion: float = setting(
        2e-5, 1e-7, 1.0, "diffusion coefficient, heights squared per unit of time", logarithmic=True
    )
    eddy_speed: float = setting(0.35, 0.0, 10.0, "largest speed of the eddies, added to the wind")
    eddies: int = setting(3, 1, 12, "eddies along the height")
    scheme: Literal["central", "upwind"] = setting("central", help="differences; upwind never needs pivoting")
    source_rate: float = setting(8.0, 0.0, 1000.0, "density that the source adds per unit of time")
    source_radius: float = setting(0.045, 1e-3, 1.0, "radius of the source")
    source_color: tuple[float, float, float] = setting((0.05, 0.55, 0.7), 0.0, 1.0, "color of the source's ink")
    paper_color: tuple[float, float, float] = setting((0.93, 0.9, 0.84), 0.0, 1.0)
    overlay: bool = setting(
        False,
        help="two bars per block column: fraction of rows interchanged by pivoting, and relative time of each phase",
    )
    samples: int = setting(60, 1, 1 << 20, "time steps of the finished picture", logarithmic=True)


@dataclass(frozen=True)
class FlowGrid:
    """Cells of the picture: `major` along the long side, `minor` along the short side.

    `wide`: the long side is horizontal. `spacing`: size of a cell in heights of the picture.
    """

    major: int
    minor: int
    wide: bool
    spacing: float

    @property
    def unknowns(self) -> int:
        """Number of cells."""
        return self.major * self.minor

    @property
    def centers(self) -> tuple[np.ndarray, ...]:
        """x and y (major, minor) of the cells' centers, in heights from the picture's center, y up."""
        a = (np.arange(self.major) + 0.5 - self.major / 2) * self.spacing
        b = (self.minor / 2 - np.arange(self.minor) - 0.5) * self.spacing
        if self.wide:
            return tuple(np.broadcast_arrays(a[:, None], b[None, :]))
        return tuple(np.broadcast_arrays(-b[None, :], -a[:, None]))


def flow_grid(size: Size, grid: int) -> FlowGrid:
    """Return the grid of a picture of `size`, with `grid` cells along its short side."""
    width, height = size
    wide = width >= height
    spacing = (1 if wide else width / height) / grid
    return FlowGrid(max(grid, round(grid * max(size) / min(size))), grid, wide, spacing)


def velocity_field(cells: FlowGrid, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Return the velocity's x and y components (major, minor): the wind, plus eddies of alternating direction."""
    x, y = cells.centers
    k = np.pi * settings.eddies
    u = settings.view.wind[0] + settings.eddy_speed * np.sin(k * x) * np.cos(k * y)
    v = settings.view.wind[1] - settings.eddy_speed * np.cos(k * x) * np.sin(k * y)
    return u, v


def assemble_matrix(cells: FlowGrid, settings: Settings) -> np.ndarray:
    """Assemble the time step's matrix in band layout, ab (2 minor + 1, n); cell (a, b) is unknown a * minor + b.

    A row has the cell's coefficient `diagonal` and, in each direction, the coefficients `before` and `after` (without
    the factor dt) of the neighbors with the smaller and the greater index; `offset` is the difference of the indices.
    Boundary conditions: zero density where the wind blows in, zero gradient elsewhere: then the coefficient of the
    missing neighbor is added to the diagonal.
    """
    m, n, h, dt = cells.minor, cells.unknowns, cells.spacing, settings.time_step
    what = f"settings: grid is {settings.grid}; a band matrix of {n} unknowns and {2 * m + 1} diagonals"
    check_memory(4 * (8 * m + 3) * n, what)  # with LAPACK's factors, which have 3 m + 1 rows and a copy
    u, v = velocity_field(cells, settings)
    along, across = (u, -v) if cells.wide else (-v, u)  # in the direction of growing indices: rows go down
    ab = np.zeros((2 * m + 1, n), "f4")
    diagonal = np.ones((cells.major, cells.minor))
    conductance = settings.diffusion / (h * h)
    for speed, axis, offset in ((along, 0, m), (across, 1, 1)):
        if settings.scheme == "central":
            before, after = -speed / (2 * h) - conductance, speed / (2 * h) - conductance
            diagonal += dt * 2 * conductance
        else:
            before, after = -np.maximum(speed, 0) / h - conductance, np.minimum(speed, 0) / h - conductance
            diagonal += dt * (2 * conductance + np.abs(speed) / h)
        # views with `axis` first: element 0 is the first row of cells, -1 the last
        lines, speeds, befores, afters = (np.moveaxis(each, axis, 0) for each in (diagonal, speed, before, after))
        lines[0] += dt * np.where(speeds[0] > 0, 0, befores[0])
        befores[0] = 0
        lines[-1] += dt * np.where(speeds[-1] < 0, 0, afters[-1])
        afters[-1] = 0
        ab[m + offset, : n - offset] = (dt * before).ravel()[offset:]  # element (k, k - offset) is in column k - offset
        ab[m - offset, offset:] = (dt * after).ravel()[: n - offset]
    ab[m] = diagonal.ravel()
    return ab


def initial_condition(cells: FlowGrid, settings: Settings) -> np.ndarray:
    """Return the optical densities (3, major, minor) at time 0: an image's, or bands of three inks."""
    x, y = cells.centers
    if settings.image:
        picture = read_image(Path(settings.image))
        height, width = picture.shape[:2]
        total_width = (cells.major if cells.wide else cells.minor) * cells.spacing
        rows = np.clip(((0.5 - y) * height).astype(int), 0, height - 1)
        columns = np.clip(((x / total_width + 0.5) * width).astype(int), 0, width - 1)
        reflectance = picture[rows, columns, :3] / np.maximum(settings.paper_color, 1e-3)
        return np.asarray(-np.log(np.clip(reflectance, 1 / 64, 1)).transpose(2, 0, 1))
    # Reflectances of three inks for red, green and blue.
    densities = -np.log([[0.85, 0.2, 0.15], [0.95, 0.7, 0.2], [0.15, 0.3, 0.6]])
    bands = np.zeros((3, *x.shape))
    for k, center in enumerate(np.linspace(-0.42, 0.42, 7)):
        profile = np.clip(1 - np.abs(y - center) / 0.055, 0, 1)
        bands += densities[k % 3][:, None, None] * (profile * profile * (3 - 2 * profile))
    return bands


class Picture(AccumulatingPicture[Settings]):
    """Draws one time step per call."""

    settings_type = Settings
    tone = ToneMapping("manual")

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self.device = gpu.device
        self._add_source = self.device.kernel(FILE, "add_source", STRICT=1)
        self._show_density = self.device.kernel(FILE, "show_density", STRICT=1)
        self._lu: BandedLU | None = None
        self._matrix_key: tuple[object, ...] = ()  # the grid and settings that determine the matrix of `_lu`
        self._density: Buffer  # (3, padded_n): optical densities of red, green and blue
        self._frame: Buffer  # (height, width, 4) of the tile
        self._bars: Buffer  # overlay_bars() of `_lu`

    def restart_key(self, settings: Settings) -> Settings:
        """Return the settings without source, wind and overlay, which may change between time steps."""
        return replace(settings, view=SourceAndWind(), overlay=False)

    def begin(self, settings: Settings, size: Size, time: float, tile: Tile) -> None:
        """Upload the initial densities."""
        cells = flow_grid(size, settings.grid)
        density = np.zeros((3, self._factor(settings, cells).padded_n), "f4")
        density[:, : cells.unknowns] = initial_condition(cells, settings).reshape(3, -1)
        self._density = self.device.buffer(density.shape).write(density)
        self._frame = self.device.buffer((tile[3], tile[2], 4))

    def add_sample(self, settings: Settings, size: Size, time: float, tile: Tile) -> Buffer:
        """Make one time step and show it."""
        left, top, width, height = tile
        cells = flow_grid(size, settings.grid)
        lu = self._factor(settings, cells)
        amount = settings.source_rate * settings.time_step
        source = [np.float32(v) for v in (*settings.view.source, settings.source_radius, amount)]
        ink = [np.float32(-np.log(max(value, 1 / 64))) for value in settings.source_color]
        layout = np.int32(cells.major), np.int32(cells.minor), int(cells.wide), np.float32(cells.spacing)
        self._add_source(cells.unknowns, self._density, lu.padded_n, *layout, *source, *ink)
        lu.solve_in_place(self._density)
        paper = [np.float32(value) for value in settings.paper_color]
        bars = self._bars.shape[0] if settings.overlay else 0
        self._show_density(
            width * height, self._density, lu.padded_n, *layout, self._frame, width, height, left, top, *size, *paper,
            self._bars, bars,
        )  # fmt: skip
        return self._frame

    def _factor(self, settings: Settings, cells: FlowGrid) -> BandedLU:
        """The factors of the time step's matrix, kept while the matrix stays the same."""
        restart_parts = (settings.time_step, settings.diffusion, settings.eddy_speed, settings.eddies, settings.scheme)
        key = (cells, settings.view.wind, *restart_parts)
        if self._lu is not None and key == self._matrix_key:
            return self._lu
        ab = assemble_matrix(cells, settings)
        if self._lu is not None and self._matrix_key[0] == cells:
            self._lu.refactor(ab)
        else:
            self._lu = None  # free its memory before the next is allocated
            # For few right-hand sides, solves with small diagonal blocks are fastest.
            self._lu = factor_for(self.device, ab, min(32, 16 * -(-cells.minor // 16)))
        self._matrix_key = key
        bars = overlay_bars(self._lu)
        self._bars = self.device.buffer(bars.shape).write(bars)
        return self._lu

    def report(self) -> dict[str, object]:
        """Steps, rows interchanged, pivot growth, and the device and time of the factorization."""
        if self._lu is None:
            return {}
        lu = self._lu
        return {
            "steps": self.samples,
            "unknowns": lu.n,
            "band": lu.kl,
            "interchanged rows": lu.row_interchanges,
            "growth": lu.pivot_growth,
            "seconds": {phase: round(value, 5) for phase, value in lu.seconds.items()},
            "factored on": lu.device_name,
        }


def overlay_bars(lu: BandedLU) -> np.ndarray:
    """Return (block columns, BAR_FLOATS) float32: fraction of rows interchanged, and each phase's relative time.

    A block column shows the last timed step up to it, as not every step is timed; a bar of full length stands for a
    step longer than 90 % of them.
    """
    layout = lu.layout
    moved = np.zeros(layout.p * layout.s)
    moved[: lu.n] = lu.pivots != np.arange(lu.n)
    bars = np.zeros((layout.p, BAR_FLOATS), "f4")
    bars[:, 0] = moved.reshape(layout.p, layout.s).mean(axis=1)
    steps = [step.get("step", k) for k, step in enumerate(lu.step_seconds)]
    phases = np.array([[step[phase] for phase in PHASES] for step in lu.step_seconds])
    nearest = np.clip(np.searchsorted(steps, np.arange(layout.p), side="right") - 1, 0, None)
    longest = np.quantile(phases.sum(axis=1), 0.9)  # ignores the few steps that other programs delayed
    bars[:, 1 : 1 + len(PHASES)] = phases[nearest] / (longest or 1)
    return bars
