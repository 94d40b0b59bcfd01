"""Cache of `iterate` kernels on a device: specialized ones, and the generic ones that run while those compile.

Both add the same integers, so one may replace the other in the middle of a picture.
"""

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np

from renderer.errors import KernelError, UserError
from renderer.flames.kernel_source import Specialization, generic_source, specialized_source
from renderer.gpu import Device
from renderer.gpu.cache import cache_folder
from renderer.gpu.compilation import background, result, wait
from renderer.gpu.device import Kernel
from renderer.gpu.kernel_source import preprocess

BLOCK = 256  # chains that exchange points; as in shaders/flames/flame.cu
NO_OP_ARGS = (0, 0, 1, 0, 1, 0, 0, 0, 0, 0, np.uint32(0), 0, 0, 0, 0, 0, 0, np.uint32(0), np.uint32(0))  # no chains
REQUESTS_BEFORE_GENERIC = 4  # requests before a generic kernel is compiled that no driver's cache holds
NAME = "flames/flame.cu:iterate"  # the kernel, for who waits for it
INTEGER_SUMS, FLOAT_SUMS = 1, 2  # SUMS of flame.cu: integers, or integers stored in float32


def _blame_user(what: Specialization | bool, error: KernelError) -> Exception:
    """A UserError if the kernel has variations of the user's, else the error itself."""
    used = what.used_variations if isinstance(what, Specialization) else []
    mine = [v for v in used if v.is_users]
    if not mine:
        return error
    listed = ", ".join(f"{v.name} of {v.origin}" for v in mine)
    reason = next((line for line in str(error).splitlines() if "error:" in line), str(error).splitlines()[0])
    return UserError(f"the device's compiler refuses a kernel with the variations {listed}: {reason.strip()}")


class KernelCache:
    """Compiled `iterate` kernels by specialization.

    By default a request compiles the specialized kernel and waits for it. After never_block(), kernels compile in
    background threads, and the generic kernel runs flames whose specialized kernel is not ready.
    """

    def __init__(self, device: Device):
        self.device = device
        # (specialization, or for the generic kernel whether it is 3D; kind of sums) -> kernel
        self._futures: dict[tuple[Specialization | bool, int], Future[Kernel]] = {}
        self._pool: ThreadPoolExecutor | None = None  # of never_block()
        self._prefers_generic = False
        self._latest: Specialization | None = None
        self._requests = 0

    def never_block(self) -> None:
        """From now on compile in the background."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(2, "compiler")

    def prefer_generic(self, flames: int = 0) -> None:
        """From now on run the generic kernel where it was compiled before, and after a few flames: for many flames.

        `flames`: their number, if it is known; of many GPUs run it at once, for it compiles as long as a few others.
        """
        self._prefers_generic = True
        if flames > 2 * REQUESTS_BEFORE_GENERIC:
            self._requests = REQUESTS_BEFORE_GENERIC

    def wait_ready(self) -> None:
        """Wait for the generic kernel of 2D flames."""
        self._future(False, INTEGER_SUMS).result()

    def best_kernel(self, spec: Specialization) -> Kernel:
        """The specialized kernel if it is ready, else the generic one; waits for the first of them (compilation.py)."""
        if not spec.is_generic:
            return result(self._future(spec, INTEGER_SUMS), NAME)
        if self._prefers_generic:
            self._requests += (spec, INTEGER_SUMS) not in self._futures
            if self._requests > REQUESTS_BEFORE_GENERIC or self._marker_path(spec.is_3d).exists():
                return self._future(spec.is_3d, INTEGER_SUMS).result()
        if self._pool is None or self._prefers_generic:
            return self._future(spec, INTEGER_SUMS).result()
        if (spec.is_3d, INTEGER_SUMS) not in self._futures and not self._marker_path(spec.is_3d).exists():
            # Some compilers build one kernel at a time, so the generic one must not delay the first pictures.
            kernel, self._requests = result(self._future(spec, INTEGER_SUMS), NAME), self._requests + 1
            if self._requests >= REQUESTS_BEFORE_GENERIC:
                self._future(spec.is_3d, INTEGER_SUMS)
            return kernel
        generic = self._future(spec.is_3d, INTEGER_SUMS)
        if generic.done() and not generic.exception() and spec != self._latest:
            self._latest = spec  # its own kernel is compiled after the first picture, which gets all cores
            own = self._futures.get((spec, INTEGER_SUMS), generic)
            return own.result() if own.done() else generic.result()
        own = self._future(spec, INTEGER_SUMS)
        if not own.done() and not generic.done():
            wait([own, generic], NAME)
        return own.result() if own.done() or generic.exception() is not None else generic.result()

    def specialized_kernel(self, spec: Specialization, kind: int) -> Kernel | None:
        """The specialized kernel; None while it compiles in the background."""
        future = self._future(spec, kind)
        return future.result() if future.done() or self._pool is None else None

    def _future(self, what: Specialization | bool, kind: int) -> Future[Kernel]:
        key = what, kind
        if key not in self._futures:
            if self._pool is not None:
                self._cancel_queued(what)
                self._futures[key] = self._pool.submit(self._compile, what, kind)
            else:
                compiled: Future[Kernel] = Future()
                compiled.set_result(self._compile(what, kind))  # a failed compilation is not cached
                self._futures[key] = compiled
        return self._futures[key]

    def _cancel_queued(self, wanted: Specialization | bool) -> None:
        """Drop queued compilations of other specializations; a later request queues them again."""
        for key, future in list(self._futures.items()):
            if isinstance(key[0], Specialization) and key[0] != wanted and future.cancel():
                del self._futures[key]

    def _compile(self, what: Specialization | bool, kind: int) -> Kernel:
        if isinstance(what, Specialization) or self._pool is None:
            return self._compile_source(what, kind)
        with background():
            return self._compile_source(what, kind)

    def _compile_source(self, what: Specialization | bool, kind: int) -> Kernel:
        width = self.device.simd_width
        source = specialized_source(what) if isinstance(what, Specialization) else generic_source(what)
        try:
            kernel = self.device.kernel(source, "iterate", 1 if width > 1 else BLOCK, STRICT=1, LANES=width, SUMS=kind)
        except KernelError as error:
            raise _blame_user(what, error) from error
        if self._pool is not None:
            spare = self.device.buffer(8 * BLOCK)
            kernel.warm_up(1, *[spare] * 9, *NO_OP_ARGS)
            if not isinstance(what, Specialization):
                self._touch_marker(what)
        return kernel

    def _marker_path(self, is_3d: bool) -> Path:
        """Marker file: it exists if the generic kernel was compiled before for this device and driver.

        Then the driver's own cache should hold the kernel, which takes seconds to compile.
        """
        text = preprocess(generic_source(is_3d), LANES=self.device.simd_width)
        words = "\0".join([self.device.name, self.device.driver, text])
        return cache_folder() / "generic_flame_kernels" / hashlib.sha256(words.encode()).hexdigest()

    def _touch_marker(self, is_3d: bool) -> None:
        path = self._marker_path(is_3d)
        with suppress(OSError):  # an unwritable cache folder is no error
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
