"""Random C$ programs of levels that use the level below several times: their size doubles with each level.

`python -m tests.cdollar.explosions --seed 1 --seconds 60` compiles as many as it can. Each must end within 2 seconds of
CPU time, with a value that NumPy and OpenCL agree on, or with an error of the program.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random

import numpy as np

from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile
from renderer.cdollar.runtime.evaluate import build_main, evaluate_value, load_text, main_function
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.errors import UserError
from renderer.gpu import list_devices, open_device

CPU_SECONDS = 2.0
ARRAYS = {"a": np.arange(1, 6, dtype="f4") / 4, "k": np.array([2, 0, 1, 1, 3], "i4")}
NUMBERS = ["0.5", "0.25", "1.5", "2", "(-0.75)"]

# The levels of a chain: {f} is the level below, {g} this one, {x} and {y} are arguments that may be equal or not.
OF_NUMBERS = [
    "float {g}(float x) => {f}({x}) * {f}({y});",
    "float {g}(float x) => {f}({f}({x}));",
    "float {g}(float x) => {f}({x});",
    "float {g}(float x) => x > {n} ? {f}({x}) : {f}({y});",
    "float {g}(float x) => {f}({x}) > {f}({y}) ? {n} : x;",
    "float {g}(float x) => let y = {f}({x}) in y * y - {f}({y});",
    "float {g}(float x) {{ float y = {f}({x}); return y * {f}({y}) - {f}(y); }}",
    "float {g}(float x) {{ if ({f}({x}) > {n}) return {f}({y}); return x; }}",
    "float {g}(float x) {{ float s = 0; for (int i = 0; i < 1; i++) s += {f}({x}) - {f}({y}); return s * 0.5; }}",
    "float {g}(float x) {{ float y = x; if (y > {n}) y = {f}({x}); else y = {f}({y}); return y + {f}(y); }}",
    "float {g}(float x, float y = {f}({n})) => {f}({x}) - y;",
    "T {g}<T>(T x) => {f}({x}) + {f}({y});",
    "float {g}(float x) => float3({f}({x}), {f}({y}), x).zyx.y;",
    "float {g}(float x) => C({f}({x})).m(C({f}({y})).v).v;",
]
OF_ARRAYS = [
    "float[] {g}(float[] x) => {f}({x}) * {f}({y});",
    "float[] {g}(float[] x) => {f}({f}({x}));",
    "float(int) {g}(float(int) x) => {f}({x}) + {f}({y});",
    "float[] {g}(float[] x) => scan({f}({x})) * {f}({y});",
    "float[] {g}(float[] x) => {f}({x})[::-1] - sort({f}({y}));",
    "float[] {g}(float[] x) {{ let y = {f}({x}); return y * {f}({y}); }}",
    "float[] {g}(float[] x) {{ for (int t = 0; t < 2; t++) x = {f}({x}); return x; }}",
    "float[] {g}(float[] x) {{ var y = {f}({x}); var r(i) = y.wrap(i + 1) - {f}({y})(i); return r; }}",
    "float[] {g}(float[] x) {{ if (max(x) > {n}) return {f}({x}); return {f}({y}); }}",
    "float[] {g}(float[] x) {{ mutable var y = {f}({x}); y[0] = {n}; y[1:3] = {f}({y})[:2]; return y; }}",
    "float[] {g}(float[] x) {{ var r(i : x) = sum({f}({x})(j) * x(i), j : x); return r; }}",
    "float[] {g}(float[] x) => {f}({x}) * fold(step, {n}, {f}({y}));",
    "float[] {g}(float[] x) => [{f}({x}), {f}({y})](1,);",
    "float[] {g}(float[] x) => x + sum({f}({x})(m), m : (0..1) | (2..4));",
    "float[] {g}(float[] x) => x + sum(1, m : 0..(int) clamp(sum({f}({x})), 0, 3));",
]
OF_VARIABLES = [
    "var {g}(float x) = {f}({x}) * {f}({y});",
    "var {g}(float x) = {f}({f}({x}));",
    "var {g} = {f} * {f} - {f};",
    "float(float) {g} = x => {f}({x}) + {f}({y});",
    "var {g}(float x) = x > {n} ? {f}({x}) : {f}({y});",
    "var {g}(float x) = {f}({x}) - sum({f}(a(j) * x), j : a);",
    "float(float) {g} = twice({f});",
    "var {g}(float x) = let y = {f}({x}) in y * y;",
]
OF_INDICES = ["int {g} = {f} + {f};", "int {g} = {f} - 3 * {f};", "int {g} = k.wrap({f}) + k.wrap({f} + 1);"]
OF_BRANCHES = [
    "if ({f} > {n}) {{ {g} = {f} * sum(a); if ({g} > {n}) return {g}; }} else {g} = {f} + 1;",
    "if ({f} > {n}) return {f} * sum(a); else {g} = {f} * 0.5;",
    "if ({f} > {n}) {g} = {f} * sum(a); else {g} = {f} + 1;",
]
OF_GRADIENTS = [
    "float {g}(float x) => grad({f})({x}) * {f}({y});",
    "float {g}(float x) => {f}({x}) * {f}({y});",
    "float {g}(float x) {{ float y = {f}({x}); return y * {f}({y}); }}",
]
NESTED = ["(float) ({0})", "max({0}, x)", "(x => {0})(x)", "({0} > x ? x : {0})", "-({0})", "(let y = {0} in y + y)"]
NESTED += ["sum(a(i{k}) * {0}, i{k} : 0..1)", "float3({0}, 1, 2).x", "+({0})", "(sum(1, i{k} : 0..(int) abs({0})))"]
HEAD = """final class C { float v; C m(float k) => C(v * 0.5 + k); }
float step(float s, float x) => s * 0.5 + x;
float(float) twice(float(float) f) => x => f(f(x));
"""


class Explosions:
    """Texts made of the numbers of a random.Random."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def argument(self, name: str = "x") -> str:
        """An argument: `name`, or something near it."""
        return self.random.choice([name, name, f"{name} + {self.number()}", f"{name} * {self.number()}"])

    def number(self) -> str:
        return self.random.choice(NUMBERS)

    def levels(self, templates: list[str], name: str = "f") -> list[str]:
        """The levels of a chain above `name`1: a few kinds, so that some of their programs stay small."""
        kinds = self.random.sample(templates, min(len(templates), self.random.randint(1, 3)))
        self.count = self.random.choice([2, 4, 6, 8, 10, 14, 18, 24, 40])
        return [
            self.random.choice(kinds).format(
                f=f"{name}{k - 1}", g=f"{name}{k}", x=self.argument(), y=self.argument(), n=self.number()
            )
            for k in range(2, self.count + 1)
        ]

    def text(self) -> str:
        """A program."""
        parts = [self.numbers, self.arrays, self.variables, self.indices, self.branches, self.gradients, self.nested]
        return HEAD + self.random.choice(parts)()

    def over_points(self, expression: str) -> str:
        return f"float[] main(float[] a) {{ var r(i : a) = {expression}; return r; }}\n"

    def numbers(self) -> str:
        chain = "\n".join(["float f1(float x) => x * 0.5 - 1;", *self.levels(OF_NUMBERS)])
        return f"{chain}\n{self.over_points(f'f{self.count}(a(i))')}"

    def arrays(self) -> str:
        chain = "\n".join(["float[] f1(float[] x) => x * 0.5;", *self.levels(OF_ARRAYS)])
        return f"{chain}\nfloat[] main(float[] a) => f{self.count}(a);\n"

    def variables(self) -> str:
        chain = "\n".join(["var f1(float x) = x * 0.5 + 1;", *self.levels(OF_VARIABLES)])
        return f"float[] main(float[] a) {{\n{chain}\nvar r(i : a) = f{self.count}(a(i)); return r; }}\n"

    def indices(self) -> str:
        chain = "\n".join(["int j1 = i + 1;", *self.levels(OF_INDICES, "j")])
        head = "float g(float[] a, int[] k, int i) {\n"
        end = f"return a.{self.random.choice(['clamp', 'wrap', 'zero'])}(j{self.count}); }}\n"
        return head + chain + end + "float[] main(float[] a, int[] k) { var r(i : a) = g(a, k, i); return r; }\n"

    def branches(self) -> str:
        levels = self.levels(OF_BRANCHES, "y")
        names = "".join(f"float y{k} = x;" for k in range(1, self.count + 1))
        return (
            f"float g(float[] a, float x) {{\n{names}\n"
            + "\n".join(levels)
            + (f"\nreturn y{self.count}; }}\n" + self.over_points("g(a, a(i))"))
        )

    def gradients(self) -> str:
        chain = "\n".join(["float f1(float x) => x * x * 0.5;", *self.levels(OF_GRADIENTS)])
        return f"{chain}\n{self.over_points(f'grad(f{self.count})(a(i))')}"

    def nested(self) -> str:
        """An expression in which one kind, or two, are nested."""
        kinds, text = self.random.sample(NESTED, 2), "x"
        for k in range(self.random.choice([4, 8, 14])):
            text = self.random.choice(kinds).format(text, k=k)
            if len(text) > 4000:
                break
        return f"float g(float[] a, float x) => {text};\n{self.over_points('g(a, a(i))')}"


