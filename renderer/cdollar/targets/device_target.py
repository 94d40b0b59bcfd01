"""Runs a program's parts on a device: uploads what they reach, launches them in order, reads results back when asked.

Representations (buffers, one a component) are kept by node, so that what a loop or a later line needs again is there.
Kernels are kept by text; the device keeps their machine code on disk.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.checker.values import FunctionValue
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir.affine import affine, value_bounds
from renderer.cdollar.ir.dag import (
    Access,
    ArraySource,
    BoundVariable,
    Node,
    Range,
    UserCall,
    substitute,
    topological_order,
    with_span_of,
)
from renderer.cdollar.ir.operations import REDUCERS
from renderer.cdollar.ir.passes import PASSES, is_computed_function, run_passes
from renderer.cdollar.ir.types import DTYPES, FunctionType, Record, Scalar, component_types
from renderer.cdollar.targets.device_functions import LOOP_LIMIT_STATUS, MAX_DEVICE_ITERATIONS, has_loops
from renderer.cdollar.targets.kernel_plan import KernelPlan, output_parts
from renderer.cdollar.targets.map_kernels import plan_kernel
from renderer.cdollar.targets.memory import check_memory
from renderer.cdollar.targets.numpy_simt import LoopLimitExceeded, SimtInterpreter
from renderer.cdollar.targets.numpy_target import NumpyTarget
from renderer.cdollar.targets.reduction_kernels import COMBINE_GROUP_SIZE, combine_text
from renderer.cdollar.targets.schedule import DEFAULT, Schedule
from renderer.errors import UnavailableError
from renderer.gpu.kernel_source import GeneratedSource

MOST_POINTS = 2**31 - 2**26  # so that an index and a stride fit into 31 bits
CHUNK_BYTES = 256 << 20  # bytes of files that a reduction takes at once


@dataclass
class Counters:
    """What the caches did: kernels found by text, kernels built, and how long building took."""

    found: int = 0
    built: int = 0
    seconds: float = 0.0
    launches: int = 0


@dataclass
class Representation:
    """A representation: buffers of the components over a box of indices."""

    ranges: tuple
    buffers: list


@dataclass
class DeviceArray:
    """An evaluated function that stays on the device; read lazily."""

    name: str
    target: object
    held: Representation
    host: list = field(default_factory=list)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(r.size for r in self.held.ranges)

    def read(self, box: tuple) -> list[np.ndarray]:
        if not self.host:
            self.host = self.target.read_back(self.held)
        return [array[box] for array in self.host]


class DeviceTarget:
    """Evaluates nodes of one program on one compute device."""

    def __init__(
        self, compilation, device, name: str, schedules: dict[str, Schedule] | None = None, strict: bool = False
    ):
        self.compilation, self.device, self.name, self.strict = compilation, device, name, strict
        self.device_name = device.name
        self.schedules = schedules or {}
        self.held: WeakKeyDictionary = WeakKeyDictionary()
        self.boxes: WeakKeyDictionary = WeakKeyDictionary()
        self.kernels: dict = {}
        self.counters = Counters()
        self.interpreter = NumpyTarget(compilation.dag, compilation.dag.spans)
        self.explained: list | None = None
        self.recorded: list | None = None  # launches, while replay() listens
        self.idle = device.buffer(1, "i4").fill(0)

    # What a program asks for

    def evaluate_scalars(self, nodes: list[Node]) -> list:
        if not any(node.needs_evaluation for node in nodes):
            return self.interpreter.evaluate_scalars(nodes)
        record = Record("numbers", tuple((f"n{k}", Scalar(node.type)) for k, node in enumerate(nodes)))
        function = self.compilation.dag.function((), tuple(nodes), FunctionType(record, ()))
        return [array.item() for array in self.evaluate(function)]

    def materialize(self, function: FunctionValue) -> FunctionValue:
        node = function.node
        if node.op == "function" and isinstance(node.attribute, ArraySource):
            return function
        held, domain = self.run(node), tuple(function.domain)
        type_ = function.type.as_array_type
        found = self.compilation.dag.array(type_, "array", DeviceArray("array", self, held), domain)
        self.held[found] = held
        return FunctionValue(type_, found, domain)

    def evaluate(self, node: Node) -> list[np.ndarray]:
        return self.read_back(self.run(node))

    def read_back(self, held: Representation) -> list[np.ndarray]:
        shape = tuple(r.size for r in held.ranges)
        found = []
        for buffer, part in held.buffers:
            array = buffer.read()[: int(np.prod(shape, dtype=np.int64))]
            found.append(array.astype(DTYPES[part], copy=False).reshape(shape))
        return found

    # Running

    def run(self, node: Node) -> Representation:
        """A functional node evaluated over its domain, and all that it needs before it."""
        while node.op == "let":
            node = node.inputs[0]
        (root,), remarks = run_passes(self.compilation.dag, (node,), PASSES)
        while root.op == "let":
            root = root.inputs[0]
        if self.explained is not None:
            self.explained.append(("passes", root, remarks))
        self.reach([root])
        checks = []
        for part in topological_order([root]):
            if (
                is_computed_function(part)
                and part is not root
                and not part.free_variables
                and self.is_needed(part)
                or part is root
                and is_computed_function(root)
            ):
                if part not in self.held:
                    self.held[part] = self.run_kernel(part, checks)
            elif part.op == "reduce" and not part.free_variables and part not in self.held:
                self.held[part] = self.run_reduction(part, checks)
        self.check(checks)
        return self.held[root] if root in self.held else self.upload_source(root)

    def is_needed(self, node: Node) -> bool:
        return all(isinstance(v.range, Range) for v in node.attribute)

    def reach(self, roots: list[Node]) -> None:
        """The box of each array that any access can reach, so that only that much is uploaded."""
        boxes: dict[Node, list] = {}
        for node in topological_order(roots):
            if node.op == "apply" and isinstance(node.attribute, Access):
                function = node.inputs[0]
                while function.op == "let":
                    function = function.inputs[0]
                if isinstance(function.attribute, ArraySource) and not isinstance(function.attribute.data, DeviceArray):
                    boxes.setdefault(function, []).append(reached(node, function.attribute.ranges))
        for function, found in boxes.items():
            hull = tuple(
                Range(min(box[d].low for box in found), max(box[d].high for box in found))
                for d in range(len(function.attribute.ranges))
            )
            known = self.boxes.get(function)
            if known is not None and all(k.low <= h.low and k.high >= h.high for k, h in zip(known, hull, strict=True)):
                continue
            self.boxes[function] = hull
            self.held.pop(function, None)

    def ranges_of(self, function: Node) -> tuple:
        """The box of indices that a function's buffers hold."""
        if isinstance(function.attribute, ArraySource):
            if function in self.held:
                return self.held[function].ranges
            return self.boxes.get(function, function.attribute.ranges)
        return tuple(v.range for v in function.attribute)

    def upload_source(self, function: Node) -> Representation:
        """The buffers of an array, uploaded at the first use."""
        if function not in self.held:
            ranges = self.ranges_of(function)
            lows = [r.low for r in function.attribute.ranges]
            box = tuple(slice(r.low - low, r.high - low) for r, low in zip(ranges, lows, strict=True))
            parts = component_types(function.type.result)
            check_memory(tuple(r.size for r in ranges), parts, "an array", self.device.properties.memory_bytes)
            arrays = function.attribute.data.read(box)
            self.held[function] = Representation(
                ranges, [self.upload(a, p) for a, p in zip(arrays, parts, strict=True)]
            )
        return self.held[function]

    def upload(self, array: np.ndarray, part: str) -> tuple:
        array = np.ascontiguousarray(array, stored_dtype(part)).reshape(-1)
        return self.device.buffer(max(1, array.size), array.dtype).write(padded(array)), part

    def run_kernel(self, node: Node, checks: list) -> Representation:
        ranges = () if node.op == "reduce" else tuple(v.range for v in node.attribute)
        check_memory(tuple(r.size for r in ranges), output_parts(node), "an array", self.device.properties.memory_bytes)
        self.reject_empty_reductions(node)
        count = int(np.prod([r.size for r in ranges], dtype=np.int64))
        check_index_range(count, node)
        outputs = [(self.device.buffer(max(1, count), stored_dtype(p)), p) for p in output_parts(node)]
        held = Representation(ranges, outputs)
        if count:
            self.launch(self.planned(node), held, checks)
        return held

    def reject_empty_reductions(self, node: Node) -> None:
        """An empty reduction without a neutral element is an error before anything runs."""
        for part in topological_order([node]):
            if part.op == "reduce" and any(v.range.size == 0 for v in part.attribute[1]):
                reducer = REDUCERS.get(part.attribute[0].name)
                if part.attribute[0].name != "fold" and (reducer is None or reducer.neutral is None):
                    self.interpreter.empty(part, part.attribute[0])

    def planned(self, node: Node) -> KernelPlan:
        plain = plan_kernel(node, self.ranges_of, DEFAULT, self.device.properties)
        schedule = self.schedules.get(kernel_key(plain))
        part = plain if schedule is None else plan_kernel(node, self.ranges_of, schedule, self.device.properties)
        if self.explained is not None:
            self.explained.append(("part", node, part))
        return part

    def launch(self, part: KernelPlan, held: Representation, checks: list) -> None:
        status = self.idle
        if part.sites or "atomic_max(status" in part.text:
            status = self.device.buffer(1, "i4").fill(0)
            checks.append((status, part))
        if part.kind != "group":
            self.start(part, "part", part.groups * part.group, self.filled(part, held.buffers, status))
            return
        partials = [
            self.device.buffer(part.groups, stored_dtype(p[2]))
            for p in part.arguments
            if isinstance(p, tuple) and p[0] == "partial"
        ]
        outputs = part.groups // part.pieces
        self.start(part, "part", part.groups * part.group, self.filled(part, partials, status))
        reduce_node = part.node if part.node.op == "reduce" else reduction_under(part.node)
        finish = KernelPlan(part.node, "finish", combine_text(reduce_node), COMBINE_GROUP_SIZE, doubles=part.doubles)
        buffers = [b for b, _ in held.buffers]
        self.start(finish, "finish", outputs * COMBINE_GROUP_SIZE, [part.pieces, *partials, *buffers])

    def start(self, part: KernelPlan, entry: str, threads: int, arguments: list) -> None:
        kernel = self.kernel(part.text, entry, part)
        kernel(threads, *arguments)
        self.counters.launches += 1
        if self.recorded is not None:
            self.recorded.append(kernel.bind_launch(threads, *arguments))

    def replay(self, node: Node):
        """Evaluates a functional node; gives its representation and a function that launches the same work again."""
        self.recorded = []
        try:
            held = self.run(node)
        finally:
            launches, self.recorded = self.recorded, None

        def again() -> None:
            for launch in launches:
                launch()

        return held, again

    def filled(self, part: KernelPlan, outputs: list, status) -> list:
        """The arguments of a part's kernel."""
        found = []
        for argument in part.arguments:
            if not isinstance(argument, tuple):
                found.append(argument)
            elif argument[0] == "status":
                found.append(status)
            elif argument[0] == "out":
                found.append(outputs[argument[2]][0])
            elif argument[0] == "partial":
                found.append(outputs[argument[1]])
            else:
                _, node, component = argument
                held = self.held[node] if node in self.held else self.upload_source(node)
                found.append(held.buffers[component][0])
        return found

    def kernel(self, text: str, entry: str, part: KernelPlan):
        key = (text, entry, part.group)
        if key in self.kernels:
            self.counters.found += 1
            return self.kernels[key]
        started = time.perf_counter()
        constants = {"STRICT": 1} if self.strict else {}
        if part.doubles:
            constants["DOUBLES"] = 1
        name = f"cdollar_{hashlib.sha256(text.encode()).hexdigest()[:12]}.cu"
        self.kernels[key] = self.device.kernel(GeneratedSource(name, text), entry, part.group, **constants)
        self.counters.built += 1
        self.counters.seconds += time.perf_counter() - started
        return self.kernels[key]

    def check(self, checks: list) -> None:
        """Errors that kernels noted while they ran."""
        for status, part in checks:
            site = int(status.read()[0])
            if site >= LOOP_LIMIT_STATUS:
                raise LoopLimitExceeded(looping_function_under(part.node), MAX_DEVICE_ITERATIONS)
            if site:
                node = part.sites[site - 1]
                function = node.inputs[0]
                while function.op == "let":
                    function = function.inputs[0]
                ranges = " x ".join(map(str, self.ranges_of(function)))
                message = f"an index is outside of the domain {ranges}"
                raise ProgramError(
                    "CS0317",
                    self.compilation.dag.spans[node],
                    message,
                    "a border mode makes it good: `f.clamp(...)`, wrap, mirror or zero",
                )

    # Reductions over more than fits

    def run_reduction(self, node: Node, checks: list) -> Representation:
        pieces = self.chunk_ranges(node)
        if len(pieces) == 1:
            return self.run_kernel(node, checks)
        state = None
        for piece in pieces:
            state = self.joined(node, state, self.reduce_chunk(node, piece, state, checks))
        parts = output_parts(node)
        return Representation(
            (), [self.upload(np.asarray(n).reshape(1).astype(DTYPES[p]), p) for n, p in zip(state, parts, strict=True)]
        )

    def chunk_ranges(self, node: Node) -> list[Range]:
        """The ranges of the first reduced variable between which files are read piece by piece."""
        variable = node.attribute[1][0]
        needed = 0
        for function in host_arrays_under(node):
            box = self.boxes.get(function, function.attribute.ranges)
            size = int(np.prod([r.size for r in box], dtype=np.int64))
            needed += size * sum(np.dtype(DTYPES[p]).itemsize for p in component_types(function.type.result))
        count = -(-needed // self.chunk_bytes())
        if count <= 1 or variable.range.size < 2 or node.attribute[0].name in ("argmin", "argmax"):
            return [variable.range]
        step = -(-variable.range.size // count)
        return [
            Range(low, min(low + step, variable.range.high))
            for low in range(variable.range.low, variable.range.high, step)
        ]

    def chunk_bytes(self) -> int:
        return min(CHUNK_BYTES, self.device.properties.memory_bytes // 8)

    def reduce_chunk(self, node: Node, piece: Range, state, checks: list) -> list:
        reduction, variables = node.attribute
        first = variables[0]
        own = BoundVariable(first.name, first.type, piece, True)
        inputs = substitute(self.compilation.dag, node.inputs, {first: self.compilation.dag.bound_variable(own)})
        if reduction.name == "fold" and state is not None:
            starts = tuple(self.compilation.dag.constant(n, p) for n, p in zip(state, output_parts(node), strict=True))
            inputs = starts + inputs[len(starts) :]
        part = self.compilation.dag.intern("reduce", node.type, inputs, (reduction, (own, *variables[1:])))
        with_span_of(self.compilation.dag, node, part)
        for function in host_arrays_under(part):
            self.held.pop(function, None)
            self.boxes.pop(function, None)
        self.reach([part])
        found = self.run_kernel(part, checks)
        numbers = [array.reshape(-1)[0] for array in self.read_back(found)]
        for function in host_arrays_under(part):
            self.held.pop(function, None)
            self.boxes.pop(function, None)
        return numbers

    def joined(self, node: Node, state, numbers: list) -> list:
        reduction = node.attribute[0]
        if state is None or reduction.name == "fold":
            return [n.item() for n in numbers]
        if reduction.function is not None:
            state = [DTYPES[p](s) for s, p in zip(state, output_parts(node), strict=True)]
            return [
                n.reshape(-1)[0].item()
                for n in SimtInterpreter(reduction.function, self.interpreter).call([*state, *numbers])
            ]
        ufunc = {
            "+": np.add,
            "*": np.multiply,
            "min": np.fmin,
            "max": np.fmax,
            "&&": np.logical_and,
            "||": np.logical_or,
        }
        whole = node.type in ("int", "uint", "bool")
        with np.errstate(all="ignore"):
            found = ufunc[reduction.name](np.asarray(state[0], DTYPES[node.type] if whole else np.float64), numbers[0])
        return [found.item()]


def looping_function_under(node: Node):
    """A scalar function with loops that a node calls."""
    for part in topological_order([node]):
        function = part.attribute.function if isinstance(part.attribute, UserCall) else None
        if part.op == "reduce":
            function = part.attribute[0].function
        if function is not None and has_loops(function):
            return function
    raise AssertionError("no loop is under this node")


def check_index_range(count: int, node: Node) -> None:
    """Refuses what the indices of kernels cannot count."""
    for part in topological_order([node]):
        if part.op == "reduce":
            count = max(count, int(np.prod([float(v.range.size) for v in part.attribute[1]])))
    if count >= 2**31:
        raise UnavailableError(
            f"a part goes over {count} points; devices take less than {2**31}, --target numpy takes more"
        )


def reduction_under(node: Node) -> Node:
    body = node.inputs[0]
    return body if body.op == "reduce" else body.inputs[0]


def host_arrays_under(node: Node) -> list[Node]:
    """Arrays on the host that a node reads."""
    return [
        n
        for n in topological_order([node])
        if n.op == "function" and isinstance(n.attribute, ArraySource) and not isinstance(n.attribute.data, DeviceArray)
    ]


def stored_dtype(part: str) -> np.dtype:
    return np.dtype("u1") if part == "bool" else np.dtype(DTYPES[part])


def padded(array: np.ndarray) -> np.ndarray:
    return array if array.size else np.zeros(1, array.dtype)


def reached(node: Node, ranges: tuple) -> tuple:
    """The box of indices that an access can read: all of a dimension if its index is not affine."""
    found = []
    for index, range_, border in zip(node.inputs[1:], ranges, node.attribute.borders, strict=True):
        form = affine(index)
        ends = value_bounds(form) if form is not None and form.is_known and border is None else None
        if ends is None or ends[0] < range_.low or ends[1] >= range_.high:
            found.append(Range(range_.low, range_.high))
        else:
            found.append(Range(ends[0], ends[1] + 1))
    return tuple(found)


def kernel_key(part: KernelPlan) -> str:
    """The hash that names a part in a schedule file: of its text by the default schedule."""
    return hashlib.sha256(f"{part.kind}\n{part.text}".encode()).hexdigest()[:16]
