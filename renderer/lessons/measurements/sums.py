"""Measurements of lessons on sums: the errors of the textbook methods beside a bound, and the rates of sums.

Each class is a kind of [steps.measure] (see the package); base.py has the interface.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from renderer.lessons.measurements.base import Bench, Finding, Measurement, Runs, check_whole_numbers, curves
from renderer.numerics.sums.aggregates import pairwise_sum
from renderer.numerics.sums.device_sums import MODES, DeviceSum
from renderer.numerics.sums.textbook import textbook_sums
from renderer.records import dataclass
from renderer.scene.schema import setting

MAX_COUNT = 1 << 24
DATA: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda rng, n: rng.random(n),
    "wide": lambda rng, n: np.exp(3 * rng.standard_normal(n).clip(-3, 3)),
    "cancelling": lambda rng, n: rng.permutation(np.repeat(rng.standard_normal(-(-n // 2)), 2)[:n] * _signs(n)),
    "one large": lambda rng, n: np.concatenate([[2.0**24], np.ones(n - 1)]),
}


def _signs(count: int) -> np.ndarray:
    """1, -(1 + 1e-6), 1, ...: pairs of numbers cancel but for a millionth."""
    odd = np.arange(count) % 2
    return np.asarray(np.where(odd, -1.0, 1.0) * (1 + 1e-6 * odd))


@dataclass(frozen=True)
class _ByCount(Measurement):
    """The base of measurements of sums of so many numbers."""

    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        check_whole_numbers("counts", self.counts, 16, MAX_COUNT)


@dataclass(frozen=True)
class SumError(_ByCount):
    """The error of each method relative to the sum of magnitudes, in units of 2^-24, by count of numbers."""

    data: Literal["uniform", "wide", "cancelling", "one large"] = "uniform"
    bound: bool = setting(True, help="also the bound that is proven for halving")

    def find(self, bench: Bench) -> Finding:
        """Adds float32 numbers by every method, on the device and the host."""
        device, rng = bench.gpu.device, np.random.default_rng(1)
        found: dict[tuple[str, int], float | None] = {}
        for index, count in enumerate(self.counts):
            if bench.spent >= bench.seconds:
                break
            start = time.perf_counter()
            numbers = DATA[self.data](rng, count).astype("f4")
            unit = float(np.abs(numbers).sum(dtype="f8")) * 2.0**-24
            errors = {result.method: result.error / unit for result in textbook_sums(device, numbers)}
            if self.bound:  # halving: pairwise summation
                errors["bound of halving"] = pairwise_sum(device, numbers).bound / unit
            found |= {(name, count): error for name, error in errors.items()}
            bench.spent += time.perf_counter() - start if index else 0.0  # the first count waits for compilers
        series, unit_name = curves(found, self.counts), "error / sum of magnitudes, in 2^-24"
        return Finding(self.counts, series, "numbers", unit_name, log_x=True, log_y=True)


@dataclass(frozen=True)
class SumRate(_ByCount):
    """Millions of numbers added per second, by count: NumPy on one core, and each mode of the device's sum."""

    def find(self, bench: Bench) -> Finding:
        """Times sums of float32 numbers that are already in the memory of the host or of the device."""
        device, rng = bench.gpu.device, np.random.default_rng(1)
        runs: Runs = {}  # (launch, wait)
        for count in self.counts:
            numbers: np.ndarray = rng.random(count, "f4")
            buffer = device.buffer(count).write(numbers)
            runs["one core (NumPy)", count] = partial(np.add.reduce, numbers), int  # int() waits for nothing
            for mode in MODES:
                launch = DeviceSum(device, "f4", mode).bind_launch(count, buffer)
                runs[f"{mode}, device", count] = launch, device.finish
        series = curves(bench.rates(runs, lambda key: key[1] / 1e6), self.counts)
        return Finding(self.counts, series, "numbers", "M numbers/s", log_x=True, log_y=True)
