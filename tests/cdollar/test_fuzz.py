"""Random well-typed programs: NumPy with and without passes, devices and GLSL agree; random texts never crash."""

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile
from renderer.cdollar.frontend.parser import parse
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl_target import GlslTarget
from renderer.cdollar.targets.numpy_target import NumpyTarget
from renderer.errors import UserError
from tests.cdollar.evaluate import value_of

QUICK = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
STRICT = partial(NumpyTarget, strict=True)
SIZES = (7, 5)
BORDERS = ("clamp", "wrap", "mirror", "zero")


@st.composite
def real(draw, functions, depth=3):
    """An expression of type float over i, j, an array a, a vector b, a number s and the functions before it."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        kind = draw(st.integers(0, 6))
        if kind == 0:
            return draw(st.sampled_from(["1.5", "0.25", "-2", "3", "0.1"]))
        if kind == 1:
            return "s"
        if kind == 2:
            return f"(float) {draw(whole(functions, 1))}"
        if kind == 3:
            return "b(j)"
        if kind == 4 and functions:
            return draw(st.sampled_from(functions))
        if kind == 5:
            shift = [draw(st.integers(-3, 3)) for _ in range(2)]
            return f"a.{draw(st.sampled_from(BORDERS))}(i + {shift[0]}, j - {shift[1]})".replace("+ -", "- ").replace(
                "- -", "+ "
            )
        return draw(st.sampled_from(["a(i, j)", "a[::-1](i, j)", "a[2, ::-1](j)", "a[2:, 1](i / 2)"]))
    below = [draw(real(functions, depth - 1)) for _ in range(2)]
    form = draw(st.integers(0, 10))
    if form == 9:  # one value for each point, over one or two variables
        m, body = f"m{depth}", draw(real(functions, 0))
        return draw(
            st.sampled_from(
                [
                    f"sum({body} * q({m}), {m} : q)",
                    f"sum(q({m}) + {body} * a(l, j), {m} : q, l : 0..{SIZES[0]})",
                    f"prod(0.9 + 0.01 * q({m}) * b(j), {m} : q)",
                    f"max({body} - q({m}), {m} : q)",
                ]
            )
        )
    if form == 10:
        return draw(st.sampled_from(["sum(q)", "sum(w)", "(* (1 + 0.001 * w))", "sum(w * w)", "min(w)"]))
    if form == 5:
        return f"sqrt(abs({below[0]}))"
    if form == 6:
        return f"{draw(st.sampled_from(['min', 'max']))}({below[0]}, {below[1]})"
    if form == 7:
        return f"({draw(truth(functions, depth - 1))} ? {below[0]} : {below[1]})"
    if form == 8:
        return draw(st.sampled_from([f"bent({below[0]})", f"blend({below[0]}, {below[1]})"]))
    return f"({below[0]} {draw(st.sampled_from(['+', '-', '*', '/', '+']))} {below[1]})"


@st.composite
def whole(draw, functions, depth=2):
    if depth == 0:
        return draw(st.sampled_from(["i", "j", "3", "k(j)", "(-2)", "2147483647", "k(j) * 715827883"]))
    left, right = draw(whole(functions, depth - 1)), draw(whole(functions, depth - 1))
    if draw(st.integers(0, 9)) == 0:
        return f"abs({left})"
    return f"({left} {draw(st.sampled_from(['+', '-', '*', '/', '%', '&', '^', '<<']))} {right})".replace("/ 0", "/ 1")


@st.composite
def truth(draw, functions, depth):
    if draw(st.booleans()):
        return f"({draw(whole(functions, 1))} {draw(st.sampled_from(['<', '==', '>=']))} {draw(whole(functions, 1))})"
    return f"({draw(real(functions, max(0, depth - 1)))} < {draw(real(functions, 0))})"


@st.composite
def smooth(draw, depth=2):
    """An expression of type float over i, an array q and a number s, that is differentiated."""
    if depth == 0:
        leaves = ["q(i)", "q.clamp(i - 1)", "q.mirror(2 * i + 1)", "q.wrap(i * i)", "s", "0.5", "sum(q)", "max(q)"]
        return draw(st.sampled_from(leaves))
    left, right = draw(smooth(depth - 1)), draw(smooth(depth - 1))
    forms = [f"({left} {operator} {right})" for operator in "+-**/"]
    forms += [f"sqrt(abs({left}))", f"min({left}, {right})", f"({left} < {right} ? {left} : {right})", f"bent({left})"]
    return draw(st.sampled_from(forms))


@st.composite
def whole_arrays(draw, primitives):
    """Lines that define arrays of 150 or of 6 elements, and reads of them at (i, j)."""
    lines, reads = [], []
    forms = ["grad(loss)(q, s)", "q[::-1]", "scatter_add(kk, q, 6)", "histogram(kk, 6) + 0.5"]
    forms += ["(float) ((long) kk * 5000000000000000000L - kk)"] if primitives else []
    forms += ["scan(q)", "scan(q[20:90:3])", "sort(q)", "argsort(q) * 0.5", "scan(kk) + 0.5"] if primitives else []
    for n in range(draw(st.integers(0, 2))):
        lines.append(f"    let p{n} = {draw(st.sampled_from(forms))};")
        reads.append(f"p{n}.{draw(st.sampled_from(('wrap', 'clamp')))}(i * 31 + j)")
    return lines, reads


@st.composite
def programs(draw, primitives=True):
    """A program of a few functions of (i, j), one evaluated by let, whose main yields the last.

    Without `primitives` it has no scan, sort or long, which GLSL does not have.
    """
    lines, reads = draw(whole_arrays(primitives))
    functions = list(reads)
    for n in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["var", "var", "let"]))
        lines.append(f"    {kind} f{n}(i, j) = {draw(real(functions))} + 0 * a(i, j);")
        functions.append(f"f{n}(i, j)")
    reduced = draw(st.sampled_from(["sum(y)", "sum(y * y)", "max(y) + min(y)", "sum(y) * s"]))
    return (
        "float bent(float x) {\n    float y = x;\n    for (int n = 0; n < 3; n++) {\n"
        "        if (y > 2) y = y / 2; else y = y + 0.5 * x;\n        if (y < -4) break;\n    }\n    return y;\n}\n"
        "T blend<T>(T x, T y) => x + y - x * y;\n"
        f"float loss(float[] q, float s) {{ var y(i : q) = {draw(smooth())}; return {reduced}; }}\n"
        "float[,] main(float[,] a, float[] b, int[] k, float[] q, float[] w, float s) {\n"
        "    var kk(i : q) = (int) (3 * q(i));\n"
        + "\n".join(lines)
        + f"\n    var result(i, j) = {' + '.join([f'f{n}(i, j)', *reads])};\n    return result;\n}}\n"
    )


def arguments(seed):
    rng = np.random.default_rng(seed)
    arrays = {
        "a": rng.standard_normal(SIZES).astype("f4"),
        "b": rng.standard_normal(SIZES[1]).astype("f4"),
        "k": rng.integers(-9, 9, SIZES[1]).astype("i4"),
        "q": rng.standard_normal(150).astype("f4"),  # sums of more than one block of strict_order.py
        "w": rng.standard_normal(5000).astype("f4"),  # of more than one thread's
    }
    return arrays, {"s": repr(float(np.float32(rng.standard_normal())))}


def assert_same_bits(result, expected, text):
    both = np.isnan(result) & np.isnan(expected)
    small = (np.abs(result) < 1e-37) & (np.abs(expected) < 1e-37)  # GPUs and llvmpipe may flush subnormal numbers
    assert np.all((result == expected) | both | small), text


@QUICK
@given(programs(), st.integers(0, 99))
def test_passes_preserve_every_bit(text, seed):
    arrays, numbers = arguments(seed)
    expected = value_of(text, lambda dag: NumpyTarget(dag, (), strict=True), numbers, **arrays)
    assert_same_bits(value_of(text, STRICT, numbers, **arrays), expected, text)


@QUICK
@given(programs(), st.integers(0, 99))
def test_devices_match_numpy_bit_for_bit_in_strict_mode(device, text, seed):
    arrays, numbers = arguments(seed)
    expected = value_of(text, STRICT, numbers, **arrays)
    result = value_of(text, lambda dag: DeviceTarget(dag, device, "device", strict=True), numbers, **arrays)
    assert_same_bits(result, expected, text)


@QUICK
@given(programs(primitives=False), st.integers(0, 99))
def test_glsl_matches_numpy_bit_for_bit_in_strict_mode(gl, text, seed):
    if gl.version < 400:
        pytest.skip("this driver has no `precise` (GLSL 4.00), without which it may contract a * b + c")
    arrays, numbers = arguments(seed)
    expected = value_of(text, STRICT, numbers, **arrays)
    assert_same_bits(value_of(text, lambda dag: GlslTarget(dag, gl, strict=True), numbers, **arrays), expected, text)


@pytest.mark.parametrize("zero", ["(1.5 - 1.5)", "0 * s", "(-0.0)"])
def test_division_by_zero_follows_ieee_in_strict_mode(device, gl, zero):
    text = f"float[,] main(float[,] a, float s) {{ var f(i, j) = a(i, j) / {zero} + 1.5 / (2.5 - 2.5); return f; }}"
    a = np.array([[1, -2, 0, np.inf]], "f4")
    expected = value_of(text, NumpyTarget, {"s": "3"}, a=a)
    targets = [lambda dag: DeviceTarget(dag, device, "device", strict=True)]
    if gl.version >= 400:
        targets.append(lambda dag: GlslTarget(dag, gl, strict=True))
    for target in targets:
        assert_same_bits(value_of(text, target, {"s": "3"}, a=a), expected, text)


TOKENS = (
    "float int float[] float[,] var let for if else while return ( ) { } [ ] ; , . .. : ? + - * / % < > = == => && || "
    "a b i j main sum max min fold x f 0 1 2.5 1e9 0x1F 5u \" ' @ // /* */ \n type class final new true in operator "
    "mutable domain grad long 3L [1:3] [::-1] <T> this q[2] grad(loss)"
).split(" ")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=40).map(" ".join))
def test_random_tokens_parse_or_raise_an_error(text):
    try:
        parse(SourceFile("fuzz.cb", text))
    except ProgramError as error:
        assert error.code.startswith("CS") and "fuzz.cb:" in str(error)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_random_text_parses_or_raises_an_error(text):
    try:
        parse(SourceFile("fuzz.cb", text))
    except ProgramError as error:
        assert str(error)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_mutated_programs_yield_a_value_or_an_error(data):
    """A good program with a few of its words removed, doubled or exchanged."""
    words = data.draw(programs()).replace("(", " ( ").replace(")", " ) ").replace(";", " ; ").split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(words) - 1))
        words[place : place + 1] = data.draw(
            st.sampled_from([[], [words[place]] * 2, [data.draw(st.sampled_from(TOKENS))]])
        )
    arrays, numbers = arguments(1)
    try:
        value_of(" ".join(words), NumpyTarget, numbers, **arrays)
    except UserError as error:
        assert str(error)
