"""Types of C$, for the checker, the DAG and the targets: scalars, vectors, records, functions and domains.

A data type (scalar, vector, record) is a sequence of scalar components; kernels hold one buffer or variable for each
component. A C$ function of integers over a domain, a set of index ranges, is an array once it is evaluated.
"""

import numpy as np

from renderer.paths import ASSETS
from renderer.records import dataclass
from renderer.system.files import read_toml

Number = bool | int | float  # a number of the host, or of a program's text
DTYPES = {
    "bool": np.bool_, "int": np.int32, "uint": np.uint32, "long": np.int64, "float": np.float32, "double": np.float64,
    "half": np.float16, "byte": np.uint8,
}  # fmt: skip
NUMBERS = ("int", "uint", "long", "float", "double")
INTEGERS = ("int", "uint", "long")
FLOATS = ("float", "double")
PROMOTED = {"half": "float", "byte": "int"}  # half and byte are types of array elements; operations convert to these
TABLES = read_toml(ASSETS / "tables" / "cdollar_types.toml")
WIDENING_COST: dict[str, dict[str, int]] = TABLES["widening"]  # of implicit conversions, in overload resolution


@dataclass(frozen=True)
class Scalar:
    """bool, byte, int, uint, long, half, float or double."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Vector:
    """Two to four components of one scalar type."""

    scalar_type: str
    size: int

    def __str__(self) -> str:
        return f"{self.scalar_type}{self.size}"


@dataclass(frozen=True)
class Record:
    """A class of the program: named fields of data types."""

    name: str
    fields: "tuple[tuple[str, Data], ...]"

    def __str__(self) -> str:
        return self.name


Data = Scalar | Vector | Record


@dataclass(frozen=True)
class FunctionType:
    """The type of a function of data; `is_array` if it is evaluated: float[,] is an evaluated float(int, int)."""

    result: Data
    parameters: tuple[Data, ...]
    is_array: bool = False

    def __str__(self) -> str:
        if self.is_array:
            return f"{self.result}[{',' * (len(self.parameters) - 1)}]"
        return f"{self.result}({', '.join(map(str, self.parameters))})"

    @property
    def takes_indices(self) -> bool:
        """True if all parameters are int, as the indices of an array are."""
        return all(p == INT for p in self.parameters)

    @property
    def as_function_type(self) -> "FunctionType":
        """The same type, not evaluated."""
        return FunctionType(self.result, self.parameters)

    @property
    def as_array_type(self) -> "FunctionType":
        """The same type, evaluated."""
        return FunctionType(self.result, self.parameters, is_array=True)


@dataclass(frozen=True)
class Tuple:
    """Values of any types by name: a tuple, or a class with fields that are functions. Tuples of data are Records."""

    name: str
    fields: "tuple[tuple[str, Type], ...]"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class DomainType:
    """A domain of `rank` dimensions: domains are values only while the program is checked."""

    rank: int

    def __str__(self) -> str:
        return "domain" if self.rank == 1 else f"domain[{',' * (self.rank - 1)}]"


Type = Data | FunctionType | DomainType | Tuple
BOOL, INT, UINT, FLOAT, DOUBLE = (Scalar(name) for name in ("bool", "int", "uint", "float", "double"))


def tuple_type(fields: "tuple[tuple[str, Type], ...]") -> Record | Tuple:
    """The type of a tuple; values without a name are Item1, Item2, ... as in C#."""
    named = tuple((name or f"Item{k + 1}", type_) for k, (name, type_) in enumerate(fields))
    text = ", ".join(f"{type_} {name}" if name else str(type_) for name, type_ in fields)
    return class_type(f"({text})", named)


def class_type(name: str, fields: "tuple[tuple[str, Type], ...]") -> Record | Tuple:
    """The type of a class or tuple with these fields: a Record, which is data, if all of them are data."""
    data = tuple((field, type_) for field, type_ in fields if isinstance(type_, Data))
    return Record(name, data) if len(data) == len(fields) else Tuple(name, fields)


def are_alike(source: "Type", target: "Type") -> bool:
    """True if a value of `source` may stand for one of `target` without conversion.

    Both are Records or both Tuples, of one name, or two tuples of as many values whatever these are called. The types
    of a Record's fields must agree.
    """
    if not isinstance(source, Record | Tuple) or not isinstance(target, Record | Tuple):
        return False
    are_tuples = source.name.startswith("(") and target.name.startswith("(")
    has_types = isinstance(target, Tuple) or [t for _, t in source.fields] == [t for _, t in target.fields]
    is_same = source.name == target.name or are_tuples and len(source.fields) == len(target.fields)
    return type(source) is type(target) and has_types and is_same


def component_types(type_: Data) -> tuple[str, ...]:
    """The scalar types of a value's components, in memory order."""
    if isinstance(type_, Scalar):
        return (type_.name,)
    if isinstance(type_, Vector):
        return (type_.scalar_type,) * type_.size
    return tuple(scalar for _, field in type_.fields for scalar in component_types(field))


def data_type(types: tuple[str, ...]) -> Data:
    """A data type whose components have these scalar types; a Record for several."""
    if len(types) == 1:
        return Scalar(types[0])
    return Record("values", tuple((f"c{k}", Scalar(t)) for k, t in enumerate(types)))


def element_type(type_: Type) -> Data:
    """The type of an array's elements; a data type itself. The type is neither a domain nor a tuple."""
    data = type_.result if isinstance(type_, FunctionType) else type_
    assert not isinstance(data, DomainType | Tuple), "domains and tuples have no elements"
    return data


def fields(type_: Type) -> list[tuple[str, Data, int]]:
    """Name, type and first component of each field of a vector or record; [] for other types."""
    if isinstance(type_, Vector):
        return [("xyzw"[k], Scalar(type_.scalar_type), k) for k in range(type_.size)]
    result: list[tuple[str, Data, int]] = []
    first = 0
    for name, field in type_.fields if isinstance(type_, Record) else ():
        result.append((name, field, first))
        first += len(component_types(field))
    return result


def promoted_type(scalar_type: str) -> str:
    """The scalar type in which values of another are computed, and kept in registers."""
    return PROMOTED.get(scalar_type, scalar_type)


def scalar_type_of(type_: Type) -> str | None:
    """The scalar type of a scalar or vector; None for other types."""
    if isinstance(type_, Scalar):
        return type_.name
    return type_.scalar_type if isinstance(type_, Vector) else None


def with_scalar_type(type_: Type, scalar_type: str) -> Data:
    """A scalar or vector type of the same size over another scalar type."""
    return Vector(scalar_type, type_.size) if isinstance(type_, Vector) else Scalar(scalar_type)


def widening(source: Type, target: Type) -> int | None:
    """The cost of the implicit conversion between two types: 0 if they are equal, None if there is none.

    Scalars and vectors of numbers convert; the costs are in assets/tables/cdollar_types.toml.
    """
    if source == target or are_alike(source, target):
        return 0
    scalar, wanted = scalar_type_of(source), scalar_type_of(target)
    if scalar is None or wanted is None or with_scalar_type(source, wanted) != target:
        return None
    return WIDENING_COST.get(scalar, {}).get(wanted)
