"""Iterated function systems and fractal flames: the chaos game with exact sums, developed as flam3 does.

One draw is some more steps of every chain; the first is about a million samples, each next one 41 % of all before it,
up to a bound. The picture is a function of settings, size, time and number of draws alone.
"""

import math
import types
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from renderer.errors import InputError, UserError
from renderer.flames.chaos_game import BLOCK, ChaosGame
from renderer.flames.genome import Flame, Xform
from renderer.flames.interpolation import KeyFrame
from renderer.flames.postprocess import BucketGrid, ExposureSettings, Postprocess
from renderer.flames.temporal import make_passes, make_schedule, make_temporal_samples, middle_sample
from renderer.flames.xml.read import print_warnings, read_flames
from renderer.gpu import DeviceContext
from renderer.pictures.picture import Picture as BasePicture
from renderer.scene.cameras import Camera, View2D
from renderer.scene.scene import Scene, ToneMapping
from renderer.scene.schema import PictureSettings, setting

MAKING_UP = 3  # rounds of steps for those that ended in bad points


@dataclass(frozen=True)
class Settings(Flame, PictureSettings):
    """A flame and how it is looked at. y grows upwards in xforms of ours, downwards in .flame files.

    Where there are key frames they say the flame of each time; the view is then relative to the first one's camera.
    """

    view: View2D = View2D()
    y_axis: Literal["up", "down"] = "up"
    seed: int = 0
    transparent: bool = setting(False, help="alpha instead of the background")
    early_clip: bool = setting(False, help="curves and clips each bucket before the spatial filter, for sharper edges")
    pixel_aspect: float = setting(1.0, 1e-3, 1e3, "width of a pixel by its height")
    keyframes: tuple[KeyFrame, ...] = ()

    def __post_init__(self):
        super().__post_init__()
        times = [key.time for key in self.keyframes]
        if not isinstance(self.view, Camera) and self.is_3d:
            raise ValueError("affine has 12 numbers; xforms of space are drawn by the picture flame3d")
        if any(two <= one for one, two in pairwise(times)):
            raise ValueError(f"keys: the times {times} must increase")


def settings_from_keyframe(key: KeyFrame, keys: tuple[KeyFrame, ...] = ()) -> Settings:
    """The settings that draw a flame of a file."""
    values = {f.name: getattr(key.flame, f.name) for f in fields(Flame)}
    values["quality"] = min(max(key.quality, 1e-3), 1e9)
    return Settings(**values, view=key.view, y_axis="down", pixel_aspect=key.pixel_aspect, keyframes=keys)


def to_keyframe(settings: Settings, size: tuple[int, int], time: float = 0.0, name: str = "") -> KeyFrame:
    """The flame and its view as a key frame of `size`, in the settings' own direction of y."""
    flame = Flame(**{f.name: getattr(settings, f.name) for f in fields(Flame)})
    view, extra = settings.view, types.MappingProxyType({"name": name} if name else {})
    return KeyFrame(
        flame, time, size, (view.center[0], -view.center[1]), size[1] / view.height, 0.0, view.rotation_degrees,
        settings.pixel_aspect, extra=extra,
    )  # fmt: skip


def keyframes_for_file(settings: Settings, size: tuple[int, int], name: str) -> list[KeyFrame]:
    """What a .flame file of the settings holds, where y grows downwards: other flames are turned over at their end."""
    keys = settings.keyframes or (to_keyframe(settings, size, 0.0, name),)
    return [replace(key, flame=flip_y(key.flame)) for key in keys] if settings.y_axis == "up" else list(keys)


def flip_y(flame: Flame) -> Flame:
    """The flame whose points have the opposite y: what its final map plots is mirrored."""
    final = flame.final_xform or Xform(color_speed=0.0)
    if final.opacity != 1:
        raise UserError("a flame with y upwards and a final map of an opacity below 1 cannot be written as a .flame")
    a, b, c, d, e, f = final.post
    return replace(flame, final_xform=replace(final, post=(a, b, c, -d, -e, -f)))


