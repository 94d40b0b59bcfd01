"""Diagnostics: exact messages of wrong programs, a reference entry for every code, limits of resources."""

import re

import numpy as np
import pytest

from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile
from renderer.cdollar.frontend.parser import parse
from renderer.cdollar.ir.types import DTYPES, FunctionType, component_types
from renderer.cdollar.lowering import statements
from renderer.cdollar.runtime.evaluate import load_text, main_function
from renderer.cdollar.targets.numpy import simt as numpy_simt
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.errors import UnavailableError, UserError
from renderer.paths import ROOT
from tests.cdollar.evaluate import value_of, warnings_of

REFERENCE = (ROOT / "assets" / "reference" / "cdollar_errors.md").read_text()
EXAMPLES = dict(re.findall(r"## (CS\d{4})[^\n]*\n(?:(?!## ).*\n)*?```cb\n(.*?)\n```", REFERENCE))
WRONG_PROGRAMS = sorted((ROOT / "tests" / "cdollar" / "language" / "diagnostics").glob("*.cb"))


def run_with_any_input(text, name="test.cb"):
    """Evaluates a program whose parameters are filled with ones of small shapes."""
    main = main_function(load_text(SourceFile(name, text), NumpyTarget))
    arrays, numbers = {}, {}
    for parameter, type_ in zip(main.parameter_names, main.parameter_types, strict=True):
        parts = component_types(type_.result if isinstance(type_, FunctionType) else type_)
        if isinstance(type_, FunctionType):
            shape = (5, 6, 7)[: len(type_.parameters)] + ((len(parts),) if len(parts) > 1 else ())
            arrays[parameter] = np.ones(shape, DTYPES[parts[0]])
        else:
            numbers[parameter] = ",".join("1" for _ in parts)
    return value_of(text, NumpyTarget, numbers, **arrays)


def test_codes_and_reference_entries_match():
    used = {code for path in ROOT.glob("renderer/cdollar/**/*.py") for code in re.findall(r"CS\d{4}", path.read_text())}
    assert used == set(re.findall(r"(?m)^## (CS\d{4})", REFERENCE))


@pytest.mark.parametrize("code", EXAMPLES)
def test_reference_example_raises_its_code(code):
    if code.startswith("CS07"):  # a warning
        assert [w.code for w in warnings_of(EXAMPLES[code], a=np.ones((3, 2), "f4"))] == [code]
        return
    with pytest.raises(ProgramError) as caught:
        run_with_any_input(EXAMPLES[code])
    assert caught.value.code == code, str(caught.value)


@pytest.mark.parametrize("path", WRONG_PROGRAMS, ids=lambda path: path.stem)
def test_message_matches_the_recorded_one(path):
    with pytest.raises(UserError) as caught:
        run_with_any_input(path.read_text(), path.name)
    assert str(caught.value) == path.with_suffix(".txt").read_text().rstrip("\n")


def test_arrays_larger_than_memory_are_refused_before_allocation():
    text = "float[,] main() { var f(i : 0..1000000, j : 0..1000000) = 1.0; return f; }"
    with pytest.raises(UnavailableError, match=r"1000000 x 1000000 elements needs 3725\.3 GiB"):
        value_of(text)
    assert value_of(text.replace("return f", "var g(i : 0..2, j : 0..2) = f(i, j); return g")).tolist() == [
        [1, 1],
        [1, 1],
    ]


def test_the_hint_of_a_power_is_for_powers_alone():
    for operator in "^&":
        with pytest.raises(ProgramError, match="CS0403") as error:
            value_of(f"float main() => 1.5 {operator} 2.0;")
        assert ("pow(x, 2)" in error.value.hint) == (operator == "^")


def test_nested_reductions_parse_in_linear_time():
    parse(SourceFile("deep.cb", "float f(float x) => " + "+(" * 50 + "x" + ")" * 50 + ";"))


def test_infinite_loops_are_stopped(monkeypatch):
    monkeypatch.setattr(statements, "MAX_HOST_STATEMENTS", 2000)
    monkeypatch.setattr(numpy_simt, "MAX_ITERATIONS", 2000)
    host = "float main() { var u(i : 0..3) = 1.0; while (true) u = u + 1; return sum(u); }"
    with pytest.raises(ProgramError, match="CS0601"):
        value_of(host)
    inside = "int f(int x) { while (x > 0) { } return x; } int main() => f(1);"
    with pytest.raises(ProgramError, match="CS0606"):
        value_of(inside)
