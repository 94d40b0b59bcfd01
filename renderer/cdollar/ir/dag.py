"""The intermediate representation of C$: a DAG of functional operations (Adinetz, 2007).

lowering/ and gradients/ build the DAG of a program, ir/passes.py rewrites it, and the targets evaluate it. A function
of C$ such as `f(i, j) = a(i) * b(j)` is a node of op "function": it binds the variables i and j in its bodies, one node
per component of the result, and evaluates to an array over the variables' ranges. Leaves are numbers (op "scalar"),
bound variables ("variable") and arrays ("function" without bodies). "apply" applies an operation or a function,
"reduce" combines the values of its body over variables, "let" marks a value that passes must not inline. Nodes are
interned (hash consing): structurally equal nodes are one object, so that common subexpressions are found when made.
"""

import enum
import struct
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from renderer.cdollar.frontend.diagnostics import ProgramError, ProgramWarning, SourceFile, Span
from renderer.cdollar.ir.types import FunctionType, Number, Scalar, component_types, data_type
from renderer.records import dataclass, field

# Budgets of a compilation, of about a second each, beyond which a program is an error (CS0603).
MAX_NODES = 60_000
MAX_EXPANSIONS = 2_000  # bodies of functions, branches and boxes that a function lowers outside of loops
# A scalar type; the scalar types of several components; a function; None in a passes.TupleNode.
NodeType = str | tuple[str, ...] | FunctionType | None
unique_ids = count()


@dataclass(frozen=True)
class Range:
    """Indices low..high (half open); `narrowed` if inference made it smaller than the declared domain.

    `extends`: border modes give the function values at all other indices, too.
    """

    low: int
    high: int
    narrowed: bool = False
    provenance: str = field(default="", compare=False)  # where it was inferred from: "a(i) at 3:14"
    extends: bool = field(default=False, compare=False)

    @property
    def size(self) -> int:
        """The number of indices."""
        return max(0, self.high - self.low)

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


class RangeState(enum.StrEnum):
    """The state of a dimension that has no finite range, or not yet."""

    INFINITE = "infinite"
    UNKNOWN = "unknown"  # while a function is checked with abstract arguments
    NOT_INFERRED = "not inferred yet"


INFINITE, UNKNOWN, NOT_INFERRED = RangeState
Dimension = Range | RangeState


class BoundVariable:
    """A variable that a function or a reduction binds: a scalar type, and a range once the domains are inferred.

    `reduced`: a reduction binds it.
    """

    def __init__(self, name: str, type_: str, range_: Dimension = NOT_INFERRED, reduced: bool = False):
        self.name, self.type, self.reduced = name, type_, reduced
        self.range: Any = range_  # a Dimension; the passes and targets see finite ranges only
        self.unique_id = next(unique_ids)

    def __repr__(self) -> str:
        return f"{self.name}#{self.unique_id}"


Variables = tuple[BoundVariable, ...]
VariableSet = frozenset[BoundVariable]
Ranges = tuple[Range, ...]
Box = tuple[Dimension, ...]
Borders = tuple[str | None, ...]  # the border mode of each index, or None
Indices = tuple[int | slice | np.ndarray, ...]  # NumPy's indices of an array, one for each dimension


@dataclass(frozen=True)
class Constant:
    """A number of the program's text; `untyped` if it has no suffix that says float or double.

    `key` identifies the number by its bits, since 0.0 and -0.0 are equal numbers.
    """

    key: str
    number: Number = field(compare=False)
    untyped: bool = False


@dataclass(frozen=True)
class RuntimeScalar:
    """A number that the host passes as a kernel argument, so that no kernel's text contains it."""

    unique_id: int
    name: str = field(compare=False)
    number: Any = field(compare=False)  # None while the number is an unknown argument


class ArrayData(Protocol):
    """The elements of an array: in memory, in a file, or on a device."""

    def read(self, box: Indices) -> list[np.ndarray]:
        """The components at NumPy indices, one array each."""


@dataclass(frozen=True)
class ArraySource:
    """The array of a "function" node without bodies; `data` is None while the array is an unknown argument."""

    unique_id: int
    name: str = field(compare=False)
    data: Any = field(compare=False)  # an ArrayData
    ranges: tuple[Any, ...] = field(compare=False)  # Dimensions; targets see finite ranges only
    width: int = field(compare=False, default=1)  # components of an element


