"""The primitives of ir/primitives.py in NumPy, for the NumPy target: prefix sums, sorting, scatters.

Prefix sums add floats in the order of the kernels (shaders/cdollar/scan.cu), so that the bits are the same. They are
hierarchical: over runs of 16 elements, over the totals of 16 runs (a group), over the totals of 16 groups (a block of
4,096 elements), and then over the totals of blocks in the same way.
"""

import numpy as np

BLOCK, RADIX = 4096, 16
FUNCTIONS = {"scatter_add": np.add, "scatter_mul": np.multiply, "scatter_max": np.maximum, "scatter_min": np.minimum}


def scan(values: np.ndarray) -> np.ndarray:
    """The inclusive prefix sums along the last axis, in the type of the values; integers wrap."""
    if values.dtype.kind in "iu":
        return np.cumsum(values.view("u4"), axis=-1, dtype="u4").view(values.dtype)
    with np.errstate(all="ignore"):
        return _scan_rows(values.reshape(-1, values.shape[-1])).reshape(values.shape) if values.size else values


def _scan_rows(rows: np.ndarray) -> np.ndarray:
    """The prefix sums (count, length) of rows, in the order of additions of shaders/cdollar/scan.cu."""
    count, length = rows.shape
    blocks = -(-length // BLOCK)
    padded = np.zeros((count, blocks * BLOCK), rows.dtype)
    padded[:, :length] = rows
    inner = np.add.accumulate(padded.reshape(count, blocks, RADIX, RADIX, RADIX), axis=-1)
    middle = np.add.accumulate(inner[..., -1], axis=-1)
    outer = np.add.accumulate(middle[..., -1], axis=-1)
    base = np.zeros((count, blocks), rows.dtype)
    if blocks > 1:
        base[:, 1:] = _scan_rows(outer[..., -1])[:, :-1]
    total = _exclusive(middle)[..., None] + inner
    total = _exclusive(outer)[..., None, None] + total
    return np.asarray(base[..., None, None, None] + total).reshape(count, -1)[:, :length]


def _exclusive(sums: np.ndarray) -> np.ndarray:
    """The exclusive prefix sums along the last axis, from the inclusive ones."""
    shifted = np.zeros_like(sums)
    shifted[..., 1:] = sums[..., :-1]
    return shifted


def sort_keys(values: np.ndarray) -> np.ndarray:
    """Unsigned integers in the order of the values: NaN last, -0 before 0."""
    if values.dtype.kind == "u":
        return values
    bits, sign = (np.dtype("u4"), 0x80000000) if values.itemsize == 4 else (np.dtype("u8"), 1 << 63)
    sign_bit = bits.type(sign)
    raw = np.ascontiguousarray(values).view(bits)
    if values.dtype.kind == "i":
        return raw ^ sign_bit
    keys = np.where(raw & sign_bit, ~raw, raw | sign_bit)
    return np.where(np.isnan(values), ~bits.type(0), keys)


def sort(values: np.ndarray) -> np.ndarray:
    """The values in increasing order, NaN last; every NaN becomes the NaN with the bits 0x7fc00000."""
    if values.dtype.kind != "f":
        return np.sort(values)
    keys = np.sort(sort_keys(values))
    sign_bit = keys.dtype.type(1 << (8 * keys.itemsize - 1))
    ordered = np.where(keys & sign_bit, keys & ~sign_bit, ~keys).astype(keys.dtype).view(values.dtype)
    return np.where(keys == ~keys.dtype.type(0), values.dtype.type(np.nan), ordered)


def argsort(values: np.ndarray) -> np.ndarray:
    """The indices of the values in increasing order, stable; -0 and 0 are equal."""
    positive_zero = values.dtype.type(0)
    return np.argsort(sort_keys(values + positive_zero), kind="stable").astype("i4")


def scatter(
    name: str, keys: np.ndarray, values: np.ndarray | None, low: int, count: int, start: np.generic
) -> np.ndarray:
    """The sum, product, maximum or minimum of the values, in their order, of each key low, low + 1, ...

    Other keys are ignored; maxima and minima ignore NaN. `start` is the result of a key without values.
    """
    bins = keys.reshape(-1).astype("i8") - low
    kept = (bins >= 0) & (bins < count)
    if values is None:
        return np.bincount(bins[kept], minlength=count).astype("i8").astype("u4").view(start.dtype)
    flat_values = np.broadcast_to(values, keys.shape).reshape(-1)
    is_extremum = name in ("scatter_max", "scatter_min")
    if is_extremum and flat_values.dtype.kind == "f":
        kept &= ~np.isnan(flat_values)
    results = np.full(count, start)
    with np.errstate(all="ignore"):
        FUNCTIONS[name].at(results, bins[kept], flat_values[kept])
    return results + start.dtype.type(0) if is_extremum else results  # -0 + 0 is +0, as the kernels have it
