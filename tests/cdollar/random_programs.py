"""Random well-typed programs in which every word of C$ occurs, whose bits are the same on all targets.

A text holds several programs: main returns a record with one field for each, so that a device compiles fewer kernels.
"""

from random import Random

import numpy as np

SIZES = (7, 5)
BORDERS = ("clamp", "wrap", "mirror", "zero")
MAX_PARTS = 7  # programs of a text: GLSL writes so many textures at a time
# What GLSL has not, or not with the same bits.
NOT_IN_GLSL = ("scan(", "sort(", "long", "double", "fmod")

DEFINITIONS = """
type curve = float(float);
final class Pair {
    float x; int n;
    float norm() => x * x + 0.5 * (float) n;
    Pair scale(float s) => Pair(s * x, n * 3);
    T both<T>(T y) => y + y;
    float after(int k) {
        float y = x;
        for (int i = 0; i < 5; i++) {
            if (i == k) continue;
            y = 0.5 * y + (float) (n & 7);
            if (y > 8) break;
        }
        return y;
    }
    Pair operator +(Pair a, Pair b) => Pair(a.x + b.x, a.n + b.n);
    Pair operator -(Pair a) => Pair(-a.x, -a.n);
}
Pair operator *(Pair a, Pair b) => Pair(a.x * b.x, a.n * b.n);
float stacked(float x, int n) {
    float t[4];
    Pair p[2, 2];
    for (int i = 0; i < 4; i++) { t[i] = x * (float) i; p[i / 2, i & 1].n = i * n; }
    t[n & 3] += t[(n + 1) & 3] + 1;
    p[0, 1] = p[1, n & 1];
    p[1, 0].x -= t[2];
    return t[0] * t[3] + t[n & 1] + p[1, 0].x + (float) p[0, 1].n;
}
final class Halves { float[] low; Pair p; float first() => low(0) + p.x; }
(float[] low, int n) divided(float[] v, int n) { var l(i : v) = 0.5 * v(i); return n > 1 ? (l, n) : (v, 3); }
Halves halves(float[] v, int n) { var (l, k) = divided(v, n); return Halves(l, Pair(l(1), k)); }
(float x, int n) swapped(int n, float x) => (x, n);
final class Ramp : float(int) { float slope; float operator ()(int i) => slope * i; }
final class Table : float(float) {
    float[] values; float step;
    float operator ()(float x) => values.clamp((int) (x / step));
}
final class Window : float(int) { int low, high; float operator ()(i : low..high) => 1.5 * i; }
float total(Ramp r, int n = 4) => sum(r(i), i : 0..n);
float bent(float x) {
    float y = x;
    for (int n = 0; n < 3; n++) {
        if (y > 2) y = y / 2; else y = y + 0.5 * x;
        if (y < -4) break;
    }
    return y;
}
T blend<T>(T x, T y) => x + y - x * y;
U pick<T, U>(T a, U b, bool first = false) => first ? (U) a : b;
int turns(int n) { int c = 0; while (n != 1 && c < 20) { n = n % 2 == 0 ? n / 2 : 3 * n + 1; c++; } return c; }
uint mixed(uint h) { int n = 0; do { h = h * 747796405u + 2891336453u; h ^= h >> 16; n++; } while (n < 3); return h; }
float3 walk(float x) {
    mutable float3 p = float3(x, 1, -2);
    for (int i = 0; i < 4; i++) { p.x += 0.5; p.y = p.x * 2; p.z--; }
    return p;
}
Pair count(Pair p, float x) { const bool more = true; return x > 0 && more ? new Pair(p.x + x, p.n + 1) : p; }
int digits(int state, float x) => state * 3 + (x > 0 ? 1 : 0);
half nearly(half x, byte n) { half y = x; for (int i = 0; i < (n & 3); i++) y = (half) (y * 1.25); return y; }
[Associative] float larger(float x, float y) => x < y ? y : x;
float mean2(float x, float y) => 0.5 * (x + y);
float twice(curve f, float x) => f(f(x));
float faded(float state, float x) => state * 0.75 + x * (1 - state) * 0.01;
domain common(domain d, float[] v) => d & domain(v);
float ones(domain d) { var f(i : d) = 1.5 * i; return sum(f); }
float part(float[] v) { l : 1..4; return sum(v(l) * v(l)); }
float[] smooth(float[] v) { var r(i : v) = 0.5 * v(i) + 0.25 * (v.wrap(i - 1) + v.wrap(i + 1)); return r; }
float[] smoother(float[] v, int n) { for (int t = 0; t < n; t++) v = smooth(v); return v; }
float[] raised(float[] v) {
    mutable var r = v;
    for (int t = 0; t < size(v); t += 2) r[t] += 1;
    return r;
}
"""
MAIN = "float[,] a, float[] b, int[] k, float[] q, float[] w, half[] h, byte[] t, float s"
WHOLE = [
    "i",
    "j",
    "t.clamp(j)",
    "(byte) (i * 77 - j)",
    "3",
    "k(j)",
    "(-2)",
    "2147483647",
    "k(j) * 715827883",
    "(-2147483648)",
    "127",
]
REAL = ["1.5", "0.25", "(-2)", "3", "0.1", "s", "b(j)", "a(i, j)", "a[::-1](i, j)", "a[2, ::-1](j)", "a[2:, 1](i / 2)"]
REAL += [
    "a(3)(j)",
    "a(, 2)(i)",
    "a[-2:, 1](i / 4)",
    "(float) size(a, 0)",
    "(float) (low(b, 0) + high(b, 0))",
    "(empty(a) ? 1.0 : 2.0)",
    "radians(90)",
    "1e3",
    "pi",
]
REAL += ["stacked(s, 2)", "stacked(b(j), i + j)"]
CLOSED = ["sum(q)", "sum(w)", "(* (1 + 0.001 * w))", "sum(w * w)", "min(w)", "prod(0.9 + 0.1 * q)", "larger(q)"]
CLOSED += ["halves(q, 2).first()", "halves(q, 1).p.norm()", "(float) (1, 2.5, kk).Item3(4)"]
CLOSED += ["mean2(b)", "fold(count, Pair(0, 0), w).x", "(float) fold(digits, 1, q)", "(float) argmax(q)"]
CLOSED += ["(float) argmin(a).y", "(any(q > 2) ? s : 1.5)", "(all(q > -9) ? 2.5 : s)", "(float) sum(q > 0)"]
CLOSED += ["total(Ramp(s))", "total(Ramp(0.5), 6)", "sum(Window(2, 5))", "ones(common(2..90, b))", "part(b)"]
CLOSED += ["sum(a(l, n), (l, n) : (0..2) * (1..4) | (1..4) * (2..5))", "max(b(l), l : (0..2) | (3..5))"]
CLOSED += ["prod(b(l), l : (0..1) | (2..4))", "min(-a(l, n), (l, n) : (1..3) * (0..5))", "sum(a(, j))", "(+ a(i))"]
CLOSED += ["sum(h)", "max(h * h)", "(float) sum(t)", "(float) argmax(t)", "nearly(h(3), t(4))", "(float) max(t)"]
WIDE = ["(float) sum((long) (w * 1e9))", "(float) (sum((double) w) * 0.5d)", "fmod(s)"]
VECTORS = ["walk({0})", "float3({0}, {1}, 1)", "float3(a(i, j), b(j), s).zyx", "({0} * float3(1, 2, 3))"]
VECTORS += ["cross(float3({0}, 1, 2), float3(s, {1}, -1))", "reflect(float3({0}, 1, 2), float3(0, 1, 0))"]
ARRAYS = [
    "q[::-1]",
    "scatter_add(kk, q, 6)",
    "scatter_mul(kk, abs(q) + 0.5, 6)",
    "scatter_max(kk, q, 9)",
    "scatter_min(kk, kk + 7, 6) * 0.5",
    "histogram(kk, 6) + 0.5",
    "histogram(t, 256) * 1.5",
    "smoother(q, 2)",
    "raised(b)",
    "[0.25, -0.5, s]",
]
ARRAYS += [
    "q + Ramp(2.5)",
    "Table(b, 0.5)(q)",
    "(float[]) (2 * q)",
    "max(q, -q)",
    "clamp(q, -1, 1)",
    "q[20:90:3] * q[:24]",
]
ARRAYS += ["(half) (q * s)", "h * h", "t + 0.5", "(byte) (kk * 100)", "(byte) (q * 300)", "nearly(h, 2)", "[h, h](1,)"]
ARRAYS += ["halves(q, 2).low", "divided(q, 1).low", "swapped(kk, q).x"]
ARRAYS += ["c0.norm()", "(-c0).scale(s).x", "(c0 + c0).both(2.5) + 0 * q", "abs(q)", "c0[::-1].after(2)"]
WIDE_ARRAYS = [
    "(float) ((long) kk * 5000000000000000000L - kk)",
    "scan(q)",
    "scan(q[20:90:3])",
    "sort(q)",
    "scan(kk) + 0.5",
]
WIDE_ARRAYS += [
    "argsort(q) * 0.5",
    "(float) ((double) q / 3)",
    "(float) ((long) kk << 33L)",
    "(float) (sqrt((double) abs(q)) * 1e-3d)",
]
EDITS = [
    "{0}[3] = s;",
    "{0}[10:20] = q[30:40];",
    "{0}[::7] *= 2;",
    "{0}[-5:] = -1;",
    "{0}(i) = q(i) * 3;",
    "{0}[abs(k[1])] = 0;",
]
TABLE_EDITS = ["{0}[2, :] = b;", "{0}(i, 0) = 0.5 * i;", "{0}[1, 3:] = s;", "{0}[:, 1] = a[:, 2];", "{0}[3, 4]--;"]
SMOOTH = ["q(i)", "q.clamp(i - 1)", "q.mirror(2 * i + 1)", "q.wrap(i * i)", "s", "0.5", "sum(q)", "max(q)"]


