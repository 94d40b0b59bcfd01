"""Residuals b - A x of band systems as if computed in twice the working precision, with a proven bound on their error.

For refinement, error bounds and enclosures. Products and sums are error-free transformations, and their rounding errors
are added separately (Dot2: T. Ogita, S. M. Rump, S. Oishi, Accurate Sum and Dot Product, SIAM J. Sci. Comput. 2005).
accurate_residual() runs on the cores of the host by NumPy; DeviceResiduals computes the same bits on a device
(numerics/band_lu/residual.cu) in one pass over the band.
"""

from typing import NamedTuple

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu import Buffer, Device
from renderer.gpu.dlpack import import_tensor
from renderer.numerics.band_lu.block_columns import diagonals, on_cores, row_blocks
from renderer.numerics.error_free import product_error, split, two_sum

EPSILON = 2.0**-53  # half a unit in the last place
MAX_SPLIT = 2.0**990  # larger numbers would overflow in split()
TINY = 2.0**-1070  # bound of the error by underflow in the rounding error of one product
CPU_ROWS = 256  # rows per work-item on CPUs: few memory streams at once, with sums in the first-level cache
MAX_COLUMNS = 2  # right-hand sides per launch: their sums fit registers
MIN_ELEMENTS = 1 << 17  # band elements from which a device is faster than NumPy
MEMORY_FRACTION = 0.3  # largest fraction of device memory for the band


class Residual(NamedTuple):
    """A computed residual; all arrays are (n, m) float64."""

    values: np.ndarray  # b - A x
    size: np.ndarray  # |A| |x| + |b|

    @property
    def backward_error(self) -> float:
        """The componentwise backward error, max |r| / (|A| |x| + |b|) with 0 / 0 = 0."""
        return float(quotients(np.abs(self.values), self.size).max(initial=0.0))

    def error_bounds(self, kl: int, ku: int) -> np.ndarray:
        """Proven bounds (n, m) of the errors of `values`, for a band of kl sub- and ku superdiagonals."""
        # Dot2: u |r| + (N u)^2 size bounds the error of N products (Ogita et al.); a row has kl + ku + 1 products and
        # b. The factor 2 and one term more are a margin.
        terms = kl + ku + 3
        with np.errstate(over="ignore", invalid="ignore"):
            bounds = EPSILON * np.abs(self.values) + 2 * (terms * EPSILON) ** 2 * self.size
            return np.asarray(bounds + terms * TINY)


def quotients(numerators: np.ndarray, denominators: np.ndarray) -> np.ndarray:
    """numerators / denominators as float64, with 0 / 0 = 0 and x / 0 = inf."""
    with np.errstate(over="ignore"):
        if denominators.min(initial=1) > 0:
            return np.asarray(numerators / denominators)
        undefined = np.where(numerators == 0, 0.0, np.inf)
        return np.asarray(np.divide(numerators, denominators, out=undefined, where=denominators > 0))


def accurate_residual(ab: np.ndarray, kl: int, ku: int, x: np.ndarray, b: np.ndarray) -> Residual:
    """The residual of x (n, m) for right-hand sides b (n, m) and the matrix A of the band array ab (kl + ku + 1, n).

    All magnitudes must be at most MAX_SPLIT; if a product overflows the residual is not finite.
    """
    x, b = x.astype("f8", copy=False), b.astype("f8", copy=False)
    values, size = b.copy(), np.abs(b)

    def work(block: slice) -> None:
        """The residuals of a block of rows: b - A x in two floats, and the sums of magnitudes."""
        first = max(block.start - kl, 0)  # first column of these rows; the halves of x from here stay in the cache
        with np.errstate(over="ignore", invalid="ignore"):
            negated = -x[first : block.stop + ku]
            halves = split(negated)
            errors = np.zeros_like(b[block])  # sums of the errors of additions and products; only these sums round
            # d is the row of ab: ab[d, columns] multiplies x[columns] in the equations `rows`.
            for d, columns, rows in diagonals(ab, kl, ku, block):
                a = ab[d, columns, None].astype("f8", copy=False)
                part = slice(columns.start - first, columns.stop - first)
                product = a * negated[part]
                errors_of_rows = errors[rows.start - block.start : rows.stop - block.start]
                values[rows], error = two_sum(values[rows], product)
                errors_of_rows += error
                errors_of_rows += product_error(product, split(a), (halves[0][part], halves[1][part]))
                size[rows] += np.abs(product, out=product)
            values[block] += errors

    on_cores(work, row_blocks(*b.shape))
    return Residual(values, size)


def is_faster_on(device: Device, ab: np.ndarray) -> bool:
    """True if the device can compute residuals of this band array, and faster than NumPy."""
    room = min(MEMORY_FRACTION * device.properties.memory_bytes, device.properties.max_buffer_bytes)
    return device.properties.has_fp64 and ab.size >= MIN_ELEMENTS and ab.nbytes <= room


class DeviceResiduals:
    """A function that computes residuals of the band array ab (kl + ku + 1, n) on a device.

    `band` is the same array in device memory, if there is one; else the device reads ab in place if it can, or a copy.
    """

    def __init__(self, device: Device, ab: np.ndarray, kl: int, ku: int, band: Buffer | None = None):
        self.device, self.kl, self.ku, self.n = device, kl, ku, ab.shape[1]
        is_cpu, is_double = device.properties.scalar_threads, ab.dtype == np.float64
        self._rows = CPU_ROWS if is_cpu else 1
        self._constants = {"REAL": "double" if is_double else "float", "DOUBLE": int(is_double), "STRICT": 1}
        self._constants |= {"ROWS": CPU_ROWS} if is_cpu else {}
        self._group = 4 if is_cpu else 128
        can_borrow = ab.flags.c_contiguous and ab.flags.writeable  # required by DLPack
        in_place = band or (device.borrow(import_tensor(ab)) if can_borrow else None)
        self._band = in_place or device.buffer(ab.shape, ab.dtype).write(np.ascontiguousarray(ab))

    def __call__(self, x: np.ndarray, b: np.ndarray) -> Residual:
        """The residual of x (n, m) for right-hand sides b (n, m)."""
        values, size = np.empty(b.shape), np.empty(b.shape)
        for first in range(0, b.shape[1], MAX_COLUMNS):
            columns = slice(first, min(first + MAX_COLUMNS, b.shape[1]))
            values[:, columns], size[:, columns] = self._launch(x[:, columns], b[:, columns])
        return Residual(values, size)

    def _launch(self, x: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """b - A x and |A| |x| + |b| for at most MAX_COLUMNS right-hand sides."""
        device, count = self.device, b.shape[1]
        inputs = [device.buffer((count, self.n), "f8").write(np.ascontiguousarray(v.T, "f8")) for v in (-x, b)]
        values, size = (device.buffer((count, self.n), "f8") for _ in range(2))
        constants = {**self._constants, "COLUMNS": count}
        kernel = device.kernel("numerics/band_lu/residual.cu", "band_residual", self._group, **constants)
        sizes = np.uint64(self.n), self.kl, self.ku, count
        kernel(-(-self.n // self._rows), self._band, *inputs, values, size, *sizes)
        return values.read().T, size.read().T


def residuals_on(
    device: Device, ab: np.ndarray, kl: int, ku: int, band: Buffer | None = None
) -> DeviceResiduals | None:
    """DeviceResiduals if is_faster_on() and the device has the memory, else None."""
    if not is_faster_on(device, ab):
        return None
    try:
        return DeviceResiduals(device, ab, kl, ku, band)
    except UnavailableError:
        return None
