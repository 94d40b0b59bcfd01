"""The nodes of a C$ program's syntax tree, which the parser makes. Every node has its span, for error messages.

The example in the docstring of a class is C$ text that the node stands for. Types, parameters, expressions,
statements and declarations follow in this order; the functions at the end visit and rewrite trees.
"""

from collections.abc import Callable, Iterator
from typing import Any, dataclass_transform

from renderer.cdollar.frontend.diagnostics import Span
from renderer.records import dataclass, field, fields, replace

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
    """The type that replaces a type parameter in an instance of a generic function; `type` is an ir.types.Type."""

    type: object


class FunctionalType(AstNode):
    """`float(int, int)`; with `is_array`, `float[,]`."""

    result: AstNode
    parameters: list[AstNode]
    is_array: bool


class TupleType(AstNode):
    """`(float[,] lu, int[] pivots)`; a name may be missing, ""."""

    types: list[AstNode]
    names: list[str]


# Expressions


class Literal(AstNode):
    """A number, `true`, `false` or a string; a `float_literal` has no suffix and may become float or double."""

    value: bool | int | float | str
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
    restrictions: "list[Restriction]" = field(default_factory=list)


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
    restrictions: "list[Restriction]" = field(default_factory=list)


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
    """`low:high` or `low:high:step` in brackets, half open; a missing end is an end of the domain, a missing step 1."""

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
    name_span: Span
    value: AstNode
    body: AstNode


class ArrayLiteral(AstNode):
    """`[1, 2, 3]`; rows are literals too."""

    elements: list[AstNode]


class TupleExpression(AstNode):
    """`(a, b)`."""

    elements: list[AstNode]


class TupleElement(AstNode):
    """The value at a position of a tuple of `count` values: of `var (x, y) = f(a);`."""

    subject: AstNode
    position: int
    count: int


class Lambda(AstNode):
    """`x => body`."""

    parameters: "list[BoundParameter]"
    body: AstNode


# Statements


class BoundParameter(AstNode):
    """A bound variable of a parameter list: `var c(j, int k : 0..n) = ...`."""

    name: str
    name_span: Span
    type: AstNode | None
    domain: AstNode | None


class Restriction(AstNode):
    """`l : 0..n`, `int l`, `(i, j) : f`; type and domain may be missing."""

    names: list[tuple[str, Span]]
    type: AstNode | None
    domain: AstNode | None


class VariableDeclaration(AstNode):
    """`var x = e`, `let x(i) = e`, `float[] x = e`. Outside of functions, it declares a constant of the program.

    `kind` is "var", "let", or "type" for a declaration that begins with a type. `parameters` are the bound variables of
    a function such as `x(i)`; None for a plain variable.
    """

    kind: str
    type: AstNode | None
    name: str
    name_span: Span
    parameters: list[BoundParameter] | None
    value: AstNode | None
    is_mutable: bool = False  # True if fields and elements may be assigned
    sizes: list[AstNode] = field(default_factory=list)  # the sizes of a local array, `float t[2, 3];`


class Assignment(AstNode):
    """`x = e`, or `x += e` with the operator `+`.

    For an assignment to a field or element, `x.y = e` or `x[2] = e`, `value` is the new x: WithField or WithElements.
    """

    name: str
    name_span: Span
    operator: str
    value: AstNode
    target: AstNode | None = None  # the left side, if it is a field or an element


class WithField(AstNode):
    """The subject with a new value of one field: the value of `subject` after `subject.name = value`."""

    subject: AstNode
    name: str
    value: AstNode


class WithElements(AstNode):
    """The subject with new values at indices: the value of the function after `subject[indices] = value`."""

    subject: AstNode
    indices: list[AstNode]
    value: AstNode


class If(AstNode):
    """`if (condition) ... else ...`."""

    condition: AstNode
    if_true: list[AstNode]
    if_false: list[AstNode]


class Loop(AstNode):
    """`for`, `while` and `do`: start; while (condition) { body; step }; `do` tests after the body (not test_first)."""

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
    name_span: Span
    default: AstNode | None


class FunctionDeclaration(AstNode):
    """A function; `f(x) => e` has a body of one return. The span ends before the body, `full_span` behind it.

    `attributes` holds the spans of Associative and Commutative, by name.
    `type_parameters` holds the names `T` of a generic function `T f<T>(T x)`.
    """

    name: str
    name_span: Span
    result: AstNode
    parameters: list[Parameter]
    body: list[AstNode]
    attributes: dict[str, Span]
    full_span: Span
    type_parameters: list[str] = field(default_factory=list)


class ClassDeclaration(AstNode):
    """A record type: name, type and span of each field; its methods and operators.

    The values of a class with a `base`, a FunctionalType, are functions, as in
    `class Ramp : float(int) { float slope; float operator ()(int i) => slope * i; }`.
    A constructor call such as `Ramp(2)` gives the fields. `evaluation` holds the parameter `i` and the body
    `slope * i`, in which fields are variables.
    """

    name: str
    name_span: Span
    fields: list[tuple[str, AstNode, Span]]
    methods: list[FunctionDeclaration] = field(default_factory=list)
    base: AstNode | None = None
    evaluation: Lambda | None = None
    block_read: FunctionDeclaration | None = None  # a method of a class with a base: `float[] read(int low, int high)`
    is_mutable: bool = False  # the fields of its variables may be assigned


class TypeAlias(AstNode):
    """`type name = type;`."""

    name: str
    name_span: Span
    type: AstNode


def children(tree: AstNode) -> Iterator[AstNode]:
    """The child nodes in the order of the fields, which is the source's: fields that are nodes or lists with nodes.

    Nodes in tuples, such as the types in ClassDeclaration.fields, are not among them.
    """
    for entry in fields(tree):
        value = getattr(tree, entry.name)
        if isinstance(value, AstNode):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, AstNode))


def replaced(tree: FunctionDeclaration, change: Callable[[AstNode], AstNode | None]) -> FunctionDeclaration:
    """A copy of a function in which change(node), unless it is None, replaces the node and its descendants.

    Nodes are copied from the last to the first in source order, so that a node's children are copied before the node.
    """
    new: dict[int, Any] = {}  # the copy or replacement of each node, by the node's id()
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
    copy: FunctionDeclaration = new[id(tree)]
    return copy


def walk(tree: AstNode) -> Iterator[AstNode]:
    """The node and all below it, in source order, without recursion."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(children(node))))
