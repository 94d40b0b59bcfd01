"""The interface of targets, which evaluate the nodes of a program's DAG.

renderer/cdollar/targets has the targets: NumPy, and devices by CUDA, OpenCL and GLSL. A node goes in as the checker has
built it; numbers and NumPy arrays come out, or arrays that stay on the device (materialize_all). The C$ paper (Adinetz
2007) calls them target executors.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from renderer.cdollar.checker.values import FunctionValue
from renderer.cdollar.ir.dag import Dag, Node
from renderer.records import dataclass


@dataclass
class KernelCounters:
    """Launches, and the cache of compiled kernels: hits, compilations and their time."""

    launches: int = 0
    compiled: int = 0
    cache_hits: int = 0
    compile_seconds: float = 0.0


class Target(ABC):
    """Evaluates nodes of one program.

    `trace`, if it is a list, collects for --explain and --tune: ("passes", root node, remarks) for each DAG that is
    run, ("kernel", node, KernelPlan) for each kernel and ("primitive", node, launches) for each primitive.
    `launch_seconds`, if it is a list, gets the seconds of each launch of a kernel, for runtime/costs.py.
    """

    name: str
    device_name = "NumPy"
    dag: Dag  # the program's

    def __init__(self) -> None:
        """Start without trace and with all counters 0."""
        self.counters = KernelCounters()
        self.trace: list[tuple[str, Node, Any]] | None = None
        self.launch_seconds: list[float] | None = None

    @abstractmethod
    def evaluate_scalars(self, nodes: list[Node]) -> list[float]:
        """The numbers of nodes without free variables."""

    @abstractmethod
    def materialize_all(self, functions: Sequence[FunctionValue]) -> list[FunctionValue]:
        """Functions evaluated over their domains, as arrays; what several of them need is computed once."""

    def evaluate(self, node: Node) -> list[np.ndarray]:
        """The components of a functional node over its domain, one array each."""
        return self.evaluate_all([node])[0]

    @abstractmethod
    def evaluate_all(self, nodes: Sequence[Node]) -> list[list[np.ndarray]]:
        """The components of each functional node; what several nodes need is computed once."""
