"""half and byte: types of elements, which operations take as float and int."""

import numpy as np
import pytest

from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.numpy.target import NumpyTarget
from tests.cdollar.evaluate import error_of, value_of
from tests.cdollar.test_schedules import AsGpu

ALL_HALVES = np.arange(65536, dtype="u2").view("f2")
BYTES = np.arange(256, dtype="u1")
CONVERSIONS = """
final class Row { half h; byte wrapped, saturated; half3 v; }
half grown(half x, byte n) { half y = x; for (int i = 0; i < n; i++) y = (half) (y * 1.1); return y; }
Row[] main(half[] h, byte[] b, float[] f, half s) {
    half[] c = [0.1, 2];
    var r(i : f) = Row((half) f(i), (byte) (b(i % 256) * 3 - 7), (byte) f(i),
                       half3(h.wrap(7 * i) + s, grown(h.wrap(i), b(i % 5)), c(i % 2)));
    return r;
}
"""


def edges():
    """Floats at, below and above the middle of neighboring halves, the greatest one's included."""
    positive = ALL_HALVES[:0x7C00].astype("f4")
    middle = (positive[:-1] + positive[1:]) / 2
    middle = np.append(middle, np.float32(65520))
    return np.concatenate([positive, middle, -middle, np.nextafter(middle, np.float32(0)), -positive * 2, [np.nan]])


def as_numpy(h, b, f, s):
    """The result of CONVERSIONS by NumPy's float16 and uint8."""
    i = np.arange(len(f))
    with np.errstate(all="ignore"):
        wrapped = (b[i % 256].astype("i4") * 3 - 7).astype("u1")
        saturated = np.clip(np.nan_to_num(f), 0, 255).astype("u1")
        y = h[i % len(h)]
        for n in range(4):
            y = np.where(n < i % 5, (y.astype("f4") * np.float32(1.1)).astype("f2"), y)
        third = np.array([0.1, 2], "f2")[i % 2]
        v = np.stack([(h[7 * i % len(h)].astype("f4") + np.float32(np.float16(s))).astype("f2"), y, third], -1)
        return {"h": f.astype("f2"), "wrapped": wrapped, "saturated": saturated, "v": v}


def check_conversions(make_target=NumpyTarget, step=1):
    """Compares what a target yields with NumPy's conversions; of the floats it takes every `step`-th."""
    arrays = {"h": ALL_HALVES, "b": BYTES, "f": edges()[::step]}
    result = value_of(CONVERSIONS, make_target, {"s": "0.1"}, **arrays)
    for field, expected in as_numpy(**arrays, s=0.1).items():
        assert result[field].dtype == expected.dtype
        assert np.array_equal(result[field], expected, equal_nan=expected.dtype.kind == "f"), field


def test_conversions_round_to_nearest_even_and_bytes_wrap_or_saturate(device):
    check_conversions()
    check_conversions(lambda dag: DeviceTarget(dag, device, "device", strict=True))


def test_conversions_in_glsl(gl):
    check_conversions(lambda dag: GlslTarget(dag, gl, strict=gl.version >= 400), 7)


def test_operations_and_reductions_are_those_of_float_and_int():
    text = "float main(half[] h, byte[] b) { var c = h * h; return sum(c) + max(b) + sum(b * b) / 2 + scan(b)(255); }"
    h = np.array([0.1, 300, -2], "f2")
    exact = np.sum(h.astype("f4") ** 2, dtype="f8")
    total = np.float32(exact) + np.float32(255) + np.float32(np.sum(np.arange(256) ** 2) // 2) + np.float32(32640)
    assert np.isclose(value_of(text, h=h, b=BYTES), total, rtol=1e-6)
    text = (
        "byte least(byte x, byte y) => x < y ? x : y; byte[] main(byte[,] b) { var r(i) = least(b(i, j)); return r; }"
    )
    assert np.array_equal(value_of(text, b=BYTES.reshape(16, 16)), np.arange(0, 256, 16, dtype="u1"))
    text = "float loss(float[] w) { let r(i) = (half) w(i); return sum(r(i) * r.clamp(i + 1), i : r); } "
    w = np.array([0.5, 2, -1.5], "f4")  # rounding passes derivatives on
    assert np.array_equal(value_of(text + "float[] main(float[] w) => grad(loss)(w);", w=w), [2, -1, -1])
    text = "float loss(float[] w, half[] h) => sum(w * h * h); float[] main(float[] w, half[] h) => grad(loss)(w, h);"
    assert np.array_equal(value_of(text, w=np.ones(3, "f4"), h=h), h.astype("f4") ** 2)


def test_gpus_read_and_write_four_at_a_time(device, rng):
    h, b, f = rng.random(4099).astype("f2"), rng.integers(0, 256, 4099).astype("u1"), rng.random(4099).astype("f4")
    text = "half[] main(half[] h, byte[] b, float[] f) { var r(i) = (half) (h(i) * f(i) + b(i)); return r; }"
    texts = []

    def target(dag):
        made = DeviceTarget(dag, AsGpu(device), "device", strict=True)
        made.trace = texts
        return made

    expected = (h.astype("f4") * f + b).astype("f2")
    assert np.array_equal(value_of(text, target, h=h, b=b, f=f), expected)
    (kernel,) = [plan.text for kind, _, plan in texts if kind == "kernel"]
    assert "((GLOBAL ushort4 *)out0)[vector_index] = out0_vector" in kernel


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return h;", "h is half[], but byte[] is needed"),
        ("var r(i) = b(i) + b(i); return r;", "is int[], but byte[] is needed"),
        ("byte x = 256; return b;", "256 is int, but byte is needed"),
        ("half x = 1.5f; return b;", "1.5f is float, but half is needed"),
        ("half x = 1e6; return b;", "1e6 is float, but half is needed"),
        ("var r(half i) = b(0); return b;", "a bound variable cannot be half"),
    ],
)
def test_what_does_not_fit_is_one_error(body, words):
    error = error_of(f"byte[] main(byte[] b, half[] h) {{ {body} }}", b=BYTES, h=ALL_HALVES)
    assert words in str(error).replace("(int)", "[]"), str(error)


def test_python_gives_and_takes_both_types():
    import renderer.cdollar

    @renderer.cdollar.function
    def halved(h, b):
        """half[] main(half[] h, byte[] b) { var r(i) = (half) (0.5 * h(i) + b(i)); return r; }"""

    h = np.arange(256).astype("f2")
    result = halved(h, BYTES).numpy()
    assert result.dtype == np.float16 and np.array_equal(result, (1.5 * np.arange(256)).astype("f2"))
