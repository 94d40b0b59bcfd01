"""The CUDA driver API by cuda.bindings: status checks, device queries, contexts, kernels (CUDA Driver API reference).

CUDA needs two wheels, cuda-bindings and nvidia-cuda-nvrtc. If PyCUDA is installed, it owns the context, so that
PyCUDA's arrays and kernels work in the same process. On an H200 a launch takes 3.5 us of host time by PyCUDA and 3.6 us
by cuda.bindings; making a context current takes 0.64 us by PyCUDA and 0.44 us by cuda.bindings.
"""

import ctypes
from typing import Any

from renderer.errors import KernelError, UnavailableError

__all__ = ["ArgumentBlock", "DeviceQueries", "Function", "check", "cu", "list_device_names", "open_context"]

try:
    import pycuda.driver as pycuda_driver
except ImportError:
    pycuda_driver: Any = None  # type: ignore[no-redef]  # not installed
try:
    from cuda.bindings import driver as cu
except ImportError:
    cu: Any = None  # type: ignore[no-redef]  # not installed


def check(
    answer: tuple[Any, ...], context: str = "CUDA: a kernel or a copy failed", error: type[Exception] = KernelError
) -> Any:
    """Unpacks the (status, value) of a cuda.bindings call; raises `error` unless the status is success."""
    status, *values = answer
    if status != cu.CUresult.CUDA_SUCCESS:
        raise error(f"{context}: {status.name}")
    return values[0] if values else None


def list_device_names() -> list[str]:
    """Lists the names of the driver's GPUs; raises UnavailableError if the driver does not start."""
    try:
        status = cu.cuInit(0)
    except RuntimeError as error:  # libcuda is missing
        raise UnavailableError(f"NVIDIA's driver library is missing: {' '.join(str(error).split())}") from error
    check(status, "the CUDA driver does not start", UnavailableError)
    return [_device_name(check(cu.cuDeviceGet(index))) for index in range(check(cu.cuDeviceGetCount()))]


def _device_name(handle: object) -> str:
    return str(check(cu.cuDeviceGetName(256, handle)).split(b"\0")[0].decode())


class DeviceQueries:
    """Properties of one GPU as the driver reports them."""

    def __init__(self, index: int) -> None:
        check(cu.cuInit(0), "the CUDA driver does not start", UnavailableError)
        self._handle = check(cu.cuDeviceGet(index))
        self.name = _device_name(self._handle)
        self.memory_bytes = check(cu.cuDeviceTotalMem(self._handle))
        self.multiprocessors = self._attribute("MULTIPROCESSOR_COUNT")
        self.local_bytes = self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self.compute_capability = (
            self._attribute("COMPUTE_CAPABILITY_MAJOR"),
            self._attribute("COMPUTE_CAPABILITY_MINOR"),
        )
        version = check(cu.cuDriverGetVersion())
        self.driver = f"CUDA {version // 1000}.{version % 1000 // 10}"

    def _attribute(self, name: str) -> int:
        key = getattr(cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(check(cu.cuDeviceGetAttribute(key, self._handle)))


class Context:
    """The primary context of a GPU, which GL interop, CuPy and PyTorch in the same process share."""

    def __init__(self, index: int) -> None:
        self.handle = check(cu.cuDevicePrimaryCtxRetain(check(cu.cuDeviceGet(index))))

    def push(self) -> None:
        """Make the context current in this thread."""
        check(cu.cuCtxPushCurrent(self.handle))

    def pop(self) -> None:
        """Make the context current that was current before push()."""
        check(cu.cuCtxPopCurrent())


class PycudaContext(Context):
    """The primary context, entered and left by PyCUDA, which aborts a process that ends inside a context of PyCUDA."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        pycuda_driver.init()
        self._context = pycuda_driver.Device(index).retain_primary_context()

    def push(self) -> None:
        """Make the context current in this thread."""
        self._context.push()

    def pop(self) -> None:
        """Make the context current that was current before push()."""
        pycuda_driver.Context.pop()


def open_context(index: int) -> Context:
    """Opens the primary context of a GPU, by PyCUDA if it is installed."""
    return PycudaContext(index) if pycuda_driver else Context(index)


class Function:
    """A kernel of a loaded cubin, for the current context."""

    def __init__(self, module: object, entry: str, name: str) -> None:
        self.handle = check(cu.cuModuleGetFunction(module, entry.encode()), f"{name} has no kernel {entry}")
        self._local_bytes = 0  # dynamic shared memory

    def supports_cluster_size(self, groups: int, group_size: int) -> bool:
        """Allows clusters beyond the portable 8 groups; returns True if clusters of `groups` groups can run."""
        allowed = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        if cu.cuFuncSetAttribute(self.handle, allowed, 1)[0] != cu.CUresult.CUDA_SUCCESS:
            return False
        shape = cu.CUlaunchConfig()
        shape.gridDimX, shape.gridDimY, shape.gridDimZ = groups, 1, 1
        shape.blockDimX, shape.blockDimY, shape.blockDimZ = group_size, 1, 1
        status, count = cu.cuOccupancyMaxActiveClusters(self.handle, shape)
        return bool(status == cu.CUresult.CUDA_SUCCESS and count > 0)

    def reserve_local(self, count: int) -> bool:
        """Makes later launches use `count` bytes of dynamic shared memory; returns False if they are too many."""
        most = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        if cu.cuFuncSetAttribute(self.handle, most, count)[0] != cu.CUresult.CUDA_SUCCESS:
            return False
        self._local_bytes = count
        return True

    def launch(self, groups: int, group_size: int, arguments: "ArgumentBlock", stream: int, name: str) -> None:
        """Launch on a stream of the current context."""
        grid, block, local = (groups, 1, 1), (group_size, 1, 1), self._local_bytes
        check(cu.cuLaunchKernel(self.handle, *grid, *block, local, stream, 0, arguments.address), name)


class ArgumentBlock:
    """Packed arguments in cuLaunchKernel's form: CU_LAUNCH_PARAM_BUFFER_POINTER (1) and _BUFFER_SIZE (2)."""

    def __init__(self, packed: bytes) -> None:
        self._kept = ctypes.create_string_buffer(packed, len(packed)), ctypes.c_size_t(len(packed))
        block, size = (ctypes.addressof(part) for part in self._kept)
        self._words = (ctypes.c_void_p * 5)(1, block, 2, size, 0)
        self.address = ctypes.addressof(self._words)
