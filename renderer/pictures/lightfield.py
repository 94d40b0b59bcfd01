"""The picture `lightfield`: new views, refocused pictures and disparity maps (shaders/lightfields/lightfield.cu).

Isaksen et al. 2000 (synthetic apertures), Ng 2005 (refocusing by shift and add). The views are 8-bit on the device; a
light field that is larger than the device's memory streams through it in bands of rows.
"""

import math
import sys
from pathlib import Path
from typing import Literal

import numpy as np

from renderer.formats.images import IMAGE_SUFFIXES, srgb_to_linear
from renderer.gpu import Buffer, DeviceContext
from renderer.lightfields import aperture
from renderer.lightfields.conventions import pattern_fields
from renderer.lightfields.depth_colors import COLOR_COUNT, gray_table, perceptual_table, smoothing_decays
from renderer.lightfields.device_views import DeviceViews
from renderer.lightfields.disparity import disparity_at, disparity_range, resolve_v_direction
from renderer.lightfields.kernels import LightFieldKernels
from renderer.lightfields.light_field import LightField, read_light_field, view_resolution
from renderer.pictures.picture import AccumulatingPicture, Frame, Size, Tile
from renderer.records import dataclass, replace
from renderer.scene.panel_grid import grid
from renderer.scene.scene import Scene, ToneMapping
from renderer.scene.schema import PictureSettings, required_file, setting
from renderer.system.files import resolve

LIGHT_FIELD_SUFFIXES = ("", ".zip", ".npy", ".npz", *IMAGE_SUFFIXES)
STACK_GAP = 2  # pixels between the pictures of a focal stack


@dataclass(frozen=True)
class Settings(PictureSettings):
    """Settings of a light field picture; the help texts describe each."""

    light_field: str = required_file(
        LIGHT_FIELD_SUFFIXES, "folder or .zip of views, .npy, .npz, or one image of all views"
    )
    view: aperture.VirtualCamera = aperture.VirtualCamera()
    output: Literal["refocused", "focal_stack", "all_in_focus", "disparity"] = setting("refocused", key="v")
    flatten: Literal["mean", "median", "max", "min"] = setting(
        "mean",
        help="how the shifted views are combined; median removes occluders that cover a point in less than half of "
        "the views",
        key="f",
    )
    aperture_shape: aperture.ApertureShape = setting(
        "disc", help="shape of the aperture; all weights every view equally", key="a"
    )
    disparity: float = setting(
        0.0,
        -64.0,
        64.0,
        "disparity of the focal plane in pixels between neighboring cameras, added to that of the clicked point",
    )
    disparity_min: float = setting(
        0.0, -64.0, 64.0, "disparity of the farthest plane of focal_stack, all_in_focus and disparity; = max: measured"
    )
    disparity_max: float = setting(0.0, -64.0, 64.0, "disparity of the nearest of these planes")
    plane_count: int = setting(24, 2, 256, "planes from disparity_min to disparity_max")
    window_radius: int = setting(2, 0, 16, "pixels to each side over which sharpness and matching cost are averaged")
    smoothing: float = setting(
        12.0, 0.0, 1e4, "pixels over which a disparity map follows confident neighbors of like color; 0: none"
    )
    shading: Literal["perceptual", "gray"] = setting(
        "perceptual", help="colors of a disparity map: violet is far and yellow near, or black and white"
    )
    pattern: str = setting("", help="pattern of the views' names: {row} and {col}, {v} and {u}, or {index}")
    layout: Literal["auto", "lenslet", "tiled"] = setting("auto", help="how one image holds all views")
    grid: tuple[int, int] = setting((0, 0), 0, 256, "rows and columns of cameras, where the names do not give them")
    memory_mib: int = setting(0, 0, 1 << 30, "device memory for the light field; 0: most of what the device has")

    def __post_init__(self) -> None:
        """Raise ValueError for a reversed range of disparities, and for a pattern that places no view."""
        if self.pattern:
            pattern_fields(self.pattern)
        if self.disparity_min > self.disparity_max:
            raise ValueError(
                f"disparity_min is {self.disparity_min} and disparity_max {self.disparity_max}; "
                "disparity_min must not exceed disparity_max"
            )

    def with_view(self, view: aperture.VirtualCamera) -> "Settings":
        """These settings with the view; a new click focuses on its point, so it sets the added disparity to 0."""
        is_click = view.focus_point not in (None, self.view.focus_point)
        return replace(self, view=view, disparity=0.0 if is_click else self.disparity)


