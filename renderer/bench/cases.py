"""What can be measured: every scene with a [bench] table, and the kernel cases of tests/fps/NAME.py.

A scene's [bench] table: `size` = [width, height] (default the scene's), `draws` in one run (default 1), `set` =
{key: value}, and `vary` = {key: [values]}, which makes one case a value, named SCENE/KEY=VALUE. A module
tests/fps/NAME.py defines `cases(gpu) -> list[Case]`, whose names are put behind NAME/.
"""

import hashlib
import importlib.util
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from renderer import BadInput, UserError
from renderer.gpu import Gpu
from renderer.gpu.gl import Texture
from renderer.pictures import load, open_picture
from renderer.scene import Scene, assigned

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_SIZE = (640, 360)
BENCH_KEYS = ("size", "draws", "set", "vary")
MOST_DRAWS = 10_000


@dataclass
class Case:
    """One thing to time.

    `run()` launches the work and does not wait; `check()` verifies its result before any time is taken, by assertion,
    and returns bytes that must stay the same between two versions that do the same (None where rounding may differ).
    The rate is `work` / seconds in `unit`: with work = rays / 1e6 the unit is "Mrays/s". `device` has finish() and
    seconds(work); `peer()` does the same job by another library and returns its seconds, in this very run.
    """

    name: str
    unit: str
    work: float
    run: Callable[[], object]
    check: Callable[[], bytes | None]
    device: object
    peer: Callable[[], float] | None = None
    peer_name: str = ""
    facts: dict = field(default_factory=dict)  # sizes and the like, kept in the record
    counters: Callable[[], dict[str, int]] | None = None  # exact numbers of one run beside the device's own


def find(patterns: list[str], gpu: Gpu) -> list[Case]:
    """The cases whose name, or whose part of the name before a slash, is among the patterns; all for none.

    Only what the patterns can mean is opened. UserError names a pattern that means nothing.
    """
    cases: list[Case] = []
    for source, opened in sources().items():
        wanted = [pattern for pattern in patterns if pattern.split("/")[0] == source]
        if patterns and not wanted:
            continue
        cases += [case for case in opened(gpu) if not patterns or any(matches(case.name, p) for p in wanted)]
    for pattern in patterns:
        if not any(matches(case.name, pattern) for case in cases):
            raise UserError(f"bench: no case {pattern}; there are {', '.join(sources())} (bench list shows all)")
    refuse_twins(cases)
    return cases


def matches(name: str, pattern: str) -> bool:
    return name == pattern or name.startswith(pattern.rstrip("/") + "/")


def refuse_twins(cases: list[Case]) -> None:
    """BadInput for two cases of one name: their records could not be told apart."""
    seen: set[str] = set()
    for case in cases:
        if case.name in seen:
            raise BadInput(f"bench: two cases are named {case.name}; a name stands for one case")
        seen.add(case.name)


def sources() -> dict[str, Callable[[Gpu], list[Case]]]:
    """The first parts of all names and what opens their cases."""
    found: dict[str, Callable[[Gpu], list[Case]]] = {}
    for path in [*sorted(ROOT.glob("scenes/*.toml")), *sorted(ROOT.glob("tests/fps/*.py"))]:
        if path.stem.startswith("_") or path.suffix == ".toml" and "[bench]" not in path.read_text(encoding="utf-8"):
            continue
        if path.stem in found:
            raise BadInput(f"bench: {path.name} has the name of another source of cases; rename it")
        opener = scene_cases if path.suffix == ".toml" else kernel_cases
        found[path.stem] = lambda gpu, opener=opener, path=path: opener(path, gpu)
    return found


def kernel_cases(path: Path, gpu: Gpu) -> list[Case]:
    """The cases of tests/fps/NAME.py."""
    spec = importlib.util.spec_from_file_location(f"fps_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cases = module.cases(gpu)
    for case in cases:
        case.name = f"{path.stem}/{case.name}"
    return cases


def scene_cases(path: Path, gpu: Gpu) -> list[Case]:
    """The cases of a scene's [bench] table."""
    scene = load(path)
    for key in scene.bench:
        if key not in BENCH_KEYS:
            raise BadInput(f"{path}: bench: unknown key {key!r}; allowed are {', '.join(BENCH_KEYS)}")
    settings = scene.settings
    for key, value in scene.bench.get("set", {}).items():
        settings = _with(settings, key, value, f"{path}: bench: set")
    size = tuple(scene.bench.get("size", scene.size or DEFAULT_SIZE))
    draws = scene.bench.get("draws", 1)
    if type(draws) is not int or not 1 <= draws <= MOST_DRAWS:
        raise BadInput(f"{path}: bench: draws is {draws!r}; it must be a whole number from 1 to {MOST_DRAWS}")
    picture = _once(lambda: open_picture(scene, gpu))
    vary = scene.bench.get("vary", {})
    cases = []
    for values in itertools.product(*vary.values()):
        varied, name = settings, path.stem
        for key, value in zip(vary, values, strict=True):
            varied, name = _with(varied, key, value, f"{path}: bench: vary"), f"{name}/{key}={value}"
        cases.append(scene_case(name, scene, varied, size, picture, draws))
    return cases


def _with(settings, key: str, value, where: str):
    try:
        return assigned(settings, key.replace("[", ".").replace("]", "").split("."), value, where)
    except UserError as error:
        raise BadInput(str(error)) from error


def _once(make):
    made = []

    def get():
        if not made:
            made.append(make())
        return made[0]

    return get


class _DeviceOf:
    """The device of a picture that is not opened before it is first used."""

    def __init__(self, frame):
        self._frame = frame

    def __getattr__(self, name):
        frame = self._frame()
        return getattr(frame.gl if isinstance(frame, Texture) else frame.device, name)


def scene_case(name: str, scene: Scene, settings, size, picture, draws: int) -> Case:
    """Frames a second of one scene; a draw is a frame."""

    def run():
        for _ in range(draws):
            frame = picture().draw(settings, size, 0.0)
        return frame

    def check() -> bytes:
        linear = run().read()
        assert linear.shape == (size[1], size[0], 4), (linear.shape, size)
        assert np.isfinite(linear).all() and linear[..., :3].max() > 0, f"{name}: the picture is black or not finite"
        return hashlib.sha256(linear.tobytes()).digest()

    facts = {"size": list(size), "scene": scene.path.name}
    return Case(name, "frames/s", draws, run, check, _DeviceOf(_once(run)), facts=facts)
