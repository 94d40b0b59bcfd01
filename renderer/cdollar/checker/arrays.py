"""NumPy arrays as C$ functions of their indices: .npy files and arguments of main.

array_function() takes an array and the type that main declares, and returns a FunctionValue whose domain is the array's
shape. .npy files are memory-mapped; their elements are converted to C$'s types when they are read. `shown` is the
array's name in messages.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from renderer.cdollar.checker.values import FunctionValue
from renderer.cdollar.frontend.diagnostics import ArgumentError, ProgramError, Span
from renderer.cdollar.ir import types as ty
from renderer.cdollar.ir.dag import Box, Dag, Indices, Range
from renderer.errors import InputError, reading
from renderer.formats.npy import read_header
from renderer.system.files import file_size, open_input

ELEMENTS: dict[str, str] = ty.TABLES["elements"]  # the scalar type of elements, by NumPy's kind and size

Steps = tuple[str | int, ...]  # the path to a component of an element: field names, or an index of the last axis


class InputArray(NamedTuple):
    """A file's array of shape (sizes...), (sizes..., components), or of records."""

    name: str
    array: np.ndarray
    scalar_types: tuple[str, ...]  # the scalar type of each component
    paths: tuple[Steps, ...]  # how to reach each component: field names, or an index of the last axis

    def read(self, box: Indices) -> list[np.ndarray]:
        """The components at NumPy indices of the index dimensions, in C$'s types; raises InputError as `_convert`."""
        components = []
        for path, scalar in zip(self.paths, self.scalar_types, strict=True):
            array = self.array
            for step in path:
                array = array[step] if isinstance(step, str) else array[..., step]
            components.append(self._convert(np.asarray(array[box]), scalar))
        return components

    def _convert(self, values: np.ndarray, scalar: str) -> np.ndarray:
        """The values in the scalar type; raises InputError if a number does not fit."""
        dtype: np.dtype[Any] = np.dtype(ty.DTYPES[scalar])
        if values.dtype == dtype:
            return values
        if dtype.kind in "iu" and values.dtype.kind in "iu" and values.size:
            limits = np.iinfo(dtype)
            low, high = int(limits.min), int(limits.max)
            if values.min() < low or values.max() > high:
                raise InputError(f"{self.name}: holds {values.dtype} numbers outside of {low}..{high}, C$'s {scalar}")
        with np.errstate(all="ignore"):
            converted = values.astype(dtype)
            narrows = dtype.kind == "f" and values.dtype.itemsize > dtype.itemsize
            if narrows and not np.array_equal(np.isfinite(converted), np.isfinite(values)):
                wider = "float" if values.dtype.itemsize == 4 else "double"
                message = f"holds {values.dtype} numbers too large for {scalar}; declare the parameter {wider}"
                raise InputError(f"{self.name}: {message}")
        return converted


class EvaluatedArray(NamedTuple):
    """Arrays in memory, one for each component."""

    arrays: list[np.ndarray]

    def read(self, box: Indices) -> list[np.ndarray]:
        """The components at NumPy indices."""
        return [array[box] for array in self.arrays]


class BlockArray(NamedTuple):
    """A function over `range` whose class reads blocks: `read_block(low, high)` gives the components at low..high."""

    range: Range
    read_block: Callable[[int, int], list[np.ndarray]]

    def read(self, box: Indices) -> list[np.ndarray]:
        """The components at NumPy indices, from one block around them."""
        positions = np.arange(self.range.size)[box]
        first, end = (int(positions.min()), int(positions.max()) + 1) if positions.size else (0, 0)
        block = self.read_block(self.range.low + first, self.range.low + end)
        return [component[positions - first] for component in block]


def evaluated_array(
    dag: Dag, components: list[np.ndarray], ranges: Box, type_: ty.FunctionType, name: str
) -> FunctionValue:
    """An evaluated function over `ranges`, given as one array for each component."""
    array = type_.as_array_type
    return FunctionValue(array, dag.array(array, name, EvaluatedArray(components), tuple(ranges)), tuple(ranges))


# Files


def open_array(dag: Dag, path: Path, wanted: ty.Type | None, shown: str, span: Span | None = None) -> FunctionValue:
    """The file as a function of its indices, of the wanted type if one is declared; errors are at `span`, if given."""
    try:
        return array_function(dag, map_npy(path, shown), wanted, shown)
    except InputError as error:
        if span is None or isinstance(error, ProgramError):
            raise
        raise ProgramError("CS0502", span, str(error)) from None


