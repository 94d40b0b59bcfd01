"""The picture `cdollar`: a C$ program whose main(int x, int y) returns the color of a pixel.

The picture passes width, height, time and mouse to main. The other numbers of main are settings; its arrays come from
.npy files. The window opens a program again when its file is saved.
"""

from functools import partial
from keyword import iskeyword
from pathlib import Path
from types import GenericAlias
from typing import Any

from renderer.cdollar.checker.values import DataValue
from renderer.cdollar.frontend.ast import Parameter
from renderer.cdollar.ir.dag import Node
from renderer.cdollar.ir.types import Data, FunctionType, Scalar, component_types
from renderer.cdollar.lowering.compilation import Compilation
from renderer.cdollar.runtime.evaluate import build_picture, is_picture, load_program, main_function
from renderer.cdollar.runtime.parameters import PICTURE_PARAMETERS, default_value
from renderer.cdollar.runtime.program_graph import run_graph
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.errors import InputError
from renderer.gpu import Buffer, DeviceContext
from renderer.images.algorithm_view import AlgorithmView
from renderer.images.graph_picture import graph_view
from renderer.pictures.picture import CENTER, Point, Size, Tile
from renderer.pictures.picture import Picture as BasePicture
from renderer.records import dataclass, extended
from renderer.scene.scene import Scene, ToneMapping
from renderer.scene.schema import PictureSettings, from_table, kept_values, required_file, setting

PYTHON_TYPES: dict[str, type] = {"bool": bool, "int": int, "uint": int, "float": float, "double": float}


@dataclass(frozen=True)
class Settings(PictureSettings):
    """The settings of all programs; settings_class() adds the parameters of one program."""

    program: str = required_file((".cb",), "the .cb file")
    mouse: tuple[float, float] = setting((0.0, 0.0), help="where the mouse is, in pixels")


def open_file(path: Path) -> Scene:
    """A program as a scene: its numbers with defaults are settings."""
    settings = Picture.read_settings({"program": path.name}, str(path), path.parent)
    return Scene(path, path.stem, "cdollar", settings, Picture.tone)


def settings_class(compilation: Compilation, program: str) -> type[Settings]:
    """A frozen dataclass with a field for each parameter of main that the picture does not pass."""
    function = main_function(compilation)
    if not is_picture(function):
        raise InputError(f"{program}: main must take `int x, int y` and return float, float3 or float4 to be a picture")
    fields: list[tuple[str, Any, Any]] = []
    for parameter, name, type_ in zip(
        function.declaration.parameters, function.parameter_names, function.parameter_types, strict=True
    ):
        if name in ("x", "y", *PICTURE_PARAMETERS):
            continue
        if iskeyword(name):
            raise InputError(f"{program}: the parameter `{name}` cannot be a setting: a keyword of Python; rename it")
        if isinstance(type_, FunctionType):
            fields.append((name, str, setting("", help=f"{type_} from a .npy file", file=(".npy",))))
            continue
        assert isinstance(type_, Data), "a parameter is data or a function"
        default = default_numbers(compilation, parameter, type_)
        kind: Any = PYTHON_TYPES[component_types(type_)[0]]
        vector: Any = GenericAlias(tuple, (kind,) * len(default))
        kind, value = (kind, default[0]) if isinstance(type_, Scalar) else (vector, default)
        fields.append((name, kind, setting(value, help=str(type_))))
    return extended("ProgramSettings", Settings, fields)


def default_numbers(compilation: Compilation, parameter: Parameter, type_: Data) -> tuple[float, ...]:
    """The default of a parameter of main; zeros without one."""
    if parameter.default is None:
        return tuple(PYTHON_TYPES[t](0) for t in component_types(type_))
    value = default_value(compilation, parameter.default, type_, parameter.name)
    assert isinstance(value, DataValue), "the parameter is data"
    return tuple(PYTHON_TYPES[node.type](node.attribute.number) for node in value.nodes)


class Picture(BasePicture[Settings]):
    """Draws a program; one draw is the whole picture."""

    settings_type = Settings
    tone = ToneMapping("manual")
    algorithm_names = ("graph",)
    views_are_steady = True

    def __init__(self, gpu: DeviceContext) -> None:
        """Compile the kernel that interleaves color channels."""
        super().__init__(gpu)
        self._device = gpu.device
        self._interleave = self._device.kernel("cdollar/interleave.cu", "interleave", group_size=128)
        self._compilation: Compilation | None = None  # the program as compiled for the last draw

    @classmethod
    def read_settings(cls, table: object, context: str, folder: Path | None) -> Settings:
        """The settings of the program that a table names, from that table. Raises InputError."""
        rest = {k: v for k, v in table.items() if k == "program"} if isinstance(table, dict) else table
        common = from_table(Settings, rest, context, folder)
        compilation = load_program(Path(common.program), NumpyTarget)
        return from_table(settings_class(compilation, common.program), table, context, folder)

    def draw(self, settings: Settings, size: Size, time: float, tile: Tile | None = None) -> Buffer:
        """Draw the picture, or a tile of it."""
        compilation, node = self._value(settings, size, time, tile)
        _, _, width, height = tile or (0, 0, *size)
        assert isinstance(compilation.target, DeviceTarget)
        channels = compilation.target.run(node).buffers
        frame = self.cached("frame", (height, width), lambda: self._device.buffer((height, width, 4)))
        buffers = (channels + [channels[0]] * 4)[:4]  # the kernel takes four, and reads as many as there are channels
        self._interleave(width * height, width * height, len(channels), *buffers, frame)
        return frame

    def _value(self, settings: Settings, size: Size, time: float, tile: Tile | None) -> tuple[Compilation, Node]:
        """The program of the settings, and the node of the picture or of a tile of it."""
        compilation = self._load(settings)
        left, top, width, height = tile or (0, 0, *size)
        given = dict(width=size[0], height=size[1], time=time, mouse=settings.mouse)
        parameters = self.cached("parameters", settings.program, lambda: settings_class(compilation, settings.program))
        values = vars(parameters(**kept_values(settings, parameters)))
        given |= {name: value for name, value in values.items() if name not in ("program", "mouse")}
        return compilation, build_picture(compilation, given, (left, top, width, height)).node

    def algorithm(self, name: str, settings: Settings, size: Size, at: Point = CENTER) -> AlgorithmView:
        """The graph of the program at time 0, before and after the passes, and the kernels that compute it."""
        target = self._load(settings).target
        assert isinstance(target, DeviceTarget)
        return graph_view(run_graph(target, lambda: self._value(settings, size, 0.0, None)[1]), size)

    def depends_on_time(self, settings: Settings) -> bool:
        """True if main has the parameter time."""
        return "time" in main_function(self._load(settings)).parameter_names

    def report(self) -> dict[str, object]:
        """The kernels that were compiled or found in the cache."""
        if self._compilation is None:
            return {}
        counters = self._compilation.target.counters
        return {"kernels_compiled": counters.compiled, "kernel_cache_hits": counters.cache_hits}

    def _load(self, settings: Settings) -> Compilation:
        """The compiled program of the settings."""
        target = partial(DeviceTarget, device=self._device, name="device", strict=True)  # the same bits everywhere
        load = partial(load_program, Path(settings.program), target)
        self._compilation = self.cached("compilation", settings.program, load)
        return self._compilation
