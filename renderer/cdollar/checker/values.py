"""What expressions of C$ are while a program is checked: data, functions, overload sets, domains; and their scopes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from renderer.cdollar.frontend.ast import FunctionDeclaration, Return
from renderer.cdollar.frontend.diagnostics import Span
from renderer.cdollar.ir.dag import INFINITE, Dimension, Node
from renderer.cdollar.ir.device_function import DeviceFunction
from renderer.cdollar.ir.types import Data, DomainType, FunctionType, Type


class NotDeviceCode(Exception):
    """A body that was tried as a device function builds functions."""


@dataclass(frozen=True)
class DataValue:
    """A scalar, vector or record: one node a component."""

    type: Data
    nodes: tuple[Node, ...]

    @property
    def node(self) -> Node:
        """The first component."""
        return self.nodes[0]

    @property
    def is_literal(self) -> bool:
        """Whether all components are constants of the program's text."""
        return all(node.is_constant for node in self.nodes)

    @property
    def is_untyped(self) -> bool:
        """Whether all components are constants whose suffix leaves float or double open."""
        return self.is_literal and all(node.attribute.untyped for node in self.nodes)

    @property
    def is_closed(self) -> bool:
        """Whether the value depends on no bound variable."""
        return not any(node.free_variables for node in self.nodes)

    @property
    def constant_values(self) -> list | None:
        """The numbers of a value of scalar leaves; None if it has others or one is unknown."""
        if any(node.op != "scalar" or node.attribute.number is None for node in self.nodes):
            return None
        return [node.attribute.number for node in self.nodes]

    def variable_names(self) -> str:
        """The names of the bound variables that the first component depends on, for messages."""
        return ", ".join(sorted(v.name for v in self.node.free_variables))


@dataclass(frozen=True)
class FunctionValue:
    """A function: its node, a dimension for each parameter's component, and border modes, if it has some.

    `fixed_domain` is None where the parameters' own ranges are the domain: those may be inferred later.
    """

    type: FunctionType
    node: Node
    fixed_domain: tuple[Dimension, ...] | None = None
    borders: tuple[str | None, ...] | None = None

    @property
    def domain(self) -> tuple[Dimension, ...]:
        """A dimension for each parameter's component, without regard to border modes."""
        return tuple(v.range for v in self.node.attribute) if self.fixed_domain is None else self.fixed_domain

    @property
    def domain_with_borders(self) -> tuple[Dimension, ...]:
        """The domain, infinite in the dimensions that have a border mode."""
        borders = self.borders or (None,) * len(self.domain)
        return tuple(INFINITE if b else r for b, r in zip(borders, self.domain, strict=True))


@dataclass(frozen=True)
class OverloadSet:
    """The name of functions of which none is chosen yet."""

    name: str


@dataclass(frozen=True)
class DomainValue:
    """A range or the domain of a function."""

    ranges: tuple[Dimension, ...]

    @property
    def type(self) -> DomainType:
        """`domain`, with its rank."""
        return DomainType(len(self.ranges))


@dataclass(frozen=True)
class BlankValue:
    """A blank argument: its dimension stays free."""


Value = DataValue | FunctionValue | OverloadSet | DomainValue
Operand = DataValue | FunctionValue  # a value whose overloads are resolved
Argument = Value | BlankValue


@dataclass
class Variable:
    """A name's value; `type` is what an assignment converts to, None if `read_only_reason` forbids it."""

    value: Any  # a Value, or None before the first assignment
    type: Type | None = None
    read_only_reason: str = "a parameter"


@dataclass(eq=False)
class UserFunction:
    """A function of the program. `device_function` is set once it is lowered; `is_host_only` if it cannot be."""

    declaration: FunctionDeclaration
    name: str
    parameter_types: tuple[Type, ...]
    result_type: Type
    parameter_names: tuple[str, ...]
    device_function: DeviceFunction | None = None
    is_host_only: bool = False

    @property
    def signature(self) -> str:
        """`name(type, type)`, for messages."""
        return f"{self.name}({', '.join(map(str, self.parameter_types))})"

    @property
    def takes_data(self) -> bool:
        """Whether no parameter is a function."""
        return all(isinstance(type_, Data) for type_ in self.parameter_types)

    @property
    def is_reduction_operator(self) -> bool:
        """Whether the function is T(T, T), which combines two elements."""
        return self.parameter_types == (self.result_type,) * 2 and isinstance(self.result_type, Data)

    @property
    def is_expression(self) -> bool:
        """Whether the body is one `return`: calls are then inlined."""
        body = self.declaration.body
        return len(body) == 1 and isinstance(body[0], Return)


@dataclass(frozen=True)
class RestrictionStatement:
    """`int i : 0..n;` as a statement: for the variables of this name in the rest of the block."""

    type: Type | None
    range: Dimension | None
    span: Span


class Scope:
    """Names and restrictions of a block, inside those of the blocks around it."""

    def __init__(self, parent: Scope | None = None):
        self.parent = parent
        self.names: dict[str, Variable] = {}
        self.restrictions: dict[str, RestrictionStatement] = {}

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def find(self, name: str) -> Variable | None:
        """The innermost variable of this name."""
        return next((s.names[name] for s in self.chain() if name in s.names), None)

    def restriction(self, name: str) -> RestrictionStatement | None:
        """The innermost restriction of this name."""
        return next((s.restrictions[name] for s in self.chain() if name in s.restrictions), None)

    def variables(self) -> list[tuple[str, Variable]]:
        """All names with their variables, inner ones first."""
        return [item for scope in self.chain() for item in scope.names.items()]

    def clone(self, scope_copies: dict[Scope, Scope]) -> Scope:
        """A copy of the chain with variables of its own; `scope_copies` receives each scope's copy."""
        copy = Scope(self.parent.clone(scope_copies) if self.parent else None)
        copy.names = {name: Variable(v.value, v.type, v.read_only_reason) for name, v in self.names.items()}
        copy.restrictions = dict(self.restrictions)
        scope_copies[self] = copy
        return copy


@dataclass
class Body:
    """Where the lowering of a function's body is: the current scope, and how many conditions enclose it."""

    scope: Scope = field(default_factory=Scope)
    in_device_code: bool = False
    guard_depth: int = 0
    defining: str = ""  # the function whose parameters and body are being lowered

    @contextmanager
    def block(self, scope: Scope | None = None) -> Iterator[Scope]:
        """Lowers in an inner scope (or the given one), then returns to the current one."""
        outer, self.scope = self.scope, scope or Scope(self.scope)
        try:
            yield self.scope
        finally:
            self.scope = outer

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Lowers apart from the surrounding names and conditions: default values of parameters."""
        outer, self.guard_depth = self.guard_depth, 0
        try:
            with self.block(Scope()):
                yield
        finally:
            self.guard_depth = outer

    @contextmanager
    def guarded(self, is_guarded: bool = True) -> Iterator[None]:
        """Lowers what is evaluated only under a condition."""
        self.guard_depth += is_guarded
        try:
            yield
        finally:
            self.guard_depth -= is_guarded

    def require_host(self) -> None:
        """Raises NotDeviceCode where functions cannot be built."""
        if self.in_device_code:
            raise NotDeviceCode
