"""Loads programs, builds the value of main, and evaluates it to NumPy arrays.

Text becomes a Compilation (load_text), main with its parameters a Value (build_main), and the Value a Result
(evaluate_value). Used by `rayfold run`, the prompt, C$ functions in Python, C$ pictures and lessons.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from renderer.cdollar.checker.tables import UserFunction
from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, TupleValue, Value
from renderer.cdollar.frontend.ast import AstNode
from renderer.cdollar.frontend.diagnostics import ArgumentError, ProgramError, SourceFile, Span
from renderer.cdollar.frontend.hints import did_you_mean
from renderer.cdollar.frontend.lexer import MAX_SOURCE_CHARS
from renderer.cdollar.frontend.parser import parse
from renderer.cdollar.ir.dag import BoundVariable, Range
from renderer.cdollar.ir.types import DTYPES, FLOAT, INT, Data, Record, Type, Vector, component_types
from renderer.cdollar.lowering.compilation import Compilation
from renderer.cdollar.lowering.conversions import materialize, resolve
from renderer.cdollar.lowering.functions import make_function
from renderer.cdollar.runtime.parameters import PICTURE_PARAMETERS, Files, bind_parameters, parse_number, picture_value
from renderer.cdollar.targets.open_target import TargetFactory
from renderer.errors import InputError
from renderer.paths import SHADERS
from renderer.system.files import read_text
from renderer.system.trust import Limits

PRELUDE = SHADERS / "cdollar" / "prelude.cb"
PIXEL_TYPES = (FLOAT, Vector("float", 3), Vector("float", 4))
MAX_PICTURE_SIDE = 1 << 17  # pixels along a side of a picture
Tile = tuple[int, int, int, int]  # left, top, width and height of some pixels


class Result(NamedTuple):
    """The result of main: a number, an array with the indices of its first element, a domain (as text), or a tuple."""

    type: Type
    array: np.ndarray | None
    origin: tuple[int, ...] = ()
    text: str = ""
    items: "dict[str, Result]" = {}  # noqa: RUF012  # results of a tuple, by name; never changed


def read_source(path: Path) -> SourceFile:
    """The text of a program's file; raises InputError."""
    return SourceFile(str(path), read_text(path, MAX_SOURCE_CHARS))


def load_program(path: Path, make_target: TargetFactory) -> Compilation:
    """Parse and check a program's file; make_target(dag) gives the target that evaluates it."""
    if Limits.refuses_programs:
        raise InputError(f"{path}: is a program, and --untrusted runs none")
    return load_text(read_source(path), make_target, path.parent)


def load_text(source: SourceFile, make_target: TargetFactory, folder: Path | None = None) -> Compilation:
    """Parse and check a program; `folder` holds the files that it opens."""
    compilation = new_compilation(source, make_target, folder)
    compilation.load(parse(source))
    return compilation


def new_compilation(source: SourceFile, make_target: TargetFactory, folder: Path | None = None) -> Compilation:
    """A compilation with the prelude only."""
    compilation = Compilation(source, make_target, folder)
    compilation.load(parsed_prelude(), checked=False)
    return compilation


def prelude() -> SourceFile:
    """The functions in C$ that every program can call."""
    return SourceFile(PRELUDE.name, PRELUDE.read_text(encoding="utf-8"))


@cache
def parsed_prelude() -> list[AstNode]:
    """The prelude's syntax trees, which no compilation changes."""
    return parse(prelude())


def main_function(compilation: Compilation) -> UserFunction:
    """The function main; raises ProgramError unless there is exactly one."""
    overloads = compilation.program.functions.get("main")
    if not overloads:
        functions = compilation.program.functions
        declared = {f.name: f for f in functions.all() if f not in functions.prelude_functions}
        close = did_you_mean("main", declared)
        span, hint = Span(compilation.source, 0, 1), close or "`float main(float[] a) { return sum(a); }`"
        if close:
            span = next(f.declaration.name_span for name, f in declared.items() if f"`{name}`" in close)
            hint = "name it `main`"
        raise ProgramError("CS0215", span, "the program has no `main`", hint)
    if len(overloads) > 1:
        span = overloads[1].declaration.name_span
        raise ProgramError("CS0215", span, "`main` is declared twice, so it is not clear which to run")
    return overloads[0]


def is_picture(function: UserFunction) -> bool:
    """True if main is a function of (int x, int y) that returns a gray or colored pixel."""
    types = dict(zip(function.parameter_names, function.parameter_types, strict=True))
    return types.get("x") == INT and types.get("y") == INT and function.result_type in PIXEL_TYPES


def build_main(compilation: Compilation, files: Files, numbers: Mapping[str, str]) -> Value:
    """The value of main; a picture becomes a function of (y, x).

    `files` gives array parameters by name (paths or arrays), `numbers` scalar parameters (texts of --set).
    """
    function = main_function(compilation)
    if not is_picture(function) or {"x", "y"} & numbers.keys():  # no picture, or one pixel of it: x or y is given
        bound = bind_parameters(compilation, function, files, numbers)
        return compilation.call_main(function, [value for value in bound if value is not None])
    # --set width and height also size a picture whose main does not declare them.
    names = sorted(({"width", "height"} & numbers.keys()) - set(function.parameter_names))
    undeclared_sizes = {name: int(parse_number(numbers[name], INT, name)[0]) for name in names}
    others = {name: text for name, text in numbers.items() if name not in undeclared_sizes}
    values = bind_parameters(compilation, function, files, others, ("x", "y"))
    parameters = dict(zip(function.parameter_names, values, strict=True))
    width, height = (picture_side(compilation, parameters.get(n), n, undeclared_sizes) for n in ("width", "height"))
    return over_pixels(compilation, function, values, (0, 0, width, height))


