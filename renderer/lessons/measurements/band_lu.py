"""Measurements of lessons on band LU: the rate of factorization by order, and the correct digits of solutions.

Each class is a kind of [steps.measure] (see the package); base.py has the interface.
"""

from contextlib import suppress
from functools import partial
from typing import Literal

import numpy as np

from renderer.errors import IncompleteError
from renderer.gpu.device import Device
from renderer.lessons.measurements.base import Bench, Finding, Measurement, Runs, check_whole_numbers, curves
from renderer.numerics.band_lu import BandedLU
from renderer.numerics.band_lu.accuracy.certified import enclose
from renderer.numerics.band_lu.accuracy.refinement import solve_refined
from renderer.records import dataclass, replace
from renderer.scene.schema import setting

MAX_ORDER, MAX_BAND, MAX_ELEMENTS = 1 << 16, 512, 1 << 24


@dataclass(frozen=True)
class BandRate(Measurement):
    """GFLOP/s of the factorization P L U with kl = ku = `band`, by the order n: on the host, and on a GPU if any."""

    orders: tuple[int, ...]
    band: int = setting(64, 1, MAX_BAND)

    def __post_init__(self) -> None:
        check_whole_numbers("orders", self.orders, 12, MAX_ORDER)
        if max(self.orders) * (2 * self.band + 1) > MAX_ELEMENTS:
            raise ValueError(f"orders times the band's diagonals must be at most {MAX_ELEMENTS} numbers")

    def find(self, bench: Bench) -> Finding:
        """Times factorizations of random matrices that begin in the host's memory; counts 4 n k^2 operations."""
        device, rng, k = bench.gpu.device, np.random.default_rng(1), self.band
        processors: dict[str, tuple[Device, ...]] = {"host's cores": ()}
        if not device.properties.scalar_threads:
            processors[device.name] = (device,)
        runs: Runs = {}
        for n in self.orders:
            ab = rng.standard_normal((2 * k + 1, n))
            for name, devices in processors.items():
                runs[name, n] = partial(BandedLU, ab, k, k, devices), device.finish
        series = curves(bench.rates(runs, lambda key: 4 * key[1] * k * k / 1e9), self.orders)
        return Finding(self.orders, series, "order n", "GFLOP/s", log_x=True)


def _dominant(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    ab = rng.standard_normal((2 * k + 1, n))
    ab[k] += 4 * k
    return ab


def _random(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    return rng.standard_normal((2 * k + 1, n))


def _growing(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """The band of Wilkinson's matrix, whose last column doubles at every step of partial pivoting."""
    ab = np.zeros((2 * k + 1, n))
    ab[k + 1 :] = -1.0
    ab[k] = 1.0
    last = np.arange(max(0, n - k), n)
    ab[k + last - (n - 1), n - 1] = 1.0
    return ab


def _ill(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """A random band matrix with two neighboring columns that differ in the tenth digit."""
    ab, j = rng.standard_normal((2 * k + 1, n)), n // 2
    ab[2 * k, j + 1] = ab[0, j] = 0.0  # rows that the band stores for only one of the two columns
    ab[: 2 * k, j + 1] = ab[1:, j] * (1 + 1e-10 * rng.standard_normal(2 * k))
    return ab


MATRICES = {"dominant": _dominant, "random": _random, "growing": _growing, "ill": _ill}
KEPT = Literal["dominant", "random", "growing", "ill"]


@dataclass(frozen=True)
class BandDigits(Measurement):
    """Correct decimal digits of solutions: from the factors alone, after refinement, and proven by an enclosure."""

    matrices: tuple[KEPT, ...] = ("dominant", "random", "growing", "ill")
    order: int = setting(64, 4, 1024)
    band: int = setting(24, 1, 256)

    def __post_init__(self) -> None:
        if not 1 <= len(set(self.matrices)) == len(self.matrices):
            raise ValueError(f"matrices must be different ones of {', '.join(MATRICES)}")
        if self.order <= 2 * self.band:
            raise ValueError("order must be above 2 band")

    def find(self, bench: Bench) -> Finding:
        """Solves systems on the host; the right-hand sides are small integers."""
        rng, n, k = np.random.default_rng(1), self.order, self.band
        digits: dict[tuple[str, str], float | None] = {}
        notes = []
        for name in self.matrices:
            ab = MATRICES[name](rng, n, k)
            b = rng.integers(-9, 10, n).astype("f8")
            lu = BandedLU(ab, k, k)
            refined = solve_refined(lu, b)
            change = np.abs(lu.solve(b) - refined.x).max() / np.abs(refined.x).max()
            # the refined solution, which stands for the exact one, may itself be wrong by its bound
            digits["by the factors", name] = _digits(max(change, refined.forward_bound))
            digits["refined", name], digits["proven", name] = _digits(refined.forward_bound), 0.0
            with suppress(IncompleteError):
                digits["proven", name] = float(enclose(lu, refined, b).certain_digits)
            notes.append(f"{name}: growth {lu.pivot_growth:.3g}, condition {1 / max(lu.rcond(), 1e-300):.2g}")
        found = Finding(self.matrices, curves(digits, self.matrices), "matrix", "decimal digits", "bars")
        return replace(found, device="host", notes=tuple(notes))


def _digits(error: float) -> float:
    return float(np.clip(-np.log10(max(error, 1e-17)), 0, 16)) if np.isfinite(error) else 0.0
