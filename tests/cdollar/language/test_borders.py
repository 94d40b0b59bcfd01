"""A border belongs to a function's value: through definitions, calls, classes and promotions."""

import numpy as np
import pytest

from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from tests.cdollar.evaluate import error_of, value_of

MODES = {
    "wrap": lambda i, n: i % n,
    "clamp": lambda i, n: np.clip(i, 0, n - 1),
    "mirror": lambda i, n: np.minimum(i % (2 * n), 2 * n - 1 - i % (2 * n)),
}
ELEMENTWISE = {
    "var f(i) = a.{mode}(i);": lambda read, i: read(i),
    "var f(i) = a.{mode}(2 * i) + 1;": lambda read, i: read(2 * i) + 1,
    "var g(i) = a.{mode}(i - 1); var f(j) = g(j + 3) * g(1 - j);": lambda read, i: read(i + 2) * read(-i),
    "var g = Both(a.{mode}); var f(i) = g(i) - 1;": lambda read, i: read(i - 1) + read(i + 1) - 1,
    "var f = moved(moved(a.{mode}, 1), by);": lambda read, i: read(i + 3),
    "var g(i) = a.{mode}(i); var f = g * g + 1;": lambda read, i: read(i) ** 2 + 1,
}
HEAD = """
final class Both : float(int) {{ float(int) f; float operator ()(int i) => f(i - 1) + f(i + 1); }}
float(int) moved(float(int) f, int by) {{ var g(i) = f(i + by); return g; }}
float[] main(float[] a, int by = 2) {{ {} var r(i : {}..{}) = f(i); return r; }}
"""


@pytest.mark.parametrize(
    "definition", [pytest.param(d, marks=pytest.mark.slow) if k % 2 else d for k, d in enumerate(ELEMENTWISE)]
)
def test_a_function_of_borders_has_values_everywhere(device, gl, rng, definition):
    a = rng.integers(0, 9, int(rng.integers(3, 8))).astype("f4")
    mode = str(rng.choice(list(MODES)))
    low = int(rng.integers(-12, 0))
    indices = np.arange(low, low + 20)
    wanted = ELEMENTWISE[definition](lambda i: a[MODES[mode](i, len(a))], indices)
    text = HEAD.format(definition.format(mode=mode), low, low + 20)
    for target in (NumpyTarget, lambda dag: DeviceTarget(dag, device, "device"), lambda dag: GlslTarget(dag, gl)):
        assert value_of(text, target, a=a).tolist() == wanted.tolist(), (text, a)


@pytest.mark.parametrize(
    "definition",
    [
        "var f(i) = a.wrap(i) + a(i);", "var f(i : 0..3) = a.wrap(i);", "let f(i) = a.wrap(i);",
        "var g(i) = a.wrap(i); var f(i : g) = a(i);", "var g(i) = a.wrap(i); var f = g + a;",
        "var f(i) = a.wrap(i) + sum(a(j) * a.wrap(i + j));", "var f(i) = i < 2 ? a(i) : a.wrap(i);",
    ],
)  # fmt: skip
def test_other_functions_keep_their_domain(definition):
    text = f"float main(float[] a) {{ {definition} return f(23); }}"
    assert error_of(text, a=np.ones(3, "f4")).code == "CS0303"


def test_the_domain_of_a_function_of_borders_is_that_of_what_it_reads():
    a = np.arange(3, dtype="f4")
    assert value_of("float main(float[] a) { var f(i) = a.wrap(i) + 1; return sum(f) + size(f); }", a=a) == 9
    steps = "float[] u = a; for (int k = 0; k < 60; k++) { var n(i) = u.wrap(i - 1) + u.wrap(i + 1); u = n * 0.5; }"
    assert value_of(f"float[] main(float[] a) {{ {steps} return u; }}", a=a).tolist() == pytest.approx([1, 1, 1])
    steps = steps.replace("float[] u = a", "float(int) u = a.wrap").replace("u.wrap", "u")
    assert value_of(f"float main(float[] a) {{ {steps.replace('60', '4')} return u(100); }}", a=a) == pytest.approx(
        1, abs=0.1
    )


@pytest.mark.parametrize(
    "definition,expected",
    [
        ("let b(i : a) = 3 * a(i); var f(int i) = b.wrap(2 * i);", 3),
        ("float[] b = 2 * a; var f(int i) = b.wrap(2 * i) + a.wrap(2 * i);", 3),
        ("var b(i : a) = sum(a(i) * c, c : 0..3); var f(i) = b.wrap(2 * i);", 3),
        ("let t = sum(a) / sum(a); var f(int i) = (t + 2) * a.wrap(2 * i);", 3),
    ],
)
def test_a_border_of_what_is_evaluated_once(definition, expected, rng):
    a = rng.integers(1, 9, 7).astype("f4")
    assert value_of(f"float main(float[] a) {{ {definition} return f(23); }}", a=a) == expected * a[46 % 7]
