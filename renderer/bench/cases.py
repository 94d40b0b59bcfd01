"""What can be measured: every scene with a [bench] table (BenchTable), and the cases of tests/fps/NAME.py.

A module tests/fps/NAME.py defines `cases(gpu) -> list[Case]`; NAME/ is prefixed to their names. Cases that differ in
one number, named such as size=1024, become a curve in the report. cases() must return quickly: compile kernels and
fill buffers in check(), which always runs first, and pass LazyDevice(lambda: gpu.device) as the device. Where a
device lacks what a case needs, cases() or check() raises UnavailableError. If the module has a function
`table(records) -> str`, its text is printed after the rows of the cases.

Scenes and modules are those of this repository, or of the one that --repo names.
"""

import importlib.util
import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from renderer.errors import InputError, UserError
from renderer.gpu import DeviceContext
from renderer.paths import ROOT
from renderer.pictures import expand_layout, load, open_picture
from renderer.plain import format_ignored
from renderer.scene.panel_grid import grid
from renderer.scene.scene import Scene
from renderer.scene.schema import from_table, replace_in_file, setting

DEFAULT_SIZE = (640, 360)
SOURCE_PATTERNS = {
    ".toml": r"(?m)^\s*\[bench\]",
    ".py": r"(?m)^def cases\(",
}  # what makes a file a source; it is not run for that
MAX_CASES = 1000


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
    facts: dict = field(default_factory=dict)  # further keys of the record, such as sizes
    counters: Callable[[], dict[str, int]] | None = None  # exact counts of one run beside the device's own
    setup: Callable[[], object] | None = None
    others: Callable[[], list] = list  # further devices that a run may use

    def devices(self) -> list:
        """Every device that a run uses, `device` first."""
        return [self.device, *self.others()]

    def prepare(self) -> None:
        """Does what must precede each run untimed, and waits for it."""
        if self.setup:
            self.setup()
            self.finish()

    def finish(self) -> None:
        """Waits for all work on every device of the case."""
        for device in self.devices():
            device.finish()


@dataclass(frozen=True)
class BenchTable:
    """The [bench] table of a scene; each panel of a layout is a case of its own.

    `size` defaults to the scene's. `set` changes settings. Each combination of `sweep`'s values is a case, named
    SCENE/KEY=VALUE.
    """

    size: tuple[int, int] | None = setting(None, 1, 1 << 14)
    frames: int = setting(1, 1, 10_000, "frames in one run")
    set: dict[str, Any] = setting(MappingProxyType({}))
    sweep: dict[str, tuple[Any, ...]] = setting(MappingProxyType({}))

    def __post_init__(self) -> None:
        if not 1 <= math.prod(map(len, self.sweep.values())) <= MAX_CASES:
            raise ValueError(f"sweep must have 1 to {MAX_CASES} combinations of values")


def _raise(name: str, error: Exception) -> None:
    raise error


def find(patterns: list[str], gpu: DeviceContext, tree: Path = ROOT, size=None, on_error=_raise) -> Iterator[Case]:
    """The cases whose name, or whose leading parts before a slash, are among the patterns; all cases for no pattern.

    Opens one source after another, and only those that a pattern names. UserError for a pattern that names no case.
    `size` replaces the size of scenes; on_error(source, error) is called for a source that cannot be opened.
    """
    known = sources(tree)
    for pattern in patterns:
        if pattern.split("/")[0] not in known:
            raise UserError(_no_case(pattern, known))
    return _find_each(patterns, known, gpu, size, on_error)


def _find_each(patterns: list[str], known: dict[str, Path], gpu: DeviceContext, size, on_error) -> Iterator[Case]:
    unseen = patterns
    for source, path in known.items():
        wanted = [pattern for pattern in patterns if pattern.split("/")[0] == source]
        if patterns and not wanted:
            continue
        try:
            cases = scene_cases(path, gpu, size) if path.suffix == ".toml" else kernel_cases(path, gpu)
            check_unique_names(cases)
        except Exception as error:  # noqa: BLE001  (reported or raised by the caller)
            on_error(source, error)
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
    """Whether `pattern` is the name or leading parts of it: rays and rays/a match rays/a/size=3, but ray does not."""
    return name == pattern or name.startswith(pattern.rstrip("/") + "/")


def check_unique_names(cases: list[Case]) -> None:
    """InputError for two cases of one name: their records would be mixed up."""
    for name, count in Counter(case.name for case in cases).items():
        if count > 1:
            raise InputError(f"bench: two cases are named {name}; a name stands for one case")


def sources(tree: Path = ROOT) -> dict[str, Path]:
    """The file of each source of cases, by the first part of its cases' names."""
    found: dict[str, Path] = {}
    for path in [*sorted(tree.glob("scenes/*.toml")), *sorted(tree.glob("tests/fps/*.py"))]:
        if not re.search(SOURCE_PATTERNS[path.suffix], path.read_text(encoding="utf-8")):
            continue
        other = found.setdefault(path.stem, path)
        if other != path:
            names = f"{other.relative_to(tree)} and {path.relative_to(tree)}"
            raise InputError(f"bench: {names} would both be called {path.stem}; rename one of them")
    return found