def run(text: str, make_target) -> np.ndarray:
    """The array that a program's main returns."""
    compilation = load_text(SourceFile("explosion.cb", text), make_target)
    function = main_function(compilation)
    given = {name: ARRAYS[name] for name in function.parameter_names}
    value = build_main(compilation, given, {})
    return evaluate_value(compilation, value, function.declaration.name_span).array


def outcome(text: str, make_target) -> np.ndarray | str:
    """The result of a program, or the code of its error."""
    try:
        return run(text, make_target)
    except ProgramError as error:
        assert "explosion.cb:" in str(error), "an error names its line"
        return error.code


def check(text: str, device=None) -> tuple[str, float]:
    """The outcome, "same" or the error's code, and its seconds of CPU time; AssertionError where targets differ."""
    started = time.process_time()
    expected = outcome(text, partial(NumpyTarget, strict=True))
    seconds = time.process_time() - started
    if isinstance(expected, str) or device is None:
        return expected if isinstance(expected, str) else "value", seconds
    started = time.process_time()
    found = outcome(text, lambda dag: DeviceTarget(dag, device, "device", strict=True))
    seconds = max(seconds, time.process_time() - started)
    if isinstance(found, str):
        assert found == "CS0603", found
        return found, seconds
    np.testing.assert_array_equal(found, expected)
    return "same", seconds


