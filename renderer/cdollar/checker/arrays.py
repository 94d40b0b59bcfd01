"""Functions that are files: .npy arrays, memory-mapped, converted part by part as reached; numbers from --set."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from renderer.cdollar.checker.values import DataValue, FunctionValue
from renderer.cdollar.frontend.diagnostics import ArgumentError, ProgramError, Span
from renderer.cdollar.ir.dag import Dag, Range
from renderer.cdollar.ir.types import DTYPES, Data, FunctionType, Record, Scalar, Type, Vector, component_types, is_data
from renderer.errors import InputError

# What an element of a file is in C$; the second entry says what is checked when a part is read.
ELEMENTS = {
    "b1": "bool", "i1": "int", "i2": "int", "i4": "int", "u1": "int", "u2": "int", "u4": "uint", "i8": "int",
    "u8": "uint",     "f2": "float", "f4": "float", "f8": "double",
}  # fmt: skip
INT = Scalar("int")


@dataclass(frozen=True)
class InputArray:
    """An array of shape (sizes..., width) or (sizes...) or structured: read gives its components in C$'s types."""

    name: str
    array: np.ndarray
    sizes: tuple[int, ...]
    parts: tuple[str, ...]  # the scalar type of each component
    path: tuple[tuple, ...]  # how to reach each component: field names, or an index of the last axis
    origin: tuple[int, ...]

    def read(self, box: tuple) -> list[np.ndarray]:
        """The components at numpy indices of the index dimensions, in the types of C$."""
        found = []
        for path, part in zip(self.path, self.parts, strict=True):
            array = self.array
            for step in path:
                array = array[step] if isinstance(step, str) else array[..., step]
            found.append(self.converted(np.asarray(array[box]), part))
        return found

    def converted(self, values: np.ndarray, part: str) -> np.ndarray:
        dtype: np.dtype[Any] = np.dtype(DTYPES[part])
        if values.dtype == dtype:
            return values
        if dtype.kind in "iu" and values.dtype.kind in "iu" and values.size:
            limits = np.iinfo(dtype)
            if values.min() < limits.min or values.max() > limits.max:
                raise InputError(
                    f"{self.name}: holds {values.dtype} numbers outside of {limits.min}..{limits.max}, C$'s {part}"
                )
        with np.errstate(all="ignore"):
            found = values.astype(dtype)
            if (
                dtype.kind == "f"
                and values.dtype.itemsize > dtype.itemsize
                and not np.array_equal(np.isfinite(found), np.isfinite(values))
            ):
                raise InputError(
                    f"{self.name}: holds {values.dtype} numbers too large for {part}; declare the parameter double"
                )
        return found


