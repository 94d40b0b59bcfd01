"""Device functions: functions of a program with loops and branches, which kernels call at every point.

Expressions are DAG nodes over locals (nodes of op "local"); statements are the classes below, structured as in MLIR's
scf dialect. lowering/statements.py and gradients/ make device functions; targets/device_functions.py emits them as C or
GLSL, and targets/numpy/simt.py interprets them.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from renderer.cdollar.frontend.diagnostics import Span
from renderer.cdollar.ir.dag import Node, Nodes, UserCall, too_large, topological_order, unique_ids
from renderer.cdollar.ir.types import Data

# Operations of a function, counted again for each call: the interpreter takes half a second for as many.
MAX_OPERATIONS = 50_000


@dataclass(frozen=True)
class Local:
    """One scalar component of a local variable or parameter; `type` is the name of its scalar type."""

    name: str
    type: str
    unique_id: int = field(default_factory=lambda: next(unique_ids))


class StoreOp(NamedTuple):
    """Assigns all `locals` at once: every node is computed before the first local changes."""

    locals: tuple[Local, ...]
    nodes: Nodes


class BranchOp(NamedTuple):
    """if (condition) if_true; else if_false."""

    condition: Node
    if_true: "tuple[Statement, ...]"
    if_false: "tuple[Statement, ...]"


class LoopOp(NamedTuple):
    """while (condition) { body; step; }. The first test comes after the body unless `test_first`."""

    condition: Node | None
    step: "tuple[Statement, ...]"
    body: "tuple[Statement, ...]"
    test_first: bool


class JumpOp(NamedTuple):
    """`kind` is "break" or "continue"."""

    kind: str


class ReturnOp(NamedTuple):
    """Leaves the function with the components of its result."""

    nodes: Nodes


Statement = StoreOp | BranchOp | LoopOp | JumpOp | ReturnOp


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

    def __post_init__(self) -> None:
        """Count the nodes of each statement."""
        stack, roots, self.has_loops = list(self.body), list[Nodes](), False
        while stack:
            statement = stack.pop()
            if isinstance(statement, (BranchOp, LoopOp)):
                self.has_loops |= isinstance(statement, LoopOp)
                stack += [s for block in statement[1:3] for s in block]  # the branches, or the step and the body
                roots += [(statement.condition,)] if statement.condition is not None else []
            elif not isinstance(statement, JumpOp):
                roots.append(statement.nodes)
        nodes = [node for statement_roots in roots for node in topological_order(statement_roots)]
        called = [node.attribute.function for node in nodes if isinstance(node.attribute, UserCall)]
        self.node_count = len(nodes)
        self.operations = self.node_count + sum(function.operations for function in called)
        self.has_loops |= any(function.has_loops for function in called)
        if self.operations > MAX_OPERATIONS:
            raise too_large(self.span)