class RandomPrograms:
    """Texts made of the numbers of a random.Random; `for_glsl`: without what GLSL has not."""

    def __init__(self, random: Random, for_glsl: bool = False) -> None:
        self.random, self.for_glsl = random, for_glsl
        self.reads: list[str] = []  # of functions before the expression
        self.count = 0  # of bound variables

    def choice(self, *options):
        """One of the options; an option that is a function is called."""
        chosen = self.random.choice(options)
        return chosen() if callable(chosen) else chosen

    def one_of(self, texts, wide=()):
        """A text of `texts`, or of `wide`, which GLSL does not have."""
        return self.random.choice([*texts, *(() if self.for_glsl else wide)])

    # Expressions over i, j

    def real(self, depth: int = 3) -> str:
        """A float."""
        if depth == 0 or self.random.random() < 0.15:
            return self.choice(self.real_leaf, self.real_leaf, self.border, lambda: f"(float) {self.whole(1)}")
        below = lambda: self.real(depth - 1)  # noqa: E731
        return self.choice(
            *[lambda: f"({below()} {self.choice(*'+-*/+')} {below()})"] * 6,
            lambda: self.call(depth - 1), lambda: self.call(depth - 1), lambda: self.call(depth - 1),
            lambda: f"({self.truth(depth - 1)} ? {below()} : {below()})",
            lambda: self.reduction(), lambda: self.reduction(),
            lambda: self.one_of(CLOSED, WIDE).replace("fmod(s)", "(s % 0.7)"),
            lambda: f"(let z{depth} = {below()} in z{depth} * z{depth} - z{depth})",
            lambda: f"{self.one_of(VECTORS).format(self.real(0), self.real(0))}.{self.choice('x', 'y', 'z', 'r')}",
            lambda: self.of_vectors(),
            lambda: f"Pair({below()}, {self.whole(1)}).{self.choice('norm()', 'scale(s).x', 'after(2)', 'both(s)')}",
            lambda: f"(Pair({below()}, i) * Pair(s, j) + Pair(1, 2)).x",
        )  # fmt: skip

    def real_leaf(self) -> str:
        return self.one_of([*REAL, *self.reads])

    def border(self) -> str:
        """An element beside (i, j)."""
        first, second = (self.random.randint(-3, 3) for _ in range(2))
        return f"a.{self.choice(*BORDERS)}(i + ({first}), j - ({second}))"

    def call(self, depth: int) -> str:
        """A call of a function."""
        x, y = self.real(depth), self.real(0)
        forms = [f"sqrt(abs({x}))", f"min({x}, {y})", f"max({x}, {y})", f"bent({x})", f"blend({x}, {y})", f"floor({x})"]
        forms += [
            f"ceil({x})",
            f"trunc({x})",
            f"round({x})",
            f"abs({x})",
            f"sign({x})",
            f"step({x}, {y})",
            f"fract({x})",
        ]
        forms += [f"clamp({x}, -2, 2.5)", f"lerp({x}, {y}, 0.25)", f"saturate({x})", f"square({x})", f"mod({x}, 1.5)"]
        forms += [
            f"twice(x => 0.5 * x + s, {x})",
            f"twice(bent, {x})",
            f"smoothstep(-1, 2, {x})",
            f"rsqrt(1 + {x} * {x})",
        ]
        forms += [
            f"pick({self.whole(1)}, {x}, {self.truth(1)})",
            f"Ramp({x})(i - j)",
            f"Table(b, 0.25)({x})",
            f"(-{x})",
        ]
        forms += [
            f"nearly((half) {x}, (byte) {self.whole(1)})",
            f"(float) (byte) {x}",
            f"(half) ({x})",
            f"(float) turns({self.whole(1)} & 31)",
            f"(float) (mixed((uint) {self.whole(1)}) >> 8)",
            f"mix({x}, s, {y})",
        ]
        return self.one_of(forms, [f"({x} % 1.25)", f"(float) ((double) {x} * 1.1d)", f"(float) {self.long(1)}"])

    def of_vectors(self) -> str:
        """A float of vectors."""
        u, v = (self.one_of(VECTORS).format(self.real(0), self.real(0)) for _ in range(2))
        return self.choice(
            f"dot({u}, {v})", f"length({u})", f"distance({u}, {v})", f"normalize({u}).y", f"({u} + {v} * s).z"
        )

    def reduction(self) -> str:
        """One value for each point, over one or two variables."""
        self.count += 1
        m, body = f"m{self.count}", self.real(0)
        return self.choice(
            f"sum({body} * q({m}), {m} : q)",
            f"sum(q({m}) + {body} * a(l{m}, j), {m} : q, l{m} : 0..{SIZES[0]})",
            f"prod(0.9 + 0.01 * q({m}) * b(j), {m} : q)",
            f"max({body} - q({m}), {m} : q)",
            f"sum({body} * b({m}), {m} : (0..2) | (3..5))",
            f"sum(a(i, {m}) * a.wrap({m}, j), {m} : 0..5)",
            f"(float) argmin(b({m}) * {body}, {m} : b)",
            f"(any(b({m}) > {body}, {m} : b) ? 1.5 : s)",
            f"larger(b({m}) - {body}, {m} : b)",
            f"fold(count, Pair({body}, 1), b({m}), {m} : b).norm()",
            f"sum(k({m}) <= i ? b({m}) : 0, {m} : 0..5)",
        )

    def whole(self, depth: int = 2) -> str:
        """An int."""
        if depth == 0:
            return self.one_of(WHOLE)
        left, right, operator = (
            self.whole(depth - 1),
            self.whole(depth - 1),
            self.one_of(["+", "-", "*", "/", "%", "&", "|", "^"]),
        )
        if self.random.random() < 0.25:
            other = [
                f"abs({left})",
                f"(~{left})",
                f"min({left}, {right})",
                f"max({left}, {right})",
                f"sign({left})",
                f"(-{left})",
            ]
            other += [
                f"({left} << {right})",
                f"({left} >> {right})",
                f"(int) mixed((uint) {left})",
                f"(int) ((uint) {left} * 3u / 7u)",
            ]
            return self.one_of([*other, f"(int) {self.real(0)}"], [f"(int) ({self.long(1)} >> 7L)"])
        return f"({left} {operator} {right})".replace("/ 0", "/ 1")

    def long(self, depth: int) -> str:
        """A long."""
        if depth == 0:
            return f"(long) {self.whole(1)}"
        operator, right = self.choice(*"+-*/%&^"), self.choice("7L", "123456789012345L", "k(j)")
        return f"({self.long(depth - 1)} {operator} {right})"

    def truth(self, depth: int) -> str:
        """A bool."""
        if depth > 1 and self.random.random() < 0.3:
            left, right = self.truth(depth - 1), self.truth(depth - 1)
            return self.choice(
                f"({left} && {right})",
                f"({left} || {right})",
                f"(!{left})",
                f"({left} ^ {right})",
                f"({left} != {right})",
            )
        if self.random.random() < 0.5:
            return f"({self.whole(1)} {self.one_of(['<', '==', '>=', '!='])} {self.whole(1)})"
        return self.choice(
            f"({self.real(max(0, depth - 1))} {self.one_of(['<', '>', '<='])} {self.real(0)})", f"isnan({self.real(0)})"
        )

    # Lines of main

    def loss(self, depth: int = 2) -> str:
        """A float over i that is differentiated."""
        if depth == 0:
            return self.one_of(SMOOTH)
        x, y = self.loss(depth - 1), self.loss(depth - 1)
        forms = [f"({x} {operator} {y})" for operator in "+-**/"]
        return self.one_of(
            [*forms, f"sqrt(abs({x}))", f"min({x}, {y})", f"({x} < {y} ? {x} : {y})", f"bent({x})", f"stacked({x}, 3)"]
        )

    def array(self, name: str, part: int) -> list[str]:
        """Lines that define an array, of which `reads` gets an element."""
        read = f"{name}.{self.choice('wrap', 'clamp')}(i * 31 + j)"
        kind = self.random.random()
        if kind < 0.5:
            calls = ("grad(loss{})(q, s)", "value_and_grad(loss{}, s, q)(q, s).q", "grad(loss{}, q, s)(q, s).q")
            gradients = [call.format(part) for call in calls]
            lines = [f"let {name} = {self.one_of([*ARRAYS, *gradients], WIDE_ARRAYS)};"]
        elif kind < 0.7:
            edits = [self.one_of(EDITS).format(name) for _ in range(self.random.randint(1, 3))]
            lines = [f"mutable var {name} = q;", *edits]
        elif kind < 0.85:
            edits = [self.one_of(TABLE_EDITS).format(name) for _ in range(self.random.randint(1, 3))]
            lines, read = [f"mutable {self.choice('var', 'float[,]')} {name} = a;", *edits], f"{name}(i, j)"
        elif kind < 0.93:
            rows = self.choice("[b, 2 * b]", "[[1, 0.5, -1, s, 2], [0, 1, 2, 3, 4]]", "[b[::-1], q[:5]]")
            lines, read = [f"float[][] {name} = {rows};"], f"{name}[i % 2][j]"
        else:
            lines = [f"domain {name} = {self.choice('(0..3) & (1..9)', '(0..1) | (2..4)', 'domain(b) & (1..50)')};"]
            read = f"sum(b(l) * s, l : {name})"
        self.reads.append(read)
        return lines

    def part(self, part: int) -> list[str]:
        """Lines that end with the function r<part>(i, j)."""
        self.reads = []
        lines = [line for n in range(self.random.randint(0, 2)) for line in self.array(f"p{part}_{n}", part)]
        arrays = list(self.reads)
        for n in range(self.random.randint(1, 3)):
            lines.append(f"{self.choice('var', 'var', 'let')} f{part}_{n}(i, j) = {self.real()} + 0 * a(i, j);")
            self.reads.append(f"f{part}_{n}(i, j)")
        return [*lines, f"var r{part}(i, j) = {' + '.join([self.reads[-1], *arrays])} + 0 * a(i, j);"]

    def text(self, parts: int = 1) -> str:
        """A text of so many programs."""
        lines = [line for part in range(parts) for line in self.part(part)]
        losses = []
        for part in range(parts):
            reduced = self.one_of(
                ["sum(y)", "sum(y * y)", "max(y) + min(y)", "sum(y) * s", "fold(faded, s, y(n), n : 0..12)"]
            )
            losses.append(
                f"float loss{part}(float[] q, float s) {{ var y(i : q) = {self.loss()}; return {reduced}; }}\n"
            )
        fields = ", ".join(f"r{part}" for part in range(parts))
        result = f"All({', '.join(f'r{part}(i, j)' for part in range(parts))})"
        return (
            f"{DEFINITIONS}final class All {{ float {fields}; }}\n{''.join(losses)}All[,] main({MAIN}) {{\n"
            "    let kk(i : q) = (int) (3 * q(i));\n    let c0(i : q) = Pair(q(i), kk(i));\n    "
            + "\n    ".join(lines)
            + f"\n    var result(i, j) = {result};\n    return result;\n}}\n"
        )


