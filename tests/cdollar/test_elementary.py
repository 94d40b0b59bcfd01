"""The elementary functions of shaders/cdollar/elementary.h: errors against float64, and the same bits everywhere."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.paths import SCENES
from renderer.pictures.cdollar import Picture
from tests.cdollar.evaluate import value_of
from tests.seeds import seed_of

# name -> (units in the last place, NumPy's function)
FUNCTIONS = {
    "sin": (2.6, np.sin), "cos": (2.6, np.cos), "tan": (4.6, np.tan), "sinh": (3, np.sinh), "cosh": (3, np.cosh),
    "tanh": (1.7, np.tanh), "asin": (3.6, np.arcsin), "acos": (3.6, np.arccos), "atan": (2.9, np.arctan),
    "exp": (1.1, np.exp), "exp2": (1, np.exp2), "log": (1, np.log), "log2": (0.6, np.log2), "log10": (0.6, np.log10),
    "pow": (1.5, np.power), "atan2": (2.9, np.arctan2),
}  # fmt: skip
TURNING = ("sin", "cos", "tan")  # whose errors are stated for |x| <= 100
BINARY = ("pow", "atan2")
FIELDS = ", ".join(f"of_{name}" for name in FUNCTIONS)
CALLS = ", ".join(f"{name}({'a(i), b(i)' if name in BINARY else 'a(i)'})" for name in FUNCTIONS)
TEXT = f"""final class All {{ float {FIELDS}; }}
All[] main(float[] a, float[] b) {{ var r(i) = All({CALLS}); return r; }}"""
SPECIAL = [
    0.0,
    -0.0,
    1,
    -1,
    0.5,
    2,
    -2,
    3,
    -3,
    1e-45,
    1e-38,
    3.4e38,
    -3.4e38,
    1 << 24,
    1 << 26,
    88.7,
    -104,
    127,
    np.inf,
]
SPECIAL += [-np.inf, np.nan]


def operands(rng, count):
    """Ordinary numbers, numbers of all sizes, and every pair of special values."""
    any_bits = rng.integers(0, 1 << 32, (2, count), dtype="u8").astype("u4").view("f4")
    usual = rng.standard_normal((2, count)) * [[1], [20]]
    special = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    with np.errstate(invalid="ignore"):
        a, b = np.concatenate([any_bits, usual, np.abs(usual), [usual[0], np.rint(usual[1])], special], axis=1)
    return a.astype("f4"), b.astype("f4")


def results(make_target, a, b):
    out = value_of(TEXT, make_target, a=a, b=b)
    return {name: out[f"of_{name}"] for name in FUNCTIONS}


@functools.cache
def emulated_gpu():
    emulated = pytest.importorskip("tests.emulated")
    try:
        return emulated.cuda_machine(devices=1, seed=seed_of("C$ on an emulated GPU")).CudaDevice(0)
    except (OSError, RuntimeError) as error:
        pytest.skip(f"no emulation: {error}")


@pytest.mark.parametrize("strict", [True, False])
def test_errors_and_special_values(device, rng, strict):
    """Without `strict`, on a processor; GPUs then call their drivers' functions, which are faster."""
    if not (strict or device.properties.scalar_threads):
        pytest.skip("a GPU's own functions")
    a, b = operands(rng, 20_000)
    found = results(lambda dag: DeviceTarget(dag, device, "device", strict=strict), a, b)
    for name, (limit, function) in FUNCTIONS.items():
        with np.errstate(all="ignore"):
            wanted = function(*np.float64([a, b] if name in BINARY else [a]))
            rounded, unit = wanted.astype("f4"), np.spacing(np.abs(wanted).astype("f4"))
            same = (found[name] == rounded) & (np.signbit(found[name]) == np.signbit(rounded)) | np.isnan(wanted)
            ulp = np.where(same, 0, np.abs(found[name] - wanted) / unit)
        assert np.array_equal(np.isnan(found[name]), np.isnan(wanted)), name
        usual = np.abs(a) <= 100 if name in TURNING else True
        assert np.all((ulp <= limit) | ~np.bool_(usual)), (name, ulp.max(), a[ulp.argmax()], b[ulp.argmax()])
        if name in ("sin", "cos"):
            assert np.nanmax(np.abs(found[name] - wanted)) < 1.4e-7, name


