"""Types of C$: scalars, vectors, records, functional types; every data type is a row of scalar components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DTYPES = {"bool": np.bool_, "int": np.int32, "uint": np.uint32, "float": np.float32, "double": np.float64}
NUMBERS = ("int", "uint", "float", "double")
INTEGERS = ("int", "uint")
REALS = ("float", "double")
# What converts by itself, and how far that is: the order of overloads (less is better).
WIDER = {("int", "float"): 1, ("int", "double"): 2, ("uint", "float"): 1, ("uint", "double"): 2, ("float", "double"): 1}


@dataclass(frozen=True)
class Scalar:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Vector:
    base: str
    size: int

    def __str__(self) -> str:
        return f"{self.base}{self.size}"


@dataclass(frozen=True)
class Record:
    name: str
    fields: tuple[tuple[str, Data], ...]

    def __str__(self) -> str:
        return self.name


Data = Scalar | Vector | Record


@dataclass(frozen=True)
class Functional:
    """A function of scalars; `array` if it is evaluated: float[,] is an evaluated float(int, int)."""

    result: Data
    parameters: tuple[Data, ...]
    array: bool = False

    def __str__(self) -> str:
        if self.array:
            return f"{self.result}[{',' * (len(self.parameters) - 1)}]"
        return f"{self.result}({', '.join(map(str, self.parameters))})"

    @property
    def plain(self) -> Functional:
        return Functional(self.result, self.parameters)


@dataclass(frozen=True)
class DomainType:
    rank: int

    def __str__(self) -> str:
        return "domain" if self.rank == 1 else f"domain of {self.rank} dimensions"


Type = Data | Functional | DomainType
BOOL, INT, UINT, FLOAT, DOUBLE = (Scalar(name) for name in ("bool", "int", "uint", "float", "double"))


def components(type_: Data) -> tuple[str, ...]:
    """The scalar types of a value, in memory order."""
    if isinstance(type_, Scalar):
        return (type_.name,)
    if isinstance(type_, Vector):
        return (type_.base,) * type_.size
    return tuple(part for _, field in type_.fields for part in components(field))


def fields(type_: Data) -> list[tuple[str, Data, int]]:
    """Name, type and first component of each field of a vector or record."""
    if isinstance(type_, Vector):
        return [("xyzw"[k], Scalar(type_.base), k) for k in range(type_.size)]
    found, position = [], 0
    if isinstance(type_, Record):
        for name, field in type_.fields:
            found.append((name, field, position))
            position += len(components(field))
    return found


def base_of(type_: Type) -> str | None:
    """The scalar a number-like type (scalar or vector) is made of."""
    if isinstance(type_, Scalar):
        return type_.name
    return type_.base if isinstance(type_, Vector) else None


def with_base(type_: Data, base: str) -> Data:
    return Vector(base, type_.size) if isinstance(type_, Vector) else Scalar(base)


def is_data(type_: Type) -> bool:
    return isinstance(type_, (Scalar, Vector, Record))


def widening(source: Type, target: Type) -> int | None:
    """Steps of the implicit conversion from one data type to another, 0 if equal, None if there is none."""
    if source == target:
        return 0
    if isinstance(source, Scalar) and isinstance(target, Scalar):
        return WIDER.get((source.name, target.name))
    if isinstance(source, Vector) and isinstance(target, Vector) and source.size == target.size:
        return WIDER.get((source.base, target.base))
    return None
