"""Residuals of band systems by a device, in one pass over the band; residuals.py computes the same without one."""

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu import Buffer, Device
from renderer.gpu.dlpack import import_tensor
from renderer.numerics.band_lu.residuals import EPSILON, TINY, Residual

CPU_ROWS = 256  # of a work-item: few streams of memory at once, and their sums stay in the first-level cache
MAX_COLUMNS = 2  # right-hand sides of a launch: their sums stay in registers
MIN_ELEMENTS = 1 << 17  # of a band for which a device pays
MEMORY_FRACTION = 0.3  # of a device's memory that the band may take


def pays(device: Device, ab: np.ndarray) -> bool:
    """Whether the device computes residuals of this band, and faster than NumPy does."""
    room = min(MEMORY_FRACTION * device.properties.memory_bytes, device.properties.max_buffer_bytes)
    return device.properties.has_fp64 and ab.size >= MIN_ELEMENTS and ab.nbytes <= room


class DeviceResiduals:
    """Residuals with the band matrix of ab (kl + ku + 1, n), which the device reads where it lies if it can.

    `band` is the same matrix in the device's memory, where it is there already.
    """

    def __init__(self, device: Device, ab: np.ndarray, kl: int, ku: int, band: Buffer | None = None):
        self.device, self.kl, self.ku, self.n = device, kl, ku, ab.shape[1]
        is_cpu, is_double = device.properties.scalar_threads, ab.dtype == np.float64
        self._rows = CPU_ROWS if is_cpu else 1
        self._constants = {"REAL": "double" if is_double else "float", "DOUBLE": int(is_double), "STRICT": 1}
        self._constants |= {"ROWS": CPU_ROWS} if is_cpu else {}
        self._group = 4 if is_cpu else 128
        can_borrow = ab.flags.c_contiguous and ab.flags.writeable  # as DLPack asks for
        own = band or (device.borrow(import_tensor(ab)) if can_borrow else None)
        self._band = own or device.buffer(ab.shape, ab.dtype).write(np.ascontiguousarray(ab))

    def __call__(self, x: np.ndarray, b: np.ndarray) -> Residual:
        """The residual of x (n, m) for right-hand sides b (n, m)."""
        values, size = np.empty(b.shape), np.empty(b.shape)
        for first in range(0, b.shape[1], MAX_COLUMNS):
            part = slice(first, min(first + MAX_COLUMNS, b.shape[1]))
            values[:, part], size[:, part] = self._columns(x[:, part], b[:, part])
        terms = self.kl + self.ku + 3
        with np.errstate(over="ignore", invalid="ignore"):
            doubt = EPSILON * np.abs(values) + 2 * (terms * EPSILON) ** 2 * size + terms * TINY
        return Residual(values, size, doubt)

    def _columns(self, x: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        device, count = self.device, b.shape[1]
        given = [device.buffer((count, self.n), "f8").write(np.ascontiguousarray(v.T, "f8")) for v in (x, b)]
        found = [device.buffer((count, self.n), "f8") for _ in range(2)]
        entry, columns = "band_residual", {"COLUMNS": count}
        kernel = device.kernel("numerics/band_lu/residual.cu", entry, self._group, **self._constants, **columns)
        sizes = np.uint64(self.n), self.kl, self.ku, count
        kernel(-(-self.n // self._rows), self._band, *given, *found, *sizes)
        return found[0].read().T, found[1].read().T


def residuals_on(
    device: Device, ab: np.ndarray, kl: int, ku: int, band: Buffer | None = None
) -> DeviceResiduals | None:
    """DeviceResiduals where they pay and the device has the memory, else None."""
    if not pays(device, ab):
        return None
    try:
        return DeviceResiduals(device, ab, kl, ku, band)
    except UnavailableError:
        return None
