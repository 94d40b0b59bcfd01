"""Light fields from files: the pictures of a camera array, where its cameras stand, and what is missing.

A field is a folder or zip of views (conventions.py), one picture that holds all views (mosaic or contact sheet), or an
array in a .npy or .npz. Everything stays 8-bit as it was recorded; a .npy of bytes is memory-mapped, never read whole.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from renderer.errors import InputError, UnavailableError
from renderer.formats.archive import Folder, Zip
from renderer.formats.images import read_bytes
from renderer.formats.npy_views import read_array
from renderer.lightfields.conventions import LARGEST_GRID, Plan, plan_of

__all__ = ["LightField", "placed", "read_field"]

LARGEST_VIEW = 1 << 26  # pixels
MOSAIC_LENSLETS = (14, 14)  # views of an ESLF file: pixels under each lens of a Lytro Illum
IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".ppm")
FAR_OFF = 0.5  # spacings that a camera may stand off the fitted grid without being told


@dataclass(frozen=True, eq=False)
class LightField:
    """Pixels (n, height, width, 3 or 4) uint8 sRGB (the fourth channel is a weight), cells (n, 2) row, column, and
    cameras (n, 2) float64: u right, v down, in units of the spacing of columns, counted from the middle of the array.

    `axes` (2, 2) maps steps of (row, column) to steps of (u, v) on the fitted, regular grid.
    """

    source: str
    convention: str
    pixels: np.ndarray
    cells: np.ndarray
    cameras: np.ndarray
    axes: np.ndarray
    rows: int
    columns: int
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of a view."""
        return self.pixels.shape[2], self.pixels.shape[1]

    def turned(self) -> "LightField":
        """The field with its v axis turned round, for names that count v upwards."""
        flip = np.array([1.0, -1.0])
        told = "v was counted upwards where u is counted to the right (measured in the pictures): turned round"
        return replace(self, cameras=self.cameras * flip, axes=self.axes * flip, warnings=(*self.warnings, told))


