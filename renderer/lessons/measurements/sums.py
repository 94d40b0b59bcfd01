"""Measurements of lessons on sums: the errors of the textbook methods beside a bound, and the rates of sums.

Each class is a kind of [steps.measure] (see the package); base.py has the interface.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from renderer.lessons.measurements.base import Bench, Finding, Measurement, Runs
from renderer.numerics.sums.aggregates import pairwise_sum
from renderer.numerics.sums.device_sums import MODES, DeviceSum
from renderer.numerics.sums.textbook import textbook_sums
from renderer.scene.schema import setting

MAX_COUNT = 1 << 24
DATA: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda rng, n: rng.random(n),
    "wide": lambda rng, n: np.exp(3 * rng.standard_normal(n).clip(-3, 3)),
    "cancelling": lambda rng, n: rng.permutation(np.repeat(rng.standard_normal(-(-n // 2)), 2)[:n] * _signs(n)),
    "one large": lambda rng, n: np.concatenate([[2.0**24], np.ones(n - 1)]),
}


def _signs(count: int) -> np.ndarray:
    odd = np.arange(count) % 2
    return np.asarray(np.where(odd, -1.0, 1.0) * (1 + 1e-6 * odd))


def _check_counts(counts: tuple[int, ...]) -> None:
    if not 1 <= len(counts) <= 16 or not all(2 <= count <= MAX_COUNT for count in counts):
        raise ValueError(f"counts must be 1 to 16 numbers from 2 to {MAX_COUNT}")


@dataclass(frozen=True)
class SumError(Measurement):
    """The error of each method relative to the sum of magnitudes, in units of 2^-24, by count of numbers."""

    counts: tuple[int, ...]
    data: Literal["uniform", "wide", "cancelling", "one large"] = "uniform"
    bound: bool = setting(True, help="also the bound that is proven for halving")

    def __post_init__(self) -> None:
        _check_counts(self.counts)

    def find(self, bench: Bench) -> Finding:
        """Adds float32 numbers by every method, on the device and the host."""
        device, rng = bench.gpu.device, np.random.default_rng(1)
        series: dict[str, list[float | None]] = {}
        for index, count in enumerate(self.counts):
            if bench.spent >= bench.seconds:
                for values in series.values():
                    values += [None] * (len(self.counts) - index)
                break
            start = time.perf_counter()
            numbers = DATA[self.data](rng, count).astype("f4")
            unit = float(np.abs(numbers).sum(dtype="f8")) * 2.0**-24
            errors = {result.method: result.error / unit for result in textbook_sums(device, numbers)}
            if self.bound:
                errors["bound of halving"] = pairwise_sum(device, numbers).bound / unit
            for name, error in errors.items():
                series.setdefault(name, []).append(error)
            bench.spent += time.perf_counter() - start if index else 0.0  # the first count waits for compilers
        curves = {name: tuple(values) for name, values in series.items()}
        unit_name = "error, units in the last place"
        return Finding(self.counts, curves, "numbers", unit_name, device.name, log_x=True, log_y=True)


@dataclass(frozen=True)
class SumRate(Measurement):
    """Millions of numbers added per second, by count: NumPy on one core, and each mode of the device's sum."""

    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_counts(self.counts)

    def find(self, bench: Bench) -> Finding:
        """Times sums of float32 numbers that are already in the memory of the host or of the device."""
        device, rng = bench.gpu.device, np.random.default_rng(1)
        runs: Runs = {}
        for count in self.counts:
            numbers: np.ndarray = rng.random(count, "f4")
            buffer = device.buffer(count).write(numbers)
            runs["one core (NumPy)", count] = partial(np.add.reduce, numbers), int
            for mode in MODES:
                launch = DeviceSum(device, "f4", mode).bind_launch(count, buffer)
                runs[f"{mode}, device", count] = launch, device.finish
        times = bench.time_all(runs)
        names = dict.fromkeys(name for name, _ in runs)
        series = {name: tuple(_rate(count, times[name, count]) for count in self.counts) for name in names}
        return Finding(self.counts, series, "numbers", "M numbers/s", device.name, log_x=True, log_y=True)


def _rate(work: float, seconds: float | None) -> float | None:
    return work / seconds / 1e6 if seconds else None
