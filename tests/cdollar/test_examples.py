"""Every program in scenes/ yields the result of its header comment, on every target."""

import json
import re

import numpy as np
import pytest

from renderer.cdollar.frontend.diagnostics import SourceFile
from renderer.cdollar.ir.types import DTYPES, FunctionType, component_types
from renderer.cdollar.runtime.evaluate import load_text, main_function
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.errors import UnavailableError
from renderer.paths import SCENES
from tests.cdollar.evaluate import value_of

PROGRAMS = sorted(SCENES.glob("*.cb"))
LINE = re.compile(
    r"^// (given (?P<name>\w+) = (?P<value>.*)|gives (?P<gives>.*)|near (?P<near>\S+)|between (?P<between>.*))$"
)


def expectation(path):
    """The inputs (name -> value) and the expected result of a program, from its header comment."""
    given, expected = {}, {"near": 1e-5}
    for line in path.read_text().splitlines():
        match = LINE.match(line)
        if match and match["name"]:
            given[match["name"]] = json.loads(match["value"])
        elif match and match["gives"]:
            expected["gives"] = json.loads(match["gives"])
        elif match and match["near"]:
            expected["near"] = float(match["near"])
        elif match and match["between"]:
            expected["between"] = tuple(map(float, match["between"].split()))
        elif not line.startswith("//"):
            break
    assert expected.keys() & {"gives", "between"}, f"{path} does not say what it gives"
    return given, expected


def run_program(path, make_target):
    given, expected = expectation(path)
    text = path.read_text()
    main = main_function(load_text(SourceFile(path.name, text), NumpyTarget))
    types = dict(zip(main.parameter_names, main.parameter_types, strict=True))
    arrays, numbers = {}, {}
    for name, value in given.items():
        if isinstance(types.get(name), FunctionType):
            arrays[name] = np.array(value, DTYPES[component_types(types[name].result)[0]])
        else:
            numbers[name] = str(value)
    return value_of(text, make_target, numbers, path.parent, **arrays), expected


def assert_matches(result, expected):
    if "between" in expected:
        low, high = expected["between"]
        assert np.isfinite(result).all() and (result >= low).all() and (result <= high).all()
        return
    gives, tolerance = expected["gives"], expected["near"]
    if isinstance(gives, dict):
        for name, value in gives.items():
            assert np.allclose(result[name], value, rtol=0, atol=tolerance), name
        return
    assert result.shape == np.shape(gives)
    assert np.allclose(result, gives, rtol=0, atol=tolerance)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_numpy_result_matches_the_header_comment(path):
    assert_matches(*run_program(path, NumpyTarget))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_device_result_matches_the_header_comment(path, device):
    assert_matches(*run_program(path, lambda dag: DeviceTarget(dag, device, "device")))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_glsl_result_matches_the_header_comment(path, gl):
    try:
        result, expected = run_program(path, lambda dag: GlslTarget(dag, gl))
    except UnavailableError as error:
        assert "double" in str(error) and "double" in path.read_text()
        return
    assert_matches(result, expected)
