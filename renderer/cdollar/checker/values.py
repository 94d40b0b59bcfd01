"""What expressions of C$ are while a program is checked: data, functions, overload sets, domains."""

from __future__ import annotations

from dataclasses import dataclass

from renderer.cdollar.ir.dag import INFINITE, Dimension, Node
from renderer.cdollar.ir.types import Data, FunctionType


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
    def is_closed(self) -> bool:
        """Whether the value depends on no bound variable."""
        return not any(node.free_variables for node in self.nodes)

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
    """A range or the domain of a function; a union has `more` boxes, all of them disjoint."""

    ranges: tuple[Dimension, ...]
    more: tuple[tuple[Dimension, ...], ...] = ()

    @property
    def boxes(self) -> tuple[tuple[Dimension, ...], ...]:
        """All boxes."""
        return (self.ranges, *self.more)

    @property
    def type(self) -> str:
        """`domain`, with its rank: for messages."""
        return "domain" if len(self.ranges) == 1 else f"domain of {len(self.ranges)} dimensions"


@dataclass(frozen=True)
class Blank:
    """A blank argument: its dimension stays free."""


@dataclass(frozen=True)
class SliceArgument(Blank):
    """A dimension that stays free, over `size` indices from 0 on: it reads low, low + step, ..."""

    low: int | None  # None, as `size`, while it is unknown
    step: int
    size: int | None


Value = DataValue | FunctionValue | OverloadSet | DomainValue
Operand = DataValue | FunctionValue  # a value whose overloads are resolved
