"""Sums: bytes a second by mode, type and size (paper 2's figure is fast/float32/size=N), and others beside."""

import math
import time

import numpy as np

from renderer.bench.cases import Case, LazyDevice
from renderer.numerics.sums.device_sums import MODES, DeviceSum
from renderer.numerics.sums.exact_sum import exact_sum_host

SIZES = [1 << power for power in range(12, 31, 2)]
MAX_FILE_BYTES = {1: 1 << 26, 32: 1 << 30}  # numbers, by the lanes of the processor
DATA = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.standard_normal(n),
    "sparse": lambda rng, n: np.where(rng.random(n) < 0.9, 0, rng.standard_normal(n)),
    "lognormal": lambda rng, n: np.exp(20 * rng.standard_normal(n).clip(-4, 4)),
}


def cases(gpu):
    most = MAX_FILE_BYTES[gpu.device.properties.warp_size]
    out = [reduction(gpu, mode, dtype, most) for mode in MODES for dtype in ("float32", "float64")]
    curves = [(mode, size) for mode in ("fast", "exact") for size in SIZES if size < most]
    out += [reduction(gpu, mode, "float32", size, f"/size={size}") for mode, size in curves]
    others = [(dtype, data) for dtype in ("float32", "float64") for data in DATA if data != "uniform"]
    return out + [reduction(gpu, "exact", dtype, most, f"/{data}", data) for dtype, data in others]


def numbers_of(data: str, dtype: str, count: int) -> np.ndarray:
    """`count` numbers, of which the first 16 Mi are random and then come again."""
    return np.resize(DATA[data](np.random.default_rng(1), min(count, 1 << 24)).astype(dtype), count)


def reduction(gpu, mode: str, dtype: str, count: int, name: str = "", data: str = "uniform") -> Case:
    """The sum of `count` numbers that lie on the device."""
    size = count * np.dtype(dtype).itemsize
    opened = []

    def check() -> bytes:
        numbers = numbers_of(data, dtype, count)
        buffer = gpu.device.buffer(count, dtype).write(numbers)
        accumulator = DeviceSum(gpu.device, dtype, mode)
        accumulator.add(count, buffer)
        found, wanted = accumulator.read_and_reset().rounded(), float(numbers.sum(dtype="f8"))
        slack = 1e-6 * float(np.abs(numbers).sum(dtype="f8"))
        assert math.isclose(found, wanted, rel_tol=0, abs_tol=slack), (found, wanted)
        if mode == "exact":
            some = min(count, 1 << 20)
            accumulator.add(some, buffer)
            assert accumulator.read_and_reset() == exact_sum_host(numbers[:some])
        opened[:] = [accumulator.bind_launch(count, buffer), buffer]
        return np.float64(found if mode != "fast" else 0).tobytes()

    def run():
        opened[0]()

    peer, peer_name = _peer(gpu, mode, dtype, count, data)
    facts = {"numbers": count, "bytes": size}
    return Case(
        f"{mode}/{dtype}{name}", "GB/s", size / 1e9, run, check, LazyDevice(lambda: gpu.device), peer, peer_name, facts
    )


def _peer(gpu, mode: str, dtype: str, count: int, data: str):
    """cupy.sum where there is CuPy and a GPU of it; on a CPU xsum for exact sums if it is there, else NumPy."""
    if not gpu.device.properties.scalar_threads:
        try:
            import cupy
        except ImportError:
            return None, ""
        return lambda: _cupy_seconds(cupy, dtype, count), "cupy.sum"
    if mode == "exact":
        try:
            import xsum
        except ImportError:
            return None, ""
        return lambda: _best(lambda a: xsum.xsum_large().add(a), numbers_of(data, dtype, count)), "xsum"
    return lambda: _best(np.sum, numbers_of(data, dtype, count)), "numpy.sum"


def _cupy_seconds(cupy, dtype: str, count: int) -> float:
    numbers, times = cupy.random.rand(count, dtype=dtype), []
    for _ in range(12):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        numbers.sum()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) * 1e-3)
    return float(np.median(times[2:]))


def _best(work, numbers: np.ndarray) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work(numbers)
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))
