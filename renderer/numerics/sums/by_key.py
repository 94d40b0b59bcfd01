"""Correctly rounded sums and means, counts, minima and maxima by integer keys, on the cores of the host.

For `rayfold sum --by`, and for exact_blas.py, whose keys are the rows of a matrix.
A chunk is sorted by key, so the numbers of a key are a run of neighbors. Each number is split into digits of DIGIT_BITS
bits at fixed binary positions (a superaccumulator: Kulisch; R. Neal 2015). np.cumsum of one digit in int64, taken at
the last number of each run, gives the exact digit sums of the keys by subtraction, even if the cumulative sums wrap
around. Only digits in the range of the numbers are stored.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, reduce
from itertools import islice

import numpy as np

from renderer.errors import InputError
from renderer.formats.npy import as_source
from renderer.host import available_cores, available_memory
from renderer.numerics.error_free import product_error, split
from renderer.numerics.sums import exact_sum
from renderer.numerics.sums.device_sums import Numbers, check_same_order, read_numbers
from renderer.numerics.sums.exact_sum import NOT_NEGATIVE_ZERO, ExactSum, mean_of
from renderer.records import dataclass, field

MIN_CHUNK, MAX_CHUNK = 1 << 20, 1 << 25  # numbers that are sorted together
NUMBER_BYTES = 80  # working memory per number of a chunk
BLOCK = 1 << 15  # numbers whose digits are split off, or rounded, together: a block fits the cache
DIGIT_BITS = 36  # the sum of 2^26 digits fits int64
LOWEST = -1080  # exponent of digit 0 of floats: a multiple of DIGIT_BITS below the last bit of every double
MAX_TOP = 1 << 60  # bound of the highest digit: two of them add without overflow in int64
SIGNIFICANT_BITS = {"f2": 11, "f4": 24, "f8": 53}


@dataclass
class KeyedAggregates:
    """For each of the sorted `keys` (k,): count, minimum, maximum, ExactSum flags, and the digits of its sum.

    The sum of key i is the sum over d of digits[d][i] 2^(DIGIT_BITS d + LOWEST); integers have no LOWEST.
    """

    keys: np.ndarray
    counts: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    flags: np.ndarray  # uint8, bits as in ExactSum.flags
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

    def sums(self) -> list[float]:
        """The sums as Python numbers: floats rounded once, integers exact."""
        if self.minimum.dtype.kind != "f":
            return [t.significand << t.exponent for t in self.totals]
        return list(self.rounded_sums().tolist())

    def rounded_sums(self) -> np.ndarray:
        """The sums (k,) float64, each rounded once."""
        out, unsure = round_digits(self.digits, self._lowest, len(self.keys))
        for i in np.flatnonzero(unsure | (self.flags != NOT_NEGATIVE_ZERO)):  # others: NaN, an infinity, or -0
            out[i] = self._total(int(i)).rounded()
        return out

    def rounded_means(self) -> np.ndarray:
        """The means (k,) float64, each rounded once.

        The sum is high + low, with high the nearest double, and the mean quotient + correction, with the quotient
        high / count. The correction, ((high - quotient count) + low) / count, has an error below 2^-40 of its size; if
        that error could change the last bit of the mean (`out` and `other` differ), the ExactSum decides.
        """
        high, unsure = round_digits(self.digits, self._lowest, len(self.keys))
        low = self._rounding_errors(high)
        count = self.counts.astype("f8")
        with np.errstate(all="ignore"):
            quotient = high / count
            product = quotient * count
            lost = product_error(product, split(quotient), split(count))
            correction = ((high - product) - lost + low) / count
            out, other = (quotient + correction * (1 + sign * 2.0**-40) for sign in (1, -1))
            is_usual = (np.abs(high) > 2.0**-900) & (np.abs(high) < 2.0**900)
        is_power_of_two = self.counts & (self.counts - 1) == 0  # dividing by it does not round
        out, other = np.where(is_power_of_two, quotient, out), np.where(is_power_of_two, quotient, other)
        doubtful = unsure | (out != other) | ~is_usual | (self.flags != NOT_NEGATIVE_ZERO)
        for i in np.flatnonzero(doubtful):
            out[i] = mean_of(self._total(int(i)))
        return np.asarray(out)

    def _rounding_errors(self, rounded: np.ndarray) -> np.ndarray:
        """The exact sums minus their rounded values, rounded to float64.

        The rounded values are split into digits, which are subtracted from the digits of the sums. Where a value is not
        between 2^-900 and 2^900, nothing is subtracted: rounded_means() recomputes these means.
        """
        is_float = self.minimum.dtype.kind == "f"
        usual = (np.abs(rounded) < 2.0**900) & ((np.abs(rounded) > 2.0**-900) if is_float else True)
        rest, digits = np.where(usual, -rounded, 0), dict(self.digits)
        for d in sorted(self.digits, reverse=True):
            negated_digit = np.empty(len(rounded), "i8")
            _split_off_digit(rest, DIGIT_BITS * d + self._lowest, negated_digit)
            digits[d] = digits[d] + negated_digit
        return round_digits(carried(digits), self._lowest, len(rounded))[0]

    def _total(self, i: int) -> ExactSum:
        low = min(self.digits, default=0)
        significand = sum(int(column[i]) << DIGIT_BITS * (d - low) for d, column in self.digits.items())
        return ExactSum(significand, DIGIT_BITS * low + self._lowest, int(self.flags[i]), int(self.counts[i]))

    def merge(self, other: "KeyedAggregates") -> "KeyedAggregates":
        """The aggregates of the numbers of both."""
        both = np.concatenate([self.keys, other.keys])
        order, ordered = _sorted(both)
        firsts = _run_starts(ordered)

        def merged(operation: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            values = np.concatenate([a, b])[order]
            return operation.reduceat(values, firsts) if len(values) else values

        digits = {}
        for d in self.digits.keys() | other.digits.keys():
            a, b = (x.digits[d] if d in x.digits else np.zeros(len(x.keys), "i8") for x in (self, other))
            digits[d] = merged(np.add, a, b)
        with np.errstate(invalid="ignore"):
            minimum = merged(np.minimum, self.minimum, other.minimum)
            maximum = merged(np.maximum, self.maximum, other.maximum)
        counts, flags = merged(np.add, self.counts, other.counts), merged(np.bitwise_or, self.flags, other.flags)
        return KeyedAggregates(ordered[firsts], counts, minimum, maximum, flags, carried(digits))


def reduce_by_key(keys: Numbers, numbers: Numbers, chunk: int | None = None) -> KeyedAggregates:
    """Exact sums, counts, minima and maxima of the `numbers` of each integer key; both are arrays or .npy files.

    Chunks of `chunk` numbers are read and sorted, one per core; all together take at most a quarter of the free memory
    by default. InputError if the shapes or orders differ or the keys are not integers.
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
        return aggregate(read_numbers(k, start, count), read_numbers(x, start, count))

    with ThreadPoolExecutor(cores) as pool:
        while batch := list(islice(starts, cores)):
            for part in pool.map(work, batch):
                push(parts, part)
    return reduce(KeyedAggregates.merge, reversed(parts))  # the smallest parts, which are last, first


