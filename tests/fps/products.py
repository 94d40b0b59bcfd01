"""Matrix products: the thesis's table (512 x 512; groups of 4, 8, 16 squared), and "auto" beside vendors' products."""

import time

import numpy as np

from renderer.bench.cases import Case, LazyDevice
from renderer.gpu.cuda import nvrtc
from renderer.numerics.matmul import MatmulVariant, bind_matmul, variants
from renderer.numerics.matmul_costs import registers, thread_costs

# MFLOP/s of the thesis (Tesla C2075, CUDA 4.0) for blocks of 4 x 4, 8 x 8, 16 x 16 threads; None: out of memory.
THESIS = {
    "row": (95.08, 51.93, 41.11),
    "coalesced": (872.28, 2339.48, 3187.93),
    "tiles": (6659.77, 6925.76, 7502.81),
    "unrolled": (9118.67, 9878.76, 10021.05),
    "prefetch": (6812.91, 7599.02, 7876.86),
    "unrolled_prefetch": (9560.01, 9878.76, 9716.77),
    "each2_looped": (7409.00, 7697.74, 7697.74),
    "each2_looped_prefetch": (7599.02, 7799.05, 7056.11),
    "each2": (10046.24, 9878.76, 9716.77),
    "each2_prefetch": (9716.77, 9878.76, 8980.48),
    "each4_looped": (7502.81, 7697.74, None),
    "each4_looped_prefetch": (7697.74, 7056.11, None),
    "each4": (10222.22, 8467.46, None),
    "each4_prefetch": (9716.77, 9261.19, None),
}
TILES = (4, 8, 16)
CPU_SIZES = 128, 256, 512, 1024, 2048
GPU_SIZES = *CPU_SIZES, 4096, 8192


def cases(gpu):
    is_cpu = gpu.device.properties.scalar_threads
    out = []
    for column, tile in enumerate(TILES):
        known = variants(tile)
        for name, figures in THESIS.items():
            facts = {"thesis_gflops": (figures[column] or 0) / 1e3}
            out.append(multiplication(gpu, f"thesis/tile={tile}/{name}", 512, known[name], facts, peer=False))
    if not is_cpu:
        shown = [variant for variant in variants().values() if variant.name != "row" and variant.runs_on(gpu.device)]
        for variant in shown:
            for dtype, folder in (("f4", "variants"), ("f8", "variants/float64")):
                if variant.supports(dtype):
                    out.append(multiplication(gpu, f"{folder}/{variant.name}", 4096, variant, dtype=dtype))
    sizes = CPU_SIZES if is_cpu else GPU_SIZES
    out += [multiplication(gpu, f"auto/float32/size={size}", size, "auto") for size in sizes]
    return out + [multiplication(gpu, f"auto/float64/size={size}", size, "auto", dtype="f8") for size in sizes]


def costs(variant, size: int, dtype: str) -> dict:
    """Facts of a case: what a thread of the variant computes and reads, and its registers where NVRTC is installed."""
    if not isinstance(variant, MatmulVariant) or variant.entry == "packed_panels":
        return {}
    held = registers(variant, dtype) if not nvrtc.why_missing() else None
    return {"registers": held, **thread_costs(variant, size, size, size, dtype)._asdict()}


def table(records: list[dict]) -> str:
    """The thesis's table with this device's figures beside: GFLOP/s of 512 x 512 by edge of the groups of threads."""
    rates = {record["case"]: record["rate"] for record in records}
    lines = []
    for name in THESIS:
        here = [rates.get(f"products/thesis/tile={tile}/{name}") for tile in TILES]
        if any(here):
            cells = [f"{(old or 0) / 1e3:8.2f} {new or 0:10.1f}" for old, new in zip(THESIS[name], here, strict=True)]
            lines.append(f"{name:18s}" + "".join(cells))
    for record in records:
        if lines and record["case"] == "products/auto/float32/size=512":
            lines.append(f"{'auto':18s}{record['rate']:19.1f}")
            if "peer" in record:
                lines.append(f"{record['peer']['name']:18s}{record['rate'] / record['peer']['ratio']:19.1f}")
    heads = "".join(f"{f'thesis {tile}x{tile}':>12s}{'here':>7s}" for tile in TILES)
    return "\n".join([f"{'512 x 512, GFLOP/s':18s}{heads}", *lines]) if lines else ""


def multiplication(gpu, name: str, size: int, variant, facts=None, dtype="f4", peer=True) -> Case:
    """out = a b of size x size standard normal numbers."""
    opened, device = [], LazyDevice(lambda: gpu.device)
    facts = {"size": size, **(facts or {})}

    def check() -> None:
        a, b = np.random.default_rng(1).standard_normal((2, size, size)).astype(dtype)
        buffers = [gpu.device.buffer((size, size), dtype) for _ in range(3)]
        buffers[0].write(a), buffers[1].write(b), buffers[2].fill(0xFF)
        launch = bind_matmul(gpu.device, *buffers, variant)
        launch()
        rows = np.random.default_rng(2).integers(0, size, 8)
        error = np.abs(buffers[2].read()[rows] - a[rows].astype("f8") @ b.astype("f8")).max()
        assert error <= 8 * size * np.finfo(dtype).eps, error
        opened[:] = [launch, buffers, a, b]
        facts.update(costs(variant, size, dtype))

    def run():
        opened[0]()

    def against() -> float:
        vendor = gpu.device.vendor_blas(dtype)
        if vendor is None:
            return _median(lambda: np.matmul(opened[2], opened[3]))
        (a, b, out), whole = opened[1], (0, size)
        work = (size, size, size, (b, *whole), (a, *whole), (out, *whole))  # by columns: out' -= b' a'
        subtract = vendor.bind_gemm_subtract(*work)
        times = [gpu.device.time_seconds(subtract) for _ in range(12)]
        return float(np.median(times[2:]))

    operations = 2 * size**3 / 1e9
    other = (against, "vendor's product") if peer else (None, "")
    return Case(name, "GFLOP/s", operations, run, check, device, *other, facts)


def _median(work) -> float:
    times = []
    for _ in range(6):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))
