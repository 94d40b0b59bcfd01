"""What a C$ program draws: main(int x, int y) at every pixel, recompiled when its file is saved.

The last program that compiled goes on while the file has a mistake; `report` then says the mistake. main's parameters
width, height, time and mouse are filled in; its other numbers are settings, its arrays are files.
"""

import dataclasses
import sys
import time as clock
from dataclasses import dataclass
from pathlib import Path

from renderer.cdollar.ir.types import FunctionType, Scalar, component_types
from renderer.cdollar.runtime.evaluate import (
    PICTURE_PARAMETERS,
    build_picture,
    default,
    is_picture,
    load_program,
    main_of,
)
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.numpy_target import NumpyTarget
from renderer.errors import InputError, UserError
from renderer.gpu import DeviceContext
from renderer.pictures.picture import Picture as BasePicture
from renderer.scene.scene import Scene, ToneMapping
from renderer.scene.schema import PictureSettings, from_table, setting

POLL_SECONDS = 0.25  # seconds between looks at the file
PYTHON_TYPES = {"bool": bool, "int": int, "uint": int, "float": float, "double": float}


@dataclass(frozen=True)
class Settings(PictureSettings):
    program: str = setting("", help="the .cb file", file=True)
    mouse: tuple[float, float] = setting((0.0, 0.0), help="where the mouse is, in pixels")


def open_file(path: Path) -> Scene:
    """A program as a scene: its numbers with defaults are settings."""
    settings = read_settings({"program": path.name}, str(path), path.parent)
    return Scene(path, path.stem, "cdollar", settings, Picture.tone)


def read_settings(table: dict, where: str, folder: Path):
    """The Settings of the program that a table names: the program's own parameters stand beside the common ones."""
    common = from_table(Settings, {k: v for k, v in table.items() if k == "program"}, where, folder)
    if not common.program:
        raise InputError(f"{where}: program is missing; it is the name of a .cb file")
    compilation = load_program(
        Path(common.program), lambda compilation: NumpyTarget(compilation.dag, compilation.dag.spans)
    )
    return from_table(settings_of(compilation, common.program), table, where, folder)


def settings_of(compilation, program: str) -> type:
    """A frozen dataclass with a field for each parameter of main that the picture does not fill in."""
    function = main_of(compilation)
    if not is_picture(function):
        raise InputError(f"{program}: main must take `int x, int y` and return float, float3 or float4 to be a picture")
    found = []
    for parameter, name, type_ in zip(
        function.declaration.parameters, function.parameter_names, function.parameter_types, strict=True
    ):
        if name in ("x", "y", *PICTURE_PARAMETERS):
            continue
        if isinstance(type_, FunctionType):
            found.append((name, str, setting("", help=f"{type_} from a .npy file", file=True)))
            continue
        default = default_of(compilation, parameter, type_)
        kind = (
            PYTHON_TYPES[type_.name]
            if isinstance(type_, Scalar)
            else tuple[(PYTHON_TYPES[component_types(type_)[0]],) * len(default)]
        )
        found.append((name, kind, setting(default[0] if isinstance(type_, Scalar) else default, help=str(type_))))
    return dataclasses.make_dataclass("ProgramSettings", found, bases=(Settings,), frozen=True)


def default_of(compilation, parameter, type_) -> tuple:
    if parameter.default is None:
        return tuple(PYTHON_TYPES[part](0) for part in component_types(type_))
    value = default(compilation, parameter.default, type_, parameter.name)
    return tuple(PYTHON_TYPES[node.type](node.attribute.number) for node in value.nodes)


class Picture(BasePicture):
    settings_type = Settings
    read_settings = staticmethod(read_settings)
    tone = ToneMapping("manual")

    def __init__(self, gpu: DeviceContext):
        self._device = gpu.device
        self._weave = self._device.kernel("cdollar/interleave.cu", "weave", group_size=128)
        self._compilation = None
        self._loaded_version: tuple = ()  # the file and its time of the program that is loaded, or that failed
        self._last_poll = 0.0
        self._error = ""
        self._frame = None

    def draw(self, settings, size: tuple[int, int], time: float, tile=None):
        self._reload(settings)
        left, top, width, height = tile or (0, 0, *size)
        given = dict(width=size[0], height=size[1], time=time, mouse=settings.mouse)
        for field in dataclasses.fields(settings):
            if field.name not in ("program", "mouse"):
                given[field.name] = getattr(settings, field.name)
        value = build_picture(self._compilation, given, (left, top, width, height))
        held = self._compilation.target.run(value.node)
        if self._frame is None or self._frame.shape != (height, width, 4):
            self._frame = self._device.buffer((height, width, 4))
        arrays = [buffer for buffer, _ in held.buffers]
        self._weave(width * height, width * height, len(arrays), *(arrays + [arrays[0]] * 4)[:4], self._frame)
        return self._frame

    def sample_count(self, settings, size: tuple[int, int]) -> int:
        return 1

    def depends_on_time(self, settings) -> bool:
        """Whether main asks for the time."""
        self._reload(settings)
        return "time" in main_of(self._compilation).parameter_names

    def report(self) -> dict:
        found = {"error": self._error} if self._error else {}
        if self._compilation is not None:
            counters = self._compilation.target.counters
            found |= {"kernels_compiled": counters.built, "kernel_cache_hits": counters.found}
        return found

    def _reload(self, settings) -> None:
        """Compiles the program if its file is new; a mistake is told once and the last good program stays."""
        now = clock.monotonic()
        path = Path(settings.program)
        if self._compilation is not None and self._loaded_version[0] == path and now - self._last_poll < POLL_SECONDS:
            return
        self._last_poll = now
        try:
            state = (path, path.stat().st_mtime_ns)
        except OSError as error:
            state, reason = (path, 0), InputError(f"{path}: {error.strerror or error}")
        else:
            reason = None
        if state == self._loaded_version:
            return
        same = bool(self._loaded_version) and self._loaded_version[0] == path
        self._loaded_version = state
        try:
            if reason is not None:
                raise reason
            compilation = load_program(path, lambda compilation: DeviceTarget(compilation, self._device, "device"))
            settings_of(compilation, str(path))
        except UserError as error:
            if self._compilation is None or not same:
                raise
            self._error = str(error)
            print(error, file=sys.stderr)
            return
        self._compilation, self._error = compilation, ""
