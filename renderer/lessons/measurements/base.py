"""What a measurement gets and gives: the bench with its clock, and the numbers found."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from renderer.errors import InputError
from renderer.gpu import DeviceContext
from renderer.pages.plot import Plot
from renderer.pictures import open_picture
from renderer.pictures.picture import Picture
from renderer.scene.scene import Scene
from renderer.scene.schema import replace_in_file

MAX_SECONDS = 10.0  # of timing in one measurement
POINT_SECONDS = 0.6  # of one point, at most
MAX_RUNS = 40  # of one point


Runs = dict[Any, tuple[Callable[[], object], Callable[[], object]]]  # what is timed, and what waits for it


@dataclass(frozen=True)
class Finding:
    """What a measurement found on this machine, as PaperFigure has the paper's numbers."""

    x: tuple[Any, ...]
    series: Mapping[str, tuple[float | None, ...]]
    x_name: str
    unit: str
    device: str
    kind: Literal["lines", "bars"] = "lines"
    log_x: bool = False
    log_y: bool = False
    seconds: float = 0.0  # of timing
    notes: tuple[str, ...] = ()

    def plot(self) -> Plot:
        """The numbers as a figure."""
        return Plot("Here", self.x, self.series, self.x_name, self.unit, self.kind, self.log_x, self.log_y)

    @property
    def missing(self) -> int:
        """Points for which the time did not suffice."""
        return sum(value is None for values in self.series.values() for value in values)


@dataclass
class Bench:
    """The devices, the lesson's scenes as its step has them, and the clock that ends a measurement."""

    gpu: DeviceContext
    scenes: Mapping[str, Scene] = field(default_factory=dict)
    seconds: float = MAX_SECONDS
    width: int = 0  # of pictures that are drawn, at most; 0: as the measurement says
    spent: float = 0.0  # in timed runs; compilers are not counted
    pictures: dict[str, Picture] = field(default_factory=dict)  # by kind, so that kernels are made once

    def picture(self, scene: Scene) -> Picture:
        """The picture that draws the scene."""
        if scene.picture not in self.pictures:
            self.pictures[scene.picture] = open_picture(scene, self.gpu)
        return self.pictures[scene.picture]

    def size(self, size: tuple[int, int]) -> tuple[int, int]:
        """The size, made smaller where the bench is."""
        if not 0 < self.width < size[0]:
            return size
        return self.width, max(1, round(size[1] * self.width / size[0]))

    def time(self, run: Callable[[], object], finish: Callable[[], object], points: int = 1) -> float | None:
        """The seconds of the shortest of several runs; None when the time is over. `points` are still to come.

        What disturbs a run makes it longer, so the shortest is nearest to the work itself.
        """
        if self.spent >= self.seconds:
            return None
        run()  # compiles, and fills caches
        finish()
        times: list[float] = []
        start = time.perf_counter()
        until = start + min(POINT_SECONDS, (self.seconds - self.spent) / max(points, 1))
        while not times or (time.perf_counter() < until and len(times) < MAX_RUNS):
            began = time.perf_counter()
            run()
            finish()
            times.append(time.perf_counter() - began)
        self.spent += time.perf_counter() - start
        return min(times)

    def time_all(self, runs: Runs) -> dict[Any, float | None]:
        """time() of each pair of run and finish, which share the time that is left."""
        return {key: self.time(*pair, len(runs) - index) for index, (key, pair) in enumerate(runs.items())}


@dataclass(frozen=True)
class Measurement:
    """A kind of measurement: its fields are the keys of [steps.measure]. A subclass implements find()."""

    def panels(self) -> tuple[str, ...]:
        """The panels whose scenes it needs."""
        return ()

    def check(self, context: str, scenes: Mapping[str, Scene]) -> None:
        """Raises InputError, beginning with `context`, for keys that do not fit the lesson's scenes."""
        for name in self.panels():
            if name not in scenes:
                allowed = ", ".join(scenes) or "none: there is no [panels.NAME]"
                raise InputError(f"{context}: no panel {name!r}; allowed are {allowed}")

    def find(self, bench: Bench) -> Finding:
        """Measures; ends soon after the bench's seconds."""
        raise NotImplementedError

    def run(self, bench: Bench) -> Finding:
        """What find() finds, with the time that it took and what it could not reach."""
        found = self.find(bench)
        notes = found.notes
        if found.missing:
            points = "1 point was" if found.missing == 1 else f"{found.missing} points were"
            over = f"{points} not reached within {bench.seconds:g} s"
            notes = (*notes, over if bench.spent >= bench.seconds else "what has no value does not run here")
        return replace(found, seconds=bench.spent, notes=notes)


def vary(scene: Scene, values: Mapping[str, Any], context: str = "") -> Scene:
    """The scene with other settings; InputError for those that it has not."""
    settings = scene.settings
    for key, value in values.items():
        settings = replace_in_file(settings, key, value, f"{context}: {key}" if context else key)
    return replace(scene, settings=settings)