def kernel_cases(path: Path, gpu: DeviceContext) -> list[Case]:
    """The cases of tests/fps/NAME.py, which can import modules of its own repository."""
    tree = str(path.parents[2])
    if tree not in sys.path:
        sys.path.append(tree)
    spec = importlib.util.spec_from_file_location(f"fps_{path.stem}", path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of the module look themselves up there
    spec.loader.exec_module(module)
    cases = module.cases(gpu)
    for case in cases:
        case.name = f"{path.stem}/{case.name}"
    return cases


def tables(records: list[dict]) -> Iterator[str]:
    """The texts of table(records of a module's own cases), for each module of tests/fps that has this function."""
    for name in dict.fromkeys(record["case"].split("/")[0] for record in records):
        table = getattr(sys.modules.get(f"fps_{name}"), "table", None)
        text = table([record for record in records if record["case"].startswith(f"{name}/")]) if table else ""
        if text:
            yield text


def scene_cases(path: Path, gpu: DeviceContext, size: tuple[int, int] | None = None) -> list[Case]:
    """The cases of a scene's [bench] table; a panel of a layout is timed at its own size."""
    scene, context = load(path), f"{path}: bench"
    table = from_table(BenchTable, scene.bench, context)
    shape = size or table.size or scene.size or DEFAULT_SIZE
    panels = expand_layout(scene)
    rectangles = [(0, 0, *shape)]
    if panels != [scene]:
        rectangles = grid(len(panels), shape, scene.settings.columns, scene.settings.gap)
    cases: list[Case] = []
    for panel, rectangle in zip(panels, rectangles, strict=True):
        picture = cache(lambda panel=panel: open_picture(panel, gpu))
        settings = panel.settings
        for key, value in table.set.items():
            settings = replace_in_file(settings, key, value, f"{context}: set: {key}")
        panel_name = path.stem if panel == scene else f"{path.stem}/{panel.path.stem}"
        for values in itertools.product(*table.sweep.values()):
            varied, name = settings, panel_name
            for key, value in zip(table.sweep, values, strict=True):
                varied = replace_in_file(varied, key, value, f"{context}: sweep: {key}")
                name += f"/{key}={value}"
            same = sum(case.name.partition("~")[0] == name for case in cases)
            run = SceneRun(panel, varied, rectangle[2:], picture, table.frames, gpu)
            cases.append(run.case(f"{name}~{same + 1}" if same else name))
    return cases


class SceneRun:
    """Times frames of one scene; each draw() counts as one frame.

    When the next run would exceed the picture's sample count, setup() restarts the picture outside the timed region,
    because a finished picture may stop drawing.
    """

    def __init__(self, scene: Scene, settings: Any, size: tuple[int, int], picture, frames: int, gpu: DeviceContext):
        self._scene, self._settings, self._size = scene, settings, size
        self._picture, self._frames, self._gpu = picture, frames, gpu
        self._since = 0  # frames since the picture restarted
        self._facts: dict[str, Any] = {"size": list(size), "scene": scene.path.name}

    def case(self, name: str) -> Case:
        """The case of these frames."""
        device = LazyDevice(lambda: self.run().device)
        case = Case(name, "frames/s", self._frames, self.run, self.check, device, setup=self.setup)
        case.counters = self.counters
        case.facts = self._facts
        case.others = cache(lambda: [other for other in self._open_devices() if other is not device.opened()])
        return case

    def run(self) -> Any:
        """Draws the frames of one run; returns the last."""
        for _ in range(self._frames):
            frame = self._picture().draw(self._settings, self._size, 0.0)
        self._since += self._frames
        return frame

    def setup(self) -> None:
        """Restarts a picture that would finish during the next run, by a draw at another time."""
        total = self._picture().sample_count(self._settings, self._size)
        if total > 1 and self._since + self._frames > total:
            for time in (1.0, 0.0):
                self._picture().draw(self._settings, self._size, time)
            self._since = 1

    def check(self) -> np.ndarray:
        """The first frame as linear values; AssertionError where it is black or not finite."""
        self._since = 0
        linear = self.run().read()
        self._facts["ignored"] = format_ignored(self._picture().ignored(self._settings))
        assert linear.shape == (self._size[1], self._size[0], 4), (linear.shape, self._size)
        assert np.isfinite(linear).all(), "the picture has values that are not finite"
        assert linear[..., :3].max() > 0, "the picture is black"
        return linear

    def counters(self) -> dict[str, int]:
        """Rays of the last draw, where the picture counts them."""
        rays = [numbers for name, numbers in self._picture().report().items() if name.endswith("rays")]
        return {"rays": int(np.sum(rays))} if rays else {}

    def _open_devices(self) -> list:
        """The devices that this process has opened so far."""
        opened = vars(self._gpu)
        return [*opened.get("devices", ()), *([opened["gl"]] if "gl" in opened else [])]


class LazyDevice:
    """A device that is opened when an attribute is first read, so that listing cases opens none."""

    def __init__(self, opener: Callable[[], object]):
        self.opened = cache(opener)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.opened(), name)
