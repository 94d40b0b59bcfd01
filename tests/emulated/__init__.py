"""An emulated CUDA machine: renderer/gpu/cuda.py itself, over a driver and a compiler that need no GPU.

The very texts that NVRTC gets are compiled by g++ (compiler.py, words.h), their threads run as fibers in an order that
is drawn (fibers.cpp, waits.cpp), in memory between closed pages (memory.py); what streams are given runs late, in any
order that streams and events allow (schedule.py). Each seed is another order. So it shows missing barriers, waits and
events, data races (races.cpp), accesses out of bounds, uninitialised memory and deadlocks; it cannot show memory orders
weaker than sequential consistency, kernels of two streams that mix while both run, limits of registers and local memory
(NVRTC's compilation shows these), or speed.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from renderer.gpu import cublas

from . import compiler
from .driver import Emulation, bindings_driver, pycuda_driver
from .products import Library

CUDA = Path(__file__).resolve().parents[2] / "renderer" / "gpu" / "cuda.py"


def cuda_machine(devices: int = 4, seed: int = 0, races: bool = False, name: str = "emulated_cuda") -> ModuleType:
    """renderer/gpu/cuda.py once more, on `devices` emulated devices: its CudaDevice(0) and so on.

    With `races` every access to memory is checked against those of other threads (races.cpp), ten times slower.
    """
    specification = importlib.util.spec_from_file_location(name, CUDA)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    folder = module.cache_folder() / "emulated"
    module.emulation = Emulation(devices, seed, races, folder)
    module.pycuda_driver, module.cu = pycuda_driver(module.emulation), bindings_driver(module.emulation)
    module.nvrtc, module.NVIDIA_CONTROL_FILE = compiler.nvrtc(folder, races), CUDA
    library = Library(module.emulation)

    class Device(module.CudaDevice):
        def vendor_blas(self, dtype):
            return cublas.Cublas(self, library, np.dtype(dtype))

    module.CudaDevice = Device
    return module


def replace_cuda(devices: int, seed: int, races: bool) -> None:
    """Makes the emulated machine this process's CUDA: before anything imports renderer.gpu.cuda."""
    import renderer.gpu

    name = "renderer.gpu.cuda"
    assert name not in sys.modules, f"{name} is imported already"
    sys.modules[name] = renderer.gpu.cuda = cuda_machine(devices, seed, races, name)
