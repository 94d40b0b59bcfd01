"""The targets `opencl` and `cuda`: plan the kernels of a program's DAG and launch them on a compute device.

open_target.py makes a DeviceTarget for a program; GraphTarget, its base, orders the kernels, uploads arrays and reads
results back. Compiled kernels are cached by their source text; the device caches binaries on disk.
"""

import hashlib
import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from renderer.cdollar.ir.dag import Dag, Node, RuntimeScalar, without_lets
from renderer.cdollar.ir.passes import PASSES, simplify
from renderer.cdollar.ir.primitives import SCATTERS, recognize
from renderer.cdollar.ir.types import DTYPES, component_types
from renderer.cdollar.targets.graph_target import GraphTarget, PendingCheck, RecordedLaunch, Representation
from renderer.cdollar.targets.kernel_plan import BufferArgument, KernelPlan
from renderer.cdollar.targets.map_kernels import plan_kernel
from renderer.cdollar.targets.primitive_kernels import PrimitiveKernels
from renderer.cdollar.targets.schedule import DEFAULT, Schedule
from renderer.errors import UnavailableError
from renderer.gpu import Buffer, Device
from renderer.gpu.device import Kernel
from renderer.gpu.kernel_source import GeneratedSource

STORAGE_DTYPES = {name: np.dtype(dtype) for name, dtype in (DTYPES | {"bool": np.uint8}).items()}
MAX_INDEX = 2**31  # the kernels of primitives count elements in int