def load_npy(path: Path, shown: str) -> np.ndarray:
    """A .npy file, memory-mapped where it can be."""
    try:
        if path.stat().st_size == 0:
            raise InputError(f"{shown}: is empty, not a .npy file")
        with open(path, "rb") as stream:
            if stream.read(6) != b"\x93NUMPY":
                raise InputError(f"{shown}: is not a .npy file")
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            if "mmap" not in str(error) and "empty" not in str(error).lower():
                raise
            with open(path, "rb") as stream:
                array = np.load(stream, allow_pickle=False)
            if array.size:
                raise
            return array
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{shown}: does not exist") from None
    except (OSError, ValueError, EOFError, SyntaxError, TypeError, OverflowError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{shown}: cannot be read as .npy: {reason}") from None


def element_type(dtype: np.dtype, shown: str) -> str:
    found = ELEMENTS.get(dtype.kind + str(dtype.itemsize))
    if found is None:
        raise InputError(f"{shown}: holds {dtype}; allowed are bool, 8- to 64-bit integers and 16- to 64-bit floats")
    return found


def record_paths(dtype: np.dtype, type_: Data, shown: str, prefix: tuple = ()) -> list[tuple]:
    """How to reach each component of a record in a structured array: its fields have the class's names."""
    if not isinstance(type_, Record):
        if dtype.subdtype is not None:
            return [(*prefix, k) for k in range(len(component_types(type_)))]
        return [prefix] if isinstance(type_, Scalar) else [(*prefix, "xyzw"[k]) for k in range(type_.size)]
    if dtype.names is None or list(dtype.names) != [name for name, _ in type_.fields]:
        raise InputError(
            f"{shown}: has the fields {dtype.names}, but {type_} has {', '.join(n for n, _ in type_.fields)}"
        )
    return [path for name, field in type_.fields for path in record_paths(dtype[name], field, shown, (*prefix, name))]


def open_array(dag: Dag, path: Path, wanted: Type | None, shown: str, span: Span | None = None) -> FunctionValue:
    """The file as a function of its indices, of the wanted type if one is declared."""
    try:
        array = load_npy(path, shown)
        return array_function(dag, array, wanted, shown)
    except InputError as error:
        if span is None or isinstance(error, ProgramError):
            raise
        raise ProgramError("CS0502", span, str(error)) from None


def array_function(dag: Dag, array: np.ndarray, wanted: Type | None, shown: str) -> FunctionValue:
    if array.dtype.names is None:
        element = element_type(array.dtype, shown)
        if wanted is None:
            wanted = FunctionType(Scalar(element), (INT,) * array.ndim, True)
    if wanted is None:
        raise InputError(f"{shown}: is a structured array; give main a parameter of a class with its fields")
    if not isinstance(wanted, FunctionType) or any(p != INT for p in wanted.parameters):
        raise ArgumentError(f"{shown}: is an array, but the parameter is {wanted}")
    rank, parts = len(wanted.parameters), component_types(wanted.result)
    structured = array.dtype.names is not None
    needs = rank + (isinstance(wanted.result, Vector) and not structured)
    if array.ndim != needs or isinstance(wanted.result, Record) != structured and not structured:
        shape = f"{needs} dimensions" + (f", the last of size {len(parts)}" if needs > rank else "")
        what = (
            f"a structured array of {rank} dimensions" if isinstance(wanted.result, Record) else f"an array of {shape}"
        )
        raise InputError(f"{shown}: has shape {array.shape}, but {wanted} needs {what}")
    if needs > rank and array.shape[-1] != len(parts):
        raise InputError(f"{shown}: has shape {array.shape}, but {wanted} needs a last dimension of size {len(parts)}")
    if any(size >= 2**31 for size in array.shape):
        raise InputError(f"{shown}: has shape {array.shape}; an index of C$ has 31 bits")
    if structured:
        paths = record_paths(array.dtype, wanted.result, shown)
    else:
        check_element(element, parts[0], array.dtype, shown, wanted)
        paths = [(k,) for k in range(len(parts))] if needs > rank else [()]
    sizes = array.shape[:rank]
    stored = InputArray(shown, array, sizes, parts, tuple(paths), (0,) * rank)
    return input_function(dag, stored, wanted)


def check_element(element: str, part: str, dtype: np.dtype, shown: str, wanted: Type) -> None:
    """Widening is silent, float64 to float is said, anything else is an error."""
    if element == part or (element, part) in {
        ("int", "float"),
        ("int", "double"),
        ("uint", "float"),
        ("uint", "double"),
        ("float", "double"),
    }:
        return
    if element == "double" and part == "float":
        print(f"note: {shown} holds float64; it is rounded to float32 for {wanted}", file=sys.stderr)
        return
    if {element, part} == {"int", "uint"}:
        return  # checked part by part as it is read
    raise InputError(f"{shown}: holds {dtype}, but {wanted} is needed; save it as {np.dtype(DTYPES[part])}")


def input_function(dag: Dag, stored: InputArray, type_: FunctionType) -> FunctionValue:
    ranges = tuple(Range(low, low + size) for low, size in zip(stored.origin, stored.sizes, strict=True))
    array = type_.as_array_type
    return FunctionValue(array, dag.array(array, stored.name, stored, ranges), ranges)


def evaluated_array(dag: Dag, parts: list[np.ndarray], ranges: tuple, type_: FunctionType, name: str) -> FunctionValue:
    """An evaluated function: one array a component."""
    held = EvaluatedArray(name, parts, tuple(r.low for r in ranges))
    array = type_.as_array_type
    return FunctionValue(array, dag.array(array, name, held, tuple(ranges)), tuple(ranges))


@dataclass(frozen=True, eq=False)
class EvaluatedArray:
    """Arrays in memory, one a component, with the index of their first element."""

    name: str
    arrays: list[np.ndarray]
    origin: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.arrays[0].shape

    def read(self, box: tuple) -> list[np.ndarray]:
        return [array[box] for array in self.arrays]


def parse_number(text: str, type_: Data, name: str) -> tuple:
    """The components of a parameter written as text: `5`, `1.5`, `true`, `1,2,3`."""
    parts = component_types(type_)
    pieces = [piece.strip() for piece in text.strip().strip("()").split(",")]
    if len(pieces) != len(parts):
        raise ArgumentError(f"--set {name}={text}: {type_} needs {len(parts)} numbers, found {len(pieces)}")
    return tuple(one_number(piece, part, name, text) for piece, part in zip(pieces, parts, strict=True))


def one_number(piece: str, part: str, name: str, text: str):
    if part == "bool":
        if piece.lower() not in ("true", "false", "1", "0"):
            raise ArgumentError(f"--set {name}={text}: bool is true or false")
        return piece.lower() in ("true", "1")
    try:
        if part in ("int", "uint"):
            number = int(piece, 0)
            low, high = (-(2**31), 2**31) if part == "int" else (0, 2**32)
            if not low <= number < high:
                raise ArgumentError(f"--set {name}={text}: {part} is {low}..{high - 1}")
            return number
        return float(piece)
    except ValueError:
        raise ArgumentError(f"--set {name}={text}: `{piece}` is no {part}") from None


def argument_value(dag: Dag, numbers: tuple, type_: Data, name: str) -> DataValue:
    nodes = tuple(dag.runtime_scalar(n, part, name) for n, part in zip(numbers, component_types(type_), strict=True))
    return DataValue(type_, nodes)


def is_array_type(type_: Type) -> bool:
    return isinstance(type_, FunctionType) and all(p == INT for p in type_.parameters) and is_data(type_.result)
