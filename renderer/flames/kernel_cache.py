"""The compiled kernels of flames on a device: one a specialization, and the interpreter that draws before it is there.

Both add the same whole numbers, so that one may take over from the other in the middle of a picture.
"""

import hashlib
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np

from renderer.flames.kernel_source import Specialization, generic_source, specialized_source
from renderer.gpu import Device
from renderer.gpu.cuda import cache_folder
from renderer.gpu.kernel_source import preprocess

BLOCK = 256  # chains that swap points; as in shaders/flames/flame.cu
IDLE = (0, 0, 1, 0, 1, 0, 0, 0, 0, 0, np.uint32(0), 0, 0, 0, 0, 0, 0, np.uint32(0), np.uint32(0))  # no chains, no steps
ASKED_BEFORE = 4  # draws before an interpreter that no cache holds is compiled
INTEGER_SUMS, FLOAT_SUMS = 1, 2  # kinds of sums: whole numbers, or whole numbers in floats


class KernelCache:
    """What draws structures. Patient at first: every specialization waits for its own kernel. After hurry() kernels are
    compiled beside the drawing, and the interpreter draws what has none yet.
    """

    def __init__(self, device: Device):
        self.device = device
        self._futures: dict[tuple, Future] = {}  # (specialization or space, kind of sums) -> kernel
        self._pool, self._latest, self._asked = None, None, 0

    def never_block(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(2, "compiler")

    def wait_ready(self) -> None:
        """Waits for the interpreter of flames of the plane."""
        self._future(False, INTEGER_SUMS).result()

    @property
    def non_blocking(self) -> bool:
        return self._pool is not None

    def best_kernel(self, specialization: Specialization):
        """The best kernel with sums in whole numbers that there is; waits where there is none."""
        known = (
            not self.non_blocking
            or (specialization.is_3d, INTEGER_SUMS) in self._futures
            or self._mark(specialization.is_3d).exists()
        )
        if not known:  # some compilers build one kernel at a time: what the first pictures need comes first
            kernel, self._asked = self._future(specialization, INTEGER_SUMS).result(), self._asked + 1
            if self._asked >= ASKED_BEFORE:
                self._future(specialization.is_3d, INTEGER_SUMS)
            return kernel
        any_flame = self._future(specialization.is_3d, INTEGER_SUMS) if self.non_blocking else None
        if self.non_blocking and any_flame.done() and not any_flame.exception() and specialization != self._latest:
            self._latest = specialization  # its own kernel is begun after the first picture, which has all cores
            own = self._futures.get((specialization, INTEGER_SUMS), any_flame)
            return own.result() if own.done() else any_flame.result()
        own = self._future(specialization, INTEGER_SUMS)
        if not self.non_blocking or own.done():
            return own.result()
        if not any_flame.done():
            wait([own, any_flame], return_when=FIRST_COMPLETED)
        drawn = own.done() or any_flame.exception() is not None
        return own.result() if drawn else any_flame.result()

    def specialized_kernel(self, specialization: Specialization, kind: int):
        """The specialization's own kernel; None while it is compiled beside the drawing."""
        future = self._future(specialization, kind)
        return future.result() if future.done() or not self.non_blocking else None

    def _future(self, what, kind: int) -> Future:
        key = what, kind
        if key not in self._futures:
            if self.non_blocking:
                self._forget_waiting(what)
                self._futures[key] = self._pool.submit(self._compile, what, kind)
            else:
                compiled = Future()
                compiled.set_result(self._compile(what, kind))  # what does not compile is not kept
                self._futures[key] = compiled
        return self._futures[key]

    def _forget_waiting(self, wanted) -> None:
        """Structures that were left before their kernel's turn came are compiled when they come back."""
        for key, future in list(self._futures.items()):
            if isinstance(key[0], Specialization) and key[0] != wanted and future.cancel():
                del self._futures[key]

    def _compile(self, what, kind: int):
        lanes = self.device.simd_width
        text = specialized_source(what) if isinstance(what, Specialization) else generic_source(what)
        kernel = self.device.kernel(text, "iterate", 1 if lanes > 1 else BLOCK, STRICT=1, LANES=lanes, SUMS=kind)
        if self.non_blocking:
            spare = self.device.buffer(8 * BLOCK)
            kernel.warm_up(1, *[spare] * 8, *IDLE)
            if not isinstance(what, Specialization):
                self._keep_mark(what)
        return kernel

    def _mark(self, space: bool) -> Path:
        """A file that stands where the driver's cache should hold the interpreter, which takes seconds to compile."""
        text = preprocess(generic_source(space), LANES=self.device.simd_width)
        words = "\0".join([self.device.name, self.device.driver, text])
        return cache_folder() / "interpreter" / hashlib.sha256(words.encode()).hexdigest()

    def _keep_mark(self, space: bool) -> None:
        path = self._mark(space)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError:
            pass  # a cache that cannot be written is no error
