"""Exact sums, counts, minima and maxima by integer keys, on the host's cores: correctly rounded, in any order.

A chunk is sorted by key, so that every key is a run. Its numbers are cut into digits of DIGIT_BITS bits on one grid
(as in a superaccumulator: Kulisch; Neal 2015); the running sums of a digit in int64, at the ends of the runs, differ by
the exact digit sums of the keys, whether they wrap around or not. Only the digits that the numbers reach are kept.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np

from renderer.errors import InputError
from renderer.formats.npy import ArraySource, as_source
from renderer.host import available_cores, available_memory
from renderer.numerics.error_free import split
from renderer.numerics.sums.device_sums import Numbers, check_same_order
from renderer.numerics.sums.exact_sum import (
    NAN,
    NEGATIVE_INFINITY,
    NOT_NEGATIVE_ZERO,
    POSITIVE_INFINITY,
    ExactSum,
    mean_of,
)

MIN_CHUNK, MAX_CHUNK = 1 << 20, 1 << 25  # numbers that are sorted together: chunks that share keys have to be merged
NUMBER_BYTES = 80  # of memory that a number of a chunk takes meanwhile
BLOCK = 1 << 15  # numbers whose digits are made, or rounded, together: they stay in the cache
DIGIT_BITS = 36  # 2^26 numbers of one key cannot overflow a digit's sum
LOWEST = -1080  # the exponent of digit 0, a multiple of DIGIT_BITS below every double's last bit
MAX_TOP = 1 << 60  # of the highest digit, so that two of them add up in int64
SIGNIFICANT_BITS = {"f2": 11, "f4": 24, "f8": 53}


@dataclass
class KeyedAggregates:
    """Aggregates by key: `keys` (k,) sorted, and for each the count, minimum, maximum, and the digits of its sum.

    The sum of key i is that of digits[d][i] 2^(DIGIT_BITS d + LOWEST), or, of integers, 2^(DIGIT_BITS d).
    """

    keys: np.ndarray
    counts: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    flags: np.ndarray  # uint8, of exact_sum.py
    digits: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def _lowest(self) -> int:
        return LOWEST if self.minimum.dtype.kind == "f" else 0

    @cached_property
    def totals(self) -> list[ExactSum]:
        """The ExactSum of each key."""
        low = min(self.digits, default=0)
        exponent = DIGIT_BITS * low + self._lowest
        columns = [(DIGIT_BITS * (d - low), self.digits[d].tolist()) for d in sorted(self.digits)]
        significands = [sum(column[i] << shift for shift, column in columns) for i in range(len(self.keys))]
        rows = zip(significands, self.flags.tolist(), self.counts.tolist(), strict=True)
        return [ExactSum(significand, exponent, flags, count) for significand, flags, count in rows]

    def sums(self) -> list:
        """The sums as Python numbers: floats rounded once, integers exact."""
        if self.minimum.dtype.kind != "f":
            return [t.significand << t.exponent for t in self.totals]
        return self.rounded_sums().tolist()

    def rounded_sums(self) -> np.ndarray:
        """The sums (k,) float64, each rounded once."""
        out, unsure = round_digits(self.digits, self._lowest, len(self.keys))
        for i in np.flatnonzero(unsure | (self.flags != NOT_NEGATIVE_ZERO)):
            out[i] = self._total(int(i)).rounded()
        return out

    def rounded_means(self) -> np.ndarray:
        """The means (k,) float64, each rounded once.

        The sum is split into its nearest double and the rest, both are divided, and where the error of that could
        change the last bit the mean is made from the exact sum.
        """
        high, unsure = round_digits(self.digits, self._lowest, len(self.keys))
        low = self._rest_of(high)
        count = self.counts.astype("f8")
        with np.errstate(all="ignore"):
            quotient = high / count
            high_half, low_half = split(quotient)
            product = quotient * count  # TwoProduct: count is an integer below 2^53
            count_high, count_low = split(count)
            lost = ((high_half * count_high - product) + high_half * count_low + low_half * count_high) + (
                low_half * count_low
            )
            correction = ((high - product) - lost + low) / count
            out, other = (quotient + correction * (1 + sign * 2.0**-40) for sign in (1, -1))
            is_usual = (np.abs(high) > 2.0**-900) & (np.abs(high) < 2.0**900)
        is_scaled = self.counts & (self.counts - 1) == 0  # by a power of two, which rounds as the sum does
        out, other = np.where(is_scaled, quotient, out), np.where(is_scaled, quotient, other)
        doubtful = unsure | (out != other) | ~is_usual | (self.flags != NOT_NEGATIVE_ZERO)
        for i in np.flatnonzero(doubtful):
            out[i] = mean_of(self._total(int(i)))
        return out

    def _rest_of(self, rounded: np.ndarray) -> np.ndarray:
        """The sums minus their rounded values, rounded."""
        is_float = self.minimum.dtype.kind == "f"
        usual = (np.abs(rounded) < 2.0**900) & ((np.abs(rounded) > 2.0**-900) if is_float else True)
        rest, digits = np.where(usual, -rounded, 0), dict(self.digits)
        for d in sorted(self.digits, reverse=True):
            taken = np.empty(len(rounded), "i8")
            _cut_digit(rest, DIGIT_BITS * d + self._lowest, taken)
            digits[d] = digits[d] + taken
        return round_digits(carried(digits), self._lowest, len(rounded))[0]

    def _total(self, i: int) -> ExactSum:
        low = min(self.digits, default=0)
        significand = sum(int(column[i]) << DIGIT_BITS * (d - low) for d, column in self.digits.items())
        return ExactSum(significand, DIGIT_BITS * low + self._lowest, int(self.flags[i]), int(self.counts[i]))

    def means(self) -> list[float]:
        """The means, rounded once."""
        return self.rounded_means().tolist()

    def merge(self, other: "KeyedAggregates") -> "KeyedAggregates":
        """The aggregates of both: `self` may be of numbers anywhere else."""
        both = np.concatenate([self.keys, other.keys])
        order, ordered = _sorted(both)
        firsts = (
            np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(both) else np.zeros(0, int)
        )

        def merged(operation: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            values = np.concatenate([a, b])[order]
            return operation.reduceat(values, firsts) if len(values) else values

        digits = {}
        for d in self.digits.keys() | other.digits.keys():
            own, others = (x.digits[d] if d in x.digits else np.zeros(len(x.keys), "i8") for x in (self, other))
            digits[d] = merged(np.add, own, others)
        with np.errstate(invalid="ignore"):
            minimum = merged(np.minimum, self.minimum, other.minimum)
            maximum = merged(np.maximum, self.maximum, other.maximum)
        counts, flags = merged(np.add, self.counts, other.counts), merged(np.bitwise_or, self.flags, other.flags)
        return KeyedAggregates(ordered[firsts], counts, minimum, maximum, flags, carried(digits))


def reduce_by_key(keys: Numbers, numbers: Numbers, chunk: int | None = None) -> KeyedAggregates:
    """Exact sums, counts, minima and maxima of `numbers` by equal integer `keys`: arrays or .npy files of one shape.

    They are read and sorted in chunks, one a core, of at most a quarter of the free memory. InputError for shapes that
    differ and for keys that are no integers.
    """
    k, x = as_source(keys), as_source(numbers)
    if k.shape != x.shape:
        raise InputError(f"{k.path}: keys of shape {k.shape}, but {x.path} has the shape {x.shape}")
    check_same_order(k, x)
    if k.dtype.kind not in "iub":
        raise InputError(f"{k.path}: keys are {k.dtype}; integers are wanted")
    cores = available_cores()
    chunk = chunk or min(max(available_memory() // (4 * NUMBER_BYTES * cores), MIN_CHUNK), MAX_CHUNK)
    starts = iter(range(0, k.count, chunk))
    none = np.zeros(0, x.dtype)
    parts = [KeyedAggregates(np.zeros(0, k.dtype), np.zeros(0, "i8"), none, none, np.zeros(0, "u1"))]

    def work(start: int) -> KeyedAggregates:
        count = min(chunk, k.count - start)
        return aggregate(_read(k, start, count), _read(x, start, count))

    with ThreadPoolExecutor(cores) as pool:
        while batch := list(islice(starts, cores)):
            for part in pool.map(work, batch):
                parts.append(part)
                while len(parts) > 1 and len(parts[-2].keys) <= 2 * len(parts[-1].keys):
                    parts.append(parts.pop().merge(parts.pop()))
    while len(parts) > 1:
        parts.append(parts.pop().merge(parts.pop()))
    return parts[0]


def _read(source: ArraySource, start: int, count: int) -> np.ndarray:
    out = np.empty(count, source.dtype)
    source.read_into(out.view("u1"), start)
    return out


def aggregate(keys: np.ndarray, numbers: np.ndarray) -> KeyedAggregates:
    """The aggregates of one chunk, at most 2^26 numbers."""
    order, keys = _sorted(keys)
    firsts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return aggregate_runs(keys[firsts], numbers[order], firsts)


def aggregate_runs(keys: np.ndarray, numbers: np.ndarray, firsts: np.ndarray) -> KeyedAggregates:
    """The aggregates of runs (k,) of numbers (n,), at most 2^26; run i begins at firsts[i], which ascend from 0."""
    assert len(numbers) <= 1 << 26
    counts = np.diff(firsts, append=len(numbers))
    with np.errstate(invalid="ignore"):
        extremes = np.minimum.reduceat(numbers, firsts), np.maximum.reduceat(numbers, firsts)
    flags = np.full(len(firsts), NOT_NEGATIVE_ZERO, "u1")
    if numbers.dtype.kind != "f":
        return KeyedAggregates(keys, counts, *extremes, flags, carried(_integer_digits(numbers, firsts)))
    values = numbers.astype("f8")
    is_special = ~np.isfinite(values)
    if is_special.any() or (np.signbit(values) & (values == 0)).any():
        each = np.where(np.isnan(values), NAN, np.where(values > 0, POSITIVE_INFINITY, NEGATIVE_INFINITY)) * is_special
        each |= NOT_NEGATIVE_ZERO * ~(is_special | (np.signbit(values) & (values == 0)))
        flags = np.bitwise_or.reduceat(each.astype("u1"), firsts)
        values[is_special] = 0
    digits = _float_digits(values, firsts, SIGNIFICANT_BITS[numbers.dtype.str[1:]])
    return KeyedAggregates(keys, counts, *extremes, flags, carried(digits))


def _sorted(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A stable order of the keys, and the keys in it.

    Where both fit 64 bits, keys with their places behind are sorted as integers, several times as fast as argsort.
    """
    if not len(keys):
        return np.zeros(0, int), keys
    bits, low = (len(keys) - 1).bit_length(), int(keys.min())
    if (int(keys.max()) - low).bit_length() + bits > 63:
        order = np.argsort(keys, kind="stable")
        return order, keys[order]
    offset = np.asarray(low, keys.dtype) if keys.dtype.kind != "b" else np.asarray(low, "u1")
    wide = "u8" if keys.dtype == np.uint64 else "i8"
    packed = (keys.astype(wide) - offset.astype(wide)).astype("i8") << bits
    packed |= np.arange(len(keys))
    packed.sort()
    order = packed & ((1 << bits) - 1)
    packed >>= bits
    return order, (packed.astype(wide) + offset.astype(wide)).astype(keys.dtype)


