"""The launches of a call, repeated by later calls with arguments of the same shapes and types."""

from __future__ import annotations

import weakref
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from renderer.cdollar.checker.values import DataValue, FunctionValue, Operand
from renderer.cdollar.ir.operations import argument_of
from renderer.cdollar.runtime.array import Array
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.graph_target import PendingCheck, Representation
from renderer.cdollar.targets.kernel_plan import KernelPlan
from renderer.cdollar.targets.recording import RecordedLaunch, Recording, Upload


class RecordedCall:
    """The launches of one call, to be repeated with other arguments of the same shapes and types."""

    def __init__(self, recording: Recording, values: list, bound: list[Operand], result: Array) -> None:
        self._recording, self._target, self._result = recording, result.target, result
        self._launches = recording.launches
        representation = result.representation
        assert representation is not None and isinstance(self._target, DeviceTarget)
        self._device = self._target.device
        self._ranges, self._types = representation.ranges, representation.types
        self._buffers = representation.buffers
        self._holder = weakref.ref(representation)  # alive while someone may read the last result
        self._facts = result.type, result.result, result.origin
        del self._result
        places = self._places()
        self._checks = [(check.plan, places.get(id(check.word), [])) for check in recording.checks]
        self._outputs = [places.get(id(buffer), []) for buffer in self._buffers]
        nodes = {id(v.node): k for k, v in enumerate(bound) if isinstance(v, FunctionValue)}
        self._uploads = [
            (nodes[id(u.node)], u, is_whole_upload(u, values[nodes[id(u.node)]]))
            for u in recording.uploads
            if id(u.node) in nodes
        ]
        self._whole = {id(u): places.get(id(u.buffers[0]), []) for _, u, is_whole in self._uploads if is_whole}
        self._borrowed: dict[int, list[list[tuple[RecordedLaunch, int]]]] = {
            k: [places.get(id(buffer), []) for buffer in value.representation.buffers]
            for k, value in enumerate(values)
            if isinstance(value, Array) and value.representation is not None
        }
        self._last = dict(enumerate(values)) if self._borrowed else {}  # keeps the memory of others alive
        inputs = {id(b) for _, upload, _ in self._uploads for b in upload.buffers}
        inputs |= {id(b) for k in self._borrowed for b in values[k].representation.buffers}
        # A result that no launch writes, or that is an argument, is not repeated.
        self.is_possible = all(self._outputs) and not inputs & {id(b) for b in self._buffers}
        self._scalars: list[tuple[int, RecordedLaunch, int, Any]] = []
        for k, value in enumerate(bound):
            if isinstance(value, DataValue) and isinstance(values[k], float):
                self._scalars += self._uses_of(k, value)
        self._numbers = {k: values[k] for k, *_ in self._scalars}  # of the last call

    def _places(self) -> dict[int, list[tuple[RecordedLaunch, int]]]:
        """Where each buffer is an argument, by its id."""
        places: dict[int, list[tuple[RecordedLaunch, int]]] = {}
        for launch in self._launches:
            for position, argument in enumerate(launch.arguments):
                places.setdefault(id(argument), []).append((launch, position))
        return places

    def _uses_of(self, k: int, value: DataValue) -> list[tuple[int, RecordedLaunch, int, Any]]:
        """Where a number is an argument of a launch, with the type that it has there."""
        dtype = partial(argument_of, type_=value.node.type)
        return [
            (k, launch, position, dtype)
            for launch in self._launches
            for position, scalar in launch.scalars.items()
            if scalar is value.node.attribute
        ]

    def repeat(self, values: list) -> Array:
        """The result for other arguments."""
        if self._holder() is not None:
            self._renew_outputs()
        if self._borrowed:
            self._replace_borrowed(values)
        for k, upload, is_whole in self._uploads:
            if is_whole:
                self._replace(upload, values[k])
            else:
                write_region(upload, values[k])
        for k, launch, position, dtype in self._scalars:
            if values[k] is not self._numbers[k]:  # equal ones may differ: 0.0 and -0.0
                launch.set(position, dtype(values[k]))
        self._numbers = {k: values[k] for k in self._numbers}
        checks = [self._new_check(plan, places) for plan, places in self._checks]
        for launch in self._launches:
            launch()
        representation = Representation(self._ranges, self._buffers, self._types)
        self._holder = weakref.ref(representation)
        type_, result, origin = self._facts
        return Array(type_, result, origin, self._target, representation, checks)

    def _new_check(self, plan: KernelPlan, places: list[tuple[RecordedLaunch, int]]) -> PendingCheck:
        """A status word of its own for each call: the errors of a call are those of its result."""
        assert isinstance(self._target, DeviceTarget)
        check = self._target.pending_check(plan)
        for launch, position in places:
            launch.set(position, check.word)
        return check

    def _replace(self, upload: Upload, array: np.ndarray) -> None:
        """The bytes of an array for those of the last call's."""
        buffer = self._device.replace_contents(upload.buffers[0], array)
        if buffer is not upload.buffers[0]:
            upload.buffers[0] = buffer
            for launch, position in self._whole[id(upload)]:
                launch.set(position, buffer)

    def _renew_outputs(self) -> None:
        """New buffers for the result, as the last one is still in use."""
        device = self._device
        self._buffers = [device.buffer(b.shape, b.dtype) for b in self._buffers]
        for buffer, places in zip(self._buffers, self._outputs, strict=True):
            for launch, position in places:
                launch.set(position, buffer)

    def _replace_borrowed(self, values: list) -> None:
        """Other buffers for arguments on the device; memory of others is let go when no kernel uses it any more."""
        for k, places in self._borrowed.items():
            if values[k] is self._last[k]:
                continue
            old, new = self._last[k].representation.buffers, values[k].representation.buffers
            if any(buffer.is_borrowed and buffer not in new for buffer in old):
                self._device.finish()
            for buffer, component in zip(new, places, strict=True):
                for launch, position in component:
                    launch.set(position, buffer)
            self._last[k] = values[k]


def is_whole_upload(upload: Upload, array: np.ndarray) -> bool:
    """Whether the buffer of an upload has the very bytes of the array."""
    return (
        len(upload.buffers) == 1 and upload.buffers[0].dtype == array.dtype and upload.buffers[0].nbytes == array.nbytes
    )


def write_region(upload: Upload, array: np.ndarray) -> None:
    """Upload an array's region into the buffers of the first call."""
    source = upload.node.attribute.data
    for buffer, part in zip(upload.buffers, replace(source, array=array).read(upload.box), strict=True):
        buffer.write(np.ascontiguousarray(part, buffer.dtype).reshape(-1))
