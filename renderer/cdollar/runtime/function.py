"""C$ functions as Python functions, and the functions of their derivatives.

Function.__call__() prepares the arguments (_prepare), runs the program at the first call with arguments of some types
and shapes (_first_call), and keeps the launches of this run as a RecordedCall (recorded_call.py). Later calls repeat
them with other buffers and numbers, as JAX's jit does with traced functions.
"""

import functools
import threading
import warnings
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from renderer.cdollar.checker.arrays import array_function
from renderer.cdollar.checker.tables import UserFunction
from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, Operand, TupleValue, Value
from renderer.cdollar.frontend.diagnostics import ArgumentError, ProgramError, SourceFile
from renderer.cdollar.ir.dag import Range
from renderer.cdollar.ir.types import Data, FunctionType, Number, Record, Scalar, Tuple, component_types, element_type
from renderer.cdollar.lowering.compilation import Compilation
from renderer.cdollar.lowering.conversions import materialize, resolve
from renderer.cdollar.lowering.gradients import gradient_function
from renderer.cdollar.runtime import evaluate
from renderer.cdollar.runtime.array import Array, Results
from renderer.cdollar.runtime.parameters import PICTURE_PARAMETERS, default_value, parse_number, runtime_value
from renderer.cdollar.runtime.recorded_call import RecordedCall
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.graph_target import DeviceArray, Recording, Representation
from renderer.cdollar.targets.open_target import target_factory
from renderer.gpu.dlpack import CPU, HasDlpack, has_dlpack, import_tensor
from renderer.plain import format_value

MAX_RECORDINGS = 64  # recorded calls of a function, which differ in shapes, types and values of integers
FLOATS = ("half", "float", "double")
VJP = "vjp_of_result"  # a name that no program has, of the function that vjp() adds to it
# The scalar types of tensors, by NumPy's kind and size.
SCALARS = {"f2": "half", "f4": "float", "f8": "double", "u1": "byte", "i4": "int", "u4": "uint", "i8": "long"}

# Pointer, shape and type of another library's tensor, and the Array that uses its memory.
Borrowed = tuple[int, tuple[int, ...], np.dtype, Array]


def grad(function: "Function", *parameters: str) -> "Function":
    """The function of the derivatives of a function that returns one float or double.

    It takes the same arguments and returns an array, vector or number like the parameter of the name given, by default
    the first one; Results with a name for each of several parameters. Raises ProgramError if there is no gradient.
    """
    return _gradient(grad, function, parameters)


def value_and_grad(function: "Function", *parameters: str) -> "Function":
    """The function of Results: the value of a function, as `value`, and its derivatives as grad() returns them."""
    return _gradient(value_and_grad, function, parameters)


def vjp(function: "Function", *parameters: str) -> "Function":
    """The product of a vector with the Jacobian of a function that returns a number or an array of float or double.

    It takes the vector, which is like the result, then the function's arguments, and returns what grad() returns: the
    derivatives of sum(vector * result).
    """
    return _gradient(vjp, function, parameters)


def _gradient(called: Callable[..., "Function"], function: "Function", parameters: tuple[str, ...]) -> "Function":
    """The function for `called`: grad, value_and_grad or vjp of `function` by its parameters.

    It compiles the program of `function` again, for vjp with a function vector_product() more, and calls the gradient
    that the compiler derives (lowering/gradients.py).
    """
    name = f"cdollar.{called.__name__}"
    if not isinstance(function, Function):
        raise ArgumentError(f"{name}: needs a C$ function, but {format_value(function)} is given")
    if function._made_by[0] is not Function:  # noqa: SLF001  # `function` is of this class
        raise ArgumentError(f"{name}: {function!r} is a gradient, and second derivatives are not available")
    for parameter in parameters:
        if not isinstance(parameter, str):
            raise ArgumentError(f"{name}: parameter is a name, but {format_value(parameter)} is given")
    text, target, strict, given = function._given  # noqa: SLF001
    added = vector_product(function) if called is vjp else ""
    made = Function(text + added, target, strict, given or function.declaration.name)
    made._made_by = called, (function, *parameters)  # noqa: SLF001
    declared, span = made.declaration, function.declaration.declaration.name_span
    if called is vjp:
        declared = next(f for f in made._compilation.program.functions.all() if f.name == VJP)  # noqa: SLF001
        parameters = parameters or function.names[:1]
    made._call(gradient_function(declared, parameters, span, called is value_and_grad))  # noqa: SLF001
    return made


