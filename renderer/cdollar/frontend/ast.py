"""The tree of a C$ program (.cb files); every node keeps its place for messages."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from renderer.cdollar.frontend.diagnostics import SourceFile, Span

PRIMITIVES = ("bool", "int", "uint", "float", "double")
VECTORS = tuple(f"{base}{n}" for base in ("int", "uint", "float", "double") for n in (2, 3, 4))
BORDER_MODES = ("clamp", "wrap", "mirror", "zero")


@dataclass(eq=False)
class AstNode:
    span: Span


# Types as written


@dataclass(eq=False)
class NamedType(AstNode):
    name: str


@dataclass(eq=False)
class FunctionalType(AstNode):
    result: AstNode
    parameters: list[AstNode]
    is_array: bool


# Expressions


@dataclass(eq=False)
class Literal(AstNode):
    value: Any
    kind: str  # bool int uint float double float_literal string


@dataclass(eq=False)
class Name(AstNode):
    name: str


@dataclass(eq=False)
class Blank(AstNode):
    pass


@dataclass(eq=False)
class Unary(AstNode):
    operator: str
    operand: AstNode
    restrictions: list[Restriction] = field(default_factory=list)


@dataclass(eq=False)
class Binary(AstNode):
    operator: str
    left: AstNode
    right: AstNode


@dataclass(eq=False)
class Conditional(AstNode):
    condition: AstNode
    if_true: AstNode
    if_false: AstNode


@dataclass(eq=False)
class Call(AstNode):
    callee: AstNode
    arguments: list[AstNode]
    restrictions: list[Restriction] = field(default_factory=list)


@dataclass(eq=False)
class MemberAccess(AstNode):
    subject: AstNode
    name: str
    name_span: Span


@dataclass(eq=False)
class Cast(AstNode):
    type: AstNode
    operand: AstNode


@dataclass(eq=False)
class ConstructorCall(AstNode):
    """float3(x, y, z), int(x), Point(1, 2): the type's name used as a function."""

    type: AstNode
    arguments: list[AstNode]


@dataclass(eq=False)
class RangeExpression(AstNode):
    low: AstNode
    high: AstNode


@dataclass(eq=False)
class LetIn(AstNode):
    name: str
    value: AstNode
    body: AstNode


@dataclass(eq=False)
class Lambda(AstNode):
    parameters: list[BoundParameter]
    body: AstNode


# Statements


@dataclass(eq=False)
class BoundParameter(AstNode):
    """A bound variable declared in a head: `var c(j, int k : 0..n) = ...`."""

    name: str
    type: AstNode | None
    domain: AstNode | None


@dataclass(eq=False)
class Restriction(AstNode):
    """`l : 0..n`, `int l`, `(i, j) : f`; type and domain may be missing."""

    names: list[tuple[str, Span]]
    type: AstNode | None
    domain: AstNode | None


@dataclass(eq=False)
class VariableDeclaration(AstNode):
    """`var x = e`, `let x(i) = e`, `float[] x = e`; kind is "var", "let" or "type"."""

    kind: str
    type: AstNode | None
    name: str
    name_span: Span
    parameters: list[BoundParameter] | None
    value: AstNode | None


@dataclass(eq=False)
class Assignment(AstNode):
    name: str
    name_span: Span
    operator: str
    value: AstNode


@dataclass(eq=False)
class If(AstNode):
    condition: AstNode
    if_true: list[AstNode]
    if_false: list[AstNode]


@dataclass(eq=False)
class Loop(AstNode):
    """for, while and do: start; while (condition) { body; step }; `do` runs the body once before the first test."""

    start: list[AstNode]
    condition: AstNode | None
    step: list[AstNode]
    body: list[AstNode]
    test_first: bool


@dataclass(eq=False)
class Jump(AstNode):
    kind: str  # break continue


@dataclass(eq=False)
class Return(AstNode):
    value: AstNode | None


@dataclass(eq=False)
class Block(AstNode):
    body: list[AstNode]


# Items


@dataclass(eq=False)
class Parameter(AstNode):
    type: AstNode
    name: str
    default: AstNode | None


@dataclass(eq=False)
class FunctionDeclaration(AstNode):
    name: str
    name_span: Span
    result: AstNode | None
    parameters: list[Parameter]
    body: list[AstNode]
    attributes: dict[str, Span]


@dataclass(eq=False)
class ClassDeclaration(AstNode):
    name: str
    name_span: Span
    fields: list[tuple[str, AstNode, Span]]


@dataclass(eq=False)
class TypeAlias(AstNode):
    name: str
    type: AstNode


@dataclass(eq=False)
class GlobalDeclaration(AstNode):
    declaration: VariableDeclaration


@dataclass(eq=False)
class Program:
    source: SourceFile
    items: list[AstNode]


def children(tree: AstNode):
    """Direct subtrees in the order they are written."""
    for entry in fields(tree):
        value = getattr(tree, entry.name)
        if isinstance(value, AstNode):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, AstNode))


def walk(tree: AstNode):
    """The tree and all under it, in reading order, without recursion."""
    stack = [tree]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(list(children(found))))
