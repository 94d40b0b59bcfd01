"""C$ from Python: decorated texts, NumPy and DLPack in and out, repeated calls, errors; the host time of a call."""

import pickle
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import renderer
from renderer import cdollar
from renderer.cdollar.frontend.diagnostics import ArgumentError, ProgramError
from renderer.cdollar.runtime.function import MAX_RECORDINGS, Function
from renderer.errors import InputError, UserError
from renderer.gpu import dlpack, list_devices

SAXPY = "float[] saxpy(float a, float[] x, float[] y) { var r(i) = a * x(i) + y(i); return r; }"
BACKEND = next((info.backend for info in list_devices()[0]), None)
needs_device = pytest.mark.skipif(BACKEND is None, reason="no compute device")
TARGETS = ["numpy", pytest.param(BACKEND, marks=needs_device)]


class Foreign:
    """A tensor of another library: nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.fixture(scope="module", params=TARGETS)
def saxpy(request):
    return renderer.cdollar.function(SAXPY, target=request.param)


@pytest.fixture
def xy(rng):
    return rng.standard_normal(1000).astype("f4"), rng.standard_normal(1000).astype("f4")


def test_a_docstring_is_a_function():
    @renderer.cdollar.function
    def twice(x):
        """float[] twice(float[] x) { var y(i) = 2 * x(i); return y; }"""

    assert twice.__name__ == "twice"
    assert twice(np.arange(4, dtype="f4")).numpy().tolist() == [0, 2, 4, 6]
    assert twice(x=[1.5, 2]).numpy().tolist() == [3, 4]


def test_repeated_calls_take_other_numbers_and_arrays(saxpy, xy):
    x, y = xy
    kept = []
    for a in (2.0, 3, np.float32(0.5), -1.25, 2.0):
        kept.append((saxpy(a, x, y), np.float32(a) * x + y))
        kept.append((saxpy(a, y, x), np.float32(a) * y + x))
    kept.append((saxpy(1.0, x[:7], y[:7]), x[:7] + y[:7]))
    kept.append((saxpy(a=1.0, y=x[::2], x=y[::2]), y[::2] + x[::2]))
    for result, expected in kept:  # a result keeps its contents while later calls run
        assert np.allclose(result.numpy(), expected, rtol=1e-6, atol=1e-6)


def test_a_zero_of_the_other_sign_is_another_number(saxpy, xy):
    x = np.full_like(xy[0], -0.0)
    signs = [np.signbit(saxpy(a, np.ones_like(x), x).numpy()).all() for a in (0.0, -0.0, 0.0)]
    assert signs == [False, True, False]


@needs_device
def test_two_functions_have_one_device(xy):
    one, other = (renderer.cdollar.function(SAXPY, target=BACKEND) for _ in range(2))
    uploads = one.target.device.counters.uploads
    made = one(2.0, *xy)
    assert one.target.device is other.target.device
    assert np.array_equal(other(1.0, made, made).numpy(), 2 * (2 * xy[0] + xy[1]))
    assert one.target.device.counters.uploads == uploads + 2


def test_results_are_arguments_and_numbers(saxpy, xy):
    x, y = xy
    chained = saxpy(1.0, saxpy(2.0, x, y), x)
    for _ in range(3):
        chained = saxpy(0.5, chained, y)
    expected = 3 * x + y
    for _ in range(3):
        expected = np.float32(0.5) * expected + y
    assert np.allclose(chained, expected, rtol=1e-5, atol=1e-5)
    total = renderer.cdollar.function("float total(float[] x) { return sum(x); }", target=saxpy.target.name)
    assert total(x).shape == () and float(total(x)) == pytest.approx(float(x.astype("f8").sum()), abs=1e-3)
    assert len(chained) == 1000 and chained[3] == chained.numpy()[3] and chained.dtype == np.float32


def test_dlpack_goes_in_and_out(saxpy, xy):
    x, y = xy
    for _ in range(3):
        result = saxpy(2.0, Foreign(x), Foreign(y))
        if result.__dlpack_device__() == (1, 0):
            assert np.allclose(np.from_dlpack(result), 2 * x + y, rtol=1e-6, atol=1e-6)
        else:
            with pytest.raises((BufferError, RuntimeError)):  # NumPy takes tensors of the host alone
                np.from_dlpack(result)
        assert np.allclose(result, 2 * x + y, rtol=1e-6, atol=1e-6)
        x, y = y.copy(), x
    with pytest.raises(ArgumentError, match="x: the tensor is not in C order"):
        saxpy(2.0, Foreign(np.ones((4, 4), "f4").T[1]), Foreign(y[:4]))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type_, expression", [("bool", "x(i) > 0"), ("float", "2 * x(i)"), ("int", "int(x(i))")])
def test_dlpack_gives_the_numbers_of_every_type(target, type_, expression):
    """Bools have other bytes on a device than on the host, so that DLPack gives a copy of the host."""
    f = renderer.cdollar.function(f"{type_}[] f(float[] x) {{ var r(i) = {expression}; return r; }}", target=target)
    x = np.array([-3, 0, 2, 5], "f4")
    result, wanted = f(x), {"bool": x > 0, "float": 2 * x, "int": x.astype("i4")}[type_]
    if type_ == "bool":
        assert result.__dlpack_device__() == (1, 0)
    if result.__dlpack_device__() == (1, 0):
        given = np.from_dlpack(result)
        assert given.dtype == wanted.dtype and np.array_equal(given, wanted)


@needs_device
def test_tensors_that_nobody_takes_are_let_go(xy):
    saxpy = renderer.cdollar.function(SAXPY, target=BACKEND)
    for _ in range(5):
        saxpy(2.0, *xy).__dlpack__()
    kept = saxpy(2.0, *xy).__dlpack__()
    assert len(dlpack._exported) <= 3 and kept is not None


@needs_device
def test_dlpack_shares_memory_with_a_processor(xy):
    saxpy = renderer.cdollar.function(SAXPY, target=BACKEND)
    x, y = xy
    result = saxpy(2.0, x, y)
    if result.__dlpack_device__() != (1, 0):
        pytest.skip("this device has memory of its own")
    first, second = np.from_dlpack(result), np.from_dlpack(result)
    assert first.ctypes.data == second.ctypes.data
    x = np.ones(64, "f4")
    assert x.ctypes.data % 16 == 0
    assert saxpy(1.0, Foreign(x), Foreign(x)).numpy().tolist() == [2] * 64
    x[:] = 5  # the same memory is read again
    assert saxpy(1.0, Foreign(x), Foreign(x)).numpy().tolist() == [10] * 64


@pytest.mark.parametrize("target", TARGETS)
def test_vectors_records_and_defaults(target, rng):
    text = (
        "final class P { float x; int n; }\n"
        "P[] f(float3[] v, float3 axis = float3(0, 1, 0)) { var p(i) = P(dot(v(i), axis), i); return p; }"
    )
    f, v = renderer.cdollar.function(text, target=target), rng.standard_normal((5, 3)).astype("f4")
    for _ in range(2):
        assert np.allclose(f(v).numpy()["x"], v[:, 1]) and f(v).numpy()["n"].tolist() == [0, 1, 2, 3, 4]
        assert np.allclose(f(v, (1, 0, 0)).numpy()["x"], v[:, 0])
        v = v + 1


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_that_decide_what_runs_are_never_taken_from_an_earlier_call(target):
    text = """
    float f(float[] x, float limit, int n) {
        let u(i) = x(i);
        for (int k = 0; k < n; k++) u = u * 2;
        while (max(u) < limit) u = u * 10;
        return limit > 100 ? max(u) : sum(u);
    }"""
    f = renderer.cdollar.function(text, target=target)
    x = np.array([1, 2], "f4")
    for _ in range(2):
        for limit, n, expected in ((1, 0, 3), (1, 1, 6), (50, 0, 300), (150, 0, 200), (1500, 1, 4000), (1, 0, 3)):
            assert float(f(x, float(limit), n)) == expected, (limit, n)
    assert float(f(x * 100, 1.0, 0)) == 300


@pytest.mark.parametrize("target", TARGETS)
def test_a_check_that_fails_is_an_error_when_the_result_is_read(target):
    f = renderer.cdollar.function("float[] f(float[] x, int[] k) { var y(i) = x(k(i)); return y; }", target=target)
    x, good, bad = np.arange(3, dtype="f4"), np.array([2, 0], "i4"), np.array([2, 7], "i4")
    for _ in range(2):
        assert f(x, good).numpy().tolist() == [2, 0]
        with pytest.raises(ProgramError, match="CS0317"):
            f(x, bad).numpy()


@needs_device
def test_a_failed_check_is_an_error_of_its_own_call_alone():
    f = renderer.cdollar.function("float[] f(float[] x, int[] k) { var y(i) = x(k(i)); return y; }", target=BACKEND)
    x, good, bad = np.arange(3, dtype="f4"), np.array([2, 0], "i4"), np.array([2, 7], "i4")
    f(x, good)
    failed, fine = f(x, bad), f(x, good)
    assert fine.numpy().tolist() == [2, 0]
    for _ in range(2):
        with pytest.raises(ProgramError, match="CS0317"):
            failed.numpy()


def test_many_shapes_do_not_pile_up(saxpy):
    for n in range(1, 2 * MAX_RECORDINGS, 9 if saxpy.target.name == "numpy" else 1):
        x = np.full(n, n, "f4")
        assert saxpy(1.0, x, x).numpy().tolist() == [2 * n] * n
    assert len(saxpy._recorded) <= MAX_RECORDINGS


@pytest.mark.parametrize(
    "arguments, named, error, words",
    [
        ((), {}, ArgumentError, "a: is missing"),
        ((1.0, [1.0], [1.0], 4), {}, ArgumentError, "takes 3 arguments, found 4"),
        ((1.0,), {"z": 3}, ArgumentError, "z: .* has no such parameter; it has a, x, y"),
        ((1.0,), {"a": 3}, ArgumentError, "a: is given twice"),
        ((1.0, 2.0, [1.0]), {}, ArgumentError, r"x: is float\[\], an array, but 2.0 is"),
        (("fast", [1.0], [1.0]), {}, ArgumentError, 'a: is float, but "fast" is given'),
        ((1.0, np.ones((2, 2), "f4"), [1.0]), {}, InputError, "x: has shape"),
        ((1.0, np.array(["a"]), [1.0]), {}, InputError, "x: holds <U1"),
        (([1, 2], [1.0], [1.0]), {}, ArgumentError, "float needs 1 numbers, found 2"),
    ],
)
def test_arguments_that_do_not_fit_are_one_sentence(saxpy, arguments, named, error, words):
    with pytest.raises(error, match=words) as caught:
        saxpy(*arguments, **named)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text, words",
    [
        ("float f(float x) => y;", "CS"),
        ("float f(float x) => x; float g(float x) => x;", "has the functions f, g; one must be `main`"),
        ("", "has the functions none"),
    ],
)
def test_programs_that_do_not_fit(text, words):
    with pytest.raises(UserError, match=words):
        renderer.cdollar.function(text)
    with pytest.raises(ArgumentError, match="needs a C\\$ program"):
        renderer.cdollar.function(lambda x: x)


@needs_device
@pytest.mark.slow
def test_a_warm_call_takes_less_than_50_us_of_the_host(xy):
    saxpy = renderer.cdollar.function(SAXPY, target=BACKEND)
    x, y = (saxpy(0.0, a, a) for a in xy)
    best = np.inf
    for _ in range(40):
        saxpy(1.0, x, y).numpy()
        started = time.perf_counter()
        for _ in range(50):
            saxpy(2.0, x, y)
        best = min(best, (time.perf_counter() - started) / 50)
    assert best < 50e-6


def test_a_tensor_of_pytorch_waits_for_no_stream_if_its_work_goes_to_ours(monkeypatch):
    made = type("Tensor", (), {"__module__": "torch"})()
    for handle, wanted in ((0, True), (77, False)):
        fake = SimpleNamespace(_C=SimpleNamespace(_cuda_getCurrentRawStream=lambda index, handle=handle: handle))
        monkeypatch.setitem(sys.modules, "torch", fake)
        assert dlpack._is_on_default_stream(made, 0) == wanted
        assert not dlpack._is_on_default_stream(np.zeros(3), 0), "other libraries have streams of their own"
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(_C=SimpleNamespace()))
    assert not dlpack._is_on_default_stream(made, 0)


def test_functions_results_and_errors_are_pickled():
    f = cdollar.function("float f(float[] a, float k = 2) => k * sum(a * a);", target="numpy", name="f")
    a = np.arange(4, dtype="f4")
    for made in (f, f.grad, cdollar.grad(f, "k"), f(a), f.grad(a)):
        copy = pickle.loads(pickle.dumps(made))
        values = [each(a) if isinstance(made, Function) else each for each in (made, copy)]
        assert np.array_equal(*values) and values[0].type == values[1].type
    with pytest.raises(ProgramError) as caught:
        cdollar.function("float main() => x;\nfloat g() => y;", target="numpy")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and copy.code == "CS0202" and len(copy.others) == 1


WRONG = [
    None, "x", [1, 2], [[1, 2], [3]], [1, "a"], {}, {1}, object(), np.ones((2, 2, 2)), np.ones(3, complex),
    np.array(["a"]), np.array([None]), 1j, 10**400, np.datetime64("2020"), np.ma.masked_array([1.0], [True]),
    slice(3), ..., np.zeros(3, [("q", "f4")]),
]  # fmt: skip


@pytest.mark.parametrize("parameter", ["float a", "int a", "float3 a", "float3[] a", "int[,] a", "float(float) a"])
def test_every_wrong_argument_is_an_error_of_the_program(parameter):
    f = cdollar.function(f"int main({parameter}) => 1;", target="numpy")
    for value in WRONG:
        with pytest.raises(UserError, match=r"^a: "):
            f(value)
    for wrong in (np.ones(2), 5):
        for call in (
            lambda wrong=wrong: cdollar.function("float main() => 1;", target=wrong),
            lambda wrong=wrong: cdollar.function("float main() => 1;", name=wrong),
            lambda wrong=wrong: cdollar.grad(f, wrong),
        ):
            with pytest.raises(UserError):
                call()


def test_errors_notes_and_warnings_are_about_the_users_own_line(capsys):
    with pytest.raises(ProgramError) as caught:
        cdollar.function("float main() => x;", target="numpy")
    assert len(caught.traceback) == 2  # this function and cdollar.function()
    f = cdollar.function("float f(float[] x) => x(7);", target="numpy", name="f")
    with pytest.raises(ProgramError) as caught:
        f(np.ones(3, "f4"))
    assert len(caught.traceback) == 2
    twice = cdollar.function("float f(float[] x) => sum(x);", target="numpy", name="f")
    assert [twice(np.ones(3)).item() for _ in range(3)] == [3, 3, 3]
    assert capsys.readouterr().err.count("it is rounded to float32") == 1
    far = cdollar.function("float f(float[] x) { var d(i, j) = sqrt((x(i) - x(j)) * (x(i) - x(j))); return + d; }")
    with pytest.warns(UserWarning, match="CS0702") as warned:
        far.grad(np.ones(3, "f4"))
    assert warned[0].filename == __file__


@pytest.mark.parametrize("target", TARGETS)
def test_a_tuple_of_numbers_is_results(target):
    split = Function("(float lo, float2 v) split(float[] a) => (min(a), float2(max(a), size(a)));", target)
    for k in range(2):  # compiled, then repeated
        low, v = result = split(np.arange(3, dtype="f4") + k)
        assert float(low) == result.lo.item() == k and result.v.numpy().tolist() == v.numpy().tolist() == [2 + k, 3]
