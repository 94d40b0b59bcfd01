"""The base of the targets that run a DAG as a sequence of kernels (DeviceTarget) or fragment passes (GlslTarget).

run() takes a functional node, a function of bound variables whose evaluation is an array. After the passes over the DAG
(ir/passes.py), every function and every closed reduction (one without free variables) that is left becomes a kernel.
Kernels run in dependency order, after the regions of host arrays that they access are uploaded. The result of a node is
its Representation, one buffer per component, cached by node. A run can be recorded (runtime/recorded_call.py), so that
a later call with other arguments repeats its launches without parsing, checking, planning or compiling.
"""

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.checker.arrays import BlockArray
from renderer.cdollar.checker.target import Target
from renderer.cdollar.checker.values import FunctionValue
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import index_bounds
from renderer.cdollar.ir.device_function import DeviceFunction
from renderer.cdollar.ir.passes import PASSES, Pass, is_computed_function, run_passes
from renderer.cdollar.ir.types import DTYPES, Number, component_types
from renderer.cdollar.targets import device_functions
from renderer.cdollar.targets.kernel_plan import KernelPlan, output_types
from renderer.cdollar.targets.numpy.reductions import Reducer, as_node_value, check_not_empty
from renderer.cdollar.targets.numpy.simt import LoopLimitExceeded
from renderer.cdollar.targets.numpy.spaces import NodeValue, failed_check
from renderer.cdollar.targets.numpy.target import NumpyTarget, array_bytes, check_memory
from renderer.errors import UnavailableError
from renderer.gpu import Buffer
from renderer.gpu.device import Kernel
from renderer.records import dataclass, field

if TYPE_CHECKING:
    from renderer.gpu.gl import Texture  # OpenGL is loaded for GLSL alone

MAX_TIMED, MAX_TIMED_SECONDS = 5, 0.5  # the most launches of a kernel that --explain times, and their total time
MAX_KERNEL_CHARS = 160_000  # characters of the longest kernel text, whose compilation takes PoCL a second
CHUNK_BYTES = 256 << 20  # the bytes of host arrays that a reduction uploads at a time


Compiled = TypeVar("Compiled")  # a kernel or a pass


@dataclass
class Representation:
    """The result of a node on the device: a buffer per component, with its scalar type, over a box of indices."""

    ranges: ir.Ranges
    buffers: list[Any]  # Buffers, or Textures of GLSL; they may be larger than the array
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
    """The data of an evaluated function that stays on the device; the host reads it at the first use."""

    target: "GraphTarget"
    representation: Representation
    host: list[np.ndarray] = field(default_factory=list)

    def read(self, box: ir.Indices) -> list[np.ndarray]:
        """The components at NumPy indices."""
        if not self.host:
            self.host = self.target.read_back(self.representation)
        return [array[box] for array in self.host]


class PendingCheck(NamedTuple):
    """A kernel's status word, to be read after the run: the number of a failed bounds check, a loop limit, or 0."""

    read_status: Callable[[], int]
    plan: KernelPlan
    word: Any = None  # the buffer of the status word; None for GLSL


@dataclass
class RecordedLaunch:
    """A launch of a recorded run; `scalars`: the numbers of the program among its arguments, by position."""

    kernel: Kernel
    threads: int
    arguments: list[Any]
    scalars: dict[int, ir.RuntimeScalar]
    bound: Any = None  # the launch with its arguments converted (Kernel.bind_launch); None: to be converted

    def set(self, position: int, argument: object) -> None:
        """Replace an argument, in the bound launch too if the device can replace a single one."""
        if self.arguments[position] is argument:
            return
        self.arguments[position] = argument
        if self.bound is not None and self.kernel.sets_single_arguments:
            self.bound.set(position, argument)
        else:
            self.bound = None

    def __call__(self) -> None:
        """Launch."""
        if self.bound is None:
            self.bound = self.kernel.bind_launch(self.threads, *self.arguments)
        self.bound()


