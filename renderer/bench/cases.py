"""What can be measured: every scene with a [bench] table, and the kernel cases of tests/fps/NAME.py.

A scene's [bench] table: `size` = [width, height] (default the scene's), `frames` in one run (default 1), `set` =
{key: value}, and `sweep` = {key: [values]}, which makes one case a value, named SCENE/KEY=VALUE. A layout makes one
case a panel.

A module tests/fps/NAME.py defines `cases(gpu) -> list[Case]`, whose names are put behind NAME/ (a name such as
size=1024 makes a curve in the report). Opening the cases must be quick: compile and fill buffers in check(), which
always runs first, and hand over LazyDevice(lambda: gpu.device). Where a device lacks what a case needs,
cases() or check() raises UnavailableError. `table(records) -> str`, if the module has one, is printed after the rows
of its cases.

Both are looked for in this repository, or in the folder that --repo names.
"""

import importlib.util
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import InputError, UserError
from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.paths import ROOT
from renderer.pictures import expand_layout, load, open_picture
from renderer.scene.panel_grid import grid
from renderer.scene.scene import Scene
from renderer.scene.schema import replace_path

DEFAULT_SIZE = (640, 360)
BENCH_KEYS = ("size", "frames", "set", "sweep")
SOURCE_PATTERNS = {".toml": r"(?m)^\s*\[bench\]", ".py": r"(?m)^def cases\("}  # of a source, found without running it
MAX_FRAMES = 10_000
MAX_CASES = 1000


def _no_others() -> list:
    return []


@dataclass
class Case:
    """One thing to time.

    `run()` launches the work and does not wait; `check()` verifies its result before any time is taken, by assertion,
    and returns what two versions that do the same must agree on: bytes, compared exactly; a linear picture (height,
    width, n), compared after display within a tolerance; or None where rounding may differ.
    The rate is `work` / seconds in `unit`: with work = rays / 1e6 the unit is "Mrays/s". `device` has name, counters,
    has_reliable_timer, finish() and time_seconds(work); `peer()` does the same job by another library and returns its
    seconds, measured in this run; `setup()` runs before each run, untimed.
    """

    name: str
    unit: str
    work: float
    run: Callable[[], object]
    check: Callable[[], bytes | np.ndarray | None]
    device: Any
    peer: Callable[[], float] | None = None
    peer_name: str = ""
    facts: dict = field(default_factory=dict)  # sizes and the like, kept in the record
    counters: Callable[[], dict[str, int]] | None = None  # exact numbers of one run beside the device's own
    setup: Callable[[], object] | None = None
    others: Callable[[], list] = _no_others  # further devices that a run may use

    def devices(self) -> list:
        """Every device that a run uses, `device` first."""
        return [self.device, *self.others()]

    def finish(self) -> None:
        """Waits for all work on every device of the case."""
        for device in self.devices():
            device.finish()


def _raise(name: str, error: Exception) -> None:
    raise error


def find(patterns: list[str], gpu: DeviceContext, tree: Path = ROOT, size=None, on_error=_raise) -> Iterator[Case]:
    """The cases whose name, or whose part of the name before a slash, is among the patterns; all for none.

    Sources are opened one after the other, and only what the patterns can mean. UserError names a pattern that means
    nothing. `size` replaces the size of scenes; on_error(source, error) hears of sources that cannot be opened.
    """
    known = sources(tree)
    for pattern in patterns:
        if pattern.split("/")[0] not in known:
            raise UserError(_no_case(pattern, known))
    return _find_each(patterns, known, gpu, size, on_error)