def build_picture(compilation: Compilation, given: Mapping[str, object], tile: Tile) -> FunctionValue:
    """The picture of main over a tile (left, top, width, height) of its pixels.

    `given` holds its other parameters: numbers, tuples of numbers, and paths of .npy files for arrays.
    """
    function = main_function(compilation)
    compilation.restart(compilation.source)  # forgets the last frame's state
    pairs = zip(function.parameter_names, function.parameter_types, strict=True)
    values = [None if name in ("x", "y") else picture_value(compilation, name, given[name], t) for name, t in pairs]
    return over_pixels(compilation, function, values, tile)


def over_pixels(
    compilation: Compilation, function: UserFunction, values: list[Value | None], tile: Tile
) -> FunctionValue:
    """The call main(x, y) at all pixels of a tile (left, top, width, height), as a function of (y, x)."""
    left, top, width, height = tile
    x = BoundVariable("x", "int", Range(left, left + width))
    y = BoundVariable("y", "int", Range(top, top + height))
    pixel = {name: DataValue(INT, (compilation.dag.bound_variable(v),)) for name, v in (("x", x), ("y", y))}
    arguments = [pixel[n] if v is None else v for n, v in zip(function.parameter_names, values, strict=True)]
    color = compilation.call_main(function, arguments)
    assert isinstance(color, DataValue), "is_picture() has checked the result's type"
    return make_function(compilation.dag, [y, x], color)


def picture_side(compilation: Compilation, value: Value | None, name: str, sizes: dict[str, int]) -> int:
    """Width or height of a picture in pixels; raises ArgumentError."""
    side = sizes[name] if name in sizes else PICTURE_PARAMETERS[name]
    if isinstance(value, DataValue):
        number = compilation.program.host.node_number(value.node)
        assert number is not None, "the numbers of main's arguments are known"
        side = int(number)
    if not 1 <= side <= MAX_PICTURE_SIDE:
        raise ArgumentError(f"--set {name}={side}: a picture has 1 to {MAX_PICTURE_SIDE} pixels on a side")
    return side


def evaluate_value(compilation: Compilation, value: Value, span: Span) -> Result:
    """Evaluate a value to NumPy data; raises ProgramError for functions that are no arrays."""
    if isinstance(value, DomainValue):
        return Result(value.type, None, (), " x ".join(map(str, value.ranges)))
    if isinstance(value, TupleValue):
        return evaluate_tuple(compilation, value, span)
    value = resolve(compilation.body(), value, span)
    if isinstance(value, DataValue):
        numbers = compilation.target.evaluate_scalars(list(value.nodes))
        return Result(value.type, pack_components([np.asarray(n) for n in numbers], value.type))
    whole = whole_array(compilation, value, span)
    return array_result(whole, compilation.target.evaluate(whole.node))


def evaluate_tuple(compilation: Compilation, value: TupleValue, span: Span) -> Result:
    """Evaluate a tuple: its functions together, so that what they share is computed once; other values one by one."""
    wholes = {n: whole_array(compilation, v, span) for n, v in value.items.items() if isinstance(v, FunctionValue)}
    evaluated = compilation.target.evaluate_all([whole.node for whole in wholes.values()])
    arrays = {n: array_result(w, parts) for (n, w), parts in zip(wholes.items(), evaluated, strict=True)}
    results = {n: arrays.get(n) or evaluate_value(compilation, v, span) for n, v in value.items.items()}
    return Result(value.type, None, (), "", results)


def whole_array(compilation: Compilation, value: FunctionValue, span: Span) -> FunctionValue:
    """A function of indices as an array to be evaluated; raises CS0306 for other functions."""
    if any(str(p) not in ("int", "uint") for p in value.type.parameters):
        message = f"the result is {value.type}: only functions of int indices become arrays"
        raise ProgramError("CS0306", span, message, "apply it to points: `var g(i : 0..n) = f(i * step)`")
    return materialize(compilation.body(), value, span)


def array_result(whole: FunctionValue, components: list[np.ndarray]) -> Result:
    """The result of an evaluated array."""
    origin = tuple(r.low for r in whole.domain if isinstance(r, Range))
    return Result(whole.type, pack_components(components, whole.type.result), origin)


def pack_components(components: list[np.ndarray], type_: Data) -> np.ndarray:
    """Components as .npy stores them: a last axis for vectors, a structured dtype for records."""
    pairs = zip(components, component_types(type_), strict=True)
    arrays: list[np.ndarray] = [np.asarray(c).astype(DTYPES[t], copy=False) for c, t in pairs]
    if isinstance(type_, Record):
        # A flat record of all components has the same memory as the record with records and vectors inside.
        return np.rec.fromarrays(arrays).view(record_dtype(type_), np.ndarray)
    return np.stack(arrays, axis=-1) if isinstance(type_, Vector) else arrays[0]


def record_dtype(type_: Data) -> np.dtype:
    """The dtype of an element; records are structured."""
    if isinstance(type_, Record):
        return np.dtype([(name, record_dtype(field)) for name, field in type_.fields])
    if isinstance(type_, Vector):
        return np.dtype((DTYPES[type_.scalar_type], (type_.size,)))
    return np.dtype(DTYPES[type_.name])