def open_file(path: Path) -> Scene:
    """The Scene of a .flame: an animation where its flames have growing times, else its first flame."""
    keys, warnings = read_flames(path)
    times = [key.time for key in keys]
    animation = len(keys) > 1 and all(two > one for one, two in pairwise(times))
    if len(keys) > 1 and not animation:
        warnings.append(f"holds {len(keys)} flames whose times do not grow, so no animation; the first is drawn")
    print_warnings(path, warnings)
    first = keys[0]
    title = first.extra.get("name", Path(path).stem)
    try:
        settings = settings_from_keyframe(first, tuple(keys) if animation else ())
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    return Scene(Path(path), title, "flame", settings, Picture.tone, first.size)


class Picture(BasePicture):
    settings_type = Settings
    layer_names = ("density", "light")
    tone = ToneMapping("manual")

    def __init__(self, gpu: DeviceContext):
        self.device = gpu.device
        self._drawn = None  # what the sums hold samples of
        self._finished = None  # settings, size and tile of the last picture
        self._more: tuple = ()
        self._game = ChaosGame(self.device)
        self._postprocess = Postprocess(self.device)

    def never_block(self) -> None:
        """From now on no draw waits for a kernel of its own flame: one that draws all flames begins."""
        self._game.kernels.never_block()

    def ready(self) -> None:
        """Waits, after hurry(), until draws of flames that were never seen wait for nothing more."""
        self._game.kernels.wait_ready()

    def draw(self, settings: Settings, size: tuple[int, int], time: float, tile=None):
        wanted = (settings, size, tile, time if settings.keyframes else 0.0)
        if wanted != self._drawn:
            self._drawn = None
            self._restart(settings, size, tile or (0, 0, *size), time)
            self._drawn = wanted
        if self._draws == self._schedule.batches and self._pass + 1 < len(self._passes):
            self._next_pass()
        self._game.advance(self._schedule.batch_steps(self._draws))
        self._draws += 1
        if self._draws == self._schedule.batches:
            self._make_up()
        self._finished = wanted[:3]
        return self._developed()

    def _developed(self):
        """The picture of all samples so far."""
        settings, exposed = self._settings, self._passes[self._pass]
        scale = pixels_per_unit(exposed.view, self._size) / math.sqrt(settings.pixel_aspect)
        look = ExposureSettings(
            scale, exposed.weight, exposed.hits_per_sample, settings.transparent, settings.early_clip, self._pass
        )
        return self._postprocess(self._game, exposed.flame, self._grid, self._tile[2:], look)

    def _next_pass(self) -> None:
        """Keeps what the pass has come to, and plays other chains."""
        self._developed()
        self._postprocess.end_pass(self._pass)
        game = self._game
        self._past.append((game.samples, game.bad_values(), game.sums.read()))
        self._draws = 0
        self._play(self._pass + 1)

    def restart(self) -> None:
        """The next draw is the first one."""
        self._drawn = None

    def _make_up(self) -> None:
        """Steps instead of those that ended in bad points, so that a finished picture has its samples, as in flam3."""
        game = self._game
        for _ in range(MAKING_UP):
            steps = self._schedule.replacement_steps(game.samples, game.bad_values())
            if not steps:
                break
            game.advance(steps)

    def chunks(self, settings: Settings, size: tuple[int, int], samples: int, count: int) -> list[tuple]:
        """At most `count` parts (k, n) that the picture's chains are dealt into; their sums are whole numbers."""
        moments, _ = make_temporal_samples(settings, settings.keyframes[0].time if settings.keyframes else 0.0)
        if samples != self.sample_count(settings, size):
            return []  # only all draws make up for bad points
        count = min(count, make_schedule(moments, size).chains // BLOCK)
        return [(k, count) for k in range(count)]

    def draw_chunk(self, settings: Settings, size, time: float, part: tuple[int, int], more: tuple) -> dict:
        """What part k of n leaves of the finished picture: of each pass sums (cells, 4) uint64, its bad points, and
        hits where they are counted. `more` are the steps, of each pass, that `missing` asked for.
        """
        wanted = (settings, size, "part", part, time if settings.keyframes else 0.0)
        kept = wanted == self._drawn and len(self._passes) == 1 and more[: len(self._more)] == self._more
        if not kept:
            self._drawn, self._more = None, ()
            self._restart(settings, size, (0, 0, *size), time, part)
        left = []
        for number in range(len(self._passes)):
            if number:
                self._play(number, part)
            steps = sum(steps[number] for steps in more[len(self._more) :])
            self._game.advance(steps if kept else self._schedule.steps_per_chain + steps)
            left.append(self._game.partial_result())
        self._drawn, self._more = wanted, more
        return {"passes": left}

    def start_merge(self, settings: Settings, size: tuple[int, int], time: float) -> None:
        self._drawn = None
        self._restart(settings, size, (0, 0, *size), time)
        self._merged = None

    def merge(self, part: dict) -> None:
        """Adds what draw_part left of one part, in any order."""
        if self._merged is None:
            self._merged = part["passes"]
        else:
            pairs = zip(self._merged, part["passes"], strict=True)
            self._merged = [{name: ours[name] + theirs[name] for name in ours} for ours, theirs in pairs]

    def missing_steps(self, more: tuple) -> tuple[int, ...]:
        """Steps of each pass that every part is to make once more, since points of theirs were bad; () for none."""
        if len(more) == MAKING_UP:
            return ()
        merged, schedule = self._merged, self._schedule
        wanted = [
            schedule.replacement_steps(self._samples(number, more), one["bad"]) for number, one in enumerate(merged)
        ]
        return tuple(wanted) if any(wanted) else ()

    def _samples(self, number: int, more: tuple) -> int:
        """Samples of a pass, bad ones among them, with the steps that were made once more."""
        return (self._schedule.steps_per_chain + sum(steps[number] for steps in more)) * self._schedule.chains

    def merged_frame(self, more: tuple):
        """The finished picture of the parts that were merged."""
        for number, merged in enumerate(self._merged):
            if number:
                self._next_pass()
            self._game.load_result(merged, self._samples(number, more))
        self._finished = self._settings, self._size, None
        return self._developed()

    def _restart(self, settings: Settings, size, tile, time: float, part=(0, 1)) -> None:
        self._settings, self._size = settings, size
        self._draws, self._past = 0, []
        moments, weights = make_temporal_samples(settings, time)
        self._passes, self._schedule = make_passes(moments, weights), make_schedule(moments, size)
        widest = max(one.flame.estimator_radius for one in self._passes)
        self._flame = replace(self._passes[0].flame, estimator_radius=widest)
        self._grid, self._tile = BucketGrid.for_tile(self._flame, size, tile), tile
        self._play(0, part)

    def _play(self, number: int, part: tuple[int, int] = (0, 1)) -> None:
        """Begins the game of a pass, which has its own moments and chains."""
        settings, size, played = self._settings, self._size, self._passes[number]
        over, margin, aspect = self._flame.supersample, self._grid.gutter, settings.pixel_aspect
        cameras = [
            bucket_transform(m.view, settings.y_axis, size, over, margin, aspect) for m in played.temporal_samples
        ]
        flames, seed = [m.flame for m in played.temporal_samples], settings.seed + (number << 64)
        self._pass = number
        self._game.restart(
            flames, cameras, played.temporal_weights, self._grid.rect, self._schedule.chains, seed, part,
            played.sample_weights if played.needs_hit_counts else None,
        )  # fmt: skip

    def sample_count(self, settings: Settings, size: tuple[int, int]) -> int:
        moments, _ = make_temporal_samples(settings, settings.keyframes[0].time if settings.keyframes else 0.0)
        return middle_sample(moments).flame.passes * make_schedule(moments, size).batches

    def fraction_done(self, drawn: int, total: int) -> float:
        """The part of the picture's samples that is drawn: its first draws are smaller than the later ones."""
        steps = self._pass * self._schedule.steps_per_chain + max(self._game.steps - self._game.fuse, 0)
        return min(steps / (self._flame.passes * self._schedule.steps_per_chain), 1.0)

    def depends_on_time(self, settings: Settings) -> bool:
        """Whether the picture depends on time."""
        return len(settings.keyframes) > 1

    def layers(self, settings: Settings, size: tuple[int, int], tile=None) -> dict[str, np.ndarray]:
        """What the histogram holds of each pixel, for EXR: `density` (height, width) hits, and `light` (height, width,
        3) the sum of their colors, 0 to 1 each; linear in the samples, before exposure and filters. Of the last draw.
        """
        assert self._finished == (settings, size, tile), "the layers are those of the last draw"
        grid, over = self._grid, self._flame.supersample
        sums = sum((past for _, _, past in self._past), self._game.sums.read())
        sums = sums.reshape(grid.rect.rows, grid.rect.columns, 4)
        width, height = self._tile[2:]
        top = grid.gutter + self._tile[1] * over - grid.rect.top
        left = grid.gutter + self._tile[0] * over - grid.rect.left
        inside = sums[top : top + height * over, left : left + width * over].astype("f8")
        pixels = inside.reshape(height, over, width, over, 4).sum((1, 3)) / 255
        return {"density": pixels[..., 3].astype("f4"), "color_sum": pixels[..., :3].astype("f4")}

    def report(self) -> dict:
        game = self._game
        sums, bad, samples = game.sums.read(), game.bad_values(), game.samples
        for more_samples, more_bad, more_sums in self._past:
            sums, bad, samples = sums + more_sums, bad + more_bad, samples + more_samples
        steps = self._schedule.batch_steps(max(self._draws - 1, 0))
        weight = float(np.mean([one.temporal_weights for one in self._passes[: self._pass + 1]]))
        return {
            "samples": samples - bad,
            "last_batch": f"{self._schedule.chains} chains x {steps} steps",
            "bad_values": bad,
            "in_frame": float(sums[:, 3].sum() / 255 / weight / max(samples - bad, 1)),
            "chains": game.chains,
            "temporal_samples": game.temporal_sample_count,
            "passes": self._flame.passes,
        }


def bucket_transform(view, y_axis: str, size: tuple[int, int], supersample: int, margin: int, aspect=1.0) -> np.ndarray:
    """What places points of the plane (6,) or of space (12,) in buckets of the whole grid."""
    if isinstance(view, Camera):
        return world_to_buckets(view, size, supersample, margin)
    return plane_to_buckets(view, y_axis, size, supersample, margin, aspect)


def pixels_per_unit(view, size: tuple[int, int]) -> float:
    """Pixels that a unit of the flame is long; of space, at the camera's target."""
    if isinstance(view, Camera):
        return size[1] / (2 * math.tan(math.radians(view.fov_degrees) / 2) * math.dist(view.position, view.target))
    return size[1] / view.height


def world_to_buckets(view: Camera, size: tuple[int, int], supersample: int, margin: int) -> np.ndarray:
    """(12,) float64: rows of four whose first two, over the third (the depth), are column and row of the bucket."""
    right, up, forward = view.axes()
    focal = size[1] / 2 / math.tan(math.radians(view.fov_degrees) / 2) * supersample
    middle = np.array(size) / 2 * supersample + margin
    rows = np.array([focal * right + middle[0] * forward, -focal * up + middle[1] * forward, forward])
    return np.concatenate([rows, -rows @ np.array(view.position)[:, None]], 1).ravel()


def plane_to_buckets(
    view: View2D, y_axis: str, size: tuple[int, int], supersample: int, margin: int, aspect=1.0
) -> np.ndarray:
    """(6,) float64: the affine from the flame's plane to buckets of the whole grid."""
    scale = size[1] / view.height * supersample
    c, s = math.cos(math.radians(view.rotation_degrees)), math.sin(math.radians(view.rotation_degrees))
    # With y upwards the panel is R(-rotation) of the plane; the rows of the picture grow downwards.
    rows = np.array([[c / aspect, s / aspect], [s, -c]]) * scale
    offset = np.array(size) / 2 * supersample + margin - rows @ np.array(view.center)
    if y_axis == "down":
        rows[:, 1] *= -1
    return np.array([rows[0, 0], rows[0, 1], offset[0], rows[1, 0], rows[1, 1], offset[1]])
