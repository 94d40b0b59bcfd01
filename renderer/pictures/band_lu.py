"""The factorization of a small band matrix, part by part: what renderer/numerics/band_lu does, made visible.

The lesson on band LU uses it. The setting `step` selects the part: a panel factorization, look-ahead or update. The
view "steps" shows every part with its numbers.
"""

from typing import Literal

import numpy as np

from renderer.formats.images import srgb_to_linear
from renderer.gpu import Buffer
from renderer.images.algorithm_view import AlgorithmView
from renderer.images.band_lu_picture import band_lu_view, part_picture
from renderer.numerics.band_lu.stepped import MAX_ORDER, Bar, SteppedFactors, time_line
from renderer.pictures.picture import CENTER, Point, Size, Tile
from renderer.pictures.picture import Picture as BasePicture
from renderer.records import dataclass, replace
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, setting

MAX_DIAGONALS = 64


@dataclass(frozen=True)
class Settings(PictureSettings):
    """The matrix, its blocks, and the part of the factorization that is shown."""

    matrix: Literal["random", "convection", "growth"] = setting(
        "random", help="normal numbers; upwind convection, which needs no pivoting; numbers that grow by pivoting"
    )
    n: int = setting(64, 2, MAX_ORDER, "order of the matrix")
    kl: int = setting(10, 0, MAX_DIAGONALS, "diagonals below the main one")
    ku: int = setting(8, 0, MAX_DIAGONALS, "diagonals above it")
    block: int = setting(8, 2, 64, "columns of a block")
    devices: int = setting(2, 1, 6, "to which block columns are dealt, and cores of the time line")
    seed: int = setting(0, 0, 1 << 30, "of the random numbers")
    step: int = setting(1 << 10, 0, 1 << 10, "part of the factorization, the last at most")


class Picture(BasePicture[Settings]):
    """Draws Settings."""

    settings_type = Settings
    algorithm_names = ("steps",)
    views_are_steady = True
    tone = ToneMapping("manual")
    drawn_whole = True

    def draw(self, settings: Settings, size: Size, time: float, tile: Tile | None = None) -> Buffer:
        """Draw the part `step` of the factorization; without the time line, so that pictures are reproducible."""
        stepped, _, _ = self._factored(settings)
        part = stepped.parts[min(settings.step, len(stepped.parts) - 1)]
        pixels = part_picture(stepped, part, [], settings.devices, size).pixels
        frame = np.ones((size[1], size[0], 4), "f4")
        assert pixels is not None
        frame[..., :3] = srgb_to_linear(pixels)
        return self.gpu.device.buffer(frame.shape).write(frame)

    def algorithm(self, name: str, settings: Settings, size: Size, at: Point = CENTER) -> AlgorithmView:
        """Return the view of all parts of the factorization."""
        stepped, bars, largest = self._factored(settings)
        return band_lu_view(stepped, bars, settings.devices, largest, size)

    def report(self) -> dict[str, object]:
        """The numbers of the whole factorization."""
        if "factors" not in self._cache:
            return {}
        stepped, _, largest = self._cache["factors"][1]
        interchanges = int((stepped.pivots != np.arange(len(stepped.pivots))).sum())
        growth = stepped.parts[-1].largest / largest if largest else 1.0
        return {"parts": len(stepped.parts), "interchanges": interchanges, "growth": round(growth, 3)}

    def _factored(self, settings: Settings) -> tuple[SteppedFactors, list[Bar], float]:
        """The factors, their time line, and the largest element of the matrix."""

        def factor() -> tuple[SteppedFactors, list[Bar], float]:
            ab, kl, ku = band_matrix(settings)
            stepped = SteppedFactors(ab, kl, ku, settings.block)
            return stepped, time_line(stepped.layout, settings.devices), float(np.abs(ab).max())

        return self.cached("factors", replace(settings, step=0), factor)  # the same factors for every `step`


def band_matrix(settings: Settings) -> tuple[np.ndarray, int, int]:
    """Return the matrix (kl + ku + 1, n) in LAPACK's band layout, zero in the corners, and kl and ku, at most n - 1."""
    n, kl, ku = settings.n, min(settings.kl, settings.n - 1), min(settings.ku, settings.n - 1)
    rows, columns = np.indices((n, n))
    if settings.matrix == "convection":  # diagonally dominant by columns
        away = np.abs(rows - columns)
        dense = np.where(rows > columns, -1.0 / (1 + away) ** 2, np.where(rows < columns, -0.2 / (1 + away) ** 2, 0.0))
        dense[np.arange(n), np.arange(n)] = 2.0
    elif settings.matrix == "growth":
        # Wilkinson 1965: the last column doubles at every step of dense elimination. In a band, ones on the uppermost
        # diagonal take its place.
        dense = np.where(rows > columns, -1.0, 0.0) + np.eye(n)
        dense[:, ku:] += np.where(columns[:, ku:] == rows[:, ku:] + ku, 1.0, 0.0) if ku else 0.0
    else:
        dense = np.random.default_rng(settings.seed).normal(size=(n, n))
    ab = np.zeros((kl + ku + 1, n))
    for d in range(-ku, kl + 1):  # row - column
        column = np.arange(max(0, -d), min(n, n - d))
        ab[ku + d, column] = dense[column + d, column]
    return ab, kl, ku
