"""Exact sums on the host: integers times a power of two, merged by integer addition and rounded once, at the end.

For the kernels' results (device_sums.py, aggregates.py) and as the reference that tests compare kernels with. Correct
rounding after Muller et al., Handbook of Floating-Point Arithmetic.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

# Bits of ExactSum.flags, numbered as in shaders/numerics/superaccumulator.h.
NAN, POSITIVE_INFINITY, NEGATIVE_INFINITY, NOT_NEGATIVE_ZERO = 1, 2, 4, 8
# Precision in bits, exponent of the smallest subnormal number, exponent behind the largest number.
FORMATS = {np.float64: (53, -1074, 1024), np.float32: (24, -149, 128), np.float16: (11, -24, 16)}


@dataclass(frozen=True)
class ExactSum:
    """The sum of `count` numbers, significand * 2^exponent, without any rounding.

    `flags` records NaN, infinities, and whether any number was not -0.
    """

    significand: int = 0
    exponent: int = 0
    flags: int = 0
    count: int = 0

    def __add__(self, other: "ExactSum") -> "ExactSum":
        exponent = min(self.exponent, other.exponent)
        significand = self.significand << (self.exponent - exponent)
        significand += other.significand << (other.exponent - exponent)
        return ExactSum(significand, exponent, self.flags | other.flags, self.count + other.count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactSum):
            return NotImplemented
        same = (self.flags, self.count) == (other.flags, other.count)
        return same and (self + ExactSum(-other.significand, other.exponent)).significand == 0

    @property
    def non_finite(self) -> float | None:
        """The sum where it is NaN or infinite, else None."""
        if self.flags & NAN or self.flags & POSITIVE_INFINITY and self.flags & NEGATIVE_INFINITY:
            return math.nan
        if self.flags & (POSITIVE_INFINITY | NEGATIVE_INFINITY):
            return math.inf if self.flags & POSITIVE_INFINITY else -math.inf
        return None

    def fraction(self) -> Fraction:
        """The finite sum as a ratio of integers."""
        return Fraction(self.significand) * Fraction(2) ** self.exponent

    def rounded(self, dtype=np.float64) -> float:
        """The sum rounded once to a floating-point format, ties to even.

        As IEEE 754 adds, it is -0 only if every number was -0.
        """
        if self.non_finite is not None:
            return self.non_finite
        if self.significand == 0 and self.count and not self.flags & NOT_NEGATIVE_ZERO:
            return -0.0
        return round_to_format(self.significand, self.exponent, dtype)


@dataclass(frozen=True)
class ComplexSum:
    """The sum of complex numbers: those of their real and of their imaginary parts."""

    real: Any
    imaginary: Any

    def __add__(self, other: "ComplexSum") -> "ComplexSum":
        return ComplexSum(self.real + other.real, self.imaginary + other.imaginary)

    @property
    def count(self) -> int:
        """How many numbers."""
        return self.real.count

    def rounded(self, dtype=np.complex128) -> complex:
        """Both parts rounded once to those of a complex format, or to a floating-point format."""
        part = np.zeros(0, dtype).real.dtype
        return complex(self.real.rounded(part), self.imaginary.rounded(part))


def round_to_format(significand: int, exponent: int, dtype=np.float64, sticky: bool = False) -> float:
    """The number of a format nearest to significand * 2^exponent, ties to even.

    With `sticky` the true magnitude lies above that by less than one unit, so that a tie rounds away from zero.
    """
    precision, lowest, highest = FORMATS[np.dtype(dtype).type]
    magnitude = abs(significand)
    quantum_exponent = max(magnitude.bit_length() + exponent - precision, lowest)
    shift = quantum_exponent - exponent
    if shift <= 0:
        kept = magnitude << -shift
    else:
        kept, lost, half = magnitude >> shift, magnitude & ((1 << shift) - 1), 1 << (shift - 1)
        if lost > half or lost == half and (sticky or kept & 1):
            kept += 1
    overflows = kept and kept.bit_length() + quantum_exponent > highest
    value = math.inf if overflows else math.ldexp(kept, quantum_exponent)
    return -value if significand < 0 else value


def rounded_fraction(value: Fraction, dtype=np.float64) -> float:
    """A ratio rounded once to a floating-point format."""
    shift = max(0, 80 - value.numerator.bit_length() + value.denominator.bit_length())
    quotient, remainder = divmod(abs(value.numerator) << shift, value.denominator)
    significand = quotient << 1 | (remainder != 0)
    return round_to_format(-significand if value < 0 else significand, -shift - 1, dtype)


def rounded_root(value: Fraction, dtype=np.float64) -> float:
    """The square root of a ratio, rounded once to a floating-point format."""
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = max(0, 160 - size)
    shift += shift % 2
    quotient, remainder = divmod(value.numerator << shift, value.denominator)
    root = math.isqrt(quotient)
    significand = root << 1 | (remainder != 0 or root * root != quotient)
    return round_to_format(significand, -shift // 2 - 1, dtype)


def mean_of(total: ExactSum | ComplexSum) -> Any:
    """The sum over the count, its parts rounded once; NaN of no numbers."""
    if isinstance(total, ComplexSum):
        return complex(mean_of(total.real), mean_of(total.imaginary))
    if total.non_finite is not None or total.count == 0:
        return math.nan if total.non_finite is None else total.non_finite
    return rounded_fraction(total.fraction() / total.count)


def integer_from_limbs(limbs: np.ndarray) -> int:
    """The integer that int64 limbs of weight 2^(32 i) add up to."""
    return sum(int(limbs[i]) << 32 * int(i) for i in np.flatnonzero(limbs))


def exact_sum_from_limbs(words: np.ndarray, exponent: int, count: int) -> ExactSum:
    """The ExactSum of a kernel's uint32 (2 limbs + 2,): two words a limb of weight 2^(32 i + exponent), then flags."""
    return ExactSum(integer_from_limbs(words[:-2].view("i8")), exponent, int(words[-2]), count)


def exact_sum_host(numbers: np.ndarray) -> ExactSum:
    """The ExactSum of a host array by NumPy: for few numbers, and the reference implementation for the kernels."""
    numbers = np.ascontiguousarray(numbers).ravel()
    if numbers.dtype.kind in "iub":
        return ExactSum(sum(int(n) for n in numbers), 0, NOT_NEGATIVE_ZERO * bool(numbers.size), numbers.size)
    wide = numbers.astype("f8")
    nan, infinite = np.isnan(wide), np.isinf(wide)
    flags = NAN * bool(nan.any()) | POSITIVE_INFINITY * bool((wide[infinite] > 0).any())
    flags |= NEGATIVE_INFINITY * bool((wide[infinite] < 0).any())
    flags |= NOT_NEGATIVE_ZERO * bool(((wide != 0) | ~np.signbit(wide))[~nan & ~infinite].any())
    mantissas, exponents = np.frexp(np.where(nan | infinite, 0, wide))
    mantissas = np.ldexp(mantissas, 53).astype("i8")
    significand = 0
    for exponent in np.unique(exponents):
        group = mantissas[exponents == exponent]
        low, high = int((group & 0xFFFFFFFF).sum()), int((group >> 32).sum())
        significand += ((high << 32) + low) << (int(exponent) + 1074)
    return ExactSum(significand, -1074 - 53, flags, numbers.size)
