"""Poison: values read outside of a domain, an error only if the program uses them (LLVM's poison values)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import Node

HINT = "a border mode defines it: `f.clamp(...)`, wrap, mirror or zero"


@dataclass(frozen=True)
class Poison:
    """Where values are poisoned (a bool array), the access that read out of bounds, and its index."""

    where: np.ndarray
    node: Node
    index: str

    def masked(self, mask: np.ndarray) -> Poison:
        """The poison at points of the mask only."""
        return Poison(self.where & mask, self.node, self.index)


def merge_poison(poisons: Iterable[Poison | None]) -> Poison | None:
    """The union of poisons; the first one names the access."""
    present = [p for p in poisons if p is not None]
    if len(present) < 2:
        return present[0] if present else None
    where = present[0].where
    for other in present[1:]:
        where = where | other.where
    return Poison(where, present[0].node, present[0].index)


def propagate_poison(operation: str, operands: list) -> Poison | None:
    """Poison of an operation's result: the union of its operands' poison.

    The branch that `select`, `&&` or `||` does not take is left out.
    """
    poisons = [poison for _, poison in operands]
    if not any(poisons):
        return None
    condition = operands[0][0]
    if operation == "select":
        if_true, if_false = poisons[1], poisons[2]
        return merge_poison(
            [poisons[0], if_true and if_true.masked(condition), if_false and if_false.masked(~condition)]
        )
    if operation in ("&&", "||") and poisons[1]:
        return merge_poison([poisons[0], poisons[1].masked(condition if operation == "&&" else ~condition)])
    return merge_poison(poisons)


def raise_if_poisoned(poison: Poison | None, spans: WeakKeyDictionary[Node, Span]) -> None:
    """Raise the program's error if any value of a result is poisoned."""
    if poison is not None and np.any(poison.where):
        message = f"an index is outside of the domain: {poison.index}"
        raise ProgramError("CS0317", spans[poison.node], message, HINT)
