"""Generic functions, `T twice<T>(T x) => x + x;`: an instance for each choice of types that calls need.

A body is checked when it is instantiated, with the types that the call gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renderer.cdollar.checker.program import Program, UserFunction
from renderer.cdollar.checker.values import DataValue, FunctionValue
from renderer.cdollar.frontend import ast
from renderer.cdollar.ir.types import Data, DomainType, FunctionType, Type, widening

Types = dict[str, Data]


class Generics:
    """The instances of a program's generic functions."""

    def __init__(self, program: Program):
        self.program = program
        self.instances: dict[tuple, UserFunction] = {}

    def for_values(self, name: str, values: Sequence[Any]) -> list[UserFunction]:
        """The instances of the generic functions of a name for the values of a call; those that do not fit are left."""
        types = [v.type if isinstance(v, (DataValue, FunctionValue)) else None for v in values]
        return self.for_types(name, types)

    def for_types(self, name: str, types: Sequence[Type | None]) -> list[UserFunction]:
        """The instances for types of arguments; None is an argument of unknown type."""
        found = []
        for declaration in self.program.functions.generics.get(name, ()):
            if len(types) <= len(declaration.parameters):
                bound = self._infer(declaration, types)
                if bound is not None:
                    found.append(self.instance(declaration, bound))
        return found

    def instance(self, declaration: ast.FunctionDeclaration, bound: Types) -> UserFunction:
        """The function with types in place of its type parameters, made once."""
        key = (id(declaration), *(bound[name] for name in declaration.type_parameters))
        if key not in self.instances:

            def change(node: ast.AstNode) -> ast.AstNode | None:
                if isinstance(node, ast.NamedType) and node.name in bound:
                    return ast.KnownType(node.span, bound[node.name])
                return None

            concrete = ast.replaced(declaration, change)
            assert isinstance(concrete, ast.FunctionDeclaration)
            concrete.type_parameters = []
            self.instances[key] = self.program.functions.function_of(concrete)
        return self.instances[key]

    def _infer(self, declaration: ast.FunctionDeclaration, types: Sequence[Type | None]) -> Types | None:
        """The type parameters, inferred from arguments; None if one is unknown or has two answers."""
        bound: Types = {}
        for parameter, type_ in zip(declaration.parameters, types, strict=False):
            if type_ is not None and not self._match(parameter.type, type_, declaration.type_parameters, bound):
                return None
        return bound if len(bound) == len(declaration.type_parameters) else None

    def _match(self, written: ast.AstNode, type_: Type, names: list[str], bound: Types) -> bool:
        """Whether a written type can stand for a type; binds the type parameters in it."""
        if isinstance(written, ast.NamedType):
            data = type_.result if isinstance(type_, FunctionType) else type_
            return written.name not in names or not isinstance(data, DomainType) and _bind(bound, written.name, data)
        assert isinstance(written, ast.FunctionalType)
        if not isinstance(type_, FunctionType) or len(type_.parameters) != len(written.parameters):
            return False
        pairs = zip(written.parameters, type_.parameters, strict=True)
        return self._match(written.result, type_.result, names, bound) and all(
            self._match(part, parameter, names, bound) for part, parameter in pairs
        )


def _bind(bound: Types, name: str, data: Data) -> bool:
    """Binds a name to the wider of what it is bound to and a type."""
    known = bound.get(name, data)
    if widening(known, data) is not None:
        bound[name] = data
    elif widening(data, known) is None:
        return False
    return True
