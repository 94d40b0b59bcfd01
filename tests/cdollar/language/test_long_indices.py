"""Arrays of 2^31 elements and more, by a lower limit: kernels that need it count in 64 bits, with the same results."""

from random import Random

import numpy as np
import pytest

from renderer.cdollar.targets import device_target, expression_emitter
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.errors import UnavailableError
from tests.cdollar.evaluate import value_of
from tests.cdollar.random_programs import MAX_PARTS, RandomPrograms, arguments, differences
from tests.cdollar.test_fuzz import STRICT
from tests.cdollar.test_schedules import AsGpu

PROGRAMS = {
    "map": "float[,] main(float[,] a) { var r(i, j) = 2 * a(i, j) + i; return r; }",
    "gather": "float[] main(float[,] a) { var r(i : 0..9) = a.clamp(i * 7, 3 * i); return r; }",
    "rows": "float[] main(float[,] a) { var r(i) = sum(a(i, j)); return r; }",
    "whole": "float main(float[,] a) => sum(a) + max(a);",
    "transpose": "float[,] main(float[,] a) { var t(j, i) = a(i, j); return t; }",
    "product": "float[,] main(float[,] a) { var c(i, j) = + (a(i, l) * a(j, l)); return c; }",
}


@pytest.fixture
def low_limit(monkeypatch):
    """Every array of 40 elements is a large one."""
    monkeypatch.setattr(expression_emitter, "INDEX_LIMIT", 40)


@pytest.fixture
def lower_limit(monkeypatch):
    """Every array of 3 elements is a large one, and so is the number of parts of a result."""
    monkeypatch.setattr(expression_emitter, "INDEX_LIMIT", 3)


@pytest.mark.parametrize(
    "text, plans",
    [
        pytest.param(text, plans, marks=[] if name in ("map", "rows") and plans == "device" else pytest.mark.slow)
        for name, text in PROGRAMS.items()
        for plans in ("device", "gpu")
    ],
)
def test_large_arrays_are_counted_in_64_bits(low_limit, device, rng, text, plans):
    a, texts = rng.integers(-9, 9, (50, 70)).astype("f4"), []

    def target(dag):
        made = DeviceTarget(dag, device if plans == "device" else AsGpu(device), "device")
        made.trace = texts
        return made

    assert np.array_equal(value_of(text, target, a=a), value_of(text, a=a))
    kernels = [plan.text for kind, _, plan in texts if kind == "kernel"]
    assert any("int64" in kernel for kernel in kernels), kernels


@pytest.mark.parametrize("plans", ["device", "gpu"])
@pytest.mark.parametrize("name", ["rows", "whole"])
def test_many_parts_are_counted_in_64_bits(lower_limit, device, rng, name, plans):
    """The parts of one sum, and of a sum for each row: a kernel has sizes of 32 and of 64 bits."""
    a, chosen = rng.integers(-9, 9, (50, 70)).astype("f4"), device if plans == "device" else AsGpu(device)
    found = value_of(PROGRAMS[name], lambda dag: DeviceTarget(dag, chosen, "device"), a=a)
    assert np.array_equal(found, value_of(PROGRAMS[name], a=a))


def test_small_arrays_are_counted_in_32_bits(device, rng):
    texts = []

    def target(dag):
        made = DeviceTarget(dag, device, "device")
        made.trace = texts
        return made

    for text in (PROGRAMS["map"], PROGRAMS["rows"]):
        value_of(text, target, a=np.ones((5, 7), "f4"))
    assert not any("int64" in plan.text for kind, _, plan in texts if kind == "kernel")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_have_the_same_bits_with_long_indices(low_limit, device, seed):
    text, (arrays, numbers) = RandomPrograms(Random(seed)).text(MAX_PARTS), arguments(seed)
    expected = value_of(text, STRICT, numbers, **arrays)
    result = value_of(text, lambda dag: DeviceTarget(dag, device, "device", strict=True), numbers, **arrays)
    assert not differences(result, expected), text


def test_primitives_say_what_they_take(monkeypatch, device):
    monkeypatch.setattr(device_target, "MAX_INDEX", 40)
    with pytest.raises(UnavailableError, match=r"sort would take 50 elements; .*--target numpy more"):
        text = "float[] main(float[] a) => sort(a);"
        value_of(text, lambda dag: DeviceTarget(dag, device, "device"), a=np.ones(50, "f4"))
