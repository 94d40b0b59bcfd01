"""Reads light fields from files: the views of a camera array, the camera positions, and warnings about missing views.

A light field is a folder or zip of views (conventions.py), one image that contains all views (a lenslet image or tiled
views), or an array in a .npy or .npz file. Views stay 8-bit as recorded; a .npy of bytes is memory-mapped.
renderer/pictures/lightfield.py calls read_light_field().
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.formats.archive import Folder, Zip
from renderer.formats.images import OTHER_SIZE, read_pixels
from renderer.formats.npy_views import read_array
from renderer.lightfields.conventions import IMAGE_SUFFIXES, MAX_GRID, MAX_POSITION, ViewFile, ViewList, find_views
from renderer.records import dataclass, replace
from renderer.system.trust import check_memory

MAX_VIEW_PIXELS = 1 << 26
MAX_PENDING_VIEWS = 32  # views that are decoded at a time
MAX_PENDING_PIXELS = 1 << 24  # pixels (16 bytes each) of the views that are decoded at a time, but at least one view
ESLF_GRID = (14, 14)  # rows and columns of views in an ESLF file: pixels under each lens of a Lytro Illum
MAX_GRID_ERROR = 0.5  # distance of a camera from the fitted grid, in spacings, above which a warning is given


@dataclass(frozen=True, eq=False)
class LightField:
    """The views of a camera array of `rows` x `columns`; some views may be missing.

    `pixels` (n, height, width, 3 or 4) uint8 sRGB, the fourth channel a weight; `view_indices` (n, 2) row and column of
    each view; `camera_positions` (n, 2) float64 (u, v), u to the right and v down, in units of the spacing of columns,
    the origin in the middle of the array. `grid_basis` (2, 2) maps steps of (row, column) to steps of (u, v) on the
    regular grid that fits the positions best.
    """

    source: str
    convention: str
    pixels: np.ndarray
    view_indices: np.ndarray
    camera_positions: np.ndarray
    grid_basis: np.ndarray
    rows: int
    columns: int
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Returns the width and height of a view."""
        return self.pixels.shape[2], self.pixels.shape[1]

    @property
    def half_extent(self) -> np.ndarray:
        """Returns half of the array's extent (2,) in rows and columns, also the grid coordinates of its middle."""
        return np.array([self.rows - 1, self.columns - 1]) / 2

    def flip_v(self) -> "LightField":
        """Returns the light field with its v axis reversed, for files that count v upwards."""
        flip = np.array([1.0, -1.0])
        message = "v counts upwards where u counts to the right, as the views show; v is reversed"
        return replace(
            self,
            camera_positions=self.camera_positions * flip,
            grid_basis=self.grid_basis * flip,
            warnings=(*self.warnings, message),
        )

    def grid_rms_error(self) -> float:
        """Returns the root mean square distance of the cameras from their regular grid, in spacings."""
        offset = self.camera_positions - (self.view_indices - self.half_extent) @ self.grid_basis
        return float(np.sqrt(((offset - offset.mean(0)) ** 2).sum(1).mean()))


def read_light_field(
    path: str | Path, pattern: str = "", layout: str = "auto", grid: tuple[int, int] = (0, 0)
) -> LightField:
    """Reads a folder, .zip, .npy, .npz or one image of all views.

    `pattern` matches the file names of views. `layout` ("lenslet", "tiled") and `grid` (rows, columns) describe the
    arrangement of views in one image. InputError for a file that is no light field, UnavailableError for too little
    memory.
    """
    path = Path(path)
    if not os.path.exists(path):
        raise InputError(f"{path}: No such file or directory")
    if max(grid) > MAX_GRID or min(grid) < 0:
        raise InputError(f"{path}: grid is {list(grid)}; rows and columns must be at most {MAX_GRID}")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix == ".zip":
        return _from_archive(_open_archive(path), pattern, grid)
    if suffix in (".npy", ".npz"):
        return _from_array(path)
    if suffix.removeprefix(".") in IMAGE_SUFFIXES:
        return _from_image(path, layout, grid)
    raise InputError(f"{path}: no light field; accepted are a folder, .zip, .npy, .npz, or one image of all views")


def view_resolution(path: str | Path) -> tuple[int, int]:
    """Returns the width and height of the views, from the first view that can be read; InputError if none can."""
    path = Path(path)
    if not (path.is_dir() or path.suffix.lower() == ".zip"):
        return read_light_field(path).size
    archive = _open_archive(path)
    errors = []
    for file in find_views(archive, "", (0, 0)).files:
        try:
            view = _decode_view(archive, file)
            return view.shape[1], view.shape[0]
        except InputError as error:
            errors.append(str(error))
    raise InputError(f"{path}: no view can be read; the first error: {errors[0]}")