def open_file(path: Path) -> Scene:
    """The scene of a light field file: full aperture, focused on the center, in the size of the views."""
    path = resolve(Path(path))
    settings = Settings(str(path), aperture.VirtualCamera().click(0.0, 0.0))
    return Scene(path, path.stem, "lightfield", settings, Picture.tone, view_resolution(path))


class Picture(AccumulatingPicture[Settings]):
    """Draws a light field: the full picture in one draw, or in each draw one of `plane_count` planes, its samples."""

    settings_type = Settings
    tone = ToneMapping("manual")

    def __init__(self, gpu: DeviceContext) -> None:
        """Load nothing yet: the first draw opens the light field."""
        super().__init__(gpu)
        self._source: tuple[object, ...] | None = None  # the settings by which the light field was read
        self._aperture: tuple[object, ...] = ()  # the settings that determine the weights
        self._weights = self._position = np.empty(0)  # weights (n,) of the views; (u, v) of the camera, in spacings
        self._focus_disparity = 0.0  # disparity of the focal plane, in pixels between neighboring cameras
        self._settings: Settings | None = None  # settings of the last draw
        # Of the pictures in the frame; None: one picture fills it.
        self._rectangles: list[tuple[int, int, int, int]] | None = None

    def begin(self, settings: Settings, size: Size, time: float, tile: Tile) -> None:
        """Load the light field, compute weights and focus; allocate the frame and lay out its pictures."""
        self._settings = settings
        self._open(settings)
        self._prepare(settings, size, tile)

    def add_sample(self, settings: Settings, size: Size, time: float, tile: Tile) -> Frame:
        """Draw the picture, or the next plane of focal_stack, all_in_focus and disparity."""
        if settings.output == "refocused" or self.samples < settings.plane_count:
            self._advance(settings)
        return self._frame

    def sample_count(self, settings: Settings, size: tuple[int, int]) -> int:
        """Number of draws that finish the picture."""
        return 1 if settings.output == "refocused" else settings.plane_count

    def report(self) -> dict[str, object]:
        """The views, the disparities and the storage of the last draw; warnings of the light field."""
        assert self._settings is not None
        field, settings = self._field, self._settings
        return {
            "convention": field.convention,
            "views": f"{len(field.pixels)} of {field.rows} x {field.columns}, {field.size[0]} x {field.size[1]}",
            "views_used": int((self._weights > aperture.MIN_WEIGHT).sum()),
            "focus_disparity": round(self._focus_disparity, 3),
            "disparity_range": [round(disparity, 3) for disparity in self._range(settings)],
            "grid_rms_error": round(field.grid_rms_error(), 4),
            "storage": self._views.storage,
            "warnings": list(field.warnings),
        }

    def _open(self, settings: Settings) -> None:
        """Load the light field of these settings to the device, unless it is loaded. Raises InputError.

        `_picture` is the present plane, `_best` the result of the planes so far (or the matching of keep_min_cost),
        `_score` the sharpness of `_best`, `_previous_cost` the cost of the plane before, `_weighted` the disparities of
        weigh_disparity (lightfield.cu).
        """
        source = (settings.light_field, settings.pattern, settings.layout, settings.grid, settings.memory_mib)
        if source == self._source:
            return
        read = read_light_field(settings.light_field, settings.pattern, settings.layout, settings.grid)
        field = resolve_v_direction(read)
        for warning in field.warnings:
            print(f"rayfold: {Path(settings.light_field).name}: {warning}", file=sys.stderr)
        self._cache = {}
        device, (width, height) = self.gpu.device, field.size
        self._field: LightField = field
        self._views = DeviceViews(device, field, settings.memory_mib << 20)
        self._kernels = LightFieldKernels(device, field)
        self._picture, self._best = device.buffer((height, width, 4)), device.buffer((height, width, 4))
        self._weighted = device.buffer((height, width, 2))
        self._score, self._previous_cost = device.buffer((height, width)), device.buffer((height, width))
        self._linear = device.buffer(256).write(srgb_to_linear(np.arange(256, dtype="u1")))
        self._shift_buffer = device.buffer(len(field.pixels), aperture.VIEW_SHIFT)
        self._source = source

    def _range(self, settings: Settings) -> tuple[float, float]:
        """Return the least and the greatest disparity: from the settings, or measured."""
        if settings.disparity_min < settings.disparity_max:
            return settings.disparity_min, settings.disparity_max
        return self.cached("range", None, lambda: disparity_range(self._field))

    def _prepare(self, settings: Settings, size: Size, tile: Tile) -> None:
        """Sets the weights of the views, the focus, and the rectangles of the picture (several of a focal stack)."""
        field, camera, shape = self._field, settings.view, settings.aperture_shape
        self._aperture = (camera.u, camera.v, camera.aperture, shape)
        weights = self.cached("weights", self._aperture, lambda: aperture.view_weights(field, camera, shape))
        self._weights, self._position = weights, aperture.camera_position(field, camera.u, camera.v)
        self._focus_disparity = settings.disparity + self._clicked_disparity(settings, size)
        count = settings.plane_count if settings.output == "focal_stack" else 1
        left, top, width, height = tile
        if size == field.size == (width, height) and count == 1 and settings.output != "disparity":
            self._frame = self._best if settings.output == "all_in_focus" else self._picture
            self._rectangles = None
            return
        self._frame = self.gpu.device.buffer((height, width, 4))
        self._kernels["clear_black"](width * height, self._frame, width * height)
        rectangles = grid(count, size, 0, STACK_GAP if count > 1 else 0)
        self._rectangles = [(x - left, y - top, w, h) for x, y, w, h in rectangles]

    def _clicked_disparity(self, settings: Settings, size: tuple[int, int]) -> float:
        """Disparity of the clicked point, measured once per click; 0 without a click."""
        point = settings.view.focus_point
        if point is None:
            return 0.0
        x, y, u, v = point
        low, high = self._range(settings)
        scale, from_x, from_y = self._letterbox(*size)
        px = (x * size[1] + size[0] / 2) * scale + from_x - 0.5
        py = (y * size[1] + size[1] / 2) * scale + from_y - 0.5
        candidates = np.linspace(low, high, max(64, math.ceil(8 * (high - low))))
        position = aperture.camera_position(self._field, u, v)
        key = point, size, low, high
        return self.cached("focus", key, lambda: disparity_at(self._field, px, py, position, candidates))

    def _advance(self, settings: Settings) -> None:
        """Compute the refocused picture, or the next plane of one of the other outputs."""
        if settings.output == "refocused":
            self._flatten(settings.flatten, self._focus_disparity, self._picture)
            self._blit(self._picture, 0)
            return
        low, high = self._range(settings)
        intervals = max(settings.plane_count - 1, 1)
        disparity, step = low + (high - low) * self.samples / intervals, (high - low) / intervals
        width, height = self._field.size
        pixels, radius, is_first_plane = width * height, settings.window_radius, int(self.samples == 0)
        shown, rectangle = self._picture, 0
        if settings.output == "disparity":
            self._match(disparity)
            self._kernels["keep_min_cost"](
                pixels, self._picture, self._guide(), self._best, self._previous_cost, radius, disparity, is_first_plane
            )
            self._shade_disparity(settings, (low, high), step)
        else:
            self._flatten(settings.flatten, disparity, self._picture)
        if settings.output == "focal_stack":
            rectangle = self.samples
        elif settings.output == "all_in_focus":
            self._kernels["keep_sharpest"](pixels, self._picture, self._best, self._score, radius, is_first_plane)
            shown = self._best
        self._blit(shown, rectangle)

    def _shade_disparity(self, settings: Settings, limits: tuple[float, float], step: float) -> None:
        """Show the disparities of the planes drawn so far as colors; after the last plane, smooth them by the view."""
        width, height = self._field.size
        self._kernels["weigh_disparity"](width * height, self._best, self._weighted, step)
        if settings.smoothing and self.samples + 1 == settings.plane_count:  # not while planes are missing
            guide = self._guide()
            for decay in smoothing_decays(settings.smoothing):
                self._kernels["smooth_rows"](height, self._weighted, guide, decay)
                self._kernels["smooth_columns"](width, self._weighted, guide, decay)
        make_table = perceptual_table if settings.shading == "perceptual" else gray_table
        device = self.gpu.device
        colors = self.cached("colors", settings.shading, lambda: device.buffer((COLOR_COUNT, 4)).write(make_table()))
        self._kernels["shade_disparity"](width * height, self._weighted, colors, self._picture, *limits)

    def _guide(self) -> Buffer:
        """Return the view nearest to the camera as a device buffer, (height, width, 4) float32 sRGB, 0 to 1."""
        view = int(np.linalg.norm(self._field.camera_positions - self._position, axis=1).argmin())
        return self.cached("guide", view, lambda: self._upload_view(view))

    def _upload_view(self, view: int) -> Buffer:
        width, height = self._field.size
        texels = np.ones((height, width, 4), "f4")
        texels[..., :3] = self._field.pixels[view][..., :3] / np.float32(255)
        return self.gpu.device.buffer((height, width, 4)).write(texels)

    def _match(self, disparity: float) -> None:
        """Compute the matching costs of the plane of `disparity`, for four halves of the views, into the picture."""
        device, count = self.gpu.device, len(self._field.pixels)
        ramp = self.cached("ramp", None, lambda: device.buffer(256).write(np.linspace(0, 1, 256, dtype="f4")))
        weighted, key = (self._field, self._weights, self._position), self._aperture
        halves = self.cached("halves", key, lambda: device.buffer(count, "i4").write(aperture.view_halves(*weighted)))
        self._flatten("half_variances", disparity, self._picture, ramp, halves)

    def _flatten(
        self, method: str, disparity: float, target: Buffer, table: Buffer | None = None, *extra: Buffer
    ) -> None:
        """Combine the weighted views, shifted so that the plane of `disparity` is in focus, into `target`.

        `table` decodes the views' bytes; None: to linear light.
        """
        key, launch, table = (self._aperture, disparity), self._kernels[method], table or self._linear
        weighted = self._field, self._weights, self._position
        records = self.cached("shifts", key, lambda: aperture.view_shifts(*weighted, disparity))

        def work(views: Buffer, *rows: int) -> None:
            launch(views, self._shift_buffer, len(records), table, target, *rows, *extra)

        self._views.for_each_band(records, self._shift_buffer, work)

    def _letterbox(self, width: int, height: int) -> tuple[float, float, float]:
        """Fit the view into a rectangle: return view pixels per pixel, and the view's (x, y) at its upper left."""
        w, h = self._field.size
        scale = max(w / width, h / height)
        return scale, (w - width * scale) / 2, (h - height * scale) / 2

    def _blit(self, picture: Buffer, index: int) -> None:
        """Draw a picture of the views' size into rectangle `index` of the frame, unless the picture is the frame."""
        if self._rectangles is None:
            return
        x, y, width, height = self._rectangles[index]
        scale, from_x, from_y = self._letterbox(width, height)
        frame_height, frame_width = self._frame.shape[:2]
        left, top = max(x, 0), max(y, 0)
        columns, rows = min(x + width, frame_width) - left, min(y + height, frame_height) - top
        if columns > 0 and rows > 0:
            visible = (left - x, top - y, columns, rows)
            samples = max(1, math.ceil(scale - 1e-6))
            self._kernels["blit"](
                columns * rows, picture, self._frame, frame_width, left, top, *visible, from_x, from_y, scale, samples
            )
