"""What a run of a program did on a device: launches, uploads and checks, so that a later run repeats them.

A repeated run replaces buffers and numbers in place: nothing is parsed, checked, planned or compiled again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from renderer.cdollar.ir.dag import Node, RuntimeScalar
from renderer.gpu import Buffer


@dataclass
class RecordedLaunch:
    """One launch; `scalars` are the numbers of the program among its arguments, by position."""

    kernel: Any
    threads: int
    arguments: list[Any]
    scalars: dict[int, RuntimeScalar]
    bound: Any = None  # the launch with these arguments
    is_stable: bool = False  # whether the last launch had these arguments too

    def set(self, position: int, argument: Any) -> None:
        """Replace an argument."""
        if self.arguments[position] is argument:
            return
        self.arguments[position] = argument
        if self.bound is not None and self.kernel.sets_single_arguments:
            self.bound.set(position, argument)
        else:
            self.bound, self.is_stable = None, False

    def __call__(self) -> None:
        """Launch; arguments that stay the same are converted once, and others alone where the device can."""
        if self.bound is not None:
            self.bound()
        elif self.is_stable or self.kernel.sets_single_arguments:
            self.bound = self.kernel.bind_launch(self.threads, *self.arguments)
            self.bound()
        else:
            self.is_stable = True
            self.kernel(self.threads, *self.arguments)


@dataclass
class Upload:
    """A region of an array parameter that was uploaded: `box` are NumPy indices, one buffer a component."""

    node: Node
    box: tuple[slice, ...]
    buffers: list[Buffer]


@dataclass
class Recording:
    """A run. `is_complete` is False if the host read results on the way: such a run cannot be repeated."""

    launches: list[RecordedLaunch] = field(default_factory=list)
    uploads: list[Upload] = field(default_factory=list)
    checks: list[Any] = field(default_factory=list)  # PendingChecks
    is_complete: bool = True