def read_field(path, pattern: str = "", layout: str = "auto", grid: tuple[int, int] = (0, 0)) -> LightField:
    """The light field of a folder, .zip, .npy, .npz or one picture; InputError tells what is wrong with it.

    `layout` ("mosaic", "sheet") and `grid` (rows, columns) tell how one picture holds all views.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: No such file or directory")
    if max(grid) > LARGEST_GRID or min(grid) < 0:
        raise InputError(f"{path}: grid is {list(grid)}; rows and columns must be at most {LARGEST_GRID}")
    suffix = path.suffix.lower()
    if path.is_dir():
        return _of_archive(Folder(path), pattern, grid)
    if suffix == ".zip":
        return _of_archive(Zip(path), pattern, grid)
    if suffix in (".npy", ".npz"):
        return _of_array(path)
    if suffix in IMAGES:
        return _of_picture(path, layout, grid)
    raise InputError(f"{path}: no light field; accepted are a folder, .zip, .npy, .npz, or one picture of all views")


def placed(source, convention, pixels, cells, places, rows, columns, warnings=()) -> LightField:
    """The field of views in cells (n, 2), at places (n, 2) v, u in any unit; NaN places stand for a regular grid.

    The regular grid that fits the places best (least squares) gives the unit and shows cameras that stand far off it.
    """
    cells, places = np.asarray(cells, "i4"), np.asarray(places, "f8")
    middle = np.array([rows - 1, columns - 1]) / 2
    steps = cells - middle
    told = list(warnings)
    regular = np.array([[0.0, 1.0], [1.0, 0.0]])  # a row downwards is v, a column to the right is u
    axes, cameras = regular, steps @ regular
    if np.isfinite(places).all():
        fitted = _fit(steps, places[:, ::-1], middle, told)
        if fitted is not None:
            axes, cameras = fitted
    centre = np.flatnonzero((steps == 0).all(1))
    if len(centre):
        cameras = cameras - cameras[centre[0]]
    missing = sorted({(r, c) for r in range(rows) for c in range(columns)} - {tuple(cell) for cell in cells.tolist()})
    if missing:
        names = ", ".join(f"row {r} column {c}" for r, c in missing[:8]) + (" and more" if len(missing) > 8 else "")
        told.append(f"{len(missing)} of {rows * columns} views are missing: {names}")
    return LightField(str(source), convention, pixels, cells, cameras, axes, rows, columns, tuple(told))


def _fit(steps, places, middle, told: list[str]):
    """Axes and cameras in units of the spacing, of places (n, 2) u, v; None where they tell no array."""
    matrix = np.column_stack([steps, np.ones(len(steps))])
    solution = np.linalg.lstsq(matrix, places, rcond=None)[0]
    used = [axis for axis in (1, 0) if np.ptp(steps[:, axis]) > 0]
    lengths = np.linalg.norm(solution[:2], axis=1)
    if not used or min(lengths[used]) <= 1e-9 * max(1.0, np.abs(places).max()):
        told.append("the coordinates in the names do not follow the array; a regular one is taken")
        return None
    axes, cameras = solution[:2] / lengths[used[0]], (places - solution[2]) / lengths[used[0]]
    for axis in {0, 1} - set(used):  # one row or one column: the other axis stands upright on it
        other = axes[1 - axis]
        axes[axis] = np.array([-other[1], other[0]]) if axis == 0 else np.array([other[1], -other[0]])
    if abs(np.linalg.det(axes)) < 1e-3:
        told.append("the coordinates in the names lie on one line; a regular array is taken")
        return None
    off = np.linalg.norm(cameras - steps @ axes, axis=1)
    far = np.flatnonzero(off > FAR_OFF)
    if len(far):
        worst = steps[np.argmax(off)] + middle
        told.append(
            f"{len(far)} cameras stand more than {FAR_OFF} spacings off the fitted array "
            f"(the worst near row {worst[0]:g}, column {worst[1]:g}: {off.max():.2f})"
        )
    return axes, cameras


def residual(field: LightField) -> float:
    """Root mean square distance of the cameras from their regular grid, in spacings."""
    middle = np.array([field.rows - 1, field.columns - 1]) / 2
    off = field.cameras - (field.cells - middle) @ field.axes
    return float(np.sqrt(((off - off.mean(0)) ** 2).sum(1).mean()))


def _of_archive(archive, pattern: str, grid) -> LightField:
    plan = plan_of(archive, pattern, grid)
    pixels, kept, warnings = _decoded(archive, plan)
    cells = [(shot.row, shot.column) for shot in kept]
    places = [(shot.v, shot.u) for shot in kept]
    return placed(archive.path, plan.convention, pixels, cells, places, plan.rows, plan.columns, warnings)


def _decoded(archive, plan: Plan):
    """Pixels of the views that can be read, their shots, and a warning for each that cannot."""

    def decode(shot):
        return read_bytes(archive.told(shot.name), LARGEST_VIEW, archive.read(shot.name))

    warnings, kept, pixels, first = [], [], None, None
    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 16)) as pool:
        pending, shots = [], list(plan.shots)
        while shots or pending:
            while shots and len(pending) < 32:  # decoded views that wait are bounded
                pending.append((shots[0], pool.submit(decode, shots.pop(0))))
            shot, future = pending.pop(0)
            try:
                view = future.result()
            except InputError as error:
                if "zip bomb" in str(error):
                    raise
                warnings.append(f"{error}; the other views are shown")
                continue
            if pixels is None:
                first, shape = shot.name, view.shape[:2]
                pixels = _room(archive.path, (len(plan.shots), *shape, 3))
            if view.shape[:2] != shape:
                raise InputError(
                    f"{archive.path}: views of different sizes: {first} is {shape[1]} x {shape[0]}, "
                    f"{shot.name} is {view.shape[1]} x {view.shape[0]}"
                )
            pixels[len(kept)] = view[..., :3]
            kept.append(shot)
    if not kept:
        raise InputError(f"{archive.path}: no view can be read; the first fault: {warnings[0]}")
    return pixels[: len(kept)], kept, warnings


def _room(source, shape) -> np.ndarray:
    """Host memory for the views, refused before it is touched where the machine has not that much free."""
    wanted = int(np.prod(shape, dtype=np.int64))
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not told on this system
        free = wanted
    if wanted > free:
        raise UnavailableError(
            f"{source}: {shape[0]} views of {shape[2]} x {shape[1]} take {wanted / 2**30:.1f} GiB of memory and "
            f"{free / 2**30:.1f} are free; a .npy of the field is memory-mapped instead"
        )
    return np.empty(shape, "u1")


def _of_array(path: Path) -> LightField:
    array, places = read_array(path)
    rows, columns, height, width, channels = array.shape
    if max(rows, columns) > LARGEST_GRID or rows * columns < 1 or height * width > LARGEST_VIEW:
        raise InputError(
            f"{path}: {rows} x {columns} views of {width} x {height}; allowed are {LARGEST_GRID} x {LARGEST_GRID} "
            f"views of {LARGEST_VIEW} pixels"
        )
    cells = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), -1).reshape(-1, 2)
    pixels = array.reshape(rows * columns, height, width, channels)
    return placed(path, f"array in {path.suffix}", pixels, cells, places, rows, columns)


def _of_picture(path: Path, layout: str, grid) -> LightField:
    """The field inside one picture: view (row, column) is every n-th pixel of a mosaic, or one tile of a sheet."""
    if layout == "auto":
        if "eslf" not in path.stem.lower():
            raise InputError(
                f'{path}: one picture: say layout = "mosaic" (each lens one small square of pixels, ESLF) or '
                '"sheet" (the views side by side), and grid = [rows, columns]'
            )
        layout = "mosaic"
    rows, columns = grid if all(grid) else MOSAIC_LENSLETS if layout == "mosaic" else (0, 0)
    if not rows:
        raise InputError(f"{path}: a contact sheet needs grid = [rows, columns]; it is {list(grid)}")
    whole = read_bytes(path)
    height, width = whole.shape[0] // rows, whole.shape[1] // columns
    if (whole.shape[0] % rows or whole.shape[1] % columns) and layout == "sheet" or not (height and width):
        raise InputError(
            f"{path}: {whole.shape[1]} x {whole.shape[0]} pixels are no {rows} rows of {columns} views of one size"
        )
    channels = 3 if (whole[..., 3] == 255).all() else 4
    whole = whole[: rows * height, : columns * width, :channels]
    if layout == "mosaic":
        split = whole.reshape(height, rows, width, columns, channels).transpose(1, 3, 0, 2, 4)
    else:
        split = whole.reshape(rows, height, columns, width, channels).transpose(0, 2, 1, 3, 4)
    cells = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), -1).reshape(-1, 2)
    pixels = np.ascontiguousarray(split).reshape(rows * columns, height, width, channels)
    dark = pixels[..., 3].any((1, 2)) if channels == 4 else np.ones(len(pixels), bool)
    told = [f"{int((~dark).sum())} views have no weight anywhere"] if not dark.all() else []
    nowhere = np.full((len(cells), 2), np.nan)
    return placed(path, layout, pixels, cells, nowhere, rows, columns, told)


def view_size(path) -> tuple[int, int]:
    """Width and height of the views of a field that needs no telling, from its first view that can be read."""
    path = Path(path)
    if not (path.is_dir() or path.suffix.lower() == ".zip"):
        return read_field(path).size
    archive = Folder(path) if path.is_dir() else Zip(path)
    faults = []
    for shot in plan_of(archive, "", (0, 0)).shots:
        try:
            view = read_bytes(archive.told(shot.name), LARGEST_VIEW, archive.read(shot.name))
            return view.shape[1], view.shape[0]
        except InputError as error:
            faults.append(str(error))
    raise InputError(f"{path}: no view can be read; the first fault: {faults[0]}")
