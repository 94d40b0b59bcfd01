"""Finds and opens the cases that `bench` can time: scenes with a [bench] table (BenchTable), and tests/fps/NAME.py.

A module tests/fps/NAME.py defines `cases(gpu) -> list[Case]`; NAME/ is prefixed to their names. Without any import of
this program it may return plain functions, {name: function} or {name: (function, counters)}, whose processor time is
taken; counters are a dict of whole numbers that the function raises. At least three cases that differ in one number,
named such as size=1024, become a curve in the report. cases() must return quickly: compile kernels and fill buffers in
check(), which always runs first, and pass LazyDevice(lambda: gpu.device) as the device. Where a device lacks what a
case needs, cases() or check() raises UnavailableError. If the module has a function `table(records) -> str`, its text
is printed after the rows of the cases.

Scenes and modules come from this repository, or from the one that --repo names.
"""

import importlib.util
import itertools
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import InputError, UserError
from renderer.gpu import DeviceContext
from renderer.paths import A_CHECKOUT, PACKAGE, ROOT
from renderer.pictures import expand_layout, load, open_picture
from renderer.pictures.picture import AnyPicture, Frame, Size
from renderer.plain import Json, format_ignored
from renderer.records import dataclass, field
from renderer.scene.panel_grid import grid
from renderer.scene.scene import Scene
from renderer.scene.schema import EMPTY, from_table, replace_in_file, setting

DEFAULT_SIZE = (640, 360)
SOURCE_PATTERNS = {
    ".toml": r"(?m)^\s*\[bench\]",
    ".py": r"(?m)^def cases\(",
}  # a file with such a line is a source of cases; listing does not run it
MAX_CASES = 1000
OnError = Callable[[str, Exception], None]
Plain = Callable[[], object] | tuple[Callable[[], object], dict[str, int]]  # what cases() returns without an import


@dataclass
class Case:
    """One thing to time.

    `run()` launches the work and does not wait. `check()` is called before any timing: it asserts that the result is
    right and returns what two commits must agree on: bytes, compared exactly; a linear picture (height, width, n),
    compared after display within a tolerance; or None where rounding may differ. The rate is `work` / seconds in
    `unit`: with work = rays / 1e6 the unit is "Mrays/s". `device` has name, driver, counters, has_reliable_timer,
    finish() and time_seconds(work). `peer()` does the same work with another library and returns its seconds,
    measured in the same process. `setup()` runs before each run, untimed.
    """

    name: str
    unit: str
    work: float
    run: Callable[[], object]
    check: Callable[[], bytes | np.ndarray | None]
    device: Any
    peer: Callable[[], float] | None = None
    peer_name: str = ""
    facts: Json = field(default_factory=dict)  # further keys of the record, such as sizes
    counters: Callable[[], dict[str, int]] | None = None  # exact counts of one run beside the device's own
    setup: Callable[[], object] | None = None
    others: Callable[[], list[Any]] = list[Any]  # returns further devices that a run may use; by default an empty list

    def devices(self) -> list[Any]:
        """Returns every device that a run uses, `device` first."""
        return [self.device, *self.others()]

    def prepare(self) -> None:
        """Calls setup() and waits for its work; called before each run, outside the timed region."""
        if self.setup:
            self.setup()
            self.finish()

    def finish(self) -> None:
        """Waits for all work on every device of the case."""
        for device in self.devices():
            device.finish()


@dataclass(frozen=True)
class BenchTable:
    """The [bench] table of a scene; each panel of a layout is a separate case.

    `size` defaults to the scene's. `set` changes settings. Each combination of `sweep`'s values is a case, named
    SCENE/KEY=VALUE.
    """

    size: tuple[int, int] | None = setting(None, 1, 1 << 14)  # default, least and greatest number
    frames: int = setting(1, 1, 10_000, "frames in one run")
    set: Json = setting(EMPTY)
    sweep: dict[str, tuple[Any, ...]] = setting(EMPTY)

    def __post_init__(self) -> None:
        if not 1 <= math.prod(map(len, self.sweep.values())) <= MAX_CASES:
            raise ValueError(f"sweep must have 1 to {MAX_CASES} combinations of values")


def find(
    patterns: list[str],
    gpu: DeviceContext,
    tree: Path = ROOT,
    size: tuple[int, int] | None = None,
    on_error: OnError | None = None,
) -> Iterator[Case]:
    """Yields the cases that match one of the patterns (see matches()), or all cases for no pattern.

    Opens the sources that the patterns name, one after another, in the repository `tree`. `size` replaces the size of
    scenes. Calls on_error(source, error) for a source that cannot be opened; without on_error the error is raised.
    UserError for a pattern without a case.
    """
    known = sources(tree)
    for pattern in patterns:
        if pattern.split("/")[0] not in known:
            needs = f"; cases of kernels need {A_CHECKOUT}" if tree == PACKAGE else ""
            raise UserError(_no_case(pattern, known) + needs)
    return _find_each(patterns, known, gpu, size, on_error)


