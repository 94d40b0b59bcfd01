"""Iterated function systems and fractal flames: the chaos game with exact sums, developed as flam3 does.

One draw is some more steps of every chain; the first is about a million samples, each next one 41 % of all before it,
up
to a bound. The picture is a function of settings, size, time and number of draws alone.
"""

import math
import types
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from renderer import BadInput, UserError
from renderer.flames.chaos import BLOCK, Chaos
from renderer.flames.develop import Development, Grid, Look
from renderer.flames.file import read_flames, warn
from renderer.flames.filters import temporal_filter
from renderer.flames.genome import Flame, Map
from renderer.flames.keyframes import KeyFrame, at_time
from renderer.flames.schedule import Schedule, fuse_of
from renderer.gpu import Gpu
from renderer.scene import Scene, Tone, setting
from renderer.view import Camera, Plane

MAKING_UP = 3  # rounds of steps for those that ended in bad points


@dataclass(frozen=True)
class Settings(Flame):
    """A flame and how it is looked at. y grows upwards in maps of ours, downwards in .flame files.

    Where there are key frames they say the flame of each time; the view is then relative to the first one's camera.
    """

    view: Plane = Plane()
    up: Literal["+y", "-y"] = "+y"
    seed: int = 0
    transparent: bool = setting(False, help="alpha instead of the background")
    early_clip: bool = setting(False, help="curves and clips each bucket before the spatial filter, for sharper edges")
    pixel_aspect: float = setting(1.0, 1e-3, 1e3, "width of a pixel by its height")
    keys: tuple[KeyFrame, ...] = ()

    def __post_init__(self):
        super().__post_init__()
        times = [key.time for key in self.keys]
        if not isinstance(self.view, Camera) and self.space:
            raise ValueError("affine has 12 numbers; maps of space are drawn by the picture flame3d")
        if any(two <= one for one, two in pairwise(times)):
            raise ValueError(f"keys: the times {times} must grow")


def settings_of(key: KeyFrame, keys: tuple[KeyFrame, ...] = ()) -> Settings:
    """The settings that draw a flame of a file."""
    values = {f.name: getattr(key.flame, f.name) for f in fields(Flame)}
    values["quality"] = min(max(key.quality, 1e-3), 1e9)
    return Settings(**values, view=key.view, up="-y", pixel_aspect=key.pixel_aspect, keys=keys)


def key_of(settings: Settings, size: tuple[int, int], time: float = 0.0, name: str = "") -> KeyFrame:
    """The flame and its view as a key frame of `size`, in the settings' own direction of y."""
    flame = Flame(**{f.name: getattr(settings, f.name) for f in fields(Flame)})
    view, extra = settings.view, types.MappingProxyType({"name": name} if name else {})
    return KeyFrame(
        flame, time, size, (view.centre[0], -view.centre[1]), size[1] / view.height, 0.0, view.rotation_degrees,
        settings.pixel_aspect, extra=extra,
    )  # fmt: skip


def keys_to_write(settings: Settings, size: tuple[int, int], name: str) -> list[KeyFrame]:
    """What a .flame file of the settings holds, where y grows downwards: other flames are turned over at their end."""
    keys = settings.keys or (key_of(settings, size, 0.0, name),)
    return [replace(key, flame=turned_over(key.flame)) for key in keys] if settings.up == "+y" else list(keys)


def turned_over(flame: Flame) -> Flame:
    """The flame whose points have the opposite y: what its final map plots is mirrored."""
    final = flame.final or Map(color_speed=0.0)
    if final.opacity != 1:
        raise UserError("a flame with y upwards and a final map of an opacity below 1 cannot be written as a .flame")
    a, b, c, d, e, f = final.post
    return replace(flame, final=replace(final, post=(a, b, c, -d, -e, -f)))


def open_file(path: Path) -> Scene:
    """The Scene of a .flame: an animation where its flames have growing times, else its first flame."""
    keys, warnings = read_flames(path)
    times = [key.time for key in keys]
    animation = len(keys) > 1 and all(two > one for one, two in pairwise(times))
    if len(keys) > 1 and not animation:
        warnings.append(f"holds {len(keys)} flames whose times do not grow, so no animation; the first is drawn")
    warn(path, warnings)
    first = keys[0]
    title = first.extra.get("name", Path(path).stem)
    try:
        settings = settings_of(first, tuple(keys) if animation else ())
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error
    return Scene(Path(path), title, "flame", settings, Picture.tone, first.size)


