"""Iterated function systems and fractal flames: the chaos game with exact sums, developed as flam3 does.

One draw is some more steps of every chain; the first is about a million samples, each next one as many as 41 % of all
before
it. The picture is a function of settings, size, time and number of draws alone.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from renderer import BadInput
from renderer.flames.chaos import Chaos, Window, chains_for
from renderer.flames.develop import Development
from renderer.flames.filters import gutter, spatial_filter
from renderer.flames.genome import Flame
from renderer.gpu import Gpu
from renderer.scene import Tone, setting
from renderer.view import Plane

FIRST_DRAW = 1 << 20  # samples
LARGEST_DRAW = 1 << 24
MOST_DRAWS = 64  # beyond the first few


@dataclass(frozen=True)
class Settings(Flame):
    """A flame and how it is looked at. y grows upwards in maps of ours, downwards in .flame files."""

    view: Plane = Plane()
    up: Literal["+y", "-y"] = "+y"
    seed: int = 0
    sums: Literal["exact", "fast"] = setting(
        "exact", help="exact: whole numbers, the same bits everywhere; fast: floats"
    )
    transparent: bool = setting(False, help="alpha instead of the background")


class Picture:
    tone = Tone("manual")

    def __init__(self, gpu: Gpu):
        self.device = gpu.device
        self._drawn = None  # what the sums hold samples of
        self._chaos: dict[str, Chaos] = {}
        self._development = Development(self.device)

    def draw(self, settings: Settings, size: tuple[int, int], time: float, tile=None):
        wanted = (settings, size, tile)
        if wanted != self._drawn:
            self._restart(settings, size, tile or (0, 0, *size))
            self._drawn = wanted
        self._game.advance(self._schedule.steps(self._draws))
        self._draws += 1
        return self._development(self._game, settings, size[1] / settings.view.height, (tile or (0, 0, *size))[2:])

    def _restart(self, settings: Settings, size, tile) -> None:
        if settings.sums not in self._chaos:
            self._chaos[settings.sums] = Chaos(self.device, settings.sums)
        self._game, self._draws = self._chaos[settings.sums], 0
        self._schedule = Schedule(settings, size)
        taps = len(spatial_filter(settings))
        margin, _ = gutter(settings, taps)
        left, top, width, height = tile
        ss = settings.oversample
        window = Window(left * ss, top * ss, width * ss + 2 * margin, height * ss + 2 * margin)
        camera = plane_camera(settings.view, settings.up, size, ss, margin)
        try:
            self._game.restart([settings], [camera], [1.0], window, self._schedule.chains, settings.seed)
        except ValueError as error:
            raise BadInput(f"flame: {error}") from error

    def draws(self, settings: Settings, size: tuple[int, int]) -> int:
        return Schedule(settings, size).draws

    def report(self) -> dict:
        game = self._game
        sums, bad = game.sums.read(), game.bad()
        samples = game.samples
        return {
            "samples": samples - bad,
            "samples_a_draw": f"{self._schedule.chains} chains x {self._schedule.steps(max(self._draws - 1, 0))} steps",
            "bad_points": bad,
            "in_frame": float(sums[:, 3].sum() / 255 / max(samples - bad, 1)),
            "chains": game.chains,
        }


class Schedule:
    """How the steps of a picture are dealt to draws: a function of settings and size alone."""

    def __init__(self, settings: Settings, size: tuple[int, int]):
        self.samples = max(1, math.ceil(settings.quality * size[0] * size[1]))
        self.chains = chains_for(self.samples, settings.temporal_samples)
        self.total = -(-self.samples // self.chains)
        largest = max(LARGEST_DRAW, self.samples // MOST_DRAWS)
        self._first, self._largest = max(1, FIRST_DRAW // self.chains), max(1, largest // self.chains)
        self._ends = [0]
        while self._ends[-1] < self.total:
            done = self._ends[-1]
            self._ends.append(min(self.total, done + min(max(self._first, int(done * 0.41)), self._largest)))
        self.draws = len(self._ends) - 1

    def steps(self, draw: int) -> int:
        """Steps of draw number `draw`; draws after the last go on like the largest."""
        return self._ends[draw + 1] - self._ends[draw] if draw < self.draws else self._largest


def plane_camera(view: Plane, up: str, size: tuple[int, int], oversample: int, margin: int) -> np.ndarray:
    """(6,) float64: the affine from the flame's plane to buckets of the whole grid."""
    scale = size[1] / view.height * oversample
    c, s = math.cos(math.radians(view.rotation_degrees)), math.sin(math.radians(view.rotation_degrees))
    flip = -1.0 if up == "+y" else 1.0
    # In a frame of y upwards the panel is R(-rotation) of the plane; rows grow downwards.
    cx, cy = view.centre
    right = np.array([c, s])
    down = np.array([s, -c])
    rows = np.array([right, down]) * scale  # of (x, y up)
    rows[:, 1] *= -flip  # the flame's y
    offset = np.array([size[0], size[1]]) / 2 * oversample + margin - rows @ np.array([cx, cy * -flip])
    return np.array([rows[0, 0], rows[0, 1], offset[0], rows[1, 0], rows[1, 1], offset[1]])
