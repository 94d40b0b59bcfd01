"""Repeats the launches of a call of a C$ function, for later calls with arguments of the same shapes and types.

Only buffers and numbers change between calls. So a RecordedCall finds, for each of them, its uses: the launches that
take it, with its position among their arguments; repeat() replaces it there and launches. function.py makes a
RecordedCall from the Recording of the first call (targets/graph_target.py).
"""

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from renderer.cdollar.checker.values import DataValue, FunctionValue, Operand
from renderer.cdollar.ir.operations import kernel_argument
from renderer.cdollar.ir.types import Number
from renderer.cdollar.runtime.array import Array, Results
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.graph_target import PendingCheck, RecordedLaunch, Recording, Representation, Upload
from renderer.cdollar.targets.kernel_plan import KernelPlan
from renderer.gpu import Buffer, Device

ToArgument = Callable[[Number], np.generic]  # converts a number to a kernel argument
Values = list[Any]  # a value for each parameter, as Function prepares it: a number, a NumPy array, an Array, or None
Uses = list[tuple[RecordedLaunch, int]]  # launches that take one buffer, each with its position among the arguments


class RecordedResult:
    """The buffers of one result of a recorded call, and the launches that take each of them."""

    def __init__(self, array: Array) -> None:
        representation = array.representation
        assert representation is not None
        self._ranges, self._types, self.buffers = representation.ranges, representation.types, representation.buffers
        self._description = array.type, array.result, array.origin  # of the Array that each call makes
        self._holder = weakref.ref(representation)  # dead once no caller holds the last result
        self.uses: list[Uses] = []

    def renew(self, device: Device) -> None:
        """Allocate new buffers if the last result is still in use."""
        if self._holder() is not None:
            self.buffers = [device.buffer(b.shape, b.dtype) for b in self.buffers]
            for buffer, uses in zip(self.buffers, self.uses, strict=True):
                set_argument(uses, buffer)

    def array(self, target: DeviceTarget, checks: list[PendingCheck]) -> Array:
        """The result of the launches."""
        representation = Representation(self._ranges, self.buffers, self._types)
        self._holder = weakref.ref(representation)
        type_, result, origin = self._description
        return Array(type_, result, origin, target, representation, checks)


