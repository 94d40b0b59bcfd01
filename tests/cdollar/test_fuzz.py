"""Random well-typed programs: NumPy with and without passes, devices and GLSL agree; random texts never crash."""

import re
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from renderer.cdollar.checker.node_builder import FUNCTIONS
from renderer.cdollar.frontend.ast import BORDER_MODES, PRIMITIVES
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile
from renderer.cdollar.frontend.lexer import KEYWORDS
from renderer.cdollar.frontend.parser import parse
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.errors import UserError
from tests.cdollar import evaluated_programs
from tests.cdollar.evaluate import value_of
from tests.cdollar.random_programs import MAX_PARTS, RandomPrograms, arguments, differences
from tests.seeds import FRESH

STRICT = partial(NumpyTarget, strict=True)
NOT_IN_PROGRAMS = {"file"}
SEEDS = [1, pytest.param(2, marks=pytest.mark.slow)]  # of texts of MAX_PARTS programs each


def programs_of(seed, for_glsl=False):
    """A text, its arguments, and what the interpreter makes of them."""
    text = RandomPrograms(Random(seed), for_glsl).text(MAX_PARTS)
    arrays, numbers = arguments(seed)
    return text, arrays, numbers


@pytest.mark.parametrize("seed", range(3))
def test_passes_preserve_every_bit(seed):
    text, arrays, numbers = programs_of(seed)
    expected = value_of(text, lambda dag: NumpyTarget(dag, (), strict=True), numbers, **arrays)
    assert not differences(value_of(text, STRICT, numbers, **arrays), expected), text


@pytest.mark.parametrize("seed", SEEDS)
def test_devices_match_numpy_bit_for_bit_in_strict_mode(device, seed):
    text, arrays, numbers = programs_of(seed)
    expected = value_of(text, STRICT, numbers, **arrays)
    result = value_of(text, lambda dag: DeviceTarget(dag, device, "device", strict=True), numbers, **arrays)
    assert not differences(result, expected), text


@pytest.mark.parametrize("seed", SEEDS)
def test_glsl_matches_numpy_bit_for_bit_in_strict_mode(gl, seed):
    if gl.version < 400:
        pytest.skip("this driver has no `precise` (GLSL 4.00), without which it may contract a * b + c")
    text, arrays, numbers = programs_of(seed, for_glsl=True)
    expected = value_of(text, STRICT, numbers, **arrays)
    result = value_of(text, lambda dag: GlslTarget(dag, gl, strict=True), numbers, **arrays)
    assert not differences(result, expected), text


def test_programs_yield_what_numpy_computes_by_itself():
    for seed in range(20):
        program = evaluated_programs.EvaluatedPrograms(Random(f"quick {seed}"))
        assert not evaluated_programs.check(program, NumpyTarget), program.text()


def test_every_word_of_the_language_occurs_in_random_programs():
    texts = " ".join(RandomPrograms(Random(seed)).text(MAX_PARTS) for seed in range(40))
    used = set(re.findall(r"\w+", texts))
    words = {*KEYWORDS, *PRIMITIVES, *BORDER_MODES, *FUNCTIONS}
    transcendental = {"sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "atan2", "exp", "exp2"}
    transcendental |= {"log", "log2", "log10", "pow"}  # each driver has its own last bits
    assert words - used - transcendental == NOT_IN_PROGRAMS


@pytest.mark.parametrize("zero", ["(1.5 - 1.5)", "0 * s", "(-0.0)"])
def test_division_by_zero_follows_ieee_in_strict_mode(device, gl, zero):
    text = f"float[,] main(float[,] a, float s) {{ var f(i, j) = a(i, j) / {zero} + 1.5 / (2.5 - 2.5); return f; }}"
    a = np.array([[1, -2, 0, np.inf]], "f4")
    expected = value_of(text, NumpyTarget, {"s": "3"}, a=a)
    targets = [lambda dag: DeviceTarget(dag, device, "device", strict=True)]
    if gl.version >= 400:
        targets.append(lambda dag: GlslTarget(dag, gl, strict=True))
    for target in targets:
        result = value_of(text, target, {"s": "3"}, a=a)
        assert np.all((result == expected) | np.isnan(result) & np.isnan(expected)), text


TOKENS = (
    "float int float[] float[,] var let for if else while return ( ) { } [ ] ; , . .. : ? + - * / % < > = == => && || "
    "a b i j main sum max min fold x f 0 1 2.5 1e9 0x1F 5u \" ' @ // /* */ \n type class final new true in operator "
    "mutable domain grad long half byte half3 scatter_max(a, b, 3) 3L [1:3] [::-1] <T> this q[2] grad(loss)"
).split(" ")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=40).map(" ".join))
def test_random_tokens_parse_or_raise_an_error(text):
    try:
        parse(SourceFile("fuzz.cb", text))
    except ProgramError as error:
        assert error.code.startswith("CS") and "fuzz.cb:" in str(error)


@settings(max_examples=150 if FRESH else 50, deadline=None)
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
    text = RandomPrograms(data.draw(st.randoms(use_true_random=False))).text()
    words = text[text.index("T blend") :].replace("(", " ( ").replace(")", " ) ").replace(";", " ; ").split(" ")
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
