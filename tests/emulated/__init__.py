"""An emulated CUDA machine: renderer/gpu/cuda/device.py and its imports, over a driver and a compiler without a GPU.

The very texts that NVRTC gets are compiled by g++ (compiler.py, words.h), their threads run as fibers in an order that
is drawn (fibers.cpp, waits.cpp), in memory between closed pages (memory.py); what streams are given runs late, in any
order that streams and events allow (schedule.py). Each seed is another order. So it shows missing barriers, waits and
events, data races (races.cpp), accesses out of bounds, uninitialised memory and deadlocks; it cannot show memory orders
weaker than sequential consistency, kernels of two streams that mix while both run, limits of registers and local memory
(NVRTC's compilation shows these), or speed.
"""

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np

from renderer.gpu.cache import cache_folder
from renderer.gpu.cuda import cublas
from renderer.gpu.cuda.nvrtc import compile_cubin

from . import compiler
from .driver import Emulation, bindings_driver
from .products import Library

GPU = Path(__file__).resolve().parents[2] / "renderer" / "gpu"


def cuda_machine(devices: int = 4, seed: int = 0, races: bool = False, name: str = "emulated_cuda") -> ModuleType:
    """renderer/gpu/cuda/device.py and its imports once more, on `devices` emulated devices: CudaDevice(0) and so on.

    With `races` every access to memory is checked against those of other threads (races.cpp), ten times slower.
    """
    folder = cache_folder() / "emulated"
    emulation = Emulation(devices, seed, races, folder)
    driver, run = _module(f"{name}_driver", "cuda/driver.py")
    run()
    driver.cu, driver.pycuda_driver = bindings_driver(emulation), None
    streams, run_streams = _module(f"{name}_streams", "cuda/streams.py")
    with mock.patch.dict(sys.modules, {"renderer.gpu.cuda.driver": driver, "renderer.gpu.cuda.streams": streams}):
        run_streams()
        module, run = _module(name, "cuda/device.py")
        run()
    module.emulation, module.NVIDIA_CONTROL_FILES = emulation, (GPU,)
    module.compile_cubin = partial(compile_cubin, compiler=compiler.nvrtc(folder, races))
    library = Library(emulation)

    class Device(module.CudaDevice):
        def vendor_blas(self, dtype):
            return cublas.Cublas(self, library, np.dtype(dtype))

    module.CudaDevice = Device
    return module


def _module(name: str, file: str) -> tuple[ModuleType, Callable[[], None]]:
    """A new module of a file of renderer/gpu, and what executes it."""
    specification = importlib.util.spec_from_file_location(name, GPU / file)
    module = importlib.util.module_from_spec(specification)
    return module, partial(specification.loader.exec_module, module)


def replace_cuda(devices: int, seed: int, races: bool) -> None:
    """Makes the emulated machine this process's CUDA: before anything imports renderer.gpu.cuda.device."""
    import renderer.gpu

    name = "renderer.gpu.cuda.device"
    assert name not in sys.modules, f"{name} is imported already"
    sys.modules[name] = renderer.gpu.cuda.device = cuda_machine(devices, seed, races, name)
