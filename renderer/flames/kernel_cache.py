"""The compiled kernels of flames on a device: one a structure, and the interpreter that draws before it is there.

Both add the same whole numbers, so that one may take over from the other in the middle of a picture.
"""

import hashlib
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np

from renderer.flames.kernel_source import Structure, interpreter_text, text_of
from renderer.gpu import Device
from renderer.gpu.cuda import cache_folder
from renderer.gpu.kernel_source import assemble

BLOCK = 256  # chains that swap points; as in shaders/flames/flame.cu
IDLE = (0, 0, 1, 0, 1, 0, 0, 0, 0, 0, np.uint32(0), 0, 0, 0, 0, 0, 0, np.uint32(0), np.uint32(0))  # no chains, no steps
ASKED_BEFORE = 4  # draws before an interpreter that no cache holds is compiled
WHOLE, FLOATS = 1, 2  # kinds of sums: whole numbers, or whole numbers in floats


class Compiled:
    """What draws structures. Patient at first: every structure waits for its own kernel. After hurry() kernels are
    compiled beside the drawing, and the interpreter draws what has none yet.
    """

    def __init__(self, device: Device):
        self.device = device
        self._futures: dict[tuple, Future] = {}  # (structure or space, kind of sums) -> kernel
        self._pool, self._latest, self._asked = None, None, 0

    def hurry(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(2, "compiler")

    def ready(self) -> None:
        """Waits for the interpreter of flames of the plane."""
        self._future(False, WHOLE).result()

    @property
    def hurried(self) -> bool:
        return self._pool is not None

    def now(self, structure: Structure):
        """The best kernel with sums in whole numbers that there is; waits where there is none."""
        known = not self.hurried or (structure.space, WHOLE) in self._futures or self._mark(structure.space).exists()
        if not known:  # some compilers build one kernel at a time: what the first pictures need comes first
            kernel, self._asked = self._future(structure, WHOLE).result(), self._asked + 1
            if self._asked >= ASKED_BEFORE:
                self._future(structure.space, WHOLE)
            return kernel
        any_flame = self._future(structure.space, WHOLE) if self.hurried else None
        if self.hurried and any_flame.done() and not any_flame.exception() and structure != self._latest:
            self._latest = structure  # its own kernel is begun after the first picture, which has all cores
            own = self._futures.get((structure, WHOLE), any_flame)
            return own.result() if own.done() else any_flame.result()
        own = self._future(structure, WHOLE)
        if not self.hurried or own.done():
            return own.result()
        if not any_flame.done():
            wait([own, any_flame], return_when=FIRST_COMPLETED)
        drawn = own.done() or any_flame.exception() is not None
        return own.result() if drawn else any_flame.result()

    def own(self, structure: Structure, kind: int):
        """The structure's own kernel; None while it is compiled beside the drawing."""
        future = self._future(structure, kind)
        return future.result() if future.done() or not self.hurried else None

    def _future(self, what, kind: int) -> Future:
        key = what, kind
        if key not in self._futures:
            if self.hurried:
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
            if isinstance(key[0], Structure) and key[0] != wanted and future.cancel():
                del self._futures[key]

    def _compile(self, what, kind: int):
        lanes = self.device.vector_width
        text = text_of(what) if isinstance(what, Structure) else interpreter_text(what)
        kernel = self.device.kernel(text, "iterate", 1 if lanes > 1 else BLOCK, STRICT=1, LANES=lanes, SUMS=kind)
        if self.hurried:
            spare = self.device.buffer(8 * BLOCK)
            kernel.prepare(1, *[spare] * 8, *IDLE)
            if not isinstance(what, Structure):
                self._keep_mark(what)
        return kernel

    def _mark(self, space: bool) -> Path:
        """A file that stands where the driver's cache should hold the interpreter, which takes seconds to compile."""
        text = assemble(interpreter_text(space), LANES=self.device.vector_width)
        words = "\0".join([self.device.name, self.device.driver, text])
        return cache_folder() / "interpreter" / hashlib.sha256(words.encode()).hexdigest()

    def _keep_mark(self, space: bool) -> None:
        path = self._mark(space)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError:
            pass  # a cache that cannot be written is no error
