"""Device functions: functions of a program with loops and branches, which kernels call at every point.

Expressions are DAG nodes over locals (nodes of op "local") and elements of local arrays ("element", whose input is the
index); statements are the classes below, structured as in MLIR's scf dialect. lowering/statements.py and gradients/
make device functions; targets/device_functions.py emits them as C or GLSL, and targets/numpy/simt.py interprets them.
"""

from math import prod
from typing import NamedTuple

from renderer.cdollar.frontend.diagnostics import Span
from renderer.cdollar.ir.dag import Node, Nodes, UserCall, too_large, topological_order, unique_ids
from renderer.cdollar.ir.types import Data
from renderer.records import dataclass, field

# Operations of a function, counted again for each call: the interpreter takes half a second for as many.
MAX_OPERATIONS = 50_000


@dataclass(frozen=True)
class Local:
    """One scalar component of a local variable or parameter; `type` is the name of its scalar type."""

    name: str
    type: str
    unique_id: int = field(default_factory=lambda: next(unique_ids))


@dataclass(frozen=True)
class LocalArray:
    """One scalar component of the elements of a local array, in row-major order.

    The declaration of a local array lowers to a ClearOp, so each LocalArray of a function is in one:
    DeviceFunction.arrays is collected from them.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    unique_id: int = field(default_factory=lambda: next(unique_ids))

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)


class ClearOp(NamedTuple):
    """Sets all elements of local arrays to 0."""

    arrays: tuple[LocalArray, ...]


class StoreOp(NamedTuple):
    """Assigns all locals and elements (nodes of op "element") of `targets`, after all nodes are computed."""

    targets: "tuple[Local | Node, ...]"
    nodes: Nodes

    @property
    def elements(self) -> Nodes:
        """The elements among the targets."""
        return tuple(target for target in self.targets if isinstance(target, Node))


class BranchOp(NamedTuple):
    """if (condition) if_true; else if_false."""

    condition: Node
    if_true: "tuple[Statement, ...]"
    if_false: "tuple[Statement, ...]"


class LoopOp(NamedTuple):
    """while (condition) { body; step; }. The first test comes after the body unless `test_first`."""

    condition: Node | None  # None: always true
    step: "tuple[Statement, ...]"
    body: "tuple[Statement, ...]"
    test_first: bool


class JumpOp(NamedTuple):
    """`kind` is "break" or "continue"."""

    kind: str


class ReturnOp(NamedTuple):
    """Leaves the function with the components of its result."""

    nodes: Nodes


Statement = StoreOp | ClearOp | BranchOp | LoopOp | JumpOp | ReturnOp


@dataclass(eq=False)
class DeviceFunction:
    """A function of scalars, vectors and records with statements; `locals` do not include the parameters.

    `node_count` is the number of nodes in its text, `operations` the number with the operations of all calls. Raises
    CS0603 beyond MAX_OPERATIONS. `has_loops` is True if it, or a function that it calls, has loops.
    """

    name: str
    parameters: tuple[Local, ...]
    result_type: Data
    span: Span
    body: tuple[Statement, ...]
    locals: list[Local]
    unique_id: int = field(default_factory=lambda: next(unique_ids))
    node_count: int = field(init=False)
    operations: int = field(init=False)
    has_loops: bool = field(init=False)
    has_checks: bool = field(init=False)  # bounds checks: it, or a function that it calls, has local arrays
    arrays: list[LocalArray] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Count the nodes of each statement."""
        stack, roots, self.has_loops = list(self.body), list[Nodes](), False
        while stack:
            statement = stack.pop()
            if isinstance(statement, (BranchOp, LoopOp)):
                self.has_loops |= isinstance(statement, LoopOp)
                stack += [s for block in statement[1:3] for s in block]  # the branches, or the step and the body
                roots += [(statement.condition,)] if statement.condition is not None else []
            elif isinstance(statement, ClearOp):
                self.arrays += statement.arrays
            elif isinstance(statement, StoreOp):
                roots.append(statement.nodes + statement.elements)
            elif isinstance(statement, ReturnOp):
                roots.append(statement.nodes)
        nodes = [node for statement_roots in roots for node in topological_order(statement_roots)]
        called = [node.attribute.function for node in nodes if isinstance(node.attribute, UserCall)]
        self.node_count = len(nodes)
        self.operations = self.node_count + sum(function.operations for function in called)
        self.has_loops |= any(function.has_loops for function in called)
        self.has_checks = bool(self.arrays) or any(function.has_checks for function in called)
        if self.operations > MAX_OPERATIONS:
            raise too_large(self.span)

    @property
    def can_fail(self) -> bool:
        """True if a call may be stopped: by the limit of a loop, or at an index outside of a local array."""
        return self.has_loops or self.has_checks
