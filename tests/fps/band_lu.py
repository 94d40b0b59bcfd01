"""Band LU: factorisation against LAPACK's dgbtrf on all cores of the same host, and solves with 1 and 64 sides.

On a GPU n = 65,536 with kl = ku = 1,024 and n = 32,768 with 4,096; on a CPU n = 16,384 with 256, by the host's own
cores. What is timed reads the matrix from host memory: uploads and checks for NaN are in it.
"""

import time

import numpy as np
from scipy.linalg import lapack

from renderer.bench.cases import Case
from renderer.compute.band_lu import BandedLU
from renderer.gpu import Counters

EPS = np.finfo("f8").eps


class Host:
    """The clock of work that the host's cores do."""

    name = "host"
    trusted_clock = True

    def __init__(self):
        self.counters = Counters()

    def finish(self) -> None:
        pass

    def seconds(self, work) -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began


def cases(gpu):
    device = gpu.device
    wide = device.processor.lanes > 1
    sizes = ((65536, 1024), (32768, 4096), (65536, 256)) if wide else ((16384, 256),)
    made = []
    for n, k in sizes:
        made += _cases(n, k, device if wide else None)
    return made


class Problem:
    """A random band and its factors, made when first asked for."""

    def __init__(self, n: int, k: int, device):
        self.n, self.k, self.device, self._lu = n, k, device, None

    @property
    def ab(self) -> np.ndarray:
        return np.random.default_rng(self.k).random((2 * self.k + 1, self.n)) - 0.5

    @property
    def lu(self) -> BandedLU:
        if self._lu is None:
            self.matrix = self.ab
            self._lu = BandedLU(self.matrix, self.k, self.k, [self.device] if self.device else [])
        return self._lu

    def factor(self) -> None:
        self.lu.refactor(self.matrix)

    def check(self) -> None:
        b = np.random.default_rng(1).standard_normal((self.n, 2))
        assert self.lu.residual(self.lu.solve(b), b) < EPS

    def dgbtrf(self) -> float:
        self.lu  # noqa: B018  (makes the matrix)
        storage = np.zeros((3 * self.k + 1, self.n), order="F")
        storage[self.k :] = self.matrix
        began = time.perf_counter()
        lapack.dgbtrf(storage, self.k, self.k, overwrite_ab=1)
        return time.perf_counter() - began


def _cases(n: int, k: int, device) -> list[Case]:
    problem, clock, facts = Problem(n, k, device), device or Host(), {"n": n, "kl": k, "ku": k}
    gigaflops = 4 * n * k * k / 1e9
    peer = dict(peer=problem.dgbtrf, peer_name="dgbtrf") if k <= 1024 else {}
    made = [Case(f"factor-{k}", "GFLOP/s", gigaflops, problem.factor, problem.check, clock, facts=facts, **peer)]
    for sides in (1, 64):
        b = np.random.default_rng(2).standard_normal((n, sides))

        def run(b=b):
            problem.lu.solve(b)

        work = 2 * n * 3 * k * sides / 1e9
        made.append(Case(f"solve-{k}-{sides}", "GFLOP/s", work, run, problem.check, clock, facts=facts))
    return made
