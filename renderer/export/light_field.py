"""Light fields of a scene: an array of parallel cameras, and one PNG a view under Stanford's file names.

All cameras look the same way and move in the picture's plane, so a point at distance z (along the view) moves by
F * baseline / z pixels between neighbors, F the focal length in pixels, exactly: the two-plane formulas hold with the
second plane at infinity. Views are written in plain sRGB with one exposure, so that reading them recovers linear light.
"""

import math
import time
from pathlib import Path

from renderer.errors import UserError
from renderer.export.frames import Manifest
from renderer.export.render import RenderJob, RenderResult, render, write
from renderer.formats.images import read_recipe
from renderer.pictures import make_recipe, tone_table
from renderer.pictures.picture import AnyPicture
from renderer.plain import Json
from renderer.records import dataclass, replace
from renderer.scene.cameras import Camera
from renderer.scene.scene import Scene, ToneMapping
from renderer.system.files import resolve
from renderer.system.progress import Progress


@dataclass(frozen=True)
class CameraArray:
    """`rows` x `columns` cameras, `baseline` apart; the camera's target moves `disparity` pixels between neighbors."""

    camera: Camera
    rows: int
    columns: int
    baseline: float
    disparity: float

    def views(self) -> list[int]:
        """The numbers of the cameras, row by row, from the center outwards: an interrupted export is a smaller one."""
        return sorted(range(self.rows * self.columns), key=lambda number: max(map(abs, self.camera_offset(number))))

    def camera_offset(self, number: int) -> tuple[float, float]:
        """Offset (v downwards, u to the right) of a camera from the center of the array, in scene units."""
        row, column = divmod(number, self.columns)
        return (row - (self.rows - 1) / 2) * self.baseline, (column - (self.columns - 1) / 2) * self.baseline

    def camera_at(self, number: int) -> Camera:
        """The camera of a view."""
        v, u = self.camera_offset(number)
        right, up, _ = self.camera.axes()
        return self.camera.shifted(u * right - v * up)

    def name(self, number: int) -> str:
        """File name of a view after Stanford's convention: row, column, v, u."""
        (row, column), (v, u) = divmod(number, self.columns), self.camera_offset(number)
        return f"out_{row:02d}_{column:02d}_{v:.6f}_{u:.6f}_.png"


def camera_array(scene: Scene, size: tuple[int, int], grid: tuple[int, int], baseline: float | None) -> CameraArray:
    """Returns the array of --light-field and --baseline; without a baseline the target moves by 2 pixels.

    Raises UserError for a picture without a perspective camera, and for a baseline that is too small.
    """
    camera = scene.settings.view
    if not isinstance(camera, Camera):
        raise UserError(f"--light-field {grid[0]}x{grid[1]}: a {scene.picture} picture has no camera in space")
    projection = getattr(scene.settings, "projection", "perspective")
    if projection != "perspective":
        raise UserError(f"--light-field {grid[0]}x{grid[1]}: projection is {projection}; it must be perspective")
    # In pixels; fit_scale() widens the angle where a picture is narrow.
    focal = size[1] / (2 * math.tan(math.radians(camera.fov_degrees) / 2) * camera.fit_scale(size[0] / size[1]))
    distance = math.dist(camera.position, camera.target)
    if baseline is None:
        baseline = float(f"{2 * distance / focal:.4g}")
    if not (math.isfinite(baseline) and baseline >= 1e-5):
        raise UserError(f"--baseline {baseline:g}: must be at least 0.00001 lengths of the scene")
    return CameraArray(camera, *grid, baseline, focal * baseline / distance)


def check_folder(folder: Path, array: CameraArray) -> None:
    """Makes the folder; raises UserError if that fails, or if the folder holds pictures that are no views."""
    names = set(map(array.name, array.views()))
    try:
        folder.mkdir(exist_ok=True)
        others = [entry.name for entry in folder.iterdir() if entry.suffix == ".png" and entry.name not in names]
    except OSError as error:
        raise UserError(f"-o {folder}: cannot be a folder of views: {error.strerror}") from error
    if others:
        raise UserError(f"-o {folder}: holds other pictures ({others[0]}); the views need an empty folder")


def view_scene(scene: Scene, array: CameraArray, number: int) -> Scene:
    """The scene with the camera of a view, and without a lens: views are sharp everywhere."""
    lens = {} if scene.settings.lens_radius is None else {"lens_radius": 0.0}
    return replace(scene, settings=replace(scene.settings, view=array.camera_at(number), **lens))


class LightFieldViews(Manifest):
    """The manifest of the views of an array in a folder, and the exposure that all views share."""

    is_numbered = False

    def __init__(self, folder: Path, array: CameraArray, scene: Scene, facts: Json, force: bool = False):
        """`facts` are the size, samples and time of the views in their recipes."""
        self.array, self._folder, self._scene = array, folder, scene
        # "tone", because facts(number) leaves it out of the scene, and another one would meter another exposure.
        facts = facts | {"grid": [array.rows, array.columns], "baseline": array.baseline, "tone": tone_table(scene)}
        super().__init__(folder / "views_#.png", make_recipe(scene, resolve(folder), **facts), force)

    def file(self, number: int) -> Path:
        """Path of a view's file."""
        return self._folder / self.array.name(number)

    def facts(self, number: int) -> Json:
        """The scene in a view's file, but for its tone mapping: all views have the exposure of the first."""
        tables = make_recipe(view_scene(self._scene, self.array, number), resolve(self._folder))["scene"]
        return {"scene": {key: table for key, table in tables.items() if key != "tone"}}

    def exposure_before(self, wanted: list[int]) -> float | None:
        """The exposure in stops that all finished views share; None if no view is finished."""
        done = [number for number in self.array.views() if number not in wanted]
        return float(read_recipe(self.file(done[0]))["scene"]["tone"].get("ev", 0.0)) if done else None


def render_light_field(
    picture: AnyPicture, job: RenderJob, views: LightFieldViews, overwrite: bool, progress: Progress
) -> str:
    """Renders and writes the views that the manifest does not list; returns the device's name."""
    numbers, device = views.to_draw(views.array.views(), overwrite), "none: every view was done"
    ev = views.exposure_before(numbers)
    for number in numbers:
        began = time.monotonic()
        rendered, drawn = render_view(picture, job, views.array, number, ev, progress)
        ev = drawn.scene.tone.ev  # of the first view, for all others
        write(views.file(number), rendered, drawn)
        views.add(number, time.monotonic() - began, rendered.device)
        device = rendered.device
    return device


def render_view(
    picture: AnyPicture, job: RenderJob, array: CameraArray, number: int, ev: float | None, progress: Progress
) -> tuple[RenderResult, RenderJob]:
    """Renders one view; returns the picture, and the job that write() takes for the view's file.

    The file is plain sRGB with an exposure of `ev` stops; None meters the exposure of this view.
    """
    scene = view_scene(job.scene, array, number)
    rendered = render(picture, replace(job, scene=scene), progress)
    if ev is None:
        ev = math.log2(rendered.meter.exposure(scene.tone))
    return rendered, replace(job, scene=replace(scene, tone=ToneMapping("manual", ev, "none")))
