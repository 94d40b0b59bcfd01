"""Binds the parameters of main: arrays from files, numbers from text, defaults, and the parameters of pictures.

bind_parameters() takes the options `--in NAME=FILE` and `--set NAME=VALUE`, already split, and returns a Value for each
parameter. Numbers become arguments of kernels, so that another number needs no compilation.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from renderer.cdollar.checker.arrays import array_function, open_array
from renderer.cdollar.checker.tables import UserFunction
from renderer.cdollar.checker.values import DataValue, FunctionValue, Operand, Value
from renderer.cdollar.frontend.ast import AstNode
from renderer.cdollar.frontend.diagnostics import ArgumentError
from renderer.cdollar.frontend.expression_parser import FLOAT_OVERFLOW
from renderer.cdollar.ir import types as ty
from renderer.cdollar.ir.dag import Dag
from renderer.cdollar.lowering.compilation import Compilation
from renderer.cdollar.lowering.domains import lower_as
from renderer.cdollar.runtime.pictures import HALF_OVERFLOW, READ_SUFFIXES, read_picture
from renderer.errors import InputError
from renderer.formats.tables import read_table

# The absolute value that a decimal number must stay below to be rounded to a scalar type.
MAX_NUMBER = {"half": HALF_OVERFLOW, "float": FLOAT_OVERFLOW, "double": math.inf}
Files = Mapping[str, str | Path | np.ndarray]  # paths or arrays by name of the array parameter
Given = Any  # a parameter of a picture: a number, a tuple of numbers, or the path of an array
# Parameters that a picture passes to main, with their defaults (Shadertoy's inputs).
PICTURE_PARAMETERS: dict[str, Given] = {"width": 512, "height": 512, "time": 0.0, "mouse": (0.0, 0.0)}


def parse_assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    """NAME=VALUE texts of a command line option as a dictionary; raises ArgumentError."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise ArgumentError(f"{option} {text}: must be name=value")
        if name in values:
            raise ArgumentError(f"{option} {name}: is given twice")
        values[name] = value
    return values


def bind_parameters(
    compilation: Compilation, function: UserFunction, files: Files, numbers: Mapping[str, str], free: Sequence[str] = ()
) -> list[Value | None]:
    """A value for each parameter of main; None for parameters that stay free (a picture's x and y).

    `files` are paths or arrays, `numbers` texts.
    """
    for option, given in (("--in", files), ("--set", numbers)):
        for name in given:
            if name not in function.parameter_names:
                known = ", ".join(function.parameter_names) or "none"
                raise ArgumentError(f"{option} {name}: main has no such parameter; it has {known}")
    for name in files.keys() & numbers.keys():
        raise ArgumentError(f"--set {name}: is given by --in already")
    defaults = {p.name: p.default for p in function.declaration.parameters}
    values: list[Value | None] = []
    for name, type_ in zip(function.parameter_names, function.parameter_types, strict=True):
        if name in free:
            values.append(None)
        elif name in files:
            values.append(value_from_file(compilation, files[name], type_, name))
        elif name in numbers:
            if not isinstance(type_, ty.Data):
                raise ArgumentError(f"--set {name}: is {type_}, an array; use --in {name}=FILE.npy")
            values.append(runtime_value(compilation.dag, parse_number(numbers[name], type_, name), type_, name))
        elif (default := defaults[name]) is not None:
            values.append(default_value(compilation, default, type_, name))
        elif free and name in PICTURE_PARAMETERS and isinstance(type_, ty.Data):
            values.append(picture_parameter(compilation.dag, PICTURE_PARAMETERS[name], type_, name))
        else:
            raise_missing(name, type_)
    return values


def picture_parameter(dag: Dag, number: Given, type_: ty.Data, name: str) -> DataValue:
    """A number, or a tuple of them, as the value of a picture's parameter."""
    numbers, types = number if isinstance(number, tuple) else (number,), ty.component_types(type_)
    if len(types) != len(numbers):
        wanted = "float2" if len(numbers) == 2 else "a number"
        raise ArgumentError(f"--set {name}: a picture's `{name}` is {wanted}, not {type_}")
    pairs = zip(numbers, types, strict=True)
    converted = tuple(int(n) if ty.promoted_type(t) in ty.INTEGERS else float(n) for n, t in pairs)
    return runtime_value(dag, converted, type_, name)


def picture_value(compilation: Compilation, name: str, given: Given, type_: ty.Type) -> Value:
    """The value of a picture's parameter: numbers, or the array of a file, which is opened once for each path."""
    if isinstance(type_, ty.Data):
        return picture_parameter(compilation.dag, given, type_, name)
    if not given:
        raise_missing(name, type_)
    key, opened = f"parameter {name} {given}", compilation.program.opened_files
    if key not in opened:
        opened[key] = open_array(compilation.dag, Path(given), type_, given)
    return opened[key]


def raise_missing(name: str, type_: ty.Type) -> NoReturn:
    """Raise ArgumentError for a parameter that is not given."""
    if isinstance(type_, ty.Data):
        raise ArgumentError(f"--set {name}: is missing; main needs `{name}`, {type_}")
    if not isinstance(type_, ty.FunctionType) or not type_.takes_indices:
        fillable = "only functions of int indices are filled from files"
        raise ArgumentError(f"--in {name}: main's `{name}` is {type_}; {fillable}")
    raise ArgumentError(f"--in {name}: is missing; main needs `{name}`, {type_}, from --in {name}=FILE.npy")


