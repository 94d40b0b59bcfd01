"""Warnings of programs that run: with carets, and only where the value is likely not what was meant."""

import numpy as np
import pytest

from renderer import cdollar
from renderer.cli import main
from tests.cdollar.evaluate import value_of, warnings_of

SQUARES = "(p(i, k) - p(j, k)) * (p(i, k) - p(j, k))"
LOSS = "float loss(float[,] p) {{ {} return sum(d); }} float[,] main(float[,] p) => grad(loss)(p);"


def test_an_inner_reduction_that_takes_all_variables(rng):
    p = rng.standard_normal((4, 2)).astype("f4")
    inner = f"float main(float[,] p) => + (sqrt(+ ({SQUARES})));"
    (warning,) = warnings_of(inner, p=p)
    line, caret = str(warning).splitlines()[1:3]
    assert warning.code == "CS0701" and "runs over i, k, j" in str(warning)
    assert line[caret.index("^") : caret.rindex("^") + 1] == f"+ (sqrt(+ ({SQUARES})))"
    outer = f"float main(float[,] p) => + (sqrt(+ ({SQUARES})), int i, int j);"
    assert not warnings_of(outer, p=p)
    distances = np.sqrt(((p[:, None] - p[None]) ** 2).sum(-1))
    assert np.allclose(value_of(outer, p=p), distances.sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "distance,expected",
    [
        (f"var d(i, j) = sqrt(sum({SQUARES}));", 1),
        ("let q(i, j, k) = p(i, k) - p(j, k); var d(i, j) = sqrt(sum(q(i, j, k) * q(i, j, k)));", 1),
        ("var q(i) = float2(p(i, 0), p(i, 1)); var d(i, j) = length(q(i) - q(j));", 1),
        (f"var d(i, j) = i == j ? 0 : sqrt(sum({SQUARES}));", 0),
        (f"var d(i, j) = sqrt(sum({SQUARES}) + 0.01);", 0),
        ("var d(i, j) = sqrt(abs(p(i, 0) * p(j, 1)) + sum((p(i, k) + p(j, k)) * (p(i, k) - p(j, k) + 9)));", 0),
    ],
)
def test_a_gradient_without_a_value(rng, distance, expected):
    p = (1 + rng.random((4, 2))).astype("f4")
    text = LOSS.format(distance)
    warnings = warnings_of(text, p=p)
    assert [w.code for w in warnings] == ["CS0702"] * expected
    assert all("i == j" in str(w) for w in warnings)
    assert np.isnan(value_of(text, p=p)).any() == bool(expected)


DIFFERENCES = "float[] main(float[] a, float[] b) {{ var d(i) = b(i + 1) - b(i); {} return r; }}"


@pytest.mark.parametrize(
    "text,expected",
    [
        ("var r(i) = a(i) - d(i);", 1),
        ("var r = a - d;", 1),
        ("var r(i) = a(i) + b(i + 2);", 1),
        ("var r(i : 0..size(d)) = a(i) - d(i);", 0),
        ("var r(i) = a.wrap(i) - d(i);", 0),
        ("var r(i) = a(i) - d.clamp(i);", 0),
        ("var r(i) = 2 * d(i);", 0),
        ("var r(i) = a(i - 1) + a(i + 1) - 2 * a(i);", 0),
        ("var r(i : a) = i < size(d) ? a(i) - d(i) : 0;", 0),
    ],
)
def test_a_range_that_leaves_elements_out(text, expected):
    given = {"a": np.arange(5, dtype="f4"), "b": np.ones(5, "f4")}
    warnings = warnings_of(DIFFERENCES.format(text), **given)
    assert [w.code for w in warnings] == ["CS0703"] * expected
    assert all("part of 0..5" in str(w) for w in warnings)
    if expected:
        assert value_of(DIFFERENCES.format(text), **given).size < 5


def test_a_loop_that_shortens_its_array_is_warned_of_by_the_command(tmp_path, capsys):
    text = "float[] main() { float[] u = [1, 2, 3, 4]; var r(i) = u(i) - 0.5 * d(i); return r; }"
    (tmp_path / "a.cb").write_text(text.replace("var r", "var d(i) = u(i + 1) - u(i); var r"))
    assert main(["run", str(tmp_path / "a.cb"), "--target", "numpy"]) == 0
    shown = capsys.readouterr()
    assert "warning CS0703" in shown.err and "[0.5 1.5 2.5]" in shown.out


def test_python_warns():
    f = cdollar.function("float f(float2[] p) => sum(length(p(i) - p(j)));", target="numpy", name="f")
    with pytest.warns(UserWarning, match="CS0702"):
        f.grad(np.ones((3, 2), "f4"))


def test_warnings_and_what_reductions_run_over_are_shown(tmp_path, capsys):
    np.save(tmp_path / "p.npy", np.ones((3, 2), "f4"))
    (tmp_path / "a.cb").write_text("float main(float[,] p) => + (sqrt(+ (p(i, k))));")
    words = ["run", str(tmp_path / "a.cb"), "--in", f"p={tmp_path / 'p.npy'}", "--target", "numpy", "--explain"]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "warning CS0701" in shown.err
    assert "+ (p(i, k)) at 1:35 runs over i : 0..3, k : 0..2" in shown.out