def arguments(seed: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and numbers of main."""
    rng = np.random.default_rng(seed)
    arrays = {
        "a": rng.standard_normal(SIZES).astype("f4"),
        "b": rng.standard_normal(SIZES[1]).astype("f4"),
        "k": rng.integers(-9, 9, SIZES[1]).astype("i4"),
        "q": rng.standard_normal(150).astype("f4"),  # sums of more than one block of strict_order.py
        "w": rng.standard_normal(5000).astype("f4"),  # of more than one thread's
    }
    arrays["h"] = rng.standard_normal(150).astype("f2")
    arrays["t"] = rng.integers(0, 256, 150).astype("u1")
    return arrays, {"s": repr(float(np.float32(rng.standard_normal())))}


def differences(result: np.ndarray, expected: np.ndarray) -> list[str]:
    """The fields of records that differ in more than zeros' signs, NaN's bits and subnormal numbers."""
    assert result.dtype.names and result.dtype == expected.dtype and result.shape == expected.shape
    differing = []
    for name in result.dtype.names:
        x, y = result[name], expected[name]
        small = (np.abs(x) < 1e-37) & (np.abs(y) < 1e-37)  # GPUs and llvmpipe may flush subnormal numbers
        if not np.all((x == y) | (np.isnan(x) & np.isnan(y)) | small):
            differing.append(name)
    return differing
