"""Targets that run a DAG as a sequence of kernels or passes: what compute devices and GLSL have in common.

Functions and closed reductions are computed in dependency order, after the array regions that they access are uploaded.
Representations (one buffer per component) are cached by DAG node.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.checker.target import Target
from renderer.cdollar.checker.values import FunctionValue
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import index_bounds
from renderer.cdollar.ir.device_function import DeviceFunction
from renderer.cdollar.ir.passes import PASSES, Pass, is_computed_function, run_passes
from renderer.cdollar.ir.types import DTYPES, FunctionType, Record, Scalar, component_types
from renderer.cdollar.targets.device_functions import (
    DRIVER_LIMIT_STATUS,
    LOOP_LIMIT_STATUS,
    MAX_DEVICE_ITERATIONS,
    has_loops,
)
from renderer.cdollar.targets.kernel_plan import KernelPlan, output_types
from renderer.cdollar.targets.memory import check_memory
from renderer.cdollar.targets.numpy_reductions import check_not_empty
from renderer.cdollar.targets.numpy_simt import LoopLimitExceeded
from renderer.cdollar.targets.numpy_target import NumpyTarget
from renderer.cdollar.targets.poison import HINT
from renderer.cdollar.targets.recording import Recording, Upload
from renderer.errors import UnavailableError

MAX_TIMED, MAX_TIMED_SECONDS = 5, 0.5  # launches that --explain times, and when it has enough
CHUNK_BYTES = 256 << 20  # of host arrays that a reduction reads at a time


@dataclass
class Representation:
    """Buffers of the components, with their scalar types, over a box of indices."""

    ranges: tuple[ir.Range, ...]
    buffers: list[Any]
    types: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each dimension."""
        return tuple(r.size for r in self.ranges)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass
class DeviceArray:
    """An evaluated function that stays on the device; read lazily."""

    target: GraphTarget
    representation: Representation
    host: list[np.ndarray] = field(default_factory=list)

    def read(self, box: tuple) -> list[np.ndarray]:
        """The components at NumPy indices."""
        if not self.host:
            self.host = self.target.read_back(self.representation)
        return [array[box] for array in self.host]


@dataclass(frozen=True)
class PendingCheck:
    """A status word, read after a run: a bounds check that failed, or a loop that was stopped."""

    read_status: Callable[[], int]
    plan: KernelPlan
    word: Any = None  # the buffer of the status, where launches are recorded