def from_positions(
    source: object,
    convention: str,
    pixels: np.ndarray,
    view_indices: Sequence[tuple[int, int]] | np.ndarray,
    positions: Sequence[tuple[float, float]] | np.ndarray,
    shape: tuple[int, int],
    warnings: Sequence[str] = (),
) -> LightField:
    """Makes the light field of an array of `shape` (rows, columns) from the indices and camera positions of its views.

    `view_indices` (n, 2) are rows and columns, `positions` (n, 2) are (v, u) in any unit; NaN selects a regular grid.
    A regular grid is fitted to the positions by least squares. Its spacing becomes the unit; cameras far from the grid,
    and missing views, give warnings.
    """
    rows, columns = shape
    indices, uv = np.asarray(view_indices, "i4"), np.asarray(positions, "f8")[:, ::-1]
    middle = np.array([rows - 1, columns - 1]) / 2
    steps = indices - middle
    messages = list(warnings)
    # Rows of `basis`: steps (u, v) of one row down and of one column to the right; here of a regular grid.
    basis = np.array([[0.0, 1.0], [1.0, 0.0]])
    cameras = steps @ basis
    if np.isfinite(uv).all() and np.abs(uv).max(initial=0) >= MAX_POSITION:
        raise InputError(f"{source}: a camera's position is {np.abs(uv).max():g}; it must be below {MAX_POSITION:g}")
    if np.isfinite(uv).all():
        fitted = _fit_grid(steps, uv, middle, messages)
        if fitted is not None:
            basis, cameras = fitted
    center = np.flatnonzero((steps == 0).all(1))  # the middle view, if there is one, is the origin
    if len(center):
        cameras = cameras - cameras[center[0]]
    missing = sorted({(r, c) for r in range(rows) for c in range(columns)} - {tuple(cell) for cell in indices.tolist()})
    if missing:
        names = ", ".join(f"row {r} column {c}" for r, c in missing[:8]) + (" and more" if len(missing) > 8 else "")
        messages.append(f"{len(missing)} of {rows * columns} views are missing: {names}")
    return LightField(str(source), convention, pixels, indices, cameras, basis, rows, columns, tuple(messages))


