"""The values of expressions while a program is checked.

lowering/ makes a value of each expression, and reads types, nodes and domains of the values of its parts; checker/
makes the values of declarations, runtime/ and targets/ the values of given arrays. A scalar parameter of a function
has one component, a float3 has three; each component is a dimension of the function's domain.
"""

from renderer.cdollar.ir.dag import INFINITE, UNKNOWN, Borders, Box, Node, Nodes, Range, topological_order
from renderer.cdollar.ir.types import Data, DomainType, FunctionType, Tuple, component_types, fields
from renderer.records import dataclass

# A read of a function that `extends`, at an index outside of its domain, is lowered as a copy of the function's body if
# the body has at most this many nodes; a read of a larger body takes the function's values over its domain.
MAX_REPEATED_NODES = 300
# The value of a node with one of these operations is computed before the body around it, unless it has free variables.
EVALUATED_ONCE = ("reduce", "let", "primitive", "function")


@dataclass(frozen=True)
class DataValue:
    """A scalar, vector or record: one node a component."""

    type: Data
    nodes: Nodes

    @property
    def node(self) -> Node:
        """The first component."""
        return self.nodes[0]

    @property
    def fields(self) -> "tuple[DataValue, ...]":
        """The fields of a record or vector; () of other types."""
        spans = [(type_, first, first + len(component_types(type_))) for _, type_, first in fields(self.type)]
        return tuple(DataValue(type_, self.nodes[first:end]) for type_, first, end in spans)

    @property
    def is_literal(self) -> bool:
        """True if all components are constants of the program's text."""
        return all(node.is_constant for node in self.nodes)

    @property
    def is_closed(self) -> bool:
        """True if the value depends on no bound variable."""
        return not any(node.free_variables for node in self.nodes)

    def variable_names(self) -> str:
        """The names of the bound variables that the first component depends on, for messages."""
        return ", ".join(sorted(v.name for v in self.node.free_variables))


@dataclass(frozen=True)
class FunctionValue:
    """A function: its node, a dimension for each parameter's component, and its border modes, if any.

    `fixed_domain` is the domain if inference cannot change it, as for an array. None: the ranges of the node's
    variables are the domain, and inference may still change them.
    """

    type: FunctionType
    node: Node
    fixed_domain: Box | None = None
    borders: Borders | None = None

    @property
    def domain(self) -> Box:
        """A dimension for each parameter's component, without regard to border modes."""
        return tuple(v.range for v in self.node.attribute) if self.fixed_domain is None else self.fixed_domain

    @property
    def extends(self) -> tuple[bool, ...]:
        """For each component of the parameters: True if it may have any value, since the body reads by border modes.

        Example: b(i) = a(i - 1) has a value at any i if a has a border mode. Only a small body without reductions over
        its variables is computed at any index; others are evaluated over the domain.
        """
        extends = tuple(isinstance(r, Range) and r.extends for r in self.domain)
        if not any(extends) or self.fixed_domain is not None:
            return (False,) * len(extends)

        def repeated_inputs(node: Node) -> Nodes:
            """The inputs that are computed again at each index: none of a value that is computed once."""
            is_once = node.op in EVALUATED_ONCE and not node.free_variables and node is not self.node
            return () if is_once else node.inputs

        nodes = topological_order([self.node], repeated_inputs)
        reduces = any(n.op in EVALUATED_ONCE and n.op != "function" and n.free_variables for n in nodes)
        is_small = len(nodes) <= MAX_REPEATED_NODES and not reduces
        return tuple(is_small and e for e in extends)

    @property
    def domain_with_borders(self) -> Box:
        """The domain, infinite in the dimensions that have a border mode."""
        borders = self.borders or (None,) * len(self.domain)
        return tuple(INFINITE if b else r for b, r in zip(borders, self.domain, strict=True))


@dataclass(frozen=True)
class OverloadSet:
    """A name that several functions share, before overload resolution chooses one."""

    name: str


@dataclass(frozen=True)
class DomainValue:
    """A range or the domain of a function: one box, `ranges`; a union has `further_boxes`, all of them disjoint."""

    ranges: Box
    further_boxes: tuple[Box, ...] = ()

    @property
    def boxes(self) -> tuple[Box, ...]:
        """All boxes."""
        return (self.ranges, *self.further_boxes)

    @property
    def type(self) -> DomainType:
        """`domain`, with its rank."""
        return DomainType(len(self.ranges))


@dataclass(frozen=True)
class TupleValue:
    """A value for each field of a tuple, or of a class with fields that are functions."""

    type: Tuple
    fields: "tuple[Value, ...]"

    @property
    def items(self) -> "dict[str, Value]":
        """The values by the names of the fields."""
        return {name: value for (name, _), value in zip(self.type.fields, self.fields, strict=True)}


@dataclass(frozen=True)
class Omitted:
    """An omitted argument: its dimension stays free."""


@dataclass(frozen=True)
class SliceArgument(Omitted):
    """A slice such as `a[2:8:3]`: its dimension stays free, over the indices 0 to `size` - 1.

    Index k of the result reads index low + k * step of the sliced dimension.
    """

    low: int | None  # `low` and `size` are None while an end or the dimension is not inferred yet
    step: int
    size: int | None


Value = DataValue | FunctionValue | OverloadSet | DomainValue | TupleValue
Operand = DataValue | FunctionValue  # a value after overload resolution
Argument = Value | Omitted


def describe(value: Value) -> str:
    """The type of a value, with the domain of a function or the range of a bound variable."""
    if isinstance(value, DataValue) and value.node.op == "variable" and isinstance(value.node.attribute.range, Range):
        return f"{value.type}  in {value.node.attribute.range}"
    domain = value.domain_with_borders if isinstance(value, FunctionValue) else ()
    shown = " x ".join("?" if range_ is UNKNOWN else str(range_) for range_ in domain)
    return str(getattr(value, "type", "")) + (f"  domain {shown}" if shown else "")  # an OverloadSet has no type