def _run_sums(values: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """The sums (k,) int64 of the runs of integers that begin at `firsts`, modulo 2^64."""
    running = np.cumsum(values, dtype="i8")
    ends = running[np.append(firsts[1:], len(values)) - 1]
    return np.diff(ends, prepend=0)


def _integer_digits(numbers: np.ndarray, firsts: np.ndarray) -> dict[int, np.ndarray]:
    """The digit sums of integers."""
    if numbers.dtype.itemsize < 8:
        return {0: _run_sums(numbers, firsts)}
    mask = (1 << DIGIT_BITS) - 1
    low = (numbers & numbers.dtype.type(mask)).astype("i8")
    high = (numbers >> numbers.dtype.type(DIGIT_BITS)).astype("i8")
    return {0: _run_sums(low, firsts), 1: _run_sums(high, firsts)}


def _float_digits(values: np.ndarray, firsts: np.ndarray, significant: int) -> dict[int, np.ndarray]:
    """The digit sums of finite float64 numbers of so many significant bits."""
    magnitudes = np.abs(values)
    largest = float(magnitudes.max())
    if largest == 0:
        return {}
    magnitudes[magnitudes == 0] = largest
    lowest = max(int(np.frexp(magnitudes.min())[1]) - significant, -1074)
    first = (lowest - LOWEST) // DIGIT_BITS
    last = (int(np.frexp(largest)[1]) - LOWEST) // DIGIT_BITS
    digits, rest = {}, values
    whole = np.empty(len(values), "i8")
    for d in range(last, first - 1, -1):
        _cut_digit(rest, DIGIT_BITS * d + LOWEST, whole)
        digits[d] = _run_sums(whole, firsts)
    return digits


def _cut_digit(rest: np.ndarray, exponent: int, out: np.ndarray) -> None:
    """Moves the multiples of 2^exponent, the nearest to zero, from `rest` to `out`, in units of it."""
    for start in range(0, len(rest), BLOCK):
        part = rest[start : start + BLOCK]
        units = np.trunc(np.ldexp(part, -exponent))
        out[start : start + BLOCK] = units
        part -= np.ldexp(units, exponent)


def carried(digits: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """The same sums with every digit but the highest from 0 to 2^DIGIT_BITS - 1, and that one below MAX_TOP."""
    out: dict[int, np.ndarray] = {}
    if not digits:
        return out
    d, last = min(digits), max(digits)
    carry = np.zeros_like(digits[d])
    while True:
        value = digits[d] + carry if d in digits else carry
        if d >= last and -MAX_TOP < value.min() and value.max() < MAX_TOP:
            out[d] = value
            return out
        carry = value >> DIGIT_BITS
        out[d] = value & ((1 << DIGIT_BITS) - 1)
        d += 1


def round_digits(digits: dict[int, np.ndarray], lowest: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Float64 numbers (count,) nearest to carried digits, and which of them are not certain: subnormal or too large.

    Ties go to even. The three highest digits and whether anything is below them decide.
    """
    out, unsure = np.zeros(count), np.zeros(count, bool)
    for first in range(0, count if digits else 0, BLOCK):
        own = slice(first, min(first + BLOCK, count))
        out[own], unsure[own] = _round_block({d: value[own] for d, value in digits.items()}, lowest, own.stop - first)
    return out, unsure


def _round_block(digits: dict[int, np.ndarray], lowest: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """round_digits() of few numbers, whose intermediate results stay in the cache."""
    order = sorted(digits, reverse=True)
    negative = digits[order[0]] < 0
    magnitudes = _magnitudes(digits, negative)
    top = np.zeros(count, "i8")  # the place in `order` of the first digit that is not zero
    found = np.zeros(count, bool)
    for d in order:
        found |= magnitudes[d] != 0
        top += ~found
    zero = ~found
    stack = [magnitudes[d] for d in order] + [np.zeros(count, "i8")] * 3
    a, b, c = np.zeros(count, "i8"), np.zeros(count, "i8"), np.zeros(count, "i8")
    sticky = np.zeros(count, bool)
    for place in range(len(order)):
        here = top == place
        for target, k in ((a, place), (b, place + 1), (c, place + 2)):
            np.copyto(target, stack[k], where=here)
        sticky |= (stack[place] != 0) & (top + 2 < place)
    size = np.frexp(a.astype("f8"))[1].astype("i8")  # bits of a, at most DIGIT_BITS + 1
    shift = np.minimum(62 - size, 2 * DIGIT_BITS)
    from_b = np.minimum(shift, DIGIT_BITS)
    from_c = shift - from_b
    word = (a << shift) | (b >> (DIGIT_BITS - from_b) << from_c) | (c >> (DIGIT_BITS - from_c))
    lost = ((b & ((1 << (DIGIT_BITS - from_b)) - 1)) != 0) | ((c & ((1 << (DIGIT_BITS - from_c)) - 1)) != 0) | sticky
    word |= lost
    exponent = DIGIT_BITS * np.asarray(order)[np.minimum(top, len(order) - 1)] + lowest - shift
    with np.errstate(over="ignore"):
        value = np.ldexp(word.astype("f8"), exponent.astype("i4"))
    unsure = ~zero & ((exponent + 62 < -1021) | ~np.isfinite(value))
    return np.where(zero, 0.0, np.where(negative, -value, value)), unsure


def _magnitudes(digits: dict[int, np.ndarray], negative: np.ndarray) -> dict[int, np.ndarray]:
    """The digits of the absolute values: those of negative sums are negated and carried again."""
    if not negative.any():
        return digits
    return carried({d: np.where(negative, -value, value) for d, value in digits.items()})
