"""Every program in scenes/ yields what its head comment says, on every target."""

import json
import re

import numpy as np
import pytest

from renderer.cdollar.frontend.diagnostics import SourceFile
from renderer.cdollar.ir.types import DTYPES, FunctionType, component_types
from renderer.cdollar.runtime.evaluate import load_text, main_of
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl_target import GlslTarget
from renderer.errors import UnavailableError
from renderer.paths import SCENES
from tests.cdollar.evaluate import numpy_target, value_of

PROGRAMS = sorted(SCENES.glob("*.cb"))
LINE = re.compile(
    r"^// (given (?P<name>\w+) = (?P<value>.*)|gives (?P<gives>.*)|near (?P<near>\S+)|between (?P<between>.*))$"
)


def expectation(path):
    """What a program is given (name -> value) and what it gives, from its head comment."""
    given, found = {}, {"near": 1e-5}
    for line in path.read_text().splitlines():
        match = LINE.match(line)
        if match and match["name"]:
            given[match["name"]] = json.loads(match["value"])
        elif match and match["gives"]:
            found["gives"] = json.loads(match["gives"])
        elif match and match["near"]:
            found["near"] = float(match["near"])
        elif match and match["between"]:
            found["between"] = tuple(map(float, match["between"].split()))
        elif not line.startswith("//"):
            break
    assert found.keys() & {"gives", "between"}, f"{path} does not say what it gives"
    return given, found


def run_program(path, make_target):
    given, expected = expectation(path)
    text = path.read_text()
    main = main_of(load_text(SourceFile(path.name, text), numpy_target))
    types = dict(zip(main.parameter_names, main.parameter_types, strict=True))
    arrays, numbers = {}, {}
    for name, value in given.items():
        if isinstance(types.get(name), FunctionType):
            arrays[name] = np.array(value, DTYPES[component_types(types[name].result)[0]])
        else:
            numbers[name] = str(value)
    return value_of(text, make_target, numbers, path.parent, **arrays), expected


def assert_gives(found, expected):
    if "between" in expected:
        low, high = expected["between"]
        assert np.isfinite(found).all() and (found >= low).all() and (found <= high).all()
        return
    wanted = expected["gives"]
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            assert np.allclose(found[name], value, rtol=0, atol=expected["near"]), name
        return
    wanted = np.array(wanted)
    assert found.shape == wanted.shape
    assert np.allclose(found, wanted, rtol=0, atol=expected["near"])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_gives_what_its_head_says(path):
    assert_gives(*run_program(path, numpy_target))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_gives_the_same_on_a_device(path, device):
    assert_gives(*run_program(path, lambda compilation: DeviceTarget(compilation, device, "device")))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_gives_the_same_by_passes(path, gl):
    try:
        found, expected = run_program(path, lambda compilation: GlslTarget(compilation, gl))
    except UnavailableError as error:
        assert "double" in str(error) and "double" in path.read_text()
        return
    assert_gives(found, expected)