def map_npy(path: Path, shown: str) -> np.ndarray:
    """The array of a .npy file, memory-mapped: elements are read when they are accessed."""
    with open_input(path) as file, reading(shown):
        header = read_header(file, shown, file_size(file))
        if header.dtype.hasobject:
            raise InputError(f"{shown}: holds Python objects; numbers are wanted")
        if not header.nbytes:  # the system maps no empty range
            return np.empty(header.shape, header.dtype)
        return np.memmap(file, header.dtype, "r", file.tell(), header.shape, "F" if header.is_fortran else "C")


def array_function(dag: Dag, array: np.ndarray, wanted: ty.Type | None, shown: str) -> FunctionValue:
    """An array as a function of the wanted type, by default its elements' type; raises InputError if they differ."""
    is_structured = array.dtype.names is not None
    element = ""
    if not is_structured:
        element = ELEMENTS.get(array.dtype.kind + str(array.dtype.itemsize), "")
        if not element:
            allowed = "bool, 8- to 64-bit integers and 16- to 64-bit floats"
            raise InputError(f"{shown}: holds {array.dtype}; allowed are {allowed}")
        wanted = wanted or ty.FunctionType(ty.Scalar(element), (ty.INT,) * array.ndim, is_array=True)
    if wanted is None:
        raise InputError(f"{shown}: is a structured array; give main a parameter of a class with its fields")
    if not isinstance(wanted, ty.FunctionType) or not wanted.takes_indices:
        raise ArgumentError(f"{shown}: is an array, but the parameter is {wanted}")
    result, rank, types = wanted.result, len(wanted.parameters), ty.component_types(wanted.result)
    has_components = isinstance(result, ty.Vector) and not is_structured
    if array.ndim != rank + has_components or isinstance(result, ty.Record) and not is_structured:
        last = f", the last of size {len(types)}" if has_components else ""
        needed = f"an array of {rank + has_components} dimensions{last}"
        if isinstance(result, ty.Record):
            needed = f"a structured array of {rank} dimensions"
        raise InputError(f"{shown}: has shape {array.shape}, but {wanted} needs {needed}")
    if has_components and array.shape[-1] != len(types):
        raise InputError(f"{shown}: has shape {array.shape}, but {wanted} needs a last dimension of size {len(types)}")
    if any(size >= 2**31 for size in array.shape):
        raise InputError(f"{shown}: has shape {array.shape}; an index of C$ has 31 bits")
    if is_structured:
        paths = record_paths(array.dtype, result, shown)
    else:
        check_element(dag, element, types[0], array.dtype, shown, wanted)
        paths = [(k,) for k in range(len(types))] if has_components else [()]
    data = InputArray(shown, array, types, tuple(paths))
    ranges, type_ = tuple(Range(0, size) for size in array.shape[:rank]), wanted.as_array_type
    return FunctionValue(type_, dag.array(type_, shown, data, ranges), ranges)


def record_paths(dtype: np.dtype, type_: ty.Data, shown: str, prefix: Steps = ()) -> list[Steps]:
    """The steps to each component of a record in a structured array, whose fields have the class's names.

    A vector is a field of a subarray, ("p", "f4", 3), or of a record with the fields x, y, z, w.
    """
    if not isinstance(type_, ty.Record):
        if dtype.subdtype is not None:
            return [(*prefix, k) for k in range(len(ty.component_types(type_)))]
        letters = "" if isinstance(type_, ty.Scalar) else "xyzw"[: type_.size]
        if tuple(letters) != (dtype.names or ()):
            raise InputError(f"{shown}: has the fields {dtype.names or 'none'}, but {type_} has {letters or 'none'}")
        return [(*prefix, letter) for letter in letters] or [prefix]
    names = [name for name, _ in type_.fields]
    if dtype.names is None or list(dtype.names) != names:
        raise InputError(f"{shown}: has the fields {dtype.names}, but {type_} has {', '.join(names)}")
    return [path for name, field in type_.fields for path in record_paths(dtype[name], field, shown, (*prefix, name))]


def check_element(dag: Dag, element: str, scalar: str, dtype: np.dtype, shown: str, wanted: ty.Type) -> None:
    """Raises InputError unless the element type of a file converts to the wanted scalar type.

    Widening is silent; rounding to a narrower float prints a note, once for a program. int, uint and byte convert into
    each other: whether the numbers fit is checked when they are read.
    """
    if ty.widening(ty.Scalar(element), ty.Scalar(scalar)) is not None or {element, scalar} <= {"int", "uint", "byte"}:
        return
    if (element, scalar) not in (("double", "float"), ("double", "half"), ("float", "half")):
        raise InputError(f"{shown}: holds {dtype}, but {wanted} is needed; save it as {np.dtype(ty.DTYPES[scalar])}")
    rounded = np.dtype(ty.DTYPES[scalar])
    note = f"note: {shown} holds {dtype}; it is rounded to {rounded} for {wanted}"
    if note not in dag.notes:
        dag.notes.add(note)
        print(note, file=sys.stderr)
