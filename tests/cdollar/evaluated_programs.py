"""Random programs that NumPy evaluates by itself while they are written: an independent witness of what C$ means.

    python -m tests.cdollar.evaluated_programs --seed 1 --programs 1000 --target opencl

A program is a list of statements, each with the value of its variable by NumPy in double precision. A statement is
kept only if all of its numbers are exact in float, whatever the order of sums: so every target must yield these bits.
`main` returns the last values as a tuple.
"""

# ruff: noqa: E501  # each text stands beside its value
import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

from renderer.cdollar.targets.open_target import target_factory
from renderer.errors import UnavailableError
from renderer.gpu import list_devices, open_device
from tests.cdollar.evaluate import result_of
from tests.cdollar.sweep import Unit, UnitTarget

GRAIN = 64  # values are multiples of 1 / GRAIN
LIMIT = 2**24  # integers up to here are exact in float
MOST_STATEMENTS, RESULTS = 9, 4

DEFINITIONS = """
final class Pair {
    float x; int n;
    float weight() => x * 2 + n;
    Pair moved(int k) => Pair(x + k, n - k);
    Pair operator +(Pair a, Pair b) => Pair(a.x + b.x, a.n + b.n);
}
final class Ramp : float(int) { float slope; int from; float operator ()(int i) => slope * (i - from); }
final class Bundle { float[] values; int count; float total() => sum(values) + count; }
mutable class Counter { float sum; int count; }
[Associative] float add(float x, float y) => x + y;
[Associative] int later(int x, int y) => y != 0 ? y : x;
[Associative] Pair joined(Pair a, Pair b) => Pair(max(a.x, b.x), a.n + b.n);
(float[] low, int n, float s) divided(float[] v, int n) { var l(i : v) = 0.5 * v(i); return n > 1 ? (l, n, 2) : (v, 3, 1); }
Bundle bundle(float[] v, int n) { var (l, k, s) = divided(v, n); return Bundle(l, k + (int) s); }
(int quotient, int rest) divide(int a, int b) { int q = a / b; return (q, a - q * b); }
T twice<T>(T x) => x + x;
int counted(int s, float x) => x > 0 ? s + 1 : s;
Pair noted(Pair s, float x) => Pair(max(s.x, x), s.n + 1);
float last(float s, float x) => x != 0 ? x : s;
float middle(float a, float b, float c) {
    float t[3];
    t[0] = a; t[1] = b; t[2] = c;
    for (int i = 1; i < 3; i++) {
        int k = i;
        while (k > 0) {
            if (t[k - 1] <= t[k]) break;
            float s = t[k]; t[k] = t[k - 1]; t[k - 1] = s;
            k--;
        }
    }
    return t[1];
}
int bits(int n) {
    int stack[33];
    int top = 0, c = 0;
    uint m = (uint) n;
    do { stack[top] = (int) (m & 1u); m >>= 1; top++; } while (m != 0u);
    for (int i = 0; i < 33; i++) { if (i >= top) continue; c += stack[i]; }
    return c;
}
float normalized(float[] row) { let m = max(row); var d(j) = m - row(j); return sum(d); }
float[] doubled(float[] row) { float[] r = row; for (int t = 0; t < 2; t++) { r = r + row; } return r; }
float squares(float[] v, float[] u) => sum(v(i) * v(i) * u(i), i : v);
float steps(float[] v) { var d(i : v) = v.clamp(i + 1) - v(i); return sum(d * d); }
float best(float[] v) => max(v) * 2 + min(v);
float mixed(float[] v, float k) { float[] w = k * v; return sum(w(i) * v(i), i : v) + k; }
"""


class Inexact(Exception):
    """A value is not exact in float, or its integers may overflow."""


def checked(value):
    """The value; raises Inexact."""
    value = np.asarray(value)
    if value.dtype.kind in "iu" and value.dtype.itemsize == 8 and value.size and np.abs(value).max() >= 2**31:
        raise Inexact
    if value.dtype.kind == "f" and value.size:
        scaled = value.astype("f8") * GRAIN
        if not np.isfinite(scaled).all() or (scaled != np.rint(scaled)).any() or np.abs(scaled).max() >= LIMIT:
            raise Inexact
    return value


