"""Exact totals on the host: integers times a power of two, merged by integer addition and rounded once, at the end."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

NAN, PLUS_INFINITY, MINUS_INFINITY, NOT_MINUS_ZERO = 1, 2, 4, 8
FORMATS = {np.float64: (53, -1074, 1024), np.float32: (24, -149, 128), np.float16: (11, -24, 16)}


@dataclass(frozen=True)
class Total:
    """units * 2^exponent, the exact sum of `count` numbers; `flags` tells of nans, infinities and -0."""

    units: int = 0
    exponent: int = 0
    flags: int = 0
    count: int = 0

    def __add__(self, other: "Total") -> "Total":
        exponent = min(self.exponent, other.exponent)
        units = (self.units << (self.exponent - exponent)) + (other.units << (other.exponent - exponent))
        return Total(units, exponent, self.flags | other.flags, self.count + other.count)

    def __eq__(self, other) -> bool:
        same = (self.flags, self.count) == (other.flags, other.count)
        return same and (self + Total(-other.units, other.exponent)).units == 0

    @property
    def special(self) -> float | None:
        """The sum where it is no finite number: nan or an infinity."""
        if self.flags & NAN or self.flags & PLUS_INFINITY and self.flags & MINUS_INFINITY:
            return math.nan
        if self.flags & (PLUS_INFINITY | MINUS_INFINITY):
            return math.inf if self.flags & PLUS_INFINITY else -math.inf
        return None

    def fraction(self) -> Fraction:
        """The finite sum as a ratio."""
        return Fraction(self.units) * Fraction(2) ** self.exponent

    def rounded(self, dtype=np.float64) -> float:
        """The sum rounded once to a floating-point format, to even on ties; as IEEE 754 adds, -0 only from -0s."""
        if self.special is not None:
            return self.special
        if self.units == 0 and self.count and not self.flags & NOT_MINUS_ZERO:
            return -0.0
        return rounded(self.units, self.exponent, dtype)


def rounded(units: int, exponent: int, dtype=np.float64, rest: bool = False) -> float:
    """units * 2^exponent to the nearest number of a format, ties to even; `rest`: the true value lies further out."""
    precision, lowest, highest = FORMATS[np.dtype(dtype).type]
    magnitude = abs(units)
    place = max(magnitude.bit_length() + exponent - precision, lowest)
    shift = place - exponent
    if shift <= 0:
        kept = magnitude << -shift
    else:
        kept, lost, half = magnitude >> shift, magnitude & ((1 << shift) - 1), 1 << (shift - 1)
        if lost > half or lost == half and (rest or kept & 1):
            kept += 1
    value = math.inf if kept and kept.bit_length() + place > highest else math.ldexp(kept, place)
    return -value if units < 0 else value


def rounded_fraction(value: Fraction, dtype=np.float64) -> float:
    """A ratio rounded once."""
    shift = max(0, 80 - value.numerator.bit_length() + value.denominator.bit_length())
    quotient, remainder = divmod(abs(value.numerator) << shift, value.denominator)
    units = quotient << 1 | (remainder != 0)
    return rounded(-units if value < 0 else units, -shift - 1, dtype)


def rounded_root(value: Fraction, dtype=np.float64) -> float:
    """The square root of a ratio, rounded once."""
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = max(0, 160 - size)
    shift += shift % 2
    quotient, remainder = divmod(value.numerator << shift, value.denominator)
    root = math.isqrt(quotient)
    units = root << 1 | (remainder != 0 or root * root != quotient)
    return rounded(units, -shift // 2 - 1, dtype)


def total_of_limbs(words: np.ndarray, exponent: int, count: int) -> Total:
    """The Total of a kernel's (2 * limbs + 2,) uint32: pairs of words of weight 2^(32 i + exponent), then flags."""
    units = sum(int(limb) << 32 * i for i, limb in enumerate(words[:-2].view("i8")) if limb)
    return Total(units, exponent, int(words[-2]), count)


def total_of(numbers: np.ndarray) -> Total:
    """The Total of a host array, by NumPy: for few numbers, and the witness of the kernels."""
    numbers = np.ascontiguousarray(numbers).ravel()
    if numbers.dtype.kind in "iub":
        return Total(sum(int(n) for n in numbers), 0, NOT_MINUS_ZERO * bool(numbers.size), numbers.size)
    wide = numbers.astype("f8")
    nan, infinite = np.isnan(wide), np.isinf(wide)
    flags = NAN * bool(nan.any()) | PLUS_INFINITY * bool((wide[infinite] > 0).any())
    flags |= MINUS_INFINITY * bool((wide[infinite] < 0).any())
    flags |= NOT_MINUS_ZERO * bool(((wide != 0) | ~np.signbit(wide))[~nan & ~infinite].any())
    mantissas, exponents = np.frexp(np.where(nan | infinite, 0, wide))
    mantissas = np.ldexp(mantissas, 53).astype("i8")
    units = 0
    for exponent in np.unique(exponents):
        group = mantissas[exponents == exponent]
        low, high = int((group & 0xFFFFFFFF).sum()), int((group >> 32).sum())
        units += ((high << 32) + low) << (int(exponent) + 1074)
    return Total(units, -1074 - 53, flags, numbers.size)
