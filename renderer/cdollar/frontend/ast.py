"""The tree of a C$ program (.cb files); every node keeps its place for messages."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from renderer.cdollar.frontend.diagnostics import Source, Span

PRIMITIVES = ("bool", "int", "uint", "float", "double")
VECTORS = tuple(f"{base}{n}" for base in ("int", "uint", "float", "double") for n in (2, 3, 4))
BORDERS = ("clamp", "wrap", "mirror", "zero")


@dataclass(eq=False)
class Tree:
    span: Span


# Types as written


@dataclass(eq=False)
class NamedType(Tree):
    name: str


@dataclass(eq=False)
class FunctionalType(Tree):
    result: Tree
    parameters: list[Tree]
    array: bool


# Expressions


@dataclass(eq=False)
class Literal(Tree):
    value: object
    kind: str  # bool int uint float double real text


@dataclass(eq=False)
class Name(Tree):
    name: str


@dataclass(eq=False)
class Blank(Tree):
    pass


@dataclass(eq=False)
class Unary(Tree):
    operator: str
    operand: Tree
    restrictions: list[Restriction] = field(default_factory=list)


@dataclass(eq=False)
class Binary(Tree):
    operator: str
    left: Tree
    right: Tree


@dataclass(eq=False)
class Choice(Tree):
    condition: Tree
    yes: Tree
    no: Tree


@dataclass(eq=False)
class Call(Tree):
    callee: Tree
    arguments: list[Tree]
    restrictions: list[Restriction] = field(default_factory=list)


@dataclass(eq=False)
class Member(Tree):
    subject: Tree
    name: str
    name_span: Span


@dataclass(eq=False)
class Cast(Tree):
    type: Tree
    operand: Tree


@dataclass(eq=False)
class TypeCall(Tree):
    """float3(x, y, z), int(x), Point(1, 2): the type's name used as a function."""

    type: Tree
    arguments: list[Tree]


@dataclass(eq=False)
class Interval(Tree):
    low: Tree
    high: Tree


@dataclass(eq=False)
class LetIn(Tree):
    name: str
    value: Tree
    body: Tree


@dataclass(eq=False)
class Lambda(Tree):
    head: list[HeadVariable]
    body: Tree


# Statements


@dataclass(eq=False)
class HeadVariable(Tree):
    """A bound variable declared in a head: `var c(j, int k : 0..n) = ...`."""

    name: str
    type: Tree | None
    domain: Tree | None


@dataclass(eq=False)
class Restriction(Tree):
    """`l : 0..n`, `int l`, `(i, j) : f`; type and domain may be missing."""

    names: list[tuple[str, Span]]
    type: Tree | None
    domain: Tree | None


@dataclass(eq=False)
class Declare(Tree):
    """`var x = e`, `let x(i) = e`, `float[] x = e`; kind is "var", "let" or "type"."""

    kind: str
    type: Tree | None
    name: str
    name_span: Span
    head: list[HeadVariable] | None
    value: Tree | None


@dataclass(eq=False)
class Assign(Tree):
    name: str
    name_span: Span
    operator: str
    value: Tree


@dataclass(eq=False)
class If(Tree):
    condition: Tree
    yes: list[Tree]
    no: list[Tree]


@dataclass(eq=False)
class Loop(Tree):
    """for, while and do: start; while (condition) { body; step }; `do` runs the body once before the first test."""

    start: list[Tree]
    condition: Tree | None
    step: list[Tree]
    body: list[Tree]
    test_first: bool


@dataclass(eq=False)
class Jump(Tree):
    kind: str  # break continue


@dataclass(eq=False)
class Return(Tree):
    value: Tree | None


@dataclass(eq=False)
class Block(Tree):
    body: list[Tree]


# Items


@dataclass(eq=False)
class Parameter(Tree):
    type: Tree
    name: str
    default: Tree | None


@dataclass(eq=False)
class FunctionItem(Tree):
    name: str
    name_span: Span
    result: Tree | None
    parameters: list[Parameter]
    body: list[Tree]
    attributes: dict[str, Span]


@dataclass(eq=False)
class ClassItem(Tree):
    name: str
    name_span: Span
    fields: list[tuple[str, Tree, Span]]


@dataclass(eq=False)
class AliasItem(Tree):
    name: str
    type: Tree


@dataclass(eq=False)
class GlobalItem(Tree):
    declare: Declare


@dataclass(eq=False)
class Program:
    source: Source
    items: list[Tree]


def children(tree: Tree):
    """Direct subtrees in the order they are written."""
    for entry in fields(tree):
        value = getattr(tree, entry.name)
        if isinstance(value, Tree):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, Tree))


def walk(tree: Tree):
    """The tree and all under it, in reading order, without recursion."""
    stack = [tree]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(list(children(found))))