def _find_each(
    patterns: list[str], known: dict[str, Path], gpu: DeviceContext, size: Size | None, on_error: OnError | None
) -> Iterator[Case]:
    """Yields the cases of find(), and raises UserError after the last case if a pattern matched none."""
    unseen = patterns  # patterns that no case has matched yet
    for source, path in known.items():
        wanted = [pattern for pattern in patterns if pattern.split("/")[0] == source]
        if patterns and not wanted:
            continue
        try:
            cases = scene_cases(path, gpu, size) if path.suffix == ".toml" else kernel_cases(path, gpu)
            check_unique_names(cases)
        except Exception as error:  # noqa: BLE001  (reported or raised by the caller)
            if on_error is None:
                raise
            on_error(source, error)
            # its patterns are not reported again as patterns without a case
            unseen = [pattern for pattern in unseen if pattern not in wanted]
            continue
        for case in cases:
            meant = [pattern for pattern in wanted if matches(case.name, pattern)]
            unseen = [pattern for pattern in unseen if pattern not in meant]
            if meant or not patterns:
                yield case
    for pattern in unseen:
        raise UserError(_no_case(pattern, known))


def _no_case(pattern: str, known: dict[str, Path]) -> str:
    return f"bench: no case {pattern}; there are {', '.join(known) or 'none'} (bench list shows all)"


def matches(name: str, pattern: str) -> bool:
    """True if `pattern` is a case's name or its first components: rays and rays/a match rays/a/size=3, ray does not."""
    return name == pattern or name.startswith(pattern.rstrip("/") + "/")


def check_unique_names(cases: list[Case]) -> None:
    """Raises InputError if two cases have the same name, which would mix up their records."""
    for name, count in Counter(case.name for case in cases).items():
        if count > 1:
            raise InputError(f"bench: two cases are named {name}; a name stands for one case")


def sources(tree: Path = ROOT) -> dict[str, Path]:
    """Returns the files that define cases, by their name; InputError for a name twice."""
    files: dict[str, Path] = {}
    for path in [*sorted(tree.glob("scenes/*.toml")), *sorted(tree.glob("tests/fps/*.py"))]:
        if not re.search(SOURCE_PATTERNS[path.suffix], path.read_text(encoding="utf-8")):
            continue
        other = files.setdefault(path.stem, path)
        if other != path:
            names = f"{other.relative_to(tree)} and {path.relative_to(tree)}"
            raise InputError(f"bench: {names} would both be called {path.stem}; rename one of them")
    return files


