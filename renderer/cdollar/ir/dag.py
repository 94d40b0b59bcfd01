"""The DAG of functional operations (paper 1): leaves scalar, function, bound; inner nodes apply, reduce, let.

Equal nodes are one node.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from weakref import WeakKeyDictionary, WeakValueDictionary

from renderer.cdollar.ir.types import Functional, components

MOST_NODES = 200_000


@dataclass(frozen=True)
class Range:
    """Indices low..high (half open); `shrunk` if inference made it smaller than what was declared."""

    low: int
    high: int
    shrunk: bool = False
    why: str = field(default="", compare=False)

    @property
    def size(self) -> int:
        return max(0, self.high - self.low)

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


class Mark:
    """A named state of a range that is no range."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


INFINITE = Mark("infinite")
UNKNOWN = Mark("unknown")  # while a function is checked apart from its callers
UNSOLVED = Mark("not inferred yet")

serial = count()


class Bound:
    """A bound variable: a type, no value, and a range once the domains are inferred."""

    def __init__(self, name: str, type_: str, range_=UNSOLVED, reduced: bool = False):
        self.name, self.type, self.range, self.reduced = name, type_, range_, reduced
        self.soft: Range | None = None
        self.serial = next(serial)

    def __repr__(self) -> str:
        return f"{self.name}#{self.serial}"


@dataclass(frozen=True)
class Literal:
    """A number written in the program; `flexible` if its suffix leaves float or double open."""

    key: str
    number: object = field(compare=False)
    flexible: bool = False


@dataclass(frozen=True)
class Argument:
    """A number known on the host when a kernel starts: never part of a kernel's text."""

    serial: int
    name: str = field(compare=False)
    number: object = field(compare=False)  # None while a function is checked apart from its callers


@dataclass(frozen=True)
class Source:
    """A function that is an array: `data` is read part by part when it is reached (inputs.StoredArray)."""

    serial: int
    name: str = field(compare=False)
    data: object = field(compare=False)
    ranges: tuple = field(compare=False)
    width: int = field(compare=False, default=1)  # components of an element


@dataclass(frozen=True)
class Access:
    """Application of a function to indices, each with a border mode or None."""

    borders: tuple[str | None, ...]


@dataclass(frozen=True)
class Component:
    index: int


@dataclass(frozen=True)
class UserCall:
    """Application of a scalar function that has statements (statements.ScalarFunction)."""

    function: object


@dataclass(frozen=True)
class Reduction:
    """What reduces: a name of REDUCERS, or a user's function; `ordered` if the order may not change."""

    name: str
    function: object = None
    ordered: bool = False


class Node:
    """op: scalar function bound apply reduce let local; type: a scalar's name, a tuple of them, or Functional."""

    __slots__ = ("op", "type", "inputs", "value", "free", "serial", "__weakref__")

    def __init__(self, op, type_, inputs, value, free):
        self.op, self.type, self.inputs, self.value, self.free = op, type_, inputs, value, free
        self.serial = next(serial)

    def __repr__(self) -> str:
        return f"<{self.op} {self.type} {self.value!r}>"


class TooLarge(Exception):
    """The program builds more nodes than the compiler takes."""


class Dag:
    """Makes nodes; structurally equal nodes are the same object, so that sharing costs nothing later."""

    def __init__(self):
        self.table: WeakValueDictionary = WeakValueDictionary()
        self.places: WeakKeyDictionary = WeakKeyDictionary()  # node -> Span, for errors that are found while it runs

    def make(self, op: str, type_, inputs: tuple[Node, ...] = (), value=None) -> Node:
        key = (op, type_, tuple(map(id, inputs)), value)
        found = self.table.get(key)
        if found is None:
            if len(self.table) >= MOST_NODES:
                raise TooLarge
            found = self.table[key] = Node(op, type_, inputs, value, self.free(op, inputs, value))
        return found

    def free(self, op: str, inputs: tuple[Node, ...], value) -> frozenset[Bound]:
        """The bound variables a node depends on."""
        if op == "bound":
            return frozenset((value,))
        if not inputs:
            return frozenset()
        found = inputs[0].free if len(inputs) == 1 else frozenset().union(*(node.free for node in inputs))
        if op == "function":
            return found - frozenset(value)
        if op == "reduce":
            return found - frozenset(value[1])
        return found

    def literal(self, number, type_: str, flexible: bool = False) -> Node:
        key = struct.pack("<d", number).hex() if isinstance(number, float) else repr(number)
        return self.make("scalar", type_, (), Literal(key, number, flexible))

    def argument(self, number, type_: str, name: str) -> Node:
        return self.make("scalar", type_, (), Argument(next(serial), name, number))

    def bound(self, variable: Bound) -> Node:
        return self.make("bound", variable.type, (), variable)

    def apply(self, operation, type_, *inputs: Node) -> Node:
        return self.make("apply", type_, inputs, operation)

    def component(self, node: Node, index: int) -> Node:
        """Component of a node that yields several; of a node that yields one, itself."""
        if not isinstance(node.type, tuple):
            return node
        return self.make("apply", node.type[index], (node,), Component(index))

    def access(self, function: Node, indices: tuple[Node, ...], borders: tuple[str | None, ...]) -> Node:
        return self.make("apply", row_type(function), (function, *indices), Access(borders))

    def function(self, variables: tuple[Bound, ...], body: tuple[Node, ...], type_: Functional) -> Node:
        return self.make("function", type_, body, variables)


def row_type(function: Node):
    """What applying a functional node yields: a scalar's name, or a tuple of several."""
    return one_or_tuple(components(function.type.result))


def one_or_tuple(parts: tuple[str, ...]):
    return parts[0] if len(parts) == 1 else parts


def topological(roots: Iterable[Node]) -> list[Node]:
    """All nodes under the roots, inputs first; without recursion."""
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
            stack.extend((child, False) for child in reversed(node.inputs) if id(child) not in seen)
    return order


def rewrite(dag: Dag, roots: Iterable[Node], change) -> dict[Node, Node]:
    """Old node -> new node, where `change(node, inputs)` gives the new node of one whose inputs are already new."""
    new: dict[Node, Node] = {}
    for node in topological(roots):
        inputs = tuple(new[child] for child in node.inputs)
        new[node] = change(node, inputs)
    return new


def rebuilt(dag: Dag, node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same node over other inputs."""
    if all(a is b for a, b in zip(node.inputs, inputs, strict=True)):
        return node
    return placed(dag, node, dag.make(node.op, node.type, inputs, node.value))


def placed(dag: Dag, node: Node, new: Node) -> Node:
    """The new node, known to stand where the old one stood."""
    if node in dag.places:
        dag.places.setdefault(new, dag.places[node])
    return new


def substitute(dag: Dag, roots: tuple[Node, ...], replacement: dict[Bound, Node]) -> tuple[Node, ...]:
    """The roots with bound variables replaced; parts that do not mention them stay the same nodes."""
    targets = frozenset(replacement)
    new: dict[int, Node] = {}
    for node in topological(roots):
        if not (node.free & targets):
            new[id(node)] = node
        elif node.op == "bound":
            new[id(node)] = replacement[node.value]
        else:
            inputs = tuple(new.get(id(child), child) for child in node.inputs)
            new[id(node)] = rebuilt(dag, node, inputs)
    return tuple(new[id(root)] for root in roots)