def test_gpus_and_processors_give_the_same_bits(device, rng):
    """The text of CUDA, compiled by g++, on an emulated GPU."""
    a, b = operands(rng, 2_000)
    targets = [lambda dag, d=d: DeviceTarget(dag, d, "device", strict=True) for d in (device, emulated_gpu())]
    here, there = (results(target, a, b) for target in targets)
    for name in FUNCTIONS:
        assert np.array_equal(here[name], there[name], equal_nan=True), name


def test_doubles_keep_the_precision_of_doubles(device, rng):
    a = rng.standard_normal(100)
    target = functools.partial(DeviceTarget, device=device, name="device", strict=True)
    found = value_of("double[] main(double[] a) => sin(a) + exp(a);", target, a=a)
    assert np.allclose(found, np.sin(a) + np.exp(a), rtol=1e-14, atol=1e-14)


WITH_RARE_OPERANDS = ["sin", "cos", "tan", "exp", "exp2", "log", "log2", "log10", "pow"]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", ["all", *(pytest.param(name, marks=pytest.mark.slow) for name in WITH_RARE_OPERANDS)])
def test_rare_operands_do_not_change_others(device, rng, name, strict):
    """A tile with a rare operand is computed by a second loop, which gives the other elements the bits of the first.

    The loops of all functions in one kernel are those of test_gpus_and_processors_give_the_same_bits: compiled once.
    """
    a = np.abs(rng.standard_normal((2, 4096)) * [[1], [20]]).astype("f4").ravel()
    b = rng.standard_normal(a.shape).astype("f4")

    def found(a):
        target = functools.partial(DeviceTarget, device=device, name="device", strict=strict)
        if name == "all":
            every = results(target, a, b)
            return np.stack([every[each] for each in WITH_RARE_OPERANDS])
        call = "pow(a, b)" if name == "pow" else f"{name}(a)"
        return value_of(f"float[] main(float[] a, float[] b) => {call} + 0 * b;", target, a=a, b=b)[None]

    alone, mixed = found(a), a.copy()
    for rare in (np.inf, np.nan, np.float32(1e30), np.float32(1e-40), -3, 0):
        mixed[::512] = rare
        others = np.arange(a.size) % 512 != 0
        limit = 0 if strict else 1  # other contractions of the two loops
        with_rare, without = found(mixed)[:, others].astype("f8"), alone[:, others]
        apart = np.subtract(with_rare, without, where=with_rare != without, out=np.zeros_like(without, "f8"))  # inf too
        worst = (np.abs(apart) / np.spacing(np.fmin(np.abs(without), np.float32(3e38)))).max(1)
        assert np.all(worst <= limit), (name, rare, worst)


EVERY = ["exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan"]


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_errors_of_every_float(device, name):
    """Every float for which the error is stated; the quick tests draw some."""
    if not device.properties.scalar_threads:
        pytest.skip("a GPU's own functions")
    limit, function = FUNCTIONS[name]
    text = f"float[] main(float[] a) => {name}(a);"
    end = np.float32(100 if name in TURNING else 1 if name in ("asin", "acos") else np.inf).view("u4")
    signs = [0] if name.startswith("log") else [0, 1 << 31]
    for first in [sign + start for sign in signs for start in range(0, int(end), 1 << 24)]:
        a = np.arange(first, min(first + (1 << 24), first // (1 << 31) * (1 << 31) + int(end)), dtype="u4").view("f4")
        found = value_of(text, lambda dag: DeviceTarget(dag, device, "device"), a=a)
        with np.errstate(all="ignore"):
            wanted = function(a.astype("f8"))
            unit = np.spacing(np.abs(wanted).astype("f4"))
            ulp = np.where(found == wanted.astype("f4"), 0, np.abs(found - wanted) / unit)
        assert ulp.max() <= limit, (name, a[ulp.argmax()], ulp.max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mandelbrot.cb", "spheres.cb"])
def test_pictures_have_the_same_bits_on_gpus_and_processors(device, name):
    frames = []
    for each in (device, emulated_gpu()):
        picture = Picture(SimpleNamespace(device=each))
        settings = Picture.read_settings({"program": name}, name, SCENES)
        frames.append(picture.draw(settings, (64, 48), 0.0).read())
    assert np.array_equal(*frames)
