"""Ink in a wind field: advection and diffusion of an RGB image, implicit in time, each step one solve with a band LU.

Unknowns are the optical densities of red, green and blue on a grid whose short side is numbered first, so that the
band is as wide as that side. (1 + step (w . grad - diffusion Laplace)) u' = u + step source: the matrix is not
symmetric, and where a step carries ink over more than two cells, rows are exchanged. Dragging moves the source: only
the right-hand side changes, a solve. Panning changes the wind: another matrix, a factorisation. Neither starts the
picture anew.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from renderer.formats.images import read_image
from renderer.gpu import DeviceContext
from renderer.numerics.band_lu import BandedLU
from renderer.numerics.band_lu.host_factors import PHASES
from renderer.pictures.picture import AccumulatingPicture
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, setting

FILE = "images/ink.cu"
BARS = 8  # numbers for each bar of the overlay: share of exchanged rows, then the parts of a step, then spare
Pair = tuple[float, float]


@dataclass(frozen=True)
class Pen:
    """Where ink comes from and the wind that carries it, in heights of the picture from its centre, y upwards."""

    source: Pair = (-0.35, 0.1)
    wind: Pair = (0.45, 0.0)

    def drag(self, dx: float, dy: float) -> "Pen":
        """Moves the source with the pointer."""
        return replace(self, source=(self.source[0] + dx, self.source[1] - dy))

    def pan(self, dx: float, dy: float) -> "Pen":
        """Changes the wind by the pointer's way."""
        return replace(self, wind=(self.wind[0] + dx, self.wind[1] - dy))

    def scroll(self, steps: float, x: float = 0.0, y: float = 0.0) -> "Pen":
        """Makes the wind stronger by a quarter a step."""
        return replace(self, wind=(self.wind[0] * 1.25**steps, self.wind[1] * 1.25**steps))


@dataclass(frozen=True)
class Settings(PictureSettings):
    view: Pen = Pen()
    image: str = setting("", file=True, help="the ink of the beginning; without one, coloured bands")
    grid: int = setting(256, 16, 1024, "unknowns along the short side: the half bandwidth")
    step: float = setting(0.02, 1e-5, 10.0, "time of one draw", logarithmic=True)
    diffusion: float = setting(2e-5, 1e-7, 1.0, "heights squared a unit of time", logarithmic=True)
    eddies: float = setting(0.35, 0.0, 10.0, "speed of the whirls beside the wind")
    whirls: int = setting(3, 1, 12, "whirls along the height")
    scheme: Literal["central", "upwind"] = setting("central", help="differences; upwind never exchanges rows")
    flow: float = setting(8.0, 0.0, 1000.0, "density that the source adds in a unit of time")
    width: float = setting(0.045, 1e-3, 1.0, "radius of the source")
    ink: tuple[float, float, float] = setting((0.05, 0.55, 0.7), 0.0, 1.0, "the source's colour")
    paper: tuple[float, float, float] = setting((0.93, 0.9, 0.84), 0.0, 1.0)
    overlay: bool = setting(False, help="bars by block column: exchanged rows, and the seconds of each step's parts")
    samples: int = setting(60, 1, 1 << 20, "time steps of the finished picture", logarithmic=True)


@dataclass(frozen=True)
class Mesh:
    """Cells of the picture: `major` along its long side, `minor` along its short one; `wide` says which lies across."""

    major: int
    minor: int
    wide: bool
    spacing: float  # heights

    @property
    def centres(self) -> tuple[np.ndarray, np.ndarray]:
        """x and y (major, minor) of the cells' centres, in heights from the picture's centre, y upwards."""
        a = (np.arange(self.major) + 0.5 - self.major / 2) * self.spacing
        b = (self.minor / 2 - np.arange(self.minor) - 0.5) * self.spacing
        if self.wide:
            return np.broadcast_arrays(a[:, None], b[None, :])
        return np.broadcast_arrays(-b[None, :], -a[:, None])


def mesh_of(size: tuple[int, int], grid: int) -> Mesh:
    width, height = size
    wide = width >= height
    long, short = max(size), min(size)
    spacing = (1 if wide else width / height) / grid
    return Mesh(max(grid, round(grid * long / short)), grid, wide, spacing)