def _find_each(patterns: list[str], known: dict, gpu: DeviceContext, size, on_error) -> Iterator[Case]:
    unseen = dict.fromkeys(patterns)
    for source, open_cases in known.items():
        wanted = [pattern for pattern in patterns if pattern.split("/")[0] == source]
        if patterns and not wanted:
            continue
        try:
            cases = open_cases(gpu, size)
            check_unique_names(cases)
        except Exception as error:  # noqa: BLE001  (told or raised by the caller)
            on_error(source, error)
            unseen = {pattern: None for pattern in unseen if pattern not in wanted}
            continue
        for case in cases:
            meant = [pattern for pattern in wanted if matches(case.name, pattern)]
            if meant or not patterns:
                yield case
            for pattern in meant:
                unseen.pop(pattern, None)
    for pattern in unseen:
        raise UserError(_no_case(pattern, known))


def _no_case(pattern: str, known) -> str:
    return f"bench: no case {pattern}; there are {', '.join(known) or 'none'} (bench list shows all)"


def matches(name: str, pattern: str) -> bool:
    """Whether `pattern` is the name or a whole first part of it."""
    return name == pattern or name.startswith(pattern.rstrip("/") + "/")


def check_unique_names(cases: list[Case]) -> None:
    """InputError for two cases of one name: their records could not be told apart."""
    seen: set[str] = set()
    for case in cases:
        if case.name in seen:
            raise InputError(f"bench: two cases are named {case.name}; a name stands for one case")
        seen.add(case.name)


def sources(tree: Path = ROOT) -> dict[str, Callable[..., list[Case]]]:
    """The first parts of all names and what opens their cases."""
    found: dict[str, Callable[..., list[Case]]] = {}
    paths: dict[str, Path] = {}
    for path in [*sorted(tree.glob("scenes/*.toml")), *sorted(tree.glob("tests/fps/*.py"))]:
        if not re.search(SOURCE_PATTERNS[path.suffix], path.read_text(encoding="utf-8")):
            continue
        if path.stem in found:
            one, other = (p.relative_to(tree) for p in (paths[path.stem], path))
            raise InputError(f"bench: {one} and {other} would both be called {path.stem}; rename one of them")
        paths[path.stem] = path
        opener = scene_cases if path.suffix == ".toml" else kernel_cases
        found[path.stem] = lambda gpu, size, opener=opener, path=path: opener(path, gpu, size)
    return found


def kernel_cases(path: Path, gpu: DeviceContext, size=None) -> list[Case]:
    """The cases of tests/fps/NAME.py; modules of its own repository can be imported by it."""
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
    """What the modules of tests/fps that have a `table(records) -> str` make of the records of their own cases."""
    for name in dict.fromkeys(record["case"].split("/")[0] for record in records):
        table = getattr(sys.modules.get(f"fps_{name}"), "table", None)
        text = table([record for record in records if record["case"].startswith(f"{name}/")]) if table else ""
        if text:
            yield text


def scene_cases(path: Path, gpu: DeviceContext, size: tuple[int, int] | None = None) -> list[Case]:
    """The cases of a scene's [bench] table; a scene of several panels has one case for each, at its panel's size."""
    scene = load(path)
    members = expand_layout(scene)
    if members != [scene]:
        return _panel_cases(path, scene, members, size, gpu)
    where = f"{path}: bench"
    for key in scene.bench:
        if key not in BENCH_KEYS:
            raise InputError(f"{where}: unknown key {key!r}; allowed are {', '.join(BENCH_KEYS)}")
    settings = scene.settings
    for key, value in _table(scene.bench, "set", where).items():
        settings = _with(settings, key, value, f"{where}: set: {key}")
    frames = scene.bench.get("frames", 1)
    if type(frames) is not int or not 1 <= frames <= MAX_FRAMES:
        raise InputError(f"{where}: frames is {frames!r}; it must be a whole number from 1 to {MAX_FRAMES}")
    shape = size or _size(scene, where)
    picture = cache(lambda: open_picture(scene, gpu))
    sweep = _table(scene.bench, "sweep", where)
    if not all(isinstance(values, list) and 1 <= len(values) <= MAX_CASES for values in sweep.values()):
        raise InputError(f"{where}: sweep is {sweep!r}; each key must have a list of 1 to {MAX_CASES} values")
    cases = []
    for values in itertools.islice(itertools.product(*sweep.values()), MAX_CASES):
        varied, name = settings, path.stem
        for key, value in zip(sweep, values, strict=True):
            varied, name = _with(varied, key, value, f"{where}: sweep: {key}"), f"{name}/{key}={value}"
        cases.append(SceneRun(scene, varied, shape, picture, frames, gpu).case(name))
    return cases


