"""Built-in functions of data: elementary operations, and functions of vectors that are composed of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature

from renderer.cdollar.checker.node_builder import NodeBuilder
from renderer.cdollar.checker.values import DataValue
from renderer.cdollar.ir.operations import OPERATIONS
from renderer.cdollar.ir.types import INTEGERS, Scalar, Vector, scalar_type_of

CONSTANTS = {"pi": math.pi, "tau": 2 * math.pi, "PI": math.pi}

# Name -> how it is used, for messages.
FUNCTIONS = {
    name: f"{name}({', '.join('xyz'[: len(operation.parameters)])}) of numbers"
    for name, operation in OPERATIONS.items()
    if name.isalnum() and name != "neg"
}
FUNCTIONS |= {
    "dot": "dot(float3, float3)", "length": "length(float3)", "distance": "distance(float3, float3)",
    "normalize": "normalize(float3)", "cross": "cross(float3, float3)", "reflect": "reflect(float3, float3)",
    "lerp": "lerp(from, to, t)", "mix": "mix(from, to, t)", "clamp": "clamp(x, low, high)", "saturate": "saturate(x)",
    "smoothstep": "smoothstep(from, to, x)", "fract": "fract(x)", "mod": "mod(x, y), the sign of y",
    "rsqrt": "rsqrt(x)", "radians": "radians(degrees)", "square": "square(x)",
    "sum": "sum(f)", "prod": "prod(f)", "all": "all(f)", "any": "any(f)", "argmin": "argmin(f)", "argmax": "argmax(f)",
    "fold": "fold(step, start, a(i))", "domain": "domain(f)", "size": "size(f) or size(f, 0)", "low": "low(f, 0)",
    "high": "high(f, 0)", "file": 'file("big.npy")',
}  # fmt: skip
Operand = DataValue | None


class BuiltinFunctions:
    """Calls of built-in functions of data. Each returns None for types that it does not take."""

    def __init__(self, builder: NodeBuilder):
        self.builder = builder
        self.composed: dict[str, Callable[..., Operand]] = {
            "dot": self.dot, "length": self.length, "distance": self.distance, "normalize": self.normalize,
            "cross": self.cross, "reflect": self.reflect, "lerp": self.lerp, "mix": self.lerp, "clamp": self.clamp,
            "saturate": self.saturate, "smoothstep": self.smoothstep, "fract": self.fract, "mod": self.mod,
            "rsqrt": lambda x: self._op("/", self._constant(1.0), self._op("sqrt", x)),
            "radians": lambda x: self._op("*", self._constant(math.pi / 180), x),
            "square": lambda x: self._op("*", x, x),
        }  # fmt: skip

    def call(self, name: str, values: list[DataValue]) -> Operand:
        """The built-in function `name` of these values."""
        if name in OPERATIONS:
            return self.builder.function(name, values)
        function = self.composed.get(name)
        if function is None or len(values) != len(signature(function).parameters):
            return None
        return None if any(scalar_type_of(v.type) in (None, "bool") for v in values) else function(*values)

    def _op(self, name: str, *values: Operand) -> Operand:
        """An operation by its name or operator; None if an operand is None."""
        operands = [value for value in values if value is not None]
        if len(operands) < len(values):
            return None
        return self.builder.function(name, operands) if name.isalnum() else self.builder.binary(name, *operands)

    def _to_float(self, value: DataValue) -> DataValue:
        return self.builder.convert(value, "float") if scalar_type_of(value.type) in INTEGERS else value

    def _constant(self, number: float) -> DataValue:
        return self.builder.constant(number, "float", True)

    def dot(self, a: DataValue, b: DataValue) -> Operand:
        """The sum of the products of two vectors' components, from the first to the last."""
        if not isinstance(a.type, Vector) or not isinstance(b.type, Vector) or a.type.size != b.type.size:
            return None
        products = self._op("*", a, b)
        if products is None:
            return None
        terms = [DataValue(Scalar(node.type), (node,)) for node in products.nodes]
        result: Operand = terms[0]
        for term in terms[1:]:
            result = self._op("+", result, term)
        return result

    def length(self, v: DataValue) -> Operand:
        """The Euclidean norm of a vector."""
        return self._op("sqrt", self.dot(v, v))

    def distance(self, a: DataValue, b: DataValue) -> Operand:
        """The norm of the difference."""
        difference = self._op("-", a, b)
        return self.length(difference) if difference else None

    def normalize(self, v: DataValue) -> Operand:
        """A vector over its norm."""
        return self._op("/", self._to_float(v), self.length(v))

    def cross(self, a: DataValue, b: DataValue) -> Operand:
        """The cross product of two vectors of size 3."""
        if any(not isinstance(x.type, Vector) or x.type.size != 3 for x in (a, b)):
            return None
        a1, b1 = (DataValue(x.type, x.nodes[1:] + x.nodes[:1]) for x in (a, b))
        a2, b2 = (DataValue(x.type, x.nodes[2:] + x.nodes[:2]) for x in (a, b))
        return self._op("-", self._op("*", a1, b2), self._op("*", a2, b1))

    def reflect(self, v: DataValue, normal: DataValue) -> Operand:
        """The mirror image of v at a plane: v - 2 dot(normal, v) normal."""
        twice = self._op("*", self._constant(2.0), self.dot(normal, v))
        return self._op("-", v, self._op("*", twice, normal))

    def lerp(self, a: DataValue, b: DataValue, t: DataValue) -> Operand:
        """Linear interpolation: a + (b - a) t."""
        a, b = self._to_float(a), self._to_float(b)
        return self._op("+", a, self._op("*", self._op("-", b, a), t))

    def clamp(self, x: DataValue, low: DataValue, high: DataValue) -> Operand:
        """min(max(x, low), high)."""
        return self._op("min", self._op("max", x, low), high)

    def saturate(self, x: DataValue) -> Operand:
        """Clamps x to 0..1."""
        return self.clamp(self._to_float(x), self._constant(0.0), self._constant(1.0))

    def smoothstep(self, low: DataValue, high: DataValue, x: DataValue) -> Operand:
        """3 t^2 - 2 t^3 of t = (x - low) / (high - low), clamped to 0..1."""
        t = self._op("/", self._op("-", self._to_float(x), low), self._op("-", self._to_float(high), low))
        t = self.saturate(t) if t else None
        twice = self._op("*", self._constant(2.0), t)
        return self._op("*", self._op("*", t, t), self._op("-", self._constant(3.0), twice))

    def fract(self, x: DataValue) -> Operand:
        """The fraction: x - floor(x)."""
        return self._op("-", self._to_float(x), self._op("floor", x))

    def mod(self, a: DataValue, b: DataValue) -> Operand:
        """The remainder with the sign of b: a - b floor(a / b)."""
        a, b = self._to_float(a), self._to_float(b)
        return self._op("-", a, self._op("*", b, self._op("floor", self._op("/", a, b))))
