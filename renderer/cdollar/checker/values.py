"""What expressions of C$ yield while a program is checked: data, functions, families, domains; and their scopes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from renderer.cdollar.frontend.ast import FunctionDeclaration
from renderer.cdollar.frontend.diagnostics import Span
from renderer.cdollar.ir.dag import BoundVariable, Constant, Dag, Node, RuntimeScalar
from renderer.cdollar.ir.operations import OPERATIONS, evaluate
from renderer.cdollar.ir.types import (
    BOOL,
    DTYPES,
    INTEGERS,
    NUMBERS,
    Data,
    DomainType,
    FunctionType,
    Scalar,
    Type,
    Vector,
    component_types,
    scalar_type_of,
    with_scalar_type,
)


@dataclass(frozen=True)
class DataValue:
    """A scalar, vector or record: one node a component."""

    type: Data
    nodes: tuple[Node, ...]

    @property
    def node(self) -> Node:
        return self.nodes[0]

    @property
    def is_literal(self) -> bool:
        return all(node.op == "scalar" and isinstance(node.attribute, Constant) for node in self.nodes)

    @property
    def is_untyped(self) -> bool:
        return self.is_literal and all(node.attribute.untyped for node in self.nodes)


@dataclass(frozen=True)
class FunctionValue:
    """A function: its node, a range (or INFINITE, UNKNOWN) for each parameter, border modes if it was given some."""

    type: FunctionType
    node: Node
    own_domain: tuple | None = None
    borders: tuple[str | None, ...] | None = None

    @property
    def domain(self) -> tuple:
        """One entry a parameter; those of an expression are its variables', once they are solved."""
        return self.own_domain if self.own_domain is not None else tuple(v.range for v in self.node.attribute)


@dataclass(frozen=True)
class OverloadSet:
    """A function's name before an overload is chosen."""

    name: str


@dataclass(frozen=True)
class DomainValue:
    ranges: tuple

    @property
    def type(self) -> DomainType:
        return DomainType(len(self.ranges))


@dataclass(frozen=True)
class BlankValue:
    """An empty parameter: its dimension stays free."""


Value = DataValue | FunctionValue | OverloadSet | DomainValue


@dataclass
class Variable:
    value: object
    type: Type | None = None  # what an assignment must convert to; None: it cannot be assigned
    why_fixed: str = "a parameter"


@dataclass(eq=False)
class UserFunction:
    """A function of the program; `types` are its parameters' types."""

    declaration: FunctionDeclaration
    name: str
    parameter_types: tuple[Type, ...]
    result_type: Type
    parameter_names: tuple[str, ...]
    scalar: object = None  # its DeviceFunction, once compiled
    is_host_only: bool = False

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameter_types))})"


class Scope:
    """Names of a body: a chain of blocks."""

    def __init__(self, parent: Scope | None = None):
        self.parent, self.names, self.restrictions = parent, {}, {}

    def find(self, name: str) -> Variable | None:
        scope = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def restriction(self, name: str):
        scope = self
        while scope is not None:
            if name in scope.restrictions:
                return scope.restrictions[name]
            scope = scope.parent
        return None

    def all_names(self) -> set[str]:
        return set(self.names) | (self.parent.all_names() if self.parent else set())

    def variables(self):
        scope = self
        while scope is not None:
            yield from scope.names.items()
            scope = scope.parent


@dataclass
class InferenceContext:
    """The bound variables of one expression and what is known about them."""

    variables: list[BoundVariable] = field(default_factory=list)
    uses: list = field(default_factory=list)
    explicit: dict[BoundVariable, Span] = field(default_factory=dict)
    places: dict[BoundVariable, Span] = field(default_factory=dict)
    owners: dict[int, list[str]] = field(default_factory=dict)


