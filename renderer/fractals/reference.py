"""Reference orbits in fixed point: a number is an integer of Python, in units of 2^-bits, of any length.

deep_zoom.py perturbs the orbit for each pixel. A step takes 2 us at 1e-300 and 7 us at 1e-1000, so no library of
multiple precision is needed.
"""

import math
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from renderer.errors import IncompleteError

ESCAPE2 = 1e6  # |z|^2 that ends an orbit: BAILOUT2 of shaders/fractals/sample.h
SMALLEST_EXPONENT = -900  # smaller numbers are kept as mantissa and exponent
ZERO_EXPONENT = -(1 << 28)  # the exponent of 0, below all others
TIMED_ITERATIONS = 64  # between two looks at the clock
CYCLE_TOLERANCE = 1e-9  # distance of iterates that count as the same point of a cycle
MAX_RETURNS = 64  # earlier visits of an orbit to its last point that are tried as a period
GUARD_BITS = 96  # below a pixel: an orbit's rounding errors grow as the differences of its pixels do
Point = tuple[Decimal, Decimal]
Step = Callable[[int, int], tuple[int, int]]


class Orbit(NamedTuple):
    """Iterates 0 to n: `mantissas` (n + 1,) complex128 times 2^exponents (n + 1,) int32, which is 0 for most.

    The orbit is complete if it escaped or has the iterations that were asked for.
    """

    mantissas: np.ndarray
    exponents: np.ndarray


def attracting_period(orbit: Orbit, power: int) -> int:
    """The period of the attracting cycle of z^power + c at an orbit's end; 0 if there is none, or a weak one.

    The last period must repeat the one before within CYCLE_TOLERANCE; at the point nearest to 0, within 1e-6 of that
    point's size. The derivative along the cycle must be below 0.99: near a parabolic cycle, whose derivative is 1,
    orbits stay long and may still escape.
    """
    z = np.where(orbit.exponents == 0, orbit.mantissas, 0)  # numbers with an exponent are below 2^SMALLEST_EXPONENT
    near = np.nonzero(abs(z[:-1] - z[-1]) < CYCLE_TOLERANCE)[0][::-1]
    with np.errstate(divide="ignore"):
        growth = np.log(power * abs(z) ** (power - 1))
    for period in (len(z) - 1 - near[:MAX_RETURNS]).tolist():
        last, before = z[-period:], z[-2 * period : -period]
        if len(before) == period and growth[-period:].sum() < math.log(0.99):
            least = abs(last).argmin()
            if abs(last - before).max() < CYCLE_TOLERANCE and abs(last - before)[least] <= 1e-6 * abs(last[least]):
                return int(period)
    return 0


def precision_bits(view_height: Decimal, *numbers: Decimal) -> int:
    """Bits after the binary point for a view, and for every view of less depth about the same center.

    All digits of `numbers` (the center, a Julia set's c) count, so that the frames of a zoom share one orbit.
    """
    depth = -float(view_height.log10())
    digits = max(-int(value.as_tuple().exponent) for value in numbers)
    return 32 * math.ceil((max(depth, digits, 0) * math.log2(10) + GUARD_BITS) / 32)


def to_fixed_point(value: Decimal, bits: int) -> int:
    """The number times 2^bits, rounded down."""
    exact = Fraction(value)
    return (exact.numerator << bits) // exact.denominator


@lru_cache(maxsize=8)
def reference_orbit(
    formula: str, power: int, start: Point, c: Point, bits: int, iterations: int, deadline: float = math.inf
) -> Orbit:
    """Iterates the formula from `start` in fixed point of `bits` binary places, until it escapes.

    `formula` is one of power, tricorn and burning_ship. Raises IncompleteError after the time.monotonic() `deadline`.
    """
    x, y = (to_fixed_point(value, bits) for value in start)
    a, b = (to_fixed_point(value, bits) for value in c)
    step = _step(formula, power, a, b, bits)
    parts: list[tuple[float, int]] = [*_parts(x, y)]
    for done in range(0, iterations, TIMED_ITERATIONS):
        if time.monotonic() > deadline:
            raise IncompleteError(
                f"settings: max_iterations is {iterations}: the time limit ended the reference orbit after {done} "
                "iterations, before the first sample; a larger --time-limit allows more"
            )
        for _ in range(min(TIMED_ITERATIONS, iterations - done)):
            x, y = step(x, y)
            real, imaginary = _parts(x, y)
            parts += real, imaginary
            # Tested first, since it is quick: |x| or |y| is above 8.
            if max(real[1], imaginary[1]) > bits - 61 and _escaped(real, imaginary, bits):
                return _orbit(parts, bits)
    return _orbit(parts, bits)


def _step(formula: str, power: int, a: int, b: int, bits: int) -> Step:
    """The function that maps z = (x, y) to the next iterate, for c = (a, b); all in units of 2^-bits."""

    def square(x: int, y: int) -> tuple[int, int]:
        return ((x * x - y * y) >> bits) + a, (x * y >> bits - 1) + b  # x * y * 2, in units of 2^-bits

    def conjugate(x: int, y: int) -> tuple[int, int]:
        u, v = raise_to_power(x, y)
        return u + a, b - v

    def ship(x: int, y: int) -> tuple[int, int]:  # settings.py allows it the power 2 alone
        return ((x * x - y * y) >> bits) + a, (abs(x * y) >> bits - 1) + b

    def raise_to_power(x: int, y: int) -> tuple[int, int]:
        u, v = x, y
        for _ in range(power - 1):
            u, v = (u * x - v * y) >> bits, (u * y + v * x) >> bits
        return u, v

    def raised(x: int, y: int) -> tuple[int, int]:
        u, v = raise_to_power(x, y)
        return u + a, v + b

    return {"tricorn": conjugate, "burning_ship": ship}.get(formula, square if power == 2 else raised)


def _parts(x: int, y: int) -> tuple[tuple[float, int], tuple[float, int]]:
    """The leading 64 bits of both numbers as float, and the number of bits that were cut off."""
    cut_x, cut_y = max(x.bit_length() - 64, 0), max(y.bit_length() - 64, 0)
    return (float(x >> cut_x), cut_x), (float(y >> cut_y), cut_y)


def _escaped(real: tuple[float, int], imaginary: tuple[float, int], bits: int) -> bool:
    """True if |z|^2 > ESCAPE2, for the _parts() of z in units of 2^-bits."""
    x, y = (math.ldexp(number, cut - bits) for number, cut in (real, imaginary))
    return x * x + y * y > ESCAPE2


def _orbit(parts: list[tuple[float, int]], bits: int) -> Orbit:
    """The Orbit of the _parts() of all iterates; an exponent other than 0 only where z is below 2^SMALLEST_EXPONENT."""
    table = np.array(parts, "f8").reshape(-1, 2, 2)
    mantissas, exponents = np.frexp(table[..., 0])
    exponents = np.where(mantissas == 0, ZERO_EXPONENT, exponents + table[..., 1].astype("i8") - bits)
    scale = exponents.max(axis=1)
    kept = np.where((scale < SMALLEST_EXPONENT) & (scale > ZERO_EXPONENT), scale, 0)
    shift = np.clip(exponents - kept[:, None], -2000, 1000).astype("i4")
    with np.errstate(under="ignore"):
        numbers = np.ldexp(mantissas, shift)
    return Orbit(numbers[:, 0] + 1j * numbers[:, 1], kept.astype("i4"))
