"""The scopes of a program while it is checked: variables and restrictions of bound variables, by name."""

from collections.abc import Iterator
from typing import NamedTuple

from renderer.cdollar.checker.values import Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import Span
from renderer.cdollar.ir.dag import Dimension
from renderer.cdollar.ir.device_function import LocalArray
from renderer.cdollar.ir.types import Type
from renderer.records import dataclass, replace


@dataclass
class Variable:
    """A name and its value.

    An assignment converts to `type`; if `type` is None the name is read-only and `read_only_reason` says what it is,
    such as "a bound variable", for the error.
    """

    value: Value | None  # None before the first assignment
    type: Type | None = None
    read_only_reason: str = "a parameter"
    is_mutable: bool = False  # True if fields and elements may be assigned
    is_faulty: bool = False  # True if its declaration has an error, which is reported already
    arrays: tuple[LocalArray, ...] = ()  # the components of a local array of device code, which has no `value`


class NameRestriction(NamedTuple):
    """`int i : 0..n`: the type and range of a bound variable.

    Written as a statement, it holds for every bound variable of that name in the block.
    """

    type: Type | None
    range: Dimension | None
    span: Span
    statement: ast.Restriction | None = None  # a range whose ends depend on other bound variables, `j : 0..i;`


class Scope:
    """Names and restrictions of a block; `parent` is the scope of the enclosing block."""

    def __init__(self, parent: "Scope | None" = None):
        self.parent = parent
        self.names: dict[str, Variable] = {}
        self.restrictions: dict[str, NameRestriction] = {}

    def chain(self) -> "Iterator[Scope]":
        """This scope and its enclosing scopes, the innermost first."""
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

    def clone(self, scope_copies: "dict[Scope, Scope]") -> "Scope":
        """A copy of the chain and its variables; `scope_copies` receives each scope's copy."""
        copy = Scope(self.parent.clone(scope_copies) if self.parent else None)
        copy.names = {name: replace(v) for name, v in self.names.items()}
        copy.restrictions = dict(self.restrictions)
        scope_copies[self] = copy
        return copy