def push(parts: list[KeyedAggregates], part: KeyedAggregates) -> None:
    """Appends a part, and merges the last ones while they are of similar size: n parts take about log n merges each."""
    parts.append(part)
    while len(parts) > 1 and len(parts[-2].keys) <= 2 * len(parts[-1].keys):
        parts.append(parts.pop().merge(parts.pop()))


def aggregate(keys: np.ndarray, numbers: np.ndarray) -> KeyedAggregates:
    """The aggregates of one chunk of at most 2^26 numbers with their keys, both (n,)."""
    order, keys = _sorted(keys)
    firsts = _run_starts(keys)
    return aggregate_runs(keys[firsts], numbers[order], firsts)


def aggregate_runs(keys: np.ndarray, numbers: np.ndarray, firsts: np.ndarray) -> KeyedAggregates:
    """The aggregates of k runs of at most 2^26 numbers (n,); run i begins at index firsts[i], and firsts[0] is 0."""
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
        infinity = np.where(values > 0, exact_sum.POSITIVE_INFINITY, exact_sum.NEGATIVE_INFINITY)
        each = np.where(np.isnan(values), exact_sum.NAN, infinity) * is_special
        each |= NOT_NEGATIVE_ZERO * ~(is_special | (np.signbit(values) & (values == 0)))
        flags = np.bitwise_or.reduceat(each.astype("u1"), firsts)
        values[is_special] = 0
    digits = _float_digits(values, firsts, SIGNIFICANT_BITS[numbers.dtype.str[1:]])
    return KeyedAggregates(keys, counts, *extremes, flags, carried(digits))