class NodeBuilder:
    """Elementary operations on data values; None where no ordinary overload fits."""

    def __init__(self, dag: Dag):
        self.dag = dag

    def number(self, number, type_: str, untyped: bool = False) -> DataValue:
        return DataValue(Scalar(type_), (self.dag.constant(number, type_, untyped),))

    def operate(self, name: str, type_: str, *operands: Node) -> Node:
        """An operation's node, folded if all operands are literals."""
        result = operation_type(name, type_)
        if name == "select" and isinstance(operands[0].attribute, Constant) and operands[0].op == "scalar":
            return operands[1] if operands[0].attribute.number else operands[2]
        if all(node.op == "scalar" and isinstance(node.attribute, Constant) for node in operands):
            return self.fold(name, result, operands)
        return self.dag.apply(name, result, *operands)

    def fold(self, name: str, result: str, operands: tuple[Node, ...]) -> Node:
        untyped = all(node.attribute.untyped or node.type in ("int", "bool") for node in operands) and result == "float"
        dtypes = [DTYPES["double"] if untyped and node.type == "float" else DTYPES[node.type] for node in operands]
        numbers = [
            dtype(wrapped(node.attribute.number, node.type)) for dtype, node in zip(dtypes, operands, strict=True)
        ]
        with np.errstate(all="ignore"):
            found = evaluate(name, "double" if untyped and name == "convert" else result, numbers)
        number = found.item() if hasattr(found, "item") else found
        return self.dag.constant(float(number) if result in ("float", "double") else number, result, untyped)

    def coerce(self, value: DataValue, base: str) -> DataValue:
        """The value with scalars of another type; literals are made anew, so that 0.1 as double is 0.1."""
        nodes = tuple(self.coerce_node(node, base) for node in value.nodes)
        return DataValue(with_scalar_type(value.type, base), nodes)

    def coerce_node(self, node: Node, base: str) -> Node:
        if node.type == base:
            return node
        if node.op == "scalar" and isinstance(node.attribute, Constant):
            number = node.attribute.number
            if base in ("float", "double") and node.type != "bool":
                if node.type == "float" and not node.attribute.untyped:
                    number = float(DTYPES["float"](number))
                return self.dag.constant(float(number), base, node.attribute.untyped and base == "float")
            if base in INTEGERS and node.type in INTEGERS and 0 <= number < 2**31:
                return self.dag.constant(number, base)
        return self.operate("convert", base, node)

    def common_base(self, a: DataValue, b: DataValue) -> str | None:
        """The scalar type both convert to by themselves."""
        left, right = scalar_type_of(a.type), scalar_type_of(b.type)
        if left is None or right is None:
            return None
        if left == right:
            return left
        if "bool" in (left, right):
            return None
        if {left, right} == {"int", "uint"}:
            signed = a if left == "int" else b
            return "uint" if signed.is_literal and all(node.attribute.number >= 0 for node in signed.nodes) else None
        order = ("int", "uint", "float", "double")
        return max(left, right, key=order.index)

    def binary(self, name: str, a: DataValue, b: DataValue) -> DataValue | None:
        base = self.common_base(a, b)
        if base is None or base not in allowed_bases(name):
            return None
        if name in ("<<", ">>") and scalar_type_of(a.type) != base:
            return None
        sizes = {value.type.size for value in (a, b) if isinstance(value.type, Vector)}
        if len(sizes) > 1:
            return None
        a, b = self.coerce(a, base), self.coerce(b, base)
        if not sizes:
            node = self.operate(name, base, a.node, b.node)
            return DataValue(Scalar(node.type), (node,))
        size = sizes.pop()
        if name in ("<", ">", "<=", ">=", "&&", "||"):
            return None
        left, right = spread(a, size), spread(b, size)
        nodes = tuple(self.operate(name, base, x, y) for x, y in zip(left, right, strict=True))
        if name in ("==", "!="):
            return self.joined("&&" if name == "==" else "||", nodes)
        return DataValue(Vector(base, size), nodes)

    def joined(self, name: str, nodes: tuple[Node, ...]) -> DataValue:
        found = nodes[0]
        for node in nodes[1:]:
            found = self.operate(name, "bool", found, node)
        return DataValue(BOOL, (found,))

    def unary(self, name: str, value: DataValue) -> DataValue | None:
        base = scalar_type_of(value.type)
        if base is None or base not in allowed_bases(name):
            return None
        if name == "+":
            return value
        operation = {"-": "neg"}.get(name, name)
        if operation == "neg" and base == "uint":
            return None
        return DataValue(value.type, tuple(self.operate(operation, base, node) for node in value.nodes))

    def function(self, name: str, values: list[DataValue]) -> DataValue | None:
        """An operation of OPERATIONS written as a call, component by component."""
        operation = OPERATIONS[name]
        if len(values) != len(operation.parameters) or any(scalar_type_of(v.type) in (None, "bool") for v in values):
            return None
        base = scalar_type_of(values[0].type)
        for value in values[1:]:
            base = self.common_base(DataValue(Scalar(base), (values[0].node,)), value)
            if base is None:
                return None
        if operation.parameters[0] == "r" and base in INTEGERS:
            base = "float"
        sizes = {value.type.size for value in values if isinstance(value.type, Vector)}
        if len(sizes) > 1 or base not in operation.types():
            return None
        if not sizes:
            node = self.operate(name, base, *(self.coerce(v, base).node for v in values))
            return DataValue(Scalar(node.type), (node,))
        size = sizes.pop()
        rows = zip(*(spread(self.coerce(v, base), size) for v in values), strict=True)
        return DataValue(Vector(base, size), tuple(self.operate(name, base, *row) for row in rows))

    def select(self, condition: DataValue, yes: DataValue, no: DataValue) -> DataValue | None:
        if yes.type != no.type:
            base = self.common_base(yes, no)
            if base is None:
                return None
            yes, no = self.coerce(yes, base), self.coerce(no, base)
            if yes.type != no.type:
                return None
        pairs = zip(yes.nodes, no.nodes, strict=True)
        return DataValue(
            yes.type, tuple(a if a is b else self.operate("select", a.type, condition.node, a, b) for a, b in pairs)
        )