def vector_product(function: "Function") -> str:
    """The text of a function, to be added to a program: the sum of a function's result times a vector."""
    if not isinstance(function, Function):
        raise ArgumentError(f"cdollar: needs a C$ function, but {format_value(function)} is given")
    declared, result = function.declaration, function.declaration.result_type
    if not isinstance(result, FunctionType | Scalar):
        raise ArgumentError(f"cdollar.vjp: {function!r} returns {result}, which has no gradient by one vector")
    heads = ", ".join([f"{result} {VJP}_vector", *(p.span.text for p in declared.declaration.parameters)])
    value = f"{VJP}_result * {VJP}_vector"
    if isinstance(result, FunctionType):  # indices of the vector start at 0, also where indices of the result do not
        indices = [f"{VJP}_{k}" for k in range(len(result.parameters))]
        vector_indices = ", ".join(f"{index} - low({VJP}_result, {k})" for k, index in enumerate(indices))
        each = ", ".join(indices)
        value = f"sum({VJP}_result({each}) * {VJP}_vector({vector_indices}), ({each}) : {VJP}_result)"
    call = f"var {VJP}_result = {declared.name}({', '.join(function.names)});"
    return f"\n{element_type(result)} {VJP}({heads}) {{ {call} return {value}; }}"


class Function:
    """A C$ function to be called from Python; see decorator.py."""

    def __init__(self, text: str, target: str | None = None, strict: bool = False, name: str = "") -> None:
        """Parse and check the program.

        `name` names the program in errors, and the function to call unless there is a `main`.
        """
        # Pickling calls `_made_by`: Function, or a gradient's function, with the arguments that made this object.
        self._source, self._given = SourceFile(f"<{name or 'C$'}>", text), (text, target, strict, name)
        self._made_by: tuple[Callable[..., Function], tuple[object, ...]] = Function, self._given
        self._compilation = evaluate.load_text(self._source, target_factory(target, None, strict))
        self.target = self._compilation.target
        self._lock = threading.Lock()
        self._call(_entry(self._compilation.program.functions.all(), self._source, name, self._compilation))

    def _call(self, declaration: UserFunction) -> None:
        """Call this function of the program from now on. For a gradient, called again after __init__()."""
        self.declaration = declaration
        self.names = self.declaration.parameter_names
        self._types = self.declaration.parameter_types
        self._has_default = [p.default is not None for p in self.declaration.declaration.parameters]
        # True for floats that recorded launches take as arguments, so that calls with other values can repeat them.
        self._is_float = [isinstance(t, Scalar) and t.name in FLOATS for t in self._types]
        self._recorded: dict[tuple[Hashable, ...], RecordedCall] = {}  # by the signatures of the arguments
        self._borrowed_last: dict[str, Borrowed] = {}  # by parameter

    @functools.cached_property
    def grad(self) -> "Function":
        """The derivatives by the first parameter, as a function of the same arguments."""
        return grad(self)

    def __reduce__(self) -> "tuple[Callable[..., Function], tuple[object, ...]]":
        """Pickled by its text, options and parameter of a gradient; the copy compiles anew."""
        return self._made_by

    def __repr__(self) -> str:
        return f"<C$ function {self.declaration.result_type} {self.declaration.signature}>"

    def __call__(self, *arguments: object, **named: object) -> Array | Results:
        """The value for arguments, by position or by name. It is computed on the device, which is not waited for."""
        values = [self._prepare(k, value) for k, value in enumerate(self.arranged(arguments, named))]
        with self._lock:
            key = tuple(map(self._signature, self._is_float, values))
            recorded = self._recorded.get(key)
            if recorded is not None:
                return recorded.repeat(values)
            try:
                return self._first_call(key, values)
            except ProgramError as error:  # the compiler's frames say nothing about the program
                raise error.with_traceback(None) from None

    def picture(self, width: int, height: int, **named: object) -> Array:
        """The picture of a program whose main takes int x and int y: (height, width), or with the channels last.

        Other parameters are given by name; `time` and `mouse` have the defaults of pictures.
        """
        compilation, names = self._compilation, self.names
        if not evaluate.is_picture(self.declaration):
            wanted = "it takes int x and int y, and returns float, float3 or float4"
            raise ArgumentError(f"{self!r} is no picture: {wanted}")
        sizes = {"width": width, "height": height}
        for name, size in sizes.items():
            if not isinstance(size, int) or not 1 <= size <= evaluate.MAX_PICTURE_SIDE:
                allowed = f"a picture has 1 to {evaluate.MAX_PICTURE_SIDE} pixels on a side"
                raise ArgumentError(f"{name}={format_value(size)}: {allowed}")
        for name in named.keys() - set(names):
            raise ArgumentError(f"{name}: {self!r} has no such parameter; it has {', '.join(names)}")
        given = PICTURE_PARAMETERS | sizes
        given = {n: given.get(n) for n, has_default in zip(names, self._has_default, strict=True) if not has_default}
        given |= named
        with self._lock:
            compilation.restart(self._source)
            values: list[Value | None] = []  # None for x and y, which over_pixels() binds
            for k, name in enumerate(names):
                values.append(None if name in ("x", "y") else self._bind(k, self._prepare(k, given.get(name))))
            whole = evaluate.over_pixels(compilation, self.declaration, values, (0, 0, width, height))
            result = evaluate.evaluate_value(compilation, whole, self.declaration.declaration.name_span)
        assert result.array is not None
        return Array.of_host(result.type, result.array)

    def arranged(self, arguments: tuple[object, ...], named: dict[str, object]) -> list[object]:
        """A value for each parameter; None for parameters that keep their defaults."""
        if not named and len(arguments) == len(self.names) and not any(a is None for a in arguments):
            return list(arguments)
        if len(arguments) > len(self.names):
            raise ArgumentError(f"{self!r} takes {len(self.names)} arguments, found {len(arguments)}")
        values = list(arguments) + [None] * (len(self.names) - len(arguments))
        for name, value in named.items():
            if name not in self.names:
                raise ArgumentError(f"{name}: {self!r} has no such parameter; it has {', '.join(self.names) or 'none'}")
            k = self.names.index(name)
            if k < len(arguments):
                raise ArgumentError(f"{name}: is given twice, by position and by name")
            values[k] = value
        for name, value, has_default in zip(self.names, values, self._has_default, strict=True):
            if value is None and not has_default:
                raise ArgumentError(f"{name}: is missing in the call of {self!r}")
        return values

    def _prepare(self, position: int, value: object) -> Any:
        """An argument as a number, a tuple, a NumPy array, or an Array on this function's device."""
        name, type_ = self.names[position], self._types[position]
        if value is None or type(value) is float:  # None: the parameter keeps its default
            return value
        if isinstance(value, np.ma.MaskedArray):
            raise ArgumentError(f"{name}: is a masked array; C$ has no masks, `.filled(x)` gives an array")
        if isinstance(type_, Data):
            is_number = isinstance(value, (bool, int, np.bool_, np.integer, np.floating))
            parts: tuple[Any, ...] = (value,) if is_number else _components(value, type_, name)
            if not isinstance(type_, Scalar) or len(parts) != 1:
                return _numbers(parts, type_, name)
            try:
                return float(parts[0]) if self._is_float[position] and not isinstance(parts[0], bool) else parts[0]
            except OverflowError:
                raise ArgumentError(f"{name}: is {type_}, and {format_value(value)} is too large for it") from None
        if type(value) is np.ndarray:
            return value
        if isinstance(value, Array):  # stays on its device if this function runs there; records have several buffers
            here, there = self.target, value.target
            is_here = isinstance(here, DeviceTarget) and there is not None and there.device is here.device
            return value if is_here and not isinstance(value.result, Record) else value.numpy()
        if has_dlpack(value):
            return self._borrowed(name, value)
        try:
            return np.asarray(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(f"{name}: is {type_}, but {format_value(value)} is no array: {error}") from None

    def _borrowed(self, name: str, value: HasDlpack) -> Array | np.ndarray:
        """A tensor of another library: on this function's device as it is, else as a NumPy array."""
        try:
            tensor = import_tensor(value)
        except BufferError as error:
            raise ArgumentError(f"{name}: {error}") from None
        # A tensor with the memory of the last call's becomes the same Array: RecordedCall.repeat() then need not set
        # the buffers of its launches anew. The buffer keeps the new object alive, which now owns the memory.
        known = self._borrowed_last.get(name)
        if known is not None and (tensor.pointer, tensor.shape, tensor.dtype) == known[:3]:
            representation = known[3].representation
            assert representation is not None
            representation.buffers[0].keep(tensor)
            return known[3]
        scalar = SCALARS.get(tensor.dtype.str[1:])
        if scalar and isinstance(self.target, DeviceTarget) and (buffer := self.target.device.borrow(tensor)):
            ranges = tuple(Range(0, size) for size in tensor.shape)
            array = Array(Scalar(scalar), Scalar(scalar), (), self.target, Representation(ranges, [buffer], (scalar,)))
            self._borrowed_last[name] = tensor.pointer, tensor.shape, tensor.dtype, array
            return array
        if tensor.device_type != CPU:
            here = self.target.device_name
            raise ArgumentError(f"{name}: the tensor is on another device than {here}; move it there")
        return np.from_dlpack(value)

    @staticmethod
    def _signature(is_float: bool, value: object) -> Hashable:
        """The key of an argument for recorded launches: everything but the contents of arrays and floats."""
        if is_float:
            return value is None  # True: the parameter keeps its default
        if type(value) is np.ndarray:
            return value.dtype, value.shape
        if isinstance(value, Array) and value.representation is not None:
            return value.representation.shape, value.representation.types
        return type(value), tuple(value) if isinstance(value, (list, tuple)) else value

    # The first call

    def _first_call(self, key: tuple[Hashable, ...], values: list[Any]) -> Array | Results:
        """Lowers and runs the program with the arguments `values`, and keeps the recording of its launches by `key`.

        Nothing is kept if the host took part in the run, or if the program read the value of a float argument while it
        was built (a loop bound, for example): that float becomes a part of the key, and the next call records.
        """
        compilation, target = self._compilation, self.target
        compilation.restart(self._source)
        host = compilation.program.host
        host.scalars_read.clear()
        recording = Recording()
        if isinstance(target, DeviceTarget):
            target.recording = recording
        try:
            bound = [self._bind(k, value) for k, value in enumerate(values)]
            value = compilation.call_main(self.declaration, list(bound))
            result = self._evaluate(value, recording)
        finally:
            if isinstance(target, DeviceTarget):
                target.recording = None
        for warning in compilation.dag.warnings.values():
            warnings.warn(str(warning), stacklevel=3)
        compilation.dag.warnings.clear()
        arrays = list(result) if isinstance(result, Results) else [result]
        is_on_device = all(isinstance(a, Array) and a.representation is not None for a in arrays)
        if not is_on_device or not recording.is_complete:
            return result
        read = {s.unique_id for s in host.scalars_read}
        for k, given in enumerate(bound):
            if self._is_float[k] and isinstance(given, DataValue) and given.node.attribute.unique_id in read:
                self._is_float[k] = False  # the argument's value decides what is computed, so it belongs to the key
                return result
        recorded = RecordedCall(recording, values, bound, result)
        if recorded.is_possible:
            if len(self._recorded) >= MAX_RECORDINGS:  # drop the oldest, whose launches may still use its buffers
                target.device.finish()  # type: ignore[attr-defined]  # a DeviceTarget, as it was recorded
                self._recorded.pop(next(iter(self._recorded)))
            self._recorded[key] = recorded
        return result

    def _bind(self, position: int, value: object) -> Operand:
        """A parameter's value in the program."""
        compilation, name, type_ = self._compilation, self.names[position], self._types[position]
        if value is None:
            default = self.declaration.declaration.parameters[position].default
            assert default is not None, "arranged() has asked for it"
            return default_value(compilation, default, type_, name)
        if isinstance(type_, Data):
            return runtime_value(compilation.dag, _numbers(value, type_, name), type_, name)
        if not isinstance(type_, FunctionType) or not type_.takes_indices:
            raise ArgumentError(f"{name}: is {type_}; from Python only functions of int indices are given, as arrays")
        if isinstance(value, Array):
            on_device = self._device_function(name, type_, value)
            if on_device is not None:
                return on_device
            value = value.numpy()
        if not isinstance(value, np.ndarray):
            raise ArgumentError(f"{name}: is {type_}, an array, but {format_value(value)} is given")
        return array_function(compilation.dag, value, type_, name)

    def _device_function(self, name: str, type_: FunctionType, value: Array) -> FunctionValue | None:
        """An array of the device as a function; None if its elements are of another type."""
        representation, target = value.representation, self.target
        assert isinstance(target, DeviceTarget) and representation is not None
        if representation.types != component_types(type_.result):
            return None
        if len(representation.ranges) != len(type_.parameters):
            raise ArgumentError(f"{name}: has shape {value.shape}, but {type_} is needed")
        ranges = tuple(Range(0, r.size) for r in representation.ranges)
        stored = Representation(ranges, representation.buffers, representation.types)
        array = type_.as_array_type
        node = self._compilation.dag.array(array, name, DeviceArray(target, stored), ranges)
        target.representations[node] = stored
        return FunctionValue(array, node, ranges)

    def _evaluate(self, value: Value, recording: Recording) -> Array | Results:
        """The result: left on a device, else read. A tuple of numbers, which is data in C$, becomes Results too."""
        if isinstance(value, DataValue) and isinstance(value.type, Record) and value.type.name.startswith("("):
            value = TupleValue(Tuple(value.type.name, value.type.fields), value.fields)
        compilation, target, span = self._compilation, self.target, self.declaration.declaration.name_span
        is_nested = isinstance(value, TupleValue) and any(isinstance(v, TupleValue | DomainValue) for v in value.fields)
        if not isinstance(target, DeviceTarget) or is_nested:
            return self._read(evaluate.evaluate_value(compilation, value, span))
        body, items = compilation.body(), value.fields if isinstance(value, TupleValue) else (value,)
        parts = [resolve(body, item, span) for item in items]
        parts = [materialize(body, part, span) if isinstance(part, FunctionValue) else part for part in parts]
        nodes = [p.node if isinstance(p, FunctionValue) else body.dag.abstraction((), p.nodes) for p in parts]
        made = target.run_all(nodes)
        arrays = []
        for part, representation in zip(parts, made, strict=True):
            domain = part.domain if isinstance(part, FunctionValue) else ()
            origin, result = tuple(r.low for r in domain if isinstance(r, Range)), element_type(part.type)
            arrays.append(Array(part.type, result, origin, target, representation, recording.checks))
        return Results.named(value.items, arrays) if isinstance(value, TupleValue) else arrays[0]

    def _read(self, result: evaluate.Result) -> Array | Results:
        """A result in the host's memory; raises CS0306 for domains."""
        if result.items:
            return Results.named(result.items, map(self._read, result.items.values()))
        if result.array is None:
            span = self.declaration.declaration.name_span
            raise ProgramError("CS0306", span, f"the result is a {result.type}, which Python has no array of")
        return Array.of_host(result.type, result.array, result.origin)


def _entry(functions: list[UserFunction], source: SourceFile, name: str, compilation: Compilation) -> UserFunction:
    """The function to call: `main`, the one of this name, or the only one of the program."""
    declared = [f for f in functions if f not in compilation.program.functions.prelude_functions]
    for wanted in ("main", name):
        found = [f for f in declared if f.name == wanted]
        if len(found) == 1:
            return found[0]
    if len(declared) == 1:
        return declared[0]
    names = ", ".join(dict.fromkeys(f.name for f in declared)) or "none"
    raise ArgumentError(f"{source.name}: has the functions {names}; one must be `main`, or name=... must name one")


def _components(value: object, type_: Data, name: str) -> tuple[Number, ...]:
    """The components of a number or vector as Python numbers; raises ArgumentError."""
    try:
        parts = np.asarray(value).reshape(-1).tolist()
    except (TypeError, ValueError):
        parts = [value]
    if any(not isinstance(part, (bool, int, float)) for part in parts):
        raise ArgumentError(f"{name}: is {type_}, but {format_value(value)} is given")
    return tuple(parts)


def _numbers(value: object, type_: Data, name: str) -> tuple[Number, ...]:
    """The components of a number or vector, checked as texts of the command line are."""
    try:
        return parse_number(",".join(map(repr, _components(value, type_, name))), type_, name)
    except ArgumentError as error:  # from the command line, where numbers come from --set
        raise ArgumentError(str(error).replace(f"--set {name}=", f"{name}: ", 1)) from None