def kernel_cases(path: Path, gpu: DeviceContext) -> list[Case]:
    """Imports tests/fps/NAME.py, which can import modules of its repository, and returns its cases as NAME/CASE."""
    tree = str(path.parents[2])
    if tree not in sys.path:
        sys.path.append(tree)
    spec = importlib.util.spec_from_file_location(f"fps_{path.stem}", path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of the module look themselves up there
    spec.loader.exec_module(module)
    made = module.cases(gpu)
    cases: list[Case] = [plain_case(*item) for item in made.items()] if isinstance(made, dict) else made
    for case in cases:
        case.name = f"{path.stem}/{case.name}"
    return cases


class Processor:
    """A device for plain functions: its clock is the processor time of this process, with all its threads."""

    name, driver, has_reliable_timer = "processor", "", True

    def __init__(self, counters: dict[str, int]):
        self.counters = counters

    def finish(self) -> None:
        """Nothing is left to wait for."""

    def time_seconds(self, work: Callable[[], object]) -> float:
        """The processor time of work() in seconds."""
        began = time.process_time()
        work()
        return time.process_time() - began


def plain_case(name: str, function_or_pair: Plain) -> Case:
    """The case of a function, or of one and a dict of counters; bytes and arrays that it returns are compared."""
    function, counters = function_or_pair if isinstance(function_or_pair, tuple) else (function_or_pair, {})

    def check() -> bytes | np.ndarray | None:
        result = function()
        return result if isinstance(result, (bytes, np.ndarray)) else None

    return Case(name, "runs/s", 1.0, function, check, Processor(counters))


def tables(records: list[Json]) -> Iterator[str]:
    """Yields the text of table(records) of each module of tests/fps with this function, called with its own records."""
    for name in dict.fromkeys(record["case"].split("/")[0] for record in records):
        table = getattr(sys.modules.get(f"fps_{name}"), "table", None)
        text = table([record for record in records if record["case"].startswith(f"{name}/")]) if table else ""
        if text:
            yield text


def scene_cases(path: Path, gpu: DeviceContext, size: tuple[int, int] | None = None) -> list[Case]:
    """Returns the cases of a scene's [bench] table: one for each panel and combination of swept values.

    A panel of a layout has the size of its rectangle in the layout. A repeated name gets the suffix ~2, ~3, ...
    """
    scene, context = load(path), f"{path}: bench"
    table = from_table(BenchTable, scene.bench, context, path.parent)
    shape = size or table.size or scene.size or DEFAULT_SIZE
    panels = expand_layout(scene)  # [scene] if it is no layout
    rectangles = [(0, 0, *shape)]  # of each panel: x, y, width, height
    if panels != [scene]:
        rectangles = grid(len(panels), shape, scene.settings.columns, scene.settings.gap)
    cases: list[Case] = []
    for panel, rectangle in zip(panels, rectangles, strict=True):
        picture = cache(lambda panel=panel: open_picture(panel, gpu))  # opened by the first draw, for all its cases
        settings = panel.settings
        for key, value in table.set.items():
            settings = replace_in_file(settings, key, value, f"{context}: set: {key}", path.parent)
        panel_name = path.stem if panel == scene else f"{path.stem}/{panel.path.stem}"
        for values in itertools.product(*table.sweep.values()):
            varied, name = settings, panel_name
            for key, value in zip(table.sweep, values, strict=True):
                varied = replace_in_file(varied, key, value, f"{context}: sweep: {key}", path.parent)
                name += f"/{key}={value}"
            same = sum(case.name.partition("~")[0] == name for case in cases)
            run = SceneRun(panel, varied, rectangle[2:], picture, table.frames, gpu)
            cases.append(run.case(f"{name}~{same + 1}" if same else name))
    return cases


@dataclass
class SceneRun:
    """Draws and checks the frames of one scene's case; each draw() counts as one frame.

    If the next run would exceed the picture's sample count, setup() restarts the picture outside the timed region,
    because a finished picture may stop drawing.
    """

    scene: Scene
    settings: object
    size: tuple[int, int]
    picture: Callable[[], AnyPicture]
    frames: int
    gpu: DeviceContext
    frames_drawn: int = 0  # since the picture restarted
    facts: Json = field(default_factory=dict)

    def case(self, name: str) -> Case:
        """Returns the case that draws these frames."""
        device = LazyDevice(lambda: self.run().device)
        case = Case(name, "frames/s", self.frames, self.run, self.check, device, setup=self.setup)
        case.counters = self.counters
        self.facts |= {"size": list(self.size), "scene": self.scene.path.name}
        case.facts = self.facts
        # first called after check(), whose draws have opened the devices
        case.others = cache(lambda: [other for other in self._open_devices() if other is not device.opened()])
        return case

    def run(self) -> Frame:
        """Draws the frames of one run without waiting; returns the last."""
        for _ in range(self.frames):
            frame = self.picture().draw(self.settings, self.size, 0.0)
        self.frames_drawn += self.frames
        return frame

    def setup(self) -> None:
        """Restarts a picture that would finish during the next run.

        A picture restarts when its time changes, so a draw at time 1 discards its samples, and a draw at time 0 begins
        the picture of run() again. That draw is its first frame.
        """
        total = self.picture().sample_count(self.settings, self.size)
        if total > 1 and self.frames_drawn + self.frames > total:
            for time in (1.0, 0.0):
                self.picture().draw(self.settings, self.size, time)
            self.frames_drawn = 1

    def check(self) -> np.ndarray:
        """Returns the first run's linear picture (height, width, 4); AssertionError if it is black or not finite."""
        self.frames_drawn = 0
        linear: np.ndarray = self.run().read()
        self.facts["ignored"] = format_ignored(self.picture().ignored(self.settings))
        assert linear.shape == (self.size[1], self.size[0], 4), (linear.shape, self.size)
        assert np.isfinite(linear).all(), "the picture has values that are not finite"
        assert linear[..., :3].max() > 0, "the picture is black"
        return linear

    def counters(self) -> dict[str, int]:
        """Returns {"rays": number of rays of the last draw}, or nothing for a picture that does not count them."""
        rays = [numbers for name, numbers in self.picture().report().items() if name.endswith("rays")]
        return {"rays": int(np.sum(rays))} if rays else {}

    def _open_devices(self) -> list[Any]:
        """Returns the devices that this process has opened so far."""
        opened = vars(self.gpu)  # has the cached properties `devices` and `gl` once they were read
        return [*opened.get("devices", ()), *([opened["gl"]] if "gl" in opened else [])]


class LazyDevice:
    """A device that is opened when an attribute is first read, so that listing cases opens none."""

    def __init__(self, opener: Callable[[], object]):
        self.opened = cache(opener)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.opened(), name)