class DeviceTarget(GraphTarget):
    """Evaluates nodes of one program on one compute device (renderer.gpu.Device)."""

    def __init__(
        self, dag: Dag, device: Device, name: str, schedules: dict[str, Schedule] | None = None, strict: bool = False
    ) -> None:
        """Evaluate nodes of `dag`; `name` is the device's backend, `schedules` are by KernelPlan.key.

        `strict` forbids contraction to fma, and reduces in the order of strict_order.py.
        """
        super().__init__(dag)
        self.device, self.name, self.strict = device, name, strict
        self.time_seconds = device.time_seconds
        self.device_name = device.name
        self.max_memory_bytes = device.properties.memory_bytes
        self.schedules = schedules or {}
        # After simplify, the first of PASSES, recognize replaces masked sums by prefix sums and scatters. These add in
        # another order than sums, so `strict` omits recognize.
        self.passes = PASSES if strict else [simplify, recognize, *PASSES[1:]]
        self.primitives = PrimitiveKernels(device, self.launch_recorded, strict)
        self.unused_status = device.buffer(1, "i4").fill(0)  # the status word of kernels that check nothing

    def upload(self, array: np.ndarray, type_: str) -> Buffer:
        """A buffer with one component of an array."""
        flat = np.ascontiguousarray(array, STORAGE_DTYPES[type_]).reshape(-1)
        return self.device.buffer(max(1, flat.size), flat.dtype).write(flat if flat.size else np.zeros(1, flat.dtype))

    def allocate(self, shape: tuple[int, ...], type_: str) -> Buffer:
        """A buffer for one component of an array, of one element at least."""
        return self.device.buffer(max(1, math.prod(shape)), STORAGE_DTYPES[type_])

    def compute(self, node: Node, outputs: Representation) -> None:
        """Compute a function, or a reduction without free variables, whose inputs are computed."""
        self.launch_plan(self.plan(node), outputs)

    def run_primitive(self, node: Node) -> Representation:
        """Compute a primitive whose inputs are computed."""
        ranges, inputs = node.attribute.ranges, [self.representation_of(without_lets(child)) for child in node.inputs]
        check_index_range(max(inputs[0].size, math.prod(r.size for r in ranges)), node.attribute.name)
        # A primitive's kernels add to their outputs, so a launch cannot be repeated to be timed: run them once untimed,
        # which compiles them, then time each launch once.
        if self.launch_seconds is not None:
            timed, self.launch_seconds = self.launch_seconds, None
            self.launch_primitives(node)
            self.launch_seconds, self.may_repeat = timed, False
        launches = self.counters.launches
        out = self.launch_primitives(node)
        self.may_repeat = True
        if self.trace is not None:
            self.trace.append(("primitive", node, self.counters.launches - launches))
        return Representation(ranges, [out], component_types(node.type.result))

    def launch_primitives(self, node: Node) -> Buffer:
        """Launch the kernels of a primitive; returns the buffer of its result."""
        inputs, ranges = [self.representation_of(without_lets(child)) for child in node.inputs], node.attribute.ranges
        (scalar,), source, count = component_types(node.type.result), inputs[0].buffers[0], inputs[0].size
        if node.attribute.name == "scan":
            length = ranges[-1].size
            return self.primitives.scan(source, count // max(1, length), length, scalar)
        if node.attribute.name in SCATTERS.values():
            values, sizes = inputs[1].buffers[0] if len(inputs) > 1 else None, (count, ranges[0].size, ranges[0].low)
            return self.primitives.scatter(node.attribute.name, source, values, sizes, scalar)
        return self.primitives.sort(source, count, inputs[0].types[0], pairs=node.attribute.name == "argsort")

    def launch_recorded(
        self, kernel: Kernel, threads: int, arguments: Sequence[object], scalars: dict[int, RuntimeScalar] | None = None
    ) -> None:
        """Launch a kernel; while a run is recorded, also append the launch to the recording, which replays it."""
        if self.recording is not None:
            self.recording.launches.append(RecordedLaunch(kernel, threads, list(arguments), scalars or {}))
        is_captured = self.captured_launches is not None  # then it is launched again: convert its arguments once
        self.launch(kernel.bind_launch(threads, *arguments) if is_captured else partial(kernel, threads, *arguments))

    def plan(self, node: Node) -> KernelPlan:
        """Plan the kernel of a node, by its schedule if the schedule file has one; add it to the trace.

        The file names a kernel by the key of its plan under the default schedule.
        """
        plan = plan_kernel(node, self.stored_ranges, DEFAULT, self.device.properties, self.strict)
        if plan.key in self.schedules:
            plan = plan_kernel(node, self.stored_ranges, self.schedules[plan.key], self.device.properties, self.strict)
        if self.trace is not None:
            self.trace.append(("kernel", node, plan))
        return plan

    def launch_plan(self, plan: KernelPlan, outputs: Representation) -> None:
        """Launch the kernel of a plan, and the kernel that combines its partial results, if there is one."""
        status = self.unused_status
        if plan.writes_status:
            check = self.pending_check(plan)
            status = check.word
            self.checks.append(check)
        if plan.combine is None:
            self.launch_kernel(plan, {"output": outputs.buffers, "status": [status]})
            return
        partials = [self.allocate((plan.partial_count,), type_) for type_ in plan.partial_types]
        self.launch_kernel(plan, {"output": partials, "status": [status]})
        self.launch_kernel(plan.combine, {"partial": partials, "output": outputs.buffers, "status": [status]})

    def pending_check(self, plan: KernelPlan) -> PendingCheck:
        """A check with a new status word."""
        word = self.device.buffer(1, "i4").fill(0)
        return PendingCheck(lambda: int(word.read()[0]), plan, word)

    def launch_kernel(self, plan: KernelPlan, buffers: dict[str, list[Buffer]]) -> None:
        """Launch one kernel; `buffers`: outputs, partial results and the status word, by BufferArgument.kind."""
        kernel, threads = self.kernel(plan), plan.group_count * plan.group_size
        arguments = []
        for argument in plan.arguments:
            if isinstance(argument, BufferArgument):
                array = argument.node
                components = buffers[argument.kind] if array is None else self.representation_of(array).buffers
                argument = components[argument.component]
            arguments.append(argument)
        self.launch_recorded(kernel, threads, arguments, plan.scalars)

    def kernel(self, plan: KernelPlan) -> Kernel:
        """The compiled kernel of a plan."""
        constants = {"STRICT": 1} if self.strict else {}
        if plan.has_doubles:
            constants["DOUBLES"] = 1
        source = GeneratedSource(f"cdollar_{hashlib.sha256(plan.text.encode()).hexdigest()[:12]}.cu", plan.text)
        return self.compiled((plan.text, plan.group_size), partial(self.compile, plan, source, constants))

    def compile(self, plan: KernelPlan, source: GeneratedSource, constants: dict[str, int]) -> Kernel:
        """Compile the kernel of a plan; UnavailableError where its groups do not fit the device."""
        self.check_text(plan.text)
        kernel = self.device.kernel(source, plan.entry, group_size=plan.group_size, **constants)
        if plan.local_bytes and not kernel.reserve_local(plan.local_bytes):
            raise UnavailableError(f"{self.device_name} refuses {plan.local_bytes} bytes of local memory")
        return kernel


def check_index_range(count: int, name: str) -> None:
    """Raise UnavailableError for more elements than a primitive's kernels count."""
    if count >= MAX_INDEX:
        limit = f"devices take less than {MAX_INDEX}, --target numpy more"
        raise UnavailableError(f"{name} would take {count} elements; {limit}")
