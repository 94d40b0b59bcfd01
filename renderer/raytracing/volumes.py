"""Participating media, fog and bounded volumes: their settings, and their records in the light buffer.

Fog and Volume are the tables [fog] and [[volumes]] of a scene file. light_buffer.py stores volume_rows() on the device,
where shaders/raytracing/volumes/volumes.h samples them by delta tracking.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from renderer.errors import InputError
from renderer.formats.linked import cached_by_file
from renderer.raytracing.instances import Point
from renderer.records import dataclass
from renderer.scene.schema import setting
from renderer.system.trust import check_memory

SHAPES = {"endless": 0, "box": 1, "ellipsoid": 2}
FIELDS = {"constant": 0, "falloff": 1, "noise": 2, "cloud": 3, "grid": 4}
MAX_VOLUMES = 64
MAX_CELLS = 1 << 25  # densities of a grid
MAX_OPTICAL_DEPTH = 1e4  # along a volume's diagonal; delta tracking takes about one step per unit of optical depth
RGB = tuple[float, float, float]


@dataclass(frozen=True)
class Fog:
    """Homogeneous fog over the scene, also inside of glass.

    Without a radius it is infinite and blocks all light from infinity; with a radius it is a ball about the origin.
    """

    density: float = setting(0.0, 0.0, 1e9, "extinction per length; 0 for no fog")
    albedo: float = setting(0.9, 0.0, 1.0, "fraction of the extinction that scatters")
    color: RGB = setting((1.0, 1.0, 1.0), 0.0, 1.0, "factor of the albedo", is_color=True)
    anisotropy: float = setting(0.0, -0.95, 0.95, "g of Henyey and Greenstein: above 0 scatters forwards")
    radius: float = setting(0.0, 0.0, 1e9, "of the ball about the origin that it fills; 0: without end")

    def __post_init__(self) -> None:
        if self.radius * 2 * self.density > MAX_OPTICAL_DEPTH:
            raise ValueError(f"density times the diameter is {self.radius * 2 * self.density:g}; {DEPTH_HELP}")


@dataclass(frozen=True)
class Volume:
    """A box or an ellipsoid, axis-aligned, filled by a medium; volumes may overlap each other, fog and shapes.

    Fields, as factors of the density: constant; falloff, 1 in the center to 0 on the inscribed ellipsoid; noise, four
    octaves of value noise; cloud, noise times falloff. A file of float32 (z, y, x) fills the box instead.
    """

    shape: Literal["box", "ellipsoid"] = "box"
    position: Point = setting((0.0, 0.0, 0.0), help="of the center")
    size: Point = setting((1.0, 1.0, 1.0), 1e-9, 1e9, "along x, y and z")
    density: float = setting(1.0, 0.0, 1e9, "extinction per length, a factor of the field or of the file's values")
    field: Literal["constant", "falloff", "noise", "cloud"] = "constant"
    file: str = setting("", file=(".npy",), help="grid of densities: .npy, float32, at least 0")
    cells: int = setting(8, 1, 1024, "of noise along the size")
    albedo: float = setting(0.9, 0.0, 1.0, "fraction of the extinction that scatters")
    color: RGB = setting((1.0, 1.0, 1.0), 0.0, 1.0, "factor of the albedo", is_color=True)
    anisotropy: float = setting(0.0, -0.95, 0.95, "g of Henyey and Greenstein: above 0 scatters forwards")

    def __post_init__(self) -> None:
        if self.file and self.field != "constant":
            raise ValueError(f"file and field {self.field!r} are both set; allowed is one of them")
        depth = self.density * float(np.linalg.norm(self.size))
        if not self.file and depth > MAX_OPTICAL_DEPTH:
            raise ValueError(f"density times the diagonal is {depth:g}; {DEPTH_HELP}")


DEPTH_HELP = f"it must be at most {MAX_OPTICAL_DEPTH:g}, as denser media are surfaces"


def volume_rows(media: Sequence[Fog | Volume], first: int) -> tuple[int, list[np.ndarray]]:
    """Returns the number of visible media and their float4 rows, arrays (rows, 4) float32; `first` is their first row.

    A medium has four rows, as in volumes/volumes.h; the grids of all media, scaled to at most 1, follow the media.
    Media of density 0 are left out. Raises InputError for a grid file that is unreadable or too dense.
    """
    media = [medium for medium in media if medium.density > 0]
    grids = [_grid(medium) for medium in media]
    kept = [(medium, grid) for medium, grid in zip(media, grids, strict=True) if grid is None or grid.max() > 0]
    records, cells = np.zeros((len(kept), 4, 4), "f4"), []
    row = first + 4 * len(kept)
    for record, (volume, grid) in zip(records, kept, strict=True):
        shape, field, position, size = "endless", "constant", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        if isinstance(volume, Volume):
            shape, field, position, size = volume.shape, volume.field, volume.position, volume.size
        elif volume.radius:
            shape, size = "ellipsoid", (2 * volume.radius,) * 3
        largest = 1.0 if grid is None else float(grid.max())
        record[0] = *position, volume.density * largest
        record[1, :3] = 2 / np.array(size)
        record[2] = *(volume.albedo * np.array(volume.color)), volume.anisotropy
        words = record.view("i4")
        words[3, 1] = volume.cells if isinstance(volume, Volume) else 0
        if grid is not None:
            field = "grid"
            words[3] = row, *grid.shape[::-1]  # the grid's first row, and its cells along x, y and z
            check_memory(8 * grid.size, f"{volume.file if isinstance(volume, Volume) else ''}: {grid.size} densities")
            values = np.pad((grid / np.float32(largest)).ravel(), (0, -grid.size % 4)).reshape(-1, 4)
            cells.append(values)
            row += len(values)
        words[1, 3] = SHAPES[shape] + 4 * FIELDS[field]
    return len(kept), [records.reshape(-1, 4), *cells]


def _grid(volume: Fog | Volume) -> np.ndarray | None:
    """Returns the grid (z, y, x) float32 of a volume's file, None without a file; raises InputError if too dense."""
    if not isinstance(volume, Volume) or not volume.file:
        return None
    grid = read_grid(volume.file)
    depth = volume.density * float(grid.max()) * float(np.linalg.norm(volume.size))
    if depth > MAX_OPTICAL_DEPTH:
        raise InputError(f"{volume.file}: largest value times density and diagonal is {depth:g}; {DEPTH_HELP}")
    return grid


@cached_by_file(4)
def read_grid(path: Path) -> np.ndarray:
    """Reads the grid of densities (z, y, x) float32 of an .npy file; raises InputError for another content."""
    if path.suffix.lower() != ".npy":
        raise InputError(f"{path}: no grid of densities; allowed is .npy")
    from renderer.formats.npy import open_npy

    source = open_npy(path)
    if source.dtype != np.float32 or len(source.shape) != 3 or not 0 < source.count <= MAX_CELLS:
        raise InputError(
            f"{path}: holds {source.dtype} of shape {source.shape}; a grid of densities is float32, (z, y, x), of 1 to "
            f"{MAX_CELLS} values"
        )
    grid = np.empty(source.shape, "f4", "F" if source.is_fortran else "C")
    source.read_into(grid.ravel("K").view("u1"), 0)
    grid = np.ascontiguousarray(grid)
    wrong = ~np.isfinite(grid) | (grid < 0) | (grid > 1e9)
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(f"{path}: value {index} is {grid[index]}; a density is at least 0 and at most 1e9")
    return grid