def wind_of(mesh: Mesh, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """The wind's x and y components (major, minor): even, plus whirls that turn by turns left and right."""
    x, y = mesh.centres
    turn = np.pi * settings.whirls
    u = settings.view.wind[0] + settings.eddies * np.sin(turn * x) * np.cos(turn * y)
    v = settings.view.wind[1] - settings.eddies * np.cos(turn * x) * np.sin(turn * y)
    return u, v


def band_of(mesh: Mesh, settings: Settings) -> np.ndarray:
    """ab (2 minor + 1, n) of the time step's matrix; unknown major-index * minor + minor-index.

    Beyond an edge lies clean paper where the wind comes in, and the edge's own value elsewhere.
    """
    m, n, h, dt = mesh.minor, mesh.major * mesh.minor, mesh.spacing, settings.step
    u, v = wind_of(mesh, settings)
    along, across = (u, -v) if mesh.wide else (-v, u)  # in the direction of growing indices: rows go downwards
    ab = np.zeros((2 * m + 1, n), "f4")
    centre = np.ones((mesh.major, mesh.minor))
    spread = settings.diffusion / (h * h)
    for speed, axis, offset in ((along, 0, m), (across, 1, 1)):
        if settings.scheme == "central":
            before, after = -speed / (2 * h) - spread, speed / (2 * h) - spread
            centre += dt * 2 * spread
        else:
            before, after = -np.maximum(speed, 0) / h - spread, np.minimum(speed, 0) / h - spread
            centre += dt * (2 * spread + np.abs(speed) / h)
        first, last = (np.take(range(speed.shape[axis]), [0, -1])).tolist()
        edge = [slice(None), slice(None)]
        edge[axis] = first
        centre[tuple(edge)] += dt * np.where(speed[tuple(edge)] > 0, 0, before[tuple(edge)])
        before[tuple(edge)] = 0
        edge[axis] = last
        centre[tuple(edge)] += dt * np.where(speed[tuple(edge)] < 0, 0, after[tuple(edge)])
        after[tuple(edge)] = 0
        before, after = (dt * before).ravel(), (dt * after).ravel()
        ab[m + offset, : n - offset] = before[offset:]  # element (k, k - offset) stands in column k - offset
        ab[m - offset, offset:] = after[: n - offset]
    ab[m] = centre.ravel()
    return ab


def beginning(mesh: Mesh, settings: Settings) -> np.ndarray:
    """Optical densities (3, major, minor) at time 0: an image's, or bands of three inks."""
    x, y = mesh.centres
    if settings.image:
        picture = np.clip(read_image(settings.image)[..., :3] / np.maximum(settings.paper, 1e-3), 1 / 64, 1)
        height, width = picture.shape[:2]
        whole = mesh.minor * mesh.spacing if not mesh.wide else mesh.major * mesh.spacing
        rows = np.clip(((0.5 - y) * height).astype(int), 0, height - 1)
        columns = np.clip(((x / whole + 0.5) * width).astype(int), 0, width - 1)
        return -np.log(picture[rows, columns]).transpose(2, 0, 1)
    inks = np.array([[0.85, 0.2, 0.15], [0.95, 0.7, 0.2], [0.15, 0.3, 0.6]])  # what the bands reflect
    densities = -np.log(inks)
    bands = np.zeros((3, *x.shape))
    for k, at in enumerate(np.linspace(-0.42, 0.42, 7)):
        profile = np.clip(1 - np.abs(y - at) / 0.055, 0, 1)
        bands += densities[k % 3][:, None, None] * (profile * profile * (3 - 2 * profile))
    return bands


class Picture(AccumulatingPicture):
    """Draws Settings; one time step a call."""

    settings_type = Settings
    tone = ToneMapping("manual")

    def __init__(self, gpu: DeviceContext):
        super().__init__(gpu)
        self.device = gpu.device
        self._add = self.device.kernel(FILE, "add_source")
        self._show = self.device.kernel(FILE, "show_ink")
        self._lu: BandedLU | None = None
        self._matrix_key: tuple | None = None

    def restart_key(self, settings: Settings) -> Settings:
        """The pen and the overlay may change between time steps."""
        return replace(settings, view=Pen(), overlay=False)

    def begin(self, settings: Settings, size: tuple[int, int], time: float, tile) -> None:
        mesh = mesh_of(size, settings.grid)
        self._factor(settings, mesh)
        density = np.zeros((3, self._lu.padded_n), "f4")
        density[:, : mesh.major * mesh.minor] = beginning(mesh, settings).reshape(3, -1)
        self._density = self.device.buffer(density.shape).write(density)
        self._frame = self.device.buffer((tile[3], tile[2], 4))

    def add_sample(self, settings: Settings, size: tuple[int, int], time: float, tile):
        left, top, width, height = tile
        mesh = mesh_of(size, settings.grid)
        self._factor(settings, mesh)
        lu, n = self._lu, mesh.major * mesh.minor
        across = int(mesh.wide)
        numbers = [np.float32(v) for v in (*settings.view.source, settings.width, settings.flow * settings.step)]
        ink = [np.float32(-np.log(max(value, 1 / 64))) for value in settings.ink]
        place = np.int32(mesh.major), np.int32(mesh.minor), across, np.float32(mesh.spacing)
        self._add(n, self._density, lu.padded_n, *place, *numbers, *ink)
        lu.solve_in_place(self._density)
        paper = [np.float32(value) for value in settings.paper]
        bars = self._bars.shape[0] if settings.overlay else 0
        self._show(
            width * height, self._density, lu.padded_n, *place, self._frame, width, height, left, top, *size, *paper,
            self._bars, bars,
        )  # fmt: skip
        return self._frame

    def _factor(self, settings: Settings, mesh: Mesh) -> None:
        """Factors the matrix if it is not the last one; reuses the buffers while the grid stays."""
        key = (
            mesh,
            settings.view.wind,
            settings.step,
            settings.diffusion,
            settings.eddies,
            settings.whirls,
            settings.scheme,
        )
        if key == self._matrix_key:
            return
        ab = band_of(mesh, settings)
        if self._lu is not None and self._matrix_key and self._matrix_key[0] == mesh:
            self._lu.refactor(ab)
        else:
            self._lu = None  # its memory goes before the next is taken
            wide = not self.device.properties.scalar_threads  # a CPU's cores are used best by the host's own LAPACK
            block = min(32, 16 * -(-mesh.minor // 16)) if wide else None  # few sides: small triangles wait least
            self._lu = BandedLU(ab, mesh.minor, mesh.minor, [self.device] if wide else [], block)
        self._matrix_key = key
        self._bars = bars_of(self._lu)
        self._bars = self.device.buffer(self._bars.shape).write(self._bars)

    def report(self) -> dict[str, Any]:
        """Steps, the exchanged rows, the growth of the factors, and where and how long they were made."""
        if self._lu is None:
            return {}
        lu = self._lu
        seconds = {part: round(value, 5) for part, value in lu.seconds.items()}
        swapped = int((lu.pivots != np.arange(lu.n)).sum())
        told = {
            "steps": self.samples,
            "unknowns": lu.n,
            "band": lu.kl,
            "exchanged rows": swapped,
            "growth": lu.pivot_growth,
        }
        return told | {"seconds": seconds, "factored on": lu.device_name}


def bars_of(lu: BandedLU) -> np.ndarray:
    """(block columns, BARS) float32: the share of exchanged rows, and the parts of the step by the longest step."""
    layout = lu.layout
    moved = np.zeros(layout.p * layout.s)
    moved[: lu.n] = lu.pivots != np.arange(lu.n)
    bars = np.zeros((layout.p, BARS), "f4")
    bars[:, 0] = moved.reshape(layout.p, layout.s).mean(axis=1)
    steps = [step.get("step", k) for k, step in enumerate(lu.step_seconds)]
    parts = np.array([[step[part] for part in PHASES] for step in lu.step_seconds])
    nearest = np.clip(np.searchsorted(steps, np.arange(layout.p), side="right") - 1, 0, None)
    longest = np.quantile(parts.sum(axis=1), 0.9)  # the few that waited for other programs are cut off
    bars[:, 1 : 1 + len(PHASES)] = parts[nearest] / (longest or 1)
    return bars
