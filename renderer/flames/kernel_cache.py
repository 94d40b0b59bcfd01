"""Compiles and keeps the `iterate` kernels (shaders/flames/flame.cu) of a device for ChaosGame.

A specialized kernel runs flames of one structure (Specialization). A generic kernel, one for 2D and one for 3D, runs
any flame of flam3's variations while the specialized kernel compiles. Both add the same integers, so one may replace
the other in the middle of a picture.
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
# The numbers that iterate takes after its nine buffers, for a launch that does nothing: 1 xform, 1 temporal sample, but
# 0 chains, steps and buckets.
NO_OP_ARGS = (0, 0, 1, 0, 1, 0, 0, 0, 0, 0, np.uint32(0), 0, 0, 0, 0, 0, 0, np.uint32(0), np.uint32(0))
REQUESTS_BEFORE_GENERIC = 4  # requests after which a generic kernel is compiled that was never compiled for this driver
NAME = "flames/flame.cu:iterate"  # the name that progress reports show while a kernel compiles
INTEGER_SUMS, FLOAT_SUMS = 1, 2  # SUMS of flame.cu: integers, or integers stored in float32


def _blame_user(variant: Specialization | bool, error: KernelError) -> Exception:
    """A UserError that names the user-defined variations of the kernel; without such variations, `error`."""
    used = variant.used_variations if isinstance(variant, Specialization) else []
    user_defined = [v for v in used if v.is_user_defined]
    if not user_defined:
        return error
    listed = ", ".join(f"{v.name} of {v.origin}" for v in user_defined)
    reason = next((line for line in str(error).splitlines() if "error:" in line), str(error).splitlines()[0])
    return UserError(f"the device's compiler refuses a kernel with the variations {listed}: {reason.strip()}")


class KernelCache:
    """Compiled `iterate` kernels by specialization.

    By default a request compiles the specialized kernel and waits for it. After never_block(), kernels compile in
    background threads, and the generic kernel runs flames whose specialized kernel is not ready.
    """

    def __init__(self, device: Device):
        self.device = device
        # (variant, kind of sums) -> kernel. The variant is a Specialization, or of a generic kernel True if it is 3D.
        self._futures: dict[tuple[Specialization | bool, int], Future[Kernel]] = {}
        self._pool: ThreadPoolExecutor | None = None  # after never_block()
        self._prefers_generic = False
        self._latest: Specialization | None = None  # of the last request since the generic kernel is ready
        self._requests = 0  # specialized kernels that were requested before a generic one

    def never_block(self) -> None:
        """From now on compile in background threads."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(2, "compiler")

    def prefer_generic(self, flames: int = 0) -> None:
        """Choose kernels for drawing many different flames, as the contact sheet (pictures/flame_sheet.py) does.

        From now on the generic kernel runs if it was compiled before or after REQUESTS_BEFORE_GENERIC flames; if
        `flames`, their number, is large, it runs at once: it compiles as long as a few specialized kernels.
        """
        self._prefers_generic = True
        if flames > 2 * REQUESTS_BEFORE_GENERIC:
            self._requests = REQUESTS_BEFORE_GENERIC

    def wait_ready(self) -> None:
        """Wait for the generic kernel of 2D flames."""
        self._future(False, INTEGER_SUMS).result()

    def best_kernel(self, spec: Specialization) -> Kernel:
        """The specialized kernel if it is ready, else the generic one; waits until one of the two is ready."""
        if not spec.is_generic:  # only its specialized kernel can run the flame
            return result(self._future(spec, INTEGER_SUMS), NAME)
        if self._prefers_generic:  # after prefer_generic(): the generic kernel, as soon as it is worth its compilation
            if (spec, INTEGER_SUMS) not in self._futures:
                self._requests += 1
            if self._requests > REQUESTS_BEFORE_GENERIC or self._marker_path(spec.is_3d).exists():
                return self._future(spec.is_3d, INTEGER_SUMS).result()
        if self._pool is None or self._prefers_generic:
            return self._future(spec, INTEGER_SUMS).result()
        # After never_block(): the generic kernel, until the specialized one is ready.
        if (spec.is_3d, INTEGER_SUMS) not in self._futures and not self._marker_path(spec.is_3d).exists():
            # Some compilers build one kernel at a time, so the generic one must not delay the first pictures.
            kernel, self._requests = result(self._future(spec, INTEGER_SUMS), NAME), self._requests + 1
            if self._requests >= REQUESTS_BEFORE_GENERIC:
                self._future(spec.is_3d, INTEGER_SUMS)
            return kernel
        generic = self._future(spec.is_3d, INTEGER_SUMS)
        if generic.done() and not generic.exception() and spec != self._latest:
            self._latest = spec  # the specialized kernel compiles after the first picture, which gets all cores
            requested = self._futures.get((spec, INTEGER_SUMS))
            return requested.result() if requested and requested.done() else generic.result()
        specialized = self._future(spec, INTEGER_SUMS)
        if not specialized.done() and not generic.done():
            wait([specialized, generic], NAME)
        return specialized.result() if specialized.done() or generic.exception() is not None else generic.result()

    def specialized_kernel(self, spec: Specialization, kind: int) -> Kernel | None:
        """The specialized kernel; None while it compiles in the background."""
        future = self._future(spec, kind)
        return future.result() if future.done() or self._pool is None else None

    def _future(self, variant: Specialization | bool, kind: int) -> Future[Kernel]:
        """The future of a kernel, whose compilation starts if it was not requested before."""
        key = variant, kind
        if key not in self._futures:
            if self._pool is not None:
                self._cancel_queued(variant)
                self._futures[key] = self._pool.submit(self._compile, variant, kind)
            else:
                compiled: Future[Kernel] = Future()
                compiled.set_result(self._compile(variant, kind))  # a failed compilation is not cached
                self._futures[key] = compiled
        return self._futures[key]

    def _cancel_queued(self, wanted: Specialization | bool) -> None:
        """Drop queued compilations of other specializations; a later request queues them again."""
        for key, future in list(self._futures.items()):
            if isinstance(key[0], Specialization) and key[0] != wanted and future.cancel():
                del self._futures[key]

    def _compile(self, variant: Specialization | bool, kind: int) -> Kernel:
        if isinstance(variant, Specialization) or self._pool is None:
            return self._compile_source(variant, kind)
        with background():  # a generic kernel yields to the specialized ones
            return self._compile_source(variant, kind)

    def _compile_source(self, variant: Specialization | bool, kind: int) -> Kernel:
        """Compiles a kernel; on a thread of the pool also launches it once, without chains."""
        width = self.device.simd_width
        source = specialized_source(variant) if isinstance(variant, Specialization) else generic_source(variant)
        try:
            kernel = self.device.kernel(source, "iterate", 1 if width > 1 else BLOCK, STRICT=1, LANES=width, SUMS=kind)
        except KernelError as error:
            raise _blame_user(variant, error) from error
        if self._pool is not None:
            spare = self.device.buffer(8 * BLOCK)
            kernel.warm_up(1, *[spare] * 9, *NO_OP_ARGS)
            if not isinstance(variant, Specialization):
                self._touch_marker(variant)
        return kernel

    def _marker_path(self, is_3d: bool) -> Path:
        """The path of a file that exists if the generic kernel was compiled before for this device and driver.

        If so, the driver's own cache should hold the kernel, which otherwise takes seconds to compile.
        """
        text = preprocess(generic_source(is_3d), LANES=self.device.simd_width)
        words = "\0".join([self.device.name, self.device.driver, text])
        return cache_folder() / "generic_flame_kernels" / hashlib.sha256(words.encode()).hexdigest()

    def _touch_marker(self, is_3d: bool) -> None:
        path = self._marker_path(is_3d)
        with suppress(OSError):  # an unwritable cache folder is no error
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
