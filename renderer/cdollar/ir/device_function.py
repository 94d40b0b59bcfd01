"""Device functions: functions of a program with loops and branches, which kernels call at every point.

Expressions are DAG nodes over locals (nodes of op "local"); statements are the classes below, structured as in MLIR's
scf dialect. lowering/statements.py and gradients/ make device functions; targets/device_functions.py emits them as C or
GLSL, and targets/numpy/simt.py interprets them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from renderer.cdollar.frontend.diagnostics import Span
from renderer.cdollar.ir.dag import Node, unique_ids
from renderer.cdollar.ir.types import Data


@dataclass(frozen=True)
class Local:
    """One scalar component of a local variable or parameter; `type` is the name of its scalar type."""

    name: str
    type: str
    unique_id: int = field(default_factory=lambda: next(unique_ids))


class StoreOp(NamedTuple):
    """Assigns all `locals` at once: every node is computed before the first local changes."""

    locals: tuple[Local, ...]
    nodes: tuple[Node, ...]


class BranchOp(NamedTuple):
    """if (condition) if_true; else if_false."""

    condition: Node
    if_true: tuple[Statement, ...]
    if_false: tuple[Statement, ...]


class LoopOp(NamedTuple):
    """while (condition) { body; step; }. The first test comes after the body unless `test_first`."""

    condition: Node | None
    step: tuple[Statement, ...]
    body: tuple[Statement, ...]
    test_first: bool


class JumpOp(NamedTuple):
    """`kind` is "break" or "continue"."""

    kind: str


class ReturnOp(NamedTuple):
    """Leaves the function with the components of its result."""

    nodes: tuple[Node, ...]


Statement = StoreOp | BranchOp | LoopOp | JumpOp | ReturnOp


@dataclass(eq=False)
class DeviceFunction:
    """A function of scalars, vectors and records with statements; `locals` do not include the parameters."""

    name: str
    parameters: tuple[Local, ...]
    result_type: Data
    span: Span
    body: tuple[Statement, ...]
    locals: list[Local]
    unique_id: int = field(default_factory=lambda: next(unique_ids))
