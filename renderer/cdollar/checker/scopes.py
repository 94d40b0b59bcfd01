"""Names, and the restrictions of bound variables, in blocks inside of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from renderer.cdollar.frontend.diagnostics import Span
from renderer.cdollar.ir.dag import Dimension
from renderer.cdollar.ir.types import Type


@dataclass
class Variable:
    """A name's value; `type` is what an assignment converts to, None if `read_only_reason` forbids it."""

    value: Any  # a Value, or None before the first assignment
    type: Type | None = None
    read_only_reason: str = "a parameter"
    is_mutable: bool = False  # whether parts of it may be assigned


@dataclass(frozen=True)
class NameRestriction:
    """`int i : 0..n`: the type and range of a bound variable; as a statement, of all of this name in the block."""

    type: Type | None
    range: Dimension | None
    span: Span


class Scope:
    """Names and restrictions of a block, inside those of the blocks around it."""

    def __init__(self, parent: Scope | None = None):
        self.parent = parent
        self.names: dict[str, Variable] = {}
        self.restrictions: dict[str, NameRestriction] = {}

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def find(self, name: str) -> Variable | None:
        """The innermost variable of this name."""
        return next((s.names[name] for s in self.chain() if name in s.names), None)

    def restriction(self, name: str) -> NameRestriction | None:
        """The innermost restriction of this name."""
        return next((s.restrictions[name] for s in self.chain() if name in s.restrictions), None)

    def variables(self) -> list[tuple[str, Variable]]:
        """All names with their variables, inner ones first."""
        return [item for scope in self.chain() for item in scope.names.items()]

    def clone(self, scope_copies: dict[Scope, Scope]) -> Scope:
        """A copy of the chain with variables of its own; `scope_copies` receives each scope's copy."""
        copy = Scope(self.parent.clone(scope_copies) if self.parent else None)
        copy.names = {name: replace(v) for name, v in self.names.items()}
        copy.restrictions = dict(self.restrictions)
        scope_copies[self] = copy
        return copy