class GraphTarget(Target):
    """Runs DAGs; a subclass allocates buffers and runs kernels."""

    passes: Sequence[Pass] = PASSES
    max_memory_bytes: int | None = None  # of the device; None: that of the host
    strict = False
    may_repeat = True  # whether launches may be repeated to time them

    def __init__(self, dag: ir.Dag) -> None:
        """Evaluate nodes of a program."""
        super().__init__()
        self.dag = dag
        self.numpy = NumpyTarget(dag)  # for numbers that need no kernel
        self.representations: WeakKeyDictionary[ir.Node, Representation] = WeakKeyDictionary()
        self.required_regions: WeakKeyDictionary[ir.Node, tuple[ir.Range, ...]] = WeakKeyDictionary()
        self.captured_launches: list[Callable[[], Any]] | None = None
        self.checks: list[PendingCheck] = []  # of this run
        self.recording: Recording | None = None  # of the runs until it is taken away
        self.kernels: dict[Hashable, Any] = {}  # compiled kernels or passes

    # What a subclass implements

    @abstractmethod
    def upload(self, array: np.ndarray, type_: str) -> Any:
        """A buffer with one component of an array."""

    @abstractmethod
    def time_seconds(self, work: Callable[[], Any]) -> float:
        """The time that the launches of work() take."""

    @abstractmethod
    def run_kernel(self, node: ir.Node) -> Representation:
        """Compute a function or a closed reduction whose inputs are computed."""

    def run_primitive(self, node: ir.Node) -> Representation:
        """Compute a primitive whose inputs are computed."""
        name = node.attribute.name
        raise UnavailableError(f"--target {self.name}: has no `{name}`; opencl, cuda and numpy have it")

    # The interface of targets

    def evaluate_scalars(self, nodes: list[ir.Node]) -> list:
        """The numbers of nodes without free variables; those that need no reduction are computed on the host."""
        if not any(node.needs_evaluation for node in nodes):
            return self.numpy.evaluate_scalars(nodes)
        record = Record("numbers", tuple((f"n{k}", Scalar(node.type)) for k, node in enumerate(nodes)))
        function = self.dag.function((), tuple(nodes), FunctionType(record, ()))
        return [array.item() for array in self.evaluate(function)]

    def materialize(self, function: FunctionValue) -> FunctionValue:
        """A function evaluated over its domain, as an array that stays on the device."""
        node = function.node
        if isinstance(node.attribute, ir.ArraySource):
            return function
        representation, domain = self.run(node), tuple(function.domain)
        type_ = function.type.as_array_type
        array = self.dag.array(type_, "array", DeviceArray(self, representation), domain)
        self.representations[array] = representation
        return FunctionValue(type_, array, domain)

    def evaluate(self, node: ir.Node) -> list[np.ndarray]:
        """The components of a functional node over its domain, one array each."""
        return self.read_back(self.run(node))

    def capture(self, node: ir.Node) -> tuple[Representation, Callable[[], None]]:
        """Run a functional node; returns its representation and a function that launches the same kernels again."""
        self.captured_launches = []
        try:
            representation = self.run(node)
        finally:
            launches, self.captured_launches = self.captured_launches, None

        def relaunch() -> None:
            for launch in launches:
                launch()

        return representation, relaunch

    # Running

    def compiled(self, key: Hashable, compile_: Callable[[], Any]) -> Any:
        """A kernel or pass, compiled at its first use."""
        if key in self.kernels:
            self.counters.cache_hits += 1
        else:
            started = time.perf_counter()
            self.kernels[key] = compile_()
            self.counters.compiled += 1
            self.counters.compile_seconds += time.perf_counter() - started
        return self.kernels[key]

    def launch(self, launch: Callable[[], Any]) -> None:
        """Launch a kernel or pass, and keep it while launches are captured."""
        if self.launch_seconds is None:
            launch()
        else:
            self.launch_seconds.append(self.time_launch(launch))
        self.counters.launches += 1
        if self.captured_launches is not None:
            self.captured_launches.append(launch)

    def time_launch(self, launch: Callable[[], Any]) -> float:
        """The least time of a few launches; one where a second one would change the result."""
        if self.may_repeat:
            launch()  # drivers compile at the first one
        seconds = [self.time_seconds(launch)]
        while self.may_repeat and len(seconds) < MAX_TIMED and sum(seconds) < MAX_TIMED_SECONDS:
            seconds.append(self.time_seconds(launch))
        return min(seconds)

    def read_back(self, representation: Representation) -> list[np.ndarray]:
        """The components as NumPy arrays."""
        self.interrupt_recording()
        flat = [buffer.read().reshape(-1)[: representation.size] for buffer in representation.buffers]
        return [
            array.astype(DTYPES[type_], copy=False).reshape(representation.shape)
            for array, type_ in zip(flat, representation.types, strict=True)
        ]

    def interrupt_recording(self) -> None:
        """The host takes part in this run, which therefore cannot be repeated."""
        if self.recording is not None:
            self.recording.is_complete = False

    def run(self, node: ir.Node) -> Representation:
        """Compute a functional node over its domain, and all that it depends on."""
        (root,), remarks = run_passes(self.dag, (ir.without_lets(node),), self.passes)
        root = ir.without_lets(root)
        if self.trace is not None:
            self.trace.append(("passes", root, remarks))
        self.infer_required_regions([root])
        self.checks = []
        for step in ir.topological_order([root]):
            if step in self.representations:
                continue
            if is_computed_function(step) and (step is root or is_closed_and_finite(step)):
                self.representations[step] = self.run_kernel(step)
            elif step.op == "reduce" and not step.free_variables:
                self.representations[step] = self.run_reduction(step)
            elif step.op == "primitive":
                sizes = tuple(r.size for r in step.attribute.ranges)
                check_memory(sizes, component_types(step.type.result), "an array", self.max_memory_bytes)
                self.representations[step] = self.run_primitive(step)
        self.raise_failed_checks(self.checks)
        if self.recording is not None:
            self.recording.checks += self.checks
        return self.representation_of(root)

    def infer_required_regions(self, roots: list[ir.Node]) -> None:
        """The region of each host array that accesses can read; only these are uploaded."""
        regions: dict[ir.Node, list[tuple[ir.Range, ...]]] = {}
        for node in ir.topological_order(roots):
            if node.op == "apply" and isinstance(node.attribute, ir.Access):
                function = ir.without_lets(node.inputs[0])
                if is_host_array(function):
                    regions.setdefault(function, []).append(accessed_region(node, function.attribute.ranges))
            elif node.op == "primitive":
                for function in map(ir.without_lets, node.inputs):
                    if is_host_array(function):
                        regions.setdefault(function, []).append(function.attribute.ranges)
        for function, accessed in regions.items():
            hull = tuple(
                ir.Range(min(r.low for r in dim), max(r.high for r in dim)) for dim in zip(*accessed, strict=True)
            )
            known = self.required_regions.get(function)
            if known is None or any(k.low > h.low or k.high < h.high for k, h in zip(known, hull, strict=True)):
                self.required_regions[function] = hull
                self.representations.pop(function, None)

    def ranges_of(self, function: ir.Node) -> tuple[ir.Range, ...]:
        """The indices that a function's buffers hold."""
        if function.op == "primitive":
            return function.attribute.ranges
        if not isinstance(function.attribute, ir.ArraySource):
            return tuple(v.range for v in function.attribute)
        if function in self.representations:
            return self.representations[function].ranges
        return self.required_regions.get(function, function.attribute.ranges)

    def representation_of(self, node: ir.Node) -> Representation:
        """The representation of a node that was computed, or of an array, which is uploaded at its first use."""
        if node not in self.representations:
            ranges, types = self.ranges_of(node), component_types(node.type.result)
            check_memory(tuple(r.size for r in ranges), types, "an array", self.max_memory_bytes)
            lows = [r.low for r in node.attribute.ranges]
            box = tuple(slice(r.low - low, r.high - low) for r, low in zip(ranges, lows, strict=True))
            arrays = node.attribute.data.read(box)
            buffers = [self.upload(a, t) for a, t in zip(arrays, types, strict=True)]
            self.representations[node] = Representation(ranges, buffers, types)
            if self.recording is not None:
                self.recording.uploads.append(Upload(node, box, buffers))
        return self.representations[node]

    def output_ranges(self, node: ir.Node) -> tuple[ir.Range, ...]:
        """The domain of a node that is to be computed; raises if it is too large or reduces nothing."""
        ranges = () if node.op == "reduce" else tuple(v.range for v in node.attribute)
        check_memory(tuple(r.size for r in ranges), output_types(node), "an array", self.max_memory_bytes)
        for part in ir.topological_order([node]):
            if part.op == "reduce":
                check_not_empty(part, self.dag.spans)
        return ranges

    def raise_failed_checks(self, checks: list[PendingCheck]) -> None:
        """Raise the first error that a kernel reported."""
        for check in checks:
            status, plan = check.read_status(), check.plan
            if status == DRIVER_LIMIT_STATUS:
                raise UnavailableError("--target glsl: this driver leaves long loops early; another target does not")
            if status == LOOP_LIMIT_STATUS:
                raise LoopLimitExceeded(looping_function_under(plan.node), MAX_DEVICE_ITERATIONS)
            if status:
                access = plan.check_sites[status - 1]
                ranges = " x ".join(map(str, self.ranges_of(ir.without_lets(access.inputs[0]))))
                message = f"an index is outside of the domain {ranges}"
                raise ProgramError("CS0317", self.dag.spans[access], message, HINT)

    # Reductions of host arrays that are larger than a chunk

    def run_reduction(self, node: ir.Node) -> Representation:
        """Compute a closed reduction, chunk by chunk if it reads much of the host; of nothing, the host knows it."""
        if any(variable.range.size == 0 for variable in node.attribute[1]):
            return self.uploaded_result(node, self.numpy.reduce_empty(node, node.attribute[0]))
        chunks = self.chunk_ranges(node)
        if len(chunks) == 1:
            return self.run_kernel(node)
        is_fold, state = node.attribute[0].name == "fold", None
        for chunk in chunks:
            numbers = self.reduce_chunk(node, chunk, state)
            state = numbers if is_fold else self.numpy.combine_box(node, state, numbers, (1,), 0)
        return self.uploaded_result(node, self.numpy.result(node, state))

    def uploaded_result(self, node: ir.Node, value: Any) -> Representation:
        """The representation of a closed reduction whose value the host knows."""
        components, types = value if isinstance(node.type, tuple) else [value], output_types(node)
        self.interrupt_recording()
        return Representation(
            (), [self.upload(np.reshape(c, 1), t) for c, t in zip(components, types, strict=True)], types
        )

    def chunk_ranges(self, node: ir.Node) -> list[ir.Range]:
        """Split the range of the first reduced variable, so that each chunk reads about CHUNK_BYTES of the host.

        argmin and argmax are never split, nor is a reduction whose order is fixed.
        """
        reduction, variables = node.attribute
        needed = 0
        for function in host_arrays_under(node):
            region = self.required_regions.get(function, function.attribute.ranges)
            element = sum(np.dtype(DTYPES[t]).itemsize for t in component_types(function.type.result))
            needed += element * math.prod(r.size for r in region)
        limit = CHUNK_BYTES if self.max_memory_bytes is None else min(CHUNK_BYTES, self.max_memory_bytes // 8)
        count = -(-needed // limit)
        whole = variables[0].range
        if count <= 1 or whole.size < 2 or self.strict or reduction.name in ("argmin", "argmax"):
            return [whole]
        step = -(-whole.size // count)
        return [ir.Range(low, min(low + step, whole.high)) for low in range(whole.low, whole.high, step)]

    def reduce_chunk(self, node: ir.Node, chunk: ir.Range, state: list | None) -> list:
        """The result of a reduction over one chunk; a fold starts from the state."""
        reduction, (first, *others) = node.attribute
        variable = ir.BoundVariable(first.name, first.type, chunk, True)
        inputs = ir.substitute(self.dag, node.inputs, {first: self.dag.bound_variable(variable)})
        if reduction.name == "fold" and state is not None:
            starts = tuple(self.dag.constant(n.item(), t) for n, t in zip(state, output_types(node), strict=True))
            inputs = starts + inputs[len(starts) :]
        partial = ir.with_inputs(self.dag, node, inputs, (reduction, (variable, *others)))
        self.forget_host_arrays(partial)
        self.infer_required_regions([partial])
        numbers = [array.reshape(1) for array in self.read_back(self.run_kernel(partial))]
        self.forget_host_arrays(partial)
        return numbers

    def forget_host_arrays(self, node: ir.Node) -> None:
        """Free the uploaded regions of the host arrays that a node reads."""
        for function in host_arrays_under(node):
            self.representations.pop(function, None)
            self.required_regions.pop(function, None)


def is_closed_and_finite(node: ir.Node) -> bool:
    """Whether a function depends on no outer variable and has a finite domain."""
    return not node.free_variables and all(isinstance(v.range, ir.Range) for v in node.attribute)


def is_host_array(node: ir.Node) -> bool:
    """Whether a function is an array in host memory or in a file."""
    return isinstance(node.attribute, ir.ArraySource) and not isinstance(node.attribute.data, DeviceArray)


def host_arrays_under(node: ir.Node) -> list[ir.Node]:
    """The host arrays that a node reads."""
    return [n for n in ir.topological_order([node]) if n.op == "function" and is_host_array(n)]


def looping_function_under(node: ir.Node) -> DeviceFunction:
    """A device function with loops that a node calls."""
    for part in ir.topological_order([node]):
        caller = part.attribute[0] if part.op == "reduce" else part.attribute
        if isinstance(caller, (ir.UserCall, ir.Reduction)) and caller.function and has_loops(caller.function):
            return caller.function
    raise AssertionError("no loop is under this node")


def accessed_region(node: ir.Node, ranges: tuple[ir.Range, ...]) -> tuple[ir.Range, ...]:
    """The box of indices that an access can read: all of a dimension whose index is not affine."""
    region = []
    for index, range_, border in zip(node.inputs[1:], ranges, node.attribute.borders, strict=True):
        bounds = index_bounds(index) if border is None else None
        if bounds is None or bounds[0] < range_.low or bounds[1] >= range_.high:
            region.append(ir.Range(range_.low, range_.high))
        else:
            region.append(ir.Range(bounds[0], bounds[1] + 1))
    return tuple(region)