def value_from_file(compilation: Compilation, source: str | Path | np.ndarray, type_: ty.Type, name: str) -> Value:
    """A parameter from the path of a .npy file, or from an array."""
    if isinstance(type_, ty.FunctionType):
        if not type_.takes_indices:
            raise_missing(name, type_)
        if isinstance(source, np.ndarray):
            return array_function(compilation.dag, source, type_, f"--in {name}")
        shown, path = f"--in {name}={source}", Path(source)
        if path.suffix.lower() in READ_SUFFIXES:
            return array_function(compilation.dag, read_picture(path, type_.result), type_, shown)
        if path.suffix.lower() == ".csv":
            return array_function(compilation.dag, array_of_table(path, type_, shown), type_, shown)
        return open_array(compilation.dag, path, type_, shown)
    if not isinstance(type_, ty.Data):
        raise_missing(name, type_)
    assert not isinstance(source, np.ndarray), "arrays are for functions"
    value = open_array(compilation.dag, Path(source), None, f"--in {name}={source}")
    array = np.asarray(value.node.attribute.data.array)  # of an InputArray (checker/arrays.py)
    count = len(ty.component_types(type_))
    if array.shape != (() if count == 1 else (count,)):
        raise InputError(f"--in {name}={source}: has shape {array.shape}, but `{name}` is {type_}")
    text = ",".join(str(x) for x in array.reshape(-1).tolist())
    return runtime_value(compilation.dag, parse_number(text, type_, name), type_, name)


def array_of_table(path: Path, type_: ty.FunctionType, shown: str) -> np.ndarray:
    """The array of a .csv file for a parameter: a column or a line for one dimension, records by their names."""
    names, table = read_table(path, shown)
    element, rank = type_.result, len(type_.parameters)
    if isinstance(element, ty.Record):
        if any(not isinstance(field, ty.Scalar) for _, field in element.fields) or rank != 1:
            raise InputError(f"{shown}: a table gives records of numbers in one dimension, not {type_}")
        wanted = [name for name, _ in element.fields]
        if sorted(names) != sorted(wanted):
            raise InputError(f"{shown}: has the columns {', '.join(names) or '(no names)'}, wanted {', '.join(wanted)}")
        given = zip(wanted, ty.component_types(element), strict=True)
        columns = {name: _as_scalar(table[:, names.index(name)], scalar) for name, scalar in given}
        records = np.empty(len(table), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            records[name] = column
        return records
    table = _as_scalar(table, ty.component_types(element)[0])
    return table.reshape(-1) if rank == 1 and isinstance(element, ty.Scalar) and 1 in table.shape else table


def _as_scalar(values: np.ndarray, scalar: str) -> np.ndarray:
    """Decimal numbers as floats of a type; integers and too large numbers stay, for array_function() to check."""
    fits = scalar == "bool" and values.dtype.kind == "i" and bool(np.isin(values, (0, 1)).all())
    if ty.promoted_type(scalar) in ty.FLOATS:
        fits = not np.any(np.isfinite(values) & (np.abs(values) >= MAX_NUMBER[scalar]))
    return values.astype(ty.DTYPES[scalar]) if fits else values


def default_value(compilation: Compilation, expression: AstNode, type_: ty.Type, name: str) -> Operand:
    """The default of a parameter; its numbers are passed to kernels as arguments."""
    value = lower_as(compilation.body(), expression, type_)
    if not isinstance(value, DataValue):
        assert isinstance(value, FunctionValue), "main has no other parameters"
        return value
    numbers = tuple(map(compilation.program.host.node_number, value.nodes))
    return runtime_value(compilation.dag, numbers, value.type, name)


def runtime_value(dag: Dag, numbers: tuple[ty.Number | None, ...], type_: ty.Data, name: str) -> DataValue:
    """Numbers of the host as a value whose components are kernel arguments."""
    nodes = tuple(dag.runtime_scalar(n, t, name) for n, t in zip(numbers, ty.component_types(type_), strict=True))
    return DataValue(type_, nodes)


def parse_number(text: str, type_: ty.Data, name: str) -> tuple[ty.Number, ...]:
    """The components of a parameter written as text: `5`, `1.5`, `true`, `1,2,3`; raises ArgumentError."""
    types = ty.component_types(type_)
    parts = [part.strip() for part in text.strip().strip("()").split(",")]
    if len(parts) != len(types):
        raise ArgumentError(f"--set {name}={text}: {type_} needs {len(types)} numbers, found {len(parts)}")
    return tuple(parse_component(part, t, f"--set {name}={text}") for part, t in zip(parts, types, strict=True))


def parse_component(text: str, type_: str, option: str) -> bool | int | float:
    """One number of a scalar type."""
    if type_ == "bool":
        if text.lower() not in ("true", "false", "1", "0"):
            raise ArgumentError(f"{option}: bool is true or false")
        return text.lower() in ("true", "1")
    try:
        if ty.promoted_type(type_) not in ty.INTEGERS:
            value = float(text)
            if abs(value) >= MAX_NUMBER[type_] and "inf" not in text.lower():
                raise ArgumentError(f"{option}: {type_} has no number as large as {text}")
            return value
        number = int(text, 0)
    except ValueError:
        raise ArgumentError(f"{option}: `{text}` is not a valid {type_}") from None
    limits = np.iinfo(ty.DTYPES[type_])
    if not limits.min <= number <= limits.max:
        raise ArgumentError(f"{option}: {type_} is {limits.min}..{limits.max}")
    return number