@dataclass(frozen=True)
class Access:
    """Application of a function to indices; `borders` holds the border mode of each index, or None."""

    borders: Borders


@dataclass(frozen=True)
class Component:
    """One component of a node that yields several."""

    index: int


@dataclass(frozen=True)
class RangeCheck:
    """The attribute of a bool that is always true, with two inputs, low and high: the ends of a range that arrays hold.

    It is an error at run time if low < high and the range low..high leaves the inferred range of the variable.
    """

    variable: BoundVariable

    @property
    def range(self) -> Range | None:
        """The range that is allowed; None if it is not finite."""
        return self.variable.range if isinstance(self.variable.range, Range) else None


@dataclass(frozen=True)
class UserCall:
    """Application of a device function: an ir.device_function.DeviceFunction."""

    function: Any


Operation = str | Component | Access | RangeCheck | UserCall


class Reduction(NamedTuple):
    """The combiner of elements: an operator of operations.REDUCER_NAMES, or `function`; `ordered` keeps their order."""

    name: str
    function: Any = None  # a device_function.DeviceFunction
    ordered: bool = False

    @property
    def is_arg_extremum(self) -> bool:
        """True if the result is the indices of an extremum."""
        return self.name in ("argmin", "argmax")

    @property
    def is_fold(self) -> bool:
        """True if a function combines the elements one after another, from a start value."""
        return self.name == "fold"

    @property
    def is_operator(self) -> bool:
        """True if an operator of the language, which has a neutral element, combines numbers."""
        return self.function is None and not self.is_arg_extremum


class Node:
    """One operation: `op` is scalar, function, variable, apply, reduce, let, primitive, local or element.

    `type` is the name of a scalar type, a tuple of them, or a FunctionType. `attribute` is what the operation holds
    beside its inputs: Constant or RuntimeScalar (scalar), ArraySource or the parameters (function), BoundVariable
    (variable), an operation's name, Access, Component, RangeCheck or UserCall (apply), (Reduction, variables) (reduce),
    primitives.Primitive (primitive), device_function.Local (local), device_function.LocalArray (element).
    """

    __slots__ = ("op", "type", "inputs", "attribute", "free_variables", "needs_evaluation", "unique_id", "__weakref__")

    type: Any  # a NodeType; users of an operation know which
    attribute: Any

    def __init__(self, op: str, type_: NodeType, inputs: "Nodes", attribute: object, free_variables: VariableSet):
        self.op, self.type, self.inputs, self.attribute = op, type_, inputs, attribute
        self.free_variables = free_variables
        # True if the node depends on a reduction or an array: the host does not evaluate such a node.
        self.needs_evaluation: bool = op in ("reduce", "function", "let") or any(n.needs_evaluation for n in inputs)
        self.unique_id = next(unique_ids)

    def __repr__(self) -> str:
        return f"<{self.op} {self.type} {self.attribute!r}>"

    @property
    def is_constant(self) -> bool:
        """True for a number of the program's text."""
        return self.op == "scalar" and isinstance(self.attribute, Constant)


Nodes = tuple[Node, ...]
InputsOf = Callable[[Node], Iterable[Node]]  # the inputs through which a traversal goes on


def without_lets(node: Node) -> Node:
    """The node inside any number of lets."""
    while node.op == "let":
        node = node.inputs[0]
    return node


def without_plain_lets(node: Node) -> Node:
    """The node inside lets; a let with an attribute stays: it marks a leaf of a gradient (gradients/reverse.py)."""
    while node.op == "let" and node.attribute is None:
        node = node.inputs[0]
    return node


def domain_ranges(function: Node) -> tuple[Any, ...]:
    """The Dimensions of the domain of a function, an array or a primitive."""
    attribute = without_lets(function).attribute
    return tuple(v.range for v in attribute) if isinstance(attribute, tuple) else attribute.ranges


def reads_in_place(access: Node, variables: Variables, ranges: Ranges) -> bool:
    """True if an access reads an array over `ranges` at the variables, which run over the same ranges."""
    indices = [index.attribute if index.op == "variable" else None for index in access.inputs[1:]]
    pairs = zip(variables, ranges, strict=False)  # of one length if the first test holds
    return indices == list(variables) and all((v.range.low, v.range.high) == (r.low, r.high) for v, r in pairs)