class Picture:
    tone = Tone("manual")

    def __init__(self, gpu: Gpu):
        self.device = gpu.device
        self._drawn = None  # what the sums hold samples of
        self._finished = None  # settings, size and tile of the last picture
        self._more: tuple[int, ...] = ()
        self._game = Chaos(self.device)
        self._development = Development(self.device)

    def hurry(self) -> None:
        """From now on no draw waits for a kernel of its own flame: one that draws all flames begins."""
        self._game.compiled.hurry()

    def ready(self) -> None:
        """Waits, after hurry(), until draws of flames that were never seen wait for nothing more."""
        self._game.compiled.ready()

    def draw(self, settings: Settings, size: tuple[int, int], time: float, tile=None):
        wanted = (settings, size, tile, time if settings.keys else 0.0)
        if wanted != self._drawn:
            self._drawn = None
            self._restart(settings, size, tile or (0, 0, *size), time)
            self._drawn = wanted
        if self._draws == self._schedule.draws and self._pass + 1 < self._flame.passes:
            self._next_pass()
        self._game.advance(self._schedule.steps(self._draws))
        self._draws += 1
        if self._draws == self._schedule.draws:
            self._make_up()
        self._finished = wanted[:3]
        return self._developed()

    def _developed(self, samples: int | None = None):
        """The picture of all samples so far."""
        settings = self._settings
        scale = pixels_a_unit(self._moment.view, self._size) / math.sqrt(settings.pixel_aspect)
        look = Look(scale, self._weight, self._pass_weight, settings.transparent, settings.early_clip, self._pass)
        return self._development(self._game, self._flame, self._grid, self._tile[2:], look, samples)

    def _next_pass(self) -> None:
        """Keeps what the pass has come to, and plays other chains."""
        self._developed()
        self._development.keep(self._pass)
        game = self._game
        self._past.append((game.samples, game.bad(), game.sums.read()))
        self._pass, self._draws = self._pass + 1, 0
        self._play((0, 1))

    def restart(self) -> None:
        """The next draw is the first one."""
        self._drawn = None

    def _make_up(self) -> None:
        """Steps instead of those that ended in bad points, so that a finished picture has its samples, as in flam3."""
        game = self._game
        for _ in range(MAKING_UP):
            steps = self._schedule.missing(game.samples, game.bad())
            if not steps:
                break
            game.advance(steps)

    def deal(self, settings: Settings, size: tuple[int, int], samples: int, count: int) -> list[tuple]:
        """At most `count` parts (k, n) that the picture's chains are dealt into; their sums are whole numbers."""
        moments, _ = moments_of(settings, settings.keys[0].time if settings.keys else 0.0)
        if moments[0].flame.passes > 1 or samples != self.draws(settings, size):
            return []  # the exposures of passes are no sums of parts, and only all draws make up for bad points
        count = min(count, schedule_of(moments, size).chains // BLOCK)
        return [(k, count) for k in range(count)]

    def draw_part(self, settings: Settings, size, time: float, part: tuple[int, int], more: tuple[int, ...]) -> dict:
        """What part k of n leaves of the finished picture: sums (cells, 4) uint64, and its bad points. `more` are the
        steps that `missing` asked for.
        """
        wanted = (settings, size, "part", part, time if settings.keys else 0.0)
        if wanted != self._drawn or more[: len(self._more)] != self._more:
            self._drawn, self._more = None, ()
            self._restart(settings, size, (0, 0, *size), time, part)
            self._game.advance(self._schedule.total)
            self._drawn = wanted
        self._game.advance(sum(more[len(self._more) :]))
        self._more = more
        return {"sums": self._game.sums.read(), "bad": self._game.bad()}

    def begin_merge(self, settings: Settings, size: tuple[int, int], time: float) -> None:
        self._drawn = None
        self._restart(settings, size, (0, 0, *size), time)
        self._merged = {"sums": np.zeros(self._game.sums.shape, "u8"), "bad": 0}

    def merge(self, part: dict) -> None:
        """Adds what draw_part left of one part, in any order."""
        self._merged["sums"] += part["sums"]
        self._merged["bad"] += part["bad"]

    def missing(self, more: tuple[int, ...]) -> int:
        """Steps that every part is to make once more, since points of theirs were bad."""
        samples = (self._schedule.total + sum(more)) * self._schedule.chains
        return self._schedule.missing(samples, self._merged["bad"]) if len(more) < MAKING_UP else 0

    def merged(self, more: tuple[int, ...]):
        """The finished picture of the parts that were merged."""
        game, schedule = self._game, self._schedule
        game.sums.write(self._merged["sums"])
        game.bad_total.write(np.array([self._merged["bad"]], "u8"))
        samples = (schedule.total + sum(more)) * schedule.chains
        self._finished = self._settings, self._size, None
        return self._developed(samples)

    def _restart(self, settings: Settings, size, tile, time: float, part=(0, 1)) -> None:
        self._settings, self._size = settings, size
        self._draws, self._pass, self._past = 0, 0, []
        moments, weights = self._moments = moments_of(settings, time)
        self._moment, self._weight = moments[len(moments) // 2], float(weights.mean())
        self._flame = averaged([m.flame for m in moments], weights)
        self._schedule = schedule_of(moments, size)
        self._grid, self._tile = Grid.of(self._flame, size, tile), tile
        self._play(part)

    def _play(self, part: tuple[int, int]) -> None:
        """Begins the game of the pass at hand, which has its own moments and chains."""
        settings, size, (moments, weights) = self._settings, self._size, self._moments
        count = len(moments) // self._flame.passes
        mine = slice(self._pass * count, (self._pass + 1) * count)
        moments, weights, seed = moments[mine], weights[mine], settings.seed + (self._pass << 64)
        self._pass_weight = float(weights.mean())
        over, margin, aspect = self._flame.oversample, self._grid.margin, settings.pixel_aspect
        cameras = [camera_of(m.view, settings.up, size, over, margin, aspect) for m in moments]
        flames = [m.flame for m in moments]
        self._game.restart(flames, cameras, weights, self._grid.window, self._schedule.chains, seed, part)

    def draws(self, settings: Settings, size: tuple[int, int]) -> int:
        moments, _ = moments_of(settings, settings.keys[0].time if settings.keys else 0.0)
        return moments[0].flame.passes * schedule_of(moments, size).draws

    def share(self) -> float:
        """The part of the picture's samples that is drawn: its first draws are smaller than the later ones."""
        steps = self._pass * self._schedule.total + max(self._game.steps - self._game.fuse, 0)
        return min(steps / (self._flame.passes * self._schedule.total), 1.0)

    def animated(self, settings: Settings) -> bool:
        """Whether the picture depends on time."""
        return len(settings.keys) > 1

    def layers(self, settings: Settings, size: tuple[int, int], tile=None) -> dict[str, np.ndarray]:
        """What the histogram holds of each pixel, for EXR: `density` (height, width) hits, and `light` (height,
        width, 3)
        the sum of their colours, 0 to 1 each; linear in the samples, before exposure and filters. Of the last draw.
        """
        assert self._finished == (settings, size, tile), "the layers are those of the last draw"
        grid, over = self._grid, self._flame.oversample
        sums = sum((past for _, _, past in self._past), self._game.sums.read())
        sums = sums.reshape(grid.window.rows, grid.window.columns, 4)
        width, height = self._tile[2:]
        top = grid.margin + self._tile[1] * over - grid.window.top
        left = grid.margin + self._tile[0] * over - grid.window.left
        inside = sums[top : top + height * over, left : left + width * over].astype("f8")
        pixels = inside.reshape(height, over, width, over, 4).sum((1, 3)) / 255
        return {"density": pixels[..., 3].astype("f4"), "light": pixels[..., :3].astype("f4")}

    def report(self) -> dict:
        game = self._game
        sums, bad, samples = game.sums.read(), game.bad(), game.samples
        for more_samples, more_bad, more_sums in self._past:
            sums, bad, samples = sums + more_sums, bad + more_bad, samples + more_samples
        steps = self._schedule.steps(max(self._draws - 1, 0))
        return {
            "samples": samples - bad,
            "last_draw": f"{self._schedule.chains} chains x {steps} steps",
            "bad_points": bad,
            "in_frame": float(sums[:, 3].sum() / 255 / self._weight / max(samples - bad, 1)),
            "chains": game.chains,
            "moments": game.moments,
            "passes": self._flame.passes,
        }


@dataclass(frozen=True)
class Moment:
    """A flame at one moment, the view of it, and its samples a pixel."""

    flame: Flame
    view: Plane
    quality: float


def moments_of(settings: Settings, time: float) -> tuple[list[Moment], np.ndarray]:
    """The moments that make up the picture of a time, and their weights, the largest 1. Stills have one a pass."""
    if len(settings.keys) < 2:
        _, weights = temporal_filter(settings, 1)
        return [Moment(settings, settings.view, settings.quality)] * len(weights), weights
    keys = settings.keys
    time = min(max(time, keys[0].time), keys[-1].time)
    flame = at_time(keys, time).flame
    offsets, weights = temporal_filter(flame, flame.temporal_samples)
    found = []
    for offset in offsets:
        key = at_time(keys, time + offset)
        found.append(Moment(key.flame, moved(key.view, keys[0].view, settings.view), key.quality))
    return found, weights


def schedule_of(moments: list[Moment], size: tuple[int, int]) -> Schedule:
    """How each pass is drawn of a picture that is made of these moments."""
    middle = moments[len(moments) // 2]
    passes = middle.flame.passes
    return Schedule(middle.quality / passes, size, len(moments) // passes, fuse_of([m.flame for m in moments]))


def moved(view: Plane, home: Plane, wanted: Plane) -> Plane:
    """The view, moved as `wanted` is moved from `home`."""
    centre = tuple(v + w - h for v, w, h in zip(view.centre, wanted.centre, home.centre, strict=True))
    turned = view.rotation_degrees + wanted.rotation_degrees - home.rotation_degrees
    return Plane(centre, view.height * wanted.height / home.height, turned)


def averaged(flames: list[Flame], weights: np.ndarray) -> Flame:
    """The middle flame with what the development takes as means over all moments: gamma, vibrancy, background."""
    middle = flames[len(flames) // 2]
    if len(flames) == 1:
        return middle
    share = weights / weights.sum()
    means = {name: float(share @ [getattr(flame, name) for flame in flames]) for name in ("gamma", "vibrancy")}
    background = tuple(map(float, share @ np.array([flame.background for flame in flames])))
    return replace(middle, background=background, **means)


def camera_of(view, up: str, size: tuple[int, int], oversample: int, margin: int, aspect=1.0) -> np.ndarray:
    """What places points of the plane (6,) or of space (12,) in buckets of the whole grid."""
    if isinstance(view, Camera):
        return space_camera(view, size, oversample, margin)
    return plane_camera(view, up, size, oversample, margin, aspect)


def pixels_a_unit(view, size: tuple[int, int]) -> float:
    """Pixels that a unit of the flame is long; of space, at the camera's target."""
    if isinstance(view, Camera):
        return size[1] / (2 * math.tan(math.radians(view.fov_degrees) / 2) * math.dist(view.position, view.target))
    return size[1] / view.height


def space_camera(view: Camera, size: tuple[int, int], oversample: int, margin: int) -> np.ndarray:
    """(12,) float64: rows of four whose first two, over the third (the depth), are column and row of the bucket."""
    right, up, forward = view.frame()
    focal = size[1] / 2 / math.tan(math.radians(view.fov_degrees) / 2) * oversample
    middle = np.array(size) / 2 * oversample + margin
    rows = np.array([focal * right + middle[0] * forward, -focal * up + middle[1] * forward, forward])
    return np.concatenate([rows, -rows @ np.array(view.position)[:, None]], 1).ravel()


def plane_camera(view: Plane, up: str, size: tuple[int, int], oversample: int, margin: int, aspect=1.0) -> np.ndarray:
    """(6,) float64: the affine from the flame's plane to buckets of the whole grid."""
    scale = size[1] / view.height * oversample
    c, s = math.cos(math.radians(view.rotation_degrees)), math.sin(math.radians(view.rotation_degrees))
    # With y upwards the panel is R(-rotation) of the plane; the rows of the picture grow downwards.
    rows = np.array([[c / aspect, s / aspect], [s, -c]]) * scale
    offset = np.array(size) / 2 * oversample + margin - rows @ np.array(view.centre)
    if up == "-y":
        rows[:, 1] *= -1
    return np.array([rows[0, 0], rows[0, 1], offset[0], rows[1, 0], rows[1, 1], offset[1]])
