"""Integers of 64 bits: NumPy's arithmetic on every target that has them, overflow included."""

from functools import partial

import numpy as np
import pytest

from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.errors import UnavailableError
from tests.cdollar.evaluate import error_of, value_of

EDGES = [0, 1, -1, 2, 7, -7, 63, 64, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), -(2**63) + 1, 123456789012345]
PAIRS = np.array([(a, b) for a in EDGES for b in EDGES], "i8")
OPERATIONS = [
    "a + b",
    "a - b",
    "a * b",
    "a / b",
    "a % b",
    "a & b",
    "a ^ b",
    "a << b",
    "a >> b",
    "min(a, b)",
    "-a",
    "~b",
]
OPERATIONS += [
    "abs(a)",
    "sign(b)",
    "a < b ? a : b",
    "(long) ((double) a * 3)",
    "(long) (float) b",
    "a + 3",
    "(int) a + b",
]


def exact(a, b):
    """The results in Python's integers."""

    def wrap(n):
        return (n + 2**63) % 2**64 - 2**63

    def quotient(x, y):
        return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)

    def cut(x):
        return max(-(2**63), min(2**63 - 1, int(x)))

    low = (a + 2**31) % 2**32 - 2**31
    return [
        wrap(a + b), wrap(a - b), wrap(a * b), wrap(quotient(a, b)), 0 if b == 0 else a - b * quotient(a, b),
        a & b, a ^ b,
        wrap(a << (b % 64)), a >> (b % 64), min(a, b), wrap(-a), ~b, wrap(abs(a)), (b > 0) - (b < 0), min(a, b),
        cut(float(a) * 3), cut(float(np.float32(b))), wrap(a + 3), wrap(low + b),
    ]  # fmt: skip


def program():
    """All operations in one kernel."""
    text = "".join(f"n == {k} ? {operation} : " for k, operation in enumerate(OPERATIONS))
    return (
        f"long apply(int n, long a, long b) => {text} 0;\n"
        f"long[,] main(long[] p, long[] q) {{ var r(i, n : 0..{len(OPERATIONS)}) = apply(n, p(i), q(i)); return r; }}"
    )


def check(make):
    expected = np.array([exact(int(a), int(b)) for a, b in PAIRS], "i8")
    found = value_of(program(), make, p=PAIRS[:, 0].copy(), q=PAIRS[:, 1].copy())
    assert found.dtype == np.int64
    for k, operation in enumerate(OPERATIONS):
        wrong = np.flatnonzero(found[:, k] != expected[:, k])
        assert not wrong.size, (operation, PAIRS[wrong[0]], found[wrong[0], k], expected[wrong[0], k])


def test_long_arithmetic():
    check(NumpyTarget)


@pytest.mark.slow
def test_long_arithmetic_on_devices(device):
    check(partial(DeviceTarget, device=device, name="device", strict=True))


def test_glsl_says_that_it_has_no_long(gl):
    make = partial(GlslTarget, gl=gl)
    with pytest.raises(UnavailableError, match="--target glsl: the program uses long"):
        value_of(
            "int[] main(int[] a) { var b(i) = a(i) * 3000000000L > 0 ? 1 : 0; return b; }", make, a=np.ones(3, "i4")
        )


def test_sums_beyond_32_bits():
    a = np.full(3000, 2**31 - 1, "i4")
    assert value_of("long main(int[] a) { return sum((long) a(i)); }", a=a) == 3000 * (2**31 - 1)
    assert value_of("long main(int[] a, long b) => b + size(a);", numbers={"b": str(2**40)}, a=a) == 2**40 + 3000
    assert value_of("long main(long[] a) => max(a);", a=np.array([5, 2**62], "i8")) == 2**62


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("int main() => 5L;", "CS0401"),
        ("long main() => 9223372036854775808L;", "CS0114"),
        ("int main() => 5000000000;", "CS0114"),
        ("float main(float[] a) { var b(long i) = a(i); return b(1); }", "CS0305"),
    ],
)
def test_what_is_no_long(text, code):
    assert error_of(text, **({"a": np.ones(3, "f4")} if "a)" in text else {})).code == code
