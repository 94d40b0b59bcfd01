"""From a program's file to its result: main's parameters filled by name, pictures, results as NumPy data and .npy."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from renderer.cdollar.checker.arrays import argument_value, array_function, is_array_type, open_array, parse_number
from renderer.cdollar.checker.compilation import Compilation
from renderer.cdollar.checker.functions import make_function
from renderer.cdollar.checker.values import (
    DataValue,
    DomainValue,
    FunctionValue,
    UserFunction,
    Value,
)
from renderer.cdollar.frontend.diagnostics import ArgumentError, ProgramError, SourceFile, Span
from renderer.cdollar.frontend.lexer import MAX_SOURCE_CHARS
from renderer.cdollar.frontend.parser import parse
from renderer.cdollar.ir.dag import BoundVariable, Range
from renderer.cdollar.ir.types import DTYPES, FLOAT, INT, Data, FunctionType, Record, Type, Vector, component_types
from renderer.errors import InputError, UserError
from renderer.paths import SHADERS

PICTURE_PARAMETERS = {"width": 512, "height": 512, "time": 0.0, "mouse": (0.0, 0.0)}
PRELUDE = SHADERS / "cdollar" / "prelude.cb"
PICTURES = (FLOAT, Vector("float", 3), Vector("float", 4))


@dataclass
class Result:
    """What main yields: a number, an array with the indices of its first element, or a domain."""

    type: object
    array: np.ndarray | None
    origin: tuple[int, ...] = ()
    text: str = ""


def read_source(path: Path) -> SourceFile:
    """The text of a program's file."""
    try:
        if path.stat().st_size > MAX_SOURCE_CHARS:
            raise InputError(f"{path}: has {path.stat().st_size} bytes, more than {MAX_SOURCE_CHARS}")
        return SourceFile(str(path), path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def load_program(path: Path, make_target) -> Compilation:
    """A program parsed and checked; `make_target(compilation)` gives what evaluates it."""
    return load_text(read_source(path), make_target, path.parent)


def load_text(source: SourceFile, make_target, folder: Path | None = None) -> Compilation:
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
    program = parse(source)
    compilation = Compilation(source, make_target, folder)
    compilation.load(parse(prelude()), checked=False)
    compilation.load(program)
    return compilation


def prelude() -> SourceFile:
    """The functions in C$ that every program knows."""
    return SourceFile(PRELUDE.name, PRELUDE.read_text(encoding="utf-8"))


def main_of(compilation: Compilation) -> UserFunction:
    family = compilation.program.functions.get("main")
    if not family:
        raise ProgramError(
            "CS0215",
            Span(compilation.source, 0, 1),
            "the program has no `main`",
            "`float main(float[] a) { return sum(a); }`",
        )
    if len(family) > 1:
        raise ProgramError(
            "CS0215", family[1].declaration.name_span, "`main` is declared twice, so it is not clear which to run"
        )
    return family[0]


def is_picture(function: UserFunction) -> bool:
    """Whether main is a function of (int x, int y) that yields a grey or coloured pixel."""
    typed = dict(zip(function.parameter_names, function.parameter_types, strict=True))
    return typed.get("x") == INT and typed.get("y") == INT and function.result_type in PICTURES


def parse_assignments(texts: list[str], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise ArgumentError(f"{option} {text}: must be name=value")
        if name in found:
            raise ArgumentError(f"{option} {name}: is given twice")
        found[name] = value
    return found


def bind_parameters(
    compilation: Compilation,
    function: UserFunction,
    files: dict[str, object],
    numbers: dict[str, str],
    free: tuple[str, ...] = (),
) -> list:
    """A value for each parameter of main; None for those that stay free (a picture's x and y)."""
    for option, given in (("--in", files), ("--set", numbers)):
        for name in given:
            if name not in function.parameter_names:
                known = ", ".join(function.parameter_names) or "none"
                raise ArgumentError(f"{option} {name}: main has no such parameter; it has {known}")
    for name in files.keys() & numbers.keys():
        raise ArgumentError(f"--set {name}: is given by --in already")
    defaults = {p.name: p.default for p in function.declaration.parameters}
    found: list = []
    for name, type_ in zip(function.parameter_names, function.parameter_types, strict=True):
        if name in free:
            found.append(None)
        elif name in files:
            found.append(from_file(compilation, files[name], type_, name))
        elif name in numbers:
            if not isinstance(type_, Data):
                raise ArgumentError(f"--set {name}: is {type_}, an array; use --in {name}=FILE.npy")
            found.append(argument_value(compilation.dag, parse_number(numbers[name], type_, name), type_, name))
        elif defaults[name] is not None:
            found.append(default(compilation, defaults[name], type_, name))
        elif free and name in PICTURE_PARAMETERS:
            found.append(
                argument_value(compilation.dag, one_or_more(PICTURE_PARAMETERS[name], type_, name), type_, name)
            )
        else:
            missing(name, type_)
    return found


def one_or_more(number, type_: Type, name: str) -> tuple:
    numbers = number if isinstance(number, tuple) else (number,)
    if len(component_types(type_)) != len(numbers):
        raise ArgumentError(
            f"--set {name}: a picture's `{name}` is {'float2' if len(numbers) == 2 else 'a number'}, not {type_}"
        )
    return tuple(
        int(n) if part in ("int", "uint") else float(n) for n, part in zip(numbers, component_types(type_), strict=True)
    )


def missing(name: str, type_: Type):
    if isinstance(type_, Data):
        raise ArgumentError(f"--set {name}: is missing; main needs `{name}`, {type_}")
    if not is_array_type(type_):
        raise ArgumentError(
            f"--in {name}: main's `{name}` is {type_}; only functions of int indices are filled from files"
        )
    raise ArgumentError(f"--in {name}: is missing; main needs `{name}`, {type_}, from --in {name}=FILE.npy")


def from_file(compilation: Compilation, path, type_: Type, name: str) -> Value:
    """A parameter from a file's path, or from an array that is there already."""
    if isinstance(type_, FunctionType):
        if not is_array_type(type_):
            missing(name, type_)
        if isinstance(path, np.ndarray):
            return array_function(compilation.dag, path, type_, f"--in {name}")
        return open_array(compilation.dag, Path(path), type_, f"--in {name}={path}")
    value = open_array(compilation.dag, Path(path), None, f"--in {name}={path}")
    array = np.asarray(value.node.attribute.data.array)
    if array.shape != (() if len(component_types(type_)) == 1 else (len(component_types(type_)),)):
        raise InputError(f"--in {name}={path}: has shape {array.shape}, but `{name}` is {type_}")
    text = ",".join(str(x) for x in array.reshape(-1).tolist())
    return argument_value(compilation.dag, parse_number(text, type_, name), type_, name)


def default(compilation: Compilation, tree, type_: Type, name: str) -> Value:
    value = compilation.lower_constant(tree, type_)
    if not isinstance(value, DataValue):
        return value
    return argument_value(compilation.dag, tuple(map(compilation.program.host.node_number, value.nodes)), type_, name)


def picture_function(
    compilation: Compilation, function: UserFunction, values: list, sizes: dict[str, int]
) -> FunctionValue:
    """main(x, y) over rows and columns: a function of (y, x), as pictures lie in memory."""
    numbers = dict(zip(function.parameter_names, values, strict=True))
    size = {name: picture_size(compilation, numbers, name, sizes) for name in ("width", "height")}
    x, y = BoundVariable("x", "int", Range(0, size["width"])), BoundVariable("y", "int", Range(0, size["height"]))
    data = {name: DataValue(INT, (compilation.dag.bound_variable(v),)) for name, v in (("x", x), ("y", y))}
    arguments = [data.get(n) if v is None else v for n, v in zip(function.parameter_names, values, strict=True)]
    return make_function(compilation.dag, [y, x], compilation.call_main(function, arguments))


def build_picture(compilation: Compilation, given: dict, window: tuple[int, int, int, int]) -> FunctionValue:
    """main over a window (left, top, width, height) of its pixels, its other parameters filled by plain values.

    `given` holds numbers, tuples of numbers, and paths of .npy files for arrays.
    """
    function = main_of(compilation)
    left, top, width, height = window
    x, y = BoundVariable("x", "int", Range(left, left + width)), BoundVariable("y", "int", Range(top, top + height))
    compilation.restart(compilation.source)
    values: list[Value] = []
    for name, type_ in zip(function.parameter_names, function.parameter_types, strict=True):
        if name in ("x", "y"):
            values.append(DataValue(INT, (compilation.dag.bound_variable(x if name == "x" else y),)))
        elif isinstance(type_, FunctionType):
            if not given.get(name):
                missing(name, type_)
            values.append(cached_array(compilation, name, given[name], type_))
        else:
            values.append(argument_value(compilation.dag, one_or_more(given[name], type_, name), type_, name))
    return make_function(compilation.dag, [y, x], compilation.call_main(function, values))


def cached_array(compilation: Compilation, name: str, path: str, type_: Type) -> FunctionValue:
    """An array parameter's file, opened once for each path."""
    key = f"parameter {name} {path}"
    opened = compilation.program.files.opened
    if key not in opened:
        opened[key] = open_array(compilation.dag, Path(path), type_, path)
    return opened[key]


def picture_size(compilation: Compilation, numbers: dict, name: str, sizes: dict[str, int]) -> int:
    value = numbers.get(name)
    number = sizes.get(name, PICTURE_PARAMETERS[name]) if value is None else int(compilation.program.host.number(value))
    if not 1 <= number <= 1 << 17:
        raise ArgumentError(f"--set {name}={number}: a picture has 1 to {1 << 17} pixels on a side")
    return number


def build_main(compilation: Compilation, files: dict[str, object], numbers: dict[str, str]) -> Value:
    """main's value with its parameters filled by paths of files or arrays, and texts of numbers.

    A picture is a function of (y, x).
    """
    function = main_of(compilation)
    if not is_picture(function) or {"x", "y"} & numbers.keys():
        return compilation.call_main(function, bind_parameters(compilation, function, files, numbers))
    sizes = {
        n: parse_number(numbers[n], INT, n)[0]
        for n in ("width", "height")
        if n in numbers and n not in function.parameter_names
    }
    numbers = {name: text for name, text in numbers.items() if name not in sizes}
    return picture_function(
        compilation, function, bind_parameters(compilation, function, files, numbers, ("x", "y")), sizes
    )


def evaluate_value(compilation: Compilation, value: Value, span: Span) -> Result:
    """A value as NumPy data: the last step of every run."""
    if isinstance(value, DomainValue):
        return Result(value.type, None, (), " x ".join(map(str, value.ranges)))
    value = compilation.resolve(value, span)
    if isinstance(value, DataValue):
        numbers = compilation.target.evaluate_scalars(list(value.nodes))
        return Result(value.type, pack_components([np.asarray(n) for n in numbers], value.type))
    if any(p not in (INT,) and str(p) != "uint" for p in value.type.parameters):
        raise ProgramError(
            "CS0306",
            span,
            f"the result is {value.type}: only functions of int indices become arrays",
            "apply it to points: `var g(i : 0..n) = f(i * step)`",
        )
    whole = compilation.materialize(value, span)
    parts = compilation.target.evaluate(whole.node)
    return Result(whole.type, pack_components(parts, whole.type.result), tuple(r.low for r in whole.domain))


def pack_components(parts: list[np.ndarray], type_: Type) -> np.ndarray:
    """Components joined as .npy holds them: a last axis for vectors, a structured dtype for records."""
    bases = component_types(type_)
    arrays = [np.asarray(p).astype(DTYPES[b], copy=False) for p, b in zip(parts, bases, strict=True)]
    if isinstance(type_, Record):
        dtype = record_dtype(type_)
        flat = np.empty(arrays[0].shape, [(f"f{k}", DTYPES[b]) for k, b in enumerate(bases)])
        for k, array in enumerate(arrays):
            flat[f"f{k}"] = array
        return flat.view(dtype).reshape(arrays[0].shape)
    return np.stack(arrays, axis=-1) if isinstance(type_, Vector) else arrays[0]


def record_dtype(type_: Type) -> np.dtype:
    if isinstance(type_, Record):
        return np.dtype([(name, record_dtype(field)) for name, field in type_.fields])
    if isinstance(type_, Vector):
        return np.dtype((DTYPES[type_.scalar_type], (type_.size,)))
    return np.dtype(DTYPES[type_.name])


def save_npy(path: Path, array: np.ndarray) -> None:
    """Writes beside the target and renames, so that an old file stays whole if anything fails."""
    if not path.parent.is_dir():
        raise UserError(f"-o {path}: the folder {path.parent} does not exist")
    name = ""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npy", delete=False) as stream:
            name = stream.name
            np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
        os.chmod(name, 0o666 & ~umask())
        os.replace(name, path)
    except OSError as error:
        raise UserError(f"-o {path}: cannot be written: {error.strerror or error}") from None
    finally:
        if name and os.path.exists(name):
            os.unlink(name)


def umask() -> int:
    held = os.umask(0)
    os.umask(held)
    return held