def summed(terms, axis=None):
    """The sum of terms whose partial sums are exact; raises Inexact."""
    terms = np.asarray(terms)
    if terms.dtype.kind == "f" and terms.size and (np.abs(terms).sum() * GRAIN * GRAIN >= LIMIT):
        raise Inexact
    return terms.sum(axis=axis)


class EvaluatedPrograms:
    """A program made of the numbers of a random.Random, with its arguments and its results."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines, self.known = random, [], {}
        rng = np.random.default_rng(random.randrange(2**32))
        n, rows, columns = random.randint(1, 20), random.randint(1, 6), random.randint(1, 6)
        self.arguments = {
            "a": (rng.integers(-16, 17, n) / 4).astype("f4"), "b": rng.integers(-5, 6, n).astype("f4"),
            "k": rng.integers(-9, 10, n).astype("i4"), "m": rng.integers(-3, 4, (rows, columns)).astype("f4"),
            "h": (rng.integers(-64, 65, n) / 16).astype("f2"), "t": rng.integers(0, 256, n).astype("u1"),
        }  # fmt: skip
        for name, array in self.arguments.items():
            kind = {"h": "half", "t": "byte", "k": "int"}.get(name, "float")
            self.known[name] = kind, array.astype("f8" if array.dtype.kind == "f" else "i8")
        while len(self.lines) < random.randint(3, MOST_STATEMENTS):
            self.statement()

    # Choices

    def array(self, kind="float", like=None, rank=1, fresh=True) -> tuple[str, np.ndarray]:
        """A known array, of the size of `like` if given; raises Inexact if there is none."""
        found = [
            (name, value) for name, (k, value) in self.known.items()
            if k == kind and value.ndim == rank and (value.size or not fresh) and (like is None or value.shape == like.shape)
        ]  # fmt: skip
        if not found:
            raise Inexact
        return self.random.choice(found[-6:] if self.random.random() < 0.7 else found)

    def number(self) -> tuple[str, float]:
        """A number, or a known one."""
        found = [(name, float(v)) for name, (k, v) in self.known.items() if k == "float" and v.ndim == 0]
        if found and self.random.random() < 0.5:
            return self.random.choice(found)
        value = self.random.choice([0.25, 0.5, -1.0, 2.0, 3.0, -1.5])
        return (f"({value})" if value < 0 else str(value)), value

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def statement(self) -> None:
        """Adds the lines of a random statement whose value is exact."""
        method = self.random.choice(STATEMENTS)
        name = f"v{len(self.lines)}"
        try:
            with np.errstate(all="ignore"):
                lines, kind, value = method(self, name)
                value = checked(value() if callable(value) else value)
        except Inexact:
            return
        self.lines.append(lines)
        self.known[name] = kind, value.astype("f8" if kind == "float" else "i8")

    def text(self) -> str:
        """The program."""
        results = list(self.results())
        fields = ", ".join(f"{self.type_of(name)} {name}" for name in results)
        values = ", ".join(results)
        head = f"({fields}) main(float[] a, float[] b, int[] k, float[,] m, half[] h, byte[] t)"
        return f"{DEFINITIONS}{head} {{\n    " + "\n    ".join(self.lines) + f"\n    return ({values});\n}}\n"

    def type_of(self, name: str) -> str:
        kind, value = self.known[name]
        return kind + ("" if value.ndim == 0 else "[]" if value.ndim == 1 else "[,]")

    def results(self) -> dict[str, np.ndarray]:
        """The values of `a`, since a tuple of numbers would be data, and of the last variables, by their names."""
        made = [name for name in self.known if name.startswith("v")][-RESULTS:]
        return {name: self.known[name][1] for name in ["a", *made]}

    # Statements: each yields its text, the kind of its elements, and its value

    def arithmetic(self, v):
        (a, x), op = self.array(), self.random.choice("+-*")
        b, y = self.array(like=x)
        value = {"+": x + y, "-": x - y, "*": x * y}[op]
        form = self.random.choice(
            [f"var {v} = {a} {op} {b};", f"var {v}(i) = {a}(i) {op} {b}(i);", f"let {v}(i) = {a}(i) {op} {b}(i);"]
        )
        return form, "float", value

    def scaled(self, v):
        (a, x), (c, y) = self.array(), self.number()
        return f"float[] {v} = {c} * {a} + {c};", "float", x * y + y

    def integers(self, v):
        a, x = self.array("int")
        b, y = self.array("int", like=x)
        c = self.integer(1, 7)
        form, value = self.random.choice(
            [("X + Y", x + y), ("X * Y", x * y), ("X & Y", x & y), ("X | Y", x | y), ("X ^ Y", x ^ y),
             (f"X / {c} - Y", np.trunc(x / c) - y), (f"X % {c} + Y", np.fmod(x, c) + y),
             (f"(X << {c % 3}) ^ Y", (x << (c % 3)) ^ y), (f"(X >> {c % 3}) | Y", (x >> (c % 3)) | y)]
        )  # fmt: skip
        form = form.replace("X", f"{a}(i)").replace("Y", f"{b}(i)")
        return f"var {v}(i) = {form};", "int", value.astype("i8")

    def wide(self, v):
        a, x = self.array("int")
        c = self.integer(2, 9)
        return (
            f"var {v}(i) = (int) (((long) {a}(i) * {c}000000007L) % 1000L);",
            "int",
            np.fmod(x * (c * 10**9 + 7), 1000),
        )

    def choice(self, v):
        a, x = self.array()
        b, y = self.array(like=x)
        c, z = self.number()
        return f"var {v}(i) = {a}(i) > {c} && {b}(i) != 0 ? {b}(i) : {c};", "float", np.where((x > z) & (y != 0), y, z)

    def border(self, v):
        a, x = self.array()
        shift, mode, n = self.integer(-25, 25), self.random.choice(["clamp", "wrap", "mirror", "zero"]), len(x)
        if abs(shift) >= n:
            shift = int(np.sign(shift)) * (n - 1)
        i = np.arange(n) + shift
        index = {"clamp": np.clip(i, 0, n - 1), "wrap": i % n, "zero": np.clip(i, 0, n - 1)}.get(mode)
        if mode == "mirror":
            index = np.where(i < 0, -1 - i, np.where(i >= n, 2 * n - 1 - i, i))
        value = np.where((i < 0) | (i >= n), 0, x[index]) if mode == "zero" else x[index]
        return f"var {v}(i : {a}) = {a}(i) + {a}.{mode}(i + ({shift}));", "float", x + value

    def kept_border(self, v):
        a, x = self.array()
        i = np.arange(3) * 2 + 40
        return f"var f{v}(i) = {a}.wrap(2 * i); var {v}(i : 0..3) = f{v}(i + 20);", "float", x[i % len(x)]

    def sliced(self, v):
        a, x = self.array()
        low, step = self.integer(0, len(x) - 1), self.random.choice([1, 2, 3])
        reverse = self.random.random() < 0.3
        text, value = (f"[::-{step}]", x[::-step]) if reverse else (f"[{low}::{step}]", x[low::step])
        return f"float[] {v} = {a}{text};", "float", value

    def scanned(self, v):
        kind = self.random.choice(["sum", "max", "exclusive", "segments", "record", "int", "later"])
        a, x = self.array("int" if kind in ("int", "later") else "float")
        if kind == "int":
            return f"let {v} = scan({a});", "int", np.cumsum(x)
        if kind == "later":
            value = x.copy()
            for i in range(1, len(x)):
                value[i] = x[i] if x[i] != 0 else value[i - 1]
            return f"let {v} = scan(later, {a});", "int", value
        summed(x)
        if kind == "sum":
            return (
                self.random.choice(
                    [
                        f"let {v} = scan({a});",
                        f"let {v} = scan(add, {a});",
                        f"var {v}(i : {a}) = sum(q <= i ? {a}(q) : 0.0, q : {a});",
                        f"var {v}(i : {a}) = sum({a}(q), q : 0..i + 1);",
                    ]
                ),
                "float",
                np.cumsum(x),
            )
        if kind == "max":
            return f"let {v} = scan(max, {a});", "float", np.maximum.accumulate(x)
        if kind == "exclusive":
            return f"let {v} = exclusive_scan(add, 1.5, {a});", "float", 1.5 + np.cumsum(x) - x
        if kind == "segments":
            value, total = [], 0.0
            for y in x:
                total = y if y < 0 else total + y
                value.append(total)
            return f"let {v} = segmented_scan(add, {a}, q => {a}(q) < 0);", "float", np.array(value)
        return (
            f"var p{v}(i) = Pair({a}(i), i); let s{v} = scan(joined, p{v}); var {v}(i) = s{v}(i).x + s{v}(i).n;",
            "float",
            np.maximum.accumulate(x) + np.cumsum(np.arange(len(x))),
        )

    def filtered(self, v):
        (a, x), (c, z) = self.array(), self.number()
        form, value = self.random.choice(
            [(f"filter({a}, x => x > {c})", x[x > z]), (f"compact({a}, q => {a}(q) > {c})", x[x > z]),
             (f"partition({a}, {a} > {c})", np.concatenate([x[x > z], x[x <= z]]))]
        )  # fmt: skip
        return f"let {v} = {form};", "float", value

    def segments(self, v):
        a, x = self.array()
        summed(x)
        starts = np.flatnonzero((x < 0) | (np.arange(len(x)) == 0))
        name, function = self.random.choice([("add", np.add), ("max", np.maximum)])
        return f"let {v} = segmented_reduce({name}, {a}, q => {a}(q) < 0);", "float", function.reduceat(x, starts)

    def ordered(self, v):
        a, x = self.array()
        form, kind, value = self.random.choice(
            [("sort", "float", np.sort(x)), ("argsort", "int", np.argsort(x, kind="stable"))]
        )
        if (x == 0).any() and form == "argsort":
            raise Inexact  # -0 comes before 0
        return f"let {v} = {form}({a});", kind, value

    def scattered(self, v):
        keys, x = self.array("int")
        name = self.random.choice(["add", "max", "min", "mul"])
        a, y = self.array(self.random.choice(["int", "float"]), like=x)
        kind = self.known[a][0]
        start = (
            {"add": 0, "mul": 1, "max": -np.inf, "min": np.inf}[name]
            if kind == "float"
            else {"add": 0, "mul": 1, "max": -(2**31), "min": 2**31 - 1}[name]
        )
        value = np.full(6, start, "f8" if kind == "float" else "i8")
        for key, element in zip(x, y, strict=True):
            if 0 <= key < 6:
                value[key] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[name](
                    value[key], element
                )
                checked(value[key])
        if kind == "float":
            summed(y)
            value[np.isinf(value)] = 0
            text = f"let q{v} = scatter_{name}({keys}, {a}, 6); var {v}(i) = abs(q{v}(i)) > 1e30 ? 0.0 : q{v}(i);"
        else:
            value[np.abs(value) >= 2**31 - 1] = 0
            text = f"let q{v} = scatter_{name}({keys}, {a}, 6); var {v}(i) = q{v}(i) >= 2147483647 || q{v}(i) <= -2147483647 ? 0 : q{v}(i);"
        return text, kind, value

    def counted_keys(self, v):
        keys, x = self.array("int")
        return f"let {v} = histogram({keys}, 9);", "int", np.bincount(x[(x >= 0) & (x < 9)], minlength=9)

    def halves(self, v):
        a, x = self.array()
        value = x.astype("f2")
        if not np.isfinite(value).all():
            raise Inexact
        product = value.astype("f8") ** 2
        return self.random.choice(
            [(f"half[] h{v} = (half) {a}; var {v} = 2 * h{v};", "float", 2 * value.astype("f8")),
             (f"var h{v}(i) = (half) {a}(i); var {v}(i) = h{v}(i) * h{v}(i);", "float", product),
             (f"var h{v}(i) = (half) ({a}(i) * {a}(i)); let {v}(i) = h{v}(i) + 1;", "float", checked(x * x).astype("f4").astype("f2").astype("f8") + 1)]
        )  # fmt: skip

    def given_halves(self, v):
        (_, x), (_, y) = self.known["h"], self.known["t"]
        return self.random.choice(
            [(f"var {v} = h * t;", "float", x * y), (f"var {v}(i) = (int) t(i) * 3 - (int) h(i);", "int", y * 3 - np.trunc(x)),
             (f"var {v}(i : h) = h.wrap(i + 1) + t.clamp(i - 1);", "float", np.roll(x, -1) + np.append(y[:1], y[:-1])),
             (f"var {v} = scan(t);", "int", np.cumsum(y)), (f"var {v} = sort(h);", "float", np.sort(x)),
             (f"float {v} = sum(h) + max(t);", "float", summed(x) + y.max())]
        )  # fmt: skip

    def bytes(self, v):
        a, x = self.array("int")
        b, y = self.array()
        return self.random.choice(
            [(f"byte[] t{v} = (byte) {a}; var {v}(i) = t{v}(i) + 1;", "int", (x & 255) + 1),
             (f"byte[] t{v} = (byte) {b}; var {v}(i) = 2 * t{v}(i);", "int", 2 * np.clip(np.trunc(y), 0, 255))]
        )  # fmt: skip

    def tuples(self, v):
        (a, x), n = self.array(), self.integer(0, 3)
        low, count, s = (0.5 * x, n, 2.0) if n > 1 else (x, 3, 1.0)
        return self.random.choice(
            [(f"var (l{v}, n{v}, s{v}) = divided({a}, {n}); var {v}(i) = l{v}(i) * s{v} + n{v};", "float", low * s + count),
             (f"var {v} = divided({a}, {n}).low;", "float", low),
             (f"float {v} = bundle({a}, {n}).total();", "float", summed(low) + count + int(s)),
             (f"var u{v} = ({a}, {n}, 0.5); var {v} = u{v}.Item1 * u{v}.Item3 + u{v}.Item2;", "float", x * 0.5 + n)]
        )  # fmt: skip

    def divisions(self, v):
        (a, x), c = self.array("int"), self.integer(1, 9)
        q = np.trunc(x / c).astype("i8")
        return (
            f"var d{v}(i) = divide({a}(i), {c}); var {v}(i) = d{v}(i).quotient * 100 + d{v}(i).rest;",
            "int",
            q * 100 + x - q * c,
        )

    def records(self, v):
        a, x = self.array()
        n, j = self.integer(-3, 3), np.arange(len(x))
        return self.random.choice(
            [(f"var p{v}(i) = Pair({a}(i), i).moved({n}); var {v} = p{v}.weight();", "float", 2 * (x + n) + j - n),
             (f"var p{v}(i) = Pair({a}(i), i); var {v} = (p{v} + p{v}).x;", "float", 2 * x),
             (f"var p{v}(i) = Pair({a}(i), i); Pair s{v} = + p{v}; float {v} = s{v}.x * 2 + s{v}.n;", "float", 2 * summed(x) + j.sum()),
             (f"Counter c{v} = Counter({n}, 1); c{v}.sum += sum({a}); c{v}.count++; float {v} = c{v}.sum * c{v}.count;", "float", 2 * (n + summed(x)))]
        )  # fmt: skip

    def ramp(self, v):
        (a, x), (c, y), n = self.array(), self.number(), self.integer(-2, 4)
        return f"var {v} = Ramp({c}, {n}) + {a};", "float", y * (np.arange(len(x)) - n) + x

    def local_arrays(self, v):
        a, x = self.array()
        k, y = self.array("int")
        three = np.stack([np.roll(x, 1), x, np.roll(x, -1)])
        return self.random.choice(
            [(f"var {v}(i : {a}) = middle({a}.wrap(i - 1), {a}(i), {a}.wrap(i + 1));", "float", np.sort(three, 0)[1]),
             (f"var {v}(i) = bits({k}(i));", "int", np.array([bin(int(n) & 0xFFFFFFFF).count("1") for n in y])),
             (f"float t{v}[3]; t{v}[1] = sum({a}); t{v}[2] = t{v}[1] * 2; var {v}(i : 0..3) = t{v}[i];", "float", np.array([0, summed(x), 2 * summed(x)]))]
        )  # fmt: skip

    def gradients(self, v):
        a, x = self.array()
        b, y = self.array(like=x)
        d = np.append(x[1:], x[-1:]) - x
        steps = -2 * d
        steps[1:] += 2 * d[:-1]
        spread = np.zeros(len(x))
        spread[x.argmax()] += 2
        spread[x.argmin()] += 1
        c, z = self.number()
        for terms in (x * x * y, d * d, x * x * z):
            summed(checked(terms))
        return self.random.choice(
            [(f"var {v} = grad(squares)({a}, {b});", "float", 2 * x * y),
             (f"var {v} = grad(squares, u)({a}, {b});", "float", x * x),
             (f"var g{v} = value_and_grad(squares, v, u)({a}, {b}); var {v} = g{v}.v + g{v}.u + g{v}.value;", "float", 2 * x * y + x * x + (x * x * y).sum()),
             (f"var {v} = grad(steps)({a});", "float", steps),
             (f"var {v} = grad(best)({a});", "float", spread),
             (f"var (w{v}, x{v}, y{v}) = value_and_grad(mixed, v, k)({a}, {c}); var {v} = x{v} * 2 + w{v} + y{v};", "float", 4 * z * x + (x * x).sum() * (z + 1) + z + 1)]
        )  # fmt: skip

    def folds(self, v):
        a, x = self.array()
        value = 0.5
        for y in x:
            value = y if y != 0 else value
        return self.random.choice(
            [(f"int {v} = fold(counted, 3, {a});", "int", 3 + (x > 0).sum()),
             (f"float {v} = fold(last, 0.5, {a});", "float", value),
             (f"Pair p{v} = fold(noted, Pair(0, 0), {a}); float {v} = p{v}.weight();", "float", 2 * max(0, x.max()) + len(x)),
             (f"float {v} = add({a});", "float", summed(x))]
        )  # fmt: skip

    def reduced(self, v):
        (a, x), n = self.array(), self.integer(0, 2)
        low, high = min(n, len(x) - 1), len(x)
        summed(x)
        i = np.arange(len(x))
        return self.random.choice(
            [(f"float {v} = sum({a}(i), i : {low}..{high});", "float", x[low:].sum()),
             (f"float {v} = max({a}) - min({a});", "float", x.max() - x.min()),
             (f"int {v} = argmax({a}) * 100 + argmin({a});", "int", x.argmax() * 100 + x.argmin()),
             (f"int {v} = (any({a} > 1) ? 1 : 0) + (all({a} > -2) ? 2 : 0) + sum({a} > 0);", "int", int((x > 1).any()) + 2 * int((x > -2).all()) + (x > 0).sum()),
             (f"float {v} = sum({a}(i), i : q => q % 3 == {n});", "float", x[i % 3 == n].sum()),
             (f"float {v} = sum({a}(i), i : (0..1) | ({low}..{high}));", "float", x[(i < 1) | (i >= low)].sum()),
             (f"i{v} : 0..{high}; j{v} : i{v}..{high}; float {v} = sum({a}(i{v}) - {a}(j{v}));", "float", np.sum([x[p] - x[q] for p in i for q in i[p:]])),
             (f"int {v} = size({a}) + low({a}) + high({a}) * 10 + (empty({a}) ? 5 : 0);", "int", 11 * len(x))]
        )  # fmt: skip

    def ragged(self, v):
        """Reductions over ranges that arrays hold, by borders, under conditions, and inside an array."""
        (a, x), (k, y) = self.array(), self.array("int")
        n, center = len(x), np.arange(len(y))
        low, radius, count = np.fmod(y, 40), np.abs(y) % 5, np.abs(y) % (n + 1)
        mode, name = self.random.choice(["clamp", "wrap", "mirror", "zero"]), self.random.choice(["sum", "max", "min"])

        def read(q):
            around = q % (2 * n)
            mirrored = np.minimum(around, 2 * n - 1 - around)
            index = {"clamp": np.clip(q, 0, n - 1), "wrap": q % n, "mirror": mirrored, "zero": np.clip(q, 0, n - 1)}[
                mode
            ]
            return np.where((mode == "zero") & ((q < 0) | (q >= n)), 0, x[index])

        def rows(first, end, of=read):
            function = {"sum": summed, "max": np.max, "min": np.min}[name]
            return np.array([function(of(np.arange(f, e))) for f, e in zip(first, end, strict=True)], "f8")

        return self.random.choice(
            [(f"var {v}(i : {k}) = {name}({a}.{mode}(q), q : {k}(i) % 40..{k}(i) % 40 + 3);", "float", lambda: rows(low, low + 3)),
             (f"var {v}(i : {k}) = {name}({a}.{mode}(q), q : i - abs({k}(i)) % 5..i + abs({k}(i)) % 5 + 1);", "float", lambda: rows(center - radius, center + radius + 1)),
             (f"var {v}(i : {k}) = {name}(q > 0 ? {a}(q - 1) : 0.5, q : abs({k}(i)) % {n + 1} / 2..abs({k}(i)) % {n + 1} + 1);", "float",
              lambda: rows(count // 2, count + 1, lambda q: np.where(q > 0, x[q - 1], 0.5))),
             (f"var {v}(i : {k}) = sum({a}(q), q : abs({k}(i)) % {n + 1}..{n});", "float", lambda: np.append(np.cumsum(x[::-1])[::-1], 0)[count])]
        )  # fmt: skip

    def matrices(self, v):
        a, x = self.array(rank=2)
        r, c = x.shape
        product = np.abs(x) @ np.abs(x).T
        if product.max() * GRAIN * GRAIN >= LIMIT:
            raise Inexact
        row = self.integer(0, r - 1)
        return self.random.choice(
            [(f"var {v}(j, q) = + ({a}(j, l) * {a}(q, l));", "float", x @ x.T),
             (f"var {v}(j, i) = {a}(i, j);", "float", x.T), (f"float[] {v} = {a}({row}, );", "float", x[row]),
             (f"float[] {v} = {a}[:, {c - 1}];", "float", x[:, -1]), (f"let {v} = scan({a});", "float", np.cumsum(x, 1)),
             (f"var {v}(i) = normalized({a}(i, ));", "float", (x.max(1, keepdims=True) - x).sum(1)),
             (f"var {v}(i, j) = doubled({a}(i, ))(j);", "float", 3 * x),
             (f"var {v}(i, j) = grad(squares)({a}(i, ), {a}(0, ))(j);", "float", 2 * x * x[0]),
             (f"var {v}(i : 0..{r}, j : 0..{c}) = j <= i ? {a}(i, j) : 0.0;", "float", np.tril(x)),
             (f"var {v} = {a}[::-1, ::-1];", "float", x[::-1, ::-1]),
             (f"var {v}(i) = max({a}(i, j));", "float", x.max(1)),
             (f"float[,] {v} = [{a}({row}, ), {a}(0, )];", "float", x[[row, 0]])]
        )  # fmt: skip

    def assigned(self, v):
        (a, x), (c, y) = self.array(), self.number()
        n = self.integer(0, len(x) - 1)
        value = x.copy()
        value[n] = y
        value[: n + 1] += 0
        return f"mutable var {v} = {a}; {v}[{n}] = {c};", "float", value

    def loops(self, v):
        (a, x), n = self.array(), self.integer(0, 3)
        value, u = x.copy(), x.copy()
        for _ in range(n):
            value = value + np.roll(value, -1)
        while u.size and u.max() > 1:
            u = u * 0.5
            checked(u)
        return self.random.choice(
            [(f"float[] {v} = {a}; for (int t{v} = 0; t{v} < {n}; t{v}++) {{ float[] u{v} = {v}; var n{v}(i : u{v}) = u{v}(i) + u{v}.wrap(i + 1); {v} = n{v}; }}", "float", value),
             (f"float[] {v} = {a}; while (max({v}) > 1) {v} = {v} * 0.5;", "float", u),
             (f"float[] {v} = {a}; if (sum({a}) > {n}) {v} = 2 * {a}; else {v} = {a} - 1;", "float", 2 * x if summed(x) > n else x - 1)]
        )  # fmt: skip

    def generic(self, v):
        a, x = self.array("int")
        return f"var {v}(i) = twice({a}(i)) + (let q = {a}(i) in q * q);", "int", 2 * x + x * x


STATEMENTS: list[Callable] = [
    value for name, value in vars(EvaluatedPrograms).items()
    if callable(value) and not name.startswith("_") and name not in ("array", "number", "integer", "statement", "text", "type_of", "results")
]  # fmt: skip


def check(program: EvaluatedPrograms, make_target) -> list[str] | Exception:
    """The names of the results that differ, or the error of the program."""
    try:
        items = result_of(program.text(), make_target, **program.arguments).items
    except Exception as error:  # noqa: BLE001  # every error is a finding
        return error
    return [name for name, value in program.results().items() if not np.array_equal(items[name].array, value)]


def check_all(programs: list[EvaluatedPrograms], name: str, device) -> list[list[str] | Exception]:
    """What check() says of each program; on a device their kernels are compiled together (sweep.py)."""
    if device is None:
        return [check(program, target_factory(name, None, False)) for program in programs]
    unit = Unit(device)

    def target(dag):
        made = UnitTarget(dag, device, "device", strict=True)
        made.unit = unit
        return made

    for program in programs:
        check(program, target)  # gathers kernels, without values
    unit.compile()
    return [check(program, target) for program in programs]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--target", default="numpy", help="numpy, glsl, a back end, or a device such as opencl:0:0")
    parser.add_argument("--batch", type=int, default=20, help="programs whose kernels a device compiles together")
    parser.add_argument("--failures", type=Path, default=Path("fuzz_failures"))
    options = parser.parse_args()
    infos = [info for info in list_devices()[0] if options.target in (info.backend, info.device_id)]
    device = open_device(infos[0].device_id) if infos else None
    ran, failed, skipped, started = 0, 0, 0, time.process_time()
    options.failures.mkdir(exist_ok=True, parents=True)
    for first in range(0, options.programs, options.batch):
        numbers = range(first, min(first + options.batch, options.programs))
        programs = [EvaluatedPrograms(Random(f"{options.seed} {number}")) for number in numbers]
        for number, program, wrong in zip(numbers, programs, check_all(programs, options.target, device), strict=True):
            ran += 1
            if isinstance(wrong, UnavailableError):  # GLSL has neither long nor sort
                skipped += 1
            elif wrong:
                failed += 1
                head = f"{options.seed} {number} {options.target}: {wrong!r}; expected {program.results()}"
                path = options.failures / f"{options.seed}_{number}_{options.target.replace(':', '_')}.cb"
                path.write_text("// " + head.replace("\n", "\n// ") + "\n" + program.text())
                print(f"{number}: {str(wrong)[:300]}", flush=True)
        seconds = time.process_time() - started
        print(
            f"{options.target}: {ran} programs (seed {options.seed}), {failed} wrong, {skipped} skipped, {seconds:.0f} CPU s",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