def _sorted(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The permutation that sorts the keys stably, and the sorted keys.

    If a key and its index fit 63 bits together, they are packed into one int64 and sorted: several times as fast as
    argsort.
    """
    if not len(keys):
        return np.zeros(0, int), keys
    bits, low = (len(keys) - 1).bit_length(), int(keys.min())
    if (int(keys.max()) - low).bit_length() + bits > 63:
        order = np.argsort(keys, kind="stable")
        return order, keys[order]
    offset = np.asarray(low, keys.dtype if keys.dtype.kind != "b" else "u1")  # NumPy does not subtract booleans
    wide = "u8" if keys.dtype == np.uint64 else "i8"
    packed = (keys.astype(wide) - offset.astype(wide)).astype("i8") << bits
    packed |= np.arange(len(keys))
    packed.sort()
    order = packed & ((1 << bits) - 1)
    packed >>= bits
    return order, (packed.astype(wide) + offset.astype(wide)).astype(keys.dtype)


def _run_starts(keys: np.ndarray) -> np.ndarray:
    """The indices at which the runs of equal keys begin."""
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])


def _run_sums(values: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """The sums (k,) int64, modulo 2^64, of the runs of integers that begin at `firsts`."""
    running = np.cumsum(values, dtype="i8")
    ends = running[np.append(firsts[1:], len(values)) - 1]
    return np.diff(ends, prepend=0)


def _integer_digits(numbers: np.ndarray, firsts: np.ndarray) -> dict[int, np.ndarray]:
    """The digits of the sums of runs of integers."""
    if numbers.dtype.itemsize < 8:
        return {0: _run_sums(numbers, firsts)}
    mask = (1 << DIGIT_BITS) - 1
    low = (numbers & numbers.dtype.type(mask)).astype("i8")
    high = (numbers >> numbers.dtype.type(DIGIT_BITS)).astype("i8")
    return {0: _run_sums(low, firsts), 1: _run_sums(high, firsts)}


def _float_digits(values: np.ndarray, firsts: np.ndarray, significant: int) -> dict[int, np.ndarray]:
    """The digits of the sums of runs of finite float64 numbers, each of `significant` bits; overwrites `values`."""
    magnitudes = np.abs(values)
    largest = float(magnitudes.max())
    if largest == 0:
        return {}
    magnitudes[magnitudes == 0] = largest  # zeros have no lowest digit
    lowest = max(int(np.frexp(magnitudes.min())[1]) - significant, -1074)
    first = (lowest - LOWEST) // DIGIT_BITS
    last = (int(np.frexp(largest)[1]) - LOWEST) // DIGIT_BITS
    digits = {}
    digit = np.empty(len(values), "i8")
    for d in range(last, first - 1, -1):
        _split_off_digit(values, DIGIT_BITS * d + LOWEST, digit)
        digits[d] = _run_sums(digit, firsts)
    return digits


def _split_off_digit(rest: np.ndarray, exponent: int, out: np.ndarray) -> None:
    """Stores trunc(rest / 2^exponent) in `out` and subtracts out 2^exponent from `rest`, both without rounding."""
    for start in range(0, len(rest), BLOCK):
        block = rest[start : start + BLOCK]
        units = np.trunc(np.ldexp(block, -exponent))
        out[start : start + BLOCK] = units
        block -= np.ldexp(units, exponent)


def carried(digits: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """The same sums after carry propagation: digits in 0 .. 2^DIGIT_BITS - 1, the highest one below MAX_TOP."""
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
    """The float64 numbers (count,) nearest to carried digits, ties to even, and which may be wrong (count,) bool.

    A number may be wrong if it is subnormal or not finite. The rounding uses the three highest nonzero digits and a
    sticky bit for all lower ones.
    """
    out, unsure = np.zeros(count), np.zeros(count, bool)
    for first in range(0, count if digits else 0, BLOCK):
        block = slice(first, min(first + BLOCK, count))
        of_block = {d: value[block] for d, value in digits.items()}
        out[block], unsure[block] = _round_block(of_block, lowest, block.stop - first)
    return out, unsure


def _round_block(digits: dict[int, np.ndarray], lowest: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """round_digits() of one block, so small that its intermediate results fit the cache."""
    order = sorted(digits, reverse=True)
    negative = digits[order[0]] < 0
    magnitudes = digits
    if negative.any():
        magnitudes = carried({d: np.where(negative, -value, value) for d, value in digits.items()})
    top = np.zeros(count, "i8")  # index in `order` of the highest nonzero digit
    nonzero = np.zeros(count, bool)  # whether a digit down to the present one is nonzero
    for d in order:
        nonzero |= magnitudes[d] != 0
        top += ~nonzero
    stack = [magnitudes[d] for d in order] + [np.zeros(count, "i8")] * 3  # with zeros below the lowest digit
    a, b, c = (np.zeros(count, "i8") for _ in range(3))  # the three highest nonzero digits
    sticky = np.zeros(count, bool)  # whether a digit below c is nonzero
    for k in range(len(order)):
        is_top = top == k
        for offset, target in enumerate((a, b, c)):
            np.copyto(target, stack[k + offset], where=is_top)
        sticky |= (stack[k] != 0) & (top + 2 < k)
    # `word`: the leading 62 bits of the digits a, b, c, `shift` of them from b and c: for example 20 bits of a, 36 of b
    # and 6 of c. Its last bit is also set if any bit below it is (`lost`, the sticky bit), so that the conversion to
    # float64 rounds as if it had all digits.
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
    unsure = nonzero & ((exponent + 62 < -1021) | ~np.isfinite(value))
    return np.where(nonzero, np.where(negative, -value, value), 0.0), unsure