def _fit_grid(
    steps: np.ndarray, uv: np.ndarray, middle: np.ndarray, messages: list[str]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Fits a grid uv = origin + steps @ basis by least squares; returns its basis and the camera positions in spacings.

    The spacing is the length of a column's step, or of a row's if all views are in one column. `steps` (n, 2) are rows
    and columns from the middle (`middle`, the array's), `uv` (n, 2) the positions as the file gives them. None, with a
    message added to `messages`, if the positions form no grid.
    """
    matrix = np.column_stack([steps, np.ones(len(steps))])
    solution = np.linalg.lstsq(matrix, uv, rcond=None)[0]
    used = [axis for axis in (1, 0) if np.ptp(steps[:, axis]) > 0]
    lengths = np.linalg.norm(solution[:2], axis=1)
    if not used or min(lengths[used]) <= 1e-9 * max(1.0, np.abs(uv).max()):
        messages.append("the coordinates in the names do not follow the array; using a regular grid instead")
        return None
    basis, cameras = solution[:2] / lengths[used[0]], (uv - solution[2]) / lengths[used[0]]
    for axis in {0, 1} - set(used):  # one row or one column: the other basis vector is perpendicular to its own
        other = basis[1 - axis]
        basis[axis] = np.array([-other[1], other[0]]) if axis == 0 else np.array([other[1], -other[0]])
    if abs(np.linalg.det(basis)) < 1e-3:
        messages.append("the coordinates in the names lie on one line; using a regular grid instead")
        return None
    error = np.linalg.norm(cameras - steps @ basis, axis=1)
    far = np.flatnonzero(error > MAX_GRID_ERROR)
    if len(far):
        worst = steps[np.argmax(error)] + middle
        messages.append(
            f"{len(far)} cameras are more than {MAX_GRID_ERROR} spacings from the fitted grid "
            f"(the worst near row {worst[0]:g}, column {worst[1]:g}: {error.max():.2f})"
        )
    return basis, cameras


def _open_archive(path: Path) -> Folder | Zip:
    return Folder(path) if path.is_dir() else Zip(path)


def _from_archive(archive: Folder | Zip, pattern: str, grid: tuple[int, int]) -> LightField:
    views = find_views(archive, pattern, grid)
    pixels, files, warnings = _decode_views(archive, views)
    indices = [(file.row, file.column) for file in files]
    positions = [(file.v, file.u) for file in files]
    return from_positions(
        archive.path, views.convention, pixels, indices, positions, (views.rows, views.columns), warnings
    )


def _decode_view(archive: Folder | Zip, file: ViewFile, size: tuple[int, int] | None = None) -> np.ndarray:
    """The pixels (height, width, 4) of a view; InputError, before they are decoded, unless they have this size."""
    return read_pixels(archive.full_name(file.name), data=archive.read(file.name), size=size)


def _decode_views(archive: Folder | Zip, views: ViewList) -> tuple[np.ndarray, list[ViewFile], list[str]]:
    """Decodes the views on several threads.

    Returns the pixels (n, height, width, 3) of the readable views, their files, and a warning for each other view.
    """
    warnings: list[str] = []
    decoded: list[ViewFile] = []
    pixels: np.ndarray | None = None
    pending: list[tuple[ViewFile, Future[np.ndarray]]] = []
    files, most = list(views.files), 1  # one view at a time until the size is known from the first one
    size: tuple[int, int] | None = None
    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 16)) as pool:
        while files or pending:
            while files and len(pending) < most:
                file = files.pop(0)
                pending.append((file, pool.submit(_decode_view, archive, file, size)))
            file, future = pending.pop(0)
            try:
                view = future.result()
            except InputError as error:
                # a hostile file, or views of several sizes: the whole light field is refused
                if "zip bomb" in str(error) or OTHER_SIZE in str(error):
                    raise
                warnings.append(f"{error}; the other views are shown")
                continue
            if pixels is None:
                pixels = _allocate_views(archive.path, (len(views.files), *view.shape[:2], 3))
                size = view.shape[1], view.shape[0]
                most = min(max(MAX_PENDING_PIXELS // math.prod(size), 1), MAX_PENDING_VIEWS)
            pixels[len(decoded)] = view[..., :3]
            decoded.append(file)
    if pixels is None:
        raise InputError(f"{archive.path}: no view can be read; the first error: {warnings[0]}")
    return pixels[: len(decoded)], decoded, warnings


def _allocate_views(source: Path, shape: tuple[int, int, int, int]) -> np.ndarray:
    """Allocates host memory for the views, if it is there: see check_memory()."""
    advice = "a .npy of the light field is memory-mapped instead"
    check_memory(math.prod(shape), f"{source}: {shape[0]} views of {shape[2]} x {shape[1]} ({advice})")
    return np.empty(shape, "u1")


def _from_array(path: Path) -> LightField:
    """Reads a light field that is one array in a .npy or .npz file."""
    array, positions = read_array(path)
    rows, columns, height, width, channels = array.shape
    if max(rows, columns) > MAX_GRID or rows * columns < 1 or height * width > MAX_VIEW_PIXELS:
        raise InputError(
            f"{path}: {rows} x {columns} views of {width} x {height}; allowed are {MAX_GRID} x {MAX_GRID} "
            f"views of {MAX_VIEW_PIXELS} pixels"
        )
    pixels = array.reshape(rows * columns, height, width, channels)
    return _complete(path, f"array in {path.suffix}", pixels, positions, (rows, columns))


def _complete(
    path: Path, convention: str, pixels: np.ndarray, positions: np.ndarray, shape: tuple[int, int], *warnings: str
) -> LightField:
    """Makes the light field of an array of `shape` (rows, columns) with all views, row by row."""
    return from_positions(path, convention, pixels, np.indices(shape).reshape(2, -1).T, positions, shape, warnings)


def _from_image(path: Path, layout: str, grid: tuple[int, int]) -> LightField:
    """Reads a lenslet image (view (r, c) is pixel (r, c) under each lens) or an image of tiled views."""
    if layout == "auto":
        if "eslf" not in path.stem.lower():
            raise InputError(
                f'{path}: one image: set layout = "lenslet" (each lens a small block of pixels, ESLF) or '
                '"tiled" (the views side by side), and grid = [rows, columns]'
            )
        layout = "lenslet"
    rows, columns = grid if all(grid) else ESLF_GRID if layout == "lenslet" else (0, 0)
    if not rows:
        raise InputError(f"{path}: tiled views need grid = [rows, columns]; it is {list(grid)}")
    image = read_pixels(path)
    height, width = image.shape[0] // rows, image.shape[1] // columns
    if (image.shape[0] % rows or image.shape[1] % columns) and layout == "tiled" or not (height and width):
        raise InputError(
            f"{path}: {image.shape[1]} x {image.shape[0]} pixels are not {rows} rows of {columns} views of one size"
        )
    channels = 3 if (image[..., 3] == 255).all() else 4
    image = image[: rows * height, : columns * width, :channels]
    if layout == "lenslet":
        views = image.reshape(height, rows, width, columns, channels).transpose(1, 3, 0, 2, 4)
    else:
        views = image.reshape(rows, height, columns, width, channels).transpose(0, 2, 1, 3, 4)
    pixels = np.ascontiguousarray(views).reshape(rows * columns, height, width, channels)
    weighted = pixels[..., 3].any((1, 2)) if channels == 4 else np.ones(len(pixels), bool)
    warnings = [f"{int((~weighted).sum())} views have weight 0 everywhere"] if not weighted.all() else []
    return _complete(path, layout, pixels, np.full((rows * columns, 2), np.nan), (rows, columns), *warnings)
