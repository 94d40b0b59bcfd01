"""A light field of a scene: the same camera at every place of an array, and the views under Stanford's names.

All cameras look the same way and move in the picture's plane, so a point at distance z (along the view) moves by
F * baseline / z pixels between neighbours, F the focal length in pixels, exactly: the two-plane formulas hold with the
second plane at infinity. Views are written in plain sRGB of one common exposure, so that reading them gives light back.
"""

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from renderer.errors import UserError
from renderer.export.frames import Manifest
from renderer.export.render import Job, Rendered, render, write
from renderer.formats.images import read_recipe
from renderer.progress import Progress
from renderer.scene.cameras import Camera
from renderer.scene.scene import Scene, ToneMapping


@dataclass(frozen=True)
class Array:
    """`rows` x `columns` cameras, `baseline` apart; the camera's target moves `disparity` pixels between neighbours."""

    camera: Camera
    rows: int
    columns: int
    baseline: float
    disparity: float

    def views(self) -> list[tuple[int, int]]:
        """Row and column of each camera, the middle ones first: what is interrupted is a smaller field."""
        middle = (self.rows - 1) / 2, (self.columns - 1) / 2
        cells = [(row, column) for row in range(self.rows) for column in range(self.columns)]
        return sorted(cells, key=lambda cell: max(abs(cell[0] - middle[0]), abs(cell[1] - middle[1])))

    def place(self, row: int, column: int) -> tuple[float, float]:
        """v downwards and u to the right of a camera, from the middle of the array, in lengths of the scene."""
        return (row - (self.rows - 1) / 2) * self.baseline, (column - (self.columns - 1) / 2) * self.baseline

    def camera_at(self, row: int, column: int) -> Camera:
        v, u = self.place(row, column)
        right, up, _ = self.camera.axes()
        shift = u * right - v * up
        moved = (tuple(float(x) for x in np.add(point, shift)) for point in (self.camera.position, self.camera.target))
        return replace(self.camera, **dict(zip(("position", "target"), moved, strict=True)))

    def name(self, row: int, column: int) -> str:
        v, u = self.place(row, column)
        return f"out_{row:02d}_{column:02d}_{v:.6f}_{u:.6f}_.png"


def array_of(scene: Scene, size: tuple[int, int], grid: tuple[int, int], baseline: float | None) -> Array:
    """The array that --grid and --baseline ask for; without a baseline the target moves by 2 pixels."""
    camera = scene.settings.view
    if not isinstance(camera, Camera):
        raise UserError(f"--grid {grid[0]}x{grid[1]}: a {scene.picture} picture has no camera in space")
    focal = size[1] / (2 * math.tan(math.radians(camera.fov_degrees) / 2))
    distance = math.dist(camera.position, camera.target)
    if baseline is None:
        baseline = float(f"{2 * distance / focal:.4g}")
    if not (math.isfinite(baseline) and baseline >= 1e-5):
        raise UserError(f"--baseline {baseline:g}: must be at least 0.00001 lengths of the scene")
    return Array(camera, *grid, baseline, focal * baseline / distance)


def check_folder(folder: Path, array: Array) -> None:
    """Makes the folder; UserError when it cannot be, or holds pictures that would mix with the views."""
    own = {array.name(row, column) for row, column in array.views()}
    try:
        folder.mkdir(exist_ok=True)
        others = [entry.name for entry in folder.iterdir() if entry.suffix == ".png" and entry.name not in own]
    except OSError as error:
        raise UserError(f"-o {folder}: cannot be a folder of views: {error.strerror}") from error
    if others:
        raise UserError(f"-o {folder}: holds other pictures ({others[0]}); the views want a folder of their own")


def pinhole(settings):
    """The settings without the lens that they may have: a view is sharp everywhere, the field makes the lens."""
    return replace(settings, lens_radius=0.0) if settings.lens_radius is not None else settings


def view_scene(scene: Scene, array: Array, row: int, column: int) -> Scene:
    """The scene as the camera of a cell sees it."""
    return replace(scene, settings=replace(pinhole(scene.settings), view=array.camera_at(row, column)))


def tone_of(rendered: Rendered, tone: ToneMapping) -> ToneMapping:
    """The tone of all views where this is the middle one: its exposure, and plain sRGB."""
    return ToneMapping("manual", math.log2(rendered.meter.exposure(tone)), "none")


class Views:
    """The views of an array in a folder: which are done, by a manifest beside them, and the exposure they share."""

    def __init__(self, folder: Path, array: Array, recipe: dict):
        self.array, self._folder = array, folder
        pattern = folder / "views_#.png"
        told = recipe | {"grid": [array.rows, array.columns], "baseline": array.baseline}
        self._manifest = Manifest(pattern, told, lambda number: folder / array.name(*divmod(number, array.columns)))

    def path(self, cell: tuple[int, int]) -> Path:
        return self._folder / self.array.name(*cell)

    def wanted(self, overwrite: bool) -> list[tuple[int, int]]:
        """The cells that are not done, the middle one first: all of them where that one is not."""
        cells = self.array.views()
        if overwrite or not self._manifest.done(self._number(cells[0])):
            return cells
        return [cell for cell in cells if not self._manifest.done(self._number(cell))]

    def exposure(self) -> float:
        """The stops that the middle view was written with."""
        return read_recipe(self.path(self.array.views()[0]))["scene"]["tone"].get("ev", 0.0)

    def add(self, cell: tuple[int, int], seconds: float, device: str) -> None:
        self._manifest.add(self._number(cell), seconds, device)

    def _number(self, cell: tuple[int, int]) -> int:
        return cell[0] * self.array.columns + cell[1]


def render_field(picture, job: Job, views: Views, overwrite: bool, progress: Progress) -> str:
    """Renders and writes every view that is not done; returns the device's name."""
    cells, tone = views.wanted(overwrite), None
    device = "none: every view was done"
    for cell in cells:
        began = time.monotonic()
        if tone is None and cell != views.array.views()[0]:
            tone = ToneMapping("manual", views.exposure(), "none")
        scene = view_scene(job.scene, views.array, *cell)
        rendered = render(picture, replace(job, scene=scene), progress)
        tone = tone or tone_of(rendered, scene.tone)
        write(views.path(cell), rendered, replace(job, scene=replace(scene, tone=tone)))
        views.add(cell, time.monotonic() - began, rendered.device)
        device = rendered.device
    return device