class Upload(NamedTuple):
    """A region of an array parameter that was uploaded: `box` are NumPy indices, one buffer a component."""

    node: ir.Node
    box: tuple[slice, ...]
    buffers: list[Any]  # Buffers, or Textures of GLSL, whose runs are not recorded


@dataclass
class Recording:
    """A recorded run. `is_complete` is False if the host read results during it: such a run cannot be repeated."""

    launches: list[RecordedLaunch] = field(default_factory=list)
    uploads: list[Upload] = field(default_factory=list)
    checks: list[PendingCheck] = field(default_factory=list)
    is_complete: bool = True


class GraphTarget(Target):
    """Runs DAGs; a subclass allocates buffers and runs kernels."""

    passes: Sequence[Pass] = PASSES
    max_memory_bytes: int | None = None  # the memory of the device; None: of the host
    strict = False
    may_repeat = True  # False while a launch would change the result if it were repeated to be timed
    time_seconds: Callable[[Callable[[], None]], float]  # the seconds that the launches of work() take on the device

    def __init__(self, dag: ir.Dag) -> None:
        """Start without results; `dag` is the program's."""
        super().__init__()
        self.dag = dag
        self.numpy = NumpyTarget(dag)  # for numbers that need no kernel
        self.representations: WeakKeyDictionary[ir.Node, Representation] = WeakKeyDictionary()
        # The region of each host array that a run needs; a superset of the region that is uploaded.
        self.required_regions: WeakKeyDictionary[ir.Node, ir.Ranges] = WeakKeyDictionary()
        self.captured_launches: list[Callable[[], None]] | None = None  # see capture(); None outside of it
        self.checks: list[PendingCheck] = []  # the status words to read at the end of this run
        self.recording: Recording | None = None  # records runs while it is set
        self.kernels: dict[Hashable, Any] = {}  # compiled kernels or passes, by their text

    # What a subclass implements

    @abstractmethod
    def upload(self, array: np.ndarray, type_: str) -> "Buffer | Texture":
        """Return a new buffer with one component of an array; `type_` is its scalar type."""

    @abstractmethod
    def allocate(self, shape: tuple[int, ...], type_: str) -> "Buffer | Texture":
        """Return a new buffer for one component of an array of scalar type `type_`."""

    @abstractmethod
    def compute(self, node: ir.Node, outputs: Representation) -> None:
        """Compute a function or a closed reduction whose inputs are computed into the buffers of `outputs`."""

    def run_primitive(self, node: ir.Node) -> Representation:
        """Compute a primitive whose inputs are computed."""
        name = node.attribute.name
        raise UnavailableError(f"--target {self.name}: has no `{name}`; opencl, cuda and numpy have it")

    # The interface of targets

    def evaluate_scalars(self, nodes: list[ir.Node]) -> list[Number]:
        """The numbers of nodes without free variables; NumPy computes them if no node needs an array or a reduction."""
        if not any(node.needs_evaluation for node in nodes):
            return self.numpy.evaluate_scalars(nodes)
        return [array.item() for array in self.evaluate(self.dag.abstraction((), tuple(nodes)))]

    def materialize_all(self, functions: Sequence[FunctionValue]) -> list[FunctionValue]:
        """Evaluate functions over their domains; return them as arrays that stay on the device."""
        arrays = []
        for function, representation in zip(functions, self.run_all([f.node for f in functions]), strict=True):
            domain, type_ = tuple(function.domain), function.type.as_array_type
            array = self.dag.array(type_, "array", DeviceArray(self, representation), domain)
            self.representations[array] = representation
            arrays.append(FunctionValue(type_, array, domain))
        return arrays

    def evaluate_all(self, nodes: Sequence[ir.Node]) -> list[list[np.ndarray]]:
        """The components of each functional node; what several nodes need is computed once."""
        return [self.read_back(representation) for representation in self.run_all(nodes)]

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

    def check_text(self, text: str) -> None:
        """Raises CS0603 for a kernel's text that compilers take seconds for."""
        if len(text) > MAX_KERNEL_CHARS:
            raise ir.too_large(self.dag.span)

    def compiled(self, key: Hashable, compile_: Callable[[], Compiled]) -> Compiled:
        """The kernel or pass for `key`; compile_() makes it at the first use."""
        if key in self.kernels:
            self.counters.cache_hits += 1
        else:
            started = time.perf_counter()
            self.kernels[key] = compile_()
            self.counters.compiled += 1
            self.counters.compile_seconds += time.perf_counter() - started
        kernel: Compiled = self.kernels[key]
        return kernel

    def launch(self, launch: Callable[[], None]) -> None:
        """Launch a kernel or pass, timed for --explain if `launch_seconds` is a list; keep it for capture()."""
        if self.launch_seconds is None:
            launch()
        else:
            self.launch_seconds.append(self.time_launch(launch))
        self.counters.launches += 1
        if self.captured_launches is not None:
            self.captured_launches.append(launch)

    def time_launch(self, launch: Callable[[], None]) -> float:
        """The least time of a few launches, in seconds; of one launch if another would change the result."""
        if self.may_repeat:
            launch()  # some drivers compile at the first launch
        seconds = [self.time_seconds(launch)]
        while self.may_repeat and len(seconds) < MAX_TIMED and sum(seconds) < MAX_TIMED_SECONDS:
            seconds.append(self.time_seconds(launch))
        return min(seconds)

    def read_back(self, representation: Representation) -> list[np.ndarray]:
        """Copy the components to NumPy arrays of the representation's shape."""
        self.interrupt_recording()
        flat = [buffer.read().reshape(-1)[: representation.size] for buffer in representation.buffers]
        pairs, shape = zip(flat, representation.types, strict=True), representation.shape
        return [array.astype(DTYPES[type_], copy=False).reshape(shape) for array, type_ in pairs]

    def interrupt_recording(self) -> None:
        """Mark the recording incomplete: the host takes part in this run, so it cannot be repeated."""
        if self.recording is not None:
            self.recording.is_complete = False

    def run(self, node: ir.Node) -> Representation:
        """Compute a functional node over its domain; raises as run_all()."""
        return self.run_all([node])[0]

    def run_all(self, nodes: Sequence[ir.Node]) -> list[Representation]:
        """Compute functional nodes over their domains, and the nodes that they depend on.

        The passes first turn the nodes into few functions and reductions; each becomes a kernel. Kernels run inputs
        first, unless their result is cached. The status words of their bounds checks are read last, so that the device
        does not wait for the host. Raises ProgramError for a failed bounds check or an endless loop, UnavailableError
        without enough memory.
        """
        optimized, remarks = run_passes(self.dag, tuple(map(ir.without_lets, nodes)), self.passes)
        roots = [ir.without_lets(root) for root in optimized]
        if self.trace is not None:
            self.trace += [("passes", root, remarks) for root in roots]
        self.infer_required_regions(roots)
        self.checks = []
        for step in ir.topological_order(roots):
            if step in self.representations:
                continue
            if is_computed_function(step) and (step in roots or is_closed_and_finite(step)):
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
        return [self.representation_of(root) for root in roots]

    def infer_required_regions(self, roots: list[ir.Node]) -> None:
        """Find the region of each host array that accesses under `roots` can read; only this region is uploaded.

        An array that is a result itself is uploaded as a whole. A region that has grown since the last run drops the
        uploaded one.
        """
        regions = {root: [root.attribute.ranges] for root in roots if is_host_array(root)}
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
            dimensions = zip(*accessed, strict=True)
            hull = tuple(ir.Range(min(r.low for r in each), max(r.high for r in each)) for each in dimensions)
            known = self.required_regions.get(function)
            if known is None or any(k.low > h.low or k.high < h.high for k, h in zip(known, hull, strict=True)):
                self.required_regions[function] = hull
                self.representations.pop(function, None)

    def stored_ranges(self, function: ir.Node) -> ir.Ranges:
        """The indices that a function's buffers hold."""
        if isinstance(function.attribute, ir.ArraySource):
            if function in self.representations:
                return self.representations[function].ranges
            return self.required_regions.get(function, function.attribute.ranges)
        return ir.domain_ranges(function)

    def representation_of(self, node: ir.Node) -> Representation:
        """The representation of a node that was computed, or of an array, which is uploaded at its first use."""
        if node not in self.representations:
            ranges, types = self.stored_ranges(node), component_types(node.type.result)
            check_memory(tuple(r.size for r in ranges), types, "an array", self.max_memory_bytes)
            lows = [r.low for r in node.attribute.ranges]
            box = tuple(slice(r.low - low, r.high - low) for r, low in zip(ranges, lows, strict=True))
            if isinstance(node.attribute.data, BlockArray):  # the host makes its elements, perhaps of other arguments
                self.interrupt_recording()
            arrays = node.attribute.data.read(box)
            buffers = [self.upload(a, t) for a, t in zip(arrays, types, strict=True)]
            self.representations[node] = Representation(ranges, buffers, types)
            if self.recording is not None:
                self.recording.uploads.append(Upload(node, box, buffers))
        return self.representations[node]

    def run_kernel(self, node: ir.Node) -> Representation:
        """Compute a function or a closed reduction whose inputs are computed."""
        outputs = self.allocate_outputs(node)
        if outputs.size:
            self.compute(node, outputs)
        return outputs

    def allocate_outputs(self, node: ir.Node) -> Representation:
        """New buffers for the result of a node; raises if they are too large or a reduction has no elements."""
        ranges = () if node.op == "reduce" else tuple(v.range for v in node.attribute)
        outputs = Representation(ranges, [], output_types(node))
        check_memory(outputs.shape, outputs.types, "an array", self.max_memory_bytes)
        for operand in ir.topological_order([node]):
            if operand.op == "reduce":
                check_not_empty(operand, self.dag.spans)
        outputs.buffers = [self.allocate(outputs.shape, type_) for type_ in outputs.types]
        return outputs

    def raise_failed_checks(self, checks: Sequence[PendingCheck]) -> None:
        """Raise the first error that a kernel reported."""
        for check in checks:
            status, plan = check.read_status(), check.plan
            if status == device_functions.DRIVER_LIMIT_STATUS:
                raise UnavailableError("--target glsl: this driver leaves long loops early; another target does not")
            if status == device_functions.LOOP_LIMIT_STATUS:
                raise LoopLimitExceeded(looping_function_under(plan.node), device_functions.MAX_DEVICE_ITERATIONS)
            if status:
                site, domain = plan.check_sites[status - 1], ""
                if isinstance(site.attribute, ir.Access):
                    domain = " " + " x ".join(map(str, self.stored_ranges(ir.without_lets(site.inputs[0]))))
                raise failed_check(site, self.dag.spans[site], domain)

    # Reductions of host arrays that are larger than a chunk

    def run_reduction(self, node: ir.Node) -> Representation:
        """Compute a closed reduction: over large host arrays chunk by chunk, over an empty range on the host."""
        if any(variable.range.size == 0 for variable in node.attribute[1]):
            return self.uploaded_result(node, self.numpy.reduce_empty(node, node.attribute[0]))
        chunks = self.chunk_ranges(node)
        if len(chunks) == 1:
            return self.run_kernel(node)
        is_fold, reducer, numbers = node.attribute[0].is_fold, Reducer(node, self.dag.spans), list[np.ndarray]()
        for chunk in chunks:
            numbers = self.reduce_chunk(node, chunk, numbers)
            if not is_fold:  # a fold's last chunk has the result; other chunks are combined as elements are
                reducer.add(numbers, (1,), 0)  # a box of one element, without an outer space
        return self.uploaded_result(node, as_node_value(node, numbers) if is_fold else reducer.value())

    def uploaded_result(self, node: ir.Node, value: NodeValue) -> Representation:
        """The representation of a closed reduction whose value the host knows."""
        components, types = value if isinstance(node.type, tuple) else [value], output_types(node)
        self.interrupt_recording()
        buffers = [self.upload(np.reshape(c, 1), t) for c, t in zip(components, types, strict=True)]
        return Representation((), buffers, types)

    def chunk_ranges(self, node: ir.Node) -> list[ir.Range]:
        """Split the range of the first reduced variable, so that each chunk reads about CHUNK_BYTES of the host.

        A chunk takes at most an eighth of the device's memory. argmin and argmax are never split, nor is a reduction in
        a fixed order.
        """
        reduction, variables = node.attribute
        needed = 0
        for function in host_arrays_under(node):
            region = self.required_regions.get(function, function.attribute.ranges)
            needed += array_bytes((r.size for r in region), component_types(function.type.result))
        limit = CHUNK_BYTES if self.max_memory_bytes is None else min(CHUNK_BYTES, self.max_memory_bytes // 8)
        count = -(-needed // limit)
        full = variables[0].range
        if count <= 1 or full.size < 2 or self.strict or reduction.is_arg_extremum:
            return [full]
        step = -(-full.size // count)
        return [ir.Range(low, min(low + step, full.high)) for low in range(full.low, full.high, step)]

    def reduce_chunk(self, node: ir.Node, chunk: ir.Range, before: list[np.ndarray]) -> list[np.ndarray]:
        """The components of a reduction over one chunk; a fold starts from the chunk `before`, [] for the first."""
        reduction, (first, *others) = node.attribute
        variable = ir.BoundVariable(first.name, first.type, chunk, reduced=True)
        inputs = ir.substitute(self.dag, node.inputs, {first: self.dag.bound_variable(variable)})
        if reduction.is_fold and before:
            starts = tuple(self.dag.constant(n.item(), t) for n, t in zip(before, output_types(node), strict=True))
            inputs = starts + inputs[len(starts) :]
        partial = ir.with_inputs(self.dag, node, inputs, (reduction, (variable, *others)))
        self.forget_host_arrays(partial)  # else the region would become the hull of this chunk's and an earlier one's
        self.infer_required_regions([partial])
        numbers = [array.reshape(1) for array in self.read_back(self.run_kernel(partial))]
        self.forget_host_arrays(partial)
        return numbers

    def forget_host_arrays(self, node: ir.Node) -> None:
        """Drop the uploaded regions of the host arrays that a node reads, which frees their memory."""
        for function in host_arrays_under(node):
            self.representations.pop(function, None)
            self.required_regions.pop(function, None)


def is_closed_and_finite(node: ir.Node) -> bool:
    """True if a function depends on no outer variable and has a finite domain."""
    return not node.free_variables and all(isinstance(v.range, ir.Range) for v in node.attribute)


def is_host_array(node: ir.Node) -> bool:
    """True if a function is an array in host memory or in a file."""
    return isinstance(node.attribute, ir.ArraySource) and not isinstance(node.attribute.data, DeviceArray)


def host_arrays_under(node: ir.Node) -> list[ir.Node]:
    """The host arrays that a node reads."""
    return [n for n in ir.topological_order([node]) if n.op == "function" and is_host_array(n)]


def looping_function_under(node: ir.Node) -> DeviceFunction:
    """A device function with loops that a node calls."""
    for operand in ir.topological_order([node]):
        caller = operand.attribute[0] if operand.op == "reduce" else operand.attribute
        function: DeviceFunction | None = caller.function if isinstance(caller, (ir.UserCall, ir.Reduction)) else None
        if function is not None and function.has_loops:
            return function
    raise AssertionError("no loop is under this node")


def accessed_region(node: ir.Node, ranges: ir.Ranges) -> ir.Ranges:
    """The box of indices that an access can read: in a dimension whose index has no known bounds, all of them."""
    region = []
    for index, range_, border in zip(node.inputs[1:], ranges, node.attribute.borders, strict=True):
        bounds = index_bounds(index) if border is None else None
        if bounds is None or bounds[0] < range_.low or bounds[1] >= range_.high:
            region.append(ir.Range(range_.low, range_.high))
        else:
            region.append(ir.Range(bounds[0], bounds[1] + 1))
    return tuple(region)
