"""Band LU: factorization against LAPACK's dgbtrf on all cores of the same host, and solves with 1 and 64 sides.

On a GPU n = 65,536 with kl = ku = 1,024, n = 16,384 with 4,096 and n = 65,536 with 256; on a CPU n = 16,384 with 256,
by the host's own cores. What is timed reads the matrix from host memory: conversions, uploads and the check for NaN
are in it. The cases named resident/ begin with the matrix where it is factored. kl = ku = 4,096 is compared with a
product of 8,192 x 8,192 matrices by the vendor's library, which has exactly as many operations. Where there is a second
GPU the cases named two/ are n = 32,768 with 4,096 on both, compared with the first one alone.
"""

import time
from dataclasses import replace
from functools import cache, cached_property

import numpy as np
from scipy.linalg import lapack

from renderer.bench.cases import Case
from renderer.gpu import list_devices
from renderer.gpu.properties import Counters
from renderer.numerics.band_lu import BandedLU
from renderer.numerics.band_lu.devices.block_cyclic import ColumnUploader, PhaseTimer

EPS = np.finfo("f8").eps


class Host:
    """The clock of work that the host's cores do."""

    name, driver = "host", ""
    has_reliable_timer = True

    def __init__(self):
        self.counters = Counters()

    def finish(self) -> None:
        pass

    def time_seconds(self, work) -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began


def cases(gpu):
    device = gpu.device
    wide = not device.properties.scalar_threads
    sizes = ((65536, 1024), (16384, 4096), (65536, 256)) if wide else ((16384, 256),)
    made = []
    for n, k in sizes:
        made += _cases(n, k, device if wide else None)
    beside = second(device)
    return made + (_cases_of_two(32768, 4096, device, beside) if beside else [])


def second(device):
    """What opens another GPU beside an NVIDIA one, once, or None."""
    found = [other for other in list_devices()[0] if other.backend == "cuda" and other.device_id not in device.name]
    return cache(found[0].open) if found and "(cuda:" in device.name else None


class Problem:
    """A random band, or a twin's, and its factors, made when first asked for."""

    def __init__(self, n: int, k: int, device, beside=None, twin=None):
        self.n, self.k, self.device, self._beside, self._twin = n, k, device, beside, twin
        self._unfactored = False

    @cached_property
    def devices(self) -> list:
        return [self.device, *([self._beside()] if self._beside else [])] if self.device else []

    @cached_property
    def matrix(self) -> np.ndarray:
        if self._twin:
            return self._twin.matrix
        return np.random.default_rng(self.k).random((2 * self.k + 1, self.n)) - 0.5

    @cached_property
    def lu(self) -> BandedLU:
        return BandedLU(self.matrix, self.k, self.k, self.devices)

    def factor(self) -> None:
        self.lu.refactor(self.matrix)
        self._unfactored = False

    def check(self) -> None:
        if self._unfactored:
            self.factor()
        b = np.random.default_rng(1).standard_normal(self.n)
        assert self.lu.residual(self.lu.solve(b), b) < EPS

    def load(self) -> None:
        """Brings the matrix to the device, unfactored."""
        self._unfactored = True
        ColumnUploader(self.lu._factors.per_device, self.matrix).upload_through(self.lu.layout.p)
        for device in self.devices:
            device.finish()

    def factor_resident(self) -> None:
        self.lu._factors.run(None, PhaseTimer(self.lu.layout.p, is_enabled=False))  # timestamps take time

    def check_resident(self) -> None:
        self.check()
        wanted = self.lu._factors.diagonal()
        self.load()
        self.factor_resident()
        assert np.array_equal(self.lu._factors.diagonal(), wanted)

    @cached_property
    def _storage(self) -> np.ndarray:
        return np.zeros((3 * self.k + 1, self.n), order="F")

    def dgbtrf(self) -> float:
        self._storage[: self.k] = 0
        self._storage[self.k :] = self.matrix
        began = time.perf_counter()
        lapack.dgbtrf(self._storage, self.k, self.k, overwrite_ab=1)
        return time.perf_counter() - began

    def product(self) -> float:
        """Seconds of the vendor's product with 4 n k^2 operations: 2 m^3 where m^3 = 2 n k^2."""
        order = round((2 * self.n * self.k**2) ** (1 / 3))
        a, b, c = (self.device.buffer((order, order), "f8").fill(0) for _ in range(3))
        places = [(matrix, 0, order) for matrix in (a, b, c)]
        subtract = self.device.vendor_blas("f8").bind_gemm_subtract(order, order, order, *places)
        subtract()
        return self.device.time_seconds(subtract)


def _cases(n: int, k: int, device) -> list[Case]:
    problem, clock, facts = Problem(n, k, device), device or Host(), {"n": n, "kl": k, "ku": k}
    gigaflops = 4 * n * k * k / 1e9
    peer = dict(peer=problem.dgbtrf, peer_name="dgbtrf on all cores")
    made = [Case(f"factor-{k}", "GFLOP/s", gigaflops, problem.factor, problem.check, clock, facts=facts, **peer)]
    if device:
        if k >= 4096:
            peer = dict(peer=problem.product, peer_name="a product of as many operations")
        case = Case(
            f"resident/factor-{k}", "GFLOP/s", gigaflops, problem.factor_resident, problem.check_resident, clock
        )
        made.append(replace(case, facts=facts, setup=problem.load, **peer))
    for sides in (1, 64):
        b = np.random.default_rng(2).standard_normal((n, sides))

        def run(b=b):
            problem.lu.solve(b)

        work = 2 * n * 3 * k * sides / 1e9
        made.append(Case(f"solve-{k}-{sides}", "GFLOP/s", work, run, problem.check, clock, facts=facts))
    return made


def _cases_of_two(n: int, k: int, device, beside) -> list[Case]:
    problem = Problem(n, k, device, beside)
    alone = Problem(n, k, device, twin=problem)

    def factor_alone() -> float:
        return min(device.time_seconds(alone.factor) for _ in range(3))

    def factor_resident_alone() -> float:
        seconds = []
        for _ in range(3):
            alone.load()
            seconds.append(device.time_seconds(alone.factor_resident))
        return min(seconds)

    common = dict(
        unit="GFLOP/s", work=4 * n * k * k / 1e9, device=device, others=lambda: problem.devices[1:],
        facts={"n": n, "kl": k, "ku": k, "devices": 2}, peer_name="one of the GPUs",
    )  # fmt: skip
    resident = dict(run=problem.factor_resident, check=problem.check_resident, setup=problem.load)
    return [
        Case(f"two/factor-{k}", run=problem.factor, check=problem.check, peer=factor_alone, **common),
        Case(f"two/resident/factor-{k}", peer=factor_resident_alone, **resident, **common),
    ]
