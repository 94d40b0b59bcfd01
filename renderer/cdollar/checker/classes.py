"""Classes: methods as functions of `this`, and classes derived from functional types, whose values are functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from renderer.cdollar.checker.program import Body, Program
from renderer.cdollar.checker.scopes import Scope, Variable
from renderer.cdollar.checker.values import FunctionValue, Operand, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.types import FunctionType, Type


def functions_of(item: ast.ClassDeclaration) -> list[ast.FunctionDeclaration]:
    """The methods of a class as functions `Class.method(Class this, ...)`, and its operators as they are."""
    names = {m.name for m in item.methods} | {name for name, _, _ in item.fields}
    return [m if m.name.startswith("operator") else _with_this(item, m, names) for m in item.methods]


def _with_this(item: ast.ClassDeclaration, method: ast.FunctionDeclaration, names: set[str]) -> ast.FunctionDeclaration:
    """A method whose uses of fields and methods by their names alone are members of `this`.

    A name that the method declares itself hides the field in the whole of it.
    """
    visible = names - declared_names(method)

    def change(node: ast.AstNode) -> ast.AstNode | None:
        if isinstance(node, ast.Name) and node.name in visible:
            return ast.MemberAccess(node.span, ast.Name(node.span, "this"), node.name, node.span)
        return None

    new = ast.replaced(method, change)
    assert isinstance(new, ast.FunctionDeclaration)
    this = ast.Parameter(item.name_span, ast.NamedType(item.name_span, item.name), "this", None)
    return replace(new, name=f"{item.name}.{method.name}", parameters=[this, *new.parameters])


def declared_names(function: ast.FunctionDeclaration) -> set[str]:
    """The names that a function declares anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.Parameter, ast.BoundParameter, ast.VariableDeclaration, ast.LetIn)):
            names.add(node.name)
        elif isinstance(node, ast.Restriction):
            names |= {name for name, _ in node.names}
    return names


class Lowering(Protocol):
    """What making a value of such a class needs of the lowering of its body."""

    program: Program
    user_calls: Any
    body: Body

    def lower(self, tree: ast.AstNode, expected: Type | None = None) -> Value:
        """An expression."""

    def convert(self, value: Value, target: Type, span: Span) -> Operand:
        """The value in the type; raises if there is no implicit conversion."""


def make_function_object(lowering: Lowering, item: ast.ClassDeclaration, tree: ast.ConstructorCall) -> FunctionValue:
    """`Ramp(2)`: the function that the class evaluates, with these fields; raises CS0402."""
    lowering.body.require_host()
    if len(tree.arguments) != len(item.fields):
        fields = ", ".join(f"{type_.span.excerpt} {name}" for name, type_, _ in item.fields) or "none"
        message = f"{item.name} has {len(item.fields)} fields ({fields}), but {len(tree.arguments)} values are given"
        raise ProgramError("CS0402", tree.span, message)
    scope, types = Scope(), lowering.program.types
    for (name, written, _), argument in zip(item.fields, tree.arguments, strict=True):
        type_ = types.resolve(written)
        value = lowering.convert(lowering.lower(argument, type_), type_, argument.span)
        scope.names[name] = Variable(value, None, "a field")
    base = types.types[item.name]
    assert isinstance(base, FunctionType) and item.evaluation is not None, "TypeTable.declare has seen to it"
    inside = type(lowering)(lowering.program, lowering.user_calls, Body(scope))  # type: ignore[call-arg]
    evaluation = item.evaluation
    function = inside.lower_bound_function(evaluation.parameters, evaluation.body, base)  # type: ignore[attr-defined]
    converted = lowering.convert(function, base, evaluation.span)
    assert isinstance(converted, FunctionValue), "the base is a functional type"
    return converted
