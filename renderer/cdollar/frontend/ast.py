"""The syntax tree of a C$ program. Every node has its span, for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, dataclass_transform

from renderer.cdollar.frontend.diagnostics import Span

PRIMITIVES = ("bool", "byte", "int", "uint", "long", "half", "float", "double")
VECTORS = tuple(f"{scalar}{n}" for scalar in ("byte", "int", "uint", "half", "float", "double") for n in (2, 3, 4))
BORDER_MODES = ("clamp", "wrap", "mirror", "zero")


@dataclass_transform(eq_default=False)
@dataclass(eq=False)
class AstNode:
    """A node of the syntax tree; each subclass becomes a dataclass, compared by identity."""

    span: Span

    def __init_subclass__(cls) -> None:
        """Make the subclass a dataclass."""
        dataclass(eq=False)(cls)


# Types


class NamedType(AstNode):
    """`float`, `float3`, a class or an alias."""

    name: str


class KnownType(AstNode):
    """The type that a type parameter of a generic function stands for: `type` is a type of the checker."""

    type: Any


class FunctionalType(AstNode):
    """`float(int, int)`; with `is_array`, `float[,]`."""

    result: AstNode
    parameters: list[AstNode]
    is_array: bool


# Expressions


class Literal(AstNode):
    """A number, `true`, `false` or a string; a `float_literal` has no suffix and may become float or double."""

    value: Any
    kind: str  # bool int uint long float double float_literal string


class Name(AstNode):
    """A variable, function or bound variable."""

    name: str


class Blank(AstNode):
    """A missing argument: `a(, k)`."""


class Unary(AstNode):
    """`-x`, `+ f`, `* (body, l : 0..n)`."""

    operator: str
    operand: AstNode
    restrictions: list[Restriction] = field(default_factory=list)


class Binary(AstNode):
    """`a + b`."""

    operator: str
    left: AstNode
    right: AstNode


class Conditional(AstNode):
    """`condition ? if_true : if_false`."""

    condition: AstNode
    if_true: AstNode
    if_false: AstNode


class Call(AstNode):
    """`f(x)`, `a[i, j]`, `sum(a(i), i : 0..n)`."""

    callee: AstNode
    arguments: list[AstNode]
    restrictions: list[Restriction] = field(default_factory=list)


class MemberAccess(AstNode):
    """`v.x`, `f.clamp`."""

    subject: AstNode
    name: str
    name_span: Span


class Cast(AstNode):
    """`(int) x`."""

    type: AstNode
    operand: AstNode


class ConstructorCall(AstNode):
    """float3(x, y, z), int(x), Point(1, 2): the type's name used as a function."""

    type: AstNode
    arguments: list[AstNode]


class Slice(AstNode):
    """`low:high` or `low:high:step` in brackets, half open; what is left out is an end of the domain, and step 1."""

    low: AstNode | None
    high: AstNode | None
    step: AstNode | None


class RangeExpression(AstNode):
    """`low..high`, half open."""

    low: AstNode
    high: AstNode


class LetIn(AstNode):
    """`let x = value in body`."""

    name: str
    value: AstNode
    body: AstNode


class ArrayLiteral(AstNode):
    """`[1, 2, 3]`; rows are literals too."""

    elements: list[AstNode]


class Lambda(AstNode):
    """`x => body`."""

    parameters: list[BoundParameter]
    body: AstNode


# Statements


class BoundParameter(AstNode):
    """A bound variable of a parameter list: `var c(j, int k : 0..n) = ...`."""

    name: str
    type: AstNode | None
    domain: AstNode | None


class Restriction(AstNode):
    """`l : 0..n`, `int l`, `(i, j) : f`; type and domain may be missing."""

    names: list[tuple[str, Span]]
    type: AstNode | None
    domain: AstNode | None


class VariableDeclaration(AstNode):
    """`var x = e`, `let x(i) = e`, `float[] x = e`; kind: "var", "let" or "type". A constant outside of functions."""

    kind: str
    type: AstNode | None
    name: str
    name_span: Span
    parameters: list[BoundParameter] | None
    value: AstNode | None
    is_mutable: bool = False  # whether parts of it may be assigned


class Assignment(AstNode):
    """`x = e`, or `x += e` with the operator `+`.

    For a part such as `x.y` or `x[2]`, `value` is the whole with another value of this part.
    """

    name: str
    name_span: Span
    operator: str
    value: AstNode
    part: AstNode | None = None  # the left side, if it is a part


class WithField(AstNode):
    """The subject with another value of a field: the meaning of `subject.name = value`."""

    subject: AstNode
    name: str
    value: AstNode


class WithElements(AstNode):
    """The subject, a function, with other values at indices: the meaning of `subject[indices] = value`."""

    subject: AstNode
    indices: list[AstNode]
    value: AstNode


class If(AstNode):
    """`if (condition) ... else ...`."""

    condition: AstNode
    if_true: list[AstNode]
    if_false: list[AstNode]


class Loop(AstNode):
    """for, while and do: start; while (condition) { body; step }; `do` runs the body once before the first test."""

    start: list[AstNode]
    condition: AstNode | None
    step: list[AstNode]
    body: list[AstNode]
    test_first: bool


class Jump(AstNode):
    """`break` or `continue`."""

    kind: str


class Return(AstNode):
    """`return value;`."""

    value: AstNode | None


class Block(AstNode):
    """`{ ... }` as a statement."""

    body: list[AstNode]


# Declarations


class Parameter(AstNode):
    """A parameter of a function."""

    type: AstNode
    name: str
    default: AstNode | None


class FunctionDeclaration(AstNode):
    """A function; `f(x) => e` has a body of one return. The span ends before the body.

    A generic one, `T f<T>(T x)`, has names of types.
    """

    name: str
    name_span: Span
    result: AstNode
    parameters: list[Parameter]
    body: list[AstNode]
    attributes: dict[str, Span]
    type_parameters: list[str] = field(default_factory=list)


class ClassDeclaration(AstNode):
    """A record type: name, type and span of each field; its methods, and the operators defined in it.

    A class with a `base`, a functional type, is a function of the parameters of `evaluation`; its fields are given when
    it is made.
    """

    name: str
    name_span: Span
    fields: list[tuple[str, AstNode, Span]]
    methods: list[FunctionDeclaration] = field(default_factory=list)
    base: AstNode | None = None
    evaluation: Lambda | None = None


class TypeAlias(AstNode):
    """`type name = type;`."""

    name: str
    type: AstNode


def children(tree: AstNode) -> Iterator[AstNode]:
    """The child nodes in source order."""
    for entry in fields(tree):
        value = getattr(tree, entry.name)
        if isinstance(value, AstNode):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, AstNode))


def replaced(tree: AstNode, change: Callable[[AstNode], AstNode | None]) -> AstNode:
    """A copy of the tree; where `change` gives a node, that stands in place of a node and all below it."""
    new: dict[int, AstNode] = {}
    for node in reversed(list(walk(tree))):
        other = change(node)
        if other is None:
            values: dict[str, Any] = {}
            for entry in fields(node):
                value = getattr(node, entry.name)
                if isinstance(value, AstNode):
                    values[entry.name] = new[id(value)]
                elif isinstance(value, list):
                    values[entry.name] = [new[id(v)] if isinstance(v, AstNode) else v for v in value]
            other = replace(node, **values)
        new[id(node)] = other
    return new[id(tree)]


def walk(tree: AstNode) -> Iterator[AstNode]:
    """The node and all below it, in source order, without recursion."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(children(node))))