def wrapped(number, type_: str):
    if type_ == "int" and number >= 2**31:
        return int(number) - 2**32
    return number


def spread(value: DataValue, size: int) -> tuple[Node, ...]:
    return value.nodes if len(value.nodes) == size else value.nodes * size


def operation_type(name: str, type_: str) -> str:
    if name in ("select", "convert"):
        return type_
    return "bool" if OPERATIONS[name].result == "bool" else type_


def allowed_bases(name: str) -> tuple[str, ...]:
    if name in ("&&", "||", "!"):
        return ("bool",)
    if name in ("&", "|", "^"):
        return ("bool", *INTEGERS)
    if name in ("<<", ">>", "~"):
        return INTEGERS
    if name in ("==", "!="):
        return ("bool", *NUMBERS)
    return NUMBERS


def is_closed(value: DataValue) -> bool:
    """Whether a value depends on no bound variable and no unknown."""
    return all(not node.free_variables for node in value.nodes)


def constant_values(value: DataValue) -> list | None:
    """The numbers of a value whose nodes are scalar leaves, None if one is not or is not known yet."""
    found = []
    for node in value.nodes:
        if (
            node.op != "scalar"
            or not isinstance(node.attribute, (Constant, RuntimeScalar))
            or node.attribute.number is None
        ):
            return None
        found.append(node.attribute.number)
    return found


def zero_of(arithmetic: NodeBuilder, type_: Data) -> DataValue:
    nodes = []
    for base in component_types(type_):
        number = {"bool": False, "float": 0.0, "double": 0.0}.get(base, 0)
        nodes.append(arithmetic.dag.constant(number, base))
    return DataValue(type_, tuple(nodes))


class NotDeviceCode(Exception):
    """A body that was tried as a scalar function builds functions."""
