"""The interface of the measurements of lessons: Measurement, its result Finding, and its environment Bench.

A Bench holds the devices, the lesson's scenes and the time limit. command.py and the window create it.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from renderer.errors import InputError
from renderer.gpu import DeviceContext
from renderer.pages.plot import Plot
from renderer.pictures import open_picture
from renderer.pictures.picture import AnyPicture
from renderer.records import dataclass, field, replace
from renderer.scene.scene import Scene
from renderer.scene.schema import replace_in_file

MAX_SECONDS = 10.0  # the longest time that one measurement spends on timing
POINT_SECONDS = 0.6  # the longest time that one point of the curve is timed
MAX_RUNS = 40  # timed runs of one point

Key = TypeVar("Key")
Timed = tuple[Callable[[], object], Callable[[], object]]  # (launch, wait for completion)
Runs = dict[Any, Timed]  # by name


@dataclass(frozen=True)
class Finding(Plot):
    """The result of a measurement on this machine: the figure beside the paper's, and what it took."""

    title: str = "Here"
    device: str = ""  # run() fills in the bench's
    seconds: float = 0.0  # spent on timing so far
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """Returns the number of points without a value."""
        return sum(value is None for values in self.series.values() for value in values)


@dataclass
class Bench:
    """The devices, the scenes of the lesson's panels at the present step, and the time limit of a measurement."""

    gpu: DeviceContext
    scenes: Mapping[str, Scene] = field(default_factory=dict)
    seconds: float = MAX_SECONDS
    width: int = 0  # largest width in pixels of measured pictures; 0: no limit
    spent: float = 0.0  # in timed runs; compilers are not counted
    pictures: dict[str, AnyPicture] = field(default_factory=dict)  # by kind, so that kernels are made once

    def picture(self, scene: Scene) -> AnyPicture:
        """Returns the picture that draws the scene, one for each kind of picture."""
        if scene.picture not in self.pictures:
            self.pictures[scene.picture] = open_picture(scene, self.gpu)
        return self.pictures[scene.picture]

    def size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Returns the size (width, height), scaled down to the bench's width limit."""
        if not 0 < self.width < size[0]:
            return size
        return self.width, max(1, round(size[1] * self.width / size[0]))

    def time(self, run: Callable[[], object], finish: Callable[[], object], points: int = 1) -> float | None:
        """Times several runs and returns the seconds of the shortest; None after the time limit.

        `points` is the number of points that share the remaining time. Disturbances only lengthen a run, so the
        shortest run is the best estimate.
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

    def rates(self, runs: Mapping[Key, Timed], work: Callable[[Key], float]) -> dict[Key, float | None]:
        """Returns work(key) over the seconds of each run, None where there was no time for it.

        The runs share the remaining time.
        """
        timed = {key: self.time(*pair, len(runs) - index) for index, (key, pair) in enumerate(runs.items())}
        return {key: work(key) / seconds if seconds else None for key, seconds in timed.items()}


@dataclass(frozen=True)
class Measurement:
    """A kind of measurement: its fields are the keys of [steps.measure]. A subclass implements find()."""

    def check(self, context: str, scenes: Mapping[str, Scene]) -> None:
        """Raises InputError, beginning with `context`, for keys that do not fit the lesson's scenes."""

    def find(self, bench: Bench) -> Finding:
        """Measures, and ends soon after the bench's seconds of timing."""
        raise NotImplementedError

    def run(self, bench: Bench) -> Finding:
        """Returns the result of find() with the seconds of timing, and a note about missing points."""
        finding = self.find(bench)
        notes = finding.notes
        if finding.missing:
            points = "1 point was" if finding.missing == 1 else f"{finding.missing} points were"
            over = f"{points} not reached within {bench.seconds:g} s"
            notes = (*notes, over if bench.spent >= bench.seconds else "what has no value does not run here")
        return replace(finding, device=finding.device or bench.gpu.device.name, seconds=bench.spent, notes=notes)


@dataclass(frozen=True)
class PanelMeasurement(Measurement):
    """A measurement of the scene of one panel of the lesson."""

    panel: str

    def check(self, context: str, scenes: Mapping[str, Scene]) -> None:
        """Raises InputError, beginning with `context`, for a panel that the lesson does not have."""
        if self.panel not in scenes:
            allowed = ", ".join(scenes) or "none: there is no [panels.NAME]"
            raise InputError(f"{context}: no panel {self.panel!r}; allowed are {allowed}")


def curves(results: Mapping[tuple[str, Key], float | None], x: Iterable[Key]) -> dict[str, tuple[float | None, ...]]:
    """Arranges results by (name, x) as one series for each name; None where there is no result."""
    names = dict.fromkeys(name for name, _ in results)
    return {name: tuple(results.get((name, each)) for each in x) for name in names}


def check_whole_numbers(name: str, values: tuple[int, ...], most: int, high: int) -> None:
    """Raises ValueError unless the values of the key `name` are 1 to `most` numbers from 2 to `high`."""
    if not 1 <= len(values) <= most or not all(2 <= value <= high for value in values):
        raise ValueError(f"{name} must be 1 to {most} numbers from 2 to {high}")


def vary(scene: Scene, values: Mapping[str, object], context: str = "") -> Scene:
    """Returns the scene with changed settings; InputError, beginning with `context`, for unknown settings."""
    settings = scene.settings
    for key, value in values.items():
        settings = replace_in_file(settings, key, value, f"{context}: {key}" if context else key, scene.path.parent)
    return replace(scene, settings=settings)