class Timeout(BaseException):
    """A program takes too long."""


@contextmanager
def limited_cpu(seconds: float) -> Iterator[None]:
    """Raises Timeout in the block after so many seconds of CPU time of this process."""

    def stop(*_) -> None:
        raise Timeout

    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--device", action="store_true", help="compare with OpenCL")
    options = parser.parse_args()
    device = None
    if options.device:
        device = open_device(next(d.device_id for d in list_devices()[0] if d.backend == "opencl"))
    counts: dict[str, int] = {}
    failed, slowest, number, started = 0, 0.0, 0, time.monotonic()
    check(Explosions(Random("first")).text(), device)  # imports
    while time.monotonic() - started < options.seconds:
        text = Explosions(Random(f"{options.seed} {number}")).text()
        try:
            with limited_cpu(10):
                kind, seconds = check(text, device)
        except UserError as error:
            kind, seconds = type(error).__name__, 0.0
        except (Exception, Timeout) as error:  # noqa: BLE001  # every error is a finding
            kind, seconds = f"{type(error).__name__} {str(error)[:60]!r}", 0.0
            failed += 1
            print(f"// {number}: {kind}\n{text}", flush=True)
        counts[kind] = counts.get(kind, 0) + 1
        if seconds > CPU_SECONDS:
            failed += 1
            print(f"// {number}: {kind} in {seconds:.2f} s\n{text}", flush=True)
        slowest, number = max(slowest, seconds), number + 1
    print(json.dumps({"programs": number, "failed": failed, "slowest": round(slowest, 2), "outcomes": counts}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