def scalar_types(node: Node) -> tuple[str, ...]:
    """The scalar types of the components of a node that is not a function."""
    return node.type if isinstance(node.type, tuple) else (node.type,)


def too_large(span: Span) -> ProgramError:
    """The error CS0603 of a program that exceeds a budget of the compiler at `span`."""
    message = "the program becomes larger here than the compiler takes: each call repeats the calls inside of it"
    hint = "compute once what is used twice, in a `var`, a `let` or an array, or write a loop"
    return ProgramError("CS0603", span, message, hint)


class Dag:
    """Makes nodes. `spans` holds the source spans of nodes that can fail at run time.

    `span` is the function or access that nodes are made for now, `expansions` how many bodies it has lowered: an error
    of a program that becomes too large is at this span. `intern_table` holds all nodes that something still refers to.
    """

    def __init__(self) -> None:
        self.intern_table: WeakValueDictionary[tuple[object, ...], Node] = WeakValueDictionary()
        self.spans: WeakKeyDictionary[Node, Span] = WeakKeyDictionary()
        self.span, self.expansions = Span(SourceFile("", ""), 0, 0), 0
        self.warnings: dict[tuple[str, Span], ProgramWarning] = {}
        self.notes: set[str] = set()  # printed notes

    def warn(self, code: str, span: Span, message: str, hint: str) -> None:
        """Add a warning, once for a code and span."""
        self.warnings.setdefault((code, span), ProgramWarning(code, span, message, hint))

    def count_expansion(self) -> None:
        """Raises CS0603 after MAX_EXPANSIONS bodies."""
        self.expansions += 1
        if self.expansions > MAX_EXPANSIONS:
            raise too_large(self.span)

    def intern(self, op: str, type_: NodeType, inputs: Nodes = (), attribute: object = None) -> Node:
        """Return the node with these properties, a new one only if there is none; raises CS0603 beyond MAX_NODES."""
        key = (op, type_, tuple(map(id, inputs)), attribute)
        node = self.intern_table.get(key)
        if node is None:
            if len(self.intern_table) >= MAX_NODES:
                raise too_large(self.span)
            node = self.intern_table[key] = Node(op, type_, inputs, attribute, free_variables(op, inputs, attribute))
        return node

    def constant(self, number: Number, type_: str, untyped: bool = False) -> Node:
        """A number of the program's text."""
        key = struct.pack("<d", number).hex() if isinstance(number, float) else repr(number)  # see Constant
        return self.intern("scalar", type_, (), Constant(key, number, untyped))

    def runtime_scalar(self, number: Number | None, type_: str, name: str) -> Node:
        """A number that the host passes to kernels; None while it is unknown."""
        return self.intern("scalar", type_, (), RuntimeScalar(next(unique_ids), name, number))

    def bound_variable(self, variable: BoundVariable) -> Node:
        """The value of a bound variable."""
        return self.intern("variable", variable.type, (), variable)

    def apply(self, operation: Operation, type_: NodeType, *inputs: Node) -> Node:
        """An operation on its inputs."""
        return self.intern("apply", type_, inputs, operation)

    def component(self, node: Node, index: int) -> Node:
        """A component of a node that yields several; the node itself if it yields one."""
        return self.apply(Component(index), node.type[index], node) if isinstance(node.type, tuple) else node

    def components(self, node: Node) -> Nodes:
        """All components of a node."""
        return tuple(self.component(node, k) for k in range(len(scalar_types(node))))

    def access(self, function: Node, indices: Nodes, borders: Borders = ()) -> Node:
        """The access of a function at indices, with the border mode of each index or None; () for no modes."""
        type_ = tuple_type(component_types(function.type.result))
        return self.apply(Access(borders or (None,) * len(indices)), type_, function, *indices)

    def function(self, variables: Variables, body: Nodes, type_: FunctionType) -> Node:
        """The function of the variables; `body` has a node for each component of the result."""
        return self.intern("function", type_, body, variables)

    def abstraction(self, variables: Variables, body: Nodes, is_array: bool = False) -> Node:
        """The function of the variables whose result has the nodes of `body` as its components.

        The targets use one without variables, so that one kernel computes several numbers.
        """
        types = tuple(Scalar(v.type) for v in variables)
        return self.function(variables, body, FunctionType(data_type(tuple(n.type for n in body)), types, is_array))

    def array(self, type_: FunctionType, name: str, data: ArrayData | None, ranges: Box) -> Node:
        """The array `data` as a function over `ranges`."""
        source = ArraySource(next(unique_ids), name, data, ranges, len(component_types(type_.result)))
        return self.intern("function", type_, (), source)


