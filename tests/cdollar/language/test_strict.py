"""--strict: sums and products of floats have the same bits on every target, by one order that is written out here."""

import numpy as np
import pytest

from renderer.cdollar.targets import strict_order
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from tests.cdollar.evaluate import value_of
from tests.cdollar.test_schedules import AsGpu


def in_blocks(numbers, operation, neutral):
    """The documented order, one number at a time: blocks of 64 neighbors, then blocks of 64 such values."""
    numbers = [np.float32(n) for n in numbers]
    while True:
        blocks = []
        for first in range(0, max(1, len(numbers)), 64):
            total = np.float32(neutral)
            for number in numbers[first : first + 64]:
                total = operation(total, number)
            blocks.append(total)
        if len(blocks) == 1:
            return blocks[0]
        numbers = blocks


def targets(device, gl):
    named = {
        "numpy": lambda dag: NumpyTarget(dag, strict=True),
        "device": lambda dag: DeviceTarget(dag, device, "device", strict=True),
        "gpu plans": lambda dag: DeviceTarget(dag, AsGpu(device), "device", strict=True),
    }
    if gl.version >= 400:
        named["glsl"] = lambda dag: GlslTarget(dag, gl, strict=True)
    return named


@pytest.mark.parametrize(
    "count", [*(pytest.param(count, marks=pytest.mark.slow) for count in (1, 64, 65, 4097, 10_000, 300_000)), 70]
)
def test_sums_and_products_have_the_bits_of_the_documented_order(device, gl, rng, count):
    a = rng.standard_normal(count).astype("f4")
    near_one = (1 + 0.001 * a).astype("f4")
    text = "float2 main(float[] a, float[] n) { return float2(sum(a), * n); }"
    with np.errstate(all="ignore"):
        expected = [in_blocks(a, np.add, 0), in_blocks(near_one, np.multiply, 1)]
    for name, target in targets(device, gl).items():
        assert value_of(text, target, a=a, n=near_one).tolist() == expected, name


@pytest.mark.slow
def test_every_division_among_threads_gives_the_same_bits(device, gl, rng, monkeypatch):
    a = rng.standard_normal(20_000).astype("f4")
    text = "float main(float[] a) => sum(a);"
    expected = in_blocks(a, np.add, 0)
    for most in (1, 3, 10, 1000):
        monkeypatch.setattr(strict_order, "MAX_PARTIALS", most)
        for name, target in targets(device, gl).items():
            assert value_of(text, target, a=a) == expected, (name, most)


def test_matrix_products_have_the_same_bits_on_every_target(device, gl, rng):
    a, b = rng.standard_normal((9, 200)).astype("f4"), rng.standard_normal((200, 7)).astype("f4")
    text = "float[,] main(float[,] a, float[,] b) { var c(j, k) = + (a(j, l) * b(l, k)); return c; }"
    expected = [[in_blocks(a[j] * b[:, k], np.add, 0) for k in range(7)] for j in range(9)]
    for name, target in targets(device, gl).items():
        assert value_of(text, target, a=a, b=b).tolist() == expected, name


def test_functions_that_reduce_go_from_left_to_right(device, gl, rng):
    a = rng.standard_normal(300).astype("f4")
    text = "[Associative] float mix(float p, float q) => p * 0.999 + q;\nfloat main(float[] a) { return mix(a); }"
    expected = a[0]
    for number in a[1:]:
        expected = expected * np.float32(0.999) + number
    for name, target in targets(device, gl).items():
        assert value_of(text, target, a=a) == expected, name