def _panel_cases(path: Path, scene: Scene, members: list[Scene], size, gpu: DeviceContext) -> list[Case]:
    shape = size or _size(scene, f"{path}: bench")
    rectangles = grid(len(members), shape, scene.settings.columns, scene.settings.gap)
    cases: list[Case] = []
    for member, rectangle in zip(members, rectangles, strict=True):
        picture = cache(lambda member=member: open_picture(member, gpu))
        run = SceneRun(member, member.settings, rectangle[2:], picture, 1, gpu)
        name = f"{path.stem}/{member.path.stem}"
        same = sum(case.name.partition("~")[0] == name for case in cases)
        cases.append(run.case(f"{name}~{same + 1}" if same else name))
    return cases


def _table(bench: dict, key: str, where: str) -> dict:
    value = bench.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"{where}: {key} is {value!r}; it must be a table such as {{ depth = 6 }}")
    return value


def _size(scene: Scene, where: str) -> tuple[int, int]:
    size = scene.bench.get("size", list(scene.size or DEFAULT_SIZE))
    if not (isinstance(size, list) and len(size) == 2 and all(type(n) is int and 1 <= n <= 1 << 14 for n in size)):
        raise InputError(f"{where}: size is {size!r}; it must be [width, height], each 1 to {1 << 14}")
    return tuple(size)


def _with(settings, key: str, value, where: str):
    try:
        return replace_path(settings, key.replace("[", ".").replace("]", "").split("."), value, where)
    except UserError as error:
        raise InputError(str(error)) from error


class SceneRun:
    """Times frames of one scene; each draw() counts as one frame.

    When the next run would exceed the picture's sample count, setup() restarts the picture outside the timed region,
    because a finished picture may stop drawing.
    """

    def __init__(self, scene: Scene, settings, size, picture, frames: int, gpu: DeviceContext):
        self._scene, self._settings, self._size = scene, settings, size
        self._picture, self._frames, self._gpu = picture, frames, gpu
        self._since = 0  # frames since the picture was begun

    def case(self, name: str) -> Case:
        """The case of these frames."""
        device = LazyDevice(lambda: _device_of_frame(self.run()))
        case = Case(name, "frames/s", self._frames, self.run, self.check, device, setup=self.setup)
        case.counters = self.counters
        case.facts = {"size": list(self._size), "scene": self._scene.path.name}
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
            for moment in (1.0, 0.0):
                self._picture().draw(self._settings, self._size, moment)
            self._since = 1

    def check(self) -> np.ndarray:
        """The first frame as linear values; AssertionError where it is black or not finite."""
        self._since = 0
        linear = self.run().read()
        assert linear.shape == (self._size[1], self._size[0], 4), (linear.shape, self._size)
        assert np.isfinite(linear).all(), "the picture has values that are not finite"
        assert linear[..., :3].max() > 0, "the picture is black"
        return linear

    def counters(self) -> dict[str, int]:
        """Rays of the last draw, where the picture counts them."""
        rays = [numbers for name, numbers in self._picture().report().items() if name.endswith("rays")]
        return {"rays": int(np.sum(rays))} if rays else {}

    def _open_devices(self) -> list:
        """The devices that the picture has made this process open."""
        opened = vars(self._gpu)
        return [*opened.get("devices", ()), *([opened["gl"]] if "gl" in opened else [])]


class LazyDevice:
    """A device that is opened when something of it is first asked for: listing cases opens none."""

    def __init__(self, opener: Callable[[], object]):
        self.opened = cache(opener)

    def __getattr__(self, name):
        return getattr(self.opened(), name)


def _device_of_frame(frame):
    return frame.gl if isinstance(frame, Texture) else frame.device
