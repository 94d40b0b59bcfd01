"""Functions that every C$ program knows: elementary operations, vectors, domains, files."""

from __future__ import annotations

import math

from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, constant_values
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import INFINITE, UNKNOWN, Range
from renderer.cdollar.ir.operations import OPERATIONS
from renderer.cdollar.ir.types import BOOL, INT, Scalar, Vector, scalar_type_of

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


class Builtins:
    """What Checker knows of built-in functions; uses its arithmetic and compilation."""

    def builtin_or_fail(self, name: str, values: list[DataValue], tree: ast.Call) -> DataValue:
        found = self.builtin(name, values, tree)
        return found if found is not None else self.no_overload(name, [], values, tree)

    def builtin(self, name: str, values: list[DataValue], tree: ast.Call) -> DataValue | None:
        """A built-in function of data; None if it does not take these."""
        if name in OPERATIONS:
            return self.arithmetic.function(name, values)
        bases = [scalar_type_of(v.type) for v in values]
        if any(base in (None, "bool") for base in bases):
            return None
        composed = getattr(self, "builtin_" + name, None)
        counts = {
            "dot": 2,
            "distance": 2,
            "cross": 2,
            "reflect": 2,
            "lerp": 3,
            "mix": 3,
            "clamp": 3,
            "smoothstep": 3,
            "mod": 2,
        }
        if composed is None or len(values) != counts.get(name, 1):
            return None
        return composed(values)

    def op(self, name: str, *values: DataValue) -> DataValue | None:
        if any(v is None for v in values):
            return None
        return self.arithmetic.function(name, list(values)) if name.isalnum() else self.arithmetic.binary(name, *values)

    def real(self, value: DataValue) -> DataValue:
        return self.arithmetic.coerce(value, "float") if scalar_type_of(value.type) in ("int", "uint") else value

    def constant(self, number: float) -> DataValue:
        return self.arithmetic.number(number, "float", True)

    def builtin_dot(self, v: list[DataValue]) -> DataValue | None:
        if not all(isinstance(x.type, Vector) for x in v) or v[0].type.size != v[1].type.size:
            return None
        products = self.op("*", *v)
        found = DataValue(Scalar(products.type.scalar_type), (products.nodes[0],)) if products else None
        for node in products.nodes[1:] if products else ():
            found = self.op("+", found, DataValue(found.type, (node,)))
        return found

    def builtin_length(self, v: list[DataValue]) -> DataValue | None:
        if not isinstance(v[0].type, Vector):
            return None
        return self.op("sqrt", self.builtin_dot([v[0], v[0]]))

    def builtin_distance(self, v: list[DataValue]) -> DataValue | None:
        difference = self.op("-", *v)
        return self.builtin_length([difference]) if difference else None

    def builtin_normalize(self, v: list[DataValue]) -> DataValue | None:
        return self.op("/", self.real(v[0]), self.builtin_length(v))

    def builtin_cross(self, v: list[DataValue]) -> DataValue | None:
        if any(not isinstance(x.type, Vector) or x.type.size != 3 for x in v):
            return None
        a, b = (DataValue(x.type, x.nodes[1:] + x.nodes[:1]) for x in v)
        c, d = (DataValue(x.type, x.nodes[2:] + x.nodes[:2]) for x in v)
        return self.op("-", self.op("*", a, d), self.op("*", c, b))

    def builtin_reflect(self, v: list[DataValue]) -> DataValue | None:
        twice = self.op("*", self.constant(2.0), self.builtin_dot([v[1], v[0]]))
        return self.op("-", v[0], self.op("*", twice, v[1]))

    def builtin_lerp(self, v: list[DataValue]) -> DataValue | None:
        a, b = self.real(v[0]), self.real(v[1])
        return self.op("+", a, self.op("*", self.op("-", b, a), v[2]))

    builtin_mix = builtin_lerp

    def builtin_clamp(self, v: list[DataValue]) -> DataValue | None:
        return self.op("min", self.op("max", v[0], v[1]), v[2])

    def builtin_saturate(self, v: list[DataValue]) -> DataValue | None:
        return self.op("min", self.op("max", self.real(v[0]), self.constant(0.0)), self.constant(1.0))

    def builtin_smoothstep(self, v: list[DataValue]) -> DataValue | None:
        t = self.op("/", self.op("-", self.real(v[2]), v[0]), self.op("-", self.real(v[1]), v[0]))
        if t is None:
            return None
        t = self.builtin_saturate([t])
        return self.op("*", self.op("*", t, t), self.op("-", self.constant(3.0), self.op("*", self.constant(2.0), t)))

    def builtin_fract(self, v: list[DataValue]) -> DataValue | None:
        return self.op("-", self.real(v[0]), self.op("floor", v[0]))

    def builtin_mod(self, v: list[DataValue]) -> DataValue | None:
        a, b = self.real(v[0]), self.real(v[1])
        return self.op("-", a, self.op("*", b, self.op("floor", self.op("/", a, b))))

    def builtin_rsqrt(self, v: list[DataValue]) -> DataValue | None:
        return self.op("/", self.constant(1.0), self.op("sqrt", v[0]))

    def builtin_radians(self, v: list[DataValue]) -> DataValue | None:
        return self.op("*", self.constant(math.pi / 180), v[0])

    def builtin_square(self, v: list[DataValue]) -> DataValue | None:
        return self.op("*", v[0], v[0])

    # Domains

    def one_function(self, tree: ast.Call, usage: str) -> FunctionValue:
        if not tree.arguments or isinstance(tree.arguments[0], ast.Blank):
            raise ProgramError("CS0205", tree.span, f"{usage} needs a function")
        value = self.eval_data(tree.arguments[0])
        if not isinstance(value, FunctionValue):
            raise ProgramError(
                "CS0408", tree.arguments[0].span, f"{tree.arguments[0].span.short} is {value.type}, not a function"
            )
        return value

    def call_domain(self, tree: ast.Call) -> DomainValue:
        function = self.one_function(tree, "domain(f)")
        ranges = self.flat_domain(function)
        if len(tree.arguments) == 1:
            return DomainValue(ranges)
        return DomainValue((ranges[self.dimension(tree.arguments[1], len(ranges))],))

    def dimension(self, tree: ast.AstNode, rank: int) -> int:
        number = self.host_int(tree)
        if number is None:
            return 0
        if not 0 <= number < rank:
            raise ProgramError("CS0316", tree.span, f"dimension {number} is not one of 0..{rank}")
        return number

    def call_size(self, tree: ast.Call) -> DataValue:
        function = self.one_function(tree, "size(f)")
        return self.size_of(function, tree.arguments[1] if len(tree.arguments) > 1 else None, tree.span)

    def size_of(self, function: FunctionValue, dimension: ast.AstNode | None, span: Span) -> DataValue:
        ranges = self.flat_domain(function)
        if dimension is not None:
            ranges = (ranges[self.dimension(dimension, len(ranges))],)
        total = 1
        for range_ in ranges:
            if range_ is INFINITE:
                raise ProgramError("CS0314", span, "this domain is infinite: it has no size")
            total = None if total is None or not isinstance(range_, Range) else total * range_.size
        if total is not None and total >= 2**31:
            raise ProgramError(
                "CS0316",
                span,
                f"the size {total} does not fit into int",
                "use the sizes of the dimensions: `size(f, 0)`",
            )
        return self.host_argument(total, "size")

    def host_argument(self, number: int | None, name: str) -> DataValue:
        return DataValue(INT, (self.dag.runtime_scalar(number, "int", name),))

    def end_of(self, tree: ast.Call, name: str) -> DataValue:
        domain = self.call_domain(tree)
        if len(domain.ranges) != 1:
            raise ProgramError(
                "CS0316",
                tree.span,
                f"{name}(f) of {len(domain.ranges)} dimensions needs one of them",
                f"`{name}(f, 0)`",
            )
        return self.domain_end(domain, name, tree.span)

    def domain_end(self, domain: DomainValue, name: str, span: Span) -> DataValue:
        range_ = domain.ranges[0]
        if range_ is INFINITE:
            raise ProgramError("CS0314", span, "this domain is infinite: it has no ends")
        if not isinstance(range_, Range):
            return self.host_argument(None, name)
        return self.host_argument({"low": range_.low, "high": range_.high, "size": range_.size}[name], name)

    def domain_member(self, domain: DomainValue, tree: ast.MemberAccess) -> DataValue:
        names = {"lo": "low", "low": "low", "hi": "high", "high": "high", "size": "size", "Length": "size"}
        if tree.name not in names or len(domain.ranges) != 1:
            raise ProgramError(
                "CS0206",
                tree.name_span,
                f"a {domain.type} has no member `{tree.name}`",
                "one dimension `domain(f)[0]` has low, high and size",
            )
        return self.domain_end(domain, names[tree.name], tree.span)

    def domain_index(self, domain: DomainValue, tree: ast.Call) -> DomainValue:
        if len(tree.arguments) != 1:
            raise ProgramError("CS0316", tree.span, "a domain takes one index: the dimension")
        return DomainValue((domain.ranges[self.dimension(tree.arguments[0], len(domain.ranges))],))

    def call_file(self, tree: ast.Call) -> FunctionValue:
        ok = (
            len(tree.arguments) == 1 and isinstance(tree.arguments[0], ast.Literal) and tree.arguments[0].kind == "text"
        )
        if not ok:
            raise ProgramError("CS0501", tree.span, "file takes the name of a .npy file as text", 'file("big.npy")')
        return self.compilation.open_file(tree.arguments[0].value, tree.arguments[0].span)

    special = {
        "domain": call_domain,
        "size": call_size,
        "low": lambda self, tree: self.end_of(tree, "low"),
        "high": lambda self, tree: self.end_of(tree, "high"),
        "file": call_file,
    }

    def truth(self, value: DataValue, span: Span):
        """True, False, or None if it depends on what is not known on the host yet."""
        if value.type != BOOL:
            raise ProgramError("CS0405", span, f"a condition is bool, but this is {value.type}", "compare it: `x != 0`")
        found = constant_values(value)
        return None if found is None else bool(found[0])


def is_unknown(domain: tuple) -> bool:
    return any(range_ is UNKNOWN for range_ in domain)