def free_variables(op: str, inputs: Nodes, attribute: Any) -> VariableSet:
    """The bound variables that a node depends on."""
    if op == "variable":
        return frozenset((attribute,))
    if not inputs:
        return frozenset()
    free = inputs[0].free_variables if len(inputs) == 1 else frozenset().union(*(n.free_variables for n in inputs))
    if op == "function":
        return free - frozenset(attribute)
    return free - frozenset(attribute[1]) if op == "reduce" else free


def tuple_type(types: tuple[str, ...]) -> str | tuple[str, ...]:
    """The type of a node with these components; a single component is no tuple."""
    return types[0] if len(types) == 1 else types


def topological_order(roots: Iterable[Node], inputs_of: InputsOf | None = None) -> list[Node]:
    """All nodes reachable from the roots through `inputs_of`, inputs first; iterative, as DAGs are deep."""
    inputs_of = inputs_of or reversed_inputs
    seen: set[int] = set()
    order: list[Node] = []
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in inputs_of(node))
    return order


def reversed_inputs(node: Node) -> Iterable[Node]:
    """The inputs of a node, the last one first."""
    return reversed(node.inputs)


def inputs_outside_functions(node: Node) -> Nodes:
    """The inputs of a node; none of functions, lets and primitives."""
    return () if node.op in ("function", "let", "primitive") else node.inputs


def rewrite(roots: Nodes, change: Callable[[Node, Nodes], Node], inputs_of: InputsOf = reversed_inputs) -> Nodes:
    """Return the roots after `change(node, inputs)` has replaced each node under them, inputs first.

    `inputs` are the replaced inputs of the node. `inputs_of` returns all inputs of a node, or none to leave them
    unchanged.
    """
    new: dict[Node, Node] = {}
    for node in topological_order(roots, inputs_of):
        are_visited = len(list(inputs_of(node))) > 0
        new[node] = change(node, tuple(new[child] for child in node.inputs) if are_visited else node.inputs)
    return tuple(new[root] for root in roots)


def with_inputs(dag: Dag, node: Node, inputs: Nodes, attribute: object = None) -> Node:
    """The node's operation on other inputs, with another attribute if one is given; the source span is kept."""
    if attribute is None and all(a is b for a, b in zip(node.inputs, inputs, strict=True)):
        return node
    new = dag.intern(node.op, node.type, inputs, attribute or node.attribute)
    if node in dag.spans:
        dag.spans.setdefault(new, dag.spans[node])
    return new


def new_variables(ranges: Iterable[Dimension], reduced: bool = False) -> Variables:
    """New int variables over ranges, by the names that messages and generated code show."""
    return tuple(BoundVariable("ijkmnp"[k % 6], "int", range_, reduced) for k, range_ in enumerate(ranges))


def in_order(variables: Iterable[BoundVariable]) -> Variables:
    """Variables in the order in which they were made."""
    return tuple(sorted(variables, key=lambda v: v.unique_id))


def substitute(dag: Dag, roots: Nodes, replacement: dict[BoundVariable, Node]) -> Nodes:
    """The roots with bound variables replaced; nodes that do not depend on them stay the same."""
    targets = frozenset(replacement)
    new: dict[Node, Node] = {}
    for node in topological_order(roots, lambda node: node.inputs[::-1] if node.free_variables & targets else ()):
        if not (node.free_variables & targets):
            new[node] = node
        elif node.op == "variable":
            new[node] = replacement[node.attribute]
        else:
            new[node] = with_inputs(dag, node, tuple(new[child] for child in node.inputs))
    return tuple(new[root] for root in roots)