class RecordedCall:
    """The launches of one call, to be repeated with other arguments of the same shapes and types.

    What changes from call to call: arrays that are uploaded (whole, or a region of each), buffers of arguments that are
    on the device already (borrowed), numbers, result buffers, and status words, which report failed checks.
    `is_possible` is False if the call cannot be repeated.
    """

    def __init__(self, recording: Recording, values: Values, bound: list[Operand], result: Array | Results) -> None:
        """Find the uses; `values` are the arguments of the recorded call, `bound` the same in the program."""
        made = list(result) if isinstance(result, Results) else [result]
        arrays = [array for array in made if isinstance(array, Array)]
        self._names = result.names if isinstance(result, Results) else None
        self._target, self._launches = arrays[0].target, recording.launches
        assert isinstance(self._target, DeviceTarget)
        self._device = self._target.device
        # Results and status words, which are new in each call.
        self._results = [RecordedResult(array) for array in arrays]
        buffers = [buffer for recorded in self._results for buffer in recorded.buffers]
        uses = self._uses()
        self._checks = [(check.plan, uses.get(id(check.word), [])) for check in recording.checks]
        for recorded in self._results:
            recorded.uses = [uses.get(id(buffer), []) for buffer in recorded.buffers]
        # Arrays that are uploaded, by parameter. Where `is_whole`, a buffer may be replaced by another.
        nodes = {id(v.node): k for k, v in enumerate(bound) if isinstance(v, FunctionValue)}
        uploads = [(nodes[id(u.node)], u) for u in recording.uploads if id(u.node) in nodes]
        self._uploads = [(k, u, is_whole_upload(u, values[k])) for k, u in uploads]
        self._whole_uses = {id(u): uses.get(id(u.buffers[0]), []) for _, u, is_whole in self._uploads if is_whole}
        # Arrays on the device, by parameter: the uses of each buffer.
        self._borrowed: dict[int, list[Uses]] = {
            k: [uses.get(id(buffer), []) for buffer in value.representation.buffers]
            for k, value in enumerate(values)
            if isinstance(value, Array) and value.representation is not None
        }
        self._last = dict(enumerate(values)) if self._borrowed else {}  # keeps borrowed memory alive
        inputs = {id(b) for _, upload, _ in self._uploads for b in upload.buffers}
        inputs |= {id(b) for k in self._borrowed for b in values[k].representation.buffers}
        # A call is not repeated if no launch writes a result, a result is an argument, or two are one buffer.
        ids, are_written = {id(b) for b in buffers}, all(all(recorded.uses) for recorded in self._results)
        self.is_possible = are_written and not inputs & ids and len(ids) == len(buffers)
        # Numbers: parameter, launch, position among its arguments, and conversion.
        self._scalars: list[tuple[int, RecordedLaunch, int, ToArgument]] = []
        for k, value in enumerate(bound):
            if isinstance(value, DataValue) and isinstance(values[k], float):
                self._scalars += self._number_uses(k, value)
        self._numbers = {k: values[k] for k, *_ in self._scalars}  # scalar arguments of the last call, by parameter

    def _uses(self) -> dict[int, Uses]:
        """The uses of each buffer, by the id of the buffer."""
        uses: dict[int, Uses] = {}
        for launch in self._launches:
            for position, argument in enumerate(launch.arguments):
                uses.setdefault(id(argument), []).append((launch, position))
        return uses

    def _number_uses(self, k: int, value: DataValue) -> list[tuple[int, RecordedLaunch, int, ToArgument]]:
        """The launches that take a number, with its position and its conversion to the argument's type."""
        to_argument = partial(kernel_argument, type_=value.node.type)
        return [
            (k, launch, position, to_argument)
            for launch in self._launches
            for position, scalar in launch.scalars.items()
            if scalar is value.node.attribute
        ]

    def repeat(self, values: Values) -> Array | Results:
        """Launch the recorded kernels for the arguments `values`; return the result, which stays on the device."""
        for recorded in self._results:
            recorded.renew(self._device)
        if self._borrowed:
            self._replace_borrowed(values)
        for k, upload, is_whole in self._uploads:
            if is_whole:
                self._replace(upload, values[k])
            else:
                write_region(upload, values[k])
        for k, launch, position, to_argument in self._scalars:
            if values[k] is not self._numbers[k]:  # equal numbers may differ in bits: 0.0 and -0.0
                launch.set(position, to_argument(values[k]))
        self._numbers = {k: values[k] for k in self._numbers}
        checks = [self._new_check(plan, uses) for plan, uses in self._checks]
        for launch in self._launches:
            launch()
        target = self._target
        assert isinstance(target, DeviceTarget)
        arrays = [recorded.array(target, checks) for recorded in self._results]
        return arrays[0] if self._names is None else Results.named(self._names, arrays)

    def _new_check(self, plan: KernelPlan, uses: Uses) -> PendingCheck:
        """A new status word for each call, so that a result reports the errors of its call only."""
        assert isinstance(self._target, DeviceTarget)
        check = self._target.pending_check(plan)
        set_argument(uses, check.word)
        return check

    def _replace(self, upload: Upload, array: np.ndarray) -> None:
        """Write an argument into the buffer of the last call's array, or into a new buffer."""
        buffer = self._device.replace_contents(upload.buffers[0], array)
        if buffer is not upload.buffers[0]:
            upload.buffers[0] = buffer
            set_argument(self._whole_uses[id(upload)], buffer)

    def _replace_borrowed(self, values: Values) -> None:
        """Set the buffers of arguments on the device; borrowed memory is released when no kernel uses it any more."""
        for k, uses in self._borrowed.items():
            if values[k] is self._last[k]:
                continue
            old, new = self._last[k].representation.buffers, values[k].representation.buffers
            if any(buffer.is_borrowed and buffer not in new for buffer in old):
                self._device.finish()
            for buffer, buffer_uses in zip(new, uses, strict=True):
                set_argument(buffer_uses, buffer)
            self._last[k] = values[k]


def set_argument(uses: Uses, buffer: Buffer) -> None:
    """Replace the buffer in all launches that take it."""
    for launch, position in uses:
        launch.set(position, buffer)


def is_whole_upload(upload: Upload, array: np.ndarray) -> bool:
    """True if an upload copied the array as it is: one buffer, of the same type and size."""
    first = upload.buffers[0]
    return len(upload.buffers) == 1 and first.dtype == array.dtype and first.nbytes == array.nbytes


def write_region(upload: Upload, array: np.ndarray) -> None:
    """Upload an array's region into the buffers of the first call."""
    source = upload.node.attribute.data  # an InputArray (checker/arrays.py): it converts what is read
    for buffer, part in zip(upload.buffers, source._replace(array=array).read(upload.box), strict=True):
        buffer.write(np.ascontiguousarray(part, buffer.dtype).reshape(-1))
