"""ExactSum: an integer times a power of two, added without rounding and rounded once at the end.

The result type of the sum kernels (device_sums.py) and of sums by key (by_key.py); exact_sum_host() is the reference
that tests compare kernels with. Correct rounding after J.-M. Muller et al., Handbook of Floating-Point Arithmetic.
"""

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import InputError
from renderer.records import dataclass

# Bits of ExactSum.flags, numbered as in shaders/numerics/superaccumulator.h.
NAN, POSITIVE_INFINITY, NEGATIVE_INFINITY, NOT_NEGATIVE_ZERO = 1, 2, 4, 8
MAX_DIGITS = 10_000  # of a sum of decimal.Decimal
# Precision in bits, exponent of the smallest subnormal number, exponent of the power of two beyond the largest number.
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
        """NaN or an infinity if that is the sum, else None."""
        if self.flags & NAN or self.flags & POSITIVE_INFINITY and self.flags & NEGATIVE_INFINITY:
            return math.nan
        if self.flags & (POSITIVE_INFINITY | NEGATIVE_INFINITY):
            return math.inf if self.flags & POSITIVE_INFINITY else -math.inf
        return None

    def fraction(self) -> Fraction:
        """The finite sum as a ratio of integers."""
        return Fraction(self.significand) * Fraction(2) ** self.exponent

    def rounded(self, dtype: DTypeLike = np.float64) -> float:
        """The sum rounded once to a floating-point format, ties to even.

        It is -0 only if every number was -0, as in IEEE 754.
        """
        if self.non_finite is not None:
            return self.non_finite
        if self.significand == 0 and self.count and not self.flags & NOT_NEGATIVE_ZERO:
            return -0.0
        return round_to_format(self.significand, self.exponent, dtype)


@dataclass(frozen=True)
class ComplexSum:
    """The sum of complex numbers: one sum for the real parts, one for the imaginary parts."""

    real: Any
    imaginary: Any

    def __add__(self, other: "ComplexSum") -> "ComplexSum":
        return ComplexSum(self.real + other.real, self.imaginary + other.imaginary)

    @property
    def count(self) -> int:
        """The number of summands."""
        return int(self.real.count)

    def rounded(self, dtype: DTypeLike = np.complex128) -> complex:
        """Both sums, each rounded once to the real type of `dtype`, which is complex or floating-point."""
        real = np.zeros(0, dtype).real.dtype
        return complex(self.real.rounded(real), self.imaginary.rounded(real))


@dataclass(frozen=True)
class DecimalSum:
    """The sum of `count` decimal numbers, units * 10^-scale, without any rounding."""

    units: int
    scale: int
    count: int

    def __add__(self, other: "DecimalSum") -> "DecimalSum":
        scale = max(self.scale, other.scale)
        units = sum(part.units * 10 ** (scale - part.scale) for part in (self, other))
        return DecimalSum(units, scale, self.count + other.count)

    def fraction(self) -> Fraction:
        """The sum as a ratio of integers."""
        return Fraction(self.units) / Fraction(10) ** self.scale

    def decimal(self) -> Decimal:
        """The sum with all its digits."""
        return Decimal((int(self.units < 0), tuple(map(int, str(abs(self.units)))), -self.scale))

    def rounded(self, dtype: DTypeLike = np.float64) -> float:
        """The sum rounded once to a floating-point format, ties to even."""
        return rounded_fraction(self.fraction(), dtype)


def objects_total(numbers: list[object]) -> int | Decimal:
    """The sum, with all digits, of Python's integers, or of decimal.Decimal numbers and integers.

    InputError for other objects, and for a sum of decimals beyond MAX_DIGITS.
    """
    if others := {type(number).__name__ for number in numbers if not isinstance(number, (int, Decimal))}:
        cure = "nulls are left out first (DuckDB: list(x) filter (x is not null)); integers and Decimals can be added"
        raise InputError(f"array: holds Python objects, such as {min(others)}; {cure}")
    exact = [number for number in numbers if isinstance(number, (int, Decimal))]  # all of them
    if all(isinstance(number, int) for number in exact):
        return int(sum(exact))
    try:
        with localcontext(Context(MAX_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Inexact])):
            return sum(exact, Decimal())
    except Inexact:
        raise InputError(f"array: the sum of its decimals has more than {MAX_DIGITS} digits") from None


def round_to_format(significand: int, exponent: int, dtype: DTypeLike = np.float64) -> float:
    """The number of a format nearest to significand * 2^exponent, ties to even."""
    precision, lowest, highest = FORMATS[np.dtype(dtype).type]
    magnitude = abs(significand)
    quantum_exponent = max(magnitude.bit_length() + exponent - precision, lowest)
    shift = quantum_exponent - exponent
    if shift <= 0:
        kept = magnitude << -shift
    else:
        kept, lost, half = magnitude >> shift, magnitude & ((1 << shift) - 1), 1 << (shift - 1)
        if lost > half or lost == half and kept & 1:
            kept += 1
    overflows = kept > 0 and kept.bit_length() + quantum_exponent > highest
    value = math.inf if overflows else math.ldexp(kept, quantum_exponent)
    return -value if significand < 0 else value


def rounded_fraction(value: Fraction, dtype: DTypeLike = np.float64) -> float:
    """A rational number rounded once to a floating-point format.

    A quotient of 80 bits or more, and a bit for a remainder, suffice: a format has at most 53 bits, a tie one more.
    """
    shift = max(0, 80 - value.numerator.bit_length() + value.denominator.bit_length())
    quotient, remainder = divmod(abs(value.numerator) << shift, value.denominator)
    significand = quotient << 1 | (remainder != 0)
    return round_to_format(-significand if value < 0 else significand, -shift - 1, dtype)


def rounded_root(value: Fraction, dtype: DTypeLike = np.float64) -> float:
    """The square root of a rational number, rounded once to a floating-point format.

    The root of a quotient of 160 bits has 80, as in rounded_fraction().
    """
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = max(0, 160 - size)
    shift += shift % 2
    quotient, remainder = divmod(value.numerator << shift, value.denominator)
    root = math.isqrt(quotient)
    significand = root << 1 | (remainder != 0 or root * root != quotient)
    return round_to_format(significand, -shift // 2 - 1, dtype)


def mean_of(total: ExactSum | ComplexSum) -> complex:
    """The sum divided by the count, rounded once (each part of a complex mean); NaN for no numbers."""
    if isinstance(total, ComplexSum):
        return complex(mean_of(total.real), mean_of(total.imaginary))
    if total.non_finite is not None or total.count == 0:
        return math.nan if total.non_finite is None else total.non_finite
    return rounded_fraction(total.fraction() / total.count)


def exact_sum_from_limbs(words: np.ndarray, exponent: int, count: int) -> ExactSum:
    """The ExactSum in a kernel's output: uint32 words, two per int64 limb of weight 2^(32 i + exponent), then flags."""
    limbs = words[:-2].view("i8")
    significand = sum(int(limbs[i]) << 32 * int(i) for i in np.flatnonzero(limbs))
    return ExactSum(significand, exponent, int(words[-2]), count)


def exact_sum_host(numbers: np.ndarray) -> ExactSum:
    """The ExactSum of a host array, by NumPy: for small arrays, and the reference for tests of the kernels."""
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
