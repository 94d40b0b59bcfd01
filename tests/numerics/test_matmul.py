"""Matrix products: every variant against float64 NumPy, any shape, and mistakes told."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.bench.cases import kernel_cases, tables
from renderer.errors import UserError
from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import preprocess
from renderer.numerics.matmul import (
    CHOICES,
    LARGEST,
    TENSOR_CORES,
    _tensor_cores,
    _tile_constants,
    bind_matmul,
    choose_variant,
    variants,
)
from renderer.numerics.matmul_costs import registers, thread_costs
from renderer.paths import ROOT

SHAPES = [(1, 1, 1), (5, 7, 3), (64, 64, 64), (33, 130, 65), (128, 128, 40)]


def matmul(*arguments, **options):
    bind_matmul(*arguments, **options)()


def block_variants(dtype):
    """The variants that choose_variant() can choose on GPUs without float64 tensor cores, by falling block size."""
    blocks = [(key, variant) for key, choices in CHOICES.items() for _, variant in choices] + list(LARGEST.items())
    chosen = {v.name: v for key, v in blocks if key.startswith(dtype) and v.file != TENSOR_CORES}
    return sorted(chosen.values(), key=lambda v: -v.block_tile[0] * v.block_tile[1])


VARIANTS = {**variants(), **{v.name: v for v in block_variants("f4")}}


def operands(device, rng, shape, dtype):
    rows, columns, inner = shape
    a, b = (rng.standard_normal(size).astype(dtype) for size in ((rows, inner), (inner, columns)))
    buffers = [device.buffer(matrix.shape, dtype).write(matrix) for matrix in (a, b)]
    return *buffers, a.astype("f8") @ b.astype("f8")


def close(found, wanted, inner):
    """Within the rounding of a sum of `inner` products of standard normal numbers."""
    epsilon = np.finfo(found.dtype).eps
    return np.abs(found - wanted).max(initial=0) <= 8 * epsilon * max(1, inner)


# Every other rung is quick: neighbors on the ladder share most of their code. The blocks of CHOICES are slow.
THESIS_REST = [f"each{n}_{rest}" for n in (2, 4) for rest in ("looped", "looped_prefetch", "prefetch")]
RUNGS = [*(name for name in VARIANTS if name not in THESIS_REST and VARIANTS[name].supports("f4"))]


@pytest.mark.parametrize(
    "name",
    [
        *(
            pytest.param(name, marks=pytest.mark.slow) if rung % 2 or name not in variants() else name
            for rung, name in enumerate(RUNGS)
        ),
        *(pytest.param(name, marks=pytest.mark.slow) for name in THESIS_REST),
    ],
)
def test_every_variant_equals_numpy(device, rng, name):
    variant = VARIANTS[name]
    if not variant.runs_on(device):
        pytest.skip("a variant for CPUs")
    fresh = tuple(int(n) for n in rng.integers(1, 90, 3))
    for shape in (SHAPES[-1], fresh):
        a, b, wanted = operands(device, rng, shape, "f4")
        out = device.buffer(wanted.shape).fill(0xFF)  # NaNs, so that an element left out is seen
        matmul(device, a, b, out, variant)
        assert close(out.read(), wanted, shape[2]), (name, shape)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_auto_takes_any_shape(device, rng, dtype):
    if dtype == "f8" and not device.properties.has_fp64:
        pytest.skip("no float64 on this device")
    for shape in (*SHAPES, (200, 37, 300)):
        a, b, wanted = operands(device, rng, shape, dtype)
        out = device.buffer(wanted.shape, dtype).fill(0xFF)
        matmul(device, a, b, out)
        assert close(out.read(), wanted, shape[2]), shape


@pytest.mark.parametrize("name", ["tiles", "each4", "64x64 multistage"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_variants_take_floats_and_doubles(device, rng, name, dtype):
    known = {**variants(), **{v.name: v for v in block_variants(dtype)}}
    a, b, wanted = operands(device, rng, (68, 36, 100), dtype)
    out = device.buffer(wanted.shape, dtype).fill(0xFF)
    matmul(device, a, b, out, known.get(name, block_variants(dtype)[-1]))
    assert close(out.read(), wanted, 100)


def test_multistage_takes_doubles(device, rng):
    a, b, wanted = operands(device, rng, (70, 130, 20), "f8")
    out = device.buffer(wanted.shape, "f8").fill(0xFF)
    matmul(device, a, b, out, "multistage")
    assert close(out.read(), wanted, 20)


@pytest.mark.parametrize("size,blocks", [(2048, 256), (3000, 128), (4096, 256), (4097, 128), (5000, 256), (512, 64)])
def test_the_largest_blocks_are_for_whole_waves(size, blocks):
    """132 blocks of 128 x 256 a wave: 2,048 fills 0.97 of one, 3,000 fills 2.08 of three, 4,096 fills 3.88 of four."""
    properties = SimpleNamespace(scalar_threads=False, has_async_copy=True, compute_units=132, local_bytes=48 << 10)
    assert choose_variant(SimpleNamespace(properties=properties), size, size, "f4").block_tile[1] == blocks


def test_empty_products(device):
    out = device.buffer((3, 5)).fill(0xFF)
    matmul(device, device.buffer((3, 0)), device.buffer((0, 5)), out)
    assert not out.read().any()
    matmul(device, device.buffer((0, 4)), device.buffer((4, 5)), device.buffer((0, 5)))


def test_the_same_product_has_the_same_bits(device, rng):
    a, b, wanted = operands(device, rng, (96, 64, 128), "f4")
    variant = choose_variant(device, 96, 64, "f4") if device.properties.scalar_threads else block_variants("f4")[-1]
    out = device.buffer(wanted.shape)
    launch = bind_matmul(device, a, b, out, variant)
    launch()
    first = out.read()
    out.fill(0xFF)
    launch()
    assert np.array_equal(out.read(), first)


def test_bench_prints_the_table_of_the_thesis(gpu):
    kernel_cases(ROOT / "tests" / "fps" / "products.py", gpu)
    cases = [("products/thesis/tile=8/tiles", 12.34), ("products/auto/float32/size=512", 560.0)]
    records = [{"case": case, "rate": rate, "peer": {"name": "vendor", "ratio": 0.5}} for case, rate in cases]
    rows = [line.split() for line in next(tables([*records, {"case": "sums/fast", "rate": 1.0}])).splitlines()[1:]]
    assert rows[0] == ["tiles", "6.66", "0.0", "6.93", "12.3", "7.50", "0.0"]
    assert rows[1:] == [["auto", "560.0"], ["vendor", "1120.0"]]
    assert not list(tables([{"case": "sums/fast", "rate": 1.0}]))


def test_mistakes_are_sentences(device):
    square, wide, doubles = device.buffer((4, 4)), device.buffer((4, 5)), device.buffer((4, 4), "f8")
    with pytest.raises(UserError, match="do not fit"):
        matmul(device, square, wide, square)
    with pytest.raises(UserError, match="float32, float64, float32"):
        matmul(device, square, doubles, square)
    with pytest.raises(UserError, match="allowed are auto, row"):
        matmul(device, square, square, wide.device.buffer((4, 4)), variant="fastest")
    with pytest.raises(UserError, match="2-D"):
        matmul(device, device.buffer(4), square, square)


def test_costs_are_those_of_the_thesis():
    """A thread's reads and arithmetic by hand; the table's rungs in the order of what they read."""
    n, known = 512, variants(16)
    costs = {
        name: thread_costs(known[name], n, n, n) for name in known if name not in ("packed_panels", "tensor_cores")
    }
    tensor_cores = thread_costs(known["tensor_cores"], n, n, n, "f8")
    assert costs["coalesced"][:4] == (n * n, 1, 2 * n, 2 * n * 4 + 4) and costs["coalesced"].intensity == 1
    assert costs["row"].threads == n and costs["row"].operations == 2 * n * n and costs["row"].intensity == 1
    assert costs["tiles"].intensity == 16 and costs["tiles"].local_bytes == 2 * 16 * 16 * 4 / 256
    assert costs["each4"].intensity == 2 * 4 * 256 / (16 + 64) and costs["each4"].threads == n * n / 4
    assert costs["registers"].intensity == 2 * 128 * 128 / 256 == 128 / 2 * 2
    assert tensor_cores.intensity == 128 and tensor_cores.local_bytes == 149504 / 256
    intensities = [costs[name].intensity for name in ("coalesced", "tiles", "each2", "each4", "registers")]
    assert intensities == sorted(intensities)


@pytest.mark.slow
@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="the CUDA compiler (NVRTC) is not installed")
def test_registers_are_those_of_the_compiler():
    """Accumulators alone take 64 registers of 8 x 8 elements; a plain loop takes few."""
    known = variants()
    assert 64 < registers(known["registers"]) <= 255 and registers(known["coalesced"]) < 64
    assert 128 < registers(known["tensor_cores"], "f8") <= 255


MMA_SHAPES = {
    "m16n8k4": _tensor_cores("small", (32, 16), 8, (16, 16), 3),
    "m16n8k8, one set of fragments": _tensor_cores("small", (32, 32), 8, (16, 16), 2, 8, 1, 1),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if k else name for k, name in enumerate(MMA_SHAPES)]
)
def test_tensor_cores_multiply_any_shape(emulated_gpu, rng, name):
    """On an emulated GPU, whose copies arrive as late as they may; blocks that fit, edges, and rows of odd length."""
    for shape in ((32, 32, 32), (37, 50, 18), (5, 3, 7)):
        a, b, wanted = operands(emulated_gpu, rng, shape, "f8")
        out = emulated_gpu.buffer(wanted.shape, "f8").fill(0xFF)
        matmul(emulated_gpu, a, b, out, MMA_SHAPES[name])
        assert close(out.read(), wanted, shape[2]), shape


@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="the CUDA compiler (NVRTC) is not installed")
@pytest.mark.parametrize(
    "variant,size",
    [
        pytest.param(
            variant, size, marks=() if (k, size) == (0, 4096) else pytest.mark.slow, id=f"{variant.name}-{size}"
        )
        for k, (_, variant) in enumerate(CHOICES["f8 tensor cores"])
        for size in (4096, 4095)
    ],
)
def test_chosen_tensor_core_variants_compile_for_cuda(variant, size):
    constants = variant.constants | _tile_constants(variant, size, size, size, 2)
    text = preprocess(variant.file, GROUP_SIZE=variant.group, **constants)
    assert nvrtc.compile_cubin(text, "sm_90", variant.file)


def test_tensor_cores_are_for_their_devices_and_float64(device, emulated_gpu):
    variant, square = MMA_SHAPES["m16n8k4"], (4, 4)
    for gpu, dtype in ((device, "f8"), (emulated_gpu, "f4")):
        matrix = gpu.buffer(square, dtype)
        if gpu.properties.max_cluster_size == 1 or dtype == "f4":
            with pytest.raises(UserError, match="'small', which does not multiply float"):
                matmul(gpu, matrix, matrix, gpu.buffer(square, dtype), variant)


def test_blocks_fit_the_local_memory(emulated_gpu):
    """GPUs of compute capability 12 have 99 KiB a group; without room for the smallest tile, other kernels multiply."""
    for kib, name in ((227, "128x128 tensor cores"), (99, "128x64 tensor cores"), (48, "128x64")):
        properties = replace(emulated_gpu.properties, local_bytes=kib << 10)
        assert choose_variant(SimpleNamespace(properties=properties), 4096, 4096, "f8").name == name
